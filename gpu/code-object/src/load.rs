//! Loads a code object into memory.

use crate::{CodeObject, LoadError, Relocation};

impl CodeObject {
    /// Copies the segments of `elf`, the bytes this was parsed from, to `memory`, and relocates them for the load address
    /// `base`. `memory` has at least [`CodeObject::image_bytes`] bytes; bytes between segments are zeroed. `base` must be a
    /// multiple of every segment's alignment (4096 with all compilers).
    pub fn load(&self, elf: &[u8], base: u64, memory: &mut [u8]) -> Result<(), LoadError> {
        let (needed, len) = (self.image_bytes(), memory.len() as u64);
        let memory = usize::try_from(needed)
            .ok()
            .and_then(|needed| memory.get_mut(..needed))
            .ok_or(LoadError::Memory { len, needed })?;
        memory.fill(0);
        let mut store = |vaddr: u64, bytes: &[u8]| {
            let from = usize::try_from(vaddr).ok().and_then(|vaddr| memory.get_mut(vaddr..));
            let place = from.and_then(|from| from.get_mut(..bytes.len()));
            place.is_some_and(|place| {
                place.copy_from_slice(bytes);
                true
            })
        };
        self.place(elf, len, &mut store)?;
        relocate(self.relocations(), base, |_| None, store)
    }

    /// Gives the bytes of each segment of `elf`, the bytes this was parsed from, to `store`, with their address relative to the load
    /// address. `store` returns whether they lie in the memory, which has `len_bytes` bytes. What the file does not contain is not touched,
    /// so that large device arrays cost memory only when they are used; the memory is zeroed before.
    ///
    /// # Errors
    /// [`LoadError::Memory`] if it does not suffice, [`LoadError::File`] if `elf` is another file.
    pub fn place(
        &self,
        elf: &[u8],
        len_bytes: u64,
        mut store: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), LoadError> {
        let outside = || LoadError::Memory { len: len_bytes, needed: self.image_bytes() };
        if len_bytes < self.image_bytes() {
            return Err(outside());
        }
        for segment in self.segments() {
            let bytes = elf.get(segment.file.clone()).ok_or_else(|| LoadError::File(segment.file.clone()))?;
            if !store(segment.vaddr, bytes) {
                return Err(outside());
            }
        }
        Ok(())
    }

    /// Gives the value of each [applied relocation](Self::applied_relocations) for the load address `base` to `store`, as
    /// [`place`](Self::place) does with segments. `address_of` says the addresses of symbols that the code object does not define.
    ///
    /// # Errors
    /// [`LoadError::Undefined`] for a symbol that has no address, [`LoadError::Place`] for a value outside of the memory. Values before it
    /// have been stored.
    pub fn relocate(
        &self,
        base: u64,
        address_of: impl Fn(&str) -> Option<u64>,
        store: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<(), LoadError> {
        relocate(self.applied_relocations(), base, address_of, store)
    }

    /// Iterates over the code: the bytes of each executable segment in `elf`, the bytes this was parsed from, with their address relative
    /// to the load address.
    pub fn code<'a>(&'a self, elf: &'a [u8]) -> impl Iterator<Item = (u64, &'a [u8])> {
        let executable = self.segments().iter().filter(|segment| segment.executable);
        executable.filter_map(move |segment| Some((segment.vaddr, elf.get(segment.file.clone())?)))
    }
}

fn relocate<'a>(
    relocations: impl IntoIterator<Item = &'a Relocation>,
    base: u64,
    address_of: impl Fn(&str) -> Option<u64>,
    mut store: impl FnMut(u64, &[u8]) -> bool,
) -> Result<(), LoadError> {
    for relocation in relocations {
        let (value, len) = relocation.bytes_with(base, &address_of)?;
        if !store(relocation.vaddr, value.get(..len).unwrap_or_default()) {
            return Err(LoadError::Place(relocation.vaddr));
        }
    }
    Ok(())
}
