//! Operations on devices: their number, properties and settings. Also versions, error texts and the management interface.

use hipr_proto::op::*;
use hipr_proto::{Array, Features, HipError, HipResult, Text};

use super::{Call, Continuation};

/// The flags of a device for which none were set; AMD's runtime says so.
const DEFAULT_FLAGS: u32 = hipr_abi::hipDeviceScheduleSpin;
/// The largest value of `hipFuncCache_t`.
const CACHE_CONFIG_MAX: i32 = hipr_abi::hipFuncCachePreferEqual;
/// The largest value of `hipSharedMemConfig`.
const SHARED_MEM_CONFIG_MAX: i32 = hipr_abi::hipSharedMemBankSizeEightByte;
/// The smallest value of `hipDeviceP2PAttr`.
const P2P_PERFORMANCE_RANK: i32 = hipr_abi::hipDevP2PAttrPerformanceRank;
const P2P_MAX: i32 = hipr_abi::hipDevP2PAttrHipArrayAccessSupported;
const ATTRIBUTE_MEMORY_POOLS: i32 = hipr_abi::hipDeviceAttributeMemoryPoolsSupported;
const ATTRIBUTE_MAPPINGS: i32 = hipr_abi::hipDeviceAttributeVirtualMemoryManagementSupported;
/// PCI vendor id of AMD.
const VENDOR_AMD: u32 = 0x1002;

/// Checks the number of a device.
pub(super) fn check_device(call: &Call<'_>, device: i32) -> HipResult<i32> {
    if (0..call.context_ref()?.device_count()?).contains(&device) {
        Ok(device)
    } else {
        Err(HipError::INVALID_DEVICE)
    }
}

/// Converts a `hipDevice_t`, which is the device's number on the wire.
fn check_handle(call: &Call<'_>, device: u64) -> HipResult<i32> {
    check_device(call, i32::try_from(device).map_err(|_| HipError::INVALID_DEVICE)?)
}

pub(super) fn count(call: &mut Call<'_>, _: GetDeviceCount) -> HipResult<Continuation> {
    let count = call.context_ref()?.device_count()?;
    call.reply(GetDeviceCountReply { count })
}

pub(super) fn set(call: &mut Call<'_>, r: SetDevice) -> HipResult<Continuation> {
    check_device(call, r.device_id)?;
    call.context()?.set_device(r.device_id)?;
    call.done()
}

pub(super) fn current(call: &mut Call<'_>, _: GetDevice) -> HipResult<Continuation> {
    let device_id = call.context_ref()?.device();
    call.reply(GetDeviceReply { device_id })
}

pub(super) fn properties(call: &mut Call<'_>, r: GetDeviceProperties) -> HipResult<Continuation> {
    let device = check_device(call, r.device_id)?;
    let properties = call.context_ref()?.properties(device)?;
    call.reply(properties)
}

pub(super) fn attribute(call: &mut Call<'_>, r: DeviceGetAttribute) -> HipResult<Continuation> {
    let device = check_device(call, r.device_id)?;
    // Who does not know the feature cannot map anything.
    if r.attribute == ATTRIBUTE_MAPPINGS && call.check_feature(Features::MAPPINGS).is_err() {
        return call.reply(DeviceGetAttributeReply { value: 0 });
    }
    // The session keeps pools for a device that has none.
    if r.attribute == ATTRIBUTE_MEMORY_POOLS && call.context()?.mem_pools().is_none() {
        return call.reply(DeviceGetAttributeReply { value: 1 });
    }
    let value = call.context_ref()?.attribute(device, r.attribute)?;
    call.reply(DeviceGetAttributeReply { value })
}

pub(super) fn limit(call: &mut Call<'_>, r: DeviceGetLimit) -> HipResult<Continuation> {
    let value = call.context_ref()?.limit(r.limit)?;
    call.reply(DeviceGetLimitReply { value })
}

pub(super) fn set_limit(call: &mut Call<'_>, r: DeviceSetLimit) -> HipResult<Continuation> {
    call.context()?.set_limit(r.limit, r.value)?;
    call.done()
}

pub(super) fn can_access_peer(call: &mut Call<'_>, r: DeviceCanAccessPeer) -> HipResult<Continuation> {
    let (device, peer) = (check_device(call, r.device_id)?, check_device(call, r.peer_device_id)?);
    let can_access_peer = i32::from(device != peer && call.context_ref()?.can_access_peer(device, peer)?);
    call.reply(DeviceCanAccessPeerReply { can_access_peer })
}

pub(super) fn enable_peer_access(call: &mut Call<'_>, r: DeviceEnablePeerAccess) -> HipResult<Continuation> {
    set_peer_access(call, r.peer_device_id, r.flags, true)
}

pub(super) fn disable_peer_access(
    call: &mut Call<'_>,
    r: DeviceDisablePeerAccess,
) -> HipResult<Continuation> {
    set_peer_access(call, r.peer_device_id, r.flags, false)
}

fn set_peer_access(call: &mut Call<'_>, peer: i32, flags: u32, enabled: bool) -> HipResult<Continuation> {
    let peer = check_device(call, peer)?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    if peer == call.context_ref()?.device() {
        return Err(HipError::INVALID_DEVICE);
    }
    call.context()?.set_peer_access(peer, enabled)?;
    call.done()
}

pub(super) fn by_ordinal(call: &mut Call<'_>, r: DeviceGet) -> HipResult<Continuation> {
    let device = u64::try_from(check_device(call, r.ordinal)?).map_err(|_| HipError::INVALID_DEVICE)?;
    call.reply(DeviceGetReply { device })
}

/// Truncates `text` to fit a C buffer of `len` bytes.
fn cut(text: &str, len: i32) -> HipResult<&str> {
    let room = usize::try_from(len).ok().and_then(|len| len.checked_sub(1)).ok_or(HipError::INVALID_VALUE)?;
    Ok(text.get(..text.floor_char_boundary(room)).unwrap_or(text))
}

pub(super) fn name(call: &mut Call<'_>, r: DeviceGetName) -> HipResult<Continuation> {
    let device = check_handle(call, r.device)?;
    let properties = call.context_ref()?.properties(device)?;
    let name = Text::new(cut(properties.name.as_str(), r.len)?);
    call.reply(DeviceGetNameReply { name })
}

pub(super) fn total_mem(call: &mut Call<'_>, r: DeviceTotalMem) -> HipResult<Continuation> {
    let device = check_handle(call, r.device)?;
    let bytes = call.context_ref()?.properties(device)?.total_global_mem;
    call.reply(DeviceTotalMemReply { bytes })
}

fn pci_address(call: &Call<'_>, device: i32) -> HipResult<String> {
    let p = call.context_ref()?.properties(device)?;
    Ok(format!("{:04x}:{:02x}:{:02x}.0", p.pci_domain_id, p.pci_bus_id, p.pci_device_id))
}

pub(super) fn pci_bus_id(call: &mut Call<'_>, r: DeviceGetPciBusId) -> HipResult<Continuation> {
    let device = check_device(call, r.device)?;
    let address = pci_address(call, device)?;
    let pci_bus_id = Text::new(cut(&address, r.len)?);
    call.reply(DeviceGetPciBusIdReply { pci_bus_id })
}

pub(super) fn by_pci_bus_id(call: &mut Call<'_>, r: DeviceGetByPciBusId) -> HipResult<Continuation> {
    for device in 0..call.context_ref()?.device_count()? {
        if pci_address(call, device)?.eq_ignore_ascii_case(r.pci_bus_id.as_str()) {
            return call.reply(DeviceGetByPciBusIdReply { device });
        }
    }
    Err(HipError::INVALID_VALUE)
}

pub(super) fn compute_capability(call: &mut Call<'_>, r: DeviceComputeCapability) -> HipResult<Continuation> {
    let device = check_handle(call, r.device)?;
    let p = call.context_ref()?.properties(device)?;
    call.reply(DeviceComputeCapabilityReply { major: p.major, minor: p.minor })
}

pub(super) fn uuid(call: &mut Call<'_>, r: DeviceGetUuid) -> HipResult<Continuation> {
    let device = check_handle(call, r.device)?;
    let uuid = call.context_ref()?.uuid(device)?;
    call.reply(DeviceGetUuidReply { uuid })
}

pub(super) fn cache_config(call: &mut Call<'_>, _: DeviceGetCacheConfig) -> HipResult<Continuation> {
    let cache_config = call.owned.settings.cache_config;
    call.reply(DeviceGetCacheConfigReply { cache_config })
}

pub(super) fn set_cache_config(call: &mut Call<'_>, r: DeviceSetCacheConfig) -> HipResult<Continuation> {
    check_cache_config(r.cache_config)?;
    call.owned.settings.cache_config = r.cache_config;
    call.done()
}

pub(super) fn check_cache_config(config: i32) -> HipResult<()> {
    if (0..=CACHE_CONFIG_MAX).contains(&config) { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

pub(super) fn shared_mem_config(call: &mut Call<'_>, _: DeviceGetSharedMemConfig) -> HipResult<Continuation> {
    let shared_mem_config = call.owned.settings.shared_mem_config;
    call.reply(DeviceGetSharedMemConfigReply { shared_mem_config })
}

pub(super) fn set_shared_mem_config(
    call: &mut Call<'_>,
    r: DeviceSetSharedMemConfig,
) -> HipResult<Continuation> {
    if !(0..=SHARED_MEM_CONFIG_MAX).contains(&r.shared_mem_config) {
        return Err(HipError::INVALID_VALUE);
    }
    call.owned.settings.shared_mem_config = r.shared_mem_config;
    call.done()
}

pub(super) fn set_flags(call: &mut Call<'_>, r: SetDeviceFlags) -> HipResult<Continuation> {
    let device = call.context_ref()?.device();
    call.owned.settings.flags.insert(device, r.flags);
    call.done()
}

pub(super) fn flags(call: &mut Call<'_>, _: GetDeviceFlags) -> HipResult<Continuation> {
    let device = call.context_ref()?.device();
    let flags = call.owned.settings.flags.get(&device).copied().unwrap_or(DEFAULT_FLAGS);
    call.reply(GetDeviceFlagsReply { flags })
}

pub(super) fn p2p_attribute(call: &mut Call<'_>, r: DeviceGetP2pAttribute) -> HipResult<Continuation> {
    let (src, dst) = (check_device(call, r.src_device)?, check_device(call, r.dst_device)?);
    if !(P2P_PERFORMANCE_RANK..=P2P_MAX).contains(&r.attr) || src == dst {
        return Err(HipError::INVALID_VALUE);
    }
    let value = i32::from(call.context_ref()?.can_access_peer(src, dst)?);
    call.reply(DeviceGetP2pAttributeReply { value })
}

pub(super) fn set_valid(call: &mut Call<'_>, r: SetValidDevices, mut tail: &[u8]) -> HipResult<Continuation> {
    let count = u64::try_from(r.len).map_err(|_| HipError::INVALID_VALUE)?;
    for device in Array::<i32>::take(&mut tail, count)?.iter() {
        check_device(call, device)?;
    }
    call.done()
}

/// Returns the first device with the requested properties, else the first device.
pub(super) fn choose(call: &mut Call<'_>, r: ChooseDevice) -> HipResult<Continuation> {
    let mut chosen = 0;
    for device in (0..call.context_ref()?.device_count()?).rev() {
        let p = call.context_ref()?.properties(device)?;
        let wishes = [
            (r.major, p.major),
            (r.minor, p.minor),
            (r.multi_processor_count, p.multi_processor_count),
            (r.warp_size, p.warp_size),
            (r.max_threads_per_block, p.max_threads_per_block),
        ];
        if r.total_global_mem <= p.total_global_mem && wishes.iter().all(|(wish, has)| wish <= has) {
            chosen = device;
        }
    }
    call.reply(ChooseDeviceReply { device: chosen })
}

pub(super) fn stream_priority_range(
    call: &mut Call<'_>,
    _: DeviceGetStreamPriorityRange,
) -> HipResult<Continuation> {
    let (least_priority, greatest_priority) = call.context_ref()?.stream_priority_range()?;
    call.reply(DeviceGetStreamPriorityRangeReply { least_priority, greatest_priority })
}

pub(super) fn runtime_version(call: &mut Call<'_>, _: RuntimeGetVersion) -> HipResult<Continuation> {
    let version = call.context_ref()?.version()?;
    call.reply(RuntimeGetVersionReply { version })
}

pub(super) fn driver_version(call: &mut Call<'_>, _: DriverGetVersion) -> HipResult<Continuation> {
    let version = call.context_ref()?.version()?;
    call.reply(DriverGetVersionReply { version })
}

// ---- errors ----------------------------------------------------------------------------------------------------------

pub(super) fn error_string(call: &mut Call<'_>, r: GetErrorString) -> HipResult<Continuation> {
    let error_string = Text::new(HipError(r.error_code).message());
    call.reply(GetErrorStringReply { error_string })
}

pub(super) fn error_name(call: &mut Call<'_>, r: GetErrorName) -> HipResult<Continuation> {
    let error_string = Text::new(HipError(r.error_code).name());
    call.reply(GetErrorNameReply { error_string })
}

// ---- management interface --------------------------------------------------------------------------------------------

fn check_processor(call: &Call<'_>, index: u32) -> HipResult<i32> {
    check_device(call, i32::try_from(index).map_err(|_| HipError::INVALID_DEVICE)?)
}

pub(super) fn smi_count(call: &mut Call<'_>, _: SmiGetProcessorCount) -> HipResult<Continuation> {
    let count = call.context_ref()?.device_count()?;
    call.reply(SmiGetProcessorCountReply { processor_count: u32::try_from(count).unwrap_or(0) })
}

pub(super) fn smi_vram_usage(call: &mut Call<'_>, r: SmiGetVramUsage) -> HipResult<Continuation> {
    // Memory is only known of the current device.
    if check_processor(call, r.processor_index)? != call.context_ref()?.device() {
        return Err(HipError::NOT_SUPPORTED);
    }
    let (free, total) = call.memory_info()?;
    call.reply(SmiGetVramUsageReply { vram_total: total, vram_used: total.saturating_sub(free) })
}

pub(super) fn smi_asic_info(call: &mut Call<'_>, r: SmiGetAsicInfo) -> HipResult<Continuation> {
    let device = check_processor(call, r.processor_index)?;
    let p = call.context_ref()?.properties(device)?;
    call.reply(SmiGetAsicInfoReply {
        market_name: p.name,
        vendor_id: VENDOR_AMD,
        num_compute_units: u32::try_from(p.multi_processor_count).unwrap_or(0),
        ..hipr_proto::Wire::ZERO
    })
}
