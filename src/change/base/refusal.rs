//! The error for a base that cannot be determined: the problem, then the fix.

use super::{BaseUnknown, Remedy};

/// A problem without its fix.
pub(super) struct BaseRefusal(String);

pub(super) fn refuse(problem: impl Into<String>) -> BaseRefusal {
    BaseRefusal(problem.into())
}

impl BaseRefusal {
    pub(super) fn remedy<T>(self, remedy: Remedy) -> Result<T, BaseUnknown> {
        Err(BaseUnknown::Refused {
            problem: self.0,
            remedy,
        })
    }

    /// Refuses with advice that only the user can follow.
    pub(super) fn advise<T>(self, advice: impl Into<String>) -> Result<T, BaseUnknown> {
        self.remedy(Remedy::Advice(advice.into()))
    }
}
