//! Requests that are sent now, and whose reply is waited for later.

use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;

use hipr_proto::op::MemLeaseReply;
use hipr_proto::{HipResult, Op, Opcode};

use super::{AnswerWithTail, Connection, Extra, Writer, decode, lock};
use crate::CallError;
use crate::replies::{Bulk, Rows};
use crate::unanswered::Followed;

/// A request whose reply has to be waited for, with [`Connection::finish`].
#[derive(Debug)]
#[must_use = "the reply has to be taken"]
pub struct Started<O> {
    id: u32,
    before: Followed,
    op: PhantomData<fn() -> O>,
}

/// Requests that were sent together and whose replies have to be waited for, with [`Connection::finish_all`].
#[derive(Debug)]
#[must_use = "the replies have to be taken"]
pub struct Flight<O> {
    first: Option<(u32, Opcode)>,
    others: Vec<u32>,
    before: Followed,
    op: PhantomData<fn() -> O>,
}

fn collect() -> Bulk {
    Bulk::Collect(Vec::new())
}

impl Connection {
    /// Sends a request that is answered, without waiting for the reply: what the caller locks meanwhile is in the order of the
    /// requests.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn start<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<Started<O>, CallError> {
        let mut writer = self.inner.writer()?;
        let id = self.inner.queue(&mut writer, op, extra, Some(Bulk::Collect(Vec::new())))?;
        self.inner.send_if_wanted(&mut writer)?;
        let before = self.inner.unanswered().before(&self.inner.counters);
        Ok(Started { id, before, op: PhantomData })
    }

    /// Waits for the reply to a request.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn finish<O: Op>(&self, started: Started<O>) -> Result<O::Reply, CallError> {
        self.inner.counters.add(|c| &c.round_trips, 1);
        let whole = self.inner.wait(started.id)?;
        self.inner.unanswered().answered(O::OPCODE, started.before, whole.error);
        decode::<O>(&whole)
    }

    /// Returns the file that the worker has passed ahead of a reply that was waited for ([`MEM_SHARE`](hipr_proto::op::MemShare)).
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if it has passed none; [`InvalidData`](io::ErrorKind::InvalidData) if it does not have
    /// `len_bytes` bytes, or somebody can change how many it has.
    pub fn take_file(&self, len_bytes: u64) -> io::Result<OwnedFd> {
        let file = self.inner.transport.take_descriptor().ok_or(io::ErrorKind::NotFound)?;
        hipr_io_shm::check_sealed(&file, len_bytes)?;
        Ok(file)
    }

    /// Sends a request that is answered, if there is a `first` one, and others behind it, in one flight, without waiting for the replies.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_all<F: Op, O: Op>(
        &self,
        first: Option<(&F, Extra<'_>)>,
        others: &[O],
    ) -> Result<Flight<O>, CallError> {
        let mut writer = self.inner.writer()?;
        let first = match first {
            Some((op, extra)) => {
                Some((self.inner.queue(&mut writer, op, extra, Some(collect()))?, F::OPCODE))
            }
            None => None,
        };
        let mut ids = Vec::with_capacity(others.len());
        self.send_behind(&mut writer, others, &mut ids)?;
        let before = self.inner.unanswered().before(&self.inner.counters);
        Ok(Flight { first, others: ids, before, op: PhantomData })
    }

    /// Sends a request whose reply has inline bytes, which go into rows of memory whose total length it names, and others behind it, in one
    /// flight, without waiting for the replies.
    ///
    /// # Errors
    /// As [`start`](Self::start); the rows are in use no more then.
    ///
    /// # Safety
    /// The rows are writable and used by nobody else until [`finish_all`](Self::finish_all) has returned.
    pub unsafe fn start_read<F: Op, O: Op>(
        &self,
        first: &F,
        extra: Extra<'_>,
        rows: Rows,
        others: &[O],
    ) -> Result<Flight<O>, CallError> {
        let mut writer = self.inner.writer()?;
        let id = self.inner.queue(&mut writer, first, extra, Some(Bulk::Into(rows)))?;
        let mut ids = Vec::with_capacity(others.len());
        let sent = self.send_behind(&mut writer, others, &mut ids);
        let before = self.inner.unanswered().before(&self.inner.counters);
        drop(writer);
        if let Err(error) = sent {
            // Memory was lent: the wait has to be over before this returns.
            drop(self.inner.wait(id));
            return Err(error);
        }
        Ok(Flight { first: Some((id, F::OPCODE)), others: ids, before, op: PhantomData })
    }

    /// Sends requests that are answered, and all that is buffered before them.
    fn send_behind<O: Op>(
        &self,
        writer: &mut Writer,
        ops: &[O],
        ids: &mut Vec<u32>,
    ) -> Result<(), CallError> {
        for op in ops {
            ids.push(self.inner.queue(writer, op, Extra::default(), Some(collect()))?);
            if writer.sender.queued_bytes() >= hipr_proto::COALESCE_BYTES / 2 {
                self.inner.send(writer)?;
            }
        }
        self.inner.send(writer)
    }

    /// Waits for all replies of a flight: returns the answer to the first request, success if there was none, and those to the others
    /// with the bytes behind the replies' fixed parts.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn finish_all<O: Op>(
        &self,
        flight: Flight<O>,
    ) -> Result<(HipResult<()>, Vec<AnswerWithTail<O>>), CallError> {
        let inner = &self.inner;
        inner.counters.add(|c| &c.round_trips, 1);
        let mut first = Ok(());
        if let Some((id, opcode)) = flight.first {
            let whole = inner.wait(id)?;
            inner.unanswered().answered(opcode, flight.before, whole.error);
            first = whole.error.map_or(Ok(()), Err);
        }
        let mut others = Vec::with_capacity(flight.others.len());
        for id in flight.others {
            let whole = inner.wait(id)?;
            inner.unanswered().answered(O::OPCODE, flight.before, whole.error);
            others.push(match decode::<O>(&whole) {
                Ok(reply) => Ok((reply, whole.tail)),
                Err(CallError::Hip(error)) => Err(error),
                Err(CallError::Lost) => return Err(CallError::Lost),
            });
        }
        Ok((first, others))
    }

    /// Waits for the lease that the first flight has asked for, if [`Features::PLACES`](hipr_proto::Features::PLACES) was offered. The
    /// first caller gets it, all others `None`.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn first_lease(&self) -> Option<Result<MemLeaseReply, CallError>> {
        let call = lock(&self.inner.first_lease).take()?;
        Some(self.inner.wait(call.id()).and_then(|whole| decode::<hipr_proto::op::MemLease>(&whole)))
    }
}
