//! The model of the selector, step by step as the help tells it.

use std::collections::BTreeMap;

use crate::globs::means;
use crate::model::{Model, Set, contains, names, passes};

/// What the user asks for.
#[derive(Debug, Clone)]
pub(crate) struct ModelQuery {
    pub(crate) changes: Option<ModelChanges>,
    /// The stacks that policies name at a release.
    pub(crate) released: Option<Set>,
    pub(crate) statuses: Option<ModelStatuses>,
    pub(crate) directory: String,
    pub(crate) recursive: bool,
    pub(crate) globs: Vec<String>,
    /// The lines of a list of stacks.
    pub(crate) named: Option<Vec<String>>,
    pub(crate) tags: Vec<String>,
    pub(crate) no_tags: Vec<String>,
    pub(crate) neighbours: Vec<ModelReach>,
    pub(crate) exclude: Vec<String>,
}

/// What has changed; any stack may be in any of these.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelChanges {
    pub(crate) changed: Set,
    pub(crate) triggered: Set,
    pub(crate) dismissed: Set,
}

/// The statuses of stacks, and those that are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelStatuses {
    /// The status of each stack.
    pub(crate) all: Vec<&'static str>,
    /// Whether only stacks are wanted that are not as they were applied.
    pub(crate) changed: bool,
    /// The statuses that are wanted; any if there are none.
    pub(crate) wanted: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelReach {
    pub(crate) verb: &'static str,
    pub(crate) towards: &'static str,
    pub(crate) depth: Option<u32>,
}

impl ModelReach {
    /// As a flag.
    pub(crate) fn flag(&self) -> String {
        let flag = format!("--{}-{}", self.verb, self.towards);
        match self.depth {
            Some(depth) => format!("{flag}={depth}"),
            None => flag,
        }
    }
}

impl ModelQuery {
    pub(crate) fn everything() -> Self {
        ModelQuery {
            changes: None,
            released: None,
            statuses: None,
            directory: "/".to_owned(),
            recursive: true,
            globs: Vec::new(),
            named: None,
            tags: Vec::new(),
            no_tags: Vec::new(),
            neighbours: Vec::new(),
            exclude: Vec::new(),
        }
    }

    /// As flags, without the list of stacks and without what has changed.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        for (flag, texts) in [
            ("--match", &self.globs),
            ("--exclude", &self.exclude),
            ("--tags", &self.tags),
            ("--no-tags", &self.no_tags),
        ] {
            flags.extend(texts.iter().map(|text| format!("{flag}={text}")));
        }
        flags.extend(self.neighbours.iter().map(ModelReach::flag));
        if !self.recursive {
            flags.push("--no-recursive".to_owned());
        }
        flags
    }
}

/// What the model selects.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// By the filters.
    pub(crate) filtered: Set,
    /// And what these want.
    pub(crate) wanted: Set,
    /// What is reached from these, by each reach that is no exclusion.
    pub(crate) reached: Vec<(ModelReach, Set)>,
    /// Before exclusions of neighbours.
    pub(crate) around: Set,
    /// After these.
    pub(crate) left: Set,
    /// In the end.
    pub(crate) selected: Set,
}

impl Model {
    /// Which of the filters a stack fails, in the order of the help.
    pub(crate) fn fails(&self, query: &ModelQuery, stack: usize) -> Vec<&'static str> {
        let own = names(self.directory(stack));
        let directory = names(&query.directory);
        let tags = &self.stacks[stack].tags;
        let is_meant = |texts: &[String]| {
            let mut texts = texts.iter();
            texts.any(|text| self.glob_means(query, text, stack))
        };
        let changed = query.changes.as_ref().map_or("", |changes| {
            let is_changed = changes.changed.contains(&stack) || changes.triggered.contains(&stack);
            match changes.dismissed.contains(&stack) {
                true => "dismissed",
                false if is_changed => "",
                false => "unchanged",
            }
        });
        let statuses = query.statuses.as_ref();
        let status = |of: fn(&ModelStatuses, &'static str) -> bool| {
            statuses.is_none_or(|statuses| of(statuses, statuses.all[stack]))
        };
        let is_pending = status(|statuses, status| !statuses.changed || status != "applied");
        let has_status = status(|statuses, status| {
            statuses.wanted.is_empty() || statuses.wanted.contains(&status)
        });
        let is_here = own == directory || query.recursive && contains(&directory, &own);
        let is_named = query.named.is_none() || self.line(query, stack).is_some();
        let mut filters = query.tags.iter();
        let has_tags =
            query.tags.is_empty() || filters.any(|filter| passes(filter, tags) == Some(true));
        let has_no_tags = !query.no_tags.iter().any(|tag| tags.contains(tag));
        let is_released = (query.released.as_ref()).is_none_or(|named| named.contains(&stack));
        let checks = [
            ("unreleased", is_released),
            ("unchanged", is_pending),
            ("directory", is_here),
            ("globs", query.globs.is_empty() || is_meant(&query.globs)),
            ("unnamed", is_named),
            ("status", has_status),
            ("tags", has_tags),
            ("no tags", has_no_tags),
            ("excluded", !is_meant(&query.exclude)),
        ];
        let failed = checks
            .into_iter()
            .filter(|check| !check.1)
            .map(|check| check.0);
        let changed = (!changed.is_empty()).then_some(changed);
        changed.into_iter().chain(failed).collect()
    }

    /// The line of a list that names a stack first, from 1.
    pub(crate) fn line(&self, query: &ModelQuery, stack: usize) -> Option<usize> {
        let is_it = |line: &String| {
            let line = line.trim();
            !line.is_empty() && self.line_means(&query.directory, line).contains(&stack)
        };
        let line = query.named.as_ref()?.iter().position(is_it);
        line.map(|line| line + 1)
    }

    /// Returns whether a text of `--match` or `--exclude` means a stack.
    pub(crate) fn glob_means(&self, query: &ModelQuery, text: &str, stack: usize) -> bool {
        let key = self.stacks[stack].key();
        means(&query.directory, text, self.directory(stack), key)
    }

    fn is_excluded(&self, query: &ModelQuery, stack: usize) -> bool {
        let mut texts = query.exclude.iter();
        texts.any(|text| self.glob_means(query, text, stack))
    }

    /// Where walks of one step, two steps and so on end, for each stack the length of the shortest.
    pub(crate) fn walks(&self, start: &Set, towards: &str) -> BTreeMap<usize, u32> {
        let constraints = self.constraints();
        let mut shortest = BTreeMap::new();
        let mut ends = start.clone();
        for length in 1..=u32::try_from(self.stacks.len()).unwrap() {
            let is_step = |from: usize, to: usize| {
                let (first, second) = match towards {
                    "dependents" => (from, to),
                    _ => (to, from),
                };
                constraints
                    .iter()
                    .any(|c| (c.from, c.to) == (first, second))
            };
            let all = 0..self.stacks.len();
            let next = all.filter(|&to| ends.iter().any(|&from| is_step(from, to)));
            ends = next.collect();
            for &end in &ends {
                shortest.entry(end).or_insert(length);
            }
        }
        shortest
    }

    fn reached(&self, start: &Set, reach: &ModelReach) -> Set {
        let walks = self.walks(start, reach.towards).into_iter();
        let near = walks.filter(|walk| reach.depth.is_none_or(|depth| walk.1 <= depth));
        near.map(|walk| walk.0).collect()
    }

    pub(crate) fn steps(&self, query: &ModelQuery) -> Steps {
        let all = || 0..self.stacks.len();
        let filtered: Set = all()
            .filter(|&stack| self.fails(query, stack).is_empty())
            .collect();
        let close = |mut wanted: Set| loop {
            let more: Set = all()
                .filter(|&second| !wanted.contains(&second) && !self.is_excluded(query, second))
                .filter(|&second| {
                    wanted
                        .iter()
                        .any(|&first| !self.wants(first, second).is_empty())
                })
                .collect();
            if more.is_empty() {
                break wanted;
            }
            wanted.extend(more);
        };
        let wanted = close(filtered.clone());
        let by = |verb: &'static str| {
            query
                .neighbours
                .iter()
                .filter(move |reach| reach.verb == verb)
        };
        let mut around = wanted.clone();
        if by("only").next().is_some() {
            around.clear();
        }
        let mut reached = Vec::new();
        for reach in by("only").chain(by("include")) {
            let mut stacks = self.reached(&wanted, reach);
            stacks.retain(|&stack| !self.is_excluded(query, stack));
            around.extend(&stacks);
            reached.push((reach.clone(), stacks));
        }
        let mut left = around.clone();
        for reach in by("exclude") {
            for stack in self.reached(&around, reach) {
                left.remove(&stack);
            }
        }
        Steps {
            selected: close(left.clone()),
            filtered,
            wanted,
            reached,
            around,
            left,
        }
    }

    pub(crate) fn selection(&self, query: &ModelQuery) -> Set {
        self.steps(query).selected
    }
}
