//! Operations by which client and worker agree on the extension, and those of it that stand for no function of HIP.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::{Call, Continuation};

pub(super) fn offer(call: &mut Call<'_>, r: Offer) -> HipResult<Continuation> {
    let mut ours = call.limits.features.ok_or(HipError::NOT_SUPPORTED)?;
    if !call.owned.takes_descriptors {
        ours = ours.without(Features::SHARED);
    }
    if call.owned.features.is_some() {
        return Err(HipError::INVALID_VALUE);
    }
    let mut accepted = Features::from_bits(r.features).intersection(ours).usable();
    if accepted.contains(Features::APART) {
        // The device is opened with the first request that needs it, which is a later one.
        call.owned.part = part_of(r.part);
        if call.owned.part.is_none() {
            accepted = accepted.without(Features::APART);
        }
    }
    call.owned.features = Some(accepted);
    call.reply(OfferReply { features: accepted.bits() })
}

/// Maximum number of parts of addresses.
const PARTS_MAX: u32 = 256;

/// Returns the number of a part of addresses, and how many there are; `None` if that is no part.
fn part_of(part: u64) -> Option<(u32, u32)> {
    let (number, parts) = (part as u32, (part >> 32) as u32);
    (number < parts && parts <= PARTS_MAX).then_some((number, parts))
}

/// Accepts a name for what the next request makes.
pub(super) fn name(call: &mut Call<'_>, r: Name) -> HipResult<Continuation> {
    if !call.owned.features.is_some_and(|features| features.contains(Features::NAMES)) {
        return Err(call.owned.names.refuse(HipError::NOT_SUPPORTED));
    }
    let max = call.limits.handles_max;
    call.owned.names.announce(r.name, max).map_err(|error| match error {
        HipError::OUT_OF_MEMORY => call.refuse("handles_max", max as u64, true),
        error => error,
    })?;
    call.done()
}

impl Call<'_> {
    /// Checks that the session has a feature of the extension. Without it the feature's operations fail as those that nobody knows.
    pub(super) fn check_feature(&self, feature: Features) -> HipResult<()> {
        let has = self.owned.features.is_some_and(|features| features.contains(feature));
        if has { Ok(()) } else { Err(HipError::NOT_SUPPORTED) }
    }
}

/// Carries out the requests of all static operations and replies with their replies. A session may ask once, because one small
/// request is much work.
pub(super) fn static_replies(call: &mut Call<'_>, r: Static) -> HipResult<Continuation> {
    call.check_feature(Features::STATIC)?;
    if std::mem::replace(&mut call.owned.has_listed, true) {
        return Err(HipError::INVALID_VALUE);
    }
    let current = call.context_ref()?.device();
    let listed = list(call, r.max_bytes.min(STATIC_LIST_MAX_BYTES) as usize);
    if call.context_ref()?.device() != current {
        call.context()?.set_device(current)?;
    }
    let (count, bytes) = listed?;
    call.reply.clear();
    call.reply(StaticReply { count, reserved: 0 })?;
    Ok(Continuation::List(bytes))
}

/// Returns the number of entries of the list, and the list, of at most `max_bytes`.
///
/// # Errors
/// Those that a request has now and may not have the next time.
fn list(call: &mut Call<'_>, max_bytes: usize) -> HipResult<(u32, Vec<u8>)> {
    let devices = call.context_ref()?.device_count()?.clamp(0, STATIC_DEVICES_MAX);
    let attributes = attributes();
    let mut questions: Vec<_> =
        OPS.iter().map(|info| (info, info.static_requests(devices, &attributes))).collect();
    // What is left out of a list that is too long are the answers of which there are most.
    questions.sort_by_key(|(_, requests)| requests.len());
    let (mut count, mut bytes) = (0, Vec::new());
    for (info, requests) in questions {
        let of_current_device = info.statics.is_some_and(|statics| statics.of_current_device);
        let currents = if of_current_device { (0..devices).map(Some).collect() } else { vec![None] };
        for request in &requests {
            for &device in &currents {
                let reply = ask(call, info.code, request, device)?;
                let reply = reply.as_deref().map_err(|error| *error);
                let entry = StaticEntry { op: info.code, device, request, reply };
                if bytes.len() + entry.len_bytes() > max_bytes {
                    return Ok((count, bytes));
                }
                entry.put(&mut bytes)?;
                count += 1;
            }
        }
    }
    Ok((count, bytes))
}

/// Carries out one request, with `device` as the current device; returns its reply, or the error that it always has.
fn ask(
    call: &mut Call<'_>,
    op: Opcode,
    request: &[u8],
    device: Option<i32>,
) -> HipResult<HipResult<Vec<u8>>> {
    if let Some(device) = device
        && device != call.context_ref()?.device()
    {
        call.context()?.set_device(device)?;
    }
    call.reply.clear();
    match visit(op, request, &[], call)? {
        Ok(Continuation::Reply) => Ok(Ok(call.reply.clone())),
        // Nothing static waits or has bytes behind its reply.
        Ok(_) => Err(HipError::UNKNOWN),
        Err(error) if is_lasting(error) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// Returns the numbers of all device attributes that HIP has, in order.
fn attributes() -> Vec<i32> {
    let of_devices = hipr_abi::CONSTANTS.iter().filter(|(group, ..)| *group == "hipDeviceAttribute_t");
    let mut numbers: Vec<i32> = of_devices.filter_map(|(.., value)| i32::try_from(*value).ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
