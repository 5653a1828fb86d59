//! Tests without a worker, with a wrong one, and with one that dies: every call returns an error, one line is logged, and
//! nothing hangs or crashes.

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::ptr::null_mut;
use std::thread;

use hipr_proto::{HipError, Opcode};
use support::hip::*;
use support::{FakeWorker, Reaction, easy, finish, is_program, log_lines, nobody, program, run};

const NO_DEVICE: i32 = HipError::NO_DEVICE.0;
const LOST: i32 = HipError::CONTEXT_IS_DESTROYED.0;

#[test]
#[ignore = "a program that other tests run"]
fn program_without_a_device() {
    if !is_program() {
        return;
    }
    let (mut number, mut ptr) = (-7, null_mut());
    // What AMD's library returns on a machine without a GPU.
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipInit(0), NO_DEVICE);
        assert_eq!(hipGetDeviceCount(null_mut()), HipError::INVALID_VALUE.0);
        assert_eq!((hipGetDeviceCount(&mut number), number), (NO_DEVICE, 0));
        number = -7;
        assert_eq!((hipGetDevice(&mut number), number), (NO_DEVICE, -7), "nothing is written");
        assert_eq!(hipSetDevice(0), NO_DEVICE);
        assert_eq!(hipMalloc(&mut ptr, 16), NO_DEVICE);
        assert_eq!(hipFree(null_mut()), NO_DEVICE);
        assert_eq!(hipMemset(null_mut(), 0, 8), NO_DEVICE);
        assert_eq!(hipHostMalloc(&mut ptr, 16, 0), NO_DEVICE);
        assert_eq!(hipMallocManaged(&mut ptr, 16, 1), NO_DEVICE);
        assert_eq!(hipDeviceSynchronize(), NO_DEVICE);
        assert_eq!(hipStreamSynchronize(null_mut()), NO_DEVICE);
        assert_eq!(hipPeekAtLastError(), NO_DEVICE);
        assert_eq!(hipGetLastError(), NO_DEVICE);
        assert_eq!((hipDriverGetVersion(&mut number), number), (0, 60_443_484));
    }
}

#[test]
fn nobody_listens() {
    let address = nobody();
    let stderr = run(program("program_without_a_device", address));
    let lines = log_lines(&stderr);
    let [line] = lines.as_slice() else { panic!("one line: {lines:?}") };
    assert!(line.starts_with(&format!("hipr: cannot reach the worker at {address}: ")), "{line}");
    assert!(line.ends_with("; set HIPR_WORKER or start `hipr worker`"), "{line}");
}

#[test]
fn a_name_without_an_address() {
    let mut command = program("program_without_a_device", nobody());
    let stderr = run({
        command.env("HIPR_WORKER", "no such host:1");
        command
    });
    assert_eq!(log_lines(&stderr).len(), 1, "{stderr}");
}

#[test]
fn somebody_who_does_not_answer() {
    // Accepts, and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut command = program("program_without_a_device", listener.local_addr().expect("an address"));
    command.env("HIPR_CONNECT_TIMEOUT_MS", "200");
    let stderr = run(command);
    let lines = log_lines(&stderr);
    assert!(matches!(lines.as_slice(), [line] if line.contains("no answer within 200 ms")), "{lines:?}");
}

#[test]
fn somebody_who_speaks_something_else() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 24]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let stderr = run(program("program_without_a_device", address));
    let lines = log_lines(&stderr);
    assert!(matches!(lines.as_slice(), [line] if line.contains("does not speak HIPR")), "{lines:?}");
}

#[test]
fn a_worker_that_refuses() {
    let worker = FakeWorker::start(|_| Reaction::Bad(HipError::OUT_OF_MEMORY));
    let stderr = run(program("program_without_a_device", worker.address));
    let lines = log_lines(&stderr);
    assert!(matches!(lines.as_slice(), [line] if line.contains("refuses the session")), "{lines:?}");
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_loses_its_worker() {
    if !is_program() {
        return;
    }
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers; a device pointer is only passed on.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 4096), 0);
        assert_eq!(hipMemset(ptr, 0, 4096), 0);
        // What only the device sees: a wait has to ask for it.
        assert_eq!(hipMemcpy(ptr, ptr.cast::<u8>().add(2048).cast(), 64, D2D), 0);
        // Threads that wait are all told.
        let waiting: Vec<_> = (0..4).map(|_| thread::spawn(|| hipDeviceSynchronize())).collect();
        for thread in waiting {
            assert_eq!(thread.join().expect("no panic"), LOST);
        }
        assert_eq!(hipMalloc(&mut ptr, 16), LOST);
        assert_eq!(hipMemset(ptr, 0, 16), LOST);
        assert_eq!(hipFree(ptr), LOST);
        let mut host = [0u8; 64];
        assert_eq!(
            hipMemcpy(host.as_mut_ptr().cast(), ptr, 64, D2H),
            HipError::INVALID_VALUE.0,
            "it was freed"
        );
        assert_eq!(hipDeviceSynchronize(), LOST);
        assert_eq!(hipGetLastError(), LOST);
    }
}

#[test]
fn a_worker_that_dies() {
    let worker = FakeWorker::start(|asked| match asked.op {
        Opcode::DEVICE_SYNCHRONIZE => Reaction::Close,
        _ => easy(asked),
    });
    let stderr = run(program("program_that_loses_its_worker", worker.address));
    let lines = log_lines(&stderr);
    let [line] = lines.as_slice() else { panic!("one line: {lines:?}") };
    assert!(
        line.starts_with(&format!("hipr: lost the connection to the worker at {}: ", worker.address)),
        "{line}"
    );
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_asks_for_what_is_not_there() {
    if !is_program() {
        return;
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: C calls with good pointers.
    unsafe {
        for _ in 0..3 {
            assert_eq!(hipMemPoolExportPointer(null_mut(), null_mut()), HipError::NOT_SUPPORTED.0);
            assert_eq!(hipGetLastError(), HipError::NOT_SUPPORTED.0);
            assert_eq!(hiprtcVersion(&mut major, &mut minor), 11, "HIPRTC_ERROR_INTERNAL_ERROR");
        }
    }
}

#[test]
fn what_is_not_supported_is_said_once_and_needs_no_worker() {
    let mut program = program("program_that_asks_for_what_is_not_there", nobody());
    program.env("HIPR_HIPRTC_LIBRARY", "/nowhere/libhiprtc.so");
    let stderr = finish(program.spawn().expect("it starts"));
    let lines = log_lines(&stderr);
    let [peer, rtc] = lines.as_slice() else { panic!("two lines: {lines:?}") };
    assert!(peer.contains("hipMemPoolExportPointer is not supported"), "{peer}");
    assert!(rtc.contains("/nowhere/libhiprtc.so"), "{rtc}");
    assert!(rtc.contains("HIPR_HIPRTC_LIBRARY"), "{rtc}");
}
