//! Modules and kernels, with what launches need to know about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::owner::Owner;
use comgr_sys::Comgr;
use hipr_code_object::{CodeObject, ImageError, Limits, ParseError, SelectError, Target, select_with};
use hipr_proto::{HipError, HipResult};

use hipr_device::{Args, FunctionInfo, Launch, ModuleLoad, Param};

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

/// What is known of a code object before it is loaded.
#[derive(Default)]
struct Read {
    facts: BTreeMap<String, Facts>,
    /// Device memory that it needs, in bytes; 0 if that cannot be read.
    loaded_bytes: u64,
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

    /// Loads a module, and reads the parameters of its kernels from the code object for `arch`; not if the image and the code object
    /// together, or what a bundle unpacks to, have more than `room_bytes`.
    pub(super) fn load(
        &mut self,
        owner: &mut Owner,
        arch: &str,
        image: Vec<u8>,
        room_bytes: u64,
    ) -> HipResult<ModuleLoad> {
        // The runtime wants the image for as long as the module is loaded.
        let image_bytes = image.len() as u64;
        let room_left = room_bytes.checked_sub(image_bytes);
        let Some(read) = room_left.and_then(|room_bytes| self.read(arch, &image, room_bytes)) else {
            return Ok(ModuleLoad::NoRoom(image));
        };
        let module = owner.module_load(image)?;
        self.modules.insert(module, Module { facts: read.facts, functions: BTreeMap::new() });
        Ok(ModuleLoad::Loaded { module, memory_bytes: image_bytes.saturating_add(read.loaded_bytes) })
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

    /// Reads the metadata of an image's code object for a device; returns `None` if that, or what a bundle unpacks to, has more than
    /// `room_bytes`. What cannot be read is the runtime's to judge.
    fn read(&self, arch: &str, image: &[u8], room_bytes: u64) -> Option<Read> {
        let target: Target = match arch.parse() {
            Ok(target) => target,
            Err(why) => {
                tracing::debug!(arch, %why, "no code object to read kernel metadata from");
                return Some(Read::default());
            }
        };
        let limits =
            Limits { uncompressed_max_bytes: Limits::default().uncompressed_max_bytes.min(room_bytes) };
        let elf = match select_with(image, &target, limits) {
            Ok(elf) => elf,
            Err(SelectError::Image(ImageError::TooLong { limit, .. })) if limit == room_bytes => return None,
            Err(why) => {
                tracing::debug!(arch, %why, "no code object to read kernel metadata from");
                return Some(Read::default());
            }
        };
        let code = CodeObject::parse_within(&elf, room_bytes);
        let loaded_bytes = match &code {
            Ok(code) if code.image_bytes() > room_bytes => return None,
            Err(ParseError::Tables { limit }) if *limit == room_bytes => return None,
            Ok(code) => code.image_bytes(),
            Err(_) => 0,
        };
        let facts = match (self.comgr.as_ref().map(|comgr| comgr.metadata(&elf)), code) {
            (Some(Ok(metadata)), _) => metadata.kernels.into_iter().map(of_comgr).collect(),
            (_, Ok(code)) => code.kernels().iter().map(of_code_object).collect(),
            (_, Err(why)) => {
                tracing::debug!(%why, "cannot read kernel metadata; launches pass whole kernarg segments");
                BTreeMap::new()
            }
        };
        Some(Read { facts, loaded_bytes })
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
