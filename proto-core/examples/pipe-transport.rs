//! Carries HIPR over something that is not a socket: a pipe of small cells, as a bus or a serial line has them. The
//! server's device is a `Vec<u8>`. `docs/transport.md` explains the calls. Run it with `cargo run -p hipr-proto --example
//! pipe-transport`.

use std::error::Error;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hipr_proto::{
    Answer, Client, HipError, HipResult, Inline, Limits, Op, Opcode, Outbox, Outcome, Rx, Server, Ticket,
    Wire, op,
};

type Failure = Box<dyn Error + Send + Sync>;
/// What the pipe carries at once: up to `CELL_BYTES` bytes, regardless of where messages begin and end.
type Cell = Vec<u8>;
const CELL_BYTES: usize = 16;

/// Writes everything of `outbox`, a cell at a time, and reports each cell's bytes with `advance`.
fn write(pipe: &SyncSender<Cell>, outbox: &mut Outbox<Vec<u8>>) -> Result<(), Failure> {
    while !outbox.is_empty() {
        let cell: Vec<u8> = outbox.slices().flatten().copied().take(CELL_BYTES).collect();
        let written = cell.len();
        pipe.send(cell)?;
        outbox.advance(written);
    }
    Ok(())
}

/// The memory of a device; addresses are indices.
struct Device(Vec<u8>);
const DEVICE_BYTES: usize = 1 << 20;

impl Device {
    fn carry_out(&mut self, op: Opcode, mut fixed: &[u8], tail: &[u8]) -> HipResult<Outcome<Vec<u8>>> {
        let index = |address| usize::try_from(address).unwrap_or(usize::MAX);
        if op == Opcode::MALLOC {
            let (start, size) = (self.0.len(), index(op::Malloc::take(&mut fixed)?.size));
            let end = start.checked_add(size).filter(|end| *end <= DEVICE_BYTES);
            self.0.resize(end.ok_or(HipError::OUT_OF_MEMORY)?, 0);
            return Ok(Outcome::ok(&op::MallocReply { device_ptr: start as u64 }));
        } else if op != Opcode::MEMCPY {
            return Err(HipError::NOT_SUPPORTED);
        }
        let copy = op::Memcpy::take(&mut fixed)?;
        let is_write = copy.kind == op::kind::HOST_TO_DEVICE;
        let start = if is_write { copy.dst } else { copy.src };
        let range = index(start)..index(start.saturating_add(copy.size));
        let memory = self.0.get_mut(range).ok_or(HipError::INVALID_VALUE)?;
        if is_write {
            memory.copy_from_slice(tail);
            return Ok(Outcome::ok(&()));
        }
        Ok(Outcome::ok(&()).with_inline(Inline::Whole(memory.to_vec())))
    }
}

/// Runs a server: receives cells, executes each complete request, sends cells back.
fn serve(incoming: &Receiver<Cell>, outgoing: &SyncSender<Cell>) -> Result<(), Failure> {
    let (mut server, mut outbox) = (Server::new(Limits::default()), Outbox::new());
    let mut device = Device(Vec::new());
    let mut request: Option<(Ticket, Vec<u8>, Vec<u8>)> = None;
    while let Ok(cell) = incoming.recv() {
        let mut input = cell.as_slice();
        loop {
            let is_whole = match server.handle_input(&mut input)? {
                Rx::Request { ticket, fixed, tail, .. } => {
                    request = Some((ticket, fixed.to_vec(), Vec::new()));
                    tail == 0
                }
                Rx::Data { bytes, last } => {
                    request.iter_mut().for_each(|(.., tail)| tail.extend_from_slice(bytes));
                    last
                }
                // Each request is completed before the next is read: this server never pauses.
                Rx::NeedMore | Rx::Paused => break,
            };
            if let Some((ticket, fixed, tail)) = request.take_if(|_| is_whole) {
                let outcome = match server.admit(&ticket) {
                    Some(error) => Err(error),
                    None => device.carry_out(ticket.op(), &fixed, &tail),
                };
                server.complete(ticket, outcome.unwrap_or_else(Outcome::error))?;
            }
        }
        server.poll_transmit(&mut outbox);
        write(outgoing, &mut outbox)?;
    }
    Ok(server.handle_eof()?)
}

/// The client's end of the pipe: its protocol state, outgoing cells, incoming cells.
struct Connection(Client<Vec<u8>>, SyncSender<Cell>, Receiver<Cell>);
type CallResult<O> = HipResult<(<O as Op>::Reply, Vec<u8>)>;

impl Connection {
    /// Sends a request and waits for the reply and its bytes; returns zeros and no bytes if the request is not answered.
    fn call<O: Op>(&mut self, op: &O, bytes: Option<Vec<u8>>) -> Result<CallResult<O>, Failure> {
        let Self(client, outgoing, incoming) = self;
        let mut is_whole = client.request(op, &[], bytes)?.is_none();
        if client.wants_flush() {
            let mut outbox = Outbox::new();
            client.poll_transmit(&mut outbox);
            write(outgoing, &mut outbox)?;
        }
        let (mut answer, mut data) = (Ok(O::Reply::ZERO), Vec::new());
        while !is_whole {
            let cell = incoming.recv()?;
            let mut input = cell.as_slice();
            loop {
                match client.handle_input(&mut input)? {
                    Answer::Reply(reply) => {
                        is_whole = reply.inline == 0;
                        answer = reply.read::<O>()?;
                    }
                    Answer::Data { bytes, last } => {
                        is_whole = last;
                        data.extend_from_slice(bytes);
                    }
                    // They come only to a client that accepts them.
                    Answer::Notification(_) | Answer::NeedMore => break,
                }
            }
        }
        Ok(answer.map(|reply| (reply, data)))
    }
}

pub(crate) fn main() -> Result<(), Failure> {
    let ((to_server, incoming), (outgoing, from_server)) = (sync_channel(8), sync_channel(8));
    let server = std::thread::spawn(move || serve(&incoming, &outgoing));
    let mut connection = Connection(Client::new(Limits::default()), to_server, from_server);

    let (reply, _) = connection.call(&op::Malloc { size: 10_000, flags: 0 }, None)??;
    let device_ptr = reply.device_ptr;
    let bytes: Vec<u8> = (0..10_000).map(|i| (i * 7) as u8).collect();
    let write = op::Memcpy { dst: device_ptr, size: 10_000, kind: op::kind::HOST_TO_DEVICE, ..Wire::ZERO };
    let read = op::Memcpy { src: device_ptr, size: 10_000, kind: op::kind::DEVICE_TO_HOST, ..Wire::ZERO };
    connection.call(&write, Some(bytes.clone()))??;
    assert_eq!(connection.call(&read, None)??.1, bytes, "what comes back is what went there");
    // Nobody waits for a copy to the device: that it failed is said by the next answer, once.
    connection.call(&op::Memcpy { dst: device_ptr + 1, ..write }, Some(bytes.clone()))??;
    assert_eq!(connection.call(&read, None)?, Err(HipError::INVALID_VALUE));
    assert_eq!(connection.call(&read, None)??.1, bytes);

    drop(connection);
    server.join().map_err(|_| "the server panicked")??;
    println!("10000 bytes to the device and back in cells of 16; the error of a wild copy was reported once");
    Ok(())
}
