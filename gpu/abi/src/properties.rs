//! The fields that both layouts of `hipDeviceProp_t` have, and conversions of text in C structures.

use core::ffi::c_char;

/// Passes the fields that both layouts of `hipDeviceProp_t` have, and that hipr's protocol carries, to another macro behind
/// `head`: `shared_properties! { callback! { head } }`.
///
/// A row is what the field is, its name in C and its name in the protocol. A `text` is an array of characters, a `size` a number of
/// bytes (`size_t` in C, 64 bits in the protocol), a `number` an `int` or an array of them in both.
#[macro_export]
macro_rules! shared_properties {
    ($callback:ident! { $($head:tt)* }) => { $callback! {
        $($head)*
        text name name;
        text gcnArchName gcn_arch_name;
        size totalGlobalMem total_global_mem;
        size sharedMemPerBlock shared_mem_per_block;
        number regsPerBlock regs_per_block;
        number warpSize warp_size;
        number maxThreadsPerBlock max_threads_per_block;
        number maxThreadsDim max_threads_dim;
        number maxGridSize max_grid_size;
        number clockRate clock_rate;
        number memoryClockRate memory_clock_rate;
        number memoryBusWidth memory_bus_width;
        number major major;
        number minor minor;
        number multiProcessorCount multi_processor_count;
        number l2CacheSize l2_cache_size;
        number maxThreadsPerMultiProcessor max_threads_per_multi_processor;
        number computeMode compute_mode;
        number pciBusID pci_bus_id;
        number pciDeviceID pci_device_id;
        number pciDomainID pci_domain_id;
        number integrated integrated;
        number canMapHostMemory can_map_host_memory;
        number concurrentKernels concurrent_kernels;
    } };
}

/// Returns bytes as the characters of a C structure.
pub const fn chars_of<const N: usize>(bytes: [u8; N]) -> [c_char; N] {
    let mut chars = [0; N];
    let mut i = 0;
    while i < N {
        chars[i] = bytes[i] as c_char;
        i += 1;
    }
    chars
}

/// Returns the characters of a C structure as bytes.
pub const fn bytes_of<const N: usize>(chars: [c_char; N]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut i = 0;
    while i < N {
        bytes[i] = chars[i] as u8;
        i += 1;
    }
    bytes
}
