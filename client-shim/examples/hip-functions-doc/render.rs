//! Renders `docs/hip-functions.md` from the export table.

use std::fmt::Write as _;

use amdhip64::api::EXPORTS;
use amdhip64::export::{Export, Route};

/// Why functions are not there, each by a part of its name; the first that fits applies.
const REASONS: [(&str, &str); 5] = [
    (
        "ExternalSemaphore",
        "a semaphore of another interface on this machine cannot be had by a GPU elsewhere",
    ),
    ("ExternalMemory", "memory of another interface on this machine cannot be had by a GPU elsewhere"),
    ("hipMemGetHandleForAddressRange", "a descriptor of memory is one of the worker's machine"),
    ("hipMemPoolExport", "memory pools are not shared between processes; `hipIpcGetMemHandle` shares memory"),
    ("hipMemPoolImport", "memory pools are not shared between processes; `hipIpcGetMemHandle` shares memory"),
];

/// Returns the text of the document.
pub(crate) fn render() -> String {
    let mut text = String::from(
        "# HIP functions\n\n\
         Written from `client-shim/src/api.rs` by `cargo run -p hipr-shim --example hip-functions-doc`; do not edit.\n\n\
         `libamdhip64.so` exports every function of AMD's library, releases 6.4 and 7.2 together, with the same ELF version.\n\
         Those that hipr does not have return `hipErrorNotSupported` and say so once in the log. Those of the runtime compiler,\n\
         `hiprtc*`, hand over to AMD's own, which needs no GPU: `libhiprtc.so` where the dynamic loader or `/opt/rocm/lib` has it,\n\
         else the library that `HIPR_HIPRTC_LIBRARY` names; before release 6 that is AMD's `libamdhip64.so` itself.\n\n\
         Functions of arrays, textures and surfaces are there: whatever the GPU, they refuse what AMD's runtime refuses on an MI300X,\n\
         which has no images, with the same errors in the same order ([differences.md](differences.md)). Those of graphics answer as\n\
         without an OpenGL context; `hipLink*` is done by the runtime compiler.\n\n",
    );
    let there = |export: &&Export| export.route != Route::Unsupported;
    let count = EXPORTS.iter().filter(there).count();
    let _ = writeln!(text, "{count} of {} functions are there.\n", EXPORTS.len());
    let mut nodes: Vec<&str> = EXPORTS.iter().map(|export| export.node).collect();
    nodes.dedup();
    for node in nodes {
        let of_node = || EXPORTS.iter().filter(|export| export.node == node);
        let (there, missing): (Vec<_>, Vec<_>) = of_node().partition(|export| there(export));
        let _ = writeln!(text, "## {node}\n");
        list(&mut text, "There", &there);
        list(&mut text, "Not there", &missing);
    }
    let _ = writeln!(text, "## Why not\n\n| function | why it is not there |\n|---|---|");
    for export in EXPORTS.iter().filter(|export| !there(export)) {
        let reason = REASONS.iter().find(|(part, _)| export.name.contains(part));
        let (_, why) = reason.unwrap_or_else(|| panic!("{} has no reason in REASONS", export.name));
        let _ = writeln!(text, "| `{}` | {why} |", export.name);
    }
    // One newline ends the file.
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn list(text: &mut String, title: &str, exports: &[&Export]) {
    if exports.is_empty() {
        return;
    }
    let names: Vec<String> = exports.iter().map(|export| format!("`{}`", export.name)).collect();
    let _ = writeln!(text, "{title} ({}): {}\n", names.len(), names.join(", "));
}
