//! A history of a few directories, a record of what was applied from it, and what a plan is asked for.

use std::collections::{BTreeMap, BTreeSet};

/// The directories, in the order of stack paths.
pub(super) const PATHS: [&str; 7] = ["/a", "/a-b", "/a/n", "/b", "/c", "/d/x", "/e"];

/// The directory in which another one is nested.
pub(super) const OUTER: usize = 0;
pub(super) const INNER: usize = 2;

/// The drivers of `drivers.orch.hcl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    /// Plans nothing: nobody can ask it.
    Blind,
    /// Answers that there are no changes.
    Calm,
    /// Answers that there are changes.
    Eager,
    /// Answers that nothing exists.
    Empty,
    /// Says where it keeps its state, and that there are no changes.
    Placed,
    /// Says where it keeps its state, and that nothing exists.
    Vacant,
    /// Cannot destroy.
    Lasting,
    /// The driver `none`.
    None,
}

/// The block of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of it")]
pub(super) struct Block {
    /// What its files say. It goes with the stack wherever that is moved.
    pub(super) text: usize,
    pub(super) edit: usize,
    /// How many lines of its content have been rewritten.
    pub(super) rewritten: usize,
    /// Whether its file is called otherwise.
    pub(super) is_renamed: bool,
    pub(super) driver: Driver,
    pub(super) has_id: bool,
    pub(super) is_tagged: bool,
    pub(super) is_read: bool,
    pub(super) place: usize,
    /// What it runs after, as a set of bits.
    pub(super) after: u32,
}

/// What a directory has, without the directories below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    /// A file that is no configuration.
    Rest(usize),
    Stack(Block),
    /// A configuration file that cannot be parsed.
    Broken(usize),
}

pub(super) type Snapshot = [Content; PATHS.len()];

#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) parents: Vec<usize>,
    pub(super) snapshot: Snapshot,
}

/// A commit recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    None,
    /// One that is not in the clone.
    Lost,
    At(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Applied {
    pub(super) commit: Seen,
    pub(super) seen: Seen,
    pub(super) is_dirty: bool,
    /// Whether what counted as an input then cannot be compared; else nothing is known of the inputs.
    pub(super) has_other_rules: bool,
}

/// A stack recorded.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of it")]
pub(super) struct Entry {
    pub(super) id: Option<usize>,
    pub(super) is_tagged: bool,
    pub(super) driver: Option<Driver>,
    pub(super) is_read: bool,
    pub(super) backend: Option<usize>,
    pub(super) after: BTreeSet<usize>,
    pub(super) before: BTreeSet<usize>,
    pub(super) serial: u64,
    pub(super) applied: Option<Applied>,
    /// Whether the last attempt succeeded, and from which commit it was.
    pub(super) last: Option<(bool, usize)>,
    pub(super) is_tainted: bool,
    pub(super) is_interrupted: bool,
    /// Whether a rule recorded protects it.
    pub(super) is_protected: bool,
}

pub(super) type Record = BTreeMap<usize, Entry>;

#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// Commits come after their parents.
    pub(super) commits: Vec<Commit>,
    pub(super) head: usize,
    pub(super) working: Snapshot,
    /// The tip of the remote's default branch, if there is a remote.
    pub(super) published: Option<usize>,
    /// The tip of another branch: of the remote, if there is one.
    pub(super) branch: Option<usize>,
    pub(super) record: Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Normal,
    Destroy,
    RefreshOnly,
}

/// What a plan is asked for.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) mode: Mode,
    pub(super) no_removals: bool,
    /// The directory in which it is asked.
    pub(super) directory: Option<usize>,
    pub(super) matching: Vec<usize>,
    pub(super) exclude: Vec<usize>,
    /// Whether stacks need the tag, or may not have it.
    pub(super) tagged: Option<bool>,
    pub(super) statuses: Vec<&'static str>,
    /// The base that stacks have to differ from.
    pub(super) base: Option<usize>,
    /// A list of stacks.
    pub(super) named: Option<BTreeSet<usize>>,
}

/// Random numbers, and zeros once there are no more.
pub(super) struct Dice<'a>(pub(super) std::slice::Iter<'a, u32>);

impl Dice<'_> {
    fn below(&mut self, n: usize) -> usize {
        let number = self.0.next().copied().unwrap_or(0);
        number as usize % n
    }

    /// Returns true once in some times.
    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn path(&mut self) -> usize {
        self.below(PATHS.len())
    }
}

/// Returns whether a directory lies at or below another one.
pub(super) fn is_at_or_below(path: usize, above: usize) -> bool {
    path == above || (path, above) == (INNER, OUTER)
}

impl Content {
    pub(super) fn block(&self) -> Option<&Block> {
        match self {
            Content::Stack(block) => Some(block),
            _ => None,
        }
    }

    /// Returns whether it may have a stack, as far as anybody can tell.
    pub(super) fn may_be_stack(&self) -> bool {
        matches!(self, Content::Stack(_) | Content::Broken(_))
    }

    /// Returns the number of what its files say.
    fn text(&self) -> Option<usize> {
        match self {
            Content::Nothing => None,
            Content::Rest(text) | Content::Broken(text) => Some(*text),
            Content::Stack(block) => Some(block.text),
        }
    }
}

impl Block {
    pub(super) fn id(&self) -> Option<usize> {
        self.has_id.then_some(self.text)
    }
}

/// Returns a commit and all its ancestors.
pub(super) fn ancestors(commits: &[Commit], of: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::from([of]);
    loop {
        let parents = all.iter().flat_map(|&commit| &commits[commit].parents);
        let parents: BTreeSet<usize> = parents.copied().collect();
        if parents.is_subset(&all) {
            return all;
        }
        all.extend(parents);
    }
}

/// Makes a scene.
struct Making<'d, 'a> {
    dice: &'d mut Dice<'a>,
    commits: Vec<Commit>,
    n_texts: usize,
    /// Whether little happens besides: what is recorded is what was applied, and most of it is done with.
    is_plain: bool,
    /// The stacks in a line: each may run after those before it.
    line: [usize; PATHS.len()],
}

impl Making<'_, '_> {
    /// Returns true once in some times, where more than the usual happens.
    fn oddly(&mut self, once_in: usize) -> bool {
        self.dice.once_in(once_in) && !self.is_plain
    }

    fn text(&mut self) -> usize {
        self.n_texts += 1;
        self.n_texts
    }

    fn after(&mut self, path: usize) -> u32 {
        let position = |of: usize| self.line.iter().position(|&it| it == of);
        let may_name = |other: usize| {
            !is_at_or_below(path, other)
                && !is_at_or_below(other, path)
                && position(other) < position(path)
                && (other != OUTER || position(INNER) < position(path))
        };
        let may_name: Vec<usize> = (0..PATHS.len()).filter(|it| may_name(*it)).collect();
        let mut after = 0;
        for other in may_name {
            if self.dice.once_in(2) {
                after |= 1 << other;
            }
        }
        after
    }

    fn driver(&mut self) -> Driver {
        use Driver::{Blind, Calm, Eager, Empty, Lasting, None, Placed, Vacant};
        if self.is_plain {
            return self.dice.of(&[Blind, Blind, Eager]);
        }
        self.dice.of(&[
            Blind, Blind, Blind, Eager, Calm, Empty, Placed, Placed, Vacant, Lasting, None,
        ])
    }

    fn stack(&mut self, path: usize) -> Content {
        Content::Stack(Block {
            text: self.text(),
            edit: 0,
            rewritten: 0,
            is_renamed: false,
            driver: self.driver(),
            has_id: self.dice.once_in(3),
            is_tagged: self.dice.once_in(2),
            is_read: self.oddly(12),
            place: self.dice.below(5),
            after: self.after(path),
        })
    }

    /// Returns a snapshot in which no text is found twice.
    fn tidy(&mut self, mut snapshot: Snapshot) -> Snapshot {
        let mut known = BTreeSet::new();
        for content in &mut snapshot {
            let Some(text) = content.text() else { continue };
            if !known.insert(text) {
                let new = self.text();
                match content {
                    Content::Nothing => {}
                    Content::Rest(text) | Content::Broken(text) => *text = new,
                    Content::Stack(block) => block.text = new,
                }
            }
        }
        snapshot
    }

    /// Changes a snapshot in one of the ways in which people do.
    fn edited(&mut self, mut snapshot: Snapshot) -> Snapshot {
        let path = self.dice.path();
        match (self.dice.below(16), snapshot[path]) {
            (0..=5, Content::Stack(_)) | (6..=7, Content::Rest(_) | Content::Broken(_)) => {
                snapshot[path] = Content::Nothing;
                // Sometimes with all that is below it.
                if path == OUTER && self.dice.once_in(2) {
                    snapshot[INNER] = Content::Nothing;
                }
            }
            (6, Content::Stack(_)) => snapshot[path] = Content::Rest(self.text()),
            (7, Content::Stack(_)) if self.dice.once_in(6) => {
                snapshot[path] = Content::Broken(self.text());
            }
            (8, Content::Stack(mut block)) => {
                block.is_renamed = !block.is_renamed;
                snapshot[path] = Content::Stack(block);
            }
            (9..=12, Content::Stack(_)) => {
                let free = (0..PATHS.len()).filter(|&to| snapshot[to] == Content::Nothing);
                let free: Vec<usize> = free.collect();
                if !free.is_empty() {
                    let to = self.dice.of(&free);
                    snapshot[to] = snapshot[path];
                    snapshot[path] = Content::Nothing;
                    let rewritten = self.dice.of(&[0, 0, 3, 13]);
                    if let Content::Stack(block) = &mut snapshot[to] {
                        block.after = self.after(to);
                        block.rewritten = block.rewritten.max(rewritten);
                    }
                }
            }
            // Another one takes its place.
            (13, Content::Stack(_)) => snapshot[path] = self.stack(path),
            (_, Content::Stack(mut block)) => {
                block.edit += 1;
                if self.dice.once_in(3) {
                    block.driver = self.driver();
                }
                if self.dice.once_in(4) {
                    block.has_id = !block.has_id;
                }
                if self.dice.once_in(3) {
                    block.after = self.after(path);
                }
                snapshot[path] = Content::Stack(block);
            }
            _ => snapshot[path] = self.stack(path),
        }
        snapshot
    }

    /// Merges two commits directory by directory; where both have changed something, the first one counts.
    fn merged(&self, first: usize, second: usize) -> Snapshot {
        let common = ancestors(&self.commits, first);
        let common = common
            .intersection(&ancestors(&self.commits, second))
            .max()
            .copied();
        let ours = self.commits[first].snapshot;
        let theirs = self.commits[second].snapshot;
        let Some(base) = common.map(|base| self.commits[base].snapshot) else {
            return ours;
        };
        let mut merged = ours;
        for path in 0..PATHS.len() {
            if ours[path] == base[path] {
                merged[path] = theirs[path];
            }
        }
        merged
    }

    fn commit(&mut self) {
        let last = self.commits.len() - 1;
        let any = self.dice.below(last + 1);
        let (parents, snapshot) = match self.dice.below(20) {
            // A branch that begins somewhere.
            0..=2 => (vec![any], self.edited(self.commits[any].snapshot)),
            3..=8 if any != last => {
                let parents = if self.dice.once_in(2) {
                    vec![any, last]
                } else {
                    vec![last, any]
                };
                let merged = self.merged(parents[0], parents[1]);
                let snapshot = match self.dice.below(8) {
                    // `-s ours`.
                    0..=2 => self.commits[parents[0]].snapshot,
                    // An evil merge.
                    3 => self.edited(merged),
                    _ => merged,
                };
                (parents, snapshot)
            }
            9 if any != last => {
                let other = self.dice.below(last + 1);
                let merged = self.merged(last, any);
                let mut parents = vec![last, any, other];
                parents.dedup();
                (
                    parents,
                    if self.dice.once_in(3) {
                        self.edited(merged)
                    } else {
                        merged
                    },
                )
            }
            // A squash: what others did, by itself.
            10 => (vec![last], self.merged(last, any)),
            // A revert of a commit.
            11..=12 => {
                let mut snapshot = self.commits[last].snapshot;
                let reverted = self.commits[any].clone();
                if let Some(&parent) = reverted.parents.first() {
                    let before = self.commits[parent].snapshot;
                    for path in 0..PATHS.len() {
                        if before[path] != reverted.snapshot[path] {
                            snapshot[path] = before[path];
                        }
                    }
                }
                (vec![last], snapshot)
            }
            // Histories that have nothing in common.
            13 if self.dice.once_in(8) => (Vec::new(), self.edited(self.commits[any].snapshot)),
            _ => {
                let mut snapshot = self.edited(self.commits[last].snapshot);
                while self.dice.once_in(2) {
                    snapshot = self.edited(snapshot);
                }
                (vec![last], snapshot)
            }
        };
        let snapshot = self.tidy(snapshot);
        self.commits.push(Commit { parents, snapshot });
    }

    fn names(&mut self, path: usize) -> BTreeSet<usize> {
        let all =
            (0..PATHS.len()).filter(|&it| !is_at_or_below(path, it) && !is_at_or_below(it, path));
        let all: Vec<usize> = all.collect();
        all.into_iter().filter(|_| self.dice.once_in(4)).collect()
    }

    /// Returns a stack recorded, if a commit has it.
    fn entry(&mut self, path: usize, head: usize, serial: u64) -> Option<Entry> {
        let all: Vec<usize> = if self.dice.once_in(10) {
            (0..self.commits.len()).collect()
        } else {
            ancestors(&self.commits, head).into_iter().collect()
        };
        let having: Vec<usize> = all
            .iter()
            .copied()
            .filter(|&it| self.commits[it].snapshot[path].block().is_some())
            .collect();
        if having.is_empty() {
            return None;
        }
        // Rather long ago.
        let from = self.dice.of(&having).min(self.dice.of(&having));
        let block = *self.commits[from].snapshot[path].block()?;
        let other = self.dice.below(self.commits.len());
        let seen = match if self.is_plain {
            40
        } else {
            self.dice.below(40)
        } {
            0 => Seen::None,
            1 => Seen::Lost,
            2..=5 => Seen::At(other),
            _ => Seen::At(from),
        };
        let is_dirty = self.oddly(12);
        let applied = Applied {
            commit: if self.oddly(10) {
                Seen::At(other)
            } else {
                Seen::At(from)
            },
            seen: if is_dirty && self.dice.once_in(2) {
                Seen::None
            } else {
                seen
            },
            is_dirty,
            has_other_rules: self.oddly(20),
        };
        let says_place = matches!(block.driver, Driver::Placed | Driver::Vacant);
        let backend = match if self.is_plain { 9 } else { self.dice.below(9) } {
            0 => None,
            1 => Some(self.dice.below(5)),
            _ => says_place.then_some(block.place),
        };
        let recorded = self.names(path);
        let declared = (0..PATHS.len())
            .filter(|it| block.after & (1 << it) != 0)
            .collect();
        let (after, before) = match self.dice.below(6) {
            0 | 1 => (recorded, BTreeSet::new()),
            2 => (BTreeSet::new(), recorded),
            _ => (declared, BTreeSet::new()),
        };
        let applied = (!self.oddly(25)).then_some(applied);
        Some(Entry {
            id: block.id(),
            is_tagged: block.is_tagged,
            driver: if self.oddly(12) {
                None
            } else {
                Some(block.driver)
            },
            is_read: block.is_read,
            backend,
            after,
            before,
            serial,
            // Its serial is that of either.
            last: match if self.is_plain { 8 } else { self.dice.below(8) } {
                0 => Some((false, other)),
                1 if applied.is_some() => None,
                _ => Some((applied.is_some(), from)),
            },
            applied,
            is_tainted: self.oddly(15),
            is_interrupted: self.oddly(20),
            is_protected: self.oddly(8),
        })
    }
}

impl Scene {
    pub(super) fn new(dice: &mut Dice<'_>) -> Self {
        let line = dice.of(&[
            [0, 1, 2, 3, 4, 5, 6],
            [6, 5, 4, 3, 0, 2, 1],
            [4, 0, 6, 2, 1, 5, 3],
        ]);
        let is_plain = dice.once_in(2);
        let mut making = Making {
            dice,
            commits: Vec::new(),
            n_texts: 0,
            is_plain,
            line,
        };
        let mut first = [Content::Nothing; PATHS.len()];
        for (path, content) in first.iter_mut().enumerate() {
            if making.dice.below(4) < 3 {
                *content = making.stack(path);
            }
        }
        making.commits.push(Commit {
            parents: Vec::new(),
            snapshot: first,
        });
        for _ in 0..2 + making.dice.below(9) {
            making.commit();
        }
        let n_commits = making.commits.len();
        let head = if making.oddly(4) {
            making.dice.below(n_commits)
        } else {
            n_commits - 1
        };
        let mut working = making.commits[head].snapshot;
        if making.oddly(8) {
            let path = making.dice.path();
            working[path] = match working[path] {
                Content::Nothing => making.stack(path),
                Content::Stack(block) if making.dice.once_in(3) => Content::Stack(Block {
                    edit: block.edit + 7,
                    ..block
                }),
                _ => Content::Nothing,
            };
        }
        for content in &mut working {
            if matches!(content, Content::Broken(_)) && !making.dice.once_in(4) {
                *content = Content::Nothing;
            }
        }
        let published = making.dice.once_in(2).then(|| {
            making
                .dice
                .below(n_commits)
                .max(making.dice.below(n_commits))
        });
        let mut record = Record::new();
        for path in 0..PATHS.len() {
            // The serials are distinct, and not in the order of the paths.
            let serial = 1 + (path as u64 * 5 + 3) % 7;
            if making.dice.below(6) < 5
                && let Some(entry) = making.entry(path, head, serial)
            {
                record.insert(path, entry);
            }
        }
        let branch = making.dice.once_in(3);
        let branch = branch.then(|| making.dice.below(n_commits));
        Scene {
            commits: making.commits,
            head,
            working,
            published,
            branch,
            record,
        }
    }

    /// Returns where the other branch is, and its name.
    pub(super) fn branch_kind(&self) -> &'static str {
        match self.published {
            Some(_) => "remotes/origin/feature",
            None => "heads/work",
        }
    }

    /// Returns something to ask for.
    pub(super) fn request(&self, dice: &mut Dice<'_>) -> Request {
        let in_tree: Vec<usize> = (0..PATHS.len())
            .filter(|&path| self.working[path].block().is_some())
            .collect();
        let some = |dice: &mut Dice<'_>, one_in: usize| {
            let n = if dice.once_in(one_in) {
                1 + dice.below(3)
            } else {
                0
            };
            (0..n).map(|_| dice.path()).collect::<Vec<usize>>()
        };
        let known: BTreeSet<usize> = in_tree.iter().chain(self.record.keys()).copied().collect();
        Request {
            mode: match dice.below(12) {
                0..=8 => Mode::Normal,
                9..=10 => Mode::Destroy,
                _ => Mode::RefreshOnly,
            },
            no_removals: dice.once_in(15),
            directory: if in_tree.is_empty() || !dice.once_in(15) {
                None
            } else {
                Some(dice.of(&in_tree))
            },
            matching: some(dice, 6),
            exclude: some(dice, 8),
            tagged: if dice.once_in(10) {
                Some(dice.once_in(2))
            } else {
                None
            },
            statuses: if dice.once_in(8) {
                let all = [
                    &["removed"][..],
                    &["absent"],
                    &["removed", "absent"],
                    &["pending", "removed"],
                    &["applied"],
                    &["failed", "removed"],
                ];
                dice.of(&all).to_vec()
            } else {
                Vec::new()
            },
            base: if dice.once_in(10) {
                let all: Vec<usize> = ancestors(&self.commits, self.head).into_iter().collect();
                Some(dice.of(&all))
            } else {
                None
            },
            named: dice
                .once_in(20)
                .then(|| known.into_iter().filter(|_| !dice.once_in(3)).collect()),
        }
    }
}
