//! Changes are the same however a repository is stored, checked out and reached.

use std::fs;
use std::path::Path;

use insta::{allow_duplicates, assert_snapshot};

use crate::support::{Output, Repository, Sandbox, orch_program, skipped, without_base};

const STACKS: &str =
    "added\ncommitted\ndeleted\nkept\nrenamed\nstaged\nunstaged\nuntracked\ngone/a\ngone/b";

/// Changes of each kind.
fn change(repository: &Repository, root: &str) {
    let write = |path: &str| repository.write(&format!("{root}/{path}"), "# changed\n");
    write("committed/main.tf");
    write("added/new.tf");
    repository.git_in(root, "mv renamed/main.tf renamed/other.tf");
    repository.git_in(root, "rm -q -r gone/a");
    repository.git_in(root, "add -A .");
    repository.git_in(root, "commit -q -m change");
    write("staged/main.tf");
    repository.git_in(root, "add staged");
    repository.git_in(root, "rm -q -r gone/b");
    write("unstaged/main.tf");
    repository.remove(&format!("{root}/deleted/main.tf"));
    write("untracked/deep/new.tf");
}

/// What [`change`] gives.
const CHANGED: &str = "\
added  # changed: added/new.tf (added); at or below /
committed  # changed: committed/main.tf; at or below /
deleted  # changed: deleted/main.tf (uncommitted, deleted); at or below /
renamed  # changed: renamed/main.tf (deleted); at or below /
staged  # changed: staged/main.tf (uncommitted); at or below /
unstaged  # changed: unstaged/main.tf (uncommitted); at or below /
untracked  # changed: untracked/deep/new.tf (untracked); at or below /
[stderr]
note: stack `/gone/a` was removed since the base; nothing is run for it
note: stack `/gone/b` was removed since the base; nothing is run for it
";

/// Lists what has changed where there is no `git` program.
fn without_git(repository: &Repository) -> Output {
    repository.orch_with("list --changed --why --base base", |command| {
        command.env("PATH", repository.outside().join("home"));
    })
}

fn is_supported(arguments: &str) -> bool {
    let sandbox = Sandbox::new("");
    let repository = Repository::of(sandbox);
    let place = repository.outside().join("home");
    let (is_success, text) = repository.try_git(place, arguments);
    if !is_success {
        skipped(format!("git {arguments}: {text}"));
    }
    is_success
}

#[test]
fn in_a_plain_repository() {
    let repository = Repository::layout(STACKS);
    change(&repository, "/");
    assert_eq!(repository.changed().to_string(), CHANGED);
    assert_eq!(without_base(without_git(&repository)).to_string(), CHANGED);
}

#[test]
fn with_sha256() {
    if !is_supported("init -q --object-format=sha256 x") {
        return;
    }
    let sandbox = Repository::prepare(STACKS);
    let repository = Repository::with_format(sandbox, "--object-format=sha256");
    change(&repository, "/");
    assert_eq!(repository.list("").to_string(), CHANGED);
    assert_eq!(without_base(without_git(&repository)).to_string(), CHANGED);
}

#[test]
fn with_reftable() {
    if !is_supported("init -q --ref-format=reftable x") {
        return;
    }
    let sandbox = Repository::prepare(STACKS);
    let repository = Repository::with_format(sandbox, "--ref-format=reftable");
    change(&repository, "/");
    assert_eq!(repository.list("").to_string(), CHANGED);
}

#[test]
fn with_each_kind_of_index() {
    for arguments in [
        "--index-version 4",
        "--split-index",
        "--untracked-cache",
        "--force-write-index",
    ] {
        let repository = Repository::layout(STACKS);
        repository.git(&format!("update-index {arguments}"));
        change(&repository, "/");
        assert_eq!(repository.changed().to_string(), CHANGED, "{arguments}");
    }
}

#[test]
fn with_a_split_index_and_no_git() {
    let repository = Repository::layout("a\nb");
    repository.git("update-index --split-index");
    repository.write("/a/new", "");
    assert_snapshot!(without_git(&repository), @"
    [stderr]
    base 7063b5e: --base base, which is HEAD itself
    error: failed to read the status of the working tree
      caused by: libgit2 cannot read the repository, and the `git` program is not installed
      caused by: unsupported mandatory extension: 'link'; class=Index (10)
    [exit status 5]
    ");
    let output = repository.orch_with(
        "list --changed --base base --disable-change-detection git-untracked,git-uncommitted",
        |command| {
            command.env("PATH", repository.outside().join("home"));
        },
    );
    assert_snapshot!(output, @"
    [stderr]
    base 7063b5e: --base base, which is HEAD itself
    note: no stack has changed since 7063b5e
    ");
}

#[test]
fn with_exceptions_of_gitignore_and_no_git() {
    let repository = Repository::layout("a\nb");
    repository.write("/.gitignore", "*.log\n!keep.log\n");
    repository.write("/a/x.log", "");
    repository.write("/b/keep.log", "");
    assert_eq!(
        without_base(without_git(&repository)).to_string(),
        repository.changed().to_string()
    );
}

#[test]
fn in_a_linked_worktree() {
    let repository = Repository::layout(STACKS);
    repository.git("worktree add -q ../linked");
    std::fs::remove_dir_all(repository.path("/added")).unwrap();
    let linked = repository.outside().join("linked");
    let root = "../linked";
    change(&repository, root);
    let output = without_base(repository.orch_in(root, "list --changed --why --base base"));
    assert_eq!(output.to_string(), CHANGED);
    let output =
        without_base(repository.orch_in("/../linked/added", "list --changed --why --base base"));
    assert_snapshot!(output, @".  # changed: added/new.tf (added); at or below /added");
    assert!(linked.join(".git").is_file());
}

#[test]
fn through_a_link() {
    let repository = Repository::layout(STACKS);
    change(&repository, "/");
    let link = repository.outside().join("link");
    std::os::unix::fs::symlink(repository.path("/"), &link).unwrap();
    let by_chdir = repository.list(&format!("-C {}", link.display()));
    assert_eq!(by_chdir.to_string(), CHANGED);
    let inside = repository.orch_with("list --changed --why --base base", |command| {
        command.current_dir(&link).env("PWD", &link);
    });
    assert_eq!(without_base(inside).to_string(), CHANGED);
}

#[test]
fn with_the_git_directory_elsewhere() {
    let repository = Repository::layout(STACKS);
    repository.git("init -q --separate-git-dir ../elsewhere.git");
    assert!(repository.path("/.git").is_file());
    change(&repository, "/");
    assert_eq!(repository.changed().to_string(), CHANGED);
}

#[test]
fn below_the_top_level() {
    for prefix in ["/x", "/[x]", "/*", "/a b/ü", "/-C", "/:(top)"] {
        let sandbox = Sandbox::unmarked("//- /outside/stack.tm\nstack {}\n");
        sandbox.write(&format!("{prefix}/root.orch.hcl"), "orch { root = true }\n");
        sandbox.write("/x-y/stack.tm", "stack {}\n");
        sandbox.write("/axb/stack.tm", "stack {}\n");
        for stack in STACKS.lines() {
            sandbox.write(&format!("{prefix}/{stack}/stack.tm"), "stack {}\n");
            sandbox.write(&format!("{prefix}/{stack}/main.tf"), "");
        }
        let repository = Repository::of(sandbox);
        change(&repository, prefix);
        repository.write("/outside/new", "");
        repository.write("/x-y/new", "");
        let list = |arguments: &str| {
            let output = repository.orch_in(
                prefix,
                &format!("list --changed --why --base base {arguments}"),
            );
            without_base(output)
        };
        assert_eq!(list("").to_string(), CHANGED, "{prefix}");
        repository.git("config core.repositoryFormatVersion 1");
        repository.git("config extensions.partialClone nowhere");
        assert_eq!(list("").to_string(), CHANGED, "{prefix}");
    }
}

#[test]
fn what_changes_outside_of_the_project_is_not_passed_over() {
    let sandbox = Sandbox::unmarked(
        r#"
//- /infra/root.orch.hcl
orch { root = true }
//- /infra/a/stack.tm
stack {}
//- /infra/a/main.tf
module "shared" {
  source = "../../shared"
}
//- /shared/main.tf
//- /infra-b/x
"#,
    );
    let repository = Repository::of(sandbox);
    repository.write("/shared/main.tf", "# changed\n");
    repository.commit();
    let list = || without_base(repository.orch("-C infra list --changed --base base"));
    let by_library = list().to_string();
    assert_snapshot!(by_library, @r#"
    [stderr]
    note: files of the repository outside of the project have changed; they select no stacks
    note: no stack has changed since ba445b7
    warning: the module `../../shared` leads out of the project
     --> a/main.tf:2:12
      |
    2 |   source = "../../shared"
      |            ^^^^^^^^^^^^^^ not below the project root
      |
      = help: changes there go unnoticed; move the module into the project
    "#);
    repository.git("config core.repositoryFormatVersion 1");
    repository.git("config extensions.partialClone nowhere");
    assert_eq!(list().to_string(), by_library);
    repository.git("checkout -q base");
    repository.write("/infra/x", "");
    repository.commit();
    assert!(!list().stderr.contains("outside of the project"));
}

/// Anyone can commit a directory that git takes for a repository when it is asked from inside.
#[test]
fn a_directory_that_only_looks_like_a_repository_is_none() {
    for worktree in [".", ".."] {
        let repository = Repository::of(Sandbox::unmarked(
            "//- /infra/root.orch.hcl\norch { root = true }\n//- /infra/a/stack.tm\nstack {}\n",
        ));
        repository.write("/infra/objects/x/keep", "");
        repository.write("/infra/refs/x/keep", "");
        repository.write("/infra/HEAD", "ref: refs/heads/main\n");
        let program = repository.outside().join("has-run");
        let config = format!(
            "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = {worktree}\nfsmonitor = \"touch {};false\"\n",
            program.display()
        );
        repository.write("/infra/config", config);
        repository.write("/infra/a/x", "");
        repository.commit();
        let output = repository.orch("-C infra list --changed --base base");
        assert_eq!(output.stdout, "a\n", "{output}");
        assert!(!program.exists());
    }
}

#[test]
fn a_damaged_repository_is_not_an_empty_one() {
    let repository = Repository::layout("a");
    let head = repository.git("rev-parse HEAD");
    let (folder, file) = head.trim().split_at(2);
    repository.remove(&format!("/.git/objects/{folder}/{file}"));
    let output = repository.orch("list --changed");
    assert_eq!(output.code(), 4, "{output}");
    let cause = format!("fatal: bad object {}", head.trim());
    assert!(output.stderr.contains(&cause), "{output}");
}

#[test]
fn a_repository_of_somebody_else_is_refused_with_the_way_to_trust_it() {
    let repository = Repository::layout("a");
    let paths = walkdir::WalkDir::new(repository.path("/"));
    let somebody_else = |path: &Path| std::os::unix::fs::lchown(path, Some(12345), None);
    if paths
        .into_iter()
        .flatten()
        .any(|entry| somebody_else(entry.path()).is_err())
    {
        skipped("only the superuser can give files away");
        return;
    }
    let output = repository.orch("list --changed --base base --format json");
    assert_eq!(output.code(), 4, "{output}");
    let command = output.data()["refused"]["command"].to_string();
    assert_snapshot!(command, @r#""git config --global --add safe.directory $ROOT""#);
    assert!(
        output.stderr.contains(command.trim_matches('"')),
        "{output}"
    );
}

#[test]
fn with_variables_of_another_repository() {
    let repository = Repository::layout(STACKS);
    change(&repository, "/");
    let nonsense = |repository: &Repository| {
        let output = repository.orch_with("list --changed --why --base base", |command| {
            for name in [
                "GIT_DIR",
                "GIT_WORK_TREE",
                "GIT_INDEX_FILE",
                "GIT_PREFIX",
                "GIT_COMMON_DIR",
                "GIT_OBJECT_DIRECTORY",
                "GIT_NAMESPACE",
                "GIT_SHALLOW_FILE",
                "GIT_GRAFT_FILE",
                "GIT_CEILING_DIRECTORIES",
                "GIT_CONFIG",
            ] {
                command.env(name, "/nowhere");
            }
            command
                .env("GIT_GLOB_PATHSPECS", "1")
                .env("GIT_TRACE", "1")
                .env("GIT_EXTERNAL_DIFF", "false")
                .env("GIT_DIFF_OPTS", "-u0")
                .env("GIT_PAGER", "false");
        });
        without_base(output).to_string()
    };
    assert_eq!(nonsense(&repository), CHANGED);
    repository.git("config core.repositoryFormatVersion 1");
    repository.git("config extensions.partialClone nowhere");
    assert_eq!(nonsense(&repository), CHANGED);
}

#[test]
fn commands_get_no_variables_that_tie_git_to_one_repository() {
    let sandbox = Sandbox::layout("a");
    let mut git = std::process::Command::new("git");
    let listed = git.args(["rev-parse", "--local-env-vars"]).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let tied = || {
        listed
            .lines()
            .filter(|name| !name.starts_with("GIT_CONFIG"))
    };
    assert!(tied().count() >= 10, "{listed}");
    let output = sandbox.orch_with(
        "run --quiet -- sh -c 'env | grep ^GIT_ | grep -v _GLOBAL | grep -v _SYSTEM | sort'",
        |orch| {
            for name in tied() {
                orch.env(name, "/nowhere");
            }
            // Configuration is not tied to a repository.
            orch.env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", "user.name")
                .env("GIT_CONFIG_VALUE_0", "somebody");
            orch.env("GIT_SSH_COMMAND", "ssh -o Own=choice");
        },
    );
    assert_snapshot!(output, @r"
    GIT_CONFIG_COUNT=1
    GIT_CONFIG_KEY_0=user.name
    GIT_CONFIG_VALUE_0=somebody
    GIT_SSH_COMMAND=ssh -o Own=choice
    ");
    // Who sets one in the project means it.
    sandbox.write(
        "/env.tm",
        "terramate {\n  config {\n    run {\n      env {\n        GIT_DIR = \"/own\"\n      }\n    }\n  }\n}\n",
    );
    let output = sandbox.orch_with("run --quiet -- sh -c 'echo $GIT_DIR'", |orch| {
        orch.env("GIT_DIR", "/nowhere");
    });
    assert_snapshot!(output, @"/own");
}

/// A hook of a linked worktree gets `GIT_DIR` and `GIT_INDEX_FILE`, while a command in a stack works on another
/// repository, as `terraform init` does for a module from git.
#[cfg(unix)]
#[test]
fn a_hook_of_a_linked_worktree_loses_nothing_that_is_staged() {
    use std::os::unix::fs::PermissionsExt;

    let repository = Repository::layout(STACKS);
    let [linked, module] = ["linked", "module"].map(|name| repository.outside().join(name));
    repository.git(&format!("worktree add -q -b other '{}'", linked.display()));
    repository.git(&format!("init -q '{}'", module.display()));
    fs::write(module.join("module.tf"), "").unwrap();
    let hook = repository.path("/.git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let script = format!(
        "#!/bin/sh\nexec '{}' run --quiet -X -- git -C '{}' add module.tf\n",
        orch_program().display(),
        module.display(),
    );
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(linked.join("work"), "").unwrap();
    repository.git_in(&linked, "add work");
    repository.git_in(&linked, "commit -q -m work");
    let committed = repository.git_in(&linked, "show --format= --name-only HEAD");
    assert_eq!(committed, "work\n");
    assert_eq!(repository.git_in(&module, "ls-files"), "module.tf\n");
}

/// What a sparse checkout has changed, which leaves out `out`, where stacks have changed too.
fn sparse(arguments: &str) -> Repository {
    let repository = Repository::layout("in/a\nin/b\nout/c\nout/d\nout/e");
    repository.write("/out/c/new", "");
    repository.write("/out/d/stack.tm", "stack {\n}\n# changed\n");
    repository.git("rm -q -r out/e");
    repository.commit();
    repository.git(&format!("sparse-checkout set {arguments}"));
    assert!(!repository.path("/out/c/new").exists());
    repository.write("/in/a/new", "");
    repository
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_gone() {
    for arguments in ["--cone in", "--no-cone /in/ '/*.hcl'"] {
        allow_duplicates! {
            assert_snapshot!(sparse(arguments).changed(), @"
            in/a  # changed: in/a/new (untracked); at or below /
            [stderr]
            note: stack `/out/e` was removed since the base; nothing is run for it
            ");
        }
    }
}

#[test]
fn in_a_sparse_checkout_without_git() {
    let repository = sparse("--cone in");
    assert_snapshot!(without_base(without_git(&repository)), @"
    in/a  # changed: in/a/new (untracked); at or below /
    [stderr]
    note: stack `/out/e` was removed since the base; nothing is run for it
    ");
}

#[test]
fn with_a_sparse_index() {
    let repository = sparse("--cone --sparse-index in");
    assert_snapshot!(repository.changed(), @"
    in/a  # changed: in/a/new (untracked); at or below /
    [stderr]
    note: stack `/out/e` was removed since the base; nothing is run for it
    ");
    assert_snapshot!(without_git(&repository), @"
    [stderr]
    base 4264001: --base base
    error: failed to read the status of the working tree
      caused by: libgit2 cannot read the repository, and the `git` program is not installed
      caused by: unsupported mandatory extension: 'sdir'; class=Index (10)
    [exit status 5]
    ");
}

/// A clone of a project in which stacks are gone and files are changed, without the objects of the base.
fn partial(filter: &str) -> (Repository, Repository) {
    let origin = Repository::layout("a\nb [gone]\nc");
    origin.git("rm -q -r b");
    origin.write("/a/main.tf", "# changed\n");
    origin.commit();
    origin.git("config uploadpack.allowFilter true");
    let place = origin.path("/");
    let place = place.to_str().expect("a path that is text");
    let url = shell_words::quote(place);
    let sandbox = Sandbox::new("");
    std::fs::remove_dir_all(sandbox.path("/")).unwrap();
    let clone = Repository::clone(sandbox, &format!("--filter={filter} file://{url}"));
    (origin, clone)
}

#[test]
fn in_a_partial_clone() {
    for filter in ["blob:none", "tree:0"] {
        let (origin, clone) = partial(filter);
        clone.write("/c/new", "");
        origin.write("/c/new", "");
        assert_eq!(clone.list("").to_string(), origin.changed().to_string());
        allow_duplicates! {
            assert_snapshot!(clone.list(""), @"
            a  # changed: a/main.tf; at or below /
            c  # changed: c/new (untracked); at or below /
            [stderr]
            note: stack `/b` was removed since the base; nothing is run for it
            ");
        }
    }
}

#[test]
fn in_a_partial_clone_without_git() {
    let (_origin, clone) = partial("blob:none");
    assert_snapshot!(without_git(&clone), @"
    [stderr]
    base 5b1f769: --base base
    error: failed to find changes
      caused by: libgit2 cannot read the repository, and the `git` program is not installed
      caused by: object not found - cannot read header for (870875c922deaa12b47060ad1a331b90bb3d57af); class=Odb (9); code=NotFound (-3)
    [exit status 5]
    ");
    let (_origin, clone) = partial("tree:0");
    assert_snapshot!(without_git(&clone), @"
    [stderr]
    base 5b1f769: --base base
    error: failed to find changes
      caused by: libgit2 cannot read the repository, and the `git` program is not installed
      caused by: object not found - no match for id (6f4225b934a09bb1d36c728f82a327e79d444e22); class=Odb (9); code=NotFound (-3)
    [exit status 5]
    ");
}

#[test]
fn in_a_partial_clone_whose_origin_is_gone() {
    let (origin, clone) = partial("blob:none");
    drop(origin);
    let output = clone.orch("list --changed --base base");
    assert_eq!(output.code(), 5, "{output}");
    assert!(output.stdout.is_empty(), "{output}");
}

#[test]
fn outside_of_any_repository() {
    let sandbox = Sandbox::layout("a");
    assert_snapshot!(sandbox.orch("list --changed"), @"
    [stderr]
    error: the changes are unknown
      caused by: `$ROOT` is not in a git repository
      = help: change into a git repository, or remove `--changed` to select all stacks
    [exit status 4]
    ");
}
