//! `orch create`

use std::io::Write as _;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use orch::command::create::{CreateRequest, Created};
use orch::create::NewStack;
use orch::exit::ExitStatus;
use orch::printable::{printable, printable_lines};

use super::{CommandContext, Reads};
use crate::program::console;
use crate::program::error::Result;

/// Create stacks
///
/// Writes `stack.tm.hcl`, which Terramate reads too, with a new UUID as the id. Several stacks are
/// created all or none, and no file is overwritten.
///
/// A directory with a `backend`, `cloud` or `provider` block is a root module of Terraform, unless
/// another directory calls it as a module. A Terragrunt unit has a `terraform` block with a `source`, or
/// Terraform files beside it.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(
    group = ArgGroup::new("what").required(true),
    after_help = "\
Examples:
  orch create prod/network --tags prod,network
  orch create prod/app --after /prod/network --import /imports/app.tm.hcl
  orch create --all-terraform --dry-run
  orch create --all-terraform && orch list"
)]
pub(crate) struct CreateArgs {
    /// The directory of the stack: from the project root if it begins with `/`
    #[arg(value_name = "PATH", group = "what")]
    pub(crate) path: Option<PathBuf>,

    /// Make a stack of each Terraform root module at and below the current directory
    #[arg(long, group = "what")]
    pub(crate) all_terraform: bool,

    /// Make a stack of each Terragrunt unit at and below the current directory
    ///
    /// `after` gets the units that it depends on, except those above it, which run before it anyway.
    #[arg(long, group = "what")]
    pub(crate) all_terragrunt: bool,

    /// Give an id to each stack of the project that has none
    #[arg(long, group = "what", conflicts_with_all = ["tags"])]
    pub(crate) ensure_stack_ids: bool,

    /// Show the files without writing them; the ids will be others
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// End without an error if the stack or its file exists
    #[arg(long, conflicts_with_all = SCANS)]
    pub(crate) ignore_existing: bool,

    /// The id, instead of a new UUID
    #[arg(long, value_name = "ID", help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) id: Option<String>,

    /// The name, instead of that of the directory
    #[arg(long, value_name = "NAME", help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) name: Option<String>,

    /// The description, instead of the name
    #[arg(long, value_name = "TEXT", help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) description: Option<String>,

    /// Tags
    #[arg(long, value_name = "TAG,…", value_delimiter = ',', help_heading = ATTRIBUTES)]
    pub(crate) tags: Vec<String>,

    /// Stacks that it runs after
    #[arg(long, value_name = "REF,…", value_delimiter = ',', help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) after: Vec<String>,

    /// Stacks that it runs before
    #[arg(long, value_name = "REF,…", value_delimiter = ',', help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) before: Vec<String>,

    /// Stacks that are selected with it
    #[arg(long, value_name = "REF,…", value_delimiter = ',', help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) wants: Vec<String>,

    /// Stacks that it is selected with
    #[arg(long, value_name = "REF,…", value_delimiter = ',', help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) wanted_by: Vec<String>,

    /// Files outside of its directory that belong to it
    #[arg(long, value_name = "FILE,…", value_delimiter = ',', help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) watch: Vec<String>,

    /// Configuration files that it imports
    #[arg(long, value_name = "FILE,…", value_delimiter = ',', help_heading = ATTRIBUTES, conflicts_with_all = SCANS)]
    pub(crate) import: Vec<String>,

    /// Has no effect: orch generates no code
    #[arg(long, hide = true)]
    pub(crate) no_generate: bool,
}

const ATTRIBUTES: &str = "Attributes";

/// The flags that create or change many stacks.
const SCANS: [&str; 3] = ["all_terraform", "all_terragrunt", "ensure_stack_ids"];

impl CreateArgs {
    fn request(&self) -> CreateRequest {
        let what = match &self.path {
            Some(path) => Created::At(path.clone()),
            None if self.all_terraform => Created::AllTerraform,
            None if self.all_terragrunt => Created::AllTerragrunt,
            None => Created::Ids,
        };
        CreateRequest {
            what,
            stack: NewStack {
                id: self.id.clone(),
                name: self.name.clone(),
                description: self.description.clone(),
                tags: self.tags.clone(),
                after: self.after.clone(),
                before: self.before.clone(),
                wants: self.wants.clone(),
                wanted_by: self.wanted_by.clone(),
                watch: self.watch.clone(),
                imports: self.import.clone(),
            },
            ignores_existing: self.ignore_existing,
        }
    }
}

pub(super) fn create(chdir: &[PathBuf], args: &CreateArgs) -> Result<ExitStatus> {
    let request = args.request();
    let reads = match request.what {
        Created::AllTerraform | Created::AllTerragrunt => Reads::INPUTS,
        Created::At(_) | Created::Ids => Reads::CONFIGURATION,
    };
    let mut context = CommandContext::new(chdir, None, reads)?;
    context.report()?;
    let created = context.ask(|context| context.create(&request))?;
    if !args.dry_run {
        created.write(&context)?;
    }
    // The files exist even if this cannot be printed.
    let mut out = console::stdout();
    for file in created.files() {
        let stack = printable(file.stack.as_str());
        match (args.dry_run, &file.new_id) {
            (false, None) => writeln!(out, "created stack {stack}")?,
            (false, Some(id)) => writeln!(out, "set the id of stack {stack}: {id}")?,
            (true, None) => {
                let path = file.change.path.relative_to(&context.directory);
                writeln!(out, "would create {}:", printable(&path))?;
                for line in printable_lines(&file.change.after).lines() {
                    let indent = if line.is_empty() { "" } else { "  " };
                    writeln!(out, "{indent}{line}")?;
                }
            }
            (true, Some(id)) => {
                let path = file.change.path.relative_to(&context.directory);
                writeln!(
                    out,
                    "would set the id of stack {stack} in {}: {id}",
                    printable(&path)
                )?;
            }
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
