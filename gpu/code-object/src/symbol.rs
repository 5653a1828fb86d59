//! The symbols of a code object as a loader shows them: variables and kernel descriptors, in the order of the file.

use std::collections::{HashMap, HashSet};

use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};

use crate::elf::{EntryOffsets, Symbols, is_descriptor_symbol};
use crate::layout::Layout;
use crate::{CodeObject, Kernel, ParseError};

const LE: LittleEndian = LittleEndian;

/// A variable or a kernel descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The (mangled) name; a descriptor's ends with `.kd`.
    pub name: String,
    /// Its address, relative to the load address of the code object.
    pub vaddr: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Alignment of the section that it lies in, at least 1.
    pub align: u64,
    /// Whether it lies in a section that can be written.
    pub writable: bool,
    /// The kernel, if it is a descriptor. One that the metadata does not name has what the descriptor says.
    pub kernel: Option<Kernel>,
}

impl CodeObject {
    /// Returns the defined variables and kernel descriptors of `elf`, the bytes this was parsed from, in the order of the file. Of several
    /// with one name the first is taken; those outside of the loaded memory are left out.
    ///
    /// # Errors
    /// Symbol tables that cannot be read, and descriptors that are not in the file.
    pub fn symbols(&self, elf: &[u8]) -> Result<Vec<Symbol>, ParseError> {
        let malformed = |error: object::read::Error| ParseError::Elf(error.to_string());
        let header = FileHeader64::<LittleEndian>::parse(elf).map_err(malformed)?;
        let sections = header.section_headers(LE, elf).map_err(malformed)?;
        let layout = match header.e_type(LE) {
            elf::ET_REL => Layout::of_sections(elf, sections)?.0,
            _ => Layout::default(),
        };
        let kernels: HashMap<&str, &Kernel> =
            self.kernels().iter().map(|kernel| (kernel.symbol.as_str(), kernel)).collect();
        let offsets = EntryOffsets::of(self.relocations());
        let table = Symbols::find(elf, sections)?;
        let (mut symbols, mut names) = (Vec::new(), HashSet::new());
        for object in table.objects() {
            let (name, symbol) = object?;
            let (vaddr, size) = (layout.symbol(symbol)?, symbol.st_size(LE));
            let end = vaddr.checked_add(size).filter(|&end| end <= self.image_bytes());
            if end.is_none() || !names.insert(name) {
                continue;
            }
            let kernel = match kernels.get(name) {
                Some(&kernel) => Some(kernel.clone()),
                None if is_descriptor_symbol(name, size) => {
                    let found = offsets.descriptor(elf, self.segments(), vaddr);
                    let (descriptor, entry_vaddr) =
                        found.ok_or_else(|| ParseError::Descriptor(name.to_owned()))?;
                    let kernel = Kernel::of_descriptor(name, vaddr, descriptor, &self.target().processor)?;
                    Some(Kernel { entry_vaddr, ..kernel })
                }
                None => None,
            };
            let section = sections.get(usize::from(symbol.st_shndx(LE)));
            symbols.push(Symbol {
                name: name.to_owned(),
                vaddr,
                size,
                align: section.map_or(1, |section| section.sh_addralign(LE).max(1)),
                writable: section
                    .is_some_and(|section| section.sh_flags(LE) & u64::from(elf::SHF_WRITE) != 0),
                kernel,
            });
        }
        Ok(symbols)
    }
}
