use std::collections::BTreeMap;

use super::*;

fn plan(fields: &str, kind: PlanKind) -> DriverAnswer {
    let text = format!(r#"{{"format_version":"1.2"{fields}}}"#);
    read_plan(text.as_bytes(), kind, false).unwrap()
}

/// Returns outputs of these values, as a driver would print them.
fn outputs(text: &str) -> Outputs {
    Outputs::of_driver(text.as_bytes()).unwrap()
}

/// Returns outputs with these digests, as a file has them.
fn as_read(digests: impl Iterator<Item = (String, Option<String>)>) -> Outputs {
    let digests: BTreeMap<String, Option<String>> = digests.collect();
    serde_json::from_value(serde_json::to_value(digests).unwrap()).unwrap()
}

const OUTPUTS: &str = r#","prior_state":{"values":{"outputs":{"set":{"sensitive":false,"value":"new"}}}},
    "output_changes":{
        "set":{"actions":["update"],"before":"old","after":"new","after_unknown":false,"before_sensitive":false,"after_sensitive":false},
        "kept":{"actions":["no-op"],"before":[1,2.0],"after":[1.0,2],"after_unknown":false,"before_sensitive":false,"after_sensitive":false},
        "null":{"actions":["no-op"],"before":null,"after":null,"after_unknown":false},
        "gone":{"actions":["delete"],"before":"x","after":null,"after_unknown":false},
        "part":{"actions":["update"],"before":{"id":1,"k":2},"after":{"k":2},"after_unknown":{"id":true},"after_sensitive":false}
    }"#;

#[test]
fn outputs_are_what_others_can_read_before_and_after() {
    let normal = plan(OUTPUTS, PlanKind::Normal);
    let before = outputs(r#"{"set":"old","kept":[1,2],"gone":"x","part":{"k":2,"id":1}}"#);
    assert_eq!(normal.outputs_before.as_ref(), Some(&before));
    let known = outputs(r#"{"set":"new","kept":[1,2]}"#)
        .digests()
        .into_iter()
        .map(|(name, digest)| (name, Some(digest)));
    let after = known.chain([("part".to_owned(), None)]);
    assert_eq!(normal.outputs, Some(as_read(after)));
    let refreshed = plan(OUTPUTS, PlanKind::RefreshOnly);
    assert_eq!(refreshed.outputs, Some(before), "nobody applies it");
    assert_eq!(plan("", PlanKind::Normal).outputs, Some(Outputs::default()));
}

#[test]
fn a_refresh_finds_the_outputs_of_a_state_that_has_none() {
    let found = plan(
        r#","output_changes":{
            "id":{"actions":["create"],"before":null,"after":"i-1","after_unknown":false,"before_sensitive":false,"after_sensitive":false},
            "key":{"actions":["create"],"before":null,"after":"x","after_unknown":false,"before_sensitive":true,"after_sensitive":true}
        }"#,
        PlanKind::RefreshOnly,
    );
    let known = outputs(r#"{"id":"i-1"}"#)
        .digests()
        .into_iter()
        .map(|(name, digest)| (name, Some(digest)));
    let expected = as_read(known.chain([("key".to_owned(), None)]));
    assert_eq!(found.outputs, Some(expected));
}

#[test]
fn nothing_is_known_of_sensitive_outputs() {
    let sensitive = |before: &str, after: &str| {
        let change = format!(
            r#","output_changes":{{"key":{{"actions":["update"],"before":"{before}","after":"{after}","before_sensitive":true,"after_sensitive":true}}}}"#
        );
        let answer = plan(&change, PlanKind::Normal);
        (answer.outputs, answer.outputs_before)
    };
    assert_eq!(sensitive("a", "b"), sensitive("c", "d"));
    let none = as_read([("key".to_owned(), None)].into_iter());
    assert_eq!(sensitive("a", "b"), (Some(none.clone()), Some(none)));
}

#[test]
fn a_plan_that_leaves_something_out_says_nothing_of_outputs() {
    let partial = plan(&format!(r#"{OUTPUTS},"complete":false"#), PlanKind::Normal);
    assert!(!partial.is_complete && partial.has_changes);
    assert_eq!((partial.outputs, partial.outputs_before), (None, None));
    for complete in ["", r#","complete":true"#] {
        let answer = plan(&format!("{OUTPUTS}{complete}"), PlanKind::Normal);
        assert!(answer.is_complete && answer.outputs.is_some());
    }
}

#[test]
fn values_of_a_resource_are_those_that_are_known() {
    let answer = plan(
        r#","resource_changes":[
            {"address":"a.b","mode":"managed","action_reason":"replace_because_tainted","change":{
                "actions":["delete","create"],"before":{"id":"1"},
                "after":{"size":1.0,"list":["a"],"empty":null},
                "after_unknown":{"id":true,"list":[false],"nested":[{"id":true}],"none":[]}}},
            {"address":"a.c","mode":"managed","change":{
                "actions":["delete"],"before":{"id":"1"},"after":null,"after_unknown":false}}]"#,
        PlanKind::Normal,
    );
    let [replaced, deleted] = answer.resources.as_slice() else {
        panic!("{answer:?}");
    };
    assert!(replaced.is_tainted && !deleted.is_tainted);
    let known = outputs(r#"{"size":1,"list":["a"],"empty":null}"#)
        .digests()
        .into_iter();
    let mut values: BTreeMap<String, Option<String>> =
        known.map(|(name, digest)| (name, Some(digest))).collect();
    values.extend(["id", "nested"].map(|name| (name.to_owned(), None)));
    assert_eq!(replaced.values, values);
    assert!(deleted.values.is_empty());
}

#[test]
fn what_is_no_plan_is_refused_without_quoting_it() {
    let refused = |text: &str| {
        let error = read_plan(text.as_bytes(), PlanKind::Normal, false).unwrap_err();
        error.to_string()
    };
    let place = "the output of `show -json` is not a plan: line 1, column 27";
    assert_eq!(refused(r#"{"format_version":"hunter2""#), place);
    let errored = refused(r#"{"format_version":"1.2","errored":"hunter2"}"#);
    assert!(
        errored.contains("`show -json`") && !errored.contains("hunter2"),
        "{errored}"
    );
}

#[test]
fn a_move_or_an_import_is_a_change() {
    let answer = |own: &str, change: &str| {
        let change =
            format!(r#"{{"address":"t.b","mode":"managed"{own},"change":{{"actions":{change}}}}}"#);
        let text = format!(r#"{{"format_version":"1.2","resource_changes":[{change}]}}"#);
        read_plan(text.as_bytes(), PlanKind::Normal, false).unwrap()
    };
    let from = r#","previous_address":"t.a""#;
    let import = r#"["no-op"],"importing":{"id":"x"}"#;
    for (own, change, action) in [
        (from, r#"["no-op"]"#, "move"),
        ("", import, "import"),
        ("", &import.replace("no-op", "update"), "update"),
        (from, r#"["update"]"#, "update"),
    ] {
        let answer = answer(own, change);
        assert!(answer.has_changes, "{action}");
        assert_eq!(answer.resources[0].action(), action);
        assert_eq!(answer.resources[0].is_imported, change.contains("import"));
    }
    let quiet = answer(
        r#","previous_address":"t.b""#,
        r#"["no-op"],"importing":null"#,
    );
    assert!(!quiet.has_changes && quiet.resources.is_empty());
}

#[test]
fn a_plan_without_the_changes_that_its_status_tells_is_refused() {
    let read = |changes: &str| {
        let text = format!(r#"{{"format_version":"1.2"{changes}}}"#);
        read_plan(text.as_bytes(), PlanKind::Normal, true)
    };
    let of = |mode: &str, actions: &str| {
        format!(
            r#","resource_changes":[{{"address":"t.a","mode":"{mode}","change":{{"actions":{actions}}}}}]"#
        )
    };
    for changes in ["", r#","foo":1"#, &of("managed", r#"["no-op"]"#)] {
        let read = read(changes);
        assert!(matches!(read, Err(BadPlan::LacksChanges)), "{changes}");
    }
    for changes in [
        &of("managed", r#"["update"]"#),
        &of("data", r#"["read"]"#),
        r#","output_changes":{"a":{"actions":["update"]}}"#,
        r#","deferred_changes":[{}]"#,
    ] {
        assert!(read(changes).is_ok(), "{changes}");
    }
    for actions in ["[]", r#"["explode"]"#, r#"["no-op","explode"]"#] {
        let read = read(&of("managed", actions));
        assert!(matches!(read, Err(BadPlan::Action(_))), "{actions}");
    }
}

#[test]
fn a_refresh_changes_no_resource() {
    let text = r#"{"format_version":"1.2","resource_changes":[{"address":"a.b","mode":"managed","change":{"actions":["ACTION"]}}]}"#;
    let refreshed = |action: &str| {
        let text = text.replace("ACTION", action);
        read_plan(text.as_bytes(), PlanKind::RefreshOnly, false)
    };
    assert!(refreshed("no-op").is_ok());
    for action in ["update", "delete", "create"] {
        assert!(matches!(refreshed(action), Err(BadPlan::NotRefreshOnly)));
    }
}

#[test]
fn a_plan_that_destroys_all_that_exists_leaves_nothing() {
    let leaves_nothing = |prior: &[&str], changes: &[(&str, &str)]| {
        let prior = prior.iter().map(|it| {
            let (address, mode) = it.split_once(' ').unwrap_or((it, "managed"));
            format!(r#"{{"address":"{address}","mode":"{mode}"}}"#)
        });
        let changes = changes.iter().map(|(it, actions)| {
            let (address, mode) = it.split_once(' ').unwrap_or((it, "managed"));
            format!(
                r#"{{"address":"{address}","mode":"{mode}","change":{{"actions":[{actions}]}}}}"#
            )
        });
        let (prior, changes) = (
            prior.collect::<Vec<_>>().join(","),
            changes.collect::<Vec<_>>().join(","),
        );
        let fields = format!(
            r#","resource_changes":[{changes}],"prior_state":{{"values":{{"root_module":{{"resources":[],"child_modules":[{{"resources":[{prior}]}}]}}}}}}"#
        );
        let is_destroyed = plan(&fields, PlanKind::Destroy).leaves_nothing;
        assert!(!is_destroyed, "a destroy is no update");
        plan(&fields, PlanKind::Normal).leaves_nothing
    };
    let (delete, forget) = ("\"delete\"", "\"forget\"");
    assert!(leaves_nothing(&["a.b"], &[("a.b", delete)]));
    let of_data = [("a.b", delete), ("data.c.d data", "\"read\"")];
    assert!(leaves_nothing(&["a.b", "data.c.d data"], &of_data));
    let forgotten = [("a.b", delete), ("a.c", forget)];
    assert!(leaves_nothing(&["a.b", "a.c"], &forgotten));
    assert!(
        !leaves_nothing(&["a.b"], &[("a.b", forget)]),
        "nothing is destroyed"
    );
    assert!(!leaves_nothing(
        &["a.b"],
        &[("a.b", "\"delete\",\"create\"")]
    ));
    for kept in ["\"create\"", "\"no-op\"", "\"update\""] {
        assert!(!leaves_nothing(&["a.b"], &[("a.b", delete), ("a.c", kept)]));
    }
    // Resources that a plan leaves out are kept.
    assert!(!leaves_nothing(&["a.b", "a.c"], &[("a.b", delete)]));
    assert!(!leaves_nothing(&["data.c.d data"], &[]));
}

#[test]
fn an_address_is_that_of_its_deposed_objects_too() {
    let change = r#","resource_changes":[{"address":"a.b[\"x (deposed y)\"]","deposed":"1f","change":{"actions":["delete"]}},{"address":"a.b[\"x (deposed y)\"]","change":{"actions":["update"]}}]"#;
    let resources = plan(change, PlanKind::Normal).resources;
    let bases = resources.iter().map(ResourceChange::base_address);
    assert_eq!(bases.collect::<Vec<_>>(), [r#"a.b["x (deposed y)"]"#; 2]);
    assert!(resources[0].address.ends_with(" (deposed 1f)"));
}
