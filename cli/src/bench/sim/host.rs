//! The same computations on the host: plain Rust, compiled for the emulator's SIMD level, on as many threads.

use hipr_isa::simd::{Level, Task};
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// Number of work-items of a wave.
pub(super) const LANES: usize = 64;

/// A computation in independent parts.
pub(super) trait Loop: Sync {
    /// Computes part `index` and writes its results to `out`, as bits.
    fn part(&self, index: usize, out: &mut [u32]);
}

/// A computation compiled for each SIMD level.
pub(super) trait AtLevel: Sync {
    fn part_at(&self, level: Level, index: usize, out: &mut [u32]);
}

struct Part<'a, L: ?Sized>(&'a L, usize, &'a mut [u32]);

impl<L: Loop> Task for Part<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run(self, _: Level) {
        self.0.part(self.1, self.2);
    }
}

impl<L: Loop> AtLevel for L {
    fn part_at(&self, level: Level, index: usize, out: &mut [u32]) {
        level.run(Part(self, index, out));
    }
}

/// Computes all parts, each of which has `part_words` results.
pub(super) fn run(
    work: &dyn AtLevel,
    level: Level,
    threads: NonZero<usize>,
    out: &mut [u32],
    part_words: usize,
) {
    let parts = Mutex::new(out.chunks_mut(part_words).enumerate());
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                loop {
                    // A thread that panicked ends the scope with its panic anyway.
                    let next = parts.lock().ok().and_then(|mut parts| parts.next());
                    let Some((index, part)) = next else { break };
                    work.part_at(level, index, part);
                }
            });
        }
    });
}

/// A value for each of a wave's work-items.
type Row<T> = [T; LANES];

fn lanes<T>(f: impl FnMut(usize) -> T) -> Row<T> {
    std::array::from_fn(f)
}

pub(super) struct Fma {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) start: f32,
    pub(super) rounds: usize,
}

impl Loop for Fma {
    #[inline(always)]
    fn part(&self, index: usize, out: &mut [u32]) {
        let item = |lane: usize| (index * LANES + lane) as f32;
        let x = lanes(|lane| item(lane).mul_add(1e-6, self.x));
        let y = lanes(|lane| item(lane).mul_add(1e-6, self.y));
        let mut a: [Row<f32>; 16] = std::array::from_fn(|i| [self.start + i as f32; LANES]);
        for _ in 0..self.rounds * 4 {
            for row in &mut a {
                for lane in 0..LANES {
                    row[lane] = row[lane].mul_add(x[lane], y[lane]);
                }
            }
        }
        for (lane, out) in out.iter_mut().enumerate() {
            *out = a.iter().fold(0.0, |sum: f32, row| sum + row[lane]).to_bits();
        }
    }
}

pub(super) struct Integer {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) start: u32,
    pub(super) rounds: usize,
}

impl Loop for Integer {
    #[inline(always)]
    fn part(&self, index: usize, out: &mut [u32]) {
        let item = |lane: usize| (index * LANES + lane) as u32;
        let x = lanes(|lane| self.x.wrapping_add(item(lane)));
        let y = lanes(|lane| self.y.wrapping_add(item(lane)));
        let mut a: [Row<u32>; 16] = std::array::from_fn(|i| [self.start.wrapping_add(i as u32); LANES]);
        for _ in 0..self.rounds {
            for row in &mut a {
                for lane in 0..LANES {
                    let product = row[lane].wrapping_add(x[lane]).wrapping_mul(y[lane]);
                    row[lane] = product ^ product >> 15;
                }
            }
        }
        for (lane, out) in out.iter_mut().enumerate() {
            *out = a.iter().fold(0, |sum, row| sum ^ row[lane]);
        }
    }
}

/// Follows chains through a table of byte offsets.
pub(super) struct Chase {
    pub(super) next: Vec<u32>,
    pub(super) rounds: usize,
}

impl Loop for Chase {
    #[inline(always)]
    fn part(&self, _: usize, out: &mut [u32]) {
        let mut a: [Row<u32>; 8] = std::array::from_fn(|i| lanes(|lane| ((lane * 8 + i) * 4) as u32));
        for _ in 0..self.rounds * 4 {
            for row in &mut a {
                for offset in row {
                    *offset = self.next[*offset as usize / 4];
                }
            }
        }
        for (lane, out) in out.iter_mut().enumerate() {
            *out = a.iter().fold(0, |sum, row| sum ^ row[lane]);
        }
    }
}

pub(super) struct Stream {
    pub(super) words: Vec<u32>,
}

impl Loop for Stream {
    #[inline(always)]
    fn part(&self, _: usize, out: &mut [u32]) {
        let mut sums = [0; LANES];
        for row in self.words.as_chunks::<LANES>().0 {
            for (sum, word) in sums.iter_mut().zip(row) {
                *sum ^= word;
            }
        }
        out.copy_from_slice(&sums);
    }
}

/// Multiplies tiles of 16 by 16 by 16, added to the same sums.
pub(super) struct MatrixTile {
    pub(super) a: f32,
    pub(super) b: f32,
    pub(super) rounds: usize,
}

impl Loop for MatrixTile {
    #[inline(always)]
    fn part(&self, _: usize, out: &mut [u32]) {
        let half = |value: f32| half::f16::from_f32(value).to_f32();
        // Element (i, k) of A comes from lane i + 16 * (k / 4), element (k, j) of B from lane j + 16 * (k / 4).
        let a: [[f32; 16]; 16] =
            std::array::from_fn(|i| std::array::from_fn(|k| half(self.a * (i + k % 4) as f32)));
        let b: [[f32; 16]; 16] = std::array::from_fn(|k| [half(self.b * (k / 4 + k % 4) as f32); 16]);
        let mut sums = [[[0.0f32; 16]; 16]; 4];
        for _ in 0..self.rounds {
            for sums in &mut sums {
                for (row, a) in sums.iter_mut().zip(&a) {
                    for (a, b) in a.iter().zip(&b) {
                        for (sum, b) in row.iter_mut().zip(b) {
                            *sum = a.mul_add(*b, *sum);
                        }
                    }
                }
            }
        }
        for (lane, out) in out.iter_mut().enumerate() {
            let of_lane = sums.iter().flat_map(|sums| (0..4).map(|k| sums[lane / 16 * 4 + k][lane % 16]));
            *out = of_lane.fold(0.0, |sum: f32, element| sum + element).to_bits();
        }
    }
}

/// Multiplies matrices of `n` by `n`; a part is some rows of the result.
pub(super) struct Matmul {
    pub(super) a: Vec<f32>,
    pub(super) b: Vec<f32>,
    pub(super) n: usize,
}

impl Loop for Matmul {
    #[inline(always)]
    fn part(&self, index: usize, out: &mut [u32]) {
        let n = self.n;
        let first = index * out.len();
        let mut sums = vec![0.0f32; n];
        for (out, a) in out.chunks_mut(n).zip(self.a[first..].chunks(n)) {
            sums.fill(0.0);
            for (a, b) in a.iter().zip(self.b.chunks(n)) {
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = a.mul_add(*b, *sum);
                }
            }
            for (out, sum) in out.iter_mut().zip(&sums) {
                *out = sum.to_bits();
            }
        }
    }
}

/// Multiplies a matrix of f16 by a vector.
pub(super) struct Gemv {
    pub(super) weights: Vec<half::f16>,
    pub(super) x: Vec<half::f16>,
}

impl Loop for Gemv {
    #[inline(always)]
    fn part(&self, index: usize, out: &mut [u32]) {
        let columns = self.x.len();
        let first = index * out.len() * columns;
        for (out, weights) in out.iter_mut().zip(self.weights[first..].chunks(columns)) {
            let mut sums = [0.0f32; LANES];
            for (weights, x) in weights.chunks(2 * LANES).zip(self.x.chunks(2 * LANES)) {
                let pairs = weights.as_chunks::<2>().0.iter().zip(x.as_chunks::<2>().0);
                // Two products and a sum, rounded once: what the kernel's v_dot2c_f32_f16 does.
                for (sum, (weights, x)) in sums.iter_mut().zip(pairs) {
                    let product = |k: usize| f64::from(weights[k].to_f32() * x[k].to_f32());
                    *sum = (product(0) + product(1) + f64::from(*sum)) as f32;
                }
            }
            for distance in [32, 16, 8, 4, 2, 1] {
                for lane in 0..distance {
                    sums[lane] += sums[lane + distance];
                }
            }
            *out = sums[0].to_bits();
        }
    }
}
