//! `hipr isa-coverage`: lists instructions of a program's kernels that the emulated GPU lacks.

use crate::output::say;
use clap::Args;
use hipr_code_object::{Bundle, Format, Limits, Target, decompress};
use hipr_sim::Arch;
use hipr_sim::coverage::{self, KernelCoverage};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `hipr isa-coverage`.
#[derive(Debug, Args)]
pub(crate) struct IsaCoverage {
    /// Code objects (ELF files, offload bundles, compressed bundles), or folders that contain nothing else.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

/// A kernel in the report.
#[derive(Debug, Serialize)]
struct Kernel {
    name: String,
    instructions: usize,
    missing: BTreeMap<String, usize>,
}

impl From<KernelCoverage> for Kernel {
    fn from(kernel: KernelCoverage) -> Self {
        let KernelCoverage { name, instructions, missing, .. } = kernel;
        Self { name, instructions, missing }
    }
}

/// A code object in the report.
#[derive(Debug, Serialize)]
struct Object {
    file: String,
    target: String,
    /// Whether its GPU can be emulated.
    emulated: bool,
    kernels: Vec<Kernel>,
    /// Why it cannot be read.
    error: Option<String>,
}

impl Object {
    fn is_complete(&self) -> bool {
        self.error.is_none() && self.kernels.iter().all(|kernel| kernel.missing.is_empty())
    }
}

/// Prints, for each file, the instructions that the emulated GPU lacks. Succeeds if all code objects can be read and the
/// emulated GPU has every instruction of those for it.
pub(crate) fn run(options: IsaCoverage) -> Result<ExitCode, String> {
    let mut objects = Vec::new();
    for path in options.files.iter().flat_map(|path| files(path)) {
        let bytes = fs::read(&path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        objects.extend(of_file(&path, &bytes));
    }
    let complete = objects.iter().all(Object::is_complete);
    if options.json {
        say!("{}", serde_json::to_string_pretty(&objects).map_err(|why| why.to_string())?);
    } else {
        print(&objects);
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the file itself, or all files below a folder, sorted.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_path_buf()] };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path)).collect()
}

/// Returns the report's entries for the code objects of a file.
fn of_file(path: &Path, bytes: &[u8]) -> Vec<Object> {
    let file = path.display().to_string();
    let elves = match elves(bytes) {
        Ok(elves) => elves,
        Err(why) => {
            let target = String::new();
            return vec![Object { file, target, emulated: false, kernels: Vec::new(), error: Some(why) }];
        }
    };
    elves.iter().map(|elf| of_elf(&file, elf)).collect()
}

/// Returns all ELF code objects in an image, for any GPU.
fn elves(image: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, String> {
    match Format::sniff(image) {
        Some(Format::Elf) => Ok(vec![Cow::Borrowed(image)]),
        Some(Format::Bundle) => {
            let bundle = Bundle::parse(image).map_err(|why| why.to_string())?;
            let hip = bundle
                .entries()
                .iter()
                .filter(|entry| entry.id.starts_with("hip") && !entry.range.is_empty());
            Ok(hip.filter_map(|entry| image.get(entry.range.clone())).map(Cow::Borrowed).collect())
        }
        Some(Format::CompressedBundle) => {
            let bundle = decompress(image, Limits::default()).map_err(|why| why.to_string())?;
            if Format::sniff(&bundle) != Some(Format::Bundle) {
                return Err("the compressed bundle does not contain an offload bundle".into());
            }
            let elves = elves(&bundle)?;
            Ok(elves.into_iter().map(|elf| Cow::Owned(elf.into_owned())).collect())
        }
        None => Err("neither an ELF file nor an offload bundle nor a compressed bundle".into()),
    }
}

/// Returns the emulated GPU that runs code for `target`, if there is one.
fn emulated(target: &Target) -> Option<Arch> {
    Arch::ALL.into_iter().find(|arch| {
        let device = Target { processor: arch.processor().into(), ..target.clone() };
        target.runs_on(&device).is_some()
    })
}

fn of_elf(file: &str, elf: &[u8]) -> Object {
    let file = file.to_owned();
    let code = match hipr_code_object::CodeObject::parse(elf) {
        Ok(code) => code,
        Err(why) => {
            let (target, error) = (String::new(), Some(why.to_string()));
            return Object { file, target, emulated: false, kernels: Vec::new(), error };
        }
    };
    let target = code.target().to_string();
    let Some(arch) = emulated(code.target()) else {
        return Object { file, target, emulated: false, kernels: Vec::new(), error: None };
    };
    match coverage::kernels(elf, arch) {
        Ok(kernels) => {
            let kernels = kernels.into_iter().map(Kernel::from).collect();
            Object { file, target, emulated: true, kernels, error: None }
        }
        Err(why) => {
            Object { file, target, emulated: true, kernels: Vec::new(), error: Some(why.to_string()) }
        }
    }
}

fn print(objects: &[Object]) {
    let (mut kernels, mut complete, mut others) = (0, 0, 0);
    for object in objects {
        let Object { file, target, .. } = object;
        if let Some(why) = &object.error {
            say!("{file}: {why}");
            continue;
        }
        others += usize::from(!object.emulated);
        for kernel in &object.kernels {
            kernels += 1;
            complete += usize::from(kernel.missing.is_empty());
            for (what, count) in &kernel.missing {
                say!("{file}: {target}: {}: {what}, {count} times", kernel.name);
            }
        }
    }
    let unreadable = objects.iter().filter(|object| object.error.is_some()).count();
    say!("{complete} of {kernels} kernels complete, in {} code objects", objects.len() - unreadable - others);
    if others > 0 {
        say!("{others} code objects for GPUs that are not emulated");
    }
    if unreadable > 0 {
        say!("{unreadable} files are not code objects");
    }
}
