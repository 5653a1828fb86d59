//! Counters of a process's activity, for measurements.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_client::Stats;

/// Number of calls of HIP functions.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Counts a call of a HIP function; returns its number, from 1 on.
pub(crate) fn count_call() -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}

/// Sets the count to 0, in a forked child.
pub(crate) fn reset() {
    CALLS.store(0, Ordering::Relaxed);
}

/// Appends a line of JSON to the file that `HIPR_STATS_FILE` names: the number of calls, the number
/// of pages of memory on both sides that were compared, and the counters of the connection.
/// One line per process, so that a program may start others.
pub(crate) fn write_file(connection: Stats, pages_compared: u64) {
    let calls = CALLS.load(Ordering::Relaxed);
    let Some(path) = std::env::var_os("HIPR_STATS_FILE").filter(|path| !path.is_empty() && calls > 0) else {
        return;
    };
    let line = line(std::process::id(), calls, pages_compared, connection);
    let file = OpenOptions::new().append(true).create(true).open(&path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        tracing::warn!("cannot write {}: {error}", path.display());
    }
}

fn line(pid: u32, calls: u64, pages_compared: u64, connection: Stats) -> String {
    let mut line = format!("{{\"pid\":{pid},\"calls\":{calls},\"pages_compared\":{pages_compared}");
    for (name, count) in connection.entries() {
        // Writing to a String does not fail.
        let _ = write!(line, ",\"{name}\":{count}");
    }
    line.push_str("}\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object() {
        let stats = Stats { frames_sent: 3, round_trips: 2, ..Stats::default() };
        assert_eq!(
            line(7, 5, 4, stats),
            "{\"pid\":7,\"calls\":5,\"pages_compared\":4,\"frames_sent\":3,\"frames_received\":0,\"bytes_sent\":0,\"bytes_received\":0,\
             \"writes\":0,\"round_trips\":2,\"cache_bytes_saved\":0,\"packed_bytes_saved\":0}\n"
        );
    }
}
