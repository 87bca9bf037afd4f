//! A repository, and what the model knows of it: the files of every commit, of the index and of the
//! working tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::history::Operation;
use super::paths::{above, below, is_at_or_below};
use super::texts::{File, Snapshot, Text};
use crate::support::git::Git;
use crate::support::host::{folder, isolate, orch_program};

/// Where the project lies, and what makes `orch` ask git rather than libgit2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) directory: &'static str,
    pub(super) reader: Reader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Library,
    /// libgit2 cannot read a split index.
    ProgramForStatus,
    /// libgit2 cannot read a repository with an extension that it does not know.
    Program,
}

#[derive(Debug)]
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) parents: Vec<usize>,
    pub(super) files: Snapshot,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Head {
    Branch(&'static str),
    Detached(usize),
}

pub(super) struct Repository {
    folder: TempDir,
    pub(super) root: PathBuf,
    pub(super) commits: Vec<Commit>,
    pub(super) branches: BTreeMap<&'static str, usize>,
    pub(super) head: Head,
    pub(super) index: Snapshot,
    pub(super) working: Snapshot,
    /// What was done, for people.
    pub(super) log: Vec<String>,
}

impl Repository {
    pub(super) fn new(
        setting: Setting,
        files: &[(String, Text)],
        operations: &[Operation],
    ) -> Self {
        let folder = folder();
        let top = folder.path().canonicalize().unwrap().join("top");
        let root = top.join(setting.directory);
        fs::create_dir_all(&root).unwrap();
        fs::create_dir(top.parent().unwrap().join("home")).unwrap();
        let mut repository = Repository {
            folder,
            root,
            commits: Vec::new(),
            branches: BTreeMap::new(),
            head: Head::Branch("main"),
            index: Snapshot::new(),
            working: Snapshot::new(),
            log: vec![format!("{setting:?}")],
        };
        repository.program().within(&top).init();
        let config = top.join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        let text = match setting.reader {
            Reader::Library => text,
            Reader::ProgramForStatus => text + "\tsplitIndex = true\n",
            Reader::Program => {
                text.replace("formatversion = 0", "formatversion = 1")
                    + "[extensions]\n\tpartialClone = none\n"
            }
        };
        fs::write(config, text).unwrap();
        repository.write("root.orch.hcl", root_file());
        for (path, text) in files {
            repository.apply(&Operation::Write(path.clone(), text.clone()));
        }
        if !setting.directory.is_empty() {
            fs::write(top.join("outside"), "1").unwrap();
            repository.git_in(&top, &["add", "outside"], "");
        }
        repository.stage("");
        repository.commit(0, &[]);
        if !setting.directory.is_empty() {
            fs::write(top.join("outside"), "2").unwrap();
            fs::write(top.join("other"), "1").unwrap();
        }
        for operation in operations {
            repository.apply(operation);
        }
        repository
    }

    /// Prepares `orch`, with nothing of the host around.
    pub(super) fn orch(&self) -> Command {
        let mut orch = Command::new(orch_program());
        isolate(&mut orch, &self.folder.path().join("home"));
        orch.env("GIT_LITERAL_PATHSPECS", "1")
            .current_dir(&self.root);
        orch
    }

    fn program(&self) -> Git {
        Git::new(&self.root, self.folder.path().join("home"))
    }

    pub(super) fn git(&self, arguments: &[&str]) {
        self.git_in(&self.root, arguments, "");
    }

    fn git_in(&self, directory: &Path, arguments: &[&str], input: &str) {
        let git = self.program().within(directory);
        self.finish(&git, arguments, input);
    }

    fn finish(&self, git: &Git, arguments: &[&str], input: &str) {
        let output = git.feed(arguments, input.as_bytes());
        let log = self.log.join("\n");
        assert!(
            output.status.success(),
            "git {arguments:?}: {output:?}\n{log}"
        );
    }

    /// The commit that HEAD is at.
    pub(super) fn head(&self) -> usize {
        match self.head {
            Head::Branch(name) => self.branches[name],
            Head::Detached(commit) => commit,
        }
    }

    pub(super) fn moved(&mut self, commit: usize) {
        match &mut self.head {
            Head::Branch(name) => drop(self.branches.insert(name, commit)),
            Head::Detached(head) => *head = commit,
        }
    }

    /// Makes the working tree that of the commit that HEAD is at, with nothing besides.
    pub(super) fn cleaned(&mut self, commit: usize) {
        self.git(&["clean", "-q", "-ffdx"]);
        self.index = self.commits[commit].files.clone();
        self.working = self.index.clone();
    }

    /// Throws everything away that is not committed.
    pub(super) fn clean(&mut self) {
        self.git(&["reset", "-q", "--hard"]);
        self.cleaned(self.head());
    }

    /// Chooses one of the files at or below a place.
    pub(super) fn nth(&self, place: &str, n: usize) -> Option<(String, File)> {
        let mut files = at_or_below(&self.working, place);
        files.remove("root.orch.hcl");
        let n = n.checked_rem(files.len())?;
        files.into_iter().nth(n)
    }

    /// Writes a file in the place of whatever is in the way.
    pub(super) fn write(&mut self, path: &str, file: File) {
        for place in above(path) {
            if self.working.contains_key(place) {
                self.delete(place);
            }
        }
        self.delete(path);
        let host = self.root.join(path);
        fs::create_dir_all(host.parent().unwrap()).unwrap();
        if let Some(target) = file.link() {
            symlink(target, host).unwrap();
        } else {
            fs::write(&host, file.render()).unwrap();
            let mode = if file.is_executable { 0o755 } else { 0o644 };
            fs::set_permissions(host, fs::Permissions::from_mode(mode)).unwrap();
        }
        self.working.insert(path.to_owned(), file);
    }

    /// Deletes everything at or below a place, and the directories that are empty then.
    pub(super) fn delete(&mut self, place: &str) {
        for (path, _) in at_or_below(&self.working, place) {
            fs::remove_file(self.root.join(&path)).unwrap();
            self.working.remove(&path);
            for directory in above(&path) {
                let is_left = self
                    .working
                    .keys()
                    .any(|file| below(file, directory).is_some());
                if !is_left && !directory.is_empty() {
                    fs::remove_dir(self.root.join(directory)).unwrap();
                }
            }
        }
    }

    pub(super) fn stage(&mut self, place: &str) {
        let is_there = |path: &String| place.is_empty() || is_at_or_below(path, place);
        let paths: BTreeSet<&String> = self.working.keys().chain(self.index.keys()).collect();
        let paths = paths.into_iter().filter(|path| is_there(path));
        let mut gone = String::new();
        let mut there = String::new();
        let mut staged = self.index.clone();
        for path in paths {
            match self.working.get(path) {
                None => {
                    gone += &format!("{path}\0");
                    staged.remove(path);
                }
                Some(file) if self.index.contains_key(path) || !self.is_git_ignored(path) => {
                    there += &format!("{path}\0");
                    staged.insert(path.clone(), file.clone());
                }
                Some(_) => {}
            }
        }
        let update = |mode: &[&str], paths: &str| {
            if !paths.is_empty() {
                let arguments = [&["update-index"], mode, &["-z", "--stdin"]].concat();
                self.git_in(&self.root, &arguments, paths);
            }
        };
        update(&["--force-remove"], &gone);
        update(&["--add", "--replace"], &there);
        self.index = staged;
    }

    pub(super) fn commit(&mut self, time: u32, others: &[usize]) {
        let n = self.commits.len();
        let mut merged = String::new();
        for other in others {
            merged += &format!("{}\n", self.commits[*other].id);
        }
        let git = self.top().join(".git");
        if !others.is_empty() {
            fs::write(git.join("MERGE_HEAD"), merged).unwrap();
            fs::write(git.join("MERGE_MODE"), "no-ff").unwrap();
        }
        let message = n.to_string();
        let arguments = ["commit", "-q", "--allow-empty", "-m", &message];
        self.finish(&self.program().later(time.into()), &arguments, "");
        let mut parents: Vec<usize> = if n == 0 {
            Vec::new()
        } else {
            vec![self.head()]
        };
        parents.extend(others);
        let file = match self.head {
            Head::Branch(name) => format!("refs/heads/{name}"),
            Head::Detached(_) => "HEAD".to_owned(),
        };
        self.commits.push(Commit {
            id: fs::read_to_string(git.join(file))
                .unwrap()
                .trim()
                .to_owned(),
            parents,
            files: self.index.clone(),
        });
        self.moved(n);
    }

    fn top(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("top")
    }

    /// Says in one text what was done, and where that led.
    pub(super) fn story(&self) -> String {
        let mut story = self.log.join("\n");
        story += &format!("\nHEAD {:?} = {}\n", self.head, self.head());
        for (n, commit) in self.commits.iter().enumerate() {
            story += &format!("commit {n} {} {:?}\n", commit.id, commit.parents);
        }
        for (path, file) in &self.working {
            story += &format!("{path}: {:?}\n", file.text);
        }
        story
    }
}

fn root_file() -> File {
    File::new(Text::Configuration(super::texts::Configuration {
        is_root: true,
        ..Default::default()
    }))
}

pub(super) fn at_or_below(files: &Snapshot, place: &str) -> Snapshot {
    let there = files
        .iter()
        .filter(|(path, _)| place.is_empty() || is_at_or_below(path, place));
    there
        .map(|(path, file)| (path.clone(), file.clone()))
        .collect()
}
