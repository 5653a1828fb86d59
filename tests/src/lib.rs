//! Shared code of hipr's tests: a client that sends what a test wants, a launcher of kernels, a proxy that delays and
//! counts. The end-to-end tests are in `tests/tests` and `cli/tests`.

pub mod attack;
mod chain;
pub mod chained;
pub mod circles;
pub mod counts;
pub mod distance;
mod door;
pub mod faults;
mod gpu;
pub mod items;
pub mod metrics;
pub mod overlap;
mod process;
mod proxy;
mod saxpy;
pub mod soiled;
pub mod suite;
pub mod toolchain;
mod wire_client;
mod worker;

pub use chain::Chain;
pub use door::open_door;
pub use gpu::{Argument, Buffer, Dim, Gpu};
pub use process::{WorkerProcess, eventually, process_lives, process_status_bytes};
pub use proxy::{Conversation, Cuts, Direction, Flight, Link, Proxy, Share, Traffic};
pub use saxpy::add_floats;
pub use wire_client::{Replied, WireClient};
pub use worker::{
    TestWorker, built_library, library, library_folder, start_worker, start_worker_with_cache,
    start_worker_with_limit,
};
