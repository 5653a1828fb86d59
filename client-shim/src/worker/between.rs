//! Copies between workers that need none of this process's bytes.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hipr_client::CopyEnd;
use hipr_proto::HipResult;

use super::{Worker, lock};
use crate::command::{MemoryBox, MemoryCopy};

/// Time after which workers are tried again that could not reach each other.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// Pairs of workers, by their numbers, between which bytes do not go directly, and the time at which that was found out.
#[derive(Debug, Default)]
pub(super) struct Separate(Mutex<HashMap<(usize, usize), Instant>>);

impl Separate {
    fn are_known(&self, pair: (usize, usize)) -> bool {
        lock(&self.0).get(&pair).is_some_and(|since| since.elapsed() < TRY_AGAIN)
    }

    /// Notes that bytes do not go directly; returns whether that is new.
    fn note(&self, pair: (usize, usize)) -> bool {
        lock(&self.0).insert(pair, Instant::now()).is_none()
    }
}

impl Worker {
    /// Does what [`Port::copy_between`](super::Port::copy_between) does.
    pub(super) fn copy_from_worker_to_worker(
        &self,
        copy: &MemoryCopy,
        dst_stream: u64,
        src_stream: u64,
    ) -> HipResult<bool> {
        let (to, from) = (self.links().of_handle(dst_stream), self.links().of_handle(src_stream));
        let pair = (from.number(), to.number());
        if self.separate.are_known(pair) {
            return Ok(false);
        }
        let end = |end: &MemoryBox, stream| CopyEnd {
            address: end.at.wire(),
            pitch: end.pitch as u64,
            slice: (end.pitch * end.rows) as u64,
            stream,
        };
        let (dst, src) = (end(&copy.dst, to.unmarked(dst_stream)), end(&copy.src, from.unmarked(src_stream)));
        let size = [copy.size.width, copy.size.height, copy.size.depth].map(|count| count as u64);
        let is_copied = to.connection.copy_from(&dst, &from.connection, &src, size)?;
        if !is_copied && self.separate.note(pair) {
            tracing::info!(
                "the worker at {} does not get memory from the one at {} directly; copies go through this process",
                to.connection.address(),
                from.connection.address()
            );
        }
        Ok(is_copied)
    }
}
