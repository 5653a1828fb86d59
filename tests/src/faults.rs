//! Fails calls of the HIP runtime, one at a time: the worker in front of a chain loads `tests/faulty-hip`, which forwards
//! all calls but one to hipr's client library. For each function, and each call of it in one run of [`suite`], there can be
//! a run in which that call fails.
//!
//! Whatever fails, the worker goes on, the session gets the error (as the result of the first request whose outcome is not as it
//! was without; or of the next one, where the answer had begun), and another session, open all the time, sees nothing of it.
//! What may fail without being told of is listed in [`HARMLESS`]. The runtime that carries the calls out may be another one: [`Rig`].

use crate::suite::{self, Failure, Outcome};
use crate::{Buffer, Chain, Gpu, args, built_library, eventually, library, start_worker_with_cache};
use hipr_proto::{HipError, Opcode};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

pub use plan::{
    BREAK_OUT, EVERY, FAILED, HANG, LIBRARY, PLAN, Plan, SECRET, SERVICE, SOIL, SOILED, TRACE, called,
};

/// The plan's format. It is compiled here too, because a program can link only one library that exports HIP's functions.
#[path = "../faulty-hip/src/plan.rs"]
mod plan;

static KERNELS: &[u8] = include_bytes!("../../cli/demo/kernels.co");

/// Creates the command that starts the worker in front, with the HIP runtime at the path.
pub type Front<'a> = &'a (dyn Fn(&Path) -> Command + Sync + RefUnwindSafe);

/// A worker, and the HIP runtime below it, which can fail as planned if it is `tests/faulty-hip`.
pub struct Rig<'a> {
    /// Creates the command that starts the worker.
    pub front: Front<'a>,
    /// The worker's HIP runtime, as the worker names it: `libfaulty_hip.so`, or a runtime itself.
    pub runtime: PathBuf,
    /// The HIP runtime to which `libfaulty_hip.so` forwards calls, as the worker names it.
    pub library: PathBuf,
    /// The root folder of the system in which the worker runs, if not this one.
    pub root: Option<PathBuf>,
    /// Whether the runtime answers all operations as the emulated GPU does, with the same calls each time. Otherwise a call may not come at all.
    pub is_emulated: bool,
}

impl<'a> Rig<'a> {
    /// Returns one in which hipr's client library carries the calls out.
    pub fn new(front: Front<'a>) -> Self {
        let runtime = built_library("libfaulty_hip.so");
        Self { front, runtime, library: library(), root: None, is_emulated: true }
    }

    /// Starts the worker, with more environment variables for its runtime, and one with the emulated GPU behind it. Returns both as a chain, and
    /// the folder with the runtime's plan and trace, which the worker needs as long as it runs.
    pub fn start(&self, variables: &[(&str, &str)]) -> (Chain, TempDir) {
        let folder = match &self.root {
            Some(root) => TempDir::new_in(root.join("tmp")),
            None => TempDir::new(),
        };
        let folder = folder.expect("a folder");
        let inside = match self.root.as_ref().and_then(|root| folder.path().strip_prefix(root).ok()) {
            Some(inside) => Path::new("/").join(inside),
            None => folder.path().to_owned(),
        };
        let file = |name: &str| inside.join(name);
        let mut command = (self.front)(&self.runtime);
        command.env(LIBRARY, &self.library).env(PLAN, file("plan")).env(TRACE, file("trace"));
        command.envs(variables.iter().copied());
        (Chain::start_command(command), folder)
    }
}

/// The errors that calls fail with: one that concerns the call, and one after which real devices do nothing more. The suite
/// causes neither otherwise.
pub const ERRORS: [HipError; 2] = [HipError(205), HipError(719)];

/// Functions whose failure need not be reported in some operations, or in any if none are named, and why.
pub const HARMLESS: &[(&[&str], &[Opcode], &str)] = &[
    (&["hipGetLastError"], &[], "called to clear what the call before it returned"),
    (
        &["hipStreamDestroy", "hipModuleUnload"],
        &[],
        "the session has given it up; it goes when its work is done",
    ),
    (
        &["hipEventCreateWithFlags", "hipEventRecord", "hipEventQuery"],
        &[
            Opcode::FREE,
            Opcode::FREE_HOST,
            Opcode::HOST_UNREGISTER,
            Opcode::STREAM_DESTROY,
            Opcode::MODULE_UNLOAD,
        ],
        "called so that releasing something does not have to wait; errors of the work before are for who waits for that",
    ),
    (
        &[
            "hipEventRecord",
            "hipEventQuery",
            "hipEventSynchronize",
            "hipEventDestroy",
            "hipHostFree",
            "hipMemPoolDestroy",
        ],
        &[Opcode::DEVICE_RESET],
        "a reset gives everything up; what cannot be released stays until the process ends, and the log says so",
    ),
    (&["hipHostMalloc"], &[Opcode::MEMCPY_ASYNC], "copies go through fewer buffers then"),
    (&["hipRuntimeGetVersion"], &[Opcode::INIT], "asked for the log when a process loads the runtime"),
];

fn is_harmless(function: &str, op: Opcode) -> bool {
    HARMLESS.iter().any(|(functions, during, _)| {
        functions.contains(&function) && (during.is_empty() || during.contains(&op))
    })
}

/// Functions that are called until the device is done, or once per received piece, so that their number varies from run to
/// run.
const POLLED: &[&str] = &["hipEventQuery", "hipEventRecord", "hipMemcpyAsync", "hipStreamQuery"];

/// Time without a call after which a session counts as released.
const QUIET: Duration = Duration::from_millis(300);

/// A chain with the failing runtime, and a session that has been open since before there was a plan.
struct Bench {
    chain: Chain,
    bystander: Gpu,
    data: Buffer<f32>,
    folder: TempDir,
    is_emulated: bool,
}

/// The result of a run.
struct Run {
    outcomes: Vec<Outcome>,
    /// Number of calls of each function since the plan was set.
    calls: BTreeMap<String, u64>,
    /// Whether a call failed as planned.
    failed: bool,
    /// Number of the operation in which it failed, from 0; `None` after the session's end.
    during: Option<usize>,
}

impl Bench {
    fn start(rig: &Rig<'_>) -> Self {
        let (chain, folder) = rig.start(&[]);
        let mut bystander = Gpu::open(chain.address(), KERNELS);
        let data = bystander.filled(64, 0);
        let mut bench = Self { chain, bystander, data, folder, is_emulated: rig.is_emulated };
        bench.check_bystander();
        bench
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Checks that the other session works and that its memory is intact.
    fn check_bystander(&mut self) {
        let gpu = &mut self.bystander;
        let left = gpu.download(self.data);
        assert!(left == [0.0; 64] || left == [3.0; 64], "memory of another session: {left:?}");
        gpu.write(self.data, &[1.0; 64]);
        gpu.launch("saxpy", 1, 64, 0, args![2.0f32, self.data, self.data, 64u32]);
        assert_eq!(gpu.synchronize(), Ok(()), "another session");
        assert_eq!(gpu.download(self.data), [3.0; 64], "another session");
        assert!(self.chain.lives(), "the worker");
    }

    fn read_trace(&self) -> String {
        fs::read_to_string(self.file("trace")).unwrap_or_default()
    }

    /// Returns the trace, after what the session left has been released.
    fn trace(&self, plan: &Plan) -> String {
        if self.is_emulated && plan.call > 0 && !POLLED.contains(&plan.function.as_str()) {
            eventually(&format!("call {} of {}", plan.call, plan.function), || {
                has_failed(&self.read_trace())
            });
            return self.read_trace();
        }
        // Perhaps that call never comes: until nothing comes any more.
        loop {
            let before = self.read_trace();
            if has_failed(&before) {
                return before;
            }
            thread::sleep(QUIET);
            if self.read_trace() == before {
                return before;
            }
        }
    }

    fn run(mut self, plan: &Plan) -> Run {
        fs::write(self.file("plan.new"), plan.text()).expect("the plan is written");
        fs::rename(self.file("plan.new"), self.file("plan")).expect("the plan appears");
        let (mut during, mut answered) = (None, 0);
        let outcomes = suite::run_observed(self.chain.address(), &mut |_| {
            if during.is_none() && has_failed(&self.read_trace()) {
                during = Some(answered);
            }
            answered += 1;
        });
        let trace = self.trace(plan);
        fs::remove_file(self.file("plan")).expect("the plan is there");
        self.check_bystander();
        let mut calls = BTreeMap::new();
        for line in trace.lines() {
            *calls.entry(called(line).0.to_owned()).or_default() += 1;
        }
        Run { outcomes, calls, failed: has_failed(&trace), during }
    }
}

fn has_failed(trace: &str) -> bool {
    trace.lines().any(|line| called(line).1)
}

/// The consequence of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// The session received an error.
    Told,
    /// The session ended, because the error makes its devices unusable.
    Ended,
    /// The failure had no effect, and [`HARMLESS`] lists the call.
    Harmless,
    /// The operation fails without it too, with another error, which is the one that is told.
    Second,
    /// The session had ended before the call.
    AfterEnd,
    /// The call was not made.
    NotReached,
}

/// Judges a run by comparing it with one without failures.
fn judge(plan: &Plan, expected: &[Outcome], run: &Run) -> Result<Verdict, String> {
    let error = Failure::Error(HipError(plan.error));
    let ends = |outcome: &Outcome| outcome.result == Err(Failure::Lost);
    let last =
        |outcomes: &[Outcome]| outcomes.last().filter(|outcome| ends(outcome)).map(|outcome| outcome.op);
    // The kernel that faults at the end of the suite ends the process of AMD's runtime.
    let is_lost = last(&run.outcomes).is_some() && last(&run.outcomes) != last(expected);
    if is_lost && plan.error != ERRORS[1].0 {
        return Err("the connection was lost".into());
    }
    let pairs = expected.iter().zip(&run.outcomes).enumerate();
    let Some((at, (was, is))) = pairs.into_iter().find(|(_, (was, is))| was != is) else {
        let during = run.during.map(|during| &run.outcomes[during]);
        return match (run.failed, during.map(|outcome| outcome.op)) {
            (false, _) => Ok(Verdict::NotReached),
            (true, None | Some(Opcode::SHUTDOWN)) => Ok(Verdict::AfterEnd),
            (true, Some(op)) if is_harmless(&plan.function, op) => Ok(Verdict::Harmless),
            (true, _) if during.is_some_and(|outcome| outcome.result.is_err()) => Ok(Verdict::Second),
            (true, Some(op)) => Err(format!("the error was lost in {op}")),
        };
    };
    let next = run.outcomes.get(at + 1).map(|next| &next.result);
    match &is.result {
        Err(found) if *found == error => Ok(Verdict::Told),
        Err(Failure::Lost) => Ok(Verdict::Ended),
        // The answer had begun: the bytes that could not be read are zeros.
        Ok(_) if was.op == Opcode::MEMCPY_ASYNC && next == Some(&Err(error)) => Ok(Verdict::Told),
        _ => Err(format!("{} was {:?} and is {:?}", was.op, was.result, is.result)),
    }
}

/// Runs each plan; returns the verdicts, and descriptions of what went wrong.
fn run_all(rig: &Rig<'_>, plans: &[Plan], expected: &[Outcome]) -> (BTreeMap<Verdict, usize>, Vec<String>) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = catch_unwind(|| judge(plan, expected, &Bench::start(rig).run(plan)));
            let result = result.unwrap_or_else(|_| Err("a panic, see above".into()));
            results.push(result.map_err(|why| format!("{}: {why}", plan.text().trim_end())));
        }
        results
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("panics are caught")).collect()
    });
    let mut verdicts = BTreeMap::new();
    let mut wrong = Vec::new();
    for result in results {
        match result {
            Ok(verdict) => *verdicts.entry(verdict).or_default() += 1,
            Err(why) => wrong.push(why),
        }
    }
    (verdicts, wrong)
}

/// Runs the suite once without a failure, then once for each call that was made and each error that `errors` returns for
/// it, given the call's number from 1 and the number of calls of the function.
pub fn check(rig: &Rig<'_>, errors: impl Fn(u64, u64) -> Vec<HipError>) {
    let none = Plan { function: "none".into(), call: 0, error: 0, spared: 0 };
    let counted = Bench::start(rig).run(&none);
    if rig.is_emulated {
        assert_eq!(counted.outcomes, suite::run(start_worker_with_cache().address()), "as without the chain");
    }
    let mut plans = Vec::new();
    for (function, &calls) in &counted.calls {
        for call in 1..=calls {
            let plan = |error: HipError| Plan { function: function.clone(), call, error: error.0, spared: 0 };
            plans.extend(errors(call, calls).into_iter().map(plan));
        }
    }
    let (verdicts, wrong) = run_all(rig, &plans, &counted.outcomes);
    println!("{} functions, {} runs: {verdicts:?}", counted.calls.len(), plans.len());
    let is_hidden = verdicts.contains_key(&Verdict::Second);
    assert!(!rig.is_emulated || !is_hidden, "another error is told than the one that was planned");
    assert!(wrong.is_empty(), "{} of {} runs:\n{}", wrong.len(), plans.len(), wrong.join("\n"));
    assert!(
        verdicts.get(&Verdict::Told).is_some_and(|told| *told > plans.len() / 2),
        "most failures are told"
    );
}
