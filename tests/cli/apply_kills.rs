//! Applies of real Terraform that are killed at any time, with all that they have started, and go on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{Output, Repository, Sandbox, skipped, wait_until};

const LAYOUT: &str = "net
    dns after /net
    database after /net
    cart after /database
    queue
    mail after /queue
    web after /cart /queue
    alone";

/// The stacks whose resources exist before the plan.
const OLD: [&str; 5] = ["net", "database", "cart", "web", "alone"];

/// All stacks.
const STACKS: [&str; 8] = [
    "net", "dns", "database", "cart", "queue", "mail", "web", "alone",
];

/// How often one apply is killed before it may end.
const KILLS_OF_ONE: u32 = 8;

/// A resource that notes when it is made and when it is destroyed.
fn resource(name: &str, input: &str) -> String {
    let note =
        |what: &str| format!("echo {what} $ORCH_STACK_NAME ${{self.id}} >> $ORCH_ROOT/../notes");
    format!(
        r#"resource "terraform_data" "{name}" {{
  input = {input}
  provisioner "local-exec" {{
    command = "{}"
  }}
  provisioner "local-exec" {{
    when    = destroy
    command = "{}"
  }}
}}
"#,
        note("made"),
        note("destroyed")
    )
}

/// A stack whose resource `first` has the output of another stack as its input.
fn after(other: &str) -> String {
    format!(
        r#"data "terraform_remote_state" "other" {{
  backend = "local"
  config = {{
    path = "../{other}/terraform.tfstate"
  }}
}}
{}
output "it" {{
  value = terraform_data.first.output
}}
"#,
        resource("first", "data.terraform_remote_state.other.outputs.it")
    )
}

/// A stack with two resources.
fn own(text: &str, value: &str) -> String {
    format!(
        "{}{}\noutput \"it\" {{\n  value = {value}\n}}\n",
        resource("first", &format!("\"{text}\"")),
        resource("second", "terraform_data.first.output"),
    )
}

/// The project before the change; all of it is applied then.
fn before(with_state: bool) -> Repository {
    let sandbox = Sandbox::layout(LAYOUT);
    sandbox.write("/.gitignore", "*.tfstate*\n.terraform*\n/.orch\n/plan\n");
    if with_state {
        let state = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";
        sandbox.write("/state.orch.hcl", state);
    }
    sandbox.write("/net/main.tf", own("net 1", "terraform_data.second.output"));
    // Its id is another one whenever it is made anew.
    sandbox.write("/database/main.tf", own("rows", "terraform_data.second.id"));
    sandbox.write("/cart/main.tf", after("database"));
    sandbox.write("/web/main.tf", own("web 1", "1"));
    sandbox.write("/alone/main.tf", own("alone", "1"));
    let repository = Repository::of(sandbox);
    if with_state {
        assert_eq!(repository.orch("state init").code(), 0);
    }
    let applied = orch(&repository, "apply --auto-approve -j 4");
    assert_eq!(applied.code(), 0, "{applied:?}");
    repository
}

/// The project with a plan of the change: it creates, updates, replaces, leaves two stacks to be decided
/// and one alone.
fn planned(with_state: bool) -> Repository {
    let repository = before(with_state);
    repository.write("/net/main.tf", own("net 2", "terraform_data.second.output"));
    repository.write("/web/main.tf", own("web 2", "1"));
    repository.write("/dns/main.tf", after("net"));
    repository.write("/queue/main.tf", own("queue", "terraform_data.second.id"));
    repository.write("/mail/main.tf", after("queue"));
    repository.commit();
    let planned = orch(
        &repository,
        "plan -o plan -j 4 --replace /database --allow-destroy=1",
    );
    assert_eq!(planned.code(), 0, "{planned:?}");
    let last = planned.stdout.lines().last().unwrap_or_default();
    let counts = "2 to create, 2 to update, 1 to replace, 0 to delete; 2 to decide, 1 unchanged.";
    assert!(last.ends_with(counts), "{planned:?}");
    repository
}

fn prepare(command: &mut Command) {
    command
        .env("TF_CLI_CONFIG_FILE", "/dev/null")
        .env("CHECKPOINT_DISABLE", "1");
}

fn orch(sandbox: &Sandbox, arguments: &str) -> Output {
    sandbox.orch_with(arguments, prepare)
}

/// Copies a project with everything in it.
fn copy(of: &Sandbox) -> Sandbox {
    let copy = Sandbox::unmarked("");
    let status = Command::new("cp")
        .arg("-a")
        .arg(of.path("/.").join("."))
        .arg(copy.path("/"))
        .status();
    assert!(status.unwrap().success());
    fs::copy(of.path("/../notes"), copy.path("/../notes")).unwrap();
    copy
}

/// Returns the children of a process.
fn children(of: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // The name of the program, in parentheses, may be anything; after it are the state and the parent.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let parent = rest
            .split(' ')
            .nth(1)
            .and_then(|parent| parent.parse().ok());
        if parent == Some(of.as_raw()) {
            children.push(Pid::from_raw(id));
        }
    }
    children
}

/// Stops a process, then all that it has started: none of them starts another one meanwhile.
fn stop(process: Pid, stopped: &mut Vec<Pid>) {
    if kill(process, Signal::SIGSTOP).is_err() {
        return;
    }
    stopped.push(process);
    for child in children(process) {
        stop(child, stopped);
    }
}

/// Kills a process with all that it has started, at a moment that may be used.
fn kill_all(child: &mut Child, may_be_killed: impl Fn() -> bool) {
    let stopped = loop {
        let mut stopped = Vec::new();
        stop(Pid::from_raw(child.id().cast_signed()), &mut stopped);
        if may_be_killed() {
            break stopped;
        }
        for &process in &stopped {
            _ = kill(process, Signal::SIGCONT);
        }
        wait_until("the moment is over", &may_be_killed);
    };
    for &process in &stopped {
        _ = kill(process, Signal::SIGKILL);
    }
    child.wait().unwrap();
    wait_until("all that was killed is gone", || {
        stopped.iter().all(|process| has_ended(*process))
    });
}

/// Returns the stacks that Terraform has a state of.
fn with_tool_state(sandbox: &Sandbox) -> Vec<&'static str> {
    let has_state = |stack: &&str| {
        !sandbox
            .read(&format!("/{stack}/terraform.tfstate"))
            .is_empty()
    };
    STACKS.into_iter().filter(has_state).collect()
}

/// Returns whether a process is gone, but for its entry in the table of processes.
fn has_ended(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.is_empty() || rest.starts_with('Z')
}

/// What Terraform has on record of a stack: the id and the output of each resource.
type Resources = BTreeMap<String, (String, String)>;

fn resources(sandbox: &Sandbox, stack: &str) -> Resources {
    let text = sandbox.read(&format!("/{stack}/terraform.tfstate"));
    if text.is_empty() {
        return Resources::new();
    }
    let state: Value = serde_json::from_str(&text).unwrap();
    let mut resources = Resources::new();
    for resource in state["resources"].as_array().unwrap() {
        if resource["mode"] != "managed" {
            continue;
        }
        let instances = resource["instances"].as_array().unwrap();
        assert_eq!(instances.len(), 1, "{resource}");
        let instance = &instances[0];
        assert!(instance["status"].is_null(), "tainted: {resource}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let attributes = &instance["attributes"];
        let known = (
            text(&attributes["id"]),
            text(&attributes["output"]["value"]),
        );
        resources.insert(text(&resource["name"]), known);
    }
    resources
}

fn ids(sandbox: &Sandbox) -> BTreeSet<String> {
    let all = STACKS.iter().flat_map(|stack| resources(sandbox, stack));
    all.map(|(_, (id, _))| id).collect()
}

/// The ids of the resources that were made or destroyed, in order.
fn noted(sandbox: &Sandbox, what: &str) -> Vec<String> {
    let notes = sandbox.read("/../notes");
    let lines = notes
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let matching = lines.filter(|words| words[0] == what);
    matching.map(|words| words[2].to_owned()).collect()
}

/// Checks that everything is as the tree says, once the apply has succeeded. Terraform forgets what it has
/// just made if it is killed before it has written its state: that is `lost`.
fn check(
    sandbox: &Sandbox,
    was: &BTreeMap<&str, Resources>,
    lost: &BTreeSet<String>,
    with_state: bool,
) {
    let now: BTreeMap<&str, Resources> = STACKS
        .iter()
        .map(|&stack| (stack, resources(sandbox, stack)))
        .collect();
    let values = |stack: &str| {
        let values = now[stack]
            .iter()
            .map(|(name, (_, value))| (name.as_str(), value.as_str()));
        values.collect::<Vec<_>>()
    };
    let both = |value| vec![("first", value), ("second", value)];
    assert_eq!(values("net"), both("net 2"));
    assert_eq!(values("web"), both("web 2"));
    assert_eq!(values("database"), both("rows"));
    assert_eq!(values("alone"), both("alone"));
    assert_eq!(values("queue"), both("queue"));
    assert_eq!(values("dns"), [("first", "net 2")]);
    assert_eq!(values("cart"), [("first", &*now["database"]["second"].0)]);
    assert_eq!(values("mail"), [("first", &*now["queue"]["second"].0)]);
    for stack in OLD {
        let names = |of: &Resources| of.values().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        let (was, now) = (names(&was[stack]), names(&now[stack]));
        if stack == "database" {
            assert!(
                was.iter().all(|id| !now.contains(id)),
                "{stack} is replaced"
            );
        } else {
            assert_eq!(was, now, "{stack} is the same");
        }
    }
    let of_database: BTreeSet<String> =
        was["database"].values().map(|(id, _)| id.clone()).collect();
    let destroyed: BTreeSet<String> = noted(sandbox, "destroyed").into_iter().collect();
    assert_eq!(
        destroyed, of_database,
        "what was replaced is destroyed, and nothing else"
    );
    let mut made: BTreeSet<String> = noted(sandbox, "made").into_iter().collect();
    made.retain(|id| !destroyed.contains(id) && !lost.contains(id));
    assert_eq!(made, ids(sandbox), "each was made once");
    let document =
        || -> Value { serde_json::from_str(&sandbox.read("/.orch/state/default.json")).unwrap() };
    if with_state {
        let document = document();
        for stack in STACKS {
            let entry = &document["stacks"][format!("/{stack}")];
            assert_eq!(entry["last"]["outcome"], "succeeded", "{stack}: {entry}");
            assert!(entry["applied"].is_object(), "{stack}: {entry}");
            assert_eq!(entry["intent"], Value::Null, "{stack}: {entry}");
        }
    }
    let again = orch(sandbox, "plan --full --detailed-exitcode -j 4");
    assert_eq!(again.code(), 0, "{again:?}");
    let resumed = orch(sandbox, "apply plan --resume");
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    assert!(resumed.stderr.contains("nothing to do"), "{resumed:?}");
    if with_state {
        // Where nothing was left to do, the lock of the killed run is there until the next one takes it.
        let tainted = orch(sandbox, "state taint alone");
        assert_eq!(tainted.code(), 0, "the lock is taken over: {tainted:?}");
        assert_eq!(document()["lock"], Value::Null);
    }
}

/// Starts an apply of the plan in the background.
fn start(sandbox: &Sandbox, arguments: &str, round: u32) -> Child {
    let mut command = sandbox.command(&format!("apply plan -j 4 {arguments}"));
    prepare(&mut command);
    let log = |name: &str| {
        let name = sandbox.outside().join(format!("{name}-{round}"));
        fs::File::create(name).unwrap()
    };
    command
        .stdin(Stdio::null())
        .stdout(log("out"))
        .stderr(log("err"))
        .spawn()
        .unwrap()
}

/// How many applies are killed; more are killed on demand.
fn kills() -> u32 {
    let wanted = std::env::var("ORCH_TEST_KILLS").ok();
    wanted.map_or(6, |wanted| wanted.parse().unwrap())
}

/// Kills applies at moments that are spread over their time, and lets each end at last.
fn kill_applies(with_state: bool) {
    let has_terraform = Command::new("terraform").arg("version").output().is_ok();
    if !has_terraform {
        return skipped("there is no terraform on the PATH");
    }
    let planned = planned(with_state);
    let was: BTreeMap<&str, Resources> = STACKS
        .iter()
        .map(|&stack| (stack, resources(&planned, stack)))
        .collect();
    let begun = Instant::now();
    let undisturbed = copy(&planned);
    let status = start(&undisturbed, "", 0).wait().unwrap();
    let span = begun.elapsed();
    assert!(status.success(), "{}", undisturbed.read("/../err-0"));
    check(&undisturbed, &was, &BTreeSet::new(), with_state);
    let (mut killed, mut moment) = (0, 1);
    while killed < kills() {
        let sandbox = copy(&planned);
        let said = |round: u32| sandbox.read(&format!("/../err-{round}"));
        let mut lost = BTreeSet::new();
        for round in 0.. {
            let with_state_before = with_tool_state(&sandbox);
            let mut child = start(&sandbox, "--resume", round);
            if round == KILLS_OF_ONE || killed == kills() {
                let status = child.wait().unwrap();
                assert!(status.success(), "{}", said(round));
                break;
            }
            thread::sleep(span.mul_f64(f64::from(moment) * 0.618_034 % 1.0));
            moment += 1;
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{}", said(round));
                break;
            }
            // Terraform empties its local state before it writes it: killed in between, it forgets all that
            // it has made of the stack, and no plan allows what it then wants to do.
            kill_all(&mut child, || {
                let now = with_tool_state(&sandbox);
                with_state_before.iter().all(|stack| now.contains(stack))
            });
            killed += 1;
            let known = ids(&sandbox);
            let destroyed: BTreeSet<String> = noted(&sandbox, "destroyed").into_iter().collect();
            let made = noted(&sandbox, "made").into_iter();
            lost.extend(made.filter(|id| !known.contains(id) && !destroyed.contains(id)));
        }
        check(&sandbox, &was, &lost, with_state);
    }
}

#[test]
fn an_apply_that_is_killed_at_any_time_goes_on_and_ends_as_the_tree_says() {
    kill_applies(true);
}

#[test]
fn the_same_holds_without_a_state() {
    kill_applies(false);
}
