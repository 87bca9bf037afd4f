//! The modules and files that one Terraform file names, as written.
//!
//! This module looks nothing up.

use memchr::memmem;

use crate::change::call::CallVersion;
use crate::diagnostic::Diagnostic;
use crate::language::parse::parse_whole;
use crate::language::syntax::{Block, Body, Expr, ExprKind, Name, TemplatePart, TraversalStepKind};
use crate::path::ProjectPath;
use crate::source::{FileId, Span};

/// Blocks with attributes that name files to read: kind, type and attributes.
const READING_BLOCKS: [(&str, &str, &[&str]); 4] = [
    ("data", "archive_file", &["source_dir", "source_file"]),
    ("resource", "archive_file", &["source_dir", "source_file"]),
    ("data", "local_file", &["filename"]),
    ("data", "local_sensitive_file", &["filename"]),
];

/// Functions that read the file named by their first argument.
pub(super) const READERS: [&str; 10] = [
    "file",
    "filebase64",
    "filebase64sha256",
    "filebase64sha512",
    "fileexists",
    "filemd5",
    "filesha1",
    "filesha256",
    "filesha512",
    "templatefile",
];

/// A dependency of a file.
pub(super) struct NamedInput {
    /// `None` in JSON.
    pub(super) span: Option<Span>,
    pub(super) what: Dependency,
}

/// A module or file that a Terraform file names.
pub(super) enum Dependency {
    /// A local module, by its name and source.
    Module(Box<str>, Box<str>),
    /// A module by name, whose source is an expression.
    Computed(Box<str>, Box<Expr>),
    /// A file that a function reads.
    Read(ReadCall),
    /// A file whose path is an expression.
    ComputedRead(Box<ComputedRead>),
    /// A module outside of the project, if calls are collected.
    Elsewhere(Box<CallText>),
}

/// A call of a module outside of the project, as written.
pub(super) struct CallText {
    pub(super) name: Box<str>,
    pub(super) source: Box<str>,
    /// Whether a part follows that only Terraform can evaluate.
    pub(super) is_open: bool,
    pub(super) version: CallVersion,
}

/// A call of a function that reads a file.
pub(super) struct ReadCall {
    pub(super) function: Box<str>,
    pub(super) base: PathBase,
    /// Absolute, or relative to the base; for `fileset`, the directory.
    pub(super) path: Box<str>,
    /// The second argument of `fileset`.
    pub(super) pattern: Option<Box<str>>,
}

/// A path that has to be evaluated.
pub(super) struct ComputedRead {
    /// The function or the type of the block that reads it.
    pub(super) reader: Box<str>,
    pub(super) path: Expr,
    /// The second argument of `fileset`.
    pub(super) pattern: Option<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathBase {
    /// The directory of the file.
    Module,
    /// The working directory of Terraform.
    Root,
}

/// Returns whether a native file has to be parsed. Most need not: no word in them opens a `module` block or a
/// block that reads files, or calls a function that reads one, and brackets and quotes look balanced.
pub(super) fn is_worth_parsing(text: &str) -> bool {
    has_module(text.as_bytes()) || has_reader(text.as_bytes()) || !is_balanced(text.as_bytes())
}

fn has_module(text: &[u8]) -> bool {
    memmem::find_iter(text, "module").any(|at| {
        let before = at.checked_sub(1).map(|before| text[before]);
        let after = text.get(at + "module".len()).copied();
        !before.is_some_and(|byte| byte == b'.' || is_word(byte))
            && after.is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'/'))
    })
}

fn has_reader(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = memmem::find(rest, b"file") {
        let word = &rest[at..];
        let end = word.iter().position(|byte| !is_word(*byte));
        let Some(end) = end else { return false };
        // Examined once, however often the word contains `file`.
        rest = &word[end..];
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        // Not worth looking behind a comment.
        if matches!(next, Some(b'(' | b'/' | b'#')) {
            return true;
        }
        // A type of a block that reads files.
        if word.starts_with(b"file\"") && text[..text.len() - word.len()].ends_with(b"_") {
            return true;
        }
    }
    false
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
}

fn is_balanced(text: &[u8]) -> bool {
    let mut counts = [0_u32; 256];
    for &byte in text {
        counts[usize::from(byte)] += 1;
    }
    let count = |byte: u8| counts[usize::from(byte)];
    count(b'{') == count(b'}')
        && count(b'(') == count(b')')
        && count(b'[') == count(b']')
        && count(b'"').is_multiple_of(2)
}

/// Returns the dependencies of a native file, in order; with `calls`, also modules outside of the
/// project. Fails at the first syntax error.
pub(super) fn native(text: &str, calls: bool) -> Result<Vec<NamedInput>, Box<Diagnostic>> {
    let body = parse_whole(FileId::UNPLACED, text)?;
    let mut named = Vec::new();
    for block in body.blocks("module") {
        let Some(source) = block.body.attribute("source") else {
            continue;
        };
        let name = name_of(block);
        let elsewhere = || {
            let version = block.body.attribute("version");
            call(name, &source.value, version.map(|version| &version.value))
        };
        let what = module(name, &source.value);
        if let Some(what) = what.or_else(|| calls.then(elsewhere)) {
            named.push(NamedInput {
                span: Some(source.value.span),
                what,
            });
        }
    }
    reads(&body, &mut named);
    for (kind, reader, attributes) in READING_BLOCKS {
        let blocks = body.blocks(kind).filter(|block| name_of(block) == reader);
        for block in blocks {
            let paths = attributes
                .iter()
                .filter_map(|name| block.body.attribute(name));
            named.extend(paths.map(|path| NamedInput {
                span: Some(path.value.span),
                what: Dependency::ComputedRead(Box::new(ComputedRead {
                    reader: reader.into(),
                    path: path.value.clone(),
                    pattern: None,
                })),
            }));
        }
    }
    named.sort_by_key(|named| named.span.map(|span| span.start));
    Ok(named)
}

fn name_of(block: &Block) -> &str {
    block.labels.first().map_or("", |label| &label.text)
}

fn reads(body: &Body, named: &mut Vec<NamedInput>) {
    body.each_call(&mut |name, arguments| {
        named.extend(read(name, arguments).map(|what| NamedInput {
            span: Some(name.span),
            what,
        }));
    });
}

/// Returns the dependency of a module's source; `None` if the module is outside of the project.
pub(super) fn module(name: &str, source: &Expr) -> Option<Dependency> {
    let path = match literal(source) {
        Some(path) => path,
        None => match literal_path(source) {
            Some((PathBase::Module, path)) => path,
            _ if is_elsewhere(source) => return None,
            _ => return Some(Dependency::Computed(name.into(), Box::new(source.clone()))),
        },
    };
    local_module(name, &path)
}

pub(super) fn local_module(name: &str, source: &str) -> Option<Dependency> {
    // A heredoc ends with a line break.
    let source = source.trim_end_matches(['\n', '\r']);
    (is_local(source) || is_absolute(source))
        .then(|| Dependency::Module(name.into(), source.into()))
}

pub(super) fn call(name: &str, source: &Expr, version: Option<&Expr>) -> Dependency {
    let whole = literal(source);
    Dependency::Elsewhere(Box::new(CallText {
        name: name.into(),
        is_open: whole.is_none(),
        source: whole.unwrap_or_else(|| start(source)).trim_end().into(),
        version: match version {
            None => CallVersion::Any,
            Some(version) => match literal(version) {
                Some(text) => CallVersion::Constraint(text.into()),
                None => CallVersion::Unknown,
            },
        },
    }))
}

fn start(source: &Expr) -> String {
    let ExprKind::Template(parts) = &source.kind else {
        return String::new();
    };
    let literals = parts.iter().map_while(|part| match part {
        TemplatePart::Literal(text) => Some(text.to_string()),
        TemplatePart::Interpolation(expr) => literal(expr),
        TemplatePart::If { .. } | TemplatePart::For { .. } => None,
    });
    literals.collect()
}

/// Returns whether the start of a source rules out a directory relative to the file.
fn is_elsewhere(source: &Expr) -> bool {
    let start = start(source);
    let may_be_local = start.starts_with("./") || start.starts_with("../");
    !may_be_local && !matches!(&*start, "" | "." | "..")
}

/// Returns whether a source is a directory relative to the file.
pub(super) fn is_local(source: &str) -> bool {
    let starts = ["./", "../"].iter().any(|start| source.starts_with(start));
    (starts || matches!(source, "." | "..")) && source.len() <= ProjectPath::MAX_BYTES
}

pub(super) fn read(name: &Name, arguments: &[Expr]) -> Option<Dependency> {
    let function = name.text.strip_prefix("core::").unwrap_or(&name.text);
    let is_set = function == "fileset";
    if !is_set && !READERS.contains(&function) {
        return None;
    }
    let (argument, second) = (arguments.first()?, arguments.get(1));
    let pattern = if is_set { Some(second?) } else { None };
    if literal(argument).is_some_and(|path| plain_path(path).is_none()) {
        return None;
    }
    let text = |pattern: Option<&Expr>| match pattern {
        Some(pattern) => literal(pattern).map(|text| Some(text.into())),
        None => Some(None),
    };
    Some(match literal_path(argument).zip(text(pattern)) {
        Some(((base, path), pattern)) => Dependency::Read(ReadCall {
            function: function.into(),
            base,
            path: path.into(),
            pattern,
        }),
        None => Dependency::ComputedRead(Box::new(ComputedRead {
            reader: function.into(),
            path: argument.clone(),
            pattern: pattern.cloned(),
        })),
    })
}

/// Returns the path that an expression spells with text and places only, outside of the home directory.
fn literal_path(expr: &Expr) -> Option<(PathBase, String)> {
    let parts = match &expr.kind {
        ExprKind::Template(parts) => parts.as_slice(),
        _ => {
            return location(expr)
                .map(|base| (base, ".".to_owned()))
                .or_else(|| plain_path(literal(expr)?));
        }
    };
    // A leading `./` before a place changes nothing.
    let parts = match parts {
        [TemplatePart::Literal(text), rest @ ..] if matches!(&**text, "" | "./") => rest,
        parts => parts,
    };
    let (base, rest) = match parts.split_first()? {
        (TemplatePart::Interpolation(first), rest) => match location(first) {
            Some(base) => (Some(base), rest),
            None => (None, parts),
        },
        _ => (None, parts),
    };
    let mut path = String::new();
    for part in rest {
        match part {
            TemplatePart::Literal(text) => path.push_str(text),
            TemplatePart::Interpolation(expr) => path.push_str(&literal(expr)?),
            TemplatePart::If { .. } | TemplatePart::For { .. } => return None,
        }
    }
    match base {
        // `${path.module}x` would name a sibling, which is surely not intended.
        Some(_) if !path.is_empty() && !path.starts_with('/') => None,
        Some(base) if path.len() <= ProjectPath::MAX_BYTES => {
            Some((base, format!("./{}", path.trim_start_matches('/'))))
        }
        None => plain_path(path),
        _ => None,
    }
}

/// Returns the base of a path without `path.module` or the like.
pub(super) fn plain_path(path: String) -> Option<(PathBase, String)> {
    if is_absolute(&path) {
        return Some((PathBase::Module, path));
    }
    let is_relative =
        !path.starts_with(['/', '~']) && !path.is_empty() && path.len() <= ProjectPath::MAX_BYTES;
    is_relative.then_some((PathBase::Root, path))
}

/// Returns whether a path is absolute; it may still lead into the project.
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') && path.len() <= ProjectPath::MAX_BYTES
}

fn literal(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::String(text) => Some(text.to_string()),
        ExprKind::Template(parts) => parts
            .iter()
            .map(|part| match part {
                TemplatePart::Literal(text) => Some(text.to_string()),
                TemplatePart::Interpolation(expr) => literal(expr),
                TemplatePart::If { .. } | TemplatePart::For { .. } => None,
            })
            .collect(),
        _ => None,
    }
}

/// Returns the base that `path.module`, `path.root` or `path.cwd` stands for.
fn location(expr: &Expr) -> Option<PathBase> {
    let ExprKind::Traversal(base, steps) = &expr.kind else {
        return None;
    };
    let ExprKind::Variable(name) = &base.kind else {
        return None;
    };
    let [step] = steps.as_slice() else {
        return None;
    };
    match (&**name, &step.kind) {
        ("path", TraversalStepKind::Attribute(name)) => match &**name {
            "module" => Some(PathBase::Module),
            "root" | "cwd" => Some(PathBase::Root),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
pub(super) fn show(named: Vec<NamedInput>) -> Vec<String> {
    let show = |named: NamedInput| match named.what {
        Dependency::Module(_, source) => format!("module {source}"),
        Dependency::Computed(name, _) => format!("computed {name}"),
        Dependency::ComputedRead(read) => format!("computed {}", read.reader),
        Dependency::Elsewhere(call) => {
            let more = if call.is_open { "…" } else { "" };
            format!("{} {}{more} {:?}", call.name, call.source, call.version)
        }
        Dependency::Read(read) => {
            let ReadCall {
                function,
                base,
                path,
                pattern,
            } = read;
            let pattern = pattern.map(|pattern| format!(" {pattern}"));
            format!("{function} {base:?} {path}{}", pattern.unwrap_or_default())
        }
    };
    named.into_iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_literal_and_local_is_named() {
        let text = r#"
            module "a" {
              source = "../a"
              x      = [for k in fileset(path.module, "c/*.json") : core::file("x/${"y"}.json")]
            }
            module "b" { source = "registry/b/c" }
            module "c" { source = "git::${var.x}/c" }
            module "d" { source = "${"../d"}" }
            module "e" { source = "${path.module}/../${"e"}" }
            module "f" { source = "${var.x}/f" }
            module "g" { source = local.g }
            locals {
              a = templatefile("${path.module}/t", { b = filemd5("${path.root}/m") })
              b = "${file("${path.cwd}/in-template")}"
              c = file(var.x)
              d = file("/etc/passwd")
              e = file("~/x")
              f = file("${path.module}x")
              h = file("./${path.module}/h")
              g = profile("x")
            }
        "#;
        assert!(is_worth_parsing(text));
        assert_eq!(
            show(native(text, false).unwrap()),
            [
                "module ../a",
                "fileset Module . c/*.json",
                "file Root x/y.json",
                "module ../d",
                "module ./../e",
                "computed f",
                "computed g",
                "templatefile Module ./t",
                "filemd5 Root ./m",
                "file Root ./in-template",
                "computed file",
                "file Module /etc/passwd",
                "computed file",
                "file Module ./h",
            ]
        );
    }

    #[test]
    fn a_long_word_is_looked_at_once() {
        // Examined again from each `file` in it, this would take an hour.
        let text = "# ".to_owned() + &"file".repeat(2 << 20);
        assert!(!is_worth_parsing(&text));
        assert!(is_worth_parsing(&(text + "set(path.module)")));
    }

    #[test]
    fn calls_of_modules_elsewhere_have_a_version() {
        let text = r#"
            module "a" {
              version = "~> 1.3"
              source  = "acme/vpc/aws"
            }
            module "b" { source = "git::https://x/y.git//b?ref=v1" }
            module "c" {
              source  = "git::https://x/y.git?ref=${var.x}"
              version = local.version
            }
            module "d" { source = "../d" }
            module "e" { version = "1" }
        "#;
        assert_eq!(
            show(native(text, true).unwrap()),
            [
                "a acme/vpc/aws Constraint(\"~> 1.3\")",
                "b git::https://x/y.git//b?ref=v1 Any",
                "c git::https://x/y.git?ref=… Unknown",
                "module ../d",
            ]
        );
    }

    #[test]
    fn only_what_could_name_an_input_is_parsed() {
        assert!(is_worth_parsing("module\n\"a\" {}"));
        assert!(is_worth_parsing("a = filebase64 (\"x\")"));
        assert!(is_worth_parsing("a = {"));
        assert!(is_worth_parsing("a = \""));
        assert!(!is_worth_parsing("profile = module.a.file + path.module"));
        assert!(!is_worth_parsing("a = { b = \"(\" + \")\" }"));
    }
}
