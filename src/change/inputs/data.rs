//! The data of other stacks that the files of a stack use, and the backend by which others use its own.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use super::constants::{Constants, path_of};
use super::definitions::{definitions, in_merge_order, parse};
use super::settings::Settings;
use super::terragrunt;
use super::text;
use super::tree::Tree;
use crate::change::code_use::{CodeData, CodeUse, UsedPlace};
use crate::language::syntax::{Block, Body, Expr, ExprKind};
use crate::path::ProjectPath;
use crate::project::config::OrderFrom;
use crate::project::discover::is_override;
use crate::project::stack::DataKind;

/// The attributes that tell the states of a kind of backend apart. Credentials and the way to reach the
/// backend do not matter.
struct BackendKind {
    name: &'static str,
    required: &'static [&'static str],
    /// Others, with their defaults.
    optional: &'static [(&'static str, &'static str)],
}

const fn kind(
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [(&'static str, &'static str)],
) -> BackendKind {
    BackendKind {
        name,
        required,
        optional,
    }
}

const KEY: [(&str, &str); 2] = [("prefix", "env:"), ("key", "terraform.tfstate")];

const BACKENDS: [BackendKind; 9] = [
    kind(
        "azurerm",
        &["storage_account_name", "container_name", "key"],
        &[],
    ),
    kind("consul", &["path"], &[]),
    kind("cos", &["bucket"], &KEY),
    kind("gcs", &["bucket"], &[("prefix", "")]),
    kind("http", &["address"], &[]),
    kind(
        "kubernetes",
        &["secret_suffix"],
        &[("namespace", "default")],
    ),
    kind("oss", &["bucket"], &KEY),
    kind(
        "pg",
        &["conn_str"],
        &[("schema_name", "terraform_remote_state")],
    ),
    kind("s3", &["bucket", "key"], &[]),
];

/// Returns the wanted uses in the directories of stacks, in their order, on the current thread pool. The
/// tree must look for data.
pub(in crate::change) fn data(
    tree: &Tree,
    directories: &[ProjectPath],
    wanted: OrderFrom,
) -> Vec<CodeData> {
    let units = terragrunt::Units::new(tree);
    let read = |buffer: &mut Vec<u8>, directory: &ProjectPath| {
        let mut data = CodeData::default();
        if wanted.remote_state {
            data = remote_states(tree, directory, buffer);
        }
        if wanted.terragrunt
            && let Some(node) = terragrunt::node(&units, directory)
        {
            data.uses.extend(node.data);
        }
        data
    };
    let directories = directories.par_iter();
    directories.map_init(Vec::new, read).collect()
}

/// A `terraform_remote_state`, with the attributes of files that override it.
struct RemoteState<'f> {
    file: &'f TerraformFile,
    block: Block,
}

struct TerraformFile {
    path: ProjectPath,
    text: Arc<str>,
    body: Body,
    is_override: bool,
}

fn remote_states(tree: &Tree, directory: &ProjectPath, buffer: &mut Vec<u8>) -> CodeData {
    let mut data = CodeData::default();
    let Some(listed) = tree.listing().get(directory.as_str()) else {
        return data;
    };
    let mut files: Vec<TerraformFile> = Vec::new();
    for (name, plain) in in_merge_order(&listed.files) {
        let path = directory.join(&name.to_string_lossy());
        let host = path.to_host(tree.root());
        if let Some(text) = text::read(tree, &path, &host, *plain, buffer)
            && ["terraform_remote_state", "backend", "cloud"]
                .iter()
                .any(|word| text.contains(word))
        {
            match parse(name, text) {
                Ok(body) => files.push(TerraformFile {
                    path,
                    text: text.into(),
                    body,
                    is_override: is_override(name),
                }),
                Err(diagnostic) => text::broken(tree, &path, text, *diagnostic),
            }
        }
    }
    let definitions = definitions(tree, directory);
    let settings = Settings::new(tree, directory, directory);
    let passed = LazyCell::new(|| terragrunt::passed_inputs(tree, directory));
    let variable = |name: &str| {
        let values = settings.values(&definitions, name, passed.values(name));
        values.into()
    };
    let constants = Constants::new(&definitions, &variable);
    let each = |find: &dyn Fn() -> Option<String>| {
        let found: BTreeSet<Option<String>> =
            constants.for_each_combination(find).into_iter().collect();
        found.into_iter()
    };
    let backend = backend_block(&files);
    let backends = each(&|| match backend {
        Some(backend) => own_backend(tree, directory, backend, &constants),
        None => identity(tree, directory, "local", |_| None, &constants),
    });
    data.backends.extend(backends.flatten());
    for RemoteState { file, block } in remote_state_blocks(&files) {
        let places = each(&|| used_backend(tree, directory, &block, &constants));
        data.uses.extend(places.map(|place| CodeUse {
            kind: DataKind::RemoteState,
            place: place.map(UsedPlace::Backend),
            file: file.path.clone(),
            text: file.text.clone(),
            span: block.kind.span,
        }));
    }
    data
}

/// Returns the `backend` or `cloud` block that counts: the last one that overrides others, or else the first.
fn backend_block(files: &[TerraformFile]) -> Option<&Block> {
    let mut found = None;
    for file in files {
        let blocks = file.body.blocks("terraform");
        let mut blocks = blocks.flat_map(|block| &block.body.blocks);
        let here = blocks.find(|block| matches!(&*block.kind.text, "backend" | "cloud"));
        found = if file.is_override {
            here.or(found)
        } else {
            found.or(here)
        };
    }
    found
}

fn remote_state_blocks(files: &[TerraformFile]) -> Vec<RemoteState<'_>> {
    let mut states: Vec<RemoteState> = Vec::new();
    for file in files {
        for block in file.body.blocks("data") {
            let [kind, name] = &block.labels[..] else {
                continue;
            };
            if &*kind.text != "terraform_remote_state" {
                continue;
            }
            let is_same = |state: &&mut RemoteState| state.block.labels[1].text == name.text;
            let overridden = states.iter_mut().find(is_same).filter(|_| file.is_override);
            let Some(state) = overridden else {
                let block = block.clone();
                states.push(RemoteState { file, block });
                continue;
            };
            let attributes = &mut state.block.body.attributes;
            // The first of each name counts.
            attributes.splice(0..0, block.body.attributes.iter().cloned());
        }
    }
    states
}

/// Returns the backend of a `backend` or `cloud` block, if it can be determined.
fn own_backend(
    tree: &Tree,
    directory: &ProjectPath,
    block: &Block,
    constants: &Constants,
) -> Option<String> {
    let attribute = |name: &str| block.body.attribute(name).map(|it| &it.value);
    let kind = block.labels.first().map(|label| &*label.text);
    if &*block.kind.text == "cloud" || kind == Some("remote") {
        let mut workspaces = block.body.blocks("workspaces");
        let name = workspaces.next()?.body.attribute("name");
        return remote(
            attribute("organization"),
            name.map(|it| &it.value),
            constants,
        );
    }
    identity(tree, directory, kind?, attribute, constants)
}

/// Returns the backend that a `terraform_remote_state` reads, if it can be determined.
fn used_backend(
    tree: &Tree,
    directory: &ProjectPath,
    block: &Block,
    constants: &Constants,
) -> Option<String> {
    let kind = constants.text(&block.body.attribute("backend")?.value)?;
    let config = block.body.attribute("config").map(|it| &it.value);
    let attribute = |name: &str| config.and_then(|config| entry(config, name));
    if kind == "remote" {
        let name = attribute("workspaces").and_then(|workspaces| entry(workspaces, "name"));
        return remote(attribute("organization"), name, constants);
    }
    identity(tree, directory, &kind, attribute, constants)
}

/// Returns the value of an entry of an object as written.
fn entry<'e>(object: &'e Expr, name: &str) -> Option<&'e Expr> {
    let ExprKind::Object(entries) = &object.kind else {
        return None;
    };
    let is_named = |key: &Expr| match &key.kind {
        ExprKind::String(text) | ExprKind::Variable(text) => **text == *name,
        _ => false,
    };
    let found = entries.iter().find(|(key, _)| is_named(key));
    found.map(|(_, value)| value)
}

/// Returns the identity of a workspace in HCP Terraform.
fn remote(
    organization: Option<&Expr>,
    name: Option<&Expr>,
    constants: &Constants,
) -> Option<String> {
    let (organization, name) = (constants.text(organization?)?, constants.text(name?)?);
    Some(format!("remote\0{organization}\0{name}"))
}

fn identity<'e>(
    tree: &Tree,
    directory: &ProjectPath,
    kind: &str,
    attribute: impl Fn(&str) -> Option<&'e Expr>,
    constants: &Constants,
) -> Option<String> {
    if kind == "local" {
        let path = match attribute("path") {
            Some(path) => constants.text(path)?,
            None => "terraform.tfstate".to_owned(),
        };
        let (_, path) = path_of(path)?;
        let place = tree.links().resolve(directory, &path)?;
        return Some(format!("local\0{place}"));
    }
    let known = BACKENDS.iter().find(|known| known.name == kind)?;
    let mut identity = kind.to_owned();
    let required = known.required.iter().map(|name| (*name, None));
    let optional = known
        .optional
        .iter()
        .map(|(name, default)| (*name, Some(*default)));
    for (name, default) in required.chain(optional) {
        let value = match attribute(name) {
            Some(value) => constants.text(value)?,
            None => default?.to_owned(),
        };
        identity.push('\0');
        identity.push_str(&value);
    }
    Some(identity)
}
