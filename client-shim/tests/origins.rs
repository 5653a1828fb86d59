//! Tests that the error of what nobody waits for is told with the call that it comes from: once, with its code, by the next wait, and in one
//! line on standard error.

mod support;

use std::ffi::CString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::ptr::null_mut;

use hipr_client::{Failed, Failure};
use hipr_proto::op::{ForOp, Info, OPS, OfferReply, Op, ReplyRule, TailLen, with_op};
use hipr_proto::{Features, HipError, Opcode};
use support::hip::*;
use support::{FakeWorker, Reaction, bytes, easy, is_program, log_lines, program, run, scripted, tell_test};

/// What calls are made with.
struct Things {
    memory: Ptr,
    stream: Ptr,
    event: Ptr,
    module: Ptr,
    function: Ptr,
}

/// Calls that are not waited for: the function, the method of the device that fails, and whether the line says a kernel and a stream.
const CALLS: &[(&str, &str, bool, bool)] = &[
    ("hipMemset", "fill", false, false),
    ("hipMemsetAsync", "fill", false, true),
    ("hipMemsetD16", "fill", false, false),
    ("hipMemset2D", "fill", false, false),
    ("hipMemcpyAsync", "write", false, true),
    ("hipMemcpy", "write", false, false),
    ("hipMemcpyAsync", "copy", false, true),
    ("hipEventRecord", "event_record", false, true),
    ("hipStreamWaitEvent", "stream_wait_event", false, true),
    ("hipModuleLaunchKernel", "launch", true, true),
    ("hipFree", "poll_free_reserved", false, false),
    ("hipMalloc", "malloc_at", false, false),
    ("hipStreamCreateWithFlags", "stream_create", false, false),
    ("hipEventCreate", "event_create", false, false),
    ("hipEventDestroy", "event_destroy", false, false),
    ("hipStreamDestroy", "stream_destroy", false, true),
    ("hipModuleGetFunction", "function", false, false),
    ("hipModuleUnload", "module_unload", false, false),
    ("hipModuleLoad", "module_load", false, false),
];

/// Makes a call of [`CALLS`].
fn make(call: (&str, &str), it: &Things) -> i32 {
    let (mut out, source) = (null_mut(), (&raw const SOURCE).cast());
    let within = it.memory.wrapping_byte_add(64).cast_const();
    let mut argument = 7u64;
    let mut params = [(&raw mut argument).cast()];
    // SAFETY: C calls with good pointers and handles; what is destroyed is used by no later call.
    unsafe {
        match call {
            ("hipMemset", _) => hipMemset(it.memory, 1, 64),
            ("hipMemsetAsync", _) => hipMemsetAsync(it.memory, 1, 64, it.stream),
            ("hipMemsetD16", _) => hipMemsetD16(it.memory, 1, 64),
            ("hipMemset2D", _) => hipMemset2D(it.memory, 64, 1, 64, 2),
            ("hipMemcpyAsync", "write") => hipMemcpyAsync(it.memory, source, 64, H2D, it.stream),
            ("hipMemcpyAsync", _) => hipMemcpyAsync(it.memory, within, 64, D2D, it.stream),
            ("hipMemcpy", _) => hipMemcpy(it.memory, source, 64, H2D),
            ("hipEventRecord", _) => hipEventRecord(it.event, it.stream),
            ("hipStreamWaitEvent", _) => match hipEventRecord(it.event, it.stream) {
                0 => hipStreamWaitEvent(it.stream, it.event, 0),
                error => error,
            },
            ("hipModuleLaunchKernel", _) => {
                let (on, params) = (it.stream, params.as_mut_ptr());
                hipModuleLaunchKernel(it.function, 1, 1, 1, 64, 1, 1, 0, on, params, null_mut())
            }
            ("hipFree", _) => hipFree(it.memory),
            ("hipMalloc", _) => hipMalloc(&mut out, 256),
            ("hipStreamCreateWithFlags", _) => hipStreamCreateWithFlags(&mut out, 1),
            ("hipEventCreate", _) => hipEventCreate(&mut out),
            ("hipEventDestroy", _) => hipEventDestroy(it.event),
            ("hipStreamDestroy", _) => hipStreamDestroy(it.stream),
            ("hipModuleGetFunction", _) => hipModuleGetFunction(&mut out, it.module, c"nothing".as_ptr()),
            ("hipModuleUnload", _) => hipModuleUnload(it.module),
            ("hipModuleLoad", _) => hipModuleLoad(&mut out, image().as_ptr()),
            other => panic!("{other:?}"),
        }
    }
}

static SOURCE: [u8; 64] = [3; 64];

const REFUSED: HipError = HipError::NOT_INITIALIZED;

/// Returns the path of a code object that has the kernels `globals` and others.
fn image() -> CString {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/code-object/tests/data");
    CString::new(folder.join("kernels-v6.elf").to_str().expect("a path that is text")).expect("no NUL")
}

#[test]
#[ignore = "a program that other tests run"]
fn program_whose_calls_fail_late() {
    if !is_program() {
        return;
    }
    let none = null_mut();
    let mut it = Things { memory: none, stream: none, event: none, module: none, function: none };
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipMalloc(&mut it.memory, 4096), 0);
        assert_eq!(hipStreamCreateWithFlags(&mut it.stream, 1), 0);
        assert_eq!(hipEventCreate(&mut it.event), 0);
        assert_eq!(hipModuleLoad(&mut it.module, image().as_ptr()), 0);
        assert_eq!(hipModuleGetFunction(&mut it.function, it.module, c"globals".as_ptr()), 0);
    }
    let mut base = none;
    // SAFETY: C call with a good pointer.
    assert_eq!(unsafe { hipMalloc(&mut base, 4096) }, 0);
    let mut byte = 0u8;
    // A synchronization does not ask about a set whose range was checked, as it cannot fail on a GPU.
    // SAFETY: C call; there is one byte at both.
    let mut wait = || unsafe { hipMemcpy((&raw mut byte).cast(), base, 1, D2H) };
    for (name, method, ..) in CALLS {
        assert_eq!(wait(), 0, "before {name}");
        tell_test();
        let codes = [make((name, method), &it), wait(), wait()];
        println!("\n{name} {codes:?}");
        assert_eq!(codes, [0, REFUSED.0, 0], "{name}");
    }
}

/// Returns the number of the call in a line of the log.
fn call_of(line: &str) -> u64 {
    let (_, rest) = line.split_once(" (call ").unwrap_or_else(|| panic!("{line}"));
    rest.split(')').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn a_call_that_fails_late_is_named() {
    let (worker, script) = scripted();
    script.define_kernel("globals", 8, &[(0, 8)]);
    script.define_kernel("nothing", 0, &[]);
    let mut child = program("program_whose_calls_fail_late", worker.local_addr()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut said = Vec::new();
    for (_, method, ..) in CALLS {
        loop {
            match lines.next() {
                Some(Ok(line)) if line == "ready" => break,
                Some(Ok(line)) => said.push(line),
                _ => {
                    let output = child.wait_with_output().expect("it ends");
                    panic!("before {method}: {said:?}\n{}", String::from_utf8_lossy(&output.stderr));
                }
            }
        }
        script.fail_next(method, REFUSED);
        stdin.write_all(b"g").expect("the program reads");
    }
    lines.for_each(drop);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let lines = log_lines(&stderr);
    assert_eq!(lines.len(), CALLS.len(), "{stderr}");
    let mut last = 0;
    for ((name, _, has_kernel, has_stream), line) in CALLS.iter().zip(lines) {
        assert!(line.starts_with(&format!("hipr: {name} (call ")), "{name}: {line}");
        assert!(line.contains(&format!(") failed on the worker with {REFUSED} (")), "{name}: {line}");
        assert_eq!(line.contains("(kernel globals, "), *has_kernel, "{name}: {line}");
        assert_eq!(line.contains("stream 0x"), *has_stream, "{name}: {line}");
        assert!(
            line.contains("request ") && line.ends_with("; a call that waits returns the error"),
            "{line}"
        );
        // Between two of them there are three waits, and another call before one of them.
        let call = call_of(line);
        let is_in_turn = last == 0 || (4..=5).contains(&(call - last));
        assert!(is_in_turn, "{name}: call {call} after {last}");
        last = call;
    }
}

/// Tells the worker the request of an operation whose fields are all zero.
struct Tell;

impl ForOp for Tell {
    type Out = bool;

    fn call<O: Op>(self) -> bool {
        let op = O::ZERO;
        let (TailLen::Exact(0) | TailLen::AtLeast(0) | TailLen::AtMost(_)) = op.tail_len() else {
            return false;
        };
        let session = amdhip64::process::session().expect("a session");
        session.worker().tell(&op).expect("a connection");
        true
    }
}

/// Which part of the operations a program is for, as the log of one process would leave out the last of all of them.
const PART: &str = "HIPR_TEST_PART";
const PARTS: usize = 3;

fn told(part: usize) -> impl Iterator<Item = &'static Info> {
    let of_sessions = [Opcode::INIT, Opcode::OFFER, Opcode::SHUTDOWN];
    let is_request =
        move |info: &&Info| info.reply_rule != ReplyRule::Notification && !of_sessions.contains(&info.code);
    OPS.iter().filter(is_request).skip(part).step_by(PARTS)
}

#[test]
#[ignore = "a program that other tests run"]
fn program_whose_requests_are_refused() {
    if !is_program() {
        return;
    }
    let part = std::env::var(PART).expect("which part").parse().expect("a number");
    // SAFETY: C calls.
    let wait = || unsafe { hipDeviceSynchronize() };
    assert_eq!(wait(), 0);
    for info in told(part) {
        if with_op(info.code, Tell).expect("an operation of the table") {
            assert_eq!([wait(), wait()], [REFUSED.0, 0], "{}", info.name);
            println!("\ntold {}", info.name);
        }
    }
}

#[test]
fn every_operation_that_is_refused_is_told_once() {
    let mut count = 0;
    for part in 0..PARTS {
        let is_told = move |op: Opcode| told(part).any(|info| info.code == op);
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::OFFER => Reaction::Good(bytes(&OfferReply { features: Features::NOTIFICATIONS.bits() })),
            // The one that is told, and not the wait behind it.
            op if !asked.wants_reply && is_told(op) => {
                Reaction::Refused(REFUSED, format!("{op} \u{1b}[31m\n"))
            }
            _ => easy(asked),
        });
        let mut command = program("program_whose_requests_are_refused", worker.address);
        command.env(PART, part.to_string());
        let stderr = run(command);
        let lines = log_lines(&stderr);
        let expected = told(part).filter(|info| {
            let zeros = vec![0; info.request.size];
            matches!(info.tail_len(&zeros), Ok(TailLen::Exact(0) | TailLen::AtLeast(0) | TailLen::AtMost(_)))
        });
        let expected: Vec<_> = expected.collect();
        assert_eq!(lines.len(), expected.len(), "{stderr}");
        for (info, line) in expected.iter().zip(&lines) {
            assert!(line.contains(&format!(": {} ", info.name)), "{}: {line}", info.name);
            assert!(line.contains(&format!("failed on the worker with {REFUSED} (")), "{line}");
            assert!(!line.contains('\u{1b}'), "what a worker says is escaped: {line:?}");
            count += 1;
        }
    }
    assert!(count > OPS.len() / 2, "{count} operations");
}

#[test]
fn a_line_is_bounded_whatever_a_worker_says() {
    let long = "x\u{1b}\n".repeat(100_000);
    let failure = Failure {
        request: u32::MAX,
        op: Opcode(0xffff),
        what: Failed::Work,
        caller: None,
        error: HipError(i32::MIN),
        function: u64::MAX,
        stream: u64::MAX,
        kernel: long.clone(),
        text: long,
    };
    let line = failure.line(None, None);
    assert!(line.len() < 8192 && !line.contains(['\u{1b}', '\n']), "{} bytes", line.len());
    assert!(
        Failure { what: Failed::OneOf(7), ..failure.clone() }
            .line(Some(("hipX", 3)), None)
            .contains("hipX (call 3)")
    );
    assert!(Failure { what: Failed::Unknown, ..failure }.line(None, None).len() < 200);
}
