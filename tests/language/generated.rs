//! Generated expressions, which Terraform and this crate must agree on.
//!
//! The generator is deterministic. Without `terraform` on the `PATH` only the lack of panics is tested.
//! What the two differ in on purpose is not generated: division by zero, fractions that binary numbers
//! cannot hold, negative zero, `&&` and `||` with a wrong right side, and conditions whose untaken result
//! has a type that the text does not show.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::json;

const COUNT: usize = 1_500;
const BATCH: usize = 300;

/// The constants of the tables.
const LOCALS: &str = r#"locals { c = {
  list = [1, 2, 3]
  names = tolist(["b", "a"])
  set = toset(["b", "a"])
  map = tomap({ a = 1, b = 2 })
  object = { name = "x", n = 1, deep = { list = [{ id = "p" }, { id = "q" }] } }
  null = null
  text = "h\u00e9llo"
  number = 1.5
  yes = true
} }
"#;

struct Generator(u64);

impl Generator {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn literal(&mut self) -> String {
        self.one_of(&[
            "0",
            "1",
            "2",
            "7",
            "0.5",
            "-3",
            "1e3",
            "true",
            "false",
            "\"\"",
            "\"a\"",
            "\"b\"",
            "\"1\"",
            "\"true\"",
            "\"é\"",
            "null",
            "[]",
            "{}",
            "[1, \"a\"]",
            "[\"b\", \"a\"]",
            "{ a = 1 }",
            "{ b = \"x\", a = 2 }",
        ])
        .to_owned()
    }

    fn constant(&mut self) -> String {
        self.one_of(&[
            "c.list",
            "c.names",
            "c.set",
            "c.map",
            "c.object",
            "c.null",
            "c.text",
            "c.number",
            "c.yes",
            "c.object.n",
            "c.map.a",
            "c.names[0]",
            "c.object.deep.list",
        ])
        .to_owned()
    }

    fn collection(&mut self, depth: usize) -> String {
        match self.below(6) {
            0 | 1 => self
                .one_of(&["c.list", "c.names", "c.set", "c.map", "c.object"])
                .to_owned(),
            2 => format!("[{}, {}]", self.expr(depth), self.expr(depth)),
            3 => format!("{{ a = {}, b = {} }}", self.expr(depth), self.expr(depth)),
            4 => format!("toset([\"b\", {}])", self.expr(depth)),
            _ => self.expr(depth),
        }
    }

    fn expr(&mut self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return if self.below(2) == 0 {
                self.literal()
            } else {
                self.constant()
            };
        };
        match self.below(16) {
            0 => self.constant(),
            1 => {
                let operator = self.one_of(&["+", "-", "<", "<=", ">", ">=", "==", "!="]);
                format!("({} {operator} {})", self.expr(depth), self.expr(depth))
            }
            2 => {
                let operator = self.one_of(&["==", "!="]);
                format!("({} {operator} {})", self.expr(depth), self.expr(depth))
            }
            3 => format!("!{}", self.expr(depth)),
            4 => {
                let condition = self.one_of(&["true", "false", "c.yes"]);
                let (mut yes, mut no) = (self.expr(depth), self.expr(depth));
                *(if condition == "false" {
                    &mut yes
                } else {
                    &mut no
                }) = self.literal();
                format!("({condition} ? {yes} : {no})")
            }
            5 => format!("\"<${{{}}}-${{{}}}>\"", self.expr(depth), self.expr(depth)),
            6 => {
                let strip = self.one_of(&["", "~"]);
                let condition = self.expr(depth);
                format!(
                    "\" %{{{strip} if {condition} {strip}}} y %{{ else }} n %{{ endif {strip}}} .\""
                )
            }
            7 => {
                let strip = self.one_of(&["", "~"]);
                let collection = self.collection(depth);
                format!("\"%{{ for k, v in {collection} {strip}}} ${{k}}=${{v}} %{{ endfor }}\"")
            }
            8 => {
                let collection = self.collection(depth);
                let value = self.one_of(&["v", "k", "[k, v]", "\"${k}-${v}\"", "v == k"]);
                let condition = self.one_of(&["", "", " if v != null", " if k != \"a\""]);
                format!("[for k, v in {collection} : {value}{condition}]")
            }
            9 => {
                let collection = self.collection(depth);
                let value = self.one_of(&["k => v", "v => k", "v => k...", "\"x${k}\" => [v]"]);
                format!("{{for k, v in {collection} : {value}}}")
            }
            10 => {
                let splat = self.one_of(&["[*]", "[*].a", ".*.id", "[*][0]", "[*].id"]);
                format!("({}){splat}", self.collection(depth))
            }
            11 => {
                let index =
                    self.one_of(&["[0]", "[\"1\"]", "[\"a\"]", ".a", ".b", "[2]", "[true]"]);
                format!("({}){index}", self.collection(depth))
            }
            _ => self.call(depth),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        const OF_ONE: [&str; 24] = [
            "alltrue",
            "anytrue",
            "compact",
            "distinct",
            "flatten",
            "keys",
            "length",
            "one",
            "reverse",
            "sort",
            "sum",
            "transpose",
            "values",
            "tobool",
            "tolist",
            "tomap",
            "tonumber",
            "toset",
            "tostring",
            "concat",
            "merge",
            "setunion",
            "coalesce",
            "can",
        ];
        const OF_TWO: [&str; 14] = [
            "chunklist",
            "coalesce",
            "coalescelist",
            "concat",
            "contains",
            "element",
            "index",
            "merge",
            "setintersection",
            "setproduct",
            "setsubtract",
            "setunion",
            "zipmap",
            "try",
        ];
        const OF_THREE: [&str; 4] = ["lookup", "slice", "matchkeys", "range"];
        match self.below(8) {
            0..4 => format!("{}({})", self.one_of(&OF_ONE), self.collection(depth)),
            4..7 => {
                let second = if self.below(2) == 0 {
                    self.collection(depth)
                } else {
                    self.expr(depth)
                };
                format!(
                    "{}({}, {second})",
                    self.one_of(&OF_TWO),
                    self.collection(depth)
                )
            }
            _ => {
                let [second, third] = [(); 2].map(|()| match self.below(3) {
                    0 => self.expr(depth),
                    1 => self.one_of(&["0", "1", "2", "\"a\"", "\"b\""]).to_owned(),
                    _ => self.collection(depth),
                });
                let first = self.collection(depth);
                format!("{}({first}, {second}, {third})", self.one_of(&OF_THREE))
            }
        }
    }
}

/// Asks Terraform for the values of expressions; `None` for one that it refuses.
fn ask(directory: &std::path::Path, expressions: &[String]) -> Vec<Option<String>> {
    let entries = expressions.iter().enumerate().map(|(at, it)| {
        let it = it.replace("c.", "local.c.");
        format!("e{at} = can(jsonencode({it})) ? jsonencode({it}) : \"ERR\"")
    });
    let text = format!(
        "jsonencode({{{}}})\n",
        entries.collect::<Vec<_>>().join(", ")
    );
    let mut child = Command::new("terraform")
        .arg("console")
        .current_dir(directory)
        .env("TF_CLI_CONFIG_FILE", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let answer = String::from_utf8_lossy(&output.stdout);
    // The console prints the string in HCL's quotes, which for JSON are JSON's.
    let answers: Option<BTreeMap<String, String>> = serde_json::from_str(answer.trim())
        .ok()
        .and_then(|inner: String| serde_json::from_str(&inner).ok());
    match answers {
        Some(mut answers) => (0..expressions.len())
            .map(|at| answers.remove(&format!("e{at}")).filter(|it| it != "ERR"))
            .collect(),
        None if expressions.len() <= 1 => vec![None; expressions.len()],
        None => {
            let (left, right) = expressions.split_at(expressions.len() / 2);
            let mut answers = ask(directory, left);
            answers.extend(ask(directory, right));
            answers
        }
    }
}

#[test]
fn generated_expressions_have_the_values_that_terraform_gives_them() {
    let mut generator = Generator(20_260);
    let expressions: Vec<String> = (0..COUNT).map(|at| generator.expr(1 + at % 3)).collect();
    let found: Vec<_> = expressions.iter().map(|it| json(it)).collect();

    let version = Command::new("terraform").arg("version").output();
    if !version.is_ok_and(|it| it.status.success()) {
        #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped: there is no `terraform` to compare with");
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("main.tf"), LOCALS).unwrap();
    let batches = expressions.chunks(BATCH);
    let expected: Vec<_> = batches.flat_map(|it| ask(directory.path(), it)).collect();
    let mut wrong = Vec::new();
    for ((expression, found), expected) in expressions.iter().zip(&found).zip(&expected) {
        if found.as_ref().ok() != expected.as_ref() {
            wrong.push(format!(
                "{expression}\n  expected {expected:?}\n  found    {found:?}"
            ));
        }
    }
    let values = expected.iter().flatten().count();
    assert!(values > COUNT / 5, "too few of them have a value: {values}");
    assert!(
        wrong.is_empty(),
        "{} of {COUNT} differ ({values} have a value):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
