//! What the proxy does to bytes: it carries them unchanged, not sooner than the link would.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use hipr_tests::{Direction, Link, Proxy};

const MS: Duration = Duration::from_millis(1);

fn link(delay_ms: u32, bits_per_s: u64) -> Link {
    Link { delay: MS * delay_ms, bits_per_s: NonZeroU64::new(bits_per_s), cuts: None }
}

#[test]
fn bytes_enter_one_behind_the_other_and_arrive_after_the_delay() {
    let start = Instant::now();
    // A byte takes 1 µs.
    let mut direction = Direction::new(link(30, 8_000_000));
    let arrivals =
        [(0, 1_000, 31), (0, 2_000, 33), (1, 1_000, 34), (10, 5_000, 45), (15, 0, 45), (15, 1_000, 46)];
    for (at_ms, len_bytes, arrives_ms) in arrivals {
        assert_eq!(
            direction.arrival(start + MS * at_ms, len_bytes),
            start + MS * arrives_ms,
            "at {at_ms} ms"
        );
    }
    let mut direction = Direction::new(link(7, 0));
    for at_ms in [0, 0, 3] {
        assert_eq!(direction.arrival(start + MS * at_ms, 1 << 30), start + MS * (at_ms + 7));
    }
}

#[test]
fn how_bytes_are_cut_does_not_change_when_the_last_arrives() {
    let start = Instant::now();
    let whole = Direction::new(link(5, 100_000_000)).arrival(start, 1_250_000);
    assert_eq!(whole, start + MS * 105);
    for piece in [1_000, 1_250, 50_000] {
        let mut direction = Direction::new(link(5, 100_000_000));
        let last = (0..1_250_000 / piece).map(|_| direction.arrival(start, piece)).last();
        assert_eq!(last, Some(whole));
    }
}

#[test]
fn what_a_link_holds_is_bounded() {
    let mib = 1 << 20;
    assert_eq!(link(0, 0).holds_bytes(), 4 * mib);
    assert_eq!(link(0, 8_000_000).holds_bytes(), 4 * mib);
    assert_eq!(link(100, 8_000_000).holds_bytes(), 4 * mib + 100_000);
    assert_eq!(link(100, 0).holds_bytes(), 256 * mib);
    assert_eq!(link(100_000, u64::MAX).holds_bytes(), 260 * mib);
    for bits_per_s in [0, 1, 1_000_000, 100_000_000, u64::MAX] {
        assert!((1448..=256 << 10).contains(&link(0, bits_per_s).piece_bytes()));
    }
}

/// A peer that takes `connections` one after the other, each until its end, then sends everything back.
fn start_echo(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let mut stream = stream.expect("a connection");
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("the client's bytes");
            stream.write_all(&bytes).expect("the client reads");
        }
    });
    address
}

/// Sends bytes through the proxy, ends, and returns what comes back.
fn there_and_back(proxy: &Proxy, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(proxy.address()).expect("the proxy");
    stream.write_all(bytes).expect("the proxy reads");
    stream.shutdown(Shutdown::Write).expect("the proxy is there");
    let mut back = Vec::new();
    stream.read_to_end(&mut back).expect("the echo");
    back
}

#[test]
fn bytes_and_ends_pass_unchanged_over_every_link() {
    // More than sockets hold, so that each side is blocked at times.
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (delay_ms, bits_per_s, len) in
        [(0, 0, 20_000_000), (2, 0, 20_000_000), (0, 800_000_000, 5_000_000), (1, 80_000_000, 100)]
    {
        let proxy = Proxy::start(start_echo(2), link(delay_ms, bits_per_s)).expect("a proxy");
        for len in [len, 0] {
            let back = there_and_back(&proxy, &bytes[..len]);
            assert!(back == bytes[..len], "{} of {len} bytes came back", back.len());
        }
        let traffic = proxy.settled(Duration::from_secs(60)).expect("both connections have ended");
        assert_eq!((traffic.bytes_to_worker, traffic.bytes_to_client), (len as u64, len as u64));
    }
}

#[test]
fn no_byte_arrives_sooner_than_over_such_a_link() {
    let started = Instant::now();
    // 100,000 bytes take 50 ms to enter the link, in each direction.
    let proxy = Proxy::start(start_echo(1), link(20, 16_000_000)).expect("a proxy");
    assert_eq!(there_and_back(&proxy, &[7; 100_000]).len(), 100_000);
    assert!(started.elapsed() >= MS * 140, "there and back in {:?}", started.elapsed());
}

#[test]
fn an_open_connection_is_not_settled_and_a_worker_that_is_gone_ends_it() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let proxy = Proxy::start(listener.local_addr().expect("an address"), Link::default()).expect("a proxy");
    let mut client = TcpStream::connect(proxy.address()).expect("the proxy");
    client.write_all(b"hello").expect("the proxy reads");
    let (mut worker, _) = listener.accept().expect("the proxy connects");
    worker.read_exact(&mut [0; 5]).expect("the bytes pass");
    assert_eq!(proxy.settled(Duration::ZERO), None);
    drop((worker, listener));
    assert_eq!(client.read(&mut [0; 1]).expect("the end"), 0);
    drop(client);
    assert!(proxy.settled(Duration::from_secs(60)).is_some());
    // Nobody listens there any more.
    let mut client = TcpStream::connect(proxy.address()).expect("the proxy");
    match client.read(&mut [0; 1]) {
        Ok(len) => assert_eq!(len, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}
