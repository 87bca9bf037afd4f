//! A project loaded from a commit is the project loaded from a clean checkout of it, whether libgit2
//! or the `git` program reads the commit.

use std::fs;
use std::path::Path;

use orch::diagnostic::{RenderStyle, render};
use orch::git::{CommitTree, Repository};
use orch::project::environment::Environments;
use orch::project::{Problems, Project};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tempfile::TempDir;

use crate::loading::{NOISE, seen};
use crate::support::git::Git;
use crate::tree::{any_tree, write};

/// Files that the trees of other laws do not have.
const MORE: [(&str, &str); 12] = [
    (
        "ab/each.tm",
        "stack {\n  for_each = tm_try([tm_trimspace(tm_file(\"keys\"))], [\"k\", \"l\"])\n  name = each.key\n}\n",
    ),
    ("ab/keys", "from a file\n"),
    (
        "each.tm",
        "terramate {\n  config {\n    run {\n      env {\n        E = tm_try(\"${each.key}=${each.value}\", \"\")\n      }\n    }\n  }\n}\n",
    ),
    (
        "globals.tm",
        "globals {\n  a = \"${terramate.stack.name} ${tm_fileexists(\"x/main.tf\")}\"\n}\n",
    ),
    (
        "env.tm",
        "terramate {\n  config {\n    run {\n      env {\n        A = global.a\n        B = \"${tm_fileexists(\"globals.tm\")}\"\n        C = global.missing\n      }\n    }\n  }\n}\n",
    ),
    (
        "x/import.tm",
        "import {\n  source = \"/shared/*.hcl\"\n}\nimport {\n  source = \"../none.tm\"\n}\n",
    ),
    ("shared/one.hcl", "globals {\n  b = 1\n}\n"),
    (
        "a/shared.hcl/deep.tm",
        "stack {\n  watch = [\"/shared/one.hcl\", \"/shared\", \"/shared/*.x\"]\n}\n",
    ),
    ("b/.tmskip", ""),
    ("c/nested.orch.hcl", "orch {\n  root = true\n}\n"),
    (".hidden/stack.tm", "stack {\n}\n"),
    ("ab/latin.tm", "stack {\n  name = \"\u{fffd}\"\n}\n"),
];

/// All that can be seen of a project, environments and what is wrong with them included.
fn everything(project: &Project, problems: Problems) -> String {
    let mut all = seen(project, problems);
    let host = [("HOME".to_owned(), "/h".to_owned())];
    let environments = Environments::new(project, host.into_iter());
    for (stack, _) in project.stacks.iter() {
        all += &match environments.of_stack(stack) {
            Ok(environment) => format!("{environment:?}\n"),
            Err(problems) => {
                let draw = |problem| render(problem, &project.sources, RenderStyle::Plain);
                problems.iter().map(draw).collect()
            }
        };
    }
    all += &format!("{:?} {:?}\n", project.nested_projects, project.broken);
    all
}

fn from_commit(root: &Path) -> String {
    let repository = Repository::open(root).unwrap();
    let head = repository.commit("HEAD").unwrap().unwrap();
    let mut problems = Problems::default();
    let tree = CommitTree::new(repository, head);
    let project = Project::load_tree(root, &tree, &mut problems).unwrap();
    everything(&project, problems)
}

fn from_disk(root: &Path) -> String {
    let mut problems = Problems::default();
    let project = Project::load(root, &mut problems).unwrap();
    everything(&project, problems)
}

/// Fails with the first line that differs.
fn similar(found: &str, expected: &str, reader: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{reader}");
    }
    assert_eq!(found.len(), expected.len(), "{reader}");
}

fn check(files: &[(String, String)], bytes: &[(&str, &[u8])], inside: &str) {
    let directory = TempDir::new().unwrap();
    let top = directory.path().canonicalize().unwrap().join("project");
    let root = top.join(inside);
    fs::create_dir_all(&root).unwrap();
    write(&root, files);
    for (path, content) in bytes {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let git = Git::new(&top, directory.path());
    git.init();
    git.commit_all();
    let expected = from_disk(&root);
    similar(&from_commit(&root), &expected, "libgit2");
    // A format that libgit2 does not know: `git` is asked instead.
    git.run("config core.repositoryformatversion 1");
    git.run("config extensions.partialClone origin");
    similar(&from_commit(&root), &expected, "git");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_commit_loads_as_its_checkout_does(
        tree in any_tree(),
        noise in prop::collection::vec((any::<Index>(), select(NOISE.to_vec())), 0..3),
        more in prop::collection::vec(select(MORE.to_vec()), 0..6),
        inside in select(vec!["", "deeper/down"]),
    ) {
        let mut files = tree.files();
        let mut add = |path: String, text: &str| {
            let is_free = files.iter().all(|(other, _)| *other != path);
            if is_free {
                files.push((path, text.to_owned()));
            }
        };
        for (path, text) in more {
            add(path.to_owned(), text);
        }
        for (at, text) in noise {
            let directory = ["", "a/", "x/", "ab/"][at.index(4)];
            add(format!("{directory}noise.tm"), text);
        }
        check(&files, &[], inside);
    }
}

#[test]
fn what_is_hard_to_read_is_refused_in_a_commit_as_on_disk() {
    let huge = vec![b'#'; (16 << 20) + 1];
    let files = [("s/stack.tm".to_owned(), "stack {\n}\n".to_owned())];
    let bytes: [(&str, &[u8]); 3] = [
        ("huge/stack.tm", &huge),
        ("latin/stack.tm", b"stack {\n  name = \"\xe9\"\n}\n"),
        ("mark/stack.tm", b"\xef\xbb\xbfstack {\n}\n"),
    ];
    check(&files, &bytes, "");
}

#[cfg(unix)]
#[test]
fn names_are_bytes_and_links_in_a_commit_are_not_followed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let directory = TempDir::new().unwrap();
    let root = directory.path().canonicalize().unwrap().join("project");
    let strange = root.join(OsStr::from_bytes(b"str\xffnge\nname"));
    fs::create_dir_all(&strange).unwrap();
    fs::create_dir(root.join("s")).unwrap();
    fs::write(strange.join("stack.tm"), "stack {\n}\n").unwrap();
    fs::write(root.join("s/text"), "stack {\n}\n").unwrap();
    let git = Git::new(&root, directory.path());
    git.init();
    git.commit_all();
    assert_eq!(from_commit(&root), from_disk(&root));
    std::os::unix::fs::symlink("text", root.join("s/stack.tm")).unwrap();
    git.commit_all();
    assert!(from_disk(&root).contains("/s"));
    let seen = from_commit(&root);
    assert!(
        seen.contains("is a symbolic link, which is not followed in a commit"),
        "{seen}"
    );
}
