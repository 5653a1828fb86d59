//! What the lanes of one instruction cost: cache lines of memory, cycles of LDS.

use hipr_isa::Arch;
use hipr_isa::watch::{Access, Kind};
use hipr_isa::wave::LANES;

/// The banks of LDS. Each has a word of 4 bytes in a cycle.
pub const LDS_BANKS: usize = 32;

/// Returns the length in bytes of a line of the vector cache.
pub const fn cache_line_bytes(arch: Arch) -> u64 {
    match arch {
        Arch::Gfx90a => 64,
        Arch::Gfx942 => 128,
    }
}

/// Returns how many cache lines the lanes of an access touch.
pub(crate) fn cache_lines(access: &Access<'_>, line_bytes: u64) -> u64 {
    let mut lines = [0; LANES * 2];
    let (mut count, mut is_rising) = (0, true);
    access.each_lane(|_, address| {
        let (first, last) =
            (address / line_bytes, (address + u64::from(access.len_bytes).max(1) - 1) / line_bytes);
        for line in [first, last] {
            if count > 0 && lines[count - 1] == line {
                continue;
            }
            is_rising &= count == 0 || lines[count - 1] < line;
            lines[count] = line;
            count += 1;
        }
    });
    if is_rising {
        return count as u64;
    }
    let lines = &mut lines[..count];
    lines.sort_unstable();
    1 + lines.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

/// Returns the cycles that the banks of LDS need for an access, and how many of them it would not need without conflicts.
///
/// A group of lanes is served together: 32 lanes of 4 bytes, 16 of 8, or 8 of 16, which is one word for each bank. A group takes as many cycles
/// as the most words that its lanes access in one bank. Lanes that load the same word share it; atomics on a word take turns.
pub(crate) fn lds_cycles(access: &Access<'_>) -> (u64, u64) {
    let words = access.len_bytes.div_ceil(4).max(1) as usize;
    let together = (LDS_BANKS / words.next_power_of_two()).max(1);
    let mut cycles = [0u64; LANES];
    let mut group = LANES;
    let mut known: Vec<u64> = Vec::with_capacity(LDS_BANKS);
    let mut banks = [0u64; LDS_BANKS];
    access.each_lane(|lane, address| {
        if lane / together != group {
            group = lane / together;
            known.clear();
            banks = [0; LDS_BANKS];
        }
        for word in 0..words as u64 {
            let word = address / 4 + word;
            if access.kind != Kind::Atomic {
                if known.contains(&word) {
                    continue;
                }
                known.push(word);
            }
            let bank = &mut banks[word as usize % LDS_BANKS];
            *bank += 1;
            cycles[group] = cycles[group].max(*bank);
        }
    });
    let groups = cycles.iter().filter(|cycles| **cycles > 0).count() as u64;
    let total = cycles.iter().sum::<u64>();
    (total, total - groups)
}
