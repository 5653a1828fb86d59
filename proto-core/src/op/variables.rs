//! Variables of modules: how their names are sent, and what is told of them.

use super::define::layout;
use super::{NAME_MAX_BYTES, name_of};
use crate::wire::{Sink, WireError};

/// Maximum number of variables in a `MODULE_VARIABLES`.
pub const VARIABLES_MAX: usize = 64;
/// Maximum number of bytes of their names, with a NUL behind each.
pub const VARIABLE_NAMES_MAX_BYTES: usize = 8192;

layout! {
    /// A variable of a module: its address and size in bytes; zeros stand for one that is not there.
    Variable { address: u64, size: u64 }
}

/// Appends the first of these names as the tail of `MODULE_VARIABLES`, as many as it may have; returns their number. A name that is
/// empty, has a NUL or is longer than [`NAME_MAX_BYTES`] ends them.
pub fn put_variable_names<'a>(names: impl IntoIterator<Item = &'a str>, out: &mut impl Sink) -> usize {
    let mut left = VARIABLE_NAMES_MAX_BYTES;
    let fits = |name: &&str| {
        let is_name = name_of(name.as_bytes()).is_ok_and(|text| text.len() == name.len());
        let rest = left.checked_sub(name.len() + 1).filter(|_| is_name);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let put = names.into_iter().take(VARIABLES_MAX).take_while(fits).map(|name| {
        out.put_bytes(name.as_bytes());
        out.put_bytes(&[0]);
    });
    put.count()
}

/// Returns the names in the tail of a `MODULE_VARIABLES` that says that there are `count`.
///
/// # Errors
/// More names or bytes than there may be, another number of names, or one that is empty, not UTF-8, or longer than [`NAME_MAX_BYTES`].
pub fn variable_names(tail: &[u8], count: u32) -> Result<impl Iterator<Item = &str>, WireError> {
    let (have, max) = (tail.len() as u64, VARIABLE_NAMES_MAX_BYTES as u64);
    if have > max {
        return Err(WireError::Long { have, max });
    }
    let names = || tail.split_inclusive(|byte| *byte == 0);
    let is_whole = tail.is_empty() || tail.ends_with(&[0]);
    if !is_whole || names().count() != count as usize || count as usize > VARIABLES_MAX {
        return Err(WireError::Name);
    }
    names().try_for_each(|name| name_of(name).map(drop))?;
    // None is left out: all were read above.
    Ok(names().filter_map(|name| name_of(name).ok()))
}

const _: () = assert!(NAME_MAX_BYTES < VARIABLE_NAMES_MAX_BYTES);

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn names_are_read_as_they_were_put() {
        let long = "x".repeat(NAME_MAX_BYTES);
        let many: Vec<String> = (0..VARIABLES_MAX + 3).map(|n| alloc::format!("v{n}")).collect();
        let cases: [(Vec<&str>, usize); 6] = [
            (Vec::new(), 0),
            (["a", "b c", "d"].into(), 3),
            (many.iter().map(String::as_str).collect(), VARIABLES_MAX),
            ([long.as_str(); 9].into(), 7),
            (["a", "", "b"].into(), 1),
            (["a", "b\0c"].into(), 1),
        ];
        for (names, expected) in cases {
            let mut tail = Vec::new();
            let put = put_variable_names(names.iter().copied(), &mut tail);
            assert_eq!(put, expected, "{names:?}");
            let read: Vec<&str> = variable_names(&tail, put as u32).expect("names").collect();
            assert_eq!(read, names[..put]);
        }
    }

    #[test]
    fn what_has_other_names_is_refused() {
        let long = [[b'x'; NAME_MAX_BYTES + 1].as_slice(), &[0]].concat();
        let many = b"x\0".repeat(VARIABLES_MAX + 1);
        let bytes = [[b'x'; NAME_MAX_BYTES].as_slice(), &[0]].concat().repeat(8);
        let cases: [(&[u8], u32); 9] = [
            (b"a\0", 0),
            (b"a\0", 2),
            (b"a", 1),
            (b"a\0b", 2),
            (b"a\0\0", 2),
            (b"\xff\0", 1),
            (&long, 1),
            (&many, VARIABLES_MAX as u32 + 1),
            (&bytes, 8),
        ];
        for (tail, count) in cases {
            assert!(variable_names(tail, count).is_err(), "{count} of {} bytes", tail.len());
        }
    }
}
