//! Problems in the user's configuration, as data, and their rendering.
//!
//! A [`Diagnostic`] is collected, never thrown: a stage continues after a problem, and all problems of all files are
//! shown together. Only [`render`] knows the crate that draws them.

mod code;
mod excerpt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

pub use self::code::Code;
use self::excerpt::Excerpt;
use crate::path::ProjectPath;
use crate::printable::{printable, printable_lines};
use crate::source::{Sources, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing can be run.
    Error,
    /// Something suspicious; `orch validate` treats it as an error.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    pub code: Code,
    pub severity: Severity,
    /// The problem, in one phrase.
    pub message: String,
    /// The places: the first label is the problem itself, the others give context.
    pub labels: Vec<Label>,
    /// The file, for problems of a file that has no text to point at.
    pub file: Option<ProjectPath>,
    pub notes: Vec<String>,
    pub help: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    pub span: Span,
    /// The text; may be empty.
    pub text: String,
}

impl Diagnostic {
    fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity,
            message: message.into(),
            labels: Vec::new(),
            file: None,
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message)
    }

    /// Adds a place: the first is the place of the problem, later ones give context.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        let text = text.into();
        self.labels.push(Label { span, text });
        self
    }

    /// Labels both places of a duplicate; one label if they are the same.
    #[must_use]
    pub fn again(self, second: Span, first: Span) -> Self {
        let again = self.label(second, "again here");
        if first == second {
            return again;
        }
        again.label(first, "first here")
    }

    /// Returns the problem of a path that has more `..` than the project has directories above.
    pub fn outside_project(written: &str, span: Span) -> Self {
        let message = format!("`{written}` leads out of the project");
        Self::error(Code::OutsideProject, message).label(span, "climbs above the project root")
    }

    /// Names the file of a problem that has no place in a text.
    #[must_use]
    pub fn file(mut self, file: ProjectPath) -> Self {
        self.file = Some(file);
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds "did you mean" where `written` looks like one of `candidates`.
    #[must_use]
    pub fn did_you_mean<'a>(
        self,
        written: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        match closest(written, candidates) {
            Some(candidate) => self.help(format!("did you mean `{candidate}`?")),
            None => self,
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Returns the candidate that `written` was probably meant to be: a different text of which at
/// most a third of the characters differ, ignoring case; of equally close ones, the first.
pub fn closest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = written.chars().count();
    let allowed = (length / 3).max(1);
    let folded = written.to_lowercase();
    candidates
        .into_iter()
        // Comparisons are slow, and the length rules out most of them.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed)
        .filter(|candidate| *candidate != written)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&folded, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Puts diagnostics in the order in which they are shown: by file, then position; those without a
/// place come first. Drops exact duplicates, which arise where several directories import one file.
pub fn sort(diagnostics: &mut Vec<Diagnostic>, sources: &Sources) {
    diagnostics.sort_by_cached_key(|diagnostic| {
        let place = diagnostic
            .labels
            .first()
            .map(|label| {
                let file = sources.file(label.span.file).path.clone();
                (file, label.span.start)
            })
            .or_else(|| diagnostic.file.clone().map(|file| (file, 0)));
        (place, diagnostic.severity, diagnostic.message.clone())
    });
    diagnostics.dedup();
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderStyle {
    /// No escape sequences.
    Plain,
    Coloured,
}

/// Draws a diagnostic as rustc would, ending with a line feed.
pub fn render(diagnostic: &Diagnostic, sources: &Sources, style: RenderStyle) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = printable(&diagnostic.message).into_owned();
    let mut group = Group::with_title(level.primary_title(title));
    let mut labels = diagnostic.labels.as_slice();
    while let Some(first) = labels.first() {
        // Consecutive labels of one file share its snippet.
        let count = labels
            .iter()
            .take_while(|label| label.span.file == first.span.file)
            .count();
        let (here, rest) = labels.split_at(count);
        let is_first = labels.len() == diagnostic.labels.len();
        group = group.element(snippet(here, is_first, sources));
        labels = rest;
    }
    let renderer = match style {
        RenderStyle::Plain => Renderer::plain(),
        RenderStyle::Coloured => Renderer::styled(),
    };
    if diagnostic.labels.is_empty() {
        // Without a source above them, notes would hang on a bar that leads nowhere.
        let mut drawn = renderer.render(&[group]);
        let notes = diagnostic.notes.iter().map(|note| ("note", note));
        let help = diagnostic.help.iter().map(|help| ("help", help));
        for (word, text) in notes.chain(help) {
            drawn += &format!("\n  = {word}: {}", printable_lines(text));
        }
        return drawn + "\n";
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(printable_lines(note)));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(printable_lines(help)));
    }
    renderer.render(&[group]) + "\n"
}

/// Bytes of one line that several labels may share.
const MAX_LINE: usize = 2_000;

/// Bytes of context kept on either side of a label on a very long line.
const CONTEXT: usize = 200;

/// Returns where the first label begins and the last one ends.
fn extent(labels: &[Label]) -> (usize, usize) {
    let ranges = || labels.iter().map(|label| label.span.range());
    let first = ranges().map(|range| range.start).min();
    let last = ranges().map(|range| range.end).max();
    (first.unwrap_or_default(), last.unwrap_or_default())
}

fn snippet<'a>(
    labels: &[Label],
    is_first: bool,
    sources: &Sources,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let file = sources.file(labels[0].span.file);
    let text = file.text.as_str();
    // The drawing crate scans all the text it is given, so it gets only the relevant lines; of a line
    // of megabytes, only the part around the labels.
    let (mut labels, (mut first, mut last)) = (labels, extent(labels));
    let is_long = |line: &str| line.len() > MAX_LINE;
    if text[first..last].lines().any(is_long) {
        // Further labels are not worth a line that fills many screens.
        labels = &labels[..1];
        (first, last) = extent(labels);
        last = last.min(text.floor_char_boundary(first + MAX_LINE));
    }
    let line_start = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[last..]
        .find('\n')
        .map_or(text.len(), |newline| last + newline);
    let start = line_start.max(text.floor_char_boundary(first.saturating_sub(CONTEXT)));
    let end = line_end.min(text.ceil_char_boundary((last + CONTEXT).min(text.len())));
    let line = file.position(start).line;
    let ranges: Vec<_> = labels.iter().map(|label| label.span.range()).collect();
    let excerpt = Excerpt::new(text, start..end, &ranges);
    let annotations = labels.iter().zip(ranges).enumerate();
    let annotations = annotations.map(|(index, (label, range))| {
        let kind = if is_first && index == 0 {
            AnnotationKind::Primary
        } else {
            AnnotationKind::Context
        };
        // A label that spans lines points at its first.
        let range_end = text[range.clone()]
            .find('\n')
            .map_or(range.end, |newline| range.start + newline);
        let range = excerpt.offset(range.start)..excerpt.offset(range_end.min(end));
        kind.span(range).label(printable(&label.text).into_owned())
    });
    let annotations: Vec<_> = annotations.collect();
    Snippet::source(excerpt.text)
        .line_start(line)
        .path(printable(file.path.relative()).into_owned())
        .annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceFile;

    fn sources(text: &str) -> (Sources, impl Fn(&str) -> Span + use<>) {
        let mut sources = Sources::default();
        let file = sources.add(SourceFile {
            path: ProjectPath::root().join("a").join("stack.tm"),
            text: text.to_owned(),
        });
        let text = text.to_owned();
        let span = move |part: &str| {
            let start = u32::try_from(text.find(part).unwrap()).unwrap();
            let end = start + u32::try_from(part.len()).unwrap();
            Span { file, start, end }
        };
        (sources, span)
    }

    #[test]
    fn a_problem_is_drawn_with_its_place_context_and_way_out() {
        let (sources, span) = sources("stack {\n  aftr = []\n}\n");
        let diagnostic = Diagnostic::error(
            Code::UnknownAttribute,
            "unknown attribute `aftr` in `stack` block",
        )
        .label(span("aftr"), "not an attribute of `stack`")
        .label(span("stack"), "in this block")
        .did_you_mean("aftr", ["after", "before"]);
        insta::assert_snapshot!(render(&diagnostic, &sources, RenderStyle::Plain), @r"
        error: unknown attribute `aftr` in `stack` block
         --> a/stack.tm:2:3
          |
        1 | stack {
          | ----- in this block
        2 |   aftr = []
          |   ^^^^ not an attribute of `stack`
          |
          = help: did you mean `after`?
        ");
    }

    #[test]
    fn control_characters_of_the_source_do_not_reach_the_terminal() {
        let (sources, span) = sources("a = \"\u{1b}[31mred\r\"");
        let diagnostic =
            Diagnostic::error(Code::Syntax, "bad \u{1b}[0m").label(span("red"), "x\u{7}");
        let drawn = render(&diagnostic, &sources, RenderStyle::Plain);
        assert!(
            !drawn.chars().any(|c| c.is_control() && c != '\n'),
            "{drawn:?}"
        );
    }

    #[test]
    fn a_line_of_megabytes_is_cut() {
        let (sources, span) = sources(&format!(
            "{}bad{}",
            "x".repeat(1_000_000),
            "y".repeat(1_000_000)
        ));
        let drawn = render(
            &Diagnostic::error(Code::Syntax, "long").label(span("bad"), "here"),
            &sources,
            RenderStyle::Plain,
        );
        assert!(drawn.len() < 2_000, "{}", drawn.len());
    }

    #[test]
    fn places_far_apart_on_a_line_do_not_bring_the_line_along() {
        let (sources, span) = sources(&format!("near{}far", "x".repeat(1_000_000)));
        let diagnostic = Diagnostic::error(Code::Syntax, "long")
            .label(span("far"), "here")
            .label(span("near"), "there");
        let drawn = render(&diagnostic, &sources, RenderStyle::Plain);
        assert!(
            drawn.len() < 2_000 && drawn.contains("here"),
            "{}",
            drawn.len()
        );
    }

    #[test]
    fn suggestions_need_some_likeness() {
        assert_eq!(closest("stak", ["stack", "script"]), Some("stack"));
        assert_eq!(closest("zebra", ["stack", "script"]), None);
        assert_eq!(closest("/B", ["/a", "/b"]), Some("/b"));
        assert_eq!(closest("same", ["same"]), None);
    }
}
