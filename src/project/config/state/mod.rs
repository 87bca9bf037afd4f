//! `config.state`: the project and namespace of the state, its backend, and which commands are recorded.
//!
//! Expressions may use `env`. They are evaluated when a command needs the state, so that a variable that only CI has
//! is missed only there; everything else is checked with the rest of the project.

mod backend;
mod record;
mod values;

use std::collections::HashMap;
use std::time::Duration;

pub use self::backend::{
    AzureBackend, BackendConfig, BackendKind, GcsBackend, LocalBackend, S3Backend,
};
pub use self::record::{RecognizedCommand, RecordKind, RecordPatterns};
use self::values::{HostVariables, Values};
use super::ConfigLevel;
use crate::diagnostic::{Code, Diagnostic};
use crate::duration;
use crate::language::syntax::{Attribute, Block};
use crate::project::blocks::{no_labels, twice, unknown_block, unlisted_attribute};
use crate::source::Span;

pub const NAMESPACE_VARIABLE: &str = "ORCH_NAMESPACE";

pub(crate) const DEFAULT_NAMESPACE: &str = "default";

const DEFAULT_BACKUPS: u32 = 20;

const MAX_NAME: usize = 64;

const STATE: [&str; 3] = ["project", "namespace", "backups"];

const LOCK: [&str; 1] = ["expires"];

/// The shortest time until a lock expires: its holder must be able to send several heartbeats.
const MIN_EXPIRY: Duration = Duration::from_mins(1);

/// The lists of patterns. Of two equally good matches, the later list wins.
const RECORD: [&str; 3] = ["apply", "destroy", "never"];

/// `config.state`, as written.
#[derive(Debug, Clone)]
pub struct StateBlock {
    span: Span,
    /// The attributes of the block, of `record` and of the backend, by path: `record.apply`.
    attributes: HashMap<String, Attribute>,
    backend: Option<(BackendKind, Span)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateConfig {
    pub project: String,
    pub namespace: String,
    pub backups: usize,
    /// After how long without a heartbeat of its holder others may take the lock over, if they may.
    pub lock_expires: Option<Duration>,
    pub backend: BackendConfig,
}

pub(super) fn read(
    known: &mut Option<StateBlock>,
    block: &Block,
    level: ConfigLevel,
    imported: bool,
    problems: &mut Vec<Diagnostic>,
) {
    if level == ConfigLevel::Root {
        *known = Some(StateBlock::read(known.take(), block, imported, problems));
        return;
    }
    let message = "`state` belongs in the project root";
    let diagnostic = Diagnostic::error(Code::Misplaced, message)
        .label(block.kind.span, "this directory is not the root");
    let help = "move it to the root directory of the project, which has one state";
    problems.push(diagnostic.help(help));
}

impl StateBlock {
    /// Reads the block, or merges it into `before` from the same directory. Imported settings don't override.
    fn read(
        before: Option<Self>,
        block: &Block,
        imported: bool,
        problems: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut state = before.unwrap_or_else(|| StateBlock {
            span: block.kind.span,
            attributes: HashMap::new(),
            backend: None,
        });
        no_labels(block, problems);
        state.attributes("", block, &STATE, imported, problems);
        let mut first: HashMap<&str, Span> = HashMap::new();
        for inner in &block.body.blocks {
            let (name, prefix, known) = match &*inner.kind.text {
                "backend" => {
                    state.backend(inner, imported, problems);
                    continue;
                }
                "record" => ("record", "record.", &RECORD[..]),
                "lock" => ("lock", "lock.", &LOCK[..]),
                _ => {
                    let help = "a `state` block has `backend \"local\" { … }`, `lock { … }` and `record { … }`";
                    problems.push(unknown_block(inner, block).help(help));
                    continue;
                }
            };
            if let Some(first) = first.get(name) {
                problems.push(twice(inner, *first));
                continue;
            }
            first.insert(name, inner.kind.span);
            no_labels(inner, problems);
            no_blocks(inner, problems);
            state.attributes(prefix, inner, known, imported, problems);
        }
        state
    }

    fn attributes(
        &mut self,
        prefix: &str,
        block: &Block,
        known: &[&str],
        imported: bool,
        problems: &mut Vec<Diagnostic>,
    ) {
        for attribute in &block.body.attributes {
            let name = &*attribute.name.text;
            if !known.contains(&name) {
                problems.push(unlisted_attribute(attribute, block, known));
                continue;
            }
            let path = format!("{prefix}{name}");
            match self.attributes.get(&path) {
                None => _ = self.attributes.insert(path, attribute.clone()),
                Some(_) if imported => {}
                Some(first) => {
                    let message = format!("`config.state.{path}` is set twice in this directory");
                    problems.push(
                        Diagnostic::error(Code::DuplicateDefinition, message)
                            .again(attribute.name.span, first.name.span)
                            .help("remove one of them"),
                    );
                }
            }
        }
    }

    fn backend(&mut self, block: &Block, imported: bool, problems: &mut Vec<Diagnostic>) {
        let span = block.kind.span;
        let label = match block.labels.as_slice() {
            [label] => label,
            labels => {
                let message = "a `backend` block has one label: its kind";
                let diagnostic = match labels.get(1) {
                    Some(label) => Diagnostic::error(Code::UnexpectedLabel, message)
                        .label(label.span, "unexpected label"),
                    None => Diagnostic::error(Code::UnknownBlock, message).label(span, "no label"),
                };
                problems.push(diagnostic.help(format!("kinds are: {}", BackendKind::names())));
                return;
            }
        };
        let Some(kind) = BackendKind::parse(&label.text) else {
            let message = format!("unknown backend `{}`", label.text);
            let diagnostic = Diagnostic::error(Code::UnknownBlock, message)
                .label(label.span, "not a kind of backend")
                .did_you_mean(&label.text, BackendKind::ALL.map(BackendKind::name));
            problems.push(diagnostic.help(format!("kinds are: {}", BackendKind::names())));
            return;
        };
        match self.backend {
            Some(_) if imported => return,
            Some((_, first)) => {
                problems.push(
                    Diagnostic::error(Code::DuplicateBlock, "only one backend is allowed")
                        .label(span, "second backend")
                        .label(first, "first backend")
                        .help("remove one of them"),
                );
                return;
            }
            None => self.backend = Some((kind, span)),
        }
        no_blocks(block, problems);
        self.attributes("backend.", block, kind.attributes(), imported, problems);
    }

    pub fn span(&self) -> Span {
        self.span
    }

    /// Checks everything that needs no variable of the host.
    pub(super) fn check(&self, problems: &mut Vec<Diagnostic>) {
        let mut values = Values::new(&self.attributes, HostVariables::NotAsked);
        _ = self.config(&mut values, None);
        _ = record::patterns(&mut values, &record::LISTS);
        problems.append(&mut values.problems);
    }

    /// Evaluates where the document is. `host` looks up the environment that `orch` was started in.
    pub fn evaluate(
        &self,
        host: &dyn Fn(&str) -> Option<String>,
    ) -> Result<StateConfig, Vec<Diagnostic>> {
        let namespace = host(NAMESPACE_VARIABLE).filter(|namespace| !namespace.is_empty());
        self.evaluated(host, |values| self.config(values, namespace))
    }

    fn evaluated<T>(
        &self,
        host: &dyn Fn(&str) -> Option<String>,
        evaluate: impl FnOnce(&mut Values<'_>) -> Option<T>,
    ) -> Result<T, Vec<Diagnostic>> {
        let mut values = Values::new(&self.attributes, HostVariables::Known(host));
        match evaluate(&mut values) {
            Some(value) if values.problems.is_empty() => Ok(value),
            _ => Err(values.problems),
        }
    }

    /// Evaluates the patterns of recorded commands; see [`Self::evaluate`].
    pub fn patterns(
        &self,
        host: &dyn Fn(&str) -> Option<String>,
    ) -> Result<RecordPatterns, Vec<Diagnostic>> {
        self.evaluated(host, |values| {
            Some(record::patterns(values, &record::LISTS))
        })
    }

    /// Evaluates the patterns of destroying commands: of the lists in `record`, only `destroy` is needed. See
    /// [`Self::evaluate`].
    pub fn destroying(
        &self,
        host: &dyn Fn(&str) -> Option<String>,
    ) -> Result<RecordPatterns, Vec<Diagnostic>> {
        let lists = [RecordKind::Destroy];
        self.evaluated(host, |values| Some(record::patterns(values, &lists)))
    }

    fn config(&self, values: &mut Values<'_>, namespace: Option<String>) -> Option<StateConfig> {
        let project = if self.attributes.contains_key("project") {
            values
                .text("project")
                .filter(|name| values.check_name("project", name))
        } else {
            let message = "`state` needs a `project`";
            let diagnostic = Diagnostic::error(Code::MissingAttribute, message)
                .label(self.span, "no `project` in this block");
            values.problems.push(diagnostic.help(
                "write a name that is unique among the projects in this backend: `project = \"acme-infra\"`",
            ));
            None
        };
        let namespace = match namespace {
            Some(namespace) => match name_problem(&namespace) {
                None => Some(namespace),
                Some(problem) => {
                    let message = format!("`{NAMESPACE_VARIABLE}` is not a namespace: {problem}");
                    values
                        .problems
                        .push(Diagnostic::error(Code::InvalidValue, message).help(NAME_HELP));
                    None
                }
            },
            None if self.attributes.contains_key("namespace") => values
                .text("namespace")
                .filter(|name| values.check_name("namespace", name)),
            None => Some(DEFAULT_NAMESPACE.to_owned()),
        };
        let backups = values.number("backups").unwrap_or(DEFAULT_BACKUPS);
        let lock_expires = lock_expires(values);
        let kind = self.backend.unwrap_or((BackendKind::Local, self.span));
        let backend = backend::config(values, kind);
        Some(StateConfig {
            project: project?,
            namespace: namespace?,
            backups: usize::try_from(backups).ok()?,
            lock_expires,
            backend: backend?,
        })
    }
}

fn lock_expires(values: &mut Values<'_>) -> Option<Duration> {
    const PATH: &str = "lock.expires";
    let text = values.text(PATH)?;
    let problem = match duration::parse(&text) {
        Ok(expires) if expires >= MIN_EXPIRY => return Some(expires),
        Ok(_) => "this is less than a minute".to_owned(),
        Err(problem) => problem,
    };
    let message = "`expires` cannot be used".to_owned();
    let help = "write a duration from `1m` on: `expires = \"15m\"`";
    values.invalid(PATH, message, &problem, help);
    None
}

const NAME_HELP: &str =
    "use letters, digits, `-` and `_`, at most 64, the first a letter or a digit";

fn name_problem(name: &str) -> Option<&'static str> {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match name.as_bytes() {
        [] => Some("it is empty"),
        [first, ..] if !first.is_ascii_alphanumeric() => {
            Some("it does not begin with a letter or a digit")
        }
        bytes if bytes.len() > MAX_NAME => Some("it is too long"),
        bytes if !bytes.iter().all(is_safe) => {
            Some("it has something other than letters, digits, `-` and `_`")
        }
        _ => None,
    }
}

fn no_blocks(block: &Block, problems: &mut Vec<Diagnostic>) {
    for inner in &block.body.blocks {
        problems.push(unknown_block(inner, block));
    }
}
