//! Functions for sets.

use std::collections::BTreeSet;

use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::language::value::{ByOrder, Type, Value, convert, unify};

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the elements that all of the given sets have in common.
    setintersection(first_set: set(any), ..other_sets: set(any)) -> set(any) = Eager(intersection),
        r#"setintersection(["a", "b"], ["b", "c"])"# => r#"["b"]"#;
    /// Returns all combinations of one element from each set. Lists keep their order.
    setproduct(..sets: any) -> any = Eager(product),
        r#"setproduct(["a", "b"], [1, 2])"# => r#"[["a",1],["a",2],["b",1],["b",2]]"#;
    /// Returns the elements of one set that are not in another.
    setsubtract(a: set(any), b: set(any)) -> set(any) = Eager(difference),
        r#"setsubtract(["a", "b"], ["b"])"# => r#"["a"]"#;
    /// Returns the elements that are in any of the given sets.
    setunion(first_set: set(any), ..other_sets: set(any)) -> set(any) = Eager(union),
        r#"setunion(["b", "a"], ["b", "c"])"# => r#"["a","b","c"]"#;
};

fn intersection(arguments: &Arguments) -> Result<Value, FunctionError> {
    let sets = of_one_type(arguments)?;
    let Some((first, others)) = sets.split_first() else {
        return Ok(Value::set([]));
    };
    let others: Vec<BTreeSet<ByOrder>> = others
        .iter()
        .map(|set| set.iter().map(ByOrder).collect())
        .collect();
    let common = first
        .iter()
        .filter(|item| others.iter().all(|set| set.contains(&ByOrder(item))));
    Ok(Value::set(common.cloned()))
}

fn difference(arguments: &Arguments) -> Result<Value, FunctionError> {
    let sets = of_one_type(arguments)?;
    let Some((first, others)) = sets.split_first() else {
        return Ok(Value::set([]));
    };
    let removed: BTreeSet<ByOrder> = others.iter().flatten().map(ByOrder).collect();
    let kept = first
        .iter()
        .filter(|item| !removed.contains(&ByOrder(item)));
    Ok(Value::set(kept.cloned()))
}

fn union(arguments: &Arguments) -> Result<Value, FunctionError> {
    Ok(Value::set(of_one_type(arguments)?.into_iter().flatten()))
}

/// Returns the elements of all arguments, converted to the type that they have in common.
fn of_one_type(arguments: &Arguments) -> Result<Vec<Vec<Value>>, FunctionError> {
    let sets = || (0..arguments.len()).map(|index| arguments.items(index));
    let types: Vec<Type> = sets()
        .filter_map(|items| items.first().map(|_| element_type(items)))
        .collect();
    let mismatch =
        || FunctionError::Call("the elements of the sets must have a common type".to_owned());
    let is_any = |it: &Type| *it == Type::Any;
    let common = unify(&types)
        .filter(|common| !is_any(common) || types.iter().all(is_any))
        .ok_or_else(mismatch)?;
    let converted = sets().map(|items| {
        let items = items
            .iter()
            .map(|item| convert(item, &common).map_err(|_| mismatch()));
        items.collect()
    });
    converted.collect()
}

/// Lists give a list; if a set is among them, the result is a set.
fn product(arguments: &Arguments) -> Result<Value, FunctionError> {
    if arguments.len() < 2 {
        let text = "at least two sets are needed".to_owned();
        return Err(FunctionError::Call(text));
    }
    let mut sets = Vec::with_capacity(arguments.len());
    let mut count = 1_u64;
    for (index, value) in arguments.values().iter().enumerate() {
        let Some(items) = value.items() else {
            return Err(arguments.unfit(index, "a set or list is needed"));
        };
        let types: Vec<Type> = items.iter().map(Type::of).collect();
        let converted = unify(&types).and_then(|common| {
            let items = items.iter().map(|item| convert(item, &common).ok());
            items.collect::<Option<Vec<_>>>()
        });
        let Some(converted) = converted else {
            let text = "its elements have no type in common".to_owned();
            return Err(FunctionError::Argument(index, text));
        };
        count = count.saturating_mul(converted.len() as u64);
        sets.push(converted);
    }
    // The content of an element is shared, but counts each time that the result is visited.
    let heaviest = sets
        .iter()
        .map(|set| set.iter().map(Value::weight).max().unwrap_or(0));
    let weight = heaviest.fold(1_u64, u64::saturating_add);
    arguments.spend(count.saturating_mul(weight))?;
    let mut combinations: Vec<Vec<Value>> = vec![Vec::new()];
    if count == 0 {
        combinations.clear();
    }
    for set in &sets {
        combinations = combinations
            .iter()
            .flat_map(|start| {
                set.iter().map(|item| {
                    let mut longer = start.clone();
                    longer.push(item.clone());
                    longer
                })
            })
            .collect();
    }
    let combinations = combinations.into_iter().map(Value::tuple);
    let is_set = |value: &Value| matches!(value, Value::Set(_));
    Ok(if arguments.values().iter().any(is_set) {
        Value::set(combinations)
    } else {
        Value::list(combinations)
    })
}

fn element_type(items: &[Value]) -> Type {
    let types: Vec<Type> = items.iter().map(Type::of).collect();
    unify(&types).unwrap_or(Type::Any)
}
