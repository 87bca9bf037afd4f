//! The whole story of one stack.

mod answers; // how a stack is named, and how the answer is given
#[cfg(unix)]
mod changes; // with `--changed`
#[cfg(unix)]
mod gone; // a stack that is recorded but not in the project
mod ignored; // what `ignore_changes` leaves out
mod neighbours; // what runs before and after a stack
mod selected; // why a stack is selected, or not

/// A project that most of these ask about.
const SHOP: &str = "
    network [base]
    network/dns [base]
    database [data] after tag:base
    app [web] after /database wants /monitoring
    monitoring [ops]
    sandbox [dev] wanted_by tag:web";
