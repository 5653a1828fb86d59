//! Tests that what never changes in a session is asked for once, or not at all, and what a worker can do wrong with its list.

mod support;

use std::sync::Arc;
use std::time::Duration;

use hipr_client::{CallError, Connection, FEATURES, WorkerAddress};
use hipr_proto::op::{self, StaticEntry, StaticHead, StaticReply};
use hipr_proto::{Features, HipError, HipResult, Op, Opcode, Wire};
use support::{Asked, FakeWorker, Reaction, bytes, easy};

const TIMEOUT: Duration = Duration::from_secs(20);
const REFUSED: HipError = HipError::INVALID_VALUE;

/// Without a lease, so that nothing is asked for with the first flight but the list.
const OFFERED: Features = FEATURES.without(Features::PLACES);

fn connect(worker: &FakeWorker, offer: Option<Features>) -> Connection {
    let address = WorkerAddress::new(&worker.address.to_string());
    Connection::connect_offering(&address, TIMEOUT, offer).expect("a worker is there")
}

/// Appends an entry to a list.
fn entry<O: Op>(list: &mut Vec<u8>, request: &O, device: Option<i32>, reply: HipResult<O::Reply>) {
    let (request, reply) = (bytes(request), reply.map(|reply| bytes(&reply)));
    let reply = reply.as_deref().map_err(|error| *error);
    StaticEntry { op: O::OPCODE, device, request: &request, reply }.put(list).expect("a short entry");
}

/// Returns a list of four entries: a number of devices, an attribute, a refused attribute, and a range of device 1.
fn list() -> Vec<u8> {
    let mut list = Vec::new();
    entry(&mut list, &op::GetDeviceCount {}, None, Ok(op::GetDeviceCountReply { count: 2 }));
    entry(&mut list, &attribute(1), None, Ok(op::DeviceGetAttributeReply { value: 11 }));
    entry(&mut list, &attribute(2), None, Err(REFUSED));
    let range = op::DeviceGetStreamPriorityRangeReply { least_priority: 1, greatest_priority: -7 };
    entry(&mut list, &op::DeviceGetStreamPriorityRange {}, Some(1), Ok(range));
    list
}

fn attribute(attribute: i32) -> op::DeviceGetAttribute {
    op::DeviceGetAttribute { device_id: 0, attribute }
}

/// Returns the reaction of a worker with the feature that has this list.
fn listing(count: u32, list: Vec<u8>) -> impl Fn(&Asked) -> Reaction {
    move |asked| match asked.op {
        Opcode::OFFER => Reaction::Good(bytes(&op::OfferReply { features: Features::STATIC.bits() })),
        Opcode::STATIC => Reaction::GoodWith(bytes(&StaticReply { count, reserved: 0 }), list.clone()),
        _ => plain(asked),
    }
}

/// Reacts as [`easy`], and knows the attributes 1 to 4, each ten times its number and one more.
fn plain(asked: &Asked) -> Reaction {
    match asked.op {
        Opcode::DEVICE_GET_ATTRIBUTE => match asked.as_op::<op::DeviceGetAttribute>().attribute {
            number @ (1 | 3 | 4) => {
                Reaction::Good(bytes(&op::DeviceGetAttributeReply { value: number * 10 + 1 }))
            }
            _ => Reaction::Bad(REFUSED),
        },
        _ => easy(asked),
    }
}

/// Returns what the worker was asked for, without what opens a session, up to a PING.
fn asked(worker: &FakeWorker, connection: &Connection) -> Vec<Opcode> {
    connection.ask(&op::Ping {}).expect("an answer");
    let opening = [Opcode::INIT, Opcode::OFFER, Opcode::STATIC, Opcode::PING];
    worker.until(Opcode::PING).into_iter().map(|asked| asked.op).filter(|op| !opening.contains(op)).collect()
}

#[test]
fn what_is_listed_is_not_asked_for() {
    let worker = FakeWorker::start(listing(4, list()));
    let connection = connect(&worker, Some(OFFERED));
    for _ in 0..2 {
        assert_eq!(connection.device_count(), Ok(2));
        assert_eq!(connection.ask(&attribute(1)).map(|reply| reply.value), Ok(11));
        assert_eq!(connection.ask(&attribute(2)), Err(CallError::Hip(REFUSED)));
        let range = op::DeviceGetStreamPriorityRange {};
        let of_one = on_device(1);
        let answer = connection.ask_with(&range, of_one).map(|reply| reply.greatest_priority);
        assert_eq!(answer, Ok(-7), "of the device that is current");
        let all = connection.ask_all(&[attribute(2), attribute(1)], None).expect("answers");
        assert_eq!(all, [Err(REFUSED), Ok(op::DeviceGetAttributeReply { value: 11 })]);
    }
    assert_eq!(connection.stats().round_trips, 1, "all in the first flight");
    assert_eq!(asked(&worker, &connection), []);
}

/// Returns the part of a request that says which device has to be current.
fn on_device<'a>(device: i32) -> hipr_client::Extra<'a> {
    hipr_client::Extra { device: Some(device), ..Default::default() }
}

#[test]
fn what_is_not_listed_is_asked_for_once() {
    for (offer, has_list) in [(Some(OFFERED), true), (Some(OFFERED), false), (None, false)] {
        let react: Box<dyn Fn(&Asked) -> Reaction + Send + Sync> =
            if has_list { Box::new(listing(4, list())) } else { Box::new(old) };
        let worker = FakeWorker::start(react);
        let connection = connect(&worker, offer);
        for _ in 0..3 {
            assert_eq!(connection.ask(&attribute(3)).map(|reply| reply.value), Ok(31));
            let all = connection.ask_all(&[attribute(3), attribute(4)], None).expect("answers");
            assert_eq!(all, [31, 41].map(|value| Ok(op::DeviceGetAttributeReply { value })));
        }
        assert_eq!(asked(&worker, &connection), [Opcode::DEVICE_GET_ATTRIBUTE; 2]);
        // An error may be that of an earlier request, so it is asked for again.
        for _ in 0..2 {
            assert_eq!(connection.ask(&attribute(9)), Err(CallError::Hip(REFUSED)));
        }
        assert_eq!(asked(&worker, &connection), [Opcode::DEVICE_GET_ATTRIBUTE; 2]);
    }
}

/// Reacts as a worker without the extension.
fn old(asked: &Asked) -> Reaction {
    match asked.op {
        Opcode::OFFER | Opcode::STATIC => Reaction::Bad(HipError::NOT_SUPPORTED),
        _ => plain(asked),
    }
}

#[test]
fn a_reply_of_the_current_device_is_remembered_for_it_alone() {
    let worker = FakeWorker::start(old);
    let connection = connect(&worker, Some(OFFERED));
    let range = op::DeviceGetStreamPriorityRange {};
    for device in [0, 0, 1, 0, 1] {
        connection.ask_with(&range, on_device(device)).expect("an answer");
    }
    let once = Opcode::DEVICE_GET_STREAM_PRIORITY_RANGE;
    assert_eq!(asked(&worker, &connection), [once, Opcode::SET_DEVICE, once]);
    // Who does not say which device is current asks the worker.
    connection.ask(&range).expect("an answer");
    assert_eq!(asked(&worker, &connection), [once]);
}

#[test]
fn what_changes_is_asked_for_each_time() {
    let worker = FakeWorker::start(listing(4, list()));
    let connection = connect(&worker, Some(OFFERED));
    for _ in 0..2 {
        connection.ask(&op::MemGetInfo {}).expect("an answer");
        connection.ask(&op::GetDevice {}).expect("an answer");
    }
    assert_eq!(asked(&worker, &connection).len(), 4);
}

#[test]
fn a_list_may_have_what_this_client_does_not_know() {
    let mut longer = Vec::new();
    for op in [0x0fff, Opcode::MEM_GET_INFO.0] {
        let head = StaticHead { op, request_length: 3, device: -1, error_code: 0, reply_length: 5 };
        head.put(&mut longer);
        longer.extend_from_slice(&[0x5a; 8]);
    }
    longer.extend_from_slice(&list());
    let worker = FakeWorker::start(listing(6, longer));
    let connection = connect(&worker, Some(OFFERED));
    assert_eq!(connection.device_count(), Ok(2));
    connection.ask(&op::MemGetInfo {}).expect("an answer");
    assert_eq!(
        asked(&worker, &connection),
        [Opcode::MEM_GET_INFO],
        "which is not static, whatever is listed"
    );
}

/// Checks that nothing is used of a list, and that the session works without it.
fn is_ignored(what: &str, count: u32, list: Vec<u8>) {
    let worker = FakeWorker::start(listing(count, list));
    let connection = connect(&worker, Some(OFFERED));
    assert_eq!(connection.ask(&attribute(1)).map(|reply| reply.value), Ok(11), "{what}");
    assert_eq!(connection.device_count(), Ok(2), "{what}");
    let all = [Opcode::DEVICE_GET_ATTRIBUTE, Opcode::GET_DEVICE_COUNT];
    assert_eq!(asked(&worker, &connection), all, "{what}");
}

#[test]
fn a_list_with_a_flaw_is_not_used() {
    let whole = list();
    for cut in [1, 8, 15, 16, 19, 20, 21, whole.len() / 2, whole.len() - 1] {
        is_ignored(&format!("cut to {cut} bytes"), 4, whole[..cut].to_vec());
    }
    is_ignored("without bytes", 4, Vec::new());
    is_ignored("of more entries than it says", 3, whole.clone());
    is_ignored("of more entries than there are", u32::MAX, whole.clone());
    is_ignored("twice", 8, [whole.clone(), whole.clone()].concat());
    // Sizes that are not the operation's, in the fields of the second entry, which begins at byte 20.
    let with = |at: usize, bytes: &[u8]| {
        let mut list = whole.clone();
        list[at..at + bytes.len()].copy_from_slice(bytes);
        list
    };
    is_ignored("with a short request", 4, with(22, &4u16.to_le_bytes()));
    is_ignored("with a long request", 4, with(22, &u16::MAX.to_le_bytes()));
    is_ignored("with a short reply", 4, with(32, &0u32.to_le_bytes()));
    is_ignored("with a long reply", 4, with(32, &u32::MAX.to_le_bytes()));
    is_ignored("with an error and a reply", 4, with(28, &1i32.to_le_bytes()));
    for device in [i32::MIN, -2, 0, i32::MAX] {
        is_ignored("with a current device that does not matter", 4, with(24, &device.to_le_bytes()));
    }
    for count in [i32::MIN, -1, op::DEVICES_MAX + 1, i32::MAX] {
        let mut list = Vec::new();
        entry(&mut list, &op::GetDeviceCount {}, None, Ok(op::GetDeviceCountReply { count }));
        is_ignored(&format!("with {count} devices"), 1, list);
    }
    for device in [None, Some(op::DEVICES_MAX), Some(i32::MAX)] {
        let mut list = Vec::new();
        entry(&mut list, &op::DeviceGetStreamPriorityRange {}, device, Ok(Wire::ZERO));
        is_ignored(&format!("with {device:?} as the current device"), 1, list);
    }
}

#[test]
fn a_list_longer_than_was_asked_for_is_cut_and_so_not_used() {
    let mut long = list();
    let head = StaticHead { op: 0x0fff, request_length: 0, device: -1, error_code: 0, reply_length: 4 << 20 };
    head.put(&mut long);
    long.resize(long.len() + (4 << 20), 0);
    is_ignored("of 4 MiB", 5, long);
}

#[test]
fn a_number_of_devices_that_no_machine_has_is_refused() {
    for count in [-1, op::DEVICES_MAX + 1, i32::MAX] {
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::GET_DEVICE_COUNT => Reaction::Good(bytes(&op::GetDeviceCountReply { count })),
            _ => old(asked),
        });
        let connection = connect(&worker, Some(OFFERED));
        assert_eq!(connection.device_count(), Err(CallError::Hip(HipError::UNKNOWN)), "{count}");
    }
}

#[test]
fn a_connection_that_was_never_asked_says_good_bye() {
    let worker = FakeWorker::start(listing(4, list()));
    let connection = connect(&worker, Some(OFFERED));
    connection.close(TIMEOUT);
    assert_eq!(
        connection.stats().frames_received,
        4,
        "INIT, OFFER, STATIC, SHUTDOWN: the last one is waited for"
    );
    assert_eq!(connection.ask(&op::GetDeviceCount {}), Err(CallError::Lost));
    worker.until(Opcode::SHUTDOWN);
}

#[test]
fn a_lost_connection_answers_nothing() {
    let worker = FakeWorker::start(|asked| match asked.op {
        Opcode::DEVICE_SYNCHRONIZE => Reaction::Close,
        _ => listing(4, list())(asked),
    });
    let connection = connect(&worker, Some(OFFERED));
    assert_eq!(connection.device_count(), Ok(2));
    assert_eq!(connection.ask(&op::DeviceSynchronize {}), Err(CallError::Lost));
    assert_eq!(connection.device_count(), Err(CallError::Lost), "also what is known");
}

#[test]
fn threads_that_ask_at_once_wait_for_one_list() {
    let worker = FakeWorker::start(listing(4, list()));
    let connection = Arc::new(connect(&worker, Some(OFFERED)));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let connection = Arc::clone(&connection);
            std::thread::spawn(move || connection.ask(&attribute(1)).map(|reply| reply.value))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), Ok(11));
    }
    assert_eq!(connection.stats().round_trips, 1);
}
