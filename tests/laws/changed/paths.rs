//! Paths relative to the root of the project, which is the empty path, and globs.

/// The directories above a path, nearest first.
pub(super) fn above(path: &str) -> Vec<&str> {
    let cuts = path.rmatch_indices('/').map(|(cut, _)| &path[..cut]);
    let root = (!path.is_empty()).then_some("");
    cuts.chain(root).collect()
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

pub(super) fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

pub(super) fn basename(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The rest of a path that lies below a directory.
pub(super) fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    if directory.is_empty() {
        return Some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

pub(super) fn is_at_or_below(path: &str, place: &str) -> bool {
    path == place || below(path, place).is_some()
}

/// The place that is written in a file of a directory; `None` outside of the project.
pub(super) fn resolve(directory: &str, written: &str) -> Option<String> {
    let directory = if written.starts_with('/') {
        ""
    } else {
        directory
    };
    let mut names: Vec<&str> = Vec::new();
    for name in directory.split('/').chain(written.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// Returns whether a glob matches.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    if let Some((before, rest)) = pattern.split_once('{') {
        let (choices, after) = rest.split_once('}').expect("braces are closed");
        let mut choices = choices.split(',');
        return choices.any(|choice| matches(&format!("{before}{choice}{after}"), path));
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    names_match(&pattern, &path)
}

fn names_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**"], path) => !path.is_empty(),
        (["**", rest @ ..], path) => {
            names_match(rest, path) || !path.is_empty() && names_match(pattern, &path[1..])
        }
        ([name, rest @ ..], [first, others @ ..]) => {
            let name: Vec<char> = name.chars().collect();
            let first: Vec<char> = first.chars().collect();
            name_matches(&name, &first) && names_match(rest, others)
        }
        _ => false,
    }
}

fn name_matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => {
            name_matches(rest, name) || !name.is_empty() && name_matches(pattern, &name[1..])
        }
        (['?', rest @ ..], [_, others @ ..]) => name_matches(rest, others),
        ([c, rest @ ..], [d, others @ ..]) => c == d && name_matches(rest, others),
        _ => false,
    }
}
