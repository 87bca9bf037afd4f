//! Which policies are attached to which stacks.
//!
//! An entry of `attach` means the same as an entry of `after`, but belongs to a directory instead of a stack:
//! the directory itself matches everything at and below it. Besides, `*` matches all stacks, and `label:TEXT`
//! those with a label or tag; `autoattach:TEXT`, which policies of Spacelift have as a label, does the same.

use std::collections::{BTreeMap, BTreeSet};

use super::dangling;
use crate::diagnostic::Diagnostic;
use crate::path::KeyFilter;
use crate::project::Project;
use crate::project::policy::PolicyBlock;
use crate::project::stack::{Stack, StackIndex};
use crate::source::Spanned;

/// The prefix of an entry that names a module.
const MODULE: &str = "module:";

/// The prefixes of entries that name a label.
const LABELS: [&str; 2] = ["label:", "autoattach:"];

/// The stacks and modules that each policy is attached to. Policies are numbered as in [`Project::policies`].
#[derive(Debug, Default)]
pub struct PolicyAttachments {
    by_stack: Vec<Vec<usize>>,
    by_module: BTreeMap<String, Vec<usize>>,
}

impl PolicyAttachments {
    /// Resolves the `attach` entries of all policies, and adds their problems to `problems`. As with
    /// [`References::resolve`], a path that leaves the project and an invalid tag filter are errors. An entry
    /// that names nothing is a warning, or an error with `references = "strict"`.
    ///
    /// [`References::resolve`]: super::reference::References::resolve
    pub fn resolve(project: &Project, problems: &mut Vec<Diagnostic>) -> Self {
        let mut attached = PolicyAttachments {
            by_stack: vec![Vec::new(); project.stacks.len()],
            by_module: BTreeMap::new(),
        };
        for (number, policy) in project.policies.iter().enumerate() {
            let Some(entries) = &policy.attach else {
                let all = project.stacks.at_or_below(&policy.directory);
                attached.add(number, all);
                continue;
            };
            for entry in entries {
                if let Some(module) = entry.value.strip_prefix(MODULE) {
                    if !project.modules.contains_key(module) && project.broken.is_empty() {
                        problems.push(unknown_module(project, entry, module));
                    }
                    let policies = attached.by_module.entry(module.to_owned()).or_default();
                    policies.push(number);
                } else {
                    let named = named(project, policy, entry, problems);
                    attached.add(number, named);
                }
            }
        }
        attached
    }

    pub fn to_stack(&self, stack: StackIndex) -> &[usize] {
        self.by_stack.get(stack.get()).map_or(&[], Vec::as_slice)
    }

    pub fn policies_of_stacks(&self) -> BTreeSet<usize> {
        self.by_stack.iter().flatten().copied().collect()
    }

    pub fn to_module(&self, module: &str) -> &[usize] {
        self.by_module.get(module).map_or(&[], Vec::as_slice)
    }

    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.by_module.keys().map(String::as_str)
    }

    fn add(&mut self, policy: usize, stacks: impl IntoIterator<Item = StackIndex>) {
        for stack in stacks {
            let policies = &mut self.by_stack[stack.get()];
            // Policies come in order of number.
            if policies.last() != Some(&policy) {
                policies.push(policy);
            }
        }
    }
}

/// Returns the diagnostic for an entry whose module has no block.
fn unknown_module(project: &Project, entry: &Spanned<String>, module: &str) -> Diagnostic {
    let message = format!("`{}` in `attach` names no module", entry.value);
    let known = project.modules.keys().map(String::as_str);
    dangling::unknown(project, message)
        .label(entry.span, "no `module` block has this name")
        .did_you_mean(module, known)
}

fn named(
    project: &Project,
    policy: &PolicyBlock,
    entry: &Spanned<String>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<StackIndex> {
    let stacks = &project.stacks;
    let nothing = |label: &str| dangling::names_nothing(project, "attach", entry, label);
    let label = LABELS
        .iter()
        .find_map(|prefix| entry.value.strip_prefix(prefix));
    if entry.value == "*" || label == Some("*") {
        return stacks.iter().map(|(stack, _)| stack).collect();
    }
    if let Some(label) = label {
        let labels = |stack: &Stack| {
            let labels = stack.labels.iter().map(String::as_str);
            labels.chain(stack.tags()).any(|it| it == label)
        };
        let labeled = stacks.iter().filter(|(_, stack)| labels(stack));
        let named: Vec<StackIndex> = labeled.map(|(stack, _)| stack).collect();
        if named.is_empty() && project.broken.is_empty() {
            let all = stacks.iter().flat_map(|(_, stack)| &stack.labels);
            let known = all.map(String::as_str).chain(stacks.tags());
            problems.push(nothing("no stack has this label or tag").did_you_mean(label, known));
        }
        return named;
    }
    if let Some(filter) = entry.value.strip_prefix("tag:") {
        let filter = match dangling::tag_filter(filter, entry) {
            Ok(filter) => filter,
            Err(problem) => {
                problems.push(problem);
                return Vec::new();
            }
        };
        let named = stacks.tagged(&filter);
        if named.is_empty() && project.broken.is_empty() {
            let mut wanted = filter.alternatives().flatten();
            let unknown = wanted.find(|tag| !stacks.has_tag(tag));
            let diagnostic = nothing("no stack has such tags");
            problems.push(match unknown {
                Some(tag) => diagnostic.did_you_mean(tag, stacks.tags()),
                None => diagnostic,
            });
        }
        return named;
    }
    let plain = policy
        .directory
        .resolve(&entry.value)
        .map(|path| stacks.at_or_below(&path).collect::<Vec<_>>());
    if let Ok(named) = &plain
        && !named.is_empty()
    {
        return named.clone();
    }
    let (written, key) = KeyFilter::split(&entry.value);
    let Ok(path) = policy.directory.resolve(written) else {
        let diagnostic = Diagnostic::outside_project(&entry.value, entry.span);
        problems.push(diagnostic.help("a leading `/` is the project root"));
        return Vec::new();
    };
    let named: Vec<StackIndex> = match &key {
        Some(key) => stacks.instances(&stacks.at(path.as_str()), key).collect(),
        None => Vec::new(), // looked up above
    };
    let is_broken = || {
        let mut broken = project.broken.iter();
        broken.any(|broken| broken.is_at_or_below(&path) || path.is_at_or_below(broken))
    };
    if named.is_empty() && !is_broken() {
        let label = match key {
            Some(_) => "no instance has this key",
            None => dangling::why_nothing(project, &path),
        };
        let candidates = stacks.iter().map(|(_, stack)| stack.path.as_str());
        problems.push(nothing(label).did_you_mean(path.as_str(), candidates));
    }
    named
}
