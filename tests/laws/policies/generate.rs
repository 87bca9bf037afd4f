//! Random policies, and the input that they read. The same seed gives the same policy, for ever: the answers of OPA
//! are recorded by seed.

/// What every policy reads.
pub(crate) const INPUT: &str = r#"{
  "n": 3,
  "text": "net-eu-1",
  "none": null,
  "stacks": [
    {"id": "app", "owner": "ann", "size": 2, "labels": ["after:net", "prod"], "meta": {"a": 1}},
    {"id": "db", "size": 5, "labels": [], "meta": {"a": 1, "b": 2}},
    {"id": "net", "owner": null, "size": 0, "labels": ["prod"]}
  ],
  "by": {"x": {"id": "app"}, "y": {"id": "net", "deep": [1, [2, 3]]}},
  "pairs": [["a", 1], ["b", 2], ["c"]],
  "numbers": [3, 1, 2.5, -4, 1]
}"#;

/// A sequence of numbers that depends on its seed alone (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit as u64).expect("it is below the limit")
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

struct Generator {
    random: Random,
    is_v1: bool,
    /// The variables that have a value here.
    variables: Vec<String>,
    n_variables: usize,
}

/// Returns the policy of a seed: even seeds give Rego v1, odd ones Rego v0. Its answer is the set `trigger`.
pub(crate) fn policy(seed: u64) -> String {
    let mut generator = Generator {
        random: Random(seed),
        is_v1: seed.is_multiple_of(2),
        variables: Vec::new(),
        n_variables: 0,
    };
    generator.policy()
}

impl Generator {
    fn policy(&mut self) -> String {
        let mut text = "package p\n\n".to_owned();
        if !self.is_v1 {
            text += "import future.keywords.in\nimport future.keywords.every\n\n";
        }
        let (open, contains) = if self.is_v1 {
            ("if {", " contains x if {")
        } else {
            ("{", "[x] {")
        };
        for name in ["f", "g"] {
            self.variables = vec!["s".to_owned()];
            let value = self.term(1);
            let body = self.body(1);
            self.variables = vec!["s".to_owned()];
            let (head, equals) = if self.is_v1 {
                (format!("{name}(s) := {value} "), ":=")
            } else {
                (format!("{name}(s) = {value} "), "=")
            };
            text += &format!("{head}{open} {body} }}");
            if self.random.below(2) == 0 {
                let otherwise = self.term(1);
                let body = self.body(1);
                text += &format!(" else {equals} {otherwise} {open} {body} }}");
            }
            text += "\n\n";
        }
        self.variables.clear();
        if self.random.below(2) == 0 {
            text += if self.is_v1 {
                "default one := \"default\"\n\n"
            } else {
                "default one = \"default\"\n\n"
            };
        }
        let (body, value) = self.body_and_value();
        let equals = if self.is_v1 { ":=" } else { "=" };
        text += &format!("one {equals} y {open} y := min([y1 | {body}; y1 := {value}]) }}\n\n");
        for name in ["set", "set"] {
            let (body, value) = self.body_and_value();
            text += &format!("{name}{contains} {body}; x := {value} }}\n\n");
        }
        let (body, value) = self.body_and_value();
        text += &format!(
            "table[k] {equals} v {open} some k in [\"a\", \"b\"]; v := [w | {body}; w := {value}] }}\n\n"
        );
        let (body, value) = self.body_and_value();
        text += &format!("trigger{contains} {body}; x := json.marshal({value}) }}\n\n");
        for rule in ["one", "set", "table"] {
            text += &format!(
                "trigger{contains} x := sprintf(\"{rule} %s\", [json.marshal({rule})]) }}\n\n"
            );
        }
        text
    }

    fn body_and_value(&mut self) -> (String, String) {
        self.variables.clear();
        let body = self.body(2);
        let value = self.term(1);
        self.variables.clear();
        (body, value)
    }

    fn body(&mut self, depth: usize) -> String {
        let n_statements = 1 + self.random.below(3);
        let statements: Vec<String> = (0..n_statements).map(|_| self.statement(depth)).collect();
        statements.join("; ")
    }

    fn fresh(&mut self) -> String {
        self.n_variables += 1;
        format!("v{}", self.n_variables)
    }

    fn collection(&mut self) -> &'static str {
        self.random.one_of(&[
            "input.stacks",
            "input.by",
            "input.pairs",
            "input.numbers",
            "input.stacks[_].labels",
            "input.absent",
            "input.none",
            "input.text",
        ])
    }

    /// Returns a set, an object or a list with such.
    fn composite(&mut self) -> String {
        let anything = self.any();
        match self.random.below(8) {
            0 => format!("{{{anything}}}"),
            1 => format!("{{{anything}, {{\"a\": 1}}, {{1}}}}"),
            2 => format!("{{\"a\": {anything}}}"),
            3 => format!("[{{{anything}}}, {{}}]"),
            4 => "{\"a\": {1}}".to_owned(),
            5 => "{{\"a\": {1}}, {\"a\": {\"b\": 1}}, [{}], [{1}]}".to_owned(),
            6 => format!("{{x1 | some x1 in [{{1}}, {{\"a\": 1}}, {anything}]}}"),
            _ => self.random.one_of(&["{1}", "{1, 2.5}", "{2}"]).to_owned(),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        match self.random.below(15) {
            0 | 1 => {
                let collection = self.collection();
                let name = self.fresh();
                self.variables.push(name.clone());
                format!("some {name} in {collection}; {name} != \"none\"")
            }
            2 => {
                let collection = self.collection();
                let (key, name) = (self.fresh(), self.fresh());
                self.variables.extend([key.clone(), name.clone()]);
                format!("some {key}, {name} in {collection}; [{key}, {name}] != []")
            }
            3 => {
                let name = self.fresh();
                let pattern = match self.random.below(40) {
                    1 => format!("{{\"id\": {name}}}"),
                    2 => format!("{{\"a\": {name}, \"b\": _}}"),
                    _ => format!("[{name}, _]"),
                };
                let collection = self.random.one_of(&[
                    "input.pairs",
                    "input.by",
                    "[s1.meta | some s1 in input.stacks]",
                ]);
                self.variables.push(name);
                format!(
                    "some {pattern} in {collection}; {} != \"none\"",
                    self.variables[self.variables.len() - 1]
                )
            }
            4 | 5 => {
                let value = if self.random.below(2) == 0 {
                    self.any()
                } else {
                    self.term(depth)
                };
                let name = format!("t{}", self.fresh());
                self.variables.push(name.clone());
                format!("{name} := {value}")
            }
            6 => {
                let (index, name) = (self.fresh(), self.fresh());
                self.variables.extend([index.clone(), name.clone()]);
                format!(
                    "{name} := input.stacks[{index}].{}",
                    self.random.one_of(&["id", "owner", "meta.b"])
                )
            }
            7 | 8 => format!("not {}", self.condition(depth)),
            9 if depth > 0 => {
                let collection = self.collection().replace("[_]", "[0]");
                let name = self.fresh();
                let n_visible = self.variables.len();
                self.variables.push(name.clone());
                let body = self.body(depth - 1);
                self.variables.truncate(n_visible);
                format!("every {name} in {collection} {{ [{name}] != []; {body} }}")
            }
            10 => {
                let condition = self.condition(depth);
                let value = self.random.one_of(&["7", "\"w\"", "[]", "null"]);
                format!(
                    "{condition} with input.{} as {value}",
                    self.random.one_of(&["n", "text", "absent"])
                )
            }
            11 | 12 => self.lookup(),
            13 => {
                let collection = self.composite();
                let name = self.fresh();
                self.variables.push(name.clone());
                format!("some {name} in {collection}; {name} != \"none\"")
            }
            _ => self.condition(depth),
        }
    }

    /// Returns statements that look for a stack by something in it.
    fn lookup(&mut self) -> String {
        let (mut name, number) = (self.fresh(), self.fresh());
        let declared = if self.random.below(3) > 0 {
            format!("some {number}; ")
        } else {
            String::new()
        };
        let taken = match self.random.below(4) {
            0 => format!("some {name} in input.stacks; "),
            1 => format!("{name} := input.stacks[_]; "),
            2 => {
                self.variables.push(number.clone());
                format!("{declared}{name} := input.stacks[{number}]; ")
            }
            _ => {
                self.variables.push(number.clone());
                name = format!("input.stacks[{number}]");
                declared
            }
        };
        if !name.contains('.') {
            self.variables.push(name.clone());
        }
        let wanted = self.random.one_of(&[
            "\"prod\"",
            "sprintf(\"after:%s\", [input.by.y.id])",
            "concat(\":\", [\"after\", \"net\"])",
            "input.by.x.id",
            "input.absent",
            "\"app\"",
            "input.n",
        ]);
        let found = match self.random.below(7) {
            0 => format!("{wanted} in {name}.labels"),
            1 => format!("{name}.labels[_] == {wanted}"),
            2 => format!("{name}.id == {wanted}"),
            3 => format!("{wanted} = {name}.size"),
            4 => {
                let label = self.fresh();
                format!("some {label} in {name}.labels; {label} == {wanted}")
            }
            5 => {
                let (given, label) = (self.fresh(), self.fresh());
                format!("{given} := {wanted}; {label} := {name}.labels[_]; {label} == {given}")
            }
            _ => {
                let (label, parts) = (self.fresh(), self.fresh());
                let wanted = self
                    .random
                    .one_of(&["input.by.y.id", "\"pro\"", "input.text"]);
                let split = self.random.one_of(&[
                    "split(trim_prefix(LABEL, \"after:\"), \",\")",
                    "split(LABEL, \"d\")",
                    "split(LABEL, \"\")",
                ]);
                let split = split.replace("LABEL", &label);
                format!("{label} := {name}.labels[_]; {parts} := {split}; {wanted} == {parts}[_]")
            }
        };
        format!("{taken}{found}")
    }

    fn condition(&mut self, depth: usize) -> String {
        let left = if self.random.below(3) > 0 {
            self.any()
        } else {
            self.term(depth)
        };
        match self.random.below(9) {
            0 => left,
            1 => format!("{left} in {}", self.collection().replace("[_]", "[0]")),
            2 => format!("startswith({}, \"a\")", self.any()),
            3 => format!(
                "regex.match(`{}`, {})",
                self.random
                    .one_of(&[r"^\w+$", r"[\d-]{1,3}", "^[^a]", "(?i)^A"]),
                self.any()
            ),
            4 => format!("is_string({left})"),
            5 => {
                let operator = self.random.one_of(&["<", "<=", ">", ">=", "=="]);
                format!("{} {operator} {}", self.composite(), self.composite())
            }
            _ => {
                let right = self.term(depth);
                format!(
                    "{left} {} {right}",
                    self.random.one_of(&["==", "!=", "<", ">=", "!=", "="])
                )
            }
        }
    }

    fn term(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.below(3) == 0 {
            return self.leaf();
        }
        let inner = depth - 1;
        let kind = self.random.below(21);
        match kind {
            0 => format!("count({})", self.any()),
            1 => format!("({} {} {})", self.any(), self.arithmetic(), self.any()),
            2 => format!("[{}, {}]", self.term(inner), self.term(inner)),
            3 => format!("{{\"k\": {}}}", self.term(inner)),
            4 | 5 => {
                let n_visible = self.variables.len();
                let body = self.body(inner);
                let value = self.term(inner);
                self.variables.truncate(n_visible);
                match self.random.below(3) {
                    0 => format!("[{value} | {body}]"),
                    1 => format!("sort({{{value} | {body}}})"),
                    _ => format!("{{sprintf(\"%v\", [{value}]): 1 | {body}}}"),
                }
            }
            6 => format!(
                "object.get(input.stacks[0], {}, {})",
                self.random
                    .one_of(&["\"id\"", "\"no\"", "[\"meta\", \"a\"]"]),
                self.term(inner)
            ),
            7 => format!(
                "sprintf(\"%v %d\", [{}, {}])",
                self.term(inner),
                self.leaf()
            ),
            8 => format!(
                "{}({})",
                self.random.one_of(&[
                    "lower",
                    "sort",
                    "max",
                    "sum",
                    "type_name",
                    "to_number",
                    "abs"
                ]),
                self.any()
            ),
            9 => format!(
                "split(input.text, {})",
                self.random.one_of(&["\"-\"", "\"\"", "\"e\""])
            ),
            10 => format!("concat(\",\", {})", self.any()),
            11 => format!("-count({})", self.any()),
            12 => format!(
                "sprintf(\"{}\", [{}])",
                self.random.one_of(&["%x", "%b", "%.3X", "%8.2x"]),
                self.any()
            ),
            13 => format!(
                "crypto.hmac.{}({}, \"key\")",
                self.random.one_of(&["md5", "sha1", "sha256", "sha512"]),
                self.any()
            ),
            14..=17 => self.operation(kind),
            18 => format!(
                "({} {} {})",
                self.number(),
                self.arithmetic(),
                self.number()
            ),
            19 => format!(
                "{}([{}, ({} {} {})])",
                self.random
                    .one_of(&["sum", "product", "max", "min", "sort"]),
                self.number(),
                self.number(),
                self.arithmetic(),
                self.number()
            ),
            _ if self.variables.iter().any(|name| name == "s") => self.leaf(),
            _ => format!("{}({})", self.random.one_of(&["f", "g"]), self.term(inner)),
        }
    }

    fn arithmetic(&mut self) -> &'static str {
        self.random.one_of(&["+", "-", "*", "/", "/", "%"])
    }

    fn number(&mut self) -> &'static str {
        self.random.one_of(&[
            "3",
            "7",
            "0.1",
            "1.0",
            "-2.5",
            "1.25",
            "12345678901",
            "1700000000123456789",
            "123456789012345678901234567890",
            "input.n",
            "input.numbers[2]",
            "input.stacks[2].size",
        ])
    }

    /// Returns an operation with sets, or a call of a function of texts.
    fn operation(&mut self, kind: usize) -> String {
        match kind {
            14 => {
                let right = if self.random.below(2) == 0 {
                    self.any()
                } else {
                    self.composite()
                };
                let operator = self.random.one_of(&["|", "&", "-"]);
                format!("({} {operator} {right})", self.composite())
            }
            15 => format!(
                "{}({})",
                self.random
                    .one_of(&["sort", "max", "min", "json.marshal", "count"]),
                self.composite()
            ),
            16 => {
                let patterns = [
                    "`[a-e]*`",
                    "`-`",
                    "`(e)(u)?`",
                    "`{`",
                    "``",
                    "`t-|\\b`",
                    "input.text",
                ];
                let pattern = self.random.one_of(&patterns);
                match self.random.below(4) {
                    0 => format!("regex.split({pattern}, {})", self.any()),
                    1 => format!("regex.replace({}, {pattern}, `<$1${{2}}$$>`)", self.any()),
                    2 => format!("regex.find_n({pattern}, {}, {})", self.any(), self.any()),
                    _ => format!(
                        "regex.find_all_string_submatch_n({pattern}, {}, {})",
                        self.any(),
                        self.random.one_of(&["-1", "0", "2"])
                    ),
                }
            }
            _ => match self.random.below(6) {
                0 => format!(
                    "glob.match({}, {}, {})",
                    self.random.one_of(&[
                        "\"net-*\"",
                        "\"*-*-?\"",
                        "\"{net,app}*\"",
                        "\"[a-n]*\"",
                        "\"**1\""
                    ]),
                    self.random.one_of(&["[]", "null", "[\"-\"]"]),
                    self.any()
                ),
                1 => format!("substring({}, {}, {})", self.any(), self.any(), self.any()),
                2 => format!("strings.count({}, {})", self.any(), self.any()),
                3 => format!("urlquery.encode({})", self.any()),
                4 => format!("indexof_n({}, {})", self.any(), self.any()),
                _ => format!("semver.compare(\"v1.2.3\", {})", self.any()),
            },
        }
    }

    /// Returns something whose type OPA can't know when it checks a policy.
    fn any(&mut self) -> String {
        let anything = [
            "input.n",
            "input.text",
            "input.none",
            "input.absent",
            "input.stacks[0].owner",
            "input.stacks[2].owner",
            "input.by.y.deep",
            "input.numbers",
            "input.stacks[1].labels",
        ];
        if self.variables.iter().any(|name| name == "s") && self.random.below(2) == 0 {
            return "s".to_owned();
        }
        self.random.one_of(&anything).to_owned()
    }

    fn leaf(&mut self) -> String {
        let n_variables = self.variables.len();
        if n_variables > 0 && self.random.below(3) > 0 {
            let name = self.variables[self.random.below(n_variables)].clone();
            let field =
                self.random
                    .one_of(&["", "", "", ".id", ".labels[0]", "[0]", ".owner", ".size"]);
            // OPA knows the types of the others, and refuses fields that they can't have.
            let has_fields = !name.starts_with('t');
            return if has_fields { name + field } else { name };
        }
        let leaves = [
            "1",
            "2.5",
            "1.0",
            "-3",
            "\"a\"",
            "\"prod\"",
            "true",
            "false",
            "null",
            "input.n",
            "input.text",
            "input.none",
            "input.absent",
            "input.stacks[0].owner",
            "input.stacks[2].owner",
            "input.by.y.deep",
            "input.numbers",
            "input.stacks[1].labels",
            "{}",
            "[]",
        ];
        self.random.one_of(&leaves).to_owned()
    }
}
