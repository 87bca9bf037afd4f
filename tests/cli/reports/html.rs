//! The HTML page as a file; `browser` tests what it does in one.

use serde_json::Value;

use super::{PLAN, RUN, mixed, read};
use crate::support::Sandbox;

/// Returns the data in the element with an id.
fn data(page: &str, id: &str) -> Option<Value> {
    let start = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, rest) = page.split_once(&start)?;
    let (data, _) = rest.split_once("</script>").unwrap();
    Some(serde_json::from_str(data).unwrap())
}

fn states(page: &str) -> Vec<(String, String)> {
    let run = data(page, "run").unwrap();
    let stacks = run["stacks"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    stacks
        .map(|stack| (text(&stack["path"]), text(&stack["state"])))
        .collect()
}

#[test]
fn report_html_has_the_run_and_its_logs() {
    let sandbox = mixed();
    let run = sandbox.orch(&format!("{RUN} --report ../out.html {PLAN}"));
    assert_eq!(run.code(), 1, "{run}");
    let page = read(&sandbox, "out.html");
    assert!(page.contains("<title>failed: 1 of 5 stacks – ../bin/terraform plan</title>"));
    let run = data(&page, "run").unwrap();
    let stacks = run["stacks"].as_array().unwrap();
    let stack = |path: &str| stacks.iter().find(|stack| stack["path"] == path).unwrap();
    assert_eq!(stack("/changed")["changes"], "+3 ~1 -0");
    assert_eq!(stack("/unchanged")["changed"], false);
    assert_eq!(
        stack("/skipped")["detail"],
        "runs after /fails, which failed"
    );
    assert_eq!(stack("/skipped")["wave"], 1);
    assert!(stack("/skipped").get("slot").is_none());
    let log = stack("/fails")["attempts"][0]["log"].as_str().unwrap();
    let log = data(&page, log).unwrap();
    let text = log["sections"].to_string();
    assert!(
        text.contains("about to fail") && text.contains("no such bucket"),
        "{text}"
    );
    assert_eq!(stack("/succeeds")["attempts"][0]["log"], Value::Null);

    assert_eq!(sandbox.orch("runs report --report ../later.html").code(), 0);
    assert_eq!(states(&read(&sandbox, "later.html")), states(&page));
}

#[test]
fn report_html_of_a_dry_run_shows_what_would_run() {
    let sandbox = Sandbox::layout("a");
    let run = sandbox.orch("run --dry-run --report ../out.html true");
    assert_eq!(run.code(), 0, "{run}");
    let page = read(&sandbox, "out.html");
    assert!(
        page.contains("<title>dry run: 1 stack would run – true</title>"),
        "{page}"
    );
    assert_eq!(states(&page), [("/a".to_owned(), "would run".to_owned())]);
}

#[test]
fn report_html_of_an_empty_run_says_so() {
    let sandbox = Sandbox::layout("a");
    let run = sandbox.orch("run --match /none --report ../out.html true");
    assert_eq!(run.code(), 0, "{run}");
    let page = read(&sandbox, "out.html");
    assert!(page.contains("there was no stack to run in"), "{page}");
    assert_eq!(states(&page), []);
}
