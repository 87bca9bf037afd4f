//! Whether one command destroys two stacks: then the resources may belong to either.

use std::ffi::OsString;
use std::path::Path;

use crate::path::StackPath;

/// Replaces the project root in compared words; no argument contains it.
const ROOT: char = '\0';

#[derive(Debug)]
pub struct DestroyCommand(Vec<Word>);

#[derive(Debug)]
struct Word {
    /// The word, independent of the checkout.
    text: String,
    /// The same without the directories of its paths.
    below: String,
    /// The same with the directory of the stack, which may also be a resource's name.
    named: String,
}

impl DestroyCommand {
    pub fn new(words: &[OsString], root: &Path, stack: &StackPath) -> Self {
        let root = root.to_string_lossy();
        let directory = stack.directory().relative();
        let word = |word: &OsString| {
            let text = word.to_string_lossy().replace(&*root, "\0");
            Word {
                below: without_places(&text, directory, false),
                named: without_places(&text, directory, true),
                text,
            }
        };
        DestroyCommand(words.iter().map(word).collect())
    }

    /// Returns whether both are the same apart from their stacks' directories: after a move,
    /// another directory has the files of the same resources.
    pub fn is_same(&self, other: &Self) -> bool {
        let words = || self.0.iter().zip(&other.0);
        let is_same = |(a, b): (&Word, &Word)| {
            let is_named = a.named != a.below && b.named != b.below;
            let is_elsewhere = if is_named {
                a.named == b.named
            } else {
                a.below == b.below
            };
            a.text == b.text || is_elsewhere
        };
        self.0.len() == other.0.len() && words().all(is_same)
    }
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_')
}

/// Removes directories from the paths in a word: the project root, `.` and `..`, and the stack's
/// directory.
fn without_places(word: &str, directory: &str, keeps_name: bool) -> String {
    let mut left = String::new();
    let mut before = None;
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        if first == ROOT || before.is_none_or(|before| !is_of_path(before)) {
            let below = below_place(rest, directory, keeps_name);
            if below.len() < rest.len() {
                rest = below;
                before = Some('/');
                continue;
            }
        }
        left.push(first);
        before = Some(first);
        rest = &rest[first.len_utf8()..];
    }
    left
}

/// Returns a path below its directory. A directory of one part may be a name.
fn below_place<'t>(path: &'t str, directory: &str, keeps_name: bool) -> &'t str {
    let ends = |rest: &str| !rest.starts_with(is_of_path);
    let mut below = path.strip_prefix(ROOT).unwrap_or(path);
    let mut has_place = below.len() < path.len();
    let mut inside = below;
    loop {
        let rest = ["..", "."].iter().find_map(|up| {
            let rest = inside.strip_prefix(up)?;
            (rest.starts_with('/') || ends(rest)).then_some(rest)
        });
        let Some(rest) = rest else { break };
        (below, has_place) = (rest, true);
        inside = rest.strip_prefix('/').unwrap_or(rest);
    }
    inside = below.strip_prefix('/').unwrap_or(below);
    let of_stack = inside.strip_prefix(directory).filter(|rest| {
        let is_name = ends(rest) && inside.len() == path.len() && !directory.contains('/');
        !directory.is_empty() && (ends(rest) || rest.starts_with('/')) && !(is_name && keeps_name)
    });
    match of_stack {
        Some(rest) => rest.strip_prefix('/').unwrap_or(rest),
        None if has_place => inside,
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_command_ignores_stack_directories() {
        let command = |root: &str, path: &str, words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let path = StackPath::parse(path).unwrap();
            DestroyCommand::new(&words, Path::new(root), &path)
        };
        for (from, to, expected) in [
            // The name of the resource.
            ("cf delete example-orders", "cf delete example-orders", true),
            ("cf delete example-orders", "cf delete example-bills", false),
            ("cf delete orders", "cf delete orders", true),
            ("cf delete orders", "cf delete bills", false),
            // No name.
            ("kubectl delete -f .", "kubectl delete -f .", true),
            (
                "kubectl delete -f /orders",
                "kubectl delete -f /team/bills",
                true,
            ),
            (
                "kubectl delete -f /old/orders/x",
                "kubectl delete -f /new/team/bills/x",
                true,
            ),
            ("rm --in=/old/orders", "rm --in=/new/team/bills", true),
            ("rm orders", "rm team/bills", true),
            ("/old/tool delete", "/new/tool delete", true),
            ("rm /old/orders/x", "rm /new/team/bills/y", false),
            ("rm /orders-1", "rm /team/bills-1", false),
            ("rm a", "rm a b", false),
            // The directory of the files.
            ("sh ../cf.sh orders", "sh ../../cf.sh orders", true),
            ("sh ../cf.sh orders", "sh ../../cf.sh bills", false),
            ("sh ../../a.sh", "sh ../b.sh", false),
            ("sh ./cf.sh", "sh cf.sh", true),
            ("make -C .. rm", "make -C ../.. rm", true),
            ("make STACK=orders", "make STACK=team/bills", true),
            ("make STACK=./orders", "make STACK=./team/bills", true),
            ("make STACK=/orders", "make STACK=/team/bills", true),
            ("make STACK=/old/orders", "make STACK=/new/team/bills", true),
            ("make STACK=orders/x", "make STACK=team/bills/x", true),
            ("make STACK=orders/x", "make STACK=team/bills/y", false),
            ("make A=orders,B=1", "make A=team/bills,B=1", true),
            ("make A=orders,B=1", "make A=team/bills,B=2", false),
            ("rm a:orders", "rm a:team/bills", true),
            // Names with paths in them.
            ("rm s3://orders", "rm s3://team/bills", false),
            ("rm s3://x/orders", "rm s3://x/team/bills", false),
            ("rm x-orders", "rm x-team/bills", false),
            ("rm orders.x", "rm team/bills.x", false),
        ] {
            let from = command("/old", "/orders", from);
            let to = command("/new", "/team/bills", to);
            assert_eq!(from.is_same(&to), expected, "{from:?} {to:?}");
            assert_eq!(to.is_same(&from), expected, "{from:?} {to:?}");
        }
        // If the path of a stack has one part, it may be a name.
        let named = |path: &str| command("/p", path, &format!("rm {}", &path[1..]));
        assert!(!named("/a").is_same(&named("/b")));
        assert!(named("/a").is_same(&named("/a/b")));
        let set = |path: &str| command("/p", path, &format!("rm STACK={}", &path[1..]));
        assert!(!set("/a").is_same(&set("/b")));
        assert!(set("/a").is_same(&set("/a/b")));
        let root = command("/p", "/", "/p/tool rm /p");
        assert!(root.is_same(&command("/p", "/a", "/p/tool rm /p/a")));
    }
}
