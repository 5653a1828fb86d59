//! Which files the process has mapped as code, and call stacks by them.

use std::fs::read_to_string;

/// A mapped part of a file.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    start: usize,
    end: usize,
    offset: usize,
    module: usize,
}

/// The files that the process has mapped as code.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    modules: Vec<String>,
    mapped: Vec<Mapped>,
}

/// Returns the return addresses of the calls on the stack, the innermost first, at most so many.
pub(crate) fn return_addresses(max: usize) -> Vec<usize> {
    let mut addresses = Vec::with_capacity(max);
    backtrace::trace(|frame| {
        addresses.push(frame.ip().addr());
        addresses.len() < max
    });
    addresses
}

impl Maps {
    /// Returns the files, by their number.
    pub(crate) fn modules(&self) -> &[String] {
        &self.modules
    }

    /// Returns the file and the byte of it in which a call is that returns to this address; `None` for what is in no file.
    pub(crate) fn call(&mut self, return_address: usize) -> Option<(usize, usize)> {
        // The call is before the address that it returns to.
        let address = return_address.checked_sub(1)?;
        if self.find(address).is_none() {
            self.read();
        }
        let mapped = self.find(address)?;
        Some((mapped.module, address - mapped.start + mapped.offset))
    }

    fn find(&self, address: usize) -> Option<&Mapped> {
        self.mapped.iter().find(|mapped| (mapped.start..mapped.end).contains(&address))
    }

    fn read(&mut self) {
        self.mapped.clear();
        for line in read_to_string("/proc/self/maps").unwrap_or_default().lines() {
            let mut words = line.splitn(6, ' ');
            let (range, rights, offset) = (words.next(), words.next(), words.next());
            let path = words.nth(2).map_or("", str::trim);
            let Some((start, end)) = range.and_then(|range| range.split_once('-')) else { continue };
            if !rights.is_some_and(|rights| rights.contains('x')) || !path.starts_with('/') {
                continue;
            }
            let number = |text: &str| usize::from_str_radix(text, 16).ok();
            let (Some(start), Some(end), Some(offset)) =
                (number(start), number(end), offset.and_then(number))
            else {
                continue;
            };
            let module = self.modules.iter().position(|known| known == path).unwrap_or_else(|| {
                self.modules.push(path.to_owned());
                self.modules.len() - 1
            });
            self.mapped.push(Mapped { start, end, offset, module });
        }
    }
}
