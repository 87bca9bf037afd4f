//! The names of jobs: safe for every engine and shell, and the same in each export.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::ascii::hex;

/// The longest readable part of a name. All names of a pipeline count for the size of its file.
const LONGEST_SLUG: usize = 24;

/// How many digits of the hash a name has, unless another job has the same name.
const DIGITS: usize = 8;

/// Names jobs after the first of their turns.
#[derive(Debug, Default)]
pub(super) struct JobNames {
    taken: BTreeSet<String>,
}

impl JobNames {
    /// Returns the name of a job: the readable part of a key that no other job has, and a hash of it.
    pub(super) fn name(&mut self, key: &str) -> String {
        let slug = slug(key);
        let hash = hex(&Sha256::digest(key));
        let mut names = (DIGITS..=hash.len()).map(|digits| format!("{slug}-{}", &hash[..digits]));
        let free = names.find(|name| !self.taken.contains(name));
        let name = free.expect("no two keys have the same hash");
        self.taken.insert(name.clone());
        name
    }
}

/// Returns a text of letters, digits and `-` that begins with a letter.
fn slug(key: &str) -> String {
    let mut slug = String::new();
    for c in key.chars() {
        if slug.len() == LONGEST_SLUG {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.starts_with(|c: char| c.is_ascii_alphabetic()) {
        slug.to_owned()
    } else {
        // GitHub accepts no name that begins with a digit.
        format!("stack-{slug}").trim_end_matches('-').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_readable_safe_and_stable() {
        let name = |key: &str| JobNames::default().name(key);
        assert_eq!(name("/prod/network"), "prod-network-3b02d6af");
        assert_eq!(name("/"), "stack-8a5edab2");
        assert_eq!(name("/1/$(rm -rf ~)\n'\""), "stack-1-rm-rf-bdc266ba");
        let long = name(&format!("/{}", "very-long/".repeat(40)));
        assert!(long.starts_with("very-long-very-long-very-"), "{long}");
        assert!(long.len() <= LONGEST_SLUG + 1 + DIGITS, "{long}");
    }

    #[test]
    fn two_jobs_never_have_the_same_name() {
        let mut names = JobNames::default();
        let first = names.name("/a");
        let second = names.name("/a");
        assert!(second.starts_with(&first) && second.len() > first.len());
    }
}
