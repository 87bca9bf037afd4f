//! The function `sprintf`, which is that of Go in OPA, with its flags, widths and complaints.

use std::fmt::Write;

use regorus::Value;

use super::numbers;
use super::written::{quoted, write_value};

/// Returns the text of a format and its arguments; `None` for what is no format.
pub(super) fn sprintf(arguments: &[Value]) -> Option<Value> {
    let (Value::String(format), Value::Array(values)) = (&arguments[0], &arguments[1]) else {
        return None;
    };
    let values: Vec<Argument> = values.iter().map(argument).collect::<Option<_>>()?;
    formatted(format, &values).map(Value::from)
}

/// A value as the formatting sees it: what is neither a number nor a text is written out.
enum Argument {
    Integer(i128),
    Float(f64),
    Text(String),
}

impl Argument {
    fn type_name(&self) -> &'static str {
        match self {
            Argument::Integer(number) if i64::try_from(*number).is_ok() => "int64",
            Argument::Integer(_) => "*big.Int",
            Argument::Float(_) => "float64",
            Argument::Text(_) => "string",
        }
    }

    /// Returns the argument with its type, for a complaint about it.
    fn told(&self) -> Option<String> {
        let value = directive(Spec::default(), 'v', self)?;
        Some(format!("{}={value}", self.type_name()))
    }
}

fn argument(value: &Value) -> Option<Argument> {
    Some(match value {
        Value::String(text) => Argument::Text(text.to_string()),
        Value::Number(_) => {
            let text = numbers::text(value)?;
            match text.parse() {
                Ok(integer) => Argument::Integer(integer),
                Err(_) if !text.contains(['.', 'e', 'E']) => {
                    numbers::fail(format!("`{text}` is too large for `sprintf`"));
                    return None;
                }
                Err(_) => Argument::Float(text.parse().ok()?),
            }
        }
        other => {
            let mut text = String::new();
            write_value(&mut text, other)?;
            Argument::Text(text)
        }
    })
}

/// What stands between `%` and the verb.
#[derive(Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the format"
)]
struct Spec {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// How wide anything may be made, but for one more digit.
const MAX_WIDTH: usize = 1_000_000;

struct Reader<'f> {
    rest: std::iter::Peekable<std::str::Chars<'f>>,
    values: &'f [Argument],
    /// The number of the next argument.
    next: usize,
    /// Whether a format named an argument by its number.
    is_reordered: bool,
    /// Whether such a number was none.
    is_bad_index: bool,
    out: String,
}

fn formatted(format: &str, values: &[Argument]) -> Option<String> {
    let mut reader = Reader {
        rest: format.chars().peekable(),
        values,
        next: 0,
        is_reordered: false,
        is_bad_index: false,
        out: String::new(),
    };
    while let Some(character) = reader.rest.next() {
        if character == '%' {
            reader.directive()?;
        } else {
            reader.out.push(character);
        }
    }
    if !reader.is_reordered && reader.next < values.len() {
        let extra: Option<Vec<String>> = values[reader.next..].iter().map(Argument::told).collect();
        _ = write!(reader.out, "%!(EXTRA {})", extra?.join(", "));
    }
    Some(reader.out)
}

impl Reader<'_> {
    fn directive(&mut self) -> Option<()> {
        let mut spec = Spec::default();
        self.is_bad_index = false;
        let mut after_index = false;
        while let Some(flag) = self.rest.next_if(|it| "+-# 0".contains(*it)) {
            match flag {
                '+' => spec.plus = true,
                '-' => spec.minus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                _ => spec.zero = true,
            }
        }
        after_index |= self.index();
        if self.rest.next_if_eq(&'*').is_some() {
            match self.integer() {
                Some(width) => {
                    spec.minus |= width < 0;
                    spec.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => self.out.push_str("%!(BADWIDTH)"),
            }
            after_index = false;
        } else {
            spec.width = self.number();
            if after_index && spec.width.is_some() {
                self.is_bad_index = true;
            }
        }
        if self.rest.next_if_eq(&'.').is_some() {
            if after_index {
                self.is_bad_index = true;
            }
            after_index = self.index();
            if self.rest.next_if_eq(&'*').is_some() {
                let precision = self.integer();
                spec.precision = precision.and_then(|it| usize::try_from(it).ok());
                if precision.is_none() {
                    self.out.push_str("%!(BADPREC)");
                }
                after_index = false;
            } else {
                spec.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.index();
        }
        let Some(verb) = self.rest.next() else {
            self.out.push_str("%!(NOVERB)");
            return Some(());
        };
        // Go gives `%+v` another meaning, which matters for structures only.
        spec.plus &= verb != 'v';
        if verb == '%' {
            self.out.push('%');
        } else if self.is_bad_index {
            _ = write!(self.out, "%!{verb}(BADINDEX)");
        } else if let Some(value) = self.values.get(self.next) {
            self.next += 1;
            self.out.push_str(&directive(spec, verb, value)?);
        } else {
            _ = write!(self.out, "%!{verb}(MISSING)");
        }
        Some(())
    }

    /// Reads `[1]`, and returns whether there is one.
    fn index(&mut self) -> bool {
        if self.rest.next_if_eq(&'[').is_none() {
            return false;
        }
        self.is_reordered = true;
        let mut after = self.rest.clone();
        let inside: String = after.by_ref().take_while(|it| *it != ']').collect();
        if self.rest.clone().any(|it| it == ']') {
            self.rest = after;
        }
        match inside.parse() {
            Ok(number) if (1..=self.values.len()).contains(&number) => self.next = number - 1,
            _ => self.is_bad_index = true,
        }
        true
    }

    /// Reads a number; `None` if there is none. One that is too large ends the whole format, as in Go.
    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(digit) = self.rest.peek().and_then(|it| it.to_digit(10)) {
            self.rest.next();
            let so_far: usize = number.unwrap_or(0);
            if so_far > MAX_WIDTH {
                self.rest = "".chars().peekable();
                return None;
            }
            number = Some(so_far * 10 + digit as usize);
        }
        number
    }

    /// Takes the next argument, for a width or a precision.
    fn integer(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        match value {
            Argument::Integer(number) => i64::try_from(*number)
                .ok()
                .filter(|number| number.unsigned_abs() <= MAX_WIDTH as u64),
            _ => None,
        }
    }
}

fn directive(spec: Spec, verb: char, value: &Argument) -> Option<String> {
    let shown = match (verb, value) {
        ('T', _) => text(&spec, value.type_name(), 's'),
        (_, Argument::Text(inner)) => text(&spec, inner, verb),
        (_, Argument::Integer(number)) => integer(&spec, *number, verb),
        // No policy wants this.
        (_, Argument::Float(_)) if spec.sharp && "xX".contains(verb) => return None,
        (_, Argument::Float(number)) => float(&spec, *number, verb),
    };
    if shown.is_some() {
        return shown;
    }
    let type_name = value.type_name().trim_start_matches('*');
    let plain = Spec {
        sharp: false,
        ..spec
    };
    let shown = directive(plain, 'v', value)?;
    Some(format!("%!{verb}({type_name}={shown})"))
}

fn text(spec: &Spec, inner: &str, verb: char) -> Option<String> {
    let inner: String = match spec.precision {
        Some(precision) if !"xX".contains(verb) => inner.chars().take(precision).collect(),
        _ => inner.to_owned(),
    };
    Some(match verb {
        'v' if spec.sharp => padded(spec, &quoted(&inner)),
        'v' | 's' => padded(spec, &inner),
        'q' if spec.sharp && !inner.contains('`') => padded(spec, &format!("`{inner}`")),
        'q' => padded(spec, &quoted(&inner)),
        'x' | 'X' => {
            let n_bytes = spec.precision.unwrap_or(inner.len());
            let bytes = inner.bytes().take(n_bytes);
            let digits = bytes.map(|byte| match verb {
                'x' => format!("{byte:02x}"),
                _ => format!("{byte:02X}"),
            });
            let prefix = if spec.sharp { &format!("0{verb}") } else { "" };
            let hex = if spec.space {
                let bytes = digits.map(|byte| format!("{prefix}{byte}"));
                bytes.collect::<Vec<_>>().join(" ")
            } else if n_bytes == 0 || inner.is_empty() {
                String::new()
            } else {
                prefix.to_owned() + &digits.collect::<String>()
            };
            padded(spec, &hex)
        }
        _ => return None,
    })
}

fn padded(spec: &Spec, text: &str) -> String {
    let missing = spec.width.unwrap_or(0).saturating_sub(text.chars().count());
    if spec.minus {
        text.to_owned() + &" ".repeat(missing)
    } else {
        let filler = if spec.zero { "0" } else { " " };
        filler.repeat(missing) + text
    }
}

/// Pads with spaces, even where the format asks for zeros.
fn spaced(spec: &Spec, text: &str) -> String {
    let zero = false;
    padded(&Spec { zero, ..*spec }, text)
}

fn sign(spec: &Spec, is_negative: bool) -> &'static str {
    match (is_negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

fn integer(spec: &Spec, number: i128, verb: char) -> Option<String> {
    let size = number.unsigned_abs();
    let (prefix, mut digits) = match verb {
        'v' | 'd' => ("", size.to_string()),
        'b' => ("0b", format!("{size:b}")),
        'o' => ("0", format!("{size:o}")),
        'O' => ("0o", format!("{size:o}")),
        'x' => ("0x", format!("{size:x}")),
        'X' => ("0X", format!("{size:X}")),
        'c' | 'q' | 'U' => return Some(character(spec, number, verb)),
        _ => return None,
    };
    let sign = sign(spec, number < 0);
    let n_digits = match (spec.precision, spec.width) {
        (Some(0), _) if number == 0 => {
            return Some(spaced(spec, ""));
        }
        (Some(precision), _) => precision,
        (None, Some(width)) if spec.zero && !spec.minus => width.saturating_sub(sign.len()),
        _ => 0,
    };
    digits.insert_str(0, &"0".repeat(n_digits.saturating_sub(digits.len())));
    let prefix = match verb {
        'o' if digits.starts_with('0') => "",
        'O' => prefix,
        _ if spec.sharp => prefix,
        _ => "",
    };
    let whole = format!("{sign}{prefix}{digits}");
    Some(spaced(spec, &whole))
}

fn character(spec: &Spec, number: i128, verb: char) -> String {
    let code = u32::try_from(number).ok();
    if verb == 'U' {
        // A negative number is shown with the digits of 64 bits.
        let code = i64::try_from(number)
            .map_or(number.unsigned_abs(), |it| u128::from(it.cast_unsigned()));
        let code = format!("U+{code:04X}");
        return spaced(spec, &code);
    }
    let character = code
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER);
    if verb == 'c' {
        padded(spec, character.encode_utf8(&mut [0; 4]))
    } else {
        let inner = match character {
            '\'' => "\\'".to_owned(),
            '"' => "\"".to_owned(),
            other => {
                let text = quoted(other.encode_utf8(&mut [0; 4]));
                text[1..text.len() - 1].to_owned()
            }
        };
        padded(spec, &format!("'{inner}'"))
    }
}

fn float(spec: &Spec, number: f64, verb: char) -> Option<String> {
    let size = number.abs();
    let digits = match verb {
        'e' | 'E' => exponential(&format!("{size:.*e}", spec.precision.unwrap_or(6))),
        'f' | 'F' => format!("{size:.*}", spec.precision.unwrap_or(6)),
        'v' | 'g' | 'G' => general(size, spec.precision),
        'b' => {
            let (mantissa, exponent) = binary(size);
            format!("{mantissa}p{exponent:+}")
        }
        'x' | 'X' => hexadecimal(size, spec.precision),
        _ => return None,
    };
    let digits = if "EGX".contains(verb) {
        digits.to_uppercase()
    } else {
        digits
    };
    let sign = sign(spec, number.is_sign_negative());
    let missing = spec
        .width
        .unwrap_or(0)
        .saturating_sub(sign.len() + digits.len());
    Some(if spec.zero && !spec.minus {
        format!("{sign}{}{digits}", "0".repeat(missing))
    } else {
        spaced(spec, &format!("{sign}{digits}"))
    })
}

/// How many bits of the mantissa of a number are written down.
const FRACTION: u32 = 52;

/// Returns a mantissa and a power of two whose product is a number.
fn binary(size: f64) -> (u64, i64) {
    let bits = size.to_bits();
    let fraction = bits & ((1 << FRACTION) - 1);
    let exponent = i64::try_from(bits >> FRACTION & 0x7ff).unwrap_or(0);
    match exponent {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << FRACTION, exponent - 1075),
    }
}

/// Returns 2.5 as `0x1.4p+01`.
fn hexadecimal(size: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = binary(size);
    while mantissa > 0 && mantissa >> FRACTION == 0 {
        (mantissa, exponent) = (mantissa << 1, exponent - 1);
    }
    exponent = if mantissa == 0 {
        0
    } else {
        exponent + i64::from(FRACTION)
    };
    let n_digits = FRACTION as usize / 4;
    if let Some(precision) = precision.filter(|precision| *precision < n_digits) {
        let dropped = 4 * (n_digits - precision);
        let (half, rest) = (1 << (dropped - 1), mantissa & ((1 << dropped) - 1));
        mantissa >>= dropped;
        // Of two equally close ones, the even one.
        mantissa += u64::from(rest > half || rest == half && mantissa & 1 == 1);
        mantissa <<= dropped;
        if mantissa >> (FRACTION + 1) > 0 {
            (mantissa, exponent) = (mantissa >> 1, exponent + 1);
        }
    }
    let fraction = format!("{:013x}", mantissa & ((1 << FRACTION) - 1));
    let fraction = match precision {
        Some(precision) => format!("{fraction:0<precision$}")[..precision].to_owned(),
        None => fraction.trim_end_matches('0').to_owned(),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    let first = mantissa >> FRACTION;
    format!("0x{first}{point}{fraction}p{sign}{:02}", exponent.abs())
}

/// Returns `1.5e7` as `1.5e+07`.
fn exponential(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Returns the shorter of both notations: with an exponent if that is below -4, or not below the precision.
fn general(size: f64, precision: Option<usize>) -> String {
    let scientific = match precision {
        Some(precision) => format!("{size:.*e}", precision.max(1) - 1),
        None => format!("{size:e}"),
    };
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = if precision.is_some() && digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    let n_digits =
        i32::try_from(digits.len() - usize::from(digits.contains('.'))).unwrap_or(i32::MAX);
    let limit = match precision {
        Some(precision) => {
            let precision = i32::try_from(precision).unwrap_or(i32::MAX).max(1);
            if precision > n_digits && n_digits > exponent {
                n_digits
            } else {
                precision
            }
        }
        None => 6,
    };
    if exponent < -4 || exponent >= limit {
        return exponential(&format!("{digits}e{exponent}"));
    }
    let decimals = usize::try_from(n_digits - 1 - exponent).unwrap_or(0);
    format!("{size:.decimals$}")
}
