//! `hipr bench secured`: what keys and encryption cost: copies beside a plain stream of rustls, launches and round trips beside a worker
//! without encryption.

use super::latency::{self, Latencies, Percentiles};
use super::place::{Core, Place};
use super::process::Process;
use super::program::{Api, LAUNCH_BYTES, Program, Task, connect, rate};
use super::report::{Figure, Goal, Report, Unit};
use super::rounds::{Rounds, Subject};
use super::transport::Transport;
use crate::worker::Size;
use clap::Args;
use hipr_client::{Connection, Extra};
use hipr_proto::op::{self, kind};
use hipr_tls::{ClientIdentity, WorkerIdentity, make_key, read_key};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Goal: a copy divided by a plain stream of rustls, at least.
const COPY_MIN: f64 = 0.8;
/// Goals: launches and round trips divided by those without encryption.
const LAUNCH_MIN: f64 = 0.85;
const RTT_MAX: f64 = 1.15;
/// Bytes that both ends of the plain stream read or write at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Options of `hipr bench secured`.
#[derive(Debug, Args)]
pub(crate) struct Secured {
    /// The worker's event loop.
    #[arg(long, value_name = "LOOP", default_value = "mio")]
    io: String,
    /// Size of a copy.
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    size: Size,
    #[command(flatten)]
    rounds: Rounds,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
    /// Measures with the keys in the folder of settings that the environment names.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Runs the benchmark and prints its report.
pub(crate) fn run(options: &Secured) -> Result<(), String> {
    if options.inside {
        return measure(options, &hipr_tls::config_folder().map_err(|why| why.to_string())?);
    }
    let folder = tempfile::tempdir().map_err(|why| format!("cannot create a folder: {why}"))?;
    let keys = folder.path().join("hipr");
    let made = |name| make_key(&keys.join(name), false).map_err(|why| why.to_string());
    let (user, _) = (made("key")?, made("worker-key")?);
    let written = fs::write(keys.join("authorized"), user.public().to_string());
    written.map_err(|why| format!("cannot write the user's key: {why}"))?;
    // The client library finds its keys by the environment.
    let mut again = Command::new("/proc/self/exe");
    again.args(std::env::args_os().skip(1)).arg("--inside").env("XDG_CONFIG_HOME", folder.path());
    let status = again.status().map_err(|why| format!("cannot start a process: {why}"))?;
    if status.success() { Ok(()) } else { Err("the measurement failed".into()) }
}

fn measure(options: &Secured, keys: &Path) -> Result<(), String> {
    let size = usize::try_from(options.size.0).map_err(|why| why.to_string())?;
    let authorized = keys.join("authorized");
    let authorized = authorized.to_str().ok_or("the folder's name is not text")?;
    let plain = ["worker", "--device", "null", "--io", &options.io];
    let asks = [&plain[..], &["--authorized", authorized]].concat();
    let place = Place::Apart;
    let (own, others) = place.cores()?;
    let (plain, asks) =
        (Process::server(&plain, Transport::Tcp, others)?, Process::server(&asks, Transport::Tcp, others)?);
    own.map_or(Ok(()), Core::take)?;
    let worker = read_key(&keys.join("worker-key")).map_err(|why| why.to_string())?;
    let secured = format!("hipr://{}@{}", worker.public().fingerprint(), asks.address());

    let before = kernel_connections();
    let mut copies = vec![
        copy(&secured, kind::HOST_TO_DEVICE, size)?,
        stream(keys, kind::HOST_TO_DEVICE, size, others)?,
        copy(plain.address(), kind::HOST_TO_DEVICE, size)?,
        copy(&secured, kind::DEVICE_TO_HOST, size)?,
        stream(keys, kind::DEVICE_TO_HOST, size, others)?,
        copy(plain.address(), kind::DEVICE_TO_HOST, size)?,
        launches(&secured)?,
        launches(plain.address())?,
    ];
    options.rounds.measure(&mut copies)?;
    let mut trips = vec![round_trips(&secured)?, round_trips(plain.address())?];
    options.rounds.measure(&mut trips)?;

    let mut report = Report::new("secured", &options.rounds);
    report.set("io", &options.io);
    report.set("size", options.size);
    report.set("place", place);
    report.set("encrypts", if kernel_connections() > before { "the kernel (kTLS)" } else { "the worker" });
    report.notes.push(format!(
        "Client and worker are processes of their own; {}. A launch has {LAUNCH_BYTES} bytes.",
        place.note()
    ));
    let [h2d, h2d_rustls, h2d_plain, d2h, d2h_rustls, d2h_plain, launch, launch_plain] = copies.as_slice()
    else {
        return Err("nothing was measured".into());
    };
    for (name, own, rustls, plain) in [
        ("copies to the device", h2d, h2d_rustls, h2d_plain),
        ("copies from the device", d2h, d2h_rustls, d2h_plain),
    ] {
        let figure = Figure::new(name, Unit::BytesPerSecond, &own.samples, Goal::None)
            .compare("a plain stream of rustls", &own.samples, &rustls.samples, Goal::AtLeast(COPY_MIN))
            .compare("without encryption", &own.samples, &plain.samples, Goal::None);
        report.figures.push(figure);
    }
    let figure = Figure::new("launches", Unit::PerSecond, &launch.samples, Goal::None);
    let goal = Goal::AtLeast(LAUNCH_MIN);
    report.figures.push(figure.compare("without encryption", &launch.samples, &launch_plain.samples, goal));
    let [own, other] = trips.as_slice() else { return Err("nothing was measured".into()) };
    let others = [("without encryption".to_owned(), other.samples.as_slice(), Goal::AtMost(RTT_MAX))];
    report.figures.extend(latency::figures("synchronize", &own.samples, Goal::None, &others));
    report.print(options.json)
}

/// Returns how many connections the kernel of this machine has begun to encrypt.
fn kernel_connections() -> u64 {
    let stats = fs::read_to_string("/proc/net/tls_stat").unwrap_or_default();
    let line = stats.lines().find_map(|line| line.strip_prefix("TlsTxSw"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn round_trips<'a>(address: &str) -> Result<Subject<'a, Percentiles>, String> {
    let connection = connect(address)?;
    Ok(Subject::new(move |time| {
        let ask = || connection.ask(&op::DeviceSynchronize {}).map_err(|why| why.to_string());
        Ok(Latencies::of_calls(time, ask)?.percentiles())
    }))
}

fn buffer(connection: &Connection, size: usize) -> Result<u64, String> {
    let made = connection.ask(&op::Malloc { size: size as u64, flags: 0 });
    made.map(|reply| reply.device_ptr).map_err(|why| why.to_string())
}

/// Returns launches with six arguments, as those of `hipr bench launch`.
fn launches<'a>(address: &str) -> Result<Subject<'a>, String> {
    let mut program = Program::start(Api::Rust, address, 0, false)?;
    Ok(Subject::new(move |time| program.turn(Task::Launch, time)))
}

fn copy<'a>(address: &str, kind: i32, size: usize) -> Result<Subject<'a>, String> {
    let connection = connect(address)?;
    let device = buffer(&connection, size)?;
    let mut host = vec![0x5a; size];
    let (dst, src) = if kind == kind::HOST_TO_DEVICE { (device, 0) } else { (0, device) };
    let copy = op::Memcpy { dst, src, size: size as u64, kind, stream: 0 };
    Ok(Subject::new(move |time| {
        let result = if kind == kind::HOST_TO_DEVICE {
            let extra = Extra { inline: &host, ..Extra::default() };
            let finish = || connection.ask(&op::DeviceSynchronize {}).map(drop);
            rate(time, size as f64, || connection.tell_with(&copy, extra), finish)
        } else {
            let read = || connection.read(&copy, Extra::default(), &mut host).map(drop);
            rate(time, size as f64, read, || Ok(()))
        };
        result.map_err(|why| why.to_string())
    }))
}

/// Returns the same bytes over a plain stream of rustls with the same keys and ciphers, between two threads.
fn stream<'a>(keys: &Path, kind: i32, size: usize, core: Option<Core>) -> Result<Subject<'a>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("the plain stream of rustls: {why}");
    let user = read_key(&keys.join("key")).map_err(|why| failed(&why))?;
    let worker = read_key(&keys.join("worker-key")).map_err(|why| failed(&why))?;
    let user = ClientIdentity::new(&user).map_err(|why| failed(&why))?;
    let worker = WorkerIdentity::new(&worker, &keys.join("authorized")).map_err(|why| failed(&why))?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|why| failed(&why))?;
    let address = listener.local_addr().map_err(|why| failed(&why))?;
    let server = ServerConnection::new(worker.rustls()).map_err(|why| failed(&why))?;
    thread::spawn(move || {
        core.map_or(Ok(()), Core::take).map_err(io::Error::other)?;
        listener.accept().and_then(|(socket, _)| serve(StreamOwned::new(server, socket)))
    });
    let name = "hipr".try_into().map_err(|why| failed(&why))?;
    let client = ClientConnection::new(user.rustls(), name).map_err(|why| failed(&why))?;
    let socket = TcpStream::connect(address).map_err(|why| failed(&why))?;
    socket.set_nodelay(true).map_err(|why| failed(&why))?;
    let mut stream = StreamOwned::new(client, socket);
    let mut chunk = vec![0x5a; CHUNK_BYTES];
    let is_write = kind == kind::HOST_TO_DEVICE;
    Ok(Subject::new(move |time: Duration| {
        let work = || -> io::Result<()> {
            stream.write_all(&[u8::from(is_write)])?;
            stream.write_all(&(size as u64).to_le_bytes())?;
            if is_write {
                pour(&mut stream, &chunk, size)?;
                stream.flush()?;
                stream.read_exact(&mut [0])
            } else {
                stream.flush()?;
                drain(&mut stream, &mut chunk, size)
            }
        };
        rate(time, size as f64, work, || Ok(())).map_err(|why| failed(&why))
    }))
}

fn serve(mut stream: StreamOwned<ServerConnection, TcpStream>) -> io::Result<()> {
    let mut chunk = vec![0x5a; CHUNK_BYTES];
    stream.sock.set_nodelay(true)?;
    loop {
        let (mut is_write, mut size) = ([0], [0; 8]);
        stream.read_exact(&mut is_write)?;
        stream.read_exact(&mut size)?;
        let size = usize::try_from(u64::from_le_bytes(size)).map_err(io::Error::other)?;
        if is_write == [1] {
            drain(&mut stream, &mut chunk, size)?;
            stream.write_all(&[0])?;
        } else {
            pour(&mut stream, &chunk, size)?;
        }
        stream.flush()?;
    }
}

fn pour(stream: &mut impl Write, chunk: &[u8], size: usize) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        let piece = chunk.get(..left.min(chunk.len())).unwrap_or_default();
        stream.write_all(piece)?;
        left -= piece.len();
    }
    Ok(())
}

fn drain(stream: &mut impl Read, chunk: &mut [u8], size: usize) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        let room = left.min(chunk.len());
        match stream.read(chunk.get_mut(..room).unwrap_or_default())? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read,
        }
    }
    Ok(())
}
