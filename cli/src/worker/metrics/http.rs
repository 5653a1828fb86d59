//! The HTTP side: one thread, few connections, and a bound for each in time and bytes, as strangers may reach the port. One GET is
//! answered on each connection, which is then closed.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Maximum number of connections; a further one closes the oldest.
const CONNECTIONS_MAX: usize = 16;
/// Maximum length of a request in bytes, and maximum number of its headers.
const HEAD_MAX_BYTES: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
/// Time for a request, and for taking its answer.
const TIME: Duration = Duration::from_secs(5);
/// Maximum bytes that are read of what follows a request, so that the answer arrives before the connection ends.
const UNREAD_MAX_BYTES: usize = 64 << 10;
/// Time after which accepting is tried again when the system had no descriptor.
const RETRY: Duration = Duration::from_millis(100);

const LISTENER: Token = Token(0);

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    kind: &'static str,
    pub(super) text: Vec<u8>,
}

impl Answer {
    /// Creates an answer in words.
    pub(super) fn words(status: u16, words: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", text: format!("{words}\n").into_bytes() }
    }

    /// Creates an answer that Prometheus reads.
    pub(super) fn metrics(text: Vec<u8>) -> Self {
        Self { status: 200, kind: prometheus::TEXT_FORMAT, text }
    }

    /// Creates an answer for programs.
    pub(super) fn json(text: Vec<u8>) -> Self {
        Self { status: 200, kind: "application/json", text }
    }

    fn into_bytes(self) -> Vec<u8> {
        let Self { status, kind, text } = self;
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let allow = if status == 405 { "Allow: GET\r\n" } else { "" };
        let len = text.len();
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n{allow}Connection: close\r\n\r\n"
        );
        [head.into_bytes(), text].concat()
    }
}

/// Returns the path of a GET; `None` if the request is not whole.
///
/// # Errors
/// It is something else, or too long.
fn path(head: &[u8]) -> Result<Option<String>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < HEAD_MAX_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Answer::words(431, "the request is too long"));
        }
        Err(why) => return Err(Answer::words(400, &format!("this is no HTTP: {why}"))),
    }
    if request.method != Some("GET") {
        return Err(Answer::words(405, "there is only GET"));
    }
    let path = request.path.unwrap_or_default();
    Ok(Some(path.split('?').next().unwrap_or_default().to_owned()))
}

/// How far a connection is.
#[derive(Debug)]
enum Stage {
    /// The request comes.
    Reads(Vec<u8>),
    /// The answer leaves; how much of it has left.
    Writes(Vec<u8>, usize),
    /// The answer has left; how much was read since.
    Leaves(usize),
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    stage: Stage,
    until: Instant,
}

impl Connection {
    fn answer(&mut self, answer: Answer) {
        self.stage = Stage::Writes(answer.into_bytes(), 0);
        self.until = Instant::now() + TIME;
    }

    /// Goes on as far as it can now; returns whether the connection is over.
    fn go_on(&mut self, page: &dyn Fn(&str) -> Answer) -> bool {
        let mut bytes = [0; 4096];
        loop {
            let moved = match &mut self.stage {
                Stage::Reads(head) => {
                    let room = bytes.len().min(HEAD_MAX_BYTES - head.len());
                    let read = self.stream.read(bytes.get_mut(..room).unwrap_or_default());
                    if let Ok(len) = read {
                        head.extend_from_slice(bytes.get(..len).unwrap_or_default());
                        match path(head) {
                            Ok(None) => {}
                            Ok(Some(path)) => self.answer(page(&path)),
                            Err(answer) => self.answer(answer),
                        }
                    }
                    read
                }
                Stage::Writes(answer, written) => {
                    let sent = self.stream.write(answer.get(*written..).unwrap_or_default());
                    *written += sent.as_ref().map_or(0, |len| *len);
                    if *written >= answer.len() {
                        self.stage = Stage::Leaves(0);
                        // What is in the way of that ends the connection.
                        if self.stream.shutdown(Shutdown::Write).is_err() {
                            return true;
                        }
                    }
                    sent
                }
                Stage::Leaves(len) if *len >= UNREAD_MAX_BYTES => return true,
                Stage::Leaves(len) => {
                    let read = self.stream.read(&mut bytes);
                    *len += read.as_ref().map_or(0, |len| *len);
                    read
                }
            };
            match moved {
                // The peer has gone; whoever has asked and waits for its answer has not.
                Ok(0) if !matches!(self.stage, Stage::Writes(..)) => return true,
                Ok(_) => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => return false,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }
}

/// Answers GETs.
#[derive(Debug)]
pub(super) struct Server {
    poll: Poll,
    listener: TcpListener,
    connections: BTreeMap<usize, Connection>,
    next_token: usize,
    /// Time at which accepting is tried again.
    retry: Option<Instant>,
}

impl Server {
    /// Creates a server for a listener.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (poll, mut listener) = (Poll::new()?, TcpListener::from_std(listener));
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let (connections, retry) = Default::default();
        Ok(Self { poll, listener, connections, next_token: LISTENER.0 + 1, retry })
    }

    /// Answers with what `page` returns for the path of a GET, until the process ends.
    ///
    /// # Errors
    /// Those of polling.
    pub(super) fn run(&mut self, page: &dyn Fn(&str) -> Answer) -> io::Result<()> {
        let mut events = Events::with_capacity(CONNECTIONS_MAX + 1);
        loop {
            let times = self.connections.values().map(|connection| connection.until).chain(self.retry);
            let timeout = times.min().map(|at| at.saturating_duration_since(Instant::now()));
            match self.poll.poll(&mut events, timeout) {
                Err(why) if why.kind() != ErrorKind::Interrupted => return Err(why),
                _ => {}
            }
            let now = Instant::now();
            if self.retry.is_some_and(|at| at <= now) || events.iter().any(|event| event.token() == LISTENER)
            {
                self.accept(page);
            }
            for event in &events {
                self.go_on(event.token().0, page);
            }
            self.expire(now, page);
        }
    }

    fn accept(&mut self, page: &dyn Fn(&str) -> Answer) {
        self.retry = None;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.add(stream, page),
                Err(why) if why.kind() == ErrorKind::WouldBlock => return,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.retry = Some(Instant::now() + RETRY);
                    return;
                }
            }
        }
    }

    fn add(&mut self, mut stream: TcpStream, page: &dyn Fn(&str) -> Answer) {
        if self.connections.len() >= CONNECTIONS_MAX
            && let Some((_, mut oldest)) = self.connections.pop_first()
            && matches!(oldest.stage, Stage::Reads(_))
        {
            oldest.answer(Answer::words(503, "too many connections"));
            oldest.go_on(page);
        }
        let token = self.next_token;
        // 2^64 connections are not reached.
        self.next_token += 1;
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(&mut stream, Token(token), interest).is_ok() {
            let (stage, until) = (Stage::Reads(Vec::new()), Instant::now() + TIME);
            self.connections.insert(token, Connection { stream, stage, until });
            self.go_on(token, page);
        }
    }

    fn go_on(&mut self, token: usize, page: &dyn Fn(&str) -> Answer) {
        if self.connections.get_mut(&token).is_some_and(|connection| connection.go_on(page)) {
            self.connections.remove(&token);
        }
    }

    /// Tells those whose time for a request is over, and closes what does not take its answer.
    fn expire(&mut self, now: Instant, page: &dyn Fn(&str) -> Answer) {
        let late = self.connections.iter().filter(|(_, connection)| connection.until <= now);
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            if let Some(connection) = self.connections.get_mut(&token)
                && matches!(connection.stage, Stage::Reads(_))
            {
                connection.answer(Answer::words(408, "the request did not come in time"));
                self.go_on(token, page);
            } else {
                self.connections.remove(&token);
            }
        }
    }
}
