//! String functions. What a reader sees as one character counts as one.

mod case;

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use super::arguments::{Arguments, FunctionError};
use super::{Body, Function, Kind, Parameter, patterns};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "chomp",
        parameters: &[Parameter::new("str", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string without the line breaks at its end.",
        example: ("chomp(\"hello\\n\")", "\"hello\""),
        body: Body::Eager(|arguments| {
            Ok(Value::normal(
                arguments.text(0).trim_end_matches(['\r', '\n']),
            ))
        }),
    },
    Function {
        name: "endswith",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("suffix", Kind::String),
        ],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns whether a string ends with another.",
        example: ("endswith(\"hello\", \"lo\")", "true"),
        body: Body::Eager(|arguments| {
            Ok(Value::Bool(
                arguments.text(0).ends_with(&**arguments.text(1)),
            ))
        }),
    },
    Function {
        name: "indent",
        parameters: &[
            Parameter::new("spaces", Kind::Number),
            Parameter::new("str", Kind::String),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string with spaces at the start of every line but the first.",
        example: ("indent(2, \"a\\nb\")", "\"a\\n  b\""),
        body: Body::Eager(indent),
    },
    Function {
        name: "join",
        parameters: &[Parameter::new("separator", Kind::String)],
        variadic: Some(Parameter::new("lists", Kind::List(&Kind::String))),
        returns: Kind::String,
        description: "Returns the elements of one or more lists as one string, with a separator between \
                      them.",
        example: ("join(\", \", [\"a\", \"b\"])", "\"a, b\""),
        body: Body::Eager(join),
    },
    Function {
        name: "lower",
        parameters: &[Parameter::new("str", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string in lower case.",
        example: ("lower(\"Hello\")", "\"hello\""),
        body: Body::Eager(|arguments| Ok(Value::normal(&case::lower(arguments.text(0))))),
    },
    Function {
        name: "replace",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("substr", Kind::String),
            Parameter::new("replace", Kind::String),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string with all occurrences of another replaced. If the second argument \
                      is between slashes, it is a regular expression, and `$1` or `${name}` in the third \
                      stands for what a group matches.",
        example: ("replace(\"a+b\", \"+\", \"-\")", "\"a-b\""),
        body: Body::Eager(replace),
    },
    Function {
        name: "split",
        parameters: &[
            Parameter::new("separator", Kind::String),
            Parameter::new("str", Kind::String),
        ],
        variadic: None,
        returns: Kind::List(&Kind::String),
        description: "Returns the parts of a string between the occurrences of a separator.",
        example: ("split(\",\", \"a,b\")", "[\"a\",\"b\"]"),
        body: Body::Eager(split),
    },
    Function {
        name: "startswith",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("prefix", Kind::String),
        ],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns whether a string begins with another.",
        example: ("startswith(\"hello\", \"he\")", "true"),
        body: Body::Eager(|arguments| {
            Ok(Value::Bool(
                arguments.text(0).starts_with(&**arguments.text(1)),
            ))
        }),
    },
    Function {
        name: "strcontains",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("substr", Kind::String),
        ],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns whether a string contains another.",
        example: ("strcontains(\"hello\", \"ell\")", "true"),
        body: Body::Eager(|arguments| {
            Ok(Value::Bool(
                arguments.text(0).contains(&**arguments.text(1)),
            ))
        }),
    },
    Function {
        name: "strrev",
        parameters: &[Parameter::new("str", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Returns the characters of a string in reverse order.",
        example: ("strrev(\"hello\")", "\"olleh\""),
        body: Body::Eager(|arguments| {
            Ok(Value::normal(
                &arguments.text(0).graphemes(true).rev().collect::<String>(),
            ))
        }),
    },
    Function {
        name: "substr",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("offset", Kind::Number),
            Parameter::new("length", Kind::Number),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Returns part of a string: the given number of characters, starting at an offset. A \
                      negative offset counts from the end, and a negative length means the rest of the \
                      string.",
        example: ("substr(\"hello world\", 1, 4)", "\"ello\""),
        body: Body::Eager(substring),
    },
    Function {
        name: "title",
        parameters: &[Parameter::new("str", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string with the first letter of each word in upper case.",
        example: ("title(\"hello world\")", "\"Hello World\""),
        body: Body::Eager(|arguments| Ok(Value::normal(&case::title(arguments.text(0))))),
    },
    Function {
        name: "trim",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("cutset", Kind::String),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string without the leading and trailing characters that occur in another \
                      string.",
        example: ("trim(\"?!hello?!\", \"!?\")", "\"hello\""),
        body: Body::Eager(|arguments| {
            let cut: BTreeSet<char> = arguments.text(1).chars().collect();
            Ok(Value::normal(
                arguments.text(0).trim_matches(|c| cut.contains(&c)),
            ))
        }),
    },
    Function {
        name: "trimprefix",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("prefix", Kind::String),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string without a prefix, if it begins with it.",
        example: ("trimprefix(\"helloworld\", \"hello\")", "\"world\""),
        body: Body::Eager(|arguments| {
            let whole = arguments.text(0);
            Ok(Value::normal(
                whole.strip_prefix(&**arguments.text(1)).unwrap_or(whole),
            ))
        }),
    },
    Function {
        name: "trimspace",
        parameters: &[Parameter::new("str", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string without leading and trailing white space.",
        example: ("trimspace(\"  hello\\n\")", "\"hello\""),
        body: Body::Eager(|arguments| Ok(Value::normal(arguments.text(0).trim()))),
    },
    Function {
        name: "trimsuffix",
        parameters: &[
            Parameter::new("str", Kind::String),
            Parameter::new("suffix", Kind::String),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string without a suffix, if it ends with it.",
        example: ("trimsuffix(\"helloworld\", \"world\")", "\"hello\""),
        body: Body::Eager(|arguments| {
            let whole = arguments.text(0);
            Ok(Value::normal(
                whole.strip_suffix(&**arguments.text(1)).unwrap_or(whole),
            ))
        }),
    },
    Function {
        name: "upper",
        parameters: &[Parameter::new("str", Kind::String)],
        variadic: None,
        returns: Kind::String,
        description: "Returns a string in upper case.",
        example: ("upper(\"Hello\")", "\"HELLO\""),
        body: Body::Eager(|arguments| Ok(Value::normal(&case::upper(arguments.text(0))))),
    },
];

/// Returns how many units of work a number of bytes of text counts as.
fn cost(bytes: usize) -> u64 {
    bytes as u64 / 8 + 1
}

fn indent(arguments: &Arguments) -> Result<Value, FunctionError> {
    let spaces = arguments.integer(0)?;
    let Ok(spaces) = usize::try_from(spaces) else {
        let problem = format!("this is {spaces}; it must not be negative");
        return Err(FunctionError::Argument(0, problem));
    };
    let lines = arguments.text(1);
    let breaks = lines.matches('\n').count();
    if breaks == 0 {
        return Ok(Value::normal(lines));
    }
    arguments.spend(cost(breaks.saturating_mul(spaces)))?;
    let indented = format!("\n{}", " ".repeat(spaces));
    Ok(Value::normal(&lines.replace('\n', &indented)))
}

fn join(arguments: &Arguments) -> Result<Value, FunctionError> {
    if arguments.len() < 2 {
        return Err(FunctionError::Call(
            "at least one list is needed".to_owned(),
        ));
    }
    let separator = arguments.text(0);
    let mut elements = Vec::new();
    let mut length = 0;
    for list in 1..arguments.len() {
        for (index, element) in arguments.items(list).iter().enumerate() {
            let Value::String(element) = element else {
                let problem = format!("its `[{index}]` is {}", element.type_name());
                return Err(FunctionError::Argument(list, problem));
            };
            length += element.len() + separator.len();
            elements.push(&**element);
        }
    }
    arguments.spend(cost(length))?;
    Ok(Value::normal(&elements.join(separator)))
}

fn replace(arguments: &Arguments) -> Result<Value, FunctionError> {
    let (whole, searched, replacement) = (arguments.text(0), arguments.text(1), arguments.text(2));
    if searched.len() > 1
        && let Some(pattern) = searched
            .strip_prefix('/')
            .and_then(|it| it.strip_suffix('/'))
    {
        return patterns::replace(arguments, pattern);
    }
    let occurrences = whole.matches(&**searched).count();
    arguments.spend(cost(occurrences.saturating_mul(replacement.len())))?;
    Ok(Value::normal(&whole.replace(&**searched, replacement)))
}

fn split(arguments: &Arguments) -> Result<Value, FunctionError> {
    let (separator, whole) = (arguments.text(0), arguments.text(1));
    if separator.is_empty() {
        arguments.spend(whole.len() as u64)?;
        let mut buffer = [0; 4];
        let characters = whole
            .chars()
            .map(|c| Value::normal(c.encode_utf8(&mut buffer)));
        return Ok(Value::list(characters));
    }
    arguments.spend(whole.matches(&**separator).count() as u64)?;
    Ok(Value::list(whole.split(&**separator).map(Value::normal)))
}

fn substring(arguments: &Arguments) -> Result<Value, FunctionError> {
    let whole = arguments.text(0);
    let mut offset = arguments.integer(1)?;
    let length = arguments.integer(2)?;
    if offset < 0 {
        let count = i64::try_from(whole.graphemes(true).count()).unwrap_or(i64::MAX);
        offset = offset.saturating_add(count).max(0);
    }
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = whole.graphemes(true).skip(offset);
    let part: String = match usize::try_from(length) {
        Ok(length) => rest.take(length).collect(),
        Err(_) => rest.collect(),
    };
    Ok(Value::normal(&part))
}
