//! `import` blocks: further files of a directory's configuration.
//!
//! The rules are Terramate's: `source` is a path, relative to the importing file or absolute in the project, with
//! `*`, `?` and `[…]` in single components; a file counts once per importing directory; a directory imports neither
//! from itself nor from the directories above it, whose configuration it inherits anyway. Unlike in Terramate,
//! "above" compares whole components.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use globset::GlobBuilder;

use crate::diagnostic::{Code, Diagnostic};
use crate::language::NoNamespaces;
use crate::language::syntax::{Block, Body};
use crate::language::value::Value;
use crate::path::ProjectPath;
use crate::pattern::FilePattern;
use crate::project::blocks::{no_blocks, only_attributes, value};
use crate::project::discover::{self, DiscoveredFiles, FileKind, ParsedFile, SourceTree};
use crate::project::problems::{FileReadError, Problems};
use crate::project::top_level;
use crate::source::{Span, Spanned};

/// How many files may import each other in a row.
const MAX_DEPTH: usize = 64;

/// An imported file, with the place of its `import`, and its content.
pub(crate) type ImportedBody = (Spanned<ProjectPath>, Arc<Body>);

#[derive(Default)]
pub(crate) struct Imports {
    /// The files, in the order in which they apply: an imported file after those that it imports
    /// itself.
    pub(crate) files: Vec<ImportedBody>,
    /// The wildcards among the sources, which may have matched other files before.
    pub(crate) patterns: Vec<Spanned<FilePattern>>,
}

/// Returns the imports of each directory that has any.
pub(crate) fn resolve(
    files: &SourceTree,
    found: &mut DiscoveredFiles,
    problems: &mut Problems,
) -> HashMap<ProjectPath, Imports> {
    let parsed = found
        .directories
        .iter()
        .flat_map(|directory| &directory.files);
    let mut known: HashMap<ProjectPath, Arc<Body>> = HashMap::new();
    if parsed.clone().any(|file| has_imports(&file.body)) {
        known.extend(parsed.map(|file| (file.path.clone(), file.body.clone())));
    }
    let importing: Vec<(ProjectPath, Vec<ParsedFile>)> = found
        .directories
        .iter()
        .map(|directory| (directory.path.clone(), with_imports(&directory.files)))
        .filter(|(_, files)| !files.is_empty())
        .collect();
    let mut resolver = ImportResolver {
        files,
        found,
        problems,
        known,
    };
    let mut imported = HashMap::new();
    for (directory, importers) in importing {
        let mut import = Import {
            directory: &directory,
            seen: HashMap::new(),
            imports: Imports::default(),
            depth: 0,
        };
        for file in importers {
            resolver.imports(&file.path, &file.body, &mut import);
        }
        let imports = import.imports;
        imported.insert(directory, imports);
    }
    imported
}

fn unreadable(path: &ProjectPath, source: io::Error) -> FileReadError {
    let path = path.relative().to_owned();
    FileReadError { path, source }
}

fn is_pattern(source: &str) -> bool {
    source.contains(['*', '?', '['])
}

fn has_imports(body: &Body) -> bool {
    body.blocks("import").next().is_some()
}

fn with_imports(files: &[ParsedFile]) -> Vec<ParsedFile> {
    files
        .iter()
        .filter(|file| has_imports(&file.body))
        .cloned()
        .collect()
}

struct ImportResolver<'a> {
    files: &'a SourceTree<'a>,
    found: &'a mut DiscoveredFiles,
    problems: &'a mut Problems,
    known: HashMap<ProjectPath, Arc<Body>>,
}

struct Import<'a> {
    directory: &'a ProjectPath,
    /// The imported files, and where each was first imported.
    seen: HashMap<ProjectPath, Span>,
    imports: Imports,
    depth: usize,
}

impl ImportResolver<'_> {
    fn problem(&mut self, diagnostic: Diagnostic) {
        self.problems.diagnostics.push(diagnostic);
    }

    fn imports(&mut self, importer: &ProjectPath, body: &Body, import: &mut Import) {
        for block in body.blocks("import") {
            self.import(importer, block, import);
        }
    }

    fn import(&mut self, importer: &ProjectPath, block: &Block, import: &mut Import) {
        let Some((source, span)) = self.source(block) else {
            return;
        };
        let base = importer.parent().unwrap_or_else(ProjectPath::root);
        let Ok(path) = base.resolve(&source) else {
            let help = "import files inside the project; a leading `/` is the project root";
            return self.problem(Diagnostic::outside_project(&source, span).help(help));
        };
        if is_pattern(&source) {
            // Braces are ordinary characters here.
            let written = source.replace('{', "[{]").replace('}', "[}]");
            let pattern = FilePattern::new(&base, &written).ok();
            let spanned = pattern.map(|value| Spanned { value, span });
            import.imports.patterns.extend(spanned);
        }
        let matches = match self.expand(&path) {
            Ok(matches) => matches,
            Err(error) => return self.problems.errors.push(error),
        };
        if matches.is_empty() {
            let diagnostic = Diagnostic::error(
                Code::UnknownImport,
                format!("no file matches the import `{source}`"),
            )
            .label(span, format!("looked for `{path}`"));
            self.problem(diagnostic.help("correct the path; `**` is not recursive in an import"));
        }
        for path in matches {
            self.import_file(&path, span, import);
        }
    }

    /// Returns the literal `source` and checks the rest of the block.
    fn source(&mut self, block: &Block) -> Option<(String, Span)> {
        for label in &block.labels {
            let diagnostic =
                Diagnostic::error(Code::UnexpectedLabel, "an `import` block has no labels");
            self.problem(
                diagnostic
                    .label(label.span, "unexpected label")
                    .help("remove the label"),
            );
        }
        let problems = &mut self.problems.diagnostics;
        no_blocks(block, "an `import` block has no nested blocks", problems);
        only_attributes(block, &["source"], problems);
        let Some(attribute) = block.body.attribute("source") else {
            let diagnostic =
                Diagnostic::error(Code::MissingAttribute, "an `import` block needs `source`");
            let diagnostic = diagnostic.label(block.kind.span, "nothing to import");
            self.problem(diagnostic.help("write `source = \"path/of/file.tm.hcl\"`"));
            return None;
        };
        let span = attribute.value.span;
        let names = NoNamespaces("the `source` of an import");
        let found = match value(&attribute.value, &names, &mut self.problems.diagnostics)? {
            Value::String(source) => return Some((source.to_string(), span)),
            found => found,
        };
        let message = "the `source` of an import must be a string";
        let label = format!("this is {}", found.type_name());
        let diagnostic = Diagnostic::error(Code::WrongType, message).label(span, label);
        self.problem(diagnostic.help("write the path in quotes"));
        None
    }

    /// Expands wildcards, component by component; the result is sorted and exists.
    fn expand(&self, path: &ProjectPath) -> Result<Vec<ProjectPath>, FileReadError> {
        let mut matches = vec![ProjectPath::root()];
        for component in path.components() {
            let is_pattern = is_pattern(component);
            // Braces are ordinary characters in these patterns.
            let escaped = component.replace('{', "[{]").replace('}', "[}]");
            let pattern = GlobBuilder::new(&escaped)
                .build()
                .ok()
                .filter(|_| is_pattern);
            let pattern = pattern.map(|pattern| pattern.compile_matcher());
            matches = match pattern {
                None => matches
                    .iter()
                    .map(|directory| directory.join(component))
                    .collect(),
                Some(pattern) => {
                    let mut found = Vec::new();
                    for directory in &matches {
                        let names = self
                            .files
                            .names(directory)
                            .map_err(|error| unreadable(directory, error))?;
                        found.extend(
                            names
                                .into_iter()
                                .filter(|name| pattern.is_match(name))
                                .map(|name| directory.join(&name)),
                        );
                    }
                    found
                }
            };
        }
        let mut existing = Vec::with_capacity(matches.len());
        for path in matches {
            let exists = self.files.exists(&path);
            if exists.map_err(|error| unreadable(&path, error))? {
                existing.push(path);
            }
        }
        existing.sort();
        Ok(existing)
    }

    fn import_file(&mut self, path: &ProjectPath, span: Span, import: &mut Import) {
        // Reading it reports why its kind is unknown.
        if matches!(self.files.kind(path), Ok(Some(FileKind::Directory))) {
            let diagnostic = Diagnostic::error(
                Code::InvalidImport,
                format!("`{path}` is a directory, and an import names files"),
            )
            .label(span, "imported here");
            self.problem(diagnostic.help(format!("import its files: `{path}/*.tm.hcl`")));
            return;
        }
        let from = path.parent().unwrap_or_else(ProjectPath::root);
        if import.directory.is_at_or_below(&from) {
            let message = if from == *import.directory {
                format!("`{path}` belongs to this directory already")
            } else {
                format!("`{path}` belongs to a directory above, which applies here already")
            };
            let diagnostic =
                Diagnostic::error(Code::InvalidImport, message).label(span, "imported here");
            self.problem(diagnostic.help("remove the import"));
            return;
        }
        if let Some(&first) = import.seen.get(path) {
            let diagnostic = Diagnostic::error(
                Code::DuplicateEntry,
                format!("`{path}` is imported twice into `{}`", import.directory),
            )
            .again(span, first);
            self.problem(
                diagnostic.help("remove one of the imports; imports must not form a loop"),
            );
            return;
        }
        import.seen.insert(path.clone(), span);
        let Some(body) = self.body(path) else {
            return; // said where it was read
        };
        if let Some(stack) = body.blocks("stack").next() {
            let diagnostic = Diagnostic::error(
                Code::InvalidImport,
                "an imported file cannot contain a `stack` block",
            )
            .label(
                stack.kind.span,
                "every directory that imports the file would be the same stack",
            )
            .label(span, "imported here");
            self.problem(diagnostic.help("keep the `stack` block in the stack's own directory"));
        }
        if import.depth == MAX_DEPTH {
            let diagnostic = Diagnostic::error(
                Code::Limit,
                format!("imports are nested more than {MAX_DEPTH} levels deep"),
            );
            self.problem(diagnostic.label(span, "the limit is reached here"));
            return;
        }
        import.depth += 1;
        self.imports(path, &body, import);
        import.depth -= 1;
        let file = Spanned {
            value: path.clone(),
            span,
        };
        import.imports.files.push((file, body));
    }

    fn body(&mut self, path: &ProjectPath) -> Option<Arc<Body>> {
        if let Some(body) = self.known.get(path) {
            return Some(body.clone());
        }
        let ParsedFile { body, .. } =
            discover::read_one(self.files, path, self.found, self.problems)?;
        top_level::check(path, &body, &mut self.problems.diagnostics);
        self.known.insert(path.clone(), body.clone());
        Some(body)
    }
}
