//! Runs the kernels of `tests/programs` from the committed code objects in `programs/prebuilt`, on machines without the HIP
//! compiler. Each test loads a code object at -O0 and at -O3 in a session of its own over a real socket, launches its
//! kernels on the emulated GPU, and compares with references written here. In `chained` the same happens through a chain:
//! the worker's device `hip` has loaded hipr's own client library, and the emulated GPU is behind it.

use hipr_tests::{Chain, Gpu, start_worker};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

mod arguments;
mod captured;
mod check;
mod conversions;
mod flow;
mod grids;
mod groups;
mod integers;
mod lanes;
mod linear;
mod math;
mod matrix;
mod memory;
mod narrow;
mod rows;
mod runtime;
mod sparse;

/// Declares two tests for each program, and the list of programs.
macro_rules! programs {
    ($($module:ident: $($program:ident)*;)*) => {
        const TESTED: &[&str] = &[$($(stringify!($program)),*),*];

        $($(#[test]
        fn $program() {
            let worker = start_worker();
            at_both_levels(worker.address(), stringify!($program), $module::$program);
        })*)*

        mod chained {
            $($(#[test]
            fn $program() {
                let chain = super::chain();
                super::at_both_levels(chain.address(), stringify!($program), super::$module::$program);
            })*)*
        }
    };
}

programs! {
    arguments: big_args dynamic_lds launch_dims module_kernels occupancy symbols;
    captured: capture graphs;
    conversions: conversions;
    flow: control_flow;
    grids: fft mandelbrot nbody stencil;
    groups: cooperative_groups synchronization;
    integers: hash64 integers small_ints;
    lanes: atomics warp;
    linear: matmul saxpy transpose vector_add;
    math: math_f32 math_f64;
    matrix: matrix_cores;
    memory: functions scratch;
    narrow: bf16 half;
    rows: histogram layernorm reduce scan softmax;
    runtime: async_memory coherent copies copies_2d errors faults host_memory many_launches mirrored_lifetimes mirrored_writes settled stream_order streams threads;
    sparse: bitonic_sort black_scholes spmv;
}

fn chain() -> Chain {
    Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")))
}

fn prebuilt(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "programs", "prebuilt", file].iter().collect()
}

/// Returns program and kernel of each line of the list.
fn listed() -> Vec<(String, String)> {
    let list = fs::read_to_string(prebuilt("kernels.tsv")).expect("the list of kernels");
    let lines = list.lines().filter(|line| !line.starts_with('#')).skip(1);
    let fields = lines.map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    fields.map(|fields| (fields[0].clone(), fields[1].clone())).collect()
}

/// Runs a test with the program's code object of either level. It has to launch every kernel of the list.
fn at_both_levels(worker: SocketAddr, program: &str, test: fn(&mut Gpu)) {
    // What the worker logs is shown when the test fails.
    let _ = tracing_subscriber::fmt().with_test_writer().with_ansi(false).try_init();
    let listed = listed();
    let kernels: BTreeSet<&str> =
        listed.iter().filter(|(of, _)| of == program).map(|(_, kernel)| kernel.as_str()).collect();
    for level in ["O0", "O3"] {
        println!("{program} at -{level}");
        let bundle = fs::read(prebuilt(&format!("{program}.{level}.co"))).expect("a code object");
        let mut gpu = Gpu::open(worker, &bundle);
        test(&mut gpu);
        assert_eq!(gpu.synchronize(), Ok(()), "nothing is left to report");
        assert_eq!(gpu.launched(), kernels, "the kernels of {program}.{level}.co");
    }
}

#[test]
fn every_program_has_a_test() {
    let listed: BTreeSet<String> = listed().into_iter().map(|(program, _)| program).collect();
    assert_eq!(TESTED.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), listed);
}
