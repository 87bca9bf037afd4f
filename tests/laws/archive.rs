//! Whatever happens to the file of a plan: it is refused, or read as it was written.

use std::fs;
use std::path::Path;

use orch::plan::archive::{self, Archive, ArchiveReadError};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::host::folder;

const JSON: &[u8] = br#"{"stacks":[{"path":"/a","plan":0}]}"#;

/// Stretches that mean something in a zip archive.
const PARTS: [&[u8]; 14] = [
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
    b"PK\x07\x08",
    b"\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x01\x00\x10\x00",
    b"\x00\x00",
    b"../",
    b"plans/1",
    b"orch plan 2 ",
    b"\x08\x00",
];

/// Writes an archive of a small plan and one that is a zip archive itself, as those of many tools are.
fn valid(folder: &Path) -> (Vec<u8>, Vec<Vec<u8>>) {
    let file = folder.join("valid");
    archive::write(&file, b"{}", &[]).unwrap();
    let plans = vec![b"small".to_vec(), fs::read(&file).unwrap()];
    let paths: Vec<_> = (0..plans.len())
        .map(|plan| folder.join(format!("tool-{plan}")))
        .collect();
    for (path, plan) in paths.iter().zip(&plans) {
        fs::write(path, plan).unwrap();
    }
    archive::write(&file, JSON, &paths).unwrap();
    (fs::read(file).unwrap(), plans)
}

/// A thing that happens to some bytes.
type Accident = (Index, u8, Index, &'static [u8], u32);

fn accidents() -> impl Strategy<Value = Vec<Accident>> {
    let number = prop_oneof![
        any::<u32>(),
        0..2000_u32,
        any::<u32>().prop_map(|n| u32::MAX - n % 4)
    ];
    let accident = (
        any::<Index>(),
        0..9_u8,
        any::<Index>(),
        select(PARTS.to_vec()),
        number,
    );
    prop::collection::vec(accident, 1..4)
}

fn happen(bytes: &mut Vec<u8>, accidents: &[Accident]) {
    for (place, kind, other, part, number) in accidents {
        if bytes.is_empty() {
            break;
        }
        let at = place.index(bytes.len());
        let near = bytes.len().min(at + 1 + other.index(40));
        let overwrite = |bytes: &mut Vec<u8>, with: &[u8]| {
            let end = bytes.len().min(at + with.len());
            bytes[at..end].copy_from_slice(&with[..end - at]);
        };
        match kind {
            0 => drop(bytes.drain(at..near)),
            1 => bytes[at] ^= 1 << (number % 8),
            2 => drop(bytes.splice(at..at, part.iter().copied())),
            3 => drop(bytes.splice(at..near, part.iter().copied())),
            4 => bytes.truncate(at),
            5 => overwrite(bytes, part),
            6 => overwrite(bytes, &number.to_le_bytes()),
            7 => overwrite(bytes, &number.to_le_bytes()[..2]),
            _ => {
                let stretch = bytes[at..near].to_vec();
                let to = other.index(bytes.len());
                bytes.splice(to..to, stretch);
            }
        }
    }
}

/// Requires that something was read as it was written, or refused.
fn right<T: PartialEq + std::fmt::Debug>(
    read: Result<T, ArchiveReadError>,
    written: &T,
) -> Result<(), TestCaseError> {
    match read {
        Ok(read) => prop_assert_eq!(&read, written),
        Err(ArchiveReadError::Refused { .. }) => {}
        Err(other) => prop_assert!(false, "{other}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_archive_is_refused_or_read_as_it_was_written(accidents in accidents()) {
        let folder = folder();
        let (mut bytes, plans) = valid(folder.path());
        happen(&mut bytes, &accidents);
        let file = folder.path().join("changed");
        fs::write(&file, bytes).unwrap();
        match Archive::open(&file) {
            Err(ArchiveReadError::Refused { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
            Ok(archive) => {
                prop_assert_eq!(archive.plans(), plans.len());
                let verified = archive.verify();
                right(archive.plan_json(), &JSON.to_vec())?;
                let mut are_right = true;
                for (index, plan) in plans.iter().enumerate() {
                    let to = folder.path().join(format!("unpacked-{index}"));
                    let extracted = archive.extract(index, &to);
                    prop_assert_eq!(to.exists(), extracted.is_ok());
                    are_right &= extracted.is_ok();
                    right(extracted.map(|()| fs::read(to).unwrap()), plan)?;
                }
                are_right &= archive.plan_json().is_ok();
                prop_assert_eq!(verified.is_ok(), are_right);
            }
        }
    }
}
