//! Code objects that are loaded for an agent: in its memory, with their kernels.

use std::sync::Arc;

use hipr_code_object::{CodeObject, KernelDescriptor, LoadError, ParseError, Target};
use hipr_isa::mem::Block;
use hipr_isa::step::Program;

use crate::facts::{AgentIndex, Agents};
use crate::reader::{Origin, Reader};
use crate::runtime::Runtime;
use crate::status::{HsaResult, Status};
use crate::symbol::{Kind, Segment, Symbol};

/// A kernel that can be dispatched.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    /// Its name, without the descriptor's `.kd`.
    pub(crate) name: Arc<str>,
    /// The agent that it is loaded for.
    pub(crate) agent: AgentIndex,
    /// Address of its descriptor: what packets name it by.
    pub(crate) descriptor_addr: u64,
    /// What the file has as its descriptor.
    pub(crate) descriptor: KernelDescriptor,
    /// Address of its first instruction.
    pub(crate) entry: u64,
    /// The code that its first instruction is part of.
    pub(crate) program: Arc<Program>,
    /// The memory that has the code object.
    pub(crate) block: Arc<Block>,
    /// Vector registers of a lane, both kinds.
    pub(crate) vgprs: u32,
}

/// A code object in an agent's memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) origin: Origin,
    pub(crate) agent: AgentIndex,
    /// Its memory; address 0 of the file is at the first byte.
    block: Arc<Block>,
    /// Address in the file of the first byte that is loaded.
    first_vaddr: u64,
    /// Where the file has that byte.
    pub(crate) first_offset: u64,
    /// Bytes from the first to the last one that are loaded.
    pub(crate) len_bytes: u64,
    kernels: Vec<Arc<LoadedKernel>>,
    /// Until the executable is frozen: what has to be relocated.
    code: Option<CodeObject>,
}

/// Returns the status with which a file is refused, which the log explains.
fn refused(why: &ParseError) -> Status {
    tracing::warn!(%why, "a code object cannot be loaded");
    match why {
        ParseError::Processor(_) => Status::ERROR_INVALID_ISA_NAME,
        _ => Status::ERROR_INVALID_CODE_OBJECT,
    }
}

impl Loaded {
    /// Puts the code object of a reader into the memory of an agent, and returns it with its symbols in the order of the file. Values that
    /// depend on addresses are still missing.
    ///
    /// # Errors
    /// `INVALID_CODE_OBJECT` for what is none, `INVALID_ISA_NAME` if it is for an unknown processor, `INCOMPATIBLE_ARGUMENTS` if the agent
    /// does not execute it, `OUT_OF_RESOURCES` if its memory does not suffice.
    pub(crate) fn new(
        runtime: &Runtime,
        agent: AgentIndex,
        reader: &Reader,
    ) -> HsaResult<(Self, Vec<Symbol>)> {
        let elf = reader.bytes();
        let code = CodeObject::parse(elf).map_err(|why| refused(&why))?;
        let arch = runtime.agents[agent].arch.ok_or(Status::ERROR_INCOMPATIBLE_ARGUMENTS)?;
        let device: Target = crate::isa::name(arch).parse().map_err(|_| Status::ERROR)?;
        if code.target().runs_on(&device).is_none() {
            tracing::warn!(code = %code.target(), agent = %device, "a code object is not for its agent");
            return Err(Status::ERROR_INCOMPATIBLE_ARGUMENTS);
        }
        // Wherever what it does not define turns out to be.
        code.check_relocations(|_| Some(0)).map_err(|why| {
            tracing::warn!(%why, "a code object cannot be relocated");
            Status::ERROR_INVALID_CODE_OBJECT
        })?;
        let symbols = code.symbols(elf).map_err(|why| refused(&why))?;
        let first = code.segments().iter().min_by_key(|segment| segment.vaddr);
        let (first_vaddr, first_offset) =
            first.map_or((0, 0), |first| (first.vaddr, first.file.start as u64));

        let (pool, flags) = runtime.code_pool(agent)?;
        let len_bytes = code.image_bytes().max(1);
        let base = runtime
            .memory
            .allocate(len_bytes, agent, Some(pool), flags, Agents::only(0))
            .map_err(|_| Status::ERROR_OUT_OF_RESOURCES)?;
        let block = runtime.memory.find(base).and_then(|found| found.block).ok_or(Status::ERROR)?;
        let program = |(vaddr, words)| Arc::new(Program::new(words, base + vaddr, arch, runtime.level));
        let programs: Vec<_> = code.code(elf).map(program).collect();
        block.set_code(&programs);

        let kernel = |symbol: &hipr_code_object::Symbol| {
            let kernel = symbol.kernel.as_ref().filter(|kernel| code.is_launchable(kernel))?;
            let entry = base.checked_add(kernel.entry_vaddr)?;
            let inside = |program: &&Arc<Program>| entry.wrapping_sub(program.base()) < program.len_bytes();
            Some(Arc::new(LoadedKernel {
                name: Arc::from(kernel.name.as_str()),
                agent,
                descriptor_addr: base.checked_add(symbol.vaddr)?,
                descriptor: kernel.descriptor,
                entry,
                program: Arc::clone(programs.iter().find(inside)?),
                block: Arc::clone(&block),
                vgprs: kernel.descriptor.vgprs(arch.processor()),
            }))
        };
        let kernels = symbols.iter().filter_map(kernel).collect();
        let symbol = |symbol: hipr_code_object::Symbol| Symbol {
            name: Arc::from(symbol.name),
            agent: Some(agent),
            addr: base.wrapping_add(symbol.vaddr),
            kind: symbol.kernel.as_ref().map_or(
                Kind::Variable {
                    len_bytes: symbol.size,
                    align: symbol.align,
                    is_const: !symbol.writable,
                    segment: Segment::Global,
                },
                Kind::of_kernel,
            ),
        };
        let symbols = symbols.into_iter().map(symbol).collect();
        let loaded = Self {
            origin: reader.origin.clone(),
            agent,
            first_vaddr,
            first_offset,
            len_bytes: code.image_bytes().saturating_sub(first_vaddr),
            block,
            kernels,
            code: Some(code),
        };
        if let Some(code) = &loaded.code
            && let Err(why) =
                code.place(elf, loaded.block.len_bytes(), |vaddr, bytes| loaded.store(vaddr, bytes))
        {
            tracing::error!(%why, "a code object does not fit into the memory that it was given");
            loaded.release(runtime);
            return Err(Status::ERROR_INVALID_CODE_OBJECT);
        }
        Ok((loaded, symbols))
    }

    /// Returns what is added to addresses of the file.
    pub(crate) fn delta(&self) -> u64 {
        self.block.base()
    }

    /// Returns the address of the first byte that is loaded.
    pub(crate) fn base(&self) -> u64 {
        self.block.base().wrapping_add(self.first_vaddr)
    }

    /// Returns the kernels that can be dispatched.
    pub(crate) fn kernels(&self) -> &[Arc<LoadedKernel>] {
        &self.kernels
    }

    fn store(&self, vaddr: u64, bytes: &[u8]) -> bool {
        let addr = self.block.base().checked_add(vaddr);
        let offset = addr.and_then(|addr| self.block.exact_offset(addr, bytes.len() as u64));
        offset.map(|offset| self.block.write(offset, bytes)).is_some()
    }

    /// Returns the first symbol that the code object needs and `address_of` does not know.
    pub(crate) fn undefined(&self, address_of: impl Fn(&str) -> Option<u64>) -> Option<&str> {
        self.code.as_ref()?.undefined().find(|name| address_of(name).is_none())
    }

    /// Writes all values that depend on addresses. `address_of` says those of symbols that the code object does not define.
    ///
    /// # Errors
    /// Those of [`CodeObject::relocate`].
    pub(crate) fn relocate(&mut self, address_of: impl Fn(&str) -> Option<u64>) -> Result<(), LoadError> {
        let Some(code) = self.code.take() else { return Ok(()) };
        code.relocate(self.block.base(), address_of, |vaddr, bytes| self.store(vaddr, bytes))
    }

    /// Gives the memory back, unless the program has done so. It calls callbacks of the program: the caller has no locks.
    pub(crate) fn release(self, runtime: &Runtime) {
        let base = self.block.base();
        // Nothing else can have come there, as long as this block exists.
        let found = runtime.memory.find(base).and_then(|found| found.block);
        if found.is_some_and(|block| Arc::ptr_eq(&block, &self.block)) {
            let freed = runtime.memory.free(base);
            tracing::debug!(?freed, base, "the memory of a code object is given back");
        }
    }
}
