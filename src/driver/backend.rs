//! The backend of a tool: its kind, the place and the workspace.
//!
//! The text identifies the tool's own state, not the way to reach it: two stacks with the same text would overwrite
//! each other. Credentials are left out.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::Driver;
use super::value::digest;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::value::Value;
use crate::on_disk::if_there;
use crate::printable::printable;
use crate::project::namespaces::StackNamespaces;
use crate::project::per_stack::needed_at;

/// How many bytes the files of a tool's data may have.
const MAX_LENGTH: u64 = 1 << 20;

/// The maximum length of a text; a longer place is replaced by a digest.
const MAX_TEXT: usize = 512;

const DEFAULT: &str = "default";

const LOCAL: &str = "terraform.tfstate";

const LOCAL_WORKSPACES: &str = "terraform.tfstate.d";

/// The file in the data directory with the chosen backend.
const CHOSEN: &str = "terraform.tfstate";

/// The file in the data directory with the chosen workspace.
const WORKSPACE: &str = "environment";

/// Parts of the names of attributes and parameters that hold credentials.
const CREDENTIALS: [&str; 14] = [
    "access_key",
    "account_key",
    "assertion",
    "auth",
    "cert",
    "credential",
    "key_id",
    "pass",
    "private",
    "sas",
    "secret",
    "sig",
    "token",
    "user",
];

/// The part of the data directory's file about the backend.
#[derive(Deserialize)]
struct ChosenJson {
    backend: Option<BackendJson>,
}

#[derive(Deserialize)]
struct BackendJson {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    config: Map<String, Json>,
}

/// Returns the backend of a stack with Terraform or `OpenTofu`: `s3 acme/net@default`. `None` if it is unknown.
/// `root` is that of the project, `directory` that of the stack, both absolute; `variable` looks up the environment
/// of the stack's commands.
pub fn backend_of_tool(
    root: &Path,
    directory: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let data = directory.join(set("TF_DATA_DIR").as_deref().unwrap_or(".terraform"));
    let chosen = match read(&data.join(CHOSEN)) {
        Found::Text(text) => serde_json::from_str::<ChosenJson>(&text).ok()?.backend,
        Found::Nothing => None,
        Found::Unusable => return None,
    };
    let workspace = selected_workspace(directory, variable)?;
    let (kind, config) = match chosen {
        Some(BackendJson { kind, config }) => (kind, Config(config)),
        None => ("local".to_owned(), Config(Map::new())),
    };
    let place = match kind.as_str() {
        "local" => config.local(root, directory, &workspace),
        "http" => {
            let address = config.text("address").map(str::to_owned);
            address_text(&address.or_else(|| set("TF_HTTP_ADDRESS"))?)
        }
        "remote" | "cloud" => {
            let organization = config
                .text("organization")
                .map(str::to_owned)
                .or_else(|| set("TF_CLOUD_ORGANIZATION"))?;
            // The name of a single workspace differs between here and the service.
            let (name, is_single) = config.remote_workspaces();
            let place = format!(
                "{}/{organization}",
                config.or("hostname", "app.terraform.io")
            );
            if is_single {
                return Some(bounded(&kind, &place, &name));
            }
            return Some(bounded(&kind, &place, &format!("{name}{workspace}")));
        }
        _ => config.place(&kind, &workspace)?,
    };
    Some(bounded(&kind, &place, &workspace))
}

/// Returns the selected workspace of a directory; `None` if it is unknown. `variable` looks up the environment of its
/// commands.
pub fn selected_workspace(
    directory: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(workspace) = set("TF_WORKSPACE") {
        return Some(workspace);
    }
    let data = directory.join(set("TF_DATA_DIR").as_deref().unwrap_or(".terraform"));
    match read(&data.join(WORKSPACE)) {
        Found::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Found::Text(_) | Found::Nothing => Some(DEFAULT.to_owned()),
        Found::Unusable => None,
    }
}

/// Returns the file of a local state, given its recorded backend: relative to the project root if it is inside.
/// `None` if the state is not on this machine.
pub fn local_state(backend: &str) -> Option<&str> {
    let place = backend.strip_prefix("local ")?;
    // A long place is a digest, and no such file exists.
    Some(place.rsplit_once('@').map_or(place, |(file, _)| file))
}

/// Returns the recorded form of Terraform's default backend, given the directory of the stack from the project root.
pub fn usual_local_state(directory: &str) -> String {
    let place = format!("{directory}/{LOCAL}");
    format!("local {}@{DEFAULT}", place.trim_start_matches('/'))
}

/// Returns the workspace of a recorded backend; `None` for the default one, or if it is not selected like Terraform's
/// own.
pub fn workspace_of(backend: &str) -> Option<&str> {
    let (kind, place) = backend.split_once(' ')?;
    if matches!(kind, "remote" | "cloud") {
        return None;
    }
    let (_, workspace) = place.rsplit_once('@')?;
    (workspace != DEFAULT).then_some(workspace)
}

impl Driver<'_> {
    /// Returns the backend that the block of the driver names, for the stack that the namespaces are of;
    /// `None` if it names none, or nothing.
    pub fn backend(
        &self,
        namespaces: &StackNamespaces<'_, '_>,
    ) -> Result<Option<String>, Vec<Diagnostic>> {
        let Some(expr) = self.block.and_then(|block| block.backend.as_ref()) else {
            return Ok(None);
        };
        let answer = namespaces
            .evaluate(expr)
            .map_err(|none| vec![needed_at(none.into_diagnostic(), expr.span, expr.span)])?;
        match answer.value {
            Value::String(text) => Ok(of_block(&text)),
            Value::Null => Ok(None),
            other => {
                let label = format!("this is {}", other.type_name());
                let diagnostic = Diagnostic::error(Code::WrongType, "`backend` must be a string");
                let help =
                    "write it as in `\"kubernetes ${global.cluster}/${terramate.stack.name}\"`";
                Err(vec![diagnostic.label(expr.span, label).help(help)])
            }
        }
    }
}

/// Returns the backend that a block names, as it is recorded.
fn of_block(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let shown = printable(text);
    if shown.len() > MAX_TEXT {
        return Some(digest([text.as_bytes()]));
    }
    Some(shown.into_owned())
}

/// Puts the parts of a text together.
fn bounded(kind: &str, place: &str, workspace: &str) -> String {
    let text = format!("{kind} {place}@{workspace}");
    let shown = printable(&text);
    if shown.len() <= MAX_TEXT {
        return shown.into_owned();
    }
    let parts = [kind, place, workspace].map(str::as_bytes);
    let kind: String = kind.chars().take(32).collect();
    format!("{} {}", printable(&kind), digest(parts))
}

enum Found {
    Text(String),
    Nothing,
    /// It is no file, too long, no text, or cannot be read.
    Unusable,
}

fn read(path: &Path) -> Found {
    match if_there(path.metadata()) {
        Ok(None) => return Found::Nothing,
        Ok(Some(found)) if found.is_file() => {}
        // Reading a pipe would never end.
        Ok(Some(_)) | Err(_) => return Found::Unusable,
    }
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(MAX_LENGTH + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 <= MAX_LENGTH => Found::Text(text),
        Ok(_) | Err(_) => Found::Unusable,
    }
}

struct Config(Map<String, Json>);

impl Config {
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.0.get(name)?.as_str()?;
        (!text.is_empty()).then_some(text)
    }

    fn or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.text(name).unwrap_or(default)
    }

    /// Returns attributes that all must be there, with slashes in between.
    fn joined(&self, names: &[&str]) -> Option<String> {
        let parts: Option<Vec<&str>> = names.iter().map(|name| self.text(name)).collect();
        Some(parts?.join("/"))
    }

    /// Returns the place of a remote backend; `None` if it is unknown.
    fn place(&self, kind: &str, workspace: &str) -> Option<String> {
        match kind {
            "s3" => {
                let endpoints = self.0.get("endpoints").and_then(|it| match it {
                    Json::Array(list) => list.first(),
                    other => Some(other),
                });
                let own = endpoints.and_then(|it| it.get("s3")?.as_str());
                let own = own.filter(|own| !own.is_empty());
                let endpoint = own.or_else(|| self.text("endpoint")).map(address_text);
                let bucket = self.text("bucket")?;
                let prefix = self
                    .text("workspace_key_prefix")
                    .filter(|_| workspace != DEFAULT);
                let parts = [
                    endpoint.as_deref(),
                    Some(bucket),
                    prefix,
                    Some(self.text("key")?),
                ];
                Some(parts.into_iter().flatten().collect::<Vec<&str>>().join("/"))
            }
            "gcs" => match self.text("prefix") {
                Some(prefix) => Some(format!("{}/{prefix}", self.text("bucket")?)),
                None => self.text("bucket").map(str::to_owned),
            },
            "azurerm" => self.joined(&["storage_account_name", "container_name", "key"]),
            "consul" => match self.text("address") {
                Some(address) => Some(format!("{}/{}", address_text(address), self.text("path")?)),
                None => self.text("path").map(str::to_owned),
            },
            "pg" => {
                let schema = self.or("schema_name", "terraform_remote_state");
                Some(format!("{}/{schema}", database(self.text("conn_str")?)))
            }
            "kubernetes" => {
                let cluster = self
                    .text("host")
                    .map(address_text)
                    .or_else(|| self.text("config_context").map(str::to_owned))
                    .map(|it| format!("{it}/"))
                    .unwrap_or_default();
                let namespace = self.or("namespace", DEFAULT);
                Some(format!(
                    "{cluster}{namespace}/{}",
                    self.text("secret_suffix")?
                ))
            }
            "cos" | "oss" => {
                let prefix = self.or("prefix", "env:");
                let key = self.or("key", LOCAL);
                Some(format!("{}/{prefix}/{key}", self.text("bucket")?))
            }
            "oci" => {
                let key = self.or("key", LOCAL);
                Some(format!("{}/{key}", self.joined(&["namespace", "bucket"])?))
            }
            _ => {
                let open = without_credentials(&Json::Object(self.0.clone()));
                Some(digest([open.to_string().as_bytes()]))
            }
        }
    }

    /// Returns the file of a local state: from the root of the project if it is inside, so that it is the
    /// same in another checkout.
    fn local(&self, root: &Path, directory: &Path, workspace: &str) -> String {
        let file = if workspace == DEFAULT {
            directory.join(self.or("path", LOCAL))
        } else {
            let workspaces = self.or("workspace_dir", LOCAL_WORKSPACES);
            directory.join(workspaces).join(workspace).join(LOCAL)
        };
        let file = without_dots(&file);
        let file = file.strip_prefix(root).unwrap_or(&file);
        let text = file.to_string_lossy();
        if cfg!(windows) {
            return text.replace('\\', "/");
        }
        text.into_owned()
    }

    /// Returns the prefix of workspace names at the service, or the name of the only one and `true`.
    fn remote_workspaces(&self) -> (String, bool) {
        let workspaces = match self.0.get("workspaces") {
            Some(Json::Array(list)) => list.first(),
            other => other,
        };
        let text = |name: &str| {
            let text = workspaces?.get(name)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        match text("name") {
            Some(name) => (name, true),
            None => (text("prefix").unwrap_or_default(), false),
        }
    }
}

/// Returns a path without `.` and `..`, by its names only.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = clean.pop(),
            other => clean.push(other),
        }
    }
    clean
}

/// Returns an address without the user and anything like a credential. A digest replaces the other parameters, which
/// may distinguish states.
fn address_text(address: &str) -> String {
    let address = address.split('#').next().unwrap_or_default();
    let (address, query) = address.split_once('?').unwrap_or((address, ""));
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.rsplit('@').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let parameters = query.split('&');
    let open: Vec<&[u8]> = parameters
        .filter(|it| !it.is_empty() && !is_credential(it.split('=').next().unwrap_or_default()))
        .map(str::as_bytes)
        .collect();
    let query = if open.is_empty() {
        String::new()
    } else {
        format!("?{}", digest(open))
    };
    format!("{scheme}{host}{path}{query}")
}

/// Returns the database of a `PostgreSQL` connection string, without the user and the password.
fn database(connection: &str) -> String {
    if connection.contains("://") {
        let address = connection.split('?').next().unwrap_or_default();
        return address_text(address);
    }
    let parts = connection.split_whitespace();
    let open = parts.filter(|part| {
        let name = part.split('=').next().unwrap_or_default();
        matches!(name, "host" | "hostaddr" | "port" | "dbname" | "service")
    });
    open.collect::<Vec<&str>>().join(",")
}

fn is_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    CREDENTIALS.iter().any(|part| name.contains(part))
}

/// Returns a value without unset parts and anything like a credential.
fn without_credentials(value: &Json) -> Json {
    match value {
        Json::Object(attributes) => {
            let open = attributes
                .iter()
                .filter(|(name, value)| !is_credential(name) && !value.is_null())
                .map(|(name, value)| (name.clone(), without_credentials(value)));
            Json::Object(open.collect())
        }
        Json::Array(list) => list.iter().map(without_credentials).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
