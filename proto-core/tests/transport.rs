//! The transport that shows how to write one works, and its page says what it does.

#[path = "../examples/pipe-transport.rs"]
mod pipe_transport;

#[test]
fn the_example_carries_calls_over_a_pipe() {
    pipe_transport::main().expect("the example's own checks hold");
}
