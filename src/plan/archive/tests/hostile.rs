//! Archives that are damaged, or made to do harm.

use rawzip::CompressionMethod;

use super::forge::{
    Forged, add_zip64, changed, hide, local_field, named, position, set_central, set_count,
    set_descriptor, set_local, sha256, with, zip64_sizes,
};
use super::*;

fn without_list(list: &str) -> Vec<u8> {
    let forged = Forged::new().plain(PLAN_JSON, JSON);
    forged.finish_with(list.as_bytes(), FORMAT)
}

fn other_zip() -> Vec<u8> {
    Forged::new().plain("readme", b"").zip.finish().unwrap()
}

fn central(offset: usize, value: &[u8]) -> Vec<u8> {
    changed(|bytes| set_central(bytes, 1, offset, value))
}

fn local(offset: usize, value: &[u8]) -> Vec<u8> {
    changed(|bytes| set_local(bytes, 1, offset, value))
}

fn descriptor(offset: usize, value: &[u8]) -> Vec<u8> {
    changed(|bytes| set_descriptor(bytes, 1, offset, value))
}

fn counted(count: u16) -> Vec<u8> {
    changed(|bytes| set_count(bytes, count))
}

fn permissions(mode: u32) -> Vec<u8> {
    with(|entry| entry.unix_permissions(mode))
}

type Case = (&'static str, Vec<u8>);

fn beginnings_and_ends() -> Vec<Case> {
    let valid = with(|entry| entry);
    let half = &valid[..position(&valid, "plans/0")];
    vec![
        ("an empty file", Vec::new()),
        ("a text", b"no zip".to_vec()),
        ("a zip archive of others", other_zip()),
        ("another archive at its end", [half, &other_zip()].concat()),
        ("cut off", valid[..valid.len() - 1].to_vec()),
        ("cut in the middle", half.to_vec()),
        ("junk before it", [b"junk", &*valid].concat()),
        (
            "an archive before it",
            [other_zip(), valid.clone()].concat(),
        ),
        ("junk after it", [&*valid, b"junk"].concat()),
        ("a later format", Forged::new().finish_with(b"{}", 2)),
    ]
}

fn names() -> Vec<Case> {
    vec![
        ("a name that leads up", named("../../etc/passwd")),
        ("a name from the root", named("/etc/passwd")),
        ("a name with backslashes", named(r"..\plans\0")),
        ("a name with a drive", named("C:plans/0")),
        ("a name that is there twice", named("plan.json")),
        ("a name that is not listed", named("plans/2")),
        ("a name in another notation", named("plans/./0")),
        ("a name that repaints", named("plans/0\u{1b}[2J")),
        ("the name of a directory", named("plans/0/")),
        ("a long name", named(&"x".repeat(60_000))),
    ]
}

fn kinds() -> Vec<Case> {
    let deflate = CompressionMethod::DEFLATE;
    vec![
        ("a symbolic link", permissions(0o120_777)),
        ("a directory", permissions(0o040_755)),
        ("a device", permissions(0o020_666)),
        ("set-user-ID", permissions(0o104_755)),
        ("encrypted", with(|entry| entry.encrypted(true))),
        (
            "compressed",
            with(|entry| entry.compression_method(deflate)),
        ),
        ("a comment", with(|entry| entry.comment("look"))),
        ("sizes of 64 bits", with(zip64_sizes)),
        ("more in the local header", with(local_field)),
    ]
}

fn counts_and_sizes() -> Vec<Case> {
    let sized = |size: u32| {
        changed(|bytes| {
            for offset in [20, 24] {
                set_central(bytes, 1, offset, &size.to_le_bytes());
            }
        })
    };
    vec![
        ("an end of 64 bits", changed(add_zip64)),
        ("too many entries", counted(60_000)),
        ("fewer entries than said", counted(5)),
        ("more entries than said", counted(3)),
        ("no entries", counted(0)),
        ("larger than it is", sized(3_000_000_000)),
        ("larger than all", sized(4_200_000_000)),
        ("larger when unpacked", central(24, &[200])),
    ]
}

fn hidden() -> Vec<Case> {
    let other_name = |bytes: &mut Vec<u8>| {
        let at = position(bytes, "plans/0");
        bytes[at] = b'P';
    };
    let between = || {
        let forged = Forged::new()
            .plain(PLAN_JSON, JSON)
            .plain("plans/0", b"hidden")
            .plain("plans/0", PLANS[0]);
        let mut bytes = forged.finish();
        hide(&mut bytes, 1);
        bytes
    };
    let last = || {
        let list = br#"{"entries":[]}"#;
        let forged = Forged::new()
            .plain(PLAN_JSON, JSON)
            .plain(MANIFEST_JSON, list);
        let mut bytes = forged.finish_with(b"hidden", FORMAT);
        hide(&mut bytes, 2);
        bytes
    };
    vec![
        ("an entry in another", central(42, &[0; 4])),
        ("an entry that is not listed", between()),
        ("a last entry that is not listed", last()),
        ("another name inside", changed(other_name)),
        ("another checksum", central(16, &[1])),
        ("encrypted inside", local(6, &[9])),
        ("compressed inside", local(8, &[8])),
        ("a checksum before it", local(14, &[1])),
        ("a size before it", local(18, &[1])),
        ("a size unpacked before it", local(22, &[1])),
        ("another size after it", descriptor(8, &[1])),
        ("another size unpacked after it", descriptor(12, &[1])),
        (
            "a flag",
            changed(|bytes| {
                set_local(bytes, 1, 7, &[8]);
                set_central(bytes, 1, 9, &[8]);
            }),
        ),
    ]
}

fn lists() -> Vec<Case> {
    let no_list = || {
        let mut forged = Forged::new().plain(PLAN_JSON, JSON);
        forged.zip.set_comment(comment(FORMAT, &sha256(JSON)));
        forged.zip.finish().unwrap()
    };
    let other_name = r#"{"entries":[{"name":"../plan.json","size":12,"sha256":""}]}"#;
    let other_size = r#"{"entries":[{"name":"plan.json","size":13,"sha256":""}]}"#;
    vec![
        ("no list", no_list()),
        (
            "another list",
            changed(|bytes| {
                let at = position(bytes, r#"{"entries""#);
                bytes[at] = b'[';
            }),
        ),
        (
            "another digest of the list",
            changed(|bytes| {
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
            }),
        ),
        ("a list that is none", without_list("[]")),
        ("an empty list", without_list(r#"{"entries":[]}"#)),
        (
            "a list with more",
            without_list(r#"{"entries":[],"more":1}"#),
        ),
        ("a list of another name", without_list(other_name)),
        ("a list with another size", without_list(other_size)),
        ("a large list", without_list(&" ".repeat((16 << 20) + 1))),
    ]
}

#[test]
fn archive_refuses_each_forgery_with_a_readable_message() {
    let scene = Scene::new();
    let file = scene.path("plan");
    let mut messages = String::new();
    let cases = [
        beginnings_and_ends(),
        names(),
        kinds(),
        counts_and_sizes(),
        hidden(),
        lists(),
    ];
    for (case, bytes) in cases.into_iter().flatten() {
        fs::write(&file, bytes).unwrap();
        let message = match Archive::open(&file) {
            Ok(_) => "is accepted".to_owned(),
            Err(error) => scene.message(&error),
        };
        let message = message.replace(&"x".repeat(200), "x…");
        messages += &format!("{case}: {message}\n");
    }
    insta::assert_snapshot!(messages, @r#"
    an empty file: `plan` is empty
    a text: `plan` is not a plan: it does not begin like a zip archive
    a zip archive of others: `plan` is a zip archive, but not a plan of `orch plan -o` (unpack it first if it is an artifact)
    another archive at its end: `plan` is truncated, or has data after its end
    cut off: `plan` is truncated, or has data after its end
    cut in the middle: `plan` is truncated, or has data after its end
    junk before it: `plan` is not a plan: it does not begin like a zip archive
    an archive before it: `plan` has hidden data before its entry `plan.json`, or overlapping entries
    junk after it: `plan` is truncated, or has data after its end
    a later format: `plan` has format 2, and this version of orch reads formats up to 1: use the version that wrote it
    a name that leads up: `plan` has an entry `../../etc/passwd` where `plans/0` belongs
    a name from the root: `plan` has an entry `/etc/passwd` where `plans/0` belongs
    a name with backslashes: `plan` has an entry `..\plans\0` where `plans/0` belongs
    a name with a drive: `plan` has an entry `C:plans/0` where `plans/0` belongs
    a name that is there twice: `plan` has an entry `plan.json` where `plans/0` belongs
    a name that is not listed: `plan` has an entry `plans/2` where `plans/0` belongs
    a name in another notation: `plan` has an entry `plans/./0` where `plans/0` belongs
    a name that repaints: `plan` has an entry `plans/0\u{1b}[2J` where `plans/0` belongs
    the name of a directory: `plan` has an entry `plans/0/` where `plans/0` belongs
    a long name: `plan` has an entry `x…` where `plans/0` belongs
    a symbolic link: `plan` has an entry `plans/0` that is not a regular file
    a directory: `plan` has an entry `plans/0` that is not a regular file
    a device: `plan` has an entry `plans/0` that is not a regular file
    set-user-ID: `plan` has an entry `plans/0` that was not written by orch
    encrypted: `plan` has an encrypted entry, `plans/0`
    compressed: `plan` has a compressed entry, `plans/0`: orch compresses none
    a comment: `plan` has an entry `plans/0` that was not written by orch
    sizes of 64 bits: `plan` has an entry `plans/0` that was not written by orch
    more in the local header: `plan` has contradictory headers for its entry `plans/0`
    an end of 64 bits: `plan` has a damaged table of contents
    too many entries: `plan` has more than 50000 plans, the most that orch writes
    fewer entries than said: `plan` has an entry `manifest.json` where `plans/2` belongs
    more entries than said: `plan` has an entry `plans/1` where `manifest.json` belongs
    no entries: `plan` has a damaged table of contents
    larger than it is: `plan` has contradictory headers for its entry `plans/0`
    larger than all: `plan` has more than 4 GB of plans, the most that orch writes
    larger when unpacked: `plan` has contradictory headers for its entry `plans/0`
    an entry in another: `plan` has hidden data before its entry `plans/0`, or overlapping entries
    an entry that is not listed: `plan` has hidden data before its entry `plans/0`, or overlapping entries
    a last entry that is not listed: `plan` has a damaged table of contents
    another name inside: `plan` has contradictory headers for its entry `plans/0`
    another checksum: `plan` has contradictory headers for its entry `plans/0`
    encrypted inside: `plan` has contradictory headers for its entry `plans/0`
    compressed inside: `plan` has contradictory headers for its entry `plans/0`
    a checksum before it: `plan` has contradictory headers for its entry `plans/0`
    a size before it: `plan` has contradictory headers for its entry `plans/0`
    a size unpacked before it: `plan` has contradictory headers for its entry `plans/0`
    another size after it: `plan` has contradictory headers for its entry `plans/0`
    another size unpacked after it: `plan` has contradictory headers for its entry `plans/0`
    a flag: `plan` has an entry `plans/0` that was not written by orch
    no list: `plan` has a damaged table of contents
    another list: `plan` is damaged: `manifest.json` does not match the manifest
    another digest of the list: `plan` is damaged: `manifest.json` does not match the manifest
    a list that is none: `plan` has a `manifest.json` that does not list its entries
    an empty list: `plan` has a `manifest.json` that does not list its entries
    a list with more: `plan` has a `manifest.json` that does not list its entries
    a list of another name: `plan` has a `manifest.json` that does not list its entries
    a list with another size: `plan` is damaged: `plan.json` does not match the manifest
    a large list: `plan` has more than 16 MiB of `manifest.json`, the most that orch writes
    "#);
}

#[test]
fn forged_archives_are_valid_except_for_the_forgery() {
    let scene = Scene::new();
    assert_eq!(with(|entry| entry), scene.bytes());
}

#[test]
fn archive_refuses_truncated_files() {
    let scene = Scene::new();
    let file = scene.path("plan");
    let valid = scene.bytes();
    for length in 0..valid.len() {
        fs::write(&file, &valid[..length]).unwrap();
        let error = Archive::open(&file).unwrap_err();
        assert!(
            matches!(error, ArchiveReadError::Refused { .. }),
            "{length}: {error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn archive_refuses_special_files() {
    let scene = Scene::new();
    fs::create_dir(scene.path("folder")).unwrap();
    make_pipe(&scene.path("pipe"));
    let messages = ["folder", "missing", "pipe"].map(|name| {
        let error = Archive::open(&scene.path(name)).unwrap_err();
        scene.message(&error) + "\n"
    });
    insta::assert_snapshot!(messages.concat(), @"
    `folder` is not a regular file
    failed to read `missing`: No such file or directory (os error 2)
    `pipe` is not a regular file
    ");
}

#[test]
fn archive_removes_damaged_plans() {
    let scene = Scene::new();
    let valid = scene.bytes();
    let flip = |part: &[u8]| {
        let mut bytes = valid.clone();
        let at = bytes.windows(part.len()).position(|window| window == part);
        bytes[at.unwrap()] ^= 1;
        let file = scene.path("plan");
        fs::write(&file, bytes).unwrap();
        Archive::open(&file).unwrap()
    };
    let archive = flip(JSON);
    let mut messages = scene.message(&archive.plan_json().unwrap_err()) + "\n";
    messages += &(scene.message(&archive.verify().unwrap_err()) + "\n");
    let archive = flip(PLANS[0]);
    assert_eq!(archive.plan_json().unwrap(), JSON);
    messages += &(scene.message(&archive.verify().unwrap_err()) + "\n");
    let to = scene.path("unpacked");
    messages += &(scene.message(&archive.extract(0, &to).unwrap_err()) + "\n");
    assert!(!to.exists());
    insta::assert_snapshot!(messages, @"
    `plan` is damaged: `plan.json` does not match the manifest
    `plan` is damaged: `plan.json` does not match the manifest
    `plan` is damaged: `plans/0` does not match the manifest
    `plan` is damaged: `plans/0` does not match the manifest
    ");
    archive.extract(1, &to).unwrap();
}

#[test]
fn archive_that_shrinks_while_open_is_damaged() {
    let scene = Scene::new();
    let file = scene.write("plan").unwrap();
    let archive = Archive::open(&file).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(50)
        .unwrap();
    let message = scene.message(&archive.extract(0, &scene.path("unpacked")).unwrap_err());
    insta::assert_snapshot!(message, @"`plan` is damaged: `plans/0` does not match the manifest");
}

#[cfg(unix)]
#[test]
fn archive_extracts_to_new_files_only() {
    let scene = Scene::new();
    let archive = Archive::open(&scene.write("plan").unwrap()).unwrap();
    symlink("nowhere", scene.path("dangling")).unwrap();
    for place in ["tool-0", "missing/file", "dangling"] {
        let error = archive.extract(1, &scene.path(place)).unwrap_err();
        assert!(matches!(error, ArchiveReadError::Extract { .. }), "{error}");
        assert!(error.to_string().contains(place), "{error}");
    }
    assert_eq!(read(&scene.plans[0]), PLANS[0]);
    assert!(!scene.path("nowhere").exists());
    for plan in [2, usize::MAX] {
        let error = archive.extract(plan, &scene.path("unpacked")).unwrap_err();
        let message = format!("plan` has no entry `plans/{plan}`");
        assert!(error.to_string().ends_with(&message), "{error}");
    }
    assert!(!scene.path("unpacked").exists());
}

#[test]
fn archive_refuses_large_plan_json() {
    let scene = Scene::new();
    let mut archive = Archive::open(&scene.write("plan").unwrap()).unwrap();
    archive.entries[0].listed.size = MOST_JSON_BYTES + 1;
    let message = scene.message(&archive.plan_json().unwrap_err());
    insta::assert_snapshot!(message, @"`plan` has more than 256 MiB of `plan.json`, the most that orch writes");
}
