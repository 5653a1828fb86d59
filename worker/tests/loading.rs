//! What takes long and is done apart from the dispatch, the loading of modules and the end of a session that has much: others are
//! served meanwhile.

mod common;

use common::{Peer, scripted, until};
use hipr_proto::op::*;
use hipr_proto::{HipError, ReplyMode};
use hipr_worker::DispatchOn;

/// Both ways to run the dispatch.
const DISPATCHES: [DispatchOn; 2] = [DispatchOn::Inline, DispatchOn::Thread];

#[test]
fn others_are_served_while_a_module_is_loaded() {
    for dispatch in DISPATCHES {
        let (worker, script) = scripted(|config| config.dispatch = dispatch);
        script.hold_loads();
        let (mut peer, mut other) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
        other.malloc(100);
        let module = peer.send(&ModuleLoadData { data_size: 4 }, b"code", ReplyMode::Always).expect("a call");
        let memory = peer.send(&Malloc { size: 100, flags: 0 }, &[], ReplyMode::Always).expect("a call");
        peer.flush();
        for _ in 0..50 {
            other.call(&GetDevice {}).expect("others are served");
        }
        assert_eq!((script.calls("module_load"), script.live().allocations), (0, 1));
        script.release_loads();
        let (loaded, _) = peer.reply::<ModuleLoadData>(module).expect("a module");
        peer.reply::<Malloc>(memory).expect("memory, afterwards");
        peer.call(&ModuleUnload { module: loaded.module }).expect("the module is there");
        let refused = peer.call_with(&ModuleLoadData { data_size: 0 }, &[]);
        assert_eq!(refused.map(drop), Err(HipError::INVALID_IMAGE));
        script.fail_next("module_load", HipError::NO_BINARY_FOR_GPU);
        let refused = peer.call_with(&ModuleLoadData { data_size: 4 }, b"code");
        assert_eq!(refused.map(drop), Err(HipError::NO_BINARY_FOR_GPU));
    }
}

#[test]
fn a_session_that_ends_while_its_module_is_loaded_leaves_nothing() {
    for dispatch in DISPATCHES {
        let (worker, script) = scripted(|config| {
            config.dispatch = dispatch;
            config.limits.linger_ms = 50;
        });
        script.hold_loads();
        let (mut peer, mut other) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
        other.malloc(100);
        peer.malloc(100);
        peer.forget(&ModuleLoadData { data_size: 4 }, b"code");
        peer.flush();
        drop(peer);
        until("the connection is closed", || worker.stats().io().connections() == 1);
        script.release_loads();
        until("its context is released", || script.live().contexts == 1);
        other.call(&GetDevice {}).expect("others are served");
    }
}

#[test]
fn a_panic_while_a_module_is_loaded_ends_its_session_only() {
    for dispatch in DISPATCHES {
        let (worker, script) = scripted(|config| config.dispatch = dispatch);
        script.hold_loads();
        let (mut peer, mut other) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
        other.malloc(100);
        peer.malloc(100);
        script.panic_next("module_load");
        peer.forget(&ModuleLoadData { data_size: 4 }, b"code");
        peer.flush();
        script.release_loads();
        assert!(peer.sees_end());
        until("its context is released", || script.live().contexts == 1);
        other.call(&GetDevice {}).expect("others are served");
        other.module_load();
    }
}

#[test]
fn others_are_served_while_a_session_ends_that_has_much() {
    for dispatch in DISPATCHES {
        let (worker, script) = scripted(|config| config.dispatch = dispatch);
        script.hold_ends();
        let (mut peer, mut other) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
        other.malloc(100);
        for _ in 0..2000 {
            peer.malloc(100);
        }
        drop(peer);
        until("the connection is closed", || worker.stats().io().connections() == 1);
        for _ in 0..50 {
            other.call(&GetDevice {}).expect("others are served");
        }
        assert_eq!(script.live().contexts, 2);
        script.release_ends();
        until("its context is released", || script.live().contexts == 1);
        other.call(&GetDevice {}).expect("others are served");
    }
}
