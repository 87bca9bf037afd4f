//! Opens the backend that the configuration names.

use std::path::{Component, Path, PathBuf};

use super::backend::Backend;
use super::store::{LocalStore, Store, StoreError};
use crate::folder;
use crate::project::config::{BackendConfig, LocalBackend, StateConfig};

/// Opens the backend of the project at `root`. Nothing is read, and nobody asked.
///
/// # Errors
///
/// If a client for the backend cannot be made.
pub fn open(config: &StateConfig, root: &Path) -> Result<Backend, StoreError> {
    let own_key = || format!("{}/{}", config.project, config.namespace);
    let (store, base): (Box<dyn Store>, String) = match &config.backend {
        BackendConfig::Local(backend) => local(backend, &config.namespace, root),
        BackendConfig::S3(s3) => (
            super::store::s3(s3)?,
            s3.key.clone().unwrap_or_else(own_key),
        ),
        BackendConfig::Gcs(gcs) => (
            super::store::gcs(gcs)?,
            gcs.key.clone().unwrap_or_else(own_key),
        ),
        BackendConfig::Azurerm(azure) => (
            super::store::azure(azure)?,
            azure.key.clone().unwrap_or_else(own_key),
        ),
    };
    Ok(Backend::new(store, base, config.backups))
}

fn local(backend: &LocalBackend, namespace: &str, root: &Path) -> (Box<dyn Store>, String) {
    let in_own = |base: String| -> (Box<dyn Store>, String) {
        let store = LocalStore::own(root.to_owned(), base.clone());
        (Box::new(store), base)
    };
    let Some(path) = &backend.path else {
        return in_own(format!("state/{namespace}"));
    };
    let path: PathBuf = Path::new(path)
        .components()
        .filter(|part| *part != Component::CurDir)
        .collect();
    let within = path.strip_prefix(folder::NAME).ok().filter(|within| {
        within
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
    });
    if let Some(within) = within {
        let names: Vec<_> = within.iter().map(|name| name.to_string_lossy()).collect();
        return in_own(names.join("/"));
    }
    let file = root.join(path);
    let base = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let directory = file.parent().unwrap_or(root).to_owned();
    (Box::new(LocalStore::named(directory, base.clone())), base)
}
