//! Trigger policies: Rego files that say what follows a finished turn.

mod loaded; // which policies load, what they are attached to, and what they answer
