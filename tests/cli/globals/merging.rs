//! How definitions combine: labels, files of one directory, nested directories, imports.

use insta::assert_snapshot;
use serde_json::json;

use super::{check, problem, project, seen};

#[test]
fn values_have_the_types_of_hcl() {
    check(
        "",
        "str = \"s\" ;number = 777 ;bool = true ;nul = null ;big = 12345678901234567890",
        "",
        json!({"str": "s", "number": 777, "bool": true, "nul": null, "big": 12_345_678_901_234_567_890_u64}),
    );
    check(
        "",
        "l = [1, \"x\"] ;o = { \"a b\" = 1, n = { x = [] } } ;t = <<-E\n    a\n    E\n",
        "",
        json!({"l": [1, "x"], "o": {"a b": 1, "n": {"x": []}}, "t": "a\n"}),
    );
}

#[test]
fn labels_lead_into_objects() {
    for (text, expected) in [
        (
            "globals \"l\" \"m\" {\n v = 1\n}",
            json!({"l": {"m": {"v": 1}}}),
        ),
        ("globals \"e\" \"f\" {}", json!({"e": {"f": {}}})),
        ("globals {}", json!({})),
        ("globals a {\n x = 1\n}", json!({"a": {"x": 1}})),
        (
            "globals \"a\" \"b c/d.e\" {\n b = 1\n}",
            json!({"a": {"b c/d.e": {"b": 1}}}),
        ),
        (
            "globals \"a\" \"\" {\n b = 1\n}",
            json!({"a": {"": {"b": 1}}}),
        ),
        (
            "globals \"a\" \"1\" {\n x = 1\n} ;globals {\n r = global.a[\"1\"].x\n}",
            json!({"a": {"1": {"x": 1}}, "r": 1}),
        ),
        (
            "globals \"a\" \"b\" \"c\" \"d\" {\n n = 1\n}",
            json!({"a": {"b": {"c": {"d": {"n": 1}}}}}),
        ),
        (
            "globals {\n my-attr = 1\n r = global.my-attr\n}",
            json!({"my-attr": 1, "r": 1}),
        ),
    ] {
        check("", text, "", expected);
    }
}

#[test]
fn definitions_of_one_directory_are_merged() {
    for (text, expected) in [
        (
            "globals {\n a = {x = 1}\n} ;globals \"a\" {\n y = 2\n}",
            json!({"a": {"x": 1, "y": 2}}),
        ),
        (
            "globals \"a\" {\n y = 2\n} ;globals {\n a = {x = 1}\n}",
            json!({"a": {"x": 1, "y": 2}}),
        ),
        (
            "globals {\n a = {x = {p = 1}}\n} ;globals \"a\" \"x\" {\n q = 1\n}",
            json!({"a": {"x": {"p": 1, "q": 1}}}),
        ),
        (
            "globals {\n a = {x = 1}\n} ;globals \"a\" {}",
            json!({"a": {"x": 1}}),
        ),
        (
            "globals {\n a = unset\n} ;globals \"a\" {\n x = 1\n}",
            json!({"a": {"x": 1}}),
        ),
        (
            "globals {\n a = {x = 1, y = 2}\n} ;globals \"a\" {\n x = unset\n}",
            json!({"a": {"y": 2}}),
        ),
        (
            "globals {\n a = {a = \"x\"}\n} ;globals \"a\" {\n a = unset\n}",
            json!({"a": {}}),
        ),
        (
            "globals \"a\" {\n x = 1\n} ;globals \"a\" {\n y = 2\n}",
            json!({"a": {"x": 1, "y": 2}}),
        ),
        (
            "globals \"obj\" {} ;globals \"obj\" {\n iam = [1]\n} ;globals \"obj\" {}",
            json!({"obj": {"iam": [1]}}),
        ),
        (
            "globals \"obj\" {\n number = 1\n} ;globals {\n obj = {}\n}",
            json!({"obj": {"number": 1}}),
        ),
    ] {
        check("", text, "", expected);
    }
    assert_snapshot!(problem("", "globals {\n a = {x = 1}\n} ;globals \"a\" {\n x = 2\n}"), @"`global.a.x` is set twice in this directory");
    assert_snapshot!(problem("", "globals {\n a = {n = {x = 1}}\n} ;globals \"a\" \"n\" {\n x = 2\n}"), @"`global.a.n.x` is set twice in this directory");
    assert_snapshot!(problem("", "globals {\n a = 1\n} ;globals \"a\" {\n x = 2\n}"), @"`global.a` is not an object, so nothing can be added to it");
    assert_snapshot!(problem("", "globals {\n a = [1]\n} ;globals \"a\" {\n x = 2\n}"), @"`global.a` is not an object, so nothing can be added to it");
    assert_snapshot!(problem("", "globals {\n a = null\n} ;globals \"a\" {\n x = 2\n}"), @"`global.a` is not an object, so nothing can be added to it");
    assert_snapshot!(problem("", "globals \"a\" {\n b = 2\n} ;globals \"a\" \"b\" {\n c = 1\n}"), @"`global.a.b` is not an object, so nothing can be added to it");
    assert_snapshot!(problem("", "globals \"1a\" {\n x = 1\n}"), @"`1a` cannot be the name of a global");
    assert_snapshot!(problem("", "globals {\n x \"y\" {}\n}"), @"unknown block `x` in `globals`");
}

/// Each directory changes what it inherits, and nothing else: unlike in Terramate, an override takes
/// effect in its own directory, not in that of the definition that it overrides.
#[test]
fn a_directory_extends_and_overrides_what_it_inherits() {
    for (root, stack, child, expected) in [
        (
            "a = {x = 0, y = 1, n = {k = 1}}",
            "globals \"a\" {\n x = 9\n z = global.a.y\n} ;globals \"a\" \"n\" {\n k2 = 2\n}",
            "",
            json!({"a": {"n": {"k": 1, "k2": 2}, "x": 9, "y": 1, "z": 1}}),
        ),
        (
            "globals \"a\" {\n x = 1\n y = 2\n}",
            "a = {new = 1}",
            "",
            json!({"a": {"new": 1}}),
        ),
        (
            "globals \"a\" {\n x = 1\n y = 2\n}",
            "a = {new = 1}",
            "globals \"a\" {\n y = 3\n z = 3\n}",
            json!({"a": {"new": 1, "y": 3, "z": 3}}),
        ),
        (
            "globals \"a\" {\n x = 1\n y = 2\n}",
            "globals \"a\" {\n y = 3\n}",
            "",
            json!({"a": {"x": 1, "y": 3}}),
        ),
        (
            "o = {n = {k = 1}, s = \"x\"}",
            "globals \"o\" {\n n = {z = 1}\n}",
            "",
            json!({"o": {"n": {"z": 1}, "s": "x"}}),
        ),
        (
            "o = {n = {k = 1}}",
            "globals \"o\" \"n\" \"deep\" \"er\" {\n v = 1\n}",
            "",
            json!({"o": {"n": {"deep": {"er": {"v": 1}}, "k": 1}}}),
        ),
        ("s = \"str\"", "globals \"s\" {}", "", json!({"s": {}})),
        (
            "o = {s = \"x\"}",
            "globals \"o\" \"s\" {}",
            "",
            json!({"o": {"s": {}}}),
        ),
        ("l = {m = 1}", "l = 5", "", json!({"l": 5})),
        ("a = 1", "a = {x = 1}", "", json!({"a": {"x": 1}})),
        (
            "o = {x = 1, y = 1}",
            "globals \"o\" {\n x = 2\n}",
            "o = {z = 3}",
            json!({"o": {"z": 3}}),
        ),
        (
            "a = {}",
            "globals \"a\" {\n x = 2\n}",
            "a = unset",
            json!({}),
        ),
        (
            "globals \"o\" {\n x = 1\n s = 1\n}",
            "o = {y = 2}",
            "globals \"o\" {\n x = 3\n z = 3\n}",
            json!({"o": {"x": 3, "y": 2, "z": 3}}),
        ),
        (
            "globals \"a\" {\n x = global.z\n y = 2\n} ;globals {\n z = 1\n}",
            "a = unset",
            "",
            json!({"z": 1}),
        ),
        (
            "globals \"a\" {\n x = global.z\n y = 2\n} ;globals {\n z = 1\n}",
            "a = {new = 1}",
            "",
            json!({"a": {"new": 1}, "z": 1}),
        ),
    ] {
        check(root, stack, child, expected);
    }
    assert_snapshot!(problem("s = \"str\"", "globals \"s\" {\n x = 1\n}"), @"`global.s` is not an object, so nothing can be added to it");
}

#[test]
fn unset_removes_what_is_inherited() {
    for (root, stack, child, expected) in [
        ("a = 1 ;b = 2", "a = unset", "", json!({"b": 2})),
        ("a = 1", "a = unset", "a = 77", json!({"a": 77})),
        ("a = 1", "a = unset", "b = 1", json!({"b": 1})),
        (
            "globals \"d\" \"e\" {\n f = 1\n g = 2\n}",
            "globals \"d\" \"e\" {\n f = unset\n}",
            "",
            json!({"d": {"e": {"g": 2}}}),
        ),
        (
            "globals \"d\" \"e\" {\n f = 1\n}",
            "globals \"d\" {\n e = unset\n}",
            "",
            json!({"d": {}}),
        ),
        (
            "b = {x = 1, y = 2}",
            "globals \"b\" {\n x = unset\n}",
            "",
            json!({"b": {"y": 2}}),
        ),
        (
            "",
            "globals \"no\" \"such\" {\n thing = unset\n}",
            "",
            json!({}),
        ),
        (
            "a = 1",
            "globals \"a\" {\n x = unset\n}",
            "",
            json!({"a": 1}),
        ),
        ("", "a = unset", "", json!({})),
        (
            "d = {old = 1}",
            "globals {\n d = unset\n} ;globals \"d\" {\n new = 1\n}",
            "",
            json!({"d": {"new": 1}}),
        ),
        (
            "a = 1 ;b = 2 ;c = 3",
            "d = 4 ;b = unset",
            "c = unset ;d = unset",
            json!({"a": 1}),
        ),
        (
            "a = 1",
            "a = unset ;r = tm_try(global.a, \"fallback\")",
            "",
            json!({"r": "fallback"}),
        ),
    ] {
        check(root, stack, child, expected);
    }
    for wrong in [
        "a = unset ;r = global.a",
        "r = [unset]",
        "r = {x = unset}",
        "r = \"${unset}\"",
        "r = unset + 1",
    ] {
        let said = problem("", wrong);
        assert!(said.contains("unset"), "{wrong}: {said}");
    }
}

#[test]
fn an_object_disappears_with_its_last_entry_unless_something_else_makes_it_an_object() {
    for (root, stack, child, expected) in [
        (
            "globals \"d\" {\n e = 1\n f = 2\n}",
            "globals \"d\" {\n e = unset\n f = unset\n}",
            "",
            json!({}),
        ),
        (
            "globals \"d\" \"x\" {\n e = 1\n} ;globals {\n r = tm_try(global.d, \"none\")\n}",
            "globals \"d\" \"x\" {\n e = unset\n}",
            "",
            json!({"r": "none"}),
        ),
        (
            "globals \"d\" {\n e = 1\n}",
            "globals \"d\" {\n e = unset\n}",
            "globals \"d\" {\n f = 1\n}",
            json!({"d": {"f": 1}}),
        ),
        (
            "globals \"d\" \"x\" {\n e = 1\n}",
            "globals \"d\" \"x\" {\n e = unset\n}",
            "globals \"d\" {\n x = unset\n}",
            json!({}),
        ),
        // Something else makes these objects.
        (
            "d = {}",
            "globals \"d\" {\n e = unset\n}",
            "",
            json!({"d": {}}),
        ),
        (
            "globals \"d\" {\n}",
            "globals \"d\" {\n e = 1\n}",
            "globals \"d\" {\n e = unset\n}",
            json!({"d": {}}),
        ),
        (
            "globals \"d\" \"x\" {\n}",
            "globals \"d\" {\n x = unset\n}",
            "",
            json!({"d": {}}),
        ),
        (
            "globals \"d\" \"x\" {\n}",
            "globals \"d\" \"x\" {\n e = unset\n}",
            "",
            json!({"d": {"x": {}}}),
        ),
        (
            "globals \"d\" \"x\" \"y\" {\n e = 1\n}",
            "globals \"d\" {\n x = unset\n}",
            "",
            json!({"d": {}}),
        ),
        (
            "globals \"d\" \"x\" {\n e = 1\n}",
            "d = unset",
            "",
            json!({}),
        ),
        (
            "globals \"d\" {\n map \"x\" {\n for_each = [\"a\"]\n key = element.new\n value = 1\n }\n}",
            "globals \"d\" {\n x = unset\n}",
            "",
            json!({"d": {}}),
        ),
    ] {
        check(root, stack, child, expected);
    }
}

#[test]
fn the_importing_directory_overrides_what_it_imports() {
    let sandbox = project(&[
        (
            "/mods/a/m.tm",
            "globals {\n  a = \"imported\"\n  o = { x = 1, y = 1 }\n}\nglobals \"lab\" {\n  i = \"imported\"\n  j = \"imported\"\n}\n",
        ),
        (
            "/st/g.tm",
            "import {\n  source = \"/mods/a/m.tm\"\n}\nglobals {\n  a = \"local\"\n}\nglobals \"lab\" {\n  j = \"local\"\n}\nglobals \"o\" {\n  x = 9\n}\n",
        ),
        ("/st/c/g.tm", "import {\n  source = \"/mods/a/m.tm\"\n}\n"),
    ]);
    let output = sandbox.orch("globals --format json");
    let local = json!({
        "a": "local",
        "lab": {"i": "imported", "j": "local"},
        "o": {"x": 9, "y": 1},
    });
    assert_eq!(seen(&output, "/st"), local, "{output}");
    // If it is imported again further down, all of it applies again there.
    let again = json!({
        "a": "imported",
        "lab": {"i": "imported", "j": "imported"},
        "o": {"x": 1, "y": 1},
    });
    assert_eq!(seen(&output, "/st/c"), again, "{output}");
}

/// Only files of one directory must agree on who says what: an imported file can override an entry of an
/// object from another directory, whichever is imported first.
#[test]
fn imports_from_several_directories_override_each_other() {
    let import = |path: &str| format!("import {{\n  source = \"{path}\"\n}}\n");
    let of = |first: &str, second: &str| {
        let sandbox = project(&[
            ("/m1/a.txt", "globals {\n  o = { x = 1 }\n}\n"),
            ("/m1/b.txt", "globals \"o\" {\n  x = 5\n}\n"),
            ("/m2/b.txt", "globals \"o\" {\n  x = 5\n}\n"),
            ("/st/g.tm", &(import(first) + &import(second))),
        ]);
        sandbox.orch("globals --format json")
    };
    for (first, second) in [("/m1/a.txt", "/m2/b.txt"), ("/m2/b.txt", "/m1/a.txt")] {
        let output = of(first, second);
        assert_eq!(seen(&output, "/st"), json!({"o": {"x": 5}}), "{output}");
    }
    let output = of("/m1/a.txt", "/m1/b.txt");
    assert_eq!(seen(&output, "/st"), json!({"o": "BROKEN"}), "{output}");
}

#[test]
fn what_is_imported_sees_what_the_stack_sees() {
    let module = |name: &str, one, two| {
        let text = format!(
            "globals \"label\" {{\n  obj = {{\n    data1 = tm_try(global.pending, {one})\n    data2 = tm_try(global.absent, {two})\n  }}\n}}\n"
        );
        (format!("/modules/{name}/m.tm"), text)
    };
    let import = |name| format!("import {{\n  source = \"/modules/{name}/m.tm\"\n}}\n");
    let ((a, a_text), (b, b_text)) = (module("a", 1, 2), module("b", 3, 4));
    let sandbox = project(&[
        (&a, &a_text),
        (&b, &b_text),
        ("/g.tm", &import("a")),
        (
            "/st/c/g.tm",
            &(import("b") + "globals {\n  pending = 666\n}\n"),
        ),
    ]);
    let output = sandbox.orch("globals --format json");
    let expected = json!({"label": {"obj": {"data1": 1, "data2": 2}}});
    assert_eq!(seen(&output, "/st"), expected, "{output}");
    let expected = json!({"label": {"obj": {"data1": 666, "data2": 4}}, "pending": 666});
    assert_eq!(seen(&output, "/st/c"), expected, "{output}");
}

#[test]
fn many_files_are_imported_by_a_glob() {
    let sandbox = project(&[
        ("/imports/d1/file1.tm", "globals {\n  a = 1\n}\n"),
        ("/imports/d2/file2.tm", "globals {\n  b = 2\n}\n"),
        ("/imports/d3/file3.tm", "globals {\n  c = 3\n}\n"),
        (
            "/st/g.tm",
            "import {\n  source = \"/imports/*/file[0-9].tm\"\n}\n",
        ),
    ]);
    let output = sandbox.orch("globals --format json");
    assert_eq!(
        seen(&output, "/st"),
        json!({"a": 1, "b": 2, "c": 3}),
        "{output}"
    );
}
