//! The worker of an `orch` that was built without policies.

use std::io::{self, BufRead, Write};

use super::protocol::{WorkerReply, WorkerRequest};
use super::{LoadProblem, Problem};

/// Refuses every policy.
pub fn serve(requests: impl BufRead, mut replies: impl Write) -> io::Result<()> {
    const MISSING: &str = "this `orch` was built without policies (the feature `policies`)";
    for line in requests.lines() {
        let reply = match serde_json::from_str(&line?)? {
            WorkerRequest::Load { .. } => {
                WorkerReply::Loaded(Err(LoadProblem::Refused(Problem::new(MISSING))))
            }
            WorkerRequest::Put { .. } => continue,
            WorkerRequest::Evaluate { .. } => WorkerReply::Evaluated(Err(Problem::new(MISSING))),
            WorkerRequest::FindTests { .. } => {
                WorkerReply::Tests(Err((0, LoadProblem::Refused(Problem::new(MISSING)))))
            }
            WorkerRequest::Test { .. } => WorkerReply::Tested(Err((0, Problem::new(MISSING)))),
        };
        serde_json::to_writer(&mut replies, &reply)?;
        writeln!(replies)?;
        replies.flush()?;
    }
    Ok(())
}
