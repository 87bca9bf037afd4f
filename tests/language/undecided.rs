//! If an expression has a value or an error although a name in it is not known yet, it has the same one
//! whatever the name turns out to be.

use orch::language::evaluate::{
    Budget, Call, EvalResult, EvalValue, NamePath, Namespaces, NoValue, Unknown, evaluate_within,
};
use orch::language::function::{self, FunctionContext};
use orch::language::value::Value;
use proptest::prelude::*;

use crate::parsed;

/// What `u` is; `None` if that is not known yet.
struct Open(Option<Value>);

impl Namespaces for Open {
    fn get(&self, path: &NamePath<'_>) -> EvalResult<Option<EvalValue>> {
        if path.name != "u" {
            return Ok(None);
        }
        match &self.0 {
            Some(value) => Ok(Some(value.clone().into())),
            None => Err(NoValue::Undecided(Box::new(Unknown {
                name: "u".to_owned(),
                when: "known later".to_owned(),
                span: path.span,
                is_on_demand: false,
            }))),
        }
    }

    fn names(&self) -> Vec<&str> {
        vec!["u"]
    }

    fn call(&self, call: &Call<'_>) -> EvalResult<Option<Value>> {
        let surroundings = FunctionContext {
            prefix: "",
            ..FunctionContext::none("a test")
        };
        function::call(call, &surroundings)
    }
}

fn any_expression() -> impl Strategy<Value = String> {
    let leaves = [
        "1",
        "0",
        "\"a\"",
        "\"1\"",
        "true",
        "false",
        "null",
        "[1, 0]",
        "{ a = 1 }",
        "u",
        "u",
        "u.a",
        "u[0]",
        "nonsense",
    ];
    let leaf = prop::sample::select(leaves.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        // As in Terraform, `u || true` is true even if `u` is not a bool. So the left side is known
        // here.
        let one = prop::sample::select(vec![
            "true && A",
            "false && A",
            "true || A",
            "false || A",
            "!A",
            "-A",
            "can(A)",
            "length(A)",
            "tostring(A)",
            "[for x in A : x]",
            "A[0]",
            "A.a",
            "A[*]",
            "toset(A)",
            "jsonencode(A)",
            "\"${A}\"",
            "keys(A)",
        ]);
        let two = prop::sample::select(vec![
            "A + B",
            "A == B",
            "A != B",
            "A < B",
            "[A, B]",
            "{ a = A, b = B }",
            "\"${A}-${B}\"",
            "try(A, B)",
            "coalesce(A, B)",
            "max(A, B)",
            "concat(A, B)",
            "[for x in [A, B] : x if x == 1]",
            "merge(A, B)",
            "contains(A, B)",
            "%{ if A }B%{ endif }",
        ]);
        let three = prop::sample::select(vec!["A ? B : C", "ternary(A, B, C)", "try(A, B, C)"]);
        let filled = |shape: &str, a: &str, b: &str, c: &str| {
            let shape = match shape.strip_prefix('%') {
                Some(rest) => format!("\"%{}\"", rest.replace("B%", "${B}%")),
                None => shape.to_owned(),
            };
            let mut text = String::new();
            for c_ in shape.chars() {
                match c_ {
                    'A' => text += &format!("({a})"),
                    'B' => text += &format!("({b})"),
                    'C' => text += &format!("({c})"),
                    other => text.push(other),
                }
            }
            text
        };
        prop_oneof![
            (one, inner.clone()).prop_map(move |(shape, a)| filled(shape, &a, "", "")),
            (two, inner.clone(), inner.clone())
                .prop_map(move |(shape, a, b)| filled(shape, &a, &b, "")),
            (three, inner.clone(), inner.clone(), inner)
                .prop_map(move |(shape, a, b, c)| filled(shape, &a, &b, &c)),
        ]
    })
}

fn candidates() -> Vec<Value> {
    let one = || Value::from(1);
    vec![
        Value::Null,
        Value::Bool(true),
        Value::Bool(false),
        Value::from(0),
        one(),
        Value::string("a"),
        Value::string("true"),
        Value::tuple([]),
        Value::tuple([one(), Value::string("a")]),
        Value::list([one()]),
        Value::object([("a", one())]),
        Value::object([("a", Value::Bool(true)), ("b", Value::tuple([]))]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1024,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_known_result_holds_whatever_the_name_turns_out_to_be(text in any_expression()) {
        let expr = parsed(&text).map_err(|problem| TestCaseError::fail(format!("{text}: {problem}")))?;
        let value = |open: Open| evaluate_within(&expr, &open, &Budget::default());
        let early = value(Open(None));
        if let Err(NoValue::Undecided(_)) = early {
            return Ok(());
        }
        for candidate in candidates() {
            let shown = candidate.description();
            match (&early, value(Open(Some(candidate)))) {
                (Ok(early), Ok(late)) => {
                    prop_assert_eq!(&early.value, &late.value, "{} with {}", &text, shown);
                }
                (Err(NoValue::Wrong(_)), Err(NoValue::Wrong(_))) => {}
                (_, late) => prop_assert!(false, "{text} with {shown}: {early:?}, then {late:?}"),
            }
        }
    }
}
