//! Goes over expressions.

use super::{Skim, are_unique, is_plain};

/// How deeply expressions may be nested here; the parser accepts more.
const MAX_DEPTH: usize = 16;

/// How many operators may follow each other here; the parser accepts more.
const MAX_OPERATORS: usize = 32;

/// What is not recognised is `None`.
impl Skim<'_> {
    pub(super) fn expression(&mut self, in_brackets: bool, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        for _ in 0..MAX_OPERATORS {
            self.operand(depth)?;
            let before = self.at;
            self.gap(in_brackets);
            if self.eats(b"?") {
                self.gap(in_brackets);
                self.expression(in_brackets, depth + 1)?;
                self.gap(in_brackets);
                self.eat(b':')?;
                self.gap(in_brackets);
                return self.expression(in_brackets, depth + 1);
            }
            if !self.operator() {
                self.at = before;
                return Some(());
            }
            self.gap(in_brackets);
        }
        None
    }

    /// Skips a binary operator, if there is one.
    fn operator(&mut self) -> bool {
        let (first, second) = match &self.text[self.at..] {
            [first, second, ..] => (*first, *second),
            _ => return false,
        };
        self.at += match (first, second) {
            (b'/', b'/') => return false, // a comment
            (b'=' | b'!' | b'<' | b'>', b'=') | (b'&', b'&') | (b'|', b'|') => 2,
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>', _) => 1,
            _ => return false,
        };
        true
    }

    fn operand(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.template(depth)?,
            b'0'..=b'9' => return self.number(),
            b'(' => {
                self.at += 1;
                self.blank_lines();
                self.expression(true, depth + 1)?;
                self.blank_lines();
                self.eat(b')')?;
            }
            b'[' => {
                self.at += 1;
                self.blank_lines();
                if !self.for_expression(b']', depth)? {
                    self.list(b']', depth)?;
                }
            }
            b'{' => {
                self.at += 1;
                self.blank_lines();
                if !self.for_expression(b'}', depth)? {
                    self.object(depth)?;
                }
            }
            b'!' | b'-' => {
                self.at += 1;
                self.spaces();
                if depth == MAX_DEPTH {
                    return None;
                }
                return self.operand(depth + 1);
            }
            _ => {
                let word = self.word()?;
                if is_keyword(word) {
                    return None;
                }
                if self.eats(b"(") {
                    self.blank_lines();
                    self.list(b')', depth)?;
                }
            }
        }
        self.steps(depth)
    }

    fn steps(&mut self, depth: usize) -> Option<()> {
        loop {
            match self.peek() {
                Some(b'.') if !self.text[self.at..].starts_with(b"...") => {
                    self.at += 1;
                    if !self.eats(b"*") {
                        self.word()?;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.eats(b"*]") {
                        self.expression(false, depth + 1)?;
                        self.eat(b']')?;
                    }
                }
                _ => return Some(()),
            }
        }
    }

    /// Goes over a number that has few digits and no exponent.
    fn number(&mut self) -> Option<()> {
        self.digits()?;
        if self.eats(b".") {
            self.digits()?;
        }
        let follows = self.peek();
        let ends =
            follows.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"._-[\"".contains(&byte));
        ends.then_some(())
    }

    fn digits(&mut self) -> Option<()> {
        let digits = self.skip(|byte| byte.is_ascii_digit());
        (1..=15).contains(&digits.len()).then_some(())
    }

    /// Goes over a string whose templates are simple interpolations.
    fn template(&mut self, depth: usize) -> Option<()> {
        self.eat(b'"')?;
        loop {
            self.skip(is_plain);
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    self.at += 1;
                    if !b"nrt\"\\".contains(&self.peek()?) {
                        return None;
                    }
                    self.at += 1;
                }
                b'$' if self.eats(b"${") => {
                    self.spaces();
                    self.expression(false, depth + 1)?;
                    self.spaces();
                    self.eat(b'}')?;
                }
                // An escape, or something rare.
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }

    /// Goes over elements, or arguments, up to the closing bracket.
    fn list(&mut self, closing: u8, depth: usize) -> Option<()> {
        loop {
            self.blank_lines();
            if self.peek()? == closing {
                break;
            }
            self.expression(true, depth + 1)?;
            self.blank_lines();
            match self.peek()? {
                b',' => self.at += 1,
                byte if byte == closing => break,
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }

    /// Goes over the entries of an object, which commas or line ends separate, up to the closing brace.
    fn object(&mut self, depth: usize) -> Option<()> {
        let mut keys: Vec<&[u8]> = Vec::new();
        loop {
            self.blank_lines();
            if self.peek()? == b'}' {
                break;
            }
            let key = match self.peek()? {
                b'"' => self.plain_string()?,
                _ => self.word().filter(|word| !is_keyword(word))?,
            };
            keys.push(key);
            self.spaces();
            if !self.eats(b"=") && !self.eats(b":") {
                return None;
            }
            self.spaces();
            self.expression(false, depth + 1)?;
            self.spaces();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => self.end_of_line()?,
            }
        }
        self.at += 1;
        are_unique(&keys).then_some(())
    }

    /// Goes over a `for` after its opening bracket, if there is one.
    fn for_expression(&mut self, closing: u8, depth: usize) -> Option<bool> {
        let start = self.at;
        if self.peek().is_none_or(|byte| byte != b'f') || self.word()? != b"for" {
            self.at = start;
            return Some(false);
        }
        if self.peek()? != b' ' {
            return None;
        }
        self.spaces();
        self.variable()?;
        self.spaces();
        if self.eats(b",") {
            self.spaces();
            self.variable()?;
            self.spaces();
        }
        if self.word()? != b"in" || self.peek()? != b' ' {
            return None;
        }
        self.spaces();
        self.expression(true, depth + 1)?;
        self.blank_lines();
        self.eat(b':')?;
        self.blank_lines();
        self.expression(true, depth + 1)?;
        self.blank_lines();
        if closing == b'}' {
            if !self.eats(b"=>") {
                return None;
            }
            self.blank_lines();
            self.expression(true, depth + 1)?;
            self.blank_lines();
        }
        if self.peek()? == b'i' {
            if self.word()? != b"if" || self.peek()? != b' ' {
                return None;
            }
            self.spaces();
            self.expression(true, depth + 1)?;
            self.blank_lines();
        }
        self.eat(closing)?;
        Some(true)
    }

    fn variable(&mut self) -> Option<()> {
        let word = self.word()?;
        (!is_keyword(word)).then_some(())
    }
}

/// Returns whether a word is reserved.
fn is_keyword(word: &[u8]) -> bool {
    matches!(
        word,
        b"else" | b"endfor" | b"endif" | b"for" | b"if" | b"in"
    )
}
