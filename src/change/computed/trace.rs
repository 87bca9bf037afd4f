//! The steps from a variable to what it depends on.

use std::collections::HashSet;

use crate::change::cause::{ChangeCause, Location, Use, UseKind};
use crate::change::inputs::{ChangedInput, Tree};
use crate::change::named::reads;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::environment::Variable;
use crate::project::function_files::FileRead;
use crate::project::namespaces::{Definition, Used};
use crate::project::stack::{AttributeRead, Stack};
use crate::source::Span;

#[derive(Clone, Copy)]
pub(super) struct Side<'p> {
    pub(super) project: &'p Project,
    /// Whether this is the side of the base.
    pub(super) was: bool,
}

impl<'p> Side<'p> {
    pub(super) fn file(&self, span: Span) -> &'p ProjectPath {
        &self.project.sources.file(span.file).path
    }

    pub(super) fn text(&self, span: Span) -> &'p str {
        let text = &self.project.sources.file(span.file).text;
        text.get(span.range()).unwrap_or_default()
    }

    pub(super) fn step(&self, kind: UseKind, span: Span) -> Use {
        let location = Location::of(span, self.project);
        Use { kind, location }
    }

    pub(super) fn variable(&self, variable: &Variable<'_>) -> Use {
        let name = &variable.definition.name;
        let kind = UseKind::Environment {
            name: name.text.clone(),
            was: self.was,
        };
        self.step(kind, name.span)
    }

    pub(super) fn value(&self, definition: Definition<'_>) -> Use {
        let (name, was) = (definition.name().into(), self.was);
        let kind = match definition {
            Definition::Global(_) => UseKind::Global { name, was },
            Definition::Let(_) => UseKind::Let { name, was },
        };
        self.step(kind, definition.span())
    }

    pub(super) fn read(&self, function: Span) -> Use {
        self.step(UseKind::Read(self.text(function).into()), function)
    }
}

pub(super) fn touch_read<'a>(tree: &Tree<'a>, read: &FileRead) -> Option<ChangedInput<'a>> {
    match read {
        FileRead::Path(path) => tree.touch_read(path, None),
        FileRead::Matching(directory, pattern) => tree.touch_read(directory, Some(pattern)),
    }
}

/// Visits every use of a value with the steps to it, each global and `let` once.
pub(super) fn each_use<'u, 'p>(
    side: Side<'p>,
    uses: &'u [Used<'p>],
    chain: &mut Vec<Use>,
    visit: &mut dyn FnMut(&'u Used<'p>, &[Use]),
) {
    let mut seen = HashSet::new();
    each_new_use(side, uses, chain, &mut seen, visit);
}

fn each_new_use<'u, 'p>(
    side: Side<'p>,
    uses: &'u [Used<'p>],
    chain: &mut Vec<Use>,
    seen: &mut HashSet<usize>,
    visit: &mut dyn FnMut(&'u Used<'p>, &[Use]),
) {
    for used in uses {
        match used {
            Used::Value(definition, inner) => {
                if !seen.insert(definition.address()) {
                    continue;
                }
                chain.push(side.value(*definition));
                visit(used, chain);
                each_new_use(side, inner, chain, seen, visit);
            }
            Used::File(_, function) => {
                chain.push(side.read(*function));
                visit(used, chain);
            }
            // A generation is no file: it differs only in the state.
            Used::Generation(..) => continue,
        }
        chain.pop();
    }
}

/// Returns the steps to a file that a function reads for an attribute of a `stack` block.
pub(super) fn steps_of(side: Side<'_>, read: &AttributeRead) -> [Use; 2] {
    let name = &read.attribute;
    let attribute = side.step(UseKind::Attribute(name.text.clone()), name.span);
    [attribute, side.read(read.function)]
}

/// Returns the first changed file that a function reads for an attribute of a `stack` block, with the steps
/// to it.
pub(super) fn read_in_block(side: Side<'_>, tree: &Tree<'_>, stack: &Stack) -> Option<ChangeCause> {
    reads(stack).find_map(|read| {
        let touch = touch_read(tree, &read.read)?;
        Some(ChangeCause {
            file: touch.file.clone(),
            chain: steps_of(side, read)
                .into_iter()
                .chain(touch.links)
                .collect(),
        })
    })
}

/// Returns the first changed file that a function reads for a variable, with the steps to it.
pub(super) fn read_by(
    now: Side<'_>,
    tree: &Tree<'_>,
    variable: &Variable<'_>,
) -> Option<ChangeCause> {
    let mut chain = vec![now.variable(variable)];
    let mut found = None;
    each_use(now, &variable.uses, &mut chain, &mut |used, chain| {
        if found.is_none()
            && let Used::File(read, _) = used
            && let Some(touch) = touch_read(tree, read)
        {
            found = Some(ChangeCause {
                file: touch.file.clone(),
                chain: chain.iter().cloned().chain(touch.links).collect(),
            });
        }
    });
    found
}
