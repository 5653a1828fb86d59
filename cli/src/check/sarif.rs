//! Reports in SARIF 2.1.0, the format that code hosts and editors read.

use hipr_check::Kind;
use hipr_lines::Frame;
use serde_json::{Value, json};

use super::Report;
use super::finding::{Described, own};

/// Returns a frame as a location; `None` if its file is not known.
fn location(frame: &Frame, message: &str) -> Option<Value> {
    let file = frame.file.as_ref()?;
    let mut region = json!({ "startLine": frame.line.max(1) });
    if frame.column > 0 {
        region["startColumn"] = frame.column.into();
    }
    let uri = if file.starts_with('/') { format!("file://{file}") } else { file.clone() };
    Some(json!({
        "physicalLocation": { "artifactLocation": { "uri": uri }, "region": region },
        "message": { "text": message },
    }))
}

fn result(found: &Described) -> Value {
    let finding = &found.finding;
    let at = found.frame().and_then(|frame| location(frame, &found.message));
    let kernel = found.kernel().map(|name| format!(" in kernel {name}")).unwrap_or_default();
    let mut related = Vec::new();
    if let Some(other) = &finding.other
        && let Some(frame) = other.place.as_ref().and_then(|place| own(&place.frames))
    {
        related.extend(location(frame, "the other access"));
    }
    for (message, stack) in [("allocated here", &found.allocated_at), ("freed here", &found.freed_at)] {
        related.extend(stack.as_ref().and_then(|stack| location(own(&stack.frames)?, message)));
    }
    json!({
        "ruleId": finding.kind.name(),
        "level": "error",
        "message": { "text": format!("{}{kernel}", found.message) },
        "locations": at.into_iter().collect::<Value>(),
        "relatedLocations": related,
        "occurrenceCount": finding.count,
    })
}

/// Returns the report.
pub(super) fn write(report: &Report<'_>) -> String {
    let rule = |kind: &Kind| json!({ "id": kind.name(), "properties": { "tags": [kind.tool().name()] } });
    let value = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "hipr check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": Kind::ALL.iter().map(rule).collect::<Value>(),
            } },
            "results": report.findings.iter().map(result).collect::<Value>(),
        }],
    });
    format!("{value:#}\n")
}
