//! Generates the dictionary of the fuzz targets from the operation table: byte sequences that a fuzzer could hardly guess.

use std::fmt::Write as _;

use hipr_proto::{FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, FLAG_RESPONSE, Header, OPS};

/// Returns the text of `fuzz/hipr.dict` in libFuzzer's format: for every operation its code, its request with and without a
/// reply, and the beginning of its reply, each with a payload of the size of its fixed part.
pub fn text() -> String {
    let mut text = String::from(
        "# Written by `cargo run -p hipr-testkit --example dictionary` from the operation table.\n",
    );
    for info in OPS {
        let name = info.name;
        let (request, reply) = (info.request.size as u64, 4 + info.reply.size as u64);
        entry(&mut text, &format!("{name}.op"), &info.code.0.to_le_bytes());
        let headers =
            [("request", request, 0), ("no_reply", request, FLAG_NO_REPLY), ("reply", reply, FLAG_RESPONSE)];
        for (what, len, flags) in headers {
            let header = Header::new(info.code, 1, len, flags);
            entry(&mut text, &format!("{name}.{what}"), &header.to_bytes());
        }
    }
    let flags = FLAG_HAS_INLINE_DATA | FLAG_NO_REPLY;
    entry(&mut text, "flags.inline", &flags.to_le_bytes());
    text
}

fn entry(text: &mut String, name: &str, bytes: &[u8]) {
    let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(hex, "\\x{byte:02x}");
        hex
    });
    let _ = writeln!(text, "{name}=\"{hex}\"");
}
