//! What policies answer where the interpreter alone would answer something else than the language says.

use insta::assert_snapshot;

use super::loaded::answer;

/// What `trigger` is for this value of it.
fn value(expression: &str) -> String {
    let text = format!("package p\ntrigger contains sprintf(\"%v\", [x]) if x := {expression}\n");
    let answered = answer(&text);
    if answered == "nothing follows\n" {
        return String::new();
    }
    answered
        .trim_end()
        .trim_start_matches("trigger: ")
        .to_owned()
}

#[test]
fn rego_heads_without_a_value_keep_nothing_of_earlier_results() {
    let owners = r#"
package p
stacks := [{"id": "a", "owner": "x"}, {"id": "b"}, {"id": "c", "owner": "z"}]
trigger contains s.owner if some s in stacks
flag[s.id] := owned(s) if some s in stacks
reset_flag[s.id] if { some s in stacks; s.owner != "x" }
owned(s) if s.owner
sample := s.owner == "z" if { some s in stacks; s.id != "a" }
"#;
    assert_snapshot!(answer(owners), @"
    trigger: x
    trigger: z
    flag: a
    flag: c
    reset_flag: c
    sample: true
    ");
}

#[test]
fn rego_v0_omits_heads_without_a_value() {
    let owners = r#"
package p
stacks = [{"id": "a", "owner": "x"}, {"id": "b"}, {"id": "c", "owner": "z"}]
trigger[ stacks[_].owner ]
flag[s["owner"]] {
  s := stacks[_] # all of them }
  # and no more
}
reset_flag[s.owner] = true { s := stacks[_]; s.id != "" }
first = s.owner { s := stacks[i]; i == 1 } else = s.owner { s := stacks[2] }
sample { first == "z" }
"#;
    assert_snapshot!(answer(owners), @"
    trigger: x
    trigger: z
    flag: x
    flag: z
    reset_flag: x
    reset_flag: z
    sample: true
    ");
}

#[test]
fn rego_heads_of_all_shapes_keep_their_meaning() {
    let text = r#"
package p
s := {"id": "a", "no": 1, "list": ["x"]}
trigger contains concat("-", [
  s.id, # its name
  "b"]) if # always
  s.id != "x" # and here "
trigger contains {"k": s.id}.k if ["a"] == ["a"]
trigger contains s["list"][_] if not input.nothing
trigger contains (sprintf("%d", [s.no + 1])) if true with input.run as 1
by[s.id].sub contains s.no if s
trigger contains sprintf("by-%s", [k]) if some k, _ in by
"#;
    assert_snapshot!(answer(text), @"
    trigger: 2
    trigger: a
    trigger: a-b
    trigger: by-a
    trigger: x
    ");
}

#[test]
fn rego_positions_and_prints_refer_to_the_written_file() {
    let text = r#"package p
trigger contains s.id if { some s in [input.stack]; print("first") }
trigger contains concat("", [
  input.stack.id,
  "b",
]) if input.stack
trigger contains input.stack.id if {
  print("second")
  x == 2
}
x := 1 if input.stack.id
x := 2 if input.stack.id
"#;
    assert_snapshot!(answer(text), @"
    error: the policy failed
      caused by: p.rego:12:1: rule conflicts with rule at p.rego:11:1
    ");
    let text = text.replace("x := 1 if input.stack.id\n", "\n");
    assert_snapshot!(answer(&text), @"
    print: p.rego:2: first
    print: p.rego:8: second
    trigger: net
    trigger: netb
    ");
}

#[test]
fn rego_v0_has_its_own_functions() {
    let old = r#"
package p
trigger["any"] { any([false, true]) }
trigger["all"] { all([true, true]); not all([true, false]); all([]); not any([]) }
trigger["match"] { re_match("^n.t$", input.stack.id) }
trigger[x] { x := cast_string("text") }
trigger[x] { x := cast_array({"array"})[_] }
trigger[x] { cast_set(["set"])[x] }
trigger[x] { set_diff({"a", "diff"}, {"a"})[x] }
trigger["undefined"] { not cast_string(1); not cast_null(1); not cast_object(1); not cast_boolean(1) }
"#;
    assert_snapshot!(answer(old), @"
    trigger: all
    trigger: any
    trigger: array
    trigger: diff
    trigger: match
    trigger: set
    trigger: text
    trigger: undefined
    ");
    let new = answer("package p\ntrigger contains \"a\" if any([true])\n");
    assert!(
        new.contains("p.rego:2:25: `any` is a function only in Rego v0"),
        "{new}"
    );
}

#[test]
fn rego_sprintf_formats_like_go() {
    let cases = [
        (
            r#""%s|%v|%d|%%|%q", ["a", "b", 3, "c\"d"]"#,
            r#"a|b|3|%|"c\"d""#,
        ),
        (
            r#""%5d|%-5d|%05d|%+d|% d", [1, 2, -3, 4, 5]"#,
            "    1|2    |-0003|+4| 5",
        ),
        (
            r#""%5s|%-5s|%.2s|%05s", ["é", "b", "cde", "z"]"#,
            "    é|b    |cd|0000z",
        ),
        (
            r#""%x %X %#x %o %b %c %U %O", [255, 255, 255, 8, 5, 65, 233, 8]"#,
            "ff FF 0xff 10 101 A U+00E9 0o10",
        ),
        (
            r#""%x|%X|% x|%#x", ["hé", "hi", "hi", "hi"]"#,
            "68c3a9|6869|68 69|0x6869",
        ),
        (
            r#""%.2f|%8.3f|%e|%g|%v|%G", [1.005, 3.14159, 12345.678, 1.5e21, 0.25, 1.5e-7]"#,
            "1.00|   3.142|1.234568e+04|1.5e+21|0.25|1.5E-07",
        ),
        (
            r#""%v %v %v", [null, [1, "a", {"b": {true}}], set()]"#,
            r#"null [1, "a", {"b": {true}}] set()"#,
        ),
        (r#""%[2]d %[1]d", [1, 2]"#, "2 1"),
        (
            r#""%*d|%-*d|%.*f", [5, 1, 5, 2, 1, 2.25]"#,
            "    1|2    |2.2",
        ),
        (r#""%d %s", ["x", 1]"#, "%!d(string=x) %!s(int64=1)"),
        (r#""%s %s", ["a"]"#, "a %!s(MISSING)"),
        (r#""%d", [1, "b"]"#, "1%!(EXTRA string=b)"),
        (
            r#""%[5]d %z %", [1]"#,
            "%!d(BADINDEX) %!z(int64=1) %!(NOVERB)",
        ),
        (
            r#""%t|%T|%T", [true, 1, "a"]"#,
            "%!t(string=true)|int64|string",
        ),
        (r#""%v", ["a\u0000\n"]"#, "a\u{0}\n"),
        (r#""%v", [["a\u0000\u0007\n\t\\"]]"#, r#"["a\x00\a\n\t\\"]"#),
        (
            r#""%100000000d|%s", [1, 2]"#,
            "%!(NOVERB)%!(EXTRA int64=1, int64=2)",
        ),
        (r#""%d", [input.nothing]"#, ""),
    ];
    for (arguments, expected) in cases {
        let rule = format!(
            "package p\ntrigger contains \"ok\" if sprintf({arguments}) == {}\n",
            serde_json::Value::from(expected)
        );
        let answered = answer(&rule);
        let is_undefined = expected.is_empty();
        let shown = value(&format!("sprintf({arguments})"));
        assert_eq!(
            answered == "nothing follows\n",
            is_undefined,
            "{arguments}: {shown}"
        );
    }
}

#[test]
fn rego_ranges_have_steps_of_at_least_one() {
    assert_eq!(value("numbers.range_step(1, 10, 4)"), "[1, 5, 9]");
    assert_eq!(value("numbers.range_step(3, 0, 2)"), "[3, 1]");
    assert_eq!(value("numbers.range_step(1, 10, 0)"), "");
    assert_eq!(value("numbers.range_step(1, 10, -1)"), "");
    assert_eq!(value("numbers.range_step(1, 10, 1.5)"), "");
}

#[test]
fn rego_variables_may_be_bound_anywhere_in_a_rule() {
    let text = r#"
package p
trigger[x] { a = 1; b = a + 1; x = sprintf("%d", [b]) }
trigger[input.stacks[i].id] { i > 0 }
trigger[x] { split("c,d", ",", [x, _]) }
trigger[x] { walk({"k": "e"}, [["k"], x]) }
trigger[x] { f(1, x) }
trigger[k] { {"i": 1}[k] }
trigger[x] { n := count([1]) with count as length; x := sprintf("j%d", [n]) }
trigger[x] { y := [z | z = "k"]; x := y[_] }
f(_) = "g"
length(_) = 3
"#;
    assert_snapshot!(answer(text), @"
    trigger: 2
    trigger: app
    trigger: c
    trigger: e
    trigger: g
    trigger: i
    trigger: j3
    trigger: k
    ");
}

/// What OPA answers too.
#[test]
fn rego_negation_of_undefined_input_is_undefined() {
    let policy = r#"
package p
import rego.v1
stacks := object.get(input, "none", [
  {"id": "a", "owner": "ci-1", "labels": [{"name": "x"}]},
  {"id": "b", "labels": [{"other": "x"}]},
  {"id": "c", "owner": "ada", "labels": []},
])
one := {"a": 1}
few contains "x"
none := input.none
flag contains "a function" if not startswith(input.missing, "x")
flag contains "an operator" if not input.missing < 1
flag contains "a sum" if not input.missing + 1 == 2
flag contains "members" if not "x" in input.missing
flag contains "a member" if not input.missing in {"x"}
flag contains "an index" if not one[input.missing]
flag contains "an index of an index" if not one[lower(input.missing)]
flag contains "a list" if not [input.missing] == [1]
flag contains "an object" if not {"a": input.missing} == {"a": 1}
flag contains "a rule" if not startswith(none, "x")
flag contains "equal" if not input.missing == 1
flag contains "equal from the right" if not 1 == input.missing
flag contains "itself" if not input.missing
flag contains "a text" if not contains("abc", "x;y}{")
flag contains "a set" if not "y" in few
flag contains "with" if not input.missing < 1 with input as {"missing": 5}
flag contains "else" if other == 2
other := 1 if { not input.missing > 1 } else := 2
trigger contains concat(" ", [s.id, "1"]) if { some s in stacks; not startswith(s.owner, "ci") }
trigger contains concat(" ", [s.id, "2"]) if { some s in stacks
  not s.owner in {"ada"} # nobody }
}
trigger contains concat(" ", [s.id, "3"]) if { some s in stacks; not of_ada(s) }
trigger contains concat(" ", [s.id, "4"]) if {
  some s in stacks
  every label in s.labels { not startswith(label.name, "y") }
}
trigger contains concat(" ", ids) if ids := [s.id | some s in stacks; not lower(s.owner) == "ada"]
of_ada(s) if { not s.owner == "ada"; not lower(s.owner) == "eve" }
"#;
    assert_snapshot!(answer(policy), @"
    trigger: a
    trigger: a 2
    trigger: a 4
    trigger: b 3
    trigger: c 1
    trigger: c 3
    trigger: c 4
    flag: a set
    flag: a text
    flag: else
    flag: equal
    flag: equal from the right
    flag: itself
    flag: with
    ");
}

#[test]
fn rego_negation_works_wherever_a_query_may_stand() {
    let policy = r#"
package p
import rego.v1
flag contains sprintf("a list %v", [[1 | not startswith(input.missing, "x")]])
flag contains sprintf("a set %v", [{1 | not startswith("abc", "x")}])
flag contains sprintf("an object %v", [{"k": 1 | not startswith("abc", "x")}])
flag contains "a negation" if not count([1 | not startswith("abc", "x")]) == 5
flag contains "a body without braces" if [1 | not startswith("abc", "x")][0]
flag contains "every" if { every x in [1] { not startswith("abc", "x"); x == 1 } }
flag contains "a comment" if not startswith(lower("ABC"), "x") # }
flag contains "another line" if
  not startswith(lower("ABC"), "x")
flag contains "several lines" if { not
  startswith(lower("ABC"),
    "x") }
flag contains sprintf("else %v", [other])
other := 1 if not startswith(lower("ABC"), "a")
else := 2 if not startswith(lower("ABC"), "x")
"#;
    assert_snapshot!(answer(policy), @r#"
    flag: a body without braces
    flag: a comment
    flag: a list []
    flag: a negation
    flag: a set {1}
    flag: an object {"k": 1}
    flag: another line
    flag: else 2
    flag: every
    flag: several lines
    "#);
}

#[test]
fn rego_v0_negation_is_undefined_likewise() {
    let policy = r#"
package p
stacks = object.get(input, "none", [{"id": "a", "owner": "ci-1"}, {"id": "b"}, {"id": "c", "owner": "ada"}])
trigger[s.id] { s := stacks[_]; not startswith(s.owner, "ci") }
flag["unowned"] { not stacks[1].owner > 1
  stacks }
"#;
    assert_snapshot!(answer(policy), @"trigger: c");
    let wrong = r#"
package p
two(x) = y { y := [x, 2][_] }
flag["x"] { x := ["a"][_]; not startswith(x, concat("", ["b"])); two(x) == 0 }
"#;
    assert_snapshot!(answer(wrong), @"
    error: the policy failed
      caused by: p.rego:4:69: the function has more than one value for the same arguments
    ");
}

/// What OPA answers too.
#[test]
fn rego_variables_may_shadow_others() {
    let policy = r#"
package p
import rego.v1
stacks := [{"id": "a"}, {"id": "b"}]
stack := "a rule"
flag contains "an index" if { some i; stacks[i].id == "b"; count([x | some i; x := stacks[i]]) == 2 }
flag contains "a later index" if { stacks[i].id == "b"; count([x | some i; x := stacks[i]]) == 2; i == 1 }
flag contains "every" if { some i; stacks[i].id == "b"; every x in [0] { some i; stacks[i].id == "a"; x == 0 } }
flag contains "its own variable" if { i := 5; every i, x in ["q"] { i == 0; x == "q"; [1 | some i in [7]] == [1] } }
flag contains "a member" if { some s in stacks; {s.id | some s in stacks} == {"a", "b"}; s.id == "b" }
flag contains "a pair" if { some k, v in ["q"]; [[v, k] | some k, v in ["r"]] == [["r", 0]]; [k, v] == [0, "q"] }
flag contains "a list" if { some a, b in ["q"]; [[b, a] | some [a, b] in [["r", "s"]]] == [["s", "r"]]; b == "q" }
flag contains "two levels" if { s := 1; [[s, t] | s := 2; t := [s | some s in [3]]] == [[2, [3]]]; s == 1 }
flag contains "a value" if { v := "q"; {v: v | some v in ["r"]} == {"r": "r"}; [v | v] == ["q"] }
flag contains "a rule" if { some stack in stacks; stack.id == "a" }
flag contains "a rule for an index" if { some stack; stacks[stack].id == "b" }
flag contains stack.id if some stack in stacks
flag contains "an import" if { some v1 in ["a"]; v1 == "a" }
flag contains "with" if { some s in ["q"]; s in input with input as {s | some s in ["q", "r"]} }
flag contains "given a value" if { every x in ["a", "b"] { x = "a" } }
flag contains "given another one" if { every x in ["a", "b"] { "a" = x } }
flag contains "given its value" if { every k, v in ["a", "b"] { ["a", "b"][k] = v } }
flag contains "an alias" if { s := stacks[i]; j := i; stacks[j] == s; [l] := [j]; stacks[l].id == "b" }
flag contains "an argument" if argument("q") == {"r"}
flag contains "else" if other == "c"
argument(x) := {x | some x in ["r"]; x != "q"}
other := stack if { some stack in ["b"]; stack == "x" } else := stack if { some stack in ["c"] }
reset_flag[stack.id] := true if some stack in stacks
trigger contains sprintf("%d %d", [i, j]) if {
  some i
  stacks[i].id != "x"
  some j, _ in stacks
  some k; stacks[k].id == "b"
}
"#;
    assert_snapshot!(answer(policy), @"
    trigger: 0 0
    trigger: 0 1
    trigger: 1 0
    trigger: 1 1
    flag: a
    flag: a later index
    flag: a list
    flag: a member
    flag: a pair
    flag: a rule
    flag: a rule for an index
    flag: a value
    flag: an alias
    flag: an argument
    flag: an import
    flag: an index
    flag: b
    flag: else
    flag: every
    flag: given its value
    flag: its own variable
    flag: two levels
    flag: with
    reset_flag: a
    reset_flag: b
    ");
}

/// Bodies that follow each other share the head of their rule.
#[test]
fn rego_v0_variables_may_shadow_rules() {
    let policy = r#"
package p
ids = ["a", "b"]
name = "b"
trigger[x] { some name; x := ids[name] }
known(x) { some name; ids[name] == x } { x == name; false }
flag["a body"] { known("a") }
flag[name] { name == "b" }
reset_flag[x] { some i; ids[i] == "b"; x := ids[j]; some k; ids[k] != x; count([i | some i; ids[i]]) == 2 }
"#;
    assert_snapshot!(answer(policy), @"
    trigger: a
    trigger: b
    flag: a body
    flag: b
    reset_flag: a
    reset_flag: b
    ");
}

#[test]
fn rego_problems_with_a_shadowing_variable_name_it_and_its_position() {
    let failed = r#"
package p
import rego.v1
two(x) := y if { some y in [x, 2] }
flag contains "x" if { some s in ["b"]; some t in [s | some s in ["a"]]; _ := [s | some s in [t]; two(s) == 0] }
"#;
    assert_snapshot!(answer(failed), @"
    error: the policy failed
      caused by: p.rego:5:102: the function has more than one value for the same arguments
    ");
    let twice = r#"
package p
import rego.v1
flag contains "x" if { some s in ["b"]; _ := [s | t := 1; s != "c"; t := 2] }
"#;
    assert_snapshot!(answer(twice), @r#"
    error: the policy `p` cannot be loaded
     --> p.orch.hcl:1:31
      |
    1 | policy "trigger" "p" { file = "p.rego" }
      |                               ^^^^^^^^ this file
      |
      = note: p.rego:4:51: var `t` used before definition below
    "#);
}

/// What OPA answers too.
#[test]
fn rego_functions_return_the_results_of_opa() {
    let policy = r#"
package p
import rego.v1
flag contains sprintf("%v %v", [path, value]) if [path, value] := walk({"a": [1]})
flag contains sprintf("%v", [[value | [_, value] = walk("b")]]) if true
flag contains "nothing is in it" if object.subset(["a"], [])
flag contains "in a row" if object.subset([1, 2, 3], [2, 3])
flag contains "deep" if object.subset({"a": {"b": {1, 2}}}, {"a": {"b": {1}}})
flag contains "not in a row" if object.subset([1, 2, 3], [1, 3])
flag contains "an empty text" if indexof("a", "") > -2
flag contains sprintf("%d %d", [indexof("éa", "a"), indexof("a", "b")])
flag contains urlquery.decode("a+%C3%A9=")
flag contains urlquery.decode("%4")
"#;
    assert_snapshot!(answer(policy), @r#"
    flag: 1 -1
    flag: ["a", 0] 1
    flag: ["a"] [1]
    flag: ["b"]
    flag: [] {"a": [1]}
    flag: a é=
    flag: deep
    flag: in a row
    flag: nothing is in it
    "#);
}
