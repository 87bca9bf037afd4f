//! The base of `--changed` for every kind of clone and every CI provider: tables against the library.
//!
//! Each row is a fresh clone of one history. What `orch` advises to run is run, until there is a base
//! or nothing more to run. That the program asks the library, and what it does with the answer, is
//! shown from outside in `tests/cli/base`.

mod clones;
mod providers;

use orch::change::base::{BaseQuery, BaseUnknown, Remedy, ci, find};
use orch::git::Repository;

use crate::support::{Checkout, Repositories};

/// A clone, and what is asked in it.
struct Row {
    what: &'static str,
    /// How the clone is made, a step a line: `clone OPTIONS` or `init`, then commands of git.
    clone: &'static str,
    /// `--base`.
    revision: &'static str,
    /// `config.git.default_remote` and `default_branch`, separated by a space.
    configured: &'static str,
    /// The variables of the CI provider, separated by spaces.
    ci: String,
    /// The event file of GitHub Actions.
    event: &'static str,
}

/// A row that asks nothing in a plain clone.
const ROW: Row = Row {
    what: "",
    clone: "clone",
    revision: "",
    configured: "",
    ci: String::new(),
    event: "",
};

/// A remote with this history, where `main` and `pull` (what a provider merged) are branches too:
///
/// ```text
/// start ── second ── third ── fourth (next)
///   │         ├───── fix (fix)
///   │         ├───── synthetic (pull) ── entry (train, onto "other")
///   └─ feature ────┘
/// ```
///
/// `v1` is an annotated tag of "start", and `v2` a plain one of "second".
fn history() -> Repositories {
    let repositories = Repositories::new();
    let author = repositories.author();
    author.git("tag -a -m release v1");
    author.git("checkout -q -b feature");
    author.commit("feature", "a");
    author.git("checkout -q main");
    author.commit("second", "b");
    author.git("tag v2");
    author.git("checkout -q -b next");
    author.commit("third", "c");
    author.commit("fourth", "d");
    author.git("checkout -q -b fix main");
    author.commit("fix", "c");
    author.git("checkout -q -b pull main");
    author.merge("synthetic", "feature");
    author.git("checkout -q -b train main");
    author.commit("other", "c");
    author.merge("entry", "feature");
    author.git("checkout -q -b updated feature");
    author.merge("update", "next~1");
    author.git("checkout -q --orphan orphan");
    author.commit("orphan", "d");
    author.git("checkout -q main");
    repositories.publish();
    repositories
}

/// Makes the clone of a row.
fn clone<'r>(repositories: &'r Repositories, row: &Row, number: usize) -> Checkout<'r> {
    let name = format!("clone-{number}");
    let mut steps = row.clone.lines().map(str::trim);
    let first = steps.next().unwrap_or_default();
    let outside = repositories.at("");
    if let Some(options) = first.strip_prefix("clone") {
        outside.git(&format!("clone -q {options} $URL {name}"));
    } else {
        assert_eq!(first, "init");
        outside.git(&format!("init -q -b master {name}"));
    }
    let project = repositories.at(&name);
    if first == "init" {
        project.git("remote add origin $URL");
    }
    for step in steps {
        project.git(step);
    }
    project
}

/// Asks for the base; gives what is shown of the answer, and the command to run next.
fn ask(repositories: &Repositories, row: &Row, project: &Checkout<'_>) -> (String, Option<String>) {
    let ci = repositories.with_ids(&row.ci);
    let variable = |name: &str| {
        let mut variables = ci.split(' ').filter_map(|word| word.split_once('='));
        let (_, value) = variables.find(|(known, _)| *known == name)?;
        Some(value.to_owned())
    };
    let event = repositories.with_ids(row.event);
    let read = |_: &str| match &*event {
        "" => Err("no such file".to_owned()),
        text => Ok(text.to_owned()),
    };
    let context = match ci::context(variable, read) {
        Ok(context) => context,
        Err(unclear) => return (format!("unclear: {unclear}"), None),
    };
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (remote, branch) = row.configured.split_once(' ').unwrap_or_default();
    let query = BaseQuery {
        revision: text(&repositories.with_ids(row.revision)),
        ci: context,
        remote: text(remote),
        branch: text(branch),
    };
    let repository = Repository::open(&project.path("")).unwrap();
    match find(&repository, &query) {
        Ok(base) => {
            let shallow = if repository.is_shallow().unwrap() {
                ", in a shallow clone"
            } else {
                ""
            };
            let shown = format!(
                "base {}, {}: {}{shallow}",
                base.commit, base.rule, base.reason
            );
            (shown, None)
        }
        Err(BaseUnknown::Refused { problem, remedy }) => match remedy.command() {
            Some(command) => (format!("{problem}\n  run {command}"), Some(command)),
            None => match remedy {
                Remedy::Advice(advice) => (format!("{problem}\n  {advice}"), None),
                remedy => panic!("{problem}: {remedy:?}"),
            },
        },
        Err(error) => (format!("error: {error}"), None),
    }
}

/// Shows what becomes of each row.
fn table(rows: &[Row]) -> String {
    let repositories = history();
    let mut table = String::new();
    for (number, row) in rows.iter().enumerate() {
        table += &format!("{}\n", row.what);
        let project = clone(&repositories, row, number);
        let mut commands = Vec::new();
        loop {
            let (shown, command) = ask(&repositories, row, &project);
            table += &format!("  {}\n", repositories.without_ids(&shown));
            match command {
                Some(command) if !commands.contains(&command) => {
                    project.run(&command);
                    commands.push(command);
                }
                Some(_) => panic!("{table}it does not help to run that again"),
                None => break,
            }
        }
    }
    table
}
