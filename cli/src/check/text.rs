//! Reports for people.

use std::fmt::Write as _;
use std::fs;

use hipr_check::{Kind, Memory, Near, Place};
use hipr_lines::{Frame, demangled};

use super::Report;
use super::finding::{Described, access_name, distance, triple};
use crate::frames::own;

/// The frames of a stack that are shown.
const FRAMES_MAX: usize = 8;

/// Writes text in colours, or without.
struct Writer {
    text: String,
    has_colors: bool,
}

impl Writer {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{:indent$}{}", "", hipr_log::escaped(text, 4096));
    }

    fn heading(&mut self, code: &str, kind: &str, text: &str) {
        let (on, bold, off) = if self.has_colors { (code, "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
        let text = hipr_log::escaped(text, 4096);
        let _ = writeln!(self.text, "{on}{kind}{off}{bold}: {text}{off}");
    }

    fn frames(&mut self, indent: usize, frames: &[Frame]) {
        for frame in frames.iter().take(FRAMES_MAX) {
            self.line(indent, &format!("in {frame}"));
        }
        if frames.len() > FRAMES_MAX {
            self.line(indent, &format!("and {} more", frames.len() - FRAMES_MAX));
        }
    }

    /// Shows the line of the source, if its file can be read.
    fn source(&mut self, frame: &Frame) {
        let Some(file) = &frame.file else { return };
        let Ok(text) = fs::read_to_string(file) else { return };
        if let Some(line) = (frame.line as usize).checked_sub(1).and_then(|number| text.lines().nth(number)) {
            self.line(4, &format!("{} | {}", frame.line, line.trim_end()));
        }
    }

    fn place(&mut self, place: &Place) {
        let block =
            triple(place, |place| place.block).map_or(String::new(), |block| format!(", block {block}"));
        let thread =
            triple(place, |place| place.thread).map_or(String::new(), |thread| format!(", thread {thread}"));
        let kernel = demangled(&place.kernel);
        let offset = if place.frames.iter().all(|frame| frame.file.is_none()) {
            format!(" at byte {:#x} of its code", place.offset_bytes)
        } else {
            String::new()
        };
        self.line(4, &format!("in kernel {kernel}{block}{thread}{offset}"));
        if place.frames.iter().any(|frame| frame.file.is_some()) {
            self.frames(6, &place.frames);
        }
    }

    fn near(&mut self, found: &Described, near: &Near) {
        let what = match &near.variable {
            Some(name) if near.address == 0 => format!("the {} bytes of {name}", near.len_bytes),
            Some(name) => format!("variable {name} ({} bytes at {:#x})", near.len_bytes, near.address),
            None if near.is_freed => {
                format!("{} bytes at {:#x} that are freed", near.len_bytes, near.address)
            }
            None => format!("{} bytes at {:#x}", near.len_bytes, near.address),
        };
        match &found.finding.accessed {
            Some(access) => {
                let place = distance(access.address, access.len_bytes, near);
                self.line(4, &format!("address {:#x} is {place} {what}", access.address));
            }
            // The message says how many bytes.
            None if found.finding.kind == Kind::Leak => {}
            None => self.line(4, &format!("it is about {what}")),
        }
    }

    fn finding(&mut self, found: &Described) {
        let finding = &found.finding;
        self.heading("\x1b[1;31m", finding.kind.name(), &found.message);
        if let Some(frame) = found.frame() {
            self.line(2, &format!("--> {}", place_of(frame)));
            self.source(frame);
        }
        if let Some(place) = &finding.place {
            self.place(place);
        }
        if let Some(stack) = &found.host {
            self.line(4, &format!("by {}", stack.function));
            self.frames(6, &stack.frames);
        }
        match (&finding.near, &finding.accessed) {
            (Some(near), _) => self.near(found, near),
            (None, Some(access)) => match access.memory {
                Memory::Device => self.line(4, &format!("address {:#x}", access.address)),
                Memory::Lds => self.line(4, &format!("byte {} of LDS", access.address)),
                Memory::Scratch => self.line(4, &format!("byte {} of the thread's scratch", access.address)),
            },
            (None, None) => {}
        }
        for (what, stack) in [("allocated", &found.allocated_at), ("freed", &found.freed_at)] {
            if let Some(stack) = stack {
                self.line(4, &format!("{what} by {}", stack.function));
                self.frames(6, &stack.frames);
            }
        }
        if let Some(other) = &finding.other {
            match &other.place {
                None => self.line(4, &format!("the other access: {} by a copy", access_name(other.kind))),
                Some(place) => {
                    let line = own(&place.frames).map(place_of).unwrap_or_default();
                    self.line(4, &format!("the other access: {} {line}", access_name(other.kind)));
                    self.place(place);
                }
            }
        }
        if !finding.note.is_empty() {
            self.line(4, &finding.note);
        }
        if finding.count > 1 && finding.kind != Kind::Leak {
            self.line(4, &format!("found {} times", finding.count));
        }
        self.text.push('\n');
    }
}

fn place_of(frame: &Frame) -> String {
    match &frame.file {
        Some(file) if frame.column > 0 => format!("{file}:{}:{}", frame.line, frame.column),
        Some(file) => format!("{file}:{}", frame.line),
        None => frame.to_string(),
    }
}

/// Returns the report.
pub(super) fn write(report: &Report<'_>, has_colors: bool) -> String {
    let mut writer = Writer { text: String::new(), has_colors };
    for found in report.findings {
        writer.finding(found);
    }
    let code = if report.findings.len() + report.left_out == 0 { "\x1b[1;32m" } else { "\x1b[1;31m" };
    writer.heading(code, "hipr check", &summary(report));
    writer.text
}

/// Returns how much was found, and what was looked for.
pub(super) fn summary(report: &Report<'_>) -> String {
    let shown = report.findings.len();
    let tools: Vec<_> = report.tools.iter().map(|tool| tool.name()).collect();
    let mut summary = match shown + report.left_out {
        0 => "nothing found".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    if report.left_out > 0 {
        let _ = write!(summary, ", of which {} are not shown (--limit)", report.left_out);
    }
    if report.suppressed > 0 {
        let _ = write!(summary, ", {} suppressed", report.suppressed);
    }
    format!("{summary} ({})", tools.join(", "))
}
