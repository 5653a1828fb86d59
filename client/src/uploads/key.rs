//! The key by which a worker's cache tells whose chunks it has: 32 random bytes in a file that only its owner can read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use hipr_proto::op::CACHE_KEY_BYTES;
use hipr_tls::random_bytes;

type Key = [u8; CACHE_KEY_BYTES];

/// Returns the key in a file; makes one if there is no file.
///
/// # Errors
/// The file can be read by others, has another length, or cannot be read or made.
pub(super) fn load(path: &Path) -> io::Result<Key> {
    match read(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => {
            make(path)?;
            read(path)
        }
        read => read,
    }
}

fn read(path: &Path) -> io::Result<Key> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(io::Error::other("others than its owner can read or change this key"));
    }
    let mut key = [0; CACHE_KEY_BYTES];
    if !metadata.is_file() || metadata.len() != key.len() as u64 {
        return Err(io::Error::other(format!("not a file of {CACHE_KEY_BYTES} bytes")));
    }
    file.read_exact(&mut key)?;
    Ok(key)
}

/// Makes a key. If several processes do that at once, one of them makes the key of all.
fn make(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let key: Key = random_bytes()?;
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}", std::process::id()));
    let partial = Path::new(&partial);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(partial)?;
    let made = file.write_all(&key).and_then(|()| fs::hard_link(partial, path));
    fs::remove_file(partial)?;
    match made {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => Err(why),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/cache-key");
        let key = load(&path).expect("a key");
        assert_eq!(load(&path).expect("a key"), key);
        assert_ne!(key, [0; CACHE_KEY_BYTES]);
        assert_ne!(load(&folder.path().join("other")).expect("a key"), key);
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(folder.path().join("new")).expect("a folder").count(),
            1,
            "nothing else is left"
        );
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cache-key");
        load(&path).expect("a key");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
        assert!(load(&path).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
        assert!(load(&path).is_ok());
        fs::write(&path, [1; 31]).expect("written");
        assert!(load(&path).is_err());
        assert!(load(folder.path()).is_err());
    }
}
