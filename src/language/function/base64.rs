//! Base64 as Go reads it.

use ::base64::Engine as _;
use ::base64::alphabet;
use ::base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Base64 as Go reads it: with padding, whatever bits are left over.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes Base64, which may be broken into lines.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text.replace(['\r', '\n'], "")).ok()
}
