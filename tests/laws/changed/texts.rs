//! What files say, in a form that the model need not parse.

use std::collections::BTreeMap;

use crate::model::{EACH_KEY, literal};

/// The files of a project at one moment, by path relative to its root. There are no empty
/// directories.
pub(super) type Snapshot = BTreeMap<String, File>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) text: Text,
    /// Any number, so that a file can change and still mean the same.
    pub(super) salt: u8,
    pub(super) is_executable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    /// Text that nothing reads.
    Plain,
    Configuration(Configuration),
    Terraform(Vec<Item>),
    /// The same in JSON.
    Json(Vec<Item>),
    /// Terraform with a syntax error.
    Broken,
    /// A file of variables that sets the only one.
    Settings(&'static str),
    GitIgnore(Vec<&'static str>),
    Trigger(Trigger),
    /// A symbolic link, to this target.
    Link(String),
}

/// What a trigger file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trigger {
    /// The directory whose stacks it is for.
    pub(super) directory: &'static str,
    /// The key of the only instance that it is for.
    pub(super) key: Option<&'static str>,
    /// Whether the stacks are to count as changed, or as unchanged.
    pub(super) is_changed: bool,
}

/// What a configuration file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) stack: Option<StackBlock>,
    pub(super) imports: Vec<String>,
    pub(super) ignore: Vec<&'static str>,
    pub(super) is_root: bool,
}

/// What a `stack` block says, for each instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StackBlock {
    pub(super) for_each: Option<ForEach>,
    pub(super) watch: Vec<&'static str>,
    /// Its description is the text of the first of these files that exists.
    pub(super) described_by: Vec<String>,
}

/// Where the keys of instances come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ForEach {
    Keys(Vec<&'static str>),
    /// The text of this file is the only key; there is none without it.
    File(String),
}

/// What a text says for an instance.
pub(super) fn said(text: &str, key: Option<&str>) -> String {
    text.replace(EACH_KEY, key.unwrap_or("none"))
}

/// What a Terraform file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Module(String),
    /// A module that is called with a value for the only variable.
    Calling(String, &'static str),
    /// `file`, in a directory relative to the module, with the name that the only variable has.
    ByVariable(String),
    Read {
        function: &'static str,
        from: From,
        path: String,
    },
    /// `fileset`, with its pattern.
    Set {
        from: From,
        path: String,
        pattern: &'static str,
    },
}

/// What a path is relative to, and how that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Module,
    /// `path.root`.
    Root,
    /// Nothing, which means the same.
    Bare,
}

impl File {
    pub(super) fn new(text: Text) -> Self {
        File {
            text,
            salt: 0,
            is_executable: false,
        }
    }

    /// Returns whether git sees a difference.
    pub(super) fn differs(&self, other: &File) -> bool {
        (self.link(), self.render(), self.is_executable)
            != (other.link(), other.render(), other.is_executable)
    }

    pub(super) fn link(&self) -> Option<&str> {
        match &self.text {
            Text::Link(target) => Some(target),
            _ => None,
        }
    }

    /// Returns what counts of a configuration file: comments and descriptions do not.
    pub(super) fn meaning(&self) -> Option<Configuration> {
        let mut configuration = self.configuration()?.clone();
        if let Some(stack) = &mut configuration.stack {
            stack.described_by.clear();
        }
        Some(configuration)
    }

    pub(super) fn configuration(&self) -> Option<&Configuration> {
        match &self.text {
            Text::Configuration(configuration) => Some(configuration),
            _ => None,
        }
    }

    /// What a Terraform file of this name names, each with its line where it has one.
    pub(super) fn items(&self, is_json: bool) -> Vec<(Option<usize>, &Item)> {
        match &self.text {
            Text::Terraform(items) if !is_json => {
                let line = |index| Some(ITEM_LINES * index + FIRST_ITEM_LINE);
                (0..).map(line).zip(items).collect()
            }
            Text::Json(items) if is_json => items.iter().map(|item| (None, item)).collect(),
            _ => Vec::new(),
        }
    }

    /// The text on disk; nothing for a link.
    pub(super) fn render(&self) -> String {
        let salt = self.salt;
        match &self.text {
            Text::Plain => format!("plain {salt}\n"),
            Text::Broken => format!("# {salt}\nmodule \"broken\" {{\n  source = \"./x\"\n"),
            Text::GitIgnore(lines) => format!("# {salt}\n{}\n", lines.join("\n")),
            Text::Settings(value) => format!("# {salt}\n{VARIABLE} = \"{value}\"\n"),
            Text::Link(_) => String::new(),
            Text::Trigger(trigger) => trigger.render(),
            Text::Configuration(configuration) => {
                format!("# {salt}\n{}", configuration.render())
            }
            Text::Terraform(items) => {
                let items = items.iter().enumerate();
                let items: String = items.map(|(n, item)| item.render(n)).collect();
                format!("# {salt}\n{items}")
            }
            Text::Json(items) => {
                let mut modules = serde_json::Map::new();
                let mut reads = serde_json::Map::new();
                for (n, item) in items.iter().enumerate() {
                    let name = item.name(n);
                    match item {
                        Item::Module(source) => {
                            modules.insert(name, serde_json::json!({ "source": source }));
                        }
                        Item::Calling(source, value) => {
                            let call = serde_json::json!({ "source": source, VARIABLE: value });
                            modules.insert(name, call);
                        }
                        _ => drop(reads.insert(name, format!("${{{}}}", item.call()).into())),
                    }
                }
                let locals = serde_json::json!({ "module": modules, "locals": reads });
                format!("{}{locals}\n", " ".repeat(salt.into()))
            }
        }
    }
}

const FIRST_ITEM_LINE: usize = 3;
const ITEM_LINES: usize = 4;

/// The name of the only variable.
const VARIABLE: &str = "v";

impl Configuration {
    fn render(&self) -> String {
        let mut text = String::new();
        if let Some(stack) = &self.stack {
            text += &stack.render();
        }
        for source in &self.imports {
            text += &format!("import {{\n  source = {}\n}}\n", quoted(source));
        }
        if !self.ignore.is_empty() {
            let ignore = &self.ignore;
            text += &format!(
                "orch {{\n  config {{\n    change_detection {{\n      ignore = {ignore:?}\n    }}\n  }}\n}}\n"
            );
        }
        if self.is_root {
            text += "orch {\n  root = true\n}\n";
        }
        text
    }
}

impl Trigger {
    fn render(&self) -> String {
        let kind = if self.is_changed {
            "changed"
        } else {
            "ignore-change"
        };
        let key = self.key.map(|key| format!("  key = {}\n", literal(key)));
        let key = key.unwrap_or_default();
        format!(
            "trigger {{\n  ctime = 1\n  reason = \"\"\n  type = {kind}\n  context = stack\n{key}}}\n"
        )
    }
}

impl StackBlock {
    fn render(&self) -> String {
        let known = |text: &str| match self.for_each {
            None => said(text, None),
            Some(_) => text.to_owned(),
        };
        let watch = self.watch.iter().map(|path| literal(&known(path)));
        let watch: Vec<String> = watch.collect();
        let mut text = format!("stack {{\n  watch = [{}]\n", watch.join(", "));
        let file = |path: &str| format!("tm_file({})", literal(&known(path)));
        if !self.described_by.is_empty() {
            let files: Vec<String> = self.described_by.iter().map(|path| file(path)).collect();
            text += &format!("  description = tm_try({}, \"\")\n", files.join(", "));
        }
        match &self.for_each {
            None => {}
            Some(ForEach::Keys(keys)) => {
                let keys: Vec<String> = keys.iter().map(|key| literal(key)).collect();
                text += &format!("  for_each = [{}]\n", keys.join(", "));
            }
            Some(ForEach::File(path)) => {
                let file = file(path);
                text += &format!("  for_each = tm_try([tm_trimspace({file})], [])\n");
            }
        }
        text + "}\n"
    }
}

impl Item {
    /// Modules of one name would not be valid, so it has what they call.
    fn name(&self, n: usize) -> String {
        let called = match self {
            Item::Module(source) => source.clone(),
            Item::Calling(source, value) => format!("{source}-{value}"),
            _ => String::new(),
        };
        let is_kept = |it: char| it.is_ascii_alphanumeric() || it == '-';
        format!("n{n}{}", called.replace(|it| !is_kept(it), "_"))
    }

    /// Always four lines, of which the second is the one that is reported.
    fn render(&self, n: usize) -> String {
        let name = self.name(n);
        match self {
            Item::Module(source) => {
                let source = quoted(source);
                format!("module \"{name}\" {{\n  source = {source}\n}}\n\n")
            }
            Item::Calling(source, value) => {
                let source = quoted(source);
                format!(
                    "module \"{name}\" {{\n  source = {source}\n  {VARIABLE} = \"{value}\"\n}}\n"
                )
            }
            _ => format!(
                "locals {{\n  {name} = upper(\"${{{}}}\")\n}}\n\n",
                self.call()
            ),
        }
    }

    fn call(&self) -> String {
        match self {
            Item::Module(_) | Item::Calling(..) => unreachable!("a module is no call"),
            Item::ByVariable(directory) => {
                let path = From::Module.written(&format!("{directory}/%"));
                format!(
                    "file({})",
                    path.replace('%', &format!("${{var.{VARIABLE}}}"))
                )
            }
            Item::Read {
                function,
                from,
                path,
            } => {
                let variables = if *function == "templatefile" {
                    ", {}"
                } else {
                    ""
                };
                format!("{function}({}{variables})", from.written(path))
            }
            Item::Set {
                from,
                path,
                pattern,
            } => format!("fileset({}, {})", from.written(path), quoted(pattern)),
        }
    }
}

impl From {
    fn written(self, path: &str) -> String {
        let path = quoted(path);
        let path = path.trim_matches('"');
        match self {
            From::Module => format!("\"${{path.module}}/{path}\""),
            From::Root => format!("\"${{path.root}}/{path}\""),
            From::Bare => format!("\"{path}\""),
        }
    }
}

/// Writes a string as both languages have it.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace("${", "$${"))
}
