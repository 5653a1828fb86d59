//! Runs AMD's unmodified HIP runtime, releases 6.4.3 and 7.2.4, on the GPUs that hipr's HSA library emulates: rocminfo, every program of
//! `tests/programs` under `hipr hsa`, the same programs over a worker that serves that runtime, what such a worker does for its clients, and what functions answer. Without the compiler and AMD's
//! libraries (`tests/toolchain/setup.sh`) the tests are skipped, or fail if HIPR_REQUIRE_COMPILER is set.

#[path = "amd_runtime/answers.rs"]
mod answers;
#[path = "amd_runtime/chained.rs"]
mod chained;
#[path = "amd_runtime/failures.rs"]
mod failures;
#[path = "amd_runtime/pairs.rs"]
mod pairs;
#[path = "amd_runtime/sessions.rs"]
mod sessions;
#[path = "amd_runtime/traced.rs"]
mod traced;

use hipr_tests::faults::Rig;
use hipr_tests::toolchain::{folder, toolchain};
use hipr_tests::{WorkerProcess, built_library};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const SKIPPED: &str = "AMD's runtime did not run on the emulated GPUs";
/// Minimum number of programs, each at two optimization levels.
const PROGRAMS_MIN: usize = 40;
/// Seconds after which a program that stands still is ended; one that passes takes a few at most.
const GUARD_S: &str = "300";

/// Command of a shell that executes a program, `$0`, with the folders in `$1` added to LD_LIBRARY_PATH. Only the program is to find these libraries.
const WITH_LIBRARIES: &str = "LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH:$1\" && shift && exec \"$0\" \"$@\"";

/// A release of AMD's HIP runtime in the compiler's system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    /// 6.4.3, which is installed there.
    Hip6,
    /// 7.2.4, in a folder of its own.
    Hip7,
}

impl Release {
    const fn name(self) -> &'static str {
        match self {
            Self::Hip6 => "6.4.3",
            Self::Hip7 => "7.2.4",
        }
    }

    /// Folders of its libraries within the system, the first one with libamdhip64 in it.
    const fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Hip6 => &["/usr/lib/x86_64-linux-gnu"],
            Self::Hip7 => &["/opt/hip-7.2.4/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"],
        }
    }

    /// Path of its libamdhip64 within the system.
    fn library(self) -> String {
        let file = match self {
            Self::Hip6 => "libamdhip64.so.6",
            Self::Hip7 => "libamdhip64.so.7",
        };
        format!("{}/{file}", self.folders()[0])
    }
}

/// How a program gets to AMD's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It is linked to it.
    Direct,
    /// It is linked to hipr's library, whose worker serves the runtime.
    Worker,
    /// It is linked to hipr's library, and each of its two devices is of a worker of its own that serves the runtime.
    Workers,
}

/// Programs that do not pass yet, exactly: release, way, program with its level or without for both levels, and why.
const FAILING: &[(Release, Way, &str, &str)] = &[
    (Release::Hip6, Way::Worker, "managed_list", MANAGED),
    (Release::Hip6, Way::Workers, "managed_list", POINTERS),
    (Release::Hip6, Way::Workers, "pools_of_each", ADDRESSES),
    (Release::Hip7, Way::Worker, "managed_list", MANAGED),
    (Release::Hip7, Way::Direct, "libraries.O0", LIBRARIES),
    (Release::Hip7, Way::Direct, "pools_of_each", POOLS),
    (Release::Hip7, Way::Worker, "pools_of_each", POOLS),
];
const MANAGED: &str = "a managed variable of static code is one for each device, as AMD's runtime gives no access to a module's pointer";
const POINTERS: &str = "AMD's runtime chooses the addresses of managed memory, so that a pointer in it does not mean the same to two workers";
const ADDRESSES: &str = "both runtimes give their pools the same addresses, as emulated GPUs have them";
const LIBRARIES: &str =
    "7.2.4 takes each function of a library's code for a kernel, and ends the process at one that is none";
const POOLS: &str = "7.2.4 refuses copies between devices of a pool's memory";

/// What programs are told, because AMD's runtime ends a process, or its use of the device, where hipr's device goes on: docs/differences.md.
const ARGUMENTS: &[(&str, &str)] = &[("faults", "lasting")];

/// Returns how many GPUs a program is to find.
fn devices(program: &Path) -> &'static str {
    let is_pair = program.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"pairs"));
    let is_for_two = |stem: &OsStr| stem == "several_devices" || stem == "devices";
    if is_pair || program.file_stem().is_some_and(is_for_two) { "2" } else { "1" }
}

fn argument(program: &Path) -> Option<&'static str> {
    let stem = program.file_stem().unwrap_or_default();
    ARGUMENTS.iter().find(|(name, _)| stem == *name).map(|(_, argument)| *argument)
}

fn is_listed(release: Release, way: Way, program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    FAILING.iter().any(|&(r, w, listed, _)| (r, w) == (release, way) && (listed == name || listed == stem))
}

/// Returns the executables NAME.O0 and NAME.O3 for a release, compiled if they are not there.
fn programs(release: Release) -> Vec<PathBuf> {
    let programs = compiled("programs", release, &[]);
    assert!(programs.len() >= 2 * PROGRAMS_MIN, "{} executables", programs.len());
    programs
}

/// Starts a worker that serves a release of AMD's runtime on emulated GPUs; `hipr` is the command that runs `hipr` in the system that has it.
fn serve(hipr: Command, release: Release, isolation: &str, more: &[&str]) -> WorkerProcess {
    let library = release.library();
    let options = ["--device", "hip", "--hsa", "emulated", "--hip-library", &library, "--isolate", isolation];
    WorkerProcess::start_command(hipr, &[&options, more].concat())
}

fn compiled(name: &str, release: Release, options: &[&str]) -> Vec<PathBuf> {
    let name = if release == Release::Hip6 { name.into() } else { format!("{name}-{}", release.name()) };
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut build = Command::new(folder().join("programs/build.sh"));
    let build = build.arg(&out).args(["--hip", release.name()]).args(options);
    let result = build.output().expect("the build script runs");
    assert!(
        result.status.success(),
        "the programs do not compile for {}:\n{}",
        release.name(),
        String::from_utf8_lossy(&result.stderr)
    );
    let mut programs: Vec<PathBuf> = fs::read_dir(&out)
        .expect("the folder of programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|level| level == "O0" || level == "O3"))
        .collect();
    programs.sort();
    programs
}

/// Returns what a program printed on both outputs.
fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

/// Returns whether a program that has said its verdict only crashed when it ended, as it may with 7.2.4: at the end of a process that releases its
/// queues while its handler of completed commands, on another thread, still releases the same commands. On a busy machine one of about 80
/// programs for two devices ends with a corrupted heap.
fn only_crashed_at_its_end(release: Release, way: Way, status: ExitStatus) -> bool {
    (release, way) == (Release::Hip7, Way::Direct)
        && status
            .code()
            .is_some_and(|code| [libc::SIGABRT, libc::SIGSEGV].map(|signal| 128 + signal).contains(&code))
}

/// Runs every program, two at a time, and compares which fail with the table.
fn run_all(release: Release, way: Way, programs: &[PathBuf], run: impl Fn(&Path) -> Output + Sync) {
    let next = AtomicUsize::new(0);
    let failures: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut failures = Vec::new();
            while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let name = program.file_name().unwrap_or_default().to_string_lossy();
                let output = run(program);
                let passed = (output.status.success()
                    || only_crashed_at_its_end(release, way, output.status))
                    && output.stdout.split(|&byte| byte == b'\n').any(|line| line.starts_with(b"PASS "));
                match (passed, is_listed(release, way, program)) {
                    (true, false) | (false, true) => {}
                    (true, true) => failures.push(format!("{name} passes, but is listed as failing")),
                    (false, false) => failures.push(format!("{name}: {}\n{}", output.status, text(&output))),
                }
            }
            failures
        };
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let (failed, all) = (failures.len(), programs.len());
    assert!(
        failures.is_empty(),
        "{}, {way:?}: {failed} of {all} differ:\n{}",
        release.name(),
        failures.join("\n")
    );
}

/// Returns the folders of the libraries of AMD's runtime and of the programs that are linked to it, as LD_LIBRARY_PATH lists them; `None`
/// without the compiler's system.
fn libraries(release: Release) -> Option<String> {
    let lab = toolchain(SKIPPED)?;
    let folders = release.folders().iter().map(|folder| format!("{}{folder}", lab.display()));
    Some(folders.collect::<Vec<_>>().join(":"))
}

/// Runs every program linked to AMD's runtime. The libraries of the compiler's system are only for the program, which names that system's
/// loader: they are newer than those that `hipr` may have. The program is executed itself, as some look for files beside /proc/self/exe.
fn run_on_amds_runtime(release: Release, programs: &[PathBuf]) {
    let Some(libraries) = libraries(release) else { return };
    run_all(release, Way::Direct, programs, |program| {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", GUARD_S, HIPR, "hsa", "--", "sh", "-c", WITH_LIBRARIES]);
        command.arg(program).arg(&libraries).args(argument(program));
        // What cargo adds to it has an LLVM of its own. Some programs load code objects from the folder that they are in.
        command
            .env("HIPR_SIM_DEVICES", devices(program))
            .env_remove("LD_LIBRARY_PATH")
            .current_dir(program.parent().expect("a folder"));
        command.output().expect("timeout runs")
    });
}

#[test]
#[ignore = "takes minutes"]
fn programs_pass_on_hip_6() {
    run_on_amds_runtime(Release::Hip6, &programs(Release::Hip6));
}

#[test]
#[ignore = "takes minutes"]
fn programs_pass_on_hip_7() {
    run_on_amds_runtime(Release::Hip7, &programs(Release::Hip7));
}

/// The compiler's system, with `hipr` and its HSA library in a folder that goes away when dropped: what has to be one process with AMD's
/// libraries runs inside it.
struct System {
    root: PathBuf,
    folder: tempfile::TempDir,
}

impl System {
    fn new() -> Option<Self> {
        let root = toolchain(SKIPPED)?;
        let folder = tempfile::Builder::new().prefix("hipr-").tempdir_in(root.join("tmp")).expect("a folder");
        // By a process of its own: Linux does not execute what this process, or what another thread starts meanwhile, has open for writing.
        let copied =
            Command::new("cp").args([Path::new(HIPR), &hsa_library(), folder.path()]).status().expect("cp");
        assert!(copied.success(), "cp: {copied}");
        Some(Self { root, folder })
    }

    /// Returns the name of the folder inside.
    fn inside(&self) -> PathBuf {
        Path::new("/tmp").join(self.folder.path().file_name().expect("a folder's name"))
    }

    /// Copies a file into the folder; returns its name inside.
    fn take_in(&self, file: &Path) -> PathBuf {
        let name = file.file_name().expect("a file's name");
        fs::copy(file, self.folder.path().join(name)).expect("copied");
        self.inside().join(name)
    }

    /// Returns a command that runs `hipr` inside, with a release's libraries.
    fn hipr(&self, release: Release) -> Command {
        let inside = self.inside();
        let mut command = Command::new("chroot");
        command.arg(&self.root).arg(inside.join("hipr")).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        // What this process was told of folders is not true there.
        for variable in ["TMPDIR", "HIPR_HSA_LIBRARY", "HIPR_LIBRARY", "LD_LIBRARY_PATH", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        if release != Release::Hip6 {
            command.env("LD_LIBRARY_PATH", release.folders().join(":"));
        }
        command
    }
}

/// What is below the device `hip` of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// AMD's runtime.
    Runtime,
    /// The same behind `tests/faulty-hip`, which can fail and records calls.
    Faulty,
}

/// Runs `check` with a worker that serves a release of AMD's runtime.
fn with_rig(release: Release, isolation: &str, below: Below, check: impl FnOnce(&Rig<'_>)) {
    let Some(system) = System::new() else { return };
    let library = PathBuf::from(release.library());
    let runtime = match below {
        Below::Runtime => library.clone(),
        Below::Faulty => system.take_in(&built_library("libfaulty_hip.so")),
    };
    let front = |runtime: &Path| {
        let mut command = system.hipr(release);
        command.args(["worker", "--listen", "127.0.0.1:0", "--device", "hip", "--hsa", "emulated"]);
        // The trace and the plan are files that the sandbox does not allow.
        command.args(["--cache", "256M", "--sandbox", "off", "--isolate", isolation, "--hip-library"]);
        command.arg(runtime);
        if isolation == "none" {
            // A kernel that does not end holds up all streams that share its hardware queue, those of other sessions too.
            command.env("GPU_MAX_HW_QUEUES", "16");
        }
        command
    };
    let root = Some(system.root.clone());
    check(&Rig { front: &front, runtime, library, root, is_emulated: false });
}

/// Returns the HSA library that cargo has built beside `hipr`; HIPR_HSA_LIBRARY names another.
fn hsa_library() -> PathBuf {
    let beside = |folder: &str| Path::new(HIPR).with_file_name(folder).join("libhsa_runtime64.so");
    let named = env::var_os("HIPR_HSA_LIBRARY").map(PathBuf::from);
    named
        .into_iter()
        .chain([beside("deps"), beside(".")])
        .find(|path| path.exists())
        .expect("cargo has built it")
}

#[test]
fn rocminfo_shows_the_emulated_gpus() {
    let Some(system) = System::new() else { return };
    for (options, expected) in [
        (&[][..], &["gfx942"][..]),
        (&["--devices", "2"], &["gfx942", "gfx942"]),
        (&["--devices", "2,gfx90a"], &["gfx90a", "gfx90a"]),
        (&["--devices", "gfx942,gfx90a", "--memory", "2G"], &["gfx942", "gfx90a"]),
    ] {
        let mut command = system.hipr(Release::Hip6);
        let output = command.arg("hsa").args(options).args(["--", "rocminfo"]).output().expect("chroot runs");
        let text = text(&output);
        assert!(output.status.success(), "{options:?}: {}\n{text}", output.status);
        // An agent's name stands before all that is told of it.
        let value = |line: &str, field: &str| Some(line.trim().strip_prefix(field)?.trim().to_owned());
        let agents: Vec<&str> = text.split("\nAgent ").skip(1).collect();
        let gpus: Vec<String> = agents
            .iter()
            .filter(|agent| agent.lines().any(|line| value(line, "Device Type:").as_deref() == Some("GPU")))
            .filter_map(|agent| agent.lines().find_map(|line| value(line, "Name:")))
            .collect();
        assert_eq!(gpus, expected, "{options:?}:\n{text}");
        assert_eq!(agents.len(), expected.len() + 1, "the processor is an agent as well:\n{text}");
        for isa in expected.iter().collect::<BTreeSet<_>>() {
            assert!(text.contains(&format!("amdgcn-amd-amdhsa--{isa}:")), "{options:?}: {isa}\n{text}");
        }
        let is_2g =
            text.lines().any(|line| value(line, "Size:").is_some_and(|size| size.starts_with("2097152(")));
        assert_eq!(is_2g, options.contains(&"2G"), "{options:?}:\n{text}");
    }
}

/// Runs every program linked to hipr's library, with a worker that serves AMD's runtime on the emulated GPUs.
fn run_over_a_worker(release: Release, isolation: &str) {
    let Some(system) = System::new() else { return };
    let mut worker = serve(system.hipr(release), release, isolation, &[]);
    let address = worker.address().to_string();
    let mut programs = programs(release);
    let mut alone = Vec::new();
    if isolation == "none" {
        // A fault ends the process of all sessions, and what a kernel prints is on the worker's output. A session that waits for the device takes from all pools what was given back to them.
        let name = |program: &Path| program.file_stem().map(OsStr::to_owned);
        let excluded = ["faults", "device_assert", "device_printf"];
        programs
            .retain(|program| name(program).is_none_or(|name| excluded.iter().all(|other| name != *other)));
        (alone, programs) =
            programs.into_iter().partition(|program| name(program).is_some_and(|name| name == "pools"));
    }
    let run = |program: &Path| {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", GUARD_S, HIPR, "run", "--worker", &address, "--"]).arg(program);
        command.args(argument(program));
        command.current_dir(program.parent().expect("a folder")).output().expect("timeout runs")
    };
    run_all(release, Way::Worker, &programs, run);
    for program in alone {
        run_all(release, Way::Worker, &[program], run);
    }
    assert!(worker.lives(), "{}", worker.log());
}

#[test]
#[ignore = "takes minutes"]
fn programs_pass_over_a_worker_with_hip_6() {
    run_over_a_worker(Release::Hip6, "none");
}

#[test]
#[ignore = "takes minutes"]
fn programs_pass_over_a_worker_with_hip_6_and_processes() {
    run_over_a_worker(Release::Hip6, "process");
}

#[test]
#[ignore = "takes minutes"]
fn programs_pass_over_a_worker_with_hip_7() {
    run_over_a_worker(Release::Hip7, "process");
}
