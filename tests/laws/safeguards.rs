//! What `orch run` refuses to run over: random operations of git, compared with what
//! `git status --porcelain` says in its first format, which `orch` does not read.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::sample::select;
use tempfile::TempDir;

use crate::support::git::Git;
use crate::support::host::{folder, isolate, orch_program};

const FILES: [&str; 6] = ["s/a", "s/b", "s/deep/a", "t/a b", "t/ü", "top"];

const BRANCHES: [&str; 3] = ["main", "one", "two"];

/// What is done; git may refuse any of it.
#[derive(Debug, Clone)]
enum Operation {
    Write(&'static str, u8),
    Delete(&'static str),
    Move(&'static str, &'static str),
    Link(&'static str),
    Chmod(&'static str, bool),
    Ignore(&'static str),
    Git(Vec<&'static str>),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let file = || select(&FILES[..]);
    let branch = || select(&BRANCHES[..]);
    let git = |words: &[&'static str]| Just(Operation::Git(words.to_vec()));
    let on_file = |words: &'static [&'static str]| {
        select(&FILES[..]).prop_map(move |file| Operation::Git([words, &["--", file]].concat()))
    };
    let on_branch = |words: &'static [&'static str]| {
        select(&BRANCHES[..]).prop_map(move |branch| Operation::Git([words, &[branch]].concat()))
    };
    prop_oneof![
        6 => (file(), 0_u8..3).prop_map(|(file, text)| Operation::Write(file, text)),
        2 => file().prop_map(Operation::Delete),
        1 => (file(), file()).prop_map(|(from, to)| Operation::Move(from, to)),
        1 => file().prop_map(Operation::Link),
        1 => (file(), any::<bool>()).prop_map(|(file, is_on)| Operation::Chmod(file, is_on)),
        1 => file().prop_map(Operation::Ignore),
        2 => on_file(&["add"]),
        1 => on_file(&["add", "--intent-to-add"]),
        1 => on_file(&["rm", "-q", "--cached"]),
        1 => on_file(&["reset", "-q"]),
        1 => on_file(&["checkout", "-q", "HEAD"]),
        2 => git(&["add", "--all"]),
        4 => git(&["commit", "-q", "--all", "-m", "x"]),
        1 => git(&["commit", "-q", "-m", "x"]),
        1 => git(&["reset", "-q", "--hard"]),
        1 => git(&["clean", "-q", "-ffd"]),
        1 => git(&["stash", "-q"]),
        1 => git(&["stash", "pop", "-q"]),
        1 => git(&["checkout", "-q", "--detach"]),
        1 => branch().prop_map(|branch| Operation::Git(vec!["checkout", "-q", "-b", branch])),
        1 => git(&["checkout", "-q", "--orphan", "new"]),
        2 => on_branch(&["checkout", "-q", "-f"]),
        2 => on_branch(&["merge", "-q"]),
        1 => on_branch(&["merge", "-q", "--no-commit", "--no-ff"]),
        2 => on_branch(&["rebase", "-q"]),
        1 => on_branch(&["cherry-pick"]),
        1 => git(&["merge", "--abort"]),
        1 => git(&["rebase", "--abort"]),
        1 => git(&["rebase", "--continue"]),
    ]
}

/// What may leave a conflict behind, in the middle of something.
fn any_beginning() -> impl Strategy<Value = Option<Operation>> {
    let branch = select(vec!["one", "two"]);
    let way = select(vec!["merge", "rebase", "cherry-pick"]);
    let beginning = (way, branch).prop_map(|(way, branch)| Operation::Git(vec![way, branch]));
    prop::option::of(beginning)
}

struct Repository {
    folder: TempDir,
    root: PathBuf,
}

impl Repository {
    /// The project lies in a directory of the repository. Three branches have done different things to
    /// one file.
    fn new(directory: &str) -> Self {
        let folder = folder();
        let top = folder.path().canonicalize().unwrap().join("top");
        let root = top.join(directory);
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("root.orch.hcl"), "orch { root = true }\n").unwrap();
        let repository = Repository { folder, root };
        let git = |arguments: &[&str]| {
            let output = repository.git(&top, arguments);
            assert!(output.status.success(), "{output:?}");
        };
        let commit = || {
            git(&["add", "--all"]);
            git(&["commit", "-q", "-m", "x"]);
        };
        Git::new(&top, repository.folder.path()).init();
        for (file, text) in [("s/stack.tm", "stack {}\n"), ("s/a", "0"), ("t/a b", "0")] {
            repository.write(file, text);
        }
        commit();
        git(&["checkout", "-q", "-b", "one"]);
        repository.write("s/a", "one");
        repository.write("s/b", "one");
        fs::write(top.join("outside"), "").unwrap();
        commit();
        git(&["checkout", "-q", "-b", "two", "main"]);
        fs::remove_file(repository.root.join("s/a")).unwrap();
        repository.write("s/b", "two");
        commit();
        git(&["checkout", "-q", "main"]);
        repository.write("s/a", "main");
        commit();
        if !directory.is_empty() {
            fs::write(top.join("untracked"), "").unwrap();
        }
        repository
    }

    fn git(&self, directory: &Path, arguments: &[&str]) -> Output {
        let git = Git::new(directory, self.folder.path());
        git.command(arguments).output().expect("git is installed")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        _ = fs::remove_file(&path);
        fs::write(path, text).unwrap();
    }

    fn apply(&self, operation: &Operation) {
        let path = |file: &str| self.root.join(file);
        match *operation {
            Operation::Write(file, text) => self.write(file, &text.to_string()),
            Operation::Delete(file) => _ = fs::remove_file(path(file)),
            Operation::Move(from, to) => _ = fs::rename(path(from), path(to)),
            Operation::Link(file) => {
                if fs::remove_file(path(file)).is_ok() {
                    symlink("elsewhere", path(file)).unwrap();
                }
            }
            Operation::Chmod(file, is_executable) => {
                let mode = if is_executable { 0o755 } else { 0o644 };
                if path(file).is_file() {
                    fs::set_permissions(path(file), fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            Operation::Ignore(file) => self.write(".gitignore", &format!("/{file}\n")),
            Operation::Git(ref arguments) => _ = self.git(&self.root, arguments),
        }
    }

    /// The files that git does not know, and those that are not committed.
    fn by_git(&self, prefix: &str) -> [BTreeSet<String>; 2] {
        let arguments = [
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--no-renames",
        ];
        let output = self.git(&self.root, &arguments);
        assert!(output.status.success(), "{output:?}");
        let mut files = [BTreeSet::new(), BTreeSet::new()];
        for record in String::from_utf8(output.stdout)
            .unwrap()
            .split_terminator('\0')
        {
            let (letters, path) = record.split_at(3);
            if let Some(file) = path.strip_prefix(prefix) {
                let is_known = usize::from(letters != "?? ");
                files[is_known].insert(file.to_owned());
            }
        }
        files
    }

    /// The files over which a run is refused, likewise.
    fn by_orch(&self, has_git: bool) -> [BTreeSet<String>; 2] {
        let mut orch = Command::new(orch_program());
        isolate(&mut orch, self.folder.path());
        orch.current_dir(&self.root)
            .args(["run", "--quiet", "--", "/bin/sh", "-c", ":"]);
        if !has_git {
            orch.env("PATH", "/nowhere");
        }
        let output = orch.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let mut files = [BTreeSet::new(), BTreeSet::new()];
        let mut is_known = 0;
        for line in said.lines() {
            if line.starts_with("error: ") {
                is_known = usize::from(line.contains("`git-uncommitted`"));
                let n: usize = line.split(' ').nth(2).unwrap().parse().expect(line);
                assert!(n > 0, "{said}");
            } else if let Some(file) = line.strip_prefix("    ") {
                let (name, _) = file.rsplit_once(" (").unwrap_or((file, ""));
                assert!(files[is_known].insert(name.to_owned()), "{said}");
            }
        }
        let is_refused = files.iter().any(|files| !files.is_empty());
        assert_eq!(
            output.status.code(),
            Some(if is_refused { 4 } else { 0 }),
            "{said}"
        );
        files
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.div_ceil(24),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_run_is_refused_over_the_files_that_git_tells(
        directory in select(vec!["", "pro ject/x"]),
        first in any_beginning(),
        operations in prop::collection::vec(any_operation(), 0..8),
    ) {
        let repository = Repository::new(directory);
        for operation in first.iter().chain(&operations) {
            repository.apply(operation);
            // The configuration has to be there for anything to run.
            if !repository.root.join("s/stack.tm").exists()
                || !repository.root.join("root.orch.hcl").exists()
            {
                repository.write("s/stack.tm", "stack {}\n");
                repository.write("root.orch.hcl", "orch { root = true }\n");
            }
        }
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let told = repository.by_git(&prefix);
        prop_assert_eq!(&repository.by_orch(true), &told, "with git");
        prop_assert_eq!(&repository.by_orch(false), &told, "without git");
    }
}
