//! `orch globals`, and what `globals` blocks mean.

mod evaluation;
mod merging;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

/// A project with the stacks `/st` and `/st/c`, and these files in addition to theirs.
fn project(files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::layout("st [t1]\nst/c");
    for (path, text) in files {
        sandbox.write(path, text);
    }
    sandbox
}

/// Globals as text: one definition per line, or whole blocks.
fn globals(text: &str) -> String {
    if text.starts_with("globals") || text.is_empty() {
        text.replace(" ;", "\n")
    } else {
        format!("globals {{\n  {}\n}}\n", text.replace(" ;", "\n "))
    }
}

/// The values of all globals that a stack sees.
#[track_caller]
fn seen(output: &Output, stack: &str) -> Value {
    let data = output.data();
    let stacks = data["stacks"].as_array().expect("there are stacks");
    let found = stacks.iter().find(|it| it["path"] == stack);
    let globals = found.unwrap_or_else(|| panic!("{output}"))["globals"].as_object();
    let values = globals.into_iter().flatten().map(|(name, global)| {
        let value = if global["valid"] == true {
            global["value"].clone()
        } else {
            json!("BROKEN")
        };
        (name.clone(), value)
    });
    Value::Object(values.collect())
}

/// Checks what `/st` and `/st/c` see with these globals in `/`, `/st` and `/st/c`.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "rows are easier to read")]
fn check(root: &str, stack: &str, child: &str, expected: Value) {
    let sandbox = project(&[
        ("/g.tm", &globals(root)),
        ("/st/g.tm", &globals(stack)),
        ("/st/c/g.tm", &globals(child)),
    ]);
    let output = sandbox.orch("globals --format json");
    let place = if child.is_empty() { "/st" } else { "/st/c" };
    assert_eq!(
        seen(&output, place),
        expected,
        "{root} / {stack} / {child}\n{output}"
    );
}

/// The problems of these globals.
#[track_caller]
fn problem(root: &str, stack: &str) -> String {
    let sandbox = project(&[("/g.tm", &globals(root)), ("/st/g.tm", &globals(stack))]);
    let output = sandbox.orch("globals --format json --no-recursive -C st");
    assert_eq!(output.code(), 3, "{root} / {stack}: {output}");
    let data = output.data();
    data["diagnostics"][0]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn each_stack_shows_what_it_sees() {
    let sandbox = project(&[
        (
            "/g.tm",
            "globals {\n  region = \"eu\"\n  size = 1\n  tags = [\"a\", { k = 1 }]\n}\n",
        ),
        (
            "/st/g.tm",
            "globals \"net\" {\n  cidr = \"10.0.0.0/8\"\n  n = 777\n}\n",
        ),
        ("/other/stack.tm", "stack {\n}\n"),
        (
            "/other/g.tm",
            "globals {\n  region = unset\n  size = unset\n  tags = unset\n}\n",
        ),
    ]);
    // A stack without globals is left out.
    assert_snapshot!(sandbox.orch("globals"), @r#"
    st:
      net = {
        cidr = "10.0.0.0/8"
        n    = 777
      }
      region = "eu"
      size   = 1
      tags = ["a", {
        k = 1
      }]
    st/c:
      net = {
        cidr = "10.0.0.0/8"
        n    = 777
      }
      region = "eu"
      size   = 1
      tags = ["a", {
        k = 1
      }]
    "#);
    assert_snapshot!(sandbox.orch_in("/st", "debug show globals --tags t1"), @r#"
    stack "/st":
    	net = {
    	  cidr = "10.0.0.0/8"
    	  n    = 777
    	}
    	region = "eu"
    	size   = 1
    	tags = ["a", {
    	  k = 1
    	}]
    "#);
    assert_snapshot!(sandbox.orch_in("/other", "globals"), @"");
}

#[test]
fn a_broken_global_is_shown_beside_the_others() {
    let sandbox = project(&[(
        "/g.tm",
        "globals {\n  ok = 1\n  broken = global.missing\n  user = global.broken\n}\n",
    )]);
    assert_snapshot!(sandbox.orch("globals"), @"
    st:
      ok = 1
      # broken has no value: no global `missing`
      # user has no value: no global `missing`
    st/c:
      ok = 1
      # broken has no value: no global `missing`
      # user has no value: no global `missing`
    [stderr]
    error: no global `missing`
     --> g.tm:3:19
      |
    3 |   broken = global.missing
      |                   ^^^^^^^ not defined for this stack or a directory above it
      |
      = note: evaluated for stack `/st` and 1 more

    [exit status 3]
    ");
    assert_eq!(sandbox.orch("list").code(), 0);
    assert_eq!(sandbox.orch("run -- true").code(), 0);
}

#[test]
fn programs_learn_where_globals_are_defined() {
    let sandbox = project(&[
        ("/modules/m.tm", "globals {\n  a = 1\n  o = { x = 1 }\n}\n"),
        (
            "/st/g.tm",
            "import {\n  source = \"/modules/m.tm\"\n}\nglobals \"o\" {\n  y = 12345678901234567890\n}\nglobals \"e\" {}\n",
        ),
    ]);
    let output = sandbox.orch("globals --format json --match st");
    assert_snapshot!(output.stdout, @r#"{"format":1,"stacks":[{"path":"/st","globals":{"a":{"valid":true,"value":1,"definitions":[{"name":"global.a","file":"modules/m.tm","line":2,"column":3,"imported":true}]},"e":{"valid":true,"value":{},"definitions":[{"name":"global.e","file":"st/g.tm","line":7,"column":1,"imported":false}]},"o":{"valid":true,"value":{"x":1,"y":12345678901234567890},"definitions":[{"name":"global.o","file":"modules/m.tm","line":3,"column":3,"imported":true},{"name":"global.o.y","file":"st/g.tm","line":5,"column":3,"imported":false}]}}},{"path":"/st/c","globals":{"a":{"valid":true,"value":1,"definitions":[{"name":"global.a","file":"modules/m.tm","line":2,"column":3,"imported":true}]},"e":{"valid":true,"value":{},"definitions":[{"name":"global.e","file":"st/g.tm","line":7,"column":1,"imported":false}]},"o":{"valid":true,"value":{"x":1,"y":12345678901234567890},"definitions":[{"name":"global.o","file":"modules/m.tm","line":3,"column":3,"imported":true},{"name":"global.o.y","file":"st/g.tm","line":5,"column":3,"imported":false}]}}}],"valid":true,"diagnostics":[],"errors":[]}"#);
}

#[test]
fn hostile_values_do_not_reach_the_terminal() {
    let sandbox = project(&[(
        "/g.tm",
        "globals {\n  a = \"\\u001b[31m\\u202e$${x}\"\n  o = { \"\\u001b[0m\" = 1 }\n}\nglobals \"n\" \"\\u001b]0;x\\u0007\" {\n  b = global.no\n}\n",
    )]);
    let output = sandbox.orch("globals");
    let shown = output.to_string();
    assert!(
        !shown.chars().any(|c| c.is_control() && c != '\n'),
        "{shown:?}"
    );
    assert!(shown.contains("\\u001b[31m\\u202e$${x}"), "{shown}");
}
