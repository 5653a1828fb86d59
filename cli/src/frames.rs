//! Which frame of a call stack people want to see.

use hipr_lines::Frame;

/// Returns the first frame that is in no header of the compiler or of HIP, or else the first with a line.
pub(crate) fn own(frames: &[Frame]) -> Option<&Frame> {
    let has_line = |frame: &&Frame| frame.file.is_some() && frame.line > 0;
    let is_own = |frame: &&Frame| {
        frame.file.as_deref().is_some_and(|file| {
            !["/usr/", "/opt/rocm", "/lib/clang/"].iter().any(|folder| file.contains(folder))
        })
    };
    let lines = || frames.iter().filter(has_line);
    lines().find(is_own).or_else(|| lines().next()).or(frames.first())
}
