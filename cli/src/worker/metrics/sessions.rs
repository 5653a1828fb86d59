//! The page with the sessions of a worker, which `hipr top` shows.

use super::Living;
use hipr_worker::SessionCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sessions of a worker at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sessions {
    /// How many there may be.
    pub(crate) seats: usize,
    /// By their numbers.
    pub(crate) sessions: Vec<SessionRow>,
}

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionRow {
    /// Its number, from 1 on.
    pub(crate) number: u64,
    /// The tenant, if the client has proved a key.
    pub(crate) tenant: Option<String>,
    /// The client's end.
    pub(crate) from: String,
    /// How long ago it began.
    pub(crate) age_s: u64,
    /// Whether its connection was cut and it waits for its client.
    pub(crate) is_parked: bool,
    /// Bytes of memory that it has allocated.
    pub(crate) memory_bytes: u64,
    /// Requests that have begun.
    pub(crate) requests: u64,
    /// Bytes of answers.
    pub(crate) sent_bytes: u64,
    /// Time that its work has had on the device, all of its threads together, in nanoseconds.
    pub(crate) device_ns: u64,
    /// Commands that are enqueued and not finished.
    pub(crate) queued_commands: u64,
    /// Streams that have such commands.
    pub(crate) busy_streams: u64,
}

impl Sessions {
    /// Puts together who the sessions are and what is counted of them.
    pub(super) fn new(
        seats: usize,
        living: &BTreeMap<u64, Living>,
        counts: &BTreeMap<u64, SessionCounts>,
    ) -> Self {
        let row = |(&number, living): (&u64, &Living)| {
            let counts = counts.get(&number).copied().unwrap_or_default();
            SessionRow {
                number,
                tenant: living.tenant.clone(),
                from: living.from.clone(),
                age_s: living.since.elapsed().as_secs(),
                is_parked: living.is_parked,
                memory_bytes: counts.memory_bytes,
                requests: counts.requests,
                sent_bytes: counts.sent_bytes,
                device_ns: counts.device_ns,
                queued_commands: counts.queued_commands,
                busy_streams: counts.busy_streams,
            }
        };
        Self { seats, sessions: living.iter().map(row).collect() }
    }
}
