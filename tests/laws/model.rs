//! What references, constraints, order and waves mean, said as plainly as possible:
//! sets of paths, nested loops and a full closure. Stacks are numbers in byte order of their paths.

use std::collections::BTreeSet;

/// A set of stacks.
pub(crate) type Set = BTreeSet<usize>;

/// "Row reaches column".
pub(crate) type Relation = Vec<Vec<bool>>;

/// The attributes that hold references.
pub(crate) const ATTRIBUTES: [&str; 4] = ["after", "before", "wants", "wanted_by"];

/// A stack as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelStack {
    pub(crate) path: String,
    pub(crate) tags: Vec<String>,
    /// By [`ATTRIBUTES`].
    pub(crate) references: [Vec<String>; 4],
}

/// What a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    Error,
    /// The stack itself, where that is no error.
    Itself,
    Nothing,
    Stacks(Set),
}

impl Meaning {
    pub(crate) fn stacks(self) -> Set {
        match self {
            Meaning::Stacks(stacks) => stacks,
            Meaning::Error | Meaning::Itself | Meaning::Nothing => Set::new(),
        }
    }
}

/// "`from` before `to`".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraint {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: &'static str,
    /// The stack whose file says so.
    pub(crate) declared_by: usize,
    /// What its file says there.
    pub(crate) written: String,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) stacks: Vec<ModelStack>,
}

/// The names that a path consists of.
pub(crate) fn names(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty()).collect()
}

pub(crate) fn contains(directory: &[&str], path: &[&str]) -> bool {
    directory.len() <= path.len() && (0..directory.len()).all(|i| directory[i] == path[i])
}

/// Returns the names of the place that is meant, or `None` above the root.
pub(crate) fn place(from: &str, written: &str) -> Option<Vec<String>> {
    let mut place: Vec<String> = Vec::new();
    if written.as_bytes().first() != Some(&b'/') {
        place = names(from).into_iter().map(str::to_owned).collect();
    }
    for name in written.split('/') {
        if name == ".." {
            place.pop()?;
        } else if !name.is_empty() && name != "." {
            place.push(name.to_owned());
        }
    }
    Some(place)
}

fn is_tag(text: &str) -> bool {
    let edge = "abcdefghijklmnopqrstuvwxyz0123456789";
    let all_known = text.chars().all(|c| edge.contains(c) || "-_./".contains(c));
    let mut edges = text.chars().take(1).chain(text.chars().last());
    all_known && edges.all(|c| edge.contains(c))
}

/// Returns whether tags pass a filter, or `None` if it is not a filter.
pub(crate) fn passes(filter: &str, tags: &[String]) -> Option<bool> {
    let mut any = false;
    for alternative in filter.split(',').filter(|part| !part.is_empty()) {
        let mut all = true;
        for item in alternative.split(':') {
            if !is_tag(item) {
                return None;
            }
            all = all && !item.is_empty() && tags.iter().any(|tag| tag == item);
        }
        any = any || all;
    }
    Some(any)
}

impl Model {
    pub(crate) fn new(mut stacks: Vec<ModelStack>) -> Self {
        stacks.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
        Model { stacks }
    }

    pub(crate) fn path(&self, stack: usize) -> &str {
        &self.stacks[stack].path
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..self.stacks.len()
    }

    fn names(&self, stack: usize) -> Vec<&str> {
        names(self.path(stack))
    }

    pub(crate) fn meaning(&self, declaring: usize, attribute: usize, written: &str) -> Meaning {
        let itself = if attribute < 2 {
            Meaning::Error
        } else {
            Meaning::Itself
        };
        if let Some(filter) = written.strip_prefix("tag:") {
            if passes(filter, &[]).is_none() {
                return Meaning::Error;
            }
            let mut named: Set = self
                .all()
                .filter(|&stack| passes(filter, &self.stacks[stack].tags) == Some(true))
                .collect();
            if named.is_empty() {
                return Meaning::Nothing;
            }
            named.remove(&declaring);
            return if named.is_empty() {
                itself
            } else {
                Meaning::Stacks(named)
            };
        }
        let Some(place) = place(self.path(declaring), written) else {
            return Meaning::Error;
        };
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        let below = |directory: &[&str]| -> Set {
            let all = self.all();
            all.filter(|&stack| contains(directory, &self.names(stack)))
                .collect()
        };
        let at = self.all().find(|&stack| self.names(stack) == place);
        let around = contains(&place, &self.names(declaring));
        let named: Set = match at {
            Some(above) if around && attribute == 0 && above != declaring => Set::from([above]),
            _ if around => &below(&place) - &below(&self.names(declaring)),
            _ => below(&place),
        };
        if named.is_empty() && around {
            itself
        } else if named.is_empty() {
            Meaning::Nothing
        } else {
            Meaning::Stacks(named)
        }
    }

    pub(crate) fn constraints(&self) -> Vec<Constraint> {
        let mut constraints = Vec::new();
        for inner in self.all() {
            let above = self
                .all()
                .filter(|&outer| outer != inner)
                .filter(|&outer| contains(&self.names(outer), &self.names(inner)));
            if let Some(nearest) = above.max_by_key(|&outer| self.names(outer).len()) {
                constraints.push(Constraint {
                    from: nearest,
                    to: inner,
                    kind: "nesting",
                    declared_by: inner,
                    written: "stack".to_owned(),
                });
            }
        }
        for declaring in self.all() {
            for (attribute, kind) in [(0, "after"), (1, "before")] {
                for written in &self.stacks[declaring].references[attribute] {
                    for named in self.meaning(declaring, attribute, written).stacks() {
                        let (from, to) = if kind == "after" {
                            (named, declaring)
                        } else {
                            (declaring, named)
                        };
                        let written = format!("\"{written}\"");
                        let declared_by = declaring;
                        constraints.push(Constraint {
                            from,
                            to,
                            kind,
                            declared_by,
                            written,
                        });
                    }
                }
            }
        }
        constraints
    }

    /// Who must run before whom, through any stacks for which `through` holds.
    pub(crate) fn closure(&self, through: impl Fn(usize) -> bool) -> Relation {
        let mut reaches = vec![vec![false; self.stacks.len()]; self.stacks.len()];
        for constraint in self.constraints() {
            reaches[constraint.from][constraint.to] = true;
        }
        for middle in self.all().filter(|&middle| through(middle)) {
            for from in self.all() {
                for to in self.all() {
                    reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
                }
            }
        }
        reaches
    }

    /// The stacks that run before themselves.
    pub(crate) fn on_cycles(&self) -> Set {
        let reaches = self.closure(|_| true);
        self.all().filter(|&stack| reaches[stack][stack]).collect()
    }

    /// Returns whether selecting `first` selects `second`, and by which attribute.
    pub(crate) fn wants(&self, first: usize, second: usize) -> Vec<&'static str> {
        let names = |declaring: usize, attribute: usize, named: usize| {
            self.stacks[declaring].references[attribute]
                .iter()
                .any(|written| {
                    let meaning = self.meaning(declaring, attribute, written);
                    meaning.stacks().contains(&named)
                })
        };
        let mut kinds = Vec::new();
        if names(first, 2, second) {
            kinds.push("wants");
        }
        if names(second, 3, first) {
            kinds.push("wanted_by");
        }
        kinds
    }

    /// The selection in order: again and again the lowest of those that may run.
    pub(crate) fn order(&self, selected: &Set) -> Vec<usize> {
        let reaches = self.closure(|_| true);
        let mut order: Vec<usize> = Vec::new();
        while order.len() < selected.len() {
            let next = selected.iter().copied().find(|&stack| {
                !order.contains(&stack)
                    && selected
                        .iter()
                        .all(|&other| !reaches[other][stack] || order.contains(&other))
            });
            order.push(next.expect("no cycle touches the selection"));
        }
        order
    }

    /// The number of the wave of each stack of an order.
    pub(crate) fn waves(&self, order: &[usize]) -> Vec<u32> {
        let reaches = self.closure(|_| true);
        let mut waves: Vec<u32> = Vec::new();
        for (position, &stack) in order.iter().enumerate() {
            let before = (0..position).filter(|&other| reaches[order[other]][stack]);
            waves.push(before.map(|other| waves[other] + 1).max().unwrap_or(0));
        }
        waves
    }
}
