//! The domain of `orch`: it finds the stacks of an infrastructure monorepo, selects some, puts them
//! in order and runs a command in each. The program around it only parses the command line, calls
//! [`command`] and prints.
//!
//! ```text
//! discover → parse → evaluate → select → order → schedule → execute → report
//!   files     syntax   stacks    chosen   graph     next      events    bytes
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | project | the directory tree under the project root |
//! | stack path | absolute inside the project, `/`-separated: `/prod/network` |
//! | stack | a directory whose configuration has a `stack` block |
//! | instance | one of the stacks that `for_each` makes in a directory; it has a key: `/net["dev"]` |
//! | reference | an entry of `after`, `before`, `wants`, `wanted_by`: a path or `tag:…` |
//! | change | a file that differs from the base, and the rule that ties it to a stack |
//! | trigger | a file that asks for a stack to count as changed, or not, for a reason of its own |
//! | base | the commit that changes are measured from, with the reason it was chosen |
//! | selection | the stacks a command acts on, each with the reasons it is in |
//! | constraint | "u before v", with its origin (nesting, `before`, `after`) and place |
//! | graph | all constraints of the project |
//! | order | the selection in the sequence that a serial run uses |
//! | wave | the stacks whose predecessors all lie in earlier waves |
//! | safeguard | a state of the repository in which nothing is run |
//! | run | one execution of a command over an order |
//! | plan | what `orch apply` would do: an entry for each stack, turns in one order |
//! | operation | what a turn does to a stack: bring it forward, destroy it, run a command in it |
//! | turn | one stack's turn in a run, with all its steps and attempts; a stack may have several |
//! | step | one command of a turn |
//! | outcome | how a turn ended: succeeded, failed, skipped, cancelled, with the cause |
//! | journal | the record of a run on disk, from which it can be resumed |
//! | driver | how a kind of stack is planned, applied, destroyed |
//! | state | the document of what was applied, from which commit and inputs |
//! | intent | what is about to be done to a stack, on record before it is |
//!
//! # Floors
//!
//! The modules stand on floors. Each uses only what stands above it in this list; a test reads the
//! imports and fails where one points the other way.
//!
//! | floor | what it does |
//! | --- | --- |
//! | [`exit`], [`error`], [`duration`], [`ascii`], `on_disk`, [`folder`], [`printable`], [`path`], [`pattern`], [`source`], [`version`], [`diagnostic`], [`notice`] | leaves: exit statuses, errors that end a command, times, bytes as text, files, the folder `.orch`, names made safe to show, paths, positions, problems, what a command has to say |
//! | [`policy`] | what a Rego file answers, in a process of its own |
//! | [`language`] | text to syntax, expressions to values |
//! | [`project`] | files to configuration, configuration to stacks |
//! | [`git`] | which files have changed, and in which state the repository is |
//! | [`driver`] | how a kind of stack is planned and applied |
//! | [`author`] | who runs `orch`, on which machine, in which CI job |
//! | [`state`] | what was applied: a document that machines share |
//! | [`change`] | changed files to changed stacks |
//! | [`release`] | which stacks call a module at its old version |
//! | [`selection`] | which stacks, which before which, and why |
//! | [`workspace`] | the project that a command works in |
//! | [`context`] | the project with what git and the state say about it |
//! | [`create`] | files of new stacks |
//! | [`record`] | journals and logs of runs |
//! | [`run`] | whether, in which order and how commands run |
//! | [`plan`] | what an apply would do |
//! | [`export`] | a run as the pipeline of an engine, and the work order of its jobs |
//! | [`report`] | all of that as text, JSON, Markdown, HTML and graphs |
//! | [`command`] | the commands, from the request to the answer |
//!
//! The program itself (command line, terminal, exit status) is the other target of the package, and
//! stands above all of them.

pub mod ascii;
pub mod author;
pub mod change;
pub mod command;
pub mod context;
pub mod create;
pub mod diagnostic;
pub mod driver;
pub mod duration;
pub mod error;
pub mod exit;
pub mod export;
pub mod folder;
pub mod git;
pub mod language;
pub mod notice;
mod on_disk;
pub mod path;
pub mod pattern;
pub mod plan;
pub mod policy;
pub mod printable;
pub mod project;
pub mod record;
pub mod release;
pub mod report;
pub mod run;
pub mod selection;
pub mod source;
pub mod state;
pub mod version;
pub mod workspace;
