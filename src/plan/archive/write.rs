//! Writes an archive to a temporary file beside the target, and renames it when it is complete.

use std::fmt::Display;
use std::fs;
use std::io::{self, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use rawzip::{CompressionMethod, ZipArchiveWriter};
use tempfile::NamedTempFile;

use super::{Archive, ArchiveReadError, CopiedContent, CopyError, copy, shown};
use super::{
    FILE_MODE, FORMAT, MOST_BYTES, MOST_JSON_BYTES, MOST_PLANS, PLAN_JSON, comment, entry_name,
    open_regular,
};
use super::{ListedFile, Manifest};
use crate::error::{Error, Result};

/// The prefix of temporary files. A killed process leaves one behind.
const TEMPORARY: &str = ".orch-plan-";

/// Checks that an archive can be written to a path, without writing it. Fails if the path is
/// anything but a regular file, even a link to one, or if the directory is not writable.
pub fn check_target(file: &Path) -> Result<()> {
    check_kind(file)?;
    temporary(file).map(drop)
}

/// Removes the archive of an earlier plan from a path that passes [`check_target`], so that it cannot
/// be applied instead of a plan that fails. A file that is no plan remains until it is replaced.
pub fn remove_earlier(file: &Path) -> Result<()> {
    match Archive::open(file) {
        Ok(_) => fs::remove_file(file).map_err(|error| {
            let file = shown(file);
            Error::external(format!(
                "failed to remove the earlier plan `{file}`: {error}"
            ))
        }),
        Err(ArchiveReadError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            Ok(())
        }
        Err(ArchiveReadError::Refused { .. }) => Ok(()),
        Err(error) => Err(Error::external(error.to_string())),
    }
}

/// Writes an archive; `plans[3]` becomes the entry `plans/3`. An existing file is unchanged until
/// it is replaced at the end. Only the user can read the archive. Fails like [`check_target`], and
/// beyond [`MOST_PLANS`], [`MOST_BYTES`] or [`MOST_JSON_BYTES`].
pub fn write(file: &Path, plan_json: &[u8], plans: &[PathBuf]) -> Result<()> {
    check_kind(file)?;
    if plans.len() > MOST_PLANS {
        return Err(too_large(
            file,
            &format!("the plans of {MOST_PLANS} stacks"),
        ));
    }
    let json_bytes = plan_json.len() as u64;
    if json_bytes > MOST_JSON_BYTES {
        let limit = format!("{} MiB of `{PLAN_JSON}`", MOST_JSON_BYTES >> 20);
        return Err(too_large(file, &limit));
    }
    let sizes = plans
        .iter()
        .map(|plan| {
            let metadata = plan.metadata().map_err(|error| unreadable(plan, &error))?;
            Ok(metadata.len())
        })
        .collect::<Result<Vec<u64>>>()?;
    let bytes = sizes
        .iter()
        .fold(json_bytes, |sum, size| sum.saturating_add(*size));
    if bytes > MOST_BYTES {
        let limit = format!("{} GB of plans", MOST_BYTES / 1_000_000_000);
        return Err(too_large(file, &limit));
    }
    let mut archive = ArchiveDraft::begin(file, plans.len())?;
    archive.add(&mut &*plan_json, json_bytes, file)?;
    for (plan, size) in plans.iter().zip(sizes) {
        let opened = open_regular(plan)
            .and_then(|opened| opened.ok_or_else(|| io::Error::other("it is not a regular file")));
        let (mut opened, _) = opened.map_err(|error| unreadable(plan, &error))?;
        archive.add(&mut opened, size, plan)?;
    }
    archive.finish()
}

pub(super) struct ArchiveDraft<'a> {
    file: &'a Path,
    zip: ZipArchiveWriter<BufWriter<NamedTempFile>>,
    entries: usize,
    manifest: Manifest,
}

impl<'a> ArchiveDraft<'a> {
    pub(super) fn begin(file: &'a Path, plans: usize) -> Result<Self> {
        let out = BufWriter::with_capacity(1 << 16, temporary(file)?);
        Ok(ArchiveDraft {
            file,
            zip: ZipArchiveWriter::new(out),
            entries: plans + 2,
            manifest: Manifest::default(),
        })
    }

    /// Adds and lists the next entry, of so many bytes. `source` is for errors.
    pub(super) fn add(&mut self, content: &mut impl Read, size: u64, source: &Path) -> Result<()> {
        let name = entry_name(self.manifest.entries.len(), self.entries);
        let written = self.put(&name, &mut content.take(size.saturating_add(1)));
        let copied = written.map_err(|error| match error {
            CopyError::Read(error) => unreadable(source, &error),
            CopyError::Write(error) => failed(self.file, error),
        })?;
        if copied.size != size {
            let error = io::Error::other("its size has changed");
            return Err(unreadable(source, &error));
        }
        let sha256 = copied.sha256;
        self.manifest
            .entries
            .push(ListedFile { name, size, sha256 });
        Ok(())
    }

    fn put(&mut self, name: &str, content: &mut impl Read) -> Result<CopiedContent, CopyError> {
        let unwritten = |error| CopyError::Write(into_io(error));
        let entry = self.zip.new_file(name).unix_permissions(FILE_MODE);
        let (mut entry, config) = entry
            .compression_method(CompressionMethod::STORE)
            .start()
            .map_err(unwritten)?;
        let mut out = config.wrap(&mut entry);
        let copied = copy(content, &mut out)?;
        let (_, descriptor) = out.finish().map_err(unwritten)?;
        entry.finish(descriptor).map_err(unwritten)?;
        Ok(copied)
    }

    /// Adds the manifest, and renames the file once it is on disk.
    fn finish(mut self) -> Result<()> {
        let list = serde_json::to_vec(&self.manifest).expect("names, numbers and digests");
        let name = entry_name(self.manifest.entries.len(), self.entries);
        let listed = self.put(&name, &mut &*list).map_err(|error| {
            let (CopyError::Read(error) | CopyError::Write(error)) = error;
            failed(self.file, error)
        })?;
        self.zip.set_comment(comment(FORMAT, &listed.sha256));
        let written = self.zip.finish().map_err(into_io).and_then(|mut out| {
            out.flush()?;
            let temporary = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            temporary.as_file().sync_all()?;
            // A rename replaces a link that may have appeared; it does not follow it.
            temporary.persist(self.file)?;
            Ok(())
        });
        written.map_err(|error| failed(self.file, error))
    }
}

fn check_kind(file: &Path) -> Result<()> {
    let found = match file.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(metadata) if metadata.is_symlink() => "a symbolic link",
        Ok(metadata) if metadata.is_dir() => "a directory",
        Ok(_) => "a device, a pipe or a socket",
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(file, error)),
    };
    Err(Error::external(format!(
        "`{}` is {found}: name a regular file for the plan",
        shown(file)
    )))
}

/// Creates a file that is removed unless it becomes the archive.
fn temporary(file: &Path) -> Result<NamedTempFile> {
    let directory = match file.parent() {
        Some(directory) if directory != "" => directory,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    // On Unix, only the user can read a file created like this.
    let created = builder.prefix(TEMPORARY).tempfile_in(directory);
    created.map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            let why = format!("the directory `{}` does not exist", shown(directory));
            return failed(file, why);
        }
        // The error would name the temporary file, which the user does not know.
        let cause = error.get_ref().and_then(std::error::Error::source);
        let error = match cause.map(ToString::to_string) {
            Some(cause) => io::Error::new(error.kind(), cause),
            None => error,
        };
        failed(file, error)
    })
}

fn into_io(error: rawzip::Error) -> io::Error {
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Error {
    let file = shown(file);
    Error::external(format!(
        "failed to read `{file}`, the plan of a tool: {error}"
    ))
}

fn failed(file: &Path, why: impl Display) -> Error {
    Error::external(format!("failed to write `{}`: {why}", shown(file)))
}

fn too_large(file: &Path, limit: &str) -> Error {
    let file = shown(file);
    Error::external(format!(
        "`{file}` cannot hold more than {limit}: select fewer stacks"
    ))
}
