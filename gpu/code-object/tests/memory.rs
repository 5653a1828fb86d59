//! Measures what malicious zstd frames cost the process, including what libzstd allocates. It has one test only, because
//! memory is counted for the whole process.
#![cfg(target_os = "linux")]

mod common;

use common::{claiming, data, long_matches_zstd_stream, raw_zstd_stream};
use hipr_code_object::{Limits, decompress, image_len};

/// Returns the maximum resident memory of the process in bytes.
fn peak_resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn frames_cost_what_they_yield() {
    // A window of 2 GiB around a short bundle, and a block that would unpack to 7.8 GB.
    let streams = [raw_zstd_stream(&data("one.bundle"), 21), long_matches_zstd_stream()];
    let before = peak_resident_bytes();
    for stream in &streams {
        for claim in [64 << 20, 1 << 30] {
            assert!(decompress(&claiming(2, claim, stream), Limits::default()).is_err());
            let _ = image_len(&claiming(1, claim, stream));
        }
    }
    let cost = peak_resident_bytes() - before;
    assert!(cost < 16 << 20, "{cost}");

    // The count would have seen it.
    let used = std::hint::black_box(vec![1u8; 64 << 20]);
    assert!(peak_resident_bytes() - before > used.len() / 2);
}
