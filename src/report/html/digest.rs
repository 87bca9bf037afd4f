//! The digests by which the page's policy allows its own script and style, and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// Returns a source expression of a content security policy: `'sha256-…'`.
pub(super) fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn a_source_has_the_digest_in_base64() {
        let abc = "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='";
        assert_eq!(source("abc"), abc);
    }
}
