//! Named cases of errors that an event loop can make, each with its own plan.

use hipr_proto::{FLAG_RESPONSE, Header, HipError, Limits, Opcode};
use hipr_testkit::worker_world::Plan;
use hipr_testkit::worker_world::plan::{Act, Client};
use hipr_testkit::worker_world::request::{PLACING, Request};
use hipr_worker::device::script::Fault;

/// Returns all cases with their names.
pub(crate) fn all() -> Vec<(&'static str, Plan)> {
    let headers = garbage_headers().map(|(name, header)| (name, garbage(&header.to_bytes())));
    let silence =
        [("silence in a header", 10), ("silence in a fixed part", 30), ("silence in bulk bytes", 500)];
    let silence = silence.map(|(name, len)| (name, mid_message_silence(len)));
    let cases = [
        ("half-close", half_close()),
        ("half-close in a message", half_close_in_a_message()),
        ("reset in a message", reset_in_a_message()),
        ("garbage", garbage(b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n")),
        ("too many open requests", too_many_open_requests()),
        ("bulk beyond every limit", bulk_beyond_every_limit()),
        ("many connections", many_connections()),
        ("a client that does not read", a_client_that_does_not_read()),
        ("no first message", no_first_message()),
        ("requests after shutdown", requests_after_shutdown()),
        ("stop of the worker", stop_of_the_worker()),
        ("panic of the device", panic_of_the_device()),
        ("death of the device", death_of_the_device()),
        ("a wait that never ends", a_wait_that_never_ends()),
        ("errors that surface later", errors_that_surface_later()),
    ];
    cases.into_iter().chain(headers).chain(silence).collect()
}

/// Adds calls of every kind, answered and unanswered.
fn work(client: &mut Client, rounds: u8) {
    let base = client.model.base();
    client.tell(Request::Offer(PLACING));
    for round in 0..rounds {
        client.tell(Request::Fill(base, 1000, round));
        client.tell(Request::Up(base + 100, 300 + usize::from(round)));
        client.tell(Request::Launch(client.model.function(), u64::from(round)));
        client.ask(Request::Down(base, 1000));
        client.ask(Request::Malloc(64));
        client.tell(Request::Unknown(5));
        client.tell(Request::Name(1 << 62 | u64::from(round)));
        client.tell(Request::StreamCreate(1));
        client.ask(Request::StreamFlags(1 << 62 | u64::from(round)));
        client.ask(Request::Synchronize);
    }
}

/// Returns the first `len` bytes of a copy to the device.
fn part_of_a_copy(client: &Client, len: usize) -> Vec<u8> {
    let encoded = Request::Up(client.model.base(), 1000).encode();
    let inline = encoded.inline.unwrap_or_default();
    let header = Header::new(encoded.op, 77, (encoded.fixed.len() + inline.len()) as u64, 0);
    let mut bytes = [header.to_bytes().as_slice(), &encoded.fixed, &inline].concat();
    assert!(len < bytes.len(), "a part is not all");
    bytes.truncate(len);
    bytes
}

fn half_close() -> Plan {
    const LEN_BYTES: usize = 4 << 20;
    let mut plan = Plan::new(LEN_BYTES as u64);
    plan.client(|client| {
        work(client, 5);
        let base = client.model.base();
        client.tell(Request::Up(base, LEN_BYTES));
        // More than rings and sockets hold, so that the client has to read while it has nothing more to say.
        client.ask(Request::Down(base, LEN_BYTES as u64));
        client.act(Act::HalfClose);
        client.act(Act::AwaitEnd);
    });
    plan
}

fn half_close_in_a_message() -> Plan {
    let mut plan = Plan::default();
    for len in [1, 24, 40, 100] {
        plan.client(|client| {
            work(client, 2);
            client.bytes(part_of_a_copy(client, len));
            client.act(Act::HalfClose);
            client.act(Act::AwaitEnd);
        });
    }
    plan
}

fn reset_in_a_message() -> Plan {
    let mut plan = Plan::default();
    for len in [0, 5, 24, 60, 700] {
        plan.client(|client| {
            work(client, 3);
            client.bytes(part_of_a_copy(client, len));
            client.act(Act::Reset);
        });
    }
    plan.client(|client| {
        work(client, 1);
        client.act(Act::AwaitClient(4));
        work(client, 3);
    });
    plan
}

/// Returns headers that end a connection.
fn garbage_headers() -> [(&'static str, Header); 4] {
    let good = Header::new(Opcode::MALLOC, 9, 12, 0);
    [
        ("a wrong magic", Header { magic: good.magic + 1, ..good }),
        ("a wrong version", Header { version: 0x0200, ..good }),
        ("a response", Header { flags: FLAG_RESPONSE, ..good }),
        ("too long a message", Header { payload_length: Limits::default().payload_max + 1, ..good }),
    ]
}

/// Returns a plan in which everything before the garbage has to be answered, although more bytes than all buffers hold are
/// on their way in both directions, and nothing after it.
fn garbage(bytes: &[u8]) -> Plan {
    let mut plan = Plan::new(8 << 20);
    plan.client(|client| {
        work(client, 2);
        client.ask(Request::Down(client.model.base(), 8 << 20));
        client.ask(Request::Synchronize);
        client.bytes([bytes, &vec![0x5a; 3 << 20]].concat());
        work(client, 2);
        client.act(Act::AwaitEnd);
    });
    plan
}

fn too_many_open_requests() -> Plan {
    let mut plan = Plan::default();
    plan.protocol().open_max = 3;
    plan.client(|client| {
        for i in 0..300 {
            client.ask(Request::Malloc(i));
            client.tell(Request::Fill(client.model.base(), i, 1));
            client.ask(Request::Ping);
        }
    });
    plan
}

fn bulk_beyond_every_limit() -> Plan {
    const LEN: usize = 6 << 20;
    let mut plan = Plan::new(LEN as u64);
    plan.io.in_flight_max_bytes = 100_000;
    plan.io.in_flight_total_max_bytes = 150_000;
    plan.io.unsent_max_bytes = 100_000;
    plan.io.turn_max_bytes = 50_000;
    plan.session.unsent_max_bytes = plan.io.unsent_max_bytes;
    plan.session.chunk_bytes = 30_000;
    for _ in 0..2 {
        plan.client(|client| {
            let base = client.model.base();
            client.tell(Request::Up(base, LEN));
            client.ask(Request::Down(base, LEN as u64));
            client.ask(Request::Up(base + 7, LEN - 7));
            client.ask(Request::Down(base + 1, LEN as u64 - 1));
            client.ask(Request::Down(base, 100_000));
        });
    }
    plan
}

fn many_connections() -> Plan {
    let mut plan = Plan::default();
    for i in 0..64 {
        plan.client(|client| {
            client.act(Act::AwaitClient(i + 1));
            work(client, 3);
            match i % 4 {
                0 => client.act(Act::HalfClose),
                1 => client.ask(Request::Shutdown),
                2 => client.bytes(b"no such protocol was ever spoken".to_vec()),
                _ => return,
            }
            client.act(Act::AwaitEnd);
        });
    }
    plan
}

fn a_client_that_does_not_read() -> Plan {
    const LEN: u64 = 256 << 10;
    let mut plan = Plan::new(LEN);
    plan.client(|client| {
        client.act(Act::ReadLate);
        for _ in 0..64 {
            client.ask(Request::Down(client.model.base(), LEN));
        }
        client.act(Act::AwaitClient(1));
        client.act(Act::Read);
    });
    plan.client(|client| work(client, 10));
    plan
}

fn no_first_message() -> Plan {
    let mut plan = Plan::default();
    plan.io.first_message_timeout_ms = 60;
    for len in [0, 1, 23, 200] {
        plan.bare_client(|client| {
            client.bytes(part_of_a_copy(client, len));
            client.act(Act::AwaitEnd);
        });
    }
    plan
}

/// Returns a plan in which a message stops after `len` bytes, when all earlier requests have been answered.
fn mid_message_silence(len: usize) -> Plan {
    let mut plan = Plan::default();
    plan.io.mid_message_timeout_ms = 250;
    plan.client(|client| {
        work(client, 1);
        client.act(Act::Await);
        client.bytes(part_of_a_copy(client, len));
        client.act(Act::AwaitEnd);
    });
    plan
}

fn requests_after_shutdown() -> Plan {
    let mut plan = Plan::new(1 << 20);
    for loud in [true, false] {
        plan.client(|client| {
            work(client, 2);
            client.ask(Request::Down(client.model.base(), 1 << 20));
            if loud {
                client.ask(Request::Shutdown);
            } else {
                client.tell(Request::Shutdown);
            }
            client.tell(Request::Up(client.model.base(), 1 << 20));
            work(client, 2);
            client.act(Act::AwaitEnd);
        });
    }
    plan
}

fn stop_of_the_worker() -> Plan {
    let mut plan = Plan::default();
    for _ in 0..3 {
        plan.client(|client| {
            work(client, 2);
            client.act(Act::Await);
            client.act(Act::AwaitEnd);
        });
    }
    plan.client(|client| {
        work(client, 1);
        client.act(Act::Await);
        (0..3).for_each(|other| client.act(Act::AwaitClient(other)));
        client.act(Act::StopWorker);
        client.act(Act::AwaitEnd);
    });
    plan
}

fn panic_of_the_device() -> Plan {
    let mut plan = Plan::default();
    plan.client(|client| {
        work(client, 1);
        client.act(Act::Await);
        client.ask_in_vain(Request::Malloc(8), Fault::Panic);
        work(client, 1);
        client.act(Act::AwaitEnd);
    });
    plan.client(|client| {
        client.act(Act::AwaitClient(0));
        work(client, 2);
    });
    plan
}

fn death_of_the_device() -> Plan {
    let mut plan = Plan::default();
    plan.client(|client| {
        work(client, 1);
        client.ask_in_vain(Request::Synchronize, Fault::Die(HipError(719)));
        work(client, 2);
    });
    plan.client(|client| {
        client.act(Act::AwaitClient(0));
        work(client, 2);
    });
    plan
}

fn a_wait_that_never_ends() -> Plan {
    let mut plan = Plan::default();
    plan.io.linger_ms = 100;
    plan.client(|client| {
        work(client, 1);
        client.act(Act::Await);
        client.ask_in_vain(Request::Synchronize, Fault::Hang);
        work(client, 1);
        client.act(Act::HalfClose);
        client.act(Act::AwaitEnd);
    });
    plan
}

fn errors_that_surface_later() -> Plan {
    let mut plan = Plan::default();
    let half_bytes = plan.half_bytes;
    plan.client(|client| {
        let spoiled = client.model.base() + half_bytes;
        client.tell(Request::Fill(spoiled, 8, 1));
        client.ask(Request::Malloc(8));
        client.ask(Request::Synchronize);
        client.ask(Request::Down(spoiled, 1000));
        client.ask(Request::Malloc(8));
        client.tell(Request::Up(spoiled, 1000));
        client.tell(Request::Free(0xbad));
        client.ask_in_vain(Request::Synchronize, Fault::Slow(5));
        client.ask(Request::Down(client.model.base(), 10));
    });
    plan
}
