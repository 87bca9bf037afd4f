//! Git repositories: an author works in one, and `orch` runs in a checkout of what the author made.

use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::process::{self, Command};

use serde_json::Value;

use crate::sandbox::{Output, Sandbox};

/// When the first commit was made; each further one is made a minute later.
const BEGINNING: usize = 1_700_000_000;

/// An author, the remote that the author publishes to, and the project, which becomes a checkout of
/// the remote. Where ids of commits are shown, their subjects stand instead: `<start>`.
pub(crate) struct Repositories {
    sandbox: Sandbox,
    /// Id and subject of each commit.
    commits: RefCell<Vec<(String, String)>>,
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
    pub(crate) fn at(&self, directory: &str) -> Repository<'_> {
        Repository {
            all: self,
            directory: self.sandbox.outside().join(directory),
        }
    }

    /// Where the author works.
    pub(crate) fn author(&self) -> Repository<'_> {
        self.at("author")
    }

    /// Where `orch` runs.
    pub(crate) fn project(&self) -> Repository<'_> {
        self.at("project")
    }

    /// The remote gets all that the author has, and loses what the author no longer has.
    pub(crate) fn publish(&self) {
        self.author().git("push -q --mirror $URL");
    }

    /// Publishes, and clones the remote into the project. The options are those of `git clone`.
    pub(crate) fn clone(&self, options: &str) -> Repository<'_> {
        self.publish();
        self.at("").git(&format!("clone -q {options} $URL project"));
        self.project()
    }

    /// Publishes, and prepares the project to fetch from the remote as runners of CI do.
    pub(crate) fn runner(&self) -> Repository<'_> {
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
        place: &Repository<'_>,
        arguments: &str,
        change: impl FnOnce(&mut Command),
    ) -> Output {
        self.sandbox.orch_with(arguments, |orch| {
            orch.current_dir(&place.directory);
            change(orch);
        })
    }

    fn url(&self) -> String {
        let path = self.at("remote").directory.to_string_lossy().into_owned();
        let path = path.replace('\\', "/");
        format!("file:///{}", path.trim_start_matches('/'))
    }

    /// Replaces ids by subjects.
    fn without_ids(&self, text: &str) -> String {
        let mut text = text.replace(&self.url(), "$URL");
        for (id, subject) in &*self.commits.borrow() {
            let subject = format!("<{subject}>");
            text = text.replace(id, &subject).replace(&id[..7], &subject);
        }
        text
    }
}

/// One of the repositories.
pub(crate) struct Repository<'r> {
    all: &'r Repositories,
    directory: PathBuf,
}

impl Repository<'_> {
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

    /// Runs git, which succeeds, and returns what it prints. `$URL` stands for the remote.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &str) -> String {
        self.run(&format!("git {arguments}"))
    }

    /// Runs a command line of git, which succeeds, and returns what it prints.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        let words = shell_words::split(&line.replace("$URL", &self.all.url()));
        let words = words.expect("quotes are balanced");
        let (program, arguments) = words.split_first().expect("there is a command");
        assert_eq!(program, "git");
        let mut git = Command::new(program);
        git.args(arguments);
        let output = self.finish(git);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn finish(&self, mut command: Command) -> process::Output {
        self.all.sandbox.isolate(&mut command);
        let time = BEGINNING + 60 * self.all.commits.borrow().len();
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "Ada")
                .env(format!("GIT_{who}_EMAIL"), "ada@example.com")
                .env(format!("GIT_{who}_DATE"), format!("{time} +0000"));
        }
        command.current_dir(&self.directory);
        let output = command.output();
        output.expect("git is installed")
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
        let mut commits = self.all.commits.borrow_mut();
        assert!(commits.iter().all(|(_, other)| other != subject));
        commits.push((id.clone(), subject.to_owned()));
        id
    }

    /// Adds this many commits without changes to the branch that is checked out.
    pub(crate) fn grow(&self, n_commits: usize) {
        // Much faster than to run `git commit` as often.
        let branch = self.git("symbolic-ref HEAD");
        let mut from = format!("from {}\n", self.id("HEAD"));
        let mut script = String::new();
        for n in 0..n_commits {
            let time = BEGINNING + n;
            script += &format!("commit {branch}\ncommitter Ada <ada@example.com> {time} +0000\n");
            script += &format!("data 0\n{from}\n");
            from.clear();
        }
        let path = self.directory.join(".git/script");
        std::fs::write(&path, script).unwrap();
        let mut import = Command::new("git");
        import.args(["fast-import", "--quiet"]);
        import.stdin(std::fs::File::open(path).unwrap());
        let output = self.finish(import);
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
    pub(crate) fn orch(&self, arguments: &str) -> Said {
        self.orch_in_ci(arguments, &[])
    }

    /// Runs `orch` here with these variables.
    pub(crate) fn orch_in_ci(&self, arguments: &str, variables: &[(&str, &str)]) -> Said {
        let output = self.all.sandbox.orch_with(arguments, |orch| {
            orch.current_dir(&self.directory)
                .envs(variables.iter().copied());
        });
        Said {
            stdout: self.all.without_ids(&output.stdout),
            shown: self.all.without_ids(&output.to_string()),
            output,
        }
    }
}

/// What `orch` said; shown with subjects in place of ids.
#[must_use]
pub(crate) struct Said {
    pub(crate) output: Output,
    stdout: String,
    shown: String,
}

impl Said {
    /// The command that `orch` advises to run.
    #[track_caller]
    pub(crate) fn command(&self) -> String {
        let command = self
            .output
            .stderr
            .split_once("help: run `")
            .and_then(|(_, rest)| rest.split_once('`'));
        command.expect(&self.shown).0.to_owned()
    }

    /// What is shown, without what git says when it fetches.
    pub(crate) fn without_git(&self) -> String {
        let mut is_own = true;
        let lines = self.shown.lines().filter(|line| {
            if *line == "[stderr]" {
                is_own = false;
                return true;
            }
            let starts = [
                "base ",
                "note: ",
                "error: ",
                "  caused by: ",
                "  = ",
                "[exit",
            ];
            is_own || starts.iter().any(|start| line.starts_with(start))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Stdout as data, whatever the exit status.
    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        serde_json::from_str(&self.stdout).expect(&self.shown)
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
