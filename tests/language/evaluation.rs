//! What is evaluated, what is not known yet, and what must not be shown.

use orch::diagnostic::{RenderStyle, render};
use orch::language::evaluate::{
    Budget, Call, EvalResult, EvalValue, NamePath, Namespaces, NoValue, Unknown, evaluate,
    evaluate_within,
};
use orch::language::function::{self, FunctionContext};
use orch::language::parse::parse;
use orch::language::value::Value;
use orch::path::ProjectPath;
use orch::source::{SourceFile, Sources};

use crate::parsed;

/// `env`, and names that are not known yet, or must not be shown.
struct Fixture;

impl Namespaces for Fixture {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        let value = match path.name {
            "env" => Value::object([("HOME", Value::string("/home/me"))]),
            "later" => {
                return Err(NoValue::Undecided(Box::new(Unknown {
                    name: "later".into(),
                    when: "known later".into(),
                    span: path.whole_span(),
                    is_on_demand: false,
                })));
            }
            "secret" => {
                return Ok(Some(EvalValue {
                    value: Value::object([("password", Value::string("hunter2"))]),
                    is_sensitive: true,
                }));
            }
            _ => return Ok(None),
        };
        Ok(Some(value.into()))
    }

    fn names(&self) -> Vec<&str> {
        vec!["env", "later", "secret"]
    }

    /// The functions of the language without a prefix, and two that show what a function is given.
    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        let surroundings = FunctionContext {
            prefix: "",
            ..FunctionContext::none("a test")
        };
        Ok(Some(match &*call.name.text {
            "count" => (call.values()?.len() as u64).into(),
            "place" => u64::from(call.arguments[0].span.start).into(),
            _ => return function::call(call, &surroundings),
        }))
    }

    fn functions(&self) -> Vec<String> {
        function::names("").collect()
    }
}

/// Evaluates `text`. Returns the value as JSON would have it, or the rendered diagnostic.
fn show(text: &str) -> String {
    let text = format!("x = {text}\n");
    let mut sources = Sources::default();
    let path = ProjectPath::root().join("x.tm");
    let file = sources.add(SourceFile {
        path,
        text: text.clone(),
    });
    let value = parse(file, &text).and_then(|body| evaluate(&body.attributes[0].value, &Fixture));
    match value {
        Ok(value) => json(&value),
        Err(diagnostic) => render(&diagnostic, &sources, RenderStyle::Plain),
    }
}

fn json(value: &Value) -> String {
    if let Some(items) = value.items() {
        let items: Vec<String> = items.iter().map(json).collect();
        return format!("[{}]", items.join(", "));
    }
    if let Some(entries) = value.entries() {
        let entries = entries.iter();
        let entries: Vec<String> = entries
            .map(|(key, value)| format!("{key}: {}", json(value)))
            .collect();
        return format!("{{{}}}", entries.join(", "));
    }
    match value {
        Value::String(text) => format!("{text:?}"),
        other => other
            .to_text()
            .map_or("null".to_owned(), |text| text.to_string()),
    }
}

#[test]
fn only_what_decides_is_evaluated() {
    for (text, expected) in [
        ("false && nonsense", "false"),
        ("true || nonsense", "true"),
        ("false && 1", "false"),
        ("\"false\" && nonsense", "false"),
        ("true && false || true", "true"),
        ("true ? 1 : nonsense", "1"),
        ("false ? nonsense : 2", "2"),
        ("true ? 1 : 1 / 0", "1"),
        ("true ? [1] : count(nonsense)", "[1]"),
        ("true ? 1 : nonsense(1)", "1"),
        ("true ? \"a\" : 1 / 0", r#""a""#),
        ("false ? nonsense : true ? \"a\" : nonsense", r#""a""#),
        ("true ? 1 : false ? nonsense : 2", "1"),
        (
            "{for k in [0, 2] : k => k == 0 ? 0 : 4 / k}",
            "{0: 0, 2: 2}",
        ),
        (
            "[for x in [1, 2] : x if x > 2 && nonsense_of(x) || true]",
            "[1, 2]",
        ),
        ("try(nonsense, 1 / 0, 3, 1 / 0)", "3"),
        ("[for x in [0, 2] : try(4 / x, \"none\")]", r#"["none", 2]"#),
        ("can(nonsense)", "false"),
        ("can(env.HOME) && !can(env.NOWHERE)", "true"),
        ("count(1, 2)", "2"),
        ("try(count(nonsense), \"wrong\")", r#""wrong""#),
        ("place(  nonsense)", "12"),
    ] {
        assert_eq!(show(text), expected, "{text}");
    }
    for (text, problem) in [
        ("true && nonsense", "unknown name `nonsense`"),
        ("false || 1", "this operator needs bools"),
        ("nonsense && false", "unknown name `nonsense`"),
        ("1 && false", "this operator needs bools"),
        ("count(1, nonsense)", "unknown name `nonsense`"),
        ("try(1 / 0)", "division by zero"),
        ("try()", "needs an expression to try"),
    ] {
        assert!(show(text).contains(problem), "{text}: {}", show(text));
    }
}

#[test]
fn both_results_of_a_condition_have_one_type() {
    assert_eq!(show(r#"true ? 1 : "a""#), r#""1""#);
    assert_eq!(show(r#"true ? "a" : null"#), r#""a""#);
    assert_eq!(show("false ? nonsense.x : 2"), "2");
    assert_eq!(show(r#"true ? 1 : false ? 2 : "a""#), r#""1""#);
    assert_eq!(show(r#"true ? null : "a""#), "null");
    for text in [
        "true ? 1 : [1]",
        "true ? env : \"${env.HOME}/x\"",
        "true ? 1 : {}",
        "true ? [1] : {for x in nonsense : x => x}",
        "true ? [1] : nonsense + 1",
        "true ? 1 : !nonsense",
    ] {
        assert!(show(text).contains("must have a common type"), "{text}");
    }
}

#[test]
fn a_result_that_is_not_taken_costs_nothing() {
    // The `for` alone is more than one expression may cost.
    let list = format!("[{}]", vec!["1"; 200].join(", "));
    let costly = format!("[for a in {list} : [for b in {list} : [for c in {list} : c]]]");
    assert!(show(&costly).contains("too large to evaluate"));
    assert_eq!(show(&format!("true ? [] : {costly}")), "[]");
}

#[test]
fn the_type_of_a_result_that_is_not_taken_counts_only_as_written() {
    // With the name evaluated, the number would become a string.
    assert_eq!(show("true ? 1 : env.HOME"), "1");
    assert_eq!(show("false ? env : 1"), "1");
    assert_eq!(show("true ? [1] : try(1)"), "[1]");
    assert_eq!(show("true ? 1 : \"${env.HOME}\""), "1");
}

#[test]
fn what_is_not_known_yet_is_a_third_answer() {
    let evaluated = |text: &str| {
        let expr = parsed(text).unwrap();
        evaluate_within(&expr, &Fixture, &Budget::default())
    };
    for text in [
        "later",
        "later.a[0]",
        "1 + later",
        "[1, later]",
        "{a = later}",
        "\"a${later}\"",
        "later ? 1 : 2",
        "true ? later : 2",
        "[for x in later : x]",
        "[for x in [1] : x if later]",
        "true && later",
        "later || false",
        "tostring(later)",
        // What follows may still fail or succeed.
        "try(later, 1)",
        "try(nonsense, later)",
        "can(later)",
    ] {
        match evaluated(text) {
            Err(NoValue::Undecided(undecided)) => assert_eq!(undecided.name, "later", "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for (text, expected) in [
        ("false && later", false),
        ("later && false", false),
        ("later || true", true),
        ("try(true, later)", true),
        ("false ? later : true", true),
        ("[later, nonsense] == 1 || true", true),
    ] {
        match evaluated(text) {
            Ok(answer) => assert_eq!(answer.value, Value::Bool(expected), "{text}"),
            // Something else in it is wrong in any case.
            Err(NoValue::Wrong(_)) if text.contains("nonsense") => {}
            Err(none) => panic!("{text}: {none:?}"),
        }
    }
}

#[test]
fn a_sensitive_value_is_not_shown() {
    for text in [
        "secret.password + 1",
        "secret.password.x",
        "secret.password[0]",
        "secret.passwort",
        "-secret.password",
        "\"${secret.password}\" ? 1 : 2",
        "tostring([secret.password])",
        "abs(secret.password)",
        "abs(\"${secret.password}x\")",
        "[for x in secret.password : x]",
        "[for s in [secret.password] : s + 1]",
        "{for k in [1] : [secret.password] => k}",
        "try(1 + secret.password)",
        "{a = 1}[secret.password]",
    ] {
        let shown = show(text);
        assert!(shown.starts_with("error"), "{text}: {shown}");
        // The text of the configuration has the name, never the value.
        assert!(!shown.contains("hunter2"), "{text}: {shown}");
    }
    let expr = parsed("\"${secret.password}\"").unwrap();
    let answer = evaluate_within(&expr, &Fixture, &Budget::default()).unwrap();
    assert!(answer.is_sensitive);
}

#[test]
fn a_wrong_part_is_pointed_at() {
    insta::assert_snapshot!(show(r#""a${null}""#), @r#"
    error: this cannot be inserted into text
     --> x.tm:1:9
      |
    1 | x = "a${null}"
      |         ^^^^ this is null; text, numbers and bools can be inserted
    "#);
    insta::assert_snapshot!(show("1 + evn.HOME"), @"
    error: unknown name `evn`
     --> x.tm:1:9
      |
    1 | x = 1 + evn.HOME
      |         ^^^ this name is not defined here
      |
      = help: did you mean `env`?
    ");
    insta::assert_snapshot!(show("env.HOMR"), @"
    error: no attribute `HOMR`
     --> x.tm:1:9
      |
    1 | x = env.HOMR
      |         ^^^^ it has no such attribute
      |
      = help: did you mean `HOME`?
    ");
    insta::assert_snapshot!(show("1 / 0"), @"
    error: division by zero
     --> x.tm:1:9
      |
    1 | x = 1 / 0
      |         ^ this is zero
    ");
}

#[test]
fn hostile_expressions_end() {
    let list = format!("[{}]", vec!["1"; 1000].join(", "));
    let nested = (0..10).fold("1".to_owned(), |inner, level| {
        format!("[for v{level} in {list} : {inner}]")
    });
    assert!(show(&nested).contains("too large to evaluate"));
    let product = vec!["99999999999999999999"; 120].join(" * ");
    assert_eq!(show(&format!("({product}) > 1")), "true");
    for number in [
        "1e-999999999",
        "[1][1e-999999999]",
        "\"${1e-99999}\" == 1",
        "\"1e999999999\" + 1",
    ] {
        assert!(show(number).contains("error: "), "{number}");
    }
}
