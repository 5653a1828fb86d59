//! Addresses of the parts of an ELF file in memory: given by its segments, or, if it is not linked, one section after
//! another.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{self, SectionHeader64, Sym64};
use object::read::elf::{SectionHeader as _, Sym as _};

use crate::error::{ParseError, wrong};

type Endian = LittleEndian;
const LE: Endian = LittleEndian;

/// Alignment of sections of a file that is not linked: what the hardware requires for a kernel's first instruction.
const ALIGN_BYTES: u64 = 256;

/// A part of the file that is loaded into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Range of its bytes in the file, not longer than `memory_bytes`.
    pub file: Range<usize>,
    /// Its address, relative to the load address of the code object.
    pub vaddr: u64,
    /// Its size in memory; bytes beyond those of the file are zero. `vaddr + memory_bytes` does not overflow.
    pub memory_bytes: u64,
    /// Alignment of its address.
    pub align: u64,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether it contains instructions.
    pub executable: bool,
}

/// Addresses of a file's sections, for a file that does not assign addresses itself.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Addresses by section number; empty for a linked file.
    sections: Vec<Option<u64>>,
}

impl Layout {
    /// Lays out the sections of a file that is not linked one after another. (tinygrad and other compilers of single
    /// kernels do not link.)
    pub(crate) fn of_sections(
        elf: &[u8],
        sections: &[SectionHeader64<Endian>],
    ) -> Result<(Self, Vec<Segment>), ParseError> {
        let (mut layout, mut segments, mut end) = (Self::default(), Vec::new(), 0u64);
        for section in sections {
            let (flags, size) = (section.sh_flags(LE), section.sh_size(LE));
            if flags & u64::from(elf::SHF_ALLOC) == 0 {
                layout.sections.push(None);
                continue;
            }
            let align = section.sh_addralign(LE).max(ALIGN_BYTES);
            let vaddr = end.checked_next_multiple_of(align).ok_or_else(|| wrong("a section's alignment"))?;
            end = vaddr.checked_add(size).ok_or_else(|| wrong("a section's length"))?;
            let file = match section.file_range(LE) {
                None => 0..0,
                Some((offset, len)) => {
                    let end = offset.checked_add(len).filter(|end| *end <= elf.len() as u64);
                    // Both are at most the file's length.
                    offset as usize..end.ok_or_else(|| wrong("a section outside of the file"))? as usize
                }
            };
            layout.sections.push(Some(vaddr));
            segments.push(Segment {
                file,
                vaddr,
                memory_bytes: size,
                align,
                writable: flags & u64::from(elf::SHF_WRITE) != 0,
                executable: flags & u64::from(elf::SHF_EXECINSTR) != 0,
            });
        }
        Ok((layout, segments))
    }

    /// Returns whether the file is not linked.
    pub(crate) fn is_own(&self) -> bool {
        !self.sections.is_empty()
    }

    /// Returns the address of a section, if it is loaded; 0 in a linked file.
    pub(crate) fn section(&self, section: usize) -> Option<u64> {
        if self.is_own() { self.sections.get(section).copied().flatten() } else { Some(0) }
    }

    /// Returns the address of a defined symbol.
    pub(crate) fn symbol(&self, symbol: &Sym64<Endian>) -> Result<u64, ParseError> {
        let section = self.section(usize::from(symbol.st_shndx(LE)));
        let vaddr = section.and_then(|vaddr| vaddr.checked_add(symbol.st_value(LE)));
        vaddr.ok_or_else(|| wrong("a symbol that is not in memory"))
    }
}
