//! What the configuration says about safeguards.

use super::ConfigReader;
use crate::diagnostic::{Code, Diagnostic};
use crate::language::evaluate::Value;
use crate::run::safeguard::{Configured, Keyword, Safeguard};

/// Returns the safeguards and groups of safeguards that a list names.
pub(super) fn keywords(value: &Value) -> Vec<Keyword> {
    let Value::List(items) = value else {
        return Vec::new();
    };
    let known = items.iter().filter_map(|item| match item {
        Value::String(text) => Keyword::parse(text),
        _ => None,
    });
    known.collect()
}

impl ConfigReader<'_> {
    /// The old switches for single safeguards cannot stand beside the list that replaced them, and
    /// none can be disabled and enabled.
    pub(super) fn check_safeguards(&mut self) {
        const LIST: &str = "disable_safeguards";
        const ENABLED: &str = "enable_safeguards";
        const REMOTE: &str = "git.check_remote";
        let name_it = "remove the old switch and name the safeguard in the list";
        for name in [
            "git.check_untracked",
            "git.check_uncommitted",
            REMOTE,
            "run.check_gen_code",
        ] {
            self.exclude((name, "the old switch"), (LIST, "the list"), name_it);
        }
        self.exclude((REMOTE, "the old switch"), (ENABLED, "the list"), name_it);
        let out_of_sync = Safeguard::GitOutOfSync;
        let Configured { disabled, switched } = &self.config.settings.safeguards;
        if switched.contains(&(out_of_sync, true))
            && disabled.iter().any(|keyword| keyword.includes(out_of_sync))
        {
            let help = format!("remove `{}` from one of the lists", out_of_sync.name());
            self.exclude((ENABLED, "enabled here"), (LIST, "disabled here"), &help);
        }
    }

    /// Reports two attributes of `config` that are both set and must not be; each with its label.
    fn exclude(&mut self, one: (&str, &str), other: (&str, &str), help: &str) {
        let place = |(name, _): (&str, _)| self.seen.get(&format!("config.{name}")).copied();
        if let (Some(first), Some(second)) = (place(one), place(other)) {
            let message = format!(
                "`config.{}` and `config.{}` exclude each other",
                one.0, other.0
            );
            let diagnostic = Diagnostic::error(Code::Conflict, message)
                .label(first, one.1)
                .label(second, other.1);
            self.problems.push(diagnostic.help(help));
        }
    }
}
