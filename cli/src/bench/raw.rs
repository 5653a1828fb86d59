//! The raw limit: what plain blocking sockets do with the same bytes; and what memory does.

use super::latency::Latencies;
use super::peer::{self, Connection};
use super::place::Core;
use hipr_proto::Header;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a synchronize and of its answer, which has an error code behind its header.
const PING_BYTES: usize = Header::SIZE;
const PONG_BYTES: usize = Header::SIZE + 4;
/// Bytes that the other end and this end read or write at a time: what is fastest, because the cache holds them. With the
/// whole of a long copy in one call sockets carry a third less.
const PEER_CHUNK_BYTES: usize = 512 << 10;
const CHUNK_BYTES: usize = 256 << 10;

/// What the other end is asked for: a kind and a number.
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

/// The other end.
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

/// This end.
pub(crate) struct Raw(Connection);

impl Raw {
    /// Connects to a [`serve`].
    pub(crate) fn connect(address: &str) -> Result<Self, String> {
        peer::connect(address)
            .map(Self)
            .map_err(|why| format!("cannot reach the benchmark's peer at {address}: {why}"))
    }

    /// Round trips of the bytes of a synchronize. Afterwards the connection can do nothing else.
    pub(crate) fn answer_pings(&mut self) -> Result<(), String> {
        self.0.write_all(&command(ANSWER_PINGS, 0)).map_err(broken)
    }

    /// One round trip.
    pub(crate) fn ping(&mut self) -> Result<(), String> {
        let mut pong = [0; PONG_BYTES];
        self.0.write_all(&[0; PING_BYTES]).and_then(|()| self.0.read_exact(&mut pong)).map_err(broken)
    }

    /// Sends so many bytes from `buffer`, again and again, and waits until they were received.
    pub(crate) fn send(&mut self, buffer: &[u8], count: u64) -> Result<(), String> {
        let len = buffer.len() as u64 * count;
        self.0.write_all(&command(RECEIVE, len)).map_err(broken)?;
        for _ in 0..count {
            buffer.chunks(CHUNK_BYTES).try_for_each(|chunk| self.0.write_all(chunk)).map_err(broken)?;
        }
        self.0.read_exact(&mut [0]).map_err(broken)
    }

    /// Receives as many bytes as `buffer` has.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<(), String> {
        self.0.write_all(&command(SEND, buffer.len() as u64)).map_err(broken)?;
        buffer.chunks_mut(CHUNK_BYTES).try_for_each(|chunk| self.0.read_exact(chunk)).map_err(broken)
    }
}

fn broken(why: io::Error) -> String {
    format!("the benchmark's peer is gone: {why}")
}

/// One copy in memory.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(black_box(from));
    black_box(to);
}

/// Round trips of a word between two threads that are awake, the other one on `core` or on any: what shared memory allows.
pub(crate) fn word_round_trips(time: Duration, core: Option<Core>) -> Result<Latencies, String> {
    /// Its value says that no more comes.
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

/// Waits until `word` is no more `last`, without giving the core away as long as a round trip takes on two.
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

/// Repeats `work`, which moves `len_bytes`, for about `time`: bytes a second.
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
