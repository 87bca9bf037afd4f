//! Which stacks a changed file concerns, and the names that files and stacks have.

use insta::assert_snapshot;

use crate::support::Repository;

#[test]
fn changed_skips_neighbours_with_similar_names() {
    let repository = Repository::layout("a\nab\na-b\na.b\nA");
    repository.write("/a/x.tf", "");
    assert_snapshot!(repository.changed(), @"a  # changed: a/x.tf (untracked); at or below /");
    repository.write("/a-b/x.tf", "");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/x.tf (added); at or below /
    a-b  # changed: a-b/x.tf (added); at or below /
    ");
}

#[test]
fn changed_selects_only_the_nearest_stack() {
    let repository = Repository::layout("/\na\na/b/c\na/b/c-d");
    repository.write("/a/b/c/deep/x.tf", "");
    assert_snapshot!(repository.changed(), @"a/b/c  # changed: a/b/c/deep/x.tf (untracked); at or below /");
    repository.write("/a/b/x.tf", "");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/b/x.tf (untracked); at or below /
    a/b/c  # changed: a/b/c/deep/x.tf (untracked); at or below /
    ");
    repository.write("/x.tf", "");
    assert_snapshot!(repository.changed(), @"
    .  # changed: x.tf (untracked); at or below /
    a  # changed: a/b/x.tf (untracked); at or below /
    a/b/c  # changed: a/b/c/deep/x.tf (untracked); at or below /
    ");
}

#[test]
fn changed_counts_hidden_and_skipped_files() {
    let repository = Repository::layout("a\nb\nc\nd\ne");
    repository.write("/a/.hidden", "");
    repository.write("/b/.github/deep/x.yml", "");
    repository.write("/c/skipped/.tmskip", "");
    repository.write("/d/node_modules/x.js", "");
    repository.write("/e/README", "");
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/.hidden (untracked); at or below /
    b  # changed: b/.github/deep/x.yml (untracked); at or below /
    c  # changed: c/skipped/.tmskip (untracked); at or below /
    d  # changed: d/node_modules/x.js (untracked); at or below /
    e  # changed: e/README (untracked); at or below /
    ");
}

#[test]
fn changed_ignores_a_file_outside_of_stacks() {
    let repository = Repository::layout("a\nb");
    repository.write("/x.tf", "");
    repository.write("/modules/m/x.tf", "");
    repository.write("/more.orch.hcl", "globals {}\n");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 7063b5e
    ");
}

#[test]
fn changed_shows_and_keeps_unusual_file_names() {
    let mut names = vec![
        "a b",
        "-x",
        "q'uo\"te",
        "new\nline",
        "tab\tname",
        "back\\slash",
        "*",
        "\u{e9}",
        "\u{1b}[31m",
        "[x]",
        "#",
        "a\u{202e}b",
    ];
    let long = "l".repeat(200);
    names.push(&long);
    for is_committed in [false, true] {
        let repository = Repository::layout("none");
        for index in 0..names.len() {
            repository.write(&format!("/s{index:02}/stack.tm"), "stack {}\n");
        }
        repository.commit();
        repository.git("tag -f base");
        for (index, name) in names.iter().enumerate() {
            repository.write(&format!("/s{index:02}/{name}"), "");
        }
        if is_committed {
            repository.commit();
        } else {
            assert_snapshot!(repository.changed(), @r#"
            s00  # changed: s00/a b (untracked); at or below /
            s01  # changed: s01/-x (untracked); at or below /
            s02  # changed: s02/q'uo"te (untracked); at or below /
            s03  # changed: s03/new\nline (untracked); at or below /
            s04  # changed: s04/tab\tname (untracked); at or below /
            s05  # changed: s05/back\slash (untracked); at or below /
            s06  # changed: s06/* (untracked); at or below /
            s07  # changed: s07/é (untracked); at or below /
            s08  # changed: s08/\u{1b}[31m (untracked); at or below /
            s09  # changed: s09/[x] (untracked); at or below /
            s10  # changed: s10/# (untracked); at or below /
            s11  # changed: s11/a\u{202e}b (untracked); at or below /
            s12  # changed: s12/llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll (untracked); at or below /
            "#);
        }
        let list = repository.list("--format json").json();
        let files: Vec<String> = list["stacks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|stack| {
                let file = stack["reasons"][0]["file"].as_str().unwrap();
                file.split_once('/').unwrap().1.to_owned()
            })
            .collect();
        assert_eq!(files, names);
    }
}

#[test]
fn changed_selects_stacks_with_unusual_names() {
    let repository = Repository::layout("none");
    for name in [
        "a b",
        "-x",
        "q'uo\"te",
        "new\nline",
        "back\\slash",
        "*",
        "[x]",
        "é",
    ] {
        repository.write(&format!("/{name}/stack.tm"), "stack {}\n");
        repository.write(&format!("/gone/{name}/stack.tm"), "stack {}\n");
    }
    repository.commit();
    repository.git("tag -f base");
    assert_snapshot!(repository.changed(), @"
    [stderr]
    note: no stack has changed since 29d488a
    ");
    for name in [
        "a b",
        "-x",
        "q'uo\"te",
        "new\nline",
        "back\\slash",
        "*",
        "[x]",
        "é",
    ] {
        repository.write(&format!("/{name}/x"), "");
        repository.remove(&format!("/gone/{name}/stack.tm"));
    }
    assert_snapshot!(repository.changed(), @r#"
    *  # changed: */x (untracked); at or below /
    -x  # changed: -x/x (untracked); at or below /
    [x]  # changed: [x]/x (untracked); at or below /
    a b  # changed: a b/x (untracked); at or below /
    back\slash  # changed: back\slash/x (untracked); at or below /
    new\nline  # changed: new\nline/x (untracked); at or below /
    q'uo"te  # changed: q'uo"te/x (untracked); at or below /
    é  # changed: é/x (untracked); at or below /
    [stderr]
    note: stack `/gone/*` was removed since the base; nothing is run for it
    note: stack `/gone/-x` was removed since the base; nothing is run for it
    note: stack `/gone/[x]` was removed since the base; nothing is run for it
    note: stack `/gone/a b` was removed since the base; nothing is run for it
    note: stack `/gone/back\slash` was removed since the base; nothing is run for it
    note: stack `/gone/new\nline` was removed since the base; nothing is run for it
    note: stack `/gone/q'uo"te` was removed since the base; nothing is run for it
    note: stack `/gone/é` was removed since the base; nothing is run for it
    "#);
}

#[cfg(target_os = "linux")]
#[test]
fn changed_compares_names_byte_by_byte() {
    let repository = Repository::layout("e\u{301}\n\u{e9}\ngone/e\u{301}\ngone/\u{e9}");
    repository.write("/e\u{301}/x", "");
    repository.git("rm -q -r gone/e\u{301}");
    let output = repository.changed();
    let expected = "e\u{301}  # changed: e\u{301}/x (untracked); at or below /\n";
    assert_eq!(output.stdout, expected);
    assert!(
        output.stderr.contains("`/gone/e\u{301}` was removed"),
        "{output}"
    );
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
}

#[cfg(target_os = "linux")]
#[test]
fn changed_counts_names_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let repository = Repository::layout("a\nb\nc\nd");
    let odd = |name: &[u8]| repository.path("/").join(OsStr::from_bytes(name));
    std::fs::create_dir(odd(b"b/\xff")).unwrap();
    std::fs::write(odd(b"b/\xff/x"), "").unwrap();
    repository.commit();
    repository.git("tag -f base");
    std::fs::write(odd(b"a/\xfe\xff"), "").unwrap();
    std::fs::write(odd(b"b/\xff/x"), "# changed\n").unwrap();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/�� (untracked); at or below /
    b  # changed: b/�/x (uncommitted); at or below /
    ");
    repository.commit();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/�� (added); at or below /
    b  # changed: b/�/x; at or below /
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn changed_ignores_base_directories_that_are_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let repository = Repository::layout("a\nb");
    let odd = |name: &[u8]| repository.path("/").join(OsStr::from_bytes(name));
    std::fs::create_dir(odd(b"odd\xff")).unwrap();
    std::fs::write(odd(b"odd\xff/stack.tm"), "stack {}\n").unwrap();
    std::fs::write(odd(b"a/\xff.tm"), "globals {}\n").unwrap();
    repository.write("/b/more.tm", "globals {}\n");
    repository.commit();
    repository.git("tag -f base");
    std::fs::remove_dir_all(odd(b"odd\xff")).unwrap();
    std::fs::remove_file(odd(b"a/\xff.tm")).unwrap();
    std::fs::remove_dir_all(repository.path("/b")).unwrap();
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/�.tm (uncommitted, deleted); at or below /
    [stderr]
    note: stack `/b` was removed since the base; nothing is run for it
    ");
}

#[test]
fn changed_handles_two_thousand_files() {
    let repository = Repository::layout("a\nb");
    for number in 0..1000 {
        repository.write(&format!("/a/{number}.tf"), "");
    }
    repository.commit();
    for number in 0..1000 {
        repository.write(&format!("/b/dir{}/{number}.tf", number % 10), "");
    }
    assert_snapshot!(repository.changed(), @"
    a  # changed: a/0.tf (added); at or below /
    b  # changed: b/dir0/0.tf (untracked); at or below /
    ");
}
