//! What git proves about stacks that are recorded and not here. Only a deletion that somebody committed
//! on purpose is evidence; each accident that looks like one must not be.

use std::fs;

use insta::{allow_duplicates, assert_snapshot};
use serde_json::{Value, json};

use crate::support::{Repository, Sandbox};

const STATE: &str = r#"orch {
  config {
    state {
      project = "acme"
      backend "local" {
        path = "../shared/acme"
      }
    }
  }
}
"#;

/// A repository with these stacks, all of which are recorded as applied at HEAD.
fn adopted(stacks: &str) -> Repository {
    let sandbox = Repository::prepare(stacks);
    sandbox.write("/state.orch.hcl", STATE);
    adopt(Repository::of(sandbox))
}

/// Puts all recorded stacks.
fn adopt(repository: Repository) -> Repository {
    assert_eq!(repository.orch("state init").code(), 0);
    let adopted = repository.orch("state adopt --no-verify");
    assert_eq!(adopted.code(), 0, "{adopted}");
    repository
}

/// Commits everything, with a message that says what it is.
#[track_caller]
fn commit(repository: &Repository, message: &str) {
    repository.git("add -A");
    repository.git(&format!("commit -q --allow-empty -m '{message}'"));
}

/// Removes a directory and commits that.
#[track_caller]
fn remove(repository: &Repository, directory: &str) {
    repository.git(&format!("rm -q -r {directory}"));
    commit(repository, &format!("without {directory}"));
}

/// What git proves about each stack that is not here, as libgit2 tells it: the message of the commit that
/// removed it, or the kind of obstacle.
fn by_library(repository: &Repository) -> String {
    told(repository, "")
}

fn told(repository: &Repository, flags: &str) -> String {
    let list = repository.orch(&format!(
        "list --status removed,absent --format json {flags}"
    ));
    assert_eq!(list.code(), 0, "{list}");
    let missing = list.json()["missing"].clone();
    let line = |stack: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (path, status) = (text(&stack["path"]), text(&stack["status"]));
        let evidence = &stack["evidence"];
        let why = match (&evidence["commit"], &evidence["removed_by"]) {
            (Value::String(commit), _) => {
                let message = repository.git(&format!("log -1 --format=%s {commit}"));
                format!("in `{}`", message.trim())
            }
            (_, Value::String(by)) => format!("by {by}"),
            _ => text(&stack["why"]["kind"]),
        };
        format!("{path} {status} {why}")
    };
    let lines: Vec<String> = missing.as_array().unwrap().iter().map(line).collect();
    lines.join("\n")
}

/// The same, after making sure that the `git` program tells nothing else: it is asked where libgit2 cannot
/// read the repository.
#[track_caller]
fn evidence(repository: &Repository) -> String {
    let by_library = by_library(repository);
    let place = repository.git("rev-parse --git-common-dir");
    let config = repository.path("/").join(place.trim()).join("config");
    let text = fs::read_to_string(&config).unwrap();
    let unreadable = text.replace("formatversion = 0", "formatversion = 1")
        + "[extensions]\n\tpartialClone = nowhere\n";
    assert!(unreadable.contains("formatversion = 1"), "{text}");
    fs::write(&config, unreadable).unwrap();
    let by_program = told(repository, "");
    fs::write(config, text).unwrap();
    assert_eq!(by_library, by_program, "left: libgit2, right: git");
    by_library
}

/// The line about one stack in the list for people, and what `why` adds.
fn words(repository: &Repository, stack: &str) -> String {
    let list = repository.orch("list --status removed,absent --why").stdout;
    let line = list
        .lines()
        .find(|line| line.split(' ').next() == Some(stack));
    let why = repository.orch(&format!("why '/{stack}'"));
    assert_eq!(why.code(), 0, "{why}");
    let way_out = why.stdout.lines().find(|line| line.starts_with("fix "));
    let lines: Vec<&str> = line.into_iter().chain(way_out).collect();
    lines.join("\n")
}

/// Changes the document.
fn change_document(repository: &Repository, change: impl FnOnce(&mut Value)) {
    let place = repository.outside().join("shared/acme.json");
    let mut document = serde_json::from_str(&fs::read_to_string(&place).unwrap()).unwrap();
    change(&mut document);
    fs::write(place, document.to_string()).unwrap();
}

/// A clone of a repository that sees the same document.
fn clone(origin: &Repository, arguments: &str) -> Repository {
    origin.git("config uploadpack.allowFilter true");
    origin.git("config uploadpack.allowAnySHA1InWant true");
    let place = origin.path("/");
    let url = shell_words::quote(place.to_str().expect("a path that is text"));
    let sandbox = Sandbox::new("");
    fs::remove_dir_all(sandbox.path("/")).unwrap();
    let clone = Repository::clone(sandbox, &format!("{arguments} file://{url}"));
    let shared = clone.outside().join("shared");
    fs::create_dir_all(&shared).unwrap();
    fs::copy(
        origin.outside().join("shared/acme.json"),
        shared.join("acme.json"),
    )
    .unwrap();
    clone
}

#[test]
fn removal_is_proven_by_a_committed_deletion() {
    let repository = adopted("a\nb\nc");
    remove(&repository, "a");
    repository.write("/b/other", "");
    commit(&repository, "other");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
    let list = repository.orch("list --status removed,absent --why");
    let commit = repository.git("rev-parse --short=7 HEAD~1");
    assert_eq!(list.stdout, format!("a  # removed in {}\n", commit.trim()));
    // Nothing else is needed than what is committed.
    repository.write("/a/main.tf", "# left over\n");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
}

#[test]
fn removal_proofs_of_several_stacks_are_found_at_once() {
    let repository = adopted("a\nb\nc\nd/e\nd/f");
    remove(&repository, "a");
    repository.write("/b/main.tf", "# changed\n");
    repository.write("/d/e/main.tf", "# changed\n");
    commit(&repository, "changed");
    let adopted = repository.orch("state adopt --no-verify");
    assert_eq!(adopted.code(), 0, "{adopted}");
    remove(&repository, "b");
    remove(&repository, "d");
    assert_eq!(
        evidence(&repository),
        "/a removed in `without a`
/b removed in `without b`
/d/e removed in `without d`
/d/f removed in `without d`"
    );
}

#[test]
fn removal_is_not_proven_by_an_uncommitted_deletion() {
    let repository = adopted("a\nb");
    repository.git("rm -q -r a");
    assert_eq!(evidence(&repository), "/a absent not-committed");
    assert_snapshot!(words(&repository, "a"), @"
    a  # absent: its deletion is not committed
    fix      commit the deletion, or restore the files
    ");
    repository.git("reset -q");
    assert_eq!(evidence(&repository), "/a absent not-committed");
}

#[test]
fn removal_is_not_proven_behind_the_default_branch() {
    let repository = Repository::of({
        let sandbox = Repository::prepare("b\nc");
        sandbox.write("/state.orch.hcl", STATE);
        sandbox
    });
    repository.write("/a/stack.tm", "stack {\n}\n");
    commit(&repository, "with a");
    let repository = adopt(repository);
    remove(&repository, "b");
    commit(&repository, "later");
    let clone = clone(&repository, "");
    assert_eq!(evidence(&clone), "/b removed in `without b`");
    clone.git("checkout -q base");
    assert_eq!(evidence(&clone), "/a absent branch-behind");
    let head = clone.git("rev-parse --short=7 origin/main~2");
    assert_snapshot!(words(&clone, "a").replace(head.trim(), "COMMIT"), @"
    a  # absent: HEAD is behind origin/main: it lacks the applied commit COMMIT
    fix      merge or rebase onto origin/main
    ");
    // A stack that is on both sides is neither.
    clone.git("checkout -q -b feature base");
    clone.git("rm -q -r b");
    commit(&clone, "b goes here as well");
    assert_eq!(
        evidence(&clone),
        "/a absent branch-behind\n/b absent branch-behind"
    );
}

#[test]
fn removal_is_not_proven_by_another_history() {
    let repository = adopted("a\nb");
    repository.git("checkout -q --orphan other");
    repository.git("rm -q -f -r a");
    commit(&repository, "another history");
    assert_eq!(evidence(&repository), "/a absent other-history");
    // A commit without parents deletes nothing, even once the histories are joined.
    repository.git("merge -q --allow-unrelated-histories -s ours main");
    assert_eq!(evidence(&repository), "/a absent never-deleted");
}

#[test]
fn removal_proof_works_with_a_detached_head() {
    let repository = adopted("a\nb");
    remove(&repository, "a");
    repository.git("checkout -q --detach");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
    repository.git("checkout -q base");
    assert_eq!(evidence(&repository), "");
}

#[test]
fn removal_is_proven_after_a_squash_or_rebase() {
    let repository = adopted("a\nb\nc");
    repository.git("checkout -q -b squashed");
    repository.git("rm -q -r a/main.tf");
    commit(&repository, "first half");
    remove(&repository, "a");
    repository.git("checkout -q -b rebased main");
    remove(&repository, "b");
    repository.git("checkout -q main");
    repository.write("/c/main.tf", "# changed\n");
    commit(&repository, "meanwhile");
    repository.git("merge -q --squash squashed");
    commit(&repository, "squashed");
    repository.git("checkout -q rebased");
    repository.git("rebase -q main");
    repository.git("checkout -q main");
    repository.git("merge -q --ff-only rebased");
    repository.git("branch -q -D squashed rebased");
    assert_eq!(
        evidence(&repository),
        "/a removed in `squashed`\n/b removed in `without b`"
    );
}

#[test]
fn removal_is_proven_by_a_merge_that_deletes_from_both_sides() {
    let repository = adopted("a\nb");
    repository.git("checkout -q -b other");
    commit(&repository, "other");
    repository.git("checkout -q main");
    commit(&repository, "main");
    repository.git("merge -q --no-ff --no-commit other");
    repository.git("rm -q -r a");
    commit(&repository, "merge");
    assert_eq!(evidence(&repository), "/a removed in `merge`");
}

#[test]
fn removal_is_not_proven_by_a_merge_that_loses_a_stack() {
    let repository = adopted("b");
    repository.git("checkout -q -b old");
    commit(&repository, "old");
    repository.git("checkout -q main");
    repository.write("/a/stack.tm", "stack {\n}\n");
    commit(&repository, "with a");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    commit(&repository, "main");
    repository.git("checkout -q old");
    repository.git("merge -q --no-commit main");
    repository.git("rm -q -f -r a");
    commit(&repository, "evil");
    assert_eq!(evidence(&repository), "/a absent never-deleted");
    assert_snapshot!(words(&repository, "a"), @"
    a  # absent: no commit since f18422c deletes it (a merge may have lost it)
    fix      restore it and delete it in a commit of its own; if nothing of it is left, run `orch state forget`
    ");
}

#[test]
fn removal_is_not_proven_by_a_merge_with_strategy_ours() {
    let repository = adopted("b");
    repository.git("checkout -q -b old");
    commit(&repository, "old");
    repository.git("checkout -q main");
    repository.write("/a/stack.tm", "stack {\n}\n");
    commit(&repository, "with a");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    repository.git("checkout -q old");
    repository.git("merge -q -s ours main");
    assert_eq!(evidence(&repository), "/a absent never-deleted");
}

#[test]
fn removal_is_proven_by_the_deletion_rather_than_its_merge() {
    let repository = adopted("a\nb");
    repository.git("checkout -q -b other");
    remove(&repository, "a");
    repository.git("checkout -q main");
    commit(&repository, "main");
    repository.git("merge -q --no-ff -m merged other");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
}

#[test]
fn removal_is_not_proven_after_a_revert() {
    let repository = adopted("a\nb");
    repository.git("checkout -q -b old");
    commit(&repository, "old");
    repository.git("checkout -q main");
    remove(&repository, "a");
    repository.git("revert --no-edit HEAD");
    assert_eq!(evidence(&repository), "");
    // Then a merge loses it: what was reverted is no evidence.
    repository.git("checkout -q -b lacking HEAD~1");
    commit(&repository, "lacking");
    repository.git("merge -q -s ours main");
    assert_eq!(evidence(&repository), "/a absent came-back");
    let words = words(&repository, "a");
    assert!(words.contains("deleted it, but"), "{words}");
    // Whoever deletes it again does so on purpose.
    repository.git("checkout -q main");
    remove(&repository, "a");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
}

#[test]
fn removal_is_not_proven_by_a_renamed_stack_file() {
    let repository = adopted("a\nb");
    repository.git("mv a/stack.tm a/s.tm.hcl");
    commit(&repository, "renamed");
    assert_eq!(evidence(&repository), "");
    repository.git("mv a/s.tm.hcl a/s.txt");
    commit(&repository, "renamed again");
    assert_eq!(evidence(&repository), "/a absent code-still-there");
}

#[test]
fn removal_is_not_proven_by_a_moved_directory() {
    let repository = adopted("a\nb");
    repository.git("mv a z");
    commit(&repository, "moved");
    assert_eq!(evidence(&repository), "/a absent looks-moved");
    assert_snapshot!(words(&repository, "a"), @"
    a  # absent: it looks moved to `/z`
    fix      if it was moved, add this to an `.orch.hcl` file:
    ");
    // Even if it is changed a little, and below another stack.
    let repository = adopted("a\nb");
    let lines: Vec<String> = (0..20).map(|line| format!("# {line}\n")).collect();
    repository.write("/a/main.tf", lines.concat());
    commit(&repository, "longer");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    repository.git("mv a b/z");
    repository.write("/b/z/main.tf", lines.concat() + "# more\n");
    repository.write(
        "/b/z/stack.tm",
        "stack {\n  name = \"z\"\n  tags = [\"x\"]\n}\n",
    );
    commit(&repository, "moved");
    assert_eq!(evidence(&repository), "/a absent looks-moved");
    // Once that is recorded, it is a stack of its own if the record says where the first one keeps its state.
    let adopted = repository.orch("state adopt --no-verify --match b/z");
    assert_eq!(adopted.code(), 0);
    assert_eq!(evidence(&repository), "/a absent looks-moved");
    change_document(&repository, |document| {
        document["stacks"]["/a"]["backend"] = json!("s3 acme/a");
    });
    assert_eq!(evidence(&repository), "/a removed in `moved`");
}

#[test]
fn removal_is_not_proven_by_a_moved_and_changed_directory() {
    let repository = adopted("a\nb");
    repository.git("mv a z");
    commit(&repository, "moved");
    let other: Vec<String> = (0..40).map(|line| format!("# {line} of z")).collect();
    let other = other.join("\n");
    repository.write("/z/main.tf", &other);
    repository.write(
        "/z/stack.tm",
        format!("stack {{\n  name = \"z\"\n}}\n{other}"),
    );
    commit(&repository, "nothing is left as it was");
    assert_eq!(evidence(&repository), "/a absent looks-moved");
    // So does a directory that moves into itself.
    let repository = adopted("a\nb");
    repository.mkdir("z");
    repository.git("mv a z/inner");
    repository.git("mv z a");
    commit(&repository, "moved");
    assert_eq!(evidence(&repository), "/a absent looks-moved");
}

#[test]
fn removal_is_not_proven_by_a_move_to_a_stack_never_applied() {
    let repository = adopted("a\nb");
    repository.git("mv a z");
    commit(&repository, "moved");
    assert_eq!(
        repository.orch("state adopt --no-verify --match z").code(),
        0
    );
    // An apply of it has failed: nothing is known to have been made.
    change_document(&repository, |document| {
        document["stacks"]["/z"]["applied"] = Value::Null;
        document["stacks"]["/z"]["last"]["outcome"] = json!("failed");
    });
    assert_eq!(evidence(&repository), "/a absent looks-moved");
}

#[test]
fn state_entry_follows_a_moved_id() {
    let repository = adopted("b");
    repository.write("/a/stack.tm", "stack {\n  id = \"one\"\n}\n");
    commit(&repository, "with a");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    repository.git("mv a z");
    commit(&repository, "moved");
    assert_eq!(evidence(&repository), "");
    // Somebody else at the old path is not the same stack, and its code says nothing about the first.
    repository.git("mv z a");
    repository.write("/a/stack.tm", "stack {\n  id = \"two\"\n}\n");
    commit(&repository, "another");
    assert_eq!(evidence(&repository), "/a absent code-still-there");
}

#[test]
fn removal_is_not_proven_in_a_shallow_clone_without_the_commits() {
    let repository = adopted("a\nb");
    commit(&repository, "other");
    remove(&repository, "a");
    commit(&repository, "last");
    let shallow = clone(&repository, "--depth 1");
    assert_eq!(evidence(&shallow), "/a absent not-in-clone");
    assert_snapshot!(words(&shallow, "a"), @"
    a  # absent: the applied commit 6759999 is not in this shallow clone
    fix      run `git fetch --unshallow origin`, or add `--fetch`
    ");
    // It has the commit that was applied, but not what lies between.
    let shallow = clone(&repository, "--depth 1");
    shallow.git("fetch -q --depth=1 origin base");
    assert_eq!(evidence(&shallow), "/a absent unconnected");
    let fetched = shallow.orch("list --status removed --fetch");
    assert_eq!((fetched.code(), &*fetched.stdout), (0, "a\n"), "{fetched}");
    let note = "note: running `git fetch --unshallow origin`\n";
    assert_eq!(fetched.stderr.matches(note).count(), 1, "{fetched}");
    assert_eq!(evidence(&shallow), "/a removed in `without a`");
    // All that matters is there.
    let shallow = clone(&repository, "--depth 4");
    assert_eq!(evidence(&shallow), "/a removed in `without a`");
}

#[test]
fn removal_proof_fetches_missing_commits_with_fetch() {
    let repository = adopted("a\nb");
    let clone = clone(&repository, "");
    repository.git("checkout -q -b feature");
    commit(&repository, "elsewhere");
    let elsewhere = repository.git("rev-parse HEAD").trim().to_owned();
    repository.git("checkout -q main");
    change_document(&clone, |document| {
        document["stacks"]["/a"]["applied"]["seen"] = json!(elsewhere);
    });
    remove(&clone, "a");
    assert_eq!(evidence(&clone), "/a absent not-in-clone");
    let way_out = words(&clone, "a");
    let fetch = format!("run `git fetch origin {elsewhere}`, or add `--fetch`");
    assert!(way_out.contains(&fetch), "{way_out}");
    assert_eq!(told(&clone, "--fetch"), "/a absent other-history");
    // What nobody has is not found, and that is all.
    change_document(&clone, |document| {
        document["stacks"]["/a"]["applied"]["seen"] =
            json!("1234567890123456789012345678901234567890");
    });
    let fetched = clone.orch("list --status absent --fetch");
    assert_eq!((fetched.code(), &*fetched.stdout), (0, "a\n"), "{fetched}");
    let why = clone.orch("why /a --fetch");
    let lost = "absent: the applied commit 1234567 is neither in this clone nor on origin\n";
    assert!(why.stdout.contains(lost), "{why}");
    assert_snapshot!(clone.orch("list --fetch"), @"
    [stderr]
    error: `--fetch` has no effect without `--changed` or `--status`; add `--changed` or `--status`
    [exit status 64]
    ");
}

#[test]
fn removal_proof_works_in_a_partial_clone() {
    for filter in ["blob:none", "tree:0"] {
        let repository = adopted("a\nb\nc/d");
        remove(&repository, "a");
        repository.write("/c/d/main.tf", "# changed\n");
        commit(&repository, "last");
        let clone = clone(&repository, &format!("--filter={filter}"));
        assert_eq!(by_library(&clone), "/a removed in `without a`");
        clone.git("rm -q -r c/d");
        assert_eq!(
            by_library(&clone),
            "/a removed in `without a`\n/c/d absent not-committed"
        );
    }
}

#[test]
fn removal_is_not_proven_by_a_sparse_checkout() {
    let repository = adopted("a\nb\nc");
    remove(&repository, "c");
    repository.git("sparse-checkout set --no-cone /b /state.orch.hcl /root.orch.hcl");
    assert!(!repository.path("/a").exists());
    assert_eq!(
        evidence(&repository),
        "/a absent sparse-checkout\n/c removed in `without c`"
    );
    assert_snapshot!(words(&repository, "a"), @"
    a  # absent: the sparse checkout leaves it out: HEAD has `a/stack.tm`
    fix      check it out with `git sparse-checkout add a`
    ");
}

#[test]
fn removal_is_not_proven_while_the_code_exists() {
    let repository = adopted("a\nb\nc");
    repository.git("rm -q a/stack.tm");
    commit(&repository, "only the block");
    repository.write("/c/.tmskip", "");
    commit(&repository, "hidden");
    assert_eq!(
        evidence(&repository),
        "/a absent code-still-there\n/c absent code-still-there"
    );
    assert_snapshot!(words(&repository, "a"), @"
    a  # absent: its code is still there: HEAD has `a/main.tf`
    fix      delete the rest of its directory and commit that, or restore its `stack` block
    ");
    assert_snapshot!(words(&repository, "c"), @"
    c  # absent: its code is still there: HEAD has `c/stack.tm`
    fix      delete the rest of its directory and commit that, or restore its `stack` block
    ");
    // The rest goes later: the commit that deleted the block is what removed the stack.
    remove(&repository, "a");
    assert_eq!(
        evidence(&repository),
        "/a removed in `only the block`\n/c absent code-still-there"
    );
}

#[cfg(unix)]
#[test]
fn removal_is_not_proven_behind_a_link_or_submodule() {
    let repository = adopted("a\nb\nc/d\nz");
    repository.git("mv a elsewhere");
    repository.git("rm -q -f elsewhere/stack.tm");
    repository.git("rm -q -r c");
    repository.symlink("elsewhere", "/a");
    repository.symlink("z", "/c");
    commit(&repository, "links");
    assert_eq!(
        evidence(&repository),
        "/a absent code-still-there\n/c/d absent code-still-there"
    );
    let repository = adopted("a\nb");
    let other = Repository::layout("x");
    repository.git("rm -q -r a");
    let place = other.path("/");
    let place = shell_words::quote(place.to_str().unwrap()).into_owned();
    repository.git(&format!("submodule add -q {place} a"));
    commit(&repository, "a submodule");
    assert_eq!(evidence(&repository), "/a absent code-still-there");
}

#[test]
fn nested_stacks_count_for_themselves() {
    let repository = adopted("a\na/b\nc\nc/d");
    remove(&repository, "a/b");
    repository.git("rm -q c/stack.tm c/main.tf");
    commit(&repository, "without c");
    assert_eq!(
        evidence(&repository),
        "/a/b removed in `without a/b`\n/c removed in `without c`"
    );
    // A file of the outer one beside the inner one is still there.
    repository.write("/c/modules/x.tf", "");
    commit(&repository, "a file");
    assert_eq!(
        evidence(&repository),
        "/a/b removed in `without a/b`\n/c absent code-still-there"
    );
    // What hides the inner one makes its files those of the outer one.
    repository.git("rm -q c/modules/x.tf");
    repository.write("/c/d/.tmskip", "");
    commit(&repository, "hidden");
    assert_eq!(
        evidence(&repository),
        "/a/b removed in `without a/b`
/c absent code-still-there
/c/d absent code-still-there"
    );
}

const INSTANCES: &str = r#"stack {
  for_each = ["eu", "us"]
}
"#;

fn with_instances() -> Repository {
    let repository = Repository::of({
        let sandbox = Repository::prepare("b");
        sandbox.write("/state.orch.hcl", STATE);
        sandbox.write("/net/stack.orch.hcl", INSTANCES);
        sandbox
    });
    adopt(repository)
}

#[test]
fn removal_of_an_instance_is_proven_by_its_key_or_directory() {
    let repository = with_instances();
    let write = |for_each: &str| {
        let text = format!("stack {{\n  for_each = {for_each}\n}}\n");
        repository.write("/net/stack.orch.hcl", text);
    };
    write(r#"["us"]"#);
    assert_eq!(evidence(&repository), r#"/net["eu"] absent not-committed"#);
    commit(&repository, "without eu");
    assert_eq!(evidence(&repository), r#"/net["eu"] removed by key"#);
    let list = repository.orch("list --status removed --why");
    assert_snapshot!(list, @r#"net["eu"]  # removed from `for_each`"#);
    // A list without keys has none of them.
    write("[]");
    commit(&repository, "without keys");
    assert_eq!(
        evidence(&repository),
        "/net[\"eu\"] removed by key\n/net[\"us\"] removed by key"
    );
    remove(&repository, "net");
    assert_eq!(
        evidence(&repository),
        "/net[\"eu\"] removed in `without net`\n/net[\"us\"] removed in `without net`"
    );
}

#[test]
fn removal_of_an_instance_is_not_proven_with_unknown_keys() {
    let repository = with_instances();
    let all = |why: &str| format!("/net[\"eu\"] absent {why}\n/net[\"us\"] absent {why}");
    repository.write("/net/stack.orch.hcl", "stack {\n}\n");
    commit(&repository, "one stack");
    assert_eq!(evidence(&repository), all("no-longer-for-each"));
    let why = words(&repository, r#"net["eu"]"#);
    assert!(
        why.contains("the stack `/net` no longer has `for_each`"),
        "{why}"
    );
    repository.write("/net/stack.orch.hcl", INSTANCES);
    repository.write("/net/.tmskip", "");
    commit(&repository, "hidden");
    assert_eq!(evidence(&repository), all("code-still-there"));

    // The commit that was applied does not say by itself which keys it has.
    let repository = with_instances();
    let env = "stack {\n  for_each = [env.REGION]\n}\n";
    repository.write("/net/stack.orch.hcl", env);
    commit(&repository, "from the environment");
    let unknown = repository.git("rev-parse HEAD").trim().to_owned();
    repository.write("/net/stack.orch.hcl", "stack {\n  for_each = []\n}\n");
    commit(&repository, "none");
    change_document(&repository, |document| {
        document["stacks"]["/net[\"eu\"]"]["applied"]["seen"] = json!(unknown);
    });
    assert_eq!(
        evidence(&repository),
        "/net[\"eu\"] absent unknown-keys\n/net[\"us\"] removed by key"
    );
    let why = words(&repository, r#"net["eu"]"#);
    assert!(why.contains("needs the environment"), "{why}");
    // HEAD does not either.
    repository.write("/net/stack.orch.hcl", env);
    commit(&repository, "from the environment again");
    repository.write("/net/stack.orch.hcl", "stack {\n  for_each = []\n}\n");
    assert_eq!(evidence(&repository), all("unknown-keys"));
    // A key that the commit that was applied lacks was never removed.
    let repository = with_instances();
    repository.write("/net/stack.orch.hcl", "stack {\n  for_each = [\"us\"]\n}\n");
    commit(&repository, "without eu");
    let without = repository.git("rev-parse HEAD").trim().to_owned();
    change_document(&repository, |document| {
        document["stacks"]["/net[\"eu\"]"]["applied"]["seen"] = json!(without);
    });
    assert_eq!(evidence(&repository), "/net[\"eu\"] absent not-in-seen");
}

#[test]
fn removal_is_not_proven_by_an_unparsable_file() {
    let repository = adopted("a\nb\nc");
    repository.write("/a/stack.tm", "stack {\n");
    commit(&repository, "broken");
    for command in [
        "list --status removed",
        "list --changed --base applied",
        "state list",
    ] {
        let refused = repository.orch(command);
        assert_eq!((refused.code(), &*refused.stdout), (3, ""), "{refused}");
    }
    remove(&repository, "a");
    // Nobody knows whether the last version had the block.
    assert_eq!(evidence(&repository), "/a absent never-deleted");
    repository.git("reset -q --hard HEAD~2");
    remove(&repository, "a");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
    // HEAD does not say all that it has, whatever is here.
    repository.write("/c/stack.tm", "stack {\n");
    commit(&repository, "broken");
    repository.write("/c/stack.tm", "stack {\n}\n");
    assert_eq!(evidence(&repository), "/a absent broken");
    commit(&repository, "mended");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
}

#[test]
fn removal_is_not_proven_for_uncommitted_or_unknown_code() {
    let repository = adopted("a\nb\nc");
    remove(&repository, "a");
    remove(&repository, "b");
    remove(&repository, "c");
    // No stack is left that would show that the document is about this project.
    repository.write("/z/stack.tm", "stack {\n}\n");
    commit(&repository, "with z");
    assert_eq!(repository.orch("state adopt --no-verify").code(), 0);
    change_document(&repository, |document| {
        let stacks = &mut document["stacks"];
        let a = &mut stacks["/a"]["applied"];
        a["seen"] = Value::Null;
        a["dirty"] = json!(true);
        // As after an import.
        let b = &mut stacks["/b"]["applied"];
        b["seen"] = Value::Null;
        b["commit"] = Value::Null;
        stacks["/c"]["applied"] = Value::Null;
    });
    assert_eq!(
        evidence(&repository),
        "/a absent applied-dirty\n/b absent no-commit\n/c absent never-applied"
    );
    assert_snapshot!(words(&repository, "a"), @"
    a  # absent: it was applied with inputs that were not committed
    fix      in the checkout from which it was applied, commit its files and apply it again, or run `orch destroy` on it
    ");
    assert_snapshot!(words(&repository, "b"), @"
    b  # absent: no commit is recorded for it, so its code is unknown
    fix      restore it, run `orch apply`, which records the commit, and delete it again
    ");
    assert_snapshot!(words(&repository, "c"), @"
    c  # absent: no apply of it succeeded, so the code that created it is unknown
    fix     on the branch that has its files, apply it or run `orch destroy` on it; if nothing of it exists, run `orch state forget`
    ");
    // A commit that does not have the stack is not what made it.
    let head = repository.git("rev-parse HEAD").trim().to_owned();
    change_document(&repository, |document| {
        document["stacks"]["/a"]["applied"]["seen"] = json!(head);
        document["stacks"]["/b"]["applied"]["seen"] = json!("not a commit");
    });
    assert_eq!(
        evidence(&repository),
        "/a absent not-in-seen\n/b absent no-commit\n/c absent never-applied"
    );
}

/// Two stacks on the default branch, and `/a`, which was applied from a branch that is not there; returns that
/// commit as well.
fn applied_on_a_branch() -> (Repository, String) {
    let repository = adopted("b\nc");
    repository.git("init -q --bare ../origin.git");
    repository.git("remote add origin ../origin.git");
    repository.git("push -q origin main");
    repository.git("checkout -q -b feature");
    repository.write("/a/stack.tm", "stack {\n}\n");
    repository.write("/a/main.tf", "# the content of a\n");
    commit(&repository, "with a");
    assert_eq!(repository.orch("state adopt --match a").code(), 0);
    let applied = repository.git("rev-parse HEAD").trim().to_owned();
    (repository, applied)
}

#[test]
fn removal_without_proof_names_the_branch_of_the_applied_commit() {
    let (repository, applied) = applied_on_a_branch();
    let show = repository.orch("state show a --format json").json();
    assert_eq!(show["applied"]["seen"], Value::Null);
    repository.git("checkout -q main");
    let said = |repository: &Repository| words(repository, "a").replace(&applied[..7], "COMMIT");
    assert_eq!(evidence(&repository), "/a absent other-history");
    assert_snapshot!(said(&repository), @"
    a  # absent: HEAD lacks the applied commit COMMIT, which is only on the local branch feature
    fix      merge feature; if that branch is abandoned, check it out and run `orch destroy` on the stack there
    ");
    repository.git("push -q origin feature");
    assert_snapshot!(said(&repository), @"
    a  # absent: HEAD lacks the applied commit COMMIT, which is on origin/feature
    fix      merge origin/feature; if that branch is abandoned, check it out and run `orch destroy` on the stack there
    ");
    // Another clone does not know the branch, and does not claim anything about it.
    let clone = clone(&repository, "--single-branch");
    assert_eq!(evidence(&clone), "/a absent not-in-clone");
    assert_eq!(told(&clone, "--fetch"), "/a absent other-history");
    // Merged elsewhere.
    repository.git("push -q origin feature:main");
    assert_eq!(evidence(&repository), "/a absent branch-behind");
    repository.git("merge -q --ff-only origin/main");
    remove(&repository, "a");
    repository.git("push -q origin main");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
}

#[test]
fn removal_without_proof_reports_a_commit_on_no_branch() {
    let (repository, applied) = applied_on_a_branch();
    repository.git("checkout -q main");
    repository.git("branch -q -D feature");
    assert_snapshot!(words(&repository, "a").replace(&applied[..7], "COMMIT"), @"
    a  # absent: HEAD lacks the applied commit COMMIT, which is on no branch in this clone
    fix      check out a branch that has commit COMMIT; if there is none, check out commit COMMIT and run `orch destroy` on the stack there
    ");
}

#[test]
fn removal_on_a_branch_is_proven_for_a_stack_created_there() {
    let (repository, _) = applied_on_a_branch();
    remove(&repository, "a");
    assert_eq!(evidence(&repository), "/a removed in `without a`");
    repository.git("checkout -q main");
    assert_eq!(evidence(&repository), "/a absent other-history");
}

#[test]
fn removal_is_not_proven_by_another_project_or_namespace() {
    let repository = adopted("a\nb\ninfra/a\ninfra/x");
    // The document of another project of the repository, by mistake.
    let inner = STATE.replace("../shared", "../../shared");
    repository.write("/infra/root.orch.hcl", "orch { root = true }\n");
    repository.write("/infra/state.orch.hcl", inner);
    commit(&repository, "a project of its own");
    let refused = repository.orch_in("/infra", "list --status removed,absent");
    assert_snapshot!(refused, @"
    [stderr]
    error: the state at `$ROOT/infra/../../shared/acme.json` belongs to another root: the top of the repository, and this is `infra`
      = help: check the configuration of the state
    [exit status 4]
    ");
    let refused = repository.orch("-C infra list --status removed,absent");
    assert_eq!((refused.code(), &*refused.stdout), (4, ""), "{refused}");
    assert_eq!(
        evidence(&repository),
        "/infra/a absent code-still-there\n/infra/x absent code-still-there"
    );
    let other = STATE.replace(
        "project = \"acme\"",
        "project = \"acme\"\n      namespace = \"eu\"",
    );
    repository.write("/state.orch.hcl", other);
    let refused = repository.orch("list --status removed,absent");
    assert_eq!((refused.code(), &*refused.stdout), (4, ""), "{refused}");
}

#[test]
fn removal_proof_looks_only_at_the_project_directory() {
    let sandbox = Sandbox::unmarked("");
    let state = STATE.replace("../shared", "../../shared");
    sandbox.write("/infra/root.orch.hcl", "orch { root = true }\n");
    sandbox.write("/infra/state.orch.hcl", state);
    for stack in ["/infra/a", "/infra/b", "/infra/c/d", "/a", "/c/d"] {
        sandbox.write(&format!("{stack}/stack.tm"), "stack {\n}\n");
    }
    let repository = Repository::of(sandbox);
    for command in ["state init", "state adopt --no-verify"] {
        assert_eq!(repository.orch_in("/infra", command).code(), 0);
    }
    // What has the same path from the top is something else.
    remove(&repository, "a");
    remove(&repository, "c");
    let list = |flags: &str| {
        repository.orch_in(
            "/infra",
            &format!("list --status removed,absent --why {flags}"),
        )
    };
    assert_eq!(list("").stdout, "");
    remove(&repository, "infra/c");
    let commit = repository.git("rev-parse --short=7 HEAD");
    let removed = format!("c/d  # removed in {}\n", commit.trim());
    assert_eq!(list("").stdout, removed);
    // Files elsewhere are none of its files.
    repository.write("/c/d/main.tf", "");
    self::commit(&repository, "elsewhere");
    assert_eq!(list("").stdout, removed);
}

#[test]
fn why_tells_what_is_on_record_of_a_stack_that_is_gone() {
    let repository = adopted("a [web] after /b\nb\nc");
    remove(&repository, "a");
    repository.git("rm -q -r c");
    let why = |arguments: &str| {
        let why = repository.orch(&format!("why {arguments}"));
        without_times(&why.to_string())
    };
    allow_duplicates! {
        for path in ["/a", "a", "a/"] {
            assert_snapshot!(why(path), @"
            stack    /a
            id       -
            name     a
            tags     web
            after    /b
            before   -
            applied  … … at commit e9708116d5b1
            seen     commit e9708116d5b1
            inputs   …
            last     apply succeeded at … …
            status   removed in 61ff50c
            plan     destroyed
            ");
        }
    }
    assert_snapshot!(why("c"), @"
    stack    /c
    id       -
    name     c
    tags     -
    after    -
    before   -
    applied  … … at commit e9708116d5b1
    seen     commit e9708116d5b1
    inputs   …
    last     apply succeeded at … …
    status   absent: its deletion is not committed
    fix      commit the deletion, or restore the files
    ");
    let json = repository.orch("why /a --format json").json();
    assert_eq!(json["stacks"], json!([]));
    assert_eq!(json["missing"][0]["status"], "removed");
    let seen = &json["missing"][0]["evidence"]["seen"];
    assert_eq!(*seen, json["missing"][0]["entry"]["applied"]["seen"]);
    assert_snapshot!(repository.orch("why /never"), @"
    [stderr]
    error: `/never`: does not exist
    [exit status 64]
    ");
    assert_snapshot!(repository.orch("why b --fetch"), @"
    [stderr]
    error: `--fetch` has no effect without `--changed`; add `--changed`
    [exit status 64]
    ");
}

/// Replaces times and digests, which differ each time.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| {
            let has_two = |separator: &str| word.matches(separator).count() == 2;
            let is_time = has_two(":") || (has_two("-") && word.starts_with("20"));
            if is_time || word.contains("sha256:") {
                "…"
            } else {
                word
            }
        });
        words.collect::<Vec<&str>>().join(" ")
    });
    lines.collect::<Vec<String>>().join("\n")
}

#[test]
fn removal_without_proof_is_explained_in_notes() {
    let repository = adopted("a\nb\nc\nd\ne");
    remove(&repository, "b");
    repository.git("rm -q -r a c d e");
    repository.write("/z/stack.tm", "stack {\n}\n");
    change_document(&repository, |document| {
        let z = document["stacks"]["/a"].clone();
        document["stacks"]["/z"] = z;
    });
    let changed = repository.orch("list --changed --base applied");
    let note = changed
        .stderr
        .lines()
        .find(|line| line.contains("recorded but not in the project"));
    assert_snapshot!(note.unwrap(), @"note: `/a` (its deletion is not committed), `/c` (its deletion is not committed), `/d` (its deletion is not committed) and 1 more are recorded but not in the project, and no commit proves the removal; see `orch list --status absent --why`");
}

#[test]
fn json_tells_the_evidence_and_the_way_out() {
    let repository = adopted("a [web]\nb\nc");
    let seen = repository.git("rev-parse HEAD").trim().to_owned();
    remove(&repository, "a");
    let commit = repository.git("rev-parse HEAD").trim().to_owned();
    repository.git("rm -q -r c");
    let list = repository
        .orch("list --status removed,absent --format json")
        .json();
    assert_eq!(
        list["missing"],
        json!([
            {
                "path": "/a", "status": "removed", "id": null, "name": "a", "tags": ["web"],
                "evidence": { "seen": seen, "removed_by": "commit", "commit": commit },
            },
            {
                "path": "/c", "status": "absent", "id": null, "name": "c", "tags": [],
                "why": {
                    "kind": "not-committed",
                    "detail": "its deletion is not committed",
                    "way_out": "commit the deletion, or restore the files",
                },
            },
        ])
    );
}
