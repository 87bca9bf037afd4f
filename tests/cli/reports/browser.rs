//! The HTML page in Chromium, if it is installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{PLAN, RUN, mixed};
use crate::support::{Background, Sandbox, skipped};

const PROGRAMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Uses the page, and writes down what is seen.
const VISIT: &str = include_str!("browser.js");

const REPORT: &str = "--report ../report.html";

/// Names with markup, controls and characters that reorder text, each with what the page shows for it.
const HOSTILE: [(&str, &str); 4] = [
    (
        "<script>alert(1)</script>&amp;",
        "/<script>alert(1)</script>&amp;",
    ),
    ("\"quote',comma", "/\"quote',comma"),
    ("line\nfeed\u{7}", "/line\\nfeed\\u{7}"),
    ("not\u{202e}", "/not\\u{202e}"),
];

fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut found = env::split_paths(&path).flat_map(|it| PROGRAMS.map(|name| it.join(name)));
    let browser = found.find(|it| it.is_file());
    if browser.is_none() {
        skipped("Chromium is not installed");
    }
    browser
}

/// Opens a page; returns its elements as text, and the messages of its console.
fn open(browser: &Path, sandbox: &Sandbox, page: &str) -> (String, Vec<String>) {
    let file = sandbox.outside().join("page.html");
    fs::write(&file, page).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--enable-logging=stderr",
            "--virtual-time-budget=60000",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            sandbox.outside().join("browser").display()
        ))
        .arg(format!("file://{}", file.display()))
        .env("HOME", sandbox.outside())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|line| line.contains(":CONSOLE"));
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        console.map(str::to_owned).collect(),
    )
}

/// Opens the page of a run, checks that its console is empty, and uses it.
fn visit(browser: &Path, sandbox: &Sandbox) -> Value {
    let page = fs::read_to_string(sandbox.outside().join("report.html")).unwrap();
    let (_, console) = open(browser, sandbox, &page);
    assert_eq!(console, [""; 0]);

    // Only this copy may have another script.
    let (head, rest) = page.split_once("<meta http-equiv=").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let (body, end) = rest.rsplit_once("</body>").unwrap();
    let copy = format!("{head}{body}<script>{VISIT}</script></body>{end}");
    let (dom, console) = open(browser, sandbox, &copy);
    assert_eq!(console, [""; 0]);
    let seen = dom
        .split_once("<pre id=\"seen\">")
        .expect("the script has ended");
    let (seen, _) = seen.1.split_once("</pre>").unwrap();
    let seen = seen
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen.get("error"), None, "{seen}");
    assert_ne!(seen["isMatchVisible"], false, "{seen}");
    let [dark, light] = ["dark", "light"].map(|theme| seen["themes"][theme].clone());
    assert_ne!(dark[0], light[0], "{seen}");
    assert_ne!(dark[1], light[1], "{seen}");
    seen
}

fn texts(seen: &Value) -> Vec<&str> {
    seen.as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect()
}

#[test]
fn report_html_console_messages_are_found() {
    let Some(browser) = browser() else { return };
    let sandbox = Sandbox::new("");
    let page = "<script>console.error('here'); nothing()</script>";
    let (_, console) = open(&browser, &sandbox, page);
    assert_eq!(console.len(), 2, "{console:?}");
}

#[test]
fn report_html_of_a_mixed_run_in_a_browser() {
    let Some(browser) = browser() else { return };
    let sandbox = mixed();
    sandbox.write_program("/bin/terraform", "#!/bin/sh\nseq 3000\necho \"a Needle of $ORCH_STACK_PATH\"\nseq 3000\ntest $ORCH_STACK_PATH != /fails\n");
    assert_eq!(sandbox.orch(&format!("{RUN} {REPORT} {PLAN}")).code(), 1);
    let seen = visit(&browser, &sandbox);
    assert_eq!(
        texts(&seen["stacks"]),
        ["/fails", "/skipped", "/changed", "/succeeds", "/unchanged"]
    );
    assert_eq!(
        seen["found"],
        "4 matching lines in 4 stacks. 4 stacks of 5 shown."
    );
    assert_eq!(
        texts(&seen["foundIn"]),
        ["/fails", "/changed", "/succeeds", "/unchanged"]
    );
    assert_eq!(seen["match"], "Match 1 of 4 lines: /fails");
    assert_eq!(texts(&seen["filtered"]), ["/unchanged"]);
    assert_eq!(seen["selected"], "/unchanged");
    assert_eq!(seen["isSelectedVisible"], true);
}

#[test]
fn report_html_of_hostile_names_in_a_browser() {
    let Some(browser) = browser() else { return };
    let sandbox = Sandbox::new("");
    for (name, _) in HOSTILE {
        sandbox.write(&format!("/{name}/stack.tm"), "stack {}\n");
    }
    let run = sandbox.orch(&format!(
        "run -q --output none {REPORT} -- sh -c 'echo \"needle <b>$PWD</b></script>\"'"
    ));
    assert_eq!(run.code(), 0, "{run}");
    let seen = visit(&browser, &sandbox);
    let mut shown = texts(&seen["stacks"]);
    shown.sort_unstable();
    let mut expected = HOSTILE.map(|(_, shown)| shown);
    expected.sort_unstable();
    assert_eq!(shown, expected);
    assert_eq!(seen["found"], "4 matching lines in 4 stacks.");
}

#[test]
fn report_html_of_an_empty_run_in_a_browser() {
    let Some(browser) = browser() else { return };
    let sandbox = Sandbox::layout("a");
    let run = sandbox.orch(&format!("run --match /none {REPORT} true"));
    assert_eq!(run.code(), 0, "{run}");
    let seen = visit(&browser, &sandbox);
    assert_eq!(seen["stacks"].as_array().map(Vec::len), Some(0));
}

#[test]
fn report_html_of_running_and_killed_runs_in_a_browser() {
    let Some(browser) = browser() else { return };
    let sandbox = Sandbox::layout("a\nb after /a\nc");
    let script = "echo needle\necho x >> \"$ORCH_ROOT/started\"\nawait go";
    let run = Background::run(&sandbox, "", script);
    run.wait_for("/started", &["x"]);
    let report = format!("runs report {REPORT}");
    assert_eq!(sandbox.orch(&report).code(), 0);
    let seen = visit(&browser, &sandbox);
    assert_eq!(
        texts(&seen["headings"]),
        ["▾ ▸ 1 stack running", "▾ ○ 2 stacks not run"]
    );
    run.kill();
    sandbox.write("/go", "");
    assert_eq!(sandbox.orch(&report).code(), 0);
    let seen = visit(&browser, &sandbox);
    assert_eq!(
        texts(&seen["headings"]),
        ["▾ ? 1 stack end unknown", "▾ ○ 2 stacks not run"]
    );
}

#[test]
fn report_html_of_2000_stacks_in_a_browser() {
    let Some(browser) = browser() else { return };
    let sandbox = Sandbox::new("//- /root.tm\nstack {}\n");
    for stack in 0..2000 {
        let after = stack / 2;
        sandbox.write(
            &format!("/s{stack:04}/stack.tm"),
            format!("stack {{\n  after = [\"/s{after:04}\"]\n}}\n")
                .replace(&format!("\"/s{stack:04}\""), ""),
        );
    }
    let run = sandbox.orch(&format!("run -q --output none -j 8 {REPORT} echo needle"));
    assert_eq!(run.code(), 0, "{run}");
    let seen = visit(&browser, &sandbox);
    assert_eq!(texts(&seen["headings"]), ["▾ ✓ 2,001 stacks succeeded"]);
    assert_eq!(texts(&seen["stacks"]).len(), 100);
    assert_eq!(seen["found"], "2,001 matching lines in 2,001 stacks.");
    assert_eq!(seen["match"], "Match 1 of 2,001 lines: /");
    assert_eq!(seen["selected"], "/s1999");
    assert_eq!(seen["isSelectedVisible"], true);
    assert_eq!(texts(&seen["steps"]), ["/", "/s0000", "/"]);
    let jumped = texts(&seen["jumped"]);
    assert_eq!(jumped[0], jumped[1]);
}
