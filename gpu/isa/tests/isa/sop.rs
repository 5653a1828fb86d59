//! Tests of the scalar ALU.

use crate::bench::Bench;

/// Runs a one-word instruction on s0 and s1 with the given SCC, and returns s2 and SCC afterwards.
fn run32(word: u32, a: u32, b: u32, scc: bool) -> (u32, bool) {
    let mut bench = Bench::default();
    bench.wave.sgpr[0] = a;
    bench.wave.sgpr[1] = b;
    bench.wave.sgpr[2] = 0x5555_5555;
    bench.wave.scc = scc;
    bench.run(&[word]);
    (bench.wave.sgpr[2], bench.wave.scc)
}

/// Runs a one-word instruction on s[0:1] and s[4:5] with the given SCC, and returns s[2:3] and SCC afterwards.
fn run64(word: u32, a: u64, b: u64, scc: bool) -> (u64, bool) {
    let mut bench = Bench::default();
    bench.wave.set_pair(0, a);
    bench.wave.set_pair(4, b);
    bench.wave.set_pair(2, 0x5555_5555_5555_5555);
    bench.wave.scc = scc;
    bench.run(&[word]);
    (bench.wave.pair(2), bench.wave.scc)
}

const MIN: u32 = i32::MIN as u32;
const MAX: u32 = i32::MAX as u32;
const NEG: u32 = u32::MAX;

/// A case: first source, second source, result, SCC afterwards.
type Case32 = (u32, u32, u32, bool);
type Case64 = (u64, u64, u64, bool);

/// Checks cases with SCC clear and set beforehand, as the result does not depend on it.
fn check32(word: u32, cases: &[Case32]) {
    for &(a, b, result, scc) in cases {
        for before in [false, true] {
            assert_eq!(run32(word, a, b, before), (result, scc), "{word:#x} of {a:#x}, {b:#x}");
        }
    }
}

/// Checks cases of an instruction that does not change SCC.
fn check32_quiet(word: u32, cases: &[(u32, u32, u32)]) {
    for &(a, b, result) in cases {
        for before in [false, true] {
            assert_eq!(run32(word, a, b, before), (result, before), "{word:#x} of {a:#x}, {b:#x}");
        }
    }
}

fn check64(word: u32, cases: &[Case64]) {
    for &(a, b, result, scc) in cases {
        for before in [false, true] {
            assert_eq!(run64(word, a, b, before), (result, scc), "{word:#x} of {a:#x}, {b:#x}");
        }
    }
}

fn check64_quiet(word: u32, cases: &[(u64, u64, u64)]) {
    for &(a, b, result) in cases {
        for before in [false, true] {
            assert_eq!(run64(word, a, b, before), (result, before), "{word:#x} of {a:#x}, {b:#x}");
        }
    }
}

#[test]
fn unsigned_sums_set_scc_to_the_carry() {
    let [add, sub, addc, subb] = [
        0x80020100, // s_add_u32 s2, s0, s1
        0x80820100, // s_sub_u32 s2, s0, s1
        0x82020100, // s_addc_u32 s2, s0, s1
        0x82820100, // s_subb_u32 s2, s0, s1
    ];
    check32(add, &[(1, 2, 3, false), (NEG, 1, 0, true), (MAX, 1, MIN, false), (NEG, NEG, 0xffff_fffe, true)]);
    check32(sub, &[(3, 2, 1, false), (2, 3, NEG, true), (5, 5, 0, false), (MIN, 1, MAX, false)]);
    for (a, b, carry, result, scc) in [
        (1, 2, false, 3, false),
        (1, 2, true, 4, false),
        (NEG, 0, true, 0, true),
        (NEG, NEG, true, NEG, true),
        (NEG, NEG, false, 0xffff_fffe, true),
    ] {
        assert_eq!(run32(addc, a, b, carry), (result, scc), "{a:#x} + {b:#x} + {carry}");
    }
    for (a, b, borrow, result, scc) in [
        (3, 2, false, 1, false),
        (3, 2, true, 0, false),
        (2, 2, true, NEG, true),
        (0, NEG, true, 0, true),
        (0, NEG, false, 1, true),
    ] {
        assert_eq!(run32(subb, a, b, borrow), (result, scc), "{a:#x} - {b:#x} - {borrow}");
    }
}

#[test]
fn signed_sums_set_scc_to_the_overflow() {
    let [add, sub, absdiff] = [
        0x81020100, // s_add_i32 s2, s0, s1
        0x81820100, // s_sub_i32 s2, s0, s1
        0x95020100, // s_absdiff_i32 s2, s0, s1
    ];
    check32(add, &[(1, 2, 3, false), (NEG, 1, 0, false), (MAX, 1, MIN, true), (MIN, NEG, MAX, true)]);
    check32(sub, &[(2, 3, NEG, false), (MIN, 1, MAX, true), (MAX, NEG, MIN, true), (0, MIN, MIN, true)]);
    check32(
        absdiff,
        &[(2, 5, 3, true), (5, 2, 3, true), (7, 7, 0, false), (MIN, 0, MIN, true), (MAX, NEG, MIN, true)],
    );
}

#[test]
fn minimum_and_maximum_say_which_one_it_was() {
    let [min_i, min_u, max_i, max_u] = [
        0x83020100, // s_min_i32 s2, s0, s1
        0x83820100, // s_min_u32 s2, s0, s1
        0x84020100, // s_max_i32 s2, s0, s1
        0x84820100, // s_max_u32 s2, s0, s1
    ];
    check32(min_i, &[(1, 2, 1, true), (2, 1, 1, false), (NEG, 1, NEG, true), (3, 3, 3, false)]);
    check32(min_u, &[(1, 2, 1, true), (NEG, 1, 1, false), (3, 3, 3, false)]);
    check32(max_i, &[(1, 2, 2, false), (NEG, 1, 1, false), (1, NEG, 1, true), (3, 3, 3, true)]);
    check32(max_u, &[(1, 2, 2, false), (NEG, 1, NEG, true), (3, 3, 3, true)]);
}

#[test]
fn select_takes_the_first_source_if_scc_is_set() {
    let [select32, select64] = [
        0x85020100, // s_cselect_b32 s2, s0, s1
        0x85820400, // s_cselect_b64 s[2:3], s[0:1], s[4:5]
    ];
    assert_eq!(run32(select32, 1, 2, true), (1, true));
    assert_eq!(run32(select32, 1, 2, false), (2, false));
    assert_eq!(run64(select64, 1 << 40, 2 << 40, true), (1 << 40, true));
    assert_eq!(run64(select64, 1 << 40, 2 << 40, false), (2 << 40, false));
}

#[test]
fn logic_sets_scc_if_the_result_is_not_zero() {
    let words32 = [
        0x86020100, // s_and_b32 s2, s0, s1
        0x87020100, // s_or_b32 s2, s0, s1
        0x88020100, // s_xor_b32 s2, s0, s1
        0x89020100, // s_andn2_b32 s2, s0, s1
        0x8a020100, // s_orn2_b32 s2, s0, s1
        0x8b020100, // s_nand_b32 s2, s0, s1
        0x8c020100, // s_nor_b32 s2, s0, s1
        0x8d020100, // s_xnor_b32 s2, s0, s1
    ];
    let words64 = [
        0x86820400, // s_and_b64 s[2:3], s[0:1], s[4:5]
        0x87820400, // s_or_b64 s[2:3], s[0:1], s[4:5]
        0x88820400, // s_xor_b64 s[2:3], s[0:1], s[4:5]
        0x89820400, // s_andn2_b64 s[2:3], s[0:1], s[4:5]
        0x8a820400, // s_orn2_b64 s[2:3], s[0:1], s[4:5]
        0x8b820400, // s_nand_b64 s[2:3], s[0:1], s[4:5]
        0x8c820400, // s_nor_b64 s[2:3], s[0:1], s[4:5]
        0x8d820400, // s_xnor_b64 s[2:3], s[0:1], s[4:5]
    ];
    // Bits of 0b0011 and 0b0101, in the order above, and the operands that give 0.
    let low = [0b0001, 0b0111, 0b0110, 0b0010, 0b1011, 0b1110, 0b1000, 0b1001];
    let ones = [true, false, false, false, false, false, false, false];
    let zeros = [(NEG, 0), (0, 0), (NEG, NEG), (NEG, NEG), (0, NEG), (NEG, NEG), (NEG, 0), (NEG, 0)];
    for (index, (word32, word64)) in words32.into_iter().zip(words64).enumerate() {
        let result = low[index];
        assert_eq!(
            run32(word32, 0x3333_3333, 0x5555_5555, false),
            (result * 0x1111_1111, true),
            "{word32:#x}"
        );
        let (a, b) = (0x3333_3333_3333_3333, 0x5555_5555_5555_5555);
        let wide = u64::from(result) * 0x1111_1111_1111_1111;
        assert_eq!(run64(word64, a, b, false), (wide, true), "{word64:#x}");
        let (a, b) = zeros[index];
        assert_eq!(run32(word32, a, b, true), (0, false), "{word32:#x}");
        let double = |a: u32| u64::from(a) << 32 | u64::from(a);
        assert_eq!(run64(word64, double(a), double(b), true), (0, false), "{word64:#x}");
        // Only the high half is not 0.
        if ones[index] {
            assert_eq!(run64(word64, u64::MAX, 1 << 63, false), (1 << 63, true), "{word64:#x}");
        }
    }
}

#[test]
fn shifts_take_the_count_modulo_the_width() {
    let [shl, shr, sar, shl64, shr64, sar64] = [
        0x8e020100, // s_lshl_b32 s2, s0, s1
        0x8f020100, // s_lshr_b32 s2, s0, s1
        0x90020100, // s_ashr_i32 s2, s0, s1
        0x8e820400, // s_lshl_b64 s[2:3], s[0:1], s4
        0x8f820400, // s_lshr_b64 s[2:3], s[0:1], s4
        0x90820400, // s_ashr_i64 s[2:3], s[0:1], s4
    ];
    check32(shl, &[(1, 31, MIN, true), (2, 31, 0, false), (1, 32, 1, true), (3, 33, 6, true)]);
    check32(shr, &[(MIN, 31, 1, true), (1, 1, 0, false), (MIN, 32, MIN, true), (8, 0xffff_ff01, 4, true)]);
    check32(
        sar,
        &[(MIN, 31, NEG, true), (1, 1, 0, false), (MIN, 1, 0xc000_0000, true), (MIN, 32, MIN, true)],
    );
    check64(shl64, &[(1, 63, 1 << 63, true), (1, 64, 1, true), (2, 63, 0, false), (1, 32, 1 << 32, true)]);
    check64(shr64, &[(1 << 63, 63, 1, true), (1 << 32, 32, 1, true), (1, 1, 0, false), (5, 64, 5, true)]);
    check64(
        sar64,
        &[(1 << 63, 63, u64::MAX, true), (1 << 63, 1, 3 << 62, true), (1 << 63, 64, 1 << 63, true)],
    );
}

#[test]
fn bit_fields() {
    let [bfe_u, bfe_i, bfe_u64, bfe_i64, bfm, bfm64] = [
        0x92820100, // s_bfe_u32 s2, s0, s1
        0x93020100, // s_bfe_i32 s2, s0, s1
        0x93820400, // s_bfe_u64 s[2:3], s[0:1], s4
        0x94020400, // s_bfe_i64 s[2:3], s[0:1], s4
        0x91020100, // s_bfm_b32 s2, s0, s1
        0x91820400, // s_bfm_b64 s[2:3], s0, s4
    ];
    let field = |offset: u32, width: u32| offset | width << 16;
    check32(
        bfe_u,
        &[
            (0x1234_5678, field(8, 8), 0x56, true),
            (0x1234_5678, field(8, 0), 0, false),
            (0xf234_5678, field(28, 8), 0xf, true),
            (0xf234_5678, field(4, 32), 0x0f23_4567, true),
            (0xf234_5678, field(0, 127), 0xf234_5678, true),
            // The count's bit 5 is ignored.
            (0x1234_5678, field(32 + 8, 4), 6, true),
        ],
    );
    check32(
        bfe_i,
        &[
            (0x1234_5678, field(8, 4), 6, true),
            (0x1234_5678, field(4, 4), 7, true),
            (0x1234_5688, field(4, 4), 0xffff_fff8, true),
            (0x1234_5678, field(8, 0), 0, false),
            (0xf234_5678, field(28, 8), NEG, true),
            (0x7234_5678, field(28, 2), NEG, true),
            (MIN, field(0, 32), MIN, true),
        ],
    );
    let field = |offset: u64, width: u64| offset | width << 16;
    check64(
        bfe_u64,
        &[
            (0x0123_4567_89ab_cdef, field(28, 8), 0x78, true),
            (0x0123_4567_89ab_cdef, field(60, 8), 0, false),
            (0x8123_4567_89ab_cdef, field(0, 64), 0x8123_4567_89ab_cdef, true),
            (0x0123_4567_89ab_cdef, field(4, 0), 0, false),
        ],
    );
    check64(
        bfe_i64,
        &[
            (0x0123_4567_89ab_cdef, field(28, 8), 0x78, true),
            (0x0123_4567_89ab_cdef, field(24, 8), 0xffff_ffff_ffff_ff89, true),
            (0x8123_4567_89ab_cdef, field(60, 8), 0xffff_ffff_ffff_fff8, true),
            (0x0123_4567_89ab_cdef, field(4, 0), 0, false),
        ],
    );
    check32_quiet(
        bfm,
        &[(4, 8, 0xf00), (0, 8, 0), (31, 0, MAX), (32, 0, 0), (8, 28, 0xf000_0000), (4, 40, 0xf00)],
    );
    check64_quiet(
        bfm64,
        &[(4, 40, 0xf << 40), (0, 8, 0), (63, 0, u64::MAX >> 1), (8, 60, 0xf << 60), (64, 0, 0)],
    );
}

#[test]
fn products_and_packed_halves_leave_scc_alone() {
    let [mul, hi_u, hi_i, ll, lh, hh] = [
        0x92020100, // s_mul_i32 s2, s0, s1
        0x96020100, // s_mul_hi_u32 s2, s0, s1
        0x96820100, // s_mul_hi_i32 s2, s0, s1
        0x99020100, // s_pack_ll_b32_b16 s2, s0, s1
        0x99820100, // s_pack_lh_b32_b16 s2, s0, s1
        0x9a020100, // s_pack_hh_b32_b16 s2, s0, s1
    ];
    check32_quiet(mul, &[(7, 6, 42), (NEG, 2, 0xffff_fffe), (0x1_0001, 0x1_0001, 0x2_0001), (0, 5, 0)]);
    check32_quiet(hi_u, &[(NEG, NEG, 0xffff_fffe), (0x8000_0000, 2, 1), (7, 6, 0)]);
    check32_quiet(hi_i, &[(NEG, NEG, 0), (NEG, 1, NEG), (MIN, MIN, 0x4000_0000), (MIN, 2, NEG)]);
    check32_quiet(ll, &[(0x1111_2222, 0x3333_4444, 0x4444_2222)]);
    check32_quiet(lh, &[(0x1111_2222, 0x3333_4444, 0x3333_2222)]);
    check32_quiet(hh, &[(0x1111_2222, 0x3333_4444, 0x3333_1111)]);
}

#[test]
fn shifted_sums_carry_what_the_shift_loses() {
    let words = [
        0x97020100, // s_lshl1_add_u32 s2, s0, s1
        0x97820100, // s_lshl2_add_u32 s2, s0, s1
        0x98020100, // s_lshl3_add_u32 s2, s0, s1
        0x98820100, // s_lshl4_add_u32 s2, s0, s1
    ];
    for (shift, word) in (1..).zip(words) {
        check32(
            word,
            &[
                (5, 3, (5 << shift) + 3, false),
                (1 << (32 - shift), 3, 3, true),
                (1, NEG, (1 << shift) - 1, true),
                (0, NEG, NEG, false),
            ],
        );
    }
}

/// Checks a one-word instruction from s0 to s2 on every case.
fn check_unary(word: u32, cases: &[(u32, u32, Option<bool>)]) {
    for &(a, result, scc) in cases {
        for before in [false, true] {
            let expected = (result, scc.unwrap_or(before));
            assert_eq!(run32(word, a, 0, before), expected, "{word:#x} of {a:#x}");
        }
    }
}

#[test]
fn moves_and_negation() {
    let [mov, mov64, not, not64] = [
        0xbe820000, // s_mov_b32 s2, s0
        0xbe820100, // s_mov_b64 s[2:3], s[0:1]
        0xbe820400, // s_not_b32 s2, s0
        0xbe820500, // s_not_b64 s[2:3], s[0:1]
    ];
    check_unary(mov, &[(0, 0, None), (NEG, NEG, None)]);
    check_unary(not, &[(0, NEG, Some(true)), (NEG, 0, Some(false))]);
    check64_quiet(mov64, &[(0x1234_5678_9abc_def0, 0, 0x1234_5678_9abc_def0)]);
    check64(not64, &[(u64::MAX, 0, 0, false), (u64::MAX >> 1, 0, 1 << 63, true)]);
}

#[test]
fn conditional_moves_happen_only_if_scc_is_set() {
    let [cmov, cmov64, cmovk] = [
        0xbe820200, // s_cmov_b32 s2, s0
        0xbe820300, // s_cmov_b64 s[2:3], s[0:1]
        0xb082fffe, // s_cmovk_i32 s2, 0xfffe
    ];
    assert_eq!(run32(cmov, 7, 0, true), (7, true));
    assert_eq!(run32(cmov, 7, 0, false), (0x5555_5555, false));
    assert_eq!(run64(cmov64, 7 << 40, 0, true), (7 << 40, true));
    assert_eq!(run64(cmov64, 7 << 40, 0, false), (0x5555_5555_5555_5555, false));
    assert_eq!(run32(cmovk, 7, 0, true), (0xffff_fffe, true));
    assert_eq!(run32(cmovk, 7, 0, false), (0x5555_5555, false));
}

#[test]
fn bit_counts_and_searches() {
    let [count0, count1, first0, first1, lead, sign] = [
        0xbe820a00, // s_bcnt0_i32_b32 s2, s0
        0xbe820c00, // s_bcnt1_i32_b32 s2, s0
        0xbe820e00, // s_ff0_i32_b32 s2, s0
        0xbe821000, // s_ff1_i32_b32 s2, s0
        0xbe821200, // s_flbit_i32_b32 s2, s0
        0xbe821400, // s_flbit_i32 s2, s0
    ];
    check_unary(count0, &[(0, 32, Some(true)), (NEG, 0, Some(false)), (0xf0, 28, Some(true))]);
    check_unary(count1, &[(0, 0, Some(false)), (NEG, 32, Some(true)), (0xf0, 4, Some(true))]);
    check_unary(first0, &[(0, 0, None), (NEG, NEG, None), (0x7f, 7, None), (MAX, 31, None)]);
    check_unary(first1, &[(1, 0, None), (0, NEG, None), (MIN, 31, None), (0x50, 4, None)]);
    check_unary(lead, &[(MIN, 0, None), (1, 31, None), (0, NEG, None), (0x0100_0000, 7, None)]);
    check_unary(
        sign,
        &[(0, NEG, None), (NEG, NEG, None), (MIN, 1, None), (1, 31, None), (0xfffe_0000, 15, None)],
    );
    let [count0, count1, first0, first1, lead, sign] = [
        0xbe820b00, // s_bcnt0_i32_b64 s2, s[0:1]
        0xbe820d00, // s_bcnt1_i32_b64 s2, s[0:1]
        0xbe820f00, // s_ff0_i32_b64 s2, s[0:1]
        0xbe821100, // s_ff1_i32_b64 s2, s[0:1]
        0xbe821300, // s_flbit_i32_b64 s2, s[0:1]
        0xbe821500, // s_flbit_i32_i64 s2, s[0:1]
    ];
    // The result is one register; the next one keeps what it has.
    let check = |word, a, result: u32, scc: Option<bool>| {
        for before in [false, true] {
            let expected = (0x5555_5555 << 32 | u64::from(result), scc.unwrap_or(before));
            assert_eq!(run64(word, a, 0, before), expected, "{word:#x} of {a:#x}");
        }
    };
    check(count0, u64::MAX, 0, Some(false));
    check(count0, 1 << 40, 63, Some(true));
    check(count1, 0, 0, Some(false));
    check(count1, u64::MAX, 64, Some(true));
    check(first0, u64::MAX, NEG, None);
    check(first0, u64::MAX >> 20, 44, None);
    check(first1, 0, NEG, None);
    check(first1, 1 << 50, 50, None);
    check(lead, 0, NEG, None);
    check(lead, 1 << 50, 13, None);
    check(sign, u64::MAX, NEG, None);
    check(sign, 1 << 63, 1, None);
    check(sign, 1, 63, None);
}

#[test]
fn bits_rearranged() {
    let [brev, sext8, sext16, abs, wqm, quad] = [
        0xbe820800, // s_brev_b32 s2, s0
        0xbe821600, // s_sext_i32_i8 s2, s0
        0xbe821700, // s_sext_i32_i16 s2, s0
        0xbe823000, // s_abs_i32 s2, s0
        0xbe820600, // s_wqm_b32 s2, s0
        0xbe822800, // s_quadmask_b32 s2, s0
    ];
    check_unary(brev, &[(1, MIN, None), (0x0000_00ff, 0xff00_0000, None), (0x1234_5678, 0x1e6a_2c48, None)]);
    check_unary(sext8, &[(0x80, 0xffff_ff80, None), (0xff7f, 0x7f, None)]);
    check_unary(sext16, &[(0x8000, 0xffff_8000, None), (0xff_7fff, 0x7fff, None)]);
    check_unary(
        abs,
        &[(NEG, 1, Some(true)), (5, 5, Some(true)), (0, 0, Some(false)), (MIN, MIN, Some(true))],
    );
    check_unary(wqm, &[(0x0100_2008, 0x0f00_f00f, Some(true)), (0, 0, Some(false)), (NEG, NEG, Some(true))]);
    check_unary(
        quad,
        &[(0x0100_2008, 0b0100_1001, Some(true)), (0, 0, Some(false)), (NEG, 0xff, Some(true))],
    );
    let [brev, wqm, quad, replicate] = [
        0xbe820900, // s_brev_b64 s[2:3], s[0:1]
        0xbe820700, // s_wqm_b64 s[2:3], s[0:1]
        0xbe822900, // s_quadmask_b64 s[2:3], s[0:1]
        0xbe823700, // s_bitreplicate_b64_b32 s[2:3], s0
    ];
    check64_quiet(brev, &[(1, 0, 1 << 63), (0xff << 32, 0, 0xff << 24)]);
    check64(wqm, &[(1 << 60 | 2, 0, 0xf << 60 | 0xf, true), (0, 0, 0, false)]);
    check64(quad, &[(1 << 60 | 2, 0, 0x8001, true), (u64::MAX, 0, 0xffff, true), (0, 0, 0, false)]);
    check64_quiet(
        replicate,
        &[(0x8000_0001, 0, 0xc000_0000_0000_0003), (0xff, 0, 0xffff), (0xa5, 0, 0xcc33)],
    );
}

#[test]
fn single_bits() {
    let [clear, set, clear64, set64] = [
        0xbe821800, // s_bitset0_b32 s2, s0
        0xbe821a00, // s_bitset1_b32 s2, s0
        0xbe821900, // s_bitset0_b64 s[2:3], s0
        0xbe821b00, // s_bitset1_b64 s[2:3], s0
    ];
    check32_quiet(clear, &[(0, 0, 0x5555_5554), (1, 0, 0x5555_5555), (34, 0, 0x5555_5551)]);
    check32_quiet(set, &[(1, 0, 0x5555_5557), (0, 0, 0x5555_5555), (31, 0, 0xd555_5555)]);
    check64_quiet(clear64, &[(32, 0, 0x5555_5554_5555_5555), (64, 0, 0x5555_5555_5555_5554)]);
    check64_quiet(set64, &[(63, 0, 0xd555_5555_5555_5555), (33, 0, 0x5555_5557_5555_5555)]);
}

#[test]
fn comparisons_set_scc() {
    let signed = [
        0xbf000100, // s_cmp_eq_i32 s0, s1
        0xbf010100, // s_cmp_lg_i32 s0, s1
        0xbf020100, // s_cmp_gt_i32 s0, s1
        0xbf030100, // s_cmp_ge_i32 s0, s1
        0xbf040100, // s_cmp_lt_i32 s0, s1
        0xbf050100, // s_cmp_le_i32 s0, s1
    ];
    let unsigned = [
        0xbf060100, // s_cmp_eq_u32 s0, s1
        0xbf070100, // s_cmp_lg_u32 s0, s1
        0xbf080100, // s_cmp_gt_u32 s0, s1
        0xbf090100, // s_cmp_ge_u32 s0, s1
        0xbf0a0100, // s_cmp_lt_u32 s0, s1
        0xbf0b0100, // s_cmp_le_u32 s0, s1
    ];
    let less = [false, true, false, false, true, true];
    let equal = [true, false, false, true, false, true];
    let greater = [false, true, true, true, false, false];
    for index in 0..6 {
        for before in [false, true] {
            assert_eq!(run32(signed[index], NEG, 1, before).1, less[index]);
            assert_eq!(run32(unsigned[index], NEG, 1, before).1, greater[index]);
            assert_eq!(run32(signed[index], 1, NEG, before).1, greater[index]);
            assert_eq!(run32(unsigned[index], 1, NEG, before).1, less[index]);
            assert_eq!(run32(signed[index], MIN, MIN, before).1, equal[index]);
            assert_eq!(run32(unsigned[index], MIN, MIN, before).1, equal[index]);
        }
    }
    let [eq, lg] = [
        0xbf120400, // s_cmp_eq_u64 s[0:1], s[4:5]
        0xbf130400, // s_cmp_lg_u64 s[0:1], s[4:5]
    ];
    for (a, b, same) in [(1 << 32, 1 << 32, true), (1 << 32, 0, false), (1, 1 << 32 | 1, false)] {
        assert_eq!(run64(eq, a, b, !same).1, same);
        assert_eq!(run64(lg, a, b, same).1, !same);
    }
    let [clear, set, clear64, set64] = [
        0xbf0c0100, // s_bitcmp0_b32 s0, s1
        0xbf0d0100, // s_bitcmp1_b32 s0, s1
        0xbf0e0400, // s_bitcmp0_b64 s[0:1], s4
        0xbf0f0400, // s_bitcmp1_b64 s[0:1], s4
    ];
    for (bit, is_set) in [(4, true), (5, false), (36, true), (37, false)] {
        assert_eq!(run32(set, 0x10, bit, !is_set).1, is_set, "bit {bit}");
        assert_eq!(run32(clear, 0x10, bit, is_set).1, !is_set, "bit {bit}");
    }
    for (bit, is_set) in [(40, true), (8, false), (104, true)] {
        assert_eq!(run64(set64, 1 << 40, bit, !is_set).1, is_set, "bit {bit}");
        assert_eq!(run64(clear64, 1 << 40, bit, is_set).1, !is_set, "bit {bit}");
    }
}

#[test]
fn constants_of_16_bits() {
    let [movk, addk, mulk] = [
        0xb0028000, // s_movk_i32 s2, 0x8000
        0xb702ffff, // s_addk_i32 s2, 0xffff
        0xb782fffd, // s_mulk_i32 s2, 0xfffd
    ];
    assert_eq!(run32(movk, 0, 0, true), (0xffff_8000, true));
    let with = |word, value| {
        let mut bench = Bench::default();
        bench.wave.sgpr[2] = value;
        bench.run(&[word]);
        (bench.wave.sgpr[2], bench.wave.scc)
    };
    assert_eq!(with(addk, 1), (0, false));
    assert_eq!(with(addk, MIN), (MAX, true));
    assert_eq!(with(mulk, 5), (0xffff_fff1, false));
    let signed = [
        0xb100fffe, // s_cmpk_eq_i32 s0, 0xfffe
        0xb180fffe, // s_cmpk_lg_i32 s0, 0xfffe
        0xb200fffe, // s_cmpk_gt_i32 s0, 0xfffe
        0xb280fffe, // s_cmpk_ge_i32 s0, 0xfffe
        0xb300fffe, // s_cmpk_lt_i32 s0, 0xfffe
        0xb380fffe, // s_cmpk_le_i32 s0, 0xfffe
    ];
    let unsigned = [
        0xb400fffe, // s_cmpk_eq_u32 s0, 0xfffe
        0xb480fffe, // s_cmpk_lg_u32 s0, 0xfffe
        0xb500fffe, // s_cmpk_gt_u32 s0, 0xfffe
        0xb580fffe, // s_cmpk_ge_u32 s0, 0xfffe
        0xb600fffe, // s_cmpk_lt_u32 s0, 0xfffe
        0xb680fffe, // s_cmpk_le_u32 s0, 0xfffe
    ];
    let less = [false, true, false, false, true, true];
    let equal = [true, false, false, true, false, true];
    let greater = [false, true, true, true, false, false];
    for index in 0..6 {
        for before in [false, true] {
            assert_eq!(run32(signed[index], 0xffff_fffd, 0, before).1, less[index]);
            assert_eq!(run32(signed[index], 0xffff_fffe, 0, before).1, equal[index]);
            assert_eq!(run32(signed[index], 0xfffe, 0, before).1, greater[index]);
            assert_eq!(run32(unsigned[index], 0xfffd, 0, before).1, less[index]);
            assert_eq!(run32(unsigned[index], 0xfffe, 0, before).1, equal[index]);
            assert_eq!(run32(unsigned[index], 0xffff_fffe, 0, before).1, greater[index]);
        }
    }
}
