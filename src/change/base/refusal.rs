//! Builds the error for a base that cannot be determined: what is missing, then the remedy.

use super::{BaseUnknown, Remedy};

/// A refusal that still lacks its remedy.
pub(super) struct Refusal(String);

/// Begins a refusal with what is missing.
pub(super) fn refuse(problem: impl Into<String>) -> Refusal {
    Refusal(problem.into())
}

impl Refusal {
    /// Refuses, with a remedy that provides the base.
    pub(super) fn remedy<T>(self, remedy: Remedy) -> Result<T, BaseUnknown> {
        Err(BaseUnknown::Refused {
            problem: self.0,
            remedy,
        })
    }

    /// Refuses, with advice for what only the user can do.
    pub(super) fn advise<T>(self, advice: impl Into<String>) -> Result<T, BaseUnknown> {
        self.remedy(Remedy::Advice(advice.into()))
    }
}
