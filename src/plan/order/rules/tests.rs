//! Orders known from elsewhere, in their notation: `A✗ A+ B~` destroys and creates A, then updates
//! B. Missing are those that create before they destroy: GO-06, 07, 09, 12, 14.

use std::collections::BTreeSet;

use super::*;
use crate::plan::order::{OperationOrder, RecordedConstraints, RecordedEdge};
use crate::run::schedule::OnError;
use crate::run::turn::TurnIndex;

/// A plan over the stacks that it names, with their names as paths.
struct Plan {
    /// The work by stack; both signs for a stack that is replaced.
    works: Vec<(&'static str, &'static str)>,
    tree: Precedence,
    recorded: RecordedConstraints,
}

impl Plan {
    /// Parses work (`A✗+ B~ C`), and this commit's and recorded constraints (`B→A C→B@2`).
    fn new(works: &'static str, tree: &'static str, recorded: &'static str) -> Self {
        let signs = |word: &'static str| word.find(['✗', '+', '~']).unwrap_or(word.len());
        let works: Vec<_> = works
            .split(' ')
            .map(|word| word.split_at(signs(word)))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let stack = |name: &str| {
            let position = works.iter().position(|&(known, _)| known == name);
            u32::try_from(position.expect("it is listed")).expect("there are few")
        };
        let edge = |text: &str| {
            let (edge, serial) = text.split_once('@').unwrap_or((text, "1"));
            let (later, earlier) = edge.split_once('→').expect("an arrow");
            RecordedEdge {
                earlier: stack(earlier),
                later: stack(later),
                serial: Some(serial.parse().expect("a number")),
            }
        };
        let tree = tree
            .split_whitespace()
            .map(edge)
            .map(|edge| (edge.earlier, edge.later, true));
        let edges: Vec<RecordedEdge> = recorded.split_whitespace().map(edge).collect();
        let n_nodes = works.len();
        Plan {
            tree: Precedence::from_edges(n_nodes, n_nodes, tree.collect::<Vec<_>>().into_iter()),
            recorded: RecordedConstraints {
                n_stacks: n_nodes,
                n_nodes,
                edges,
            },
            works,
        }
    }

    fn works(&self) -> Vec<StackWork> {
        let work = |&(_, signs): &(_, &str)| StackWork {
            destroy: signs.contains('✗'),
            apply: signs.contains(['+', '~']),
        };
        self.works.iter().map(work).collect()
    }

    fn order(&self) -> OperationOrder {
        OperationOrder::new(&self.works(), &self.tree, &self.recorded)
    }

    fn operation(&self, operation: StackOperation) -> String {
        let (name, signs) = self.works[operation.stack];
        let sign = match operation.operation {
            Operation::Destroy => "✗",
            Operation::Apply => signs.trim_start_matches('✗'),
            Operation::Run | Operation::Ask => unreachable!("a plan runs no command of the user's"),
        };
        format!("{name}{sign}")
    }

    fn text(&self, order: &OperationOrder) -> String {
        let sequence = order.sequence.iter().map(|&it| self.operation(it));
        let mut text = sequence.collect::<Vec<_>>().join(" ");
        let stack = |node: u32| self.works[node as usize].0;
        for relaxed in &order.relaxed {
            text += &match *relaxed {
                RelaxedEdge::Recorded(edge) => {
                    format!(", without {}→{}", stack(edge.later), stack(edge.earlier))
                }
                RelaxedEdge::Rule { rule, user, used } => {
                    format!(
                        ", {} before {} left it (rule {rule})",
                        stack(used),
                        stack(user)
                    )
                }
            };
        }
        text
    }
}

#[test]
fn order_matches_known_examples() {
    let same = |works, edges, expected| (works, edges, edges, expected);
    for (works, tree, recorded, expected) in [
        // GO-01: create three
        ("A+ B+ C+", "B→A C→B", "", "A+ B+ C+"),
        ("A+ B+ C+", "A→B B→C", "", "C+ B+ A+"),
        // GO-02: delete them
        ("A✗ B✗ C✗", "", "B→A C→B", "C✗ B✗ A✗"),
        same("A✗ B✗ C✗", "B→A C→B", "C✗ B✗ A✗"),
        // GO-03: replace two
        same("A✗+ B✗+", "B→A", "B✗ A✗ A+ B+"),
        // GO-04: replace one, update its user
        same("A✗+ B~", "B→A", "A✗ A+ B~"),
        // GO-05: update one, delete its user
        ("A~ B✗", "", "B→A", "B✗ A~"),
        // GO-08: update the user of one that is deleted
        ("A✗ B~", "", "B→A", "B~ A✗"),
        // GO-10: y ran after x and x after d; x is removed, and y runs after d
        (
            "d~ x✗ y~",
            "y→d",
            "y→x x→d",
            "d~ y~ x✗, d before x left it (rule 5)",
        ),
        // GO-11: the same, and d is replaced
        (
            "d✗+ x✗ y~",
            "y→d",
            "y→x x→d",
            "x✗ d✗ d+ y~, x before y left it (rule 4)",
        ),
        // GO-13: a dependency is reversed
        ("a~ b~", "a→b", "b→a", "b~ a~"),
        ("a✗+ b✗+", "a→b", "b→a", "b✗ a✗ b+ a+"),
        // GO-15: all three are removed
        ("a✗ b✗ c✗", "", "c→b b→a", "c✗ b✗ a✗"),
        // GO-16: the database of an application is removed
        ("app~ db✗", "", "app→db", "app~ db✗"),
        // GO-17: one side of a diamond is removed; the stack above it is updated, kept, or alone
        (
            "1~ 2a✗ 2b~ 3~",
            "2b→1 3→2b",
            "2a→1 2b→1 3→2a 3→2b",
            "1~ 2b~ 3~ 2a✗, 1 before 2a left it (rule 5)",
        ),
        (
            "1~ 2a✗ 2b~ 3",
            "2b→1 3→2b",
            "2a→1 2b→1 3→2a 3→2b",
            "2a✗ 1~ 2b~",
        ),
        ("1 2a✗ 2b 3~", "2b→1 3→2b", "2a→1 2b→1 3→2a 3→2b", "3~ 2a✗"),
        // GO-18: of recorded contradictions, the newest holds
        ("a✗ b✗", "", "b→a@1 a→b@2", "a✗ b✗, without b→a"),
        ("a✗ b✗", "", "b→a@2 a→b@1", "b✗ a✗, without a→b"),
        ("a✗ b✗", "", "b→a a→b", "b✗ a✗, without a→b"),
        ("a✗ b✗ c✗", "", "b→a@3 c→b@1 a→c@2", "b✗ a✗ c✗, without c→b"),
        ("a✗ b~", "", "b→a@1 a→b@2", "a✗ b~, without b→a"),
        // the user of a deleted stack is replaced
        ("A✗ B✗+", "", "B→A", "B✗ B+ A✗"),
        // a stack is destroyed before it is replaced, so it sees no change below
        same("A~ B✗+", "B→A", "B✗ A~ B+"),
        // a stack is deleted after its user, which is deleted already
        ("A✗ B✗ C~", "", "B→A C→B", "C~ B✗ A✗"),
        // through a stack without work
        same("A✗ B C✗", "B→A C→B", "C✗ A✗"),
        same("A~ B C~", "A→B B→C", "C~ A~"),
        same("A✗+ B~ C✗+", "B→A C→B", "C✗ A✗ A+ B~ C+"),
        ("A~ B C✗", "", "B→A C→B", "C✗ A~"),
        ("A✗ B C~", "", "B→A C→B", "C~ A✗"),
        // a delete waits for all users
        ("A✗ B~ C~", "", "B→A C→B", "B~ C~ A✗"),
        // constraints through stacks with work hold by the constraints of these
        ("A~ B✗ C✗", "", "B→A C→B", "C✗ B✗ A~"),
        // dropped edges are reported between stacks with work
        (
            "d✗+ w x✗ y~ z~",
            "y→d",
            "y→w z→w w→x x→d",
            "z~ x✗ d✗ d+ y~, x before y left it (rule 4)",
        ),
        // rule 4 before rule 5, whichever was recorded first
        (
            "d~ x✗ y~",
            "y→d",
            "x→d@2 y→x@1",
            "d~ y~ x✗, d before x left it (rule 5)",
        ),
        // each pair once
        (
            "d✗+ v w x✗ y~",
            "y→d",
            "y→v v→x y→w w→x y→x x→d",
            "x✗ d✗ d+ y~, x before y left it (rule 4)",
        ),
        // nothing to wait for: by path, and a destroy before its replacement
        ("A✗+ B~ C✗ D+", "", "", "A✗ A+ B~ C✗ D+"),
        ("A B", "A→B", "A→B", ""),
    ] {
        let plan = Plan::new(works, tree, recorded);
        assert_eq!(plan.text(&plan.order()), expected, "{works}");
    }
}

#[test]
fn order_tells_removed_stacks_from_groups() {
    // 0 and 1 are in this commit, and 1 runs after the group 2, which holds 0. In the state, 2 is a
    // removed stack that ran after 1, and the group 3 holds it, which 0 ran after.
    let apply = StackWork {
        apply: true,
        destroy: false,
    };
    let destroy = StackWork {
        apply: false,
        destroy: true,
    };
    let tree = [(0, 2, true), (2, 1, true)];
    let tree = Precedence::from_edges(2, 3, tree.into_iter());
    let edge = |earlier, later, serial| RecordedEdge {
        earlier,
        later,
        serial,
    };
    let recorded = RecordedConstraints {
        n_stacks: 3,
        n_nodes: 4,
        edges: vec![edge(1, 2, Some(1)), edge(2, 3, None), edge(3, 0, Some(1))],
    };
    let order = |works: &[StackWork]| {
        let order = OperationOrder::new(works, &tree, &recorded);
        let stacks = order.sequence.iter().map(|it| it.stack);
        (stacks.collect::<Vec<_>>(), order.relaxed)
    };
    assert_eq!(order(&[apply, apply]), (vec![0, 1], Vec::new()));
    assert_eq!(order(&[apply, apply, destroy]), (vec![0, 2, 1], Vec::new()));
    let nothing = StackWork::default();
    assert_eq!(order(&[nothing, apply, destroy]).0, [2, 1]);
    assert_eq!(order(&[apply, nothing, destroy]).0, [0, 2]);
}

#[test]
fn order_spreads_failures_to_destroys_of_used_stacks() {
    // The first operation fails; those in brackets are skipped.
    let run = |works, recorded, tree| {
        let plan = Plan::new(works, tree, recorded);
        let order = plan.order();
        let mut schedule = order.schedule().on_error(OnError::SkipDependents);
        let mut text = String::new();
        while let Some(turn) = schedule.start_next() {
            let operation = |turn: TurnIndex| plan.operation(order.sequence[turn.get()]);
            let has_succeeded = !text.is_empty();
            text += &format!(" {}", operation(turn));
            schedule.finish(turn, has_succeeded);
            for skipped in schedule.settle(turn, has_succeeded) {
                text += &format!(" ({})", operation(skipped.turn));
            }
        }
        text
    };
    // Rule 4: the used stack is kept, with those that it used.
    assert_eq!(run("A✗ B~", "B→A", ""), " B~ (A✗)");
    assert_eq!(run("A✗ B C~", "B→A C→B", ""), " C~ (A✗)");
    assert_eq!(run("A✗ B✗ C~", "B→A C→B", ""), " C~ (B✗) (A✗)");
    // Rule 5: the change waits but does not depend on the destroy.
    assert_eq!(run("A~ B✗", "B→A", ""), " B✗ A~");
    assert_eq!(run("A~ B C✗", "B→A C→B", ""), " C✗ A~");
    assert_eq!(run("A~ B✗+", "B→A", "B→A"), " B✗ A~ (B+)");
    // Rule 2 beside it: a replaced stack is not destroyed before its user.
    assert_eq!(run("A✗+ B✗", "B→A", ""), " B✗ (A✗) (A+)");
}
