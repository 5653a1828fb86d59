//! Counts the instructions of encoding and decoding launches.

use std::hint::black_box;

use hipr_proto::op::{LaunchArgs, LaunchKernel, Param};
use hipr_proto::{COALESCE_BYTES, Limits, Outbox, Receiver, Rx, Sender, Wire};

/// Returns a launch of `function` with six arguments of 8 bytes: its fixed part and its tail.
pub(super) fn launch_of(function: u64) -> (LaunchKernel, Vec<u8>) {
    let params: Vec<Param> = (0..6).map(|index| Param { offset: index * 8, size: 8 }).collect();
    let mut args = Vec::new();
    LaunchArgs::put(&params, &[7; 48], &mut args);
    let launch = LaunchKernel {
        function,
        grid_dim_x: 1,
        grid_dim_y: 1,
        grid_dim_z: 1,
        block_dim_x: 64,
        block_dim_y: 1,
        block_dim_z: 1,
        num_args: 6,
        ..LaunchKernel::ZERO
    };
    (launch, args)
}

fn request(sender: &mut Sender<Vec<u8>>, launch: &LaunchKernel, args: &[u8]) {
    let call = sender.request(black_box(launch), black_box(args), None).expect("there is room");
    assert!(call.is_none(), "a launch is not answered");
}

/// Encodes `operations` launches; discards the buffer each time it is full.
pub(super) fn encode(operations: u64) {
    let (launch, args) = launch_of(1);
    let (mut sender, mut outbox) = (Sender::<Vec<u8>>::new(), Outbox::new());
    for _ in 0..operations {
        request(&mut sender, &launch, &args);
        if sender.queued_bytes() >= COALESCE_BYTES / 2 {
            sender.poll_transmit(&mut outbox);
            outbox.advance(outbox.len_bytes());
        }
    }
}

/// Decodes `operations` launches from the same bytes.
pub(super) fn decode(operations: u64) {
    const LAUNCHES: u64 = 100;
    let (launch, args) = launch_of(1);
    let (mut sender, mut outbox) = (Sender::<Vec<u8>>::new(), Outbox::new());
    for _ in 0..LAUNCHES {
        request(&mut sender, &launch, &args);
    }
    sender.flush();
    sender.poll_transmit(&mut outbox);
    let bytes: Vec<u8> = outbox.slices().flatten().copied().collect();
    let mut receiver = Receiver::new(Limits::default());
    for _ in 0..operations / LAUNCHES {
        assert_eq!(decode_all(&mut receiver, black_box(&bytes)), LAUNCHES, "every launch is read");
    }
}

fn decode_all(receiver: &mut Receiver, mut input: &[u8]) -> u64 {
    let (mut open, mut launch) = (0, None);
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
            _ => break,
        }
    }
    receiver.retire(open as usize);
    open
}
