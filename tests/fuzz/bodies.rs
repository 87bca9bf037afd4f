//! What the fuzzers do with a text. Nothing may panic, hang, or use unbounded memory.

use orch::language::NoNamespaces;
use orch::language::evaluate::evaluate as value_of;
use orch::language::parse::{deferred, parse as parse_file, parse_expression};
use orch::language::syntax::Body;
use orch::language::value::to_json;
use orch::path::ProjectPath;
use orch::source::{FileId, SourceFile, Sources};

/// Parses a configuration file, including what is deferred, and evaluates its attributes. Rendering each
/// diagnostic must succeed, and nothing may depend on what was deferred.
pub(crate) fn parse(text: &str) {
    let with_deferred = format!(" \n{text}");
    let (sources, file) = source(&with_deferred);
    let parsed = parse_file(file, &with_deferred).map(|body| complete(body, &with_deferred));
    // The parser ignores a carriage return here, but nothing after it is deferred.
    let without_deferred = format!("\r\n{text}");
    let whole = parse_file(file, &without_deferred);
    assert!(whole.as_ref().is_ok_and(|body| body.deferred.is_empty()) || whole.is_err());
    assert_eq!(format!("{parsed:?}"), format!("{whole:?}"));
    match parsed {
        Ok(body) => {
            for attribute in &body.attributes {
                draw(
                    value_of(&attribute.value, &NoNamespaces("a fuzzer")),
                    &sources,
                );
            }
        }
        Err(diagnostic) => draw::<()>(Err(diagnostic), &sources),
    }
}

/// Parses an expression and evaluates it. Writing the value must succeed.
pub(crate) fn evaluate(text: &str) {
    let (sources, file) = source(text);
    match parse_expression(file, text) {
        Ok(expr) => match value_of(&expr, &NoNamespaces("a fuzzer")) {
            Ok(value) => _ = to_json(&value),
            Err(diagnostic) => draw::<()>(Err(diagnostic), &sources),
        },
        Err(diagnostic) => draw::<()>(Err(diagnostic), &sources),
    }
}

/// Parses what was deferred.
fn complete(mut body: Body, text: &str) -> Body {
    let parsed = body.deferred.iter().map(|block| deferred(block, text));
    body.blocks.extend(parsed);
    body.blocks.sort_by_key(|block| block.kind.span.start);
    body.deferred.clear();
    body
}

fn source(text: &str) -> (Sources, FileId) {
    let mut sources = Sources::default();
    let file = sources.add(SourceFile {
        path: ProjectPath::root().join("fuzzed.tm"),
        text: text.to_owned(),
    });
    (sources, file)
}

fn draw<T>(result: Result<T, Box<orch::diagnostic::Diagnostic>>, sources: &Sources) {
    if let Err(diagnostic) = result {
        let style = orch::diagnostic::RenderStyle::Plain;
        let drawn = orch::diagnostic::render(&diagnostic, sources, style);
        assert!(!drawn.is_empty());
    }
}
