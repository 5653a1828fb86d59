//! Runs `tests/programs/several_devices.hip` on several emulated GPUs: over each transport and loop, isolated, with lazy synchronization,
//! without the extension, through a chain of workers; and with the variables that choose devices. `workers` and `pairs` have several workers.
//! Without the compiler (`tests/toolchain/setup.sh`) the programs are skipped, or fail if HIPR_REQUIRE_COMPILER is set.

#[path = "several_devices/between.rs"]
mod between;
#[path = "several_devices/pairs.rs"]
mod pairs;
#[path = "several_devices/workers.rs"]
mod workers;

use hipr_tests::WorkerProcess;
use hipr_tests::toolchain::{folder, toolchain};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const SEVERAL: [&str; 2] = ["--device=sim", "--sim-devices=2"];

/// Returns a program without and with optimization; `None` without a compiler. All are compiled once.
fn compiled(name: &str) -> Option<[PathBuf; 2]> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        toolchain("the programs for several devices did not run")?;
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("several-devices");
        let mut build = Command::new(folder().join("programs/build.sh"));
        let names = ["several_devices", "across_workers", "direct_copies", "lost_worker"];
        let result = build.arg(&out).args(names).output().expect("the build script runs");
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        Some(out)
    };
    let out = FOLDER.get_or_init(build).as_ref()?;
    Some(["O0", "O3"].map(|level| out.join(format!("{name}.{level}"))))
}

fn programs() -> Option<[PathBuf; 2]> {
    compiled("several_devices")
}

fn hipr_run(options: &[&str]) -> Command {
    let mut command = Command::new(HIPR);
    command.arg("run").args(options).arg("--");
    for variable in
        ["HIPR_SIM_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]
    {
        command.env_remove(variable);
    }
    command
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

/// Runs the program with these arguments.
fn pass(what: &str, command: &mut Command, program: &Path, arguments: &str) {
    let output = command.arg(program).args(arguments.split_whitespace()).output().expect("hipr runs");
    assert!(output.status.success() && output.stdout.starts_with(b"PASS"), "{what}: {}", text(&output));
}

#[test]
fn a_program_uses_two_devices_of_its_own_worker() {
    let Some(programs) = programs() else { return };
    for program in &programs {
        pass("an option", &mut hipr_run(&["--sim-devices", "2"]), program, "2");
        pass("lazy", &mut hipr_run(&["--lazy-sync", "--sim-devices", "2"]), program, "2");
        pass("a variable", hipr_run(&[]).env("HIPR_SIM_DEVICES", "3"), program, "3");
        pass("one", &mut hipr_run(&[]), program, "1");
    }
}

#[test]
fn a_program_uses_two_devices_over_each_transport_and_loop() {
    let Some(programs) = programs() else { return };
    let sockets = tempfile::tempdir().expect("a folder");
    for (index, (transport, io, isolate)) in [
        ("tcp", "mio", "none"),
        ("tcp", "auto", "process"),
        ("unix", "mio", "process"),
        ("unix", "auto", "none"),
        ("shm", "mio", "none"),
        ("shm", "auto", "none"),
    ]
    .into_iter()
    .enumerate()
    {
        let listen = match transport {
            "tcp" => "127.0.0.1:0".to_owned(),
            _ => format!("{transport}:{}", sockets.path().join(index.to_string()).display()),
        };
        let options = [&SEVERAL[..], &["--io", io, "--isolate", isolate, "--listen", &listen]].concat();
        let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        let address = worker.listens_at().to_string();
        let what = format!("{transport}, {io}, {isolate}");
        for (program, (variable, value)) in
            programs.iter().zip([("HIPR_SYNC", "strict"), ("HIPR_EXTENSION", "off")])
        {
            let mut command = hipr_run(&["--worker", &address]);
            pass(&what, command.env(variable, value), program, "2");
        }
        assert!(worker.lives(), "{}", worker.log());
    }
}

#[test]
fn a_program_uses_two_devices_through_a_chain() {
    let Some([_, program]) = programs() else { return };
    let back =
        WorkerProcess::start_logged(Path::new(HIPR), &[&SEVERAL[..], &["--listen", "127.0.0.1:0"]].concat());
    for isolation in ["process", "none"] {
        let front = WorkerProcess::start_in_front(Path::new(HIPR), &back, isolation);
        let address = front.address().to_string();
        pass(isolation, &mut hipr_run(&["--worker", &address]), &program, "2 chained");
    }
}

#[test]
fn variables_choose_the_devices_that_a_program_sees() {
    let Some([_, program]) = programs() else { return };
    for (variables, seen) in [
        (&[("HIP_VISIBLE_DEVICES", "2,0")][..], Some("2")),
        (&[("HIP_VISIBLE_DEVICES", "1,0,2")], Some("3")),
        (&[("HIP_VISIBLE_DEVICES", "1")], Some("1")),
        (&[("HIP_VISIBLE_DEVICES", "GPU-hipr-emulated-02,1")], Some("2")),
        (&[("HIP_VISIBLE_DEVICES", "0,7,1")], Some("1")),
        (&[("CUDA_VISIBLE_DEVICES", "2,1")], Some("2")),
        (&[("HIP_VISIBLE_DEVICES", "1"), ("CUDA_VISIBLE_DEVICES", "2,1")], Some("1")),
        (&[("ROCR_VISIBLE_DEVICES", "2,1")], Some("2")),
        (&[("ROCR_VISIBLE_DEVICES", "2,1"), ("HIP_VISIBLE_DEVICES", "1")], Some("1")),
        (&[("ROCR_VISIBLE_DEVICES", "2,1"), ("HIP_VISIBLE_DEVICES", "2")], None),
        (&[("HIP_VISIBLE_DEVICES", "-1")], None),
        (&[("HIP_VISIBLE_DEVICES", "")], None),
        (&[("HIP_VISIBLE_DEVICES", "3")], None),
        (&[("ROCR_VISIBLE_DEVICES", "")], None),
    ] {
        let mut command = hipr_run(&["--sim-devices", "3"]);
        command.envs(variables.iter().copied());
        match seen {
            Some(devices) => pass(&format!("{variables:?}"), &mut command, &program, devices),
            None => {
                let output = command.arg(&program).output().expect("hipr runs");
                let text = text(&output);
                assert_eq!(output.status.code(), Some(2), "{variables:?}: {text}");
                assert!(text.contains("hipErrorNoDevice, count 0"), "{variables:?}: {text}");
            }
        }
    }
}

#[test]
fn what_is_no_number_of_devices_is_refused() {
    let refusal = |command: &mut Command| {
        let output = command.arg("true").output().expect("hipr runs");
        assert!(!output.status.success());
        text(&output)
    };
    for wrong in ["0", "17", "-1", "two", "2,gfx942"] {
        let option = refusal(&mut hipr_run(&[&format!("--sim-devices={wrong}")]));
        assert!(option.contains("it must be a number from 1 to 16"), "{option}");
        let variable = refusal(hipr_run(&[]).env("HIPR_SIM_DEVICES", wrong));
        let expected = format!("HIPR_SIM_DEVICES={wrong}: it must be a number from 1 to 16");
        assert!(variable.contains(&expected) && variable.lines().count() == 1, "{variable}");
    }
    for command in ["check", "profile"] {
        let text = refusal(Command::new(HIPR).args([command, "--sim-devices", "2", "--"]));
        assert!(text.contains("the work of one device can be seen, not that of several"), "{text}");
    }
}
