//! Globals mean the same however many stacks share their evaluation: each stack sees the values of a
//! model that evaluates everything separately for it.

use std::collections::BTreeMap;
use std::fs;

use orch::language::value::to_json;
use orch::project::namespaces::ProjectNamespaces;
use orch::project::{Problems, Project};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::host::folder;
use crate::tree::write;

/// How many globals there are; each refers only to those before it.
const N_GLOBALS: usize = 5;

/// The directories, each below those that its path begins with; all but the root are stacks.
const DIRECTORIES: [&str; 7] = ["", "/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f"];

#[derive(Debug, Clone)]
enum Expr {
    Number(u8),
    /// The path of the stack.
    Stack,
    /// A global, and an entry of it.
    Global(usize, Option<char>),
    Join(Box<Expr>, Box<Expr>),
    /// The first, or the second if the first is an error.
    Try(Box<Expr>, Box<Expr>),
    /// The first for the first stack, the second for others.
    If(Box<Expr>, Box<Expr>),
    Object(Box<Expr>, Box<Expr>),
}

/// What a directory says about a global.
#[derive(Debug, Clone)]
enum Definition {
    Whole(Expr),
    Entry(char, Expr),
    Unset,
    UnsetEntry(char),
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Object(BTreeMap<char, Value>),
}

/// An expression that has no value.
#[derive(Debug)]
struct Broken;

fn any_expr(below: usize) -> BoxedStrategy<Expr> {
    let mut leaves = vec![
        (0..9_u8).prop_map(Expr::Number).boxed(),
        Just(Expr::Stack).boxed(),
    ];
    if below > 0 {
        let entry = prop::option::of(prop::sample::select(vec!['x', 'y']));
        let global = (0..below, entry).prop_map(|(name, entry)| Expr::Global(name, entry));
        leaves.extend([global.clone().boxed(), global.boxed()]);
    }
    let two =
        |inner: BoxedStrategy<Expr>| (inner.clone().prop_map(Box::new), inner.prop_map(Box::new));
    let leaf = prop::strategy::Union::new(leaves).boxed();
    leaf.prop_recursive(3, 8, 2, move |inner| {
        let inner = inner.boxed();
        prop_oneof![
            two(inner.clone()).prop_map(|(a, b)| Expr::Join(a, b)),
            two(inner.clone()).prop_map(|(a, b)| Expr::Try(a, b)),
            two(inner.clone()).prop_map(|(a, b)| Expr::If(a, b)),
            two(inner).prop_map(|(a, b)| Expr::Object(a, b)),
        ]
    })
    .boxed()
}

/// Generates definitions: the directory, the global, and the definition itself.
fn any_definitions() -> impl Strategy<Value = Vec<(usize, usize, Definition)>> {
    let definition = (0..DIRECTORIES.len(), 0..N_GLOBALS).prop_flat_map(|(directory, name)| {
        let entry = prop::sample::select(vec!['x', 'y']);
        let definition = prop_oneof![
            4 => any_expr(name).prop_map(Definition::Whole),
            3 => (entry.clone(), any_expr(name)).prop_map(|(entry, expr)| Definition::Entry(entry, expr)),
            1 => Just(Definition::Unset),
            1 => entry.prop_map(Definition::UnsetEntry),
        ];
        (Just(directory), Just(name), definition)
    });
    vec(definition, 1..14)
}

fn written(expr: &Expr) -> String {
    match expr {
        Expr::Number(number) => format!("\"{number}\""),
        Expr::Stack => "terramate.stack.path.absolute".to_owned(),
        Expr::Global(name, None) => format!("global.g{name}"),
        Expr::Global(name, Some(entry)) => format!("global.g{name}.{entry}"),
        Expr::Join(left, right) => format!("\"<${{{}}}|${{{}}}>\"", written(left), written(right)),
        Expr::Try(first, second) => format!("tm_try({}, {})", written(first), written(second)),
        Expr::If(yes, no) => format!(
            "tm_ternary(terramate.stack.path.absolute == \"/a\", {}, {})",
            written(yes),
            written(no)
        ),
        Expr::Object(x, y) => format!("{{ x = {}, y = {} }}", written(x), written(y)),
    }
}

/// Keeps the first definition of each name in a directory, and no entry beside a whole one.
fn without_conflicts(
    definitions: Vec<(usize, usize, Definition)>,
) -> Vec<(usize, usize, Definition)> {
    let mut kept: Vec<(usize, usize, Definition)> = Vec::new();
    for (directory, name, definition) in definitions {
        let is_entry = |it: &Definition| match it {
            Definition::Entry(entry, _) | Definition::UnsetEntry(entry) => Some(*entry),
            Definition::Whole(_) | Definition::Unset => None,
        };
        let clashes = kept.iter().any(|(other, other_name, it)| {
            let both = (is_entry(it), is_entry(&definition));
            *other == directory
                && *other_name == name
                && !matches!(both, (Some(a), Some(b)) if a != b)
        });
        if !clashes {
            kept.push((directory, name, definition));
        }
    }
    kept
}

struct Model<'d> {
    definitions: &'d [(usize, usize, Definition)],
    stack: &'static str,
}

impl Model<'_> {
    /// Returns the value of a global; `None` if it does not exist.
    fn global(&self, name: usize) -> Result<Option<Value>, Broken> {
        // The last definition of the whole hides everything before it; entries come on top.
        let mut whole: Option<&Expr> = None;
        let mut entries: BTreeMap<char, Option<&Expr>> = BTreeMap::new();
        for (index, directory) in DIRECTORIES.iter().enumerate() {
            let applies =
                self.stack == *directory || self.stack.starts_with(&format!("{directory}/"));
            if !applies {
                continue;
            }
            let own = self
                .definitions
                .iter()
                .filter(|(at, it, _)| (*at, *it) == (index, name));
            for (_, _, definition) in own {
                match definition {
                    Definition::Whole(expr) => {
                        whole = Some(expr);
                        entries.clear();
                    }
                    Definition::Unset => {
                        whole = None;
                        entries.clear();
                    }
                    Definition::Entry(entry, expr) => {
                        entries.insert(*entry, Some(expr));
                    }
                    Definition::UnsetEntry(entry) => _ = entries.insert(*entry, None),
                }
            }
        }
        let base = match whole {
            None => None,
            Some(expr) => Some(self.value(expr).ok_or(Broken)?),
        };
        let adds = entries.values().any(Option::is_some);
        let mut object = match base {
            Some(Value::Object(object)) => object,
            // Nothing can be added to a value that is not an object, and unsetting a part of it has no
            // effect.
            Some(text) if !adds => return Ok(Some(text)),
            Some(_) => return Err(Broken),
            None => BTreeMap::new(),
        };
        for (entry, expr) in entries {
            match expr {
                Some(expr) => _ = object.insert(entry, self.value(expr).ok_or(Broken)?),
                None => _ = object.remove(&entry),
            }
        }
        // An object that exists only because of its entries disappears with the last of them.
        Ok((whole.is_some() || adds).then_some(Value::Object(object)))
    }

    /// Returns the value of an entry: that of its own definition or, if it is nearer, that of the
    /// definition of the whole. Other entries do not matter.
    fn entry(&self, name: usize, entry: char) -> Option<Value> {
        let mut own: Option<Option<&Expr>> = None;
        let mut whole: Option<&Expr> = None;
        for (index, directory) in DIRECTORIES.iter().enumerate() {
            if self.stack != *directory && !self.stack.starts_with(&format!("{directory}/")) {
                continue;
            }
            for (at, it, definition) in self.definitions {
                match definition {
                    _ if (*at, *it) != (index, name) => {}
                    Definition::Whole(expr) => (own, whole) = (None, Some(expr)),
                    Definition::Unset => (own, whole) = (None, None),
                    Definition::Entry(found, expr) if *found == entry => own = Some(Some(expr)),
                    Definition::UnsetEntry(found) if *found == entry => own = Some(None),
                    Definition::Entry(..) | Definition::UnsetEntry(_) => {}
                }
            }
        }
        match (own, whole) {
            (Some(own), _) => self.value(own?),
            (None, whole) => match self.value(whole?)? {
                Value::Object(object) => object.get(&entry).cloned(),
                Value::Text(_) => None,
            },
        }
    }

    fn value(&self, expr: &Expr) -> Option<Value> {
        Some(match expr {
            Expr::Number(number) => Value::Text(number.to_string()),
            Expr::Stack => Value::Text(self.stack.to_owned()),
            Expr::Global(name, None) => self.global(*name).ok()??,
            Expr::Global(name, Some(entry)) => self.entry(*name, *entry)?,
            Expr::Join(left, right) => match (self.value(left)?, self.value(right)?) {
                (Value::Text(left), Value::Text(right)) => Value::Text(format!("<{left}|{right}>")),
                _ => return None,
            },
            Expr::Try(first, second) => self.value(first).or_else(|| self.value(second))?,
            Expr::If(yes, no) => self.value(if self.stack == "/a" { yes } else { no })?,
            Expr::Object(x, y) => Value::Object(BTreeMap::from([
                ('x', self.value(x)?),
                ('y', self.value(y)?),
            ])),
        })
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Text(text) => to_json(&orch::language::value::Value::string(&**text)),
        Value::Object(object) => {
            let entries = object.iter();
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("\"{key}\":{}", json(value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 192,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_stack_sees_the_globals_of_the_model(
        definitions in any_definitions(),
        order in Just((1..DIRECTORIES.len()).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let definitions = without_conflicts(definitions);
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for directory in &DIRECTORIES[1..] {
            files.insert(format!("{directory}/stack.tm").split_off(1), "stack {\n}\n".to_owned());
        }
        for (directory, name, definition) in &definitions {
            let file = format!("{}/globals.tm", DIRECTORIES[*directory]).split_off(1);
            *files.entry(file).or_default() += &match definition {
                Definition::Whole(expr) => format!("globals {{\n  g{name} = {}\n}}\n", written(expr)),
                Definition::Unset => format!("globals {{\n  g{name} = unset\n}}\n"),
                Definition::Entry(entry, expr) => {
                    format!("globals \"g{name}\" {{\n  {entry} = {}\n}}\n", written(expr))
                }
                Definition::UnsetEntry(entry) => {
                    format!("globals \"g{name}\" {{\n  {entry} = unset\n}}\n")
                }
            };
        }
        let directory = folder();
        let root = directory.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let files: Vec<(String, String)> = files.into_iter().collect();
        write(&root, &files);
        let mut problems = Problems::default();
        let project = Project::load(&root, &mut problems).unwrap();
        prop_assert!(!problems.has_errors(), "{:?}", problems.diagnostics);
        let namespaces = ProjectNamespaces::new(&project, std::iter::empty());
        for index in order {
            let stack = project.stacks.at(DIRECTORIES[index]).only().unwrap();
            let own = namespaces.of_stack(stack);
            let model = Model { definitions: &definitions, stack: DIRECTORIES[index] };
            for name in 0..N_GLOBALS {
                let expected = model.global(name).ok().flatten().map(|value| json(&value));
                let found = own.global(&format!("g{name}")).ok().flatten();
                let found = found.map(|answer| to_json(&answer.value));
                prop_assert_eq!(found, expected, "g{} in {}\n{:#?}", name, DIRECTORIES[index], files);
            }
        }
    }
}
