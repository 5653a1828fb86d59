//! What hipr's tests share: a client that says what a test wants, a launcher of kernels, a proxy that delays and
//! counts. The end-to-end tests themselves are in `tests/tests` and `cli/tests`.

mod chain;
pub mod faults;
mod gpu;
mod process;
mod proxy;
pub mod suite;
pub mod toolchain;
mod wire_client;
mod worker;

pub use chain::Chain;
pub use gpu::{Argument, Buffer, Dim, Gpu};
pub use process::{WorkerProcess, eventually, process_lives};
pub use proxy::{Proxy, Traffic};
pub use wire_client::{Replied, WireClient};
pub use worker::{TestWorker, built_library, library, library_folder, start_worker};
