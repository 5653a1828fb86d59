//! Checks that every instruction used by real kernels is tested: by a test of its own, or by a committed kernel that is
//! compared with the host.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hipr_code_object::{Target, select};
use hipr_sim::{Arch, coverage};

/// Instructions that compilers (clang, IREE, tinygrad, Triton) use for gfx942.
static ENCODINGS: &str = include_str!("../../../gpu/isa/tests/isa/data/encodings.tsv");

/// Splits a text into words that may be mnemonics.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

/// Returns the mnemonics in the committed kernels of a folder.
fn in_kernels(folder: &Path) -> BTreeSet<&'static str> {
    let mut used = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "co") {
            continue;
        }
        let image = fs::read(&path).expect("it is read");
        for arch in Arch::ALL {
            let device: Target = hipr_sim::property::Model::of(arch).arch_name.parse().expect("a target");
            let Ok(elf) = select(&image, &device) else { continue };
            let kernels = coverage::kernels(&elf, arch).expect("a code object");
            for kernel in kernels {
                // One is there to be refused.
                let complete = kernel.is_complete() || kernel.name == "refuse";
                assert!(complete, "{}: {}: {:?}", path.display(), kernel.name, kernel.missing);
                assert!(kernel.instructions > 1, "{}: {}", path.display(), kernel.name);
                used.extend(kernel.used);
            }
        }
    }
    used
}

#[test]
fn every_instruction_of_real_kernels_is_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kernels = ["tests/kernels/data", "tests/programs/prebuilt", "gpu/sim/tests/data"];
    let mut tested: BTreeSet<String> =
        kernels.iter().flat_map(|folder| in_kernels(&root.join(folder))).map(str::to_owned).collect();
    for entry in fs::read_dir(root.join("gpu/isa/tests/isa")).expect("the tests are there").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(entry.path()).expect("it is read");
            tested.extend(words(&text).map(str::to_owned));
        }
    }
    let real = ENCODINGS.lines().skip(1).filter_map(|line| line.split('\t').next());
    let real: BTreeSet<&str> = real.collect();
    assert!(real.len() >= 459, "{} mnemonics", real.len());
    let missing: Vec<_> = real.into_iter().filter(|name| !tested.contains(*name)).collect();
    assert!(missing.is_empty(), "no test has {missing:?}");
}
