//! Git repositories: an author works in one, and `orch` runs in a checkout of what the author made.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use super::git::Git;
use super::output::Output;
use super::sandbox::Sandbox;

/// An author, the remote that the author publishes to, and the project, which becomes a checkout of
/// the remote. Where `orch` shows the id of a commit, its subject stands instead: `<start>`.
pub(crate) struct Repositories {
    sandbox: Sandbox,
    /// Subject and id of each commit.
    commits: RefCell<BTreeMap<String, String>>,
}

impl Repositories {
    /// The author has committed the stacks `a` to `d` on `main`, with the subject "start".
    pub(crate) fn new() -> Self {
        Repositories::with("")
    }

    /// Like [`Repositories::new`], with these options of `git init`.
    pub(crate) fn with(options: &str) -> Self {
        let repositories = Repositories {
            sandbox: Sandbox::unmarked(""),
            commits: RefCell::default(),
        };
        repositories.sandbox.learn(repositories.url(), "$URL");
        let outside = repositories.at("");
        let init = format!("init -q -b main {options}");
        outside.git(&format!("{init} --bare remote"));
        outside.git(&format!("{init} author"));
        let author = repositories.author();
        author.write("root.orch.hcl", "orch { root = true }\n");
        for stack in ["a", "b", "c", "d"] {
            author.write(&format!("{stack}/stack.tm"), "stack {}\n");
        }
        author.commit("start", "");
        repositories
    }

    /// A directory beside the project.
    pub(crate) fn at(&self, directory: &str) -> Checkout<'_> {
        Checkout {
            all: self,
            directory: self.sandbox.outside().join(directory),
        }
    }

    /// Where the author works.
    pub(crate) fn author(&self) -> Checkout<'_> {
        self.at("author")
    }

    /// Where `orch` runs.
    pub(crate) fn project(&self) -> Checkout<'_> {
        self.at("project")
    }

    /// The remote gets all that the author has, and loses what the author no longer has.
    pub(crate) fn publish(&self) {
        self.author().git("push -q --mirror $URL");
    }

    /// Publishes, and clones the remote into the project. The options are those of `git clone`.
    pub(crate) fn clone(&self, options: &str) -> Checkout<'_> {
        self.publish();
        self.at("").git(&format!("clone -q {options} $URL project"));
        self.project()
    }

    /// Publishes, and prepares the project to fetch from the remote as runners of CI do.
    pub(crate) fn runner(&self) -> Checkout<'_> {
        self.publish();
        let project = self.project();
        project.git("init -q -b master");
        project.git("remote add origin $URL");
        project
    }

    /// Writes a file outside of the project, and returns where it is.
    pub(crate) fn write_outside(&self, name: &str, text: &str) -> String {
        self.at("").write(name, text);
        self.at(name).directory.to_string_lossy().into_owned()
    }

    /// Runs `orch` in one of the repositories after a change to the command.
    pub(crate) fn orch_in(
        &self,
        place: &Checkout<'_>,
        arguments: &str,
        change: impl FnOnce(&mut Command),
    ) -> Output {
        self.sandbox.orch_with(arguments, |orch| {
            orch.current_dir(&place.directory);
            change(orch);
        })
    }

    /// Puts the URL of the remote in the place of `$URL`, and ids in the place of subjects: the whole of
    /// it for `<start>`, 7 digits for `<start>/7`, 12 for `<start>/12`.
    pub(crate) fn with_ids(&self, text: &str) -> String {
        let mut text = text.replace("$URL", &self.url());
        for (subject, id) in &*self.commits.borrow() {
            for n_digits in [7, 12] {
                text = text.replace(&format!("<{subject}>/{n_digits}"), &id[..n_digits]);
            }
            text = text.replace(&format!("<{subject}>"), id);
        }
        text
    }

    /// Puts `$URL` in the place of the URL of the remote, and subjects in the place of ids.
    pub(crate) fn without_ids(&self, text: &str) -> String {
        self.sandbox.redact_known(text)
    }

    fn url(&self) -> String {
        let path = self.at("remote").directory.to_string_lossy().into_owned();
        let path = path.replace('\\', "/");
        format!("file:///{}", path.trim_start_matches('/'))
    }
}

/// One of the repositories.
pub(crate) struct Checkout<'r> {
    all: &'r Repositories,
    directory: PathBuf,
}

impl Checkout<'_> {
    /// The place of one of its files.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs git, which succeeds, and returns what it prints. `$URL` stands for the remote, and the
    /// subject of a commit for its id: `<start>`.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &str) -> String {
        let arguments = self.all.with_ids(arguments);
        self.program().run(&arguments).trim().to_owned()
    }

    /// Runs a command line of git, which succeeds, and returns what it prints.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        let arguments = line.strip_prefix("git ").expect("a command of git");
        self.git(arguments)
    }

    /// git in this repository; each commit is made a minute after the one before.
    fn program(&self) -> Git {
        let minutes = self.all.commits.borrow().len() as u64;
        let git = self.all.sandbox.git_at("/").later(60 * minutes);
        git.within(&self.directory)
    }

    /// Commits all there is after adding a file to each of these stacks, and returns the id. No two
    /// subjects may be the same.
    #[track_caller]
    pub(crate) fn commit(&self, subject: &str, stacks: &str) -> String {
        for stack in stacks.split_whitespace() {
            self.write(&format!("{stack}/{subject}.txt"), "");
        }
        self.git("add --all");
        self.git(&format!("commit -q --allow-empty -m {subject}"));
        self.record(subject)
    }

    /// Commits the merge of a revision into HEAD, and returns the id.
    #[track_caller]
    pub(crate) fn merge(&self, subject: &str, revision: &str) -> String {
        self.git(&format!("merge -q --no-ff -m {subject} {revision}"));
        self.record(subject)
    }

    fn record(&self, subject: &str) -> String {
        let id = self.id("HEAD");
        let shown = format!("<{subject}>");
        self.all.sandbox.learn(&id, &shown);
        self.all.sandbox.learn(&id[..7], shown);
        let mut commits = self.all.commits.borrow_mut();
        let other = commits.insert(subject.to_owned(), id.clone());
        assert_eq!(other, None, "two commits have the subject {subject}");
        id
    }

    /// Adds this many commits without changes to the branch that is checked out.
    pub(crate) fn grow(&self, n_commits: usize) {
        // Much faster than to run `git commit` as often.
        let branch = self.git("symbolic-ref HEAD");
        let mut from = format!("from {}\n", self.id("HEAD"));
        let mut script = String::new();
        for n in 0..n_commits {
            let time = 1_700_000_000 + n;
            script += &format!("commit {branch}\ncommitter Ada <ada@example.com> {time} +0000\n");
            script += &format!("data 0\n{from}\n");
            from.clear();
        }
        let arguments = ["fast-import", "--quiet"];
        let output = self.program().feed(&arguments, script.as_bytes());
        assert!(output.status.success(), "{output:?}");
    }

    /// The full name of what a revision means.
    #[track_caller]
    pub(crate) fn id(&self, revision: &str) -> String {
        self.git(&format!("rev-parse --verify {revision}"))
    }

    /// Whether parts of the history are missing.
    pub(crate) fn is_shallow(&self) -> bool {
        self.git("rev-parse --is-shallow-repository") == "true"
    }

    /// Runs `orch` here, with nothing of CI around it.
    pub(crate) fn orch(&self, arguments: &str) -> Output {
        self.orch_in_ci(arguments, &[])
    }

    /// Runs `orch` here with these variables.
    pub(crate) fn orch_in_ci(&self, arguments: &str, variables: &[(&str, &str)]) -> Output {
        self.all.sandbox.orch_with(arguments, |orch| {
            orch.current_dir(&self.directory)
                .envs(variables.iter().copied());
        })
    }
}
