//! Reports in SARIF 2.1.0, the format that code hosts and editors read.

use hipr_check::Kind;
use hipr_lines::Frame;
use serde_json::{Value, json};

use super::Report;
use super::finding::{Described, explained};
use crate::frames::own;

/// Returns a file's name as a reference of RFC 3986.
fn uri(file: &str) -> String {
    let scheme = if file.starts_with('/') { "file://" } else { "" };
    let mut uri = scheme.to_owned();
    for byte in file.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// Returns a frame as a location; `None` if its file is not known.
fn location(frame: &Frame, message: &str) -> Option<Value> {
    let file = frame.file.as_ref()?;
    let mut region = json!({ "startLine": frame.line.max(1) });
    if frame.line > 0 && frame.column > 0 {
        region["startColumn"] = frame.column.into();
    }
    Some(json!({
        "physicalLocation": { "artifactLocation": { "uri": uri(file) }, "region": region },
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
        "ruleIndex": Kind::ALL.iter().position(|kind| *kind == finding.kind),
        "level": "error",
        "message": { "text": format!("{}{kernel}", found.message) },
        "locations": at.into_iter().collect::<Value>(),
        "relatedLocations": related,
        "occurrenceCount": finding.count,
    })
}

/// Returns the report.
pub(super) fn write(report: &Report<'_>) -> String {
    let rule = |kind: &Kind| {
        json!({
            "id": kind.name(),
            "shortDescription": { "text": explained(*kind) },
            "properties": { "tags": [kind.tool().name()] },
        })
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_become_references() {
        for (file, expected) in [
            ("/a/b-1.hip", "file:///a/b-1.hip"),
            ("src/a b#?.hip", "src/a%20b%23%3F.hip"),
            ("C:x/\u{e4}%.h", "C%3Ax/%C3%A4%25.h"),
        ] {
            assert_eq!(uri(file), expected);
        }
    }
}
