//! Shared by several tests: encoded requests, a scripted server, decoded replies.
#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod naive;
pub(crate) mod values;

use proptest::test_runner::{Config, RngSeed};

use hipr_proto::{Header, HipError, Limits, Misuse, Op, Opcode, Outbox, Outcome, Rx, Server, Ticket, Wire};

/// Returns a configuration that generates the same `cases` in every run and on every machine.
pub(crate) fn proptest_config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(0x4849_5052), ..Config::default() }
}

/// Encodes a request without using the client.
pub(crate) fn request(op: &impl Op, id: u32, flags: u32, tail: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    op.put(&mut body);
    body.extend_from_slice(tail);
    raw(opcode_of(op), id, flags, &body)
}

/// Encodes a message with any payload.
pub(crate) fn raw(op: Opcode, id: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Header::new(op, id, body.len() as u64, flags).to_bytes().to_vec();
    out.extend_from_slice(body);
    out
}

fn opcode_of<O: Op>(_: &O) -> Opcode {
    O::OPCODE
}

/// A decoded reply: header, error code, and what follows.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) op: Opcode,
    pub(crate) id: u32,
    pub(crate) flags: u32,
    pub(crate) error: i32,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn seen(mut bytes: &[u8]) -> Vec<Seen> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let header = Header::take(&mut bytes).expect("a header");
        let (mut payload, rest) = bytes.split_at(header.payload_length as usize);
        bytes = rest;
        let error = i32::take(&mut payload).expect("an error code");
        let (op, id, flags) = (header.op, header.request_id, header.flags);
        all.push(Seen { op, id, flags, error, body: payload.to_vec() });
    }
    all
}

/// Returns id and error code of each reply.
pub(crate) fn errors(bytes: &[u8]) -> Vec<(u32, i32)> {
    seen(bytes).iter().map(|reply| (reply.id, reply.error)).collect()
}

/// A server under test, whose input and output are buffers.
pub(crate) struct Desk {
    pub(crate) server: Server<Vec<u8>>,
}

/// A request as the server delivered it.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) ticket: Ticket,
    pub(crate) op: Opcode,
    pub(crate) fixed: Vec<u8>,
    pub(crate) tail: u64,
    pub(crate) data: Vec<u8>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self { server: Server::new(limits) }
    }

    /// Receives all requests in `bytes`, which have to be complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Got> {
        let mut input = bytes;
        let mut all: Vec<Got> = Vec::new();
        loop {
            match self.server.handle_input(&mut input).expect("good bytes") {
                Rx::Request { ticket, op, fixed, tail } => {
                    all.push(Got { ticket, op, fixed: fixed.to_vec(), tail, data: Vec::new() });
                }
                Rx::Data { bytes, last } => {
                    let got = all.last_mut().expect("data belongs to a request");
                    got.data.extend_from_slice(bytes);
                    assert_eq!(last, got.data.len() as u64 == got.tail);
                }
                Rx::NeedMore => break,
                Rx::Paused => panic!("paused"),
            }
        }
        assert!(input.is_empty());
        all
    }

    /// Receives the one request in `bytes`.
    pub(crate) fn one(&mut self, bytes: &[u8]) -> Got {
        let mut all = self.feed(bytes);
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    pub(crate) fn complete(&mut self, ticket: Ticket, outcome: Outcome<Vec<u8>>) -> Result<(), Misuse> {
        self.server.complete(ticket, outcome)
    }

    /// Receives a request and completes it.
    pub(crate) fn carry_out(&mut self, bytes: &[u8], outcome: Result<(), HipError>) {
        let got = self.one(bytes);
        self.complete(got.ticket, outcome.into()).expect("in order");
    }

    /// Returns the bytes that the server sends.
    pub(crate) fn sent(&mut self) -> Vec<u8> {
        let mut outbox = Outbox::new();
        self.server.poll_transmit(&mut outbox);
        flat(&outbox)
    }
}

pub(crate) fn flat<B: AsRef<[u8]>>(outbox: &Outbox<B>) -> Vec<u8> {
    outbox.slices().flatten().copied().collect()
}
