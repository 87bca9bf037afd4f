//! The values that variables of a root module may have: those of its `.tfvars` files, of `TF_VAR_…` in `run.env`,
//! and defaults.
//!
//! This module knows neither the modules' callers nor command lines. A file that is not loaded automatically may be
//! named with `-var-file`, so its values are possible ones.

use std::cell::OnceCell;
use std::ffi::OsStr;

use super::constants::{Constants, PossibleValues};
use super::definitions::{files_on_disk, is_json};
use super::json_body;
use super::text;
use super::tree::Tree;
use crate::driver::ModuleVariables;
use crate::language::parse::{parse_expression, parse_whole};
use crate::language::syntax::{Body, Expr};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::project::environment::{Environments, sets_variable};
use crate::source::FileId;

/// The settings of one stack's root module.
pub(super) struct Settings<'s, 'a> {
    tree: &'s Tree<'a>,
    module: &'s ProjectPath,
    /// The directory of the stack, which Terragrunt copies onto that of the module.
    stack: &'s ProjectPath,
    files: OnceCell<Vec<SettingsFile>>,
}

/// A `.tfvars` file.
struct SettingsFile {
    is_loaded_automatically: bool,
    /// `None` if the file cannot be understood.
    body: Option<Body>,
}

impl<'s, 'a> Settings<'s, 'a> {
    pub(super) fn new(tree: &'s Tree<'a>, module: &'s ProjectPath, stack: &'s ProjectPath) -> Self {
        Settings {
            tree,
            module,
            stack,
            files: OnceCell::new(),
        }
    }

    /// Returns the possible values of a variable, given the definitions of the module, and the values that
    /// Terragrunt passes.
    pub(super) fn values(
        &self,
        definitions: &[Body],
        name: &str,
        passed: Vec<Option<Value>>,
    ) -> Vec<Option<Value>> {
        let mut values = Vec::new();
        let mut loaded = None;
        for file in self.files() {
            let Some(body) = &file.body else {
                values.push(None);
                continue;
            };
            if let Some(setting) = body.attribute(name) {
                let value = constant(&setting.value);
                if file.is_loaded_automatically {
                    loaded = Some(value);
                } else {
                    values.push(value);
                }
            }
        }
        if let Some(loaded) = loaded {
            values.push(loaded);
            // Unknown arguments of the tool may overrule it.
            values.extend(passed.into_iter().filter(Option::is_none));
        } else {
            // The tool may also run without this environment.
            values.extend(self.environment(name));
            values.extend(variable_attribute(definitions, name, "default").map(constant));
            values.extend(passed);
        }
        with_default(values, definitions, name)
    }

    /// Returns the `.tfvars` files, in the order in which Terraform reads those that it loads automatically.
    fn files(&self) -> &[SettingsFile] {
        self.files.get_or_init(|| {
            let mut directories = vec![self.module];
            if self.stack != self.module {
                directories.push(self.stack);
            }
            let mut found: Vec<(Rank, SettingsFile)> = Vec::new();
            for directory in directories {
                for (name, plain) in
                    files_on_disk(self.tree, directory, |it| Rank::of(it).is_some())
                {
                    found.extend(Rank::of(&name).and_then(|rank| {
                        let file = self.read(directory, &name, plain, &rank)?;
                        Some((rank, file))
                    }));
                }
            }
            found.sort_by(|(a, _), (b, _)| a.cmp(b));
            found.into_iter().map(|(_, file)| file).collect()
        })
    }

    fn read(
        &self,
        directory: &ProjectPath,
        name: &OsStr,
        plain: bool,
        rank: &Rank,
    ) -> Option<SettingsFile> {
        let file = directory.join(&name.to_string_lossy());
        let host = file.to_host(self.tree.root());
        let mut buffer = Vec::new();
        // A link without a target is no file; other problems have been noted.
        let text = text::read(self.tree, &file, &host, plain, &mut buffer);
        let is_there = text.is_some() || host.exists();
        let body = text.and_then(|text| {
            let parsed = if is_json(name) {
                json_body::whole(text, &[])
            } else {
                parse_whole(FileId::UNPLACED, text)
            };
            parsed
                .map_err(|diagnostic| text::broken(self.tree, &file, text, *diagnostic))
                .ok()
        });
        is_there.then_some(SettingsFile {
            is_loaded_automatically: !matches!(rank, Rank::Other(_)),
            body,
        })
    }

    /// Returns the values of the variable in `run.env`.
    fn environment(&self, name: &str) -> Vec<Option<Value>> {
        let variable = format!("TF_VAR_{name}");
        let Some((project, bases)) = self.tree.environments() else {
            return Vec::new();
        };
        let stacks = project.stacks.at(self.stack.as_str());
        if stacks.first().is_none() || !sets_variable(project, self.stack, &variable) {
            return Vec::new();
        }
        let [here, anywhere] = bases.map(|basis| Environments::of(basis.clone().into()));
        let mut values = Vec::new();
        for stack in stacks {
            let value = |environments: &Environments<'_>| {
                let value = environments.variable(stack, &variable);
                value.and_then(|variable| variable.value.ok())
            };
            let (here, anywhere) = (value(&here), value(&anywhere));
            // A value that depends on the machine is not known.
            if here != anywhere || here.is_none() {
                values.push(None);
            }
            if let Some(Some(text)) = here {
                values.push(self.parsed(name, &text));
            }
        }
        values
    }

    /// Returns the value that Terraform takes from the text of an environment variable.
    fn parsed(&self, name: &str, text: &str) -> Option<Value> {
        let root = self.tree.root();
        let variables = ModuleVariables::read(root, &self.module.to_host(root));
        if variables.is_text(name).ok()? {
            return Some(Value::string(text));
        }
        constant(&parse_expression(FileId::UNPLACED, text).ok()?)
    }
}

/// The place of a `.tfvars` file among those that Terraform reads.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Main,
    MainJson,
    Automatic(Vec<u8>),
    /// Only a command line may name it.
    Other(Vec<u8>),
}

impl Rank {
    fn of(name: &OsStr) -> Option<Self> {
        let name = name.as_encoded_bytes();
        let stem = name.strip_suffix(b".json").unwrap_or(name);
        let stem = stem.strip_suffix(b".tfvars")?;
        Some(match name {
            b"terraform.tfvars" => Rank::Main,
            b"terraform.tfvars.json" => Rank::MainJson,
            _ if stem.ends_with(b".auto") => Rank::Automatic(name.to_vec()),
            _ => Rank::Other(name.to_vec()),
        })
    }
}

/// Returns an attribute of a variable's blocks.
fn variable_attribute<'b>(
    definitions: &'b [Body],
    name: &str,
    attribute: &str,
) -> Option<&'b Expr> {
    let blocks = definitions.iter().flat_map(|file| file.blocks("variable"));
    let declared = blocks.filter(|block| {
        let label = block.labels.first();
        label.is_some_and(|label| *label.text == *name)
    });
    let values = declared.filter_map(|block| block.body.attribute(attribute));
    // Files that override others come last.
    values.last().map(|found| &found.value)
}

/// Replaces missing values of a variable, and `null` if it is not nullable, with its default.
pub(super) fn with_default(
    mut values: Vec<Option<Value>>,
    definitions: &[Body],
    name: &str,
) -> Vec<Option<Value>> {
    let is_null = |value: &Option<Value>| matches!(value, Some(Value::Null));
    let takes_null = || {
        let nullable = variable_attribute(definitions, name, "nullable").and_then(constant);
        !matches!(nullable, Some(Value::Bool(false)))
    };
    if values.is_empty() || values.iter().any(is_null) && !takes_null() {
        values.retain(|value| !is_null(value));
        values.push(variable_attribute(definitions, name, "default").and_then(constant));
    }
    values
}

fn constant(expr: &Expr) -> Option<Value> {
    let unknown = |_: &str| -> PossibleValues { [None].into() };
    Constants::new(&[], &unknown).value(expr)
}
