//! How many files, and so connections, the process may have open.

use std::io;

/// Raises the limit of open files to what the system allows this process, and returns it.
///
/// # Errors
/// Those of the system.
#[allow(unsafe_code)]
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the write that the call does.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is valid for the read that the call does, and the soft limit is not above the hard one.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_is_raised_and_stays() {
        let first = super::raise_open_files().unwrap();
        assert!(first > 0);
        assert_eq!(super::raise_open_files().unwrap(), first);
    }
}
