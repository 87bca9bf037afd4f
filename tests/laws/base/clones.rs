//! The base in every kind of clone, without CI.

#![expect(clippy::too_many_lines, reason = "a table is as long as it has rows")]

use insta::assert_snapshot;

use super::{ROW, Row, table};

#[test]
fn on_a_branch_it_is_the_merge_base_and_on_the_default_branch_the_first_parent() {
    let rows = [
        ("a branch", "clone --branch=feature"),
        (
            "a branch that has merged the default branch",
            "clone --branch=feature\nmerge -q -m merge origin/main",
        ),
        (
            "a branch without commits of its own",
            "clone\ncheckout -q -b new",
        ),
        (
            "a branch behind the default branch",
            "clone\ncheckout -q -b old HEAD~1",
        ),
        ("the default branch at the remote's tip", "clone"),
        (
            "the default branch at a merge",
            "clone --branch=pull\nremote set-head origin pull",
        ),
        (
            "the default branch ahead of the remote",
            "clone\ncommit -q --allow-empty -m x",
        ),
        (
            "the default branch behind the remote",
            "clone\nreset -q --hard HEAD~1",
        ),
        ("HEAD detached at the tip", "clone\ncheckout -q --detach"),
        (
            "HEAD detached elsewhere",
            "clone\ncheckout -q --detach origin/feature",
        ),
        (
            "HEAD detached at a commit that the default branch has left behind",
            "clone --branch=next\nremote set-head origin next\ncheckout -q --detach HEAD~1",
        ),
        (
            "HEAD detached at the first commit of the default branch",
            "clone\ncheckout -q --detach HEAD~1",
        ),
        (
            "HEAD detached at a commit that was merged",
            "clone --branch=pull\nremote set-head origin pull\ncheckout -q --detach origin/feature",
        ),
        (
            "nothing in common with the default branch",
            "clone --branch=orphan",
        ),
        (
            "the first commit",
            "clone\nreset -q --hard v1\nupdate-ref refs/remotes/origin/main HEAD",
        ),
        ("no commit", "init"),
        (
            "a clone that ends at the merge base",
            "clone --depth=2 --no-single-branch --branch=feature",
        ),
        ("a clone that lacks the first parent", "clone --depth=1"),
        (
            "a clone that lacks the merge base",
            "clone --depth=1 --no-single-branch --branch=feature",
        ),
    ];
    let rows = rows.map(|(what, clone)| Row { what, clone, ..ROW });
    assert_snapshot!(table(&rows), @"
    a branch
      base <start>, merge-base: merge base of HEAD and origin/main
    a branch that has merged the default branch
      base <second>, merge-base: merge base of HEAD and origin/main
    a branch without commits of its own
      base <second>, merge-base: merge base of HEAD and origin/main, which is HEAD itself
    a branch behind the default branch
      base <start>, merge-base: merge base of HEAD and origin/main, which is HEAD itself
    the default branch at the remote's tip
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    the default branch at a merge
      base <second>, first-parent: first parent of HEAD, which is at origin/pull
    the default branch ahead of the remote
      base <second>, merge-base: merge base of HEAD and origin/main
    the default branch behind the remote
      base <start>, merge-base: merge base of HEAD and origin/main, which is HEAD itself
    HEAD detached at the tip
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    HEAD detached elsewhere
      base <start>, merge-base: merge base of HEAD and origin/main
    HEAD detached at a commit that the default branch has left behind
      base <second>, first-parent: first parent of HEAD, a commit of origin/next
    HEAD detached at the first commit of the default branch
      HEAD is the first commit of the repository and has no parent to compare with
      remove `--changed` to select all stacks, or name a base with `--base REV`
    HEAD detached at a commit that was merged
      HEAD (<feature>) is not on a branch, and origin/pull has merged it
      check out a branch, or name the base with `--base REV`
    nothing in common with the default branch
      HEAD and origin/main have no common commit
      name a base with `--base REV`
    the first commit
      HEAD is the first commit of the repository and has no parent to compare with
      remove `--changed` to select all stacks, or name a base with `--base REV`
    no commit
      the repository has no commit yet to compare with
      commit first, or remove `--changed` to select all stacks
    a clone that ends at the merge base
      base <start>, merge-base: merge base of HEAD and origin/main, in a shallow clone
    a clone that lacks the first parent
      commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main
      run git fetch --depth=1 origin <start>
      base <start>, first-parent: first parent of HEAD, which is at origin/main, in a shallow clone
    a clone that lacks the merge base
      HEAD and origin/main have no common commit in this shallow clone
      run git fetch --unshallow origin <feature> <second>
      base <start>, merge-base: merge base of HEAD and origin/main
    ");
}

#[test]
fn the_default_branch_is_that_of_the_remote_that_counts() {
    let rows = [
        ("no remote, on main", "clone\nremote remove origin", ""),
        (
            "no remote, on a branch",
            "clone --branch=feature\nbranch main origin/main\nremote remove origin",
            "",
        ),
        (
            "no remote, a single branch",
            "clone\nremote remove origin\nbranch -q -m main trunk",
            "",
        ),
        (
            "no remote, no usual branch",
            "clone\nbranch feature origin/feature\nremote remove origin\nbranch -q -m main trunk",
            "",
        ),
        (
            "no remote, a branch that git is told of",
            "clone\nbranch feature origin/feature\nremote remove origin\nbranch -q -m main trunk\nconfig init.defaultBranch trunk",
            "",
        ),
        ("a single remote", "clone --origin=hub", ""),
        (
            "origin among several",
            "clone --origin=hub\nremote add origin $URL\nfetch -q origin",
            "",
        ),
        (
            "several, and the branch follows one",
            "clone --origin=hub\nremote add fork $URL",
            "",
        ),
        (
            "several, and the branch follows none",
            "clone --origin=hub\nremote add fork $URL\ncheckout -q --no-track -b new",
            "",
        ),
        (
            "several, and one is configured",
            "clone --origin=hub --branch=fix\nremote add origin $URL",
            "hub next",
        ),
        (
            "a configured remote that does not exist",
            "clone",
            "hub main",
        ),
        (
            "a configured remote that looks like an option",
            "clone",
            "--upload-pack=x main",
        ),
        (
            "a configured branch that is not in the clone",
            "clone --single-branch",
            "origin next",
        ),
        (
            "a configured branch that cannot be one",
            "clone",
            "origin a..b",
        ),
        (
            "a configured branch that looks like an option",
            "clone",
            "origin --all",
        ),
        (
            "the HEAD of the remote",
            "clone --branch=fix\nremote set-head origin next",
            "",
        ),
        (
            "a remote whose HEAD was never seen",
            "init\nfetch -q origin\ncheckout -q feature",
            "",
        ),
        (
            "a remote without main",
            "init\nfetch -q origin\ncheckout -q feature\nupdate-ref -d refs/remotes/origin/main\nupdate-ref refs/remotes/origin/master feature~1",
            "",
        ),
        (
            "a branch that was not cloned",
            "clone --single-branch --branch=feature",
            "",
        ),
    ];
    let rows = rows.map(|(what, clone, configured)| Row {
        what,
        clone,
        configured,
        ..ROW
    });
    assert_snapshot!(table(&rows), @"
    no remote, on main
      base <start>, first-parent: first parent of HEAD, which is at main
    no remote, on a branch
      base <start>, merge-base: merge base of HEAD and main
    no remote, a single branch
      base <start>, first-parent: first parent of HEAD, which is at trunk
    no remote, no usual branch
      the default branch is unknown: there is neither a remote nor a branch `main` or `master`
      set `config.git.default_branch`, or name a base with `--base REV`
    no remote, a branch that git is told of
      base <start>, first-parent: first parent of HEAD, which is at trunk
    a single remote
      base <start>, first-parent: first parent of HEAD, which is at hub/main
    origin among several
      base <start>, first-parent: first parent of HEAD, which is at origin/main
    several, and the branch follows one
      base <start>, first-parent: first parent of HEAD, which is at hub/main
    several, and the branch follows none
      the repository has several remotes, `fork`, `hub`
      choose one: `config.git.default_remote` in the configuration
    several, and one is configured
      base <second>, merge-base: merge base of HEAD and hub/next
    a configured remote that does not exist
      the repository has no remote `hub`, which `config.git.default_remote` names
      run `git remote add hub URL`, or correct the configuration
    a configured remote that looks like an option
      the repository has no remote `--upload-pack=x`, which `config.git.default_remote` names
      run `git remote add '--upload-pack=x' URL`, or correct the configuration
    a configured branch that is not in the clone
      the default branch `origin/next` is not in this clone
      run git fetch origin +refs/heads/next:refs/remotes/origin/next
      base <second>, merge-base: merge base of HEAD and origin/next, which is HEAD itself
    a configured branch that cannot be one
      `config.git.default_branch` is `a..b`, which cannot be a branch
      correct the configuration
    a configured branch that looks like an option
      `config.git.default_branch` is `--all`, which cannot be a branch
      correct the configuration
    the HEAD of the remote
      base <second>, merge-base: merge base of HEAD and origin/next
    a remote whose HEAD was never seen
      base <start>, merge-base: merge base of HEAD and origin/main
    a remote without main
      base <start>, merge-base: merge base of HEAD and origin/master
    a branch that was not cloned
      the default branch `origin/main` is not in this clone
      run git fetch origin +refs/heads/main:refs/remotes/origin/main
      base <start>, merge-base: merge base of HEAD and origin/main
    ");
}

#[test]
fn a_named_base_is_that_commit() {
    let whole = "clone";
    let shallow = "clone --depth=1";
    let rows = [
        ("a branch of the remote", whole, "origin/feature"),
        ("HEAD", whole, "HEAD"),
        ("a commit", whole, "<start>"),
        ("an abbreviation", whole, "<start>/7"),
        ("an annotated tag", whole, "v1"),
        ("a branch that only the remote has", whole, "feature"),
        (
            "a branch of the remote that was not cloned",
            "clone --single-branch",
            "origin/feature",
        ),
        ("a tag that was not cloned", "clone --no-tags", "v1"),
        (
            "nothing, without a remote",
            "clone\nremote remove origin",
            "nonsense",
        ),
        ("an option", whole, "--all"),
        (
            "an option as a branch of the remote",
            whole,
            "origin/--upload-pack=x",
        ),
        ("no name of a branch", whole, "origin/a b"),
        ("a range", whole, "main..origin/feature"),
        ("a symmetric range", whole, "main...origin/feature"),
        ("a range as a branch of the remote", whole, "origin/a..b"),
        ("a commit to leave out", whole, "^main"),
        ("all parents", whole, "HEAD^@"),
        ("a commit without its parents", whole, "HEAD^!"),
        ("a tree", whole, "HEAD:a"),
        ("an ancestor before the first", whole, "HEAD~99"),
        ("shallow: a branch", shallow, "feature"),
        ("shallow: a tag", shallow, "v1"),
        (
            "shallow: a branch that is there",
            "clone --depth=1 --no-single-branch",
            "origin/feature",
        ),
        ("shallow: HEAD", shallow, "HEAD"),
        ("shallow: a commit", shallow, "<start>"),
        ("shallow: an abbreviation", shallow, "<start>/7"),
        ("shallow: an ancestor of HEAD", shallow, "HEAD~1"),
        (
            "shallow: an ancestor of a branch",
            "clone --depth=1 --no-single-branch",
            "origin/feature~1",
        ),
        (
            "shallow: an ancestor of what was never pushed",
            "clone --depth=1\ncommit -q --allow-empty -m x",
            "HEAD~2",
        ),
    ];
    let rows = rows.map(|(what, clone, revision)| Row {
        what,
        clone,
        revision,
        ..ROW
    });
    assert_snapshot!(table(&rows), @"
    a branch of the remote
      base <feature>, named: --base origin/feature
    HEAD
      base <second>, named: --base HEAD, which is HEAD itself
    a commit
      base <start>, named: --base <start>
    an abbreviation
      base <start>, named: --base <start>
    an annotated tag
      base <start>, named: --base v1
    a branch that only the remote has
      base <feature>, named: --base feature, which is origin/feature
    a branch of the remote that was not cloned
      there is no revision `origin/feature`
      run git fetch origin +refs/heads/feature:refs/remotes/origin/feature
      base <feature>, named: --base origin/feature
    a tag that was not cloned
      there is no revision `v1`
      run git fetch --tags origin
      base <start>, named: --base v1
    nothing, without a remote
      there is no revision `nonsense`
      name a commit, branch or tag that exists
    an option
      there is no revision `--all`
      name a commit, branch or tag that exists
    an option as a branch of the remote
      there is no revision `origin/--upload-pack=x`
      name a commit, branch or tag that exists
    no name of a branch
      there is no revision `origin/a b`
      name a commit, branch or tag that exists
    a range
      there is no revision `main..origin/feature`
      name a commit, branch or tag that exists
    a symmetric range
      there is no revision `main...origin/feature`
      name a commit, branch or tag that exists
    a range as a branch of the remote
      there is no revision `origin/a..b`
      name a commit, branch or tag that exists
    a commit to leave out
      there is no revision `^main`
      name a commit, branch or tag that exists
    all parents
      there is no revision `HEAD^@`
      name a commit, branch or tag that exists
    a commit without its parents
      there is no revision `HEAD^!`
      name a commit, branch or tag that exists
    a tree
      there is no revision `HEAD:a`
      name a commit, branch or tag that exists
    an ancestor before the first
      there is no revision `HEAD~99`
      name a commit, branch or tag that exists
    shallow: a branch
      there is no revision `feature` in this shallow clone
      run git fetch --depth=1 origin +refs/heads/feature:refs/remotes/origin/feature
      base <feature>, named: --base feature, which is origin/feature, in a shallow clone
    shallow: a tag
      there is no revision `v1` in this shallow clone
      run git fetch --depth=1 origin tag v1
      base <start>, named: --base v1, in a shallow clone
    shallow: a branch that is there
      base <feature>, named: --base origin/feature, in a shallow clone
    shallow: HEAD
      base <second>, named: --base HEAD, which is HEAD itself, in a shallow clone
    shallow: a commit
      there is no revision `<start>` in this shallow clone
      run git fetch --depth=1 origin <start>
      base <start>, named: --base <start>, in a shallow clone
    shallow: an abbreviation
      there is no revision `<start>` in this shallow clone
      run git fetch --unshallow origin <second>
      base <start>, named: --base <start>
    shallow: an ancestor of HEAD
      there is no revision `HEAD~1` in this shallow clone
      run git fetch --unshallow origin <second>
      base <start>, named: --base HEAD~1
    shallow: an ancestor of a branch
      there is no revision `origin/feature~1` in this shallow clone
      run git fetch --unshallow origin <feature>
      base <start>, named: --base origin/feature~1
    shallow: an ancestor of what was never pushed
      there is no revision `HEAD~2` in this shallow clone
      run git fetch --unshallow origin <second>
      base <start>, named: --base HEAD~2
    ");
}
