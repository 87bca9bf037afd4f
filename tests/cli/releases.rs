//! Packs a release and installs it as a workflow does: the scripts in `.github`, run on this machine with
//! a folder as the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{Sandbox, orch_program, skipped};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn github(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(".github")
        .join(path)
}

fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        skipped(format!("there is no {program} on the PATH"));
    }
    is_there
}

/// Packs a program that stands in for `orch` on another machine, and returns the path of the archive.
fn pack(sandbox: &Sandbox, target: &str, folder: &str) -> PathBuf {
    let program = "#!/bin/sh\necho the program of the release\n";
    sandbox.write_program("/program", program);
    let folder = sandbox.path(folder);
    let output = Command::new(github("package"))
        .arg(target)
        .arg(sandbox.path("/program"))
        .arg(&folder)
        .arg(orch_program())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let name = String::from_utf8(output.stdout).unwrap();
    folder.join(name.trim())
}

/// Returns the names that a command lists, without the folder that they are all in.
fn listed(command: &str, archive: &Path, folder: &str) -> Vec<String> {
    let mut words = command.split(' ');
    let mut command = Command::new(words.next().unwrap());
    let output = command.args(words).arg(archive).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let names = String::from_utf8(output.stdout).unwrap();
    let below = |name: &str| {
        let name = name
            .strip_prefix(folder)
            .and_then(|name| name.strip_prefix('/'));
        name.unwrap_or_else(|| panic!("{folder} is not around {names}"))
            .to_owned()
    };
    names.lines().map(below).collect()
}

#[test]
fn an_archive_has_all_that_belongs_to_a_release() {
    let sandbox = Sandbox::new("");
    let folder = format!("orch-{VERSION}-x86_64-unknown-linux-musl");
    let archive = pack(&sandbox, "x86_64-unknown-linux-musl", "/archives");
    assert_eq!(archive.file_name().unwrap(), &*format!("{folder}.tar.gz"));
    let names = listed("tar -tzf", &archive, &folder);
    for name in [
        "orch",
        "LICENSE",
        "README.md",
        "man/orch.1",
        "man/orch-run.1",
        "man/orch-changes.7",
        "completions/orch",
        "completions/_orch",
        "completions/orch.fish",
    ] {
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
    }
    let again = pack(&sandbox, "x86_64-unknown-linux-musl", "/again");
    assert!(fs::read(archive).unwrap() == fs::read(again).unwrap());

    if has("zip") && has("unzip") {
        let folder = format!("orch-{VERSION}-x86_64-pc-windows-msvc");
        let archive = pack(&sandbox, "x86_64-pc-windows-msvc", "/archives");
        assert_eq!(archive.file_name().unwrap(), &*format!("{folder}.zip"));
        let names = listed("unzip -Z1", &archive, &folder);
        assert!(names.iter().any(|name| name == "orch.exe"), "{names:?}");
        let again = pack(&sandbox, "x86_64-pc-windows-msvc", "/again");
        assert!(fs::read(archive).unwrap() == fs::read(again).unwrap());
    }
}

/// Where the action finds releases.
const RELEASES: &str = "/server/owner/orch/releases/download";

/// Publishes a release for a target: its archive and the checksum.
fn publish(sandbox: &Sandbox, target: &str) -> PathBuf {
    let folder = format!("{RELEASES}/v{VERSION}");
    let archive = pack(sandbox, target, &folder);
    let sums = Command::new("sha256sum")
        .arg(archive.file_name().unwrap())
        .current_dir(sandbox.path(&folder))
        .output()
        .unwrap();
    sandbox.write(&format!("{folder}/SHA256SUMS"), sums.stdout);
    archive
}

/// Runs the action on a runner of this kind.
fn install(sandbox: &Sandbox, version: &str, (os, arch): (&str, &str)) -> Output {
    let mut command = Command::new("bash");
    sandbox.isolate(&mut command);
    command
        .arg(github("actions/setup-orch/install"))
        .env("ORCH_VERSION", version)
        .env("ORCH_REPOSITORY", "owner/orch")
        .env("RUNNER_OS", os)
        .env("RUNNER_ARCH", arch)
        .env("RUNNER_TOOL_CACHE", sandbox.path("/tools"))
        .env("GITHUB_PATH", sandbox.path("/path"))
        .env("GITHUB_OUTPUT", sandbox.path("/output"))
        .env(
            "GITHUB_SERVER_URL",
            format!("file://{}", sandbox.path("/server").display()),
        )
        .output()
        .unwrap()
}

#[test]
fn the_action_installs_what_was_released() {
    if !has("curl") || !has("sha256sum") {
        return;
    }
    for (target, runner) in [
        ("x86_64-unknown-linux-musl", ("Linux", "X64")),
        ("aarch64-apple-darwin", ("macOS", "ARM64")),
    ] {
        let sandbox = Sandbox::new("");
        publish(&sandbox, target);
        let output = install(&sandbox, &format!("v{VERSION}"), runner);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.ends_with("the program of the release\n"), "{said}");
        assert_eq!(sandbox.read("/output"), format!("version={VERSION}\n"));
        let folder = sandbox.read("/path");
        let folder = Path::new(folder.trim());
        assert!(folder.starts_with(sandbox.path("/tools")));
        let program = Command::new(folder.join("orch")).output().unwrap();
        assert_eq!(program.stdout, b"the program of the release\n");

        // Once it is installed, nothing is downloaded.
        fs::remove_dir_all(sandbox.path("/server")).unwrap();
        let output = install(&sandbox, VERSION, runner);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(sandbox.read("/path").lines().count(), 2);
    }
}

#[test]
fn the_action_installs_nothing_that_it_cannot_trust() {
    if !has("curl") || !has("sha256sum") {
        return;
    }
    let linux = ("Linux", "X64");
    let sandbox = Sandbox::new("");
    let archive = publish(&sandbox, "x86_64-unknown-linux-musl");
    let fails = |version: &str, runner: (&str, &str), why: &str| {
        let output = install(&sandbox, version, runner);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(&format!("::error::setup-orch: {why}")),
            "{said}"
        );
        let nothing = ["/tools", "/path", "/output"];
        assert!(nothing.iter().all(|path| !sandbox.path(path).exists()));
    };
    fails("99.0.0", linux, "cannot download");
    fails("main", linux, "`main` is not a version");
    fails("../../1.0.0", linux, "`../../1.0.0` is not a version");
    fails(
        VERSION,
        ("Linux", "ARM"),
        "there is no release for Linux on ARM",
    );
    fails(VERSION, ("Linux", "ARM64"), "cannot download");
    let mut bytes = fs::read(&archive).unwrap();
    bytes.push(0);
    fs::write(&archive, bytes).unwrap();
    fails(VERSION, linux, "the checksum of orch-");
    sandbox.write(&format!("{RELEASES}/v{VERSION}/SHA256SUMS"), "");
    fails(VERSION, linux, "SHA256SUMS does not name orch-");
}

#[test]
fn steps_of_a_release_are_pinned_to_full_versions() {
    let workflow = fs::read_to_string(github("workflows/release.yml")).unwrap();
    let uses = workflow
        .lines()
        .filter_map(|line| line.split_once("uses: "));
    let mut count = 0;
    for (_, action) in uses {
        let (_, version) = action.split_once("@v").unwrap();
        let numbers: Vec<_> = version.split('.').map(str::parse::<u32>).collect();
        assert!(
            numbers.len() == 3 && numbers.iter().all(Result::is_ok),
            "{action}"
        );
        count += 1;
    }
    assert!(count > 5, "{workflow}");
    // Each job asks for what it needs.
    assert!(workflow.contains("\npermissions: {}\n"), "{workflow}");
}
