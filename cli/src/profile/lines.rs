//! Counts by line of the source.

use std::collections::BTreeMap;

use hipr_profile::{Counts, KernelProfile};

use crate::frames::own;

/// A line of the source that a kernel has executed.
pub(super) struct Line {
    /// `None` where there is no debug information.
    pub(super) file: Option<String>,
    /// Counted from 1; 0 if it is not known.
    pub(super) line: u32,
    /// The function that it is in.
    pub(super) function: String,
    pub(super) counts: Counts,
}

impl Line {
    /// Returns where it is, for people.
    pub(super) fn place(&self) -> String {
        match &self.file {
            Some(file) => format!("{}:{}", file.rsplit('/').next().unwrap_or(file), self.line),
            None => "without debug information".into(),
        }
    }
}

/// Returns the lines of a kernel, those with most instructions first.
pub(super) fn of(profile: &KernelProfile) -> Vec<Line> {
    let mut by_place: BTreeMap<(Option<&str>, u32, &str), Counts> = BTreeMap::new();
    for instruction in &profile.instructions {
        let frame = own(&instruction.frames);
        let function = frame.and_then(|frame| frame.function.as_deref()).unwrap_or("?");
        let file = frame.and_then(|frame| frame.file.as_deref());
        let line = frame.map_or(0, |frame| frame.line);
        by_place.entry((file, line, function)).or_default().add(&instruction.counts);
    }
    let mut lines: Vec<Line> = by_place
        .into_iter()
        .map(|((file, line, function), counts)| Line {
            file: file.map(str::to_owned),
            line,
            function: function.to_owned(),
            counts,
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.counts.executed()));
    lines
}
