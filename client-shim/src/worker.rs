//! The worker as the shim uses it: the connection, and what is known of devices, memory, streams and pools.

mod between;
mod info;
pub(crate) mod links;
pub(crate) mod map;
pub mod mappings;
pub mod memory;
mod outside;
pub(crate) mod placer;
mod placing;
mod port;
pub(crate) mod reserve;
mod sends;
mod shared;
mod told;
mod visible;
mod written;

use std::collections::{BTreeSet, HashMap};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hipr_abi::{
    hipDeviceAttributeFineGrainSupport, hipDeviceAttributeHostNativeAtomicSupported,
    hipDeviceAttributePciDomainId,
};
use hipr_client::{
    CompressUse, ConnectError, ConnectOptions, Connection, Extra, Observer, Stats, UploadCache,
    WorkerAddress, offer_from_env,
};
use hipr_proto::op::{self, GetDevicePropertiesReply};
use hipr_proto::{Features, HipError, HipResult, Op};

use crate::convert::{Ptr, Stream};
use crate::thread;
use between::Separate;
use links::{Begun, LINKS_MAX, Link, Links};
use mappings::Mappings;
use memory::Memory;
use visible::Visible;
use written::Written;

pub use port::{Ahead, ChangesAnswer, HostMemory, Port, Release, Wait, Writes, WrittenPages};

/// Attributes of a device whose kernels and the program see each other's writes to host memory while they run. The worker's answer is about
/// its own host, so that only sharing decides.
const BY_SHARING: [i32; 2] =
    [hipDeviceAttributeFineGrainSupport, hipDeviceAttributeHostNativeAtomicSupported];

/// How many bits the number of a PCI domain has.
const DOMAIN_BITS: u32 = 12;

/// Default time limit for connecting; `HIPR_CONNECT_TIMEOUT_MS` changes it.
const CONNECT_TIMEOUT_MS: u64 = 5000;

/// Features that a program with several workers does not offer: memory that one of them maps as well is not the others', and numbers of
/// physical memory do not say whose they are.
const OF_ONE_WORKER: Features = Features::SHARED.union(Features::MAPPINGS);

/// State of a stream.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// Flags of the stream: 1 is `hipStreamNonBlocking`.
    pub flags: u32,
    /// The priority that the program asked for.
    pub priority: i32,
    /// The device that has the stream.
    pub device: i32,
    /// The mask of compute units that the program asked for, as far as it went; empty if it asked for none.
    pub cu_mask: Vec<u32>,
}

/// What is known of a memory pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolInfo {
    /// The device whose memory it is.
    pub device: i32,
    /// Whether the program created it.
    pub is_own: bool,
}

/// The program's workers, whose devices are one list. Locks are taken one at a time, but for the placers': while one is locked, requests
/// are sent.
#[derive(Debug)]
pub struct Worker {
    links: Links,
    device_count: OnceLock<i32>,
    /// Properties by device, once they have been requested.
    properties: OnceLock<Box<[OnceLock<GetDevicePropertiesReply>]>>,
    memory: Mutex<Memory>,
    streams: Mutex<HashMap<Stream, StreamInfo>>,
    pools: Mutex<HashMap<Ptr, PoolInfo>>,
    /// Which device may address the memory of which other one.
    peers: Mutex<BTreeSet<(i32, i32)>>,
    mappings: Mutex<Mappings>,
    /// Questions what has changed in memory on both sides that are under way, by number.
    questions: Mutex<HashMap<u64, Begun>>,
    /// Which pages of memory on both sides the program has written.
    written: Written,
    /// Which workers do not copy to each other.
    separate: Separate,
}

impl Worker {
    /// Connects to the workers that the environment names; an `observer` sees all that the connections do. The one line about a failure is
    /// written here.
    ///
    /// # Errors
    /// `hipErrorNoDevice`: without all of its workers the program has no device.
    pub(crate) fn connect(observer: Option<Arc<dyn Observer>>) -> HipResult<Self> {
        let addresses = WorkerAddress::all_from_env().map_err(|why| {
            tracing::error!("{why}");
            HipError::NO_DEVICE
        })?;
        if addresses.len() > LINKS_MAX {
            tracing::error!("HIPR_WORKER names {} workers; a program can have {LINKS_MAX}", addresses.len());
            return Err(HipError::NO_DEVICE);
        }
        let connections = connect_all(&addresses, observer.as_ref())?;
        let visible = Visible::from_env(&connections)?;
        let memory = Memory::new(connections.len() > 1);
        Ok(Self {
            links: Links::new(connections, visible),
            device_count: OnceLock::new(),
            properties: OnceLock::new(),
            memory: Mutex::new(memory),
            streams: Mutex::default(),
            pools: Mutex::default(),
            peers: Mutex::default(),
            mappings: Mutex::default(),
            questions: Mutex::default(),
            written: Written::default(),
            separate: Separate::default(),
        })
    }

    /// Returns the links to all workers.
    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// Returns the sums of the connections' counters.
    pub fn stats(&self) -> Stats {
        self.links.with_each(Connection::stats, Stats::plus)
    }

    /// Returns the link to the worker of the calling thread's current device.
    #[inline]
    pub(crate) fn link(&self) -> &Link {
        self.links.of_device(thread::device())
    }

    /// Returns the number of each device's worker; nothing if there is one worker.
    pub(crate) fn workers(&self) -> Vec<usize> {
        let count = if self.links.are_several() { self.links.visible.count().unwrap_or(0) } else { 0 };
        (0..count).map(|device| self.links.visible.link(device)).collect()
    }

    /// Returns the connection to the worker of a device.
    #[inline]
    pub(crate) fn connection_of(&self, device: i32) -> &Connection {
        &self.links.of_device(device).connection
    }

    /// Returns the file descriptors that a child of this process has no use for, besides the connection's; -1 for each that is not open.
    pub(crate) fn raw_fds(&self) -> [RawFd; 2] {
        self.written.raw_fds()
    }

    /// Returns how many pages of memory on both sides have been compared.
    pub(crate) fn pages_compared(&self) -> u64 {
        self.written.compared()
    }

    /// Returns the features of the extension that all workers have accepted.
    pub fn features(&self) -> Features {
        self.links.features()
    }

    /// Sends a request on behalf of the calling thread and its current device; waits if the protocol's table says so.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn call<O: Op>(&self, op: &O) -> HipResult<Option<O::Reply>> {
        if op.wants_reply() { self.ask(op).map(Some) } else { self.tell(op).map(|()| None) }
    }

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn ask<O: Op>(&self, op: &O) -> HipResult<O::Reply> {
        Ok(self.links.ask_with(op, self.extra())?)
    }

    /// Makes an object of the worker and returns its handle: without waiting, where the worker lets the client name what it makes.
    ///
    /// # Errors
    /// `hipErrorNoDevice` and similar: there is no device; without names also what the worker answers. A lost connection.
    pub fn create<O: Op>(&self, op: &O) -> HipResult<u64> {
        if self.features().contains(Features::NAMES) {
            // Where there is no device HIP says so at once.
            self.check_device(thread::device())?;
        }
        Ok(self.links.create(op, self.extra())?)
    }

    /// Sends the request that destroys the object with this handle, without waiting for a reply.
    ///
    /// # Errors
    /// A lost connection.
    pub fn destroy<O: Op>(&self, op: &O, handle: u64) -> HipResult<()> {
        self.tell(op)?;
        self.links.free_name(handle);
        Ok(())
    }

    /// Sends a request that destroys all objects of the session, and waits for the reply.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn destroy_all<O: Op>(&self, op: &O) -> HipResult<O::Reply> {
        Ok(self.links.destroy_all(op, self.extra())?)
    }

    /// Sends a request without waiting for a reply. What it can fail with comes with the next answer.
    ///
    /// # Errors
    /// A lost connection.
    pub fn tell<O: Op>(&self, op: &O) -> HipResult<()> {
        self.tell_with(op, self.extra())
    }

    /// Does what [`tell`](Self::tell) does for a request with more than a fixed part.
    ///
    /// # Errors
    /// As [`tell`](Self::tell).
    pub(crate) fn tell_with<O: Op>(&self, op: &O, extra: Extra<'_>) -> HipResult<()> {
        Ok(self.links.tell_with(op, extra)?)
    }

    /// Sends work of a stream without waiting for a reply. Whether it can fail is noted by the stream layer.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn put<O: Op>(&self, op: &O) -> HipResult<()> {
        Ok(self.links.tell_with(op, self.noted())?)
    }

    /// Returns the part that work of a stream needs besides its fields. Whether it can fail is noted by the stream layer.
    pub(crate) fn noted<'a>(&self) -> Extra<'a> {
        Extra { is_noted: true, ..self.extra() }
    }

    /// Returns the part that every request needs besides its fields: the calling thread's current device.
    pub fn extra<'a>(&self) -> Extra<'a> {
        Extra { device: Some(thread::device()), ..Extra::default() }
    }

    /// Returns the number of devices; asks the worker only the first time.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn device_count(&self) -> HipResult<i32> {
        if let Some(count) = self.device_count.get() {
            return Ok(*count);
        }
        let count = match self.links.visible.count() {
            Some(count) => count,
            None => self.connection_of(0).device_count()?,
        };
        Ok(*self.device_count.get_or_init(|| count))
    }

    /// Returns the worker's number of a device of the program.
    #[inline]
    pub(crate) fn there(&self, device: i32) -> i32 {
        self.links.visible.there(device)
    }

    /// Returns the program's number of a device of the first worker.
    ///
    /// # Errors
    /// `hipErrorInvalidDevice`: the program does not see it.
    pub(crate) fn here(&self, device: i32) -> HipResult<i32> {
        self.links.visible.here(0, device).ok_or(HipError::INVALID_DEVICE)
    }

    /// Returns the device that suits a program best: that of the first worker that has one which the program sees, otherwise the first one.
    ///
    /// # Errors
    /// What a worker answers, or a lost connection.
    pub(crate) fn choose(&self, wanted: &op::ChooseDevice) -> HipResult<i32> {
        for link in self.links.all() {
            let chosen = link.connection.ask(wanted)?.device;
            if let Some(device) = self.links.visible.here(link.number(), chosen) {
                return Ok(device);
            }
        }
        Ok(0)
    }

    /// Checks that the program has a device; fails with `hipErrorInvalidDevice` if not.
    ///
    /// # Errors
    /// That, or what the worker answers.
    pub fn check_device(&self, device: i32) -> HipResult<()> {
        if (0..self.device_count()?).contains(&device) { Ok(()) } else { Err(HipError::INVALID_DEVICE) }
    }

    /// Returns a device's properties; asks the worker only the first time.
    ///
    /// # Errors
    /// `hipErrorInvalidDevice`, or what the worker answers.
    pub fn properties(&self, device: i32) -> HipResult<&GetDevicePropertiesReply> {
        let all = match self.properties.get() {
            Some(all) => all,
            None => {
                let count = self.device_count()?;
                self.properties.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect())
            }
        };
        let place = usize::try_from(device).ok().and_then(|device| all.get(device));
        let place = place.ok_or(HipError::INVALID_DEVICE)?;
        if let Some(known) = place.get() {
            return Ok(known);
        }
        let request = op::GetDeviceProperties { device_id: self.there(device) };
        let mut properties = self.connection_of(device).ask(&request)?;
        properties.pci_domain_id = self.pci_domain(device, properties.pci_domain_id);
        Ok(place.get_or_init(|| properties))
    }

    /// Returns an attribute of a device.
    ///
    /// # Errors
    /// `hipErrorInvalidDevice`, or what the worker answers.
    pub fn attribute(&self, device: i32, attribute: i32) -> HipResult<i32> {
        self.check_device(device)?;
        if let Some(value) = self.by_sharing(device, attribute) {
            return Ok(value);
        }
        let request = op::DeviceGetAttribute { device_id: self.there(device), attribute };
        let value = self.connection_of(device).ask(&request)?.value;
        Ok(self.as_seen(device, attribute, value))
    }

    /// Returns many attributes of a device, for at most one round trip, without those that the worker does not know.
    ///
    /// # Errors
    /// A lost connection.
    pub fn attributes(
        &self,
        device: i32,
        attributes: impl Iterator<Item = i32>,
    ) -> HipResult<HashMap<i32, i32>> {
        let device_id = self.there(device);
        let requests: Vec<_> =
            attributes.map(|attribute| op::DeviceGetAttribute { device_id, attribute }).collect();
        let answers = self.connection_of(device).ask_all(&requests, None)?;
        let known = requests.iter().zip(answers);
        let value = |request: &op::DeviceGetAttribute, value| {
            let own = self.by_sharing(device, request.attribute);
            own.unwrap_or_else(|| self.as_seen(device, request.attribute, value))
        };
        Ok(known
            .filter_map(|(request, answer)| Some((request.attribute, value(request, answer.ok()?.value))))
            .collect())
    }

    /// Returns the PCI domain of a device as the program sees it: devices of different workers may have equal addresses, which programs take
    /// for one device. The number of the worker is in bits above those that a domain has.
    fn pci_domain(&self, device: i32, domain: i32) -> i32 {
        domain | i32::try_from(self.links.visible.link(device)).unwrap_or(0) << DOMAIN_BITS
    }

    /// Returns the value of an attribute that a worker has answered as the program sees it.
    fn as_seen(&self, device: i32, attribute: i32, value: i32) -> i32 {
        if attribute == hipDeviceAttributePciDomainId { self.pci_domain(device, value) } else { value }
    }

    /// Returns an attribute that says whether program and kernels use the same host memory; `None` if it says something else.
    fn by_sharing(&self, device: i32, attribute: i32) -> Option<i32> {
        let needed = Features::PLACES.union(Features::SHARED);
        let is_shared = self.there(device) == placer::DEVICE && self.features().contains(needed);
        BY_SHARING.contains(&attribute).then_some(is_shared.into())
    }

    /// Returns a device's UUID. Emulated GPUs of two workers have equal ones, which are told apart by the number of the worker.
    ///
    /// # Errors
    /// `hipErrorInvalidDevice`, or what the worker answers.
    pub fn uuid(&self, device: i32) -> HipResult<[u8; 16]> {
        self.check_device(device)?;
        let handle = u64::try_from(self.there(device)).map_err(|_| HipError::INVALID_DEVICE)?;
        let uuid = self.connection_of(device).ask(&op::DeviceGetUuid { device: handle })?.uuid;
        Ok(visible::of_worker(self.links.visible.link(device), uuid))
    }

    /// Returns the versions of driver and runtime.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn versions(&self) -> HipResult<(i32, i32)> {
        let connection = self.connection_of(0);
        let driver = connection.ask(&op::DriverGetVersion {})?.version;
        let runtime = connection.ask(&op::RuntimeGetVersion {})?.version;
        Ok((driver, runtime))
    }

    /// Locks the table of device allocations.
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    /// Locks the table of streams.
    pub fn stream_table(&self) -> MutexGuard<'_, HashMap<Stream, StreamInfo>> {
        lock(&self.streams)
    }

    /// Locks the table of memory pools.
    pub fn pools(&self) -> MutexGuard<'_, HashMap<Ptr, PoolInfo>> {
        lock(&self.pools)
    }

    /// Notes whether a device may address the memory of another one; returns false if that is so already.
    pub(crate) fn set_peer_access(&self, device: i32, peer: i32, is_enabled: bool) -> bool {
        let mut peers = lock(&self.peers);
        if is_enabled { peers.insert((device, peer)) } else { peers.remove(&(device, peer)) }
    }

    /// Forgets whose memory a device may address.
    pub(crate) fn forget_peers(&self, device: i32) {
        lock(&self.peers).retain(|(of, _)| *of != device);
    }

    /// Locks the table of virtual memory.
    pub fn mappings(&self) -> MutexGuard<'_, Mappings> {
        lock(&self.mappings)
    }
}

/// Connects to workers, at the same time.
///
/// # Errors
/// `hipErrorNoDevice`: one of them cannot be used, and a line in the log says which and why.
fn connect_all(
    addresses: &[WorkerAddress],
    observer: Option<&Arc<dyn Observer>>,
) -> HipResult<Vec<Connection>> {
    let timeout_ms = std::env::var("HIPR_CONNECT_TIMEOUT_MS").ok();
    let timeout_ms = timeout_ms.and_then(|text| text.trim().parse().ok()).unwrap_or(CONNECT_TIMEOUT_MS);
    let timeout = Duration::from_millis(timeout_ms);
    let mut offer = offer_from_env();
    if addresses.len() > 1 {
        offer = offer.map(|features| features.without(OF_ONE_WORKER));
    }
    let several = u32::try_from(addresses.len()).ok().filter(|parts| *parts > 1);
    let connect = |number: u32, address: &WorkerAddress| {
        let (cache, compress) = (UploadCache::from_env(), CompressUse::from_env());
        let (part, observer) = (several.map(|parts| (number, parts)), observer.cloned());
        let options = ConnectOptions { offer, part, cache, compress, observer };
        Connection::connect_with(address, timeout, options)
    };
    let connections: Vec<Result<Connection, ConnectError>> = match addresses {
        [only] => vec![connect(0, only)],
        all => std::thread::scope(|scope| {
            let numbered = (0..).zip(all);
            let threads: Vec<_> =
                numbered.map(|(number, address)| scope.spawn(move || connect(number, address))).collect();
            let lost = |address: &WorkerAddress| ConnectError {
                address: address.clone(),
                reason: "the thread that connects has panicked".to_owned(),
            };
            let joined = threads.into_iter().zip(all);
            joined.map(|(thread, address)| thread.join().unwrap_or_else(|_| Err(lost(address)))).collect()
        }),
    };
    connections
        .into_iter()
        .map(|connection| match connection {
            Ok(connection) => {
                tracing::info!("connected to the worker at {}", connection.address());
                Ok(connection)
            }
            Err(error) => {
                tracing::error!("{error}");
                Err(HipError::NO_DEVICE)
            }
        })
        .collect()
}

/// Locks a mutex. One whose holder panicked is as good as any: what it guards is changed in single steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
