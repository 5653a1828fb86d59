//! AMD's code object manager and `hipr-code-object` say the same about every kernel of every code object in the repository.
//! Releases of the manager that are not here are skipped with a word about it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use comgr_sys::{Argument, Comgr, Error, Kernel, Metadata};
use hipr_code_object::{Bundle, CodeObject, Format, Limits, decompress};
use hipr_rocm_tests::Rocm;

/// The files of the repository that may hold code objects.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    let mut folders = vec![root];
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

/// The code objects in a file: itself, or those of a bundle.
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

/// What `hipr-code-object` says, in the manager's types.
fn ours(elf: &[u8]) -> Option<Metadata> {
    let object = CodeObject::parse(elf).ok()?;
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
    Some(Metadata { isa: format!("amdgcn-amd-amdhsa--{}", object.target()), kernels })
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
        return Rocm::on_every_release("both_say_the_same_about_every_kernel", |rocm| &rocm.comgr);
    };
    let comgr = Comgr::load_from(&library).unwrap_or_else(|why| panic!("{why}"));
    let (mut objects, mut kernels, mut arguments, mut refused) = (0, 0, 0, Vec::new());
    for path in files() {
        let file = fs::read(&path).expect("a file of the repository");
        for elf in code_objects(&file) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ours = ours(&elf);
            let theirs = match comgr.metadata(&elf) {
                Ok(theirs) => theirs,
                Err(why) => {
                    refused.push(format!("{name}: {why}"));
                    continue;
                }
            };
            let Some(ours) = ours else {
                refused.push(format!("{name}: ours"));
                continue;
            };
            assert_eq!(theirs.isa, ours.isa, "{name}");
            assert_eq!(by_name(&theirs), by_name(&ours), "{name}");
            assert_eq!(theirs.kernels.len(), ours.kernels.len(), "{name}: no name twice");
            objects += 1;
            kernels += ours.kernels.len();
            arguments += ours.kernels.iter().map(|kernel| kernel.arguments.len()).sum::<usize>();
        }
    }
    let version = comgr.version();
    println!(
        "{release}: version {version:?}, {objects} code objects, {kernels} kernels, {arguments} arguments agree; refused: {refused:#?}"
    );
}

#[test]
fn what_is_no_code_object_is_an_error() {
    let Some((_, library)) = Rocm::library() else {
        return Rocm::on_every_release("what_is_no_code_object_is_an_error", |rocm| &rocm.comgr);
    };
    let comgr = Comgr::load_from(&library).unwrap_or_else(|why| panic!("{why}"));
    for bytes in [&b""[..], b"\x7fELF", &[0; 4096]] {
        let error = comgr.metadata(bytes).expect_err("no code object");
        assert!(matches!(error, Error::Call { .. }), "{error}");
    }
}
