//! Instruction sets of agents.

use hipr_code_object::rules::{SIMDS_PER_CU, THREADS_PER_GROUP, WAVE_LANES, WAVES_PER_SIMD};
use hipr_grid::model::Model;
use hipr_isa::Arch;

use crate::agent::isa_of;
use crate::facts::GRID_MAX;
use crate::pointer::{Out, Ptr, Str};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Dim3, Each, Isa, Wavefront, each};

/// What names of instruction sets begin with.
const PREFIX: &str = "amdgcn-amd-amdhsa--";

impl Runtime {
    fn isa(&self, isa: Isa) -> HsaResult<Arch> {
        let index = (isa.0 as usize).checked_sub(1);
        index.and_then(|index| self.agents.get(index)?.arch).ok_or(Status::ERROR_INVALID_ISA)
    }
}

/// Returns the name of an instruction set, such as `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`.
pub(crate) fn name(arch: Arch) -> String {
    format!("{PREFIX}{}", Model::of(arch).arch_name)
}

/// `hsa_isa_get_info_alt`.
pub(crate) fn info_alt(isa: Isa, attribute: u32, value: Ptr) -> HsaResult {
    let arch = runtime()?.isa(isa)?;
    let name = name(arch);
    match attribute {
        // The terminating zero counts.
        0 => value.put(name.len() as u32 + 1),
        1 => value.put_text(&name, name.len() + 1),
        2 => value.put(1u32),
        3 => value.put(WAVE_LANES),
        4 => value.put(SIMDS_PER_CU * WAVES_PER_SIMD),
        5 => value.put([false, true]),
        6 => value.put([true, false]),
        7 | 8 => value.put([false, false, true]),
        9 => value.put(true),
        12 => value.put([THREADS_PER_GROUP as u16; 3]),
        13 => value.put(THREADS_PER_GROUP),
        14 => value.put(Dim3 { x: GRID_MAX, y: GRID_MAX, z: GRID_MAX }),
        16 => value.put(u64::from(GRID_MAX)),
        17 => value.put(0u32),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// `hsa_isa_get_info`: as the newer function, for the only call convention.
pub(crate) fn info(isa: Isa, attribute: u32, index: u32, value: Ptr) -> HsaResult {
    runtime()?.isa(isa)?;
    if matches!(attribute, 3 | 4) && index != 0 {
        return Err(Status::ERROR_INVALID_INDEX);
    }
    info_alt(isa, attribute, value)
}

/// `hsa_isa_from_name`.
pub(crate) fn from_name(text: Str, isa: Out<Isa>) -> HsaResult {
    let runtime = runtime()?;
    let text = text.get()?;
    let named = |arch: Arch| {
        let full = name(arch);
        text == full || text.strip_prefix(PREFIX) == Some(arch.processor())
    };
    let index = runtime.agents.iter().position(|agent| agent.arch.is_some_and(named));
    isa.put(isa_of(index.ok_or(Status::ERROR_INVALID_ISA_NAME)?))
}

/// `hsa_isa_compatible`: code for one instruction set runs on agents of the same.
pub(crate) fn compatible(code_object_isa: Isa, agent_isa: Isa, result: Out<bool>) -> HsaResult {
    let runtime = runtime()?;
    result.put(runtime.isa(code_object_isa)? == runtime.isa(agent_isa)?)
}

/// `hsa_isa_get_exception_policies`: none is offered.
pub(crate) fn exception_policies(isa: Isa, profile: u32, mask: Out<u16>) -> HsaResult {
    runtime()?.isa(isa)?;
    if profile > 1 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    mask.put(0)
}

/// `hsa_isa_get_round_method`: fused operations round once.
pub(crate) fn round_method(isa: Isa, fp_type: u32, flush_mode: u32, method: Out<u32>) -> HsaResult {
    runtime()?.isa(isa)?;
    if !matches!(fp_type, 1 | 2 | 4) || !matches!(flush_mode, 1 | 2) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    method.put(1)
}

/// `hsa_isa_iterate_wavefronts`: waves have one size.
pub(crate) fn iterate_wavefronts(isa: Isa, callback: Each<Wavefront>, data: Ptr) -> HsaResult {
    runtime()?.isa(isa)?;
    each([Wavefront(u64::from(WAVE_LANES))], callback, data)
}

/// `hsa_wavefront_get_info`.
pub(crate) fn wavefront_info(wavefront: Wavefront, attribute: u32, value: Ptr) -> HsaResult {
    runtime()?;
    if wavefront.0 != u64::from(WAVE_LANES) {
        return Err(Status::ERROR_INVALID_WAVEFRONT);
    }
    if attribute != 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    value.put(WAVE_LANES)
}
