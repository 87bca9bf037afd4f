//! The data that stacks use of each other, according to their Terraform and Terragrunt files.
//!
//! This module knows neither `input` blocks nor the order of stacks.

use std::collections::HashMap;

use super::code_use::UsedPlace;
use super::error::ChangeError;
use super::inputs;
use crate::diagnostic::{Code, Diagnostic};
use crate::path::ProjectPath;
use crate::project::config::OrderFrom;
use crate::project::discover::Listing;
use crate::project::stack::{DataKind, StackIndex, StackUse};
use crate::project::{Problems, Project};
use crate::source::{FileId, SourceFile, Span};

/// Adds to each stack the stacks whose data its Terraform and Terragrunt files use. `order_from`
/// has the kinds that order stacks, and with `all`, the other kinds are added too. A use of an
/// unknown stack is a warning if it would order stacks. Fails if no thread can be started.
pub fn add_code_uses(
    project: &mut Project,
    listing: &Listing,
    order_from: OrderFrom,
    all: bool,
    problems: &mut Problems,
) -> Result<(), ChangeError> {
    let wanted = OrderFrom {
        terragrunt: (all || order_from.terragrunt) && project.settings.terragrunt,
        remote_state: all || order_from.remote_state,
    };
    let directories = project.stacks.directories();
    let found = inputs::walk_present(project, listing, problems, |tree| {
        inputs::data(&tree.finding_data(), &directories, wanted)
    })?;
    let mut by_backend: HashMap<&str, Vec<&ProjectPath>> = HashMap::new();
    for (directory, data) in directories.iter().zip(&found) {
        for backend in &data.backends {
            by_backend.entry(backend).or_default().push(directory);
        }
    }
    let mut files: HashMap<ProjectPath, FileId> = HashMap::new();
    let mut uses: Vec<(StackIndex, StackUse)> = Vec::new();
    for (directory, data) in directories.iter().zip(&found) {
        for found in &data.uses {
            let orders = match found.kind {
                DataKind::Input => true,
                DataKind::Dependency | DataKind::Dependencies => order_from.terragrunt,
                DataKind::RemoteState => order_from.remote_state,
                DataKind::Expression => false,
            };
            let mut place = |sources: &mut crate::source::Sources| {
                let file = *files.entry(found.file.clone()).or_insert_with(|| {
                    sources.add(SourceFile {
                        path: found.file.clone(),
                        text: found.text.to_string(),
                    })
                });
                Span { file, ..found.span }
            };
            let Some(named) = &found.place else {
                if orders {
                    let span = place(&mut project.sources);
                    problems.diagnostics.push(unknown(found.kind, span));
                }
                continue;
            };
            let sources: Vec<&ProjectPath> = match named {
                UsedPlace::Directories(places) => {
                    let is_stack =
                        |place: &&ProjectPath| project.stacks.at(place.as_str()).first().is_some();
                    places.iter().find(is_stack).into_iter().collect()
                }
                UsedPlace::Backend(backend) => {
                    by_backend.get(&**backend).cloned().unwrap_or_default()
                }
            };
            for source in sources.into_iter().filter(|&source| source != directory) {
                let span = place(&mut project.sources);
                for user in project.stacks.at(directory.as_str()) {
                    for named in project.stacks.at(source.as_str()) {
                        let stack = project.stacks[named].path.clone();
                        let kind = found.kind;
                        uses.push((
                            user,
                            StackUse {
                                kind,
                                stack,
                                orders,
                                span,
                            },
                        ));
                    }
                }
            }
        }
    }
    for (stack, used) in uses {
        project.stacks.add_use(stack, used);
    }
    Ok(())
}

fn unknown(kind: DataKind, span: Span) -> Diagnostic {
    Diagnostic::warning(
        Code::UnknownReference,
        format!("the stack of this `{kind}` cannot be determined"),
    )
    .label(span, "more than text, locals and functions of paths")
    .note("it does not order stacks")
    .help("write the order as `after` in the `stack` block")
}
