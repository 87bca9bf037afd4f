//! The indentation that `<<-` removes from a heredoc.
//!
//! The parser does this as well, but it counts blank lines and leaves out what is inside directives.

use crate::language::syntax::TemplatePart;

/// Removes the indentation that all lines have in common. Blank lines do not count and stay as they are.
/// Only text at the start of a line is indented: what a template inserts is not.
pub(super) fn dedent(parts: &mut [TemplatePart]) {
    let mut measured = Lines::new(None);
    measured.walk(parts);
    if let Some(common) = measured.common {
        Lines::new(Some(common)).walk(parts);
    }
}

struct Lines {
    /// Whether the next part begins a line.
    at_start: bool,
    /// The smallest indentation seen.
    common: Option<usize>,
    /// How many characters to remove from each line, once this is known.
    remove: Option<usize>,
}

impl Lines {
    fn new(remove: Option<usize>) -> Self {
        Lines {
            at_start: true,
            common: None,
            remove,
        }
    }

    fn walk(&mut self, parts: &mut [TemplatePart]) {
        for part in parts {
            match part {
                TemplatePart::Literal(text) => *text = self.text(text).into(),
                TemplatePart::Interpolation(_) => self.mark(),
                TemplatePart::If {
                    then, otherwise, ..
                } => {
                    self.mark();
                    self.walk(then);
                    self.mark();
                    self.walk(otherwise);
                    self.mark();
                }
                TemplatePart::For { body, .. } => {
                    self.mark();
                    self.walk(body);
                    self.mark();
                }
            }
        }
    }

    /// Takes note of a part that is not text. At the start of a line, it has no indentation.
    fn mark(&mut self) {
        if std::mem::take(&mut self.at_start) {
            self.common = Some(0);
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let is_start = std::mem::replace(&mut self.at_start, line.ends_with('\n'));
            let content = line.trim_start();
            let is_blank = content.is_empty() && line.ends_with('\n');
            if !is_start || is_blank {
                kept.push_str(line);
                continue;
            }
            let indentation = line.chars().count() - content.chars().count();
            let common = self.common.map_or(indentation, |it| it.min(indentation));
            self.common = Some(common);
            kept.extend(line.chars().skip(self.remove.unwrap_or(0)));
        }
        kept
    }
}
