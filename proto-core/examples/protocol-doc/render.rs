//! Renders `docs/protocol.md` from the table of operations.

use std::fmt::Write;

use hipr_proto::op::{Part, ReplyRule};
use hipr_proto::{Class, Info, OPS, Tail};

/// Headings for groups of operations, by the high byte of their codes.
const BLOCKS: [&str; 9] = [
    "Connection",
    "Devices",
    "Memory",
    "Streams",
    "Events",
    "Modules and launches",
    "Errors and graphs",
    "Versions, occupancy, graphs, batches",
    "Management interface",
];

/// Returns the whole document.
pub(crate) fn render() -> String {
    let mut out = include_str!("intro.md").to_owned();
    let mut block = None;
    for info in OPS {
        let here = usize::from(info.code.0 >> 8);
        if block != Some(here) {
            block = Some(here);
            let title = BLOCKS.get(here).expect("every block has a title");
            let _ = write!(out, "\n### {title} (0x{here:02X}xx)\n");
        }
        operation(&mut out, info);
    }
    out
}

fn operation(out: &mut String, info: &Info) {
    let _ = write!(out, "\n#### 0x{:04X} {}\n\n{}\n\n", info.code.0, info.name, info.doc.trim());
    if info.reply_rule == ReplyRule::Notification {
        part(out, "notification", &info.request);
    } else {
        part(out, "request", &info.request);
        part(out, "response", &info.reply);
    }
    let waits = match info.reply_rule {
        ReplyRule::Notification => "takes it, where it has the feature NOTIFICATIONS".to_owned(),
        ReplyRule::Sync => "waits".to_owned(),
        ReplyRule::Forget => "does not wait".to_owned(),
        ReplyRule::When(condition) => format!("{condition} (sync waits, forget does not)"),
    };
    let class = match info.class {
        Class::Plain => "",
        Class::Creates => "; creates",
        Class::Synchronizes if info.reply.tail == Tail::Bulk => "; synchronizes when it brings bytes back",
        Class::Synchronizes => "; synchronizes",
        Class::Exempt if info.reply_rule == ReplyRule::Notification => "",
        Class::Exempt => "; reports only itself",
    };
    let statics = match info.statics {
        None => "",
        Some(mark) if mark.of_current_device => "; static for each current device",
        Some(_) => "; static",
    };
    let _ = writeln!(out, "- client: {waits}{class}{statics}");
    if !info.hip_function.is_empty() {
        let _ = writeln!(out, "- HIP: `{}`", info.hip_function);
    }
    let _ = writeln!(out, "- source: {}", info.source);
}

fn part(out: &mut String, what: &str, part: &Part) {
    match part.to_string().as_str() {
        "" => {
            let _ = writeln!(out, "- {what}: nothing");
        }
        layout => {
            let _ = writeln!(out, "- {what}, {} bytes: `{layout}`", part.size);
        }
    }
}
