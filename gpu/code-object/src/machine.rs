//! Processor numbers in AMDGPU ELF headers (`EF_AMDGPU_MACH_*` in LLVM's AMDGPU usage guide).

use crate::Target;

/// Values of `e_flags & 0xff` and their processors.
#[rustfmt::skip]
const MACHINES: &[(u8, &str)] = &[
    (0x20, "gfx600"), (0x21, "gfx601"), (0x3a, "gfx602"),
    (0x22, "gfx700"), (0x23, "gfx701"), (0x24, "gfx702"), (0x25, "gfx703"), (0x26, "gfx704"), (0x3b, "gfx705"),
    (0x28, "gfx801"), (0x29, "gfx802"), (0x2a, "gfx803"), (0x3c, "gfx805"), (0x2b, "gfx810"),
    (0x2c, "gfx900"), (0x2d, "gfx902"), (0x2e, "gfx904"), (0x2f, "gfx906"), (0x30, "gfx908"), (0x31, "gfx909"),
    (0x3f, "gfx90a"), (0x32, "gfx90c"), (0x40, "gfx940"), (0x4b, "gfx941"), (0x4c, "gfx942"), (0x4f, "gfx950"),
    (0x33, "gfx1010"), (0x34, "gfx1011"), (0x35, "gfx1012"), (0x42, "gfx1013"),
    (0x36, "gfx1030"), (0x37, "gfx1031"), (0x38, "gfx1032"), (0x39, "gfx1033"), (0x3e, "gfx1034"), (0x3d, "gfx1035"),
    (0x45, "gfx1036"),
    (0x41, "gfx1100"), (0x46, "gfx1101"), (0x47, "gfx1102"), (0x44, "gfx1103"),
    (0x43, "gfx1150"), (0x4a, "gfx1151"), (0x55, "gfx1152"), (0x58, "gfx1153"),
    (0x48, "gfx1200"), (0x4e, "gfx1201"), (0x49, "gfx1250"),
    (0x51, "gfx9-generic"), (0x5f, "gfx9-4-generic"), (0x52, "gfx10-1-generic"), (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"), (0x59, "gfx12-generic"),
];

/// Returns the target named by an ELF header's `e_flags` (code object v4 and later); `None` for an unknown processor.
///
/// Bits 8-9 are xnack and bits 10-11 sramecc: 0 not supported, 1 any, 2 off, 3 on.
pub(crate) fn target_of_flags(e_flags: u32) -> Option<Target> {
    let machine = (e_flags & 0xff) as u8;
    let (_, processor) = MACHINES.iter().find(|(number, _)| *number == machine)?;
    let setting = |shift: u32| match (e_flags >> shift) & 3 {
        2 => Some(false),
        3 => Some(true),
        _ => None,
    };
    Some(Target { processor: (*processor).to_owned(), sramecc: setting(10), xnack: setting(8) })
}
