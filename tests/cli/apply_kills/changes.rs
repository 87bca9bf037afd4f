//! Plans that create, update and replace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Killed, Resources, STATE, after, document, has_terraform, ids, kills, noted, orch, own,
    resources_of,
};
use crate::support::{Repository, Sandbox};

const LAYOUT: &str = "net
    dns after /net
    database after /net
    cart after /database
    queue
    mail after /queue
    web after /cart /queue
    alone";

/// The stacks whose resources exist before the plan.
const OLD: [&str; 5] = ["net", "database", "cart", "web", "alone"];

/// All stacks.
const STACKS: [&str; 8] = [
    "net", "dns", "database", "cart", "queue", "mail", "web", "alone",
];

/// The project before the change; all of it is applied then.
fn before(with_state: bool) -> Repository {
    let sandbox = Sandbox::layout(LAYOUT);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n/.orch\n/plan\n");
    if with_state {
        sandbox.write("/state.orch.hcl", STATE);
    }
    sandbox.write("/net/main.tf", own("net 1", "terraform_data.second.output"));
    // Its id is another one whenever it is made anew.
    sandbox.write("/database/main.tf", own("rows", "terraform_data.second.id"));
    sandbox.write("/cart/main.tf", after("../database"));
    sandbox.write("/web/main.tf", own("web 1", "1"));
    sandbox.write("/alone/main.tf", own("alone", "1"));
    let repository = Repository::of(sandbox);
    if with_state {
        assert_eq!(repository.orch("state init").code(), 0);
    }
    let applied = orch(&repository, "apply --auto-approve -j 4");
    assert_eq!(applied.code(), 0, "{applied:?}");
    repository
}

/// The project with a plan of the change: it creates, updates, replaces, leaves two stacks to be decided
/// and one alone.
fn planned(with_state: bool) -> Repository {
    let repository = before(with_state);
    repository.write("/net/main.tf", own("net 2", "terraform_data.second.output"));
    repository.write("/web/main.tf", own("web 2", "1"));
    repository.write("/dns/main.tf", after("../net"));
    repository.write("/queue/main.tf", own("queue", "terraform_data.second.id"));
    repository.write("/mail/main.tf", after("../queue"));
    repository.commit();
    let planned = orch(
        &repository,
        "plan -o plan -j 4 --replace /database --allow-destroy=1",
    );
    assert_eq!(planned.code(), 0, "{planned:?}");
    let last = planned.stdout.lines().last().unwrap_or_default();
    let counts = "Plan: 2 to create, 2 to update, 1 to replace, 2 known after apply, 1 unchanged.";
    assert!(last.starts_with(counts), "{planned:?}");
    repository
}

/// Checks that everything is as the tree says, once the apply has succeeded. Terraform forgets what it has
/// just made if it is killed before it has written its state: that is `lost`.
fn check(
    sandbox: &Sandbox,
    was: &BTreeMap<&str, Resources>,
    lost: &BTreeSet<String>,
    with_state: bool,
) {
    let now = resources_of(sandbox, &STACKS);
    let values = |stack: &str| {
        let values = now[stack]
            .iter()
            .map(|(name, (_, value))| (name.as_str(), value.as_str()));
        values.collect::<Vec<_>>()
    };
    let both = |value| vec![("first", value), ("second", value)];
    assert_eq!(values("net"), both("net 2"));
    assert_eq!(values("web"), both("web 2"));
    assert_eq!(values("database"), both("rows"));
    assert_eq!(values("alone"), both("alone"));
    assert_eq!(values("queue"), both("queue"));
    assert_eq!(values("dns"), [("first", "net 2")]);
    assert_eq!(values("cart"), [("first", &*now["database"]["second"].0)]);
    assert_eq!(values("mail"), [("first", &*now["queue"]["second"].0)]);
    for stack in OLD {
        let names = |of: &Resources| of.values().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        let (was, now) = (names(&was[stack]), names(&now[stack]));
        if stack == "database" {
            assert!(
                was.iter().all(|id| !now.contains(id)),
                "{stack} is replaced"
            );
        } else {
            assert_eq!(was, now, "{stack} is the same");
        }
    }
    let of_database: BTreeSet<String> =
        was["database"].values().map(|(id, _)| id.clone()).collect();
    let destroyed = noted_ids(sandbox, "destroyed");
    assert_eq!(
        destroyed, of_database,
        "what was replaced is destroyed, and nothing else"
    );
    let mut made = noted_ids(sandbox, "made");
    made.retain(|id| !destroyed.contains(id) && !lost.contains(id));
    assert_eq!(made, ids(&now).collect(), "each was made once");
    if with_state {
        let document = document(sandbox);
        for stack in STACKS {
            let entry = &document["stacks"][format!("/{stack}")];
            assert_eq!(entry["last"]["outcome"], "succeeded", "{stack}: {entry}");
            assert!(entry["applied"].is_object(), "{stack}: {entry}");
            assert_eq!(entry["intent"], Value::Null, "{stack}: {entry}");
        }
    }
    let again = orch(sandbox, "plan --full --detailed-exitcode -j 4");
    assert_eq!(again.code(), 0, "{again:?}");
    let resumed = orch(sandbox, "apply plan --resume");
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    assert!(resumed.stderr.contains("nothing to do"), "{resumed:?}");
    if with_state {
        // Where nothing was left to do, the lock of the killed run is there until the next one takes it.
        let tainted = orch(sandbox, "state taint alone");
        assert_eq!(tainted.code(), 0, "the lock is taken over: {tainted:?}");
        assert_eq!(document(sandbox)["lock"], Value::Null);
    }
}

/// Kills applies at moments that are spread over their time, and lets each end at last.
fn kill_applies(with_state: bool) {
    if !has_terraform() {
        return;
    }
    let planned = planned(with_state);
    let was = resources_of(&planned, &STACKS);
    let killed = Killed {
        planned: &planned,
        stacks: &STACKS,
        kills: kills(6),
    };
    let (undisturbed, span) = killed.undisturbed();
    check(&undisturbed, &was, &BTreeSet::new(), with_state);
    killed.each(
        span,
        &BTreeSet::new(),
        |sandbox, lost| {
            let known: BTreeSet<String> = ids(&resources_of(sandbox, &STACKS)).collect();
            let destroyed = noted_ids(sandbox, "destroyed");
            let made = noted_ids(sandbox, "made").into_iter();
            lost.extend(made.filter(|id| !known.contains(id) && !destroyed.contains(id)));
        },
        |sandbox, lost| check(sandbox, &was, lost, with_state),
    );
}

/// The ids of the resources that were made or destroyed.
fn noted_ids(sandbox: &Sandbox, what: &str) -> BTreeSet<String> {
    let noted = noted(sandbox, what).into_iter();
    noted.map(|(_, id)| id).collect()
}

#[test]
fn apply_killed_at_any_time_resumes_to_the_configuration() {
    kill_applies(true);
}

#[test]
fn apply_killed_without_a_state_resumes_to_the_configuration() {
    kill_applies(false);
}
