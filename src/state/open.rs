//! Opens the backend that the configuration names.

use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::backend::Backend;
use super::holder::HolderFile;
use super::store::{FolderLocation, LocalStore, StoreError};
use crate::ascii::hex;
use crate::folder;
use crate::project::config::{BackendConfig, DEFAULT_NAMESPACE, LocalBackend, StateConfig};

/// Opens the backend of the project at `root`. Nothing is read, and no request is sent. Fails if a
/// client for the backend cannot be created.
pub fn open(config: &StateConfig, root: &Path) -> Result<Backend, StoreError> {
    let own_key = || format!("{}/{}", config.project, config.namespace);
    let (store, key) = match &config.backend {
        BackendConfig::Local(backend) => {
            let (place, base) = local(backend, &config.namespace, root);
            let holder = HolderFile::new(place.clone(), format!("{base}.holder"));
            return Ok(in_folder(place, base, config.backups).with_holder(holder));
        }
        BackendConfig::S3(s3) => (super::store::s3(s3)?, &s3.key),
        BackendConfig::Gcs(gcs) => (super::store::gcs(gcs)?, &gcs.key),
        BackendConfig::Azurerm(azure) => (super::store::azure(azure)?, &azure.key),
    };
    let base = key.clone().unwrap_or_else(own_key);
    let backend = Backend::new(store, base, config.backups);
    let digest = Sha256::digest(backend.address());
    let place = FolderLocation::Own(root.to_owned());
    let holder = HolderFile::new(place, format!("state/{}.holder", hex(&digest[..8])));
    Ok(backend.with_holder(holder))
}

/// Opens the place in the folder of a project without a state where its state would be. Jobs of work orders keep their
/// results there.
pub fn open_without_state(root: &Path) -> Backend {
    let (place, base) = local(&LocalBackend::default(), DEFAULT_NAMESPACE, root);
    in_folder(place, base, 0)
}

fn in_folder(place: FolderLocation, base: String, backups: usize) -> Backend {
    let store = Box::new(LocalStore::new(place, base.clone()));
    Backend::new(store, base, backups)
}

/// Returns the folder and the key of a local document.
fn local(backend: &LocalBackend, namespace: &str, root: &Path) -> (FolderLocation, String) {
    let own = FolderLocation::Own(root.to_owned());
    let Some(path) = &backend.path else {
        return (own, format!("state/{namespace}"));
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
        return (own, names.join("/"));
    }
    let file = root.join(path);
    let base = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let directory = file.parent().unwrap_or(root).to_owned();
    (FolderLocation::Named(directory), base)
}
