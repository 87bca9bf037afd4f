//! The directory that a user names for something new.

use std::io;
use std::path::{Component, Path};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::on_disk::if_there;
use crate::path::{KeyFilter, ProjectPath};
use crate::printable::printable;
use crate::project::discover::SKIP_MARKS;

impl Context {
    /// Returns the directory of a command-line path: from the project root if it begins with `/`, else from the
    /// working directory. It need not exist. `verb` is what cannot be done otherwise: `create`.
    pub(super) fn directory_arg(&self, verb: &str, written: &Path) -> Result<ProjectPath> {
        let cannot = |why: String| cannot(verb, written, &why);
        let root = &self.project.root;
        let outside = || cannot(format!("outside of the project `{}`", root.display()));
        let mut text = String::new();
        for component in written.components() {
            match component {
                Component::Prefix(_) => return Err(outside()),
                Component::RootDir => {}
                other => {
                    let name = other.as_os_str().to_str();
                    text += name.ok_or_else(|| cannot("not UTF-8".to_owned()))?;
                }
            }
            text += "/";
        }
        self.directory.resolve(&text).map_err(|_| outside())
    }

    /// Checks that a stack in a directory would belong to the project: nothing on the way is a link, a file or left
    /// out of it. The directory need not exist.
    pub(super) fn check_new(&self, verb: &str, written: &Path, path: &ProjectPath) -> Result<()> {
        let cannot = |why: String| cannot(verb, written, &why);
        if let Ok(inside) = written.strip_prefix(&self.project.root) {
            let inside = inside.display();
            let why = format!("a leading `/` is the project root; write `/{inside}`");
            return Err(cannot(why));
        }
        if let Some(name) = path.components().find(|name| name.starts_with('.')) {
            let why = format!(
                "`{name}` begins with a dot, and such directories are not searched for stacks"
            );
            return Err(cannot(why));
        }
        if let (_, Some(key)) = KeyFilter::split(path.as_str()) {
            let why = format!("`{key}` names an instance, which `for_each` in the stack declares");
            return Err(cannot(why));
        }
        let mut nested = self.project.nested_projects.iter();
        if let Some(nested) = nested.find(|it| path.is_at_or_below(it)) {
            let why = format!("`{nested}` is a project of its own: change into it");
            return Err(cannot(why));
        }
        let mut host = self.project.root.clone();
        let mut place = ProjectPath::root();
        let names = path.components().map(Some).chain([None]);
        for name in names {
            for mark in SKIP_MARKS {
                if self.exists(&host.join(mark))? {
                    let why = format!("`{}` keeps it out of the project", place.join(mark));
                    return Err(cannot(why));
                }
            }
            let Some(name) = name else { break };
            host.push(name);
            place = place.join(name);
            let found = if_there(host.symlink_metadata());
            let found = found.map_err(|error| failed_look(&place, error))?;
            let Some(kind) = found.map(|it| it.file_type()) else {
                return Ok(());
            };
            if kind.is_symlink() {
                return Err(cannot(format!("`{place}` is a symbolic link")));
            } else if !kind.is_dir() {
                return Err(cannot(format!("`{place}` is not a directory")));
            }
        }
        Ok(())
    }

    pub(super) fn is_there(&self, path: &ProjectPath) -> Result<bool> {
        self.exists(&path.to_host(&self.project.root))
    }

    fn exists(&self, host: &Path) -> Result<bool> {
        let found = if_there(host.symlink_metadata());
        let found = found.map_err(|error| {
            let place = ProjectPath::from_host(&self.project.root, host);
            failed_look(&place.unwrap_or_else(ProjectPath::root), error)
        })?;
        Ok(found.is_some())
    }
}

fn failed_look(place: &ProjectPath, error: io::Error) -> Error {
    Error::described(format!("failed to look at `{place}`"), error)
}

pub(super) fn cannot(verb: &str, written: &Path, why: &str) -> Error {
    let written = written.to_string_lossy();
    Error::usage(format!("cannot {verb} `{}`: {why}", printable(&written)))
}
