//! Commands that are killed in the middle of a write, and commands that write at the same time.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::{document, recorded};

#[test]
fn a_writer_that_is_killed_at_any_time_leaves_a_document_that_reads_back() {
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
        child.wait().unwrap();
        let document = document(&sandbox);
        let now = document["serial"].as_u64().unwrap();
        assert!(now == serial || now == serial + 1, "{serial} became {now}");
        serial = now;
        assert_eq!(sandbox.orch("state list").code(), 0);
    }
    assert_eq!(sandbox.orch("state untaint a").code() & !4, 0);
}

#[test]
fn of_many_writers_at_once_none_loses_a_write() {
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
            assert!(child.wait().unwrap().success());
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
