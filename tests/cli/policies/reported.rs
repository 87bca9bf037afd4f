//! Reports of runs with policies: what led to each turn, and what went wrong with policies.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::followed::{LIST, RETRY, run, sandbox};
use crate::support::Sandbox;

const JOIN: &str = r#"
package join
done(id) { input.workflow[i].stack_id == id; input.workflow[i].state == "FINISHED" }
trigger["three"] { done("two-a"); done("two-b"); startswith(input.stack.id, "two") }
"#;

const REPORTS: [&str; 4] = ["out.json", "out.xml", "out.md", "out.html"];

fn read(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.outside().join(name)).unwrap()
}

/// Writes all reports of a run, and makes sure that its record gives the same ones later.
fn reported(sandbox: &Sandbox, flags: &str, code: i32) {
    let wanted = REPORTS.map(|name| format!("--report ../{name}")).join(" ");
    let ran = run(
        sandbox,
        &format!("--policies --output none {flags} {wanted}"),
    );
    assert_eq!(ran.code(), code, "{ran}");
    let at_once = REPORTS.map(|name| read(sandbox, name));
    assert_eq!(sandbox.orch(&format!("runs report {wanted}")).code(), 0);
    for (name, before) in REPORTS.iter().zip(at_once) {
        assert!(read(sandbox, name) == before, "{name} differs");
    }
}

/// The rows of the Markdown report, without times.
fn rows(sandbox: &Sandbox) -> String {
    let time = regex::Regex::new(r"\b[0-9.]+s\b").unwrap();
    let page = read(sandbox, "out.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<_> = rows.map(|row| time.replace_all(row, "<s>")).collect();
    rows.join("\n")
}

/// The values of the properties `follows` of each test case.
fn followed_cases(sandbox: &Sandbox) -> Vec<(String, String)> {
    let text = read(sandbox, "out.xml");
    let document = roxmltree::Document::parse(&text).unwrap();
    let properties = document
        .descendants()
        .filter(|node| node.has_tag_name("property") && node.attribute("name") == Some("follows"));
    let told = properties.map(|property| {
        let case = property
            .ancestors()
            .find(|node| node.has_tag_name("testcase"));
        let text = |value: Option<&str>| value.unwrap().to_owned();
        (
            text(case.unwrap().attribute("name")),
            text(property.attribute("value")),
        )
    });
    told.collect()
}

fn system_err(sandbox: &Sandbox) -> String {
    let text = read(sandbox, "out.xml");
    let document = roxmltree::Document::parse(&text).unwrap();
    let mut nodes = document.descendants();
    let node = nodes.find(|node| node.has_tag_name("system-err")).unwrap();
    node.text().unwrap().to_owned()
}

/// The data of the page.
fn page(sandbox: &Sandbox) -> Value {
    let page = read(sandbox, "out.html");
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"run\">")
        .unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// What led to the turns of a stack, in a report.
fn follows(report: &Value, stack: &str) -> Value {
    let mut stacks = report["stacks"].as_array().unwrap().iter();
    stacks.find(|told| told["path"] == stack).unwrap()["follows"].clone()
}

#[test]
fn reports_name_the_causes_of_a_follow_up_back_to_the_first_turn() {
    let sandbox = sandbox(&[("list", LIST), ("join", JOIN)]);
    reported(&sandbox, "--match /one", 0);
    assert_snapshot!(rows(&sandbox), @"
    | `/one` | succeeded |  | <s> |  |
    | `/two-a` | succeeded |  | <s> | `← list ← /one` |
    | `/two-b` | succeeded |  | <s> | `← list ← /one` |
    | `/three` | succeeded |  | <s> | `← join ← /two-b ← list ← /one` |
    ");
    let line = "follows /two-b: FINISHED, policy join, which followed /one: FINISHED, policy list";
    let after_one = "follows /one: FINISHED, policy list";
    assert_eq!(
        followed_cases(&sandbox),
        [
            ("/two-a", after_one),
            ("/two-b", after_one),
            ("/three", line)
        ]
        .map(|(stack, line)| (stack.to_owned(), line.to_owned()))
    );
    let causes = json!([{"turn": 1, "causes": [
        {"stack": "/two-b", "turn": 1, "state": "FINISHED", "policies": ["join"]},
        {"stack": "/one", "turn": 1, "state": "FINISHED", "policies": ["list"]},
    ]}]);
    let report: Value = serde_json::from_str(&read(&sandbox, "out.json")).unwrap();
    assert_eq!(follows(&report, "/three"), causes);
    assert_eq!(follows(&report, "/one"), Value::Null);
    assert_eq!(report["evaluated"][0]["state"], "FINISHED");
    assert_eq!(follows(&page(&sandbox), "/three"), causes);
}

#[test]
fn runs_show_prints_causes_and_policy_results_as_json() {
    let sandbox = sandbox(&[("list", LIST), ("join", JOIN)]);
    assert_eq!(run(&sandbox, "--policies --match /one").code(), 0);
    let mut told = sandbox.orch("why /three --run last --format json").json();
    for cause in told["turns"][0]["causes"].as_array_mut().unwrap() {
        cause["answers"][0]["elapsed_ms"] = json!(0);
    }
    let (format, state) = (&told["format"], &told["state"]);
    assert_eq!((format, state), (&json!(1), &json!("succeeded")));
    assert_eq!(told["path"], "/three");
    assert_eq!(
        told["turns"],
        json!([{"turn": 1, "more": false, "causes": [
            {
                "stack": "/two-b", "turn": 1, "state": "FINISHED", "policies": ["join"],
                "answers": [{"policy": "join", "trigger": ["three"], "elapsed_ms": 0}],
            },
            {
                "stack": "/one", "turn": 1, "state": "FINISHED", "policies": ["list"],
                "answers": [{"policy": "list", "trigger": ["two-a", "two-b"], "elapsed_ms": 0}],
            },
        ]}])
    );
    let first = sandbox.orch("why /one --run last --format json").json();
    assert_eq!(first["turns"], json!([]));
    for unknown in ["/four --run last", "/one --run 0000"] {
        let refused = sandbox.orch(&format!("why {unknown} --format json"));
        assert_ne!(refused.code(), 0);
        let document: Value = serde_json::from_str(&refused.stdout).unwrap();
        let keys =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        for key in keys(&told) {
            assert!(keys(&document).contains(&key), "{unknown}: {key}");
        }
        assert!(document["refused"]["problem"].is_string());
    }
}

#[test]
fn why_run_takes_the_name_of_an_instance() {
    let sandbox = sandbox(&[("list", LIST)]);
    let line = "stack {\n  for_each = [\"eu\", \"us\"]\n}\n";
    sandbox.write("/each/stack.orch.hcl", line);
    assert_eq!(run(&sandbox, "--policies --match /each").code(), 0);
    let of_one = sandbox.orch("why 'each[\"us\"]' --run last");
    assert_eq!(of_one.code(), 0, "{of_one}");
    let of_all = sandbox.orch("why /each --run last");
    let meant = "; did you mean `/each[\"eu\"]`?";
    assert!(of_all.to_string().contains(meant), "{of_all}");
}

#[test]
fn reports_number_retries() {
    let sandbox = sandbox(&[("retry", RETRY)]);
    sandbox.write("/one/fails", "1");
    reported(&sandbox, "--match /one", 0);
    assert_snapshot!(rows(&sandbox), @"| `/one` | succeeded |  | <s> | `turn 2 ← retry ← /one` |");
    let listed = sandbox.orch("runs list").stdout;
    assert!(!listed.contains("failed"), "{listed}");
    let line = "turn 2 follows /one: FAILED, policy retry";
    assert_eq!(
        followed_cases(&sandbox),
        [("/one".to_owned(), line.to_owned())]
    );
}

#[test]
fn reports_show_a_failure_without_a_successful_retry() {
    // Another stack asks for the second turn, which succeeds.
    let other = "package other\ntrigger[\"one\"] { input.stack.id == \"three\" }\n";
    let sandbox = sandbox(&[("other", other)]);
    sandbox.write("/one/fails", "1");
    let flags = "--on-error continue --match /one --match /three";
    reported(&sandbox, flags, 1);
    assert_snapshot!(rows(&sandbox), @r"
    | `/one` | failed |  | <s> | exit status 1 after <s> `turn 2 ← other ← /three` |
    | `/three` | succeeded |  | <s> |  |
    ");
    let text = read(&sandbox, "out.xml");
    assert!(text.contains("failures=\"1\""), "{text}");
    let report: Value = serde_json::from_str(&read(&sandbox, "out.json")).unwrap();
    assert_eq!(report["run"]["counts"]["failed"], 1, "{report}");
    let shown = sandbox.orch("runs show last");
    assert!(shown.stdout.contains("1 succeeded, 1 failed"), "{shown}");
    let why = sandbox.orch("why /one --run last");
    assert!(why.stdout.contains("failed"), "{why}");
    let resumed = sandbox.orch("run --resume last");
    let rest = "the failed stacks have since succeeded";
    assert!(resumed.stderr.contains(rest), "{resumed}");
}

#[test]
fn reports_cut_a_loop_and_show_the_limit_as_a_problem() {
    let again = "package again\ntrigger[input.stack.id] { true }\n";
    let sandbox = sandbox(&[("again", again)]);
    sandbox.write(
        "/limits.orch.hcl",
        "orch {\n  config {\n    policies {\n      max_turns = 30\n    }\n  }\n}\n",
    );
    reported(&sandbox, "--match /one", 1);
    let told = follows(&page(&sandbox), "/one");
    let last = told.as_array().unwrap().last().unwrap();
    assert_eq!((&last["turn"], &last["more"]), (&json!(30), &json!(true)));
    assert_eq!(last["causes"].as_array().unwrap().len(), 20);
    let problem = "/one did not follow /one (turn 30), policy again: it would exceed `max_turns`";
    assert!(
        system_err(&sandbox).starts_with(problem),
        "{}",
        system_err(&sandbox)
    );
    let row = rows(&sandbox);
    assert!(
        row.contains("turn 3 ← again ← /one (turn 2) ← again ← /one;"),
        "{row}"
    );
    assert!(row.len() < 1000, "{row}");
}

#[test]
fn reports_show_policy_problems_and_escape_names() {
    let odd = "</script>|`x` <b>\u{202e}&amp;";
    let wrong = "package wrong\ntrigger[\"three\"] { true }\nflag := 1\n";
    let asks = format!(
        "package asks\ntrigger[`{}`] {{ true }}\n",
        odd.replace('`', "'")
    );
    let sandbox = sandbox(&[("wrong", wrong), ("asks", &asks)]);
    reported(&sandbox, "--match /one", 1);
    assert_snapshot!(system_err(&sandbox), @r#"
    policy wrong failed after /one: policies/wrong.rego: `flag` must be a set or a list of strings, or an object whose values are `true`
    </script>|'x' <b>\u{202e}&amp; did not follow /one, policy asks: no stack has that id or path
    "#);
    let page = page(&sandbox);
    let problems: Vec<&str> = page["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert_eq!(problems.join("\n"), system_err(&sandbox));
    let markdown = read(&sandbox, "out.md");
    let lines: Vec<&str> = markdown
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    assert_snapshot!(lines.join("\n"), @"
    - <code>policy wrong failed after /one&#58; policies/wrong&#46;rego&#58; &#96;flag&#96; must be a set or a list of strings&#44; or an object whose values are &#96;true&#96;</code>
    - <code>&#60;/script&#62;&#124;&#39;x&#39; &#60;b&#62;&#92;u&#123;202e&#125;&#38;amp&#59; did not follow /one&#44; policy asks&#58; no stack has that id or path</code>
    ");
}

#[test]
fn reports_count_the_problems_that_do_not_fit() {
    let asks = |number: u32| {
        let text = format!("package asks\ntrigger[\"nobody-{number}\"] {{ true }}\n");
        (format!("asks-{number}"), text)
    };
    let asks: Vec<(String, String)> = (1..=30).map(asks).collect();
    let asks: Vec<(&str, &str)> = asks.iter().map(|(name, text)| (&**name, &**text)).collect();
    let sandbox = sandbox(&asks);
    let flags = "--policies --match /one --report ../out.md --max-bytes 1024";
    assert_eq!(run(&sandbox, flags).code(), 0);
    let page = read(&sandbox, "out.md");
    assert!(page.len() <= 1024, "{}", page.len());
    let shown = page.lines().filter(|line| line.starts_with("- ")).count();
    let missing = page
        .lines()
        .find_map(|line| line.split_once(" more problems with policies"));
    let (missing, _) = missing.unwrap();
    assert_eq!(shown + missing.parse::<usize>().unwrap(), 30, "{page}");
    assert!(shown > 0, "{page}");
}
