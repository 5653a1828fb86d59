//! Writes `fuzz/hipr.dict`, the dictionary of the fuzz targets, from the operation table.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/hipr.dict");
    std::fs::write(path, hipr_testkit::fuzz::dictionary::text())
}
