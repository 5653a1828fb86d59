use std::io::IoSlice;

/// Maximum number of slices in one vectored write.
const PIECES_MAX: usize = 64;

/// Calls `write` with the first of `pieces`, as many as one vectored write can take.
pub fn gather<'a, R>(pieces: impl Iterator<Item = &'a [u8]>, write: impl FnOnce(&[IoSlice<'a>]) -> R) -> R {
    let mut slices = [IoSlice::new(&[]); PIECES_MAX];
    let mut count = 0;
    for (place, piece) in slices.iter_mut().zip(pieces) {
        *place = IoSlice::new(piece);
        count += 1;
    }
    write(slices.get(..count).unwrap_or_default())
}

/// Calls `write` with the first `max_bytes` of `pieces`, as far as one vectored write can take them.
pub fn gather_some<'a, R>(
    pieces: impl Iterator<Item = &'a [u8]>,
    max_bytes: usize,
    write: impl FnOnce(&[IoSlice<'a>]) -> R,
) -> R {
    let mut room = max_bytes;
    let pieces = pieces.map_while(|piece| {
        let some = piece.get(..piece.len().min(room)).filter(|_| room > 0)?;
        room -= some.len();
        Some(some)
    });
    gather(pieces, write)
}
