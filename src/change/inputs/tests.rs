use std::fs;
use std::path::Path;

use super::*;
use crate::change::fixtures::{check, files, load, project, way};
use crate::diagnostic::{RenderStyle, render};
use crate::project::Problems;

/// Returns the stacks with a changed input, with the chains, and the warnings.
fn changed(directory: &Path, changed: &[&str]) -> (Vec<String>, String) {
    let root = dunce::canonicalize(directory).unwrap();
    let (mut project, listing) = load(&root);
    project.settings.terragrunt = true;
    let files = files(changed);
    check(&project, &listing, &files);
    let candidates: Vec<StackIndex> = project.stacks.iter().map(|(index, _)| index).collect();
    // As in a release build: deep expressions need a large stack.
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(16 << 20)
        .num_threads(2)
        .build()
        .unwrap();
    let input_problems = InputProblems::default();
    let tree = Tree::new(&root, &listing, &files, &input_problems);
    let found = pool.install(|| changed_inputs(&tree, &project.stacks, &candidates, true));
    drop(tree);
    let found_changed = found
        .iter()
        .map(|(stack, cause)| {
            let stack = &project.stacks[*stack].path;
            format!("{stack}{} > {}", way(&cause.chain), cause.file.path)
        })
        .collect();
    let mut problems = Problems::default();
    input_problems.add_to(&mut problems).unwrap();
    problems.settle(&mut project.sources);
    let drawn = problems
        .diagnostics
        .iter()
        .map(|diagnostic| render(diagnostic, &project.sources, RenderStyle::Plain));
    (found_changed, drawn.collect())
}

fn stacks(directory: &tempfile::TempDir, files: &[&str]) -> Vec<String> {
    let (stacks, problems) = changed(directory.path(), files);
    assert_eq!(problems, "");
    stacks
}

const STACK: &str = "stack {}\n";

#[test]
fn a_change_goes_through_modules_to_every_stack_that_uses_them() {
    let directory = project(&[
        ("orch.tm", "orch {\n  root = true\n}\n"),
        ("s/stack.tm", STACK),
        (
            "s/main.tf",
            "\nmodule \"a\" {\n  source = \"../modules/a\"\n}\n",
        ),
        ("t/stack.tm", STACK),
        (
            "t/main.tofu",
            "module \"c\" {\n  source = \"../modules/a/../other/common\"\n}\n",
        ),
        (
            "t/x.tf.json",
            r#"{"module": {"a": {"source": "../.hidden/m"}}}"#,
        ),
        (
            "modules/a/main.tf",
            "module \"c\" {\n  source = \"../common\"\n}\n",
        ),
        (
            "modules/common/main.tf",
            "module \"a\" { source = \"../a\" }\n",
        ),
        ("modules/common/data/x", ""),
        (
            "modules/other/common/main.tf",
            "module \"c\" {\n  source = \"./common\"\n}\n",
        ),
        ("modules/other/common/common/x.tf", ""),
        (".hidden/m/x.tf", "module \"n\" {\n  source = \"../n\"\n}\n"),
        (".hidden/n/x.tf", ""),
    ]);
    // A cycle of modules, and two modules both written `../common`.
    assert_eq!(
        stacks(&directory, &["modules/common/data/x"]),
        [
            "/s > ../modules/a /s/main.tf:3 > ../common /modules/a/main.tf:2 > /modules/common/data/x"
        ]
    );
    assert_eq!(
        stacks(&directory, &["modules/other/common/common/x.tf"]),
        ["/t > ../modules/a/../other/common /t/main.tofu:2 > /modules/other/common/common/x.tf"]
    );
    assert_eq!(
        stacks(&directory, &[".hidden/n/x.tf"]),
        ["/t > ../.hidden/m /t/x.tf.json > ../n /.hidden/m/x.tf:2 > /.hidden/n/x.tf"]
    );
    assert_eq!(stacks(&directory, &["modules/unused", "s2"]), [""; 0]);
}

#[test]
fn what_a_module_reads_relative_to_the_root_is_another_file_for_each_stack() {
    let module = "module \"m\" {\n  source = \"../m\"\n}\n";
    let reads = "locals {\n  a = file(\"conf/a\")\n  b = file(\"${path.module}/../shared/b\")\n  \
                 c = fileset(\"${path.root}/..\", \"sets/*.json\")\n}\n";
    let directory = project(&[
        ("m/main.tf", "module \"n\" {\n  source = \"../n\"\n}\n"),
        ("n/main.tf", reads),
        ("s/stack.tm", STACK),
        ("s/main.tf", module),
        ("t/stack.tm", STACK),
        ("t/main.tf", module),
        ("s/conf/stack.tm", STACK),
    ]);
    let steps = "> ../m /s/main.tf:2 > ../n /m/main.tf:2 >";
    assert_eq!(
        stacks(&directory, &["s/conf/a"]),
        [format!("/s {steps} file /n/main.tf:2 > /s/conf/a")]
    );
    assert_eq!(
        stacks(&directory, &["shared/b"])[0],
        format!("/s {steps} file /n/main.tf:3 > /shared/b")
    );
    let found = stacks(&directory, &["sets/x.json"]);
    assert_eq!(
        found[0],
        format!("/s {steps} fileset /n/main.tf:4 > /sets/x.json")
    );
    assert_eq!(found.len(), 2);
    assert_eq!(stacks(&directory, &["sets/deep/x.json"]), [""; 0]);
}

#[cfg(unix)]
#[test]
fn every_link_on_the_way_counts() {
    let directory = project(&[
        ("s/stack.tm", STACK),
        ("s/deep/a.tf", "-> ../../links/b"),
        ("links/b", "-> c"),
        ("links/c", "-> ../files/c.tf"),
        (
            "files/c.tf",
            "module \"x\" {\n  source = \"./through\"\n}\n",
        ),
        ("t/stack.tm", STACK),
        ("t/main.tf", "-> ../files/c.tf"),
        ("t/through", "-> ../links/modules"),
        ("links/modules", "-> ../modules"),
        (
            "modules/x.tf",
            "locals {\n  x = file(\"${path.module}/link/x\")\n}\n",
        ),
        ("modules/link", "-> ../data"),
        ("data/x", ""),
        ("u/stack.tm", STACK),
        ("u/loop", "-> other"),
        ("u/other", "-> loop"),
        ("u/out", "-> /etc"),
        ("u/dangling", "-> ../deleted/x"),
    ]);
    let to_s = "/s > link /s/deep/a.tf > link /links/b";
    assert_eq!(
        stacks(&directory, &["files/c.tf"]),
        [
            format!("{to_s} > link /links/c > /files/c.tf"),
            "/t > link /t/main.tf > /files/c.tf".to_owned()
        ]
    );
    assert_eq!(
        stacks(&directory, &["links/c"]),
        [format!("{to_s} > /links/c")]
    );
    assert_eq!(
        stacks(&directory, &["modules/x.tf"]),
        ["/t > ./through /t/main.tf:2 > link /t/through > link /links/modules > /modules/x.tf"]
    );
    assert_eq!(
        stacks(&directory, &["data/x"]),
        [
            "/t > ./through /t/main.tf:2 > link /t/through > link /links/modules > link /modules/link > /data/x"
        ]
    );
    assert_eq!(
        stacks(&directory, &["deleted/x"]),
        ["/u > link /u/dangling > /deleted/x"]
    );
}

#[test]
fn what_cannot_be_understood_is_a_warning_and_the_rest_counts() {
    let directory = project(&[
        ("s/stack.tm", STACK),
        ("s/a.tf", "module \"a\" {\n"),
        (
            "s/b.tf",
            "module \"b\" {\n  source = \"../b\"\n}\nmodule \"c\" {\n  source = \"../../c\"\n}\n",
        ),
        ("s/c.tf.json", "{\n  \"module\": 1,\n}\n"),
        ("s/d.tf", "module \"d\" {\n  source = \"../d\"\n}\n"),
        ("d/d.tf", ""),
    ]);
    fs::write(directory.path().join("s/e.tf"), b"# \n# \xff\n").unwrap();
    let (stacks, problems) = changed(directory.path(), &["d/d.tf"]);
    assert_eq!(stacks, ["/s > ../d /s/d.tf:2 > /d/d.tf"]);
    insta::assert_snapshot!(problems, @r#"
    warning: syntax error
     --> s/a.tf:1:12
      |
    1 | module "a" {
      |            ^- invalid block body; expected `}`, newline or identifier
      |            |
      |            never closed
      |
      = note: changes of files that it uses go unnoticed
      = help: add the missing `}`
    warning: the module `../b` does not exist
     --> s/b.tf:2:12
      |
    2 |   source = "../b"
      |            ^^^^^^ no such directory
      |
      = help: correct the path; changes of this module go unnoticed
    warning: the module `../../c` leads out of the project
     --> s/b.tf:5:12
      |
    5 |   source = "../../c"
      |            ^^^^^^^^^ not below the project root
      |
      = help: changes there go unnoticed; move the module into the project
    warning: syntax error
     --> s/c.tf.json:3:1
      |
    3 | }
      | ^ trailing comma
      |
      = note: changes of files that it uses go unnoticed
    warning: this file is not UTF-8
     --> s/e.tf:2:3
      |
    2 | # �
      |   ^ the first byte that is not text
      |
      = note: changes of files that it uses go unnoticed
      = help: save the file as UTF-8
    "#);
}

#[test]
fn terragrunt_reads_includes_parents_and_modules() {
    let own = "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n\
               locals {\n  region = \"eu\"\n  vars = read_terragrunt_config(find_in_parent_folders(\"env.hcl\"))\n\
               \x20 nothing = find_in_parent_folders(\"nothing.hcl\", \"fallback\")\n}\n\
               dependency \"vpc\" {\n  config_path = \"../vpc\"\n}\n\
               terraform {\n  source = \"${get_repo_root()}/modules//app?ref=v1\"\n  extra_arguments \"x\" {\n\
               \x20   required_var_files = [\"${get_terragrunt_dir()}/../${local.region}.tfvars\"]\n  }\n}\n";
    let root = "locals {\n  x = file(\"${get_parent_terragrunt_dir()}/common.txt\")\n  \
                y = read_tfvars_file(\"${path_relative_to_include()}/../../own.tfvars\")\n}\n";
    let directory = project(&[
        ("live/root.hcl", root),
        (
            "live/env.hcl",
            "locals {\n  z = file(\"z.txt\")\n  again = read_terragrunt_config(\"env.hcl\")\n}\n",
        ),
        ("live/prod/app/stack.tm", STACK),
        ("live/prod/app/terragrunt.hcl", own),
        ("live/prod/vpc/stack.tm", STACK),
        (
            "live/prod/vpc/terragrunt.hcl",
            "terraform {\n  source = \"../../../modules//vpc\"\n}\n",
        ),
        (
            "modules/app/main.tf",
            "module \"lib\" {\n  source = \"../lib\"\n}\n",
        ),
        ("modules/vpc/main.tf", ""),
        ("modules/lib/main.tf", ""),
    ]);
    let own = "/live/prod/app/terragrunt.hcl";
    let check = |changed: &str, way: &str| {
        let found = stacks(&directory, &[changed]);
        assert_eq!(found, [format!("/live/prod/app > {way} > /{changed}")]);
    };
    check("live/root.hcl", &format!("include {own}:2"));
    check(
        "live/common.txt",
        &format!("include {own}:2 > file /live/root.hcl:2"),
    );
    check("live/env.hcl", &format!("read_terragrunt_config {own}:6"));
    check(
        "live/z.txt",
        &format!("read_terragrunt_config {own}:6 > file /live/env.hcl:2"),
    );
    check(
        "live/prod/eu.tfvars",
        &format!("required_var_files {own}:15"),
    );
    check(
        "modules/lib/main.tf",
        &format!("terraform.source {own}:13 > ../lib /modules/app/main.tf:2"),
    );
    // It would be found if it had not been deleted.
    check(
        "live/prod/env.hcl",
        &format!("find_in_parent_folders {own}:6"),
    );
    assert_eq!(
        stacks(&directory, &["modules/vpc/main.tf"]),
        [
            "/live/prod/vpc > terraform.source /live/prod/vpc/terragrunt.hcl:2 > /modules/vpc/main.tf"
        ]
    );
    // `config_path` alone selects nothing.
    assert_eq!(stacks(&directory, &["live/prod/vpc/x"]), [""; 0]);
}

#[test]
fn a_chain_of_thousands_of_operands_is_no_problem() {
    let long = format!(
        "locals {{\n  x = file(\"x\"){}\n}}\n",
        " + 1".repeat(500_000)
    );
    let directory = project(&[("s/stack.tm", STACK), ("s/a.tf", &long), ("s/x", "")]);
    let found = changed(directory.path(), &["s/x"]).0;
    assert!(found.len() <= 1);
}
