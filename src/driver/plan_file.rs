//! Plan files of Terraform and `OpenTofu`: their effects, and whether they are from the configuration in the
//! directory of the stack.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipSliceArchive};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::command::PlanKind;
use super::completeness::effect;
use super::plan_json::{PlanJson, VariableJson};
use super::terraform::parse;
use super::value::{digest, digest_of};
use crate::language::NoNamespaces;
use crate::language::evaluate::evaluate;
use crate::language::function::from_json;
use crate::language::parse::{parse_expression, parse_whole};
use crate::language::value::{Value, to_json};
use crate::source::FileId;

const MAX_LENGTH: u64 = 1 << 26;

const CONFIGURATION: &str = "tfconfig/";

/// The format of the entry `tfplan`, a message of Protocol Buffers, and the numbers of its fields.
const FORMAT: u64 = 3;
const FORMAT_FIELD: u64 = 1;
const TARGETS_FIELD: u64 = 5;
const MODE_FIELD: u64 = 17;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPlan {
    pub destroys: bool,
    pub is_whole: bool,
    /// Whether it was made of the files and values that the stack has.
    pub is_current: bool,
}

/// The parts of a plan file that the tool's JSON lacks.
struct PlanFile {
    mode: PlanKind,
    has_targets: bool,
    /// The files of the configuration, by the key of their module and their name.
    files: BTreeMap<(String, String), Vec<u8>>,
    /// The modules, if there are several.
    modules: Vec<ModuleJson>,
}

#[derive(Deserialize)]
struct ModuleJson {
    #[serde(rename = "Key")]
    key: String,
    #[serde(default, rename = "Source")]
    source: String,
    #[serde(rename = "Dir")]
    directory: String,
}

/// Returns the effect of a plan file, given its content, the output of `show -json`, the directory of its
/// configuration, and a look-up of the environment; and the planned changes, if all are known.
///
/// `Err` has whether it destroys, as far as the JSON shows; `None` if that is no plan.
pub fn read_tool_plan(
    content: &[u8],
    shown: &[u8],
    directory: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ToolPlan, Option<bool>> {
    let plan = parse(shown).map_err(|_| None)?;
    let Some(file) = PlanFile::read(content) else {
        return Err(Some(effect(&plan, None).0));
    };
    let (destroys, is_whole) = effect(&plan, Some(file.mode));
    Ok(ToolPlan {
        destroys,
        is_whole: is_whole && !file.has_targets,
        is_current: file.is_of(directory).unwrap_or(false)
            && has_values(&plan, directory, variable).unwrap_or(false),
    })
}

pub fn digest_of_file(content: &[u8]) -> String {
    digest([content])
}

impl PlanFile {
    /// Reads a plan file; `None` if it is damaged, encrypted, or in another format.
    fn read(content: &[u8]) -> Option<Self> {
        let zip = ZipArchive::from_slice(content).ok()?;
        let mut entries = zip.entries();
        let (mut plan, mut modules, mut files) = (None, Vec::new(), BTreeMap::new());
        while let Some(entry) = entries.next_entry().ok()? {
            let path = entry.file_path();
            let path = std::str::from_utf8(path.as_ref()).ok()?;
            let read = || inflated(&zip, &entry);
            if path == "tfplan" {
                plan = Some(read()?);
            } else if let Some(path) = path.strip_prefix(CONFIGURATION) {
                if path == "modules.json" {
                    modules = serde_json::from_slice(&read()?).ok()?;
                } else if let Some((key, name)) = path.strip_prefix("m-")?.split_once('/') {
                    files.insert((key.to_owned(), name.to_owned()), read()?);
                }
            }
        }
        let plan = plan?;
        let fields = fields(&plan)?;
        let number = |wanted| {
            fields.iter().find_map(|(number, field)| match field {
                Field::Number(value) if *number == wanted => Some(*value),
                _ => None,
            })
        };
        if number(FORMAT_FIELD) != Some(FORMAT) {
            return None;
        }
        Some(PlanFile {
            mode: match number(MODE_FIELD).unwrap_or_default() {
                0 => PlanKind::Normal,
                1 => PlanKind::Destroy,
                2 => PlanKind::RefreshOnly,
                _ => return None,
            },
            has_targets: fields.iter().any(|(number, _)| *number == TARGETS_FIELD),
            files,
            modules,
        })
    }

    /// Returns whether its configuration is that of a directory and its local modules; `None` if it is unknown.
    fn is_of(&self, directory: &Path) -> Option<bool> {
        if !self.is_module("", directory)? {
            return Some(false);
        }
        let is_local = |source: &str| source.starts_with("./") || source.starts_with("../");
        let others = self.modules.iter().filter(|module| !module.key.is_empty());
        let fetched: Vec<&str> = others
            .clone()
            .filter(|module| !is_local(&module.source))
            .map(|module| &*module.key)
            .collect();
        // The files of the stack have the sources of fetched modules.
        let is_fetched = |key: &str| {
            let mut above = key
                .match_indices('.')
                .map(|(end, _)| &key[..end])
                .chain([key]);
            above.any(|key| fetched.contains(&key))
        };
        for module in others.filter(|module| !is_fetched(&module.key)) {
            if !self.is_module(&module.key, &directory.join(&module.directory))? {
                return Some(false);
            }
        }
        let is_listed =
            |key: &String| key.is_empty() || self.modules.iter().any(|it| it.key == *key);
        Some(self.files.keys().all(|(key, _)| is_listed(key)))
    }

    fn is_module(&self, key: &str, directory: &Path) -> Option<bool> {
        let files = self.files.iter().filter(|((module, _), _)| module == key);
        let mut planned: BTreeMap<&str, &[u8]> = BTreeMap::new();
        planned.extend(files.map(|((_, name), content)| (&**name, &**content)));
        for (name, content) in &planned {
            if fs::read(directory.join(name)).ok()? != *content {
                return Some(false);
            }
        }
        let is_tofu = planned.keys().any(|name| name.contains(".tofu"));
        for entry in fs::read_dir(directory).ok()? {
            let name = entry.ok()?.file_name();
            let Some(name) = name.to_str() else {
                continue;
            };
            let stem = name.strip_suffix(".json").unwrap_or(name);
            let is_ignored = name.starts_with(['.', '#']);
            // OpenTofu prefers its own files, which Terraform ignores.
            let is_replaced = || {
                let own = name.replace(".tf", ".tofu");
                is_tofu && planned.contains_key(&*own)
            };
            let kind = Path::new(stem).extension().unwrap_or_default();
            let is_read = kind == "tf" && !is_replaced() || is_tofu && kind == "tofu";
            if is_read && !is_ignored && !planned.contains_key(name) {
                return Some(false);
            }
        }
        Some(true)
    }
}

fn inflated(
    zip: &ZipSliceArchive<&[u8]>,
    record: &rawzip::ZipFileHeaderRecord<'_>,
) -> Option<Vec<u8>> {
    let entry = zip.get_entry(record.wayfinder()).ok()?;
    let mut content = Vec::new();
    let method = record.compression_method();
    if method == CompressionMethod::STORE {
        content.extend_from_slice(entry.data());
    } else if method == CompressionMethod::DEFLATE {
        let mut decoder = DeflateDecoder::new(entry.data()).take(MAX_LENGTH);
        decoder.read_to_end(&mut content).ok()?;
    } else {
        return None;
    }
    (content.len() as u64 == record.uncompressed_size_hint()).then_some(content)
}

enum Field {
    Number(u64),
    Other,
}

/// Returns the fields of a message of Protocol Buffers, by number; `None` if it is none.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let length = match tag & 7 {
            0 => {
                fields.push((tag >> 3, Field::Number(varint(&mut bytes)?)));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)?).ok()?,
            5 => 4,
            _ => return None,
        };
        (_, bytes) = bytes.split_at_checked(length)?;
        fields.push((tag >> 3, Field::Other));
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Returns whether a plan has the values that variables of the environment and files in a directory give to the
/// variables of the configuration; `None` if these cannot be read.
fn has_values(
    plan: &PlanJson,
    directory: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<bool> {
    let files = values_of_files(directory)?;
    let is_same = |(name, planned): (&String, &VariableJson)| {
        let null = || to_raw_value(&()).ok();
        let planned = match planned.value.clone().or_else(null) {
            Some(planned) => digest_of(&planned),
            None => return false,
        };
        if let Some(value) = files.get(name) {
            return as_written(value).contains(&planned);
        }
        variable(&format!("TF_VAR_{name}")).is_none_or(|text| {
            let value = parse_expression(FileId::UNPLACED, &text)
                .ok()
                .and_then(|it| evaluate(&it, &NoNamespaces("a variable")).ok());
            let texts = [Some(Value::string(text)), value];
            let mut digests = texts.iter().flatten().flat_map(as_written);
            digests.any(|it| it == planned)
        })
    };
    Some(plan.variables.iter().all(is_same))
}

/// Returns the values of variables that the tool reads from files in a directory by itself.
fn values_of_files(directory: &Path) -> Option<BTreeMap<String, Value>> {
    const OWN: [&str; 2] = ["terraform.tfvars", "terraform.tfvars.json"];
    const AUTOMATIC: [&str; 2] = [".auto.tfvars", ".auto.tfvars.json"];
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).ok()? {
        let name = entry.ok()?.file_name().to_string_lossy().into_owned();
        let own = OWN.iter().position(|it| *it == name);
        if own.is_some() || AUTOMATIC.iter().any(|end| name.ends_with(end)) {
            // The later wins.
            names.push((own.unwrap_or(OWN.len()), name));
        }
    }
    names.sort();
    let mut values = BTreeMap::new();
    for (_, name) in names {
        let text = fs::read_to_string(directory.join(&name)).ok()?;
        if name.strip_suffix(".json").is_some() {
            let Value::Object(entries) = from_json(&text)? else {
                return None;
            };
            let entries = entries.iter();
            values.extend(entries.map(|(name, value)| (name.to_string(), value.clone())));
            continue;
        }
        for attribute in parse_whole(FileId::UNPLACED, &text).ok()?.attributes {
            let value = evaluate(&attribute.value, &NoNamespaces("a variable")).ok()?;
            values.insert(attribute.name.text.to_string(), value);
        }
    }
    Some(values)
}

/// Returns digests of a value: as it is, and as text if the variable has a type that converts it.
fn as_written(value: &Value) -> Vec<String> {
    let json = to_json(value);
    let text = matches!(value, Value::Bool(_) | Value::Number(_)).then(|| format!("\"{json}\""));
    let texts = [Some(json), text].into_iter().flatten();
    let values = texts.filter_map(|text| RawValue::from_string(text).ok());
    values.map(|value| digest_of(&value)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use rawzip::ZipArchiveWriter;

    use super::*;

    fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut archive = ZipArchiveWriter::new(&mut file);
        for (name, content) in entries {
            let new = archive
                .new_file(name)
                .compression_method(CompressionMethod::DEFLATE)
                .start();
            let (mut entry, config) = new.unwrap();
            let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
            writer.write_all(content).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap();
        file
    }

    const SHOWN: &[u8] = br#"{"format_version":"1.2","variables":{"n":{"value":1}}}"#;

    #[test]
    fn a_plan_file_says_what_it_does_and_what_it_was_made_of() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("main.tf"), "a").unwrap();
        let read = |plan: &[u8], main: &[u8], variable: Option<&str>| {
            let file = zip(&[("tfplan", plan), ("tfconfig/m-/main.tf", main)]);
            let variable = |name: &str| variable.filter(|_| name == "TF_VAR_n").map(str::to_owned);
            let read = read_tool_plan(&file, SHOWN, directory.path(), &variable);
            read.map(|it| (it.destroys, it.is_whole, it.is_current))
        };
        let normal: &[u8] = &[8, 3];
        for (plan, main, variable, expected) in [
            (normal, "a", None, Ok((false, true, true))),
            (normal, "a", Some("1.0"), Ok((false, true, true))),
            (normal, "a", Some("2"), Ok((false, true, false))),
            (normal, "b", None, Ok((false, true, false))),
            (&[8, 3, 136, 1, 1], "a", None, Ok((true, true, true))),
            (&[8, 3, 136, 1, 2], "a", None, Ok((false, false, true))),
            (&[8, 3, 42, 1, b'x'], "a", None, Ok((false, false, true))),
            (&[8, 3, 136, 1, 3], "a", None, Err(Some(false))),
            (&[8, 4], "a", None, Err(Some(false))),
            (&[8, 3, 42, 9], "a", None, Err(Some(false))),
            (&[255; 12], "a", None, Err(Some(false))),
        ] {
            let found = read(plan, main.as_bytes(), variable);
            assert_eq!(found, expected, "{plan:?} {main} {variable:?}");
        }
    }

    #[test]
    fn a_damaged_plan_file_is_unreadable() {
        let directory = tempfile::tempdir().unwrap();
        let file = zip(&[("tfplan", &[8, 3]), ("tfconfig/m-/main.tf", b"a")]);
        let read = |file: &[u8]| read_tool_plan(file, SHOWN, directory.path(), &|_| None);
        assert!(read(&file).is_ok());
        for length in 0..file.len() {
            assert_eq!(read(&file[..length]), Err(Some(false)), "{length}");
        }
        let json = b"no JSON".as_slice();
        assert_eq!(
            read_tool_plan(&file, json, directory.path(), &|_| None),
            Err(None)
        );
    }
}
