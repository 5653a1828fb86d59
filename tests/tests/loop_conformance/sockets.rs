//! Runs a plan with a worker in this process and clients on real sockets.

#[path = "bridge.rs"]
mod bridge;

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hipr_testkit::invariants::Violation;
use hipr_testkit::worker_world::{Leave, Peer, Plan, Stage, Transcript};
use hipr_worker::device::script::{Live, Script};
use hipr_worker::{Address, Config, DispatchOn, Handle, Io, Worker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockAddr, Socket, Type};

/// Timeout that is only reached by something that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client on a socket.
struct Client<'p> {
    peer: Peer<'p>,
    stream: Option<Socket>,
    /// Whether the last write would have blocked.
    blocked: bool,
    half_closed: bool,
    /// Whether writing failed; what has arrived can still be read.
    deaf: bool,
}

fn bind(plan: &Plan, io: Io, dispatch: DispatchOn, listen: &Address) -> io::Result<(Handle, Script)> {
    let script = plan.device();
    let mut config = Config::new(Arc::new(script.clone()));
    config.listen = listen.clone();
    config.io = io;
    config.dispatch = dispatch;
    config.limits = plan.io.clone();
    config.session = plan.session.clone();
    Ok((Worker::bind(config)?.spawn()?, script))
}

/// Checks that this event loop is available for this kind of socket.
pub(crate) fn probe(io: Io, listen: &Address) -> io::Result<()> {
    let (worker, _) = bind(&Plan::default(), io, DispatchOn::Auto, listen)?;
    worker.stop();
    worker.join()
}

/// Runs a plan and returns its transcript.
pub(crate) fn run(
    plan: &Plan,
    io: Io,
    dispatch: DispatchOn,
    listen: &Address,
) -> Result<Transcript, Violation> {
    let (worker, script) = bind(plan, io, dispatch, listen).expect("a worker with this loop");
    let mut clients: Vec<Client<'_>> =
        plan.clients.iter().map(|client| Client::new(Peer::new(client))).collect();
    let (mut connected, mut stopped) = (0, false);
    let mut last_moved = Instant::now();
    while connected < clients.len() || !clients.iter().all(|client| client.peer.is_done()) {
        let mut moved = false;
        let is_open = |at: usize| clients.get(at).is_none_or(|client| client.peer.stage() > Stage::Opening);
        if connected < clients.len() && connected.checked_sub(1).is_none_or(is_open) {
            clients[connected].connect(&worker).expect("the worker listens");
            connected += 1;
            moved = true;
        }
        let stages: Vec<Stage> = clients.iter().map(|client| client.peer.stage()).collect();
        for client in &mut clients {
            moved |= client.go_on(&stages);
            if client.peer.take_stop() && !stopped {
                worker.stop();
                stopped = true;
            }
        }
        if moved {
            last_moved = Instant::now();
        } else if last_moved.elapsed() < PATIENCE {
            wait(&clients);
        } else {
            let left: Vec<usize> = (0..clients.len()).filter(|at| !clients[*at].peer.is_done()).collect();
            return Err(violation("world_does_not_stand_still", format!("clients {left:?} are not done")));
        }
    }
    await_release(&worker, &script, stopped)?;
    let seen = clients.into_iter().map(|client| client.peer.into_seen()).collect::<Result<_, _>>();
    plan.transcript(seen.map_err(|why| violation("worker_speaks_the_protocol", why))?, &script)
}

fn violation(invariant: &'static str, what: String) -> Violation {
    Violation { invariant, call: None, what }
}

/// Waits until something can be read or written.
fn wait(clients: &[Client<'_>]) {
    /// Maximum time of one wait, after which the timeout is checked.
    const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
    let interest = |client: &Client<'_>| {
        let read = if client.peer.reads(client.blocked) { PollFlags::IN } else { PollFlags::empty() };
        if client.blocked { read | PollFlags::OUT } else { read }
    };
    let mut fds: Vec<PollFd<'_>> = clients
        .iter()
        .filter(|client| !client.peer.is_done() && !interest(client).is_empty())
        .filter_map(|client| client.stream.as_ref().map(|stream| PollFd::new(stream, interest(client))))
        .collect();
    poll(&mut fds, Some(&LOOK)).expect("sockets can be polled");
}

/// Waits until the worker holds nothing of any client, then stops it.
fn await_release(worker: &Handle, script: &Script, stopped: bool) -> Result<(), Violation> {
    let start = Instant::now();
    while worker.stats().io().connections() > 0 || script.live() != Live::default() {
        if start.elapsed() > PATIENCE {
            let what = format!("{:?}, {:?}, stopped: {stopped}", script.live(), worker.stats().io());
            return Err(violation("everything_is_released", what));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn connected(domain: Domain, address: &SockAddr) -> io::Result<Socket> {
    let stream = Socket::new(domain, Type::STREAM, None)?;
    stream.connect(address)?;
    Ok(stream)
}

impl<'p> Client<'p> {
    fn new(peer: Peer<'p>) -> Self {
        Self { peer, stream: None, blocked: false, half_closed: false, deaf: false }
    }

    fn connect(&mut self, worker: &Handle) -> io::Result<()> {
        let stream = match worker.local_addr() {
            Address::Unix(path) => connected(Domain::UNIX, &SockAddr::unix(path)?)?,
            Address::Shm(path) => bridge::connect(&path)?,
            address @ (Address::Tcp(_) | Address::Secured(_)) => {
                let stream = connected(Domain::IPV4, &address.tcp().expect("numbers").into())?;
                stream.set_tcp_nodelay(true)?;
                stream
            }
        };
        stream.set_nonblocking(true)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Does everything that the client can do now; returns false if that is nothing.
    fn go_on(&mut self, stages: &[Stage]) -> bool {
        if self.peer.is_done() || self.stream.is_none() {
            return false;
        }
        let mut moved = self.peer.go_on(stages);
        moved |= self.write();
        moved |= self.read();
        self.leave() || moved
    }

    fn write(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let mut moved = false;
        self.blocked = false;
        while !self.peer.output().is_empty() && !self.blocked {
            let bytes = self.peer.output();
            match stream.write(bytes) {
                _ if self.deaf => self.peer.advance(bytes.len()),
                Ok(n) => self.peer.advance(n),
                Err(why) if why.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    break;
                }
                Err(_) => self.deaf = true,
            }
            moved = true;
        }
        moved
    }

    fn read(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        if !self.peer.reads(self.blocked) {
            return false;
        }
        let mut buffer = [0; 64 << 10];
        match stream.read(&mut buffer) {
            Ok(0) => self.peer.handle_end(),
            Ok(n) => self.peer.handle_input(&buffer[..n]),
            Err(why) if why.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => self.peer.handle_end(),
        }
        if self.peer.is_done() {
            self.stream = None;
        }
        true
    }

    /// Closes the connection, or one direction, as the plan says.
    fn leave(&mut self) -> bool {
        let Some(stream) = &self.stream else { return false };
        match self.peer.leave(self.blocked) {
            Leave::No => return false,
            Leave::HalfClose if self.half_closed => return false,
            Leave::HalfClose => {
                self.half_closed = true;
                // It may be gone already, which reading tells.
                let _ = stream.shutdown(Shutdown::Write);
                return true;
            }
            Leave::Close => {}
            Leave::Reset => {
                // A unix socket has no such thing: it is closed.
                stream.set_linger(Some(Duration::ZERO)).expect("a socket has the option")
            }
        }
        self.stream = None;
        self.peer.handle_left();
        true
    }
}
