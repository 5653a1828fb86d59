//! The C structures of the HIP API that cross the export table.
//!
//! One table: the size of each structure and the byte offset of each field stand beside it and are checked
//! by the compiler against what `#[repr(C)]` makes of the declaration. The numbers are those of the public
//! HIP headers (6.4 and 7.2 agree on all of them).

use crate::convert::{Ptr, Stream};

macro_rules! c_structs {
    ($($(#[$doc:meta])* $name:ident: $size:literal { $($offset:literal $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the fields are those of the C structure")]
        pub struct $name { $(pub $field: $ty,)* }

        const _: () = {
            assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            $(assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($name), ".", stringify!($field))
            );)*
        };

        impl Default for $name {
            fn default() -> Self {
                // SAFETY: every field is an integer, an array of integers, a `Ptr`/`Stream` (an integer
                // inside) or one of these structures: all zeros is a value of each.
                unsafe { core::mem::zeroed() }
            }
        }
    )*};
}

c_structs! {
    /// A grid or block size, `dim3`.
    Dim3: 12 {
        0 x: u32,
        4 y: u32,
        8 z: u32,
    }
    /// `hipUUID`.
    Uuid: 16 {
        0 bytes: [u8; 16],
    }
    /// `hipDeviceProp_t` since HIP 6.0.
    DevicePropR0600: 1472 {
        0 name: [u8; 256],
        256 uuid: Uuid,
        272 luid: [u8; 8],
        280 luid_device_node_mask: u32,
        288 total_global_mem: usize,
        296 shared_mem_per_block: usize,
        304 regs_per_block: i32,
        308 warp_size: i32,
        312 mem_pitch: usize,
        320 max_threads_per_block: i32,
        324 max_threads_dim: [i32; 3],
        336 max_grid_size: [i32; 3],
        348 clock_rate: i32,
        352 total_const_mem: usize,
        360 major: i32,
        364 minor: i32,
        368 texture_alignment: usize,
        376 texture_pitch_alignment: usize,
        384 device_overlap: i32,
        388 multi_processor_count: i32,
        392 kernel_exec_timeout_enabled: i32,
        396 integrated: i32,
        400 can_map_host_memory: i32,
        404 compute_mode: i32,
        408 max_texture_1d: i32,
        412 max_texture_1d_mipmap: i32,
        416 max_texture_1d_linear: i32,
        420 max_texture_2d: [i32; 2],
        428 max_texture_2d_mipmap: [i32; 2],
        436 max_texture_2d_linear: [i32; 3],
        448 max_texture_2d_gather: [i32; 2],
        456 max_texture_3d: [i32; 3],
        468 max_texture_3d_alt: [i32; 3],
        480 max_texture_cubemap: i32,
        484 max_texture_1d_layered: [i32; 2],
        492 max_texture_2d_layered: [i32; 3],
        504 max_texture_cubemap_layered: [i32; 2],
        512 max_surface_1d: i32,
        516 max_surface_2d: [i32; 2],
        524 max_surface_3d: [i32; 3],
        536 max_surface_1d_layered: [i32; 2],
        544 max_surface_2d_layered: [i32; 3],
        556 max_surface_cubemap: i32,
        560 max_surface_cubemap_layered: [i32; 2],
        568 surface_alignment: usize,
        576 concurrent_kernels: i32,
        580 ecc_enabled: i32,
        584 pci_bus_id: i32,
        588 pci_device_id: i32,
        592 pci_domain_id: i32,
        596 tcc_driver: i32,
        600 async_engine_count: i32,
        604 unified_addressing: i32,
        608 memory_clock_rate: i32,
        612 memory_bus_width: i32,
        616 l2_cache_size: i32,
        620 persisting_l2_cache_max_size: i32,
        624 max_threads_per_multi_processor: i32,
        628 stream_priorities_supported: i32,
        632 global_l1_cache_supported: i32,
        636 local_l1_cache_supported: i32,
        640 shared_mem_per_multiprocessor: usize,
        648 regs_per_multiprocessor: i32,
        652 managed_memory: i32,
        656 is_multi_gpu_board: i32,
        660 multi_gpu_board_group_id: i32,
        664 host_native_atomic_supported: i32,
        668 single_to_double_precision_perf_ratio: i32,
        672 pageable_memory_access: i32,
        676 concurrent_managed_access: i32,
        680 compute_preemption_supported: i32,
        684 can_use_host_pointer_for_registered_mem: i32,
        688 cooperative_launch: i32,
        692 cooperative_multi_device_launch: i32,
        696 shared_mem_per_block_optin: usize,
        704 pageable_memory_access_uses_host_page_tables: i32,
        708 direct_managed_mem_access_from_host: i32,
        712 max_blocks_per_multi_processor: i32,
        716 access_policy_max_window_size: i32,
        720 reserved_shared_mem_per_block: usize,
        728 host_register_supported: i32,
        732 sparse_hip_array_supported: i32,
        736 host_register_read_only_supported: i32,
        740 timeline_semaphore_interop_supported: i32,
        744 memory_pools_supported: i32,
        748 gpu_direct_rdma_supported: i32,
        752 gpu_direct_rdma_flush_writes_options: u32,
        756 gpu_direct_rdma_writes_ordering: i32,
        760 memory_pool_supported_handle_types: u32,
        764 deferred_mapping_hip_array_supported: i32,
        768 ipc_event_supported: i32,
        772 cluster_launch: i32,
        776 unified_function_pointers: i32,
        780 reserved: [i32; 63],
        1032 hip_reserved: [i32; 32],
        1160 gcn_arch_name: [u8; 256],
        1416 max_shared_memory_per_multi_processor: usize,
        1424 clock_instruction_rate: i32,
        1428 arch: u32,
        1432 hdp_mem_flush_cntl: Ptr,
        1440 hdp_reg_flush_cntl: Ptr,
        1448 cooperative_multi_device_unmatched_func: i32,
        1452 cooperative_multi_device_unmatched_grid_dim: i32,
        1456 cooperative_multi_device_unmatched_block_dim: i32,
        1460 cooperative_multi_device_unmatched_shared_mem: i32,
        1464 is_large_bar: i32,
        1468 asic_revision: i32,
    }
    /// `hipDeviceProp_t` before HIP 6.0.
    DevicePropR0000: 792 {
        0 name: [u8; 256],
        256 total_global_mem: usize,
        264 shared_mem_per_block: usize,
        272 regs_per_block: i32,
        276 warp_size: i32,
        280 max_threads_per_block: i32,
        284 max_threads_dim: [i32; 3],
        296 max_grid_size: [i32; 3],
        308 clock_rate: i32,
        312 memory_clock_rate: i32,
        316 memory_bus_width: i32,
        320 total_const_mem: usize,
        328 major: i32,
        332 minor: i32,
        336 multi_processor_count: i32,
        340 l2_cache_size: i32,
        344 max_threads_per_multi_processor: i32,
        348 compute_mode: i32,
        352 clock_instruction_rate: i32,
        356 arch: u32,
        360 concurrent_kernels: i32,
        364 pci_domain_id: i32,
        368 pci_bus_id: i32,
        372 pci_device_id: i32,
        376 max_shared_memory_per_multi_processor: usize,
        384 is_multi_gpu_board: i32,
        388 can_map_host_memory: i32,
        392 gcn_arch: i32,
        396 gcn_arch_name: [u8; 256],
        652 integrated: i32,
        656 cooperative_launch: i32,
        660 cooperative_multi_device_launch: i32,
        664 max_texture_1d_linear: i32,
        668 max_texture_1d: i32,
        672 max_texture_2d: [i32; 2],
        680 max_texture_3d: [i32; 3],
        696 hdp_mem_flush_cntl: Ptr,
        704 hdp_reg_flush_cntl: Ptr,
        712 mem_pitch: usize,
        720 texture_alignment: usize,
        728 texture_pitch_alignment: usize,
        736 kernel_exec_timeout_enabled: i32,
        740 ecc_enabled: i32,
        744 tcc_driver: i32,
        748 cooperative_multi_device_unmatched_func: i32,
        752 cooperative_multi_device_unmatched_grid_dim: i32,
        756 cooperative_multi_device_unmatched_block_dim: i32,
        760 cooperative_multi_device_unmatched_shared_mem: i32,
        764 is_large_bar: i32,
        768 asic_revision: i32,
        772 managed_memory: i32,
        776 direct_managed_mem_access_from_host: i32,
        780 concurrent_managed_access: i32,
        784 pageable_memory_access: i32,
        788 pageable_memory_access_uses_host_page_tables: i32,
    }
    /// `hipPointerAttribute_t`.
    PointerAttributes: 32 {
        0 kind: i32,
        4 device: i32,
        8 device_pointer: Ptr,
        16 host_pointer: Ptr,
        24 is_managed: i32,
        28 allocation_flags: u32,
    }
    /// `hipFuncAttributes`.
    FuncAttributes: 56 {
        0 binary_version: i32,
        4 cache_mode_ca: i32,
        8 const_size_bytes: usize,
        16 local_size_bytes: usize,
        24 max_dynamic_shared_size_bytes: i32,
        28 max_threads_per_block: i32,
        32 num_regs: i32,
        36 preferred_shmem_carveout: i32,
        40 ptx_version: i32,
        48 shared_size_bytes: usize,
    }
    /// `hipExtent`.
    Extent: 24 {
        0 width: usize,
        8 height: usize,
        16 depth: usize,
    }
    /// `hipPos`.
    Pos: 24 {
        0 x: usize,
        8 y: usize,
        16 z: usize,
    }
    /// `hipPitchedPtr`.
    PitchedPtr: 32 {
        0 ptr: Ptr,
        8 pitch: usize,
        16 xsize: usize,
        24 ysize: usize,
    }
    /// `hipMemcpy3DParms`.
    Memcpy3D: 160 {
        0 src_array: Ptr,
        8 src_pos: Pos,
        32 src_ptr: PitchedPtr,
        64 dst_array: Ptr,
        72 dst_pos: Pos,
        96 dst_ptr: PitchedPtr,
        128 extent: Extent,
        152 kind: i32,
    }
    /// `hipKernelNodeParams`.
    KernelNodeParams: 64 {
        0 block_dim: Dim3,
        16 extra: Ptr,
        24 func: Ptr,
        32 grid_dim: Dim3,
        48 kernel_params: Ptr,
        56 shared_mem_bytes: u32,
    }
    /// `hipMemsetParams`.
    MemsetParams: 48 {
        0 dst: Ptr,
        8 element_size: u32,
        16 height: usize,
        24 pitch: usize,
        32 value: u32,
        40 width: usize,
    }
    /// `hipGraphInstantiateParams`.
    InstantiateParams: 32 {
        0 error_node: Ptr,
        8 flags: u64,
        16 result_out: i32,
        24 upload_stream: Stream,
    }
    /// `hipMemcpy3DPeerParms`.
    Memcpy3DPeer: 168 {
        0 src_array: Ptr,
        8 src_pos: Pos,
        32 src_ptr: PitchedPtr,
        64 src_device: i32,
        72 dst_array: Ptr,
        80 dst_pos: Pos,
        104 dst_ptr: PitchedPtr,
        136 dst_device: i32,
        144 extent: Extent,
    }
    /// `HIP_MEMCPY3D`.
    DrvMemcpy3D: 184 {
        0 src_x_in_bytes: usize,
        8 src_y: usize,
        16 src_z: usize,
        24 src_lod: usize,
        32 src_memory_type: i32,
        40 src_host: Ptr,
        48 src_device: Ptr,
        56 src_array: Ptr,
        64 src_pitch: usize,
        72 src_height: usize,
        80 dst_x_in_bytes: usize,
        88 dst_y: usize,
        96 dst_z: usize,
        104 dst_lod: usize,
        112 dst_memory_type: i32,
        120 dst_host: Ptr,
        128 dst_device: Ptr,
        136 dst_array: Ptr,
        144 dst_pitch: usize,
        152 dst_height: usize,
        160 width_in_bytes: usize,
        168 height: usize,
        176 depth: usize,
    }
    /// `hip_Memcpy2D`.
    Memcpy2D: 128 {
        0 src_x_in_bytes: usize,
        8 src_y: usize,
        16 src_memory_type: i32,
        24 src_host: Ptr,
        32 src_device: Ptr,
        40 src_array: Ptr,
        48 src_pitch: usize,
        56 dst_x_in_bytes: usize,
        64 dst_y: usize,
        72 dst_memory_type: i32,
        80 dst_host: Ptr,
        88 dst_device: Ptr,
        96 dst_array: Ptr,
        104 dst_pitch: usize,
        112 width_in_bytes: usize,
        120 height: usize,
    }
    /// `hipChannelFormatDesc`.
    ChannelFormatDesc: 20 {
        0 x: i32,
        4 y: i32,
        8 z: i32,
        12 w: i32,
        16 f: i32,
    }
    /// `hipMemLocation`.
    MemLocation: 8 {
        0 kind: i32,
        4 id: i32,
    }
    /// `hipMemAccessDesc`.
    MemAccessDesc: 12 {
        0 location: MemLocation,
        8 flags: i32,
    }
    /// `hipMemPoolProps`.
    MemPoolProps: 88 {
        0 alloc_type: i32,
        4 handle_types: i32,
        8 location: MemLocation,
        16 win32_security_attributes: Ptr,
        24 max_size: usize,
        32 reserved: [u8; 56],
    }
    /// `hipLaunchParams`.
    LaunchParams: 56 {
        0 func: Ptr,
        8 grid_dim: Dim3,
        20 block_dim: Dim3,
        32 args: Ptr,
        40 shared_mem: usize,
        48 stream: Stream,
    }
    /// `hipLaunchConfig_t`.
    LaunchConfig: 56 {
        0 grid_dim: Dim3,
        12 block_dim: Dim3,
        24 dynamic_smem_bytes: usize,
        32 stream: Stream,
        40 attrs: Ptr,
        48 num_attrs: u32,
    }
    /// `HIP_LAUNCH_CONFIG`.
    DrvLaunchConfig: 56 {
        0 grid_dim_x: u32,
        4 grid_dim_y: u32,
        8 grid_dim_z: u32,
        12 block_dim_x: u32,
        16 block_dim_y: u32,
        20 block_dim_z: u32,
        24 shared_mem_bytes: u32,
        32 h_stream: Stream,
        40 attrs: Ptr,
        48 num_attrs: u32,
    }
}

/// `hipIpcMemHandle_t` and `hipIpcEventHandle_t`: 64 bytes without meaning to the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcHandle(pub [u8; 64]);

/// The result type of the runtime compiler's functions, `hiprtcResult`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtcResult(pub i32);

/// `hipHostFn_t`.
pub type HostFn = Option<unsafe extern "C" fn(Ptr)>;

/// `hipStreamCallback_t`.
pub type StreamCallback = Option<unsafe extern "C" fn(Stream, i32, Ptr)>;
