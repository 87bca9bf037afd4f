//! The scripts of a project: as a list, one by one, and as a tree of directories.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;

use super::document::write_with_problems;
use crate::language::syntax::{Expr, ExprKind};
use crate::path::ProjectPath;
use crate::printable::printable;
use crate::project::script::{JobCommands, ScriptBlock, ScriptJob};
use crate::project::scripts::PlacedScript;
use crate::project::stack::StackIndex;
use crate::project::{Problems, Project};

pub struct ShownScript<'p> {
    pub script: PlacedScript<'p>,
    pub stacks: Vec<StackIndex>,
}

/// The scripts of a list: for each title, the definition that is shown and the number of others.
type Listed<'p> = BTreeMap<String, (PlacedScript<'p>, usize)>;

/// Returns the scripts defined in a directory, above and below it. Of several with the same labels, the topmost is
/// shown.
fn listed<'p>(project: &'p Project, directory: &ProjectPath) -> Listed<'p> {
    let mut listed = Listed::new();
    for script in project.scripts() {
        let place = script.directory;
        if !directory.is_at_or_below(place) && !place.is_at_or_below(directory) {
            continue;
        }
        let entry = listed.entry(script.block.title());
        entry.and_modify(|it| it.1 += 1).or_insert((script, 0));
    }
    listed
}

pub fn write_scripts(
    out: &mut impl Write,
    project: &Project,
    directory: &ProjectPath,
) -> io::Result<()> {
    for (title, (PlacedScript { directory, block }, n_others)) in listed(project, directory) {
        let mut text = format!("{title}\n");
        texts(project, "  ", [&block.name, &block.description], &mut text);
        text += &format!("  Defined at {}\n", printable(directory.as_str()));
        if n_others > 0 {
            text += &format!("    (+{n_others} more)\n");
        }
        writeln!(out, "{text}")?;
    }
    Ok(())
}

/// Adds the lines for the name and the description.
fn texts(
    project: &Project,
    indent: &str,
    [name, description]: [&Option<Expr>; 2],
    text: &mut String,
) {
    for (title, expr) in [("Name", name), ("Description", description)] {
        if let Some(expr) = expr {
            let written = written(project, expr);
            *text += &format!("{indent}{title}: {}\n", printable(&written));
        }
    }
}

pub fn write_script_info(
    out: &mut impl Write,
    project: &Project,
    shown: &[ShownScript<'_>],
) -> io::Result<()> {
    for ShownScript { script, stacks } in shown {
        let block = script.block;
        let mut text = format!("Definition: {}\n", printable(&range(project, block)));
        texts(project, "", [&block.name, &block.description], &mut text);
        text += if stacks.is_empty() {
            "Stacks: (none)\n"
        } else {
            "Stacks:\n"
        };
        for &stack in stacks {
            let path = project.stacks[stack].path.as_str();
            text += &format!("  {}\n", printable(path));
        }
        text += "Jobs:\n";
        for job in &block.jobs {
            texts(project, "  ", [&job.name, &job.description], &mut text);
            for (number, command) in commands(project, job).iter().enumerate() {
                let mark = if number == 0 { '*' } else { ' ' };
                text += &format!("  {mark} {}\n", printable(command));
            }
        }
        writeln!(out, "{text}")?;
    }
    Ok(())
}

/// Returns the place of a whole block: `/file:line,column-line,column`.
fn range(project: &Project, block: &ScriptBlock) -> String {
    let file = project.sources.file(block.span.file);
    let range = block.span.range();
    let (start, end) = (file.position(range.start), file.position(range.end));
    format!(
        "{}:{},{}-{},{}",
        file.path, start.line, start.column, end.line, end.column
    )
}

/// Returns the commands of a job as written.
fn commands(project: &Project, job: &ScriptJob) -> Vec<String> {
    match &job.commands {
        JobCommands::Several(Expr {
            kind: ExprKind::List(items),
            ..
        }) => items.iter().map(|item| written(project, item)).collect(),
        JobCommands::One(expr) | JobCommands::Several(expr) => vec![written(project, expr)],
    }
}

/// Returns an expression as written, on one line.
fn written(project: &Project, expr: &Expr) -> String {
    if let ExprKind::List(items) = &expr.kind {
        let items: Vec<String> = items.iter().map(|item| written(project, item)).collect();
        return format!("[{}]", items.join(","));
    }
    let text = &project.sources.file(expr.span.file).text[expr.span.range()];
    if matches!(expr.kind, ExprKind::String(_) | ExprKind::Template(_)) && !text.contains('\n') {
        return text.to_owned();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

struct Tree<'p> {
    project: &'p Project,
    /// The shown directories in each shown directory.
    children: BTreeMap<ProjectPath, BTreeSet<ProjectPath>>,
}

/// Writes the directories from the root through a directory to the stacks below it, with the scripts that each
/// defines, and those that a stack inherits.
pub fn write_script_tree(
    out: &mut impl Write,
    project: &Project,
    directory: &ProjectPath,
) -> io::Result<()> {
    let mut tree = Tree {
        project,
        children: BTreeMap::new(),
    };
    tree.add(directory.clone());
    for stack in project.stacks.at_or_below(directory) {
        tree.add(project.stacks[stack].path.directory().clone());
    }
    tree.write(out, &ProjectPath::root(), "", &BTreeSet::new())
}

impl Tree<'_> {
    /// Adds a directory and those above it.
    fn add(&mut self, mut directory: ProjectPath) {
        while let Some(parent) = directory.parent() {
            let siblings = self.children.entry(parent.clone()).or_default();
            if !siblings.insert(directory) {
                break;
            }
            directory = parent;
        }
    }

    fn write(
        &self,
        out: &mut impl Write,
        directory: &ProjectPath,
        indent: &str,
        inherited: &BTreeSet<String>,
    ) -> io::Result<()> {
        let project = self.project;
        let is_stack = project.stacks.at(directory.as_str()).len() > 0;
        let name = match directory.basename() {
            "" => "/",
            name => name,
        };
        let mark = if is_stack { "#" } else { "" };
        writeln!(out, "{mark}{}", printable(name))?;
        let none = BTreeSet::new();
        let children = self.children.get(directory).unwrap_or(&none);
        let bar = if children.is_empty() { "  " } else { "│ " };
        let scope = project.scopes.get(directory);
        let own = scope.map_or(&[][..], |scope| &scope.scripts);
        let mut known = inherited.clone();
        for block in own {
            let title = block.title();
            writeln!(out, "{indent}{bar}* {title}:")?;
            let mut text = String::new();
            let before = format!("{indent}{bar}    ");
            texts(
                project,
                &before,
                [&block.name, &block.description],
                &mut text,
            );
            write!(out, "{text}")?;
            known.insert(title);
        }
        if is_stack {
            let is_own = |title: &str| own.iter().any(|block| block.title() == title);
            for title in inherited.iter().filter(|title| !is_own(title)) {
                writeln!(out, "{indent}{bar}~ {title}")?;
            }
        }
        let mut children = children.iter().peekable();
        while let Some(child) = children.next() {
            let (branch, more) = match children.peek() {
                Some(_) => ("├── ", "│   "),
                None => ("└── ", "    "),
            };
            write!(out, "{indent}{branch}")?;
            self.write(out, child, &format!("{indent}{more}"), &known)?;
        }
        Ok(())
    }
}

/// Expressions are as written, and plain strings without quotes.
#[derive(Serialize)]
struct ScriptJson<'a> {
    labels: &'a [String],
    name: Option<String>,
    description: Option<String>,
    directory: &'a str,
    file: &'a str,
    line: usize,
    /// How many other definitions with these labels the directory knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stacks: Option<Vec<&'a str>>,
    jobs: Vec<JobJson>,
}

#[derive(Serialize)]
struct JobJson {
    name: Option<String>,
    description: Option<String>,
    commands: Vec<String>,
}

fn text(project: &Project, expr: Option<&Expr>) -> Option<String> {
    Some(match expr? {
        Expr {
            kind: ExprKind::String(text),
            ..
        } => text.to_string(),
        expr => written(project, expr),
    })
}

impl<'a> ScriptJson<'a> {
    fn new(project: &'a Project, script: PlacedScript<'a>) -> Self {
        let PlacedScript { directory, block } = script;
        let (file, line) = project.sources.file_and_line(block.keyword);
        let job = |job: &ScriptJob| JobJson {
            name: text(project, job.name.as_ref()),
            description: text(project, job.description.as_ref()),
            commands: commands(project, job),
        };
        ScriptJson {
            labels: &block.labels,
            name: text(project, block.name.as_ref()),
            description: text(project, block.description.as_ref()),
            directory: directory.as_str(),
            file,
            line,
            others: None,
            stacks: None,
            jobs: block.jobs.iter().map(job).collect(),
        }
    }
}

/// Writes what [`write_scripts`] writes, for programs.
pub fn write_scripts_json(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    directory: &ProjectPath,
) -> io::Result<()> {
    let listed = listed(project, directory).into_values();
    let scripts = listed.map(|(script, n_others)| ScriptJson {
        others: Some(n_others),
        ..ScriptJson::new(project, script)
    });
    write_json(out, project, problems, scripts.collect())
}

/// Writes what [`write_script_info`] writes, for programs.
pub fn write_script_info_json(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    shown: &[ShownScript<'_>],
) -> io::Result<()> {
    let path = |stack: &StackIndex| project.stacks[*stack].path.as_str();
    let scripts = shown.iter().map(|it| ScriptJson {
        stacks: Some(it.stacks.iter().map(path).collect()),
        ..ScriptJson::new(project, it.script)
    });
    write_json(out, project, problems, scripts.collect())
}

fn write_json(
    out: &mut impl Write,
    project: &Project,
    problems: &Problems,
    scripts: Vec<ScriptJson<'_>>,
) -> io::Result<()> {
    let document = BTreeMap::from([("scripts", scripts)]);
    write_with_problems(out, &document, project, problems)
}
