//! Which stacks change with something outside of them: modules, files that are read, links.

use std::fs;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;

#[cfg(unix)]
use crate::support::skipped;
use crate::support::{Sandbox, changed, commit, project, why, why_changed};
const NONE: [&str; 0] = [];

/// A block that uses a module.
fn module(source: &str) -> String {
    format!("module \"m\" {{\n  source = \"{source}\"\n}}\n")
}

/// A project with a stack that has just this file.
fn stack_with(text: &str) -> Sandbox {
    project("s", &[("/s/main.tf", text)])
}

// Modules.

#[test]
fn a_module_with_the_prefix_of_another_is_another() {
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
fn the_reason_shows_a_chain_of_twenty_modules() {
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
fn one_source_in_two_places_is_two_modules() {
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
fn modules_in_a_circle_end() {
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
fn all_users_of_a_module_change_with_it() {
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
fn a_module_may_be_a_stack() {
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
fn a_stack_that_changes_by_watch_does_not_change_who_uses_it_as_module() {
    let sandbox = project("s", &[("/s/main.tf", &module("../t"))]);
    sandbox.write("/t/stack.tm", "stack {\n  watch = [\"/w\"]\n}\n");
    commit(&sandbox);
    assert_eq!(changed(&sandbox, "/w"), ["t"]);
}

#[test]
fn whatever_lies_below_a_module_belongs_to_it() {
    let sandbox = project("s", &[("/s/main.tf", &module("../m")), ("/m/main.tf", "")]);
    assert_snapshot!(why_changed(&sandbox, "/m/templates/deep/x.tpl"), @"s  # changed: m/templates/deep/x.tpl, module ../m (s/main.tf:2)");
}

#[test]
fn a_deleted_file_of_a_module_counts() {
    let sandbox = project(
        "s",
        &[("/s/main.tf", &module("../m")), ("/m/a", ""), ("/m/b", "")],
    );
    fs::remove_file(sandbox.path("/m/a")).unwrap();
    assert_snapshot!(why(&sandbox), @"s  # changed: m/a (uncommitted, deleted), module ../m (s/main.tf:2)");
}

#[test]
fn a_deleted_module_counts_and_is_warned_of() {
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
      = help: correct the path; changes of this module cannot be seen
    "#);
}

#[test]
fn a_renamed_module_changes_who_uses_either_name() {
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
      = help: correct the path; changes of this module cannot be seen
    "#);
}

#[test]
fn a_module_may_lie_in_a_dot_directory() {
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
fn a_module_may_lie_in_a_skipped_directory() {
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
fn a_module_may_lie_behind_a_link() {
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
fn a_step_up_after_a_link_is_taken_in_the_text() {
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
fn a_module_behind_a_link_goes_on_from_where_it_really_is() {
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
fn a_module_outside_of_the_project_is_warned_of() {
    let sandbox = stack_with(&module("../../decoy"));
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the module `../../decoy` leads out of the project
     --> s/main.tf:2:12
      |
    2 |   source = "../../decoy"
      |            ^^^^^^^^^^^^^ not below the project root
      |
      = help: changes there cannot be seen; move the module into the project
    "#);
}

#[cfg(unix)]
#[test]
fn a_module_behind_a_link_to_the_outside_is_warned_of() {
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
      = help: changes there cannot be seen; move the module into the project
    "#);
}

#[test]
fn a_module_that_does_not_exist_is_warned_of() {
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
      = help: correct the path; changes of this module cannot be seen

    warning: the module `./no`, which `s/x.tf.json` uses, does not exist
      = help: correct the path; changes of this module cannot be seen
    "#);
}

#[test]
fn what_is_no_local_source_is_ignored() {
    let sandbox = Sandbox::layout("s");
    let root = sandbox.path("/").to_string_lossy().into_owned();
    let absolute = format!("{}/m", root.trim_end_matches('/'));
    let sources = [
        &*absolute,
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
fn a_source_may_be_more_than_a_plain_string() {
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
fn a_source_that_cannot_be_worked_out_is_warned_of() {
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
    warning: the source of module `m` cannot be worked out
     --> s/main.tf:2:12
      |
    2 |   source = var.m
      |            ^^^^^ more than text and `path.module`
      |
      = note: changes of it cannot be seen

    warning: the source of module `m` cannot be worked out
     --> s/main.tf:5:12
      |
    5 |   source = "../${var.m}"
      |            ^^^^^^^^^^^^^ more than text and `path.module`
      |
      = note: changes of it cannot be seen

    warning: the source of module `m` cannot be worked out
     --> s/main.tf:8:12
      |
    8 |   source = "${path.module}/${local.m}"
      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^ more than text and `path.module`
      |
      = note: changes of it cannot be seen

    warning: the source of module `m`, which `s/x.tf.json` uses, cannot be worked out
      = note: changes of it cannot be seen
    "#);
}

#[test]
fn modules_are_found_in_files_of_every_kind() {
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
fn blocks_within_blocks_and_other_words_are_no_modules() {
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

// Files that are no files, or odd ones.

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_never_hangs() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../m")),
            ("/m/x", ""),
            ("/s/d.tf/x", ""),
        ],
    );
    sandbox.symlink("nowhere", "/s/dangling.tf");
    sandbox.symlink("../m", "/s/directory.tf");
    sandbox.symlink("/dev/zero", "/s/zero.tf");
    sandbox.symlink("loop.tf", "/s/loop.tf");
    commit(&sandbox);
    let made = Command::new("mkfifo")
        .arg(sandbox.path("/s/pipe.tf"))
        .status();
    assert!(made.unwrap().success());
    assert_snapshot!(why_changed(&sandbox, "/m/x"), @"
    s  # changed: m/x, target of the link s/directory.tf
    warning: `s/pipe.tf` is not a regular file
      = note: changes of what this file uses cannot be seen

    warning: `s/zero.tf` is a link that leads out of the project
      = note: changes of what this file uses cannot be seen
    ");
}

#[test]
fn a_huge_file_is_warned_of() {
    let sandbox = project("s", &[("/s/main.tf", &module("../m")), ("/m/x", "")]);
    sandbox.write("/s/huge.tf", "# \n".repeat(1 << 20));
    sandbox.write("/s/huge.tf.json", " ".repeat((16 << 20) + 1));
    sandbox.write("/s/large.tf.json", "{}".to_owned() + &" ".repeat(15 << 20));
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/m/x"), @"
    s  # changed: m/x, module ../m (s/main.tf:2)
    warning: `s/huge.tf` is larger than 2 MiB
      = note: changes of what this file uses cannot be seen

    warning: `s/huge.tf.json` is larger than 16 MiB
      = note: changes of what this file uses cannot be seen
    ");
}

#[test]
fn a_file_that_is_not_utf8_is_warned_of() {
    let sandbox = project("s", &[("/s/main.tf", &module("../m")), ("/m/x", "")]);
    sandbox.write("/s/latin.tf", b"# caf\xe9\n");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/m/x"), @"
    s  # changed: m/x, module ../m (s/main.tf:2)
    warning: this file is not UTF-8
     --> s/latin.tf:1:6
      |
    1 | # caf�
      |      ^ the first byte that is not text
      |
      = note: changes of what this file uses cannot be seen
      = help: save the file as UTF-8
    ");
}

#[test]
fn byte_order_marks_and_dos_line_ends_are_fine() {
    let json = r#"{"module": {"m": {"source": "../n"}}}"#;
    let sandbox = project(
        "s",
        &[
            (
                "/s/main.tf",
                &format!("\u{feff}\r\n{}", module("../m").replace('\n', "\r\n")),
            ),
            ("/s/x.tf.json", &format!("\u{feff}{json}\r\n")),
            ("/m/x", ""),
            ("/n/x", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/m/x"), @"s  # changed: m/x, module ../m (s/main.tf:3)");
    assert_snapshot!(why_changed(&sandbox, "/n/x"), @"s  # changed: n/x, module ../n (s/x.tf.json)");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../m")),
            ("/s/no.tf", ""),
            ("/m/x", ""),
        ],
    );
    sandbox.write("/m/x", "changed");
    commit(&sandbox);
    let no = sandbox.path("/s/no.tf");
    fs::set_permissions(&no, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&no).is_ok() {
        skipped("this user may read everything");
        return;
    }
    // git cannot read it either, and says that it has changed.
    let list = "list --changed --base HEAD~ --disable-change-detection git-uncommitted";
    let output = sandbox.orch(list);
    assert_eq!(output.stdout, "s\n", "{output}");
    let warning = "warning: `s/no.tf` cannot be read: Permission denied";
    assert!(output.stderr.contains(warning), "{output}");
}

#[cfg(unix)]
#[test]
fn odd_names_are_shown_as_escapes() {
    let sandbox = project(
        "s",
        &[
            ("/s/a\nb.tf", &module("../m\\nn")),
            ("/s/\u{1b}.tf", "{"),
            (
                "/s/c\nd.tf.json",
                r#"{"module": {"m": {"source": "./e\nf"}}}"#,
            ),
            ("/s/c\nd.tf", &"#\n".repeat((1 << 20) + 1)),
            ("/m\nn/x y\tz", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/m\nn/x y\tz"), @r"
    s  # changed: m\nn/x y\tz, module ../m\nn (s/a\nb.tf:2)
    warning: syntax error
     --> s/\u{1b}.tf:1:1
      |
    1 | {
      | ^ never closed
      |
      = note: changes of what this file uses cannot be seen
      = help: add the missing `}`

    warning: `s/c\nd.tf` is larger than 2 MiB
      = note: changes of what this file uses cannot be seen

    warning: the module `./e\nf`, which `s/c\nd.tf.json` uses, does not exist
      = help: correct the path; changes of this module cannot be seen
    ");
}

// Broken files.

#[test]
fn a_broken_file_is_warned_of_and_the_rest_counts() {
    let sandbox = project(
        "s t",
        &[
            ("/s/broken.tf", "module \"x\" {\n"),
            ("/s/main.tf", &module("../m")),
            ("/t/main.tf", &module("../m")),
            ("/m/x", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/m/x"), @r#"
    s  # changed: m/x, module ../m (s/main.tf:2)
    t  # changed: m/x, module ../m (t/main.tf:2)
    warning: syntax error
     --> s/broken.tf:1:12
      |
    1 | module "x" {
      |            ^- invalid block body; expected `}`, newline or identifier
      |            |
      |            never closed
      |
      = note: changes of what this file uses cannot be seen
      = help: add the missing `}`
    "#);
    assert_eq!(why(&sandbox), "");
}

#[test]
fn a_broken_file_that_changed_is_the_change_of_its_stack() {
    let sandbox = project("s t", &[("/s/main.tf", "")]);
    sandbox.write("/s/main.tf", "locals {\n  a = = 1\n}\n");
    assert_snapshot!(why(&sandbox), @r#"
    s  # changed: s/main.tf
    warning: syntax error
     --> s/main.tf:2:7
      |
    2 |   a = = 1
      |       ^ invalid expression; expected `"`, `[`, `{`, `-`, `!`, `(`, `_`, `<`, letter or digit
      |
      = note: changes of what this file uses cannot be seen
    "#);
    let run = sandbox.orch("run -X --changed --base HEAD true");
    assert_eq!(run.code(), 0, "{run}");
    assert!(
        run.stderr
            .contains("warning: syntax error\n --> s/main.tf:2:7"),
        "{run}"
    );
    assert!(run.stderr.contains("orch: 1 succeeded"), "{run}");
}

#[test]
fn a_broken_module_is_warned_of_once() {
    let sandbox = project(
        "s t u",
        &[
            ("/s/main.tf", &module("../m")),
            ("/t/main.tf", &module("../m")),
            ("/u/main.tf", &(module("../u/../m") + &module("../absent"))),
            ("/m/main.tf", "module {\n"),
            ("/m/other.tf", &module("../n")),
            ("/n/x", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/n/x"), @r#"
    s  # changed: n/x, module ../m (s/main.tf:2), module ../n (m/other.tf:2)
    t  # changed: n/x, module ../m (t/main.tf:2), module ../n (m/other.tf:2)
    u  # changed: n/x, module ../u/../m (u/main.tf:2), module ../n (m/other.tf:2)
    warning: syntax error
     --> m/main.tf:1:8
      |
    1 | module {
      |        ^- invalid block body; expected `}`, newline or identifier
      |        |
      |        never closed
      |
      = note: changes of what this file uses cannot be seen
      = help: add the missing `}`

    warning: the module `../absent` does not exist
     --> u/main.tf:5:12
      |
    5 |   source = "../absent"
      |            ^^^^^^^^^^^ no such directory
      |
      = help: correct the path; changes of this module cannot be seen
    "#);
    let why = why_changed(&sandbox, "/m/main.tf");
    assert_eq!(why.matches("syntax error").count(), 1, "{why}");
    assert!(
        why.contains("s  # changed: m/main.tf, module ../m (s/main.tf:2)"),
        "{why}"
    );
}

#[test]
fn broken_json_is_warned_of() {
    let sandbox = project(
        "s",
        &[
            ("/s/a.tf.json", "{\n  \"locals\": {\"a\": 1,}\n}\n"),
            ("/s/b.tf.json", ""),
            ("/s/c.tf.json", "{\"a\": \""),
            ("/s/d.tf.json", "null\n"),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: syntax error
     --> s/a.tf.json:2:21
      |
    2 |   "locals": {"a": 1,}
      |                     ^ trailing comma
      |
      = note: changes of what this file uses cannot be seen

    warning: syntax error
     --> s/b.tf.json:1:1
      |
    1 |
      | ^ EOF while parsing a value
      |
      = note: changes of what this file uses cannot be seen

    warning: syntax error
     --> s/c.tf.json:1:7
      |
    1 | {"a": "
      |       ^ EOF while parsing a string
      |
      = note: changes of what this file uses cannot be seen
    "#);
}

#[test]
fn a_broken_file_is_noticed_though_nothing_in_it_looks_like_an_input() {
    let sandbox = stack_with("locals {\n  a = {\n}\n");
    assert_snapshot!(why_changed(&sandbox, "/x"), @"
    warning: syntax error
     --> s/main.tf:1:8
      |
    1 | locals {
      |        ^ never closed
    2 |   a = {
    3 | }
      |  - invalid block body; expected `}`, newline or identifier
      |
      = note: changes of what this file uses cannot be seen
      = help: add the missing `}`
    ");
}

#[test]
fn a_file_that_has_just_been_broken_is_noticed_wherever_it_is() {
    let sandbox = project("s", &[("/unused/main.tf", "")]);
    sandbox.write("/unused/main.tf", "a b c\n");
    assert_snapshot!(why(&sandbox), @"
    warning: syntax error
     --> unused/main.tf:1:6
      |
    1 | a b c
      |      ^ expected `{`
      |
      = note: changes of what this file uses cannot be seen
    ");
}

#[test]
fn warnings_are_data_too() {
    let sandbox = project(
        "s",
        &[("/s/main.tf", &module("../no")), ("/s/b.tf", "module {")],
    );
    sandbox.write("/x", "");
    let data = sandbox
        .orch("list --changed --base HEAD --format json")
        .json();
    let shown = |key: &str| -> Vec<String> {
        let all = data["diagnostics"].as_array().unwrap().iter();
        all.map(|one| format!("{} {}:{}", one[key], one["file"], one["line"]))
            .collect()
    };
    assert_eq!(
        shown("message"),
        [
            "\"syntax error\" \"s/b.tf\":1",
            "\"the module `../no` does not exist\" \"s/main.tf\":2"
        ]
    );
    assert_eq!(data["stacks"].as_array().unwrap().len(), 0);
}

#[test]
fn whatever_terraform_allows_is_no_syntax_error() {
    let sandbox = stack_with(TERRAFORM);
    assert_snapshot!(why_changed(&sandbox, "/s2/x"), @"");
    assert_eq!(changed(&sandbox, "/in/heredoc"), ["s"]);
}

const TERRAFORM: &str = r#"
# comment
// comment
/* comment
*/
resource aws_x "y" { count = 1 }
resource "a" "b" {
  for_each = { for k, v in var.x : k => v... if v != null }
  list     = [for x in var.y : upper(x) if !x.z]
  splat    = a.b.*.c[0]
  splat2   = a.b[*].c
  legacy   = a.b.0.c
  neg      = -1 - -2e5 * 1.5E-3 % 2
  cond     = (
    a.b ?
    "x" : null
  )
  call     = provider::aws::f(merge({}, var.l...)...)
  object   = { a : 1, "b-c" = 2, (var.k) = 3, d-e = 4
    "${var.x}-y" = 5,
  }
  escapes  = "$${a} %%{b} \u00e9 \U0001F600 \t\"\\"
  template = "%{ if a ~}x%{ else }y%{~ endif }%{ for a, b in c }${~ a ~}%{ endfor }"
  heredoc  = <<-EOT
    "quotes" { [ (
    ${file("${path.module}/../in/heredoc")}
    %{ for x in y ~}
    ${x}
    %{ endfor ~}
  EOT
  plain    = <<EOT
  $${x}
EOT
  index    = a["b"][0].c["${d}"]
  logic    = !a && b || c == d && e >= f
  nested   = "${a["${b}"]}"
  dynamic "x" {
    for_each = []
    content {}
  }
  multi = [
    1, # one
    2,
  ]
  f = f(
    1,
    2,
  )
}
"#;

// Files that are read.

#[test]
fn every_function_that_reads_counts() {
    for function in [
        "file",
        "filebase64",
        "filebase64sha256",
        "filebase64sha512",
        "fileexists",
        "filemd5",
        "filesha1",
        "filesha256",
        "filesha512",
        "templatefile",
        "core::file",
    ] {
        let sandbox = stack_with(&format!(
            "locals {{\n  x = {function}(\"${{path.module}}/../data/x\", {{}})\n}}\n"
        ));
        let function = function.trim_start_matches("core::");
        assert_eq!(
            why_changed(&sandbox, "/data/x"),
            format!("s  # changed: data/x, read by {function} (s/main.tf:2)")
        );
        assert_eq!(changed(&sandbox, "/data/x2"), NONE);
    }
}

#[test]
fn paths_are_relative_to_what_they_say() {
    let module_text = "locals {
  module = file(\"${path.module}/../data/module\")
  root   = file(\"${path.root}/../data/root\")
  cwd    = file(\"${path.cwd}/../data/cwd\")
  plain  = file(\"../data/plain\")
}\n";
    let sandbox = project(
        "a/s b/s",
        &[
            ("/a/s/main.tf", &module("../../modules/m")),
            ("/b/s/main.tf", &module("../../modules/m")),
            ("/modules/m/main.tf", module_text),
        ],
    );
    assert_eq!(changed(&sandbox, "/modules/data/module"), ["a/s", "b/s"]);
    for name in ["root", "cwd", "plain"] {
        assert_eq!(
            changed(&sandbox, &format!("/a/data/{name}")),
            ["a/s"],
            "{name}"
        );
        assert_eq!(
            changed(&sandbox, &format!("/modules/data/{name}")),
            NONE,
            "{name}"
        );
    }
    assert_snapshot!(why_changed(&sandbox, "/b/data/root"), @"b/s  # changed: b/data/root, module ../../modules/m (b/s/main.tf:2), read by file (modules/m/main.tf:3)");
}

#[test]
fn a_read_counts_wherever_it_stands() {
    let sandbox = stack_with(
        r#"
locals {
  template    = "a ${file("../data/template")} b"
  nested      = jsondecode(file("../data/nested"))
  for         = [for x in [1] : file("../data/for") if fileexists("../data/if")]
  object      = { for k in [1] : file("../data/key") => file("../data/value") }
  conditional = true ? file("../data/then") : file("../data/else")
  index       = jsondecode(file("../data/index"))["${file("../data/in-index")}"].x
  argument    = templatefile("../data/t.tpl", { x = file("../data/argument") })
  parens      = !(file("../data/parens") == "")
  inner       = file("../data/${"inner"}")
  heredoc     = <<-EOT
    %{ if fileexists("../data/directive") }${file("../data/heredoc")}%{ endif }
  EOT
}
resource "x" "y" {
  deep {
    deeper {
      x = file("../data/deep")
    }
  }
}
"#,
    );
    for name in [
        "template",
        "nested",
        "for",
        "if",
        "key",
        "value",
        "then",
        "else",
        "index",
        "in-index",
        "t.tpl",
        "argument",
        "parens",
        "inner",
        "directive",
        "heredoc",
        "deep",
    ] {
        assert_eq!(changed(&sandbox, &format!("/data/{name}")), ["s"], "{name}");
    }
}

#[test]
fn a_set_of_files_has_members_that_come_and_go() {
    let sandbox = project(
        "s t u",
        &[
            (
                "/s/main.tf",
                "locals {\n  x = fileset(\"${path.module}/../data\", \"**/*.json\")\n}\n",
            ),
            (
                "/t/main.tf",
                "locals {\n  x = fileset(\"../data\", \"*.{json,yml}\")\n}\n",
            ),
            (
                "/u/main.tf",
                "locals {\n  x = fileset(path.module, \"../data/?.yml\")\n}\n",
            ),
            ("/data/a.json", ""),
            ("/data/deep/er/b.json", ""),
            ("/data/c.yml", ""),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/data/a.json"), @"
    s  # changed: data/a.json, read by fileset (s/main.tf:2)
    t  # changed: data/a.json, read by fileset (t/main.tf:2)
    ");
    assert_eq!(changed(&sandbox, "/data/deep/er/b.json"), ["s"]);
    assert_eq!(changed(&sandbox, "/data/c.yml"), ["t", "u"]);
    assert_eq!(changed(&sandbox, "/data/.new.json"), ["s", "t"]);
    assert_eq!(changed(&sandbox, "/data/x.txt"), NONE);
    fs::remove_file(sandbox.path("/data/a.json")).unwrap();
    assert_eq!(why(&sandbox).lines().count(), 2);
}

#[test]
fn what_is_not_literal_or_absolute_is_ignored() {
    let sandbox = stack_with(
        r#"
locals {
  a = file(var.x)
  b = file("${var.x}/data")
  c = file("/etc/hostname")
  d = file("~/.ssh/id_rsa.pub")
  f = file()
  g = file("")
  h = fileset("..")
  i = fileset("..", var.x)
  j = fileset("..", "[")
  k = profile("../data")
  l = "file(\"../data\")"
  m = fileset("..", "../../*")
}
"#,
    );
    assert_snapshot!(why_changed(&sandbox, "/data"), @"");
}

#[test]
fn what_is_read_outside_of_the_project_is_warned_of_once() {
    let reads = "locals {\n  a = file(\"../../outside\")\n  \
                 b = fileset(\"${path.module}/../..\", \"*\")\n  c = file(\"/x\")\n}\n";
    let json = r#"{"locals": {"a": "${file(\"${path.module}/../../outside\")}"}}"#;
    let sandbox = project(
        "s t deep/u",
        &[
            ("/s/main.tf", &module("../m")),
            ("/t/main.tf", &module("../m")),
            ("/deep/u/main.tf", &module("../../m")),
            ("/m/main.tf", reads),
            ("/m/x.tf.json", json),
        ],
    );
    assert_snapshot!(why_changed(&sandbox, "/x"), @r#"
    warning: the path `../../outside` leads out of the project
     --> m/main.tf:2:7
      |
    2 |   a = file("../../outside")
      |       ^^^^ reads what is not below the project root
      |
      = note: changes there cannot be seen

    warning: the path `./../..` leads out of the project
     --> m/main.tf:3:7
      |
    3 |   b = fileset("${path.module}/../..", "*")
      |       ^^^^^^^ reads what is not below the project root
      |
      = note: changes there cannot be seen

    warning: the path `./../../outside`, which `m/x.tf.json` reads, leads out of the project
      = note: changes there cannot be seen
    "#);
}

#[test]
fn a_file_that_is_read_and_was_deleted_counts() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", "locals {\n  x = file(\"../data/x\")\n}\n"),
            ("/data/x", ""),
        ],
    );
    fs::remove_dir_all(sandbox.path("/data")).unwrap();
    assert_snapshot!(why(&sandbox), @"s  # changed: data/x (uncommitted, deleted), read by file (s/main.tf:2)");
}

#[cfg(unix)]
#[test]
fn a_file_that_is_read_may_lie_behind_links() {
    let sandbox = project(
        "s",
        &[
            (
                "/s/main.tf",
                "locals {\n  x = file(\"../a/x\")\n  y = fileset(\"../a\", \"*.json\")\n}\n",
            ),
            ("/c/x", ""),
        ],
    );
    sandbox.symlink("b", "/a");
    sandbox.symlink("c", "/b");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/c/x"), @"s  # changed: c/x, read by file (s/main.tf:2), target of the link a, target of the link b");
    assert_snapshot!(why_changed(&sandbox, "/c/new.json"), @"s  # changed: c/new.json, read by fileset (s/main.tf:3), target of the link a, target of the link b");
    assert_eq!(changed(&sandbox, "/c/y"), NONE);
    fs::remove_file(sandbox.path("/b")).unwrap();
    sandbox.symlink("d", "/b");
    assert_snapshot!(why(&sandbox), @"s  # changed: b, read by file (s/main.tf:2), target of the link a");
}

#[test]
fn reads_count_in_json() {
    let sandbox = project(
        "s",
        &[(
            "/s/main.tf.json",
            r#"{"locals": {"a": ["x ${file(\"${path.module}/../data/a\")}"], "b": "file(\"../data/b\")",
               "c": "%{ if fileexists(\"../data/c\") }x%{ endif }"}}"#,
        )],
    );
    assert_snapshot!(why_changed(&sandbox, "/data/a"), @"s  # changed: data/a, read by file (s/main.tf.json)");
    assert_eq!(changed(&sandbox, "/data/b"), NONE);
    assert_eq!(changed(&sandbox, "/data/c"), ["s"]);
}

// Links.

#[cfg(unix)]
#[test]
fn what_a_link_in_a_stack_leads_to_counts() {
    let sandbox = project("s t", &[("/data/x", ""), ("/data2/x", ""), ("/one", "")]);
    sandbox.mkdir("/s/deep/er");
    sandbox.symlink("../one", "/s/file");
    sandbox.symlink("../../../data", "/s/deep/er/directory");
    sandbox.symlink(sandbox.path("/absolute"), "/t/absolute");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/one"), @"s  # changed: one, target of the link s/file");
    assert_snapshot!(why_changed(&sandbox, "/data/x"), @"s  # changed: data/x, target of the link s/deep/er/directory");
    assert_snapshot!(why_changed(&sandbox, "/absolute"), @"t  # changed: absolute, target of the link t/absolute");
    assert_eq!(changed(&sandbox, "/data2/x"), NONE);
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_or_outside_or_round_are_quiet() {
    let sandbox = project("s", &[]);
    sandbox.symlink("loop2", "/s/loop");
    sandbox.symlink("loop", "/s/loop2");
    sandbox.symlink("self", "/s/self");
    sandbox.symlink("../../decoy", "/s/outside");
    sandbox.symlink("/etc", "/s/etc");
    sandbox.symlink("../nowhere", "/s/nowhere");
    commit(&sandbox);
    assert_eq!(why_changed(&sandbox, "/x"), "");
    assert_eq!(changed(&sandbox, "/nowhere"), ["s"]);
}

#[cfg(unix)]
#[test]
fn links_in_a_linked_directory_count() {
    let sandbox = project(
        "c d e f g",
        &[
            ("/shared/common.tf", ""),
            ("/shared/common.json", ""),
            ("/shared/deep/y.json", ""),
            ("/tpl/x", ""),
            ("/conf/real/x.json", ""),
            (
                "/d/main.tf",
                "locals {\n  x = fileset(\"${path.module}/../conf\", \"*.json\")\n}\n",
            ),
            ("/e/stack.tm", "stack {\n  watch = [\"/conf/*.json\"]\n}\n"),
            ("/f/stack.tm", "stack {\n  watch = [\"/conf/**\"]\n}\n"),
            (
                "/g/stack.tm",
                "stack {\n  watch = [\"/conf/*/*.json\"]\n}\n",
            ),
        ],
    );
    sandbox.symlink("../tpl", "/c/tpl");
    sandbox.symlink("../shared/common.tf", "/tpl/x.tpl");
    sandbox.symlink("../conf", "/tpl/conf");
    sandbox.symlink("../tpl", "/conf/round");
    sandbox.symlink("../shared/common.json", "/conf/x.json");
    sandbox.symlink("../shared/deep", "/conf/deep");
    sandbox.symlink("../shared/unused", "/conf/x.txt");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/shared/common.tf"), @"
    c  # changed: shared/common.tf, target of the link c/tpl, target of the link tpl/x.tpl
    f  # changed: shared/common.tf, watched (f/stack.tm:2), target of the link conf/round, target of the link tpl/x.tpl
    ");
    assert_snapshot!(why_changed(&sandbox, "/shared/common.json"), @"
    c  # changed: shared/common.json, target of the link c/tpl, target of the link tpl/conf, target of the link conf/x.json
    d  # changed: shared/common.json, read by fileset (d/main.tf:2), target of the link conf/x.json
    e  # changed: shared/common.json, watched (e/stack.tm:2), target of the link conf/x.json
    f  # changed: shared/common.json, watched (f/stack.tm:2), target of the link conf/x.json
    ");
    assert_eq!(changed(&sandbox, "/shared/deep/y.json"), ["c", "f", "g"]);
    assert_eq!(changed(&sandbox, "/shared/unused"), ["c", "f"]);
    assert_eq!(changed(&sandbox, "/shared/x.json"), NONE);
}

#[cfg(unix)]
#[test]
fn links_where_orch_does_not_look_for_stacks_count() {
    let sandbox = project(
        "m n o p t",
        &[
            ("/t/main.tf", &module("../.modules/t")),
            ("/.modules/t/deep/y", ""),
            ("/shared/common.tf", ""),
            ("/m/files/.tmskip", ""),
            ("/m/files/deep/y", ""),
            ("/n/.config/y", ""),
            ("/o/.terraform/y", ""),
            ("/p/nested/root.orch.hcl", "orch {\n  root = true\n}\n"),
            ("/p/nested/.config/y", ""),
            ("/.config/y", ""),
        ],
    );
    for directory in ["m/files/deep", "n/.config", "o/.terraform", ".config"] {
        let up = "../".repeat(directory.split('/').count());
        sandbox.symlink(format!("{up}shared/common.tf"), &format!("/{directory}/x"));
    }
    sandbox.symlink("../../../shared/common.tf", "/p/nested/.config/x");
    sandbox.symlink("../../../shared/common.tf", "/.modules/t/deep/x");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/shared/common.tf"), @"
    m  # changed: shared/common.tf, target of the link m/files/deep/x
    n  # changed: shared/common.tf, target of the link n/.config/x
    t  # changed: shared/common.tf, module ../.modules/t (t/main.tf:2), target of the link .modules/t/deep/x
    ");
}

#[cfg(unix)]
#[test]
fn every_link_of_a_chain_counts() {
    let sandbox = project("s", &[("/data/x", "")]);
    sandbox.symlink("../a", "/s/link");
    sandbox.symlink("b", "/a");
    sandbox.symlink("data/x", "/b");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/data/x"), @"s  # changed: data/x, target of the link s/link, target of the link a, target of the link b");
    fs::remove_file(sandbox.path("/b")).unwrap();
    sandbox.symlink("data", "/b");
    assert_snapshot!(why(&sandbox), @"s  # changed: b, target of the link s/link, target of the link a");
}

#[cfg(unix)]
#[test]
fn a_link_whose_target_was_deleted_counts() {
    let sandbox = project("s", &[("/data/x", "")]);
    sandbox.symlink("../data/x", "/s/link");
    commit(&sandbox);
    fs::remove_file(sandbox.path("/data/x")).unwrap();
    assert_snapshot!(why(&sandbox), @"s  # changed: data/x (uncommitted, deleted), target of the link s/link");
}

#[cfg(unix)]
#[test]
fn a_link_in_a_nested_stack_is_not_its_parents() {
    let sandbox = project("s s/nested", &[("/x", ""), ("/s/nested/deep/y", "")]);
    sandbox.symlink("../../../x", "/s/nested/deep/link");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/x"), @"s/nested  # changed: x, target of the link s/nested/deep/link");
}

#[cfg(unix)]
#[test]
fn a_link_upwards_does_not_change_with_everything() {
    let sandbox = project("a/s", &[("/a/x", "")]);
    sandbox.symlink("..", "/a/s/up");
    sandbox.symlink("../..", "/a/s/root");
    sandbox.symlink(".", "/a/s/here");
    commit(&sandbox);
    assert_eq!(why_changed(&sandbox, "/a/x"), "");
    assert_eq!(why_changed(&sandbox, "/y"), "");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_elsewhere_now_is_a_change_of_its_stack() {
    let sandbox = project("s", &[("/one", ""), ("/two", "")]);
    sandbox.symlink("../one", "/s/link");
    commit(&sandbox);
    fs::remove_file(sandbox.path("/s/link")).unwrap();
    sandbox.symlink("../two", "/s/link");
    assert_snapshot!(why(&sandbox), @"s  # changed: s/link");
}

#[cfg(unix)]
#[test]
fn a_link_in_a_module_counts() {
    let sandbox = project(
        "s",
        &[
            ("/s/main.tf", &module("../m")),
            ("/m/main.tf", &module("../n")),
            ("/n/deep/x", ""),
            ("/data/x", ""),
        ],
    );
    sandbox.symlink("../../data", "/n/deep/link");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/data/x"), @"s  # changed: data/x, module ../m (s/main.tf:2), module ../n (m/main.tf:2), target of the link n/deep/link");
}

#[cfg(unix)]
#[test]
fn a_link_in_a_hidden_module_counts() {
    let sandbox = project(
        "s t",
        &[
            ("/s/main.tf", &module("../.modules/m")),
            ("/t/main.tf", &module("../skipped/m")),
            ("/.modules/m/x", ""),
            ("/skipped/.orchskip", ""),
            ("/skipped/m/x", ""),
            ("/shared.tf", ""),
        ],
    );
    sandbox.symlink("../../shared.tf", "/.modules/m/main.tf");
    sandbox.symlink("../../shared.tf", "/skipped/m/main.tf");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/shared.tf"), @"
    s  # changed: shared.tf, module ../.modules/m (s/main.tf:2), target of the link .modules/m/main.tf
    t  # changed: shared.tf, module ../skipped/m (t/main.tf:2), target of the link skipped/m/main.tf
    ");
}

#[cfg(unix)]
#[test]
fn a_file_behind_a_link_names_modules_from_where_the_link_is() {
    let sandbox = project(
        "s",
        &[
            ("/shared/main.tf", &module("./m")),
            ("/shared/m/x", ""),
            ("/s/m/stack.tm", "stack {}\n"),
        ],
    );
    sandbox.symlink("../shared/main.tf", "/s/main.tf");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/s/m/x"), @"
    s  # changed: s/m/x, module ./m (s/main.tf:2)
    s/m  # changed: s/m/x
    ");
    assert_snapshot!(why_changed(&sandbox, "/shared/m/x"), @"");
}

// What is opened.

/// The files of Terraform that `orch` opens, by path.
#[cfg(target_os = "linux")]
fn opened(sandbox: &Sandbox, arguments: &str) -> Option<Vec<String>> {
    let trace = sandbox.outside().join("trace");
    let orch = sandbox.command(arguments);
    let mut strace = Command::new("strace");
    strace.args([
        "-f",
        "-qq",
        "-s",
        "4096",
        "-e",
        "trace=open,openat,openat2",
        "-o",
    ]);
    strace
        .arg(&trace)
        .arg("--")
        .arg(orch.get_program())
        .args(orch.get_args());
    strace.env_clear().current_dir(sandbox.path("/"));
    for (name, value) in orch.get_envs() {
        strace.env(name, value.unwrap_or_default());
    }
    let has_run = strace.output().is_ok_and(|output| output.status.success());
    if !has_run {
        skipped("there is no `strace`, or it may not trace");
        return None;
    }
    let trace = fs::read_to_string(trace).unwrap();
    let root = format!(
        "{}/",
        sandbox.path("").to_string_lossy().trim_end_matches('/')
    );
    let paths = trace.lines().filter_map(|line| line.split('"').nth(1));
    let mut files: Vec<String> = paths
        .filter(|path| {
            Path::new(path)
                .extension()
                .is_some_and(|ending| ending == "tf")
        })
        .map(|path| path.strip_prefix(&root).unwrap_or(path).to_owned())
        .collect();
    files.sort_unstable();
    Some(files)
}

/// Makes all files older than the index will be: git would read again what is as young.
#[cfg(target_os = "linux")]
fn age(sandbox: &Sandbox) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for entry in walkdir::WalkDir::new(sandbox.path("/"))
        .into_iter()
        .flatten()
    {
        if entry
            .path()
            .extension()
            .is_some_and(|ending| ending == "tf")
        {
            let file = fs::File::options().write(true).open(entry.path());
            file.unwrap().set_modified(long_ago).unwrap();
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn files_are_opened_once_and_only_if_needed() {
    let sandbox = Sandbox::layout("s\nt\nu");
    for (path, text) in [
        ("/s/main.tf", &*(module("../m") + &module("../m"))),
        ("/t/main.tf", &module("../m")),
        ("/u/a.tf", &module("../u-only")),
        ("/u/b.tf", ""),
        ("/m/main.tf", &module("../n")),
        ("/n/main.tf", &module("../m")),
        ("/u-only/main.tf", ""),
        ("/unused/main.tf", ""),
        ("/x", ""),
    ] {
        sandbox.write(path, text);
    }
    age(&sandbox);
    commit(&sandbox);
    let list = "list --changed --base HEAD";
    let Some(files) = opened(&sandbox, list) else {
        return;
    };
    assert_eq!(files, NONE, "nothing has changed");
    sandbox.write("/x", "changed");
    assert_eq!(opened(&sandbox, "list").unwrap(), NONE, "nobody asked");
    assert_eq!(
        opened(&sandbox, list).unwrap(),
        [
            "m/main.tf",
            "n/main.tf",
            "s/main.tf",
            "t/main.tf",
            "u-only/main.tf",
            "u/a.tf",
            "u/b.tf"
        ]
    );
    // In a commit: of what is not committed, git itself reads the text.
    sandbox.write("/u/b.tf", "# changed\n");
    age(&sandbox);
    commit(&sandbox);
    let list = "list --changed --base HEAD~";
    assert_eq!(
        opened(&sandbox, list).unwrap(),
        ["m/main.tf", "n/main.tf", "s/main.tf", "t/main.tf", "u/b.tf"]
    );
    sandbox.write("/n/y", "changed");
    assert_eq!(
        opened(&sandbox, list).unwrap(),
        ["m/main.tf", "s/main.tf", "t/main.tf", "u/b.tf"]
    );
}
