//! A connection that sends messages as somebody has put them together, many at a time, and reads what comes back.

use hipr_proto::{FLAG_ERROR, FLAG_NO_REPLY, FLAG_RESPONSE, Header, HipError, HipResult, Opcode};
use rustix::net::sockopt::set_socket_linger;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer: the operation and its outcome, with the bytes after the error code.
pub(super) struct Answered {
    pub(super) op: Opcode,
    pub(super) result: HipResult<Vec<u8>>,
}

/// Why no more answers come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nothing came for a while.
    Silence,
    /// The worker has ended the connection.
    End,
    /// What came is no answer to what was asked.
    Nonsense(&'static str),
}

/// A connection without a session.
pub(super) struct Raw {
    stream: TcpStream,
    /// Messages that have not been sent.
    output: Vec<u8>,
    input: Vec<u8>,
    /// Operations and numbers of the requests whose answers are to come.
    asked: VecDeque<(Opcode, u32)>,
    last_id: u32,
}

impl Raw {
    /// Connects; what waits longer than `patience` for the worker ends then.
    pub(super) fn connect(worker: SocketAddr, patience: Duration) -> Self {
        let stream = TcpStream::connect(worker).expect("the worker listens");
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_read_timeout(Some(patience)).expect("a TCP socket");
        stream.set_write_timeout(Some(patience)).expect("a TCP socket");
        // Nothing is kept of a connection that is not used any more.
        set_socket_linger(&stream, Some(Duration::ZERO)).expect("a TCP socket");
        Self { stream, output: Vec::new(), input: Vec::new(), asked: VecDeque::new(), last_id: 0 }
    }

    /// Appends a message to those that are sent next.
    pub(super) fn push(&mut self, op: Opcode, payload: &[u8], flags: u32) {
        self.last_id += 1;
        Header::new(op, self.last_id, payload.len() as u64, flags).put(&mut self.output);
        self.output.extend_from_slice(payload);
        if flags & FLAG_NO_REPLY == 0 {
            self.asked.push_back((op, self.last_id));
        }
    }

    /// Returns how many requests are not answered.
    pub(super) fn unanswered(&self) -> usize {
        self.asked.len()
    }

    /// Sends all messages; returns the number of bytes. Fails if the worker does not take them in time.
    pub(super) fn send(&mut self) -> Result<usize, Stop> {
        let len = self.output.len();
        self.stream.write_all(&self.output).map_err(|why| stop(&why))?;
        self.output.clear();
        Ok(len)
    }

    /// Returns the next answer; `None` if all requests have one.
    pub(super) fn answer(&mut self) -> Result<Option<Answered>, Stop> {
        let Some(&(op, id)) = self.asked.front() else { return Ok(None) };
        loop {
            let header = self.take(Header::SIZE)?;
            let header = Header::take(&mut header.as_slice()).map_err(|_| Stop::Nonsense("no header"))?;
            let len = usize::try_from(header.payload_length).map_err(|_| Stop::Nonsense("a length"))?;
            let payload = self.take(len)?;
            if !header.has(FLAG_RESPONSE) {
                // A notification, which a session may have asked for.
                continue;
            }
            self.asked.pop_front();
            if (header.op, header.request_id) != (op, id) {
                return Err(Stop::Nonsense("an answer to another request"));
            }
            let (code, rest) =
                payload.split_first_chunk().ok_or(Stop::Nonsense("an answer without an error code"))?;
            let code = i32::from_le_bytes(*code);
            if header.has(FLAG_ERROR) != (code != 0) {
                return Err(Stop::Nonsense("a flag that contradicts the error code"));
            }
            let result = if code == 0 { Ok(rest.to_vec()) } else { Err(HipError(code)) };
            return Ok(Some(Answered { op, result }));
        }
    }

    /// Takes so many bytes from what was received.
    fn take(&mut self, len: usize) -> Result<Vec<u8>, Stop> {
        let mut buffer = [0; 64 << 10];
        while self.input.len() < len {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Stop::End),
                Ok(read) => self.input.extend_from_slice(&buffer[..read]),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(stop(&why)),
            }
        }
        let rest = self.input.split_off(len);
        Ok(std::mem::replace(&mut self.input, rest))
    }
}

fn stop(why: &io::Error) -> Stop {
    match why.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Stop::Silence,
        _ => Stop::End,
    }
}
