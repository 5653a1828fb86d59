//! Tests of allocation, bounds, copies and fills through the public API.

mod session;

use std::task::Poll;

use hipr_device::{Context as _, MemoryKind, Region};
use hipr_proto::HipError;
use session::{Session, gpu};

#[test]
fn copies_and_fills_are_checked_to_the_byte() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let ptr = session.malloc(100);
    let context = &mut session.context;
    let invalid = Err(HipError::INVALID_VALUE);
    for region in
        [Region::flat(ptr, 101), Region::flat(ptr + 100, 1), Region::flat(ptr - 1, 2), Region::flat(0, 4)]
    {
        let len = region.len_bytes().unwrap();
        assert_eq!(context.enqueue_write(region, vec![0; len as usize].into(), 0), invalid);
        assert_eq!(context.fill(region, 0, 1, 0), invalid);
        assert_eq!(context.copy(Region::flat(ptr, len.min(100)), region, 0), invalid);
        assert_eq!(context.copy(region, Region::flat(ptr, len.min(100)), 0), invalid);
        assert_eq!(context.read(&region, 0, &mut [0]), invalid);
        assert_eq!(context.write(&region, 0, &[0]), invalid);
    }
    assert_eq!(context.enqueue_write(Region::flat(ptr, 4), vec![0; 5].into(), 0), invalid);
    assert_eq!(context.fill(Region::flat(ptr, 4), 0, 3, 0), invalid);
    assert_eq!(context.fill(Region::flat(ptr, 4), 0, 1, 77), Err(HipError::INVALID_HANDLE));
    let huge = Region { ptr, pitch: u64::MAX, slice: u64::MAX, width: 1, height: u64::MAX, depth: 2 };
    assert_eq!(context.fill(huge, 0, 1, 0), invalid);
    assert_eq!(session.sync_all(), Ok(()));
}

#[test]
fn commands_of_a_stream_run_in_order() {
    let gpu = gpu(2);
    let mut session = Session::open(&gpu);
    let (a, b) = (session.malloc(4096), session.malloc(4096));
    for round in 0..200u32 {
        let context = &mut session.context;
        context.enqueue_write(Region::flat(a, 4096), vec![round as u8; 4096].into(), 0).unwrap();
        context.copy(Region::flat(b, 4096), Region::flat(a, 4096), 0).unwrap();
        context.fill(Region::flat(a, 4096), 0xffff_ffff, 4, 0).unwrap();
        context.copy(Region::flat(a + 1024, 1024), Region::flat(b, 1024), 0).unwrap();
    }
    session.sync_all().unwrap();
    let expected: Vec<u8> =
        [(0xff, 1024), (199, 1024), (0xff, 2048)].iter().flat_map(|&(byte, n)| vec![byte; n]).collect();
    assert_eq!(session.read_bytes(a, 4096), expected);
    assert_eq!(session.read_bytes(b, 4096), vec![199; 4096]);
}

#[test]
fn two_dimensional_copies_touch_their_rows_only() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let (a, b) = (session.malloc(64 * 5), session.malloc(100));
    session.context.fill(Region::flat(a, 64 * 5), 0xaa, 1, 0).unwrap();
    let rows = Region { ptr: a + 3, pitch: 64, slice: 0, width: 20, height: 5, depth: 1 };
    let packed = Region { ptr: b, pitch: 20, slice: 100, width: 20, height: 5, depth: 1 };
    session.context.enqueue_write(packed, (0..100).collect(), 0).unwrap();
    session.context.copy(rows, packed, 0).unwrap();
    session.sync_all().unwrap();
    let bytes = session.read_bytes(a, 64 * 5);
    for (i, &byte) in bytes.iter().enumerate() {
        let (row, column) = (i / 64, i % 64);
        let expected = if (3..23).contains(&column) { (row * 20 + column - 3) as u8 } else { 0xaa };
        assert_eq!(byte, expected, "byte {i}");
    }
    let mut out = [0; 30];
    session.context.read(&rows, 35, &mut out).unwrap();
    assert_eq!(out, std::array::from_fn(|i| 35 + i as u8));
}

#[test]
fn large_transfers_are_whole() {
    let gpu = gpu(2);
    let mut session = Session::open(&gpu);
    let len = 40 << 20;
    let (a, b) = (session.malloc(len), session.malloc(len));
    session.context.fill(Region::flat(a, len), 0x0403_0201, 4, 0).unwrap();
    session.context.copy(Region::flat(b + 1, len - 1), Region::flat(a, len - 1), 0).unwrap();
    session.sync_all().unwrap();
    let bytes = session.read_bytes(b, len as usize);
    assert_eq!(bytes[0], 0);
    assert!(bytes[1..].iter().enumerate().all(|(i, &byte)| byte == (i % 4 + 1) as u8));
}

#[test]
fn memory_is_shared_by_contexts_and_given_back() {
    let gpu = gpu(1);
    let (_, total) = gpu.mem_info();
    let mut one = Session::open(&gpu);
    let mut two = Session::open(&gpu);
    let ptr = one.malloc(200 << 20);
    assert_eq!(two.context.malloc(100 << 20, MemoryKind::Device, 0), Err(HipError::OUT_OF_MEMORY));
    assert_eq!(two.context.mem_info(), Ok((total - (200 << 20), total)));
    assert_eq!(two.context.malloc(0, MemoryKind::Host, 0), Err(HipError::INVALID_VALUE));
    // The other context does not know the address.
    assert_eq!(two.context.poll_free(ptr), Poll::Ready(Err(HipError::INVALID_VALUE)));
    assert_eq!(two.context.fill(Region::flat(ptr, 1), 0, 1, 0), Err(HipError::INVALID_VALUE));
    assert_eq!(one.wait(|context| context.poll_free(ptr + 256)), Err(HipError::INVALID_VALUE));
    one.wait(|context| context.poll_free(ptr)).unwrap();
    assert_eq!(one.wait(|context| context.poll_free(ptr)), Err(HipError::INVALID_VALUE));
    assert_eq!(gpu.mem_info(), (total, total));
    two.malloc(100 << 20);
    drop(two);
    assert_eq!(gpu.mem_info(), (total, total));
}

#[test]
fn a_reset_releases_everything_and_old_addresses_stay_dead() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let (ptr, stream) = (session.malloc(64), session.context.stream_create(0, 0).unwrap());
    session.context.reset().unwrap();
    let (free, total) = gpu.mem_info();
    assert_eq!(free, total);
    let fresh = session.malloc(64);
    assert_ne!(fresh, ptr);
    assert_eq!(session.context.fill(Region::flat(ptr, 1), 0, 1, 0), Err(HipError::INVALID_VALUE));
    assert_eq!(session.context.fill(Region::flat(fresh, 1), 0, 1, stream), Err(HipError::INVALID_HANDLE));
}

#[test]
fn asynchronous_frees_follow_the_stream() {
    let gpu = gpu(2);
    let mut session = Session::open(&gpu);
    let stream = session.context.stream_create(1, 0).unwrap();
    let kept = session.malloc(4 << 20);
    for round in 0..50 {
        let context = &mut session.context;
        let ptr = context.malloc_async(4 << 20, stream).unwrap();
        context.fill(Region::flat(ptr, 4 << 20), round, 1, stream).unwrap();
        context.copy(Region::flat(kept, 4 << 20), Region::flat(ptr, 4 << 20), stream).unwrap();
        context.free_async(ptr, stream).unwrap();
        assert_eq!(context.free_async(ptr, stream), Err(HipError::INVALID_VALUE));
        session.sync_all().unwrap();
        assert_eq!(session.context.fill(Region::flat(ptr, 1), 0, 1, stream), Err(HipError::INVALID_VALUE));
    }
    assert_eq!(session.read_bytes(kept, 4 << 20), vec![49; 4 << 20]);
}
