//! Devices and their properties.

use hipr_proto::op::GetDevicePropertiesReply;
use hipr_proto::{HipResult, Text};

use super::{Owner, size};
use hip_sys::{bytes_of, hipDeviceProp_tR0000, hipDeviceProp_tR0600, hipUUID, shared_properties};

/// Reads what the protocol carries from either layout.
macro_rules! reply {
    (($properties:expr) $($kind:ident $field:ident $of_reply:ident;)*) => {
        GetDevicePropertiesReply { $($of_reply: reply_value!($kind $properties.$field)),* }
    };
}

macro_rules! reply_value {
    (number $value:expr) => {
        $value
    };
    (size $value:expr) => {
        $value as u64
    };
    (text $value:expr) => {
        Text::new(&text(bytes_of($value)))
    };
}

/// Returns the characters before the NUL.
fn text(bytes: [u8; 256]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

impl Owner {
    /// Returns the current device, to which later calls refer.
    pub(crate) fn device(&self) -> i32 {
        self.device
    }

    /// Sets the current device (HIP API: hipSetDevice).
    ///
    /// # Errors
    /// Those of HIP; then nothing changes.
    pub(crate) fn set_device(&mut self, device: i32) -> HipResult<()> {
        self.enter_device(device)?;
        self.device = device;
        Ok(())
    }

    /// HIP API: hipGetDeviceProperties, in the layout of HIP 6 where the library has it.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn properties(&self, device: i32) -> HipResult<GetDevicePropertiesReply> {
        if self.hip.hipGetDevicePropertiesR0600.is_some() {
            let mut properties = Box::new(hipDeviceProp_tR0600::default());
            // SAFETY: the structure outlives the call.
            self.check(unsafe { self.hip.hipGetDevicePropertiesR0600(&mut *properties, device) })?;
            return Ok(shared_properties!(reply! { (properties) }));
        }
        let mut properties = Box::new(hipDeviceProp_tR0000::default());
        // SAFETY: the structure outlives the call.
        self.check(unsafe { self.hip.hipGetDeviceProperties(&mut *properties, device) })?;
        Ok(shared_properties!(reply! { (properties) }))
    }

    /// HIP API: hipDeviceGetAttribute.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn attribute(&self, device: i32, attribute: i32) -> HipResult<i32> {
        // The library writes a pointer for those of the HDP's registers, and so twice as much as the header says.
        let mut value = [0; 2];
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipDeviceGetAttribute(value.as_mut_ptr(), attribute, device) })?;
        Ok(value[0])
    }

    /// HIP API: hipDeviceGetUuid.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn uuid(&self, device: i32) -> HipResult<[u8; 16]> {
        let mut uuid = hipUUID::default();
        // SAFETY: the structure outlives the call.
        self.check(unsafe { self.hip.hipDeviceGetUuid(&mut uuid, device) })?;
        Ok(bytes_of(uuid.bytes))
    }

    /// HIP API: hipDeviceGetLimit, of the current device.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn limit(&self, limit: i32) -> HipResult<u64> {
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
    pub(crate) fn set_limit(&mut self, limit: i32, value: u64) -> HipResult<()> {
        self.enter()?;
        // SAFETY: any numbers may be passed.
        self.check(unsafe { self.hip.hipDeviceSetLimit(limit, size(value)?) })
    }

    /// HIP API: hipDeviceCanAccessPeer.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn can_access_peer(&self, device: i32, peer: i32) -> HipResult<bool> {
        let mut can = 0;
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipDeviceCanAccessPeer(&mut can, device, peer) })?;
        Ok(can != 0)
    }

    /// Returns the least and greatest stream priority (HIP API: hipDeviceGetStreamPriorityRange).
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn stream_priority_range(&self) -> HipResult<(i32, i32)> {
        self.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the places outlive the call.
        self.check(unsafe { self.hip.hipDeviceGetStreamPriorityRange(&mut least, &mut greatest) })?;
        Ok((least, greatest))
    }
}
