//! What a synthetic repository looks like. Used by the generator and by the benchmark.
//!
//! Whatever the shape, constraints lead from a stack to one made after it, so there are no cycles.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use walkdir::WalkDir;

use crate::history::{History, git, import, mark, succeed};

/// How many stacks share a directory in [`Shape::Tree`].
const STACKS_PER_GROUP: usize = 10;

/// The first stacks of [`Shape::Tree`] are tagged `base`; later ones may run after that tag.
const BASE_STACKS: usize = 5;

/// How many stacks are a layer in [`Shape::Layers`].
const LAYER: usize = 20;

/// Every so many commits a branch begins that the next commit merges.
const COMMITS_PER_MERGE: usize = 5;

/// What to generate.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// How many stacks; `bipartite` makes as many again in /base
    #[arg(long, default_value_t = 1000)]
    pub(crate) stacks: usize,

    /// Ordinary files beside each stack file
    #[arg(long, default_value_t = 5)]
    pub(crate) files: usize,

    /// Directory levels in `tree`
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) depth: u32,

    /// References to other stacks per stack in `tree`
    #[arg(long, default_value_t = 2)]
    pub(crate) references: usize,

    /// Shared modules that stacks use
    #[arg(long, default_value_t = 20)]
    pub(crate) modules: usize,

    /// Let every stack use the first module, and each module the next
    #[arg(long)]
    pub(crate) module_chain: bool,

    /// Commits of the git history; without any there is no git repository
    #[arg(long, default_value_t = 0)]
    pub(crate) commits: usize,

    /// How the stacks refer to each other
    #[arg(long, value_enum, default_value_t = Shape::Tree)]
    pub(crate) shape: Shape,

    /// Another seed gives another repository
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// How the stacks refer to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// As in a real repository: nested directories, some nested stacks, a few references each
    Tree,
    /// Each stack after the previous one
    Chain,
    /// All stacks after the directory /base, which holds as many
    Bipartite,
    /// Each stack in a directory of the root, with no order between them
    Flat,
    /// All stacks have one tag and want all with it; all but the first run after the tag of that
    Tagged,
    /// Layers of 20 stacks, each after all of the previous layer; every other one is tagged `skip`
    Layers,
}

/// A stack before it is written.
#[derive(Debug, Default)]
struct Plan {
    /// Relative to the root.
    directory: String,
    tags: Vec<String>,
    after: Vec<String>,
    before: Vec<String>,
    wants: Vec<String>,
}

/// Writes a repository and returns the directories of its stacks, relative to `root`.
pub(crate) fn generate(root: &Path, options: &Options) -> Result<Vec<String>> {
    fs::create_dir_all(root).with_context(|| format!("failed to create {}", root.display()))?;
    ensure!(
        fs::read_dir(root)?.next().is_none(),
        "{} is not empty",
        root.display()
    );
    let mut random = Random(options.seed);
    let plans = match options.shape {
        Shape::Tree => tree(options, &mut random),
        Shape::Chain => chain(options.stacks),
        Shape::Bipartite => bipartite(options.stacks),
        Shape::Flat => flat(options.stacks),
        Shape::Tagged => tagged(options.stacks),
        Shape::Layers => layers(options.stacks),
    };
    write(root, "root.orch.hcl", "orch {\n  root = true\n}\n")?;
    let version = "terramate {\n  required_version = \">= 0.4.0\"\n}\n";
    write(root, "terramate.tm.hcl", version)?;
    write(root, ".gitignore", ".terraform/\n")?;
    for module in 0..options.modules {
        write_module(root, module, options, &mut random)?;
    }
    for (number, plan) in plans.iter().enumerate() {
        write_stack(root, number, plan, options, &mut random)?;
    }
    let directories: Vec<String> = plans.into_iter().map(|plan| plan.directory).collect();
    if options.commits > 0 {
        commit(root, &directories, options.commits, &mut random)?;
    }
    Ok(directories)
}

/// Groups of stacks at the leaves of an even tree of directories. One stack in ten lies inside the
/// one before it.
fn tree(options: &Options, random: &mut Random) -> Vec<Plan> {
    const LEVELS: [&str; 4] = ["env", "region", "team", "service"];
    let groups = options.stacks.div_ceil(STACKS_PER_GROUP);
    let levels = options.depth - 1;
    let holds = |fanout: &usize| levels == 0 || fanout.saturating_pow(levels) >= groups;
    let fanout = (1..=groups).find(holds).unwrap_or(1);
    let mut plans: Vec<Plan> = Vec::with_capacity(options.stacks);
    for number in 0..options.stacks {
        let mut directory = String::new();
        match plans.last() {
            Some(previous) if random.one_in(10) => directory.clone_from(&previous.directory),
            _ => {
                let group = number / STACKS_PER_GROUP;
                for level in 0..levels {
                    let name = LEVELS[level as usize % LEVELS.len()];
                    let place = group / fanout.saturating_pow(levels - 1 - level) % fanout;
                    _ = write!(directory, "{name}-{place:02}/");
                }
                directory.pop();
            }
        }
        if !directory.is_empty() {
            directory.push('/');
        }
        _ = write!(directory, "stack-{number:06}");
        plans.push(Plan {
            directory,
            tags: vec![
                random.pick(&["prod", "staging", "dev"]).to_owned(),
                random
                    .pick(&["network", "storage", "compute", "iam"])
                    .to_owned(),
                format!("team-{}", random.below(20)),
            ],
            ..Plan::default()
        });
    }
    for plan in plans.iter_mut().take(BASE_STACKS) {
        plan.tags.push("base".to_owned());
    }
    for number in 1..plans.len() {
        for _ in 0..options.references {
            add_reference(&mut plans, number, random);
        }
    }
    plans
}

/// Makes a stack refer to an earlier one, or an earlier one to it. Half the time that is a neighbour.
fn add_reference(plans: &mut [Plan], number: usize, random: &mut Random) {
    let reach = if random.one_in(2) { 20 } else { number };
    let earlier = number - 1 - random.below(reach.min(number));
    let declaring = plans[number]
        .directory
        .strip_prefix(&plans[earlier].directory);
    if declaring.is_some_and(|below| below.starts_with('/')) {
        return; // nesting says so already, and Terramate sees a cycle
    }
    let forward = format!("/{}", plans[number].directory);
    let back = relative(&plans[number].directory, &plans[earlier].directory);
    let (list, entry) = match random.below(10) {
        0 if number >= BASE_STACKS => (&mut plans[number].after, "tag:base".to_owned()),
        1 | 2 => (&mut plans[earlier].before, forward),
        3 => (&mut plans[number].wants, back),
        _ => (&mut plans[number].after, back),
    };
    if !list.contains(&entry) {
        list.push(entry);
    }
}

/// Writes siblings as `../name`, as people do, and everything else from the root.
fn relative(from: &str, to: &str) -> String {
    match (from.rsplit_once('/'), to.rsplit_once('/')) {
        (Some((parent, _)), Some((other, name))) if parent == other => format!("../{name}"),
        _ => format!("/{to}"),
    }
}

fn flat(stacks: usize) -> Vec<Plan> {
    let plan = |number: usize| Plan {
        directory: format!("stack-{number:06}"),
        ..Plan::default()
    };
    (0..stacks).map(plan).collect()
}

fn tagged(stacks: usize) -> Vec<Plan> {
    let mut plans = flat(stacks);
    for plan in &mut plans {
        plan.tags.push("all".to_owned());
        plan.wants.push("tag:all".to_owned());
    }
    for plan in plans.iter_mut().skip(1) {
        plan.after.push("tag:first".to_owned());
    }
    if let Some(first) = plans.first_mut() {
        first.tags.push("first".to_owned());
    }
    plans
}

fn chain(stacks: usize) -> Vec<Plan> {
    let link = |number: usize| format!("link-{number:06}");
    (0..stacks)
        .map(|number| Plan {
            directory: link(number),
            after: number
                .checked_sub(1)
                .map(|previous| format!("/{}", link(previous)))
                .into_iter()
                .collect(),
            ..Plan::default()
        })
        .collect()
}

fn bipartite(stacks: usize) -> Vec<Plan> {
    let side = |name: &'static str, after: &'static [&str]| {
        (0..stacks).map(move |number| Plan {
            directory: format!("{name}/stack-{number:06}"),
            after: after.iter().map(|&entry| entry.to_owned()).collect(),
            ..Plan::default()
        })
    };
    side("base", &[]).chain(side("top", &["/base"])).collect()
}

fn layers(stacks: usize) -> Vec<Plan> {
    let directory = |layer: usize, place: usize| format!("layer-{layer:03}/stack-{place:02}");
    (0..stacks)
        .map(|number| {
            let layer = number / LAYER;
            let mut tags = vec![format!("layer-{layer}")];
            if layer % 2 == 1 {
                tags.push("skip".to_owned());
            }
            // In pairs, so that both forms are used by layers that are skipped and that are not.
            let after = match layer.checked_sub(1) {
                None => Vec::new(),
                Some(previous) if (layer / 2).is_multiple_of(2) => {
                    vec![format!("tag:layer-{previous}")]
                }
                Some(previous) => (0..LAYER)
                    .map(|place| format!("/{}", directory(previous, place)))
                    .collect(),
            };
            Plan {
                directory: directory(layer, number % LAYER),
                tags,
                after,
                ..Plan::default()
            }
        })
        .collect()
}

fn write_stack(
    root: &Path,
    number: usize,
    plan: &Plan,
    options: &Options,
    random: &mut Random,
) -> Result<()> {
    let mut text = format!(
        "stack {{
  id          = \"{}\"
  name        = \"stack {number}\"
  description = \"Number {number} of a generated repository: what it holds, who looks after it, and \
         what everybody ought to know before touching it\"\n",
        random.uuid()
    );
    let lists = [
        ("tags", &plan.tags),
        ("after", &plan.after),
        ("before", &plan.before),
        ("wants", &plan.wants),
    ];
    for (name, entries) in lists {
        if !entries.is_empty() {
            _ = writeln!(text, "\n  {name} = [");
            for entry in entries {
                _ = writeln!(text, "    \"{entry}\",");
            }
            text += "  ]\n";
        }
    }
    text += "}\n";
    let directory = root.join(&plan.directory);
    write(&directory, "stack.tm.hcl", &text)?;
    for file in 0..options.files {
        let mut text = terraform(random);
        if file == 0 && options.modules > 0 && (options.module_chain || random.one_in(2)) {
            let up = "../".repeat(plan.directory.split('/').count());
            let module = if options.module_chain {
                0
            } else {
                random.below(options.modules)
            };
            _ = writeln!(
                text,
                "\nmodule \"shared\" {{\n  source = \"{up}modules/module-{module:03}\"\n}}"
            );
        }
        write(&directory, &file_name(file), &text)?;
    }
    if options.files > 0 && random.one_in(8) {
        write_dot_directory(&directory)?;
    }
    Ok(())
}

/// Returns the name of an ordinary file beside a stack file, counted from 0.
pub(crate) fn file_name(file: usize) -> String {
    const NAMES: [&str; 5] = ["main", "variables", "outputs", "versions", "locals"];
    match NAMES.get(file) {
        Some(name) => format!("{name}.tf"),
        None => format!("file-{file}.tf"),
    }
}

/// What `terraform init` leaves behind. Whoever enters it stumbles over a broken file.
fn write_dot_directory(stack: &Path) -> Result<()> {
    let directory = stack.join(".terraform");
    write(&directory, "broken.tm.hcl", "stack {\n")?;
    for provider in 0..5 {
        let directory = directory.join(format!("providers/example.com/provider-{provider}"));
        write(&directory, "provider", "not really\n")?;
        write(&directory, "stack.tm.hcl", "stack {\n")?;
    }
    Ok(())
}

/// A module uses at most one other, always of a lower number or always of a higher one.
fn write_module(root: &Path, number: usize, options: &Options, random: &mut Random) -> Result<()> {
    let mut text = terraform(random);
    let used = if options.module_chain {
        Some(number + 1).filter(|&next| next < options.modules)
    } else {
        (number > 0 && random.one_in(3)).then(|| random.below(number))
    };
    if let Some(used) = used {
        _ = writeln!(
            text,
            "\nmodule \"inner\" {{\n  source = \"../module-{used:03}\"\n}}"
        );
    }
    let directory = root.join(format!("modules/module-{number:03}"));
    write(&directory, "main.tf", &text)
}

/// A few hundred bytes that differ from file to file.
fn terraform(random: &mut Random) -> String {
    let mut text = String::new();
    for index in 0..2 + random.below(3) {
        let value = random.next();
        _ = writeln!(
            text,
            "resource \"null_resource\" \"resource_{index}\" {{
  triggers = {{
    value = \"{value:016x}\"
  }}
}}\n"
        );
    }
    text
}

fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    // Nearly always the directory is there already.
    if fs::write(&path, text).is_err() {
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

/// Makes a history: everything at first, then one change of a file per commit, with merges.
fn commit(root: &Path, stacks: &[String], commits: usize, random: &mut Random) -> Result<()> {
    succeed(git(root, &["init", "--quiet", "--initial-branch=main"]).status())?;
    import(root, |history| {
        write_history(history, root, stacks, commits, random)
    })?;
    succeed(git(root, &["reset", "--quiet", "--hard", "main"]).status())
}

/// Writes these commits, numbered from 1.
fn write_history(
    history: &mut History,
    root: &Path,
    stacks: &[String],
    commits: usize,
    random: &mut Random,
) -> Result<()> {
    history.commit("main", 1, &[])?;
    add_whole_tree(history, root)?;
    let mut change = |number: usize| -> Result<(String, String)> {
        let directory = random.pick(stacks);
        let path = format!("{directory}/stack.tm.hcl");
        let text = fs::read_to_string(root.join(&path))?;
        Ok((path, format!("// Changed by commit {number}.\n{text}")))
    };
    let mut tip = 1;
    for number in 2..=commits {
        if number.is_multiple_of(COMMITS_PER_MERGE) && number < commits {
            let (path, text) = change(number)?;
            history.commit("branch", number, &[&mark(tip)])?;
            history.file(&path, text.as_bytes())?;
            history.commit("main", number + 1, &[&mark(tip), &mark(number)])?;
            history.file(&path, text.as_bytes())?;
            tip = number + 1;
        } else if number > tip {
            let (path, text) = change(number)?;
            history.commit("main", number, &[&mark(tip)])?;
            history.file(&path, text.as_bytes())?;
            tip = number;
        }
    }
    Ok(())
}

fn add_whole_tree(history: &mut History, root: &Path) -> Result<()> {
    let entries = WalkDir::new(root).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(|entry| {
        let name = entry.file_name();
        entry.depth() == 0 || (name != ".git" && name != ".terraform")
    }) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let path = entry.path().strip_prefix(root)?;
            let path = path.to_str().context("generated names are UTF-8")?;
            history.file(&path.replace('\\', "/"), &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// `SplitMix64`: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("usize is at most 64 bits");
        usize::try_from(self.next() % bound).expect("less than a usize")
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn pick<'a, T: AsRef<str>>(&mut self, from: &'a [T]) -> &'a str {
        from[self.below(from.len())].as_ref()
    }

    fn uuid(&mut self) -> String {
        let [high, low] = [self.next(), self.next()];
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }
}
