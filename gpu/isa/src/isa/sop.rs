//! Scalar ALU and program control.

use crate::flow::Stop;
use crate::isa::rows;
use crate::sem::int::nonzero;
use crate::sem::salu;
use crate::shape::scalar::{
    branch, call, end_if_set, fork_by, fork_to, halt, index_by, index_off, index_on, index_operands, join,
    jump, jump_and_link, jump_to_first, message, move_from_relative, move_if_scc, move_to_relative, nothing,
    nothing_if_zero, read_hardware, read_pc, save_exec, select, skip_vector, sop1, sop1_quiet, sop1_update,
    sop2, sop2_carry, sop2_quiet, sopc, sopk_compare_i32, sopk_compare_u32, sopk_if_scc, sopk_quiet,
    sopk_update, sopk_update_quiet, stop, trap, write_exec, write_hardware, write_hardware_literal,
};

/// Opcode of the SOPK instruction that takes a literal.
pub(crate) const S_SETREG_IMM32: usize = 0x14;

rows! {
    /// Instructions with two scalar sources.
    SOP2 [128] scalar {
        0x00 s_add_u32 = sop2(u32::overflowing_add);
        0x01 s_sub_u32 = sop2(u32::overflowing_sub);
        0x02 s_add_i32 = sop2(i32::overflowing_add);
        0x03 s_sub_i32 = sop2(i32::overflowing_sub);
        0x04 s_addc_u32 = sop2_carry(salu::add_carry);
        0x05 s_subb_u32 = sop2_carry(salu::sub_borrow);
        0x06 s_min_i32 = sop2(salu::min::<i32>);
        0x07 s_min_u32 = sop2(salu::min::<u32>);
        0x08 s_max_i32 = sop2(salu::max::<i32>);
        0x09 s_max_u32 = sop2(salu::max::<u32>);
        0x0a s_cselect_b32 = select::<u32>();
        0x0b s_cselect_b64 = select::<u64>();
        0x0c s_and_b32 = sop2(|a: u32, b: u32| nonzero(a & b));
        0x0d s_and_b64 = sop2(|a: u64, b: u64| nonzero(a & b));
        0x0e s_or_b32 = sop2(|a: u32, b: u32| nonzero(a | b));
        0x0f s_or_b64 = sop2(|a: u64, b: u64| nonzero(a | b));
        0x10 s_xor_b32 = sop2(|a: u32, b: u32| nonzero(a ^ b));
        0x11 s_xor_b64 = sop2(|a: u64, b: u64| nonzero(a ^ b));
        0x12 s_andn2_b32 = sop2(|a: u32, b: u32| nonzero(a & !b));
        0x13 s_andn2_b64 = sop2(|a: u64, b: u64| nonzero(a & !b));
        0x14 s_orn2_b32 = sop2(|a: u32, b: u32| nonzero(a | !b));
        0x15 s_orn2_b64 = sop2(|a: u64, b: u64| nonzero(a | !b));
        0x16 s_nand_b32 = sop2(|a: u32, b: u32| nonzero(!(a & b)));
        0x17 s_nand_b64 = sop2(|a: u64, b: u64| nonzero(!(a & b)));
        0x18 s_nor_b32 = sop2(|a: u32, b: u32| nonzero(!(a | b)));
        0x19 s_nor_b64 = sop2(|a: u64, b: u64| nonzero(!(a | b)));
        0x1a s_xnor_b32 = sop2(|a: u32, b: u32| nonzero(!(a ^ b)));
        0x1b s_xnor_b64 = sop2(|a: u64, b: u64| nonzero(!(a ^ b)));
        0x1c s_lshl_b32 = sop2(salu::shl32);
        0x1d s_lshl_b64 = sop2(salu::shl64);
        0x1e s_lshr_b32 = sop2(salu::shr32);
        0x1f s_lshr_b64 = sop2(salu::shr64);
        0x20 s_ashr_i32 = sop2(salu::sar32);
        0x21 s_ashr_i64 = sop2(salu::sar64);
        0x22 s_bfm_b32 = sop2_quiet(salu::bit_mask32);
        0x23 s_bfm_b64 = sop2_quiet(salu::bit_mask64);
        0x24 s_mul_i32 = sop2_quiet(u32::wrapping_mul);
        0x25 s_bfe_u32 = sop2(salu::bfe_u32);
        0x26 s_bfe_i32 = sop2(salu::bfe_i32);
        0x27 s_bfe_u64 = sop2(salu::bfe_u64);
        0x28 s_bfe_i64 = sop2(salu::bfe_i64);
        0x29 s_cbranch_g_fork = fork_to();
        0x2a s_absdiff_i32 = sop2(salu::abs_difference);
        0x2b s_rfe_restore_b64 = jump_to_first();
        0x2c s_mul_hi_u32 = sop2_quiet(salu::mul_hi_u32);
        0x2d s_mul_hi_i32 = sop2_quiet(salu::mul_hi_i32);
        0x2e s_lshl1_add_u32 = sop2(salu::shl_add::<1>);
        0x2f s_lshl2_add_u32 = sop2(salu::shl_add::<2>);
        0x30 s_lshl3_add_u32 = sop2(salu::shl_add::<3>);
        0x31 s_lshl4_add_u32 = sop2(salu::shl_add::<4>);
        0x32 s_pack_ll_b32_b16 = sop2_quiet(salu::pack);
        0x33 s_pack_lh_b32_b16 = sop2_quiet(|a: u32, b: u32| salu::pack(a, b >> 16));
        0x34 s_pack_hh_b32_b16 = sop2_quiet(|a: u32, b: u32| salu::pack(a >> 16, b >> 16));
    }
}
rows! {
    /// Instructions with one scalar source.
    SOP1 [256] scalar {
        0x00 s_mov_b32 = sop1_quiet(|a: u32| a);
        0x01 s_mov_b64 = sop1_quiet(|a: u64| a);
        0x02 s_cmov_b32 = move_if_scc::<u32>();
        0x03 s_cmov_b64 = move_if_scc::<u64>();
        0x04 s_not_b32 = sop1(|a: u32| nonzero(!a));
        0x05 s_not_b64 = sop1(|a: u64| nonzero(!a));
        0x06 s_wqm_b32 = sop1(|a: u32| nonzero(salu::whole_quads(a.into()) as u32));
        0x07 s_wqm_b64 = sop1(|a: u64| nonzero(salu::whole_quads(a)));
        0x08 s_brev_b32 = sop1_quiet(u32::reverse_bits);
        0x09 s_brev_b64 = sop1_quiet(u64::reverse_bits);
        0x0a s_bcnt0_i32_b32 = sop1(|a: u32| nonzero(a.count_zeros()));
        0x0b s_bcnt0_i32_b64 = sop1(|a: u64| nonzero(a.count_zeros()));
        0x0c s_bcnt1_i32_b32 = sop1(|a: u32| nonzero(a.count_ones()));
        0x0d s_bcnt1_i32_b64 = sop1(|a: u64| nonzero(a.count_ones()));
        0x0e s_ff0_i32_b32 = sop1_quiet(|a: u32| salu::first_one32(!a));
        0x0f s_ff0_i32_b64 = sop1_quiet(|a: u64| salu::first_one64(!a));
        0x10 s_ff1_i32_b32 = sop1_quiet(salu::first_one32);
        0x11 s_ff1_i32_b64 = sop1_quiet(salu::first_one64);
        0x12 s_flbit_i32_b32 = sop1_quiet(salu::leading_zeros32);
        0x13 s_flbit_i32_b64 = sop1_quiet(salu::leading_zeros64);
        0x14 s_flbit_i32 = sop1_quiet(salu::sign_bits32);
        0x15 s_flbit_i32_i64 = sop1_quiet(salu::sign_bits64);
        0x16 s_sext_i32_i8 = sop1_quiet(|a: u32| i32::from(a as i8));
        0x17 s_sext_i32_i16 = sop1_quiet(|a: u32| i32::from(a as i16));
        0x18 s_bitset0_b32 = sop1_update(|old: u32, bit| old & !1u32.wrapping_shl(bit));
        0x19 s_bitset0_b64 = sop1_update(|old: u64, bit| old & !1u64.wrapping_shl(bit));
        0x1a s_bitset1_b32 = sop1_update(|old: u32, bit| old | 1u32.wrapping_shl(bit));
        0x1b s_bitset1_b64 = sop1_update(|old: u64, bit| old | 1u64.wrapping_shl(bit));
        0x1c s_getpc_b64 = read_pc();
        0x1d s_setpc_b64 = jump();
        0x1e s_swappc_b64 = jump_and_link();
        0x1f s_rfe_b64 = jump();
        0x20 s_and_saveexec_b64 = save_exec(|a, exec| a & exec);
        0x21 s_or_saveexec_b64 = save_exec(|a, exec| a | exec);
        0x22 s_xor_saveexec_b64 = save_exec(|a, exec| a ^ exec);
        0x23 s_andn2_saveexec_b64 = save_exec(|a, exec| a & !exec);
        0x24 s_orn2_saveexec_b64 = save_exec(|a, exec| a | !exec);
        0x25 s_nand_saveexec_b64 = save_exec(|a, exec| !(a & exec));
        0x26 s_nor_saveexec_b64 = save_exec(|a, exec| !(a | exec));
        0x27 s_xnor_saveexec_b64 = save_exec(|a, exec| !(a ^ exec));
        0x28 s_quadmask_b32 = sop1(|a: u32| nonzero(salu::quad_mask(a.into()) as u32));
        0x29 s_quadmask_b64 = sop1(|a: u64| nonzero(salu::quad_mask(a)));
        0x2a s_movrels_b32 = move_from_relative::<u32>();
        0x2b s_movrels_b64 = move_from_relative::<u64>();
        0x2c s_movreld_b32 = move_to_relative::<u32>();
        0x2d s_movreld_b64 = move_to_relative::<u64>();
        0x2e s_cbranch_join = join();
        0x30 s_abs_i32 = sop1(|a: i32| nonzero(a.wrapping_abs()));
        0x32 s_set_gpr_idx_idx = index_by();
        0x33 s_andn1_saveexec_b64 = save_exec(|a, exec| !a & exec);
        0x34 s_orn1_saveexec_b64 = save_exec(|a, exec| !a | exec);
        0x35 s_andn1_wrexec_b64 = write_exec(|a, exec| !a & exec);
        0x36 s_andn2_wrexec_b64 = write_exec(|a, exec| a & !exec);
        0x37 s_bitreplicate_b64_b32 = sop1_quiet(salu::double_bits);
    }
}
rows! {
    /// Scalar comparisons.
    SOPC [128] scalar {
        0x00 s_cmp_eq_i32 = sopc(|a: i32, b: i32| a == b);
        0x01 s_cmp_lg_i32 = sopc(|a: i32, b: i32| a != b);
        0x02 s_cmp_gt_i32 = sopc(|a: i32, b: i32| a > b);
        0x03 s_cmp_ge_i32 = sopc(|a: i32, b: i32| a >= b);
        0x04 s_cmp_lt_i32 = sopc(|a: i32, b: i32| a < b);
        0x05 s_cmp_le_i32 = sopc(|a: i32, b: i32| a <= b);
        0x06 s_cmp_eq_u32 = sopc(|a: u32, b: u32| a == b);
        0x07 s_cmp_lg_u32 = sopc(|a: u32, b: u32| a != b);
        0x08 s_cmp_gt_u32 = sopc(|a: u32, b: u32| a > b);
        0x09 s_cmp_ge_u32 = sopc(|a: u32, b: u32| a >= b);
        0x0a s_cmp_lt_u32 = sopc(|a: u32, b: u32| a < b);
        0x0b s_cmp_le_u32 = sopc(|a: u32, b: u32| a <= b);
        0x0c s_bitcmp0_b32 = sopc(|a: u32, b: u32| a.wrapping_shr(b) & 1 == 0);
        0x0d s_bitcmp1_b32 = sopc(|a: u32, b: u32| a.wrapping_shr(b) & 1 == 1);
        0x0e s_bitcmp0_b64 = sopc(|a: u64, b: u32| a.wrapping_shr(b) & 1 == 0);
        0x0f s_bitcmp1_b64 = sopc(|a: u64, b: u32| a.wrapping_shr(b) & 1 == 1);
        0x10 s_setvskip = skip_vector();
        0x11 s_set_gpr_idx_on = index_on();
        0x12 s_cmp_eq_u64 = sopc(|a: u64, b: u64| a == b);
        0x13 s_cmp_lg_u64 = sopc(|a: u64, b: u64| a != b);
    }
}
rows! {
    /// Scalar instructions with a 16-bit constant.
    SOPK [32] scalar {
        0x00 s_movk_i32 = sopk_quiet(|k| i32::from(k) as u32);
        0x01 s_cmovk_i32 = sopk_if_scc(|k| i32::from(k) as u32);
        0x02 s_cmpk_eq_i32 = sopk_compare_i32(|a, k| a == k);
        0x03 s_cmpk_lg_i32 = sopk_compare_i32(|a, k| a != k);
        0x04 s_cmpk_gt_i32 = sopk_compare_i32(|a, k| a > k);
        0x05 s_cmpk_ge_i32 = sopk_compare_i32(|a, k| a >= k);
        0x06 s_cmpk_lt_i32 = sopk_compare_i32(|a, k| a < k);
        0x07 s_cmpk_le_i32 = sopk_compare_i32(|a, k| a <= k);
        0x08 s_cmpk_eq_u32 = sopk_compare_u32(|a, k| a == k);
        0x09 s_cmpk_lg_u32 = sopk_compare_u32(|a, k| a != k);
        0x0a s_cmpk_gt_u32 = sopk_compare_u32(|a, k| a > k);
        0x0b s_cmpk_ge_u32 = sopk_compare_u32(|a, k| a >= k);
        0x0c s_cmpk_lt_u32 = sopk_compare_u32(|a, k| a < k);
        0x0d s_cmpk_le_u32 = sopk_compare_u32(|a, k| a <= k);
        0x0e s_addk_i32 = sopk_update(i32::overflowing_add);
        0x0f s_mulk_i32 = sopk_update_quiet(i32::wrapping_mul);
        0x10 s_cbranch_i_fork = fork_by();
        0x11 s_getreg_b32 = read_hardware();
        0x12 s_setreg_b32 = write_hardware();
        0x14 s_setreg_imm32_b32 = write_hardware_literal();
        0x15 s_call_b64 = call();
    }
}
rows! {
    /// Program control instructions.
    SOPP [128] scalar {
        0x00 s_nop = nothing();
        0x01 s_endpgm = stop(Stop::End);
        0x02 s_branch = branch(|_| true);
        0x03 s_wakeup = nothing();
        0x04 s_cbranch_scc0 = branch(|wave| !wave.scc);
        0x05 s_cbranch_scc1 = branch(|wave| wave.scc);
        0x06 s_cbranch_vccz = branch(|wave| wave.vcc() == 0);
        0x07 s_cbranch_vccnz = branch(|wave| wave.vcc() != 0);
        0x08 s_cbranch_execz = branch(|wave| wave.exec() == 0);
        0x09 s_cbranch_execnz = branch(|wave| wave.exec() != 0);
        0x0a s_barrier = stop(Stop::Barrier);
        0x0b s_setkill = end_if_set();
        0x0c s_waitcnt = nothing();
        0x0d s_sethalt = nothing_if_zero();
        0x0e s_sleep = stop(Stop::Budget);
        0x0f s_setprio = nothing();
        0x10 s_sendmsg = message();
        0x11 s_sendmsghalt = halt();
        0x12 s_trap = trap();
        0x13 s_icache_inv = nothing();
        0x14 s_incperflevel = nothing();
        0x15 s_decperflevel = nothing();
        0x16 s_ttracedata = nothing();
        0x17 s_cbranch_cdbgsys = branch(|_| false);
        0x18 s_cbranch_cdbguser = branch(|_| false);
        0x19 s_cbranch_cdbgsys_or_user = branch(|_| false);
        0x1a s_cbranch_cdbgsys_and_user = branch(|_| false);
        0x1b s_endpgm_saved = stop(Stop::End);
        0x1c s_set_gpr_idx_off = index_off();
        0x1d s_set_gpr_idx_mode = index_operands();
        0x1e s_endpgm_ordered_ps_done = stop(Stop::End);
    }
}
