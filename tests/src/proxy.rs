//! A TCP proxy that adds delay and counts how often the conversation changes direction.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The traffic through a [`Proxy`].
#[derive(Debug, Default)]
pub struct Traffic {
    to_worker_bytes: AtomicU64,
    to_client_bytes: AtomicU64,
    turns: AtomicU64,
    /// Whether the last bytes went to the worker.
    asking: Mutex<bool>,
}

impl Traffic {
    /// Returns the number of bytes from the client to the worker.
    pub fn to_worker_bytes(&self) -> u64 {
        self.to_worker_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes from the worker to the client.
    pub fn to_client_bytes(&self) -> u64 {
        self.to_client_bytes.load(Ordering::Relaxed)
    }

    /// Returns how often an answer of the worker followed something that the client had sent: the round trips of a client
    /// that waits for each answer.
    pub fn round_trips(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    fn note(&self, to_worker: bool, len: usize) {
        let counter = if to_worker { &self.to_worker_bytes } else { &self.to_client_bytes };
        counter.fetch_add(len as u64, Ordering::Relaxed);
        let mut asking = self.asking.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *asking && !to_worker {
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        *asking = to_worker;
    }
}

/// A proxy on the loopback interface. Lives as long as the process.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    traffic: Arc<Traffic>,
}

impl Proxy {
    /// Starts a proxy that forwards connections to `worker`, with each byte delayed by `delay` in each direction.
    pub fn start(worker: SocketAddr, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let traffic = Arc::new(Traffic::default());
        let counted = traffic.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(worker) else { continue };
                let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
                for (from, to, to_worker) in [(&client, &upstream, true), (&upstream, &client, false)] {
                    if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
                        carry(from, to, delay, to_worker, counted.clone());
                    }
                }
            }
        });
        Ok(Self { address, traffic })
    }

    /// Returns the address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the traffic so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

/// Forwards bytes with a delay: one thread reads and notes the time, another writes when the delay is over, so that the delay
/// does not throttle.
fn carry(mut from: TcpStream, to: TcpStream, delay: Duration, to_worker: bool, traffic: Arc<Traffic>) {
    let (sender, receiver): (Sender<(Instant, Vec<u8>)>, _) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 256 * 1024];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            traffic.note(to_worker, len);
            if sender.send((Instant::now() + delay, buffer[..len].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || deliver(to, &receiver));
}

fn deliver(mut to: TcpStream, receiver: &Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
