//! End-to-end tests: each starts the real program in a [sandbox](support::Sandbox) and reads like a
//! transcript.
//!
//! What a function does in detail is tested beside the function; here stands what a user sees.

#[path = "../support/mod.rs"]
#[cfg_attr(
    not(unix),
    expect(
        unused_imports,
        reason = "only tests with Unix programs need some of it"
    )
)]
mod support;

mod base; // the base of `--changed`: what it is, and when it is refused
mod build; // what the build script finds out
#[cfg(unix)]
mod changed; // which changes of files count, and for which stacks
#[cfg(unix)]
mod checkouts; // worktrees, links, sparse and partial checkouts, formats of repositories
mod clone; // `orch clone`
mod commands; // help, version, usage errors, exit statuses, broken pipes
mod completions; // what shells complete, and their scripts
mod create; // `orch create`
mod cycles; // how cycles are reported, and when they are fatal
mod data; // the data that stacks use of each other
mod diagnostics; // the drawing of problems, `stack` attributes, problems as data
mod empty; // selections of nothing
mod files; // roots, file names, skipped directories, merging, imports, project settings
mod fmt; // `orch fmt`
mod globals; // `orch globals`, and what `globals` blocks mean
mod globs; // `--match`, `--exclude`
mod graph; // the three drawings
#[cfg(unix)]
mod habits; // what people type out of habit, and what `orch` says to that
mod help; // `orch --help`, `orch help`, `orch man`, `orch version`
mod hostile; // names and contents that nobody would write on purpose
mod inputs; // which stacks change with modules, files that are read, links
mod instances; // stacks with several instances
#[cfg(unix)]
mod lifecycle; // rules of stacks, and blocks that give them up or move them
mod list; // `orch list`: text, reasons, JSON
mod matrix; // `orch list` as the jobs of a CI pipeline
#[cfg(unix)]
mod moving; // what comes from Terraform, Terragrunt and Terramate
mod neighbours; // `--include-…`, `--only-…`, `--exclude-…` over the graph
mod order; // what runs before what
#[cfg(unix)]
mod pipelines; // those with `orch plan` and `orch apply` in `examples/ci`
#[cfg(unix)]
mod plan; // `orch plan`, and the drivers that it asks
mod policies; // trigger policies
mod readme; // the README and the examples tell the truth
mod references; // what an entry of `after`, `before`, `wants`, `wanted_by` names
#[cfg(target_os = "linux")]
mod releases; // packs a release, and installs it as a workflow does
#[cfg(unix)]
mod removals; // stacks that were removed from the tree: planned and destroyed
#[cfg(unix)]
mod removals_cfngin; // what comes from CFNgin, and is removed
#[cfg(unix)]
mod removed; // stacks that exist in the base but no longer in the project
#[cfg(unix)]
mod scripts; // `orch script`
mod select; // which stacks a command acts on
mod stacks_from; // `--stacks-from`
mod state; // `orch state`: the document of what was applied
mod terragrunt; // which stacks change with what Terragrunt reads
mod terramate; // the worked examples of Terramate's behaviour
mod terramate_commands; // commands and variables of Terramate
#[cfg(unix)]
mod trigger; // `orch trigger`
#[cfg(unix)]
mod triggered; // which stacks count as changed, or not, because of trigger files
mod validate; // `orch validate`
#[cfg(unix)]
mod watch; // `watch`, `import` and `config.change_detection.ignore`
mod why; // the whole story of one stack
#[cfg(unix)]
mod workflows; // the workflows in `examples/ci`

// The commands that these run are Unix programs.
#[cfg(unix)]
mod apply; // `orch apply` and `orch destroy`
#[cfg(target_os = "linux")]
mod apply_kills; // applies that are killed at any time, and go on
#[cfg(unix)]
mod apply_merges; // plans of a pull request that are applied after the merge
#[cfg(unix)]
mod attempts; // what is tried again, and after what
#[cfg(unix)]
mod earlier_journals; // journals that an earlier version wrote
#[cfg(unix)]
mod environment; // `run.env`, `orch env`, the namespaces of expressions
#[cfg(unix)]
mod eval; // `orch eval`, `orch run --eval`
#[cfg(unix)]
mod exit_codes; // what exit statuses mean, and what output says of changes
#[cfg(unix)]
mod export; // `orch export`: pipelines and work orders
#[cfg(unix)]
mod folding; // the output of a run in the log of a CI system
#[cfg(unix)]
mod github; // annotations, and how a run looks in CI
#[cfg(unix)]
mod journal; // what a run leaves on disk
#[cfg(unix)]
mod lets; // `lets` beside `run.env`
#[cfg(unix)]
mod limits; // how many commands run at once
#[cfg(unix)]
mod lock; // one run at a time
#[cfg(unix)]
#[cfg(unix)]
mod outlived; // commands that go on after `orch` was killed
#[cfg(unix)]
mod output; // what a run shows of what commands print
mod parallel; // several commands at once: in which order, and what a failure means
#[cfg(unix)]
mod reports; // `--report`, `orch runs report`, `--events`
#[cfg(unix)]
mod resume; // `orch run --resume`, `--only-failed`
#[cfg(unix)]
mod run; // `orch run`: streams, failures, look-up of programs
#[cfg(unix)]
mod runs; // `orch runs`
#[cfg(unix)]
mod safeguards; // the states of a repository over which nothing is run
#[cfg(unix)]
mod sharing; // outputs of stacks as variables of others
#[cfg(unix)]
mod signals; // what interrupts a run, and how it ends then
#[cfg(target_os = "linux")]
mod terminal; // the output of a run on a terminal, and commands that have one of their own
#[cfg(unix)]
mod terraform; // the real one: its lock, and its questions
#[cfg(unix)]
mod timeouts; // what takes too long
