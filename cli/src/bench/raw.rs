//! The limit of the machine: how fast plain blocking sockets and memory move the same bytes.

use super::latency::Latencies;
use super::place::Core;
use super::socket::{self, Connection};
use hipr_proto::Header;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Size of a synchronize in bytes; its answer also has an error code.
const PING_BYTES: usize = Header::SIZE;
const PONG_BYTES: usize = Header::SIZE + 4;
/// Bytes that both ends read or write at a time. This size is the fastest, because it fits into the cache; sockets are a
/// third slower with a long copy in one call.
const PEER_CHUNK_BYTES: usize = 512 << 10;
const CHUNK_BYTES: usize = 256 << 10;

/// Size of a command to the other end: a kind and a number.
const COMMAND_BYTES: usize = 16;
const ANSWER_PINGS: u64 = 1;
const RECEIVE: u64 = 2;
const SEND: u64 = 3;

fn command(kind: u64, number: u64) -> [u8; COMMAND_BYTES] {
    let mut bytes = [0; COMMAND_BYTES];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&kind.to_le_bytes());
    second.copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Serves the other end of a connection.
pub(crate) fn serve(mut connection: Connection) -> io::Result<()> {
    let mut chunk = vec![0; PEER_CHUNK_BYTES];
    loop {
        let [mut kind, mut number] = [[0; 8]; 2];
        connection.read_exact(&mut kind)?;
        connection.read_exact(&mut number)?;
        let mut left = u64::from_le_bytes(number);
        match u64::from_le_bytes(kind) {
            ANSWER_PINGS => loop {
                let mut ping = [0; PING_BYTES];
                connection.read_exact(&mut ping)?;
                connection.write_all(&[0; PONG_BYTES])?;
            },
            RECEIVE => {
                while left > 0 {
                    let n = connection.read(part(&mut chunk, left))?;
                    if n == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    left -= n as u64;
                }
                connection.write_all(&[0])?;
            }
            SEND => {
                while left > 0 {
                    let piece = part(&mut chunk, left);
                    connection.write_all(piece)?;
                    left -= piece.len() as u64;
                }
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn part(chunk: &mut [u8], left: u64) -> &mut [u8] {
    let len = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
    chunk.split_at_mut(len).0
}

/// The measuring end of a connection.
pub(crate) struct Raw(Connection);

impl Raw {
    /// Connects to a process that runs [`serve`].
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        socket::connect(address)
            .map(Self)
            .map_err(|why| format!("cannot connect to the benchmark's peer at {address}: {why}"))
    }

    /// Makes the other end answer every [`ping`](Self::ping); the connection can do nothing else afterwards.
    pub(crate) fn answer_pings(&mut self) -> Result<(), String> {
        self.0.write_all(&command(ANSWER_PINGS, 0)).map_err(broken)
    }

    /// Makes one round trip of the size of a synchronize.
    pub(crate) fn ping(&mut self) -> Result<(), String> {
        let mut pong = [0; PONG_BYTES];
        self.0.write_all(&[0; PING_BYTES]).and_then(|()| self.0.read_exact(&mut pong)).map_err(broken)
    }

    /// Sends `count` bytes from `buffer`, repeating it, and waits until they are received.
    pub(crate) fn send(&mut self, buffer: &[u8], count: u64) -> Result<(), String> {
        let len = buffer.len() as u64 * count;
        self.0.write_all(&command(RECEIVE, len)).map_err(broken)?;
        for _ in 0..count {
            buffer.chunks(CHUNK_BYTES).try_for_each(|chunk| self.0.write_all(chunk)).map_err(broken)?;
        }
        self.0.read_exact(&mut [0]).map_err(broken)
    }

    /// Receives as many bytes as `buffer` holds.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        self.0.write_all(&command(SEND, buffer.len() as u64)).map_err(broken)?;
        buffer.chunks_mut(CHUNK_BYTES).try_for_each(|chunk| self.0.read_exact(chunk)).map_err(broken)
    }
}

fn broken(why: io::Error) -> String {
    format!("lost the connection to the benchmark's peer: {why}")
}

/// Copies in memory.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(black_box(from));
    black_box(to);
}

/// Measures round trips of a word between two threads that spin, the other one on `core` or on any: the limit of shared
/// memory.
pub(crate) fn word_round_trips(time: Duration, core: Option<Core>) -> Result<Latencies, String> {
    /// Value that ends the other thread.
    const END: u32 = u32::MAX;
    let (ping, pong) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            // Where it cannot be there it is slower, and the limit is too low: that is seen.
            let _ = core.map(Core::take);
            let mut last = 0;
            while last != END {
                last = changed(&ping, last);
                pong.store(last, Ordering::Release);
            }
        });
        let mut number = 0;
        let latencies = Latencies::of_calls(time, || {
            let last = number;
            number = (number + 1) % END;
            ping.store(number, Ordering::Release);
            changed(&pong, last);
            Ok(())
        });
        ping.store(END, Ordering::Release);
        latencies
    })
}

/// Waits until `word` is no longer `last`, spinning for as long as a round trip between two cores takes before it yields.
fn changed(word: &AtomicU32, last: u32) -> u32 {
    const SPINS: u32 = 10_000;
    loop {
        for _ in 0..SPINS {
            let now = word.load(Ordering::Acquire);
            if now != last {
                return now;
            }
            std::hint::spin_loop();
        }
        thread::yield_now();
    }
}

/// Repeats `work`, which moves `len_bytes`, for about `time`; returns bytes per second.
pub(crate) fn bytes_per_second(
    time: Duration,
    len_bytes: usize,
    mut work: impl FnMut() -> Result<(), String>,
) -> Result<f64, String> {
    let start = Instant::now();
    let mut moved = 0.0;
    loop {
        work()?;
        moved += len_bytes as f64;
        let elapsed = start.elapsed();
        if elapsed >= time {
            return Ok(moved / elapsed.as_secs_f64());
        }
    }
}
