//! Scalar integer and bit operations. Where a pair is returned, the second part is what goes to SCC.

use super::int::nonzero;

/// Returns the sum and the carry.
pub(crate) fn add_carry(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(u32::from(carry));
    (sum, first | second)
}

/// Returns the difference and the borrow.
pub(crate) fn sub_borrow(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(u32::from(borrow));
    (difference, first | second)
}

/// Returns the smaller value, and whether `a < b`.
pub(crate) fn min<T: PartialOrd>(a: T, b: T) -> (T, bool) {
    if a < b { (a, true) } else { (b, false) }
}

/// Returns the larger value, and whether `a >= b`.
pub(crate) fn max<T: PartialOrd>(a: T, b: T) -> (T, bool) {
    if a >= b { (a, true) } else { (b, false) }
}

/// Returns `(a << N) + b`, and its carry.
pub(crate) fn shl_add<const N: u32>(a: u32, b: u32) -> (u32, bool) {
    let sum = (u64::from(a) << N) + u64::from(b);
    (sum as u32, sum >> 32 != 0)
}

/// Returns `a << b`, with the count modulo the width, and whether the result is not 0.
pub(crate) fn shl32(a: u32, b: u32) -> (u32, bool) {
    nonzero(a.wrapping_shl(b))
}

/// Returns `a << b`, with the count modulo the width, and whether the result is not 0.
pub(crate) fn shl64(a: u64, b: u32) -> (u64, bool) {
    nonzero(a.wrapping_shl(b))
}

/// Returns `a >> b`, with zeros shifted in and the count modulo the width, and whether the result is not 0.
pub(crate) fn shr32(a: u32, b: u32) -> (u32, bool) {
    nonzero(a.wrapping_shr(b))
}

/// Returns `a >> b`, with zeros shifted in and the count modulo the width, and whether the result is not 0.
pub(crate) fn shr64(a: u64, b: u32) -> (u64, bool) {
    nonzero(a.wrapping_shr(b))
}

/// Returns `a >> b`, with the sign shifted in and the count modulo the width, and whether the result is not 0.
pub(crate) fn sar32(a: i32, b: u32) -> (i32, bool) {
    nonzero(a.wrapping_shr(b))
}

/// Returns `a >> b`, with the sign shifted in and the count modulo the width, and whether the result is not 0.
pub(crate) fn sar64(a: i64, b: u32) -> (i64, bool) {
    nonzero(a.wrapping_shr(b))
}

/// Returns a mask of `a` ones from bit `b` on.
pub(crate) fn bit_mask32(a: u32, b: u32) -> u32 {
    1u32.wrapping_shl(a).wrapping_sub(1).wrapping_shl(b)
}

/// Returns a mask of `a` ones from bit `b` on.
pub(crate) fn bit_mask64(a: u32, b: u32) -> u64 {
    1u64.wrapping_shl(a).wrapping_sub(1).wrapping_shl(b)
}

/// Returns the first bit and the width of a bit field operand: bits 5:0 (the caller drops bit 5 for 32 bits) and 22:16.
fn field(operand: u32) -> (u32, u32) {
    (operand & 0x3f, operand >> 16 & 0x7f)
}

/// Returns the bit field that `b` names, zero-extended.
pub(crate) fn bfe_u32(a: u32, b: u32) -> (u32, bool) {
    let (offset, width) = field(b);
    let value = a >> (offset & 31);
    nonzero(if width < 32 { value & ((1 << width) - 1) } else { value })
}

/// Returns the bit field that `b` names, sign-extended.
pub(crate) fn bfe_i32(a: i32, b: u32) -> (i32, bool) {
    let (offset, width) = field(b);
    let value = a >> (offset & 31);
    nonzero(match width {
        0 => 0,
        1..32 => value << (32 - width) >> (32 - width),
        _ => value,
    })
}

/// Returns the bit field that `b` names, zero-extended.
pub(crate) fn bfe_u64(a: u64, b: u32) -> (u64, bool) {
    let (offset, width) = field(b);
    let value = a >> offset;
    nonzero(if width < 64 { value & ((1 << width) - 1) } else { value })
}

/// Returns the bit field that `b` names, sign-extended.
pub(crate) fn bfe_i64(a: i64, b: u32) -> (i64, bool) {
    let (offset, width) = field(b);
    let value = a >> offset;
    nonzero(match width {
        0 => 0,
        1..64 => value << (64 - width) >> (64 - width),
        _ => value,
    })
}

/// Returns `|a - b|`, computed modulo 2^32.
pub(crate) fn abs_difference(a: i32, b: i32) -> (i32, bool) {
    nonzero(a.wrapping_sub(b).wrapping_abs())
}

/// Returns the high half of the product.
pub(crate) fn mul_hi_u32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// Returns the high half of the signed product.
pub(crate) fn mul_hi_i32(a: i32, b: i32) -> i32 {
    ((i64::from(a) * i64::from(b)) >> 32) as i32
}

/// Packs two halves, the first operand's in the low half.
pub(crate) fn pack(low: u32, high: u32) -> u32 {
    low & 0xffff | high << 16
}

/// Returns the position of the lowest bit that is 1, or -1 if there is none.
pub(crate) fn first_one32(a: u32) -> i32 {
    if a == 0 { -1 } else { a.trailing_zeros() as i32 }
}

/// Returns the position of the lowest bit that is 1, or -1 if there is none.
pub(crate) fn first_one64(a: u64) -> i32 {
    if a == 0 { -1 } else { a.trailing_zeros() as i32 }
}

/// Returns the number of zeros above the highest 1, or -1 if there is none.
pub(crate) fn leading_zeros32(a: u32) -> i32 {
    if a == 0 { -1 } else { a.leading_zeros() as i32 }
}

/// Returns the number of zeros above the highest 1, or -1 if there is none.
pub(crate) fn leading_zeros64(a: u64) -> i32 {
    if a == 0 { -1 } else { a.leading_zeros() as i32 }
}

/// Returns the number of bits at the top that equal the sign, or -1 if all do.
pub(crate) fn sign_bits32(a: i32) -> i32 {
    leading_zeros32((a ^ (a >> 31)) as u32)
}

/// Returns the number of bits at the top that equal the sign, or -1 if all do.
pub(crate) fn sign_bits64(a: i64) -> i32 {
    leading_zeros64((a ^ (a >> 63)) as u64)
}

/// Returns, in the lowest bit of each group of four bits, whether any bit of the group is 1.
fn any_of_four(a: u64) -> u64 {
    (a | a >> 1 | a >> 2 | a >> 3) & 0x1111_1111_1111_1111
}

/// Sets all four bits of each group of four that has a 1.
pub(crate) fn whole_quads(a: u64) -> u64 {
    any_of_four(a) * 0xf
}

/// Returns one bit for each group of four bits, from bit 0 on, that says whether the group has a 1.
pub(crate) fn quad_mask(a: u64) -> u64 {
    let mut bits = any_of_four(a);
    bits = (bits | bits >> 3) & 0x0303_0303_0303_0303;
    bits = (bits | bits >> 6) & 0x000f_000f_000f_000f;
    bits = (bits | bits >> 12) & 0x0000_00ff_0000_00ff;
    (bits | bits >> 24) & 0xffff
}

/// Returns each bit of `a` twice.
pub(crate) fn double_bits(a: u32) -> u64 {
    let mut bits = u64::from(a);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    bits = (bits | bits << 1) & 0x5555_5555_5555_5555;
    bits * 3
}
