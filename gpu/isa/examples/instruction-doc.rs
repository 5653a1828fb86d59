//! Writes `docs/instructions.md` from the tables of instructions.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::write(docs.join("instructions.md"), hipr_isa::isa::document())
}
