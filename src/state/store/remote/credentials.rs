//! Credentials where the client of the store does not find them itself.

use std::env;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use object_store::aws::AwsCredential;
use object_store::{CredentialProvider, Error, Result};
use serde::Deserialize;

/// Credentials that end so soon are asked for anew.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);

/// The credentials of a profile of `aws`, which knows all the ways to get them.
pub(super) struct Profile {
    name: String,
    known: Mutex<Option<(Arc<AwsCredential>, Option<Timestamp>)>>,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Leaves out the credentials.
        f.debug_struct("Profile")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What `aws configure export-credentials` writes.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Exported {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<Timestamp>,
}

/// Returns the profile that the environment names, unless it has credentials itself.
pub(super) fn profile_of_environment() -> Option<String> {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    match variable("AWS_ACCESS_KEY_ID") {
        Some(_) => None,
        None => variable("AWS_PROFILE"),
    }
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

impl Profile {
    pub(super) fn new(name: String) -> Self {
        let known = Mutex::default();
        Profile { name, known }
    }

    fn export(&self) -> Result<(Arc<AwsCredential>, Option<Timestamp>)> {
        let exported = Command::new("aws")
            .args(["configure", "export-credentials", "--format", "process"])
            .args(["--profile", &self.name])
            .stdin(Stdio::null())
            .output();
        let output =
            exported.map_err(|error| self.wrong(&format!("cannot start `aws`: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(self.wrong(said.trim()));
        }
        // The text holds secrets, which an error would quote.
        let exported: Exported = serde_json::from_slice(&output.stdout)
            .map_err(|_| self.wrong("`aws` wrote something that holds no credentials"))?;
        let credential = AwsCredential {
            key_id: exported.access_key_id,
            secret_key: exported.secret_access_key,
            token: exported.session_token,
        };
        Ok((Arc::new(credential), exported.expiration))
    }

    fn credential(&self) -> Result<Arc<AwsCredential>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((credential, expiration)) = &*known
            && expiration.is_none_or(|end| end.duration_since(Timestamp::now()) > MARGIN)
        {
            return Ok(Arc::clone(credential));
        }
        let (credential, expiration) = self.export()?;
        *known = Some((Arc::clone(&credential), expiration));
        Ok(credential)
    }

    fn wrong(&self, why: &str) -> Error {
        let message = format!("no credentials for the profile `{}`: {why}", self.name);
        Error::Generic {
            store: "S3",
            source: message.into(),
        }
    }
}

impl CredentialProvider for Profile {
    type Credential = AwsCredential;

    fn get_credential<'s, 'f>(
        &'s self,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<AwsCredential>>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async { self.credential() })
    }
}
