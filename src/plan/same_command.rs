//! Whether the same command destroys two stacks, so that nothing tells which of them has the resources.

use std::ffi::OsString;
use std::path::Path;

use crate::path::StackPath;

/// What stands for the root of a project and for the directory of a stack in words that are compared.
const ROOT: &str = "\0root";
const DIRECTORY: &str = "\0directory";

/// The words of the command that destroys a stack, for comparison with those of others.
#[derive(Debug)]
pub struct DestroyCommand(Vec<Word>);

#[derive(Debug)]
struct Word {
    /// The word, wherever the project is checked out.
    text: String,
    /// The same without the directory of the stack.
    elsewhere: String,
    /// Whether the word is the only name in the path of the stack, which may as well be that of the stack.
    is_name: bool,
}

impl DestroyCommand {
    /// Takes the words of a command of a stack in a project with this root.
    pub fn new(words: &[OsString], root: &Path, stack: &StackPath) -> Self {
        let root = root.to_string_lossy();
        let (path, relative) = (stack.directory().as_str(), stack.directory().relative());
        let word = |word: &OsString| {
            let text = word.to_string_lossy().replace(&*root, ROOT);
            let here = format!("{ROOT}{}", if relative.is_empty() { "" } else { path });
            let starts = [here.as_str(), path, relative];
            let mut starts = starts.into_iter().filter(|start| !start.is_empty());
            let rest = starts.find_map(|start| {
                let rest = text.strip_prefix(start)?;
                (rest.is_empty() || rest.starts_with('/')).then(|| format!("{DIRECTORY}{rest}"))
            });
            Word {
                elsewhere: rest.unwrap_or_else(|| text.replace(&here, DIRECTORY)),
                is_name: text == relative && !relative.contains('/'),
                text,
            }
        };
        DestroyCommand(words.iter().map(word).collect())
    }

    /// Returns whether both are the same, apart from the directories of their stacks: after a move, another
    /// directory has the files of the same resources.
    pub fn is_same(&self, other: &Self) -> bool {
        let words = || self.0.iter().zip(&other.0);
        let is_same = |(a, b): (&Word, &Word)| {
            let is_elsewhere = a.elsewhere == b.elsewhere && !(a.is_name && b.is_name);
            a.text == b.text || is_elsewhere
        };
        self.0.len() == other.0.len() && words().all(is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_the_same_apart_from_the_directories_of_their_stacks() {
        let command = |root: &str, path: &str, words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let path = StackPath::parse(path).unwrap();
            DestroyCommand::new(&words, Path::new(root), &path)
        };
        for (from, to, expected) in [
            // What names the resource.
            ("cf delete example-orders", "cf delete example-orders", true),
            ("cf delete example-orders", "cf delete example-bills", false),
            ("cf delete orders", "cf delete orders", true),
            ("cf delete orders", "cf delete bills", false),
            // Nothing does.
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
        ] {
            let from = command("/old", "/orders", from);
            let to = command("/new", "/team/bills", to);
            assert_eq!(from.is_same(&to), expected, "{from:?} {to:?}");
            assert_eq!(to.is_same(&from), expected, "{from:?} {to:?}");
        }
        // Where a stack has one name, its path may be that name.
        let named = |path: &str| command("/p", path, &format!("rm {}", &path[1..]));
        assert!(!named("/a").is_same(&named("/b")));
        assert!(named("/a").is_same(&named("/a/b")));
        let root = command("/p", "/", "/p/tool rm /p");
        assert!(root.is_same(&command("/p", "/a", "/p/tool rm /p/a")));
    }
}
