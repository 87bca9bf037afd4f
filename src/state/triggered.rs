//! The outputs that replace a stack when they change, as of its last apply.

use super::document::Document;

impl Document {
    /// Records the current outputs that replace a stack when they change. An unknown output keeps its recorded
    /// digest.
    pub(super) fn note_triggers(&mut self, key: &str) {
        let entry = self.stacks.get(key);
        let rule = entry.and_then(|entry| entry.lifecycle.replace_triggered_by.as_ref());
        let Some(rule) = rule else { return };
        let outputs: Vec<(String, String)> = rule
            .value
            .iter()
            .filter_map(|trigger| {
                let (stack, output) = trigger.rsplit_once('#')?;
                let outputs = self.stacks.get(stack)?.outputs.as_ref()?;
                let digest = outputs.get(output).map_or("", String::as_str);
                Some((trigger.clone(), digest.to_owned()))
            })
            .collect();
        let serial = self.serial;
        let applied = self.stacks.get_mut(key).and_then(|it| it.applied.as_mut());
        let Some(applied) = applied else { return };
        for (trigger, digest) in outputs {
            if applied.serial == serial {
                applied.triggered_by.insert(trigger, digest);
            } else {
                applied.triggered_by.entry(trigger).or_insert(digest);
            }
        }
    }
}
