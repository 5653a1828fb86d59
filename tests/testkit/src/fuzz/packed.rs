//! The fuzz target for packed bytes, in both directions: what a peer sends is unpacked, and what is packed comes back.

use hipr_io::{PackError, Packer, Unpacker, unpack_all, unpack_into};

/// Bytes that a frame is unpacked to at most here, so that a run is short.
const LENGTH_MAX: u64 = 1 << 18;

/// Unpacks a frame in pieces of `step` bytes, into memory that has a mark behind it.
fn in_pieces(mut packed: &[u8], length: u64, step: usize) -> Result<Vec<u8>, PackError> {
    let mut unpacker = Unpacker::new(length)?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; step + 1];
    loop {
        piece[step] = 0xa5;
        let left = unpacker.left();
        let len = unpacker.unpack(&mut packed, &mut piece[..step])?;
        assert_eq!(piece[step], 0xa5, "nothing is written behind the room");
        assert_eq!(unpacker.left(), left - len as u64);
        assert!(len == step || unpacker.left() == 0, "the room is used");
        bytes.extend_from_slice(&piece[..len]);
        if unpacker.left() == 0 {
            assert!(packed.is_empty(), "all of it was read");
            return Ok(bytes);
        }
    }
}

/// Unpacks any bytes, whose first ones say to how many bytes and in which pieces: however it is done, the outcome is the same. Then packs
/// them: they come back.
///
/// # Panics
/// They do not.
pub fn packed(data: &[u8]) {
    let Some((head, rest)) = data.split_first_chunk::<4>() else { return };
    let length = u64::from(u32::from_le_bytes([head[0], head[1], head[2], 0])) % LENGTH_MAX;
    let step = usize::from(head[3]) * 67 + 1;
    let whole = unpack_all(rest, length);
    assert_eq!(whole, in_pieces(rest, length, step), "in pieces of {step}");
    let mut out = vec![0; length as usize];
    assert_eq!(whole.as_ref().err().copied(), unpack_into(rest, &mut out).err());
    if let Ok(whole) = whole {
        assert!(whole.len() as u64 == length && whole == out);
    }

    let mut packer = Packer::new().expect("memory");
    let mut frame = Vec::new();
    if packer.pack(rest, &mut frame) {
        assert!(frame.len() < rest.len());
        assert_eq!(unpack_all(&frame, rest.len() as u64).as_deref(), Ok(rest));
    }
    frame.clear();
    packer.begin(rest.len() as u64).expect("memory");
    rest.chunks(step).for_each(|piece| packer.push(piece, &mut frame).expect("memory"));
    packer.finish(&mut frame).expect("memory");
    assert!(frame.len() as u64 <= hipr_proto::op::packed_max_bytes(rest.len() as u64));
    assert_eq!(in_pieces(&frame, rest.len() as u64, step).as_deref(), Ok(rest));
}
