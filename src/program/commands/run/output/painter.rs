//! Lines at the bottom of a terminal that change in place.

use std::borrow::Cow;
use std::io;

use console::{Term, measure_text_width, truncate_str};

/// Shows lines at the bottom of stderr's terminal, each cut to its width.
pub(super) struct Painter {
    /// Buffers all lines, so that they change at once.
    terminal: Term,
    /// The widths of the lines that are shown.
    widths: Vec<usize>,
}

impl Painter {
    pub(super) fn new() -> Self {
        Painter {
            terminal: Term::buffered_stderr(),
            widths: Vec::new(),
        }
    }

    /// Returns how many lines there is room for: half the terminal, since the other half shows
    /// output.
    pub(super) fn height(&self) -> usize {
        let (height, _) = self.terminal.size();
        usize::from(height) / 2
    }

    /// Replaces the shown lines.
    pub(super) fn show(&mut self, lines: &[String]) {
        let (_, width) = self.terminal.size();
        let width = usize::from(width);
        let lines: Vec<_> = lines
            .iter()
            .map(|line| truncate_str(line, width, "…"))
            .collect();
        // A terminal that was closed shows nothing.
        _ = self.draw(&lines, rows(&self.widths, width));
        self.widths = lines.iter().map(|line| measure_text_width(line)).collect();
    }

    fn draw(&self, lines: &[Cow<str>], rows: usize) -> io::Result<()> {
        if rows > 0 {
            self.terminal.move_cursor_up(rows)?;
        }
        self.terminal.write_str("\r")?;
        self.terminal.clear_to_end_of_screen()?;
        for line in lines {
            self.terminal.write_line(line)?;
        }
        self.terminal.flush()
    }

    /// Removes the lines until the next [`Painter::show`].
    pub(super) fn clear(&mut self) {
        if !self.widths.is_empty() {
            self.show(&[]);
        }
    }
}

/// Returns the number of rows that lines of these widths occupy. A terminal that has become
/// narrower wraps lines.
fn rows(widths: &[usize], width: usize) -> usize {
    let rows = widths.iter().map(|line| line.div_ceil(width.max(1)).max(1));
    rows.sum()
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn lines_take_more_rows_on_a_terminal_that_became_narrower() {
        assert_eq!(rows(&[80, 0, 12], 80), 3);
        assert_eq!(rows(&[80, 0, 12], 79), 4);
        assert_eq!(rows(&[80, 0, 12], 10), 8 + 1 + 2);
        assert_eq!(rows(&[3], 0), 3);
        assert_eq!(rows(&[], 80), 0);
    }
}
