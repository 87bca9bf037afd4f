//! A project that is a git repository, and what has changed in it.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use super::output::Output;
use super::sandbox::Sandbox;

/// A project whose first commit is the base: what it begins with is tagged `base`.
pub(crate) struct Repository(Sandbox);

impl Deref for Repository {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.0
    }
}

impl Repository {
    /// Commits everything in a project as the base.
    pub(crate) fn of(sandbox: Sandbox) -> Self {
        let repository = Repository(sandbox);
        repository.git_init();
        repository.commit();
        let tip = repository.read(".git/refs/heads/main");
        repository.write(".git/refs/tags/base", tip);
        repository
    }

    /// Like [`Self::of`], with an argument for `git init`.
    pub(crate) fn with_format(sandbox: Sandbox, format: &str) -> Self {
        let repository = Repository(sandbox);
        repository.git(&format!("init -q -b main {format}"));
        repository.commit();
        repository.git("tag base");
        repository
    }

    /// A project with these files; see [`Sandbox::new`].
    pub(crate) fn new(fixture: &str) -> Self {
        Repository::of(Sandbox::new(fixture))
    }

    /// A project with these stacks, one a line; see [`Sandbox::layout`]. Each also has a file `main.tf`.
    pub(crate) fn layout(stacks: &str) -> Self {
        Repository::of(Repository::prepare(stacks))
    }

    /// What [`Self::layout`] commits.
    pub(crate) fn prepare(stacks: &str) -> Sandbox {
        let sandbox = Sandbox::layout(stacks);
        for stack in stacks
            .lines()
            .filter_map(|line| line.split_whitespace().next())
        {
            sandbox.write(&format!("{stack}/main.tf"), format!("# {stack}\n"));
        }
        sandbox
    }

    /// A clone, in place of the project.
    pub(crate) fn clone(sandbox: Sandbox, arguments: &str) -> Self {
        let repository = Repository(sandbox);
        let place = repository.outside().to_path_buf();
        repository.git_in(place, &format!("clone -q {arguments} project"));
        repository
    }

    /// Runs git at the root of the project. `arguments` are split as a shell splits words.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &str) -> String {
        self.git_in("/", arguments)
    }

    /// Runs git in a directory of the project, or anywhere.
    #[track_caller]
    pub(crate) fn git_in(&self, directory: impl AsRef<Path>, arguments: &str) -> String {
        let (is_success, text) = self.try_git(directory, arguments);
        assert!(is_success, "git {arguments}: {text}");
        text
    }

    /// Runs git, which may fail; gives whether it succeeded, and what it said.
    pub(crate) fn try_git(&self, directory: impl AsRef<Path>, arguments: &str) -> (bool, String) {
        let directory = directory.as_ref();
        let directory = match directory.strip_prefix(self.outside()) {
            Ok(_) => directory.to_path_buf(),
            Err(_) => self.path(directory.to_str().expect("a path of the project")),
        };
        let output = self.git_at("/").within(directory).output(arguments);
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            text += &String::from_utf8_lossy(&output.stderr);
        }
        (output.status.success(), text)
    }

    /// Commits everything that differs.
    pub(crate) fn commit(&self) {
        self.git_at("/").commit_all();
    }

    /// Lists what has changed since the base, and why.
    ///
    /// Both ways to ask git must tell the same: libgit2, and the `git` program for repositories that
    /// libgit2 cannot open.
    #[track_caller]
    pub(crate) fn changed(&self) -> Output {
        let by_library = self.list("");
        // The place of the repository is mostly `.git`, and a file may say otherwise.
        let place = self.git("rev-parse --git-common-dir");
        let config = self.path("/").join(place.trim()).join("config");
        let text = fs::read_to_string(&config).unwrap();
        let unreadable = text.replace("formatversion = 0", "formatversion = 1")
            + "[extensions]\n\tpartialClone = nowhere\n";
        assert!(unreadable.contains("formatversion = 1"), "{text}");
        fs::write(&config, unreadable).unwrap();
        let by_program = self.list("");
        fs::write(config, text).unwrap();
        assert_eq!(
            by_library.to_string(),
            by_program.to_string(),
            "left: libgit2, right: git"
        );
        by_library
    }

    /// Lists what has changed since the base, and why, in a way.
    #[track_caller]
    pub(crate) fn list(&self, arguments: &str) -> Output {
        without_base(self.orch(&format!("list --changed --why --base base {arguments}")))
    }
}

/// Takes off the line that names the base.
#[track_caller]
pub(crate) fn without_base(mut output: Output) -> Output {
    let lines = output.stderr.split_inclusive('\n');
    let (bases, rest): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("base "));
    assert_eq!(bases.len(), 1, "{output}");
    output.stderr = rest.concat();
    output
}
