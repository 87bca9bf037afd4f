//! Numbers as OPA has them: decimal texts, with which it computes in 64 binary digits.
//!
//! The interpreter has floats of 53 binary digits, and no text. So the texts of fractions are remembered by their
//! floats. Where two numbers would have the same float, or the text of one is uncertain, the evaluation fails.

use std::cell::RefCell;
use std::collections::HashMap;
use std::str::FromStr;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, BigUint, Sign};
use regorus::Value;

thread_local! {
    static SPELLED: RefCell<Spelled> = RefCell::default();
}

#[derive(Default)]
struct Spelled {
    /// The texts of floats, by their bits, and another text of the same number, if it has one.
    texts: HashMap<u64, (String, Option<String>)>,
    /// Why the evaluation has no answer.
    problem: Option<String>,
}

impl Spelled {
    /// Records the text of a number. Fails if it has too many digits, or cannot be distinguished from a known number.
    fn remember(&mut self, text: &str) -> Result<f64, String> {
        let (float, exact) = parsed(text).ok_or_else(|| format!("`{text}` is no number"))?;
        if float.fract() == 0.0 && BigDecimal::from_str(&float.to_string()).as_ref() != Ok(&exact) {
            return Err(format!("`{text}` has too many digits"));
        }
        let known = self.texts.entry(float.to_bits());
        let (first, other) = known.or_insert_with(|| (text.to_owned(), None));
        if first != text {
            if parsed(first).is_none_or(|(_, first)| first != exact) {
                return Err(format!(
                    "`{first}` and `{text}` have too many digits to tell them apart"
                ));
            }
            *other = Some(text.to_owned());
        }
        Ok(float)
    }
}

fn parsed(text: &str) -> Option<(f64, BigDecimal)> {
    let float: f64 = text.parse().ok()?;
    let exact = BigDecimal::from_str(text).ok()?;
    float.is_finite().then_some((float, exact))
}

/// Forgets all texts.
pub(in crate::policy::rego) fn forget() {
    SPELLED.take();
}

/// Remembers the texts of the literals of a policy.
pub(in crate::policy::rego) fn know(literals: &[String]) {
    for text in literals {
        remember(text);
    }
}

/// Remembers the text of a literal, or fails like [`Spelled::remember`].
pub(in crate::policy::rego) fn check(text: &str) -> Result<(), String> {
    SPELLED.with_borrow_mut(|spelled| spelled.remember(text).map(drop))
}

/// Returns why numbers made the evaluation fail, if they did.
pub(in crate::policy::rego) fn problem() -> Option<String> {
    SPELLED.with_borrow_mut(|spelled| spelled.problem.take())
}

fn remember(text: &str) -> Option<f64> {
    let remembered = SPELLED.with_borrow_mut(|spelled| spelled.remember(text));
    remembered.map_err(fail).ok()
}

/// Makes the evaluation fail.
pub(super) fn fail(message: String) {
    SPELLED.with_borrow_mut(|spelled| _ = spelled.problem.get_or_insert(message));
}

/// Remembers the numbers in a JSON text.
pub(in crate::policy::rego) fn read_json(text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(|it: char| it == '"' || it == '-' || it.is_ascii_digit()) {
        rest = &rest[at..];
        if let Some(inside) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = inside.find(|it| {
                let is_end = it == '"' && !is_escaped;
                is_escaped = it == '\\' && !is_escaped;
                is_end
            });
            rest = end.map_or("", |end| &inside[end + 1..]);
            continue;
        }
        let end = rest.find(|it: char| !it.is_ascii_digit() && !"+-.eE".contains(it));
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        if number.parse::<u64>().is_err() && number.parse::<i64>().is_err() {
            remember(number);
        }
        rest = after;
    }
}

/// Returns the value of the text of a number.
pub(super) fn value(text: &str) -> Option<Value> {
    if text != "-0" && !text.contains(['.', 'e', 'E']) {
        return Value::from_numeric_string(text).ok();
    }
    Some(remember(text)?.into())
}

/// Returns the text of a number that becomes part of another text.
pub(super) fn written(value: &Value) -> Option<String> {
    let (text, other) = texts(value)?;
    if let Some(other) = other {
        fail(format!(
            "`{text}` and `{other}` are the same number, and become text: write both in the same way"
        ));
        return None;
    }
    Some(text)
}

/// Returns a text of a number.
pub(super) fn text(value: &Value) -> Option<String> {
    texts(value).map(|(text, _)| text)
}

fn texts(value: &Value) -> Option<(String, Option<String>)> {
    let Value::Number(number) = value else {
        return None;
    };
    // Only floats have a decimal point.
    let is_float = number.format_decimal_with_width(1).contains('.');
    if !is_float {
        return Some((number.format_decimal(), None));
    }
    let float = number.as_f64()?;
    let known = SPELLED.with_borrow(|spelled| spelled.texts.get(&float.to_bits()).cloned());
    Some(match known {
        Some(known) => known,
        None if float.fract() == 0.0 => (format!("{float}.0"), None),
        None => (float.to_string(), None),
    })
}

/// Returns the value of a text that is a whole number, as `1.0` is.
fn whole(text: &str) -> Option<BigInt> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number = BigDecimal::from_str(text).ok()?;
    let is_whole = number.is_integer();
    is_whole.then(|| number.with_scale(0).into_bigint_and_scale().0)
}

/// Returns a whole number with which OPA computes as with one of a machine.
fn small(text: &str) -> Option<i64> {
    let text = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|it| it == b'0') => whole,
        _ => text,
    };
    let number: i32 = text.parse().ok()?;
    Some(number.into())
}

/// Returns the result of `+`, `-`, `*`, `/` or `%`; `None` if it is undefined.
pub(super) fn computed(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    if let (Value::Number(left), Value::Number(right)) = (left, right)
        && let (Some(left), Some(right)) = (left.as_i64(), right.as_i64())
    {
        let result = match operator {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            _ => None,
        };
        if let Some(result) = result {
            return Some(result.into());
        }
    }
    let (left, right) = (text(left)?, text(right)?);
    if operator == "/" {
        if let (Some(left), Some(right)) = (small(&left), small(&right)) {
            if right == 0 {
                return None;
            }
            if left != 0 && left % right == 0 {
                return Some((left / right).into());
            }
        }
    } else if let (Some(left), Some(right)) = (whole(&left), whole(&right)) {
        let result = match operator {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "%" if right.sign() != Sign::NoSign => left % right,
            _ => return None,
        };
        return value(&result.to_string());
    }
    let (left, right) = (Float::read(&left)?, Float::read(&right)?);
    let result = match operator {
        "+" => left.plus(&right),
        "-" => left.plus(&right.negated()),
        "*" => left.times(&right, PRECISION),
        "/" if right.mantissa != BigUint::ZERO => left.over(&right),
        _ => return None,
    };
    result.value(PRECISION)
}

/// Returns the sum of numbers.
pub(super) fn sum(numbers: &[&Value]) -> Option<Value> {
    let first = Value::from(0_u64);
    let texts: Vec<String> = numbers.iter().map(|it| text(it)).collect::<Option<_>>()?;
    if texts.iter().all(|it| whole(it).is_some()) {
        let mut numbers = numbers.iter();
        return numbers.try_fold(first, |sum, number| computed("+", &sum, number));
    }
    let mut numbers = texts.iter().map(|it| Float::read(it));
    let sum = numbers.try_fold(Float::read("0")?, |sum, it| Some(sum.plus(&it?)))?;
    sum.value(PRECISION)
}

/// Returns the product of numbers. That of fractions has fewer digits than a single multiplication.
pub(super) fn product(numbers: &[&Value]) -> Option<Value> {
    const FEWER: u64 = 53;
    let texts: Vec<String> = numbers.iter().map(|it| text(it)).collect::<Option<_>>()?;
    if texts.iter().all(|it| whole(it).is_some()) {
        let mut numbers = numbers.iter();
        return numbers.try_fold(Value::from(1_u64), |product, it| {
            computed("*", &product, it)
        });
    }
    let mut numbers = texts.iter().map(|it| Float::read(it));
    let product = numbers.try_fold(Float::read("1")?, |product, it| {
        Some(product.times(&it?, FEWER))
    })?;
    product.value(FEWER)
}

pub(super) fn abs(arguments: &[Value]) -> Option<Value> {
    let text = text(&arguments[0])?;
    match small(&text) {
        Some(number) => Some(number.abs().into()),
        None => Float {
            is_negative: false,
            ..Float::read(&text)?
        }
        .value(PRECISION),
    }
}

/// The function `ceil`. Like OPA, it treats numbers between -1 and 0 as positive.
pub(super) fn ceil(arguments: &[Value]) -> Option<Value> {
    rounded(arguments, |number| match number.trunc() {
        whole if whole < 0.0 => whole,
        whole => whole.abs() + 1.0,
    })
}

/// The function `floor`. Like OPA, it treats numbers between -1 and 0 as positive.
pub(super) fn floor(arguments: &[Value]) -> Option<Value> {
    rounded(arguments, |number| match number.trunc() {
        whole if whole < 0.0 => whole - 1.0,
        whole => whole.abs(),
    })
}

pub(super) fn round(arguments: &[Value]) -> Option<Value> {
    // There is no negative zero.
    rounded(arguments, |number| number.round() + 0.0)
}

fn rounded(arguments: &[Value], round: fn(f64) -> f64) -> Option<Value> {
    let text = text(&arguments[0])?;
    let number = match whole(&text) {
        Some(number) => number.to_string(),
        None => round(text.parse().ok()?).to_string(),
    };
    value(&number)
}

/// How many binary digits OPA computes with.
const PRECISION: u64 = 64;

/// A number: a mantissa of at most [`PRECISION`] bits, times a power of two.
struct Float {
    is_negative: bool,
    mantissa: BigUint,
    exponent: i64,
}

impl Float {
    fn read(text: &str) -> Option<Self> {
        let (digits, scale) = BigDecimal::from_str(text).ok()?.into_bigint_and_scale();
        let (sign, digits) = digits.into_parts();
        let power = BigUint::from(10_u8).pow(u32::try_from(scale.unsigned_abs()).ok()?);
        let one = BigUint::from(1_u8);
        let quotient = if scale > 0 {
            (digits, power)
        } else {
            (digits * power, one)
        };
        let is_negative = sign == Sign::Minus || text.starts_with('-');
        Some(Float::quotient(is_negative, quotient, 0, PRECISION))
    }

    /// Returns the nearest number to a quotient, times a power of two.
    fn quotient(
        is_negative: bool,
        (above, below): (BigUint, BigUint),
        exponent: i64,
        precision: u64,
    ) -> Self {
        let bits = |number: &BigUint| i64::try_from(number.bits()).unwrap_or(i64::MAX);
        let wanted = i64::try_from(precision).unwrap_or(i64::MAX);
        let shift = wanted + 1 - (bits(&above) - bits(&below));
        let size = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
        let (above, below) = if shift > 0 {
            (above << size, below)
        } else {
            (above, below << size)
        };
        let (mut mantissa, mut exponent) = (&above / &below, exponent - shift);
        let mut is_exact = &mantissa * &below == above;
        // The last one or two digits decide how it is rounded.
        while mantissa.bits() > precision + 1 {
            is_exact &= !mantissa.bit(0);
            (mantissa, exponent) = (mantissa >> 1_u8, exponent + 1);
        }
        if mantissa.bits() > precision {
            let is_up = mantissa.bit(0) && (!is_exact || mantissa.bit(1));
            (mantissa, exponent) = (mantissa >> 1_u8, exponent + 1);
            mantissa += u8::from(is_up);
        }
        if mantissa.bits() > precision {
            (mantissa, exponent) = (mantissa >> 1_u8, exponent + 1);
        }
        Float {
            is_negative,
            mantissa,
            exponent,
        }
    }

    fn negated(self) -> Self {
        let is_negative = !self.is_negative;
        Float {
            is_negative,
            ..self
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let aligned = |it: &Float| {
            let shift = usize::try_from(it.exponent - exponent).unwrap_or(0);
            let sign = if it.is_negative {
                Sign::Minus
            } else {
                Sign::Plus
            };
            BigInt::from_biguint(sign, &it.mantissa << shift)
        };
        let (sign, sum) = (aligned(self) + aligned(other)).into_parts();
        let quotient = (sum, BigUint::from(1_u8));
        Float::quotient(sign == Sign::Minus, quotient, exponent, PRECISION)
    }

    fn times(&self, other: &Self, precision: u64) -> Self {
        let product = (&self.mantissa * &other.mantissa, BigUint::from(1_u8));
        let is_negative = self.is_negative != other.is_negative;
        let exponent = self.exponent + other.exponent;
        Float::quotient(is_negative, product, exponent, precision)
    }

    fn over(&self, other: &Self) -> Self {
        let quotient = (self.mantissa.clone(), other.mantissa.clone());
        let is_negative = self.is_negative != other.is_negative;
        let exponent = self.exponent - other.exponent;
        Float::quotient(is_negative, quotient, exponent, PRECISION)
    }

    fn value(&self, precision: u64) -> Option<Value> {
        value(&self.text(precision))
    }

    /// Returns the shortest text of this number; that of a whole number has no exponent.
    fn text(&self, precision: u64) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        if self.mantissa == BigUint::ZERO {
            return format!("{sign}0");
        }
        let all = Digits::new(&self.mantissa, self.exponent);
        let is_whole = all.digits.len() <= usize::try_from(all.point).unwrap_or(0);
        let Digits { digits, point } = self.shortest(all, precision);
        let digits = String::from_utf8_lossy(&digits);
        let n_digits = digits.len();
        if is_whole {
            let zeros = usize::try_from(point).unwrap_or(0).saturating_sub(n_digits);
            return format!("{sign}{digits}{}", "0".repeat(zeros));
        }
        let (first, rest) = digits.split_at(1);
        let power = point - 1;
        match usize::try_from(point) {
            _ if !(-4..6).contains(&power) => {
                let separator = if rest.is_empty() { "" } else { "." };
                let direction = if power < 0 { '-' } else { '+' };
                format!(
                    "{sign}{first}{separator}{rest}e{direction}{:02}",
                    power.abs()
                )
            }
            Ok(point) if point >= n_digits => {
                format!("{sign}{digits}{}", "0".repeat(point - n_digits))
            }
            Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => {
                let zeros = usize::try_from(-point).unwrap_or(0);
                format!("{sign}0.{}{digits}", "0".repeat(zeros))
            }
        }
    }

    /// Returns the fewest digits that tell this number from its neighbours.
    fn shortest(&self, all: Digits, precision: u64) -> Digits {
        let shift = precision + 1 - self.mantissa.bits();
        let doubled = &self.mantissa << shift;
        let exponent = self.exponent - i64::try_from(shift).unwrap_or(0);
        let lower = Digits::new(&(&doubled - 1_u8), exponent);
        let upper = Digits::new(&(&doubled + 1_u8), exponent);
        let is_even = !doubled.bit(1);
        for (index, digit) in all.digits.iter().enumerate() {
            let (below, above) = (lower.at(index), upper.at(index));
            let may_fall = below != *digit || is_even && index + 1 == lower.digits.len();
            let may_rise =
                *digit != above && (is_even || digit + 1 < above || index + 1 < upper.digits.len());
            let n_digits = index + 1;
            let is_nearer_above = match all.digits.get(n_digits..) {
                // Of two equally near ones, the even one.
                Some([b'5']) => digit % 2 == 1,
                Some([next, ..]) => *next >= b'5',
                _ => false,
            };
            match (may_fall, may_rise) {
                (false, false) => {}
                (true, rise) if !rise || !is_nearer_above => return all.cut(n_digits),
                _ => return all.raised(n_digits),
            }
        }
        all
    }
}

/// Decimal digits, without zeros at their end, and how many of them are before the point.
struct Digits {
    digits: Vec<u8>,
    point: i64,
}

impl Digits {
    fn new(mantissa: &BigUint, exponent: i64) -> Self {
        let size = u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX);
        let (whole, n_decimals) = if exponent >= 0 {
            (mantissa << size, 0)
        } else {
            (mantissa * BigUint::from(5_u8).pow(size), i64::from(size))
        };
        let digits = whole.to_string().into_bytes();
        let point = i64::try_from(digits.len()).unwrap_or(0) - n_decimals;
        let n_digits = digits.len();
        Digits { digits, point }.cut(n_digits)
    }

    fn at(&self, index: usize) -> u8 {
        self.digits.get(index).copied().unwrap_or(b'0')
    }

    fn cut(mut self, n_digits: usize) -> Self {
        self.digits.truncate(n_digits);
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
        }
        self
    }

    fn raised(mut self, n_digits: usize) -> Self {
        self.digits.truncate(n_digits);
        while self.digits.last() == Some(&b'9') {
            self.digits.pop();
        }
        if let Some(last) = self.digits.last_mut() {
            *last += 1;
        } else {
            self.digits.push(b'1');
            self.point += 1;
        }
        self
    }
}
