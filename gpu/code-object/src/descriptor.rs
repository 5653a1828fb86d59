//! Kernel descriptors: 64 bytes in a code object that say how to start a kernel's waves.
//!
//! Layout and bit names: LLVM's AMDGPU usage guide, "Kernel Descriptor".

use crate::bytes::{u16_at, u32_at, u64_at};

/// A kernel descriptor as it is in memory; the bits of its register words have names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelDescriptor {
    /// Bytes of LDS that the kernel itself declares, per workgroup.
    pub group_segment_bytes: u32,
    /// Bytes of scratch per lane.
    pub private_segment_bytes: u32,
    /// Bytes of the kernarg segment; 0 in old code objects, which do not contain it.
    pub kernarg_bytes: u32,
    /// Offset of the entry point from the descriptor's own address.
    pub entry_offset: i64,
    /// `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// `kernel_code_properties`.
    pub properties: u16,
    /// Kernarg preload: bits 0-6 length, 7-15 offset, in dwords.
    pub preload: u16,
}

/// Rounding and denormal modes of the floating-point MODE register at a kernel's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatMode {
    /// f32 rounding: 0 nearest even, 1 up, 2 down, 3 towards zero.
    pub round_32: u8,
    /// f16 and f64 rounding: 0 nearest even, 1 up, 2 down, 3 towards zero.
    pub round_16_64: u8,
    /// f32 denormals: bit 0 inputs are kept, bit 1 outputs are kept.
    pub denorm_32: u8,
    /// f16 and f64 denormals: bit 0 inputs are kept, bit 1 outputs are kept.
    pub denorm_16_64: u8,
}

macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident = $word:ident[$bit:literal];)*) => {
        $($(#[$doc])* pub fn $name(&self) -> bool { (self.$word >> $bit) & 1 != 0 })*
    };
}

impl KernelDescriptor {
    /// Size of a descriptor in bytes, and the alignment of its address.
    pub const SIZE_BYTES: usize = 64;
    /// Offset of [`entry_offset`](Self::entry_offset) in the descriptor.
    pub(crate) const ENTRY_OFFSET_BYTES: u64 = 16;

    /// Parses a descriptor; returns `None` if there are fewer than 64 bytes.
    pub fn parse(bytes: &[u8]) -> Option<KernelDescriptor> {
        let bytes = bytes.get(..Self::SIZE_BYTES)?;
        Some(KernelDescriptor {
            group_segment_bytes: u32_at(bytes, 0)?,
            private_segment_bytes: u32_at(bytes, 4)?,
            kernarg_bytes: u32_at(bytes, 8)?,
            entry_offset: u64_at(bytes, 16)? as i64,
            rsrc3: u32_at(bytes, 44)?,
            rsrc1: u32_at(bytes, 48)?,
            rsrc2: u32_at(bytes, 52)?,
            properties: u16_at(bytes, 56)?,
            preload: u16_at(bytes, 58)?,
        })
    }

    bits! {
        /// gfx6-11: floating-point instructions clamp NaN to 0 when clamping.
        dx10_clamp = rsrc1[21];
        /// gfx6-11: IEEE mode, signaling NaNs are quieted.
        ieee_mode = rsrc1[23];
        /// gfx9 and later: f16 overflow gives the largest finite value.
        fp16_overflow = rsrc1[26];
        /// gfx10 and later: workgroups may span both compute units of a processor.
        wgp_mode = rsrc1[29];
        /// gfx10 and later: memory operations return in order.
        mem_ordered = rsrc1[30];
        /// gfx10 and later: older waves of a workgroup are guaranteed to make progress first.
        forward_progress = rsrc1[31];
        /// The kernel uses scratch memory.
        uses_scratch = rsrc2[0];
        /// An SGPR with the workgroup's x index follows the user SGPRs.
        workgroup_id_x = rsrc2[7];
        /// An SGPR with the workgroup's y index follows.
        workgroup_id_y = rsrc2[8];
        /// An SGPR with the workgroup's z index follows.
        workgroup_id_z = rsrc2[9];
        /// An SGPR with the workgroup's wave information follows.
        workgroup_info = rsrc2[10];
        /// gfx90a, gfx94x: a workgroup's waves may be on different compute units.
        tg_split = rsrc3[16];
        /// 4 user SGPRs: buffer resource of the scratch memory.
        has_private_segment_buffer = properties[0];
        /// 2 user SGPRs: address of the dispatch packet.
        has_dispatch_ptr = properties[1];
        /// 2 user SGPRs: address of the queue.
        has_queue_ptr = properties[2];
        /// 2 user SGPRs: address of the kernarg segment.
        has_kernarg_segment_ptr = properties[3];
        /// 2 user SGPRs: number of the dispatch.
        has_dispatch_id = properties[4];
        /// 2 user SGPRs: scratch base and size for flat addressing.
        has_flat_scratch_init = properties[5];
        /// 1 user SGPR: bytes of scratch per lane.
        has_private_segment_size = properties[6];
        /// gfx10 and later: waves of 32 lanes.
        wave32 = properties[10];
        /// The scratch size is not known at compile time (recursion, function pointers).
        uses_dynamic_stack = properties[11];
    }

    /// Returns the number of VGPRs per lane that a wave gets, including AccVGPRs. `processor` decides the size of a
    /// granule: 8 on gfx90a, gfx94x, gfx950 and for waves of 32, else 4.
    pub fn vgprs(&self, processor: &str) -> u32 {
        let unified =
            matches!(processor, "gfx90a" | "gfx940" | "gfx941" | "gfx942" | "gfx950" | "gfx9-4-generic");
        ((self.rsrc1 & 0x3f) + 1) * if unified || self.wave32() { 8 } else { 4 }
    }

    /// Returns the number of SGPRs that a wave gets on gfx6-9 (in granules of 16 on gfx9; 0 on gfx10 and later, where every
    /// wave gets all).
    pub fn sgprs_gfx9(&self) -> u32 {
        let granules = (self.rsrc1 >> 6) & 0xf;
        if granules == 0 { 0 } else { (granules / 2 + 1) * 16 }
    }

    /// Returns the VGPR at which the AccVGPRs start (gfx90a, gfx94x).
    pub fn accum_offset(&self) -> u32 {
        ((self.rsrc3 & 0x3f) + 1) * 4
    }

    /// Returns the floating-point modes at the kernel's start.
    pub fn float_mode(&self) -> FloatMode {
        let field = |shift: u32| ((self.rsrc1 >> shift) & 3) as u8;
        FloatMode {
            round_32: field(12),
            round_16_64: field(14),
            denorm_32: field(16),
            denorm_16_64: field(18),
        }
    }

    /// Returns how many user SGPRs precede the workgroup ids.
    pub fn user_sgprs(&self) -> u32 {
        (self.rsrc2 >> 1) & 0x1f
    }

    /// Returns how many dimensions of the work-item id are in VGPRs: 1 (x), 2 (x, y) or 3 (x, y, z).
    pub fn workitem_id_dims(&self) -> u32 {
        ((self.rsrc2 >> 11) & 3).min(2) + 1
    }

    /// Returns how many dwords of the kernarg segment are loaded into user SGPRs before the kernel starts (gfx940 and
    /// later).
    pub fn preload_dwords(&self) -> u32 {
        u32::from(self.preload & 0x7f)
    }

    /// Returns the dword of the kernarg segment at which preloading starts.
    pub fn preload_offset_dwords(&self) -> u32 {
        u32::from(self.preload >> 7)
    }
}
