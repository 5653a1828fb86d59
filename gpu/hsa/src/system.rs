//! What the runtime says of itself and of its extensions.

use std::ffi::CStr;

use crate::agent::extensions_of;
use crate::clock::{CLOCK_HZ, now};
use crate::loader;
use crate::pointer::{Out, Ptr};
use crate::runtime::runtime;
use crate::status::{HsaResult, Status};
use crate::types::Agent;

/// The version of AMD's interface that the functions follow.
const INTERFACE: (u16, u16) = (1, 7);
/// What AMD's runtime 6.4.3 says of the standard's version.
const VERSION: (u16, u16) = (1, 15);
/// Length in bytes of `HSA_SYSTEM_INFO_EXTENSIONS`.
const EXTENSIONS_BYTES: usize = 128;

/// `hsa_system_get_info`.
pub(crate) fn info(attribute: u32, value: Ptr) -> HsaResult {
    runtime()?;
    match attribute {
        0 => value.put(VERSION.0),
        1 => value.put(VERSION.1),
        2 => value.put(now()),
        3 => value.put(CLOCK_HZ),
        4 => value.put(u64::MAX),
        5 => value.put(0u32),
        6 => value.put(1u32),
        7 => {
            let mut bits = [0u8; EXTENSIONS_BYTES];
            for extension in EXTENSIONS.iter().filter(|extension| extension.is_offered) {
                let number = usize::from(extension.number);
                bits[number / 8 % EXTENSIONS_BYTES] |= 1 << (number % 8);
            }
            value.put_bytes(&bits)
        }
        0x200 => value.put(BUILD.as_ptr()),
        // Memory of the program becomes accessible by attributes, not by itself: as without XNACK on a real GPU.
        0x201 => value.put(true),
        0x202 | 0x203 | 0x206 => value.put(false),
        0x204 => value.put(true),
        0x205 => value.put(true),
        0x207 => value.put(INTERFACE.0),
        0x208 => value.put(INTERFACE.1),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// `HSA_AMD_SYSTEM_INFO_BUILD_VERSION`.
const BUILD: &CStr = match CStr::from_bytes_with_nul(
    concat!("hipr ", env!("CARGO_PKG_VERSION"), " (emulated)\0").as_bytes(),
) {
    Ok(text) => text,
    Err(_) => c"hipr",
};

/// `hsa_status_string`.
pub(crate) fn status_string(status: Status, text: Out<Ptr>) -> HsaResult {
    let known = status.text().ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    text.put(Ptr::at(known.as_ptr().expose_provenance() as u64))
}

/// An extension that has a number.
struct Extension {
    number: u16,
    name: &'static CStr,
    is_offered: bool,
}

const EXTENSIONS: &[Extension] = &[
    Extension { number: 0, name: c"HSA_EXTENSION_FINALIZER", is_offered: false },
    Extension { number: 1, name: c"HSA_EXTENSION_IMAGES", is_offered: false },
    Extension { number: 2, name: c"HSA_EXTENSION_PERFORMANCE_COUNTERS", is_offered: false },
    Extension { number: 3, name: c"HSA_EXTENSION_PROFILING_EVENTS", is_offered: false },
    Extension { number: 0x200, name: c"HSA_EXTENSION_AMD_PROFILER", is_offered: false },
    Extension { number: LOADER, name: c"HSA_EXTENSION_AMD_LOADER", is_offered: true },
    Extension { number: 0x202, name: c"HSA_EXTENSION_AMD_AQLPROFILE", is_offered: false },
    Extension { number: 0x203, name: c"HSA_EXTENSION_AMD_PC_SAMPLING", is_offered: false },
];

/// The number of AMD's loader extension.
const LOADER: u16 = 0x201;
/// The version of the loader extension.
const LOADER_VERSION: (u16, u16) = (1, 3);

fn extension(number: u16) -> HsaResult<&'static Extension> {
    EXTENSIONS.iter().find(|extension| extension.number == number).ok_or(Status::ERROR_INVALID_ARGUMENT)
}

/// `hsa_extension_get_name`.
pub(crate) fn extension_name(number: u16, name: Out<Ptr>) -> HsaResult {
    name.put(Ptr::at(extension(number)?.name.as_ptr().expose_provenance() as u64))
}

/// `hsa_system_extension_supported`.
pub(crate) fn extension_supported(number: u16, major: u16, minor: u16, result: Out<bool>) -> HsaResult {
    runtime()?;
    let is_offered = extension(number)?.is_offered;
    result.put(is_offered && major == LOADER_VERSION.0 && minor <= LOADER_VERSION.1)
}

/// `hsa_system_major_extension_supported`.
pub(crate) fn major_extension_supported(
    number: u16,
    major: u16,
    minor: Out<u16>,
    result: Out<bool>,
) -> HsaResult {
    runtime()?;
    let is_offered = extension(number)?.is_offered && major == LOADER_VERSION.0;
    if minor.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if is_offered {
        minor.put(LOADER_VERSION.1)?;
    }
    result.put(is_offered)
}

/// `hsa_system_get_extension_table`.
pub(crate) fn extension_table(number: u16, major: u16, minor: u16, table: Ptr) -> HsaResult {
    runtime()?;
    extension(number)?;
    if table.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let len_bytes = loader::table_bytes(minor).ok_or(Status::ERROR)?;
    major_extension_table(number, major, len_bytes, table)
}

/// `hsa_system_get_major_extension_table`: as many functions as fit into `len_bytes`.
pub(crate) fn major_extension_table(number: u16, major: u16, len_bytes: usize, table: Ptr) -> HsaResult {
    runtime()?;
    if table.is_null() || len_bytes == 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if !extension(number)?.is_offered || major != LOADER_VERSION.0 {
        return Err(Status::ERROR);
    }
    table.put_bytes(loader::table(len_bytes))
}

/// Returns whether an agent has an extension.
fn is_known_to(number: u16, agent: Agent) -> HsaResult<bool> {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    extension(number)?;
    Ok(extensions_of(&runtime, index).any(|known| known == number))
}

/// `hsa_agent_extension_supported`.
pub(crate) fn agent_extension_supported(
    number: u16,
    agent: Agent,
    major: u16,
    minor: u16,
    result: Out<bool>,
) -> HsaResult {
    result.put(is_known_to(number, agent)? && (major, minor) == (1, 0))
}

/// `hsa_agent_major_extension_supported`.
pub(crate) fn agent_major_extension_supported(
    number: u16,
    agent: Agent,
    major: u16,
    minor: Out<u16>,
    result: Out<bool>,
) -> HsaResult {
    let is_known = is_known_to(number, agent)? && major == 1;
    if minor.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if is_known {
        minor.put(0)?;
    }
    result.put(is_known)
}

/// `hsa_amd_enable_logging`: what there is to log goes to hipr's log.
pub(crate) fn enable_logging(_flags: Out<u8>, _file: Ptr) -> HsaResult {
    runtime().map(drop)
}
