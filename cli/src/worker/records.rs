//! Who hears of what happens to sessions: the record of `--audit`, and the counts of `--metrics`.

use super::audit::AuditFile;
use super::metrics::Metrics;
use hipr_io::{Audit, AuditEvent, Who};
use std::sync::Arc;

/// The record of sessions and the counts of them, each if it is wanted.
#[derive(Debug)]
pub(super) struct Records {
    file: Option<Arc<AuditFile>>,
    metrics: Option<Arc<Metrics>>,
}

impl Records {
    /// Passes on what happens; `None` if nobody wants to know.
    pub(super) fn new(file: Option<Arc<AuditFile>>, metrics: Option<Arc<Metrics>>) -> Option<Arc<Self>> {
        (file.is_some() || metrics.is_some()).then(|| Arc::new(Self { file, metrics }))
    }

    /// Keeps count of records that came and cannot be written.
    pub(super) fn count_lost(&self, count: u64) {
        self.file.iter().for_each(|file| file.count_lost(count));
    }
}

impl Audit for Records {
    fn record(&self, who: &Who, event: AuditEvent) {
        self.metrics.iter().for_each(|metrics| metrics.count(who, &event));
        self.file.iter().for_each(|file| file.record(who, event.clone()));
    }
}
