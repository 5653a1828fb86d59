//! A model of a correct worker with the scripted device: a fold over a client's calls, without bytes on the wire, pieces
//! and time.

use std::collections::BTreeMap;
use std::fmt;

use hipr_proto::op::{ClientName, Handle};
use hipr_proto::{Class, Features, HipError, Opcode, Wire, op};
use hipr_worker::device::script::{Fault, Script, TOTAL_BYTES};

use super::places::Places;
use super::request::{Call, KERNARG_BYTES, KERNEL, KERNEL_PARAMS, Request, VARIABLES};

/// Allocations that each `MEM_LEASE` adds, of a session that may have many.
const LEASE_ALLOCATIONS: u64 = 4096;

/// The result of a call that is answered.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// The call was answered.
    Reply {
        /// The error code.
        error: Option<HipError>,
        /// The fixed part.
        fixed: Vec<u8>,
        /// The bytes after the fixed part.
        data: Vec<u8>,
    },
    /// The worker told something: a notification of this operation, its fixed part and its tail.
    Told(Opcode, Vec<u8>, Vec<u8>),
    /// The connection ended before the reply.
    Closed,
}

/// Returns what was learned, without what was told behind the last reply: whether that arrives depends on when the connection ends.
pub fn settled(learned: &[Learned]) -> Vec<Learned> {
    let is_reply = |learned: &Learned| matches!(learned, Learned::Reply { .. });
    let end = learned.iter().rposition(is_reply).map_or(0, |last| last + 1);
    let is_kept = |(place, learned): &(usize, &Learned)| *place < end || **learned == Learned::Closed;
    learned.iter().enumerate().filter(is_kept).map(|(_, learned)| learned.clone()).collect()
}

impl fmt::Debug for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, fixed, data) = match self {
            Self::Reply { error, fixed, data } => (error, fixed, data),
            Self::Told(op, fixed, tail) => return write!(f, "{op} {fixed:02x?} {tail:02x?}"),
            Self::Closed => return f.write_str("closed"),
        };
        match error {
            Some(error) => write!(f, "error {}", error.0)?,
            None => write!(f, "ok")?,
        }
        let sum = data.iter().fold(0u32, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte));
        let shown = fixed.get(..fixed.len().min(16)).unwrap_or_default();
        write!(f, " {shown:02x?} of {} and {} bytes ({sum:08x})", fixed.len(), data.len())
    }
}

/// A client's session after the calls so far, and the expected results.
#[derive(Debug)]
pub struct Model {
    /// The results of the calls that are answered, and what is told, in order.
    pub learned: Vec<Learned>,
    /// The calls of the device, in order; see [`Script::journal`].
    pub journal: Vec<&'static str>,
    /// The arguments of the executed launches, in order.
    pub launches: Vec<u64>,
    /// The faults to set on the device beforehand: method, number of its call, and fault.
    pub plans: Vec<(&'static str, u64, Fault)>,
    /// Allocations: address and size in bytes.
    pub live: BTreeMap<u64, u64>,
    /// What the client may place.
    pub places_left: Places,
    /// Whether the session has ended, so that nothing is executed or answered.
    pub over: bool,
    /// Address from which on every access fails.
    spoiled_from: u64,
    spoiled_error: HipError,
    small_tail_max: u64,
    kept: Option<HipError>,
    /// Errors of accepted work that have not appeared yet.
    surfacing: Vec<HipError>,
    dead: Option<HipError>,
    counts: BTreeMap<&'static str, u64>,
    next: u64,
    /// What was made and is there, in order.
    objects: Vec<Object>,
    /// Modules' variables by address: the module's number, and the bytes.
    variables: BTreeMap<u64, (u64, Vec<u8>)>,
    /// The variables of modules that the client knows by number: their addresses, or why they were not found.
    numbered: BTreeMap<u64, Vec<Result<u64, HipError>>>,
    /// The number of the times that are told with the next reply, and how many they are.
    asked_times: Option<(u64, u32)>,
    /// The number of graphs: a session gives them handles from 1 on, which streams have as well.
    graphs: u64,
    features: Features,
    next_name: NextName,
    /// The last name of each place.
    places: Vec<u64>,
    base: u64,
    memory: Vec<u8>,
}

/// A stream, module, function or graph.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Object {
    kind: Handle,
    /// The number by which the client knows it: its name, or the device's handle.
    number: u64,
    /// The flags of a stream, the module of a function.
    of: u64,
}

/// What is known of the next request's name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NextName {
    /// It has none.
    Nothing,
    /// It has this one.
    Is(u64),
    /// It has none because that was refused, and may not make anything.
    Refused(HipError),
}

/// A reply's fixed part and the bytes after it.
type Reply = (Vec<u8>, Vec<u8>);

impl Model {
    /// Creates the model of the session with context number `context`. Its first allocation is its buffer, of which
    /// accesses from `half_bytes` on fail with `spoiled_error`.
    pub fn new(context: usize, half_bytes: u64, spoiled_error: HipError, small_tail_max: u64) -> Self {
        let base = Script::first_address(context);
        let (learned, journal, launches, plans, live) = Default::default();
        let (surfacing, counts, objects, places) = Default::default();
        Self {
            learned,
            journal,
            launches,
            plans,
            live,
            places_left: Places::new(context),
            over: false,
            spoiled_from: base + half_bytes,
            spoiled_error,
            small_tail_max,
            kept: None,
            surfacing,
            dead: None,
            counts,
            next: base,
            objects,
            variables: BTreeMap::new(),
            numbered: BTreeMap::new(),
            asked_times: None,
            graphs: 0,
            features: Features::NONE,
            next_name: NextName::Nothing,
            places,
            base,
            memory: vec![0; half_bytes as usize],
        }
    }

    /// Returns whether the session is told something.
    pub fn is_told(&self) -> bool {
        self.features.contains(Features::NOTIFICATIONS)
    }

    /// Returns the buffer's address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns the maximum length of a small tail.
    pub fn small_tail_max(&self) -> u64 {
        self.small_tail_max
    }

    /// Returns the number of the last loaded module, or an invalid one.
    pub fn module(&self) -> u64 {
        self.objects(Handle::Module).last().unwrap_or(0xbad)
    }

    /// Returns the number of the last function, or an invalid one.
    pub fn function(&self) -> u64 {
        self.objects(Handle::Function).last().unwrap_or(0xbad)
    }

    /// Returns the numbers by which the client knows its objects of a kind, in the order in which they were made.
    pub fn objects(&self, kind: Handle) -> impl Iterator<Item = u64> {
        self.objects.iter().filter(move |object| object.kind == kind).map(|object| object.number)
    }

    /// Returns the last name of each place, whatever became of it.
    pub fn places(&self) -> &[u64] {
        &self.places
    }

    /// Applies the next call.
    pub fn call(&mut self, call: &Call) {
        let op = call.request.op();
        let class = op.info().map_or(Class::Plain, |info| info.class);
        let reports = call.loud && class != Class::Exempt;
        let was_over = self.over;
        let next = std::mem::replace(&mut self.next_name, NextName::Nothing);
        let (mut name, mut unfit) = (None, None);
        match (next, op.makes()) {
            (NextName::Is(next), Some(_)) => name = Some(next),
            (NextName::Is(_), None) if !was_over => self.kept = self.kept.or(Some(HipError::INVALID_VALUE)),
            (NextName::Refused(error), Some(_)) => unfit = Some(error),
            _ => {}
        }
        let kept = self.kept;
        let own = match self.refusal(&call.request).or(unfit) {
            Some(error) => Err(error),
            None if was_over || (reports && class == Class::Creates && kept.is_some()) => {
                Ok(Reply::default())
            }
            None => self.carry_out(call, name),
        };
        if was_over || (self.over && call.request != Request::Shutdown) {
            self.learned.extend(call.loud.then_some(Learned::Closed));
            return;
        }
        if !call.loud {
            self.kept = self.kept.or(own.err());
            return;
        }
        let error = if reports {
            self.kept.take().or(own.as_ref().err().copied())
        } else {
            own.as_ref().err().copied()
        };
        let (fixed, data) = match (error, own) {
            (None, Ok(reply)) => reply,
            _ => (vec![0; op.info().map_or(0, |info| info.reply.size)], Vec::new()),
        };
        if let Request::Down(src, 1..) = call.request
            && error.is_none()
            && (self.spoiled_from..2 * self.spoiled_from - self.base).contains(&src)
        {
            // Found out when the answer was under way.
            self.kept = Some(self.dead.unwrap_or(self.spoiled_error));
        }
        if let Some((number, count)) = self.asked_times.take() {
            let (mut told, mut list) = (Vec::new(), Vec::new());
            op::TimesTold { number, count, reserved: 0 }.put(&mut told);
            let time = op::EventTime { milliseconds: 0.0, error_code: HipError::INVALID_HANDLE.0 };
            (0..count).for_each(|_| time.put(&mut list));
            self.learned.push(Learned::Told(Opcode::TIMES_TOLD, told, list));
        }
        self.learned.push(Learned::Reply { error, fixed, data });
    }

    fn refusal(&self, request: &Request) -> Option<HipError> {
        match request {
            Request::Unknown(_) => Some(HipError::NOT_SUPPORTED),
            Request::Short => Some(HipError::INVALID_VALUE),
            Request::LongName(len) if *len as u64 > self.small_tail_max => Some(HipError::INVALID_VALUE),
            _ => None,
        }
    }

    fn carry_out(&mut self, call: &Call, name: Option<u64>) -> Result<Reply, HipError> {
        let fault = call.fault;
        match &call.request {
            Request::Offer(_) if self.features != Features::NONE => return Err(HipError::INVALID_VALUE),
            Request::Offer(features) => {
                self.features = *features;
                return Ok(reply(features.bits()));
            }
            Request::Name(name) => {
                let checked = self.check_name(*name);
                self.next_name = checked.map_or_else(NextName::Refused, |()| NextName::Is(*name));
                checked?;
            }
            Request::Init | Request::Ping | Request::Free(0) | Request::Malloc(0) => {}
            Request::Shutdown => {
                self.over = true;
                self.asked_times = None;
            }
            Request::Synchronize => self.wait(fault)?,
            Request::ForeignStream | Request::LongName(_) => return Err(HipError::INVALID_HANDLE),
            Request::StreamCreate(flags) => {
                let handle = self.create("stream_create", 0, fault)?;
                return Ok(reply(self.made(Handle::Stream, handle, name, (*flags).into())));
            }
            Request::GraphCreate => {
                self.graphs += 1;
                return Ok(reply(self.made(Handle::Graph, self.graphs, name, 0)));
            }
            Request::StreamFlags(stream) => {
                let flags = self.object(Handle::Stream, *stream)?.of as u32;
                self.device("stream_flags", fault)?;
                return Ok((flags.to_le_bytes().to_vec(), Vec::new()));
            }
            Request::StreamDestroy(stream) => {
                self.object(Handle::Stream, *stream)?;
                self.remove(|object| object.kind == Handle::Stream && object.number == *stream);
                self.device("stream_destroy", fault)?;
            }
            Request::Malloc(size) => {
                let ptr = self.create("malloc", *size, fault)?;
                self.live.insert(ptr, *size);
                return Ok(reply(ptr));
            }
            Request::Free(ptr) => {
                self.live.get(ptr).ok_or(HipError::INVALID_VALUE)?;
                let is_placed = self.places_left.has(*ptr);
                self.device(if is_placed { "poll_free_reserved" } else { "poll_free" }, fault)?;
                let size = self.live.remove(ptr).unwrap_or(0);
                self.places_left.free(*ptr, size, true);
            }
            Request::FreeAsync(0) => {}
            Request::FreeAsync(ptr) => {
                self.live.get(ptr).ok_or(HipError::INVALID_VALUE)?;
                self.device("free_async", fault)?;
                let size = self.live.remove(ptr).unwrap_or(0);
                self.places_left.free(*ptr, size, false);
            }
            Request::Lease(want) => return self.lease(*want, fault),
            Request::MallocAt(ptr, size) => {
                self.check_feature(Features::PLACES)?;
                self.places_left.check(*ptr, *size)?;
                self.device("malloc_at", fault)?;
                self.places_left.place(*ptr, *size);
                self.live.insert(*ptr, *size);
            }
            Request::Return(bytes, allocations) => {
                self.check_feature(Features::PLACES)?;
                self.places_left.check_return(*bytes, *allocations)?;
                if *bytes > 0 {
                    self.device("unreserve", fault)?;
                }
                self.places_left.give_back(*bytes, *allocations);
            }
            Request::Fill(dst, len, value) => {
                self.check(*dst, *len)?;
                if *len > 0 {
                    self.device("fill", fault)?;
                    match self.bytes(*dst, *len) {
                        Some(bytes) => bytes.fill(*value),
                        None => self.surfacing.push(self.spoiled_error),
                    }
                }
            }
            Request::Up(dst, len) => {
                self.check(*dst, *len as u64)?;
                if *len > 0 {
                    self.dead.map_or(Ok(()), Err)?;
                    let spoiled = self.spoiled_error;
                    let bytes = self.bytes(*dst, *len as u64).ok_or(spoiled)?;
                    bytes.copy_from_slice(&Request::up_bytes(*dst, *len));
                }
            }
            Request::Down(src, len) => {
                self.check(*src, *len)?;
                self.wait(fault)?;
                let bytes = self.bytes(*src, *len).map(|bytes| bytes.to_vec());
                return Ok((Vec::new(), bytes.unwrap_or_else(|| vec![0; *len as usize])));
            }
            Request::UpPacked(dst, len, is_damaged) => {
                self.check_feature(Features::PACKED)?;
                self.check(*dst, *len as u64)?;
                let (sent, frame) = Request::packed_bytes(*dst, *len);
                if sent.is_empty() || *is_damaged && frame.is_some() {
                    return Err(HipError::INVALID_VALUE);
                }
                self.dead.map_or(Ok(()), Err)?;
                let spoiled = self.spoiled_error;
                self.bytes(*dst, *len as u64).ok_or(spoiled)?.copy_from_slice(&sent);
            }
            Request::DownPacked(src, len) => {
                self.check_feature(Features::PACKED)?;
                self.check(*src, *len)?;
                if *len == 0 {
                    return Err(HipError::INVALID_VALUE);
                }
                self.wait(fault)?;
                let spoiled = self.spoiled_error;
                let is_read = call.loud && self.kept.is_none();
                let bytes = self.bytes(*src, *len).map(|bytes| bytes.to_vec());
                let bytes = if is_read { bytes.ok_or(spoiled)? } else { bytes.unwrap_or_default() };
                return Ok((vec![0; op::GetPackedReply::SIZE], bytes));
            }
            Request::Load(0) => {
                self.create("module_load", 0, fault)?;
                return Err(HipError::INVALID_IMAGE);
            }
            Request::Load(_) => {
                let module = self.create("module_load", 0, fault)?;
                return Ok(reply(self.made(Handle::Module, module, name, 0)));
            }
            Request::Unload(module) => {
                self.object(Handle::Module, *module)?;
                self.remove(|object| match object.kind {
                    Handle::Function => object.of == *module,
                    kind => kind == Handle::Module && object.number == *module,
                });
                self.variables.retain(|_, (of, _)| of != module);
                self.numbered.remove(module);
                self.device("module_unload", fault)?;
            }
            Request::Variables(module, number, which) => {
                self.check_feature(Features::VARIABLES)?;
                self.object(Handle::Module, *module)?;
                self.find_variables(*module, *number, which, fault);
            }
            Request::Put(module, variable, offset, len) => {
                self.check_feature(Features::VARIABLES)?;
                self.object(Handle::Module, *module)?;
                let known = self.numbered.get(module).and_then(|known| known.get(*variable as usize));
                let address = known.copied().ok_or(HipError::INVALID_VALUE)??;
                let size = self.variables.get(&address).map_or(0, |(_, bytes)| bytes.len() as u64);
                if offset + *len as u64 > size {
                    return Err(HipError::INVALID_VALUE);
                }
                if *len > 0 {
                    self.dead.map_or(Ok(()), Err)?;
                    let bytes = self.bytes(address + offset, *len as u64).ok_or(HipError::INVALID_VALUE)?;
                    bytes.copy_from_slice(&Request::up_bytes(*offset, *len));
                }
            }
            Request::Times(number, count) => {
                self.check_feature(Features::TIMES)?;
                self.asked_times = Some((*number, *count));
            }
            Request::Function(module, kernel) => {
                self.object(Handle::Module, *module)?;
                let function = self.create("function", 0, fault)?;
                if kernel != KERNEL {
                    return Err(HipError::NOT_FOUND);
                }
                let function = self.made(Handle::Function, function, name, *module);
                return Ok((function_reply(function), Vec::new()));
            }
            Request::Launch(function, argument) => {
                self.object(Handle::Function, *function)?;
                self.device("launch", fault)?;
                self.device("launch_work", None)?;
                self.launches.push(*argument);
            }
            Request::Unknown(_) | Request::Short => {}
        }
        let size = if matches!(call.request, Request::Malloc(_)) { u64::SIZE } else { 0 };
        Ok((vec![0; size], Vec::new()))
    }

    /// Applies `MODULE_VARIABLES`: each name is looked for, and what is found is told at once.
    fn find_variables(&mut self, module: u64, number: u64, which: &[usize], fault: Option<Fault>) {
        let (mut found, mut list) = (Vec::new(), Vec::new());
        for (place, variable) in which.iter().enumerate() {
            let (_, size) = VARIABLES[*variable];
            let made = self.create("global", size, fault.filter(|_| place == 0));
            let address =
                made.and_then(|address| if size > 0 { Ok(address) } else { Err(HipError::NOT_FOUND) });
            if let Ok(address) = address {
                self.variables.insert(address, (module, vec![0; size as usize]));
            }
            address.map_or(op::Variable::ZERO, |address| op::Variable { address, size }).put(&mut list);
            found.push(address);
        }
        self.numbered.insert(module, found);
        let mut told = Vec::new();
        op::VariablesTold { number, count: which.len() as u32, reserved: 0 }.put(&mut told);
        self.learned.push(Learned::Told(Opcode::VARIABLES_TOLD, told, list));
    }

    /// Returns the addresses and sizes of the variables that there are.
    pub fn variables(&self) -> impl Iterator<Item = (u64, u64)> {
        self.variables.iter().map(|(address, (_, bytes))| (*address, bytes.len() as u64))
    }

    fn check_feature(&self, feature: Features) -> Result<(), HipError> {
        if self.features.contains(feature) { Ok(()) } else { Err(HipError::NOT_SUPPORTED) }
    }

    /// Applies `MEM_LEASE`.
    fn lease(&mut self, want: u64, fault: Option<Fault>) -> Result<Reply, HipError> {
        self.check_feature(Features::PLACES)?;
        self.device("address_window", fault)?;
        self.device("reservable", None)?;
        let used = self.live.values().sum::<u64>() + self.variables().map(|(_, size)| size).sum::<u64>();
        let available = TOTAL_BYTES - used - self.places_left.bytes;
        let added_bytes = want.max(available / 2);
        if added_bytes > 0 {
            self.device("reserve", None)?;
        }
        if added_bytes > available {
            return Err(HipError::OUT_OF_MEMORY);
        }
        self.places_left.grant(added_bytes, LEASE_ALLOCATIONS);
        let (window_start, window_bytes) = (self.places_left.address(0), Script::WINDOW_BYTES);
        let added_allocations = LEASE_ALLOCATIONS;
        let mut fixed = Vec::new();
        op::MemLeaseReply { window_start, window_bytes, added_bytes, added_allocations }.put(&mut fixed);
        Ok((fixed, Vec::new()))
    }

    /// Applies `NAME`.
    fn check_name(&mut self, name: u64) -> Result<(), HipError> {
        self.check_feature(Features::NAMES)?;
        let place = ClientName::of(name).ok_or(HipError::INVALID_VALUE)?.place();
        let is_used =
            |object: &Object| ClientName::of(object.number).is_some_and(|other| other.place() == place);
        if self.objects.iter().any(is_used) || place > self.places.len() {
            return Err(HipError::INVALID_VALUE);
        }
        match self.places.get_mut(place) {
            Some(last) if *last >= name => return Err(HipError::INVALID_VALUE),
            Some(last) => *last = name,
            None => self.places.push(name),
        }
        Ok(())
    }

    /// Adds what was made; returns the number by which the client knows it.
    fn made(&mut self, kind: Handle, handle: u64, name: Option<u64>, of: u64) -> u64 {
        let number = name.unwrap_or(handle);
        self.objects.push(Object { kind, number, of });
        number
    }

    fn object(&self, kind: Handle, number: u64) -> Result<Object, HipError> {
        let found = self.objects.iter().find(|object| object.kind == kind && object.number == number);
        found.copied().ok_or(HipError::INVALID_HANDLE)
    }

    fn remove(&mut self, is_gone: impl Fn(&Object) -> bool) {
        self.objects.retain(|object| !is_gone(object));
    }

    /// Checks that the client may use a range: it lies in its buffer, possibly in the failing half.
    fn check(&self, ptr: u64, len: u64) -> Result<(), HipError> {
        let inside = |(base, size): (u64, u64)| ptr - base + len <= size;
        let found = self.live.range(..=ptr).next_back().map(|(base, size)| (*base, *size));
        let variable = self.variables.range(..=ptr).next_back();
        let variable = variable.map(|(base, (_, bytes))| (*base, bytes.len() as u64));
        if len == 0 || found.is_some_and(inside) || variable.is_some_and(inside) {
            Ok(())
        } else {
            Err(HipError::INVALID_VALUE)
        }
    }

    /// Returns bytes of the buffer's good half, or of a variable; `None` if the range fails.
    fn bytes(&mut self, ptr: u64, len: u64) -> Option<&mut [u8]> {
        let variable = self.variables.range_mut(..=ptr).next_back();
        if let Some((base, (_, bytes))) =
            variable.filter(|(base, (_, bytes))| ptr - **base < bytes.len() as u64)
        {
            let start = usize::try_from(ptr - base).ok()?;
            return bytes.get_mut(start..start.checked_add(usize::try_from(len).ok()?)?);
        }
        let start = usize::try_from(ptr.checked_sub(self.base)?).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        if len == 0 { Some(&mut []) } else { self.memory.get_mut(start..end) }
    }

    /// Applies a wait for the device, in which errors of accepted work appear.
    fn wait(&mut self, fault: Option<Fault>) -> Result<(), HipError> {
        self.device("poll_sync", fault)?;
        if self.surfacing.is_empty() { Ok(()) } else { Err(self.surfacing.remove(0)) }
    }

    /// Applies a call that creates something.
    fn create(&mut self, method: &'static str, room: u64, fault: Option<Fault>) -> Result<u64, HipError> {
        self.device(method, fault)?;
        let handle = self.next;
        self.next += room.next_multiple_of(Script::ALIGN) + Script::ALIGN;
        Ok(handle)
    }

    /// Applies a call of the device. Its error is ignored once the session has ended.
    fn device(&mut self, method: &'static str, fault: Option<Fault>) -> Result<(), HipError> {
        const OVER: HipError = HipError::UNKNOWN;
        let count = self.counts.entry(method).or_default();
        let fault = fault.filter(|_| self.dead.is_none());
        self.plans.extend(fault.map(|fault| (method, *count, fault)));
        self.over |= fault == Some(Fault::Hang);
        if self.over {
            return Err(OVER);
        }
        *count += 1;
        self.journal.push(method);
        match fault {
            Some(Fault::Fail(error)) => return Err(error),
            Some(Fault::Die(error)) => self.dead = Some(error),
            Some(Fault::Panic) => {
                self.over = true;
                return Err(OVER);
            }
            None | Some(Fault::Slow(_) | Fault::Hang) => {}
        }
        self.dead.map_or(Ok(()), Err)
    }
}

fn reply(handle: u64) -> Reply {
    (handle.to_le_bytes().to_vec(), Vec::new())
}

fn function_reply(function: u64) -> Vec<u8> {
    let mut params = [op::Param { offset: 0, size: 0 }; 64];
    params
        .iter_mut()
        .zip(KERNEL_PARAMS)
        .for_each(|(place, (offset, size))| *place = op::Param { offset, size });
    let num_params = KERNEL_PARAMS.len() as u32;
    let mut fixed = Vec::new();
    op::ModuleGetFunctionReply { function, num_args: KERNARG_BYTES, num_params, params }.put(&mut fixed);
    fixed
}
