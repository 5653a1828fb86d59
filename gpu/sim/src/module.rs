//! Modules: code objects in device memory, their variables and kernels.

use std::collections::BTreeMap;
use std::sync::Arc;

use hipr_code_object::rules::KernelNeeds;
use hipr_code_object::{
    Arg, CodeObject, DECODED_BYTES_PER_WORD, Kernel, Loadable, Target, Unloadable, ValueKind, loadable_within,
};
use hipr_isa::Arch;
use hipr_isa::mem::Block;
use hipr_isa::simd::Level;
use hipr_isa::step::Program;
use hipr_proto::{HipError, HipResult};

use crate::property::Model;

/// Suffix of the symbol that holds a managed variable's first bytes.
const MANAGED: &str = ".managed";

const _: () = assert!(
    Program::BYTES_PER_WORD as u64 <= DECODED_BYTES_PER_WORD,
    "what code objects cost is worked out with less than decoded code takes"
);

/// What executes the code of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    pub(crate) arch: Arch,
    pub(crate) level: Level,
    /// The number of the device.
    pub(crate) device: usize,
}

/// A loaded code object.
#[derive(Debug)]
pub(crate) struct Module {
    processor: Processor,
    /// The memory that contains its segments.
    pub(crate) block: Arc<Block>,
    code: CodeObject,
    programs: Vec<Arc<Program>>,
    /// Handles of the kernels that were looked up.
    pub(crate) functions: BTreeMap<String, u64>,
}

/// A kernel that can be launched.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) arch: Arch,
    /// The number of the device on which it can be launched.
    pub(crate) device: usize,
    pub(crate) kernel: Kernel,
    /// Address of the first instruction.
    pub(crate) entry: u64,
    /// Address of the kernel descriptor.
    pub(crate) descriptor: u64,
    /// The code segment that contains the entry.
    pub(crate) program: Arc<Program>,
    /// The module that it belongs to.
    pub(crate) module: u64,
    /// Offsets in the kernarg segment of the addresses of the buffer for calls to the host, and of the heap.
    pub(crate) hostcall_at: Option<u32>,
    pub(crate) heap_at: Option<u32>,
}

impl Function {
    /// Returns what the kernel needs of a compute unit.
    pub(crate) fn needs(&self) -> KernelNeeds {
        self.kernel.needs(self.arch.processor())
    }
}

fn unusable(reason: impl std::fmt::Display, error: HipError) -> HipError {
    tracing::warn!(%reason, "cannot load a module");
    error
}

impl Module {
    /// Takes `image` (ELF, bundle or compressed bundle) apart and puts its code object for `processor` into memory that `allocate`
    /// gives for a length in bytes; `loaded` sees it before the module can be used.
    /// Returns `None` if it would take more than `room_bytes`.
    ///
    /// # Errors
    /// `NO_BINARY_FOR_GPU` when there is code for other devices only, `INVALID_IMAGE` for what is no code object,
    /// `SHARED_OBJECT_SYMBOL_NOT_FOUND` for undefined symbols, and what `allocate` returns.
    pub(crate) fn load(
        image: &[u8],
        processor: Processor,
        room_bytes: u64,
        allocate: impl FnOnce(u64) -> HipResult<Arc<Block>>,
        loaded: impl FnOnce(&Block, &CodeObject, &[u8]),
    ) -> HipResult<Option<Self>> {
        let Processor { arch, level, .. } = processor;
        let target: Target =
            Model::of(arch).arch_name.parse().map_err(|e| unusable(e, HipError::INVALID_IMAGE))?;
        let refused = |why: Unloadable| {
            let error = HipError(why.hip_error());
            unusable(why, error)
        };
        let Loadable { elf, code } = match loadable_within(image, &target, room_bytes) {
            Err(Unloadable::Room(_)) => return Ok(None),
            found => found.map_err(refused)?,
        };
        let block = allocate(code.image_bytes().max(1))?;
        let store = |vaddr: u64, bytes: &[u8]| {
            let addr = block.base().checked_add(vaddr);
            let offset = addr.and_then(|addr| block.exact_offset(addr, bytes.len() as u64));
            offset.map(|offset| block.write(offset, bytes)).is_some()
        };
        let placed = code.place(&elf, block.len_bytes(), store);
        placed
            .and_then(|()| code.relocate(block.base(), |_| None, store))
            .map_err(|why| refused(why.into()))?;
        let program = |(vaddr, code)| Arc::new(Program::new(code, block.base() + vaddr, arch, level));
        let programs: Vec<_> = code.code(&elf).map(program).collect();
        block.set_code(&programs);
        loaded(&block, &code, &elf);
        let module = Self { processor, block, code, programs, functions: BTreeMap::new() };
        module.point_to_managed();
        Ok(Some(module))
    }

    /// Returns the memory in bytes that the module takes at most.
    pub(crate) fn cost_bytes(&self) -> u64 {
        self.code.cost_bytes()
    }

    /// Sets each managed variable's pointer to the address of its data.
    fn point_to_managed(&self) {
        for global in self.code.globals() {
            let variable = global.name.strip_suffix(MANAGED).and_then(|name| self.code.global(name));
            if let Some(variable) = variable.filter(|variable| variable.size == 8)
                && let Some(offset) = self.block.exact_offset(self.block.base() + variable.vaddr, 8)
            {
                self.block.write(offset, &(self.block.base() + global.vaddr).to_le_bytes());
            }
        }
    }

    /// Returns the kernel `name`; `None` if the module has none with that name in an executable segment.
    pub(crate) fn function(&self, name: &str, module: u64) -> Option<Function> {
        let kernel = self.code.launchable(name)?;
        let entry = self.block.base().checked_add(kernel.entry_vaddr)?;
        let inside = |program: &&Arc<Program>| entry.wrapping_sub(program.base()) < program.len_bytes();
        let program = Arc::clone(self.programs.iter().find(inside)?);
        let descriptor = self.block.base().checked_add(kernel.descriptor_vaddr)?;
        let Processor { arch, device, .. } = self.processor;
        let (name, kernel) = (Arc::from(name), kernel.clone());
        let place = |kind: ValueKind| {
            let is_it = |arg: &&Arg| arg.kind == kind && arg.size == 8;
            kernel.args.iter().find(is_it).map(|arg| arg.offset)
        };
        let (hostcall_at, heap_at) = (place(ValueKind::HiddenHostcallBuffer), place(ValueKind::HiddenHeapV1));
        Some(Function {
            name,
            arch,
            device,
            kernel,
            entry,
            descriptor,
            program,
            module,
            hostcall_at,
            heap_at,
        })
    }

    /// Returns address and size in bytes of the variable `name`.
    pub(crate) fn global(&self, name: &str) -> Option<(u64, u64)> {
        let global = self.code.global(name)?;
        let addr = self.block.base().checked_add(global.vaddr)?;
        self.block.exact_offset(addr, global.size)?;
        Some((addr, global.size))
    }
}
