//! Files of traces.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::item::Item;
use crate::{chrome, perfetto};

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's protobuf messages.
    Perfetto,
    /// Chrome's JSON.
    Chrome,
}

impl Format {
    /// Returns the format of a file with this name: JSON if it ends with `.json`.
    pub fn of(path: &Path) -> Self {
        let is_json = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"));
        if is_json { Self::Chrome } else { Self::Perfetto }
    }
}

#[derive(Debug)]
enum Writer {
    Perfetto,
    Chrome(chrome::Writer),
}

/// A file that a trace is written to. Several processes may write to one.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    file: fs::File,
    writer: Writer,
    /// A number of the writer that others of the file do not have.
    sequence: u32,
    /// The length of a part of the trace, if only the last parts are kept: the one that is being written and the one before it.
    last: Option<Duration>,
    /// When the part began.
    since_ns: Option<u64>,
    /// The tracks so far, with which each part begins.
    tracks: Vec<Item>,
}

impl File {
    /// Opens a file for appending, and makes it if it is not there. `sequence` is a number that no other writer has, such as that of the
    /// process. With `last` only the last part of the trace is kept, at least so long and at most twice: the file is renamed to
    /// [`before`](Self::before) from time to time, in place of the one there.
    ///
    /// # Errors
    /// The file cannot be opened or written.
    pub fn open(path: &Path, sequence: u32, last: Option<Duration>) -> io::Result<Self> {
        let (file, writer) = begin(path)?;
        let path = path.to_owned();
        Ok(Self { path, file, writer, sequence, last, since_ns: None, tracks: Vec::new() })
    }

    /// Returns the name of the file with the part before the last one.
    pub fn before(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".before");
        name.into()
    }

    /// Appends items.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&mut self, items: &[Item]) -> io::Result<()> {
        let newest_ns = items.iter().filter_map(Item::end_ns).max();
        let since_ns = *self.since_ns.get_or_insert(newest_ns.unwrap_or(0));
        if let (Some(last), Some(newest_ns)) = (self.last, newest_ns)
            && u128::from(newest_ns.saturating_sub(since_ns)) >= last.as_nanos()
        {
            fs::rename(&self.path, Self::before(&self.path))?;
            (self.file, self.writer) = begin(&self.path)?;
            self.since_ns = Some(newest_ns);
            let tracks = std::mem::take(&mut self.tracks);
            self.put(&tracks)?;
            self.tracks = tracks;
        }
        if self.last.is_some() {
            self.tracks.extend(items.iter().filter(|item| matches!(item, Item::Track(_))).cloned());
        }
        self.put(items)
    }

    fn put(&mut self, items: &[Item]) -> io::Result<()> {
        let mut bytes = Vec::new();
        match &mut self.writer {
            Writer::Perfetto => perfetto::write(items, self.sequence, &mut bytes),
            Writer::Chrome(writer) => writer.write(items, &mut bytes),
        }
        // One write: what others append comes before or behind all of it.
        self.file.write_all(&bytes)
    }
}

fn begin(path: &Path) -> io::Result<(fs::File, Writer)> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let writer = match Format::of(path) {
        Format::Perfetto => Writer::Perfetto,
        Format::Chrome => {
            if file.metadata()?.len() == 0 {
                file.write_all(chrome::BEGIN.as_bytes())?;
            }
            Writer::Chrome(chrome::Writer::default())
        }
    };
    Ok((file, writer))
}

/// Reads a trace that [`File`] has written, in either format, as far as it is whole.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub fn read(path: &Path) -> io::Result<Vec<Item>> {
    let bytes = fs::read(path)?;
    let items = match bytes.first() {
        None => Vec::new(),
        Some(b'[') => chrome::read(&bytes),
        Some(_) => perfetto::read(&bytes),
    };
    if items.is_empty() && !bytes.is_empty() && bytes != chrome::BEGIN.as_bytes() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "this is no trace"));
    }
    Ok(items)
}
