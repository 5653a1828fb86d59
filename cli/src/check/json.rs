//! Reports as one JSON object.

use hipr_check::Place;
use hipr_check::host::Stack;
use hipr_lines::{Frame, demangled};
use serde_json::{Value, json};

use super::Report;
use super::finding::{Described, access_name, memory_name};
use crate::frames::own;

fn frame(frame: &Frame) -> Value {
    json!({ "function": frame.function, "file": frame.file, "line": frame.line, "column": frame.column })
}

fn frames(frames: &[Frame]) -> Value {
    frames.iter().map(frame).collect()
}

fn stack(stack: Option<&Stack>) -> Value {
    stack.map_or(Value::Null, |stack| json!({ "function": stack.function, "frames": frames(&stack.frames) }))
}

fn place(place: &Place) -> Value {
    let line = own(&place.frames);
    json!({
        "kernel": place.kernel,
        "kernel_name": demangled(&place.kernel),
        "offset_bytes": place.offset_bytes,
        "file": line.and_then(|line| line.file.as_deref()),
        "line": line.map(|line| line.line),
        "column": line.map(|line| line.column),
        "frames": frames(&place.frames),
        "block": place.block,
        "thread": place.thread,
    })
}

fn finding(found: &Described) -> Value {
    let finding = &found.finding;
    let line = found.frame();
    let mut value = json!({
        "tool": finding.kind.tool().name(),
        "kind": finding.kind.name(),
        "message": found.message,
        "kernel": Value::Null,
        "kernel_name": Value::Null,
        "file": line.and_then(|line| line.file.as_deref()),
        "line": line.map(|line| line.line),
        "column": line.map(|line| line.column),
        "frames": frames(found.frames()),
        "host": stack(found.host.as_ref()),
        "access": finding.accessed.map(|access| json!({
            "kind": access_name(access.kind),
            "memory": memory_name(access.memory),
            "address": format!("{:#x}", access.address),
            "len_bytes": access.len_bytes,
        })),
        "near": finding.near.as_ref().map(|near| json!({
            "address": format!("{:#x}", near.address),
            "len_bytes": near.len_bytes,
            "variable": near.variable,
            "freed": near.is_freed,
            "allocated_at": stack(found.allocated_at.as_ref()),
            "freed_at": stack(found.freed_at.as_ref()),
        })),
        "other": finding.other.as_ref().map(|other| {
            let mut value = other.place.as_ref().map_or_else(|| json!({ "kernel": Value::Null }), place);
            value["kind"] = access_name(other.kind).into();
            value
        }),
        "note": finding.note,
        "count": finding.count,
    });
    if let Some(at) = &finding.place
        && let (Value::Object(value), Value::Object(at)) = (&mut value, place(at))
    {
        // A launch that was refused has no line in its kernel.
        value.extend(
            at.into_iter()
                .filter(|(name, at)| name.starts_with("kernel") || (!at.is_null() && at != &json!([]))),
        );
    }
    value
}

/// Returns the report.
pub(super) fn write(report: &Report<'_>) -> String {
    let tools: Vec<_> = report.tools.iter().map(|tool| tool.name()).collect();
    let value = json!({
        "version": 1,
        "program": report.program,
        "tools": tools,
        "findings": report.findings.iter().map(finding).collect::<Value>(),
        "left_out": report.left_out,
        "suppressed": report.suppressed,
        "program_exit_code": report.program_exit_code,
        "exit_code": report.exit_code,
    });
    format!("{value:#}\n")
}
