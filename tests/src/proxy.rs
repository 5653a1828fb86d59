//! A TCP proxy between client and worker: delays, limits the bandwidth, and counts what passes.

mod carrier;
mod link;
mod traffic;

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::items::next_random;

pub use link::{Cuts, Direction, Link};
pub use traffic::{Conversation, Flight, Share, Traffic};

/// What is called with each flight that lands.
type Told = Box<dyn Fn(&Flight) + Send + Sync>;

/// A proxy on the loopback interface; it takes no more connections once it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepts: Option<JoinHandle<()>>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Shared {
    counts: Mutex<Counts>,
    one_has_ended: Condvar,
    ends: AtomicBool,
    told: Option<Told>,
    /// Number of connections that were cut.
    cuts: AtomicU64,
    /// Whether connections are closed as soon as they are made.
    refuses: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    /// State of the numbers that look random.
    random: Mutex<u64>,
}

/// Bytes behind which the first connection is cut at the earliest, so that a session begins.
const FIRST_BYTES: u64 = 20_000;
/// State of the random numbers before the first connection.
const FIRST_RANDOM: u64 = 1;

#[derive(Default)]
struct Counts {
    traffic: Traffic,
    /// Connections that are being carried.
    open: usize,
}

impl Shared {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn note_open(&self, sides: &[&TcpStream]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|socket| socket.peer_addr().is_ok());
        open.extend(sides.iter().filter_map(|side| side.try_clone().ok()));
    }

    /// Draws the number of bytes behind which a connection is cut.
    fn bytes_within(&self, most: u32) -> u64 {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = *random == FIRST_RANDOM;
        let bits = 4 + next_random(&mut random) % u64::from(most.saturating_sub(3).max(1));
        let bytes = next_random(&mut random) % (1 << bits);
        if is_first { FIRST_BYTES + bytes } else { bytes }
    }
}

impl Proxy {
    /// Starts a proxy that carries connections to `worker` over a link each.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(worker: SocketAddr, link: Link) -> io::Result<Self> {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), worker, link, None)
    }

    /// Starts a proxy that listens at `address` and calls `told` with each flight that lands.
    ///
    /// # Errors
    /// It cannot listen there.
    pub fn listen(
        address: SocketAddr,
        worker: SocketAddr,
        link: Link,
        told: Option<Told>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            counts: Mutex::default(),
            one_has_ended: Condvar::new(),
            ends: AtomicBool::new(false),
            told,
            cuts: AtomicU64::new(0),
            refuses: AtomicBool::new(false),
            open: Mutex::default(),
            random: Mutex::new(FIRST_RANDOM),
        });
        let accepting = Arc::clone(&shared);
        let accepts = thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.ends.load(Ordering::Relaxed) {
                    return;
                }
                // A client whose worker is gone is dropped, as by the worker's machine.
                let Ok(worker) = TcpStream::connect(worker) else { continue };
                if accepting.refuses.load(Ordering::Relaxed) {
                    continue;
                }
                accepting.counts().open += 1;
                let shared = Arc::clone(&accepting);
                thread::spawn(move || carry(&client, &worker, link, &shared));
            }
        });
        Ok(Self { address, shared, accepts: Some(accepts) })
    }

    /// Returns the address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of connections that were cut because of [`Link::cuts`].
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Relaxed)
    }

    /// Sets whether connections are closed as soon as they are made.
    pub fn set_refuses(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::Relaxed);
    }

    /// Cuts all connections.
    pub fn cut_all(&self) {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in open.drain(..) {
            // One that has ended cannot be cut.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns the traffic so far. What a client has received is counted in it.
    pub fn traffic(&self) -> Traffic {
        self.shared.counts().traffic.clone()
    }

    /// Waits until no connection is open and returns all traffic; returns None if some is still open after `timeout`.
    pub fn settled(&self, timeout: Duration) -> Option<Traffic> {
        let waited = self
            .shared
            .one_has_ended
            .wait_timeout_while(self.shared.counts(), timeout, |counts| counts.open > 0);
        let (counts, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| counts.traffic.clone())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts; if nobody can connect, nobody will.
        if TcpStream::connect(self.address).is_ok()
            && let Some(accepts) = self.accepts.take()
        {
            let _ = accepts.join();
        }
    }
}

fn carry(client: &TcpStream, worker: &TcpStream, link: Link, shared: &Shared) {
    let mut counted = Counted { conversation: Conversation::default(), shared };
    shared.note_open(&[client, worker]);
    let (at, left_bytes) = match link.cuts {
        None => (None, None),
        Some(Cuts::After(age)) => (Some(Instant::now() + age), None),
        Some(Cuts::Within(most)) => (None, Some(shared.bytes_within(most))),
    };
    let mut knife = carrier::Knife { at, left_bytes, has_cut: false };
    // A broken connection ends as it does without a proxy: both sides see that it is closed.
    let _ = carrier::carry(client, worker, link, &mut counted, &mut knife);
    shared.cuts.fetch_add(u64::from(knife.has_cut), Ordering::Relaxed);
    for side in [client, worker] {
        // Copies of them may be noted.
        let _ = side.shutdown(Shutdown::Both);
    }
    shared.counts().open -= 1;
    shared.one_has_ended.notify_all();
}

/// A connection whose traffic is added to that of the proxy.
struct Counted<'a> {
    conversation: Conversation,
    shared: &'a Shared,
}

impl carrier::Watch for Counted<'_> {
    fn sent(&mut self, bytes: &[u8]) {
        self.conversation.sent(bytes, &mut self.shared.counts().traffic);
    }

    fn client_ended(&mut self) {
        self.conversation.client_ended();
    }

    fn deliver(
        &mut self,
        bytes: &[u8],
        write: &mut dyn FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        // Locked before the bytes can be seen: who has received them finds them counted.
        let mut counts = self.shared.counts();
        let len = write(bytes)?;
        let landed = self.conversation.delivered(&bytes[..len], &mut counts.traffic);
        drop(counts);
        if let (Some(flight), Some(told)) = (landed, &self.shared.told) {
            told(&flight);
        }
        Ok(len)
    }
}
