//! The tests of a policy: rules that are true if it does what it should.

use std::collections::BTreeMap;

use regorus::{Engine, Value};

use super::edits::Edited;
use super::functions::numbers;
use super::references::{self, RuleDefinition};
use super::{
    EDITS, add, as_written, checked, edits, new_engine, parse_either, problem, recursion, results,
};
use crate::policy::{Dialect, LoadProblem, Problem, RegoFile, TestOutcome, TestRule};

const TEST: &str = "test_";

const TODO: &str = "todo_test_";

/// Files that are loaded together, and the tests in the last of them.
pub(in crate::policy) struct Suite {
    engine: Engine,
    /// The files by name, each with the edits that lead from its text to the one that is evaluated.
    files: Vec<(String, Vec<(String, Edited)>)>,
    tests: Vec<(TestRule, String)>,
    /// The texts of the fractions in the files.
    fractions: Vec<String>,
}

impl Suite {
    /// Loads files, each as Rego v1, else as Rego v0.
    ///
    /// What is wrong with which of the files, by its position.
    pub(in crate::policy) fn load(files: &[RegoFile]) -> Result<Self, (usize, LoadProblem)> {
        let mut definitions: Vec<RuleDefinition> = Vec::new();
        let mut parsed = Vec::new();
        let mut edited = Vec::new();
        let mut tests = Vec::new();
        let mut modules = Vec::new();
        let mut sources = Vec::new();
        let mut fractions = Vec::new();
        for (position, file) in files.iter().enumerate() {
            let alone = parse_either(&file.name, &file.text);
            let (mut alone, text, dialect) = alone.map_err(|problem| (position, problem))?;
            let module = alone.get_modules().first().cloned();
            let missing = || LoadProblem::Refused(Problem::new("the file has no package"));
            modules.push(module.ok_or_else(|| (position, missing()))?);
            sources.push((file, text, dialect));
        }
        for (position, (file, text, dialect)) in sources.into_iter().enumerate() {
            let wrong = |problem: Problem| (position, LoadProblem::Refused(problem));
            let module = &modules[position];
            let checked = checked(module, &modules, text, dialect).map_err(wrong)?;
            let (own, own_fractions) = checked;
            fractions.extend(own_fractions);
            tests = tests_of(&references::package(module), &own);
            definitions.extend(own);
            let edits = edits(&file.name, text, module.clone(), dialect, &EDITS).map_err(wrong)?;
            let text = edits.last().map_or(text, |(_, edited)| &edited.text);
            parsed.push((&file.name, text.to_owned(), dialect));
            edited.push((file.name.clone(), edits));
        }
        let last = files.len().saturating_sub(1);
        let wrong = |problem: Problem| (last, LoadProblem::Refused(problem));
        recursion::check(&definitions).map_err(wrong)?;
        // Whatever is of the new version only has been checked for that.
        let is_old = |(_, _, dialect): &(_, _, Dialect)| *dialect == Dialect::V0;
        let is_old = parsed.iter().any(is_old);
        let dialect = if is_old { Dialect::V0 } else { Dialect::V1 };
        let mut engine = new_engine(dialect).map_err(wrong)?;
        for (position, (name, text, dialect)) in parsed.iter().enumerate() {
            let added = add(&mut engine, name, text, *dialect);
            added.map_err(|problem| (position, LoadProblem::Refused(problem)))?;
        }
        engine
            .eval_query("true".to_owned(), false)
            .map_err(|error| {
                let (position, problem) = located(&edited, &error.to_string());
                (position, LoadProblem::Refused(problem))
            })?;
        let files = edited;
        Ok(Suite {
            engine,
            files,
            tests,
            fractions,
        })
    }

    pub(in crate::policy) fn tests(&self) -> Vec<TestRule> {
        self.tests.iter().map(|(test, _)| test.clone()).collect()
    }

    /// Runs one test.
    ///
    /// If a rule fails, or there is no such test: what is wrong with which of the files, by its position.
    pub(in crate::policy) fn run(&mut self, name: &str) -> Result<TestOutcome, (usize, Problem)> {
        let test = self.tests.iter().find(|(test, _)| test.name == name);
        let (_, query) = test.ok_or_else(|| (0, Problem::new("no such test")))?;
        numbers::forget();
        numbers::know(&self.fractions);
        let found = self.engine.eval_query(query.clone(), false);
        let prints = results::prints(self.engine.take_prints().unwrap_or_default());
        let found = found.map_err(|error| located(&self.files, &error.to_string()))?;
        if let Some(why) = numbers::problem() {
            return Err((self.files.len().saturating_sub(1), Problem::new(why)));
        }
        let mut values = found.result.into_iter().flat_map(|row| row.expressions);
        let is_passed = values
            .next()
            .is_some_and(|it| it.value == Value::Bool(true));
        Ok(TestOutcome { is_passed, prints })
    }
}

/// Reads a message of the library about one of these files. Returns the position of the file, and the problem.
fn located(files: &[(String, Vec<(String, Edited)>)], message: &str) -> (usize, Problem) {
    let place = message.split("--> ").nth(1).unwrap_or_default();
    let is_at = |name: &str| {
        let rest = place.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(':'))
    };
    let position = files.iter().position(|(name, _)| is_at(name));
    let position = position.unwrap_or(files.len().saturating_sub(1));
    let edits = files.get(position).map_or(&[][..], |(_, edits)| edits);
    (position, as_written(edits, problem(message)))
}

/// Returns the tests among rules, each with its query: a rule with several bodies is one test.
fn tests_of(package: &[String], definitions: &[RuleDefinition]) -> Vec<(TestRule, String)> {
    let mut lines: BTreeMap<&str, u32> = BTreeMap::new();
    for rule in definitions.iter().filter(|rule| !rule.is_function) {
        if let Some(name) = rule.path.get(package.len())
            && (name.starts_with(TEST) || name.starts_with(TODO))
        {
            lines.entry(name).or_insert(rule.place.0);
        }
    }
    let tests = lines.into_iter().map(|(name, line)| {
        let test = TestRule {
            name: name.to_owned(),
            line,
            is_skipped: name.starts_with(TODO),
        };
        (test, format!("{}.{name}", results::below_data(package)))
    });
    let mut tests: Vec<_> = tests.collect();
    tests.sort_by_key(|(test, _)| test.line);
    tests
}
