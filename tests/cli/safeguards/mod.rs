//! What `orch run` refuses to run over.

mod configured; // what the configuration switches
mod destroys; // what may be destroyed before what
mod read_only; // commands that only read
mod states; // every state that git knows of a file and of a repository
mod submodules; // repositories inside of the repository
mod switches; // what the command line and the environment switch, and which commands look
mod sync; // HEAD and the remote

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Output, Repository};

/// A command that succeeds.
const RUN: &str = "run --quiet -- true";

/// What a run objects to, a safeguard a line: `git-untracked: a/new, b/new`. Empty if it ran.
#[track_caller]
fn objections(output: &Output) -> String {
    let mut objections = String::new();
    for line in output.stderr.lines() {
        if let Some(refused) = line.strip_prefix("error: refused: ") {
            let (_, rule) = refused.split_once("(safeguard `").expect(refused);
            let rule = rule.strip_suffix("`)").expect(rule);
            objections += &format!("{rule}:\n");
        } else if let Some(file) = line.strip_prefix("    ") {
            let so_far = objections.trim_end();
            let comma = if so_far.ends_with(':') { "" } else { "," };
            objections = format!("{so_far}{comma} {file}\n");
        }
    }
    let is_refused = !objections.is_empty();
    assert_eq!(output.code(), if is_refused { 4 } else { 0 }, "{output}");
    assert_eq!(is_refused, output.stderr.contains("note: nothing was run"));
    objections
}

/// What a run objects to, which is the same with the `git` program and without.
#[track_caller]
fn verdict(repository: &Repository) -> String {
    verdict_at(repository, "/")
}

/// Like [`verdict`], in a directory of the project.
#[track_caller]
fn verdict_at(repository: &Repository, directory: &str) -> String {
    let with_git = objections(&repository.orch_in(directory, RUN));
    let without_git = objections(&without_git(repository, directory));
    assert_eq!(with_git, without_git, "left: git, right: libgit2");
    with_git
}

/// Runs where no program is on the PATH, git neither.
fn without_git(repository: &Repository, directory: &str) -> Output {
    repository.write_program("../ok", "#!/bin/sh\n");
    let ok = repository.outside().join("ok");
    repository.orch_with(&format!("run --quiet -- '{}'", ok.display()), |orch| {
        orch.current_dir(repository.path(directory))
            .env("PATH", repository.outside().join("home"));
    })
}

/// A `git` that writes down what it is asked, before the one that is installed.
struct Recorder {
    bin: PathBuf,
    log: PathBuf,
}

impl Recorder {
    fn new(place: &Path) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        let git = std::env::split_paths(&path)
            .map(|directory| directory.join("git"))
            .find(|git| git.is_file())
            .expect("git is installed");
        let recorder = Recorder {
            bin: place.join("bin"),
            log: place.join("log"),
        };
        fs::create_dir_all(&recorder.bin).unwrap();
        let program = recorder.bin.join("git");
        let text = format!(
            "#!/bin/sh\necho \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
            recorder.log.display(),
            git.display()
        );
        fs::write(&program, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(program, mode).unwrap();
        recorder
    }

    /// Puts it in front of the PATH.
    fn watch(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap();
        let places = [self.bin.clone()]
            .into_iter()
            .chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(places).unwrap());
    }

    /// What was asked since the last time, each command by its name.
    fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        _ = fs::remove_file(&self.log);
        let command = |line: &str| {
            let mut words = line.split(' ');
            while let Some(word) = words.next() {
                match word {
                    "-C" | "-c" => _ = words.next(),
                    command => return command.to_owned(),
                }
            }
            String::new()
        };
        log.lines().map(command).collect()
    }
}
