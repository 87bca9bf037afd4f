//! `--stacks-from`: another tool chooses.

use std::io::{Seek, Write};

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Output, Sandbox};

fn sandbox() -> Sandbox {
    Sandbox::layout(
        "
        a
        a/b
        c [x] wants /d
        d
        e after /c",
    )
}

/// Runs `orch` with a text on standard input.
fn with_input(sandbox: &Sandbox, arguments: &str, input: impl AsRef<[u8]>) -> Output {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input.as_ref()).unwrap();
    file.rewind().unwrap();
    let output = sandbox.command(arguments).stdin(file).output();
    sandbox.output(&output.expect("orch starts"))
}

#[test]
fn stacks_from_reads_a_file_or_stdin() {
    let sandbox = sandbox();
    sandbox.write("/names", "c\n/a/b\n");
    assert_snapshot!(sandbox.orch("list --why --stacks-from names"), @"
    a/b  # at or below /; named in names, line 2
    c  # at or below /; named in names, line 1
    d  # wanted by /c (c/stack.tm:3)
    ");
    assert_snapshot!(with_input(&sandbox, "list --why --stacks-from -", "./e/\n"), @"e  # at or below /; named in standard input, line 1");
    assert_snapshot!(with_input(&sandbox, "run --dry-run --stacks-from=- git", "a\ne"), @"
    /a: git
    /e: git
    ");
}

#[test]
fn how_a_list_is_written_does_not_matter() {
    let sandbox = sandbox();
    let plain = with_input(&sandbox, "list --stacks-from -", "a\ne\n").to_string();
    assert_eq!(plain, "a\ne\n");
    for input in [
        "e\na",
        "a\r\ne\r\n",
        "\n\na\n   \n\ne\n\n",
        "  a\t\n e \n",
        "a\ne\na\n./e\n/a\n",
        "/a\n/e/\n",
        "c/../a\n.//e\n",
        "\u{feff}a\ne\n",
    ] {
        let output = with_input(&sandbox, "list --stacks-from -", input);
        assert_eq!(output.to_string(), plain, "{input:?}");
    }
}

#[test]
fn stacks_from_does_not_match_nested_stacks() {
    let sandbox = sandbox();
    assert_eq!(
        with_input(&sandbox, "list --stacks-from -", "a").stdout,
        "a\n"
    );
}

#[test]
fn stacks_from_gives_the_first_line_as_the_reason() {
    let sandbox = sandbox();
    let list = with_input(
        &sandbox,
        "list --format json --stacks-from -",
        "\na\n\n/a\n",
    )
    .json();
    assert_eq!(
        list["stacks"][0]["reasons"],
        json!([
            {"kind": "directory", "detail": "at or below /"},
            {
                "kind": "named",
                "detail": "named in standard input, line 2",
                "file": "standard input",
                "line": 2
            }
        ])
    );
}

#[test]
fn stacks_from_an_empty_list_selects_nothing() {
    let sandbox = sandbox();
    sandbox.write("/names", "");
    assert_snapshot!(sandbox.orch("list --stacks-from names"), @"
    [stderr]
    note: no stack at or below `/` passes --stacks-from
    ");
    assert_snapshot!(with_input(&sandbox, "run --stacks-from - false", "\n \r\n"), @"
    [stderr]
    note: no stack at or below `/` passes --stacks-from
    ");
}

#[test]
fn stacks_from_reports_each_line_without_a_stack() {
    let sandbox = sandbox();
    sandbox.mkdir("/a/b/modules");
    sandbox.mkdir("/plain");
    sandbox.mkdir("/group");
    sandbox.write("/group/1/stack.tm", "stack {}\n");
    let input = "a\nnope\na/b/modules\nplain\ngroup\n../outside\n/a/stack.tm\n# c\n\u{1b}[31m\n";
    assert_snapshot!(with_input(&sandbox, "list --stacks-from -", input), @r"
    [stderr]
    error: standard input names paths that are not stacks:
      line 2: `nope`: does not exist
      line 3: `a/b/modules`: not a stack, but inside of the stack `/a/b`
      line 4: `plain`: not a stack
      line 5: `group`: not a stack, but 1 stack lies below it
      line 6: `../outside`: outside of the project
      line 7: `/a/stack.tm`: not a stack, but inside of the stack `/a`
      line 8: `# c`: does not exist
      line 9: `\u{1b}[31m`: does not exist
    [exit status 64]
    ");
    let many: Vec<String> = (1..=12).map(|n| format!("no{n}")).collect();
    let many = many.join("\n");
    assert_snapshot!(with_input(&sandbox, "list --stacks-from -", many), @"
    [stderr]
    error: standard input names paths that are not stacks:
      line 1: `no1`: does not exist
      line 2: `no2`: does not exist
      line 3: `no3`: does not exist
      line 4: `no4`: does not exist
      line 5: `no5`: does not exist
      line 6: `no6`: does not exist
      line 7: `no7`: does not exist
      line 8: `no8`: does not exist
      line 9: `no9`: does not exist
      line 10: `no10`: does not exist
      and 2 more
    [exit status 64]
    ");
    assert_snapshot!(with_input(&sandbox, "run --stacks-from - false", "A\n"), @"
    [stderr]
    error: standard input names paths that are not stacks:
      line 1: `A`: does not exist
    [exit status 64]
    ");
}

#[test]
fn stacks_from_an_unreadable_file_is_an_error() {
    let sandbox = sandbox();
    sandbox.mkdir("/folder");
    sandbox.write("/latin", b"a\n\xe9\n");
    assert_snapshot!(sandbox.orch("list --stacks-from missing"), @"
    [stderr]
    error: failed to read the list of stacks from missing
      caused by: No such file or directory (os error 2)
    [exit status 5]
    ");
    assert_snapshot!(sandbox.orch("run --stacks-from missing false"), @"
    [stderr]
    error: failed to read the list of stacks from missing
      caused by: No such file or directory (os error 2)
    [exit status 5]
    ");
    assert_snapshot!(sandbox.orch("list --stacks-from folder"), @"
    [stderr]
    error: failed to read the list of stacks from folder
      caused by: Is a directory (os error 21)
    [exit status 5]
    ");
    assert_snapshot!(sandbox.orch("list --stacks-from latin"), @"
    [stderr]
    error: failed to read the list of stacks from latin
      caused by: stream did not contain valid UTF-8
    [exit status 5]
    ");
    assert_snapshot!(with_input(&sandbox, "list --stacks-from -", b"a\n\xff\n"), @"
    [stderr]
    error: failed to read the list of stacks from standard input
      caused by: stream did not contain valid UTF-8
    [exit status 5]
    ");
    assert_snapshot!(sandbox.orch("list --stacks-from ''"), @"
    [stderr]
    error: a value is required for '--stacks-from <FILE>' but none was supplied

    For more information, try '--help'.
    [exit status 64]
    ");
}

#[test]
fn stacks_from_resolves_paths_from_the_current_directory() {
    let sandbox = sandbox();
    sandbox.write("/a/names", "b\n.\n");
    assert_eq!(
        sandbox.orch_in("/a", "list --stacks-from names").stdout,
        ".\nb\n"
    );
    assert_eq!(
        sandbox.orch("-C a list --stacks-from names").stdout,
        ".\nb\n"
    );
    assert_eq!(
        sandbox.orch("-C a list --stacks-from ../a/names").stdout,
        ".\nb\n"
    );
}

#[test]
fn stacks_from_omits_stacks_outside_of_the_current_directory() {
    let sandbox = sandbox();
    sandbox.write("/names", "/a\n/c\n/d\n");
    assert_snapshot!(sandbox.orch("-C a list --stacks-from ../names"), @"
    .
    [stderr]
    note: of 3 stacks in ../names, 2 lie outside of `/a` and are left out
    ");
    sandbox.write("/names", "/c\n");
    assert_snapshot!(sandbox.orch("-C a list --stacks-from ../names"), @"
    [stderr]
    note: of 1 stack in ../names, 1 lies outside of `/a` and is left out
    note: no stack at or below `/a` passes --stacks-from
    ");
}

#[test]
fn stacks_from_combines_with_all_other_flags() {
    let sandbox = sandbox();
    let list = |flags: &str| {
        let output = with_input(
            &sandbox,
            &format!("list --stacks-from - {flags}"),
            "a\nc\ne\n",
        );
        assert_eq!(output.code(), 0, "{output}");
        output.stdout.lines().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(list(""), "a c d e", "what is wanted comes along");
    assert_eq!(list("--tags x"), "c d");
    assert_eq!(list("--match a --match e"), "a e");
    assert_eq!(list("--no-tags x"), "a e");
    assert_eq!(list("--exclude c"), "a e");
    assert_eq!(list("--only-dependents"), "a/b e");
    assert_eq!(list("--match e --include-dependencies"), "c d e");
    assert_eq!(list("--exclude-dependencies"), "a d e");
}

#[test]
fn stacks_from_reads_the_output_of_list() {
    let sandbox = sandbox();
    for flags in ["", "--tags x", "--match 'a/**'", "--order", "--match none"] {
        let listed = sandbox.orch(&format!("list {flags}")).stdout;
        let again = with_input(&sandbox, "list --order --stacks-from -", &listed).stdout;
        let run = with_input(&sandbox, "run --dry-run --stacks-from - git", &listed).stdout;
        let run = run.lines().map(|line| line.strip_suffix(": git").unwrap());
        let run: Vec<&str> = run.map(|path| path.trim_start_matches('/')).collect();
        assert_eq!(run, again.lines().collect::<Vec<_>>(), "{flags}");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&again), sorted(&listed), "{flags}");
    }
}

#[test]
fn stacks_from_keeps_blanks_at_the_ends_of_names() {
    let sandbox = Sandbox::new("");
    for path in ["/ a", "/b ", "/c d", "/a"] {
        sandbox.write(&format!("{path}/stack.tm"), "stack {}\n");
    }
    let listed = sandbox.orch("list").stdout;
    assert_eq!(listed, " a\na\nb \nc d\n");
    let again = with_input(&sandbox, "list --stacks-from -", &listed);
    assert_eq!(again.to_string(), listed);
}

#[test]
fn commands_of_a_run_do_not_read_the_list_again() {
    let sandbox = sandbox();
    let run = with_input(&sandbox, "run --quiet --stacks-from - cat", "a\ne\n");
    assert_eq!((run.code(), run.stdout.as_str()), (0, ""), "{run}");
}

#[cfg(unix)]
#[test]
fn stacks_from_stdin_notices_changes_while_it_waits() {
    let repository = crate::support::Repository::layout("a");
    let list = repository.outside().join("list");
    let made = std::process::Command::new("mkfifo").arg(&list).status();
    assert!(made.unwrap().success());
    let mut orch = repository.command("run --stacks-from ../list -- true");
    orch.stdout(std::process::Stdio::piped());
    let orch = orch.stderr(std::process::Stdio::piped()).spawn().unwrap();
    // This returns when orch has come to read the list.
    let mut chosen = std::fs::File::options().write(true).open(&list).unwrap();
    repository.write("/a/new.tf", "");
    chosen.write_all(b"a\n").unwrap();
    drop(chosen);
    let output = orch.wait_with_output().unwrap();
    assert_snapshot!(repository.output(&output), @"
    [stderr]
    error: refused: 1 file is untracked (safeguard `git-untracked`)
        a/new.tf
      = help: commit or ignore it, or disable this safeguard with `--disable-safeguards=git-untracked`
    note: nothing was run
    [exit status 4]
    ");
}

#[test]
#[cfg(unix)]
fn stacks_from_takes_paths_with_line_breaks_as_list_prints_them() {
    let sandbox = Sandbox::layout("b\nc");
    sandbox.write("/d/a\nb/stack.tm", "stack {}\n");
    let listed = sandbox.orch("list").stdout;
    assert_eq!(listed, "b\nc\nd/a\\nb\n");
    assert_eq!(
        with_input(&sandbox, "list --stacks-from -", &listed).stdout,
        listed
    );
    let one = "d/a\\nb\n";
    assert_eq!(
        with_input(&sandbox, "list --stacks-from -", one).stdout,
        one
    );
    let absolute = "/d/a\\nb\n";
    assert_eq!(
        with_input(&sandbox, "list --stacks-from -", absolute).stdout,
        one
    );
    // As two lines, these are other paths.
    let split = with_input(&sandbox, "list --stacks-from -", "d/a\nb\n");
    assert_eq!(split.code(), 64, "{split}");
}
