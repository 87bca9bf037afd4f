//! The part of a source text that a diagnostic shows.

use std::ops::Range;

use memchr::memchr_iter;

use crate::printable::needs_escape;

/// Lines kept on either side of a label. Lines farther away are never drawn.
const LINES: usize = 2;

/// Part of a source text. Lines far from all labels are empty: a block may have thousands of problems,
/// and each of them points at its beginning.
pub(super) struct Excerpt {
    pub(super) text: String,
    /// Where each copied part begins: in the source and in the excerpt.
    parts: Vec<(usize, usize)>,
}

impl Excerpt {
    /// Copies a range of the source: the first line of each label and the lines around it.
    pub(super) fn new(source: &str, range: Range<usize>, labels: &[Range<usize>]) -> Self {
        let mut starts: Vec<usize> = labels.iter().map(|label| label.start).collect();
        starts.sort_unstable();
        let mut excerpt = Excerpt {
            text: String::new(),
            parts: Vec::new(),
        };
        let mut copied = range.start;
        for start in starts {
            let part = around(source, start, &range);
            let begin = part.start.max(copied);
            let newlines = memchr_iter(b'\n', &source.as_bytes()[copied..begin]).count();
            excerpt.text.extend(std::iter::repeat_n('\n', newlines));
            if begin < part.end {
                excerpt.parts.push((begin, excerpt.text.len()));
                excerpt.copy(&source[begin..part.end]);
                copied = part.end;
            }
        }
        excerpt
    }

    /// Returns where an offset in the source is in the excerpt.
    pub(super) fn offset(&self, offset: usize) -> usize {
        let after = self.parts.partition_point(|&(begin, _)| begin <= offset);
        match after.checked_sub(1).map(|part| self.parts[part]) {
            Some((begin, copied)) => (copied + offset - begin).min(self.text.len()),
            None => 0,
        }
    }

    /// Copies a text. Characters that must not reach a terminal become as many spaces as they have
    /// bytes, so that offsets stay valid.
    fn copy(&mut self, text: &str) {
        for character in text.chars() {
            if needs_escape(character) && !matches!(character, '\n' | '\t') {
                let spaces = std::iter::repeat_n(' ', character.len_utf8());
                self.text.extend(spaces);
            } else {
                self.text.push(character);
            }
        }
    }
}

/// Returns the line that an offset is in and the lines around it, within a range.
fn around(source: &str, offset: usize, range: &Range<usize>) -> Range<usize> {
    let before = &source[range.start..offset.clamp(range.start, range.end)];
    let mut newlines = memchr::memrchr_iter(b'\n', before.as_bytes());
    let start = newlines
        .nth(LINES)
        .map_or(range.start, |newline| range.start + newline + 1);
    let after = &source[range.start + before.len()..range.end];
    let mut newlines = memchr_iter(b'\n', after.as_bytes());
    let end = newlines
        .nth(LINES)
        .map_or(range.end, |newline| range.start + before.len() + newline);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_far_from_all_labels_are_empty() {
        let source = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
        let labels = ["nine", "one"].map(|label| {
            let start = source.find(label).unwrap();
            start..start + label.len()
        });
        let excerpt = Excerpt::new(source, 0..source.len() - 1, &labels);
        assert_eq!(
            excerpt.text,
            "one\ntwo\nthree\n\n\n\nseven\neight\nnine\nten"
        );
        for label in labels {
            let start = excerpt.offset(label.start);
            let word = &source[label];
            assert!(excerpt.text[start..].starts_with(word), "{word}");
        }
    }
}
