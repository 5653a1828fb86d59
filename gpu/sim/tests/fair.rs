//! Tests of how the time of the device's threads is shared: who asks for much does not hold up who asks for little.

mod session;

use hipr_device::{Context as _, Region, Share, WaitFor};
use hipr_proto::HipError;
use hipr_sim::{Config, Gpu};
use session::{LEVELS, Session, Values, gpu};
use std::num::NonZero;

const NON_BLOCKING: u32 = 1;
/// Number of grids that one session has queued, each on a stream of its own.
const GRIDS: u64 = 1024;
/// Workgroups of such a grid.
const GROUPS: u32 = 1 << 20;
/// The most workgroups of these grids that may begin beside the three commands of another session, each of which is done in one turn. A
/// turn of each grid before each of them would be 3,072; on a machine with nothing else to do it is about 30.
const MOST: u32 = 512;

/// Checks how many groups of endless grids begin while another session copies their count, runs a small kernel and copies it again.
fn check(threads: usize, block: u32) {
    let gpu = gpu(threads);
    let (mut hog, mut victim) = (Session::open(&gpu), Session::open(&gpu));
    let (begun, wrong) = (hog.buffer(&[0]), hog.buffer(&[0]));
    let handle = hog.context.share_memory(begun, 0).unwrap();
    let (count, _) = victim.context.open_memory(&handle, 0, 4096).unwrap();
    let (before, after, out) = (victim.buffer(&[0]), victim.buffer(&[0]), victim.malloc(256));
    let narrow = victim.kernel(LEVELS[1].1, "narrow");
    let meet = hog.kernel(LEVELS[1].1, "meet");
    // Each group counts itself and waits for all the others.
    let values = Values::new().u64(begun).u64(wrong).u32(1);
    for _ in 0..GRIDS {
        let stream = hog.context.stream_create(NON_BLOCKING, 0).unwrap();
        hog.launch_on(stream, meet, GROUPS, block, &values).unwrap();
    }
    let stream = victim.context.stream_create(NON_BLOCKING, 0).unwrap();
    for round in 0..5 {
        victim.context.copy(Region::flat(before, 4), Region::flat(count, 4), stream).unwrap();
        victim.launch_on(stream, narrow, 1, 64, &Values::new().u64(out)).unwrap();
        victim.context.copy(Region::flat(after, 4), Region::flat(count, 4), stream).unwrap();
        victim.sync(WaitFor::Stream(stream)).unwrap();
        let groups = victim.read(after, 1)[0] - victim.read(before, 1)[0];
        assert!(groups <= MOST, "{groups} groups began meanwhile in round {round}");
    }
    assert_eq!(victim.read(out, 64), [1; 64]);
}

#[test]
fn a_thousand_grids_of_one_session_do_not_hold_up_a_kernel_of_another() {
    for (threads, block) in [(1, 64), (1, 1024), (2, 64), (2, 256)] {
        check(threads, block);
    }
}

/// Checks that groups which wait for others that have not begun go on beside a session that never rests.
#[test]
fn groups_that_wait_for_each_other_begin_although_others_want_all_the_time() {
    for block in [64, 1024] {
        let gpu = gpu(1);
        let (mut hog, mut session) = (Session::open(&gpu), Session::open(&gpu));
        let spin = hog.kernel(LEVELS[1].1, "spin");
        let never = hog.buffer(&[0]);
        hog.launch(spin, 7, 256, &Values::new().u64(never)).unwrap();
        let meet = session.kernel(LEVELS[1].1, "meet");
        let (arrived, wrong) = (session.buffer(&[0]), session.buffer(&[0]));
        session.launch(meet, 20, block, &Values::new().u64(arrived).u64(wrong).u32(3)).unwrap();
        session.sync_all().unwrap();
        assert_eq!((session.read(arrived, 1), session.read(wrong, 1)), (vec![60], vec![0]));
    }
}

/// Runs grids of sessions that never end, each of a tenant with a weight, on one thread; returns how many workgroups of each session
/// began, from when all had until the first had begun so many.
fn begun(sessions: &[(u64, u32)], first: u32) -> Vec<u32> {
    let gpu = gpu(1);
    let mut observer = Session::open(&gpu);
    let mut all = Vec::new();
    for &(tenant, weight) in sessions {
        let mut session = Session::open(&gpu);
        session.context.set_share(Share { tenant, weight, kernel_timeout: None });
        let (total, wide) = (session.buffer(&[0]), session.buffer(&[0, 0]));
        let handle = session.context.share_memory(total, 0).unwrap();
        let (seen, _) = observer.context.open_memory(&handle, 0, 4096).unwrap();
        let count = session.kernel(LEVELS[1].1, "count");
        session.launch(count, u32::MAX / 64, 64, &Values::new().u64(total).u64(wide).u64(1)).unwrap();
        all.push((session, seen));
    }
    let mut counts = || -> Vec<u32> { all.iter().map(|&(_, seen)| observer.read(seen, 1)[0] / 64).collect() };
    let before = loop {
        let counts = counts();
        if !counts.contains(&0) {
            break counts;
        }
    };
    loop {
        let begun: Vec<_> = counts().iter().zip(&before).map(|(now, before)| now - before).collect();
        if begun[0] >= first {
            return begun;
        }
    }
}

/// How much of its turn a session really has is the machine's business, so many turns are counted, and the shares are far apart; the
/// exact shares are tested where time is a number.
#[test]
fn tenants_get_time_by_their_weights_and_share_it_among_their_sessions() {
    let counts = begun(&[(7, 1), (8, 20)], 20_000);
    assert!(counts[1] > 2 * counts[0], "weights 1 and 20: {counts:?}");
    let counts = begun(&[(7, 1), (7, 1), (7, 1), (7, 1), (7, 1), (7, 1), (8, 1)], 40_000);
    let (tenant, other) = (counts[..6].iter().sum::<u32>(), counts[6]);
    assert!(
        other > 2 * counts[0] && other < 2 * tenant,
        "six sessions of one tenant beside one of another: {counts:?}"
    );
}

/// Number of workgroups beside which a tenant pays back what it owes for one turn of 4 ms.
const PAID_BACK_BESIDE: u32 = 200_000;

/// Returns how many workgroups of a tenant's endless grid begin while another one's grid of so many groups is executed, where an instruction
/// counts as so much time. The device itself notes the numbers, as commands before and behind that grid.
fn begun_beside(groups: u32, weight: u32, beside: u32) -> u32 {
    let (threads, memory_bytes) = (NonZero::new(1), Some(256 << 20));
    let config = Config { threads, memory_bytes, instruction_ns: Some(20), ..Config::default() };
    let gpu = Gpu::new(config).unwrap();
    let (mut endless, mut session) = (Session::open(&gpu), Session::open(&gpu));
    endless.context.set_share(Share { tenant: 7, weight: beside, kernel_timeout: None });
    session.context.set_share(Share { tenant: 8, weight, kernel_timeout: None });
    let values = |session: &mut Session| {
        let (total, wide) = (session.buffer(&[0]), session.buffer(&[0, 0]));
        (total, Values::new().u64(total).u64(wide).u64(1))
    };
    let (total, arguments) = values(&mut endless);
    let handle = endless.context.share_memory(total, 0).unwrap();
    let (seen, _) = session.context.open_memory(&handle, 0, 4096).unwrap();
    let count = endless.kernel(LEVELS[1].1, "count");
    endless.launch(count, u32::MAX / 64, 64, &arguments).unwrap();
    let (count, noted) = (session.kernel(LEVELS[1].1, "count"), session.buffer(&[0, 0]));
    let (own, arguments) = values(&mut session);
    // What the endless grid took while nobody else wanted anything is owed by its tenant, and paid back beside this one.
    session.launch(count, PAID_BACK_BESIDE, 64, &arguments).unwrap();
    session.context.copy(Region::flat(noted, 4), Region::flat(seen, 4), 0).unwrap();
    session.launch(count, groups, 64, &arguments).unwrap();
    session.context.copy(Region::flat(noted + 4, 4), Region::flat(seen, 4), 0).unwrap();
    session.sync_all().unwrap();
    assert_eq!(session.read(own, 1), [(PAID_BACK_BESIDE + groups) * 64]);
    let noted = session.read(noted, 2);
    noted[1].wrapping_sub(noted[0]) / 64
}

/// Both execute the same kernel, so that groups count instructions; nothing of it is measured in time.
#[test]
fn tenants_get_instructions_by_their_weights() {
    const GROUPS: u32 = 20_000;
    for (weight, beside) in [(1, 3), (3, 1), (1, 1), (2, 3)] {
        let (begun, expected) = (begun_beside(GROUPS, weight, beside), GROUPS / weight * beside);
        assert!(
            begun.abs_diff(expected) <= expected / 10,
            "weights {weight} and {beside}: {begun} groups beside {GROUPS}, and not {expected}"
        );
    }
}

#[test]
fn the_kernels_of_a_tenant_end_when_their_time_is_over() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let kernel_timeout = Some(std::time::Duration::from_millis(20));
    session.context.set_share(Share { tenant: 7, weight: 1, kernel_timeout });
    let spin = session.kernel(LEVELS[1].1, "spin");
    let never = session.buffer(&[0]);
    session.launch(spin, 7, 256, &Values::new().u64(never)).unwrap();
    assert_eq!(session.sync_all(), Err(HipError::LAUNCH_TIME_OUT));
}
