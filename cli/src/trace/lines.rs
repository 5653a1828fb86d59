//! The lines of the program's source that calls of a trace come from.

use std::collections::HashMap;

use hipr_lines::{Files, Frame};
use hipr_trace::{Item, Value, arg};

use crate::frames;

/// Adds the line to each call whose stack is known.
pub(super) fn find(items: &mut [Item]) {
    let files = Files::default();
    let mut known: HashMap<String, Option<String>> = HashMap::new();
    for item in items {
        let Item::Slice(slice) = item else { continue };
        let Some(stack) = slice.text(arg::STACK).filter(|_| slice.arg(arg::LINE).is_none()) else { continue };
        let line = match known.get(stack) {
            Some(line) => line.clone(),
            None => {
                let line = line(&files, stack);
                known.insert(stack.to_owned(), line.clone());
                line
            }
        };
        if let Some(line) = line {
            slice.args.push((arg::LINE.to_owned(), Value::Text(line)));
        }
    }
}

/// Returns the line of the innermost call that is the program's own.
fn line(files: &Files, stack: &str) -> Option<String> {
    let call = |call: &str| {
        let (path, offset) = call.rsplit_once("+0x")?;
        files.frames(path, u64::from_str_radix(offset, 16).ok()?)
    };
    let frames: Vec<Frame> = stack.split(';').filter_map(call).flatten().collect();
    let frame = frames::own(&frames)?;
    let file = frame.file.as_deref()?;
    let file = file.rsplit('/').next().unwrap_or(file);
    (frame.line > 0).then(|| format!("{file}:{}", frame.line))
}
