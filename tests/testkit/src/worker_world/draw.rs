//! Draws a plan of a world (its clients and what they do) from random choices.

use hipr_io::Config;
use hipr_proto::op::{ClientName, Handle};
use hipr_proto::{FLAG_RESPONSE, Header, HipError, Limits, Opcode, PLACE_PAGE_BYTES};
use hipr_worker::SessionLimits;
use hipr_worker::device::script::{Fault, TOTAL_BYTES};

use super::plan::{Act, Client, Plan};
use super::request::{Call, KERNEL, PLACING, Request, TOLD, VARIABLES};
use crate::choices::{Choices, noise};

/// The clock of the world, which decides what can be drawn: a world over sockets has to wait for timeouts, so that none are
/// drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The simulator's clock.
    Virtual,
    /// The real clock.
    Real,
}

/// Number of clients, and how much each may send.
struct Sizes {
    calls_max: u64,
    tail_max_bytes: u64,
    loud_percent: u8,
    fault_percent: u8,
    odd_percent: u8,
}

/// The ends that only time brings about and that can be drawn.
struct Waits {
    /// Whether an incomplete message may end the connection.
    mid_message: bool,
    /// Whether a client may stop sending while the device hangs.
    linger: bool,
    clock: Clock,
}

impl Waits {
    fn new(io: &Config, clock: Clock) -> Self {
        let room = io.in_flight_max_bytes.min(io.in_flight_total_max_bytes) >= 5000;
        Self {
            mid_message: io.mid_message_timeout_ms < io.first_message_timeout_ms,
            linger: room && io.protocol.open_max >= 5 && io.in_flight_total_max_bytes > 5000,
            clock,
        }
    }
}

impl Plan {
    /// Draws a plan.
    pub fn draw(choices: &mut Choices<'_>, clock: Clock) -> Self {
        let tail_max_bytes: u64 = *choices.pick(&[200, 20, 3000, 9000, 40_000, 100_000]).unwrap_or(&200);
        let mut plan = Self::new(tail_max_bytes.next_power_of_two());
        let never_ms = plan.io.linger_ms;
        plan.io = Config {
            protocol: Limits {
                small_tail_max: *choices.pick(&[64 << 10, 300]).unwrap_or(&300),
                open_max: *choices.pick(&[100, 1, 2, 5, 16 << 10]).unwrap_or(&5),
                ..Limits::default()
            },
            in_flight_max_bytes: *choices.pick(&[1 << 20, 1, 100, 5000]).unwrap_or(&5000),
            in_flight_total_max_bytes: *choices.pick(&[64 << 20, 1, 5000]).unwrap_or(&5000),
            unsent_max_bytes: *choices.pick(&[4 << 20, 1, 100, 5000]).unwrap_or(&5000),
            turn_max_bytes: *choices.pick(&[1 << 20, 1, 1000]).unwrap_or(&1000),
            ..plan.io
        };
        if clock == Clock::Virtual {
            plan.io.linger_ms = 5_000;
            plan.io.mid_message_timeout_ms = *choices.pick(&[never_ms, 1_000]).unwrap_or(&1_000);
        }
        plan.session = SessionLimits {
            stage_max_bytes: *choices.pick(&[64 << 10, 0, 100]).unwrap_or(&100),
            chunk_bytes: *choices.pick(&[256 << 10, 1, 50, 1000]).unwrap_or(&1000),
            unsent_max_bytes: plan.io.unsent_max_bytes,
            ..SessionLimits::default()
        };
        // A byte at a time costs as much for few bytes as for many.
        if plan.session.chunk_bytes == 1 {
            plan.session.chunk_bytes += (tail_max_bytes / 100) as usize;
        }
        plan.session.read_ahead_bytes = 2 * plan.session.chunk_bytes;
        let waits = Waits::new(&plan.io, clock);
        let count = *choices.pick(&[1, 1, 2, 3, 5]).unwrap_or(&1);
        for _ in 0..count {
            let mut percent = |all: &[u8]| choices.pick(all).copied().unwrap_or(0);
            let sizes = Sizes {
                loud_percent: percent(&[50, 0, 20, 95]),
                fault_percent: percent(&[0, 0, 10, 50]),
                odd_percent: percent(&[0, 5, 40]),
                calls_max: *choices.pick(&[6, 2, 20, 40]).unwrap_or(&6),
                tail_max_bytes,
            };
            plan.client(|client| {
                let half_bytes = tail_max_bytes.next_power_of_two();
                if !choices.one_in(4) {
                    let features = if choices.one_in(3) { TOLD } else { PLACING };
                    let request = Request::Offer(features);
                    client.call(Call { request, loud: choices.one_in(2), fault: None });
                }
                for _ in 0..choices.between(1, sizes.calls_max) {
                    draw_calls(client, choices, &sizes, half_bytes);
                    if choices.one_in(16) {
                        let acts = [Act::Await, Act::ReadLate, Act::Read];
                        client.act(choices.pick(&acts).cloned().unwrap_or(Act::Await));
                    }
                }
                draw_end(client, choices, &sizes, &waits);
            });
        }
        plan
    }
}

/// Draws a call, or a name and the request that makes what has it.
fn draw_calls(client: &mut Client, choices: &mut Choices<'_>, sizes: &Sizes, half_bytes: u64) {
    if choices.one_in(3) {
        let name = draw_name(choices, client);
        // Mostly not answered, as clients do.
        client.call(Call { request: Request::Name(name), loud: choices.one_in(8), fault: None });
        if !choices.one_in(6) {
            let request = draw_creation(choices, client);
            let fault =
                if choices.percent(sizes.fault_percent) { draw_fault(choices, &request) } else { None };
            client.call(Call { request, loud: choices.one_in(3), fault });
            return;
        }
    }
    if choices.one_in(8) {
        return draw_story(client, choices);
    }
    client.call(draw_call(client, choices, sizes, half_bytes));
}

/// Draws requests that belong together: memory is placed, freed and placed again where it was; a variable is found, written and read.
fn draw_story(client: &mut Client, choices: &mut Choices<'_>) {
    let quiet = |request| Call { request, loud: false, fault: None };
    if !client.model.is_told() {
        let Some(address) = client.model.places_left.free_address(100) else { return };
        client.call(quiet(Request::MallocAt(address, 100)));
        let free = if choices.one_in(2) { Request::FreeAsync(address) } else { Request::Free(address) };
        client.call(quiet(free));
        client.call(Call { request: Request::MallocAt(address, 50), loud: choices.one_in(2), fault: None });
        return;
    }
    let module = client.model.module();
    client.call(quiet(Request::Variables(
        module,
        choices.below(100),
        vec![0, choices.index(VARIABLES.len())],
    )));
    let variable = client.model.variables().last();
    client.call(quiet(Request::Put(module, choices.below(2) as u32, choices.below(9), choices.index(9))));
    if let Some((address, size)) = variable {
        client.ask(Request::Down(address, size));
    }
}

/// Draws a name: mostly the next one of a place, or one that may not be given.
fn draw_name(choices: &mut Choices<'_>, client: &Client) -> u64 {
    let places = client.model.places();
    let place = choices.index(places.len() + 1);
    let last = places.get(place).and_then(|last| ClientName::of(*last)).map_or(0, ClientName::turn);
    let name = |turn, place| ClientName::new(turn, place).map_or(0, ClientName::number);
    match choices.below(12) {
        0 => 1 << 63,
        1 => name(last, place),
        2 => name(last + 1, places.len() + 1),
        3 => client.model.module(),
        _ => name(last + 1 + choices.below(3), place),
    }
}

/// Draws a request that makes something that can have a name.
fn draw_creation(choices: &mut Choices<'_>, client: &Client) -> Request {
    match choices.below(6) {
        0 => Request::GraphCreate,
        1 | 5 => Request::StreamCreate(choices.below(2) as u32),
        2 => Request::Load(choices.below(40) as usize),
        3 => Request::Function(draw_object(choices, client, Handle::Module), "missing".into()),
        _ => Request::Function(draw_object(choices, client, Handle::Module), KERNEL.into()),
    }
}

/// Draws the handle or name of an object, or sometimes one that stands for nothing of this kind.
fn draw_object(choices: &mut Choices<'_>, client: &Client, kind: Handle) -> u64 {
    if choices.one_in(5) {
        // The last name of a place, or an earlier one.
        let last = choices.pick(client.model.places()).copied().unwrap_or(ClientName::FIRST);
        return last - (choices.below(2) << ClientName::PLACE_BITS).min(last - ClientName::FIRST);
    }
    let all: Vec<u64> = client.model.objects(kind).collect();
    choices.pick(&all).copied().unwrap_or(0xbad)
}

fn draw_call(client: &Client, choices: &mut Choices<'_>, sizes: &Sizes, half_bytes: u64) -> Call {
    let request = if choices.percent(sizes.odd_percent) {
        draw_odd(choices, client, half_bytes)
    } else {
        draw_good(choices, client, sizes, half_bytes)
    };
    let fault = if choices.percent(sizes.fault_percent) { draw_fault(choices, &request) } else { None };
    Call { request, loud: choices.percent(sizes.loud_percent), fault }
}

fn draw_good(choices: &mut Choices<'_>, client: &Client, sizes: &Sizes, half_bytes: u64) -> Request {
    let len = match choices.below(3) {
        0 => choices.below(40).min(half_bytes),
        1 => sizes.tail_max_bytes,
        _ => choices.below(sizes.tail_max_bytes + 1),
    };
    let spoiled = if choices.one_in(10) { half_bytes } else { 0 };
    let ptr = client.model.base() + choices.below(half_bytes - len.min(half_bytes) + 1) + spoiled;
    if client.model.is_told() && choices.one_in(3) {
        return draw_told(choices, client);
    }
    match choices.below(28) {
        0 => Request::Ping,
        1 | 2 => Request::Up(ptr, len as usize),
        3 | 4 => Request::Down(ptr, len),
        5 | 6 => Request::Fill(ptr, len, choices.below(256) as u8),
        7 => Request::Malloc(choices.below(1000)),
        8 => Request::Free(draw_allocation(choices, client)),
        9 => Request::StreamCreate(choices.below(2) as u32),
        10 => Request::Function(client.model.module(), KERNEL.into()),
        11 => Request::Launch(client.model.function(), choices.below(u64::MAX)),
        12 => Request::Launch(draw_object(choices, client, Handle::Function), choices.below(u64::MAX)),
        13 => Request::StreamFlags(draw_object(choices, client, Handle::Stream)),
        14 => Request::StreamDestroy(draw_object(choices, client, Handle::Stream)),
        15 => Request::Unload(draw_object(choices, client, Handle::Module)),
        16 => Request::FreeAsync(draw_allocation(choices, client)),
        17 => draw_return(choices, client),
        18 | 19 => Request::Lease(if choices.one_in(8) { choices.below(TOTAL_BYTES) } else { 0 }),
        20..=22 => draw_placed(choices, client),
        23 | 24 => Request::UpPacked(ptr, len as usize, choices.one_in(6)),
        25 => Request::DownPacked(ptr, len),
        26 => draw_told(choices, client),
        _ => Request::Synchronize,
    }
}

/// Draws a request of which the client is told something, or that uses what it was told.
fn draw_told(choices: &mut Choices<'_>, client: &Client) -> Request {
    match choices.below(6) {
        0 | 1 => draw_variables(choices, client),
        2 | 3 => draw_put(choices, client),
        4 => draw_variable_read(choices, client),
        _ => Request::Times(choices.below(100), choices.below(4) as u32),
    }
}

/// Draws a question for variables of a module.
fn draw_variables(choices: &mut Choices<'_>, client: &Client) -> Request {
    let count = 1 + choices.below(4);
    let which = (0..count).map(|_| choices.index(VARIABLES.len())).collect();
    Request::Variables(draw_object(choices, client, Handle::Module), choices.below(100), which)
}

/// Draws a copy to a variable by its number: mostly within a small one, at most one byte too long.
fn draw_put(choices: &mut Choices<'_>, client: &Client) -> Request {
    let (offset, len) = (choices.below(9), choices.below(10) as usize);
    let module = draw_object(choices, client, Handle::Module);
    Request::Put(module, choices.below(4) as u32, offset, len)
}

/// Draws a copy from a variable, at most one byte too long.
fn draw_variable_read(choices: &mut Choices<'_>, client: &Client) -> Request {
    let all: Vec<_> = client.model.variables().collect();
    match choices.pick(&all) {
        Some(&(address, size)) => Request::Down(address, choices.below(size + 2)),
        None => Request::Ping,
    }
}

/// Draws an allocation other than the buffer; 0 if there is none.
fn draw_allocation(choices: &mut Choices<'_>, client: &Client) -> u64 {
    let all: Vec<u64> = client.model.live.keys().copied().filter(|ptr| *ptr != client.model.base()).collect();
    choices.pick(&all).copied().unwrap_or(0)
}

/// Draws memory to be placed: mostly where there is room, else anywhere in the window or behind it.
fn draw_placed(choices: &mut Choices<'_>, client: &Client) -> Request {
    let places = &client.model.places_left;
    let size = match choices.below(8) {
        0 => choices.below(4) * PLACE_PAGE_BYTES,
        _ => 1 + choices.below(1000),
    };
    let any = places.address(choices.below(20));
    match choices.below(4) {
        0 => Request::MallocAt(any + choices.below(2) * 4096, size),
        1 => Request::MallocAt(any, places.bytes + 1),
        _ => Request::MallocAt(places.free_address(size).unwrap_or(any), size),
    }
}

/// Draws what is given back: a few bytes, or nearly all.
fn draw_return(choices: &mut Choices<'_>, client: &Client) -> Request {
    let (few, places) = (choices.below(2000), &client.model.places_left);
    let bytes = if choices.one_in(2) { places.bytes.saturating_sub(few) } else { few };
    Request::Return(bytes, choices.below(3))
}

/// Draws a malformed request.
fn draw_odd(choices: &mut Choices<'_>, client: &Client, half_bytes: u64) -> Request {
    let end = client.model.base() + 2 * half_bytes;
    match choices.below(11) {
        0 => Request::Unknown(choices.below(3000) as usize),
        1 => Request::Short,
        2 => Request::LongName(client.model.small_tail_max() as usize + 1),
        3 => Request::Free(end - 8),
        4 => Request::Fill(end - 8, 9, 1),
        5 => Request::Up(end - 8, 9 + choices.below(half_bytes) as usize),
        6 => Request::Down(end - 8, 9),
        7 => Request::ForeignStream,
        8 => Request::Function(client.model.module(), "missing".into()),
        9 => Request::Load(choices.below(2000) as usize),
        _ => Request::Launch(7, 7),
    }
}

fn draw_fault(choices: &mut Choices<'_>, request: &Request) -> Option<Fault> {
    let error = HipError(700 + choices.below(9) as i32);
    let waits = matches!(
        request,
        Request::Synchronize | Request::Down(..) | Request::DownPacked(..) | Request::Free(_)
    );
    match choices.below(8) {
        0 => Some(Fault::Die(error)),
        1..=3 if waits => Some(Fault::Slow(choices.below(4) as u32)),
        _ => Some(Fault::Fail(error)),
    }
}

/// Draws how a client ends, if not by waiting for its replies.
fn draw_end(client: &mut Client, choices: &mut Choices<'_>, sizes: &Sizes, waits: &Waits) {
    let kinds = if waits.clock == Clock::Virtual { 9 } else { 7 };
    match choices.below(kinds) {
        // Who is told something reads to the end: what is unread when a socket is closed takes along what was sent last.
        0 | 1 if !client.model.is_told() => return,
        0..=2 => client.act(Act::HalfClose),
        3 => {
            let call = Call { request: Request::Shutdown, loud: choices.one_in(2), fault: None };
            client.call(call);
            pipeline(client, choices);
        }
        4 => {
            client.bytes(draw_garbage(choices));
            pipeline(client, choices);
        }
        5 => {
            client.bytes(draw_part(client, choices, sizes));
            client.act(Act::HalfClose);
        }
        6 => {
            client.bytes(draw_part(client, choices, sizes));
            return client.act(Act::Reset);
        }
        7 => {
            client.act(Act::Await);
            client.ask_in_vain(Request::Synchronize, Fault::Hang);
            client.tell(Request::Ping);
            client.ask(Request::Ping);
            if !waits.linger || choices.one_in(2) {
                return client.act(Act::Reset);
            }
            client.act(Act::HalfClose);
        }
        _ => {
            // The rest of a message never comes.
            client.act(Act::Await);
            client.bytes(draw_part(client, choices, sizes));
            if !waits.mid_message {
                client.act(Act::HalfClose);
            }
        }
    }
    client.act(Act::AwaitEnd);
}

/// Draws calls after the client's end.
fn pipeline(client: &mut Client, choices: &mut Choices<'_>) {
    for _ in 0..choices.below(4) {
        client.ask(Request::Ping);
        client.tell(Request::Up(client.model.base(), choices.below(300) as usize));
    }
}

/// Draws bytes that end the session if they arrive in place of a message.
fn draw_garbage(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut header = Header::new(Opcode::PING, 1, 0, 0);
    match choices.below(4) {
        0 => header.magic ^= 1 << choices.below(32),
        1 => header.version ^= 0x100 << choices.below(8),
        2 => header.flags |= FLAG_RESPONSE,
        _ => header.payload_length = Limits::default().payload_max + 1,
    }
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(noise(choices.below(100) as usize));
    bytes
}

/// Draws a message that lacks at least its last byte.
fn draw_part(client: &Client, choices: &mut Choices<'_>, sizes: &Sizes) -> Vec<u8> {
    let request = if choices.one_in(2) {
        Request::Malloc(10)
    } else {
        Request::Up(client.model.base(), choices.below(sizes.tail_max_bytes) as usize)
    };
    let encoded = request.encode();
    let inline = encoded.inline.unwrap_or_default();
    let payload = encoded.fixed.len() + inline.len();
    let mut bytes = Header::new(encoded.op, 0x7777, payload as u64, 0).to_bytes().to_vec();
    bytes.extend(encoded.fixed);
    bytes.extend(inline);
    let end = bytes.len() - 1;
    bytes.truncate(
        1 + match choices.below(3) {
            0 => choices.index(end.min(Header::SIZE)),
            _ => choices.index(end),
        },
    );
    bytes
}
