//! No text makes the parser, the evaluator or the drawing of a problem panic.

use std::fs;

use orch::diagnostic::{Diagnostic, RenderStyle, render};
use orch::language::NoNamespaces;
use orch::language::evaluate::evaluate;
use orch::language::parse::parse;
use orch::language::syntax::Body;
use orch::path::ProjectPath;
use orch::printable::printable_lines;
use orch::project::environment::Environments;
use orch::project::{Problems, Project};
use orch::selection::graph::Graph;
use orch::selection::reference::References;
use orch::source::{SourceFile, Sources};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::host::folder;

/// Something of everything the language has.
const VALID: &str = r#"orch {
  root = true
  config {
    references = "strict"
    run {
      env {
        A = "${env.HOME}-${terramate.stack.name}"
        B = null
        C = global.list[0]
        D = "%{ if global.n > 1 }many%{ else }few%{ endif }"
      }
    }
  }
}
# a comment
globals "sub" {
  n    = 1 + 2 * 3 % 4 - -5 / 2
  list = [for k, v in { a = 1, "b" = 2 } : "${k}=${v}" if v != 2]
  map  = { for v in ["x", "y"] : v => upper(v)... }
  text = <<-EOT
    héredoc ${1 == 2 ? "yes" : "no"}
  EOT
}
globals {
  all = global.sub.list[*].name
  not = !(true && false || 1 <= 2)
}
/* another */
stack {
  name        = "näme"
  description = "a \"quoted\" \u00e9 \n text"
  id          = "an-id_1"
  tags        = ["a", "b-c"]
  after       = ["/x", "tag:a:b,c", "../y"]
  before      = [for s in ["u", "v"] : "/${s}"]
  wants       = 1 > 0 ? ["."] : []
  wanted_by   = null
  watch       = ["/file.txt"]
}
import { source = "/other.tm" }
script "a" "b" {
  job {
    command = ["x"]
  }
}
generate_hcl "_f.tf" {
  content {
    a = b.c[0].*.d
  }
}
"#;

const PARTS: [&str; 60] = [
    "stack", "orch", "globals", "import", "config", "run", "env", "tags", "after", "id", "name",
    "a", "ä", "{", "}", "[", "]", "(", ")", "\"", "\"a\"", "\"${", "${", "%{", "}\"", "=", "==",
    "=>", ":", "?", ",", ".", "...", "*", "-", "+", "/", "%", "!", "&&", "||", "<", ">=",
    "<<EOT\n", "<<-E\n", "\nEOT\n", "E\n", "#", "//", "/*", "*/", "\n", "\r\n", " ", "0", "1e999",
    "-1.5", "null", "for x in", "\\u12",
];

fn text() -> impl Strategy<Value = String> {
    let parts = prop::collection::vec(select(PARTS.to_vec()), 0..40);
    prop_oneof![
        1 => any::<String>(),
        2 => parts.clone().prop_map(|parts| parts.concat()),
        2 => parts.prop_map(|parts| format!("stack {{\n  after = {}\n}}\n", parts.join(" "))),
        4 => mutated(),
    ]
}

/// The valid text after some accidents.
fn mutated() -> impl Strategy<Value = String> {
    let accident = (
        any::<Index>(),
        0..6_usize,
        any::<Index>(),
        select(PARTS.to_vec()),
        any::<char>(),
    );
    prop::collection::vec(accident, 1..4).prop_map(|accidents| {
        let mut text: Vec<char> = VALID.chars().collect();
        for (place, kind, other, part, character) in accidents {
            if text.is_empty() {
                break;
            }
            let at = place.index(text.len());
            let near = text.len().min(at + 1 + other.index(12));
            match kind {
                0 => drop(text.drain(at..near)),
                1 => text[at] = character,
                2 => drop(text.splice(at..at, part.chars())),
                3 => drop(text.splice(at..near, part.chars())),
                4 => text.truncate(at),
                _ => {
                    let stretch = text[at..near].to_vec();
                    let to = other.index(text.len());
                    text.splice(to..to, stretch);
                }
            }
        }
        text.into_iter().collect()
    })
}

/// Evaluates everything, and gathers what is wrong.
fn evaluate_all(body: &Body, problems: &mut Vec<Diagnostic>) {
    for attribute in &body.attributes {
        if let Err(problem) = evaluate(&attribute.value, &NoNamespaces("a test")) {
            problems.push(*problem);
        }
    }
    for block in &body.blocks {
        evaluate_all(&block.body, problems);
    }
}

fn draw(problems: &[Diagnostic], sources: &Sources) -> Result<(), TestCaseError> {
    for problem in problems {
        for style in [RenderStyle::Plain, RenderStyle::Coloured] {
            let drawn = render(problem, sources, style);
            let message = printable_lines(&problem.message);
            let first = message.lines().next().unwrap_or_default();
            prop_assert!(drawn.ends_with('\n') && drawn.contains(first), "{}", drawn);
            let is_clean = drawn
                .chars()
                .all(|c| c == '\n' || c == '\u{1b}' || !c.is_control());
            prop_assert!(is_clean, "{:?}", drawn);
            prop_assert!(
                style == RenderStyle::Coloured || !drawn.contains('\u{1b}'),
                "{:?}",
                drawn
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_and_evaluated_or_gives_a_problem_that_can_be_drawn(text in text()) {
        let mut sources = Sources::default();
        let path = ProjectPath::root().join("stack.tm");
        let file = sources.add(SourceFile { path, text: text.clone() });
        let mut problems = Vec::new();
        match parse(file, &text) {
            Ok(body) => evaluate_all(&body, &mut problems),
            Err(problem) => problems.push(*problem),
        }
        for label in problems.iter().flat_map(|problem| &problem.labels) {
            prop_assert!(text.get(label.span.range()).is_some(), "{:?}", label);
        }
        draw(&problems, &sources)?;
    }

    #[test]
    fn any_file_is_loaded_or_gives_problems_that_can_be_drawn(text in text()) {
        let directory = folder();
        let root = directory.path().canonicalize().unwrap();
        fs::write(root.join("stack.tm"), &text).unwrap();
        fs::create_dir(root.join("x")).unwrap();
        fs::write(root.join("x/stack.tm"), "stack {\n  tags = [\"a\"]\n}\n").unwrap();
        let mut problems = Problems::default();
        let project = Project::load(&root, &mut problems).unwrap();
        let mut problems = problems.diagnostics;
        let references = References::resolve(&project, &mut problems);
        for knot in Graph::new(&project.stacks, &references).cycles() {
            problems.extend(knot.diagnostics(&project.stacks, &project.sources));
        }
        let environments = Environments::new(&project, std::iter::once(("HOME".to_owned(), "/h".to_owned())));
        for (stack, _) in project.stacks.iter() {
            problems.extend(environments.of_stack(stack).err().into_iter().flatten());
        }
        draw(&problems, &project.sources)?;
    }
}

#[test]
fn the_valid_text_is_valid() {
    let mut sources = Sources::default();
    let path = ProjectPath::root().join("stack.tm");
    let text = VALID.to_owned();
    let file = sources.add(SourceFile { path, text });
    assert_eq!(parse(file, VALID).err(), None);
}
