//! The Terragrunt units of a project that are not stacks yet.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use crate::change::{
    ChangeError, Location, TerragruntUnit, UnitDependency, UnitTarget, terragrunt_units,
};
use crate::diagnostic::Code;
use crate::path::ProjectPath;
use crate::project::discover::Listing;
use crate::project::{Problems, Project};

/// Problems because of which the dependencies of a unit are unknown.
const UNKNOWN: [Code; 3] = [Code::Syntax, Code::Encoding, Code::Unreadable];

/// The units at and below a directory that are not stacks.
#[derive(Debug, Default)]
pub struct NewUnits {
    /// Each with the directories of units that run before it, without those above it.
    pub units: BTreeMap<ProjectPath, Vec<ProjectPath>>,
    /// The directories with Terragrunt files that name no module and lie beside no Terraform files.
    pub others: Vec<ProjectPath>,
    pub inside_out: Vec<InsideOutUnit>,
    /// The units with an `exclude` block, each with the place of it.
    pub excluding: Vec<(ProjectPath, Location)>,
    pub left_out: Vec<LeftOutDependency>,
}

#[derive(Debug)]
pub struct LeftOutDependency {
    pub location: Location,
    /// Whether its path leads out of the project; if not, only Terragrunt can evaluate it.
    pub is_outside: bool,
}

/// A unit that depends on one inside it. A stack always runs before the stacks nested in it.
#[derive(Debug)]
pub struct InsideOutUnit {
    pub unit: ProjectPath,
    pub inner: ProjectPath,
    pub location: Location,
}

#[derive(Debug, thiserror::Error)]
pub enum BadUnits {
    #[error("Terragrunt units depend on each other in a cycle: {}", names(units))]
    Cycle { units: Vec<ProjectPath> },
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// Returns `path/to/file:line`.
pub fn place(location: &Location) -> String {
    let line = location.line.map(|line| format!(":{line}"));
    format!("{}{}", location.file.relative(), line.unwrap_or_default())
}

fn names(units: &[ProjectPath]) -> String {
    let names: Vec<String> = units.iter().map(|unit| format!("`{unit}`")).collect();
    names.join(", ")
}

/// Finds the units: directories with a Terragrunt file that names a module, or lies beside Terraform files. Adds an
/// error to `problems` for each file that cannot be understood.
pub fn new_units(
    project: &Project,
    listing: &Listing,
    directory: &ProjectPath,
    problems: &mut Problems,
) -> Result<NewUnits, BadUnits> {
    let mut directories = listing.with_terragrunt();
    directories.retain(|path| path.is_at_or_below(directory));
    let mut found = Problems::default();
    let read = terragrunt_units(project, listing, &directories, &mut found)?;
    found.keep_as_errors(&UNKNOWN);
    problems.append(found);
    let is_run = |unit: &TerragruntUnit| {
        let files = listing.tool_files(&unit.directory);
        unit.has_source || files.terraform || files.tofu
    };
    let is_new = |path: &ProjectPath| project.stacks.at(path.as_str()).len() == 0;
    let known: BTreeSet<ProjectPath> = read.iter().map(|unit| unit.directory.clone()).collect();
    let mut new = NewUnits::default();
    for unit in read {
        if !is_new(&unit.directory) {
            continue;
        }
        if is_run(&unit) {
            add(unit, &known, &mut new);
        } else {
            new.others.push(unit.directory);
        }
    }
    check_cycles(&new)?;
    Ok(new)
}

fn add(unit: TerragruntUnit, known: &BTreeSet<ProjectPath>, new: &mut NewUnits) {
    let mut after: Vec<ProjectPath> = Vec::new();
    for UnitDependency { target, location } in unit.dependencies {
        let places = match target {
            UnitTarget::Inside(places) => places,
            UnitTarget::Outside | UnitTarget::Unknown => {
                let is_outside = matches!(target, UnitTarget::Outside);
                new.left_out.push(LeftOutDependency {
                    location,
                    is_outside,
                });
                continue;
            }
        };
        let mut units = places.iter().filter(|place| known.contains(*place));
        let Some(path) = units.next().or(places.first()) else {
            continue;
        };
        // A unit runs after those above it anyway.
        if unit.directory.is_at_or_below(path) || after.contains(path) {
            continue;
        }
        if path.is_at_or_below(&unit.directory) {
            return new.inside_out.push(InsideOutUnit {
                unit: unit.directory,
                inner: path.clone(),
                location,
            });
        }
        after.push(path.clone());
    }
    after.sort_unstable();
    let exclude = unit.exclude;
    new.excluding
        .extend(exclude.map(|place| (unit.directory.clone(), place)));
    new.units.insert(unit.directory, after);
}

fn check_cycles(new: &NewUnits) -> Result<(), BadUnits> {
    let mut graph: DiGraph<&ProjectPath, ()> = DiGraph::new();
    let nodes: BTreeMap<&ProjectPath, _> = new
        .units
        .keys()
        .map(|unit| (unit, graph.add_node(unit)))
        .collect();
    for (unit, after) in &new.units {
        for before in after.iter().filter_map(|before| nodes.get(before)) {
            graph.add_edge(*before, nodes[unit], ());
        }
    }
    let cycle = kosaraju_scc(&graph).into_iter().find(|it| it.len() > 1);
    let Some(cycle) = cycle else {
        return Ok(());
    };
    let mut units: Vec<ProjectPath> = cycle.iter().map(|&node| graph[node].clone()).collect();
    units.sort_unstable();
    Err(BadUnits::Cycle { units })
}
