//! Executables: code objects that are loaded together, and the variables that the program defines for them.
//!
//! What a code object does not define may be defined by the program, or by another code object of the executable, until it is frozen; then
//! addresses are written into the code objects and told to the program, and its kernels can be dispatched. Handles are numbers that are
//! never used again, so that one whose executable was destroyed is an error in any thread.
//!
//! No lock is held while a function of the program runs: it may call everything.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::facts::AgentIndex;
use crate::loaded::Loaded;
pub(crate) use crate::loaded::LoadedKernel;
use crate::pointer::{In, Out, Ptr, Str};
use crate::reader::Readers;
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::symbol::{Kind, Segment, Symbol};
use crate::types::{
    Agent, CodeObjectReader, EachAgentSymbol, EachSymbol, Executable, ExecutableSymbol, LoadedCodeObject,
};

/// Handles of what an executable has: its own number above these bits, the place in its list below, counted from 1.
const INDEX_BITS: u32 = 32;
/// Most executables that a process can make.
const EXECUTABLES_MAX: u64 = u32::MAX as u64;

/// What an executable can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Code objects can be loaded, and variables defined.
    Open,
    /// Addresses are known, and kernels can be dispatched.
    Frozen,
    /// Nothing: it was destroyed while a function had it.
    Destroyed,
}

/// An executable.
#[derive(Debug)]
pub(crate) struct State {
    id: u64,
    profile: u32,
    rounding: u32,
    contents: RwLock<Contents>,
}

#[derive(Debug)]
struct Contents {
    phase: Phase,
    loaded: Vec<Loaded>,
    /// In the order of definition; those of a code object in the order of its file.
    symbols: Vec<Symbol>,
    /// Places in the list, by agent and name.
    by_name: HashMap<Option<AgentIndex>, HashMap<Arc<str>, usize>>,
}

impl State {
    /// Returns the handle.
    pub(crate) fn handle(&self) -> Executable {
        Executable(self.id)
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.contents.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle of what is at this place of a list.
    fn handle_at(&self, index: usize) -> u64 {
        self.id << INDEX_BITS | (index as u64 + 1)
    }

    /// Calls `look` with each code object and its handle.
    pub(crate) fn each_loaded(&self, mut look: impl FnMut(LoadedCodeObject, &Loaded)) {
        for (index, loaded) in self.read().loaded.iter().enumerate() {
            look(LoadedCodeObject(self.handle_at(index)), loaded);
        }
    }

    /// Returns the handles of the symbols that are wanted.
    fn symbols(&self, is_wanted: impl Fn(&Symbol) -> bool) -> Vec<ExecutableSymbol> {
        let contents = self.read();
        let wanted = contents.symbols.iter().enumerate().filter(|(_, symbol)| is_wanted(symbol));
        wanted.map(|(index, _)| ExecutableSymbol(self.handle_at(index))).collect()
    }
}

impl Contents {
    /// Returns the place of a symbol in the list.
    fn find(&self, agent: Option<AgentIndex>, name: &str) -> Option<usize> {
        self.by_name.get(&agent)?.get(name).copied()
    }

    /// Returns the address of what code of an agent means by this name.
    fn address(&self, agent: AgentIndex, name: &str) -> Option<u64> {
        let index = self.find(Some(agent), name).or_else(|| self.find(None, name))?;
        self.symbols.get(index).map(|symbol| symbol.addr)
    }

    /// Returns a symbol that code of an agent needs and nobody has defined.
    fn undefined(&self) -> Option<&str> {
        self.loaded.iter().find_map(|loaded| loaded.undefined(|name: &str| self.address(loaded.agent, name)))
    }

    /// Fails unless something can be added.
    fn check_open(&self) -> HsaResult {
        match self.phase {
            Phase::Open => Ok(()),
            Phase::Frozen => Err(Status::ERROR_FROZEN_EXECUTABLE),
            Phase::Destroyed => Err(Status::ERROR_INVALID_EXECUTABLE),
        }
    }

    /// Adds symbols, all or none.
    fn define(&mut self, symbols: Vec<Symbol>) -> HsaResult {
        self.check_open()?;
        if let Some(twice) = symbols.iter().find(|symbol| self.find(symbol.agent, &symbol.name).is_some()) {
            tracing::warn!(name = &*twice.name, "a symbol is defined a second time");
            return Err(Status::ERROR_VARIABLE_ALREADY_DEFINED);
        }
        for symbol in symbols {
            let names = self.by_name.entry(symbol.agent).or_default();
            names.insert(Arc::clone(&symbol.name), self.symbols.len());
            self.symbols.push(symbol);
        }
        Ok(())
    }

    /// Writes addresses into the code objects.
    fn freeze(&mut self) -> HsaResult {
        self.check_open()?;
        if let Some(name) = self.undefined() {
            tracing::warn!(name, "an executable needs a symbol that nobody has defined");
            return Err(Status::ERROR_VARIABLE_UNDEFINED);
        }
        let mut all = std::mem::take(&mut self.loaded);
        let relocated = all.iter_mut().try_for_each(|loaded| {
            let agent = loaded.agent;
            loaded.relocate(|name: &str| self.address(agent, name))
        });
        self.loaded = all;
        relocated.map_err(|why| {
            tracing::error!(%why, "a code object cannot be relocated");
            Status::ERROR
        })?;
        self.phase = Phase::Frozen;
        Ok(())
    }
}

/// All executables.
#[derive(Debug, Default)]
pub(crate) struct Executables {
    last: AtomicU64,
    by_handle: RwLock<BTreeMap<u64, Arc<State>>>,
    /// The kernels that can be dispatched, by address of their descriptor.
    kernels: RwLock<HashMap<u64, Arc<LoadedKernel>>>,
}

impl Executables {
    fn add(&self, profile: u32, rounding: u32, phase: Phase) -> HsaResult<Executable> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        if id > EXECUTABLES_MAX {
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        let contents = Contents { phase, loaded: Vec::new(), symbols: Vec::new(), by_name: HashMap::new() };
        let state = State { id, profile, rounding, contents: RwLock::new(contents) };
        let mut executables = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        executables.insert(id, Arc::new(state));
        Ok(Executable(id))
    }

    /// Returns the executable with this handle.
    ///
    /// # Errors
    /// `INVALID_EXECUTABLE` if there is none.
    pub(crate) fn get(&self, executable: Executable) -> HsaResult<Arc<State>> {
        let executables = self.by_handle.read().unwrap_or_else(PoisonError::into_inner);
        executables.get(&executable.0).map(Arc::clone).ok_or(Status::ERROR_INVALID_EXECUTABLE)
    }

    /// Returns all executables, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<State>> {
        let executables = self.by_handle.read().unwrap_or_else(PoisonError::into_inner);
        executables.values().map(Arc::clone).collect()
    }

    /// Returns the executable of a handle that [`State::handle_at`] made, and the place in the list.
    fn of_part(&self, handle: u64) -> Option<(Arc<State>, usize)> {
        let place = (handle & ((1 << INDEX_BITS) - 1)).checked_sub(1)?;
        Some((self.get(Executable(handle >> INDEX_BITS)).ok()?, place as usize))
    }

    /// Calls `look` with a loaded code object and its executable.
    ///
    /// # Errors
    /// `INVALID_CODE_OBJECT` if there is none with this handle.
    pub(crate) fn with_loaded<R>(
        &self,
        loaded: LoadedCodeObject,
        look: impl FnOnce(&State, &Loaded) -> R,
    ) -> HsaResult<R> {
        let (state, index) = self.of_part(loaded.0).ok_or(Status::ERROR_INVALID_CODE_OBJECT)?;
        let contents = state.read();
        let loaded = contents.loaded.get(index).ok_or(Status::ERROR_INVALID_CODE_OBJECT)?;
        Ok(look(&state, loaded))
    }
}

/// Returns the kernel whose descriptor is at this address, for a dispatch on an agent; `None` if no executable that is frozen has one there
/// for it. Any number may be asked for. A descriptor that the program itself has written somewhere is not found: only what was loaded is
/// executed, and as the file has it.
pub(crate) fn kernel_at(
    runtime: &Runtime,
    agent: AgentIndex,
    descriptor_addr: u64,
) -> Option<Arc<LoadedKernel>> {
    let kernels = runtime.part::<Executables>().kernels.read().unwrap_or_else(PoisonError::into_inner);
    kernels.get(&descriptor_addr).filter(|kernel| kernel.agent == agent).map(Arc::clone)
}

/// `hsa_executable_create_alt`. AMD's runtime takes the default rounding mode too, and its HIP runtime gives it.
pub(crate) fn create_alt(
    profile: u32,
    rounding: u32,
    _options: Str,
    executable: Out<Executable>,
) -> HsaResult {
    make(profile, rounding, Phase::Open, executable)
}

/// `hsa_executable_create`.
pub(crate) fn create(profile: u32, state: u32, _options: Str, executable: Out<Executable>) -> HsaResult {
    let phase = match state {
        0 => Phase::Open,
        1 => Phase::Frozen,
        _ => return runtime().and(Err(Status::ERROR_INVALID_ARGUMENT)),
    };
    make(profile, 0, phase, executable)
}

fn make(profile: u32, rounding: u32, phase: Phase, executable: Out<Executable>) -> HsaResult {
    let runtime = runtime()?;
    if profile > 1 || rounding > 2 || executable.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    executable.put(runtime.part::<Executables>().add(profile, rounding, phase)?)
}

/// `hsa_executable_destroy`. Kernels that run keep their code, but not its memory.
pub(crate) fn destroy(executable: Executable) -> HsaResult {
    let runtime = runtime()?;
    let all = &runtime.part::<Executables>();
    let removed = all.by_handle.write().unwrap_or_else(PoisonError::into_inner).remove(&executable.0);
    let state = removed.ok_or(Status::ERROR_INVALID_EXECUTABLE)?;
    let mut contents = state.write();
    contents.phase = Phase::Destroyed;
    let loaded = std::mem::take(&mut contents.loaded);
    drop(contents);
    let mut kernels = all.kernels.write().unwrap_or_else(PoisonError::into_inner);
    for kernel in loaded.iter().flat_map(Loaded::kernels) {
        kernels.remove(&kernel.descriptor_addr);
    }
    drop(kernels);
    loaded.into_iter().for_each(|loaded| loaded.release(&runtime));
    Ok(())
}

/// `hsa_executable_freeze`.
pub(crate) fn freeze(executable: Executable, _options: Str) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    let mut contents = state.write();
    contents.freeze()?;
    // Before it can be destroyed: nothing of it stays in the table.
    let mut kernels = runtime.part::<Executables>().kernels.write().unwrap_or_else(PoisonError::into_inner);
    let ready = contents.loaded.iter().flat_map(Loaded::kernels);
    kernels.extend(ready.map(|kernel| (kernel.descriptor_addr, Arc::clone(kernel))));
    Ok(())
}

/// `hsa_executable_validate`.
pub(crate) fn validate(executable: Executable, result: Out<u32>) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    result.put(u32::from(state.read().undefined().is_some()))
}

/// `hsa_executable_validate_alt`: 0 if everything that the executable needs is defined, else 1.
pub(crate) fn validate_alt(executable: Executable, _options: Str, result: Out<u32>) -> HsaResult {
    validate(executable, result)
}

/// `hsa_executable_get_info`.
pub(crate) fn info(executable: Executable, attribute: u32, value: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    match attribute {
        1 => value.put(state.profile),
        2 => value.put(u32::from(state.read().phase != Phase::Open)),
        3 => value.put(state.rounding),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// `hsa_executable_load_agent_code_object`.
pub(crate) fn load_agent_code_object(
    executable: Executable,
    agent: Agent,
    reader: CodeObjectReader,
    _options: Str,
    loaded_code_object: Out<LoadedCodeObject>,
) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    let reader = runtime.part::<Readers>().get(reader)?;
    let agent = runtime.agent(agent)?;
    state.read().check_open()?;
    let (loaded, symbols) = Loaded::new(&runtime, agent, &reader)?;
    let mut contents = state.write();
    if let Err(status) = contents.define(symbols) {
        drop(contents);
        loaded.release(&runtime);
        return Err(status);
    }
    let handle = LoadedCodeObject(state.handle_at(contents.loaded.len()));
    contents.loaded.push(loaded);
    drop(contents);
    if loaded_code_object.is_null() { Ok(()) } else { loaded_code_object.put(handle) }
}

/// `hsa_executable_load_program_code_object`: no compiler makes code objects for all agents together.
pub(crate) fn load_program_code_object(
    executable: Executable,
    reader: CodeObjectReader,
    _options: Str,
    _loaded_code_object: Out<LoadedCodeObject>,
) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    runtime.part::<Readers>().get(reader)?;
    state.read().check_open()?;
    Err(Status::ERROR_INCOMPATIBLE_ARGUMENTS)
}

/// Defines a variable of the program: of one agent, or of all.
fn define(
    runtime: &Runtime,
    executable: Executable,
    agent: Option<Agent>,
    name: Str,
    addr: Ptr,
    segment: Segment,
) -> HsaResult {
    let name = name.get()?;
    let state = runtime.part::<Executables>().get(executable)?;
    let agent = agent.map(|agent| runtime.agent(agent)).transpose()?;
    if name.is_empty() {
        return Err(Status::ERROR_INVALID_SYMBOL_NAME);
    }
    let kind = Kind::Variable { len_bytes: 0, align: 0, is_const: false, segment };
    let symbol = Symbol { name: Arc::from(name), agent, addr: addr.addr(), kind };
    state.write().define(vec![symbol])
}

/// `hsa_executable_global_variable_define`.
pub(crate) fn define_variable(executable: Executable, name: Str, addr: Ptr) -> HsaResult {
    define(&*runtime()?, executable, None, name, addr, Segment::Global)
}

/// `hsa_executable_agent_global_variable_define`.
pub(crate) fn define_agent_variable(executable: Executable, agent: Agent, name: Str, addr: Ptr) -> HsaResult {
    define(&*runtime()?, executable, Some(agent), name, addr, Segment::Global)
}

/// `hsa_executable_readonly_variable_define`.
pub(crate) fn define_readonly_variable(
    executable: Executable,
    agent: Agent,
    name: Str,
    addr: Ptr,
) -> HsaResult {
    define(&*runtime()?, executable, Some(agent), name, addr, Segment::Readonly)
}

/// `hsa_executable_get_symbol_by_name`: of an agent, or without one what all agents have.
pub(crate) fn symbol_by_name(
    executable: Executable,
    name: Str,
    agent: In<Agent>,
    symbol: Out<ExecutableSymbol>,
) -> HsaResult {
    let runtime = runtime()?;
    let agent = if agent.is_null() { None } else { Some(agent.get()?) };
    look_up(&runtime, executable, name, symbol, |contents, name| match agent {
        None => contents.find(None, name),
        Some(agent) => contents.find(Some(runtime.agent(agent).ok()?), name),
    })
}

/// `hsa_executable_get_symbol`: of an agent, or what all agents have. No symbol belongs to a module.
pub(crate) fn symbol(
    executable: Executable,
    module: Str,
    name: Str,
    agent: Agent,
    _call_convention: i32,
    symbol: Out<ExecutableSymbol>,
) -> HsaResult {
    let runtime = runtime()?;
    let has_module = module.get().is_ok_and(|module| !module.is_empty());
    look_up(&runtime, executable, name, symbol, |contents, name| {
        let of_agent = || contents.find(Some(runtime.agent(agent).ok()?), name);
        if has_module { None } else { of_agent().or_else(|| contents.find(None, name)) }
    })
}

fn look_up(
    runtime: &Runtime,
    executable: Executable,
    name: Str,
    symbol: Out<ExecutableSymbol>,
    find: impl FnOnce(&Contents, &str) -> Option<usize>,
) -> HsaResult {
    let name = name.get()?;
    if symbol.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let state = runtime.part::<Executables>().get(executable)?;
    let index = find(&state.read(), name).ok_or(Status::ERROR_INVALID_SYMBOL_NAME)?;
    symbol.put(ExecutableSymbol(state.handle_at(index)))
}

/// `hsa_executable_symbol_get_info`.
pub(crate) fn symbol_info(symbol: ExecutableSymbol, attribute: u32, value: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let invalid = Status::ERROR_INVALID_EXECUTABLE_SYMBOL;
    let (state, index) = runtime.part::<Executables>().of_part(symbol.0).ok_or(invalid)?;
    let contents = state.read();
    let found = contents.symbols.get(index).filter(|_| contents.phase != Phase::Destroyed).ok_or(invalid)?;
    found.info(contents.phase == Phase::Frozen, attribute, value)
}

/// `hsa_executable_iterate_symbols`: all, in the order in which they were defined.
pub(crate) fn iterate_symbols(executable: Executable, callback: EachSymbol, data: Ptr) -> HsaResult {
    iterate(executable, callback, data, |_| true)
}

/// `hsa_executable_iterate_program_symbols`: those that all agents have.
pub(crate) fn iterate_program_symbols(executable: Executable, callback: EachSymbol, data: Ptr) -> HsaResult {
    iterate(executable, callback, data, |symbol| symbol.agent.is_none())
}

fn iterate(
    executable: Executable,
    callback: EachSymbol,
    data: Ptr,
    is_wanted: impl Fn(&Symbol) -> bool,
) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    until_stopped(state.symbols(is_wanted), |symbol| {
        // SAFETY: the program's function, called with its own data as the standard says.
        unsafe { callback(executable, symbol, data.raw()) }
    })
}

/// `hsa_executable_iterate_agent_symbols`: those of an agent.
pub(crate) fn iterate_agent_symbols(
    executable: Executable,
    agent: Agent,
    callback: EachAgentSymbol,
    data: Ptr,
) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    let index = runtime.agent(agent)?;
    let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    until_stopped(state.symbols(|symbol| symbol.agent == Some(index)), |symbol| {
        // SAFETY: the program's function, called with its own data as the standard says.
        unsafe { callback(executable, agent, symbol, data.raw()) }
    })
}

/// Calls a callback of the program with each handle until it returns another status than success, which is returned then.
pub(crate) fn until_stopped<T>(handles: Vec<T>, mut callback: impl FnMut(T) -> Status) -> HsaResult {
    for handle in handles {
        match callback(handle) {
            Status::SUCCESS => {}
            other => return Err(other),
        }
    }
    Ok(())
}
