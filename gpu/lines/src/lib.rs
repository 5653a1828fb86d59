//! Source lines of machine code: from an address in an ELF file, by its debug information, to function, file, line and column.
//!
//! [`Lines`] reads the code objects of GPUs and the libraries and programs of the host alike. Code without debug information has
//! the names of its symbols.

#![forbid(unsafe_code)]

mod files;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use files::Files;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

type Slice = EndianArcSlice<RunTimeEndian>;

/// A place in the source, and the function that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The function's name as programmers write it, if it is known.
    pub function: Option<String>,
    /// The file, as the compiler was told its name; `None` without debug information.
    pub file: Option<String>,
    /// The line, counted from 1; 0 if it is not known.
    pub line: u32,
    /// The column, counted from 1; 0 if it is not known.
    pub column: u32,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function.as_deref().unwrap_or("?");
        match &self.file {
            None => f.write_str(function),
            Some(file) if self.line == 0 => write!(f, "{function} at {file}"),
            Some(file) => write!(f, "{function} at {file}:{}", self.line),
        }
    }
}

/// A symbol that covers code.
struct Code {
    address: u64,
    len_bytes: u64,
    name: String,
}

/// The debug information of one ELF file.
pub struct Lines {
    dwarf: Option<addr2line::Context<Slice>>,
    /// By address.
    code: Vec<Code>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("symbols", &self.code.len()).finish_non_exhaustive()
    }
}

impl Lines {
    /// Reads the debug information of `elf`. What is missing or broken is left out.
    pub fn new(elf: &[u8]) -> Self {
        let Ok(file) = object::File::parse(elf) else { return Self { dwarf: None, code: Vec::new() } };
        let load = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
            let section = file.section_by_name(id.name());
            let data =
                section.and_then(|section| section.uncompressed_data().ok()).unwrap_or(Cow::Borrowed(&[]));
            Ok(EndianArcSlice::new(Arc::from(&*data), RunTimeEndian::Little))
        };
        let dwarf = Dwarf::load(load).and_then(addr2line::Context::from_dwarf).ok();
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let mut code: Vec<_> = symbols
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| {
                let name = symbol.name().ok()?.to_owned();
                Some(Code { address: symbol.address(), len_bytes: symbol.size(), name })
            })
            .collect();
        code.sort_by_key(|code| code.address);
        code.dedup_by_key(|code| code.address);
        Self { dwarf, code }
    }

    /// Returns the frames of the instruction at `address`, which is one of the file: where it is first, then where that was inlined.
    /// Without debug information there is one frame with a name at most; there is none where no symbol is either.
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = self.inlined(address);
        if frames.is_empty() {
            frames.extend(
                self.symbol(address)
                    .map(|(name, _)| Frame { function: Some(demangled(name)), ..Frame::default() }),
            );
        }
        frames
    }

    /// Returns the name of the symbol whose code contains `address`, and how many bytes before `address` it begins.
    pub fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let next = self.code.partition_point(|code| code.address <= address);
        let code = self.code.get(next.checked_sub(1)?)?;
        let offset = address - code.address;
        (code.len_bytes == 0 || offset < code.len_bytes).then_some((&*code.name, offset))
    }

    fn inlined(&self, address: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        let Some(dwarf) = &self.dwarf else { return found };
        let Ok(mut frames) = dwarf.find_frames(address).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let function = name.map(|name| demangled(name.as_ref())).or_else(|| {
                self.symbol(address).filter(|_| frame.function.is_none()).map(|(name, _)| demangled(name))
            });
            let place = frame.location;
            found.push(Frame {
                function,
                file: place.as_ref().and_then(|place| place.file.map(str::to_owned)),
                line: place.as_ref().and_then(|place| place.line).unwrap_or(0),
                column: place.as_ref().and_then(|place| place.column).unwrap_or(0),
            });
        }
        found.retain(|frame| frame.function.is_some() || frame.file.is_some());
        found
    }
}

/// Returns the name of a function as programmers write it; `symbol` itself if it is not mangled.
pub fn demangled(symbol: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    let name = cpp_demangle::Symbol::new(symbol).ok().and_then(|name| name.demangle().ok());
    name.unwrap_or_else(|| symbol.to_owned())
}
