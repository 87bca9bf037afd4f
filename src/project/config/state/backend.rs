//! The backends of the state.

use super::values::Values;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    Local,
    /// A bucket of Amazon S3, or of a store that speaks like it.
    S3,
    /// A bucket of Google Cloud Storage.
    Gcs,
    /// A container of Azure Blob Storage.
    Azurerm,
}

impl BackendKind {
    pub(super) const ALL: [BackendKind; 4] = [
        BackendKind::Local,
        BackendKind::S3,
        BackendKind::Gcs,
        BackendKind::Azurerm,
    ];

    pub fn name(self) -> &'static str {
        match self {
            BackendKind::Local => "local",
            BackendKind::S3 => "s3",
            BackendKind::Gcs => "gcs",
            BackendKind::Azurerm => "azurerm",
        }
    }

    pub(super) fn names() -> String {
        Self::ALL
            .map(|kind| format!("`\"{}\"`", kind.name()))
            .join(", ")
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(super) fn attributes(self) -> &'static [&'static str] {
        match self {
            BackendKind::Local => &["path"],
            BackendKind::S3 => &["bucket", "key", "region", "endpoint", "profile"],
            BackendKind::Gcs => &["bucket", "key", "endpoint"],
            BackendKind::Azurerm => &["storage_account_name", "container_name", "key", "endpoint"],
        }
    }
}

/// Where the document is. Keys have no `.json` at the end; `None` is the project's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendConfig {
    Local(LocalBackend),
    S3(S3Backend),
    Gcs(GcsBackend),
    Azurerm(AzureBackend),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalBackend {
    /// The file, from the project root, without `.json`.
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Backend {
    pub bucket: String,
    pub key: Option<String>,
    pub region: Option<String>,
    /// The address of a store other than Amazon's.
    pub endpoint: Option<String>,
    /// The profile that `aws` gets credentials for.
    pub profile: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcsBackend {
    pub bucket: String,
    pub key: Option<String>,
    /// The address of a store other than Google's.
    pub endpoint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureBackend {
    pub account: String,
    pub container: String,
    pub key: Option<String>,
    /// The address of a store other than Azure's.
    pub endpoint: Option<String>,
}

/// Evaluates the backend; `None` if some of it is invalid or unknown.
pub(super) fn config(
    values: &mut Values<'_>,
    (kind, span): (BackendKind, Span),
) -> Option<BackendConfig> {
    let key = values.text("backend.key");
    let key = key.and_then(|key| checked_key(values, "backend.key", &key));
    let endpoint = values.text("backend.endpoint");
    let endpoint = endpoint.and_then(|endpoint| checked_endpoint(values, endpoint));
    let has = |values: &Values<'_>, name: &str| values.span(&format!("backend.{name}")).is_some();
    // Invalid attributes were reported, and must not count as unset.
    let is_wrong =
        has(values, "key") && key.is_none() || has(values, "endpoint") && endpoint.is_none();
    let config = match kind {
        BackendKind::Local => {
            let path = values.text("backend.path");
            let path = path.and_then(|path| checked_key(values, "backend.path", &path));
            if has(values, "path") && path.is_none() {
                return None;
            }
            BackendConfig::Local(LocalBackend { path })
        }
        BackendKind::S3 => {
            let bucket = required(values, "bucket", kind, span);
            let region = values.text("backend.region");
            let profile = values.text("backend.profile");
            BackendConfig::S3(S3Backend {
                bucket: bucket?,
                key,
                region,
                endpoint,
                profile,
            })
        }
        BackendKind::Gcs => {
            let bucket = required(values, "bucket", kind, span);
            BackendConfig::Gcs(GcsBackend {
                bucket: bucket?,
                key,
                endpoint,
            })
        }
        BackendKind::Azurerm => {
            let account = required(values, "storage_account_name", kind, span);
            let container = required(values, "container_name", kind, span);
            BackendConfig::Azurerm(AzureBackend {
                account: account?,
                container: container?,
                key,
                endpoint,
            })
        }
    };
    (!is_wrong).then_some(config)
}

fn required(values: &mut Values<'_>, name: &str, kind: BackendKind, span: Span) -> Option<String> {
    let path = format!("backend.{name}");
    if values.span(&path).is_none() {
        let kind = kind.name();
        let message = format!("the backend `{kind}` needs `{name}`");
        let diagnostic = Diagnostic::error(Code::MissingAttribute, message)
            .label(span, format!("no `{name}` in this block"));
        values.problems.push(diagnostic);
        return None;
    }
    values.text(&path)
}

/// Checks a key or a path, and removes the `.json` at its end.
fn checked_key(values: &mut Values<'_>, path: &str, key: &str) -> Option<String> {
    let base = key.strip_suffix(".json").unwrap_or(key);
    let is_file = path == "backend.path";
    let name = path.rsplit('.').next().unwrap_or(path);
    let mut segments = base.split('/');
    let problem = if key.len() > 512 {
        Some("it is longer than 512 bytes")
    } else if key.chars().any(char::is_control) {
        Some("it has a control character")
    } else if is_file {
        let last = segments.next_back().unwrap_or_default();
        matches!(last, "" | "." | "..").then_some("it names no file")
    } else if segments.any(|segment| matches!(segment, "" | "." | "..")) {
        Some("a part between two `/` is empty, `.` or `..`")
    } else {
        None
    };
    match problem {
        None => Some(base.to_owned()),
        Some(problem) => {
            let message = format!("`{name}` cannot name an object");
            let help = if is_file {
                "write the path of a file from the project root: `path = \"state/prod.json\"`"
            } else {
                "write something like `key = \"acme-infra/prod.json\"`"
            };
            values.invalid(path, message, problem, help);
            None
        }
    }
}

fn checked_endpoint(values: &mut Values<'_>, endpoint: String) -> Option<String> {
    let (scheme, rest) = endpoint.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_loopback = host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    let problem = match scheme {
        _ if host.is_empty() => Some("the host is missing"),
        _ if authority.contains('@') => Some("a user is not allowed here"),
        "https" => None,
        "http" if is_loopback => None,
        "http" => Some("this is not encrypted"),
        _ => Some("this does not begin with `https://`"),
    };
    let Some(problem) = problem else {
        return Some(endpoint);
    };
    let message = "`endpoint` cannot be used".to_owned();
    let help = "write an address with `https://`; `http://` is allowed only for this machine";
    values.invalid("backend.endpoint", message, problem, help);
    None
}
