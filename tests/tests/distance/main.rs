//! The measure of distance: how flights and bytes are counted, the proxy that counts them, the committed bounds, and programs that
//! are held to them. `cli/tests/distance.rs` has the demo, `.ci/run clients` the programs of other clients.

mod bounds;
mod counting;
mod proxying;
