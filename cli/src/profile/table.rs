//! The report for people: the sums of each kernel.

use std::fmt::Write as _;

use hipr_profile::{Class, Counts, Precision, cache_line_bytes};

use super::{Report, Shown};

/// The lines of a kernel that are shown.
const LINES_MAX: usize = 5;

/// Returns a number with commas.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a part of a whole in percent.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "0 %".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// Returns the instructions of each class that has some, the most first.
fn classes(total: &Counts) -> String {
    let mut classes: Vec<_> = Class::ALL.into_iter().filter(|class| total.of(*class) > 0).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(total.of(*class)));
    let one = |class: &Class| {
        format!("{} {}", class.name().replace('_', " "), percent(total.of(*class), total.executed()))
    };
    classes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the floating-point operations of each precision that has some.
fn flops(total: &Counts) -> String {
    let one = |precision: Precision| {
        let (all, matrix) = (total.flops[precision as usize], total.matrix_flops[precision as usize]);
        let matrices =
            if matrix > 0 { format!(" ({} by matrices)", percent(matrix, all)) } else { String::new() };
        (all > 0).then(|| format!("{} {}{matrices}", grouped(all), precision.name()))
    };
    Precision::ALL.into_iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

fn write_kernel(text: &mut String, kernel: &Shown) {
    let (profile, total) = (&kernel.profile, &kernel.profile.total);
    let line_bytes = cache_line_bytes(profile.arch);
    let mut row = |name: &str, value: String| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {name:<12} {}", hipr_log::escaped(&value, 4096));
    };
    let [x, y, z] = profile.group;
    row(
        "launches",
        format!(
            "{}: {} of {x}x{y}x{z} threads, {}",
            grouped(profile.launches),
            counted(profile.groups, "block"),
            counted(profile.waves, "wave")
        ),
    );
    row("instructions", format!("{}: {}", grouped(total.executed()), classes(total)));
    if let Some(lanes) = total.lanes_average() {
        row(
            "lanes",
            format!("{lanes:.1} of 64 work; conditions have divided waves {}", counted(total.splits, "time")),
        );
    }
    if total.memory_accesses > 0 {
        let line_use = total.line_use(line_bytes).unwrap_or(0.0) * 100.0;
        row(
            "memory",
            format!(
                "{} bytes loaded, {} stored, {} by atomics; {} of {line_bytes} bytes, {line_use:.0} % of them asked for",
                grouped(total.loaded_bytes),
                grouped(total.stored_bytes),
                grouped(total.atomic_bytes),
                counted(total.cache_lines, "cache line")
            ),
        );
    }
    if total.lds_cycles > 0 {
        row(
            "LDS",
            format!(
                "{} bytes in {} of its banks, {} of them for conflicts",
                grouped(total.lds_bytes),
                counted(total.lds_cycles, "cycle"),
                percent(total.lds_conflicts, total.lds_cycles)
            ),
        );
    }
    if total.scratch_bytes > 0 {
        row("scratch", format!("{} bytes", grouped(total.scratch_bytes)));
    }
    if total.flops_total() > 0 {
        let intensity = total.intensity(line_bytes);
        let each = intensity.map_or(String::new(), |each| format!("; {each:.2} for each byte of memory"));
        row("flops", format!("{}{each}", flops(total)));
    }
    row(
        "occupancy",
        format!(
            "{} of 32 waves, bounded by {}; a lane has {} VGPRs, a block {} bytes of LDS",
            profile.waves_per_cu,
            profile.limit.name(),
            profile.vgprs,
            grouped(profile.lds_bytes.into())
        ),
    );
    for line in kernel.lines.iter().take(LINES_MAX) {
        row(
            &percent(line.counts.executed(), total.executed()),
            format!("{} in {}", line.place(), line.function),
        );
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
    let launches = report.kernels.iter().map(|kernel| kernel.profile.launches).sum::<u64>();
    let _ = writeln!(
        text,
        "hipr profile: {} of {}. The counts are exact; how long it takes on a GPU they do not say.",
        counted(report.kernels.len() as u64, "kernel"),
        counted(launches, "launch")
    );
    text
}

/// Returns a number with its word.
fn counted(number: u64, word: &str) -> String {
    let ending = match (number, word.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {word}{ending}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn words_have_their_plural() {
        assert_eq!(
            [counted(1, "kernel"), counted(2, "kernel"), counted(0, "launch")],
            ["1 kernel", "2 kernels", "0 launches"]
        );
    }
}
