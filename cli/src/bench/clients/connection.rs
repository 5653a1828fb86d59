//! A non-blocking connection of a client, one of many on a thread.

use super::mix::{COPY_BYTES, Mix, Owned, Protocol};
use crate::bench::program::{KERNEL, KERNEL_NAME};
use crate::bench::socket::unix_path;
use hipr_io::gather;
use hipr_proto::{Answer, HipError, Limits, Op, Outbox, ReplyMode, op};
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// A TCP or unix socket.
pub(super) trait Socket: Read + Write + Source + Send {}

impl<T: Read + Write + Source + Send> Socket for T {}

/// A call that was answered.
pub(super) struct Done {
    pub(super) latency: Duration,
    /// Requests that it took, including the unanswered ones before it.
    pub(super) requests: u64,
}

/// One client session.
pub(super) struct Client {
    pub(super) socket: Box<dyn Socket>,
    protocol: Protocol,
    outbox: Outbox<&'static [u8]>,
    mix: Mix,
    /// Calls that wait for their answers: when they were made, and how many requests they took.
    under_way: VecDeque<(Instant, u64)>,
}

impl Client {
    /// Connects, opens a session and creates what the calls need.
    pub(super) fn connect(address: &str, seed: u64) -> io::Result<Self> {
        let mut protocol = Protocol::new(Limits::default());
        let (socket, owned): (Box<dyn Socket>, _) = match unix_path(address) {
            Some(path) => {
                let mut stream = std::os::unix::net::UnixStream::connect(path)?;
                let owned = prepare(&mut stream, &mut protocol)?;
                stream.set_nonblocking(true)?;
                (Box::new(UnixStream::from_std(stream)), owned)
            }
            None => {
                let mut stream = std::net::TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                let owned = prepare(&mut stream, &mut protocol)?;
                stream.set_nonblocking(true)?;
                (Box::new(TcpStream::from_std(stream)), owned)
            }
        };
        let mix = Mix::new(&owned, seed);
        Ok(Self { socket, protocol, outbox: Outbox::new(), mix, under_way: VecDeque::new() })
    }

    /// Queues the next call; [`transmit`](Self::transmit) sends it.
    pub(super) fn call(&mut self, now: Instant) -> io::Result<()> {
        let (_, requests) = self.mix.call(&mut self.protocol).map_err(io::Error::other)?;
        self.under_way.push_back((now, requests));
        // What is gathered has a limit.
        self.protocol.poll_transmit(&mut self.outbox);
        Ok(())
    }

    /// Writes as much as the socket accepts.
    pub(super) fn transmit(&mut self) -> io::Result<()> {
        while !self.outbox.is_empty() {
            match write(&mut self.socket, &mut self.outbox) {
                Ok(()) => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Reads the answers that have arrived; returns their number.
    pub(super) fn receive(&mut self, buffer: &mut [u8], mut done: impl FnMut(Done)) -> io::Result<usize> {
        let mut answered = 0;
        loop {
            let n = match self.socket.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => n,
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(answered),
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                Err(why) => return Err(why),
            };
            let mut input = buffer.get(..n).unwrap_or_default();
            loop {
                let is_whole = match self.protocol.handle_input(&mut input).map_err(io::Error::other)? {
                    Answer::NeedMore => break,
                    Answer::Reply(reply) => {
                        refuse(reply.error)?;
                        reply.inline == 0
                    }
                    Answer::Data { last, .. } => last,
                    Answer::Notification(_) => continue,
                };
                if is_whole && let Some((start, requests)) = self.under_way.pop_front() {
                    done(Done { latency: start.elapsed(), requests });
                    answered += 1;
                }
            }
            if n < buffer.len() {
                // Nothing was left; what comes now is a new event.
                return Ok(answered);
            }
        }
    }
}

fn refuse(error: Option<HipError>) -> io::Result<()> {
    // An event that was recorded just now may not have happened yet.
    match error.filter(|error| *error != HipError::NOT_READY) {
        None => Ok(()),
        Some(error) => Err(io::Error::other(error)),
    }
}

fn write(socket: &mut dyn Write, outbox: &mut Outbox<&'static [u8]>) -> io::Result<()> {
    match gather(outbox.slices(), |slices| socket.write_vectored(slices)) {
        Ok(0) => Err(ErrorKind::WriteZero.into()),
        Ok(n) => {
            outbox.advance(n);
            Ok(())
        }
        Err(why) if why.kind() == ErrorKind::Interrupted => Ok(()),
        Err(why) => Err(why),
    }
}

/// Opens the session and creates what the calls need, waiting for each answer.
fn prepare(stream: &mut (impl Read + Write), protocol: &mut Protocol) -> io::Result<Owned> {
    ask(stream, protocol, &op::Init {}, &[], None)?;
    let load = op::ModuleLoadData { data_size: KERNEL.len() as u64 };
    let module = ask(stream, protocol, &load, &[], Some(KERNEL))?.module;
    let mut name = Vec::new();
    op::put_name(KERNEL_NAME, &mut name).map_err(io::Error::other)?;
    let function = ask(stream, protocol, &op::ModuleGetFunction { module }, &name, None)?.function;
    let malloc = op::Malloc { size: COPY_BYTES as u64, flags: 0 };
    let buffer = ask(stream, protocol, &malloc, &[], None)?.device_ptr;
    let event = ask(stream, protocol, &op::EventCreate { flags: 0 }, &[], None)?.event;
    Ok(Owned { function, buffer, event })
}

fn ask<O: Op>(
    stream: &mut (impl Read + Write),
    protocol: &mut Protocol,
    op: &O,
    tail: &[u8],
    inline: Option<&'static [u8]>,
) -> io::Result<O::Reply> {
    let call = protocol.request_with(op, tail, inline, ReplyMode::Always).map_err(io::Error::other)?;
    let mut outbox = Outbox::new();
    protocol.poll_transmit(&mut outbox);
    while !outbox.is_empty() {
        write(stream, &mut outbox)?;
    }
    debug_assert!(call.is_some());
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut input = buffer.get(..n).unwrap_or_default();
        if let Answer::Reply(reply) = protocol.handle_input(&mut input).map_err(io::Error::other)? {
            return reply.read::<O>().map_err(io::Error::other)?.map_err(io::Error::other);
        }
    }
}
