//! Replaces buckets in an `orch` that was built without them.

use super::{Store, StoreError};
use crate::project::config::{AzureBackend, GcsBackend, S3Backend};

pub(in crate::state) fn s3(backend: &S3Backend) -> Result<Box<dyn Store>, StoreError> {
    missing(&backend.bucket)
}

pub(in crate::state) fn gcs(backend: &GcsBackend) -> Result<Box<dyn Store>, StoreError> {
    missing(&backend.bucket)
}

pub(in crate::state) fn azure(backend: &AzureBackend) -> Result<Box<dyn Store>, StoreError> {
    missing(&backend.container)
}

fn missing(address: &str) -> Result<Box<dyn Store>, StoreError> {
    Err(StoreError {
        doing: "open",
        address: address.to_owned(),
        problem: "this orch was built without the feature `remote-state`".to_owned(),
        failure: super::StoreFailure::Other,
    })
}
