//! Globals from the command line: `orch eval --global NAME=EXPR`.

use crate::diagnostic::Diagnostic;
use crate::language::parse::parse_expression;
use crate::language::syntax::is_identifier;
use crate::project::globals::{DefinitionKind, GlobalDefinition, is_unset};
use crate::source::Sources;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// There is no `=`, or nothing before or after it.
    #[error("`{0}` is not of the form NAME=EXPR")]
    NotADefinition(String),
    /// The name is not a valid one.
    #[error(
        "`{0}` cannot be the name of a global; write it as in `region` or `network.cidr`, without `global`"
    )]
    Name(String),
}

/// Parses definitions `NAME=EXPR`, where dots in the name lead into objects. They apply after those of all
/// directories; the last one of a name wins. Each becomes a source, so that its errors are shown like those of files,
/// in `global NAME`.
pub fn parse_overrides(
    written: &[String],
    sources: &mut Sources,
    problems: &mut Vec<Diagnostic>,
) -> Result<Vec<GlobalDefinition>, OverrideError> {
    let mut definitions = Vec::with_capacity(written.len());
    for text in written {
        let parts = text
            .split_once('=')
            .map(|(name, expr)| (name.trim(), expr.trim()));
        let Some((name, expr)) = parts.filter(|(name, expr)| !name.is_empty() && !expr.is_empty())
        else {
            return Err(OverrideError::NotADefinition(text.clone()));
        };
        let path: Vec<Box<str>> = name.split('.').map(Box::from).collect();
        if !path.iter().all(|part| is_identifier(part)) {
            return Err(OverrideError::Name(name.to_owned()));
        }
        let file = sources.add_argument(&format!("global {name}"), expr);
        match parse_expression(file, expr) {
            Err(diagnostic) => problems.push(*diagnostic),
            Ok(expr) => definitions.push(GlobalDefinition {
                path,
                span: expr.span,
                kind: if is_unset(&expr) {
                    DefinitionKind::Unset
                } else {
                    DefinitionKind::Value(expr)
                },
                directory: None,
                is_imported: false,
            }),
        }
    }
    // Definitions of whole objects come before those of their entries. The sort is stable.
    definitions.sort_by_key(|definition| definition.path.len());
    Ok(definitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<GlobalDefinition>, String> {
        let mut problems = Vec::new();
        let definitions =
            parse_overrides(&[text.to_owned()], &mut Sources::default(), &mut problems);
        match problems.pop() {
            Some(problem) => Err(problem.message),
            None => definitions.map_err(|error| error.to_string()),
        }
    }

    #[test]
    fn a_definition_is_a_name_and_an_expression() {
        for text in [
            "a=1",
            "a = 1",
            "a.b.c={ x = 1 }",
            "a=1==1",
            "a=\"=\"",
            "a=unset",
            "my-attr=[]",
        ] {
            assert!(parsed(text).is_ok(), "{text}: {:?}", parsed(text));
        }
        for text in [
            "a", "a=", "a= ", "=1", "a b=1", "a.=1", ".a=1", "1a=1", "a=1=1", "a=1 2",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
