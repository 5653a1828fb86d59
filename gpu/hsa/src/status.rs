//! Status codes of HSA functions.

use std::ffi::CStr;

/// `hsa_status_t`: what a function returns.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

/// The result of a function's body; it becomes a [`Status`] where it crosses to C.
pub(crate) type HsaResult<T = ()> = Result<T, Status>;

macro_rules! statuses {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Status {
            $(
                #[doc = $text]
                pub const $name: Self = Self($value);
            )*

            /// Returns name and meaning of a known code.
            fn known(self) -> Option<(&'static str, &'static CStr)> {
                match self {
                    $(
                        Self::$name => {
                            // The literal ends with a zero byte, which `concat!` adds.
                            let text = concat!("HSA_STATUS_", stringify!($name), ": ", $text, "\0");
                            Some((stringify!($name), CStr::from_bytes_with_nul(text.as_bytes()).ok()?))
                        }
                    )*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0, "the function has succeeded";
    INFO_BREAK = 1, "a callback has ended an iteration";
    ERROR = 0x1000, "an error that no other code describes";
    ERROR_INVALID_ARGUMENT = 0x1001, "an argument is out of its range, or a null pointer";
    ERROR_INVALID_QUEUE_CREATION = 0x1002, "the agent has no queue of this kind";
    ERROR_INVALID_ALLOCATION = 0x1003, "memory cannot be allocated there, or not as much";
    ERROR_INVALID_AGENT = 0x1004, "there is no such agent";
    ERROR_INVALID_REGION = 0x1005, "there is no such memory region";
    ERROR_INVALID_SIGNAL = 0x1006, "there is no such signal";
    ERROR_INVALID_QUEUE = 0x1007, "there is no such queue";
    ERROR_OUT_OF_RESOURCES = 0x1008, "there is no memory left, or no other resource";
    ERROR_INVALID_PACKET_FORMAT = 0x1009, "a packet of a queue is malformed";
    ERROR_RESOURCE_FREE = 0x100a, "a resource could not be released";
    ERROR_NOT_INITIALIZED = 0x100b, "hsa_init has not been called";
    ERROR_REFCOUNT_OVERFLOW = 0x100c, "hsa_init has been called too often";
    ERROR_INCOMPATIBLE_ARGUMENTS = 0x100d, "the arguments contradict each other";
    ERROR_INVALID_INDEX = 0x100e, "the index is out of its range";
    ERROR_INVALID_ISA = 0x100f, "there is no such instruction set";
    ERROR_INVALID_CODE_OBJECT = 0x1010, "this is no code object that can be loaded";
    ERROR_INVALID_EXECUTABLE = 0x1011, "there is no such executable";
    ERROR_FROZEN_EXECUTABLE = 0x1012, "the executable is frozen";
    ERROR_INVALID_SYMBOL_NAME = 0x1013, "there is no symbol with this name";
    ERROR_VARIABLE_ALREADY_DEFINED = 0x1014, "the variable is defined already";
    ERROR_VARIABLE_UNDEFINED = 0x1015, "the variable is not defined";
    ERROR_EXCEPTION = 0x1016, "a kernel has ended by an exception of the hardware";
    ERROR_INVALID_ISA_NAME = 0x1017, "no instruction set has this name";
    ERROR_INVALID_CODE_SYMBOL = 0x1018, "there is no such symbol of a code object";
    ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019, "there is no such symbol of an executable";
    ERROR_INVALID_FILE = 0x1020, "the file cannot be read";
    ERROR_INVALID_CODE_OBJECT_READER = 0x1021, "there is no such code object reader";
    ERROR_INVALID_CACHE = 0x1022, "there is no such cache";
    ERROR_INVALID_WAVEFRONT = 0x1023, "there is no such wavefront";
    ERROR_INVALID_SIGNAL_GROUP = 0x1024, "there is no such signal group";
    ERROR_INVALID_RUNTIME_STATE = 0x1025, "the runtime is not in the state for this";
    ERROR_FATAL = 0x1026, "the queue cannot continue after an error";
    ERROR_INVALID_MEMORY_POOL = 40, "there is no such memory pool";
    ERROR_MEMORY_APERTURE_VIOLATION = 41, "a kernel has accessed an address outside of all apertures";
    ERROR_ILLEGAL_INSTRUCTION = 42, "a kernel contains an instruction that does not exist";
    ERROR_MEMORY_FAULT = 43, "a kernel has accessed memory that its agent may not access";
    CU_MASK_REDUCED = 44, "the mask of compute units was cut to those that exist";
    ERROR_OUT_OF_REGISTERS = 45, "a kernel needs more registers than there are";
    ERROR_RESOURCE_BUSY = 46, "another user has the resource";
}

impl Status {
    /// Returns the text of `hsa_status_string`, or `None` for an unknown code.
    pub fn text(self) -> Option<&'static CStr> {
        self.known().map(|(_, text)| text)
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.known() {
            Some((name, _)) => write!(f, "HSA_STATUS_{name}"),
            None => write!(f, "hsa_status_t({:#x})", self.0),
        }
    }
}
