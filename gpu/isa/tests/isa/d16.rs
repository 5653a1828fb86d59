//! Tests of 16-bit loads to a half of a register: all that the tables have, on both GPUs.
//!
//! The devices call themselves `sramecc+`. Registers with ECC are written as a whole, so that a load to one half clears the other
//! (LLVM's feature `sramecc` says the same to the compiler, which relies on it).

use crate::bench::{Bench, MEMORY, SOME, is_on};
use hipr_isa::Arch;
use hipr_isa::aperture::{PRIVATE_BASE, SHARED_BASE};
use hipr_isa::isa::{assemble, implemented};
use hipr_isa::wave::LANES;

/// Number of bytes in each memory, whose values derive from their addresses.
const LEN_BYTES: u64 = 256;
const OLD: u32 = 0xaaaa_bbbb;
/// Number of the first AccVGPR among the registers of [`Bench`].
const ACCUM_OFFSET: usize = 64;

fn byte(at: u64) -> u8 {
    (at as u8).wrapping_mul(0x9b) ^ 0x5a
}

fn half(at: u64) -> u32 {
    u32::from(u16::from_le_bytes([byte(at), byte(at + 1)]))
}

/// Creates a wave whose device memory, LDS and scratch have the same bytes; s[8:11] is a resource for elements of four 16-bit
/// integers.
fn bench(arch: Arch) -> Bench {
    const SELECT_XYZW: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;
    const UINT: u32 = 4 << 12;
    const FORMAT_16_16_16_16: u32 = 12 << 15;
    let mut bench = Bench { arch, ..Bench::default() };
    for at in 0..LEN_BYTES {
        bench.space.store_u8(MEMORY + at, byte(at)).unwrap();
        bench.lds.store_u8(at as u32, byte(at));
        (0..LANES).for_each(|lane| bench.scratch.store_u8(lane, at as u32, byte(at)).unwrap());
    }
    bench.wave.sgpr[8..12].copy_from_slice(&[
        MEMORY as u32,
        (MEMORY >> 32) as u32,
        LEN_BYTES as u32,
        SELECT_XYZW | UINT | FORMAT_16_16_16_16,
    ]);
    bench
}

/// Returns operand bits with which the instructions of `encoding` load from v0 (or v[0:1]) to v10, or to a10.
fn operands(arch: Arch, encoding: &str, to_accumulator: bool) -> u64 {
    const TO_V10: u64 = 10 << 56;
    const NO_SADDR: u64 = 127 << 48;
    let acc = u64::from(to_accumulator);
    match encoding {
        "DS" => TO_V10 | acc << 25,
        "FLAT" | "GLOBAL" => TO_V10 | NO_SADDR | acc << 55,
        // The gfx942 has a bit that says that there is an address register.
        "SCRATCH" => TO_V10 | NO_SADDR | acc << 55 | u64::from(arch == Arch::Gfx942) << 13,
        // offen, v10, s[8:11], and the constant 0 as scalar offset.
        "MUBUF" => 1 << 12 | 10 << 40 | 2 << 48 | 128 << 56 | acc << 55,
        // The same, and the element's format.
        "MTBUF" => 1 << 12 | 10 << 40 | 2 << 48 | 128 << 56 | acc << 55 | 12 << 19 | 4 << 23,
        _ => panic!("no encoding of loads: {encoding}"),
    }
}

/// Returns the registers that the load `name` writes for the bytes at offset `at`.
fn loaded(name: &str, at: u64) -> Vec<u32> {
    let signed = u32::from(byte(at) as i8 as u16);
    let halves = if name.contains("ubyte") || name.contains("_u8") {
        vec![byte(at).into()]
    } else if name.contains("sbyte") || name.contains("_i8") {
        vec![signed]
    } else if name.contains("short") || name.contains("_u16") || name.ends_with("_x") {
        vec![half(at)]
    } else {
        let components = name.rsplit('_').next().unwrap().len() as u64;
        assert!((2..=4).contains(&components), "{name}");
        (0..components).map(|index| half(at + index * 2)).collect()
    };
    let shift = if name.contains("_d16_hi") { 16 } else { 0 };
    halves.chunks(2).map(|pair| pair[0] << shift | pair.get(1).map_or(0, |high| high << 16)).collect()
}

/// Checks a load with the lanes' memory at `base`, for several offsets of the lanes.
fn check(arch: Arch, encoding: &str, op: u32, name: &str, base: u64) {
    let spreads: [fn(u64) -> u64; 5] =
        [|lane| lane * 2, |lane| lane + 1, |lane| lane * 3, |lane| (lane * 37) & 0x7f, |_| 34];
    for to_accumulator in [false, true] {
        let words = assemble(arch, encoding, op, operands(arch, encoding, to_accumulator)).unwrap();
        let first = if to_accumulator { ACCUM_OFFSET + 10 } else { 10 };
        for spread in spreads {
            for exec in [u64::MAX, SOME, 1 << 63, 0] {
                let mut bench = bench(arch);
                bench.fill64(0, |lane| base + spread(lane as u64));
                (first..first + 3).for_each(|register| bench.fill(register, |_| OLD));
                bench.wave.set_exec(exec);
                bench.run(&words);
                for lane in 0..LANES {
                    let mut expected = [OLD; 3];
                    if is_on(exec, lane) {
                        let loaded = loaded(name, spread(lane as u64));
                        expected[..loaded.len()].copy_from_slice(&loaded);
                    }
                    let got = [0, 1, 2].map(|index| bench.wave.row(first + index)[lane]);
                    assert_eq!(got, expected, "{arch} {name} from {base:#x}, EXEC {exec:#x}, lane {lane}");
                }
            }
        }
    }
}

#[test]
fn the_half_that_is_not_loaded_becomes_0() {
    for arch in Arch::ALL {
        let mut count = 0;
        for (encoding, op, name) in implemented(arch) {
            if !name.contains("d16") || name.contains("store") || name.contains("write") {
                continue;
            }
            count += 1;
            let bases: &[u64] = match encoding {
                "GLOBAL" => &[MEMORY],
                "FLAT" => &[MEMORY, SHARED_BASE, PRIVATE_BASE],
                _ => &[0],
            };
            bases.iter().for_each(|&base| check(arch, encoding, op, name, base));
        }
        // Six each of LDS, flat, global, scratch and buffers, and nine with a format.
        assert_eq!(count, 5 * 6 + 9, "{arch}");
    }
}
