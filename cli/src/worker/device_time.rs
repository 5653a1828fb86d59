//! How the sessions' processes share the emulated GPU's time: the supervisor gives permits to their threads, by the rule of
//! [`hipr_grid::permits`].
//!
//! A process has a socket, over which its threads ask for permits, wait for them and return them. A page that only the supervisor can write
//! says who waits, so that a thread that has a permit keeps it without a system call while nobody else wants one. The supervisor measures
//! how long a permit was away; a process says nothing but whose time it takes, once, before it asks. So whoever takes over a process can
//! take what its tenant's share is and no more, whatever it says and does not say, as far as it executes what was permitted: see SECURITY.md.

use hipr_grid::Gate;
use hipr_grid::permits::{Grant, LEASE, Permits, others_wait};
use hipr_io_shm::{NumberReader, NumberWriter};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tracing::{debug, error};

/// Length of a message in bytes, in both directions.
const MESSAGE_BYTES: usize = 16;

/// What a process says: a kind and a number, then another number, all little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    /// Whose time it takes.
    Name { tenant: u64, weight: u32 },
    /// One more thread waits.
    Ask,
    /// A thread has no work any more.
    Return { permit: u32 },
    /// A thread gives way to others, and waits.
    Renew { permit: u32 },
}

impl Message {
    fn to_bytes(self) -> [u8; MESSAGE_BYTES] {
        let (kind, number, tenant) = match self {
            Self::Name { tenant, weight } => (1, weight, tenant),
            Self::Ask => (2, 0, 0),
            Self::Return { permit } => (3, permit, 0),
            Self::Renew { permit } => (4, permit, 0),
        };
        words(u64::from(number) << 32 | kind, tenant)
    }

    /// Returns `None` for what no process says.
    fn from_bytes(bytes: [u8; MESSAGE_BYTES]) -> Option<Self> {
        let (first, tenant) = numbers(bytes);
        let number = (first >> 32) as u32;
        match first as u32 {
            1 => Some(Self::Name { tenant, weight: number }),
            2 => Some(Self::Ask),
            3 => Some(Self::Return { permit: number }),
            4 => Some(Self::Renew { permit: number }),
            _ => None,
        }
    }
}

fn words(first: u64, second: u64) -> [u8; MESSAGE_BYTES] {
    (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
}

fn numbers(bytes: [u8; MESSAGE_BYTES]) -> (u64, u64) {
    let both = u128::from_le_bytes(bytes);
    (both as u64, (both >> 64) as u64)
}

// ---- the process's side ----------------------------------------------------------------------------------------------

/// What a process has of the supervisor, to let its threads work.
#[derive(Debug)]
pub(super) struct Turnstile {
    socket: OwnedFd,
    /// Who waits.
    waiting: NumberReader,
}

thread_local! {
    /// The permit of this thread, and when it came.
    static HELD: Cell<Option<(Grant, Instant)>> = const { Cell::new(None) };
}

impl Turnstile {
    /// Takes what [`DeviceTime::admit`] has given.
    ///
    /// # Errors
    /// The page is none.
    pub(super) fn new(socket: OwnedFd, page: &OwnedFd) -> io::Result<Self> {
        Ok(Self { socket, waiting: NumberReader::take(page)? })
    }

    /// Says whose time the process takes. Only the first time counts, and only before a thread has asked.
    pub(super) fn name(&self, tenant: u64, weight: u32) {
        self.say(Message::Name { tenant, weight });
    }

    fn say(&self, message: Message) {
        let bytes = message.to_bytes();
        while let Err(Errno::INTR) = send(&self.socket, &bytes, SendFlags::NOSIGNAL) {}
    }

    /// Waits for a permit; `None` if nobody gives any, because the supervisor has ended and this process is about to.
    fn wait(&self) -> Option<Grant> {
        let mut bytes = [0; MESSAGE_BYTES];
        loop {
            match recv(&self.socket, &mut bytes, RecvFlags::empty()) {
                Ok((MESSAGE_BYTES, _)) => {
                    let (process, permit) = numbers(bytes);
                    return Some(Grant { process, permit: permit as u32 });
                }
                Err(Errno::INTR) => {}
                _ => return None,
            }
        }
    }

    fn has_to_go(&self, (grant, since): (Grant, Instant)) -> bool {
        others_wait(self.waiting.get(), grant.process) && since.elapsed() >= LEASE
    }
}

impl Gate for Turnstile {
    fn enter(&self) {
        match HELD.get() {
            Some(held) if !self.has_to_go(held) => return,
            Some((Grant { permit, .. }, _)) => self.say(Message::Renew { permit }),
            None => self.say(Message::Ask),
        }
        HELD.set(self.wait().map(|grant| (grant, Instant::now())));
    }

    fn leave(&self) {
        if let Some((Grant { permit, .. }, _)) = HELD.take() {
            self.say(Message::Return { permit });
        }
    }

    fn others_wait(&self) -> bool {
        HELD.get().is_some_and(|held| self.has_to_go(held))
    }
}

// ---- the supervisor's side -------------------------------------------------------------------------------------------

const FRESH: Token = Token(0);
/// Maximum number of a process's messages that are read before others have their turn.
const TURN_MESSAGES: usize = 64;
/// Interval between checks for permits that were not returned, while somebody waits.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// The thread that gives permits. It ends with the process.
#[derive(Debug)]
pub(super) struct DeviceTime {
    page: OwnedFd,
    fresh: Sender<(usize, OwnedFd)>,
    waker: Waker,
}

/// What the process of a session is given.
#[derive(Debug)]
pub(super) struct Given<'a> {
    pub(super) socket: OwnedFd,
    pub(super) page: &'a OwnedFd,
}

impl DeviceTime {
    /// Starts to give permits for so many threads. With `has_tenants` processes say whose time they take, else each has its own.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn start(threads: usize, has_tenants: bool) -> io::Result<Self> {
        let (number, page) = NumberWriter::make()?;
        let (poll, (fresh, arriving)) = (Poll::new()?, channel());
        let waker = Waker::new(poll.registry(), FRESH)?;
        let mut desk = Desk {
            poll,
            arriving,
            number,
            has_tenants,
            permits: Permits::new(threads),
            sockets: BTreeMap::new(),
            ready: BTreeSet::new(),
            started: Instant::now(),
        };
        desk.show();
        thread::Builder::new().name("device-time".into()).spawn(move || {
            if let Err(why) = desk.run() {
                error!(%why, "the emulated GPU's time is no longer shared by tenants, but as the system divides it among processes");
            }
        })?;
        Ok(Self { page, fresh, waker })
    }

    /// Returns what a session's process needs; `number` is a number that no other has.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn admit(&self, number: u64) -> io::Result<Given<'_>> {
        let (kept, socket) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let number = usize::try_from(number).map_err(io::Error::other)?;
        // If the thread has ended, the process reads that from its socket, and goes on alone.
        if self.fresh.send((number, kept)).is_ok() {
            self.waker.wake()?;
        }
        Ok(Given { socket, page: &self.page })
    }
}

/// The state of the thread that gives permits.
struct Desk {
    poll: Poll,
    arriving: Receiver<(usize, OwnedFd)>,
    number: NumberWriter,
    has_tenants: bool,
    permits: Permits,
    /// By the number of the process, from 1 on, which is its poll token.
    sockets: BTreeMap<usize, OwnedFd>,
    /// Processes whose sockets may have something to read.
    ready: BTreeSet<usize>,
    started: Instant,
}

impl Desk {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        let mut is_over = false;
        while !is_over || !self.sockets.is_empty() {
            let timeout = match (self.ready.is_empty(), self.permits.is_waited_for()) {
                (false, _) => Some(Duration::ZERO),
                (true, true) => Some(CHECK_EVERY),
                (true, false) => None,
            };
            match self.poll.poll(&mut events, timeout) {
                Err(why) if why.kind() != io::ErrorKind::Interrupted => return Err(why),
                _ => {}
            }
            self.ready.extend(events.iter().map(|event| event.token().0).filter(|token| *token != FRESH.0));
            loop {
                match self.arriving.try_recv() {
                    Ok((number, socket)) => self.add(number, socket),
                    Err(why) => {
                        is_over = why == std::sync::mpsc::TryRecvError::Disconnected;
                        break;
                    }
                }
            }
            for process in self.ready.clone() {
                self.listen(process);
            }
            self.permits.expire(self.now_ns());
            while let Some(grant) = self.permits.grant(self.now_ns()) {
                self.give(grant);
            }
            self.show();
        }
        Ok(())
    }

    fn show(&self) {
        self.number.set(self.permits.waiting());
    }

    fn add(&mut self, process: usize, socket: OwnedFd) {
        let fd = socket.as_raw_fd();
        match self.poll.registry().register(&mut SourceFd(&fd), Token(process), Interest::READABLE) {
            Ok(()) => {
                self.permits.add(process as u64);
                self.sockets.insert(process, socket);
                self.ready.insert(process);
            }
            Err(why) => debug!(%why, process, "a session's process gets no permits"),
        }
    }

    /// Reads what a process says, for a turn.
    fn listen(&mut self, process: usize) {
        for _ in 0..TURN_MESSAGES {
            let Some(socket) = self.sockets.get(&process) else {
                self.ready.remove(&process);
                return;
            };
            let mut bytes = [0; MESSAGE_BYTES];
            match recv(socket, &mut bytes, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, MESSAGE_BYTES)) => self.handle(process as u64, Message::from_bytes(bytes)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.ready.remove(&process);
                    return;
                }
                // Its end, or what no process says.
                Ok(_) | Err(_) => self.end(process),
            }
        }
    }

    fn handle(&mut self, process: u64, message: Option<Message>) {
        let now_ns = self.now_ns();
        match message {
            Some(Message::Name { tenant, weight }) if self.has_tenants => {
                self.permits.name(process, tenant, weight);
            }
            Some(Message::Ask) => self.permits.ask(process, now_ns),
            Some(Message::Return { permit }) => {
                self.permits.take_back(Grant { process, permit }, false, now_ns);
            }
            Some(Message::Renew { permit }) => {
                self.permits.take_back(Grant { process, permit }, true, now_ns);
            }
            Some(Message::Name { .. }) | None => {}
        }
    }

    fn give(&mut self, grant: Grant) {
        let Ok(process) = usize::try_from(grant.process) else { return };
        let bytes = words(grant.process, grant.permit.into());
        let Some(socket) = self.sockets.get(&process) else { return };
        // A process has room for all permits that it can wait for, so one that has none does not read them.
        if send(socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_err() {
            self.end(process);
        }
    }

    fn end(&mut self, process: usize) {
        self.ready.remove(&process);
        // Closing the socket deregisters it.
        if self.sockets.remove(&process).is_some() {
            self.permits.end(process as u64, self.now_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turnstile(device_time: &DeviceTime, number: u64) -> Turnstile {
        let Given { socket, page } = device_time.admit(number).expect("a socket");
        Turnstile::new(socket, page).expect("a page")
    }

    #[test]
    fn messages_come_back() {
        for message in [
            Message::Name { tenant: u64::MAX - 1, weight: u32::MAX - 2 },
            Message::Ask,
            Message::Return { permit: u32::MAX - 3 },
            Message::Renew { permit: 4 },
        ] {
            assert_eq!(Message::from_bytes(message.to_bytes()), Some(message));
        }
        assert_eq!(Message::from_bytes([0xff; MESSAGE_BYTES]), None);
    }

    /// One keeps what it gets, one says what makes no sense, one does not take what it asks for: all of them together hold up nobody.
    #[test]
    fn a_process_that_somebody_has_taken_over_holds_up_nobody() {
        let device_time = DeviceTime::start(1, true).expect("a thread");
        let keeps = turnstile(&device_time, 1);
        keeps.name(7, 100);
        keeps.say(Message::Ask);
        assert_eq!(keeps.wait().map(|grant| grant.process), Some(1));
        keeps.say(Message::Ask);
        let asks = turnstile(&device_time, 2);
        (0..100_000).for_each(|_| asks.say(Message::Ask));
        let babbles = turnstile(&device_time, 3);
        for length in 0..40 {
            let _ = send(&babbles.socket, &[0x5a; 40][..length], SendFlags::NOSIGNAL);
        }
        let honest = turnstile(&device_time, 4);
        honest.name(8, 1);
        for _ in 0..5 {
            honest.enter();
            assert_eq!(HELD.get().map(|(grant, _)| grant.process), Some(4));
            honest.leave();
        }
        drop(device_time);
        honest.enter();
        assert_eq!(
            HELD.get().map(|(grant, _)| grant.process),
            Some(4),
            "who has a socket is served to the end"
        );
    }

    #[test]
    fn without_tenants_no_process_has_a_weight() {
        let device_time = DeviceTime::start(1, false).expect("a thread");
        let (first, second) = (turnstile(&device_time, 1), turnstile(&device_time, 2));
        first.name(7, 100);
        first.enter();
        second.say(Message::Ask);
        while !others_wait(first.waiting.get(), 1) {
            thread::yield_now();
        }
        while !first.others_wait() {
            thread::yield_now();
        }
        let (held, _) = HELD.get().expect("a permit");
        // With its weight it would have had many leases more.
        first.say(Message::Renew { permit: held.permit });
        assert_eq!(second.wait().map(|grant| grant.process), Some(2));
    }
}
