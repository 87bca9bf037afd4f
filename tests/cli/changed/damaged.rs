//! A repository that git cannot read: the changes are unknown then, and never nothing.

use std::fs;
use std::path::PathBuf;

use crate::support::Repository;

/// Returns the file of an object.
fn object(repository: &Repository, revision: &str) -> PathBuf {
    let id = repository.git(&format!("rev-parse {revision}"));
    let (directory, name) = id.trim().split_at(2);
    repository.path(&format!("/.git/objects/{directory}/{name}"))
}

fn overwrite(file: &PathBuf, content: &str) {
    fs::remove_file(file).unwrap();
    fs::write(file, content).unwrap();
}

#[test]
fn changed_refuses_an_unreadable_head() {
    type Damage = fn(&Repository);
    let damages: [(&str, Damage); 6] = [
        ("its commit is missing", |it| {
            fs::remove_file(object(it, "HEAD")).unwrap();
        }),
        ("its commit is damaged", |it| {
            overwrite(&object(it, "HEAD"), "x");
        }),
        ("its tree is empty", |it| {
            overwrite(&object(it, "HEAD^{tree}"), "");
        }),
        ("its branch is empty", |it| {
            fs::write(it.path("/.git/refs/heads/main"), "").unwrap();
        }),
        ("it is in a loop of links", |it| {
            fs::remove_dir_all(it.path("/.git")).unwrap();
            std::os::unix::fs::symlink(".git", it.path("/.git")).unwrap();
        }),
        ("it is no name", |it| {
            fs::write(it.path("/.git/HEAD"), "junk\n").unwrap();
        }),
    ];
    for (name, damage) in damages {
        let repository = Repository::layout("a\nb");
        repository.write("/a/main.tf", "# changed\n");
        repository.commit();
        damage(&repository);
        for command in [
            "list --changed",
            "run --changed -- true",
            "why a --changed",
            "run -- terraform destroy",
        ] {
            let output = repository.orch(command);
            assert!(
                matches!(output.code(), 4 | 5),
                "{name}: {command}: {output}"
            );
            assert_eq!(output.stdout, "", "{name}: {command}: {output}");
        }
    }
}
