use super::*;

/// Parses a change, its values as `name=digest`, `?` if unknown: `update x.a size=1 id=? tainted`.
fn resource(line: &str) -> ResourceChange {
    let mut words = line.split_whitespace();
    let actions = words.next().unwrap();
    let mut resource = ResourceChange {
        address: words.next().unwrap().replace('_', " "),
        previous_address: None,
        actions: actions.split('+').map(str::to_owned).collect(),
        values: std::collections::BTreeMap::new(),
        is_tainted: false,
        is_imported: false,
    };
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => {
                let value = Some(value.to_owned()).filter(|value| value != "?");
                resource.values.insert(name.to_owned(), value);
            }
            None => resource.is_tainted = true,
        }
    }
    resource
}

fn resources(lines: &str) -> Vec<ResourceChange> {
    let lines = lines
        .split(';')
        .map(str::trim)
        .filter(|line| !line.is_empty());
    lines.map(resource).collect()
}

fn cells<const N: usize>(row: &str) -> [&str; N] {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    cells.try_into().unwrap()
}

/// Parses the word of an action; `later` for a provisional entry.
fn parse(action: &str) -> Option<PlannedAction> {
    (action != "later").then(|| serde_json::from_value(action.into()).unwrap())
}

/// Counts as `add change remove`.
fn counts(text: &str) -> Option<ChangeCounts> {
    let mut numbers = text
        .split_whitespace()
        .map(|number| number.parse().unwrap());
    Some(ChangeCounts {
        add: numbers.next()?,
        change: numbers.next()?,
        remove: numbers.next()?,
    })
}

/// Returns the counts of changes beyond a plan; without an action, the entry is provisional.
fn beyond(
    action: Option<PlannedAction>,
    shown: &str,
    now: &str,
    is_partly_applied: bool,
) -> String {
    let shown = ShownChanges {
        action,
        counts: None,
        resources: resources(shown),
        changes: None,
        is_provisional: action.is_none(),
    };
    beyond_shown(&shown, now, is_partly_applied)
}

fn beyond_shown(shown: &ShownChanges, now: &str, is_partly_applied: bool) -> String {
    let answer = DriverAnswer {
        has_changes: true,
        resources: resources(now),
        ..DriverAnswer::default()
    };
    match shown.check(&answer, is_partly_applied) {
        Ok(()) => String::new(),
        Err(UnshownChanges {
            counts:
                Some(ChangeCounts {
                    add,
                    change,
                    remove,
                }),
            ..
        }) => format!("+{add} ~{change} -{remove}"),
        Err(UnshownChanges { counts: None, .. }) => "unknown".to_owned(),
    }
}

#[test]
fn within_requires_each_change_to_be_shown() {
    // The action, the shown changes, those now, and how far they are beyond.
    let table = [
        // Equal changes.
        "update | update x.a | update x.a | ",
        "update | create x.a; delete x.b | delete x.b | ",
        "update | delete+create x.a | delete+create x.a | ",
        // Other addresses and actions.
        "update | update x.a | update x.b | +0 ~1 -0",
        "update | update x.a | create x.b | +1 ~0 -0",
        "update | update x.a | delete x.a | +0 ~0 -1",
        "update | update x.a | forget x.a | +0 ~0 -1",
        "update | update x.a | delete+create x.a | +1 ~0 -1",
        "update | delete+create x.a | create+delete x.a | +1 ~0 -1",
        "update | delete+create x.a | update x.a | +0 ~1 -0",
        "update | delete+create x.a | delete x.a | +0 ~0 -1",
        "update |  | update x.a; update x.b; create x.c | +1 ~2 -0",
        // A create is limited to the shown changes.
        "create | create x.a | create x.a | ",
        "create | create x.a | create x.a; create x.b | +1 ~0 -0",
        "create |  | create x.a | +1 ~0 -0",
        "create | create x.a | update x.b | +0 ~1 -0",
        "create | create x.a | delete x.b | +0 ~0 -1",
        "create | create x.a size=1 | create x.a size=2 | +1 ~0 -0",
        "create | create x.a size=? | create x.a size=2 | ",
        // The second half of a replace may create anything.
        "replace | delete x.a | create x.a; create x.b | ",
        "replace | delete x.a | update x.b | +0 ~1 -0",
        "replace | delete x.a | delete x.b | +0 ~0 -1",
        // An entry that is decided during the apply may create and update.
        "later |  | create x.a; update x.b | ",
        "later |  | delete x.a | +0 ~0 -1",
        "later |  | delete+create x.a | +1 ~0 -1",
        "later |  | create+delete x.a | +1 ~0 -1",
        "later |  | forget x.a | +0 ~0 -1",
        // A delete only deletes.
        "delete | delete x.a | delete x.b | ",
        "delete | delete x.a | create x.a | +1 ~0 -0",
        // Data sources are no changes, unless they were not shown.
        "update | read data.x.a | read data.x.a | ",
    ];
    for row in table {
        let [action, shown, now, expected] = cells(row);
        assert_eq!(beyond(parse(action), shown, now, false), expected, "{row}");
    }
}

#[test]
fn within_lets_provisional_entries_create_and_update() {
    let table = [
        ("update x.a", "update x.b", ""),
        ("create x.a", "create x.a; create x.b; update x.c", ""),
        ("create x.a v=1", "create x.a v=2", ""),
        ("update x.a v=1", "update x.a v=2", ""),
        ("delete x.a", "delete x.a", ""),
        ("delete+create x.a v=1", "delete+create x.a v=2", ""),
        // Neither another resource nor other actions.
        ("delete x.a", "delete x.b", "+0 ~0 -1"),
        ("update x.a", "delete+create x.a", "+1 ~0 -1"),
        ("delete+create x.a", "delete x.a", "+0 ~0 -1"),
        ("create x.a", "forget x.a", "+0 ~0 -1"),
    ];
    for action in [PlannedAction::Create, PlannedAction::Update] {
        for (before, now, expected) in table {
            let shown = ShownChanges {
                action: Some(action),
                counts: None,
                resources: resources(before),
                changes: None,
                is_provisional: true,
            };
            let found = beyond_shown(&shown, now, false);
            assert_eq!(found, expected, "{action:?}: {before} | {now}");
        }
    }
}

#[test]
fn within_limits_provisional_destroys_by_count() {
    let table = [
        ("0 1 0", "9 9 0", true),
        ("0 1 2", "0 0 2", true),
        ("0 1 2", "0 0 3", false),
        ("", "0 0 1", false),
        ("0 0 0", "", true),
    ];
    for (before, now, expected) in table {
        let shown = ShownChanges {
            action: Some(PlannedAction::Update),
            counts: counts(before),
            resources: Vec::new(),
            changes: Some("x".to_owned()),
            is_provisional: true,
        };
        let answer = DriverAnswer {
            has_changes: true,
            counts: counts(now),
            changes: Some("y".to_owned()),
            ..DriverAnswer::default()
        };
        let found = shown.check(&answer, false).is_ok();
        assert_eq!(found, expected, "{before} | {now}");
    }
}

#[test]
fn within_compares_known_values() {
    let table = [
        ("size=1", "size=1", ""),
        ("size=1", "size=2", "+0 ~1 -0"),
        ("size=1", "size=?", "+0 ~1 -0"),
        ("size=?", "size=2", ""),
        ("size=?", "size=?", ""),
        ("size=1 name=?", "size=1 name=x", ""),
        ("size=1 name=x", "size=1 name=y", "+0 ~1 -0"),
        // A removed attribute is another value; an added one was unknown.
        ("size=1 name=x", "name=x", "+0 ~1 -0"),
        ("name=x", "size=1 name=x", ""),
    ];
    for (shown, now, expected) in table {
        let [shown, now] = [shown, now].map(|values| format!("update x.a {values}"));
        let found = beyond(Some(PlannedAction::Update), &shown, &now, false);
        assert_eq!(found, expected, "{shown} | {now}");
    }
    // A deleted resource has no values.
    let found = beyond(
        Some(PlannedAction::Update),
        "delete x.a size=1",
        "delete x.a",
        false,
    );
    assert_eq!(found, "");
}

#[test]
fn within_accepts_the_rest_of_a_partly_applied_plan() {
    // As above; how far beyond, without and with a part of the plan applied.
    let table = [
        "update | delete+create x.a | create x.a | +1 ~0 -0 | ",
        "update | delete+create x.a | delete x.a | +0 ~0 -1 | ",
        "update | update x.a | create x.a | +1 ~0 -0 | +1 ~0 -0",
        "update | update x.a | delete+create x.a tainted | +1 ~0 -1 | +1 ~0 -1",
        "update | create x.a | delete+create x.a tainted | +1 ~0 -1 | ",
        "update | create x.a | delete+create x.a | +1 ~0 -1 | +1 ~0 -1",
        "update | delete+create x.a s=1 | create x.a s=1 | +1 ~0 -0 | ",
        "update | delete+create x.a s=1 | create x.a s=2 | +1 ~0 -0 | +1 ~0 -0",
        // Resources of its own that a create finds are from an earlier attempt.
        "create | create x.a | delete+create x.a tainted | +1 ~0 -1 | ",
        "create | create x.a | update x.a | +0 ~1 -0 | ",
        "create | create x.a s=1 | update x.a s=2 | +0 ~1 -0 | +0 ~1 -0",
        "create | create x.a | create x.b | +1 ~0 -0 | +1 ~0 -0",
        "create | create x.a | delete x.b | +0 ~0 -1 | +0 ~0 -1",
        "replace | delete x.a | delete+create x.a tainted | +1 ~0 -1 | ",
        "create | create x.a | delete+create x.b | +1 ~0 -1 | +1 ~0 -1",
        "later |  | delete+create x.a tainted | +1 ~0 -1 | ",
        "later |  | delete+create x.a | +1 ~0 -1 | +1 ~0 -1",
        "later |  | delete x.a | +0 ~0 -1 | +0 ~0 -1",
    ];
    for row in table {
        let [action, shown, now, first, again] = cells(row);
        let found = [false, true].map(|is_partly| beyond(parse(action), shown, now, is_partly));
        assert_eq!(found, [first, again], "{row}");
    }
}

#[test]
fn within_covers_deposed_objects() {
    // Half of a `create_before_destroy`: the old object is left, with a deposed key.
    let table = [
        ("create+delete x.a", "+0 ~0 -1", ""),
        ("update x.a", "+0 ~0 -1", "+0 ~0 -1"),
        ("create+delete x.b", "+0 ~0 -1", "+0 ~0 -1"),
    ];
    for (shown, first, again) in table {
        let now = "delete x.a_(deposed_1b2c)";
        let update = Some(PlannedAction::Update);
        let found =
            [false, true].map(|is_partly_applied| beyond(update, shown, now, is_partly_applied));
        assert_eq!(found, [first, again], "{shown}");
    }
    // The same object was shown.
    let deposed = "delete x.a_(deposed_1b2c)";
    assert_eq!(
        beyond(Some(PlannedAction::Update), deposed, "delete x.a", false),
        "+0 ~0 -1"
    );
    assert_eq!(
        beyond(Some(PlannedAction::Update), deposed, deposed, false),
        ""
    );
}

/// Returns whether the answer of a driver without resources is within a plan: counts as `add change
/// remove` and a digest of the changes; each may be empty.
fn is_within(
    action: Option<PlannedAction>,
    shown: (&str, &str),
    now: (&str, &str),
    is_partly_applied: bool,
) -> bool {
    let digest = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let shown = ShownChanges {
        action,
        counts: counts(shown.0),
        resources: Vec::new(),
        changes: digest(shown.1),
        is_provisional: action.is_none(),
    };
    let answer = DriverAnswer {
        has_changes: true,
        counts: counts(now.0),
        changes: digest(now.1),
        ..DriverAnswer::default()
    };
    let is_within = shown.check(&answer, is_partly_applied);
    let beyond = UnshownChanges::counted(answer.counts);
    assert!(is_within.is_ok() || is_within == Err(beyond));
    is_within.is_ok()
}

#[test]
fn within_compares_digests_then_counts_without_names() {
    use PlannedAction::{Adopt, Create, Delete, Replace, Update};
    let table = [
        // Equal digests are equal changes, whatever the counts.
        (Some(Update), ("1 1 1", "x"), ("1 1 1", "x"), true),
        (Some(Update), ("1 1 1", "x"), ("1 1 1", "y"), false),
        (Some(Update), ("", "x"), ("", "y"), false),
        (Some(Update), ("1 1 1", "x"), ("0 0 0", "y"), true),
        // Without both digests, no count may be higher.
        (Some(Update), ("1 2 3", ""), ("1 2 3", ""), true),
        (Some(Update), ("1 2 3", "x"), ("0 1 2", ""), true),
        (Some(Update), ("1 2 3", ""), ("2 2 3", "x"), false),
        (Some(Update), ("1 2 3", ""), ("1 3 3", ""), false),
        (Some(Update), ("1 2 3", ""), ("1 2 4", ""), false),
        (Some(Update), ("1 2 3", ""), ("", ""), false),
        // Nothing was counted.
        (Some(Update), ("", ""), ("9 9 0", ""), true),
        (Some(Update), ("", ""), ("9 9 9", ""), false),
        (Some(Update), ("", ""), ("", ""), true),
        // A create is limited to the shown changes.
        (Some(Create), ("1 0 0", ""), ("1 0 0", ""), true),
        (Some(Create), ("1 0 0", ""), ("2 0 0", ""), false),
        (Some(Create), ("1 0 0", ""), ("1 0 1", ""), false),
        (Some(Create), ("1 0 0", "x"), ("1 0 0", "y"), false),
        (Some(Create), ("", ""), ("9 9 0", ""), true),
        // These may add anything and remove nothing.
        (Some(Replace), ("0 0 1", ""), ("5 0 0", ""), true),
        (Some(Replace), ("0 0 1", ""), ("0 0 1", ""), false),
        (None, ("", ""), ("5 5 0", ""), true),
        (None, ("", ""), ("0 0 1", ""), false),
        (None, ("", ""), ("", ""), true),
        (Some(Delete), ("0 0 1", ""), ("0 0 9", ""), true),
        (Some(Adopt), ("0 0 0", ""), ("0 1 0", ""), false),
    ];
    for (action, shown, now, expected) in table {
        let found = is_within(action, shown, now, false);
        assert_eq!(found, expected, "{action:?}: {shown:?} | {now:?}");
    }
}

#[test]
fn within_ignores_the_digest_of_a_partly_applied_plan() {
    let update = Some(PlannedAction::Update);
    let table = [
        (("2 2 2", "x"), ("1 2 2", "y"), true),
        (("2 2 2", "x"), ("2 2 2", "x"), true),
        (("2 2 2", "x"), ("3 2 2", "y"), false),
        (("2 2 2", "x"), ("", "y"), false),
        (("", "x"), ("", "y"), false),
        (("", "x"), ("", "x"), true),
    ];
    for (shown, now, expected) in table {
        let found = is_within(update, shown, now, true);
        assert_eq!(found, expected, "{shown:?} | {now:?}");
    }
}

#[test]
fn within_refuses_unshown_replacements() {
    let shown = ShownChanges {
        action: Some(PlannedAction::Create),
        counts: None,
        resources: Vec::new(),
        changes: None,
        is_provisional: false,
    };
    let answer = DriverAnswer {
        action: Some(DriverAction::Replace),
        ..DriverAnswer::default()
    };
    let not_shown = shown.check(&answer, true).unwrap_err();
    let text = "has changes that the plan does not show";
    assert_eq!(not_shown.to_string(), text);
    let names = |number: u8| (0..number).map(|it| format!("x.a[{it}]")).collect();
    for (number, named) in [
        (0, ""),
        (1, ": would destroy `x.a[0]`"),
        (
            7,
            ": would destroy `x.a[0]`, `x.a[1]`, `x.a[2]`, `x.a[3]`, `x.a[4]` and 2 more",
        ),
    ] {
        let counted = UnshownChanges {
            counts: counts("1 2 3"),
            destroyed: names(number),
        };
        assert_eq!(counted.to_string(), format!("{text}{named} (+1 ~2 -3)"));
    }
}
