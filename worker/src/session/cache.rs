//! Chunks of the cache of uploads: finding them, and copying them to the device.

use std::sync::Arc;
use std::task::Poll;

use hipr_proto::op::{CACHE_NAME_BYTES, CacheHaveReply};
use hipr_proto::{HipError, Outcome, Ticket};

use super::Session;
use super::state::{State, Wait, Write};
use crate::cache::{Asked, Promise};
use crate::env::Env;

impl Session {
    /// Replies which chunks there are, or waits until files have been looked for.
    pub(super) fn have(&mut self, env: &Env<'_>, ticket: Ticket, names: Vec<[u8; CACHE_NAME_BYTES]>) {
        let Some(cache) = env.cache else {
            return self.complete(ticket, Outcome::error(HipError::NOT_SUPPORTED));
        };
        // What was promised without an answer that says so would stay for the whole session.
        if !ticket.wants_reply() {
            return self.complete(ticket, Outcome::ok(&()));
        }
        match self.owned.tenant.have(cache, names, || (env.waker)()) {
            Ok(Ok(has)) => self.complete(ticket, Outcome::ok(&CacheHaveReply { has })),
            Ok(Err(asked)) => self.state = State::Have { ticket, asked },
            Err(error) => self.complete(ticket, Outcome::error(error)),
        }
    }

    /// Replies if files have been looked for.
    pub(super) fn poll_have(&mut self, ticket: Ticket, asked: Asked) -> Poll<bool> {
        match self.owned.tenant.poll_have(asked) {
            Ok(has) => {
                self.complete(ticket, Outcome::ok(&CacheHaveReply { has }));
                Poll::Ready(true)
            }
            Err(asked) => {
                self.state = State::Have { ticket, asked };
                Poll::Pending
            }
        }
    }

    /// Writes the next bytes of a chunk, as those of a copy from the client.
    pub(super) fn copy_kept(&mut self, env: &Env<'_>, mut write: Write, chunk: Arc<Promise>) -> Poll<()> {
        if self.poll_begin(&write).is_pending() {
            self.state = State::CopyKept { write, chunk };
            return Poll::Pending;
        }
        let begin = usize::try_from(write.offset).unwrap_or(usize::MAX);
        let rest = chunk.bytes().get(begin..).unwrap_or_default();
        let piece = rest.get(..env.limits.chunk_bytes).unwrap_or(rest);
        match self.write_piece(&mut write, piece) {
            Poll::Ready(Ok(_)) => {
                if write.offset < chunk.bytes().len() as u64 {
                    self.state = State::CopyKept { write, chunk };
                    return Poll::Ready(());
                }
                if let Some(cache) = env.cache {
                    cache.count_saved(write.offset);
                }
                self.written(write);
                Poll::Ready(())
            }
            Poll::Ready(Err(error)) => {
                self.complete(write.ticket, Outcome::error(error));
                Poll::Ready(())
            }
            Poll::Pending => {
                self.state = State::CopyKept { write, chunk };
                Poll::Pending
            }
        }
    }

    /// Ends a copy whose bytes the device has taken, when they have arrived if that is to be waited for.
    pub(super) fn written(&mut self, write: Write) {
        if write.waits {
            self.state = State::Wait { ticket: write.ticket, wait: Wait::Written(write.stream) };
        } else {
            self.complete(write.ticket, Outcome::ok(&()));
        }
    }
}
