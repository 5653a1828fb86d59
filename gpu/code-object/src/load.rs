//! Loads a code object into memory.

use crate::{CodeObject, LoadError};

impl CodeObject {
    /// Copies the segments of `elf`, the bytes this was parsed from, to `memory`, and relocates them for the load address
    /// `base`. `memory` has at least [`CodeObject::image_bytes`] bytes; bytes between segments are zeroed. `base` must be a
    /// multiple of every segment's alignment (4096 with all compilers).
    pub fn load(&self, elf: &[u8], base: u64, memory: &mut [u8]) -> Result<(), LoadError> {
        let (needed, len) = (self.image_bytes(), memory.len() as u64);
        let outside = LoadError::Memory { len, needed };
        let memory = usize::try_from(needed)
            .ok()
            .and_then(|needed| memory.get_mut(..needed))
            .ok_or(outside.clone())?;
        memory.fill(0);
        for segment in self.segments() {
            let bytes = elf.get(segment.file.clone()).ok_or_else(|| LoadError::File(segment.file.clone()))?;
            slice(memory, segment.vaddr, bytes.len()).ok_or_else(|| outside.clone())?.copy_from_slice(bytes);
        }
        for relocation in self.relocations() {
            let (value, len) = relocation.bytes(base)?;
            let place = slice(memory, relocation.vaddr, len).ok_or(LoadError::Place(relocation.vaddr))?;
            place.copy_from_slice(value.get(..len).unwrap_or_default());
        }
        Ok(())
    }
}

fn slice(memory: &mut [u8], vaddr: u64, len: usize) -> Option<&mut [u8]> {
    memory.get_mut(usize::try_from(vaddr).ok()?..)?.get_mut(..len)
}
