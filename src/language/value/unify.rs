//! The type that several types have in common.
//!
//! Results follow Terraform, even where an unknown type hides what the others are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::types::Type;

/// How many types are tried as the common one of types of different kinds. The one that fits is among the
/// first, and a hostile file must not make this take quadratic time.
const MAX_CANDIDATES: usize = 16;

/// Returns the one type that values of all these types convert to, as Terraform finds it for the results of
/// a condition and the elements of a list; `None` if there is none. Without types, it is any.
pub fn unify(types: &[Type]) -> Option<Type> {
    let different: BTreeSet<&Type> = types.iter().collect();
    // The order given decides between types that fit equally well.
    let mut left = different.clone();
    let types: Vec<&Type> = types.iter().filter(|it| left.remove(it)).collect();
    if types.is_empty() {
        return Some(Type::Any);
    }
    let has_any = different.contains(&Type::Any);
    let all = |fits: fn(&Type) -> bool| types.iter().all(|it| **it == Type::Any || fits(it));
    let some = |fits: fn(&Type) -> bool| types.iter().any(|it| fits(it));
    let is_object = |it: &Type| matches!(it, Type::Object(_));
    let is_tuple = |it: &Type| matches!(it, Type::Tuple(_));
    let is_map = |it: &Type| matches!(it, Type::Map(_));
    let is_list = |it: &Type| matches!(it, Type::List(_));
    let is_set = |it: &Type| matches!(it, Type::Set(_));

    let is_uniform = all(is_map) || all(is_list) || all(is_set) || all(is_object) || all(is_tuple);
    if is_uniform && types.len() > 1 && has_any {
        return Some(Type::Any);
    }
    let of_elements = || {
        unify(
            &types
                .iter()
                .filter_map(|it| element(it))
                .collect::<Vec<_>>(),
        )
    };
    if some(is_map) {
        if all(is_map) {
            return Some(Type::Map(Box::new(of_elements()?)));
        }
        if all(|it| matches!(it, Type::Map(_) | Type::Object(_)))
            && let Some(map) = as_collections(&types, is_object, common_map)
        {
            return Some(map);
        }
    } else if some(is_list) {
        if all(is_list) {
            return Some(Type::List(Box::new(of_elements()?)));
        }
        if all(|it| matches!(it, Type::List(_) | Type::Tuple(_)))
            && let Some(list) = as_collections(&types, is_tuple, common_list)
        {
            return Some(list);
        }
    } else if some(is_set) && all(is_set) {
        return Some(Type::Set(Box::new(of_elements()?)));
    } else if some(is_object) && all(is_object) {
        return unify_objects(&types);
    } else if some(is_tuple) && all(is_tuple) {
        return unify_tuples(&types);
    }

    let mut preferred = types;
    preferred.sort_by_key(|it| preference(it));
    let fits = |wanted: &Type| preferred.iter().all(|it| converts(it, wanted));
    let mut candidates = preferred.iter().take(MAX_CANDIDATES);
    candidates.find(|it| fits(it)).map(|it| (*it).clone())
}

fn element(of: &Type) -> Option<Type> {
    match of {
        Type::List(element) | Type::Set(element) | Type::Map(element) => Some((**element).clone()),
        _ => None,
    }
}

/// Returns the type of collections of one kind and of structures that are meant as such.
fn as_collections(
    types: &[&Type],
    is_structure: fn(&Type) -> bool,
    common: fn(&[&Type]) -> Option<Type>,
) -> Option<Type> {
    let (structures, mut others): (Vec<&Type>, Vec<&Type>) =
        types.iter().copied().partition(|it| is_structure(it));
    let collection = common(&structures)?;
    others.push(&collection);
    let others: Vec<Type> = others.into_iter().cloned().collect();
    unify(&others).filter(|it| element(it).is_some())
}

fn common_map(objects: &[&Type]) -> Option<Type> {
    let types = objects.iter().filter_map(|it| match it {
        Type::Object(attributes) => Some(attributes.values().cloned()),
        _ => None,
    });
    let element = unify(&types.flatten().collect::<Vec<_>>())?;
    Some(Type::Map(Box::new(element)))
}

fn common_list(tuples: &[&Type]) -> Option<Type> {
    let types = tuples.iter().filter_map(|it| match it {
        Type::Tuple(types) => Some(types.iter().cloned()),
        _ => None,
    });
    let element = unify(&types.flatten().collect::<Vec<_>>())?;
    Some(Type::List(Box::new(element)))
}

/// Returns an object if all have the same attributes, else a map.
fn unify_objects(types: &[&Type]) -> Option<Type> {
    let objects: Vec<&BTreeMap<Arc<str>, Type>> = types
        .iter()
        .filter_map(|it| match it {
            Type::Object(attributes) => Some(attributes),
            _ => None,
        })
        .collect();
    let (first, rest) = objects.split_first()?;
    if rest.iter().all(|it| it.keys().eq(first.keys())) {
        let unified = first.keys().map(|name| {
            let types = objects.iter().filter_map(|it| it.get(name).cloned());
            Some((name.clone(), unify(&types.collect::<Vec<_>>())?))
        });
        return unified.collect::<Option<_>>().map(Type::Object);
    }
    common_map(types)
}

/// Returns a tuple if all have the same length, else a list.
fn unify_tuples(types: &[&Type]) -> Option<Type> {
    let tuples: Vec<&Vec<Type>> = types
        .iter()
        .filter_map(|it| match it {
            Type::Tuple(types) => Some(types),
            _ => None,
        })
        .collect();
    let (first, rest) = tuples.split_first()?;
    if rest.iter().all(|it| it.len() == first.len()) {
        let unified = (0..first.len()).map(|index| {
            let types = tuples.iter().filter_map(|it| it.get(index).cloned());
            unify(&types.collect::<Vec<_>>())
        });
        return unified.collect::<Option<_>>().map(Type::Tuple);
    }
    common_list(types)
}

/// Returns which of several types is tried first: lower is sooner.
fn preference(of: &Type) -> u8 {
    match of {
        Type::String | Type::List(_) | Type::Map(_) => 0,
        Type::Set(_) => 1,
        Type::Bool | Type::Number | Type::Tuple(_) | Type::Object(_) => 2,
        Type::Any => 3,
    }
}

/// Returns whether values of a type convert to another one, if their content allows it.
fn converts(own: &Type, wanted: &Type) -> bool {
    use Type as T;
    match (own, wanted) {
        _ if own == wanted => true,
        (T::Any, _)
        | (_, T::Any)
        | (T::Bool | T::Number, T::String)
        | (T::String, T::Bool | T::Number) => true,
        (T::List(own) | T::Set(own), T::List(wanted) | T::Set(wanted))
        | (T::Map(own), T::Map(wanted)) => converts(own, wanted),
        (T::Tuple(own), T::List(wanted) | T::Set(wanted)) => {
            own.iter().all(|own| converts(own, wanted))
        }
        (T::Tuple(own), T::Tuple(wanted)) => {
            let mut pairs = own.iter().zip(wanted);
            own.len() == wanted.len() && pairs.all(|(own, wanted)| converts(own, wanted))
        }
        (T::Object(own), T::Map(wanted)) => own.values().all(|own| converts(own, wanted)),
        (T::Map(own), T::Object(wanted)) => wanted.values().all(|wanted| converts(own, wanted)),
        (T::Object(own), T::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| own.get(name).is_some_and(|own| converts(own, wanted))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(element: Type) -> Type {
        Type::List(Box::new(element))
    }

    #[test]
    fn strings_are_preferred() {
        assert_eq!(unify(&[Type::Number, Type::String]), Some(Type::String));
        assert_eq!(unify(&[Type::Number, Type::Bool]), None);
        assert_eq!(unify(&[Type::Any, Type::Bool]), Some(Type::Bool));
        assert_eq!(unify(&[]), Some(Type::Any));
    }

    #[test]
    fn tuples_of_different_length_become_lists() {
        let one = Type::Tuple(vec![Type::Number]);
        let two = Type::Tuple(vec![Type::Number, Type::String]);
        assert_eq!(unify(&[one.clone(), two]), Some(list(Type::String)));
        let set = Type::Set(Box::new(Type::Number));
        assert_eq!(unify(&[one, set.clone()]), Some(set.clone()));
        assert_eq!(unify(&[set, list(Type::Number)]), Some(list(Type::Number)));
    }
}
