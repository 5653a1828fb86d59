//! Waits of a session, what follows them, and reads of device memory.

use std::task::Poll;

use hipr_proto::{HipResult, Inline, Outcome, Ticket};

use super::Session;
use super::look::Look;
use super::state::{State, Wait};
use crate::env::Env;
use hipr_device::{Region, WaitFor};

impl Session {
    /// Polls a wait; returns its result if it is over.
    pub(super) fn poll_wait(&mut self, env: &Env<'_>, wait: &Wait) -> Poll<HipResult<()>> {
        if let Wait::Readable { src, stream, offset, len_bytes } = *wait {
            let len = usize::try_from(len_bytes).unwrap_or(usize::MAX).min(env.limits.chunk_bytes);
            return self.poll_capability(&src, stream, offset, len);
        }
        let comes_back = matches!(*wait, Wait::Free(ptr) if self.owned.lease.comes_back(ptr));
        let context = match self.owned.context() {
            Ok(context) => context,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match *wait {
            Wait::Sync(what) => context.poll_sync(what),
            Wait::Written(stream) => context.poll_written(stream),
            Wait::Read { stream, .. } | Wait::Changes { stream, .. } => context.poll_readable(stream),
            Wait::Fetch { src, stream, .. } => {
                let len = usize::try_from(src.len_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
                match len.min(env.limits.chunk_bytes) {
                    0 => Poll::Ready(Ok(())),
                    len => context.poll_fetched(&src, 0, len, stream).map_ok(|_| ()),
                }
            }
            Wait::Free(ptr) if comes_back => context.poll_free_reserved(ptr),
            Wait::Free(ptr) => context.poll_free(ptr),
            Wait::Remap(remap) => remap.poll(context),
            Wait::Reset => context.poll_sync(WaitFor::Device),
            // It has been polled.
            Wait::Readable { .. } => Poll::Pending,
        }
    }

    /// Continues a request whose wait is over.
    pub(super) fn finish_wait(&mut self, env: &Env<'_>, ticket: Ticket, wait: Wait, result: HipResult<()>) {
        self.work_waited(&wait, result);
        if matches!(wait, Wait::Sync(_))
            && let Err(error) = self.owned.synchronized()
        {
            tracing::warn!(conn = %self.conn, %error, "cannot release idle memory of a pool");
        }
        match wait {
            Wait::Sync(WaitFor::Stream(stream)) => self.owned.unstage(Some(stream)),
            Wait::Sync(WaitFor::Device) => self.owned.unstage(None),
            Wait::Sync(WaitFor::Event(_)) | Wait::Written(_) => {}
            Wait::Free(ptr) => {
                if result.is_ok() {
                    self.owned.remove_allocation(ptr);
                }
            }
            Wait::Remap(remap) => {
                let result = result.and_then(|()| self.owned.remapped(remap));
                return self.complete(ticket, result.into());
            }
            Wait::Reset => {
                // What surfaced in the wait goes with what caused it (HIP API: hipDeviceReset).
                let result = self.owned.context().and_then(|context| context.reset());
                self.owned.clear();
                return self.complete(ticket, result.into());
            }
            Wait::Read { src, stream, packs } => {
                self.owned.unstage(Some(stream));
                if result.is_ok() {
                    self.state = State::Wait { ticket, wait: Wait::Fetch { src, stream, packs } };
                    return;
                }
            }
            Wait::Changes { base, src, stream, packs } => {
                self.owned.unstage(Some(stream));
                if result.is_ok() {
                    return self.begin_look(ticket, Look::new(base, src, stream, packs));
                }
            }
            Wait::Readable { src, stream, offset, len_bytes } => {
                if result.is_ok() {
                    return self.send_capability(ticket, src, stream, offset, len_bytes);
                }
            }
            Wait::Fetch { src, stream, packs: true } => {
                if result.is_ok() {
                    return self.begin_pack(env, ticket, src, stream);
                }
            }
            Wait::Fetch { src, stream, packs: false } => {
                if result.is_ok() {
                    let len = src.len_bytes().unwrap_or(0);
                    self.complete(ticket, Outcome::ok(&()).with_inline(Inline::Stream(len)));
                    if self.responder.stream_left() > 0 {
                        self.state = State::Read { src, stream, offset: 0 };
                    }
                    return;
                }
            }
        }
        self.complete(ticket, result.into());
    }

    /// Reads the next bytes of a reply. Its length has been sent, so bytes that cannot be read are sent as zeros, with an
    /// error in the next reply; that happens only if the device fails.
    pub(super) fn read_chunk(&mut self, env: &Env<'_>, src: Region, stream: u64, offset: u64) -> Poll<()> {
        let left = self.responder.stream_left();
        let mut len = usize::try_from(left).unwrap_or(usize::MAX).min(env.limits.chunk_bytes);
        let mut failed = None;
        match self.source().map(|context| context.poll_fetched(&src, offset, len, stream)) {
            Ok(Poll::Pending) => {
                self.state = State::Read { src, stream, offset };
                return Poll::Pending;
            }
            Ok(Poll::Ready(Ok(fetched))) => len = fetched.clamp(1, len.max(1)),
            Ok(Poll::Ready(Err(error))) | Err(error) => failed = Some(error),
        }
        let reads_zeros = self.source().is_ok_and(|context| context.reads_zeros());
        let chunk = if failed.is_some() || reads_zeros {
            env.bodies.zeros(len)
        } else {
            env.bodies.body(len, |bytes| {
                failed = self.source().and_then(|context| context.read(&src, offset, bytes)).err();
                if failed.is_some() {
                    bytes.fill(0);
                }
            })
        };
        self.turn_bytes += len;
        if let Some(error) = failed {
            tracing::warn!(conn = %self.conn, %error, "cannot read device memory; sending zeros");
            self.responder.keep(error);
        }
        self.broken = self.broken.or(self.responder.push_data(chunk).err());
        if self.responder.stream_left() > 0 {
            self.state = State::Read { src, stream, offset: offset + len as u64 };
        }
        Poll::Ready(())
    }
}
