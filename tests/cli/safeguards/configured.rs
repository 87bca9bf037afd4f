//! What the configuration switches. Every switch, with every list of the user's, is in a table in
//! `src/run/safeguard/tests.rs`.

use insta::assert_snapshot;

use super::{RUN, objections};
use crate::support::{Repository, Sandbox};

const UNTRACKED: &str = "git-untracked: a/new.tf\n";

const UNCOMMITTED: &str = "git-uncommitted: a/main.tf (modified)\n";

const NO_REMOTE: &str = "git-out-of-sync:\n";

/// A file that git does not know, and one that is not committed, and this in the configuration.
fn dirty(config: &str) -> Repository {
    let sandbox = Repository::prepare("a");
    sandbox.write(
        "/config.tm",
        format!("terramate {{\n config {{\n{config}\n}}\n}}\n"),
    );
    let repository = Repository::of(sandbox);
    repository.write("/a/new.tf", "");
    repository.write("/a/main.tf", "# changed\n");
    repository
}

#[track_caller]
fn check(config: &str, flags: &str, expected: &[&str]) {
    let output = dirty(config).orch(&format!("run -q {flags} -- true"));
    assert_eq!(objections(&output), expected.concat(), "{config} {flags}");
}

#[test]
fn config_switches_safeguards() {
    check(
        r#"disable_safeguards = ["git-untracked"]"#,
        "",
        &[UNCOMMITTED],
    );
    check("git {\n check_uncommitted = false\n}", "", &[UNTRACKED]);
}

#[test]
fn flags_override_the_configured_safeguards() {
    let all = [UNTRACKED, UNCOMMITTED, NO_REMOTE];
    let repository = dirty(r#"disable_safeguards = ["all"]"#);
    let output = repository.orch("run -q --disable-safeguards=none -- true");
    assert_eq!(objections(&output), all.concat());
    for name in ["ORCH_DISABLE_SAFEGUARDS", "TM_DISABLE_SAFEGUARDS"] {
        let output = repository.orch_with(RUN, |orch| _ = orch.env(name, "none"));
        assert_eq!(objections(&output), all.concat());
    }
}

#[test]
fn variables_of_older_terramates_disable_one_safeguard_each() {
    let repository = dirty("");
    for (value, expected) in [
        ("1", UNCOMMITTED.to_owned()),
        ("false", [UNTRACKED, UNCOMMITTED].concat()),
    ] {
        let name = "TM_DISABLE_CHECK_GIT_UNTRACKED";
        let output = repository.orch_with(RUN, |orch| _ = orch.env(name, value));
        assert_eq!(objections(&output), expected);
    }
    let name = "TM_DISABLE_CHECK_GIT_REMOTE";
    let output = repository.orch_with(RUN, |orch| _ = orch.env(name, "off"));
    assert_snapshot!(output, @"
    [stderr]
    error: TM_DISABLE_CHECK_GIT_REMOTE is neither `true` nor `false`
    [exit status 64]
    ");
}

#[test]
fn change_detection_does_not_matter() {
    let config = "change_detection {
        ignore = [\"*.tf\"]
        git {
          untracked   = \"off\"
          uncommitted = \"off\"
        }
      }";
    let repository = dirty(config);
    repository.write("/a/stack.tm", "stack {\n name = \"x\"\n}\n");
    let run = "run --changed --base base --enable-change-detection git-uncommitted -- true";
    assert_eq!(
        objections(&repository.orch(run)),
        "git-untracked: a/new.tf\ngit-uncommitted: a/main.tf (modified), a/stack.tm (modified)\n"
    );
}

#[test]
fn config_of_safeguards_counts_only_in_the_root() {
    let repository = dirty("");
    repository.write(
        "/a/config.tm",
        "terramate {\n config {\n disable_safeguards = [\"all\"]\n}\n}\n",
    );
    repository.git("add a/config.tm");
    repository.git("commit -q -m config");
    let output = repository.orch(RUN);
    assert_eq!(objections(&output), [UNTRACKED, UNCOMMITTED].concat());
    assert!(
        output.stderr.contains("applies only in the project root"),
        "{output}"
    );
}

#[test]
fn config_of_contradicting_safeguards_is_an_error() {
    let validate = |config: &str| {
        let sandbox = Sandbox::layout("a");
        sandbox.write(
            "/config.tm",
            format!("orch {{\n  config {{\n{config}  }}\n}}\n"),
        );
        sandbox.orch("validate")
    };
    let list = "    disable_safeguards = []\n";
    for old in [
        "git {\n check_untracked = false\n}\n",
        "git {\n check_uncommitted = false\n}\n",
        "git {\n check_remote = false\n}\n",
        "run {\n check_gen_code = false\n}\n",
    ] {
        let output = validate(&format!("{list}{old}"));
        assert_eq!(output.code(), 3, "{output}");
        assert!(
            output
                .stderr
                .contains("and `config.disable_safeguards` cannot both be set"),
            "{output}"
        );
    }
    let enable = "    enable_safeguards  = [\"git-out-of-sync\"]\n";
    for names in ["git-out-of-sync", "git", "all"] {
        let output = validate(&format!("{enable}    disable_safeguards = [\"{names}\"]\n"));
        assert_eq!(output.code(), 3, "{output}");
    }
    let both = format!("{enable}    disable_safeguards = [\"git\"]\n");
    assert_snapshot!(validate(&both), @r#"
    [stderr]
    error: `config.enable_safeguards` and `config.disable_safeguards` cannot both be set
     --> config.tm:3:5
      |
    3 |     enable_safeguards  = ["git-out-of-sync"]
      |     ^^^^^^^^^^^^^^^^^ enabled here
    4 |     disable_safeguards = ["git"]
      |     ------------------ disabled here
      |
      = help: remove `git-out-of-sync` from one of the lists

    [exit status 3]
    "#);
    let old = format!("{enable}    git {{\n      check_remote = false\n    }}\n");
    assert_snapshot!(validate(&old), @r#"
    [stderr]
    error: `config.git.check_remote` and `config.enable_safeguards` cannot both be set
     --> config.tm:5:7
      |
    3 |     enable_safeguards  = ["git-out-of-sync"]
      |     ----------------- the list
    4 |     git {
    5 |       check_remote = false
      |       ^^^^^^^^^^^^ the old switch
      |
      = help: remove the old switch and name the safeguard in the list

    [exit status 3]
    "#);
    assert_snapshot!(validate("    enable_safeguards = [\"git-untracked\"]\n"), @r#"
    [stderr]
    error: `enable_safeguards` must be a list of `"git-out-of-sync"`
     --> config.tm:3:25
      |
    3 |     enable_safeguards = ["git-untracked"]
      |                         ^^^^^^^^^^^^^^^^^ this is a list

    [exit status 3]
    "#);
    for fine in [
        format!(
            "{enable}    disable_safeguards = [\"git-untracked\", \"none\", \"outdated-code\"]\n"
        ),
        format!("{enable}    git {{\n      check_untracked = false\n    }}\n"),
        "    enable_safeguards  = []\n    disable_safeguards = [\"all\"]\n".to_owned(),
    ] {
        let output = validate(&fine);
        assert_eq!(output.code(), 0, "{output}");
    }
}
