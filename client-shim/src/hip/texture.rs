//! Textures and surfaces, on devices without images: every function answers as AMD's runtime 7.2.4 does on an MI300X. What is right is
//! refused with `hipErrorNotSupported`. So no texture object, surface or texture reference of a module exists.

use hipr_abi::{HIP_TRSA_OVERRIDE_FORMAT, hipChannelFormatDesc, hipErrorInvalidTexture};
use hipr_proto::{HipError, HipResult};

use super::module;
use crate::convert::{In, Module, Out, Ptr, Str, Stream};
use crate::session::Session;

/// Number of dimensions that have an address mode.
const DIMENSIONS: i32 = 3;

/// Functions that need all of these pointers and a device with images.
pub(crate) fn refuse<const N: usize, T>(_session: &Session, pointers: [Ptr; N], _others: T) -> HipResult<()> {
    for pointer in pointers {
        pointer.check()?;
    }
    Err(HipError::NOT_SUPPORTED)
}

/// `hipMemMapArrayAsync`: arrays of which memory is mapped piece by piece.
pub(crate) fn map_arrays(session: &Session, list: Ptr, count: u32, _stream: Stream) -> HipResult<()> {
    if count == 0 { Err(HipError::INVALID_VALUE) } else { refuse(session, [list], ()) }
}

/// `hipTexRefSetAddressMode`.
pub(crate) fn set_address_mode(session: &Session, texture: Ptr, dim: i32, _mode: i32) -> HipResult<()> {
    texture.check()?;
    if !(0..DIMENSIONS).contains(&dim) {
        return Err(HipError::INVALID_VALUE);
    }
    refuse(session, [], ())
}

/// `hipDestroyTextureObject`, `hipTexObjectDestroy`.
pub(crate) fn destroy(_session: &Session, texture: Ptr) -> HipResult<()> {
    if texture.is_null() { Ok(()) } else { Err(HipError::NOT_SUPPORTED) }
}

/// `hipDestroySurfaceObject`.
pub(crate) fn destroy_surface(_session: &Session, surface: Ptr) -> HipResult<()> {
    if surface.is_null() { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// Functions about what a texture reference is bound to: nothing.
pub(crate) fn bound(_session: &Session, _out: Ptr, _texture: Ptr) -> HipResult<()> {
    Err(HipError::INVALID_VALUE)
}

/// `hipBindTexture`: to memory.
pub(crate) fn bind(
    session: &Session,
    _offset: Out<usize>,
    texture: Ptr,
    memory: Ptr,
    desc: In<hipChannelFormatDesc>,
    _size: usize,
) -> HipResult<()> {
    session.find_variable(texture)?;
    if memory.is_null() {
        return Err(HipError::NOT_FOUND);
    }
    desc.check()?;
    Err(HipError::NOT_SUPPORTED)
}

/// `hipBindTexture2D`: to rows in memory.
pub(crate) fn bind_2d(
    session: &Session,
    offset: Out<usize>,
    texture: Ptr,
    memory: Ptr,
    desc: In<hipChannelFormatDesc>,
    (width, _height, _pitch): (usize, usize, usize),
) -> HipResult<()> {
    if texture.is_null() {
        return Err(HipError::UNKNOWN);
    }
    if memory.is_null() {
        return Err(HipError::NOT_FOUND);
    }
    bind(session, offset, texture, memory, desc, width)
}

/// `hipBindTextureToArray`.
pub(crate) fn bind_array(
    session: &Session,
    texture: Ptr,
    array: Ptr,
    desc: In<hipChannelFormatDesc>,
) -> HipResult<()> {
    texture.check()?;
    array.check()?;
    desc.check()?;
    bind_mipmapped(session, texture, array, desc)
}

/// `hipBindTextureToMipmappedArray`.
pub(crate) fn bind_mipmapped(
    session: &Session,
    texture: Ptr,
    array: Ptr,
    desc: In<hipChannelFormatDesc>,
) -> HipResult<()> {
    session.find_variable(texture)?;
    array.check()?;
    desc.check()?;
    Err(HipError::NOT_SUPPORTED)
}

/// `hipGetTextureAlignmentOffset`.
pub(crate) fn alignment(session: &Session, offset: Out<usize>, texture: Ptr) -> HipResult<()> {
    if texture.is_null() {
        return Err(HipError(hipErrorInvalidTexture));
    }
    refuse(session, [offset.address()], ())
}

/// `hipModuleGetTexRef`.
pub(crate) fn of_module(session: &Session, texture: Out<Ptr>, of: Module, name: Str) -> HipResult<()> {
    texture.check()?;
    if name.bytes().is_none_or(<[u8]>::is_empty) {
        return Err(HipError::INVALID_VALUE);
    }
    module::find(session, of)?;
    Err(HipError::NOT_SUPPORTED)
}

/// Functions that bind a texture reference of a module, which need all of these pointers.
pub(crate) fn set<const N: usize, T>(_session: &Session, pointers: [Ptr; N], _others: T) -> HipResult<()> {
    for pointer in pointers {
        pointer.check()?;
    }
    Err(HipError::NOT_FOUND)
}

/// `hipTexRefSetArray`, `hipTexRefSetMipmappedArray`.
pub(crate) fn set_array(session: &Session, texture: Ptr, array: Ptr, flags: u32) -> HipResult<()> {
    if flags == HIP_TRSA_OVERRIDE_FORMAT {
        set(session, [texture, array], ())
    } else {
        Err(HipError::INVALID_VALUE)
    }
}

/// `hipDeviceGetTexture1DLinearMaxWidth`: there are no textures of any width.
pub(crate) fn linear_width(
    session: &Session,
    width: Out<usize>,
    desc: In<hipChannelFormatDesc>,
    device: i32,
) -> HipResult<()> {
    let (out, desc) = (width.check()?, desc.check()?);
    session.worker().check_device(device)?;
    let bits: i64 = [desc.x, desc.y, desc.z, desc.w].map(i64::from).iter().sum();
    if bits / i64::from(u8::BITS) == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    out.set(0);
    Ok(())
}
