//! Every state that git knows of a file and of a repository.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use super::{RUN, objections, verdict, verdict_at, without_git};
use crate::support::{Output, Repository, Sandbox};

fn stacks() -> Repository {
    Repository::layout("a\nb")
}

/// `main` and `other` have changed the same file; `main` is checked out.
fn diverged() -> Repository {
    let repository = stacks();
    repository.git("checkout -q -b other");
    repository.write("/a/main.tf", "# other\n");
    repository.write("/b/other.tf", "");
    repository.commit();
    repository.git("checkout -q main");
    repository.write("/a/main.tf", "# main\n");
    repository.commit();
    repository
}

/// Runs git, which stops before it is done.
#[track_caller]
fn stops(repository: &Repository, arguments: &str) {
    let (is_success, text) = repository.try_git("/", arguments);
    assert!(!is_success, "{text}");
}

/// A run is refused because the state is unknown; with this advice.
#[track_caller]
fn assert_unknown(output: &Output, advice: &str) {
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(
        lines[0],
        "error: refused: the status of the working tree is unknown (safeguards `git-untracked`, `git-uncommitted`)",
        "{output}"
    );
    assert!(lines[1].starts_with("  caused by: "), "{output}");
    let lifted =
        "or disable these safeguards with `--disable-safeguards=git-untracked,git-uncommitted`";
    let help = format!("  = help: {advice}, {lifted}");
    assert_eq!(lines[lines.len() - 2..], [&*help, "note: nothing was run"]);
    assert_eq!(output.code(), 4, "{output}");
}

#[test]
fn run_allows_a_clean_tree() {
    assert_eq!(verdict(&stacks()), "");
}

#[test]
fn safeguards_report_all_refusals_at_once() {
    let repository = stacks();
    repository.write("/a/new.tf", "");
    repository.write("/b/deep/new.tf", "");
    repository.write("/b/main.tf", "# changed\n");
    assert_snapshot!(repository.orch("run -- sh -c 'echo ran'"), @"
    [stderr]
    error: refused: 2 files are untracked (safeguard `git-untracked`)
        a/new.tf
        b/deep/new.tf
      = help: commit or ignore them, or disable this safeguard with `--disable-safeguards=git-untracked`
    error: refused: 1 file has uncommitted changes (safeguard `git-uncommitted`)
        b/main.tf (modified)
      = help: commit or stash it, or disable this safeguard with `--disable-safeguards=git-uncommitted`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
fn run_refuses_many_untracked_files_with_a_count() {
    let repository = stacks();
    for n in 10..33 {
        repository.write(&format!("/a/{n}"), "");
    }
    let output = repository.orch(RUN);
    assert!(
        output
            .stderr
            .starts_with("error: refused: 23 files are untracked")
    );
    assert!(
        output
            .stderr
            .contains("    a/29\n    and 3 more\n  = help:"),
        "{output}"
    );
}

#[test]
fn run_refuses_untracked_files_outside_of_the_selection() {
    let repository = stacks();
    repository.write("/b/new.tf", "");
    repository.write("/README", "");
    let objection = "git-untracked: README, b/new.tf\n";
    assert_eq!(verdict(&repository), objection);
    assert_eq!(verdict_at(&repository, "/a"), objection);
    for select in ["--no-recursive -C a", "--changed --base base -C b"] {
        let output = repository.orch(&format!("run {select} -- true"));
        assert_eq!(objections(&output), objection);
    }
}

#[test]
fn untracked_directories() {
    let repository = stacks();
    repository.mkdir("/empty");
    assert_eq!(verdict(&repository), "");
    repository.write("/new/deep/x", "");
    assert_eq!(verdict(&repository), "git-untracked: new/deep/x\n");
}

#[test]
fn ignored_files() {
    let repository = stacks();
    repository.write("/.gitignore", "*.log\n.terraform/\n");
    repository.commit();
    repository.write("/a/x.log", "");
    repository.write("/a/.terraform/providers/x", "");
    assert_eq!(verdict(&repository), "");
    repository.write("/.git/info/exclude", "*.tfplan\n");
    repository.write("/a/x.tfplan", "");
    assert_eq!(verdict(&repository), "");
    repository.write("../home/ignore", "*.bak\n");
    let ignore = repository.outside().join("home/ignore");
    repository.git(&format!("config core.excludesFile '{}'", ignore.display()));
    repository.write("/a/x.bak", "");
    assert_eq!(verdict(&repository), "");
    repository.write("/a/x.tf", "");
    assert_eq!(verdict(&repository), "git-untracked: a/x.tf\n");
}

#[test]
fn run_allows_an_ignored_stack() {
    let repository = stacks();
    repository.write("/.git/info/exclude", "ig/\n");
    repository.write("/ig/stack.tm", "stack {}\n");
    assert_eq!(verdict_at(&repository, "/ig"), "");
}

#[test]
fn ignored_files_that_git_knows_all_the_same() {
    let repository = stacks();
    repository.write("/.gitignore", "*.tf\n");
    repository.commit();
    assert_eq!(verdict(&repository), "");
    repository.write("/a/main.tf", "# changed\n");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (modified)\n"
    );
}

#[test]
fn modified() {
    let repository = stacks();
    repository.write("/a/main.tf", "# changed\n");
    let objection = "git-uncommitted: a/main.tf (modified)\n";
    assert_eq!(verdict(&repository), objection);
    repository.git("add a");
    assert_eq!(verdict(&repository), objection, "staged");
    repository.write("/a/main.tf", "# changed again\n");
    assert_eq!(verdict(&repository), objection, "staged and modified");
    repository.write("/a/main.tf", "# a\n");
    assert_eq!(verdict(&repository), objection, "staged and taken back");
    repository.git("add a");
    assert_eq!(verdict(&repository), "");
}

#[test]
fn touched() {
    let repository = stacks();
    let file = fs::File::open(repository.path("/a/main.tf")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(verdict(&repository), "");
}

#[test]
fn added() {
    let repository = stacks();
    repository.write("/a/new.tf", "x\n");
    repository.git("add a");
    let objection = "git-uncommitted: a/new.tf (added)\n";
    assert_eq!(verdict(&repository), objection);
    repository.write("/a/new.tf", "y\n");
    assert_eq!(verdict(&repository), objection);
    repository.commit();
    assert_eq!(verdict(&repository), "");
}

#[test]
fn added_and_deleted() {
    let repository = stacks();
    repository.write("/a/new.tf", "x\n");
    repository.git("add a");
    repository.remove("/a/new.tf");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/new.tf (deleted)\n"
    );
}

#[test]
fn intended_to_be_added() {
    let repository = stacks();
    repository.write("/a/new.tf", "x\n");
    repository.git("add --intent-to-add a");
    assert_eq!(verdict(&repository), "git-uncommitted: a/new.tf (added)\n");
}

#[test]
fn deleted() {
    let repository = stacks();
    repository.remove("/a/main.tf");
    let objection = "git-uncommitted: a/main.tf (deleted)\n";
    assert_eq!(verdict(&repository), objection);
    repository.git("add a");
    assert_eq!(verdict(&repository), objection, "staged");
}

#[test]
fn forgotten_but_there() {
    let repository = stacks();
    repository.git("rm -q --cached a/main.tf");
    assert_eq!(
        verdict(&repository),
        "git-untracked: a/main.tf\ngit-uncommitted: a/main.tf (deleted)\n"
    );
}

#[test]
fn renamed() {
    let repository = stacks();
    repository.git("config status.renames copies");
    repository.git("mv a/main.tf b/moved.tf");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (deleted), b/moved.tf (added)\n"
    );
    repository.git("reset -q --hard");
    fs::rename(
        repository.path("/a/main.tf"),
        repository.path("/b/moved.tf"),
    )
    .unwrap();
    assert_eq!(
        verdict(&repository),
        "git-untracked: b/moved.tf\ngit-uncommitted: a/main.tf (deleted)\n"
    );
}

#[test]
fn run_refuses_a_change_of_type() {
    let repository = stacks();
    repository.remove("/a/main.tf");
    repository.symlink("../b/main.tf", "/a/main.tf");
    let objection = "git-uncommitted: a/main.tf (type changed)\n";
    assert_eq!(verdict(&repository), objection);
    repository.git("add a");
    assert_eq!(verdict(&repository), objection, "staged");
}

#[test]
fn run_refuses_a_file_that_became_a_directory() {
    let repository = stacks();
    repository.remove("/a/main.tf");
    repository.write("/a/main.tf/new", "");
    assert_eq!(
        verdict(&repository),
        "git-untracked: a/main.tf/new\ngit-uncommitted: a/main.tf (deleted)\n"
    );
}

#[test]
fn permissions() {
    let repository = stacks();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(repository.path("/a/main.tf"), executable).unwrap();
    let objection = "git-uncommitted: a/main.tf (modified)\n";
    assert_eq!(verdict(&repository), objection);
    repository.git("add a");
    assert_eq!(verdict(&repository), objection, "staged");
    repository.git("reset -q");
    repository.git("config core.fileMode false");
    assert_eq!(verdict(&repository), "");
}

#[test]
fn run_allows_changes_that_git_is_configured_to_overlook() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let repository = stacks();
        repository.git(&format!("update-index {flag} a/main.tf"));
        repository.write("/a/main.tf", "# changed\n");
        assert_eq!(objections(&repository.orch(RUN)), "", "{flag}");
    }
}

#[test]
fn run_refuses_a_merge_with_conflicts() {
    let repository = diverged();
    stops(&repository, "merge other");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (conflicted), b/other.tf (added)\n"
    );
    assert!(
        repository
            .orch(RUN)
            .stderr
            .contains("= help: resolve the conflicts and commit, or ")
    );
    repository.write("/a/main.tf", "# both\n");
    repository.git("add a");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (modified), b/other.tf (added)\n",
        "resolved"
    );
    repository.git("commit -q -m merge");
    assert_eq!(verdict(&repository), "");
}

#[test]
fn every_kind_of_conflict() {
    let repository = Repository::layout("a\nb\nc\nd");
    repository.git("checkout -q -b other");
    repository.git("rm -q a/main.tf");
    repository.write("/b/main.tf", "# other\n");
    repository.write("/c/both.tf", "# other\n");
    repository.git("mv d/main.tf d/other.tf");
    repository.commit();
    repository.git("checkout -q main");
    repository.write("/a/main.tf", "# main\n");
    repository.git("rm -q b/main.tf");
    repository.write("/c/both.tf", "# main\n");
    repository.git("mv d/main.tf d/ours.tf");
    repository.commit();
    stops(&repository, "merge other");
    let status = repository.git("status --porcelain");
    for kind in ["UD", "DU", "AA", "DD", "UA", "AU"] {
        assert!(status.contains(&format!("{kind} ")), "{kind}: {status}");
    }
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (conflicted), b/main.tf (conflicted), c/both.tf (conflicted), \
         d/main.tf (conflicted), d/other.tf (conflicted), d/ours.tf (conflicted)\n"
    );
}

#[test]
fn run_refuses_an_uncommitted_merge() {
    let repository = stacks();
    repository.git("checkout -q -b other");
    repository.write("/b/other.tf", "");
    repository.commit();
    repository.git("checkout -q main");
    repository.git("merge -q --no-ff --no-commit other");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: b/other.tf (added)\n"
    );
}

#[test]
fn run_refuses_a_rebase_with_conflicts() {
    let repository = diverged();
    repository.git("checkout -q other");
    stops(&repository, "rebase main");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (conflicted), b/other.tf (added)\n"
    );
    repository.git("checkout -q --theirs a/main.tf");
    repository.git("add a");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (modified), b/other.tf (added)\n",
        "resolved"
    );
    repository.git("-c core.editor=true rebase --continue");
    assert_eq!(verdict(&repository), "");
}

#[test]
fn run_allows_a_rebase_that_stops_at_a_commit() {
    let repository = diverged();
    repository.git("checkout -q other");
    repository.git("-c sequence.editor='sed -i.bak s/^pick/edit/' rebase -i base");
    assert!(repository.path("/.git/rebase-merge").exists());
    assert_eq!(verdict(&repository), "");
    repository.write("/a/main.tf", "# amended\n");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (modified)\n"
    );
}

#[test]
fn run_refuses_a_cherry_pick_and_a_revert_with_conflicts() {
    let repository = diverged();
    stops(&repository, "cherry-pick other");
    let objection = "git-uncommitted: a/main.tf (conflicted), b/other.tf (added)\n";
    assert_eq!(verdict(&repository), objection);
    repository.git("cherry-pick --abort");
    assert_eq!(verdict(&repository), "");
    repository.git("revert --no-commit HEAD");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (modified)\n"
    );
}

#[test]
fn run_allows_a_bisection() {
    let repository = diverged();
    repository.git("bisect start HEAD base");
    assert_eq!(verdict(&repository), "");
}

#[test]
fn run_allows_stashed_changes() {
    let repository = stacks();
    repository.write("/a/main.tf", "# changed\n");
    repository.git("stash -q");
    assert_eq!(verdict(&repository), "");
    repository.git("stash apply -q");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/main.tf (modified)\n"
    );
}

#[test]
fn run_checks_a_detached_head() {
    let repository = diverged();
    repository.git("checkout -q --detach base");
    assert_eq!(verdict(&repository), "");
    repository.write("/a/new.tf", "");
    assert_eq!(verdict(&repository), "git-untracked: a/new.tf\n");
}

#[test]
fn run_checks_a_linked_worktree() {
    let repository = stacks();
    repository.git("worktree add -q ../linked");
    let linked = repository.outside().join("linked");
    let run = |directory: &std::path::Path| {
        let output = repository.orch_with(RUN, |orch| _ = orch.current_dir(directory));
        objections(&output)
    };
    repository.write("/a/new.tf", "");
    assert_eq!(run(&linked), "", "what the main one has does not matter");
    repository.remove("/a/new.tf");
    fs::write(linked.join("b/main.tf"), "# changed\n").unwrap();
    fs::write(linked.join("a/new.tf"), "").unwrap();
    let objection = "git-untracked: a/new.tf\ngit-uncommitted: b/main.tf (modified)\n";
    assert_eq!(run(&linked), objection);
    assert_eq!(verdict(&repository), "");
}

#[test]
fn run_refuses_a_bare_repository_beside_its_worktrees() {
    let repository = stacks();
    let place = repository.outside().join("bare");
    fs::create_dir(&place).unwrap();
    repository.git_in(&place, "clone -q --bare ../project .bare");
    fs::write(place.join(".git"), "gitdir: ./.bare\n").unwrap();
    repository.git_in(&place, "worktree add -q work main");
    let run = |directory| repository.orch_with(RUN, |orch| _ = orch.current_dir(directory));
    assert_eq!(objections(&run(place.join("work"))), "");
    fs::write(place.join("work/a/new.tf"), "").unwrap();
    assert_eq!(
        objections(&run(place.join("work"))),
        "git-untracked: a/new.tf\n"
    );
    fs::write(place.join("stack.tm"), "stack {}\n").unwrap();
    let output = run(place.clone()).to_string();
    let output = output.replace(&*repository.outside().to_string_lossy(), "$OUTSIDE");
    assert_snapshot!(output, @"
    [stderr]
    error: refused: the status of the working tree is unknown (safeguards `git-untracked`, `git-uncommitted`)
      caused by: `$OUTSIDE/bare` is not in the working tree of its git repository
      = help: run `orch` in a working tree of the repository, or disable these safeguards with `--disable-safeguards=git-untracked,git-uncommitted`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
fn run_checks_a_sparse_checkout() {
    let repository = stacks();
    repository.git("sparse-checkout set --no-cone /a/ /root.orch.hcl");
    assert!(!repository.path("/b").exists());
    assert_eq!(verdict(&repository), "");
    repository.write("/a/new.tf", "");
    assert_eq!(verdict(&repository), "git-untracked: a/new.tf\n");
}

#[test]
fn odd_names() {
    let repository = stacks();
    repository.write("/a/with space.tf", "");
    repository.write("/a/quo'te\".tf", "");
    repository.write("/a/new\nline.tf", "");
    repository.write("/a/grün.tf", "");
    assert_eq!(
        verdict(&repository),
        "git-untracked: a/grün.tf, a/new\\nline.tf, a/quo'te\".tf, a/with space.tf\n"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_utf_8() {
    let repository = stacks();
    let name = OsStr::from_bytes(b"x\xff.tf");
    fs::write(repository.path("/a").join(name), "").unwrap();
    assert_eq!(verdict(&repository), "git-untracked: a/x\u{fffd}.tf\n");
    repository.git("add a");
    assert_eq!(
        verdict(&repository),
        "git-uncommitted: a/x\u{fffd}.tf (added)\n"
    );
}

#[test]
fn names_that_git_would_take_for_patterns() {
    let repository = Repository::layout("a");
    repository.write("/[p]*/root.orch.hcl", "orch { root = true }\n");
    repository.write("/[p]*/s/stack.tm", "stack {}\n");
    repository.commit();
    repository.write("/p/x", "");
    assert_eq!(verdict_at(&repository, "/[p]*"), "");
    repository.write("/[p]*/s/x", "");
    assert_eq!(verdict_at(&repository, "/[p]*"), "git-untracked: s/x\n");
}

#[test]
fn settings_of_git_that_hide_files_do_not_matter() {
    let repository = stacks();
    repository.git("config status.showUntrackedFiles no");
    repository.git("config status.short true");
    repository.git("config status.branch true");
    repository.git("config status.showStash true");
    repository.git("config core.quotePath false");
    repository.write("/a/new.tf", "");
    assert_eq!(verdict(&repository), "git-untracked: a/new.tf\n");
}

#[test]
fn safeguards_need_a_repository() {
    let sandbox = Sandbox::layout("a");
    assert_eq!(objections(&sandbox.orch(RUN)), "");
    let output = sandbox.orch("run -q --disable-safeguards=none -- true");
    assert_eq!(objections(&output), "");
}

#[test]
fn safeguards_need_a_first_commit() {
    let sandbox = Sandbox::layout("a");
    sandbox.git_init();
    assert_eq!(objections(&sandbox.orch(RUN)), "");
    let output = sandbox.orch("run -q --disable-safeguards=none -- true");
    assert_eq!(objections(&output), "");
    sandbox.git_at("/").run("add -A");
    assert_eq!(objections(&sandbox.orch(RUN)), "");
}

#[test]
fn run_checks_an_orphan_branch_beside_commits() {
    let repository = Repository::layout("a");
    repository.git("checkout -q --orphan other");
    let objection =
        "git-uncommitted: a/main.tf (added), a/stack.tm (added), root.orch.hcl (added)\n";
    assert_eq!(verdict(&repository), objection);
    repository.git("rm -q -r --cached .");
    let objection = "git-untracked: a/main.tf, a/stack.tm, root.orch.hcl\n";
    assert_eq!(verdict(&repository), objection);
    repository.commit();
    assert_eq!(verdict(&repository), "");
}

#[test]
fn run_checks_only_files_of_the_project() {
    let repository = Repository::layout("a");
    repository.write("/inner/root.orch.hcl", "orch { root = true }\n");
    repository.write("/inner/s/stack.tm", "stack {}\n");
    repository.write("/inner-too/x", "");
    repository.commit();
    repository.write("/a/main.tf", "# changed\n");
    repository.write("/new", "");
    repository.write("/inner-too/y", "");
    assert_eq!(verdict_at(&repository, "/inner/s"), "");
    repository.write("/inner/s/y", "");
    assert_eq!(verdict_at(&repository, "/inner/s"), "git-untracked: s/y\n");
}

#[test]
fn run_of_a_bundled_example_ignores_other_changes() {
    let sandbox = Sandbox::layout("a");
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shop");
    crate::readme::copy(&example, &sandbox.path("/examples/shop"));
    let run = "-C examples/shop run --quiet -- true";
    assert_eq!(objections(&sandbox.orch(run)), "", "without git");
    let repository = Repository::of(sandbox);
    repository.write("/examples/other", "");
    repository.write("/a/stack.tm", "stack {\n tags = [\"x\"]\n}\n");
    assert_eq!(objections(&repository.orch(run)), "");
    repository.write("/examples/shop/new", "");
    assert_eq!(objections(&repository.orch(run)), "git-untracked: new\n");
}

#[test]
fn run_refuses_a_repository_that_git_cannot_read() {
    let repository = stacks();
    repository.write("/.git/index", "garbage");
    assert_unknown(
        &repository.orch(RUN),
        "run `git status` in this directory to see the cause",
    );
    assert_eq!(repository.orch("run -q -X -- true").code(), 0);
    let lifted = "run -q --disable-safeguards=git-untracked,git-uncommitted -- true";
    assert_eq!(repository.orch(lifted).code(), 0);
    assert_unknown(
        &without_git(&repository, "/"),
        "install `git`, or add it to the PATH",
    );
}

#[test]
fn run_refuses_a_lost_head() {
    let repository = stacks();
    repository.write("/.git/refs/heads/main", "1".repeat(40) + "\n");
    repository.git("pack-refs --all --no-prune");
    let output = repository.orch(RUN);
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("bad object 1111"), "{output}");
}

#[test]
fn run_refuses_the_repository_of_another_user() {
    let repository = stacks();
    let output = repository.orch_with(RUN, |orch| {
        orch.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    });
    // Nothing proposes to go on without knowing what HEAD protects.
    assert!(!output.stderr.contains("--disable-safeguards"), "{output}");
    let help = "  = help: if you trust the repository, run `git config --global --add safe.directory $ROOT`\n";
    assert!(output.stderr.contains(help), "{output}");
    assert_eq!(output.code(), 4, "{output}");
}

#[test]
fn run_refuses_an_unreadable_index_without_git() {
    let repository = stacks();
    repository.git("update-index --split-index");
    repository.write("/a/new.tf", "");
    assert_eq!(
        objections(&repository.orch(RUN)),
        "git-untracked: a/new.tf\n"
    );
    assert_unknown(
        &without_git(&repository, "/"),
        "install `git`, or add it to the PATH",
    );
}

#[test]
fn another_index_or_repository_in_the_environment_does_not_count() {
    let repository = stacks();
    let output = repository.orch_with(RUN, |orch| {
        orch.env("GIT_DIR", "/nowhere")
            .env("GIT_INDEX_FILE", "/nowhere");
    });
    assert_eq!(objections(&output), "");
}
