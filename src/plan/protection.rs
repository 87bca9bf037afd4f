//! The rules `prevent_destroy` and `prevent_resource_destroy`, and the refusals that enforce them.
//!
//! The working tree's rules protect stacks of the project. A removed stack is protected by its
//! `removed` block, or without one by the recorded rules. This module does not decide actions.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::diagnostic::{Code, Diagnostic};
use crate::driver::{ChangeCounts, DriverAnswer, ResourceChange};
use crate::git::CommitId;
use crate::path::StackPath;
use crate::plan::entry::{PlanEntry, PlannedAction};
use crate::printable::{first_of, printable};
use crate::project::Project;
use crate::project::lifecycle::ProtectedResources;
use crate::project::stack::StackIndex;
use crate::source::Span;
use crate::state::document::Entry;
use crate::state::rules::RecordedRule;

const MOST: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    rule: ProtectionRule,
    /// File relative to the project root, and line.
    place: Option<String>,
    by: ProtectedBy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProtectionRule {
    Stack,
    Resources(ProtectedResources),
}

impl ProtectionRule {
    fn name(&self) -> &'static str {
        match self {
            ProtectionRule::Stack => "prevent_destroy",
            ProtectionRule::Resources(_) => "prevent_resource_destroy",
        }
    }
}

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProtectedBy {
    WorkingTree,
    /// HEAD, but not the working tree: the removal of the rule is uncommitted.
    Head,
    /// The state, as recorded from this commit if known: the stack was removed.
    State(Option<String>),
    /// HEAD is unreadable and may have the rule.
    UnreadableHead {
        why: String,
        fix: String,
    },
}

fn stated<T>(
    stack: Option<(bool, T)>,
    resources: Option<(&ProtectedResources, T)>,
) -> impl Iterator<Item = (ProtectionRule, T)> {
    let stack = stack
        .filter(|(is_protected, _)| *is_protected)
        .map(|(_, at)| (ProtectionRule::Stack, at));
    let resources = resources
        .filter(|(protected, _)| !protected.is_empty())
        .map(|(it, at)| (ProtectionRule::Resources(it.clone()), at));
    stack.into_iter().chain(resources)
}

impl Protection {
    pub fn of_tree(project: &Project, stack: StackIndex) -> Vec<Self> {
        Self::of_project(project, stack, &ProtectedBy::WorkingTree)
    }

    pub fn of_head(project: &Project, stack: StackIndex) -> Vec<Self> {
        Self::of_project(project, stack, &ProtectedBy::Head)
    }

    fn of_project(project: &Project, stack: StackIndex, by: &ProtectedBy) -> Vec<Self> {
        let rules = project.rules_of(stack);
        let of_stack = rules.prevent_destroy.map(|it| (it.value, it.span));
        let of_resources = rules
            .prevent_resource_destroy
            .map(|it| (&it.value, it.span));
        let rules = stated(of_stack, of_resources);
        rules
            .map(|rule| Self::written(project, rule, by.clone()))
            .collect()
    }

    fn written(project: &Project, (rule, span): (ProtectionRule, Span), by: ProtectedBy) -> Self {
        Protection {
            rule,
            place: Some(project.sources.line(span)),
            by,
        }
    }

    /// Returns the rules for a removed stack: those of its `removed` block, else the recorded ones.
    /// The proof of removal checks elsewhere that the block is committed.
    pub fn of_removed(project: &Project, stack: &StackPath, entry: &Entry) -> Vec<Self> {
        let Some(block) = project.removed_block(stack) else {
            return Self::recorded_rules(entry);
        };
        let of_stack = block.prevent_destroy.as_ref();
        let of_resources = block.prevent_resource_destroy.as_ref();
        let rules = stated(
            of_stack.map(|it| (it.value, it.span)),
            of_resources.map(|it| (&it.value, it.span)),
        );
        let stated = rules.map(|rule| Self::written(project, rule, ProtectedBy::WorkingTree));
        let is_left_open = |it: &Protection| match it.rule {
            ProtectionRule::Stack => of_stack.is_none(),
            ProtectionRule::Resources(_) => of_resources.is_none(),
        };
        let recorded = Self::recorded_rules(entry).into_iter().filter(is_left_open);
        stated.chain(recorded).collect()
    }

    pub fn recorded_rules(entry: &Entry) -> Vec<Self> {
        fn at<T>(rule: &RecordedRule<T>) -> (Option<String>, Option<String>) {
            let place = rule.file.as_deref().map(|file| match rule.line {
                Some(line) => format!("{file}:{line}"),
                None => file.to_owned(),
            });
            (place, rule.commit.clone())
        }
        let of_stack = entry.lifecycle.prevent_destroy.as_ref();
        let of_resources = entry.lifecycle.prevent_resource_destroy.as_ref();
        let rules = stated(
            of_stack.map(|rule| (rule.value, at(rule))),
            of_resources.map(|rule| (&rule.value, at(rule))),
        );
        let recorded = rules.map(|(rule, (place, commit))| Protection {
            rule,
            place,
            by: ProtectedBy::State(commit),
        });
        recorded.collect()
    }

    /// Returns every rule, since an unreadable HEAD may have any.
    pub fn unread(why: &str, fix: &str) -> Vec<Self> {
        let all = ProtectedResources::All(true);
        let rules = [ProtectionRule::Stack, ProtectionRule::Resources(all)]
            .into_iter()
            .map(|rule| Protection {
                rule,
                place: None,
                by: ProtectedBy::UnreadableHead {
                    why: why.to_owned(),
                    fix: fix.to_owned(),
                },
            });
        rules.collect()
    }

    /// For messages: `protected by prod/orch.orch.hcl:4`.
    pub fn text(&self) -> String {
        if let ProtectedBy::UnreadableHead { why, .. } = &self.by {
            return format!("HEAD cannot be read, so its protection rules are unknown: {why}");
        }
        let mut text = "protected".to_owned();
        if let Some(place) = &self.place {
            text += &format!(" by {place}");
        }
        match &self.by {
            ProtectedBy::WorkingTree | ProtectedBy::UnreadableHead { .. } => {}
            ProtectedBy::Head => text += " in HEAD",
            ProtectedBy::State(commit) => {
                let commit = commit.as_deref().and_then(CommitId::new);
                let commit = commit.map(|commit| format!(" from {}", commit.short()));
                text += &format!(", recorded{}", commit.unwrap_or_default());
            }
        }
        text
    }

    fn loss(&self, destroyed: &DestroyedPart<'_>) -> Option<ProtectedLoss> {
        match &self.rule {
            ProtectionRule::Stack if destroyed.is_whole => Some(ProtectedLoss::Stack),
            ProtectionRule::Stack => destroyed.leaves_nothing.then_some(ProtectedLoss::Rest),
            ProtectionRule::Resources(protected) => {
                let gone = destroyed.resources.iter().filter(|it| it.destroys());
                let addresses = gone.clone().flat_map(ResourceChange::addresses);
                let matching: HashSet<&str> = protected.among(addresses).into_iter().collect();
                let is_named =
                    |it: &&ResourceChange| it.addresses().any(|it| matching.contains(it));
                let named: Vec<String> = gone
                    .filter(is_named)
                    .map(|it| it.base_address().to_owned())
                    .collect();
                if !named.is_empty() {
                    return Some(ProtectedLoss::Resources(named));
                }
                if !destroyed.resources.is_empty() {
                    return None;
                }
                match destroyed.counts {
                    Some(counts) => {
                        (counts.remove > 0).then_some(ProtectedLoss::Unnamed(counts.remove))
                    }
                    None => destroyed.is_unknown.then_some(ProtectedLoss::Unknown),
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct DestroyedPart<'a> {
    is_whole: bool,
    /// Whether the stack is kept without any resource.
    leaves_nothing: bool,
    resources: &'a [ResourceChange],
    counts: Option<ChangeCounts>,
    /// Whether unknown resources count as destroyed.
    is_unknown: bool,
}

impl<'a> DestroyedPart<'a> {
    /// Returns the part that an action destroys, given its driver's answer; `None` if certainly
    /// nothing. `is_created_first`: another entry destroys the old generation.
    pub fn of_answer(
        action: PlannedAction,
        answer: &'a DriverAnswer,
        is_created_first: bool,
    ) -> Option<Self> {
        let known = (&*answer.resources, answer.counts, answer.leaves_nothing);
        Self::new(action, known, is_created_first)
    }

    /// Returns the part that an entry destroys; `None` if certainly nothing.
    pub fn of_entry(entry: &'a PlanEntry) -> Option<Self> {
        let known = (&*entry.resources, entry.counts, entry.leaves_nothing);
        Self::new(entry.action, known, entry.generation.is_some())
    }

    fn new(
        action: PlannedAction,
        (resources, counts, leaves_nothing): (&'a [ResourceChange], Option<ChangeCounts>, bool),
        is_created_first: bool,
    ) -> Option<Self> {
        let is_whole = matches!(action, PlannedAction::Delete | PlannedAction::Replace);
        let removes = counts.is_some_and(|counts| counts.remove > 0);
        let destroys = removes || resources.iter().any(ResourceChange::destroys);
        (action.is_work() && (is_whole || destroys || leaves_nothing)).then_some(DestroyedPart {
            is_whole,
            leaves_nothing,
            resources,
            counts,
            is_unknown: is_whole && !is_created_first,
        })
    }

    /// The whole stack, with unknown resources.
    pub fn unknown() -> Self {
        DestroyedPart {
            is_whole: true,
            leaves_nothing: false,
            resources: &[],
            counts: None,
            is_unknown: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProtectedLoss {
    Stack,
    /// All resources of the stack.
    Rest,
    /// By address.
    Resources(Vec<String>),
    /// This many resources, whose addresses are unknown.
    Unnamed(u64),
    /// Resources whose addresses and number are unknown.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectionRefusal {
    protection: Protection,
    loss: ProtectedLoss,
}

impl ProtectionRefusal {
    /// Returns a refusal if the rules protect anything that would be destroyed.
    pub fn new(rules: Vec<Protection>, destroyed: &DestroyedPart<'_>) -> Option<Self> {
        let mut rules = rules.into_iter();
        rules.find_map(|protection| {
            let loss = protection.loss(destroyed)?;
            Some(ProtectionRefusal { protection, loss })
        })
    }

    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Returns whether the whole stack is protected, not only some resources.
    pub fn is_of_stack(&self) -> bool {
        self.protection.rule == ProtectionRule::Stack
    }

    /// Describes the protected part of `stack` that would be destroyed.
    fn what(&self, stack: &str) -> String {
        if matches!(self.protection.by, ProtectedBy::UnreadableHead { .. }) {
            return match self.loss {
                ProtectedLoss::Stack => format!("{stack}, which may be protected"),
                _ => format!("resources of {stack}, which may be protected"),
            };
        }
        let (one, more) = match &self.protection.rule {
            ProtectionRule::Resources(ProtectedResources::All(_)) => {
                (", which is protected", ", which are protected")
            }
            _ => (
                ", which may be protected",
                ", some of which may be protected",
            ),
        };
        match &self.loss {
            ProtectedLoss::Stack => format!("{stack}, which is protected"),
            ProtectedLoss::Rest => format!("all resources of {stack}, which is protected"),
            ProtectedLoss::Resources(addresses) => match addresses.len() {
                1 => format!("a protected resource of {stack}"),
                more => format!("{more} protected resources of {stack}"),
            },
            ProtectedLoss::Unnamed(1) => format!("1 resource of {stack}{one}"),
            ProtectedLoss::Unnamed(number) => format!("{number} resources of {stack}{more}"),
            ProtectedLoss::Unknown => format!("resources of {stack}{more}"),
        }
    }

    /// Describes why the stack is kept: it is protected, or its resources may be.
    pub fn kept_because(&self) -> String {
        let text = self.protection.text();
        if self.is_of_stack() {
            text
        } else {
            format!("its resources may be {text}")
        }
    }

    /// Describes how to allow the destroy of this many stacks.
    pub fn fix(&self, n_stacks: usize) -> String {
        let Protection { rule, by, .. } = &self.protection;
        let it = if n_stacks == 1 { "it" } else { "them" };
        let name = rule.name();
        match (by, rule, &self.loss) {
            (
                ProtectedBy::WorkingTree,
                ProtectionRule::Resources(ProtectedResources::Matching(_)),
                ProtectedLoss::Resources(_),
            ) => format!("first commit a `{name}` that does not match them"),
            (ProtectedBy::UnreadableHead { fix, .. }, ..) => fix.clone(),
            (ProtectedBy::WorkingTree, ..) => format!("commit `{name} = false` for {it} first"),
            (ProtectedBy::Head, ..) => format!("commit the change to `{name}` first"),
            (ProtectedBy::State(_), ..) => {
                format!("apply `{name} = false` first, or set it in a `removed` block")
            }
        }
    }
}

fn quoted<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    first_of(names.map(|it| format!("`{}`", printable(it))), MOST)
}

impl fmt::Display for ProtectionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "would destroy {}", self.what("it"))?;
        if let ProtectedLoss::Resources(addresses) = &self.loss {
            let addresses = quoted(addresses.iter().map(String::as_str));
            write!(f, " ({addresses})")?;
        }
        write!(f, "; {}", self.protection.text())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destroyer {
    Plan,
    Command,
}

/// A protected stack that would be destroyed or lose resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedStack {
    pub stack: StackPath,
    /// The reason of its entry, or the command.
    pub because: String,
    pub refusal: ProtectionRefusal,
}

/// Returns the refusals in stack order. Stacks with the same protection share one.
pub fn refusals(protected: &[ProtectedStack], destroyer: Destroyer) -> Vec<Diagnostic> {
    let mut groups: Vec<Vec<&ProtectedStack>> = Vec::new();
    let mut whole: HashMap<(&str, String), usize> = HashMap::new();
    for own in protected {
        let Protection { by, .. } = &own.refusal.protection;
        let is_known = !matches!(by, ProtectedBy::UnreadableHead { .. });
        if is_known && own.refusal.loss == ProtectedLoss::Stack {
            let key = (&*own.because, own.refusal.protection.text());
            let group = *whole.entry(key).or_insert(groups.len());
            if let Some(group) = groups.get_mut(group) {
                group.push(own);
                continue;
            }
        }
        groups.push(vec![own]);
    }
    let refusals = groups.iter().map(|group| refusal(group, destroyer));
    refusals.collect()
}

fn refusal(stacks: &[&ProtectedStack], destroyer: Destroyer) -> Diagnostic {
    let ProtectedStack {
        stack,
        because,
        refusal,
    } = stacks[0];
    let (what, leave_out) = match (destroyer, stacks.len()) {
        (Destroyer::Plan, _) => ("plan", "`--skip-protected` plans the rest"),
        (Destroyer::Command, 1) => ("command", "`--exclude` leaves the stack out"),
        (Destroyer::Command, _) => ("command", "`--exclude` leaves stacks out"),
    };
    let mut diagnostic = if let [_] = stacks {
        let lost = refusal.what(&format!("`{stack}`"));
        let message = format!("the {what} would destroy {lost}");
        Diagnostic::error(Code::Protected, message)
    } else {
        let message = format!("the {what} would destroy {} protected stacks", stacks.len());
        let paths = stacks.iter().map(|it| it.stack.as_str());
        Diagnostic::error(Code::Protected, message).note(quoted(paths))
    };
    if let ProtectedLoss::Resources(addresses) = &refusal.loss {
        diagnostic = diagnostic.note(quoted(addresses.iter().map(String::as_str)));
    }
    let protected_by = refusal.protection.text();
    diagnostic
        .note(format!("{because}; {protected_by}"))
        .help(format!("{}; {leave_out}", refusal.fix(stacks.len())))
}

/// Refuses to destroy protected parts of a stack; `None` if the destroy is allowed.
pub type RefuseDestroy<'a> =
    dyn Fn(&StackPath, &DestroyedPart<'_>) -> Option<ProtectionRefusal> + 'a;

/// Enforces the rules in the turns of an apply.
pub struct Guard<'a>(pub Box<RefuseDestroy<'a>>);
