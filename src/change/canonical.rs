//! The canonical text of a configuration file: without comments and white space, and without settings that
//! are no input of any stack, such as order, tags, descriptions, lifecycle rules, and `moved` and `removed`
//! blocks.
//!
//! `id` and `name` are inputs, since tools see them in the environment. This module does not know which file
//! belongs to which stack.

use std::collections::BTreeSet;

use crate::language::canonical::{BodyItem, canonical};
use crate::language::parse::parse_whole;
use crate::language::syntax::Body;
use crate::source::FileId;

const NO_INPUTS: [&str; 6] = [
    "after",
    "before",
    "description",
    "tags",
    "wanted_by",
    "wants",
];

pub(super) fn is_no_input(attribute: &str) -> bool {
    NO_INPUTS.contains(&attribute)
}

/// Decodes the bytes of a file that is to be parsed.
pub(super) fn text(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    Some(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

/// Returns the canonical text of a file without some variables of `run.env`; `None` if it does not parse.
pub(super) fn canonical_text(text: &str, left_out: &BTreeSet<String>) -> Option<String> {
    let body = parse_whole(FileId::UNPLACED, text).ok()?;
    Some(canonical_body(&body, left_out))
}

/// Returns the canonical text of a syntax tree without some variables of `run.env`.
pub(super) fn canonical_body(body: &Body, left_out: &BTreeSet<String>) -> String {
    let is_tool = |kind: &str| matches!(kind, "orch" | "terramate");
    let matters = |around: &[&str], item: BodyItem<'_>| match (around, item) {
        (["stack"], BodyItem::Attribute(name)) => !is_no_input(name),
        (["stack"] | [_, "config"], BodyItem::Block("lifecycle"))
        | ([], BodyItem::Block("module" | "moved" | "removed")) => false,
        ([_, "config", "run", "env"], BodyItem::Attribute(name)) => !left_out.contains(name),
        _ => true,
    };
    let may_vanish = |around: &[&str], kind: &str| match (around, kind) {
        ([], tool) => is_tool(tool),
        ([tool], "config") | ([tool, "config"], "run") | ([tool, "config", "run"], "env") => {
            is_tool(tool)
        }
        _ => false,
    };
    canonical(body, &matters, &may_vanish)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::parse::{is_whole, parse};

    fn plain(text: &str) -> String {
        canonical_text(text, &BTreeSet::new()).unwrap()
    }

    #[test]
    fn order_tags_and_rules_are_no_inputs() {
        let none = plain("stack {\n}\n");
        let same = [
            "stack { tags = [\"a\"] }",
            "stack { description = \"d\" }",
            "stack {\n  after = [\"/a\"]\n  before = [\"/b\"]\n  wants = [\"/c\"]\n  wanted_by = [\"/d\"]\n}",
            "stack {\n  lifecycle {\n    prevent_destroy = true\n  }\n}",
            "stack {}\norch {\n  config {\n    lifecycle {\n      ignore_changes = all\n    }\n  }\n}",
            "stack {}\nterramate {\n  config {\n    run {\n      env {\n      }\n    }\n  }\n}",
            "stack {}\nremoved {\n  from = \"/a\"\n}\nmoved {\n  from = \"/a\"\n  to = \"/b\"\n}",
            "# why\nstack {\n\n}\n",
        ];
        for text in same {
            assert_eq!(plain(text), none, "{text}");
        }
        let other = [
            "",
            "stack { id = \"a\" }",
            "stack { name = \"a\" }",
            "stack { watch = [\"/a\"] }",
            "stack { mode = \"read\" }",
            "stack { driver = \"none\" }",
            "stack { for_each = [\"a\"] }",
            "stack {\n  run {\n    timeout = \"1m\"\n  }\n}",
            "stack {}\nglobals {\n  tags = 1\n}",
            "stack {}\nlifecycle {\n}",
            "stack {}\ngenerate_hcl \"a\" {\n  content {\n    lifecycle {\n    }\n  }\n}",
            "stack {}\norch {\n  config {\n    run {\n      env {\n        A = \"1\"\n      }\n    }\n  }\n}",
        ];
        for text in other {
            assert_ne!(plain(text), none, "{text}");
        }
        assert_eq!(plain("orch {\n config {\n lifecycle {}\n }\n}\n"), "");
    }

    #[test]
    fn variables_are_left_out_where_they_are_set() {
        let env = |set: &str| {
            format!(
                "orch {{\n  config {{\n    run {{\n      env {{\n{set}\n      }}\n    }}\n  }}\n}}\nglobals {{\n  A = 1\n}}\n"
            )
        };
        let left_out = BTreeSet::from(["A".to_owned()]);
        let without = |set: &str| canonical_text(&env(set), &left_out).unwrap();
        assert_eq!(without("A = 1"), without("A = 2"));
        assert_eq!(
            without("A = 1"),
            canonical_text("globals {\n  A = 1\n}\n", &left_out).unwrap()
        );
        assert_ne!(without("A = 1\nB = 1"), without("A = 1\nB = 2"));
        assert_ne!(plain(&env("A = 1")), plain(&env("A = 2")));
    }

    #[test]
    fn what_the_loader_has_kept_says_the_same() {
        let texts = [
            ("stack {\n  name = \"a\"\n  after = [\"/b\"]\n}\n", true),
            (
                "import {\n  source = \"x\"\n}\nmoved {\n  from = \"/a\"\n}\n",
                true,
            ),
            ("globals {\n  a = \"${b}\"\n}\nstack {\n}\n", false),
            (
                "generate_hcl \"a\" {\n  content {\n    b = 1\n  }\n}\n",
                false,
            ),
            ("a = 1\n", true),
        ];
        let nothing = BTreeSet::new();
        for (text, kept) in texts {
            let body = parse(FileId::UNPLACED, text).unwrap();
            assert_eq!(is_whole(&body), kept, "{text}");
            if kept {
                assert_eq!(canonical_body(&body, &nothing), plain(text));
            }
        }
    }

    #[test]
    fn what_cannot_be_parsed_says_nothing() {
        assert_eq!(canonical_text("stack {", &BTreeSet::new()), None);
    }
}
