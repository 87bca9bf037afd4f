//! A scene as a repository with a state, and what `orch plan` says of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use git2::{IndexEntry, IndexTime, Oid, RepositoryInitOptions, Signature, Time};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::scene::{
    Applied, Block, Content, Driver, Entry, Mode, PATHS, Request, Scene, Seen, Snapshot,
};
use crate::support::host::{folder, isolate, orch_program};

/// What all commits have besides their stacks.
const SETTINGS: &str = r#"
orch {
  config {
    state {
      project = "acme"
    }
  }
}

driver "blind" {
  apply   = ["true"]
  destroy = ["true", "${terramate.stack.description}"]
}

driver "calm" {
  plan    = ["true"]
  apply   = ["true"]
  destroy = ["true", "${terramate.stack.name}"]
}

driver "eager" {
  plan    = ["sh", "-c", "exit 2"]
  apply   = ["true"]
  destroy = ["true", "in ${terramate.stack.name}"]
}

driver "empty" {
  plan    = ["sh", "-c", "echo '{\"exists\":false}' > \"$ORCH_ANSWER\""]
  apply   = ["true"]
  destroy = ["true", "${terramate.stack.path.to_root}/x", "IN=.${terramate.stack.path.absolute}"]
}

driver "placed" {
  plan    = ["true"]
  apply   = ["true"]
  destroy = ["true"]
  backend = "place ${terramate.stack.name}"
}

driver "vacant" {
  plan    = ["sh", "-c", "echo '{\"exists\":false}' > \"$ORCH_ANSWER\""]
  apply   = ["true"]
  destroy = ["true"]
  backend = "place ${terramate.stack.name}"
}

driver "lasting" {
  plan  = ["true"]
  apply = ["true"]
}
"#;

const SETTINGS_FILE: &str = "settings.orch.hcl";

/// A commit that no clone has.
pub(super) const LOST: &str = "1234567123456712345671234567123456712345";

/// When everything happened.
const TIME: &str = "2026-01-01T00:00:00Z";

impl Driver {
    pub(super) fn name(self) -> &'static str {
        match self {
            Driver::Blind => "blind",
            Driver::Calm => "calm",
            Driver::Eager => "eager",
            Driver::Empty => "empty",
            Driver::Placed => "placed",
            Driver::Vacant => "vacant",
            Driver::Lasting => "lasting",
            Driver::None => "none",
        }
    }
}

/// Returns where a tool keeps its state.
pub(super) fn backend(place: usize) -> String {
    format!("place n{place}")
}

/// A file: what it says, and what it is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) text: String,
    /// Files that are alike say nearly the same, or the same to the extent of their rewrites; others have nothing in
    /// common.
    pub(super) alike: (usize, &'static str),
    /// How many lines at its beginning are others than they were at first.
    pub(super) rewritten: usize,
}

/// How many lines a file has.
const LINES: usize = 16;

impl File {
    /// Returns whether git takes two files for the same one.
    pub(super) fn is_like(&self, other: &File) -> bool {
        let (less, more) = (
            self.rewritten.min(other.rewritten),
            self.rewritten.max(other.rewritten),
        );
        self.alike == other.alike && 2 * (less + LINES - more) >= LINES
    }
}

/// Lines that no other text has.
fn lines(text: usize, part: &str) -> String {
    let line = |number: usize| {
        let mixed = (text * 1_000_003 + number * 7919 + part.len() * 104_729)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        format!(
            "# {text}{part}{number} {mixed:x} {:x}\n",
            mixed.rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        )
    };
    (0..LINES).map(line).collect()
}

/// The same, some of which are others.
fn rewritten_lines(text: usize, part: &str, rewritten: usize) -> String {
    let (before, after) = (lines(text, part), lines(text, &format!("{part}2")));
    let after = after.split_inclusive('\n').take(rewritten);
    let before = before.split_inclusive('\n').skip(rewritten);
    after.chain(before).collect()
}

fn block(block: &Block) -> String {
    let mut text = format!(
        "stack {{\n  name = \"n{}\"\n  description = \"t{}\"\n  driver = \"{}\"\n",
        block.place,
        block.text,
        block.driver.name()
    );
    if let Some(id) = block.id() {
        text += &format!("  id = \"i{id}\"\n");
    }
    if block.is_tagged {
        text += "  tags = [\"t\"]\n";
    }
    if block.is_read {
        text += "  mode = \"read\"\n";
    }
    let after = (0..PATHS.len()).filter(|it| block.after & (1 << it) != 0);
    let after: Vec<String> = after.map(|it| format!("\"{}\"", PATHS[it])).collect();
    if !after.is_empty() {
        text += &format!("  after = [{}]\n", after.join(", "));
    }
    format!(
        "{text}}}\n# edit {}\n{}",
        block.edit,
        lines(block.text, "stack")
    )
}

/// Returns the files of a directory by name.
pub(super) fn files_of(content: &Content) -> BTreeMap<&'static str, File> {
    let file = |text: String, number: usize, part: &'static str| File {
        text,
        alike: (number, part),
        rewritten: 0,
    };
    let files = match content {
        Content::Nothing => Vec::new(),
        Content::Rest(text) => vec![("rest.txt", file(lines(*text, "rest"), *text, "rest"))],
        Content::Broken(text) => {
            let broken = format!("stack {{\n{}", lines(*text, "broken"));
            vec![("stack.tm.hcl", file(broken, *text, "broken"))]
        }
        Content::Stack(it) => {
            let name = if it.is_renamed {
                "main.tm.hcl"
            } else {
                "stack.tm.hcl"
            };
            vec![
                (name, file(block(it), it.text, "stack")),
                (
                    "data.txt",
                    File {
                        rewritten: it.rewritten,
                        ..file(
                            rewritten_lines(it.text, "data", it.rewritten),
                            it.text,
                            "data",
                        )
                    },
                ),
                // What all stacks have.
                ("common.txt", file("# common\n".repeat(8), 0, "common")),
            ]
        }
    };
    files.into_iter().collect()
}

/// Returns all files of a snapshot by path, each with the directory that has it.
pub(super) fn files(snapshot: &Snapshot) -> BTreeMap<String, (usize, File)> {
    let mut all = BTreeMap::new();
    for (path, content) in snapshot.iter().enumerate() {
        for (name, file) in files_of(content) {
            all.insert(format!("{}/{name}", &PATHS[path][1..]), (path, file));
        }
    }
    all
}

/// What a plan says.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) entries: BTreeMap<usize, PlanEntry>,
    /// What is done in which order, and whether that is to destroy.
    pub(super) operations: Vec<(usize, bool)>,
    /// What is not kept to: the effect, what came earlier and what later.
    pub(super) not_kept_to: Vec<(String, usize, usize)>,
    /// How many stacks that are gone are out of its scope, and left out.
    pub(super) unplanned: (usize, usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanEntry {
    pub(super) action: String,
    pub(super) blocked: Option<String>,
    pub(super) previous: Option<usize>,
    /// The commit that removed it, or another word.
    pub(super) removed: Option<String>,
}

pub(super) struct Repository {
    folder: TempDir,
    root: PathBuf,
    /// The ids of the commits.
    pub(super) ids: Vec<String>,
}

impl Repository {
    pub(super) fn new(scene: &Scene) -> Self {
        let folder = folder();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir(folder.path().join("home")).unwrap();
        let mut options = RepositoryInitOptions::new();
        options.initial_head("main").external_template(false);
        let git = git2::Repository::init_opts(&root, &options).unwrap();
        let mut commits: Vec<Oid> = Vec::new();
        for (number, commit) in scene.commits.iter().enumerate() {
            let tree = git.find_tree(write_tree(&git, &commit.snapshot)).unwrap();
            let parents: Vec<git2::Commit<'_>> = commit
                .parents
                .iter()
                .map(|&it| git.find_commit(commits[it]).unwrap())
                .collect();
            let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
            let time = Time::new(1_700_000_000 + 60 * i64::try_from(number).unwrap(), 0);
            let who = Signature::new("Ada", "ada@example.org", &time).unwrap();
            let message = format!("commit {number}");
            commits.push(
                git.commit(None, &who, &who, &message, &tree, &parents)
                    .unwrap(),
            );
        }
        git.reference("refs/heads/main", commits[scene.head], true, "")
            .unwrap();
        if let Some(published) = scene.published {
            git.remote("origin", "../nowhere").unwrap();
            git.reference("refs/remotes/origin/main", commits[published], true, "")
                .unwrap();
        }
        if let Some(branch) = scene.branch {
            let name = format!("refs/{}", scene.branch_kind());
            git.reference(&name, commits[branch], true, "").unwrap();
        }
        let mut checkout = git2::build::CheckoutBuilder::new();
        git.checkout_head(Some(checkout.force())).unwrap();
        fs::write(root.join(".git/info/exclude"), "/.orch\n").ok();
        let repository = Repository {
            folder,
            root,
            ids: commits.iter().map(Oid::to_string).collect(),
        };
        repository.change(&scene.commits[scene.head].snapshot, &scene.working);
        fs::create_dir_all(repository.root.join(".orch/state")).unwrap();
        let document = repository.document(scene).to_string();
        fs::write(repository.root.join(".orch/state/default.json"), document).unwrap();
        repository
    }

    /// Makes the working tree another one than the commit.
    fn change(&self, head: &Snapshot, working: &Snapshot) {
        let (before, after) = (files(head), files(working));
        for name in before.keys().filter(|it| !after.contains_key(*it)) {
            fs::remove_file(self.root.join(name)).unwrap();
        }
        for (name, (_, file)) in after {
            if before.get(&name).is_none_or(|(_, it)| *it != file) {
                let place = self.root.join(name);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::write(place, file.text).unwrap();
            }
        }
        // A directory without files is none, as git has it; the inner one goes first.
        for path in (0..PATHS.len()).rev() {
            _ = fs::remove_dir(self.root.join(&PATHS[path][1..]));
        }
    }

    pub(super) fn id(&self, seen: Seen) -> Option<&str> {
        match seen {
            Seen::None => None,
            Seen::Lost => Some(LOST),
            Seen::At(commit) => Some(&self.ids[commit]),
        }
    }

    pub(super) fn short(&self, commit: usize) -> &str {
        &self.ids[commit][..7]
    }

    fn document(&self, scene: &Scene) -> Value {
        let stacks = scene.record.iter();
        let stacks: serde_json::Map<String, Value> = stacks
            .map(|(path, entry)| (PATHS[*path].to_owned(), self.entry(*path, entry)))
            .collect();
        json!({
            "format": 1, "project": "acme", "namespace": "default", "root": "",
            "lineage": "e069861a-4b21-48bc-943a-34cb5679d9f8", "serial": 9, "lock": null,
            "stacks": stacks, "history": [],
        })
    }

    fn entry(&self, path: usize, entry: &Entry) -> Value {
        let names = |paths: &std::collections::BTreeSet<usize>| {
            paths.iter().map(|&it| PATHS[it]).collect::<Vec<&str>>()
        };
        let applied = |applied: &Applied| {
            let inputs = json!({"rules": "0:0", "digest": "sha256:0", "parts": {}});
            json!({
                "serial": entry.serial, "run": null, "at": TIME, "command": null,
                "commit": self.id(applied.commit), "dirty": applied.is_dirty, "seen": self.id(applied.seen),
                "inputs": if applied.has_other_rules { inputs } else { Value::Null }, "triggers": [],
            })
        };
        let last = |(succeeded, commit): (bool, usize)| {
            json!({
                "serial": entry.serial, "action": "apply", "outcome": if succeeded { "succeeded" } else { "failed" },
                "failure": null, "run": null, "at": TIME, "commit": self.ids[commit],
            })
        };
        let mut value = json!({
            "id": entry.id.map(|id| format!("I{id}")),
            "name": format!("of {}", PATHS[path]),
            "tags": if entry.is_tagged { vec!["t"] } else { Vec::new() },
            "after": names(&entry.after), "before": names(&entry.before),
            "applied": entry.applied.as_ref().map(applied),
            "last": entry.last.map(last),
            "intent": null,
        });
        if entry.is_interrupted {
            value["intent"] = json!({"action": "apply", "run": "r", "since": TIME});
        }
        if entry.is_protected {
            value["lifecycle"] = json!({"prevent_destroy": {"value": true}});
        }
        if entry.is_tainted {
            value["tainted"] = json!({"by": "b", "at": TIME, "reason": null});
        }
        if let Some(driver) = entry.driver {
            value["driver"] = driver.name().into();
        }
        if let Some(place) = entry.backend {
            value["backend"] = backend(place).into();
        }
        if entry.is_read {
            value["mode"] = "read".into();
        }
        value
    }

    /// Returns the plan, or the exit status where there is none.
    pub(super) fn plan(&self, request: &Request) -> (Result<Plan, i32>, String) {
        let arguments = self.arguments(request);
        let mut orch = Command::new(orch_program());
        isolate(&mut orch, &self.folder.path().join("home"));
        orch.current_dir(&self.root).args(&arguments);
        let output = orch.output().unwrap();
        let said = format!(
            "orch {}\n{}{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let status = output.status.code().unwrap();
        if status != 0 {
            return (Err(status), said);
        }
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        (Ok(Plan::new(&plan)), said)
    }

    fn arguments(&self, request: &Request) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|&it| it.to_owned()));
        if let Some(directory) = request.directory {
            add(&["-C", &PATHS[directory][1..]]);
        }
        add(&["plan", "--format", "json"]);
        match request.mode {
            Mode::Normal => {}
            Mode::Destroy => add(&["--destroy"]),
            Mode::RefreshOnly => add(&["--refresh-only"]),
        }
        if request.no_removals {
            add(&["--no-removals"]);
        }
        for &path in &request.matching {
            add(&["--match", PATHS[path]]);
        }
        for &path in &request.exclude {
            add(&["--exclude", PATHS[path]]);
        }
        match request.tagged {
            Some(true) => add(&["--tags", "t"]),
            Some(false) => add(&["--no-tags", "t"]),
            None => {}
        }
        if !request.statuses.is_empty() {
            add(&["--status", &request.statuses.join(",")]);
        }
        if let Some(base) = request.base {
            add(&["--changed", "--base", &self.ids[base]]);
        }
        if let Some(named) = &request.named {
            let list = self.folder.path().join("named");
            let names: Vec<&str> = named.iter().map(|&path| PATHS[path]).collect();
            fs::write(&list, names.join("\n")).unwrap();
            add(&["--stacks-from", list.to_str().unwrap()]);
        }
        arguments
    }
}

fn write_tree(git: &git2::Repository, snapshot: &Snapshot) -> Oid {
    let settings = (SETTINGS_FILE.to_owned(), SETTINGS.to_owned());
    let files = files(snapshot)
        .into_iter()
        .map(|(name, (_, file))| (name, file.text));
    let mut index = git2::Index::new().unwrap();
    for (name, text) in files.chain([settings]) {
        index
            .add(&index_entry(&name, git.blob(text.as_bytes()).unwrap()))
            .unwrap();
    }
    index.write_tree_to(git).unwrap()
}

fn index_entry(name: &str, id: Oid) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: name.as_bytes().to_vec(),
    }
}

fn path(value: &Value) -> Option<usize> {
    let text = value.as_str()?;
    let found = PATHS.iter().position(|&path| path == text);
    Some(found.unwrap_or_else(|| panic!("no stack of the scene: {text}")))
}

impl Plan {
    fn new(plan: &Value) -> Self {
        assert_eq!(plan["failed"], json!([]));
        let entry = |entry: &Value| {
            let actions = entry["actions"].as_array().unwrap().iter();
            let actions: Vec<&str> = actions.map(|it| it.as_str().unwrap()).collect();
            let removed = &entry["removed"];
            let removed = removed["commit"].as_str().or_else(|| removed.as_str());
            let found = PlanEntry {
                action: match &actions[..] {
                    ["delete", "create"] => "replace".to_owned(),
                    actions => actions.join(" "),
                },
                blocked: entry["blocked"].as_str().map(str::to_owned),
                previous: path(&entry["previous_path"]),
                removed: removed.map(str::to_owned),
            };
            (path(&entry["path"]).unwrap(), found)
        };
        let operation = |it: &Value| (path(&it["path"]).unwrap(), it["operation"] == "destroy");
        let relaxed = |it: &Value| {
            let effect = it["effect"].as_str().unwrap().to_owned();
            Some((effect, path(&it["earlier"])?, path(&it["later"])?))
        };
        let list = |name: &str| plan[name].as_array().unwrap().iter();
        // What newer declarations contradict concerns no operation.
        let of_rules = |it: &&Value| it["effect"] != "contradicted";
        let number =
            |name: &str| usize::try_from(plan["removals"][name].as_u64().unwrap()).unwrap();
        Plan {
            entries: list("stacks").map(entry).collect(),
            operations: list("operations").map(operation).collect(),
            not_kept_to: list("relaxed")
                .filter(of_rules)
                .filter_map(relaxed)
                .collect(),
            unplanned: (number("out_of_scope"), number("left_out")),
        }
    }
}
