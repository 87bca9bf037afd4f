//! Symbolic links.

use std::fs;

use insta::assert_snapshot;

use super::{NONE, module};
use crate::support::{changed, commit, project, why, why_changed};

#[test]
fn inputs_include_the_target_of_a_link() {
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

#[test]
fn inputs_skip_dangling_external_and_cyclic_links() {
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

#[test]
fn inputs_include_links_in_a_linked_directory() {
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

#[test]
fn inputs_include_links_in_skipped_directories() {
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

#[test]
fn inputs_include_every_link_of_a_chain() {
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

#[test]
fn inputs_include_a_link_with_a_deleted_target() {
    let sandbox = project("s", &[("/data/x", "")]);
    sandbox.symlink("../data/x", "/s/link");
    commit(&sandbox);
    fs::remove_file(sandbox.path("/data/x")).unwrap();
    assert_snapshot!(why(&sandbox), @"s  # changed: data/x (uncommitted, deleted), target of the link s/link");
}

#[test]
fn inputs_of_a_parent_exclude_links_of_a_nested_stack() {
    let sandbox = project("s s/nested", &[("/x", ""), ("/s/nested/deep/y", "")]);
    sandbox.symlink("../../../x", "/s/nested/deep/link");
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/x"), @"s/nested  # changed: x, target of the link s/nested/deep/link");
}

#[test]
fn inputs_of_a_link_upwards_exclude_everything_else() {
    let sandbox = project("a/s", &[("/a/x", "")]);
    sandbox.symlink("..", "/a/s/up");
    sandbox.symlink("../..", "/a/s/root");
    sandbox.symlink(".", "/a/s/here");
    commit(&sandbox);
    assert_eq!(why_changed(&sandbox, "/a/x"), "");
    assert_eq!(why_changed(&sandbox, "/y"), "");
}

#[test]
fn inputs_include_a_link_with_a_new_target() {
    let sandbox = project("s", &[("/one", ""), ("/two", "")]);
    sandbox.symlink("../one", "/s/link");
    commit(&sandbox);
    fs::remove_file(sandbox.path("/s/link")).unwrap();
    sandbox.symlink("../two", "/s/link");
    assert_snapshot!(why(&sandbox), @"s  # changed: s/link");
}

#[test]
fn inputs_include_links_in_a_module() {
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

#[test]
fn inputs_include_links_in_a_hidden_module() {
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

#[test]
fn inputs_behind_a_link_resolve_modules_from_the_link() {
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

/// What a deleted link led to is unknown: a pattern may have matched there.
#[test]
fn inputs_include_links_deleted_below_a_pattern() {
    let sandbox = project(
        "d e f g h",
        &[
            ("/shared/x.json", ""),
            ("/conf/y", ""),
            (
                "/d/main.tf",
                "locals {\n  x = fileset(\"${path.module}/../conf\", \"**/*.json\")\n}\n",
            ),
            (
                "/e/main.tf",
                "locals {\n  x = fileset(\"${path.module}/../conf\", \"*.json\")\n}\n",
            ),
            (
                "/f/stack.tm",
                "stack {\n  watch = [\"/conf/**/*.json\"]\n}\n",
            ),
            (
                "/g/stack.tm",
                "stack {\n  watch = [\"/other/**/*.json\"]\n}\n",
            ),
            ("/other/y", ""),
        ],
    );
    sandbox.symlink("../shared", "/conf/link");
    commit(&sandbox);
    fs::remove_file(sandbox.path("/conf/link")).unwrap();
    let uncommitted = sandbox.orch("list --changed --base HEAD --why");
    assert_snapshot!(uncommitted.stdout, @"
    d  # changed: conf/link (uncommitted, deleted), read by fileset (d/main.tf:2); at or below /
    f  # changed: conf/link (uncommitted, deleted), watched (f/stack.tm:2); at or below /
    ");
    fs::write(sandbox.path("/conf/link"), "").unwrap();
    let replaced = sandbox.orch("list --changed --base HEAD --why");
    assert_snapshot!(replaced.stdout, @"
    d  # changed: conf/link (uncommitted, type changed), read by fileset (d/main.tf:2); at or below /
    f  # changed: conf/link (uncommitted, type changed), watched (f/stack.tm:2); at or below /
    ");
    fs::remove_file(sandbox.path("/conf/link")).unwrap();
    commit(&sandbox);
    let committed = sandbox.orch("list --changed --base HEAD~1 --why");
    assert_snapshot!(committed.stdout, @"
    d  # changed: conf/link (deleted), read by fileset (d/main.tf:2); at or below /
    f  # changed: conf/link (deleted), watched (f/stack.tm:2); at or below /
    ");
}
