//! Tests of memory through the C functions, against a worker whose scripted device has real memory and records its launches.

mod support;

use std::path::Path;
use std::ptr::null_mut;

use hipr_abi::{
    hipDeviceAttributeConcurrentManagedAccess, hipDeviceAttributeDirectManagedMemAccessFromHost,
    hipDeviceAttributeFineGrainSupport, hipDeviceAttributeHostNativeAtomicSupported,
    hipDeviceAttributePageableMemoryAccess, hipDeviceAttributePageableMemoryAccessUsesHostPageTables,
    hipDeviceAttributeWarpSize,
};
use support::hip::*;
use support::{is_program, log_lines, program, run, run_counted, scripted};

/// Runs a program against a scripted device, and returns the device afterwards.
fn on_a_device(name: &str) -> hipr_worker::device::script::Script {
    let (worker, script) = scripted();
    script.define_kernel("iota", 16, &[(0, 8), (8, 4), (12, 4)]);
    let stderr = run(program(name, worker.local_addr()));
    assert_eq!(log_lines(&stderr), Vec::<&str>::new());
    // A program does not wait for the end of its session if nothing can fail any more.
    while script.live().contexts > 0 {
        std::thread::yield_now();
    }
    script
}

fn good(code: i32) {
    assert_eq!(code, 0, "hipSuccess");
}

fn allocate(size: usize) -> Ptr {
    let mut ptr = null_mut();
    // SAFETY: a C call with a good pointer.
    good(unsafe { hipMalloc(&mut ptr, size) });
    ptr
}

fn counting(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
#[ignore = "a program that other tests run"]
fn program_copies() {
    if !is_program() {
        return;
    }
    // From what fits into one message to what is received in pieces.
    for len in [1, 100, 4096, 4097, 70_000, 3_000_001] {
        let sent = counting(len);
        let mut back = vec![0; len];
        let (a, b) = (allocate(len), allocate(len));
        // SAFETY: C calls with good pointers.
        unsafe {
            good(hipMemcpy(a, sent.as_ptr().cast(), len, H2D));
            good(hipMemcpy(b, a, len, D2D));
            good(hipMemcpy(back.as_mut_ptr().cast(), b, len, D2H));
            assert_eq!(back, sent, "{len} bytes there and back");
            // Addresses say where they are, whatever the kind says.
            good(hipMemset(b, 9, len));
            good(hipMemcpy(b, a, len, DEFAULT));
            back.fill(0);
            good(hipMemcpy(back.as_mut_ptr().cast(), b, len, DEFAULT));
            assert_eq!(back, sent);
            // A part of it.
            let (from, to) = (len / 3, len - len / 4);
            good(hipMemset(a.add(from), 0xab, to - from));
            good(hipMemcpyAsync(back.as_mut_ptr().cast(), a, len, D2H, null_mut()));
            let mut want = sent.clone();
            want[from..to].fill(0xab);
            assert_eq!(back, want);
            assert_eq!(hipMemcpy(a.add(1), sent.as_ptr().cast(), len, H2D), 1, "one byte too many");
            assert_eq!(hipMemcpy(back.as_mut_ptr().cast(), a.add(1), len, D2H), 1, "one byte too many");
            assert_eq!(
                hipMemcpy(back.as_mut_ptr().cast(), sent.as_ptr().cast(), len, H2D),
                1,
                "no device memory"
            );
            assert_eq!(hipMemcpy(a, sent.as_ptr().cast(), len, 17), 21, "no such kind");
            good(hipFree(a));
            assert_eq!(hipFree(a), 1, "it was freed");
            good(hipFree(b));
        }
    }
    good(unsafe_sync());
}

fn unsafe_sync() -> i32 {
    // SAFETY: a C call without parameters.
    unsafe { hipDeviceSynchronize() }
}

#[test]
fn copies_in_all_directions() {
    let script = on_a_device("program_copies");
    assert_eq!(script.live().allocations, 0);
}

#[test]
#[ignore = "a program that other tests run"]
fn program_copies_rows() {
    if !is_program() {
        return;
    }
    let (width, height, host_pitch, pitch) = (300, 20, 333, 512);
    let sent = counting(host_pitch * height);
    let device = allocate(pitch * height);
    let mut back = vec![0u8; host_pitch * height];
    // SAFETY: C calls with good pointers.
    unsafe {
        good(hipMemset(device, 0xee, pitch * height));
        good(hipMemcpy2D(device, pitch, sent.as_ptr().cast(), host_pitch, width, height, H2D));
        good(hipMemcpy2D(back.as_mut_ptr().cast(), host_pitch, device, pitch, width, height, D2H));
        for (row, (got, want)) in back.chunks(host_pitch).zip(sent.chunks(host_pitch)).enumerate() {
            assert_eq!(got[..width], want[..width], "row {row}");
            assert!(got[width..].iter().all(|byte| *byte == 0), "what is between the rows is left alone");
        }
        let mut all = vec![0u8; pitch * height];
        good(hipMemcpy(all.as_mut_ptr().cast(), device, all.len(), D2H));
        assert!(all.chunks(pitch).all(|row| row[width..].iter().all(|byte| *byte == 0xee)));

        good(hipMemset2D(device, pitch, 0x11, 5, height));
        good(hipMemsetD16(device.add(6), 0x2233, 2));
        good(hipMemcpy(all.as_mut_ptr().cast(), device, all.len(), D2H));
        assert_eq!(all[..11], [0x11, 0x11, 0x11, 0x11, 0x11, sent[5], 0x33, 0x22, 0x33, 0x22, sent[10]]);
        assert_eq!(all[pitch * 19..][..6], [0x11, 0x11, 0x11, 0x11, 0x11, sent[host_pitch * 19 + 5]]);
        assert_eq!(
            hipMemcpy2D(device, 10, sent.as_ptr().cast(), host_pitch, width, height, H2D),
            12,
            "rows overlap"
        );
        assert_eq!(
            hipMemcpy2D(device, pitch, sent.as_ptr().cast(), host_pitch, width, 21, H2D),
            1,
            "a row too many"
        );
    }
}

#[test]
fn copies_of_rows() {
    on_a_device("program_copies_rows");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_shares_memory() {
    if !is_program() {
        return;
    }
    let len = 3 * 4096 + 5;
    // SAFETY: C calls with good pointers; what they give is used within its size.
    unsafe {
        for is_managed in [true, false] {
            let mut shared = null_mut();
            if is_managed {
                good(hipMallocManaged(&mut shared, len, 1));
            } else {
                good(hipHostMalloc(&mut shared, len, 0));
            }
            let host = std::slice::from_raw_parts_mut(shared.cast::<u8>(), len);
            host.copy_from_slice(&counting(len));

            let mut device = null_mut();
            good(hipHostGetDevicePointer(&mut device, shared, 0));
            let plain = allocate(len);
            // The device sees what the host wrote, also the second time.
            for round in 0..2u8 {
                host[round as usize * 5000] = round + 100;
                good(hipMemcpy(plain, device, len, D2D));
                let mut seen = vec![0; len];
                good(hipMemcpy(seen.as_mut_ptr().cast(), plain, len, D2H));
                assert_eq!(seen, host, "round {round}");
            }
            // The host sees what the device wrote, and keeps what it wrote beside it meanwhile.
            good(hipMemsetAsync(device.add(4000), 0x5a, 200, null_mut()));
            host[3999] = 1;
            host[4200] = 2;
            unsafe_sync();
            assert_eq!((host[3999], host[4200]), (1, 2));
            assert!(host[4000..4200].iter().all(|byte| *byte == 0x5a));
            // ... which the device then gets.
            good(hipMemcpy(plain, device, len, D2D));
            let mut seen = vec![0; len];
            good(hipMemcpy(seen.as_mut_ptr().cast(), plain, len, D2H));
            assert_eq!(seen, host);

            let mut attribute = std::mem::zeroed::<PointerAttribute>();
            good(hipPointerGetAttributes(&mut attribute, shared.add(10)));
            assert_eq!(attribute.kind, if is_managed { 3 } else { 1 });
            assert_eq!(attribute.host_pointer, shared.add(10));
            assert_eq!(attribute.device_pointer, device.add(10));
            good(hipFree(plain));
            if is_managed {
                good(hipHostFree(shared));
                assert_eq!(hipFree(shared), 1);
            } else {
                // Either function frees both.
                good(hipFree(shared));
                assert_eq!(hipHostFree(shared), 1);
            }
        }
    }
}

#[test]
fn memory_that_host_and_device_share() {
    let script = on_a_device("program_shares_memory");
    assert_eq!(script.live().allocations, 0);
}

/// Size of shared memory, larger than anything else that a program receives.
const SHARED_BYTES: usize = 1 << 20;

#[test]
#[ignore = "a program that other tests run"]
fn program_waits_more_often_than_it_works() {
    if !is_program() {
        return;
    }
    let (mut shared, mut device, mut stream, mut event) = (null_mut(), null_mut(), null_mut(), null_mut());
    let plain = allocate(SHARED_BYTES);
    // SAFETY: C calls with good pointers; what they give is used within its size.
    unsafe {
        good(hipHostMalloc(&mut shared, SHARED_BYTES, 0));
        good(hipHostGetDevicePointer(&mut device, shared, 0));
        good(hipStreamCreate(&mut stream));
        good(hipEventCreate(&mut event));
        good(hipMemsetAsync(device, 7, 100, stream));
        good(hipEventRecord(event, stream));
        for _ in 0..5 {
            good(hipEventSynchronize(event));
            good(hipStreamSynchronize(stream));
            // What only reads it is nothing to be fetched after.
            good(hipMemcpyAsync(plain, device, SHARED_BYTES, D2D, stream));
        }
        let host = std::slice::from_raw_parts(shared.cast::<u8>(), SHARED_BYTES);
        assert!(host[..100].iter().all(|byte| *byte == 7), "what the device wrote is here");
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_asks_whether_memory_is_shared() {
    if !is_program() {
        return;
    }
    // Numbers of the attributes, which are what the scripted device says of each.
    let attribute = |number: i32| {
        let mut value = -1;
        // SAFETY: a C call with a good pointer.
        assert_eq!(unsafe { hipDeviceGetAttribute(&mut value, number, 0) }, 0);
        value
    };
    assert_eq!(attribute(hipDeviceAttributeWarpSize), hipDeviceAttributeWarpSize, "the device's own");
    for number in [
        hipDeviceAttributeFineGrainSupport,
        hipDeviceAttributeHostNativeAtomicSupported,
        hipDeviceAttributeConcurrentManagedAccess,
        hipDeviceAttributeDirectManagedMemAccessFromHost,
        hipDeviceAttributePageableMemoryAccess,
        hipDeviceAttributePageableMemoryAccessUsesHostPageTables,
    ] {
        assert_eq!(attribute(number), 0, "attribute {number} is about memory that the worker does not have");
    }
}

/// A real GPU shares memory with its host, which is not the program's.
#[test]
fn a_device_that_shares_memory_with_its_own_host_does_not_with_the_program() {
    on_a_device("program_asks_whether_memory_is_shared");
}

#[test]
fn what_the_device_wrote_is_fetched_once() {
    let (worker, _script) = scripted();
    let name = "program_waits_more_often_than_it_works";
    let mut whole = program(name, worker.local_addr());
    whole.env("HIPR_EXTENSION", "off");
    let (_, number) = run_counted(whole);
    let received = SHARED_BYTES as u64..2 * SHARED_BYTES as u64;
    assert!(received.contains(&number("bytes_received")), "{} bytes", number("bytes_received"));
    let (_, number) = run_counted(program(name, worker.local_addr()));
    let page = 4096..3 * 4096;
    assert!(page.contains(&number("bytes_received")), "{} bytes for one page", number("bytes_received"));
}

/// Size of memory that is much larger than what changes in it.
const LARGE_BYTES: usize = 64 << 20;

#[test]
#[ignore = "a program that other tests run"]
fn program_writes_five_bytes_of_large_memory() {
    if !is_program() {
        return;
    }
    let (mut shared, mut device) = (null_mut(), null_mut());
    // SAFETY: C calls with good pointers; what they give is used within its size.
    unsafe {
        good(hipHostMalloc(&mut shared, LARGE_BYTES, 0));
        good(hipHostGetDevicePointer(&mut device, shared, 0));
        let host = std::slice::from_raw_parts_mut(shared.cast::<u8>(), LARGE_BYTES);
        let places = [3, LARGE_BYTES / 2 + 4095, LARGE_BYTES - 1];
        for round in 1..=10u8 {
            for at in places {
                good(hipMemsetAsync(device.add(at), i32::from(round), 1, null_mut()));
            }
            // In two of the same pages.
            host[5] = round + 100;
            host[LARGE_BYTES - 2] = round + 101;
            good(hipDeviceSynchronize());
            assert!(places.iter().all(|at| host[*at] == round), "round {round}: what the device wrote");
            assert_eq!(
                (host[5], host[LARGE_BYTES - 2]),
                (round + 100, round + 101),
                "what the program wrote"
            );
        }
        let (sum, others) = (host.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 3 * 10 + 110 + 111);
        assert_eq!(sum, others, "and nothing else");
        good(hipHostFree(shared));
    }
}

#[test]
fn only_changed_pages_travel() {
    let (worker, _script) = scripted();
    let (_, number) = run_counted(program("program_writes_five_bytes_of_large_memory", worker.local_addr()));
    // Each of ten rounds: three pages here, two there, and the calls.
    assert!(number("bytes_received") < 10 * (3 * 4096 + 1000), "{} bytes here", number("bytes_received"));
    assert!(number("bytes_sent") < 10 * (2 * 4096 + 1000), "{} bytes there", number("bytes_sent"));
}

#[test]
#[ignore = "a program that other tests run"]
fn program_registers_memory() {
    if !is_program() {
        return;
    }
    let mut memory = counting(10_000);
    let ptr: Ptr = memory.as_mut_ptr().cast();
    let mut device = null_mut();
    // SAFETY: C calls with good pointers; the memory lives until it is unregistered.
    unsafe {
        assert_eq!(hipHostUnregister(ptr), 713, "hipErrorHostMemoryNotRegistered");
        good(hipHostRegister(ptr, 10_000, 0));
        assert_eq!(hipHostRegister(ptr.add(9_999), 1, 0), 712, "hipErrorHostMemoryAlreadyRegistered");
        good(hipHostGetDevicePointer(&mut device, ptr, 0));
        good(hipMemset(device.add(100), 0x77, 50));
        // The end of a registration is a point where the program may look.
        good(hipHostUnregister(ptr));
    }
    let mut want = counting(10_000);
    want[100..150].fill(0x77);
    assert_eq!(memory, want);
}

#[test]
fn memory_that_the_program_registers() {
    let script = on_a_device("program_registers_memory");
    assert_eq!(script.live().allocations, 0);
}

/// Returns a bundle with the kernel `iota`, which takes a pointer and two numbers of 32 bits.
fn bundle() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/prebuilt/async_memory.O0.co");
    std::fs::read(file).expect("a committed file")
}

#[test]
#[ignore = "a program that other tests run"]
fn program_launches() {
    if !is_program() {
        return;
    }
    #[repr(C)]
    struct Wrapper(u32, u32, *const u8, *const u8);
    let image = bundle();
    let wrapper = Wrapper(0x4849_5046, 1, image.as_ptr(), std::ptr::null());
    let key = 0u64;
    let key: *const std::ffi::c_void = (&raw const key).cast();
    let one = |x| Dim3 { x, y: 1, z: 1 };
    // SAFETY: C calls as a compiler emits them.
    unsafe {
        let modules = __hipRegisterFatBinary((&raw const wrapper).cast());
        let (name, none) = (c"iota".as_ptr(), null_mut());
        __hipRegisterFunction(modules, key, name, name, u32::MAX, none, none, none, none, null_mut());

        let mut pinned = null_mut();
        good(hipHostMalloc(&mut pinned, 4096, 0));
        *pinned.cast::<u32>() = 41;
        let mut registered = vec![7u8; 4096];
        let registered_ptr: Ptr = registered.as_mut_ptr().cast();
        good(hipHostRegister(registered_ptr, 4096, 0));
        let mut number = 42u32;
        // A pointer to memory that has another address on the device is replaced by that address.
        for mut pointer in [pinned, registered_ptr.wrapping_add(16)] {
            let number: Ptr = (&raw mut number).cast();
            let mut args: [Ptr; 3] = [(&raw mut pointer).cast(), number, number];
            good(hipLaunchKernel(key, one(3), one(64), args.as_mut_ptr(), 128, null_mut()));
        }
        let mut device = null_mut();
        good(hipHostGetDevicePointer(&mut device, registered_ptr, 0));
        assert_ne!(device, registered_ptr);
        let mut pointer = device.wrapping_add(16);
        let number: Ptr = (&raw mut number).cast();
        let mut args: [Ptr; 3] = [(&raw mut pointer).cast(), number, number];
        good(hipLaunchKernel(key, one(3), one(64), args.as_mut_ptr(), 128, null_mut()));

        let refused =
            |grid, block, lds| hipLaunchKernel(key, grid, block, std::ptr::null_mut(), lds, null_mut());
        assert_eq!(refused(one(0), one(64), 0), 9, "hipErrorInvalidConfiguration: no blocks");
        assert_eq!(refused(one(1), one(0), 0), 9, "hipErrorInvalidConfiguration: no threads");
        assert_eq!(refused(one(1), one(1), 0), 1, "hipErrorInvalidValue: no arguments");
        let unknown: *const std::ffi::c_void = number.cast_const();
        let code = hipLaunchKernel(unknown, one(1), one(1), args.as_mut_ptr(), 0, null_mut());
        assert_eq!(code, 98, "hipErrorInvalidDeviceFunction");
        good(unsafe_sync());
        good(hipHostUnregister(registered_ptr));
        good(hipHostFree(pinned));
        __hipUnregisterFatBinary(modules);
    }
}

#[test]
fn launches_arrive_as_they_were_made() {
    let script = on_a_device("program_launches");
    let launches = script.launches();
    assert_eq!(launches.len(), 3);
    for launch in &launches {
        assert_eq!((launch.kernel.as_str(), launch.grid, launch.block), ("iota", [3, 1, 1], [64, 1, 1]));
        assert_eq!(launch.shared_mem_bytes, 128);
        assert_eq!(launch.args.len(), 1, "one buffer for all arguments");
        assert_eq!(launch.args[0][8..12], 42u32.to_le_bytes());
    }
    let pointer = |n: usize| &launches[n].args[0][..8];
    assert_ne!(pointer(0), pointer(1));
    assert_eq!(pointer(1), pointer(2), "the host's address and the device's mean the same");
    assert_eq!(script.live().modules, 0, "unregistering unloads");
    assert_eq!(script.live().allocations, 0);
}
