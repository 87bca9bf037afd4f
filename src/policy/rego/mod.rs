//! Policies in Rego: parsed, checked and evaluated, by the library `regorus`.
//!
//! For the worker only: nothing here is limited in time or memory.

mod builtins;
mod checks;
mod conflicts;
mod edits;
mod fractions;
mod functions;
mod heads;
mod input_stacks;
mod lookups;
mod negations;
mod operators;
mod outline;
mod recursion;
mod references;
mod results;
mod suite;
mod types;
mod unbound;
mod variables;
mod walk;

use std::num::{NonZeroU32, NonZeroUsize};

use regorus::unstable::{Module, Ref};
use regorus::{Engine, PolicyLengthConfig, Value};

use self::edits::Edited;
use self::functions::numbers;
pub(super) use self::input_stacks::InputStacks;
use self::references::{RuleDefinition, RuleTarget};
pub(super) use self::suite::Suite;
use super::{Dialect, LoadProblem, MAX_BYTES, PolicyOutline, PolicyOutput, Problem, brackets};

pub(super) struct Policy {
    engine: Engine,
    pub(super) outline: PolicyOutline,
    queries: Vec<(results::Result, String)>,
    /// The edits that lead from its text to the one that is evaluated, each with the text before it.
    edits: Vec<(String, Edited)>,
    /// The texts of the fractions in it.
    fractions: Vec<String>,
}

impl Policy {
    /// Loads a policy: as Rego v1, else as Rego v0.
    pub(super) fn load(file: &str, text: &str, stacks: &InputStacks) -> Result<Self, LoadProblem> {
        let (engine, text, dialect) = parse_either(file, text)?;
        let checked = Policy::checked(engine, (file, text), dialect, stacks);
        checked.map_err(LoadProblem::Refused)
    }

    fn checked(
        mut engine: Engine,
        (file, text): (&str, &str),
        dialect: Dialect,
        stacks: &InputStacks,
    ) -> Result<Self, Problem> {
        let module = engine.get_modules().first().cloned();
        let module = module.ok_or_else(|| Problem::new("the file has no package"))?;
        let all = std::slice::from_ref(&module);
        let (definitions, fractions) = checked(&module, all, text, dialect)?;
        recursion::check(&definitions)?;
        let queries = results::queries(&references::package(&module), &definitions)?;
        let outline = outline::outline(&module, dialect);
        let edits = edits(
            file,
            text,
            module,
            dialect,
            &[&[lookups::edited as EditOfModule], &EDITS[..]].concat(),
        )?;
        if let Some((_, last)) = edits.last() {
            engine = parse(file, &last.text, dialect).map_err(|error| as_written(&edits, error))?;
        }
        let find: [(&str, Find); 2] = [
            (input_stacks::FUNCTION, InputStacks::with),
            (input_stacks::NUMBERS, InputStacks::numbers_with),
        ];
        for (name, find) in find {
            let stacks = stacks.clone();
            let call = move |arguments: Vec<Value>| {
                Ok(find(&stacks, &arguments).unwrap_or(Value::Undefined))
            };
            engine
                .add_extension(name.to_owned(), 2, Box::new(call))
                .map_err(|error| problem(&error.to_string()))?;
        }
        // Analyses the rules; what is wrong with them is found here, and not in the middle of a run.
        engine
            .eval_query("true".to_owned(), false)
            .map_err(|error| as_written(&edits, problem(&error.to_string())))?;
        Ok(Policy {
            engine,
            outline,
            queries,
            edits,
            fractions,
        })
    }

    pub(super) fn evaluate(&mut self, input: Value) -> Result<PolicyOutput, Problem> {
        numbers::know(&self.fractions);
        self.engine.set_input(input);
        let mut answer = PolicyOutput::default();
        let evaluated = self.queries.iter().try_for_each(|(result, query)| {
            let found = self.engine.eval_query(query.clone(), false);
            let found = found.map_err(|error| problem(&error.to_string()))?;
            let values = found.result.into_iter().flat_map(|row| row.expressions);
            match values.map(|expression| expression.value).next() {
                None | Some(Value::Undefined) => Ok(()),
                Some(value) => result.take(&value, &mut answer),
            }
        });
        // A list of the input is copied when it changes, unless it has one owner.
        self.engine.set_input(Value::Null);
        answer.prints = results::prints(self.engine.take_prints().unwrap_or_default());
        evaluated.map_err(|error| as_written(&self.edits, error))?;
        numbers::problem().map_or(Ok(()), |why| Err(Problem::new(why)))?;
        Ok(answer)
    }
}

/// Checks one of several files that are loaded together. Returns its rules, and the texts of its fractions.
fn checked(
    module: &Module,
    all: &[Ref<Module>],
    text: &str,
    dialect: Dialect,
) -> Result<(Vec<RuleDefinition>, Vec<String>), Problem> {
    let definitions = references::definitions(module, all);
    check_functions(&definitions, dialect)?;
    unbound::check(&definitions)?;
    checks::check(module, all, text)?;
    let fractions = fractions::read(module)?;
    conflicts::check(module)?;
    types::check(module)?;
    Ok((definitions, fractions))
}

/// Reads the input of the next evaluation.
pub(super) fn read_input(text: &str) -> Result<Value, Problem> {
    numbers::forget();
    let input = Value::from_json_str(text);
    let input = input.map_err(|error| Problem::new(format!("in the input: {error}")))?;
    numbers::read_json(text);
    Ok(input)
}

/// How stacks are looked up.
type Find = fn(&InputStacks, &[Value]) -> Option<Value>;

type EditOfModule = fn(&Module, &str) -> Option<Edited>;

/// The edits that every policy needs.
const EDITS: [EditOfModule; 4] = [
    operators::edited,
    variables::edited,
    negations::edited,
    heads::edited,
];

/// Returns the edits that make the interpreter do what OPA does, each with the text before it.
fn edits(
    file: &str,
    text: &str,
    mut module: Ref<Module>,
    dialect: Dialect,
    all: &[EditOfModule],
) -> Result<Vec<(String, Edited)>, Problem> {
    let mut edits: Vec<(String, Edited)> = Vec::new();
    for edit in all {
        let before = edits.last().map_or(text, |(_, edited)| &edited.text);
        let Some(edited) = edit(&module, before) else {
            continue;
        };
        let engine = parse(file, &edited.text, dialect);
        edits.push((before.to_owned(), edited));
        let mut engine = engine.map_err(|error| as_written(&edits, error))?;
        module.clone_from(&engine.get_modules()[0]);
    }
    Ok(edits)
}

/// Returns a problem of the last text as one of the text as it was written.
fn as_written(edits: &[(String, Edited)], problem: Problem) -> Problem {
    let edits = edits.iter().rev();
    edits.fold(problem, |problem, (before, edited)| {
        edited.problem(before, problem)
    })
}

/// Parses a file: as Rego v1, else as Rego v0. Returns its text as it was parsed, too.
fn parse_either<'t>(file: &str, text: &'t str) -> Result<(Engine, &'t str, Dialect), LoadProblem> {
    if text.len() > MAX_BYTES {
        let message = format!(
            "the file has {} bytes, but a policy may have at most {MAX_BYTES} (256 KiB)",
            text.len()
        );
        return Err(LoadProblem::Refused(Problem::new(message)));
    }
    // Editors put it there to say that the text is UTF-8.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_nul(text).map_err(LoadProblem::Refused)?;
    brackets::check(text).map_err(LoadProblem::Refused)?;
    match parse(file, text, Dialect::V1) {
        Ok(engine) => Ok((engine, text, Dialect::V1)),
        Err(v1) => match parse(file, text, Dialect::V0) {
            Ok(engine) => Ok((engine, text, Dialect::V0)),
            Err(Problem { place, .. }) if is_template(text, place) => {
                let message = "template strings are not supported: use `sprintf`".to_owned();
                Err(LoadProblem::Refused(Problem { place, message }))
            }
            Err(v0) => Err(LoadProblem::Neither { v1, v0 }),
        },
    }
}

/// Returns whether a template string, such as `$"a {b}"`, begins at a place.
fn is_template(text: &str, place: Option<(u32, u32)>) -> bool {
    let at = place.and_then(|(line, column)| {
        let line = text
            .lines()
            .nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
        line.chars()
            .nth(usize::try_from(column).ok()?.checked_sub(1)?)
    });
    at == Some('$')
}

fn parse(file: &str, text: &str, dialect: Dialect) -> Result<Engine, Problem> {
    let mut engine = new_engine(dialect)?;
    add(&mut engine, file, text, dialect)?;
    Ok(engine)
}

/// Returns an engine with the functions of a version.
fn new_engine(dialect: Dialect) -> Result<Engine, Problem> {
    let mut engine = Engine::new();
    // As in OPA, what fails in a function of the language is undefined.
    engine.set_strict_builtin_errors(false);
    engine.set_gather_prints(true);
    // There are limits for the whole file, and lines may be as long as it.
    engine.set_policy_length_config(PolicyLengthConfig {
        max_col: NonZeroU32::MAX,
        max_lines: NonZeroUsize::MAX,
        ..PolicyLengthConfig::default()
    });
    functions::add(&mut engine, dialect).map_err(|error| problem(&error.to_string()))?;
    Ok(engine)
}

fn add(engine: &mut Engine, file: &str, text: &str, dialect: Dialect) -> Result<(), Problem> {
    engine.set_rego_v0(dialect == Dialect::V0);
    let added = engine.add_policy(file.to_owned(), text.to_owned());
    added.map(drop).map_err(|error| problem(&error.to_string()))
}

/// Checks that a text has no NUL, which is the end of the text to the library.
fn check_nul(text: &str) -> Result<(), Problem> {
    let found = (1..).zip(text.lines()).find_map(|(number, line)| {
        let before = line.split_once('\0')?.0;
        Some((number, u32::try_from(before.chars().count() + 1).ok()?))
    });
    match found {
        None => Ok(()),
        Some(place) => Err(Problem::at(
            place,
            "a policy must not contain NUL characters",
        )),
    }
}

/// Checks that every function that is called exists, and may be called.
fn check_functions(definitions: &[RuleDefinition], dialect: Dialect) -> Result<(), Problem> {
    let references = definitions.iter().flat_map(|rule| &rule.references);
    for reference in references {
        let RuleTarget::Function(name) = &reference.target else {
            continue;
        };
        let at = |message: String| Problem::at(reference.place, message);
        if let Some(why) = builtins::refused(name) {
            let message = format!("`{name}` is not allowed in a policy: it {why}");
            return Err(at(message));
        }
        let is_old = functions::is_old(name);
        if reference.n_arguments.is_some() && is_old && dialect == Dialect::V1 {
            return Err(at(format!("`{name}` is a function only in Rego v0")));
        }
        if reference.n_arguments.is_some() && !is_old && !builtins::is_allowed(name) {
            return Err(at(format!("`{name}` is not a function that `orch` has")));
        }
        if let (Some(given), Some(wanted)) = (reference.n_arguments, builtins::n_parameters(name))
            && !(wanted..=wanted + 1).contains(&given)
        {
            return Err(at(format!("`{name}` does not take {given} arguments")));
        }
    }
    Ok(())
}

/// Reads a message of the library: `--> file:3:1`, lines that show the place, and `error: …`.
fn problem(message: &str) -> Problem {
    let place = message.split("--> ").nth(1).and_then(|rest| {
        let mut parts = rest.lines().next()?.rsplitn(3, ':');
        let column = parts.next()?.trim().parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        Some((line, column))
    });
    let said = message.split("error: ").last().unwrap_or(message).trim();
    // Lines that follow show another place.
    let said = match said.lines().next().unwrap_or(said) {
        "else cannot be used with set rules" => {
            "a rule of a set may have only one body: write the rule again for each other body"
        }
        line if line.starts_with("function produced multiple outputs") => {
            "the function has more than one value for the same arguments"
        }
        line => line,
    };
    Problem {
        place,
        message: said.trim_end_matches('.').to_owned(),
    }
}
