//! Tests that an error of a kernel leads back to the launch that it comes from: code, place, and one line on standard error.

use hipr_proto::HipError;
use hipr_tests::{Chain, library_folder, start_worker, start_worker_with_limit};
use std::path::Path;
use std::process::Command;

/// What a program has done: a line of its standard output.
#[derive(Debug)]
struct Case {
    call: u64,
    kernel: String,
    function: String,
    has_stream: bool,
    code: HipError,
    after: HipError,
}

fn case(line: &str) -> Case {
    let words: Vec<&str> = line.split(' ').collect();
    let [call, kernel, function, has_stream, code, after] = words[..] else { panic!("{line}") };
    let error = |code: &str| HipError(code.parse().expect("a code"));
    Case {
        call: call.parse().expect("a number"),
        kernel: kernel.to_owned(),
        function: function.to_owned(),
        has_stream: has_stream == "true",
        code: error(code),
        after: error(after),
    }
}

/// Runs the program whose kernels fail; returns its cases, each with the line of the library's log about it.
fn run(worker: &str, kernels: &str, extension: &str) -> (Vec<Case>, Vec<String>) {
    let folder = library_folder();
    let output = Command::new(env!("CARGO_BIN_EXE_failing-kernels"))
        .arg(kernels)
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker)
        .env("HIPR_EXTENSION", extension)
        .output()
        .expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let lines = err.lines().filter(|line| line.starts_with("hipr: ")).map(str::to_owned).collect();
    (out.lines().map(case).collect(), lines)
}

/// Checks that each case has one line, which says where its error comes from; `told` is what the device says of a kernel's error.
fn check(cases: &[Case], lines: &[String], told: impl Fn(&str) -> (HipError, &'static str)) {
    assert_eq!(cases.len(), lines.len(), "{lines:#?}");
    let number = |line: &str| {
        let (_, rest) = line.split_once("(call ").unwrap_or_else(|| panic!("{line}"));
        rest.split(')')
            .next()
            .and_then(|number| number.parse::<u64>().ok())
            .unwrap_or_else(|| panic!("{line}"))
    };
    // The library counts calls that are none of the program's own, such as those that find functions; always as many.
    let more = number(&lines[0]) - cases[0].call;
    for (case, line) in cases.iter().zip(lines) {
        let (error, text) = told(&case.kernel);
        assert_eq!((case.code, case.after), (error, HipError(0)), "{case:?}: once, with the wait");
        let Case { function, kernel, .. } = case;
        let call = case.call + more;
        let start =
            format!("hipr: the work of {function} (call {call}) failed with {error} (kernel {kernel}, ");
        assert!(line.starts_with(&start), "{case:?}: {line}\n{start}");
        let stream = if case.has_stream { "stream 0x" } else { "the null stream" };
        assert!(line[start.len()..].starts_with(stream), "{case:?}: {line}");
        assert!(line.contains(", request ") && line.contains(text), "{case:?}: {line}");
        assert!(line.ends_with("; a call that waits returns the error"), "{line}");
    }
}

/// What the emulated GPU says of the kernels that do what they must not.
fn fault(kernel: &str) -> (HipError, &'static str) {
    match kernel {
        "write_at" => (HipError::ILLEGAL_ADDRESS, ": illegal store: no memory at 0x123456789000"),
        "read_at" => (HipError::ILLEGAL_ADDRESS, ": illegal load: no memory at 0x123456789000"),
        "trap_if" => (HipError::LAUNCH_FAILURE, ": trap 2 at pc 0x"),
        _ => panic!("{kernel}"),
    }
}

#[test]
fn a_kernel_that_fails_is_named_with_its_call() {
    let worker = start_worker();
    let (cases, lines) = run(&worker.address().to_string(), "faults", "on");
    assert_eq!(cases.len(), 3 * 3 * 4);
    check(&cases, &lines, fault);
}

#[test]
fn a_kernel_that_reaches_a_limit_is_named_with_its_call() {
    const INSTRUCTIONS: u64 = 1 << 20;
    let worker = start_worker_with_limit(INSTRUCTIONS);
    let (cases, lines) = run(&worker.address().to_string(), "bounds", "on");
    assert_eq!(cases.len(), 3 * 4);
    check(&cases, &lines, |_| (HipError::LAUNCH_TIME_OUT, ": stopped after 1048576 instructions"));
}

/// HIP does not say which kernel an error comes from: there it is the only one that was launched.
#[test]
fn behind_a_runtime_the_only_launch_is_named() {
    let chain = Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")));
    let (cases, lines) = run(&chain.address().to_string(), "faults", "on");
    assert_eq!(cases.len(), 3 * 3 * 4);
    check(&cases, &lines, |kernel| (fault(kernel).0, ""));
}

#[test]
fn a_client_without_the_extension_gets_the_same_codes() {
    let worker = start_worker();
    let (cases, lines) = run(&worker.address().to_string(), "faults", "off");
    assert!(lines.is_empty(), "{lines:?}");
    for case in cases {
        assert_eq!((case.code, case.after), (fault(&case.kernel).0, HipError(0)), "{case:?}");
    }
}
