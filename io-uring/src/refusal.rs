//! Explains why io_uring cannot be used and what to do about it.

use std::fs;
use std::io::{self, ErrorKind};

use rustix::process::{Resource, getrlimit};

/// The kernel version that has everything the loop uses.
const NEEDED: &str = "Linux 6.0 or later is needed";
/// The sysctl that determines who may use io_uring: 0 everyone, 1 a group, 2 nobody.
const SYSCTL: &str = "/proc/sys/kernel/io_uring_disabled";

/// Explains an error of `io_uring_setup`. The result has kind [`ErrorKind::Unsupported`] if the kernel lacks something, and
/// [`ErrorKind::PermissionDenied`] if it is not allowed.
pub(crate) fn explain(why: &io::Error) -> io::Error {
    let disabled = fs::read_to_string(SYSCTL).unwrap_or_default();
    let locked = getrlimit(Resource::Memlock).current;
    explain_with(why, disabled.trim(), locked)
}

fn explain_with(why: &io::Error, disabled: &str, locked: Option<u64>) -> io::Error {
    let (kind, what) = match why.raw_os_error() {
        Some(libc::ENOSYS) => {
            let what =
                "this kernel does not have it, or a seccomp filter blocks it (common in containers)".into();
            (ErrorKind::Unsupported, what)
        }
        Some(libc::EPERM | libc::EACCES) => {
            let what = match disabled {
                "1" => "only members of the group in the sysctl kernel.io_uring_group may use it \
                        (kernel.io_uring_disabled is 1)"
                    .into(),
                "2" => "it is disabled on this machine (the sysctl kernel.io_uring_disabled is 2)".into(),
                _ => "permission denied, probably by a seccomp filter (common in containers)".into(),
            };
            (ErrorKind::PermissionDenied, what)
        }
        Some(libc::EINVAL) => {
            (ErrorKind::Unsupported, format!("this kernel's version of it is too old: {NEEDED}"))
        }
        Some(libc::ENOMEM) => {
            let limit =
                locked.map_or("without limit".into(), |bytes| format!("limited to {} KiB", bytes >> 10));
            let what = format!(
                "not enough memory for its rings; locked memory is {limit} (RLIMIT_MEMLOCK, `ulimit -l`)"
            );
            (ErrorKind::OutOfMemory, what)
        }
        _ => (why.kind(), why.to_string()),
    };
    io::Error::new(kind, format!("io_uring cannot be used: {what}"))
}

/// Returns the error for a kernel whose io_uring lacks the feature `what`.
pub(crate) fn lacks(what: &str) -> io::Error {
    let why = format!("io_uring cannot be used: this kernel lacks its feature \"{what}\"; {NEEDED}");
    io::Error::new(ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_it_means() {
        for (errno, disabled, kind, says) in [
            (libc::ENOSYS, "0", ErrorKind::Unsupported, "seccomp"),
            (libc::EPERM, "0", ErrorKind::PermissionDenied, "seccomp"),
            (libc::EPERM, "", ErrorKind::PermissionDenied, "seccomp"),
            (libc::EPERM, "1", ErrorKind::PermissionDenied, "kernel.io_uring_group"),
            (libc::EPERM, "2", ErrorKind::PermissionDenied, "kernel.io_uring_disabled is 2"),
            (libc::EINVAL, "0", ErrorKind::Unsupported, "6.0"),
            (libc::ENOMEM, "0", ErrorKind::OutOfMemory, "limited to 64 KiB"),
            (libc::EMFILE, "0", io::Error::from_raw_os_error(libc::EMFILE).kind(), "open files"),
        ] {
            let why = explain_with(&io::Error::from_raw_os_error(errno), disabled, Some(64 << 10));
            assert_eq!(why.kind(), kind, "{why}");
            let text = why.to_string();
            assert!(text.starts_with("io_uring cannot be used: ") && text.contains(says), "{text}");
        }
    }
}
