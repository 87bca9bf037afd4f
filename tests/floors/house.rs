//! The modules of a tree of Rust files, which of them use which, and what is wrong with that.

use std::collections::{BTreeMap, BTreeSet};

use crate::uses::{FileUses, Use, read};

/// The path of a module below the root, its segments joined by `/`; empty for the root.
type Module = String;

/// What one module takes from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: Module,
    to: Module,
    file: String,
    line: usize,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Names it the same wherever its lines move: `project uses run`, `circle in change/base`.
    pub(crate) name: String,
    /// Where it can be seen, each with file and line.
    pub(crate) lines: Vec<String>,
}

/// A tree of modules.
pub(crate) struct House {
    /// The file of each module, and what it names.
    modules: BTreeMap<Module, (String, FileUses)>,
    /// How the program calls the library in this tree.
    library: &'static str,
}

impl House {
    /// Reads files, whose paths are relative to the root: `a.rs`, `b/mod.rs`. Test code is left out.
    pub(crate) fn new<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        library: &'static str,
    ) -> Self {
        let mut modules = BTreeMap::new();
        for (file, source) in files {
            let place = file.strip_suffix(".rs").unwrap_or(file);
            let place = place.strip_suffix("/mod").unwrap_or(place);
            if !matches!(place, "build" | "lib" | "main") {
                modules.insert(place.to_owned(), (file.to_owned(), read(source)));
            }
        }
        let is_test = |module: &Module| {
            above(module).any(|module| {
                let (parent, name) = module.rsplit_once('/').unwrap_or(("", module));
                let by = |(_, uses): &(String, FileUses)| {
                    uses.test_modules.iter().any(|test| test == name)
                };
                modules.get(parent).is_some_and(by)
            })
        };
        let tests: BTreeSet<Module> = modules.keys().filter(|m| is_test(m)).cloned().collect();
        modules.retain(|module, _| !tests.contains(module));
        House { modules, library }
    }

    /// Returns the module that a path leads to from another; `None` if it leads out of the tree.
    fn target(&self, from: &str, path: &[String]) -> Option<Module> {
        // Whoever imports in a circle gets no answer.
        self.follow(from, path, 16)
    }

    fn follow(&self, from: &str, path: &[String], patience: u8) -> Option<Module> {
        let patience = patience.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => String::new(),
            library if library == self.library => String::new(),
            "self" => from.to_owned(),
            "super" => parent(from).to_owned(),
            child if self.is_module(&below(from, child)) => below(from, child),
            _ => return None,
        };
        while let Some((segment, others)) = rest.split_first() {
            let child = below(&module, segment);
            if segment == "super" {
                module.truncate(parent(&module).len());
            } else if self.is_module(&child) {
                module = child;
            } else {
                // What the module has from elsewhere comes from there.
                let imported = self.imported(&module, segment);
                let elsewhere = imported.and_then(|found| {
                    let path: Vec<String> = found.path.iter().chain(others).cloned().collect();
                    self.follow(&module, &path, patience)
                });
                return elsewhere.or(Some(module));
            }
            rest = others;
        }
        Some(module)
    }

    fn is_module(&self, module: &str) -> bool {
        self.modules.contains_key(module)
    }

    fn imported(&self, module: &str, name: &str) -> Option<&Use> {
        let (_, uses) = self.modules.get(module)?;
        let mut uses = uses.uses.iter();
        uses.find(|found| found.imported_as.as_deref() == Some(name))
    }

    fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (from, (file, uses)) in &self.modules {
            for found in &uses.uses {
                if let Some(to) = self.target(from, &found.path) {
                    arrows.insert(Arrow {
                        from: from.clone(),
                        to,
                        file: file.clone(),
                        line: found.line,
                    });
                }
            }
        }
        arrows
    }

    /// Returns every use of a higher floor, and every circle among the files and folders of a folder.
    ///
    /// The file `mod.rs` is the door of its folder: it may use what is in the folder, and what is in
    /// the folder may use what the door defines. What it only passes on comes from where it is defined.
    pub(crate) fn violations(&self, floors: &[&str]) -> Vec<Violation> {
        let arrows = self.arrows();
        let mut violations = upward(&arrows, floors);
        let rooms = self.modules.keys().map(|module| top(module));
        for room in rooms.collect::<BTreeSet<_>>() {
            if !floors.contains(&room) {
                violations.push(Violation {
                    name: format!("{room} has no floor"),
                    lines: Vec::new(),
                });
            }
        }
        let folders: BTreeSet<&str> = self.modules.keys().map(|module| parent(module)).collect();
        // Among the rooms themselves, no circle is without a use of a higher floor.
        for folder in folders.into_iter().filter(|folder| !folder.is_empty()) {
            violations.extend(circle(&arrows, folder));
        }
        violations
    }
}

/// Returns the uses of rooms on higher floors.
fn upward(arrows: &BTreeSet<Arrow>, floors: &[&str]) -> Vec<Violation> {
    let height = |module: &str| floors.iter().position(|floor| *floor == top(module));
    let mut violations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for arrow in arrows.iter().filter(|arrow| !arrow.to.is_empty()) {
        if height(&arrow.from) < height(&arrow.to) {
            let name = format!("{} uses {}", top(&arrow.from), top(&arrow.to));
            let line = format!("src/{}:{} uses {}", arrow.file, arrow.line, arrow.to);
            violations.entry(name).or_default().push(line);
        }
    }
    violations
        .into_iter()
        .map(|(name, lines)| Violation { name, lines })
        .collect()
}

/// Returns the circle among what a folder holds, if there is one, with every use that is part of it.
fn circle(arrows: &BTreeSet<Arrow>, folder: &str) -> Option<Violation> {
    // Which of the files and folders use which, and in which line.
    let mut uses: BTreeMap<&str, BTreeMap<&str, &Arrow>> = BTreeMap::new();
    for arrow in arrows {
        if let (Some(from), Some(to)) = (inside(folder, &arrow.from), inside(folder, &arrow.to))
            && from != to
        {
            uses.entry(from).or_default().entry(to).or_insert(arrow);
        }
    }
    // What can be reached from each, in as many rounds as it takes.
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = uses
        .iter()
        .map(|(from, to)| (*from, to.keys().copied().collect()))
        .collect();
    loop {
        let before = reached.clone();
        for from in reached.values_mut() {
            let further = from.iter().filter_map(|by| before.get(by)).flatten();
            let further: Vec<&str> = further.copied().collect();
            from.extend(further);
        }
        if reached == before {
            break;
        }
    }
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let lines: Vec<String> = uses
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |(to, arrow)| (from, to, arrow)))
        .filter(|(from, to, _)| leads(to, from))
        .map(|(_, to, arrow)| format!("src/{}:{} uses {to}", arrow.file, arrow.line))
        .collect();
    (!lines.is_empty()).then(|| Violation {
        name: format!("circle in {folder}"),
        lines,
    })
}

/// Returns the file or folder of a folder that a module is or lies in.
fn inside<'m>(folder: &str, module: &'m str) -> Option<&'m str> {
    let rest = module.strip_prefix(folder)?.strip_prefix('/')?;
    rest.split('/').next()
}

fn parent(module: &str) -> &str {
    module.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn top(module: &str) -> &str {
    module.split('/').next().unwrap_or_default()
}

fn below(module: &str, child: &str) -> Module {
    match module {
        "" => child.to_owned(),
        _ => format!("{module}/{child}"),
    }
}

/// Returns a module and those that it lies in.
fn above(module: &str) -> impl Iterator<Item = &str> {
    let ends = module.match_indices('/').map(|(at, _)| at);
    ends.chain([module.len()]).map(|end| &module[..end])
}
