//! The metadata of a stack, as Terramate shows it.

use serde_json::Value as Json;

use crate::path::ProjectPath;
use crate::project::stack::Stack;
use crate::source::Spanned;

/// Returns the lines of `terramate debug show metadata` for a stack.
pub fn metadata_lines(stack: &Stack) -> Vec<String> {
    let directory = stack.path.directory();
    let text = |text: &str| Json::from(text).to_string();
    let list = |list: &[Spanned<String>]| {
        let texts: Vec<&str> = list.iter().map(|it| it.value.as_str()).collect();
        Json::from(texts).to_string()
    };
    let basename = match directory.basename() {
        "" => "/",
        name => name,
    };
    let id = stack.id.as_ref().map(|id| ("id", text(&id.value)));
    let description = stack.description.as_deref().unwrap_or_default();
    let others = [
        ("name", text(&stack.name)),
        ("description", text(description)),
        ("tags", list(&stack.tags)),
        ("before", list(&stack.before)),
        ("after", list(&stack.after)),
        ("wants", list(&stack.wants)),
        ("wanted_by", list(&stack.wanted_by)),
        ("path.absolute", text(directory.as_str())),
        ("path.basename", text(basename)),
        ("path.relative", text(directory.relative())),
        (
            "path.to_root",
            text(&ProjectPath::root().relative_to(directory)),
        ),
    ];
    let all = id.into_iter().chain(others);
    all.map(|(name, value)| format!("terramate.stack.{name}={value}"))
        .collect()
}
