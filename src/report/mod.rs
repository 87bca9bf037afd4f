//! The output for people and programs: text, JSON, and drawings of the graph.
//!
//! Everything here writes to a given [`std::io::Write`]. Text from disk is passed through
//! [`crate::printable`]. JSON has its own structs, so that a change of the domain cannot silently
//! change the format. Parts of journals and plan files already have a format and are written as
//! they are.

mod alike;
mod annotation;
mod changes;
mod document;
mod drawing;
mod failure;
mod format;
mod full;
mod html;
mod json;
mod junit;
mod markdown;
mod matrix;
mod metadata;
mod missing;
mod missing_order;
mod plan;
mod policy;
mod policy_tests;
mod quote;
mod reasons;
mod resources;
mod rules;
mod run;
mod runs;
mod scripts;
mod size;
mod state;
mod terragrunt;
mod values;
mod why;

pub use annotation::{Annotation, write_annotation};
pub use changes::unknown_path_notes;
pub use document::{JsonDocument, write_problems, write_validation};
pub use drawing::{Drawing, write_dot, write_graph_json, write_mermaid};
pub use format::{ReportFormat, write_report};
pub use html::write_html;
pub use json::{ShownEnvironment, StackList, write_environments, write_list, write_removed};
pub use markdown::{LEAST_MARKDOWN_BYTES, MARKDOWN_BYTES};
pub use matrix::{Matrix, write_matrix};
pub use metadata::metadata_lines;
pub use missing::{MissingStory, missing_text, write_missing, write_missing_json};
pub use missing_order::{write_missing_order, write_missing_order_json};
pub use plan::{
    PlanDetails, ToolText, ToolTexts, write_plan, write_plan_entry, write_plan_json,
    write_plan_markdown,
};
pub use policy::{PolicyArrow, PolicyGraph, ValidPolicy, write_answer, write_policies};
pub use policy_tests::{TestEnd, TestLine, write_tests};
pub use quote::first_error;
pub use reasons::reason_text;
pub use run::{
    CommandLines, Filter, FoldingStyle, Groups, PrefixedLines, Progress, RunLogs, RunText,
    StreamWriter, StreamWriters, failure_reason, failure_text, policy_problems,
};
pub use runs::{
    ListedRun, ShownRun, write_causes, write_causes_json, write_causes_refusal_json, write_run,
    write_run_json, write_run_refusal_json, write_runs, write_runs_json,
};
pub use scripts::{
    ShownScript, write_script_info, write_script_info_json, write_script_tree, write_scripts,
    write_scripts_json,
};
pub use state::{
    DocumentChange, RecordedGraph, ShownState, StateList, Written, write_backups,
    write_backups_json, write_cfngin_graph, write_entry, write_entry_json, write_history,
    write_history_json, write_recorded, write_recorded_graph_json, write_recorded_json,
    write_state, write_state_json, write_state_refusal_json, write_written, write_written_json,
};
pub use values::{EvaluatedExpression, Evaluation, write_evaluation, write_globals};
pub use why::{
    OrderExplanation, PolicyStarter, Story, write_why, write_why_after, write_why_after_json,
    write_why_json,
};
