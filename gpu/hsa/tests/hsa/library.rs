//! The library under test, as a program sees it.

use std::env;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex};

use libloading::Library;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const INVALID_ARGUMENT: u32 = 0x1001;
pub(crate) const INVALID_AGENT: u32 = 0x1004;
pub(crate) const INVALID_SIGNAL: u32 = 0x1006;
pub(crate) const INVALID_QUEUE: u32 = 0x1007;
pub(crate) const INVALID_QUEUE_CREATION: u32 = 0x1002;

/// The library, loaded and initialized once for all tests.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let test = env::current_exe().expect("a running test has a file");
    let path = test.with_file_name("libhsa_runtime64.so");
    // SAFETY: hipr's library, whose initialization does nothing.
    let library = unsafe { Library::new(&path) }.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    // SAFETY: the C function's prototype.
    let status = unsafe { library.get::<unsafe extern "C" fn() -> u32>(b"hsa_init\0").expect("hsa_init")() };
    assert_eq!(status, SUCCESS, "hsa_init");
    library
});

/// Calls a function of the library: `hsa!(hsa_signal_create(1i64, …) -> u32)`; the arguments' types are the prototype's.
macro_rules! hsa {
    ($name:ident($($value:expr => $ty:ty),* $(,)?) -> $ret:ty) => {{
        let function = $crate::library::symbol::<unsafe extern "C" fn($($ty),*) -> $ret>(stringify!($name));
        // SAFETY: the C function's prototype, and arguments that it may be given.
        unsafe { function($($value),*) }
    }};
}
pub(crate) use hsa;

/// Returns a function of the library. The type must be the C prototype's.
pub(crate) fn symbol<T: Copy>(name: &str) -> T {
    // SAFETY: the caller's type is the function's.
    let found = unsafe { LIBRARY.get::<T>(name.as_bytes()) };
    *found.unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// Returns the agents, the host first.
pub(crate) fn agents() -> Vec<u64> {
    unsafe extern "C" fn push(agent: u64, data: *mut c_void) -> u32 {
        // SAFETY: the list below.
        unsafe { &*data.cast::<Mutex<Vec<u64>>>() }.lock().expect("no panic").push(agent);
        SUCCESS
    }
    let list = Mutex::new(Vec::new());
    type Callback = unsafe extern "C" fn(u64, *mut c_void) -> u32;
    let status =
        hsa!(hsa_iterate_agents(push => Callback, (&raw const list).cast_mut().cast() => *mut c_void) -> u32);
    assert_eq!(status, SUCCESS);
    list.into_inner().expect("no panic")
}

/// Returns the first GPU.
pub(crate) fn gpu() -> u64 {
    agents()[1]
}

/// A signal, destroyed when dropped.
#[derive(Debug)]
pub(crate) struct Signal(pub(crate) u64);

impl Signal {
    pub(crate) fn new(value: i64) -> Self {
        let mut signal = 0;
        let status = hsa!(hsa_signal_create(value => i64, 0 => u32, std::ptr::null() => *const u64, &raw mut signal => *mut u64) -> u32);
        assert_eq!(status, SUCCESS);
        Self(signal)
    }

    pub(crate) fn load(&self) -> i64 {
        hsa!(hsa_signal_load_scacquire(self.0 => u64) -> i64)
    }

    pub(crate) fn store(&self, value: i64) {
        hsa!(hsa_signal_store_screlease(self.0 => u64, value => i64) -> ());
    }

    /// Waits until the value is less than `than`; the limit only keeps a broken library from hanging the tests.
    pub(crate) fn wait_lt(&self, than: i64) -> i64 {
        let value = hsa!(hsa_signal_wait_scacquire(self.0 => u64, 2 => u32, than => i64, 300_000_000_000 => u64, 0 => u32) -> i64);
        assert!(value < than, "the signal stays at {value}");
        value
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        assert_eq!(hsa!(hsa_signal_destroy(self.0 => u64) -> u32), SUCCESS);
    }
}

/// Memory of a pool of the host that the GPU may access.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) addr: u64,
    len_bytes: usize,
}

impl Memory {
    pub(crate) fn new(len_bytes: usize) -> Self {
        unsafe extern "C" fn first(pool: u64, data: *mut c_void) -> u32 {
            // SAFETY: the variable below.
            unsafe { data.cast::<u64>().write(pool) };
            1
        }
        type Callback = unsafe extern "C" fn(u64, *mut c_void) -> u32;
        let (host, gpu) = (agents()[0], gpu());
        let (mut pool, mut addr) = (0u64, 0u64);
        hsa!(hsa_amd_agent_iterate_memory_pools(host => u64, first => Callback, (&raw mut pool).cast() => *mut c_void) -> u32);
        let status = hsa!(hsa_amd_memory_pool_allocate(pool => u64, len_bytes => usize, 0 => u32, &raw mut addr => *mut u64) -> u32);
        assert_eq!(status, SUCCESS);
        let status = hsa!(hsa_amd_agents_allow_access(1 => u32, &raw const gpu => *const u64, std::ptr::null() => *const u32, addr => u64) -> u32);
        assert_eq!(status, SUCCESS);
        Self { addr, len_bytes }
    }

    /// Returns the memory as 32-bit numbers.
    #[allow(
        clippy::mut_from_ref,
        reason = "kernels write it, too, so that who accesses it when is up to the test"
    )]
    pub(crate) fn words(&self) -> &mut [u32] {
        // SAFETY: memory of this value, which the tests access when no kernel does.
        unsafe {
            std::slice::from_raw_parts_mut(
                std::ptr::with_exposed_provenance_mut(self.addr as usize),
                self.len_bytes / 4,
            )
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        assert_eq!(hsa!(hsa_amd_memory_pool_free(self.addr => u64) -> u32), SUCCESS);
    }
}
