//! Launches and copies, as programs make them: through hipr's Rust API, or through HIP's C API in a process of its own.

use super::process::{Process, command};
use crate::library::{self, Folder};
use clap::ValueEnum;
use hipr_client::{Connection, Extra, WorkerAddress};
use hipr_proto::op::{self, LaunchArgs, LaunchKernel, Param, kind};
use hipr_proto::{Header, Wire};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// `bench/six.hip`, compiled by hipcc for gfx942; `bench/build.sh` rebuilds it.
pub(crate) static KERNEL: &[u8] = include_bytes!("../../bench/six.co");
/// Name of its kernel.
pub(crate) const KERNEL_NAME: &str = "six";
/// The kernel's arguments after the address of the sum: the numbers that it adds.
pub(crate) const SUMMANDS: [u64; 5] = [1, 2, 3, 4, 5];
/// Launches between two reads of the clock.
pub(crate) const LAUNCHES: usize = 1000;
/// Block size of a launch.
pub(crate) const BLOCK: [u32; 3] = [64, 1, 1];

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of the kernel's arguments, each of 8 bytes.
const ARGUMENTS: usize = 1 + SUMMANDS.len();
/// Size of a launch on the wire in bytes.
pub(crate) const LAUNCH_BYTES: usize =
    Header::SIZE + LaunchKernel::SIZE + Param::SIZE + ARGUMENTS * u64::SIZE;

/// The API that a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// The Rust API of the client.
    Rust,
    /// The C API, `libamdhip64.so`, which HIP programs use.
    C,
}

impl Api {
    /// Returns the name that reports show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust API",
            Self::C => "C API",
        }
    }
}

/// The calls that a program makes in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Launches, then one synchronize; measured in launches per second.
    Launch,
    /// Copies to the device, then one synchronize; measured in bytes per second.
    H2d,
    /// Copies to the host; measured in bytes per second.
    D2h,
}

/// A program that executes tasks, with either API.
pub(crate) enum Program {
    Rust(RustProgram),
    C(CProgram),
}

impl Program {
    /// Connects a program to the worker at `address`; its copies have `size_bytes`. If the device `computes`, the Rust API
    /// checks the kernel's result after each turn.
    ///
    /// # Errors
    /// It does not get what it needs.
    pub(crate) fn start(api: Api, address: &str, size_bytes: usize, computes: bool) -> Result<Self, String> {
        match api {
            Api::Rust => RustProgram::start(address, size_bytes, computes).map(Self::Rust),
            Api::C => CProgram::start(address, size_bytes).map(Self::C),
        }
    }

    /// Executes `task` for about `time`; returns the rate per second.
    ///
    /// # Errors
    /// A call fails.
    pub(crate) fn turn(&mut self, task: Task, time: Duration) -> Result<f64, String> {
        match self {
            Self::Rust(program) => program.turn(task, time),
            Self::C(program) => program.turn(task, time),
        }
    }
}

/// A program that uses the Rust API.
pub(crate) struct RustProgram {
    connection: Connection,
    launch: LaunchKernel,
    args: Vec<u8>,
    device: u64,
    host: Vec<u8>,
    computes: bool,
}

/// Connects to a worker.
///
/// # Errors
/// There is none.
pub(crate) fn connect(address: &str) -> Result<Connection, String> {
    Connection::connect(&WorkerAddress::new(address), CONNECT_TIMEOUT).map_err(|why| why.to_string())
}

impl RustProgram {
    fn start(address: &str, size_bytes: usize, computes: bool) -> Result<Self, String> {
        let connection = connect(address)?;
        let (launch, args, device) = Self::prepare(&connection, size_bytes).map_err(|why| why.to_string())?;
        // Not zero: pages that were never written are cheaper to read than a program's.
        Ok(Self { connection, launch, args, device, host: vec![0x5a; size_bytes], computes })
    }

    fn prepare(
        connection: &Connection,
        size_bytes: usize,
    ) -> Result<(LaunchKernel, Vec<u8>, u64), Box<dyn std::error::Error>> {
        let function = load_kernel(connection)?;
        let size = size_bytes.max(u64::SIZE) as u64;
        let device = connection.ask(&op::Malloc { size, flags: 0 })?.device_ptr;
        let (launch, args) = launch(function, device);
        Ok((launch, args, device))
    }

    fn copy(&self, kind: i32, size_bytes: usize) -> op::Memcpy {
        let (dst, src) = if kind == kind::HOST_TO_DEVICE { (self.device, 0) } else { (0, self.device) };
        op::Memcpy { dst, src, size: size_bytes as u64, kind, stream: 0 }
    }

    fn turn(&mut self, task: Task, time: Duration) -> Result<f64, String> {
        let (to_device, to_host) = (
            self.copy(kind::HOST_TO_DEVICE, self.host.len()),
            self.copy(kind::DEVICE_TO_HOST, self.host.len()),
        );
        let Self { connection, launch, args, host, .. } = self;
        let synchronize = || connection.ask(&op::DeviceSynchronize {});
        let result = match task {
            Task::Launch => {
                let extra = Extra { tail: args, ..Extra::default() };
                let launches = || (0..LAUNCHES).try_for_each(|_| connection.tell_with(launch, extra));
                rate(time, LAUNCHES as f64, launches, synchronize)
            }
            Task::H2d => {
                let extra = Extra { inline: host, ..Extra::default() };
                rate(time, host.len() as f64, || connection.tell_with(&to_device, extra), synchronize)
            }
            Task::D2h => {
                let len = host.len() as f64;
                rate(time, len, || connection.read(&to_host, Extra::default(), host), || Ok(()))
            }
        };
        let rate = result.map_err(|why| why.to_string())?;
        if task == Task::Launch && self.computes {
            self.check_sum()?;
        }
        Ok(rate)
    }

    fn check_sum(&mut self) -> Result<(), String> {
        let mut sum = [0; u64::SIZE];
        let copy = self.copy(kind::DEVICE_TO_HOST, sum.len());
        self.connection.read(&copy, Extra::default(), &mut sum).map_err(|why| why.to_string())?;
        match u64::from_le_bytes(sum) {
            sum if sum == SUMMANDS.iter().sum::<u64>() => Ok(()),
            sum => Err(format!("the kernel computed {sum} as the sum of {SUMMANDS:?}")),
        }
    }
}

/// Loads the kernel; returns its handle.
///
/// # Errors
/// The worker's, or those of the connection.
pub(crate) fn load_kernel(connection: &Connection) -> Result<u64, Box<dyn std::error::Error>> {
    let load = op::ModuleLoadData { data_size: KERNEL.len() as u64 };
    let module = connection.ask_with(&load, Extra { inline: KERNEL, ..Extra::default() })?.module;
    let mut tail = Vec::new();
    op::put_name(KERNEL_NAME, &mut tail)?;
    let name = Extra { tail: &tail, ..Extra::default() };
    Ok(connection.ask_with(&op::ModuleGetFunction { module }, name)?.function)
}

/// Returns a launch of the kernel and its arguments; the sum is written to `sum`.
pub(crate) fn launch(function: u64, sum: u64) -> (LaunchKernel, Vec<u8>) {
    launch_adding(function, sum, SUMMANDS)
}

/// Returns a launch of the kernel that adds these numbers, and its arguments: in one buffer, as the client library sends them.
pub(crate) fn launch_adding(
    function: u64,
    sum: u64,
    summands: [u64; SUMMANDS.len()],
) -> (LaunchKernel, Vec<u8>) {
    let mut data = Vec::new();
    sum.put(&mut data);
    summands.iter().for_each(|summand| summand.put(&mut data));
    let mut args = Vec::new();
    LaunchArgs::put(&[Param { offset: 0, size: data.len() as u32 }], &data, &mut args);
    let [block_dim_x, block_dim_y, block_dim_z] = BLOCK;
    let launch = LaunchKernel {
        function,
        grid_dim_x: 1,
        grid_dim_y: 1,
        grid_dim_z: 1,
        block_dim_x,
        block_dim_y,
        block_dim_z,
        num_args: 1,
        launch_flags: 1,
        ..LaunchKernel::ZERO
    };
    (launch, args)
}

/// Repeats `work`, which does `amount`, for about `time`, then calls `finish`; returns the amount per second.
pub(crate) fn rate<R, E>(
    time: Duration,
    amount: f64,
    mut work: impl FnMut() -> Result<R, E>,
    finish: impl FnOnce() -> Result<R, E>,
) -> Result<f64, E> {
    let start = Instant::now();
    let mut done = 0.0;
    while start.elapsed() < time {
        work()?;
        done += amount;
    }
    finish()?;
    Ok(done / start.elapsed().as_secs_f64())
}

/// A program in a process of its own that uses HIP's C API through hipr's library; see [`super::c_program`].
pub(crate) struct CProgram {
    process: Process,
    /// The folder that shows the library under its names.
    _folder: Folder,
}

impl CProgram {
    fn start(address: &str, size_bytes: usize) -> Result<Self, String> {
        let folder = library::CLIENT.folder()?;
        let mut command = command(&["bench", "c-program", "--size", &size_bytes.to_string()], None);
        command
            .env("LD_LIBRARY_PATH", folder.search_path())
            .env("HIPR_WORKER", address)
            .stdin(Stdio::piped());
        Ok(Self { process: Process::start(command)?, _folder: folder })
    }

    fn turn(&mut self, task: Task, time: Duration) -> Result<f64, String> {
        let input = self.process.input().ok_or("the program has no standard input")?;
        let task = task.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        writeln!(input, "{task} {}", time.as_secs_f64())
            .map_err(|why| format!("the program ended early: {why}"))?;
        let line = self.process.line()?;
        line.parse().map_err(|_| format!("the program printed '{line}' instead of a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hipr_proto::op::LaunchMode;

    #[test]
    fn a_launch_has_six_arguments_of_eight_bytes() {
        let (launch, args) = launch(7, 8);
        assert_eq!(Header::SIZE + LaunchKernel::SIZE + args.len(), LAUNCH_BYTES);
        assert_eq!(LAUNCH_BYTES, 152);
        let parsed = LaunchArgs::parse(&launch, &args).expect("what a worker reads");
        assert_eq!(parsed.mode(), LaunchMode::Flat);
        let (values, rest) = parsed.flat().as_chunks();
        assert_eq!(
            (values.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(), rest),
            (vec![8, 1, 2, 3, 4, 5], &[][..])
        );
    }

    #[test]
    fn a_rate_counts_what_was_done_until_the_finish() {
        let (mut works, mut finished) = (0, false);
        let time = Duration::from_millis(2);
        let start = Instant::now();
        let work = || {
            works += 1;
            Ok::<_, ()>(())
        };
        let finish = || {
            finished = true;
            Ok(())
        };
        let rate = rate(time, 10.0, work, finish).expect("no error");
        let longest = start.elapsed().as_secs_f64();
        assert!(finished && works > 0);
        let done = f64::from(works) * 10.0;
        assert!(rate >= done / longest && rate <= done / time.as_secs_f64());
    }
}
