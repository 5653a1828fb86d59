//! Tests of moves between lanes and between register files.

use crate::bench::{Bench, f};

#[test]
fn reading_lanes_ignores_exec() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| 100 + lane as u32);
    bench.wave.set_exec(0xff00);
    bench.run(&[0xd2890004, 0x00010b01]); // v_readlane_b32 s4, v1, 5
    assert_eq!(bench.wave.sgpr[4], 105);
    bench.wave.sgpr[5] = 64 + 63;
    bench.run(&[0xd2890004, 0x00000b01]); // v_readlane_b32 s4, v1, s5
    assert_eq!(bench.wave.sgpr[4], 163);
    bench.run(&[0x7e080501]); // v_readfirstlane_b32 s4, v1
    assert_eq!(bench.wave.sgpr[4], 108);
    bench.wave.set_exec(0);
    bench.run(&[0x7e080501]); // v_readfirstlane_b32 s4, v1
    assert_eq!(bench.wave.sgpr[4], 100);
}

#[test]
fn writing_lanes_ignores_exec() {
    let mut bench = Bench::default();
    bench.wave.set_exec(0);
    bench.wave.sgpr[4] = 9;
    bench.wave.sgpr[5] = 66;
    bench.run(&[0xd28a0003, 0x00010e04]); // v_writelane_b32 v3, s4, 7
    bench.run(&[0xd28a0003, 0x00000a8c]); // v_writelane_b32 v3, 12, s5
    let expected: [u32; 64] = std::array::from_fn(|lane| {
        if lane == 7 {
            9
        } else if lane == 2 {
            12
        } else {
            0
        }
    });
    assert_eq!(*bench.wave.row(3), expected);
}

#[test]
fn exchange() {
    let mut bench = Bench::default();
    bench.fill(1, |_| 1);
    bench.fill(3, |_| 3);
    bench.wave.set_exec(0b10);
    bench.run(&[0x7e02a303]); // v_swap_b32 v1, v3
    assert_eq!(
        (bench.wave.row(1)[..3].to_vec(), bench.wave.row(3)[..3].to_vec()),
        (vec![1, 3, 1], vec![3, 1, 3])
    );
}

#[test]
fn accumulation_registers_follow_the_others() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| lane as u32);
    bench.run(&[
        0xd3d94005, 0x18000101, // v_accvgpr_write_b32 a5, v1
        0xd3d94006, 0x180000f4, // v_accvgpr_write_b32 a6, 2.0
        0x7e0ea505, // v_accvgpr_mov_b32 a7, a5
        0xd3d84003, 0x18000105, // v_accvgpr_read_b32 v3, a5
    ]);
    let offset = bench.wave.accum_offset;
    assert_eq!(bench.wave.row(3)[63], 63);
    assert_eq!(bench.wave.row(offset + 5)[9], 9);
    assert_eq!(bench.wave.row(offset + 6)[9], f(2.0));
    assert_eq!(bench.wave.row(offset + 7)[9], 9);
}

#[test]
fn a_lane_counts_the_ones_below_it() {
    let mut bench = Bench::default();
    bench.run(&[0xd28c0003, 0x000100c1, 0xd28d0003, 0x000206c1]); // v_mbcnt_lo, v_mbcnt_hi of -1 and 0
    assert_eq!(*bench.wave.row(3), std::array::from_fn(|lane| lane as u32));
}

#[test]
fn dpp_reads_other_lanes() {
    const OLD: u32 = 999;
    type From = fn(usize) -> Option<usize>;
    let table: &[(&[u32], &str, From)] = &[
        (&[0x7e0602fa, 0xff00b101], "quad_perm:[1,0,3,2]", |lane| Some(lane ^ 1)),
        (&[0x7e0602fa, 0xff010101], "row_shl:1", |lane| (lane % 16 < 15).then_some(lane + 1)),
        (&[0x7e0602fa, 0xff012301], "row_ror:3", |lane| Some(lane / 16 * 16 + (lane + 13) % 16)),
        (&[0x7e0602fa, 0xff014001], "row_mirror", |lane| Some(lane ^ 15)),
        (&[0x7e0602fa, 0xff014101], "row_half_mirror", |lane| Some(lane ^ 7)),
        (&[0x7e0602fa, 0xff013801], "wave_shr:1", |lane| lane.checked_sub(1)),
        (&[0x7e0602fa, 0xff013001], "wave_shl:1", |lane| (lane < 63).then_some(lane + 1)),
        (&[0x7e0602fa, 0xaf014201], "row_bcast:15 row_mask:0xa", |lane| match lane / 16 {
            1 => Some(15),
            3 => Some(47),
            _ => None,
        }),
        (&[0x7e0602fa, 0xcf014301], "row_bcast:31 row_mask:0xc", |lane| (lane >= 32).then_some(31)),
        (&[0x7e0602fa, 0xff015401], "row_newbcast:4", |lane| Some(lane / 16 * 16 + 4)),
        (&[0x7e0602fa, 0x5300e401], "row_mask:0x5 bank_mask:0x3", |lane| {
            (lane / 16 % 2 == 0 && lane % 16 < 8).then_some(lane)
        }),
    ];
    for &(words, text, from) in table {
        for exec in [u64::MAX, 0x0123_4567_89ab_cdef] {
            let mut bench = Bench::default();
            bench.fill(1, |lane| lane as u32);
            bench.fill(3, |_| OLD);
            bench.wave.set_exec(exec);
            bench.run(words); // v_mov_b32_dpp v3, v1 …
            for lane in 0..64 {
                let active = |lane: usize| exec >> lane & 1 == 1;
                let source = from(lane).filter(|&from| active(from) && active(lane));
                let expected = source.map_or(OLD, |from| from as u32);
                assert_eq!(bench.wave.row(3)[lane], expected, "{text}, lane {lane}, exec {exec:#x}");
            }
        }
    }
}

#[test]
fn dpp_bound_ctrl_gives_zero() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| 1 + lane as u32);
    bench.fill(3, |_| 999);
    bench.run(&[0x7e0602fa, 0xff091201]); // v_mov_b32_dpp v3, v1 row_shr:2 … bound_ctrl:0
    let expected: [u32; 64] = std::array::from_fn(|lane| if lane % 16 < 2 { 0 } else { lane as u32 - 1 });
    assert_eq!(*bench.wave.row(3), expected);
}

/// Sums the lanes of a wave with the instructions that compilers use for it.
#[test]
fn dpp_reduction() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| lane as u32);
    bench.run(&[
        0x680202fa, 0xff011101, // v_add_u32_dpp v1, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
        0x680202fa, 0xff011201, // v_add_u32_dpp v1, v1, v1 row_shr:2 row_mask:0xf bank_mask:0xf
        0x680202fa, 0xfe011401, // v_add_u32_dpp v1, v1, v1 row_shr:4 row_mask:0xf bank_mask:0xe
        0x680202fa, 0xfc011801, // v_add_u32_dpp v1, v1, v1 row_shr:8 row_mask:0xf bank_mask:0xc
        0x680202fa, 0xaf014201, // v_add_u32_dpp v1, v1, v1 row_bcast:15 row_mask:0xa bank_mask:0xf
        0x680202fa, 0xcf014301, // v_add_u32_dpp v1, v1, v1 row_bcast:31 row_mask:0xc bank_mask:0xf
    ]);
    assert_eq!(bench.wave.row(1)[63], 2016);
    assert_eq!(bench.wave.row(1)[31], 496);
}

#[test]
fn dpp_with_modifiers() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| f(lane as f32));
    bench.fill(2, |_| f(-100.0));
    bench.run(&[0x020604fa, 0xff900001]); // v_add_f32_dpp v3, -v1, |v2| quad_perm:[0,0,0,0] …
    assert_eq!(*bench.wave.row(3), std::array::from_fn(|lane| f(100.0 - (lane / 4 * 4) as f32)));
}

#[test]
fn sdwa_takes_and_leaves_parts() {
    let mut bench = Bench::default();
    bench.fill(1, |_| 0x8081_4200);
    bench.fill(2, |_| 0x0005_bc00);
    bench.run(&[0x680604f9, 0x05010601]); // v_add_u32_sdwa v3, v1, v2 … src0_sel:BYTE_1 src1_sel:WORD_1
    assert_eq!(bench.wave.row(3)[0], 0x47);
    bench.fill(3, |_| 0x1122_3344);
    bench.run(&[0x680604f9, 0x060b1201]); // v_add_u32_sdwa v3, sext(v1), v2 dst_sel:BYTE_2 UNUSED_PRESERVE src0_sel:BYTE_3
    assert_eq!(bench.wave.row(3)[0], 0x1180_3344);
    bench.run(&[0x7e0602f9, 0x00050c01]); // v_mov_b32_sdwa v3, v1 dst_sel:WORD_0 dst_unused:UNUSED_SEXT src0_sel:WORD_1
    assert_eq!(bench.wave.row(3)[0], 0xffff_8081);
    bench.fill(1, |_| 0x4000_7777);
    bench.fill(3, |_| 0x1122_3344);
    bench.run(&[0x3e0604f9, 0x24151501]); // v_add_f16_sdwa v3, -v1, |v2| dst_sel:WORD_1 UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0
    assert_eq!(bench.wave.row(3)[0], 0xbc00_3344);
    bench.run(&[0x7e0616f9, 0x00050601]); // v_cvt_f32_f16_sdwa v3, v1 … src0_sel:WORD_1
    assert_eq!(bench.wave.row(3)[0], f(2.0));
    bench.wave.sgpr[4] = 0x1207;
    bench.fill(2, |_| 0x0a00_0000);
    bench.run(&[0x100604f9, 0x03800604]); // v_mul_u32_u24_sdwa v3, s4, v2 … src0_sel:BYTE_0 src1_sel:BYTE_3
    assert_eq!(bench.wave.row(3)[0], 70);
    bench.fill(1, |_| 0x0040_0000);
    bench.run(&[0x7e06a8f9, 0x00020601]); // v_cvt_f32_fp8_sdwa v3, v1 src0_sel:BYTE_2
    assert_eq!(bench.wave.row(3)[0], f(1.0));
}

#[test]
fn index_mode_shifts_register_numbers() {
    let mut bench = Bench::default();
    bench.wave.sgpr[4] = 6;
    bench.fill(1, |_| 1);
    bench.fill(7, |_| 7);
    bench.run(&[0xbf110104, 0x7e060301, 0xbf9c0000]); // s_set_gpr_idx_on s4, gpr_idx(SRC0); v_mov_b32 v3, v1; s_set_gpr_idx_off
    assert_eq!(bench.wave.row(3)[0], 7);
    bench.run(&[0x7e060301]); // v_mov_b32 v3, v1
    assert_eq!(bench.wave.row(3)[0], 1);
    bench.fill(20, |_| 20);
    bench.run(&[0xbf110804, 0x7e020314, 0xbf9c0000]); // s_set_gpr_idx_on s4, gpr_idx(DST); v_mov_b32 v1, v20; s_set_gpr_idx_off
    assert_eq!((bench.wave.row(1)[0], bench.wave.row(7)[0]), (1, 20));
}

#[test]
fn registers_beyond_the_wave_s_own_do_no_harm() {
    let mut bench = Bench::default();
    bench.fill(127, |lane| lane as u32);
    bench.wave.sgpr[4] = 200;
    bench.run(&[0xbf110804, 0x7e020314, 0xbf9c0000]); // s_set_gpr_idx_on s4, gpr_idx(DST); v_mov_b32 v1, v20; s_set_gpr_idx_off
    assert_eq!(*bench.wave.row(127), std::array::from_fn(|lane| lane as u32));
}
