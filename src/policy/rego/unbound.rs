//! Names that nothing gives a value: a misspelled variable or rule.

use std::collections::BTreeMap;

use super::builtins;
use super::references::{RuleDefinition, RuleTarget};
use crate::policy::Problem;

/// Checks that each name in a rule is defined, or stands at least once where it can be given a value.
///
/// The place of the first name that is only read.
pub(super) fn check(definitions: &[RuleDefinition]) -> Result<(), Problem> {
    for definition in definitions {
        let mut names: BTreeMap<&str, Option<(u32, u32)>> = BTreeMap::new();
        for reference in &definition.references {
            let RuleTarget::Function(name) = &reference.target else {
                continue;
            };
            // A function may be what replaces another one.
            if reference.n_arguments.is_some() || builtins::is_allowed(name) || name == "_" {
                continue;
            }
            let root = name.split('.').next().unwrap_or(name);
            let place = names.entry(root).or_insert(Some(reference.place));
            if reference.may_bind {
                *place = None;
            }
        }
        let unbound = names
            .into_iter()
            .filter_map(|(name, place)| Some((place?, name)));
        if let Some((place, name)) = unbound.min() {
            let message = format!(
                "`{name}` is not defined: no rule has this name, and nothing gives it a value"
            );
            return Err(Problem::at(place, message));
        }
    }
    Ok(())
}
