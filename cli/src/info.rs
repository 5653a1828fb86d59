//! `hipr info`: shows the devices, versions and round-trip times of workers.

use crate::output::say;
use clap::Args;
use hipr_client::{CallError, Connection, WorkerAddress, accept_invitation, offer_from_env};
use hipr_proto::{HipError, op};
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of round trips, whose median is shown.
const PINGS: usize = 11;

/// Options of `hipr info`.
#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Address of the worker, hipr://HOST:PORT for one that asks for keys; several with commas between them, or @FILE with one in each line. [default: HIPR_WORKER, else port 18515 on this machine]
    #[arg(long, value_name = "HOST:PORT")]
    worker: Option<String>,
    /// Prints one JSON document instead of a table.
    #[arg(long)]
    json: bool,
}

/// The printed report.
#[derive(Debug, Serialize)]
struct Report {
    worker: String,
    protocol: String,
    runtime_version: i32,
    driver_version: i32,
    round_trip_us: f64,
    devices: Vec<Device>,
}

#[derive(Debug, Serialize)]
struct Device {
    name: String,
    gcn_arch_name: String,
    total_memory_bytes: u64,
    free_memory_bytes: u64,
    compute_units: i32,
    wavefront_size: i32,
    max_threads_per_block: i32,
    shared_memory_per_block_bytes: u64,
    clock_khz: i32,
    memory_clock_khz: i32,
    memory_bus_bits: i32,
    l2_cache_bytes: i32,
    pci: String,
}

/// Queries the workers and prints a report of each.
pub(crate) fn run(options: Info) -> Result<ExitCode, String> {
    let addresses = match &options.worker {
        Some(text) => WorkerAddress::all(text)?,
        None => WorkerAddress::all_from_env()?,
    };
    let reports = addresses.iter().map(report).collect::<Result<Vec<_>, _>>()?;
    if options.json {
        let text = match &*reports {
            [only] => serde_json::to_string_pretty(only),
            all => serde_json::to_string_pretty(all),
        };
        say!("{}", text.map_err(|why| why.to_string())?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut first = 0;
    for report in &reports {
        if first > 0 {
            say!("");
        }
        print(report, first);
        first += report.devices.len();
    }
    Ok(ExitCode::SUCCESS)
}

/// Queries a worker.
fn report(address: &WorkerAddress) -> Result<Report, String> {
    let address = accept_invitation(address, CONNECT_TIMEOUT).map_err(|why| why.to_string())?;
    let connection = Connection::connect_offering(&address, CONNECT_TIMEOUT, offer_from_env())
        .map_err(|why| why.to_string())?;
    collect(&connection).map_err(|why| format!("worker {address}: {why}"))
}

fn collect(connection: &Connection) -> Result<Report, CallError> {
    let mut round_trips_us = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let start = Instant::now();
        connection.ask(&op::Ping {})?;
        round_trips_us.push(start.elapsed().as_secs_f64() * 1e6);
    }
    round_trips_us.sort_by(f64::total_cmp);
    // A runtime without a GPU is something to report, and no failure.
    let count = match connection.device_count() {
        Err(CallError::Hip(HipError::NO_DEVICE)) => 0,
        count => count?,
    };
    let devices = (0..count).map(|device| self::device(connection, device)).collect::<Result<_, _>>()?;
    Ok(Report {
        worker: connection.address().to_string(),
        protocol: format!("HIPR {}.{}", hipr_proto::VERSION >> 8, hipr_proto::VERSION & 0xff),
        runtime_version: connection.ask(&op::RuntimeGetVersion {})?.version,
        driver_version: connection.ask(&op::DriverGetVersion {})?.version,
        round_trip_us: round_trips_us[PINGS / 2],
        devices,
    })
}

fn device(connection: &Connection, device_id: i32) -> Result<Device, CallError> {
    let properties = connection.ask(&op::GetDeviceProperties { device_id })?;
    connection.ask(&op::SetDevice { device_id })?;
    let memory = connection.ask(&op::MemGetInfo {})?;
    Ok(Device {
        name: properties.name.to_string(),
        gcn_arch_name: properties.gcn_arch_name.to_string(),
        total_memory_bytes: memory.total_bytes,
        free_memory_bytes: memory.free_bytes,
        compute_units: properties.multi_processor_count,
        wavefront_size: properties.warp_size,
        max_threads_per_block: properties.max_threads_per_block,
        shared_memory_per_block_bytes: properties.shared_mem_per_block,
        clock_khz: properties.clock_rate,
        memory_clock_khz: properties.memory_clock_rate,
        memory_bus_bits: properties.memory_bus_width,
        l2_cache_bytes: properties.l2_cache_size,
        pci: format!(
            "{:04x}:{:02x}:{:02x}.0",
            properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id
        ),
    })
}

/// Formats HIP's version number: major * 10^7 + minor * 10^5 + patch.
fn version(number: i32) -> String {
    format!("{}.{}.{}", number / 10_000_000, number / 100_000 % 100, number % 100_000)
}

/// Prints a report, whose first device has the number `first` in the program's list.
fn print(report: &Report, first: usize) {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    say!("worker      {}", report.worker);
    say!("protocol    {}", report.protocol);
    say!("round trip  {:.0} us (median of {PINGS})", report.round_trip_us);
    say!("runtime     {}, driver {}", version(report.runtime_version), version(report.driver_version));
    if report.devices.is_empty() {
        say!("devices     none");
    }
    for (number, device) in (first..).zip(&report.devices) {
        say!("\ndevice {number}    {}", device.name);
        say!("  architecture   {}, wavefront of {}", device.gcn_arch_name, device.wavefront_size);
        say!("  compute units  {} at {} MHz", device.compute_units, device.clock_khz / 1000);
        say!(
            "  memory         {:.1} GiB free of {:.1}, {} bits at {} MHz",
            gib(device.free_memory_bytes),
            gib(device.total_memory_bytes),
            device.memory_bus_bits,
            device.memory_clock_khz / 1000
        );
        say!("  L2 cache       {} KiB", device.l2_cache_bytes / 1024);
        say!(
            "  workgroup      {} threads, {} KiB of LDS",
            device.max_threads_per_block,
            device.shared_memory_per_block_bytes / 1024
        );
        say!("  PCI            {}", device.pci);
    }
}
