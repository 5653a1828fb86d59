//! Virtual memory: reserved addresses, handles, what is mapped where, who may access it, and every step in a wrong order.

use std::collections::BTreeSet;
use std::ffi::c_void;

use crate::library::{
    INVALID_AGENT, INVALID_ALLOCATION, INVALID_ARGUMENT, RESOURCE_FREE, SUCCESS, agents, answer, gpu, hsa,
    pools,
};
use crate::memory::{HSA, RESERVED, UNKNOWN, told};
use crate::queues::reaches;
use crate::svm;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// `HSA_AMD_VMEM_ADDRESS_NO_REGISTER`.
const NO_REGISTER: u64 = 1;

fn reserve_aligned(len_bytes: usize, wish: u64, align_bytes: u64) -> Result<u64, u32> {
    reserve_with(len_bytes, wish, align_bytes, 0)
}

fn reserve_with(len_bytes: usize, wish: u64, align_bytes: u64, flags: u64) -> Result<u64, u32> {
    let mut addr = 0u64;
    let status = hsa!(hsa_amd_vmem_address_reserve_align(
        &raw mut addr => *mut u64, len_bytes => usize, wish => u64, align_bytes => u64, flags => u64) -> u32);
    answer(status, addr)
}

fn reserve(len_bytes: usize) -> u64 {
    let mut addr = 0u64;
    let status = hsa!(hsa_amd_vmem_address_reserve(&raw mut addr => *mut u64, len_bytes => usize, 0 => u64, 0 => u64) -> u32);
    answer(status, addr).expect("addresses")
}

fn give_back(addr: u64, len_bytes: usize) -> u32 {
    hsa!(hsa_amd_vmem_address_free(addr => u64, len_bytes => usize) -> u32)
}

fn create(pool: u64, len_bytes: usize, kind: u32) -> Result<u64, u32> {
    let mut handle = 0u64;
    let status = hsa!(hsa_amd_vmem_handle_create(pool => u64, len_bytes => usize, kind => u32, 0 => u64, &raw mut handle => *mut u64) -> u32);
    answer(status, handle)
}

fn release(handle: u64) -> u32 {
    hsa!(hsa_amd_vmem_handle_release(handle => u64) -> u32)
}

fn map(addr: u64, len_bytes: usize, offset: usize, handle: u64) -> u32 {
    hsa!(hsa_amd_vmem_map(addr => u64, len_bytes => usize, offset => usize, handle => u64, 0 => u64) -> u32)
}

fn unmap(addr: u64, len_bytes: usize) -> u32 {
    hsa!(hsa_amd_vmem_unmap(addr => u64, len_bytes => usize) -> u32)
}

/// `hsa_amd_memory_access_desc_t`.
#[repr(C)]
struct Access {
    permissions: u32,
    agent: u64,
}

fn set_access(addr: u64, len_bytes: usize, list: &[(u64, u32)]) -> u32 {
    let list: Vec<_> = list.iter().map(|&(agent, permissions)| Access { permissions, agent }).collect();
    let first = if list.is_empty() { std::ptr::null() } else { list.as_ptr() };
    hsa!(hsa_amd_vmem_set_access(addr => u64, len_bytes => usize, first => *const Access, list.len() => usize) -> u32)
}

fn get_access(addr: u64, agent: u64) -> Result<u32, u32> {
    let mut permissions = 99u32;
    let status =
        hsa!(hsa_amd_vmem_get_access(addr => u64, &raw mut permissions => *mut u32, agent => u64) -> u32);
    answer(status, permissions)
}

fn word(addr: u64) -> *mut u32 {
    std::ptr::with_exposed_provenance_mut(addr as usize)
}

#[test]
fn addresses_are_reserved_in_whole_pages() {
    for len_bytes in [PAGE, 3 * PAGE, 2 * MIB, 2 * MIB + PAGE, 1 << 30, 1 << 40] {
        for align_bytes in [0, PAGE as u64, 2 * MIB as u64, 1 << 30] {
            let addr = reserve_aligned(len_bytes, 0, align_bytes).expect("addresses");
            assert!(addr.is_multiple_of(align_bytes.max(PAGE as u64)), "{addr:#x} for {align_bytes:#x}");
            for offset in [0, len_bytes as u64 / 2, len_bytes as u64 - 1] {
                assert_eq!(told(addr + offset), Ok((RESERVED, addr, len_bytes)));
            }
            assert_ne!(told(addr + len_bytes as u64).map(|(_, base, _)| base), Ok(addr));
            assert_eq!(give_back(addr, len_bytes), SUCCESS);
            assert_eq!(told(addr).map(|(kind, ..)| kind), Ok(UNKNOWN));
            assert_eq!(give_back(addr, len_bytes), INVALID_ALLOCATION, "given back twice");
        }
    }
    for (len_bytes, align_bytes) in
        [(0, 0), (1, 0), (PAGE - 1, 0), (PAGE + 1, 0), (PAGE, 1), (PAGE, 2048), (PAGE, 3 * PAGE as u64)]
    {
        assert_eq!(
            reserve_aligned(len_bytes, 0, align_bytes),
            Err(INVALID_ARGUMENT),
            "{len_bytes} bytes, {align_bytes}"
        );
    }
    assert!(reserve_aligned(1 << 60, 0, 0).is_err(), "more than there are");
    let nowhere = hsa!(hsa_amd_vmem_address_reserve(std::ptr::null_mut() => *mut u64, PAGE => usize, 0 => u64, 0 => u64) -> u32);
    assert_eq!(nowhere, INVALID_ARGUMENT);
}

#[test]
fn unregistered_addresses_are_zeroed_memory_of_any_length() {
    let access = [[svm::IN_PLACE, gpu()]];
    for len_bytes in [1, PAGE - 1, PAGE, PAGE + 1, 2 * MIB, 2 * MIB + 5] {
        for align_bytes in [0, 1, 16, PAGE as u64, 2 * MIB as u64] {
            let what = format!("{len_bytes} bytes, aligned to {align_bytes}");
            let addr = reserve_with(len_bytes, 0, align_bytes, NO_REGISTER).expect("addresses");
            assert!(addr.is_multiple_of(align_bytes.max(PAGE as u64)), "{what}: {addr:#x}");
            let pages_bytes = len_bytes.next_multiple_of(PAGE);
            let last = addr + pages_bytes as u64 - 4;
            // SAFETY: memory of this test, up to the end of its last page.
            unsafe {
                assert_eq!([word(addr).read(), word(last).read()], [0, 0], "{what}");
                word(last).write(7);
            }
            assert!(!reaches(gpu(), addr), "{what}: before there are attributes");
            assert_eq!(svm::set(addr, pages_bytes, &access), SUCCESS, "{what}");
            // SAFETY: as before; the kernel stores into it.
            assert!(reaches(gpu(), addr) && unsafe { word(addr).read() } == 1, "{what}");
            assert_eq!(give_back(addr, len_bytes + 1), INVALID_ARGUMENT, "{what}: another length");
            assert_eq!(give_back(addr, len_bytes), SUCCESS, "{what}");
            assert_eq!(give_back(addr, len_bytes), INVALID_ALLOCATION, "{what}: given back twice");
        }
    }
    assert_eq!(reserve_with(0, 0, 0, NO_REGISTER), Err(INVALID_ARGUMENT), "nothing");
    assert_eq!(reserve_with(PAGE, 0, 3, NO_REGISTER), Err(INVALID_ARGUMENT), "no power of two");
    assert!(reserve_with(usize::MAX, 0, 0, NO_REGISTER).is_err(), "more than there are");
}

#[test]
fn attributes_end_with_the_addresses_that_they_are_of() {
    let first = reserve_with(4 * PAGE, 0, 0, NO_REGISTER).expect("addresses");
    assert_eq!(svm::set(first, 4 * PAGE, &[[svm::IN_PLACE, gpu()]]), SUCCESS);
    assert_eq!(give_back(first, 4 * PAGE), SUCCESS);
    // Other tests may have got something there meanwhile: the wish is no promise.
    let again = reserve_with(4 * PAGE, first, 0, NO_REGISTER).expect("addresses");
    assert_eq!(svm::get(again, 4 * PAGE, [svm::QUERY, gpu()]), Ok([svm::NO_ACCESS, gpu()]));
    assert!(!reaches(gpu(), again));
    assert_eq!(give_back(again, 4 * PAGE), SUCCESS);
}

#[test]
fn a_handle_hides_unregistered_memory_which_is_zeroed_when_it_goes() {
    let pool = pools(gpu())[0];
    let addr = reserve_with(3 * PAGE, 0, 0, NO_REGISTER).expect("addresses");
    let handle = create(pool, PAGE, 0).expect("a handle");
    let middle = addr + PAGE as u64;
    // SAFETY: memory of this test.
    unsafe { word(middle).write(9) };
    assert_eq!(map(middle, PAGE, 0, handle), SUCCESS);
    let access = [[svm::IN_PLACE, gpu()]];
    assert_ne!(svm::set(addr, 3 * PAGE, &access), SUCCESS, "a handle's memory has no attributes");
    assert_eq!(svm::set(addr, PAGE, &access), SUCCESS, "beside it");
    assert_eq!(give_back(addr, 3 * PAGE), RESOURCE_FREE, "a handle is mapped there");
    assert_eq!(unmap(middle, PAGE), SUCCESS);
    // SAFETY: memory of this test.
    assert_eq!(unsafe { word(middle).read() }, 0);
    assert_eq!(svm::set(addr, 3 * PAGE, &access), SUCCESS);
    assert!(reaches(gpu(), middle));
    assert_eq!([release(handle), give_back(addr, 3 * PAGE)], [SUCCESS; 2]);
    // Without the flag nothing is there, which attributes cannot change.
    let bare = reserve(PAGE);
    assert_ne!(svm::set(bare, PAGE, &access), SUCCESS);
    assert_eq!(give_back(bare, PAGE), SUCCESS);
}

#[test]
fn a_wish_for_addresses_is_granted_if_they_are_free() {
    let first = reserve_aligned(64 * MIB, 0, 0).expect("addresses");
    assert_eq!(give_back(first, 64 * MIB), SUCCESS);
    // Other tests may have got something there meanwhile: the wish is no promise.
    let again = reserve_aligned(64 * MIB, first, 0).expect("addresses");
    let other = reserve_aligned(64 * MIB, again, 0).expect("addresses");
    assert_ne!(other, again, "what is reserved is not given twice");
    assert_eq!([give_back(again, 64 * MIB), give_back(other, 64 * MIB)], [SUCCESS; 2]);
}

#[test]
fn addresses_that_were_just_freed_are_not_reserved_again_unless_wished_for() {
    let freed: BTreeSet<u64> = (0..16)
        .map(|_| {
            let addr = reserve(PAGE);
            assert_eq!(give_back(addr, PAGE), SUCCESS);
            addr
        })
        .collect();
    assert_eq!(freed.len(), 16, "one was given twice");
    // All of them at once are more than a process has addresses for.
    for len_bytes in [1 << 39, 1 << 44] {
        for _ in 0..300 {
            let addr = reserve(len_bytes);
            assert_eq!(give_back(addr, len_bytes), SUCCESS);
        }
    }
}

#[test]
fn handles_are_made_of_pools() {
    let agents = agents();
    for (&agent, number) in agents[..3].iter().flat_map(|agent| (0..4).map(move |number| (agent, number))) {
        let pool = pools(agent)[number];
        if agent != agents[0] && number == 3 {
            assert_eq!(create(pool, PAGE, 0), Err(INVALID_ALLOCATION), "LDS");
            continue;
        }
        for kind in [0, 1] {
            let handle = create(pool, 2 * MIB, kind).expect("a handle");
            let (mut of, mut found) = (0u64, 9u32);
            let status = hsa!(hsa_amd_vmem_get_alloc_properties_from_handle(handle => u64, &raw mut of => *mut u64, &raw mut found => *mut u32) -> u32);
            assert_eq!((status, of, found), (SUCCESS, pool, kind));
            assert_eq!([release(handle), release(handle)], [SUCCESS, INVALID_ALLOCATION]);
            let status = hsa!(hsa_amd_vmem_get_alloc_properties_from_handle(handle => u64, &raw mut of => *mut u64, &raw mut found => *mut u32) -> u32);
            assert_eq!(status, INVALID_ALLOCATION, "it was released");
        }
        for (len_bytes, kind) in [(0, 0), (1, 0), (PAGE + 1, 0), (PAGE, 2)] {
            assert_eq!(
                create(pool, len_bytes, kind),
                Err(INVALID_ARGUMENT),
                "{len_bytes} bytes of kind {kind}"
            );
        }
        assert!(create(pool, 1 << 50, 0).is_err(), "more than there is");
    }
    assert_eq!(create(99, PAGE, 0), Err(INVALID_ARGUMENT), "no pool");
    assert_eq!([release(0), release(u64::MAX)], [INVALID_ALLOCATION; 2]);
}

#[test]
fn only_a_whole_handle_is_mapped_and_only_where_it_may_be() {
    let pool = pools(gpu())[0];
    let addr = reserve(4 * PAGE);
    let (one, two) = (create(pool, PAGE, 0).expect("a handle"), create(pool, 2 * PAGE, 0).expect("a handle"));
    let gone = create(pool, PAGE, 0).expect("a handle");
    assert_eq!(release(gone), SUCCESS);
    let pooled = crate::library::Memory::of(pool, PAGE);
    let at = |page: usize| addr + (page * PAGE) as u64;
    for (base, len_bytes, offset, handle, what) in [
        (at(0), PAGE, 0, 0, "no handle"),
        (at(0), PAGE, 0, gone, "a handle that was released"),
        (at(0), PAGE, PAGE, one, "an offset"),
        (at(0), 2 * PAGE, 0, one, "more than the handle has"),
        (at(0), PAGE, 0, two, "less than the handle has"),
        (at(0), 0, 0, one, "nothing"),
        (at(0) + 1, PAGE, 0, one, "no page"),
        (at(3), 2 * PAGE, 0, two, "a page behind what is reserved"),
        (pooled.addr, PAGE, 0, one, "memory of a pool"),
        (0, PAGE, 0, one, "address 0"),
        (u64::MAX - PAGE as u64 + 1, PAGE, 0, one, "the last page of all"),
    ] {
        assert_eq!(map(base, len_bytes, offset, handle), INVALID_ARGUMENT, "{what}");
    }
    assert_eq!(unmap(at(0), PAGE), INVALID_ALLOCATION, "nothing is mapped yet");
    assert_eq!(map(at(1), 2 * PAGE, 0, two), SUCCESS);
    for page in [1, 2] {
        assert_eq!(map(at(page), PAGE, 0, one), INVALID_ARGUMENT, "page {page} is another mapping's");
    }
    assert_eq!(map(at(0), 2 * PAGE, 0, two), INVALID_ARGUMENT, "its second page is another mapping's");
    assert_eq!(
        [map(at(0), PAGE, 0, one), map(at(3), PAGE, 0, one)],
        [SUCCESS; 2],
        "one handle in two places"
    );
    assert_eq!(told(at(2)), Ok((HSA, at(1), 2 * PAGE)), "what is told is the mapping");
    assert_eq!(give_back(addr, 4 * PAGE), RESOURCE_FREE, "something is mapped there");
    assert_eq!(
        [unmap(at(1), PAGE), unmap(at(2), PAGE)],
        [INVALID_ARGUMENT, INVALID_ALLOCATION],
        "a part of a mapping"
    );
    for (page, len_bytes) in [(1, 2 * PAGE), (0, PAGE), (3, PAGE)] {
        assert_eq!([unmap(at(page), len_bytes), unmap(at(page), len_bytes)], [SUCCESS, INVALID_ALLOCATION]);
    }
    assert_eq!(give_back(addr, PAGE), INVALID_ARGUMENT, "a part of what is reserved");
    assert_eq!(give_back(at(1), 3 * PAGE), INVALID_ALLOCATION, "not its beginning");
    assert_eq!(give_back(addr, 4 * PAGE), SUCCESS);
    assert_eq!([release(one), release(two)], [SUCCESS; 2]);
}

#[test]
fn each_agent_has_the_access_that_was_set_last() {
    let agents = agents();
    let (host, gpus) = (agents[0], [agents[1], agents[2]]);
    for pool in [pools(host)[0], pools(gpus[0])[0]] {
        let (addr, handle) = (reserve(2 * PAGE), create(pool, PAGE, 1).expect("a handle"));
        assert_eq!(map(addr, PAGE, 0, handle), SUCCESS);
        assert_eq!(gpus.map(|gpu| get_access(addr, gpu)), [Err(INVALID_ALLOCATION); 2], "it was never set");
        assert!(gpus.iter().all(|&gpu| !reaches(gpu, addr)));
        let mut known = [None; 2];
        for (one, other) in [
            (Some(3), None),
            (None, Some(1)),
            (Some(0), Some(2)),
            (Some(3), Some(3)),
            (None, Some(0)),
            (Some(0), None),
        ] {
            let list: Vec<_> =
                gpus.into_iter().zip([one, other]).filter_map(|(gpu, set)| Some((gpu, set?))).collect();
            assert_eq!(set_access(addr, PAGE, &list), SUCCESS);
            known = [one.or(known[0]), other.or(known[1])];
            for (gpu, permissions) in gpus.into_iter().zip(known) {
                assert_eq!(get_access(addr, gpu), permissions.ok_or(INVALID_ALLOCATION), "{list:?}");
                assert_eq!(get_access(addr + 100, gpu), permissions.ok_or(INVALID_ALLOCATION), "inside");
                // Access to read is access to write here.
                assert_eq!(
                    reaches(gpu, addr),
                    permissions.is_some_and(|permissions| permissions != 0),
                    "{gpu}: {known:?}"
                );
            }
        }
        assert_eq!(set_access(addr, PAGE, &[(gpus[0], 3)]), SUCCESS);
        assert!(!reaches(gpus[0], addr + PAGE as u64), "what is reserved only");
        assert_eq!(
            set_access(addr, PAGE, &[(gpus[0], 4)]),
            INVALID_ARGUMENT,
            "no permission has this number"
        );
        assert_eq!(set_access(addr, PAGE, &[(gpus[0], 0), (99, 3)]), INVALID_AGENT);
        assert_eq!(set_access(addr, PAGE, &[]), INVALID_ARGUMENT);
        assert_eq!(set_access(addr, 0, &[(gpus[0], 0)]), INVALID_ARGUMENT);
        assert_eq!(set_access(addr, 100, &[(gpus[0], 0)]), INVALID_ARGUMENT, "a part of the mapping");
        assert_eq!(
            set_access(addr + PAGE as u64, PAGE, &[(gpus[0], 0)]),
            INVALID_ALLOCATION,
            "nothing is mapped there"
        );
        assert_eq!(
            set_access(addr, 2 * PAGE, &[(gpus[0], 0)]),
            INVALID_ALLOCATION,
            "its second page is not mapped"
        );
        assert_eq!(get_access(addr, 99), Err(INVALID_AGENT));
        assert_eq!(get_access(addr + PAGE as u64, gpus[0]), Err(INVALID_ALLOCATION));
        assert_eq!(get_access(addr, gpus[0]), Ok(3), "nothing of this has changed it");
        assert_eq!(unmap(addr, PAGE), SUCCESS);
        assert!(!reaches(gpus[0], addr), "unmapped");
        assert_eq!(map(addr, PAGE, 0, handle), SUCCESS);
        assert_eq!(get_access(addr, gpus[0]), Err(INVALID_ALLOCATION), "a new mapping begins without");
        assert_eq!([unmap(addr, PAGE), give_back(addr, 2 * PAGE), release(handle)], [SUCCESS; 3]);
    }
}

#[test]
fn one_handle_at_two_addresses_is_one_memory() {
    let gpu = gpu();
    let (addr, handle) = (reserve(4 * PAGE), create(pools(gpu)[0], 2 * PAGE, 0).expect("a handle"));
    let second = addr + 2 * PAGE as u64;
    assert_eq!([map(addr, 2 * PAGE, 0, handle), map(second, 2 * PAGE, 0, handle)], [SUCCESS; 2]);
    // Mappings side by side get access at once.
    assert_eq!(set_access(addr, 4 * PAGE, &[(gpu, 3), (agents()[0], 3)]), SUCCESS);
    assert!(reaches(gpu, addr + 8) && reaches(gpu, second + 4));
    // SAFETY: memory of this test.
    unsafe {
        assert_eq!([word(second + 8).read(), word(addr + 4).read(), word(addr).read()], [1, 1, 0]);
        word(addr).write(77);
        assert_eq!(word(second).read(), 77);
    }
    // The handle may go: what is mapped stays.
    assert_eq!([release(handle), unmap(addr, 2 * PAGE)], [SUCCESS; 2]);
    // SAFETY: as above.
    assert_eq!(unsafe { word(second).read() }, 77);
    assert_eq!(map(addr, 2 * PAGE, 0, handle), INVALID_ARGUMENT, "nobody has the handle any more");
    let mut retained = 0u64;
    let status =
        hsa!(hsa_amd_vmem_retain_alloc_handle(&raw mut retained => *mut u64, second + 5 => u64) -> u32);
    assert_eq!((status, retained), (SUCCESS, handle), "but for the memory that is mapped");
    assert_eq!(map(addr, 2 * PAGE, 0, retained), SUCCESS);
    // SAFETY: as above.
    assert_eq!(unsafe { word(addr).read() }, 77);
    assert_eq!([unmap(addr, 2 * PAGE), unmap(second, 2 * PAGE), give_back(addr, 4 * PAGE)], [SUCCESS; 3]);
    assert_eq!([release(retained), release(retained)], [SUCCESS, INVALID_ALLOCATION]);
    let status = hsa!(hsa_amd_vmem_retain_alloc_handle(&raw mut retained => *mut u64, second => u64) -> u32);
    assert_eq!(status, INVALID_ALLOCATION, "nothing is mapped there");
}

#[test]
fn a_handle_is_exported_as_a_descriptor() {
    let gpu = gpu();
    let pool = pools(gpu)[0];
    let handle = create(pool, PAGE, 1).expect("a handle");
    let mut descriptor = -1i32;
    let mut export = |handle: u64| hsa!(hsa_amd_vmem_export_shareable_handle(&raw mut descriptor => *mut i32, handle => u64, 0 => u64) -> u32);
    assert_eq!(
        [export(0), export(u64::MAX), export(handle)],
        [INVALID_ALLOCATION, INVALID_ALLOCATION, SUCCESS]
    );
    let import = |descriptor: i32| {
        let mut handle = 0u64;
        let status =
            hsa!(hsa_amd_vmem_import_shareable_handle(descriptor => i32, &raw mut handle => *mut u64) -> u32);
        answer(status, handle)
    };
    assert_eq!(import(descriptor), Ok(handle), "it is known here");
    assert_eq!([release(handle), release(handle), release(handle)], [SUCCESS, SUCCESS, INVALID_ALLOCATION]);
    // The descriptor alone keeps the memory.
    let again = import(descriptor).expect("a handle");
    let addr = reserve(PAGE);
    assert_eq!([map(addr, PAGE, 0, again), set_access(addr, PAGE, &[(gpu, 3)])], [SUCCESS; 2]);
    assert!(reaches(gpu, addr));
    assert_eq!([unmap(addr, PAGE), give_back(addr, PAGE), release(again)], [SUCCESS; 3]);
    // SAFETY: the descriptor is this test's.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY) };
    for other in [-1, i32::MAX, null] {
        assert_eq!(import(other), Err(INVALID_ALLOCATION), "descriptor {other}");
    }
    // SAFETY: as above.
    assert_eq!(unsafe { [libc::close(descriptor), libc::close(null)] }, [0; 2]);
    let nowhere =
        hsa!(hsa_amd_vmem_import_shareable_handle(0 => i32, std::ptr::null_mut() => *mut u64) -> u32);
    assert_eq!(nowhere, INVALID_ARGUMENT);
}

#[test]
fn an_allocation_is_exported_as_a_descriptor_once_it_is_a_gpus() {
    let agents = agents();
    let export = |addr: u64, len_bytes: usize| {
        let (mut descriptor, mut offset) = (-1i32, 9u64);
        let status = hsa!(hsa_amd_portable_export_dmabuf(
            addr => u64, len_bytes => usize, &raw mut descriptor => *mut i32, &raw mut offset => *mut u64) -> u32);
        answer(status, (descriptor, offset))
    };
    let close = |descriptor: i32| hsa!(hsa_amd_portable_close_dmabuf(descriptor => i32) -> u32);
    let memory = crate::library::Memory::of(pools(agents[1])[0], 3 * PAGE);
    memory.words().fill(5);
    for (first, len_bytes) in [(0, 3 * PAGE), (0, 1), (PAGE, PAGE), (2 * PAGE, PAGE)] {
        let (descriptor, offset) = export(memory.addr + first as u64, len_bytes).expect("a descriptor");
        assert_eq!(offset, first as u64);
        let mut bytes = [0u8; 4];
        // SAFETY: the test's own bytes.
        let read = unsafe { libc::pread(descriptor, bytes.as_mut_ptr().cast::<c_void>(), 4, offset as i64) };
        assert_eq!((read, u32::from_ne_bytes(bytes)), (4, 5), "its bytes are the memory's");
        assert_eq!(close(descriptor), SUCCESS);
    }
    assert!(memory.words().iter().all(|&word| word == 5));
    assert!(reaches(agents[1], memory.addr), "kernels still reach it");
    assert_eq!(memory.words()[0], 1);
    for (addr, len_bytes) in [(0, PAGE), (memory.addr, 0)] {
        assert_eq!(export(addr, len_bytes), Err(INVALID_ARGUMENT));
    }
    for (addr, len_bytes) in [(memory.addr, 4 * PAGE), (memory.addr + 3 * PAGE as u64, 1), (8, 8)] {
        assert_eq!(export(addr, len_bytes), Err(INVALID_ALLOCATION));
    }
    let hosts = crate::library::Memory::new(PAGE);
    assert_eq!(export(hosts.addr, PAGE), Err(INVALID_AGENT), "only memory of GPUs is exported");
    assert_eq!([close(-1), close(i32::MAX)], [RESOURCE_FREE; 2]);
}
