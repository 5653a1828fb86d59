//! Tests the options of `hipr worker`: device, limits of sessions, mistakes.

use hipr_code_object::select;
use hipr_proto::op::{self, kind};
use hipr_proto::{Features, HipError, Op};
use hipr_tests::{WireClient, WorkerProcess, eventually};
use std::path::Path;
use std::process::{Command, Output};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");

/// The demo's kernels.
static KERNELS: &[u8] = include_bytes!("../demo/kernels.co");

fn hipr(args: &[&str]) -> Output {
    Command::new(HIPR).args(args).output().expect("hipr runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts workers with these options, without and with processes for sessions.
fn workers(options: &[&str]) -> Vec<WorkerProcess> {
    let start = |how| {
        let options = [&["--device", "sim", "--isolate", how], options].concat();
        WorkerProcess::start_logged(Path::new(HIPR), &options)
    };
    vec![start("none"), start("process")]
}

/// Checks that the request is refused each time it is made.
fn refused<O: Op>(client: &mut WireClient, op: &O) {
    assert_eq!(client.call(op).err(), Some(HipError::OUT_OF_MEMORY));
    assert_eq!(client.call(op).err(), Some(HipError::OUT_OF_MEMORY));
}

/// Checks that a worker's log names the limit exactly once.
fn named_once(mut worker: WorkerProcess, limit: &str) {
    worker.terminate();
    assert_eq!(worker.wait().code(), Some(0));
    let log = worker.log();
    assert_eq!(log.matches(limit).count(), 1, "{limit} is named, once:\n{log}");
}

#[test]
fn memory_has_a_limit_for_each_session() {
    for worker in workers(&["--memory-max", "1M"]) {
        let mut a = WireClient::open(worker.address());
        let info = a.call(&op::MemGetInfo {}).expect("information");
        assert_eq!((info.free_bytes, info.total_bytes), (1 << 20, 1 << 20));
        let half = op::Malloc { size: 512 << 10, flags: 0 };
        let ptr = a.call(&half).expect("half of it").device_ptr;
        refused(&mut a, &op::Malloc { size: (512 << 10) + 1, flags: 0 });
        a.call(&op::Malloc { size: 1 << 20, flags: 0 }).expect_err("all of it, again");
        let mut b = WireClient::open(worker.address());
        b.call(&op::Malloc { size: 1 << 20, flags: 0 }).expect("another session has its own");
        a.call(&half).expect("the other half");
        a.call(&op::Free { device_ptr: ptr }).expect("freed");
        a.call(&half).expect("half again");
        drop((a, b));
        named_once(worker, "memory_max_bytes");
    }
}

#[test]
fn what_names_allocations_counts_as_memory() {
    for worker in workers(&["--memory-max", "1M"]) {
        let mut client = WireClient::open(worker.address());
        // 16 MiB of names are free, and a MiB is what there is besides.
        let mut made = 0;
        let error = loop {
            match client.call(&op::EventCreate { flags: 0 }) {
                Ok(_) => made += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((made, error), ((17 << 20) / 512, HipError::OUT_OF_MEMORY));
        refused(&mut client, &op::Malloc { size: 1, flags: 0 });
        drop(client);
        named_once(worker, "memory_max_bytes");
    }
}

/// Sessions together have no more than there is for all, whoever comes first; what one gives back another can have.
#[test]
fn memory_has_a_limit_for_all_sessions() {
    for worker in workers(&["--memory-total", "256M", "--memory-max", "200M"]) {
        sessions_share_memory(&worker);
    }
}

fn sessions_share_memory(worker: &WorkerProcess) {
    const TOTAL: u64 = 256 << 20;
    let large = op::Malloc { size: 150 << 20, flags: 0 };
    let mut first = WireClient::open(worker.address());
    first.call(&large).expect("within both limits");
    refused(&mut first, &op::Malloc { size: 51 << 20, flags: 0 });
    let mut second = WireClient::open(worker.address());
    refused(&mut second, &large);
    let left = second.call(&op::MemGetInfo {}).expect("information").free_bytes;
    assert!(((50 << 20)..=TOTAL - large.size).contains(&left), "{left} bytes are left");
    // Many take what is there, a MiB each in turn, and not more of it.
    let mut others: Vec<_> = (0..5).map(|_| WireClient::open(worker.address())).collect();
    let mut taken = 0;
    loop {
        let before = taken;
        for other in &mut others {
            let made = other.call(&op::Malloc { size: 1 << 20, flags: 0 }).is_ok();
            taken += if made { 1 << 20 } else { 0 };
        }
        if taken == before {
            break;
        }
    }
    assert!((30 << 20..=TOTAL - large.size).contains(&taken), "{taken} bytes besides");
    // The second one still has what is set aside for its kernels; with that all is taken.
    while second.call(&op::Malloc { size: 1 << 20, flags: 0 }).is_ok() {
        taken += 1 << 20;
    }
    assert!(taken <= TOTAL - large.size, "{taken} bytes besides");
    // What is set aside for the kernels of the others would stay theirs.
    drop((first, others));
    eventually("the other sessions have ended", || second.call(&large).is_ok());
    drop(second);
    let mut last = WireClient::open(worker.address());
    eventually("all of it is free again", || last.call(&op::Malloc { size: 190 << 20, flags: 0 }).is_ok());
}

#[test]
fn code_objects_count_as_memory() {
    let load = op::ModuleLoadData { data_size: KERNELS.len() as u64 };
    for worker in workers(&["--memory-max", "4K"]) {
        let mut client = WireClient::open(worker.address());
        let replied = client.call_with(&load, &[], Some(KERNELS.to_vec()));
        assert_eq!(replied.result.err(), Some(HipError::OUT_OF_MEMORY));
        client.call(&op::Malloc { size: 4096, flags: 0 }).expect("nothing of it is held");
        drop(client);
        named_once(worker, "memory_max_bytes");
    }
}

/// Returns the kernels with 64 MiB of zero-initialized variables, which take no space in the file.
fn with_large_variables() -> Vec<u8> {
    let device = "gfx942".parse().expect("a GPU");
    let mut elf = select(KERNELS, &device).expect("a code object in the bundle").into_owned();
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let headers = number(&elf, 32) as usize;
    let count = usize::from(elf[56]);
    // PT_LOAD; the address is 16 bytes in, the size in memory 40.
    let loaded = (0..count).map(|i| headers + 56 * i).filter(|&at| elf[at..at + 4] == [1, 0, 0, 0]);
    let last = loaded.max_by_key(|&at| number(&elf, at + 16)).expect("a segment");
    let size = number(&elf, last + 40) + (64 << 20);
    elf[last + 40..last + 48].copy_from_slice(&size.to_le_bytes());
    elf
}

#[test]
fn variables_of_code_objects_count_as_memory() {
    let elf = with_large_variables();
    let load = op::ModuleLoadData { data_size: elf.len() as u64 };
    for (limit, expected) in [("32M", Some(HipError::OUT_OF_MEMORY)), ("128M", None)] {
        for worker in workers(&["--memory-max", limit]) {
            let mut client = WireClient::open(worker.address());
            let replied = client.call_with(&load, &[], Some(elf.clone()));
            assert_eq!(replied.result.err(), expected, "{limit}");
            let free = client.call(&op::MemGetInfo {}).expect("information").free_bytes;
            let left = if expected.is_some() { 32 << 20..=32 << 20 } else { 60 << 20..=64 << 20 };
            assert!(left.contains(&free), "{limit}: {free} bytes are left");
        }
    }
}

#[test]
fn handles_and_code_objects_have_limits() {
    let load = op::ModuleLoadData { data_size: KERNELS.len() as u64 };
    for worker in workers(&["--code-object-max", "1K"]) {
        let mut client = WireClient::open(worker.address());
        let replied = client.call_with(&load, &[], Some(KERNELS.to_vec()));
        assert_eq!(replied.result.err(), Some(HipError::OUT_OF_MEMORY));
        drop(client);
        named_once(worker, "collect_max_bytes");
    }
    for worker in workers(&["--handles-max", "2"]) {
        let mut client = WireClient::open(worker.address());
        client.call(&op::StreamCreate { flags: 0, priority: 0 }).expect("one");
        client.call(&op::EventCreate { flags: 0 }).expect("two");
        refused(&mut client, &op::EventCreate { flags: 0 });
        drop(client);
        named_once(worker, "handles_max");
    }
}

#[test]
fn the_smallest_buffers_only_slow_a_session_down() {
    for worker in workers(&["--requests-open-max", "1", "--buffered-max", "128K"]) {
        let mut client = WireClient::open(worker.address());
        let len = 3 << 20;
        let dst = client.call(&op::Malloc { size: len, flags: 0 }).expect("memory").device_ptr;
        for value in 0..100 {
            client.forget(&op::Memset { dst, value, size: len, stream: 0 });
        }
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let write = op::Memcpy { dst, src: 0, size: len, kind: kind::HOST_TO_DEVICE, stream: 0 };
        client.forget_with(&write, &[], Some(bytes.clone()));
        let read = op::Memcpy { dst: 0, src: dst, size: len, kind: kind::DEVICE_TO_HOST, stream: 0 };
        let replied = client.call_with(&read, &[], None);
        assert_eq!(replied.result, Ok(()));
        assert!(replied.inline == bytes, "the bytes come back as they went");
    }
}

#[test]
fn mistakes_are_named() {
    for (option, value, part) in [
        ("--device", "toaster", "unknown device 'toaster'; choose auto, hip, sim or null"),
        ("--isolate", "steam", "process"),
        ("--memory-max", "much", "expected a number"),
        ("--memory-max", "99999999T", "too large"),
        ("--buffered-max", "1K", "at least 128K"),
        ("--sessions-max", "0", "--sessions-max"),
        ("--memory-total", "127M", "at least 128M"),
        ("--handles-max", "0", "at least 1"),
        ("--requests-open-max", "-1", "--requests-open-max"),
    ] {
        let output = hipr(&["worker", &format!("{option}={value}")]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{option} {value}: {text}");
        assert!(text.contains(option) && text.contains(part), "{option} {value}: {text}");
    }
    for how in ["none", "process"] {
        let output = hipr(&["worker", "--device", "sim", "--isolate", how, "--listen", "nowhere"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("cannot listen on nowhere"), "{}", stderr(&output));
    }
}

#[test]
fn the_service_starts_what_there_is() {
    let unit = include_str!("../../packaging/hipr-worker.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let example =
        unit.lines().find_map(|line| line.split_once("HIPR_WORKER_OPTIONS=--")).expect("an example").1;
    let mut words = start.split_whitespace();
    assert_eq!(words.next(), Some("hipr"));
    assert_eq!(words.next_back(), Some("$HIPR_WORKER_OPTIONS"));
    let words: Vec<&str> = words.collect();
    let example = format!("--{example}");
    let options: Vec<&str> = example.split_whitespace().collect();
    // The command line is understood (2 is for one that is not); no runtime is found, or no such address.
    let wrong = ["--listen", "nowhere", "--hip-library", "/nonexistent/libamdhip64.so"];
    let output = hipr(&[words, options, wrong.to_vec()].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn the_page_for_owners_of_gpus_has_all_options_and_their_defaults() {
    let page = include_str!("../../docs/gpu-worker.md");
    let help = String::from_utf8(hipr(&["worker", "--help"]).stdout).expect("text");
    let mut options = 0;
    for line in help.lines().filter_map(|line| line.trim().strip_prefix("--")) {
        let option = line.split([' ', '[']).next().expect("a name");
        if !["io", "help"].contains(&option) {
            let is_row = |end| page.contains(&format!("| `--{option}{end}"));
            assert!([" ", "[", "`"].into_iter().any(is_row), "--{option} is not in the page");
            options += 1;
        }
    }
    assert_eq!(options, 38, "options that the help has:\n{help}");
    for (option, default) in [
        ("handles-max", "1048576"),
        ("code-object-max", "1G"),
        ("requests-open-max", "16384"),
        ("buffered-max", "4M"),
        ("resume-timeout", "60"),
        ("resume-buffer", "8M"),
    ] {
        let row = page.lines().find(|line| line.contains(&format!("| `--{option} "))).expect("a row");
        assert!(row.ends_with(&format!("| {default} |")), "{row}");
        assert!(help.contains(&format!("[default: {default}]")), "{help}");
    }
}

#[test]
fn the_last_of_an_option_counts() {
    let worker = WorkerProcess::start_logged(
        Path::new(HIPR),
        &["--device", "null", "--memory-max", "1K", "--device", "sim", "--memory-max", "1M"],
    );
    let mut client = WireClient::open(worker.address());
    let properties = client.call(&op::GetDeviceProperties { device_id: 0 }).expect("properties");
    assert!(properties.name.to_string().contains("emulated"));
    assert_eq!(client.call(&op::MemGetInfo {}).expect("information").total_bytes, 1 << 20);
}

#[test]
fn without_the_runtime_a_worker_for_real_gpus_says_what_it_looked_for() {
    let path = "/nonexistent/libamdhip64.so";
    for device in ["hip", "auto"] {
        for how in [&[][..], &["--isolate=none"], &["--isolate=process"]] {
            let output = hipr(&[&["worker", "--device", device, "--hip-library", path], how].concat());
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains(path), "{text}");
            assert_eq!(text.matches("hipr: ").count(), 1, "said once: {text}");
        }
    }
    let text = stderr(&hipr(&["worker", "--device", "hip", "--isolate=none", "--hip-library", "libc.so.6"]));
    assert!(text.contains("hipGetDeviceCount"), "no HIP runtime: {text}");
    // With a runtime on this machine it is the address that is wrong.
    let text = stderr(&hipr(&["worker", "--device", "hip", "--listen", "nowhere"]));
    assert!(text.contains("libamdhip64.so.6") || text.contains("cannot listen on nowhere"), "{text}");
}

/// Opens a session that uses the cache of uploads.
fn tenant(worker: &WorkerProcess) -> WireClient {
    let mut client = WireClient::open(worker.address());
    let offer = op::Offer { features: Features::CACHE.bits(), part: 0 };
    assert_eq!(client.call(&offer).expect("an answer").features, Features::CACHE.bits());
    client.call(&op::CacheOpen { key: [3; 32] }).expect("opened");
    client
}

#[test]
fn uploads_are_kept_in_a_folder_for_all_sessions() {
    const LENGTH: u64 = op::CACHE_CHUNK_MIN_BYTES;
    for how in ["none", "process"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cache");
        let cache = ["--cache", "64M", "--cache-dir", path.to_str().expect("text"), "--cache-dir-max", "1G"];
        let options = [&["--device", "sim", "--isolate", how], &cache[..]].concat();
        let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        let mut first = tenant(&worker);
        let dst = first.call(&op::Malloc { size: LENGTH, flags: 0 }).expect("memory").device_ptr;
        let put =
            op::CachePut { dst, size: LENGTH, offset: 0, length: LENGTH, stream: 0, waits: 0, reserved: 0 };
        first.call_with(&put, &[], Some(vec![5; LENGTH as usize])).result.expect("copied");
        drop(first);
        let file = || std::fs::read_dir(&path).expect("a folder").flatten().find(|file| !is_partial(file));
        eventually("the chunk is in a file", || file().is_some());
        // Behind the tenant comes the chunk's name.
        let file = file().expect("a file").file_name().into_string().expect("text");
        let (_, name) = file.split_once('-').expect("a tenant");
        let byte = |at: usize| u8::from_str_radix(&name[2 * at..2 * at + 2], 16).expect("a number");
        let name: Vec<u8> = (0..32).map(byte).collect();
        let mut second = tenant(&worker);
        let have = second.call_with(&op::CacheHave { count: 1, reserved: 0 }, &name, None);
        assert_eq!(have.result.expect("an answer").has, [1, 0, 0, 0], "{how}");
        let dst = second.call(&op::Malloc { size: LENGTH, flags: 0 }).expect("memory").device_ptr;
        let chunk = name.try_into().expect("32 bytes");
        let copy = op::CacheCopy {
            chunk,
            dst,
            size: LENGTH,
            offset: 0,
            length: LENGTH,
            stream: 0,
            waits: 0,
            reserved: 0,
        };
        second.call(&copy).expect("copied");
        let back = op::Memcpy { dst: 0, src: dst, size: LENGTH, kind: kind::DEVICE_TO_HOST, stream: 0 };
        assert_eq!(second.call_with(&back, &[], None).inline, vec![5; LENGTH as usize], "{how}");
        drop(second);
        worker.terminate();
        assert_eq!(worker.wait().code(), Some(0));
        assert!(worker.log().contains("saved_bytes=65536"), "{how}: {}", worker.log());
    }
}

/// Returns whether a file of the cache is still being written.
fn is_partial(file: &std::fs::DirEntry) -> bool {
    file.path().extension().is_some()
}

#[test]
fn a_folder_for_the_cache_that_cannot_be_had_is_told_at_once() {
    for how in ["none", "process"] {
        let output = hipr(&[
            "worker",
            "--device",
            "null",
            "--isolate",
            how,
            "--cache",
            "1M",
            "--cache-dir",
            "/dev/null/x",
        ]);
        assert_eq!(output.status.code(), Some(1), "{how}");
        assert!(stderr(&output).contains("/dev/null/x"), "{how}: {}", stderr(&output));
    }
    let output = hipr(&["worker", "--cache-dir", "/tmp"]);
    assert!(!output.status.success() && stderr(&output).contains("--cache <SIZE>"), "{}", stderr(&output));
}

/// An error that no reply has reported when a session ends is in the log.
#[test]
fn an_error_that_nobody_asked_for_is_logged() {
    for worker in workers(&[]) {
        for says_good_bye in [true, false] {
            let mut client = WireClient::open(worker.address());
            client.forget(&op::Free { device_ptr: 0xdead_0000 });
            if says_good_bye {
                client.forget(&op::Shutdown {});
                assert!(client.closed(), "nothing is answered");
            }
            drop(client);
        }
        let told = "its client was told of an error";
        while worker.log().matches(told).count() < 2 {
            std::thread::yield_now();
        }
        let mut client = WireClient::open(worker.address());
        client.forget(&op::Free { device_ptr: 0xdead_0000 });
        assert_eq!(client.call(&op::DeviceSynchronize {}), Err(HipError::INVALID_VALUE));
        client.forget(&op::Shutdown {});
        assert!(client.closed());
        assert_eq!(
            worker.log().matches(told).count(),
            2,
            "an error that was told is not logged:\n{}",
            worker.log()
        );
    }
}

#[test]
fn auto_takes_what_there_is_and_says_so() {
    let worker = WorkerProcess::start_logged(Path::new(HIPR), &[]);
    let mut client = WireClient::open(worker.address());
    let properties = client.call(&op::GetDeviceProperties { device_id: 0 }).expect("properties");
    let log = worker.log();
    if properties.name.to_string().contains("emulated") {
        assert!(log.contains("serving the emulated GPU: "), "it says why:\n{log}");
    } else {
        assert!(
            log.contains("serving the GPUs that the HIP runtime found")
                && log.contains("a process for each session"),
            "{log}"
        );
    }
}
