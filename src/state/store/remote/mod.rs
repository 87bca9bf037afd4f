//! A bucket as a store: S3, Google Cloud Storage, Azure.
//!
//! Requests block the calling thread; the runtime has no other users. Nothing starts before a bucket is opened.

mod answers;
mod credentials;

use std::cell::OnceCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use object_store::aws::{AmazonS3Builder, Checksum, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::HttpError;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    RetryConfig, UpdateVersion,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use self::answers::{LastResponse, StoreResponse};
use self::credentials::{AwsProgram, NoCredentials};
use super::{PutCondition, PutError, Store, StoreError, StoreFailure, StoredObject, Version};
use crate::project::config::{AzureBackend, GcsBackend, S3Backend};

/// How long a request may take. A document of some megabytes may have to go over a slow line.
const TIMEOUT: Duration = Duration::from_secs(45);

/// How long it may take to reach the other side.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request that fails is tried again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a write is sent that the store refuses because of another one at the same time.
const CONFLICTS: u32 = 5;

/// The first pause before such a write is repeated.
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

/// The error codes for a missing bucket.
const NO_BUCKET: [&str; 3] = ["NoSuchBucket", "ContainerNotFound", "InvalidBucketName"];

/// The codes of a store that is at odds about a write with one at the same time. The condition may hold.
const CONFLICT: [&str; 2] = ["ConditionalRequestConflict", "OperationAborted"];

/// How many objects are read at once.
const READ_AT_ONCE: usize = 16;

struct RemoteStore {
    store: Arc<dyn ObjectStore>,
    /// The same store for buckets that refuse objects without a checksum, as those with Object Lock do.
    with_checksum: OnceCell<Arc<dyn ObjectStore>>,
    s3: Option<AmazonS3Builder>,
    answers: LastResponse,
    runtime: Runtime,
    /// The prefix of object addresses: `s3://acme-orch`.
    address: String,
}

pub(in crate::state) fn s3(backend: &S3Backend) -> Result<Box<dyn Store>, StoreError> {
    let address = format!("s3://{}", backend.bucket);
    let answers = LastResponse::about(&backend.bucket);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(&backend.bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_disable_bulk_delete(true)
        .with_http_connector(answers.clone())
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
    let store = builder.clone().build().map_err(cannot_open)?;
    RemoteStore::open(Arc::new(store), Some(builder), answers, address)
}

/// Returns the store of a bucket of Google Cloud Storage.
pub(in crate::state) fn gcs(backend: &GcsBackend) -> Result<Box<dyn Store>, StoreError> {
    let address = format!("gs://{}", backend.bucket);
    let answers = LastResponse::about(&backend.bucket);
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(&backend.bucket)
        .with_http_connector(answers.clone())
        .with_client_options(client(backend.endpoint.as_deref()))
        .with_retry(retries());
    if let Some(endpoint) = &backend.endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    prepare();
    let store = builder
        .build()
        .map_err(|error| cannot_open(&address, &error))?;
    RemoteStore::open(Arc::new(store), None, answers, address)
}

pub(in crate::state) fn azure(backend: &AzureBackend) -> Result<Box<dyn Store>, StoreError> {
    let address = format!("az://{}/{}", backend.account, backend.container);
    let answers = LastResponse::about(&backend.container);
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_account(&backend.account)
        .with_container_name(&backend.container)
        .with_http_connector(answers.clone())
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
    RemoteStore::open(Arc::new(store), None, answers, address)
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

fn cannot_open(address: &str, error: &(dyn std::error::Error + 'static)) -> StoreError {
    StoreError {
        doing: "open",
        address: address.to_owned(),
        problem: chain(error),
        failure: StoreFailure::Other,
    }
}

/// Returns the messages of an error and its causes without repetitions: most repeat their cause.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    text
}

fn causes<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// Returns the kind of failure of an answer, and its message.
fn failure(answer: &StoreResponse) -> (StoreFailure, String) {
    let text = answer.text();
    match answer.status {
        400 | 404 if answer.has_code(&NO_BUCKET) => {
            (StoreFailure::NoBucket, format!("no such bucket ({text})"))
        }
        403 => (StoreFailure::Other, format!("access is denied ({text})")),
        401 => (
            StoreFailure::Other,
            format!("the credentials were rejected ({text})"),
        ),
        409 => (
            StoreFailure::Transient,
            format!("other writes conflict ({text})"),
        ),
        501 => (
            StoreFailure::NotImplemented,
            format!("the store does not implement the request ({text})"),
        ),
        408 | 429 | 500.. => (
            StoreFailure::Transient,
            format!("the store failed ({text})"),
        ),
        _ => (
            StoreFailure::Other,
            format!("the store refused the request ({text})"),
        ),
    }
}

impl RemoteStore {
    fn open(
        store: Arc<dyn ObjectStore>,
        s3: Option<AmazonS3Builder>,
        answers: LastResponse,
        address: String,
    ) -> Result<Box<dyn Store>, StoreError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| cannot_open(&address, &error))?;
        Ok(Box::new(RemoteStore {
            store,
            with_checksum: OnceCell::new(),
            s3,
            answers,
            runtime,
            address,
        }))
    }

    fn error(&self, doing: &'static str, key: &str, error: &Error) -> StoreError {
        let http = causes(error).find_map(|cause| cause.downcast_ref::<HttpError>());
        let answer = self.answers.last().filter(|answer| answer.status >= 300);
        let (failure, problem) = match (http, answer, error) {
            (Some(http), ..) => {
                let problem = std::error::Error::source(http).map_or_else(|| chain(http), chain);
                (
                    StoreFailure::Transient,
                    format!("the store cannot be reached: {problem}"),
                )
            }
            (None, Some(answer), _) => failure(&answer),
            (None, None, Error::Generic { source, .. }) if source.is::<NoCredentials>() => {
                (StoreFailure::Other, source.to_string())
            }
            (None, None, error) => (StoreFailure::Other, chain(error)),
        };
        StoreError {
            doing,
            address: self.address(key),
            problem,
            failure,
        }
    }

    fn request<T>(&self, request: impl Future<Output = T>) -> T {
        self.answers.clear();
        self.runtime.block_on(request)
    }

    /// Returns whether an answer reports a missing object, rather than a missing bucket.
    fn is_absent(&self, error: &Error) -> bool {
        let has_no_bucket = |answer: StoreResponse| answer.has_code(&NO_BUCKET);
        matches!(error, Error::NotFound { .. }) && !self.answers.last().is_some_and(has_no_bucket)
    }

    fn put_once(
        &self,
        key: &str,
        bytes: &[u8],
        condition: &PutCondition,
    ) -> Result<Version, Error> {
        let mode = match condition {
            PutCondition::Absent => PutMode::Create,
            PutCondition::Unchanged(version) => PutMode::Update(UpdateVersion {
                e_tag: version.tag.clone(),
                version: version.number.clone(),
            }),
        };
        let path = Path::from(key);
        let put = |store: &Arc<dyn ObjectStore>| {
            let options = PutOptions::from(mode.clone());
            let put = store.put_opts(&path, bytes.to_vec().into(), options);
            self.request(put)
        };
        let put = match self.with_checksum.get() {
            Some(store) => put(store),
            None => match put(&self.store) {
                Err(_) if self.wants_checksum() => match self.checked() {
                    Some(store) => put(store),
                    None => put(&self.store),
                },
                put => put,
            },
        };
        put.map(|put| Version {
            tag: put.e_tag,
            number: put.version,
        })
    }

    /// Returns whether the last answer was a refusal for want of a checksum.
    fn wants_checksum(&self) -> bool {
        let message = self
            .answers
            .last()
            .filter(|answer| answer.status == 400)
            .and_then(|answer| answer.message);
        message.is_some_and(|message| {
            let message = message.to_ascii_lowercase();
            message.contains("checksum") || message.contains("content-md5")
        })
    }

    /// Returns the store that sends checksums, from now on.
    fn checked(&self) -> Option<&Arc<dyn ObjectStore>> {
        let builder = self.s3.clone()?;
        let store = builder
            .with_checksum_algorithm(Checksum::SHA256)
            .build()
            .ok()?;
        Some(self.with_checksum.get_or_init(|| Arc::new(store)))
    }

    /// Returns whether the last answer leaves open whether the condition of a write holds.
    fn is_conflict(&self) -> bool {
        let answer = self.answers.last();
        answer.is_some_and(|answer| {
            answer.status == 409
                && (answer.has_code(&CONFLICT) || self.s3.is_some() && answer.code.is_none())
        })
    }
}

/// Reads objects, several at once. Returns the contents of those that could be read.
async fn get_at_once(store: &Arc<dyn ObjectStore>, keys: &[String]) -> Vec<Option<Vec<u8>>> {
    let mut found = vec![None; keys.len()];
    let mut left = keys.iter().enumerate();
    let mut running: JoinSet<object_store::Result<(usize, Vec<u8>)>> = JoinSet::new();
    loop {
        while running.len() < READ_AT_ONCE
            && let Some((position, key)) = left.next()
        {
            let (store, path) = (Arc::clone(store), Path::from(key.as_str()));
            running.spawn(async move {
                let bytes = store.get(&path).await?.bytes().await?;
                Ok((position, bytes.to_vec()))
            });
        }
        match running.join_next().await {
            Some(Ok(Ok((position, bytes)))) => found[position] = Some(bytes),
            Some(_) => {}
            None => return found,
        }
    }
}

impl Store for RemoteStore {
    fn get(&self, key: &str) -> Result<Option<StoredObject>, StoreError> {
        let get = async {
            let found = self.store.get(&Path::from(key)).await?;
            let version = Version {
                tag: found.meta.e_tag.clone(),
                number: found.meta.version.clone(),
            };
            let put_at = Timestamp::from_second(found.meta.last_modified.timestamp()).ok();
            let bytes = found.bytes().await?.to_vec();
            Ok((bytes, version, put_at))
        };
        match self.request(get) {
            Ok((bytes, version, put_at)) => Ok(Some(StoredObject {
                bytes,
                version,
                age: self.time().zip(put_at).map(|(now, put_at)| {
                    let age = now.duration_since(put_at).max(SignedDuration::ZERO);
                    age.unsigned_abs()
                }),
            })),
            Err(error) if self.is_absent(&error) => Ok(None),
            Err(error) => Err(self.error("read", key, &error)),
        }
    }

    fn get_all(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut found = self.request(get_at_once(&self.store, keys));
        for (key, bytes) in keys.iter().zip(&mut found) {
            if bytes.is_none() {
                // The answer to a request of its own explains a failure.
                *bytes = self.get(key)?.map(|object| object.bytes);
            }
        }
        Ok(found)
    }

    fn version(&self, key: &str) -> Result<Option<Version>, StoreError> {
        match self.request(self.store.head(&Path::from(key))) {
            Ok(found) => Ok(Some(Version {
                tag: found.e_tag,
                number: found.version,
            })),
            // Without a body, the answer doesn't distinguish a missing bucket from a missing object.
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.error("read", key, &error)),
        }
    }

    fn time(&self) -> Option<Timestamp> {
        self.answers.last()?.time
    }

    fn put(&self, key: &str, bytes: &[u8], condition: &PutCondition) -> Result<Version, PutError> {
        let mut pause = CONFLICT_PAUSE;
        for attempt in 1.. {
            let error = match self.put_once(key, bytes, condition) {
                Ok(version) => return Ok(version),
                Err(error) => error,
            };
            if self.is_conflict() && attempt < CONFLICTS {
                thread::sleep(pause);
                pause *= 2;
                continue;
            }
            let is_refused = match &error {
                Error::AlreadyExists { .. } => !self.is_conflict(),
                Error::Precondition { .. } | Error::NotFound { .. } => {
                    let answer = self.answers.last();
                    !answer.is_some_and(|answer| answer.has_code(&NO_BUCKET))
                }
                Error::NotModified { .. } => true,
                _ => false,
            };
            return Err(if is_refused {
                PutError::Refused
            } else {
                PutError::Unknown(self.error("write", key, &error))
            });
        }
        unreachable!("the last attempt returns")
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.request(self.store.delete(&Path::from(key))) {
            Ok(()) => Ok(()),
            Err(error) if self.is_absent(&error) => Ok(()),
            Err(error) => Err(self.error("remove", key, &error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let (directory, name) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let path = Path::from(directory);
        let listed = self
            .request(self.store.list_with_delimiter(Some(&path)))
            .map_err(|error| self.error("list", prefix, &error))?;
        let names = listed
            .objects
            .iter()
            .filter_map(|object| object.location.filename())
            .filter(|found| found.starts_with(name));
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
}
