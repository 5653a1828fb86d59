//! What counts as memory of all sessions (`--memory-total`) and of a tenant's (`memory-total` in a line): whatever a session takes, the others
//! have so much less, and have it again when the session ends; in one process and with a process for each session. What a tenant has takes
//! nothing from another one.

use crate::attacker::KERNELS;
use crate::scene::{IDLE, MIB, Scene, TOTAL, end, fits, most};
use hipr_proto::op::{self, kind};
use hipr_proto::{Features, HipError, ReplyMode};
use hipr_tests::attack::large_launch;
use hipr_tests::{Gpu, WireClient, args, eventually};
use std::io::Write;

/// What a session may have besides what it was made to take: what is set aside for its kernels, its code and names.
const BESIDES: u64 = 48 * MIB;

/// Something that takes memory: its name, what takes it, and how much that is at least and at most. It returns what is to stay open.
type Kind = (&'static str, fn(&mut Gpu) -> Vec<WireClient>, u64, u64);

/// What a session can take.
const KINDS: &[Kind] = &[
    ("nothing but what its kernels have", |_| Vec::new(), 32 * MIB, 32 * MIB),
    ("device memory", |gpu| with(gpu, &op::Malloc { size: 40 * MIB, flags: 0 }), 40 * MIB, 40 * MIB),
    ("host memory", |gpu| with(gpu, &op::MallocHost { size: 40 * MIB, flags: 0 }), 40 * MIB, 40 * MIB),
    ("managed memory", |gpu| with(gpu, &op::MallocManaged { size: 40 * MIB, flags: 1 }), 40 * MIB, 40 * MIB),
    (
        "memory with a pitch",
        |gpu| with(gpu, &op::MemAllocPitch { width_in_bytes: 4096, height: 10 << 10, element_size: 4 }),
        40 * MIB,
        40 * MIB,
    ),
    ("memory in a batch", batch, 40 * MIB, 40 * MIB),
    (
        "registered memory",
        |gpu| with(gpu, &op::HostRegister { host_ptr: 1 << 40, size_bytes: 40 * MIB, flags: 0 }),
        40 * MIB,
        40 * MIB,
    ),
    ("what a pool keeps", pool, 40 * MIB, 40 * MIB),
    ("what a client may place", lease, 40 * MIB, TOTAL),
    ("code objects", code, 24 * MIB, 80 * MIB),
    ("names of events", events, 16 * MIB, 16 * MIB),
    ("nodes of graphs", graphs, 16 * MIB, 40 * MIB),
    ("unfinished commands", commands, 12 * MIB, 40 * MIB),
    ("replies that nobody reads", replies, 3 * MIB, 10 * MIB),
    ("copies of what its client knows", twins, 48 * MIB, 48 * MIB),
];

fn with<O: hipr_proto::Op>(gpu: &mut Gpu, op: &O) -> Vec<WireClient> {
    gpu.wire().call(op).expect("memory");
    Vec::new()
}

fn batch(gpu: &mut Gpu) -> Vec<WireClient> {
    let mut sizes = [0; 64];
    sizes[..40].fill(MIB);
    with(gpu, &op::MallocBatch { count: 40, pad: 0, sizes })
}

fn pool(gpu: &mut Gpu) -> Vec<WireClient> {
    let mem_pool = gpu.wire().call(&op::DeviceGetDefaultMemPool { device: 0 }).expect("a pool").mem_pool;
    // All that is free is kept.
    with(gpu, &op::MemPoolSetAttribute { mem_pool, attr: 4, reserved: 0, value: u64::MAX });
    let malloc = op::MallocFromPoolAsync { size: 40 * MIB, mem_pool, stream: 0 };
    let device_ptr = gpu.wire().call(&malloc).expect("memory").device_ptr;
    with(gpu, &op::FreeAsync { device_ptr, stream: 0 });
    with(gpu, &op::DeviceSynchronize {})
}

fn lease(gpu: &mut Gpu) -> Vec<WireClient> {
    with(gpu, &op::Offer { features: Features::PLACES.bits(), part: 0 });
    with(gpu, &op::MemLease { want_bytes: 40 * MIB })
}

fn code(gpu: &mut Gpu) -> Vec<WireClient> {
    let free = |gpu: &mut Gpu| gpu.wire().call(&op::MemGetInfo {}).expect("information").free_bytes;
    let before = free(gpu);
    let load = op::ModuleLoadData { data_size: KERNELS.len() as u64 };
    while free(gpu) + 32 * MIB > before {
        let loaded = gpu.wire().call_with(&load, &[], Some(KERNELS.to_vec()));
        loaded.result.expect("a module");
    }
    Vec::new()
}

fn events(gpu: &mut Gpu) -> Vec<WireClient> {
    for _ in 0..(16 << 20) / 512 {
        gpu.wire().forget(&op::EventCreate { flags: 0 });
    }
    with(gpu, &op::GetDevice {})
}

fn graphs(gpu: &mut Gpu) -> Vec<WireClient> {
    let graph = gpu.wire().call(&op::GraphCreate { flags: 0 }).expect("a graph").graph;
    for _ in 0..1000 {
        gpu.wire().call(&op::GraphAddEmptyNode { graph, num_deps: 0 }).expect("a node");
    }
    for _ in 0..(16 << 20) / 512 / 1000 {
        with(gpu, &op::GraphClone { original_graph: graph });
    }
    Vec::new()
}

fn commands(gpu: &mut Gpu) -> Vec<WireClient> {
    let stop = gpu.zeroed::<u32>(64);
    gpu.launch("spin", 1, 64, 0, args![stop]);
    let launch = large_launch(gpu);
    for _ in 0..200 {
        gpu.wire().stream().write_all(&launch).expect("sent");
    }
    // A session that stands still at its bounds would not answer.
    with(gpu, &op::GetDevice {})
}

fn replies(gpu: &mut Gpu) -> Vec<WireClient> {
    let src = gpu.wire().call(&op::Malloc { size: 64 * 1024, flags: 0 }).expect("memory").device_ptr;
    let read = op::Memcpy { dst: 0, src, size: 64 << 10, kind: kind::DEVICE_TO_HOST, stream: 0 };
    // More than the sockets hold.
    for _ in 0..1000 {
        gpu.wire().send(&read, &[], None, ReplyMode::Always);
    }
    Vec::new()
}

fn twins(gpu: &mut Gpu) -> Vec<WireClient> {
    let length = 24 * MIB;
    with(gpu, &op::Offer { features: Features::PAGES.bits(), part: 0 });
    let address = gpu.wire().call(&op::MallocHost { size: length, flags: 0 }).expect("memory").device_ptr;
    with(gpu, &op::MemWatch { address, length });
    let bytes = vec![1; 64 << 10];
    for at in (0..length).step_by(bytes.len()) {
        let push = op::MemPush { address: address + at, length: bytes.len() as u64, stream: 0 };
        gpu.wire().forget_with(&push, &[], Some(bytes.clone()));
    }
    with(gpu, &op::DeviceSynchronize {})
}

/// Takes what sessions can get until it is all there is, or time is over; returns the bytes.
///
/// A process that is held up on a busy machine may keep what it was lent until it is asked again, so a refusal is not the last word. What
/// they get may never be more than `total`.
pub(crate) fn take_all(sessions: &mut [WireClient], total: u64) {
    let mut taken = 0;
    let mut take = |size| {
        let before = taken;
        for session in &mut *sessions {
            let made = session.call(&op::Malloc { size, flags: 0 });
            assert!(made.is_ok() || made == Err(HipError::OUT_OF_MEMORY), "{made:?}");
            taken += if made.is_ok() { size } else { 0 };
        }
        assert!(taken <= total, "{} KiB of {}", taken >> 10, total >> 10);
        (taken > before, taken)
    };
    for size in [16 * MIB, MIB] {
        while take(size).0 {}
    }
    eventually("all of it is taken", || take(MIB / 8).1 >= total - MIB);
    while take(MIB / 8).0 {}
}

/// Whatever a session takes, another one with the same bound has so much less, and who has another bound has no less. What a session is
/// refused may be refused because a process was held up, on a busy machine; what is asserted is what it can have at last.
fn each_kind_counts(how: &str, has_keys: bool, memory_total: Option<&str>) {
    let scene = Scene::start(how, has_keys, memory_total);
    let mut other = WireClient::open(scene.same[0]);
    let mut apart: Vec<_> = scene.apart.iter().flatten().map(|address| WireClient::open(*address)).collect();
    let mut before = 0;
    eventually("one session can have nearly all", || {
        before = most(&mut other);
        before >= TOTAL - IDLE
    });
    assert!(before <= TOTAL, "{how}: {} MiB for one", before / MIB);
    for (index, (name, take, least, at_most)) in KINDS.iter().enumerate() {
        let (mut gpu, pid) = scene.session();
        let open = take(&mut gpu);
        let what = format!("{how}, {memory_total:?}: {name}");
        eventually(&format!("{what} is counted"), || !fits(&mut other, before - least + 2 * MIB));
        if *at_most < TOTAL {
            eventually(&format!("{what} is no more"), || fits(&mut other, before - at_most - BESIDES));
        }
        for apart in &mut apart {
            eventually(&format!("{what} takes nothing from others"), || fits(apart, TOTAL - IDLE));
        }
        drop(open);
        match pid.filter(|_| index % 2 == 1) {
            Some(pid) => end(pid),
            None => drop(gpu),
        }
        eventually(&format!("{what} is free again"), || fits(&mut other, before));
    }
}

#[test]
fn each_kind_of_memory_counts_among_all_sessions_of_a_process() {
    each_kind_counts("none", false, Some("512M"));
}

#[test]
fn each_kind_of_memory_counts_among_sessions_with_a_process_each() {
    each_kind_counts("process", false, Some("512M"));
}

#[test]
fn each_kind_of_memory_counts_among_a_tenants_sessions_of_a_process() {
    each_kind_counts("none", true, None);
}

#[test]
fn each_kind_of_memory_counts_among_a_tenants_sessions_with_a_process_each() {
    each_kind_counts("process", true, None);
}

#[test]
fn each_kind_of_memory_counts_among_a_tenants_sessions_within_a_bound_of_all() {
    for how in ["none", "process"] {
        each_kind_counts(how, true, Some("2G"));
    }
}

/// Memory that a session has opened counts for it, too, as its maker may have freed it. Only sessions in one process can do that with the
/// emulated GPU.
#[test]
fn memory_of_another_session_counts_for_whoever_opens_it() {
    for (how, has_keys) in [("none", false), ("process", false), ("none", true)] {
        let scene = Scene::start(how, has_keys, (!has_keys).then_some("512M"));
        let (mut maker, mut other) = (scene.session().0, WireClient::open(scene.same[0]));
        let before = most(&mut other);
        let device_ptr =
            maker.wire().call(&op::Malloc { size: 40 * MIB, flags: 0 }).expect("memory").device_ptr;
        let handle = maker.wire().call(&op::IpcGetMemHandle { device_ptr }).expect("a handle").handle;
        let mut opener = scene.session().0;
        let opened = opener.wire().call(&op::IpcOpenMemHandle { handle, flags: 0 });
        assert_eq!(opened.is_ok(), how == "none", "{how}: {opened:?}");
        let least = if opened.is_ok() { 80 * MIB } else { 40 * MIB };
        eventually("it is counted", || !fits(&mut other, before - least - 30 * MIB));
        eventually("no more is counted", || fits(&mut other, before - least - 48 * MIB));
        drop((maker, opener));
        eventually("all is free again", || fits(&mut other, before));
    }
}

/// What is set aside for a session's kernels is a 16th of the whole, also where each has a process; the whole is what a tenant may have, if
/// that is less.
#[test]
fn kernels_have_a_part_of_the_whole() {
    for how in ["none", "process"] {
        for (has_keys, total, expected) in [
            (false, "1G", Err(HipError::LAUNCH_OUT_OF_RESOURCES)),
            (false, "4G", Ok(())),
            (true, "4G", Err(HipError::LAUNCH_OUT_OF_RESOURCES)),
        ] {
            let scene = Scene::start(how, has_keys, Some(total));
            let mut gpu = scene.session().0;
            let (stop, out) = (gpu.upload(&[1u32]), gpu.zeroed::<u32>(64));
            // 128 MiB of scratch.
            gpu.launch("hoard", 1, 64 * 16, 0, args![stop, out]);
            assert_eq!(gpu.synchronize(), expected, "{how}, {total}");
        }
    }
}

/// Many sessions that take what they can get have no more than there is, and whoever comes last gets the last of it.
#[test]
fn sessions_that_take_all_have_no_more_than_there_is() {
    for how in ["none", "process"] {
        let scene = Scene::start(how, false, Some("512M"));
        let mut sessions: Vec<_> = (0..6).map(|_| WireClient::open(scene.same[0])).collect();
        take_all(&mut sessions, TOTAL);
        scene.worker.children().into_iter().for_each(end);
        drop(sessions);
        let mut last = WireClient::open(scene.same[0]);
        eventually("all of it is free again", || fits(&mut last, TOTAL - IDLE));
    }
}
