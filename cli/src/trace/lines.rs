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

/// Returns the line of the innermost call that is the program's own; without debug information the function or the place in the file.
fn line(files: &Files, stack: &str) -> Option<String> {
    let short = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let call = |call: &str| {
        let (path, offset) = call.rsplit_once("+0x")?;
        let frames = files.frames(path, u64::from_str_radix(offset, 16).ok()?).unwrap_or_default();
        Some((short(path), short(call), frames))
    };
    let calls: Vec<(String, String, Vec<Frame>)> = stack.split(';').filter_map(call).collect();
    let frames: Vec<Frame> = calls.iter().flat_map(|(.., frames)| frames.clone()).collect();
    if let Some(frame) = frames::own(&frames).filter(|frame| frame.line > 0)
        && let Some(file) = &frame.file
    {
        return Some(format!("{}:{}", short(file), frame.line));
    }
    let (file, place, frames) = calls.into_iter().next()?;
    let function = frames.into_iter().find_map(|frame| frame.function);
    Some(function.map_or(place, |function| format!("{function} of {file}")))
}
