//! Checks that unanswered requests allocate nothing, and replies only what the outbox grows by.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hipr_proto::op::{LaunchArgs, Param};
use hipr_proto::{FLAG_NO_REPLY, Limits, Outbox, Outcome, Rx, Sender, Server, Wire, op};
use support::request;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no counter any more, and none of them is asked.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: everything is the system allocator's; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8; 100]))), 1);
}

/// Returns the bytes of 1000 launches and 1000 copies of 100 bytes each.
fn batch() -> Vec<u8> {
    let launch = op::LaunchKernel { num_args: 1, ..Wire::ZERO };
    let mut args = Vec::new();
    LaunchArgs::put(&[Param { offset: 0, size: 8 }], &[1; 8], &mut args);
    let copy = op::Memcpy { size: 100, kind: op::kind::HOST_TO_DEVICE, ..Wire::ZERO };
    (0..1000)
        .flat_map(|id| {
            [request(&launch, id, FLAG_NO_REPLY, &args), request(&copy, id, FLAG_NO_REPLY, &[2; 100])]
                .concat()
        })
        .collect()
}

#[test]
fn a_server_allocates_nothing_for_unanswered_requests() {
    let bytes = batch();
    let mut server = Server::<Vec<u8>>::new(Limits::default());
    // In pieces that cut headers, fixed parts and tails.
    let allocated = allocations(|| {
        let mut requests = 0;
        for piece in bytes.chunks(1021) {
            let mut input = piece;
            loop {
                match server.handle_input(&mut input).expect("good bytes") {
                    Rx::Request { ticket, .. } => {
                        server.complete(ticket, Outcome::ok(&())).expect("in order");
                        requests += 1;
                    }
                    Rx::Data { .. } => {}
                    Rx::NeedMore | Rx::Paused => break,
                }
            }
        }
        assert_eq!(requests, 2000);
    });
    assert_eq!(allocated, 0);
}

#[test]
fn replies_allocate_a_few_times_a_batch() {
    let bytes: Vec<u8> =
        (0..1000).flat_map(|id| request(&op::Malloc { size: 1, flags: 0 }, id, 0, &[])).collect();
    let mut server = Server::<Vec<u8>>::new(Limits::default());
    let mut outbox = Outbox::new();
    let allocated = allocations(|| {
        let mut input = bytes.as_slice();
        while let Ok(Rx::Request { ticket, .. }) = server.handle_input(&mut input) {
            server.complete(ticket, Outcome::ok(&op::MallocReply { device_ptr: 1 })).expect("in order");
        }
        server.poll_transmit(&mut outbox);
    });
    assert_eq!(outbox.len_bytes(), 1000 * 36);
    assert!(allocated < 20, "{allocated} allocations");
}

#[test]
fn a_client_allocates_nothing_once_its_buffer_is_there() {
    let mut sender = Sender::<Vec<u8>>::new();
    let mut outbox = Outbox::new();
    let mut send = |outbox: &mut Outbox<Vec<u8>>| {
        for _ in 0..100 {
            sender.request(&op::Free { device_ptr: 1 }, &[], None).expect("room");
        }
        sender.poll_transmit(outbox);
        outbox.advance(outbox.len_bytes());
    };
    // Two buffers take turns.
    send(&mut outbox);
    send(&mut outbox);
    assert_eq!(allocations(|| (0..100).for_each(|_| send(&mut outbox))), 0);
}
