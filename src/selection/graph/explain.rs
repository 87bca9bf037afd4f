//! Explains cycles to the user.
//!
//! Cycles that share a hop or consist of the same references are explained together: breaking one of them
//! breaks the others.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::cycle::{Cycle, Cycles, Hop, MAX_CYCLES};
use super::{Origin, OriginKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::stack::{StackIndex, Stacks};
use crate::source::{FileId, Sources};

/// Hops shown with their source lines; the rest are listed in notes.
const MAX_DRAWN: usize = 12;

/// Hops and stacks of a cycle that are listed; the rest are counted.
const MAX_LISTED: usize = 50;

impl Cycles {
    /// Explains the cycles: one error for each, or for several that share hops.
    pub fn diagnostics(&self, stacks: &Stacks, sources: &Sources) -> Vec<Diagnostic> {
        let alike = self.alike();
        let mut diagnostics: Vec<Diagnostic> = tied(&alike)
            .iter()
            .map(|tied| {
                let first: Vec<&Cycle> = tied.iter().map(|alike| alike[0]).collect();
                let diagnostic = match first.as_slice() {
                    [cycle] => cycle.diagnostic(stacks, sources),
                    cycles => together(cycles, stacks, sources),
                };
                let others = tied.iter().flat_map(|alike| &alike[1..]);
                others.fold(diagnostic, |diagnostic, other| {
                    let names = names(&other.hops, stacks);
                    diagnostic.note(format!("cycle by the same references: {names}"))
                })
            })
            .collect();
        if self.is_cut
            && let Some(last) = diagnostics.pop()
        {
            let note = format!(
                "these {} stacks form more cycles than the {MAX_CYCLES} shown",
                self.stacks.len()
            );
            diagnostics.push(last.note(note));
        }
        diagnostics
    }

    /// Groups cycles that consist of the same references: a reference to a directory forms a cycle with each
    /// of its stacks. Breaking the first cycle breaks all of them.
    fn alike(&self) -> Vec<Vec<&Cycle>> {
        let mut alike: Vec<Vec<&Cycle>> = Vec::new();
        let mut known: HashMap<Vec<(FileId, u32)>, usize> = HashMap::new();
        for cycle in &self.cycles {
            match known.entry(cycle.references()) {
                Entry::Occupied(first) => alike[*first.get()].push(cycle),
                Entry::Vacant(place) => {
                    place.insert(alike.len());
                    alike.push(vec![cycle]);
                }
            }
        }
        alike
    }
}

/// Groups sets of cycles whose first cycles share a hop, directly or through others.
fn tied<'c>(cycles: &'c [Vec<&'c Cycle>]) -> Vec<Vec<&'c [&'c Cycle]>> {
    // The number of a group is that of its first cycle.
    let mut groups: Vec<usize> = (0..cycles.len()).collect();
    let mut first_with: HashMap<(StackIndex, StackIndex), usize> = HashMap::new();
    for (index, alike) in cycles.iter().enumerate() {
        for hop in &alike[0].hops {
            let other = *first_with.entry(hop.ends()).or_insert(index);
            let (own, other) = (groups[index], groups[other]);
            for group in groups.iter_mut().filter(|group| **group == own.max(other)) {
                *group = own.min(other);
            }
        }
    }
    let members = |first: usize| -> Vec<&[&Cycle]> {
        let numbered = cycles.iter().zip(&groups);
        let members = numbered.filter(|&(_, &group)| group == first);
        members.map(|(alike, _)| alike.as_slice()).collect()
    };
    let all = (0..cycles.len()).map(members);
    all.filter(|members| !members.is_empty()).collect()
}

/// Explains cycles that share hops, starting with the hop that most of them share.
fn together(cycles: &[&Cycle], stacks: &Stacks, sources: &Sources) -> Diagnostic {
    let mut counts: HashMap<(StackIndex, StackIndex), usize> = HashMap::new();
    for hop in cycles.iter().flat_map(|cycle| &cycle.hops) {
        *counts.entry(hop.ends()).or_default() += 1;
    }
    let hops = cycles.iter().flat_map(|cycle| &cycle.hops);
    // Of several, a removable one, and then the smallest.
    let shared = hops
        .max_by_key(|hop| {
            let is_removable = !hop.declares(OriginKind::Nesting);
            (
                counts[&hop.ends()],
                is_removable,
                std::cmp::Reverse(hop.ends()),
            )
        })
        .expect("a cycle has hops");
    let count = counts[&shared.ends()];
    let name = |stack: StackIndex| format!("`{}`", stacks[stack].path);
    let (from, to) = (name(shared.from), name(shared.to));
    let n = cycles.len();
    let through = if count == n {
        format!("stacks wait for each other in {n} cycles, all through {from} → {to}")
    } else {
        format!("stacks wait for each other in {n} cycles, {count} of them through {from} → {to}")
    };
    let mut diagnostic = Diagnostic::error(Code::Cycle, through);
    // Each cycle, starting at the shared hop if it has it.
    let turned = |cycle: &Cycle| {
        let start = cycle
            .hops
            .iter()
            .position(|hop| hop.ends() == shared.ends());
        let mut hops = cycle.hops.clone();
        hops.rotate_left(start.unwrap_or(0));
        (start.is_none(), hops)
    };
    let mut turned: Vec<(bool, Vec<Hop>)> = cycles.iter().map(|cycle| turned(cycle)).collect();
    turned.sort_by_key(|&(is_other, _)| is_other);
    let mut shown: HashSet<(StackIndex, StackIndex)> = HashSet::new();
    for hop in turned.iter().flat_map(|(_, hops)| hops) {
        if !shown.insert(hop.ends()) {
            continue;
        }
        let says = format!("{} runs before {}", name(hop.from), name(hop.to));
        for origin in &hop.origins {
            let mut says = format!("{says} ({}", origin.kind);
            if counts[&hop.ends()] > 1 {
                says += &format!(", in {} of the cycles", counts[&hop.ends()]);
            }
            diagnostic = show(diagnostic, shown.len() - 1, origin, &says, sources);
        }
    }
    diagnostic = count_unlisted(diagnostic, shown.len());
    for (_, hops) in &turned {
        diagnostic = diagnostic.note(format!("cycle: {}", names(hops, stacks)));
    }
    diagnostic.help(if shared.declares(OriginKind::Nesting) {
        "a stack always runs before the stacks nested in it: remove a reference of each cycle, or move a stack"
    } else if count == n {
        "remove the first of these references, or one of each cycle"
    } else {
        "remove one of these references of each cycle"
    })
}

/// Shows a hop where it is declared; `says` is completed by the declaration.
fn show(
    diagnostic: Diagnostic,
    index: usize,
    origin: &Origin,
    says: &str,
    sources: &Sources,
) -> Diagnostic {
    if index < MAX_DRAWN {
        diagnostic.label(origin.span, format!("{says})"))
    } else if index < MAX_LISTED {
        let place = sources.line(origin.span);
        diagnostic.note(format!("{says}, {place})"))
    } else {
        diagnostic
    }
}

/// Adds how many hops are not listed.
fn count_unlisted(diagnostic: Diagnostic, n_hops: usize) -> Diagnostic {
    match n_hops.checked_sub(MAX_LISTED) {
        None | Some(0) => diagnostic,
        Some(n) => diagnostic.note(format!("{n} more hops; `orch graph` draws all of them")),
    }
}

/// Returns the stacks of a cycle as a path, quoted.
fn names(hops: &[Hop], stacks: &Stacks) -> String {
    let listed = hops.iter().take(MAX_LISTED);
    let mut names: Vec<String> = listed
        .map(|hop| format!("`{}`", stacks[hop.from].path))
        .collect();
    if let Some(n @ 1..) = hops.len().checked_sub(MAX_LISTED) {
        names.push(format!("… ({n} more)"));
    }
    names.join(" → ")
}

impl Cycle {
    /// Returns the places of the cycle's references: the same for the same references.
    fn references(&self) -> Vec<(FileId, u32)> {
        let origins = self.hops.iter().flat_map(|hop| &hop.origins);
        let mut references: Vec<_> = origins
            .filter(|origin| origin.kind != OriginKind::Nesting)
            .map(|origin| (origin.span.file, origin.span.start))
            .collect();
        references.sort_unstable_by_key(|(file, start)| (file.0, *start));
        references.dedup();
        references
    }

    fn diagnostic(&self, stacks: &Stacks, sources: &Sources) -> Diagnostic {
        let name = |stack: StackIndex| format!("`{}`", stacks[stack].path);
        let path = names(&self.hops, stacks);
        let message = format!("stacks wait for each other in a cycle: {path}");
        let mut diagnostic = Diagnostic::error(Code::Cycle, message);
        for (index, hop) in self.hops.iter().enumerate() {
            let says = format!("{} runs before {}", name(hop.from), name(hop.to));
            for origin in &hop.origins {
                let says = format!("{says} ({}", origin.kind);
                diagnostic = show(diagnostic, index, origin, &says, sources);
            }
        }
        diagnostic = count_unlisted(diagnostic, self.hops.len());
        if let Some((before, after)) = self.both_ways() {
            let named = match (before.written(sources), after.written(sources)) {
                (Some(one), Some(other)) if one == other => format!("`{one}`"),
                _ => name(before.to),
            };
            let declaring = name(before.from);
            let note = format!("{declaring} names {named} in both `before` and `after`");
            return diagnostic.note(note).help("keep one of the two");
        }
        let has_nesting = self
            .hops
            .iter()
            .any(|hop| hop.declares(OriginKind::Nesting));
        diagnostic.help(if has_nesting {
            "a stack always runs before the stacks nested in it: remove a reference, or move a stack"
        } else {
            "remove one of these references"
        })
    }

    /// Returns the hops by `before` and by `after`, if one stack declares both and the cycle has no others.
    fn both_ways(&self) -> Option<(&Hop, &Hop)> {
        let [there, back] = self.hops.as_slice() else {
            return None;
        };
        // The earlier stack of a hop declares its `before`. On the way back it is the later one, which
        // declares the `after`.
        let mut turned = [(there, back), (back, there)].into_iter();
        turned.find(|(before, after)| {
            before.declares(OriginKind::Before) && after.declares(OriginKind::After)
        })
    }
}

impl Hop {
    fn ends(&self) -> (StackIndex, StackIndex) {
        (self.from, self.to)
    }

    fn declares(&self, kind: OriginKind) -> bool {
        self.origins.iter().any(|origin| origin.kind == kind)
    }

    /// Returns the text of the hop's reference, if it is a plain string.
    fn written<'a>(&self, sources: &'a Sources) -> Option<&'a str> {
        let [origin] = self.origins.as_slice() else {
            return None;
        };
        let text = &sources.file(origin.span.file).text[origin.span.range()];
        let text = text.strip_prefix('"')?.strip_suffix('"')?;
        (!text.contains(['$', '%', '\\'])).then_some(text)
    }
}
