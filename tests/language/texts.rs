//! Functions for text in a language (templates, HCL, TOML), and Terramate's own.

use std::io::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::json;

/// Asserts the values of expressions, as JSON.
fn are(cases: &[(&str, &str)]) {
    for (expression, value) in cases {
        assert_eq!(json(expression).as_deref(), Ok(*value), "{expression}");
    }
}

/// Asserts the problems of expressions.
fn fail(cases: &[(&str, &str)]) {
    for (expression, problem) in cases {
        let found = json(expression).unwrap_err();
        assert!(found.contains(problem), "{expression}\n{found}");
    }
}

#[test]
fn templates_are_read_as_terraform_reads_files() {
    are(&[
        (
            r#"templatestring("x: %%{ for a in l ~}\n  - $${a}\n%%{ endfor ~}\nend\n", { l = ["u", "v"] })"#,
            r#""x:   - u\n  - v\nend\n""#,
        ),
        (
            r#"templatestring("p\n  %%{~ if true ~}  \n  q\n  %%{~ endif ~}\n  r\n\n$${~ n ~}\n\n s", { n = 1 })"#,
            r#""p\n  q\n  r\n1\n s""#,
        ),
        (
            r#"templatestring("a\\n\"q\" $$${x} $$$${n} $5 100%", { n = 1 })"#,
            r#""a\\n\"q\" ${x} $${n} $5 100%""#,
        ),
        (r#"templatestring("$${n}", { n = 5 })"#, r#""5""#),
        (
            r#"templatestring("$${core::ceil(1.5)} $${ceil(2.5)}", {})"#,
            r#""2 3""#,
        ),
        (r#"templatestring("", {})"#, r#""""#),
    ]);
    fail(&[
        (r#"templatestring("$${l}", { l = [1] })"#, "text is needed"),
        (
            r#"templatestring("$${slug(1)}", {})"#,
            "unknown function `slug`",
        ),
        (r#"templatestring("a", { "a b" = 1 })"#, "not a name"),
        (r#"templatestring("a", 1)"#, "an object is needed"),
    ]);
}

#[test]
fn a_problem_in_a_template_names_its_file_and_line() {
    fail(&[
        (
            r#"templatefile("wrong.tftpl", { name = 1 })"#,
            "unknown name `nme`: line 3 of `wrong.tftpl`: this name is not defined here",
        ),
        (
            r#"templatefile("nested.tftpl", {})"#,
            "line 2 of `nested.tftpl`: line 3 of `wrong.tftpl`: ",
        ),
        (
            r#"templatefile("syntax.tftpl", {})"#,
            "syntax error in a template: line 2 of `syntax.tftpl`",
        ),
        (r#"templatefile("none.tftpl", {})"#, "no such file"),
        (r#"templatefile("bytes", {})"#, "not UTF-8"),
        (
            r#"templatefile("loop.tftpl", {})"#,
            "templates are nested more than 16 levels deep",
        ),
        (
            r#"try(templatefile("loop.tftpl", {}), 1)"#,
            "templates are nested more than 16 levels deep",
        ),
    ]);
}

#[test]
fn hcl_is_written_and_read() {
    are(&[
        (
            r#"hclencode({ a = 1, b = "x$${y}\n", c = [1, "y"], d = { e = true, "k k" = 0.5 }, f = null })"#,
            r#""a = 1\nb = \"x$${y}\\n\"\nc = [\n  1,\n  \"y\",\n]\nd = {\n  e     = true\n  \"k k\" = 0.5\n}\nf = null\n""#,
        ),
        (
            r#"hclencode({ long = 1, x = {}, y = [], zz = [[{ "for" = true }], [{ a = 1, "for" = 2 }], []], é = 2 })"#,
            r#""long = 1\nx    = {}\ny = [\n]\nzz = [\n  [\n    {\n      \"for\" = true\n    },\n  ],\n  [\n    {\n      a   = 1\n      for = 2\n    },\n  ],\n  [\n  ],\n]\né = 2\n""#,
        ),
        (
            r"hclencode({ n = 18446744073709551616 })",
            r#""n = 18446744073709551616\n""#,
        ),
        ("hclencode({})", r#""""#),
        (
            r#"hcldecode("a = [1, { b = 2 }]\nc = 1 + 1\nd = null")"#,
            r#"{"a":[1,{"b":2}],"c":2,"d":null}"#,
        ),
        (r#"hcldecode("")"#, "{}"),
        (
            r#"hcldecode(hclencode({ a = "$${x} %%{y} \"\\" }))"#,
            r#"{"a":"${x} %{y} \"\\"}"#,
        ),
        (
            r#"hcldecode(hclencode({ "for" = [{ "for" = [] }], "in" = { "for" = 1, "in" = 2 } }))"#,
            r#"{"for":[{"for":[]}],"in":{"for":1,"in":2}}"#,
        ),
    ]);
    fail(&[
        (
            r#"hclencode({ "a b" = 1 })"#,
            "cannot be the name of an attribute",
        ),
        ("hclencode([1])", "an object is needed"),
        (r#"hcldecode("b {}")"#, "it has the block `b`"),
        (r#"hcldecode("\na = b")"#, "line 2 of the text"),
        (r#"hcldecode("a = ceil(1)")"#, "unknown function `ceil`"),
        (r#"hcldecode("a = ")"#, "line 1 of the text"),
        (r#"hcldecode("a = 1 % 0")"#, "line 1 of the text"),
    ]);
}

#[test]
fn toml_is_written_and_read() {
    are(&[
        (
            "tomlencode({ c = [1, 0.5], d = { e = true }, z = 1, n = null })",
            r#""c = [1, 0.5]\nz = 1\n\n[d]\ne = true\n""#,
        ),
        ("tomlencode({ b = [{ a = 1 }] })", r#""[[b]]\na = 1\n""#),
        (
            r#"tomldecode("a = 1.5\nd = 2020-01-01\n[[x]]\ny = 1")"#,
            r#"{"a":1.5,"d":"2020-01-01","x":[{"y":1}]}"#,
        ),
        (r#"tomldecode("")"#, "{}"),
    ]);
    fail(&[
        ("tomlencode([1])", "an object is needed"),
        ("tomlencode({ a = [null] })", "TOML has no null"),
        (r#"tomldecode("f = nan")"#, "is not a number"),
        (r#"tomldecode("\na =")"#, "line 2 of the text"),
    ]);
}

#[test]
fn names_are_made_and_recognised() {
    are(&[
        (r#"slug("Ünï code")"#, r#""-n--code""#),
        (r#"slug(["A B", "c!"])"#, r#"["a-b","c-"]"#),
        ("slug(null)", "null"),
        (r#"unslug("A--B", ["a b"])"#, r#""a b""#),
        (r#"unslug("-a", ["!a"])"#, r#""!a""#),
        (r#"unslug(["a-b", "q"], ["A B"])"#, r#"["A B","q"]"#),
        (r#"joinlist("/", [["a"], []])"#, r#"["a",""]"#),
        (
            r#"tree([[null, "root"], ["root", "b"], ["root", "a"], ["a", "x"]])"#,
            r#"[["root"],["root","a"],["root","a","x"],["root","b"]]"#,
        ),
        ("tree([])", "[]"),
    ]);
    fail(&[
        ("slug(5)", "a string or a list of strings is needed"),
        (r#"unslug("a-b", ["A B", "A-B"])"#, "may be"),
        (r#"joinlist("/", ["a"])"#, "a list is needed"),
        (r#"tree([["root", "a"]])"#, "is not a node itself"),
        (r#"tree([["a", "b"], ["b", "a"]])"#, "part of a cycle"),
        (r#"tree([["a", "a"]])"#, "part of a cycle"),
        (r#"tree([[null, "a"], [null, "a"]])"#, "two parents"),
        (r#"tree([["a", null]])"#, "as the child"),
        (r#"tree([["a"]])"#, "a pair of parent and child"),
        (r#"tree([for n in [1] : [n, ""]])"#, "as the child"),
    ]);
}

#[test]
fn ternary_evaluates_one_branch_and_versions_are_compared() {
    are(&[
        (r#"ternary("true", [1, 2], { a = 1 })"#, "[1,2]"),
        ("ternary(false, nope.x, null)", "null"),
        (r#"version_match("1.2.3-rc1", "~> 1.2")"#, "false"),
        (
            r#"version_match("1.2.3-rc1", "~> 1.2", { allow_prereleases = true })"#,
            "true",
        ),
        (r#"version_match("v1.2", "1.2.0")"#, "true"),
        (r#"version_match(1, ">= 1")"#, "true"),
        ("issensitive(1)", "false"),
        (r#"cidrcontains("10.0.0.0/8", "11.0.0.1")"#, "false"),
        (r#"cidrcontains("10.0.0.0/8", "10.0.0.0/7")"#, "false"),
        (r#"cidrcontains("::/0", "2001:db8::1")"#, "true"),
        (r#"cidrcontains("0.0.0.0/0", "1.2.3.4")"#, "true"),
    ]);
    fail(&[
        ("ternary(1, 1, 2)", "a bool is needed"),
        ("ternary(null, 1, 2)", "a bool is needed"),
        ("ternary(true, nope, 1)", "unknown name `nope`"),
        ("ternary(true, 1, [2]...)", "one by one"),
        (r#"version_match("abc", "1.2.0")"#, "a version such as"),
        (r#"version_match("1.2.0", "^1.0")"#, "is not a comparison"),
        (r#"version_match("1.2.0", "1", {})"#, "`allow_prereleases`"),
        (r#"cidrcontains("10.0.0.0/8", "::1")"#, "IPv6"),
        (r#"cidrcontains("10.0.0.0/33", "::1")"#, "a network"),
        (r#"urldecode("%4")"#, "two hexadecimal digits"),
        (r#"base64gunzip("aGVsbG8=")"#, "gzip"),
    ]);
}

#[test]
fn a_short_text_cannot_describe_a_huge_value() {
    let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..100 {
        zip.write_all("a".repeat(1 << 20).as_bytes()).unwrap();
    }
    let bomb = BASE64_STANDARD.encode(zip.finish().unwrap());
    let nodes: Vec<String> = (0..5_000)
        .map(|n: u32| match n.checked_sub(1) {
            None => "[null, 0]".to_owned(),
            Some(parent) => format!("[{parent}, {n}]"),
        })
        .collect();
    let long = "a".repeat(20_000);
    let lists = vec!["[\"x\", \"y\"]"; 5_000].join(", ");
    fail(&[
        (&format!("base64gunzip(\"{bomb}\")"), "too large"),
        (&format!("try(base64gunzip(\"{bomb}\"), 1)"), "too large"),
        (&format!("tree([{}])", nodes.join(", ")), "too large"),
        (&format!("joinlist(\"{long}\", [{lists}])"), "too large"),
    ]);
}
