//! A client, a server and a device in a world of seeded accidents: any pieces, any delays, partial writes, full servers,
//! failing operations. What the client learns has to be what a model of a few lines says.

mod support;

use std::collections::VecDeque;

use hipr_proto::{
    Answer, Answered, Client, HipError, Inline, Limits, Opcode, Outbox, Outcome, Rx, Server, Ticket, Wire, op,
};
use support::Random;

/// A request of the script, and what the device will say to it.
#[derive(Debug, Clone)]
struct Call {
    what: What,
    loud: bool,
    device: Result<(), HipError>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Free,
    Malloc,
    Synchronize,
    Ping,
    /// Inline bytes of the request.
    Write(usize),
    /// Inline bytes of the reply.
    Read(usize),
    /// Length of the tail.
    Name(usize),
    Unknown(usize),
    Short,
}

impl What {
    fn refusal(self) -> Option<HipError> {
        match self {
            Self::Unknown(_) => Some(HipError::NOT_SUPPORTED),
            Self::Short => Some(HipError::INVALID_VALUE),
            _ => None,
        }
    }
}

/// What the client learns of a call that is answered.
#[derive(Debug, PartialEq)]
struct Learned {
    error: Option<HipError>,
    data: Vec<u8>,
}

fn script(random: &mut Random) -> Vec<Call> {
    (0..1 + random.below(40))
        .map(|_| {
            let what = match random.below(9) {
                0 => What::Free,
                1 => What::Malloc,
                2 => What::Synchronize,
                3 => What::Ping,
                4 => What::Write(random.below(10_000) as usize),
                5 => What::Read(random.below(10_000) as usize),
                6 => What::Name(1 + random.below(1000) as usize),
                7 => What::Unknown(random.below(100) as usize),
                _ => What::Short,
            };
            let device = if random.one_in(4) { Err(HipError(700 + random.below(9) as i32)) } else { Ok(()) };
            Call { what, loud: random.one_in(2), device }
        })
        .collect()
}

/// What a right server does: which calls it executes, and what the client learns.
fn model(script: &[Call]) -> (Vec<bool>, Vec<Learned>) {
    let (mut executed, mut learned) = (Vec::new(), Vec::new());
    let mut kept = None;
    for call in script {
        let creates = matches!(call.what, What::Malloc | What::Short);
        let reports = call.loud && call.what != What::Ping;
        executed.push(call.what.refusal().is_none() && !(reports && creates && kept.is_some()));
        let own = call.what.refusal().or(call.device.err());
        if !call.loud {
            kept = kept.or(own);
            continue;
        }
        let error = if reports { kept.take().or(own) } else { own };
        let data = match (call.what, error) {
            (What::Read(len), None) => pattern(len),
            _ => Vec::new(),
        };
        learned.push(Learned { error, data });
    }
    (executed, learned)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7) as u8).collect()
}

/// Bytes in flight in one direction.
#[derive(Default)]
struct Pipe(VecDeque<u8>);

impl Pipe {
    /// Takes some of what is to be sent, as a socket does.
    fn write(&mut self, outbox: &mut Outbox<Vec<u8>>, random: &mut Random) {
        let n = match random.below(3) {
            0 => outbox.len_bytes(),
            _ => random.below(5000) as usize,
        };
        let n = n.min(outbox.len_bytes());
        self.0.extend(outbox.slices().flatten().take(n));
        outbox.advance(n);
    }

    /// Moves some of it to the end of `buffer`.
    fn read(&mut self, buffer: &mut Vec<u8>, random: &mut Random) {
        let n = match random.below(3) {
            0 => self.0.len(),
            1 => random.below(30) as usize,
            _ => random.below(5000) as usize,
        };
        buffer.extend(self.0.drain(..n.min(self.0.len())));
    }
}

struct ServerSide {
    server: Server<Vec<u8>>,
    buffer: Vec<u8>,
    outbox: Outbox<Vec<u8>>,
    /// Delivered, not completed; with the bytes of their tails and how many there will be.
    queue: VecDeque<(Ticket, u64, Vec<u8>)>,
    executed: Vec<bool>,
    /// The rest of a reply that is being streamed.
    streaming: Vec<u8>,
    open_max: usize,
}

impl ServerSide {
    fn receive(&mut self) {
        let mut input = self.buffer.as_slice();
        loop {
            match self.server.handle_input(&mut input).expect("good bytes") {
                Rx::Request { ticket, tail, .. } => self.queue.push_back((ticket, tail, Vec::new())),
                Rx::Data { bytes, last } => {
                    let (_, tail, data) = self.queue.back_mut().expect("data belongs to a request");
                    data.extend_from_slice(bytes);
                    assert_eq!(last, *tail == data.len() as u64);
                }
                Rx::NeedMore => break,
                Rx::Paused => {
                    assert_eq!(self.server.open(), self.open_max);
                    break;
                }
            }
            assert!(self.server.open() <= self.open_max && self.queue.len() == self.server.open());
        }
        let left = input.len();
        self.buffer.drain(..self.buffer.len() - left);
    }

    /// One step of the device.
    fn work(&mut self, script: &[Call], random: &mut Random) {
        if self.server.stream_left() > 0 {
            let n = (1 + random.below(4000) as usize).min(self.streaming.len());
            let piece = self.streaming.drain(..n).collect();
            self.server.push_data(piece).expect("owed");
            return;
        }
        let Some((_, tail, data)) = self.queue.front() else { return };
        if *tail > data.len() as u64 {
            return;
        }
        let Some((ticket, _, data)) = self.queue.pop_front() else { return };
        let call = &script[self.executed.len()];
        let admitted = self.server.admit(&ticket).is_none();
        self.executed.push(admitted);
        if admitted {
            match call.what {
                What::Write(len) => assert_eq!(data, pattern(len)),
                What::Name(len) => assert_eq!(op::name_of(&data).map(str::len), Ok(len)),
                _ => assert!(data.is_empty()),
            }
        }
        let size = ticket.op().info().map_or(0, |info| info.reply.size);
        let mut outcome = Outcome::ok_raw(&vec![1; size]);
        if let What::Read(len) = call.what {
            self.streaming = pattern(len);
            outcome = outcome.with_inline(match random.one_in(2) {
                true => Inline::Stream(len as u64),
                false => Inline::Whole(pattern(len)),
            });
        }
        if let Err(error) = call.device {
            outcome = Outcome::error(error);
        }
        self.server.complete(ticket, outcome).expect("in order");
    }
}

fn ask(client: &mut Client<Vec<u8>>, call: &Call) -> Option<u32> {
    let answered = if call.loud { Answered::Always } else { Answered::Never };
    let copy = |size: usize, kind| op::Memcpy { size: size as u64, kind, ..Wire::ZERO };
    let name = |len| {
        let mut tail = Vec::new();
        op::put_name(&"n".repeat(len), &mut tail).expect("a good name");
        tail
    };
    let sent = match call.what {
        What::Free => client.request_with(&op::Free { device_ptr: 1 }, &[], None, answered),
        What::Malloc => client.request_with(&op::Malloc { size: 1, flags: 0 }, &[], None, answered),
        What::Synchronize => client.request_with(&op::DeviceSynchronize {}, &[], None, answered),
        What::Ping => client.request_with(&op::Ping {}, &[], None, answered),
        What::Write(len) => {
            client.request_with(&copy(len, op::kind::HOST_TO_DEVICE), &[], Some(pattern(len)), answered)
        }
        What::Read(len) => client.request_with(&copy(len, op::kind::DEVICE_TO_HOST), &[], None, answered),
        What::Name(len) => {
            client.request_with(&op::ModuleGetFunction { module: 1 }, &name(len), None, answered)
        }
        What::Unknown(len) => client.request_raw(Opcode(0x0fff), &pattern(len), None, call.loud),
        What::Short => client.request_raw(Opcode::MALLOC, &[0; 11], None, call.loud),
    };
    sent.expect("a good request").map(|call| call.id())
}

fn live(seed: u64) {
    let mut random = Random::new(seed);
    let script = script(&mut random);
    let open_max = 1 + random.below(6) as usize;
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    let mut side = ServerSide {
        server: Server::new(Limits { open_max, ..Limits::default() }),
        buffer: Vec::new(),
        outbox: Outbox::new(),
        queue: VecDeque::new(),
        executed: Vec::new(),
        streaming: Vec::new(),
        open_max,
    };
    let (mut up, mut down) = (Pipe::default(), Pipe::default());
    let (mut outbox, mut buffer) = (Outbox::new(), Vec::new());
    let mut calls = script.iter();
    let mut asked = Vec::new();
    let mut learned: Vec<(u32, Learned)> = Vec::new();
    let mut steps = 0;
    while side.executed.len() < script.len()
        || client.waiting() > 0
        || side.server.stream_left() > 0
        || !side.outbox.is_empty()
        || !down.0.is_empty()
        || side.server.poll_transmit(&mut side.outbox)
    {
        steps += 1;
        assert!(steps < 100_000, "seed {seed}: the world stands still");
        match random.below(6) {
            0 if outbox.len_bytes() < 50_000 => match calls.next() {
                Some(call) => asked.extend(ask(&mut client, call)),
                None => client.flush(),
            },
            0 | 1 => {
                if client.wants_flush() || random.one_in(3) {
                    client.poll_transmit(&mut outbox);
                }
                up.write(&mut outbox, &mut random);
            }
            2 => {
                up.read(&mut side.buffer, &mut random);
                side.receive();
            }
            3 => side.work(&script, &mut random),
            4 => {
                side.server.poll_transmit(&mut side.outbox);
                down.write(&mut side.outbox, &mut random);
            }
            _ => {
                down.read(&mut buffer, &mut random);
                let mut input = buffer.as_slice();
                loop {
                    match client.handle_input(&mut input).expect("good replies") {
                        Answer::Reply(reply) => {
                            learned.push((reply.call.id(), Learned { error: reply.error, data: Vec::new() }));
                        }
                        Answer::Data { bytes, .. } => {
                            learned
                                .last_mut()
                                .expect("data belongs to a reply")
                                .1
                                .data
                                .extend_from_slice(bytes);
                        }
                        Answer::NeedMore => break,
                    }
                }
                assert!(input.is_empty());
                buffer.clear();
            }
        }
        if client.wants_flush() {
            client.poll_transmit(&mut outbox);
        }
    }
    let (executed, expected) = model(&script);
    assert_eq!(side.executed, executed, "seed {seed}");
    let (ids, learned): (Vec<_>, Vec<_>) = learned.into_iter().unzip();
    assert_eq!(ids, asked, "seed {seed}");
    assert_eq!(learned, expected, "seed {seed}");
    assert_eq!((side.server.handle_eof(), client.handle_eof()), (Ok(()), Ok(())), "seed {seed}");
}

#[test]
fn clients_learn_what_the_model_says() {
    for seed in 0..1000 {
        live(seed);
    }
}
