//! End-to-end tests.
mod readme;
