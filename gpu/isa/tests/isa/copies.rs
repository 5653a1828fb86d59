//! Copies of bytes to, from and between blocks: at each alignment, of each length around the size of a vector, by each route.

use std::sync::atomic::{AtomicBool, Ordering};

use hipr_isa::marks::MARKED_BYTES;
use hipr_isa::mem::{Block, Route};

const BASE: u64 = 0x10_0000;
const BLOCK_BYTES: usize = 12 << 10;
const OFFSETS: [usize; 8] = [0, 1, 3, 7, 8, 9, 12, 16];
const ROUTES: [Route; 2] = [Route::Cache, Route::Memory];
/// Lengths around those of words, vectors, steps and pieces.
const LENS: [usize; 19] = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 71, 128, 200, 4095, 4104, 5000];

/// Returns bytes that differ from their neighbours, and from those of another seed.
fn some(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|index| ((index + seed) * 167 % 251) as u8).collect()
}

fn block(bytes: &[u8]) -> Block {
    let block = Block::new(BASE, bytes.len() as u64).expect("memory");
    block.write(0, bytes);
    block
}

fn bytes(block: &Block) -> Vec<u8> {
    let mut out = vec![0; block.len_bytes() as usize];
    block.read(0, &mut out);
    out
}

#[test]
fn what_is_written_is_there_and_nothing_else_has_changed() {
    for (route, len) in ROUTES.into_iter().flat_map(|route| LENS.map(|len| (route, len))) {
        for (offset, host) in OFFSETS.into_iter().flat_map(|offset| [0, 1, 5, 8].map(|host| (offset, host))) {
            let (before, new) = (some(BLOCK_BYTES, 1), some(len + host, 77));
            let block = block(&before);
            block.write_by(route, offset, &new[host..]);
            let mut expected = before;
            expected[offset..offset + len].copy_from_slice(&new[host..]);
            assert!(bytes(&block) == expected, "{route:?}, {len} bytes to {offset}");
            let mut out = vec![0xcc; len + host + 1];
            block.read(offset, &mut out[host..host + len]);
            assert!(out[host..host + len] == new[host..], "{len} bytes from {offset}");
            assert!(out[..host].iter().chain(&out[host + len..]).all(|byte| *byte == 0xcc));
        }
    }
}

#[test]
fn what_is_copied_is_there_and_nothing_else_has_changed() {
    let source = some(BLOCK_BYTES, 77);
    for (route, len) in ROUTES.into_iter().flat_map(|route| LENS.map(|len| (route, len))) {
        for (offset, from) in OFFSETS.into_iter().flat_map(|offset| OFFSETS.map(|from| (offset, from))) {
            let before = some(BLOCK_BYTES, 1);
            let (to, source_block) = (block(&before), block(&source));
            to.copy_by(route, offset, &source_block, from, len);
            let mut expected = before;
            expected[offset..offset + len].copy_from_slice(&source[from..from + len]);
            assert!(bytes(&to) == expected, "{route:?}, {len} bytes from {from} to {offset}");
            assert!(bytes(&source_block) == source);
        }
    }
}

#[test]
fn what_is_copied_is_marked() {
    const PAGE: usize = MARKED_BYTES;
    for (route, len) in ROUTES.into_iter().flat_map(|route| LENS.map(|len| (route, len))) {
        for offset in [0, 3, 8, PAGE - 8, PAGE - 1, PAGE, PAGE + 9] {
            let (to, source) = (block(&some(BLOCK_BYTES, 1)), block(&some(BLOCK_BYTES, 2)));
            to.keep_marks();
            to.take_marks(0, BLOCK_BYTES);
            to.copy_by(route, offset, &source, 5, len);
            let marked = to.take_marks(0, BLOCK_BYTES).expect("marks are kept");
            let pages: Vec<usize> = marked.into_iter().flatten().step_by(PAGE).collect();
            let expected: Vec<usize> = (0..BLOCK_BYTES)
                .step_by(PAGE)
                .filter(|at| len > 0 && offset < at + PAGE && *at < offset + len)
                .collect();
            assert_eq!(pages, expected, "{route:?}, {len} bytes to {offset}");
        }
    }
}

/// A guard that stops the storing thread, even if a check fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One thread writes to or copies into a block, each time bytes that are all the same; what another one reads or copies out of it has in each
/// aligned 8 bytes those of one time.
#[test]
fn copies_do_not_tear() {
    const LEN: usize = 4096;
    let (memory, done) = (block(&[0; LEN + 8]), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let source = block(&[0; LEN]);
            for round in 0..u32::MAX {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                let (route, value) = (ROUTES[round as usize / 2 % 2], round as u8);
                if round % 2 == 0 {
                    memory.write_by(route, 8, &[value; LEN]);
                } else {
                    source.write(0, &[value; LEN]);
                    memory.copy_by(route, 8, &source, 0, LEN);
                }
            }
        });
        let _done = Done(&done);
        let (out, mut read) = (block(&[0; LEN]), [0; LEN]);
        for round in 0..5000 {
            if round % 2 == 0 {
                memory.read(8, &mut read);
            } else {
                out.copy_by(Route::Memory, 0, &memory, 8, LEN);
                out.read(0, &mut read);
            }
            for pair in read.as_chunks::<8>().0 {
                assert!(pair.iter().all(|byte| *byte == pair[0]), "{pair:x?}");
            }
        }
    });
}
