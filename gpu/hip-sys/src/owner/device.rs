//! Devices: which there are and what they are.

use core::ffi::c_char;

use super::{HipCode, Owner, size};
use crate::{Hip, hipDeviceProp_tR0000, hipDeviceProp_tR0600, hipErrorInvalidDevice, hipSuccess, hipUUID};

/// What a device is, as far as both layouts of `hipDeviceProp_t` tell. Sizes in bytes, clocks in kHz, the bus in bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the C fields")]
pub struct Properties {
    pub name: String,
    pub gcn_arch_name: String,
    pub total_global_mem: u64,
    pub shared_mem_per_block: u64,
    pub regs_per_block: i32,
    pub warp_size: i32,
    pub max_threads_per_block: i32,
    pub max_threads_dim: [i32; 3],
    pub max_grid_size: [i32; 3],
    pub clock_rate: i32,
    pub memory_clock_rate: i32,
    pub memory_bus_width: i32,
    pub major: i32,
    pub minor: i32,
    pub multi_processor_count: i32,
    pub l2_cache_size: i32,
    pub max_threads_per_multi_processor: i32,
    pub compute_mode: i32,
    pub pci_bus_id: i32,
    pub pci_device_id: i32,
    pub pci_domain_id: i32,
    pub integrated: i32,
    pub can_map_host_memory: i32,
    pub concurrent_kernels: i32,
}

/// Both layouts have these fields under the same names.
macro_rules! properties {
    ($p:expr) => {{
        let p = $p;
        Properties {
            name: text(&p.name),
            gcn_arch_name: text(&p.gcnArchName),
            total_global_mem: p.totalGlobalMem as u64,
            shared_mem_per_block: p.sharedMemPerBlock as u64,
            regs_per_block: p.regsPerBlock,
            warp_size: p.warpSize,
            max_threads_per_block: p.maxThreadsPerBlock,
            max_threads_dim: p.maxThreadsDim,
            max_grid_size: p.maxGridSize,
            clock_rate: p.clockRate,
            memory_clock_rate: p.memoryClockRate,
            memory_bus_width: p.memoryBusWidth,
            major: p.major,
            minor: p.minor,
            multi_processor_count: p.multiProcessorCount,
            l2_cache_size: p.l2CacheSize,
            max_threads_per_multi_processor: p.maxThreadsPerMultiProcessor,
            compute_mode: p.computeMode,
            pci_bus_id: p.pciBusID,
            pci_device_id: p.pciDeviceID,
            pci_domain_id: p.pciDomainID,
            integrated: p.integrated,
            can_map_host_memory: p.canMapHostMemory,
            concurrent_kernels: p.concurrentKernels,
        }
    }};
}

/// The characters before the NUL.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&c| c.cast_unsigned()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Hip {
    /// Number of devices (HIP API: hipGetDeviceCount).
    ///
    /// # Errors
    /// The `hipError_t`, hipErrorNoDevice where there is none.
    pub fn count_devices(&self) -> HipCode<i32> {
        let mut count = 0;
        // SAFETY: the place outlives the call.
        let code = unsafe { self.hipGetDeviceCount(&mut count) };
        if code == hipSuccess { Ok(count) } else { Err(code) }
    }

    /// HIP API: hipRuntimeGetVersion.
    ///
    /// # Errors
    /// The `hipError_t`.
    pub fn version(&self) -> HipCode<i32> {
        let mut version = 0;
        // SAFETY: the place outlives the call.
        let code = unsafe { self.hipRuntimeGetVersion(&mut version) };
        if code == hipSuccess { Ok(version) } else { Err(code) }
    }
}

impl Owner {
    /// The device that later calls mean.
    pub fn device(&self) -> i32 {
        self.device
    }

    /// Chooses it (HIP API: hipSetDevice).
    ///
    /// # Errors
    /// Those of HIP; then nothing changes.
    pub fn set_device(&mut self, device: i32) -> HipCode {
        self.enter_device(device)?;
        self.device = device;
        Ok(())
    }

    /// HIP API: hipGetDeviceProperties, in the layout of HIP 6 where the library has it.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn properties(&self, device: i32) -> HipCode<Properties> {
        if self.hip.hipGetDevicePropertiesR0600.is_some() {
            let mut properties = Box::new(hipDeviceProp_tR0600::default());
            // SAFETY: the structure outlives the call.
            self.check(unsafe { self.hip.hipGetDevicePropertiesR0600(&mut *properties, device) })?;
            return Ok(properties!(&*properties));
        }
        let mut properties = Box::new(hipDeviceProp_tR0000::default());
        // SAFETY: the structure outlives the call.
        self.check(unsafe { self.hip.hipGetDeviceProperties(&mut *properties, device) })?;
        Ok(properties!(&*properties))
    }

    /// HIP API: hipDeviceGetAttribute.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn attribute(&self, device: i32, attribute: i32) -> HipCode<i32> {
        let mut value = 0;
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipDeviceGetAttribute(&mut value, attribute, device) })?;
        Ok(value)
    }

    /// HIP API: hipDeviceGetUuid.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn uuid(&self, device: i32) -> HipCode<[u8; 16]> {
        let mut uuid = hipUUID::default();
        // SAFETY: the structure outlives the call.
        self.check(unsafe { self.hip.hipDeviceGetUuid(&mut uuid, device) })?;
        Ok(uuid.bytes.map(c_char::cast_unsigned))
    }

    /// HIP API: hipDeviceGetLimit, of the current device.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn limit(&self, limit: i32) -> HipCode<u64> {
        self.enter()?;
        let mut value = 0;
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipDeviceGetLimit(&mut value, limit) })?;
        Ok(value as u64)
    }

    /// HIP API: hipDeviceSetLimit, of the current device.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn set_limit(&mut self, limit: i32, value: u64) -> HipCode {
        self.enter()?;
        // SAFETY: any numbers may be passed.
        self.check(unsafe { self.hip.hipDeviceSetLimit(limit, size(value)?) })
    }

    /// HIP API: hipDeviceCanAccessPeer.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn can_access_peer(&self, device: i32, peer: i32) -> HipCode<bool> {
        let mut can = 0;
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipDeviceCanAccessPeer(&mut can, device, peer) })?;
        Ok(can != 0)
    }

    /// HIP API: hipDeviceEnablePeerAccess, hipDeviceDisablePeerAccess, of the current device.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn set_peer_access(&mut self, peer: i32, enabled: bool) -> HipCode {
        if peer == self.device {
            return Err(hipErrorInvalidDevice);
        }
        self.enter()?;
        // SAFETY: any numbers may be passed.
        self.check(unsafe {
            if enabled {
                self.hip.hipDeviceEnablePeerAccess(peer, 0)
            } else {
                self.hip.hipDeviceDisablePeerAccess(peer)
            }
        })
    }

    /// Least and greatest stream priority (HIP API: hipDeviceGetStreamPriorityRange).
    ///
    /// # Errors
    /// Those of HIP.
    pub fn stream_priority_range(&self) -> HipCode<(i32, i32)> {
        self.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the places outlive the call.
        self.check(unsafe { self.hip.hipDeviceGetStreamPriorityRange(&mut least, &mut greatest) })?;
        Ok((least, greatest))
    }
}
