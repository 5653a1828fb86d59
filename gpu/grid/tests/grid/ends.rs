//! Tests what a host is told of the ends of its grids.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hipr_grid::{Dispatch, Failure, GridSize, Needs};
use hipr_isa::Arch;
use hipr_isa::fault::{BadAddress, Cause};
use hipr_isa::gws::WaveSync;

use crate::bench::{Bench, CODE, MEMORY, Told, Wishes};

const S_ENDPGM: u32 = 0xbf81_0000;
/// s_branch -1
const FOR_EVER: [u32; 1] = [0xbf82_ffff];
/// The bytes of a test's memory.
const MEMORY_BYTES: u64 = 4096;

fn size(groups: u32) -> GridSize {
    GridSize::new([groups * 64, 1, 1], [64, 1, 1]).unwrap()
}

/// Executes a kernel on ten workgroups and returns why it has failed.
fn failure(words: &[u32], wishes: Wishes) -> Failure {
    let bench = Bench::new(Arch::default());
    bench.run(bench.dispatch(words, size(10), MEMORY_BYTES), wishes).unwrap_err()
}

fn fault(words: &[u32], wishes: Wishes) -> (Cause, u64) {
    match failure(words, wishes) {
        Failure::Fault(fault) => (fault.cause, fault.pc),
        other => panic!("{other}"),
    }
}

#[test]
fn faults_say_what_and_where() {
    // s_mov_b64 s[0:1], 0; s_load_dword s6, s[0:1], 0x0
    let load = [0xbe80_0180, 0xc002_0180, 0, S_ENDPGM];
    let access = BadAddress { addr: 0, len_bytes: 4 };
    assert_eq!(
        fault(&load, Wishes::default()),
        (Cause::IllegalAddress { lane: None, access, write: false }, CODE + 4)
    );
    // v_mov_b32 v2, -4; global_store_dword v2, v3, s[0:1]: the offset of a lane is not signed.
    let store = [0x7e04_02c4, 0xdc70_8000, 0x0000_0302, S_ENDPGM];
    let access = BadAddress { addr: MEMORY + 0xffff_fffc, len_bytes: 4 };
    assert_eq!(
        fault(&store, Wishes::default()),
        (Cause::IllegalAddress { lane: Some(0), access, write: true }, CODE + 4)
    );
    // s_trap 2
    assert_eq!(fault(&[0xbf92_0002], Wishes::default()), (Cause::Trap(2), CODE));
    assert_eq!(fault(&[0xbf80_0000 /* s_nop 0 */], Wishes::default()).0, Cause::BadPc);
}

#[test]
fn what_goes_on_for_ever_ends_at_its_limits() {
    let wishes = Wishes { instructions_max: 100_000, ..Wishes::default() };
    assert_eq!(fault(&FOR_EVER, wishes).0, Cause::InstructionLimit(100_000));
    let timeout = Duration::from_millis(20);
    let wishes = Wishes { timeout: Some(timeout), ..Wishes::default() };
    assert_eq!(fault(&FOR_EVER, wishes).0, Cause::TimeOut(timeout));
}

#[test]
fn a_grid_that_nobody_wants_is_not_done() {
    let (bench, wishes) = (Bench::new(Arch::default()), Wishes::default());
    let end = bench.begin(bench.dispatch(&FOR_EVER, size(10), MEMORY_BYTES), wishes.clone());
    assert!(end.try_recv().is_err());
    wishes.closed.store(true, Ordering::Relaxed);
    assert_eq!(end.recv().unwrap(), Err(Failure::Closed));
    // Also one that has not begun.
    let dispatch = bench.dispatch(&[S_ENDPGM], size(10), MEMORY_BYTES);
    assert_eq!(bench.run(dispatch, wishes), Err(Failure::Closed));
}

#[test]
fn what_does_not_fit_is_refused_and_what_does_waits_its_turn() {
    const LANE_BYTES: u32 = 256 << 10;
    let bench = Bench::new(Arch::default());
    let with = |dispatch: Dispatch, waves: u32| {
        let size = GridSize::new([waves * 64 * 5, 1, 1], [waves * 64, 1, 1]).unwrap();
        Dispatch { scratch_bytes: LANE_BYTES, size, ..dispatch }
    };
    let dispatch = || bench.dispatch(&[S_ENDPGM], size(1), MEMORY_BYTES);
    // 32 MiB are always there: two waves.
    bench.run(with(dispatch(), 2), Wishes::default()).unwrap();
    let refused = bench.run(with(dispatch(), 3), Wishes::default()).unwrap_err();
    let scratch = |waves: u64| waves * 64 * u64::from(LANE_BYTES);
    assert!(
        matches!(refused, Failure::NoMemory { groups: 1, needs: Needs { scratch_bytes, .. } } if scratch_bytes == scratch(3)),
        "{refused}"
    );
    // All groups of a cooperative grid together.
    let together = Dispatch { wave_sync: Some(Arc::new(WaveSync::for_groups(5))), ..with(dispatch(), 2) };
    let refused = bench.run(together, Wishes::default()).unwrap_err();
    assert!(
        matches!(refused, Failure::NoMemory { groups: 5, needs: Needs { scratch_bytes, .. } } if scratch_bytes == scratch(10)),
        "{refused}"
    );
    let ends: Vec<_> = (0..8).map(|_| bench.begin(with(dispatch(), 2), Wishes::default())).collect();
    assert!(ends.iter().all(|end| end.recv().unwrap() == Ok(())));
}

#[test]
fn a_panic_ends_the_grid_and_not_the_threads() {
    let bench = Bench::new(Arch::default());
    let run = |panics: bool| {
        let dispatch = bench.dispatch(&[S_ENDPGM], size(10), MEMORY_BYTES);
        bench.run(dispatch, Wishes { panics, ..Wishes::default() })
    };
    assert_eq!(run(true), Err(Failure::Panicked));
    assert_eq!(run(false), Ok(()));
    assert_eq!(bench.executors.count(), 3);
}

#[test]
fn interrupts_reach_the_host() {
    // s_mov_b32 m0, 23; s_sendmsg sendmsg(MSG_INTERRUPT); s_endpgm
    let words = [0xbefc_0097, 0xbf90_0001, S_ENDPGM];
    let (bench, told) = (Bench::new(Arch::default()), Arc::<Told>::default());
    let wishes = Wishes { interrupts: Some(Arc::clone(&told)), ..Wishes::default() };
    bench.run(bench.dispatch(&words, size(10), MEMORY_BYTES), wishes).unwrap();
    assert_eq!(*told.0.lock().unwrap(), [23; 10]);
    bench.run(bench.dispatch(&words, size(10), MEMORY_BYTES), Wishes::default()).unwrap();
}
