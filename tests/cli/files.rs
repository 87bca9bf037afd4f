//! Roots, file names, skipped directories, merging, imports, project settings.

use insta::assert_snapshot;

use crate::support::{Output, Sandbox};

// Roots.

#[test]
fn the_nearest_declared_root_wins_over_git_and_over_outer_ones() {
    let sandbox = Sandbox::new(
        "
//- /inner/root.orch.hcl
orch {
  root = true
}
//- /inner/deep/stack.tm
stack {
}
//- /outer/stack.tm
stack {
}
",
    );
    sandbox.git_init();
    assert_snapshot!(sandbox.orch_in("/inner/deep", "list --why"), @".  # at or below /deep");
}

#[test]
fn stacks_of_another_project_below_do_not_belong_to_this_one() {
    let sandbox = Sandbox::new(
        "
//- /a/stack.tm
stack {
}
//- /inner/root.orch.hcl
orch {
  root = true
}
//- /inner/stack.tm
stack {
}
//- /inner/deep/broken.tm
stack {
",
    );
    assert_snapshot!(sandbox.orch("list"), @"a");
}

#[test]
fn a_project_of_nothing_but_other_projects_says_so() {
    let sandbox = Sandbox::new("//- /inner/root.tm\nterramate {\n  root = true\n}\nstack {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    note: there are no stacks in `$ROOT`; `/inner` is a project of its own, change into it
    ");
}

#[test]
fn without_a_declared_root_the_top_level_of_git_is_the_root() {
    let sandbox = Sandbox::unmarked(
        "
//- /a/b/stack.tm
stack {
}
//- /a/version.tm
terramate {
  required_version = \">= 0\"
}
//- /c/stack.tm
stack {
  after = [\"/a\"]
}
",
    );
    sandbox.git_init();
    let output = sandbox.orch_in("/a/b", "list --why");
    assert_eq!(output.stdout, ".  # at or below /a/b\n", "{output}");
    let output = sandbox.orch("list --order");
    assert_eq!(output.stdout, "a/b\nc\n", "{output}");
}

#[test]
fn a_repository_within_a_repository_is_a_project_of_its_own() {
    let sandbox =
        Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n//- /sub/b/stack.tm\nstack {\n}\n");
    sandbox.git_init();
    sandbox.git_init_at("/sub");
    assert_snapshot!(sandbox.orch("list"), @"
    a
    sub/b
    ");
    assert_snapshot!(sandbox.orch_in("/sub", "list --why"), @"b  # at or below /");
}

#[test]
fn a_worktree_or_submodule_is_marked_by_a_file() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n");
    sandbox.write("/.git", "gitdir: /elsewhere\n");
    assert_snapshot!(sandbox.orch_in("/a", "list --why"), @".  # at or below /a");
}

#[test]
fn without_git_the_nearest_required_version_marks_the_root() {
    let sandbox = Sandbox::unmarked(
        "
//- /version.tm
terramate {
  required_version = \"\"
}
//- /a/stack.tm
stack {
  after = [\"/b\"]
}
//- /b/stack.tm
stack {
}
",
    );
    assert_snapshot!(sandbox.orch_in("/a", "list --why"), @".  # at or below /a");
}

#[test]
fn without_any_mark_the_current_directory_is_the_root_and_a_note_says_so() {
    let sandbox = Sandbox::unmarked("//- /a/stack.tm\nstack {\n}\n");
    assert_snapshot!(sandbox.orch("list"), @"
    a
    [stderr]
    note: nothing marks the root of a project here, so it is `$ROOT`; write `orch { root = true }` into a file `orch.orch.hcl` at the root
    ");
    assert_snapshot!(sandbox.orch_in("/a", "list"), @"
    .
    [stderr]
    note: nothing marks the root of a project here, so it is `$ROOT/a`; write `orch { root = true }` into a file `orch.orch.hcl` at the root
    ");
}

#[test]
fn a_broken_file_above_the_root_does_no_harm() {
    let sandbox = Sandbox::unmarked(
        "//- /in/root.tm\norch {\n  root = true\n}\n//- /in/s/stack.tm\nstack {\n}\n",
    );
    sandbox.write("/broken.tm", "stack {");
    std::fs::write(sandbox.outside().join("broken.tm"), [0xff, 0xfe]).unwrap();
    assert_snapshot!(sandbox.orch_in("/in", "list"), @"s");
}

#[test]
fn a_broken_root_is_not_passed_over_in_silence() {
    // Nothing else marks a root, so what was meant to must not be dropped with all it hands down.
    let sandbox = Sandbox::unmarked("//- /s/stack.tm\nstack {\n}\n");
    sandbox.write("/root.orch.hcl", "orch {\n  root = true\n");
    let output = sandbox.orch_in("/s", "list");
    assert_eq!((output.code(), &*output.stdout), (3, ""), "{output}");
    assert!(output.stderr.contains("syntax error"), "{output}");
}

#[test]
fn git_is_not_needed() {
    let sandbox = Sandbox::layout("a");
    let output = sandbox.orch_with("list", |orch| {
        orch.env("PATH", "/nowhere");
    });
    assert_eq!(output.to_string(), "a\n");
}

// File names.

#[test]
fn three_endings_make_a_configuration_file() {
    let sandbox = Sandbox::new("");
    for name in [
        "a/any.tm",
        "b/any.tm.hcl",
        "c/any.orch.hcl",
        "d/two.dots.tm",
    ] {
        sandbox.write(&format!("/{name}"), "stack {\n}\n");
    }
    for name in [
        "e/any.hcl",
        "f/any.tf",
        "g/.tm",
        "h/.x.tm",
        "i/any.tm.bak",
        "j/.tm.hcl",
        "k/x.TM",
        "l/.orch.hcl",
    ] {
        sandbox.write(&format!("/{name}"), "stack {");
    }
    assert_snapshot!(sandbox.orch("list"), @"
    a
    b
    c
    d
    ");
}

#[test]
fn dot_directories_are_not_entered() {
    let sandbox = Sandbox::layout("a");
    sandbox.write("/.hidden/stack.tm", "stack {");
    sandbox.write("/a/.terraform/modules/x/stack.tm", "stack {");
    assert_snapshot!(sandbox.orch("list"), @"a");
}

#[test]
fn marked_directories_are_not_entered() {
    for mark in [".tmskip", ".orchskip"] {
        let sandbox = Sandbox::layout(
            "
            a
            b/c
            d",
        );
        sandbox.write("/b/broken.tm", "stack {");
        sandbox.write(&format!("/b/{mark}"), "");
        assert_eq!(sandbox.orch("list").to_string(), "a\nd\n", "{mark}");
    }
}

#[test]
fn a_mark_at_the_root_leaves_only_the_root() {
    let sandbox = Sandbox::layout(
        "
        /
        a",
    );
    sandbox.write("/.tmskip", "");
    assert_snapshot!(sandbox.orch("list"), @".");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_directory_is_not_entered() {
    let sandbox = Sandbox::layout("a/b");
    sandbox.symlink("a", "/link");
    sandbox.symlink("..", "/a/up");
    sandbox.symlink(".", "/a/self");
    assert_snapshot!(sandbox.orch("list"), @"a/b");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_of_the_project_is_read() {
    let sandbox = Sandbox::layout("a");
    sandbox.mkdir("/b");
    sandbox.symlink("../a/stack.tm", "/b/stack.tm");
    assert_snapshot!(sandbox.orch("list"), @"
    a
    b
    ");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_outside_of_the_project_is_refused() {
    let sandbox = Sandbox::layout("a");
    sandbox.symlink("../../decoy.tm", "/a/linked.tm");
    assert_snapshot!(sandbox.orch("list"), @"
    [stderr]
    error: `a/linked.tm` is a link that leads out of the project
      = help: copy the file into the project, or link to one inside it

    [exit status 3]
    ");
}

// Merging.

#[test]
fn the_files_of_a_directory_are_one_configuration() {
    let sandbox = Sandbox::new(
        "
//- /a/1.tm
terramate {
}
//- /a/2.tm.hcl
stack {
}
//- /a/3.orch.hcl
globals {
}
orch {
}
",
    );
    assert_snapshot!(sandbox.orch("list"), @"a");
}

#[test]
fn blocks_that_orch_does_not_use_are_accepted_with_any_content() {
    let sandbox = Sandbox::new(
        r#"
//- /a/stack.tm
stack {
}
assert {
  assertion = tm_anything(global.x)
  message   = "m"
}
generate_hcl "x.tf" {
  condition = true
  content {
    resource "a" "b" {
      x = provider::f(1, 2...)
    }
  }
}
generate_file "x" {
  content = tm_jsonencode({ a = 1 })
}
script "deploy" {
  description = "d"
  job {
    commands = [["terraform", "apply"]]
  }
}
sharing_backend "s" {
  type = terraform
}
input "i" {
  backend = "s"
}
output "o" {
  value = module.x
}
vendor {
  dir = "/v"
}
bundle "b" {
}
component "c" {
}
define component {
}
environment {
}
scaffold {
}
"#,
    );
    assert_snapshot!(sandbox.orch("validate"), @"
    [stderr]
    note: no problems found: 1 stack, 2 configuration files
    ");
}

// Imports.

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
    error: an imported file cannot hold a `stack` block
     --> other/stack.hcl:1:1
      |
    1 | stack {
      | ^^^^^ this would make every importer the same stack
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
fn the_source_of_an_import_is_literal_and_required() {
    let sandbox = Sandbox::new(
        r#"
//- /s/1.tm
import {
  source = "/${"x"}.hcl"
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
    error: the `source` of an import must be a literal string
     --> s/1.tm:2:12
      |
    2 |   source = "/${"x"}.hcl"
      |            ^^^^^^^^^^^^^ this is not one
      |
      = help: write the path out, in quotes

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

// Project settings.

/// What `orch validate` says to a project with one file of settings at its root.
fn settings(text: &str) -> Output {
    let sandbox = Sandbox::layout("s");
    sandbox.write("/settings.tm", text);
    sandbox.orch("validate")
}

#[test]
fn every_setting_of_terramate_is_accepted() {
    let output = settings(
        r#"
terramate {
  required_version                   = "~> 0.17"
  required_version_allow_prereleases = true
  config {
    experiments        = ["scripts", "anything"]
    disable_safeguards = ["git-untracked", "outdated-code"]
    git {
      default_remote = "upstream"
      default_branch = "trunk"
    }
    run {
      env {
        X = "y"
      }
    }
    change_detection {
      git {
        untracked   = "off"
        uncommitted = true
      }
      terragrunt {
        enabled = "force"
      }
    }
    generate {
      hcl_magic_header_comment_style = "//"
    }
    cloud {
      organization = "o"
      location     = "us"
      targets {
        enabled = true
      }
    }
    telemetry {
      enabled = "off"
    }
    targets {
      anything = 1
    }
  }
}
"#,
    );
    assert_snapshot!(output, @"
    [stderr]
    note: no problems found: 1 stack, 3 configuration files
    ");
}

#[test]
fn settings_have_types() {
    let output = settings(
        r#"terramate {
  required_version = 1
  config {
    experiments        = "scripts"
    disable_safeguards = ["git", "everything"]
    references         = "loose"
    git {
      default_branch  = true
      check_untracked = "yes"
    }
    change_detection {
      terragrunt {
        enabled = "maybe"
      }
    }
    telemetry {
      enabled = 1
    }
  }
}
"#,
    );
    assert_snapshot!(output, @r#"
    [stderr]
    error: `required_version` must be a string
     --> settings.tm:2:22
      |
    2 |   required_version = 1
      |                      ^ this is a number

    error: `experiments` must be a list of strings
     --> settings.tm:4:26
      |
    4 |     experiments        = "scripts"
      |                          ^^^^^^^^^ this is `"scripts"`

    error: `disable_safeguards` must be a list of `"all"`, `"none"`, `"git"`, `"git-untracked"`, `"git-uncommitted"`, `"git-out-of-sync"`, `"outdated-code"`
     --> settings.tm:5:26
      |
    5 |     disable_safeguards = ["git", "everything"]
      |                          ^^^^^^^^^^^^^^^^^^^^^ this is a list

    error: `references` must be one of `"strict"`, `"warn"`
     --> settings.tm:6:26
      |
    6 |     references         = "loose"
      |                          ^^^^^^^ this is `"loose"`

    error: `default_branch` must be a string
     --> settings.tm:8:25
      |
    8 |       default_branch  = true
      |                         ^^^^ this is a bool

    error: `config.git.check_untracked` and `config.disable_safeguards` exclude each other
     --> settings.tm:9:7
      |
    5 |     disable_safeguards = ["git", "everything"]
      |     ------------------ the list
    ...
    9 |       check_untracked = "yes"
      |       ^^^^^^^^^^^^^^^ the old switch
      |
      = help: remove the old switch and name the safeguard in the list

    error: `check_untracked` must be `true` or `false`
     --> settings.tm:9:25
      |
    9 |       check_untracked = "yes"
      |                         ^^^^^ this is `"yes"`

    error: `enabled` must be one of `"auto"`, `"off"`, `"force"`
      --> settings.tm:13:19
       |
    13 |         enabled = "maybe"
       |                   ^^^^^^^ this is `"maybe"`

    error: `enabled` must be `"on"`, `"off"` or a bool
      --> settings.tm:17:17
       |
    17 |       enabled = 1
       |                 ^ this is a number

    [exit status 3]
    "#);
}

#[test]
fn unknown_settings_come_with_a_suggestion() {
    let output = settings(
        r#"terramate "label" {
  required_versoin = "1"
  confg {
  }
  config {
    refrences = "strict"
    gti {
    }
    git {
      branch = "main"
    }
  }
}
"#,
    );
    assert_snapshot!(output, @r#"
    [stderr]
    error: a `terramate` block has no labels
     --> settings.tm:1:11
      |
    1 | terramate "label" {
      |           ^^^^^^^ unexpected label
      |
      = help: remove the label

    error: unknown attribute `required_versoin` in `terramate`
     --> settings.tm:2:3
      |
    1 | terramate "label" {
      | --------- in this block
    2 |   required_versoin = "1"
      |   ^^^^^^^^^^^^^^^^ not an attribute of `terramate`
      |
      = help: did you mean `required_version`?

    error: unknown block `confg` in `terramate`
     --> settings.tm:3:3
      |
    1 | terramate "label" {
      | --------- in this block
    2 |   required_versoin = "1"
    3 |   confg {
      |   ^^^^^ not a block of `terramate`
      |
      = help: did you mean `config`?

    error: unknown attribute `refrences` in `config`
     --> settings.tm:6:5
      |
    5 |   config {
      |   ------ in this block
    6 |     refrences = "strict"
      |     ^^^^^^^^^ not an attribute of `config`
      |
      = help: did you mean `references`?

    error: unknown block `gti` in `config`
     --> settings.tm:7:5
      |
    5 |   config {
      |   ------ in this block
    6 |     refrences = "strict"
    7 |     gti {
      |     ^^^ not a block of `config`
      |
      = help: did you mean `git`?

    error: unknown attribute `branch` in `git`
      --> settings.tm:10:7
       |
     9 |     git {
       |     --- in this block
    10 |       branch = "main"
       |       ^^^^^^ not an attribute of `git`

    [exit status 3]
    "#);
}

#[test]
fn a_setting_stands_once_in_a_directory() {
    let output = settings(
        r#"terramate {
  config {
    git {
      default_branch = "a"
    }
  }
}
orch {
  config {
    git {
      default_branch = "b"
    }
  }
}
"#,
    );
    assert_snapshot!(output, @r#"
    [stderr]
    error: `config.git.default_branch` is set twice in this directory
      --> settings.tm:11:7
       |
     4 |       default_branch = "a"
       |       -------------- first here
    ...
    11 |       default_branch = "b"
       |       ^^^^^^^^^^^^^^ again here
       |
       = help: remove one of them

    [exit status 3]
    "#);
}

#[test]
fn settings_know_no_names() {
    let output = settings("terramate {\n  required_version = global.version\n}\n");
    assert_snapshot!(output, @"
    [stderr]
    error: `global` cannot be used in the project configuration
     --> settings.tm:2:22
      |
    2 |   required_version = global.version
      |                      ^^^^^^ not available here
      |
      = help: only literals, operators, templates and `for` are evaluated here

    [exit status 3]
    ");
}

#[test]
fn a_required_version_binds_the_tool_of_its_block() {
    assert_eq!(
        settings("terramate {\n  required_version = \"= 99.0.0\"\n}\n").code(),
        0
    );
    assert_eq!(
        settings("orch {\n  required_version = \">= 0.0.1\"\n}\n").code(),
        0
    );
    let output = settings("orch {\n  required_version = \"= 99.0.0\"\n}\n").to_string();
    let output = output.replace(env!("CARGO_PKG_VERSION"), "[version]");
    assert_snapshot!(output, @r#"
    [stderr]
    error: this project needs orch = 99.0.0, and this is orch [version]
     --> settings.tm:2:22
      |
    2 |   required_version = "= 99.0.0"
      |                      ^^^^^^^^^^ required here
      |
      = help: install a version of orch that fits, or change the constraint

    [exit status 3]
    "#);
    assert_snapshot!(settings("orch {\n  required_version = \"newest\"\n}\n"), @r#"
    [stderr]
    error: `newest` is not a version constraint
     --> settings.tm:2:22
      |
    2 |   required_version = "newest"
      |                      ^^^^^^^^ `newest` is not a comparison with a version
      |
      = help: write something like `~> 0.1` or `>= 0.1.0, < 2.0.0`

    [exit status 3]
    "#);
}

#[test]
fn both_tools_may_require_a_version() {
    let output = settings(
        "terramate {\n  required_version = \"~> 0.17\"\n}\norch {\n  required_version = \">= 0.0.1\"\n}\n",
    );
    assert_eq!(output.code(), 0, "{output}");
}

#[test]
fn settings_below_the_root_are_ignored_with_a_warning() {
    let sandbox = Sandbox::layout("s");
    sandbox.write(
        "/s/settings.tm",
        "terramate {\n  required_version = \"1\"\n  config {\n    references = \"strict\"\n    git {\n      default_branch = \"x\"\n    }\n  }\n}\n",
    );
    assert_snapshot!(sandbox.orch("list"), @r#"
    s
    [stderr]
    warning: this setting holds only in the project root, and is ignored here
     --> s/settings.tm:2:3
      |
    2 |   required_version = "1"
      |   ^^^^^^^^^^^^^^^^ ignored
    3 |   config {
    4 |     references = "strict"
      |     ---------- ignored too
    5 |     git {
    6 |       default_branch = "x"
      |       -------------- ignored too
      |
      = help: move it to the root directory of the project; `env`, `timeout`, `retry` and the exit codes of `config.run`, and `config.change_detection.ignore` may stay
    "#);
}

#[test]
fn empty_settings_below_the_root_are_nothing_to_warn_of() {
    let sandbox = Sandbox::layout("s");
    sandbox.write(
        "/s/settings.tm",
        "terramate {\n  config {\n    run {\n      env {\n      }\n    }\n  }\n}\norch {\n}\n",
    );
    assert_eq!(sandbox.orch("validate").code(), 0);
}
