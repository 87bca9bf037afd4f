//! A bucket as a store: S3, Google Cloud Storage, Azure.
//!
//! Each request is waited for here, on the thread that asks: nobody else uses the runtime. Nothing is
//! started before a backend of this kind is opened.

mod credentials;

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    RetryConfig, UpdateVersion,
};
use tokio::runtime::{Builder, Runtime};

use self::credentials::{AwsProgram, NoCredentials};
use super::{Condition, Object, Presence, PutError, Store, StoreError, Version};
use crate::project::config::{AzureBackend, GcsBackend, S3Backend};

/// How long a request may take. A document of some megabytes may have to go over a slow line.
const TIMEOUT: Duration = Duration::from_secs(45);

/// How long it may take to reach the other side.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request that fails is tried again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Objects in a bucket.
struct RemoteStore {
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
    /// What the addresses of objects begin with: `s3://acme-orch`.
    address: String,
}

/// Returns the store of an S3 bucket.
pub(in crate::state) fn s3(backend: &S3Backend) -> Result<Box<dyn Store>, StoreError> {
    let address = format!("s3://{}", backend.bucket);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(&backend.bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_disable_bulk_delete(true)
        .with_client_options(client(backend.endpoint.as_deref()))
        .with_allow_http(is_http(backend.endpoint.as_deref()))
        .with_retry(retries());
    if let Some(region) = &backend.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &backend.endpoint {
        builder = builder
            .with_endpoint(endpoint.trim_end_matches('/'))
            .with_virtual_hosted_style_request(false);
    }
    let profile = backend
        .profile
        .clone()
        .or_else(credentials::profile_of_environment);
    prepare();
    let cannot_open = |error: Error| cannot_open(&address, &error);
    let program = match profile {
        Some(profile) => Some(AwsProgram::of_profile(profile)),
        None if credentials::are_in_environment() => None,
        None => {
            let machine = credentials::of_machine().map_err(cannot_open)?;
            Some(AwsProgram::or_machine(machine))
        }
    };
    if let Some(program) = program {
        builder = builder.with_credentials(Arc::new(program));
    }
    let store = builder.build().map_err(cannot_open)?;
    RemoteStore::open(Arc::new(store), address)
}

/// Returns the store of a bucket of Google Cloud Storage.
pub(in crate::state) fn gcs(backend: &GcsBackend) -> Result<Box<dyn Store>, StoreError> {
    let address = format!("gs://{}", backend.bucket);
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(&backend.bucket)
        .with_client_options(client(backend.endpoint.as_deref()))
        .with_retry(retries());
    if let Some(endpoint) = &backend.endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    prepare();
    let store = builder
        .build()
        .map_err(|error| cannot_open(&address, &error))?;
    RemoteStore::open(Arc::new(store), address)
}

/// Returns the store of a container of Azure Blob Storage.
pub(in crate::state) fn azure(backend: &AzureBackend) -> Result<Box<dyn Store>, StoreError> {
    let address = format!("az://{}/{}", backend.account, backend.container);
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_account(&backend.account)
        .with_container_name(&backend.container)
        .with_client_options(client(backend.endpoint.as_deref()))
        .with_allow_http(is_http(backend.endpoint.as_deref()))
        .with_retry(retries());
    if let Some(endpoint) = &backend.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    if credentials::needs_azure_cli() {
        builder = builder.with_use_azure_cli(true);
    }
    prepare();
    let store = builder
        .build()
        .map_err(|error| cannot_open(&address, &error))?;
    RemoteStore::open(Arc::new(store), address)
}

/// Chooses the cryptography of TLS.
fn prepare() {
    // Fails only if it has been chosen.
    _ = rustls::crypto::ring::default_provider().install_default();
}

fn is_http(endpoint: Option<&str>) -> bool {
    endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
}

fn client(endpoint: Option<&str>) -> ClientOptions {
    ClientOptions::new()
        .with_timeout(TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_allow_http(is_http(endpoint))
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 3,
        retry_timeout: RETRY_TIMEOUT,
    }
}

fn cannot_open(address: &str, error: &dyn std::error::Error) -> StoreError {
    StoreError {
        doing: "open",
        address: address.to_owned(),
        problem: chain(error),
    }
}

/// Returns what an error and its causes say, each once: most repeat their cause.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += ": ";
            text += &cause_text;
        }
        source = cause.source();
    }
    text
}

impl RemoteStore {
    fn open(store: Arc<dyn ObjectStore>, address: String) -> Result<Box<dyn Store>, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| cannot_open(&address, &error))?;
        Ok(Box::new(RemoteStore {
            store,
            runtime,
            address,
        }))
    }

    fn error(&self, doing: &'static str, key: &str, error: &Error) -> StoreError {
        let problem = match error {
            Error::PermissionDenied { .. } => format!("access is denied: {}", chain(error)),
            Error::Unauthenticated { .. } => {
                format!("the credentials are not accepted: {}", chain(error))
            }
            Error::Generic { source, .. } if source.is::<NoCredentials>() => source.to_string(),
            error => chain(error),
        };
        StoreError {
            doing,
            address: self.address(key),
            problem,
        }
    }
}

impl Store for RemoteStore {
    fn get(&self, key: &str) -> Result<Option<Object>, StoreError> {
        let get = async {
            let found = self.store.get(&Path::from(key)).await?;
            let version = Version {
                tag: found.meta.e_tag.clone(),
                number: found.meta.version.clone(),
            };
            let bytes = found.bytes().await?.to_vec();
            Ok(Object { bytes, version })
        };
        match self.runtime.block_on(get) {
            Ok(object) => Ok(Some(object)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error("read", key, &error)),
        }
    }

    fn put(&self, key: &str, bytes: &[u8], condition: &Condition) -> Result<Version, PutError> {
        let mode = match condition {
            Condition::Absent => PutMode::Create,
            Condition::Unchanged(version) => PutMode::Update(UpdateVersion {
                e_tag: version.tag.clone(),
                version: version.number.clone(),
            }),
        };
        let options = PutOptions::from(mode);
        let path = Path::from(key);
        let put = self.store.put_opts(&path, bytes.to_vec().into(), options);
        match self.runtime.block_on(put) {
            Ok(put) => Ok(Version {
                tag: put.e_tag,
                number: put.version,
            }),
            Err(
                Error::AlreadyExists { .. }
                | Error::Precondition { .. }
                | Error::NotModified { .. }
                | Error::NotFound { .. },
            ) => Err(PutError::Refused),
            Err(error) => Err(PutError::Unknown(self.error("write", key, &error))),
        }
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        let path = Path::from(key);
        match self.runtime.block_on(self.store.delete(&path)) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error("remove", key, &error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (directory, name) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let path = Path::from(directory);
        let listed = self.store.list_with_delimiter(Some(&path));
        let listed = self.runtime.block_on(listed);
        let listed = listed.map_err(|error| self.error("list", prefix, &error))?;
        let names = listed
            .objects
            .iter()
            .filter_map(|object| object.location.filename());
        let names = names.filter(|found| found.starts_with(name));
        let mut keys: Vec<String> = match directory {
            "" => names.map(str::to_owned).collect(),
            directory => names.map(|found| format!("{directory}/{found}")).collect(),
        };
        keys.sort_unstable();
        Ok(keys)
    }

    fn address(&self, key: &str) -> String {
        format!("{}/{key}", self.address)
    }

    fn presence(&self) -> Result<Presence, StoreError> {
        Ok(Presence::Unknown)
    }
}
