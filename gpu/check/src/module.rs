//! What is known of a module's code and variables.

use std::ops::Range;

use hipr_lines::{Frame, Lines, demangled};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

use crate::lock::{Lock, lock};

/// A variable: its name, and its bytes from the module's beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) range: Range<u64>,
}

/// A module that is loaded.
#[derive(Debug)]
pub(crate) struct Module {
    base: u64,
    elf: Box<[u8]>,
    /// Read when it is first needed.
    lines: Lock<Option<Lines>>,
    /// By their first byte.
    variables: Vec<Variable>,
    /// The bytes that only variables have: what the program can write.
    data: Vec<Range<u64>>,
}

impl Module {
    pub(crate) fn new(base: u64, elf: &[u8]) -> Self {
        let (mut variables, mut data) = (Vec::new(), Vec::new());
        if let Ok(file) = object::File::parse(elf) {
            for symbol in file.symbols().chain(file.dynamic_symbols()) {
                if symbol.kind() == SymbolKind::Data && symbol.is_definition() && symbol.size() > 0 {
                    let range = symbol.address()..symbol.address().saturating_add(symbol.size());
                    let name = symbol.name().unwrap_or("?");
                    variables.push(Variable { name: demangled(name), range });
                }
            }
            for section in file.sections() {
                let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
                let is_data =
                    sh_flags & u64::from(elf::SHF_ALLOC) != 0 && sh_flags & u64::from(elf::SHF_WRITE) != 0;
                let is_named =
                    section.name().is_ok_and(|name| name.starts_with(".data") || name.starts_with(".bss"));
                if is_data && is_named {
                    data.push(section.address()..section.address().saturating_add(section.size()));
                }
            }
        }
        variables.sort_by_key(|variable| (variable.range.start, variable.range.end));
        variables.dedup_by(|later, first| later.range == first.range);
        Self { base, elf: elf.into(), lines: Lock::default(), variables, data }
    }

    /// Returns the frames of the instruction at `pc`.
    pub(crate) fn frames(&self, pc: u64) -> Vec<Frame> {
        let mut lines = lock(&self.lines);
        lines.get_or_insert_with(|| Lines::new(&self.elf)).frames(pc.wrapping_sub(self.base))
    }

    /// Returns the last variable that begins at or before byte `at`.
    fn before(&self, at: u64) -> Option<&Variable> {
        let next = self.variables.partition_point(|variable| variable.range.start <= at);
        self.variables.get(next.checked_sub(1)?)
    }

    /// Returns the variable that has byte `at`.
    pub(crate) fn variable(&self, at: u64) -> Option<Variable> {
        self.before(at).filter(|variable| at < variable.range.end).cloned()
    }

    /// Returns the variable that has all bytes from `start` to `end`.
    pub(crate) fn whole(&self, start: u64, end: u64) -> Option<Range<u64>> {
        let variable = self.before(start)?;
        (end <= variable.range.end).then(|| variable.range.clone())
    }

    /// Returns the variable that an access of the bytes from `start` to `end` leaves; `None` if it is right, or if what is there has no name.
    pub(crate) fn left(&self, start: u64, end: u64) -> Option<Variable> {
        let variable = self.before(start);
        match variable {
            Some(variable) if start < variable.range.end => {
                (end > variable.range.end).then(|| variable.clone())
            }
            // Between variables, or behind the last one of a section.
            _ => {
                let section = self
                    .data
                    .iter()
                    .find(|data| data.start <= start && start < data.end.next_multiple_of(4096))?;
                let next = self.variables.iter().find(|variable| variable.range.start > start);
                let near = variable.filter(|variable| variable.range.start >= section.start);
                near.or(next).cloned()
            }
        }
    }
}
