//! Commands that are killed in the middle of a write, and commands that write at the same time.

use std::cell::Cell;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{block, document, recorded};
use crate::support::{BucketServer, Dialect, Repository, Sandbox, ended, wait_until};

#[test]
fn state_survives_a_killed_writer() {
    let sandbox = recorded();
    let mut serial = 2;
    for round in 0..20 {
        let mut child = sandbox
            .command("state taint a")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Wherever it has come to by then.
        thread::sleep(Duration::from_millis(round * 3 / 2));
        child.kill().unwrap();
        ended(&mut child);
        let document = document(&sandbox);
        let now = document["serial"].as_u64().unwrap();
        assert!(now == serial || now == serial + 1, "{serial} became {now}");
        serial = now;
        assert_eq!(sandbox.orch("state list").code(), 0);
    }
    assert_eq!(sandbox.orch("state untaint a").code() & !4, 0);
}

#[test]
fn state_removes_the_remains_of_a_killed_writer() {
    let sandbox = recorded();
    sandbox.write("/.orch/state/default.json.new", "{");
    sandbox.write("/.orch/state/default.run-r1.json", "{");
    sandbox.write("/.orch/state/default.run-r1.json.new", "{");
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("run -q -X --record true").code(), 0);
    let names = std::fs::read_dir(repository.path("/.orch/state")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names
        .filter(|name| name.contains("run-") || name.contains(".new"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn state_keeps_the_writes_of_many_writers() {
    let sandbox = recorded();
    let graph: Vec<String> = (0..10).map(|stack| format!("\"s{stack}\": []")).collect();
    sandbox.write("/graph.json", format!("{{{}}}", graph.join(",")));
    assert_eq!(sandbox.orch("state import graph.json").code(), 0);
    for _ in 0..5 {
        let start = |stack: u32| {
            let mut command = sandbox.command(&format!("state taint /s{stack}"));
            command.stdout(Stdio::null()).spawn().unwrap()
        };
        let children: Vec<_> = (0..10).map(start).collect();
        for mut child in children {
            assert!(ended(&mut child).success());
        }
        let stacks = document(&sandbox)["stacks"].clone();
        let mut tainted = stacks.as_object().unwrap().iter();
        assert!(
            tainted.all(|(stack, entry)| !stack.starts_with("/s") || entry["tainted"].is_object())
        );
        let names: Vec<String> = (0..10).map(|stack| format!("/s{stack}")).collect();
        assert_eq!(
            sandbox
                .orch(&format!("state untaint {}", names.join(" ")))
                .code(),
            0
        );
    }
    assert_eq!(document(&sandbox)["serial"], 3 + 5 * 11);
}

/// Notes when it starts and ends, and what is recorded by then. It fails in the stack `c`.
const DEPLOY: &str = r#"#!/bin/sh
log=$ORCH_ROOT/../log
record=$ORCH_ROOT/.orch/state/default.run-$ORCH_RUN_ID.json
[ -e "$record" ] || record=$ORCH_ROOT/.orch/runs/$ORCH_RUN_ID/state.json
[ -e "$record" ] || record=/dev/null
cat "$record" > "$ORCH_ROOT/../seen-$ORCH_RUN_ID-$ORCH_STACK_NAME"
echo "$ORCH_RUN_ID $ORCH_STACK_NAME started" >> "$log"
sleep 0.01
if [ "$ORCH_STACK_NAME" = c ]; then
  echo "$ORCH_RUN_ID $ORCH_STACK_NAME 7" >> "$log"
  exit 7
fi
echo "$ORCH_RUN_ID $ORCH_STACK_NAME 0" >> "$log"
"#;

const STACKS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// What the commands have noted of a stack: the last run that has started one, and its exit status if it has
/// ended.
fn noted(log: &str, stack: &str) -> Option<(String, Option<u8>)> {
    let mut noted: Option<(String, Option<u8>)> = None;
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [run, name, "started"] if name == stack => noted = Some((run.to_owned(), None)),
            [_, name, status] if name == stack => noted.as_mut().unwrap().1 = status.parse().ok(),
            _ => {}
        }
    }
    noted
}

/// Checks that what is recorded of a stack agrees with what its commands have noted.
fn check(entry: &Value, log: &str, stack: &str) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (intent, last) = (&entry["intent"]["run"], &entry["last"]["run"]);
    let on_record = text(intent).or_else(|| text(last));
    let Some((run, status)) = noted(log, stack) else {
        let succeeded = entry["last"]["outcome"] == "succeeded";
        assert!(!succeeded, "{stack} was never started: {entry}");
        return;
    };
    // The ids of later runs are greater. One that was killed before it has started the command may be on
    // record.
    assert!(
        on_record >= Some(run.clone()),
        "{stack} is forgotten: {entry}"
    );
    let is_open = !intent.is_null() || entry["last"]["failure"] == "interrupted";
    if !is_open {
        assert_eq!(on_record, Some(run), "{stack}: {entry}");
        let succeeded = entry["last"]["outcome"] == "succeeded";
        assert_eq!(
            Some(succeeded),
            status.map(|status| status == 0),
            "{stack}: {entry}"
        );
    }
}

/// How many runs are killed; more are killed on demand.
fn kills() -> u32 {
    let wanted = std::env::var("ORCH_TEST_KILLS").ok();
    wanted.map_or(12, |wanted| wanted.parse().unwrap())
}

/// Kills runs at moments that are spread over their time, and calls `check` after each with what the commands
/// have noted.
fn kill_runs(repository: &Repository, start: impl Fn() -> Command, check: impl Fn(&str)) {
    repository.write_program("/../deploy", DEPLOY);
    let log = || std::fs::read_to_string(repository.path("/../log")).unwrap_or_default();
    let begun = Instant::now();
    start().status().unwrap();
    let span = begun.elapsed().mul_f64(1.1);
    check(&log());
    for round in 1..=kills() {
        let mut child = start()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(span.mul_f64(f64::from(round) * 0.618_034 % 1.0));
        child.kill().unwrap();
        ended(&mut child);
        // The commands that it has started go on.
        wait_until("all commands have ended", || {
            STACKS
                .iter()
                .all(|stack| noted(&log(), stack).is_none_or(|(_, status)| status.is_some()))
        });
        check(&log());
    }
    // No command has started without its intent.
    let (mut seen, mut late) = (0, 0);
    for line in log()
        .lines()
        .filter_map(|line| line.strip_suffix(" started"))
    {
        let (run, stack) = line.split_once(' ').unwrap();
        let record = repository.read(&format!("/../seen-{run}-{stack}"));
        if record.is_empty() {
            // It was so slow that its run was recovered before it noted anything.
            late += 1;
            continue;
        }
        seen += 1;
        let record: Value = serde_json::from_str(&record).unwrap();
        let intent = &record["stacks"][format!("/{stack}")]["intent"];
        assert_eq!(intent["run"], run, "{stack}");
    }
    assert!(seen >= STACKS.len() && late * 10 < seen, "{late} of {seen}");
}

const LAYOUT: &str = "a
    b after /a
    c
    d after /b
    e
    f after /c";

#[test]
fn state_of_a_killed_run_matches_its_commands() {
    let sandbox = Sandbox::layout(LAYOUT);
    sandbox.write("/state.orch.hcl", block("record { apply = [\"deploy\"] }"));
    let repository = Repository::of(sandbox);
    assert_eq!(repository.orch("state init").code(), 0);
    let serial = Cell::new(1);
    let flags = "run -q -X -j 2 --on-error continue ../../deploy";
    kill_runs(
        &repository,
        || repository.command(flags),
        |log| {
            let document = document(&repository);
            let now = document["serial"].as_u64().unwrap();
            assert!(now >= serial.replace(now));
            // The record of the run that has the lock counts.
            let lock = &document["lock"];
            let record = lock["run"].as_str().map(|run| {
                let record = repository.read(&format!("/.orch/state/default.run-{run}.json"));
                serde_json::from_str::<Value>(&record).unwrap()
            });
            for stack in STACKS {
                let path = format!("/{stack}");
                let changed = record
                    .as_ref()
                    .and_then(|record| record["stacks"].get(&path));
                check(changed.unwrap_or(&document["stacks"][&path]), log, stack);
            }
        },
    );
    assert_eq!(
        repository.orch("state taint a").code(),
        0,
        "the lock is taken over"
    );
}

#[test]
fn state_in_a_bucket_matches_a_killed_and_recovered_run() {
    let server = BucketServer::new(Dialect::S3);
    let sandbox = Sandbox::layout(LAYOUT);
    let record = "record { apply = [\"deploy\"] }";
    sandbox.write(
        "/state.orch.hcl",
        block(&format!("{}\n{record}", server.backend())),
    );
    let repository = Repository::of(sandbox);
    let orch = |arguments: &str| {
        repository.orch_with(arguments, |orch| {
            orch.envs(server.credentials());
        })
    };
    let document = || serde_json::from_str::<Value>(&server.object("acme/default.json")).unwrap();
    assert_eq!(orch("state init").code(), 0);
    let start = || {
        let mut command = repository.command("run -q -X -j 4 --on-error continue ../../deploy");
        command.envs(server.credentials());
        command
    };
    kill_runs(&repository, start, |log| {
        let lock = document()["lock"].clone();
        if let (Some(code), Some(run)) = (lock["code"].as_str(), lock["run"].as_str()) {
            let unlocked = orch(&format!("state unlock --force {code}"));
            assert_eq!(unlocked.code(), 0, "{unlocked:?}");
            if repository
                .path(&format!("/.orch/runs/{run}/state.json"))
                .exists()
            {
                let recovered = orch(&format!("state recover {run}"));
                assert_eq!(recovered.code(), 0, "{recovered:?}");
            }
        }
        let document = document();
        assert_eq!(document["lock"], Value::Null);
        for stack in STACKS {
            check(&document["stacks"][format!("/{stack}")], log, stack);
        }
    });
}

/// Notes its run, and whether it is alone. Of two that are not, either may find that the other has cleared up.
const EXCLUSIVE: &str = r#"#!/bin/sh
cd "$ORCH_ROOT/.."
mkdir inside || touch together
echo "$ORCH_RUN_ID" > "ran-$ORCH_STACK_NAME"
sleep 0.02
rmdir inside || true
"#;

/// Lets many runs race for the lock in each round, each for a stack of its own, and takes the lock away from
/// one in every other round. There are few runs and rounds; there are more on demand.
fn race(backend: &str, prepare: impl Fn(&mut Command), document: impl Fn(&Repository) -> Value) {
    let wanted = std::env::var("ORCH_TEST_RACES").ok();
    let rounds: u32 = wanted.as_ref().map_or(4, |wanted| wanted.parse().unwrap());
    let runs = if wanted.is_some() { 50 } else { 6 };
    let stacks: Vec<String> = (0..runs).map(|run| format!("s{run}")).collect();
    let sandbox = Sandbox::layout(&stacks.join("\n"));
    let record = "record { apply = [\"deploy\"] }";
    sandbox.write("/state.orch.hcl", block(&format!("{backend}\n{record}")));
    let repository = Repository::of(sandbox);
    repository.write_program("/../deploy", EXCLUSIVE);
    let document = || document(&repository);
    let orch = |arguments: &str| {
        let mut command = repository.command(arguments);
        prepare(&mut command);
        command
    };
    assert!(orch("state init").output().unwrap().status.success());
    let ran = |stack: &str| {
        std::fs::read_to_string(repository.path(&format!("/../ran-{stack}"))).unwrap_or_default()
    };
    let mut winners = 0;
    for round in 0..rounds {
        let breaks = round % 2 == 1;
        let before = document();
        let start = |stack: &String| {
            let run = format!("run -q -X --allow-concurrent --match /{stack} ../../deploy");
            let earlier = ran(stack);
            let child = orch(&run)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            (stack.clone(), earlier, child.unwrap())
        };
        let children: Vec<_> = stacks.iter().map(start).collect();
        let mut broken = 0;
        while breaks && broken == 0 {
            if let Some(code) = document()["lock"]["code"].as_str() {
                let unlock = orch(&format!("state unlock --force {code}"))
                    .output()
                    .unwrap();
                broken += u32::from(unlock.status.success());
            } else if document()["serial"] != before["serial"] {
                break;
            }
        }
        let ends: Vec<_> = children
            .into_iter()
            .map(|(stack, earlier, mut child)| (stack, earlier, ended(&mut child).code()))
            .collect();
        let after = document();
        assert_eq!(after["lock"], Value::Null);
        for (stack, earlier, code) in ends {
            let (path, ran) = (format!("/{stack}"), ran(&stack));
            let entry = &after["stacks"][&path];
            match code {
                Some(0) => {
                    winners += 1;
                    assert_eq!(
                        entry["last"]["run"],
                        ran.trim(),
                        "the update of {stack} is lost"
                    );
                    assert_eq!(entry["last"]["outcome"], "succeeded", "{entry}");
                }
                Some(4) => {
                    assert_eq!(ran, earlier, "{stack} was refused, and ran");
                    assert_eq!(entry, &before["stacks"][&path], "{stack} was refused");
                }
                Some(5) if breaks => {}
                code => panic!("{stack}: {code:?}"),
            }
        }
        let together = repository.path("/../together");
        assert!(breaks || !together.exists(), "two ran at once");
        _ = std::fs::remove_file(together);
    }
    assert!(winners > 0);
}

#[test]
fn state_lock_is_held_by_one_of_many_runs_and_loses_no_update() {
    race("", |_| {}, |repository| document(repository));
}

#[test]
fn state_lock_in_a_bucket_is_held_by_one_of_many_runs() {
    let server = BucketServer::new(Dialect::S3);
    let prepare = |orch: &mut Command| _ = orch.envs(server.credentials());
    race(&server.backend(), prepare, |_| {
        serde_json::from_str(&server.object("acme/default.json")).unwrap()
    });
}
