//! Checks that a client that writes arbitrary values into the shared memory causes only errors at the worker's end.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use hipr_io_shm::{HELLO, RING_BYTES, Served};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Offset of the words of the ring to the worker.
const TO_WORKER: u64 = 0;
const TO_CLIENT: u64 = 4096 + RING_BYTES as u64;
const TAIL: u64 = 0;
const HEAD: u64 = 128;
const READER_SLEEPS: u64 = 256;
const WRITER_SLEEPS: u64 = 384;

/// A client that writes to the shared memory as a file, at any offset.
struct Hostile {
    memory: File,
    _control: UnixStream,
}

impl Hostile {
    fn connect() -> (Self, Served) {
        let (mut control, theirs) = UnixStream::pair().expect("sockets");
        let mut served = Served::new(theirs);
        control.write_all(&HELLO).expect("room");
        served.handle_bell().expect("a hello");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut answer = [0; 64];
        let into = &mut [IoSliceMut::new(&mut answer)];
        recvmsg(&control, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).expect("an answer");
        let file = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        (Self { memory: file.expect("the memory").into(), _control: control }, served)
    }

    fn set(&self, word: u64, value: u32) {
        self.memory.write_all_at(&value.to_le_bytes(), word).expect("the memory can be written");
    }
}

/// Writes until writing fails; returns the error's kind.
fn fill(served: &mut Served) -> ErrorKind {
    let bytes = vec![0; 100_000];
    for _ in 0..100 {
        if let Err(why) = served.write_vectored(&[IoSlice::new(&bytes)]) {
            return why.kind();
        }
    }
    panic!("ten megabytes do not fit into a ring of one");
}

#[test]
fn positions_that_cannot_be_end_the_connection() {
    for tail in [RING_BYTES + 1, 1 << 31, u32::MAX] {
        let (client, mut served) = Hostile::connect();
        client.set(TO_WORKER + TAIL, tail);
        assert!(served.has_input(), "reading is not nothing, it is an error");
        assert!(!served.prepare_sleep(true, false));
        assert_eq!(served.read(&mut [0; 100]).expect_err("impossible").kind(), ErrorKind::InvalidData);
    }
    for head in [RING_BYTES + 1, 1 << 31, u32::MAX] {
        let (client, mut served) = Hostile::connect();
        assert_eq!(fill(&mut served), ErrorKind::WouldBlock, "a full ring");
        client.set(TO_CLIENT + HEAD, head);
        assert!(served.has_room());
        assert!(!served.prepare_sleep(false, true));
        assert_eq!(fill(&mut served), ErrorKind::InvalidData);
    }
}

#[test]
fn a_position_that_goes_back_is_no_room() {
    let (client, mut served) = Hostile::connect();
    client.set(TO_CLIENT + HEAD, 0);
    assert_eq!(fill(&mut served), ErrorKind::WouldBlock);
    client.set(TO_CLIENT + HEAD, RING_BYTES / 2);
    assert_eq!(served.write_vectored(&[IoSlice::new(&[0; 100])]).expect("half is free"), 100);
    client.set(TO_CLIENT + HEAD, 0);
    // It is not looked at before what is known to be free is used up; then it is impossible.
    assert_eq!(fill(&mut served), ErrorKind::InvalidData);
}

#[test]
fn the_memory_cannot_be_taken_away() {
    let (client, mut served) = Hostile::connect();
    assert!(client.memory.set_len(0).is_err());
    assert!(client.memory.set_len(1 << 30).is_err());
    assert_eq!(fill(&mut served), ErrorKind::WouldBlock);
}

#[test]
fn nothing_that_is_written_there_does_worse_than_err() {
    let mut state = 7u64;
    let mut draw = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    let (mut client, mut served) = Hostile::connect();
    let mut errors = 0;
    for _ in 0..20_000 {
        let ring = [TO_WORKER, TO_CLIENT][draw() as usize % 2];
        let word = [TAIL, HEAD, READER_SLEEPS, WRITER_SLEEPS][draw() as usize % 4];
        let near = (draw() % (2 * RING_BYTES)).wrapping_sub(RING_BYTES / 2);
        client.set(ring + word, if draw() % 4 == 0 { draw() } else { near });
        let size = 1 + draw() as usize % 100_000;
        let result = match draw() % 4 {
            0 => served.read(&mut vec![0; size]),
            1 => served.write_vectored(&[IoSlice::new(&vec![0; size])]),
            2 => Ok(usize::from(served.prepare_sleep(draw() % 2 == 0, draw() % 2 == 0))),
            _ => Ok(usize::from(served.has_input() | served.has_room())),
        };
        match result {
            Ok(_) => {}
            Err(why) if why.kind() == ErrorKind::WouldBlock => {}
            Err(why) => {
                assert_eq!(why.kind(), ErrorKind::InvalidData);
                errors += 1;
                (client, served) = Hostile::connect();
            }
        }
    }
    assert!(errors > 100, "{errors} errors");
}
