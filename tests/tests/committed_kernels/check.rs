//! Comparisons with a reference, and reproducible random numbers.

use bytemuck::Pod;
use std::fmt::Debug;

/// Checks that all values are equal, bit for bit.
pub(crate) fn equal<T: Pod + Debug>(what: &str, got: &[T], want: &[T]) {
    assert_eq!(got.len(), want.len(), "{what}: values");
    let differs = |(g, w): (&T, &T)| bytemuck::bytes_of(g) != bytemuck::bytes_of(w);
    let wrong = got.iter().zip(want).filter(|pair| differs(*pair)).count();
    if let Some(i) = got.iter().zip(want).position(differs) {
        panic!("{what}[{i}]: {:?} instead of {:?}; {wrong} of {} wrong", got[i], want[i], got.len());
    }
}

/// Checks that |got - want| <= absolute + relative * |want|; infinities must be equal, NaN must be NaN.
pub(crate) fn near<T, W>(what: &str, got: &[T], want: &[W], relative: f64, absolute: f64)
where
    T: Copy + Into<f64>,
    W: Copy + Into<f64>,
{
    assert_eq!(got.len(), want.len(), "{what}: values");
    let is_near = |g: f64, w: f64| {
        (g.is_nan() && w.is_nan()) || g == w || (g - w).abs() <= absolute + relative * w.abs()
    };
    let pairs = || got.iter().zip(want).map(|(g, w)| ((*g).into(), (*w).into()));
    let wrong = pairs().filter(|(g, w)| !is_near(*g, *w)).count();
    if let Some((i, (g, w))) = pairs().enumerate().find(|(_, (g, w))| !is_near(*g, *w)) {
        panic!("{what}[{i}]: {g:e} instead of {w:e}; {wrong} of {} wrong", got.len());
    }
}

/// Returns the number of blocks of `threads` threads for `items` items.
pub(crate) fn blocks(items: usize, threads: usize) -> u32 {
    items.div_ceil(threads) as u32
}

/// A SplitMix64 generator.
pub(crate) struct Random(pub(crate) u64);

/// A type that numbers are rounded to.
pub(crate) trait Real {
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

impl Random {
    pub(crate) fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    /// Returns a number that is uniform in 0..bound.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.u32()) * u64::from(bound)) >> 32) as u32
    }

    /// Returns a number that is uniform in low..high.
    pub(crate) fn real(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.u64() >> 11) as f64 / (1u64 << 53) as f64)
    }

    pub(crate) fn reals<T: Real>(&mut self, len: usize, low: f64, high: f64) -> Vec<T> {
        (0..len).map(|_| T::of(self.real(low, high))).collect()
    }

    /// Returns values with random bits, of at most 8 bytes each.
    pub(crate) fn bits<T: Pod>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| bytemuck::pod_read_unaligned(&self.u64().to_le_bytes()[..size_of::<T>()])).collect()
    }
}
