//! Hashes of text, and identifiers that differ each time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bcrypt::Version;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use uuid::Uuid;

use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::ascii::hex;
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the SHA-256 hash of a string as Base64.
    base64sha256(str: string) -> string
        = Eager(|arguments| Ok(Value::string(STANDARD.encode(digest::<Sha256>(arguments))))),
        r#"base64sha256("hello world")"# => r#""uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=""#;
    /// Returns the SHA-512 hash of a string as Base64.
    base64sha512(str: string) -> string
        = Eager(|arguments| Ok(Value::string(STANDARD.encode(digest::<Sha512>(arguments))))),
        r#"base64sha512("hello world")"#
            => r#""MJ7MSJwS1utMxA9QyQLytNDtd+5RGnx6m808qG1M2G+YndNbxf9JlnDaNCVbRbDP2DDoH2Bdz33FVC6TrpzXbw==""#;
    /// Returns the bcrypt hash of a password, with a different salt each time. The default cost is
    /// 10.
    bcrypt(str: string, ..cost: number) -> string = Eager(hash_password),
        r#"bcrypt("secret", 4) == bcrypt("secret", 4)"# => "false";
    /// Returns the MD5 hash of a string in hexadecimal.
    md5(str: string) -> string = Eager(|arguments| Ok(digest_in_hex::<Md5>(arguments))),
        r#"md5("hello world")"# => r#""5eb63bbbe01eeed093cb22bb8f5acdc3""#;
    /// Decrypts a string with a private RSA key.
    rsadecrypt(ciphertext: string, privatekey: string) -> string
        = Refused("needs a private key, which does not belong in configuration"),
        r#"rsadecrypt("", "")"# => "";
    /// Returns the SHA-1 hash of a string in hexadecimal.
    sha1(str: string) -> string = Eager(|arguments| Ok(digest_in_hex::<Sha1>(arguments))),
        r#"sha1("hello world")"# => r#""2aae6c35c94fcfb415dbe95f408b9ce91ee846ed""#;
    /// Returns the SHA-256 hash of a string in hexadecimal.
    sha256(str: string) -> string
        = Eager(|arguments| Ok(digest_in_hex::<Sha256>(arguments))),
        r#"sha256("hello world")"#
            => r#""b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9""#;
    /// Returns the SHA-512 hash of a string in hexadecimal.
    sha512(str: string) -> string
        = Eager(|arguments| Ok(digest_in_hex::<Sha512>(arguments))),
        r#"sha512("")"#
            => r#""cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e""#;
    /// Returns a random UUID, a different one each time.
    uuid() -> string = Eager(random_uuid),
        "uuid() == uuid()" => "false";
    /// Returns the UUID of a name. The namespace is `dns`, `url`, `oid`, `x500` or a UUID.
    uuidv5(namespace: string, name: string) -> string = Eager(named_uuid),
        r#"uuidv5("dns", "www.terraform.io")"# => r#""a5008fae-b28c-5ba5-96cd-82b4c53552d6""#;
};

fn digest<D: Digest>(arguments: &Arguments) -> Vec<u8> {
    D::digest(arguments.text(0).as_bytes()).to_vec()
}

fn digest_in_hex<D: Digest>(arguments: &Arguments) -> Value {
    Value::string(hex(&digest::<D>(arguments)))
}

fn random_uuid(arguments: &Arguments) -> Result<Value, FunctionError> {
    let uuid = if arguments.is_fixed()? {
        Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0000)
    } else {
        Uuid::new_v4()
    };
    Ok(Value::string(uuid.to_string()))
}

fn named_uuid(arguments: &Arguments) -> Result<Value, FunctionError> {
    let namespace = match &**arguments.text(0) {
        "dns" => Uuid::NAMESPACE_DNS,
        "url" => Uuid::NAMESPACE_URL,
        "oid" => Uuid::NAMESPACE_OID,
        "x500" => Uuid::NAMESPACE_X500,
        text => Uuid::parse_str(text)
            .map_err(|_| arguments.unfit(0, "`dns`, `url`, `oid`, `x500` or a UUID is needed"))?,
    };
    let uuid = Uuid::new_v5(&namespace, arguments.text(1).as_bytes());
    Ok(Value::string(uuid.to_string()))
}

/// The highest cost that `bcrypt` accepts. Each step doubles the time; at this cost, it is about a
/// quarter of a second.
const MAX_COST: u32 = 12;

fn hash_password(arguments: &Arguments) -> Result<Value, FunctionError> {
    let is_fixed = arguments.is_fixed()?;
    let cost = match arguments.len() {
        1 => 10,
        2 => arguments.integer(1)?,
        _ => {
            let problem = "one argument too many; there is only one cost".to_owned();
            return Err(FunctionError::Argument(2, problem));
        }
    };
    let cost = match u32::try_from(cost) {
        Ok(cost) if cost > MAX_COST => None,
        // As Go does with a cost that is too low.
        Ok(cost) if cost >= 4 => Some(cost),
        Err(_) if cost > 0 => None,
        _ => Some(10),
    };
    let Some(cost) = cost else {
        let needed =
            format!("a cost of at most {MAX_COST} is needed, since each step doubles the time");
        return Err(arguments.unfit(1, &needed));
    };
    let password = arguments.text(0);
    if password.len() > 72 {
        let problem = format!("this has {} bytes; bcrypt takes at most 72", password.len());
        return Err(FunctionError::Argument(0, problem));
    }
    // This keeps one expression from hashing for minutes.
    arguments.spend(100 << cost)?;
    let hash = if is_fixed {
        bcrypt::hash_with_salt(password.as_bytes(), cost, [0; 16])
    } else {
        bcrypt::hash_with_result(password.as_bytes(), cost)
    };
    match hash {
        Ok(hash) => Ok(Value::string(hash.format_for_version(Version::TwoA))),
        Err(error) => Err(FunctionError::Call(format!("hashing fails: {error}"))),
    }
}
