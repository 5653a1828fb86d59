//! Uploads by name: of what the worker's cache has, only the names are sent.
//!
//! An upload is cut into chunks of 1 MiB, the last up to 2 MiB, each named by the keyed hash of its bytes. The client asks which of them
//! the cache has, all in one flight, and then sends the copy chunk by chunk: the name of one that is there, the bytes of any other, which
//! the cache then keeps. The whole copy is queued without a gap, so that no request of another thread comes between its chunks.
//!
//! That costs a round trip and the hashing, so it is done only over a link that is slow enough: see [`Uploads::pays`].

mod key;
mod speed;

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, str::FromStr};

use hipr_proto::op::{CACHE_KEY_BYTES, CACHE_NAME_BYTES};

pub(crate) use speed::LinkSpeed;

/// Minimum size in bytes of a copy that is sent by name, and of a chunk.
pub const UPLOAD_MIN_BYTES: usize = 1 << 20;

/// Says for which links uploads go through the worker's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheUse {
    /// Never.
    Off,
    /// Where it saves time: over a link to another machine that is slower than 2 Gbit/s, for copies that take longer to send than to
    /// ask about.
    #[default]
    Auto,
    /// For every copy of at least [`UPLOAD_MIN_BYTES`], over any link.
    On,
}

impl FromStr for CacheUse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "off" => Ok(Self::Off),
            "auto" | "" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            other => Err(format!("'{other}' is not off, auto or on")),
        }
    }
}

/// Options of uploads by name.
#[derive(Clone, Debug, Default)]
pub struct UploadCache {
    /// When the cache is used.
    pub when: CacheUse,
    /// The file with the key by which the worker tells whose chunks it keeps; it is made if there is none. None is the user's own, see
    /// [`UploadCache::from_env`].
    pub key_file: Option<PathBuf>,
}

impl UploadCache {
    /// Reads the options from the environment: `HIPR_CACHE` (`off`, `auto`, `on`) and `HIPR_CACHE_KEY_FILE`, by default
    /// `$XDG_STATE_HOME/hipr/cache-key` or `~/.local/state/hipr/cache-key`.
    pub fn from_env() -> Self {
        let when = env::var("HIPR_CACHE").unwrap_or_default().parse().unwrap_or_else(|why| {
            tracing::warn!("HIPR_CACHE: {why}; using auto");
            CacheUse::Auto
        });
        let path = |name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let state = || path("XDG_STATE_HOME").or_else(|| path("HOME").map(|home| home.join(".local/state")));
        let key_file =
            path("HIPR_CACHE_KEY_FILE").or_else(|| state().map(|state| state.join("hipr/cache-key")));
        Self { when, key_file }
    }
}

/// What a connection knows about its uploads.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    options: UploadCache,
    key: OnceLock<Option<[u8; CACHE_KEY_BYTES]>>,
    /// Whether the worker has been told the key.
    pub(crate) is_open: Mutex<bool>,
    /// Whether the worker has failed to answer; then its cache is not used any more.
    has_failed: OnceLock<()>,
    /// The shortest time in which the worker said what it has.
    round_trip: Mutex<Option<Duration>>,
}

/// A link over which asking does not pay, however long it takes to answer, in bytes a second: 2 Gbit/s.
pub(crate) const FAST: f64 = 2e9 / 8.0;

impl Uploads {
    pub(crate) fn new(options: UploadCache) -> Self {
        Self { options, ..Self::default() }
    }

    /// Returns whether a copy of `len` bytes is sent sooner by name. A link of which nothing is known counts as slow if it leads to
    /// another machine: that is found out with the first upload.
    pub(crate) fn pays(&self, len: usize, is_local: bool, speed: Option<f64>) -> bool {
        if len < UPLOAD_MIN_BYTES || self.has_failed.get().is_some() {
            return false;
        }
        match (self.options.when, speed) {
            (CacheUse::Off, _) => false,
            (CacheUse::On, _) => true,
            (CacheUse::Auto, _) if is_local => false,
            (CacheUse::Auto, None) => true,
            (CacheUse::Auto, Some(speed)) => {
                let asking = lock(&self.round_trip).unwrap_or_default().as_secs_f64();
                speed < FAST && len as f64 / speed > 2.0 * asking
            }
        }
    }

    /// Returns the key; None if there is none, which is logged once.
    pub(crate) fn key(&self) -> Option<[u8; CACHE_KEY_BYTES]> {
        *self.key.get_or_init(|| {
            let Some(path) = &self.options.key_file else {
                tracing::warn!("no file for the key of the worker's cache: set HIPR_CACHE_KEY_FILE");
                return None;
            };
            match key::load(path) {
                Ok(key) => Some(key),
                Err(why) => {
                    tracing::warn!("not using the worker's cache: {}: {why}", path.display());
                    None
                }
            }
        })
    }

    /// Notes how long the worker took to say what it has.
    pub(crate) fn note_round_trip(&self, since: Instant) {
        let mut shortest = lock(&self.round_trip);
        let took = since.elapsed();
        *shortest = Some(shortest.map_or(took, |shortest| shortest.min(took)));
    }

    /// Uses the cache no more.
    pub(crate) fn give_up(&self, why: impl std::fmt::Display) {
        if self.has_failed.set(()).is_ok() {
            tracing::warn!("not using the worker's cache any more: {why}");
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A part of an upload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) offset: usize,
    pub(crate) bytes: &'a [u8],
    pub(crate) name: [u8; CACHE_NAME_BYTES],
}

/// Cuts an upload into chunks and names them.
pub(crate) fn chunks<'a>(key: &[u8; CACHE_KEY_BYTES], bytes: &'a [u8]) -> Vec<Chunk<'a>> {
    let count = (bytes.len() / UPLOAD_MIN_BYTES).max(1);
    let cut = |index: usize| {
        let offset = index * UPLOAD_MIN_BYTES;
        let end = if index + 1 == count { bytes.len() } else { offset + UPLOAD_MIN_BYTES };
        let bytes = bytes.get(offset..end).unwrap_or_default();
        Chunk { offset, bytes, name: *blake3::keyed_hash(key, bytes).as_bytes() }
    };
    (0..count).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_cut_without_a_rest() {
        for (len, expected) in [
            (UPLOAD_MIN_BYTES, vec![UPLOAD_MIN_BYTES]),
            (2 * UPLOAD_MIN_BYTES - 1, vec![2 * UPLOAD_MIN_BYTES - 1]),
            (2 * UPLOAD_MIN_BYTES + 7, vec![UPLOAD_MIN_BYTES, UPLOAD_MIN_BYTES + 7]),
        ] {
            let bytes: Vec<u8> = (0..len).map(|i| (i / 251) as u8).collect();
            let chunks = chunks(&[7; 32], &bytes);
            assert_eq!(chunks.iter().map(|chunk| chunk.bytes.len()).collect::<Vec<_>>(), expected);
            assert_eq!(chunks.iter().flat_map(|chunk| chunk.bytes).copied().collect::<Vec<_>>(), bytes);
            assert!(chunks.iter().all(|chunk| bytes[chunk.offset..].starts_with(chunk.bytes)));
        }
    }

    #[test]
    fn a_name_depends_on_the_bytes_and_the_key() {
        let name = |key, byte| chunks(&[key; 32], &vec![byte; UPLOAD_MIN_BYTES])[0].name;
        assert_eq!(name(1, 2), name(1, 2));
        assert!(name(1, 2) != name(1, 3) && name(1, 2) != name(2, 2));
    }

    #[test]
    fn names_are_for_slow_links_and_long_copies() {
        const MIB: usize = 1 << 20;
        let uploads = |when| Uploads::new(UploadCache { when, key_file: None });
        let (off, auto, on) = (uploads(CacheUse::Off), uploads(CacheUse::Auto), uploads(CacheUse::On));
        let slow = Some(12.5e6);
        assert!(!off.pays(100 * MIB, false, slow) && !off.pays(100 * MIB, false, None));
        assert!(on.pays(MIB, true, Some(1e10)) && !on.pays(MIB - 1, true, None));
        assert!(!auto.pays(100 * MIB, true, slow), "never on one machine");
        assert!(auto.pays(MIB, false, None) && auto.pays(MIB, false, slow));
        assert!(!auto.pays(100 * MIB, false, Some(3e8)), "faster than 2 Gbit/s");
        // Two round trips of 400 ms take as long as 10 MB.
        *lock(&auto.round_trip) = Some(Duration::from_millis(400));
        assert!(!auto.pays(9 * MIB, false, slow) && auto.pays(10 * MIB, false, slow));
        on.give_up("a test");
        assert!(!on.pays(100 * MIB, false, None));
    }

    #[test]
    fn the_environment_has_three_words() {
        let parsed = ["off", "AUTO", " on ", "", "yes"].map(|text| text.parse::<CacheUse>().ok());
        let [off, auto, on] = [CacheUse::Off, CacheUse::Auto, CacheUse::On].map(Some);
        assert_eq!(parsed, [off, auto, on, auto, None]);
    }
}
