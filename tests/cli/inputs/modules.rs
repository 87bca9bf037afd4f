//! Modules of Terraform.

use std::fs;

use insta::assert_snapshot;

use super::{NONE, module, stack_with};
use crate::support::{Sandbox, changed, commit, project, why, why_changed};

#[test]
fn inputs_distinguish_modules_with_a_common_prefix() {
    let sandbox = project(
        "stack-a stack-aa stack-ab",
        &[
            ("/stack-a/main.tf", &module("../modules/a")),
            ("/stack-aa/main.tf", &module("../modules/aa")),
            ("/stack-ab/main.tf", &module("../modules/a-b")),
            ("/modules/a/main.tf", ""),
            ("/modules/aa/main.tf", ""),
            ("/modules/a-b/main.tf", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/modules/a/main.tf"), @"stack-a  # changed: modules/a/main.tf, module ../modules/a (stack-a/main.tf:2)");
    assert_eq!(changed(&sandbox, "/modules/aa/main.tf"), ["stack-aa"]);
    assert_eq!(changed(&sandbox, "/modules/a-b/main.tf"), ["stack-ab"]);
    assert_eq!(changed(&sandbox, "/modules/a.tf"), NONE);
}

#[test]
fn inputs_show_a_chain_of_twenty_modules() {
    let sandbox = Sandbox::layout("s");
    sandbox.write("/s/main.tf", module("../m1"));
    for n in 1..20 {
        let text = "\n".repeat(n) + &module(&format!("../m{}", n + 1));
        sandbox.write(&format!("/m{n}/main.tf"), text);
    }
    sandbox.write("/m20/main.tf", "");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/m20/main.tf"), @"s  # changed: m20/main.tf, module ../m1 (s/main.tf:2), module ../m2 (m1/main.tf:3), module ../m3 (m2/main.tf:4), module ../m4 (m3/main.tf:5), module ../m5 (m4/main.tf:6), module ../m6 (m5/main.tf:7), module ../m7 (m6/main.tf:8), module ../m8 (m7/main.tf:9), module ../m9 (m8/main.tf:10), module ../m10 (m9/main.tf:11), module ../m11 (m10/main.tf:12), module ../m12 (m11/main.tf:13), module ../m13 (m12/main.tf:14), module ../m14 (m13/main.tf:15), module ../m15 (m14/main.tf:16), module ../m16 (m15/main.tf:17), module ../m17 (m16/main.tf:18), module ../m18 (m17/main.tf:19), module ../m19 (m18/main.tf:20), module ../m20 (m19/main.tf:21)");
}

#[test]
fn inputs_follow_absolute_paths_into_the_project() {
    let sandbox = Sandbox::layout("a\nb");
    let root = sandbox.path("/");
    let root = root.to_str().unwrap().trim_end_matches('/');
    sandbox.write("/a/main.tf", module(&format!("{root}/modules/m")));
    let reads =
        format!("locals {{\n  x = file(\"{root}/shared/x\")\n  y = file(\"/etc/hosts\")\n}}\n");
    sandbox.write("/b/main.tf", module("/elsewhere/m") + &reads);
    sandbox.write("/modules/m/main.tf", "");
    sandbox.write("/shared/x", "");
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/modules/m/main.tf"), ["a"]);
    assert_eq!(changed(&sandbox, "/shared/x"), ["b"]);
}

#[test]
fn inputs_resolve_one_source_in_two_directories_to_two_modules() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &(module("../a/m") + &module("../b/m"))),
            ("/a/m/main.tf", &module("../common")),
            ("/b/m/main.tf", &module("../common")),
            ("/a/common/main.tf", ""),
            ("/b/common/main.tf", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/a/common/main.tf"), @"s  # changed: a/common/main.tf, module ../a/m (s/main.tf:2), module ../common (a/m/main.tf:2)");
    assert_snapshot!(why_changed(&sandbox, "/b/common/main.tf"), @"s  # changed: b/common/main.tf, module ../b/m (s/main.tf:5), module ../common (b/m/main.tf:2)");
}

#[test]
fn inputs_stop_at_a_cycle_of_modules() {
    let sandbox = project(
        "s t",
        &[
            ("/s/main.tf", &module("../a")),
            ("/t/main.tf", &module("./")),
            ("/a/main.tf", &module("../b")),
            ("/b/main.tf", &(module("../a") + &module("../c"))),
            ("/c/main.tf", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/c/main.tf"), @"s  # changed: c/main.tf, module ../a (s/main.tf:2), module ../b (a/main.tf:2), module ../c (b/main.tf:5)");
    assert_eq!(changed(&sandbox, "/d"), NONE);
}

#[test]
fn inputs_of_all_users_include_a_module() {
    let sandbox = Sandbox::layout("");
    for n in 10..60 {
        sandbox.write(&format!("/s{n}/stack.tm"), "stack {}\n");
        sandbox.write(&format!("/s{n}/main.tf"), module("../m"));
    }
    sandbox.write("/m/main.tf", module("./n"));
    sandbox.write("/m/n/main.tf", "");
    commit(&sandbox);
    let all: Vec<String> = (10..60).map(|n| format!("s{n}")).collect();
    assert_eq!(changed(&sandbox, "/m/n/main.tf"), all);
}

#[test]
fn inputs_include_a_module_that_is_a_stack() {
    let sandbox = project(
        "s t u",
        &[
            ("/s/main.tf", &module("../t")),
            ("/t/main.tf", &module("../u")),
            ("/u/main.tf", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/u/main.tf"), @"
    s  # changed: u/main.tf, module ../t (s/main.tf:2), module ../u (t/main.tf:2)
    t  # changed: u/main.tf, module ../u (t/main.tf:2)
    u  # changed: u/main.tf
    ");
    assert_snapshot!(why_changed(&sandbox, "/t/x"), @"
    s  # changed: t/x, module ../t (s/main.tf:2)
    t  # changed: t/x
    ");
}

#[test]
fn inputs_exclude_files_watched_by_a_stack_used_as_a_module() {
    let sandbox = project("s", &[("/s/main.tf", &module("../t"))]);
    sandbox.write("/t/stack.tm", "stack {\n  watch = [\"/w\"]\n}\n");
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/w"), ["t"]);
}

#[test]
fn inputs_include_everything_below_a_module() {
    let sandbox = project("s", &[("/s/main.tf", &module("../m")), ("/m/main.tf", "")]);
    assert_snapshot!(why_changed(&sandbox, "/m/templates/deep/x.tpl"), @"s  # changed: m/templates/deep/x.tpl, module ../m (s/main.tf:2)");
}

#[test]
fn inputs_include_a_deleted_file_of_a_module() {
    let sandbox = project(
        "s",
        &[("/s/main.tf", &module("../m")), ("/m/a", ""), ("/m/b", "")],
    );
    fs::remove_file(sandbox.path("/m/a")).unwrap();
    assert_snapshot!(why(&sandbox), @"s  # changed: m/a (uncommitted, deleted), module ../m (s/main.tf:2)");
}

#[test]
fn inputs_include_and_warn_of_a_deleted_module() {
    let sandbox = project("s", &[("/s/main.tf", &module("../m")), ("/m/a", "")]);
    fs::remove_dir_all(sandbox.path("/m")).unwrap();
    assert_snapshot!(why(&sandbox), @r#"
    s  # changed: m/a (uncommitted, deleted), module ../m (s/main.tf:2)
    warning: the module `../m` does not exist
     --> s/main.tf:2:12
      |
    2 |   source = "../m"
      |            ^^^^^^ no such directory
      |
      = help: correct the path; changes of this module go unnoticed
    "#);
}

#[test]
fn inputs_include_a_renamed_module_under_both_names() {
    let sandbox = project(
        "s t",
        &[
            ("/s/main.tf", &module("../old")),
            ("/t/main.tf", &module("../new")),
            ("/old/a", ""),
        ],
    );
    fs::rename(sandbox.path("/old"), sandbox.path("/new")).unwrap();
    assert_snapshot!(why(&sandbox), @r#"
    s  # changed: old/a (uncommitted, deleted), module ../old (s/main.tf:2)
    t  # changed: new/a (untracked), module ../new (t/main.tf:2)
    warning: the module `../old` does not exist
     --> s/main.tf:2:12
      |
    2 |   source = "../old"
      |            ^^^^^^^^ no such directory
      |
      = help: correct the path; changes of this module go unnoticed
    "#);
}

#[test]
fn inputs_include_a_module_in_a_dot_directory() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../.modules/m")),
            ("/.modules/m/main.tf", &module("../n")),
            ("/.modules/n/main.tf", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/.modules/n/main.tf"), @"s  # changed: .modules/n/main.tf, module ../.modules/m (s/main.tf:2), module ../n (.modules/m/main.tf:2)");
}

#[test]
fn inputs_include_a_module_in_a_skipped_directory() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../modules/m")),
            ("/modules/.tmskip", ""),
            ("/modules/m/main.tf", &module("../n")),
            (
                "/modules/n/main.tf",
                "locals {\n  x = file(\"${path.module}/../x\")\n}\n",
            ),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/modules/n/main.tf"), @"s  # changed: modules/n/main.tf, module ../modules/m (s/main.tf:2), module ../n (modules/m/main.tf:2)");
    assert_snapshot!(why_changed(&sandbox, "/modules/x"), @"s  # changed: modules/x, module ../modules/m (s/main.tf:2), module ../n (modules/m/main.tf:2), read by file (modules/n/main.tf:2)");
}

#[cfg(unix)]
#[test]
fn inputs_include_a_module_behind_a_link() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../link/m")),
            ("/one/m/main.tf", &module("../n")),
            ("/one/n/main.tf", ""),
            ("/two/m/main.tf", ""),
        ],
    );
    sandbox.symlink("one", "/link");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/one/m/main.tf"), @"s  # changed: one/m/main.tf, module ../link/m (s/main.tf:2), target of the link link");
    assert_snapshot!(why_changed(&sandbox, "/one/n/main.tf"), @"s  # changed: one/n/main.tf, module ../link/m (s/main.tf:2), module ../n (one/m/main.tf:2)");
    assert_eq!(changed(&sandbox, "/two/m/main.tf"), NONE);
    fs::remove_file(sandbox.path("/link")).unwrap();
    sandbox.symlink("two", "/link");
    assert_snapshot!(why(&sandbox), @"s  # changed: link, module ../link/m (s/main.tf:2)");
}

/// Terraform cleans a source as text before it looks at the disk.
#[cfg(unix)]
#[test]
fn inputs_resolve_dot_dot_after_a_link_lexically() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../link/../m")),
            ("/m/main.tf", ""),
            ("/deep/m/main.tf", ""),
            ("/deep/target/x", ""),
        ],
    );
    sandbox.symlink("deep/target", "/link");
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/m/main.tf"), ["s"]);
    assert_eq!(changed(&sandbox, "/deep/m/main.tf"), NONE);
}

/// Terraform resolves the links of a module's directory before it goes on from there.
#[cfg(unix)]
#[test]
fn inputs_of_a_module_behind_a_link_start_at_its_target() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../m")),
            ("/n/main.tf", ""),
            ("/deep/m/main.tf", &module("../n")),
            ("/deep/n/main.tf", ""),
        ],
    );
    sandbox.symlink("deep/m", "/m");
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/deep/n/main.tf"), ["s"]);
    assert_eq!(changed(&sandbox, "/n/main.tf"), NONE);
}

#[test]
fn inputs_warn_of_a_module_outside_of_the_project() {
    let sandbox = stack_with(&module("../../decoy"));
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the module `../../decoy` leads out of the project
     --> s/main.tf:2:12
      |
    2 |   source = "../../decoy"
      |            ^^^^^^^^^^^^^ not below the project root
      |
      = help: changes there go unnoticed; move the module into the project
    "#);
}

#[cfg(unix)]
#[test]
fn inputs_warn_of_a_module_linked_from_the_outside() {
    let sandbox = project("s", &[("/s/main.tf", &module("../link/m"))]);
    sandbox.symlink("../decoy", "/link");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the module `../link/m` leads out of the project
     --> s/main.tf:2:12
      |
    2 |   source = "../link/m"
      |            ^^^^^^^^^^^ not below the project root
      |
      = help: changes there go unnoticed; move the module into the project
    "#);
}

#[test]
fn inputs_warn_of_a_missing_module() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../file")),
            ("/file", ""),
            ("/s/x.tf.json", r#"{"module": {"m": {"source": "./no"}}}"#),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the module `../file` does not exist
     --> s/main.tf:2:12
      |
    2 |   source = "../file"
      |            ^^^^^^^^^ no such directory
      |
      = help: correct the path; changes of this module go unnoticed

    warning: the module `./no`, which `s/x.tf.json` uses, does not exist
      = help: correct the path; changes of this module go unnoticed
    "#);
}

#[test]
fn inputs_skip_remote_module_sources() {
    let sandbox = Sandbox::layout("s");
    let sources = [
        "/m",
        "m",
        "terraform-aws-modules/vpc/aws",
        "git::https://example.com/m.git?ref=v1",
        "git@example.com:m.git",
        "git::https://example.com/m.git?ref=${var.m}",
        "registry/${\"m\"}${local.x}",
    ];
    let text: Vec<String> = sources.iter().map(|source| module(source)).collect();
    sandbox.write("/s/main.tf", text.concat());
    sandbox.write("/s/none.tf", "module \"m\" {\n}\n");
    sandbox.write("/m/main.tf", "");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/m/main.tf"), @"");
}

#[test]
fn inputs_accept_module_sources_in_every_string_form() {
    for source in [
        "\"${\"../m\"}\"",
        "\"../${\"m\"}\"",
        "\"${path.module}/../m\"",
        "\"./${path.module}/../m\"",
        "<<EOT\n../m\nEOT",
        "<<-EOT\n    ${path.module}/../m\n    EOT",
    ] {
        let text = format!("module \"m\" {{\n  source = {source}\n}}\n");
        let sandbox = project("s", &[("/s/main.tf", &text), ("/m/main.tf", "")]);
        let why = why_changed(&sandbox, "/m/main.tf");
        assert!(why.starts_with("s  # changed: m/main.tf, module "), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
    }
    let json = r#"{"module": {"m": {"source": "${path.module}/../m"}}}"#;
    let sandbox = project("s", &[("/s/main.tf.json", json), ("/m/main.tf", "")]);
    assert_eq!(changed(&sandbox, "/m/main.tf"), ["s"]);
}

#[test]
fn inputs_warn_of_an_unknown_module_source() {
    let text: Vec<String> = ["var.m", "\"../${var.m}\"", "\"${path.module}/${local.m}\""]
        .iter()
        .map(|source| format!("module \"m\" {{\n  source = {source}\n}}\n"))
        .collect();
    let json = r#"{"module": {"m": {"source": "./${var.m}"}}}"#;
    let sandbox = project(
        "s",
        &[("/s/main.tf", &*text.concat()), ("/s/x.tf.json", json)],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the source of module `m` cannot be determined
     --> s/main.tf:2:12
      |
    2 |   source = var.m
      |            ^^^^^ not a constant path
      |
      = note: changes of it go unnoticed

    warning: the source of module `m` cannot be determined
     --> s/main.tf:5:12
      |
    5 |   source = "../${var.m}"
      |            ^^^^^^^^^^^^^ not a constant path
      |
      = note: changes of it go unnoticed

    warning: the source of module `m` cannot be determined
     --> s/main.tf:8:12
      |
    8 |   source = "${path.module}/${local.m}"
      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^ not a constant path
      |
      = note: changes of it go unnoticed

    warning: the source of module `m`, which `s/x.tf.json` uses, cannot be determined
      = note: changes of it go unnoticed
    "#);
}

#[test]
fn inputs_include_modules_of_files_of_every_kind() {
    let sandbox = project(
        "s",
        &[
            ("/s/a.tofu", &module("../m/tofu")),
            (
                "/s/b.tf.json",
                r#"{"module": {"a": {"source": "../m/json"}}}"#,
            ),
            (
                "/s/c.tf.json",
                r#"{"module": [{"a": [{"source": "../m/array"}]}]}"#,
            ),
            (
                "/s/d.tofu.json",
                r#"[{"module": {"a": {"source": "../m/list"}}}]"#,
            ),
            (
                "/s/e.tf.json",
                r#"{"module": {"a": {"source": "../m/first"}}, "module": {"b": {"source": "../m/second"}}}"#,
            ),
            ("/s/override.tf", &module("../m/override")),
            ("/s/x_override.tf", &module("../m/x")),
            ("/s/.hidden.tf", &module("../m/hidden")),
            ("/s/backup.tf~", &module("../m/backup")),
            ("/s/deep/x.tf", &module("../../m/deep")),
        ],
    );
    for name in [
        "tofu", "json", "array", "list", "first", "second", "override", "x", "hidden", "backup",
        "deep",
    ] {
        sandbox.write(&format!("/m/{name}/main.tf"), "");
    }
    commit(&sandbox);
    for name in [
        "tofu", "json", "array", "list", "first", "second", "override", "x",
    ] {
        assert_eq!(
            changed(&sandbox, &format!("/m/{name}/main.tf")),
            ["s"],
            "{name}"
        );
    }
    for name in ["hidden", "backup", "deep"] {
        assert_eq!(
            changed(&sandbox, &format!("/m/{name}/main.tf")),
            NONE,
            "{name}"
        );
    }
    assert_snapshot!(why_changed(&sandbox, "/m/json/main.tf"), @"s  # changed: m/json/main.tf, module ../m/json (s/b.tf.json)");
}

#[test]
fn inputs_skip_nested_blocks_named_module() {
    let sandbox = project(
        "s",
        &[
            (
                "/s/main.tf",
                "# module \"m\" { source = \"../m\" }\nx {\n  module \"m\" {\n    source = \"../m\"\n  }\n}\nlocals {\n  module = { source = \"../m\" }\n}\n",
            ),
            ("/m/main.tf", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/m/main.tf"), @"");
}
