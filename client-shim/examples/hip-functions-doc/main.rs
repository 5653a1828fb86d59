//! Writes `docs/hip-functions.md` from the export table.

mod render;

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::create_dir_all(&docs)?;
    std::fs::write(docs.join("hip-functions.md"), render::render())
}
