//! Forges archives: valid except for one thing.

use std::io::Write as _;

use rawzip::extra_fields::ExtraFieldId;
use rawzip::path::EntryPath;
use rawzip::{Header, ZipArchiveWriter, ZipFileBuilder};
use sha2::{Digest as _, Sha256};

use super::{JSON, PLANS};
use crate::plan::archive::{FILE_MODE, FORMAT, MANIFEST_JSON, PLAN_JSON, comment, entry_name};
use crate::plan::archive::{ListedFile, Manifest};

pub(super) type Builder<'a> = ZipFileBuilder<'a, 'a, Vec<u8>>;

/// An archive with a valid list and valid digests.
pub(super) struct Forged {
    pub(super) zip: ZipArchiveWriter<Vec<u8>>,
    manifest: Manifest,
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |digits, byte| {
        digits + &format!("{byte:02x}")
    })
}

impl Forged {
    pub(super) fn new() -> Self {
        Forged {
            zip: ZipArchiveWriter::new(Vec::new()),
            manifest: Manifest::default(),
        }
    }

    /// Adds an entry that differs in its name and in what `change` sets; it is listed correctly.
    pub(super) fn put(
        mut self,
        name: &str,
        content: &[u8],
        change: impl FnOnce(Builder<'_>) -> Builder<'_>,
    ) -> Self {
        let path = EntryPath::verbatim(name.as_bytes());
        let entry = self.zip.new_file(path).unix_permissions(FILE_MODE);
        let (mut entry, config) = change(entry).start().unwrap();
        let mut out = config.wrap(&mut entry);
        out.write_all(content).unwrap();
        let (_, descriptor) = out.finish().unwrap();
        entry.finish(descriptor).unwrap();
        self.manifest.entries.push(ListedFile {
            name: entry_name(self.manifest.entries.len(), usize::MAX),
            size: content.len() as u64,
            sha256: sha256(content),
        });
        self
    }

    pub(super) fn plain(self, name: &str, content: &[u8]) -> Self {
        self.put(name, content, |entry| entry)
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let list = serde_json::to_vec(&self.manifest).unwrap();
        self.finish_with(&list, FORMAT)
    }

    pub(super) fn finish_with(self, list: &[u8], format: u32) -> Vec<u8> {
        let mut forged = self.plain(MANIFEST_JSON, list);
        forged.zip.set_comment(comment(format, &sha256(list)));
        forged.zip.finish().unwrap()
    }
}

/// Returns an archive of `plan.json` and two plans, the first of which `change` makes.
pub(super) fn with(change: impl FnOnce(Builder<'_>) -> Builder<'_>) -> Vec<u8> {
    let forged = Forged::new()
        .plain(PLAN_JSON, JSON)
        .put("plans/0", PLANS[0], change);
    forged.plain("plans/1", PLANS[1]).finish()
}

pub(super) fn named(name: &str) -> Vec<u8> {
    let forged = Forged::new().plain(PLAN_JSON, JSON);
    forged
        .plain(name, PLANS[0])
        .plain("plans/1", PLANS[1])
        .finish()
}

/// Returns the offset of each record of a kind.
pub(super) fn records(bytes: &[u8], signature: [u8; 4]) -> Vec<usize> {
    let windows = bytes.windows(4).enumerate();
    let records = windows.filter(|(_, window)| **window == signature);
    records.map(|(at, _)| at).collect()
}

pub(super) fn set_central(bytes: &mut [u8], entry: usize, offset: usize, value: &[u8]) {
    let at = records(bytes, *b"PK\x01\x02")[entry] + offset;
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(super) fn set_local(bytes: &mut [u8], entry: usize, offset: usize, value: &[u8]) {
    let at = records(bytes, *b"PK\x03\x04")[entry] + offset;
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(super) fn set_descriptor(bytes: &mut [u8], entry: usize, offset: usize, value: &[u8]) {
    let at = records(bytes, *b"PK\x07\x08")[entry] + offset;
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Returns the offset of the end-of-directory record.
pub(super) fn end_of(bytes: &[u8]) -> usize {
    *records(bytes, *b"PK\x05\x06").last().unwrap()
}

pub(super) fn set_count(bytes: &mut [u8], count: u16) {
    let end = end_of(bytes);
    for at in [end + 8, end + 10] {
        bytes[at..at + 2].copy_from_slice(&count.to_le_bytes());
    }
}

pub(super) fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = with(|entry| entry);
    change(&mut bytes);
    bytes
}

pub(super) fn add_zip64(bytes: &mut Vec<u8>) {
    let end = end_of(bytes);
    let size = u64::from(u32::from_le_bytes(
        bytes[end + 12..end + 16].try_into().unwrap(),
    ));
    let count = u64::from(bytes[end + 8]);
    let mut added = b"PK\x06\x06".to_vec();
    added.extend(44_u64.to_le_bytes());
    added.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [count, count, size, end as u64 - size] {
        added.extend(number.to_le_bytes());
    }
    added.extend(b"PK\x06\x07\0\0\0\0");
    added.extend((end as u64).to_le_bytes());
    added.extend(1_u32.to_le_bytes());
    bytes.splice(end..end, added);
}

/// Removes an entry from the central directory but not from the archive.
pub(super) fn hide(bytes: &mut Vec<u8>, entry: usize) {
    let mut starts = records(bytes, *b"PK\x01\x02");
    starts.push(end_of(bytes));
    bytes.drain(starts[entry]..starts[entry + 1]);
    let gone = u32::try_from(starts[entry + 1] - starts[entry]).unwrap();
    let at = end_of(bytes) + 12;
    let size = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) - gone;
    bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
    set_count(bytes, u16::try_from(starts.len() - 2).unwrap());
}

pub(super) fn zip64_sizes(entry: Builder<'_>) -> Builder<'_> {
    let sizes = [0; 16];
    entry
        .extra_field(ExtraFieldId::ZIP64, &sizes, Header::CENTRAL)
        .unwrap()
}

/// A field that the central directory lacks.
pub(super) fn local_field(entry: Builder<'_>) -> Builder<'_> {
    let id = ExtraFieldId::new(0x6666);
    entry.extra_field(id, b"x", Header::LOCAL).unwrap()
}

pub(super) fn position(bytes: &[u8], part: &str) -> usize {
    let mut windows = bytes.windows(part.len());
    windows
        .position(|window| window == part.as_bytes())
        .unwrap()
}
