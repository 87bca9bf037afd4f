//! The source of a project's files: the disk, or a tree such as that of a commit.
//!
//! A tree is listed once, and the text of all its configuration files is read in one go. Links in it are not
//! followed. This module doesn't interpret files.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::names::is_configuration;
use super::text::{self, CONFIGURATION, TextError, decode, read_text};
use crate::on_disk::if_there;
use crate::path::ProjectPath;

/// Files that are not on disk.
pub trait FileTree: Sync {
    /// Returns all files and links of the project, in any order.
    fn entries(&self) -> io::Result<Vec<TreeEntry>>;

    /// Returns the contents of files, by the ids of their entries and in that order; `None` for a file
    /// that is larger than `max_bytes`.
    fn read(&self, ids: &[&str], max_bytes: u32) -> io::Result<Vec<Option<Vec<u8>>>>;

    /// Returns whether a path has the same content in the tree as on disk. Such files need not be among the entries:
    /// a file that is not an entry can be imported or read, but is not a configuration file.
    fn is_as_on_disk(&self, _path: &ProjectPath) -> bool {
        false
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path from the project root, `/`-separated; names are bytes.
    pub path: Vec<u8>,
    pub id: String,
    pub is_link: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Directory,
    File,
    Link,
    /// A pipe, a device or another special file.
    Other,
}

impl FileKind {
    pub(crate) fn of(kind: fs::FileType) -> Self {
        if kind.is_dir() {
            FileKind::Directory
        } else if kind.is_file() {
            FileKind::File
        } else if kind.is_symlink() {
            FileKind::Link
        } else {
            FileKind::Other
        }
    }
}

/// The entries of a tree, by directory and name. Directories exist through their entries.
#[derive(Debug, Default)]
pub(crate) struct TreeIndex(BTreeMap<Vec<u8>, TreeDirectory>);

/// The entries of a directory, by name, each with the id of its content.
type TreeDirectory = BTreeMap<Vec<u8>, (FileKind, String)>;

impl TreeIndex {
    fn new(entries: Vec<TreeEntry>) -> Self {
        let mut index = TreeIndex::default();
        for TreeEntry { path, id, is_link } in entries {
            let kind = if is_link {
                FileKind::Link
            } else {
                FileKind::File
            };
            let mut inner = (path, (kind, id));
            while !inner.0.is_empty() {
                let (path, found) = inner;
                let (directory, name) = match path.iter().rposition(|&byte| byte == b'/') {
                    Some(slash) => (path[..slash].to_vec(), path[slash + 1..].to_vec()),
                    None => (Vec::new(), path),
                };
                let is_new = !index.0.contains_key(&directory);
                index
                    .0
                    .entry(directory.clone())
                    .or_default()
                    .insert(name, found);
                if !is_new {
                    break;
                }
                inner = (directory, (FileKind::Directory, String::new()));
            }
        }
        index
    }

    fn get(&self, path: &ProjectPath) -> Option<&(FileKind, String)> {
        let directory = path.parent()?;
        let names = self.0.get(directory.relative().as_bytes())?;
        names.get(path.basename().as_bytes())
    }

    pub(crate) fn kind(&self, path: &ProjectPath) -> Option<FileKind> {
        if path.is_root() {
            return Some(FileKind::Directory);
        }
        self.get(path).map(|(kind, _)| *kind)
    }

    /// Returns the id of the content of the file at a path, if there is one.
    pub(crate) fn file(&self, path: &ProjectPath) -> Option<&str> {
        let found = self.get(path).filter(|(kind, _)| *kind == FileKind::File);
        found.map(|(_, id)| id.as_str())
    }

    /// Returns all files, at any depth below a directory, whose paths are UTF-8, in no particular order.
    pub(crate) fn files_below(&self, directory: &ProjectPath) -> impl Iterator<Item = ProjectPath> {
        let prefix = directory.relative().as_bytes();
        let is_below = |path: &[u8]| {
            path.strip_prefix(prefix)
                .is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
        };
        let directories = self.0.iter().filter(move |(path, _)| is_below(path));
        directories.flat_map(|(path, entries)| {
            let directory = std::str::from_utf8(path)
                .ok()
                .and_then(|it| ProjectPath::root().resolve(it).ok());
            entries.iter().filter_map(move |(name, (kind, _))| {
                let name = std::str::from_utf8(name).ok()?;
                (*kind == FileKind::File).then(|| directory.as_ref().map(|it| it.join(name)))?
            })
        })
    }

    fn children(&self, directory: &[u8]) -> Vec<(OsString, FileKind)> {
        let names = self.0.get(directory).into_iter().flatten();
        let children = names.map(|(name, (kind, _))| (os_name(name), *kind));
        children.collect()
    }
}

/// Returns the bytes of a relative path, `/`-separated.
fn tree_path(path: &Path) -> Vec<u8> {
    let names = path.iter().map(OsStr::as_encoded_bytes);
    names.collect::<Vec<_>>().join(&b'/')
}

#[cfg(unix)]
fn os_name(name: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(name.to_vec())
}

#[cfg(not(unix))]
fn os_name(name: &[u8]) -> OsString {
    String::from_utf8_lossy(name).into_owned().into()
}

pub(crate) struct SourceTree<'t> {
    pub(crate) root: &'t Path,
    listed: Option<ListedTree<'t>>,
}

struct ListedTree<'t> {
    tree: &'t dyn FileTree,
    index: Arc<TreeIndex>,
    /// The contents of configuration files, by id.
    contents: HashMap<String, Option<Vec<u8>>>,
}

impl<'t> SourceTree<'t> {
    pub(crate) fn on_disk(root: &'t Path) -> Self {
        SourceTree { root, listed: None }
    }

    /// Returns the files of a tree, which replaces the content of the root.
    pub(crate) fn of_tree(root: &'t Path, tree: &'t dyn FileTree) -> io::Result<Self> {
        let entries = tree.entries()?;
        let is_wanted = |entry: &&TreeEntry| {
            let name = entry.path.rsplit(|&byte| byte == b'/').next();
            !entry.is_link && name.is_some_and(|name| is_configuration(&os_name(name)))
        };
        let wanted = entries.iter().filter(is_wanted);
        let mut ids: Vec<&str> = wanted.map(|entry| &*entry.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let contents = tree.read(&ids, CONFIGURATION.bytes)?;
        let contents = ids.iter().map(|&id| id.to_owned()).zip(contents).collect();
        let index = Arc::new(TreeIndex::new(entries));
        let listed = Some(ListedTree {
            tree,
            index,
            contents,
        });
        Ok(SourceTree { root, listed })
    }

    pub(crate) fn tree(&self) -> Option<(&TreeIndex, &dyn FileTree)> {
        let listed = self.listed.as_ref()?;
        Some((&listed.index, listed.tree))
    }

    pub(crate) fn index(&self) -> Option<Arc<TreeIndex>> {
        self.listed.as_ref().map(|listed| listed.index.clone())
    }

    /// Returns the kind of a file, following links on disk; `None` if it doesn't exist, or is a link in a tree.
    pub(crate) fn kind(&self, path: &ProjectPath) -> io::Result<Option<FileKind>> {
        if let Some(listed) = &self.listed
            && let Some(kind) = listed.index.kind(path)
        {
            return Ok((kind != FileKind::Link).then_some(kind));
        }
        if !self.is_as_on_disk(path) {
            return Ok(None);
        }
        let found = if_there(fs::metadata(path.to_host(self.root)))?;
        Ok(found.map(|found| FileKind::of(found.file_type())))
    }

    /// Returns whether there is anything at a path, even a broken link.
    pub(crate) fn exists(&self, path: &ProjectPath) -> io::Result<bool> {
        let is_listed = |listed: &ListedTree<'_>| listed.index.kind(path).is_some();
        if self.listed.as_ref().is_some_and(is_listed) {
            return Ok(true);
        }
        let found = if_there(path.to_host(self.root).symlink_metadata());
        Ok(self.is_as_on_disk(path) && found?.is_some())
    }

    /// Returns the names in a directory that are UTF-8, in any order.
    pub(crate) fn names(&self, directory: &ProjectPath) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        if self.is_as_on_disk(directory) {
            let entries = if_there(fs::read_dir(directory.to_host(self.root)))?;
            for entry in entries.into_iter().flatten() {
                names.extend(entry?.file_name().into_string());
            }
        }
        if let Some(listed) = &self.listed {
            names.retain(|name| listed.tree.is_as_on_disk(&directory.join(name)));
            let children = listed
                .index
                .children(directory.relative().as_bytes())
                .into_iter();
            names.extend(children.filter_map(|(name, _)| name.into_string().ok()));
            names.sort_unstable();
            names.dedup();
        }
        Ok(names)
    }

    fn is_as_on_disk(&self, path: &ProjectPath) -> bool {
        let listed = self.listed.as_ref();
        listed.is_none_or(|listed| listed.tree.is_as_on_disk(path))
    }

    /// Reads a configuration file. On disk, `plain` means that it is known to be no link.
    pub(super) fn text(&self, host: &Path, plain: bool) -> Result<String, TextError> {
        let Some(listed) = &self.listed else {
            return read_text(host, plain, Some(self.root), &CONFIGURATION);
        };
        let found = ProjectPath::from_host(self.root, host);
        if let Some(path) = &found
            && listed.index.get(path).is_none()
            && listed.tree.is_as_on_disk(path)
        {
            return read_text(host, plain, Some(self.root), &CONFIGURATION);
        }
        let found = found.and_then(|path| listed.index.get(&path));
        let Some((FileKind::File, id)) = found else {
            let what = match found {
                Some((FileKind::Link, _)) => {
                    "is a symbolic link, which is not followed in a commit"
                }
                _ => "is not a regular file",
            };
            return Err(TextError::Refused {
                why: what.to_owned(),
                help: "name the file itself",
            });
        };
        let content = if let Some(content) = listed.contents.get(id) {
            content.clone()
        } else {
            let read = listed.tree.read(&[id], CONFIGURATION.bytes);
            read.map_err(TextError::Io)?.into_iter().next().flatten()
        };
        decode(content.ok_or_else(|| text::too_large(&CONFIGURATION))?)
    }

    /// Returns what is in a directory, in any order.
    pub(super) fn entries(&self, directory: &Path) -> io::Result<Vec<(OsString, FileKind)>> {
        let Some(listed) = &self.listed else {
            let entries = fs::read_dir(directory)?.map(|entry| {
                let entry = entry?;
                Ok((entry.file_name(), FileKind::of(entry.file_type()?)))
            });
            return entries.collect();
        };
        let relative = directory.strip_prefix(self.root).unwrap_or(directory);
        Ok(listed.index.children(&tree_path(relative)))
    }
}
