//! Explains why a variable differs: the steps from it to the changed file.
//!
//! A value differs because its definition differs, or something that the definition uses. The definitions on
//! both sides are followed together until one differs in a changed file.

use std::collections::{BTreeMap, HashSet};

use super::affected::stack_list;
use super::trace::{Side, each_use};
use crate::change::cause::{ChangeCause, Use, UseKind};
use crate::change::files::ChangedFiles;
use crate::git::ChangedFile;
use crate::path::ProjectPath;
use crate::project::discover::{is_configuration, is_skip_mark};
use crate::project::environment::Variable;
use crate::project::function_files::FileRead;
use crate::project::namespaces::{Definition, Used};
use crate::source::Span;

pub(super) struct Explainer<'a> {
    pub(super) now: Side<'a>,
    pub(super) before: Side<'a>,
    pub(super) files: &'a ChangedFiles,
    /// The changed configuration files behind links.
    pub(super) links: &'a BTreeMap<ProjectPath, ProjectPath>,
    /// The file that added or removed a stack.
    pub(super) stack_list: Option<&'a ChangedFile>,
}

/// The uses on both sides: now and at the base.
type Uses<'u, 'p> = (&'u [Used<'p>], &'u [Used<'p>]);

impl Explainer<'_> {
    /// Explains why a variable differs for a stack. At least one of the two definitions exists.
    pub(super) fn variable(
        &self,
        stack: &ProjectPath,
        now: Option<&Variable<'_>>,
        before: Option<&Variable<'_>>,
    ) -> Option<ChangeCause> {
        let step = match (now, before) {
            (Some(now), _) => self.now.variable(now),
            (None, before) => self.before.variable(before?),
        };
        let place = |variable: &Variable<'_>| variable.definition.value.span;
        if let Some((file, was)) = self.definition(now.map(place), before.map(place)) {
            let step = match before {
                Some(before) if was => self.before.variable(before),
                _ => step,
            };
            let (file, chain) = (file.clone(), vec![step]);
            return Some(ChangeCause { file, chain });
        }
        let mut search = Search {
            explainer: self,
            chain: vec![step.clone()],
            seen: HashSet::new(),
        };
        let found = search.difference((
            now.map_or(&[], |it| it.uses.as_slice()),
            before.map_or(&[], |it| it.uses.as_slice()),
        ));
        found
            .or_else(|| self.by_list(now, &step))
            .or_else(|| self.by_scope(stack, step))
    }

    /// Returns the changed file of a differing definition, and whether only the definition at the base was in
    /// it. Definitions are given by the places of their values.
    fn definition(&self, now: Option<Span>, before: Option<Span>) -> Option<(&ChangedFile, bool)> {
        let of_now = now.map(|value| (self.now.file(value), self.now.text(value)));
        let of_before = before.map(|value| (self.before.file(value), self.before.text(value)));
        if of_now == of_before {
            return None;
        }
        let changed = |definition: Option<(&ProjectPath, _)>, was| {
            let (file, _) = definition?;
            let file = self.links.get(file).unwrap_or(file);
            Some((self.files.at(file.as_str())?, was))
        };
        changed(of_now, false).or_else(|| changed(of_before, true))
    }

    /// Explains a difference by the list of all stacks.
    fn by_list(&self, now: Option<&Variable<'_>>, step: &Use) -> Option<ChangeCause> {
        let file = self.stack_list?;
        let now = now?;
        let mut found = None;
        let chain = &mut vec![step.clone()];
        let list = |chain: &[Use], place: Span| {
            let list = self.now.step(UseKind::StackList, place);
            chain.iter().cloned().chain([list]).collect::<Vec<Use>>()
        };
        if let Some(place) = stack_list(&now.definition.value) {
            found = Some(list(chain, place));
        }
        each_use(self.now, &now.uses, chain, &mut |used, chain| {
            if found.is_none()
                && let Used::Value(definition, _) = used
            {
                let mut named = None;
                definition.each_expression(&mut |expr| named = named.or_else(|| stack_list(expr)));
                found = named.map(|place| list(chain, place));
            }
        });
        let file = file.clone();
        found.map(|chain| ChangeCause { file, chain })
    }

    /// Explains a difference by the nearest changed configuration file at or above the stack, or any other:
    /// the fallback where a name means something else or leads nowhere.
    fn by_scope(&self, stack: &ProjectPath, step: Use) -> Option<ChangeCause> {
        let is_meant = |file: &&ChangedFile| {
            let name = file.path.basename().as_ref();
            is_configuration(name) || is_skip_mark(name)
        };
        let distance = |file: &&ChangedFile| {
            let parent = file.path.parent()?;
            let below = stack.is_at_or_below(&parent);
            below.then(|| stack.components().count() - parent.components().count())
        };
        let mut near: Vec<(usize, &ChangedFile)> = self
            .files
            .iter()
            .filter(is_meant)
            .filter_map(|file| Some((distance(&file)?, file)))
            .collect();
        near.sort_by_key(|(distance, _)| *distance);
        let file = near
            .first()
            .map(|(_, file)| *file)
            .or_else(|| self.files.iter().find(is_meant))
            .or_else(|| self.files.iter().next())?
            .clone();
        let chain = vec![step];
        Some(ChangeCause { file, chain })
    }
}

struct Search<'a, 'e> {
    explainer: &'e Explainer<'a>,
    chain: Vec<Use>,
    /// The definitions already compared, on either side.
    seen: HashSet<usize>,
}

impl Search<'_, '_> {
    /// Returns the first definition that differs in a changed file.
    fn difference(&mut self, (now, before): Uses<'_, '_>) -> Option<ChangeCause> {
        let values = |uses: &[Used<'_>]| -> Vec<(String, usize)> {
            let uses = uses.iter().enumerate();
            let value = |(index, used): (usize, &Used<'_>)| match used {
                Used::Value(definition, _) => Some((definition.name(), index)),
                Used::File(..) | Used::Generation(..) => None,
            };
            uses.filter_map(value).collect()
        };
        let by_name: BTreeMap<String, usize> = values(before).into_iter().rev().collect();
        let of_now = values(now);
        for (name, index) in &of_now {
            let counterpart = by_name.get(name).map(|&index| &before[index]);
            if let Some(cause) = self.value(Some(&now[*index]), counterpart) {
                return Some(cause);
            }
        }
        for (name, index) in by_name {
            let is_new = !of_now.iter().any(|(known, _)| *known == name);
            if is_new && let Some(cause) = self.value(None, Some(&before[index])) {
                return Some(cause);
            }
        }
        self.read(now, before)
    }

    fn value(&mut self, now: Option<&Used<'_>>, before: Option<&Used<'_>>) -> Option<ChangeCause> {
        let Some(Used::Value(seen, _)) = now.or(before) else {
            return None;
        };
        if !self.seen.insert(seen.address()) {
            return None;
        }
        let explainer = self.explainer;
        let place = |used: Option<&Used<'_>>| match used {
            Some(Used::Value(definition, _)) => Some(value_span(*definition)),
            _ => None,
        };
        let step = |side: Side<'_>, used: Option<&Used<'_>>| match used {
            Some(Used::Value(definition, _)) => Some(side.value(*definition)),
            _ => None,
        };
        let of_now = step(explainer.now, now);
        let of_before = step(explainer.before, before);
        if let Some((file, was)) = explainer.definition(place(now), place(before)) {
            let step = if was { of_before.or(of_now) } else { of_now };
            let chain = self.chain.iter().cloned().chain(step).collect();
            let file = file.clone();
            return Some(ChangeCause { file, chain });
        }
        let depth = self.chain.len();
        self.chain.extend(of_now.or(of_before));
        let found = self.difference((inner(now), inner(before)));
        self.chain.truncate(depth);
        found
    }

    /// Returns a changed file that a function reads on either side.
    fn read(&self, now: &[Used<'_>], before: &[Used<'_>]) -> Option<ChangeCause> {
        let explainer = self.explainer;
        let sides = [(explainer.now, now), (explainer.before, before)];
        let mut reads = sides.into_iter().flat_map(|(side, uses)| {
            uses.iter().filter_map(move |used| match used {
                Used::File(FileRead::Path(path), function) => {
                    let file = explainer.files.touching(path)?;
                    Some((file, side.read(*function)))
                }
                _ => None,
            })
        });
        reads.next().map(|(file, step)| ChangeCause {
            file: file.clone(),
            chain: self.chain.iter().cloned().chain([step]).collect(),
        })
    }
}

/// Returns what a global or a `let` depends on.
fn inner<'u, 'p>(used: Option<&'u Used<'p>>) -> &'u [Used<'p>] {
    match used {
        Some(Used::Value(_, computed_from)) => computed_from,
        _ => &[],
    }
}

/// Returns the text of a definition, as far as it is contiguous.
fn value_span(definition: Definition<'_>) -> Span {
    let mut whole: Option<Span> = None;
    definition.each_expression(&mut |expr| {
        let span = whole.get_or_insert(expr.span);
        if expr.span.file == span.file {
            span.start = span.start.min(expr.span.start);
            span.end = span.end.max(expr.span.end);
        }
    });
    whole.unwrap_or(definition.span())
}
