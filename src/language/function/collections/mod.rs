//! The table of functions for lists, maps and objects.
//!
//! Parameters that Terraform declares as lists are converted to lists; the others keep the difference
//! between tuples and lists, objects and maps, which shows in the result.

mod choices;
mod lists;
mod maps;

use super::Function;
use super::arguments::FunctionError;
use crate::language::value::{Items, ObjectEntries, Type, Value, unify};

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns whether all elements of a list are true.
    alltrue(list: list(bool)) -> bool = Eager(choices::all_true),
        "alltrue([true, false])" => "false";
    /// Returns whether any element of a list is true.
    anytrue(list: list(bool)) -> bool = Eager(choices::any_true),
        "anytrue([true, false])" => "true";
    /// Returns a list in pieces of a given length. The last piece may be shorter.
    chunklist(list: list(any), size: number) -> list(list(any)) = Eager(lists::chunks),
        "chunklist([1, 2, 3], 2)" => "[[1,2],[3]]";
    /// Returns the first of the given values that is neither null nor an empty string.
    coalesce(..vals: nullable any) -> any = Eager(choices::coalesce),
        r#"coalesce("", null, "a")"# => r#""a""#;
    /// Returns the first of the given lists that is not empty.
    coalescelist(..vals: any) -> any = Eager(choices::coalesce_list),
        "coalescelist([], [1, 2])" => "[1,2]";
    /// Returns the elements of a list of strings that are neither null nor empty.
    compact(list: list(string)) -> list(string) = Eager(lists::compact),
        r#"compact(["a", "", "b"])"# => r#"["a","b"]"#;
    /// Returns the elements of several lists in one list.
    concat(..seqs: any) -> any = Eager(lists::concat),
        "concat([1], [2, 3])" => "[1,2,3]";
    /// Returns whether a list or set has an element that equals a value. Nothing is converted: `1`
    /// is not `"1"`.
    contains(list: any, value: any) -> bool = Eager(choices::contains),
        r#"contains(["a", "b"], "b")"# => "true";
    /// Returns the elements of a list without duplicates, in the order in which they first appear.
    distinct(list: list(any)) -> list(any) = Eager(lists::distinct),
        r#"distinct(["b", "a", "b"])"# => r#"["b","a"]"#;
    /// Returns an element of a list. An index beyond the end wraps around to the start, and a
    /// negative one counts from the end: -1 is the last element.
    element(list: any, index: number) -> any = Eager(choices::element),
        r#"element(["a", "b"], 3)"# => r#""b""#;
    /// Returns a list with the lists inside it, at any depth, replaced by their elements.
    flatten(list: any) -> any = Eager(lists::flatten),
        "flatten([[1, [2]], 3])" => "[1,2,3]";
    /// Returns the index of the first element of a list that equals a value.
    index(list: any, value: any) -> number = Eager(choices::index),
        r#"index(["a", "b"], "b")"# => "1";
    /// Returns the keys of a map, in order.
    keys(inputMap: any) -> any = Eager(maps::keys),
        "keys({ b = 1, a = 2 })" => r#"["a","b"]"#;
    /// Returns the number of elements of a list, set or map, or of characters in a string, as a
    /// reader counts them.
    length(value: any) -> number = Eager(choices::length),
        r#"length(["a", "b"])"# => "2";
    /// Returns the value of a key in a map, or the default if there is no such key.
    lookup(inputMap: any, key: string, ..default: nullable any) -> any = Eager(maps::lookup),
        r#"lookup({ a = 1 }, "b", 0)"# => "0";
    /// Returns the elements of a list whose keys, at the same indexes of a second list, are in a
    /// third.
    matchkeys(values: list(any), keys: list(any), searchset: list(any)) -> list(any)
        = Eager(lists::match_keys),
        r#"matchkeys([1, 2], ["a", "b"], ["b"])"# => "[2]";
    /// Returns the entries of several maps or objects in one. If they have a key in common, the
    /// last one wins.
    merge(..maps: nullable any) -> any = Eager(maps::merge),
        "merge({ a = 1, b = 2 }, { b = 3 })" => r#"{"a":1,"b":3}"#;
    /// Returns the only element of a list or set, or null if it is empty.
    one(list: any) -> any = Eager(choices::one),
        r#"one(["a"])"# => r#""a""#;
    /// Returns numbers from a start (0 by default) up to a limit, which is not included. A third
    /// argument is the step.
    range(..params: number) -> list(number) = Eager(lists::range),
        "range(1, 8, 3)" => "[1,4,7]";
    /// Returns the elements of a list in reverse order.
    reverse(list: any) -> any = Eager(lists::reverse),
        "reverse([1, 2, 3])" => "[3,2,1]";
    /// Returns the elements of a list from one index up to another, which is not included.
    slice(list: any, start_index: number, end_index: number) -> any = Eager(lists::slice),
        r#"slice(["a", "b", "c"], 1, 3)"# => r#"["b","c"]"#;
    /// Returns strings in ascending order of their characters.
    sort(list: list(string)) -> list(string) = Eager(lists::sort),
        r#"sort(["b", "a"])"# => r#"["a","b"]"#;
    /// Returns the sum of the numbers in a list or set.
    sum(list: any) -> number = Eager(lists::sum),
        "sum([10, 13, 6, 4.5])" => "33.5";
    /// Returns a map of lists with keys and elements swapped: each element maps to the keys whose
    /// lists contain it.
    transpose(values: map(list(string))) -> map(list(string)) = Eager(maps::transpose),
        r#"transpose({ a = ["x", "y"], b = ["y"] })"# => r#"{"x":["a"],"y":["a","b"]}"#;
    /// Returns the values of a map, in the order of its keys.
    values(mapping: any) -> any = Eager(maps::values),
        "values({ b = 1, a = 2 })" => "[2,1]";
    /// Returns a map from a list of keys and a list of their values.
    zipmap(keys: list(string), values: any) -> any = Eager(maps::zip),
        r#"zipmap(["a", "b"], [1, 2])"# => r#"{"a":1,"b":2}"#;
};

fn wrong(index: usize, value: &Value, wanted: &str) -> FunctionError {
    let text = format!("this is {}; {wanted} is needed", value.description());
    FunctionError::Argument(index, text)
}

fn sequence(index: usize, value: &Value) -> Result<&Items, FunctionError> {
    value
        .sequence()
        .ok_or_else(|| wrong(index, value, "a list"))
}

fn items(index: usize, value: &Value) -> Result<&Items, FunctionError> {
    let items = value.items();
    items.ok_or_else(|| wrong(index, value, "a list or set"))
}

fn entries(index: usize, value: &Value) -> Result<&ObjectEntries, FunctionError> {
    let entries = value.entries();
    entries.ok_or_else(|| wrong(index, value, "a map or object"))
}

/// Returns the type that the elements of a list, set or map have.
fn element_type<'v>(values: impl Iterator<Item = &'v Value>) -> Type {
    let types: Vec<Type> = values.map(Type::of).collect();
    unify(&types).unwrap_or(Type::Any)
}
