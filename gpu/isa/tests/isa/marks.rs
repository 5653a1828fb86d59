//! Tests of the marks of written pages: each instruction that stores, at each alignment over a page's edge, marks the pages that it
//! touches and no others.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::bench::{Bench, MEMORY, Random, SOME, is_on};
use hipr_isa::marks::MARKED_BYTES;
use hipr_isa::mem::{Block, Space};
use hipr_isa::wave::LANES;

const PAGE: u64 = MARKED_BYTES as u64;
/// The edge between two pages over which the accesses go.
const EDGE: u64 = 3 * PAGE;
/// The bytes of the memory of a test.
const LEN: usize = 1 << 16;

/// How the instructions of a family find their addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    Global,
    Flat,
    Buffer,
    /// A pair of scalar registers.
    Scalar,
    /// A resource in scalar registers.
    ScalarBuffer,
}

/// An instruction that stores: its words, and the number of bytes that each lane writes.
#[derive(Debug)]
struct Store {
    family: Family,
    words: [u32; 2],
    len: u64,
    is_atomic: bool,
}

fn store(family: Family, op: u32, len: u64, is_atomic: bool) -> Store {
    let words = match family {
        Family::Global => [0xdc00_8000 | op << 18, 0x007f_0a00],
        Family::Flat => [0xdc00_0000 | op << 18, 0x0000_0a00],
        // v[10:13], v2, s[8:11], 0 offen
        Family::Buffer => [0xe000_1000 | op << 18, 0x8002_0a02],
        // s[16:19], s[4:5], 0x0
        Family::Scalar => [0xc002_0000 | op << 18 | 16 << 6 | 2, 0],
        // s[16:19], s[8:11], 0x0
        Family::ScalarBuffer => [0xc002_0000 | op << 18 | 16 << 6 | 4, 0],
    };
    Store { family, words, len, is_atomic }
}

/// Returns every store and atomic of the tables of FLAT, MUBUF and SMEM that goes to device memory.
fn stores() -> Vec<Store> {
    let mut all = Vec::new();
    for family in [Family::Global, Family::Flat, Family::Buffer] {
        let lens = [1, 1, 2, 2, 4, 8, 12, 16];
        all.extend((0x18..).zip(lens).map(|(op, len)| store(family, op, len, false)));
        all.extend((0x40..=0x4e).map(|op| store(family, op, 4, true)));
        all.extend((0x4f..=0x51).map(|op| store(family, op, 8, true)));
        all.extend((0x60..=0x6c).map(|op| store(family, op, 8, true)));
    }
    // Elements of 16 bytes, by the resource.
    let formats = (0x04..=0x07).chain(0x0c..=0x0f);
    all.extend(formats.map(|op| store(Family::Buffer, op, 16, false)));
    for (op, len) in [(0x10, 4), (0x11, 8), (0x12, 16), (0x15, 4), (0x16, 8), (0x17, 16)] {
        all.push(store(Family::Scalar, op, len, false));
    }
    all.extend((0x80..=0x8c).map(|op| store(Family::Scalar, op, 4, true)));
    all.extend((0xa0..=0xac).map(|op| store(Family::Scalar, op, 8, true)));
    all.extend(
        [(0x18, 4), (0x19, 8), (0x1a, 16)].map(|(op, len)| store(Family::ScalarBuffer, op, len, false)),
    );
    all.extend((0x40..=0x4c).map(|op| store(Family::ScalarBuffer, op, 4, true)));
    all.extend((0x60..=0x6c).map(|op| store(Family::ScalarBuffer, op, 8, true)));
    all
}

/// Runs a store with a first address and a distance between the lanes; returns the memory afterwards.
fn run(
    store: &Store,
    before: &[u8],
    offset: impl Fn(usize) -> u64,
    exec: u64,
    keeps_marks: bool,
) -> (Bench, Vec<u8>) {
    let mut bench = Bench::default();
    let mut random = Random::new(7);
    bench.space.write(MEMORY, before).unwrap();
    if keeps_marks {
        block(&bench).keep_marks();
    }
    bench.fill64(0, |lane| MEMORY + offset(lane));
    bench.fill(2, |lane| offset(lane) as u32);
    for register in 10..14 {
        let row: [u32; LANES] = std::array::from_fn(|_| random.u32());
        bench.fill(register, |lane| row[lane]);
    }
    bench.wave.set_pair(4, MEMORY + offset(0));
    // 64 KiB, with elements of four words; the scalar instructions add their address to the base.
    let is_scalar = store.family == Family::ScalarBuffer;
    let base = if is_scalar { MEMORY + offset(0) } else { MEMORY };
    bench.wave.set_pair(8, base);
    bench.wave.sgpr[10] = LEN as u32 - if is_scalar { offset(0) as u32 } else { 0 };
    bench.wave.sgpr[11] = 14 << 15 | 4 << 12;
    for register in 16..20 {
        bench.wave.sgpr[register] = random.u32();
    }
    bench.wave.set_exec(exec);
    bench.run(&store.words);
    let mut bytes = vec![0; LEN];
    bench.space.read(MEMORY, &mut bytes).unwrap();
    (bench, bytes)
}

fn block(bench: &Bench) -> &Block {
    bench.space.find(MEMORY, 1).unwrap().0
}

fn pages(runs: &[Range<usize>]) -> BTreeSet<usize> {
    runs.iter().flat_map(|run| run.clone().step_by(MARKED_BYTES)).map(|at| at / MARKED_BYTES).collect()
}

#[test]
fn every_store_marks_the_pages_that_it_touches_and_no_others() {
    let mut random = Random::new(3);
    let before: Vec<u8> = (0..LEN / 8).flat_map(|_| random.u64().to_le_bytes()).collect();
    for store in stores() {
        let len = store.len;
        let is_scalar = matches!(store.family, Family::Scalar | Family::ScalarBuffer);
        for back in [0, 1, 2, 3, 4, 7, 8, 12, 15, 16, 17, 20 * len, 63 * len + 1, 64 * len, 64 * len + 1] {
            // The low bits of scalar addresses do not count; atomics are aligned.
            let align = if store.is_atomic {
                len
            } else if is_scalar {
                4
            } else {
                1
            };
            let start = (EDGE - back) / align * align;
            let scattered = |lane: usize| ((lane as u64 * 0x9e37) & 0x7fff) / align * align;
            let next = |lane: usize| start + lane as u64 * len;
            let same = |_: usize| start;
            let spreads: [&dyn Fn(usize) -> u64; 3] = [&next, &scattered, &same];
            for (spread, offset) in spreads.into_iter().enumerate() {
                for exec in [u64::MAX, SOME, 1 << 63] {
                    let is_once = spread > 0 && ![0, 1, 3, len].contains(&back);
                    if is_once || is_scalar && (spread > 0 || exec != u64::MAX) {
                        continue;
                    }
                    let text =
                        || format!("{store:x?}, spread {spread}, {back} before the edge, EXEC {exec:#x}");
                    let lanes: Vec<usize> = match is_scalar {
                        true => vec![0],
                        false => (0..LANES).filter(|&lane| is_on(exec, lane)).collect(),
                    };
                    let touched: BTreeSet<usize> = lanes
                        .iter()
                        .flat_map(|&lane| [offset(lane), offset(lane) + len - 1])
                        .map(|at| (at / PAGE) as usize)
                        .collect();
                    let (bench, bytes) = run(&store, &before, offset, exec, true);
                    let runs = block(&bench).take_marks(0, LEN).expect("marks are kept");
                    assert_eq!(pages(&runs), touched, "{}", text());
                    assert_eq!(block(&bench).take_marks(0, LEN), Some(Vec::new()), "taken: {}", text());
                    let (bench, plain) = run(&store, &before, offset, exec, false);
                    assert_eq!(block(&bench).take_marks(0, LEN), None);
                    assert!(bytes == plain, "marks change nothing else: {}", text());
                }
            }
        }
    }
}

#[test]
fn every_way_to_write_from_outside_marks() {
    type Write = fn(&Block, usize);
    let ways: [(usize, Write); 6] = [
        (1, |block, at| block.write(at, &[9])),
        (7, |block, at| block.write(at, &[9; 7])),
        (8000, |block, at| block.write(at, &[9; 8000])),
        (4, |block, at| block.store_u32(at, 9)),
        (8, |block, at| block.store_u64(at, 9)),
        (12, |block, at| block.store_words(at, &[9; 3])),
    ];
    for (len, write) in ways {
        for at in (EDGE as usize).saturating_sub(len + 9)..EDGE as usize + 9 {
            let block = Block::new(MEMORY, LEN as u64).unwrap();
            block.keep_marks();
            write(&block, at);
            let touched: BTreeSet<usize> = (at / MARKED_BYTES..=(at + len - 1) / MARKED_BYTES).collect();
            assert_eq!(pages(&block.take_marks(0, LEN).unwrap()), touched, "{len} bytes at {at}");
        }
    }
}

#[test]
fn marks_of_pages_that_are_only_partly_taken_stay() {
    let block = Block::new(MEMORY, 10_000).unwrap();
    block.keep_marks();
    block.write(0, &[1; 10_000]);
    let run = |start: usize, end: usize| Some(std::iter::once(start..end).collect());
    assert_eq!(block.take_marks(100, 5000), run(0, 8192), "both are touched, none is whole");
    assert_eq!(block.take_marks(0, 8192), run(0, 8192), "they were kept");
    assert_eq!(block.take_marks(8192, 1808), run(8192, 12_288), "the last page ends with the block");
    assert_eq!(block.take_marks(0, 10_000), Some(Vec::new()));
    block.write(9999, &[1]);
    block.write(3, &[1]);
    assert_eq!(block.take_marks(8192, 0), Some(Vec::new()), "no bytes, no pages");
    assert_eq!(block.take_marks(0, 10_000), Some(vec![0..4096, 8192..12_288]));
}

#[test]
fn no_store_is_lost_between_a_mark_and_its_bytes() {
    const ROUNDS: u32 = 3000;
    let block = Block::new(MEMORY, PAGE).unwrap();
    block.keep_marks();
    let space = Space::of_block(block);
    // The round that may begin, and the round whose store is over.
    let (begun, over) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                while begun.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
                space.store_u32(MEMORY + 64, round).unwrap();
                over.store(round, Ordering::Release);
            }
        });
        let (block, _) = space.find(MEMORY, 1).unwrap();
        let mut seen = 0;
        for round in 1..=ROUNDS {
            begun.store(round, Ordering::Release);
            loop {
                let is_over = over.load(Ordering::Acquire) == round;
                if !block.take_marks(0, MARKED_BYTES).unwrap().is_empty() {
                    seen = space.load_u32(MEMORY + 64).unwrap();
                }
                if is_over {
                    break;
                }
                std::hint::spin_loop();
            }
            assert_eq!(seen, round, "the mark was cleared, and the bytes were read before they were there");
        }
    });
}
