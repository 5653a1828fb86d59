//! Runs generated kernels on the host and on the emulator.

use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;

use hipr_device::{Args, Context, Launch, MemoryKind, Origin, Param, Region, WaitFor, Waker};
use hipr_proto::HipResult;
use hipr_sim::{Gpu, SimContext};

use crate::inputs::{GROUP, GROUPS};
use crate::{Compiler, Unit};

/// Result words of a lane, as in `prelude.h`.
const OUT_WORDS: usize = 4;
/// Number of words of memory that all workgroups share.
const SHARED_WORDS: usize = 64;

/// For each kernel, the results of all lanes, then the shared words.
pub type Results = Vec<Vec<u32>>;

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Runs the kernels on the host.
pub fn on_host(compiler: &Compiler, unit: &Unit, source: &str, inputs: &[u32]) -> Results {
    let arguments = [GROUPS.to_string(), SHARED_WORDS.to_string()];
    let output = compiler.host(source, &arguments.each_ref().map(String::as_str), &bytes(inputs));
    let each = (GROUPS * GROUP * OUT_WORDS + SHARED_WORDS) * 4;
    assert_eq!(output.len(), unit.kernels.len() * each, "the host's output");
    output.chunks(each).map(words).collect()
}

/// A context of the emulated GPU, with the means to wait for it.
struct Session {
    context: SimContext,
    woken: Arc<(Mutex<bool>, Condvar)>,
}

impl Session {
    fn open(gpu: &Gpu) -> Self {
        let woken = Arc::<(Mutex<bool>, Condvar)>::default();
        let signal = Arc::clone(&woken);
        let context = gpu.context(Waker::new(move || {
            *signal.0.lock().expect("nobody panics with it") = true;
            signal.1.notify_all();
        }));
        Self { context, woken }
    }

    fn sync(&mut self) -> HipResult<()> {
        loop {
            if let Poll::Ready(result) = self.context.poll_sync(WaitFor::Device) {
                return result;
            }
            let woken = self.woken.0.lock().expect("nobody panics with it");
            let mut woken = self.woken.1.wait_while(woken, |woken| !*woken).expect("nobody panics with it");
            *woken = false;
        }
    }

    fn buffer(&mut self, contents: &[u32]) -> (u64, Region) {
        let contents = bytes(contents);
        let len_bytes = contents.len() as u64;
        let ptr = self.context.malloc(len_bytes, MemoryKind::Device, 0).expect("device memory");
        let region = Region::flat(ptr, len_bytes);
        self.context.write(&region, 0, &contents).expect("it is written");
        (ptr, region)
    }

    fn read(&mut self, region: &Region) -> Vec<u32> {
        let mut out = vec![0; region.width as usize];
        self.context.read(region, 0, &mut out).expect("it is read");
        words(&out)
    }
}

/// Runs the kernels of a code object on the emulator. Fails with the name of a kernel that fails.
///
/// # Errors
/// The code object does not load, or a kernel fails.
pub fn on_emulator(gpu: &Gpu, names: &[String], image: &[u8], inputs: &[u32]) -> Result<Results, String> {
    let mut session = Session::open(gpu);
    let module =
        session.context.module_load(image.to_vec()).map_err(|error| format!("the code object: {error}"))?;
    let (input, _) = session.buffer(inputs);
    let mut results = Results::new();
    for name in names {
        let function = session.context.function(module, name).map_err(|error| format!("{name}: {error}"))?;
        let (out, out_region) = session.buffer(&vec![0; GROUPS * GROUP * OUT_WORDS]);
        let (shared, shared_region) = session.buffer(&[0; SHARED_WORDS]);
        let data: Vec<u8> = [input, out, shared].iter().flat_map(|ptr| ptr.to_le_bytes()).collect();
        let table = [0, 8, 16].map(|offset| Param { offset, size: 8 });
        let launch = Launch {
            function: function.handle,
            grid: [GROUPS as u32, 1, 1],
            block: [GROUP as u32, 1, 1],
            shared_mem_bytes: 0,
            stream: 0,
            args: Args::Params { table: &table, data: &data },
            start_event: None,
            stop_event: None,
            cooperative: false,
            origin: Origin::NONE,
        };
        let launched = session.context.launch(&launch).and_then(|()| session.sync());
        launched.map_err(|error| format!("{name}: {error}"))?;
        let mut result = session.read(&out_region);
        result.extend(session.read(&shared_region));
        results.push(result);
        for ptr in [out, shared] {
            while session.context.poll_free(ptr).is_pending() {
                std::thread::yield_now();
            }
        }
    }
    Ok(results)
}
