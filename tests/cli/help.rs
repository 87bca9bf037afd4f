//! `orch --help`, `orch help`, `orch man`.

use std::fs;

use crate::support::Sandbox;

/// All commands, and those that have commands of their own.
const COMMANDS: [&str; 61] = [
    "list",
    "plan",
    "show",
    "apply",
    "destroy",
    "run",
    "script",
    "script run",
    "script list",
    "script info",
    "script tree",
    "runs",
    "runs list",
    "runs show",
    "runs logs",
    "runs report",
    "runs prune",
    "export",
    "job",
    "work",
    "finish",
    "state",
    "state init",
    "state adopt",
    "state list",
    "state show",
    "state history",
    "state forget",
    "state move",
    "state taint",
    "state untaint",
    "state release",
    "state backups",
    "state restore",
    "state import",
    "state export",
    "state unlock",
    "state recover",
    "why",
    "graph",
    "graph suggest",
    "trigger",
    "create",
    "clone",
    "fmt",
    "policy",
    "policy eval",
    "policy test",
    "policy graph",
    "policy input",
    "policy samples",
    "policy schema",
    "policy validate",
    "validate",
    "env",
    "globals",
    "eval",
    "help",
    "man",
    "completions",
    "version",
];

/// Compares a text with the snapshot of this name.
macro_rules! assert_is_snapshot {
    ($name:expr, $text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

#[test]
fn help_is_as_recorded() {
    let sandbox = Sandbox::new("");
    assert_is_snapshot!("orch-short", sandbox.orch("-h"));
    assert_is_snapshot!("orch", sandbox.orch("--help"));
    assert_is_snapshot!("overview", sandbox.orch("help"));
    for command in COMMANDS {
        let output = sandbox.orch(&format!("{command} --help"));
        assert_is_snapshot!(command.replace(' ', "-"), output);
    }
}

#[test]
fn help_fits_a_terminal() {
    let sandbox = Sandbox::new("");
    let helps = COMMANDS.map(|command| format!("{command} --help"));
    for arguments in helps
        .iter()
        .map(String::as_str)
        .chain(["--help", "-h", "help"])
    {
        let output = sandbox.orch(arguments);
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{arguments}");
        for line in output.stdout.lines() {
            assert!(line.chars().count() <= 100, "too wide: {line}");
        }
    }
}

#[test]
fn orch_help_names_every_command() {
    let overview = Sandbox::new("").orch("help").stdout;
    for command in COMMANDS.iter().filter(|command| !command.contains(' ')) {
        assert!(overview.contains(&format!("\n  {command} ")), "{command}");
    }
}

#[test]
fn help_of_a_command_is_that_of_its_flag() {
    let sandbox = Sandbox::new("");
    let topics = topics();
    let is_topic = |command: &&str| topics.iter().any(|topic| topic == command);
    for command in COMMANDS.iter().filter(|command| !is_topic(command)) {
        let help = sandbox.orch(&format!("help {command}")).to_string();
        let flag = sandbox.orch(&format!("{command} --help")).to_string();
        assert_eq!(help, flag, "{command}");
    }
}

#[test]
fn every_topic_can_be_read() {
    let sandbox = Sandbox::new("");
    for topic in topics() {
        let output = sandbox.orch(&format!("help {topic}"));
        assert_eq!((output.code(), &*output.stderr), (0, ""), "{topic}");
        assert!(output.stdout.lines().count() > 5, "{output}");
        // It is the topic, also where a command has its name.
        let file = format!("{}/src/program/help/{topic}.md", env!("CARGO_MANIFEST_DIR"));
        let file = fs::read_to_string(file).unwrap();
        let title = file.lines().next().unwrap().trim_start_matches("# ");
        assert!(output.stdout.starts_with(&title.to_uppercase()), "{output}");
    }
    let diagnostics = sandbox.orch("help diagnostics").stdout;
    for code in ["`cycle`", "`unknown-reference`"] {
        assert!(diagnostics.contains(code), "{diagnostics}");
    }
}

/// Returns the topics that `orch help` lists.
fn topics() -> Vec<String> {
    let overview = Sandbox::new("").orch("help").stdout;
    let lines = overview.lines();
    let entries = lines.filter_map(|line| line.strip_prefix("  help "));
    let names = entries.filter(|entry| !entry.starts_with(' '));
    let names = names.map(|entry| entry.split_whitespace().next().unwrap().to_owned());
    names.collect()
}

#[test]
fn every_file_is_a_topic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/program/help");
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".md").map(str::to_owned)
        })
        .collect();
    files.sort();
    let mut topics = topics();
    topics.sort();
    assert_eq!(topics, files);
}

#[test]
fn an_unknown_topic_is_a_usage_error() {
    let sandbox = Sandbox::new("");
    insta::assert_snapshot!(sandbox.orch("help chagnes"), @"
    [stderr]
    error: no command or topic `chagnes`; did you mean `changes`?
      = help: `orch help` lists all commands and topics
    [exit status 64]
    ");
    insta::assert_snapshot!(sandbox.orch("help runs lst"), @"
    [stderr]
    error: no command or topic `runs lst`
      = help: `orch help` lists all commands and topics
    [exit status 64]
    ");
    insta::assert_snapshot!(sandbox.orch("help changes order"), @"
    [stderr]
    error: no command or topic `changes order`
      = help: `orch help` lists all commands and topics
    [exit status 64]
    ");
}

#[test]
fn man_writes_a_page_for_each_command_and_topic() {
    let sandbox = Sandbox::new("");
    let output = sandbox.orch("man made/man");
    assert_eq!((output.code(), &*output.to_string()), (0, ""));
    let page = |name: &str| fs::read_to_string(sandbox.path("/made/man").join(name)).unwrap();
    let names = COMMANDS.map(|command| format!("-{}", command.replace(' ', "-")));
    for name in names.iter().map(String::as_str).chain([""]) {
        let page = page(&format!("orch{name}.1"));
        assert!(page.contains(".SH SYNOPSIS\n"), "{name}");
    }
    for topic in topics() {
        let page = page(&format!("orch-{topic}.7"));
        assert!(
            page.contains(&format!(".SH NAME\norch\\-{}", topic.replace('-', "\\-"))),
            "{page}"
        );
    }
    let count = fs::read_dir(sandbox.path("/made/man")).unwrap().count();
    assert_eq!(count, 1 + COMMANDS.len() + topics().len());
}

#[test]
fn man_pages_have_a_proper_title_and_sections_and_no_markdown() {
    let sandbox = Sandbox::new("");
    assert_eq!(sandbox.orch("man made").code(), 0);
    for file in fs::read_dir(sandbox.path("/made")).unwrap() {
        let path = file.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let (stem, section) = (path.file_stem().unwrap(), path.extension().unwrap());
        let title = format!(
            ".TH {} {} \"\" \"orch {}\" \"Orch Manual\"\n",
            stem.to_str().unwrap().to_uppercase(),
            section.to_str().unwrap(),
            env!("CARGO_PKG_VERSION")
        );
        assert!(page.contains(&title), "{title}{page}");
        for noise in ["`", "EXTRA"] {
            assert!(!page.contains(noise), "{noise} in {page}");
        }
    }
    let page = fs::read_to_string(sandbox.path("/made/orch-why.1")).unwrap();
    let (_, end) = page.split_once(".SH EXAMPLES\n").unwrap();
    insta::assert_snapshot!(end, @r#"
    .nf
    orch why prod/network
    orch why /prod/network \-\-changed
    orch why . \-\-changed \-\-tags prod
    orch why prod/app \-\-after prod/network
    orch why prod/app \-\-run last
    .fi
    .SH NOTES
    \fBorch help selection\fR explains how the flags that select stacks work together.
    "#);
}

#[test]
fn man_says_where_it_cannot_write() {
    let sandbox = Sandbox::new("//- /file\ntext\n");
    let output = sandbox.orch("man file");
    assert_eq!(output.code(), 5, "{output}");
    assert!(
        output.stderr.contains("failed to write man pages"),
        "{output}"
    );
}
