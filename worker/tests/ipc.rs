//! Tests of memory and events that two sessions of one worker share.

mod common;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult};
use hipr_worker::{Config, Worker};

const INVALID: HipResult<()> = Err(HipError::INVALID_VALUE);
const INTERPROCESS: u32 = 2 | 4;

impl Peer {
    fn filled(&mut self, size: u64, value: i32) -> u64 {
        let dst = self.call(&Malloc { size, flags: 0 }).unwrap().device_ptr;
        self.call(&Memset { dst, value, size, stream: 0 }).unwrap();
        self.call(&DeviceSynchronize {}).unwrap();
        dst
    }

    fn bytes(&mut self, src: u64, size: u64) -> HipResult<Vec<u8>> {
        let copy = Memcpy { dst: 0, src, size, kind: kind::DEVICE_TO_HOST, stream: 0 };
        self.call_inline(&copy, &[]).map(|(_, bytes)| bytes)
    }

    fn handle_of(&mut self, device_ptr: u64) -> HipResult<[u8; 64]> {
        self.call(&IpcGetMemHandle { device_ptr }).map(|reply| reply.handle)
    }

    fn open(&mut self, handle: [u8; 64], flags: u32) -> HipResult<u64> {
        self.call(&IpcOpenMemHandle { handle, flags }).map(|reply| reply.device_ptr)
    }
}

#[test]
fn what_is_opened_can_be_used_and_closed_but_not_freed() {
    let worker = worker("sim");
    let (mut lender, mut borrower) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    let ptr = lender.filled(1000, 7);
    let handle = lender.handle_of(ptr).unwrap();
    assert_eq!(borrower.handle_of(ptr).map(drop), INVALID, "another's address");
    assert_eq!(lender.handle_of(ptr + 1).map(drop), INVALID);
    assert_eq!(borrower.open(handle, 2).map(drop), INVALID, "unknown flags");
    let there = borrower.open(handle, 1).unwrap();
    assert_eq!(borrower.bytes(there, 1000), Ok(vec![7; 1000]));
    assert_eq!(borrower.bytes(there + 1, 1000).map(drop), INVALID, "its length is known");
    borrower.call(&Memset { dst: there, value: 9, size: 1000, stream: 0 }).unwrap();
    borrower.call(&DeviceSynchronize {}).unwrap();
    assert_eq!(lender.bytes(ptr, 1000), Ok(vec![9; 1000]));
    for refused in [
        borrower.call(&Free { device_ptr: there }),
        borrower.call(&FreeAsync { device_ptr: there, stream: 0 }),
        borrower.call(&IpcCloseMemHandle { device_ptr: there + 8 }),
        lender.call(&IpcCloseMemHandle { device_ptr: ptr }),
    ] {
        assert_eq!(refused, INVALID);
    }
    // The lender's end takes nothing from who has it.
    lender.call(&Free { device_ptr: ptr }).unwrap();
    assert_eq!(borrower.bytes(there, 1000), Ok(vec![9; 1000]));
    assert_eq!(borrower.call(&IpcCloseMemHandle { device_ptr: there }), Ok(()));
    assert_eq!(borrower.bytes(there, 1).map(drop), INVALID);
    assert_eq!(borrower.open(handle, 0).map(drop), INVALID, "nobody has it any more");
}

#[test]
fn only_device_memory_of_no_pool_is_shared() {
    let worker = worker("sim");
    let mut peer = Peer::hello(worker.local_addr());
    let host = peer.call(&MallocHost { size: 64, flags: 0 }).unwrap().device_ptr;
    assert_eq!(peer.handle_of(host).map(drop), INVALID);
    let pooled = peer.call(&MallocAsync { size: 64, stream: 0 }).unwrap().device_ptr;
    assert_eq!(peer.handle_of(pooled).map(drop), INVALID);
    let event = peer.call(&EventCreate { flags: 0 }).unwrap().event;
    let refused = peer.call(&IpcGetEventHandle { event });
    assert_eq!(refused.map(drop), Err(HipError::INVALID_CONFIGURATION), "it keeps time");
    let unknown = peer.call(&IpcGetEventHandle { event: event + 1 });
    assert_eq!(unknown.map(drop), Err(HipError::INVALID_HANDLE));
}

/// Memory that its owner has freed but another session still uses counts against that session's limit.
#[test]
fn what_is_opened_counts_against_the_limits() {
    let mut config = Config::new(device("sim"));
    config.listen = "127.0.0.1:0".into();
    config.session.memory_max_bytes = 1500;
    let worker = Worker::bind(config).unwrap().spawn().unwrap();
    let (mut lender, mut borrower) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    let open_next = |lender: &mut Peer, borrower: &mut Peer| {
        let ptr = lender.filled(1000, 1);
        let handle = lender.handle_of(ptr).unwrap();
        let opened = borrower.open(handle, 0);
        lender.call(&Free { device_ptr: ptr }).unwrap();
        opened
    };
    let first = open_next(&mut lender, &mut borrower).unwrap();
    assert_eq!(open_next(&mut lender, &mut borrower), Err(HipError::OUT_OF_MEMORY));
    let own = borrower.call(&Malloc { size: 501, flags: 0 });
    assert_eq!(own.map(drop), Err(HipError::OUT_OF_MEMORY));
    borrower.call(&IpcCloseMemHandle { device_ptr: first }).unwrap();
    open_next(&mut lender, &mut borrower).unwrap();
}

#[test]
fn a_shared_event_is_recorded_by_one_and_waited_for_by_the_other() {
    let worker = worker("sim");
    let (mut lender, mut borrower) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    let event = lender.call(&EventCreate { flags: INTERPROCESS }).unwrap().event;
    let handle = lender.call(&IpcGetEventHandle { event }).unwrap().handle;
    let opened = borrower.call(&IpcOpenEventHandle { handle }).unwrap().event;
    for round in 0..20u8 {
        let ptr = lender.filled(1 << 16, 0);
        let shared = lender.handle_of(ptr).unwrap();
        let there = borrower.open(shared, 0).unwrap();
        lender.call(&Memset { dst: ptr, value: round.into(), size: 1 << 16, stream: 0 }).unwrap();
        lender.call(&EventRecord { event, stream: 0 }).unwrap();
        borrower.call(&StreamWaitEvent { stream: 0, event: opened, flags: 0 }).unwrap();
        assert_eq!(borrower.bytes(there, 1 << 16), Ok(vec![round; 1 << 16]), "in stream order");
        assert_eq!(borrower.call(&EventSynchronize { event: opened }), Ok(()));
    }
    assert_eq!(lender.call(&EventDestroy { event }), Ok(()));
    assert_eq!(borrower.call(&EventQuery { event: opened }), Ok(()), "it has its own");
}
