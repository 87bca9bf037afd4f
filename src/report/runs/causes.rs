//! Why turns followed: what policies have asked for, back to the first turn.

use std::collections::HashMap;

use crate::printable::printable;
use crate::record::journal::{EvaluatedTurn, RunRecord};

/// How many turns of a chain are named.
const NAMED: usize = 20;

/// The causes of the turns of a run.
pub(super) struct Causes<'a> {
    /// The evaluation that asked for a turn, by stack and turn of that, and the policies.
    by_turn: HashMap<(&'a str, u32), (&'a EvaluatedTurn, &'a [String])>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(record: &'a RunRecord) -> Self {
        let mut by_turn = HashMap::new();
        for evaluated in &record.evaluated {
            let follows = &evaluated.evaluated;
            for follow in follows.queued.iter().chain(&follows.joined) {
                let turn = (follow.stack.as_str(), follow.turn.unwrap_or(1));
                by_turn.insert(turn, (evaluated, follow.policies.as_slice()));
            }
        }
        Causes { by_turn }
    }

    /// Returns a line for each turn of a stack that followed another one: `turn 2 follows /a (FAILED), policy
    /// retry`, and what that followed itself.
    pub(super) fn lines(&self, stack: &str) -> Vec<String> {
        let turns = self.by_turn.keys().filter(|(path, _)| *path == stack);
        let mut numbers: Vec<u32> = turns.map(|(_, turn)| *turn).collect();
        numbers.sort_unstable();
        let lines = numbers.into_iter().map(|number| {
            let mut line = match number {
                1 => "follows".to_owned(),
                number => format!("turn {number} follows"),
            };
            let mut turn = (stack, number);
            for _ in 0..NAMED {
                let Some((evaluated, policies)) = self.by_turn.get(&turn) else {
                    return line;
                };
                let before = &evaluated.evaluated;
                let number = evaluated.turn.unwrap_or(1);
                let named = match number {
                    1 => printable(&before.stack).into_owned(),
                    number => format!("{} (turn {number})", printable(&before.stack)),
                };
                let arrow = if line.ends_with("follows") {
                    ""
                } else {
                    ", which followed"
                };
                line += &format!(
                    "{arrow} {named}: {}, policy {}",
                    printable(&before.state),
                    printable(&policies.join(", "))
                );
                turn = (&before.stack, number);
            }
            line + ", …"
        });
        lines.collect()
    }
}
