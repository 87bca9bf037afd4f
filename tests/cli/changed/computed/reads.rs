//! Files that functions read.
