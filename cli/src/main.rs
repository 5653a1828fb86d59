//! The `hipr` program.
fn main() {}
