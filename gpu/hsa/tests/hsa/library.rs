//! The library under test, as a program sees it.

use std::env;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex};

use libloading::Library;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const INFO_BREAK: u32 = 1;
pub(crate) const INVALID_MEMORY_POOL: u32 = 40;
pub(crate) const MEMORY_FAULT: u32 = 43;
pub(crate) const ERROR: u32 = 0x1000;
pub(crate) const INVALID_ARGUMENT: u32 = 0x1001;
pub(crate) const INVALID_QUEUE_CREATION: u32 = 0x1002;
pub(crate) const INVALID_ALLOCATION: u32 = 0x1003;
pub(crate) const INVALID_AGENT: u32 = 0x1004;
pub(crate) const INVALID_REGION: u32 = 0x1005;
pub(crate) const INVALID_SIGNAL: u32 = 0x1006;
pub(crate) const INVALID_QUEUE: u32 = 0x1007;
pub(crate) const OUT_OF_RESOURCES: u32 = 0x1008;
pub(crate) const INVALID_PACKET_FORMAT: u32 = 0x1009;
pub(crate) const RESOURCE_FREE: u32 = 0x100a;
pub(crate) const INCOMPATIBLE_ARGUMENTS: u32 = 0x100d;
pub(crate) const INVALID_INDEX: u32 = 0x100e;
pub(crate) const INVALID_ISA: u32 = 0x100f;
pub(crate) const INVALID_CODE_OBJECT: u32 = 0x1010;
pub(crate) const INVALID_EXECUTABLE: u32 = 0x1011;
pub(crate) const FROZEN_EXECUTABLE: u32 = 0x1012;
pub(crate) const INVALID_SYMBOL_NAME: u32 = 0x1013;
pub(crate) const VARIABLE_ALREADY_DEFINED: u32 = 0x1014;
pub(crate) const VARIABLE_UNDEFINED: u32 = 0x1015;
pub(crate) const INVALID_ISA_NAME: u32 = 0x1017;
pub(crate) const INVALID_EXECUTABLE_SYMBOL: u32 = 0x1019;
pub(crate) const INVALID_FILE: u32 = 0x1020;
pub(crate) const INVALID_CODE_OBJECT_READER: u32 = 0x1021;
pub(crate) const INVALID_CACHE: u32 = 0x1022;
pub(crate) const INVALID_WAVEFRONT: u32 = 0x1023;

/// The GPUs of the tests. The memory of the last one is counted by one test, and used by no other.
pub(crate) const GPUS: [&str; 4] = ["gfx942", "gfx942", "gfx90a", "gfx90a"];
/// The memory of each GPU.
pub(crate) const GPU_BYTES: usize = 4 << 30;

/// The library, loaded and initialized once for all tests.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    // SAFETY: no test changes the environment or reads it by other means than the standard library's; the library reads it below.
    unsafe {
        env::set_var("HIPR_SIM_DEVICES", GPUS.join(","));
        env::set_var("HIPR_SIM_MEMORY", GPU_BYTES.to_string());
    }
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

/// A function of the program that is given handles.
type Each = unsafe extern "C" fn(u64, *mut c_void) -> u32;

/// Returns the handles that a function of this name gives for `of`.
pub(crate) fn handles(name: &str, of: u64) -> Vec<u64> {
    unsafe extern "C" fn push(handle: u64, data: *mut c_void) -> u32 {
        // SAFETY: the list below.
        unsafe { &mut *data.cast::<Vec<u64>>() }.push(handle);
        SUCCESS
    }
    let mut list = Vec::<u64>::new();
    let function: unsafe extern "C" fn(u64, Each, *mut c_void) -> u32 = symbol(name);
    // SAFETY: the C prototype of all functions of this kind.
    let status = unsafe { function(of, push, (&raw mut list).cast()) };
    assert_eq!(status, SUCCESS, "{name}");
    list
}

/// Returns the status of such a function whose callback ends it at the first handle, and of one that has no callback.
pub(crate) fn iteration_ends(name: &str, of: u64) -> [u32; 2] {
    unsafe extern "C" fn stop(_: u64, data: *mut c_void) -> u32 {
        // SAFETY: the number below.
        unsafe { *data.cast::<u32>() += 1 };
        INFO_BREAK
    }
    let function: unsafe extern "C" fn(u64, Option<Each>, *mut c_void) -> u32 = symbol(name);
    let mut calls = 0u32;
    // SAFETY: as above.
    let ends = unsafe {
        [function(of, Some(stop), (&raw mut calls).cast()), function(of, None, std::ptr::null_mut())]
    };
    assert_eq!(calls, 1, "{name}");
    ends
}

/// Returns the pools of an agent: of the host fine, extended, kernarg and coarse; of a GPU coarse, extended, fine and LDS.
pub(crate) fn pools(agent: u64) -> Vec<u64> {
    handles("hsa_amd_agent_iterate_memory_pools", agent)
}

/// Calls a function that writes an attribute, and returns how many bytes it has written and which.
pub(crate) fn written(call: impl Fn(*mut c_void) -> u32) -> Result<Vec<u8>, u32> {
    const ROOM: usize = 1024;
    let [ones, zeros] = [0xff, 0].map(|fill| {
        let mut room = [fill; ROOM];
        let status = call(room.as_mut_ptr().cast());
        (status, room)
    });
    assert_eq!(ones.0, zeros.0, "the same call");
    let len = (0..ROOM).rev().find(|&at| ones.1[at] == zeros.1[at]).map_or(0, |last| last + 1);
    if ones.0 != SUCCESS {
        assert_eq!(len, 0, "an error writes nothing");
        return Err(ones.0);
    }
    Ok(ones.1[..len].to_vec())
}

/// Returns an attribute that is a number of this many bytes.
pub(crate) fn number(bytes: &[u8], len: usize) -> u64 {
    assert_eq!(bytes.len(), len, "the attribute's length");
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Returns the value that a call has stored, or its status.
pub(crate) fn answer<T>(status: u32, value: T) -> Result<T, u32> {
    if status == SUCCESS { Ok(value) } else { Err(status) }
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

/// Memory of a pool of the host that the GPUs may access.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) addr: u64,
    len_bytes: usize,
}

/// Allocates memory of a pool.
pub(crate) fn allocate(pool: u64, len_bytes: usize, flags: u32) -> Result<u64, u32> {
    let mut addr = 0u64;
    let status = hsa!(hsa_amd_memory_pool_allocate(pool => u64, len_bytes => usize, flags => u32, &raw mut addr => *mut u64) -> u32);
    answer(status, addr)
}

/// Frees memory of a pool.
pub(crate) fn free(addr: u64) -> u32 {
    hsa!(hsa_amd_memory_pool_free(addr => u64) -> u32)
}

/// Allows these agents access to memory.
pub(crate) fn allow(agents: &[u64], addr: u64) -> u32 {
    hsa!(hsa_amd_agents_allow_access(agents.len() as u32 => u32, agents.as_ptr() => *const u64, std::ptr::null() => *const u32, addr => u64) -> u32)
}

impl Memory {
    pub(crate) fn new(len_bytes: usize) -> Self {
        let memory = Self::of(pools(agents()[0])[0], len_bytes);
        assert_eq!(allow(&agents()[1..], memory.addr), SUCCESS);
        memory
    }

    /// Returns memory of a pool that its agent and the host may access.
    pub(crate) fn of(pool: u64, len_bytes: usize) -> Self {
        let addr = allocate(pool, len_bytes, 0).expect("memory");
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

    /// Returns the memory as bytes.
    #[allow(clippy::mut_from_ref, reason = "as above")]
    pub(crate) fn bytes(&self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe {
            std::slice::from_raw_parts_mut(
                std::ptr::with_exposed_provenance_mut(self.addr as usize),
                self.len_bytes,
            )
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        assert_eq!(free(self.addr), SUCCESS);
    }
}
