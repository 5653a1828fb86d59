//! Tests of memory and events that contexts share with each other.

mod session;

use std::task::Poll;

use hipr_device::{Context as _, Region, WaitFor};
use hipr_proto::HipError;
use session::{Gate, Session, gpu};

const NON_BLOCKING: u32 = 1;
/// Flags of an event that can be shared: hipEventDisableTiming and hipEventInterprocess.
const FOR_OTHERS: u32 = 2 | 4;
/// Memory limit of the borrowing context in bytes.
const ROOM: u64 = 4096;
const NOT_READY: Result<(), HipError> = Err(HipError::NOT_READY);

#[test]
fn memory_is_shared_until_the_last_one_frees_it() {
    let gpu = gpu(1);
    let (mut lender, mut borrower) = (Session::open(&gpu), Session::open(&gpu));
    let ptr = lender.buffer(&[1, 2, 3]);
    let handle = lender.context.share_memory(ptr, 0).unwrap();
    assert_eq!(lender.context.share_memory(ptr, 0), Ok(handle), "one allocation, one handle");
    assert_eq!(lender.context.share_memory(ptr + 4, 0), Err(HipError::INVALID_VALUE));
    assert_eq!(lender.context.open_memory(&handle, 0, ROOM), Err(HipError::INVALID_CONTEXT), "it is there");
    assert_eq!(borrower.context.open_memory(&[7; 64], 0, ROOM), Err(HipError::INVALID_VALUE));
    assert_eq!(borrower.context.open_memory(&handle, 0, 11), Err(HipError::OUT_OF_MEMORY));
    let (free_bytes, _) = gpu.mem_info();
    let (there, len_bytes) = borrower.context.open_memory(&handle, 0, ROOM).unwrap();
    assert_eq!((len_bytes, gpu.mem_info().0), (12, free_bytes), "no memory of its own");
    assert_eq!(borrower.context.share_memory(there, 0), Err(HipError::INVALID_VALUE), "not its own to lend");
    assert_eq!(borrower.read(there, 3), [1, 2, 3]);
    borrower.context.fill(Region::flat(there + 4, 4), 9, 4, 0).unwrap();
    borrower.sync_all().unwrap();
    assert_eq!(lender.read(ptr, 3), [1, 9, 3]);
    assert_eq!(lender.wait(|context| context.poll_free(ptr)), Ok(()));
    assert_eq!(borrower.read(there, 3), [1, 9, 3]);
    assert_eq!(gpu.mem_info().0, free_bytes, "somebody has it");
    assert_eq!(borrower.wait(|context| context.poll_free(there)), Ok(()));
    assert_eq!(gpu.mem_info().0, free_bytes + 12);
    assert_eq!(borrower.context.open_memory(&handle, 0, ROOM), Err(HipError::INVALID_VALUE), "it is gone");
}

#[test]
fn the_end_of_a_lender_leaves_its_memory_to_who_has_it() {
    let gpu = gpu(1);
    let (mut lender, mut borrower) = (Session::open(&gpu), Session::open(&gpu));
    let ptr = lender.buffer(&[5]);
    let handle = lender.context.share_memory(ptr, 0).unwrap();
    let (there, _) = borrower.context.open_memory(&handle, 0, ROOM).unwrap();
    drop(lender);
    assert_eq!(borrower.read(there, 1), [5]);
    borrower.context.reset().unwrap();
    assert_eq!(borrower.context.open_memory(&handle, 0, ROOM), Err(HipError::INVALID_VALUE));
}

#[test]
fn a_borrowed_event_orders_streams_of_two_contexts() {
    let gpu = gpu(2);
    let (mut lender, mut borrower) = (Session::open(&gpu), Session::open(&gpu));
    let word = lender.buffer(&[0]);
    let handle = lender.context.share_memory(word, 0).unwrap();
    let (there, _) = borrower.context.open_memory(&handle, 0, ROOM).unwrap();
    let timed = lender.context.event_create(0).unwrap();
    assert_eq!(lender.context.share_event(timed), Err(HipError::INVALID_CONFIGURATION));
    let event = lender.context.event_create(FOR_OTHERS).unwrap();
    let handle = lender.context.share_event(event).unwrap();
    assert_eq!(borrower.context.open_event(&[7; 64]), Err(HipError::INVALID_VALUE));
    let borrowed = borrower.context.open_event(&handle).unwrap();
    assert_eq!(borrower.context.query(WaitFor::Event(borrowed)), Ok(()), "never recorded");

    let gate = Gate::close(&mut lender, 0);
    lender.context.fill(Region::flat(word, 4), 3, 4, 0).unwrap();
    lender.context.event_record(event, 0).unwrap();
    assert_eq!(borrower.context.query(WaitFor::Event(borrowed)), NOT_READY);
    let stream = borrower.context.stream_create(NON_BLOCKING, 0).unwrap();
    borrower.context.stream_wait_event(stream, borrowed, 0).unwrap();
    let copy = borrower.buffer(&[0]);
    borrower.context.copy(Region::flat(copy, 4), Region::flat(there, 4), stream).unwrap();
    assert!(borrower.context.poll_sync(WaitFor::Stream(stream)).is_pending());
    gate.open(&mut lender);
    // Only the other context's work wakes this one.
    assert_eq!(borrower.sync(WaitFor::Stream(stream)), Ok(()));
    assert_eq!(borrower.read(copy, 1), [3]);
    assert_eq!(borrower.sync(WaitFor::Event(borrowed)), Ok(()));

    // The other way round: what the borrower records, the lender waits for.
    let gate = Gate::close(&mut borrower, 0);
    borrower.context.event_record(borrowed, 0).unwrap();
    assert_eq!(lender.context.poll_sync(WaitFor::Event(event)), Poll::Pending);
    gate.open(&mut borrower);
    assert_eq!(lender.sync(WaitFor::Event(event)), Ok(()));
}

#[test]
fn who_waits_for_a_context_that_ends_goes_on() {
    let gpu = gpu(1);
    let (mut lender, mut borrower) = (Session::open(&gpu), Session::open(&gpu));
    let event = lender.context.event_create(FOR_OTHERS).unwrap();
    let handle = lender.context.share_event(event).unwrap();
    let borrowed = borrower.context.open_event(&handle).unwrap();
    let _gate = Gate::close(&mut lender, 0);
    lender.context.event_record(event, 0).unwrap();
    borrower.context.stream_wait_event(0, borrowed, 0).unwrap();
    assert!(borrower.context.poll_sync(WaitFor::Device).is_pending());
    drop(lender);
    assert_eq!(borrower.sync(WaitFor::Device), Ok(()));
}
