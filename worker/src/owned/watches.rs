//! Memory of which the client has a copy: what it is taken to know of it, and what has changed since.
//!
//! A worker and its client have no memory in common, so what both sides use exists twice. For each watched range the session keeps a
//! *twin*: the bytes that the client was told or has sent. A page that differs from its twin is a change. A device that knows which
//! pages were written saves the comparison of all others; it may name too many, never too few.
//!
//! A twin is kept page by page; pages of zeros take no memory. If there is not enough for it, the twin is given up, and nothing is
//! known of the range until it is watched anew: the client then copies all of it.

use std::collections::BTreeMap;

use hipr_proto::op::PAGE_BYTES;

/// Size of a page in bytes.
const PAGE: usize = PAGE_BYTES as usize;

type Page = Box<[u8; PAGE]>;

/// A watched range.
#[derive(Debug)]
pub(crate) struct Watch {
    start: u64,
    len_bytes: u64,
    /// Whether the device notes which pages are written.
    is_noted: bool,
    /// The bytes that the client knows, by the number of the page in the range; pages that are not here are zeros. `None` if it is not
    /// known what the client knows.
    twin: Option<BTreeMap<u64, Page>>,
}

impl Watch {
    /// Creates the watch of a range of which the client knows that all of it are zeros.
    pub(crate) fn new(start: u64, len_bytes: u64, is_noted: bool) -> Self {
        Self { start, len_bytes, is_noted, twin: Some(BTreeMap::new()) }
    }

    fn twin_bytes(&self) -> u64 {
        self.twin.as_ref().map_or(0, |twin| twin.len() as u64 * PAGE_BYTES)
    }

    /// Returns whether a range lies in this one and begins where a page does.
    fn has(&self, address: u64, len_bytes: u64) -> bool {
        let offset = address.checked_sub(self.start).filter(|offset| offset.is_multiple_of(PAGE_BYTES));
        offset.is_some_and(|offset| offset <= self.len_bytes && len_bytes <= self.len_bytes - offset)
    }
}

/// The difference between a page and what the client knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// There is none.
    None,
    /// Something; the client is taken to know the page now.
    Bytes,
    /// The page has become zeros; the client is taken to know it now.
    Zeros,
}

/// The watched ranges of a session.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// By the address of the allocation, each of which has one at most.
    by_base: BTreeMap<u64, Watch>,
    /// Bytes of all twins.
    twin_bytes: u64,
}

impl Watches {
    /// Watches a range of the allocation at `base` instead of what was watched there.
    pub(crate) fn insert(&mut self, base: u64, watch: Watch) {
        self.remove(base);
        self.by_base.insert(base, watch);
    }

    /// Returns the bytes of all twins.
    pub(crate) fn twin_bytes(&self) -> u64 {
        self.twin_bytes
    }

    /// Ends the watch of an allocation.
    pub(crate) fn remove(&mut self, base: u64) {
        let gone = self.by_base.remove(&base);
        self.twin_bytes -= gone.map_or(0, |gone| gone.twin_bytes());
    }

    /// Gives up all twins if they have more bytes than this.
    pub(crate) fn limit(&mut self, max_bytes: u64) {
        if self.twin_bytes > max_bytes {
            self.by_base.values_mut().for_each(|watch| watch.twin = None);
            self.twin_bytes = 0;
        }
    }

    /// Gives up the twin of an allocation: it is no longer known what the client knows.
    pub(crate) fn give_up(&mut self, base: u64) {
        if let Some(watch) = self.by_base.get_mut(&base) {
            self.twin_bytes -= watch.twin_bytes();
            watch.twin = None;
        }
    }

    /// Returns whether a range is watched and begins where a page does, in the allocation at `base`.
    pub(crate) fn has(&self, base: u64, address: u64, len_bytes: u64) -> bool {
        self.by_base.get(&base).is_some_and(|watch| watch.has(address, len_bytes))
    }

    /// Returns whether it is known what the client knows of an allocation.
    pub(crate) fn is_known(&self, base: u64) -> bool {
        self.by_base.get(&base).is_some_and(|watch| watch.twin.is_some())
    }

    /// Returns whether the device notes what is written to an allocation.
    pub(crate) fn is_noted(&self, base: u64) -> bool {
        self.by_base.get(&base).is_some_and(|watch| watch.is_noted)
    }

    /// Notes bytes that the client has sent for an address; `max_bytes` is the limit of all twins. Pages beyond it are unknown.
    pub(crate) fn learn(&mut self, base: u64, address: u64, mut bytes: &[u8], max_bytes: u64) {
        let Some(watch) = self.by_base.get_mut(&base) else { return };
        let Some(mut offset) = address.checked_sub(watch.start) else {
            // They begin before the range: it is for the client to copy.
            return self.give_up(base);
        };
        let len = watch.len_bytes.saturating_sub(offset).min(bytes.len() as u64);
        // What lies behind the range is not watched.
        bytes = bytes.get(..len as usize).unwrap_or_default();
        while !bytes.is_empty() {
            let Some(twin) = &mut watch.twin else { return };
            let (number, at) = (offset / PAGE_BYTES, (offset % PAGE_BYTES) as usize);
            let (now, later) = bytes.split_at((PAGE - at).min(bytes.len()));
            let page = match twin.get_mut(&number) {
                Some(page) => page,
                None if self.twin_bytes + PAGE_BYTES > max_bytes => return self.give_up(base),
                None => {
                    self.twin_bytes += PAGE_BYTES;
                    twin.entry(number).or_insert_with(|| Box::new([0; PAGE]))
                }
            };
            if let Some(place) = page.get_mut(at..at + now.len()) {
                place.copy_from_slice(now);
            }
            (offset, bytes) = (offset + now.len() as u64, later);
        }
    }

    /// Compares the page at an address with what the client knows of it, after which it is taken to know it. `bytes` are the page's, fewer
    /// at the end of the range; `max_bytes` is the limit of all twins. If it is reached, the twin is given up.
    pub(crate) fn compare(&mut self, base: u64, address: u64, bytes: &[u8], max_bytes: u64) -> Difference {
        let Some(watch) = self.by_base.get_mut(&base) else { return Difference::None };
        let (Some(twin), Some(offset)) = (&mut watch.twin, address.checked_sub(watch.start)) else {
            return Difference::None;
        };
        let number = offset / PAGE_BYTES;
        match twin.get_mut(&number) {
            Some(page) if page.get(..bytes.len()) == Some(bytes) => Difference::None,
            Some(_) if is_zeros(bytes) => {
                twin.remove(&number);
                self.twin_bytes -= PAGE_BYTES;
                Difference::Zeros
            }
            Some(page) => {
                page[..bytes.len()].copy_from_slice(bytes);
                Difference::Bytes
            }
            None if is_zeros(bytes) => Difference::None,
            None if self.twin_bytes + PAGE_BYTES > max_bytes => {
                self.give_up(base);
                Difference::None
            }
            None => {
                let mut page = Box::new([0; PAGE]);
                page[..bytes.len()].copy_from_slice(bytes);
                twin.insert(number, page);
                self.twin_bytes += PAGE_BYTES;
                Difference::Bytes
            }
        }
    }

    /// Copies what the client knows of the bytes at an address; of what is not known, zeros.
    pub(crate) fn known(&self, base: u64, address: u64, out: &mut [u8]) {
        let watch = self.by_base.get(&base);
        let mut offset = watch.map_or(0, |watch| address.saturating_sub(watch.start));
        let twin = watch.and_then(|watch| watch.twin.as_ref());
        let mut out = out;
        while !out.is_empty() {
            let at = (offset % PAGE_BYTES) as usize;
            let (now, later) = out.split_at_mut((PAGE - at).min(out.len()));
            match twin.and_then(|twin| twin.get(&(offset / PAGE_BYTES))) {
                Some(page) => now.copy_from_slice(&page[at..at + now.len()]),
                None => now.fill(0),
            }
            offset += now.len() as u64;
            out = later;
        }
    }
}

/// Returns whether all bytes are zeros.
fn is_zeros(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| u64::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x1_0000;
    const START: u64 = BASE + 0x1000;
    const ALL: u64 = u64::MAX;

    fn watches() -> Watches {
        let mut watches = Watches::default();
        watches.insert(BASE, Watch::new(START, 2 * PAGE_BYTES + 100, false));
        watches
    }

    fn page(watches: &Watches, number: u64) -> Vec<u8> {
        let mut out = vec![7; PAGE];
        watches.known(BASE, START + number * PAGE_BYTES, &mut out);
        out
    }

    #[test]
    fn a_range_begins_with_a_page_and_lies_inside() {
        let watches = watches();
        let end = START + 2 * PAGE_BYTES + 100;
        for (address, len, is_in) in [
            (START, 2 * PAGE_BYTES + 100, true),
            (START + PAGE_BYTES, PAGE_BYTES + 100, true),
            (START, 1, true),
            (START, 0, true),
            (START, 2 * PAGE_BYTES + 101, false),
            (START + 8, 8, false),
            (START - PAGE_BYTES, PAGE_BYTES, false),
            (START + 2 * PAGE_BYTES, 101, false),
            (START + 3 * PAGE_BYTES, 0, false),
            (START, ALL, false),
            (ALL, 2, false),
            (0, end, false),
        ] {
            assert_eq!(watches.has(BASE, address, len), is_in, "{address:#x} {len}");
        }
        assert!(!watches.has(0, START, 1));
    }

    #[test]
    fn what_the_client_has_sent_or_was_told_is_no_change() {
        let mut watches = watches();
        let mut bytes = vec![0; PAGE];
        assert_eq!(watches.compare(BASE, START, &bytes, ALL), Difference::None, "zeros are known");
        bytes[5] = 1;
        assert_eq!(watches.compare(BASE, START, &bytes, ALL), Difference::Bytes);
        assert_eq!(watches.compare(BASE, START, &bytes, ALL), Difference::None, "it was told");
        watches.learn(BASE, START + PAGE_BYTES - 2, &[2, 3, 4, 5], ALL);
        bytes[PAGE - 2..].copy_from_slice(&[2, 3]);
        assert_eq!(watches.compare(BASE, START, &bytes, ALL), Difference::None, "it has sent it");
        assert_eq!(page(&watches, 0), bytes);
        assert_eq!(page(&watches, 1)[..3], [4, 5, 0]);
        let zeros = vec![0; PAGE];
        assert_eq!(watches.compare(BASE, START, &zeros, ALL), Difference::Zeros);
        assert_eq!(watches.compare(BASE, START, &zeros, ALL), Difference::None);
        assert_eq!(watches.twin_bytes, PAGE_BYTES, "zeros take no memory");
        let last = START + 2 * PAGE_BYTES;
        assert_eq!(
            watches.compare(BASE, last, &[9; 100], ALL),
            Difference::Bytes,
            "the last page is shorter"
        );
        watches.learn(BASE, last + 98, &[1, 1, 1, 1], ALL);
        assert_eq!(page(&watches, 2)[97..102], [9, 1, 1, 0, 0], "what is beyond the range is not its");
        watches.remove(BASE);
        assert_eq!((watches.twin_bytes, watches.is_known(BASE)), (0, false));
    }

    #[test]
    fn a_twin_without_room_is_given_up() {
        let max = PAGE_BYTES;
        let mut watches = watches();
        watches.learn(BASE, START, &[1; 10], max);
        assert!(watches.is_known(BASE));
        assert_eq!(watches.compare(BASE, START + PAGE_BYTES, &[1; PAGE], max), Difference::None);
        assert_eq!((watches.twin_bytes, watches.is_known(BASE)), (0, false), "nothing is known any more");
        watches.insert(BASE, Watch::new(START, 10_000, true));
        watches.learn(BASE, START, &[1; PAGE + 1], max);
        assert_eq!((watches.twin_bytes, watches.is_known(BASE)), (0, false));
        watches.insert(BASE, Watch::new(START, 10_000, true));
        watches.learn(BASE, START - 1, &[1; 2], ALL);
        assert!(!watches.is_known(BASE), "bytes before the range");
        watches.insert(BASE, Watch::new(START, 10_000, true));
        watches.learn(BASE, START, &[1; 2], ALL);
        watches.limit(PAGE_BYTES);
        assert!(watches.is_known(BASE));
        watches.limit(PAGE_BYTES - 1);
        assert_eq!((watches.twin_bytes, watches.is_known(BASE)), (0, false));
    }
}
