//! Tests synchronization of threads: named groups, counting barriers, blocks that wait for each other.

use crate::check::{Random, equal};
use hipr_tests::{Gpu, args};

pub(crate) fn cooperative_groups(gpu: &mut Gpu) {
    let mut random = Random(40);
    let values: Vec<i32> = (0..512).map(|_| random.below(2000) as i32 - 1000).collect();
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(512));
    for threads in [4usize, 16, 32, 64] {
        let want: Vec<i32> = values
            .chunks(threads)
            .flat_map(|tile| {
                let sum: i32 = tile.iter().sum();
                (0..threads as i32).map(move |rank| sum * 100 + rank)
            })
            .collect();
        let kernel = format!("_Z9tile_sumsILi{threads}EEvPKiPi");
        gpu.launch(&kernel, 4, 128, 0, args![din, dout]);
        equal(&kernel, &gpu.download(dout), &want);
    }
    let ranks: Vec<i32> = values
        .chunks(64)
        .flat_map(|wave| {
            let active = |values: &[i32]| values.iter().filter(|v| **v > 0).count() as i32;
            let rank = move |lane: usize| active(&wave[..lane]) * 100 + active(wave);
            (0..64).map(move |lane| if wave[lane] > 0 { rank(lane) } else { -1 })
        })
        .collect();
    gpu.launch("coalesced_ranks", 2, 256, 0, args![din, dout]);
    equal("coalesced", &gpu.download(dout), &ranks);
    let reversed: Vec<i32> = (0..)
        .zip(values.chunks(128))
        .flat_map(|(block, values)| values.iter().rev().map(move |v| v + block * 1000))
        .collect();
    gpu.launch("block_groups", 4, 128, 0, args![din, dout]);
    equal("block", &gpu.download(dout), &reversed);
}

pub(crate) fn synchronization(gpu: &mut Gpu) {
    let mut random = Random(38);
    {
        let values: Vec<i32> = (0..6 * 192)
            .map(|i| {
                let block = i / 192;
                let spread = if block % 2 == 1 { 170 } else { 183 };
                random.below(spread) as i32 - if block % 3 == 0 { 89 } else { 91 }
            })
            .collect();
        let want: Vec<i32> = values
            .chunks(192)
            .flat_map(|block| {
                let positive = block.iter().filter(|v| **v > 0).count() as i32;
                let all = block.iter().all(|v| *v > -90);
                let any = block.iter().any(|v| *v > 90);
                [positive, i32::from(all), i32::from(any)]
            })
            .collect();
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(18));
        gpu.launch("barrier_votes", 6, 192, 0, args![din, dout]);
        equal("votes at barriers", &gpu.download(dout), &want);
    }
    {
        const N: usize = 20_000;
        let values: Vec<u32> = random.bits(N);
        let want = values.iter().fold(0u32, |sum, v| sum.wrapping_add(*v));
        let (din, partial) = (gpu.upload(&values), gpu.zeroed::<u32>(12));
        let (arrived, total) = (gpu.zeroed::<u32>(1), gpu.zeroed::<u32>(1));
        for _ in 0..2 {
            gpu.fill(total, 0);
            gpu.launch("last_block_sum", 12, 128, 0, args![din, partial, arrived, total, N as u32]);
            equal("last block", &gpu.download(total), &[want]);
            equal("the counter is back at 0", &gpu.download(arrived), &[0]);
        }
    }
    {
        const BLOCKS: usize = 40;
        let values: Vec<u32> = random.bits(64 * BLOCKS);
        let mut sum = 0u32;
        let want: Vec<u32> = values
            .iter()
            .map(|v| {
                sum = sum.wrapping_add(*v);
                sum
            })
            .collect();
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<u32>(values.len()));
        let (ready, carry) = (gpu.zeroed::<u32>(BLOCKS), gpu.zeroed::<u32>(BLOCKS));
        gpu.launch("chained_scan", BLOCKS as u32, 64, 0, args![din, dout, ready, carry]);
        equal("chained scan", &gpu.download(dout), &want);
    }
    {
        let out = gpu.zeroed::<i64>(3);
        gpu.launch("clocks", 1, 64, 0, args![out, 1000i32]);
        let got = gpu.download(out);
        assert!(got[0] > 0 && got[1] >= 0, "clocks go forward: {got:?}");
    }
    const STEPS: i32 = 9;
    let values: Vec<i32> = random.bits(256);
    let mut want: Vec<i32> = values.iter().map(|v| v.wrapping_add(STEPS * (STEPS - 1) / 2)).collect();
    want.rotate_right(65 * STEPS as usize % 256);
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(256));
    gpu.launch("ring", 1, 256, 0, args![din, dout, STEPS]);
    equal("ring", &gpu.download(dout), &want);
}
