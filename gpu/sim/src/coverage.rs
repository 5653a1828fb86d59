//! Finds instructions of a code object's kernels that the emulator lacks.

use hipr_code_object::{CodeObject, ParseError, RelocationTarget};
use hipr_isa::Arch;
use hipr_isa::coverage::Code;
pub use hipr_isa::coverage::KernelCoverage;

/// Lists the kernels of the code object in `elf` with the instructions of `arch` that each has and lacks.
///
/// # Errors
/// It is no code object.
pub fn kernels(elf: &[u8], arch: Arch) -> Result<Vec<KernelCoverage>, ParseError> {
    let object = CodeObject::parse(elf)?;
    let executable = object.segments().iter().filter(|segment| segment.executable);
    let segments =
        executable.map(|segment| (segment.vaddr, elf.get(segment.file.clone()).unwrap_or_default()));
    // A descriptor's distance to its kernel is no pointer to a function.
    let in_descriptor =
        |vaddr: u64| object.kernels().iter().any(|kernel| kernel.descriptor_vaddr + 16 == vaddr);
    let kept = object.relocations().iter().filter_map(|relocation| match relocation.target {
        RelocationTarget::Vaddr(vaddr) if !in_descriptor(relocation.vaddr) => {
            Some(vaddr.wrapping_add_signed(relocation.addend))
        }
        _ => None,
    });
    let code = Code::new(arch, segments, kept);
    Ok(object.kernels().iter().map(|kernel| code.kernel(&kernel.name, kernel.entry_vaddr)).collect())
}
