//! Which stacks have changed: random repositories and histories, compared with a model that never
//! asks git what differs. Few cases, since each starts dozens of processes.

mod asked;
mod chosen;
mod digests;
mod generate;
mod history;
mod links;
mod listed;
mod paths;
mod repository;
mod rules;
mod texts;

use std::process::Command;

use proptest::prelude::*;
use proptest::sample::select;

use self::asked::{Asked, Expected, check_reasons};
use self::generate::{Scene, Switches, WantedBase, any_scene, any_trigger};
use self::history::Operation;
use self::listed::check_inputs;
use self::repository::{Reader, Repository, Setting};
use self::rules::{Paths, Refused, Tree, place_of};
use self::texts::{Configuration, File, From, Item, StackBlock, Text};

const ON: Switches = Switches {
    untracked: true,
    uncommitted: true,
};

const OFF: Switches = Switches {
    untracked: false,
    uncommitted: false,
};

fn repository(scene: &Scene) -> Repository {
    Repository::new(scene.setting, &scene.files, &scene.operations)
}

/// The stacks that a command line of `run` names when it runs nothing.
fn would_run(mut orch: Command, asked: &Asked) -> Vec<String> {
    orch.args(["run", "--dry-run"])
        .args(&asked.arguments)
        .args(["--", "true"]);
    let output = orch.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let stacks = text
        .lines()
        .map(|line| line.strip_suffix(": true").unwrap());
    let mut stacks: Vec<String> = stacks.map(str::to_owned).collect();
    stacks.sort();
    stacks
}

fn config(share: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.div_ceil(share),
        ..ProptestConfig::default()
    }
}

/// Checks all that `orch` says of what has changed.
fn check(scene: &Scene) -> Result<(), TestCaseError> {
    let repository = repository(scene);
    let asked = Asked::new(&repository, scene.base, scene.switches);
    let answer = asked.list(&repository);
    let story = || format!("{asked:?}\n{}\n{answer:#?}", repository.story());
    if let Err(Refused(what)) = Tree(&repository.working).inputs() {
        prop_assert_eq!(answer.status, 3, "{}\n{}", what, story());
        return Ok(());
    }
    if asked.bases.is_empty() {
        prop_assert_eq!(answer.status, 4, "there is no base\n{}", story());
        return Ok(());
    }
    prop_assert_eq!(answer.status, 0, "{}", story());
    let base = answer
        .base(&repository)
        .filter(|base| asked.bases.contains(base));
    let base = base.ok_or_else(|| TestCaseError::fail(format!("wrong base\n{}", story())))?;
    let expected = Expected::new(&repository, base, scene.switches);
    prop_assert_eq!(answer.stacks(), expected.stacks(), "changed\n{}", story());
    prop_assert_eq!(answer.removed(), &expected.removed, "removed\n{}", story());
    if let Err(problem) = check_reasons(&answer, &expected, &repository) {
        prop_assert!(false, "{}\n{}", problem, story());
    }
    if let Err(problem) = check_inputs(&answer, &expected, &repository) {
        prop_assert!(false, "{}\n{}", problem, story());
    }
    let run = would_run(repository.orch(), &asked);
    prop_assert_eq!(run, answer.paths(), "run\n{}", story());
    Ok(())
}

#[test]
fn a_set_of_files_changes_with_what_its_directory_is() {
    let stack = Configuration {
        stack: Some(StackBlock::default()),
        ..Configuration::default()
    };
    let set = Item::Set {
        from: From::Module,
        path: "../data/ld".to_owned(),
        pattern: "*",
    };
    let link = Text::Link("../elsewhere".to_owned());
    let write = |path: &str, text| (path.to_owned(), text);
    let scene = Scene {
        setting: Setting {
            directory: "",
            reader: Reader::Library,
        },
        files: vec![
            write("a/stack.tm", Text::Configuration(stack)),
            write("a/main.tf", Text::Terraform(vec![set])),
            write("elsewhere/x", Text::Plain),
            write("data/ld", link),
        ],
        operations: vec![Operation::DeleteAll("data/ld")],
        base: WantedBase::Head,
        switches: ON,
    };
    assert_eq!(repository(&scene).working.len(), 4);
    check(&scene).unwrap();
}

#[test]
fn a_stack_changes_with_the_mark_above_that_hid_it() {
    let stack = Configuration {
        stack: Some(StackBlock::default()),
        ..Configuration::default()
    };
    let scene = Scene {
        setting: Setting {
            directory: "",
            reader: Reader::Library,
        },
        files: vec![
            ("a/n/d/stack.tm".to_owned(), Text::Configuration(stack)),
            ("a/n/.tmskip".to_owned(), Text::Plain),
        ],
        operations: vec![Operation::DeleteAll("a/n/.tmskip")],
        base: WantedBase::Head,
        switches: ON,
    };
    check(&scene).unwrap();
}

/// The project does not read it, so that nothing tells a comment from anything else.
#[test]
fn a_comment_in_a_nested_project_counts_as_in_any_file() {
    let stack = Configuration {
        stack: Some(StackBlock::default()),
        ..Configuration::default()
    };
    let root = Configuration {
        is_root: true,
        ..Configuration::default()
    };
    let scene = Scene {
        setting: Setting {
            directory: "",
            reader: Reader::Library,
        },
        files: vec![
            ("a/stack.tm".to_owned(), Text::Configuration(stack)),
            ("a/n/z.orch.hcl".to_owned(), Text::Configuration(root)),
        ],
        operations: vec![Operation::Edit("a/n", 0)],
        base: WantedBase::Head,
        switches: ON,
    };
    check(&scene).unwrap();
}

/// The base does not have it.
#[test]
fn a_configuration_file_that_was_staged_and_then_deleted_is_no_error() {
    let empty = Configuration {
        stack: None,
        imports: vec![],
        ignore: vec![],
        is_root: false,
    };
    let scene = Scene {
        setting: Setting {
            directory: "",
            reader: Reader::Library,
        },
        files: vec![("a/stack.tm".to_owned(), Text::Configuration(empty.clone()))],
        operations: vec![
            Operation::Write("s p/more.tm.hcl".to_owned(), Text::Configuration(empty)),
            Operation::Stage("s p"),
            Operation::Rename("s p", "a-b"),
        ],
        base: WantedBase::Head,
        switches: ON,
    };
    check(&scene).unwrap();
}

proptest! {
    #![proptest_config(config(3))]

    #[test]
    fn the_stacks_that_changed_are_those_of_the_model_and_every_reason_is_true(scene in any_scene()) {
        check(&scene)?;
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn how_files_came_to_be_what_they_are_does_not_matter(scene in any_scene()) {
        let mut repository = repository(&scene);
        let asked = Asked::new(&repository, scene.base, scene.switches);
        let before = asked.list(&repository);
        let files = repository.working.clone();
        for (path, file) in files.iter().rev() {
            repository.write(path, file.clone());
        }
        let after = asked.list(&repository);
        prop_assert_eq!(before, after, "{}", repository.story());
    }

    #[test]
    fn a_trigger_means_all_stacks_in_a_directory_or_the_instance_with_its_key(
        scene in any_scene(),
        triggers in prop::collection::vec(any_trigger(), 1..5),
    ) {
        let mut repository = repository(&scene);
        let asked = Asked::new(&repository, scene.base, ON);
        let answer = asked.list(&repository);
        if answer.status != 0 {
            return Ok(());
        }
        let stacks = Tree(&repository.working).stacks();
        let (mut expected, mut dismissed) = (answer.stacks(), Paths::new());
        for (n, trigger) in triggers.into_iter().enumerate() {
            let meant = stacks.iter().filter(|stack| {
                let (directory, key) = place_of(stack);
                directory == trigger.directory && (trigger.key.is_none() || trigger.key == key)
            });
            let told = if trigger.is_changed { &mut expected } else { &mut dismissed };
            told.extend(meant.cloned());
            let ending = if trigger.key.is_some() { "orch.hcl" } else { "tm.hcl" };
            let path = format!(".tmtriggers/{}/{n}.{ending}", trigger.directory);
            repository.write(&path, File::new(Text::Trigger(trigger)));
        }
        expected.retain(|stack| !dismissed.contains(stack));
        prop_assert_eq!(asked.stacks(&repository), expected, "{}", repository.story());
    }

    #[test]
    fn with_both_switches_off_the_working_tree_does_not_matter(
        scene in any_scene(),
        written in prop::collection::vec(
            (select(vec!["a/x", "data/x", "mods/x/x", "a-b/new", "libs/common/é"]), any::<u8>()),
            1..4,
        ),
    ) {
        let mut repository = repository(&scene);
        let asked = Asked::new(&repository, scene.base, OFF);
        let before = asked.list(&repository);
        for (path, salt) in written {
            let is_used = repository.working.keys().any(|file| paths::is_at_or_below(path, file));
            if !is_used || repository.working.contains_key(path) {
                repository.write(path, File { salt, ..File::new(Text::Plain) });
            }
        }
        let after = asked.list(&repository);
        prop_assert_eq!(before, after, "{}", repository.story());
    }

    #[test]
    fn where_nothing_differs_nothing_has_changed(scene in any_scene()) {
        let mut repository = repository(&scene);
        repository.clean();
        let asked = Asked::new(&repository, WantedBase::Head, scene.switches);
        let answer = asked.list(&repository);
        if answer.status != 3 {
            prop_assert_eq!(answer.status, 0);
            prop_assert!(answer.stacks().is_empty(), "{:?}\n{}", answer, repository.story());
            prop_assert!(answer.removed().is_empty());
        }
    }
}
