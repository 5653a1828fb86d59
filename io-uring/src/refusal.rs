//! Why io_uring cannot be had, in words that say what to do about it.

use std::fs;
use std::io::{self, ErrorKind};

use rustix::process::{Resource, getrlimit};

/// The kernel that has everything that the loop uses.
const NEEDED: &str = "Linux 6.0 or later is needed";
/// Who may use io_uring: 0 everyone, 1 a group, 2 nobody.
const SYSCTL: &str = "/proc/sys/kernel/io_uring_disabled";

/// What the kernel's refusal means. The kind is [`ErrorKind::Unsupported`] where the kernel cannot, and
/// [`ErrorKind::PermissionDenied`] where it may not.
pub(crate) fn explain(why: &io::Error) -> io::Error {
    let disabled = fs::read_to_string(SYSCTL).unwrap_or_default();
    let locked = getrlimit(Resource::Memlock).current;
    explain_with(why, disabled.trim(), locked)
}

fn explain_with(why: &io::Error, disabled: &str, locked: Option<u64>) -> io::Error {
    let (kind, what) = match why.raw_os_error() {
        Some(libc::ENOSYS) => {
            let what = "this kernel has none, or a seccomp filter hides it (containers often do)".into();
            (ErrorKind::Unsupported, what)
        }
        Some(libc::EPERM | libc::EACCES) => {
            let what = match disabled {
                "1" => "only members of the group in the sysctl kernel.io_uring_group may use it \
                        (kernel.io_uring_disabled is 1)"
                    .into(),
                "2" => "it is switched off on this machine (the sysctl kernel.io_uring_disabled is 2)".into(),
                _ => "it is not permitted, probably by a seccomp filter (containers often have one)".into(),
            };
            (ErrorKind::PermissionDenied, what)
        }
        Some(libc::EINVAL) => (ErrorKind::Unsupported, format!("this kernel's is too old: {NEEDED}")),
        Some(libc::ENOMEM) => {
            let limit =
                locked.map_or("without limit".into(), |bytes| format!("limited to {} KiB", bytes >> 10));
            let what =
                format!("no memory for its rings; locked memory is {limit} (RLIMIT_MEMLOCK, `ulimit -l`)");
            (ErrorKind::OutOfMemory, what)
        }
        _ => (why.kind(), why.to_string()),
    };
    io::Error::new(kind, format!("io_uring cannot be used: {what}"))
}

/// The kernel has io_uring, but not this part of it.
pub(crate) fn lacks(what: &str) -> io::Error {
    let why = format!("io_uring cannot be used: this kernel's has no {what}; {NEEDED}");
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
