//! Documents in buckets that speak like S3, Google Cloud Storage and Azure.

use insta::assert_snapshot;
use serde_json::Value;

use super::project;
use crate::support::{BucketServer, Dialect, Lost, Output, Sandbox};

const DIALECTS: [Dialect; 3] = [Dialect::S3, Dialect::Gcs, Dialect::Azure];

const KEY: &str = "acme/default.json";

/// A project whose state is in a bucket.
fn in_bucket(server: &BucketServer) -> Sandbox {
    let sandbox = project(&server.backend());
    sandbox.write("/graph.json", r#"{"a": [], "b": ["a"], "c": ["a", "b"]}"#);
    sandbox
}

fn orch(sandbox: &Sandbox, server: &BucketServer, arguments: &str) -> Output {
    sandbox.orch_with(arguments, |orch| {
        orch.envs(server.credentials());
    })
}

fn document(server: &BucketServer) -> Value {
    serde_json::from_str(&server.object(KEY)).unwrap()
}

#[test]
fn state_commands_work_with_each_kind_of_bucket() {
    for dialect in DIALECTS {
        let server = BucketServer::new(dialect);
        let sandbox = in_bucket(&server);
        let orch = |arguments: &str| orch(&sandbox, &server, arguments);
        for (arguments, code) in [
            ("state list", 4),
            ("state init", 0),
            ("state init", 4),
            ("state import graph.json", 0),
            ("state taint a --reason x", 0),
            ("state list", 0),
            ("state show", 0),
            ("state restore 2", 0),
        ] {
            let output = orch(arguments);
            assert_eq!(output.code(), code, "{dialect:?}: {arguments}: {output:?}");
        }
        let document = document(&server);
        assert_eq!(document["serial"], 4, "{dialect:?}");
        assert_eq!(document["stacks"]["/a"].get("tainted"), None, "{dialect:?}");
        let backups = ["1", "2", "3"].map(|serial| format!("acme/default.backups/{serial}.json"));
        let keys: Vec<String> = backups.into_iter().chain([KEY.to_owned()]).collect();
        assert_eq!(server.keys(), keys, "{dialect:?}");
        assert!(!sandbox.path("/.orch").exists(), "{dialect:?}");
    }
}

#[test]
fn bucket_that_loses_a_request_or_an_answer_loses_and_repeats_nothing() {
    for dialect in DIALECTS {
        let server = BucketServer::new(dialect);
        let sandbox = in_bucket(&server);
        let orch = |arguments: &str| orch(&sandbox, &server, arguments);
        assert_eq!(orch("state init").code(), 0);
        assert_eq!(orch("state import graph.json").code(), 0);
        let before = server.requests();
        assert_eq!(orch("state taint a").code(), 0);
        let requests = server.requests() - before;
        assert!(requests >= 4, "{requests}");
        let mut serial = 3;
        for nth in 0..requests {
            for lost in [Lost::Request, Lost::Answer] {
                server.lose(nth, lost);
                let output = orch("state taint c --reason again");
                let now = document(&server)["serial"].as_u64().unwrap();
                let case = format!("{dialect:?}: {lost:?} {nth}: {output:?}");
                match output.code() {
                    0 => assert_eq!(now, serial + 1, "{case}"),
                    5 => assert_eq!(now, serial, "{case}"),
                    _ => panic!("{case}"),
                }
                serial = now;
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn lock_is_freed_by_a_signal_while_it_is_taken() {
    use crate::support::{Background, Repository};

    let server = BucketServer::new(Dialect::S3);
    let repository = Repository::of(in_bucket(&server));
    assert_eq!(orch(&repository, &server, "state init").code(), 0);
    let (was_put, answer) = server.hold(KEY);
    let mut command = repository.command("run -q -X --record touch started");
    command.envs(server.credentials());
    let run = Background::spawn(&repository, command);
    was_put.recv().unwrap();
    assert_ne!(document(&server)["lock"], Value::Null);
    run.signal(nix::sys::signal::Signal::SIGINT);
    answer.send(()).unwrap();
    assert_eq!(run.end().code(), 130);
    assert_eq!(document(&server)["lock"], Value::Null);
    assert!(!repository.path("/a/started").exists());
}

#[cfg(unix)]
#[test]
fn lock_is_freed_by_a_run_that_cannot_begin() {
    use crate::support::Repository;

    let server = BucketServer::new(Dialect::S3);
    let repository = Repository::of(in_bucket(&server));
    assert_eq!(orch(&repository, &server, "state init").code(), 0);
    // There is no place for what the commands print.
    repository.write("/.orch", "");
    let output = repository.orch_with("run -X -j 2 --record true", |orch| {
        orch.envs(server.credentials())
            .env("TMPDIR", repository.path("/nowhere"));
    });
    assert_eq!(output.code(), 5, "{output:?}");
    let document = document(&server);
    assert_eq!(document["serial"], 3, "{output:?}");
    assert_eq!(document["lock"], Value::Null);
}

#[test]
fn bucket_that_ignores_conditions_is_refused() {
    let server = BucketServer::new(Dialect::S3);
    server.ignore_conditions();
    let sandbox = in_bucket(&server);
    assert_snapshot!(orch(&sandbox, &server, "state init"), @"
    [stderr]
    error: the store of `s3://bucket/acme/default.json` does not support conditional writes, so concurrent runs would overwrite each other
      = help: use a store with conditional writes (`If-None-Match` and `If-Match`)
    [exit status 4]
    ");
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn bucket_that_does_not_exist_is_no_empty_one() {
    let server = BucketServer::new(Dialect::S3);
    let sandbox = project(&server.backend().replace("\"bucket\"", "\"bukcet\""));
    for command in ["state list", "state init", "run -X --record true"] {
        let output = orch(&sandbox, &server, command);
        assert_eq!(output.code(), 5, "{output}");
        assert!(!output.stderr.contains("state init"), "{output}");
    }
    assert_snapshot!(orch(&sandbox, &server, "state init"), @"
    [stderr]
    error: failed to read `s3://bukcet/acme/default.json`: no such bucket (404 NoSuchBucket: The specified bucket does not exist)
      = help: check the name of the bucket in the configuration of the state; orch creates no buckets
    [exit status 5]
    ");
}

#[test]
fn store_that_does_not_implement_conditions_is_named() {
    let server = BucketServer::new(Dialect::S3);
    let sandbox = in_bucket(&server);
    server.lose_next(20, Lost::Refused(501, "NotImplemented"));
    assert_snapshot!(orch(&sandbox, &server, "state init"), @"
    [stderr]
    error: failed to read `s3://bucket/acme/default.json`: the store does not implement the request (501 NotImplemented)
      = help: use a store with conditional writes (`If-None-Match` and `If-Match`)
    [exit status 5]
    ");
}

#[test]
fn bucket_with_object_lock_gets_checksums() {
    let server = BucketServer::new(Dialect::S3);
    server.lock_objects();
    let sandbox = in_bucket(&server);
    for command in ["state init", "state import graph.json", "state taint a"] {
        let output = orch(&sandbox, &server, command);
        assert_eq!(output.code(), 0, "{output}");
    }
    assert_eq!(document(&server)["serial"], 3);
}

/// What a store may do with any request.
const REFUSALS: [Lost; 7] = [
    Lost::Request,
    Lost::Answer,
    Lost::ObjectLock,
    Lost::Refused(409, "ConditionalRequestConflict"),
    Lost::Refused(412, "PreconditionFailed"),
    Lost::Refused(500, "InternalError"),
    Lost::Refused(501, "NotImplemented"),
];

#[test]
fn init_creates_one_document_whatever_the_store_does_with_one_request() {
    for refusal in REFUSALS {
        for nth in 0..20 {
            let server = BucketServer::new(Dialect::S3);
            let sandbox = in_bucket(&server);
            server.lose(nth, refusal);
            let output = orch(&sandbox, &server, "state init");
            let case = format!("{refusal:?} {nth}: {output}");
            let exists = server.keys().contains(&KEY.to_owned());
            match output.code() {
                0 => assert!(exists, "{case}"),
                // Who created it cannot be known if no answer comes.
                5 => assert!(!exists || refusal == Lost::Answer, "{case}"),
                _ => panic!("{case}"),
            }
            assert!(
                !output
                    .stderr
                    .contains("does not support conditional writes"),
                "{case}"
            );
            assert!(!output.stderr.contains("<Error>"), "{case}");
            if server.requests() <= nth {
                break;
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn run_records_what_it_did_or_says_so_whatever_the_store_does_with_one_request() {
    use crate::support::Repository;

    let server = BucketServer::new(Dialect::S3);
    let repository = Repository::of(in_bucket(&server));
    let orch = |arguments: &str| orch(&repository, &server, arguments);
    assert_eq!(orch("state init").code(), 0);
    let run = "run -q -X --record --match c -- sh -c 'echo >> ../ran'";
    let before = server.requests();
    assert_eq!(orch(run).code(), 0);
    let requests = server.requests() - before;
    for refusal in REFUSALS {
        for nth in 0..requests {
            let ran = repository.read("/ran").len();
            let serial = document(&server)["serial"].as_u64().unwrap();
            server.lose(nth, refusal);
            let output = orch(run);
            let case = format!("{refusal:?} {nth}: {output}");
            let now = document(&server);
            let has_run = repository.read("/ran").len() - ran;
            assert_eq!(now["lock"], Value::Null, "{case}");
            match output.code() {
                0 => {
                    assert_eq!(has_run, 1, "{case}");
                    assert_eq!(now["serial"], serial + 2, "{case}");
                    assert_eq!(now["stacks"]["/c"]["last"]["serial"], serial + 2, "{case}");
                }
                5 => assert_eq!(has_run, 0, "{case}"),
                _ => panic!("{case}"),
            }
        }
    }
}

#[test]
fn bucket_without_versioning_is_noted() {
    let server = BucketServer::new(Dialect::S3);
    let sandbox = in_bucket(&server);
    assert_snapshot!(orch(&sandbox, &server, "state init"), @"
    created s3://bucket/acme/default.json
    [stderr]
    note: versioning seems to be off in this bucket; turn it on to keep earlier versions in the store too
    ");
}

#[test]
fn bucket_that_cannot_be_reached_is_no_empty_one() {
    let configuration =
        "backend \"s3\" {\n  bucket = \"bucket\"\n  endpoint = \"http://127.0.0.1:1\"\n}";
    let sandbox = project(configuration);
    let output = sandbox.orch_with("state list", |orch| {
        orch.env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
    });
    assert_eq!(output.code(), 5, "{output:?}");
    assert!(!output.to_string().contains("secret\n"), "{output:?}");
    assert_eq!(sandbox.orch("list").code(), 0);
}

#[cfg(unix)]
#[test]
fn credentials_of_a_profile_come_from_the_program_aws() {
    let server = BucketServer::new(Dialect::S3);
    let backend = server
        .backend()
        .replacen("bucket =", "profile = \"ops\"\n  bucket =", 1);
    let sandbox = project(&backend);
    sandbox.write_program(
        "/bin/aws",
        "#!/bin/sh\necho \"$@\" > \"$(dirname \"$0\")/said\"\necho '{\"Version\":1,\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"s\"}'\n",
    );
    let with_path = |orch: &mut std::process::Command| {
        let path = std::env::var("PATH").unwrap_or_default();
        orch.env("PATH", format!("{}:{path}", sandbox.path("/bin").display()));
    };
    assert_eq!(sandbox.orch_with("state init", with_path).code(), 0);
    assert_eq!(
        sandbox.read("/bin/said"),
        "configure export-credentials --format process --profile ops\n"
    );
    sandbox.write_program(
        "/bin/aws",
        "#!/bin/sh\necho 'The SSO session has expired' >&2\nexit 255\n",
    );
    let output = sandbox.orch_with("state list", with_path);
    assert_eq!(output.code(), 5);
    assert!(
        output.to_string().contains("The SSO session has expired"),
        "{output:?}"
    );
}

/// Runs `orch` without credentials in its environment, and with no programs but those in `/bin`.
#[cfg(unix)]
fn without_credentials(sandbox: &Sandbox, arguments: &str, variables: &[(&str, &str)]) -> Output {
    sandbox.orch_with(arguments, |orch| {
        orch.env("PATH", sandbox.path("/bin"))
            .envs(variables.iter().copied());
    })
}

#[cfg(unix)]
#[test]
fn credentials_that_the_program_aws_finds_are_used() {
    let server = BucketServer::new(Dialect::S3);
    let sandbox = in_bucket(&server);
    sandbox.write_program(
        "/bin/aws",
        "#!/bin/sh\necho \"$@\" > \"${0%/*}/said\"\necho '{\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"s\"}'\n",
    );
    let orch = |arguments: &str, variables| {
        let output = without_credentials(&sandbox, arguments, variables);
        assert_eq!(output.code(), 0, "{output}");
        sandbox.read("/bin/said")
    };
    let command = "configure export-credentials --format process";
    assert_eq!(orch("state init", &[]), format!("{command}\n"));
    assert_eq!(
        orch("state show", &[("AWS_PROFILE", "ops")]),
        format!("{command} --profile ops\n")
    );
    sandbox.write("/bin/said", "nothing");
    let own = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_PROFILE", "ops"),
    ];
    assert_eq!(orch("state show", &own), "nothing");
}

#[cfg(unix)]
#[test]
fn credentials_that_are_missing_are_reported_with_the_searched_places() {
    let server = BucketServer::new(Dialect::S3);
    let sandbox = in_bucket(&server);
    let orch = |variables| without_credentials(&sandbox, "state list", variables);
    assert_snapshot!(orch(&[]), @"
    [stderr]
    error: failed to read `s3://bucket/acme/default.json`: no credentials found: not in the environment (`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`), not with `aws configure export-credentials` (the program `aws` was not found), and not on this machine (`AWS_EC2_METADATA_DISABLED` is set)
    [exit status 5]
    ");
    let machine = [
        ("AWS_EC2_METADATA_DISABLED", "false"),
        ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1"),
    ];
    assert_snapshot!(orch(&machine), @"
    [stderr]
    error: failed to read `s3://bucket/acme/default.json`: no credentials found: not in the environment (`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`), not with `aws configure export-credentials` (the program `aws` was not found), and not on this machine (its metadata service returned none)
    [exit status 5]
    ");
    sandbox.write_program(
        "/bin/aws",
        "#!/bin/sh\necho 'usage: aws [options] <command> <subcommand>' >&2\necho 'aws: error: argument operation: Invalid choice' >&2\nexit 2\n",
    );
    assert_snapshot!(orch(&machine), @"
    [stderr]
    error: failed to read `s3://bucket/acme/default.json`: no credentials found: not in the environment (`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`), not with `aws configure export-credentials` (this version of `aws` does not have that command: update it), and not on this machine (its metadata service returned none)
    [exit status 5]
    ");
    sandbox.write_program(
        "/bin/aws",
        "#!/bin/sh\necho >&2\necho 'Unable to retrieve credentials: no credentials found' >&2\nexit 253\n",
    );
    assert_snapshot!(orch(&machine), @"
    [stderr]
    error: failed to read `s3://bucket/acme/default.json`: no credentials found: not in the environment (`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`), not with `aws configure export-credentials` (Unable to retrieve credentials: no credentials found), and not on this machine (`aws` looked there too)
    [exit status 5]
    ");
    assert_eq!(server.requests(), 0);
}

#[cfg(unix)]
#[test]
fn credentials_of_the_machine_are_used_where_there_is_no_program_aws() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let server = BucketServer::new(Dialect::S3);
    let sandbox = in_bucket(&server);
    let metadata = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", metadata.local_addr().unwrap());
    let answers = [
        "token",
        "role",
        r#"{"AccessKeyId":"k","SecretAccessKey":"s","Token":"t","Expiration":"2999-01-01T00:00:00Z"}"#,
    ];
    let machine = std::thread::spawn(move || {
        answers.map(|answer| {
            let (mut stream, _) = metadata.accept().unwrap();
            let mut lines = BufReader::new(&stream).lines();
            let request = lines.next().unwrap().unwrap();
            lines.find(|line| line.as_ref().unwrap().is_empty());
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
                answer.len()
            )
            .unwrap();
            request
        })
    });
    let variables = [
        ("AWS_EC2_METADATA_DISABLED", "false"),
        ("AWS_METADATA_ENDPOINT", address.as_str()),
    ];
    let output = without_credentials(&sandbox, "state init", &variables);
    assert_eq!(output.code(), 0, "{output}");
    let requests = machine.join().unwrap();
    assert!(requests[2].contains("/role "), "{requests:?}");
}
