//! Functions that make lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigdecimal::{BigDecimal, Signed, Zero};

use super::{element_type, items, sequence, wrong};
use crate::language::function::arguments::{Arguments, FunctionError};
use crate::language::value::{ByOrder, Type, Value, convert, is_sane, unify};

/// The longest list that `range` makes, in Terraform as well.
const LONGEST_RANGE: usize = 1024;

pub(super) fn chunks(arguments: &Arguments) -> Result<Value, FunctionError> {
    let items = arguments.items(0);
    let size = arguments.integer(1)?;
    let Ok(size) = usize::try_from(size) else {
        let text = "a length cannot be negative".to_owned();
        return Err(FunctionError::Argument(1, text));
    };
    arguments.spend(items.len() as u64)?;
    Ok(Value::list(match size {
        // All elements are in one piece.
        0 if items.is_empty() => Vec::new(),
        0 => vec![arguments.value(0).clone()],
        _ => {
            let chunks = items.chunks(size);
            chunks.map(|it| Value::list(it.iter().cloned())).collect()
        }
    }))
}

#[expect(clippy::unnecessary_wraps, reason = "all functions have one type")]
pub(super) fn compact(arguments: &Arguments) -> Result<Value, FunctionError> {
    let texts = arguments.items(0).iter();
    let kept = texts.filter(|it| it.as_str().is_some_and(|text| !text.is_empty()));
    Ok(Value::list(kept.cloned()))
}

/// Lists whose elements have a type in common give a list, anything else a tuple.
pub(super) fn concat(arguments: &Arguments) -> Result<Value, FunctionError> {
    if arguments.len() == 0 {
        let text = "at least one list is needed".to_owned();
        return Err(FunctionError::Call(text));
    }
    let mut all = Vec::new();
    let mut types = Vec::new();
    for (index, value) in arguments.values().iter().enumerate() {
        let items = sequence(index, value)?;
        arguments.spend(items.len() as u64)?;
        all.extend_from_slice(items);
        if let Value::List(_) = value {
            types.push(element_type(items.iter()));
        }
    }
    if types.len() < arguments.len() {
        return Ok(Value::tuple(all));
    }
    let converted = unify(&types).and_then(|element| {
        let items = all.iter().map(|item| convert(item, &element).ok());
        items.collect::<Option<Vec<_>>>()
    });
    Ok(converted.map_or_else(|| Value::tuple(all), Value::list))
}

#[expect(clippy::unnecessary_wraps, reason = "all functions have one type")]
pub(super) fn distinct(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut seen = BTreeSet::new();
    let items = arguments.items(0).iter();
    let first = items.filter(|item| seen.insert(ByOrder(item)));
    Ok(Value::list(first.cloned()))
}

pub(super) fn flatten(arguments: &Arguments) -> Result<Value, FunctionError> {
    fn append(value: &Value, all: &mut Vec<Value>) {
        match value.items() {
            Some(items) => items.iter().for_each(|item| append(item, all)),
            None => all.push(value.clone()),
        }
    }
    let list = arguments.value(0);
    items(0, list)?;
    arguments.spend(list.weight())?;
    let mut all = Vec::new();
    append(list, &mut all);
    Ok(Value::tuple(all))
}

pub(super) fn match_keys(arguments: &Arguments) -> Result<Value, FunctionError> {
    let [values, keys, wanted] = [0, 1, 2].map(|index| arguments.items(index));
    if values.len() != keys.len() {
        return Err(FunctionError::Argument(
            1,
            format!(
                "as many keys as values are needed: there are {} keys for {} values",
                keys.len(),
                values.len()
            ),
        ));
    }
    let types = [element_type(keys.iter()), element_type(wanted.iter())];
    let Some(common) = unify(&types) else {
        let text = "these elements have another type than the keys".to_owned();
        return Err(FunctionError::Argument(2, text));
    };
    let converted = |index: usize, items: &[Value]| -> Result<Vec<Value>, FunctionError> {
        let items = items
            .iter()
            .map(|item| convert(item, &common).map_err(|_| wrong(index, item, common.name())));
        items.collect()
    };
    let (keys, wanted) = (converted(1, keys)?, converted(2, wanted)?);
    let wanted: BTreeSet<ByOrder> = wanted.iter().map(ByOrder).collect();
    let pairs = values.iter().zip(&keys);
    let kept = pairs.filter(|(_, key)| wanted.contains(&ByOrder(key)));
    Ok(Value::list(kept.map(|(value, _)| value.clone())))
}

pub(super) fn range(arguments: &Arguments) -> Result<Value, FunctionError> {
    let zero = BigDecimal::zero();
    let (start, limit, step) = match arguments.len() {
        1 => (&zero, 0, None),
        2 => (arguments.number(0), 1, None),
        3 => (arguments.number(0), 1, Some(arguments.number(2))),
        count => {
            let text = format!("one, two or three numbers are needed, and there are {count}");
            return Err(FunctionError::Call(text));
        }
    };
    let limit = arguments.number(limit);
    let is_down = limit < start;
    let step = match step {
        Some(step) if start != limit && (step.is_zero() || step.is_negative() != is_down) => {
            let sign = if is_down { "below" } else { "above" };
            let text = format!("from {start} to {limit} the step must be {sign} zero");
            return Err(FunctionError::Argument(2, text));
        }
        Some(step) => step.clone(),
        None if is_down => BigDecimal::from(-1),
        None => BigDecimal::from(1),
    };
    let mut numbers = Vec::new();
    let mut next = start.clone();
    let goes_on = |next: &BigDecimal| if is_down { next > limit } else { next < limit };
    while goes_on(&next) {
        if numbers.len() == LONGEST_RANGE {
            let text = format!("the list would have more than {LONGEST_RANGE} numbers");
            return Err(FunctionError::Call(text));
        }
        arguments.spend(1)?;
        let following = &next + &step;
        numbers.push(Value::Number(next));
        next = following;
    }
    Ok(Value::list(numbers))
}

pub(super) fn reverse(arguments: &Arguments) -> Result<Value, FunctionError> {
    let list = arguments.value(0);
    let reversed = items(0, list)?.iter().rev().cloned();
    Ok(match list {
        Value::Tuple(_) => Value::tuple(reversed),
        _ => Value::list(reversed),
    })
}

pub(super) fn slice(arguments: &Arguments) -> Result<Value, FunctionError> {
    let list = arguments.value(0);
    let items = sequence(0, list)?;
    let position = |index: usize| -> Result<usize, FunctionError> {
        let position = usize::try_from(arguments.integer(index)?).ok();
        position.filter(|it| *it <= items.len()).ok_or_else(|| {
            let text = format!("an index from 0 to {} is needed", items.len());
            FunctionError::Argument(index, text)
        })
    };
    let (start, end) = (position(1)?, position(2)?);
    let Some(part) = items.get(start..end) else {
        let text = format!("the slice ends at {end}, before its start at {start}");
        return Err(FunctionError::Argument(2, text));
    };
    let part = part.iter().cloned();
    Ok(match list {
        Value::Tuple(_) => Value::tuple(part),
        _ => Value::list(part),
    })
}

pub(super) fn sort(arguments: &Arguments) -> Result<Value, FunctionError> {
    let mut texts: Vec<Arc<str>> = Vec::new();
    for (at, item) in arguments.items(0).iter().enumerate() {
        let Value::String(text) = item else {
            let text = format!("its `[{at}]` is null, and only strings can be sorted");
            return Err(FunctionError::Argument(0, text));
        };
        texts.push(text.clone());
    }
    texts.sort();
    Ok(Value::list(texts.into_iter().map(Value::String)))
}

pub(super) fn sum(arguments: &Arguments) -> Result<Value, FunctionError> {
    let items = items(0, arguments.value(0))?;
    if items.is_empty() {
        let text = "this is empty, so it has no sum".to_owned();
        return Err(FunctionError::Argument(0, text));
    }
    let mut sum = BigDecimal::zero();
    for (at, item) in items.iter().enumerate() {
        let Ok(Value::Number(number)) = convert(item, &Type::Number) else {
            let text = format!("its `[{at}]` is {}; a number is needed", item.description());
            return Err(FunctionError::Argument(0, text));
        };
        sum += number;
        if !is_sane(&sum) {
            let text = "the sum is too large".to_owned();
            return Err(FunctionError::Call(text));
        }
    }
    Ok(Value::Number(sum.normalized()))
}
