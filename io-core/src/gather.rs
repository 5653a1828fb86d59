use std::io::IoSlice;

/// Pieces in one vectored write; more of them leave with the next.
const PIECES_MAX: usize = 64;

/// Gives `write` the first of these pieces, as many as one vectored write takes.
pub fn gather<'a, R>(pieces: impl Iterator<Item = &'a [u8]>, write: impl FnOnce(&[IoSlice<'a>]) -> R) -> R {
    let mut slices = [IoSlice::new(&[]); PIECES_MAX];
    let mut count = 0;
    for (place, piece) in slices.iter_mut().zip(pieces) {
        *place = IoSlice::new(piece);
        count += 1;
    }
    write(slices.get(..count).unwrap_or_default())
}
