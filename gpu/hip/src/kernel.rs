//! Modules and kernels, with what launches need to know about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::owner::Owner;
use comgr_sys::Comgr;
use hipr_code_object::{CodeObject, Target};
use hipr_proto::{HipError, HipResult};

use hipr_device::{Args, FunctionInfo, Launch, Param};

/// A session's modules and kernels.
pub(super) struct Kernels {
    comgr: Option<Arc<Comgr>>,
    modules: BTreeMap<u64, Module>,
    /// Positions of the explicit parameters, by function; `None` if unknown.
    params: BTreeMap<u64, Option<Vec<Param>>>,
}

struct Module {
    /// Metadata of the code object's kernels, by name. Empty if the metadata cannot be read.
    facts: BTreeMap<String, Facts>,
    functions: BTreeMap<String, FunctionInfo>,
}

/// The metadata of a kernel that a launch needs.
struct Facts {
    kernarg_bytes: u32,
    /// The explicit parameters.
    params: Vec<Param>,
}

impl Kernels {
    /// Creates an empty table. Metadata is read with `comgr` if it is available, as AMD's runtime does, else with hipr's
    /// own parser.
    pub(super) fn new(comgr: Option<Arc<Comgr>>) -> Self {
        Self { comgr, modules: BTreeMap::new(), params: BTreeMap::new() }
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.modules.clear();
        self.params.clear();
    }

    /// Loads a module, and reads the parameters of its kernels from the code object for `arch`.
    pub(super) fn load(&mut self, owner: &mut Owner, arch: &str, image: Vec<u8>) -> HipResult<u64> {
        let facts = self.read(arch, &image);
        let module = owner.module_load(image)?;
        self.modules.insert(module, Module { facts, functions: BTreeMap::new() });
        Ok(module)
    }

    /// Unloads a module.
    pub(super) fn unload(&mut self, owner: &mut Owner, module: u64) -> HipResult<()> {
        owner.module_unload(module)?;
        for info in self.modules.remove(&module).into_iter().flat_map(|module| module.functions.into_values())
        {
            self.params.remove(&info.handle);
        }
        Ok(())
    }

    /// Returns a kernel by its name, always with the same handle.
    pub(super) fn function(&mut self, owner: &mut Owner, module: u64, name: &str) -> HipResult<FunctionInfo> {
        let loaded = self.modules.get_mut(&module).ok_or(HipError::INVALID_HANDLE)?;
        if let Some(info) = loaded.functions.get(name) {
            return Ok(info.clone());
        }
        let handle = owner.function(module, name)?;
        let facts = loaded.facts.get(name);
        let params = facts.map(|facts| facts.params.clone());
        let info = FunctionInfo {
            handle,
            kernarg_size_bytes: facts.map_or(0, |facts| facts.kernarg_bytes),
            params: params.clone(),
        };
        loaded.functions.insert(name.to_owned(), info.clone());
        self.params.insert(handle, params);
        Ok(info)
    }

    /// Enqueues a kernel. If its parameters are known each argument is passed separately, else the kernarg segment as a
    /// whole, which the runtime parses.
    pub(super) fn launch(&self, owner: &mut Owner, launch: &Launch<'_>) -> HipResult<()> {
        let known = self.params.get(&launch.function).ok_or(HipError::INVALID_HANDLE)?;
        let args = match (launch.args, known) {
            (Args::Params { .. }, Some(_)) => launch.args,
            (Args::Flat(data), Some(known)) => Args::Params { table: known, data },
            (Args::Params { data, .. } | Args::Flat(data), None) => Args::Flat(data),
        };
        owner.launch(&Launch { args, ..*launch })
    }

    /// Reads the metadata of an image's code object for a device.
    fn read(&self, arch: &str, image: &[u8]) -> BTreeMap<String, Facts> {
        let select = || -> Result<_, Box<dyn std::error::Error>> {
            let target: Target = arch.parse()?;
            Ok(hipr_code_object::select(image, &target)?)
        };
        let elf = match select() {
            Ok(elf) => elf,
            Err(why) => {
                tracing::debug!(arch, %why, "no code object to read kernel metadata from");
                return BTreeMap::new();
            }
        };
        match self.comgr.as_ref().map(|comgr| comgr.metadata(&elf)) {
            Some(Ok(metadata)) => return metadata.kernels.into_iter().map(of_comgr).collect(),
            Some(Err(why)) => tracing::debug!(%why, "comgr cannot read a code object"),
            None => {}
        }
        match CodeObject::parse(&elf) {
            Ok(code) => code.kernels().iter().map(of_code_object).collect(),
            Err(why) => {
                tracing::debug!(%why, "cannot read kernel metadata; launches pass whole kernarg segments");
                BTreeMap::new()
            }
        }
    }
}

fn of_comgr(kernel: comgr_sys::Kernel) -> (String, Facts) {
    let explicit = kernel.arguments.iter().filter(|argument| !argument.is_hidden());
    let params = explicit.map(|argument| Param { offset: argument.offset, size: argument.size }).collect();
    (kernel.name, Facts { kernarg_bytes: kernel.kernarg_bytes, params })
}

fn of_code_object(kernel: &hipr_code_object::Kernel) -> (String, Facts) {
    let params = kernel.param_layout().into_iter().map(|(offset, size)| Param { offset, size }).collect();
    (kernel.name.clone(), Facts { kernarg_bytes: kernel.kernarg_bytes, params })
}
