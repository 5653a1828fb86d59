//! A client that executes its part of a plan without a socket: it takes received bytes and returns bytes to send.

use hipr_io::unpack_all;
use hipr_proto::{Answer, Client as Protocol, HipError, Limits, Opcode, Outbox};

use super::model::{Learned, settled};
use super::plan::{Act, Client};
use super::request::{Request, TOLD};

/// The progress of a client, for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The next client must not connect yet.
    #[default]
    Opening,
    /// The client executes its acts.
    Working,
    /// The client has only to close its connection.
    Resting,
}

/// How the client leaves the connection when all its bytes are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It keeps the connection open.
    No,
    /// It closes its sending side.
    HalfClose,
    /// It closes the connection.
    Close,
    /// It resets the connection.
    Reset,
}

/// A client that executes its part of a plan.
#[derive(Debug)]
pub struct Peer<'p> {
    plan: &'p Client,
    /// Index of the next act.
    next: usize,
    protocol: Protocol<Vec<u8>>,
    outbox: Outbox<Vec<u8>>,
    out: Vec<u8>,
    sent: usize,
    /// Number of calls that were made and are answered.
    asked: usize,
    learned: Vec<Learned>,
    /// Number of calls that were answered.
    answered: usize,
    /// The notification that is arriving.
    told: Option<(Opcode, Vec<u8>, Vec<u8>)>,
    /// The reply that is arriving: error, fixed part, data.
    arriving: Option<(Option<HipError>, Vec<u8>, Vec<u8>)>,
    stage: Stage,
    leave: Leave,
    left: bool,
    reads_late: bool,
    closed: bool,
    stops_worker: bool,
    /// The error for a message of the worker that breaks the protocol.
    wrong: Option<String>,
}

impl<'p> Peer<'p> {
    /// Number of unsent bytes above which the client makes no calls.
    const OUT_MAX_BYTES: usize = 256 << 10;

    /// Creates a client that has not connected.
    pub fn new(plan: &'p Client) -> Self {
        Self {
            plan,
            next: 0,
            protocol: Protocol::new(Limits::default()),
            outbox: Outbox::new(),
            out: Vec::new(),
            sent: 0,
            asked: 0,
            learned: Vec::new(),
            answered: 0,
            told: None,
            arriving: None,
            stage: Stage::Opening,
            leave: Leave::No,
            left: false,
            reads_late: false,
            closed: false,
            stops_worker: false,
            wrong: None,
        }
    }

    /// Returns the progress of the client.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns once whether the worker has to be stopped now.
    pub fn take_stop(&mut self) -> bool {
        std::mem::take(&mut self.stops_worker)
    }

    /// Returns the bytes to send.
    pub fn output(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    /// Removes the first `len` bytes, which have been sent.
    pub fn advance(&mut self, len: usize) {
        self.sent += len;
        if self.output().is_empty() {
            self.out.clear();
            self.sent = 0;
        }
    }

    /// Returns how the client leaves the connection now; `blocked` says that it cannot write.
    pub fn leave(&self, blocked: bool) -> Leave {
        let breaks_off = self.leave == Leave::Reset && blocked;
        if self.output().is_empty() || breaks_off { self.leave } else { Leave::No }
    }

    /// Returns whether it reads now; `blocked` says that it cannot write.
    pub fn reads(&self, blocked: bool) -> bool {
        !self.reads_late || (blocked && !self.output().is_empty())
    }

    /// Handles that its socket was closed as [`Peer::leave`] said.
    pub fn handle_left(&mut self) {
        self.left = true;
    }

    /// Returns whether it has executed all acts and waits for nothing.
    pub fn is_done(&self) -> bool {
        self.left || self.closed
    }

    /// Returns the replies that the client received, and whether the worker closed the connection first.
    ///
    /// # Errors
    /// What the worker said that it may not say.
    pub fn into_seen(mut self) -> Result<(Vec<Learned>, bool), String> {
        let expects_end = self.plan.acts.contains(&Act::AwaitEnd);
        if self.closed {
            // What it had not come to.
            self.go_on(&[]);
        }
        self.resolve();
        self.wrong.map_or(Ok((settled(&self.learned), self.closed && expects_end)), Err)
    }

    /// Executes acts as far as possible. `stages` is the progress of all clients.
    pub fn go_on(&mut self, stages: &[Stage]) -> bool {
        let begun = self.next;
        while self.leave == Leave::No || self.closed {
            if !self.closed && self.output().len() >= Self::OUT_MAX_BYTES {
                break;
            }
            let Some(act) = self.plan.acts.get(self.next) else {
                if self.leave == Leave::No && self.has_answers() {
                    self.stage = Stage::Resting;
                    self.leave = Leave::Close;
                }
                break;
            };
            if !self.act(act, stages) {
                break;
            }
            self.next += 1;
        }
        // The protocol's own buffer is full, or somebody waits.
        if self.protocol.wants_flush() {
            self.transmit();
        }
        self.next != begun
    }

    /// Executes one act; returns false if it is not possible yet.
    fn act(&mut self, act: &Act, stages: &[Stage]) -> bool {
        match act {
            Act::Call(call) if self.closed => {
                self.asked += usize::from(call.loud);
                self.resolve();
            }
            Act::Opened => self.stage = self.stage.max(Stage::Working),
            Act::StopWorker => self.stops_worker = true,
            Act::AwaitClient(other) => {
                self.flush();
                return stages.get(*other).is_none_or(|stage| *stage == Stage::Resting);
            }
            _ if self.closed => {}
            Act::Call(call) => {
                if call.request == Request::Offer(TOLD) {
                    self.protocol.accept_notifications();
                }
                let encoded = call.request.encode();
                let made = self.protocol.request_raw(encoded.op, &encoded.fixed, encoded.inline, call.loud);
                self.asked += usize::from(call.loud);
                if let Err(why) = made {
                    self.wrong = Some(why.to_string());
                }
                if self.protocol.wants_flush() {
                    self.transmit();
                }
            }
            Act::Bytes(bytes) => {
                self.flush();
                self.out.extend_from_slice(bytes);
            }
            Act::Await => return self.has_answers(),
            Act::ReadLate => self.reads_late = true,
            Act::Read => self.reads_late = false,
            Act::HalfClose => self.go(Leave::HalfClose),
            Act::Reset => self.go(Leave::Reset),
            Act::AwaitEnd => {
                self.flush();
                self.reads_late = false;
                self.stage = Stage::Resting;
                return false;
            }
        }
        true
    }

    fn go(&mut self, leave: Leave) {
        self.flush();
        self.leave = leave;
        self.stage = Stage::Resting;
        self.reads_late = false;
    }

    /// Sends everything; returns whether all replies have arrived.
    fn has_answers(&mut self) -> bool {
        self.flush();
        self.reads_late = false;
        self.answered == self.asked || self.closed
    }

    fn flush(&mut self) {
        self.protocol.flush();
        self.transmit();
    }

    fn transmit(&mut self) {
        self.protocol.poll_transmit(&mut self.outbox);
        self.outbox.slices().for_each(|bytes| self.out.extend_from_slice(bytes));
        self.outbox.advance(self.outbox.len_bytes());
    }

    /// Reads what the worker sent.
    pub fn handle_input(&mut self, mut input: &[u8]) {
        while self.wrong.is_none() {
            match self.protocol.handle_input(&mut input) {
                Ok(Answer::Reply(reply)) => {
                    self.arriving = Some((reply.error, reply.fixed.to_vec(), Vec::new()));
                    if reply.inline == 0 {
                        self.learn();
                    }
                }
                Ok(Answer::Data { bytes, last }) => {
                    if let Some((_, _, tail)) = &mut self.told {
                        tail.extend_from_slice(bytes);
                    } else if let Some((_, _, data)) = &mut self.arriving {
                        data.extend_from_slice(bytes);
                    }
                    if last && self.told.is_some() {
                        self.hear();
                    } else if last {
                        self.learn();
                    }
                }
                Ok(Answer::Notification(notification)) => {
                    let is_bare = notification.inline == 0;
                    self.told = Some((notification.op, notification.fixed.to_vec(), Vec::new()));
                    if is_bare {
                        self.hear();
                    }
                }
                Ok(Answer::NeedMore) => return,
                Err(why) => self.wrong = Some(why.to_string()),
            }
        }
    }

    /// Learns what the worker has told. Which unanswered requests have failed is for the reply that reports it to say.
    fn hear(&mut self) {
        match self.told.take() {
            Some((Opcode::REQUEST_FAILED, ..)) | None => {}
            Some((op @ (Opcode::VARIABLES_TOLD | Opcode::TIMES_TOLD), fixed, tail)) => {
                self.learned.push(Learned::Told(op, fixed, tail));
            }
            Some((op, ..)) => self.wrong = Some(format!("{op}, which nobody has asked for")),
        }
    }

    fn learn(&mut self) {
        if let Some((error, mut fixed, mut data)) = self.arriving.take() {
            if error.is_none()
                && let Some(len) = self.packed_len()
            {
                if fixed.first() == Some(&1) {
                    match unpack_all(&data, len) {
                        Ok(bytes) => data = bytes,
                        Err(why) => self.wrong = Some(format!("packed bytes: {why:?}")),
                    }
                }
                // Whether they are packed is the worker's choice.
                fixed.fill(0);
            }
            self.answered += 1;
            self.learned.push(Learned::Reply { error, fixed, data });
        }
    }

    /// Returns the number of bytes that the reply brings which is learned now, if they may be packed.
    fn packed_len(&self) -> Option<u64> {
        let mut loud = self.plan.acts.iter().filter_map(|act| match act {
            Act::Call(call) if call.loud => Some(&call.request),
            _ => None,
        });
        match loud.nth(self.answered)? {
            Request::DownPacked(_, len) => Some(*len),
            _ => None,
        }
    }

    /// Handles the end of the connection: the worker closed it, or it cannot be written to.
    pub fn handle_end(&mut self) {
        self.closed = true;
        self.out.clear();
        self.sent = 0;
        self.resolve();
        self.stage = Stage::Resting;
    }

    /// Resolves the calls that will not be answered.
    fn resolve(&mut self) {
        let open = self.asked.saturating_sub(self.answered);
        self.answered += open;
        self.learned.extend(std::iter::repeat_n(Learned::Closed, open));
    }
}
