//! Plans that destroy stacks that were removed from the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::{
    Killed, Resources, STATE, after, document, has_terraform, ids, kills, noted, orch, own,
    resource, resources_of,
};
use crate::support::{Repository, Sandbox};

const LAYOUT: &str = "net
    net/database
    cart after /net/database
    queue
    mail after /queue";

/// The stacks that are removed: one in a stack that stays, one that ran after it, and one that a stack ran
/// after that stays.
const REMOVED: [&str; 3] = ["net/database", "cart", "queue"];

/// All stacks. Those that stay change.
const STACKS: [&str; 5] = ["net", "net/database", "cart", "queue", "mail"];

/// The project with a plan that destroys what was removed, by three commits, with the code of two.
fn planned() -> Repository {
    let sandbox = Sandbox::layout(LAYOUT);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n/.orch\n/plan\n");
    sandbox.write("/state.orch.hcl", STATE);
    let database = own("rows", "terraform_data.second.id");
    sandbox.write("/net/main.tf", own("net 1", "1"));
    sandbox.write("/net/database/main.tf", database);
    sandbox.write("/cart/main.tf", after("../net/database"));
    sandbox.write(
        "/queue/main.tf",
        own("queue 1", "terraform_data.second.output"),
    );
    sandbox.write("/mail/main.tf", after("../queue"));
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    let apply = |flags: &str| {
        let applied = orch(&repository, &format!("apply --auto-approve -j 4 {flags}"));
        assert_eq!(applied.code(), 0, "{applied:?}");
    };
    apply("");
    repository.git("rm -q -r cart");
    repository.write(
        "/queue/main.tf",
        own("queue 2", "terraform_data.second.output"),
    );
    repository.commit();
    apply("--no-removals");
    repository.git("rm -q -r queue");
    repository.write("/mail/stack.tm", "stack {\n}\n");
    repository.write("/mail/main.tf", resource("first", "\"letters\""));
    repository.commit();
    repository.git("rm -q -r net/database");
    repository.write("/net/main.tf", own("net 2", "1"));
    repository.commit();
    let seen = |stack: &str| document(&repository)["stacks"][stack]["applied"]["seen"].clone();
    assert_ne!(
        seen("/cart"),
        seen("/queue"),
        "each is destroyed with code of its own"
    );
    let planned = orch(&repository, "plan -o plan -j 4 --allow-destroy=3");
    assert_eq!(planned.code(), 0, "{planned:?}");
    let last = planned.stdout.lines().last().unwrap_or_default();
    let counts = "Plan: 2 to update, 3 to delete. ";
    assert!(last.starts_with(counts), "{planned:?}");
    repository
}

/// What is known of the resources that were destroyed.
#[derive(Clone)]
struct Destroyed {
    /// How often each was destroyed.
    times: BTreeMap<String, usize>,
    /// What Terraform has recorded.
    left: BTreeSet<String>,
}

impl Destroyed {
    fn now(sandbox: &Sandbox) -> Self {
        let mut times = BTreeMap::new();
        for (_, id) in noted(sandbox, "destroyed") {
            *times.entry(id).or_default() += 1;
        }
        let left = ids(&resources_of(sandbox, &STACKS)).collect();
        Destroyed { times, left }
    }

    /// Checks that an apply has destroyed nothing twice, and nothing that was gone when it began. Terraform
    /// destroys again what it has destroyed if it is killed before it has written its state.
    fn check(&self, now: &Destroyed) {
        for (id, &times) in &now.times {
            let before = self.times.get(id).copied().unwrap_or_default();
            let may_be = usize::from(self.left.contains(id));
            assert!(times - before <= may_be, "{id} is destroyed again");
        }
    }
}

/// Checks that everything is as the tree says, once the apply has succeeded.
fn check(sandbox: &Sandbox, was: &BTreeMap<&str, Resources>) {
    // The first command after the apply: another one would sweep up.
    let worktrees = sandbox.git_at("/").run("worktree list");
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    for place in ["/.orch/worktrees", "/.git/worktrees"] {
        let left = fs::read_dir(sandbox.path(place)).into_iter().flatten();
        let left: Vec<_> = left.map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    let now = resources_of(sandbox, &STACKS);
    for stack in REMOVED {
        assert_eq!(now[stack], Resources::new(), "{stack} is gone");
    }
    let values = |stack: &str| {
        let values = now[stack]
            .iter()
            .map(|(name, (id, value))| (name.as_str(), id.as_str(), value.as_str()));
        values.collect::<Vec<_>>()
    };
    let id = |stack: &str, name: &str| was[stack][name].0.as_str();
    let net = [
        ("first", id("net", "first"), "net 2"),
        ("second", id("net", "second"), "net 2"),
    ];
    assert_eq!(values("net"), net);
    assert_eq!(values("mail"), [("first", id("mail", "first"), "letters")]);
    let destroyed = noted(sandbox, "destroyed");
    let removed: BTreeSet<String> = REMOVED
        .iter()
        .flat_map(|stack| was[stack].values().map(|(id, _)| id.clone()))
        .collect();
    let ids: BTreeSet<String> = destroyed.iter().map(|(_, id)| id.clone()).collect();
    assert_eq!(
        ids, removed,
        "what was removed is destroyed, and nothing else"
    );
    let of = |stack: &str| {
        let positions = destroyed.iter().enumerate();
        let positions = positions.filter(|(_, (it, _))| it == stack);
        positions.map(|(position, _)| position).collect::<Vec<_>>()
    };
    assert!(
        of("/cart").last() < of("/net/database").first(),
        "what ran after another stack goes first: {destroyed:?}"
    );
    let document = document(sandbox);
    let on_record = document["stacks"].as_object().unwrap();
    assert!(on_record.keys().eq(["/mail", "/net"]), "{document}");
    for (stack, entry) in on_record {
        assert_eq!(entry["last"]["outcome"], "succeeded", "{stack}: {entry}");
        assert_eq!(entry["intent"], Value::Null, "{stack}: {entry}");
    }
    assert_eq!(document["lock"], Value::Null);
    let again = orch(sandbox, "plan --full --detailed-exitcode -j 4");
    assert_eq!(again.code(), 0, "{again:?}");
    let resumed = orch(sandbox, "apply plan --resume");
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    assert!(resumed.stderr.contains("nothing to do"), "{resumed:?}");
}

#[test]
fn apply_killed_during_removals_resumes_to_the_configuration() {
    if !has_terraform() {
        return;
    }
    let planned = planned();
    let was = resources_of(&planned, &STACKS);
    let killed = Killed {
        planned: &planned,
        stacks: &STACKS,
        kills: kills(4),
    };
    let (undisturbed, span) = killed.undisturbed();
    let none = Destroyed::now(&planned);
    none.check(&Destroyed::now(&undisturbed));
    check(&undisturbed, &was);
    killed.each(
        span,
        &none,
        |sandbox, destroyed| {
            let now = Destroyed::now(sandbox);
            destroyed.check(&now);
            *destroyed = now;
        },
        |sandbox, destroyed| {
            destroyed.check(&Destroyed::now(sandbox));
            check(sandbox, &was);
        },
    );
}
