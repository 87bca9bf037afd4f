//! Which instances change, are added and removed.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Output, Repository, without_base};

/// Instances that each watch and read a file, instances whose keys are in a file, and a plain stack.
const STACKS: &str = r#"
//- /net/stack.orch.hcl
stack {
  for_each = ["dev", "prod"]
  watch    = ["/watched/${each.key}.txt"]
  name     = tm_trimspace(tm_file("../named/${each.key}.txt"))
}
//- /net/main.tf
//- /watched/dev.txt
//- /watched/prod.txt
//- /named/dev.txt
d
//- /named/prod.txt
p
//- /read/stack.orch.hcl
stack {
  for_each = tm_jsondecode(tm_file("/keys/../keys.json"))
}
//- /plain/stack.tm
stack {
}
"#;

fn repository() -> Repository {
    let fixture = STACKS.replace("\"/keys/../keys.json\"", "\"../keys/keys.json\"");
    Repository::new(&(fixture + "//- /keys/keys.json\n[\"a\", \"b\"]\n"))
}

#[track_caller]
fn removed(repository: &Repository, arguments: &str) -> Output {
    without_base(repository.orch(&format!("list --removed --base base {arguments}")))
}

/// Makes a change, lists what has changed because of it, and undoes it.
#[track_caller]
fn after(repository: &Repository, path: &str, text: &str) -> Output {
    repository.write(path, text);
    let changed = repository.changed();
    repository.git("reset -q --hard");
    repository.git("clean -q -f -d");
    changed
}

#[test]
fn changed_selects_all_instances_of_a_directory() {
    let repository = repository();
    assert_snapshot!(after(&repository, "/net/main.tf", "# changed\n"), @r#"
    net["dev"]  # changed: net/main.tf (uncommitted); at or below /
    net["prod"]  # changed: net/main.tf (uncommitted); at or below /
    "#);
    assert_snapshot!(after(&repository, "/net/new.txt", ""), @r#"
    net["dev"]  # changed: net/new.txt (untracked); at or below /
    net["prod"]  # changed: net/new.txt (untracked); at or below /
    "#);
    assert_snapshot!(after(&repository, "/plain/new.txt", ""), @"plain  # changed: plain/new.txt (untracked); at or below /");
}

#[test]
fn changed_selects_only_the_instance_that_watches_or_reads_a_file() {
    let repository = repository();
    assert_snapshot!(after(&repository, "/watched/dev.txt", "changed\n"), @r#"net["dev"]  # changed: watched/dev.txt (uncommitted), watched (net/stack.orch.hcl:3); at or below /"#);
    assert_snapshot!(after(&repository, "/named/prod.txt", "changed\n"), @r#"net["prod"]  # changed: named/prod.txt (uncommitted), attribute name (net/stack.orch.hcl:4), read by tm_file (net/stack.orch.hcl:4); at or below /"#);
    assert_snapshot!(repository.orch("why 'net[\"prod\"]'"), @r#"
    /net["prod"] is selected
      at or below /

    its inputs (add --changed to see which have changed)
      /net, its own directory
      /watched/prod.txt, watched (net/stack.orch.hcl:3)
      /named/prod.txt, attribute name (net/stack.orch.hcl:4), read by tm_file (net/stack.orch.hcl:4)

    nothing runs before it

    nothing runs after it
    "#);
}

#[test]
fn changed_selects_only_the_instance_whose_environment_reads_a_file() {
    let repository = Repository::new(
        r#"
//- /net/stack.orch.hcl
stack {
  for_each = { dev = "a", prod = "b" }
}
orch {
  config {
    run {
      env {
        VALUE = tm_file("../values/${each.value}.txt")
      }
    }
  }
}
//- /values/a.txt
//- /values/b.txt
"#,
    );
    repository.write("/values/a.txt", "changed\n");
    assert_snapshot!(repository.changed(), @r#"net["dev"]  # changed: values/a.txt (uncommitted), environment variable VALUE (net/stack.orch.hcl:8), read by tm_file (net/stack.orch.hcl:8); at or below /"#);
}

#[test]
fn changed_selects_new_keys_and_reports_removed_ones() {
    let repository = repository();
    let text = repository
        .read("/net/stack.orch.hcl")
        .replace("\"prod\"", "\"test\"");
    repository.write("/named/test.txt", "t\n");
    repository.write("/watched/test.txt", "");
    assert_snapshot!(after(&repository, "/net/stack.orch.hcl", &text), @r#"
    net["dev"]  # changed: net/stack.orch.hcl (uncommitted); at or below /
    net["test"]  # changed: net/stack.orch.hcl (uncommitted); at or below /
    [stderr]
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    "#);
    repository.write("/named/test.txt", "t\n");
    repository.write("/watched/test.txt", "");
    repository.write("/net/stack.orch.hcl", &text);
    assert_snapshot!(removed(&repository, ""), @r#"net["prod"]"#);
    repository.commit();
    assert_snapshot!(removed(&repository, ""), @r#"net["prod"]"#);
    assert_snapshot!(repository.orch("why 'net[\"prod\"]' --changed --base base"), @r#"
    [stderr]
    base 830c626: --base base
    error: `net["prod"]` is no longer a stack; it was one in the base 830c626
    [exit status 64]
    "#);
    assert_snapshot!(repository.orch("run -X -q --changed --base base --match '**[*]' true"), @r#"
    [stderr]
    base 830c626: --base base
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    "#);
}

#[test]
fn changed_follows_keys_from_a_file() {
    let repository = repository();
    assert_snapshot!(after(&repository, "/keys/keys.json", r#"["a", "c"]"#), @r#"
    read["a"]  # changed: keys/keys.json (uncommitted), attribute for_each (read/stack.orch.hcl:2), read by tm_file (read/stack.orch.hcl:2); at or below /
    read["c"]  # changed: keys/keys.json (uncommitted), attribute for_each (read/stack.orch.hcl:2), read by tm_file (read/stack.orch.hcl:2); at or below /
    [stderr]
    note: stack `/read["b"]` was removed since the base; nothing is run for it
    "#);
    repository.write("/keys/keys.json", r#"["a", "c"]"#);
    repository.commit();
    assert_snapshot!(repository.changed(), @r#"
    read["a"]  # changed: keys/keys.json, attribute for_each (read/stack.orch.hcl:2), read by tm_file (read/stack.orch.hcl:2); at or below /
    read["c"]  # changed: keys/keys.json, attribute for_each (read/stack.orch.hcl:2), read by tm_file (read/stack.orch.hcl:2); at or below /
    [stderr]
    note: stack `/read["b"]` was removed since the base; nothing is run for it
    "#);
    repository.write("/keys/keys.json", "[]");
    assert_snapshot!(repository.changed(), @r#"
    [stderr]
    note: stack `/read["a"]` was removed since the base; nothing is run for it
    note: stack `/read["b"]` was removed since the base; nothing is run for it
    note: no stack has changed since 830c626
    "#);
    repository.git("rm -q -r read");
    assert_snapshot!(removed(&repository, ""), @r#"
    read["a"]
    read["b"]
    "#);
}

/// HEAD still has the keys, so only the uncommitted change shows that they are gone.
#[test]
fn changed_reports_instances_removed_by_an_uncommitted_deletion_of_their_key_file() {
    let repository = repository();
    let keys = "for_each = tm_try(tm_jsondecode(tm_file(\"../keys/keys.json\")), [])";
    let text = format!("stack {{\n  {keys}\n}}\n");
    repository.write("/read/stack.orch.hcl", text);
    repository.commit();
    repository.git("branch -f base");
    repository.remove("/keys/keys.json");
    assert_snapshot!(removed(&repository, ""), @r#"
    read["a"]
    read["b"]
    "#);
}

#[test]
fn changed_reports_removed_keys_despite_uncounted_changes() {
    let repository = repository();
    let (commit, uncommitted) = (true, false);
    let mark = ("/read/.tmskip", "", "git-untracked");
    let plain = ("/read/stack.orch.hcl", "stack {\n}\n", "git-uncommitted");
    for ((path, text, switch), is_committed) in
        [(mark, commit), (mark, uncommitted), (plain, commit)]
    {
        repository.write("/keys/keys.json", r#"["a"]"#);
        if is_committed {
            repository.commit();
        }
        repository.write(path, text);
        let said = removed(&repository, &format!("--disable-change-detection {switch}"));
        // HEAD and what counts still have the other.
        assert_eq!(said.stdout, "read[\"b\"]\n", "{path} {is_committed}");
        repository.git("reset -q --hard base");
        repository.git("clean -q -f -d");
    }
}

#[test]
fn changed_reports_all_instances_removed_without_for_each() {
    let repository = repository();
    let plain = "stack {\n}\n";
    assert_snapshot!(after(&repository, "/net/stack.orch.hcl", plain), @r#"
    net  # changed: net/stack.orch.hcl (uncommitted); at or below /
    [stderr]
    note: stack `/net["dev"]` was removed since the base; nothing is run for it
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    "#);
    let none = "stack {\n  for_each = []\n}\n";
    assert_snapshot!(after(&repository, "/net/stack.orch.hcl", none), @r#"
    [stderr]
    note: stack `/net["dev"]` was removed since the base; nothing is run for it
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    note: no stack has changed since 830c626
    "#);
    assert_snapshot!(after(&repository, "/net/stack.orch.hcl", "globals {\n}\n"), @r#"
    [stderr]
    note: stack `/net["dev"]` was removed since the base; nothing is run for it
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    note: no stack has changed since 830c626
    "#);
    repository.git("rm -q -r net");
    assert_snapshot!(repository.changed(), @r#"
    [stderr]
    note: stack `/net["dev"]` was removed since the base; nothing is run for it
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    note: no stack has changed since 830c626
    "#);
    repository.commit();
    assert_snapshot!(repository.changed(), @r#"
    [stderr]
    note: stack `/net["dev"]` was removed since the base; nothing is run for it
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    note: no stack has changed since 830c626
    "#);
}

#[test]
fn changed_reports_a_plain_stack_removed_once_it_has_instances() {
    let repository = repository();
    let instances = "stack {\n  for_each = [\"x\"]\n}\n";
    assert_snapshot!(after(&repository, "/plain/stack.tm", instances), @r#"
    plain["x"]  # changed: plain/stack.tm (uncommitted); at or below /
    [stderr]
    note: stack `/plain` was removed since the base; nothing is run for it
    "#);
    // The `for_each` may be in another file.
    assert_snapshot!(after(&repository, "/plain/stack.orch.hcl", instances), @r#"
    plain["x"]  # changed: plain/stack.orch.hcl (untracked); at or below /
    [stderr]
    note: stack `/plain` was removed since the base; nothing is run for it
    "#);
    repository.write("/plain/stack.orch.hcl", instances);
    repository.commit();
    assert_snapshot!(removed(&repository, ""), @"plain");
    // And back again.
    repository.git("tag -f base");
    repository.git("rm -q plain/stack.orch.hcl");
    assert_snapshot!(repository.changed(), @r#"
    plain  # changed: plain/stack.orch.hcl (uncommitted, deleted); at or below /
    [stderr]
    note: stack `/plain["x"]` was removed since the base; nothing is run for it
    "#);
    repository.commit();
    assert_snapshot!(repository.changed(), @r#"
    plain  # changed: plain/stack.orch.hcl (deleted); at or below /
    [stderr]
    note: stack `/plain["x"]` was removed since the base; nothing is run for it
    "#);
}

#[test]
fn changed_lists_removed_instances_like_removed_stacks() {
    let repository = repository();
    repository.git("rm -q -r net");
    repository.commit();
    assert_eq!(
        removed(&repository, "--format json").json()["removed"],
        json!([
            {"path": "/net[\"dev\"]", "directory": "/net", "key": "dev"},
            {"path": "/net[\"prod\"]", "directory": "/net", "key": "prod"},
        ])
    );
    let list = |arguments: &str| {
        let output = removed(&repository, arguments);
        output.stdout.lines().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list("--match net"), r#"net["dev"] net["prod"]"#);
    assert_eq!(list("--match 'net[\"dev\"]'"), r#"net["dev"]"#);
    assert_eq!(list("--match '*[*]'"), r#"net["dev"] net["prod"]"#);
    assert_eq!(list("--exclude '**[\"dev\"]'"), r#"net["prod"]"#);
    repository.write(
        "/user/stack.tm",
        "stack {\n  after = [\"/net[\\\"dev\\\"]\"]\n}\n",
    );
    assert_snapshot!(repository.changed(), @r#"
    user  # changed: user/stack.tm (untracked); at or below /
    [stderr]
    note: stack `/net["dev"]` was removed since the base; nothing is run for it
    note: stack `/net["prod"]` was removed since the base; nothing is run for it
    warning: `/net["dev"]` in `after` matches no stack
     --> user/stack.tm:2:12
      |
    2 |   after = ["/net[\"dev\"]"]
      |            ^^^^^^^^^^^^^^^ no such directory
      |
      = note: the stack `/net["dev"]` was removed since the base 830c626
    "#);
}

#[test]
fn safeguards_check_files_rather_than_instances() {
    let repository = repository();
    repository.write("/net/new.txt", "");
    assert_snapshot!(repository.orch("run -q --match 'net[\"dev\"]' true"), @"
    [stderr]
    error: refused: 1 file is untracked (safeguard `git-untracked`)
        net/new.txt
      = help: commit or ignore it, or disable this safeguard with `--disable-safeguards=git-untracked`
    note: nothing was run
    [exit status 4]
    ");
}

/// What a sparse checkout omits is still in HEAD.
#[test]
fn changed_keeps_keys_omitted_by_a_sparse_checkout() {
    let repository = Repository::new(
        "//- /net/stack.tm\nstack {\n}\n//- /net/x.orch.hcl\nstack {\n  for_each = [\"a\", \"b\"]\n}\n",
    );
    repository.write("/net/stack.tm", "stack {\n  name = \"net\"\n}\n");
    repository.commit();
    repository.git("sparse-checkout set --no-cone '/*' '!*.orch.hcl'");
    assert!(!repository.path("/net/x.orch.hcl").exists());
    assert_snapshot!(removed(&repository, ""), @"
    [stderr]
    note: no stack was removed since b289ce4
    ");
}
