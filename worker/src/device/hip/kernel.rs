//! Modules and kernels: what launches need to know of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use comgr_sys::Comgr;
use hip_sys::owner::{Arguments, Launch as HipLaunch, Owner};
use hipr_code_object::{CodeObject, Target};
use hipr_proto::{HipError, HipResult};

use super::result;
use crate::device::{Args, FunctionInfo, Launch, Param};

/// A session's modules and kernels.
pub(super) struct Kernels {
    comgr: Option<Arc<Comgr>>,
    modules: BTreeMap<u64, Module>,
    /// Handle to where the explicit parameters lie; `None` where nothing is known.
    params: BTreeMap<u64, Option<Vec<(u32, u32)>>>,
}

struct Module {
    /// What the code object says of its kernels, by their names. Empty where its metadata cannot be read.
    facts: BTreeMap<String, Facts>,
    functions: BTreeMap<String, FunctionInfo>,
}

/// What a launch needs to know of a kernel.
struct Facts {
    kernarg_bytes: u32,
    /// Offset and size in bytes of each explicit parameter.
    params: Vec<(u32, u32)>,
}

impl Kernels {
    /// No kernels. Metadata is read with `comgr` where it is there, as AMD's runtime does, else by ourselves.
    pub(super) fn new(comgr: Option<Arc<Comgr>>) -> Self {
        Self { comgr, modules: BTreeMap::new(), params: BTreeMap::new() }
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.modules.clear();
        self.params.clear();
    }

    /// Loads a module. The parameters of its kernels come from the code object for `arch`.
    pub(super) fn load(&mut self, owner: &mut Owner, arch: &str, image: Vec<u8>) -> HipResult<u64> {
        let facts = self.read(arch, &image);
        let module = result(owner.module_load(image))?;
        self.modules.insert(module, Module { facts, functions: BTreeMap::new() });
        Ok(module)
    }

    /// Forgets a module.
    pub(super) fn unload(&mut self, owner: &mut Owner, module: u64) -> HipResult<()> {
        result(owner.module_unload(module))?;
        for info in self.modules.remove(&module).into_iter().flat_map(|module| module.functions.into_values())
        {
            self.params.remove(&info.handle);
        }
        Ok(())
    }

    /// A kernel by its name, the same for the same name.
    pub(super) fn function(&mut self, owner: &mut Owner, module: u64, name: &str) -> HipResult<FunctionInfo> {
        let loaded = self.modules.get_mut(&module).ok_or(HipError::INVALID_HANDLE)?;
        if let Some(info) = loaded.functions.get(name) {
            return Ok(info.clone());
        }
        let handle = result(owner.function(module, name))?;
        let facts = loaded.facts.get(name);
        let layout = facts.map(|facts| facts.params.clone());
        let params =
            |layout: &Vec<(u32, u32)>| layout.iter().map(|&(offset, size)| Param { offset, size }).collect();
        let info = FunctionInfo {
            handle,
            kernarg_size_bytes: facts.map_or(0, |facts| facts.kernarg_bytes),
            params: layout.as_ref().map(params),
        };
        loaded.functions.insert(name.to_owned(), info.clone());
        self.params.insert(handle, layout);
        Ok(info)
    }

    /// Enqueues a kernel. Where its parameters are known, each argument is passed by its own; else the segment as it is, which
    /// the runtime takes apart.
    pub(super) fn launch(&self, owner: &mut Owner, launch: &Launch<'_>) -> HipResult<()> {
        let known = self.params.get(&launch.function).ok_or(HipError::INVALID_HANDLE)?;
        let table: Vec<(u32, u32)>;
        let arguments = match (launch.args, known) {
            (Args::Params { table: given, data }, Some(_)) => {
                table = given.iter().map(|param| (param.offset, param.size)).collect();
                Arguments::Each { table: &table, data }
            }
            (Args::Flat(data), Some(known)) => Arguments::Each { table: known, data },
            (Args::Params { data, .. } | Args::Flat(data), None) => Arguments::Buffer(data),
        };
        result(owner.launch(&HipLaunch {
            function: launch.function,
            grid: launch.grid,
            block: launch.block,
            shared_mem_bytes: launch.shared_mem_bytes,
            stream: launch.stream,
            arguments,
            start_event: launch.start_event,
            stop_event: launch.stop_event,
            cooperative: launch.cooperative,
        }))
    }

    /// What the code object of an image for a device says of its kernels.
    fn read(&self, arch: &str, image: &[u8]) -> BTreeMap<String, Facts> {
        let select = || -> Result<_, Box<dyn std::error::Error>> {
            let target: Target = arch.parse()?;
            Ok(hipr_code_object::select(image, &target)?)
        };
        let elf = match select() {
            Ok(elf) => elf,
            Err(why) => {
                tracing::debug!(arch, %why, "no code object to read kernel metadata of");
                return BTreeMap::new();
            }
        };
        match self.comgr.as_ref().map(|comgr| comgr.metadata(&elf)) {
            Some(Ok(metadata)) => return metadata.kernels.into_iter().map(of_comgr).collect(),
            Some(Err(why)) => tracing::debug!(%why, "comgr does not read a code object"),
            None => {}
        }
        match CodeObject::parse(&elf) {
            Ok(code) => code.kernels().iter().map(of_code_object).collect(),
            Err(why) => {
                tracing::debug!(%why, "kernel metadata cannot be read: launches pass whole segments");
                BTreeMap::new()
            }
        }
    }
}

fn of_comgr(kernel: comgr_sys::Kernel) -> (String, Facts) {
    let explicit = kernel.arguments.iter().filter(|argument| !argument.is_hidden());
    let params = explicit.map(|argument| (argument.offset, argument.size)).collect();
    (kernel.name, Facts { kernarg_bytes: kernel.kernarg_bytes, params })
}

fn of_code_object(kernel: &hipr_code_object::Kernel) -> (String, Facts) {
    (kernel.name.clone(), Facts { kernarg_bytes: kernel.kernarg_bytes, params: kernel.param_layout() })
}
