//! A single-threaded client that sends exactly what a test wants.

use hipr_proto::op::{EventTime, MemRecall, Offer, RequestFailed, TimesTold, VariablesTold, WatchOver};
use hipr_proto::{Answer, Client, Features, HipResult, Limits, Op, Opcode, Outbox, ReplyMode, Wire};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time for which a test waits for bytes, far longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a worker. Methods panic with the reason if the connection fails.
pub struct WireClient {
    stream: TcpStream,
    client: Client<Vec<u8>>,
    /// Bytes received and not yet parsed.
    input: Vec<u8>,
    /// What the worker has said of failed requests, and the text of each.
    failures: Vec<(RequestFailed, Vec<u8>)>,
    /// Numbers of the recalls of memory that were not answered.
    recalls: Vec<u64>,
    /// Whether the text of the last one is arriving.
    hears: bool,
    /// Whether the tail of a notification that nobody asks about is arriving.
    skips: bool,
    /// The tail of the last times between events that were told.
    times: Vec<u8>,
    /// Whether it is arriving.
    takes_times: bool,
}

/// A reply: its outcome, and the bytes after its fixed part.
#[derive(Debug, PartialEq)]
pub struct Replied<R> {
    /// The outcome.
    pub result: HipResult<R>,
    /// The bytes after the fixed part.
    pub inline: Vec<u8>,
}

impl WireClient {
    /// Connects without opening a session.
    pub fn connect(worker: SocketAddr) -> Self {
        let stream = TcpStream::connect(worker).expect("the worker listens");
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a TCP socket");
        let (input, failures, recalls, hears, skips, times, takes_times) = Default::default();
        let client = Client::new(Limits::default());
        Self { stream, client, input, failures, recalls, hears, skips, times, takes_times }
    }

    /// Takes notifications from now on, which have to be offered to be taken.
    pub fn hear(&mut self) {
        self.client.accept_notifications();
    }

    /// Offers the worker to take notifications, which has to accept that.
    pub fn accept_notifications(&mut self) {
        self.hear();
        let features = Features::NOTIFICATIONS.bits();
        let accepted = self.call(&Offer { features, part: 0 });
        assert_eq!(accepted.map(|reply| reply.features), Ok(features));
    }

    /// Takes what the worker has said of failed requests, with the text of each.
    pub fn take_failures(&mut self) -> Vec<(RequestFailed, Vec<u8>)> {
        std::mem::take(&mut self.failures)
    }

    /// Takes the numbers of the recalls that the worker has sent, of what the session does not use of its lease.
    pub fn take_recalls(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.recalls)
    }

    /// Connects and opens a session.
    pub fn open(worker: SocketAddr) -> Self {
        let mut client = Self::connect(worker);
        client.call(&hipr_proto::op::Init {}).expect("INIT succeeds");
        client
    }

    /// Returns the socket, to send what no client would.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends a request that is answered and returns its outcome.
    pub fn call<O: Op>(&mut self, op: &O) -> HipResult<O::Reply> {
        self.call_with(op, &[], None).result
    }

    /// Sends a request with a tail, which is answered, and returns the reply.
    pub fn call_with<O: Op>(&mut self, op: &O, tail: &[u8], inline: Option<Vec<u8>>) -> Replied<O::Reply> {
        self.send(op, tail, inline, ReplyMode::Always);
        self.wait::<O>()
    }

    /// Sends a request with NO_REPLY.
    pub fn forget<O: Op>(&mut self, op: &O) {
        self.forget_with(op, &[], None);
    }

    /// Sends a request with a tail and NO_REPLY.
    pub fn forget_with<O: Op>(&mut self, op: &O, tail: &[u8], inline: Option<Vec<u8>>) {
        self.send(op, tail, inline, ReplyMode::Never);
    }

    /// Sends a request.
    pub fn send<O: Op>(&mut self, op: &O, tail: &[u8], inline: Option<Vec<u8>>, reply_mode: ReplyMode) {
        self.try_send(op, tail, inline, reply_mode).expect("the worker reads");
    }

    /// Sends a request like [`send`](Self::send); fails if the connection has ended.
    pub fn try_send<O: Op>(
        &mut self,
        op: &O,
        tail: &[u8],
        inline: Option<Vec<u8>>,
        reply_mode: ReplyMode,
    ) -> io::Result<()> {
        self.client.request_with(op, tail, inline, reply_mode).expect("a well-formed request");
        self.client.flush();
        let mut outbox = Outbox::new();
        self.client.poll_transmit(&mut outbox);
        outbox.slices().try_for_each(|bytes| self.stream.write_all(bytes))
    }

    /// Waits for the reply to the oldest call, which has to be an `O`.
    pub fn wait<O: Op>(&mut self) -> Replied<O::Reply> {
        self.try_wait::<O>().expect("the worker answers")
    }

    /// Waits like [`wait`](Self::wait); fails if the connection ends first.
    pub fn try_wait<O: Op>(&mut self) -> io::Result<Replied<O::Reply>> {
        let mut replied = None;
        let mut inline = Vec::new();
        loop {
            let mut rest = self.input.as_slice();
            let done = loop {
                match self.client.handle_input(&mut rest).map_err(io::Error::other)? {
                    Answer::Reply(reply) => {
                        replied = Some(reply.read::<O>().map_err(io::Error::other)?);
                        if reply.inline == 0 {
                            break true;
                        }
                    }
                    Answer::Data { last, .. } if self.skips => self.skips = !last,
                    Answer::Data { bytes, last } if self.takes_times => {
                        self.times.extend_from_slice(bytes);
                        self.takes_times = !last;
                    }
                    Answer::Data { bytes, last } if self.hears => {
                        self.failures.last_mut().expect("a notification").1.extend_from_slice(bytes);
                        self.hears = !last;
                    }
                    Answer::Data { bytes, last } => {
                        inline.extend_from_slice(bytes);
                        if last {
                            break true;
                        }
                    }
                    Answer::Notification(notification) if notification.op == TimesTold::OPCODE => {
                        self.times.clear();
                        self.takes_times = notification.inline > 0;
                    }
                    Answer::Notification(notification) if is_told(notification.op) => {
                        self.skips = notification.inline > 0;
                    }
                    Answer::Notification(notification) if notification.op == MemRecall::OPCODE => {
                        self.recalls.push(notification.read::<MemRecall>().expect("a whole recall").number);
                    }
                    Answer::Notification(notification) => {
                        let failed =
                            notification.read().expect("the only other notification that this client gets");
                        self.failures.push((failed, Vec::new()));
                        self.hears = notification.inline > 0;
                    }
                    Answer::NeedMore => break false,
                }
            };
            let used = self.input.len() - rest.len();
            self.input.drain(..used);
            if done && let Some(result) = replied.take() {
                return Ok(Replied { result, inline });
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 256 * 1024];
        let len = loop {
            match self.stream.read(&mut buffer) {
                // A process that is stopped for a while is no answer.
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.input.extend_from_slice(&buffer[..len]);
        Ok(())
    }

    /// Returns the times between events that were told last.
    pub fn take_times(&mut self) -> Vec<EventTime> {
        let bytes = std::mem::take(&mut self.times);
        let mut rest = bytes.as_slice();
        std::iter::from_fn(|| EventTime::take(&mut rest).ok()).collect()
    }

    /// Waits until the worker closes the connection; returns whether it sends nothing before.
    pub fn closed(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(len) => len == 0,
            Err(why) => why.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// Returns whether a notification has nothing that this client looks at.
fn is_told(op: Opcode) -> bool {
    matches!(op, WatchOver::OPCODE | VariablesTold::OPCODE)
}
