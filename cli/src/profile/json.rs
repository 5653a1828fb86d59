//! The report as one JSON object.

use hipr_profile::{Class, Counts, Precision, cache_line_bytes};
use serde_json::{Map, Value, json};

use super::{Report, Shown};

/// Returns counts, those that are 0 left out.
pub(super) fn counts(counts: &Counts) -> Value {
    let classes =
        Class::ALL.into_iter().map(|class| (format!("{}_instructions", class.name()), counts.of(class)));
    let flops = Precision::ALL.into_iter().flat_map(|precision| {
        let index = precision as usize;
        [
            (format!("{}_flops", precision.name()), counts.flops[index]),
            (format!("{}_matrix_flops", precision.name()), counts.matrix_flops[index]),
        ]
    });
    let others = [
        ("instructions", counts.executed()),
        ("lane_instructions", counts.vector_instructions),
        ("lanes", counts.lanes),
        ("splits", counts.splits),
        ("memory_accesses", counts.memory_accesses),
        ("loaded_bytes", counts.loaded_bytes),
        ("stored_bytes", counts.stored_bytes),
        ("atomic_bytes", counts.atomic_bytes),
        ("cache_lines", counts.cache_lines),
        ("scalar_bytes", counts.scalar_bytes),
        ("lds_bytes", counts.lds_bytes),
        ("lds_cycles", counts.lds_cycles),
        ("lds_conflicts", counts.lds_conflicts),
        ("scratch_bytes", counts.scratch_bytes),
    ];
    let others = others.map(|(name, value)| (name.to_owned(), value));
    let all: Map<String, Value> = others
        .into_iter()
        .chain(classes)
        .chain(flops)
        .filter(|(_, value)| *value > 0)
        .map(|(name, value)| (name, value.into()))
        .collect();
    all.into()
}

fn kernel(kernel: &Shown) -> Value {
    let profile = &kernel.profile;
    let lines: Vec<Value> = kernel
        .lines
        .iter()
        .map(|line| {
            json!({
                "file": line.file,
                "line": line.line,
                "function": line.function,
                "counts": counts(&line.counts),
            })
        })
        .collect();
    let instructions: Vec<Value> = profile
        .instructions
        .iter()
        .map(|instruction| {
            let frame = instruction.frames.first();
            json!({
                "offset_bytes": instruction.offset_bytes,
                "mnemonic": instruction.mnemonic,
                "class": instruction.class.name(),
                "file": frame.and_then(|frame| frame.file.as_deref()),
                "line": frame.map_or(0, |frame| frame.line),
                "counts": counts(&instruction.counts),
            })
        })
        .collect();
    json!({
        "name": kernel.name,
        "symbol": profile.name,
        "arch": profile.arch.to_string(),
        "launches": profile.launches,
        "blocks": profile.groups,
        "waves": profile.waves,
        "threads": profile.work_items,
        "block": profile.group,
        "vgprs": profile.vgprs,
        "lds_bytes": profile.lds_bytes,
        "scratch_bytes_per_lane": profile.scratch_bytes,
        "waves_per_cu": profile.waves_per_cu,
        "waves_per_cu_bounded_by": profile.limit.name(),
        "cache_line_bytes": cache_line_bytes(profile.arch),
        "counts": counts(&profile.total),
        "lines": lines,
        "instructions": instructions,
    })
}

/// Returns the object.
pub(super) fn value(report: &Report) -> Value {
    let kernels: Vec<Value> = report.kernels.iter().map(kernel).collect();
    json!({ "version": 1, "program": report.program, "kernels": kernels })
}

/// Returns the report.
pub(super) fn write(report: &Report) -> String {
    format!("{:#}\n", value(report))
}
