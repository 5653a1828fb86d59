//! Runs the example transport, and checks the page that explains it.

#[path = "../examples/pipe-transport.rs"]
mod pipe_transport;

#[test]
fn the_example_carries_calls_over_a_pipe() {
    pipe_transport::main().expect("the example's own checks hold");
}
