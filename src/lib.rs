//! The domain of `orch`: it finds the stacks of an infrastructure monorepo, selects some, puts them
//! in order and runs a command in each. The program around it only parses the command line, joins
//! these modules and prints.
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
//! | reference | an entry of `after`, `before`, `wants`, `wanted_by`: a path or `tag:…` |
//! | change | a file that differs from the base, and the rule that ties it to a stack |
//! | trigger | a file that asks for a stack to count as changed, or not, for a reason of its own |
//! | base | the commit that changes are measured from, with the reason it was chosen |
//! | selection | the stacks a command acts on, each with the reasons it is in |
//! | constraint | "u before v", with its origin (nesting, `before`, `after`) and place |
//! | graph | all constraints of the project |
//! | order | the selection in the sequence that a serial run uses |
//! | wave | the stacks whose predecessors all lie in earlier waves |
//! | safeguard | a state of the repository over which nothing is run |
//! | run | one execution of a command over an order |
//! | outcome | how a stack ended: succeeded, failed, skipped, cancelled, with the cause |
//! | journal | the record of a run on disk, from which it can be resumed |
//!
//! # Modules, in reading order
//!
//! - Places: [`path`], [`pattern`], [`source`].
//! - Bad news about the configuration: [`diagnostic`]; [`printable`] makes names safe to show.
//! - Times: [`duration`].
//! - Files to syntax: [`discover`], [`parse`], [`syntax`].
//! - Syntax to meaning: [`evaluate`] (expressions), [`config`], [`globals`], [`stack`], [`tag`],
//!   [`version`], joined by [`project`].
//! - What has changed: [`git`] (which files), [`base`] (since when), [`change`] (which stacks, by the
//!   files that they use), [`trigger`] (what counts besides).
//! - Which: [`mod@reference`], [`graph`], [`select`]; [`why`] tells the whole story of one stack.
//! - In which order: [`schedule`], [`order`].
//! - Whether at all: [`safeguard`].
//! - Running: [`namespaces`] and [`environment`], [`attempt`], [`execute`], [`event`]; [`journal`]
//!   keeps what happened, [`logs`] what commands print.
//! - Telling: [`report`].
//!
//! Only `discover`, `import`, `git`, `change::inputs`, `trigger`, `execute`, `journal`, `logs` and three look-ups (`watch`,
//! the target of a reference, `tm_fileexists`) touch the world; the rest takes values and returns
//! values.

pub mod attempt;
pub mod base;
pub mod change;
pub mod config;
pub mod diagnostic;
pub mod discover;
pub mod duration;
pub mod environment;
pub mod evaluate;
pub mod event;
pub mod execute;
pub mod git;
pub mod globals;
pub mod graph;
mod import;
pub mod journal;
pub mod logs;
pub mod namespaces;
pub mod order;
pub mod parse;
pub mod path;
pub mod pattern;
pub mod printable;
pub mod project;
pub mod reference;
pub mod report;
pub mod safeguard;
pub mod schedule;
pub mod select;
pub mod source;
pub mod stack;
pub mod syntax;
pub mod tag;
pub mod trigger;
pub mod version;
pub mod why;
