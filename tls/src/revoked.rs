//! Keys and certificates that are of no use any more.

use std::collections::HashSet;

use crate::Fingerprint;

/// The most of them in a file.
const REVOKED_MAX: usize = 10_000;

/// Keys and certificates that were revoked: by a key's fingerprint, a user's, a worker's or an authority's, or by a certificate's serial
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revoked {
    keys: HashSet<Fingerprint>,
    serials: HashSet<u64>,
}

impl Revoked {
    /// Reads the words of a line behind the first: `SHA256:…` or `serial=…`.
    ///
    /// # Errors
    /// They are something else, or there are more than 10,000 lines.
    pub(crate) fn add(&mut self, words: &mut dyn Iterator<Item = &str>) -> Result<(), String> {
        let word = words.next().unwrap_or_default();
        if self.keys.len() + self.serials.len() >= REVOKED_MAX {
            return Err(format!("the file revokes more than {REVOKED_MAX}"));
        }
        if let Some(digits) = word.strip_prefix("serial=") {
            self.serials.insert(parse_serial(digits)?);
        } else {
            self.keys.insert(word.parse().map_err(|why| format!("{why}, or serial= and 16 digits"))?);
        }
        match words.next() {
            None => Ok(()),
            Some(more) => Err(format!("'{more}' is more than what is revoked; each has a line of its own")),
        }
    }

    /// Returns whether the key with this fingerprint was revoked.
    pub fn has_key(&self, key: Fingerprint) -> bool {
        self.keys.contains(&key)
    }

    /// Returns whether the certificate with this serial number was revoked.
    pub fn has_serial(&self, serial: u64) -> bool {
        self.serials.contains(&serial)
    }
}

/// Reads a serial number as certificates show it: 16 hexadecimal digits.
fn parse_serial(digits: &str) -> Result<u64, String> {
    let is_good = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let serial = is_good.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
    serial.ok_or_else(|| format!("'{digits}' is no serial number: 16 digits from 0 to f"))
}
