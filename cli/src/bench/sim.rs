//! `hipr bench sim`: measures how fast the emulated GPU computes, compared with the same computations in plain Rust on the
//! host.

mod device;
mod host;

use self::device::{Call, Device, Direct, Through};
use self::host::{AtLevel, Chase, Fma, Gemv, Integer, LANES, Matmul, MatrixTile, Stream};
use super::report::{Figure, Goal, Report, Unit};
use super::rounds::{Rounds, Subject};
use clap::Args;
use half::f16;
use hipr_check::{Checker, Options, Tool};
use hipr_isa::simd::Level;
use hipr_sim::watch::DeviceWatch;
use std::cell::RefCell;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of `hipr bench sim`.
#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// Computations to measure; by default all.
    #[arg(value_name = "LOOP", value_parser = LOOPS.each_ref().map(|each| each.name))]
    loops: Vec<String>,
    #[command(flatten)]
    rounds: Rounds,
    /// Number of threads, of the emulated GPU and of the host's computations.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZero<usize>,
    /// SIMD level of both: base, v3 (AVX2) or v4 (AVX-512). [default: HIPR_SIM_SIMD or the best one]
    #[arg(long, value_name = "LEVEL")]
    simd: Option<Level>,
    /// Measures the kernels with these checks of `hipr check`, compared with the same kernels without.
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',', value_parser = crate::check::tool)]
    check: Vec<Tool>,
    /// Measures the kernels also through the HIP library that a program would load, for example AMD's with `hipr hsa --`.
    #[arg(long, conflicts_with = "check")]
    hip: bool,
    /// Prints one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

/// A row of the report: a kernel and its goal.
struct Row {
    name: &'static str,
    /// The unit that is counted.
    counts: &'static str,
    /// Goal: at least this many per second, with AVX2 or better, on one core.
    goal: Option<f64>,
    prepare: fn(&mut dyn Device) -> Result<Work, String>,
}

/// A kernel with its arguments, and the same computation on the host.
struct Work {
    call: Call,
    /// Number of operations of one launch.
    operations: usize,
    /// Address of the kernel's results.
    out: u64,
    /// The results computed on the host, as the bits of their numbers.
    results: Vec<u32>,
    host: Box<dyn AtLevel>,
    part_words: usize,
}

static LOOPS: [Row; 10] = [
    Row { name: "fma", counts: "v_fma_f32, lane operations", goal: Some(5e9), prepare: fma },
    Row { name: "integer", counts: "integer, lane operations", goal: None, prepare: integer },
    Row { name: "lds", counts: "ds_read_b32 scattered, lane loads", goal: None, prepare: lds },
    Row {
        name: "coalesced",
        counts: "global_load_dword coalesced, lane loads",
        goal: None,
        prepare: coalesced,
    },
    Row {
        name: "scattered",
        counts: "global_load_dword scattered, lane loads",
        goal: None,
        prepare: scattered,
    },
    Row { name: "mfma", counts: "v_mfma_f32_16x16x16_f16, MAC", goal: None, prepare: mfma },
    Row {
        name: "matmul-lds",
        counts: "f32 matmul 512, LDS tiles, MAC",
        goal: Some(0.5e9),
        prepare: matmul_lds,
    },
    Row {
        name: "matmul-blocked",
        counts: "f32 matmul 512, register-blocked, MAC",
        goal: Some(1.8e9),
        prepare: matmul_blocked,
    },
    Row { name: "matmul-mfma", counts: "f16 matmul 512, MFMA, MAC", goal: Some(8e9), prepare: matmul_mfma },
    Row { name: "gemv", counts: "f16 matrix-vector 3072x768, MAC", goal: Some(0.27e9), prepare: gemv },
];

/// Goal: the speed that each further core adds, in speeds of one core.
const SCALING: f64 = 0.9;
/// Factor by which the goals of the baseline level are lower than those of AVX2.
const BASELINE: f64 = 8.0;

/// Runs the benchmark and prints its report.
pub(crate) fn run(options: &Sim) -> Result<(), String> {
    let level = options.simd.map_or_else(Level::chosen, Ok).map_err(|why| why.to_string())?;
    let threads = options.threads;
    let mut report = Report::new("sim", &options.rounds);
    report.set("threads", threads);
    report.set("simd", level.name());
    let asked = |row: &&Row| options.loops.is_empty() || options.loops.iter().any(|name| name == row.name);
    for row in LOOPS.iter().filter(asked) {
        report.figures.push(if options.hip {
            measure_through(row, options, level)?
        } else if options.check.is_empty() {
            measure(row, &options.rounds, threads, level)?
        } else {
            measure_checked(row, options, level)?
        });
    }
    if !options.check.is_empty() {
        let names: Vec<_> = options.check.iter().map(|tool| tool.name()).collect();
        report.set("check", names.join(","));
        return report.print(options.json);
    }
    if options.hip {
        report.notes.push("Through the HIP library, compared with the same kernel on the emulated GPU used directly. The library has the threads that HIPR_SIM_THREADS says.".into());
        return report.print(options.json);
    }
    report
        .notes
        .push("Compared with the same computation in plain Rust on the host, with the same SIMD level and number of threads.".into());
    report.print(options.json)
}

fn measure(row: &Row, rounds: &Rounds, threads: NonZero<usize>, level: Level) -> Result<Figure, String> {
    let mut device = Direct::open(threads, level, None)?;
    let mut work = (row.prepare)(&mut device)?;
    run_checked(row.name, &mut device, &mut work, threads, level)?;

    let Work { call, operations, mut results, host, part_words, .. } = work;
    let device = RefCell::new(device);
    let results = RefCell::new(&mut results);
    let mut subjects = [
        Subject::new(|time| rate(operations, time, || device.borrow_mut().run(&call))),
        Subject::new(|time| {
            rate(operations, time, || {
                host::run(&*host, level, threads, &mut results.borrow_mut(), part_words);
                Ok(())
            })
        }),
    ];
    rounds.measure(&mut subjects)?;
    let [emulated, plain] = &subjects;
    let cores = 1.0 + (threads.get() - 1) as f64;
    let scale = if threads.get() == 1 { 1.0 } else { SCALING * cores };
    let slower = if level == Level::BASE { BASELINE } else { 1.0 };
    let goal = row.goal.map_or(Goal::None, |goal| Goal::AtLeast(goal * scale / slower));
    let figure = Figure::new(row.counts, Unit::PerSecond, &emulated.samples, goal);
    Ok(figure.compare("the same in plain Rust", &emulated.samples, &plain.samples, Goal::None))
}

/// Goal: the share of the direct speed that is left through a HIP library, for a kernel that takes more than a millisecond.
const THROUGH: f64 = 0.9;
const LONG: Duration = Duration::from_millis(1);

/// Measures a kernel through the HIP library of the process, compared with the same kernel without.
fn measure_through(row: &Row, options: &Sim, level: Level) -> Result<Figure, String> {
    let mut direct = Direct::open(options.threads, level, None)?;
    let mut through = Through::open()?;
    let mut direct_work = (row.prepare)(&mut direct)?;
    let mut through_work = (row.prepare)(&mut through)?;
    run_checked(row.name, &mut through, &mut through_work, options.threads, level)?;
    run_checked(row.name, &mut direct, &mut direct_work, options.threads, level)?;
    let started = Instant::now();
    direct.run(&direct_work.call)?;
    let is_long = started.elapsed() > LONG;
    let mut subjects = [
        Subject::new(|time| rate(through_work.operations, time, || through.run(&through_work.call))),
        Subject::new(|time| rate(direct_work.operations, time, || direct.run(&direct_work.call))),
    ];
    options.rounds.measure(&mut subjects)?;
    let [through, direct] = &subjects;
    let goal = if is_long { Goal::AtLeast(THROUGH) } else { Goal::None };
    let figure = Figure::new(row.counts, Unit::PerSecond, &through.samples, Goal::None);
    Ok(figure.compare("used directly", &through.samples, &direct.samples, goal))
}

/// Goals: the shares of the unchecked speed that are left with memory and init, and with race.
const CHECKED: f64 = 1.0 / 8.0;
const CHECKED_FOR_RACES: f64 = 1.0 / 25.0;

/// Measures a kernel with checks, compared with the same kernel without.
fn measure_checked(row: &Row, options: &Sim, level: Level) -> Result<Figure, String> {
    let checker =
        Checker::new(Options { tools: options.check.iter().copied().collect(), ..Options::default() });
    let watches: [Option<Arc<dyn DeviceWatch>>; 2] = [Some(checker.clone()), None];
    let mut prepared = Vec::new();
    for watch in watches {
        let mut device = Direct::open(options.threads, level, watch)?;
        let work = (row.prepare)(&mut device)?;
        device.run(&work.call)?;
        prepared.push((device, work));
    }
    if let Some(found) = checker.findings().first() {
        return Err(format!("{}: {} is found in a kernel that is right", row.name, found.kind.name()));
    }
    let mut subjects: Vec<_> = prepared
        .iter_mut()
        .map(|(device, work)| Subject::new(|time| rate(work.operations, time, || device.run(&work.call))))
        .collect();
    options.rounds.measure(&mut subjects)?;
    let [checked, unchecked] = &*subjects else { return Err("two devices are measured".into()) };
    let goal = if options.check.contains(&Tool::Race) { CHECKED_FOR_RACES } else { CHECKED };
    let figure = Figure::new(row.counts, Unit::PerSecond, &checked.samples, Goal::None);
    Ok(figure.compare("unchecked", &checked.samples, &unchecked.samples, Goal::AtLeast(goal)))
}

/// Repeats a computation for about `time`; returns its operations per second.
fn rate(
    operations: usize,
    time: Duration,
    mut once: impl FnMut() -> Result<(), String>,
) -> Result<f64, String> {
    let started = Instant::now();
    let mut passes = 0usize;
    while started.elapsed() < time {
        once()?;
        passes += 1;
    }
    Ok((operations * passes) as f64 / started.elapsed().as_secs_f64())
}

/// Computes the results on the host, runs the kernel once and checks its results.
fn run_checked(
    name: &str,
    device: &mut dyn Device,
    work: &mut Work,
    threads: NonZero<usize>,
    level: Level,
) -> Result<(), String> {
    host::run(&*work.host, level, threads, &mut work.results, work.part_words);
    device.run(&work.call)?;
    check(name, device, work)
}

/// Checks that the kernel's results equal the host's, bit for bit.
fn check(name: &str, device: &mut dyn Device, work: &Work) -> Result<(), String> {
    let mut bytes = vec![0; work.results.len() * 4];
    device.read(work.out, &mut bytes)?;
    let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    match words.zip(&work.results).enumerate().find(|(_, (got, expected))| got != *expected) {
        None => Ok(()),
        Some((index, (got, expected))) => {
            Err(format!("{name}: result {index} is {got:#010x} instead of the host's {expected:#010x}"))
        }
    }
}

/// Returns the bytes of `words`.
fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn halves(values: &[f16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Number of waves of the kernels that consist of one loop.
const WAVES: usize = 16;

/// Prepares a kernel of single waves, each with 64 results, that reads `input`.
fn waves(
    device: &mut dyn Device,
    kernel: &str,
    input: &[u8],
    rounds: usize,
    operations_of_wave: usize,
    host: impl AtLevel + 'static,
) -> Result<Work, String> {
    let results = vec![0; WAVES * LANES];
    let out = device.buffer(&bytes(results.iter().copied()))?;
    let input = device.buffer(input)?;
    let call =
        device.call(kernel, [WAVES as u32, 1, 1], [LANES as u32, 1, 1], &[out, input], rounds as u32)?;
    let operations = operations_of_wave * WAVES;
    Ok(Work { call, operations, out, results, host: Box::new(host), part_words: LANES })
}

fn fma(device: &mut dyn Device) -> Result<Work, String> {
    let host = Fma { x: 0.5, y: 0.25, start: 1.0, rounds: 4096 };
    let input = bytes([host.x, host.y, host.start].map(f32::to_bits));
    waves(device, "fma_f32", &input, host.rounds, host.rounds * 4 * 16 * LANES, host)
}

fn integer(device: &mut dyn Device) -> Result<Work, String> {
    let host = Integer { x: 0x9e37_79b9, y: 0x85eb_ca6b, start: 1, rounds: 4096 };
    let input = bytes([host.x, host.y, host.start]);
    waves(device, "integer", &input, host.rounds, host.rounds * 4 * 16 * LANES, host)
}

/// Returns a table of `len` byte offsets into itself, a permutation.
fn offsets(len: u32) -> Vec<u32> {
    // A multiplier that is 5 modulo 8 and an odd summand make one cycle of a power of two.
    (0..len)
        .map(|index| (index.wrapping_mul(0x9e37_79bd).wrapping_add(0x3c6e_f35f) & (len - 1)) * 4)
        .collect()
}

fn chase(device: &mut dyn Device, kernel: &str, table_words: u32, rounds: usize) -> Result<Work, String> {
    let host = Chase { next: offsets(table_words), rounds };
    let input = bytes(host.next.iter().copied());
    waves(device, kernel, &input, rounds, rounds * 4 * 8 * LANES, host)
}

fn lds(device: &mut dyn Device) -> Result<Work, String> {
    chase(device, "lds", 2048, 1024)
}

fn scattered(device: &mut dyn Device) -> Result<Work, String> {
    chase(device, "global_scattered", 1 << 17, 512)
}

fn coalesced(device: &mut dyn Device) -> Result<Work, String> {
    let rounds = 128;
    let words: Vec<u32> = (0..rounds as u32 * 1024).map(|index| index.wrapping_mul(0x9e37_79b9)).collect();
    let input = bytes(words.iter().copied());
    waves(device, "global_coalesced", &input, rounds, words.len(), Stream { words })
}

fn mfma(device: &mut dyn Device) -> Result<Work, String> {
    let host = MatrixTile { a: 0.01, b: 0.02, rounds: 512 };
    let input = bytes([host.a, host.b].map(f32::to_bits));
    waves(device, "mfma_f16", &input, host.rounds, host.rounds * 4 * 16 * 16 * 16, host)
}

/// Number of rows and columns of the matrices.
const N: usize = 512;
/// Rows of the result in a part of the host's computation.
const PART_ROWS: usize = 16;

/// Returns a small number that f16 represents exactly.
fn element(index: usize, modulus: usize) -> f32 {
    (index % modulus) as f32 / 64.0 - 0.5
}

fn matrices() -> [Vec<f32>; 2] {
    [61, 53].map(|modulus| (0..N * N).map(|index| element(index, modulus)).collect())
}

/// Prepares a matrix multiplication, given the work-items of a workgroup and the rows and columns that it computes.
fn matmul(
    device: &mut dyn Device,
    kernel: &str,
    inputs: [&[u8]; 2],
    block: [u32; 3],
    tile: usize,
    [a, b]: [Vec<f32>; 2],
) -> Result<Work, String> {
    let results = vec![0; N * N];
    let out = device.buffer(&bytes(results.iter().copied()))?;
    let [left, right] = inputs;
    let pointers = [out, device.buffer(left)?, device.buffer(right)?];
    let groups = (N / tile) as u32;
    let call = device.call(kernel, [groups, groups, 1], block, &pointers, N as u32)?;
    let host = Box::new(Matmul { a, b, n: N });
    Ok(Work { call, operations: N * N * N, out, results, host, part_words: PART_ROWS * N })
}

fn matmul_f32(device: &mut dyn Device, kernel: &str, tile: usize) -> Result<Work, String> {
    let matrices = matrices();
    let [a, b] = [0, 1].map(|index| bytes(matrices[index].iter().map(|value| value.to_bits())));
    matmul(device, kernel, [&a, &b], [16, 16, 1], tile, matrices)
}

fn matmul_lds(device: &mut dyn Device) -> Result<Work, String> {
    matmul_f32(device, "matmul_lds", 16)
}

fn matmul_blocked(device: &mut dyn Device) -> Result<Work, String> {
    matmul_f32(device, "matmul_blocked", 64)
}

fn matmul_mfma(device: &mut dyn Device) -> Result<Work, String> {
    let [a, b] = matrices();
    let left: Vec<f16> = a.iter().map(|&value| f16::from_f32(value)).collect();
    let right: Vec<f16> = (0..N * N).map(|index| f16::from_f32(b[index % N * N + index / N])).collect();
    matmul(device, "matmul_mfma", [&halves(&left), &halves(&right)], [256, 1, 1], 64, [a, b])
}

fn gemv(device: &mut dyn Device) -> Result<Work, String> {
    const ROWS: usize = 3072;
    const COLUMNS: usize = 768;
    let values =
        |len, modulus| (0..len).map(|index| f16::from_f32(element(index, modulus))).collect::<Vec<_>>();
    let host = Gemv { weights: values(ROWS * COLUMNS, 61), x: values(COLUMNS, 53) };
    let results = vec![0; ROWS];
    let out = device.buffer(&bytes(results.iter().copied()))?;
    let pointers = [out, device.buffer(&halves(&host.weights))?, device.buffer(&halves(&host.x))?];
    let call = device.call("gemv_f16", [ROWS as u32 / 4, 1, 1], [256, 1, 1], &pointers, COLUMNS as u32)?;
    Ok(Work { call, operations: ROWS * COLUMNS, out, results, host: Box::new(host), part_words: PART_ROWS })
}
