//! The files with keys: where they are, who may read them, and how they are made.

use std::env;
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::SecretKey;

/// The longest file of any kind that is read.
pub(crate) const FILE_MAX_BYTES: u64 = 1 << 20;

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1, if it is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub why: String,
}

impl FileError {
    pub(crate) fn new(path: &Path, why: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), line: None, why: why.to_string() }
    }

    pub(crate) fn in_line(path: &Path, (line, why): (usize, String)) -> Self {
        Self { line: Some(line), ..Self::new(path, why) }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.why)
    }
}

impl std::error::Error for FileError {}

/// How a file looked when it was read: device, inode, length, and the time of its last change in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64, u64, u64, i128);

impl Stamp {
    pub(crate) fn of(file: &Metadata) -> Self {
        let time = i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec());
        Self(file.dev(), file.ino(), file.len(), time)
    }
}

/// Returns the folder of a user's keys: `$XDG_CONFIG_HOME/hipr`, else `~/.config/hipr`.
///
/// # Errors
/// Neither variable is set.
pub fn config_folder() -> Result<PathBuf, FileError> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    let none = || {
        FileError::new(Path::new("~/.config/hipr"), "neither XDG_CONFIG_HOME nor HOME is an absolute path")
    };
    Ok(folder.ok_or_else(none)?.join("hipr"))
}

/// Makes a key and its file, which only this user may read, and the folder if there is none.
///
/// # Errors
/// The file exists and `overwrite` is false, or cannot be written.
pub fn make_key(path: &Path, overwrite: bool) -> Result<SecretKey, FileError> {
    let failed = |why: &dyn fmt::Display| FileError::new(path, why);
    let key = SecretKey::generate().map_err(|why| failed(&why))?;
    make_folder(path).map_err(|why| failed(&why))?;
    if overwrite
        && let Err(why) = fs::remove_file(path)
        && why.kind() != ErrorKind::NotFound
    {
        return Err(failed(&why));
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(key.to_pem().as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(key),
        Err(why) if why.kind() == ErrorKind::AlreadyExists => Err(failed(
            &"the file exists; it is overwritten only with --force, and the key in it is then lost",
        )),
        Err(why) => Err(failed(&why)),
    }
}

/// Reads a private key.
///
/// # Errors
/// The file cannot be read, others can read it too, or it has no key.
pub fn read_key(path: &Path) -> Result<SecretKey, FileError> {
    let (text, mode) = read_with_mode(path)?;
    if mode & 0o077 != 0 {
        let why =
            format!("others may read or change this private key (mode {:04o}): chmod 600 it", mode & 0o7777);
        return Err(FileError::new(path, why));
    }
    SecretKey::from_pem(&text).map_err(|why| FileError::new(path, why))
}

/// Reads a file that anybody may read.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    read_with_mode(path).map(|(text, _)| text)
}

fn read_with_mode(path: &Path) -> Result<(String, u32), FileError> {
    let failed = |why: &dyn fmt::Display| FileError::new(path, why);
    // What is no file may have no end, and a pipe would be waited for.
    let kind = fs::metadata(path).map_err(|why| failed(&why))?;
    if !kind.is_file() {
        return Err(failed(&"it is not a file"));
    }
    let file = File::open(path).map_err(|why| failed(&why))?;
    let mode = file.metadata().map_err(|why| failed(&why))?.mode();
    read_text(file).map(|text| (text, mode)).map_err(|why| failed(&why))
}

pub(crate) fn read_text(file: impl Read) -> io::Result<String> {
    let mut text = String::new();
    file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(io::Error::other("the file is longer than 1 MiB"));
    }
    Ok(text)
}

/// Makes the folder of a file, which only this user may look into.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}

/// Opens a file for reading and changing, makes it if there is none, and keeps other processes that do the same waiting until it is
/// dropped.
pub(crate) fn open_alone(path: &Path) -> io::Result<File> {
    make_folder(path)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Appends a line to a file whose text is `text`.
pub(crate) fn append_line(mut file: &File, text: &str, line: &str) -> io::Result<()> {
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    file.write_all(format!("{gap}{line}\n").as_bytes())?;
    file.sync_all()
}

/// Calls `each` with the words of each line that has any; `#` begins a comment.
///
/// # Errors
/// What `each` says, with the number of the line.
pub(crate) fn each_line<'a>(
    text: &'a str,
    mut each: impl FnMut(&mut dyn Iterator<Item = &'a str>) -> Result<(), String>,
) -> Result<(), (usize, String)> {
    for (number, line) in text.lines().enumerate() {
        let said = line.split('#').next().unwrap_or_default();
        if !said.trim().is_empty() {
            each(&mut said.split_whitespace()).map_err(|why| (number + 1, why))?;
        }
    }
    Ok(())
}
