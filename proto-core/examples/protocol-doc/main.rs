//! Writes `docs/protocol.md` from the table of operations.

mod render;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::create_dir_all(&docs)?;
    std::fs::write(docs.join("protocol.md"), render::render())
}
