//! Formatting changes nothing but blanks, and what is formatted stays as it is.

use orch::language::format::format;
use proptest::prelude::*;
use proptest::sample::select;

/// A blank of any width.
fn blank() -> impl Strategy<Value = &'static str> {
    select(vec!["", " ", "  ", "\t"])
}

fn name() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "bb", "ccc", "x-y", "_z", "é", "for_each"])
}

/// An expression, with blanks in all places where there may be some.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        select(vec![
            "1",
            "1.5e3",
            "null",
            "true",
            "\"\"",
            "\"a  b\"",
            "\"$${x  }\"",
            "\"\\\"\""
        ])
        .prop_map(str::to_owned),
        name().prop_map(str::to_owned),
        (name(), blank()).prop_map(|(name, blank)| format!("{name}{blank}.{blank}x")),
        name().prop_map(|name| format!("{name}[0].*.b")),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operator = select(vec!["+", "-", "*", "==", "!=", ">=", "&&", "||"]);
        let list = prop::collection::vec((inner.clone(), blank()), 0..3).boxed();
        prop_oneof![
            (inner.clone(), blank()).prop_map(|(it, blank)| format!("({blank}{it}{blank})")),
            (inner.clone(), blank()).prop_map(|(it, blank)| format!("-{blank}{it}")),
            (inner.clone(), blank()).prop_map(|(it, blank)| format!("!{blank}{it}")),
            (inner.clone(), blank())
                .prop_map(|(it, blank)| format!("\"p ${{{blank}{it}{blank}}} s\"")),
            (inner.clone(), operator, inner.clone(), blank())
                .prop_map(|(a, operator, b, blank)| format!("{a} {blank}{operator}{blank} {b}")),
            (inner.clone(), inner.clone(), inner.clone(), blank())
                .prop_map(|(a, b, c, blank)| format!("{a} ?{blank}{b}{blank} :{blank}{c}")),
            (list.clone(), blank()).prop_map(|(items, blank)| {
                let items: Vec<String> = items
                    .iter()
                    .map(|(it, gap)| format!("{it}{gap},{gap}"))
                    .collect();
                let items = items.concat();
                format!("[{blank}{items}]")
            }),
            list.clone().prop_map(|items| {
                let items: Vec<String> = items
                    .iter()
                    .map(|(it, gap)| format!("{gap}{it}, # c\n{gap}"))
                    .collect();
                let items = items.concat();
                format!("[\n{items}]")
            }),
            list.prop_map(|items| {
                let entry = |(at, (it, gap)): (usize, &(String, &str))| {
                    format!("{gap}k{at}{gap}={gap}{it}\n")
                };
                let items: String = items.iter().enumerate().map(entry).collect();
                format!("{{\n{items}}}")
            }),
            (inner.clone(), inner, blank())
                .prop_map(|(a, b, blank)| format!("[for v in {a} :{blank}{b}{blank}]")),
        ]
    })
}

/// The content of a block, one structure a line.
fn body() -> impl Strategy<Value = String> {
    let comment = select(vec!["", " # c", "\t// d", "#"]);
    let attribute = (blank(), expression(), blank(), comment);
    let structure = prop_oneof![
        4 => attribute.prop_map(|(blank, it, gap, comment)| {
            format!("{blank}NAME{gap}={gap}{it}{comment}\n")
        }),
        1 => (blank(), blank()).prop_map(|(indent, gap)| {
            format!("{indent}NAME{gap}={gap}<<-EOT\n  x  =  ${{ 1 }}\n\ty\n    EOT\n")
        }),
        1 => select(vec!["\n", "  # c\n", "\t/* a\n   b */\n", " // d\n"]).prop_map(str::to_owned),
    ];
    let block = structure.clone().prop_recursive(3, 16, 4, |inner| {
        (blank(), prop::collection::vec(inner, 0..4), blank()).prop_map(|(indent, inner, end)| {
            format!("{indent}block \"l\" {{\n{}{end}}}\n", inner.concat())
        })
    });
    prop::collection::vec(prop_oneof![structure, block], 0..6).prop_map(|parts| {
        let mut text = String::new();
        // No name occurs twice.
        for (number, part) in parts.concat().split("NAME").enumerate() {
            if number > 0 {
                text += &format!("n{}", "x".repeat(number % 5));
                text += &number.to_string();
            }
            text += part;
        }
        text
    })
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\t')).collect()
}

proptest! {
    #[test]
    fn formatting_changes_blanks_only_and_once(text in body()) {
        let formatted = format(&text);
        let formatted = formatted.unwrap_or_else(|problem| panic!("{problem:?}\n{text}"));
        prop_assert_eq!(without_blanks(&formatted), without_blanks(&text));
        let again = format(&formatted).unwrap();
        prop_assert_eq!(again, formatted);
    }

    #[test]
    fn formatting_keeps_line_ends(text in body()) {
        let formatted = format(&text).unwrap();
        let other = format(&text.replace('\n', "\r\n")).unwrap();
        prop_assert_eq!(other, formatted.replace('\n', "\r\n"));
    }
}
