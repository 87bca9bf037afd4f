//! The source of a module: a registry's module, or a directory of a git repository.
//!
//! This module looks nothing up.

use crate::ascii::from_hex;
use std::borrow::Cow;

/// The registry of addresses without a host.
const PUBLIC_REGISTRY: &str = "registry.terraform.io";

/// Hosts whose repositories are named without a protocol.
const GIT_HOSTS: [&str; 3] = ["github.com/", "gitlab.com/", "bitbucket.org/"];

/// The address of a module, without its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub kind: AddressKind,
    /// Of a registry: host, namespace, name and provider. Of git: host and path of the repository, however it
    /// is reached.
    pub package: String,
    /// The directory in the package; empty for all of it.
    pub directory: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    Registry,
    Git,
}

#[derive(Debug, PartialEq, Eq)]
pub struct CallSource {
    pub address: Address,
    /// `ref` of git, or `version` of a registry, if the source has one.
    pub asked: Option<String>,
}

impl CallSource {
    /// Parses a source; `None` if it is neither of git nor of a registry.
    pub fn parse(written: &str) -> Option<Self> {
        let (place, query) = match written.split_once('?') {
            Some((place, query)) => (place, query),
            None => (written, ""),
        };
        let address = Address::parse(place)?;
        let name = match address.kind {
            AddressKind::Git => "ref",
            AddressKind::Registry => "version",
        };
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let asked = pairs.find(|(key, _)| *key == name);
        Some(CallSource {
            address,
            asked: asked.map(|(_, value)| decoded(value).into_owned()),
        })
    }
}

impl Address {
    /// Parses a source without `?`; `None` if it is neither of git nor of a registry.
    pub(super) fn parse(place: &str) -> Option<Self> {
        if let Some(url) = place.strip_prefix("git::") {
            return Some(Address::git(url));
        }
        if let Some(rest) = place.strip_prefix("tfr://") {
            // Terragrunt's way to write a registry; without a host, there are three slashes.
            return Address::registry(rest.trim_start_matches('/'));
        }
        let is_git = place.starts_with("ssh://")
            || place.starts_with("git://")
            || GIT_HOSTS.iter().any(|host| place.starts_with(host))
            || is_scp(place);
        if is_git {
            return Some(Address::git(place));
        }
        if place.contains("::") || place.contains("://") {
            return None; // another kind of server
        }
        Address::registry(place)
    }

    /// Parses the address of a git repository, as git takes it, and perhaps a directory after `//`.
    pub fn git(url: &str) -> Self {
        let (is_url, rest) = match url.split_once("://") {
            Some((_, rest)) => (true, rest),
            None => (false, url),
        };
        let (rest, directory) = match rest.split_once("//") {
            Some((rest, directory)) => (rest, directory),
            None => (rest, ""),
        };
        let is_host = is_url || is_scp(rest) || !rest.starts_with('/');
        let (host, path) = if !is_host {
            ("", rest)
        } else if !is_url && is_scp(rest) {
            rest.split_once(':').unwrap_or(("", rest))
        } else {
            rest.split_once('/').unwrap_or((rest, ""))
        };
        let host = host.rsplit('@').next().unwrap_or_default();
        let host = [":22", ":443", ":80", ":9418"]
            .iter()
            .find_map(|port| host.strip_suffix(port))
            .unwrap_or(host);
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        Address {
            kind: AddressKind::Git,
            package: format!("{}/{path}", host.to_ascii_lowercase()),
            directory: normal(directory),
        }
    }

    fn registry(place: &str) -> Option<Self> {
        let (address, directory) = match place.split_once("//") {
            Some((address, directory)) => (address, directory),
            None => (place, ""),
        };
        let parts: Vec<&str> = address.split('/').collect();
        let (host, parts) = match *parts.as_slice() {
            [host, ref rest @ ..] if rest.len() == 3 => (host.to_ascii_lowercase(), rest.to_vec()),
            _ if parts.len() == 3 => (PUBLIC_REGISTRY.to_owned(), parts),
            _ => return None,
        };
        let is_name = |part: &&str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            !part.is_empty() && part.chars().all(fits)
        };
        let is_host = host.contains('.') || host.contains(':') || host == "localhost";
        (is_host && parts.iter().all(is_name)).then(|| Address {
            kind: AddressKind::Registry,
            package: format!("{host}/{}", parts.join("/")),
            directory: normal(directory),
        })
    }

    /// Returns whether a call of another address is one of this: of the same directory, or of any if this names
    /// the whole package.
    pub fn has(&self, other: &Address) -> bool {
        self.kind == other.kind
            && self.package == other.package
            && (self.directory.is_empty() || self.directory == other.directory)
    }
}

/// Returns whether a place looks like `git@host:path`.
fn is_scp(place: &str) -> bool {
    place.split_once(':').is_some_and(|(host, path)| {
        !host.is_empty() && !host.contains('/') && !path.starts_with(['/', ':'])
    }) && !place.contains("://")
}

fn normal(directory: &str) -> String {
    let names = directory
        .split('/')
        .filter(|name| !matches!(*name, "" | "."));
    names.collect::<Vec<&str>>().join("/")
}

/// Returns a decoded value of a query; unchanged if it is not valid text.
fn decoded(value: &str) -> Cow<'_, str> {
    if !value.contains('%') {
        return Cow::Borrowed(value);
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = Some(after).filter(|_| first == b'%').and_then(from_hex);
        let (byte, after) = escaped.unwrap_or((first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(value), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        match CallSource::parse(source) {
            None => "elsewhere".to_owned(),
            Some(CallSource { address, asked }) => {
                let Address {
                    kind,
                    package,
                    directory,
                } = address;
                format!("{kind:?} {package} {directory:?} {:?}", asked.as_deref())
            }
        }
    }

    #[test]
    fn one_repository_has_many_addresses() {
        let repository = "Git git.example.org/acme/infra \"\" None";
        for source in [
            "git::https://git.example.org/acme/infra.git",
            "git::https://git.example.org/acme/infra",
            "git::https://ada:secret@GIT.example.org:443/acme/infra.git",
            "git::ssh://git@git.example.org/acme/infra.git",
            "git::ssh://git@git.example.org:22/acme/infra.git",
            "ssh://git@git.example.org/acme/infra.git",
            "git::git@git.example.org:acme/infra.git",
            "git@git.example.org:acme/infra.git",
            "git::git.example.org/acme/infra/",
        ] {
            assert_eq!(shown(source), repository, "{source}");
        }
    }

    #[test]
    fn sources_have_a_directory_and_ask_for_a_version() {
        let table = [
            (
                "git::https://x.org/y.git//modules/vpc?ref=modules/vpc/v1.3.0",
                "Git x.org/y \"modules/vpc\" Some(\"modules/vpc/v1.3.0\")",
            ),
            (
                "git@x.org:y.git//./a//b/?depth=1&ref=modules%2Fvpc%2Fv1",
                "Git x.org/y \"a/b\" Some(\"modules/vpc/v1\")",
            ),
            (
                "git::https://x.org/y?ref=%zz%C3",
                "Git x.org/y \"\" Some(\"%zz%C3\")",
            ),
            (
                "github.com/acme/infra//a?ref=v1",
                "Git github.com/acme/infra \"a\" Some(\"v1\")",
            ),
            ("git::file:///srv/y.git//a", "Git /srv/y \"a\" None"),
            ("git::/srv/y.git//a", "Git /srv/y \"a\" None"),
            (
                "acme/vpc/aws",
                "Registry registry.terraform.io/acme/vpc/aws \"\" None",
            ),
            (
                "registry.terraform.io/acme/vpc/aws//modules/a",
                "Registry registry.terraform.io/acme/vpc/aws \"modules/a\" None",
            ),
            (
                "App.acme.io/acme/vpc/aws",
                "Registry app.acme.io/acme/vpc/aws \"\" None",
            ),
            (
                "tfr:///acme/vpc/aws?version=1.3.0",
                "Registry registry.terraform.io/acme/vpc/aws \"\" Some(\"1.3.0\")",
            ),
            (
                "tfr://app.acme.io/acme/vpc/aws//a?version=1.3.0",
                "Registry app.acme.io/acme/vpc/aws \"a\" Some(\"1.3.0\")",
            ),
            ("https://x.org/vpc.zip", "elsewhere"),
            ("s3::https://s3.amazonaws.com/bucket/vpc.zip", "elsewhere"),
            ("hg::http://x.org/vpc.hg", "elsewhere"),
            ("a/b", "elsewhere"),
            ("a/b/c/d", "elsewhere"),
            ("a b/c/d", "elsewhere"),
            ("a//b/c/d", "elsewhere"),
            ("", "elsewhere"),
            ("?ref=v1", "elsewhere"),
        ];
        for (source, expected) in table {
            assert_eq!(shown(source), expected, "{source}");
        }
    }

    #[test]
    fn a_package_has_all_of_its_directories() {
        let address = |source| Address::parse(source).unwrap();
        let whole = address("acme/vpc/aws");
        let part = address("acme/vpc/aws//modules/a");
        assert!(whole.has(&part));
        assert!(part.has(&part));
        assert!(!part.has(&whole));
        assert!(!part.has(&address("acme/vpc/aws//modules/b")));
        assert!(!whole.has(&address("acme/vpc/google")));
        assert!(!whole.has(&address("git::https://registry.terraform.io/acme/vpc/aws")));
    }

    #[test]
    fn hostile_sources_are_harmless() {
        for source in [
            "git::", "git:://", "git::@:", ":", "@", "::", "git::///", "%", "?ref=%",
        ] {
            _ = CallSource::parse(source);
            _ = CallSource::parse(&format!("{source}?ref=%é%"));
        }
    }
}
