//! A fuzz target that encodes and decodes everything of the protocol.

use std::fmt::Debug;

use hipr_proto::op::{
    Edge, ForOp, LaunchArgs, LaunchKernel, LaunchMode, Param, StaticEntry, name_of, put_name, with_op,
};
use hipr_proto::{
    Answer, Array, Client, Header, Inline, Limits, Misuse, OPS, Op, Outbox, Outcome, ReplyMode, Rx, Server,
    TailLen, Text, Wire, WireError,
};

/// Maximum length of a generated tail.
const TAIL_MAX_BYTES: u64 = 4096;

/// Reads any bytes as a header, a name, an array, a launch's arguments, and as request and reply of one operation: what is
/// decoded has to encode to the same bytes, what is encoded to decode to the same value, also after being sent.
pub fn codec_roundtrip(data: &[u8]) {
    let Some((&row, data)) = data.split_first() else { return };
    match usize::from(row).checked_sub(OPS.len()) {
        None => {
            let op = OPS[usize::from(row)].code;
            with_op(op, Message(data)).expect("a row of the table");
        }
        Some(0) => value::<Header24>(data),
        Some(1) => name(data),
        Some(2) => arrays(data),
        Some(3) => text(data),
        Some(4) => static_list(data),
        Some(_) => launch(data),
    }
}

/// A header as a `Wire` type.
#[derive(Debug, PartialEq)]
struct Header24(Header);

impl Wire for Header24 {
    const SIZE: usize = Header::SIZE;
    const LAYOUT: hipr_proto::Layout = hipr_proto::Layout::Fields(&[]);
    const ZERO: Self = Self(Header {
        magic: 0,
        version: 0,
        op: hipr_proto::Opcode(0),
        request_id: 0,
        payload_length: 0,
        flags: 0,
    });

    fn put(&self, out: &mut impl hipr_proto::Sink) {
        self.0.put(out);
    }

    fn take(input: &mut &[u8]) -> Result<Self, WireError> {
        Header::take(input).map(Self)
    }
}

/// Returns the first `len` bytes of `data`, padded with zeros.
fn padded(data: &[u8], len: usize) -> Vec<u8> {
    data.iter().copied().chain(std::iter::repeat(0)).take(len).collect()
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.put(&mut bytes);
    bytes
}

/// Compares values; two NaNs are equal.
fn same<T: PartialEq + Debug>(a: &T, b: &T) -> bool {
    a == b || format!("{a:?}") == format!("{b:?}")
}

fn value<T: Wire + PartialEq + Debug>(data: &[u8]) {
    let bytes = padded(data, T::SIZE);
    let longer = [bytes.as_slice(), data].concat();
    let mut input = longer.as_slice();
    let value = T::take(&mut input).expect("all bytes are there");
    assert_eq!(input, data, "more or less than its bytes are taken of {value:?}");
    assert_eq!(encoded(&value), bytes, "{value:?}");
    let again = T::take(&mut encoded(&value).as_slice()).expect("all bytes are there");
    assert!(same(&again, &value), "{value:?} becomes {again:?}");
    if let Some(short) = T::SIZE.checked_sub(1) {
        let len = data.first().map_or(short, |byte| usize::from(*byte).min(short));
        let short = T::take(&mut &bytes[..len]);
        assert!(matches!(short, Err(WireError::Short { .. })), "{len} bytes are {short:?}");
    }
}

#[derive(Clone, Copy)]
struct Message<'a>(&'a [u8]);

impl ForOp for Message<'_> {
    type Out = ();

    fn call<O: Op>(self) {
        value::<O>(self.0);
        value::<O::Reply>(self.0.get(O::SIZE..).unwrap_or_default());
        let request = O::take(&mut padded(self.0, O::SIZE).as_slice()).expect("all bytes are there");
        message(&request, self.0);
    }
}

/// Returns a tail with a length that the layout allows, if there is one.
fn tail_of(len: TailLen, data: &[u8]) -> Option<Vec<u8>> {
    let (TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) = len;
    let cycled = || data.iter().copied().chain([0x5a]).cycle();
    (len <= TAIL_MAX_BYTES).then(|| cycled().take(len as usize).collect())
}

/// Sends a request through a client and a server, and its reply back.
fn message<O: Op>(request: &O, data: &[u8]) {
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    let Some(tail) = tail_of(request.tail_len(), data) else {
        // Nobody has that many bytes: a client says so, a server refuses what claims to have them.
        let sent = client.request(request, &[], None);
        let may_be_none = matches!(request.tail_len(), TailLen::AtMost(_));
        assert!(may_be_none || matches!(sent, Err(Misuse::TailSize { .. })), "{request:?}: {sent:?}");
        return;
    };
    let call = client.request_with(request, &tail, None, ReplyMode::Always).expect("as long as it says");
    let call = call.expect("it is answered");
    let bytes = transmitted(|outbox| client.poll_transmit(outbox));

    let mut server = Server::<Vec<u8>>::new(Limits::default());
    let mut input = bytes.as_slice();
    let ticket = match server.handle_input(&mut input) {
        Ok(Rx::Request { ticket, op, fixed, tail: announced }) => {
            assert_eq!((op, ticket.id(), ticket.refusal()), (O::OPCODE, call.id(), None));
            assert_eq!(fixed, encoded(request), "{request:?}");
            assert_eq!(announced, tail.len() as u64, "{request:?}");
            ticket
        }
        other => panic!("{request:?} arrives as {other:?}"),
    };
    let mut arrived = Vec::new();
    while let Ok(Rx::Data { bytes, last }) = server.handle_input(&mut input) {
        arrived.extend_from_slice(bytes);
        assert_eq!(last, arrived.len() == tail.len());
    }
    assert_eq!(arrived, tail, "{request:?}");

    let Some(reply_tail) = tail_of(request.reply_tail_len(), data) else { return };
    let fixed = padded(data.get(O::SIZE..).unwrap_or_default(), <O::Reply as Wire>::SIZE);
    let reply = O::Reply::take(&mut fixed.as_slice()).expect("all bytes are there");
    let outcome = Outcome::ok(&reply).with_inline(Inline::Whole(reply_tail.clone()));
    server.complete(ticket, outcome).expect("a reply of the right size");
    let bytes = transmitted(|outbox| server.poll_transmit(outbox));
    let mut input = bytes.as_slice();
    match client.handle_input(&mut input) {
        Ok(Answer::Reply(found)) => {
            assert_eq!((found.call, found.error, found.fixed), (call, None, fixed.as_slice()));
            assert_eq!(found.inline, reply_tail.len() as u64, "{request:?}");
            let read = found.read::<O>().expect("whole").expect("no error");
            assert!(same(&read, &reply), "{reply:?} becomes {read:?}");
        }
        other => panic!("{reply:?} arrives as {other:?}"),
    }
    let mut arrived = Vec::new();
    while let Ok(Answer::Data { bytes, .. }) = client.handle_input(&mut input) {
        arrived.extend_from_slice(bytes);
    }
    assert_eq!(arrived, reply_tail, "{request:?}");
    assert_eq!((client.handle_eof(), server.handle_eof()), (Ok(()), Ok(())));
}

fn transmitted(poll: impl FnOnce(&mut Outbox<Vec<u8>>) -> bool) -> Vec<u8> {
    let mut outbox = Outbox::new();
    assert!(poll(&mut outbox), "there is something to send");
    let bytes: Vec<u8> = outbox.slices().flatten().copied().collect();
    assert_eq!(bytes.len(), outbox.len_bytes());
    bytes
}

/// Reads a tail as a name, and writes a name as a tail.
fn name(tail: &[u8]) {
    let Ok(name) = name_of(tail) else {
        if let Ok(text) = std::str::from_utf8(tail) {
            assert!(put_name(text, &mut Vec::new()).is_err(), "{text:?} is no name");
        }
        return;
    };
    let mut again = Vec::new();
    put_name(name, &mut again).expect("it is a name");
    assert_eq!(name_of(&again), Ok(name));
    assert!(again.starts_with(name.as_bytes()) && again[name.len()..].iter().all(|byte| *byte == 0));
}

/// Reads a tail as arrays of every element type.
fn arrays(tail: &[u8]) {
    let Some((&count, tail)) = tail.split_first() else { return };
    array::<Param>(tail, count);
    array::<Edge>(tail, count);
    array::<u64>(tail, count);
    array::<u8>(tail, count);
}

fn array<T: Wire + PartialEq + Debug>(tail: &[u8], count: u8) {
    let need = usize::from(count) * T::SIZE;
    let mut rest = tail;
    let Ok(array) = Array::<T>::take(&mut rest, u64::from(count)) else {
        assert!(tail.len() < need, "{count} values are in {} bytes", tail.len());
        return;
    };
    assert_eq!((array.len(), rest.len()), (usize::from(count), tail.len() - need));
    let bytes: Vec<u8> = array.iter().flat_map(|value| encoded(&value)).collect();
    assert_eq!(bytes, tail[..need]);
    assert!(array.at(usize::from(count)).is_none() && array.at(usize::MAX).is_none());
}

fn text(data: &[u8]) {
    value::<Text<32>>(data);
    value::<Text<256>>(data);
    let bytes = padded(data, 32);
    let text = Text::<32>::take(&mut bytes.as_slice()).expect("all bytes are there");
    let said = text.as_str();
    assert!(bytes.starts_with(said.as_bytes()), "{said:?} of {bytes:?}");
    if said.len() < 32 {
        assert_eq!(Text::<32>::new(said).as_str(), said);
    }
}

/// Reads a tail as a list of static replies.
fn static_list(tail: &[u8]) {
    let mut rest = tail;
    let mut again = Vec::new();
    while let Ok(entry) = StaticEntry::take(&mut rest) {
        let before = again.len();
        entry.put(&mut again).expect("as short as it was");
        assert_eq!(again.len() - before, entry.len_bytes());
        assert_eq!(again, tail[..again.len()], "{entry:?}");
        assert_eq!(again.len() + rest.len(), tail.len());
    }
}

/// Reads a tail as a launch's arguments.
fn launch(data: &[u8]) {
    let Some(([num_args, launch_flags], tail)) = data.split_first_chunk() else { return };
    let request = LaunchKernel {
        num_args: u32::from(*num_args),
        launch_flags: u32::from(*launch_flags % 3),
        ..LaunchKernel::ZERO
    };
    let Ok(args) = LaunchArgs::parse(&request, tail) else { return };
    let params: Vec<Param> = args.params().iter().collect();
    assert_eq!(params.len(), usize::from(*num_args));
    let mut again = Vec::new();
    LaunchArgs::put(&params, args.data(), &mut again);
    assert_eq!(again, tail);
    for (bytes, param) in args.iter().zip(&params) {
        assert_eq!(bytes, &args.data()[param.offset as usize..][..param.size as usize]);
    }
    match args.mode() {
        LaunchMode::Params => assert_eq!(*launch_flags % 3, 0),
        LaunchMode::Flat => assert!(args.flat().len() <= args.data().len() && params.len() <= 1),
    }
}
