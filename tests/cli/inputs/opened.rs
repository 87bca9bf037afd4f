//! Which files are opened.

use std::fs;
use std::time::{Duration, SystemTime};

use super::{NONE, module};
use crate::support::{Sandbox, commit, opened};

/// Makes all files older than the index will be: git would read again what is as young.
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

#[test]
fn inputs_are_opened_once_and_only_if_needed() {
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
    let Some(files) = opened(&sandbox, list, ".tf") else {
        return;
    };
    assert_eq!(files, NONE, "nothing has changed");
    sandbox.write("/x", "changed");
    assert_eq!(
        opened(&sandbox, "list", ".tf").unwrap(),
        NONE,
        "nobody asked"
    );
    assert_eq!(
        opened(&sandbox, list, ".tf").unwrap(),
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
        opened(&sandbox, list, ".tf").unwrap(),
        ["m/main.tf", "n/main.tf", "s/main.tf", "t/main.tf", "u/b.tf"]
    );
    sandbox.write("/n/y", "changed");
    assert_eq!(
        opened(&sandbox, list, ".tf").unwrap(),
        ["m/main.tf", "s/main.tf", "t/main.tf", "u/b.tf"]
    );
}
