//! What `after`, `before`, `wants` and `wanted_by` name.
//!
//! A path names every stack at or below it, a `tag:` filter every stack that matches, and neither
//! ever the stack that declares it. A directory that contains the declaring stack stands for the
//! stack *at* that directory, so `after = ["/parent"]` in `/parent/child` is true and harmless, and a
//! stack's own directory names only itself, whatever is nested in it.
//!
//! A directory or tag that names several stacks stays one [`Target`]; only the graph and the
//! selection look inside, once for all who refer to it.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::stack::{Stack, StackIndex, Stacks};
use crate::project::tag::TagFilter;
use crate::source::{Span, Spanned};

/// Suggestions look at all stacks, so a project full of wrong references gets a few only.
const MAX_SUGGESTIONS: usize = 20;

/// The attribute that a reference stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// Runs after what is named.
    After,
    /// Runs before what is named.
    Before,
    /// When selected, selects what is named.
    Wants,
    /// Is selected with what is named.
    WantedBy,
}

impl fmt::Display for ReferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReferenceKind::After => "after",
            ReferenceKind::Before => "before",
            ReferenceKind::Wants => "wants",
            ReferenceKind::WantedBy => "wanted_by",
        })
    }
}

/// A reference that names at least one stack.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The stack that declares it.
    pub from: StackIndex,
    /// The attribute.
    pub kind: ReferenceKind,
    /// What it names.
    pub target: Target,
    /// Where it is written.
    pub span: Span,
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// One stack.
    Stack(StackIndex),
    /// All stacks at or below a directory, which does not contain the declaring stack.
    Directory(ProjectPath),
    /// All stacks of a tag group, except the declaring stack.
    Tag(TagGroupIndex),
}

/// Names a group; see [`References::tag_group`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TagGroupIndex(u32);

/// The stacks that a tag filter means.
#[derive(Debug, Clone)]
pub struct TagGroup {
    /// The filter.
    pub filter: TagFilter,
    /// The stacks, in path order.
    pub members: Vec<StackIndex>,
}

/// All references of a project, by declaring stack, in the order of the attributes above.
#[derive(Debug, Default)]
pub struct References {
    /// The references.
    pub list: Vec<Reference>,
    tag_groups: Vec<TagGroup>,
}

impl References {
    /// Resolves all references of a project. What is wrong goes to `problems`: leaving the project, a
    /// filter that is none, naming nothing but oneself are errors; naming nothing is a warning, or
    /// an error where the project says `references = "strict"`.
    pub fn resolve(project: &Project, problems: &mut Vec<Diagnostic>) -> Self {
        let mut resolver = Resolver {
            project,
            references: References::default(),
            groups_by_filter: HashMap::new(),
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
        }
        resolver.references
    }

    /// Returns a tag group.
    pub fn tag_group(&self, index: TagGroupIndex) -> &TagGroup {
        &self.tag_groups[index.0 as usize]
    }

    /// Returns the stacks that a target stands for, in path order; of a tag group, all members.
    pub fn members(&self, target: &Target, stacks: &Stacks) -> Vec<StackIndex> {
        match target {
            Target::Stack(stack) => vec![*stack],
            Target::Directory(directory) => stacks.at_or_below(directory).collect(),
            Target::Tag(group) => self.tag_group(*group).members.clone(),
        }
    }

    /// Says whether a target stands for a stack, as one of [`Self::members`].
    pub fn means(&self, target: &Target, stack: StackIndex, stacks: &Stacks) -> bool {
        match target {
            Target::Stack(named) => *named == stack,
            Target::Directory(directory) => stacks[stack].path.is_at_or_below(directory),
            Target::Tag(group) => {
                let members = &self.tag_group(*group).members;
                members.binary_search(&stack).is_ok()
            }
        }
    }
}

struct Resolver<'a> {
    project: &'a Project,
    references: References,
    groups_by_filter: HashMap<TagFilter, TagGroupIndex>,
    suggestions: usize,
    problems: &'a mut Vec<Diagnostic>,
}

impl Resolver<'_> {
    fn resolve(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) {
        let target = match entry.value.strip_prefix("tag:") {
            Some(filter) => self.tag(from, filter, kind, entry),
            None => self.path(from, stack, kind, entry),
        };
        if let Some(target) = target {
            self.references.list.push(Reference {
                from,
                kind,
                target,
                span: entry.span,
            });
        }
    }

    fn tag(
        &mut self,
        from: StackIndex,
        filter: &str,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) -> Option<Target> {
        let filter = match TagFilter::parse(filter) {
            Ok(filter) => filter,
            Err(bad) => {
                let diagnostic = Diagnostic::error(
                    Code::InvalidTag,
                    format!("`{}` is not a tag filter", entry.value),
                );
                let diagnostic = diagnostic.label(entry.span, bad.to_string());
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
        match *self.references.tag_group(group).members.as_slice() {
            [] if !self.project.broken.is_empty() => None, // what is broken may carry it
            [] => {
                let mut wanted = filter.alternatives().flatten();
                let unknown = wanted.find(|tag| !stacks.has_tag(tag));
                let label = "no stack carries such tags";
                let diagnostic = self.names_nothing(kind, entry, label);
                self.suggestions += 1;
                self.problems.push(match unknown {
                    Some(tag) if self.suggestions <= MAX_SUGGESTIONS => {
                        diagnostic.did_you_mean(tag, stacks.tags())
                    }
                    _ => diagnostic,
                });
                None
            }
            [only] if only == from => {
                self.names_only_itself(kind, entry, "only this stack carries such tags");
                None
            }
            [only] => Some(Target::Stack(only)),
            _ => Some(Target::Tag(group)),
        }
    }

    fn path(
        &mut self,
        from: StackIndex,
        stack: &Stack,
        kind: ReferenceKind,
        entry: &Spanned<String>,
    ) -> Option<Target> {
        let Ok(path) = stack.path.resolve(&entry.value) else {
            let diagnostic = Diagnostic::error(
                Code::OutsideProject,
                format!("`{}` leads out of the project", entry.value),
            )
            .label(entry.span, "climbs above the project root");
            let help = "name a directory inside the project; a leading `/` is the project root";
            self.problems.push(diagnostic.help(help));
            return None;
        };
        let stacks = &self.project.stacks;
        if stack.path.is_at_or_below(&path) {
            return match stacks.at(path.as_str()) {
                Some(own) if own == from => {
                    self.names_only_itself(kind, entry, "this is the stack itself");
                    None
                }
                Some(above) => Some(Target::Stack(above)),
                None if self
                    .project
                    .broken
                    .iter()
                    .any(|broken| broken.parent().as_ref() == Some(&path)) =>
                {
                    None
                }
                None => {
                    let label = "contains this stack, and is not a stack itself";
                    let help = "a directory that contains the stack stands for the stack at that directory";
                    let diagnostic = self.names_nothing(kind, entry, label).help(help);
                    self.problems.push(diagnostic);
                    None
                }
            };
        }
        let mut named = stacks.at_or_below(&path);
        match (named.next(), named.next()) {
            (Some(only), None) => Some(Target::Stack(only)),
            (Some(_), Some(_)) => Some(Target::Directory(path)),
            // That something is broken there has been said; that it is missing is no news.
            (None, _) if self.broken_within(&path) => None,
            (None, _) => {
                let label = why_nothing(&self.project.root, &path);
                let mut diagnostic = self.names_nothing(kind, entry, label);
                self.suggestions += 1;
                if self.suggestions <= MAX_SUGGESTIONS {
                    let candidates = stacks.iter().map(|(_, stack)| stack.path.as_str());
                    diagnostic = diagnostic.did_you_mean(path.as_str(), candidates);
                }
                self.problems.push(diagnostic);
                None
            }
        }
    }

    fn broken_within(&self, directory: &ProjectPath) -> bool {
        let mut broken = self.project.broken.iter();
        broken.any(|broken| broken.is_at_or_below(directory))
    }

    fn names_nothing(
        &self,
        kind: ReferenceKind,
        entry: &Spanned<String>,
        label: &str,
    ) -> Diagnostic {
        let mut diagnostic = Diagnostic::warning(
            Code::UnknownReference,
            format!("`{}` in `{kind}` names no stack", entry.value),
        );
        if self.project.settings.strict_references {
            diagnostic.severity = Severity::Error;
            diagnostic = diagnostic.note("the project says `references = \"strict\"`");
        }
        diagnostic.label(entry.span, label)
    }

    fn names_only_itself(&mut self, kind: ReferenceKind, entry: &Spanned<String>, label: &str) {
        let diagnostic = Diagnostic::error(
            Code::SelfReference,
            format!("`{}` in `{kind}` names only the stack itself", entry.value),
        );
        self.problems
            .push(diagnostic.label(entry.span, label).help("remove it"));
    }
}

fn why_nothing(root: &Path, path: &ProjectPath) -> &'static str {
    match fs::symlink_metadata(path.to_host(root)) {
        Err(_) => "no such directory",
        Ok(metadata) if metadata.is_symlink() => "a symbolic link, which is not followed",
        Ok(metadata) if metadata.is_file() => "a file, and a reference names directories",
        Ok(_) => "no stack at or below this directory",
    }
}
