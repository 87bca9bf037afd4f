//! Resolves references: from the text to the target, or to a problem.

use std::collections::HashMap;

use super::{Reference, ReferenceKind, ReferenceTarget, References, TagGroup, TagGroupIndex};
use crate::diagnostic::{Code, Diagnostic};
use crate::path::{KeyFilter, ProjectPath};
use crate::project::Project;
use crate::project::lifecycle::ReplaceTrigger;
use crate::project::stack::{Stack, StackIndex, StackMode, StackUse, Stacks};
use crate::project::tag::TagFilter;
use crate::selection::dangling::{self, Dangling};
use crate::source::Spanned;

/// The maximum number of suggestions, each of which examines all stacks.
const MAX_SUGGESTIONS: usize = 20;

/// Resolves all references of a project: see [`References::resolve`]. `explains` asks for the reason if a
/// reference names nothing.
pub(super) fn resolve(
    project: &Project,
    problems: &mut Vec<Diagnostic>,
    explains: bool,
) -> References {
    let mut resolver = ReferenceResolver {
        project,
        references: References::default(),
        groups_by_filter: HashMap::new(),
        explains,
        suggestions: 0,
        problems,
    };
    for (index, stack) in project.stacks.iter() {
        let attributes = [
            (ReferenceKind::After, &stack.after),
            (ReferenceKind::Before, &stack.before),
            (ReferenceKind::Wants, &stack.wants),
            (ReferenceKind::WantedBy, &stack.wanted_by),
        ];
        for (kind, entries) in attributes {
            for entry in entries {
                resolver.resolve(DeclaredReference {
                    from: index,
                    stack,
                    kind,
                    entry,
                });
            }
        }
        let lifecycle = stack.lifecycle.as_deref();
        for trigger in lifecycle.map_or(&[][..], |it| &it.replace_triggered_by) {
            resolver.trigger(index, stack, trigger);
        }
        let ordering = stack.uses.iter().filter(|it| it.orders);
        resolver
            .references
            .list
            .extend(ordering.filter_map(|it| data(&project.stacks, index, it)));
    }
    resolver.references
}

/// Returns the reference for a use of data; `None` if the other stack does not exist, or is not recorded.
pub(super) fn data(stacks: &Stacks, from: StackIndex, used: &StackUse) -> Option<Reference> {
    let named = stacks.find(&used.stack)?;
    Some(Reference {
        from,
        kind: ReferenceKind::Data(used.kind),
        target: ReferenceTarget::Stack(named),
        output: None,
        span: used.span,
    })
}

struct ReferenceResolver<'a> {
    project: &'a Project,
    references: References,
    groups_by_filter: HashMap<TagFilter, TagGroupIndex>,
    /// Whether references that name nothing are explained, which takes lookups on disk.
    explains: bool,
    suggestions: usize,
    problems: &'a mut Vec<Diagnostic>,
}

/// An entry of `after` or the like, and the stack that declares it.
#[derive(Clone, Copy)]
struct DeclaredReference<'w> {
    from: StackIndex,
    stack: &'w Stack,
    kind: ReferenceKind,
    entry: &'w Spanned<String>,
}

impl DeclaredReference<'_> {
    fn reference(&self, target: ReferenceTarget, output: Option<String>) -> Reference {
        Reference {
            from: self.from,
            kind: self.kind,
            target,
            output,
            span: self.entry.span,
        }
    }
}

/// Returns the stack as the target if there is only one, else the target from `several`.
fn single_or(
    mut named: impl Iterator<Item = StackIndex>,
    several: impl FnOnce() -> ReferenceTarget,
) -> Option<ReferenceTarget> {
    let first = named.next()?;
    Some(match named.next() {
        None => ReferenceTarget::Stack(first),
        Some(_) => several(),
    })
}

impl ReferenceResolver<'_> {
    fn resolve(&mut self, written: DeclaredReference<'_>) {
        if let Some(target) = self.target(written) {
            self.references.list.push(written.reference(target, None));
        }
    }

    /// Resolves an entry of `replace_triggered_by` like one of `after`, except that the named stack must be
    /// able to change.
    fn trigger(&mut self, from: StackIndex, stack: &Stack, trigger: &Spanned<ReplaceTrigger>) {
        let span = trigger.span;
        let value = trigger.value.reference.clone();
        let kind = ReferenceKind::ReplaceTriggeredBy;
        let written = DeclaredReference {
            from,
            stack,
            kind,
            entry: &Spanned { value, span },
        };
        let Some(target) = self.target(written) else {
            return;
        };
        let reference = written.reference(target, trigger.value.output.clone());
        let written = &trigger.value.reference;
        let is_one = matches!(reference.target, ReferenceTarget::Stack(_));
        let (message, label, help) = if reference.output.is_some() && !is_one {
            (
                format!("`{written}` in `{kind}` names an output of several stacks"),
                "an output belongs to one stack",
                "write one stack before the `#`",
            )
        } else if !self.names_managed(&reference) {
            (
                format!("`{written}` in `{kind}` is only read, and never changes"),
                "its `mode` is `\"read\"`",
                "name the stack that manages it",
            )
        } else {
            return self.references.list.push(reference);
        };
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        self.problems.push(diagnostic.label(span, label).help(help));
    }

    /// Returns whether a reference names a stack that is not read-only.
    fn names_managed(&self, reference: &Reference) -> bool {
        let stacks = &self.project.stacks;
        let is_managed = |stack: StackIndex| {
            reference.is_other(stack, stacks) && stacks[stack].mode == StackMode::Manage
        };
        match &reference.target {
            ReferenceTarget::Stack(stack) => is_managed(*stack),
            ReferenceTarget::Directory(directory) | ReferenceTarget::Enclosing(directory) => {
                stacks.at_or_below(directory).any(is_managed)
            }
            ReferenceTarget::Instances(directory) => stacks.at(directory.as_str()).any(is_managed),
            ReferenceTarget::Tag(group) => {
                let members = &self.references.tag_group(*group).members;
                members.iter().copied().any(is_managed)
            }
        }
    }

    fn target(&mut self, written: DeclaredReference<'_>) -> Option<ReferenceTarget> {
        match written.entry.value.strip_prefix("tag:") {
            Some(filter) => self.tag(filter, written),
            None => self.path(written),
        }
    }

    fn tag(&mut self, filter: &str, written: DeclaredReference<'_>) -> Option<ReferenceTarget> {
        let DeclaredReference {
            from, kind, entry, ..
        } = written;
        let has_empty = filter.split([',', ':']).any(str::is_empty);
        let filter = dangling::tag_filter(filter, entry);
        let filter = filter.map_err(|problem| self.problems.push(problem)).ok()?;
        let stacks = &self.project.stacks;
        let groups = &mut self.references.tag_groups;
        let group = *self
            .groups_by_filter
            .entry(filter.clone())
            .or_insert_with(|| {
                let index = u32::try_from(groups.len()).expect("fewer than four billion filters");
                let members = stacks.tagged(&filter);
                groups.push(TagGroup {
                    filter: filter.clone(),
                    members,
                });
                TagGroupIndex(index)
            });
        let target = match *self.references.tag_group(group).members.as_slice() {
            // All instances share one block: for the others, the reference makes sense.
            [only] if only == from && stacks[from].path.key().is_some() => None,
            [only] if only != from => Some(ReferenceTarget::Stack(only)),
            [] | [_] if !self.project.broken.is_empty() => None, // what is broken may carry it
            [] | [_] if !self.explains => None,
            [_] => {
                let label = "no other stack has such tags";
                let diagnostic = dangling::names_nothing(self.project, kind, entry, label);
                self.problems.push(diagnostic);
                None
            }
            [] => {
                let mut wanted = filter.alternatives().flatten();
                let unknown = wanted.find(|tag| !stacks.has_tag(tag));
                let label = "no stack has such tags";
                let diagnostic = dangling::names_nothing(self.project, kind, entry, label);
                self.suggestions += 1;
                self.problems.push(match unknown {
                    Some(tag) if self.suggestions <= MAX_SUGGESTIONS => {
                        let others = stacks.tags().filter(|tag| *stacks.with_tag(tag) != [from]);
                        diagnostic.did_you_mean(tag, others)
                    }
                    _ => diagnostic,
                });
                None
            }
            _ => Some(ReferenceTarget::Tag(group)),
        };
        if has_empty && self.explains && target.is_some() {
            let message = format!("`{}` in `{kind}` has an empty tag", entry.value);
            let diagnostic = Diagnostic::warning(Code::InvalidTag, message)
                .label(entry.span, "a tag is missing beside `,` or `:`")
                .help("name the tag, or remove the separator");
            self.problems.push(diagnostic);
        }
        target
    }

    fn path(&mut self, written: DeclaredReference<'_>) -> Option<ReferenceTarget> {
        let DeclaredReference { stack, entry, .. } = written;
        let (named, key) = self.split_key(stack, &entry.value);
        let Ok(path) = stack.path.directory().resolve(named) else {
            let diagnostic = Diagnostic::outside_project(&entry.value, entry.span);
            let help = "name a directory inside the project; a leading `/` is the project root";
            self.problems.push(diagnostic.help(help));
            return None;
        };
        if let Some(key) = key {
            return self.instances(written, path, &key);
        }
        let stacks = &self.project.stacks;
        if stack.path.directory().is_at_or_below(&path) {
            return self.enclosing(written, path);
        }
        let several = || ReferenceTarget::Directory(path.clone());
        let target = single_or(stacks.at_or_below(&path), several);
        // Another diagnostic explains a broken file there.
        if target.is_none() && self.must_report(&path) {
            let label = dangling::why_nothing(self.project, &path);
            let others = stacks.iter().filter(|(other, _)| *other != written.from);
            let mut candidates = others.map(|(_, other)| other.path.as_str());
            self.dangling(written, &path, None, label, Some(&mut candidates));
        }
        target
    }

    /// Splits the key from a reference. A directory whose name looks as if it ended in a key takes
    /// precedence.
    fn split_key<'w>(&self, stack: &Stack, written: &'w str) -> (&'w str, Option<KeyFilter>) {
        let is_directory = || {
            let path = stack.path.directory().resolve(written).ok();
            path.is_some_and(|path| self.project.stacks.at_or_below(&path).next().is_some())
        };
        match KeyFilter::split(written) {
            (path, Some(key)) if !is_directory() => (path, Some(key)),
            _ => (written, None),
        }
    }

    /// Resolves a directory followed by a key in brackets.
    fn instances(
        &mut self,
        written: DeclaredReference<'_>,
        directory: ProjectPath,
        key: &KeyFilter,
    ) -> Option<ReferenceTarget> {
        let stacks = &self.project.stacks;
        let here = stacks.at(directory.as_str());
        let mut named = stacks.instances(&here, key);
        match (named.next(), named.next()) {
            // All instances share one block: for the others, the reference makes sense.
            (Some(only), None) if only == written.from => None,
            (Some(only), None) => Some(ReferenceTarget::Stack(only)),
            (Some(_), Some(_)) => self.others_beside(written, directory),
            (None, _) if !self.must_report(&directory) => None,
            (None, _) => {
                let label = match here.first() {
                    None => dangling::why_nothing(self.project, &directory),
                    Some(first) if stacks[first].path.key().is_some() => "no instance has this key",
                    Some(_) => "this stack has no instances",
                };
                let others = here.filter(|&other| other != written.from);
                let mut candidates = others.map(|other| stacks[other].path.as_str());
                self.dangling(written, &directory, Some(key), label, Some(&mut candidates));
                None
            }
        }
    }

    /// Returns the target for the instances in a directory, without the declaring stack if it is one of them;
    /// `None` if no other is left.
    fn others_beside(
        &self,
        written: DeclaredReference<'_>,
        directory: ProjectPath,
    ) -> Option<ReferenceTarget> {
        let here = self.project.stacks.at(directory.as_str());
        let is_inside = *written.stack.path.directory() == directory;
        let others = here.filter(|&other| other != written.from || !is_inside);
        single_or(others, || ReferenceTarget::Instances(directory))
    }

    /// Resolves a directory that contains the declaring stack or is its own.
    fn enclosing(
        &mut self,
        written: DeclaredReference<'_>,
        directory: ProjectPath,
    ) -> Option<ReferenceTarget> {
        let DeclaredReference { stack, kind, .. } = written;
        if directory == *stack.path.directory() {
            if stack.path.key().is_some() {
                return self.others_beside(written, directory);
            }
            self.names_itself(kind, written.entry);
            return None;
        }
        let stacks = &self.project.stacks;
        if matches!(
            kind,
            ReferenceKind::After | ReferenceKind::ReplaceTriggeredBy
        ) {
            let above = stacks.at(directory.as_str());
            if above.len() > 0 {
                let target = above.only().map(ReferenceTarget::Stack);
                return Some(target.unwrap_or(ReferenceTarget::Instances(directory)));
            }
            let mut broken = self.project.broken.iter();
            let mut empty = self.project.without_instances.iter();
            if broken.any(|broken| broken.parent().as_ref() == Some(&directory))
                || empty.any(|empty| empty.directory == directory)
            {
                return None; // it may have been meant to be a stack, or has no instances now
            }
        }
        let others = stacks.at_or_below_except(&directory, stack.path.directory());
        let target = single_or(others, || ReferenceTarget::Enclosing(directory.clone()));
        if target.is_none() && self.must_report(&directory) {
            let label = "no other stack at or below this directory";
            self.dangling(written, &directory, None, label, None);
        }
        target
    }

    /// Returns whether to report that a reference matches no stack. A broken file in the directory is reported already.
    fn must_report(&self, directory: &ProjectPath) -> bool {
        let mut broken = self.project.broken.iter();
        self.explains && !broken.any(|broken| broken.is_at_or_below(directory))
    }

    /// Reports a path that names no other stack, and remembers it.
    fn dangling(
        &mut self,
        written: DeclaredReference<'_>,
        path: &ProjectPath,
        key: Option<&KeyFilter>,
        label: &str,
        candidates: Option<&mut dyn Iterator<Item = &str>>,
    ) {
        let DeclaredReference { kind, entry, .. } = written;
        let mut diagnostic = dangling::names_nothing(self.project, kind, entry, label);
        self.references.dangling.push(Dangling {
            path: path.clone(),
            key: key.cloned(),
            span: entry.span,
            message: diagnostic.message.clone(),
        });
        if let Some(candidates) = candidates {
            self.suggestions += 1;
            if self.suggestions <= MAX_SUGGESTIONS {
                let wanted = key.map_or_else(|| path.to_string(), |key| format!("{path}{key}"));
                diagnostic = diagnostic.did_you_mean(&wanted, candidates);
            }
        }
        self.problems.push(diagnostic);
    }

    fn names_itself(&mut self, kind: ReferenceKind, entry: &Spanned<String>) {
        let message = format!("`{}` in `{kind}` names only the stack itself", entry.value);
        let diagnostic = match kind {
            ReferenceKind::After
            | ReferenceKind::Before
            | ReferenceKind::ReplaceTriggeredBy
            | ReferenceKind::Data(_) => Diagnostic::error(Code::SelfReference, message),
            ReferenceKind::Wants | ReferenceKind::WantedBy => {
                Diagnostic::warning(Code::SelfReference, message)
            }
        };
        let diagnostic = diagnostic.label(entry.span, "this is the stack itself");
        self.problems.push(diagnostic.help("remove it"));
    }
}
