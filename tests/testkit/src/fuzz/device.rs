//! The emulated device, shared by all inputs, and a client that waits for it.

use std::num::NonZero;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::task::Poll;

use hipr_code_object::{CodeObject, Format};
use hipr_device::{Context, WaitFor, Waker};
use hipr_proto::HipResult;
use hipr_sim::{Config, Gpu, SimContext};

/// Maximum number of instructions of one launch.
pub(super) const INSTRUCTIONS_MAX: u64 = 8192;

/// The emulated GPU, with one thread so that equal inputs behave equally.
static GPU: LazyLock<Gpu> = LazyLock::new(|| {
    let config = Config {
        threads: NonZero::new(1),
        memory_bytes: Some(16 << 20),
        kernel_instructions_max: Some(INSTRUCTIONS_MAX),
        ..Config::default()
    };
    Gpu::new(config).expect("a thread for the emulator")
});

/// A context of the device, with the means to wait for it.
pub(super) struct Client {
    pub(super) context: SimContext,
    woken: Arc<(Mutex<bool>, Condvar)>,
}

impl Client {
    pub(super) fn new() -> Self {
        let woken = Arc::new((Mutex::new(false), Condvar::new()));
        let signal = Arc::clone(&woken);
        let context = GPU.context(Waker::new(move || {
            *signal.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            signal.1.notify_all();
        }));
        Self { context, woken }
    }

    /// Waits until all work is done; returns its first error.
    pub(super) fn sync(&mut self) -> HipResult<()> {
        loop {
            if let Poll::Ready(result) = self.context.poll_sync(WaitFor::Device) {
                return result;
            }
            let mut woken = self.woken.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !std::mem::take(&mut *woken) {
                woken = self.woken.1.wait(woken).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Loads a code object as a worker does, looks up everything in it, and unloads it.
pub(super) fn load(image: &[u8]) {
    // What a bundle may unpack to is another target's concern.
    if Format::sniff(image) != Some(Format::Elf) {
        return;
    }
    let mut client = Client::new();
    let Ok(module) = client.context.module_load(image.to_vec()) else { return };
    let code = CodeObject::parse(image).expect("it was loaded");
    for kernel in code.kernels() {
        if let Ok(info) = client.context.function(module, &kernel.name) {
            assert_eq!(info.kernarg_size_bytes, kernel.kernarg_bytes);
            assert_eq!(info.params.map(|params| params.len()), Some(kernel.explicit_params().count()));
            client.context.function_attributes(info.handle).expect("the handle is known");
            assert!(client.context.max_active_blocks(info.handle, 64, 0).is_ok_and(|blocks| blocks >= 0));
        }
    }
    for global in code.globals() {
        if let Ok((_, size)) = client.context.global(module, &global.name) {
            assert_eq!(size, global.size);
        }
    }
    client.context.module_unload(module).expect("the module is loaded");
    client.sync().expect("nothing can fail");
}
