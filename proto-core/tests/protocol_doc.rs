//! Checks that `docs/protocol.md` agrees with the table of operations.

#[path = "../examples/protocol-doc/render.rs"]
mod render;

use hipr_proto::OPS;

#[test]
fn the_document_is_up_to_date() {
    let committed = include_str!("../../docs/protocol.md");
    let first_difference = committed
        .lines()
        .zip(render::render().lines().map(str::to_owned))
        .position(|(ours, theirs)| ours != theirs);
    assert!(
        committed == render::render(),
        "docs/protocol.md differs from line {:?} on; write it again: cargo run -p hipr-proto --example protocol-doc",
        first_difference.map(|line| line + 1)
    );
}

#[test]
fn every_operation_is_described_once() {
    let text = render::render();
    for info in OPS {
        assert_eq!(
            text.matches(&format!("#### 0x{:04X} {}\n", info.code.0, info.name)).count(),
            1,
            "{}",
            info.name
        );
        assert!(info.doc.trim().ends_with('.'), "{}", info.name);
    }
}
