//! `--changed` finds a stack by what the configuration computes if and only if its environment differs
//! between the base and now, both loaded from whole checkouts, or a function reads a changed file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use orch::change::base::{Base, BaseRule};
use orch::change::{self, ChangeCause, CurrentProject, UncommittedChanges, UseKind};
use orch::diagnostic::Diagnostic;
use orch::git::Repository;
use orch::project::environment::{Environments, Variable};
use orch::project::function_files::FileRead;
use orch::project::namespaces::{ProjectNamespaces, Used};
use orch::project::{Problems, Project};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::support::git::Git;

/// What files may contain: a variable if the line begins with `env`, a let if it begins with `lets`, and
/// otherwise the text itself.
const FILES: [(&str, &[&str]); 27] = [
    (
        "each.tm",
        &[
            "env K = tm_try(\"${each.key} ${each.value}\", \"\")",
            "env K = tm_try(tm_file(\"${terramate.root.path.fs.absolute}/texts/${each.key}\"), \"\")",
            "env K = tm_try(global.map[each.key], global.o[each.value], \"\")",
        ],
    ),
    (
        "env.tm",
        &[
            "env A = global.a",
            "env A = tm_try(global.a, \"none\")",
            "env A = \"1\"",
            "env A = unset",
            "env B = \"${terramate.stack.name} ${tm_try(terramate.stack.parent.tags[0], \"\")}\"",
            "env L = tm_join(\" \", terramate.stacks.list)",
            "env F = tm_file(\"${terramate.root.path.fs.absolute}/texts/t\")",
            "env T = \"${tm_timestamp()} ${env.HOME}\"",
            "env A = ",
        ],
    ),
    (
        "more.tm",
        &[
            "env M = tm_try(global.o.x, global.o.y, \"\")",
            "env M = global.list",
            "env M = \"${tm_try(global.map.k, 0)}\"",
            "env M = let.l",
            "env M = tm_try(let.l, \"none\")",
        ],
    ),
    (
        "lets.orch.hcl",
        &[
            "lets l = \"1\"",
            "lets l = tm_try(global.a, \"none\")",
            "lets l = tm_try(tm_file(\"../texts/u\"), orch.stacks.list[1], \"none\")",
            "lets l = let.l",
        ],
    ),
    (
        "globals.tm",
        &[
            "globals {\n  a = \"1\"\n}\n",
            "globals {\n  a = \"2\"\n}\n",
            "globals {\n  a = global.b\n}\n",
            "globals \"o\" {\n  x = \"1\"\n}\n",
            "globals {\n  list = tm_join(\",\", terramate.stacks.list)\n}\n",
            "globals {\n  map \"map\" {\n    for_each = [\"k\"]\n    key = element.new\n    value = tm_try(global.a, \"\")\n  }\n}\n",
        ],
    ),
    (
        "b.tm",
        &[
            "globals {\n  b = \"1\"\n}\n",
            "globals {\n  b = tm_try(tm_file(\"../texts/u\"), \"none\")\n}\n",
            "globals {\n  b = global.a\n}\n",
        ],
    ),
    (
        "x/env.tm",
        &[
            "env A = \"1\"",
            "env A = null",
            "env N = tm_join(\",\", tm_fileset(\"${terramate.root.path.fs.absolute}/texts\", \"*\"))",
            "env B = global.b",
            "env B = let.l",
        ],
    ),
    ("x/lets.orch.hcl", &["lets l = \"1\"", "lets l = global.b"]),
    (
        "x/globals.tm",
        &[
            "globals {\n  a = \"1\"\n}\n",
            "globals {\n  a = unset\n}\n",
            "globals \"o\" {\n  y = \"1\"\n}\n",
            "globals {\n  o = { x = \"2\" }\n}\n",
        ],
    ),
    (
        "x/import.tm",
        &[
            "import {\n  source = \"/shared/g.hcl\"\n}\n",
            "import {\n  source = \"/shared/*.hcl\"\n}\n",
        ],
    ),
    (
        "shared/g.hcl",
        &["globals {\n  b = \"1\"\n}\n", "globals {\n  b = \"3\"\n}\n"],
    ),
    (
        "shared/h.hcl",
        &["globals {\n  c = \"1\"\n}\n", "env H = \"h\""],
    ),
    (
        "x/y/env.tm",
        &["env A = \"1\"", "env C = tm_try(global.c, \"\")"],
    ),
    (
        "x/y/globals.tm",
        &[
            "globals {\n  a = \"${global.b}\"\n}\n",
            "globals {\n  b = \"1\"\n}\n",
        ],
    ),
    ("x/y/.tmskip", &[""]),
    ("w/.orchskip", &[""]),
    ("x/y/project.tm", &["orch {\n  root = true\n}\n"]),
    ("texts/t", &["1", "2"]),
    ("texts/u", &["1", "2"]),
    ("x/text", &["1", "2"]),
    (
        "c/stack.tm",
        &[
            "stack {\n}\n",
            "stack {\n  name = \"n\"\n}\n",
            "stack {\n  for_each = [\"t\", \"u\"]\n  name = \"n ${each.key}\"\n}\n",
        ],
    ),
    (
        "x/stack.tm",
        &["stack {\n}\n", "stack {\n  tags = [\"t\"]\n}\n"],
    ),
    (
        "x/y/stack.tm",
        &["stack {\n}\n", "stack {\n  tags = [\"t\"]\n}\n"],
    ),
    (
        "x/y/z/stack.tm",
        &[
            "stack {\n}\n",
            "stack {\n  for_each = { t = \"x\", k = \"y\" }\n}\n",
        ],
    ),
    ("x/v/stack.tm", &["stack {\n}\n"]),
    ("x/v/u/stack.tm", &["stack {\n}\n"]),
    ("w/stack.tm", &["stack {\n}\n"]),
];

/// What each of the files contains, if it exists.
type Choice = [Option<usize>; FILES.len()];

fn any_choice() -> impl Strategy<Value = Choice> {
    let one = prop::option::weighted(0.6, any::<usize>());
    prop::collection::vec(one, FILES.len())
        .prop_map(|chosen| std::array::from_fn(|index| chosen[index]))
}

/// The files of a choice; the root is marked, and there is a stack.
fn files(choice: &Choice) -> BTreeMap<&'static str, String> {
    let mut files = BTreeMap::from([
        ("root.orch.hcl", "orch {\n  root = true\n}\n".to_owned()),
        ("s/stack.tm", "stack {\n}\n".to_owned()),
        ("s/t/u/stack.tm", "stack {\n}\n".to_owned()),
    ]);
    for ((path, texts), chosen) in FILES.iter().zip(choice) {
        let Some(chosen) = chosen else { continue };
        let text = texts[chosen % texts.len()];
        let text = match text.split_once(' ') {
            Some((block @ ("env" | "lets"), definition)) => format!(
                "terramate {{\n  config {{\n    run {{\n      {block} {{\n        {definition}\n      }}\n    }}\n  }}\n}}\n"
            ),
            _ => text.to_owned(),
        };
        files.insert(path, text);
    }
    files
}

fn write(root: &Path, files: &BTreeMap<&str, String>) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn host() -> Vec<(String, String)> {
    vec![("HOME".to_owned(), "/h".to_owned())]
}

fn environments(project: &Project) -> Environments<'_> {
    Environments::of(ProjectNamespaces::new(project, host().into_iter()).comparable())
}

/// The value of each variable, or the reason why it has none.
fn shown(variables: &[Variable<'_>], root: &Path) -> BTreeMap<String, String> {
    let root = root.to_str().unwrap();
    let one = |variable: &Variable<'_>| {
        let value = match &variable.value {
            Ok(value) => format!("{value:?}"),
            Err(diagnostic) => format!("fails: {:?} {}", diagnostic.code, diagnostic.message),
        };
        let name = variable.definition.name.text.to_string();
        (name, value.replace(root, "$ROOT"))
    };
    variables.iter().map(one).collect()
}

/// Returns whether a function looks at one of these files.
fn reads(uses: &[Used<'_>], changed: &BTreeSet<String>) -> bool {
    uses.iter().any(|used| match used {
        Used::Value(_, inner) => reads(inner, changed),
        Used::Generation(..) => false,
        Used::File(FileRead::Path(path), _) => changed.contains(path.as_str()),
        Used::File(FileRead::Matching(directory, _), _) => changed.iter().any(|file| {
            let rest = file.strip_prefix(directory.as_str());
            rest.is_some_and(|rest| rest.starts_with('/') && !rest[1..].contains('/'))
        }),
    })
}

fn is_computed(cause: &ChangeCause) -> bool {
    let first = cause.chain.first().map(|step| &step.kind);
    matches!(first, Some(UseKind::Environment { .. }))
}

fn check(before: &Choice, after: &Choice, is_committed: bool) -> Result<(), TestCaseError> {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (root, other) = (folder.join("project"), folder.join("other"));
    let (old, new) = (files(before), files(after));
    write(&root, &old);
    write(&other, &old);
    let git = Git::new(&root, &folder);
    git.init();
    git.commit_all();
    for path in old.keys().filter(|path| !new.contains_key(*path)) {
        fs::remove_file(root.join(path)).unwrap();
    }
    write(&root, &new);
    let repository = Repository::open(&root).unwrap();
    let commit = repository.commit("HEAD").unwrap().unwrap();
    if is_committed {
        git.commit_all();
    }
    let all = old.keys().chain(new.keys());
    let changed = all.filter(|path| old.get(*path) != new.get(*path));
    let changed: BTreeSet<String> = changed.map(|path| format!("/{path}")).collect();

    let mut problems = Problems::default();
    let (now, listing) = Project::load_with_listing(&root, &mut problems).unwrap();
    if problems.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(()); // No command gets further.
    }
    let was = Project::load(&other, &mut Problems::default()).unwrap();
    let base = Base {
        commit,
        rule: BaseRule::Named,
        reason: String::new(),
    };
    let uncommitted = UncommittedChanges {
        status: repository.status().unwrap(),
        ..UncommittedChanges::default()
    };
    let present = CurrentProject {
        project: &now,
        listing: &listing,
        repository: &repository,
        uncommitted: &uncommitted,
        host: &host(),
    };
    let found = change::find(present, base, &mut problems).unwrap();

    let (of_now, of_base) = (environments(&now), environments(&was));
    for (index, stack) in now.stacks.iter() {
        let cause = found.stacks.get(&index);
        if cause.is_some_and(|cause| !is_computed(cause)) {
            continue;
        }
        let variables = of_now.variables(index);
        let now = shown(&variables, &root);
        // If a mark or another project hid the stack, there is nothing to compare with.
        let earlier = was.stacks.find(&stack.path);
        let was = earlier.map(|earlier| shown(&of_base.variables(earlier), &other));
        let is_read = |variable: &Variable<'_>| reads(&variable.uses, &changed);
        let is_other = was.as_ref().is_some_and(|was| *was != now);
        let differs = is_other || variables.iter().any(is_read);
        prop_assert_eq!(
            cause.is_some(),
            differs,
            "{}: {:?} {:#?} {:#?} {:?}",
            stack.path,
            cause,
            was,
            now,
            changed
        );
        if let Some(ChangeCause { file, chain }) = cause {
            prop_assert!(changed.contains(file.path.as_str()), "{file:?}");
            let UseKind::Environment { name, .. } = &chain[0].kind else {
                unreachable!("it is computed");
            };
            let by_name = |it: &&Variable<'_>| it.definition.name.text == *name;
            let is_read = variables.iter().find(by_name).is_some_and(is_read);
            let of_base = was.as_ref().and_then(|was| was.get(&**name));
            prop_assert!(is_read || now.get(&**name) != of_base, "{name}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_stack_has_changed_by_its_environment_if_and_only_if_that_differs(
        before in any_choice(),
        edits in any_choice(),
        edited in prop::collection::vec(prop::bool::weighted(0.2), FILES.len()),
        is_committed in any::<bool>(),
    ) {
        let after: Choice = std::array::from_fn(|index| {
            if edited[index] { edits[index] } else { before[index] }
        });
        check(&before, &after, is_committed)?;
    }
}
