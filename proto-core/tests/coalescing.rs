//! Compares what a client collects, sends without copying, and when, with a model of a buffer and a flag; lengths are at,
//! below and above every threshold.

mod support;

use hipr_proto::{
    COALESCE_BYTES, COALESCE_INLINE_BYTES, FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, Misuse, Opcode, Outbox,
    Sender,
};
use proptest::prelude::*;
use support::{proptest_config, raw};

const HEADER_BYTES: usize = 24;

#[derive(Debug, Clone)]
enum Action {
    Request {
        op: Opcode,
        fixed: usize,
        inline: Option<usize>,
        loud: bool,
    },
    /// Queues requests until the buffer has at most this many bytes left.
    Fill {
        left: usize,
    },
    Flush,
    Poll,
}

fn action() -> impl Strategy<Value = Action> {
    let around = |n: usize| n - 2..=n + 2;
    let op = prop_oneof![Just(Opcode::MEMCPY), Just(Opcode::FREE), Just(Opcode(0x7fff))];
    let inline = prop_oneof![
        3 => Just(None),
        1 => (0..100usize).prop_map(Some),
        2 => around(COALESCE_INLINE_BYTES).prop_map(Some),
        1 => around(COALESCE_BYTES).prop_map(Some),
    ];
    let fixed = prop_oneof![5 => 0..80usize, 1 => around(COALESCE_BYTES - HEADER_BYTES)];
    // So many bytes are left that a request with these lengths fits just, or just not.
    let left = prop_oneof![
        0..4usize,
        around(HEADER_BYTES),
        around(HEADER_BYTES + COALESCE_INLINE_BYTES),
        0..9000usize
    ];
    prop_oneof![
        6 => (op, fixed, inline, proptest::bool::weighted(0.1))
            .prop_map(|(op, fixed, inline, loud)| Action::Request { op, fixed, inline, loud }),
        2 => left.prop_map(|left| Action::Fill { left }),
        1 => Just(Action::Flush),
        2 => Just(Action::Poll),
    ]
}

/// A slice of an outbox.
#[derive(Debug, PartialEq)]
enum Chunk {
    Gathered(Vec<u8>),
    /// An inline chunk: this many bytes of the caller's memory.
    Inline(usize),
}

#[derive(Debug, Default)]
struct Model {
    chunks: Vec<Chunk>,
    flush: bool,
    ids: u32,
}

impl Model {
    fn len_bytes(&self) -> usize {
        self.chunks
            .iter()
            .map(|chunk| match chunk {
                Chunk::Gathered(bytes) => bytes.len(),
                Chunk::Inline(len) => *len,
            })
            .sum()
    }

    fn request(
        &mut self,
        op: Opcode,
        fixed: &[u8],
        inline: Option<&[u8]>,
        loud: bool,
    ) -> Result<Option<u32>, Misuse> {
        let queued = self.len_bytes();
        if queued >= COALESCE_BYTES {
            return Err(Misuse::Unflushed { queued });
        }
        self.ids += 1;
        let brings = inline.is_some_and(|inline| !inline.is_empty());
        let flags = if loud { 0 } else { FLAG_NO_REPLY }
            | if brings && op == Opcode::MEMCPY { FLAG_HAS_INLINE_DATA } else { 0 };
        let len = inline.map_or(0, <[u8]>::len);
        let message = raw(op, self.ids, flags, &[fixed, inline.unwrap_or(&[])].concat());
        let copied = len <= COALESCE_INLINE_BYTES && queued + message.len() <= COALESCE_BYTES;
        let gathered = if copied { message.len() } else { message.len() - len };
        match self.chunks.last_mut() {
            Some(Chunk::Gathered(bytes)) => bytes.extend_from_slice(&message[..gathered]),
            _ => self.chunks.push(Chunk::Gathered(message[..gathered].to_vec())),
        }
        if !copied && inline.is_some() {
            self.chunks.extend((len > 0).then_some(Chunk::Inline(len)));
            self.flush = true;
        }
        self.flush |= loud || self.len_bytes() >= COALESCE_BYTES;
        Ok(loud.then_some(self.ids))
    }
}

fn chunks(outbox: &Outbox<&[u8]>, memory: &[u8]) -> Vec<Chunk> {
    outbox
        .slices()
        .map(|slice| match slice.as_ptr() == memory.as_ptr() {
            true => Chunk::Inline(slice.len()),
            false => Chunk::Gathered(slice.to_vec()),
        })
        .collect()
}

proptest! {
    #![proptest_config(proptest_config(1000))]

    #[test]
    fn requests_gather_and_leave_as_the_model_says(actions in proptest::collection::vec(action(), 0..30)) {
        let memory: Vec<u8> = (0..COALESCE_BYTES + 10).map(|i| (i % 251) as u8).collect();
        let (mut sender, mut model) = (Sender::<&[u8]>::new(), Model::default());
        for action in actions {
            let request = match action {
                Action::Request { op, fixed, inline, loud } => Some((op, fixed, inline, loud)),
                Action::Fill { left } => COALESCE_BYTES
                    .checked_sub(model.len_bytes() + HEADER_BYTES + left)
                    .map(|fixed| (Opcode::FREE, fixed, None, false)),
                Action::Flush => {
                    sender.flush();
                    model.flush = !model.chunks.is_empty();
                    None
                }
                Action::Poll => {
                    let mut outbox = Outbox::new();
                    prop_assert_eq!(sender.poll_transmit(&mut outbox), !model.chunks.is_empty());
                    prop_assert_eq!(chunks(&outbox, &memory), std::mem::take(&mut model.chunks));
                    model.flush = false;
                    None
                }
            };
            if let Some((op, fixed, inline, loud)) = request {
                let (fixed, inline) = (&memory[1..][..fixed], inline.map(|len| &memory[..len]));
                let call = sender.request_raw(op, fixed, inline, loud);
                let said = model.request(op, fixed, inline, loud);
                prop_assert_eq!(call.map(|call| call.map(|call| call.id())), said);
            }
            prop_assert_eq!((sender.queued_bytes(), sender.wants_flush()), (model.len_bytes(), model.flush));
        }
    }
}
