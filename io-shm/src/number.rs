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

/// Numbers that one process writes at any time and another reads: so the writer says them without a call, and what it has said is there
/// when it has ended. Either side can write what it likes.
#[derive(Debug)]
pub struct Numbers {
    memory: Memory,
    count: usize,
}

impl Numbers {
    /// Creates `count` numbers, all 0; returns them with the descriptor to pass on.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make(count: usize) -> io::Result<(Self, OwnedFd)> {
        let (memory, file) = Memory::make(Self::len_bytes(count))?;
        Ok((Self { memory, count }, file))
    }

    /// Maps `count` numbers that another process made.
    ///
    /// # Errors
    /// The file has another size, could be made shorter, or cannot be mapped.
    pub fn take(file: &OwnedFd, count: usize) -> io::Result<Self> {
        let memory = Memory::take(file, Self::len_bytes(count))?;
        Ok(Self { memory, count })
    }

    /// Returns the length of the mapping: whole pages.
    fn len_bytes(count: usize) -> usize {
        count.saturating_mul(size_of::<u64>()).max(1).next_multiple_of(LEN)
    }

    /// Sets the first numbers; what is beyond the last one is left out.
    pub fn set(&self, numbers: impl IntoIterator<Item = u64>) {
        for (at, number) in (0..self.count).zip(numbers) {
            self.memory.number(at * size_of::<u64>()).store(number, Ordering::Relaxed);
        }
    }

    /// Returns the numbers, each as it was a moment ago.
    pub fn get(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.count).map(|at| self.memory.number(at * size_of::<u64>()).load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_the_other_side_has_set() {
        for count in [0, 1, 511, 512, 513] {
            let (reader, file) = Numbers::make(count).unwrap();
            assert!(reader.get().eq(std::iter::repeat_n(0, count)));
            let writer = Numbers::take(&file, count).unwrap();
            // More than there is room for changes nothing else.
            writer.set((0..2000).map(|number| u64::MAX - number));
            drop((writer, file));
            assert!(reader.get().eq((0..count as u64).map(|number| u64::MAX - number)), "{count}");
        }
        let (_numbers, file) = Numbers::make(512).unwrap();
        assert!(Numbers::take(&file, 513).is_err(), "more than there are");
    }

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
