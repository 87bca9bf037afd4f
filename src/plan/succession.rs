//! How long dependents may still use an old generation of a stack.
//!
//! A dependent has left it after an apply with the number of the new generation, or with changes.
//! This module does not know the order.

use crate::project::stack::StackIndex;

/// The plan for a stack that runs after an old generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserPlan {
    /// It is not part of the plan.
    Absent,
    /// It is in the plan without work.
    Unchanged,
    /// It is applied, or planned again during the apply.
    Applied,
    Destroyed,
}

#[derive(Debug, Clone, Copy)]
pub struct GenerationUser {
    pub plan: UserPlan,
    /// Whether any of it is recorded.
    pub is_recorded: bool,
    /// Whether the state proves that it has left the old generation.
    pub has_left: bool,
    /// Whether its environment is computed from the number of the generation.
    pub uses_number: bool,
}

/// How long a stack may still use an old generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Never,
    UntilApplied,
    /// Until it has been applied with changes.
    UntilChanged,
    /// Longer than the plan.
    Beyond,
}

/// A stack that must be applied before an old generation may be destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeavingUser {
    pub stack: StackIndex,
    pub must_change: bool,
}

impl GenerationUser {
    /// Returns how long it may still use the old generation.
    pub fn hold(&self) -> Hold {
        match (self.plan, self.has_left, self.uses_number) {
            (UserPlan::Applied, false, false) => Hold::UntilChanged,
            (UserPlan::Applied, ..) => Hold::UntilApplied,
            // It is destroyed before the stacks that it used.
            (UserPlan::Destroyed, ..)
            | (UserPlan::Absent | UserPlan::Unchanged, true, _)
            | (UserPlan::Unchanged, false, true) => Hold::Never,
            (UserPlan::Absent, ..) if !self.is_recorded => Hold::Never,
            (UserPlan::Absent | UserPlan::Unchanged, false, _) => Hold::Beyond,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn succession_holds_old_generations_until_users_have_left() {
        use Hold::{Beyond, Never, UntilApplied, UntilChanged};
        use UserPlan::{Absent, Applied, Destroyed, Unchanged};
        for (plan, is_recorded, has_left, uses_number, expected) in [
            (Absent, false, false, false, Never),
            (Absent, true, false, false, Beyond),
            (Absent, true, false, true, Beyond),
            (Absent, true, true, false, Never),
            (Unchanged, true, false, false, Beyond),
            // It exists, but is not recorded yet.
            (Unchanged, false, false, false, Beyond),
            (Unchanged, true, false, true, Never),
            (Unchanged, true, true, false, Never),
            (Applied, true, false, false, UntilChanged),
            (Applied, false, false, false, UntilChanged),
            (Applied, true, false, true, UntilApplied),
            (Applied, true, true, false, UntilApplied),
            (Destroyed, true, false, false, Never),
        ] {
            let user = GenerationUser {
                plan,
                is_recorded,
                has_left,
                uses_number,
            };
            assert_eq!(user.hold(), expected, "{user:?}");
        }
    }
}
