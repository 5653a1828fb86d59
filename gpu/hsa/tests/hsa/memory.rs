//! Memory of pools and of the program: sizes, access, locks, fills, what is told of a pointer, and what kernels reach.

use std::ffi::c_void;
use std::sync::Mutex;

use crate::library::{
    GPU_BYTES, GPUS, INVALID_AGENT, INVALID_ALLOCATION, INVALID_ARGUMENT, INVALID_MEMORY_POOL,
    INVALID_REGION, Memory, OUT_OF_RESOURCES, SUCCESS, agents, allocate, allow, answer, free, gpu, handles,
    hsa, pools,
};
use crate::queues::reaches;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// What `hsa_amd_pointer_info` tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PointerInfo {
    size: u32,
    pub(crate) kind: u32,
    pub(crate) agent_base: u64,
    pub(crate) host_base: u64,
    pub(crate) len_bytes: usize,
    user_data: u64,
    owner: u64,
    flags: u32,
    is_registered: u8,
}

pub(crate) const UNKNOWN: u32 = 0;
pub(crate) const HSA: u32 = 1;
pub(crate) const LOCKED: u32 = 2;
pub(crate) const RESERVED: u32 = 5;

/// Returns what is told of a pointer, and who can access it.
pub(crate) fn pointer_info(addr: u64) -> Result<(PointerInfo, Vec<u64>), u32> {
    unsafe extern "C" fn alloc(len: usize) -> *mut c_void {
        // SAFETY: it has no conditions.
        unsafe { libc::malloc(len) }
    }
    type Alloc = unsafe extern "C" fn(usize) -> *mut c_void;
    let mut info = PointerInfo { size: size_of::<PointerInfo>() as u32, ..Default::default() };
    let (mut count, mut list) = (0u32, std::ptr::null_mut::<u64>());
    let status = hsa!(hsa_amd_pointer_info(
        addr => u64, &raw mut info => *mut PointerInfo, alloc => Alloc, &raw mut count => *mut u32, &raw mut list => *mut *mut u64) -> u32);
    let mut who = Vec::new();
    if !list.is_null() {
        // SAFETY: the list that the library has filled, in memory of `malloc`.
        unsafe {
            who.extend_from_slice(std::slice::from_raw_parts(list, count as usize));
            libc::free(list.cast());
        }
    }
    answer(status, (info, who))
}

/// Returns the kind, first address and length of what a pointer points into.
pub(crate) fn told(addr: u64) -> Result<(u32, u64, usize), u32> {
    pointer_info(addr).map(|(info, _)| {
        assert_eq!(info.agent_base, info.host_base, "one address for all");
        (info.kind, info.agent_base, info.len_bytes)
    })
}

/// The program's own memory, whole pages.
pub(crate) struct Pages {
    pub(crate) addr: u64,
    len_bytes: usize,
}

impl Pages {
    pub(crate) fn new(len_bytes: usize) -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory.
        let addr = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len_bytes,
                access,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(addr, libc::MAP_FAILED);
        Self { addr: addr.expose_provenance() as u64, len_bytes }
    }

    #[allow(
        clippy::mut_from_ref,
        reason = "kernels write it, too, so that who accesses it when is up to the test"
    )]
    pub(crate) fn bytes(&self) -> &mut [u8] {
        // SAFETY: memory of this value, which the tests access when no kernel does.
        unsafe {
            std::slice::from_raw_parts_mut(
                std::ptr::with_exposed_provenance_mut(self.addr as usize),
                self.len_bytes,
            )
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the memory that was made above.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.addr as usize), self.len_bytes) };
    }
}

fn lock(addr: u64, len_bytes: usize, agents: &[u64]) -> Result<u64, u32> {
    let mut locked = 0u64;
    let list = if agents.is_empty() { std::ptr::null() } else { agents.as_ptr() };
    let status = hsa!(hsa_amd_memory_lock(
        addr => u64, len_bytes => usize, list => *const u64, agents.len() as i32 => i32, &raw mut locked => *mut u64) -> u32);
    answer(status, locked)
}

fn unlock(addr: u64) -> u32 {
    hsa!(hsa_amd_memory_unlock(addr => u64) -> u32)
}

/// Returns the pools of the agents that are not counted, with their owner, but LDS.
fn usable_pools() -> Vec<(u64, u64)> {
    let agents = agents();
    let host = pools(agents[0]).into_iter().map(|pool| (agents[0], pool));
    let of_gpus = agents[1..GPUS.len()]
        .iter()
        .flat_map(|&agent| pools(agent).into_iter().take(3).map(move |pool| (agent, pool)));
    host.chain(of_gpus).collect()
}

#[test]
fn every_pool_gives_every_size() {
    for (owner, pool) in usable_pools() {
        for len_bytes in [1, 4, PAGE - 1, PAGE, PAGE + 1, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 64 * MIB] {
            let memory = Memory::of(pool, len_bytes);
            assert!(memory.addr.is_multiple_of(PAGE as u64), "{:#x}", memory.addr);
            let (info, who) = pointer_info(memory.addr).expect("known memory");
            assert_eq!(
                (info.kind, info.agent_base, info.len_bytes),
                (HSA, memory.addr, len_bytes),
                "{pool:#x}"
            );
            assert_eq!(info.owner, owner);
            assert!(who.contains(&owner), "its agent may always access it: {who:?}");
            let bytes = memory.bytes();
            assert_eq!((bytes[0], bytes[len_bytes - 1]), (0, 0));
            (bytes[0], bytes[len_bytes - 1]) = (1, 2);
            assert_eq!(bytes[len_bytes / 2], if len_bytes == 1 { 2 } else { 0 });
        }
    }
}

#[test]
fn sizes_flags_and_pools_that_do_not_exist_are_refused() {
    let agents = agents();
    for (_, pool) in usable_pools() {
        assert_eq!(allocate(pool, 0, 0), Err(INVALID_ARGUMENT), "nothing");
        for len_bytes in [usize::MAX, usize::MAX - PAGE, isize::MAX as usize] {
            assert_eq!(allocate(pool, len_bytes, 0), Err(INVALID_ALLOCATION), "{len_bytes:#x} bytes");
        }
        for flag in 5..32 {
            assert_eq!(allocate(pool, PAGE, 1 << flag), Err(INVALID_ARGUMENT), "flag {flag}");
        }
        for flag in 0..5 {
            let addr = allocate(pool, PAGE, 1 << flag).expect("a flag that may be given");
            assert_eq!(free(addr), SUCCESS);
        }
        let nowhere = hsa!(hsa_amd_memory_pool_allocate(pool => u64, PAGE => usize, 0 => u32, std::ptr::null_mut() => *mut u64) -> u32);
        assert_eq!(nowhere, INVALID_ARGUMENT);
    }
    for &gpu in &agents[1..] {
        assert_eq!(allocate(pools(gpu)[0], GPU_BYTES + 1, 0), Err(INVALID_ALLOCATION), "more than there is");
        assert_eq!(allocate(pools(gpu)[3], PAGE, 0), Err(INVALID_ALLOCATION), "LDS");
    }
    for pool in [0, 1, 0x104, u64::MAX] {
        assert_eq!(allocate(pool, PAGE, 0), Err(INVALID_MEMORY_POOL), "{pool:#x}");
    }
}

#[test]
fn a_gpus_memory_is_counted() {
    let agent = agents()[GPUS.len()];
    let available = || {
        let mut bytes = 0u64;
        let status = hsa!(hsa_agent_get_info(agent => u64, 0xa015 => u32, (&raw mut bytes).cast() => *mut c_void) -> u32);
        answer(status, bytes as usize).expect("an attribute")
    };
    assert_eq!(available(), GPU_BYTES);
    let pools = pools(agent);
    for (len_bytes, taken) in [(1, PAGE), (PAGE, PAGE), (PAGE + 1, 2 * PAGE), (3 << 30, 3 << 30)] {
        for &pool in &pools[..3] {
            let addr = allocate(pool, len_bytes, 0).expect("memory");
            assert_eq!(available(), GPU_BYTES - taken, "all pools are of one memory");
            assert_eq!(allocate(pool, GPU_BYTES - taken + 1, 0), Err(OUT_OF_RESOURCES));
            let rest = allocate(pool, GPU_BYTES - taken, 0).expect("what is left");
            assert_eq!((available(), allocate(pool, 1, 0)), (0, Err(OUT_OF_RESOURCES)));
            assert_eq!([free(addr), free(rest)], [SUCCESS; 2]);
            assert_eq!(available(), GPU_BYTES);
        }
    }
}

#[test]
fn memory_is_freed_once_and_by_its_first_address() {
    let own = Pages::new(PAGE);
    for (_, pool) in usable_pools() {
        let addr = allocate(pool, 2 * PAGE, 0).expect("memory");
        for inside in [1, 8, PAGE, 2 * PAGE - 1, 2 * PAGE, 2 * MIB] {
            assert_eq!(free(addr + inside as u64), INVALID_ALLOCATION, "{inside} bytes behind the beginning");
        }
        assert_eq!(free(addr), SUCCESS);
        assert_eq!(told(addr).map(|(kind, ..)| kind), Ok(UNKNOWN), "nothing is there any more");
    }
    assert_eq!(free(0), SUCCESS, "as AMD's");
    for addr in [own.addr, 1, u64::MAX, 0x3fff_ffff_f000] {
        assert_eq!(free(addr), INVALID_ALLOCATION, "{addr:#x}");
    }
    // Another test may be given the same address at once; an address that nobody else gets is freed twice here.
    let agent = agents()[GPUS.len() - 1];
    let addr = allocate(pools(agent)[0], 64 * MIB, 0).expect("memory");
    assert_eq!([free(addr), free(addr + 32 * MIB as u64)], [SUCCESS, INVALID_ALLOCATION]);
}

#[test]
fn kernels_reach_what_their_agent_is_allowed_to() {
    // Two GPUs that execute the same kernels; each subset of them for each pool.
    let agents = agents();
    let gpus = [agents[1], agents[2]];
    for (owner, pool) in usable_pools().into_iter().filter(|(owner, _)| *owner != agents[3]) {
        let memory = Memory::of(pool, PAGE);
        for (index, &gpu) in gpus.iter().enumerate() {
            assert_eq!(
                reaches(gpu, memory.addr),
                gpu == owner,
                "GPU {index} before anything is allowed, pool {pool:#x}"
            );
        }
        for allowed in [&gpus[..1], &gpus[1..], &gpus, &agents[..1]] {
            assert_eq!(allow(allowed, memory.addr), SUCCESS);
            let (_, who) = pointer_info(memory.addr).expect("known memory");
            for &gpu in &gpus {
                let expected = gpu == owner || allowed.contains(&gpu);
                assert_eq!(reaches(gpu, memory.addr), expected, "{gpu} of {allowed:?}, pool {pool:#x}");
                assert_eq!(who.contains(&gpu), expected, "what is told of {gpu}");
            }
        }
        // Allowing access by an address inside is the same.
        assert_eq!(allow(&gpus, memory.addr + 8), SUCCESS);
        assert!(reaches(gpus[0], memory.addr + PAGE as u64 - 4) && reaches(gpus[1], memory.addr));
        assert!(!reaches(gpus[0], memory.addr + PAGE as u64), "the first byte behind it");
    }
}

#[test]
fn access_is_refused_for_wrong_lists_and_addresses() {
    let memory = Memory::new(PAGE);
    let own = Pages::new(PAGE);
    let gpu = gpu();
    let call = |count: u32, agents: *const u64, flags: *const u32, addr: u64| hsa!(hsa_amd_agents_allow_access(count => u32, agents => *const u64, flags => *const u32, addr => u64) -> u32);
    let (one, flags, null) = ([gpu, 99], [0u32; 2], std::ptr::null());
    assert_eq!(call(0, one.as_ptr(), null, memory.addr), INVALID_ARGUMENT, "no agents");
    assert_eq!(call(1, std::ptr::null(), null, memory.addr), INVALID_ARGUMENT, "no list");
    assert_eq!(
        call(1, one.as_ptr(), flags.as_ptr(), memory.addr),
        INVALID_ARGUMENT,
        "flags must not be given"
    );
    assert_eq!(call(1, one.as_ptr(), null, 0), INVALID_ARGUMENT, "no memory");
    assert_eq!(call(2, one.as_ptr(), null, memory.addr), INVALID_AGENT, "an agent that does not exist");
    for addr in [own.addr, 8, memory.addr + 2 * MIB as u64, u64::MAX] {
        assert_eq!(call(1, one.as_ptr(), null, addr), INVALID_ALLOCATION, "{addr:#x}");
    }
    assert!(reaches(gpu, memory.addr), "nothing has changed");
}

#[test]
fn locked_memory_is_reached_page_by_page() {
    let agents = agents();
    let own = Pages::new(8 * PAGE);
    let page = |number: usize| own.addr + (number * PAGE) as u64;
    // (offset, length) and the pages that become accessible.
    for (offset, len_bytes, locked) in [
        (0, 1, 0..1),
        (PAGE, PAGE, 1..2),
        (PAGE - 1, 2, 0..2),
        (3 * PAGE + 100, 2 * PAGE, 3..6),
        (0, 8 * PAGE, 0..8),
    ] {
        let addr = own.addr + offset as u64;
        assert_eq!(lock(addr, len_bytes, &[agents[1]]), Ok(addr), "GPUs reach it at its own address");
        assert_eq!(told(addr), Ok((LOCKED, addr, len_bytes)));
        assert_eq!(told(addr + len_bytes as u64).map(|(kind, ..)| kind), Ok(UNKNOWN), "behind its end");
        for number in 0..8 {
            assert_eq!(
                reaches(agents[1], page(number)),
                locked.contains(&number),
                "page {number} of {locked:?}"
            );
        }
        assert!(!reaches(agents[2], addr & !3), "another GPU");
        assert_eq!(unlock(addr), SUCCESS);
        assert!(!reaches(agents[1], page(locked.start)), "unlocked");
    }
    assert_eq!(lock(own.addr, PAGE, &[]), Ok(own.addr));
    assert!(agents[1..3].iter().all(|&gpu| reaches(gpu, own.addr)), "no list means all agents");
    assert_eq!(own.bytes()[0], 1, "the host sees what kernels store");
    assert_eq!(unlock(own.addr), SUCCESS);
}

#[test]
fn locks_of_one_page_end_one_by_one() {
    let gpu = gpu();
    let own = Pages::new(4 * PAGE);
    let second = own.addr + PAGE as u64;
    assert_eq!(lock(own.addr, 2 * PAGE, &[gpu]), Ok(own.addr));
    assert_eq!(lock(own.addr, PAGE, &[gpu]), Ok(own.addr), "the same beginning");
    assert_eq!(lock(second, 2 * PAGE, &[gpu]), Ok(second), "a part of it");
    assert_eq!(unlock(own.addr), SUCCESS);
    assert!(reaches(gpu, own.addr) && reaches(gpu, second), "the first lock holds");
    assert_eq!(unlock(own.addr), SUCCESS);
    assert!(!reaches(gpu, own.addr) && reaches(gpu, second), "the third lock holds");
    assert_eq!(unlock(second), SUCCESS);
    assert!(!reaches(gpu, second));
    assert_eq!(
        [unlock(second), unlock(0), unlock(8)],
        [SUCCESS; 3],
        "as AMD's, what is not locked can be unlocked"
    );
}

#[test]
fn locks_of_nothing_and_of_wrong_agents_are_refused() {
    let agents = agents();
    let (own, pool) = (Pages::new(PAGE), Memory::new(PAGE));
    assert_eq!(lock(own.addr, 0, &[]), Err(INVALID_ARGUMENT));
    assert_eq!(lock(0, PAGE, &[]), Err(INVALID_ARGUMENT));
    assert_eq!(lock(own.addr, PAGE, &[agents[1], 99]), Err(INVALID_AGENT));
    assert_eq!(lock(u64::MAX - 100, PAGE, &[]), Err(INVALID_ARGUMENT), "addresses that wrap around");
    let half = Pages::new(2 * PAGE);
    let second = std::ptr::with_exposed_provenance_mut(half.addr as usize + PAGE);
    // SAFETY: memory of this test.
    assert_eq!(unsafe { libc::mprotect(second, PAGE, libc::PROT_READ) }, 0);
    assert_eq!(lock(half.addr, 2 * PAGE, &[]), Err(OUT_OF_RESOURCES), "memory that kernels could not write");
    assert_eq!(lock(PAGE as u64, PAGE, &[]), Err(OUT_OF_RESOURCES));
    assert!(lock(pool.addr, PAGE, &[]).is_err(), "what is a pool's needs no lock");
    let mut locked = 0u64;
    let mut raw = |list: *const u64, count: i32, to: bool| {
        let place = if to { &raw mut locked } else { std::ptr::null_mut() };
        hsa!(hsa_amd_memory_lock(own.addr => u64, PAGE => usize, list => *const u64, count => i32, place => *mut u64) -> u32)
    };
    let list = [agents[1]];
    assert_eq!(raw(list.as_ptr(), 0, true), INVALID_ARGUMENT, "a list without agents");
    assert_eq!(raw(std::ptr::null(), 1, true), INVALID_ARGUMENT, "agents without a list");
    assert_eq!(raw(list.as_ptr(), -1, true), INVALID_ARGUMENT);
    assert_eq!(raw(list.as_ptr(), 1, false), INVALID_ARGUMENT, "nowhere to store the address");
    assert!(!reaches(agents[1], own.addr), "none of this has locked it");
}

#[test]
fn memory_is_locked_by_the_rules_of_the_hosts_pools() {
    let agents = agents();
    let own = Pages::new(PAGE);
    let lock = |pool: u64, flags: u32| {
        let mut locked = 0u64;
        let status = hsa!(hsa_amd_memory_lock_to_pool(
            own.addr => u64, PAGE => usize, std::ptr::null() => *const u64, 0 => i32, pool => u64, flags => u32, &raw mut locked => *mut u64) -> u32);
        answer(status, locked)
    };
    for (pool, flags) in pools(agents[0]).into_iter().zip([2, 8, 3, 4]) {
        assert_eq!(lock(pool, 0), Ok(own.addr));
        assert_eq!(pointer_info(own.addr).map(|(info, _)| (info.kind, info.flags)), Ok((LOCKED, flags)));
        assert!(reaches(agents[1], own.addr));
        assert_eq!(unlock(own.addr), SUCCESS);
        assert_eq!(lock(pool, 1), Err(INVALID_ARGUMENT), "flags");
    }
    for pool in pools(agents[1]).into_iter().chain([0, 99, u64::MAX]) {
        assert_eq!(lock(pool, 0), Err(INVALID_MEMORY_POOL), "{pool:#x} is not the host's");
    }
}

#[test]
fn every_kind_of_pointer_is_told() {
    let own = Pages::new(2 * PAGE);
    let len_bytes = PAGE + 100;
    let memory = Memory::new(len_bytes);
    for offset in [0, 1, 99, PAGE, len_bytes - 1] {
        assert_eq!(
            told(memory.addr + offset as u64),
            Ok((HSA, memory.addr, len_bytes)),
            "{offset} bytes behind the beginning"
        );
    }
    let number = 5u32;
    let stack = (&raw const number).expose_provenance() as u64;
    let unknown = [
        memory.addr - 1,
        memory.addr + 2 * PAGE as u64,
        memory.addr + 4 * MIB as u64 - 1,
        own.addr,
        stack,
        1,
        u64::MAX,
    ];
    for addr in unknown {
        assert_eq!(told(addr).map(|(kind, ..)| kind), Ok(UNKNOWN), "{addr:#x}");
    }
    assert_eq!(told(0), Err(INVALID_ARGUMENT));
    let null = std::ptr::null_mut();
    let nowhere = hsa!(hsa_amd_pointer_info(
        memory.addr => u64, null => *mut PointerInfo, null.cast() => *const c_void, null.cast() => *mut u32, null.cast() => *mut *mut u64) -> u32);
    assert_eq!(nowhere, INVALID_ARGUMENT);
    // A caller that was compiled with another version has a shorter or a longer structure.
    for room in [8u32, 16, 40, 52, 56, 64, 200] {
        let mut bytes = [0xeeu8; 256];
        bytes[..4].copy_from_slice(&room.to_ne_bytes());
        let status = hsa!(hsa_amd_pointer_info(
            memory.addr => u64, bytes.as_mut_ptr().cast() => *mut PointerInfo, null.cast() => *const c_void, null.cast() => *mut u32,
            null.cast() => *mut *mut u64) -> u32);
        assert_eq!(status, SUCCESS);
        assert!(
            bytes[room as usize..].iter().all(|&byte| byte == 0xee),
            "nothing is written behind {room} bytes"
        );
        assert_eq!(u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]), HSA);
    }
}

#[test]
fn user_data_stays_with_its_memory() {
    let own = Pages::new(PAGE);
    let memory = Memory::new(PAGE);
    assert_eq!(lock(own.addr, PAGE, &[]), Ok(own.addr));
    let set = |addr: u64, data: u64| hsa!(hsa_amd_pointer_info_set_userdata(addr => u64, data => u64) -> u32);
    for addr in [memory.addr, own.addr] {
        for data in [1, u64::MAX, 0] {
            assert_eq!(set(addr, data), SUCCESS);
            assert_eq!(pointer_info(addr).map(|(info, _)| info.user_data), Ok(data));
        }
    }
    assert_eq!(unlock(own.addr), SUCCESS);
    for addr in [own.addr, 0, 64, u64::MAX] {
        assert_eq!(set(addr, 1), INVALID_ARGUMENT, "{addr:#x}");
    }
}

#[test]
fn fills_store_a_word_everywhere_and_nowhere_else() {
    let memory = Memory::new(4 * PAGE);
    let fill = |addr: u64, count: usize| hsa!(hsa_amd_memory_fill(addr => u64, 0x1234_5678 => u32, count => usize) -> u32);
    for (first, count) in [(0, 1), (1, 0), (0, 4096), (1, 4095), (4095, 1), (17, 1000)] {
        memory.words().fill(7);
        assert_eq!(fill(memory.addr + 4 * first as u64, count), SUCCESS);
        for (index, &word) in memory.words().iter().enumerate() {
            let expected = if (first..first + count).contains(&index) { 0x1234_5678 } else { 7 };
            assert_eq!(word, expected, "word {index} of {count} from {first} on");
        }
    }
    for misaligned in [1, 2, 3, 5] {
        assert_eq!(fill(memory.addr + misaligned, 1), INVALID_ARGUMENT);
    }
    assert_eq!(fill(0, 1), INVALID_ARGUMENT);
    let own = Pages::new(PAGE);
    assert_eq!(fill(own.addr, 1), INVALID_ALLOCATION, "memory of the program");
    for (first, count) in
        [(0, 4097), (4095, 2), (4096, 1), (0, usize::MAX / 4), (0, usize::MAX), (8, 1 << 62)]
    {
        let status = fill(memory.addr + 4 * first, count);
        assert!(
            [INVALID_ALLOCATION, INVALID_ARGUMENT].contains(&status),
            "{count} words from {first} on: {status:#x}"
        );
    }
}

#[test]
fn who_wants_to_know_is_told_when_memory_is_freed() {
    /// Addresses that were freed.
    static FREED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    unsafe extern "C" fn note(addr: *mut c_void, data: *mut c_void) {
        let sum = addr.addr() as u64 + data.addr() as u64;
        FREED.lock().expect("no panic").push(sum);
    }
    unsafe extern "C" fn other(_: *mut c_void, _: *mut c_void) {}
    type Callback = Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>;
    let register = |addr: u64, callback: Callback, data: u64| hsa!(hsa_amd_register_deallocation_callback(addr => u64, callback => Callback, data => u64) -> u32);
    let deregister = |addr: u64, callback: Callback| hsa!(hsa_amd_deregister_deallocation_callback(addr => u64, callback => Callback) -> u32);
    let own = Pages::new(PAGE);
    for (_, pool) in usable_pools() {
        FREED.lock().expect("no panic").clear();
        let memory = Memory::of(pool, PAGE);
        let addr = memory.addr;
        for data in [1, 2, 3] {
            assert_eq!(register(addr, Some(note), data), SUCCESS);
        }
        assert_eq!(deregister(addr, Some(other)), INVALID_ARGUMENT, "it was not registered");
        assert_eq!(deregister(addr, Some(note)), SUCCESS, "one of the three");
        assert_eq!(register(addr, None, 0), INVALID_ARGUMENT);
        drop(memory);
        let freed = std::mem::take(&mut *FREED.lock().expect("no panic"));
        assert_eq!(freed.len(), 2, "{freed:x?}");
        assert!(freed.iter().all(|&sum| (1..=3).contains(&(sum - addr))));
    }
    assert_eq!(register(0, Some(note), 0), INVALID_ARGUMENT);
    assert_eq!(register(own.addr, Some(note), 0), INVALID_ALLOCATION);
    assert_eq!(deregister(own.addr, Some(note)), INVALID_ARGUMENT);
}

#[test]
fn regions_give_memory_that_all_agents_reach() {
    let agents = agents();
    for &agent in &agents[..3] {
        for (number, region) in handles("hsa_agent_iterate_regions", agent).into_iter().enumerate() {
            let allocate = |len_bytes: usize| {
                let mut addr = 0u64;
                let status = hsa!(hsa_memory_allocate(region => u64, len_bytes => usize, &raw mut addr => *mut u64) -> u32);
                answer(status, addr)
            };
            if agent != agents[0] && number == 3 {
                assert_eq!(allocate(PAGE), Err(INVALID_ALLOCATION), "LDS");
                continue;
            }
            let addr = allocate(PAGE).expect("memory");
            assert!(agents[1..3].iter().all(|&gpu| reaches(gpu, addr)));
            for (access, expected) in
                [(0, INVALID_ARGUMENT), (1, SUCCESS), (2, SUCCESS), (3, SUCCESS), (4, INVALID_ARGUMENT)]
            {
                assert_eq!(
                    hsa!(hsa_memory_assign_agent(addr => u64, agents[1] => u64, access => u32) -> u32),
                    expected,
                    "{access}"
                );
            }
            assert_eq!(hsa!(hsa_memory_assign_agent(addr => u64, 99 => u64, 1 => u32) -> u32), INVALID_AGENT);
            assert_eq!(
                hsa!(hsa_memory_assign_agent(0 => u64, agents[1] => u64, 1 => u32) -> u32),
                INVALID_ARGUMENT
            );
            assert_eq!(hsa!(hsa_memory_free(addr => u64) -> u32), SUCCESS);
            assert_eq!(allocate(0), Err(INVALID_ARGUMENT));
            assert_eq!(
                allocate(usize::MAX),
                Err(INVALID_ALLOCATION),
                "more than the region's largest allocation"
            );
            assert_eq!(
                hsa!(hsa_memory_allocate(region => u64, PAGE => usize, std::ptr::null_mut() => *mut u64) -> u32),
                INVALID_ARGUMENT
            );
        }
    }
    let mut addr = 0u64;
    for region in [0, 99, u64::MAX] {
        assert_eq!(
            hsa!(hsa_memory_allocate(region => u64, PAGE => usize, &raw mut addr => *mut u64) -> u32),
            INVALID_REGION
        );
    }
}

#[test]
fn memory_of_the_program_is_registered_without_effect() {
    let own = Pages::new(PAGE);
    let register =
        |addr: u64, len_bytes: usize| hsa!(hsa_memory_register(addr => u64, len_bytes => usize) -> u32);
    assert_eq!(register(own.addr, PAGE), SUCCESS);
    assert_eq!(register(own.addr, 0), INVALID_ARGUMENT);
    assert_eq!(register(0, 0), SUCCESS);
    assert!(!reaches(gpu(), own.addr), "GPUs of the base profile do not reach it");
    assert_eq!(hsa!(hsa_memory_deregister(own.addr => u64, PAGE => usize) -> u32), SUCCESS);
}

#[test]
fn memory_does_not_migrate() {
    let agents = agents();
    let (one, other) = (pools(agents[0])[0], pools(agents[1])[0]);
    let can = |from: u64, to: u64| {
        let mut result = 7u8;
        let status =
            hsa!(hsa_amd_memory_pool_can_migrate(from => u64, to => u64, &raw mut result => *mut u8) -> u32);
        answer(status, result)
    };
    assert_eq!(can(one, other), Ok(0));
    assert_eq!([can(0, other), can(one, 99)], [Err(INVALID_MEMORY_POOL); 2]);
    assert_eq!(
        hsa!(hsa_amd_memory_pool_can_migrate(one => u64, other => u64, std::ptr::null_mut() => *mut u8) -> u32),
        INVALID_ARGUMENT
    );
    let memory = Memory::of(one, PAGE);
    let migrate = |pool: u64, flags: u32| hsa!(hsa_amd_memory_migrate(memory.addr => u64, pool => u64, flags => u32) -> u32);
    assert_eq!(
        [migrate(other, 0), migrate(other, 1), migrate(99, 0)],
        [OUT_OF_RESOURCES, INVALID_ARGUMENT, INVALID_MEMORY_POOL]
    );
    for (kind, expected) in [(0, SUCCESS), (1, SUCCESS), (2, INVALID_ARGUMENT)] {
        assert_eq!(hsa!(hsa_amd_coherency_set_type(agents[1] => u64, kind => u32) -> u32), expected);
    }
    let mut kind = 9u32;
    assert_eq!(hsa!(hsa_amd_coherency_get_type(agents[1] => u64, &raw mut kind => *mut u32) -> u32), SUCCESS);
    assert_eq!(kind, 0, "coherent in any case");
    assert_eq!(
        hsa!(hsa_amd_coherency_get_type(agents[0] => u64, &raw mut kind => *mut u32) -> u32),
        INVALID_AGENT
    );
}
