//! The definition of a global or a `let`.

use crate::language::syntax::Expr;
use crate::project::config::LetDefinition;
use crate::project::globals::GlobalDefinition;
use crate::source::Span;

#[derive(Debug, Clone, Copy)]
pub enum Definition<'p> {
    Global(&'p GlobalDefinition),
    Let(&'p LetDefinition),
}

impl<'p> Definition<'p> {
    /// Returns how an expression refers to it: `global.network.cidr`, `let.region`.
    pub fn name(self) -> String {
        match self {
            Definition::Global(definition) => definition.name(),
            Definition::Let(definition) => format!("let.{}", definition.name.text),
        }
    }

    pub fn span(self) -> Span {
        match self {
            Definition::Global(definition) => definition.span,
            Definition::Let(definition) => definition.name.span,
        }
    }

    /// Returns a number that identifies the definition: no other has it.
    pub(crate) fn address(self) -> usize {
        match self {
            Definition::Global(definition) => std::ptr::from_ref(definition).addr(),
            Definition::Let(definition) => std::ptr::from_ref(definition).addr(),
        }
    }

    pub(crate) fn each_expression(self, visit: &mut dyn FnMut(&'p Expr)) {
        match self {
            Definition::Global(definition) => definition.each_expression(visit),
            Definition::Let(definition) => visit(&definition.value),
        }
    }
}
