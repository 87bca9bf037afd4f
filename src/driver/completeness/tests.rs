use super::*;
use crate::driver::read_plan;

/// A plan of a stack that has `t.a` and, in a module, `t.b`, both of which exist.
fn plan(changes: &str, more: &str) -> String {
    let resource = |address: &str| format!(r#"{{"address":"{address}","mode":"managed"}}"#);
    format!(
        r#"{{"format_version":"1.2","complete":true,"resource_changes":[{changes}],
        "prior_state":{{"values":{{"root_module":{{"resources":[{}],
          "child_modules":[{{"resources":[{},{{"address":"data.t.d","mode":"data"}}]}}]}}}}}},
        "configuration":{{"root_module":{{"resources":[{},
            {{"address":"t.many","mode":"managed","count_expression":{{}}}},
            {{"address":"data.t.d","mode":"data"}}],
          "module_calls":{{"m":{{"module":{{"resources":[{}]}}}},
            "each":{{"for_each_expression":{{}},"module":{{"resources":[{}]}}}}}}}}}}{more}}}"#,
        resource("t.a"),
        resource("module.m.t.b"),
        resource("t.a"),
        resource("t.b"),
        resource("t.c"),
    )
}

fn change(address: &str, actions: &str) -> String {
    format!(r#"{{"address":"{address}","mode":"managed","change":{{"actions":[{actions}]}}}}"#)
}

fn both(a: &str, b: &str) -> String {
    [change("t.a", a), change("module.m.t.b", b)].join(",")
}

fn found(text: &str, kind: PlanKind) -> Option<String> {
    let answer = read_plan(text.as_bytes(), kind, false).unwrap();
    answer.unasked.map(|unasked| unasked.to_string())
}

#[test]
fn a_whole_plan_has_every_resource() {
    let moved = r#"{"address":"t.new","previous_address":"t.a","mode":"managed","change":{"actions":["no-op"]}}"#;
    let prior = [
        moved,
        &change("t.a", r#""create""#),
        &change("module.m.t.b", r#""no-op""#),
    ];
    for (changes, expected) in [
        (both(r#""no-op""#, r#""update""#), None),
        (both(r#""delete","create""#, r#""create""#), None),
        (both(r#""forget""#, r#""delete""#), None),
        (prior.join(","), None),
        (change("t.a", r#""update""#), Some("`module.m.t.b`")),
        (String::new(), Some("`t.a`")),
    ] {
        let found = found(&plan(&changes, ""), PlanKind::Normal);
        match expected {
            None => assert_eq!(found, None, "{changes}"),
            Some(expected) => assert!(found.unwrap().contains(expected), "{changes}"),
        }
    }
}

#[test]
fn a_resource_that_does_not_exist_yet_is_missed_too() {
    let text = r#"{"format_version":"1.2","complete":true,
        "configuration":{"root_module":{"resources":[{"address":"t.a","mode":"managed"}]}}}"#;
    let missed =
        Some("its plan lacks `t.a`, as with `-target`, `-destroy` or `-refresh-only`".to_owned());
    assert_eq!(found(text, PlanKind::Normal), missed);
    // There is nothing to destroy.
    assert_eq!(found(text, PlanKind::Destroy), None);
    // Since OpenTofu 1.11, a resource may be switched off.
    for (version, expected) in [("1.5.7", missed), ("1.11.0", None), ("", None)] {
        let version = format!(r#""terraform_version":"{version}","#);
        let text = text.replace(r#""complete":true,"#, &version);
        assert_eq!(found(&text, PlanKind::Normal), expected, "{version}");
    }
}

#[test]
fn a_plan_that_was_not_asked_to_destroy_says_why_it_deletes() {
    let all = both(r#""delete""#, r#""delete""#);
    let destroys = Some("its plan destroys everything, as with `-destroy`".to_owned());
    assert_eq!(found(&plan(&all, ""), PlanKind::Normal), destroys);
    assert_eq!(found(&plan(&all, ""), PlanKind::Destroy), None);
    let reason = r#""mode":"managed","action_reason":"delete_because_count_index""#;
    let explained = all.replace(r#""mode":"managed""#, reason);
    assert_eq!(found(&plan(&explained, ""), PlanKind::Normal), None);
    let output = r#","output_changes":{"o":{"actions":["no-op"]}}"#;
    assert_eq!(found(&plan(&all, output), PlanKind::Normal), None);
    let output = r#","output_changes":{"o":{"actions":["delete"]}}"#;
    assert_eq!(found(&plan(&all, output), PlanKind::Normal), destroys);
}

#[test]
fn a_plan_that_was_asked_for_another_mode_is_in_it() {
    let kept = both(r#""delete""#, r#""no-op""#);
    let expected = Some("its plan should destroy everything but keeps `module.m.t.b`".to_owned());
    assert_eq!(found(&plan(&kept, ""), PlanKind::Destroy), expected);
    assert_eq!(found(&plan("", ""), PlanKind::RefreshOnly), None);
}

#[test]
fn what_a_provider_puts_off_is_not_left_out() {
    let text = plan(&change("t.a", r#""update""#), r#","deferred_changes":[{}]"#)
        .replace(r#""complete":true"#, r#""complete":false"#);
    assert_eq!(found(&text, PlanKind::Normal), None);
    let text = text.replace("deferred_changes", "other");
    let expected = Some("its plan is incomplete, as with `-target`".to_owned());
    assert_eq!(found(&text, PlanKind::Normal), expected);
}
