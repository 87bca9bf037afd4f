//! `orch run --eval`.

use std::fs;

use insta::assert_snapshot;

use super::{project, quoted};
use crate::support::{Output, Sandbox, run_ids};

/// What `--eval` makes of a word in the stack `/st`.
fn word(sandbox: &Sandbox, word: &str) -> Output {
    let line = format!(
        "run --quiet --eval --no-recursive -- printf %s {}",
        quoted(word)
    );
    sandbox.orch_with(&line, |orch| {
        orch.env("HOST", "of the host")
            .current_dir(sandbox.path("/st"));
    })
}

#[test]
fn run_eval_treats_words_as_templates() {
    let sandbox = project();
    sandbox.write("/st/f.txt", "content");
    for (written, expected) in [
        ("terramate.stack.id", "terramate.stack.id"),
        ("${terramate.stack.id}", "stackid"),
        ("${terramate.stack.name}:${global.env}", "st:prod"),
        ("x${global.n}", "x5"),
        ("%{ if global.yes }yes%{ else }no%{ endif }", "yes"),
        ("%{ for x in global.list }[${x}]%{ endfor }", "[a][b]"),
        ("~${ global.n ~}  z", "~5z"),
        ("$${x} %%{y}", "${x} %{y}"),
        (
            "$x $ $$ $(z) %d 100% {} #{x}",
            "$x $ $$ $(z) %d 100% {} #{x}",
        ),
        ("a\\\"b c\\\\d e\\nf \\u00e9", "a\"b c\\d e\nf é"),
        ("", ""),
        (" ", " "),
        ("${env.HOST}", "of the host"),
        ("${tm_file(\"f.txt\")}", "content"),
        ("${tm_upper(\"hcl\")}", "HCL"),
        ("${<<EOT\nline\nEOT\n}", "line"),
        ("${[\n  global.env,\n][0]}", "prod"),
    ] {
        let output = word(&sandbox, written);
        assert_eq!(
            output.stdout.trim_end_matches('\n'),
            expected,
            "{written}: {output}"
        );
        assert_eq!(output.code(), 0, "{written}: {output}");
    }
    // Without the flag, nothing is evaluated.
    let plain = sandbox.orch_in(
        "/st",
        "run --quiet --no-recursive -- printf %s '${global.env}\"'",
    );
    assert_eq!(plain.stdout.trim_end(), "${global.env}\"", "{plain}");
}

#[test]
fn run_eval_rejects_words_that_are_no_string_templates() {
    let sandbox = project();
    for (written, said, place) in [
        ("${global.n}", "must be a string", "argument 3:1:1"),
        ("${global.yes}", "must be a string", "argument 3:1:1"),
        ("${global.nul}", "must be a string", "argument 3:1:1"),
        ("${global.list}", "must be a string", "argument 3:1:1"),
        ("x${global.nul}", "cannot be inserted", "argument 3:1:4"),
        ("x${global.list}", "cannot be inserted", "argument 3:1:4"),
        ("\"", "not a template", "argument 3:1:1"),
        ("a\"b", "not a template", "argument 3:1:2"),
        ("a\" + \"b", "not a template", "argument 3:1:2"),
        ("c\\d", "not a template", "argument 3:1:2"),
        ("ab${", "not a template", "argument 3:1:3"),
        ("ab${1", "not a template", "argument 3:1:3"),
        ("a\nb", "not a template", "argument 3:1:2"),
        ("${global.nope}", "no global `nope`", "argument 3:1:10"),
        ("a\\n${\nglobal.nope}", "no global `nope`", "argument 3:2:8"),
        (
            "${upper(\"x\")}",
            "unknown function `upper`",
            "argument 3:1:3",
        ),
        ("${let.x}", "`let` cannot be used outside", "argument 3:1:3"),
        ("${env.NO_SUCH}", "no variable `NO_SUCH`", "argument 3:1:7"),
        ("${\"\\u0000\"}", "must be a string", "argument 3:1:1"),
        ("\\u0000", "must be a string", "argument 3:1:1"),
    ] {
        let output = word(&sandbox, written);
        assert_eq!(output.code(), 3, "{written}: {output}");
        assert_eq!(output.stdout, "", "{written}");
        for part in [said, place] {
            assert!(output.stderr.contains(part), "{written}: {part}: {output}");
        }
    }
}

#[test]
fn run_eval_evaluates_every_stack_before_the_first_command() {
    let sandbox = project();
    assert_snapshot!(sandbox.orch("run --eval -- '${global.prog}' '${orch.stack.id}'"), @"
    [stderr]
    error: no attribute `id`
     --> argument 2:1:14
      |
    1 | ${orch.stack.id}
      |              ^^ it has no such attribute
      |
      = note: evaluated for stack `/st/c`

    [exit status 3]
    ");
    // A mistake that many stacks share is reported once, and a broken global is reported where it is
    // wrong.
    assert_snapshot!(sandbox.orch("run --eval -- echo '${global.user}'"), @"
    [stderr]
    error: no global `missing`
      --> g.tm:10:19
       |
    10 |   broken = global.missing
       |                   ^^^^^^^ not defined for this stack or a directory above it
       |
      ::: argument 2:1:1
       |
     1 | ${global.user}
       | -------------- needed here
       |
       = note: evaluated for stack `/st` and 1 more

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch("run --eval -- '${tm_try(global.no, \"\")}'"), @r#"
    [stderr]
    error: the name of the program is empty
     --> argument 1:1:1
      |
    1 | ${tm_try(global.no, "")}
      | ^^^^^^^^^^^^^^^^^^^^^^^^ this is an empty string
      |
      = note: evaluated for stack `/st` and 1 more

    [exit status 3]
    "#);
    assert_snapshot!(sandbox.orch("run --eval -- 'no-such-${orch.stack.name}'"), @"
    [stderr]
    error: program `no-such-c` was not found in the PATH
    note: needed in stack `/st/c`; nothing was run
    error: program `no-such-st` was not found in the PATH
    note: needed in stack `/st`; nothing was run
    [exit status 5]
    ");
}

#[test]
fn run_eval_gives_each_stack_its_own_command() {
    let sandbox = project();
    let line = "--eval -- '${global.prog}' '${global.env} ${orch.stack.name}'";
    assert_snapshot!(sandbox.orch(&format!("run --dry-run {line}")), @"
    /st: echo 'prod st'
    /st/c: echo 'child c'
    ");
    assert_snapshot!(sandbox.orch(&format!("run {line}")), @"
    prod st
    child c
    [stderr]
    orch: /st: echo 'prod st'
    orch: /st/c: echo 'child c'
    orch: 2 succeeded in [time]
    ");
    let parallel = sandbox.orch(&format!("run -j 2 --quiet {line}"));
    assert_eq!(parallel.stdout, "prod st\nchild c\n", "{parallel}");
}

/// The record has the command as given, since its value in a stack may be secret. So a resumed run
/// evaluates it again.
#[test]
fn resume_evaluates_the_command_again() {
    let sandbox = project();
    let run = "run --eval -- sh -c 'test ${global.env} = \\\"$WANTED\\\"'";
    let failed = sandbox.orch_with(run, |orch| {
        orch.env("WANTED", "other");
    });
    assert_eq!(failed.code(), 1, "{failed}");
    let run = &run_ids(&sandbox)[0];
    let folder = sandbox.path(&format!("/.orch/runs/{run}"));
    let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    assert!(journal.contains("\"eval\":true"), "{journal}");
    assert!(journal.contains("${global.env}"), "{journal}");
    sandbox.write("/g2.tm", "globals {\n  other = 1\n}\n");
    let resumed = sandbox.orch_with("run --resume --allow-stale --dry-run", |orch| {
        orch.env("WANTED", "other");
    });
    assert_snapshot!(resumed.stdout, @r#"
    /st: sh -c 'test prod = "$WANTED"'
    /st/c: sh -c 'test child = "$WANTED"'
    "#);
    let refused = sandbox.orch("run --resume --eval");
    assert_snapshot!(refused, @"
    [stderr]
    error: with `--resume`, the command is that of the earlier run: remove `--eval`
    [exit status 64]
    ");
}

#[test]
fn run_eval_applies_exit_statuses_and_safeguards_to_the_evaluated_command() {
    let sandbox = Sandbox::layout("a\nb");
    sandbox.write("/g.tm", "globals {\n  verb = \"plan\"\n}\n");
    sandbox.write_program("/bin/terraform", "#!/bin/sh\necho \"$@\"\nexit 2\n");
    sandbox.git_init();
    sandbox.git_at("/").commit_all();
    sandbox.write("/a/new.txt", "not committed");
    let run = |sandbox: &Sandbox| {
        sandbox.orch_with(
            "run --eval --detailed-exitcode --on-error continue -- terraform '${global.verb}' -detailed-exitcode",
            |orch| {
                let path = std::env::var("PATH").unwrap_or_default();
                let bin = sandbox.path("/bin");
                orch.env("PATH", format!("{}:{path}", bin.display()));
            },
        )
    };
    // A plan only reads, and reports changes with status 2.
    let planned = run(&sandbox);
    assert_eq!(planned.code(), 2, "{planned}");
    // An apply is guarded, even if it runs in only one stack.
    sandbox.write("/b/g.tm", "globals {\n  verb = \"apply\"\n}\n");
    let applied = run(&sandbox);
    assert_eq!(applied.code(), 4, "{applied}");
}
