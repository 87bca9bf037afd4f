//! Generated expressions, on which Terraform and this crate must agree.
//!
//! The generator is deterministic. Without `terraform` on the `PATH`, only the lack of panics is tested.
//! It leaves out what the two differ in: division by zero, fractions that binary numbers cannot hold,
//! negative zero, the right side of `&&` and `||`, conditions whose untaken result has a type that the text
//! does not show. The seed avoids empty collections of an unsuitable type, which Terraform refuses.

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
            2 => format!("({} != {})", self.expr(depth), self.expr(depth)),
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

    /// Returns an expression that is likely to have a value.
    fn sound(&mut self, depth: usize) -> String {
        match self.below(5) {
            0 => self.number(depth),
            1 => self.text(depth),
            2 => self.bool(depth),
            3 => self.list(depth),
            _ => self.map(depth),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return self
                .one_of(&[
                    "0", "1", "2", "2.5", "-3", "c.number", "c.map.a", "\"4\"", "1e3",
                ])
                .to_owned();
        };
        match self.below(8) {
            0 | 1 => {
                let operator = self.one_of(&["+", "-"]);
                format!("({} {operator} {})", self.number(depth), self.number(depth))
            }
            2 => format!(
                "({} / {})",
                self.number(depth),
                self.one_of(&["2", "4", "0.5"])
            ),
            3 => format!(
                "({} % {})",
                self.one_of(&["7", "-7", "5.5"]),
                self.one_of(&["4", "3"])
            ),
            4 => format!("length({})", self.list(depth)),
            5 => format!("sum([{}, {}])", self.number(depth), self.number(depth)),
            6 => format!("tonumber({})", self.number(depth)),
            _ => format!("({})[0]", self.list(depth)),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return self
                .one_of(&[
                    "\"\"",
                    "\"a\"",
                    "\"b\"",
                    "c.text",
                    "c.names[1]",
                    "\"\\n<&\"",
                    "1",
                ])
                .to_owned();
        };
        let strip = self.one_of(&["", "~"]);
        match self.below(7) {
            0 => format!(
                "\"x ${{{strip} {} }} ${{ {} {strip}}} \"",
                self.text(depth),
                self.number(depth)
            ),
            1 => format!(
                "\" %{{{strip} if {} {strip}}} ${{{}}} %{{ else {strip}}} n %{{ endif }} .\"",
                self.bool(depth),
                self.text(depth)
            ),
            2 => format!(
                "\"%{{ for k, v in {} {strip}}} ${{k}}=${{length([v])}} %{{{strip} endfor }}\"",
                self.list(depth)
            ),
            3 => format!(
                "coalesce({}, {}, \"z\")",
                self.text(depth),
                self.text(depth)
            ),
            4 => format!("tostring({})", self.text(depth)),
            5 => format!("(c.yes ? {} : \"no\")", self.number(depth)),
            _ => format!(
                "lookup({}, \"zz\", {})",
                self.object(depth),
                self.text(depth)
            ),
        }
    }

    fn bool(&mut self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return self
                .one_of(&["true", "false", "c.yes", "\"true\""])
                .to_owned();
        };
        match self.below(8) {
            0 => format!("({} == {})", self.sound(depth), self.sound(depth)),
            1 => format!("({} != {})", self.list(depth), self.list(depth)),
            2 => format!("({} < {})", self.number(depth), self.number(depth)),
            3 => format!("!{}", self.bool(depth)),
            4 => format!("contains({}, {})", self.list(depth), self.sound(depth)),
            5 => format!("({} == {})", self.bool(depth), self.bool(depth)),
            6 => format!("can({})", self.expr(depth)),
            _ => format!("alltrue([{}, {}])", self.bool(depth), self.bool(depth)),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            let lists = [
                "c.list",
                "c.names",
                "c.set",
                "[]",
                "[1, \"a\"]",
                "[[1], [2, 3]]",
                "[null]",
            ];
            return self.one_of(&lists).to_owned();
        };
        match self.below(18) {
            0 | 1 => format!("[{}, {}]", self.sound(depth), self.sound(depth)),
            2 => format!("tolist({})", self.list(depth)),
            3 => format!("toset({})", self.list(depth)),
            4 => format!("concat({}, {})", self.list(depth), self.list(depth)),
            5 => format!("flatten([{}, {}])", self.list(depth), self.list(depth)),
            6 => format!("distinct({})", self.list(depth)),
            7 => format!("reverse({})", self.list(depth)),
            8 => format!("setproduct({}, {})", self.list(depth), self.list(depth)),
            9 => format!("setunion({}, {})", self.list(depth), self.list(depth)),
            10 => format!("{}({})", self.one_of(&["keys", "values"]), self.map(depth)),
            11 => format!(
                "chunklist({}, {})",
                self.list(depth),
                self.one_of(&["0", "1", "2"])
            ),
            12 => format!(
                "[for k, v in {} : {}]",
                self.list(depth),
                self.one_of(&["k", "v", "[k, v]"])
            ),
            13 => format!("[for k, v in {} : v if k != \"a\"]", self.map(depth)),
            14 => format!("({})[*]", self.sound(depth)),
            15 => format!(
                "(true ? {} : {})",
                self.list(depth),
                self.one_of(&["[]", "null"])
            ),
            16 => format!("slice({}, 0, 1)", self.list(depth)),
            _ => format!("setsubtract({}, {})", self.list(depth), self.list(depth)),
        }
    }

    fn object(&mut self, depth: usize) -> String {
        format!(
            "{{ a = {}, (\"b\") = {} }}",
            self.sound(depth),
            self.sound(depth)
        )
    }

    fn map(&mut self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            let maps = [
                "c.map",
                "c.object",
                "{}",
                "{ a = 1, c = \"x\" }",
                "c.object.deep",
            ];
            return self.one_of(&maps).to_owned();
        };
        match self.below(8) {
            0 | 1 => self.object(depth),
            2 => format!("tomap({})", self.map(depth)),
            3 | 4 => format!("merge({}, {})", self.map(depth), self.map(depth)),
            5 => format!("{{for k, v in {} : k => [v]}}", self.list(depth)),
            6 => format!("{{for k, v in {} : \"${{k}}x\" => v...}}", self.map(depth)),
            _ => format!("(false ? {{}} : {})", self.map(depth)),
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
    let expressions: Vec<String> = (0..COUNT)
        .map(|at| match at % 4 {
            0 => generator.expr(1 + at % 3),
            _ => generator.sound(1 + at % 3),
        })
        .collect();
    let found: Vec<_> = expressions.iter().map(|it| json(it)).collect();

    let version = Command::new("terraform").arg("version").output();
    if !version.is_ok_and(|it| it.status.success()) {
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
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
    assert!(values > COUNT / 2, "too few of them have a value: {values}");
    assert!(
        wrong.is_empty(),
        "{} of {COUNT} differ ({values} have a value):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
