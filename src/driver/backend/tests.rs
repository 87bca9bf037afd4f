use std::fs;

use super::*;

struct Stack(tempfile::TempDir);

impl Stack {
    fn new() -> Self {
        Stack(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join("net").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn backend(&self, environment: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let mut found = environment.iter().filter(|(other, _)| *other == name);
            found.next().map(|(_, value)| (*value).to_owned())
        };
        backend_of_tool(self.root(), &self.root().join("net"), &variable)
    }
}

fn of(kind: &str, config: &str, environment: &[(&str, &str)]) -> Option<String> {
    let stack = Stack::new();
    let chosen = format!(
        r#"{{"version":3,"terraform_version":"1.11.4","backend":{{"type":"{kind}","config":{config},"hash":1}}}}"#
    );
    stack.write(".terraform/terraform.tfstate", chosen);
    stack.backend(environment)
}

/// Kinds, configurations and what they mean.
const BACKENDS: [&str; 22] = [
    r#"s3 {"bucket":"acme","key":"net","region":"eu-west-1","access_key":"AKIA","secret_key":"hunter2"} -> s3 acme/net@default"#,
    r#"s3 {"bucket":"acme","key":"net","endpoints":[{"s3":"https://me:hunter2@minio:9000/"}]} -> s3 https://minio:9000/acme/net@default"#,
    r#"s3 {"bucket":"acme","key":"net","endpoint":"minio"} -> s3 minio/acme/net@default"#,
    r#"gcs {"bucket":"acme","prefix":"net","credentials":"hunter2"} -> gcs acme/net@default"#,
    r#"gcs {"bucket":"acme","prefix":null} -> gcs acme@default"#,
    r#"azurerm {"storage_account_name":"acme","container_name":"states","key":"net","sas_token":"hunter2"} -> azurerm acme/states/net@default"#,
    r#"http {"address":"https://me:hunter2@example.org/state/net/","password":"hunter2"} -> http https://example.org/state/net@default"#,
    r#"consul {"address":"consul:8500","path":"net","access_token":"hunter2"} -> consul consul:8500/net@default"#,
    r#"consul {"path":"net"} -> consul net@default"#,
    r#"pg {"conn_str":"postgres://me:hunter2@db:5432/states?sslmode=disable","schema_name":"net"} -> pg postgres://db:5432/states/net@default"#,
    r#"pg {"conn_str":"host=db user=me password=hunter2 dbname=states"} -> pg host=db,dbname=states/terraform_remote_state@default"#,
    r#"kubernetes {"secret_suffix":"net","token":"hunter2"} -> kubernetes default/net@default"#,
    r#"kubernetes {"secret_suffix":"net","namespace":"ops","config_context":"prod"} -> kubernetes prod/ops/net@default"#,
    r#"cos {"bucket":"acme-1","prefix":"net"} -> cos acme-1/net/terraform.tfstate@default"#,
    r#"oss {"bucket":"acme","prefix":"net","key":"x"} -> oss acme/net/x@default"#,
    r#"oci {"bucket":"acme","namespace":"n","key":"net"} -> oci n/acme/net@default"#,
    r#"remote {"hostname":null,"organization":"acme","token":"hunter2","workspaces":[{"name":"net","prefix":null}]} -> remote app.terraform.io/acme@net"#,
    r#"remote {"organization":"acme","workspaces":[{"name":null,"prefix":"net-"}]} -> remote app.terraform.io/acme@net-default"#,
    r#"cloud {"hostname":"tfe.acme","organization":"acme","workspaces":{"name":"net"}} -> cloud tfe.acme/acme@net"#,
    r#"cloud {"organization":"acme","workspaces":{"tags":["net"]}} -> cloud app.terraform.io/acme@default"#,
    r#"local {"path":"../states/net.tfstate"} -> local states/net.tfstate@default"#,
    r#"local {"path":"/elsewhere/./x/../net.tfstate"} -> local /elsewhere/net.tfstate@default"#,
];

#[test]
fn a_backend_is_its_kind_its_place_and_the_workspace() {
    for row in BACKENDS {
        let (kind, rest) = row.split_once(' ').unwrap();
        let (config, text) = rest.split_once(" -> ").unwrap();
        assert_eq!(of(kind, config, &[]).as_deref(), Some(text), "{config}");
    }
}

#[test]
fn a_backend_without_a_known_place_is_not_known() {
    for (kind, config) in [
        ("s3", r#"{"bucket":"acme"}"#),
        ("s3", r#"{"bucket":"","key":"net"}"#),
        ("http", "{}"),
        ("pg", r#"{"schema_name":"net"}"#),
        ("cloud", "{}"),
    ] {
        assert_eq!(of(kind, config, &[]), None, "{kind} {config}");
    }
    let address = [("TF_HTTP_ADDRESS", "https://gitlab/state/net")];
    let text = of("http", "{}", &address).unwrap();
    assert_eq!(text, "http https://gitlab/state/net@default");
}

#[test]
fn parameters_of_an_address_tell_states_apart_and_credentials_do_not() {
    let of = |query: &str| {
        let config = format!(r#"{{"address":"https://example.org/state{query}"}}"#);
        of("http", &config, &[]).unwrap()
    };
    assert_eq!(of(""), of("?token=hunter2"));
    assert_eq!(of("?stack=a&sig=1"), of("?sig=2&stack=a"));
    assert_ne!(of("?stack=a"), of("?stack=b"));
    assert!(!of("?stack=a").contains("stack"));
}

#[test]
fn of_a_kind_that_is_not_known_everything_counts_but_credentials() {
    let of = |config: &str| of("manta", config, &[]).unwrap();
    let text = of(r#"{"path":"net","secret_token":"one"}"#);
    assert!(text.starts_with("manta ") && text.ends_with("@default"));
    assert_eq!(
        text,
        of(r#"{"secret_token":"two","path":"net","more":null}"#)
    );
    assert_ne!(text, of(r#"{"path":"other"}"#));
    assert!(
        !text.contains("net"),
        "it may be a secret of a name that is not known"
    );
}

#[test]
fn the_workspace_of_the_environment_beats_the_one_that_was_selected() {
    let stack = Stack::new();
    assert_eq!(
        stack.backend(&[]).unwrap(),
        "local net/terraform.tfstate@default"
    );
    stack.write(".terraform/environment", "blue\n");
    let blue = "local net/terraform.tfstate.d/blue/terraform.tfstate@blue";
    assert_eq!(stack.backend(&[]).unwrap(), blue);
    let green = [("TF_WORKSPACE", "green")];
    let text = stack.backend(&green).unwrap();
    assert_eq!(
        text,
        "local net/terraform.tfstate.d/green/terraform.tfstate@green"
    );
    assert_eq!(stack.backend(&[("TF_WORKSPACE", "")]).unwrap(), blue);
    let s3 = r#"{"bucket":"acme","key":"net","workspace_key_prefix":"spaces"}"#;
    assert_eq!(of("s3", s3, &[]).unwrap(), "s3 acme/net@default");
    assert_eq!(of("s3", s3, &green).unwrap(), "s3 acme/spaces/net@green");
}

#[test]
fn the_data_directory_is_that_of_the_stacks_environment() {
    let stack = Stack::new();
    let chosen = r#"{"backend":{"type":"gcs","config":{"bucket":"acme"}}}"#;
    stack.write(".terraform/eu/terraform.tfstate", chosen);
    let data = [("TF_DATA_DIR", ".terraform/eu")];
    assert_eq!(stack.backend(&data).unwrap(), "gcs acme@default");
    assert_eq!(
        stack.backend(&[]).unwrap(),
        "local net/terraform.tfstate@default"
    );
}

#[test]
fn what_is_hostile_is_not_known_or_made_harmless() {
    let stack = Stack::new();
    let file = ".terraform/terraform.tfstate";
    stack.write(file, "{");
    assert_eq!(stack.backend(&[]), None);
    stack.write(file, vec![b' '; (1 << 20) + 1]);
    assert_eq!(stack.backend(&[]), None);
    stack.write(file, [0xff, 0xfe]);
    assert_eq!(stack.backend(&[]), None);
    stack.write(file, "{\"backend\":null}");
    stack.write(".terraform/environment", "a\u{1b}[31m\nb");
    let text = stack.backend(&[]).unwrap();
    assert!(!text.contains(char::is_control), "{text:?}");
    stack.write(".terraform/environment", "x".repeat(100_000));
    let text = stack.backend(&[]).unwrap();
    assert!(text.starts_with("local ") && text.len() < 100, "{text}");
    fs::remove_file(stack.root().join("net/.terraform/environment")).unwrap();
    fs::create_dir(stack.root().join("net/.terraform/environment")).unwrap();
    assert_eq!(stack.backend(&[]), None);
    let kind = "k".repeat(1_000);
    assert!(of(&kind, "{}", &[]).unwrap().len() < 100);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(of("s3", &deep, &[]), None);
}

#[test]
fn the_backend_of_a_block_is_its_text() {
    assert_eq!(of_block(" kube prod/net ").unwrap(), "kube prod/net");
    assert_eq!(of_block("a\nb").unwrap(), "a\\nb");
    assert_eq!(of_block(" "), None);
    assert!(of_block(&"x".repeat(10_000)).unwrap().len() < 100);
}

#[test]
#[cfg(unix)]
fn a_data_directory_that_cannot_be_read_says_nothing_of_the_backend() {
    let stack = Stack::new();
    fs::create_dir(stack.root().join("net")).unwrap();
    assert!(stack.backend(&[]).is_some());
    let data = stack.root().join("net/.terraform");
    std::os::unix::fs::symlink(".terraform", data).unwrap();
    assert_eq!(stack.backend(&[]), None);
    let directory = stack.root().join("net");
    assert_eq!(selected_workspace(&directory, &|_| None), None);
}
