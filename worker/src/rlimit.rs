//! The limit of open files, and thus of connections, of the process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to what the system allows this process, and returns it; `None` where there is no limit.
///
/// # Errors
/// Those of the system.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    }
    Ok(limit.maximum)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_limit_is_raised_and_stays() {
        let first = super::raise_open_files().unwrap();
        assert_ne!(first, Some(0));
        assert_eq!(super::raise_open_files().unwrap(), first);
    }
}
