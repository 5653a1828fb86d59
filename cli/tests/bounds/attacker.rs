//! A worker under attack: the worker, the attacking session, and somebody who is served beside it.

use hipr_proto::op;
pub(crate) use hipr_tests::attack::request;
use hipr_tests::{Buffer, Gpu, WireClient, WorkerProcess, args, eventually};
use rustix::net::sockopt::set_socket_linger;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
pub(crate) static KERNELS: &[u8] = include_bytes!("kernels.co");

/// The memory that the attacked workers allow a session.
pub(crate) const MEMORY_MAX: u64 = 64 << 20;
/// The memory that a worker may need besides for a session: for requests and replies on their way, for commands, and what its
/// allocator keeps.
pub(crate) const BESIDES: u64 = 64 << 20;
/// Round trips of the bystander in which nothing of an attack is taken that will not be taken before something else happens.
const STILL: u32 = 100;

/// A worker with the limits of the attacks.
pub(crate) fn worker(options: &[&str]) -> WorkerProcess {
    let limits = ["--device", "sim", "--memory-max", "64M", "--handles-max", "1000"];
    WorkerProcess::start_logged(Path::new(HIPR), &[&limits, options].concat())
}

/// Returns workers with the two event loops.
pub(crate) fn loops() -> [WorkerProcess; 2] {
    loops_with(&[])
}

/// Returns workers with the two event loops and these options.
pub(crate) fn loops_with(options: &[&str]) -> [WorkerProcess; 2] {
    ["mio", "uring"].map(|io| worker(&[&["--io", io], options].concat()))
}

/// Starts a worker with the device `hip` in front of another one.
pub(crate) fn front(back: &WorkerProcess, isolation: &str) -> WorkerProcess {
    WorkerProcess::start_in_front(Path::new(HIPR), back, isolation)
}

/// An attacking session, and what belongs to it.
pub(crate) struct Attack<'a> {
    pub(crate) worker: &'a WorkerProcess,
    pub(crate) gpu: Gpu,
    /// 0, on which the endless kernels wait.
    pub(crate) stop: Buffer<u32>,
    bystander: WireClient,
    resident_bytes: u64,
}

impl<'a> Attack<'a> {
    /// Opens the sessions, with the code loaded.
    pub(crate) fn begin(worker: &'a WorkerProcess) -> Self {
        let mut gpu = Gpu::open(worker.address(), KERNELS);
        let stop = gpu.zeroed::<u32>(64);
        gpu.synchronize().expect("nothing has happened yet");
        let bystander = WireClient::open(worker.address());
        let resident_bytes = worker.resident_bytes_of_all();
        Self { worker, gpu, stop, bystander, resident_bytes }
    }

    /// Starts a kernel that does not end.
    pub(crate) fn spin(&mut self) {
        let stop = self.stop;
        self.gpu.launch("spin", 1, 64, 0, args![stop]);
    }

    /// Sends `bytes` as far as the worker takes them, while the bystander is served; returns how many it took.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> usize {
        let (mut sent, mut still) = (0, 0);
        self.gpu.wire().stream().set_nonblocking(true).expect("a socket");
        while sent < bytes.len() && still < STILL {
            match self.gpu.wire().stream().write(&bytes[sent..]) {
                Ok(len) => (sent, still) = (sent + len, 0),
                Err(why) if why.kind() == ErrorKind::WouldBlock => still += 1,
                Err(why) => panic!("the worker ends the connection: {why}"),
            }
            self.serve_another();
        }
        self.gpu.wire().stream().set_nonblocking(false).expect("a socket");
        sent
    }

    /// Lets the worker answer the bystander.
    pub(crate) fn serve_another(&mut self) {
        self.bystander.call(&op::GetDevice {}).expect("the bystander is served");
    }

    /// Lets the worker answer the bystander as often as it takes for an attack to have its effect.
    pub(crate) fn serve_others(&mut self) {
        (0..STILL).for_each(|_| self.serve_another());
    }

    /// Returns whether the attacker's last request has been answered.
    pub(crate) fn is_answered(&mut self) -> bool {
        let stream = self.gpu.wire().stream();
        stream.set_nonblocking(true).expect("a socket");
        let answered = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).expect("a socket");
        answered
    }

    /// Returns the bytes of memory that the worker has taken since the beginning.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.worker.resident_bytes_of_all().saturating_sub(self.resident_bytes)
    }

    /// Checks that the worker has not taken more memory since the beginning than the session may have, and what is needed besides.
    pub(crate) fn check_memory(&self) {
        let taken = self.taken_bytes();
        assert!(taken <= MEMORY_MAX + BESIDES, "the worker has taken {} MiB", taken >> 20);
    }

    /// Ends the attacker's connection, in the middle of whatever it waits for; checks that its session ends, with its memory.
    ///
    /// Bytes that the worker has not taken are dropped: a kernel would keep them, and the end of the connection behind them.
    pub(crate) fn leave(mut self) {
        let of_sessions = || self.worker.open_files() + self.worker.children().len();
        let before = of_sessions();
        set_socket_linger(self.gpu.wire().stream(), Some(Duration::ZERO)).expect("a TCP socket");
        let (worker, resident_bytes) = (self.worker, self.resident_bytes);
        let taken = || worker.resident_bytes_of_all().saturating_sub(resident_bytes);
        drop(self.gpu);
        eventually("the session ends", || of_sessions() < before);
        self.bystander.call(&op::DeviceSynchronize {}).expect("the bystander is served");
        eventually("its memory is free", || taken() <= BESIDES);
    }
}
