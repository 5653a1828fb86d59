//! Tests what is read from the log of a program's allocations (`client-shim/src/host_log.rs` has its form).

use hipr_check::host::{self, Host};
use hipr_check::{Kind, Near};
use std::fs;

fn read(log: &str) -> Host {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    fs::write(&path, log).expect("the log is written");
    host::read(&path).expect("the log is read")
}

/// The kind of a mistake, the address and bytes of its memory, and how often it was made.
type Made = (Kind, Option<(u64, u64)>, u64);

fn mistakes(host: &Host) -> Vec<Made> {
    let findings = host.findings(true).into_iter();
    findings
        .map(|(finding, _)| {
            (finding.kind, finding.near.map(|near| (near.address, near.len_bytes)), finding.count)
        })
        .collect()
}

fn near(address: u64, len_bytes: u64, earlier: u64) -> Near {
    Near { address, len_bytes, variable: None, earlier, is_freed: false }
}

#[test]
fn processes_have_memory_at_the_same_address() {
    let host = read(
        "alloc\t1\thipMalloc\t1000\t64\t0+10\n\
         alloc\t2\thipMalloc\t1000\t32\t0+20\n\
         free\t1\thipFree\t1000\t0+11\n\
         refused\t1\thipFree\t1000\t0+12\n\
         refused\t2\thipFree\t1008\t0+21\n",
    );
    let expected = [
        (Kind::DoubleFree, Some((0x1000, 64)), 1),
        (Kind::WrongFree, Some((0x1000, 32)), 1),
        (Kind::Leak, Some((0x1000, 32)), 1),
    ];
    assert_eq!(mistakes(&host), expected);
    let len_bytes = |near: &Near| host.allocation(near).map(|allocation| allocation.len_bytes);
    assert_eq!(len_bytes(&near(0x1000, 64, 0)), Some(64));
    assert_eq!(len_bytes(&near(0x1000, 32, 0)), Some(32));
    assert_eq!(len_bytes(&near(0x1000, 16, 0)), None);
}

#[test]
fn an_allocation_of_several_processes_is_named_only_if_all_have_made_it_alike() {
    let alike = "alloc\t1\thipMalloc\t1000\t64\t0+10\nalloc\t2\thipMalloc\t1000\t64\t0+10\n";
    assert!(read(alike).allocation(&near(0x1000, 64, 0)).is_some());
    let apart = "alloc\t1\thipMalloc\t1000\t64\t0+10\nalloc\t2\thipMalloc\t1000\t64\t0+99\n";
    assert!(read(apart).allocation(&near(0x1000, 64, 0)).is_none());
}

#[test]
fn allocations_at_one_address_are_told_apart_by_their_order() {
    let host = read(
        "alloc\t1\thipMalloc\t1000\t64\t0+10\n\
         free\t1\thipFree\t1000\t0+11\n\
         alloc\t1\thipMallocAsync\t1000\t48\t0+12\n",
    );
    let of = |earlier| {
        host.allocation(&near(0x1000, 0, earlier)).map(|found| (found.len_bytes, found.freed_at.is_some()))
    };
    assert_eq!([of(0), of(1)], [Some((64, true)), Some((48, false))]);
}

#[test]
fn equal_leaks_are_one_with_the_sum_of_their_bytes() {
    let host = read(
        "alloc\t1\thipMalloc\t1000\t64\t0+10\n\
         alloc\t1\thipMalloc\t2000\t36\t0+10\n\
         alloc\t1\thipMalloc\t3000\t5\t0+11\n",
    );
    assert_eq!(mistakes(&host), [(Kind::Leak, Some((0x1000, 100)), 2), (Kind::Leak, Some((0x3000, 5)), 1)]);
    assert!(host.findings(false).is_empty());
}

#[test]
fn lines_that_are_none_are_left_out() {
    let host = read(
        "\n\
         alloc\n\
         alloc\tx\thipMalloc\t1000\t64\t\n\
         alloc\t1\thipMalloc\t1000\tmany\t\n\
         free\t1\thipFree\t7\t\n\
         alloc\t1\thipMalloc\t1000\t18446744073709551615\tx+y,0+,+0,99+99\n\
         alloc\t1\thipMalloc\t2000\t18446744073709551615\tx+y,0+,+0,99+99\n\
         refused\t1\thipFree\t3000\t\n\
         alloc\t1\thipMa",
    );
    // The two allocations have no frames that can be read but one, which names no module.
    let leak = (Kind::Leak, Some((0x1000, u64::MAX)), 2);
    assert_eq!(mistakes(&host), [(Kind::WrongFree, Some((0x2000, u64::MAX)), 1), leak]);
    let found = host.allocation(&near(0x1000, 0, 0)).expect("an allocation");
    assert!(host.stack(&found.stack).frames.is_empty());
}

#[test]
fn no_log_is_an_empty_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = host::read(&folder.path().join("none")).expect("nothing to read");
    assert!(host.findings(true).is_empty());
    assert!(host::read(folder.path()).is_err(), "a folder is no log");
}
