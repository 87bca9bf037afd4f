//! `import`.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

/// A project in which `/s` imports `source`, and other files.
fn importing(source: &str) -> Sandbox {
    let sandbox = Sandbox::layout("s");
    sandbox.write(
        "/s/import.tm",
        format!("import {{\n  source = \"{source}\"\n}}\n"),
    );
    for file in ["one", "two"] {
        let text = format!("globals {{\n  {file} = \"{file}\"\n}}\n");
        sandbox.write(&format!("/other/{file}.hcl"), text);
    }
    sandbox
}

fn imported(sandbox: &Sandbox) -> Output {
    sandbox.write(
        "/s/env.tm",
        "orch {\n  config {\n    run {\n      env {\n        X = \"${global.one}-${global.two}\"\n      }\n    }\n  }\n}\n",
    );
    sandbox.orch("env")
}

#[test]
fn patterns_import_several_files() {
    for source in [
        "/other/*.hcl",
        "../other/*",
        "/other/???.hcl",
        "/oth*/[ot]*.hcl",
    ] {
        let output = imported(&importing(source));
        assert!(output.stdout.contains("X=one-two\n"), "{source}: {output}");
    }
}

#[test]
fn two_stars_are_not_recursive() {
    let sandbox = importing("/**/one.hcl");
    sandbox.write("/other/deep/one.hcl", "stack {\n}\n");
    assert_eq!(sandbox.orch("list").to_string(), "s\n");
    let sandbox = importing("/**/deep.hcl");
    sandbox.write("/other/down/deep.hcl", "globals {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: no file matches the import `/**/deep.hcl`
     --> s/import.tm:2:12
      |
    2 |   source = "/**/deep.hcl"
      |            ^^^^^^^^^^^^^^ looked for `/**/deep.hcl`
      |
      = help: correct the path; `**` is not recursive in an import

    [exit status 3]
    "#);
}

#[test]
fn an_import_must_find_something() {
    assert_snapshot!(importing("/other/three.hcl").orch("list"), @r#"
    [stderr]
    error: no file matches the import `/other/three.hcl`
     --> s/import.tm:2:12
      |
    2 |   source = "/other/three.hcl"
      |            ^^^^^^^^^^^^^^^^^^ looked for `/other/three.hcl`
      |
      = help: correct the path; `**` is not recursive in an import

    [exit status 3]
    "#);
    assert_eq!(importing("/other/*.txt").orch("list").code(), 3);
}

#[test]
fn a_directory_cannot_be_imported() {
    assert_snapshot!(importing("/other").orch("list"), @r#"
    [stderr]
    error: `/other` is a directory, and an import names files
     --> s/import.tm:2:12
      |
    2 |   source = "/other"
      |            ^^^^^^^^ imported here
      |
      = help: import its files: `/other/*.tm.hcl`

    [exit status 3]
    "#);
}

#[test]
fn an_import_cannot_leave_the_project() {
    assert_snapshot!(importing("../../decoy/stack.tm").orch("list"), @r#"
    [stderr]
    error: `../../decoy/stack.tm` leads out of the project
     --> s/import.tm:2:12
      |
    2 |   source = "../../decoy/stack.tm"
      |            ^^^^^^^^^^^^^^^^^^^^^^ climbs above the project root
      |
      = help: import files inside the project; a leading `/` is the project root

    [exit status 3]
    "#);
}

#[test]
fn a_directory_imports_neither_from_itself_nor_from_above() {
    let sandbox = importing("/above.hcl");
    sandbox.write("/above.hcl", "globals {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `/above.hcl` belongs to a directory above, which applies here already
     --> s/import.tm:2:12
      |
    2 |   source = "/above.hcl"
      |            ^^^^^^^^^^^^ imported here
      |
      = help: remove the import

    [exit status 3]
    "#);
    assert_snapshot!(importing("stack.tm").orch("list"), @r#"
    [stderr]
    error: `/s/stack.tm` belongs to this directory already
     --> s/import.tm:2:12
      |
    2 |   source = "stack.tm"
      |            ^^^^^^^^^^ imported here
      |
      = help: remove the import

    [exit status 3]
    "#);
}

#[test]
fn a_sibling_with_a_longer_name_is_not_above() {
    let sandbox = Sandbox::layout("p/s-a");
    sandbox.write("/p/s/x.hcl", "globals {\n}\n");
    sandbox.write(
        "/p/s-a/import.tm",
        "import {\n  source = \"/p/s/x.hcl\"\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @"p/s-a");
}

#[test]
fn a_file_is_imported_once() {
    let sandbox = importing("/other/one.hcl");
    sandbox.write("/s/more.tm", "import {\n  source = \"../other/*.hcl\"\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `/other/one.hcl` is imported twice into `/s`
     --> s/more.tm:2:12
      |
    2 |   source = "../other/*.hcl"
      |            ^^^^^^^^^^^^^^^^ again here
      |
     ::: s/import.tm:2:12
      |
    2 |   source = "/other/one.hcl"
      |            ---------------- first here
      |
      = help: remove one of the imports; imports must not form a loop

    [exit status 3]
    "#);
}

#[test]
fn imports_that_form_a_loop_are_an_error() {
    let sandbox = importing("/other/one.hcl");
    sandbox.write("/other/one.hcl", "import {\n  source = \"two/x.hcl\"\n}\n");
    sandbox.write(
        "/other/two/x.hcl",
        "import {\n  source = \"../one.hcl\"\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: `/other/one.hcl` is imported twice into `/s`
     --> other/two/x.hcl:2:12
      |
    2 |   source = "../one.hcl"
      |            ^^^^^^^^^^^^ again here
      |
     ::: s/import.tm:2:12
      |
    2 |   source = "/other/one.hcl"
      |            ---------------- first here
      |
      = help: remove one of the imports; imports must not form a loop

    [exit status 3]
    "#);
}

#[test]
fn an_imported_file_has_no_stack() {
    let sandbox = importing("/other/stack.hcl");
    sandbox.write("/other/stack.hcl", "stack {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: an imported file cannot contain a `stack` block
     --> other/stack.hcl:1:1
      |
    1 | stack {
      | ^^^^^ every directory that imports the file would be the same stack
      |
     ::: s/import.tm:2:12
      |
    2 |   source = "/other/stack.hcl"
      |            ------------------ imported here
      |
      = help: keep the `stack` block in the stack's own directory

    [exit status 3]
    "#);
}

#[test]
fn the_source_of_an_import_is_a_string_and_required() {
    let sandbox = Sandbox::new(
        r#"
//- /s/1.tm
import {
  source = ["/x.hcl"]
}
//- /s/2.tm
import {
}
//- /s/3.tm
import "x" {
  source = "/other/*"
  sauce  = 1
  nested {
  }
}
//- /other/x.hcl
"#,
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    [stderr]
    error: the `source` of an import must be a string
     --> s/1.tm:2:12
      |
    2 |   source = ["/x.hcl"]
      |            ^^^^^^^^^^ this is a list
      |
      = help: write the path in quotes

    error: an `import` block needs `source`
     --> s/2.tm:1:1
      |
    1 | import {
      | ^^^^^^ nothing to import
      |
      = help: write `source = "path/of/file.tm.hcl"`

    error: an `import` block has no labels
     --> s/3.tm:1:8
      |
    1 | import "x" {
      |        ^^^ unexpected label
      |
      = help: remove the label

    error: unknown attribute `sauce` in `import`
     --> s/3.tm:3:3
      |
    1 | import "x" {
      | ------ in this block
    2 |   source = "/other/*"
    3 |   sauce  = 1
      |   ^^^^^ not an attribute of `import`

    error: unknown block `nested` in `import`
     --> s/3.tm:4:3
      |
    4 |   nested {
      |   ^^^^^^ an `import` block has no nested blocks

    [exit status 3]
    "#);
}

#[test]
fn a_problem_in_an_imported_file_is_shown_there() {
    let sandbox = importing("/other/broken.hcl");
    sandbox.write("/other/broken.hcl", "globas {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: unknown block `globas`
     --> other/broken.hcl:1:1
      |
    1 | globas {
      | ^^^^^^ not a block of this language
      |
      = help: did you mean `globals`?

    [exit status 3]
    ");
    sandbox.write("/other/broken.hcl", "globals {\n");
    assert_eq!(sandbox.orch("list").code(), 3);
}

#[test]
fn an_imported_file_that_cannot_be_read_is_named() {
    let sandbox = importing("/other/odd.hcl");
    sandbox.write("/other/odd.hcl", b"\xff\xfe");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(output.stderr.contains("not UTF-8"), "{output}");
    assert!(output.stderr.contains("other/odd.hcl"), "{output}");
}

#[cfg(unix)]
#[test]
fn a_directory_of_imports_that_cannot_be_read_is_an_error() {
    let long = "n".repeat(300);
    for source in [format!("/{long}/*.hcl"), format!("/{long}/one.hcl")] {
        let output = importing(&source).orch("list");
        assert_eq!(output.code(), 5, "{output}");
        let error = format!("error: failed to read `{long}");
        assert!(output.stderr.starts_with(&error), "{output}");
    }
}

#[cfg(unix)]
#[test]
fn an_import_through_a_link_cannot_leave_the_project() {
    let sandbox = importing("/link/stack.tm");
    sandbox.symlink("../decoy", "/link");
    let output = sandbox.orch("list");
    assert_eq!(output.code(), 3);
    assert!(
        output.stderr.contains("leads out of the project"),
        "{output}"
    );
}

#[test]
fn files_in_dot_directories_and_skipped_ones_may_be_imported() {
    for directory in [".shared", "skipped"] {
        let sandbox = Sandbox::layout("s");
        sandbox.write(&format!("/{directory}/x.tm"), "globals {\n  one = 1\n}\n");
        sandbox.write("/skipped/.tmskip", "");
        let import = format!("import {{\n  source = \"/{directory}/x.tm\"\n}}\n");
        sandbox.write("/s/import.tm", import);
        assert_eq!(sandbox.orch("list").to_string(), "s\n");
    }
}
