//! Functions that read files, through [`FileReader`](super::FileReader), and those that split paths.
//!
//! Paths are text with `/` between their names on every platform.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::ascii::hex;
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the absolute form of a path on this machine, without `.` and `..`. The path need not
    /// exist.
    abspath(path: string) -> string = Eager(abspath),
        r#"abspath("a/../b")"# => r#""/project/b""#;
    /// Returns the last component of a path.
    basename(path: string) -> string
        = Eager(|arguments| Ok(Value::string(basename(arguments.text(0))))),
        r#"basename("modules/network/main.tf")"# => r#""main.tf""#;
    /// Returns a path without its last component.
    dirname(path: string) -> string
        = Eager(|arguments| Ok(Value::string(dirname(arguments.text(0))))),
        r#"dirname("modules/network/main.tf")"# => r#""modules/network""#;
    /// Returns the text of a file, which must be UTF-8.
    file(path: string) -> string = Eager(file),
        r#"file("hello.txt")"# => r#""Hello!\n""#;
    /// Returns the content of a file in Base64.
    filebase64(path: string) -> string = Eager(filebase64),
        r#"filebase64("hello.txt")"# => r#""SGVsbG8hCg==""#;
    /// Returns the SHA-256 digest of a file in Base64.
    filebase64sha256(path: string) -> string
        = Eager(|arguments| digest::<Sha256>(arguments, in_base64)),
        r#"filebase64sha256("hello.txt")"# => r#""sisAkTRiK2UI11bxBiRV1xpwJllOrLC634H09neSnr4=""#;
    /// Returns the SHA-512 digest of a file in Base64.
    filebase64sha512(path: string) -> string
        = Eager(|arguments| digest::<Sha512>(arguments, in_base64)),
        r#"filebase64sha512("hello.txt")"#
            => r#""6yLZkdbYZkHZXgGoBAJfwhBJEoajDzEU3RRpx0V8A+gHUG9WFbyQZfR6buIgg2T2Q4N/Iphzi09cU3lxJPQfYA==""#;
    /// Returns whether a file exists. It is an error if the path names a directory.
    fileexists(path: string) -> bool = Eager(fileexists),
        r#"fileexists("hello.txt")"# => "true";
    /// Returns the MD5 digest of a file in hexadecimal.
    filemd5(path: string) -> string = Eager(|arguments| digest::<Md5>(arguments, hex)),
        r#"filemd5("hello.txt")"# => r#""e134ced312b3511d88943d57ccd70c83""#;
    /// Returns the files below a directory that match a pattern, relative to the directory. `*`
    /// matches within a name, `**` matches across directories, and `{a,b}` matches either.
    fileset(path: string, pattern: string) -> set(string) = Eager(fileset),
        r#"fileset(".", "*.txt")"# => r#"["hello.txt"]"#;
    /// Returns the SHA-1 digest of a file in hexadecimal.
    filesha1(path: string) -> string = Eager(|arguments| digest::<Sha1>(arguments, hex)),
        r#"filesha1("hello.txt")"# => r#""a8d191538209e335154750d2df575b9ddfb16fc7""#;
    /// Returns the SHA-256 digest of a file in hexadecimal.
    filesha256(path: string) -> string
        = Eager(|arguments| digest::<Sha256>(arguments, hex)),
        r#"filesha256("hello.txt")"#
            => r#""b22b009134622b6508d756f1062455d71a7026594eacb0badf81f4f677929ebe""#;
    /// Returns the SHA-512 digest of a file in hexadecimal.
    filesha512(path: string) -> string
        = Eager(|arguments| digest::<Sha512>(arguments, hex)),
        r#"filesha512("hello.txt")"#
            => r#""eb22d991d6d86641d95e01a804025fc210491286a30f3114dd1469c7457c03e807506f5615bc9065f47a6ee2208364f643837f2298738b4f5c53797124f41f60""#;
    /// Returns a path with a leading `~` replaced by the home directory.
    pathexpand(path: string) -> string = Eager(pathexpand),
        r#"pathexpand("~/.ssh/id")"# => r#""/home/me/.ssh/id""#;
};

fn abspath(arguments: &Arguments) -> Result<Value, FunctionError> {
    let absolute = arguments
        .files()?
        .absolute(arguments.text(0))
        .map_err(|error| arguments.file_error(0, error))?;
    Ok(Value::string(absolute))
}

fn file(arguments: &Arguments) -> Result<Value, FunctionError> {
    Ok(Value::string(text_of_file(arguments)?))
}

/// Returns the text of the file that the first argument names.
pub(super) fn text_of_file(arguments: &Arguments) -> Result<String, FunctionError> {
    let content = content(arguments)?;
    let text = str::from_utf8(&content).map_err(|_| {
        let path = arguments.value(0).description();
        let others = "`filebase64` and the digests read any file";
        let problem = format!("this is {path}, a file that is not UTF-8 text; {others}");
        FunctionError::Argument(0, problem)
    })?;
    Ok(text.to_owned())
}

/// Reads the file that the first argument names, and counts the work of reading it.
fn content(arguments: &Arguments) -> Result<Arc<[u8]>, FunctionError> {
    let content = arguments
        .files()?
        .read(arguments.text(0))
        .map_err(|error| arguments.file_error(0, error))?;
    arguments.spend(content.len() as u64 / 8)?;
    Ok(content)
}

fn filebase64(arguments: &Arguments) -> Result<Value, FunctionError> {
    Ok(Value::string(in_base64(&content(arguments)?)))
}

fn digest<D: Digest>(
    arguments: &Arguments,
    show: fn(&[u8]) -> String,
) -> Result<Value, FunctionError> {
    Ok(Value::string(show(&D::digest(content(arguments)?))))
}

fn in_base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn fileexists(arguments: &Arguments) -> Result<Value, FunctionError> {
    let exists = arguments
        .files()?
        .exists(arguments.text(0))
        .map_err(|error| arguments.file_error(0, error))?;
    Ok(Value::Bool(exists))
}

fn fileset(arguments: &Arguments) -> Result<Value, FunctionError> {
    let (directory, pattern) = (arguments.text(0), arguments.text(1));
    let found = arguments
        .files()?
        .matching(directory, pattern)
        .map_err(|error| arguments.file_error(0, error))?;
    Ok(Value::set(found.into_iter().map(Value::string)))
}

fn pathexpand(arguments: &Arguments) -> Result<Value, FunctionError> {
    let path = arguments.text(0);
    let Some(rest) = path.strip_prefix('~') else {
        return Ok(Value::String(path.clone()));
    };
    if !rest.is_empty() && !rest.starts_with('/') {
        let problem =
            "the home directories of other users are not known, so only `~` and `~/…` can be used";
        return Err(arguments.unfit(0, problem));
    }
    let home = arguments
        .files()?
        .home()
        .map_err(|error| arguments.file_error(0, error))?;
    Ok(Value::string(clean(&(home + rest))))
}

/// Returns the last component of a path: `.` for an empty path and `/` for the root.
fn basename(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        _ if path.is_empty() => ".",
        None | Some("") => "/",
        Some(name) => name,
    }
}

/// Returns a path without its last component, and without `.` and `..` as far as they can be resolved.
fn dirname(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    clean(&path[..end])
}

/// Returns the shortest path that means the same, ignoring links; `.` if nothing is left.
fn clean(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => _ = names.pop(),
            ".." if is_absolute => {}
            name => names.push(name),
        }
    }
    match (is_absolute, names.is_empty()) {
        (true, _) => format!("/{}", names.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => names.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_in_go() {
        for (path, cleaned) in [
            ("", "."),
            ("/", "/"),
            ("//a//b/", "/a/b"),
            ("a/../..", ".."),
            ("../a/../../b", "../../b"),
            ("/../a", "/a"),
            ("./a/.", "a"),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }
}
