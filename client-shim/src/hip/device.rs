//! Functions about devices: their number, the current one, and their attributes (see `properties` for the large structures).

use std::collections::HashSet;

use hipr_abi::*;
use hipr_proto::op::{self, GetDevicePropertiesReply};
use hipr_proto::{Features, HipError, HipResult, Text};

use super::properties::{is_refused, own_attribute};
use crate::convert::{Chars, Out, Str, Stream};
use crate::process;
use crate::session::Session;
use crate::thread;
use crate::worker::{StreamInfo, Wait};

/// The runtime version that this library reports without a worker.
const OWN_VERSION: i32 = HIP_VERSION;
/// All flags that a device may have.
const DEVICE_FLAGS: u32 = hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax;

/// `hipInit`.
pub(crate) fn init(_session: &Session, flags: u32) -> HipResult<()> {
    if flags == 0 { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipGetDeviceCount`: 0 and an error where there is no worker, as on a machine without a GPU.
pub(crate) fn count(count: Out<i32>) -> HipResult<()> {
    let out = count.check()?;
    let counted = process::session().and_then(|session| session.worker().device_count());
    out.set(counted.unwrap_or(0));
    match counted {
        Ok(0) => Err(HipError::NO_DEVICE),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// `hipGetDevice`.
pub(crate) fn current(_session: &Session, device: Out<i32>) -> HipResult<()> {
    device.check()?.set(thread::device());
    Ok(())
}

/// `hipSetDevice`: the worker learns of it with the next request for which it matters.
pub(crate) fn set(session: &Session, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    session.uses_device(device);
    thread::set_device(device);
    Ok(())
}

/// `hipDeviceSynchronize`, `hipCtxSynchronize`.
pub(crate) fn synchronize(session: &Session) -> HipResult<()> {
    session.wait(Wait::Device(thread::device()))
}

/// `hipDeviceReset`: releases everything that the process has on the device.
pub(crate) fn reset(session: &Session) -> HipResult<()> {
    let device = thread::device();
    // The worker's reset is one of the session, with what other devices have.
    if session.worker().device_count()? > 1 {
        return release_all(session, device);
    }
    // What failed is gone with the rest.
    let _ = session.wait_for_host_functions();
    session.worker().reset()?;
    session.worker().memory().clear(device);
    session.streams().mirrors.clear(session.worker(), device);
    session.streams().forget_work();
    session.streams().events.forget_times();
    session.worker().stream_table().retain(|_, info| info.device != device);
    let left = session.worker().stream_table().keys().map(|stream| stream.wire()).collect::<HashSet<_>>();
    session.streams().order.retain(|stream| left.contains(&stream));
    session.worker().pools().clear();
    session.worker().mappings().clear();
    session.streams().graphs.with(|tables| tables.memory.clear(device));
    session.program().clear(device);
    Ok(())
}

/// Releases the streams, the memory and the modules that the process has on one of several devices.
fn release_all(session: &Session, device: i32) -> HipResult<()> {
    // What failed is gone with the rest.
    let _ = session.wait(Wait::Device(device));
    let worker = session.worker();
    let of_device = |(stream, info): (&Stream, &StreamInfo)| (info.device == device).then_some(*stream);
    let streams: Vec<_> = worker.stream_table().iter().filter_map(of_device).collect();
    streams.into_iter().try_for_each(|stream| super::stream::destroy(session, stream))?;
    session.program().unload_all(session.loader(), device)?;
    session.streams().graphs.with(|tables| tables.memory.clear(device));
    let memory = worker.memory().device_memory(device);
    memory.into_iter().try_for_each(|ptr| super::allocation::give_back(session, ptr))?;
    worker.memory().clear(device);
    worker.forget_peers(device);
    session.streams().settle_all(device);
    Ok(())
}

/// `hipDevicePrimaryCtxReset`.
pub(crate) fn reset_primary(session: &Session, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    session.uses_device(device);
    thread::with_device(device, || reset(session))
}

/// `hipDeviceGet`: a device's handle is its number.
pub(crate) fn get(session: &Session, device: Out<i32>, ordinal: i32) -> HipResult<()> {
    let out = device.check()?;
    session.worker().check_device(ordinal)?;
    out.set(ordinal);
    Ok(())
}

/// `hipDeviceGetName`.
pub(crate) fn name(session: &Session, name: Chars, len: i32, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    let size = buffer_size(name, len)?;
    name.set(session.worker().properties(device)?.name.as_str().as_bytes(), size);
    Ok(())
}

fn buffer_size(buffer: Chars, len: i32) -> HipResult<usize> {
    match usize::try_from(len) {
        Ok(size) if size > 0 && !buffer.is_null() => Ok(size),
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// `hipDeviceTotalMem`.
pub(crate) fn total_mem(session: &Session, bytes: Out<usize>, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    let out = bytes.check()?;
    out.set(session.worker().properties(device)?.total_global_mem as usize);
    Ok(())
}

/// `hipDeviceComputeCapability`.
pub(crate) fn capability(session: &Session, major: Out<i32>, minor: Out<i32>, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    let (major, minor) = (major.check()?, minor.check()?);
    let properties = session.worker().properties(device)?;
    major.set(properties.major);
    minor.set(properties.minor);
    Ok(())
}

/// `hipDeviceGetUuid`.
pub(crate) fn uuid(session: &Session, uuid: Out<hipUUID>, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    let out = uuid.check()?;
    out.set(hipUUID { bytes: chars_of(session.worker().uuid(device)?) });
    Ok(())
}

/// `hipDeviceGetPCIBusId`: `domain:bus:device.function`. As much of it as the buffer has room for is written, also where that is an error.
pub(crate) fn pci_bus_id(session: &Session, text: Chars, len: i32, device: i32) -> HipResult<()> {
    session.worker().check_device(device)?;
    let size = buffer_size(text, len)?;
    let address = pci_address(session.worker().properties(device)?);
    text.set(address.as_bytes(), size);
    if size > address.len() { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

fn pci_address(p: &GetDevicePropertiesReply) -> String {
    format!("{:04x}:{:02x}:{:02x}.0", p.pci_domain_id, p.pci_bus_id, p.pci_device_id)
}

/// `hipDeviceGetByPCIBusId`.
pub(crate) fn by_pci_bus_id(session: &Session, device: Out<i32>, id: Str) -> HipResult<()> {
    let out = device.check()?;
    let id = id.bytes().and_then(|id| core::str::from_utf8(id).ok()).ok_or(HipError::INVALID_VALUE)?;
    let worker = session.worker();
    if worker.features().contains(Features::STATIC) || worker.links().are_several() {
        // What the worker would compare, and it has listed that; several workers may have devices of one address.
        for device in 0..worker.device_count()? {
            if pci_address(worker.properties(device)?).eq_ignore_ascii_case(id) {
                out.set(device);
                return Ok(());
            }
        }
        return Err(HipError::INVALID_VALUE);
    }
    let device = session.worker().ask(&op::DeviceGetByPciBusId { pci_bus_id: Text::new(id) })?.device;
    out.set(session.worker().here(device)?);
    Ok(())
}

/// `hipDeviceGetAttribute`.
pub(crate) fn attribute(session: &Session, value: Out<i32>, attribute: i32, device: i32) -> HipResult<()> {
    let out = value.check()?;
    session.worker().check_device(device)?;
    if is_refused(attribute) {
        return Err(HipError::INVALID_VALUE);
    }
    out.set(match own_attribute(session, attribute)? {
        Some(own) => own,
        None => session.worker().attribute(device, attribute)?,
    });
    Ok(())
}

/// `hipDeviceGetLimit`.
pub(crate) fn limit(session: &Session, value: Out<usize>, limit: i32) -> HipResult<()> {
    let out = value.check()?;
    check_limit(limit)?;
    out.set(session.worker().ask(&op::DeviceGetLimit { limit, value: 0 })?.value as usize);
    Ok(())
}

/// `hipDeviceSetLimit`.
pub(crate) fn set_limit(session: &Session, limit: i32, value: usize) -> HipResult<()> {
    // HIP API: the other limits can only be asked for.
    if !matches!(limit, hipLimitStackSize | hipLimitMallocHeapSize) {
        return Err(HipError::UNSUPPORTED_LIMIT);
    }
    session.worker().ask(&op::DeviceSetLimit { limit, value: value as u64 })
}

fn check_limit(limit: i32) -> HipResult<()> {
    if (hipLimitStackSize..=hipLimitMallocHeapSize).contains(&limit) {
        Ok(())
    } else {
        Err(HipError::UNSUPPORTED_LIMIT)
    }
}

/// `hipDeviceSetCacheConfig`: a hint without effect on AMD's devices.
pub(crate) fn set_cache_config(session: &Session, cache_config: i32) -> HipResult<()> {
    if !(hipFuncCachePreferNone..=hipFuncCachePreferEqual).contains(&cache_config) {
        return Err(HipError::INVALID_VALUE);
    }
    session.worker().tell(&op::DeviceSetCacheConfig { cache_config })
}

/// `hipDeviceSetSharedMemConfig`: a hint without effect on AMD's devices.
pub(crate) fn set_shared_mem_config(session: &Session, shared_mem_config: i32) -> HipResult<()> {
    if !(hipSharedMemBankSizeDefault..=hipSharedMemBankSizeEightByte).contains(&shared_mem_config) {
        return Err(HipError::INVALID_VALUE);
    }
    session.worker().tell(&op::DeviceSetSharedMemConfig { shared_mem_config })
}

/// `hipDeviceGetCacheConfig`: AMD's devices have one configuration, which is returned whatever was set.
pub(crate) fn cache_config(_session: &Session, config: Out<i32>) -> HipResult<()> {
    let out = config.check()?;
    out.set(hipFuncCachePreferNone);
    Ok(())
}

/// `hipDeviceGetSharedMemConfig`, `hipCtxGetSharedMemConfig`: AMD's devices have one configuration, which is returned whatever was set.
pub(crate) fn shared_mem_config(_session: &Session, config: Out<i32>) -> HipResult<()> {
    let out = config.check()?;
    out.set(hipSharedMemBankSizeFourByte);
    Ok(())
}

/// `hipGetDeviceFlags`.
pub(crate) fn flags(session: &Session, flags: Out<u32>) -> HipResult<()> {
    let out = flags.check()?;
    out.set(session.worker().ask(&op::GetDeviceFlags {})?.flags);
    Ok(())
}

/// `hipSetDeviceFlags`.
pub(crate) fn set_flags(session: &Session, flags: u32) -> HipResult<()> {
    let schedule = flags & hipDeviceScheduleMask;
    if flags & !DEVICE_FLAGS != 0 || !(schedule == 0 || schedule.is_power_of_two()) {
        return Err(HipError::INVALID_VALUE);
    }
    session.worker().ask(&op::SetDeviceFlags { flags })
}

/// `hipDeviceCanAccessPeer`.
pub(crate) fn can_access_peer(session: &Session, can: Out<i32>, device: i32, peer: i32) -> HipResult<()> {
    let out = can.check()?;
    // HIP API: a device is never a peer of itself; the number is not checked then.
    if device == peer {
        out.set(0);
        return Ok(());
    }
    session.worker().check_device(device)?;
    session.worker().check_device(peer)?;
    // Kernels reach no memory of another worker.
    if !session.worker().links().are_of_one_worker(device, peer) {
        out.set(0);
        return Ok(());
    }
    let there = |device| session.worker().there(device);
    let request = op::DeviceCanAccessPeer { device_id: there(device), peer_device_id: there(peer) };
    out.set(session.worker().connection_of(device).ask(&request)?.can_access_peer);
    Ok(())
}

/// `hipDeviceEnablePeerAccess`.
pub(crate) fn enable_peer_access(session: &Session, peer: i32, flags: u32) -> HipResult<()> {
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    check_peer(session, peer)?;
    if !session.worker().links().are_of_one_worker(thread::device(), peer) {
        return Err(HipError::PEER_ACCESS_UNSUPPORTED);
    }
    if !session.worker().set_peer_access(thread::device(), peer, true) {
        return Err(HipError::PEER_ACCESS_ALREADY_ENABLED);
    }
    let peer_device_id = session.worker().there(peer);
    session.worker().tell(&op::DeviceEnablePeerAccess { peer_device_id, flags })
}

/// `hipDeviceDisablePeerAccess`.
pub(crate) fn disable_peer_access(session: &Session, peer: i32) -> HipResult<()> {
    check_peer(session, peer)?;
    if !session.worker().set_peer_access(thread::device(), peer, false) {
        return Err(HipError::PEER_ACCESS_NOT_ENABLED);
    }
    let peer_device_id = session.worker().there(peer);
    session.worker().tell(&op::DeviceDisablePeerAccess { peer_device_id, flags: 0 })
}

fn check_peer(session: &Session, peer: i32) -> HipResult<()> {
    session.worker().check_device(peer)?;
    if peer == thread::device() { Err(HipError::INVALID_DEVICE) } else { Ok(()) }
}

/// `hipDeviceGetP2PAttribute`.
pub(crate) fn p2p_attribute(
    session: &Session,
    value: Out<i32>,
    attr: i32,
    src: i32,
    dst: i32,
) -> HipResult<()> {
    let out = value.check()?;
    // HIP API: equal device numbers, and those that are too large, are refused before the attribute is checked; negative ones after it.
    let count = session.worker().device_count()?;
    if src == dst || src >= count || dst >= count {
        return Err(HipError::INVALID_DEVICE);
    }
    if !(hipDevP2PAttrPerformanceRank..=hipDevP2PAttrHipArrayAccessSupported).contains(&attr) {
        return Err(HipError::INVALID_VALUE);
    }
    session.worker().check_device(src)?;
    session.worker().check_device(dst)?;
    if !session.worker().links().are_of_one_worker(src, dst) {
        out.set(0);
        return Ok(());
    }
    let there = |device| session.worker().there(device);
    let request = op::DeviceGetP2pAttribute { attr, src_device: there(src), dst_device: there(dst) };
    out.set(session.worker().connection_of(src).ask(&request)?.value);
    Ok(())
}

/// `hipDriverGetVersion`: succeeds without a worker, too.
pub(crate) fn driver_version(version: Out<i32>) -> HipResult<()> {
    let out = version.check()?;
    out.set(
        process::session()
            .and_then(|session| session.worker().versions())
            .map_or(OWN_VERSION, |(driver, _)| driver),
    );
    Ok(())
}

/// `hipRuntimeGetVersion`.
pub(crate) fn runtime_version(version: Out<i32>) -> HipResult<()> {
    let out = version.check()?;
    out.set(
        process::session()
            .and_then(|session| session.worker().versions())
            .map_or(OWN_VERSION, |(_, runtime)| runtime),
    );
    Ok(())
}

/// `hipExtGetLinkTypeAndHopCount`: fails for two devices that are there, because the protocol does not tell how they are linked.
pub(crate) fn link(
    session: &Session,
    first: i32,
    second: i32,
    link_type: Out<u32>,
    hops: Out<u32>,
) -> HipResult<()> {
    if first < 0 || second < 0 || first == second || link_type.is_null() || hops.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    session.worker().check_device(first)?;
    session.worker().check_device(second)?;
    tracing::warn!("how the devices {first} and {second} are linked is not known");
    Err(HipError::NOT_SUPPORTED)
}

/// `hipSetValidDevices`: a list of devices that are to be tried in turn where the program has chosen none. A thread has one from the start,
/// so that the list is only checked.
pub(crate) fn set_valid(session: &Session, devices: Out<i32>, count: i32) -> HipResult<()> {
    let most = session.worker().device_count()?;
    if !(0..=most).contains(&count) {
        return Err(HipError::INVALID_VALUE);
    }
    for index in 0..usize::try_from(count).unwrap_or(0) {
        session.worker().check_device(devices.value_at(index).ok_or(HipError::INVALID_VALUE)?)?;
    }
    Ok(())
}
