//! What `--match` and `--exclude` mean, as the help says it, and some texts for them.

use proptest::prelude::*;
use proptest::sample::select;

use crate::model::{contains, names, place, split_key};
use crate::tree::relative;

fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '[', '{'])
}

/// Returns whether a text written in a directory means a stack, given by its directory and, for an
/// instance, its key.
pub(crate) fn means(directory: &str, written: &str, stack: &str, key: Option<&str>) -> bool {
    let Some((path, wanted)) = split_key(written) else {
        return path_means(directory, written, stack);
    };
    let is_there = if is_glob(path) {
        path_means(directory, path, stack)
    } else {
        place(directory, path).is_some_and(|place| place == names(stack))
    };
    is_there && key.is_some() && (wanted.is_none() || wanted == key)
}

fn path_means(directory: &str, written: &str, stack: &str) -> bool {
    let written_names: Vec<&str> = written.split('/').collect();
    let n_literal = written_names
        .iter()
        .take_while(|name| !is_glob(name))
        .count();
    let (literal, rest) = written_names.split_at(n_literal);
    let literal = match literal {
        [] => ".".to_owned(),
        literal => format!("{}/", literal.join("/")),
    };
    let Some(around) = place(directory, &literal) else {
        return false;
    };
    let around: Vec<&str> = around.iter().map(String::as_str).collect();
    let own = names(stack);
    if !contains(&around, &own) {
        return false;
    }
    let below = &own[around.len()..];
    rest.is_empty()
        || without_braces(&rest.join("/"))
            .iter()
            .any(|glob| path_matches(&names(glob), below))
}

/// All texts that one with braces stands for.
fn without_braces(glob: &str) -> Vec<String> {
    let Some((before, rest)) = glob.split_once('{') else {
        return vec![glob.to_owned()];
    };
    let (inside, after) = rest
        .split_once('}')
        .expect("braces are closed and not nested");
    let texts = inside
        .split(',')
        .map(|either| format!("{before}{either}{after}"));
    texts.flat_map(|text| without_braces(&text)).collect()
}

fn path_matches(globs: &[&str], path: &[&str]) -> bool {
    match (globs, path) {
        ([], path) => path.is_empty(),
        (["**", globs @ ..], path) => (0..=path.len()).any(|n| path_matches(globs, &path[n..])),
        (_, []) => false,
        ([glob, globs @ ..], [name, path @ ..]) => {
            let (glob, name): (Vec<char>, Vec<char>) =
                (glob.chars().collect(), name.chars().collect());
            name_matches(&glob, &name) && path_matches(globs, path)
        }
    }
}

fn name_matches(glob: &[char], name: &[char]) -> bool {
    match (glob, name) {
        ([], name) => name.is_empty(),
        (['*', glob @ ..], name) => (0..=name.len()).any(|n| name_matches(glob, &name[n..])),
        (_, []) => false,
        (['?', glob @ ..], [_, name @ ..]) => name_matches(glob, name),
        (['[', glob @ ..], [character, name @ ..]) => {
            let end = glob
                .iter()
                .position(|&c| c == ']')
                .expect("brackets are closed");
            let (class, glob) = (&glob[..end], &glob[end + 1..]);
            let (is_negated, class) = match class {
                ['!', class @ ..] => (true, class),
                class => (false, class),
            };
            let is_in = match class {
                [from, '-', to] => (*from..=*to).contains(character),
                class => class.contains(character),
            };
            is_in != is_negated && name_matches(glob, name)
        }
        ([expected, glob @ ..], [character, name @ ..]) => {
            expected == character && name_matches(glob, name)
        }
    }
}

/// Texts that mean some of the places, written in a directory: plain paths, and these with names
/// replaced by globs.
pub(crate) fn any_text(
    directory: &str,
    places: Vec<String>,
) -> impl Strategy<Value = String> + use<> {
    let directory = directory.to_owned();
    let piece = select(vec![
        "*",
        "*",
        "**",
        "**",
        "?",
        "a*",
        "*b",
        "[ab]",
        "[!c]",
        "a[!z]b",
        "?-?",
        "{a,b}",
        "{a-b,a}*",
        "[a-c]*",
        "{a/b,b,c}",
        "c",
        "a-b",
        "x{a,b}",
    ]);
    (
        select(places),
        prop::collection::vec((any::<prop::sample::Index>(), piece), 0..3),
        any::<bool>(),
        prop_oneof![
            8 => Just(""),
            2 => Just("/**"),
            1 => Just("/"),
            1 => Just("/*"),
            4 => select(vec!["[*]", "[\"k\"]", "/**[\"t\"]", "/*[*]", "[\"*\"]"]),
        ],
    )
        .prop_map(move |(place, pieces, is_relative, end)| {
            let mut path: Vec<&str> = names(&place);
            for (position, piece) in pieces {
                let position = position.index(path.len() + 1);
                match path.get_mut(position) {
                    Some(name) => *name = piece,
                    None => path.push(piece),
                }
            }
            let from_root = format!("/{}", path.join("/"));
            // What follows a glob has no way back, so only what leads to it can be made relative.
            let text = if is_relative {
                relative(&directory, &from_root)
            } else {
                from_root
            };
            match (text.as_str(), end) {
                ("/", end) if end.starts_with('/') => end.to_owned(),
                (text, end) => format!("{text}{end}"),
            }
        })
}

#[test]
fn the_model_of_globs_knows_what_the_help_says() {
    let means = |written, stack| {
        let (directory, key) = split_key(stack).unwrap_or((stack, None));
        means("/env", written, directory, key)
    };
    for (written, stack, is_meant) in [
        ("prod", "/env/prod", true),
        ("prod", "/env/prod/a", true),
        ("prod", "/env/production", false),
        ("prod", "/prod", false),
        ("/prod", "/prod", true),
        ("prod/**", "/env/prod", true),
        ("prod/**", "/env/prod/a/b", true),
        ("prod/*", "/env/prod", false),
        ("prod/*", "/env/prod/a", true),
        ("prod/*", "/env/prod/a/b", false),
        ("*", "/env", false),
        ("**/b", "/env/b", true),
        ("{a,b}/[!x]?", "/env/b/yz", true),
        ("{a,b}/[!x]?", "/env/b/xz", false),
        ("../*", "/env", true),
        ("../../..", "/env", false),
        ("prod", "/env/prod[\"k\"]", true),
        ("prod[\"k\"]", "/env/prod[\"k\"]", true),
        ("prod[\"k\"]", "/env/prod[\"l\"]", false),
        ("prod[\"k\"]", "/env/prod", false),
        ("prod[\"k\"]", "/env/prod/a[\"k\"]", false),
        ("prod[*]", "/env/prod[\"k\"]", true),
        ("prod[*]", "/env/prod", false),
        ("pro[d]", "/env/prod[\"k\"]", true),
        ("prod/**[\"k\"]", "/env/prod[\"k\"]", true),
        ("*[\"k\"]", "/env/prod[\"k\"]", true),
        ("*[\"k\"]", "/env/prod/a[\"k\"]", false),
    ] {
        assert_eq!(means(written, stack), is_meant, "{written} {stack}");
    }
}
