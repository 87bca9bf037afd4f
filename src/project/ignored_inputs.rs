//! Checks the inputs that `ignore_changes` names.

use std::collections::{BTreeSet, HashMap};

use super::lifecycle::{IgnoredChanges, IgnoredInput, Lifecycle};
use super::load::Project;
use super::problems::Problems;
use crate::diagnostic::{Code, Diagnostic, closest};
use crate::source::{Span, Spanned};

struct Entry<'p> {
    name: &'p str,
    /// Whether it is in quotes, and so a glob of files.
    is_glob: bool,
    span: Span,
}

/// Reports names for which no stack with the rule has an `input` block. One place may apply to several stacks: to
/// instances, to the stacks below a directory, and to those of all directories that import it.
pub(crate) fn check(project: &Project, problems: &mut Problems) {
    // Invalid blocks may define the inputs.
    if !project.broken.is_empty() || problems.has_errors() {
        return;
    }
    let own = project.stacks.iter();
    let own = own.filter_map(|(_, stack)| stack.lifecycle.as_deref());
    let inherited = project.scopes.values().map(|scope| &scope.lifecycle);
    let mut rules = own.chain(inherited);
    let is_used = |rules: &Lifecycle| entries(rules.ignore_changes.as_ref()).next().is_some();
    // Looking up the rules of each stack takes time, and hardly any project needs it.
    if !rules.any(is_used) {
        return;
    }
    let mut found: Vec<(Entry, BTreeSet<&str>)> = Vec::new();
    let mut by_place: HashMap<Span, usize> = HashMap::new();
    for (stack, _) in project.stacks.iter() {
        for entry in entries(project.rules_of(stack).ignore_changes) {
            let index = *by_place.entry(entry.span).or_insert_with(|| {
                found.push((entry, BTreeSet::new()));
                found.len() - 1
            });
            let inputs = project.inputs_of(stack).iter();
            let names = inputs.map(|input| &*input.name.value);
            found[index].1.extend(names);
        }
    }
    let found = found.iter();
    let found = found.filter_map(|(entry, known)| problem(entry, known));
    problems.diagnostics.extend(found);
}

fn entries(rule: Option<&Spanned<IgnoredChanges>>) -> impl Iterator<Item = Entry<'_>> {
    let inputs = match rule.map(|rule| &rule.value) {
        Some(IgnoredChanges::Inputs(inputs)) => inputs.as_slice(),
        Some(IgnoredChanges::All) | None => &[],
    };
    inputs.iter().filter_map(|input| {
        let (name, is_glob) = match &input.value {
            IgnoredInput::Input(name) => (&**name, false),
            IgnoredInput::Files(glob) => (glob.strip_prefix("input.")?, true),
            IgnoredInput::Variable(_) => return None,
        };
        let span = input.span;
        Some(Entry {
            name,
            is_glob,
            span,
        })
    })
}

fn problem(entry: &Entry, known: &BTreeSet<&str>) -> Option<Diagnostic> {
    let Entry {
        name,
        is_glob,
        span,
    } = *entry;
    match (is_glob, known.contains(name)) {
        (false, true) | (true, false) => None,
        (true, true) => {
            let message = format!(
                "`\"input.{name}\"` in `ignore_changes` names files, not the input `{name}`"
            );
            let diagnostic = Diagnostic::error(Code::InvalidPattern, message);
            Some(
                diagnostic
                    .label(span, "a glob of files, because it is in quotes")
                    .help(format!("write `input.{name}` without quotes")),
            )
        }
        (false, false) => {
            let message = format!("`input.{name}` in `ignore_changes` names no `input` block");
            let diagnostic = Diagnostic::error(Code::UnknownName, message)
                .label(span, "no stack with this rule has such an input");
            Some(match closest(name, known.iter().copied()) {
                Some(meant) => diagnostic.help(format!("did you mean `input.{meant}`?")),
                None => diagnostic.help("remove the entry, or correct its name"),
            })
        }
    }
}
