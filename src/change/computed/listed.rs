//! Adds the sources of a stack's environment to its inputs.

use std::collections::HashSet;

use super::trace::{self, Side};
use super::{HostEnvironment, environments};
use crate::change::cause::{ChangeCause, Ignored, Input, InputLocation, Use, UseKind};
use crate::change::error::ChangeError;
use crate::change::files::ChangedFiles;
use crate::change::inputs::{CollectedInputs, InputProblems, Tree, place_read};
use crate::change::named::reads;
use crate::project::discover::Listing;
use crate::project::function_files::FileRead;
use crate::project::namespaces::Used;
use crate::project::stack::StackIndex;
use crate::project::{self, Project};

/// Adds to the inputs of a stack the files that its environment depends on and that are not listed
/// yet: files with definitions, files that functions read, and the file that hid the stack at the
/// base. A file that is read has changed if `files` has it; a file with definitions, if `cause`
/// names it. Fails if no thread can be started.
pub fn add_computed(
    project: &Project,
    listing: &Listing,
    host: &HostEnvironment,
    files: Option<&ChangedFiles>,
    cause: Option<&ChangeCause>,
    stack: StackIndex,
    inputs: &mut Vec<Input>,
) -> Result<(), ChangeError> {
    if !project.settings.environment {
        return Ok(());
    }
    let nothing = ChangedFiles::default();
    let ignored = InputProblems::default();
    let tree = Tree::new(&project.root, listing, files.unwrap_or(&nothing), &ignored);
    let mut found = project::pool()?.install(|| evaluate(project, host, &tree, stack));
    let is_computed = |cause: &&ChangeCause| {
        matches!(
            cause.chain.first().map(|step| &step.kind),
            Some(UseKind::Environment { .. } | UseKind::Attribute(_) | UseKind::Hidden)
        )
    };
    if let Some(ChangeCause { file, chain }) = cause.filter(is_computed) {
        let location = InputLocation::Path(file.path.clone());
        let is_known = |input: &Input| input.change.as_ref() == Some(file);
        let known = found.iter().position(|input| input.location == location);
        if !found.iter().any(is_known) {
            found.extend(known.is_none().then(|| Input {
                location,
                chain: Vec::new(),
                change: None,
                links: Vec::new(),
                uncounted: Vec::new(),
                ignored: Ignored::Nothing,
            }));
            let index = known.unwrap_or(found.len() - 1);
            found[index].chain.clone_from(chain);
            found[index].change = Some(file.clone());
        }
    }
    let known: HashSet<String> = inputs.iter().map(|it| it.location.to_string()).collect();
    found.retain(|input| input.change.is_some() || !known.contains(&input.location.to_string()));
    inputs.extend(found);
    Ok(())
}

fn evaluate(
    project: &Project,
    host: &HostEnvironment,
    tree: &Tree<'_>,
    stack: StackIndex,
) -> Vec<Input> {
    let side = Side {
        project,
        was: false,
    };
    let own = |path| project.stacks.nearest_above(path).any(|own| own == stack);
    let mut inputs = CollectedInputs::default();
    let add_read = |inputs: &mut CollectedInputs, read: &FileRead, chain: &[Use]| {
        let place = match read {
            FileRead::Path(path) => place_read(path.clone(), None),
            FileRead::Matching(directory, pattern) => place_read(directory.clone(), Some(pattern)),
        };
        if let Some(place) = place {
            inputs.add(place, &[], chain, trace::touch_read(tree, read));
        }
    };
    for read in reads(&project.stacks[stack]) {
        add_read(&mut inputs, &read.read, &trace::steps_of(side, read));
    }
    for variable in environments(project, host).variables(stack) {
        let mut chain = vec![side.variable(&variable)];
        let file = side.file(variable.definition.name.span);
        if !own(file) {
            inputs.add(InputLocation::Path(file.clone()), &[], &chain, None);
        }
        trace::each_use(
            side,
            &variable.uses,
            &mut chain,
            &mut |used, chain| match used {
                Used::Value(definition, _) => {
                    let file = side.file(definition.span());
                    if !own(file) {
                        inputs.add(InputLocation::Path(file.clone()), &[], chain, None);
                    }
                }
                Used::File(read, _) => add_read(&mut inputs, read, chain),
                Used::Generation(..) => {}
            },
        );
    }
    inputs.in_order()
}
