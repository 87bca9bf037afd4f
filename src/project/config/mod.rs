//! The `terramate` and `orch` blocks of a directory: their schema, merging and values.
//!
//! The two blocks are one, and merge with each other and over the files of a directory. Settings hold for the project
//! and belong in its root; only `config.run.env` with `lets`, the attempts of `config.run`, `config.driver`,
//! `config.apply`, `config.lifecycle` and `config.change_detection.ignore` are allowed in every directory. Keys that
//! concern code generation, cloud or telemetry are checked but not used.

mod pattern;
mod run;
mod safeguards;
mod schema;
mod settings;
mod state;

use std::collections::HashMap;

use semver::Version;

pub use self::pattern::CommandPattern;
pub(crate) use self::run::STACK_KEY;
pub use self::run::{EnvDefinition, LetDefinition, TagLimit};
pub use self::safeguards::{Safeguard, SafeguardKeyword, SafeguardSettings};
use self::schema::{
    APPLY, AttributeType, CHANGE_DETECTION, DRIVER, LIFECYCLE, POLICIES, RESOURCE_DESTROY, RUN,
    RUN_ENV, RUN_LETS, RUN_RETRY, SCHEMA, STATE, Schema,
};
pub use self::settings::{OrderFrom, ProjectSettings};
pub(crate) use self::state::DEFAULT_NAMESPACE;
pub use self::state::{
    AzureBackend, BackendConfig, BackendKind, GcsBackend, LocalBackend, NAMESPACE_VARIABLE,
    RecognizedCommand, RecordKind, RecordPatterns, S3Backend, StateBlock, StateConfig,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block, ExprKind};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::project::attempt::{self, AttemptSettings};
use crate::project::blocks::{elements, no_labels, twice, unknown_attribute, unknown_block, value};
use crate::project::lifecycle::Lifecycle;
use crate::project::lifecycle::block::{BlockPlace, LifecycleReader};
use crate::project::policy;
use crate::source::{Span, Spanned};
use crate::version::Constraint;

#[derive(Debug, Default)]
pub struct Config {
    /// `config.run.env`; a name occurs once, local definitions before imported ones.
    pub env: Vec<EnvDefinition>,
    /// `config.run.lets`, in the same way.
    pub lets: Vec<LetDefinition>,
    /// `config.change_detection.ignore`, as written.
    pub ignore: Vec<Spanned<String>>,
    /// The attempts of `config.run`.
    pub attempts: AttemptSettings,
    pub driver: Option<Spanned<String>>,
    /// `config.apply.resource_destroy`: whether an apply may destroy resources without approval.
    pub allows_resource_destroy: Option<bool>,
    pub lifecycle: Lifecycle,
    /// The settings of the whole project; the defaults in every directory but the root.
    pub settings: ProjectSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigLevel {
    /// The project root, where all settings apply.
    Root,
    /// Any other directory, where only the parts of [`Config`] besides [`ProjectSettings`] apply.
    Below,
}

/// Reads the `terramate` and `orch` blocks of a directory. Local settings override imported ones, and later imports
/// override earlier ones.
pub(crate) fn read<'a>(
    local: impl IntoIterator<Item = &'a Block>,
    imported: impl DoubleEndedIterator<Item = &'a Block>,
    directory: &ProjectPath,
    problems: &mut Vec<Diagnostic>,
) -> Config {
    let mut reader = ConfigReader {
        level: if directory.is_root() {
            ConfigLevel::Root
        } else {
            ConfigLevel::Below
        },
        imported: false,
        config: Config::default(),
        lifecycle: LifecycleReader::new(BlockPlace::Directory, directory, &NAMES),
        seen: HashMap::new(),
        misplaced: Vec::new(),
        problems,
    };
    for block in local {
        reader.tool_block(block);
    }
    reader.imported = true;
    for block in imported.rev() {
        reader.tool_block(block);
    }
    reader.finish()
}

/// The names in expressions of the two blocks.
const NAMES: NoNamespaces = NoNamespaces("the project configuration");

struct ConfigReader<'p> {
    level: ConfigLevel,
    imported: bool,
    config: Config,
    lifecycle: LifecycleReader<'p>,
    /// The first place of each attribute, by its path.
    seen: HashMap<String, Span>,
    misplaced: Vec<Span>,
    problems: &'p mut Vec<Diagnostic>,
}

impl ConfigReader<'_> {
    fn tool_block(&mut self, block: &Block) {
        self.block(block, &SCHEMA);
        if &*block.kind.text == "orch" && self.level == ConfigLevel::Root {
            self.check_version(block);
        }
    }

    fn block(&mut self, block: &Block, schema: &'static Schema) {
        no_labels(block, self.problems);
        for attribute in &block.body.attributes {
            self.attribute(attribute, block, schema);
        }
        for inner in &block.body.blocks {
            let name = &*inner.kind.text;
            if let Some(inner_schema) = schema.blocks.iter().find(|schema| schema.keyword() == name)
            {
                if inner_schema.name == RUN_RETRY {
                    self.retry(inner);
                } else if inner_schema.name == STATE {
                    let known = &mut self.config.settings.state;
                    state::read(known, inner, self.level, self.imported, self.problems);
                } else if inner_schema.name == POLICIES {
                    self.policies(inner);
                } else if inner_schema.name == LIFECYCLE && self.imported {
                    self.lifecycle.imported(inner, self.problems);
                } else if inner_schema.name == LIFECYCLE {
                    self.lifecycle.local(inner, self.problems);
                } else {
                    self.block(inner, inner_schema);
                }
            } else {
                let known = schema.blocks.iter().map(Schema::keyword);
                let diagnostic = unknown_block(inner, block).did_you_mean(name, known);
                self.problems.push(diagnostic);
            }
        }
    }

    fn policies(&mut self, block: &Block) {
        match self.seen.get(POLICIES) {
            Some(_) if self.imported => {}
            Some(&first) => self.problems.push(twice(block, first)),
            None => {
                self.seen.insert(POLICIES.to_owned(), block.kind.span);
                let settings = policy::settings(block, self.problems);
                if self.level == ConfigLevel::Root {
                    self.config.settings.policies = settings;
                } else {
                    self.misplaced.push(block.kind.span);
                }
            }
        }
    }

    fn retry(&mut self, block: &Block) {
        let path = "config.run.retry";
        match self.seen.get(path) {
            Some(_) if self.imported => {}
            Some(&first) => self.problems.push(twice(block, first)),
            None => {
                self.seen.insert(path.to_owned(), block.kind.span);
                self.config.attempts.retry = attempt::block::retry(block, self.problems);
            }
        }
    }

    fn attribute(&mut self, attribute: &Attribute, block: &Block, schema: &'static Schema) {
        let name = &*attribute.name.text;
        let keyword = &*block.kind.text;
        let known = schema.attributes.iter().find(|(known, _)| *known == name);
        if known.is_none() && !schema.open {
            let known: Vec<&str> = schema.attributes.iter().map(|(known, _)| *known).collect();
            let diagnostic = unknown_attribute(attribute, block, &known);
            self.problems.push(diagnostic);
            return;
        }
        // `terramate` and `orch` may each set their own version; all else is one namespace.
        let path = match schema.name {
            "terramate" => format!("{keyword}.{name}"),
            outer => format!("{outer}.{name}"),
        };
        if let Some(&first) = self.seen.get(&path) {
            if !self.imported {
                let diagnostic = Diagnostic::error(
                    Code::DuplicateDefinition,
                    format!("`{path}` is set twice in this directory"),
                );
                self.problems.push(
                    diagnostic
                        .again(attribute.name.span, first)
                        .help("remove one of them"),
                );
            }
            return;
        }
        self.seen.insert(path, attribute.name.span);
        if schema.name == RUN_ENV {
            let definition = run::env_definition(attribute, self.problems);
            self.config.env.push(definition);
            return;
        }
        if schema.name == RUN_LETS {
            let (name, value) = (attribute.name.clone(), attribute.value.clone());
            self.config.lets.push(LetDefinition { name, value });
            return;
        }
        if schema.name == RUN
            && attempt::block::setting(attribute, &mut self.config.attempts, self.problems)
        {
            return;
        }
        let is_ignore = (schema.name, name) == (CHANGE_DETECTION, "ignore");
        let is_driver = (schema.name, name) == ("config", DRIVER);
        let is_resource_destroy = (schema.name, name) == (APPLY, RESOURCE_DESTROY);
        let is_of_directory = is_ignore || is_driver || is_resource_destroy;
        if self.level == ConfigLevel::Below && name != "root" && !is_of_directory {
            self.misplaced.push(attribute.name.span);
        }
        if (schema.name, name) == (RUN, "concurrency") {
            let limits = run::concurrency(attribute, self.problems);
            if self.level == ConfigLevel::Root {
                self.config.settings.concurrency = limits;
            }
            return;
        }
        let Some(value) = known.and_then(|(_, wanted)| self.value(attribute, wanted)) else {
            return;
        };
        if is_driver {
            let value = value.as_str().filter(|name| !name.is_empty());
            let span = attribute.value.span;
            self.config.driver = value.map(|name| Spanned {
                value: name.to_owned(),
                span,
            });
        } else if is_resource_destroy {
            self.config.allows_resource_destroy = Some(value == Value::string("allow"));
        } else if is_ignore {
            self.config.ignore = spanned_strings(attribute, &value);
        } else if (schema.name, name) == (RUN, "read_only") {
            self.read_only(&spanned_strings(attribute, &value));
        } else if self.level == ConfigLevel::Root {
            self.setting(schema.name, name, &value);
        }
    }

    fn read_only(&mut self, patterns: &[Spanned<String>]) {
        for Spanned { value, span } in patterns {
            match CommandPattern::parse(value) {
                Ok(pattern) if self.level == ConfigLevel::Root => {
                    self.config.settings.read_only.push(pattern);
                }
                Ok(_) => {}
                Err(problem) => {
                    let message = format!("`{value}` in `read_only` matches no command");
                    let diagnostic = Diagnostic::error(Code::InvalidPattern, message);
                    self.problems.push(diagnostic.label(*span, problem).help(
                        "write the program's file name and its first arguments, without options: `\"make diff\"`",
                    ));
                }
            }
        }
    }

    fn setting(&mut self, block: &str, name: &str, value: &Value) {
        let settings = &mut self.config.settings;
        let text = || match value {
            Value::String(text) if !text.is_empty() => Some(text.to_string()),
            _ => None,
        };
        let is_on = !matches!(value, Value::Bool(false)) && *value != Value::string("off");
        let configured = &mut settings.safeguards;
        let mut switch = |safeguard| configured.switched.push((safeguard, is_on));
        match (block, name) {
            ("config", "references") => {
                settings.strict_references = *value == Value::string("strict");
            }
            ("config", "order_from") => {
                let has = |kind: &str| {
                    let kinds = value.sequence();
                    kinds.is_some_and(|kinds| kinds.iter().any(|it| it.as_str() == Some(kind)))
                };
                settings.order_from = OrderFrom {
                    terragrunt: has("terragrunt"),
                    remote_state: has("remote_state"),
                };
            }
            ("config", "disable_safeguards") => configured.disabled = safeguards::keywords(value),
            // This list can hold nothing else.
            ("config", "enable_safeguards") if !safeguards::keywords(value).is_empty() => {
                switch(Safeguard::GitOutOfSync);
            }
            ("config.git", "check_untracked") => switch(Safeguard::GitUntracked),
            ("config.git", "check_uncommitted") => switch(Safeguard::GitUncommitted),
            ("config.git", "check_remote") => switch(Safeguard::GitOutOfSync),
            ("config.git", "default_remote") => settings.default_remote = text(),
            ("config.git", "default_branch") => settings.default_branch = text(),
            ("config.change_detection.git", "untracked") => settings.untracked = is_on,
            ("config.change_detection.git", "uncommitted") => settings.uncommitted = is_on,
            (CHANGE_DETECTION, "environment") => settings.environment = is_on,
            ("config.change_detection.terragrunt", "enabled") => settings.terragrunt = is_on,
            _ => {}
        }
    }

    fn value(&mut self, attribute: &Attribute, wanted: &AttributeType) -> Option<Value> {
        let name = &*attribute.name.text;
        let value = value(&attribute.value, &NAMES, self.problems)?;
        let quoted = |choices: &[&str]| {
            let quoted: Vec<String> = choices
                .iter()
                .map(|choice| format!("`\"{choice}\"`"))
                .collect();
            quoted.join(", ")
        };
        let (fits, expected) = match wanted {
            AttributeType::String => (matches!(value, Value::String(_)), "a string".to_owned()),
            AttributeType::Bool => (
                matches!(value, Value::Bool(_)),
                "`true` or `false`".to_owned(),
            ),
            AttributeType::Switch => {
                let fits = match &value {
                    Value::Bool(_) => true,
                    Value::String(text) => matches!(&**text, "on" | "off"),
                    _ => false,
                };
                (fits, "`\"on\"`, `\"off\"` or a bool".to_owned())
            }
            AttributeType::OneOf(choices) => {
                let fits = matches!(&value, Value::String(text) if choices.contains(&&**text));
                (fits, format!("one of {}", quoted(choices)))
            }
            AttributeType::Strings => (
                are_strings(&value, |_| true),
                "a list of strings".to_owned(),
            ),
            AttributeType::StringsOf(choices) => {
                let fits = are_strings(&value, |text| choices.contains(&text));
                (fits, format!("a list of {}", quoted(choices)))
            }
            AttributeType::Own => return Some(value),
        };
        if fits {
            return Some(value);
        }
        let label = match &value {
            Value::String(text) => format!("this is `\"{text}\"`"),
            other => format!("this is {}", other.type_name()),
        };
        let diagnostic = Diagnostic::error(Code::WrongType, format!("`{name}` must be {expected}"));
        self.problems
            .push(diagnostic.label(attribute.value.span, label));
        None
    }

    fn check_version(&mut self, block: &Block) {
        let Some(attribute) = block.body.attribute("required_version") else {
            return;
        };
        let ExprKind::String(text) = &attribute.value.kind else {
            return; // its type was checked with the rest
        };
        let allow_prereleases = block
            .body
            .attribute("required_version_allow_prereleases")
            .is_some_and(|attribute| matches!(attribute.value.kind, ExprKind::Bool(true)));
        let span = attribute.value.span;
        let own = env!("CARGO_PKG_VERSION");
        let version = Version::parse(own).expect("cargo accepts only semantic versions");
        match Constraint::parse(text) {
            Err(problem) => {
                let diagnostic = Diagnostic::error(
                    Code::InvalidValue,
                    format!("`{text}` is not a version constraint"),
                );
                let help = "write something like `~> 0.1` or `>= 0.1.0, < 2.0.0`";
                self.problems
                    .push(diagnostic.label(span, problem).help(help));
            }
            Ok(constraint) if !constraint.allows(&version, allow_prereleases) => {
                let diagnostic = Diagnostic::error(
                    Code::IncompatibleVersion,
                    format!("this project needs orch {text}, and this is orch {own}"),
                );
                let help = "install a version of orch that fits, or change the constraint";
                self.problems
                    .push(diagnostic.label(span, "required here").help(help));
            }
            Ok(_) => {}
        }
    }

    fn finish(mut self) -> Config {
        self.config.lifecycle = self.lifecycle.finish();
        safeguards::check(&self.config.settings.safeguards, &self.seen, self.problems);
        if let Some(state) = &self.config.settings.state {
            state.check(self.problems);
        }
        if let Some((&first, rest)) = self.misplaced.split_first() {
            let mut diagnostic = Diagnostic::warning(
                Code::Misplaced,
                "this setting applies only in the project root, and is ignored here",
            );
            diagnostic = diagnostic.label(first, "ignored");
            for &span in rest {
                diagnostic = diagnostic.label(span, "ignored too");
            }
            let help = "move it to the project root; only `env`, `lets`, `timeout`, `retry` and the exit codes of `config.run`, `config.driver`, `config.lifecycle` and `config.change_detection.ignore` may be here";
            self.problems.push(diagnostic.help(help));
        }
        self.config
    }
}

/// Returns the elements of a list of strings, each with its own place if the list is a literal.
fn spanned_strings(attribute: &Attribute, value: &Value) -> Vec<Spanned<String>> {
    let Some(items) = value.sequence() else {
        return Vec::new();
    };
    let strings = elements(&attribute.value, items).filter_map(|(span, item)| {
        let value = item.as_str()?.to_owned();
        Some(Spanned { value, span })
    });
    strings.collect()
}

fn are_strings(value: &Value, fits: impl Fn(&str) -> bool) -> bool {
    let items = value.sequence();
    items.is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(&fits)))
}
