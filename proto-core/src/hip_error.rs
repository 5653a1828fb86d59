//! `hipError_t` with the names and messages that `hipGetErrorName` and `hipGetErrorString` return.

use core::ffi::CStr;
use core::fmt;

/// A `hipError_t` that is not `hipSuccess`: what a HIP operation returned, not a failure of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HipError(pub i32);

/// The outcome of a HIP operation.
pub type HipResult<T> = Result<T, HipError>;

struct Row {
    code: i32,
    name: &'static CStr,
    message: &'static CStr,
}

const fn text(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a NUL inside a name or message"),
    }
}

macro_rules! errors {
    ($($code:literal $NAME:ident $name:literal $message:literal;)*) => {
        impl HipError {
            $(
                #[doc = concat!("`", $name, "`: ", $message)]
                pub const $NAME: Self = Self($code);
            )*
        }

        static ROWS: &[Row] = &[
            $(Row { code: $code, name: text(concat!($name, "\0")), message: text(concat!($message, "\0")) }),*
        ];

        const _: () = {
            let codes: &[i32] = &[$($code),*];
            let mut i = 1;
            while i < codes.len() {
                assert!(codes[i - 1] < codes[i], "rows are sorted by code");
                i += 1;
            }
        };
    };
}

errors! {
    1 INVALID_VALUE "hipErrorInvalidValue" "invalid argument";
    2 OUT_OF_MEMORY "hipErrorOutOfMemory" "out of memory";
    3 NOT_INITIALIZED "hipErrorNotInitialized" "initialization error";
    4 DEINITIALIZED "hipErrorDeinitialized" "driver shutting down";
    5 PROFILER_DISABLED "hipErrorProfilerDisabled" "profiler disabled while using external profiling tool";
    6 PROFILER_NOT_INITIALIZED "hipErrorProfilerNotInitialized" "profiler is not initialized";
    7 PROFILER_ALREADY_STARTED "hipErrorProfilerAlreadyStarted" "profiler already started";
    8 PROFILER_ALREADY_STOPPED "hipErrorProfilerAlreadyStopped" "profiler already stopped";
    9 INVALID_CONFIGURATION "hipErrorInvalidConfiguration" "invalid configuration argument";
    12 INVALID_PITCH_VALUE "hipErrorInvalidPitchValue" "invalid pitch argument";
    13 INVALID_SYMBOL "hipErrorInvalidSymbol" "invalid device symbol";
    17 INVALID_DEVICE_POINTER "hipErrorInvalidDevicePointer" "invalid device pointer";
    21 INVALID_MEMCPY_DIRECTION "hipErrorInvalidMemcpyDirection" "invalid copy direction for memcpy";
    35 INSUFFICIENT_DRIVER "hipErrorInsufficientDriver" "driver version is insufficient for runtime version";
    52 MISSING_CONFIGURATION "hipErrorMissingConfiguration" "__global__ function call is not configured";
    53 PRIOR_LAUNCH_FAILURE "hipErrorPriorLaunchFailure" "unspecified launch failure in prior launch";
    98 INVALID_DEVICE_FUNCTION "hipErrorInvalidDeviceFunction" "invalid device function";
    100 NO_DEVICE "hipErrorNoDevice" "no ROCm-capable device is detected";
    101 INVALID_DEVICE "hipErrorInvalidDevice" "invalid device ordinal";
    200 INVALID_IMAGE "hipErrorInvalidImage" "device kernel image is invalid";
    201 INVALID_CONTEXT "hipErrorInvalidContext" "invalid device context";
    202 CONTEXT_ALREADY_CURRENT "hipErrorContextAlreadyCurrent" "context is already current context";
    205 MAP_FAILED "hipErrorMapFailed" "mapping of buffer object failed";
    206 UNMAP_FAILED "hipErrorUnmapFailed" "unmapping of buffer object failed";
    207 ARRAY_IS_MAPPED "hipErrorArrayIsMapped" "array is mapped";
    208 ALREADY_MAPPED "hipErrorAlreadyMapped" "resource already mapped";
    209 NO_BINARY_FOR_GPU "hipErrorNoBinaryForGpu" "no kernel image is available for execution on the device";
    210 ALREADY_ACQUIRED "hipErrorAlreadyAcquired" "resource already acquired";
    211 NOT_MAPPED "hipErrorNotMapped" "resource not mapped";
    212 NOT_MAPPED_AS_ARRAY "hipErrorNotMappedAsArray" "resource not mapped as array";
    213 NOT_MAPPED_AS_POINTER "hipErrorNotMappedAsPointer" "resource not mapped as pointer";
    214 ECC_NOT_CORRECTABLE "hipErrorECCNotCorrectable" "uncorrectable ECC error encountered";
    215 UNSUPPORTED_LIMIT "hipErrorUnsupportedLimit" "limit is not supported on this architecture";
    216 CONTEXT_ALREADY_IN_USE "hipErrorContextAlreadyInUse" "exclusive-thread device already in use by a different thread";
    217 PEER_ACCESS_UNSUPPORTED "hipErrorPeerAccessUnsupported" "peer access is not supported between these two devices";
    218 INVALID_KERNEL_FILE "hipErrorInvalidKernelFile" "invalid kernel file";
    219 INVALID_GRAPHICS_CONTEXT "hipErrorInvalidGraphicsContext" "invalid OpenGL or DirectX context";
    300 INVALID_SOURCE "hipErrorInvalidSource" "device kernel image is invalid";
    301 FILE_NOT_FOUND "hipErrorFileNotFound" "file not found";
    302 SHARED_OBJECT_SYMBOL_NOT_FOUND "hipErrorSharedObjectSymbolNotFound" "shared object symbol not found";
    303 SHARED_OBJECT_INIT_FAILED "hipErrorSharedObjectInitFailed" "shared object initialization failed";
    304 OPERATING_SYSTEM "hipErrorOperatingSystem" "OS call failed or operation not supported on this OS";
    400 INVALID_HANDLE "hipErrorInvalidHandle" "invalid resource handle";
    401 ILLEGAL_STATE "hipErrorIllegalState" "the operation cannot be performed in the present state";
    500 NOT_FOUND "hipErrorNotFound" "named symbol not found";
    600 NOT_READY "hipErrorNotReady" "device not ready";
    700 ILLEGAL_ADDRESS "hipErrorIllegalAddress" "an illegal memory access was encountered";
    701 LAUNCH_OUT_OF_RESOURCES "hipErrorLaunchOutOfResources" "too many resources requested for launch";
    702 LAUNCH_TIME_OUT "hipErrorLaunchTimeOut" "the launch timed out and was terminated";
    704 PEER_ACCESS_ALREADY_ENABLED "hipErrorPeerAccessAlreadyEnabled" "peer access is already enabled";
    705 PEER_ACCESS_NOT_ENABLED "hipErrorPeerAccessNotEnabled" "peer access has not been enabled";
    708 SET_ON_ACTIVE_PROCESS "hipErrorSetOnActiveProcess" "cannot set while device is active in this process";
    709 CONTEXT_IS_DESTROYED "hipErrorContextIsDestroyed" "context is destroyed";
    710 ASSERT "hipErrorAssert" "device-side assert triggered";
    712 HOST_MEMORY_ALREADY_REGISTERED "hipErrorHostMemoryAlreadyRegistered" "part or all of the requested memory range is already mapped";
    713 HOST_MEMORY_NOT_REGISTERED "hipErrorHostMemoryNotRegistered" "pointer does not correspond to a registered memory region";
    719 LAUNCH_FAILURE "hipErrorLaunchFailure" "unspecified launch failure";
    720 COOPERATIVE_LAUNCH_TOO_LARGE "hipErrorCooperativeLaunchTooLarge" "too many blocks in cooperative launch";
    801 NOT_SUPPORTED "hipErrorNotSupported" "operation not supported";
    900 STREAM_CAPTURE_UNSUPPORTED "hipErrorStreamCaptureUnsupported" "operation not permitted when stream is capturing";
    901 STREAM_CAPTURE_INVALIDATED "hipErrorStreamCaptureInvalidated" "operation failed due to a previous error during capture";
    902 STREAM_CAPTURE_MERGE "hipErrorStreamCaptureMerge" "operation would result in a merge of separate capture sequences";
    903 STREAM_CAPTURE_UNMATCHED "hipErrorStreamCaptureUnmatched" "capture was not ended in the same stream as it began";
    904 STREAM_CAPTURE_UNJOINED "hipErrorStreamCaptureUnjoined" "capturing stream has unjoined work";
    905 STREAM_CAPTURE_ISOLATION "hipErrorStreamCaptureIsolation" "dependency created on uncaptured work in another stream";
    906 STREAM_CAPTURE_IMPLICIT "hipErrorStreamCaptureImplicit" "operation would make the legacy stream depend on a capturing blocking stream";
    907 CAPTURED_EVENT "hipErrorCapturedEvent" "operation not permitted on an event last recorded in a capturing stream";
    908 STREAM_CAPTURE_WRONG_THREAD "hipErrorStreamCaptureWrongThread" "attempt to terminate a thread-local capture sequence from another thread";
    910 GRAPH_EXEC_UPDATE_FAILURE "hipErrorGraphExecUpdateFailure" "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    1052 RUNTIME_MEMORY "hipErrorRuntimeMemory" "runtime memory call returned error";
    1053 RUNTIME_OTHER "hipErrorRuntimeOther" "runtime call other than memory returned error";
    1054 TBD "hipErrorTbd" "unknown error";
}

impl HipError {
    /// `hipErrorUnknown`: unknown error. Codes without a name of their own are shown under this name.
    pub const UNKNOWN: Self = Self(999);

    /// Converts a code to a result: 0 is success.
    ///
    /// # Errors
    /// Every other code, known or not.
    pub fn check(code: i32) -> HipResult<()> {
        if code == 0 { Ok(()) } else { Err(Self(code)) }
    }

    /// Converts a result to a code: success is 0.
    pub fn code_of<T>(result: &HipResult<T>) -> i32 {
        match result {
            Ok(_) => 0,
            Err(error) => error.0,
        }
    }

    /// Iterates over the errors that have names of their own, by code.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        ROWS.iter().map(|row| Self(row.code))
    }

    /// Returns the place of the error among [all](Self::all), unless it has no name of its own.
    pub fn row(self) -> Option<usize> {
        ROWS.binary_search_by_key(&self.0, |row| row.code).ok()
    }

    /// Returns whether the code has a name of its own.
    pub fn is_known(self) -> bool {
        row(self.0).is_some()
    }

    /// Returns the name, such as `hipErrorInvalidValue`.
    pub fn name(self) -> &'static str {
        utf8(error_name(self.0))
    }

    /// Returns the message, such as `invalid argument`.
    pub fn message(self) -> &'static str {
        utf8(error_message(self.0))
    }
}

/// Returns what `hipGetErrorName` returns for `code`; 0 is `hipSuccess`.
pub fn error_name(code: i32) -> &'static CStr {
    if code == 0 { c"hipSuccess" } else { row(code).map_or(c"hipErrorUnknown", |row| row.name) }
}

/// Returns what `hipGetErrorString` returns for `code`; 0 is `no error`.
pub fn error_message(code: i32) -> &'static CStr {
    if code == 0 { c"no error" } else { row(code).map_or(c"unknown error", |row| row.message) }
}

fn row(code: i32) -> Option<&'static Row> {
    HipError(code).row().and_then(|i| ROWS.get(i))
}

/// Converts a text of the table; all of them are ASCII.
fn utf8(text: &'static CStr) -> &'static str {
    text.to_str().unwrap_or("")
}

impl fmt::Debug for HipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for HipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.name(), self.message(), self.0)
    }
}

impl core::error::Error for HipError {}
