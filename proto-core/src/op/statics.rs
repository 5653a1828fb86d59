//! Static operations: those whose reply never changes in a session, and the list of such replies that `STATIC` returns.
//!
//! A row of the table is marked `static [domain, …]`, with the [`Domain`] of each field of its request, or `static (current)
//! [domain, …]` if the reply is that of the current device. The mark is all that such an operation needs: the worker makes the
//! requests from it that it lists ([`Info::static_requests`]), and the client answers them from the list, or remembers the reply
//! once it has asked.

use alloc::vec;
use alloc::vec::Vec;

use super::define::layout;
use super::{Domain, Info, Opcode, Tail};
use crate::hip_error::{HipError, HipResult};
use crate::wire::{Layout, Sink, Wire, WireError, split};

/// Size in bytes of the largest request of a static operation.
pub const STATIC_REQUEST_MAX_BYTES: usize = 32;

/// The largest number of devices that a client takes for one; a worker that says more is not believed.
pub const DEVICES_MAX: i32 = 1024;

/// The largest number of devices that a list describes.
pub const STATIC_DEVICES_MAX: i32 = 64;

/// The largest list in bytes that a worker makes.
pub const STATIC_LIST_MAX_BYTES: u32 = 256 << 10;

/// Checks the marks of all rows; a wrong one does not compile.
pub(super) const fn check_marks(table: &[Info]) {
    let mut row = 0;
    while row < table.len() {
        let info = &table[row];
        if let Some(mark) = info.statics {
            assert!(
                mark.fields.len() == info.request.fields.len(),
                "a static row has a domain for each field"
            );
            assert!(info.request.size <= STATIC_REQUEST_MAX_BYTES, "the request of a static row is short");
            assert!(
                matches!((info.request.tail, info.reply.tail), (Tail::None, Tail::None)),
                "a static row has no tails"
            );
            let mut field = 0;
            while field < mark.fields.len() {
                let is_number = matches!(info.request.fields[field].layout, Layout::Number(_));
                assert!(
                    is_number || matches!(mark.fields[field], Domain::Asked),
                    "devices and attributes are numbers"
                );
                field += 1;
            }
        }
        row += 1;
    }
}

impl Info {
    /// Returns the fixed parts of the requests of a static operation whose replies a list has, on a worker with this many devices
    /// and these attributes. There are none if a field can have any value, or if the operation is not static.
    pub fn static_requests(&self, devices: i32, attributes: &[i32]) -> Vec<Vec<u8>> {
        let Some(mark) = self.statics else { return Vec::new() };
        let mut requests = vec![Vec::with_capacity(self.request.size)];
        for (domain, field) in mark.fields.iter().zip(self.request.fields) {
            let devices = 0..if *domain == Domain::Device { devices } else { 0 };
            let attributes = if *domain == Domain::Attribute { attributes } else { &[] };
            let values: Vec<i32> = devices.chain(attributes.iter().copied()).collect();
            let with = |request: &Vec<u8>, value: i32| {
                let mut request = request.clone();
                match field.layout {
                    Layout::Number("u64") => i64::from(value).cast_unsigned().put(&mut request),
                    _ => value.put(&mut request),
                }
                request
            };
            requests = requests
                .iter()
                .flat_map(|request| values.iter().map(move |value| with(request, *value)))
                .collect();
        }
        requests
    }
}

layout! {
    /// The fixed part of an entry of the list.
    StaticHead { op: u16, request_length: u16, device: i32, error_code: i32, reply_length: u32 }
}

/// An entry of the list that `STATIC` returns: a request, and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticEntry<'a> {
    /// The operation. Workers may list operations that a client does not know.
    pub op: Opcode,
    /// The current device to which the reply belongs; `None` if it does not depend on it.
    pub device: Option<i32>,
    /// The request's fixed part.
    pub request: &'a [u8],
    /// The reply's fixed part, or the error.
    pub reply: HipResult<&'a [u8]>,
}

impl<'a> StaticEntry<'a> {
    /// Returns the number of bytes that the entry takes.
    pub fn len_bytes(&self) -> usize {
        StaticHead::SIZE + self.request.len() + self.reply.map_or(0, <[u8]>::len)
    }

    /// Appends the entry to a list.
    ///
    /// # Errors
    /// [`WireError::Long`] for a request or reply whose length the list cannot say; nothing is appended.
    pub fn put(&self, out: &mut impl Sink) -> Result<(), WireError> {
        let reply = self.reply.unwrap_or(&[]);
        let long = |part: &[u8], max: u64| WireError::Long { have: part.len() as u64, max };
        StaticHead {
            op: self.op.0,
            request_length: u16::try_from(self.request.len())
                .map_err(|_| long(self.request, u64::from(u16::MAX)))?,
            device: self.device.unwrap_or(-1),
            error_code: self.reply.err().map_or(0, |error| error.0),
            reply_length: u32::try_from(reply.len()).map_err(|_| long(reply, u64::from(u32::MAX)))?,
        }
        .put(out);
        out.put_bytes(self.request);
        out.put_bytes(reply);
        Ok(())
    }

    /// Reads an entry from the front of a list.
    ///
    /// # Errors
    /// [`WireError::Short`] when the list is cut; [`WireError::Value`] for a device below -1, or a failed request with a reply.
    pub fn take(list: &mut &'a [u8]) -> Result<Self, WireError> {
        let head = StaticHead::take(list)?;
        let request = split(list, usize::from(head.request_length))?;
        let length = usize::try_from(head.reply_length).map_err(|_| WireError::Value)?;
        let reply = split(list, length)?;
        let device = match head.device {
            -1 => None,
            0.. => Some(head.device),
            _ => return Err(WireError::Value),
        };
        let reply = match HipError::check(head.error_code) {
            Ok(()) => Ok(reply),
            Err(error) if reply.is_empty() => Err(error),
            Err(_) => return Err(WireError::Value),
        };
        Ok(Self { op: Opcode(head.op), device, request, reply })
    }
}

/// Returns whether an error is a static operation's lasting answer: the operation, the attribute or the device is not there. Any other
/// error may not come again.
pub fn is_lasting(error: HipError) -> bool {
    [HipError::INVALID_VALUE, HipError::INVALID_DEVICE, HipError::NOT_SUPPORTED].contains(&error)
}
