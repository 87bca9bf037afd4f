//! What hostile text must not do: occupy the machine, or overflow the stack.

use crate::json;

fn problem(expression: &str) -> String {
    json(expression).expect_err(expression)
}

#[test]
fn nesting_is_bounded() {
    let json = format!("jsondecode(\"{}\")", "[".repeat(100_000));
    assert!(problem(&json).contains("more than 100 levels"));
    let yaml = format!("yamldecode(\"{}\")", "[".repeat(200));
    assert!(problem(&yaml).contains("more than 100 levels"));
    let blocks = format!("yamldecode(\"{}\")", "- ".repeat(5_000));
    assert!(problem(&blocks).contains("more than 100 levels"));
    let mut aliases = "- &a0 []\\n".to_owned();
    for level in 1..200 {
        aliases += &format!("- &a{level} [*a{}]\\n", level - 1);
    }
    let aliases = format!("yamldecode(\"{aliases}\")");
    assert!(problem(&aliases).contains("more than 100 levels"));
}

#[test]
fn aliases_of_aliases_are_bounded() {
    let mut text = "- &a0 [x, x, x, x, x, x, x, x, x, x]\\n".to_owned();
    for level in 1..10 {
        let alias = format!("*a{}", level - 1);
        text += &format!("- &a{level} [{}]\\n", [alias.as_str(); 10].join(", "));
    }
    assert!(json(&format!("yamldecode(\"{text}\")")).is_err());
}

#[test]
fn hashing_a_password_cannot_take_minutes() {
    assert!(problem("bcrypt(\"a\", 31)").contains("at most 12"));
}

#[test]
fn errors_in_text_have_a_place() {
    assert!(problem("jsondecode(\"{\\n  \\\"a\\\": x}\")").contains("line 2, column 8"));
    assert!(problem("yamldecode(\"a: 1\\nb: *x\")").contains("line 2, column 4"));
    assert!(problem("csvdecode(\"a\\n1\\n1,2\")").contains("line 3"));
}

#[test]
fn long_text_in_quotes_is_broken_into_lines() {
    let words = ["word"; 20].join(" ");
    let yaml = json(&format!(
        "yamlencode({{ a = [\"{words}  x\"], \"{words}\" = 1 }})"
    ));
    let first = ["word"; 16].join(" ");
    let expected =
        format!(r#""\"a\":\n- \"{first}\n  word word word word  x\"\n\"{words}\": 1\n""#);
    assert_eq!(yaml.as_deref(), Ok(expected.as_str()));
}

proptest::proptest! {
    #[test]
    fn decoders_end_without_a_panic(text in "[-\\[\\]{}:,&*!|>'\"#?~<. \\n\\ta-c0-3\\\\é😀]{0,60}") {
        for decoder in ["yamldecode", "jsondecode", "csvdecode"] {
            _ = json(&format!("{decoder}({text:?})"));
        }
    }
}
