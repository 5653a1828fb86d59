//! Graphics interoperability, for which there is no OpenGL context: the functions answer as AMD's runtime does without one.

use hipr_proto::{HipError, HipResult};

use crate::convert::{Out, Ptr, Stream};
use crate::session::Session;

/// The last value of `hipGLDeviceList`.
const LISTS_MAX: i32 = 3;

/// `hipGLGetDevices`: no device draws.
pub(crate) fn devices(
    _session: &Session,
    found: Out<u32>,
    devices: Out<i32>,
    count: u32,
    list: i32,
) -> HipResult<()> {
    let found = found.check()?;
    devices.check()?;
    if count == 0 || !(1..=LISTS_MAX).contains(&list) {
        return Err(HipError::INVALID_VALUE);
    }
    found.set(0);
    Err(HipError::NO_DEVICE)
}

/// Functions that make or use a resource: there is none.
pub(crate) fn refuse<T>(_session: &Session, _parameters: T) -> HipResult<()> {
    Err(HipError::INVALID_VALUE)
}

/// `hipGraphicsMapResources`, `hipGraphicsUnmapResources`.
pub(crate) fn map(session: &Session, _count: i32, _resources: Out<Ptr>, stream: Stream) -> HipResult<()> {
    session.handle(stream)?;
    Err(HipError::INVALID_VALUE)
}
