//! A project on disk, and `orch` running in it with nothing of the host around.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use tempfile::TempDir;

use super::git::Git;
use super::host::{DEADLINE, folder, isolate, orch_program};
use super::output::Output;
use super::redact::Redactor;

/// A project in a folder of its own, between stacks that do not belong to it.
pub(crate) struct Sandbox {
    folder: TempDir,
    root: PathBuf,
    redactor: RefCell<Redactor>,
}

impl Sandbox {
    /// A project with these files, whose root is marked by a file of its own.
    ///
    /// Each file begins with a line `//- /its/path`.
    pub(crate) fn new(fixture: &str) -> Self {
        let sandbox = Sandbox::unmarked(fixture);
        sandbox.write("/root.orch.hcl", "orch { root = true }\n");
        sandbox
    }

    /// A project with these files, whose root is marked by nothing else.
    pub(crate) fn unmarked(fixture: &str) -> Self {
        let folder = folder();
        let outside = fs::canonicalize(folder.path()).unwrap();
        let root = outside.join("project");
        for directory in ["home", "project", "project-decoy", "decoy"] {
            fs::create_dir(outside.join(directory)).unwrap();
        }
        for decoy in ["decoy.tm", "project-decoy/stack.tm", "decoy/stack.tm"] {
            let text = "stack {\n  tags = [\"decoy\"]\n}\n";
            fs::write(outside.join(decoy), text).unwrap();
        }
        let sandbox = Sandbox {
            folder,
            root,
            redactor: RefCell::default(),
        };
        sandbox.learn(sandbox.root.to_string_lossy(), "$ROOT");
        for (path, text) in files(fixture) {
            sandbox.write(path, &text);
        }
        sandbox
    }

    /// A project with these stacks, one a line: `a/b [tag tag] after /c tag:d before /e`. The stack
    /// at the root is `/`. Attributes stand in `stack.tm`, one a line in the order given, tags first.
    pub(crate) fn layout(stacks: &str) -> Self {
        let sandbox = Sandbox::new("");
        for stack in stacks.lines().map(str::trim) {
            if !stack.is_empty() {
                let (path, text) = stack_file(stack);
                sandbox.write(&path, &text);
            }
        }
        sandbox
    }

    /// Makes the project a git repository.
    pub(crate) fn git_init(&self) {
        self.git_init_at("/");
    }

    /// Makes a directory a git repository.
    pub(crate) fn git_init_at(&self, path: &str) {
        self.mkdir(path);
        self.git_at(path).init();
    }

    /// git in a directory of the project.
    pub(crate) fn git_at(&self, path: &str) -> Git {
        Git::new(self.path(path), self.home())
    }

    fn home(&self) -> PathBuf {
        self.outside().join("home")
    }

    /// The place of a path of the project on this machine.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The folder around the project.
    pub(crate) fn outside(&self) -> &Path {
        self.root.parent().unwrap()
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a directory, and those above it.
    pub(crate) fn mkdir(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    /// Removes a file or a link.
    #[cfg(unix)]
    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    /// Writes a program.
    #[cfg(unix)]
    pub(crate) fn write_program(&self, path: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.write(path, text);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes a symbolic link at `path` with exactly this target.
    #[cfg(unix)]
    pub(crate) fn symlink(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    /// The text of a file; empty if there is none.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    /// Runs `orch` at the root of the project. `arguments` are split as a shell splits words.
    pub(crate) fn orch(&self, arguments: &str) -> Output {
        self.orch_in("/", arguments)
    }

    /// Runs `orch` in a directory of the project.
    pub(crate) fn orch_in(&self, directory: &str, arguments: &str) -> Output {
        self.orch_with(arguments, |command| {
            command.current_dir(self.path(directory));
        })
    }

    /// Runs `orch` at the root of the project after a change to the command.
    pub(crate) fn orch_with(&self, arguments: &str, change: impl FnOnce(&mut Command)) -> Output {
        let mut command = self.command(arguments);
        change(&mut command);
        let output = assert_cmd::Command::from_std(command)
            .timeout(DEADLINE)
            .output()
            .expect("orch starts");
        self.output(&output)
    }

    /// Prepares to run `orch` at the root of the project.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(orch_program());
        self.isolate(&mut command);
        command
            .args(shell_words::split(arguments).expect("quotes are balanced"))
            .current_dir(&self.root);
        command
    }

    /// Prepares to run a command line of the shell at the root of the project, in a terminal of its
    /// own whose keys are the command's stdin; nothing where no terminal can be made.
    #[cfg(target_os = "linux")]
    pub(crate) fn in_terminal(&self, line: &str) -> Option<Command> {
        let has_script = Command::new("script").arg("--version").output().is_ok();
        if !has_script {
            super::host::skipped("there is no `script` to make a terminal");
            return None;
        }
        let mut script = Command::new("script");
        self.isolate(&mut script);
        script
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .current_dir(&self.root);
        Some(script)
    }

    /// Keeps the host's environment away from a command.
    pub(crate) fn isolate(&self, command: &mut Command) {
        isolate(command, &self.home());
    }

    /// From now on, one text stands for another in what `orch` is shown to print.
    pub(crate) fn learn(&self, text: impl Into<String>, instead: impl Into<String>) {
        self.redactor.borrow_mut().learn(text, instead);
    }

    /// Replaces what stands for something else.
    pub(crate) fn redact_known(&self, text: &str) -> String {
        self.redactor.borrow().redact_known(text)
    }

    /// What a finished `orch` said, without what differs from run to run.
    pub(crate) fn output(&self, output: &process::Output) -> Output {
        let redactor = self.redactor.borrow();
        let text = |bytes: &[u8]| {
            let text = str::from_utf8(bytes).expect("orch writes UTF-8");
            redactor.redact(text)
        };
        Output::new(text(&output.stdout), text(&output.stderr), output.status)
    }

    /// Keeps the folder for a look at it.
    #[expect(dead_code, reason = "for whoever looks into a failing test")]
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// Splits a fixture into paths and texts.
fn files(fixture: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in fixture.lines() {
        if let Some(path) = line.strip_prefix("//- ") {
            files.push((path, String::new()));
        } else if let Some((_, text)) = files.last_mut() {
            text.push_str(line);
            text.push('\n');
        } else {
            assert!(line.is_empty(), "the text `{line}` belongs to no file");
        }
    }
    files
}

/// Turns a line of a layout into a file.
fn stack_file(line: &str) -> (String, String) {
    let (path, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut attributes: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut rest = rest.trim();
    if let Some((tags, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        attributes.push(("tags", tags.split_whitespace().collect()));
        rest = after;
    }
    for word in rest.split_whitespace() {
        match (word, attributes.last_mut()) {
            ("after" | "before" | "wants" | "wanted_by", _) => attributes.push((word, Vec::new())),
            (entry, Some((_, entries))) => entries.push(entry),
            (entry, None) => panic!("`{entry}` belongs to no attribute"),
        }
    }
    let mut text = "stack {\n".to_owned();
    for (name, entries) in attributes {
        text += &format!("  {name} = {entries:?}\n");
    }
    text += "}\n";
    (format!("{}/stack.tm", path.trim_matches('/')), text)
}
