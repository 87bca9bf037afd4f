//! An object store on loopback that speaks like S3, Google Cloud Storage or Azure, as far as `orch`
//! asks, and loses or refuses the requests that it is told to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use jiff::{SignedDuration, Timestamp};

/// Which of the three it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    S3,
    Gcs,
    Azure,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The request is lost: nothing happens.
    Request,
    /// The answer is lost: it has happened.
    Answer,
    /// It is refused with this status and code: nothing happens.
    Refused(u16, &'static str),
    /// It is refused as a bucket with Object Lock does: puts without a checksum, and removals.
    ObjectLock,
}

struct Stored {
    bytes: Vec<u8>,
    version: u64,
    /// By the clock of the store.
    at: Timestamp,
}

#[derive(Default)]
struct Objects {
    /// By key; the version counts the puts of all objects.
    by_key: BTreeMap<String, Stored>,
    version: u64,
    /// By how much the clock of the store is ahead.
    ahead: SignedDuration,
    /// How many requests there have been.
    requests: usize,
    lost: Option<(Range<usize>, Lost)>,
    is_locked: bool,
    held: Option<(String, Sender<()>, Receiver<()>)>,
    ignores_conditions: bool,
}

/// The store, which has one bucket: `bucket`.
pub(crate) struct BucketServer {
    dialect: Dialect,
    port: u16,
    objects: Arc<Mutex<Objects>>,
}

struct Request {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl BucketServer {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let objects = Arc::<Mutex<Objects>>::default();
        let served = Arc::clone(&objects);
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                thread::spawn(move || serve(&stream, dialect, &served));
            }
        });
        BucketServer {
            dialect,
            port,
            objects,
        }
    }

    /// The backend of a configuration that leads here.
    pub(crate) fn backend(&self) -> String {
        let port = self.port;
        match self.dialect {
            Dialect::S3 => format!(
                "backend \"s3\" {{\n  bucket = \"bucket\"\n  region = \"eu-north-1\"\n  endpoint = \"http://127.0.0.1:{port}\"\n}}"
            ),
            Dialect::Gcs => format!(
                "backend \"gcs\" {{\n  bucket = \"bucket\"\n  endpoint = \"http://127.0.0.1:{port}\"\n}}"
            ),
            Dialect::Azure => format!(
                "backend \"azurerm\" {{\n  storage_account_name = \"account\"\n  container_name = \"bucket\"\n  endpoint = \"http://127.0.0.1:{port}\"\n}}"
            ),
        }
    }

    /// The variables that hold credentials.
    pub(crate) fn credentials(&self) -> [(&'static str, &'static str); 2] {
        match self.dialect {
            Dialect::S3 => [
                ("AWS_ACCESS_KEY_ID", "key"),
                ("AWS_SECRET_ACCESS_KEY", "secret"),
            ],
            Dialect::Gcs => [("GOOGLE_BEARER_TOKEN", "token"), ("GOOGLE_IGNORED", "")],
            Dialect::Azure => [
                ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0"),
                ("AZURE_IGNORED", ""),
            ],
        }
    }

    /// From now on, puts whatever the condition.
    pub(crate) fn ignore_conditions(&self) {
        self.objects.lock().unwrap().ignores_conditions = true;
    }

    /// From now on, is a bucket with Object Lock.
    pub(crate) fn lock_objects(&self) {
        self.objects.lock().unwrap().is_locked = true;
    }

    /// Puts the clock of the store forward.
    pub(crate) fn advance(&self, time: SignedDuration) {
        self.objects.lock().unwrap().ahead += time;
    }

    /// Loses one request: the n-th from now, from 0.
    pub(crate) fn lose(&self, nth: usize, lost: Lost) {
        let mut objects = self.objects.lock().unwrap();
        let nth = objects.requests + nth;
        objects.lost = Some((nth..nth + 1, lost));
    }

    /// Loses so many requests from now on.
    pub(crate) fn lose_next(&self, count: usize, lost: Lost) {
        let mut objects = self.objects.lock().unwrap();
        let next = objects.requests;
        objects.lost = Some((next..next + count, lost));
    }

    /// Holds the answer to the next put of an object back, until something is sent. What is received says
    /// that the object was put.
    pub(crate) fn hold(&self, key: &str) -> (Receiver<()>, Sender<()>) {
        let (put, was_put) = mpsc::channel();
        let (answer, may_answer) = mpsc::channel();
        let held = (key.to_owned(), put, may_answer);
        self.objects.lock().unwrap().held = Some(held);
        (was_put, answer)
    }

    /// How many requests there have been.
    pub(crate) fn requests(&self) -> usize {
        self.objects.lock().unwrap().requests
    }

    /// The keys of all objects.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.objects
            .lock()
            .unwrap()
            .by_key
            .keys()
            .cloned()
            .collect()
    }

    /// What is in an object.
    pub(crate) fn object(&self, key: &str) -> String {
        let objects = self.objects.lock().unwrap();
        let keys: Vec<&String> = objects.by_key.keys().collect();
        let found = objects.by_key.get(key);
        let found = found.unwrap_or_else(|| panic!("no {key} in {keys:?}"));
        String::from_utf8(found.bytes.clone()).unwrap()
    }
}

fn serve(stream: &TcpStream, dialect: Dialect, objects: &Mutex<Objects>) {
    let Some(request) = read(stream) else {
        return;
    };
    let mut objects = objects.lock().unwrap();
    let number = objects.requests;
    objects.requests += 1;
    let lost = objects
        .lost
        .clone()
        .filter(|(range, _)| range.contains(&number));
    let lost = lost.map(|(_, lost)| lost);
    let answer = match lost {
        Some(Lost::Request) => return,
        Some(Lost::Refused(status, code)) => refusal(status, code, ""),
        Some(Lost::ObjectLock) => {
            let refused = object_lock(&request);
            refused.unwrap_or_else(|| objects.answer(dialect, &request))
        }
        _ => {
            let refused = objects.is_locked.then(|| object_lock(&request)).flatten();
            refused.unwrap_or_else(|| objects.answer(dialect, &request))
        }
    };
    let now = objects.now();
    let is_held =
        |key: &str| request.method == "PUT" && request.path.strip_prefix("/bucket/") == Some(key);
    let held = objects.held.take_if(|(key, ..)| is_held(key));
    drop(objects);
    if let Some((_, put, may_answer)) = held {
        // A test that failed waits for nothing.
        _ = put.send(());
        _ = may_answer.recv();
    }
    if lost != Some(Lost::Answer) {
        write(stream, &request, &answer, now);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), decoded(value))
    });
    Some(Request {
        method,
        path: decoded(path),
        query: query.collect(),
        headers,
        body,
    })
}

/// Undoes what makes a text part of an address; nobody here uses anything but ASCII.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        decoded.push(char::from(u8::from_str_radix(digits, 16).unwrap()));
        decoded += rest;
    }
    decoded
}

/// Formats a time as HTTP does.
fn http_date(time: Timestamp) -> String {
    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
    printer.timestamp_to_rfc9110_string(&time).unwrap()
}

/// What a bucket with Object Lock refuses of a request.
fn object_lock(request: &Request) -> Option<Answer> {
    let has_checksum = request.headers.contains_key("x-amz-checksum-sha256");
    match request.method.as_str() {
        "PUT" if !has_checksum => Some(refusal(
            400,
            "InvalidRequest",
            "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters",
        )),
        "DELETE" => Some(refusal(
            403,
            "AccessDenied",
            "Access Denied because object protected by object lock.",
        )),
        _ => None,
    }
}

fn refusal(status: u16, code: &str, message: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    );
    Answer {
        status,
        headers: Vec::new(),
        body: body.into_bytes(),
    }
}

fn write(mut stream: &TcpStream, request: &Request, answer: &Answer, now: Timestamp) {
    let mut text = format!("HTTP/1.1 {} x\r\nConnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("Date: {}\r\n", http_date(now));
    text += &format!("Content-Length: {}\r\n\r\n", answer.body.len());
    let mut bytes = text.into_bytes();
    if request.method != "HEAD" {
        bytes.extend(&answer.body);
    }
    // A client that was killed hears nothing.
    _ = stream.write_all(&bytes);
}

/// S3 tells versions apart by their content.
fn tag(dialect: Dialect, bytes: &[u8], version: u64) -> String {
    if dialect != Dialect::S3 {
        return format!("\"v{version}\"");
    }
    // FNV.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("\"{:x}\"", bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

/// What tells a version of an object apart.
fn version_headers(dialect: Dialect, bytes: &[u8], version: u64) -> Vec<(&'static str, String)> {
    let mut headers = vec![("ETag", tag(dialect, bytes, version))];
    if dialect == Dialect::Gcs {
        headers.push(("x-goog-generation", version.to_string()));
    }
    headers
}

fn nothing(status: u16) -> Answer {
    Answer {
        status,
        headers: Vec::new(),
        body: Vec::new(),
    }
}

impl Objects {
    fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }

    fn answer(&mut self, dialect: Dialect, request: &Request) -> Answer {
        let Some(path) = request.path.strip_prefix("/bucket") else {
            return refusal(404, "NoSuchBucket", "The specified bucket does not exist");
        };
        let key = path.trim_start_matches('/').to_owned();
        match request.method.as_str() {
            "GET" if key.is_empty() => self.list(dialect, request),
            "GET" | "HEAD" => self.get(dialect, &key),
            "PUT" => self.put(dialect, key, request),
            "DELETE" => {
                self.by_key.remove(&key);
                nothing(204)
            }
            "POST" => self.batch(request),
            _ => nothing(405),
        }
    }

    fn get(&self, dialect: Dialect, key: &str) -> Answer {
        let Some(stored) = self.by_key.get(key) else {
            return refusal(404, "NoSuchKey", "The specified key does not exist.");
        };
        let mut headers = version_headers(dialect, &stored.bytes, stored.version);
        headers.push(("Last-Modified", http_date(stored.at)));
        Answer {
            status: 200,
            headers,
            body: stored.bytes.clone(),
        }
    }

    fn put(&mut self, dialect: Dialect, key: String, request: &Request) -> Answer {
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        let found = self.by_key.get(&key);
        let found_tag = found.map(|it| tag(dialect, &it.bytes, it.version));
        let holds = match dialect {
            Dialect::Gcs => header("x-goog-if-generation-match")
                .is_none_or(|wanted| wanted == found.map_or(0, |it| it.version).to_string()),
            _ => {
                (header("if-none-match") != Some("*") || found.is_none())
                    && header("if-match").is_none_or(|wanted| Some(wanted) == found_tag.as_deref())
            }
        };
        if !holds && !self.ignores_conditions {
            return match (dialect, header("if-none-match"), found.is_some()) {
                (Dialect::Azure, Some("*"), true) => nothing(409),
                (Dialect::S3, None, false) => nothing(404),
                _ => nothing(412),
            };
        }
        self.version += 1;
        let version = self.version;
        let headers = version_headers(dialect, &request.body, version);
        let (bytes, at) = (request.body.clone(), self.now());
        self.by_key.insert(key, Stored { bytes, version, at });
        let status = match dialect {
            Dialect::Azure => 201,
            _ => 200,
        };
        Answer {
            status,
            headers,
            body: Vec::new(),
        }
    }

    fn list(&self, dialect: Dialect, request: &Request) -> Answer {
        let prefix = request.query.iter().find(|(name, _)| name == "prefix");
        let prefix = prefix.map_or("", |(_, prefix)| prefix);
        let here = |(key, _): &(&String, &Stored)| {
            let rest = key.strip_prefix(prefix);
            rest.is_some_and(|rest| !rest.contains('/'))
        };
        let objects = self.by_key.iter().filter(here);
        let body = if dialect == Dialect::Azure {
            let blobs = objects.map(|(key, stored)| {
                let size = stored.bytes.len();
                format!("<Blob><Name>{key}</Name><Properties><Last-Modified>Thu, 01 Jan 1970 00:00:00 GMT</Last-Modified><Content-Length>{size}</Content-Length><Content-Type>text/plain</Content-Type></Properties></Blob>")
            });
            let blobs: String = blobs.collect();
            format!("<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>")
        } else {
            let contents = objects.map(|(key, stored)| {
                let size = stored.bytes.len();
                format!("<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>1970-01-01T00:00:00.000Z</LastModified></Contents>")
            });
            let contents: String = contents.collect();
            format!("<ListBucketResult>{contents}</ListBucketResult>")
        };
        Answer {
            status: 200,
            headers: vec![("Content-Type", "application/xml".to_owned())],
            body: body.into_bytes(),
        }
    }

    /// Azure removes several objects with one request.
    fn batch(&mut self, request: &Request) -> Answer {
        let text = String::from_utf8_lossy(&request.body);
        let mut body = String::new();
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("DELETE /bucket/"));
        for (number, line) in lines.enumerate() {
            let key = line.split_whitespace().next().unwrap_or_default();
            self.by_key.remove(&decoded(key));
            body += &format!(
                "--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n\r\n"
            );
        }
        body += "--batch--\r\n";
        Answer {
            status: 202,
            headers: vec![("Content-Type", "multipart/mixed; boundary=batch".to_owned())],
            body: body.into_bytes(),
        }
    }
}
