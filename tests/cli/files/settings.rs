//! The settings of a project.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

/// What `orch validate` says to a project with one file of settings at its root.
fn settings(text: &str) -> Output {
    let sandbox = Sandbox::layout("s");
    sandbox.write("/settings.tm", text);
    sandbox.orch("validate")
}

#[test]
fn every_setting_of_terramate_is_accepted() {
    let output = settings(
        r#"
terramate {
  required_version                   = "~> 0.17"
  required_version_allow_prereleases = true
  config {
    experiments        = ["scripts", "anything"]
    disable_safeguards = ["git-untracked", "outdated-code"]
    git {
      default_remote = "upstream"
      default_branch = "trunk"
    }
    run {
      env {
        X = "y"
      }
    }
    change_detection {
      git {
        untracked   = "off"
        uncommitted = true
      }
      terragrunt {
        enabled = "force"
      }
    }
    generate {
      hcl_magic_header_comment_style = "//"
    }
    cloud {
      organization = "o"
      location     = "us"
      targets {
        enabled = true
      }
    }
    telemetry {
      enabled = "off"
    }
    targets {
      anything = 1
    }
  }
}
"#,
    );
    assert_snapshot!(output, @"
    [stderr]
    note: no problems found: 1 stack, 3 configuration files
    ");
}

#[test]
fn settings_have_types() {
    let output = settings(
        r#"terramate {
  required_version = 1
  config {
    experiments        = "scripts"
    disable_safeguards = ["git", "everything"]
    references         = "loose"
    git {
      default_branch  = true
      check_untracked = "yes"
    }
    change_detection {
      terragrunt {
        enabled = "maybe"
      }
    }
    telemetry {
      enabled = 1
    }
  }
}
"#,
    );
    assert_snapshot!(output, @r#"
    [stderr]
    error: `required_version` must be a string
     --> settings.tm:2:22
      |
    2 |   required_version = 1
      |                      ^ this is a number

    error: `experiments` must be a list of strings
     --> settings.tm:4:26
      |
    4 |     experiments        = "scripts"
      |                          ^^^^^^^^^ this is `"scripts"`

    error: `disable_safeguards` must be a list of `"all"`, `"none"`, `"git"`, `"git-untracked"`, `"git-uncommitted"`, `"git-out-of-sync"`, `"destroy-order"`, `"outdated-code"`
     --> settings.tm:5:26
      |
    5 |     disable_safeguards = ["git", "everything"]
      |                          ^^^^^^^^^^^^^^^^^^^^^ this is a list

    error: `references` must be one of `"strict"`, `"warn"`
     --> settings.tm:6:26
      |
    6 |     references         = "loose"
      |                          ^^^^^^^ this is `"loose"`

    error: `default_branch` must be a string
     --> settings.tm:8:25
      |
    8 |       default_branch  = true
      |                         ^^^^ this is a bool

    error: `config.git.check_untracked` and `config.disable_safeguards` cannot both be set
     --> settings.tm:9:7
      |
    5 |     disable_safeguards = ["git", "everything"]
      |     ------------------ the list
    ...
    9 |       check_untracked = "yes"
      |       ^^^^^^^^^^^^^^^ the old switch
      |
      = help: remove the old switch and name the safeguard in the list

    error: `check_untracked` must be `true` or `false`
     --> settings.tm:9:25
      |
    9 |       check_untracked = "yes"
      |                         ^^^^^ this is `"yes"`

    error: `enabled` must be one of `"auto"`, `"off"`, `"force"`
      --> settings.tm:13:19
       |
    13 |         enabled = "maybe"
       |                   ^^^^^^^ this is `"maybe"`

    error: `enabled` must be `"on"`, `"off"` or a bool
      --> settings.tm:17:17
       |
    17 |       enabled = 1
       |                 ^ this is a number

    [exit status 3]
    "#);
}

#[test]
fn unknown_settings_come_with_a_suggestion() {
    let output = settings(
        r#"terramate "label" {
  required_versoin = "1"
  confg {
  }
  config {
    refrences = "strict"
    gti {
    }
    git {
      branch = "main"
    }
  }
}
"#,
    );
    assert_snapshot!(output, @r#"
    [stderr]
    error: a `terramate` block has no labels
     --> settings.tm:1:11
      |
    1 | terramate "label" {
      |           ^^^^^^^ unexpected label
      |
      = help: remove the label

    error: unknown attribute `required_versoin` in `terramate`
     --> settings.tm:2:3
      |
    1 | terramate "label" {
      | --------- in this block
    2 |   required_versoin = "1"
      |   ^^^^^^^^^^^^^^^^ not an attribute of `terramate`
      |
      = help: did you mean `required_version`?

    error: unknown block `confg` in `terramate`
     --> settings.tm:3:3
      |
    1 | terramate "label" {
      | --------- in this block
    2 |   required_versoin = "1"
    3 |   confg {
      |   ^^^^^ not a block of `terramate`
      |
      = help: did you mean `config`?

    error: unknown attribute `refrences` in `config`
     --> settings.tm:6:5
      |
    5 |   config {
      |   ------ in this block
    6 |     refrences = "strict"
      |     ^^^^^^^^^ not an attribute of `config`
      |
      = help: did you mean `references`?

    error: unknown block `gti` in `config`
     --> settings.tm:7:5
      |
    5 |   config {
      |   ------ in this block
    6 |     refrences = "strict"
    7 |     gti {
      |     ^^^ not a block of `config`
      |
      = help: did you mean `git`?

    error: unknown attribute `branch` in `git`
      --> settings.tm:10:7
       |
     9 |     git {
       |     --- in this block
    10 |       branch = "main"
       |       ^^^^^^ not an attribute of `git`

    [exit status 3]
    "#);
}

#[test]
fn a_setting_stands_once_in_a_directory() {
    let output = settings(
        r#"terramate {
  config {
    git {
      default_branch = "a"
    }
  }
}
orch {
  config {
    git {
      default_branch = "b"
    }
  }
}
"#,
    );
    assert_snapshot!(output, @r#"
    [stderr]
    error: `config.git.default_branch` is set twice in this directory
      --> settings.tm:11:7
       |
     4 |       default_branch = "a"
       |       -------------- first here
    ...
    11 |       default_branch = "b"
       |       ^^^^^^^^^^^^^^ again here
       |
       = help: remove one of them

    [exit status 3]
    "#);
}

#[test]
fn settings_know_no_names() {
    let output = settings("terramate {\n  required_version = global.version\n}\n");
    assert_snapshot!(output, @"
    [stderr]
    error: `global` cannot be used in the project configuration
     --> settings.tm:2:22
      |
    2 |   required_version = global.version
      |                      ^^^^^^ not available here
      |
      = help: only literals, operators, templates, `for` and functions are evaluated here

    [exit status 3]
    ");
}

#[test]
fn a_required_version_binds_the_tool_of_its_block() {
    assert_eq!(
        settings("terramate {\n  required_version = \"= 99.0.0\"\n}\n").code(),
        0
    );
    assert_eq!(
        settings("orch {\n  required_version = \">= 0.0.1\"\n}\n").code(),
        0
    );
    let output = settings("orch {\n  required_version = \"= 99.0.0\"\n}\n").to_string();
    let output = output.replace(env!("CARGO_PKG_VERSION"), "[version]");
    assert_snapshot!(output, @r#"
    [stderr]
    error: this project needs orch = 99.0.0, and this is orch [version]
     --> settings.tm:2:22
      |
    2 |   required_version = "= 99.0.0"
      |                      ^^^^^^^^^^ required here
      |
      = help: install a version of orch that fits, or change the constraint

    [exit status 3]
    "#);
    assert_snapshot!(settings("orch {\n  required_version = \"newest\"\n}\n"), @r#"
    [stderr]
    error: `newest` is not a version constraint
     --> settings.tm:2:22
      |
    2 |   required_version = "newest"
      |                      ^^^^^^^^ `newest` is not a comparison with a version
      |
      = help: write something like `~> 0.1` or `>= 0.1.0, < 2.0.0`

    [exit status 3]
    "#);
}

#[test]
fn both_tools_may_require_a_version() {
    let output = settings(
        "terramate {\n  required_version = \"~> 0.17\"\n}\norch {\n  required_version = \">= 0.0.1\"\n}\n",
    );
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn settings_below_the_root_are_ignored_with_a_warning() {
    let sandbox = Sandbox::layout("s");
    sandbox.write(
        "/s/settings.tm",
        "terramate {\n  required_version = \"1\"\n  config {\n    references = \"strict\"\n    git {\n      default_branch = \"x\"\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    s
    [stderr]
    warning: this setting applies only in the project root, and is ignored here
     --> s/settings.tm:2:3
      |
    2 |   required_version = "1"
      |   ^^^^^^^^^^^^^^^^ ignored
    3 |   config {
    4 |     references = "strict"
      |     ---------- ignored too
    5 |     git {
    6 |       default_branch = "x"
      |       -------------- ignored too
      |
      = help: move it to the project root; only `env`, `lets`, `timeout`, `retry` and the exit codes of `config.run`, `config.driver`, `config.lifecycle` and `config.change_detection.ignore` may be here
    "#);
}

#[test]
fn empty_settings_below_the_root_are_nothing_to_warn_of() {
    let sandbox = Sandbox::layout("s");
    sandbox.write(
        "/s/settings.tm",
        "terramate {\n  config {\n    run {\n      env {\n      }\n    }\n  }\n}\norch {\n}\n",
    );
    assert_eq!(sandbox.orch("validate").code(), 0);
}
