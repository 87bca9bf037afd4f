use super::*;

#[test]
fn environment_ignores_variables_that_do_not_change_the_plan() {
    for (name, expected) in [
        ("TF_VAR_zone", false),
        ("TF_VAR_token", false),
        ("TF_WORKSPACE", false),
        ("TF_CLI_ARGS", false),
        ("TF_CLI_ARGS_plan", false),
        ("TF_CLI_ARGS_apply", false),
        ("TG_TF_PATH", false),
        ("AWS_PROFILE", false),
        ("TF_HTTP_ADDRESS", false),
        ("TF_LOG", true),
        ("TF_LOG_PROVIDER", true),
        ("TF_TOKEN_app_terraform_io", true),
        ("TF_HTTP_PASSWORD", true),
        ("TF_PLUGIN_CACHE_DIR", true),
        ("TF_CLI_ARGS_init", true),
        ("AWS_SESSION_TOKEN", true),
        ("PATH", true),
    ] {
        assert_eq!(may_differ(name), expected, "{name}");
    }
}

#[test]
fn environment_names_each_difference() {
    let digests = |all: &[(&str, &str)]| -> Digests {
        let all = all.iter();
        all.map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned()))
            .collect()
    };
    let stack = StackPath::parse("/a").unwrap();
    let environment = |host: &[(&str, &str)], own: &[(&str, &str)]| SavedEnvironment {
        key: String::new(),
        host: digests(host),
        sets: vec![digests(own)],
        stacks: BTreeMap::from([(stack.clone(), 0)]),
    };
    let host = [("TF_VAR_a", "1"), ("TF_VAR_b", "1")];
    let own = [("TF_VAR_b", "1")];
    let before = environment(&host, &own);
    let more = [("TF_VAR_b", "1"), (WORKSPACE, "1"), ("driver apply", "1")];
    let cases: [(SavedEnvironment, &[&str]); 5] = [
        (before.clone(), &[]),
        (
            environment(&[("TF_VAR_a", "1"), ("TF_VAR_b", "2")], &own),
            &[],
        ),
        (
            environment(&[("TF_VAR_b", "1")], &own),
            &["the variable `TF_VAR_a`"],
        ),
        (
            environment(&[("TF_VAR_a", "2")], &[("TF_VAR_b", "2")]),
            &["the variable `TF_VAR_a`", "the variable `TF_VAR_b`"],
        ),
        (
            environment(&host, &more),
            &[
                "the command `apply` of its driver",
                "the workspace (`TF_WORKSPACE`)",
            ],
        ),
    ];
    for (now, expected) in cases {
        let found: Vec<String> = before.differences(&now, &stack).into_iter().collect();
        assert_eq!(found, expected);
    }
    // For a removed stack, only the environment of `orch` is known.
    let other = environment(
        &[("TF_VAR_a", "2"), ("TF_VAR_b", "1")],
        &[("TF_VAR_b", "2")],
    );
    let removed = StackPath::parse("/removed").unwrap();
    let found: Vec<String> = before.differences(&other, &removed).into_iter().collect();
    assert_eq!(found, ["the variable `TF_VAR_a`"]);
}
