//! Renders `docs/instructions.md` from the tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{ENCODINGS, implemented};
use crate::Arch;

const INTRODUCTION: &str = "\
# Instructions of the emulated GPUs

Made from the tables in `gpu/isa/src/isa/` by `cargo run -p hipr-isa --example instruction-doc`. A row is an instruction, with its
opcode on each GPU; one that a GPU does not have, or has under another name, shows `-` there. The lists are complete: every opcode
that LLVM decodes for these GPUs has a row (`gpu/isa/tests/isa/table.rs`), and every opcode with its operands is decoded as LLVM encodes
it (`gpu/isa/tests/isa/decode.rs`).

What an instruction does is exact but for these:

- f32 and f16 reciprocals, square roots, exponentials, logarithms, sines and cosines are rounded nearly always correctly, which the
  hardware does not promise. f64 reciprocals and roots are exact where the hardware gives a first guess.
- Matrix instructions add products up one after the other and round each sum; the hardware's order is not published.
- Rounding and denormals are as MODE says, in arithmetic and conversions. Matrix, dot product and atomic instructions round to nearest
  even, whatever MODE says.
- Loads of 16 bits to a half of a register (`*_d16*`) clear the other half: the devices have SRAM ECC (`sramecc+`), under which registers
  are written as a whole.
- Results beyond the range of f16 are infinities and those beyond that of 8-bit floats NaN, also where MODE's FP16_OVFL asks for the
  greatest number.
- Waits, priorities, cache hints and performance counters do nothing. Of the messages only an interrupt (`s_sendmsg` with message 1) does
  something: whoever runs the kernel is told of it, if it wants to know.

These end the kernel with an error that names them: global wave sync (`ds_gws_*`) in a launch that is not cooperative, as only
cooperative launches have a queue with such resources; halting a wave (`s_sethalt 1`, `s_sendmsghalt`); traps but the debugger's;
buffer resources that swizzle by lane, but for a gfx90a's scratch; the gfx90a's flat and global loads to LDS. Exceptions of floating
point are not taken.
";

/// Returns the text of `docs/instructions.md`.
pub fn document() -> String {
    let mut text = String::from(INTRODUCTION);
    let rows = Arch::ALL.map(|arch| implemented(arch).collect::<Vec<_>>());
    let _ = writeln!(text, "\n| encoding | {} | {} |\n|---|---|---|", Arch::ALL[0], Arch::ALL[1]);
    for encoding in ENCODINGS {
        let counts = rows.each_ref().map(|rows| rows.iter().filter(|row| row.0 == encoding.name()).count());
        let _ = writeln!(text, "| {} | {} | {} |", encoding.name(), counts[0], counts[1]);
    }
    let _ = writeln!(text, "| together | {} | {} |", rows[0].len(), rows[1].len());
    for encoding in ENCODINGS {
        let mut by_name: BTreeMap<(u32, &str), [Option<u32>; 2]> = BTreeMap::new();
        for (column, rows) in rows.iter().enumerate() {
            for &(_, op, name) in rows.iter().filter(|row| row.0 == encoding.name()) {
                by_name.entry((op, name)).or_default()[column] = Some(op);
            }
        }
        let _ = writeln!(
            text,
            "\n## {}\n\n| instruction | {} | {} |\n|---|---|---|",
            encoding.name(),
            Arch::ALL[0],
            Arch::ALL[1]
        );
        for ((_, name), ops) in by_name {
            let [first, second] = ops.map(|op| op.map_or("-".to_owned(), |op| format!("{op:#x}")));
            let _ = writeln!(text, "| `{name}` | {first} | {second} |");
        }
    }
    text
}
