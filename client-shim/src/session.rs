//! One process's session with a worker: the connection, and what the shim remembers so that it need not ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hipr_proto::op::{self, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult, Op};

use crate::callbacks::Callbacks;
use crate::client::{Connection, Extra, WorkerAddress};
use crate::convert::{Event, Function, Module, Ptr, Stream};
use crate::graphs::SessionGraphs;
use crate::memory::Memory;
use crate::mirror::Mirrors;
use crate::module::{LoadedFunction, LoadedModule, Registered};
use crate::recent;
use crate::state;

/// How long a connection may take to come about; `HIPR_CONNECT_TIMEOUT_MS` says otherwise.
const CONNECT_TIMEOUT_MS: u64 = 5000;

/// What is known of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamInfo {
    /// 1 is `hipStreamNonBlocking`.
    pub flags: u32,
    /// The device it belongs to.
    pub device: i32,
}

/// What is known of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    /// `hipEvent*`.
    pub flags: u32,
    /// Where it was recorded last; None before.
    pub recorded: Option<Stream>,
}

/// The session. Locks are taken one at a time, except that `mirrors` may be held while others are taken.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    device_count: OnceLock<i32>,
    versions: OnceLock<(i32, i32)>,
    /// By device.
    properties: OnceLock<Box<[OnceLock<GetDevicePropertiesReply>]>>,
    attributes: Mutex<HashMap<(i32, i32), i32>>,
    uuids: Mutex<HashMap<i32, [u8; 16]>>,
    memory: Mutex<Memory>,
    streams: Mutex<HashMap<Stream, StreamInfo>>,
    events: Mutex<HashMap<Event, EventInfo>>,
    pools: Mutex<HashMap<Ptr, i32>>,
    modules: Mutex<HashMap<Module, Arc<LoadedModule>>>,
    functions: Mutex<HashMap<Function, Arc<LoadedFunction>>>,
    registered: Mutex<Registered>,
    mirrors: Mirrors,
    callbacks: Callbacks,
    graphs: SessionGraphs,
}

impl Session {
    /// Connects to the worker that the environment names. The one line about a failure is written here.
    ///
    /// # Errors
    /// `hipErrorNoDevice`: without a worker there is no device.
    pub(crate) fn open() -> HipResult<Self> {
        let timeout_ms = std::env::var("HIPR_CONNECT_TIMEOUT_MS").ok();
        let timeout_ms = timeout_ms.and_then(|text| text.trim().parse().ok()).unwrap_or(CONNECT_TIMEOUT_MS);
        let address = WorkerAddress::from_env();
        match Connection::connect(&address, Duration::from_millis(timeout_ms)) {
            Ok(connection) => {
                tracing::info!("connected to the worker at {address}");
                Ok(Self {
                    connection,
                    device_count: OnceLock::new(),
                    versions: OnceLock::new(),
                    properties: OnceLock::new(),
                    attributes: Mutex::default(),
                    uuids: Mutex::default(),
                    memory: Mutex::default(),
                    streams: Mutex::default(),
                    events: Mutex::default(),
                    pools: Mutex::default(),
                    modules: Mutex::default(),
                    functions: Mutex::default(),
                    registered: Mutex::default(),
                    mirrors: Mirrors::default(),
                    callbacks: Callbacks::default(),
                    graphs: SessionGraphs::default(),
                })
            }
            Err(error) => {
                tracing::error!("{error}");
                Err(HipError::NO_DEVICE)
            }
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Sends a request on behalf of the calling thread and its current device; waits if the protocol's table says so.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn call<O: Op>(&self, op: &O) -> HipResult<Option<O::Reply>> {
        Ok(self.connection.call(op, self.extra())?)
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn ask<O: Op>(&self, op: &O) -> HipResult<O::Reply> {
        Ok(self.connection.ask_with(op, self.extra())?)
    }

    /// Sends a request and waits for nothing.
    ///
    /// # Errors
    /// A lost connection.
    pub fn tell<O: Op>(&self, op: &O) -> HipResult<()> {
        Ok(self.connection.tell_with(op, self.extra())?)
    }

    /// What goes with every request: the calling thread's device.
    pub fn extra<'a>(&self) -> Extra<'a> {
        Extra { device: Some(state::device()), ..Extra::default() }
    }

    /// How many devices the worker has; asked once.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn device_count(&self) -> HipResult<i32> {
        if let Some(count) = self.device_count.get() {
            return Ok(*count);
        }
        let count = self.connection.ask(&op::GetDeviceCount {})?.count;
        Ok(*self.device_count.get_or_init(|| count))
    }

    /// Refuses a device that the worker does not have, with `hipErrorInvalidDevice`.
    ///
    /// # Errors
    /// That, or what the worker answers.
    pub fn check_device(&self, device: i32) -> HipResult<()> {
        if (0..self.device_count()?).contains(&device) { Ok(()) } else { Err(HipError::INVALID_DEVICE) }
    }

    /// What a device is; asked once per device.
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
        let properties = self.connection.ask(&op::GetDeviceProperties { device_id: device })?;
        Ok(place.get_or_init(|| properties))
    }

    /// An attribute of a device; asked once.
    ///
    /// # Errors
    /// `hipErrorInvalidDevice`, or what the worker answers.
    pub fn attribute(&self, device: i32, attribute: i32) -> HipResult<i32> {
        if let Some(known) = lock(&self.attributes).get(&(device, attribute)) {
            return Ok(*known);
        }
        self.check_device(device)?;
        let request = op::DeviceGetAttribute { device_id: device, attribute };
        let value = self.connection.ask(&request)?.value;
        lock(&self.attributes).insert((device, attribute), value);
        Ok(value)
    }

    /// Learns many attributes of a device in one round trip; those that the worker does not know stay unknown.
    ///
    /// # Errors
    /// A lost connection.
    pub fn learn_attributes(&self, device: i32, attributes: impl Iterator<Item = i32>) -> HipResult<()> {
        let known = lock(&self.attributes).keys().copied().collect::<std::collections::HashSet<_>>();
        let requests: Vec<_> = attributes
            .filter(|attribute| !known.contains(&(device, *attribute)))
            .map(|attribute| op::DeviceGetAttribute { device_id: device, attribute })
            .collect();
        let answers = self.connection.ask_all(&requests, None)?;
        let mut all = lock(&self.attributes);
        for (request, answer) in requests.iter().zip(answers) {
            if let Ok(reply) = answer {
                all.insert((device, request.attribute), reply.value);
            }
        }
        Ok(())
    }

    /// An attribute if it is known already.
    pub fn known_attribute(&self, device: i32, attribute: i32) -> Option<i32> {
        lock(&self.attributes).get(&(device, attribute)).copied()
    }

    /// The bytes that name a device; asked once.
    ///
    /// # Errors
    /// `hipErrorInvalidDevice`, or what the worker answers.
    pub fn uuid(&self, device: i32) -> HipResult<[u8; 16]> {
        if let Some(known) = lock(&self.uuids).get(&device) {
            return Ok(*known);
        }
        self.check_device(device)?;
        let handle = u64::try_from(device).map_err(|_| HipError::INVALID_DEVICE)?;
        let uuid = self.connection.ask(&op::DeviceGetUuid { device: handle })?.uuid;
        lock(&self.uuids).insert(device, uuid);
        Ok(uuid)
    }

    /// Versions of driver and runtime; asked once.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub fn versions(&self) -> HipResult<(i32, i32)> {
        if let Some(versions) = self.versions.get() {
            return Ok(*versions);
        }
        let driver = self.connection.ask(&op::DriverGetVersion {})?.version;
        let runtime = self.connection.ask(&op::RuntimeGetVersion {})?.version;
        Ok(*self.versions.get_or_init(|| (driver, runtime)))
    }

    /// The allocations.
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    /// The streams.
    pub fn streams(&self) -> MutexGuard<'_, HashMap<Stream, StreamInfo>> {
        lock(&self.streams)
    }

    /// The events.
    pub fn events(&self) -> MutexGuard<'_, HashMap<Event, EventInfo>> {
        lock(&self.events)
    }

    /// Memory pools, and the device of each.
    pub fn pools(&self) -> MutexGuard<'_, HashMap<Ptr, i32>> {
        lock(&self.pools)
    }

    /// The modules that the program loaded.
    pub fn modules(&self) -> MutexGuard<'_, HashMap<Module, Arc<LoadedModule>>> {
        lock(&self.modules)
    }

    /// The functions of those modules, and others that have handles.
    pub fn functions(&self) -> MutexGuard<'_, HashMap<Function, Arc<LoadedFunction>>> {
        lock(&self.functions)
    }

    /// What the compiler registered, as far as it is loaded.
    pub(crate) fn registered(&self) -> MutexGuard<'_, Registered> {
        lock(&self.registered)
    }

    /// Host memory that kernels can reach.
    pub(crate) fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    /// The program's functions that wait for streams.
    pub(crate) fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// Graphs and captures.
    pub(crate) fn graphs(&self) -> &SessionGraphs {
        &self.graphs
    }

    /// [`stream`](Self::stream), to be waited for: host functions on it have returned, and what is behind them is there.
    ///
    /// # Errors
    /// As [`stream`](Self::stream), and what such work failed with.
    pub(crate) fn idle_stream(&self, stream: Stream) -> HipResult<u64> {
        let stream = self.stream(stream)?;
        self.callbacks.gate(self, stream)?;
        Ok(stream)
    }

    /// The stream that `stream` means to the calling thread, as the wire has it.
    ///
    /// # Errors
    /// `hipErrorContextIsDestroyed` for what is no stream, as HIP has it.
    pub fn stream(&self, stream: Stream) -> HipResult<u64> {
        match stream.0 {
            0 if state::is_stream_per_thread() => Ok(STREAM_PER_THREAD),
            0 | 1 => Ok(0),
            2 => Ok(STREAM_PER_THREAD),
            _ if recent::stream(stream.0, || self.streams().contains_key(&stream)) => Ok(stream.wire()),
            _ => Err(HipError::CONTEXT_IS_DESTROYED),
        }
    }
}

/// `hipStreamPerThread`.
pub const STREAM_PER_THREAD: u64 = 2;

/// A lock whose holder panicked is as good as any: what it guards is changed in single steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
