//! What `for_each` may be, and what it may not.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

/// Lists the stacks of a project whose only stack has this `for_each`.
fn listed(for_each: &str) -> Output {
    let sandbox = Sandbox::new("");
    sandbox.write(
        "/t/stack.orch.hcl",
        format!("stack {{\n  for_each = {for_each}\n}}\n"),
    );
    sandbox.write("/t/keys.json", r#"["x", "y"]"#);
    sandbox.orch("list")
}

#[test]
fn for_each_makes_a_stack_of_each_key() {
    let longest = "k".repeat(64);
    let longest_wide = "é".repeat(64);
    let table = [
        (r#"["b", "a"]"#, vec!["a", "b"]),
        ("{ b = 1, a = null }", vec!["a", "b"]),
        (r#"{ 1 = "x", "a b" = [] }"#, vec!["1", "a b"]),
        (
            r#"{ for k in ["a", "b"] : tm_upper(k) => k }"#,
            vec!["A", "B"],
        ),
        (r#"[for k in ["a", "b"] : "${k}-1"]"#, vec!["a-1", "b-1"]),
        (r#"tm_toset(["a", "a"])"#, vec!["a"]),
        ("tm_tomap({ a = 1 })", vec!["a"]),
        (r#"tm_jsondecode(tm_file("keys.json"))"#, vec!["x", "y"]),
        (r#"tm_fileset(".", "*.json")"#, vec!["keys.json"]),
        (
            r#"["*", "a\\b", "$x", "ä", ".", ".."]"#,
            vec!["$x", "*", ".", "..", "a\\b", "ä"],
        ),
        (r#"["a", "A"]"#, vec!["A", "a"]),
    ];
    for (for_each, keys) in table {
        let output = listed(for_each);
        let names = keys.iter().map(|key| format!("t[\"{key}\"]\n"));
        let expected = names.collect::<Vec<_>>().concat();
        assert_eq!(output.to_string(), expected, "{for_each}");
    }
    for key in [longest, longest_wide] {
        let output = listed(&format!("[\"{key}\"]"));
        assert_eq!(output.to_string(), format!("t[\"{key}\"]\n"));
    }
}

#[test]
fn for_each_rejects_keys_that_make_paths_ambiguous() {
    let too_long = format!("\"{}\"", "k".repeat(65));
    let table = [
        (r#""""#, "a key has at least 1 character"),
        (
            &*too_long,
            "a key has at most 64 characters, and this one has 65",
        ),
        (r#""a/b""#, "and this one has `/`"),
        (r#""a[b""#, "and this one has `[`"),
        (r#""a]b""#, "and this one has `]`"),
        (r#""a\"b""#, "and this one has `\"`"),
        (r#""it's""#, "and this one has `'`"),
        (r#""a`b""#, "and this one has ```"),
        (r#""a\nb""#, "and this one has `\\n`"),
        (r#""a\u0000b""#, "and this one has `\\u{0}`"),
        (r#""a\u001bb""#, "and this one has `\\u{1b}`"),
        (r#""a\u202eb""#, "and this one has `\\u{202e}`"),
    ];
    for (key, problem) in table {
        for for_each in [
            format!("[\"ok\", {key}]"),
            format!("{{ ok = 1, {key} = 2 }}"),
        ] {
            let output = listed(&for_each);
            assert_eq!((output.code(), &*output.stdout), (3, ""), "{output}");
            let place = "--> t/stack.orch.hcl:2:";
            assert!(output.stderr.contains(place), "{output}");
            assert!(
                output.stderr.contains("cannot be the key of an instance"),
                "{output}"
            );
            assert!(output.stderr.contains(problem), "{problem}: {output}");
            assert!(
                !output.stderr.contains(['\0', '\u{1b}', '\u{202e}']),
                "{output}"
            );
        }
    }
    assert_snapshot!(listed(r#"["dev", "a/b"]"#), @r#"
    [stderr]
    error: `a/b` cannot be the key of an instance
     --> t/stack.orch.hcl:2:22
      |
    2 |   for_each = ["dev", "a/b"]
      |                      ^^^^^ a key has no quotes, brackets, slashes or control characters, and this one has `/`

    [exit status 3]
    "#);
}

#[test]
fn for_each_rejects_duplicate_keys() {
    assert_snapshot!(listed(r#"["a", "b", "a"]"#), @r#"
    [stderr]
    error: `a` occurs twice in `for_each`
     --> t/stack.orch.hcl:2:25
      |
    2 |   for_each = ["a", "b", "a"]
      |               ---       ^^^ again here
      |               |
      |               first here
      |
      = help: each key makes one stack: remove one of them

    [exit status 3]
    "#);
    assert_snapshot!(listed(r#"{ a = 1, (tm_lower("A")) = 2 }"#), @r#"
    [stderr]
    error: `a` occurs twice in `for_each`
     --> t/stack.orch.hcl:2:23
      |
    2 |   for_each = { a = 1, (tm_lower("A")) = 2 }
      |                -      ^^^^^^^^^^^^^^^ again here
      |                |
      |                first here
      |
      = help: each key makes one stack: remove one of them

    [exit status 3]
    "#);
    assert_snapshot!(listed(r#"[for k in ["a", "a"] : k]"#), @r#"
    [stderr]
    error: `a` occurs twice in `for_each`
     --> t/stack.orch.hcl:2:14
      |
    2 |   for_each = [for k in ["a", "a"] : k]
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^ two of its elements are the same
      |
      = help: each key makes one stack: remove one of them

    [exit status 3]
    "#);
}

#[test]
fn for_each_takes_an_object_or_a_list_of_strings() {
    for wrong in [
        "\"dev\"",
        "5",
        "true",
        "null",
        "[1]",
        "[[\"a\"]]",
        "[null]",
        "[true]",
        "[{}]",
    ] {
        let output = listed(wrong);
        assert_eq!((output.code(), &*output.stdout), (3, ""), "{output}");
        let message = "error: `for_each` must be an object or a list of strings";
        assert!(output.stderr.starts_with(message), "{output}");
        assert!(
            output.stderr.contains("--> t/stack.orch.hcl:2:"),
            "{output}"
        );
    }
    assert_snapshot!(listed("\"dev\""), @r#"
    [stderr]
    error: `for_each` must be an object or a list of strings
     --> t/stack.orch.hcl:2:14
      |
    2 |   for_each = "dev"
      |              ^^^^^ this is a string
      |
      = help: write `for_each = ["dev", "prod"]`, or `{ dev = …, prod = … }` to use `each.value`

    [exit status 3]
    "#);
    assert_snapshot!(listed(r#"["dev", 1]"#), @r#"
    [stderr]
    error: `for_each` must be an object or a list of strings
     --> t/stack.orch.hcl:2:22
      |
    2 |   for_each = ["dev", 1]
      |                      ^ this is a number
      |
      = help: write `for_each = ["dev", "prod"]`, or `{ dev = …, prod = … }` to use `each.value`

    [exit status 3]
    "#);
}

#[test]
fn for_each_must_be_known_before_anything_runs() {
    assert_snapshot!(listed("global.regions"), @"
    [stderr]
    error: `global` cannot be used in a `stack` block
     --> t/stack.orch.hcl:2:14
      |
    2 |   for_each = global.regions
      |              ^^^^^^ not available here
      |
      = help: only literals, operators, templates, `for` and functions are evaluated here

    [exit status 3]
    ");
    assert_snapshot!(listed("[tm_timestamp()]"), @"
    [stderr]
    error: `tm_timestamp` failed
     --> t/stack.orch.hcl:2:15
      |
    2 |   for_each = [tm_timestamp()]
      |               ^^^^^^^^^^^^ its result differs from call to call, and values in a `stack` block may depend only on files

    [exit status 3]
    ");
    assert_snapshot!(listed("[each.key]"), @"
    [stderr]
    error: `each` is available only in a stack with `for_each`
     --> t/stack.orch.hcl:2:15
      |
    2 |   for_each = [each.key]
      |               ^^^^ no instance here
      |
      = help: add `for_each` to the `stack` block, or write `tm_try(each.key, …)` for stacks without it

    [exit status 3]
    ");
    for other in [
        "orch.stacks.list",
        "env.REGIONS",
        "[orch.stack.name]",
        "tm_file(\"none\")",
    ] {
        let output = listed(other);
        assert_eq!((output.code(), &*output.stdout), (3, ""), "{output}");
        assert!(
            output.stderr.contains("--> t/stack.orch.hcl:2:"),
            "{output}"
        );
    }
}

#[test]
fn for_each_with_an_error_causes_no_other_problem() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each = 1
  name     = each.value.name
}
//- /user/stack.tm
stack {
  after = ["/t[\"a\"]", "/t"]
}
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `for_each` must be an object or a list of strings
     --> t/stack.orch.hcl:2:14
      |
    2 |   for_each = 1
      |              ^ this is a number
      |
      = help: write `for_each = ["dev", "prod"]`, or `{ dev = …, prod = … }` to use `each.value`

    [exit status 3]
    "#);
}

#[test]
fn for_each_over_an_empty_collection_makes_no_stack() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each = []
}
//- /user/stack.tm
stack {
  after = ["/t", "/t[\"a\"]"]
}
"#,
    );
    let output = sandbox.orch("list -v");
    assert_eq!((output.code(), &*output.stdout), (0, "user\n"), "{output}");
    let said = output
        .stderr
        .lines()
        .find(|line| line.contains("no stack: "));
    let said = said.unwrap_or_else(|| panic!("{output}"));
    assert!(said.contains("`for_each` is empty"), "{said}");
    assert!(
        said.contains("directory=/t place=\"t/stack.orch.hcl:2\""),
        "{said}"
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    user
    [stderr]
    warning: `/t` in `after` matches no stack
     --> user/stack.tm:2:12
      |
    2 |   after = ["/t", "/t[\"a\"]"]
      |            ^^^^ its `for_each` is empty

    warning: `/t["a"]` in `after` matches no stack
     --> user/stack.tm:2:18
      |
    2 |   after = ["/t", "/t[\"a\"]"]
      |                  ^^^^^^^^^^^ its `for_each` is empty
    "#);
    assert_snapshot!(sandbox.orch("validate"), @r#"
    [stderr]
    error: `/t` in `after` matches no stack
     --> user/stack.tm:2:12
      |
    2 |   after = ["/t", "/t[\"a\"]"]
      |            ^^^^ its `for_each` is empty

    error: `/t["a"]` in `after` matches no stack
     --> user/stack.tm:2:18
      |
    2 |   after = ["/t", "/t[\"a\"]"]
      |                  ^^^^^^^^^^^ its `for_each` is empty

    [exit status 3]
    "#);
    assert_snapshot!(sandbox.orch("why t"), @"
    [stderr]
    error: `t`: its `for_each` is empty, so there is no stack
    [exit status 64]
    ");
    assert_snapshot!(sandbox.orch("why 't[\"a\"]'"), @r#"
    [stderr]
    error: `t["a"]`: its `for_each` is empty, so there is no stack
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("trigger t"), @r#"
    [stderr]
    warning: `/t` in `after` matches no stack
     --> user/stack.tm:2:12
      |
    2 |   after = ["/t", "/t[\"a\"]"]
      |            ^^^^ its `for_each` is empty

    warning: `/t["a"]` in `after` matches no stack
     --> user/stack.tm:2:18
      |
    2 |   after = ["/t", "/t[\"a\"]"]
      |                  ^^^^^^^^^^^ its `for_each` is empty

    error: cannot trigger `t`: its `for_each` is empty, so there is no stack
    [exit status 64]
    "#);
    assert_snapshot!(sandbox.orch("-C t list --no-recursive"), @"
    [stderr]
    error: --no-recursive needs a stack, and `/t` is not one
    [exit status 64]
    ");
    sandbox.write("/t/stack.orch.hcl", "stack {\n  for_each = {}\n}\n");
    assert_eq!(sandbox.orch("-C t list").stdout, "");
}

#[test]
fn for_each_adds_the_key_to_the_id() {
    let sandbox = Sandbox::new("");
    let write = |for_each: &str, id: &str| {
        let text = format!("stack {{\n  for_each = {for_each}\n  id       = {id}\n}}\n");
        sandbox.write("/t/stack.orch.hcl", text);
    };
    write(r#"["a", "b", "c"]"#, r#""same""#);
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: duplicate id: the stacks `/t["a"]` and `/t["b"]` have the same id `same`
     --> t/stack.orch.hcl:3:14
      |
    3 |   id       = "same"
      |              ^^^^^^ the same for several instances of this block
      |
      = help: make `each.key` part of the id, as in `id = "same-${each.key}"`

    [exit status 3]
    "#);
    write(r#"["a", "b"]"#, r#""t-${each.key}""#);
    let list = sandbox.orch("list --format json").json();
    let ids: Vec<&str> = list["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stack| stack["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["t-a", "t-b"]);
    write(r#"["a", "A"]"#, r#""t-${each.key}""#);
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: duplicate id: the stacks `/t["A"]` and `/t["a"]` have the same id `t-a`
     --> t/stack.orch.hcl:3:14
      |
    3 |   id       = "t-${each.key}"
      |              ^^^^^^^^^^^^^^^ the same for several instances of this block
      |
      = note: ids are compared ignoring case
      = help: give one of the instances another key, or leave out the id

    [exit status 3]
    "#);
    // One instance is one stack.
    write(r#"["a"]"#, r#""same""#);
    assert_eq!(sandbox.orch("list").to_string(), "t[\"a\"]\n");
    sandbox.write("/u/stack.tm", "stack {\n  id = \"SAME\"\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: stacks `/t["a"]` and `/u` have the same id `SAME`
     --> u/stack.tm:2:8
      |
    2 |   id = "SAME"
      |        ^^^^^^ an id must be unique in the project
      |
     ::: t/stack.orch.hcl:3:14
      |
    3 |   id       = "same"
      |              ------ also used here
      |
      = note: ids are compared ignoring case
      = help: give one of the stacks another id

    [exit status 3]
    "#);
}

#[test]
fn for_each_defines_each_in_all_attributes_of_the_block() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each    = { a = { region = "eu", watch = "/a.txt" }, b = { region = "us", watch = "/b.txt" } }
  id          = "t-${each.key}"
  name        = "t in ${each.value.region}"
  description = tm_upper(each.key)
  tags        = [each.key, each.value.region]
  after       = ["/after/${each.key}"]
  before      = ["/before/${each.key}"]
  wants       = ["/wants/${each.key}"]
  wanted_by   = ["/wanted/${each.key}"]
  watch       = [each.value.watch]
}
//- /a.txt
//- /b.txt
"#,
    );
    for kind in ["after", "before", "wants", "wanted"] {
        for key in ["a", "b"] {
            sandbox.write(&format!("/{kind}/{key}/stack.tm"), "stack {}\n");
        }
    }
    let list = sandbox.orch("list --format json --match /t").json();
    let own = list["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["directory"] == "/t");
    let own: Vec<String> = own
        .map(|it| {
            let names = [
                "path",
                "id",
                "name",
                "description",
                "tags",
                "after",
                "before",
                "wants",
                "wanted_by",
                "watch",
            ];
            names.map(|name| it[name].to_string()).join(" ")
        })
        .collect();
    assert_snapshot!(own.join("\n"), @r#"
    "/t[\"a\"]" "t-a" "t in eu" "A" ["a","eu"] ["/after/a"] ["/before/a"] ["/wants/a"] ["/wanted/a"] ["/a.txt"]
    "/t[\"b\"]" "t-b" "t in us" "B" ["b","us"] ["/after/b"] ["/before/b"] ["/wants/b"] ["/wanted/b"] ["/b.txt"]
    "#);
}

#[test]
fn for_each_reports_a_mistake_in_the_block_once() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each = ["a", "b", "c"]
  name     = each.kye
  tags     = ["Bad"]
  nme      = 1
}
//- /plain/stack.tm
stack {
  name = each.key
}
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `each` is available only in a stack with `for_each`
     --> plain/stack.tm:2:10
      |
    2 |   name = each.key
      |          ^^^^ no instance here
      |
      = help: add `for_each` to the `stack` block, or write `tm_try(each.key, …)` for stacks without it

    error: no attribute `kye`
     --> t/stack.orch.hcl:3:19
      |
    3 |   name     = each.kye
      |                   ^^^ it has no such attribute
      |
      = help: did you mean `key`?

    error: `Bad` cannot be a tag
     --> t/stack.orch.hcl:4:15
      |
    4 |   tags     = ["Bad"]
      |               ^^^^^ a tag has only lower-case letters, digits, `-`, `_`, `.` and `/`

    error: unknown attribute `nme` in `stack`
     --> t/stack.orch.hcl:5:3
      |
    1 | stack {
      | ----- in this block
    ...
    5 |   nme      = 1
      |   ^^^ not an attribute of `stack`
      |
      = help: did you mean `name`?

    [exit status 3]
    "#);
}

#[test]
fn for_each_may_stand_in_either_of_two_blocks() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.tm.hcl
stack {
  name  = tm_try("t ${each.key}", "t")
  after = ["/base"]
}
//- /t/stack.orch.hcl
stack {
  for_each = ["a", "b"]
}
//- /base/stack.tm.hcl
stack {
}
"#,
    );
    assert_snapshot!(sandbox.orch("list --order"), @r#"
    base
    t["a"]
    t["b"]
    "#);
    let list = sandbox.orch("list --format json --match t").json();
    assert_eq!(list["stacks"][1]["name"], "t b");
    assert_eq!(list["stacks"][1]["after"][0], "/base");
    // Both at once.
    sandbox.write("/t/stack.tm.hcl", "stack {\n  for_each = [\"a\"]\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `for_each` is set in both `stack` blocks of this directory
     --> t/stack.orch.hcl:2:3
      |
    2 |   for_each = ["a", "b"]
      |   ^^^^^^^^ again here
      |
     ::: t/stack.tm.hcl:2:3
      |
    2 |   for_each = ["a"]
      |   -------- first here
      |
      = help: remove one of them

    [exit status 3]
    "#);
}

#[test]
fn for_each_leaves_a_run_block_to_the_directory() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each = ["a"]
  run {
    timeout = each.key
  }
}
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: unknown name `each`
     --> t/stack.orch.hcl:4:15
      |
    4 |     timeout = each.key
      |               ^^^^ this name is not defined here

    [exit status 3]
    ");
}

#[cfg(unix)]
#[test]
fn for_each_rejects_two_stacks_with_one_path() {
    let sandbox = Sandbox::new(
        r#"
//- /t/stack.orch.hcl
stack {
  for_each = ["a", "b"]
}
"#,
    );
    sandbox.write("/t[\"a\"]/stack.tm", "stack {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `/t["a"]` is an instance and a directory with stacks
     --> t/stack.orch.hcl:1:1
      |
    1 | stack {
      | ^^^^^ an instance of this block
      |
     ::: t["a"]/stack.tm:1:1
      |
    1 | stack {
      | ----- at or below the directory of that name
      |
      = help: rename the directory, or choose another key

    [exit status 3]
    "#);
}
