mod pages;

use std::collections::BTreeMap;

use tempfile::TempDir;

use super::*;
use crate::driver::{ChangeCounts, ResourceChange};
use crate::path::StackPath;
use crate::plan::FailedAsk;
use crate::plan::entry::{PlanEntry, PlanReason, ReasonSource};
use crate::plan::{RelaxedConstraint, RelaxedEffect, WorkBefore};
use crate::record::logs::{Logs, Stream};
use crate::report::{LEAST_MARKDOWN_BYTES, MARKDOWN_BYTES};

fn stack_path(text: &str) -> StackPath {
    StackPath::parse(text).unwrap()
}

fn after(stacks: &[StackPath]) -> WorkBefore {
    WorkBefore {
        stacks: stacks.into(),
        has_more: false,
    }
}

fn entry(path: &str, action: PlannedAction, reason: &str) -> PlanEntry {
    let reason = PlanReason::new(ReasonSource::Config, reason);
    PlanEntry::new(stack_path(path), action, reason)
}

fn plan(entries: Vec<PlanEntry>, failed: &[(&str, &str)]) -> Plan {
    let failed = failed.iter().map(|(path, why)| FailedAsk {
        stack: stack_path(path),
        why: (*why).to_owned(),
        conditions: Vec::new(),
    });
    Plan {
        id: "01a1ffb4".to_owned(),
        entries,
        failed: failed.collect(),
        ..Plan::default()
    }
}

/// What tools have printed, by stack, and whether each has failed.
#[derive(Debug, Default)]
struct Printed(BTreeMap<String, (Vec<u8>, bool)>);

impl Printed {
    fn of(texts: &[(&str, &str)]) -> Self {
        let texts = texts
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (text.as_bytes().into(), false)));
        Printed(texts.collect())
    }

    fn page(&self, plan: &Plan, limit: usize) -> String {
        let folder = TempDir::new().unwrap();
        let logs = Logs::new(folder.path().join("logs"));
        for (number, (path, (text, _))) in self.0.iter().enumerate() {
            let mut log = logs.writer(number, path, 1);
            log.write(Stream::Stdout, text).unwrap();
        }
        let printed = |path: &StackPath| {
            let path = path.as_str();
            let number = self.0.keys().position(|known| known == path)?;
            let (_, has_failed) = self.0[path];
            Some(ToolText {
                log: logs.reader(number, path, 1).transpose()?,
                plan_from: (!has_failed).then_some(0),
            })
        };
        let mut out = Vec::new();
        let texts = ToolTexts {
            of: &printed,
            shown_by: &|path| Some(format!("orch runs logs 01a1ffb4 {path}")),
            run: Some(&plan.id),
        };
        write_plan_markdown(&mut out, plan, &texts, limit).unwrap();
        String::from_utf8(out).unwrap()
    }
}

#[test]
fn plan_page_puts_problems_first_and_folds_tool_output() {
    let mut entries = vec![
        entry("/blocked", PlannedAction::Update, "it differs"),
        entry(
            "/database",
            PlannedAction::Update,
            "database/main.tf differs",
        ),
        entry("/later", PlannedAction::NoOp, "unchanged"),
        entry("/old", PlannedAction::Delete, "--destroy"),
        entry("/unchanged", PlannedAction::NoOp, "unchanged"),
    ];
    entries[0].blocked = Some("another backend than `s3 acme|net`".to_owned());
    entries[1].counts = Some(ChangeCounts {
        change: 1,
        ..ChangeCounts::default()
    });
    entries[2].after = after(&[stack_path("/database"), stack_path("/old")]);
    let plan = plan(entries, &[("/broken", "exit status 1")]);
    let mut printed = Printed::of(&[
        ("/database", "\x1b[33m~\x1b[0m update\r\n```\n</details>\n"),
        ("/blocked", "not to be done\n"),
        ("/broken", "no credentials\n"),
    ]);
    printed.0.get_mut("/broken").unwrap().1 = true;
    insta::assert_snapshot!(printed.page(&plan, MARKDOWN_BYTES), @"
    ### `orch plan`

    Plan: 1 to update, 1 to delete, 1 known after apply, 1 failed, 1 blocked, 1 unchanged. Resources: 1 to change, unknown in 1 stack.

    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `!` | `/broken` | failed | exit status 1 |  |
    | `!` | `/blocked` | blocked | <code>another backend than &#96;s3 acme&#124;net&#96;</code> |  |
    | `-` | `/old` | delete | --destroy |  |
    | `~` | `/database` | update | database/main.tf differs | `+0 ~1 -0` |
    | `?` | `/later` |  | known after /database and /old |  |

    `orch apply` changes nothing while stacks fail to plan. To leave them out, add `--on-error=skip-dependents`.

    Blocked stacks are left unchanged.

    A stack marked `?` is planned during the apply, after the stacks named.

    <details>
    <summary><code>/broken</code>: output</summary>

    ```text
    no credentials
    ```

    </details>

    <details>
    <summary><code>/database</code>: update +0 ~1 -0</summary>

    ````text
    ~ update
    ```
    </details>
    ````

    </details>
    ");
}

fn resource(address: &str, actions: &[&str]) -> ResourceChange {
    ResourceChange {
        address: address.to_owned(),
        previous_address: None,
        actions: actions.iter().map(|&action| action.to_owned()).collect(),
        values: BTreeMap::new(),
        is_tainted: false,
        is_imported: false,
    }
}

#[test]
fn resources_that_are_destroyed_stand_outside_of_the_fold() {
    let mut entries = vec![
        entry(
            "/database",
            PlannedAction::Update,
            "database/main.tf differs",
        ),
        entry("/web", PlannedAction::Update, "web/main.tf differs"),
    ];
    entries[0].resources = vec![
        resource("db.new", &["create"]),
        resource("db.`old`", &["delete"]),
        resource("db.disk", &["create", "delete"]),
    ];
    entries[1].resources = vec![resource("web.a", &["update"])];
    let plan = plan(entries, &[]);
    let printed = Printed::of(&[("/web", "~ web.a\n")]);
    insta::assert_snapshot!(printed.page(&plan, MARKDOWN_BYTES), @"
    ### `orch plan`

    Plan: 2 to update.

    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `~` | `/database` | update | database/main.tf differs |  |
    | `~` | `/web` | update | web/main.tf differs |  |

    Resources to destroy:

    - `-` <code>db&#46;&#96;old&#96;</code> in `/database`
    - `+/-` `db.disk` in `/database`

    <details>
    <summary><code>/database</code>: update</summary>

    ```text
      + db.new
      - db.`old`
    +/- db.disk
    ```

    </details>

    <details>
    <summary><code>/web</code>: update</summary>

    ```text
    ~ web.a

    ~ web.a
    ```

    </details>
    ");
}

#[test]
fn resources_that_have_no_room_are_counted() {
    let mut entries = vec![entry("/a", PlannedAction::Update, "a/main.tf differs")];
    entries[0].resources = (0..1000)
        .map(|number| resource(&format!("db.x[{number}]"), &["delete"]))
        .collect();
    let plan = plan(entries, &[]);
    let page = Printed::default().page(&plan, LEAST_MARKDOWN_BYTES);
    insta::assert_snapshot!(page, @"
    ### `orch plan`

    Plan: 1 to update.

    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `~` | `/a` | update | a/main.tf differs |  |

    Resources to destroy:

    - `-` `db.x[0]` in `/a`
    - `-` `db.x[1]` in `/a`
    - `-` `db.x[2]` in `/a`
    - `-` `db.x[3]` in `/a`
    - `-` `db.x[4]` in `/a`
    - `-` `db.x[5]` in `/a`
    - `-` `db.x[6]` in `/a`
    - `-` `db.x[7]` in `/a`
    - `-` `db.x[8]` in `/a`

    991 more to destroy are left out here.

    <details>
    <summary><code>/a</code>: update</summary>

    ```text
    - db.x[0]
    - db.x[1]
    - db.x[2]
    - db.x[3]
    - db.x[4]
    - db.x[5]
    - db.x[6]
    - db.x[7]
    - db.x[8]
    - db.x[9]
    - db.x[10]
    - db.x[11]
    - db.x[12]
    - db.x[13]
    - db.x[14]
    - db.x[15]
    - db.x[16]
    - db.x[17]
    - db.x[18]
    … 981 more to destroy
    ```

    </details>
    ");
    let page = Printed::default().page(&plan, 10_000);
    assert!(page.len() <= 10_000, "{}", page.len());
    let listed = page.matches("in `/a`").count();
    assert!(
        page.contains(&format!(
            "\n{} more to destroy are left out here.\n",
            1000 - listed
        )),
        "{page}"
    );
    assert!(page.contains("more to destroy\n```"), "{page}");
}

#[test]
fn a_text_that_is_too_long_loses_its_middle() {
    let entries = vec![entry("/a b", PlannedAction::Create, "not recorded")];
    let lines = (0..100).map(|number| format!("line {number} of the plan\n"));
    let text = lines.collect::<Vec<_>>().concat();
    let printed = Printed::of(&[("/a b", &text)]);
    let page = printed.page(&plan(entries, &[]), LEAST_MARKDOWN_BYTES);
    insta::assert_snapshot!(page, @"
    ### `orch plan`

    Plan: 1 to create.

    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `+` | `/a b` | create | not recorded |  |

    <details>
    <summary><code>/a b</code>: create</summary>

    ```text
    line 0 of the plan
    line 1 of the plan
    line 2 of the plan
    line 3 of the plan
    line 4 of the plan
    line 5 of the plan
    line 6 of the plan
    line 7 of the plan
    line 8 of the plan
    line 9 of the plan
    line 10 of the plan
    line 11 of the plan
    line 12 of the plan
    line 13 of the plan
    line 14 of the plan

    orch: 1.3 KiB are left out here; all of it: orch runs logs 01a1ffb4 /a b

    line 85 of the plan
    line 86 of the plan
    line 87 of the plan
    line 88 of the plan
    line 89 of the plan
    line 90 of the plan
    line 91 of the plan
    line 92 of the plan
    line 93 of the plan
    line 94 of the plan
    line 95 of the plan
    line 96 of the plan
    line 97 of the plan
    line 98 of the plan
    line 99 of the plan
    ```

    </details>
    ");
}

#[test]
fn plan_page_cuts_its_table() {
    let paths: Vec<String> = (10..40).map(|number| format!("/stack-{number}")).collect();
    let entries = paths
        .iter()
        .map(|path| entry(path, PlannedAction::Create, "not recorded"));
    let texts: Vec<_> = paths.iter().map(|path| (&**path, "a line\n")).collect();
    let plan = plan(entries.collect(), &[]);
    let page = Printed::of(&texts).page(&plan, LEAST_MARKDOWN_BYTES);
    insta::assert_snapshot!(page, @"
    ### `orch plan`

    Plan: 30 to create.

    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `+` | `/stack-10` | create | not recorded |  |
    | `+` | `/stack-11` | create | not recorded |  |
    | `+` | `/stack-12` | create | not recorded |  |
    | `+` | `/stack-13` | create | not recorded |  |
    | `+` | `/stack-14` | create | not recorded |  |
    | `+` | `/stack-15` | create | not recorded |  |
    | `+` | `/stack-16` | create | not recorded |  |
    | `+` | `/stack-17` | create | not recorded |  |
    | `+` | `/stack-18` | create | not recorded |  |
    | `+` | `/stack-19` | create | not recorded |  |
    | `+` | `/stack-20` | create | not recorded |  |
    | `+` | `/stack-21` | create | not recorded |  |
    | `+` | `/stack-22` | create | not recorded |  |
    | `+` | `/stack-23` | create | not recorded |  |
    | `+` | `/stack-24` | create | not recorded |  |
    | `+` | `/stack-25` | create | not recorded |  |

    14 more stacks are left out here.

    The output of 30 stacks is left out here; `orch runs logs 01a1ffb4` shows it.
    ");
    let page = Printed::of(&texts).page(&plan, 3000);
    assert_eq!(page.matches("| `/stack-").count(), 30, "{page}");
    assert!(page.contains("<details>"), "{page}");
    assert!(
        page.contains("is left out here; `orch runs logs 01a1ffb4` shows"),
        "{page}"
    );
}

/// Every count in the summary has as many digits as a large project could need.
#[test]
fn plan_page_has_room_for_its_fixed_parts() {
    let mut entries: Vec<PlanEntry> = (0..40_000)
        .map(|number| {
            let action = [
                PlannedAction::Create,
                PlannedAction::Update,
                PlannedAction::Replace,
                PlannedAction::Delete,
                PlannedAction::Adopt,
                PlannedAction::Read,
                PlannedAction::NoOp,
            ][number % 7];
            entry(&format!("/{number}"), action, "")
        })
        .collect();
    entries[0].blocked = Some("x".repeat(1000));
    entries[6].after = after(&[stack_path("/y")]);
    let mut plan = plan(entries, &[("/broken", "exit status 1")]);
    plan.mode = PlanMode::RefreshOnly;
    plan.id = "0198a1ff-b400-7000-8000-000000000000".to_owned();
    plan.without_driver = 100_000;
    let relaxed = |number: usize| RelaxedConstraint {
        effect: [
            RelaxedEffect::DestroyedFirst,
            RelaxedEffect::ChangedFirst,
            RelaxedEffect::Contradicted,
        ][number % 3],
        earlier: format!("{number}{}", "x".repeat(1000)),
        later: "y".repeat(1000),
    };
    plan.relaxed = (0..30_000).map(relaxed).collect();
    let mut printed = Printed::default();
    for entry in plan.entries.iter().take(20) {
        let path = entry.stack.as_str().to_owned();
        printed.0.insert(path, (b"x".repeat(1000), false));
    }
    let page = printed.page(&plan, LEAST_MARKDOWN_BYTES);
    assert!(page.len() <= LEAST_MARKDOWN_BYTES, "{}", page.len());
    for told in [
        "marked `?`",
        "Blocked stacks",
        "failed",
        "more stacks",
        "`orch runs logs",
        "10000 stacks are destroyed while",
        "10000 stacks are changed while",
        "10000 recorded constraints",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
}

#[test]
fn notes_count_the_stacks_that_are_destroyed_or_changed_while_others_refer_to_them() {
    let mut plan = plan(Vec::new(), &[]);
    let relaxed = |effect, earlier: &str, later: &str| RelaxedConstraint {
        effect,
        earlier: earlier.to_owned(),
        later: later.to_owned(),
    };
    plan.relaxed = vec![
        relaxed(RelaxedEffect::DestroyedFirst, "/a", "/x"),
        relaxed(RelaxedEffect::DestroyedFirst, "/a", "/y"),
        relaxed(RelaxedEffect::ChangedFirst, "/b", "/x"),
        relaxed(RelaxedEffect::ChangedFirst, "/c", "/x"),
        relaxed(RelaxedEffect::Contradicted, "/d", "/x"),
        relaxed(RelaxedEffect::Contradicted, "/d", "/y"),
    ];
    let page = Printed::default().page(&plan, LEAST_MARKDOWN_BYTES);
    for told in [
        "\n1 stack is destroyed while another still refers to it.\n",
        "\n2 stacks are changed while others still refer to them, which are then destroyed.\n",
        "\n2 recorded constraints are left out, since newer ones contradict them.\n",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
}
