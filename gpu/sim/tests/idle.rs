//! Measures the memory and time that idle contexts, allocations and groups cost, in a process of its own.

#[path = "session/mod.rs"]
mod session;

use std::num::NonZero;

use hipr_sim::{Config, Gpu};
use session::{LEVELS, Session, Values};

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn idle_contexts_and_untouched_memory_cost_little() {
    const CONTEXTS: u64 = 2000;
    // The stack counts, however little is used of it.
    let config = Config { threads: NonZero::new(2), memory_bytes: Some(8 << 30), ..Config::default() };
    let gpu = Gpu::new(config).unwrap();
    let (threads, kib) = (status("Threads"), status("VmRSS"));
    let mut sessions: Vec<_> = (0..CONTEXTS).map(|_| Session::open(&gpu)).collect();
    assert_eq!(status("Threads"), threads);
    let each = status("VmRSS").saturating_sub(kib) * 1024 / CONTEXTS;
    assert!(each < 32 << 10, "{each} bytes each");
    let kib = status("VmRSS");
    let ptr = sessions[0].malloc(200 << 20);
    sessions[0].write(ptr + (100 << 20), &[1]);
    assert!(status("VmRSS").saturating_sub(kib) < 4 << 10);
    // As many groups under way as the hardware holds, each wave with a megabyte of stack of which it uses little.
    let meet = sessions[0].kernel(LEVELS[0].1, "meet");
    let (arrived, wrong) = (sessions[0].buffer(&[0]), sessions[0].buffer(&[0]));
    sessions[0].launch(meet, 304, 1024, &Values::new().u64(arrived).u64(wrong).u32(1)).unwrap();
    sessions[0].sync_all().unwrap();
    assert_eq!(sessions[0].read(arrived, 1), [304]);
    assert!(status("VmHWM").saturating_sub(kib) < 512 << 10);
}
