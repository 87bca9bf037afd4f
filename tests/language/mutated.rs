//! A short, deterministic run of the fuzzers, on mutations of the expressions in the tables.

use std::fs;
use std::path::Path;

#[path = "../fuzz/bodies.rs"]
mod bodies;

/// Pieces that expressions are made of, and a few that have caused trouble elsewhere.
const PIECES: [&str; 40] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "${",
    "%{",
    "~",
    "\"",
    "\\",
    "\n",
    ",",
    ":",
    "=>",
    "...",
    "?",
    ".",
    "*",
    "[*]",
    "-",
    "!",
    "&&",
    "||",
    "==",
    "%",
    "/",
    "1e999",
    "99999999999",
    "0.1",
    "null",
    "true",
    "for x in ",
    " if ",
    "endif}",
    "<<E\n",
    "E\n",
    "\u{301}",
    "\u{0}",
    "tm_format(\"%999999s\", 1)",
];

/// Files with blocks that can be deferred, with what may be around them, and files that need no parser.
const FILES: [&str; 7] = [
    "globals {\n  a = \"x\"\n  b = [1, 2]\n}\n",
    "# what\n\nstack {\n  tags = [\"a\"]\n}\n\nglobals \"a\" \"é\" { # why\n  x = { a = 1, b = \"${c}\" }\n}\n\nglobals {\n}\nimport {\n  source = \"/x.tm\"\n}\n",
    "globals a {}\nglobals{\n  n = -1.5 + f(x...) # }\n}\nstack {\n  name = <<E\nglobals {\n}\nE\n}\n",
    "terramate {\n  config {\n    git { default_branch = \"{\" }\n  }\n}\nglobals \"a\"b\"c\" {\n  é = 1\n}\na = 1\nglobals {\n  x = 1\n}\n",
    "globals {\n  a = b ? c : d\n}\ngenerate_hcl \"x.tf\" {\n  content {\n    a = 1\n  }\n}\nglobals {\n  m = [for k, v in x : v if k]\n}",
    "# what\nstack {\n  name = \"é\" # why\n  tags = [\n    \"a\", // and\n    \"b\",\n  ]\n\n  after = []\n}\n",
    "orch {\n  config {\n    run {\n      x = true\n      y = [null, [0.5, 12]]\n    }\n    z {}\n  }\n}\ndriver \"a\" b {\n}\nassert {\n  a = false\n}",
];

/// A generator of pseudorandom numbers: the same ones each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = usize::try_from(self.0 >> 33).unwrap_or(0);
        high % limit.max(1)
    }

    /// Returns a place in a text between two characters.
    fn place(&mut self, text: &str) -> usize {
        let place = self.below(text.len() + 1);
        text.floor_char_boundary(place)
    }
}

fn expressions() -> Vec<String> {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/tables");
    let mut expressions = Vec::new();
    let mut files: Vec<_> = fs::read_dir(tables)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        let cases = text.split("\n\n").map(|case| {
            let lines = case.split('\n').filter(|line| !line.starts_with("=> "));
            let case: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
            case.join("\n")
        });
        expressions.extend(cases.filter(|case| !case.is_empty()));
    }
    // Configuration files put a prefix before the names of functions.
    let call = regex::Regex::new(r"\b([a-z][a-z0-9]*)\(").unwrap();
    let prefixed = expressions
        .iter()
        .map(|it| call.replace_all(it, "tm_$1(").into_owned());
    prefixed.collect()
}

fn mutated(expressions: &[String], random: &mut Random) -> String {
    let mut text = expressions[random.below(expressions.len())].clone();
    for _ in 0..=random.below(4) {
        let start = random.place(&text);
        match random.below(4) {
            0 => text.insert_str(start, PIECES[random.below(PIECES.len())]),
            1 => {
                let rest = &text[start..];
                let end = start + random.place(&rest.chars().take(12).collect::<String>());
                text.replace_range(start..end, "");
            }
            2 => {
                let other = &expressions[random.below(expressions.len())];
                let from = random.place(other);
                let piece: String = other[from..].chars().take(20).collect();
                text.insert_str(start, &piece);
            }
            _ => {
                let piece: String = text[start..].chars().take(10).collect();
                text.insert_str(start, &piece);
            }
        }
    }
    text
}

#[test]
fn mutated_expressions_end_without_a_panic() {
    let expressions = expressions();
    let mut random = Random(1);
    for _ in 0..8_000 {
        let text = mutated(&expressions, &mut random);
        bodies::evaluate(&text);
        bodies::parse(&format!("x = {text}\n"));
        bodies::parse(&format!("globals {{\n  x = {text}\n}}\n"));
    }
}

#[test]
fn mutated_files_mean_the_same_whatever_is_deferred() {
    let mut random = Random(2);
    for file in FILES {
        bodies::parse(file);
    }
    let files = FILES.map(str::to_owned);
    for _ in 0..8_000 {
        bodies::parse(&mutated(&files, &mut random));
    }
}
