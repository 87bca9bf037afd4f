//! `orch export`: a run as the pipeline of an engine, and its work order.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use orch::export::{OrderedJob, OrderedTask, WorkOrder};
use serde_json::Value;

use crate::support::{Output, Repository, Sandbox, skipped};

const SHOP: &str = "
    app/api after /db
    app/web after /app/api
    db
    dns
    mail after /db";

/// The templates of the tests, by engine.
const TEMPLATES: [(&str, &str); 3] = [
    (
        "gitlab",
        "image: terraform\ntags: [infra]\nvariables: {GIT_DEPTH: '0'}\nneeds: [{pipeline: $PARENT, job: plan}]\n",
    ),
    (
        "github",
        "workflow: {on: {push: {branches: [main]}}}\nruns-on: ubuntu-latest\npermissions: {contents: read}\nenv: {TF_IN_AUTOMATION: '1'}\nsteps: [{uses: actions/checkout@v4}]\n",
    ),
    (
        "buildkite",
        "agents: {queue: infra}\nretry: {automatic: [{exit_status: -1, limit: 2}]}\n",
    ),
];

/// A state that other machines see.
const STATE: &str = "orch {\n  config {\n    state {\n      project = \"shop\"\n      backend \"local\" {\n        path = \"../shared/state\"\n      }\n    }\n  }\n}\n";

fn shop() -> Sandbox {
    let sandbox = Sandbox::layout(SHOP);
    sandbox.write("/state.orch.hcl", STATE);
    for (engine, text) in TEMPLATES {
        sandbox.write(&format!("/{engine}.yml"), text);
    }
    sandbox
}

/// The pipeline for an engine without its seal.
fn exported(sandbox: &Sandbox, arguments: &str) -> String {
    let output = sandbox.orch(&format!("export {arguments}"));
    assert_eq!(output.code(), 0, "{output}");
    let lines = output
        .stdout
        .lines()
        .map(|line| match line.split_once("sha256:") {
            Some((before, _)) => format!("{before}sha256:…\n"),
            None => format!("{line}\n"),
        });
    lines.collect()
}

fn order(sandbox: &Sandbox, file: &str) -> WorkOrder {
    WorkOrder::parse(sandbox.read(file).as_bytes()).unwrap()
}

#[test]
fn export_gitlab_writes_a_child_pipeline() {
    let sandbox = shop();
    let pipeline = exported(
        &sandbox,
        "gitlab --work-order o.json --jobs 2 --template gitlab.yml --on-error skip-dependents -- terraform plan",
    );
    assert_snapshot!(pipeline, @r#"
    # Written by `orch export`; do not edit it.
    stages:
      - "orch"
    .orch:
      image: "terraform"
      tags:
        - "infra"
      stage: "orch"
      variables:
        GIT_DEPTH: "0"
        ORCH_ORDER: "o.json"
      when: "always"
    db-b084f664:
      extends: ".orch"
      needs:
        - pipeline: "$PARENT"
          job: "plan"
      script:
        - "orch job db-b084f664 --work-order \"$ORCH_ORDER\""
    dns-cdf1ace3:
      extends: ".orch"
      needs:
        - pipeline: "$PARENT"
          job: "plan"
      script:
        - "orch job dns-cdf1ace3 --work-order \"$ORCH_ORDER\""
    app-web-5fd2d3df:
      extends: ".orch"
      needs:
        - job: "db-b084f664"
          artifacts: false
        - pipeline: "$PARENT"
          job: "plan"
      script:
        - "orch job app-web-5fd2d3df --work-order \"$ORCH_ORDER\""
    mail-aa537b28:
      extends: ".orch"
      needs:
        - job: "db-b084f664"
          artifacts: false
        - job: "dns-cdf1ace3"
          artifacts: false
        - pipeline: "$PARENT"
          job: "plan"
      script:
        - "orch job mail-aa537b28 --work-order \"$ORCH_ORDER\""
    finish:
      extends: ".orch"
      needs:
        - job: "app-web-5fd2d3df"
          artifacts: false
        - job: "mail-aa537b28"
          artifacts: false
        - pipeline: "$PARENT"
          job: "plan"
      script:
        - "orch finish --work-order \"$ORCH_ORDER\""
      when: "always"
    # orch export 1 sha256:…
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a workflow is long")]
fn export_github_writes_a_workflow() {
    let sandbox = shop();
    let pipeline = exported(
        &sandbox,
        "github --work-order o.json --jobs 2 --template github.yml --on-error skip-dependents -- terraform plan",
    );
    assert_snapshot!(pipeline, @r#"
    # Written by `orch export`; do not edit it.
    "on":
      push:
        branches:
          - "main"
    jobs:
      db-b084f664:
        runs-on: "ubuntu-latest"
        permissions:
          contents: "read"
        env:
          TF_IN_AUTOMATION: "1"
          ORCH_ORDER: "o.json"
        steps:
          - uses: "actions/checkout@v4"
          - run: "orch job db-b084f664 --work-order \"$ORCH_ORDER\""
      dns-cdf1ace3:
        runs-on: "ubuntu-latest"
        permissions:
          contents: "read"
        env:
          TF_IN_AUTOMATION: "1"
          ORCH_ORDER: "o.json"
        steps:
          - uses: "actions/checkout@v4"
          - run: "orch job dns-cdf1ace3 --work-order \"$ORCH_ORDER\""
      app-web-5fd2d3df:
        needs:
          - "db-b084f664"
        runs-on: "ubuntu-latest"
        permissions:
          contents: "read"
        env:
          TF_IN_AUTOMATION: "1"
          ORCH_ORDER: "o.json"
        steps:
          - uses: "actions/checkout@v4"
          - run: "orch job app-web-5fd2d3df --work-order \"$ORCH_ORDER\""
        if: "${{ !cancelled() }}"
      mail-aa537b28:
        needs:
          - "db-b084f664"
          - "dns-cdf1ace3"
        runs-on: "ubuntu-latest"
        permissions:
          contents: "read"
        env:
          TF_IN_AUTOMATION: "1"
          ORCH_ORDER: "o.json"
        steps:
          - uses: "actions/checkout@v4"
          - run: "orch job mail-aa537b28 --work-order \"$ORCH_ORDER\""
        if: "${{ !cancelled() }}"
      finish:
        needs:
          - "app-web-5fd2d3df"
          - "mail-aa537b28"
        runs-on: "ubuntu-latest"
        permissions:
          contents: "read"
        env:
          TF_IN_AUTOMATION: "1"
          ORCH_ORDER: "o.json"
        steps:
          - uses: "actions/checkout@v4"
          - run: "orch finish --work-order \"$ORCH_ORDER\""
        if: "${{ always() }}"
    # orch export 1 sha256:…
    "#);
    let pipeline = exported(
        &sandbox,
        "github --work-order o.json --workers 3 --template github.yml -- terraform plan",
    );
    assert_snapshot!(pipeline, @r#"
    # Written by `orch export`; do not edit it.
    "on":
      push:
        branches:
          - "main"
    jobs:
      work:
        strategy:
          fail-fast: false
          matrix:
            worker:
              - 1
              - 2
              - 3
        runs-on: "ubuntu-latest"
        permissions:
          contents: "read"
        env:
          TF_IN_AUTOMATION: "1"
          ORCH_ORDER: "o.json"
        steps:
          - uses: "actions/checkout@v4"
          - run: "orch work --work-order \"$ORCH_ORDER\""
      finish:
        needs:
          - "work"
        runs-on: "ubuntu-latest"
        permissions:
          contents: "read"
        env:
          TF_IN_AUTOMATION: "1"
          ORCH_ORDER: "o.json"
        steps:
          - uses: "actions/checkout@v4"
          - run: "orch finish --work-order \"$ORCH_ORDER\""
        if: "${{ always() }}"
    # orch export 1 sha256:…
    "#);
    assert!(order(&sandbox, "/o.json").jobs.is_empty());
}

#[test]
fn export_buildkite_writes_steps() {
    let sandbox = shop();
    let pipeline = exported(
        &sandbox,
        "buildkite --work-order o.json --jobs 2 --template buildkite.yml -- terraform plan",
    );
    assert_snapshot!(pipeline, @r#"
    # Written by `orch export`; do not edit it.
    steps:
      - key: "db-b084f664"
        label: "db-b084f664"
        command: "orch job db-b084f664 --work-order \"$$ORCH_ORDER\""
        agents:
          queue: "infra"
        retry:
          automatic:
            - exit_status: -1
              limit: 2
        env:
          ORCH_ORDER: "o.json"
      - key: "dns-cdf1ace3"
        label: "dns-cdf1ace3"
        command: "orch job dns-cdf1ace3 --work-order \"$$ORCH_ORDER\""
        agents:
          queue: "infra"
        retry:
          automatic:
            - exit_status: -1
              limit: 2
        env:
          ORCH_ORDER: "o.json"
      - key: "app-web-5fd2d3df"
        label: "app-web-5fd2d3df"
        command: "orch job app-web-5fd2d3df --work-order \"$$ORCH_ORDER\""
        depends_on:
          - step: "db-b084f664"
            allow_failure: false
        agents:
          queue: "infra"
        retry:
          automatic:
            - exit_status: -1
              limit: 2
        env:
          ORCH_ORDER: "o.json"
      - key: "mail-aa537b28"
        label: "mail-aa537b28"
        command: "orch job mail-aa537b28 --work-order \"$$ORCH_ORDER\""
        depends_on:
          - step: "db-b084f664"
            allow_failure: false
          - step: "dns-cdf1ace3"
            allow_failure: false
        agents:
          queue: "infra"
        retry:
          automatic:
            - exit_status: -1
              limit: 2
        env:
          ORCH_ORDER: "o.json"
      - key: "finish"
        label: "finish"
        command: "orch finish --work-order \"$$ORCH_ORDER\""
        depends_on:
          - step: "app-web-5fd2d3df"
            allow_failure: true
          - step: "mail-aa537b28"
            allow_failure: true
        agents:
          queue: "infra"
        retry:
          automatic:
            - exit_status: -1
              limit: 2
        env:
          ORCH_ORDER: "o.json"
    # orch export 1 sha256:…
    "#);
}

#[test]
fn export_make_writes_a_makefile() {
    let sandbox = shop();
    let pipeline = exported(
        &sandbox,
        "make --work-order o.json --match 'app/**' --match db -- terraform plan",
    );
    assert_snapshot!(pipeline, @r#"
    # Written by `orch export`; do not edit it.
    export ORCH_ORDER := o.json

    .PHONY: finish db-b084f664

    finish: db-b084f664
    	@orch finish --work-order "$$ORCH_ORDER"

    db-b084f664:
    	@orch job db-b084f664 --work-order "$$ORCH_ORDER"
    # orch export 1 sha256:…
    "#);
}

#[test]
fn export_gives_a_job_the_stacks_that_took_long_together() {
    let sandbox = Sandbox::layout("a\nb\nc\nd");
    let seconds = |stack: &str, seconds: &str| sandbox.write(&format!("/{stack}/takes"), seconds);
    for stack in ["a", "b", "c"] {
        seconds(stack, "0.05");
    }
    seconds("d", "0.5");
    let command = "-- sh -c 'sleep $(cat takes)'";
    assert_eq!(sandbox.orch(&format!("run -q {command}")).code(), 0);
    let stacks = |arguments: &str| {
        exported(
            &sandbox,
            &format!("make --work-order o.json --jobs 2 {arguments}"),
        );
        let order = order(&sandbox, "/o.json");
        let jobs = order.jobs.iter().map(|job| {
            let stacks = job
                .turns
                .iter()
                .map(|&turn| order.turns[turn].stack.as_str());
            stacks.collect::<Vec<_>>().join(" ")
        });
        jobs.collect::<Vec<_>>()
    };
    assert_eq!(stacks(command), ["/d", "/a /b /c"]);
    assert_eq!(stacks("-- true"), ["/a /c", "/b /d"], "nothing is known");
}

/// The words of the command and the paths are in the work order alone.
#[test]
fn export_keeps_unusual_names_and_words_out_of_the_pipeline() {
    let sandbox = shop();
    for name in [
        "a b",
        "$(touch owned)",
        "${{ github.token }}",
        "it's \"so\"",
        "%{x}\nb",
    ] {
        sandbox.write(&format!("/odd/{name}/stack.tm"), "stack {}\n");
    }
    let word = "it's $HOME `id` \"\\\n${{ secrets.x }}";
    for engine in ["gitlab", "github", "buildkite", "make"] {
        let template = format!("--template {engine}.yml");
        let template = if engine == "make" { "" } else { &template };
        let output = sandbox.orch_with(
            &format!("export {engine} --work-order o.json --match 'odd/**' {template} -- sh -c"),
            |orch| _ = orch.arg(word),
        );
        assert_eq!(output.code(), 0, "{output}");
        for part in ["owned)", "github.token", "so\"", "%{x}", "HOME", "secrets"] {
            assert!(!output.stdout.contains(part), "{part}: {}", output.stdout);
        }
        let order = order(&sandbox, "/o.json");
        assert_eq!(order.turns.len(), 5);
        let OrderedTask::Command { words, .. } = &order.task else {
            panic!("{:?}", order.task);
        };
        assert_eq!(words[2].0.to_str(), Some(word));
    }
    for order in ["'$(id).json'", "'a\"b'", "'#.json'"] {
        let output = sandbox.orch(&format!("export make --work-order {order} -- true"));
        assert_eq!(output.code(), 64, "{output}");
    }
}

#[test]
fn export_is_the_same_each_time_but_for_the_id_of_the_run() {
    let sandbox = shop();
    let export = || exported(&sandbox, "gitlab --work-order o.json -- true");
    let first = (export(), order(&sandbox, "/o.json"));
    let second = (export(), order(&sandbox, "/o.json"));
    assert_eq!(first.0, second.0);
    assert_ne!(first.1.run, second.1.run);
    assert_ne!(first.1.id(), second.1.id());
    let without_run = |order: &WorkOrder| {
        let mut json: Value = serde_json::from_str(&order.to_text()).unwrap();
        let removed = ["run", "seal"].map(|key| json.as_object_mut().unwrap().remove(key));
        assert!(removed.iter().all(Option::is_some));
        json
    };
    assert_eq!(without_run(&first.1), without_run(&second.1));
}

#[test]
fn export_records_the_run_in_the_work_order() {
    let repository = Repository::of(shop());
    exported(
        &repository,
        "gitlab --work-order o.json -j 4 --reverse --on-error continue --retries 2 --retry-on-exit 7 --no-record -- terraform destroy",
    );
    let order = order(&repository, "/o.json");
    assert_eq!(
        order.commit.as_deref(),
        Some(repository.git("rev-parse HEAD").trim())
    );
    let json: Value = serde_json::from_str(&order.to_text()).unwrap();
    assert_snapshot!(serde_json::to_string_pretty(&json["task"]).unwrap(), @r#"
    {
      "command": {
        "reverse": true,
        "words": [
          "terraform",
          "destroy"
        ]
      }
    }
    "#);
    assert_eq!(json["settings"]["jobs"], 4);
    assert_eq!(
        json["settings"]["on_error"], "skip-dependents",
        "as for a run in reverse"
    );
    assert_eq!(json["settings"]["recording"], "never");
    let stacks: Vec<&str> = order.turns.iter().map(|turn| turn.stack.as_str()).collect();
    assert_eq!(stacks, ["/mail", "/dns", "/app/web", "/app/api", "/db"]);
    let before = order.predecessors().of(4);
    assert_eq!(before.iter().map(|it| it.turn).collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn export_of_a_plan_has_its_operations() {
    let sandbox = shop();
    sandbox.remove("/state.orch.hcl");
    sandbox.write(
        "/driver.orch.hcl",
        "driver \"fake\" {\n  plan = [\"sh\", \"-c\", \"exit 2\"]\n  apply = [\"true\"]\n  destroy = [\"true\"]\n}\norch {\n  config {\n    driver = \"fake\"\n  }\n}\n",
    );
    assert_eq!(sandbox.orch("plan -o plan").code(), 0);
    exported(&sandbox, "make plan --work-order o.json");
    let order = order(&sandbox, "/o.json");
    let json: Value = serde_json::from_str(&order.to_text()).unwrap();
    assert_eq!(json["task"]["plan"]["file"], "plan");
    assert_eq!(json["task"]["plan"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(json["settings"]["on_error"], "skip-dependents");
    assert_eq!(
        json["turns"][0],
        serde_json::json!({"stack": "/db", "operation": "apply"})
    );
    assert_eq!(order.turns.len(), 5);
    // What is destroyed goes in the other direction.
    assert_eq!(sandbox.orch("plan --destroy -o plan").code(), 0);
    exported(&sandbox, "make plan --work-order o.json");
    let order = crate::export::order(&sandbox, "/o.json");
    assert_eq!(order.turns[4].key(), "/db destroy");
    std::fs::remove_dir_all(sandbox.path("/dns")).unwrap();
    let output = sandbox.orch("export make plan --work-order o.json");
    assert_eq!(output.code(), 4, "{output}");
    assert!(
        output
            .stderr
            .contains("`/dns`, which is not in the project"),
        "{output}"
    );
}

/// Generated files in the project once made safeguards refuse each run.
#[test]
fn export_writes_files_that_no_safeguard_counts() {
    let repository = Repository::of(shop());
    let run = || repository.orch("run -q -- true");
    assert_eq!(
        repository
            .orch("export gitlab -o app/api/pipeline.yml -- true")
            .code(),
        0
    );
    assert_eq!(repository.orch("export make -o orch.mk -- true").code(), 0);
    assert!(repository.path("/app/api/pipeline.order.json").exists());
    assert_eq!(run().code(), 0);
    let changed = repository.orch("list --changed --base base");
    assert_eq!((changed.code(), &*changed.stdout), (0, ""), "{changed}");
    // Neither if they are committed and written again.
    repository.commit();
    assert_eq!(repository.orch("export make -o orch.mk -- false").code(), 0);
    assert_eq!(
        repository
            .orch("export gitlab -o app/api/pipeline.yml --jobs 1 -- false")
            .code(),
        0
    );
    assert!(!repository.git("status --porcelain").is_empty());
    assert_eq!(run().code(), 0);
    // Whatever else has changed counts.
    for file in ["/orch.mk", "/app/api/pipeline.order.json"] {
        let text = repository.read(file);
        repository.write(file, text.replacen('a', "b", 1));
        assert_eq!(run().code(), 4, "{file}");
        repository.write(file, text);
    }
    assert_eq!(run().code(), 0);
    repository.write("/new", "# orch export 1 sha256:0000\n");
    assert_eq!(run().code(), 4);
}

#[cfg(unix)]
#[test]
fn export_writes_to_a_pipe_and_does_not_replace_it() {
    let sandbox = shop();
    let pipe = sandbox.path("/pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let output = sandbox.orch("export make --work-order pipe -- true");
    assert_eq!(output.code(), 0, "{output}");
    assert!(pipe.symlink_metadata().is_ok_and(|it| !it.is_file()));
    assert!(reader.join().unwrap().contains("\"turns\""));
}

#[test]
fn export_refuses_what_no_engine_would_accept() {
    let sandbox = shop();
    let problem = |arguments: &str| {
        let output = sandbox.orch(&format!("export {arguments}"));
        format!("{}: {}", output.code(), output.stderr)
    };
    sandbox.write("/manual.yml", "when: manual\n");
    sandbox.write("/broken.yml", "a: [\n");
    let problems = [
        problem("gitlab -- true"),
        problem("gitlab --work-order o.json"),
        problem("gitlab plan --work-order o.json --changed"),
        problem("gitlab --work-order o.json --template manual.yml -- true"),
        problem("gitlab --work-order o.json --template broken.yml -- true"),
        problem("gitlab --work-order o.json --template none.yml -- true"),
        problem("github --work-order o.json -- true"),
        problem("github --work-order o.json --template github.yml --workers 300 -- true"),
        problem("make --work-order none/o.json -- true"),
        problem("make none --work-order o.json"),
    ];
    assert_snapshot!(problems.join("\n"), @"
    64: error: the following required arguments were not provided:
      --work-order <FILE>

    Usage: orch export [OPTIONS] ENGINE FILE
           orch export [OPTIONS] ENGINE -- COMMAND…

    For more information, try '--help'.

    64: error: the following required arguments were not provided:
      <COMMAND>...

    Usage: orch export [OPTIONS] ENGINE FILE
           orch export [OPTIONS] ENGINE -- COMMAND…

    For more information, try '--help'.

    64: error: the argument '[FILE]' cannot be used with '--changed'

    Usage: orch export [OPTIONS] ENGINE FILE
           orch export [OPTIONS] ENGINE -- COMMAND…

    For more information, try '--help'.

    3: error: `manual.yml` cannot be used as a template
      caused by: `when` cannot be set: orch sets it for each job

    3: error: `broken.yml` cannot be used as a template
      caused by: it is not valid YAML: did not find expected node content at line 2 column 1, while parsing a flow node
      caused by: did not find expected node content at line 2 column 1, while parsing a flow node

    5: error: failed to read the template `none.yml`
      caused by: No such file or directory (os error 2)

    3: error: `runs-on` is missing: GitHub starts no job without it
      = help: write it to a file, and pass that with `--template`

    4: error: GitHub Actions accepts 256 jobs in a matrix, and this pipeline has 300 (limit as of 2026-11, https://docs.github.com/en/actions/reference/limits)
      = help: lower `--workers`, and raise `-j` instead

    5: note: 5 stacks in 4 jobs
    error: failed to write `none/o.json`
      caused by: the directory `none` does not exist

    5: error: `none` cannot be used as a plan
      caused by: failed to read `$ROOT/none`: No such file or directory (os error 2)
      = help: make a new plan with `orch plan -o FILE`
    ");
    let steps = "x".repeat(500_000);
    sandbox.write("/long.yml", format!("runs-on: {steps}\n"));
    assert_snapshot!(problem("github --work-order o.json --template long.yml -- true"), @"
    4: error: GitHub Actions accepts 500000 bytes in a file, and this pipeline has 2501064 (limit as of 2026-11, https://docs.github.com/en/actions/reference/limits)
      = help: use `--workers N`: equal workers in a matrix need one job; or shorten the template
    ");
}

#[test]
fn export_in_a_directory_of_the_repository_runs_jobs_there() {
    let repository = Repository::of(shop());
    let pipeline = exported(&repository, "gitlab --work-order o.json -- true");
    assert!(!pipeline.contains("ORCH_DIRECTORY"), "{pipeline}");
    let output = repository.orch_in("/app", "export gitlab --work-order o.json -- true");
    assert!(
        output.stdout.contains("ORCH_DIRECTORY: \"app\"\n"),
        "{output}"
    );
    assert!(
        output.stdout.contains(r#"orch -C \"$ORCH_DIRECTORY\" job"#),
        "{output}"
    );
    assert!(repository.path("/app/o.json").exists());
}

#[test]
fn export_splits_many_steps_into_files() {
    let names: Vec<String> = (0..600).map(|number| format!("s{number:03}")).collect();
    let sandbox = Sandbox::layout(&names.join("\n"));
    let output = sandbox.orch("export buildkite -o p.yml --jobs 600 -- true");
    assert_eq!(output.code(), 0, "{output}");
    let steps = |file: &str| sandbox.read(file).matches("- key: ").count();
    assert_eq!((steps("/p.yml"), steps("/p-2.yml")), (450, 151));
    assert!(sandbox.read("/p-2.yml").contains("key: \"finish\""));
    let output = sandbox.orch("export buildkite --work-order o.json --jobs 600 -- true");
    assert_eq!(output.code(), 4, "{output}");
}

/// Returns whether a program is there; says so if not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skipped(format!("`{program}` is not on the PATH"));
    }
    found
}

#[cfg(unix)]
#[test]
fn export_writes_a_makefile_that_make_runs_in_order() {
    if !has("make") {
        return;
    }
    let sandbox = shop();
    sandbox.write_program(
        "/bin/orch",
        "#!/bin/sh\necho \"begin $2 $ORCH_ORDER\" >> log\nsleep 0.05\necho \"end $2\" >> log\n[ ! -e fails ]\n",
    );
    let make = |arguments: &str| {
        let mut command = Command::new("make");
        sandbox.isolate(&mut command);
        let path = format!(
            "{}:{}",
            sandbox.path("/bin").display(),
            std::env::var("PATH").unwrap()
        );
        command
            .args(arguments.split(' '))
            .current_dir(sandbox.path("/"))
            .env("PATH", path);
        let output = command.output().unwrap();
        let log = sandbox.read("/log");
        _ = std::fs::remove_file(sandbox.path("/log"));
        (
            output.status.success(),
            log.lines().map(str::to_owned).collect::<Vec<_>>(),
        )
    };
    let jobs_in_order = |log: &[String], order: &WorkOrder| {
        let place = |line: String| log.iter().position(|it| it.starts_with(&line));
        for job in &order.jobs {
            for need in &job.needs {
                let (ended, begun) = (
                    place(format!("end {need}")),
                    place(format!("begin {} ", job.id)),
                );
                assert!(ended.is_some() && ended < begun, "{log:?}");
            }
        }
    };
    exported(
        &sandbox,
        "make --work-order o.json --on-error skip-dependents -- true",
    );
    assert_eq!(
        sandbox
            .orch("export make -o orch.mk --on-error skip-dependents -- true")
            .code(),
        0
    );
    let (is_success, log) = make("-k -j 4 -f orch.mk");
    let order = order(&sandbox, "/orch.order.json");
    assert!(
        is_success && log.iter().all(|line| !line.contains("o.json")),
        "{log:?}"
    );
    assert_eq!(log.len(), 2 * order.jobs.len() + 2);
    assert_eq!(log[log.len() - 2], "begin --work-order orch.order.json");
    jobs_in_order(&log, &order);
    // `orch` decides for each stack after a failure, unless the run stops.
    sandbox.write("/fails", "");
    let (is_success, log) = make("-k -j 4 -f orch.mk");
    assert!(
        !is_success && log.len() == 2 * order.jobs.len() + 2,
        "{log:?}"
    );
    assert_eq!(
        sandbox
            .orch("export make -o orch.mk --on-error stop -- true")
            .code(),
        0
    );
    let (is_success, log) = make("-k -j 4 -f orch.mk");
    assert!(!is_success && log.len() < 2 * order.jobs.len(), "{log:?}");
}

/// The pipelines of the tests, with the name of the schema of each.
fn pipelines(sandbox: &Sandbox) -> Vec<(&'static str, String)> {
    let names = [
        ("gitlab", "gitlab-ci"),
        ("github", "github-workflows"),
        ("buildkite", "buildkite"),
    ];
    let mut pipelines = Vec::new();
    for (engine, schema) in names {
        for shape in [
            "--jobs 2",
            "--jobs 60",
            "--workers 5",
            "--on-error skip-dependents",
            "--match none",
        ] {
            let arguments =
                format!("{engine} --work-order o.json --template {engine}.yml {shape} -- true");
            let output = sandbox.orch(&format!("export {arguments}"));
            assert_eq!(output.code(), 0, "{output}");
            let file = format!("/{engine}-{}.yml", pipelines.len());
            sandbox.write(&file, output.stdout);
            pipelines.push((schema, file));
        }
    }
    pipelines
}

#[test]
fn export_writes_pipelines_that_the_schemas_accept() {
    if !has("check-jsonschema") {
        return;
    }
    let sandbox = shop();
    for (schema, file) in pipelines(&sandbox) {
        let output = Command::new("check-jsonschema")
            .args(["--builtin-schema", &format!("vendor.{schema}")])
            .arg(sandbox.path(&file))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{file}: {text}\n{}",
            sandbox.read(&file)
        );
    }
}

#[test]
fn export_writes_workflows_that_actionlint_accepts() {
    if !has("actionlint") {
        return;
    }
    let sandbox = shop();
    for (_, file) in pipelines(&sandbox)
        .into_iter()
        .filter(|(schema, _)| schema.starts_with("github"))
    {
        let output = Command::new("actionlint")
            .arg(sandbox.path(&file))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{file}: {text}");
    }
}

#[test]
fn export_without_a_state_makes_the_engine_hand_on_results() {
    let sandbox = shop();
    sandbox.remove("/state.orch.hcl");
    sandbox.write(
        "/gitlab.yml",
        "artifacts: {paths: [plan.txt], expire_in: 1 day}\n",
    );
    sandbox.write("/buildkite.yml", "artifact_paths: plan.txt\n");
    let lines = |engine: &str, from: &str, n_lines: usize| -> String {
        let arguments = format!("{engine} --work-order o.json --template {engine}.yml -- true");
        let pipeline = exported(&sandbox, &arguments);
        let lines = pipeline.lines().skip_while(|line| !line.contains(from));
        lines.take(n_lines).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(lines("gitlab", "artifacts:", 8), @r#"
    artifacts:
      expire_in: "1 day"
      paths:
        - "plan.txt"
        - ".orch/state/*.orders/*"
        - ".orch/state/*.results/*/*"
      when: "always"
      access: "developer"
    "#);
    assert_snapshot!(lines("gitlab", "finish:", 8), @r#"
    finish:
      extends: ".orch"
      needs:
        - job: "app-api-e2017276"
          artifacts: true
        - job: "mail-aa537b28"
          artifacts: true
      script:
    "#);
    assert_snapshot!(lines("github", "upload-artifact", 6), @r#"
    uses: "actions/upload-artifact@v4"
    with:
      name: "orch-results-o-json-7a4055a3-db-b084f664-${{ github.run_attempt }}"
      path: ".orch/state/*.orders/*\n.orch/state/*.results/*/*"
      include-hidden-files: true
    continue-on-error: true
    "#);
    assert_snapshot!(lines("github", "download-artifact", 7), @r#"
    - uses: "actions/download-artifact@v4"
      with:
        pattern: "orch-results-o-json-7a4055a3-*"
        path: ".orch/state"
        merge-multiple: true
      continue-on-error: true
    - run: "orch finish --work-order \"$ORCH_ORDER\""
    "#);
    assert_snapshot!(lines("github", "orch finish", 6), @r#"
    - run: "orch finish --work-order \"$ORCH_ORDER\""
    - if: "${{ always() }}"
      uses: "actions/upload-artifact@v4"
      with:
        name: "orch-results-o-json-7a4055a3-finish-${{ github.run_attempt }}"
        path: ".orch/state/*.orders/*\n.orch/state/*.results/*/*"
    "#);
    assert_snapshot!(lines("buildkite", "artifact_paths:", 4), @r#"
    artifact_paths:
      - "plan.txt"
      - ".orch/state/*.orders/*"
      - ".orch/state/*.results/*/*"
    "#);
    assert_snapshot!(lines("buildkite", "artifact download", 2), @r#"
    - "buildkite-agent artifact download --include-retried-jobs \".orch/state/**/*\" . || echo \"no results were downloaded\" >&2"
    - "orch finish --work-order \"$$ORCH_ORDER\""
    "#);
    let make = exported(&sandbox, "make --work-order o.json -- true");
    assert!(!make.contains(".orch/state"), "{make}");
}

/// Runs the jobs of a pipeline, each on a machine of its own: a copy of the project, with the artifacts of the jobs that
/// it needs.
struct Machines<'s> {
    sandbox: &'s Sandbox,
    count: Cell<usize>,
}

impl Machines<'_> {
    fn artifacts(&self, job: &str) -> PathBuf {
        self.sandbox.outside().join(format!("artifacts-{job}"))
    }

    /// Returns a new machine, with the artifacts of these jobs.
    fn new_machine(&self, needs: &[String]) -> String {
        self.count.set(self.count.get() + 1);
        let machine = format!("machine{}", self.count.get());
        let place = self.sandbox.outside().join(&machine);
        copy(&self.sandbox.path("/"), &place);
        fs::create_dir_all(place.join(".orch/state")).unwrap();
        for need in needs {
            copy(&self.artifacts(need).join("."), &place.join(".orch/state"));
        }
        machine
    }

    /// Runs a job, and keeps its artifacts. A retry replaces them.
    fn run(&self, job: &OrderedJob) -> Output {
        let machine = self.new_machine(&job.needs);
        let output = self.sandbox.orch(&format!(
            "-C ../{machine} job {} --work-order p.order.json",
            job.id
        ));
        let artifacts = self.artifacts(&job.id);
        _ = fs::remove_dir_all(&artifacts);
        let state = self.sandbox.outside().join(machine).join(".orch/state");
        copy(&state, &artifacts);
        output
    }

    fn finish(&self, jobs: &[OrderedJob]) -> Output {
        let is_last = |job: &&OrderedJob| !jobs.iter().any(|it| it.needs.contains(&job.id));
        let last = jobs.iter().filter(is_last).map(|job| job.id.clone());
        let machine = self.new_machine(&last.collect::<Vec<_>>());
        self.sandbox.orch(&format!(
            "-C ../{machine} finish --work-order p.order.json --report ../report.json"
        ))
    }

    /// Returns the states of the stacks in the report of the last job.
    fn report(&self) -> Vec<(String, String)> {
        let report = fs::read(self.sandbox.outside().join("report.json")).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        let stacks = report["stacks"].as_array().unwrap().iter();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let states = stacks.map(|stack| (word(&stack["path"]), word(&stack["outcome"])));
        states.collect()
    }
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(status.unwrap().success());
}

#[test]
fn export_hands_on_results_without_a_state() {
    let sandbox = Sandbox::layout(SHOP);
    sandbox.write("/.gitignore", "fails\n");
    let repository = Repository::of(sandbox);
    let exported = repository.orch(
        "export gitlab -o p.yml --jobs 9 -- sh -c 'echo in $ORCH_STACK_PATH; test ! -e fails'",
    );
    assert_eq!(exported.code(), 0, "{exported}");
    let jobs = order(&repository, "/p.order.json").jobs.clone();
    let machines = Machines {
        sandbox: &repository,
        count: Cell::new(0),
    };

    // What runs after a failed stack is skipped, whatever the engine starts.
    repository.write("/db/fails", "");
    let mut has_run = BTreeSet::new();
    for job in &jobs {
        let ended = machines.run(job);
        let stacks = ended
            .stdout
            .lines()
            .map(|line| line["in ".len()..].to_owned());
        has_run.extend(stacks);
        let is_dns = ended.stdout.contains("in /dns");
        assert_eq!(ended.code(), i32::from(!is_dns), "{ended}");
        // It is run again instead.
        assert!(!ended.stderr.contains("--resume"), "{ended}");
    }
    assert_eq!(has_run, ["/db", "/dns"].map(str::to_owned).into());
    let ended = machines.finish(&jobs);
    assert_eq!(ended.code(), 1, "{ended}");
    assert!(ended.stderr.contains("note: /db: failed"), "{ended}");
    assert!(ended.stderr.contains("note: /mail: not run"), "{ended}");
    let states = machines.report();
    let state = |path: &str| states.iter().find(|(it, _)| it == path).unwrap().1.as_str();
    assert_eq!((state("/db"), state("/dns")), ("failed", "succeeded"));

    // The engine retries what has failed.
    repository.remove("/db/fails");
    for job in &jobs {
        let ended = machines.run(job);
        assert_eq!(ended.code(), 0, "{ended}");
    }
    let ended = machines.finish(&jobs);
    assert_eq!(ended.code(), 0, "{ended}");
    let states = machines.report();
    assert_eq!(states.len(), 5);
    assert!(
        states.iter().all(|(_, state)| state == "succeeded"),
        "{states:?}"
    );
}

#[test]
fn finish_counts_a_stack_whose_last_attempt_was_killed() {
    let sandbox = Sandbox::layout("a\nb");
    // An attempt ends when a second begins, in which the next one starts.
    sandbox.write_program(
        "/killed.sh",
        "#!/bin/sh\nif [ -e \"$ORCH_ROOT/../kill\" ]; then kill -KILL $PPID; exit; fi\nsleep 0.2\nuntil [ $(date +%N | cut -c1) = 0 ]; do sleep 0.02; done\n",
    );
    sandbox.write("/github.yml", "runs-on: x\n");
    let repository = Repository::of(sandbox);
    let exported = repository.orch("export github --template github.yml -o p.yml -- ../killed.sh");
    assert_eq!(exported.code(), 0, "{exported}");
    let jobs = order(&repository, "/p.order.json").jobs.clone();
    let job =
        |job: &OrderedJob| repository.orch(&format!("job {} --work-order p.order.json", job.id));
    let finish = "finish --work-order p.order.json";
    for it in jobs.iter().rev() {
        let ended = job(it);
        assert_eq!(ended.code(), 0, "{ended}");
    }
    // GitHub runs all jobs again on request.
    fs::write(repository.outside().join("kill"), "").unwrap();
    _ = job(&jobs[0]);
    let ended = repository.orch(finish);
    assert_eq!(ended.code(), 1, "{ended}");
    assert!(ended.stderr.contains("note: /a: failed"), "{ended}");
    fs::remove_file(repository.outside().join("kill")).unwrap();
    assert_eq!(job(&jobs[0]).code(), 0);
    assert_eq!(repository.orch(finish).code(), 0);
}

#[test]
fn jobs_without_a_marked_root_run_as_the_engine_starts_them() {
    let sandbox = Sandbox::unmarked(
        "//- a/stack.tm\nstack {}\n//- b/stack.tm\nstack {\n  after = [\"/a\"]\n}\n",
    );
    let exported = sandbox.orch("export gitlab -j 1 --jobs 2 --work-order o.json -- echo in");
    assert_eq!(exported.code(), 0, "{exported}");
    for job in &order(&sandbox, "/o.json").jobs {
        let ended = sandbox.orch(&format!("job {} --work-order o.json", job.id));
        assert_eq!(ended.code(), 0, "{ended}");
        assert!(ended.stdout.contains("in"), "{ended}");
    }
    let ended = sandbox.orch("finish --work-order o.json");
    assert_eq!(ended.code(), 0, "{ended}");
    assert!(
        ended.stderr.contains("the engine has the results"),
        "{ended}"
    );
}

#[test]
fn export_refuses_jobs_that_cannot_run_or_cannot_fail() {
    let unmarked = Sandbox::unmarked("//- a/stack.tm\nstack {}\n");
    let make = "export make --work-order o.json --on-error skip-dependents -- false";
    let output = unmarked.orch(make);
    assert_eq!(output.code(), 4, "{output}");
    assert!(
        output.stderr.contains("`make` would not see failed jobs"),
        "{output}"
    );
    let marked = Sandbox::unmarked(
        "//- root.orch.hcl\norch {\n  root = true\n}\n//- a/stack.tm\nstack {}\n",
    );
    let output = marked.orch("export make --work-order o.json --record=apply -- true");
    assert_eq!(output.code(), 4, "{output}");
    assert!(output.stderr.contains("keeps no state"), "{output}");
    let output = marked.orch("export make --work-order o.json --workers 2 -- true");
    assert_eq!(output.code(), 0, "{output}");
    assert!(output.stderr.contains("workers will refuse"), "{output}");
}

/// A job sees only its own stacks: others would have run before one of them is refused.
#[test]
fn export_refuses_what_a_run_refuses_before_its_first_command() {
    let sandbox = Sandbox::layout("app after /db\ndb\nweb");
    let protected = "stack {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n";
    sandbox.write("/kept/stack.orch.hcl", protected);
    let repository = Repository::of(sandbox);
    let export = "export make --work-order o.json";
    let refused = [
        (
            "--retries 2 -- true",
            64,
            "--retries 2 needs a condition for stack `/db` and 3 more",
        ),
        (
            "--retry-on-exit 3 -- true",
            64,
            "has no effect without --retries",
        ),
        ("--eval -- echo ${global.none}", 3, "no global `none`"),
        (
            "--exclude kept -- terraform destroy",
            4,
            "the run destroys stacks before others that run after them",
        ),
        (
            "--match db --match web --reverse -- terraform destroy",
            4,
            "keeps others that run after them",
        ),
        ("--reverse -- terraform destroy", 4, "`/kept`"),
    ];
    for (arguments, code, said) in refused {
        for command in ["run", export] {
            let output = repository.orch(&format!("{command} {arguments}"));
            assert_eq!(output.code(), code, "{command} {arguments}: {output}");
            assert!(output.stderr.contains(said), "{output}");
        }
        assert!(!repository.path("/o.json").exists(), "{arguments}");
    }
    let unnamed = repository.command(&format!("{export} --")).arg("").output();
    assert_eq!(unnamed.unwrap().status.code(), Some(64));
    // Jobs may have these.
    for arguments in [
        "-- no-such-program",
        "--eval -- echo ${env.NO_SUCH_VARIABLE}",
        "--exclude kept --reverse -- terraform destroy",
    ] {
        let output = repository.orch(&format!("{export} {arguments}"));
        assert_eq!(output.code(), 0, "{output}");
    }
    let mut disabled = repository.command(&format!("{export} --exclude kept -- terraform destroy"));
    let output = disabled.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let disable = "ORCH_DISABLE_SAFEGUARDS=destroy-order";
    assert!(said.contains(disable), "{said}");
    let disabled = disabled.env("ORCH_DISABLE_SAFEGUARDS", "destroy-order");
    assert!(disabled.status().unwrap().success());
}

/// The state has nothing of them, so that only the order shows that dependents have been destroyed.
#[test]
fn jobs_that_no_state_records_destroy_each_stack_after_its_dependents() {
    let sandbox = Sandbox::layout("app after /cache, /db\ncache\ndb\nweb");
    let script = "#!/bin/sh\necho $ORCH_STACK_NAME >> \"$ORCH_ROOT/../log\"\n";
    sandbox.write_program("/terraform", script);
    let repository = Repository::of(sandbox);
    let export = "export make --work-order o.json --jobs 9 --reverse -- ../terraform destroy";
    let output = repository.orch(export);
    assert_eq!(output.code(), 0, "{output}");
    let order = order(&repository, "/o.json");
    assert_eq!(order.jobs.len(), 3);
    for job in &order.jobs {
        let output = repository.orch(&format!("job {} --work-order o.json", job.id));
        assert_eq!(output.code(), 0, "{output}");
    }
    let ran = fs::read_to_string(repository.outside().join("log")).unwrap();
    assert_eq!(ran.lines().count(), 4, "{ran}");
    let ended = repository.orch("finish --work-order o.json");
    assert_eq!(ended.code(), 0, "{ended}");
}

#[test]
fn export_notes_that_workers_would_be_faster() {
    const SIDE: usize = 10;
    // Each stack runs after two of the row before it, so that no job can be long.
    let sandbox = Sandbox::layout("");
    for row in 0..SIDE {
        for column in 0..SIDE {
            let before =
                [column, (column + 1) % SIDE].map(|it| format!("/s{}-{it}", row.max(1) - 1));
            let after = if row == 0 {
                "[]".to_owned()
            } else {
                format!("{before:?}")
            };
            sandbox.write(
                &format!("/s{row}-{column}/stack.tm"),
                format!("stack {{\n  after = {after}\n}}\n"),
            );
        }
    }
    sandbox.write("/root.orch.hcl", "orch {\n  root = true\n}\n");
    let note = |flags: &str| {
        let output = sandbox.orch(&format!(
            "export gitlab --work-order o.json {flags} -- true"
        ));
        assert_eq!(output.code(), 0, "{output}");
        output.stderr
    };
    let static_jobs = note("--jobs 10");
    let expected = "if all stacks take equally long, these jobs take 1.6 times as long as `--workers 10`, which needs a state in a bucket";
    assert!(static_jobs.contains(expected), "{static_jobs}");
    for flags in ["--jobs 1", "--workers 10"] {
        let stderr = note(flags);
        assert!(!stderr.contains("times as long"), "{stderr}");
    }
}
