//! The output of a run on a terminal, and commands that have one of their own.

use insta::assert_snapshot;

use crate::support::Sandbox;

/// Runs a script in each stack in a terminal, and returns all that it was sent.
fn in_terminal(sandbox: &Sandbox, setup: &str, flags: &str, script: &str) -> Option<String> {
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    let orch = crate::support::orch_program().display();
    let line = format!("{setup} '{orch}' run {flags} -- ../script.sh");
    let output = sandbox.in_terminal(&line)?.output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_terminal_gets_colours_and_no_other_sequences() {
    let sandbox = Sandbox::layout("a");
    let script =
        r#"printf '\033[31mred\033[2J\033]0;title\007 %s %s\n' "$CLICOLOR_FORCE" "$FORCE_COLOR""#;
    let colours = "TERM=xterm";
    let Some(text) = in_terminal(&sandbox, colours, "--output grouped", script) else {
        return;
    };
    assert!(text.contains("\u{1b}[31mred 1 1\r\n\u{1b}[0m"), "{text:?}");
    assert!(!text.contains("title") && !text.contains("[2J"), "{text:?}");
    let text = in_terminal(
        &sandbox,
        "TERM=xterm NO_COLOR=1",
        "--output grouped",
        script,
    )
    .unwrap();
    assert!(text.contains("\r\nred  \r\n"), "{text:?}");
    let text = in_terminal(
        &sandbox,
        "TERM=xterm FORCE_COLOR=0",
        "--output grouped",
        script,
    )
    .unwrap();
    assert!(text.contains("red 1 0\r\n"), "{text:?}");
    let text = in_terminal(&sandbox, colours, "--output prefixed", script).unwrap();
    assert!(
        text.contains("/a | \u{1b}[31mred 1 1\u{1b}[0m\r\n"),
        "{text:?}"
    );
}

#[test]
fn colours_are_not_forced_where_one_stream_is_no_terminal() {
    let sandbox = Sandbox::layout("a");
    let script = "echo \"[$FORCE_COLOR$CLICOLOR_FORCE]\"";
    let flags = "--output grouped";
    sandbox.write_program("/script.sh", &format!("#!/bin/sh\n{script}\n"));
    assert_snapshot!(sandbox.orch(&format!("run -q {flags} -- ../script.sh")), @"[]");
    let orch = crate::support::orch_program().display();
    let line = format!("TERM=xterm '{orch}' run -q {flags} -- ../script.sh > printed");
    if let Some(mut terminal) = sandbox.in_terminal(&line) {
        assert!(terminal.status().unwrap().success());
        assert_eq!(sandbox.read("/printed"), "[]\n");
    }
}

#[test]
fn colours_are_forced_only_where_they_are_welcome() {
    let sandbox = Sandbox::layout("a");
    let script = "echo \"[$FORCE_COLOR$CLICOLOR_FORCE]\"";
    let flags = "--output grouped";
    let Some(text) = in_terminal(&sandbox, "TERM=xterm", flags, script) else {
        return;
    };
    assert!(text.contains("[11]"), "{text:?}");
    for setup in [
        "TERM=dumb",
        "TERM=xterm CLICOLOR=0",
        "TERM=xterm NO_COLOR=1",
    ] {
        let text = in_terminal(&sandbox, setup, flags, script).unwrap();
        assert!(text.contains("[]"), "{setup}: {text:?}");
    }
    let environment = |value| {
        let settings = format!(
            "orch {{\n  config {{\n    run {{\n      env {{\n        NO_COLOR = {value}\n      }}\n    }}\n  }}\n}}\n"
        );
        sandbox.write("/env.orch.hcl", settings);
        in_terminal(&sandbox, "TERM=xterm", flags, script).unwrap()
    };
    let text = environment("\"1\"");
    assert!(text.contains("[]"), "{text:?}");
    let text = environment("\"\"");
    assert!(text.contains("[11]"), "{text:?}");
}

#[test]
fn logs_reach_a_terminal_as_output_does() {
    let sandbox = Sandbox::layout("a\nb");
    let bytes = "\u{1b}[31mred\u{1b}[2J\u{1b}]0;title\u{7} \u{1b}[1";
    sandbox.write("/printed", bytes);
    let output = sandbox.orch("run -q --output none -- cat ../printed");
    assert_eq!(output.code(), 0, "{output}");
    let orch = crate::support::orch_program().display();
    let logs = |setup: &str, rest: &str| {
        let line = format!("{setup} '{orch}' runs logs {rest}");
        let output = sandbox.in_terminal(&line)?.output().unwrap();
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let Some(text) = logs("", "") else {
        return;
    };
    assert_eq!(
        text,
        "orch: /a\r\n\u{1b}[31mred \u{1b}[0m\r\norch: /b\r\n\u{1b}[31mred \u{1b}[0m\r\n"
    );
    let text = logs("NO_COLOR=1", "last a").unwrap();
    assert_eq!(text, "orch: /a\r\nred \r\n");
    let text = logs("", "> file").unwrap();
    assert_eq!(text, "orch: /a\r\norch: /b\r\n");
    assert_eq!(sandbox.read("/file"), bytes.repeat(2));
}

#[test]
fn progress_is_shown_and_nothing_of_it_stays() {
    let sandbox = Sandbox::layout(
        "
        a
        b
        c",
    );
    // Long enough for the lines to appear.
    let script = "sleep 0.5; echo done";
    let Some(text) = in_terminal(&sandbox, "stty rows 24 cols 80;", "-j 3", script) else {
        return;
    };
    assert!(text.contains("/a 0."), "{text:?}");
    assert!(text.contains("0 of 3 done, 0."), "{text:?}");
    assert!(!on_screen(&text).contains(" of 3 done"), "{text:?}");
    let lines = on_screen(&text);
    assert_eq!(lines.matches("done\n").count(), 3, "{lines}");
    assert_eq!(lines.matches(": succeeded in").count(), 3, "{lines}");
    for flags in ["-j 3 -q", "-j 3 --output prefixed", "-j 1 --output grouped"] {
        let text = in_terminal(&sandbox, "", flags, "sleep 0.3").unwrap();
        assert!(!text.contains(" of 3 done"), "{flags}: {text:?}");
    }
    let text = in_terminal(&sandbox, "TERM=dumb", "-j 3", "sleep 0.3").unwrap();
    assert!(!text.contains(" of 3 done"), "{text:?}");
}

/// Returns what is left on a screen: knows just what moves the cursor up and clears below it.
fn on_screen(text: &str) -> String {
    let mut lines = vec![String::new()];
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
            let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let number: usize = sequence[..end].parse().unwrap_or(1);
            match &sequence[end..=end] {
                "A" => lines.truncate(lines.len() - number),
                "J" => lines.last_mut().unwrap().clear(),
                "m" => {}
                other => panic!("what does {other} do?"),
            }
            rest = &sequence[end + 1..];
            continue;
        }
        match character {
            '\n' => lines.push(String::new()),
            '\r' => {}
            other => lines.last_mut().unwrap().push(other),
        }
        rest = &rest[character.len_utf8()..];
    }
    lines.join("\n")
}

#[test]
fn a_terminal_is_not_folded() {
    let sandbox = Sandbox::layout("a");
    let flags = "--output grouped";
    let Some(text) = in_terminal(&sandbox, "GITHUB_ACTIONS=true", flags, "echo out") else {
        return;
    };
    assert!(!text.contains("::group::"), "{text:?}");
    // Except where jobs have a terminal, and a log that folds.
    let text = in_terminal(&sandbox, "BUILDKITE=true", flags, "echo out").unwrap();
    assert!(text.contains("--- orch: /a: succeeded"), "{text:?}");
}

#[test]
fn commands_can_have_a_terminal_of_their_own() {
    let sandbox = Sandbox::layout("a");
    sandbox.write_program(
        "/script.sh",
        "#!/bin/sh\ntest -t 1 && test -t 2 && stty size <&1; cat; echo err >&2; exit 3\n",
    );
    let mut command = sandbox.command("run --pty -- ../script.sh");
    let output = command.output().unwrap();
    // As they print it: with the ends of lines that they choose.
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "24 80\nerr\n");
    assert_eq!(output.status.code(), Some(1));
    let setup = "stty rows 33 cols 66;";
    if let Some(text) = in_terminal(&sandbox, setup, "--pty", "stty size <&1") {
        assert!(text.contains("33 66\r\n"), "{text:?}");
    }
}

#[test]
fn a_terminal_of_its_own_gives_all_that_is_printed() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch("run -q --pty -- seq 100000");
    assert_eq!(output.stdout.lines().count(), 100_000);
    assert!(output.stdout.ends_with("\n100000\n"));
}

#[test]
fn run_restores_the_terminal_after_a_command_that_is_killed() {
    let sandbox = Sandbox::layout("a");
    sandbox.write_program("/script.sh", "#!/bin/sh\nstty -echo\nkill -9 $$\n");
    let orch = crate::support::orch_program().display();
    let line = format!("'{orch}' run -- ../script.sh; stty -a");
    let Some(mut command) = sandbox.in_terminal(&line) else {
        return;
    };
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.contains(&"echo"), "{text}");
}
