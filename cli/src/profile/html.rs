//! The report as a page for a browser, which needs nothing else.

use std::collections::HashMap;
use std::fs;

use hipr_profile::{Precision, cache_line_bytes};
use hipr_sim::Arch;
use serde_json::{Value, json};

use super::peaks::Peaks;
use super::{Report, Shown, json as object};

/// The page, with `@DATA@` where the report's object goes.
const PAGE: &str = include_str!("page.html");

/// Returns the most that a GPU could do of a kernel's operations, by its published peaks: what its memory can deliver, and for each kind
/// of operation the time that its peak needs; `None` if there are no operations or no bytes.
fn roof(kernel: &Shown) -> Option<Value> {
    let (total, arch) = (&kernel.profile.total, kernel.profile.arch);
    let peaks = Peaks::of(arch);
    let flops_per_byte = total.intensity(cache_line_bytes(arch))?;
    let flops = total.flops_total() as f64;
    if flops == 0.0 {
        return None;
    }
    let seconds: f64 = peaks
        .flops
        .iter()
        .map(|peak| {
            let index = peak.precision as usize;
            let matrix = total.matrix_flops[index];
            let count = if peak.is_matrix { matrix } else { total.flops[index] - matrix };
            count as f64 / (peak.tflops * 1e12)
        })
        .sum();
    // Operations of 16 bits that are no products of matrices have no roof of their own: lanes do two at a time.
    let half = Precision::Half as usize;
    let single = peaks.flops.iter().find(|peak| peak.precision == Precision::Single && !peak.is_matrix)?;
    let seconds =
        seconds + (total.flops[half] - total.matrix_flops[half]) as f64 / (2.0 * single.tflops * 1e12);
    let (compute, memory) = (flops / seconds / 1e12, flops_per_byte * peaks.memory_tbytes);
    let bound = if memory < compute { "bounded by memory" } else { "bounded by its operations" };
    Some(json!({ "flops_per_byte": flops_per_byte, "tflops": memory.min(compute), "bound": bound }))
}

/// Adds the text of each line, as far as its file can be read.
fn add_sources(kernel: &mut Value, files: &mut HashMap<String, Vec<String>>) {
    let Some(lines) = kernel.get_mut("lines").and_then(Value::as_array_mut) else { return };
    for line in lines {
        let Some(file) = line["file"].as_str().map(str::to_owned) else { continue };
        let read = |file: &String| {
            let text = fs::read_to_string(file).unwrap_or_default();
            text.lines().map(|line| line.trim_end().to_owned()).collect()
        };
        let texts = files.entry(file.clone()).or_insert_with(|| read(&file));
        let number = line["line"].as_u64().unwrap_or(0) as usize;
        if let Some(text) = number.checked_sub(1).and_then(|index| texts.get(index)) {
            line["source"] = text.clone().into();
        }
    }
}

/// Returns the report.
pub(super) fn write(report: &Report) -> String {
    let mut value: Value = object::value(report);
    let mut files = HashMap::new();
    if let Some(kernels) = value["kernels"].as_array_mut() {
        for (shown, kernel) in report.kernels.iter().zip(kernels) {
            kernel["roof"] = roof(shown).unwrap_or(Value::Null);
            add_sources(kernel, &mut files);
        }
    }
    let arch = report.kernels.first().map_or(Arch::default(), |kernel| kernel.profile.arch);
    let peaks = Peaks::of(arch);
    let flops: Vec<Value> =
        peaks.flops.iter().map(|peak| json!({ "name": peak.name, "tflops": peak.tflops })).collect();
    value["peaks"] = json!({ "gpu": peaks.gpu, "memory_tbytes": peaks.memory_tbytes, "flops": flops });
    // In a page nothing of it may end the script.
    let data = value.to_string().replace('<', "\\u003c");
    PAGE.replacen("@DATA@", &data, 1)
}
