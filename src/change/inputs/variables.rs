//! The values that variables have in the modules that one stack uses: those that callers pass, and settings of the
//! root module.
//!
//! Only the values that the stack itself passes count, so that stacks that share a module keep their own files.

use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;

use super::constants::{Constants, PossibleValues, rebase};
use super::definitions::arguments;
use super::node::InputNode;
use super::settings::{Settings, with_default};
use super::terragrunt::{self, PassedInputs};
use super::tree::Tree;
use crate::language::value::Value;
use crate::path::ProjectPath;

/// The maximum number of values of one variable.
const MAX_VALUES: usize = 64;

/// The maximum number of modules that pass a value on.
const MAX_DEPTH: usize = 32;

/// The variables of the modules behind one node: that of a stack, or of its Terragrunt files.
pub(super) struct StackVariables<'s, 'a> {
    tree: &'s Tree<'a>,
    nodes: &'s [InputNode<'a>],
    start: usize,
    stack: &'s ProjectPath,
    has_unit: bool,
    /// The users of each node, each with the index of its edge.
    callers: HashMap<usize, Vec<(usize, usize)>>,
    passed: OnceCell<PassedInputs>,
    known: RefCell<HashMap<(usize, Box<str>), PossibleValues>>,
    depth: Cell<usize>,
}

impl<'s, 'a> StackVariables<'s, 'a> {
    /// Prepares the variables of the nodes that a walk from the start has reached.
    pub(super) fn new(
        tree: &'s Tree<'a>,
        nodes: &'s [InputNode<'a>],
        start: usize,
        has_unit: bool,
        reached: &[usize],
    ) -> Self {
        let mut callers: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for &user in reached {
            for (edge, used) in nodes[user].edges.iter().enumerate() {
                callers.entry(used.target).or_default().push((user, edge));
            }
        }
        StackVariables {
            tree,
            nodes,
            start,
            stack: &nodes[start].path,
            has_unit,
            callers,
            passed: OnceCell::new(),
            known: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    /// Returns the possible values of a variable of a module.
    pub(super) fn values(&self, node: usize, name: &str) -> PossibleValues {
        let key = (node, Box::from(name));
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let mut known = self.known.borrow_mut();
        // If a module calls itself, the value is unknown.
        known.insert(key.clone(), [None].into());
        drop(known);
        let values = if self.depth.get() < MAX_DEPTH {
            self.depth.update(|depth| depth + 1);
            let values = self.find(node, name);
            self.depth.update(|depth| depth - 1);
            distinct(values)
        } else {
            [None].into()
        };
        self.known.borrow_mut().insert(key, values.clone());
        values
    }

    fn find(&self, node: usize, name: &str) -> Vec<Option<Value>> {
        if node == self.start {
            return self.root_values(node, name);
        }
        let mut values = Vec::new();
        for &(user, edge) in self.callers.get(&node).into_iter().flatten() {
            match &self.nodes[user].edges[edge].call {
                Some(module) => values.extend(self.passed_values(user, module, node, name)),
                None => values.extend(self.root_values(node, name)),
            }
        }
        values
    }

    /// Returns the values of a variable of a root module.
    fn root_values(&self, node: usize, name: &str) -> Vec<Option<Value>> {
        let passed = if self.has_unit {
            let passed = self
                .passed
                .get_or_init(|| terragrunt::passed_inputs(self.tree, self.stack));
            passed.values(name)
        } else {
            Vec::new()
        };
        let node = &self.nodes[node];
        let settings = Settings::new(self.tree, &node.path, self.stack);
        settings.values(node.definitions(self.tree), name, passed)
    }

    /// Returns the values that a module passes to another for a variable.
    fn passed_values(
        &self,
        user: usize,
        module: &str,
        node: usize,
        name: &str,
    ) -> Vec<Option<Value>> {
        let (from, to) = (&self.nodes[user], &self.nodes[node]);
        let definitions = from.definitions(self.tree);
        let variables = |name: &str| self.values(user, name);
        let mut values = Vec::new();
        for argument in arguments(definitions, module, name) {
            let constants = Constants::new(definitions, &variables);
            let found = constants.for_each_combination(|| constants.value(argument));
            let way = from.path.relative_to(&to.path);
            values.extend(found.into_iter().map(|value| rebase(value?, &way)));
        }
        with_default(values, to.definitions(self.tree), name)
    }
}

/// Returns values without repetitions. `None` replaces those after the first [`MAX_VALUES`].
fn distinct(values: Vec<Option<Value>>) -> PossibleValues {
    let is_same = |a: &Option<Value>, b: &Option<Value>| match (a, b) {
        (Some(a), Some(b)) => a.order(b) == Ordering::Equal,
        (a, b) => a.is_none() && b.is_none(),
    };
    let mut found: Vec<Option<Value>> = Vec::new();
    for value in values {
        if found.iter().any(|known| is_same(known, &value)) {
            continue;
        }
        if found.len() == MAX_VALUES {
            found.push(None);
            break;
        }
        found.push(value);
    }
    found.into()
}
