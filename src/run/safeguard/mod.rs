//! Safeguards: states of the repository over which nothing is run.
//!
//! Says which safeguards are on, what violates them, and what mends that. What git knows is found out
//! by who asks: nothing here asks git or runs anything.

mod violation;

pub use self::violation::{Behind, Relation, Violation};
use crate::git::{ChangedFile, FileState};

/// A rule that a run has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safeguard {
    /// git knows all files, or ignores them.
    GitUntracked,
    /// All changes of files that git knows are committed.
    GitUncommitted,
    /// HEAD has all that the remote's default branch has.
    GitOutOfSync,
}

impl Safeguard {
    /// Returns what users call it.
    pub fn name(self) -> &'static str {
        match self {
            Safeguard::GitUntracked => Keyword::GitUntracked.name(),
            Safeguard::GitUncommitted => Keyword::GitUncommitted.name(),
            Safeguard::GitOutOfSync => Keyword::GitOutOfSync.name(),
        }
    }
}

/// A word of `--disable-safeguards` and `config.disable_safeguards`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyword {
    /// Every safeguard.
    All,
    /// No safeguard: those are on that no other keyword beside it names, whatever the configuration
    /// says.
    None,
    /// The three about git.
    Git,
    /// [`Safeguard::GitUntracked`].
    GitUntracked,
    /// [`Safeguard::GitUncommitted`].
    GitUncommitted,
    /// [`Safeguard::GitOutOfSync`].
    GitOutOfSync,
    /// A safeguard of Terramate about generated code, of which there is none here.
    OutdatedCode,
}

impl Keyword {
    /// All of them.
    pub const ALL: [Keyword; 7] = [
        Keyword::All,
        Keyword::None,
        Keyword::Git,
        Keyword::GitUntracked,
        Keyword::GitUncommitted,
        Keyword::GitOutOfSync,
        Keyword::OutdatedCode,
    ];

    /// Their names.
    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = Self::ALL[index].name();
            index += 1;
        }
        names
    };

    /// Returns how it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Keyword::All => "all",
            Keyword::None => "none",
            Keyword::Git => "git",
            Keyword::GitUntracked => "git-untracked",
            Keyword::GitUncommitted => "git-uncommitted",
            Keyword::GitOutOfSync => "git-out-of-sync",
            Keyword::OutdatedCode => "outdated-code",
        }
    }

    /// Returns the keyword that is written like this.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|keyword| keyword.name() == text)
    }

    /// Says whether a safeguard is among what it names.
    pub(crate) fn includes(self, safeguard: Safeguard) -> bool {
        match self {
            Keyword::All | Keyword::Git => true,
            Keyword::None | Keyword::OutdatedCode => false,
            single => single.name() == safeguard.name(),
        }
    }
}

/// Says what a list of disabled safeguards means for one; `None` if nothing.
fn switch(disabled: &[Keyword], safeguard: Safeguard) -> Option<bool> {
    if disabled.iter().any(|keyword| keyword.includes(safeguard)) {
        Some(false)
    } else {
        disabled.contains(&Keyword::None).then_some(true)
    }
}

/// `all` and `none` in one list.
#[derive(Debug, thiserror::Error)]
#[error("`all` and `none` exclude each other")]
pub struct Contradiction;

/// What the user disables for one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disabled(Vec<Keyword>);

impl Disabled {
    /// Checks what the user has listed.
    ///
    /// # Errors
    ///
    /// If it contradicts itself.
    pub fn new(listed: Vec<Keyword>) -> Result<Self, Contradiction> {
        if listed.contains(&Keyword::All) && listed.contains(&Keyword::None) {
            return Err(Contradiction);
        }
        Ok(Disabled(listed))
    }

    /// Says whether a safeguard is off, whatever the configuration says.
    pub fn is_off(&self, safeguard: Safeguard) -> bool {
        switch(&self.0, safeguard) == Some(false)
    }

    /// Says whether a safeguard is on, whatever the configuration says.
    pub fn is_on(&self, safeguard: Safeguard) -> bool {
        switch(&self.0, safeguard) == Some(true)
    }
}

/// What the configuration says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configured {
    /// `config.disable_safeguards`.
    pub disabled: Vec<Keyword>,
    /// `config.enable_safeguards`, `config.git.check_untracked` and the like.
    pub switched: Vec<(Safeguard, bool)>,
}

impl Configured {
    /// Says whether a safeguard is on, if the user says nothing about it.
    fn is_on(&self, safeguard: Safeguard) -> bool {
        let switched = || {
            let mut switched = self.switched.iter();
            let (_, is_on) = switched.find(|(which, _)| *which == safeguard)?;
            Some(*is_on)
        };
        // What needs the network has to be asked for.
        switch(&self.disabled, safeguard)
            .or_else(switched)
            .unwrap_or(safeguard != Safeguard::GitOutOfSync)
    }
}

/// Says whether a safeguard is on.
pub fn is_on(safeguard: Safeguard, disabled: &Disabled, configured: &Configured) -> bool {
    switch(&disabled.0, safeguard).unwrap_or_else(|| configured.is_on(safeguard))
}

/// Returns what violates the safeguards that look at files.
pub fn violations(on: &[Safeguard], status: &[ChangedFile]) -> Vec<Violation> {
    let of = |state| {
        let mut files: Vec<ChangedFile> = status
            .iter()
            .filter(|file| file.state == state)
            .cloned()
            .collect();
        files.sort_unstable();
        files
    };
    let mut violations = Vec::new();
    if on.contains(&Safeguard::GitUntracked) {
        violations.push(Violation::Untracked(of(FileState::Untracked)));
    }
    if on.contains(&Safeguard::GitUncommitted) {
        violations.push(Violation::Uncommitted(of(FileState::Uncommitted)));
    }
    violations.retain(|violation| match violation {
        Violation::Untracked(files) | Violation::Uncommitted(files) => !files.is_empty(),
        _ => true,
    });
    violations
}
