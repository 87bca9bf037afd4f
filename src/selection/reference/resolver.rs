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
                resolver.resolve(index, stack, kind, entry);
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

impl ReferenceResolver<'_> {
    fn resolve(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) {
        if let Some(target) = self.target(from, stack, kind, entry) {
            self.references.list.push(Reference {
                from,
                kind,
                target,
                output: None,
                span: entry.span,
            });
        }
    }

    /// Resolves an entry of `replace_triggered_by` like one of `after`, except that the named stack must be
    /// able to change.
    fn trigger(&mut self, from: StackIndex, stack: &Stack, trigger: &Spanned<ReplaceTrigger>) {
        let span = trigger.span;
        let value = trigger.value.reference.clone();
        let kind = ReferenceKind::ReplaceTriggeredBy;
        let Some(target) = self.target(from, stack, kind, &Spanned { value, span }) else {
            return;
        };
        let reference = Reference {
            from,
            kind,
            target,
            output: trigger.value.output.clone(),
            span,
        };
        let written = &trigger.value.reference;
        let wrong = |message: String, label: &str, help: &str| {
            let diagnostic = Diagnostic::error(Code::InvalidValue, message);
            diagnostic.label(span, label).help(help)
        };
        let is_one = matches!(reference.target, ReferenceTarget::Stack(_));
        if reference.output.is_some() && !is_one {
            self.problems.push(wrong(
                format!("`{written}` in `{kind}` names an output of several stacks"),
                "an output belongs to one stack",
                "write one stack before the `#`",
            ));
            return;
        }
        if !self.names_managed(&reference) {
            self.problems.push(wrong(
                format!("`{written}` in `{kind}` is only read, and never changes"),
                "its `mode` is `\"read\"`",
                "name the stack that manages it",
            ));
            return;
        }
        self.references.list.push(reference);
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

    fn target(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) -> Option<ReferenceTarget> {
        match entry.value.strip_prefix("tag:") {
            Some(filter) => self.tag(from, filter, kind, entry),
            None => self.path(from, stack, kind, entry),
        }
    }

    fn tag(
        &mut self,
        from: StackIndex,
        filter: &str,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) -> Option<ReferenceTarget> {
        let has_empty = filter.split([',', ':']).any(str::is_empty);
        let filter = match TagFilter::parse(filter) {
            Ok(filter) => filter,
            Err(bad) => {
                let diagnostic = Diagnostic::error(
                    Code::InvalidTag,
                    format!("`{}` is not a tag filter", entry.value),
                )
                .label(entry.span, bad.to_string());
                self.problems
                    .push(diagnostic.help("write `tag:a:b` for both tags, `tag:a,b` for either"));
                return None;
            }
        };
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

    fn path(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) -> Option<ReferenceTarget> {
        let (written, key) = self.split_key(stack, &entry.value);
        let Ok(path) = stack.path.directory().resolve(written) else {
            let diagnostic = Diagnostic::outside_project(&entry.value, entry.span);
            let help = "name a directory inside the project; a leading `/` is the project root";
            self.problems.push(diagnostic.help(help));
            return None;
        };
        if let Some(key) = key {
            return self.instances(from, stack, kind, entry, path, &key);
        }
        let stacks = &self.project.stacks;
        if stack.path.directory().is_at_or_below(&path) {
            return self.enclosing(from, stack, kind, entry, path);
        }
        let mut named = stacks.at_or_below(&path);
        match (named.next(), named.next()) {
            (Some(only), None) => Some(ReferenceTarget::Stack(only)),
            (Some(_), Some(_)) => Some(ReferenceTarget::Directory(path)),
            // Another diagnostic explains the broken file there.
            (None, _) if self.broken_within(&path) || !self.explains => None,
            (None, _) => {
                let label = dangling::why_nothing(self.project, &path);
                let mut diagnostic = self.dangling(kind, entry, &path, None, label);
                self.suggestions += 1;
                if self.suggestions <= MAX_SUGGESTIONS {
                    let others = stacks.iter().filter(|(other, _)| *other != from);
                    let candidates = others.map(|(_, other)| other.path.as_str());
                    diagnostic = diagnostic.did_you_mean(path.as_str(), candidates);
                }
                self.problems.push(diagnostic);
                None
            }
        }
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
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
        directory: ProjectPath,
        key: &KeyFilter,
    ) -> Option<ReferenceTarget> {
        let stacks = &self.project.stacks;
        let here = stacks.at(directory.as_str());
        let mut named = stacks.instances(&here, key);
        match (named.next(), named.next()) {
            // All instances share one block: for the others, the reference makes sense.
            (Some(only), None) if only == from => None,
            (Some(only), None) => Some(ReferenceTarget::Stack(only)),
            (Some(_), Some(_)) => self.others_beside(from, directory, stack),
            (None, _) if self.broken_within(&directory) || !self.explains => None,
            (None, _) => {
                let label = match here.first() {
                    None => dangling::why_nothing(self.project, &directory),
                    Some(first) if stacks[first].path.key().is_some() => "no instance has this key",
                    Some(_) => "this stack has no instances",
                };
                let mut diagnostic = self.dangling(kind, entry, &directory, Some(key), label);
                self.suggestions += 1;
                if self.suggestions <= MAX_SUGGESTIONS {
                    let others = here.filter(|&other| other != from);
                    let candidates = others.map(|other| stacks[other].path.as_str());
                    let wanted = format!("{directory}{key}");
                    diagnostic = diagnostic.did_you_mean(&wanted, candidates);
                }
                self.problems.push(diagnostic);
                None
            }
        }
    }

    /// Returns the target for the instances in a directory, without the declaring stack if it is one of them;
    /// `None` if no other is left.
    fn others_beside(
        &self,
        from: StackIndex,
        directory: ProjectPath,
        stack: &Stack,
    ) -> Option<ReferenceTarget> {
        let here = self.project.stacks.at(directory.as_str());
        let is_inside = *stack.path.directory() == directory;
        let mut others = here.filter(|&other| other != from || !is_inside);
        match (others.next(), others.next()) {
            (Some(only), None) => Some(ReferenceTarget::Stack(only)),
            (Some(_), Some(_)) => Some(ReferenceTarget::Instances(directory)),
            (None, _) => None,
        }
    }

    /// Resolves a directory that contains the declaring stack or is its own.
    fn enclosing(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
        directory: ProjectPath,
    ) -> Option<ReferenceTarget> {
        if directory == *stack.path.directory() {
            if stack.path.key().is_some() {
                return self.others_beside(from, directory, stack);
            }
            self.names_itself(kind, entry);
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
        let mut others = stacks.at_or_below_except(&directory, stack.path.directory());
        match (others.next(), others.next()) {
            (Some(only), None) => Some(ReferenceTarget::Stack(only)),
            (Some(_), Some(_)) => Some(ReferenceTarget::Enclosing(directory)),
            (None, _) if self.broken_within(&directory) || !self.explains => None,
            (None, _) => {
                let label = "no other stack at or below this directory";
                let diagnostic = self.dangling(kind, entry, &directory, None, label);
                self.problems.push(diagnostic);
                None
            }
        }
    }

    fn broken_within(&self, directory: &ProjectPath) -> bool {
        let mut broken = self.project.broken.iter();
        broken.any(|broken| broken.is_at_or_below(directory))
    }

    /// Returns the diagnostic for a path that names no other stack, and remembers it.
    fn dangling(
        &mut self,
        kind: ReferenceKind,
        entry: &Spanned<String>,
        path: &ProjectPath,
        key: Option<&KeyFilter>,
        label: &str,
    ) -> Diagnostic {
        let diagnostic = dangling::names_nothing(self.project, kind, entry, label);
        self.references.dangling.push(Dangling {
            path: path.clone(),
            key: key.cloned(),
            span: entry.span,
            message: diagnostic.message.clone(),
        });
        diagnostic
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
