//! `driver` blocks: how a kind of stack is planned, applied and destroyed, as written.
//!
//! This module doesn't know the commands of the built-in drivers, or how the files of a stack select one.

use std::collections::{BTreeMap, HashSet};

use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Attribute, Block, Expr, ExprKind};
use crate::project::attempt::block::{SUCCESS_ON_INTERRUPT, exit_codes, flag};
use crate::project::blocks::{name, no_blocks, string, unknown_attribute};
use crate::source::{Span, Spanned};

pub(crate) const DRIVER: &str = "driver";

/// The drivers that exist without a block. A block of the same name overrides them.
pub const BUILT_IN: [&str; 4] = ["terraform", "opentofu", "terragrunt", NONE];

/// The driver of stacks that are only recorded.
pub const NONE: &str = "none";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriverStep {
    Init,
    Plan,
    Apply,
    Destroy,
    /// Reads the resources, and changes nothing.
    Read,
    /// Prints the outputs as a JSON object.
    Outputs,
}

impl DriverStep {
    pub const ALL: [DriverStep; 6] = [
        DriverStep::Init,
        DriverStep::Plan,
        DriverStep::Apply,
        DriverStep::Destroy,
        DriverStep::Read,
        DriverStep::Outputs,
    ];

    pub fn name(self) -> &'static str {
        match self {
            DriverStep::Init => "init",
            DriverStep::Plan => "plan",
            DriverStep::Apply => "apply",
            DriverStep::Destroy => "destroy",
            DriverStep::Read => "read",
            DriverStep::Outputs => "outputs",
        }
    }
}

#[derive(Debug, Clone)]
pub struct DriverBlock {
    pub name: Spanned<String>,
    /// The commands, each a list of words that is evaluated for each stack.
    pub commands: BTreeMap<DriverStep, Expr>,
    /// `initialized`: the path in the stack directory that `init` creates.
    pub initialized: Option<String>,
    /// `changes_on_exit`: the exit statuses with which `plan` reports changes.
    pub changes_on_exit: Option<Vec<i32>>,
    /// `may_replace`: the answer of `plan` may turn an update into a replace.
    pub may_replace: bool,
    /// `success_on_interrupt`: a command that exits with 0 after an interrupt has succeeded.
    pub success_on_interrupt: bool,
    /// `backend`: the backend of the tool, evaluated for each stack.
    pub backend: Option<Expr>,
}

const ATTRIBUTES: [&str; 11] = [
    "init",
    "plan",
    "apply",
    "destroy",
    "read",
    "outputs",
    "initialized",
    "changes_on_exit",
    "may_replace",
    SUCCESS_ON_INTERRUPT,
    "backend",
];

/// Reads the `driver` blocks of the project root, by name.
pub(crate) fn read<'a>(
    blocks: impl Iterator<Item = &'a Block>,
    problems: &mut Vec<Diagnostic>,
) -> BTreeMap<String, DriverBlock> {
    let mut drivers: BTreeMap<String, DriverBlock> = BTreeMap::new();
    for block in blocks {
        let Some(driver) = one(block, problems) else {
            continue;
        };
        if let Some(first) = drivers.get(&driver.name.value) {
            let message = format!("the driver `{}` is defined twice", driver.name.value);
            let diagnostic = Diagnostic::error(Code::DuplicateDefinition, message)
                .again(driver.name.span, first.name.span);
            problems.push(diagnostic.help("remove or rename one of them"));
            continue;
        }
        drivers.insert(driver.name.value.clone(), driver);
    }
    drivers
}

/// Reports a `driver` block outside of the root.
pub(crate) fn misplaced(block: &Block) -> Diagnostic {
    let message = "a `driver` block must be in the project root";
    Diagnostic::error(Code::Misplaced, message)
        .label(block.kind.span, "not at the root")
        .help("move the block there; to choose a driver here, set `driver = \"NAME\"` in `orch.config`")
}

fn one(block: &Block, problems: &mut Vec<Diagnostic>) -> Option<DriverBlock> {
    let name = name(block, "make", problems)?;
    if name.value == NONE {
        let message = "`none` cannot be the name of a driver";
        let diagnostic = Diagnostic::error(Code::InvalidValue, message);
        problems.push(diagnostic.label(name.span, "the driver `none` does nothing"));
        return None;
    }
    no_blocks(block, "a driver has only attributes", problems);
    let mut driver = DriverBlock {
        name,
        commands: BTreeMap::new(),
        initialized: None,
        changes_on_exit: None,
        may_replace: false,
        success_on_interrupt: false,
        backend: None,
    };
    for attribute in &block.body.attributes {
        driver.attribute(attribute, block, problems);
    }
    let is_new = !BUILT_IN.contains(&driver.name.value.as_str());
    let is_written = |step: DriverStep| block.body.attribute(step.name()).is_some();
    if is_new && !is_written(DriverStep::Apply) {
        let message = format!("the driver `{}` has no `apply`", driver.name.value);
        let diagnostic = Diagnostic::error(Code::MissingAttribute, message)
            .label(driver.name.span, "`apply` is missing")
            .help("write the command as a list of words: `apply = [\"make\", \"apply\"]`");
        problems.push(diagnostic);
    }
    Some(driver)
}

impl DriverBlock {
    fn attribute(&mut self, attribute: &Attribute, block: &Block, problems: &mut Vec<Diagnostic>) {
        let name = &*attribute.name.text;
        if let Some(step) = DriverStep::ALL.into_iter().find(|step| step.name() == name) {
            if let ExprKind::List(words) = &attribute.value.kind
                && words.is_empty()
            {
                let message = format!("`{name}` is empty");
                problems.push(
                    Diagnostic::error(Code::InvalidValue, message)
                        .label(attribute.value.span, "a command needs a program")
                        .help("remove the attribute, or name the program"),
                );
            }
            self.commands.insert(step, attribute.value.clone());
            return;
        }
        match name {
            "initialized" => self.initialized = path(attribute, problems),
            "changes_on_exit" => {
                let codes = exit_codes(attribute, problems);
                self.changes_on_exit = codes.map(|codes| codes.to_vec());
            }
            "may_replace" => self.may_replace = flag(attribute, problems).unwrap_or_default(),
            SUCCESS_ON_INTERRUPT => {
                self.success_on_interrupt = flag(attribute, problems).unwrap_or_default();
            }
            "backend" => self.backend = Some(attribute.value.clone()),
            _ => problems.push(unknown_attribute(attribute, block, &ATTRIBUTES)),
        }
    }
}

/// Reads a path that stays in the stack directory.
fn path(attribute: &Attribute, problems: &mut Vec<Diagnostic>) -> Option<String> {
    let names = NoNamespaces("this attribute of a driver");
    let text = string(attribute, "a path", &names, problems)?.value;
    let mut parts = text.split('/');
    if text.is_empty() || text.starts_with('/') || parts.any(|part| part == "..") {
        let message = format!("`{text}` is not a path in the directory of a stack");
        problems.push(
            Diagnostic::error(Code::InvalidValue, message)
                .label(attribute.value.span, "it leads out of that directory"),
        );
        return None;
    }
    Some(text)
}

pub(crate) fn check<'a>(
    chosen: impl Iterator<Item = &'a Spanned<String>>,
    drivers: &BTreeMap<String, DriverBlock>,
    problems: &mut Vec<Diagnostic>,
) {
    let known: Vec<&str> = BUILT_IN
        .into_iter()
        .chain(drivers.keys().map(String::as_str))
        .collect();
    // The instances of a directory share the place.
    let mut reported: HashSet<Span> = HashSet::new();
    for chosen in chosen {
        if known.contains(&chosen.value.as_str()) || !reported.insert(chosen.span) {
            continue;
        }
        let message = format!("unknown driver `{}`", chosen.value);
        let diagnostic =
            Diagnostic::error(Code::UnknownDriver, message).label(chosen.span, "chosen here");
        let diagnostic = diagnostic.did_you_mean(&chosen.value, known.iter().copied());
        problems.push(diagnostic.help("define it at the root: `driver \"NAME\" { … }`"));
    }
}
