//! The calls of a client in `hipr bench clients`: bursts of small requests, of which the last is answered.

use crate::bench::program::launch;
use hipr_proto::op::{self, LaunchKernel, kind};
use hipr_proto::{Call, Client, Misuse};

/// Description of the calls for the report.
pub(super) const DESCRIPTION: &str = "in equal parts a synchronize, the free memory, an event recorded and queried, \
     16 launches and a synchronize, 1 KiB to the device with a fill and a synchronize, 1 KiB to the host";

/// Size of a small copy in bytes.
pub(super) const COPY_BYTES: usize = 1024;
static BYTES: [u8; COPY_BYTES] = [0x5a; COPY_BYTES];
const LAUNCHES: usize = 16;

/// The protocol state of a connection; its inline bytes are constants of this module.
pub(super) type Protocol = Client<&'static [u8]>;

/// The objects that a client has created on the worker.
pub(super) struct Owned {
    pub(super) function: u64,
    pub(super) buffer: u64,
    pub(super) event: u64,
}

/// The calls of one client in a random order.
pub(super) struct Mix {
    launch: LaunchKernel,
    args: Vec<u8>,
    buffer: u64,
    event: u64,
    random: u64,
}

impl Mix {
    /// Creates a sequence of calls, the same for the same `seed`.
    pub(super) fn new(owned: &Owned, seed: u64) -> Self {
        let (launch, args) = launch(owned.function, owned.buffer);
        Self { launch, args, buffer: owned.buffer, event: owned.event, random: seed }
    }

    /// Queues the next burst; returns the call that is answered, and the number of requests.
    pub(super) fn call(&mut self, protocol: &mut Protocol) -> Result<(Option<Call>, u64), Misuse> {
        let mut requests = 0;
        let mut counted = |call| {
            requests += 1;
            call
        };
        let copy = |kind| op::Memcpy {
            dst: self.buffer,
            src: self.buffer,
            size: COPY_BYTES as u64,
            kind,
            stream: 0,
        };
        let call = match next(&mut self.random) % 6 {
            0 => counted(protocol.request(&op::DeviceSynchronize {}, &[], None)?),
            1 => counted(protocol.request(&op::MemGetInfo {}, &[], None)?),
            2 => {
                counted(protocol.request(&op::EventRecord { event: self.event, stream: 0 }, &[], None)?);
                counted(protocol.request(&op::EventQuery { event: self.event }, &[], None)?)
            }
            3 => {
                for _ in 0..LAUNCHES {
                    counted(protocol.request(&self.launch, &self.args, None)?);
                }
                counted(protocol.request(&op::StreamSynchronize { stream: 0 }, &[], None)?)
            }
            4 => {
                counted(protocol.request(&copy(kind::HOST_TO_DEVICE), &[], Some(&BYTES))?);
                let fill = op::Memset { dst: self.buffer, value: 0, size: COPY_BYTES as u64, stream: 0 };
                counted(protocol.request(&fill, &[], None)?);
                counted(protocol.request(&op::DeviceSynchronize {}, &[], None)?)
            }
            _ => counted(protocol.request(&copy(kind::DEVICE_TO_HOST), &[], None)?),
        };
        Ok((call, requests))
    }
}

/// Returns the next number of the SplitMix64 generator.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
