//! Tests that `docs/hip-functions.md` agrees with the export table.

#[path = "../examples/hip-functions-doc/render.rs"]
mod render;

#[test]
fn the_document_is_current() {
    let committed = include_str!("../../docs/hip-functions.md");
    assert_eq!(
        committed,
        render::render(),
        "write it again: cargo run -p hipr-shim --example hip-functions-doc"
    );
}
