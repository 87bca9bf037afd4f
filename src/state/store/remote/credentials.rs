//! Credentials that the client of the store does not find itself.

use std::env;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider};
use object_store::{ClientOptions, CredentialProvider, Error, Result, RetryConfig};
use serde::Deserialize;

use crate::project::host::host_variable;

/// Credentials are renewed this long before they expire.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);

/// How long the machine may take to give credentials.
const MACHINE_TIMEOUT: Duration = Duration::from_secs(2);

/// The exit statuses of an `aws` that lacks the command, or is only a placeholder for the program.
const NOT_LOOKED: [i32; 3] = [2, 127, 252];

/// The credentials that the program `aws` gives: it knows all the ways to get them.
pub(super) struct AwsProgram {
    /// The profile; by default, the one that `aws` chooses.
    profile: Option<String>,
    /// The credentials of the machine, if there is no `aws`.
    machine: Option<AwsCredentialProvider>,
    known: Mutex<Option<CachedCredentials>>,
}

/// Credentials and the time at which they expire.
type CachedCredentials = (Arc<AwsCredential>, Option<Timestamp>);

impl fmt::Debug for AwsProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Leaves out the credentials.
        f.debug_struct("AwsProgram")
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum NoCredentials {
    /// A profile is named, and gives none.
    #[error("no credentials for the profile `{profile}`: {why}")]
    Profile { profile: String, why: String },
    /// No profile is set, and no source has credentials.
    #[error(
        "no credentials found: not in the environment (`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`), not with `aws configure export-credentials` ({program}), and not on this machine ({machine})"
    )]
    Anywhere { program: String, machine: String },
}

impl From<NoCredentials> for Error {
    fn from(error: NoCredentials) -> Self {
        Error::Generic {
            store: "S3",
            source: error.into(),
        }
    }
}

/// The output of `aws configure export-credentials`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ExportedCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<Timestamp>,
}

/// Why `aws` has given no credentials.
struct NotExported {
    why: String,
    has_looked: bool,
}

fn variable(name: &str) -> Option<String> {
    host_variable(name).filter(|value| !value.is_empty())
}

/// Returns the profile of the environment, unless it has credentials itself.
pub(super) fn profile_of_environment() -> Option<String> {
    match variable("AWS_ACCESS_KEY_ID") {
        Some(_) => None,
        None => variable("AWS_PROFILE"),
    }
}

pub(super) fn are_in_environment() -> bool {
    let has = |names: &[&str]| names.iter().all(|name| variable(name).is_some());
    has(&["AWS_ACCESS_KEY_ID"])
        || has(&["AWS_SECRET_ACCESS_KEY"])
        || has(&["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"])
        || has(&["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"])
        || has(&[
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ])
}

/// Returns who has the credentials of a machine in the cloud, unless that is not to be asked.
pub(super) fn of_machine() -> Result<Option<AwsCredentialProvider>> {
    let is_disabled = variable("AWS_EC2_METADATA_DISABLED");
    if is_disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    // Only its credentials are used. On other machines, its requests may hang.
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name("unused")
        .with_client_options(ClientOptions::new().with_timeout(MACHINE_TIMEOUT))
        .with_retry(RetryConfig {
            max_retries: 1,
            retry_timeout: MACHINE_TIMEOUT,
            ..RetryConfig::default()
        });
    for (name, key) in [
        (
            "AWS_EC2_METADATA_SERVICE_ENDPOINT",
            AmazonS3ConfigKey::MetadataEndpoint,
        ),
        ("AWS_METADATA_ENDPOINT", AmazonS3ConfigKey::MetadataEndpoint),
        ("AWS_IMDSV1_FALLBACK", AmazonS3ConfigKey::ImdsV1Fallback),
    ] {
        if let Some(value) = variable(name) {
            builder = builder.with_config(key, value.trim_end_matches('/'));
        }
    }
    Ok(Some(Arc::clone(builder.build()?.credentials())))
}

/// Returns whether the environment has nothing that Azure accepts, so that `az` is asked.
pub(super) fn needs_azure_cli() -> bool {
    let is_credential = |name: &str| {
        name.starts_with("AZURE_") && name != "AZURE_CONFIG_DIR"
            || ["IDENTITY_ENDPOINT", "MSI_ENDPOINT"].contains(&name)
    };
    let mut names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    !names.any(|name| is_credential(&name))
}

impl AwsProgram {
    pub(super) fn of_profile(name: String) -> Self {
        AwsProgram {
            profile: Some(name),
            machine: None,
            known: Mutex::default(),
        }
    }

    /// Uses the credentials of `aws` or, without that program, those of the machine.
    pub(super) fn or_machine(machine: Option<AwsCredentialProvider>) -> Self {
        AwsProgram {
            profile: None,
            machine,
            known: Mutex::default(),
        }
    }

    fn export(&self) -> std::result::Result<CachedCredentials, NotExported> {
        let mut aws = Command::new("aws");
        aws.args(["configure", "export-credentials", "--format", "process"]);
        if let Some(profile) = &self.profile {
            aws.args(["--profile", profile]);
        }
        let output = aws
            .stdin(Stdio::null())
            .output()
            .map_err(|error| NotExported {
                why: match error.kind() {
                    io::ErrorKind::NotFound => "the program `aws` was not found".to_owned(),
                    _ => format!("cannot start `aws`: {error}"),
                },
                has_looked: false,
            })?;
        let wrong = |why: &str| NotExported {
            why: why.to_owned(),
            has_looked: output
                .status
                .code()
                .is_none_or(|code| !NOT_LOOKED.contains(&code)),
        };
        if !output.status.success() {
            if output
                .status
                .code()
                .is_some_and(|code| NOT_LOOKED.contains(&code))
            {
                return Err(wrong(
                    "this version of `aws` does not have that command: update it",
                ));
            }
            // The lines before may be its usage.
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said
                .lines()
                .rev()
                .map(str::trim)
                .find(|line| !line.is_empty());
            return Err(wrong(said.unwrap_or("it failed without an error message")));
        }
        // Errors quote the text, which holds secrets.
        let exported: ExportedCredentials = serde_json::from_slice(&output.stdout)
            .map_err(|_| wrong("`aws` printed no credentials"))?;
        let credential = AwsCredential {
            key_id: exported.access_key_id,
            secret_key: exported.secret_access_key,
            token: exported.session_token,
        };
        Ok((Arc::new(credential), exported.expiration))
    }

    async fn credential(&self) -> Result<Arc<AwsCredential>> {
        let failure = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((credential, expiration)) = &*known
                && expiration.is_none_or(|end| end.duration_since(Timestamp::now()) > MARGIN)
            {
                return Ok(Arc::clone(credential));
            }
            match self.export() {
                Ok((credential, expiration)) => {
                    *known = Some((Arc::clone(&credential), expiration));
                    return Ok(credential);
                }
                Err(failure) => failure,
            }
        };
        let NotExported { why, has_looked } = failure;
        if let Some(profile) = self.profile.clone() {
            return Err(NoCredentials::Profile { profile, why }.into());
        }
        let machine = match &self.machine {
            None => "`AWS_EC2_METADATA_DISABLED` is set".to_owned(),
            Some(_) if has_looked => "`aws` looked there too".to_owned(),
            Some(machine) => match machine.get_credential().await {
                Ok(credential) => return Ok(credential),
                Err(_) => "its metadata service returned none".to_owned(),
            },
        };
        let program = why;
        Err(NoCredentials::Anywhere { program, machine }.into())
    }
}

impl CredentialProvider for AwsProgram {
    type Credential = AwsCredential;

    fn get_credential<'s, 'f>(
        &'s self,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<AwsCredential>>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.credential())
    }
}
