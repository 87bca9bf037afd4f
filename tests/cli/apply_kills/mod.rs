//! Applies of real Terraform that are killed at any time, with all that they have started, and go on.

mod changes;
mod processes;
mod removals;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::processes::kill_all;
use crate::support::{Output, Sandbox, skipped};

/// How often one apply is killed before it may end.
const KILLS_OF_ONE: u32 = 8;

/// The file of a project that keeps the state of `orch` in the project.
const STATE: &str = "orch {\n  config {\n    state {\n      project = \"acme\"\n    }\n  }\n}\n";

/// A resource that notes when it is made and when it is destroyed.
fn resource(name: &str, input: &str) -> String {
    let note = |what: &str| format!("echo {what} $ORCH_STACK_PATH ${{self.id}} >> $HOME/notes");
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

/// A stack whose resource `first` has the output of the stack in another directory as its input.
fn after(other: &str) -> String {
    format!(
        r#"data "terraform_remote_state" "other" {{
  backend = "local"
  config = {{
    path = "{other}/terraform.tfstate"
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
    fs::copy(of.path("/../home/notes"), copy.path("/../home/notes")).unwrap();
    copy
}

/// Where Terraform keeps its state of a stack.
fn tool_state(stack: &str) -> String {
    format!("/{stack}/terraform.tfstate")
}

/// What Terraform has recorded of a stack: the id and the output of each resource.
type Resources = BTreeMap<String, (String, String)>;

fn resources(sandbox: &Sandbox, stack: &str) -> Resources {
    let text = sandbox.read(&tool_state(stack));
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

/// Returns what Terraform has recorded of some stacks.
fn resources_of<'s>(sandbox: &Sandbox, stacks: &[&'s str]) -> BTreeMap<&'s str, Resources> {
    let stacks = stacks.iter();
    stacks
        .map(|&stack| (stack, resources(sandbox, stack)))
        .collect()
}

/// Returns the ids of the resources that Terraform has recorded.
fn ids(resources: &BTreeMap<&str, Resources>) -> impl Iterator<Item = String> {
    let all = resources.values().flat_map(BTreeMap::values);
    all.map(|(id, _)| id.clone())
}

/// The stacks and the ids of the resources that were made or destroyed, in order.
fn noted(sandbox: &Sandbox, what: &str) -> Vec<(String, String)> {
    let notes = sandbox.read("/../home/notes");
    let lines = notes
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let matching = lines.filter(|words| words[0] == what);
    matching
        .map(|words| (words[1].to_owned(), words[2].to_owned()))
        .collect()
}

/// The document of the state.
fn document(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read("/.orch/state/default.json")).unwrap()
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

/// Returns how many applies are killed, given how many are by default; more are killed on demand.
fn kills(by_default: u32) -> u32 {
    let wanted = std::env::var("ORCH_TEST_KILLS").ok();
    wanted.map_or(by_default, |wanted| wanted.parse().unwrap())
}

/// A plan whose apply is killed, and what may be seen of it.
struct Killed<'p> {
    planned: &'p Sandbox,
    /// The stacks whose states Terraform keeps.
    stacks: &'p [&'p str],
    kills: u32,
}

impl Killed<'_> {
    /// Applies the plan in a copy of its project without any disturbance; returns how long that takes.
    fn undisturbed(&self) -> (Sandbox, Duration) {
        let begun = Instant::now();
        let sandbox = copy(self.planned);
        let status = crate::support::ended(&mut start(&sandbox, "", 0));
        let span = begun.elapsed();
        assert!(status.success(), "{}", sandbox.read("/../err-0"));
        (sandbox, span)
    }

    /// Kills applies of copies of the project at moments that are spread over their time, and lets each end at
    /// last. `killed` looks at a project whenever its apply was killed and changes what is known of it, which is
    /// `known` before the first apply; `ended` looks at what all of that has come to.
    fn each<K: Clone>(
        &self,
        span: Duration,
        known: &K,
        killed: impl Fn(&Sandbox, &mut K),
        ended: impl Fn(&Sandbox, &K),
    ) {
        let (mut n_killed, mut moment) = (0, 1);
        while n_killed < self.kills {
            let sandbox = copy(self.planned);
            let mut known = known.clone();
            for round in 0.. {
                let with_state = with_state(&sandbox, self.stacks);
                let mut child = start(&sandbox, "--resume", round);
                let is_killed = round < KILLS_OF_ONE && n_killed < self.kills;
                if is_killed {
                    thread::sleep(span.mul_f64(f64::from(moment) * 0.618_034 % 1.0));
                    moment += 1;
                }
                if !is_killed || child.try_wait().unwrap().is_some() {
                    let status = crate::support::ended(&mut child);
                    assert!(
                        status.success(),
                        "{}",
                        sandbox.read(&format!("/../err-{round}"))
                    );
                    break;
                }
                // Terraform empties its local state before it writes it, which takes up to 60 ms: killed in
                // between, it has forgotten the stack for good, and nobody else knows what it made of it. Real
                // states are in remote backends, which write all or nothing; so do the local ones here.
                kill_all(&mut child, || {
                    with_state.iter().all(|it| is_whole(&sandbox, it))
                });
                n_killed += 1;
                killed(&sandbox, &mut known);
            }
            ended(&sandbox, &known);
        }
    }
}

/// Returns those of some stacks that Terraform has a state of.
fn with_state<'s>(sandbox: &Sandbox, stacks: &[&'s str]) -> Vec<&'s str> {
    let stacks = stacks.iter().copied();
    stacks.filter(|it| is_whole(sandbox, it)).collect()
}

/// Returns whether Terraform has a state of a stack, all of which is written.
fn is_whole(sandbox: &Sandbox, stack: &str) -> bool {
    serde_json::from_str::<Value>(&sandbox.read(&tool_state(stack))).is_ok()
}

/// Returns whether there is Terraform; tells the user if not.
fn has_terraform() -> bool {
    let has_terraform = Command::new("terraform").arg("version").output().is_ok();
    if !has_terraform {
        skipped("there is no terraform on the PATH");
    }
    has_terraform
}
