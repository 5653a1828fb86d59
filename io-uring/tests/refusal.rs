//! Tests the error where a seccomp filter blocks io_uring, as in many containers.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use hipr_io::{Config, Listener};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// Returns the error of creating a loop on a thread for which `io_uring_setup` fails with `errno`.
fn refused_with(errno: i32) -> std::io::Error {
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_io_uring_setup, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        TargetArch::try_from(std::env::consts::ARCH).expect("an architecture with seccomp"),
    );
    let program = BpfProgram::try_from(filter.expect("a filter")).expect("a program");
    let refused = thread::spawn(move || {
        apply_filter(&program).expect("a thread may restrict itself");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        hipr_io_uring::serve(Listener::Tcp(listener), Config::default(), Arc::default()).map(|_| ())
    });
    refused.join().expect("no panic").expect_err("no loop can be made")
}

#[test]
fn a_filter_that_forbids_it_is_named() {
    let why = refused_with(libc::EPERM);
    assert_eq!(why.kind(), ErrorKind::PermissionDenied);
    let text = why.to_string();
    assert!(text.contains("seccomp") || text.contains("kernel.io_uring_disabled"), "{text}");
}

#[test]
fn a_filter_that_hides_it_looks_like_a_kernel_without_it() {
    let why = refused_with(libc::ENOSYS);
    assert_eq!(why.kind(), ErrorKind::Unsupported);
    assert!(why.to_string().contains("seccomp"), "{why}");
}
