//! The writer's requests to the backend. A slow request doesn't keep the writer from receiving messages of the run.

use crate::state::backend::{Backend, PutOutcome};
use crate::state::document::Document;
use crate::state::run_record::RunChanges;
use crate::state::store::{PutCondition, StoreError, Version};

pub struct WriterRequest(pub(super) RequestKind);

pub(super) enum RequestKind {
    /// Put the run record in place of this version.
    Record(RunChanges, Version),
    /// Replace this version by the document with more changes of the run.
    Fold(Document, Version),
    /// Put the document with everything, and without the lock, in place of this version.
    End(Document, Version),
    /// Remove the record of this run.
    Removal(String),
}

pub struct WriterAnswer(pub(super) AnswerKind);

pub(super) enum AnswerKind {
    /// If its record was removed, also who ended the run from outside.
    Record(Result<PutOutcome, StoreError>, Option<String>),
    Fold(Document, Result<PutOutcome, StoreError>),
    End(Document, Result<PutOutcome, StoreError>),
    Removal,
}

impl WriterRequest {
    /// Sends the request, and waits for the answer.
    pub fn make(self, backend: &Backend) -> WriterAnswer {
        WriterAnswer(match self.0 {
            RequestKind::Record(record, version) => {
                let condition = PutCondition::Unchanged(version);
                let swap = backend.swap_record(&record, &condition);
                let breaker = match &swap {
                    Ok(PutOutcome::Refused(None)) => {
                        let read = backend.read().ok().flatten();
                        read.and_then(|read| read.document.ended_by(&record.run))
                    }
                    _ => None,
                };
                AnswerKind::Record(swap, breaker)
            }
            RequestKind::Fold(document, version) => {
                let swap = backend.swap(&document, &PutCondition::Unchanged(version));
                AnswerKind::Fold(document, swap)
            }
            RequestKind::End(document, version) => {
                let swap = backend.swap(&document, &PutCondition::Unchanged(version));
                AnswerKind::End(document, swap)
            }
            RequestKind::Removal(run) => {
                // If this fails, the next holder of the lock removes it.
                backend.delete_record(&run);
                AnswerKind::Removal
            }
        })
    }
}
