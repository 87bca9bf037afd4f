//! The names in a `stack` block: `each` is the instance. Functions can be called, including those that read files;
//! their paths are relative to the stack.
//!
//! As in Terramate, neither globals nor metadata are available here: both depend on the stacks.

use std::cell::RefCell;

use super::AttributeRead;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::evaluate::{Call, EvalResult, EvalValue, NamePath, Namespaces};
use crate::language::function::{self, FunctionContext};
use crate::language::syntax::Attribute;
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::project::discover::SourceTree;
use crate::project::function_files::{FileRead, FileSource, ProjectFiles};
use crate::source::Span;

const PLACE: &str = "a `stack` block";

/// The names in a `stack` block, and the files that have been read for it.
pub(super) struct BlockNames<'f> {
    files: &'f SourceTree<'f>,
    directory: &'f ProjectPath,
    /// The value of `each`, while an attribute of an instance is evaluated.
    each: Option<&'f Value>,
    reads: RefCell<Vec<(FileRead, Span)>>,
}

impl<'f> BlockNames<'f> {
    pub(super) fn new(
        files: &'f SourceTree<'f>,
        directory: &'f ProjectPath,
        each: Option<&'f Value>,
    ) -> Self {
        BlockNames {
            files,
            directory,
            each,
            reads: RefCell::default(),
        }
    }

    /// Returns the files that functions accessed since the last call, for an evaluated attribute.
    pub(super) fn reads_of(&self, attribute: &Attribute) -> impl Iterator<Item = AttributeRead> {
        let reads = self.reads.take().into_iter();
        reads.map(|(read, function)| AttributeRead {
            attribute: attribute.name.clone(),
            read,
            function,
        })
    }
}

impl Namespaces for BlockNames<'_> {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        match self.each {
            Some(each) if path.name == "each" => Ok(Some(each.clone().into())),
            None if path.name == "each" => Err(no_each(path).into()),
            _ => NoNamespaces(PLACE).get(path),
        }
    }

    fn names(&self) -> Vec<&str> {
        self.each.iter().map(|_| "each").collect()
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        let source = FileSource {
            root: self.files.root,
            tree: self.files.tree(),
        };
        let files = ProjectFiles::new(source, Some(self.directory));
        let surroundings = FunctionContext {
            files: Some(&files),
            ..FunctionContext::none(PLACE)
        };
        let result = function::call(call, &surroundings);
        let span = call.name.span;
        let reads = files.into_reads().into_iter();
        let mut noted = self.reads.borrow_mut();
        noted.extend(reads.map(|read| (read, span)));
        result
    }

    fn functions(&self) -> Vec<String> {
        function::names(function::PREFIX).collect()
    }
}

/// Returns the error for `each` outside of an instance.
pub(crate) fn no_each(path: &NamePath<'_>) -> Diagnostic {
    let message = "`each` is available only in a stack with `for_each`";
    Diagnostic::error(Code::UnavailableName, message)
        .label(path.span, "no instance here")
        .help("add `for_each` to the `stack` block, or write `tm_try(each.key, …)` for stacks without it")
}
