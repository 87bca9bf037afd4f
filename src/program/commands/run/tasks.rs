//! The command of each stack, ready to start.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use orch::project::environment::Environment;
use orch::project::stack::StackIndex;
use orch::run::execute::{LookupError, ProgramFinder, Task};

use crate::program::commands::Loaded;
use crate::program::console;

/// Prepares the command of every stack, so that nothing starts if one cannot.
pub(super) fn tasks(
    loaded: &Loaded,
    command: &[OsString],
    environments: Vec<(StackIndex, Environment)>,
    run_id: &str,
) -> Result<HashMap<StackIndex, Task>, BTreeMap<LookupError, Vec<StackIndex>>> {
    let (name, arguments) = command.split_first().expect("clap requires a command");
    let host_path = std::env::var_os("PATH");
    let mut finder = ProgramFinder::new(name);
    let mut tasks = HashMap::new();
    let mut missing: BTreeMap<LookupError, Vec<StackIndex>> = BTreeMap::new();
    for (stack, mut environment) in environments {
        let directory = loaded.project.stacks[stack]
            .path
            .to_host(&loaded.project.root);
        let path = match path_of(&environment) {
            Some(path) => path.clone().map(OsString::from),
            None => host_path.clone(),
        };
        environment.insert("ORCH_RUN_ID".to_owned(), Some(run_id.to_owned()));
        match finder.find(&directory, path.as_deref()) {
            Ok(program) => {
                let (name, arguments) = (name.clone(), arguments.to_vec());
                tasks.insert(
                    stack,
                    Task {
                        name,
                        program,
                        arguments,
                        directory,
                        environment,
                    },
                );
            }
            Err(error) => missing.entry(error).or_default().push(stack),
        }
    }
    if missing.is_empty() {
        Ok(tasks)
    } else {
        Err(missing)
    }
}

pub(super) fn show_missing(loaded: &Loaded, missing: &BTreeMap<LookupError, Vec<StackIndex>>) {
    for (error, stacks) in missing {
        console::error(error);
        console::note(&format!(
            "needed in {}; nothing was run",
            loaded.names(stacks)
        ));
    }
}

/// Returns what a stack's own environment says about the `PATH`. On Windows its name may be written
/// in any case.
fn path_of(environment: &Environment) -> Option<&Option<String>> {
    let is_path = |name: &str| name == "PATH" || cfg!(windows) && name.eq_ignore_ascii_case("PATH");
    environment
        .iter()
        .find(|(name, _)| is_path(name))
        .map(|(_, value)| value)
}
