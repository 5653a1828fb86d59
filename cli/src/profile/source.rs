//! The source of kernels, with the counts of each line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use hipr_profile::{Counts, cache_line_bytes};

use super::table::{grouped, percent};
use super::{Report, Shown};

/// Lines that are shown before and behind one that has counts.
const AROUND: u32 = 2;

/// Returns the numbers of the lines that are shown: those with counts and some around them, of `count` lines.
pub(super) fn shown(counted: impl Iterator<Item = u32>, count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = counted
        .filter(|number| *number > 0)
        .flat_map(|number| number.saturating_sub(AROUND).max(1)..=(number + AROUND).min(count.max(number)))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Returns the counts of a kernel's lines, by file and line.
pub(super) fn by_file(kernel: &Shown) -> BTreeMap<&str, BTreeMap<u32, Counts>> {
    let mut files: BTreeMap<&str, BTreeMap<u32, Counts>> = BTreeMap::new();
    for line in &kernel.lines {
        if let Some(file) = line.file.as_deref().filter(|_| line.line > 0) {
            files.entry(file).or_default().entry(line.line).or_default().add(&line.counts);
        }
    }
    files
}

fn write_kernel(text: &mut String, kernel: &Shown) {
    let total = &kernel.profile.total;
    let line_bytes = cache_line_bytes(kernel.profile.arch);
    let files = by_file(kernel);
    if files.is_empty() {
        text.push_str("  It has no debug information: compile it with -g.\n");
    }
    for (file, lines) in files {
        let source = fs::read_to_string(file).unwrap_or_default();
        let texts: Vec<&str> = source.lines().collect();
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {}", hipr_log::escaped(file, 4096));
        if texts.is_empty() {
            text.push_str("  (the file cannot be read)\n");
        }
        let _ = writeln!(
            text,
            "  {:>12} {:>7} {:>6} {:>8} {:>12} {:>5} {:>10} {:>12}  source",
            "instructions", "part", "lanes", "divided", "cache lines", "used", "conflicts", "flops"
        );
        let mut last = 0;
        for number in shown(lines.keys().copied(), texts.len() as u32) {
            if last > 0 && number != last + 1 {
                text.push_str("  ...\n");
            }
            last = number;
            let own = (number as usize).checked_sub(1).and_then(|index| texts.get(index)).unwrap_or(&"");
            let own = hipr_log::escaped(own.trim_end(), 4096).to_string();
            let Some(counts) = lines.get(&number) else {
                let _ = writeln!(text, "  {:>12} {:>66} {number:>5} | {own}", "", "");
                continue;
            };
            let or_none = |value: u64| if value == 0 { String::new() } else { grouped(value) };
            let _ = writeln!(
                text,
                "  {:>12} {:>7} {:>6} {:>8} {:>12} {:>5} {:>10} {:>12} {number:>5} | {own}",
                grouped(counts.executed()),
                percent(counts.executed(), total.executed()),
                counts.lanes_average().map_or(String::new(), |lanes| format!("{lanes:.1}")),
                or_none(counts.splits),
                or_none(counts.cache_lines),
                counts.line_use(line_bytes).map_or(String::new(), |part| format!("{:.0} %", part * 100.0)),
                or_none(counts.lds_conflicts),
                or_none(counts.flops_total()),
            );
        }
    }
}

/// Returns the report.
pub(super) fn write(report: &Report) -> String {
    let mut text = String::new();
    for kernel in &report.kernels {
        let _ = writeln!(text, "{}", hipr_log::escaped(&kernel.name, 4096));
        write_kernel(&mut text, kernel);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_those_with_counts_are_shown() {
        assert_eq!(shown([5, 6, 20, 0].into_iter(), 21), [3, 4, 5, 6, 7, 8, 18, 19, 20, 21]);
        // A file that has changed since may be shorter.
        assert_eq!(shown([1, 30].into_iter(), 4), [1, 2, 3, 28, 29, 30]);
    }
}
