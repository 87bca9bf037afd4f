//! Files that are no files, or odd ones.

#[cfg(unix)]
use std::fs;
#[cfg(unix)]
use std::process::Command;

use insta::assert_snapshot;

use super::module;
#[cfg(unix)]
use crate::support::skipped;
use crate::support::{commit, project, why_changed};

#[cfg(unix)]
#[test]
fn inputs_that_are_no_regular_files_never_hang() {
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
      = note: changes of files that it uses go unnoticed

    warning: `s/zero.tf` is a link that leads out of the project
      = note: changes of files that it uses go unnoticed
    ");
}

#[test]
fn inputs_warn_of_a_huge_file() {
    let sandbox = project("s", &[("/s/main.tf", &module("../m")), ("/m/x", "")]);
    sandbox.write("/s/huge.tf", "# \n".repeat(1 << 20));
    sandbox.write("/s/huge.tf.json", " ".repeat((16 << 20) + 1));
    sandbox.write("/s/large.tf.json", "{}".to_owned() + &" ".repeat(15 << 20));
    commit(&sandbox);
    assert_snapshot!(why_changed(&sandbox, "/m/x"), @"
    s  # changed: m/x, module ../m (s/main.tf:2)
    warning: `s/huge.tf` is larger than 2 MiB
      = note: changes of files that it uses go unnoticed

    warning: `s/huge.tf.json` is larger than 16 MiB
      = note: changes of files that it uses go unnoticed
    ");
}

#[test]
fn inputs_warn_of_a_file_that_is_not_utf8() {
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
      = note: changes of files that it uses go unnoticed
      = help: save the file as UTF-8
    ");
}

#[test]
fn inputs_may_have_byte_order_marks_and_dos_line_ends() {
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
fn inputs_without_read_permission_are_an_error() {
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
    assert_eq!(output.code(), 5, "{output}");
    let error = "failed to read `s/no.tf`\n  caused by: Permission denied";
    assert!(output.stderr.contains(error), "{output}");
}

#[cfg(unix)]
#[test]
fn inputs_behind_an_unreadable_directory_are_an_error() {
    let long = "n".repeat(300);
    let sandbox = project("s", &[("/s/main.tf", &module("../m")), ("/m/x", "")]);
    sandbox.symlink(&long, "/s/link.tf");
    commit(&sandbox);
    sandbox.write("/m/x", "changed");
    let list = "list --changed --base HEAD";
    let output = sandbox.orch(list);
    assert_eq!(output.code(), 5, "{output}");
    assert_eq!(output.stdout, "", "{output}");
    let error = "failed to find changes\n  caused by: failed to read `s/link.tf`\n";
    assert!(output.stderr.contains(error), "{output}");
    sandbox.remove("/s/link.tf");
    sandbox.write("/s/main.tf", module(&format!("../{long}")));
    commit(&sandbox);
    sandbox.write("/m/x", "changed again");
    let output = sandbox.orch(list);
    assert_eq!(output.code(), 5, "{output}");
    let error = format!("failed to read `{long}`\n");
    assert!(output.stderr.contains(&error), "{output}");
}

#[cfg(unix)]
#[test]
fn inputs_with_unusual_names_are_shown_escaped() {
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
      = note: changes of files that it uses go unnoticed
      = help: add the missing `}`

    warning: `s/c\nd.tf` is larger than 2 MiB
      = note: changes of files that it uses go unnoticed

    warning: the module `./e\nf`, which `s/c\nd.tf.json` uses, does not exist
      = help: correct the path; changes of this module go unnoticed
    ");
}
