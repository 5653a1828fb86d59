//! Compares every generated kernel on the emulated GPUs with the same C on the host, bit for bit.
//!
//! Without a compiler only the committed kernels run (`data/`), against checksums of what the host computed; a run of all levels and
//! compilers is `cargo test -p hipr-kernel-tests -- --ignored`.

use std::collections::BTreeMap;

use hipr_kernel_tests::{Compiler, Level, Results, Unit, inputs, on_emulator, on_host};
use hipr_sim::{Arch, Config, Gpu};

/// Seeds of the run without `--ignored`: with a kernel of each theme, more than 300 kernels.
const SEEDS: std::ops::Range<u64> = 0..11;
/// Seeds of the run with `--ignored`.
const ALL_SEEDS: std::ops::Range<u64> = 0..40;
/// The seed of the committed kernels.
const COMMITTED: u64 = 1;

fn gpu(arch: Arch) -> Gpu {
    let config = Config { arch, memory_bytes: Some(64 << 20), ..Config::default() };
    Gpu::new(config).expect("a thread for the emulator")
}

/// Describes which kernels differ, and where first.
fn differences(unit: &Unit, expected: &Results, got: &Results) -> Vec<String> {
    let pairs = unit.names().into_iter().zip(expected.iter().zip(got));
    let differing = pairs.filter(|(_, (expected, got))| expected != got);
    differing
        .map(|(name, (expected, got))| {
            let at = expected.iter().zip(got).position(|(a, b)| a != b).unwrap_or(expected.len());
            let (host, emulated) = (expected.get(at).copied(), got.get(at).copied());
            format!("{name}: word {at} is {emulated:x?} and {host:x?} on the host")
        })
        .collect()
}

/// Compares the kernels of these seeds at these levels; returns how many there were.
fn compare(compiler: &Compiler, seeds: std::ops::Range<u64>, levels: &[Level]) -> usize {
    let gpus = Arch::ALL.map(gpu);
    let (mut count, mut wrong) = (0, Vec::new());
    for seed in seeds {
        let unit = Unit::of_seed(seed);
        let (source, inputs) = (unit.source(), inputs(seed));
        let expected = on_host(compiler, &unit, &source, &inputs);
        for (arch, gpu) in Arch::ALL.into_iter().zip(&gpus) {
            for &level in levels {
                let image = compiler.device(&source, arch, level);
                let found = match on_emulator(gpu, &unit.names(), &image, &inputs) {
                    Ok(got) => differences(&unit, &expected, &got),
                    Err(why) => vec![why],
                };
                wrong.extend(found.into_iter().map(|what| format!("{compiler} {arch} {level:?} {what}")));
                count += unit.kernels.len();
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    count
}

#[test]
fn kernels_compute_what_the_host_computes() {
    let Some(compiler) = Compiler::first("compiler", "only committed kernels run") else { return };
    let count = compare(&compiler, SEEDS, &[Level::O0, Level::O3]);
    println!("{count} kernels by {compiler}");
}

#[test]
#[ignore = "takes minutes"]
fn kernels_of_all_compilers_and_levels_compute_what_the_host_computes() {
    for compiler in Compiler::all() {
        let count = compare(&compiler, ALL_SEEDS, &[Level::O0, Level::O1, Level::O3]);
        println!("{count} kernels by {compiler}");
    }
}

/// Returns the FNV-1a checksum of a kernel's results.
fn checksum(words: &[u32]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The committed code objects by GPU and level, and the checksums by kernel.
const IMAGES: [(Arch, &str, &[u8]); 4] = [
    (Arch::Gfx90a, "O0", include_bytes!("../data/gfx90a-O0.co")),
    (Arch::Gfx90a, "O3", include_bytes!("../data/gfx90a-O3.co")),
    (Arch::Gfx942, "O0", include_bytes!("../data/gfx942-O0.co")),
    (Arch::Gfx942, "O3", include_bytes!("../data/gfx942-O3.co")),
];
static CHECKSUMS: &str = include_str!("../data/checksums.tsv");

#[test]
fn committed_kernels_compute_what_the_host_computed() {
    let checksums: BTreeMap<&str, u64> = CHECKSUMS
        .lines()
        .map(|line| {
            let (name, sum) = line.split_once('\t').expect("a name and a checksum");
            (name, u64::from_str_radix(sum, 16).expect("a hexadecimal number"))
        })
        .collect();
    let (names, inputs) =
        (checksums.keys().map(|name| (*name).to_owned()).collect::<Vec<_>>(), inputs(COMMITTED));
    assert!(names.len() >= 20, "{} kernels", names.len());
    for (arch, level, image) in IMAGES {
        let results = on_emulator(&gpu(arch), &names, image, &inputs)
            .unwrap_or_else(|why| panic!("{arch} {level}: {why}"));
        for (name, result) in names.iter().zip(&results) {
            assert_eq!(Some(&checksum(result)), checksums.get(name.as_str()), "{arch} {level} {name}");
        }
    }
}

/// Writes the committed kernels in `data/` with the first compiler.
#[test]
#[ignore = "writes the committed kernels anew"]
fn write_committed_kernels() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let compilers = Compiler::all();
    let compiler = compilers.first().expect("a compiler");
    let unit = Unit::of_seed(COMMITTED);
    let (source, inputs) = (unit.source(), inputs(COMMITTED));
    let results = on_host(compiler, &unit, &source, &inputs);
    let mut lines: Vec<String> = unit
        .names()
        .iter()
        .zip(&results)
        .map(|(name, result)| format!("{name}\t{:016x}\n", checksum(result)))
        .collect();
    lines.sort();
    std::fs::write(folder.join("checksums.tsv"), lines.concat()).expect("it is written");
    for arch in Arch::ALL {
        for level in [Level::O0, Level::O3] {
            let image = compiler.device(&source, arch, level);
            std::fs::write(folder.join(format!("{arch}-{level:?}.co")), image).expect("it is written");
        }
    }
}
