//! A number that one process writes at any time and others can only read.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use crate::memory::Memory;

/// Size of the mapping: a page.
const LEN: usize = 4096;

/// The writer's side of the number.
#[derive(Debug)]
pub struct NumberWriter(Memory);

/// The side of who reads it.
#[derive(Debug)]
pub struct NumberReader(Memory);

impl NumberWriter {
    /// Creates the number; returns it with the descriptor to pass on, with which nobody can write it.
    ///
    /// # Errors
    /// Those of the system, which has to be Linux 5.1 or later.
    pub fn make() -> io::Result<(Self, OwnedFd)> {
        let (memory, file) = Memory::make_to_read(LEN)?;
        Ok((Self(memory), file))
    }

    /// Sets the number. Others read it some time later.
    pub fn set(&self, number: u64) {
        self.0.number(0).store(number, Ordering::Relaxed);
    }
}

impl NumberReader {
    /// Maps the number that another process made.
    ///
    /// # Errors
    /// The file has another size, could be made shorter, or cannot be mapped.
    pub fn take(file: &OwnedFd) -> io::Result<Self> {
        Memory::take_to_read(file, LEN).map(Self)
    }

    /// Returns what the number was a moment ago.
    pub fn get(&self) -> u64 {
        self.0.number(0).load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_descriptor_reads_the_number_and_cannot_write_it() {
        let (writer, file) = NumberWriter::make().unwrap();
        let reader = NumberReader::take(&file).unwrap();
        assert_eq!(reader.get(), 0);
        writer.set(u64::MAX - 7);
        assert_eq!(reader.get(), u64::MAX - 7);
        assert!(Memory::take(&file, LEN).is_err(), "it cannot be mapped to be written");
        assert!(rustix::io::write(&file, &[1]).is_err());
        assert_eq!(reader.get(), u64::MAX - 7);
    }
}
