//! What a client can have written to a worker's log.

use super::elf::without_descriptor;
use super::{Case, Sent};
use crate::WireClient;
use hipr_proto::HipError;
use hipr_proto::op;

/// Number of code objects that are refused, each with a line in the log.
const TIMES: usize = 3_000;

/// Returns the cases; equal lines first, as what follows uses up what may be written.
pub(super) fn cases() -> [Case; 2] {
    [
        Case::new("3,000 times the same kernel name", |worker| {
            refused(&mut WireClient::open(worker.address), |_| forged(0))
        }),
        Case::new("3,000 kernel names that forge log lines", |worker| {
            refused(&mut WireClient::open(worker.address), forged)
        }),
    ]
}

/// Returns a name that ends its line, begins another one, clears a terminal and turns the rest around.
fn forged(number: usize) -> String {
    let line = "\n2026-01-01T00:00:00.000000Z  INFO the worker ends\r\x1b[2J\u{9b}31m\u{202e}\u{2028}";
    format!("kernel{number}{line}{}", "-".repeat(150))
}

fn refused(client: &mut WireClient, name: impl Fn(usize) -> String) -> Sent {
    let mut sent = Sent::default();
    for number in 0..TIMES {
        let image = without_descriptor(&name(number));
        sent.bytes += image.len() as u64;
        let load = op::ModuleLoadData { data_size: image.len() as u64 };
        let answer = client.call_with(&load, &[], Some(image)).result.map(|_| ());
        sent.is_right &= answer == Err(HipError::INVALID_IMAGE);
        sent.answered(answer);
    }
    sent
}
