//! `orch why`

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command, Id};
use orch::change::{
    ChangeError, Changes, Input, Since, SinceBase, add_computed, add_uncounted, ignored_variables,
    inputs_of, mark_ignored,
};
use orch::diagnostic::closest;
use orch::error::ErrorKind;
use orch::exit::ExitStatus;
use orch::path::StackPath;
use orch::printable::{command_line, printable};
use orch::project::host::host_environment;
use orch::project::stack::StackIndex;
use orch::report::{
    Document, Ordered, Refusal, Story, write_causes, write_causes_json, write_causes_refusal_json,
    write_why, write_why_after, write_why_after_json, write_why_json,
};
use orch::selection::attached::Attached;
use orch::selection::why::{Question, chain};
use orch::source::Spanned;

use super::filters::without_changed;
use super::format::Format;
use super::selection_flags::{SEE_SELECTION, SelectArgs};
use super::{CyclesAre, Filters, Loaded, Reads, find_project, runs};
use crate::program::console;
use crate::program::error::{ProgramError, Result};

/// Explain one stack: why it is selected or not, and what it runs after and before
///
/// Shows whether the stack is selected and by which rule, or what leaves it out; its inputs and, with
/// --changed, which of them have changed; what it runs after and before; and what would select it. The
/// flags are those of `list`. Of a stack that is on record and no longer here, shows what is on record, and
/// which commit removed it or why nothing proves that, and what is destroyed with it in which order.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES, after_long_help = format!("{WHY_EXAMPLES}\n\n{SEE_SELECTION}"))]
pub(crate) struct WhyArgs {
    /// The stack: a path relative to the current directory, or from the project root with a `/`
    ///
    /// A directory with `for_each` means all its instances, `'net["dev"]'` one of them.
    #[arg(value_name = "STACK")]
    pub(crate) stack: String,

    /// Explain why the stack runs after this other stack
    ///
    /// Shows a shortest chain of constraints between the two, each with its place.
    #[arg(long, value_name = "STACK", conflicts_with_all = selecting())]
    pub(crate) after: Option<String>,

    /// Explain why the stack had its turns in this run, back to the first
    ///
    /// Shows which turns followed which others, and the policies that asked for them. RUN is `last`, `last~1`
    /// for the run before it, or a unique beginning or end of a run id.
    #[arg(long, value_name = "RUN", conflicts_with_all = selecting(), conflicts_with = "after")]
    pub(crate) run: Option<String>,

    /// The format of the explanation
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Returns the flags of a selection, which conflict with `--after` and `--run`: neither depends on one.
fn selecting() -> Vec<Id> {
    let select = SelectArgs::augment_args(Command::new("select"));
    let flags = select.get_arguments().map(|it| it.get_id().clone());
    flags.collect()
}

const WHY_EXAMPLES: &str = "\
Examples:
  orch why prod/network
  orch why /prod/network --changed
  orch why . --changed --tags prod
  orch why prod/app --after prod/network
  orch why prod/app --run last";

pub(super) fn why(chdir: &[PathBuf], args: &WhyArgs) -> Result<ExitStatus> {
    if args.stack.is_empty() {
        let message = "the path of the stack is empty; the current directory is `.`";
        return Err(ProgramError::usage(message));
    }
    if let Some(run) = &args.run {
        return why_in_run(chdir, args, run);
    }
    if let Some(earlier) = &args.after {
        return why_after(chdir, args, earlier);
    }
    let filters = Filters::of_run(chdir, &args.select)?.explaining(true);
    let reads = Reads::for_selection(&args.select).with_listing();
    let document = args.format.document(Document::Why);
    let mut loaded = Loaded::new(chdir, document, reads)?;
    loaded.check(filters.change())?;
    let query = loaded.query(filters)?;
    if loaded.why_missing(&args.stack, args.format)? {
        return Ok(ExitStatus::Success);
    }
    if args.select.fetch && !args.select.changed && args.select.status.is_empty() {
        return Err(without_changed("--fetch"));
    }
    let stacks = loaded.stacks(&args.stack, query.since().as_ref())?;
    let selection = loaded.select_any(&query);
    loaded.check_cycles(CyclesAre::Warnings);
    let failed = "failed to read the inputs of the stack";
    let mut inputs = Vec::with_capacity(stacks.len());
    for &stack in &stacks {
        let of_stack = loaded.inputs(stack, query.changed.as_ref());
        inputs.push(of_stack.context(failed)?);
    }
    loaded.report()?;
    let (project, listing) = (&loaded.project, &loaded.listing);
    let uncounted = query.changed.as_ref().map(|changes| &changes.uncounted);
    let mut answers = Vec::with_capacity(stacks.len());
    for (&stack, mut inputs) in stacks.iter().zip(inputs) {
        if let Some(uncounted) = uncounted {
            add_uncounted(project, listing, uncounted, stack, &mut inputs).context(failed)?;
        }
        mark_ignored(project, stack, &mut inputs);
        let question = Question {
            project,
            references: &loaded.references,
            graph: &loaded.graph,
            query: &query,
            selection: &selection,
            stack,
        };
        let why = question.answer(inputs);
        answers.push((question, why, ignored_variables(project, stack)));
    }
    let attached = Attached::resolve(project, &mut Vec::new());
    let policies = |stack: StackIndex| {
        let policies = attached.to_stack(stack).iter();
        policies.map(|policy| &project.policies[*policy]).collect()
    };
    let stories = answers.iter().map(|(question, why, variables)| Story {
        policies: policies(question.stack),
        question,
        why,
        uncounted_trigger: uncounted
            .and_then(|uncounted| uncounted.trigger_of(project, question.stack)),
        ignored_variables: variables,
    });
    let stories: Vec<Story<'_>> = stories.collect();
    let mut out = console::stdout();
    match args.format {
        Format::Text => {
            for (number, story) in stories.iter().enumerate() {
                if number > 0 {
                    writeln!(out)?;
                }
                write_why(&mut out, story)?;
            }
        }
        Format::Json => write_why_json(&mut out, &stories, &loaded.problems)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Explains why the stack runs after another one.
fn why_after(chdir: &[PathBuf], args: &WhyArgs, earlier: &str) -> Result<ExitStatus> {
    let document = args.format.document(Document::WhyAfter);
    let mut loaded = Loaded::new(chdir, document, Reads::CONFIGURATION)?;
    loaded.check(None)?;
    let later = loaded.stack(&args.stack)?;
    let earlier = loaded.stack(earlier)?;
    loaded.check_cycles(CyclesAre::Warnings);
    loaded.report()?;
    let ordered = Ordered {
        project: &loaded.project,
        later,
        earlier,
        chain: chain(&loaded.graph, later, earlier),
        reverse: chain(&loaded.graph, earlier, later),
    };
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_why_after(&mut out, &ordered)?,
        Format::Json => write_why_after_json(&mut out, &ordered, &loaded.problems)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

impl Loaded {
    /// Returns what a stack depends on.
    fn inputs(
        &mut self,
        stack: StackIndex,
        changes: Option<&Changes>,
    ) -> std::result::Result<Vec<Input>, ChangeError> {
        let files = changes.map(|changes| &changes.files);
        let (workspace, problems) = self.parts();
        let (project, listing) = (&workspace.project, &workspace.listing);
        let mut inputs = inputs_of(project, listing, files, stack, problems)?;
        let cause = changes.and_then(|changes| changes.stacks.get(&stack));
        let host: Vec<(String, String)> = host_environment().collect();
        add_computed(project, listing, &host, files, cause, stack, &mut inputs)?;
        Ok(inputs)
    }

    /// Returns the stack at the path that the user gives. If there is none, or more than one, the
    /// document says so.
    pub(super) fn stack(&mut self, written: &str) -> Result<StackIndex> {
        let found = self.find_stacks(written, None);
        let found = found.and_then(|stacks| {
            let named = format!("`{}`", printable(written));
            self.only(&stacks, &named, "choose one")
        });
        self.refuse(found)
    }

    /// Returns the stack of the current directory, if there is one. If there are several, the document
    /// says so.
    pub(super) fn stack_here(&mut self) -> Result<Option<StackIndex>> {
        let here: Vec<StackIndex> = self.project.stacks.at(self.directory.as_str()).collect();
        if here.is_empty() {
            return Ok(None);
        }
        let found = self.only(&here, "this directory", "choose one with `--stack`");
        let found = found.map(Some);
        self.refuse(found)
    }

    /// Returns the stacks at the path that the user gives: one, or the instances in a directory. If
    /// there are none, the document says so.
    fn stacks(&mut self, written: &str, since: Option<&Since>) -> Result<Vec<StackIndex>> {
        let found = self.find_stacks(written, since);
        self.refuse(found)
    }

    /// Returns the only one of some stacks. If there are more, the error says how to choose one.
    fn only(&self, stacks: &[StackIndex], named: &str, choose: &str) -> Result<StackIndex> {
        if let [only] = stacks {
            return Ok(*only);
        }
        let shown = stacks.iter().take(MAX_KNOWN);
        let shown = shown.map(|&stack| {
            let path = self.project.stacks[stack].path.as_str();
            format!("`{}`", command_line(&[path.into()]))
        });
        let mut shown: Vec<String> = shown.collect();
        if stacks.len() > MAX_KNOWN {
            shown.push("…".to_owned());
        }
        let (n, shown) = (stacks.len(), shown.join(", "));
        let message = format!("{named} has {n} instances; {choose}: {shown}");
        Err(ProgramError::usage(message))
    }

    /// Writes the document of a command if there is an error instead of an answer.
    pub(super) fn refuse<T, E: Into<ProgramError>>(&mut self, found: Result<T, E>) -> Result<T> {
        let found = found.map_err(Into::into);
        if let Err(error) = &found {
            self.settle_problems();
            self.write_problems(Some(Refusal {
                problem: &error.message(),
                command: None,
            }))?;
        }
        found
    }

    fn find_stacks(&self, written: &str, since: Option<&Since>) -> Result<Vec<StackIndex>> {
        let shown = printable(written);
        let Ok(path) = self.directory.resolve(written) else {
            return Err(ProgramError::usage(format!(
                "`{shown}` lies outside of the project"
            )));
        };
        let stacks = &self.project.stacks;
        if let Ok(found) = stacks.written(&self.directory, written)
            && found.len() > 0
        {
            return Ok(found.collect());
        }
        let is_meant = |removed: &StackPath| removed.as_str() == path.as_str();
        if let Some(since) = since.filter(|since| since.removed.iter().any(is_meant)) {
            let message = match &since.base {
                SinceBase::Commit(base) => format!(
                    "`{shown}` is no longer a stack; it was one in the base {}",
                    base.commit.short()
                ),
                SinceBase::Applied(_) => {
                    format!("`{shown}` is no longer a stack; it is on record, and was removed")
                }
            };
            return Err(ProgramError::usage(message));
        }
        if let Some(why) = self.without_quotes(written) {
            return Err(ProgramError::usage(format!("`{shown}`: {why}")));
        }
        let mut message = format!("`{shown}`: {}", self.why_no_stack(&path, written));
        let paths = stacks.iter().map(|(_, stack)| stack.path.as_str());
        if let Some(known_as) = self.known_as(written) {
            message += &known_as;
        } else if let Some(close) = closest(path.as_str(), paths)
            && !path.is_root()
        {
            message += &format!("; did you mean `{}`?", printable(close));
        }
        Err(ProgramError::usage(message))
    }

    /// Returns the stacks that have a text as their name, as their id or at the end of their path.
    fn known_as(&self, written: &str) -> Option<String> {
        if written.is_empty() {
            return None;
        }
        let (mut by_id, mut by_name, mut by_path) = (Vec::new(), Vec::new(), Vec::new());
        for (_, stack) in self.project.stacks.iter() {
            let is_id = |id: &Spanned<String>| id.value.eq_ignore_ascii_case(written);
            let path = format!("`{}`", printable(stack.path.as_str()));
            if stack.id.as_ref().is_some_and(is_id) {
                by_id.push(path);
            } else if stack.name == written {
                by_name.push(path);
            } else if stack.path.directory().basename() == written {
                by_path.push(path);
            }
        }
        let groups = [
            (by_id, "has this id", "have this id"),
            (by_name, "has this name", "have this name"),
            (by_path, "ends with it", "end with it"),
        ];
        let groups = groups.into_iter().filter_map(|(mut paths, one, several)| {
            let verb = if paths.len() == 1 { one } else { several };
            if paths.len() > MAX_KNOWN {
                let more = paths.len() - MAX_KNOWN;
                paths.truncate(MAX_KNOWN);
                paths.push(format!("{more} more"));
            }
            let last = paths.pop()?;
            Some(match paths.as_slice() {
                [] => format!("{last} {verb}"),
                paths => format!("{} and {last} {verb}", paths.join(", ")),
            })
        });
        let groups: Vec<String> = groups.collect();
        if groups.is_empty() {
            return None;
        }
        Some(format!("; {}: write the path", groups.join(", ")))
    }
}

/// How many stacks are listed where a name is not a path.
const MAX_KNOWN: usize = 5;

/// Explains why a stack had its turns in a run.
fn why_in_run(chdir: &[PathBuf], args: &WhyArgs, run: &str) -> Result<ExitStatus> {
    let told = tell_causes(chdir, args, run);
    if let Err(error) = &told
        && args.format == Format::Json
        && matches!(error.kind(), ErrorKind::Refused | ErrorKind::Usage)
    {
        let mut out = console::stdout();
        write_causes_refusal_json(&mut out, &error.message())?;
        out.flush()?;
    }
    told
}

fn tell_causes(chdir: &[PathBuf], args: &WhyArgs, run: &str) -> Result<ExitStatus> {
    let found = find_project(chdir)?;
    let shown = runs::shown_in(&found.root, run)?;
    let path = found.directory.resolve(&args.stack).ok();
    let path = path.map_or_else(|| args.stack.clone(), |path| path.to_string());
    let known = || shown.record.stacks.iter().map(|stack| stack.path.as_str());
    if !known().any(|known| known == path) {
        let run = &shown.record.header.run;
        let mut message = format!("`{}` is not a stack of run {run}", printable(&path));
        let is_instance = |known: &&str| {
            let key = known.strip_prefix(&path);
            key.is_some_and(|key| key.starts_with('['))
        };
        let instance = known().find(is_instance);
        if let Some(meant) = instance.or_else(|| closest(&path, known())) {
            message += &format!("; did you mean `{}`?", printable(meant));
        }
        return Err(ProgramError::usage(message));
    }
    let mut out = console::stdout();
    match args.format {
        Format::Text => write_causes(&mut out, &shown, &path)?,
        Format::Json => write_causes_json(&mut out, &shown, &path)?,
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}
