//! Modules and kernels: what launches need to know of them.

use std::collections::BTreeMap;

use hip_sys::owner::{Arguments, Launch as HipLaunch, Owner};
use hipr_code_object::{CodeObject, Target};
use hipr_proto::{HipError, HipResult};

use super::result;
use crate::device::{Args, FunctionInfo, Launch, Param};

/// A session's modules and kernels.
#[derive(Default)]
pub(super) struct Kernels {
    modules: BTreeMap<u64, Module>,
    /// Handle to where the explicit parameters lie; `None` where nothing is known.
    params: BTreeMap<u64, Option<Vec<(u32, u32)>>>,
}

struct Module {
    /// `None` where the code object's metadata cannot be read.
    code: Option<CodeObject>,
    functions: BTreeMap<String, FunctionInfo>,
}

impl Kernels {
    /// Loads a module. The parameters of its kernels come from the code object for `arch`.
    pub(super) fn load(&mut self, owner: &mut Owner, arch: &str, image: Vec<u8>) -> HipResult<u64> {
        let code = read(arch, &image);
        let module = result(owner.module_load(image))?;
        self.modules.insert(module, Module { code, functions: BTreeMap::new() });
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
        let kernel = loaded.code.as_ref().and_then(|code| code.kernel(name));
        let layout = kernel.map(|kernel| kernel.param_layout());
        let params =
            |layout: &Vec<(u32, u32)>| layout.iter().map(|&(offset, size)| Param { offset, size }).collect();
        let info = FunctionInfo {
            handle,
            kernarg_size_bytes: kernel.map_or(0, |kernel| kernel.kernarg_bytes),
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
}

/// The code object of an image for a device.
fn read(arch: &str, image: &[u8]) -> Option<CodeObject> {
    let read = || -> Result<CodeObject, Box<dyn std::error::Error>> {
        let target: Target = arch.parse()?;
        Ok(CodeObject::parse(&hipr_code_object::select(image, &target)?)?)
    };
    read()
        .inspect_err(
            |why| tracing::debug!(arch, %why, "kernel metadata cannot be read: launches pass whole segments"),
        )
        .ok()
}
