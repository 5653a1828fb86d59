//! Parses an AMDGPU ELF file: segments, symbols, relocations and kernels of a code object.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64, Rela64, SectionHeader64, Sym64};
use object::read::elf::{
    FileHeader as _, NoteIterator, ProgramHeader as _, Rela as _, SectionHeader as _, Sym as _,
};

use crate::cost::{Allowance, check_segments};
use crate::error::{ParseError, wrong};
use crate::image::check_elf;
use crate::layout::{Layout, Segment};
use crate::metadata::Metadata;
use crate::{Kernel, KernelDescriptor, Relocation, RelocationKind, RelocationTarget, Target, machine};

type Endian = LittleEndian;
const LE: Endian = LittleEndian;

/// ELFOSABI_AMDGPU_HSA.
const OS_ABI_HSA: u8 = 64;
/// NT_AMDGPU_METADATA.
const NOTE_METADATA: u32 = 32;

/// Version of a code object; it decides how `e_flags` is read and which hidden arguments exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AbiVersion {
    /// Code object v4 (ABI version 2).
    V4,
    /// Code object v5 (ABI version 3).
    V5,
    /// Code object v6 (ABI version 4): v5 with generic processors.
    V6,
}

/// A device variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    /// The (mangled) name.
    pub name: String,
    /// Its address, relative to the load address of the code object.
    pub vaddr: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A parsed code object. It does not keep the file's bytes; [`CodeObject::load`] needs them again.
#[derive(Debug, Clone)]
pub struct CodeObject {
    abi: AbiVersion,
    target: Target,
    generic_version: Option<u8>,
    segments: Vec<Segment>,
    image_bytes: u64,
    globals: Vec<Global>,
    relocations: Vec<Relocation>,
    kernels: Vec<Kernel>,
    printf: Vec<String>,
    tables_bytes: u64,
}

impl CodeObject {
    /// Parses a bare ELF code object; [`crate::select()`] extracts one from a bundle. The metadata of all notes is merged,
    /// because the linker keeps one note per linked object.
    pub fn parse(elf: &[u8]) -> Result<CodeObject, ParseError> {
        Self::parse_within(elf, u64::MAX)
    }

    /// Parses like [`parse`](Self::parse), and fails before the parsed object has more than `room_bytes` of memory.
    pub fn parse_within(elf: &[u8], room_bytes: u64) -> Result<CodeObject, ParseError> {
        let mut allowance = Allowance::new(elf.len(), room_bytes);
        check_elf(elf)?;
        let header = FileHeader64::<Endian>::parse(elf).map_err(malformed)?;
        let ident = header.e_ident();
        if ident.os_abi != OS_ABI_HSA {
            return Err(ParseError::OsAbi(ident.os_abi));
        }
        let abi = match ident.abi_version {
            2 => AbiVersion::V4,
            3 => AbiVersion::V5,
            4 => AbiVersion::V6,
            other => return Err(ParseError::AbiVersion(other)),
        };
        let kind = header.e_type(LE);
        if !matches!(kind, elf::ET_DYN | elf::ET_REL) {
            return Err(ParseError::NotLinked(kind));
        }
        let programs = header.program_headers(LE, elf).map_err(malformed)?;
        let sections = header.section_headers(LE, elf).map_err(malformed)?;

        let mut metadata = Metadata::default();
        for note in notes(elf, programs, sections, &mut allowance)? {
            metadata.merge(note, &mut allowance)?;
        }
        let flags = header.e_flags(LE);
        let target = machine::target_of_flags(flags)
            .or_else(|| metadata.target.as_deref()?.parse().ok())
            .ok_or(ParseError::Processor((flags & 0xff) as u8))?;
        let generic_version = (abi == AbiVersion::V6 && target.is_generic()).then_some((flags >> 24) as u8);

        let (layout, segments) = match kind {
            elf::ET_REL => Layout::of_sections(elf, sections)?,
            _ => (Layout::default(), segments(elf, programs)?),
        };
        check_segments(&segments)?;
        let image_bytes =
            segments.iter().map(|segment| segment.vaddr + segment.memory_bytes).max().unwrap_or(0);
        let symbols = Symbols::find(elf, sections)?;
        let globals = symbols.globals(&layout, &mut allowance)?;
        let relocations = relocations(elf, sections, &layout, &mut allowance)?;
        let kernels = kernels(elf, metadata.kernels, &segments, &globals, &relocations)?;
        let globals = globals.into_values().filter(|global| !is_descriptor(global)).collect();
        let printf = metadata.printf;
        let mut object = CodeObject {
            abi,
            target,
            generic_version,
            segments,
            image_bytes,
            globals,
            relocations,
            kernels,
            printf,
            tables_bytes: allowance.tables_bytes(),
        };
        object.globals.sort_by(|a: &Global, b| a.name.cmp(&b.name));
        object.kernels.sort_by(|a, b| a.name.cmp(&b.name));
        object.kernels.dedup_by(|a, b| a.name == b.name);
        Ok(object)
    }

    /// Returns the code object version.
    pub fn abi(&self) -> AbiVersion {
        self.abi
    }

    /// Returns the target that it was compiled for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the version of a generic processor's instruction set; a driver runs only code of the versions that it knows.
    pub fn generic_version(&self) -> Option<u8> {
        self.generic_version
    }

    /// Returns the segments that are loaded into memory, in the order of the file.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns how many bytes of memory the code object needs, up to the end of its last segment. A program can request any
    /// number (large device arrays), so check it before allocating.
    pub fn image_bytes(&self) -> u64 {
        self.image_bytes
    }

    /// Returns the device variables, sorted by name.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Returns the device variable with this name (HIP API: hipModuleGetGlobal).
    pub fn global(&self, name: &str) -> Option<&Global> {
        let index = self.globals.binary_search_by(|global| global.name.as_str().cmp(name)).ok()?;
        self.globals.get(index)
    }

    /// Returns the relocations, which depend on the load address.
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// Returns the kernels, sorted by name.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Returns the kernel with this name (HIP API: hipModuleGetFunction).
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        let index = self.kernels.binary_search_by(|kernel| kernel.name.as_str().cmp(name)).ok()?;
        self.kernels.get(index)
    }

    /// Returns how many bytes of memory the parsed object has at most.
    pub fn tables_bytes(&self) -> u64 {
        self.tables_bytes
    }

    /// Returns the format strings of OpenCL's printf calls (`amdhsa.printf`).
    pub fn printf_formats(&self) -> &[String] {
        &self.printf
    }
}

fn malformed(error: object::read::Error) -> ParseError {
    ParseError::Elf(error.to_string())
}

/// Returns the metadata notes: those of the note segments, or of note sections if the file has no such segment.
fn notes<'a>(
    elf: &'a [u8],
    programs: &'a [ProgramHeader64<Endian>],
    sections: &'a [SectionHeader64<Endian>],
    allowance: &mut Allowance,
) -> Result<Vec<&'a [u8]>, ParseError> {
    let mut found = Vec::new();
    let mut collect = |mut notes: NoteIterator<'a, FileHeader64<Endian>>,
                       allowance: &mut Allowance|
     -> Result<(), ParseError> {
        while let Some(note) = notes.next().map_err(malformed)? {
            if note.n_type(LE) == NOTE_METADATA && note.name() == b"AMDGPU" {
                allowance.entries::<[&[u8]; 2]>(1)?;
                found.push(note.desc());
            }
        }
        Ok(())
    };
    let mut has_segment = false;
    for program in programs {
        if let Some(notes) = program.notes(LE, elf).map_err(malformed)? {
            has_segment = true;
            allowance.read(program.p_filesz(LE))?;
            collect(notes, allowance)?;
        }
    }
    if !has_segment {
        for section in sections {
            if let Some(notes) = section.notes(LE, elf).map_err(malformed)? {
                allowance.read(section.sh_size(LE))?;
                collect(notes, allowance)?;
            }
        }
    }
    Ok(found)
}

fn segments(elf: &[u8], programs: &[ProgramHeader64<Endian>]) -> Result<Vec<Segment>, ParseError> {
    let mut segments = Vec::new();
    for program in programs.iter().filter(|program| program.p_type(LE) == elf::PT_LOAD) {
        let (offset, len) = program.file_range(LE);
        let (vaddr, memory_bytes) = (program.p_vaddr(LE), program.p_memsz(LE));
        let end = offset.checked_add(len).filter(|end| *end <= elf.len() as u64);
        let end = end.ok_or_else(|| wrong("a segment outside of the file"))?;
        if len > memory_bytes || vaddr.checked_add(memory_bytes).is_none() {
            return Err(wrong("a segment's length"));
        }
        segments.push(Segment {
            // Both are at most the file's length.
            file: offset as usize..end as usize,
            vaddr,
            memory_bytes,
            align: program.p_align(LE),
            writable: program.p_flags(LE) & elf::PF_W != 0,
            executable: program.p_flags(LE) & elf::PF_X != 0,
        });
    }
    Ok(segments)
}

/// A symbol table with its names.
pub(crate) struct Symbols<'a> {
    symbols: &'a [Sym64<Endian>],
    names: &'a [u8],
}

impl<'a> Symbols<'a> {
    /// Finds the dynamic symbols, else the static ones; empty if there are neither.
    pub(crate) fn find(
        elf: &'a [u8],
        sections: &'a [SectionHeader64<Endian>],
    ) -> Result<Symbols<'a>, ParseError> {
        let of_type = |kind| sections.iter().find(|section| section.sh_type(LE) == kind);
        match of_type(elf::SHT_DYNSYM).or_else(|| of_type(elf::SHT_SYMTAB)) {
            Some(section) => Self::of_section(elf, sections, section),
            None => Ok(Symbols { symbols: &[], names: &[] }),
        }
    }

    fn of_section(
        elf: &'a [u8],
        sections: &'a [SectionHeader64<Endian>],
        section: &'a SectionHeader64<Endian>,
    ) -> Result<Symbols<'a>, ParseError> {
        let symbols = section.data_as_array(LE, elf).map_err(malformed)?;
        let names = sections
            .get(section.sh_link(LE) as usize)
            .ok_or_else(|| wrong("a symbol table without names"))?;
        let names = names.data(LE, elf).map_err(malformed)?;
        Ok(Symbols { symbols, names })
    }

    fn name(&self, symbol: &Sym64<Endian>) -> Result<&'a str, ParseError> {
        let from = self.names.get(symbol.st_name(LE) as usize..).ok_or_else(|| wrong("a symbol's name"))?;
        let end = from.iter().position(|byte| *byte == 0).ok_or_else(|| wrong("a symbol's name"))?;
        std::str::from_utf8(from.get(..end).unwrap_or_default()).map_err(|_| wrong("a symbol's name"))
    }

    /// Iterates over the defined objects: variables and kernel descriptors, with their names.
    pub(crate) fn objects(
        &self,
    ) -> impl Iterator<Item = Result<(&'a str, &'a Sym64<Endian>), ParseError>> + use<'a, '_> {
        // Names may share bytes, but a file whose symbols all share one long name is an attack on memory.
        let mut name_budget = 8 * self.names.len();
        let objects = self.symbols.iter().filter(|symbol| {
            !symbol.is_undefined(LE)
                && symbol.st_type() == elf::STT_OBJECT
                && symbol.st_bind() != elf::STB_LOCAL
        });
        objects.map(move |symbol| {
            let name = self.name(symbol)?;
            name_budget =
                name_budget.checked_sub(name.len()).ok_or_else(|| wrong("symbol names that all overlap"))?;
            Ok((name, symbol))
        })
    }

    /// Returns the defined objects by name: variables and kernel descriptors.
    fn globals(
        &self,
        layout: &Layout,
        allowance: &mut Allowance,
    ) -> Result<HashMap<&'a str, Global>, ParseError> {
        let mut globals = HashMap::new();
        for object in self.objects() {
            let (name, symbol) = object?;
            allowance.text(name)?;
            // In the map, which grows by doubling, and in the list that is kept.
            allowance.entries::<(&str, Global)>(2)?;
            allowance.entries::<Global>(1)?;
            let vaddr = layout.symbol(symbol)?;
            let global = Global { name: name.to_owned(), vaddr, size: symbol.st_size(LE) };
            globals.entry(name).or_insert(global);
        }
        Ok(globals)
    }

    fn target(
        &self,
        index: u32,
        layout: &Layout,
        allowance: &mut Allowance,
    ) -> Result<RelocationTarget, ParseError> {
        if index == 0 {
            return Ok(RelocationTarget::Vaddr(0));
        }
        let symbol = self.symbols.get(index as usize).ok_or_else(|| wrong("a relocation's symbol"))?;
        Ok(match (symbol.st_shndx(LE), symbol.st_bind()) {
            (elf::SHN_UNDEF, elf::STB_WEAK) => RelocationTarget::Absolute(0),
            (elf::SHN_UNDEF, _) => {
                let name = self.name(symbol)?;
                allowance.text(name)?;
                RelocationTarget::Undefined(name.to_owned())
            }
            (elf::SHN_ABS, _) => RelocationTarget::Absolute(symbol.st_value(LE)),
            _ => RelocationTarget::Vaddr(layout.symbol(symbol)?),
        })
    }
}

fn is_descriptor(global: &Global) -> bool {
    is_descriptor_symbol(&global.name, global.size)
}

/// Returns whether an object of this name and size is a kernel descriptor.
pub(crate) fn is_descriptor_symbol(name: &str, size: u64) -> bool {
    name.ends_with(".kd") && size == KernelDescriptor::SIZE_BYTES as u64
}

/// The relocations that a descriptor's entry offset may be, by address: it is one where nobody has linked.
pub(crate) struct EntryOffsets<'a>(HashMap<u64, &'a Relocation>);

impl<'a> EntryOffsets<'a> {
    pub(crate) fn of(relocations: &'a [Relocation]) -> Self {
        let relative = relocations.iter().filter(|relocation| relocation.kind == RelocationKind::Rel64);
        Self(relative.map(|relocation| (relocation.vaddr, relocation)).collect())
    }

    /// Returns the descriptor at `vaddr` and the address of the kernel's entry; `None` if they are not in the file, or nowhere.
    pub(crate) fn descriptor(
        &self,
        elf: &[u8],
        segments: &[Segment],
        vaddr: u64,
    ) -> Option<(KernelDescriptor, u64)> {
        let bytes = bytes_at(elf, segments, vaddr, KernelDescriptor::SIZE_BYTES)?;
        let mut descriptor = KernelDescriptor::parse(bytes)?;
        let entry = vaddr.checked_add(KernelDescriptor::ENTRY_OFFSET_BYTES);
        if let Some(relocation) = entry.and_then(|entry| self.0.get(&entry)) {
            let (offset, _) = relocation.bytes(0).ok()?;
            descriptor.entry_offset = i64::from_le_bytes(offset);
        }
        Some((descriptor, vaddr.checked_add_signed(descriptor.entry_offset)?))
    }
}

/// Adds descriptors and addresses to the metadata's kernels. Kernels without a symbol are left out: the linker dropped
/// them, so they cannot be launched.
fn kernels(
    elf: &[u8],
    kernels: Vec<Kernel>,
    segments: &[Segment],
    globals: &HashMap<&str, Global>,
    relocations: &[Relocation],
) -> Result<Vec<Kernel>, ParseError> {
    let offsets = EntryOffsets::of(relocations);
    let mut complete = Vec::new();
    for mut kernel in kernels {
        let Some(symbol) = globals.get(kernel.symbol.as_str()) else { continue };
        let (descriptor, entry_vaddr) = offsets
            .descriptor(elf, segments, symbol.vaddr)
            .ok_or_else(|| ParseError::Descriptor(kernel.name.clone()))?;
        kernel.descriptor_vaddr = symbol.vaddr;
        kernel.entry_vaddr = entry_vaddr;
        // Metadata of v4 does not have the key.
        kernel.uses_dynamic_stack |= descriptor.uses_dynamic_stack();
        kernel.descriptor = descriptor;
        complete.push(kernel);
    }
    Ok(complete)
}

/// Returns the `len` bytes of the file that are loaded at `vaddr`.
fn bytes_at<'a>(elf: &'a [u8], segments: &[Segment], vaddr: u64, len: usize) -> Option<&'a [u8]> {
    segments.iter().find_map(|segment| {
        let offset = usize::try_from(vaddr.checked_sub(segment.vaddr)?).ok()?;
        elf.get(segment.file.clone())?.get(offset..)?.get(..len)
    })
}

fn relocations(
    elf: &[u8],
    sections: &[SectionHeader64<Endian>],
    layout: &Layout,
    allowance: &mut Allowance,
) -> Result<Vec<Relocation>, ParseError> {
    let mut relocations = Vec::new();
    for section in sections {
        // Of a file that is not linked, a section's relocations are not in memory themselves.
        let (place, symbol_table) = if layout.is_own() {
            (layout.section(section.sh_info(LE) as usize), elf::SHT_SYMTAB)
        } else {
            let loaded = section.sh_flags(LE) & u64::from(elf::SHF_ALLOC) != 0;
            (loaded.then_some(0), elf::SHT_DYNSYM)
        };
        let Some(place) = place.filter(|_| section.sh_type(LE) == elf::SHT_RELA) else { continue };
        let symbols = match sections.get(section.sh_link(LE) as usize) {
            Some(table) if table.sh_type(LE) == symbol_table => Symbols::of_section(elf, sections, table)?,
            _ => Symbols { symbols: &[], names: &[] },
        };
        let entries: &[Rela64<Endian>] = section.data_as_array(LE, elf).map_err(malformed)?;
        allowance.read(size_of_val(entries) as u64)?;
        // In the list, and in the map of those that a descriptor may need.
        allowance.entries::<Relocation>(entries.len())?;
        allowance.entries::<[(u64, &Relocation); 2]>(entries.len())?;
        relocations.reserve_exact(entries.len());
        for entry in entries {
            let number = entry.r_type(LE, false);
            if number == 0 {
                continue;
            }
            let kind = RelocationKind::of(number).ok_or(ParseError::Relocation(number))?;
            let target = symbols.target(entry.r_sym(LE, false), layout, allowance)?;
            relocations.push(Relocation {
                vaddr: place.wrapping_add(entry.r_offset(LE)),
                kind,
                target,
                addend: entry.r_addend(LE),
            });
        }
    }
    Ok(relocations)
}
