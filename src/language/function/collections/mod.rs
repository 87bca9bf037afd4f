//! The table of functions for lists, maps and objects.
//!
//! Parameters that Terraform declares as lists are converted to lists; the others keep the difference
//! between tuples and lists, objects and maps, which shows in the result.

mod choices;
mod lists;
mod maps;

use super::arguments::FunctionError;
use super::{Body, Function, Kind, Parameter};
use crate::language::value::{Entries, Items, Type, Value, unify};

const LIST: Kind = Kind::List(&Kind::Any);

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "alltrue",
        parameters: &[Parameter::new("list", Kind::List(&Kind::Bool))],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns whether all elements of a list are true.",
        example: ("alltrue([true, false])", "false"),
        body: Body::Eager(choices::all_true),
    },
    Function {
        name: "anytrue",
        parameters: &[Parameter::new("list", Kind::List(&Kind::Bool))],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns whether any element of a list is true.",
        example: ("anytrue([true, false])", "true"),
        body: Body::Eager(choices::any_true),
    },
    Function {
        name: "chunklist",
        parameters: &[
            Parameter::new("list", LIST),
            Parameter::new("size", Kind::Number),
        ],
        variadic: None,
        returns: Kind::List(&LIST),
        description: "Returns a list in pieces of a given length. The last piece may be shorter.",
        example: ("chunklist([1, 2, 3], 2)", "[[1,2],[3]]"),
        body: Body::Eager(lists::chunks),
    },
    Function {
        name: "coalesce",
        parameters: &[],
        variadic: Some(Parameter::nullable("vals", Kind::Any)),
        returns: Kind::Any,
        description: "Returns the first of the given values that is neither null nor an empty string.",
        example: ("coalesce(\"\", null, \"a\")", "\"a\""),
        body: Body::Eager(choices::coalesce),
    },
    Function {
        name: "coalescelist",
        parameters: &[],
        variadic: Some(Parameter::new("vals", Kind::Any)),
        returns: Kind::Any,
        description: "Returns the first of the given lists that is not empty.",
        example: ("coalescelist([], [1, 2])", "[1,2]"),
        body: Body::Eager(choices::coalesce_list),
    },
    Function {
        name: "compact",
        parameters: &[Parameter::new("list", Kind::List(&Kind::String))],
        variadic: None,
        returns: Kind::List(&Kind::String),
        description: "Returns the elements of a list of strings that are neither null nor empty.",
        example: ("compact([\"a\", \"\", \"b\"])", "[\"a\",\"b\"]"),
        body: Body::Eager(lists::compact),
    },
    Function {
        name: "concat",
        parameters: &[],
        variadic: Some(Parameter::new("seqs", Kind::Any)),
        returns: Kind::Any,
        description: "Returns the elements of several lists in one list.",
        example: ("concat([1], [2, 3])", "[1,2,3]"),
        body: Body::Eager(lists::concat),
    },
    Function {
        name: "contains",
        parameters: &[
            Parameter::new("list", Kind::Any),
            Parameter::new("value", Kind::Any),
        ],
        variadic: None,
        returns: Kind::Bool,
        description: "Returns whether a list or set has an element that equals a value. Nothing is \
                      converted: `1` is not `\"1\"`.",
        example: ("contains([\"a\", \"b\"], \"b\")", "true"),
        body: Body::Eager(choices::contains),
    },
    Function {
        name: "distinct",
        parameters: &[Parameter::new("list", LIST)],
        variadic: None,
        returns: LIST,
        description: "Returns the elements of a list without duplicates, in the order in which they \
                      first appear.",
        example: ("distinct([\"b\", \"a\", \"b\"])", "[\"b\",\"a\"]"),
        body: Body::Eager(lists::distinct),
    },
    Function {
        name: "element",
        parameters: &[
            Parameter::new("list", Kind::Any),
            Parameter::new("index", Kind::Number),
        ],
        variadic: None,
        returns: Kind::Any,
        description: "Returns an element of a list. An index beyond the end wraps around to the start, and \
                      a negative one counts from the end: -1 is the last element.",
        example: ("element([\"a\", \"b\"], 3)", "\"b\""),
        body: Body::Eager(choices::element),
    },
    Function {
        name: "flatten",
        parameters: &[Parameter::new("list", Kind::Any)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns a list with the lists inside it, at any depth, replaced by their elements.",
        example: ("flatten([[1, [2]], 3])", "[1,2,3]"),
        body: Body::Eager(lists::flatten),
    },
    Function {
        name: "index",
        parameters: &[
            Parameter::new("list", Kind::Any),
            Parameter::new("value", Kind::Any),
        ],
        variadic: None,
        returns: Kind::Number,
        description: "Returns the index of the first element of a list that equals a value.",
        example: ("index([\"a\", \"b\"], \"b\")", "1"),
        body: Body::Eager(choices::index),
    },
    Function {
        name: "keys",
        parameters: &[Parameter::new("inputMap", Kind::Any)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the keys of a map, in order.",
        example: ("keys({ b = 1, a = 2 })", "[\"a\",\"b\"]"),
        body: Body::Eager(maps::keys),
    },
    Function {
        name: "length",
        parameters: &[Parameter::new("value", Kind::Any)],
        variadic: None,
        returns: Kind::Number,
        description: "Returns the number of elements of a list, set or map, or of characters in a \
                      string, as a reader counts them.",
        example: ("length([\"a\", \"b\"])", "2"),
        body: Body::Eager(choices::length),
    },
    Function {
        name: "lookup",
        parameters: &[
            Parameter::new("inputMap", Kind::Any),
            Parameter::new("key", Kind::String),
        ],
        variadic: Some(Parameter::nullable("default", Kind::Any)),
        returns: Kind::Any,
        description: "Returns the value of a key in a map, or the default if there is no such key.",
        example: ("lookup({ a = 1 }, \"b\", 0)", "0"),
        body: Body::Eager(maps::lookup),
    },
    Function {
        name: "matchkeys",
        parameters: &[
            Parameter::new("values", LIST),
            Parameter::new("keys", LIST),
            Parameter::new("searchset", LIST),
        ],
        variadic: None,
        returns: LIST,
        description: "Returns the elements of a list whose keys, at the same indexes of a second list, \
                      are in a third.",
        example: ("matchkeys([1, 2], [\"a\", \"b\"], [\"b\"])", "[2]"),
        body: Body::Eager(lists::match_keys),
    },
    Function {
        name: "merge",
        parameters: &[],
        variadic: Some(Parameter::nullable("maps", Kind::Any)),
        returns: Kind::Any,
        description: "Returns the entries of several maps or objects in one. If they have a key in \
                      common, the last one wins.",
        example: ("merge({ a = 1, b = 2 }, { b = 3 })", "{\"a\":1,\"b\":3}"),
        body: Body::Eager(maps::merge),
    },
    Function {
        name: "one",
        parameters: &[Parameter::new("list", Kind::Any)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the only element of a list or set, or null if it is empty.",
        example: ("one([\"a\"])", "\"a\""),
        body: Body::Eager(choices::one),
    },
    Function {
        name: "range",
        parameters: &[],
        variadic: Some(Parameter::new("params", Kind::Number)),
        returns: Kind::List(&Kind::Number),
        description: "Returns numbers from a start (0 by default) up to a limit, which is not included. \
                      A third argument is the step.",
        example: ("range(1, 8, 3)", "[1,4,7]"),
        body: Body::Eager(lists::range),
    },
    Function {
        name: "reverse",
        parameters: &[Parameter::new("list", Kind::Any)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the elements of a list in reverse order.",
        example: ("reverse([1, 2, 3])", "[3,2,1]"),
        body: Body::Eager(lists::reverse),
    },
    Function {
        name: "slice",
        parameters: &[
            Parameter::new("list", Kind::Any),
            Parameter::new("start_index", Kind::Number),
            Parameter::new("end_index", Kind::Number),
        ],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the elements of a list from one index up to another, which is not \
                      included.",
        example: ("slice([\"a\", \"b\", \"c\"], 1, 3)", "[\"b\",\"c\"]"),
        body: Body::Eager(lists::slice),
    },
    Function {
        name: "sort",
        parameters: &[Parameter::new("list", Kind::List(&Kind::String))],
        variadic: None,
        returns: Kind::List(&Kind::String),
        description: "Returns strings in ascending order of their characters.",
        example: ("sort([\"b\", \"a\"])", "[\"a\",\"b\"]"),
        body: Body::Eager(lists::sort),
    },
    Function {
        name: "sum",
        parameters: &[Parameter::new("list", Kind::Any)],
        variadic: None,
        returns: Kind::Number,
        description: "Returns the sum of the numbers in a list or set.",
        example: ("sum([10, 13, 6, 4.5])", "33.5"),
        body: Body::Eager(lists::sum),
    },
    Function {
        name: "transpose",
        parameters: &[Parameter::new(
            "values",
            Kind::Map(&Kind::List(&Kind::String)),
        )],
        variadic: None,
        returns: Kind::Map(&Kind::List(&Kind::String)),
        description: "Returns a map of lists with keys and elements swapped: each element maps to the \
                      keys whose lists contain it.",
        example: (
            "transpose({ a = [\"x\", \"y\"], b = [\"y\"] })",
            "{\"x\":[\"a\"],\"y\":[\"a\",\"b\"]}",
        ),
        body: Body::Eager(maps::transpose),
    },
    Function {
        name: "values",
        parameters: &[Parameter::new("mapping", Kind::Any)],
        variadic: None,
        returns: Kind::Any,
        description: "Returns the values of a map, in the order of its keys.",
        example: ("values({ b = 1, a = 2 })", "[2,1]"),
        body: Body::Eager(maps::values),
    },
    Function {
        name: "zipmap",
        parameters: &[
            Parameter::new("keys", Kind::List(&Kind::String)),
            Parameter::new("values", Kind::Any),
        ],
        variadic: None,
        returns: Kind::Any,
        description: "Returns a map from a list of keys and a list of their values.",
        example: ("zipmap([\"a\", \"b\"], [1, 2])", "{\"a\":1,\"b\":2}"),
        body: Body::Eager(maps::zip),
    },
];

/// Returns the error for an argument of the wrong type.
fn wrong(index: usize, value: &Value, wanted: &str) -> FunctionError {
    let text = format!("this is {}; {wanted} is needed", value.description());
    FunctionError::Argument(index, text)
}

/// Returns the elements of a list or tuple.
fn sequence(index: usize, value: &Value) -> Result<&Items, FunctionError> {
    value
        .sequence()
        .ok_or_else(|| wrong(index, value, "a list"))
}

/// Returns the elements of a list, tuple or set.
fn items(index: usize, value: &Value) -> Result<&Items, FunctionError> {
    let items = value.items();
    items.ok_or_else(|| wrong(index, value, "a list or set"))
}

/// Returns the entries of a map or object.
fn entries(index: usize, value: &Value) -> Result<&Entries, FunctionError> {
    let entries = value.entries();
    entries.ok_or_else(|| wrong(index, value, "a map or object"))
}

/// Returns the type that the elements of a list, set or map have.
fn element_type<'v>(values: impl Iterator<Item = &'v Value>) -> Type {
    let types: Vec<Type> = values.map(Type::of).collect();
    unify(&types).unwrap_or(Type::Any)
}
