//! Memory for other processes.
//!
//! An allocation that is shared is moved into a file of its own, and nothing else is in this file. The process that has it listens at an
//! abstract socket and gives a descriptor of the file to who asks: a process of the same user that knows the allocation's token, 128
//! random bits that only the handle has. So no other user's process gets any memory, and one of the same user gets only what it was given a
//! handle of; a process that cannot be traced (`PR_SET_DUMPABLE`) shares all the same. Memory stays while somebody has it attached.
//!
//! `hsa_amd_portable_export_dmabuf` gives the same descriptor to the program itself.
//!
//! Signals are not shared: a wait ends by a wake-up within the process, and what another one stores would not wake anybody.

use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use hipr_grid::lock;
use rustix::io::{Errno, read, write};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, recvmsg, sendmsg, shutdown,
};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::facts::Agents;
use crate::memory::{Allocation, Kind};
use crate::pointer::{In, Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::segment::{GRANULE_BYTES, Segment};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, IpcHandle, Signal};

/// What only a handle of an allocation has.
type Token = [u8; 16];

/// The first word of a handle.
const MAGIC: u32 = u32::from_le_bytes(*b"hIPC");
/// For how long one process waits for another that is connected.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    pid: u32,
    /// The socket's number.
    number: u64,
    token: Token,
}

impl Address {
    fn to_handle(self) -> IpcHandle {
        let [n0, n1] = [self.number as u32, (self.number >> 32) as u32];
        let word = |index: usize| u32::from_le_bytes(self.token.as_chunks().0[index]);
        [MAGIC, self.pid, n0, n1, word(0), word(1), word(2), word(3)]
    }

    fn of_handle(handle: IpcHandle) -> Option<Self> {
        let [MAGIC, pid, n0, n1, token @ ..] = handle else { return None };
        let mut bytes = Token::default();
        bytes.copy_from_slice(token.map(u32::to_le_bytes).as_flattened());
        Some(Self { pid, number: u64::from(n1) << 32 | u64::from(n0), token: bytes })
    }

    fn socket(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(format!("hipr-hsa-{}-{:016x}", self.pid, self.number))
    }

    /// Asks the process that has the memory for its file.
    fn ask(&self) -> Option<Segment> {
        let stream = UnixStream::connect_addr(&self.socket().ok()?).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        // The name is free for everybody once the process is gone.
        if !is_own_user(&stream) || write(&stream, &self.token).ok()? != self.token.len() {
            return None;
        }
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut answer = [0];
        let mut pieces = [std::io::IoSliceMut::new(&mut answer)];
        recvmsg(&stream, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
        let mut files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let file: OwnedFd = files.next()?.next()?;
        Segment::received(file)
    }
}

/// Returns whether the other end of a connection is this user's.
fn is_own_user(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|other| other.uid == geteuid())
}

fn random<const N: usize>() -> HsaResult<[u8; N]> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(count) if count == N => Ok(bytes),
        _ => Err(Status::ERROR_OUT_OF_RESOURCES),
    }
}

/// The allocations that other processes may attach.
#[derive(Debug, Default)]
pub(crate) struct Exports(Mutex<Option<Server>>);

/// What a process has shared, by token. Memory that is freed is not there any more.
type Shared = Mutex<Vec<(Token, Weak<Segment>)>>;

/// The socket at which files are asked for, and the thread behind it, which ends when this is dropped.
#[derive(Debug)]
struct Server {
    number: u64,
    shared: Arc<Shared>,
    listener: Arc<UnixListener>,
}

impl Server {
    fn start() -> HsaResult<Self> {
        let refused = |error: std::io::Error| {
            tracing::warn!(%error, "memory cannot be shared with other processes: the system has no socket for it");
            Status::ERROR_OUT_OF_RESOURCES
        };
        let number = u64::from_le_bytes(random()?);
        let address = Address { pid: std::process::id(), number, token: Token::default() };
        let listener =
            address.socket().and_then(|socket| UnixListener::bind_addr(&socket)).map_err(refused)?;
        let (listener, shared) = (Arc::new(listener), Arc::<Shared>::default());
        let (own, files) = (Arc::clone(&listener), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("hsa-ipc".to_owned());
        thread.spawn(move || serve(&own, &files)).map_err(refused)?;
        Ok(Self { number, shared, listener })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends the thread's wait for connections.
        let _ = shutdown(&self.listener, Shutdown::Both);
    }
}

fn serve(listener: &UnixListener, shared: &Shared) {
    while let Ok((stream, _)) = listener.accept() {
        if !is_own_user(&stream) {
            tracing::warn!("another user's process has asked for memory and gets none");
            continue;
        }
        if let Err(error) = answer(&stream, shared) {
            tracing::debug!(%error, "a process that asked for memory has gone");
        }
    }
}

/// Answers the question of one process: a byte, and with it the file if the token is one.
fn answer(stream: &UnixStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut token = Token::default();
    if read(stream, &mut token)? != token.len() {
        return Err(Errno::INVAL.into());
    }
    let segment = find(shared, &token);
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = segment.as_deref().map(|segment| [segment.fd()]);
    if let Some(files) = &files {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(stream, &[std::io::IoSlice::new(&[files.is_some().into()])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn find(shared: &Shared, token: &Token) -> Option<Arc<Segment>> {
    lock(shared).iter().find(|(known, _)| known == token)?.1.upgrade()
}

impl Exports {
    /// Returns how other processes find a file.
    fn add(&self, segment: &Arc<Segment>) -> HsaResult<Address> {
        let mut server = lock(&self.0);
        let server = match &mut *server {
            Some(server) => server,
            none => none.insert(Server::start()?),
        };
        let mut shared = lock(&server.shared);
        shared.retain(|(_, segment)| segment.strong_count() > 0);
        let known = shared.iter().find(|(_, known)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(segment)));
        let token = match known {
            Some((token, _)) => *token,
            None => {
                let token = random()?;
                shared.push((token, Arc::downgrade(segment)));
                token
            }
        };
        Ok(Address { pid: std::process::id(), number: server.number, token })
    }

    /// Returns the file of a handle: this process's own, or another one's.
    fn get(&self, address: &Address) -> Option<Arc<Segment>> {
        let own = lock(&self.0)
            .as_ref()
            .filter(|server| server.number == address.number)
            .map(|s| Arc::clone(&s.shared));
        match own {
            Some(shared) => find(&shared, &address.token),
            None => address.ask().map(Arc::new),
        }
    }
}

/// Returns whether a length is that of a file's memory, as it was asked for or in whole pages.
fn is_whole(len_bytes: u64, requested_bytes: u64) -> bool {
    len_bytes == requested_bytes || Some(len_bytes) == requested_bytes.checked_next_multiple_of(GRANULE_BYTES)
}

/// `hsa_amd_ipc_memory_create`.
pub(crate) fn memory_create(ptr: Ptr, len_bytes: usize, handle: Out<IpcHandle>) -> HsaResult {
    let runtime = runtime()?;
    let found = runtime.memory.find(ptr.addr()).filter(|found| !handle.is_null() && found.base == ptr.addr());
    let found = found.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let is_gpus = found.kind == Kind::Pool && found.pool.is_some() && found.owner != 0;
    if !is_gpus || !is_whole(len_bytes as u64, found.requested_bytes) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    drop(found);
    let segment = runtime.memory.own_segment(ptr.addr())?;
    handle.put(runtime.part::<Exports>().add(&segment)?.to_handle())
}

impl Runtime {
    /// Maps a file somewhere for these agents.
    fn attach(&self, segment: Arc<Segment>, access: Agents) -> HsaResult<u64> {
        let label = segment.label();
        let (owner, flags) = self.allocatable(label.pool).unwrap_or((0, 0));
        self.memory.with_free_addresses(segment.len_bytes(), GRANULE_BYTES, |base| {
            let allocation = Allocation {
                block: Some(Arc::new(segment.block_at(base)?)),
                kind: Kind::Ipc,
                base,
                len_bytes: segment.len_bytes(),
                requested_bytes: label.requested_bytes,
                segment: Some(segment),
                owner,
                pool: None,
                flags,
                access: access.with(Agents::only(0)),
                user_data: Ptr::NULL,
                callbacks: Vec::new(),
            };
            Ok((allocation, base))
        })
    }
}

/// `hsa_amd_ipc_memory_attach`: each call maps the memory at another address.
pub(crate) fn memory_attach(
    handle: In<IpcHandle>,
    len_bytes: usize,
    count: u32,
    agents: In<Agent>,
    mapped: Out<Ptr>,
) -> HsaResult {
    let runtime = runtime()?;
    if mapped.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let address = Address::of_handle(handle.get()?).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let access = if count == 0 { Agents::ALL } else { runtime.agent_set(agents, count as usize)? };
    let segment = runtime.part::<Exports>().get(&address);
    let segment = segment.filter(|segment| is_whole(len_bytes as u64, segment.label().requested_bytes));
    let base = runtime.attach(segment.ok_or(Status::ERROR_INVALID_ARGUMENT)?, access)?;
    mapped.put(Ptr::at(base))
}

/// `hsa_amd_ipc_memory_detach`.
pub(crate) fn memory_detach(mapped: Ptr) -> HsaResult {
    runtime()?.memory.detach(mapped.addr())
}

/// `hsa_amd_ipc_signal_create`.
pub(crate) fn signal_create(signal: Signal, handle: Out<IpcHandle>) -> HsaResult {
    runtime()?;
    if handle.is_null() || crate::signal::check(signal).is_err() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    tracing::warn!("signals of the emulated GPUs are not shared with other processes");
    Err(Status::ERROR)
}

/// `hsa_amd_ipc_signal_attach`: no handle is one.
pub(crate) fn signal_attach(_handle: In<IpcHandle>, _signal: Out<Signal>) -> HsaResult {
    runtime()?;
    Err(Status::ERROR_INVALID_ARGUMENT)
}

/// `hsa_amd_portable_export_dmabuf`.
pub(crate) fn export_dmabuf(ptr: Ptr, len_bytes: usize, descriptor: Out<i32>, offset: Out<u64>) -> HsaResult {
    let runtime = runtime()?;
    if ptr.is_null() || len_bytes == 0 || descriptor.is_null() || offset.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let found = runtime.memory.find(ptr.addr());
    let is_inside = |found: &Allocation| found.contains(ptr.addr(), len_bytes as u64);
    let found = found.filter(is_inside).ok_or(Status::ERROR_INVALID_ALLOCATION)?;
    if found.owner == 0 {
        return Err(Status::ERROR_INVALID_AGENT);
    }
    let base = found.base;
    let segment = match found.segment {
        Some(segment) => segment,
        None => {
            drop(found.block);
            runtime.memory.own_segment(base)?
        }
    };
    descriptor.put(segment.descriptor()?)?;
    offset.put(ptr.addr() - base)
}

/// `hsa_amd_portable_close_dmabuf`.
pub(crate) fn close_dmabuf(descriptor: i32) -> HsaResult {
    runtime()?;
    // SAFETY: it has no conditions; whose descriptor it is, the program says.
    let is_closed = unsafe { libc::close(descriptor) } == 0;
    if is_closed { Ok(()) } else { Err(Status::ERROR_RESOURCE_FREE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Label;
    use crate::types::MemoryPool;

    #[test]
    fn a_handle_says_where_the_memory_is() {
        let address =
            Address { pid: 0x1234_5678, number: 0xfedc_ba98_7654_3210, token: *b"0123456789abcdef" };
        let handle = address.to_handle();
        assert_eq!(Address::of_handle(handle), Some(address));
        let mut wrong = handle;
        wrong[0] ^= 1;
        assert_eq!(Address::of_handle(wrong), None);
        assert_eq!(Address::of_handle([0; 8]), None);
    }

    #[test]
    fn a_file_is_given_to_who_knows_its_token() {
        let label = Label { pool: MemoryPool(0x200), requested_bytes: 100, kind: 0 };
        let segment = Arc::new(Segment::new(4096, label).expect("a file"));
        let exports = Exports::default();
        let address = exports.add(&segment).expect("a socket");
        assert_eq!(exports.add(&segment), Ok(address), "one allocation has one handle");
        let asked = address.ask().expect("the file");
        assert!(asked.is_same(&segment));
        for bit in 0..128 {
            let mut wrong = address;
            wrong.token[bit / 8] ^= 1 << (bit % 8);
            assert!(wrong.ask().is_none(), "bit {bit}");
            assert!(exports.get(&wrong).is_none(), "bit {bit}");
        }
        assert!(Address { number: !address.number, ..address }.ask().is_none());
        // Somebody who says nothing, or too little, keeps nobody else from being served.
        let half = UnixStream::connect_addr(&address.socket().expect("a name")).expect("a connection");
        write(&half, &[1]).expect("a byte");
        drop(half);
        assert!(address.ask().is_some());
        drop(segment);
        assert!(address.ask().is_none(), "what is freed is not given any more");
        assert_eq!(asked.len_bytes(), 4096);
        drop(exports);
        assert!(address.ask().is_none());
    }
}
