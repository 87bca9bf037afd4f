//! `terramate` and its alias `orch`: metadata of the project and a stack, known without evaluating anything.

use super::GENERATION;
use crate::language::value::Value;
use crate::path::{Generation, ProjectPath};
use crate::project::Project;
use crate::project::stack::Stack;

/// The entry for the version of `orch`.
pub(super) const VERSION: &str = "version";

pub(super) fn stack_list(project: &Project) -> Value {
    let stacks = project.stacks.iter();
    Value::list(stacks.map(|(_, stack)| Value::string(stack.path.as_str())))
}

/// Returns the metadata of a project, without the entries that depend on a stack.
pub(super) fn of_project(project: &Project, stack_list: Value) -> Vec<(&'static str, Value)> {
    let root = &project.root;
    let root_name = root.file_name().unwrap_or_default().to_string_lossy();
    let fs = Value::object([
        ("absolute", Value::string(root.to_string_lossy())),
        ("basename", Value::string(root_name)),
    ]);
    let path = Value::object([("fs", fs)]);
    vec![
        (VERSION, Value::string(env!("CARGO_PKG_VERSION"))),
        ("root", Value::object([("path", path)])),
        ("stacks", Value::object([("list", stack_list)])),
    ]
}

/// The entries that depend on a stack. All but the first are older names for values in it.
pub(super) const OF_STACK: [&str; 4] = ["stack", "name", "path", "description"];

pub(super) fn of_stack(
    project: &Project,
    stack: &Stack,
    generation: Generation,
) -> Vec<(&'static str, Value)> {
    let directory = stack.path.directory();
    let path = directory.as_str();
    let description = stack.description.as_deref().unwrap_or_default();
    let basename = if path == "/" {
        path
    } else {
        directory.basename()
    };
    let mut own = vec![
        ("name", Value::string(&*stack.name)),
        ("description", Value::string(description)),
        ("tags", Value::list(stack.tags().map(Value::string))),
        (GENERATION, Value::from(u64::from(generation.get()))),
        (
            "path",
            Value::object([
                ("absolute", Value::string(path)),
                ("relative", Value::string(directory.relative())),
                ("basename", Value::string(basename)),
                (
                    "to_root",
                    Value::string(ProjectPath::root().relative_to(directory)),
                ),
            ]),
        ),
    ];
    if let Some(id) = &stack.id {
        own.push(("id", Value::string(&*id.value)));
    }
    if let Some(parent) = parent(project, stack) {
        let id = parent.id.as_ref().map_or("", |id| &id.value);
        let tags = Value::list(parent.tags().map(Value::string));
        let parent = Value::object([("id", Value::string(id)), ("tags", tags)]);
        own.push(("parent", parent));
    }
    vec![
        ("stack", Value::object(own)),
        ("name", Value::string(&*stack.name)),
        ("path", Value::string(path)),
        ("description", Value::string(description)),
    ]
}

/// Returns the stack that a stack is nested in: of several instances, the one with the same key. `None`
/// if there is none, or if there are several instances and none has the key.
fn parent<'p>(project: &'p Project, stack: &Stack) -> Option<&'p Stack> {
    let stacks = &project.stacks;
    let nearest = stacks.nearest_above(stack.path.directory());
    let only = nearest.only().map(|index| &stacks[index]);
    only.or_else(|| {
        let own = stacks.with_key(&nearest, stack.path.key());
        own.map(|index| &stacks[index])
    })
}
