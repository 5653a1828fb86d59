//! Signals: their operations, waits by several threads, and handlers.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use crate::library::{INVALID_ARGUMENT, INVALID_SIGNAL, SUCCESS, Signal, hsa, symbol};

#[test]
fn every_operation_in_every_order_computes_what_it_says() {
    type Operation = unsafe extern "C" fn(u64, i64);
    type Exchange = unsafe extern "C" fn(u64, i64) -> i64;
    type Expected = fn(i64, i64) -> i64;
    type Cas = unsafe extern "C" fn(u64, i64, i64) -> i64;
    let orders = ["acq_rel", "acquire", "relaxed", "release", "scacq_screl", "scacquire", "screlease"];
    let operations: [(&str, Expected); 5] = [
        ("add", i64::wrapping_add),
        ("subtract", i64::wrapping_sub),
        ("and", |a, b| a & b),
        ("or", |a, b| a | b),
        ("xor", |a, b| a ^ b),
    ];
    let values = [0, 1, -1, 5, i64::MAX, i64::MIN, 0x1234_5678_9abc_def0];
    let signal = Signal::new(0);
    for order in orders {
        for (name, expected) in operations {
            let operation: Operation = symbol(&format!("hsa_signal_{name}_{order}"));
            for (before, operand) in values.iter().flat_map(|&a| values.map(|b| (a, b))) {
                signal.store(before);
                // SAFETY: a signal.
                unsafe { operation(signal.0, operand) };
                assert_eq!(
                    signal.load(),
                    expected(before, operand),
                    "{name}_{order} of {before} and {operand}"
                );
            }
        }
        let exchange: Exchange = symbol(&format!("hsa_signal_exchange_{order}"));
        let cas: Cas = symbol(&format!("hsa_signal_cas_{order}"));
        signal.store(7);
        // SAFETY: a signal.
        unsafe {
            assert_eq!(exchange(signal.0, 9), 7);
            assert_eq!(cas(signal.0, 8, 1), 9, "the value is not 8");
            assert_eq!(signal.load(), 9);
            assert_eq!(cas(signal.0, 9, 1), 9);
        }
        assert_eq!(signal.load(), 1);
    }
}

#[test]
fn waits_end_by_their_condition_or_their_time() {
    let holds: [fn(i64, i64) -> bool; 4] = [|a, b| a == b, |a, b| a != b, |a, b| a < b, |a, b| a >= b];
    let values = [0, 1, -1, i64::MAX, i64::MIN];
    for name in ["hsa_signal_wait_scacquire", "hsa_signal_wait_acquire", "hsa_signal_wait_relaxed"] {
        let wait: unsafe extern "C" fn(u64, u32, i64, u64, u32) -> i64 = symbol(name);
        for (value, than) in values.iter().flat_map(|&a| values.map(|b| (a, b))) {
            let signal = Signal::new(value);
            for (condition, holds) in (0..).zip(holds) {
                // A wait for what is there already returns at once, whatever its limit; another one when its time is over.
                let limit = if holds(value, than) { u64::MAX } else { 1000 };
                // SAFETY: a signal.
                assert_eq!(unsafe { wait(signal.0, condition, than, limit, condition % 2) }, value);
            }
        }
    }
}

#[test]
fn sixteen_threads_count_and_all_waiters_wake() {
    const THREADS: i64 = 16;
    const EACH: i64 = 2000;
    let signal = Signal::new(THREADS * EACH);
    let addr = signal.0;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                for _ in 0..EACH {
                    hsa!(hsa_signal_subtract_relaxed(addr => u64, 1 => i64) -> ());
                }
            });
        }
        for than in 1..=4 {
            let signal = &signal;
            scope.spawn(move || assert!(signal.wait_lt(than) < than));
        }
    });
    assert_eq!(signal.load(), 0);
}

#[test]
fn a_wait_for_any_names_the_one_that_changed() {
    let signals: Vec<_> = (0..5).map(|_| Signal::new(1)).collect();
    for changed in 0..signals.len() {
        signals.iter().for_each(|signal| signal.store(1));
        let mut handles: Vec<u64> = signals.iter().map(|signal| signal.0).collect();
        let (mut conditions, mut values, mut found) = ([0u32; 5], [0i64; 5], -7i64);
        thread::scope(|scope| {
            scope.spawn(|| signals[changed].store(0));
            let index = hsa!(hsa_amd_signal_wait_any(
                5 => u32, handles.as_mut_ptr() => *mut u64, conditions.as_mut_ptr() => *mut u32, values.as_mut_ptr() => *mut i64,
                u64::MAX => u64, 0 => u32, &raw mut found => *mut i64) -> u32);
            assert_eq!((index as usize, found), (changed, 0));
        });
    }
}

#[test]
fn a_handler_is_called_again_while_it_returns_true() {
    unsafe extern "C" fn count(value: i64, data: *mut c_void) -> bool {
        // SAFETY: the counters below, which outlive the calls.
        let counters = unsafe { &*data.cast::<[AtomicI64; 2]>() };
        counters[1].store(value, Ordering::SeqCst);
        counters[0].fetch_add(1, Ordering::SeqCst) < 2
    }
    type Handler = unsafe extern "C" fn(i64, *mut c_void) -> bool;
    let counters = Arc::new([AtomicI64::new(0), AtomicI64::new(0)]);
    let signal = Signal::new(5);
    let data = Arc::as_ptr(&counters).cast_mut().cast();
    let status = hsa!(hsa_amd_signal_async_handler(signal.0 => u64, 2 => u32, 3 => i64, count => Handler, data => *mut c_void) -> u32);
    assert_eq!(status, SUCCESS);
    signal.store(3);
    assert_eq!(counters[0].load(Ordering::SeqCst), 0, "3 is not less than 3");
    signal.store(2);
    while counters[0].load(Ordering::SeqCst) < 3 {
        thread::yield_now();
    }
    assert_eq!(counters[1].load(Ordering::SeqCst), 2);
}

#[test]
fn handles_that_are_none_are_refused() {
    for handle in [8, 64, u64::MAX, 0x2000_0000_0000 - 64, 0x7fff_ffff_ffc0] {
        assert_eq!(hsa!(hsa_signal_destroy(handle => u64) -> u32), INVALID_SIGNAL, "{handle:#x}");
        assert_eq!(hsa!(hsa_signal_load_relaxed(handle => u64) -> i64), 0, "{handle:#x}");
        hsa!(hsa_signal_store_relaxed(handle => u64, 1 => i64) -> ());
    }
    assert_eq!(hsa!(hsa_signal_destroy(0 => u64) -> u32), INVALID_ARGUMENT);
    let null = std::ptr::null_mut();
    let status =
        hsa!(hsa_signal_create(1 => i64, 0 => u32, std::ptr::null() => *const u64, null => *mut u64) -> u32);
    assert_eq!(status, INVALID_ARGUMENT);
}
