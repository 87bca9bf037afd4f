//! Plans in files, changed by somebody who makes their digests right.

use std::fmt::Write as _;

use rawzip::ZipArchiveWriter;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Changes `plan.json` and the plans of the tools in a plan in a file; returns a file whose digests are right.
pub(crate) fn forge_plan(file: &[u8], change: impl FnOnce(&mut Value, &mut [Vec<u8>])) -> Vec<u8> {
    let mut contents = plan_contents(file);
    contents.pop();
    let mut plan: Value = serde_json::from_slice(&contents[0]).unwrap();
    change(&mut plan, &mut contents[1..]);
    contents[0] = plan.to_string().into_bytes();
    forged(&contents)
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    })
}

/// Returns the contents of a plan in a file, whose entries are stored as they are: `plan.json`, the plans of
/// the tools, the list of both.
pub(crate) fn plan_contents(file: &[u8]) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    let at = |offset: usize, bytes: usize| {
        let number = file[offset..offset + bytes].iter().rev();
        number.fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    // The plans of the tools may be archives themselves.
    let end = file.windows(4).rposition(|it| it == b"PK\x05\x06").unwrap();
    let mut next = at(end + 16, 4);
    while file[next..].starts_with(b"PK\x01\x02") {
        let (size, local) = (at(next + 24, 4), at(next + 42, 4));
        let begin = local + 30 + at(local + 26, 2) + at(local + 28, 2);
        contents.push(file[begin..begin + size].to_vec());
        next += 46 + at(next + 28, 2) + at(next + 30, 2) + at(next + 32, 2);
    }
    contents
}

/// Returns the file of such contents, without the list, with digests that are right.
fn forged(contents: &[Vec<u8>]) -> Vec<u8> {
    let mut zip = ZipArchiveWriter::new(Vec::new());
    let mut put = |name: &str, content: &[u8]| {
        use std::io::Write as _;
        let entry = zip.new_file(name).unix_permissions(0o100_600);
        let (mut entry, config) = entry.start().unwrap();
        let mut out = config.wrap(&mut entry);
        out.write_all(content).unwrap();
        let (_, descriptor) = out.finish().unwrap();
        entry.finish(descriptor).unwrap();
    };
    let mut list = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let name = match index {
            0 => "plan.json".to_owned(),
            _ => format!("plans/{}", index - 1),
        };
        put(&name, content);
        list.push(json!({"name": name, "size": content.len(), "sha256": sha256(content)}));
    }
    let list = json!({ "entries": list }).to_string();
    put("manifest.json", list.as_bytes());
    zip.set_comment(format!("orch plan 1 sha256:{}", sha256(list.as_bytes())));
    zip.finish().unwrap()
}
