//! What references, constraints, order and waves mean, said as plainly as possible:
//! sets of paths, nested loops and a full closure. Stacks are numbers in byte order of their
//! directories, then of their keys.

use std::collections::BTreeSet;

/// A set of stacks.
pub(crate) type Set = BTreeSet<usize>;

/// "Row reaches column".
pub(crate) type Relation = Vec<Vec<bool>>;

/// The attributes that hold references.
pub(crate) const ATTRIBUTES: [&str; 4] = ["after", "before", "wants", "wanted_by"];

/// A stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelStack {
    pub(crate) directory: String,
    /// Which of the instances in its directory it is.
    pub(crate) each: Option<Each>,
    pub(crate) tags: Vec<String>,
    /// By [`ATTRIBUTES`], as written: the same for all instances.
    pub(crate) references: [Vec<String>; 4],
}

impl ModelStack {
    pub(crate) fn key(&self) -> Option<&str> {
        self.each.as_ref().map(|each| each.key.as_str())
    }

    /// What a text in the block means for this stack.
    pub(crate) fn value(&self, written: &str) -> String {
        match &self.each {
            None => written.to_owned(),
            Some(each) => written
                .replace(EACH_KEY, &each.key)
                .replace(EACH_VALUE, &each.value),
        }
    }
}

/// What `each` means for an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Each {
    pub(crate) key: String,
    pub(crate) value: String,
}

pub(crate) const EACH_KEY: &str = "${each.key}";

pub(crate) const EACH_VALUE: &str = "${each.value}";

/// What a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meaning {
    Error,
    /// The stack itself, where that is no error.
    Itself,
    /// The stack itself, in a reference that makes sense for the other instances.
    Alone,
    Nothing,
    Stacks(Set),
}

impl Meaning {
    pub(crate) fn stacks(self) -> Set {
        match self {
            Meaning::Stacks(stacks) => stacks,
            Meaning::Error | Meaning::Itself | Meaning::Alone | Meaning::Nothing => Set::new(),
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
    paths: Vec<String>,
    /// The directories whose `for_each` is empty.
    pub(crate) without_instances: Vec<String>,
}

/// How a directory and a key are shown.
pub(crate) fn shown(directory: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("{directory}[\"{key}\"]"),
        None => directory.to_owned(),
    }
}

/// A string as it is written in a file.
pub(crate) fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

/// Splits a key in brackets from the end of a text; the key is `None` for `[*]`, which means any.
pub(crate) fn split_key(written: &str) -> Option<(&str, Option<&str>)> {
    let (path, inside) = written.strip_suffix(']')?.rsplit_once('[')?;
    if inside == "*" {
        return Some((path, None));
    }
    let key = inside.strip_prefix('"')?.strip_suffix('"')?;
    let is_key = !key.is_empty() && !key.contains(['"', '\'', '`', '/']);
    is_key.then_some((path, Some(key)))
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

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
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
        stacks.sort_by(|a, b| {
            let place =
                |stack: &ModelStack| (stack.directory.clone(), stack.key().map(str::to_owned));
            place(a).cmp(&place(b))
        });
        let path = |stack: &ModelStack| shown(&stack.directory, stack.key());
        let paths = stacks.iter().map(path).collect();
        Model {
            stacks,
            paths,
            without_instances: Vec::new(),
        }
    }

    /// The name of a stack.
    pub(crate) fn path(&self, stack: usize) -> &str {
        &self.paths[stack]
    }

    pub(crate) fn directory(&self, stack: usize) -> &str {
        &self.stacks[stack].directory
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..self.stacks.len()
    }

    fn names(&self, stack: usize) -> Vec<&str> {
        names(self.directory(stack))
    }

    /// The stacks in exactly this directory.
    pub(crate) fn stacks_in(&self, directory: &str) -> Set {
        self.at(&names(directory))
    }

    /// The stacks at exactly a place.
    fn at(&self, place: &[&str]) -> Set {
        let all = self.all();
        all.filter(|&stack| self.names(stack) == place).collect()
    }

    fn below(&self, directory: &[&str]) -> Set {
        let all = self.all();
        all.filter(|&stack| contains(directory, &self.names(stack)))
            .collect()
    }

    /// The instances at exactly a place, or the one with a key.
    fn instances(&self, place: &[&str], key: Option<&str>) -> Set {
        let mut here = self.at(place);
        here.retain(|&stack| {
            let own = self.stacks[stack].key();
            own.is_some() && (key.is_none() || own == key)
        });
        here
    }

    /// The stacks that a line means, written in a directory.
    pub(crate) fn line_means(&self, from: &str, line: &str) -> Set {
        let here = |written: &str| place(from, written);
        let plain = here(line).map(|place| self.at(&borrowed(&place)));
        if let Some(plain) = plain.filter(|plain| !plain.is_empty()) {
            return plain;
        }
        let split = split_key(line).and_then(|(path, key)| Some((here(path)?, key)));
        split.map_or_else(Set::new, |(place, key)| {
            self.instances(&borrowed(&place), key)
        })
    }

    /// Whether a reference that names stacks has an empty tag, as `tag:a,`.
    pub(crate) fn has_empty_tag(&self, declaring: usize, written: &str) -> bool {
        let written = self.stacks[declaring].value(written);
        let filter = written.strip_prefix("tag:");
        filter.is_some_and(|filter| filter.split([',', ':']).any(str::is_empty))
    }

    pub(crate) fn meaning(&self, declaring: usize, attribute: usize, written: &str) -> Meaning {
        let written = &*self.stacks[declaring].value(written);
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
            return match named.is_empty() {
                true if self.stacks[declaring].key().is_some() => Meaning::Alone,
                true => Meaning::Nothing,
                false => Meaning::Stacks(named),
            };
        }
        let others = |mut named: Set| {
            named.remove(&declaring);
            if named.is_empty() {
                Meaning::Alone
            } else {
                Meaning::Stacks(named)
            }
        };
        let from = self.directory(declaring);
        // The name of a directory may look as if it ended in a key.
        let is_place = |place: Vec<String>| !self.below(&borrowed(&place)).is_empty();
        let is_plain = place(from, written).is_some_and(is_place);
        let (path, key) = match split_key(written) {
            Some((path, key)) if !is_plain => (path, Some(key)),
            _ => (written, None),
        };
        let Some(place) = place(from, path) else {
            return Meaning::Error;
        };
        let place = borrowed(&place);
        if let Some(key) = key {
            let named = self.instances(&place, key);
            return if named.is_empty() {
                Meaning::Nothing
            } else {
                others(named)
            };
        }
        let own = self.names(declaring);
        if place == own && self.stacks[declaring].key().is_some() {
            return others(self.at(&place));
        }
        let around = contains(&place, &own);
        let above = self.at(&place);
        let shown = format!("/{}", place.join("/"));
        if around && attribute == 0 && place != own && self.without_instances.contains(&shown) {
            return Meaning::Alone;
        }
        let named = if around && attribute == 0 && place != own && !above.is_empty() {
            above
        } else if around {
            &self.below(&place) - &self.below(&own)
        } else {
            self.below(&place)
        };
        if place == own {
            itself
        } else if named.is_empty() {
            Meaning::Nothing
        } else {
            Meaning::Stacks(named)
        }
    }

    /// What a stack has to wait for in each directory above it that has stacks, nearest first: the instance
    /// with its key, or else all.
    pub(crate) fn nested_in(&self, inner: usize) -> Vec<Set> {
        let own = self.names(inner);
        let above = (0..own.len()).map(|length| self.at(&own[..length]));
        let above = above.rev().filter(|stacks| !stacks.is_empty());
        let key = self.stacks[inner].key();
        let same = |&outer: &usize| key.is_some() && self.stacks[outer].key() == key;
        let wanted = |mut stacks: Set| {
            if stacks.iter().any(same) {
                stacks.retain(same);
            }
            stacks
        };
        above.map(wanted).collect()
    }

    pub(crate) fn constraints(&self) -> Vec<Constraint> {
        let mut constraints = Vec::new();
        for inner in self.all() {
            for outer_ones in self.nested_in(inner) {
                for &outer in &outer_ones {
                    constraints.push(Constraint {
                        from: outer,
                        to: inner,
                        kind: "nesting",
                        declared_by: inner,
                        written: "stack".to_owned(),
                    });
                }
                // These wait for everything further up that the stack has to wait for.
                let key = self.stacks[inner].key();
                let key_of = |outer: &usize| self.stacks[*outer].key();
                if outer_ones
                    .iter()
                    .any(|outer| key_of(outer).is_none() || key_of(outer) == key)
                {
                    break;
                }
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
                        let written = literal(written);
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
