//! What expressions in `globals` evaluate to: the names they see, cycles, `map` blocks.

use insta::assert_snapshot;
use serde_json::json;

use super::{check, problem, project};

#[test]
fn expressions_see_what_the_stack_sees() {
    for (root, stack, child, expected) in [
        (
            "req = \"${global.env}-x\"",
            "env = \"prod\"",
            "",
            json!({"env": "prod", "req": "prod-x"}),
        ),
        (
            "a = tm_try(global.child, \"none\")",
            "child = \"c\"",
            "",
            json!({"a": "c", "child": "c"}),
        ),
        (
            "a = tm_try(global.child, \"none\")",
            "",
            "",
            json!({"a": "none"}),
        ),
        (
            "o = {x = 1} ;c = global.o ;cx = global.o.x",
            "globals \"o\" {\n x = 3\n y = 2\n}",
            "",
            json!({"c": {"x": 3, "y": 2}, "cx": 3, "o": {"x": 3, "y": 2}}),
        ),
        (
            "globals \"o\" {\n x = 1\n} ;globals {\n cx = tm_try(global.o.x, \"gone\")\n}",
            "o = {y = 2}",
            "",
            json!({"cx": "gone", "o": {"y": 2}}),
        ),
        (
            "",
            "globals \"a\" {\n x = 1\n y = global.a.x + 1\n}",
            "",
            json!({"a": {"x": 1, "y": 2}}),
        ),
        (
            "",
            "m = {st = {w = [1, 2]}} ;r = global.m[terramate.stack.name].w[1] ;s = global[\"m\"][\"st\"][\"w\"][0] ;k = \"m\" ;t = global[global.k].st.w",
            "",
            json!({"k": "m", "m": {"st": {"w": [1, 2]}}, "r": 2, "s": 1, "t": [1, 2]}),
        ),
        (
            "",
            "l = [{n = 1}, {n = 2}] ;a = global.l[*].n ;b = global.l.*.n ;c = [for k, v in global.l : k] ;d = global.l.0.n ;o = {\"1\" = 5} ;e = global.o[1]",
            "",
            json!({"l": [{"n": 1}, {"n": 2}], "a": [1, 2], "b": [1, 2], "c": [0, 1], "d": 1, "o": {"1": 5}, "e": 5}),
        ),
        (
            "",
            "f = tm_try(global.late, \"d\") ;late = global.late2 ;late2 = 5",
            "",
            json!({"f": 5, "late": 5, "late2": 5}),
        ),
        (
            "",
            "h = tm_try(global.broken, \"d\") ;broken = global.missing",
            "",
            json!({"broken": "BROKEN", "h": "d"}),
        ),
        (
            "",
            "a = tm_try(terramate.stack.id, \"none\") ;b = terramate.stack.tags ;c = tm_can(global.missing) ;d = true ? 1 : global.missing",
            "",
            json!({"a": "none", "b": ["t1"], "c": false, "d": 1}),
        ),
        (
            "a = {x = 1} ;all = global.a",
            "globals \"a\" \"n\" {\n deep = global.b\n} ;globals {\n b = 3\n}",
            "",
            json!({"a": {"n": {"deep": 3}, "x": 1}, "all": {"n": {"deep": 3}, "x": 1}, "b": 3}),
        ),
        (
            "",
            "globals {\n use = {}\n avail = {aws = 1, vault = 2, mysql = 3}\n req = {for k, v in global.avail : k => v if tm_try(global.use[k], false)}\n} ;globals \"use\" {\n aws = true\n} ;globals \"use\" {\n mysql = true\n}",
            "",
            json!({"avail": {"aws": 1, "mysql": 3, "vault": 2}, "req": {"aws": 1, "mysql": 3}, "use": {"aws": true, "mysql": true}}),
        ),
        (
            "envs = {dev = {size = 1}, st = {size = 5}} ;size = global.envs[terramate.stack.path.relative].size",
            "",
            "",
            json!({"envs": {"dev": {"size": 1}, "st": {"size": 5}}, "size": 5}),
        ),
        (
            "x = global.missing ;ok = 1",
            "x = 2",
            "",
            json!({"ok": 1, "x": 2}),
        ),
    ] {
        check(root, stack, child, expected);
    }
}

#[test]
fn what_cannot_be_evaluated_is_named() {
    assert_snapshot!(problem("", "r = global.missing"), @"no global `missing`");
    assert_snapshot!(problem("", "r = env.HOME"), @"`env` cannot be used in `globals`");
    assert_snapshot!(problem("", "o = {} ;r = global.o.nokey"), @"no attribute `nokey`");
    assert_snapshot!(problem("", "l = [] ;r = global.l[5]"), @"no such element");
    assert_snapshot!(problem("", "r = let.x"), @"`let` cannot be used in `globals`");
    assert_snapshot!(problem("", "r = bar"), @"unknown name `bar`");
    assert_snapshot!(problem("a = 1", "a = global.a + 1"), @"`global.a` depends on itself");
    assert_snapshot!(problem("", "a = { x = 1, y = global.a.x }"), @"`global.a` depends on itself");
    assert_snapshot!(problem("", "globals \"a\" {\n y = global.a\n}"), @"`global.a.y` depends on itself");
    assert_snapshot!(problem("", "a = tm_try(global.a, \"d\")"), @"`global.a` depends on itself");
    assert_snapshot!(problem("", "a = global.b ;b = global.c ;c = global.a"), @"globals depend on each other: `global.a`, then `global.b`, then `global.c`");
}

#[test]
fn a_cycle_is_shown_with_each_place() {
    let sandbox = project(&[
        ("/g.tm", "globals {\n  a = global.b\n}\n"),
        (
            "/st/g.tm",
            "globals {\n  b = \"x-${global.c}\"\n  c = global.a\n}\n",
        ),
    ]);
    assert_snapshot!(sandbox.orch_in("/st", "eval global.a"), @r#"
    [stderr]
    error: globals depend on each other: `global.a`, then `global.b`, then `global.c`
     --> g.tm:2:14
      |
    2 |   a = global.b
      |              ^ `global.b` is used here
      |
     ::: st/g.tm:2:19
      |
    2 |   b = "x-${global.c}"
      |                   - `global.c` is used here
    3 |   c = global.a
      |              - and here `global.a` again

    [exit status 3]
    "#);
}

#[test]
fn what_is_missing_below_an_unset_global_is_shown_with_what_removes_it() {
    let sandbox = project(&[
        (
            "/g.tm",
            "globals {\n  x = { y = 1 }\n  o = { p = { q = 1 } }\n}\nglobals \"gone\" {\n  e = 1\n}\n",
        ),
        (
            "/st/g.tm",
            "globals {\n  x = unset\n}\nglobals \"o\" {\n  p = unset\n}\nglobals \"gone\" {\n  e = unset\n}\n",
        ),
        (
            "/st/c/g.tm",
            "globals \"x\" \"z\" {\n  a = 1\n}\nglobals {\n  o = { r = 1 }\n}\n",
        ),
    ]);
    assert_snapshot!(sandbox.orch_in("/st", "eval global.x.y"), @"
    [stderr]
    error: no attribute `y`
     --> expression 1:1:10
      |
    1 | global.x.y
      |          ^ it has no such attribute
      |
     ::: st/g.tm:2:3
      |
    2 |   x = unset
      |   - `global.x` is removed here

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch_in("/st", "eval global.o.p.q"), @"
    [stderr]
    error: no attribute `q`
     --> expression 1:1:12
      |
    1 | global.o.p.q
      |            ^ it has no such attribute
      |
     ::: st/g.tm:5:3
      |
    5 |   p = unset
      |   - `global.o.p` is removed here

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch_in("/st", "eval global.gone"), @"
    [stderr]
    error: `global.gone` is unset
     --> expression 1:1:8
      |
    1 | global.gone
      |        ^^^^ has no value for this stack
      |
     ::: st/g.tm:8:3
      |
    8 |   e = unset
      |   - removed here

    [exit status 3]
    ");
    assert_snapshot!(sandbox.orch_in("/st/c", "eval global.x.z.y"), @"
    [stderr]
    error: no attribute `y`
     --> expression 1:1:12
      |
    1 | global.x.z.y
      |            ^ it has no such attribute
      |
     ::: st/g.tm:2:3
      |
    2 |   x = unset
      |   - `global.x` is removed here
      |
      = help: did you mean `a`?

    [exit status 3]
    ");
    // Here, another definition has replaced what was removed.
    assert_snapshot!(sandbox.orch_in("/st/c", "eval global.o.p.q"), @"
    [stderr]
    error: no attribute `p`
     --> expression 1:1:10
      |
    1 | global.o.p.q
      |          ^ it has no such attribute
      |
      = help: did you mean `r`?

    [exit status 3]
    ");
}

#[test]
fn maps_are_computed_from_collections() {
    let map = |attributes: &str| {
        format!(
            "globals {{\n map \"m\" {{\n  {}\n }}\n}}\n",
            attributes.replace(" ;", "\n  ")
        )
    };
    for (attributes, expected) in [
        (
            "for_each = [\"a\", \"b\", \"a\"] ;key = element.new ;value = tm_try(element.old, 0) + 1",
            json!({"a": 2, "b": 1}),
        ),
        (
            "for_each = {k1 = \"v1\", k2 = \"v2\"} ;iterator = it ;key = it.new ;value {\n x = it.new\n}",
            json!({"v1": {"x": "v1"}, "v2": {"x": "v2"}}),
        ),
        (
            "for_each = [\"q\"] ;key = element.new ;value = element",
            json!({"q": {"new": "q"}}),
        ),
        ("for_each = [] ;key = element.new ;value = 1", json!({})),
        (
            "for_each = [1, 2, 3] ;key = \"same\" ;value = element.new",
            json!({"same": 3}),
        ),
        (
            "for_each = [\"a\"] ;key = element.new ;value {\n k = 1\n map \"inner\" {\n for_each = [\"x\"]\n iterator = i\n key = \"${element.new}${i.new}\"\n value = 1\n}\n}",
            json!({"a": {"inner": {"ax": 1}, "k": 1}}),
        ),
        (
            "for_each = [terramate.stack.name] ;key = element.new ;value = 1",
            json!({"st": 1}),
        ),
    ] {
        check("", &map(attributes), "", json!({"m": expected}));
        check(&map(attributes), "", "", json!({"m": expected}));
    }
    check(
        &map("for_each = [\"a\", \"b\"] ;key = element.new ;value = 1"),
        "globals \"m\" {\n a = 2\n c = 3\n}",
        "",
        json!({"m": {"a": 2, "b": 1, "c": 3}}),
    );
    check(
        &map("for_each = [\"a\"] ;key = element.new ;value = 1"),
        "m = unset",
        "",
        json!({}),
    );
    for (attributes, said) in [
        ("for_each = \"abc\" ;key = 1 ;value = 1", "for_each"),
        ("for_each = null ;key = 1 ;value = 1", "for_each"),
        ("for_each = [1] ;key = element.new ;value = 1", "key"),
        (
            "for_each = [\"a\"] ;key = element.new ;value = element.old",
            "old",
        ),
        (
            "for_each = [\"a\"] ;key = element.new ;value = global.m",
            "itself",
        ),
        ("for_each = [1] ;key = \"a\"", "value"),
        ("for_each = [1] ;value = \"a\"", "key"),
        (
            "for_each = [1] ;iterator = \"it\" ;key = \"a\" ;value = 1",
            "iterator",
        ),
    ] {
        let told = problem("", &map(attributes));
        assert!(told.contains(said), "{attributes}: {told}");
    }
}
