//! The definitions of globals for a directory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::progress::EvaluatedValues;
use crate::path::ProjectPath;
use crate::project::Project;
use crate::project::globals::{DefinitionKind, GlobalDefinition};

/// The globals that apply to a directory that hands some down, and to those below it.
#[derive(Debug, Default)]
pub(super) struct GlobalScope<'p> {
    pub(super) above: Option<Rc<GlobalScope<'p>>>,
    /// The definitions of the directory itself, by first name.
    pub(super) own: BTreeMap<&'p str, Rc<GlobalNode<'p>>>,
    /// The results for all stacks.
    pub(super) shared: EvaluatedValues<'p>,
}

/// The definitions that apply to a name, and to the names below it.
#[derive(Debug, Default, Clone)]
pub(super) struct GlobalNode<'p> {
    /// The definition of the name itself, which hides everything above it.
    pub(super) base: Option<&'p GlobalDefinition>,
    /// The definitions of single entries, which apply on top of it.
    pub(super) inner: BTreeMap<&'p str, Rc<GlobalNode<'p>>>,
    /// Whether it is an object even without entries: because of an empty block for it or for something
    /// in it, or because an object in it has been removed.
    pub(super) is_object: bool,
    /// The last empty block that does so, which turns any value into an object.
    pub(super) block: Option<&'p GlobalDefinition>,
}

impl GlobalNode<'_> {
    fn at(&self, path: &[Box<str>]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| {
            let inner = node.inner.get(&**name)?;
            Some(&**inner)
        })
    }

    /// Returns whether it is an object because of its entries, or of an empty block.
    fn has_entries(&self) -> bool {
        let is_map = |base: &GlobalDefinition| matches!(base.kind, DefinitionKind::Map(_));
        self.is_object
            || self.base.is_some_and(is_map)
            || self.inner.values().any(|inner| inner.adds())
    }

    /// Returns whether it has a value of its own, besides the definition around it.
    pub(super) fn adds(&self) -> bool {
        let sets = |base: &GlobalDefinition| !matches!(base.kind, DefinitionKind::Unset);
        let adds = self.inner.values().any(|inner| inner.adds());
        adds || self.block.is_some() || self.base.is_some_and(sets)
    }
}

impl<'p> GlobalScope<'p> {
    /// Adds the definitions of a directory to those above it.
    pub(super) fn new(above: Option<Rc<Self>>, definitions: &'p [GlobalDefinition]) -> Self {
        let mut own: BTreeMap<&str, Rc<GlobalNode>> = BTreeMap::new();
        for definition in definitions {
            let Some((first, rest)) = definition.path.split_first() else {
                continue;
            };
            let inherited = || {
                let above = above.as_ref().and_then(|above| above.node(first));
                above.cloned().unwrap_or_default()
            };
            let top = own.entry(&**first).or_insert_with(inherited);
            let makes_objects = match definition.kind {
                DefinitionKind::Object => true,
                DefinitionKind::Unset => top.at(rest).is_some_and(GlobalNode::has_entries),
                _ => false,
            };
            let mut node = Rc::make_mut(top);
            for name in rest {
                node.is_object |= makes_objects;
                node = Rc::make_mut(node.inner.entry(&**name).or_default());
            }
            match definition.kind {
                DefinitionKind::Object => {
                    node.is_object = true;
                    node.block = Some(definition);
                }
                _ => {
                    *node = GlobalNode {
                        base: Some(definition),
                        ..GlobalNode::default()
                    }
                }
            }
        }
        GlobalScope {
            above,
            own,
            shared: EvaluatedValues::default(),
        }
    }

    /// Returns the definitions of a first name.
    pub(super) fn node(&self, name: &str) -> Option<&Rc<GlobalNode<'p>>> {
        let above = || self.above.as_ref()?.node(name);
        self.own.get(name).or_else(above)
    }

    /// Returns the first names of all globals, in byte order.
    pub(super) fn names(&self) -> BTreeSet<&'p str> {
        let above = self.above.as_ref().map(|above| above.names());
        let mut names = above.unwrap_or_default();
        names.extend(self.own.keys());
        names
    }

    /// Returns the definitions that apply to a first name, in the order of their paths.
    pub(super) fn definitions(&self, name: &str) -> Vec<&'p GlobalDefinition> {
        fn collect<'p>(node: &GlobalNode<'p>, found: &mut Vec<&'p GlobalDefinition>) {
            found.extend(node.base);
            found.extend(node.block);
            node.inner.values().for_each(|node| collect(node, found));
        }
        let mut found = Vec::new();
        if let Some(node) = self.node(name) {
            collect(node, &mut found);
        }
        found
    }

    /// Returns whether a first name means the same here and in the scope above.
    pub(super) fn is_as_above(&self, name: &str) -> bool {
        !self.own.contains_key(name)
    }
}

/// Something with a value: a definition, or the definitions of a name and those below it.
#[derive(Clone, Copy)]
pub(super) enum GlobalItem<'a, 'p> {
    Definition(&'p GlobalDefinition),
    Node(&'a Rc<GlobalNode<'p>>),
}

impl GlobalItem<'_, '_> {
    pub(super) fn address(self) -> usize {
        match self {
            GlobalItem::Definition(definition) => std::ptr::from_ref(definition).addr(),
            GlobalItem::Node(node) => Rc::as_ptr(node).addr(),
        }
    }
}

/// Returns the directories that hand down globals, with everything that applies to them.
#[derive(Debug, Default)]
pub(super) struct GlobalScopes<'p>(RefCell<HashMap<ProjectPath, Option<Rc<GlobalScope<'p>>>>>);

impl<'p> GlobalScopes<'p> {
    pub(super) fn of(
        &self,
        project: &'p Project,
        directory: &ProjectPath,
    ) -> Option<Rc<GlobalScope<'p>>> {
        if let Some(known) = self.0.borrow().get(directory) {
            return known.clone();
        }
        let above = directory
            .parent()
            .and_then(|parent| self.of(project, &parent));
        let own = project
            .scopes
            .get(directory)
            .map(|scope| scope.globals.definitions(&project.sources));
        let scope = match own {
            Some(own) if !own.is_empty() => Some(Rc::new(GlobalScope::new(above, own))),
            _ => above,
        };
        self.0.borrow_mut().insert(directory.clone(), scope.clone());
        scope
    }
}
