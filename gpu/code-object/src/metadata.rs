//! Kernel metadata: the MessagePack map in a code object's notes (LLVM's AMDGPU usage guide, "Code Object
//! Metadata").

use crate::KernelDescriptor;
use crate::cost::Allowance;
use crate::error::{MetadataError, ParseError};
use crate::msgpack::Reader;

/// Maximum size of a kernarg segment; kernels with a larger one are refused (1 MiB; HIP allows 4 KiB of arguments).
pub const KERNARG_MAX_BYTES: u32 = 1 << 20;

macro_rules! value_kinds {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The kind of an argument; for hidden arguments, what the launch has to pass.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ValueKind {
            $($(#[$doc])* $variant,)*
            /// An unknown kind; hidden if its name starts with `hidden_`.
            Unknown(String),
        }

        impl ValueKind {
            /// Returns the kind with this name.
            pub fn of(text: &str) -> ValueKind {
                match text {
                    $($text => ValueKind::$variant,)*
                    _ => ValueKind::Unknown(text.to_owned()),
                }
            }

            /// Returns the name in the metadata.
            pub fn as_str(&self) -> &str {
                match self {
                    $(ValueKind::$variant => $text,)*
                    ValueKind::Unknown(text) => text,
                }
            }
        }
    };
}

value_kinds! {
    /// The argument's bytes.
    ByValue = "by_value",
    /// An address in global memory.
    GlobalBuffer = "global_buffer",
    /// An offset in LDS (OpenCL's local pointers).
    DynamicSharedPointer = "dynamic_shared_pointer",
    /// An image descriptor's address.
    Image = "image",
    /// A sampler descriptor's address.
    Sampler = "sampler",
    /// An OpenCL pipe.
    Pipe = "pipe",
    /// An OpenCL queue.
    Queue = "queue",
    /// Number of full workgroups in x.
    HiddenBlockCountX = "hidden_block_count_x",
    /// Number of full workgroups in y.
    HiddenBlockCountY = "hidden_block_count_y",
    /// Number of full workgroups in z.
    HiddenBlockCountZ = "hidden_block_count_z",
    /// Work-items of a full workgroup in x.
    HiddenGroupSizeX = "hidden_group_size_x",
    /// Work-items of a full workgroup in y.
    HiddenGroupSizeY = "hidden_group_size_y",
    /// Work-items of a full workgroup in z.
    HiddenGroupSizeZ = "hidden_group_size_z",
    /// Work-items of the last workgroup in x if it is not full, else 0.
    HiddenRemainderX = "hidden_remainder_x",
    /// Work-items of the last workgroup in y if it is not full, else 0.
    HiddenRemainderY = "hidden_remainder_y",
    /// Work-items of the last workgroup in z if it is not full, else 0.
    HiddenRemainderZ = "hidden_remainder_z",
    /// First global id in x.
    HiddenGlobalOffsetX = "hidden_global_offset_x",
    /// First global id in y.
    HiddenGlobalOffsetY = "hidden_global_offset_y",
    /// First global id in z.
    HiddenGlobalOffsetZ = "hidden_global_offset_z",
    /// Dimensions of the grid, 1 to 3.
    HiddenGridDims = "hidden_grid_dims",
    /// Nothing; stays zero.
    HiddenNone = "hidden_none",
    /// Address of OpenCL's printf buffer.
    HiddenPrintfBuffer = "hidden_printf_buffer",
    /// Address of the buffer for calls to the host (device printf, assert, malloc).
    HiddenHostcallBuffer = "hidden_hostcall_buffer",
    /// Address of the grid barrier's state (cooperative launches).
    HiddenMultigridSyncArg = "hidden_multigrid_sync_arg",
    /// Address of the device heap.
    HiddenHeapV1 = "hidden_heap_v1",
    /// Address of the queue for device enqueue (OpenCL).
    HiddenDefaultQueue = "hidden_default_queue",
    /// Address of the completion action for device enqueue (OpenCL).
    HiddenCompletionAction = "hidden_completion_action",
    /// Bytes of LDS in addition to those that the kernel declares.
    HiddenDynamicLdsSize = "hidden_dynamic_lds_size",
    /// High half of the scratch aperture's address (devices without aperture registers).
    HiddenPrivateBase = "hidden_private_base",
    /// High half of the LDS aperture's address (devices without aperture registers).
    HiddenSharedBase = "hidden_shared_base",
    /// Address of the queue.
    HiddenQueuePtr = "hidden_queue_ptr",
}

impl ValueKind {
    /// Returns whether the launch fills in the argument instead of the program.
    pub fn is_hidden(&self) -> bool {
        self.as_str().starts_with("hidden_")
    }
}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Offset in the kernarg segment in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Kind of the argument.
    pub kind: ValueKind,
    /// `.address_space`: `global`, `local`, `constant`, `generic` …
    pub address_space: Option<String>,
    /// `.name`; absent in optimized code.
    pub name: Option<String>,
    /// `.type_name`; OpenCL only.
    pub type_name: Option<String>,
    /// `.access` or `.actual_access`: `read_only`, `write_only`, `read_write`.
    pub access: Option<String>,
    /// `.pointee_align`, of dynamic shared pointers.
    pub pointee_align: Option<u32>,
    /// `.is_const`.
    pub is_const: bool,
}

/// A kernel: its metadata, and its descriptor in the code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name that programs use (mangled, in HIP).
    pub name: String,
    /// The descriptor's symbol, `NAME.kd`.
    pub symbol: String,
    /// The descriptor's address, relative to the load address of the code object.
    pub descriptor_vaddr: u64,
    /// The entry point's address, relative to the load address of the code object.
    pub entry_vaddr: u64,
    /// The descriptor.
    pub descriptor: KernelDescriptor,
    /// All arguments including hidden ones, in the order of the metadata.
    pub args: Vec<Arg>,
    /// Size of the kernarg segment in bytes; every argument lies within it.
    pub kernarg_bytes: u32,
    /// Alignment of the kernarg segment.
    pub kernarg_align: u32,
    /// Bytes of LDS that the kernel declares, per workgroup.
    pub group_segment_bytes: u32,
    /// Bytes of scratch per lane.
    pub private_segment_bytes: u32,
    /// Whether the kernel may need more scratch than [`Kernel::private_segment_bytes`] (recursion, function pointers).
    pub uses_dynamic_stack: bool,
    /// Lanes per wave, 32 or 64.
    pub wavefront_size: u32,
    /// The largest workgroup it was compiled for, in work-items.
    pub max_flat_workgroup_size: u32,
    /// The only workgroup size that it can be launched with, if it was compiled for one.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    /// Whether all workgroups have to be full.
    pub uniform_work_group_size: bool,
    /// Number of SGPRs that it uses.
    pub sgpr_count: u32,
    /// Number of VGPRs that it uses, including AccVGPRs if they are the same registers.
    pub vgpr_count: u32,
    /// Number of AccVGPRs that it uses.
    pub agpr_count: u32,
    /// Number of SGPRs that were spilled to memory.
    pub sgpr_spill_count: u32,
    /// Number of VGPRs that were spilled to memory.
    pub vgpr_spill_count: u32,
    /// Source language: `OpenCL C`, `HIP`, `Assembler` …
    pub language: Option<String>,
    /// `.kind`: `normal`, `init` or `fini`.
    pub kind: Option<String>,
}

impl Kernel {
    /// Returns a kernel without name, arguments and addresses.
    fn blank() -> Self {
        Self {
            name: String::new(),
            symbol: String::new(),
            descriptor_vaddr: 0,
            entry_vaddr: 0,
            descriptor: KernelDescriptor::default(),
            args: Vec::new(),
            kernarg_bytes: 0,
            kernarg_align: 1,
            group_segment_bytes: 0,
            private_segment_bytes: 0,
            uses_dynamic_stack: false,
            wavefront_size: 64,
            max_flat_workgroup_size: 1024,
            reqd_workgroup_size: None,
            uniform_work_group_size: false,
            sgpr_count: 0,
            vgpr_count: 0,
            agpr_count: 0,
            sgpr_spill_count: 0,
            vgpr_spill_count: 0,
            language: None,
            kind: None,
        }
    }

    /// Returns what a kernel's descriptor at `descriptor_vaddr` says of it, for one that the metadata does not name. `processor` is as for
    /// [`KernelDescriptor::vgprs`]; the entry's address is still missing.
    ///
    /// # Errors
    /// A kernarg segment that is too large.
    pub(crate) fn of_descriptor(
        symbol: &str,
        descriptor_vaddr: u64,
        descriptor: KernelDescriptor,
        processor: &str,
    ) -> Result<Self> {
        let kernel = Self {
            name: symbol.strip_suffix(".kd").unwrap_or(symbol).to_owned(),
            symbol: symbol.to_owned(),
            descriptor_vaddr,
            kernarg_bytes: descriptor.kernarg_bytes,
            kernarg_align: 16,
            group_segment_bytes: descriptor.group_segment_bytes,
            private_segment_bytes: descriptor.private_segment_bytes,
            uses_dynamic_stack: descriptor.uses_dynamic_stack(),
            wavefront_size: if descriptor.wave32() { 32 } else { 64 },
            vgpr_count: descriptor.vgprs(processor),
            descriptor,
            ..Self::blank()
        };
        check_layout(&kernel)?;
        Ok(kernel)
    }
}

/// The merged metadata of all notes of a code object.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// The kernels; their descriptors and addresses, which come from the ELF file, are zero.
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) target: Option<String>,
    pub(crate) printf: Vec<String>,
}

type Result<T> = std::result::Result<T, MetadataError>;

impl Metadata {
    /// Adds the metadata of one note.
    pub(crate) fn merge(
        &mut self,
        note: &[u8],
        allowance: &mut Allowance,
    ) -> std::result::Result<(), ParseError> {
        let mut reader = Reader::new(note);
        let mut has_version = false;
        for _ in 0..reader.map()? {
            match reader.text()? {
                "amdhsa.version" => {
                    has_version = true;
                    version(&mut reader)?;
                }
                "amdhsa.target" => {
                    let target = reader.text()?;
                    self.target.get_or_insert_with(|| target.to_owned());
                }
                "amdhsa.printf" => {
                    for _ in 0..reader.array()? {
                        // Lists grow by doubling.
                        allowance.entries::<String>(2)?;
                        self.printf.push(kept(&mut reader, allowance)?);
                    }
                }
                "amdhsa.kernels" => {
                    for _ in 0..reader.array()? {
                        // In this list, which grows by doubling, and in that of the kernels that have a symbol.
                        allowance.entries::<Kernel>(3)?;
                        self.kernels.push(kernel(&mut reader, allowance)?);
                    }
                }
                _ => reader.skip()?,
            }
        }
        if has_version { Ok(()) } else { Err(MetadataError::Missing("amdhsa.version").into()) }
    }
}

/// Reads a text that is kept.
fn kept(reader: &mut Reader<'_>, allowance: &mut Allowance) -> std::result::Result<String, ParseError> {
    let text = reader.text()?;
    allowance.text(text)?;
    Ok(text.to_owned())
}

fn version(reader: &mut Reader<'_>) -> Result<()> {
    if reader.array()? != 2 {
        return Err(MetadataError::Kind("a version of two numbers"));
    }
    let (major, minor) = (reader.unsigned()?, reader.unsigned()?);
    if major != 1 {
        return Err(MetadataError::Version { major, minor });
    }
    Ok(())
}

fn kernel(reader: &mut Reader<'_>, allowance: &mut Allowance) -> std::result::Result<Kernel, ParseError> {
    let (mut name, mut symbol, mut kernarg_bytes) = (None, None, None);
    let mut kernel = Kernel::blank();
    for _ in 0..reader.map()? {
        match reader.text()? {
            ".name" => name = Some(kept(reader, allowance)?),
            ".symbol" => symbol = Some(kept(reader, allowance)?),
            ".kernarg_segment_size" => kernarg_bytes = Some(reader.narrow()?),
            ".kernarg_segment_align" => kernel.kernarg_align = reader.narrow()?,
            ".group_segment_fixed_size" => kernel.group_segment_bytes = reader.narrow()?,
            ".private_segment_fixed_size" => kernel.private_segment_bytes = reader.narrow()?,
            ".uses_dynamic_stack" => kernel.uses_dynamic_stack = reader.flag()?,
            ".wavefront_size" => kernel.wavefront_size = reader.narrow()?,
            ".max_flat_workgroup_size" => kernel.max_flat_workgroup_size = reader.narrow()?,
            ".uniform_work_group_size" => kernel.uniform_work_group_size = reader.flag()?,
            ".sgpr_count" => kernel.sgpr_count = reader.narrow()?,
            ".vgpr_count" => kernel.vgpr_count = reader.narrow()?,
            ".agpr_count" => kernel.agpr_count = reader.narrow()?,
            ".sgpr_spill_count" => kernel.sgpr_spill_count = reader.narrow()?,
            ".vgpr_spill_count" => kernel.vgpr_spill_count = reader.narrow()?,
            ".language" => kernel.language = Some(kept(reader, allowance)?),
            ".kind" => kernel.kind = Some(kept(reader, allowance)?),
            ".reqd_workgroup_size" => {
                if reader.array()? != 3 {
                    return Err(MetadataError::Kind("a size of three numbers").into());
                }
                kernel.reqd_workgroup_size = Some([reader.narrow()?, reader.narrow()?, reader.narrow()?]);
            }
            ".args" => {
                kernel.args.clear();
                for _ in 0..reader.array()? {
                    allowance.entries::<Arg>(2)?;
                    kernel.args.push(arg(reader, allowance)?);
                }
            }
            _ => reader.skip()?,
        }
    }
    kernel.name = name.ok_or(MetadataError::Missing("a kernel's .name"))?;
    kernel.symbol = symbol.ok_or(MetadataError::Missing("a kernel's .symbol"))?;
    kernel.kernarg_bytes = kernarg_bytes.ok_or(MetadataError::Missing("a kernel's .kernarg_segment_size"))?;
    check_layout(&kernel)?;
    Ok(kernel)
}

fn check_layout(kernel: &Kernel) -> Result<()> {
    let layout = |what, end, size| MetadataError::Layout { kernel: kernel.name.clone(), what, end, size };
    if kernel.kernarg_bytes > KERNARG_MAX_BYTES {
        return Err(layout("the segment", kernel.kernarg_bytes.into(), KERNARG_MAX_BYTES));
    }
    if !kernel.kernarg_align.is_power_of_two() {
        return Err(MetadataError::Kind("an alignment that is a power of two"));
    }
    for arg in &kernel.args {
        let end = u64::from(arg.offset) + u64::from(arg.size);
        if end > u64::from(kernel.kernarg_bytes) {
            return Err(layout("an argument", end, kernel.kernarg_bytes));
        }
    }
    Ok(())
}

fn arg(reader: &mut Reader<'_>, allowance: &mut Allowance) -> std::result::Result<Arg, ParseError> {
    let (mut offset, mut size, mut kind) = (None, None, None);
    let (mut address_space, mut name, mut type_name, mut access) = (None, None, None, None);
    let (mut pointee_align, mut is_const) = (None, false);
    for _ in 0..reader.map()? {
        match reader.text()? {
            ".offset" => offset = Some(reader.narrow()?),
            ".size" => size = Some(reader.narrow()?),
            ".value_kind" => {
                let text = reader.text()?;
                // Only the name of an unknown kind is kept.
                allowance.text(text)?;
                kind = Some(ValueKind::of(text));
            }
            ".address_space" => address_space = Some(kept(reader, allowance)?),
            ".name" => name = Some(kept(reader, allowance)?),
            ".type_name" => type_name = Some(kept(reader, allowance)?),
            ".access" | ".actual_access" => access = Some(kept(reader, allowance)?),
            ".pointee_align" => pointee_align = Some(reader.narrow()?),
            ".is_const" => is_const = reader.flag()?,
            _ => reader.skip()?,
        }
    }
    Ok(Arg {
        offset: offset.ok_or(MetadataError::Missing("an argument's .offset"))?,
        size: size.ok_or(MetadataError::Missing("an argument's .size"))?,
        kind: kind.ok_or(MetadataError::Missing("an argument's .value_kind"))?,
        address_space,
        name,
        type_name,
        access,
        pointee_align,
        is_const,
    })
}
