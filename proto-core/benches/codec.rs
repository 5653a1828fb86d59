//! Measures encoding and decoding without a socket: requests out of the client, into the server, and replies back.
//!
//! `cargo bench -p hipr-proto`

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use hipr_proto::op::{self, LaunchArgs, LaunchKernel, Param};
use hipr_proto::{
    Answer, COALESCE_BYTES, Client, Header, Limits, Outbox, Outcome, Receiver, ReplyMode, Rx, Sender, Server,
    Wire,
};
use std::hint::black_box;

type Bytes = &'static [u8];

/// Returns a launch with six arguments of 8 bytes.
fn launch() -> (LaunchKernel, Vec<u8>) {
    let params: Vec<Param> = (0..6).map(|index| Param { offset: index * 8, size: 8 }).collect();
    let mut args = Vec::new();
    LaunchArgs::put(&params, &[7; 48], &mut args);
    let launch =
        LaunchKernel { function: 1, grid_dim_x: 1, block_dim_x: 64, num_args: 6, ..LaunchKernel::ZERO };
    (launch, args)
}

/// Returns the bytes of a full coalescing buffer of launches, and the number of launches in it.
fn buffer_of_launches() -> (Vec<u8>, u64) {
    let (launch, args) = launch();
    let mut sender = Sender::<Bytes>::new();
    let mut count = 0;
    while sender.queued_bytes() < COALESCE_BYTES {
        sender.request(&launch, &args, None).map(drop).expect("there is room");
        count += 1;
    }
    (taken(|outbox| sender.poll_transmit(outbox)), count)
}

fn taken(poll_transmit: impl FnOnce(&mut Outbox<Bytes>) -> bool) -> Vec<u8> {
    let mut outbox = Outbox::new();
    poll_transmit(&mut outbox);
    outbox.slices().flatten().copied().collect()
}

fn encode(c: &mut Criterion) {
    let (launch, args) = launch();
    let (_, count) = buffer_of_launches();
    let mut group = c.benchmark_group("encode");
    group.throughput(Throughput::Elements(count));
    group.bench_function("launches", |bencher| {
        let (mut sender, mut outbox) = (Sender::<Bytes>::new(), Outbox::new());
        bencher.iter(|| {
            for _ in 0..count {
                let call = sender.request(black_box(&launch), black_box(&args), None);
                assert!(call.expect("there is room").is_none());
            }
            sender.poll_transmit(&mut outbox);
            outbox.advance(outbox.len_bytes());
        });
    });
    group.finish();
}

fn decode(c: &mut Criterion) {
    let (bytes, count) = buffer_of_launches();
    let mut group = c.benchmark_group("decode");
    group.throughput(Throughput::Elements(count));
    group.bench_function("launches", |bencher| {
        let mut receiver = Receiver::new(Limits::default());
        bencher.iter(|| {
            let mut input = bytes.as_slice();
            let mut open = 0;
            let mut launch = None;
            loop {
                match receiver.handle_input(&mut input).expect("requests") {
                    Rx::Request { ticket, mut fixed, .. } => {
                        drop(black_box(ticket));
                        launch = Some(LaunchKernel::take(&mut fixed).expect("a launch"));
                    }
                    Rx::Data { bytes, .. } => {
                        let launch = launch.as_ref().expect("arguments follow their launch");
                        black_box(LaunchArgs::parse(launch, bytes).expect("arguments"));
                        open += 1;
                    }
                    Rx::NeedMore | Rx::Paused => break,
                }
            }
            assert_eq!(open, count);
            receiver.retire(usize::try_from(open).expect("few"));
        });
    });
    group.finish();
}

/// Measures round trips at both ends: encodes a request, decodes it, completes it, encodes the reply, decodes it.
fn round_trip(c: &mut Criterion) {
    let mut group = c.benchmark_group("round trip");
    group.throughput(Throughput::Elements(1));
    group.bench_function("synchronize", |bencher| {
        let mut client = Client::<Bytes>::new(Limits::default());
        let mut server = Server::<Bytes>::new(Limits::default());
        let mut outbox = Outbox::new();
        bencher.iter(|| {
            let call = client.request_with(&op::DeviceSynchronize {}, &[], None, ReplyMode::Always);
            assert!(call.expect("there is room").is_some());
            client.poll_transmit(&mut outbox);
            for mut bytes in outbox.slices() {
                let Ok(Rx::Request { ticket, .. }) = server.handle_input(&mut bytes) else {
                    panic!("a request")
                };
                server.complete(ticket, Outcome::ok(&())).expect("it is next");
            }
            outbox.advance(outbox.len_bytes());
            server.poll_transmit(&mut outbox);
            for mut bytes in outbox.slices() {
                let Ok(Answer::Reply(reply)) = client.handle_input(&mut bytes) else { panic!("a reply") };
                assert_eq!(black_box(reply).error, None);
            }
            outbox.advance(outbox.len_bytes());
        });
    });
    group.finish();
}

/// Measures how fast bulk bytes pass through in pieces of the size of a read, without being copied.
fn bulk(c: &mut Criterion) {
    const LEN: usize = 64 << 20;
    const READ_BYTES: usize = 256 << 10;
    let copy = op::Memcpy { dst: 1, src: 0, size: LEN as u64, kind: op::kind::HOST_TO_DEVICE, stream: 0 };
    let mut head = Vec::new();
    let len = (op::Memcpy::SIZE + LEN) as u64;
    let flags = hipr_proto::FLAG_NO_REPLY | hipr_proto::FLAG_HAS_INLINE_DATA;
    Header::new(hipr_proto::Opcode::MEMCPY, 1, len, flags).put(&mut head);
    copy.put(&mut head);
    let piece = vec![0; READ_BYTES];
    let mut group = c.benchmark_group("decode");
    group.throughput(Throughput::Bytes(LEN as u64));
    group.bench_function("a copy of 64 MiB", |bencher| {
        bencher.iter_batched_ref(
            || Receiver::new(Limits::default()),
            |receiver| {
                let mut head = head.as_slice();
                assert!(matches!(receiver.handle_input(&mut head), Ok(Rx::Request { .. })));
                for _ in 0..LEN / READ_BYTES {
                    let mut input = piece.as_slice();
                    assert!(matches!(receiver.handle_input(&mut input), Ok(Rx::Data { .. })));
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, encode, decode, round_trip, bulk);
criterion_main!(benches);
