//! Several commands at once: in which order, and what a failure means.

use insta::assert_snapshot;

use crate::support::{Background, Sandbox, in_shell};

/// The lines of a file of the project.
fn lines(sandbox: &Sandbox, path: &str) -> Vec<String> {
    sandbox.read(path).lines().map(str::to_owned).collect()
}

#[test]
fn commands_run_at_once() {
    let sandbox = Sandbox::layout(
        "
        a
        b",
    );
    let script = r#"
        touch "$ORCH_ROOT/here-$ORCH_STACK_NAME"
        await here-a
        await here-b
    "#;
    let output = Background::run(&sandbox, "-j 2", script).end();
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn parallel_starts_a_stack_once_its_dependencies_are_done() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b
        x",
    );
    // In waves, b would wait for x.
    let script = r#"
        [ $ORCH_STACK_NAME != x ] || await done-c
        touch "$ORCH_ROOT/done-$ORCH_STACK_NAME"
    "#;
    let output = Background::run(&sandbox, "-j 2", script).end();
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn parallel_waits_for_the_last_of_several_dependencies() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c after /a /b
        d",
    );
    // The quick one is done long before the slow one, and a slot is free all the time.
    let script = r#"
        [ $ORCH_STACK_NAME != b ] || await done-d
        if [ $ORCH_STACK_NAME = c ]; then
            ls "$ORCH_ROOT" | grep done- > "$ORCH_ROOT/seen"
        fi
        touch "$ORCH_ROOT/done-$ORCH_STACK_NAME"
    "#;
    let output = Background::run(&sandbox, "-j 3", script).end();
    assert_eq!(output.code(), 0, "{output}");
    assert_eq!(sandbox.read("/seen"), "done-a\ndone-b\ndone-d\n");
}

#[test]
fn never_more_commands_run_than_are_allowed() {
    let names: Vec<String> = ('a'..='l').map(String::from).collect();
    let sandbox = Sandbox::layout(&names.join("\n"));
    sandbox.mkdir("/running");
    // The first three wait for each other, so that three do run at once.
    let script = r#"
        cd "$ORCH_ROOT"
        mkdir running/$ORCH_STACK_NAME
        ls running | wc -l >> counts
        touch here-$ORCH_STACK_NAME
        await here-a; await here-b; await here-c
        ls running | wc -l >> counts
        rmdir running/$ORCH_STACK_NAME
    "#;
    let output = Background::run(&sandbox, "-j 3", script).end();
    assert_eq!(output.code(), 0, "{output}");
    let counts = lines(&sandbox, "/counts");
    let counts = counts.iter().map(|count| count.trim().parse().unwrap());
    assert_eq!(counts.max(), Some(3));
    assert_eq!(lines(&sandbox, "/counts").len(), 24);
}

#[test]
fn parallel_starts_the_lowest_path_first() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c
        d before /c
        e",
    );
    // The first one takes a slot until the end; the others go through the second, one by one.
    let script = r#"
        echo $ORCH_STACK_NAME >> "$ORCH_ROOT/started"
        [ $ORCH_STACK_NAME != a ] || await go
        [ $ORCH_STACK_NAME != e ] || touch "$ORCH_ROOT/go"
    "#;
    let output = Background::run(&sandbox, "-j 2", script).end();
    assert_eq!(output.code(), 0, "{output}");
    let mut started = lines(&sandbox, "/started");
    started.retain(|name| name != "a");
    assert_eq!(started, ["b", "d", "c", "e"]);
}

#[test]
fn as_many_as_there_are_processors() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a",
    );
    assert_eq!(sandbox.orch("run -q -j auto true").code(), 0);
    assert_eq!(sandbox.orch("run -q --parallel=2 true").code(), 0);
    for bad in ["0", "-1", "many", "1.5", "99999999999999999999999"] {
        let output = sandbox.orch(&format!("run --parallel={bad} true"));
        assert_eq!(output.code(), 64, "{output}");
        assert!(
            output.stderr.contains("not `auto` or a number from 1"),
            "{output}"
        );
    }
}

#[test]
fn parallel_accepts_more_slots_than_stacks() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch("run -q -j 18446744073709551615 true");
    assert_eq!(output.code(), 0, "{output}");
}

/// Stack b fails while a runs, which ends after it. Returns what started and what orch said.
fn failing_beside_a_slow_one(flags: &str) -> String {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c after /a
        d after /b
        e after /d
        f",
    );
    let script = r#"
        echo $ORCH_STACK_NAME >> "$ORCH_ROOT/started"
        case $ORCH_STACK_NAME in
        a)
            touch "$ORCH_ROOT/here-a"
            await failing
            # Until orch has taken note of the end of b.
            journal="$ORCH_ROOT/.orch/runs/$ORCH_RUN_ID/journal.jsonl"
            until grep -q '"ended","stack":"/b"' "$journal"; do sleep 0.01; done ;;
        b)
            await here-a
            touch "$ORCH_ROOT/failing"
            exit 3 ;;
        esac
    "#;
    let output = Background::run(&sandbox, flags, script).end();
    let started = sandbox.read("/started").replace('\n', " ");
    let mut started: Vec<&str> = started.split_whitespace().collect();
    started.sort_unstable();
    let started = started.join(" ");
    assert_eq!(output.code(), 1);
    // Which of two that run at once ends first does not matter here.
    let mut said: Vec<&str> = output.stderr.lines().collect();
    said.sort_unstable();
    format!("started: {started}\n{}\n", said.join("\n"))
}

#[test]
fn stop_lets_the_running_ones_end_and_cancels_the_rest() {
    let said = failing_beside_a_slow_one("-q -j 2 --on-error stop");
    assert_snapshot!(said, @"
    started: a b
    orch: /b: failed: exit status 3 after [time]
    orch: 1 succeeded, 1 failed, 4 cancelled in [time]
    orch: cancelled /c: the run stopped when /b failed
    orch: cancelled /d: the run stopped when /b failed
    orch: cancelled /e: the run stopped when /b failed
    orch: cancelled /f: the run stopped when /b failed
    orch: failed /b: exit status 3 after [time]
    orch: to run what is left: orch run --resume [run]
    ");
}

#[test]
fn skip_dependents_goes_on_elsewhere_and_names_the_cause() {
    let said = failing_beside_a_slow_one("-q -j 2 --on-error skip-dependents");
    assert_snapshot!(said, @"
    started: a b c f
    orch: /b: failed: exit status 3 after [time]
    orch: 3 succeeded, 1 failed, 2 skipped in [time]
    orch: failed /b: exit status 3 after [time]
    orch: skipped /d: runs after /b, which failed
    orch: skipped /e: runs after /b, which failed
    orch: to run what is left: orch run --resume [run]
    ");
}

#[test]
fn continue_runs_everything() {
    let said = failing_beside_a_slow_one("-q -j 2 --on-error continue");
    assert_snapshot!(said, @"
    started: a b c d e f
    orch: /b: failed: exit status 3 after [time]
    orch: 5 succeeded, 1 failed in [time]
    orch: failed /b: exit status 3 after [time]
    orch: to run what is left: orch run --resume [run]
    ");
}

#[test]
fn parallel_reverse_skips_dependencies_of_a_failed_stack_despite_on_error() {
    for on_error in ["skip-dependents", "continue"] {
        let sandbox = Sandbox::layout(
            "
            net
            net/db
            net/db/app
            other
            other/app",
        );
        let script = r#"
            echo $ORCH_STACK_PATH >> "$ORCH_ROOT/destroyed"
            [ $ORCH_STACK_PATH != /net/db ]
        "#;
        let flags = format!("-q -j 2 --reverse --on-error {on_error}");
        let output = Background::run(&sandbox, &flags, script).end();
        let mut destroyed = lines(&sandbox, "/destroyed");
        destroyed.sort_unstable();
        assert_eq!(
            destroyed,
            ["/net/db", "/net/db/app", "/other", "/other/app"]
        );
        assert!(
            output
                .stderr
                .contains("skipped /net: runs after /net/db, which failed"),
            "{output}"
        );
        assert_eq!(output.code(), 1);
    }
}

#[test]
fn parallel_reverse_with_stop_starts_nothing_new() {
    let sandbox = Sandbox::layout(
        "
        net
        net/db
        other",
    );
    let script = r#"
        [ $ORCH_STACK_PATH != /other ] || { touch "$ORCH_ROOT/here"; exit 1; }
        await here
        # Until orch has taken note of the failure.
        journal="$ORCH_ROOT/.orch/runs/$ORCH_RUN_ID/journal.jsonl"
        until grep -q '"ended","stack":"/other"' "$journal"; do sleep 0.01; done
        touch "$ORCH_ROOT/destroyed-$ORCH_STACK_NAME"
    "#;
    let output = Background::run(&sandbox, "-q -j 2 --reverse", script).end();
    assert!(sandbox.path("/destroyed-db").exists(), "{output}");
    assert!(!sandbox.path("/destroyed-net").exists(), "{output}");
    assert_eq!(output.code(), 1);
}

#[test]
fn parallel_skips_a_stack_with_two_failed_dependencies_once() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c after /a /b
        d after /c",
    );
    let output = sandbox.orch("run -q -j 2 --on-error skip-dependents false");
    for stack in ["/c", "/d"] {
        let skipped = format!("skipped {stack}: runs after /");
        assert_eq!(output.stderr.matches(&skipped).count(), 1, "{output}");
    }
    assert!(output.stderr.contains("2 failed, 2 skipped"), "{output}");
}

#[test]
fn parallel_counts_a_command_that_cannot_start_as_failed() {
    let sandbox = Sandbox::layout(
        "
        a
        b after /a
        c after /b
        d after /a",
    );
    let script = "[ $ORCH_STACK_NAME != a ] || rm -r ../b";
    let flags = "-q -j 2 --on-error skip-dependents";
    let output = Background::run(&sandbox, flags, script).end();
    assert!(
        output.stderr.contains("failed /b: could not be started"),
        "{output}"
    );
    assert!(
        output
            .stderr
            .contains("skipped /c: runs after /b, which failed"),
        "{output}"
    );
    assert!(
        output.stderr.contains("2 succeeded, 1 failed, 1 skipped"),
        "{output}"
    );
    assert_eq!(output.code(), 1);
}

/// Twenty stacks, and a script that waits until all of them run.
fn all_at_once() -> (Sandbox, &'static str) {
    let stacks: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    let script = r#"
        touch "$ORCH_ROOT/here-$ORCH_STACK_NAME"
        tries=0
        until [ $(ls "$ORCH_ROOT" | grep -c here-) = 20 ]; do
            tries=$((tries + 1)); [ $tries -lt 1000 ] || exit 1
            sleep 0.02
        done
    "#;
    (Sandbox::layout(&stacks.join("\n")), script)
}

#[test]
fn parallel_raises_the_limit_of_open_files() {
    let (sandbox, script) = all_at_once();
    let mut command = in_shell(&sandbox, "ulimit -Sn 50", "-q -j 20", script);
    let output = sandbox.output(&command.output().unwrap());
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn parallel_refuses_more_commands_than_open_files_allow() {
    let (sandbox, script) = all_at_once();
    let mut command = in_shell(&sandbox, "ulimit -n 100", "-q -j 20", script);
    let output = sandbox.output(&command.output().unwrap());
    assert_snapshot!(output, @"
    [stderr]
    error: 20 commands at once need 224 open files, and no more than 100 are allowed (`ulimit -Hn`); run fewer at once: `-j 4`
    [exit status 5]
    ");
    assert!(!sandbox.path("/here-s0").exists(), "nothing has run");
    // Fewer stacks need fewer.
    let mut command = in_shell(&sandbox, "ulimit -n 100", "-q -j 20 --match s1", "true");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}
