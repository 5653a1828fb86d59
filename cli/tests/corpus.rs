//! Tests 1,073 code objects that five compilers generated for real programs: all can be loaded, and the emulator has every
//! instruction of each kernel for a GPU that it emulates.

use hipr_code_object::{CodeObject, Loadable, Target, Unloadable, loadable};
use hipr_device::{Context, Param, Waker};
use hipr_proto::HipError;
use hipr_sim::{Arch, Config, Gpu};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Unpacks the corpus: a folder for each client, in it one for each GPU.
fn unpacked() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corpus.tar.zst");
    let archive = zstd::Decoder::new(File::open(data).expect("the archive")).expect("zstd");
    tar::Archive::new(archive).unpack(folder.path()).expect("the archive is whole");
    folder
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { objects(&path) } else { vec![path] }).collect()
}

#[derive(Deserialize)]
struct Object {
    file: PathBuf,
    emulated: bool,
    kernels: Vec<Kernel>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Kernel {
    instructions: usize,
    missing: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Row {
    objects: usize,
    kernels: usize,
    complete: usize,
    instructions: usize,
}

/// Summarizes the report per client and GPU, in the format of `tests/data/corpus.tsv`.
fn table(report: &[Object], folder: &Path) -> String {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for object in report {
        let path = object.file.strip_prefix(folder).expect("a file of the corpus");
        let [client, gpu] = [1, 2].map(|at| path.iter().nth(at).expect("a folder").to_string_lossy());
        let row = rows.entry(format!("{client}\t{gpu}")).or_default();
        row.objects += 1;
        row.kernels += object.kernels.len();
        row.complete += object.kernels.iter().filter(|kernel| kernel.missing.is_empty()).count();
        row.instructions += object.kernels.iter().map(|kernel| kernel.instructions).sum::<usize>();
    }
    let mut text = String::from("client\tgpu\tobjects\tkernels\tcomplete\tinstructions\n");
    for (name, Row { objects, kernels, complete, instructions }) in rows {
        writeln!(text, "{name}\t{objects}\t{kernels}\t{complete}\t{instructions}").expect("a string");
    }
    text
}

#[test]
fn every_kernel_of_every_client_is_complete() {
    let folder = unpacked();
    let output = Command::new(env!("CARGO_BIN_EXE_hipr"))
        .args(["isa-coverage", "--json"])
        .arg(folder.path())
        .output()
        .expect("hipr runs");
    let report: Vec<Object> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report.len(), 1073);
    for object in &report {
        assert_eq!(object.error, None, "{}", object.file.display());
        assert_eq!(object.emulated, !object.kernels.is_empty(), "{}", object.file.display());
    }
    assert_eq!(table(&report, folder.path()), include_str!("data/corpus.tsv"));
    assert!(output.status.success());
}

#[test]
fn every_object_is_loaded_wherever_it_is_put() {
    let folder = unpacked();
    let objects = objects(folder.path());
    assert_eq!(objects.len(), 1073);
    for path in objects {
        let elf = fs::read(&path).expect("a file");
        let code = CodeObject::parse(&elf).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let len_bytes = usize::try_from(code.image_bytes()).expect("an image that fits");
        let [low, high] = [0x10_0000, 0x7f00_1234_0000].map(|base| {
            let mut memory = vec![0; len_bytes];
            code.load(&elf, base, &mut memory).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            memory
        });
        // Relocations that hold addresses, and nothing else, depend on where the code is.
        let addresses = code.relocations().iter().any(|relocation| {
            relocation.bytes(0x10_0000).expect("an address")
                != relocation.bytes(0x7f00_1234_0000).expect("an address")
        });
        assert_eq!(low != high, addresses, "{}", path.display());
        assert!(!code.kernels().is_empty(), "{}", path.display());
    }
}

/// What a client knows of an object by itself is what the emulated GPU answers: whether it can be loaded, and of each kernel the
/// parameters and attributes.
#[test]
fn a_client_knows_what_the_worker_answers() {
    let folder = unpacked();
    for arch in Arch::ALL {
        let config = Config { arch, memory_bytes: Some(1 << 30), ..Config::default() };
        let mut context = Gpu::new(config).expect("the emulated GPU").context(Waker::new(|| {}));
        let properties = context.properties(0).expect("properties");
        let device: Target = properties.gcn_arch_name.as_str().parse().expect("a target");
        let (mut loaded, mut kernels) = (0, 0);
        for path in objects(folder.path()) {
            let (elf, name) = (fs::read(&path).expect("a file"), path.display());
            let answer = context.module_load(elf.clone());
            let code = match loadable(&elf, &device) {
                Ok(Loadable { code, .. }) => code,
                Err(why) => {
                    assert!(matches!(why, Unloadable::Select(_)), "{name}: {why}");
                    assert_eq!(answer, Err(HipError(why.hip_error())), "{name}");
                    continue;
                }
            };
            let module = answer.unwrap_or_else(|why| panic!("{name}: {why}"));
            loaded += 1;
            for kernel in code.kernels() {
                let found = context.function(module, &kernel.name);
                assert_eq!(found.is_ok(), code.launchable(&kernel.name).is_some(), "{name}: {}", kernel.name);
                let Ok(found) = found else { continue };
                let params = kernel.param_layout().into_iter();
                let params = params.map(|(offset, size)| Param { offset, size }).collect();
                assert_eq!(found.params, Some(params), "{name}: {}", kernel.name);
                let told = context.function_attributes(found.handle).expect("attributes");
                let known = kernel.needs(&device.processor).attributes([properties.major, properties.minor]);
                let (told, known) = (
                    (
                        told.num_regs,
                        told.shared_size_bytes,
                        told.local_size_bytes,
                        told.max_threads_per_block,
                    ),
                    (
                        known.numRegs,
                        known.sharedSizeBytes as i32,
                        known.localSizeBytes as i32,
                        known.maxThreadsPerBlock,
                    ),
                );
                assert_eq!(told, known, "{name}: {}", kernel.name);
                kernels += 1;
            }
            context.module_unload(module).expect("unloaded");
        }
        assert!(loaded >= 100 && kernels >= loaded, "{arch}: {loaded} objects with {kernels} kernels");
    }
}
