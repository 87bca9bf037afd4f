//! The fractions that are written in a policy.

use regorus::unstable::{Expr, Module};

use super::checks::at;
use super::functions::numbers;
use super::walk::{self, Walker};
use crate::policy::Problem;

/// Returns the texts of all fractions in a module. Fails if one has too many digits.
pub(super) fn read(module: &Module) -> Result<Vec<String>, Problem> {
    numbers::forget();
    let mut fractions = Fractions(Ok(Vec::new()));
    fractions.module(module);
    fractions.0
}

struct Fractions(Result<Vec<String>, Problem>);

impl<'m> Walker<'m> for Fractions {
    fn expression(&mut self, expression: &'m Expr) {
        if let Expr::Number { span, .. } = expression
            && span.text().contains('.')
            && let Ok(found) = &mut self.0
        {
            found.push(span.text().to_owned());
            let checked = numbers::check(span.text());
            if let Err(message) = checked {
                self.0 = Err(at(span, message));
            }
        }
        walk::expression(self, expression);
    }
}
