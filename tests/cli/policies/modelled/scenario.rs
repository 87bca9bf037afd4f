//! A random scenario: the project, its policies, and which commands fail.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::support::Sandbox;

/// The stacks, in the order of their paths; `/a/in` is nested in `/a`.
pub(super) const STACKS: [&str; 5] = ["/a", "/a/in", "/b", "/c", "/d"];

/// What matches each of them alone.
const GLOBS: [&str; 5] = ["/[a]", "/a/in", "/b", "/c", "/d"];

/// What policies call the stacks: the id of one of them, the paths of others.
pub(super) const IDS: [&str; 5] = ["/a", "/a/in", "/b", "Sea", "/d"];

/// What policies ask for, besides stacks: other spellings, and what no stack is called.
const NAMES: [&str; 8] = ["/a", "/a/in", "/b", "Sea", "/d", "/c", "SEA", "nobody"];

pub(super) const POLICIES: [&str; 2] = ["p", "q"];

const STATES: [&str; 4] = ["FINISHED", "FAILED", "CANCELED", "FAILED"];

const FLAGS: [&str; 3] = ["x", "y", "z"];

/// When a rule of a policy holds; what is absent does not matter.
#[derive(Debug, Clone)]
pub(super) struct When {
    pub(super) stack: Option<usize>,
    pub(super) state: Option<&'static str>,
    /// Whether somebody asked for the turn.
    pub(super) is_asked: Option<bool>,
    /// A flag of the turn.
    pub(super) flag: Option<&'static str>,
    /// A flag that the turn must not have.
    pub(super) no_flag: Option<&'static str>,
    pub(super) is_tracked: Option<bool>,
    /// Stacks that have a finished turn in the workflow.
    pub(super) finished: Vec<usize>,
}

/// What a rule adds to the answer.
#[derive(Debug, Clone)]
pub(super) enum Then {
    Trigger(Vec<&'static str>),
    /// The stack of the turn itself.
    Again,
    Flag(&'static str),
    Reset(&'static str),
    /// What makes the whole evaluation fail.
    Fail,
}

#[derive(Debug, Clone)]
pub(super) struct Policy {
    pub(super) rules: Vec<(When, Then)>,
    /// The stacks that it is attached to; all of them if there are none here.
    pub(super) attached: Vec<usize>,
    pub(super) is_ignored: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    /// Pairs of stacks: the second runs after the first.
    pub(super) after: Vec<(usize, usize)>,
    pub(super) policies: Vec<Policy>,
    /// What the commands of each stack return in turn: whether they fail.
    pub(super) fails: Vec<Vec<bool>>,
    pub(super) selected: Vec<usize>,
    pub(super) excluded: Option<usize>,
    pub(super) on_error: &'static str,
    pub(super) jobs: usize,
    pub(super) is_task: bool,
    pub(super) max_turns: usize,
    pub(super) max_followups: usize,
    /// Behind which line the journal of each run ends, if it is killed there, before it is resumed.
    pub(super) kills: Vec<Option<Index>>,
}

fn when() -> impl Strategy<Value = When> {
    let all: Vec<usize> = (0..STACKS.len()).collect();
    (
        prop::option::weighted(0.7, select(all.clone())),
        prop::option::weighted(0.7, select(STATES.to_vec())),
        prop::option::weighted(0.3, any::<bool>()),
        prop::option::weighted(0.15, select(FLAGS.to_vec())),
        prop::option::weighted(0.15, select(FLAGS.to_vec())),
        prop::option::weighted(0.1, any::<bool>()),
        prop_oneof![2 => Just(Vec::new()), 1 => subsequence(all, 1..3)],
    )
        .prop_map(
            |(stack, state, is_asked, flag, no_flag, is_tracked, finished)| When {
                stack,
                state,
                is_asked,
                flag,
                no_flag,
                is_tracked,
                finished,
            },
        )
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![
        12 => subsequence(NAMES.to_vec(), 1..3).prop_map(Then::Trigger),
        4 => Just(Then::Again),
        4 => select(FLAGS.to_vec()).prop_map(Then::Flag),
        3 => select(FLAGS.to_vec()).prop_map(Then::Reset),
        3 => Just(Then::Fail),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let all: Vec<usize> = (0..STACKS.len()).collect();
    (
        prop::collection::vec((when(), then()), 1..7),
        prop_oneof![3 => Just(Vec::new()), 1 => subsequence(all, 1..4)],
        any::<bool>(),
    )
        .prop_map(|(rules, attached, is_ignored)| Policy {
            rules,
            attached,
            is_ignored,
        })
}

/// Returns what random scenarios are made of; `resumes` is how often each is resumed.
pub(super) fn scenario(resumes: usize) -> impl Strategy<Value = Scenario> {
    let all: Vec<usize> = (0..STACKS.len()).collect();
    let pairs = vec![(0, 2), (2, 3), (0, 4), (3, 4), (1, 3)];
    let fails = prop::collection::vec(prop::bool::weighted(0.4), 0..5);
    (
        subsequence(pairs, 0..4),
        prop::collection::vec(policy(), POLICIES.len()),
        prop::collection::vec(fails, STACKS.len()),
        (
            subsequence(all.clone(), 1..=STACKS.len()),
            prop::option::weighted(0.2, select(all)),
            prop::bool::weighted(0.2),
        ),
        select(vec!["stop", "skip-dependents", "continue"]),
        1..4_usize,
        (
            prop_oneof![1 => 1..5_usize, 1 => Just(5)],
            prop_oneof![1 => 0..6_usize, 3 => Just(12)],
        ),
        prop::collection::vec(
            prop::option::weighted(0.6, any::<Index>()),
            resumes..=resumes,
        ),
    )
        .prop_map(
            |(after, policies, fails, selection, on_error, jobs, limits, kills)| Scenario {
                after,
                policies,
                fails,
                selected: selection.0,
                excluded: selection.1,
                on_error,
                jobs,
                is_task: selection.2,
                max_turns: limits.0,
                max_followups: limits.1,
                kills,
            },
        )
}

impl Policy {
    pub(super) fn is_attached(&self, stack: usize) -> bool {
        let is_in_a = stack == 1 && self.attached.contains(&0);
        self.attached.is_empty() || self.attached.contains(&stack) || is_in_a
    }

    fn rego(&self) -> String {
        let mut text = "package p\nimport rego.v1\nsample := true\n\
            finished(id) if { some t in input.workflow; t.stack_id == id; t.state == \"FINISHED\" }\n"
            .to_owned();
        for (when, then) in &self.rules {
            let heads = match then {
                Then::Trigger(names) => names
                    .iter()
                    .map(|name| format!("trigger contains \"{name}\""))
                    .collect(),
                Then::Again => vec!["trigger contains input.stack.id".to_owned()],
                Then::Flag(flag) => vec![format!("flag contains \"{flag}\"")],
                Then::Reset(flag) => vec![format!("reset_flag contains \"{flag}\"")],
                Then::Fail => vec!["flag contains 1".to_owned()],
            };
            for head in heads {
                text += &format!("{head} if {{ {} }}\n", when.rego());
            }
        }
        text
    }
}

impl When {
    fn rego(&self) -> String {
        let mut parts = vec!["true".to_owned()];
        if let Some(stack) = self.stack {
            parts.push(format!("input.stack.id == \"{}\"", IDS[stack]));
        }
        if let Some(state) = self.state {
            parts.push(format!("input.run.state == \"{state}\""));
        }
        if let Some(is_asked) = self.is_asked {
            let sign = if is_asked { "!=" } else { "==" };
            parts.push(format!("input.run.triggered_by {sign} null"));
        }
        if let Some(flag) = self.flag {
            parts.push(format!("\"{flag}\" in input.run.flags"));
        }
        if let Some(flag) = self.no_flag {
            parts.push(format!("not \"{flag}\" in input.run.flags"));
        }
        if let Some(is_tracked) = self.is_tracked {
            let word = if is_tracked { "TRACKED" } else { "TASK" };
            parts.push(format!("input.run.type == \"{word}\""));
        }
        for stack in &self.finished {
            parts.push(format!("finished(\"{}\")", IDS[*stack]));
        }
        parts.join("; ")
    }
}

impl Scenario {
    /// Returns the stacks that run before a stack, directly or not, by name or by nesting.
    pub(super) fn before(&self, stack: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut left = vec![stack];
        while let Some(stack) = left.pop() {
            let pairs = self.after.iter().copied().chain([(0, 1)]);
            for (before, _) in pairs.filter(|(_, after)| *after == stack) {
                // A path names what lies below it too.
                let is_below = |it: &usize| *it == 1 && before == 0 && stack != 1;
                let named = (0..STACKS.len()).filter(|it| *it == before || is_below(it));
                left.extend(named.filter(|it| found.insert(*it)));
            }
        }
        found
    }

    /// Returns the arguments of the run.
    pub(super) fn arguments(&self) -> String {
        let mut words = vec![format!("run --on-error {} -j {}", self.on_error, self.jobs)];
        words.push(if self.is_task {
            "--policies=task --followup 'sh -c $ORCH_ROOT/do'".to_owned()
        } else {
            "--policies".to_owned()
        });
        for stack in &self.selected {
            words.push(format!("--match {}", GLOBS[*stack]));
        }
        if let Some(stack) = self.excluded {
            words.push(format!("--exclude {}", GLOBS[stack]));
        }
        words.push("-- sh -c $ORCH_ROOT/do".to_owned());
        words.join(" ")
    }

    pub(super) fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::new("");
        for (number, stack) in STACKS.iter().enumerate() {
            let before = self.after.iter().filter(|(_, after)| *after == number);
            let before: Vec<String> = before
                .map(|(it, _)| format!("\"{}\"", STACKS[*it]))
                .collect();
            let id = match IDS[number] {
                id if id.starts_with('/') => String::new(),
                id => format!("  id = \"{id}\"\n"),
            };
            let text = format!("stack {{\n{id}  after = [{}]\n}}\n", before.join(", "));
            sandbox.write(&format!("{stack}/stack.tm"), text);
            let fails = self.fails[number].iter();
            let fails = fails.map(|fails| u8::from(*fails).to_string() + "\n");
            let fails = fails.collect::<String>();
            sandbox.write(&format!("{stack}/fails"), fails);
        }
        let mut blocks = String::new();
        for (name, policy) in POLICIES.iter().zip(&self.policies) {
            sandbox.write(&format!("/{name}.rego"), policy.rego());
            let attached: Vec<String> = policy
                .attached
                .iter()
                .map(|it| format!("\"{}\"", STACKS[*it]))
                .collect();
            blocks += &format!("policy \"trigger\" \"{name}\" {{\n  file = \"{name}.rego\"\n");
            if !attached.is_empty() {
                blocks += &format!("  attach = [{}]\n", attached.join(", "));
            }
            if policy.is_ignored {
                blocks += "  on_error = \"ignore\"\n";
            }
            blocks += "}\n";
        }
        let (turns, followups) = (self.max_turns, self.max_followups);
        blocks += &format!(
            "orch {{\n  config {{\n    policies {{\n      max_turns = {turns}\n      max_followups = {followups}\n    }}\n  }}\n}}\n"
        );
        sandbox.write("/p.orch.hcl", blocks);
        sandbox.write_program(
            "/do",
            "#!/bin/sh\necho \"$ORCH_STACK_PATH $ORCH_TURN $ORCH_POLICY\" >> \"$ORCH_ROOT/log\"\n\
             read -r now < fails || exit 0\nsed 1d fails > left\nmv left fails\nexit \"$now\"\n",
        );
        sandbox
    }
}
