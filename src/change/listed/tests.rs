use super::*;
use crate::change::fixtures::{check, files, load, project, way};
use crate::git::FileChange;
use crate::source::Sources;

/// Returns the inputs of a stack, with marks for the changed ones, and the number of problems.
fn inputs(directory: &tempfile::TempDir, stack: &str, changed: &[&str]) -> (String, usize) {
    let root = dunce::canonicalize(directory.path()).unwrap();
    let (project, listing) = load(&root);
    let files = files(changed);
    check(&project, &listing, &files);
    let stack = project.stacks.at(stack).only().unwrap();
    let mut problems = Problems::default();
    let inputs = inputs_of(&project, &listing, Some(&files), stack, &mut problems).unwrap();
    let lines = inputs.iter().map(|input| {
        let change = input
            .change
            .as_ref()
            .map(|file| format!(" ! {}", file.path));
        let (chain, links) = (way(&input.chain), way(&input.links));
        format!(
            "{}{chain}{}{links}\n",
            input.location,
            change.unwrap_or_default()
        )
    });
    let lines = lines.collect();
    problems.settle(&mut Sources::default());
    (lines, problems.diagnostics.len())
}

fn list(directory: &tempfile::TempDir, stack: &str, changed: &[&str]) -> String {
    let (lines, n_problems) = inputs(directory, stack, changed);
    assert_eq!(n_problems, 0);
    lines
}

/// Checks the changes of every pair of these files.
fn check_pairs(directory: &tempfile::TempDir, paths: &[&str]) {
    let root = dunce::canonicalize(directory.path()).unwrap();
    let (project, listing) = load(&root);
    for (n, first) in paths.iter().enumerate() {
        for second in &paths[n..] {
            check(&project, &listing, &files(&[first, second]));
        }
    }
}

const STACK: &str = "stack {}\n";

#[test]
fn the_configuration_names_inputs() {
    let directory = project(&[
        (
            "s/stack.tm",
            "import {\n  source = \"/conf/*.tm.hcl\"\n}\nstack {\n  watch = [\"/data/x\", \"../sets/**/*.json\"]\n}\n",
        ),
        ("s/n/stack.tm", STACK),
        (
            "conf/a.tm.hcl",
            "import {\n  source = \"../deep/b.tm.hcl\"\n}\n",
        ),
        ("deep/b.tm.hcl", "globals {\n  x = 1\n}\n"),
        ("data/x", ""),
        ("sets/deep/y.json", ""),
    ]);
    insta::assert_snapshot!(list(&directory, "/s", &["s/n/x", "sets/deep/y.json"]), @"
    /s
    /data/x > watch /s/stack.tm:5
    /sets/**/*.json > watch /s/stack.tm:5 ! /sets/deep/y.json
    /deep/b.tm.hcl > import /conf/a.tm.hcl:2
    /conf/a.tm.hcl > import /s/stack.tm:2
    /conf/*.tm.hcl > import /s/stack.tm:2
    ");
    insta::assert_snapshot!(list(&directory, "/s/n", &["s/n/x", "deep/b.tm.hcl"]), @"/s/n ! /s/n/x");
    insta::assert_snapshot!(list(&directory, "/s", &["s/x", "s/a", "deep/b.tm.hcl"]), @"
    /s ! /s/a
    /data/x > watch /s/stack.tm:5
    /sets/**/*.json > watch /s/stack.tm:5
    /deep/b.tm.hcl > import /conf/a.tm.hcl:2 ! /deep/b.tm.hcl
    /conf/a.tm.hcl > import /s/stack.tm:2
    /conf/*.tm.hcl > import /s/stack.tm:2
    ");
}

#[test]
fn a_repository_around_stacks_is_a_change_of_each() {
    let directory = project(&[
        ("r/a/stack.tm", STACK),
        ("r/b/stack.tm", STACK),
        ("c/stack.tm", STACK),
    ]);
    let root = dunce::canonicalize(directory.path()).unwrap();
    let (project, listing) = load(&root);
    let mut problems = Problems::default();
    let repository = files(&["r"]).at("/r").cloned().map(|file| ChangedFile {
        change: FileChange::Repository,
        ..file
    });
    let files = ChangedFiles::new(repository.into_iter().collect());
    check(&project, &listing, &files);
    let has_changed = ["/r/a", "/r/b", "/c"].map(|path| {
        let stack = project.stacks.at(path).only().unwrap();
        let inputs = inputs_of(&project, &listing, Some(&files), stack, &mut problems).unwrap();
        inputs[0].change.is_some()
    });
    assert_eq!(has_changed, [true, true, false]);
}

#[test]
fn modules_are_inputs_whatever_has_changed_around_them() {
    let directory = project(&[
        ("s/stack.tm", STACK),
        (
            "s/main.tf",
            "module \"a\" {\n  source = \"../m/a\"\n}\nmodule \"again\" {\n  source = \"./../m/a\"\n}\n",
        ),
        (
            "s/x.tf.json",
            r#"{"module": {"h": {"source": "../.hidden/h"}}}"#,
        ),
        ("m/a/main.tf", "module \"b\" {\n  source = \"../b\"\n}\n"),
        (
            "m/b/main.tf",
            "module \"c\" {\n  source = \"../c\"\n}\nmodule \"a\" { source = \"../a\" }\n",
        ),
        (
            "m/c/main.tf",
            "module \"s\" {\n  source = \"../../s\"\n}\nlocals {\n  x = file(\"${path.module}/../x\")\n}\n",
        ),
        ("m/x", ""),
        (
            ".hidden/h/x.tf",
            "module \"c\" {\n  source = \"../../m/c\"\n}\n",
        ),
        ("s/n/stack.tm", STACK),
    ]);
    insta::assert_snapshot!(list(&directory, "/s", &["m/a/y", "m/x"]), @"
    /s
    /m/a > ../m/a /s/main.tf:2 ! /m/a/y
    /.hidden/h > ../.hidden/h /s/x.tf.json
    /m/b > ../m/a /s/main.tf:2 > ../b /m/a/main.tf:2
    /m/c > ../.hidden/h /s/x.tf.json > ../../m/c /.hidden/h/x.tf:2
    /s > ../.hidden/h /s/x.tf.json > ../../m/c /.hidden/h/x.tf:2 > ../../s /m/c/main.tf:2
    /m/x > ../.hidden/h /s/x.tf.json > ../../m/c /.hidden/h/x.tf:2 > file /m/c/main.tf:5 ! /m/x
    ");
    // The stack is one of its own modules, and a module is everything below it.
    insta::assert_snapshot!(list(&directory, "/s", &["s/n/y"]), @"
    /s
    /m/a > ../m/a /s/main.tf:2
    /.hidden/h > ../.hidden/h /s/x.tf.json
    /m/b > ../m/a /s/main.tf:2 > ../b /m/a/main.tf:2
    /m/c > ../.hidden/h /s/x.tf.json > ../../m/c /.hidden/h/x.tf:2
    /s > ../.hidden/h /s/x.tf.json > ../../m/c /.hidden/h/x.tf:2 > ../../s /m/c/main.tf:2 ! /s/n/y
    /m/x > ../.hidden/h /s/x.tf.json > ../../m/c /.hidden/h/x.tf:2 > file /m/c/main.tf:5
    ");
}

#[test]
fn what_is_read_is_read_for_this_stack() {
    let reads = "locals {\n  a = file(\"conf/a\")\n  b = templatefile(\"${path.module}/b.tpl\", {})\n  \
                 c = fileset(\"${path.root}/..\", \"sets/*.json\")\n  d = filemd5(\"${path.cwd}/d\")\n  \
                 e = file(\"conf/a\")\n  f = fileset(path.module, \"{\")\n}\n";
    let directory = project(&[
        ("s/stack.tm", STACK),
        (
            "s/main.tf",
            "module \"m\" {\n  source = \"../m\"\n}\nlocals {\n  x = file(\"../s/conf/a\")\n}\n",
        ),
        ("m/main.tf", reads),
        ("t/stack.tm", STACK),
        ("t/main.tf", "module \"m\" {\n  source = \"../m\"\n}\n"),
    ]);
    insta::assert_snapshot!(list(&directory, "/s", &["sets/x.json", "t/d"]), @"
    /s
    /m > ../m /s/main.tf:2
    /s/conf/a > file /s/main.tf:5
    /m/b.tpl > ../m /s/main.tf:2 > templatefile /m/main.tf:3
    /sets/*.json > ../m /s/main.tf:2 > fileset /m/main.tf:4 ! /sets/x.json
    /s/d > ../m /s/main.tf:2 > filemd5 /m/main.tf:5
    ");
    insta::assert_snapshot!(list(&directory, "/t", &["m/b.tpl", "t/d"]), @"
    /t ! /t/d
    /m > ../m /t/main.tf:2 ! /m/b.tpl
    /m/b.tpl > ../m /t/main.tf:2 > templatefile /m/main.tf:3 ! /m/b.tpl
    /t/conf/a > ../m /t/main.tf:2 > file /m/main.tf:2
    /sets/*.json > ../m /t/main.tf:2 > fileset /m/main.tf:4
    /t/d > ../m /t/main.tf:2 > filemd5 /m/main.tf:5 ! /t/d
    ");
}

#[cfg(unix)]
#[test]
fn links_lead_to_inputs_and_from_them() {
    let directory = project(&[
        ("s/stack.tm", STACK),
        ("s/deep/a.tf", "-> ../../links/b"),
        ("links/b", "-> ../files/c.tf"),
        (
            "files/c.tf",
            "module \"x\" {\n  source = \"./through\"\n}\n",
        ),
        ("s/main.tf", "-> ../files/c.tf"),
        ("s/through", "-> ../links/modules"),
        ("links/modules", "-> ../modules"),
        (
            "modules/x.tf",
            "locals {\n  x = file(\"${path.module}/link/x\")\n}\n",
        ),
        ("modules/link", "-> ../data"),
        ("data/x", ""),
        ("s/n/stack.tm", STACK),
        ("s/n/link", "-> ../../data"),
        ("s/.hidden/link", "-> ../../hidden"),
        ("s/loop", "-> other"),
        ("s/other", "-> loop"),
        ("s/out", "-> /etc"),
        ("s/dangling", "-> ../deleted/x"),
    ]);
    insta::assert_snapshot!(list(&directory, "/s", &[]), @"
    /s
    /s/through > ./through /s/main.tf:2
    /modules/link/x > ./through /s/main.tf:2 > file /modules/x.tf:2
    /files/c.tf > link /s/main.tf
    /deleted/x > link /s/dangling
    /s/other > link /s/loop
    /s/loop > link /s/other
    /links/modules > link /s/through
    /modules > link /s/through > link /links/modules
    /links/b > link /s/deep/a.tf
    /hidden > link /s/.hidden/link
    ");
    insta::assert_snapshot!(list(&directory, "/s", &["data/x"]), @"
    /s
    /s/through > ./through /s/main.tf:2 ! /data/x > link /s/through > link /links/modules > link /modules/link
    /modules/link/x > ./through /s/main.tf:2 > file /modules/x.tf:2 ! /data/x > link /modules/link
    /files/c.tf > link /s/main.tf
    /deleted/x > link /s/dangling
    /s/other > link /s/loop
    /s/loop > link /s/other
    /links/modules > link /s/through
    /modules > link /s/through > link /links/modules ! /data/x > link /modules/link
    /links/b > link /s/deep/a.tf
    /hidden > link /s/.hidden/link
    ");
    insta::assert_snapshot!(list(&directory, "/s", &["files/c.tf", "links/modules", "s/n/link"]), @"
    /s
    /s/through > ./through /s/main.tf:2 ! /links/modules > link /s/through
    /modules/link/x > ./through /s/main.tf:2 > file /modules/x.tf:2
    /files/c.tf > link /s/main.tf ! /files/c.tf
    /deleted/x > link /s/dangling
    /s/other > link /s/loop
    /s/loop > link /s/other
    /links/modules > link /s/through ! /links/modules
    /modules > link /s/through > link /links/modules
    /links/b > link /s/deep/a.tf
    /hidden > link /s/.hidden/link
    ");
    insta::assert_snapshot!(list(&directory, "/s/n", &["data/x"]), @"
    /s/n
    /data > link /s/n/link ! /data/x
    ");
    let paths = [
        "s/n/x",
        "s/out/below",
        "s",
        "links",
        "links/b",
        "modules/link",
        "data/x",
        "hidden/x",
        "deleted",
    ];
    check_pairs(&directory, &paths);
}

#[test]
fn terragrunt_reads_inputs() {
    let own = "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n\
               locals {\n  vars = read_terragrunt_config(find_in_parent_folders(\"env.hcl\"))\n}\n\
               dependency \"vpc\" {\n  config_path = \"../vpc\"\n}\n\
               terraform {\n  source = \"${get_repo_root()}/modules//app\"\n  extra_arguments \"x\" {\n\
               \x20   optional_var_files = [\"${get_terragrunt_dir()}/../eu.tfvars\"]\n  }\n}\n";
    let root =
        "locals {\n  x = file(\"common.txt\")\n  y = read_tfvars_file(\"nowhere.tfvars\")\n}\n";
    let directory = project(&[
        ("live/root.hcl", root),
        ("live/common.txt", ""),
        ("live/env.hcl", "locals {\n  z = file(\"z.txt\")\n}\n"),
        ("live/prod/app/stack.tm", STACK),
        ("live/prod/app/terragrunt.hcl", own),
        (
            "modules/app/main.tf",
            "module \"lib\" {\n  source = \"../lib\"\n}\nlocals {\n  x = file(\"bare\")\n}\n",
        ),
        ("modules/lib/main.tf", ""),
        (
            "off/orch.tm",
            "orch {\n  root = true\n  config {\n    change_detection {\n      terragrunt {\n        enabled = \"off\"\n      }\n    }\n  }\n}\n",
        ),
        ("off/stack.tm", STACK),
        ("off/terragrunt.hcl", "terraform {\n  source = \"./x\"\n}\n"),
    ]);
    insta::assert_snapshot!(list(&directory, "/live/prod/app", &["modules/lib/x", "live/z.txt"]), @"
    /live/prod/app
    /modules/lib > terraform.source /live/prod/app/terragrunt.hcl:11 > ../lib /modules/app/main.tf:2 ! /modules/lib/x
    /live/root.hcl > include /live/prod/app/terragrunt.hcl:2
    /live/env.hcl > read_terragrunt_config /live/prod/app/terragrunt.hcl:5
    /live/prod/eu.tfvars > optional_var_files /live/prod/app/terragrunt.hcl:13
    /modules/app > terraform.source /live/prod/app/terragrunt.hcl:11
    /live/common.txt > include /live/prod/app/terragrunt.hcl:2 > file /live/root.hcl:2
    /live/prod/app/nowhere.tfvars > include /live/prod/app/terragrunt.hcl:2 > read_tfvars_file /live/root.hcl:3
    /live/nowhere.tfvars > include /live/prod/app/terragrunt.hcl:2 > read_tfvars_file /live/root.hcl:3
    /live/z.txt > read_terragrunt_config /live/prod/app/terragrunt.hcl:5 > file /live/env.hcl:2 ! /live/z.txt
    ");
    insta::assert_snapshot!(list(&directory, "/live/prod/app", &["live/prod/app/nowhere.tfvars", "live/prod/env.hcl", "modules/app/x"]), @"
    /live/prod/app ! /live/prod/app/nowhere.tfvars
    /modules/lib > terraform.source /live/prod/app/terragrunt.hcl:11 > ../lib /modules/app/main.tf:2
    /live/root.hcl > include /live/prod/app/terragrunt.hcl:2
    /live/env.hcl > read_terragrunt_config /live/prod/app/terragrunt.hcl:5
    /live/prod/env.hcl > find_in_parent_folders /live/prod/app/terragrunt.hcl:5 ! /live/prod/env.hcl
    /live/prod/eu.tfvars > optional_var_files /live/prod/app/terragrunt.hcl:13
    /modules/app > terraform.source /live/prod/app/terragrunt.hcl:11 ! /modules/app/x
    /live/common.txt > include /live/prod/app/terragrunt.hcl:2 > file /live/root.hcl:2
    /live/prod/app/nowhere.tfvars > include /live/prod/app/terragrunt.hcl:2 > read_tfvars_file /live/root.hcl:3 ! /live/prod/app/nowhere.tfvars
    /live/nowhere.tfvars > include /live/prod/app/terragrunt.hcl:2 > read_tfvars_file /live/root.hcl:3
    /live/z.txt > read_terragrunt_config /live/prod/app/terragrunt.hcl:5 > file /live/env.hcl:2
    ");
    let paths = [
        "live",
        "live/nowhere.tfvars",
        "live/prod/eu.tfvars/below",
        "live/prod/root.hcl",
        "live/prod/vpc/x",
        "live/root.hcl",
        "modules",
        "modules/lib/x",
        "bare",
    ];
    check_pairs(&directory, &paths);
    let root = dunce::canonicalize(directory.path().join("off")).unwrap();
    let (project, listing) = load(&root);
    let stack = project.stacks.at("/").only().unwrap();
    let inputs = inputs_of(&project, &listing, None, stack, &mut Problems::default()).unwrap();
    assert_eq!(inputs.len(), 1);
}

#[test]
fn a_module_that_is_not_there_is_an_input_in_the_project_and_a_problem_once() {
    let directory = project(&[
        ("s/stack.tm", STACK),
        (
            "s/main.tf",
            "module \"a\" {\n  source = \"../a\"\n}\nmodule \"out\" {\n  source = \"../../out\"\n}\n",
        ),
    ]);
    let (lines, n_problems) = inputs(&directory, "/s", &["a/deleted.tf"]);
    insta::assert_snapshot!(lines, @"
    /s
    /a > ../a /s/main.tf:2 ! /a/deleted.tf
    ");
    assert_eq!(n_problems, 2);
}

#[test]
fn a_long_chain_is_cut_and_many_long_chains_are_cut_short() {
    let mut texts = Vec::new();
    for n in 0..3000 {
        let path = format!("m/{n}/main.tf");
        texts.push((
            path,
            format!("module \"m\" {{\n  source = \"../{}\"\n}}\n", n + 1),
        ));
    }
    let mut all: Vec<(&str, &str)> = vec![
        ("s/stack.tm", STACK),
        ("s/main.tf", "module \"m\" {\n  source = \"../m/0\"\n}\n"),
        ("m/3000/main.tf", ""),
    ];
    all.extend(texts.iter().map(|(path, text)| (&**path, &**text)));
    let directory = project(&all);
    let root = dunce::canonicalize(directory.path()).unwrap();
    let (project, listing) = load(&root);
    let stack = project.stacks.at("/s").only().unwrap();
    let files = files(&["m/3000/x"]);
    let inputs = inputs_of(
        &project,
        &listing,
        Some(&files),
        stack,
        &mut Problems::default(),
    )
    .unwrap();
    assert_eq!(inputs.len(), 3002);
    let lengths = [0, 1, 200, 400, 3001].map(|index: usize| inputs[index].chain.len());
    assert_eq!(lengths, [0, 1, 200, 256, 2]);
    let last = inputs.last().unwrap();
    assert_eq!(
        way(&last.chain),
        " > ../m/0 /s/main.tf:2 > ../3000 /m/2999/main.tf:2"
    );
    assert_eq!(last.change.as_ref().unwrap().path.as_str(), "/m/3000/x");
}
