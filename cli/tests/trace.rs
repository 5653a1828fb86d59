//! `hipr trace` with a program whose calls are known: what is in the trace, and what is said of it.
//! Without the compiler (`tests/toolchain/setup.sh`) these tests are skipped, or fail if HIPR_REQUIRE_COMPILER is set.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hipr_sim::Gpu;
use hipr_tests::toolchain::{compile, installed};
use hipr_tests::{Link, Proxy};
use hipr_trace::{Item, Slice, Summary, arg, category};
use hipr_worker::{Config, Handle, Worker};
use serde_json::{Value, json};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trace/program.hip");

/// Returns the program, compiled once; `None` without a compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let name = format!("trace-program-{}", std::process::id());
        let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
        compile(Path::new(SOURCE), "-O1", out, &name, "hipr trace did not run")
    };
    PROGRAM.get_or_init(build).as_deref()
}

/// A run of the program, and its trace.
struct Traced {
    folder: tempfile::TempDir,
    output: Output,
    items: Vec<Item>,
    /// The statistics of each process that has made calls.
    stats: Vec<Value>,
}

impl Traced {
    /// Runs the program, with a trace in a file of this name.
    fn new(program: &Path, how: &str, file: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, stats) = (folder.path().join(file), folder.path().join("stats"));
        let output = Command::new(HIPR)
            .args(["trace", "-o"])
            .arg(&path)
            .args(options)
            .arg("--")
            .arg(program)
            .arg(how)
            .env("HIPR_STATS_FILE", &stats)
            .output()
            .expect("hipr runs");
        let items = hipr_trace::read(&path).expect("a trace");
        let stats = fs::read_to_string(stats).unwrap_or_default();
        let stats = stats.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let left: Vec<_> =
            fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert!(left.iter().all(|name| name == file || name == "stats"), "files are left behind: {left:?}");
        Self { folder, output, items, stats }
    }

    fn slices(&self, kind: &str) -> Vec<&Slice> {
        let slices = self
            .items
            .iter()
            .filter_map(|item| if let Item::Slice(slice) = item { Some(slice) } else { None });
        slices.filter(|slice| slice.category == kind).collect()
    }

    fn calls(&self, function: &str) -> Vec<&Slice> {
        self.slices(category::CALL).into_iter().filter(|slice| slice.name == function).collect()
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The sum of a counter of all processes.
    fn counted(&self, name: &str) -> u64 {
        self.stats.iter().map(|stats| stats[name].as_u64().expect("a number")).sum()
    }
}

/// A worker in this process, behind a link.
fn behind(link: Link) -> (Handle, Proxy, SocketAddr) {
    let mut config = Config::new(Arc::new(Gpu::new(hipr_sim::Config::default()).expect("a GPU")));
    config.listen = "127.0.0.1:0".into();
    let worker = Worker::bind(config).expect("a worker").spawn().expect("a thread");
    let proxy = Proxy::start(worker.local_addr().tcp().expect("an address"), link).expect("a proxy");
    let address = proxy.address();
    (worker, proxy, address)
}

#[test]
fn a_trace_has_what_the_program_does() {
    let Some(program) = program() else { return };
    let traced = Traced::new(program, "", "a.pftrace", &[]);
    assert!(traced.output.status.success(), "{:?}", traced.output);
    assert_eq!(String::from_utf8_lossy(&traced.output.stdout), "done\n");
    // What the statistics count.
    assert_eq!(traced.slices(category::CALL).len() as u64, traced.counted("calls"));
    let sent: u64 =
        traced.slices(category::SEND).iter().filter_map(|slice| slice.number(arg::SENT_BYTES)).sum();
    assert_eq!(sent, traced.counted("bytes_sent"));
    assert_eq!(traced.slices(category::SEND).len() as u64, traced.counted("writes"));
    let summary = Summary::of(&traced.items);
    assert_eq!((summary.sent_bytes, summary.received_bytes), (sent, traced.counted("bytes_received")));
    assert_eq!(summary.lost, 0);
    // Of INIT and the offer the worker does not tell, and it ends with SHUTDOWN.
    assert_eq!(traced.slices(category::REQUEST).len() as u64, traced.counted("frames_sent") - 3);
    // What the program does.
    let copies = traced.calls("hipMemcpy");
    assert_eq!(copies.len(), 10);
    let line = 1 + fs::read_to_string(SOURCE)
        .expect("the source")
        .lines()
        .position(|line| line.contains("each looks"))
        .expect("the line");
    for copy in &copies {
        assert_eq!(copy.text(arg::LINE), Some(&*format!("program.hip:{line}")));
        assert_eq!((copy.number("sizeBytes"), copy.number("kind")), (Some(4), Some(2)));
        assert!(copy.arg(arg::ERROR).is_none());
    }
    let launches = traced.calls("hipLaunchKernel");
    let kernels: BTreeSet<_> = launches.iter().map(|launch| launch.text(arg::KERNEL)).collect();
    assert_eq!((launches.len(), kernels), (10, BTreeSet::from([Some("add_one(int*)")])));
    let errors: Vec<_> = traced.calls("hipMemset").iter().map(|call| call.text(arg::ERROR)).collect();
    assert!(
        errors.len() == 2
            && errors[0].is_none()
            && errors[1].is_some_and(|error| error.contains("InvalidValue")),
        "{errors:?}"
    );
    // From the call to the kernel.
    let work: Vec<_> =
        traced.slices(category::WORK).into_iter().filter(|work| work.name == "add_one(int*)").collect();
    assert_eq!(work.len(), 10);
    for (launch, work) in launches.iter().zip(&work) {
        let [flow] = work.flows[..] else { panic!("one flow: {work:?}") };
        assert!(launch.flows.contains(&flow), "{launch:?} leads to {work:?}");
        for kind in [category::SEND, category::REQUEST] {
            let on_the_way = traced.slices(kind).iter().filter(|slice| slice.flows.contains(&flow)).count();
            assert_eq!(on_the_way, 1, "{kind}");
        }
    }
    // Waits are inside their calls.
    let waits = traced.slices(category::WAIT);
    for wait in &waits {
        let of = traced.slices(category::CALL).into_iter().filter(|call| {
            call.track == wait.track && call.start_ns <= wait.start_ns && call.end_ns >= wait.end_ns
        });
        let numbers: Vec<_> = of.map(|call| call.number(arg::CALL)).collect();
        assert_eq!(numbers, [wait.number(arg::CALL)], "{wait:?}");
    }
    let said = traced.said();
    for part in ["hipMemcpy × 10 at program.hip:", "waiting for the network", "https://ui.perfetto.dev"] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
}

#[test]
fn the_summary_of_a_file_is_that_of_its_run() {
    let Some(program) = program() else { return };
    for name in ["a.pftrace", "a.json"] {
        let traced = Traced::new(program, "", name, &[]);
        let summary = Command::new(HIPR)
            .args(["trace", "--summary"])
            .arg(traced.folder.path().join(name))
            .output()
            .expect("hipr runs");
        assert!(summary.status.success(), "{summary:?}");
        let said = traced.said();
        let said = said.split("The trace is in").next().expect("a text");
        assert_eq!(String::from_utf8_lossy(&summary.stdout), said, "{name}");
    }
}

#[test]
fn processes_of_a_program_have_one_trace() {
    let Some(program) = program() else { return };
    let traced = Traced::new(program, "fork", "a.pftrace", &[]);
    assert!(traced.output.status.success(), "{:?}", traced.output);
    assert_eq!(traced.stats.len(), 2);
    assert_eq!(traced.slices(category::CALL).len() as u64, traced.counted("calls"));
    let threads: BTreeSet<_> = traced.calls("hipMemcpy").iter().map(|call| call.track).collect();
    assert_eq!((traced.calls("hipMemcpy").len(), threads.len()), (8, 2));
    let processes = traced.items.iter().filter(|item| item.is_process()).count();
    assert_eq!(processes, 2);
}

#[test]
fn a_program_that_crashes_leaves_its_trace() {
    let Some(program) = program() else { return };
    let traced = Traced::new(program, "crash", "a.pftrace", &[]);
    assert_eq!(traced.output.status.code(), Some(128 + 6), "{:?}", traced.output);
    assert_eq!((traced.calls("hipMemcpy").len(), traced.calls("hipFree").len()), (10, 1));
    assert!(traced.said().contains("hipMemcpy × 10"), "{}", traced.said());
}

#[test]
fn only_the_last_seconds_are_kept_if_that_is_wanted() {
    let Some(program) = program() else { return };
    let traced = Traced::new(program, "long", "a.pftrace", &["--last", "1"]);
    assert!(traced.output.status.success(), "{:?}", traced.output);
    let ends = traced.items.iter().filter_map(Item::end_ns);
    let (first, last) = ends.fold((u64::MAX, 0), |(first, last), ns| (first.min(ns), last.max(ns)));
    assert!(last - first <= 1_000_000_000, "{} ns", last - first);
    let copies = traced.calls("hipMemcpy").len();
    assert!((1..=11).contains(&copies), "{copies} of 40");
    assert!(!traced.said().contains("hipMemcpy × 40"));
}

#[test]
fn waiting_is_the_networks_where_the_network_is_slow() {
    const DELAY: Duration = Duration::from_millis(20);
    let Some(program) = program() else { return };
    let (_worker, _proxy, address) = behind(Link { delay: DELAY, ..Link::default() });
    let traced = Traced::new(program, "", "a.pftrace", &["--worker", &address.to_string()]);
    assert!(traced.output.status.success(), "{:?}", traced.output);
    let summary = Summary::of(&traced.items);
    // Ten results that the program looks at, and the beginning.
    let least = 11 * 2 * DELAY.as_nanos() as u64;
    assert!(summary.network_ns >= least, "{} ns of {least} ns", summary.network_ns);
    assert!(traced.said().contains("4 bytes 10 times: each looks at a result"), "{}", traced.said());
    let uncertainty_ns = summary.uncertainty_ns.expect("the worker tells");
    assert!(uncertainty_ns >= DELAY.as_nanos() as u64 / 2, "{uncertainty_ns}");
    assert!(
        summary.trace_ns >= 2 * DELAY.as_nanos() as u64,
        "the trace's own round trip is not the program's"
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    let run = |args: &[&str]| {
        let output = Command::new(HIPR).arg("trace").args(args).output().expect("hipr runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["-o", "/no/such/folder/a", "--", "true"]);
    assert!(code == Some(1) && said.contains("cannot write /no/such/folder/a"), "{said}");
    let (code, said) = run(&["--summary", "/no/such/file"]);
    assert!(code == Some(1) && said.contains("cannot read /no/such/file"), "{said}");
    let (code, said) = run(&["--summary", HIPR]);
    assert!(code == Some(1) && said.contains("this is no trace"), "{said}");
    let (code, said) = run(&["--last", "0", "--", "true"]);
    assert!(code == Some(2) && said.contains("--last"), "{said}");
    assert_eq!(run(&[]).0, Some(2));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.pftrace");
    let (code, said) = run(&["-o", path.to_str().expect("a text"), "--", "true"]);
    assert!(code == Some(0) && said.contains("The program made no HIP call."), "{said}");
}

#[test]
#[ignore = "needs a browser and Perfetto's viewer"]
fn perfettos_viewer_has_what_the_statistics_say() {
    const VIEW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/view.py");
    let Some(program) = program() else { return };
    for tool in ["chromium", "chromedriver"] {
        if installed(tool, "traces were not opened in Perfetto's viewer").is_none() {
            return;
        }
    }
    for name in ["a.pftrace", "a.json"] {
        let traced = Traced::new(program, "fork", name, &[]);
        let summary = Summary::of(&traced.items);
        let queries = [
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
            "select category, count(*) from slice where category in ('call', 'wait', 'request', 'work') group by category order by category",
            "select sum(int_value) from slice join args using (arg_set_id) where category = 'send' and flat_key in ('debug.sent_bytes', 'args.sent_bytes')",
            "select count(distinct upid) from process where name like 'trace-program%'",
            "select count(*) from flow join slice one on slice_out = one.id join slice other on slice_in = other.id where one.category = 'request' and other.category = 'work'",
        ];
        let mut view = Command::new("python3");
        view.arg(VIEW).arg(traced.folder.path().join(name));
        view.args(queries.iter().flat_map(|query| ["--query", query]));
        let output = view.output().expect("python runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        let answers: Vec<Value> =
            said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let count = |kind| traced.slices(kind).len();
        assert_eq!(answers[0], json!([]), "{name}: what the viewer could not read");
        let kinds = [category::CALL, category::REQUEST, category::WAIT, category::WORK];
        assert_eq!(answers[1], json!(kinds.map(|kind| (kind, count(kind)))), "{name}");
        assert_eq!(count(category::CALL) as u64, traced.counted("calls"), "{name}");
        assert_eq!(answers[2], json!([[traced.counted("bytes_sent")]]), "{name}");
        assert_eq!(summary.sent_bytes, traced.counted("bytes_sent"), "{name}");
        assert_eq!(answers[3], json!([[2]]), "{name}");
        assert_eq!(
            answers[4],
            json!([[count(category::WORK)]]),
            "{name}: an arrow leads to each piece of work"
        );
    }
}
