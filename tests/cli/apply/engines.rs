//! Pipelines of `orch export`, run by real engines where these are installed: `.ci/engines` installs them.
//! Whatever the engine, they leave what one machine would have left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{declare, done};
use crate::support::{Repository, Sandbox, orch_program, skipped};

/// The stacks, and what each runs after.
const STACKS: [(&str, &str); 6] = [
    ("/app", "after = [\"/db\", \"/cache\"]"),
    ("/cache", "after = [\"/net\"]"),
    ("/db", "after = [\"/net\"]"),
    ("/lone", ""),
    ("/net", ""),
    ("/web", "after = [\"/app\"]"),
];

/// What applies a stack: a file in `world`, which all checkouts share, unless its name is in `fails`.
const DRIVER: &str = r#"driver "fake" {
  backend = terramate.stack.path.absolute
  plan    = ["sh", "-c", "cmp -s want SHARED/world/$ORCH_STACK_NAME || exit 2"]
  apply   = ["sh", "-c", "echo $ORCH_STACK_NAME >> SHARED/log; [ ! -e SHARED/fails/$ORCH_STACK_NAME ] && cp want SHARED/world/$ORCH_STACK_NAME"]
  destroy = ["sh", "-c", "echo $ORCH_STACK_NAME >> SHARED/log; rm SHARED/world/$ORCH_STACK_NAME"]
}
"#;

/// An engine that runs a pipeline on this machine.
struct Engine {
    program: &'static str,
    /// For `orch export`.
    name: &'static str,
    template: &'static str,
    arguments: &'static str,
}

const ENGINES: [Engine; 3] = [
    Engine {
        program: "make",
        name: "make",
        template: "",
        arguments: "-k -j 4 -f pipeline.yml",
    },
    Engine {
        program: "gitlab-ci-local",
        name: "gitlab",
        template: "{}",
        arguments: "--file pipeline.yml --no-shell-isolation --concurrency 4",
    },
    Engine {
        program: "act",
        name: "github",
        template: "workflow:\n  on: workflow_dispatch\nruns-on: ubuntu-latest\nsteps:\n  - uses: actions/checkout@v4\n",
        arguments: "workflow_dispatch -W pipeline.yml -P ubuntu-latest=-self-hosted --use-gitignore=false --concurrent-jobs 4",
    },
];

/// A project whose state all checkouts share.
fn project() -> Repository {
    let sandbox = Sandbox::new("");
    let shared = sandbox.outside().join("shared");
    for directory in ["world", "fails"] {
        fs::create_dir_all(shared.join(directory)).unwrap();
    }
    let shared = shared.to_str().unwrap();
    sandbox.write("/driver.orch.hcl", DRIVER.replace("SHARED", shared));
    sandbox.write(
        "/config.orch.hcl",
        format!(
            "orch {{\n  config {{\n    driver = \"fake\"\n    state {{\n      project = \"acme\"\n      backend \"local\" {{\n        path = \"{shared}/state\"\n      }}\n    }}\n  }}\n}}\n"
        ),
    );
    sandbox.write(
        "/.gitignore",
        ".gitlab-ci-local*\n/pipeline*\n/template.yml\n",
    );
    for (path, lines) in STACKS {
        declare(&sandbox, path, lines);
        sandbox.write(&format!("{path}/want"), "1");
    }
    let repository = Repository::of(sandbox);
    repository.git("remote add origin git@gitlab.com:acme/stacks.git");
    push(&repository);
    done(&repository, "state init");
    repository
}

/// Makes the default branch of the remote the current commit, as far as this clone knows it.
fn push(repository: &Repository) {
    repository.git("update-ref refs/remotes/origin/main HEAD");
    repository.git("symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main");
}

fn shared(repository: &Repository, name: &str) -> PathBuf {
    repository.outside().join("shared").join(name)
}

/// Says which stacks fail from now on.
fn failing(repository: &Repository, names: &[&str]) {
    _ = fs::remove_dir_all(shared(repository, "fails"));
    fs::create_dir(shared(repository, "fails")).unwrap();
    for name in names {
        fs::write(shared(repository, "fails").join(name), "").unwrap();
    }
}

/// Returns what exists, by stack, and what the state records of each.
fn left(repository: &Repository) -> BTreeMap<String, (Option<String>, Value)> {
    let document = shared(repository, "state.json");
    let document: Value = serde_json::from_slice(&fs::read(document).unwrap()).unwrap();
    let of_stack = |(path, _): (&str, &str)| {
        let name = path[1..].to_owned();
        let world = fs::read_to_string(shared(repository, "world").join(&name)).ok();
        let entry = &document["stacks"][path];
        let outcome = entry["last"]["outcome"].clone();
        (name, (world, outcome))
    };
    STACKS.into_iter().map(of_stack).collect()
}

/// Returns the stacks that were applied or destroyed since the last look, in that order.
fn log(repository: &Repository) -> Vec<String> {
    let path = shared(repository, "log");
    let text = fs::read_to_string(&path).unwrap_or_default();
    _ = fs::remove_file(path);
    text.lines().map(str::to_owned).collect()
}

impl Engine {
    fn is_there(&self) -> bool {
        let is_there = Command::new(self.program).arg("--version").output().is_ok();
        if !is_there {
            skipped(format!(
                "`{}` is not on the PATH: `.ci/engines` installs it",
                self.program
            ));
        }
        is_there
    }

    /// Plans, and writes the pipeline.
    fn export(&self, repository: &Repository) {
        repository.write("/template.yml", self.template);
        let template = match self.template {
            "" => "",
            _ => " --template template.yml",
        };
        done(repository, "plan -o saved --allow-destroy 9");
        done(
            repository,
            &format!(
                "export {} saved -o pipeline.yml --jobs 4{template}",
                self.name
            ),
        );
        log(repository);
    }

    /// Returns the command that runs the pipeline.
    fn command(&self, repository: &Repository) -> Command {
        let mut command = Command::new(self.program);
        repository.isolate(&mut command);
        let programs = orch_program().parent().map(Path::to_path_buf);
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(programs.into_iter().chain(std::env::split_paths(&path)));
        command
            .args(self.arguments.split(' '))
            .current_dir(repository.path("/"))
            .env("PATH", path.unwrap());
        command
    }

    fn run(&self, repository: &Repository) -> String {
        let output = self.command(repository).output().unwrap();
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }
}

/// Asserts that each stack came after those that it runs after.
#[track_caller]
fn assert_in_order(log: &[String]) {
    let place = |name: &str| log.iter().position(|it| it == name);
    for (before, after) in [
        ("net", "db"),
        ("net", "cache"),
        ("db", "app"),
        ("cache", "app"),
        ("app", "web"),
    ] {
        if let (Some(first), Some(second)) = (place(before), place(after)) {
            assert!(first < second, "{before} before {after}: {log:?}");
        }
    }
}

#[test]
fn engines_leave_what_one_machine_leaves() {
    for engine in ENGINES.iter().filter(|engine| engine.is_there()) {
        for fails in [&[][..], &["db"], &["net"]] {
            let (jobs, alone) = (project(), project());
            failing(&alone, fails);
            _ = alone.orch("apply --auto-approve --on-error skip-dependents");
            engine.export(&jobs);
            failing(&jobs, fails);
            let said = engine.run(&jobs);
            assert_eq!(
                left(&jobs),
                left(&alone),
                "{} {fails:?}: {said}",
                engine.name
            );
            assert_in_order(&log(&jobs));
            if fails.is_empty() {
                continue;
            }
            // A retry runs what is left, and nothing twice.
            failing(&jobs, &[]);
            let said = engine.run(&jobs);
            let again = log(&jobs);
            assert!(!again.contains(&"lone".to_owned()), "{again:?}");
            assert_in_order(&again);
            failing(&alone, &[]);
            done(&alone, "apply --auto-approve");
            assert_eq!(
                left(&jobs),
                left(&alone),
                "{} {fails:?}: {said}",
                engine.name
            );
        }
    }
}

#[test]
fn engines_destroy_in_reverse_order() {
    for engine in ENGINES.iter().filter(|engine| engine.is_there()) {
        let repository = project();
        done(&repository, "apply --auto-approve");
        for path in ["/web", "/app"] {
            fs::remove_dir_all(repository.path(path)).unwrap();
        }
        repository.write("/net/want", "2");
        repository.commit();
        push(&repository);
        engine.export(&repository);
        let said = engine.run(&repository);
        let log = log(&repository);
        let place = |name: &str| log.iter().position(|it| it == name);
        assert!(place("web") < place("app"), "{log:?}: {said}");
        assert!(
            place("web").is_some() && place("net").is_some(),
            "{log:?}: {said}"
        );
        assert_eq!(left(&repository)["web"], (None, Value::Null));
        assert_eq!(left(&repository)["net"].0.as_deref(), Some("2"));
        // A second run of the pipeline has nothing to do.
        engine.run(&repository);
        assert!(!shared(&repository, "log").exists());
    }
}

#[test]
fn engines_replace_a_stack_as_one_machine_does() {
    for engine in ENGINES.iter().filter(|engine| engine.is_there()) {
        let [jobs, alone] = [(); 2].map(|()| {
            let repository = project();
            let rule =
                "after = [\"/net\"]\n  lifecycle {\n    replace_triggered_by = [\"/net\"]\n  }";
            declare(&repository, "/db", rule);
            repository.commit();
            push(&repository);
            done(&repository, "apply --auto-approve");
            repository.write("/net/want", "2");
            repository.commit();
            push(&repository);
            log(&repository);
            repository
        });
        engine.export(&jobs);
        let said = engine.run(&jobs);
        done(&alone, "apply --auto-approve --allow-destroy 9");
        let (of_jobs, of_one) = (log(&jobs), log(&alone));
        assert_eq!(left(&jobs), left(&alone), "{}: {said}", engine.name);
        assert_eq!(of_jobs, of_one, "{}: {said}", engine.name);
        assert_eq!(
            of_one.iter().filter(|it| *it == "db").count(),
            2,
            "{of_one:?}"
        );
    }
}

#[test]
fn engines_run_a_pipeline_twice_at_once_and_each_stack_once() {
    let make = &ENGINES[0];
    if !make.is_there() {
        return;
    }
    let (jobs, alone) = (project(), project());
    done(&alone, "apply --auto-approve");
    make.export(&jobs);
    let pipelines = [(); 2].map(|()| {
        let mut make = make.command(&jobs);
        make.stdout(Stdio::null()).stderr(Stdio::null());
        make.spawn().unwrap()
    });
    for mut pipeline in pipelines {
        pipeline.wait().unwrap();
    }
    // A pipeline skips what runs after a stack that the other one is running.
    let said = make.run(&jobs);
    assert_eq!(left(&jobs), left(&alone), "{said}");
    let mut log = log(&jobs);
    assert_in_order(&log);
    log.sort();
    assert_eq!(log, ["app", "cache", "db", "lone", "net", "web"]);
}

#[test]
fn engines_hand_on_results_without_a_state() {
    let gitlab = Engine {
        program: "gitlab-ci-local",
        name: "gitlab",
        template: "{}",
        arguments: "--file jobs.yml --shell-isolation --concurrency 4",
    };
    if !gitlab.is_there() {
        return;
    }
    let repository = project();
    repository.remove("/config.orch.hcl");
    repository.write("/template.yml", gitlab.template);
    repository.commit();
    push(&repository);
    done(
        &repository,
        "export gitlab -o jobs.yml --jobs 4 --template template.yml -- sh -c 'test $ORCH_STACK_NAME != db'",
    );
    // Only tracked files reach the jobs.
    repository.git("add jobs.yml jobs.order.json");
    let said = gitlab.run(&repository);
    for line in [
        "3 of 6 stacks not done",
        "/app: not run",
        "/db: failed",
        "/web: not run",
    ] {
        assert!(said.contains(&format!("note: {line}")), "{said}");
    }
}
