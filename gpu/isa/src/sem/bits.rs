//! Integer and bit operations of vector instructions.

/// Returns a zero-extended field of `width` bits from bit `offset` on.
#[inline(always)]
pub(crate) fn bfe_u32(value: u32, offset: u32, width: u32) -> u32 {
    (value >> (offset & 31)) & ((1 << (width & 31)) - 1)
}

/// Returns a sign-extended field of `width` bits from bit `offset` on.
#[inline(always)]
pub(crate) fn bfe_i32(value: u32, offset: u32, width: u32) -> u32 {
    let width = width & 31;
    let field = bfe_u32(value, offset, width);
    let sign = if width == 0 { 0 } else { 1 << (width - 1) };
    (field ^ sign).wrapping_sub(sign)
}

/// Returns a mask of `width` ones from bit `offset` on.
#[inline(always)]
pub(crate) fn bfm(width: u32, offset: u32) -> u32 {
    ((1 << (width & 31)) - 1) << (offset & 31)
}

/// Returns the bits of `a` where `mask` is set, and of `b` elsewhere.
#[inline(always)]
pub(crate) fn bfi(mask: u32, a: u32, b: u32) -> u32 {
    mask & a | !mask & b
}

/// Returns 32 bits of the concatenation of `high` and `low`, from bit `shift` on.
#[inline(always)]
pub(crate) fn align(high: u32, low: u32, shift: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> shift) as u32
}

/// Returns the position of the highest set bit, counted from the top; all ones if no bit is set.
#[inline(always)]
pub(crate) fn first_high(value: u32) -> u32 {
    if value == 0 { u32::MAX } else { value.leading_zeros() }
}

/// Returns the position of the highest bit that differs from the sign, counted from the top; all ones if there is none.
#[inline(always)]
pub(crate) fn first_unlike_sign(value: i32) -> u32 {
    first_high((value ^ (value >> 31)) as u32)
}

/// Returns the position of the lowest set bit; all ones if no bit is set.
#[inline(always)]
pub(crate) fn first_low(value: u32) -> u32 {
    if value == 0 { u32::MAX } else { value.trailing_zeros() }
}

/// Selects four bytes, one for each byte of `selector`: 0 to 3 of `low`, 4 to 7 of `high`, 8 to 11 the signs of their odd
/// bytes, 12 zeros, larger numbers ones.
#[inline(always)]
pub(crate) fn perm(high: u32, low: u32, selector: u32) -> u32 {
    let data = u64::from(high) << 32 | u64::from(low);
    (0..4).fold(0, |result, index| {
        let select = selector >> (index * 8) & 0xff;
        let byte = match select {
            0..=7 => (data >> (select * 8)) as u32 & 0xff,
            8..=11 => 0u32.wrapping_sub((data >> ((select - 8) * 16 + 15)) as u32 & 1) & 0xff,
            12 => 0,
            _ => 0xff,
        };
        result | byte << (index * 8)
    })
}

/// A precomputed byte permutation that selects no signs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    /// For each byte of the result: how far to shift the source registers, and the masks of the low and the high one.
    bytes: [(u32, u32, u32); 4],
    ones: u32,
}

impl Permutation {
    #[inline(always)]
    pub(crate) fn new(selector: u32) -> Option<Self> {
        let selects = selector.to_le_bytes().map(u32::from);
        if selects.iter().any(|select| (8..12).contains(select)) {
            return None;
        }
        let bytes = selects.map(|select| match select {
            0..=3 => (select * 8, 0xff, 0),
            4..=7 => (select % 4 * 8, 0, 0xff),
            _ => (0, 0, 0),
        });
        let ones = selects.map(|select| if select > 12 { 0xff } else { 0 });
        Some(Self { bytes, ones: u32::from_le_bytes(ones) })
    }

    #[inline(always)]
    pub(crate) fn apply(&self, high: u32, low: u32) -> u32 {
        let byte = |index: usize| {
            let (shift, of_low, of_high) = self.bytes[index];
            low >> shift & of_low | high >> shift & of_high
        };
        self.ones | byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
    }
}

/// Returns the low 24 bits.
#[inline(always)]
pub(crate) fn u24(value: u32) -> u32 {
    value & 0xff_ffff
}

/// Returns the low 24 bits, sign-extended.
#[inline(always)]
pub(crate) fn i24(value: u32) -> i32 {
    (value << 8) as i32 >> 8
}

/// Returns the upper half of the product of two 24-bit integers.
#[inline(always)]
pub(crate) fn mul_hi_u24(a: u32, b: u32) -> u32 {
    ((u64::from(u24(a)) * u64::from(u24(b))) >> 32) as u32
}

/// Returns the upper half of the product of two signed 24-bit integers.
#[inline(always)]
pub(crate) fn mul_hi_i24(a: u32, b: u32) -> u32 {
    ((i64::from(i24(a)) * i64::from(i24(b))) >> 32) as u32
}

/// Returns the upper half of the product of two unsigned integers.
#[inline(always)]
pub(crate) fn mul_hi_u32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// Returns the upper half of the product of two signed integers.
#[inline(always)]
pub(crate) fn mul_hi_i32(a: i32, b: i32) -> u32 {
    ((i64::from(a) * i64::from(b)) >> 32) as u32
}

/// Returns `a * b + c` in 64 bits, and its carry.
#[inline(always)]
pub(crate) fn mad_u64_u32(a: u32, b: u32, c: u64) -> (u64, bool) {
    (u64::from(a) * u64::from(b)).overflowing_add(c)
}

/// Returns `a * b + c` in signed 64 bits, and the bit above them.
#[inline(always)]
pub(crate) fn mad_i64_i32(a: i32, b: i32, c: i64) -> (i64, bool) {
    let product = i64::from(a) * i64::from(b);
    let sum = product.wrapping_add(c);
    let overflow = (sum ^ product) & (sum ^ c);
    (sum, sum ^ overflow < 0)
}

/// Returns the sum with carry-in, and the carry.
#[inline(always)]
pub(crate) fn add_carry(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

/// Returns the difference with borrow-in, and the borrow.
#[inline(always)]
pub(crate) fn sub_borrow(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let difference = u64::from(a).wrapping_sub(u64::from(b)).wrapping_sub(u64::from(borrow));
    (difference as u32, difference >> 32 != 0)
}

/// Returns the middle one of three values.
#[inline(always)]
pub(crate) fn med3<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.min(b).max(a.max(b).min(c))
}

/// Returns the bytes of a word, lowest first.
#[inline(always)]
fn bytes(value: u32) -> [u32; 4] {
    value.to_le_bytes().map(u32::from)
}

/// Returns the averages of corresponding bytes; a set lowest bit of a byte of `round` rounds that byte's average up.
#[inline(always)]
pub(crate) fn lerp_u8(a: u32, b: u32, round: u32) -> u32 {
    let (a, b, round) = (bytes(a), bytes(b), bytes(round));
    u32::from_le_bytes(std::array::from_fn(|index| ((a[index] + b[index] + (round[index] & 1)) >> 1) as u8))
}

/// Adds the absolute differences of corresponding bytes to `sum`.
#[inline(always)]
pub(crate) fn sad_u8(a: u32, b: u32, sum: u32) -> u32 {
    let (a, b) = (bytes(a), bytes(b));
    (0..4).fold(sum, |sum, index| sum.wrapping_add(a[index].abs_diff(b[index])))
}

/// Adds the absolute differences of corresponding bytes to `sum`, except where the byte of `b` is 0.
#[inline(always)]
pub(crate) fn msad_u8(a: u32, b: u32, sum: u32) -> u32 {
    let (a, b) = (bytes(a), bytes(b));
    (0..4)
        .fold(sum, |sum, index| sum.wrapping_add(if b[index] == 0 { 0 } else { a[index].abs_diff(b[index]) }))
}

/// Adds the absolute differences of corresponding halves to `sum`.
#[inline(always)]
pub(crate) fn sad_u16(a: u32, b: u32, sum: u32) -> u32 {
    sum.wrapping_add((a & 0xffff).abs_diff(b & 0xffff)).wrapping_add((a >> 16).abs_diff(b >> 16))
}

/// Returns four sums of absolute differences between `b` and the bytes of `a` from byte 0, 1, 2 and 3 on, each added to a
/// 16-bit field of `sums`.
#[inline(always)]
pub(crate) fn quad_sad(a: u64, b: u32, sums: u64, sad: impl Fn(u32, u32, u32) -> u32) -> u64 {
    (0..4).fold(0, |result, index| {
        let sum = (sums >> (index * 16)) as u32 & 0xffff;
        let sum = sad((a >> (index * 8)) as u32, b, sum);
        result | u64::from(sum & 0xffff) << (index * 16)
    })
}

/// Returns the sum of products of corresponding fields of `BITS` bits.
#[inline(always)]
pub(crate) fn dot_unsigned<const BITS: u32>(a: u32, b: u32) -> u64 {
    let field = |value: u32, index: u32| u64::from(value >> (index * BITS) & (u32::MAX >> (32 - BITS)));
    (0..32 / BITS).map(|index| field(a, index) * field(b, index)).sum()
}

/// Returns the sum of products of corresponding signed fields of `BITS` bits.
#[inline(always)]
pub(crate) fn dot_signed<const BITS: u32>(a: u32, b: u32) -> i64 {
    let field =
        |value: u32, index: u32| i64::from((value << (32 - BITS * (index + 1))) as i32 >> (32 - BITS));
    (0..32 / BITS).map(|index| field(a, index) * field(b, index)).sum()
}

/// Returns `(a << b) + c`, by halves of 32 bits, of which a vector holds twice as many. Of `b`, three bits count.
#[inline(always)]
pub(crate) fn shift_add_u64(a: u64, b: u32, c: u64) -> u64 {
    let shift = b & 7;
    let [low, high] = [a as u32, (a >> 32) as u32];
    let high = high << shift | low >> 1 >> (31 - shift);
    let (low, carry) = (low << shift).overflowing_add(c as u32);
    let high = high.wrapping_add((c >> 32) as u32).wrapping_add(u32::from(carry));
    u64::from(low) | u64::from(high) << 32
}
