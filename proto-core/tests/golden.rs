//! Complete messages, byte for byte, for every operation that HIPR 1.0 defines. They are written by hand from the
//! specification and its extension, so that the encoder is not compared with itself.
//!
//! Notation: hexadecimal pairs; `'text'` for ASCII; `00*12` for a repeated byte; `#` starts a comment. A header is
//! magic, version, op_code, request_id, payload_length, flags.

use std::fmt::Debug;

use hipr_proto::op::{LaunchArgs, Param, put_name};
use hipr_proto::{
    Answer, Client, Inline, Limits, OPS, Op, Outbox, Outcome, ReplyMode, Rx, Server, Source, Text, Wire, op,
};

fn bytes(golden: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in golden.lines() {
        for word in line.split('#').next().unwrap_or("").split_whitespace() {
            if let Some(text) = word.strip_prefix('\'') {
                out.extend(text.strip_suffix('\'').expect("text ends with '").bytes());
            } else {
                let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
                assert!(digits.len() % 2 == 0, "{word} is not pairs");
                for _ in 0..times.parse().expect("a count") {
                    out.extend(
                        (0..digits.len())
                            .step_by(2)
                            .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal")),
                    );
                }
            }
        }
    }
    out
}

/// The bytes that follow the fixed parts.
#[derive(Default)]
struct Tails<'a> {
    /// The request's tail, which is copied.
    tail: &'a [u8],
    /// Inline bytes of the request.
    inline: &'a [u8],
    /// Inline bytes of the reply.
    data: &'a [u8],
}

const NO_REPLY: u8 = 0x08;

fn sent<B: AsRef<[u8]>>(outbox: &Outbox<B>) -> Vec<u8> {
    outbox.slices().flatten().copied().collect()
}

fn golden<O>(request: O, reply: O::Reply, tails: Tails<'_>, asks: &str, answers: &str)
where
    O: Op + PartialEq + Debug,
    O::Reply: PartialEq + Debug,
{
    let (asks, answers) = (bytes(asks), bytes(answers));
    let inline = || Some(tails.inline.to_vec()).filter(|bytes| !bytes.is_empty());

    // The client writes the request.
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    let call = client.request(&request, tails.tail, inline()).expect("a good request");
    assert_eq!(call.is_some(), request.wants_reply());
    let mut outbox = Outbox::new();
    client.poll_transmit(&mut outbox);
    assert_eq!(sent(&outbox), asks, "the request");

    // The server reads it, and answers if it was asked to.
    let answered = asks[20] & NO_REPLY == 0;
    assert_eq!(serve(&request, &reply, &tails, &asks), if answered { answers.clone() } else { Vec::new() });

    // A client that asks for an answer gets one, whatever is usual.
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    let call =
        client.request_with(&request, tails.tail, inline(), ReplyMode::Always).expect("a good request");
    let mut loud = asks.clone();
    loud[20] &= !NO_REPLY;
    let mut outbox = Outbox::new();
    client.poll_transmit(&mut outbox);
    assert_eq!(sent(&outbox), loud, "the request that asks for an answer");
    assert_eq!(serve(&request, &reply, &tails, &loud), answers, "the reply");

    // The client reads the reply.
    let mut input = answers.as_slice();
    match client.handle_input(&mut input) {
        Ok(Answer::Reply(answer)) => {
            assert_eq!(Some(answer.call), call);
            assert_eq!(answer.read::<O>(), Ok(Ok(reply)));
            assert_eq!(answer.inline, tails.data.len() as u64);
        }
        other => panic!("{other:?} instead of a reply"),
    }
    if !tails.data.is_empty() {
        assert_eq!(client.handle_input(&mut input), Ok(Answer::Data { bytes: tails.data, last: true }));
    }
    assert_eq!(client.handle_input(&mut input), Ok(Answer::NeedMore));
    assert_eq!(client.handle_eof(), Ok(()));
}

fn serve<O: Op + PartialEq + Debug>(
    request: &O,
    reply: &O::Reply,
    tails: &Tails<'_>,
    asks: &[u8],
) -> Vec<u8> {
    let mut server = Server::<Vec<u8>>::new(Limits::default());
    let mut input = asks;
    let ticket = match server.handle_input(&mut input) {
        Ok(Rx::Request { ticket, op, mut fixed, tail }) => {
            assert_eq!(op, O::OPCODE);
            assert_eq!(ticket.refusal(), None);
            assert_eq!(fixed.len(), O::SIZE);
            assert_eq!(&O::take(&mut fixed).expect("whole"), request);
            assert_eq!(tail, (tails.tail.len() + tails.inline.len()) as u64);
            ticket
        }
        other => panic!("{other:?} instead of a request"),
    };
    let follows = [tails.tail, tails.inline].concat();
    if !follows.is_empty() {
        match server.handle_input(&mut input) {
            Ok(Rx::Data { bytes, last: true }) => assert_eq!(bytes, follows),
            other => panic!("{other:?} instead of the tail"),
        }
    }
    assert!(matches!(server.handle_input(&mut input), Ok(Rx::NeedMore)));
    let inline = if tails.data.is_empty() { Inline::None } else { Inline::Whole(tails.data.to_vec()) };
    server.complete(ticket, Outcome::ok(reply).with_inline(inline)).expect("a good outcome");
    let mut outbox = Outbox::new();
    server.poll_transmit(&mut outbox);
    sent(&outbox)
}

/// Defines a test for each row, and the list of their names, which has to be complete.
macro_rules! goldens {
    ($($NAME:ident $test:ident $request:expr => $reply:expr, {$($tails:tt)*} $asks:literal $answers:literal)*) => {
        $(
            #[test]
            fn $test() {
                golden($request, $reply, Tails { $($tails)* ..Tails::default() }, $asks, $answers);
            }
        )*

        const COVERED: &[&str] = &[$(stringify!($NAME)),*];
    };
}

#[test]
fn every_operation_of_the_contract_has_golden_bytes() {
    for info in OPS.iter().filter(|info| info.source != Source::Extension) {
        assert!(COVERED.contains(&info.name), "{} has none", info.name);
    }
}

goldens! {
    INIT init op::Init {} => (), {}
    "52504948 0001 0100 01000000 0000000000000000 00000000"
    "52504948 0001 0100 01000000 0400000000000000 01000000
     00000000                                        # error_code"

    SHUTDOWN shutdown op::Shutdown {} => (), {}
    "52504948 0001 0200 01000000 0000000000000000 00000000"
    "52504948 0001 0200 01000000 0400000000000000 01000000
     00000000"

    PING ping op::Ping {} => (), {}
    "52504948 0001 0300 01000000 0000000000000000 00000000"
    "52504948 0001 0300 01000000 0400000000000000 01000000
     00000000"

    GET_DEVICE_COUNT get_device_count op::GetDeviceCount {} => op::GetDeviceCountReply { count: 8 }, {}
    "52504948 0001 0001 01000000 0000000000000000 00000000"
    "52504948 0001 0001 01000000 0800000000000000 01000000
     00000000 08000000"

    SET_DEVICE set_device op::SetDevice { device_id: 3 } => (), {}
    "52504948 0001 0101 01000000 0400000000000000 00000000
     03000000"
    "52504948 0001 0101 01000000 0400000000000000 01000000
     00000000"

    GET_DEVICE get_device op::GetDevice {} => op::GetDeviceReply { device_id: 3 }, {}
    "52504948 0001 0201 01000000 0000000000000000 00000000"
    "52504948 0001 0201 01000000 0800000000000000 01000000
     00000000 03000000"

    GET_DEVICE_PROPERTIES get_device_properties op::GetDeviceProperties { device_id: 1 } =>
    op::GetDevicePropertiesReply {
        name: Text::new("MI300X"),
        total_global_mem: 192 << 30,
        shared_mem_per_block: 65536,
        regs_per_block: 65536,
        warp_size: 64,
        max_threads_per_block: 1024,
        max_threads_dim: [1024, 1023, 1022],
        max_grid_size: [0x7fff_ffff, 65535, 65534],
        clock_rate: 2_100_000,
        memory_clock_rate: 1_300_000,
        memory_bus_width: 8192,
        major: 9,
        minor: 4,
        multi_processor_count: 304,
        l2_cache_size: 4 << 20,
        max_threads_per_multi_processor: 2048,
        compute_mode: 0,
        pci_bus_id: 0xc1,
        pci_device_id: 0x1f,
        pci_domain_id: 2,
        integrated: 0,
        can_map_host_memory: 1,
        concurrent_kernels: 1,
        gcn_arch_name: Text::new("gfx942:sramecc+:xnack-"),
    }, {}
    "52504948 0001 0301 01000000 0400000000000000 00000000
     01000000"
    "52504948 0001 0301 01000000 7402000000000000 01000000
     00000000
     'MI300X' 00*250                                 # name[256]
     0000000030000000                                # total_global_mem
     0000010000000000                                # shared_mem_per_block
     00000100 40000000 00040000                      # regs_per_block, warp_size, max_threads_per_block
     00040000 ff030000 fe030000                      # max_threads_dim
     ffffff7f ffff0000 feff0000                      # max_grid_size
     200b2000 20d61300 00200000                      # clock_rate, memory_clock_rate, memory_bus_width
     09000000 04000000 30010000                      # major, minor, multi_processor_count
     00004000 00080000 00000000                      # l2_cache_size, threads per processor, compute_mode
     c1000000 1f000000 02000000                      # pci bus, device, domain
     00000000 01000000 01000000                      # integrated, can_map_host_memory, concurrent_kernels
     'gfx942:sramecc+:xnack-' 00*234                 # gcn_arch_name[256]"

    DEVICE_SYNCHRONIZE device_synchronize op::DeviceSynchronize {} => (), {}
    "52504948 0001 0401 01000000 0000000000000000 00000000"
    "52504948 0001 0401 01000000 0400000000000000 01000000
     00000000"

    DEVICE_GET_ATTRIBUTE device_get_attribute
    op::DeviceGetAttribute { device_id: 1, attribute: 87 } => op::DeviceGetAttributeReply { value: -2 }, {}
    "52504948 0001 0601 01000000 0800000000000000 00000000
     01000000 57000000"
    "52504948 0001 0601 01000000 0800000000000000 01000000
     00000000 feffffff"

    DEVICE_GET_LIMIT device_get_limit
    op::DeviceGetLimit { limit: 2, value: 0 } => op::DeviceGetLimitReply { value: 8 << 20 }, {}
    "52504948 0001 0701 01000000 0c00000000000000 00000000
     02000000 0000000000000000"
    "52504948 0001 0701 01000000 0c00000000000000 01000000
     00000000 0000800000000000"

    DEVICE_SET_LIMIT device_set_limit op::DeviceSetLimit { limit: 2, value: 0x10_0000_0001 } => (), {}
    "52504948 0001 0801 01000000 0c00000000000000 08000000
     02000000 0100000010000000"
    "52504948 0001 0801 01000000 0400000000000000 01000000
     00000000"

    DEVICE_ENABLE_PEER_ACCESS device_enable_peer_access
    op::DeviceEnablePeerAccess { peer_device_id: 5, flags: 0 } => (), {}
    "52504948 0001 0a01 01000000 0800000000000000 08000000
     05000000 00000000"
    "52504948 0001 0a01 01000000 0400000000000000 01000000
     00000000"

    MALLOC malloc op::Malloc { size: 0x1_0000_0001, flags: 2 }
    => op::MallocReply { device_ptr: 0x7f12_3456_789a }, {}
    "52504948 0001 0002 01000000 0c00000000000000 00000000
     0100000001000000 02000000                       # size, flags"
    "52504948 0001 0002 01000000 0c00000000000000 01000000
     00000000 9a785634127f0000                       # error_code, device_ptr"

    FREE free op::Free { device_ptr: 0x7f12_3456_789a } => (), {}
    "52504948 0001 0102 01000000 0800000000000000 08000000
     9a785634127f0000"
    "52504948 0001 0102 01000000 0400000000000000 01000000
     00000000"

    MALLOC_ASYNC malloc_async op::MallocAsync { size: 256, stream: 0xabcd }
    => op::MallocAsyncReply { device_ptr: 0x1122_3344_5566_7788 }, {}
    "52504948 0001 0502 01000000 1000000000000000 00000000
     0001000000000000 cdab000000000000"
    "52504948 0001 0502 01000000 0c00000000000000 01000000
     00000000 8877665544332211"

    FREE_ASYNC free_async op::FreeAsync { device_ptr: 0x1122_3344_5566_7788, stream: 0xabcd } => (), {}
    "52504948 0001 0602 01000000 1000000000000000 08000000
     8877665544332211 cdab000000000000"
    "52504948 0001 0602 01000000 0400000000000000 01000000
     00000000"

    MEMCPY memcpy_host_to_device op::Memcpy { dst: 0x1000, src: 0x2000, size: 5, kind: 1, stream: 0 } => (),
    { inline: b"hello", }
    "52504948 0001 1002 01000000 2900000000000000 0c000000
     0010000000000000 0020000000000000 0500000000000000 # dst, src, size
     01000000 0000000000000000                          # kind, stream
     'hello'"
    "52504948 0001 1002 01000000 0400000000000000 01000000
     00000000"

    MEMCPY memcpy_device_to_host op::Memcpy { dst: 0x2000, src: 0x1000, size: 5, kind: 2, stream: 0 } => (),
    { data: b"hello", }
    "52504948 0001 1002 01000000 2400000000000000 00000000
     0020000000000000 0010000000000000 0500000000000000
     02000000 0000000000000000"
    "52504948 0001 1002 01000000 0900000000000000 05000000
     00000000 'hello'"

    MEMCPY memcpy_device_to_device op::Memcpy { dst: 0x2000, src: 0x1000, size: 5, kind: 3, stream: 0 } => (), {}
    "52504948 0001 1002 01000000 2400000000000000 08000000
     0020000000000000 0010000000000000 0500000000000000
     03000000 0000000000000000"
    "52504948 0001 1002 01000000 0400000000000000 01000000
     00000000"

    MEMCPY_ASYNC memcpy_async_host_to_device
    op::MemcpyAsync(op::Memcpy { dst: 0x1000, src: 0x2000, size: 3, kind: 1, stream: 0x55 }) => (),
    { inline: b"abc", }
    "52504948 0001 1102 01000000 2700000000000000 0c000000
     0010000000000000 0020000000000000 0300000000000000
     01000000 5500000000000000
     'abc'"
    "52504948 0001 1102 01000000 0400000000000000 01000000
     00000000"

    MEMCPY_ASYNC memcpy_async_device_to_host
    op::MemcpyAsync(op::Memcpy { dst: 0x1000, src: 0x2000, size: 3, kind: 2, stream: 0x55 }) => (),
    { data: b"abc", }
    "52504948 0001 1102 01000000 2400000000000000 00000000
     0010000000000000 0020000000000000 0300000000000000
     02000000 5500000000000000"
    "52504948 0001 1102 01000000 0700000000000000 05000000
     00000000 'abc'"

    MEMCPY_2D memcpy_2d_host_to_device
    op::Memcpy2D {
        dst: 0x1000, dpitch: 256, src: 0x2000, spitch: 16, width: 3, height: 2, kind: 1, reserved: 0, stream: 7,
    } => (), { inline: b"abcdef", }
    "52504948 0001 1202 01000000 4600000000000000 0c000000
     0010000000000000 0001000000000000               # dst, dpitch
     0020000000000000 1000000000000000               # src, spitch
     0300000000000000 0200000000000000               # width, height
     01000000 00000000 0700000000000000              # kind, reserved, stream
     'abcdef'"
    "52504948 0001 1202 01000000 0400000000000000 01000000
     00000000"

    MEMCPY_2D memcpy_2d_device_to_host
    op::Memcpy2D {
        dst: 0x2000, dpitch: 16, src: 0x1000, spitch: 256, width: 3, height: 2, kind: 2, reserved: 0, stream: 7,
    } => (), { data: b"abcdef", }
    "52504948 0001 1202 01000000 4000000000000000 00000000
     0020000000000000 1000000000000000
     0010000000000000 0001000000000000
     0300000000000000 0200000000000000
     02000000 00000000 0700000000000000"
    "52504948 0001 1202 01000000 0a00000000000000 05000000
     00000000 'abcdef'"

    MEMCPY_PEER memcpy_peer
    op::MemcpyPeer { dst: 0x1000, dst_device: 1, src: 0x2000, src_device: 2, size: 64, stream: 9 } => (), {}
    "52504948 0001 1c02 01000000 2800000000000000 08000000
     0010000000000000 01000000                       # dst, dst_device
     0020000000000000 02000000                       # src, src_device
     4000000000000000 0900000000000000               # size, stream"
    "52504948 0001 1c02 01000000 0400000000000000 01000000
     00000000"

    MEMSET memset op::Memset { dst: 0x1000, value: -1, size: 64, stream: 0 } => (), {}
    "52504948 0001 2002 01000000 1c00000000000000 08000000
     0010000000000000 ffffffff 4000000000000000 0000000000000000"
    "52504948 0001 2002 01000000 0400000000000000 01000000
     00000000"

    MEMSET_ASYNC memset_async
    op::MemsetAsync(op::Memset { dst: 0x1000, value: 0x5a, size: 64, stream: 0x55 }) => (), {}
    "52504948 0001 2102 01000000 1c00000000000000 08000000
     0010000000000000 5a000000 4000000000000000 5500000000000000"
    "52504948 0001 2102 01000000 0400000000000000 01000000
     00000000"

    STREAM_CREATE stream_create op::StreamCreate { flags: 1, priority: -1 }
    => op::StreamCreateReply { stream: 0x55 }, {}
    "52504948 0001 0003 01000000 0800000000000000 00000000
     01000000 ffffffff"
    "52504948 0001 0003 01000000 0c00000000000000 01000000
     00000000 5500000000000000"

    STREAM_DESTROY stream_destroy op::StreamDestroy { stream: 0x55 } => (), {}
    "52504948 0001 0303 01000000 0800000000000000 08000000
     5500000000000000"
    "52504948 0001 0303 01000000 0400000000000000 01000000
     00000000"

    STREAM_SYNCHRONIZE stream_synchronize op::StreamSynchronize { stream: 0x55 } => (), {}
    "52504948 0001 0403 01000000 0800000000000000 00000000
     5500000000000000"
    "52504948 0001 0403 01000000 0400000000000000 01000000
     00000000"

    STREAM_WAIT_EVENT stream_wait_event op::StreamWaitEvent { stream: 0x55, event: 0x66, flags: 1 } => (), {}
    "52504948 0001 0603 01000000 1400000000000000 08000000
     5500000000000000 6600000000000000 01000000"
    "52504948 0001 0603 01000000 0400000000000000 01000000
     00000000"

    EVENT_CREATE event_create op::EventCreate { flags: 2 } => op::EventCreateReply { event: 0x66 }, {}
    "52504948 0001 0004 01000000 0400000000000000 00000000
     02000000"
    "52504948 0001 0004 01000000 0c00000000000000 01000000
     00000000 6600000000000000"

    EVENT_DESTROY event_destroy op::EventDestroy { event: 0x66 } => (), {}
    "52504948 0001 0204 01000000 0800000000000000 08000000
     6600000000000000"
    "52504948 0001 0204 01000000 0400000000000000 01000000
     00000000"

    EVENT_RECORD event_record op::EventRecord { event: 0x66, stream: 0x55 } => (), {}
    "52504948 0001 0304 01000000 1000000000000000 08000000
     6600000000000000 5500000000000000"
    "52504948 0001 0304 01000000 0400000000000000 01000000
     00000000"

    EVENT_SYNCHRONIZE event_synchronize op::EventSynchronize { event: 0x66 } => (), {}
    "52504948 0001 0404 01000000 0800000000000000 00000000
     6600000000000000"
    "52504948 0001 0404 01000000 0400000000000000 01000000
     00000000"

    EVENT_QUERY event_query op::EventQuery { event: 0x66 } => (), {}
    "52504948 0001 0504 01000000 0800000000000000 00000000
     6600000000000000"
    "52504948 0001 0504 01000000 0400000000000000 01000000
     00000000"

    EVENT_ELAPSED_TIME event_elapsed_time op::EventElapsedTime { start_event: 0x66, stop_event: 0x67 }
    => op::EventElapsedTimeReply { milliseconds: 1.5 }, {}
    "52504948 0001 0604 01000000 1000000000000000 00000000
     6600000000000000 6700000000000000"
    "52504948 0001 0604 01000000 0800000000000000 01000000
     00000000 0000c03f"

    MODULE_LOAD_DATA module_load_data op::ModuleLoadData { data_size: 6 }
    => op::ModuleLoadDataReply { module: 0x77 }, { inline: b"\x7fELF\x02\x01", }
    "52504948 0001 0005 01000000 0e00000000000000 04000000
     0600000000000000 7f 'ELF' 02 01"
    "52504948 0001 0005 01000000 0c00000000000000 01000000
     00000000 7700000000000000"

    MODULE_UNLOAD module_unload op::ModuleUnload { module: 0x77 } => (), {}
    "52504948 0001 0205 01000000 0800000000000000 08000000
     7700000000000000"
    "52504948 0001 0205 01000000 0400000000000000 01000000
     00000000"

    MODULE_GET_FUNCTION module_get_function op::ModuleGetFunction { module: 0x77 }
    => op::ModuleGetFunctionReply {
        function: 0x88, num_args: 280, num_params: 2, params: two_params(),
    }, { tail: &name("axpy"), }
    "52504948 0001 0305 01000000 0801000000000000 00000000
     7700000000000000
     'axpy' 00*252                                   # function_name[256]"
    "52504948 0001 0305 01000000 1402000000000000 01000000
     00000000
     8800000000000000 18010000 02000000              # function, num_args, num_params
     00000000 08000000                               # params[0]
     08000000 04000000                               # params[1]
     00*496                                          # params[2] to params[63]"

    LAUNCH_KERNEL launch_kernel launch(0, 0) => (), { tail: &launch_args(), }
    "52504948 0001 1005 01000000 6400000000000000 08000000
     8800000000000000                                # function
     01000000 02000000 03000000                      # grid_dim
     40000000 05000000 06000000                      # block_dim
     00020000 5500000000000000                       # shared_mem, stream
     02000000 00000000                               # num_args, launch_flags
     0000000000000000 0000000000000000 00000000      # start_event, stop_event, ext_flags
     00000000 08000000                               # args[0]
     08000000 04000000                               # args[1]
     0010000000000000 2a000000                       # arg_data"
    "52504948 0001 1005 01000000 0400000000000000 01000000
     00000000"

    LAUNCH_KERNEL launch_kernel_with_events launch(0x66, 0x67) => (), { tail: &launch_args(), }
    "52504948 0001 1005 01000000 6400000000000000 00000000
     8800000000000000
     01000000 02000000 03000000
     40000000 05000000 06000000
     00020000 5500000000000000
     02000000 00000000
     6600000000000000 6700000000000000 00000000
     00000000 08000000
     08000000 04000000
     0010000000000000 2a000000"
    "52504948 0001 1005 01000000 0400000000000000 01000000
     00000000"

    RUNTIME_GET_VERSION runtime_get_version op::RuntimeGetVersion {}
    => op::RuntimeGetVersionReply { version: 60_443_484 }, {}
    "52504948 0001 0007 01000000 0000000000000000 00000000"
    "52504948 0001 0007 01000000 0800000000000000 01000000
     00000000 5c4b9a03"

    DRIVER_GET_VERSION driver_get_version op::DriverGetVersion {}
    => op::DriverGetVersionReply { version: 60_443_484 }, {}
    "52504948 0001 0107 01000000 0000000000000000 00000000"
    "52504948 0001 0107 01000000 0800000000000000 01000000
     00000000 5c4b9a03"

    GRAPH_DESTROY graph_destroy op::GraphDestroy { graph: 0x99 } => (), {}
    "52504948 0001 2107 01000000 0800000000000000 08000000
     9900000000000000"
    "52504948 0001 2107 01000000 0400000000000000 01000000
     00000000"

    GRAPH_LAUNCH graph_launch op::GraphLaunch { graph_exec: 0x9a, stream: 0x55 } => (), {}
    "52504948 0001 2307 01000000 1000000000000000 08000000
     9a00000000000000 5500000000000000"
    "52504948 0001 2307 01000000 0400000000000000 01000000
     00000000"

    MODULE_LOAD_AND_GET_FUNCTION module_load_and_get_function
    op::ModuleLoadAndGetFunction { data_size: 6, name_length: 4, pad: 0 }
    => op::ModuleLoadAndGetFunctionReply {
        module: 0x77, function: 0x88, num_args: 280, num_params: 2, params: two_params(),
    }, { tail: b"axpy", inline: b"\x7fELF\x02\x01", }
    "52504948 0001 4407 01000000 1a00000000000000 04000000
     0600000000000000 04000000 00000000              # data_size, name_length, pad
     'axpy'
     7f 'ELF' 02 01"
    "52504948 0001 4407 01000000 1c02000000000000 01000000
     00000000
     7700000000000000 8800000000000000               # module, function
     18010000 02000000                               # num_args, num_params
     00000000 08000000
     08000000 04000000
     00*496"

    MALLOC_BATCH malloc_batch op::MallocBatch { count: 2, pad: 0, sizes: first_two(4096, 8192) }
    => op::MallocBatchReply { count: 2, pad: 0, ptrs: first_two(0x10000, 0x20000) }, {}
    "52504948 0001 4507 01000000 0802000000000000 00000000
     02000000 00000000                               # count, pad
     0010000000000000 0020000000000000 00*496        # sizes[64]"
    "52504948 0001 4507 01000000 0c02000000000000 01000000
     00000000
     02000000 00000000
     0000010000000000 0000020000000000 00*496        # ptrs[64]"

    STREAM_CREATE_BATCH stream_create_batch op::StreamCreateBatch { count: 2, flags: 1 }
    => op::StreamCreateBatchReply { count: 2, pad: 0, handles: first_two(0x55, 0x56) }, {}
    "52504948 0001 4607 01000000 0800000000000000 00000000
     02000000 01000000"
    "52504948 0001 4607 01000000 0c01000000000000 01000000
     00000000
     02000000 00000000
     5500000000000000 5600000000000000 00*240        # handles[32]"

    EVENT_CREATE_BATCH event_create_batch op::EventCreateBatch { count: 2, flags: 2 }
    => op::EventCreateBatchReply { count: 2, pad: 0, handles: first_two(0x66, 0x67) }, {}
    "52504948 0001 4707 01000000 0800000000000000 00000000
     02000000 02000000"
    "52504948 0001 4707 01000000 0c01000000000000 01000000
     00000000
     02000000 00000000
     6600000000000000 6700000000000000 00*240"
}

fn name(name: &str) -> Vec<u8> {
    let mut tail = Vec::new();
    put_name(name, &mut tail).expect("a good name");
    tail
}

fn two_params() -> [Param; 64] {
    let mut params = [Param::ZERO; 64];
    params[0] = Param { offset: 0, size: 8 };
    params[1] = Param { offset: 8, size: 4 };
    params
}

fn first_two<const N: usize>(a: u64, b: u64) -> [u64; N] {
    let mut all = [0; N];
    all[0] = a;
    all[1] = b;
    all
}

fn launch(start_event: u64, stop_event: u64) -> op::LaunchKernel {
    op::LaunchKernel {
        function: 0x88,
        grid_dim_x: 1,
        grid_dim_y: 2,
        grid_dim_z: 3,
        block_dim_x: 64,
        block_dim_y: 5,
        block_dim_z: 6,
        shared_mem: 512,
        stream: 0x55,
        num_args: 2,
        launch_flags: 0,
        start_event,
        stop_event,
        ext_flags: 0,
    }
}

fn launch_args() -> Vec<u8> {
    let mut data = 0x1000u64.to_le_bytes().to_vec();
    data.extend(42u32.to_le_bytes());
    let mut tail = Vec::new();
    LaunchArgs::put(&[Param { offset: 0, size: 8 }, Param { offset: 8, size: 4 }], &data, &mut tail);
    tail
}

/// Checks failed replies: FLAG_ERROR, a zeroed fixed part of full length, no inline bytes.
#[test]
fn failed_replies() {
    let failed = |asks: &str| {
        let mut server = Server::<Vec<u8>>::new(Limits::default());
        let asks = bytes(asks);
        let mut input = asks.as_slice();
        let Ok(Rx::Request { ticket, .. }) = server.handle_input(&mut input) else { panic!("a request") };
        let outcome = Outcome::error(hipr_proto::HipError::OUT_OF_MEMORY);
        server.complete(ticket, outcome.with_inline(Inline::Stream(5))).expect("a good outcome");
        assert_eq!(server.stream_left(), 0);
        let mut outbox = Outbox::new();
        server.poll_transmit(&mut outbox);
        sent(&outbox)
    };
    assert_eq!(
        failed(
            "52504948 0001 0002 07000000 0c00000000000000 00000000
             0100000001000000 02000000"
        ),
        bytes(
            "52504948 0001 0002 07000000 0c00000000000000 03000000
             02000000 0000000000000000"
        ),
        "MALLOC"
    );
    assert_eq!(
        failed(
            "52504948 0001 1002 08000000 2400000000000000 00000000
             0020000000000000 0010000000000000 0500000000000000
             02000000 0000000000000000"
        ),
        bytes(
            "52504948 0001 1002 08000000 0400000000000000 03000000
             02000000"
        ),
        "MEMCPY from device to host"
    );
    assert_eq!(
        failed("52504948 0001 ff0f 09000000 0300000000000000 00000000 010203"),
        bytes(
            "52504948 0001 ff0f 09000000 0400000000000000 03000000
             21030000                                # 801, hipErrorNotSupported"
        ),
        "an unknown op_code"
    );
}
