//! Files of other tools in a project: directories that could be stacks, and blocks that only
//! Terramate uses.

use super::Context;
use crate::project::discover::Listing;
use crate::project::{Problems, Project};

/// The files that make a directory a Terragrunt unit.
const TERRAGRUNT_FILES: [&str; 2] = ["terragrunt.hcl", "terragrunt.hcl.json"];

/// The purposes of Terramate's blocks. An unlisted keyword is its own purpose.
const FEATURES: [(&str, &[&str]); 2] = [
    (
        "code generation",
        &["generate_hcl", "generate_file", "assert"],
    ),
    ("cloud", &["cloud"]),
];

impl Context {
    /// Notes the directories of a project without stacks that could be stacks, with the command for
    /// that.
    pub fn note_possible_stacks(&self) {
        // Nothing has needed a list of files so far, and there is little else to do.
        let listed = Project::load_with_listing(&self.project.root, &mut Problems::default());
        let (units, others) = listed.map_or((0, 0), |(_, listing): (_, Listing)| listing.guests());
        // Units include the file in the root.
        let is_in_root = |name: &&str| self.project.root.join(name).is_file();
        let in_root = TERRAGRUNT_FILES.iter().any(is_in_root);
        let units = units.saturating_sub(in_root.into());
        if units > 0 {
            self.notices.note(&format!(
                "{} a Terragrunt unit that could be a stack",
                directories(units)
            ));
            self.notices
                .help("run `orch create --all-terragrunt` in the project root");
        }
        if others > 0 {
            self.notices.note(&format!(
                "{} files of Terraform; those with a `backend`, `cloud` or `provider` block could be stacks",
                count_having(others)
            ));
            self.notices
                .help("run `orch create --all-terraform` in the project root");
        }
    }

    /// Notes the number of blocks that only Terramate uses.
    pub fn note_unused(&self) {
        let mut left = self.project.unused.clone();
        let mut lines = Vec::new();
        for (feature, kinds) in FEATURES {
            let counted: Vec<String> = kinds
                .iter()
                .filter_map(|&kind| Some(format!("{} `{kind}`", left.remove(kind)?)))
                .collect();
            if !counted.is_empty() {
                lines.push(format!("{feature} ({})", counted.join(", ")));
            }
        }
        lines.extend(
            left.iter()
                .map(|(kind, number)| format!("{number} `{kind}`")),
        );
        if !lines.is_empty() {
            self.notices.note(&format!(
                "only Terramate uses these blocks of the project: {}",
                lines.join("; ")
            ));
        }
    }
}

fn directories(number: usize) -> String {
    match number {
        1 => "1 directory is".to_owned(),
        number => format!("{number} directories are each"),
    }
}

fn count_having(number: usize) -> String {
    let has = if number == 1 { "has" } else { "have" };
    let directories = if number == 1 {
        "directory"
    } else {
        "directories"
    };
    format!("{number} {directories} {has}")
}
