//! Source lines of the files that processes have mapped, by the byte of the file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::rc::Rc;

use object::{Object, ObjectSegment};

use crate::{Frame, Lines};

/// A file with code: its lines, and where its bytes lie in memory.
struct Code {
    lines: Lines,
    /// Offset in the file, address, length in bytes.
    segments: Vec<(u64, u64, u64)>,
}

/// Files with code, each of which is read once.
#[derive(Default)]
pub struct Files(RefCell<HashMap<String, Option<Rc<Code>>>>);

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("read", &self.0.borrow().len()).finish()
    }
}

impl Files {
    /// Returns the frames of the instruction at a byte of a file, as [`Lines::frames`] does; `None` if the file cannot be read or no code
    /// is there.
    pub fn frames(&self, path: &str, offset: u64) -> Option<Vec<Frame>> {
        let code = self.code(path)?;
        let segment = code.segments.iter().find(|(from, _, len)| offset >= *from && offset - from < *len);
        let (from, address, _) = segment?;
        Some(code.lines.frames(offset - from + address))
    }

    fn code(&self, path: &str) -> Option<Rc<Code>> {
        let read = || {
            let bytes = fs::read(path).ok()?;
            let file = object::File::parse(&*bytes).ok()?;
            let segment = |segment: object::Segment<'_, '_>| {
                let (offset, len_bytes) = segment.file_range();
                (offset, segment.address(), len_bytes)
            };
            let segments = file.segments().map(segment).collect();
            Some(Rc::new(Code { lines: Lines::new(&bytes), segments }))
        };
        self.0.borrow_mut().entry(path.to_owned()).or_insert_with(read).clone()
    }
}
