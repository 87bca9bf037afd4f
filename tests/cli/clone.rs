//! `orch clone`

use std::fs;

use insta::assert_snapshot;

use crate::support::Sandbox;

/// All files of a directory, with their texts.
fn tree(sandbox: &Sandbox, directory: &str) -> String {
    fn walk(at: &std::path::Path, shown: &str, out: &mut String) {
        let mut names: Vec<_> = fs::read_dir(at)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        for name in names {
            let path = at.join(&name);
            let shown = format!("{shown}/{name}");
            if path.is_dir() {
                walk(&path, &shown, out);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                *out += &format!("{shown}: {}\n", text.trim_end().replace('\n', "|"));
            }
        }
    }
    let mut out = String::new();
    walk(&sandbox.path(directory), "", &mut out);
    out
}

const PROJECT: &str = r#"
//- a/stack.tm
# a stack
stack {
  id   = "an-id" // its id
  name = "a"
}
//- a/main.tf
# a
//- a/.hidden
x
//- a/files/x.txt
x
//- a/files/.hidden/y.txt
y
//- a/child/stack.tm
stack {
  tags = ["t"]
}
//- a/child/deep/stack.orch.hcl
stack {
  id = "other"
}
//- plain/x/stack.tm
stack {
}
//- plain/readme.txt
x
"#;

#[test]
fn clone_copies_stacks_with_new_ids() {
    let sandbox = Sandbox::new(PROJECT);
    assert_snapshot!(sandbox.orch("clone a new/b"), @"cloned 3 stacks from a to new/b");
    let copied = tree(&sandbox, "/new/b");
    let text = sandbox.read("/new/b/stack.tm");
    let id = text.split('"').nth(1).unwrap();
    assert_eq!(id.len(), 36);
    assert_eq!(text, sandbox.read("/a/stack.tm").replace("an-id", id));
    let other = sandbox.read("/new/b/child/deep/stack.orch.hcl");
    let other = other.split('"').nth(1).unwrap();
    assert_ne!(other, id);
    assert_snapshot!(copied.replace(id, "NEW").replace(other, "OTHER"), @r#"
    /child/deep/stack.orch.hcl: stack {|  id = "OTHER"|}
    /child/stack.tm: stack {|  tags = ["t"]|}
    /files/x.txt: x
    /main.tf: # a
    /stack.tm: # a stack|stack {|  id   = "NEW" // its id|  name = "a"|}
    "#);
    assert_eq!(sandbox.orch("validate").code(), 0);
}

#[test]
fn clone_leaves_out_children_on_request() {
    let sandbox = Sandbox::new(PROJECT);
    let output = sandbox.orch("experimental clone --skip-child-stacks --no-generate a b");
    assert_snapshot!(output, @"cloned 1 stack from a to b");
    assert!(!sandbox.path("/b/child").exists());
    assert!(sandbox.path("/b/files/x.txt").exists());
    assert_snapshot!(sandbox.orch("clone --skip-child-stacks plain b2"), @"
    [stderr]
    error: cannot clone `plain`: `/plain` is no stack, and `--skip-child-stacks` leaves out the stacks below it
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("clone plain b2"), @"cloned 1 stack from plain to b2");
    assert_eq!(tree(&sandbox, "/b2"), "/x/stack.tm: stack {|}\n");
}

#[test]
fn clone_may_lie_in_its_source() {
    let sandbox = Sandbox::layout("a\na/b\na/b/c");
    assert_snapshot!(sandbox.orch("clone a a/b/copy"), @"cloned 3 stacks from a to a/b/copy");
    assert_snapshot!(sandbox.orch("list"), @"
    a
    a/b
    a/b/c
    a/b/copy
    a/b/copy/b
    a/b/copy/b/c
    ");
}

#[test]
fn clone_dry_run_writes_nothing() {
    let sandbox = Sandbox::new(PROJECT);
    assert_snapshot!(sandbox.orch("clone --dry-run a b"), @"
    would create stack /b
    would create stack /b/child
    would create stack /b/child/deep
    ");
    assert!(!sandbox.path("/b").exists());
}

#[test]
fn clone_refuses_what_it_cannot_copy() {
    let sandbox = Sandbox::new(PROJECT);
    sandbox.write(
        "/many/stack.orch.hcl",
        "stack {\n  for_each = [\"x\"]\n  id       = \"i-${each.key}\"\n}\n",
    );
    for (arguments, why) in [
        ("none b", "cannot clone `none`: does not exist"),
        ("../a b", "cannot clone `../a`: outside of the project"),
        ("a ../b", "cannot clone to `../b`: outside of the project"),
        ("a plain", "cannot clone to `plain`: it exists already"),
        ("a .b", "cannot clone to `.b`: `.b` begins with a dot"),
        ("many b", "the instances in `/many` have ids"),
    ] {
        let output = sandbox.orch(&format!("clone {arguments}"));
        assert_eq!(output.code(), 64, "{arguments}: {output}");
        assert!(output.stderr.contains(why), "{arguments}: {output}");
    }
    assert!(!sandbox.path("/b").exists());
}

#[cfg(unix)]
#[test]
fn clone_that_fails_leaves_nothing() {
    let sandbox = Sandbox::new(PROJECT);
    let pipe = sandbox.path("/a/child/deep/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert_snapshot!(sandbox.orch("clone a new/b"), @"
    [stderr]
    error: failed to copy `a/child/deep/pipe`
      caused by: it is no regular file
    [exit status 5]
    ");
    assert!(!sandbox.path("/new").exists());
    assert_eq!(sandbox.orch("clone --skip-child-stacks a new/b").code(), 0);
}

#[cfg(unix)]
#[test]
fn clone_keeps_links_and_permissions() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::new(PROJECT);
    sandbox.write("/common.tf", "# common\n");
    sandbox.symlink("../common.tf", "/a/common.tf");
    sandbox.symlink("main.tf", "/a/link.tf");
    sandbox.write_program("/a/run", "#!/bin/sh\n");
    assert_eq!(sandbox.orch("clone a deep/down/b").code(), 0);
    assert_eq!(sandbox.read("/deep/down/b/common.tf"), "# common\n");
    assert_eq!(
        fs::read_link(sandbox.path("/deep/down/b/link.tf"))
            .unwrap()
            .to_str(),
        Some("main.tf")
    );
    let mode = fs::metadata(sandbox.path("/deep/down/b/run"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
}
