//! Code objects that no compiler writes: headers that name the same bytes many times, tables as dense as the formats allow.

/// `EM_AMDGPU`, and the processor number of gfx942.
const MACHINE: u16 = 224;
const GFX942: u32 = 0x4c;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const SHT_STRTAB: u32 = 3;
const SHT_RELA: u32 = 4;
const SHT_DYNSYM: u32 = 11;
const SHF_ALLOC: u64 = 2;
const R_RELATIVE64: u64 = 13;
const R_ABS64: u64 = 3;

/// A program header whose bytes are a range of the body.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    kind: u32,
    flags: u32,
    at: usize,
    len: usize,
    vaddr: u64,
    memory_bytes: u64,
}

/// A section header whose bytes are a range of the body.
#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    flags: u64,
    link: u32,
    entry_bytes: u64,
    at: usize,
    len: usize,
}

/// A code object for gfx942 that is built header by header.
#[derive(Default)]
pub(super) struct Elf {
    segments: Vec<Segment>,
    sections: Vec<Section>,
    body: Vec<u8>,
}

impl Elf {
    /// Creates a file with metadata that names no kernels.
    pub(super) fn new() -> Self {
        let mut elf = Self::default();
        elf.note(&metadata(&[]));
        elf
    }

    /// Appends bytes to the body; returns where they begin.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> usize {
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        let at = self.body.len();
        self.body.extend_from_slice(bytes);
        at
    }

    /// Appends a metadata note, and a header for it.
    pub(super) fn note(&mut self, metadata: &[u8]) -> Segment {
        let mut note = Vec::new();
        for word in [7, metadata.len() as u32, 32] {
            note.extend(word.to_le_bytes());
        }
        note.extend(b"AMDGPU\0\0");
        note.extend(metadata);
        note.resize(note.len().next_multiple_of(4), 0);
        let segment = Segment {
            kind: PT_NOTE,
            flags: 4,
            at: self.bytes(&note),
            len: note.len(),
            vaddr: 0,
            memory_bytes: 0,
        };
        self.segments.push(segment);
        segment
    }

    /// Adds another header like one that there is.
    pub(super) fn again(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// Adds a header for a range of the body that is loaded at an address.
    pub(super) fn load(&mut self, (at, len): (usize, usize), vaddr: u64, is_executable: bool) {
        let flags = if is_executable { 5 } else { 6 };
        self.segments.push(Segment { kind: PT_LOAD, flags, at, len, vaddr, memory_bytes: len as u64 });
    }

    fn section(&mut self, kind: u32, flags: u64, link: u32, entry_bytes: u64, (at, len): (usize, usize)) {
        self.sections.push(Section { kind, flags, link, entry_bytes, at, len });
    }

    /// Adds `headers` section headers for the same table of `entries` relocations of symbol `symbol`.
    pub(super) fn relocations(&mut self, entries: usize, headers: usize, symbol: u64) {
        let mut table = Vec::new();
        let info = symbol << 32 | if symbol == 0 { R_RELATIVE64 } else { R_ABS64 };
        for number in [0, info, 0].repeat(entries) {
            table.extend(number.to_le_bytes());
        }
        let range = (self.bytes(&table), table.len());
        let symbols = self.sections.iter().position(|section| section.kind == SHT_DYNSYM).unwrap_or(0);
        for _ in 0..headers {
            self.section(SHT_RELA, SHF_ALLOC, symbols as u32, 24, range);
        }
    }

    /// Adds a symbol table of variables, which are defined or not, whose names begin at these places of a text.
    pub(super) fn symbols(&mut self, names: &[u8], starts: impl Iterator<Item = u32>, is_defined: bool) {
        let names = (self.bytes(names), names.len());
        self.section(SHT_STRTAB, 0, 0, 0, names);
        let link = self.sections.len() as u32 - 1;
        let mut table = vec![0; 24];
        for start in starts {
            table.extend(start.to_le_bytes());
            // A global object.
            table.extend([0x11, 0, u8::from(is_defined), 0]);
            table.extend([0; 16]);
        }
        let range = (self.bytes(&table), table.len());
        self.section(SHT_DYNSYM, SHF_ALLOC, link, 24, range);
    }

    /// Returns the file.
    pub(super) fn build(&self) -> Vec<u8> {
        let body_at = 64 + 56 * self.segments.len();
        let sections_at = (body_at + self.body.len()).next_multiple_of(8);
        let mut file = b"\x7fELF\x02\x01\x01\x40\x03".to_vec();
        file.resize(16, 0);
        file.extend([3, 0]);
        file.extend(MACHINE.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        for number in [0, 64, if self.sections.is_empty() { 0 } else { sections_at as u64 }] {
            file.extend(number.to_le_bytes());
        }
        file.extend(GFX942.to_le_bytes());
        for number in [64, 56, self.segments.len() as u16, 64, self.sections.len() as u16, 0] {
            file.extend(number.to_le_bytes());
        }
        for segment in &self.segments {
            file.extend(segment.kind.to_le_bytes());
            file.extend(segment.flags.to_le_bytes());
            let offset = (body_at + segment.at) as u64;
            let [vaddr, len] = [segment.vaddr, segment.len as u64];
            for number in [offset, vaddr, vaddr, len, segment.memory_bytes.max(len), 4] {
                file.extend(number.to_le_bytes());
            }
        }
        file.extend(&self.body);
        file.resize(sections_at, 0);
        for section in &self.sections {
            file.extend([0; 4]);
            file.extend(section.kind.to_le_bytes());
            for number in [section.flags, 0, (body_at + section.at) as u64, section.len as u64] {
                file.extend(number.to_le_bytes());
            }
            file.extend(section.link.to_le_bytes());
            file.extend([0; 4]);
            for number in [8, section.entry_bytes] {
                file.extend(number.to_le_bytes());
            }
        }
        file
    }
}

/// Encodes a text of up to 255 bytes as MessagePack.
fn text(text: &str) -> Vec<u8> {
    let len = text.len() as u8;
    let marker = if len < 32 { vec![0xa0 | len] } else { vec![0xd9, len] };
    [&marker, text.as_bytes()].concat()
}

/// Returns metadata with these keys, whose values are MessagePack.
pub(super) fn metadata(pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut note = vec![0x80 | (pairs.len() + 1) as u8];
    note.extend([text("amdhsa.version"), vec![0x92, 1, 2]].concat());
    for (key, value) in pairs {
        note.extend(text(key));
        note.extend_from_slice(value);
    }
    note
}

/// Encodes a list of `count` equal values.
pub(super) fn list(count: u32, value: &[u8]) -> Vec<u8> {
    [&[0xdd], &count.to_be_bytes()[..], &value.repeat(count as usize)].concat()
}

/// Encodes a kernel with as few bytes as possible, and `args` arguments with as few bytes as possible.
pub(super) fn kernel(args: u32) -> Vec<u8> {
    let arg = [vec![0x83], text(".offset"), vec![0], text(".size"), vec![0], text(".value_kind"), text("")];
    [
        vec![0x84],
        [text(".name"), text("")].concat(),
        [text(".symbol"), text("")].concat(),
        [text(".kernarg_segment_size"), vec![0]].concat(),
        [text(".args"), list(args, &arg.concat())].concat(),
    ]
    .concat()
}

/// Returns a code object with a kernel of this name, whose descriptor is nowhere.
pub(super) fn without_descriptor(name: &str) -> Vec<u8> {
    let kernel = [
        vec![0x83],
        [text(".name"), text(name)].concat(),
        [text(".symbol"), text("k")].concat(),
        [text(".kernarg_segment_size"), vec![0]].concat(),
    ];
    let mut elf = Elf::default();
    elf.note(&metadata(&[("amdhsa.kernels", &list(1, &kernel.concat()))]));
    elf.symbols(b"k\0", std::iter::once(0), true);
    elf.build()
}

/// Returns a compressed bundle that says it has `claim` bytes, and unpacks to `yields` zeros.
pub(super) fn zeros(claim: u64, yields: u64) -> Vec<u8> {
    // A frame without a length, with a window of 8 MiB; blocks that repeat one byte.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    let block = 128u64 << 10;
    let blocks = yields.div_ceil(block).max(1);
    for index in 0..blocks {
        let len = block.min(yields - index * block) as u32;
        let header = len << 3 | 1 << 1 | u32::from(index + 1 == blocks);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    let mut bundle = b"CCOB\x03\0\x01\0".to_vec();
    for number in [32 + frame.len() as u64, claim, 0] {
        bundle.extend(number.to_le_bytes());
    }
    bundle.extend(frame);
    bundle
}
