//! A HIP program for the tests of static replies: asks everything about every device, as often as its argument says. It prints
//! each call with its result, so that runs can be compared, and at the end how many calls a round has and how many fail.

use hip_sys::Hip;
use hipr_abi::{
    CONSTANTS, hipDeviceProp_tR0000, hipDeviceProp_tR0600, hipError_t, hipErrorInvalidValue, hipSuccess,
    hipUUID,
};
use std::fmt::Debug;
use std::process::ExitCode;
use std::ptr::from_mut;

/// An attribute number that HIP does not have.
const NO_ATTRIBUTE: i32 = 12345;

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    match run(rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("ask-everything: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(rounds: u32) -> Result<(), Box<dyn std::error::Error>> {
    let hip = Hip::load()?;
    let first = ask(&hip)?;
    for _ in 1..rounds {
        if ask(&hip)? != first {
            return Err("a later round has other results".into());
        }
    }
    first.iter().for_each(|(_, said)| println!("{said}"));
    let failed = first.iter().filter(|(code, _)| *code != hipSuccess).count();
    println!("{} calls, {failed} failed", first.len());
    Ok(())
}

/// The error codes of the calls of one round, and their results as text.
type Said = Vec<(hipError_t, String)>;

struct Round<'a> {
    hip: &'a Hip,
    said: Said,
}

impl Round<'_> {
    /// Notes a call that writes its result to `value`.
    fn note<T: Copy + Debug>(
        &mut self,
        what: &str,
        mut value: T,
        call: impl FnOnce(&Hip, *mut T) -> hipError_t,
    ) -> T {
        let code = call(self.hip, from_mut(&mut value));
        self.said.push((code, format!("{what}: {code} {value:?}")));
        value
    }
}

/// Notes a call of the runtime, which writes its result to a place with the given first value.
macro_rules! note {
    ($round:expr, $what:expr, $value:expr, |$hip:ident, $out:ident| $call:expr) => {
        $round.note($what, $value, |$hip, $out| {
            // SAFETY: each call is given places that outlive it, of the sizes that it is told.
            unsafe { $call }
        })
    };
}

fn ask(hip: &Hip) -> Result<Said, Box<dyn std::error::Error>> {
    let mut round = Round { hip, said: Vec::new() };
    let count = note!(round, "count", 0, |hip, out| hip.hipGetDeviceCount(out));
    note!(round, "driver", 0, |hip, out| hip.hipDriverGetVersion(out));
    note!(round, "runtime", 0, |hip, out| hip.hipRuntimeGetVersion(out));
    for device in 0..count {
        note!(round, "select", (), |hip, _out| hip.hipSetDevice(device));
        note!(round, "current", 0, |hip, out| hip.hipGetDevice(out));
        note!(round, "handle", 0, |hip, out| hip.hipDeviceGet(out, device));
        let new = hipDeviceProp_tR0600::default();
        let new = note!(round, "properties", new, |hip, out| hip.hipGetDevicePropertiesR0600(out, device));
        if new.warpSize == 0 {
            return Err("the properties are empty".into());
        }
        let old = hipDeviceProp_tR0000::default();
        note!(round, "old properties", old, |hip, out| hip.hipGetDeviceProperties(out, device));
        note!(round, "name", [0; 256], |hip, out| hip.hipDeviceGetName(out.cast(), 256, device));
        note!(round, "memory", 0, |hip, out| hip.hipDeviceTotalMem(out, device));
        note!(round, "capability", [0; 2], |hip, out| {
            let major = out.cast::<i32>();
            hip.hipDeviceComputeCapability(major, major.add(1), device)
        });
        note!(round, "uuid", hipUUID::default(), |hip, out| hip.hipDeviceGetUuid(out, device));
        let pci = note!(round, "pci", [0; 32], |hip, out| hip.hipDeviceGetPCIBusId(out.cast(), 32, device));
        note!(round, "by pci", -1, |hip, out| hip.hipDeviceGetByPCIBusId(out, pci.as_ptr()));
        note!(round, "priorities", [0; 2], |hip, out| {
            let least = out.cast::<i32>();
            hip.hipDeviceGetStreamPriorityRange(least, least.add(1))
        });
        for peer in 0..count {
            note!(round, "peer", -1, |hip, out| hip.hipDeviceCanAccessPeer(out, device, peer));
        }
        for (_, name, number) in CONSTANTS.iter().filter(|(group, ..)| *group == "hipDeviceAttribute_t") {
            let number = i32::try_from(*number)?;
            note!(round, name, -1, |hip, out| hip.hipDeviceGetAttribute(out, number, device));
        }
    }
    // Of what does not exist, and so is in no list.
    note!(round, "no attribute", -1, |hip, out| hip.hipDeviceGetAttribute(out, NO_ATTRIBUTE, 0));
    match round.said.last() {
        Some((code, _)) if *code == hipErrorInvalidValue => Ok(round.said),
        last => Err(format!("attribute {NO_ATTRIBUTE}: {last:?}").into()),
    }
}
