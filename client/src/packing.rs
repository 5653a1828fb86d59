//! Packed bytes: when they are fewer than the time it takes to make them is worth.
//!
//! A link that takes bytes slower than they are packed carries copies and code objects packed, in parts, each by itself. How fast the
//! link is is seen as it goes: by the writes that fill it ([`LinkSpeed`](crate::uploads::LinkSpeed)), and, towards the program, by the
//! first long copy, some of which is asked for as it is. What cannot be made fewer is sent from where it lies, as ever.

use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;
use std::{env, mem};

use hipr_io::Packer;
use hipr_proto::op::PACKED_MIN_BYTES;

use crate::uploads::{FAST, lock};

/// Size of a part of a copy in bytes.
pub(crate) const PART_BYTES: usize = 1 << 20;
/// Number of parts that are asked for before the first has come: 32 MiB are as much as is under way on 1 Gbit/s and 250 ms.
pub(crate) const PARTS_AHEAD: usize = 32;
/// Sizes in bytes of what is asked for as it is to see how fast it comes: what comes first, and what is measured.
pub(crate) const PROBE_BYTES: [usize; 2] = [256 << 10, 4 << 20];
/// Minimum size in bytes of a copy to the program that is used for that.
pub(crate) const PROBED_MIN_BYTES: usize = 8 << 20;

/// Says over which links bytes are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressUse {
    /// None.
    Off,
    /// Those to another machine that are slower than 2 Gbit/s.
    #[default]
    Auto,
    /// All.
    Always,
}

impl FromStr for CompressUse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "off" => Ok(Self::Off),
            "auto" | "" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            other => Err(format!("'{other}' is not off, auto or always")),
        }
    }
}

impl CompressUse {
    /// Reads the choice from the environment: `HIPR_COMPRESS` (`off`, `auto`, `always`).
    pub fn from_env() -> Self {
        env::var("HIPR_COMPRESS").unwrap_or_default().parse().unwrap_or_else(|why| {
            tracing::warn!("HIPR_COMPRESS: {why}; using auto");
            Self::Auto
        })
    }

    /// Returns whether bytes may ever be packed over a link.
    pub(crate) fn may_pay(self, is_local: bool) -> bool {
        match self {
            Self::Off => false,
            Self::Auto => !is_local,
            Self::Always => true,
        }
    }
}

/// What a connection knows about packing.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    pub(crate) when: CompressUse,
    /// How many bytes a second come from the worker, if that has been seen.
    reads_per_s: Mutex<Option<f64>>,
}

impl Packing {
    pub(crate) fn new(when: CompressUse) -> Self {
        Self { when, ..Self::default() }
    }

    /// Returns whether `len` bytes may be worth packing on a link that carries so many bytes a second. One of which nothing is known
    /// counts as slow.
    pub(crate) fn pays(&self, len: usize, is_local: bool, speed: Option<f64>) -> bool {
        let is_slow = self.when == CompressUse::Always || speed.is_none_or(|speed| speed < FAST);
        len >= PACKED_MIN_BYTES && self.when.may_pay(is_local) && is_slow
    }

    /// Returns how many bytes a second come from the worker; as many as it is sent, where nothing is known.
    pub(crate) fn reads_per_s(&self, sent_per_s: Option<f64>) -> Option<f64> {
        lock(&self.reads_per_s).or(sent_per_s)
    }

    /// Returns whether the speed of what comes has to be seen with a copy of `len` bytes.
    pub(crate) fn wants_probe(&self, len: usize) -> bool {
        self.when == CompressUse::Auto && len >= PROBED_MIN_BYTES && lock(&self.reads_per_s).is_none()
    }

    /// Notes how long so many bytes took.
    pub(crate) fn note_read(&self, bytes: usize, took: Duration) {
        *lock(&self.reads_per_s) = Some(bytes as f64 / took.as_secs_f64().max(1e-9));
    }
}

/// What packs the bytes of a connection, one part at a time.
#[derive(Debug, Default)]
pub(crate) struct Press {
    packer: Option<Packer>,
    packed: Vec<u8>,
}

impl Press {
    fn packer(&mut self) -> Option<(&mut Packer, &mut Vec<u8>)> {
        if self.packer.is_none() {
            self.packer = Packer::new().ok();
        }
        Some((self.packer.as_mut()?, &mut self.packed))
    }

    /// Returns whether it is likely that packing a part pays.
    pub(crate) fn is_worth(&mut self, part: &[u8]) -> bool {
        self.packer().is_some_and(|(packer, scratch)| packer.is_worth(part, scratch))
    }

    /// Packs a part; returns `None` if that does not pay.
    pub(crate) fn pack(&mut self, part: &[u8]) -> Option<&[u8]> {
        let (packer, packed) = self.packer()?;
        (packer.is_worth(part, packed) && packer.pack(part, packed)).then_some(packed.as_slice())
    }

    /// Packs bytes that are wanted for themselves; returns `None` if that does not pay.
    pub(crate) fn pack_all(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.pack(bytes)?;
        Some(mem::take(&mut self.packed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn slow_links_to_other_machines_carry_packed_bytes() {
        let [off, auto, always] =
            [CompressUse::Off, CompressUse::Auto, CompressUse::Always].map(Packing::new);
        let (slow, fast) = (Some(12.5e6), Some(3e8));
        assert!(!off.pays(MIB, false, slow) && !off.pays(MIB, false, None));
        assert!(auto.pays(PACKED_MIN_BYTES, false, slow) && auto.pays(MIB, false, None));
        assert!(!auto.pays(PACKED_MIN_BYTES - 1, false, slow), "too few bytes");
        assert!(!auto.pays(MIB, true, slow) && !auto.pays(MIB, true, None), "never on one machine");
        assert!(!auto.pays(MIB, false, fast), "faster than 2 Gbit/s");
        assert!(always.pays(PACKED_MIN_BYTES, true, fast) && !always.pays(PACKED_MIN_BYTES - 1, true, None));
    }

    #[test]
    fn the_speed_of_what_comes_is_seen_once() {
        let auto = Packing::new(CompressUse::Auto);
        assert_eq!(auto.reads_per_s(Some(7.0)), Some(7.0), "until then that of what is sent");
        assert!(auto.wants_probe(PROBED_MIN_BYTES) && !auto.wants_probe(PROBED_MIN_BYTES - 1));
        auto.note_read(MIB, Duration::from_millis(100));
        assert!(!auto.wants_probe(100 * MIB));
        assert_eq!(auto.reads_per_s(Some(7.0)), Some(MIB as f64 * 10.0));
        assert!(!Packing::new(CompressUse::Always).wants_probe(100 * MIB), "whatever it is");
    }

    #[test]
    fn the_environment_has_three_words() {
        let parsed = ["off", "AUTO", " always ", "", "on"].map(|text| text.parse::<CompressUse>().ok());
        let [off, auto, always] = [CompressUse::Off, CompressUse::Auto, CompressUse::Always].map(Some);
        assert_eq!(parsed, [off, auto, always, auto, None]);
    }
}
