//! The data that stacks use of other stacks: who reads whose outputs, and where that is written.
//!
//! This module does not read the values. Uses in Terraform and Terragrunt files come from the caller.

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::syntax::ExprKind;
use crate::language::value::Value;
use crate::project::Project;
use crate::project::environment::Environments;
use crate::project::host::host_environment;
use crate::project::lifecycle::Mentions;
use crate::project::namespaces::ProjectNamespaces;
use crate::project::per_stack::needed_at;
use crate::project::sharing::{INPUT, InputBlock};
use crate::project::stack::{DataKind, StackIndex, StackUse, StacksById};
use crate::selection::dangling;
use crate::selection::graph::{Graph, SearchDirection};
use crate::source::Span;

/// Adds the stacks that inputs name to the stacks that have these inputs. Errors: a name without a value,
/// or one that is not a string, and the stack's own id. An id that no stack has is a warning, or an error
/// with `references = "strict"`.
pub fn add_inputs(project: &mut Project, problems: &mut Vec<Diagnostic>) {
    if project.scopes.values().all(|scope| scope.inputs.is_empty()) {
        return;
    }
    let by_id = StacksById::new(&project.stacks);
    let mut found: Vec<(StackIndex, StackUse)> = Vec::new();
    let namespaces = ProjectNamespaces::new(project, std::iter::empty());
    for (index, _) in project.stacks.iter() {
        for input in project.inputs_of(index) {
            let used = source(project, &namespaces, index, input, &by_id);
            match used {
                Ok(used) => found.extend(used.map(|used| (index, used))),
                // Instances share their blocks.
                Err(problem) if problems.contains(&problem) => {}
                Err(problem) => problems.push(problem),
            }
        }
    }
    for (index, used) in found {
        project.stacks.add_use(index, used);
    }
}

/// Adds the stacks that conditions and the variables of environments name to the stacks that have these. Names of no
/// stack are problems of those that evaluate them.
pub fn add_expressions(project: &mut Project) {
    let mut found: Vec<(StackIndex, StackUse)> = Vec::new();
    let environments = Environments::new(project, host_environment());
    for (index, stack) in project.stacks.iter() {
        let mut named: BTreeMap<StackIndex, Span> = environments.stacks_used(index);
        for condition in project.rules_of(index).conditions {
            for (written, span) in Mentions::of(condition).stacks {
                let only = project.stacks.written(stack.path.directory(), written);
                if let Some(only) = only.ok().and_then(|named| named.only()) {
                    named.entry(only).or_insert(span);
                }
            }
        }
        named.remove(&index);
        found.extend(named.into_iter().map(|(named, span)| {
            let used = StackUse {
                kind: DataKind::Expression,
                stack: project.stacks[named].path.clone(),
                orders: false,
                span,
            };
            (index, used)
        }));
    }
    for (index, used) in found {
        project.stacks.add_use(index, used);
    }
}

/// Returns the stack that an input names; `None` if the file that may have it is broken.
fn source(
    project: &Project,
    namespaces: &ProjectNamespaces<'_>,
    stack: StackIndex,
    input: &InputBlock,
    by_id: &StacksById,
) -> Result<Option<StackUse>, Diagnostic> {
    let expr = &input.from_stack_id;
    let value = if let ExprKind::String(text) = &expr.kind {
        Value::string(&**text)
    } else {
        let evaluated = namespaces.of_stack(stack).evaluate(expr);
        let known =
            evaluated.map_err(|none| needed_at(none.into_diagnostic(), expr.span, expr.span))?;
        known.value
    };
    let Some(id) = value.as_str() else {
        let message = "`from_stack_id` must be a string";
        let label = format!("this is {}", value.type_name());
        return Err(Diagnostic::error(Code::WrongType, message).label(expr.span, label));
    };
    let name = &input.name.value;
    let Some(named) = by_id.find(id) else {
        if !project.broken.is_empty() {
            return Ok(None); // what is broken may have it
        }
        let message = format!("the input `{name}` comes from no stack");
        let label = format!("no stack has the id `{id}`");
        let diagnostic = dangling::unknown(project, message).label(expr.span, label);
        return Err(diagnostic.did_you_mean(id, by_id.ids()));
    };
    if named == stack {
        let message = format!("the input `{name}` comes from the stack itself");
        return Err(Diagnostic::error(Code::SelfReference, message)
            .label(
                expr.span,
                format!("the id of `{}`", project.stacks[stack].path),
            )
            .help(format!("remove the `{INPUT}`, or name another stack")));
    }
    Ok(Some(StackUse {
        kind: DataKind::Input,
        stack: project.stacks[named].path.clone(),
        orders: true,
        span: input.span,
    }))
}

/// The order that the data of a stack asks for, and that the project lacks.
pub struct MissingOrder<'p> {
    pub stack: StackIndex,
    /// The stacks that it should run after, by path, each with the uses of their data.
    pub after: BTreeMap<StackIndex, MissingSource<'p>>,
}

#[derive(Debug, Default)]
pub struct MissingSource<'p> {
    pub uses: Vec<&'p StackUse>,
    /// Whether it runs after the stack, so that both orders together would be a cycle.
    pub is_opposed: bool,
}

/// Returns the stacks that use data of stacks which need not run before them, in path order.
pub fn missing_order<'p>(project: &'p Project, graph: &Graph) -> Vec<MissingOrder<'p>> {
    let stacks = project.stacks.iter();
    let missing = stacks.filter_map(|(index, stack)| {
        if stack.uses.iter().all(|used| used.orders) {
            return None;
        }
        let before = graph.neighbours([index], SearchDirection::Dependencies, None);
        let mut after: BTreeMap<StackIndex, MissingSource> = BTreeMap::new();
        for used in &stack.uses {
            let named = project.stacks.find(&used.stack);
            if let Some(named) = named.filter(|named| !before.contains_key(named)) {
                after.entry(named).or_default().uses.push(used);
            }
        }
        if after.is_empty() {
            return None;
        }
        let behind = graph.neighbours([index], SearchDirection::Dependents, None);
        for (named, source) in &mut after {
            source.is_opposed = behind.contains_key(named);
        }
        Some(MissingOrder {
            stack: index,
            after,
        })
    });
    missing.collect()
}
