//! Compares what AMD's code object manager and `hipr-code-object` read about every kernel of every code object in the
//! repository, and of some that the HIP compiler makes for this test. Missing releases of the manager are skipped with a
//! message.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use comgr_sys::{Argument, Comgr, Error, Kernel, Metadata};
use hipr_code_object::{Bundle, CodeObject, Format, Limits, decompress};
use hipr_rocm_tests::Rocm;
use tempfile::TempDir;

/// Returns the files below a folder that may contain code objects.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let kind = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // What cargo builds, and what git keeps, is not the repository's.
                if name != "target" && !name.to_string_lossy().starts_with('.') {
                    folders.push(path);
                }
            } else if ["co", "elf", "hsaco", "bundle", "ccob"].contains(&kind.as_str()) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Returns the code objects in a file: itself, or those of a bundle.
fn code_objects(file: &[u8]) -> Vec<Vec<u8>> {
    let bundle = match Format::sniff(file) {
        Some(Format::Elf) => return vec![file.to_vec()],
        Some(Format::Bundle) => file.to_vec(),
        Some(Format::CompressedBundle) => decompress(file, Limits::default()).expect("a whole bundle"),
        None => panic!("no code object"),
    };
    let entries = Bundle::parse(&bundle).expect("a whole bundle");
    let device = entries.entries().iter().filter(|entry| !entry.id.starts_with("host"));
    device.map(|entry| bundle[entry.range.clone()].to_vec()).collect()
}

/// Returns what `hipr-code-object` reads, in the manager's types.
fn ours(elf: &[u8]) -> Metadata {
    let object = CodeObject::parse(elf).expect("a code object");
    let kernels = object.kernels().iter().map(|kernel| Kernel {
        name: kernel.name.clone(),
        symbol: kernel.symbol.clone(),
        arguments: kernel.args.iter().map(argument).collect(),
        kernarg_bytes: kernel.kernarg_bytes,
        kernarg_align: kernel.kernarg_align,
        group_segment_bytes: kernel.group_segment_bytes,
        private_segment_bytes: kernel.private_segment_bytes,
        wavefront_size: kernel.wavefront_size,
        max_flat_workgroup_size: kernel.max_flat_workgroup_size,
        sgpr_count: kernel.sgpr_count,
        vgpr_count: kernel.vgpr_count,
    });
    let kernels = kernels.collect();
    Metadata { isa: Some(format!("amdgcn-amd-amdhsa--{}", object.target())), kernels }
}

fn argument(argument: &hipr_code_object::Arg) -> Argument {
    Argument {
        offset: argument.offset,
        size: argument.size,
        value_kind: argument.kind.as_str().to_owned(),
        address_space: argument.address_space.clone(),
        name: argument.name.clone(),
    }
}

fn by_name(metadata: &Metadata) -> BTreeMap<&str, &Kernel> {
    metadata.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel)).collect()
}

#[test]
fn both_say_the_same_about_every_kernel() {
    let Some((release, library)) = Rocm::library() else {
        let made = compile();
        return Rocm::on_every_release(
            "both_say_the_same_about_every_kernel",
            |rocm| &rocm.comgr,
            |_, command| {
                if let Some(made) = &made {
                    command.env(MADE, made.path());
                }
            },
        );
    };
    let comgr = Comgr::load_from(&library).unwrap_or_else(|why| panic!("{why}"));
    let made = env::var_os(MADE).map_or_else(Vec::new, |folder| files(Path::new(&folder)));
    let (mut objects, mut kernels, mut arguments, mut named) = (0, 0, 0, 0);
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).iter().chain(&made) {
        let file = fs::read(path).expect("a file of the repository");
        for elf in code_objects(&file) {
            let path = path.display();
            let ours = ours(&elf);
            let theirs = comgr.metadata(&elf).unwrap_or_else(|why| panic!("{path}: {why}"));
            let (their_kernels, our_kernels) = (by_name(&theirs), by_name(&ours));
            assert!(their_kernels.keys().eq(our_kernels.keys()), "{path}: other kernels");
            assert_eq!(theirs.kernels.len(), our_kernels.len(), "{path}: a name twice");
            for (name, theirs) in their_kernels {
                assert_eq!(theirs, our_kernels[name], "{path}");
            }
            // Release 5.2 does not know the instruction set of anything newer.
            assert!(
                theirs.isa.is_none() || theirs.isa == ours.isa,
                "{path}: {:?}, not {:?}",
                theirs.isa,
                ours.isa
            );
            named += usize::from(theirs.isa.is_some());
            objects += 1;
            kernels += ours.kernels.len();
            arguments += ours.kernels.iter().map(|kernel| kernel.arguments.len()).sum::<usize>();
        }
    }
    // Those that are committed.
    assert!(objects >= 126 && kernels >= 453 && arguments >= 7000, "{objects}, {kernels}, {arguments}");
    assert!(named == objects || release.starts_with("5."), "{named} of {objects} instruction sets");
    println!(
        "{release}: {objects} code objects ({} just compiled), {kernels} kernels, {arguments} arguments",
        made.len()
    );
}

/// Environment variable with the folder that [`compile`] filled, for a test in a process of its own.
const MADE: &str = "HIPR_TEST_FOLDER";

/// Compiles code objects for other processors and code object versions than the committed ones; returns `None` without a
/// compiler.
fn compile() -> Option<TempDir> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lab =
        Command::new(root.join("tests/toolchain/setup.sh")).arg("--check").output().expect("the script runs");
    if !lab.status.success() {
        assert!(env::var_os("HIPR_REQUIRE_COMPILER").is_none(), "the compiler is required");
        println!(
            "SKIPPED: no HIP compiler here (tests/toolchain/setup.sh makes one): only committed code objects"
        );
        return None;
    }
    let lab = PathBuf::from(String::from_utf8(lab.stdout).expect("a path").trim());
    let made = tempfile::tempdir_in(lab.join("tmp")).expect("a folder");
    let inside = Path::new("/").join(made.path().strip_prefix(&lab).expect("it is in the lab"));
    let source = root.join("gpu/code-object/tests/data/kernels.hip");
    for (processor, version, level) in [
        ("gfx900", 4, "-O0"),
        ("gfx906:xnack-", 5, "-O2"),
        ("gfx90a:sramecc+:xnack+", 6, "-O0"),
        ("gfx942", 4, "-O0"),
        ("gfx942:xnack-", 5, "-Os"),
        ("gfx9-generic", 6, "-O3"),
        ("gfx1030", 5, "-O1"),
        ("gfx1201", 6, "-O2"),
    ] {
        let name = format!("{}-v{version}{level}.elf", processor.replace(':', "_"));
        let mut clang = Command::new("chroot");
        clang.arg(&lab).args([
            "/usr/bin/env",
            "-i",
            "PATH=/usr/bin:/bin",
            "HOME=/root",
            "hipcc",
            "-x",
            "hip",
        ]);
        clang.args(["--cuda-device-only", "--no-gpu-bundle-output", level, "-"]);
        clang.arg("-o").arg(inside.join(&name));
        clang.arg(format!("--offload-arch={processor}")).arg(format!("-mcode-object-version={version}"));
        clang.stdin(File::open(&source).expect("the source"));
        let output = clang.output().expect("chroot runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Some(made)
}

#[test]
fn what_is_no_code_object_is_an_error() {
    let Some((_, library)) = Rocm::library() else {
        return Rocm::on_every_release("what_is_no_code_object_is_an_error", |rocm| &rocm.comgr, |_, _| ());
    };
    let comgr = Comgr::load_from(&library).unwrap_or_else(|why| panic!("{why}"));
    for bytes in [&b""[..], b"\x7fELF", &[0; 4096]] {
        let error = comgr.metadata(bytes).expect_err("no code object");
        assert!(matches!(error, Error::Call { .. }), "{error}");
    }
}
