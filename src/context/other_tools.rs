//! Files of other tools in a project: directories that could be stacks, and blocks that only
//! Terramate uses.

use super::Context;
use crate::project::discover::Listing;
use crate::project::{Problems, Project};

/// The files that make a directory a Terragrunt unit.
const TERRAGRUNT_FILES: [&str; 2] = ["terragrunt.hcl", "terragrunt.hcl.json"];

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

    /// Notes the blocks that only Terramate uses: how many there are of each kind, and the places of all.
    pub fn note_unused(&self) {
        let unused = &self.project.unused;
        if unused.is_empty() {
            return;
        }
        let counted: Vec<String> = unused
            .iter()
            .map(|(kind, places)| format!("{} `{kind}`", places.len()))
            .collect();
        let mut note = format!(
            "orch ignores blocks that only Terramate uses: {}",
            counted.join(", ")
        );
        for (kind, places) in unused {
            for &place in places {
                note += &format!("\n  {}: `{kind}`", self.project.sources.line(place));
            }
        }
        self.notices.note(&note);
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
