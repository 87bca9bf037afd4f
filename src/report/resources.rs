//! Describes the changes of a command.

use crate::record::journal::ChangeSummary;

/// Returns how many resources are added, changed and destroyed: `+3 ~1 -0`; without numbers,
/// whether there are changes.
pub(super) fn changes_text(changes: &ChangeSummary) -> String {
    let Some(resources) = changes.resources.as_ref().filter(|_| changes.has_changes) else {
        return if changes.has_changes {
            "changes"
        } else {
            "no changes"
        }
        .to_owned();
    };
    let mut text = format!(
        "+{} ~{} -{}",
        resources.add, resources.change, resources.destroy
    );
    for (count, what) in [
        (resources.import, "imported"),
        (resources.forget, "forgotten"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}
