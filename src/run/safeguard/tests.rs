//! Which safeguards are on: what the configuration says, and what the user says over it.

use super::{Disabled, is_on};
use crate::project::config::{Safeguard, SafeguardKeyword};
use crate::project::{Problems, Project};

const ALL: [Safeguard; 3] = [
    Safeguard::GitUntracked,
    Safeguard::GitUncommitted,
    Safeguard::GitOutOfSync,
];

/// Returns the safeguards that are on with this in the block `config`, and this list of the user's.
fn on(config: &str, disabled: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let text = format!("orch {{\n  root = true\n  config {{\n{config}\n  }}\n}}\n");
    std::fs::write(directory.path().join("root.orch.hcl"), text).expect("it can be written to");
    let mut problems = Problems::default();
    let project = Project::load(directory.path(), &mut problems).expect("it can be read");
    assert!(problems.diagnostics.is_empty(), "{problems:?}");
    let keywords = disabled
        .split_terminator(',')
        .map(SafeguardKeyword::parse)
        .collect::<Option<Vec<_>>>()
        .expect(disabled);
    let disabled = Disabled::new(keywords).expect("it does not contradict itself");
    let on = ALL.map(|safeguard| {
        let is_on = is_on(safeguard, &disabled, &project.settings.safeguards);
        is_on.then(|| safeguard.name().trim_start_matches("git-"))
    });
    on.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_configuration_switches_safeguards() {
    let rows = [
        ("", "untracked uncommitted"),
        ("disable_safeguards = []", "untracked uncommitted"),
        (r#"disable_safeguards = ["git-untracked"]"#, "uncommitted"),
        (r#"disable_safeguards = ["git-uncommitted"]"#, "untracked"),
        (
            r#"disable_safeguards = ["git-untracked", "git-uncommitted"]"#,
            "",
        ),
        (r#"disable_safeguards = ["git"]"#, ""),
        (r#"disable_safeguards = ["all"]"#, ""),
        (
            r#"disable_safeguards = ["none"]"#,
            "untracked uncommitted out-of-sync",
        ),
        (
            r#"disable_safeguards = ["none", "git-untracked"]"#,
            "uncommitted out-of-sync",
        ),
        (
            r#"disable_safeguards = ["none", "git-out-of-sync"]"#,
            "untracked uncommitted",
        ),
        (r#"disable_safeguards = ["none", "all"]"#, ""),
        (
            r#"disable_safeguards = ["outdated-code"]"#,
            "untracked uncommitted",
        ),
        (
            r#"enable_safeguards = ["git-out-of-sync"]"#,
            "untracked uncommitted out-of-sync",
        ),
        ("git {\n check_untracked = false\n}", "uncommitted"),
        ("git {\n check_uncommitted = false\n}", "untracked"),
        (
            "git {\n check_untracked = false\n check_uncommitted = false\n}",
            "",
        ),
        (
            "git {\n check_untracked = true\n check_uncommitted = true\n}",
            "untracked uncommitted",
        ),
        (
            "git {\n check_remote = true\n}",
            "untracked uncommitted out-of-sync",
        ),
        ("git {\n check_remote = false\n}", "untracked uncommitted"),
        ("run {\n check_gen_code = false\n}", "untracked uncommitted"),
    ];
    for (config, expected) in rows {
        assert_eq!(on(config, ""), expected, "{config}");
    }
}

#[test]
fn the_user_comes_before_the_configuration() {
    let configurations = [
        "",
        r#"disable_safeguards = ["all"]"#,
        r#"disable_safeguards = ["none"]"#,
        r#"disable_safeguards = ["git-untracked"]"#,
        r#"disable_safeguards = ["none", "git-out-of-sync"]"#,
        r#"enable_safeguards = ["git-out-of-sync"]"#,
        "git {\n check_untracked = false\n}",
        "git {\n check_uncommitted = false\n check_remote = false\n}",
        "git {\n check_remote = true\n}",
    ];
    for config in configurations {
        for (disabled, expected) in [
            ("none", "untracked uncommitted out-of-sync"),
            ("none,git-untracked", "uncommitted out-of-sync"),
            ("none,git-uncommitted", "untracked out-of-sync"),
            ("none,git-out-of-sync", "untracked uncommitted"),
            ("none,outdated-code", "untracked uncommitted out-of-sync"),
            ("git,none", ""),
            ("git", ""),
            ("all", ""),
            ("all,git-untracked", ""),
        ] {
            assert_eq!(on(config, disabled), expected, "{config} {disabled}");
        }
    }
}

#[test]
fn what_the_user_does_not_name_is_as_configured() {
    let none = r#"disable_safeguards = ["none"]"#;
    let untracked = r#"disable_safeguards = ["git-untracked"]"#;
    let checked = "git {\n check_untracked = true\n}";
    for (config, disabled, expected) in [
        ("", "git-untracked", "uncommitted"),
        ("", "git-uncommitted", "untracked"),
        ("", "git-untracked,git-uncommitted", ""),
        ("", "git-out-of-sync", "untracked uncommitted"),
        ("", "outdated-code", "untracked uncommitted"),
        (none, "git-untracked", "uncommitted out-of-sync"),
        (none, "git-out-of-sync", "untracked uncommitted"),
        (untracked, "git-uncommitted", ""),
        (checked, "git-untracked", "uncommitted"),
    ] {
        assert_eq!(on(config, disabled), expected, "{config} {disabled}");
    }
}

#[test]
fn a_list_that_contradicts_itself_is_refused() {
    let both = vec![SafeguardKeyword::None, SafeguardKeyword::All];
    assert!(Disabled::new(both).is_err());
}
