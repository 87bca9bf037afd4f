//! Which commands look at git, and in which repositories.

use super::*;

#[test]
fn base_without_changed_needs_no_git() {
    let repositories = two_branches();
    let project = repositories.clone("");
    project.write(
        "env.tm",
        "orch {\nconfig {\nrun {\nenv {\nX = \"x\"\n}\n}\n}\n}\n",
    );
    fs::remove_dir_all(project.path(".git/objects")).unwrap();
    fs::create_dir(project.path(".git/objects")).unwrap();
    project.write(".git/HEAD", "garbage");
    project.write(".git/index", "garbage");
    project.write(".git/config", "[garbage");
    for arguments in [
        "list",
        "list --why",
        "run -X -- git --version",
        "run --dry-run -- git --version",
        "graph",
        "env",
        "validate",
    ] {
        let output = project.orch(arguments);
        assert_eq!(output.code(), 0, "{output}");
    }
    let output = project.orch(LIST);
    assert_eq!(output.code(), 4, "{output}");
}

#[test]
fn base_without_changed_opens_no_repository() {
    let repositories = two_branches();
    let project = repositories.clone("");
    let opens = |arguments: &str| {
        let said = project.orch_in_ci(arguments, &[("ORCH_LOG", "orch::git=debug")]);
        said.stderr.contains("repository opened")
    };
    assert!(opens(LIST));
    for arguments in [
        "list",
        "run -X --dry-run -- git --version", // a run notes the commit
        "graph",
        "env",
        "validate",
    ] {
        assert!(!opens(arguments), "{arguments}");
    }
}

#[test]
fn base_is_the_same_for_run_and_list() {
    let repositories = two_branches();
    let author = repositories.author();
    author.write("d/stack.tm", "stack {\n wants = [\"/c\"]\n}\n");
    author.commit("third", "a d");
    let project = repositories.clone("");
    assert_snapshot!(project.orch(LIST), @"
    a
    c
    d
    [stderr]
    base <second>: first parent of HEAD, which is at origin/main
    ");
    assert_snapshot!(project.orch("run --changed --dry-run -- git status"), @"
    /a: git status
    /c: git status
    /d: git status
    [stderr]
    base <second>: first parent of HEAD, which is at origin/main
    ");
    for command in ["graph", "env"] {
        let output = project.orch(&format!("{command} --changed"));
        assert_eq!(output.code(), 0, "{output}");
        assert!(output.stderr.contains("base "), "{output}");
    }
}

#[test]
fn base_refusal_runs_nothing() {
    let repositories = Repositories::new();
    let project = repositories.clone("");
    assert_snapshot!(project.orch("run --changed -- git init elsewhere"), @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD is the first commit of the repository and has no parent to compare with
      = help: remove `--changed` to select all stacks, or name a base with `--base REV`
    [exit status 4]
    ");
    assert!(!project.path("a/elsewhere").exists());
}

#[test]
fn base_refusal_prints_one_json_document() {
    let repositories = two_branches();
    let project = repositories.clone("--depth=1");
    for command in ["list", "graph", "env"] {
        let output = project.orch(&format!("{command} --changed --format json"));
        assert_eq!(output.code(), 4, "{output}");
        let refused = &output.data()["refused"];
        assert!(
            refused["problem"].as_str().unwrap().contains("shallow"),
            "{output}"
        );
        assert!(
            refused["command"]
                .as_str()
                .unwrap()
                .starts_with("git fetch"),
            "{output}"
        );
    }
    assert_snapshot!(project.orch("list --changed --format json"), @r#"
    {"format":1,"refused":{"problem":"commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main","command":"git fetch --depth=1 origin <start>"},"stacks":[],"base":null,"removed":[],"changed_outside":null,"valid":true,"diagnostics":[],"errors":[]}
    [stderr]
    error: the changes are unknown
      caused by: commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main
      = help: run `git fetch --depth=1 origin <start>`, or add `--fetch`
    [exit status 4]
    "#);
}

#[test]
fn base_ignores_git_variables_of_a_hook() {
    let repositories = two_branches();
    let project = repositories.clone("--depth=1");
    let variables = [("GIT_DIR", "/nowhere"), ("GIT_INDEX_FILE", "/nowhere")];
    let output = project.orch_in_ci("list --changed --fetch", &variables);
    assert_snapshot!(output.without_git(), @"
    b
    [stderr]
    note: running `git fetch --depth=1 origin <start>`
    base <start>: first parent of HEAD, which is at origin/main
    ");
}

#[cfg(unix)]
#[test]
fn base_is_found_for_a_project_behind_a_link() {
    let repositories = two_branches();
    let project = repositories.clone("");
    std::os::unix::fs::symlink(project.path(""), project.path("../link")).unwrap();
    let output = project.orch("-C ../link list --changed");
    assert_snapshot!(output, @"
    b
    [stderr]
    base <start>: first parent of HEAD, which is at origin/main
    ");
}

#[test]
fn base_is_found_for_a_project_in_a_subdirectory() {
    let repositories = Repositories::new();
    let author = repositories.author();
    author.write("part/orch.orch.hcl", "orch { root = true }\n");
    author.write("part/x/stack.tm", "stack {}\n");
    author.write("part/y/stack.tm", "stack {}\n");
    author.commit("second", "a");
    author.commit("third", "b part/x");
    let project = repositories.clone("");
    assert_snapshot!(project.orch("-C part list --changed"), @"
    x
    [stderr]
    base <second>: first parent of HEAD, which is at origin/main
    note: files of the repository outside of the project have changed; they select no stacks
    ");
}

#[test]
fn base_is_found_in_a_linked_worktree() {
    let repositories = two_branches();
    let project = repositories.clone("--depth=1 --no-single-branch");
    project.git("worktree add -q -b work ../work origin/feature");
    let work = repositories.at("work");
    let refused = work.orch(LIST);
    assert_snapshot!(refused, @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD and origin/main have no common commit in this shallow clone
      = help: run `git fetch --unshallow origin <feature> <second>`, or add `--fetch`
    [exit status 4]
    ");
    mend(&work, &refused);
    assert_snapshot!(work.orch(LIST), @"
    a
    [stderr]
    base <start>: merge base of HEAD and origin/main
    ");
}

#[test]
fn base_fetch_works_in_a_linked_worktree() {
    let repositories = two_branches();
    let project = repositories.clone("--depth=1 --no-single-branch");
    project.git("worktree add -q -b work ../work origin/feature");
    let output = repositories.at("work").orch("list --changed --fetch");
    assert_snapshot!(output.without_git(), @"
    a
    [stderr]
    note: running `git fetch --deepen=50 origin <feature> <second>`
    base <start>: merge base of HEAD and origin/main
    ");
}

#[test]
fn base_falls_back_to_the_git_program() {
    let repositories = Repositories::with("--object-format=sha256");
    let author = repositories.author();
    author.git("checkout -q -b feature");
    author.commit("feature", "a");
    author.git("checkout -q main");
    author.commit("second", "b");
    let project = repositories.clone("--depth=1 --no-single-branch");
    let output = project.orch("list --changed --fetch");
    assert_snapshot!(output.without_git(), @"
    b
    [stderr]
    note: running `git fetch --depth=1 origin <start>`
    base <start>: first parent of HEAD, which is at origin/main
    ");
    project.git("checkout -q -b feature origin/feature");
    let refused = project.orch(LIST);
    assert_snapshot!(refused, @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD and origin/main have no common commit in this shallow clone
      = help: run `git fetch --unshallow origin <feature> <second>`, or add `--fetch`
    [exit status 4]
    ");
    mend(&project, &refused);
    assert_snapshot!(project.orch(LIST), @"
    a
    [stderr]
    base <start>: merge base of HEAD and origin/main
    ");
}

#[test]
fn base_in_a_partial_clone_fetches_missing_objects() {
    let repositories = two_branches();
    let author = repositories.author();
    author.git("rm -q -r d");
    author.commit("third", "c");
    repositories
        .at("remote")
        .git("config uploadpack.allowFilter true");
    let list = |filter: &str| {
        let project = repositories.clone(&format!("--filter={filter}"));
        let said = project.orch(LIST).to_string();
        fs::remove_dir_all(project.path("")).unwrap();
        said
    };
    let without_trees = list("tree:0");
    assert_snapshot!(without_trees, @"
    c
    [stderr]
    base <second>: first parent of HEAD, which is at origin/main
    note: stack `/d` was removed since the base; nothing is run for it
    ");
    assert_eq!(list("blob:none"), without_trees);
}

#[test]
fn base_without_the_git_program_is_found_but_not_fetched() {
    let repositories = two_branches();
    let project = repositories.clone("--depth=1 --no-single-branch");
    let no_programs = [("PATH", "/nowhere")];
    assert_snapshot!(project.orch_in_ci("list --changed --base origin/feature", &no_programs), @"
    a
    b
    [stderr]
    base <feature>: --base origin/feature
    ");
    assert_snapshot!(project.orch_in_ci(LIST, &no_programs), @"
    [stderr]
    error: the changes are unknown
      caused by: commit <start> is not in this shallow clone: first parent of HEAD, which is at origin/main
      = help: run `git fetch --depth=1 origin <start>`, or add `--fetch`
    [exit status 4]
    ");
    let output = project.orch_in_ci("list --changed --fetch", &no_programs);
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("failed to start `git`"), "{output}");
    project.git("checkout -q -b feature origin/feature");
    assert_snapshot!(project.orch_in_ci(LIST, &no_programs), @"
    [stderr]
    error: the changes are unknown
      caused by: HEAD and origin/main have no common commit in this shallow clone
      = help: run `git fetch --unshallow origin <feature> <second>`, or add `--fetch`
    [exit status 4]
    ");
}
