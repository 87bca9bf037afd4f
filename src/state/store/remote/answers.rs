//! The last answer of a store. `object_store` reports neither its time nor, with most errors, its status.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, Result};

use crate::printable::printable;

#[derive(Debug, Clone, Default)]
pub(super) struct StoreResponse {
    pub(super) status: u16,
    /// The code of an error: `NoSuchBucket`.
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    /// The time by the clock of the store.
    pub(super) time: Option<Timestamp>,
}

impl StoreResponse {
    /// Describes an error: `404 NoSuchBucket: The specified bucket does not exist`.
    pub(super) fn text(&self) -> String {
        let mut text = self.status.to_string();
        if let Some(code) = &self.code {
            text += &format!(" {}", printable(code));
        }
        if let Some(message) = &self.message {
            text += &format!(": {}", printable(message));
        }
        text
    }

    pub(super) fn has_code(&self, codes: &[&str]) -> bool {
        self.code
            .as_deref()
            .is_some_and(|code| codes.contains(&code))
    }
}

/// The last answer to a request about a bucket. Requests for credentials do not count.
#[derive(Debug, Clone)]
pub(super) struct LastResponse {
    bucket: String,
    last: Arc<Mutex<Option<StoreResponse>>>,
}

impl LastResponse {
    pub(super) fn about(bucket: &str) -> Self {
        LastResponse {
            bucket: bucket.to_owned(),
            last: Arc::default(),
        }
    }

    /// Forgets the last answer: a request begins.
    pub(super) fn clear(&self) {
        self.set(None);
    }

    /// Returns the last answer, if there was any since the request began.
    pub(super) fn last(&self) -> Option<StoreResponse> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }

    fn set(&self, answer: Option<StoreResponse>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

impl HttpConnector for LastResponse {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        let answers = self.clone();
        Ok(HttpClient::new(RecordingClient { client, answers }))
    }
}

/// A client whose answers are noted.
#[derive(Debug)]
struct RecordingClient {
    client: HttpClient,
    answers: LastResponse,
}

impl RecordingClient {
    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_ours = request.uri().to_string().contains(&self.answers.bucket);
        let response = self.client.execute(request).await?;
        if !is_ours {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let date = parts
            .headers
            .get("date")
            .and_then(|date| date.to_str().ok());
        let mut answer = StoreResponse {
            status: parts.status.as_u16(),
            time: date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok()),
            ..StoreResponse::default()
        };
        if parts.status.is_success() {
            self.answers.set(Some(answer));
            return Ok(HttpResponse::from_parts(parts, body));
        }
        let body = body.bytes().await?;
        let text = String::from_utf8_lossy(&body);
        answer.code = element(&text, "Code");
        answer.message = element(&text, "Message");
        drop(text);
        self.answers.set(Some(answer));
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

impl HttpService for RecordingClient {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.answer(request))
    }
}

/// Returns the content of the first element of an XML text with this name.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let inner = inner.split_whitespace().collect::<Vec<_>>().join(" ");
    (!inner.is_empty()).then_some(inner)
}
