//! Turns a `stack` block into [`Stack`]s: the types, defaults and checks of its attributes.

use std::collections::{HashMap, HashSet};

use super::instances::{Instance, instances};
use super::names::BlockNames;
use super::watch::watched;
use super::{AttributeRead, Stack, StackMode};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::{Attribute, Block};
use crate::language::value::Value;
use crate::path::{ProjectPath, StackPath};
use crate::project::attempt::{self, AttemptSettings};
use crate::project::blocks::{elements, is_name, misplaced_block, only_attributes, twice, value};
use crate::project::discover::SourceTree;
use crate::project::lifecycle::Lifecycle;
use crate::project::lifecycle::block::{BlockPlace, LIFECYCLE, LifecycleReader};
use crate::project::tag::tag_problem;
use crate::source::{Span, Spanned};

/// The attributes of a `stack` block. The last two belong to Terramate's bundles and mean nothing here.
const ATTRIBUTES: [&str; 16] = [
    "id",
    "name",
    "description",
    "tags",
    "after",
    "before",
    "wants",
    "wanted_by",
    "watch",
    FOR_EACH,
    "driver",
    "mode",
    "labels",
    "autodeploy",
    "from_bundle_file",
    "from_bundle_label",
];

/// The attribute that declares instances.
pub(crate) const FOR_EACH: &str = "for_each";

const RUN: &str = "run";

const MAX_ID: usize = 64;

pub(crate) enum Declared {
    Stack(Box<Stack>),
    /// One for each key of `for_each`; there may be none.
    Instances {
        stacks: Vec<Stack>,
        for_each: Span,
        reads: Vec<AttributeRead>,
    },
    /// Unknown stacks, since `for_each` is wrong.
    Unknown,
}

/// Evaluates the `stack` block of the directory `path`. Errors go to `problems`; the stacks have the
/// defaults for wrong attributes.
pub(crate) fn from_block(
    block: &Block,
    path: &ProjectPath,
    files: &SourceTree,
    problems: &mut Vec<Diagnostic>,
) -> Declared {
    check_shape(block, problems);
    if StackPath::parse(path.as_str()).is_some_and(|path| path.generation().is_some()) {
        let message =
            format!("the directory name `{path}` is reserved for old generations of stacks");
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        problems.push(
            diagnostic
                .label(block.kind.span, "a stack cannot have this name")
                .help("rename the directory"),
        );
    }
    let Some(for_each) = block.body.attribute(FOR_EACH) else {
        let stack = one(block, path.clone().into(), None, files, problems);
        return Declared::Stack(Box::new(stack));
    };
    let names = BlockNames::new(files, path, None);
    let Some(instances) = instances(for_each, &names, problems) else {
        return Declared::Unknown;
    };
    let reads: Vec<AttributeRead> = names.reads_of(for_each).collect();
    let mut found = Vec::new();
    let stack = |Instance { key, each }| {
        let path = StackPath::instance(path.clone(), key);
        let mut stack = one(block, path, Some(&each), files, &mut found);
        stack.reads.extend(reads.iter().cloned());
        stack
    };
    let stacks = instances.into_iter().map(stack).collect();
    // A problem of one instance usually affects all: report it once.
    let mut places = HashSet::new();
    found.retain(|diagnostic| {
        let place = diagnostic.labels.first().map(|label| label.span);
        places.insert((diagnostic.code, place))
    });
    problems.extend(found);
    Declared::Instances {
        stacks,
        for_each: for_each.value.span,
        reads,
    }
}

fn check_shape(block: &Block, problems: &mut Vec<Diagnostic>) {
    for label in &block.labels {
        let diagnostic = Diagnostic::error(Code::UnexpectedLabel, "a `stack` block has no labels");
        let help = format!(
            "remove the label; to name the stack, write `name = \"{}\"` inside the block",
            label.text
        );
        problems.push(diagnostic.label(label.span, "unexpected label").help(help));
    }
    for inner in &block.body.blocks {
        if [RUN, LIFECYCLE].contains(&&*inner.kind.text) {
            continue; // see `attempts` and `lifecycle`
        }
        let label = "the blocks in a `stack` block are `run` and `lifecycle`";
        let diagnostic =
            misplaced_block(inner, block, label).label(block.kind.span, "in this block");
        problems.push(diagnostic.help(format!("attributes are: {}", ATTRIBUTES[..14].join(", "))));
    }
    only_attributes(block, &ATTRIBUTES, problems);
}

fn one(
    block: &Block,
    path: StackPath,
    each: Option<&Value>,
    files: &SourceTree,
    problems: &mut Vec<Diagnostic>,
) -> Stack {
    let directory = path.directory().clone();
    let directory_name = if directory.is_root() {
        files
            .root
            .file_name()
            .map_or("/".into(), |name| name.to_string_lossy().into_owned())
    } else {
        directory.basename().to_owned()
    };
    let mut stack = Stack {
        path,
        each: each.cloned(),
        id: None,
        name: directory_name,
        description: None,
        tags: Vec::new(),
        after: Vec::new(),
        before: Vec::new(),
        wants: Vec::new(),
        wanted_by: Vec::new(),
        uses: Vec::new(),
        watch: Vec::new(),
        driver: None,
        mode: StackMode::Manage,
        labels: Vec::new(),
        autodeploy: false,
        lifecycle: None,
        reads: Vec::new(),
        span: block.kind.span,
    };
    let names = BlockNames::new(files, &directory, each);
    for attribute in &block.body.attributes {
        match &*attribute.name.text {
            "id" => {
                stack.id = string(attribute, &names, problems).filter(|id| check_id(id, problems));
            }
            "name" => {
                if let Some(name) = string(attribute, &names, problems) {
                    stack.name = name.value;
                }
            }
            "description" => {
                stack.description = string(attribute, &names, problems).map(|text| text.value);
            }
            "tags" => {
                stack.tags = strings(attribute, &names, problems);
                stack.tags.retain(|tag| check_tag(tag, problems));
            }
            "after" => stack.after = strings(attribute, &names, problems),
            "before" => stack.before = strings(attribute, &names, problems),
            "wants" => stack.wants = strings(attribute, &names, problems),
            "wanted_by" => stack.wanted_by = strings(attribute, &names, problems),
            "watch" => {
                let entries = strings(attribute, &names, problems);
                stack.watch = entries
                    .iter()
                    .filter_map(|entry| watched(entry, &directory, files, problems))
                    .collect();
            }
            "driver" => stack.driver = string(attribute, &names, problems),
            "mode" => {
                let written = string(attribute, &names, problems);
                stack.mode = written.map_or(StackMode::Manage, |it| mode(&it, problems));
            }
            "labels" => {
                let labels = strings(attribute, &names, problems);
                stack.labels = labels.into_iter().map(|label| label.value).collect();
            }
            "autodeploy" => stack.autodeploy = flag(attribute, &names, problems),
            "from_bundle_file" | "from_bundle_label" => _ = string(attribute, &names, problems),
            _ => {} // see `check_shape` and `from_block`
        }
        stack.reads.extend(names.reads_of(attribute));
    }
    stack.lifecycle = lifecycle(block, stack.mode, &directory, &names, problems);
    stack
}

/// Reads the `lifecycle` block of a stack. The files that functions read there are no inputs of the stack,
/// as rules are none.
fn lifecycle(
    block: &Block,
    mode: StackMode,
    directory: &ProjectPath,
    names: &BlockNames,
    problems: &mut Vec<Diagnostic>,
) -> Option<Box<Lifecycle>> {
    let mut blocks = block.body.blocks(LIFECYCLE);
    let first = blocks.next()?;
    let place = match mode {
        StackMode::Manage => BlockPlace::Stack,
        StackMode::Read => BlockPlace::ReadStack,
    };
    let mut reader = LifecycleReader::new(place, directory, names);
    reader.local(first, problems);
    for second in blocks {
        problems.push(twice(second, first.kind.span));
    }
    let lifecycle = reader.finish();
    (!lifecycle.is_empty()).then(|| Box::new(lifecycle))
}

/// Reads the `run` block in the `stack` block of a directory, which holds for the stacks nested in it
/// as well. Errors go to `problems`, and a wrong setting
/// counts as not set.
pub(crate) fn attempts(block: &Block, problems: &mut Vec<Diagnostic>) -> AttemptSettings {
    let mut blocks = block.body.blocks(RUN);
    let Some(first) = blocks.next() else {
        return AttemptSettings::default();
    };
    for second in blocks {
        problems.push(twice(second, first.kind.span));
    }
    attempt::block::run(first, problems)
}

fn wrong_type(attribute: &Attribute, span: Span, wanted: Wanted, found: &Value) -> Diagnostic {
    let name = &attribute.name.text;
    let (wanted, help) = match wanted {
        Wanted::String => ("a string", format!("write `{name} = \"…\"`")),
        Wanted::Bool => ("`true` or `false`", format!("write `{name} = true`")),
        Wanted::Strings => ("a list of strings", format!("write `{name} = [\"…\"]`")),
    };
    Diagnostic::error(Code::WrongType, format!("`{name}` must be {wanted}"))
        .label(span, format!("this is {}", found.type_name()))
        .help(help)
}

#[derive(Clone, Copy)]
enum Wanted {
    Bool,
    String,
    Strings,
}

/// Evaluates an attribute that must be a string; the empty string counts as not set.
fn string(
    attribute: &Attribute,
    names: &BlockNames,
    problems: &mut Vec<Diagnostic>,
) -> Option<Spanned<String>> {
    let span = attribute.value.span;
    match value(&attribute.value, names, problems)? {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) if text.contains('\0') => {
            // It could not be passed to a command.
            let message = format!("`{}` has a NUL character", attribute.name.text);
            problems.push(
                Diagnostic::error(Code::InvalidValue, message)
                    .label(span, "a string cannot have one"),
            );
            None
        }
        Value::String(text) => Some(Spanned {
            value: text.to_string(),
            span,
        }),
        other => {
            problems.push(wrong_type(attribute, span, Wanted::String, &other));
            None
        }
    }
}

/// Evaluates an attribute that must be `true` or `false`; `null` counts as `false`.
fn flag(attribute: &Attribute, names: &BlockNames, problems: &mut Vec<Diagnostic>) -> bool {
    match value(&attribute.value, names, problems) {
        Some(Value::Bool(flag)) => flag,
        None | Some(Value::Null) => false,
        Some(other) => {
            let span = attribute.value.span;
            problems.push(wrong_type(attribute, span, Wanted::Bool, &other));
            false
        }
    }
}

/// Evaluates an attribute that must be a list of distinct strings; `null` counts as not set.
fn strings(
    attribute: &Attribute,
    names: &BlockNames,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Spanned<String>> {
    let whole = attribute.value.span;
    let items = match value(&attribute.value, names, problems) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Tuple(items) | Value::List(items)) => items,
        Some(other) => {
            problems.push(wrong_type(attribute, whole, Wanted::Strings, &other));
            return Vec::new();
        }
    };
    let mut first_places: HashMap<&str, Span> = HashMap::new();
    let mut strings = Vec::with_capacity(items.len());
    for (index, (span, item)) in elements(&attribute.value, &items).enumerate() {
        let Value::String(text) = item else {
            problems.push(wrong_type(attribute, span, Wanted::Strings, item));
            continue;
        };
        if let Some(&first) = first_places.get(&**text) {
            let message = format!(
                "`{text}` occurs twice in `{}` (element {})",
                attribute.name.text,
                index + 1
            );
            let diagnostic = Diagnostic::error(Code::DuplicateEntry, message).again(span, first);
            problems.push(diagnostic.help("remove one of them"));
            continue;
        }
        first_places.insert(text, span);
        strings.push(Spanned {
            value: text.to_string(),
            span,
        });
    }
    strings
}

fn check_id(id: &Spanned<String>, problems: &mut Vec<Diagnostic>) -> bool {
    let problem = if !is_name(&id.value) {
        "an id has only ASCII letters, digits, `-` and `_`".to_owned()
    } else if id.value.len() > MAX_ID {
        format!(
            "an id has at most {MAX_ID} characters; this one has {}",
            id.value.len()
        )
    } else {
        return true;
    };
    let message = format!("`{}` cannot be the id of a stack", id.value);
    problems.push(Diagnostic::error(Code::InvalidValue, message).label(id.span, problem));
    false
}

fn mode(written: &Spanned<String>, problems: &mut Vec<Diagnostic>) -> StackMode {
    match written.value.as_str() {
        "manage" => StackMode::Manage,
        "read" => StackMode::Read,
        other => {
            let message = format!("`{other}` is not a mode of a stack");
            let diagnostic = Diagnostic::error(Code::InvalidValue, message)
                .label(written.span, "expected `\"manage\"` or `\"read\"`");
            problems.push(diagnostic.help(
                "`read` is for stacks that own nothing: they are only read, for the outputs that others use",
            ));
            StackMode::Manage
        }
    }
}

fn check_tag(tag: &Spanned<String>, problems: &mut Vec<Diagnostic>) -> bool {
    if tag.value.is_empty() {
        // Terramate accepts it.
        let empty = Diagnostic::warning(Code::InvalidTag, "a tag is empty")
            .label(tag.span, "no filter matches it");
        problems.push(empty.help("remove it"));
    }
    let Some(problem) = tag_problem(&tag.value) else {
        return true;
    };
    let message = format!("`{}` cannot be a tag", tag.value);
    problems.push(Diagnostic::error(Code::InvalidTag, message).label(tag.span, problem));
    false
}
