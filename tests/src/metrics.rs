//! A worker's metrics (`hipr worker --metrics ADDR:PORT`), asked for over HTTP without a library, so that anything can be sent.

use crate::{WorkerProcess, eventually};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// Sends bytes, and returns the status and the text of the answer.
pub fn exchange(at: SocketAddr, sent: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(at).expect("connected");
    // What is too long is not taken to its end.
    let _ = stream.write_all(sent);
    answer(&mut stream)
}

fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut said = Vec::new();
    // Who has sent more than was read may learn of that behind the answer.
    let _ = stream.read_to_end(&mut said);
    let said = String::from_utf8(said).expect("text");
    let (head, text) = said.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {said:?}"));
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let len = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    assert!(len.is_none_or(|len: usize| len == text.len()), "{said}");
    (status.unwrap_or_else(|| panic!("no status: {head}")), text.to_owned())
}

/// Asks for a page as Prometheus does.
pub fn ask(at: SocketAddr, path: &str) -> (u16, String) {
    exchange(at, format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").as_bytes())
}

/// Sends a request in pieces; returns the status of the answer.
pub fn ask_in_time(at: SocketAddr, pieces: impl Iterator<Item = Vec<u8>>) -> u16 {
    let mut stream = TcpStream::connect(at).expect("connected");
    stream.set_nodelay(true).expect("an option");
    pieces.for_each(|piece| stream.write_all(&piece).expect("sent"));
    stream.shutdown(Shutdown::Write).expect("ended");
    answer(&mut stream).0
}

/// Returns the value of a metric with these labels.
pub fn value(text: &str, metric: &str) -> Option<f64> {
    let values = text.lines().filter_map(|line| line.strip_prefix(metric)?.strip_prefix(' ')?.parse().ok());
    let values: Vec<f64> = values.collect();
    assert!(values.len() <= 1, "{metric} is there twice:\n{text}");
    values.first().copied()
}

/// Returns where a worker that was started with `--metrics` and whose log is kept serves them.
pub fn metrics_of(worker: &WorkerProcess) -> SocketAddr {
    let log = worker.log();
    let said = log.split_once("metrics at http://").and_then(|(_, rest)| rest.split_once("/metrics"));
    let (address, _) = said.unwrap_or_else(|| panic!("no address of metrics in {log}"));
    address.parse().expect("an address")
}

/// Waits until a metric has a value.
pub fn wait_for_metric(at: SocketAddr, metric: &str, expected: f64) {
    let mut text = String::new();
    let is_there = || {
        text = ask(at, "/metrics").1;
        value(&text, metric) == Some(expected)
    };
    eventually(&format!("{metric} is {expected}"), is_there);
}
