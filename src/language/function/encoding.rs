//! Text in other forms: Base64, URLs, other character sets, gzip.

use super::Function;

pub(super) static FUNCTIONS: &[Function] = &[];
