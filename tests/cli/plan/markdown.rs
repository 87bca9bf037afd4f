//! Plans as Markdown: for the comment of a pull request, and for the summary of a job.

use insta::assert_snapshot;

use super::project;
use crate::support::{Output, Sandbox};

/// A plan with colours and markup, and something on stderr that is not part of it.
const CHANGES: &str =
    r"printf '\033[31m~\033[0m one\r\n```\n</details>\n'; echo warning >&2; exit 2";

/// A plan of many lines.
const LONG: &str =
    "i=0; while test $i -lt 500; do echo line $i of the plan; i=$((i+1)); done; exit 2";

#[test]
fn plan_markdown_has_a_table_and_folded_tool_output() {
    let sandbox = project(&[
        ("/a", CHANGES),
        ("/b", "echo nothing to do"),
        ("/c", "exit 2"),
        ("/later", "echo not yet; exit 1"),
    ]);
    let later = "stack {\n  driver = \"fake\"\n  after  = [\"/a\"]\n}\n";
    sandbox.write("/later/stack.orch.hcl", later);
    let output = sandbox.orch("plan --format markdown -o plan");
    assert_eq!(output.code(), 0, "{output:?}");
    assert_snapshot!(output.stdout, @"
    ### `orch plan`

    Plan: 2 to update, 1 known after apply, 1 unchanged.

    | | stack | action | reason | resources |
    | --- | --- | --- | --- | --- |
    | `~` | `/a` | update | has changes |  |
    | `~` | `/c` | update | has changes |  |
    | `?` | `/later` |  | `known after /a; cannot be planned yet: exit status 1` |  |

    A stack marked `?` is planned during the apply, after the stacks named.

    <details>
    <summary><code>/a</code>: update</summary>

    ````text
    ~ one
    ```
    </details>
    ````

    </details>

    <details>
    <summary><code>/later</code>: output</summary>

    ```text
    not yet
    ```

    </details>
    ");
    // What the tools have printed is not in the file.
    let shown = sandbox.orch("show plan --format markdown");
    assert_eq!(shown.code(), 0, "{shown:?}");
    let (table, _) = output.stdout.split_once("\n<details>").unwrap();
    assert_eq!(shown.stdout, table);
}

#[test]
fn plan_markdown_leaves_out_init_and_earlier_attempts() {
    let sandbox = Sandbox::new("");
    let driver = r#"
driver "fake" {
  init        = ["sh", "-c", "echo from init; touch ready"]
  initialized = "ready"
  plan        = ["sh", "./says"]
  apply       = ["true"]
}

orch {
  config {
    run {
      retry {
        attempts = 2
        on_exit  = [1]
        backoff  = "0s"
      }
    }
  }
}
"#;
    sandbox.write("/orch.orch.hcl", driver);
    sandbox.write("/a/stack.orch.hcl", "stack {\n  driver = \"fake\"\n}\n");
    let says = "if test -e tried; then echo second; exit 2; fi; touch tried; echo first; exit 1";
    sandbox.write("/a/says", says);
    let folded = || {
        let output = sandbox.orch("plan --init --format markdown");
        assert_eq!(output.code(), 0, "{output:?}");
        let (_, lines) = output.stdout.split_once("```text\n").unwrap();
        lines.split_once("\n```").unwrap().0.to_owned()
    };
    assert_eq!(folded(), "second");
    let logs = sandbox.orch("runs logs last").stdout;
    assert_eq!(logs.matches("from init").count(), 2, "{logs}");
    assert_eq!(folded(), "second");
}

#[test]
fn plan_markdown_has_all_output_of_a_failed_tool() {
    let says = "echo on stdout; echo on stderr >&2; exit 1";
    let sandbox = project(&[("/a", CHANGES), ("/b", says)]);
    let output = sandbox.orch("plan --format markdown -o plan");
    assert_eq!(output.code(), 1, "{output:?}");
    let row = "| `!` | `/b` | failed | exit status 1";
    let (before, rows) = output.stdout.split_once(row).expect("a row");
    assert!(
        !before.contains("`/a`") && rows.contains("`/a`"),
        "{output:?}"
    );
    let text = "<code>/b</code>: output</summary>\n\n```text\non stdout\non stderr\n```\n";
    assert!(output.stdout.contains(text), "{output:?}");
}

#[test]
fn plan_markdown_is_cut_with_a_hint_to_the_rest() {
    let sandbox = project(&[("/a", LONG), ("/b", LONG)]);
    let whole = sandbox.orch("plan --format markdown").stdout;
    assert!(!whole.contains("left out here"), "{whole}");
    // As it is, with the id of the run.
    let mut command = sandbox.command("plan --format markdown --max-bytes 5000");
    let page = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(page.len() <= 5000 && page.len() > 4500, "{page}");
    for line in ["line 0 of", "line 499 of"] {
        assert_eq!(page.matches(line).count(), 2, "{line}: {page}");
    }
    let commands = page
        .lines()
        .filter_map(|line| line.split_once("all of it: "));
    let commands: Vec<&str> = commands.map(|(_, command)| command).collect();
    assert_eq!(commands.len(), 2, "{page}");
    let logs = sandbox.orch(commands[0].strip_prefix("orch ").unwrap());
    assert_eq!(logs.stdout.lines().count(), 500, "{logs:?}");
    for wrong in [
        "plan --max-bytes 5000",
        "plan --format json --max-bytes 5000",
        "plan --format markdown --max-bytes 1023",
        "show plan --max-bytes 5000",
        "show plan a --format markdown",
    ] {
        assert_eq!(sandbox.orch(wrong).code(), 64, "{wrong}");
    }
}

/// Earlier content of the summary stays, and the summary never gets too long for GitHub.
#[test]
fn plan_is_appended_to_the_step_summary() {
    let sandbox = project(&[("/a", CHANGES), ("/b", LONG)]);
    let summary = sandbox.outside().join("summary.md");
    let read = || std::fs::read_to_string(&summary).unwrap();
    let orch = |arguments: &str, summary: &std::path::Path| -> Output {
        sandbox.orch_with(arguments, |command| {
            command
                .env("GITHUB_ACTIONS", "true")
                .env("GITHUB_STEP_SUMMARY", summary);
        })
    };
    std::fs::write(&summary, "before\n").unwrap();
    let output = orch("plan -o plan", &summary);
    assert_eq!(output.code(), 0, "{output:?}");
    assert!(!output.stdout.contains("<details>"), "{output:?}");
    let text = read();
    let page = text.strip_prefix("before\n").expect("it was there before");
    assert!(page.starts_with("### `orch plan`\n"), "{page}");
    assert_eq!(page.matches("<details>\n<summary>").count(), 2, "{page}");
    assert_eq!(orch("show plan --format markdown", &summary).code(), 0);
    assert_eq!(read(), text);
    let nearly = "x".repeat((1 << 20) - 3000);
    std::fs::write(&summary, &nearly).unwrap();
    assert_eq!(orch("plan", &summary).code(), 0);
    let length = read().len();
    assert!(length > nearly.len() && length <= 1 << 20, "{length}");
    let full = "x".repeat((1 << 20) - 100);
    std::fs::write(&summary, &full).unwrap();
    assert_eq!(orch("plan", &summary).code(), 0);
    assert_eq!(read().len(), full.len());
    let output = orch("plan", "/nonexistent/summary.md".as_ref());
    assert_eq!(output.code(), 0, "{output:?}");
    assert!(
        output.stderr.contains("failed to write the step summary"),
        "{output:?}"
    );
}
