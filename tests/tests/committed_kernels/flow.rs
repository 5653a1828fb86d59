//! Tests divergent control flow.

use crate::check::{Random, blocks, equal};
use hipr_tests::{Gpu, args};

const N: usize = 600;

pub(crate) fn control_flow(gpu: &mut Gpu) {
    let mut random = Random(25);
    {
        const LIMIT: i32 = 90;
        let starts: Vec<u32> =
            (0..N).map(|i| 1 + random.below(if i % 4 == 0 { 100_000 } else { 100 })).collect();
        let steps = |start: &u32| {
            let mut v = u64::from(*start);
            let mut steps = 0;
            while v != 1 && steps < LIMIT {
                v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
                steps += 1;
            }
            if v == 1 { steps } else { -1 }
        };
        let (din, dout) = (gpu.upload(&starts), gpu.zeroed::<i32>(N));
        gpu.launch("collatz", blocks(N, 128), 128, 0, args![din, dout, LIMIT, N as i32]);
        equal("collatz", &gpu.download(dout), &starts.iter().map(steps).collect::<Vec<i32>>());
    }
    {
        let values: Vec<i32> = (0..N).map(|_| random.below(100_000) as i32).collect();
        let switched = |v: &i32| match v % 12 {
            0 => v + 1,
            1 => v * 3 + 7,
            2 => 7,
            3 | 4 => -v,
            5 => 12_345,
            6 => (0..v % 5).map(|k| k * v).sum(),
            9 => v / 3,
            11 => v ^ 0x55,
            _ => 1000 + v,
        };
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(N));
        gpu.launch("switches", blocks(N, 256), 256, 0, args![din, dout, N as i32]);
        equal("switch", &gpu.download(dout), &values.iter().map(switched).collect::<Vec<i32>>());
    }
    {
        let limits: Vec<i32> = (0..128).map(|_| random.below(200) as i32).collect();
        let is_prime = |p: &i32| (2..*p).all(|d| p % d != 0);
        let want: Vec<i32> = limits.iter().map(|limit| (2..*limit).filter(is_prime).count() as i32).collect();
        let (din, dout) = (gpu.upload(&limits), gpu.zeroed::<i32>(128));
        gpu.launch("primes_below", 2, 64, 0, args![din, dout, 128i32]);
        equal("primes", &gpu.download(dout), &want);
    }
    {
        let text = b"one 2 three45  six 7890 x  end 1";
        let (words, digits): (Vec<i32>, Vec<i32>) = (0..64).map(|i| read(text, i)).unzip();
        let dtext = gpu.upload(text);
        let (dwords, ddigits) = (gpu.zeroed::<i32>(64), gpu.zeroed::<i32>(64));
        gpu.launch("state_machine", 1, 64, 0, args![dtext, text.len() as i32, dwords, ddigits]);
        equal("words", &gpu.download(dwords), &words);
        equal("digits", &gpu.download(ddigits), &digits);
    }
    for staying in [8, 5, 1] {
        waves_apart(gpu, &mut random, staying);
    }
    for (a, b) in [(-7, 55), (40, -12)] {
        let values: Vec<i32> = (0..N).map(|_| random.below(140) as i32 - 70).collect();
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(N));
        gpu.launch("conditions", blocks(N, 64), 64, 0, args![din, dout, a, b, N as i32]);
        let want: Vec<i32> = values.iter().map(|v| conditions(*v, a, b)).collect();
        equal("conditions", &gpu.download(dout), &want);
    }
}

/// Counts the words and digits of a text for a reader that starts at `i` mod 7 and makes longer steps inside words if `i`
/// is odd.
fn read(text: &[u8], i: usize) -> (i32, i32) {
    let (mut words, mut digits, mut inside, mut at) = (0, 0, false, i % 7);
    while let Some(letter) = text.get(at) {
        let blank = *letter == b' ';
        words += i32::from(!blank && !inside);
        digits += i32::from(letter.is_ascii_digit());
        inside = !blank;
        at += if blank { 1 } else { 1 + i % 2 };
    }
    (words, digits)
}

fn waves_apart(gpu: &mut Gpu, random: &mut Random, staying: i32) {
    let values: Vec<i32> = (0..512).map(|_| random.below(200) as i32 - 100).collect();
    let changed: Vec<i32> = (0..)
        .zip(&values)
        .map(|(thread, v)| {
            let wave = thread / 64;
            match wave % 2 {
                1 => (0..wave).fold(*v, |v, k| v * 3 + k),
                _ if *v > 0 => v - wave,
                _ => v + wave,
            }
        })
        .collect();
    let there = 64 * staying as usize;
    let total: i32 = changed[..there].iter().sum();
    let mut want: Vec<i32> = changed.iter().map(|v| total + v).collect();
    want[there..].fill(-1);
    let (din, dout) = (gpu.upload(&values), gpu.filled::<i32>(512, 0xff));
    gpu.launch("waves_apart", 1, 512, 0, args![din, dout, staying]);
    equal("waves apart", &gpu.download(dout), &want);
}

fn conditions(mut v: i32, a: i32, b: i32) -> i32 {
    let mut r = 0;
    if (v > a && v < b) || v == -b {
        r |= 1;
    }
    if v & 4 == 0 && (v & 2 != 0 || v < 0) {
        r |= 2;
    }
    if (a < b && v > a) || (a >= b && v < b) {
        r |= 4;
    }
    r |= match v {
        _ if v == a => 128,
        11.. if v % 3 == 0 => 8,
        11.. if v % 5 == 0 => 16,
        11.. => 32,
        ..-10 => 64,
        _ => 0,
    };
    loop {
        r += 256;
        v >>= 1;
        if v <= 3 {
            return r;
        }
    }
}
