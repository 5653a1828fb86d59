//! The metadata of a code object as libamd_comgr reads it, in Rust types. Every handle is released when its owner is
//! dropped.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::ptr::{null, null_mut};

use crate::table::{
    Comgr, ERROR, INVALID_ARGUMENT, KIND_EXECUTABLE, KIND_LIST, KIND_MAP, KIND_STRING, SUCCESS,
    amd_comgr_data_t, amd_comgr_metadata_node_t, amd_comgr_status_t,
};

/// The metadata of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The instruction set, such as `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`; `None` if the library does not know the
    /// processor or the code object's version.
    pub isa: Option<String>,
    /// The kernels, in the order of the metadata.
    pub kernels: Vec<Kernel>,
}

/// The metadata of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name that programs use (mangled, in HIP).
    pub name: String,
    /// The symbol of its descriptor.
    pub symbol: String,
    /// All arguments including hidden ones, in the order of the metadata.
    pub arguments: Vec<Argument>,
    /// Bytes of the kernarg segment.
    pub kernarg_bytes: u32,
    /// Alignment of the kernarg segment.
    pub kernarg_align: u32,
    /// Bytes of LDS that the kernel declares, per workgroup.
    pub group_segment_bytes: u32,
    /// Bytes of scratch per lane.
    pub private_segment_bytes: u32,
    /// Lanes per wave.
    pub wavefront_size: u32,
    /// The largest workgroup it was compiled for, in work-items.
    pub max_flat_workgroup_size: u32,
    /// Number of SGPRs that it uses.
    pub sgpr_count: u32,
    /// Number of VGPRs that it uses.
    pub vgpr_count: u32,
}

/// The metadata of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Offset in the kernarg segment in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// `by_value`, `global_buffer`, `hidden_block_count_x` …
    pub value_kind: String,
    /// `global`, `local`, `constant`, `generic` …; only pointers have one.
    pub address_space: Option<String>,
    /// The name; absent in optimized code.
    pub name: Option<String>,
}

impl Argument {
    /// Returns whether the launch fills in the argument instead of the program.
    pub fn is_hidden(&self) -> bool {
        self.value_kind.starts_with("hidden_")
    }
}

/// Why the library cannot read a code object's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A function of the library failed.
    Call {
        /// Name of the function.
        function: &'static str,
        /// The status that it returned.
        status: amd_comgr_status_t,
        /// The library's text for the status.
        text: String,
    },
    /// A key that every kernel or argument has is missing.
    Missing(&'static str),
    /// A value has the wrong type for its key.
    Kind {
        /// The key.
        key: &'static str,
        /// The expected type.
        expected: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { function, status, text } => {
                write!(f, "{function} failed with status {status}: {text}")
            }
            Self::Missing(key) => write!(f, "the metadata has no {key}"),
            Self::Kind { key, expected } => write!(f, "{key} in the metadata is not {expected}"),
        }
    }
}

impl std::error::Error for Error {}

impl Comgr {
    /// Returns the interface version: major, minor.
    pub fn version(&self) -> (usize, usize) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both places outlive the call.
        unsafe { self.amd_comgr_get_version(&mut major, &mut minor) };
        (major, minor)
    }

    /// Reads the metadata of a linked ELF code object (not a bundle).
    ///
    /// # Errors
    /// The library does not take it for a code object, or its metadata lacks what every kernel has.
    pub fn metadata(&self, elf: &[u8]) -> Result<Metadata, Error> {
        let data = Data::new(self, elf)?;
        let isa = data.isa()?;
        let kernels = match data.root()?.find("amdhsa.kernels")? {
            Some(list) => list.map("amdhsa.kernels", kernel)?,
            None => Vec::new(),
        };
        Ok(Metadata { isa, kernels })
    }

    fn check(&self, function: &'static str, status: amd_comgr_status_t) -> Result<(), Error> {
        if status == SUCCESS {
            return Ok(());
        }
        let mut text: *const c_char = null();
        // SAFETY: the place outlives the call.
        let known = unsafe { self.amd_comgr_status_string(status, &mut text) } == SUCCESS && !text.is_null();
        let text = if known {
            // SAFETY: not null, and the library gives NUL-terminated static strings.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        } else {
            String::from("?")
        };
        Err(Error::Call { function, status, text })
    }

    /// Returns the string that `call` writes, after asking it for the length (with the NUL).
    fn string(
        &self,
        function: &'static str,
        call: impl Fn(*mut usize, *mut c_char) -> amd_comgr_status_t,
    ) -> Result<String, Error> {
        let mut len = 0;
        self.check(function, call(&mut len, null_mut()))?;
        let mut bytes = vec![0_u8; len];
        self.check(function, call(&mut len, bytes.as_mut_ptr().cast()))?;
        bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A code object that was given to the library.
struct Data<'a> {
    comgr: &'a Comgr,
    data: amd_comgr_data_t,
}

impl<'a> Data<'a> {
    fn new(comgr: &'a Comgr, elf: &[u8]) -> Result<Self, Error> {
        let mut data = amd_comgr_data_t { handle: 0 };
        // SAFETY: the place outlives the call.
        let status = unsafe { comgr.amd_comgr_create_data(KIND_EXECUTABLE, &mut data) };
        comgr.check("amd_comgr_create_data", status)?;
        let data = Self { comgr, data };
        // SAFETY: the library copies that many bytes.
        let status = unsafe { comgr.amd_comgr_set_data(data.data, elf.len(), elf.as_ptr().cast()) };
        comgr.check("amd_comgr_set_data", status)?;
        Ok(data)
    }

    fn isa(&self) -> Result<Option<String>, Error> {
        let isa = self.comgr.string("amd_comgr_get_data_isa_name", |len, text| {
            // SAFETY: `text` is null, or has `len` bytes.
            unsafe { self.comgr.amd_comgr_get_data_isa_name(self.data, len, text) }
        });
        match isa {
            Err(Error::Call { status: INVALID_ARGUMENT, .. }) => Ok(None),
            isa => isa.map(Some),
        }
    }

    fn root(&self) -> Result<Node<'_>, Error> {
        Node::new(self.comgr, "amd_comgr_get_data_metadata", |node| {
            // SAFETY: the place outlives the call.
            unsafe { self.comgr.amd_comgr_get_data_metadata(self.data, node) }
        })
    }
}

impl Drop for Data<'_> {
    fn drop(&mut self) {
        // SAFETY: created once, released once; nodes borrow the data.
        unsafe { self.comgr.amd_comgr_release_data(self.data) };
    }
}

/// A node of metadata.
struct Node<'a> {
    comgr: &'a Comgr,
    node: amd_comgr_metadata_node_t,
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        // SAFETY: given once, destroyed once.
        unsafe { self.comgr.amd_comgr_destroy_metadata(self.node) };
    }
}

impl<'a> Node<'a> {
    fn new(
        comgr: &'a Comgr,
        function: &'static str,
        call: impl FnOnce(*mut amd_comgr_metadata_node_t) -> amd_comgr_status_t,
    ) -> Result<Self, Error> {
        let mut node = amd_comgr_metadata_node_t { handle: 0 };
        comgr.check(function, call(&mut node))?;
        Ok(Self { comgr, node })
    }

    fn expect(&self, key: &'static str, kind: c_int, expected: &'static str) -> Result<(), Error> {
        let mut found = 0;
        // SAFETY: the place outlives the call.
        let status = unsafe { self.comgr.amd_comgr_get_metadata_kind(self.node, &mut found) };
        self.comgr.check("amd_comgr_get_metadata_kind", status)?;
        if found == kind { Ok(()) } else { Err(Error::Kind { key, expected }) }
    }

    /// Returns the value of a key, if the map has it.
    fn find(&self, key: &'static str) -> Result<Option<Node<'a>>, Error> {
        let name = CString::new(key).unwrap_or_default();
        let found = Node::new(self.comgr, "amd_comgr_metadata_lookup", |node| {
            // SAFETY: key and place outlive the call.
            unsafe { self.comgr.amd_comgr_metadata_lookup(self.node, name.as_ptr(), node) }
        });
        match found {
            Err(Error::Call { status: ERROR, .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    fn get(&self, key: &'static str) -> Result<Node<'a>, Error> {
        self.find(key)?.ok_or(Error::Missing(key))
    }

    /// Calls `read` for each map in a list, and collects the results.
    fn map<T>(
        &self,
        key: &'static str,
        read: impl Fn(&Node<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.expect(key, KIND_LIST, "a list")?;
        let mut len = 0;
        // SAFETY: the place outlives the call.
        let status = unsafe { self.comgr.amd_comgr_get_metadata_list_size(self.node, &mut len) };
        self.comgr.check("amd_comgr_get_metadata_list_size", status)?;
        let item = |index| {
            Node::new(self.comgr, "amd_comgr_index_list_metadata", |node| {
                // SAFETY: the index is one of the list's, the place outlives the call.
                unsafe { self.comgr.amd_comgr_index_list_metadata(self.node, index, node) }
            })
        };
        (0..len)
            .map(|index| {
                let item = item(index)?;
                item.expect(key, KIND_MAP, "a list of maps")?;
                read(&item)
            })
            .collect()
    }

    fn as_text(&self, key: &'static str) -> Result<String, Error> {
        self.expect(key, KIND_STRING, "a string")?;
        self.comgr.string("amd_comgr_get_metadata_string", |len, text| {
            // SAFETY: `text` is null, or has `len` bytes.
            unsafe { self.comgr.amd_comgr_get_metadata_string(self.node, len, text) }
        })
    }

    fn text(&self, key: &'static str) -> Result<String, Error> {
        self.get(key)?.as_text(key)
    }

    fn text_if_any(&self, key: &'static str) -> Result<Option<String>, Error> {
        self.find(key)?.map(|node| node.as_text(key)).transpose()
    }

    fn number(&self, key: &'static str) -> Result<u32, Error> {
        self.text(key)?.parse().map_err(|_| Error::Kind { key, expected: "a number of 32 bits" })
    }
}

fn kernel(node: &Node<'_>) -> Result<Kernel, Error> {
    Ok(Kernel {
        name: node.text(".name")?,
        symbol: node.text(".symbol")?,
        arguments: match node.find(".args")? {
            Some(list) => list.map(".args", argument)?,
            None => Vec::new(),
        },
        kernarg_bytes: node.number(".kernarg_segment_size")?,
        kernarg_align: node.number(".kernarg_segment_align")?,
        group_segment_bytes: node.number(".group_segment_fixed_size")?,
        private_segment_bytes: node.number(".private_segment_fixed_size")?,
        wavefront_size: node.number(".wavefront_size")?,
        max_flat_workgroup_size: node.number(".max_flat_workgroup_size")?,
        sgpr_count: node.number(".sgpr_count")?,
        vgpr_count: node.number(".vgpr_count")?,
    })
}

fn argument(node: &Node<'_>) -> Result<Argument, Error> {
    Ok(Argument {
        offset: node.number(".offset")?,
        size: node.number(".size")?,
        value_kind: node.text(".value_kind")?,
        address_space: node.text_if_any(".address_space")?,
        name: node.text_if_any(".name")?,
    })
}
