//! Kernels that want much memory while they run: they get what the session may have, and no more.

use crate::attacker::{Attack, KERNELS, MEMORY_MAX, loops};
use hipr_proto::{HipError, op};
use hipr_tests::{Gpu, WorkerProcess, args, eventually};

/// Scratch of a wave of the kernel that hoards it.
const WAVE_BYTES: u64 = 64 * (128 << 10);

/// Launches `grid` workgroups of `waves` waves that use all of their scratch and do not end.
fn hoard(attack: &mut Attack<'_>, stream: u64, grid: u32, waves: u32) {
    let (stop, out) = (attack.stop, attack.stop.part(8, 8));
    attack.gpu.launch_on(stream, "hoard", grid, 64 * waves, 0, args![stop, out]);
}

#[test]
fn groups_begin_only_with_their_scratch() {
    for worker in loops() {
        for streams in [1, 20] {
            let mut attack = Attack::begin(&worker);
            for _ in 0..streams {
                let create = op::StreamCreate { flags: 1, priority: 0 };
                let stream = attack.gpu.wire().call(&create).expect("a stream").stream;
                hoard(&mut attack, stream, 10_000, 1);
            }
            for _ in 0..20 {
                attack.serve_others();
                attack.check_memory();
            }
            eventually("groups are executed", || attack.taken_bytes() >= 4 * WAVE_BYTES);
            // What is used up for scratch is not there for allocations.
            let rest = op::Malloc { size: MEMORY_MAX - WAVE_BYTES, flags: 0 };
            assert_eq!(attack.gpu.wire().call(&rest).map(drop), Err(HipError::OUT_OF_MEMORY));
            attack.leave();
        }
    }
}

#[test]
fn a_group_that_cannot_have_its_scratch_fails_and_others_do_not() {
    for worker in loops() {
        let mut attack = Attack::begin(&worker);
        let total = attack.gpu.zeroed::<u32>(1);
        hoard(&mut attack, 0, 3, 16);
        attack.gpu.launch("count", 1, 1, 0, args![total]);
        assert_eq!(attack.gpu.synchronize(), Err(HipError::LAUNCH_OUT_OF_RESOURCES));
        assert_eq!(attack.gpu.synchronize(), Ok(()), "reported once");
        assert_eq!(attack.gpu.download(total), [1]);
    }
}

/// Checks that kernels which wait for each other's scratch all get their turn.
#[test]
fn kernels_wait_for_scratch_that_others_have() {
    fn check(worker: &WorkerProcess) {
        let mut gpu = Gpu::open(worker.address(), KERNELS);
        let stop = gpu.upload(&[1u32]);
        let out = gpu.zeroed::<u32>(1024);
        let streams: Vec<u64> = (0..8)
            .map(|_| gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream)
            .collect();
        gpu.synchronize().expect("uploaded");
        for round in 0..3 {
            for (index, &stream) in streams.iter().enumerate() {
                let waves = [1, 2, 5][(index + round) % 3];
                gpu.launch_on(stream, "hoard", 4, 64 * waves, 0, args![stop, out]);
            }
        }
        assert_eq!(gpu.synchronize(), Ok(()));
    }
    loops().iter().for_each(check);
}
