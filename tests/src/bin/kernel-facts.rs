//! A HIP program for the test of modules: prints what the library says of every kernel in the committed code objects, attributes and
//! occupancy, the errors for senseless questions included.

use hip_sys::Hip;
use std::ffi::{CString, c_int, c_void};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::ptr::null_mut;

/// A line for each kernel: the program that has it, and its name.
static KERNELS: &str = include_str!("../../programs/prebuilt/kernels.tsv");

fn main() -> ExitCode {
    match facts() {
        Ok(facts) => {
            println!("{facts}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("kernel-facts: {why}");
            ExitCode::FAILURE
        }
    }
}

fn facts() -> Result<String, Box<dyn std::error::Error>> {
    let hip = Hip::load()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/prebuilt");
    let mut facts = String::new();
    let rows = KERNELS.lines().filter(|line| !line.starts_with('#')).skip(1);
    let kernels: Vec<_> = rows.filter_map(|row| row.split_once('\t')).collect();
    for level in ["O0", "O3"] {
        for of_program in kernels.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((program, _)) = of_program.first() else { continue };
            let image = std::fs::read(folder.join(format!("{program}.{level}.co")))?;
            let mut module = null_mut();
            // SAFETY: a whole image, and a place for the module.
            let loaded = unsafe { hip.hipModuleLoadData(&mut module, image.as_ptr().cast()) };
            writeln!(facts, "{program}.{level}: {loaded}")?;
            for (_, rest) in of_program {
                let kernel = rest.split('\t').next().unwrap_or_default();
                let name = CString::new(kernel)?;
                let mut function = null_mut();
                // SAFETY: the module is loaded, the places outlive the call.
                let found = unsafe { hip.hipModuleGetFunction(&mut function, module, name.as_ptr()) };
                let answers = if found == 0 { answers(&hip, function) } else { Vec::new() };
                writeln!(facts, "{kernel}: {found} {answers:?}")?;
            }
        }
    }
    Ok(facts)
}

/// Returns results and values of many questions about a kernel.
fn answers(hip: &Hip, function: hip_sys::hipFunction_t) -> Vec<[c_int; 3]> {
    let mut answers = Vec::new();
    let (mut value, mut grid) = (-7, -7);
    for attribute in 0..11 {
        // SAFETY: here and below the function is of a loaded module, the places outlive the call.
        let code = unsafe { hip.hipFuncGetAttribute(&mut value, attribute, function) };
        answers.push([code, value, 0]);
    }
    for lds in [0, 20_000] {
        for block in [-1, 0, 1, 64, 65, 256, 1024, 1025] {
            // SAFETY: as above.
            let code = unsafe {
                hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut value, function, block, lds)
            };
            answers.push([code, value, 0]);
        }
        for limit in [-1, 0, 1, 100] {
            // SAFETY: as above.
            let code = unsafe {
                hip.hipModuleOccupancyMaxPotentialBlockSize(&mut grid, &mut value, function, lds, limit)
            };
            answers.push([code, value, grid]);
        }
    }
    for (attribute, set) in [(8, 0), (8, 60_000), (8, 65_537), (8, -1), (9, 50), (9, 101)] {
        // SAFETY: as above; a function's handle can be set, too.
        answers.push([
            unsafe { hip.hipFuncSetAttribute(function.cast::<c_void>().cast_const(), attribute, set) },
            0,
            0,
        ]);
    }
    answers
}
