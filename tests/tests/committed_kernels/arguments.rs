//! Tests what a launch passes to a kernel: arguments, dimensions, LDS, variables, attributes.

use crate::check::{Random, blocks, equal, near};
use hipr_proto::HipError;
use hipr_proto::op;
use hipr_tests::{Buffer, Gpu, args};

/// Builds a structure of `len` bytes with members at these offsets.
fn structure(len: usize, members: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (offset, member) in members {
        bytes[*offset..*offset + member.len()].copy_from_slice(member);
    }
    bytes
}

pub(crate) fn big_args(gpu: &mut Gpu) {
    let mut random = Random(12);
    {
        // char a; double b; short c; struct { unsigned char d[3]; float e; } inner[2]; long long f.
        let (b, f) = (2.5f64.to_le_bytes(), (-123_456i64).to_le_bytes());
        let (c, e) = ((-700i16).to_le_bytes(), [0.25f32, 8.5].map(f32::to_le_bytes));
        let members: [(usize, &[u8]); 8] = [
            (0, &[(-3i8) as u8]),
            (8, &b),
            (16, &c),
            (20, &[1, 2, 250]),
            (24, &e[0]),
            (28, &[4, 5, 6]),
            (32, &e[1]),
            (40, &f),
        ];
        let mixed = structure(48, &members);
        let (copy, sum) = (gpu.zeroed::<u8>(48), gpu.zeroed::<f32>(1));
        gpu.launch("read_mixed", 1, 1, 0, args![mixed, 77i8, copy, sum]);
        let copy = gpu.download(copy);
        for (offset, member) in members {
            equal("member", &copy[offset..offset + member.len()], member);
        }
        let want = 253.0 + 0.25 + 15.0 + 8.5 - 3.0 + 2.5 - 700.0 - 123_456.0 + 77.0;
        near("sum of members", &gpu.download(sum), &[want], 1e-6, 0.0);
    }
    {
        let matrix: Vec<f32> = random.reals(256, -1.0, 1.0);
        let x: Vec<f32> = random.reals(16, -1.0, 1.0);
        let dot = |row: &[f32]| row.iter().zip(&x).map(|(m, x)| f64::from(*m) * f64::from(*x)).sum::<f64>();
        let want: Vec<f64> = matrix.chunks(16).map(|row| dot(row) * 3.5).collect();
        let (dx, dy) = (gpu.upload(&x), gpu.zeroed::<f32>(16));
        let matrix: [f32; 256] = matrix.try_into().expect("256 values");
        gpu.launch("apply_matrix", 1, 16, 0, args![matrix, dx, dy, 3.5f32]);
        near("1 KiB", &gpu.download(dy), &want, 1e-5, 1e-5);
    }
    {
        let big: [u32; 512] = std::array::from_fn(|_| random.u32());
        let tail = structure(16, &[(0, &1000i32.to_le_bytes()), (4, &[1, 2, 3, 4, 5, 6, 7, 8, 9])]);
        let indices: Vec<u32> = random.bits(256);
        let want: Vec<u32> =
            (0..).zip(&indices).map(|(i, at)| (big[(at & 511) as usize] >> 7) + 1000 + 1 + i % 9).collect();
        let (dindices, dout) = (gpu.upload(&indices), gpu.zeroed::<u32>(256));
        gpu.launch("select_words", 2, 128, 0, args![7u8, big, tail, dindices, dout]);
        equal("2 KiB", &gpu.download(dout), &want);
    }
    {
        let huge: [u32; 1020] = std::array::from_fn(|_| random.u32());
        let want = huge.iter().zip(1..).fold(0u32, |sum, (word, i)| sum.wrapping_add(word.wrapping_mul(i)));
        let sum = gpu.zeroed::<u32>(1);
        gpu.launch("sum_huge", 1, 64, 0, args![huge, sum]);
        equal("4 KiB", &gpu.download(sum), &[want]);
    }
    let out = gpu.zeroed::<i32>(15);
    let args = args![
        out,
        -1i8,
        -2i16,
        -3i32,
        -4i64,
        5u8,
        6u16,
        7u32,
        8u64,
        9.5f32,
        -10.5f64,
        1u8, // true
        [5i32, 7],
        [1.0f32, 2.0, 3.0, 7.0],
        [1i8, 2, -17],
        [1.5f64, 13.5],
    ];
    gpu.launch("sixteen", 1, 1, 0, args);
    equal("sixteen", &gpu.download(out), &[-1, -2, -3, -4, 5, 6, 7, 8, 9, -10, 1, 12, 13, -14, 15]);
}

pub(crate) fn dynamic_lds(gpu: &mut Gpu) {
    let mut random = Random(14);
    for threads in [64u32, 100, 256, 1024] {
        let values: Vec<i32> = random.bits(4 * threads as usize);
        let want: Vec<i32> =
            values.chunks(threads as usize).flat_map(|block| block.iter().rev()).copied().collect();
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(values.len()));
        gpu.launch("reverse_blocks", 4, threads, threads * 4, args![din, dout]);
        equal("reversed", &gpu.download(dout), &want);
    }
    {
        const COUNT: u32 = 500;
        let want: Vec<f64> = (0..COUNT)
            .map(|i| {
                0.5 * f64::from(COUNT - 1 - i) - f64::from((i + 1) % COUNT) + f64::from(((i ^ 1) * 7) as u8)
            })
            .collect();
        let dout = gpu.zeroed::<f64>(COUNT as usize);
        gpu.launch("three_arrays", 1, 128, COUNT * 13, args![dout, COUNT]);
        equal("three arrays", &gpu.download(dout), &want);
    }
    for bytes in [1024u32, 20_000, 65_536 - 16] {
        let words = bytes as usize / 4;
        let values: Vec<u32> = random.bits(words);
        let mut want = vec![0u32; 12];
        for (block, sums) in (0..).zip(want.chunks_mut(4)) {
            for (i, value) in values.iter().rev().enumerate() {
                sums[i % 4] = sums[i % 4].wrapping_add(value ^ block);
            }
        }
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<u32>(12));
        gpu.launch("static_and_dynamic", 3, 256, bytes, args![din, dout, words as u32]);
        equal("static and dynamic", &gpu.download(dout), &want);
    }
    let dout = gpu.filled::<u32>(1, 7);
    gpu.launch("lds_size", 1, 64, 64, args![dout]);
    equal("bytes of static LDS", &gpu.download(dout), &[0]);
    let refused = gpu.try_launch("lds_size", 1, 64, 65_537, args![dout]);
    assert_eq!(refused, Err(HipError::INVALID_VALUE), "more LDS than a block can have");
}

pub(crate) fn launch_dims(gpu: &mut Gpu) {
    for threads in [1, 2, 63, 64, 65, 127, 200, 256, 1000, 1024] {
        indices(gpu, [3, 1, 1], [threads, 1, 1]);
    }
    indices(gpu, [5, 4, 1], [16, 8, 1]);
    indices(gpu, [2, 3, 4], [4, 5, 6]);
    indices(gpu, [1, 1, 7], [1, 1, 64]);
    indices(gpu, [1, 9, 1], [3, 1, 31]);
    indices(gpu, [100, 1, 1], [7, 3, 1]);

    const N: i32 = 1000;
    let out = gpu.zeroed::<i32>(N as usize);
    for (first, grid, block) in [(5i32, 8, 128), (-3, 4, 256), (70, 16, 64)] {
        gpu.launch("fill", grid, block, 0, args![out, first, N]);
        equal("fill", &gpu.download(out), &(first..first + N).collect::<Vec<i32>>());
    }
    let small = gpu.zeroed::<i32>(128);
    gpu.launch("bounded", 1, 128, 0, args![small]);
    equal("launch bounds", &gpu.download(small), &(1..=128).rev().collect::<Vec<i32>>());
    let counts = gpu.zeroed::<u32>(5);
    gpu.launch("only_block_y", (3, 5, 2), 96, 0, args![counts]);
    equal("block y", &gpu.download(counts), &[6; 5]);
}

/// Checks the indices that each thread gets.
fn indices(gpu: &mut Gpu, grid: [u32; 3], block: [u32; 3]) {
    let place = |i: u32, [x, y, _]: [u32; 3]| [i % x, i / x % y, i / x / y];
    let (blocks, threads) = (grid.iter().product::<u32>(), block.iter().product::<u32>());
    let want: Vec<u32> = (0..blocks)
        .flat_map(|b| (0..threads).flat_map(move |t| [place(t, block), place(b, grid), block, grid]))
        .flatten()
        .collect();
    let out = gpu.filled::<u32>(want.len(), 0xff);
    let dim = |[x, y, z]: [u32; 3]| (x, y, z);
    gpu.launch("indices", dim(grid), dim(block), 0, args![out]);
    equal("indices", &gpu.download(out), &want);
}

/// Gives a managed variable its value. A device has a pointer for the runtime to set; a HIP runtime has set it and gives the memory.
fn managed<T: bytemuck::Pod>(gpu: &mut Gpu, name: &str, values: &[T], is_pointer: bool) -> Buffer<T> {
    if !is_pointer {
        let memory = gpu.global::<T>(name);
        gpu.write(memory, values);
        return memory;
    }
    let memory = gpu.upload(values);
    let pointer = gpu.global::<u64>(name);
    gpu.write(pointer, &[memory.address()]);
    memory
}

pub(crate) fn symbols(gpu: &mut Gpu) {
    let is_pointer = gpu.global::<u8>("shared_words").len_bytes() == 8;
    let words = managed(gpu, "shared_words", &[9u32, 8, 7, 6], is_pointer);
    let count = managed(gpu, "shared_count", &[5u64], is_pointer);
    gpu.launch("change_shared", 1, 4, 0, args![10u32]);
    equal("managed words", &gpu.download(words), &[19, 18, 17, 16]);
    equal("managed count", &gpu.download(count), &[15]);

    const N: usize = 1000;
    let mut random = Random(13);
    let x: Vec<f32> = random.reals(N, -1.0, 1.0);
    let factor = 3i32;
    let scale = gpu.global::<i32>("scale");
    gpu.write(scale, &[factor]);
    let (dx, dy) = (gpu.upload(&x), gpu.zeroed::<f32>(N));
    let polynomial = |coefficients: &[f32; 8]| -> Vec<f64> {
        let at = |x: f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + f64::from(*c));
        x.iter().map(|x| at(f64::from(*x)) * f64::from(factor)).collect()
    };
    let initial = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0];
    gpu.launch("polynomial", blocks(N, 128), 128, 0, args![dx, dy, N as i32]);
    near("initial values", &gpu.download(dy), &polynomial(&initial), 1e-5, 1e-4);
    let changed = [1.0, -2.0, 3.0, 0.5, 0.25, -6.0, 7.0, -8.0];
    let coefficients = gpu.global::<f32>("coefficients");
    gpu.write(coefficients.part(3, 2), &changed[3..5]);
    gpu.launch("polynomial", blocks(N, 128), 128, 0, args![dx, dy, N as i32]);
    near("changed in part", &gpu.download(dy), &polynomial(&changed), 1e-5, 1e-4);
    equal("read back", &gpu.download(coefficients), &changed);

    let (counter, accumulator) = (gpu.global::<i32>("counter"), gpu.global::<f64>("accumulator"));
    gpu.launch("count_up", 4, 64, 0, args![2i32]);
    equal("counter", &gpu.download(counter), &[100 + 4 * 64 * 2]);
    equal("accumulator", &gpu.download(accumulator), &[128.0]);

    let table = gpu.global::<u32>("table");
    gpu.launch("fill_table", 1, 256, 0, args![99u32]);
    let hidden = [0xdead, 0xbeef, 1, 2];
    let mut want: Vec<u32> = (0..256u32)
        .map(|i| (99 ^ i).wrapping_mul(2_654_435_761).wrapping_add(hidden[i as usize % 4]))
        .collect();
    equal("table", &gpu.download(table), &want);
    let pointer = gpu.global::<u64>("pointer_to_table");
    gpu.write(pointer, &[table.address()]);
    gpu.launch("through_pointer", 1, 256, 0, args![5u32]);
    want.iter_mut().for_each(|value| *value = value.wrapping_add(5));
    equal("table through a pointer", &gpu.download(table), &want);

    // int rounds; float weight; unsigned char tag[8].
    let (rounds, weight) = (12i32.to_le_bytes(), 0.75f32.to_le_bytes());
    let settings = structure(16, &[(0, &rounds), (4, &weight), (8, &[1, 2, 3, 4, 5, 6, 7, 255])]);
    let variable = gpu.global::<u8>("settings");
    gpu.write(variable, &settings);
    let out = gpu.zeroed::<f32>(10);
    gpu.launch("read_settings", 1, 1, 0, args![out]);
    equal("settings", &gpu.download(out), &[12.0, 0.75, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 255.0]);
}

pub(crate) fn module_kernels(gpu: &mut Gpu) {
    // Another module of the same file has its own variables.
    let mut second = gpu.another();
    let first_counter = gpu.global::<i32>("module_counter");
    gpu.launch("count_blocks", 5, 64, 0, args![]);
    equal("first module", &gpu.download(first_counter), &[45]);
    let counter = second.global::<i32>("module_counter");
    equal("second module", &second.download(counter), &[40]);

    const N: usize = 1000;
    let mut random = Random(32);
    let values: Vec<f32> = random.reals(N, -5.0, 5.0);
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<f32>(N));
    let scaled = |by: f32| values.iter().map(|x| x * by).collect::<Vec<f32>>();
    gpu.launch("scale_values", blocks(N, 128), 128, 0, args![din, dout, N as i32]);
    equal("initial scale", &gpu.download(dout), &scaled(2.0));
    let scale = gpu.global::<f32>("module_scale");
    gpu.write(scale, &[-0.5]);
    gpu.launch("scale_values", blocks(N, 64), 64, 0, args![din, dout, N as i32]);
    equal("changed scale", &gpu.download(dout), &scaled(-0.5));

    let is_pointer = gpu.global::<u8>("module_managed").len_bytes() == 8;
    let digits = managed(gpu, "module_managed", &[3i32, 1, 4, 1], is_pointer);
    let zero = managed(gpu, "module_managed_zero", &[0f64], is_pointer);
    gpu.launch("change_managed", 1, 4, 0, args![5i32]);
    equal("managed", &gpu.download(digits), &[15, 5, 20, 5]);
    equal("managed, zero at first", &gpu.download(zero), &[0.5]);

    let mixed = gpu.zeroed::<f64>(6);
    let args = args![-5i8, 2.75f64, -300i16, 1i32 << 30, 200u8, -(1i64 << 45), mixed];
    gpu.launch("mixed_arguments", (2, 2), 32, 0, args);
    let want = [-5.0, 2.75, -300.0, f64::from(1 << 30), 200.0, -((1i64 << 45) as f64)];
    equal("mixed arguments", &gpu.download(mixed), &want);

    gpu.launch("count_blocks", (3, 2, 2), 64, 0, args![]);
    equal("counted blocks", &gpu.download(first_counter), &[45 + 12]);

    let table = gpu.filled::<u32>(64, 0xff);
    gpu.launch("read_table", 1, 64, 0, args![table]);
    let want: Vec<u32> = [7, 11, 13].into_iter().chain([0; 61]).collect();
    equal("table", &gpu.download(table), &want);

    let values: Vec<i32> = (0..4 * 96).map(|_| random.below(1000) as i32).collect();
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(4));
    gpu.launch("sum_dynamic", 4, 96, 96 * 4, args![din, dout]);
    let sums: Vec<i32> = values.chunks(96).map(|block| block.iter().sum()).collect();
    equal("dynamic LDS", &gpu.download(dout), &sums);
}

pub(crate) fn occupancy(gpu: &mut Gpu) {
    let mut attributes = |kernel: &str| {
        let function = gpu.function(kernel);
        gpu.wire().call(&op::FuncGetAttributes { function }).expect("attributes")
    };
    let plain = attributes("plain");
    assert_eq!((plain.max_threads_per_block, plain.shared_size_bytes), (1024, 0));
    assert!((1..=512).contains(&plain.num_regs), "{} registers", plain.num_regs);
    assert_eq!(attributes("with_lds").shared_size_bytes, 8192);
    assert_eq!(attributes("bounded").max_threads_per_block, 128);
    let scratch = attributes("with_scratch").local_size_bytes;
    assert!(scratch >= 400, "{scratch} bytes of scratch");

    const N: usize = 3000;
    let out = gpu.filled::<i32>(N, 0xff);
    gpu.launch("plain", blocks(N, 1024), 1024, 0, args![out, N as i32]);
    equal("plain", &gpu.download(out), &(0..N as i32).map(|i| 2 * i).collect::<Vec<_>>());
    let out = gpu.filled::<i32>(1024, 0xff);
    gpu.launch("with_lds", 1, 1024, 0, args![out]);
    equal("static LDS", &gpu.download(out), &(0..1024).map(|i| i * 37 % 2048).collect::<Vec<i32>>());
    gpu.launch("with_dynamic_lds", 1, 1024, 65_536, args![out]);
    equal("all of LDS", &gpu.download(out), &(0..1024).rev().collect::<Vec<i32>>());
    let out = out.part(0, 128);
    gpu.launch("bounded", 1, 128, 0, args![out]);
    equal("launch bounds", &gpu.download(out), &[1; 128]);

    let values: Vec<i32> = (0..100).map(|i| i * 7 % 50).collect();
    let walk =
        |thread: i32| (0..10).fold(0, |at, i| (values[((at + values[i]) % 100) as usize] + thread) % 100);
    let (din, out) = (gpu.upload(&values), out.part(0, 64));
    gpu.launch("with_scratch", 1, 64, 0, args![din, out]);
    equal("scratch", &gpu.download(out), &(0..64).map(walk).collect::<Vec<i32>>());
}
