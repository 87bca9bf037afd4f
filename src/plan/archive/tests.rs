mod forge;
mod hostile;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::write::ArchiveDraft;
use super::*;
use crate::error::Error;

const JSON: &[u8] = br#"{"format":1}"#;

const PLANS: [&[u8]; 2] = [b"the plan of a tool", b""];

struct Scene {
    folder: TempDir,
    plans: Vec<PathBuf>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut plans = Vec::new();
        for (index, plan) in PLANS.iter().enumerate() {
            let path = folder.path().join(format!("tool-{index}"));
            fs::write(&path, plan).unwrap();
            plans.push(path);
        }
        Scene { folder, plans }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str) -> Result<PathBuf, Error> {
        let file = self.path(name);
        write(&file, JSON, &self.plans).map(|()| file)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.write("plan").unwrap()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("tool-"))
            .collect();
        names.sort();
        names
    }

    fn message(&self, error: &dyn std::error::Error) -> String {
        let folder = self.folder.path().display().to_string();
        error.to_string().replace(&format!("{folder}/"), "")
    }

    fn write_message(&self, name: &str) -> String {
        self.message(&self.write(name).unwrap_err())
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn archive_reads_written_plans() {
    let scene = Scene::new();
    let archive = Archive::open(&scene.write("plan").unwrap()).unwrap();
    assert_eq!(archive.plan_json().unwrap(), JSON);
    assert_eq!(archive.plans(), 2);
    archive.verify().unwrap();
    for (index, plan) in PLANS.iter().enumerate() {
        let to = scene.path("unpacked");
        archive.extract(index, &to).unwrap();
        assert_eq!(read(&to), *plan);
        fs::remove_file(to).unwrap();
    }
    write(&scene.path("none"), b"", &[]).unwrap();
    let archive = Archive::open(&scene.path("none")).unwrap();
    assert_eq!(archive.plan_json().unwrap(), b"");
    assert_eq!(archive.plans(), 0);
}

#[test]
fn archive_is_reproducible() {
    let [scene, other] = [Scene::new(), Scene::new()];
    assert_eq!(scene.bytes(), other.bytes());
    fs::write(&other.plans[1], "x").unwrap();
    assert_ne!(scene.bytes(), other.bytes());
}

#[test]
fn archive_replaces_its_target_atomically() {
    let mut scene = Scene::new();
    fs::write(scene.path("plan"), "the old one").unwrap();
    scene.plans.push(scene.path("missing"));
    insta::assert_snapshot!(scene.write_message("plan"), @"failed to read `missing`, the plan of a tool: No such file or directory (os error 2)");
    assert_eq!(read(&scene.path("plan")), b"the old one");
    assert_eq!(scene.names(), ["plan"]);
    scene.plans.pop();
    scene.write("plan").unwrap();
    Archive::open(&scene.path("plan")).unwrap();
    assert_eq!(scene.names(), ["plan"]);
}

#[cfg(unix)]
#[test]
fn archive_is_private_to_the_user() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
    let scene = Scene::new();
    fs::write(scene.path("plan"), "the old one").unwrap();
    fs::set_permissions(scene.path("plan"), PermissionsExt::from_mode(0o666)).unwrap();
    let archive = Archive::open(&scene.write("plan").unwrap()).unwrap();
    archive.extract(0, &scene.path("unpacked")).unwrap();
    for name in ["plan", "unpacked"] {
        assert_eq!(
            scene.path(name).metadata().unwrap().mode(),
            0o100_600,
            "{name}"
        );
    }
}

#[cfg(unix)]
#[test]
fn archive_checks_its_target_first() {
    let scene = Scene::new();
    check_target(&scene.path("plan")).unwrap();
    check_target(&scene.plans[0]).unwrap();
    assert!(scene.names().is_empty());
    assert_eq!(read(&scene.plans[0]), PLANS[0]);
    fs::create_dir(scene.path("folder")).unwrap();
    symlink(&scene.plans[0], scene.path("link")).unwrap();
    symlink("nowhere", scene.path("dangling")).unwrap();
    let names = ["folder", "missing/plan", "tool-0/plan", "link", "dangling"];
    let mut messages = String::new();
    for name in names {
        let message = scene.message(&check_target(&scene.path(name)).unwrap_err());
        assert_eq!(message, scene.write_message(name));
        messages += &(message + "\n");
    }
    insta::assert_snapshot!(messages, @"
    `folder` is a directory: name a regular file for the plan
    failed to write `missing/plan`: the directory `missing` does not exist
    failed to write `tool-0/plan`: Not a directory (os error 20)
    `link` is a symbolic link: name a regular file for the plan
    `dangling` is a symbolic link: name a regular file for the plan
    ");
    assert_eq!(read(&scene.plans[0]), PLANS[0]);
    assert!(!scene.path("nowhere").exists());
}

#[test]
fn archive_without_directory_is_in_the_current_one() {
    check_target(Path::new("a-plan-that-nobody-writes")).unwrap();
}

#[test]
fn archive_errors_escape_control_characters() {
    let scene = Scene::new();
    let message = scene.write_message("a\u{1b}[31m/b");
    assert!(message.contains(r"`a\u{1b}[31m/b`"), "{message}");
}

#[test]
fn archive_refuses_oversized_plans_before_writing() {
    let mut scene = Scene::new();
    let large = scene.path("tool-large");
    fs::File::create(&large)
        .unwrap()
        .set_len(MOST_BYTES)
        .unwrap();
    scene.plans.push(large);
    let large = scene.write_message("plan");
    let json = vec![0; usize::try_from(MOST_JSON_BYTES).unwrap() + 1];
    let long = scene.message(&write(&scene.path("plan"), &json, &[]).unwrap_err());
    scene.plans = vec![scene.plans[0].clone(); MOST_PLANS + 1];
    let many = scene.write_message("plan");
    insta::assert_snapshot!([large, long, many].join("\n"), @"
    `plan` cannot hold more than 4 GB of plans: select fewer stacks
    `plan` cannot hold more than 256 MiB of `plan.json`: select fewer stacks
    `plan` cannot hold more than the plans of 50000 stacks: select fewer stacks
    ");
    assert!(scene.names().is_empty());
}

/// A tool may leave something that is not a file, or that still grows.
#[cfg(target_os = "linux")]
#[test]
fn archive_refuses_tool_plans_that_change_size() {
    let mut scene = Scene::new();
    make_pipe(&scene.path("tool-pipe"));
    let mut messages = String::new();
    for plan in [scene.path("tool-pipe"), "/proc/version".into()] {
        scene.plans[1] = plan;
        messages += &(scene.write_message("plan") + "\n");
    }
    insta::assert_snapshot!(messages, @"
    failed to read `tool-pipe`, the plan of a tool: it is not a regular file
    failed to read `/proc/version`, the plan of a tool: its size has changed
    ");
    assert!(scene.names().is_empty());
}

#[cfg(unix)]
fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// Where the child process of the next test writes.
const HALF: &str = "ORCH_TEST_HALF_A_PLAN";

#[test]
fn archive_keeps_the_old_file_if_the_writer_is_killed() {
    const NAME: &str = "plan::archive::tests::archive_keeps_the_old_file_if_the_writer_is_killed";
    if let Some(file) = std::env::var_os(HALF) {
        write_half(Path::new(&file));
    }
    let scene = Scene::new();
    let file = scene.path("plan");
    fs::write(&file, "the old one").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(HALF, &file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap().ends_with("half")),
        "the child failed"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(read(&file), b"the old one");
    let names = scene.names();
    assert!(names[0].starts_with(".orch-plan-"), "{names:?}");
    assert_eq!(names.len(), 2);
    assert!(Archive::open(&scene.path(&names[0])).is_err());
    scene.write("plan").unwrap();
    Archive::open(&file).unwrap();
}

/// Writes half an archive and waits to be killed.
fn write_half(file: &Path) -> ! {
    let mut draft = ArchiveDraft::begin(file, 1).unwrap();
    draft.add(&mut &*JSON, JSON.len() as u64, file).unwrap();
    let mut out = std::io::stdout();
    out.write_all(b"half\n").and_then(|()| out.flush()).unwrap();
    _ = std::io::stdin().read(&mut [0]);
    panic!("nobody has killed the child");
}
