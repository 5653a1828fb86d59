//! Tests how a server reads its input: valid requests in pieces, malformed requests, too many requests.

mod support;

use hipr_proto::op::{LaunchArgs, LaunchMode, Param};
use hipr_proto::{
    FLAG_RESPONSE, Fatal, Header, HipError, Limits, Opcode, Outcome, Receiver, Rx, Wire, WireError, op,
};
use support::{Desk, errors, raw, request};

fn h2d(size: u64) -> op::Memcpy {
    op::Memcpy { dst: 1, src: 2, size, kind: op::kind::HOST_TO_DEVICE, stream: 0 }
}

fn launch(num_args: u32, launch_flags: u32) -> op::LaunchKernel {
    op::LaunchKernel { num_args, launch_flags, ..Wire::ZERO }
}

#[test]
fn the_end_may_be_told_before_more_is_asked_for() {
    let ping = request(&op::Ping {}, 1, 0, &[]);
    let with_rest = raw(Opcode::PING, 1, 0, b"bytes to skip");
    for (bytes, end) in [(ping, Ok(())), (with_rest, Err(Fatal::EofInsideMessage))] {
        let mut receiver = Receiver::new(Limits::default());
        assert!(matches!(receiver.handle_input(&mut bytes.as_slice()), Ok(Rx::Request { .. })));
        assert_eq!(receiver.handle_eof(), end);
    }
}

#[test]
fn whole_parts_are_not_copied() {
    let bytes = request(&h2d(5), 1, 0, b"hello");
    let inside = |part: &[u8]| bytes.as_ptr_range().contains(&part.as_ptr());
    let mut receiver = Receiver::new(Limits::default());
    let mut input = bytes.as_slice();
    let Ok(Rx::Request { fixed, ticket, .. }) = receiver.handle_input(&mut input) else {
        panic!("a request")
    };
    assert!(inside(fixed) && fixed.len() == 36);
    assert_eq!((ticket.id(), ticket.op(), ticket.wants_reply()), (1, Opcode::MEMCPY, true));
    let Ok(Rx::Data { bytes: data, last: true }) = receiver.handle_input(&mut input) else { panic!("data") };
    assert!(inside(data) && data == b"hello");
}

#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<Receiver>() < 1024, "{} bytes", size_of::<Receiver>());
}

fn fatal(limits: Limits, bytes: &[u8]) -> Fatal {
    let mut receiver = Receiver::new(limits);
    let mut input = bytes;
    let first = receiver.handle_input(&mut input).map(|rx| format!("{rx:?}")).expect_err("fatal");
    // It stays so, whatever comes.
    let good = request(&op::Ping {}, 1, 0, &[]);
    for _ in 0..2 {
        assert_eq!(receiver.handle_input(&mut good.as_slice()).map(|_| ()), Err(first));
    }
    assert_eq!(receiver.handle_eof(), Err(first));
    assert_eq!(receiver.open(), 0);
    first
}

#[test]
fn what_cannot_be_trusted_ends_the_connection() {
    let header = |change: fn(&mut Header)| {
        let mut header = Header::new(Opcode::PING, 1, 0, 0);
        change(&mut header);
        header.to_bytes()
    };
    let limits = Limits::default();
    assert_eq!(fatal(limits, b"GET / HTTP/1.1\r\nHost: here"), Fatal::BadMagic { magic: 0x2054_4547 });
    assert_eq!(fatal(limits, &header(|h| h.version = 0x0200)), Fatal::BadVersion { version: 0x0200 });
    assert_eq!(fatal(limits, &header(|h| h.version = 0x0000)), Fatal::BadVersion { version: 0 });
    let length = 1 << 63;
    let max = limits.payload_max;
    assert_eq!(
        fatal(limits, &header(|h| h.payload_length = 1 << 63)),
        Fatal::TooLong { op: Opcode::PING, length, max }
    );
    assert_eq!(fatal(limits, &header(|h| h.flags = FLAG_RESPONSE)), Fatal::NotARequest { op: Opcode::PING });
    assert_eq!(
        fatal(limits, b"GET / HTTP/1.1\r\nHost: here").to_string(),
        "bad magic 0x20544547: the peer does not speak HIPR"
    );
    // The magic comes first: nothing else of a stranger's bytes means anything.
    assert_eq!(fatal(limits, &[0xff; 24]), Fatal::BadMagic { magic: 0xffff_ffff });
}

#[test]
fn the_limit_on_the_payload_is_exact() {
    let limits = Limits { payload_max: 40, ..Limits::default() };
    assert_eq!(Desk::with(limits).one(&request(&h2d(4), 1, 0, b"four")).data, b"four");
    let five = request(&h2d(5), 1, 0, b"five!");
    assert_eq!(fatal(limits, &five), Fatal::TooLong { op: Opcode::MEMCPY, length: 41, max: 40 });
}

#[test]
fn the_limit_on_small_tails_is_exact() {
    let limits = Limits { small_tail_max: 100, ..Limits::default() };
    let refusal = |len: usize| {
        let got = Desk::with(limits).one(&request(&launch(0, 0), 1, 0, &vec![0; len]));
        (got.ticket.refusal(), got.data.len())
    };
    assert_eq!(refusal(100), (None, 100));
    assert_eq!(refusal(101), (Some(HipError::INVALID_VALUE), 0));
    // Bulk bytes are no small tail.
    assert_eq!(Desk::with(limits).one(&request(&h2d(101), 1, 0, &[0; 101])).data.len(), 101);
}

#[test]
fn other_minor_versions_and_unknown_flags_are_read_alike() {
    let header = Header { version: 0x01ff, ..Header::new(Opcode::PING, 5, 0, 0xffff_fff0) };
    let got = Desk::new().one(&header.to_bytes());
    assert_eq!((got.op, got.ticket.id(), got.ticket.wants_reply()), (Opcode::PING, 5, true));
}

/// Checks that each malformed request fails with the given error, and that the connection continues.
#[test]
fn what_does_not_add_up_is_refused() {
    let value = HipError::INVALID_VALUE;
    let rows = |width, height| op::Memcpy2D { width, height, kind: op::kind::HOST_TO_DEVICE, ..Wire::ZERO };
    let both = op::ModuleLoadAndGetFunction { data_size: u64::MAX, name_length: 2, pad: 0 };
    let node = op::GraphAddKernelNode { num_deps: u32::MAX, num_args: u32::MAX, ..Wire::ZERO };
    let cases = [
        ("no fixed part", raw(Opcode::MALLOC, 1, 0, &[]), value),
        ("a short fixed part", raw(Opcode::MALLOC, 1, 0, &[0; 11]), value),
        ("a short fixed part of a copy", raw(Opcode::MEMCPY, 1, 0, &[0; 35]), value),
        ("fewer bytes than a copy says", request(&h2d(6), 1, 0, b"hello"), value),
        ("a copy of 2^64 - 1 bytes", request(&h2d(u64::MAX), 1, 0, b"hello"), value),
        ("rows whose product overflows", request(&rows(1 << 33, 1 << 33), 1, 0, b"hello"), value),
        ("fewer bytes than rows say", request(&rows(3, 2), 1, 0, b"hello"), value),
        ("more devices than there are", request(&op::SetValidDevices { len: 2 }, 1, 0, &[0; 7]), value),
        ("minus one device", request(&op::SetValidDevices { len: -1 }, 1, 0, &[0; 64]), value),
        ("arguments that are not there", request(&launch(u32::MAX, 0), 1, 0, &[0; 64]), value),
        ("nodes that are not there", request(&node, 1, 0, &[0; 64]), value),
        (
            "a code object that is not there",
            request(&op::ModuleLoadData { data_size: 6 }, 1, 0, b"\x7fELF"),
            value,
        ),
        ("sizes whose sum overflows", request(&both, 1, 0, b"ab"), value),
        ("no name", request(&op::ModuleGetFunction { module: 1 }, 1, 0, &[]), value),
        ("a long argument table", request(&launch(0, 0), 1, 0, &[0; (64 << 10) + 1]), value),
        ("an unknown operation", raw(Opcode(0x0999), 1, 0, &[0; 64]), HipError::NOT_SUPPORTED),
    ];
    for (case, bytes, error) in cases {
        let mut desk = Desk::new();
        let both = [bytes, request(&op::Ping {}, 2, 0, &[])].concat();
        let mut all = desk.feed(&both).into_iter();
        let (refused, ping) = (all.next().expect(case), all.next().expect(case));
        assert_eq!(refused.ticket.refusal(), Some(error), "{case}");
        assert_eq!((refused.tail, refused.data.len()), (0, 0), "{case}: its tail is skipped");
        desk.complete(refused.ticket, Outcome::error(HipError::UNKNOWN)).expect(case);
        assert_eq!(ping.op, Opcode::PING, "{case}");
        desk.complete(ping.ticket, Outcome::ok(&())).expect(case);
        assert_eq!(errors(&desk.sent()), [(1, error.0), (2, 0)], "{case}");
    }
}

#[test]
fn bytes_beyond_the_layout_are_skipped() {
    let d2h = op::Memcpy { kind: op::kind::DEVICE_TO_HOST, size: 3, ..Wire::ZERO };
    let names = op::ModuleGetGlobal { module: 1 };
    for (bytes, tail) in [
        (request(&op::Ping {}, 1, 0, b"xyz"), &b""[..]),
        (request(&op::Free { device_ptr: 1 }, 1, 0, b"xyz"), b""),
        (request(&d2h, 1, 0, b"xyz"), b""),
        (request(&h2d(2), 1, 0, b"xyz"), b"xy"),
        (request(&op::MemcpyHtod(op::Memcpy { size: 2, ..Wire::ZERO }), 1, 0, b"xyz"), b"xy"),
        (request(&op::MemcpyDtod(op::Memcpy { kind: 1, size: 2, ..Wire::ZERO }), 1, 0, b"xyz"), b""),
        (request(&op::SetValidDevices { len: 1 }, 1, 0, &[1, 0, 0, 0, 9]), &[1, 0, 0, 0]),
        (request(&names, 1, 0, b"xyz"), b"xyz"),
        (request(&launch(0, 0), 1, 0, b"xyz"), b"xyz"),
    ] {
        let mut desk = Desk::new();
        let got = desk.one(&bytes);
        assert_eq!(got.ticket.refusal(), None, "{}", got.op);
        assert_eq!((got.tail, got.data.as_slice()), (tail.len() as u64, tail), "{}", got.op);
        assert_eq!(desk.server.handle_eof(), Ok(()));
    }
}

#[test]
fn a_full_server_pauses_until_requests_are_completed() {
    let limits = Limits { open_max: 2, ..Limits::default() };
    let mut desk = Desk::with(limits);
    let bytes: Vec<u8> = (0..4).flat_map(|id| request(&h2d(3), id, 0, b"abc")).collect();
    let mut input = bytes.as_slice();
    let mut tickets = std::collections::VecDeque::new();
    let mut pauses = 0;
    let mut delivered = 0;
    loop {
        match desk.server.handle_input(&mut input).expect("good bytes") {
            Rx::Request { ticket, .. } => tickets.push_back(ticket),
            Rx::Data { bytes, last } => {
                assert_eq!((bytes, last), (&b"abc"[..], true));
                delivered += 1;
            }
            Rx::NeedMore => break,
            Rx::Paused => {
                assert_eq!((tickets.len(), desk.server.open()), (2, 2));
                // Nothing is taken meanwhile, and the tail of what was delivered has been.
                let before = input.len();
                assert!(matches!(desk.server.handle_input(&mut input), Ok(Rx::Paused)));
                assert_eq!((input.len(), delivered), (before, 2 + pauses));
                pauses += 1;
                let ticket = tickets.pop_front().expect("two are open");
                desk.complete(ticket, Outcome::ok(&())).expect("in order");
            }
        }
    }
    assert_eq!((pauses, delivered), (3, 4), "full after two, three and four requests");
}

#[test]
fn names() {
    use op::{name_of, put_name};
    let put = |name: &str| {
        let mut tail = Vec::new();
        put_name(name, &mut tail).map(|()| tail)
    };
    for len in [1, 4, 254, 255, 256, 257, 1023, 1024] {
        let name = "n".repeat(len);
        let tail = put(&name).expect("a good name");
        assert_eq!(name_of(&tail), Ok(name.as_str()));
        assert_eq!(tail.len(), if len < 256 { 256 } else { len + 1 }, "{len}");
        assert_eq!(name_of(name.as_bytes()), Ok(name.as_str()), "without padding");
    }
    assert_eq!(put(""), Err(WireError::Name));
    assert_eq!(put("a\0b"), Err(WireError::Name));
    assert_eq!(put(&"n".repeat(1025)), Err(WireError::Long { have: 1025, max: 1024 }));
    assert_eq!(name_of(b"\0name"), Err(WireError::Name));
    assert_eq!(name_of(b"\xff\xfe\0"), Err(WireError::Name));
    assert_eq!(name_of(&[b'n'; 1025]), Err(WireError::Long { have: 1025, max: 1024 }));
    assert_eq!(name_of(b"axpy\0garbage"), Ok("axpy"));
}

#[test]
fn launch_arguments() {
    let params = [Param { offset: 0, size: 8 }, Param { offset: 8, size: 0 }, Param { offset: 9, size: 3 }];
    let mut tail = Vec::new();
    LaunchArgs::put(&params, b"0123456789ab", &mut tail);
    let args = LaunchArgs::parse(&launch(3, 0), &tail).expect("good arguments");
    assert_eq!(args.mode(), LaunchMode::Params);
    assert_eq!(args.iter().collect::<Vec<_>>(), [&b"01234567"[..], b"", b"9ab"]);
    assert_eq!(args.params().iter().collect::<Vec<_>>(), params);
    assert_eq!((args.params().len(), args.params().at(3)), (3, None));
    assert_eq!(args.data(), b"0123456789ab");

    let mut tail = Vec::new();
    LaunchArgs::put(&[Param { offset: 2, size: 4 }], b"012345", &mut tail);
    let args = LaunchArgs::parse(&launch(1, 1), &tail).expect("a flat buffer");
    assert_eq!((args.mode(), args.flat()), (LaunchMode::Flat, &b"2345"[..]));
    let args = LaunchArgs::parse(&launch(0, 1), b"012345").expect("a flat buffer");
    assert_eq!(args.flat(), b"012345");
    assert!(LaunchArgs::parse(&launch(0, 0), &[]).expect("no arguments").params().is_empty());
}

#[test]
fn launch_arguments_that_lie() {
    let with = |offset, size| {
        let mut tail = Vec::new();
        LaunchArgs::put(&[Param { offset: 0, size: 1 }, Param { offset, size }], b"0123", &mut tail);
        LaunchArgs::parse(&launch(2, 0), &tail).map(|args| args.iter().map(<[u8]>::len).sum::<usize>())
    };
    assert_eq!(with(0, 4), Ok(5));
    assert_eq!(with(4, 0), Ok(1));
    for (offset, size) in [(0, 5), (1, 4), (4, 1), (5, 0), (u32::MAX, u32::MAX), (0, u32::MAX), (u32::MAX, 0)]
    {
        assert_eq!(with(offset, size), Err(WireError::Argument { index: 1 }), "{offset} {size}");
    }
    let parse = |num_args, flags, tail: &[u8]| LaunchArgs::parse(&launch(num_args, flags), tail).map(|_| ());
    assert_eq!(parse(2, 0, &[0; 15]), Err(WireError::Short { need: 16, have: 15 }));
    assert_eq!(parse(u32::MAX, 0, &[0; 64]), Err(WireError::Short { need: 8 * 0xffff_ffff, have: 64 }));
    assert_eq!(parse(0, 2, &[]), Err(WireError::Value));
    assert_eq!(parse(2, 1, &[0; 16]), Err(WireError::Value));
    assert_eq!(HipError::from(WireError::Value), HipError::INVALID_VALUE);
}

#[test]
fn text() {
    use hipr_proto::Text;
    assert_eq!(Text::<8>::new("gfx942").as_bytes(), b"gfx942\0\0");
    assert_eq!(Text::<6>::new("gfx942").as_str(), "gfx94", "one NUL remains");
    assert_eq!(Text::<6>::new("12345").as_str(), "12345");
    assert_eq!(Text::<4>::new("aaé").as_str(), "aa", "cut between characters");
    assert_eq!(Text::<5>::new("aaé").as_str(), "aaé");
    assert_eq!(Text::<0>::new("x").as_str(), "");
    let mut garbage = &b"ok\xff\0"[..];
    assert_eq!(Text::<4>::take(&mut garbage).expect("four bytes").as_str(), "ok");
}
