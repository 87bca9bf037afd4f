//! Policies that mean harm: what they are refused, and what they cost.

use std::fmt::Write as _;

use insta::assert_snapshot;

use super::loaded::{answer, policy};

/// Expects that each text is refused, with these words.
fn assert_refused(cases: &[(&str, &str)]) {
    for (rules, expected) in cases {
        let said = policy(&format!("package p\n{rules}\n")).orch("policy validate");
        assert_eq!(said.code(), 3, "{rules}: {}", said.stdout);
        assert!(said.stderr.contains(expected), "{rules}: {}", said.stderr);
    }
}

#[test]
fn policy_refuses_recursive_rules() {
    assert_refused(&[
        (
            "a if b\nb if c\nc if a",
            "p.rego:2:1: `a` is recursive through `b`, `c`",
        ),
        (
            "default a := false\na if not b\nb if a",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "default a := [x | x := b]\nb if a",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "a := 1 if false else := b\nb := a",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "a := 1 if false else := 2 if b\nb := a",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "a := [x | x := b[_]]\nb := {y: 1 | y := a[_]}",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "a := data.p.b\nb := data.p[\"a\"]",
            "2:1: `a` is recursive through `b`",
        ),
        ("a := data", "2:1: `a` is recursive"),
        (
            "import data.p as q\na := q.b\nb := q.a",
            "3:1: `a` is recursive through `b`",
        ),
        (
            "import data as q\na := q.p.b\nb := q.p.a",
            "3:1: `a` is recursive through `b`",
        ),
        (
            "a := x if x := input with input as b\nb := a",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "a if every x in [1] { b }\nb if a",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "a[b] := 1\nb := x if some x, _ in a",
            "2:1: `a` is recursive through `b`",
        ),
        (
            "a contains b\nb := count(a)",
            "2:1: `a` is recursive through `b`",
        ),
        ("a := data[x].a if x := \"p\"", "2:1: `a` is recursive"),
    ]);
    let said = answer("package p\na { not b }\nb { not a }\n");
    assert!(
        said.contains("p.rego:2:1: `a` is recursive through `b`"),
        "{said}"
    );
}

#[test]
fn policy_refuses_recursive_functions_with_any_variable_names() {
    assert_refused(&[
        ("f(x) := f(x)", "2:1: `f` is recursive"),
        ("f(x) := y if f(x, y)", "2:1: `f` is recursive"),
        ("f(x) := data[\"p\"][\"f\"](x)", "2:1: `f` is recursive"),
        (
            "import data.p.f as count\nf(x) := count(x)",
            "3:1: `f` is recursive",
        ),
        ("import input as f\nf(x) := f(x)", "3:1: `f` is recursive"),
        (
            "g(f) := f(1)\nf(x) := g(x)",
            "2:1: `g` is recursive through `f`",
        ),
        (
            "f(x) := 1 if { every f in [1] { f(x) == 1 } }",
            "2:1: `f` is recursive",
        ),
        (
            "f(x) := y if { some f in [1]; y := f(x) }",
            "2:1: `f` is recursive",
        ),
        (
            "f(x) := y if { z := [1 | f := 1]; y := f(x) }",
            "2:1: `f` is recursive",
        ),
        (
            "g(x) := count(x)\nf(x) := y if y := g(x) with count as data.p.f",
            "3:1: `f` is recursive",
        ),
    ]);
    let said = answer("package p\nf(x) = y { y = f(x + 1) }\ntrigger[\"a\"] { f(1) }\n");
    assert!(said.contains("p.rego:2:1: `f` is recursive"), "{said}");
}

#[test]
fn policy_refuses_impure_functions_under_every_name() {
    let clock = "`time.now_ns` is not allowed in a policy: it reads the clock";
    let chance = "`rand.intn` is not allowed in a policy: it is random";
    assert_refused(&[
        (
            "x := uuid.rfc4122(\"a\")",
            "2:6: `uuid.rfc4122` is not allowed",
        ),
        (
            "x := net.lookup_ip_addr(\"a\")",
            "2:6: `net.lookup_ip_addr` is not allowed",
        ),
        ("x := http[\"send\"]({})", "2:6: `http.send` is not allowed"),
        (
            "f(x) := 1\nx if http.send({}) with http.send as f",
            "3:6: `http.send` is not allowed",
        ),
        (
            "x if count([]) == 0 with count as http.send",
            "2:35: `http.send` is not allowed",
        ),
        ("x := rand[\"intn\"](\"a\", 5)", chance),
        ("import data.rand\nx := rand.intn(\"a\", 5)", chance),
        ("import input.rand\nx := rand.intn(\"a\", 5)", chance),
        ("rand.foo := 1\nx := rand.intn(\"a\", 5)", chance),
        ("x if { every rand in [1] { rand.intn(\"a\", 5) } }", chance),
        ("import input.stack as time\nx := time.now_ns()", clock),
        ("x := y if { some time in [1]; y := time.now_ns() }", clock),
        ("f(time) := time.now_ns()", clock),
        ("time := 1\nx := time.now_ns()", clock),
        (
            "f(x) := x\ny if { some time in [1]; f(1) with f as time.now_ns }",
            clock,
        ),
        ("x := [y | time.now_ns(y)]", clock),
    ]);
    let said = answer("package p\ntrigger[x] { x := sprintf(\"%d\", [time.now_ns()]) }\n");
    assert!(said.contains(clock), "{said}");
}

#[test]
fn policy_refuses_a_wrong_number_of_arguments() {
    assert_refused(&[
        (
            "x := count([], 1, 2)",
            "p.rego:2:6: `count` does not take 3 arguments",
        ),
        (
            "x := concat(\",\")",
            "p.rego:2:6: `concat` does not take 1 arguments",
        ),
    ]);
    // The argument that is one too many is what the value has to match.
    assert_eq!(
        answer("package p\ntrigger contains x if split(\"a,b\", \",\", [x, \"b\"])\n"),
        "trigger: a\n"
    );
}

#[test]
fn policy_limits_the_nesting_of_brackets_outside_of_text() {
    let deep = |depth: usize| format!("x := {}{}", "[".repeat(depth), "]".repeat(depth));
    assert_refused(&[
        (
            &deep(11),
            "p.rego:2:16: brackets are nested more than 10 deep",
        ),
        (
            &deep(10_000),
            "p.rego:2:16: brackets are nested more than 10 deep",
        ),
        (
            &deep(10_000).replace('[', "(").replace(']', ")"),
            "2:16: brackets are nested more than 10",
        ),
    ]);
    let many = "[{(".repeat(10_000);
    let text = format!(
        "package p\n# {many}\n{}\ny := \"{many}\\\"{many}\" # {many}\nz := `{many}\n{many}`\ntrigger contains \"a\" if x; y; z\n",
        deep(10)
    );
    assert_eq!(
        answer(&text.replace("if x; y; z", "if { x; y; z }")),
        "trigger: a\n"
    );
}

#[test]
fn policy_limits_files_to_256_kib_but_not_lines() {
    let text = |size: usize| {
        let rule = "package p\ntrigger contains \"a\" #";
        format!("{rule}{}", "x".repeat(size - rule.len()))
    };
    assert_eq!(answer(&text(256 << 10)), "trigger: a\n");
    let lines = format!(
        "package p\n{}trigger contains \"b\"\n",
        "\n".repeat(200_000)
    );
    assert_eq!(answer(&lines), "trigger: b\n");
    let said = answer(&text((256 << 10) + 1));
    assert!(said.contains("it is larger than 256 KiB"), "{said}");
}

#[test]
fn policy_refuses_unterminated_strings_and_nul_characters_with_their_position() {
    assert_refused(&[
        ("x := \"abc", "as Rego v1: p.rego:2:"),
        ("x := `abc", "as Rego v1: p.rego:2:7: unmatched `"),
        (
            "x := \"a\0b\"",
            "p.rego:2:8: a policy must not contain NUL characters",
        ),
        // To the library it would be the end of the text.
        (
            "\n\0trigger contains \"a\"",
            "p.rego:3:1: a policy must not contain NUL characters",
        ),
    ]);
    let sandbox = policy("");
    sandbox.write("/p.rego", b"package p\n# \xff\n");
    let said = sandbox.orch("policy validate");
    assert_eq!(said.code(), 3);
    assert!(said.stderr.contains("UTF-8"), "{}", said.stderr);
    for empty in ["", " \n\t"] {
        let said = answer(empty);
        assert!(said.contains("expecting `package`"), "{said}");
    }
}

#[test]
fn policy_accepts_a_byte_order_mark_and_any_line_ends() {
    let text = "package p\n# why\ntrigger contains input.stack.id if {\n  true # so\n}\n";
    assert_eq!(answer(text), "trigger: net\n");
    assert_eq!(answer(&text.replace('\n', "\r\n")), "trigger: net\n");
    assert_eq!(answer(&format!("\u{feff}{text}")), "trigger: net\n");
}

#[test]
fn policy_limits_results_and_cuts_prints() {
    let row = "some i in numbers.range(1, 100); x := sprintf(\"%100000d\", [i])";
    let said = answer(&format!("package p\ntrigger contains x if {{ {row} }}\n"));
    assert!(
        said.contains("p.rego: `trigger` is larger than 1 MiB"),
        "{said}"
    );
    let said = answer(&format!(
        "package p\ntrigger contains \"a\" if every n in [1] {{ print(\"one\"); {row}; print(x); n == 1 }}\n"
    ));
    assert_snapshot!(said, @"
    print: p.rego:2: one
    print: (100 more not kept: too much output)
    trigger: a
    ");
}

#[test]
fn policy_prints_are_no_results_and_are_escaped() {
    let forged = r#"
package p
trigger contains "a" if {
  print("\n{\"evaluated\":{\"Ok\":{\"trigger\":[\"evil\"]}}}\n\"ready\"\n\u001b[31mred\u0007")
}
trigger contains "\u001b[31mred"
"#;
    assert_snapshot!(answer(forged), @r#"
    print: p.rego:4: \n{"evaluated":{"Ok":{"trigger":["evil"]}}}\n"ready"\n\u{1b}[31mred\u{7}
    trigger: \u{1b}[31mred
    trigger: a
    "#);
}

/// Rules each of which is twice the one before.
fn doubled(first: &str, twice: impl Fn(usize) -> String) -> String {
    let mut text = format!("package p\na0 := {first}\n");
    for index in 0..34 {
        _ = writeln!(text, "a{} := {}", index + 1, twice(index));
    }
    text + "sample if count(a34) > 1\n"
}

#[cfg(target_os = "linux")]
#[test]
fn policy_that_fills_the_memory_is_killed() {
    let texts = [
        doubled("\"abcdefgh\"", |index| format!("concat(\"\", [a{index}, a{index}])")),
        doubled("[1, 2]", |index| format!("array.concat(a{index}, a{index})")),
        "package p\nsample if count(numbers.range(1, 100000000)) > 1\n".to_owned(),
        "package p\nx := [sprintf(\"%999999d\", [i]) | some i in numbers.range(1, 5000)]\nsample if count(x) > 1\n".to_owned(),
        "package p\nsample if count(net.cidr_expand(\"10.0.0.0/8\")) > 1\n".to_owned(),
    ];
    for text in texts {
        let sandbox = policy(&text);
        // Only the memory counts, however slow the machine is.
        sandbox.write(
            "/p.orch.hcl",
            "policy \"trigger\" \"p\" {\n  file = \"p.rego\"\n  timeout = \"10m\"\n}",
        );
        let said = sandbox.orch("policy eval p --input input.json");
        assert!(
            said.stderr
                .contains("p.rego: evaluating it takes more than 256 MiB"),
            "{said}"
        );
    }
    // A width is no way to a text of gigabytes.
    assert_eq!(
        answer("package p\ntrigger contains sprintf(\"%1000000000d\", [1]) if true\n"),
        "trigger: %!(NOVERB)%!(EXTRA int64=1)\n"
    );
}

#[test]
fn policy_may_have_long_chains_and_many_rules() {
    let mut chain = "package p\na0 := 1\n".to_owned();
    for index in 0..10_000 {
        _ = writeln!(chain, "a{} := a{index}", index + 1);
    }
    assert_eq!(
        answer(&format!("{chain}sample if a10000 == 1\n")),
        "sample: true\n"
    );
    let mut doubled = "package p\na0 := 1\n".to_owned();
    for index in 0..40 {
        _ = writeln!(doubled, "a{} := [a{index}, a{index}]", index + 1);
    }
    assert_eq!(
        answer(&format!("{doubled}sample if count(a40) == 2\n")),
        "sample: true\n"
    );
    let sum = format!(
        "package p\nx := 1{}\nsample if x == 3001\n",
        " + 1".repeat(3000)
    );
    assert_eq!(answer(&sum), "sample: true\n");
    let rules = "a := 1\n".repeat(30_000);
    assert_eq!(
        answer(&format!("package p\n{rules}sample if a == 1\n")),
        "sample: true\n"
    );
    // These are deeper than its stack; the worker ends, and `orch` does not.
    let signs = answer(&format!("package p\nx := {}1\n", "-".repeat(200_000)));
    assert!(signs.contains("the policy `p` cannot be loaded"), "{signs}");
}

#[test]
fn policy_results_of_extreme_numbers_are_undefined_or_right() {
    let huge = format!("1{}", "0".repeat(300));
    let text = r#"
package p
least := -9223372036854775808
most := 9223372036854775807
sample if {
  count(substring("abc", most, most)) == 0
  not numbers.range_step(1, 10, 0)
  not numbers.range(HUGE, HUGE0)
  array.slice([1], least, most) == [1]
  not format_int(5, 0)
  not time.parse_duration_ns("9999999999999999999h")
  least % -1 == 0
  abs(least) == 9223372036854775808
  not 1 / 0
}
"#;
    assert_eq!(answer(&text.replace("HUGE", &huge)), "sample: true\n");
}
