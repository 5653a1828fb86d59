//! Tests of data from other lanes (DPP): every control, mask and bound_ctrl, against the instruction set's manual.

use crate::bench::{Bench, SOME, is_on};
use hipr_isa::Arch;
use hipr_isa::isa::assemble;
use hipr_isa::wave::LANES;

const OLD: u32 = 0xdead_beef;

/// The lane from which lane `n` takes its first operand, by the manual's formula for a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Lane(usize),
    /// None: `bound_ctrl` decides.
    Outside,
}

/// A control: its name, its number, and the function that returns a lane's source.
type Control = (String, usize, Box<dyn Fn(usize) -> Source>);

fn controls() -> Vec<Control> {
    use Source::{Lane, Outside};
    let mut all: Vec<Control> = Vec::new();
    for pattern in 0..0x100usize {
        let source = move |n: usize| Lane(n - n % 4 + (pattern >> (2 * (n % 4))) % 4);
        all.push((format!("quad_perm {pattern:#x}"), pattern, Box::new(source)));
    }
    for amount in 1..16 {
        let shl = move |n: usize| if n % 16 + amount < 16 { Lane(n + amount) } else { Outside };
        let shr = move |n: usize| if n % 16 >= amount { Lane(n - amount) } else { Outside };
        let ror = move |n: usize| Lane(if n % 16 >= amount { n - amount } else { n + 16 - amount });
        all.push((format!("row_shl:{amount}"), 0x100 + amount, Box::new(shl)));
        all.push((format!("row_shr:{amount}"), 0x110 + amount, Box::new(shr)));
        all.push((format!("row_ror:{amount}"), 0x120 + amount, Box::new(ror)));
    }
    for column in 0..16 {
        let share = move |n: usize| Lane(n - n % 16 + column);
        all.push((format!("row_newbcast:{column}"), 0x150 + column, Box::new(share)));
    }
    let mut add = |name: &str, control: usize, source: fn(usize) -> Source| {
        all.push((name.to_owned(), control, Box::new(source)));
    };
    add("wave_shl:1", 0x130, |n| if n < 63 { Lane(n + 1) } else { Outside });
    add("wave_rol:1", 0x134, |n| Lane(if n < 63 { n + 1 } else { 0 }));
    add("wave_shr:1", 0x138, |n| if n > 0 { Lane(n - 1) } else { Outside });
    add("wave_ror:1", 0x13c, |n| Lane(if n > 0 { n - 1 } else { 63 }));
    add("row_mirror", 0x140, |n| Lane(n / 16 * 16 + 15 - n % 16));
    add("row_half_mirror", 0x141, |n| Lane(n / 8 * 8 + 7 - n % 8));
    // These formulas have no case for what is outside: the lanes before keep their own operand.
    add("row_bcast:15", 0x142, |n| Lane(if n > 15 { n / 16 * 16 - 1 } else { n }));
    add("row_bcast:31", 0x143, |n| Lane(if n > 31 { 31 } else { n }));
    all
}

/// An instruction with DPP: its words without the DPP word, and the expected v3 as a function of the first operand and the
/// lane's v2.
type Operation = (&'static str, fn(u32, u32) -> u32, &'static str, u32, u64);

const OPERATIONS: [Operation; 2] = [
    // v3, DPP
    ("v_mov_b32", |first, _| first, "VOP1", 1, 3 << 17 | 0xfa),
    // v3, DPP, v2
    ("v_add_u32", u32::wrapping_add, "VOP2", 0x34, 3 << 17 | 2 << 9 | 0xfa),
];

#[test]
fn every_control_with_every_mask() {
    // Row and bank masks: all, those that compilers use, each row and each bank alone, none.
    let masks = [
        (0xf, 0xf),
        (0xa, 0xf),
        (0xc, 0xf),
        (0x5, 0x3),
        (0x1, 0xf),
        (0x2, 0xe),
        (0x4, 0x8),
        (0x8, 0x1),
        (0, 0xf),
        (0xf, 0),
    ];
    for arch in Arch::ALL {
        let mut bench = Bench { arch, ..Bench::default() };
        for (name, control, source) in controls() {
            for (operation, f, encoding, op, operands) in OPERATIONS {
                for ((row_mask, bank_mask), bound) in
                    masks.into_iter().flat_map(|masks| [(masks, 0), (masks, 1)])
                {
                    for exec in [u64::MAX, SOME, 0x0123_4567_89ab_cdef] {
                        let dpp = 1 | control << 8 | bound << 19 | bank_mask << 24 | row_mask << 28;
                        let words = assemble(arch, encoding, op, operands | (dpp as u64) << 32).unwrap();
                        let (first, second) =
                            (|lane: usize| 1000 + lane as u32, |lane: usize| lane as u32 * 7);
                        bench.fill(1, first);
                        bench.fill(2, second);
                        bench.fill(3, |_| OLD);
                        bench.wave.set_exec(exec);
                        bench.run(&words);
                        for lane in 0..LANES {
                            let enabled = is_on(exec, lane)
                                && row_mask >> (lane / 16) & 1 == 1
                                && bank_mask >> (lane % 16 / 4) & 1 == 1;
                            // A lane that does not run is as if it were outside.
                            let operand = match source(lane) {
                                Source::Lane(from) if is_on(exec, from) => Some(first(from)),
                                _ if bound == 1 => Some(0),
                                _ => None,
                            };
                            let expected = match operand.filter(|_| enabled) {
                                Some(operand) => f(operand, second(lane)),
                                None => OLD,
                            };
                            assert_eq!(
                                bench.wave.row(3)[lane],
                                expected,
                                "{arch} {operation} {name} row_mask:{row_mask:#x} bank_mask:{bank_mask:#x} \
                                 bound_ctrl:{bound}, EXEC {exec:#x}, lane {lane}"
                            );
                        }
                    }
                }
            }
        }
    }
}
