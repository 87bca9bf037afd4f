//! `orch run`, `orch plan` and `orch apply` refuse the same rollbacks: the commit that was applied last is not part
//! of HEAD, or not in the clone.

use crate::support::{Checkout, Repositories};

const ROOT: &str = r#"
orch {
  root = true
  config {
    driver = "fake"
    state {
      project = "acme"
      backend "local" {
        path = "../shared"
      }
    }
  }
}
driver "fake" {
  plan  = ["sh", "-c", "cmp -s value ../../world-${terramate.stack.name} || exit 2"]
  apply = ["cp", "value", "../../world-${terramate.stack.name}"]
}
"#;

/// The author has applied v1 of all stacks on `main`, and has published that; the project is a clone.
fn team(options: &str) -> Repositories {
    let all = Repositories::new();
    let author = all.author();
    author.write("root.orch.hcl", ROOT);
    for stack in ["a", "b", "c", "d"] {
        author.write(&format!("{stack}/value"), "v1\n");
    }
    author.commit("v1", "");
    author.git("remote add origin $URL");
    all.publish();
    author.git("fetch -q origin");
    assert_eq!(author.orch("state init").code(), 0);
    apply(&author, "");
    all.clone(options);
    all
}

/// Commits a value of a stack.
fn change(checkout: &Checkout<'_>, stack: &str, value: &str, subject: &str) {
    checkout.write(&format!("{stack}/value"), &format!("{value}\n"));
    checkout.commit(subject, "");
}

fn publish(checkout: &Checkout<'_>, branch: &str) {
    checkout.git(&format!("push -q --force origin HEAD:{branch}"));
    checkout.git("fetch -q origin");
}

#[track_caller]
fn apply(checkout: &Checkout<'_>, flags: &str) {
    let output = checkout.orch(&format!("apply -X --auto-approve {flags}"));
    assert!([0, 4].contains(&output.code()), "{output}");
}

/// What is really there of a stack.
fn world(all: &Repositories, stack: &str) -> String {
    let text = std::fs::read_to_string(all.at("").path(&format!("world-{stack}")));
    text.unwrap().trim().to_owned()
}

/// Why the plan does nothing with a stack, if it is blocked.
#[track_caller]
fn blocked(checkout: &Checkout<'_>, stack: &str, flags: &str) -> Option<String> {
    let plan = checkout.orch(&format!("plan --format json {flags}")).data();
    let mut stacks = plan["stacks"].as_array().unwrap().iter();
    let entry = stacks.find(|entry| entry["path"] == stack);
    let why = entry.unwrap_or_else(|| panic!("{plan}"))["blocked"].as_str();
    why.map(str::to_owned)
}

/// Neither of the three commands puts anything back; `why` is what they say of the stack `/a`.
#[track_caller]
fn refuses(all: &Repositories, checkout: &Checkout<'_>, flags: &str, why: &str) {
    let before = world(all, "a");
    let run = checkout.orch(&format!("run -q -X --record --match a {flags} true"));
    assert_eq!(run.code(), 4, "{run}");
    let why = all.without_ids(&all.with_ids(why));
    let clause = why.split(": run `").next().unwrap();
    let said = format!("this run would roll back stack `/a`: {clause}\n");
    assert!(run.stderr.contains(&said), "{said}\n{run}");
    let found = blocked(checkout, "/a", flags).map(|why| all.without_ids(&why));
    assert_eq!(found, Some(why));
    apply(checkout, flags);
    assert_eq!(world(all, "a"), before);
}

/// All three commands take the stack `/a` forward.
#[track_caller]
fn moves_on(all: &Repositories, checkout: &Checkout<'_>, value: &str) {
    assert_eq!(blocked(checkout, "/a", ""), None);
    let run = checkout.orch("run -q -X --record --match a --dry-run true");
    assert_eq!(run.code(), 0, "{run}");
    apply(checkout, "");
    assert_eq!(world(all, "a"), value);
}

#[test]
fn rollback_of_a_clone_that_is_behind() {
    let all = team("");
    let (author, project) = (all.author(), all.project());
    change(&author, "a", "v5", "five");
    publish(&author, "main");
    apply(&author, "");
    refuses(
        &all,
        &project,
        "",
        "the last applied commit <five>/7 is not in this clone: run `git fetch origin <five>`, or add `--fetch`",
    );
    let why = "HEAD is behind the last applied commit <five>/7";
    refuses(&all, &project, "--fetch", why);
    project.git("fetch -q origin");
    let why = "HEAD is behind the last applied commit <five>/7 of origin/main";
    refuses(&all, &project, "", why);
    // Others are not affected.
    assert_eq!(blocked(&project, "/b", ""), None);
    project.git("merge -q --ff-only origin/main");
    moves_on(&all, &project, "v5");
}

#[test]
fn rollback_in_a_shallow_clone() {
    let all = team("--depth 1");
    let (author, project) = (all.author(), all.project());
    change(&author, "a", "v5", "five");
    publish(&author, "main");
    apply(&author, "");
    refuses(
        &all,
        &project,
        "",
        "the last applied commit <five>/7 is not in this clone: run `git fetch origin <five>`, or add `--fetch`",
    );
    refuses(
        &all,
        &project,
        "--fetch",
        "HEAD is behind the last applied commit <five>/7",
    );
    // A clone whose history does not reach back is told how to get it, and gets it.
    change(&author, "a", "v6", "six");
    change(&author, "a", "v7", "seven");
    publish(&author, "main");
    all.at("").git("clone -q --depth 1 $URL later");
    let later = all.at("later");
    later.git("fetch -q --depth 1 origin <five>");
    let unshallow = "this shallow clone does not show whether HEAD has the last applied commit <five>/7: run `git fetch --unshallow origin`, or add `--fetch`";
    refuses(&all, &later, "", unshallow);
    assert_eq!(blocked(&later, "/a", "--fetch"), None);
    moves_on(&all, &later, "v7");
}

#[test]
fn rollback_of_a_pushed_branch() {
    let all = team("");
    let author = all.author();
    author.git("checkout -q -b feature");
    change(&author, "a", "v2", "feature");
    publish(&author, "feature");
    apply(&author, "");
    author.git("checkout -q main");
    let why = "HEAD is behind the last applied commit <feature>/7 of origin/feature";
    refuses(&all, &author, "", why);
    // Changes of its own do not make it a step forward.
    change(&author, "a", "v3", "main");
    publish(&author, "main");
    let why = "HEAD lacks the last applied commit <feature>/7 of origin/feature";
    refuses(&all, &author, "", why);
    author.git("checkout -q feature");
    author.git("checkout -q -b merged");
    author.git("merge -q -s ours -m merged main");
    change(&author, "a", "v4", "four");
    moves_on(&all, &author, "v4");
}

#[test]
fn rollback_of_a_local_branch() {
    let all = team("");
    let author = all.author();
    author.git("checkout -q -b mine");
    change(&author, "a", "v2", "mine");
    apply(&author, "");
    author.git("checkout -q main");
    let why = "HEAD is behind the last applied commit <mine>/7 of mine";
    refuses(&all, &author, "", why);
    // In another clone, nobody can know what it was.
    let why = "the last applied commit <mine>/7 is neither in this clone nor on the remote";
    refuses(&all, &all.project(), "--fetch", why);
}

#[test]
fn rollback_of_uncommitted_changes() {
    let all = team("");
    let (author, project) = (all.author(), all.project());
    change(&author, "b", "v2", "two");
    publish(&author, "main");
    author.write("a/value", "v9\n");
    apply(&author, "");
    assert_eq!(world(&all, "a"), "v9");
    project.git("fetch -q origin");
    // No commit since then changes the stack, but the applied files may belong to that commit.
    let why = "HEAD is behind the last applied commit <two>/7 of origin/main";
    refuses(&all, &project, "", why);
    project.git("merge -q --ff-only origin/main");
    moves_on(&all, &project, "v1");
}

#[test]
fn rollback_after_a_force_push() {
    let all = team("");
    let (author, project) = (all.author(), all.project());
    change(&author, "a", "v2", "two");
    publish(&author, "main");
    apply(&author, "");
    author.git("reset -q --hard <v1>");
    change(&author, "a", "v3", "three");
    publish(&author, "main");
    all.at("remote").git("reflog expire --expire=now --all");
    all.at("remote").git("gc -q --prune=now");
    project.git("fetch -q origin");
    project.git("reset -q --hard origin/main");
    let why = "the last applied commit <two>/7 is neither in this clone nor on the remote";
    refuses(&all, &project, "--fetch", why);
}

#[test]
fn rollback_of_a_job_at_an_old_commit() {
    let all = team("");
    let author = all.author();
    change(&author, "a", "v2", "two");
    change(&author, "a", "v3", "three");
    publish(&author, "main");
    apply(&author, "");
    author.git("checkout -q --detach <two>");
    let why = "HEAD is behind the last applied commit <three>/7 of origin/main";
    refuses(&all, &author, "", why);
}

#[test]
fn rollback_of_a_failed_attempt_on_a_branch() {
    let all = team("");
    let author = all.author();
    author.git("checkout -q -b feature");
    change(&author, "a", "v2", "feature");
    let failed = author.orch("run -q -X --record --match a false");
    assert_eq!(failed.code(), 1, "{failed}");
    // Half of it may be there, although the inputs are those that were applied before.
    author.git("checkout -q main");
    let why = "HEAD is behind the last applied commit <feature>/7 of feature";
    refuses(&all, &author, "", why);
}

#[test]
fn rollback_that_is_meant_says_what_it_puts_back() {
    let all = team("");
    let author = all.author();
    author.git("checkout -q -b feature");
    change(&author, "a", "v2", "feature");
    publish(&author, "feature");
    apply(&author, "");
    author.git("checkout -q main");
    let plan = author.orch("plan --allow-rollback");
    let row = "update  reverts commit <feature> of origin/feature: a/value differs";
    assert!(plan.stdout.contains(row), "{plan}");
    assert!(author.orch("plan").stderr.contains("`--allow-rollback`"));
    apply(&author, "--allow-rollback");
    assert_eq!(world(&all, "a"), "v1");
    let project = all.project();
    project.git("fetch -q origin");
    moves_on(&all, &author, "v1");
}

#[test]
fn rollback_is_not_seen_in_a_squash() {
    let all = team("");
    let (author, project) = (all.author(), all.project());
    author.git("checkout -q -b feature");
    change(&author, "a", "v2", "feature");
    publish(&author, "feature");
    apply(&author, "");
    author.git("checkout -q main");
    author.git("merge -q --squash feature");
    author.commit("squash", "");
    author.git("push -q origin main :feature");
    author.git("fetch -q -p origin");
    author.git("branch -q -D feature");
    // A run on `main` notes that the squash has what was applied.
    change(&author, "b", "v2", "other");
    publish(&author, "main");
    apply(&author, "");
    project.git("pull -q origin main");
    change(&project, "a", "v3", "three");
    moves_on(&all, &project, "v3");
}

#[test]
fn rollback_is_not_seen_in_a_branch_that_only_lacks_other_changes() {
    let all = team("");
    let (author, project) = (all.author(), all.project());
    project.git("checkout -q -b pr");
    change(&project, "a", "v2", "pr");
    // Meanwhile `main` moves on, and its commit has `/a` as it was applied.
    change(&author, "b", "v2", "other");
    publish(&author, "main");
    apply(&author, "--full");
    project.git("fetch -q origin");
    assert_eq!(blocked(&project, "/a", ""), None);
    let why = blocked(&project, "/b", "").unwrap();
    assert!(
        why.contains("the last applied commit") && why.contains("of origin/main"),
        "{why}"
    );
    moves_on(&all, &project, "v2");
    assert_eq!(world(&all, "b"), "v2");
}

#[test]
fn rollback_is_suspected_where_history_is_damaged() {
    let all = team("");
    let author = all.author();
    author.git("checkout -q -b feature");
    change(&author, "a", "v2", "feature");
    apply(&author, "");
    author.git("checkout -q main");
    change(&author, "c", "v3", "main");
    let parting = author.id("<v1>");
    let (first, rest) = parting.split_at(2);
    std::fs::remove_file(author.path(&format!(".git/objects/{first}/{rest}"))).unwrap();
    for command in ["run -q -X --record true", "plan", "apply -X --auto-approve"] {
        let output = author.orch(&format!("{command} --match a"));
        let is_refused = output.code() != 0 || output.stdout.contains("! /a  blocked: HEAD lacks");
        assert!(is_refused, "{command}: {output}");
        assert_eq!(world(&all, "a"), "v2");
    }
}
