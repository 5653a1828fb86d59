//! Workers for tests: real ones with a scripted device, and fake ones.
#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use hipr_proto::{HipError, Inline, Limits, Opcode, Outbox, Outcome, Rx, Server, Wire, op};
use hipr_worker::device::script::Script;
use hipr_worker::{Config, Handle, Worker};

/// Returns an address where nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// Starts a real worker with a scripted device.
pub(crate) fn scripted() -> (Handle, Script) {
    scripted_at("127.0.0.1:0".into())
}

/// Starts a real worker with a scripted device, listening at an address.
pub(crate) fn scripted_at(listen: hipr_worker::Address) -> (Handle, Script) {
    let script = Script::new();
    let device = std::sync::Arc::new(script.clone());
    let config = Config { listen, ..Config::new(device) };
    (Worker::bind(config).and_then(Worker::spawn).expect("a worker"), script)
}

/// A request that a fake worker received.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// Number of the connection, from 0 in the order of connecting.
    pub(crate) connection: usize,
    pub(crate) op: Opcode,
    pub(crate) fixed: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    pub(crate) wants_reply: bool,
}

impl Asked {
    pub(crate) fn as_op<O: op::Op>(&self) -> O {
        assert_eq!(self.op, O::OPCODE);
        O::take(&mut self.fixed.as_slice()).expect("a whole request")
    }
}

/// The reaction of a fake worker to a request.
pub(crate) enum Reaction {
    /// Replies with success, and with these bytes as the fixed part.
    Good(Vec<u8>),
    /// Replies with success, with these bytes as the fixed part and those behind it.
    GoodWith(Vec<u8>, Vec<u8>),
    /// Replies with an error.
    Bad(HipError),
    /// Keeps the error of a request without a reply, and tells at once that it failed, with this text.
    Refused(HipError, String),
    /// Closes the connection.
    Close,
}

/// A fake worker without devices: records every request and reacts as the test says.
pub(crate) struct FakeWorker {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Receiver<Asked>,
}

impl FakeWorker {
    /// Starts a fake worker; `react` returns the reaction to each request.
    pub(crate) fn start(react: impl Fn(&Asked) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, asked) = mpsc::channel();
        let react = std::sync::Arc::new(react);
        thread::spawn(move || {
            for (connection, socket) in listener.incoming().enumerate() {
                let (sender, react) = (sender.clone(), std::sync::Arc::clone(&react));
                let Ok(socket) = socket else { return };
                thread::spawn(move || serve(connection, socket, &sender, &*react));
            }
        });
        Self { address, asked }
    }

    /// Returns the requests up to and including the next of `op`.
    pub(crate) fn until(&self, op: Opcode) -> Vec<Asked> {
        let mut all = Vec::new();
        loop {
            all.push(self.asked.recv().expect("the worker lives"));
            if all.last().is_some_and(|last| last.op == op) {
                return all;
            }
        }
    }
}

fn serve(
    connection: usize,
    mut socket: TcpStream,
    sender: &mpsc::Sender<Asked>,
    react: &dyn Fn(&Asked) -> Reaction,
) {
    let mut server = Server::<Vec<u8>>::new(Limits::default());
    let mut buffer = vec![0; 64 << 10];
    let mut open = None;
    loop {
        let n = match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) => n,
        };
        let mut input = &buffer[..n];
        loop {
            let done = match server.handle_input(&mut input).expect("a client that knows the protocol") {
                Rx::Request { ticket, op, fixed, tail } => {
                    let asked = Asked {
                        connection,
                        op,
                        fixed: fixed.to_vec(),
                        tail: Vec::new(),
                        wants_reply: ticket.wants_reply(),
                    };
                    open = Some((ticket, asked));
                    tail == 0
                }
                Rx::Data { bytes, last } => {
                    open.as_mut().expect("a request").1.tail.extend_from_slice(bytes);
                    last
                }
                Rx::NeedMore | Rx::Paused => break,
            };
            if !done {
                continue;
            }
            let (ticket, asked) = open.take().expect("a request");
            let reaction = react(&asked);
            let _ = sender.send(asked);
            match reaction {
                Reaction::Good(fixed) => server.complete(ticket, Outcome::ok_raw(&fixed)).expect("in order"),
                Reaction::GoodWith(fixed, tail) => {
                    let outcome = Outcome::ok_raw(&fixed).with_inline(Inline::Whole(tail));
                    server.complete(ticket, outcome).expect("in order");
                }
                Reaction::Bad(error) => server.complete(ticket, Outcome::error(error)).expect("in order"),
                Reaction::Refused(error, text) => {
                    let text_length = text.len() as u32;
                    let (request, operation) = (ticket.id(), u32::from(ticket.op().0));
                    server.complete(ticket, Outcome::error(error)).expect("in order");
                    let zero = op::RequestFailed::ZERO;
                    let failed =
                        op::RequestFailed { request, operation, error_code: error.0, text_length, ..zero };
                    server.notify(&failed, text.as_bytes()).expect("a whole one");
                }
                Reaction::Close => return,
            }
        }
        let mut outbox = Outbox::new();
        server.poll_transmit(&mut outbox);
        for bytes in outbox.slices() {
            if socket.write_all(bytes).is_err() {
                return;
            }
        }
    }
}

/// Returns the bytes of a reply.
pub(crate) fn bytes<W: Wire>(reply: &W) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.put(&mut bytes);
    bytes
}

/// Reacts as a worker without a device: allocations have addresses, everything else succeeds and does nothing.
pub(crate) fn easy(asked: &Asked) -> Reaction {
    static PLACES: AtomicU64 = AtomicU64::new(0x2000_0000);
    let memory = || PLACES.fetch_add(0x100_0000, Ordering::Relaxed);
    Reaction::Good(match asked.op {
        Opcode::MALLOC_HOST | Opcode::MALLOC_MANAGED | Opcode::MALLOC_ASYNC => bytes(&memory()),
        Opcode::MEM_ALLOC_PITCH => bytes(&op::MemAllocPitchReply { dptr: memory(), pitch: 512 }),
        Opcode::MODULE_GET_GLOBAL => bytes(&op::ModuleGetGlobalReply { device_ptr: memory(), size: 0 }),
        Opcode::GET_DEVICE_COUNT => bytes(&op::GetDeviceCountReply { count: 2 }),
        Opcode::MALLOC => bytes(&op::MallocReply { device_ptr: 0x1000_0000 }),
        other => vec![0; other.info().map_or(0, |info| info.reply.size)],
    })
}
