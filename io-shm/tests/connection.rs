//! Tests both ends of a connection in threads, over real memory and sockets, and clients that break the rules.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use hipr_io_shm::{Client, HELLO, RING_BYTES, Served};
use rustix::event::{PollFd, PollFlags, poll};

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the two ends of a connection that is set up.
fn pair() -> (Client, Served) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let client = thread::spawn(move || Client::open(ours, PATIENCE));
    let mut served = Served::new(theirs);
    while !served.has_room() {
        wait(&mut served);
    }
    (client.join().expect("no panic").expect("agreed"), served)
}

/// Sleeps until the bell rings.
fn wait(served: &mut Served) {
    poll(&mut [PollFd::new(&served.as_fd(), PollFlags::IN)], None).expect("a socket can be polled");
    served.handle_bell().expect("a client that keeps the rules");
}

/// Returns bytes whose values depend on their positions.
fn pattern(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|at| (at as u32).wrapping_mul(0x9e37_79b9).to_be_bytes()[0]).collect()
}

/// Generates sizes: mostly small, some larger than the ring.
fn sizes() -> impl Iterator<Item = usize> {
    let mut state = 1u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = (state >> 58) as u32 % 22;
        1 + ((state >> 20) as usize & ((1 << bits) - 1))
    })
}

fn write_all(mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        // Two slices, so that both are cut anywhere.
        let (a, b) = rest.split_at(rest.len() / 3);
        match write(&[IoSlice::new(a), IoSlice::new(b)]) {
            Ok(len) => rest = &rest[len..],
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Runs a worker's end that sends back everything it reads, and sleeps whenever it has nothing to do.
fn echo(mut served: Served) -> io::Result<()> {
    let mut buffer = vec![0; 100_000];
    let mut held = Vec::new();
    let mut ended = false;
    while !(ended && held.is_empty()) {
        let mut moved = false;
        if !ended && held.len() < 300_000 {
            match served.read(&mut buffer) {
                Ok(0) => ended = true,
                Ok(len) => {
                    held.extend_from_slice(&buffer[..len]);
                    moved = true;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(why) => return Err(why),
            }
        }
        if !held.is_empty() {
            match served.write_vectored(&[IoSlice::new(&held)]) {
                Ok(len) => {
                    held.drain(..len);
                    moved = true;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(why) => return Err(why),
            }
        }
        if !moved && !ended && served.prepare_sleep(held.len() < 300_000, !held.is_empty()) {
            wait(&mut served);
            served.awake();
        }
    }
    Ok(())
}

#[test]
fn bytes_go_there_and_back_while_both_sides_sleep_and_wake() {
    const TOTAL: usize = 8 << 20;
    let (client, served) = pair();
    thread::scope(|scope| {
        let echoing = scope.spawn(|| echo(served));
        let client = &client;
        scope.spawn(move || {
            let mut at = 0;
            for size in sizes() {
                let size = size.min(TOTAL - at);
                write_all(|slices| client.write(slices), &pattern(at, size)).expect("the worker reads");
                at += size;
                if at == TOTAL {
                    return client.shutdown_write();
                }
            }
        });
        let (mut at, mut buffer) = (0, vec![0; 3 << 20]);
        for size in sizes().map(|size| 2 * size) {
            let len = match client.read(&mut buffer[..size.min(2 << 20)]) {
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                read => read.expect("the worker answers"),
            };
            if len == 0 {
                break;
            }
            assert!(buffer[..len] == pattern(at, len), "{len} bytes from {at}");
            at += len;
        }
        assert_eq!(at, TOTAL, "everything before the end, and then the end");
        echoing.join().expect("no panic").expect("a client that keeps the rules");
    });
}

#[test]
fn round_trips_without_pauses_and_with() {
    let (client, served) = pair();
    let echoing = thread::spawn(|| echo(served));
    for round in 0..2000 {
        let said = pattern(round, 1 + round % 50);
        write_all(|slices| client.write(slices), &said).expect("the worker reads");
        if round % 100 == 0 {
            // Both sides are asleep afterwards.
            thread::sleep(Duration::from_millis(1));
        }
        let (mut heard, mut buffer) = (Vec::new(), [0; 100]);
        while heard.len() < said.len() {
            match client.read(&mut buffer) {
                Ok(len) => heard.extend_from_slice(&buffer[..len]),
                Err(why) => assert_eq!(why.kind(), ErrorKind::Interrupted),
            }
        }
        assert_eq!(heard, said);
    }
    drop(client);
    echoing.join().expect("no panic").expect("an end in order");
}

#[test]
fn what_was_written_before_the_end_is_read() {
    let (client, mut served) = pair();
    client.write(&[IoSlice::new(b"the last words")]).expect("room");
    drop(client);
    wait(&mut served);
    let mut buffer = [0; 100];
    assert_eq!(served.read(&mut buffer).expect("bytes"), 14);
    assert_eq!(served.read(&mut buffer).expect("the end"), 0);

    let (client, mut served) = pair();
    served.write_all(b"good-bye").expect("room");
    drop(served);
    assert_eq!(client.read(&mut buffer).expect("bytes"), 8);
    assert_eq!(client.read(&mut buffer).expect("the end"), 0);
    let full = write_all(|slices| client.write(slices), &vec![0; 2 * RING_BYTES as usize]);
    assert_eq!(full.expect_err("nobody reads").kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_side_that_sleeps_hears_the_end() {
    for reads in [true, false] {
        let (client, served) = pair();
        let ending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            drop(served);
        });
        let mut buffer = [0; 100];
        let end = if reads {
            client.read(&mut buffer)
        } else {
            write_all(|slices| client.write(slices), &vec![0; 2 * RING_BYTES as usize]).map(|()| 1)
        };
        match end {
            Ok(len) => assert!(reads && len == 0),
            Err(why) => assert!(!reads && why.kind() == ErrorKind::BrokenPipe, "{why}"),
        }
        ending.join().expect("no panic");
    }
}

#[test]
fn waiting_has_a_limit_if_one_is_set() {
    let (client, mut served) = pair();
    client.set_timeout(Some(Duration::from_millis(5)));
    assert_eq!(client.read(&mut [0; 1]).expect_err("nothing comes").kind(), ErrorKind::WouldBlock);
    served.write_all(b"a").expect("room");
    assert_eq!(client.read(&mut [0; 9]).expect("a byte"), 1);
    let (ours, _theirs) = UnixStream::pair().expect("sockets");
    let silent = Client::open(ours, Duration::from_millis(5));
    assert_eq!(silent.expect_err("no answer").kind(), ErrorKind::TimedOut);
}

#[test]
fn who_does_not_greet_gets_no_memory() {
    for said in [&b"GET / HTTP/1.1"[..], b"HIPRSHM\x02", b"HIPRSHM\x01\0", b"\0"] {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        let mut served = Served::new(theirs);
        ours.write_all(said).expect("room");
        let error = served.handle_bell().expect_err("that is no hello");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{said:?}");
        assert!(!served.has_room());
    }
    // In pieces it is one.
    let (mut ours, theirs) = UnixStream::pair().expect("sockets");
    let mut served = Served::new(theirs);
    for byte in HELLO {
        assert!(!served.has_room());
        assert_eq!(served.read(&mut [0; 9]).expect_err("nothing").kind(), ErrorKind::WouldBlock);
        ours.write_all(&[byte]).expect("room");
        served.handle_bell().expect("part of a hello");
    }
    assert!(served.has_room());
}

#[test]
fn who_goes_before_the_answer_is_let_go() {
    for said in 0..=HELLO.len() {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        let mut served = Served::new(theirs);
        ours.write_all(&HELLO[..said]).expect("room");
        drop(ours);
        // The answer has nobody to go to, or there is none.
        let heard = served.handle_bell();
        assert_eq!(heard.is_err(), said == HELLO.len(), "{heard:?}");
        if heard.is_ok() {
            assert_eq!(served.read(&mut [0; 1]).expect("the end"), 0);
        }
    }
}

#[test]
fn an_answer_that_is_none_is_refused() {
    for answer in [&b""[..], b"no", b"HIPRSHM\x01\0\0\x10\0", b"HIPRSHM\x01\0\x10\0\0", b"HTTP/1.1 400"] {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let opening = thread::spawn(move || Client::open(ours, PATIENCE));
        let mut hello = [0; 8];
        theirs.read_exact(&mut hello).expect("a hello");
        theirs.write_all(answer).expect("room");
        drop(theirs);
        let error = opening.join().expect("no panic").expect_err("no memory came with it");
        assert!([ErrorKind::InvalidData, ErrorKind::UnexpectedEof].contains(&error.kind()), "{error}");
    }
}
