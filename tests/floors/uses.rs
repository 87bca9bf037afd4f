//! Which paths a Rust file names: in its imports, and in its code where a path begins with `crate`,
//! `self`, `super`, the name of the library or that of a module below.
//!
//! Nothing here knows which files there are, or what a path leads to.

use crate::tokens::{Token, tokens};

/// A path that a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    /// Its segments. Within a module inside the file, `super` is already resolved.
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    /// The name that an import gives to what the path leads to.
    pub(crate) imported_as: Option<String>,
}

/// What a file names, and which of the modules that it declares are only there for tests.
#[derive(Debug, Default)]
pub(crate) struct FileUses {
    pub(crate) uses: Vec<Use>,
    pub(crate) test_modules: Vec<String>,
}

/// Reads a file. What stands below `#[cfg(test)]` does not count.
pub(crate) fn read(source: &str) -> FileUses {
    let mut reader = Reader {
        tokens: tokens(source),
        at: 0,
        depth: 0,
        inline: Vec::new(),
        found: FileUses::default(),
    };
    reader.file();
    reader.found
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    /// How many braces are open.
    depth: usize,
    /// For each module inside the file that is open, the braces that were open before it.
    inline: Vec<usize>,
    found: FileUses,
}

impl Reader {
    fn text(&self, ahead: usize) -> &str {
        self.tokens
            .get(self.at + ahead)
            .map_or("", |token| &token.text)
    }

    fn is_next(&self, texts: &[&str]) -> bool {
        let mut texts = texts.iter().enumerate();
        texts.all(|(ahead, text)| self.text(ahead) == *text)
    }

    fn file(&mut self) {
        while self.at < self.tokens.len() {
            if self.is_next(&["#", "["]) {
                self.attribute();
            } else if self.is_next(&["pub", "("]) {
                self.at += 1;
                self.skip_group();
            } else if self.text(0) == "use" && self.text(1) != "<" {
                self.at += 1;
                self.import(&[]);
            } else if self.text(0) == "mod" && self.text(2) == "{" {
                self.inline.push(self.depth);
                self.depth += 1;
                self.at += 3;
            } else if self.text(1) == "::" && is_word(self.text(0)) {
                self.path();
            } else {
                match self.text(0) {
                    "{" => self.depth += 1,
                    "}" => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.inline.last() == Some(&self.depth) {
                            self.inline.pop();
                        }
                    }
                    _ => {}
                }
                self.at += 1;
            }
        }
    }

    /// Skips a group of brackets that begins here.
    fn skip_group(&mut self) {
        let mut open = 0_usize;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
    }

    /// Steps into an attribute, or skips it with its item where the item is there for tests.
    fn attribute(&mut self) {
        let begin = self.at;
        self.at += 1;
        self.skip_group();
        let attribute = &self.tokens[begin..self.at];
        let says = |word: &str| attribute.iter().any(|token| token.text == word);
        if !(says("cfg") && says("test") && !says("not")) {
            self.at = begin + 2;
            return;
        }
        while self.is_next(&["#", "["]) {
            self.at += 1;
            self.skip_group();
        }
        while self.at < self.tokens.len() {
            match self.text(0) {
                "mod" if self.text(2) == ";" => {
                    let name = self.text(1).to_owned();
                    self.found.test_modules.push(name);
                    self.at += 1;
                }
                ";" => {
                    self.at += 1;
                    break;
                }
                "{" => {
                    self.skip_group();
                    break;
                }
                "(" | "[" => self.skip_group(),
                _ => self.at += 1,
            }
        }
    }

    /// Reads what `use` imports below a path, up to the comma, the brace or the semicolon after it.
    fn import(&mut self, above: &[String]) {
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        let mut path = above.to_vec();
        loop {
            match self.text(0) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(0), "}" | "") {
                        self.import(&path);
                        if self.text(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "::" => self.at += 1,
                "as" | "," | "}" | ";" | "" => break,
                segment => {
                    path.push(segment.to_owned());
                    self.at += 1;
                }
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned();
        if self.text(0) == "as" {
            name = Some(self.text(1).to_owned());
            self.at += 2;
        }
        self.found(path, line, name);
    }

    /// Reads a path in the code.
    fn path(&mut self) {
        let line = self.tokens[self.at].line;
        let mut path = vec![self.text(0).to_owned()];
        while self.text(1) == "::" && is_word(self.text(2)) {
            self.at += 2;
            path.push(self.text(0).to_owned());
        }
        self.at += 1;
        self.found(path, line, None);
    }

    fn found(&mut self, mut path: Vec<String>, line: usize, imported_as: Option<String>) {
        // A module inside of the file is no module of its own.
        let n_super = path.iter().take_while(|segment| *segment == "super");
        let n_inside = n_super.count().min(self.inline.len());
        path.drain(..n_inside);
        if n_inside > 0 && path.first().is_none_or(|first| first != "super") {
            path.insert(0, "self".to_owned());
        }
        self.found.uses.push(Use {
            path,
            line,
            imported_as,
        });
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::read;

    /// The paths of a file, each with its line.
    fn paths(source: &str) -> Vec<String> {
        let uses = read(source).uses;
        let show = |found: &super::Use| format!("{} {}", found.line, found.path.join("::"));
        uses.iter().map(show).collect()
    }

    #[test]
    fn imports_are_taken_apart() {
        let source =
            "use crate::a;\npub(crate) use self::{b::C, d::{self, E as F}};\nuse super::g::*;";
        let expected = [
            "1 crate::a",
            "2 self::b::C",
            "2 self::d",
            "2 self::d::E",
            "3 super::g::*",
        ];
        assert_eq!(paths(source), expected);
        let names: Vec<_> = read(source)
            .uses
            .into_iter()
            .filter_map(|found| found.imported_as)
            .collect();
        assert_eq!(names, ["a", "C", "d", "F", "*"]);
    }

    #[test]
    fn paths_in_code_are_seen() {
        let source = "pub(in crate::a) fn f(b: crate::b::B<super::c::C>) {\n    d::e();\n}";
        assert_eq!(paths(source), ["1 crate::b::B", "1 super::c::C", "2 d::e"]);
        let source = "fn f<'a>() -> impl Iterator + use<'a> { crate::a() }";
        assert_eq!(paths(source), ["1 crate::a"]);
    }

    #[test]
    fn an_attribute_names_what_it_names() {
        assert_eq!(
            paths("#[error(\"crate::a\", crate::b::f(.0))]\nstruct S;"),
            ["1 crate::b::f"]
        );
    }

    #[test]
    fn tests_do_not_count() {
        let source = "\
            #[cfg(test)]\nuse crate::a::A;\n\
            #[cfg(all(test, unix))]\nmod tests {\n    use crate::b;\n}\n\
            #[cfg(test)]\n#[expect(unused)]\nfn f(x: [u8; 2]) -> crate::c::C {}\n\
            #[cfg(test)]\nmod more;\n\
            #[cfg(not(test))]\nuse crate::d;";
        assert_eq!(paths(source), ["13 crate::d"]);
        assert_eq!(read(source).test_modules, ["more"]);
    }

    #[test]
    fn a_module_in_the_file_is_part_of_the_file() {
        let source = "mod a {\n    use super::b;\n    mod c { use super::super::super::d; }\n}\nuse super::e;";
        assert_eq!(paths(source), ["2 self::b", "3 super::d", "5 super::e"]);
    }
}
