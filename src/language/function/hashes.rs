//! Hashes of text, and identifiers that differ each time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bcrypt::Version;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use uuid::Uuid;

use super::arguments::{Arguments, FunctionError};
use super::{Body, Function, Kind, Parameter};
use crate::language::value::Value;

const STR: Parameter = Parameter::new("str", Kind::String);

/// A function of one string.
const fn of_text(
    name: &'static str,
    description: &'static str,
    example: (&'static str, &'static str),
    body: fn(&Arguments) -> Result<Value, FunctionError>,
) -> Function {
    Function {
        name,
        parameters: &[STR],
        variadic: None,
        returns: Kind::String,
        description,
        example,
        body: Body::Eager(body),
    }
}

pub(super) static FUNCTIONS: &[Function] = &[
    of_text(
        "base64sha256",
        "Returns the SHA-256 hash of a string as Base64.",
        (
            "base64sha256(\"hello world\")",
            "\"uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=\"",
        ),
        |arguments| Ok(Value::string(STANDARD.encode(digest::<Sha256>(arguments)))),
    ),
    of_text(
        "base64sha512",
        "Returns the SHA-512 hash of a string as Base64.",
        (
            "base64sha512(\"hello world\")",
            "\"MJ7MSJwS1utMxA9QyQLytNDtd+5RGnx6m808qG1M2G+YndNbxf9JlnDaNCVbRbDP2DDoH2Bdz33FVC6TrpzXbw==\"",
        ),
        |arguments| Ok(Value::string(STANDARD.encode(digest::<Sha512>(arguments)))),
    ),
    Function {
        name: "bcrypt",
        parameters: &[STR],
        variadic: Some(Parameter::new("cost", Kind::Number)),
        returns: Kind::String,
        description: "Returns the bcrypt hash of a password, with a different salt each time. The \
                      default cost is 10.",
        example: ("bcrypt(\"secret\", 4) == bcrypt(\"secret\", 4)", "false"),
        body: Body::Eager(hash_password),
    },
    of_text(
        "md5",
        "Returns the MD5 hash of a string in hexadecimal.",
        (
            "md5(\"hello world\")",
            "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"",
        ),
        |arguments| Ok(hexadecimal(&digest::<Md5>(arguments))),
    ),
    Function {
        name: "rsadecrypt",
        parameters: &[
            Parameter::new("ciphertext", Kind::String),
            Parameter::new("privatekey", Kind::String),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Decrypts a string with a private RSA key.",
        example: ("rsadecrypt(\"\", \"\")", ""),
        body: Body::Refused("needs a private key, which does not belong in configuration"),
    },
    of_text(
        "sha1",
        "Returns the SHA-1 hash of a string in hexadecimal.",
        (
            "sha1(\"hello world\")",
            "\"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed\"",
        ),
        |arguments| Ok(hexadecimal(&digest::<Sha1>(arguments))),
    ),
    of_text(
        "sha256",
        "Returns the SHA-256 hash of a string in hexadecimal.",
        (
            "sha256(\"hello world\")",
            "\"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9\"",
        ),
        |arguments| Ok(hexadecimal(&digest::<Sha256>(arguments))),
    ),
    of_text(
        "sha512",
        "Returns the SHA-512 hash of a string in hexadecimal.",
        (
            "sha512(\"\")",
            "\"cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e\"",
        ),
        |arguments| Ok(hexadecimal(&digest::<Sha512>(arguments))),
    ),
    Function {
        name: "uuid",
        parameters: &[],
        variadic: None,
        returns: Kind::String,
        description: "Returns a random UUID, a different one each time.",
        example: ("uuid() == uuid()", "false"),
        body: Body::Eager(random_uuid),
    },
    Function {
        name: "uuidv5",
        parameters: &[
            Parameter::new("namespace", Kind::String),
            Parameter::new("name", Kind::String),
        ],
        variadic: None,
        returns: Kind::String,
        description: "Returns the UUID of a name. The namespace is `dns`, `url`, `oid`, `x500` or a UUID.",
        example: (
            "uuidv5(\"dns\", \"www.terraform.io\")",
            "\"a5008fae-b28c-5ba5-96cd-82b4c53552d6\"",
        ),
        body: Body::Eager(named_uuid),
    },
];

fn digest<D: Digest>(arguments: &Arguments) -> Vec<u8> {
    D::digest(arguments.text(0).as_bytes()).to_vec()
}

fn hexadecimal(bytes: &[u8]) -> Value {
    let mut digits = String::new();
    for byte in bytes {
        digits.push_str(&format!("{byte:02x}"));
    }
    Value::string(digits)
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
        text => Uuid::parse_str(text).map_err(|_| {
            let found = arguments.value(0).description();
            let problem =
                format!("this is {found}; `dns`, `url`, `oid`, `x500` or a UUID is needed");
            FunctionError::Argument(0, problem)
        })?,
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
        let problem = format!(
            "this is {}; a cost of at most {MAX_COST} is needed, since each step doubles the time",
            arguments.value(1).description()
        );
        return Err(FunctionError::Argument(1, problem));
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
