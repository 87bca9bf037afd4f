//! `orch script`: finds the script that the user names.

use crate::context::Context;
use crate::diagnostic::closest;
use crate::error::{Error, Result};
use crate::printable::{count, printable};
use crate::project::script::title;
use crate::project::scripts::PlacedScript;
use crate::report::ShownScript;
use crate::selection::select::Selection;

impl Context {
    /// Returns the definitions of a script, in the order of their directories. Fails if there is
    /// none.
    pub fn script(&self, labels: &[String]) -> Result<Vec<PlacedScript<'_>>> {
        let all = self.project.scripts();
        let named = all.iter().filter(|script| script.block.labels == labels);
        let found: Vec<PlacedScript<'_>> = named.copied().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let title = title(labels);
        let error = Error::usage(format!("no script `{}`", printable(&title)));
        let known: Vec<String> = all.iter().map(|script| script.block.title()).collect();
        Err(match closest(&title, known.iter().map(String::as_str)) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None if known.is_empty() => {
                error.hint("no directory of the project has a `script` block")
            }
            None => error.hint("`orch script list` lists the scripts"),
        })
    }

    /// Returns the stacks of a selection that have a script. Notes if none has it. Fails if no
    /// directory has such a script.
    pub(super) fn with_script(
        &self,
        labels: &[String],
        selection: &Selection,
    ) -> Result<Selection> {
        let found = self.script(labels)?;
        let has_it = |stack| self.project.script_of(stack, labels).is_some();
        let reduced = selection.only(has_it);
        if reduced.is_empty() && !selection.is_empty() {
            let first = &found[0];
            let place = self.project.sources.line(first.block.keyword);
            self.notices.note(&format!(
                "no selected stack has the script `{}`, which is defined in {}{}",
                printable(&title(labels)),
                printable(&place),
                match found.len() {
                    1 => String::new(),
                    more => format!(" and {} more", count(more - 1, "place")),
                }
            ));
        }
        Ok(reduced)
    }

    /// Returns the definitions of a script, each with the stacks of a selection that have it. Fails
    /// if there is none.
    pub fn script_info(
        &self,
        labels: &[String],
        selection: &Selection,
    ) -> Result<Vec<ShownScript<'_>>> {
        let found = self.script(labels)?;
        let project = &self.project;
        let shown = found.into_iter().map(|script| {
            let has_it = |stack| {
                let own = project.script_of(stack, labels);
                own.is_some_and(|own| std::ptr::eq(own, script.block))
            };
            let stacks = selection.stacks().filter(|stack| has_it(*stack)).collect();
            ShownScript { script, stacks }
        });
        Ok(shown.collect())
    }
}
