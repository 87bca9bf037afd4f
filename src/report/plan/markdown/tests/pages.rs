//! Laws of Markdown pages of random plans.

use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..3000),
        "[`~\n x]{0,2000}".prop_map(String::into_bytes),
        "\\PC{0,1000}".prop_map(String::into_bytes),
        Just(b"````\n</details>\n<details>\n".repeat(300)),
        Just("ü€🚀".repeat(1000).into_bytes()),
    ]
}

fn stack() -> impl Strategy<Value = (String, PlanEntry, Vec<u8>, bool)> {
    let path = prop_oneof![
        "/[a-z]{1,8}",
        "/[`|<>&*_@#\\\\ a-z]{1,30}[a-z]",
        "/[^/\\x00\\PC]{1,200}x",
    ];
    let path = path.prop_filter("a path", |path| StackPath::parse(path).is_some());
    let action = prop_oneof![
        Just(PlannedAction::NoOp),
        Just(PlannedAction::Create),
        Just(PlannedAction::Update),
        Just(PlannedAction::Replace),
        Just(PlannedAction::Read),
    ];
    let blocked = prop::option::of("[`|<>\n a-z]{1,300}");
    let parts = (
        path,
        action,
        "[`|<>\n a-z]{0,300}",
        blocked,
        text(),
        any::<bool>(),
        any::<bool>(),
        resources(),
    );
    parts.prop_map(
        |(path, action, reason, blocked, text, waits, has_failed, resources)| {
            let mut entry = entry(&path, action, &reason);
            entry.resources = resources;
            entry.blocked = blocked;
            if waits {
                entry.after = after(&[stack_path("/`before`")]);
            }
            (path, entry, text, has_failed)
        },
    )
}

fn resources() -> impl Strategy<Value = Vec<ResourceChange>> {
    let is_destroyed = any::<bool>();
    let resource = ("[`|<>\n a-z]{1,100}", is_destroyed).prop_map(|(address, is_destroyed)| {
        let action = if is_destroyed { "delete" } else { "create" };
        resource(&address, &[action])
    });
    prop::collection::vec(resource, 0..30)
}

/// Checks that every block of code ends, and every `<details>`: outside of code, their lines alternate.
fn check_balance(page: &str) -> Result<(), TestCaseError> {
    let mut fence: Option<&str> = None;
    let mut is_open = false;
    for line in page.lines() {
        match (fence, line) {
            (Some(end), line) if line == end => fence = None,
            (None, line) if line.starts_with("```") => {
                prop_assert!(is_open && line.ends_with("text"), "{}", page);
                fence = line.strip_suffix("text");
            }
            (None, "<details>") => {
                prop_assert!(!is_open, "{}", page);
                is_open = true;
            }
            (None, "</details>") => {
                prop_assert!(is_open, "{}", page);
                is_open = false;
            }
            _ => {}
        }
    }
    prop_assert!(fence.is_none() && !is_open, "{}", page);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plan_pages_fit_and_close_their_markup(
        stacks in prop::collection::vec(stack(), 0..20),
        limit in LEAST_MARKDOWN_BYTES..20_000,
    ) {
        let mut printed = Printed::default();
        let mut entries = BTreeMap::new();
        for (path, entry, text, has_failed) in stacks {
            printed.0.insert(path.clone(), (text, has_failed));
            entries.insert(path, entry);
        }
        let plan = plan(entries.into_values().collect(), &[]);
        let n_shown = shown_rows(&plan).count();
        let whole = printed.page(&plan, usize::MAX);
        for limit in [limit, whole.len().max(LEAST_MARKDOWN_BYTES)] {
            let page = printed.page(&plan, limit);
            prop_assert!(page.len() <= limit, "{} > {limit}", page.len());
            prop_assert_eq!(page == whole, whole.len() <= limit);
            check_balance(&page)?;
            let n_rows = page.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |")).count().saturating_sub(2);
            let missing = page.lines().find_map(|line| line.split_once(" more stack"));
            let n_missing = missing.map_or(0, |(count, _)| count.parse().unwrap());
            prop_assert_eq!(n_rows + n_missing, n_shown, "{}", page);
        }
    }
}
