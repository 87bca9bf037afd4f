//! Reads archives from untrusted sources.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

use rawzip::{
    CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, RangeReader, ZipArchive,
    ZipFileHeaderRecord,
};

use super::{ArchiveFault, ArchiveReadError, CopiedContent, CopyError, copy, shown};
use super::{
    FILE_MODE, FORMAT, MANIFEST_JSON, MOST_BYTES, MOST_JSON_BYTES, MOST_MANIFEST_BYTES, MOST_PLANS,
    PLAN_JSON, comment, entry_name, open_regular,
};
use super::{ListedFile, Manifest};
use crate::printable::printable;

/// The size of an entry's local header, up to its name.
const LOCAL_HEADER_BYTES: usize = 30;
const LOCAL_HEADER_SIGNATURE: &[u8] = b"PK\x03\x04";

/// The size of an entry's central header, without its name.
const CENTRAL_HEADER_BYTES: u64 = 46;

/// The size of the data descriptor after an entry: sizes and checksum, unknown when the header was
/// written.
const DESCRIPTOR_BYTES: u64 = 16;
const HAS_DESCRIPTOR: u16 = 1 << 3;

const FILE_TYPE: u32 = 0o170_000;

/// An archive with a valid structure. Nothing is unpacked; contents are checked when they are read.
#[derive(Debug)]
pub struct Archive {
    file: String,
    zip: ZipArchive<FileReader>,
    /// All but the manifest.
    pub(super) entries: Vec<ArchiveEntry>,
}

#[derive(Debug)]
pub(super) struct ArchiveEntry {
    /// The position of its content.
    place: Range<u64>,
    pub(super) listed: ListedFile,
}

impl Archive {
    /// Opens an archive; checks everything except the contents of `plan.json` and the tools' plans.
    pub fn open(file: &Path) -> Result<Self, ArchiveReadError> {
        let shown = shown(file);
        let open = || -> Result<_, ArchiveFault> {
            let (file, metadata) = open_regular(file)
                .map_err(ArchiveFault::Io)?
                .ok_or("is not a regular file")?;
            open_zip(file, metadata.len())
        };
        match open() {
            Ok((zip, entries)) => Ok(Archive {
                file: shown,
                zip,
                entries,
            }),
            Err(fault) => Err(fault.in_file(&shown)),
        }
    }

    pub fn plans(&self) -> usize {
        self.entries.len() - 1
    }

    pub fn plan_json(&self) -> Result<Vec<u8>, ArchiveReadError> {
        let read = || {
            let entry = &self.entries[0];
            if entry.listed.size > MOST_JSON_BYTES {
                let limit = format!("{} MiB of `{PLAN_JSON}`", MOST_JSON_BYTES >> 20);
                return Err(too_large(&limit));
            }
            let mut content = Vec::new();
            self.copy(entry, &mut content)?;
            Ok(content)
        };
        read().map_err(|fault: ArchiveFault| fault.in_file(&self.file))
    }

    /// Reads all entries and compares their digests with the manifest.
    pub fn verify(&self) -> Result<(), ArchiveReadError> {
        let verified = self
            .entries
            .iter()
            .try_for_each(|entry| self.copy(entry, &mut io::sink()));
        verified.map_err(|fault| fault.in_file(&self.file))
    }

    /// Extracts the tool's plan at an index to a new file that only the user can read. The caller
    /// is responsible for the directory. Fails if the path exists, even as a link; a damaged plan
    /// is removed again.
    pub fn extract(&self, plan: usize, to: &Path) -> Result<(), ArchiveReadError> {
        let Some(entry) = self.entries.get(plan.saturating_add(1)) else {
            let problem = format!("has no entry `plans/{plan}`");
            return Err(ArchiveFault::Problem(problem).in_file(&self.file));
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options
            .open(to)
            .map_err(|error| ArchiveFault::Extract(error).in_file(&shown(to)))?;
        self.copy(entry, &mut file).map_err(|fault| {
            _ = fs::remove_file(to);
            match fault {
                ArchiveFault::Extract(_) => fault.in_file(&shown(to)),
                other => other.in_file(&self.file),
            }
        })
    }

    /// If it succeeds, the content is verified.
    fn copy(&self, entry: &ArchiveEntry, to: &mut impl Write) -> Result<(), ArchiveFault> {
        let ListedFile { name, size, sha256 } = &entry.listed;
        let copied = copy_place(&self.zip, &entry.place, to)?;
        if copied.size == *size && copied.sha256 == *sha256 {
            Ok(())
        } else {
            Err(damaged(name))
        }
    }
}

const BAD_DIRECTORY: &str = "has a damaged table of contents";
const BAD_MANIFEST: &str = "has a `manifest.json` that does not list its entries";

/// Returns the fault of an entry whose size or digest differs from the manifest.
fn damaged(name: &str) -> ArchiveFault {
    format!("is damaged: `{name}` does not match the manifest").into()
}

fn too_large(limit: &str) -> ArchiveFault {
    format!("has more than {limit}, the most that orch writes").into()
}

fn contradiction(name: &str) -> String {
    format!("has contradictory headers for its entry `{name}`")
}

fn copy_place(
    zip: &ZipArchive<FileReader>,
    place: &Range<u64>,
    to: &mut impl Write,
) -> Result<CopiedContent, ArchiveFault> {
    let mut content = RangeReader::new(zip.get_ref(), place.clone());
    copy(&mut content, to).map_err(|error| match error {
        CopyError::Read(error) => ArchiveFault::Io(error),
        CopyError::Write(error) => ArchiveFault::Extract(error),
    })
}

/// Opens an archive of so many bytes; returns its entries except the manifest.
fn open_zip(
    mut file: File,
    length: u64,
) -> Result<(ZipArchive<FileReader>, Vec<ArchiveEntry>), ArchiveFault> {
    if length == 0 {
        return Err("is empty".into());
    }
    let mut start = Vec::new();
    let start_bytes = (LOCAL_HEADER_BYTES + PLAN_JSON.len()) as u64;
    let mut reader = io::Read::by_ref(&mut file).take(start_bytes);
    reader.read_to_end(&mut start).map_err(ArchiveFault::Io)?;
    if !start.starts_with(LOCAL_HEADER_SIGNATURE) {
        return Err("is not a plan: it does not begin like a zip archive".into());
    }
    let is_plan = start.get(LOCAL_HEADER_BYTES..) == Some(PLAN_JSON.as_bytes());
    let strange = if is_plan {
        "is truncated, or has data after its end"
    } else {
        "is a zip archive, but not a plan of `orch plan -o` (unpack it first if it is an artifact)"
    };
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let zip = ZipArchive::from_file(file, &mut buffer)
        .map_err(|error| ArchiveFault::structure(error, strange))?;
    let found = read_comment(&zip)?.ok_or(strange)?;
    if zip.end_offset() != length {
        return Err(strange.into());
    }
    let format = format_of(&found).ok_or(strange)?;
    if format > FORMAT {
        return Err(format!(
            "has format {format}, and this version of orch reads formats up to {FORMAT}: use the version that wrote it"
        )
        .into());
    }
    let mut places = read_directory(&zip, &mut buffer)?;
    let manifest_place = places.pop().ok_or(BAD_DIRECTORY)?;
    if manifest_place.end - manifest_place.start > MOST_MANIFEST_BYTES {
        let limit = format!("{} MiB of `{MANIFEST_JSON}`", MOST_MANIFEST_BYTES >> 20);
        return Err(too_large(&limit));
    }
    let mut list = Vec::new();
    let copied = copy_place(&zip, &manifest_place, &mut list)?;
    if found != comment(FORMAT, &copied.sha256) {
        return Err(damaged(MANIFEST_JSON));
    }
    let manifest: Manifest = serde_json::from_slice(&list).map_err(|_| BAD_MANIFEST)?;
    if manifest.entries.len() != places.len() {
        return Err(BAD_MANIFEST.into());
    }
    let count = places.len() + 1;
    let listed = places.into_iter().zip(manifest.entries).enumerate();
    let entries = listed
        .map(|(index, (place, listed))| {
            let name = entry_name(index, count);
            if listed.name != name {
                return Err(BAD_MANIFEST.into());
            }
            if listed.size != place.end - place.start {
                return Err(damaged(&name));
            }
            Ok(ArchiveEntry { place, listed })
        })
        .collect::<Result<_, ArchiveFault>>()?;
    Ok((zip, entries))
}

/// Returns the comment; `None` if `orch` does not write such comments.
fn read_comment(zip: &ZipArchive<FileReader>) -> Result<Option<String>, ArchiveFault> {
    let mut bytes = Vec::new();
    match zip.comment().take(1 << 10).read_to_end(&mut bytes) {
        Ok(_) => Ok(String::from_utf8(bytes).ok()),
        Err(error) => Err(ArchiveFault::Io(error)),
    }
}

fn format_of(comment: &str) -> Option<u32> {
    let (format, _) = comment.strip_prefix("orch plan ")?.split_once(' ')?;
    format.parse().ok().filter(|format| *format > 0)
}

/// Returns the position of each content. Checks names, kinds and positions, and that the archive
/// contains nothing else.
fn read_directory(
    zip: &ZipArchive<FileReader>,
    buffer: &mut [u8],
) -> Result<Vec<Range<u64>>, ArchiveFault> {
    let damaged = |error| ArchiveFault::structure(error, BAD_DIRECTORY);
    let count = zip.entries_hint();
    let count = usize::try_from(count).map_err(|_| BAD_DIRECTORY)?;
    if count > MOST_PLANS + 2 {
        return Err(too_large(&format!("{MOST_PLANS} plans")));
    }
    let mut places = Vec::new();
    let mut end = 0;
    let mut bytes = 0;
    let mut directory_end = zip.directory_offset();
    let mut records = zip.entries(buffer);
    while let Some(record) = records.next_entry().map_err(damaged)? {
        if places.len() == count {
            return Err(BAD_DIRECTORY.into());
        }
        let name = entry_name(places.len(), count);
        check_record(&record, &name)?;
        directory_end += CENTRAL_HEADER_BYTES + name.len() as u64;
        bytes += record.compressed_size_hint();
        if bytes > MOST_BYTES + MOST_MANIFEST_BYTES {
            let limit = format!("{} GB of plans", MOST_BYTES / 1_000_000_000);
            return Err(too_large(&limit));
        }
        if record.local_header_offset() != end {
            return Err(format!(
                "has hidden data before its entry `{name}`, or overlapping entries"
            )
            .into());
        }
        let place = content_place(zip, &record, &name)?;
        end = place.end + DESCRIPTOR_BYTES;
        places.push(place);
    }
    let is_whole = places.len() == count && count >= 2;
    // The 64-bit extensions would precede the end of the directory.
    if is_whole && end == zip.directory_offset() && directory_end == zip.eocd_offset() {
        Ok(places)
    } else {
        Err(BAD_DIRECTORY.into())
    }
}

/// Returns an error unless an entry has the expected name, and is written as `orch` writes entries: a name may point
/// outside the archive, or be a duplicate.
fn check_record(record: &ZipFileHeaderRecord<'_>, name: &str) -> Result<(), String> {
    let found = record.file_path();
    let found: &[u8] = found.as_ref();
    if found != name.as_bytes() {
        let found = String::from_utf8_lossy(found);
        let found: String = printable(&found).chars().take(200).collect();
        return Err(format!("has an entry `{found}` where `{name}` belongs"));
    }
    let flags = record.flags();
    if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() {
        return Err(format!("has an encrypted entry, `{name}`"));
    }
    if record.compression_method() != CompressionMethod::STORE {
        return Err(format!(
            "has a compressed entry, `{name}`: orch compresses none"
        ));
    }
    let mode = record.mode().value();
    if (mode ^ FILE_MODE) & FILE_TYPE != 0 {
        return Err(format!("has an entry `{name}` that is not a regular file"));
    }
    let is_plain = mode == FILE_MODE
        && flags.bits() == HAS_DESCRIPTOR
        && record.extra_fields().remaining_bytes().is_empty()
        && record.comment().as_bytes().is_empty();
    if !is_plain {
        return Err(format!(
            "has an entry `{name}` that was not written by orch"
        ));
    }
    if record.compressed_size_hint() != record.uncompressed_size_hint() {
        return Err(contradiction(name));
    }
    Ok(())
}

/// Returns the position of the content. The entry's headers must agree with the central directory.
fn content_place(
    zip: &ZipArchive<FileReader>,
    record: &ZipFileHeaderRecord<'_>,
    name: &str,
) -> Result<Range<u64>, ArchiveFault> {
    let differs = || contradiction(name);
    let structure = |error| ArchiveFault::structure(error, differs());
    let entry = zip.get_entry(record.wayfinder()).map_err(structure)?;
    let mut buffer = [0; 64]; // for a name, none of which is longer
    let local = entry.local_header(&mut buffer).map_err(structure)?;
    let descriptor = entry
        .reader()
        .data_descriptor()
        .map_err(structure)?
        .ok_or_else(differs)?;
    let found = local.file_path();
    let agrees = found.as_ref() == name.as_bytes()
        && local.flags() == record.flags()
        && local.compression_method() == record.compression_method()
        && local.extra_fields().remaining_bytes().is_empty()
        && (local.crc32(), local.compressed_size_hint()) == (0, 0)
        && local.uncompressed_size_hint() == 0
        && descriptor.crc32() == record.crc32()
        && descriptor.compressed_size() == record.compressed_size_hint()
        && descriptor.uncompressed_size() == record.uncompressed_size_hint();
    if !agrees {
        return Err(differs().into());
    }
    let (start, end) = entry.compressed_data_range();
    Ok(start..end)
}
