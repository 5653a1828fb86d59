//! Words of device memory, several at a time.
//!
//! Compilers make no vectors of atomic accesses. The processor reads and writes each aligned word of a vector as one, which is all
//! that a relaxed atomic of 32 bits says.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Level;

/// Loads each of `words` to its place in `out`, as far as both go.
#[inline(never)]
pub(crate) fn load_words(level: Level, words: &[AtomicU32], out: &mut [u32]) {
    let len = words.len().min(out.len());
    // SAFETY: both have that many words. Those that others may change meanwhile are each read as by a relaxed load.
    let done = unsafe { move_vectors(level, words.as_ptr().cast(), out.as_mut_ptr(), len) };
    for (word, out) in words[done..].iter().zip(&mut out[done..]) {
        *out = word.load(Ordering::Relaxed);
    }
}

/// Stores each of `values` to its place in `words`, as far as both go.
#[inline(never)]
pub(crate) fn store_words(level: Level, words: &[AtomicU32], values: &[u32]) {
    let len = words.len().min(values.len());
    // SAFETY: both have that many words. Those that others may access meanwhile, and that may be changed through a shared
    // reference, are each written as by a relaxed store.
    let done = unsafe { move_vectors(level, values.as_ptr(), words.as_ptr().cast_mut().cast(), len) };
    for (word, value) in words[done..].iter().zip(&values[done..]) {
        word.store(*value, Ordering::Relaxed);
    }
}

/// Copies up to `len` words from `from` to `to`, each as a whole, and returns how many. It takes the vectors that the level's
/// instructions take: two shorter ones that were just written the processor cannot read as a longer one.
///
/// # Safety
/// There are that many words at both.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn move_vectors(level: Level, from: *const u32, to: *mut u32, len: usize) -> usize {
    let mut done = 0;
    macro_rules! move_each {
        ($words:literal, $load:literal, $store:literal) => {
            while done + $words <= len {
                // SAFETY: there are as many words from there on, and the level has such vectors.
                unsafe {
                    std::arch::asm!(
                        $load,
                        $store,
                        from = in(reg) from.add(done),
                        to = in(reg) to.add(done),
                        out("xmm0") _,
                        options(nostack, preserves_flags),
                    );
                }
                done += $words;
            }
        };
    }
    if level.has_avx512() {
        move_each!(16, "vmovdqu32 zmm0, [{from}]", "vmovdqu32 [{to}], zmm0");
    } else if level.has_fma() {
        move_each!(8, "vmovdqu ymm0, [{from}]", "vmovdqu [{to}], ymm0");
    }
    done
}

/// No vectors: all is left to do.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn move_vectors(_: Level, _: *const u32, _: *mut u32, _: usize) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{load_words, store_words};
    use crate::simd::Level;

    #[test]
    fn every_word_is_moved_and_no_other() {
        for level in Level::available() {
            for len in 0..70 {
                let words: Vec<AtomicU32> = (0..len).map(|_| AtomicU32::new(7)).collect();
                let values: Vec<u32> = (100..165).collect();
                store_words(level, &words, &values);
                let stored: Vec<u32> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
                let moved = values.len().min(len);
                assert_eq!(stored[..moved], values[..moved], "{level:?}, {len} words");
                assert!(stored[moved..].iter().all(|word| *word == 7), "{level:?}, {len} words");

                let mut loaded = [9; 65];
                load_words(level, &words, &mut loaded);
                assert_eq!(loaded[..moved], values[..moved], "{level:?}, {len} words");
                assert!(loaded[moved..].iter().all(|word| *word == 9), "{level:?}, {len} words");
            }
        }
    }
}
