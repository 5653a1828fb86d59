//! What would avoid that calls take so long.

use crate::call::Call;
use crate::units::Bytes;

/// Bytes of a result that is looked at by itself, at most.
const SMALL_BYTES: u64 = 4096;
/// Bytes of an answer from which on they, not the round trip, are what takes long.
const LARGE_BYTES: u64 = 1 << 20;

/// Which functions do what a sentence is about.
fn is_one_of(function: &str, names: &[&str]) -> bool {
    let plain = function.strip_suffix("_spt").unwrap_or(function);
    names.contains(&plain)
}

/// Returns a sentence about calls that wait; `None` for those that do not.
pub(crate) fn advice(call: &Call) -> Option<String> {
    if call.waits == 0 {
        return None;
    }
    let Call { function, waits, received_bytes, device_ns, waited_ns, .. } = call;
    if call.connects {
        return Some(
            "The first call connects to the worker and learns what it has: this costs once for each process."
                .to_owned(),
        );
    }
    let each_bytes = received_bytes / waits;
    if device_ns * 2 > *waited_ns {
        return Some(
            "The device, not the network, takes this time: it does the work that was queued before."
                .to_owned(),
        );
    }
    if each_bytes >= LARGE_BYTES {
        return Some(format!(
            "{} came back: copy only what the program looks at, or compute on the device what it does with it.",
            Bytes(*received_bytes)
        ));
    }
    if function.contains("Memcpy") && each_bytes > 0 {
        return Some(if *waits > 1 && each_bytes <= SMALL_BYTES {
            format!(
                "{} {waits} times: each looks at a result and costs a round trip. Put results side by side on the device and copy them at once.",
                Bytes(each_bytes)
            )
        } else {
            "Each copy to the host looks at a result and costs a round trip.".to_owned()
        });
    }
    if is_one_of(function, &["hipStreamQuery", "hipEventQuery"]) {
        return Some("Each query that finds work unfinished asks the worker: wait for the event instead, or ask less often.".to_owned());
    }
    if function.contains("Synchronize") {
        return Some(
            "Waits for work that may still fail or show something: synchronize only before a result is looked at, or set HIPR_SYNC=lazy."
                .to_owned(),
        );
    }
    if is_one_of(function, &["hipMalloc", "hipHostMalloc", "hipMallocManaged", "hipExtMallocWithFlags"]) {
        return Some("The client had no memory left that it may place by itself, or none yet, and asked for some: keep memory instead of allocating anew.".to_owned());
    }
    if is_one_of(function, &["hipFree", "hipHostFree"]) {
        return Some(
            "Frees wait for the work that may use the memory: free at the end, or use hipFreeAsync."
                .to_owned(),
        );
    }
    if function.contains("Module") || function.contains("Launch") || function.contains("Library") {
        return Some("Code that is loaded for the first time is sent and checked: it costs this once for each code object.".to_owned());
    }
    Some(if *waits > call.count {
        "Each call asks the worker more than once.".to_owned()
    } else {
        "The worker is asked: each answer costs a round trip.".to_owned()
    })
}
