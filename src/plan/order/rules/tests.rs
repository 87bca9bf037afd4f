//! Orders that are known from elsewhere, written as there: `A✗ A+ B~` destroys and creates A, then
//! updates B. Missing are those in which something is created before what it replaces is destroyed: GO-06,
//! 07, 09, 12, 14.

use std::collections::BTreeSet;

use super::*;
use crate::plan::order::{Order, Recorded, RecordedEdge};

/// A plan over the stacks that it names, which have their names as paths.
struct Plan {
    /// What is done, by stack; what comes forward after it was destroyed has both signs.
    works: Vec<(&'static str, &'static str)>,
    tree: Precedence,
    recorded: Recorded,
}

impl Plan {
    /// Reads what is done (`A✗+ B~ C`), and what is after what in the tree and on record (`B→A C→B@2`,
    /// with a serial).
    fn new(works: &'static str, tree: &'static str, recorded: &'static str) -> Self {
        let signs = |word: &'static str| word.find(['✗', '+', '~']).unwrap_or(word.len());
        let works = works.split(' ').map(|word| word.split_at(signs(word)));
        let works: Vec<_> = works.collect::<BTreeSet<_>>().into_iter().collect();
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
        let tree = tree.split_whitespace().map(edge);
        let tree = tree.map(|edge| (edge.earlier, edge.later, true));
        let edges: Vec<RecordedEdge> = recorded.split_whitespace().map(edge).collect();
        let n_nodes = works.len();
        Plan {
            tree: Precedence::from_edges(n_nodes, n_nodes, tree.collect::<Vec<_>>().into_iter()),
            recorded: Recorded {
                n_stacks: n_nodes,
                n_nodes,
                edges,
            },
            works,
        }
    }

    fn works(&self) -> Vec<Work> {
        let work = |&(_, signs): &(_, &str)| Work {
            destroy: signs.contains('✗'),
            apply: signs.contains(['+', '~']),
        };
        self.works.iter().map(work).collect()
    }

    /// Orders the operations by the rules that there are.
    fn order(&self) -> Order {
        Order::new(&self.works(), &self.tree, &self.recorded)
    }

    /// Orders the operations by two more rules, as a plan needs them that destroys what is gone from the
    /// tree.
    fn order_with_removal(&self) -> Order {
        let (users, mut relaxed) = self.recorded.acyclic();
        let mut operations = Operations::new(&self.works());
        operations.apply_what_is_needed_first(&self.tree);
        operations.destroy_users_first(&users);
        operations.destroy_before_the_replacement();
        former_users_move_away_first(&mut operations, &users);
        users_are_destroyed_before_what_they_use_is_touched(&mut operations, &users);
        let waits = operations.waits();
        relaxed.extend_from_slice(&waits.relaxed);
        Order::of(&operations.list, &waits, relaxed)
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

    /// Writes the sequence, and what was left out.
    fn text(&self, order: &Order) -> String {
        let sequence = order.sequence.iter().map(|&it| self.operation(it));
        let mut text = sequence.collect::<Vec<_>>().join(" ");
        let stack = |node: u32| self.works[node as usize].0;
        for relaxed in &order.relaxed {
            text += &match *relaxed {
                Relaxed::Recorded(edge) => {
                    format!(", without {}→{}", stack(edge.later), stack(edge.earlier))
                }
                Relaxed::Rule {
                    rule,
                    earlier,
                    later,
                } => {
                    let earlier = earlier.map(|earlier| self.operation(earlier));
                    let earlier = earlier.unwrap_or_default();
                    let later = self.operation(later);
                    format!(", without {earlier} before {later} (rule {rule})")
                }
            };
        }
        text
    }
}

/// A(s) before D(d), where s ran after d when it was recorded, and d is gone.
fn former_users_move_away_first(operations: &mut Operations, users: &Users) {
    let rule = Rule {
        number: 4,
        spreads_failure: true,
        may_be_relaxed: true,
    };
    let (applies, destroys) = (operations.applies.clone(), operations.destroys.clone());
    let gone = |stack: usize| destroys[stack].filter(|_| applies[stack].is_none());
    let edges = users.pairs.iter().map(|&(used, user)| (user, used, true));
    operations.add(rule, users.n_nodes, edges, |stack| applies[stack], gone);
}

/// D(s) before A(d), where s ran after d when it was recorded.
fn users_are_destroyed_before_what_they_use_is_touched(operations: &mut Operations, users: &Users) {
    let rule = Rule {
        number: 5,
        spreads_failure: false,
        may_be_relaxed: true,
    };
    let (applies, destroys) = (operations.applies.clone(), operations.destroys.clone());
    let edges = users.pairs.iter().map(|&(used, user)| (user, used, true));
    operations.add(
        rule,
        users.n_nodes,
        edges,
        |stack| destroys[stack],
        |stack| applies[stack],
    );
}

#[test]
fn operations_come_in_the_order_that_is_known_of_them() {
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
        // GO-04: replace one, update what uses it
        same("A✗+ B~", "B→A", "A✗ A+ B~"),
        // GO-13: one now runs after what ran after it
        ("a~ b~", "a→b", "b→a", "b~ a~"),
        ("a✗+ b✗+", "a→b", "b→a", "b✗ a✗ b+ a+"),
        // GO-15: all three are gone
        ("a✗ b✗ c✗", "", "c→b b→a", "c✗ b✗ a✗"),
        // GO-18: of what contradicts itself on record, the newest holds
        ("a✗ b✗", "", "b→a@1 a→b@2", "a✗ b✗, without b→a"),
        ("a✗ b✗", "", "b→a@2 a→b@1", "b✗ a✗, without a→b"),
        ("a✗ b✗", "", "b→a a→b", "b✗ a✗, without a→b"),
        ("a✗ b✗ c✗", "", "b→a@3 c→b@1 a→c@2", "b✗ a✗ c✗, without c→b"),
        // through a stack without work
        same("A✗ B C✗", "B→A C→B", "C✗ A✗"),
        same("A~ B C~", "A→B B→C", "C~ A~"),
        same("A✗+ B~ C✗+", "B→A C→B", "C✗ A✗ A+ B~ C+"),
        // nothing to wait for: by path, and the destruction of a stack before what replaces it
        ("A✗+ B~ C✗ D+", "", "", "A✗ A+ B~ C✗ D+"),
        ("A B", "A→B", "A→B", ""),
    ] {
        let plan = Plan::new(works, tree, recorded);
        assert_eq!(plan.text(&plan.order()), expected, "{works}");
    }
}

#[test]
fn rules_that_may_be_relaxed_are_one_function_each() {
    for (works, tree, recorded, expected) in [
        // GO-05: delete what uses the one that is updated
        ("A~ B✗", "", "B→A", "B✗ A~"),
        // GO-08: delete what was used by the one that is updated
        ("A✗ B~", "", "B→A", "B~ A✗"),
        // GO-10: y ran after x and x after d; x is gone, and y runs after d
        (
            "d~ x✗ y~",
            "y→d",
            "y→x x→d",
            "d~ y~ x✗, without x✗ before d~ (rule 5)",
        ),
        // GO-11: the same, and d is replaced
        (
            "d✗+ x✗ y~",
            "y→d",
            "y→x x→d",
            "x✗ d✗ d+ y~, without y~ before x✗ (rule 4)",
        ),
        // GO-16: a database that an application used is gone
        ("app~ db✗", "", "app→db", "app~ db✗"),
        // GO-17: one side of a diamond is gone
        (
            "1~ 2a✗ 2b~ 3~",
            "2b→1 3→2b",
            "2a→1 2b→1 3→2a 3→2b",
            "1~ 2b~ 3~ 2a✗, without 2a✗ before 1~ (rule 5)",
        ),
        (
            "1~ 2a✗ 2b~ 3",
            "2b→1 3→2b",
            "2a→1 2b→1 3→2a 3→2b",
            "2a✗ 1~ 2b~",
        ),
        ("1 2a✗ 2b 3~", "2b→1 3→2b", "2a→1 2b→1 3→2a 3→2b", "3~ 2a✗"),
        // through a stack without work, what is left out is told between operations
        (
            "d✗+ w x✗ y~ z~",
            "y→d",
            "y→w z→w w→x x→d",
            "z~ x✗ d✗ d+ y~, without y~ before x✗ (rule 4)",
        ),
    ] {
        let plan = Plan::new(works, tree, recorded);
        assert_eq!(plan.text(&plan.order_with_removal()), expected, "{works}");
    }
}

#[test]
fn a_failure_does_not_spread_along_a_rule_that_only_orders() {
    let spreads = |plan: &Plan| {
        let order = plan.order_with_removal();
        order.precedence.successors(0)[0].spreads_failure
    };
    assert!(!spreads(&Plan::new("A~ B✗", "", "B→A")), "rule 5");
    assert!(spreads(&Plan::new("A✗ B~", "", "B→A")), "rule 4");
}
