//! Tests of scalar operands, EXEC and program control.

use std::sync::{Arc, Mutex};

use crate::bench::{Bench, CODE, MEMORY};
use hipr_isa::fault::Cause;
use hipr_isa::map::Map;
use hipr_isa::mem::{Block, Space};
use hipr_isa::step::{Interrupts, Stop};
use hipr_isa::wave::{EXEC, M0, Mode, VCC};

#[test]
fn exec_is_saved_and_changed() {
    let words = [
        0xbe822000, // s_and_saveexec_b64 s[2:3], s[0:1]
        0xbe822100, // s_or_saveexec_b64 s[2:3], s[0:1]
        0xbe822200, // s_xor_saveexec_b64 s[2:3], s[0:1]
        0xbe822300, // s_andn2_saveexec_b64 s[2:3], s[0:1]
        0xbe822400, // s_orn2_saveexec_b64 s[2:3], s[0:1]
        0xbe822500, // s_nand_saveexec_b64 s[2:3], s[0:1]
        0xbe822600, // s_nor_saveexec_b64 s[2:3], s[0:1]
        0xbe822700, // s_xnor_saveexec_b64 s[2:3], s[0:1]
        0xbe823300, // s_andn1_saveexec_b64 s[2:3], s[0:1]
        0xbe823400, // s_orn1_saveexec_b64 s[2:3], s[0:1]
    ];
    // The source's bits are 0b0011, EXEC's 0b0101.
    let results = [0b0001, 0b0111, 0b0110, 0b0010, 0b1011, 0b1110, 0b1000, 0b1001, 0b0100, 0b1101];
    const SOURCE: u64 = 0x3333_3333_3333_3333;
    const OLD: u64 = 0x5555_5555_5555_5555;
    for (word, result) in words.into_iter().zip(results) {
        let mut bench = Bench::default();
        bench.wave.set_pair(0, SOURCE);
        bench.wave.set_exec(OLD);
        bench.run(&[word]);
        assert_eq!(bench.wave.pair(2), OLD, "{word:#x}");
        assert_eq!(bench.wave.exec(), result * 0x1111_1111_1111_1111, "{word:#x}");
        assert!(bench.wave.scc, "{word:#x}");
    }
    let [and, to_itself] = [
        0xbe822000, // s_and_saveexec_b64 s[2:3], s[0:1]
        0xbe802300, // s_andn2_saveexec_b64 s[0:1], s[0:1]
    ];
    let mut bench = Bench::default();
    bench.wave.scc = true;
    bench.run(&[and]);
    assert_eq!((bench.wave.exec(), bench.wave.pair(2), bench.wave.scc), (0, u64::MAX, false));
    // The source is read before the destination is written.
    let mut bench = Bench::default();
    bench.wave.set_pair(0, 0xff00);
    bench.wave.set_exec(0x0ff0);
    bench.run(&[to_itself]);
    assert_eq!((bench.wave.exec(), bench.wave.pair(0)), (0xf000, 0x0ff0));
    let [andn1, andn2] = [
        0xbe823500, // s_andn1_wrexec_b64 s[2:3], s[0:1]
        0xbe823600, // s_andn2_wrexec_b64 s[2:3], s[0:1]
    ];
    for (word, result) in [(andn1, 0x00f0), (andn2, 0xf000)] {
        let mut bench = Bench::default();
        bench.wave.set_pair(0, 0xff00);
        bench.wave.set_exec(0x0ff0);
        bench.run(&[word]);
        assert_eq!(
            (bench.wave.exec(), bench.wave.pair(2), bench.wave.scc),
            (result, result, true),
            "{word:#x}"
        );
    }
}

#[test]
fn operands_are_registers_constants_or_literals() {
    let mut bench = Bench::default();
    bench.run(&[
        0xbe8000d0, // s_mov_b32 s0, -16
        0xbe8100c0, // s_mov_b32 s1, 64
        0xbe8200f0, // s_mov_b32 s2, 0.5
        0xbe8300ff, 0x12345678, // s_mov_b32 s3, 0x12345678
        0xbe8401c1, // s_mov_b64 s[4:5], -1
        0xbe8601ff, 0xf0000000, // s_mov_b64 s[6:7], 0xf0000000
        0xbe8801f2, // s_mov_b64 s[8:9], 1.0
        0xbe8a00eb, // s_mov_b32 s10, src_shared_base
        0xbe8c01eb, // s_mov_b64 s[12:13], src_shared_base
        0xbe8e01ed, // s_mov_b64 s[14:15], src_private_base
        0x8010ff03, 0x11111111, // s_add_u32 s16, s3, 0x11111111
        0xbeea0187, // s_mov_b64 vcc, 0x7
        0xbefc0001, // s_mov_b32 m0, s1
        0xbe91006a, // s_mov_b32 s17, vcc_lo
        0xbe92007c, // s_mov_b32 s18, m0
        0xbe93007f, // s_mov_b32 s19, exec_hi
        0xbee60089, // s_mov_b32 flat_scratch_lo, 9
        0xbe940066, // s_mov_b32 s20, flat_scratch_lo
        0xbe9500fb, // s_mov_b32 s21, src_vccz
        0xbe9600fc, // s_mov_b32 s22, src_execz
        0xbf068080, // s_cmp_eq_u32 0, 0
        0xbe9700fd, // s_mov_b32 s23, src_scc
    ]);
    let sgpr = &bench.wave.sgpr;
    assert_eq!(sgpr[..4], [0xffff_fff0, 64, 0x3f00_0000, 0x1234_5678]);
    assert_eq!(bench.wave.pair(4), u64::MAX);
    assert_eq!(bench.wave.pair(6), 0xf000_0000);
    assert_eq!(bench.wave.pair(8), 1f64.to_bits());
    assert_eq!(bench.wave.pair(12), hipr_isa::aperture::SHARED_BASE);
    assert_eq!(bench.wave.pair(14), hipr_isa::aperture::PRIVATE_BASE);
    assert_eq!(sgpr[16], 0x2345_6789);
    assert_eq!(sgpr[17..21], [7, 64, u32::MAX, 9]);
    assert_eq!(sgpr[21..24], [0, 0, 1]);
    assert_eq!((sgpr[VCC], sgpr[M0], sgpr[EXEC]), (7, 64, u32::MAX));
}

#[test]
fn branches_skip_what_follows() {
    let branches = [
        0xbf820001, // s_branch 1
        0xbf840001, // s_cbranch_scc0 1
        0xbf850001, // s_cbranch_scc1 1
        0xbf860001, // s_cbranch_vccz 1
        0xbf870001, // s_cbranch_vccnz 1
        0xbf880001, // s_cbranch_execz 1
        0xbf890001, // s_cbranch_execnz 1
        0xbf970001, // s_cbranch_cdbgsys 1
        0xbf980001, // s_cbranch_cdbguser 1
        0xbf990001, // s_cbranch_cdbgsys_or_user 1
        0xbf9a0001, // s_cbranch_cdbgsys_and_user 1
    ];
    let [set] = [0xb0000001 /* s_movk_i32 s0, 1 */];
    // With everything zero, and with everything set.
    let taken = [
        [true, true, false, true, false, true, false, false, false, false, false],
        [true, false, true, false, true, false, true, false, false, false, false],
    ];
    for (on, taken) in taken.into_iter().enumerate() {
        for (word, taken) in branches.into_iter().zip(taken) {
            let mut bench = Bench::default();
            bench.wave.scc = on == 1;
            // One bit in the high half suffices.
            bench.wave.set_vcc((on as u64) << 63);
            bench.wave.set_exec((on as u64) << 63);
            bench.run(&[word, set]);
            assert_eq!(bench.wave.sgpr[0], u32::from(!taken), "{word:#x}");
        }
    }
}

#[test]
fn a_loop_counts_to_ten() {
    let mut bench = Bench::default();
    bench.run(&[
        0xbe800080, // s_mov_b32 s0, 0
        0x80008100, // s_add_u32 s0, s0, 1
        0xbf0a8a00, // s_cmp_lt_u32 s0, 10
        0xbf85fffd, // s_cbranch_scc1 -3
    ]);
    assert_eq!(bench.wave.sgpr[0], 10);
}

#[test]
fn calls_return_to_the_next_instruction() {
    let mut bench = Bench::default();
    bench.run(&[
        0xbe801c00, // s_getpc_b64 s[0:1]
        0x80049c00, // s_add_u32 s4, s0, 0x1c
        0x82058001, // s_addc_u32 s5, s1, 0
        0xbe9e1e04, // s_swappc_b64 s[30:31], s[4:5]
        0xb0080001, // s_movk_i32 s8, 1
        0xba9e0002, // s_call_b64 s[30:31], 2
        0xb0090002, // s_movk_i32 s9, 2
        0xbf810000, // s_endpgm
        0xb70a0001, // s_addk_i32 s10, 0x1
        0xbe801d1e, // s_setpc_b64 s[30:31]
    ]);
    assert_eq!(bench.wave.pair(0), CODE + 4);
    assert_eq!(bench.wave.sgpr[8..11], [1, 2, 2]);
    assert_eq!(bench.wave.pair(30), CODE + 24);
}

#[test]
fn wild_jumps_are_faults() {
    for target in [0, CODE + 2, CODE - 4, CODE + 8, u64::MAX - 3] {
        let mut bench = Bench::default();
        bench.wave.set_pair(0, target);
        let fault = bench.try_run(&[0xbe801d00 /* s_setpc_b64 s[0:1] */]).unwrap_err();
        assert_eq!((fault.cause, fault.pc), (Cause::BadPc, target));
    }
}

#[test]
fn registers_named_relative_to_m0() {
    let mut bench = Bench::default();
    bench.wave.sgpr[M0] = 4;
    bench.wave.set_pair(8, 0x1111_2222_3333_4444);
    bench.run(&[
        0xbe802a04, // s_movrels_b32 s0, s4
        0xbe822b04, // s_movrels_b64 s[2:3], s[4:5]
        0xbe8c2c08, // s_movreld_b32 s12, s8
        0xbe8e2d08, // s_movreld_b64 s[14:15], s[8:9]
    ]);
    assert_eq!(bench.wave.sgpr[0], 0x3333_4444);
    assert_eq!(bench.wave.pair(2), 0x1111_2222_3333_4444);
    assert_eq!(bench.wave.sgpr[16], 0x3333_4444);
    assert_eq!(bench.wave.pair(18), 0x1111_2222_3333_4444);
}

#[test]
fn index_mode_is_a_bit_of_mode_and_three_fields_of_m0() {
    let mut bench = Bench::default();
    bench.wave.sgpr[0] = 0x1_0203;
    bench.wave.sgpr[1] = 0xff04;
    bench.wave.sgpr[M0] = 0xabcd_0fff;
    bench.run(&[0xbf110900 /* s_set_gpr_idx_on s0, gpr_idx(SRC0, DST) */]);
    assert!(bench.wave.mode.gpr_index());
    assert_eq!(bench.wave.m0(), 0xabcd_9f03);
    bench.run(&[
        0xbe803201, // s_set_gpr_idx_idx s1
        0xbf9d0002, // s_set_gpr_idx_mode gpr_idx(SRC1)
    ]);
    assert_eq!(bench.wave.m0(), 0xabcd_2f04);
    bench.run(&[0xbf9c0000 /* s_set_gpr_idx_off */]);
    assert!(!bench.wave.mode.gpr_index());
    assert_eq!(bench.wave.m0(), 0xabcd_2f04);
}

#[test]
fn hardware_registers() {
    let mut bench = Bench::default();
    bench.wave.sgpr[1] = 0xffff_fff5;
    bench.wave.hardware_id = 0x1234_5678;
    bench.wave.scc = true;
    bench.run(&[
        0xb882f801, // s_getreg_b32 s2, hwreg(HW_REG_MODE)
        0xb8831901, // s_getreg_b32 s3, hwreg(HW_REG_MODE, 4, 4)
        0xba000901, 0x00000010, // s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0x10
        0xb884f801, // s_getreg_b32 s4, hwreg(HW_REG_MODE)
        0xb9011801, // s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s1
        0xb885f801, // s_getreg_b32 s5, hwreg(HW_REG_MODE)
        0xb886f804, // s_getreg_b32 s6, hwreg(HW_REG_HW_ID)
        0xb8873a04, // s_getreg_b32 s7, hwreg(HW_REG_HW_ID, 8, 8)
        0xb888f814, // s_getreg_b32 s8, hwreg(HW_REG_XCC_ID)
        0xb8890002, // s_getreg_b32 s9, hwreg(HW_REG_STATUS, 0, 1)
        0xb88a4306, // s_getreg_b32 s10, hwreg(HW_REG_LDS_ALLOC, 12, 9)
        0xb901f804, // s_setreg_b32 hwreg(HW_REG_HW_ID), s1
        0xb88bf804, // s_getreg_b32 s11, hwreg(HW_REG_HW_ID)
        0xb88c7c0f, // s_getreg_b32 s12, hwreg(HW_REG_SH_MEM_BASES, 16, 16)
        0xb88d780f, // s_getreg_b32 s13, hwreg(HW_REG_SH_MEM_BASES, 0, 16)
        0xb88ef805, // s_getreg_b32 s14, hwreg(HW_REG_GPR_ALLOC)
    ]);
    assert_eq!(bench.wave.sgpr[2..6], [0x3f0, 0xf, 0x3c0, 0x3c5]);
    assert_eq!(bench.wave.mode, Mode(0x3c5));
    // 4096 bytes are 8 times 512.
    assert_eq!(bench.wave.sgpr[6..12], [0x1234_5678, 0x56, 0, 1, 8, 0x1234_5678]);
    // 128 registers of which those from 64 on are AccVGPRs.
    assert_eq!(bench.wave.sgpr[14], 15 << 6 | 15 << 12);
    let bases = [hipr_isa::aperture::SHARED_BASE, hipr_isa::aperture::PRIVATE_BASE];
    assert_eq!(bench.wave.sgpr[12..14], bases.map(|base| (base >> 48) as u32));
}

#[test]
fn stops_and_traps() {
    let mut bench = Bench::default();
    let barrier = [
        0xbe800081, // s_mov_b32 s0, 1
        0xbf8a0000, // s_barrier
        0xbe800082, // s_mov_b32 s0, 2
    ];
    assert_eq!(bench.try_run(&barrier), Ok(Stop::Barrier));
    assert_eq!((bench.wave.sgpr[0], bench.wave.pc), (1, CODE + 8));
    for ends in [
        0xbf810000, // s_endpgm
        0xbf9b0000, // s_endpgm_saved
        0xbf9e0000, // s_endpgm_ordered_ps_done
        0xbf8b0001, // s_setkill 1
    ] {
        let mut bench = Bench::default();
        let [set] = [0xbe800081 /* s_mov_b32 s0, 1 */];
        assert_eq!(bench.try_run(&[ends, set]), Ok(Stop::End), "{ends:#x}");
        assert_eq!(bench.wave.sgpr[0], 0);
    }
    let mut bench = Bench::default();
    let fault = bench
        .try_run(&[
            0xbf800000, // s_nop 0
            0xbf920002, // s_trap 2
        ])
        .unwrap_err();
    assert_eq!((fault.cause, fault.pc, fault.mnemonic), (Cause::Trap(2), CODE + 4, Some("s_trap")));
    // A wave that halts waits for a debugger.
    let fault = bench.try_run(&[0xbf8d0001 /* s_sethalt 1 */]).unwrap_err();
    assert!(matches!(fault.cause, Cause::Unknown { mnemonic: Some("s_sethalt"), .. }), "{fault}");
    bench.run(&[
        0xbf800007, // s_nop 7
        0xbf8c0070, // s_waitcnt vmcnt(0) lgkmcnt(0)
        0xbf8f0003, // s_setprio 3
        0xbf8d0000, // s_sethalt 0
        0xbf8b0000, // s_setkill 0
        0xbf920003, // s_trap 3
        0xbf830000, // s_wakeup
        0xbf900001, // s_sendmsg sendmsg(MSG_INTERRUPT)
        0xbf930000, // s_icache_inv
        0xbf940001, // s_incperflevel 1
        0xbf950001, // s_decperflevel 1
        0xbf960000, // s_ttracedata
    ]);
    // A wave that sleeps gives its turn away.
    let mut bench = Bench::default();
    assert_eq!(bench.try_run(&[0xbf8e0001 /* s_sleep 1 */]), Ok(Stop::Budget));
    assert_eq!(bench.wave.pc, CODE + 4);
}

#[test]
fn scalar_instructions_ignore_exec() {
    let mut bench = Bench::default();
    bench.wave.set_exec(0);
    bench.wave.set_pair(4, MEMORY);
    bench.space.store_u32(MEMORY, 77).unwrap();
    bench.run(&[
        0xb0000005, // s_movk_i32 s0, 5
        0x80000000, // s_add_u32 s0, s0, s0
        0xc0020042, 0x00000000, // s_load_dword s1, s[4:5], 0x0
    ]);
    assert_eq!(bench.wave.sgpr[..2], [10, 77]);
}

#[test]
fn forked_lanes_meet_again() {
    // s[32:33] are the lanes that go the other way; s40 counts them, s41 those that go on.
    let code = [
        0xbea21c00, // s_getpc_b64 s[34:35]
        0x80229822, // s_add_u32 s34, s34, 24
        0x82238023, // s_addc_u32 s35, s35, 0
        0xb8200003, // s_cbranch_i_fork s[32:33], 3
        0xbea90d7e, // s_bcnt1_i32_b64 s41, exec
        0x8e2a812a, // s_lshl_b32 s42, s42, 1
        0xbf820002, // s_branch 2
        0xbea80d7e, // s_bcnt1_i32_b64 s40, exec
        0xb72a0005, // s_addk_i32 s42, 0x5
        0xbe802e24, // s_cbranch_join s36
        0xb72b0001, // s_addk_i32 s43, 0x1
    ];
    let by_register = [0x94802220 /* s_cbranch_g_fork s[32:33], s[34:35] */];
    for by_register in [None, Some(by_register[0])] {
        let mut code = code;
        if let Some(word) = by_register {
            code[3] = word;
        }
        // The smaller part goes first: (s42 + 5) * 2 or s42 * 2 + 5. The other one's lanes are left running.
        for (lanes, there, here, order, left) in [
            (0x0f, 4, 60, 16, !0x0f),
            (!0x0f, 60, 4, 11, !0x0f),
            (u64::MAX >> 32, 32, 32, 16, u64::MAX << 32),
            (u64::MAX, 64, 0, 8, u64::MAX),
            (0, 0, 64, 6, u64::MAX),
        ] {
            let mut bench = Bench::default();
            bench.wave.set_pair(32, lanes);
            bench.wave.sgpr[42] = 3;
            bench.run(&code);
            assert_eq!(bench.wave.sgpr[40..44], [there, here, order, 1], "{lanes:#x}");
            assert_eq!((bench.wave.exec(), bench.wave.mode), (left, Mode::DEFAULT), "{lanes:#x}");
        }
    }
}

#[test]
fn vector_instructions_are_skipped() {
    let mut bench = Bench::default();
    bench.fill(3, |_| 9);
    bench.fill(1, |_| 5);
    bench.wave.sgpr[0] = 1 << 6;
    bench.wave.sgpr[1] = 32 + 6;
    // s_setvskip s0, s1; v_mov_b32 v3, v1; s_mov_b32 s2, 7: on, which ends the turn.
    let words = [0xbf10_0100, 0x7e06_0301, 0xbe82_0087];
    assert_eq!(bench.try_run(&words), Ok(Stop::Budget));
    let pc = bench.wave.pc;
    assert_eq!(pc, CODE + 4);
    assert!(bench.wave.mode.vector_skip());
    bench.run(&words[1..]);
    assert_eq!((bench.wave.row(3)[0], bench.wave.sgpr[2]), (9, 7));
    // s_setvskip 0, 0 and v_mov_b32 v3, v1: off again, at once.
    bench.run(&[0x7e06_0301, 0xbf10_8080, 0x7e06_0301]);
    assert_eq!(bench.wave.row(3)[0], 5);
    assert!(!bench.wave.mode.vector_skip());
}

#[test]
fn a_trap_handler_returns_and_halts() {
    let mut bench = Bench::default();
    // s_rfe_b64 s[4:5]; s_endpgm; s_mov_b32 s2, 7
    bench.wave.set_pair(4, CODE + 8);
    bench.run(&[0xbe80_1f04, 0xbf81_0000, 0xbe82_0087]);
    assert_eq!(bench.wave.sgpr[2], 7);
    // s_rfe_restore_b64 s[4:5], s6; s_endpgm; s_mov_b32 s3, 9
    bench.run(&[0x9580_0604, 0xbf81_0000, 0xbe83_0089]);
    assert_eq!(bench.wave.sgpr[3], 9);
    // s_sendmsghalt sendmsg(MSG_INTERRUPT)
    let Err(fault) = bench.try_run(&[0xbf91_0001]) else { panic!("nobody wakes it") };
    assert!(matches!(fault.cause, Cause::Unknown { mnemonic: Some("s_sendmsghalt"), .. }), "{fault}");
}

/// Keeps what interrupts say, and what a word of memory holds then.
struct Told<'a> {
    space: &'a Space,
    told: Mutex<Vec<(u32, u32)>>,
}

impl Interrupts for Told<'_> {
    fn interrupt(&self, m0: u32) {
        let stored = self.space.load_u32(MEMORY).unwrap();
        self.told.lock().unwrap().push((m0, stored));
    }
}

#[test]
fn interrupts_reach_who_wants_them_and_other_messages_nobody() {
    for message in (0..=0xff).chain([0x101, 0xfff0, 0xfff1, 0xfff2]) {
        let block = || Arc::new(Block::new(MEMORY, 64).unwrap());
        let block = block();
        let map = Arc::new(Map::default());
        let (ours, theirs) = (Space::new(Arc::clone(&map), Arc::clone(&block)), Space::new(map, block));
        let told = Told { space: &theirs, told: Mutex::default() };
        let mut bench = Bench { space: ours, ..Bench::default() };
        bench.fill(0, |_| 0x77);
        bench.fill64(2, |_| MEMORY);
        let words = [
            0xdc708000,
            0x007f0002, // global_store_dword v[2:3], v0, off
            0xbefc00ff,
            0x00ab_cdef,          // s_mov_b32 m0, 0xabcdef
            0xbf900000 | message, // s_sendmsg
            0xb0000005,           // s_movk_i32 s0, 5
        ];
        assert_eq!(bench.try_run_with(&words, 100, Some(&told)), Ok(Stop::End), "{message:#x}");
        assert_eq!(bench.wave.sgpr[0], 5);
        let expected: &[_] = if message & 0xf == 1 { &[(0xab_cdef, 0x77)] } else { &[] };
        assert_eq!(*told.told.lock().unwrap(), expected, "{message:#x}");
        bench.wave.sgpr[0] = 0;
        assert_eq!(bench.try_run_with(&words, 100, None), Ok(Stop::End), "{message:#x}");
        assert_eq!(bench.wave.sgpr[0], 5);
    }
}
