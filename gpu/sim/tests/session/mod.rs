//! Shared parts of the device tests: a client of the device that waits for it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::Duration;

use hipr_device::{Args, Context, Launch, MemoryKind, Origin, Param, Region, WaitFor, Waker};
use hipr_proto::HipResult;
use hipr_sim::{Config, Gpu, SimContext};

/// The test kernels, as compiled without and with optimization.
pub(crate) const LEVELS: [(&str, &[u8]); 2] =
    [("O0", include_bytes!("../data/kernels-O0.co")), ("O3", include_bytes!("../data/kernels-O3.co"))];

/// Creates a device with `threads` threads and 256 MiB of memory.
pub(crate) fn gpu(threads: usize) -> Gpu {
    Gpu::new(Config { threads: NonZero::new(threads), memory_bytes: Some(256 << 20), ..Config::default() })
        .unwrap()
}

/// A context together with a task that waits for it.
pub(crate) struct Session {
    pub(crate) context: SimContext,
    woken: Arc<(Mutex<u64>, Condvar)>,
}

impl Session {
    pub(crate) fn open(gpu: &Gpu) -> Self {
        let woken = Arc::new((Mutex::new(0), Condvar::new()));
        let signal = Arc::clone(&woken);
        let context = gpu.context(Waker::new(move || {
            *signal.0.lock().unwrap() += 1;
            signal.1.notify_all();
        }));
        Self { context, woken }
    }

    /// Polls until the result is ready, again only after each wake-up.
    pub(crate) fn wait<T>(&mut self, mut poll: impl FnMut(&mut SimContext) -> Poll<T>) -> T {
        loop {
            let seen = *self.woken.0.lock().unwrap();
            if let Poll::Ready(value) = poll(&mut self.context) {
                return value;
            }
            // The limit only keeps a broken device from hanging the test run.
            let guard = self.woken.0.lock().unwrap();
            let (guard, limit) =
                self.woken.1.wait_timeout_while(guard, Duration::from_secs(600), |now| *now == seen).unwrap();
            assert!(!limit.timed_out(), "nothing woke the waiter");
            drop(guard);
        }
    }

    pub(crate) fn sync(&mut self, what: WaitFor) -> HipResult<()> {
        self.wait(|context| context.poll_sync(what))
    }

    pub(crate) fn sync_all(&mut self) -> HipResult<()> {
        self.sync(WaitFor::Device)
    }

    pub(crate) fn malloc(&mut self, len_bytes: u64) -> u64 {
        self.context.malloc(len_bytes, MemoryKind::Device, 0).unwrap()
    }

    /// Allocates memory and writes `values` to it immediately.
    pub(crate) fn buffer(&mut self, values: &[u32]) -> u64 {
        let ptr = self.malloc(values.len() as u64 * 4);
        self.write(ptr, values);
        ptr
    }

    /// Writes to memory immediately, without regard to streams.
    pub(crate) fn write(&mut self, ptr: u64, values: &[u32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.context.write(&Region::flat(ptr, bytes.len() as u64), 0, &bytes).unwrap();
    }

    /// Reads at once, without regard to streams.
    pub(crate) fn read(&mut self, ptr: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count * 4];
        self.context.read(&Region::flat(ptr, bytes.len() as u64), 0, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    pub(crate) fn read_bytes(&mut self, ptr: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.context.read(&Region::flat(ptr, bytes.len() as u64), 0, &mut bytes).unwrap();
        bytes
    }

    /// Returns the kernel `name` of `image`.
    pub(crate) fn kernel(&mut self, image: &[u8], name: &str) -> u64 {
        let module = self.context.module_load(image.to_vec()).unwrap();
        self.context.function(module, name).unwrap().handle
    }

    /// Launches on the null stream.
    pub(crate) fn launch(&mut self, function: u64, grid: u32, block: u32, values: &Values) -> HipResult<()> {
        self.launch_on(0, function, grid, block, values)
    }

    pub(crate) fn launch_on(
        &mut self,
        stream: u64,
        function: u64,
        grid: u32,
        block: u32,
        values: &Values,
    ) -> HipResult<()> {
        self.context.launch(&Launch { stream, ..values.launch(function, [grid, 1, 1], [block, 1, 1]) })
    }
}

/// Kernel arguments.
#[derive(Default)]
pub(crate) struct Values {
    table: Vec<Param>,
    data: Vec<u8>,
}

impl Values {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.table.push(Param { offset: self.data.len() as u32, size: bytes.len() as u32 });
        self.data.extend(bytes);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn f32(self, value: f32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn launch(&self, function: u64, grid: [u32; 3], block: [u32; 3]) -> Launch<'_> {
        Launch {
            function,
            grid,
            block,
            shared_mem_bytes: 0,
            stream: 0,
            args: Args::Params { table: &self.table, data: &self.data },
            start_event: None,
            stop_event: None,
            cooperative: false,
            origin: Origin::NONE,
        }
    }
}

/// A kernel that spins on a word of memory, which keeps its stream busy until the gate is opened.
pub(crate) struct Gate(u64);

impl Gate {
    pub(crate) fn close(session: &mut Session, stream: u64) -> Self {
        let stop = session.malloc(4);
        let spin = session.kernel(LEVELS[1].1, "spin");
        session.launch_on(stream, spin, 1, 64, &Values::new().u64(stop)).unwrap();
        Self(stop)
    }

    pub(crate) fn open(self, session: &mut Session) {
        session.write(self.0, &[1]);
    }
}
