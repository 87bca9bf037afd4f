//! A run as the pipeline of an engine that a team already has: GitLab CI, GitHub Actions, Buildkite,
//! or `make` on one machine.
//!
//! Starting a job costs more than most stacks take, so a job runs a list of stacks. [`JobGraph`]
//! decides which; one file for each engine writes the jobs. The paths and the command are in the
//! [`WorkOrder`], a file that the jobs read: a pipeline contains nothing but the names of its jobs.
//!
//! ```text
//! stacks, order, durations → JobGraph → pipeline    for the engine
//!                                     → WorkOrder   for the jobs
//! ```
//!
//! Nothing here reads or writes files, or knows how a job proceeds.

mod buildkite;
mod dag;
mod github;
mod gitlab;
mod job_graph;
mod job_name;
mod lanes;
mod limits;
mod make;
mod pipeline;
mod shape;
mod template;
mod work_order;
mod yaml;

pub use self::job_graph::{JobGraph, PipelineJob, TurnToPack};
pub use self::limits::{Engine, EngineLimit, LIMITS, LimitKind};
pub use self::pipeline::Pipeline;
pub use self::shape::{ExportError, PipelineJobs, Shape};
pub use self::template::{Template, TemplateError};
pub(crate) use self::work_order::FORMAT;
pub use self::work_order::{
    OrderedJob, OrderedOperation, OrderedPolicies, OrderedTask, OrderedTurn, Predecessor,
    Predecessors, WorkOrder, WorkOrderError,
};
