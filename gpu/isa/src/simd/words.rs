//! Copies of words and bytes of device memory, several at a time.
//!
//! Two words at a multiple of 8 bytes are always accessed as one. Four at a multiple of 16 bytes that belong to one lane are, too, where the
//! host can: programs rely on it as the hardware does it (rocPRIM's look-back passes a flag and a value of 8 bytes in one access).
//!
//! Compilers make no vectors of atomic accesses. Processors with AVX read and write each aligned 16 bytes of a vector as one.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Level;

/// Returns the words of `pairs`, in the order of their addresses.
#[inline(always)]
pub(crate) fn of_pairs(pairs: &[AtomicU64]) -> &[AtomicU32] {
    // SAFETY: it is the same memory, any bits of which are words. That accesses of two sizes meet there is what processors define,
    // each of them being one access; Rust's model of memory does not speak of it.
    unsafe { std::slice::from_raw_parts(pairs.as_ptr().cast(), pairs.len() * 2) }
}

/// Converts what a 64-bit access of two words reads, or is to write, to a number whose low half is the word at the lower address, and back.
#[inline(always)]
pub(crate) fn in_order(value: u64) -> u64 {
    if cfg!(target_endian = "little") { value } else { value.rotate_left(32) }
}

/// Returns whether `words` begin at a multiple of 8 bytes.
#[inline(always)]
fn begin_pair(words: &[AtomicU32]) -> bool {
    words.as_ptr().cast::<AtomicU64>().is_aligned()
}

/// Returns two words as one atomic.
///
/// # Safety
/// They are at a multiple of 8 bytes.
#[inline(always)]
unsafe fn pair(words: &[AtomicU32; 2]) -> &AtomicU64 {
    // SAFETY: it is the same memory, aligned, any bits of which are a number; see `of_pairs`.
    unsafe { &*words.as_ptr().cast() }
}

/// Runs one expression for each aligned pair of words, and another for each word outside of a pair. There are as many words as
/// `values`.
macro_rules! by_pairs {
    ($words:expr, $values:expr, $split:ident, $chunks:ident, |$word:ident, $value:ident| $one:expr, |$pair:ident, $both:ident| $two:expr) => {{
        let lone = usize::from(!begin_pair($words)).min($values.len());
        let (first, words) = $words[..$values.len()].split_at(lone);
        let (first_value, values) = $values.$split(lone);
        for ($word, $value) in first.iter().zip(first_value) {
            $one;
        }
        let ((pairs, last), (both, last_value)) = (words.as_chunks::<2>(), values.$chunks::<2>());
        for ($pair, $both) in pairs.iter().zip(both) {
            // SAFETY: the lone word before them brought them to a multiple of 8 bytes.
            let $pair = unsafe { pair($pair) };
            $two;
        }
        for ($word, $value) in last.iter().zip(last_value) {
            $one;
        }
    }};
}

/// Returns whether there are whole quads of `len` words: four words at a multiple of 16 bytes, which the host accesses as one.
#[inline(always)]
fn has_quads(words: &[AtomicU32], len: usize) -> bool {
    cfg!(target_arch = "x86_64") && len.is_multiple_of(4) && words.as_ptr().addr().is_multiple_of(16)
}

/// Loads four words at once.
///
/// # Safety
/// They are at a multiple of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn load_quad(quad: &[AtomicU32; 4]) -> [u32; 4] {
    let value: std::arch::x86_64::__m128i;
    // SAFETY: there are 16 bytes, aligned as the instruction wants it, which belongs to the baseline. What others change meanwhile is read
    // as by a relaxed load.
    unsafe {
        std::arch::asm!(
            "movdqa {value}, [{from}]",
            from = in(reg) quad.as_ptr(),
            value = lateout(xmm_reg) value,
            options(nostack, preserves_flags, readonly),
        );
        // SAFETY: any bits are words.
        std::mem::transmute(value)
    }
}

/// Stores four words at once.
///
/// # Safety
/// They are at a multiple of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn store_quad(quad: &[AtomicU32; 4], value: [u32; 4]) {
    // SAFETY: there are 16 bytes, aligned as the instruction wants it, which belongs to the baseline. They may be changed through a shared
    // reference, and are written as by a relaxed store.
    unsafe {
        let value: std::arch::x86_64::__m128i = std::mem::transmute(value);
        std::arch::asm!(
            "movdqa [{to}], {value}",
            to = in(reg) quad.as_ptr(),
            value = in(xmm_reg) value,
            options(nostack, preserves_flags),
        );
    }
}

/// Loads nothing, because there are no quads.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn load_quad(_: &[AtomicU32; 4]) -> [u32; 4] {
    [0; 4]
}

/// Stores nothing, because there are no quads.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn store_quad(_: &[AtomicU32; 4], _: [u32; 4]) {}

/// Loads each of `words` into the element of `out` with the same index, up to the shorter length.
#[inline(always)]
pub(crate) fn load_each(words: &[AtomicU32], out: &mut [u32]) {
    let len = words.len().min(out.len());
    let out = &mut out[..len];
    // A single word is one access wherever it lies; a branch on its address would be mispredicted in half of the lanes of scattered
    // loads.
    if let [value] = out {
        *value = words[0].load(Ordering::Relaxed);
        return;
    }
    if has_quads(words, len) {
        for (quad, out) in words[..len].as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<4>().0) {
            // SAFETY: they begin at a multiple of 16 bytes.
            *out = unsafe { load_quad(quad) };
        }
        return;
    }
    by_pairs!(
        words,
        out,
        split_at_mut,
        as_chunks_mut,
        |word, value| *value = word.load(Ordering::Relaxed),
        |pair, both| {
            let value = in_order(pair.load(Ordering::Relaxed));
            *both = [value as u32, (value >> 32) as u32];
        }
    );
}

/// Stores each of `values` to the element of `words` with the same index, up to the shorter length.
#[inline(always)]
pub(crate) fn store_each(words: &[AtomicU32], values: &[u32]) {
    let values = &values[..words.len().min(values.len())];
    // As for loads.
    if let [value] = values {
        words[0].store(*value, Ordering::Relaxed);
        return;
    }
    if has_quads(words, values.len()) {
        for (quad, value) in words[..values.len()].as_chunks::<4>().0.iter().zip(values.as_chunks::<4>().0) {
            // SAFETY: they begin at a multiple of 16 bytes.
            unsafe { store_quad(quad, *value) };
        }
        return;
    }
    by_pairs!(
        words,
        values,
        split_at,
        as_chunks,
        |word, value| word.store(*value, Ordering::Relaxed),
        |pair, both| pair.store(in_order(u64::from(both[0]) | u64::from(both[1]) << 32), Ordering::Relaxed)
    );
}

/// Loads each of `words` into the element of `out` with the same index, up to the shorter length.
#[inline(never)]
pub fn load_words(level: Level, words: &[AtomicU32], out: &mut [u32]) {
    let len = words.len().min(out.len());
    // SAFETY: both have that many words. Those that others may change meanwhile are each read as by a relaxed load.
    let done = unsafe { move_vectors(level, words.as_ptr().cast(), out.as_mut_ptr(), len) };
    if done < len {
        load_rest(&words[done..len], &mut out[done..len]);
    }
}

/// Loads as [`load_words`] does, without a call: for a number of words that is constant and small.
#[inline(always)]
pub(crate) fn load_few(level: Level, words: &[AtomicU32], out: &mut [u32]) {
    let len = words.len().min(out.len());
    // SAFETY: as for `load_words`.
    let done = unsafe { move_vectors(level, words.as_ptr().cast(), out.as_mut_ptr(), len) };
    load_each(&words[done..], &mut out[done..]);
}

/// Stores each of `values` to the element of `words` with the same index, up to the shorter length.
#[inline(never)]
pub fn store_words(level: Level, words: &[AtomicU32], values: &[u32]) {
    let len = words.len().min(values.len());
    // SAFETY: both have that many words. Those that others may access meanwhile, and that may be changed through a shared
    // reference, are each written as by a relaxed store.
    let done = unsafe { move_vectors(level, values.as_ptr(), words.as_ptr().cast_mut().cast(), len) };
    if done < len {
        store_rest(&words[done..len], &values[done..len]);
    }
}

/// Which way bytes go to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through the processor's caches, where whoever uses the bytes next finds them.
    Cache,
    /// Past the caches: faster for more bytes than they hold, as memory is not read that is about to be overwritten.
    Memory,
}

/// Loads each of `pairs` into the element of `out` with the same index, up to the shorter length, in the order of the addresses.
pub(crate) fn load_pairs(pairs: &[AtomicU64], out: &mut [[u8; 8]]) {
    let len = pairs.len().min(out.len());
    // SAFETY: both have that many pairs. Those that others may change meanwhile are each read as by a relaxed load.
    let done = unsafe { move_pairs(pairs.as_ptr().cast(), out.as_mut_ptr().cast(), len, Route::Cache) };
    for (pair, value) in pairs[done..len].iter().zip(&mut out[done..len]) {
        *value = in_order(pair.load(Ordering::Relaxed)).to_le_bytes();
    }
}

/// Stores each of `values` to the element of `pairs` with the same index, up to the shorter length, in the order of the addresses.
pub(crate) fn store_pairs(pairs: &[AtomicU64], values: &[[u8; 8]], route: Route) {
    let len = pairs.len().min(values.len());
    let (mut done, to) = (0, pairs.as_ptr().cast_mut().cast::<u8>());
    if route == Route::Memory && len > 0 && to.addr() % VECTOR_BYTES != 0 {
        pairs[0].store(in_order(u64::from_le_bytes(values[0])), Ordering::Relaxed);
        done = 1;
    }
    // SAFETY: both have that many pairs. Those that others may access meanwhile, and that may be changed through a shared
    // reference, are each written as by a relaxed store.
    done += unsafe { move_pairs(values[done..len].as_ptr().cast(), to.add(done * 8), len - done, route) };
    for (pair, value) in pairs[done..len].iter().zip(&values[done..len]) {
        pair.store(in_order(u64::from_le_bytes(*value)), Ordering::Relaxed);
    }
}

/// Copies each of `from` to the element of `to` with the same index, up to the shorter length. They do not overlap.
pub(crate) fn copy_pairs(to: &[AtomicU64], from: &[AtomicU64], route: Route) {
    let len = to.len().min(from.len());
    let (mut done, start) = (0, to.as_ptr().cast_mut().cast::<u8>());
    if route == Route::Memory && len > 0 && start.addr() % VECTOR_BYTES != 0 {
        to[0].store(from[0].load(Ordering::Relaxed), Ordering::Relaxed);
        done = 1;
    }
    // SAFETY: both have that many pairs. Those that others may access meanwhile, and that may be changed through a shared
    // reference, are each read and written as by a relaxed load and a relaxed store.
    done += unsafe { move_pairs(from[done..len].as_ptr().cast(), start.add(done * 8), len - done, route) };
    for (to, from) in to[done..len].iter().zip(&from[done..len]) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Number of bytes of a vector that every processor with this instruction set has.
const VECTOR_BYTES: usize = 16;

/// Copies up to `len` pairs of words from `from` to `to`, and returns how many were copied. No pair is torn on a side where pairs are
/// at multiples of 8 bytes. Bytes that go past the caches are in memory before what is stored afterwards.
///
/// # Safety
/// There are that many pairs at both, and `to` is a multiple of [`VECTOR_BYTES`] where the route is past the caches.
#[cfg(target_arch = "x86_64")]
unsafe fn move_pairs(from: *const u8, to: *mut u8, len: usize, route: Route) -> usize {
    /// Number of pairs that are copied at a time.
    const STEP: usize = 8;
    let end = len - len % STEP;
    let mut done = 0;
    macro_rules! move_each {
        ($store:literal) => {
            while done < end {
                // SAFETY: there are as many pairs from there on, and SSE2 belongs to the baseline of x86-64.
                unsafe {
                    std::arch::asm!(
                        "movdqu xmm0, [{from} + 8 * {done}]",
                        "movdqu xmm1, [{from} + 8 * {done} + 16]",
                        "movdqu xmm2, [{from} + 8 * {done} + 32]",
                        "movdqu xmm3, [{from} + 8 * {done} + 48]",
                        concat!($store, " [{to} + 8 * {done}], xmm0"),
                        concat!($store, " [{to} + 8 * {done} + 16], xmm1"),
                        concat!($store, " [{to} + 8 * {done} + 32], xmm2"),
                        concat!($store, " [{to} + 8 * {done} + 48], xmm3"),
                        from = in(reg) from,
                        to = in(reg) to,
                        done = in(reg) done,
                        out("xmm0") _,
                        out("xmm1") _,
                        out("xmm2") _,
                        out("xmm3") _,
                        options(nostack, preserves_flags),
                    );
                }
                done += STEP;
            }
        };
    }
    match route {
        Route::Cache => move_each!("movdqu"),
        Route::Memory => {
            move_each!("movntdq");
            // SAFETY: it only orders stores, and belongs to the baseline.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
    }
    end
}

/// Copies nothing, because there are no vectors; returns 0.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn move_pairs(_: *const u8, _: *mut u8, _: usize, _: Route) -> usize {
    0
}

// The words that are left after the vectors have functions of their own: callers without such words need not save registers for
// them.

#[inline(never)]
fn load_rest(words: &[AtomicU32], out: &mut [u32]) {
    load_each(words, out);
}

#[inline(never)]
fn store_rest(words: &[AtomicU32], values: &[u32]) {
    store_each(words, values);
}

/// Copies up to `len` words from `from` to `to`, none of them torn, and returns how many were copied. It takes the vectors that
/// the level's instructions take: two shorter ones that were just written the processor cannot read as a longer one.
///
/// # Safety
/// There are that many words at both.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn move_vectors(level: Level, from: *const u32, to: *mut u32, len: usize) -> usize {
    let mut done = 0;
    macro_rules! move_each {
        ($words:literal, $load:literal, $store:literal) => {
            let end = len - len % $words;
            while done < end {
                // SAFETY: there are as many words from there on, and the level has such vectors.
                unsafe {
                    std::arch::asm!(
                        $load,
                        $store,
                        from = in(reg) from,
                        to = in(reg) to,
                        done = in(reg) done,
                        out("xmm0") _,
                        options(nostack, preserves_flags),
                    );
                }
                done += $words;
            }
        };
    }
    if level.has_avx512() {
        move_each!(16, "vmovdqu32 zmm0, [{from} + 4 * {done}]", "vmovdqu32 [{to} + 4 * {done}], zmm0");
    }
    if level.has_fma() {
        move_each!(8, "vmovdqu ymm0, [{from} + 4 * {done}]", "vmovdqu [{to} + 4 * {done}], ymm0");
    }
    done
}

/// Copies nothing, because there are no vectors; returns 0.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn move_vectors(_: Level, _: *const u32, _: *mut u32, _: usize) -> usize {
    0
}
