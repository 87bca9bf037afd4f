//! Random policies beside OPA: each has OPA's answer, or is refused when it is loaded.
//!
//! `recorded.txt` has OPA's answers for some seeds. Where `opa` is on the `PATH`, new seeds are compared with it.

mod generate;

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::{Sandbox, skipped};

const RECORDED: &str = include_str!("recorded.txt");

/// How many new seeds OPA is asked about.
const N_NEW: u64 = 40;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.write("/input.json", generate::INPUT);
    sandbox
}

/// Returns the answer of `orch`, or `None` if it refuses the policy, or says that a number has too many digits for it.
fn answer(sandbox: &Sandbox, text: &str) -> Option<Value> {
    sandbox.write("/p.rego", text);
    let evaluated = sandbox.orch("policy eval p.rego --input input.json --format json");
    match evaluated.code() {
        0 => Some(evaluated.json()["trigger"].clone()),
        3 => None,
        1 if evaluated.stderr.contains("too many digits") => None,
        1 if evaluated.stderr.contains("are the same number") => None,
        status => panic!("status {status}: {}\n{text}", evaluated.stderr),
    }
}

#[test]
fn policies_have_the_recorded_answers_of_opa_or_are_refused() {
    let sandbox = sandbox();
    let mut different = Vec::new();
    let mut n_answered = 0;
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let (seed, expected) = line.split_once('\t').expect("a seed and an answer");
        let seed = seed.parse().expect("a seed is a number");
        let expected: Value = serde_json::from_str(expected).expect("answers are JSON");
        let answer = answer(&sandbox, &generate::policy(seed));
        n_answered += usize::from(answer.is_some());
        if answer.is_some_and(|answer| answer != expected) {
            different.push(seed);
        }
    }
    assert!(
        different.is_empty(),
        "other answers than OPA: {different:?}"
    );
    // A program that refuses everything would keep the law.
    assert!(
        n_answered > 120,
        "only {n_answered} policies have an answer"
    );
}

#[test]
fn policies_of_new_seeds_have_the_answers_of_opa_or_are_refused() {
    if Command::new("opa").arg("version").output().is_err() {
        skipped("`opa` is not on the PATH: policies are compared with recorded answers only");
        return;
    }
    let sandbox = sandbox();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is set");
    let first = now.as_secs() * N_NEW;
    for seed in first..first + N_NEW {
        let text = generate::policy(seed);
        let Some(answer) = answer(&sandbox, &text) else {
            continue;
        };
        // OPA refuses what has the wrong type, too: `orch` need not.
        if let Some(expected) = answer_of_opa(&sandbox, seed) {
            assert_eq!(answer, expected, "seed {seed}\n{text}");
        }
    }
}

/// Returns the answer of OPA to the policy in the sandbox, or `None` if it refuses the policy.
fn answer_of_opa(sandbox: &Sandbox, seed: u64) -> Option<Value> {
    let mut opa = Command::new("opa");
    opa.args(["eval", "--format=json", "--input", "input.json", "--data"]);
    opa.arg("p.rego");
    if seed % 2 == 1 {
        opa.arg("--v0-compatible");
    }
    let evaluated = opa
        .arg("data.p.trigger")
        .current_dir(sandbox.path(""))
        .output();
    let evaluated = evaluated.expect("`opa` is on the PATH");
    let mut evaluated: Value = serde_json::from_slice(&evaluated.stdout).expect("it prints JSON");
    let is_answered = evaluated["errors"].is_null();
    is_answered.then(|| evaluated["result"][0]["expressions"][0]["value"].take())
}

#[test]
#[ignore = "records the answers of OPA anew"]
fn record() {
    const N_RECORDED: usize = 160;
    let sandbox = sandbox();
    let version = Command::new("opa").arg("version").output();
    let version = String::from_utf8(version.expect("`opa` is on the PATH").stdout);
    let version = version.expect("it prints a text");
    let version = version
        .lines()
        .next()
        .and_then(|line| line.split(' ').nth(1));
    let version = version.expect("it prints its version");
    let mut recorded = format!("# Answers of OPA {version} by seed.\n");
    let answers = (0..).filter_map(|seed| {
        sandbox.write("/p.rego", generate::policy(seed));
        Some((seed, answer_of_opa(&sandbox, seed)?))
    });
    for (seed, answer) in answers.take(N_RECORDED) {
        recorded += &format!("{seed}\t{answer}\n");
    }
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/laws/policies/recorded.txt"
    );
    std::fs::write(file, recorded).expect("it can be written");
}

#[test]
fn policies_that_look_stacks_up_have_the_answers_of_those_that_go_through_them() {
    let sandbox = sandbox();
    let mut n_answered = 0;
    for seed in 1_000..1_060 {
        let text = generate::policy(seed);
        // Where something may be printed, nothing is looked up.
        let rule = if seed % 2 == 0 { "unused if" } else { "unused" };
        let slow = format!("{text}{rule} {{ print(\"\") }}\n");
        let found = answer(&sandbox, &text);
        assert_eq!(found, answer(&sandbox, &slow), "seed {seed}\n{text}");
        n_answered += usize::from(found.is_some());
    }
    assert!(n_answered > 20, "only {n_answered} policies have an answer");
}

#[test]
fn policies_with_a_sign_before_more_than_one_value_are_refused() {
    for body in ["-count([1]) != \"prod\"", "x := -count([1]) + 1"] {
        let said = evaluated(&format!("trigger contains \"x\" if {{ {body} }}"));
        assert!(said.contains("`-` would belong to"), "{body}: {said}");
    }
    assert_eq!(
        evaluated("trigger contains json.marshal(-count([1]))"),
        r#"["-1"]"#
    );
}

/// Returns the last line that `orch` prints about a policy in Rego v1 with these rules.
fn evaluated(rules: &str) -> String {
    let sandbox = sandbox();
    sandbox.write("/p.rego", format!("package p\n{rules}\n"));
    let evaluated = sandbox.orch("policy eval p.rego --input input.json --format json");
    match evaluated.code() {
        0 => evaluated.json()["trigger"].to_string(),
        _ => evaluated.stderr,
    }
}

/// Checks the answers to expressions, which are those of OPA 1.22.2. An undefined one has none.
fn check(expressions: &[(&str, &str)]) {
    let mut rules = String::new();
    for (number, (expression, _)) in expressions.iter().enumerate() {
        rules += &format!(
            "trigger contains sprintf(\"%02d %s\", [{number}, json.marshal(x)]) if {{ x := {expression} }}\n"
        );
    }
    let answered = evaluated(&rules);
    let answered: Vec<String> =
        serde_json::from_str(&answered).unwrap_or_else(|_| panic!("{answered}"));
    for (number, (expression, expected)) in expressions.iter().enumerate() {
        let begin = format!("{number:02} ");
        let answer = answered.iter().find_map(|it| it.strip_prefix(&begin));
        assert_eq!(answer.unwrap_or("undefined"), *expected, "{expression}");
    }
}

#[test]
fn operators_are_undefined_for_other_types() {
    check(&[
        ("{1} | input.n", "undefined"),
        ("input.none & {1}", "undefined"),
        ("input.text - {1}", "undefined"),
        ("{1} - input.n", "undefined"),
        ("input.n + input.text", "undefined"),
        ("2.5 % input.n", "undefined"),
        ("({1} | {2}) & {2, 3}", "[2]"),
        ("[y | some y in input.none]", "[]"),
        ("[y | some y in input.text]", "[]"),
        ("[y | some y, _ in input.n]", "[]"),
        ("[1 | every y in input.none { y }]", "[]"),
        ("input.n in input.none", "false"),
        ("[y | some y in [1, 2]; not y > input.absent]", "[]"),
    ]);
}

#[test]
fn objects_come_before_sets() {
    check(&[
        (
            "sort([{1}, {\"a\": 1}, [{}], [{2}], \"a\", null])",
            r#"[null,"a",[{}],[[2]],{"a":1},[1]]"#,
        ),
        (
            "sort({{1, {\"b\": 1}}, {1, {2}}})",
            r#"[[1,{"b":1}],[1,[2]]]"#,
        ),
        ("max({{1}, {\"a\": 1}})", "[1]"),
        ("min([{1}, {\"a\": {1}}, {\"a\": {}}])", r#"{"a":{}}"#),
        ("{1} < {\"a\": 1}", "false"),
        ("{\"a\": {1}} > {\"a\": {}}", "true"),
        ("{{1}, {}} <= {{}}", "false"),
        ("set() > {}", "true"),
        ("set() < {}", "false"),
        ("set() | {1}", "[1]"),
        ("[y | some y in {{1}, {\"a\": 1}, 3}]", r#"[3,{"a":1},[1]]"#),
        ("{{1}, {\"a\": 1}}", r#"[{"a":1},[1]]"#),
        (
            "sprintf(\"%v\", [{{1}, {\"a\": 1}}])",
            r#""{{\"a\": 1}, {1}}""#,
        ),
    ]);
}

#[test]
fn numbers_have_the_digits_and_texts_of_opa() {
    check(&[
        ("1.0", "1.0"),
        ("[-1.0, 1.0 + 1, 2.0 * 3, 1.5 + 1.5]", "[-1.0,2,6,3]"),
        ("1 / 3", "0.33333333333333333334"),
        ("1 - (1 / 3)", "0.66666666666666666663"),
        ("(1 / 3) * 3 == 1", "true"),
        ("22 / 7", "3.1428571428571428572"),
        ("0 / -3", "-0"),
        ("1.1 + 2.2", "3.3000000000000000002"),
        ("1.1 * 1.1", "1.21"),
        ("12345678901 / 100", "1.2345678901e+08"),
        (
            "1700000000123456789 / 1000000000",
            "1.700000000123456789e+09",
        ),
        ("0.00001 * 0.01", "1e-07"),
        (
            "[0.000001, 123456789.123456789]",
            "[0.000001,123456789.123456789]",
        ),
        ("100000000000000000000 / 3", "33333333333333333334"),
        (
            "123456789012345678901234567890 / 10",
            "12345678901234567890000000000",
        ),
        ("123456789012345678901234567890 * 10 % 7", "0"),
        ("[sum([0.1, 0.2]), sum([1.0, 2.0])]", "[0.3,3]"),
        (
            "[product([1.1, 1.1]), product([2.0, 3])]",
            "[1.2100000000000002,6]",
        ),
        (
            "[round(2.5), round(-2.5), round(-0.4), round(1.0)]",
            "[3,-3,0,1]",
        ),
        (
            "[abs(-1.5), abs(-1.0), abs(-12345678901.5)]",
            "[1.5,1,1.23456789015e+10]",
        ),
        ("[min([1.0, 1]), max([1, 1.0])]", "[1,1.0]"),
        ("numbers.range(1.0, 3)", "[1,2,3]"),
        ("[to_number(\"1.0\"), to_number(\"1e3\")]", "[1.0,1e3]"),
        ("json.unmarshal(\"[1.0, 12.50]\")", "[1.0,12.50]"),
        (
            "sprintf(\"%v %d %d %v\", [1.0, 2.0 * 3, 1.0, 1 / 3])",
            r#""1 6 %!d(float64=1) 0.3333333333333333""#,
        ),
        (
            "sprintf(\"%v\", [[1 / 3, 1.0]])",
            r#""[0.33333333333333333334, 1.0]""#,
        ),
    ]);
}

#[test]
fn policies_fail_where_numbers_cannot_be_told_apart() {
    for (expression, expected) in [
        (
            "1 / 3 == 0.3333333333333333",
            "too many digits to tell them apart",
        ),
        ("2 - 4 / 3 == 2 / 3", "too many digits to tell them apart"),
        (
            "json.unmarshal(\"12345678901234567890123\")",
            "has too many digits",
        ),
        ("[1.50, json.unmarshal(\"1.5\")]", "are the same number"),
        ("base64.decode(\"/w==\")", "is no UTF-8"),
    ] {
        let said = evaluated(&format!("trigger contains json.marshal({expression})"));
        assert!(said.contains(expected), "{expression}: {said}");
    }
    // What is only compared, needs no text.
    let said = evaluated("trigger contains \"x\" if { 1.50 > json.unmarshal(\"1.5\") - 1 }");
    assert_eq!(said, r#"["x"]"#);
}

#[test]
fn policies_whose_types_cannot_be_right_are_refused() {
    for body in [
        "1 + \"a\" == 2",
        "count(1) == 2",
        "startswith(1, \"a\")",
        "x := 1; x.id == 1",
        "x := split(\"a\", \"b\"); x.id",
        "some x in [1]; x.id == 1",
        "\"a\" == 1",
        "[1, 2] = [x]; x == 1",
        "concat(\",\", [\"a\", 1])",
        "sprintf(\"%d\", 1)",
        "x := {1} | [2]",
        "number.id == 1",
        "number + [y | y := 1] == 1",
        "pair([1, 2, 3])",
        "pair([1, 2], 3, 4)",
    ] {
        let said = evaluated(&format!(
            "number := 1\npair([x, y]) := x + y\ntrigger contains \"x\" if {{ {body} }}"
        ));
        assert!(
            said.contains("p.rego:4:") && said.contains("cannot be loaded"),
            "{body}: {said}"
        );
    }
    for body in [
        "x := input.n; x.id == 1",
        "some x in input.stacks; x.id == 1",
        "count(input.n) == 2",
        "value == \"a\"",
        "value + 1 == 2",
        "concat(\",\", [x | some x in input.text])",
        "number == 2 with data.p.number as \"a\"",
        "pair([1, input.n]) == 4",
    ] {
        let said = evaluated(&format!(
            "number := 1\nvalue := 1 if input.n\nelse := \"a\"\npair([x, y]) := x + y\ntrigger contains \"x\" if {{ {body} }}"
        ));
        assert!(said.starts_with('['), "{body}: {said}");
    }
}

#[test]
fn policies_that_contradict_themselves_are_refused() {
    for rules in [
        "a := 1\na contains 2",
        "a.b := 1\na := {\"c\": 2}",
        "a[x] := 1 if { some x in [\"k\"] }\na.k := 2",
        "default a := 1\ndefault a := 2",
        "default a := input.x",
        "data := 1",
        "input contains 1",
        "import data.x\nimport input.x",
        "import future.keywords.foo",
        "a if { some x }",
        "a if { some x in [1]; some x in [2]; x == 1 }",
        "a if { input := 1; input == 1 }",
        "a if { true with foo as 3 }",
        "f(x) := x\na if { f(1, 2, 3) }",
        "a contains 1 { true }",
    ] {
        let said = evaluated(&format!("{rules}\n"));
        assert!(
            said.contains("p.rego:") && said.contains("cannot be loaded"),
            "{rules}: {said}"
        );
    }
}

#[test]
fn policies_that_show_another_order_of_sets_are_refused() {
    for expression in [
        "[x | x := mixed[_]]",
        "[x | mixed[x]]",
        "[x | some _, x in mixed]",
        "[p | walk({\"a\": mixed}, [p, _])]",
        "[x | some x in {{1}: \"x\", {\"a\": 1}: \"y\"}]",
    ] {
        let said = evaluated(&format!(
            "mixed := {{{{1}}, {{\"a\": 1}}, 3}}\ntrigger contains json.marshal({expression})"
        ));
        assert!(
            said.contains("another order than in OPA"),
            "{expression}: {said}"
        );
    }
}

#[test]
fn policies_may_begin_a_statement_with_a_text() {
    for body in [
        "\"prod\" in input.stacks[i].labels; i == 0",
        "some i; \"db\" = input.stacks[i].id; some x in input.pairs; x == [\"c\"]",
    ] {
        let said = evaluated(&format!("trigger contains \"x\" if {{ {body} }}"));
        assert_eq!(said, r#"["x"]"#, "{body}");
    }
}

#[test]
fn functions_read_their_arguments_as_opa_does() {
    check(&[
        ("regex.split(`[a-e]*`, \"xaby\")", r#"["x","y"]"#),
        ("regex.split(`,`, \"a,\")", r#"["a",""]"#),
        ("regex.split(``, \"ab\")", r#"["a","b"]"#),
        (
            "regex.replace(\"ab\", `(a)(?P<n>b)`, `${2}-$1x$n.${n-}$$$`)",
            r#""b-b.${n-}$$""#,
        ),
        ("regex.replace(\"ab\", `(a)`, `$01`)", r#""b""#),
        ("regex.find_n(`a`, \"aaa\", 2.5)", "undefined"),
        ("regex.find_n(`a`, \"aaa\", -1)", r#"["a","a","a"]"#),
        ("regex.match(`{a}`, \"{a}\")", "true"),
        ("regex.is_valid(`a**`)", "false"),
        ("regex.is_valid(`a{1001}`)", "false"),
        (
            "regex.template_match(\"urn:{.*}\", \"urn:x\", \"{\", \"}\")",
            "true",
        ),
        (
            "regex.template_match(\"urn:{.*}\", \"urn:x\", \"{{\", \"}\")",
            "undefined",
        ),
        ("glob.match(\"net-*\", [], \"net-a.b\")", "false"),
        ("glob.match(\"net-*\", null, \"net-a.b\")", "true"),
        ("glob.match(\"{a,b}?/**\", [\"/\"], \"bc/d/e\")", "true"),
        ("glob.quote_meta(\"a[*]\")", r#""a\\[\\*\\]""#),
        ("substring(\"abc\", 1, 2.5)", "undefined"),
        ("substring(\"abc\", 1, -1)", r#""bc""#),
        ("strings.count(\"abc\", \"\")", "4"),
        ("indexof_n(\"abc\", \"\")", "undefined"),
        ("semver.compare(\"v1.2.3\", \"1.2.3-rc1\")", "1"),
        ("json.is_valid(input.n)", "false"),
        ("json.marshal(\"<a>&\")", r#""\"\\u003ca\\u003e\\u0026\"""#),
        ("json.remove({\"a\": 1}, [[\"a\", \"b\"]])", r#"{"a":1}"#),
        (
            "json.filter({\"a\": [1, 2], \"b\": 3}, [\"a/1\"])",
            r#"{"a":[2]}"#,
        ),
        (
            "graph.reachable_paths({\"a\": [\"b\", \"a\"], \"b\": []}, [\"a\"])",
            r#"[["a","a"],["a","a","b"],["a","b"]]"#,
        ),
        ("urlquery.encode(\"a b*\")", r#""a+b%2A""#),
        (
            "urlquery.decode_object(\"a=1&a=2&b\")",
            r#"{"a":["1","2"],"b":[""]}"#,
        ),
        ("upper(\"ß\")", r#""ß""#),
        (
            "[ceil(-0.5), floor(-0.5), ceil(2.5), floor(-2.5)]",
            "[1,0,3,-3]",
        ),
        ("0.1 + 0.2 == 0.3", "true"),
    ]);
}

#[test]
fn functions_with_other_results_than_in_opa_are_refused_by_name() {
    for call in [
        "yaml.marshal(input)",
        "units.parse(\"1Ki\")",
        "bits.lsh(1, 2)",
    ] {
        let said = evaluated(&format!("trigger contains json.marshal({call})"));
        let name = call.split('(').next().unwrap_or_default();
        let expected = format!("`{name}` is not allowed in a policy: it has other results");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn policies_with_times_of_another_machine_or_layout_are_refused() {
    for (call, expected) in [
        ("time.date([0, \"Local\"])", "the time zone `Local`"),
        ("time.format([0, \"UTC\", \"3:4:5 pm\"])", "literal layouts"),
        ("time.format([0, \"UTC\", \"05.999\"])", "literal layouts"),
        ("time.format([0, \"UTC\", \"RFC1123\"])", "literal layouts"),
        ("time.format([0, \"UTC\", input.text])", "literal layouts"),
    ] {
        let said = evaluated(&format!("trigger contains json.marshal({call})"));
        assert!(said.contains(expected), "{call}: {said}");
    }
    check(&[
        (
            "time.format([0, \"UTC\", \"2006-01-02T15:04:05.000Z07:00\"])",
            r#""1970-01-01T00:00:00.000Z""#,
        ),
        (
            "time.format([0, \"UTC\", \"RFC3339\"])",
            r#""1970-01-01T00:00:00Z""#,
        ),
    ]);
}

#[test]
fn policies_reach_else_of_a_function_whose_body_declares_its_value() {
    let rules = "f(s) := l if { some l in s.labels } else := \"none\"\n\
                 trigger contains f({\"labels\": []})\ntrigger contains f({\"labels\": [\"a\"]})";
    assert_eq!(evaluated(rules), r#"["a","none"]"#);
    // An undefined value leads to `else` too.
    let rules = "f(x) := x.owner if { x.n > 0 } else := \"none\"\n\
                 trigger contains f({\"n\": 1})\ntrigger contains f({\"n\": 1, \"owner\": \"a\"})";
    assert_eq!(evaluated(rules), r#"["a","none"]"#);
}

#[test]
fn policies_with_unsafe_variables_are_refused() {
    for statement in [
        "some i; not startswith(input.stacks[i].id, \"a\")",
        "not input.stacks[_].id == \"a\"",
        "some i; not input.stacks[i].id == \"a\"",
        "every s in input.stacks { not s.labels[i] == \"a\" }",
    ] {
        let said = evaluated(&format!("trigger contains \"x\" if {{ {statement} }}"));
        assert!(said.contains("p.rego:2:"), "{statement}: {said}");
        assert!(
            said.contains("is unsafe") || said.contains("has no value"),
            "{statement}: {said}"
        );
    }
}

#[test]
fn policies_with_calls_after_a_blank_are_refused() {
    for body in [
        "not input.a\n (1 - 2) / 2 < 600",
        "count (input.numbers) > 1",
    ] {
        let said = evaluated(&format!("trigger contains \"x\" if {{ {body} }}"));
        assert!(
            said.contains("p.rego:2:") && said.contains("cannot be loaded"),
            "{body}: {said}"
        );
    }
}

#[test]
fn policies_with_object_patterns_are_refused() {
    for statement in [
        "some {\"id\": x} in input.stacks",
        "{\"id\": x} := input.stacks[0]",
    ] {
        let said = evaluated(&format!("trigger contains x if {{ {statement} }}"));
        assert!(said.contains("object pattern"), "{statement}: {said}");
    }
}

#[test]
fn policies_read_regexes_as_re2_does() {
    let answered = |pattern: &str, text: &str| {
        evaluated(&format!(
            "trigger contains \"x\" if {{ regex.match(`{pattern}`, \"{text}\") }}"
        ))
    };
    assert_eq!(answered("^.{1,100}$", "abc"), r#"["x"]"#);
    assert_eq!(answered(r"^[\w-]{1,64}$", "net-eu"), r#"["x"]"#);
    assert_eq!(answered(r"^\w+$", "naïve"), "[]");
    let said = answered("[[:letter:]]", "a");
    assert!(said.contains("`[:letter:]` is no class"), "{said}");
    let said = answered("(", "a");
    assert!(said.contains("the regex is wrong"), "{said}");
}

#[test]
fn policies_have_digests_and_flat_arrays_or_are_refused_by_name() {
    let rules = "trigger contains crypto.md5(\"a\")\ntrigger contains x if { some x in array.flatten([[\"b\"], \"c\"]) }";
    assert_eq!(
        evaluated(rules),
        r#"["0cc175b9c0f1b6a831c399e269772661","b","c"]"#
    );
    let said = evaluated("trigger contains strings.render_template(\"a\", {})");
    assert!(
        said.contains("`strings.render_template` is not a function"),
        "{said}"
    );
}
