//! Device properties in the two layouts of `hipDeviceProp_t`: programs compiled before HIP 6.0 use the small one.
//!
//! The protocol carries the properties that most programs look at. The others are attributes of the device; those that the
//! worker has not listed are asked for together, in one round trip.

use std::collections::HashMap;

use hipr_abi::*;
use hipr_proto::op::{self, GetDevicePropertiesReply};
use hipr_proto::{Features, HipError, HipResult};

use crate::convert::{In, Out};
use crate::session::Session;

/// Passes the fields whose values are device attributes to another macro behind `head`: those of both layouts, or those that
/// only the layout since HIP 6.0 has. A row is what the field is, its name, its attributes and, for a size, what it is on a
/// device that does not say.
macro_rules! attribute_fields {
    (both $callback:ident! { $($head:tt)* }) => { $callback! {
        $($head)*
        size totalConstMem [hipDeviceAttributeTotalConstantMemory] (|_| LARGEST);
        size memPitch [hipDeviceAttributeMaxPitch] (|_| LARGEST);
        size textureAlignment [hipDeviceAttributeTextureAlignment] (|_| 256);
        size texturePitchAlignment [hipDeviceAttributeTexturePitchAlignment] (|_| 256);
        size maxSharedMemoryPerMultiProcessor [hipDeviceAttributeMaxSharedMemoryPerMultiprocessor] (lds_bytes);
        number ECCEnabled [hipDeviceAttributeEccEnabled];
        number asicRevision [hipDeviceAttributeAsicRevision];
        number clockInstructionRate [hipDeviceAttributeWallClockRate];
        number cooperativeLaunch [hipDeviceAttributeCooperativeLaunch];
        number isLargeBar [hipDeviceAttributeIsLargeBar];
        number isMultiGpuBoard [hipDeviceAttributeIsMultiGpuBoard];
        number kernelExecTimeoutEnabled [hipDeviceAttributeKernelExecTimeout];
        number managedMemory [hipDeviceAttributeManagedMemory];
        number maxTexture1D [hipDeviceAttributeMaxTexture1DWidth];
        number maxTexture1DLinear [hipDeviceAttributeMaxTexture1DLinear];
        numbers maxTexture2D [hipDeviceAttributeMaxTexture2DWidth, hipDeviceAttributeMaxTexture2DHeight];
        numbers maxTexture3D [
            hipDeviceAttributeMaxTexture3DWidth,
            hipDeviceAttributeMaxTexture3DHeight,
            hipDeviceAttributeMaxTexture3DDepth
        ];
        number tccDriver [hipDeviceAttributeTccDriver];
    } };
    (newer $callback:ident! { $($head:tt)* }) => { $callback! {
        $($head)*
        size surfaceAlignment [hipDeviceAttributeSurfaceAlignment] (|_| 0);
        size sharedMemPerMultiprocessor [hipDeviceAttributeSharedMemPerMultiprocessor] (lds_bytes);
        size sharedMemPerBlockOptin [hipDeviceAttributeSharedMemPerBlockOptin] (lds_bytes);
        size reservedSharedMemPerBlock [hipDeviceAttributeReservedSharedMemPerBlock] (|_| 0);
        number accessPolicyMaxWindowSize [hipDeviceAttributeAccessPolicyMaxWindowSize];
        number asyncEngineCount [hipDeviceAttributeAsyncEngineCount];
        number computePreemptionSupported [hipDeviceAttributeComputePreemptionSupported];
        number deviceOverlap [hipDeviceAttributeDeviceOverlap];
        number globalL1CacheSupported [hipDeviceAttributeGlobalL1CacheSupported];
        number hostNativeAtomicSupported [hipDeviceAttributeHostNativeAtomicSupported];
        number hostRegisterSupported [hipDeviceAttributeHostRegisterSupported];
        number localL1CacheSupported [hipDeviceAttributeLocalL1CacheSupported];
        number maxBlocksPerMultiProcessor [hipDeviceAttributeMaxBlocksPerMultiProcessor];
        flags memoryPoolSupportedHandleTypes [hipDeviceAttributeMemoryPoolSupportedHandleTypes];
        number memoryPoolsSupported [hipDeviceAttributeMemoryPoolsSupported];
        number multiGpuBoardGroupID [hipDeviceAttributeMultiGpuBoardGroupID];
        number persistingL2CacheMaxSize [hipDeviceAttributePersistingL2CacheMaxSize];
        number regsPerMultiprocessor [hipDeviceAttributeMaxRegistersPerMultiprocessor];
        number singleToDoublePrecisionPerfRatio [hipDeviceAttributeSingleToDoublePrecisionPerfRatio];
        number streamPrioritiesSupported [hipDeviceAttributeStreamPrioritiesSupported];
        number unifiedAddressing [hipDeviceAttributeUnifiedAddressing];
    } };
}

macro_rules! attributes {
    ($($kind:ident $field:ident [$($attribute:ident),+] $(($usual:expr))?;)*) => { &[$($($attribute),+),*] };
}

/// Sets a structure's fields from attributes.
macro_rules! set_from_attributes {
    (
        ($facts:expr, $properties:expr)
        $($kind:ident $field:ident [$($attribute:ident),+] $(($usual:expr))?;)*
    ) => {
        $($properties.$field = attribute_value!($kind $facts, $($attribute),+ $(; $usual)?);)*
    };
}

macro_rules! attribute_value {
    (number $facts:expr, $attribute:ident) => { $facts.attribute($attribute) };
    (flags $facts:expr, $attribute:ident) => { $facts.attribute($attribute).cast_unsigned() };
    (numbers $facts:expr, $($attribute:ident),+) => { [$($facts.attribute($attribute)),+] };
    (size $facts:expr, $attribute:ident; $usual:expr) => { $facts.size($attribute, $usual) };
}

/// Sets a structure's fields from the worker's reply.
macro_rules! set_from_reply {
    (($reply:expr, $properties:expr) $($kind:ident $field:ident $of_reply:ident;)*) => {
        $($properties.$field = reply_value!($kind $reply.$of_reply);)*
    };
}

macro_rules! reply_value {
    (number $value:expr) => {
        $value
    };
    (size $value:expr) => {
        $value as usize
    };
    (text $value:expr) => {
        chars_of(*$value.as_bytes())
    };
}

/// Attributes that are fields in both layouts.
const IN_BOTH: &[hipDeviceAttribute_t] = attribute_fields!(both attributes! {});
/// Attributes that are fields in the newer layout only.
const IN_NEWER: &[hipDeviceAttribute_t] = attribute_fields!(newer attributes! {});

/// Size that is reported for an unknown limit.
const LARGEST: usize = i32::MAX as usize;

fn lds_bytes(reply: &GetDevicePropertiesReply) -> usize {
    reply.shared_mem_per_block as usize
}

/// Returns attributes that the worker cannot know: kernels cannot reach host memory by themselves, launches on several devices
/// do not wait for each other, this process waits for values in memory, nothing is mapped with a worker that cannot, and no images are carried out
/// remotely, whatever the device has.
///
/// # Errors
/// What the worker answers, or a lost connection.
pub(crate) fn own_attribute(session: &Session, attribute: i32) -> HipResult<Option<i32>> {
    match attribute {
        hipDeviceAttributeCanUseStreamWaitValue => return Ok(Some(1)),
        hipDeviceAttributeVirtualMemoryManagementSupported => {
            let has_feature = session.worker().features().contains(Features::MAPPINGS);
            return Ok(if has_feature { None } else { Some(0) });
        }
        _ => {}
    }
    let is_of_launches = attribute == hipDeviceAttributeCooperativeMultiDeviceLaunch
        || (hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc
            ..=hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem)
            .contains(&attribute);
    if is_of_launches {
        return Ok(Some(i32::from(session.worker().device_count()? == 1)));
    }
    let is_own = matches!(
        attribute,
        hipDeviceAttributeCanUseHostPointerForRegisteredMem
            | hipDeviceAttributeConcurrentManagedAccess
            | hipDeviceAttributeDirectManagedMemAccessFromHost
            | hipDeviceAttributePageableMemoryAccess
            | hipDeviceAttributePageableMemoryAccessUsesHostPageTables
            | hipDeviceAttributeImageSupport
            | hipDeviceAttributeMaxSurface1D..=hipDeviceAttributeMaxSurfaceCubemapLayered
            | hipDeviceAttributeMaxTexture1DWidth..=hipDeviceAttributeMaxTextureCubemapLayered
    );
    Ok(is_own.then_some(0))
}

/// Returns whether `hipDeviceGetAttribute` refuses an attribute that HIP lists and AMD's devices do not have.
pub(super) fn is_refused(attribute: i32) -> bool {
    matches!(
        attribute,
        hipDeviceAttributeMaxSurface1DLayered..=hipDeviceAttributeMaxSurfaceCubemapLayered
            | hipDeviceAttributeMaxTexture1DLayered
            | hipDeviceAttributeMaxTexture2DGather..=hipDeviceAttributeMaxTexture2DMipmap
            | hipDeviceAttributeMaxTexture3DAlt
            | hipDeviceAttributeMaxTextureCubemapLayered
            | hipDeviceAttributeMaxThreadsDim
            | hipDeviceAttributeSingleToDoublePrecisionPerfRatio
            | hipDeviceAttributeTccDriver
            | hipDeviceAttributeClockInstructionRate
    )
}

/// The features in `hipDeviceArch_t` of every GPU that runs HIP: all but funnel shift, `__syncthreads_*`, surface functions and
/// dynamic parallelism (bits 11, 13, 14, 16).
const ARCH: hipDeviceArch_t = hipDeviceArch_t { bits: 0x97ff };

/// Properties and attributes of a device.
struct Facts<'a> {
    session: &'a Session,
    device: i32,
    reply: &'a GetDevicePropertiesReply,
    attributes: HashMap<i32, i32>,
}

impl<'a> Facts<'a> {
    fn of(session: &'a Session, device: i32) -> HipResult<Self> {
        let reply = session.worker().properties(device)?;
        let (mut asked, mut own) = (Vec::new(), Vec::new());
        for attribute in IN_BOTH.iter().chain(IN_NEWER).copied() {
            match own_attribute(session, attribute)? {
                Some(value) => own.push((attribute, value)),
                None if is_refused(attribute) => own.push((attribute, 0)),
                None => asked.push(attribute),
            }
        }
        let mut attributes = session.worker().attributes(device, asked.into_iter())?;
        attributes.extend(own);
        Ok(Self { session, device, reply, attributes })
    }

    /// Returns an attribute; 0 if nobody knows it.
    fn attribute(&self, attribute: i32) -> i32 {
        self.attributes.get(&attribute).copied().unwrap_or(0)
    }

    /// Returns an attribute that is a size in bytes; the result of `usual` if the worker does not know it.
    fn size(&self, attribute: i32, usual: impl FnOnce(&GetDevicePropertiesReply) -> usize) -> usize {
        let known = self.attributes.get(&attribute).and_then(|size| usize::try_from(*size).ok());
        let known = known.filter(|size| *size > 0);
        known.unwrap_or_else(|| usual(self.reply))
    }

    /// Returns the UUID; zeros if the worker knows none.
    fn uuid(&self) -> HipResult<hipUUID> {
        match self.session.worker().uuid(self.device) {
            Ok(bytes) => Ok(hipUUID { bytes: chars_of(bytes) }),
            Err(HipError::NOT_SUPPORTED) => Ok(hipUUID::default()),
            Err(error) => Err(error),
        }
    }
}

/// `hipGetDeviceProperties` since HIP 6.0 (`hipGetDevicePropertiesR0600`).
pub(crate) fn r0600(session: &Session, out: Out<hipDeviceProp_tR0600>, device: i32) -> HipResult<()> {
    let out = out.check()?;
    let facts = Facts::of(session, device)?;
    // What is not set is 0, as `own_attribute` says of some of it.
    let mut properties = hipDeviceProp_tR0600 { uuid: facts.uuid()?, arch: ARCH, ..Default::default() };
    shared_properties!(set_from_reply! { (facts.reply, properties) });
    attribute_fields!(both set_from_attributes! { (facts, properties) });
    attribute_fields!(newer set_from_attributes! { (facts, properties) });
    properties.regsPerMultiprocessor = properties.regsPerMultiprocessor.max(properties.regsPerBlock);
    out.set(properties);
    Ok(())
}

/// `hipGetDeviceProperties` before HIP 6.0 (`hipGetDevicePropertiesR0000`).
pub(crate) fn r0000(session: &Session, out: Out<hipDeviceProp_tR0000>, device: i32) -> HipResult<()> {
    let out = out.check()?;
    let facts = Facts::of(session, device)?;
    let arch_name = facts.reply.gcn_arch_name.as_str();
    let digits: String =
        arch_name.trim_start_matches("gfx").chars().take_while(char::is_ascii_digit).collect();
    let mut properties = hipDeviceProp_tR0000 {
        arch: ARCH,
        // The number of gfx942 is 942.
        gcnArch: digits.parse().unwrap_or(0),
        ..Default::default()
    };
    shared_properties!(set_from_reply! { (facts.reply, properties) });
    attribute_fields!(both set_from_attributes! { (facts, properties) });
    out.set(properties);
    Ok(())
}

/// `hipChooseDevice` since HIP 6.0 (`hipChooseDeviceR0600`).
pub(crate) fn choose_r0600(
    session: &Session,
    device: Out<i32>,
    wanted: In<hipDeviceProp_tR0600>,
) -> HipResult<()> {
    let out = device.check()?;
    let p = wanted.check()?;
    let request = op::ChooseDevice {
        total_global_mem: p.totalGlobalMem as u64,
        major: p.major,
        minor: p.minor,
        multi_processor_count: p.multiProcessorCount,
        warp_size: p.warpSize,
        max_threads_per_block: p.maxThreadsPerBlock,
    };
    out.set(session.worker().choose(&request)?);
    Ok(())
}

/// `hipChooseDevice` before HIP 6.0 (`hipChooseDeviceR0000`).
pub(crate) fn choose_r0000(
    session: &Session,
    device: Out<i32>,
    wanted: In<hipDeviceProp_tR0000>,
) -> HipResult<()> {
    let p = wanted.check()?;
    let wanted = hipDeviceProp_tR0600 {
        totalGlobalMem: p.totalGlobalMem,
        major: p.major,
        minor: p.minor,
        multiProcessorCount: p.multiProcessorCount,
        warpSize: p.warpSize,
        maxThreadsPerBlock: p.maxThreadsPerBlock,
        ..hipDeviceProp_tR0600::default()
    };
    choose_r0600(session, device, In::from(&wanted))
}
