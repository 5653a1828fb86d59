//! Which pages of the program's memory have been written, as the kernel notes it.
//!
//! Pages are write-protected for `userfaultfd` in its asynchronous mode: the first write to one takes the protection off, without a signal
//! and without anybody's help, also where a system call writes. `PAGEMAP_SCAN` (Linux 6.7) returns the pages without protection and
//! protects them again, in one step. Such a first write is a page fault of the process, so that a number of faults which has not changed
//! says that nothing was written, for the price of `getrusage`.
//!
//! What the kernel does not note: docs/host-memory.md, "What it costs".

use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::outside::Outside;
use super::port::{Writes, WrittenPages};
use crate::convert::Ptr;

/// Size of a page in bytes.
const PAGE: usize = 4096;
/// Memory with fewer bytes is compared, which takes no longer than to ask about it.
const TRACKED_MIN_BYTES: usize = 64 << 10;
/// Time after which the pages are looked at although the process had no fault: what another process wrote is none of this one's.
const LOOK_AGAIN_MS: u128 = 10;
/// Number of ranges that the kernel returns at once.
const RANGES: usize = 128;

/// How the pages are found that the program has written.
#[derive(Debug, Default)]
pub(super) struct Written {
    notes: OnceLock<Option<Notes>>,
    /// Number of pages that were compared.
    compared: AtomicU64,
}

impl Written {
    /// Returns the kernel's notes; `None` if there are none. The first call opens them and logs what is in use.
    fn notes(&self) -> Option<&Notes> {
        let open = || {
            let dirty = Dirty::from_env();
            if dirty == Dirty::Compare {
                tracing::info!(
                    "host memory that exists twice is compared before each launch: HIPR_DIRTY is compare"
                );
                return None;
            }
            match Notes::open(dirty) {
                Ok(notes) => {
                    tracing::info!(
                        "before each launch the kernel tells which pages were written of host memory that exists twice \
                         (userfaultfd, PAGEMAP_SCAN)"
                    );
                    Some(notes)
                }
                Err((call, error)) => {
                    tracing::info!(
                        "host memory that exists twice is compared before each launch: the kernel does not tell which pages \
                         were written: {call}: {error}"
                    );
                    None
                }
            }
        };
        self.notes.get_or_init(open).as_ref()
    }

    /// Counts a page that is compared.
    pub(super) fn count_compared(&self) {
        self.compared.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many pages were compared.
    pub(super) fn compared(&self) -> u64 {
        self.compared.load(Ordering::Relaxed)
    }

    /// Returns the file descriptors that are open; -1 for each that is not.
    pub(super) fn raw_fds(&self) -> [RawFd; 2] {
        match self.notes.get() {
            Some(Some(notes)) => [notes.faults.as_raw_fd(), notes.pages.as_raw_fd()],
            _ => [-1; 2],
        }
    }
}

impl WrittenPages for Written {
    fn track(&self, at: Ptr, len: usize, is_own: bool) -> Option<Range<usize>> {
        // The pages at the ends may be others' as well.
        let end = at.0.checked_add(len)?;
        let whole = at.0.checked_next_multiple_of(PAGE)?..end - end % PAGE;
        if whole.len() < TRACKED_MIN_BYTES {
            return None;
        }
        let notes = self.notes()?;
        if notes.outside.as_ref().is_some_and(Outside::may_write) {
            return None;
        }
        if !is_own && !is_private(&whole) {
            tracing::debug!(
                "the memory at {at:?} is compared: it is a file's, or shared with other processes"
            );
            return None;
        }
        match notes.register(&whole) {
            Ok(()) => Some(whole),
            Err(error) => {
                tracing::debug!("the memory at {at:?} is compared: {error}");
                None
            }
        }
    }

    fn untrack(&self, range: Range<usize>) {
        if let Some(Some(notes)) = self.notes.get() {
            // Memory that is gone needs no end of this.
            let _ = notes.unregister(&range);
        }
    }

    fn writes(&self) -> Writes {
        match self.notes.get() {
            // Another number each time, so that the pages are looked at.
            Some(Some(notes)) if notes.outside.as_ref().is_some_and(Outside::may_write) => {
                Writes { faults: u64::MAX - notes.unsure.fetch_add(1, Ordering::Relaxed), period: 0 }
            }
            Some(Some(notes)) => Writes {
                faults: faults(),
                period: (notes.since.elapsed().as_millis() / LOOK_AGAIN_MS) as u64,
            },
            _ => Writes::default(),
        }
    }

    fn take(&self, range: Range<usize>) -> Option<Vec<Range<usize>>> {
        let notes = self.notes.get()?.as_ref()?;
        if notes.outside.as_ref().is_some_and(Outside::is_found) {
            // The pages are compared from now on.
            return None;
        }
        match notes.take(&range) {
            Ok(written) => Some(written),
            Err(error) => {
                // The program has mapped something else there.
                tracing::debug!("the memory at {:#x} is compared from now on: {error}", range.start);
                None
            }
        }
    }
}

/// How the environment wants written pages to be found (`HIPR_DIRTY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dirty {
    /// The kernel is asked as long as it knows of all that writes: `auto`, the default.
    Auto,
    /// They are compared: `compare`.
    Compare,
    /// The kernel is asked: `kernel`.
    Kernel,
}

impl Dirty {
    fn from_env() -> Self {
        let text = std::env::var("HIPR_DIRTY").unwrap_or_default();
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "auto" => Self::Auto,
            "compare" => Self::Compare,
            "kernel" => Self::Kernel,
            other => {
                tracing::warn!("HIPR_DIRTY: '{other}' is not auto, compare or kernel; using auto");
                Self::Auto
            }
        }
    }
}

/// Returns the number of page faults that the process has had so far. One that reads from swap and then allows a write is a major one.
fn faults() -> u64 {
    // SAFETY: a structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the one that the call writes.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    (usage.ru_minflt as u64).wrapping_add(usage.ru_majflt as u64)
}

/// Returns whether memory is the process's own and no file's, by the kernel's list of mappings.
fn is_private(range: &Range<usize>) -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| is_private_in(&maps, range))
}

fn is_private_in(maps: &str, range: &Range<usize>) -> bool {
    let mut at = range.start;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(addresses), Some(access), _, _, Some(inode)) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        let number = |text| usize::from_str_radix(text, 16).ok();
        let Some((Some(start), Some(end))) =
            addresses.split_once('-').map(|(start, end)| (number(start), number(end)))
        else {
            return false;
        };
        if end <= at {
            continue;
        }
        if start > at || !access.ends_with('p') || inode != "0" {
            return false;
        }
        at = end;
        if at >= range.end {
            return true;
        }
    }
    false
}

/// The kernel's notes about this process's pages.
#[derive(Debug)]
struct Notes {
    /// The `userfaultfd`.
    faults: OwnedFd,
    /// `/proc/self/pagemap`.
    pages: OwnedFd,
    since: Instant,
    /// Who writes without the kernel noting it; `None` if the environment says that nobody does.
    outside: Option<Outside>,
    /// How often it was asked whether something was written while somebody may write unnoticed.
    unsure: AtomicU64,
}

/// `struct uffdio_api`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_range`.
#[repr(C)]
struct Span {
    start: u64,
    len: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    range: Span,
    mode: u64,
    ioctls: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const UFFD_USER_MODE_ONLY: libc::c_int = 1;
const UFFD_API: u64 = 0xaa;
const UFFD_FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFDIO_REGISTER_MODE_WP: u64 = 2;
const PM_SCAN_WP_MATCHING: u64 = 1;
const PM_SCAN_CHECK_WPASYNC: u64 = 2;
const PAGE_IS_WRITTEN: u64 = 2;

/// Returns the number of an `ioctl` that reads and writes a structure (`_IOWR`), or only reads it (`_IOR`).
const fn number(group: u8, number: u8, len: usize, is_written: bool) -> libc::Ioctl {
    let access = if is_written { 3 } else { 2 };
    (access << 30 | (len as u64) << 16 | (group as u64) << 8 | number as u64) as libc::Ioctl
}

const UFFDIO_API: libc::Ioctl = number(0xaa, 0x3f, size_of::<Api>(), true);
const UFFDIO_REGISTER: libc::Ioctl = number(0xaa, 0, size_of::<Register>(), true);
const UFFDIO_UNREGISTER: libc::Ioctl = number(0xaa, 1, size_of::<Span>(), false);
const PAGEMAP_SCAN: libc::Ioctl = number(b'f', 16, size_of::<Scan>(), true);

impl Span {
    fn of(range: &Range<usize>) -> Self {
        Self { start: range.start as u64, len: range.len() as u64 }
    }
}

impl Notes {
    /// Opens the kernel's notes.
    ///
    /// # Errors
    /// The call that failed, and why.
    fn open(dirty: Dirty) -> Result<Self, (&'static str, io::Error)> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY;
        // SAFETY: a call that only makes a descriptor.
        let faults = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        if faults < 0 {
            return Err(("userfaultfd", io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let faults = unsafe { OwnedFd::from_raw_fd(faults as RawFd) };
        let features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED;
        let mut api = Api { api: UFFD_API, features, ioctls: 0 };
        control(&faults, UFFDIO_API, &mut api).map_err(|error| ("UFFDIO_API", error))?;
        let pages =
            std::fs::File::open("/proc/self/pagemap").map_err(|error| ("/proc/self/pagemap", error))?;
        let outside = (dirty != Dirty::Kernel).then(Outside::default);
        let (since, unsure) = (Instant::now(), AtomicU64::new(0));
        let notes = Self { faults, pages: pages.into(), since, outside, unsure };
        // Of no pages, to see whether the kernel knows the call.
        notes.take(&(0..0)).map_err(|error| ("PAGEMAP_SCAN", error))?;
        Ok(notes)
    }

    /// Begins to note what is written to pages. All that exist now count as written.
    fn register(&self, range: &Range<usize>) -> io::Result<()> {
        let mut register = Register { range: Span::of(range), mode: UFFDIO_REGISTER_MODE_WP, ioctls: 0 };
        control(&self.faults, UFFDIO_REGISTER, &mut register).map(drop)
    }

    fn unregister(&self, range: &Range<usize>) -> io::Result<()> {
        control(&self.faults, UFFDIO_UNREGISTER, &mut Span::of(range)).map(drop)
    }

    /// Returns the addresses of the pages that were written since the last time, in their order, and protects them again. Those that
    /// nobody has ever used may be among them, once.
    fn take(&self, range: &Range<usize>) -> io::Result<Vec<Range<usize>>> {
        let mut found = [Found::default(); RANGES];
        let mut written: Vec<Range<usize>> = Vec::new();
        let mut start = range.start as u64;
        loop {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                flags: PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
                start,
                end: range.end as u64,
                vec: found.as_mut_ptr().expose_provenance() as u64,
                vec_len: RANGES as u64,
                category_mask: PAGE_IS_WRITTEN,
                return_mask: PAGE_IS_WRITTEN,
                ..Scan::default()
            };
            let count = control(&self.pages, PAGEMAP_SCAN, &mut scan)?;
            for found in found.iter().take(count) {
                let pages = found.start as usize..found.end as usize;
                match written.last_mut().filter(|last| last.end == pages.start) {
                    Some(last) => last.end = pages.end,
                    None => written.push(pages),
                }
            }
            if scan.walk_end >= range.end as u64 {
                return Ok(written);
            }
            if scan.walk_end <= start {
                return Err(io::Error::other("PAGEMAP_SCAN does not get on"));
            }
            start = scan.walk_end;
        }
    }
}

/// Passes a structure to the kernel; returns the call's result.
fn control<T>(file: &OwnedFd, request: libc::Ioctl, argument: &mut T) -> io::Result<usize> {
    // SAFETY: the structure is the one that the request is about; what addresses in it name is memory of the caller's for as long.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request, std::ptr::from_mut(argument)) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::map::{self, Source};

    const PAGES: usize = 1024;

    /// Some memory of the process's own, and the kernel's notes about it; `None` where the kernel has none.
    struct Tracked {
        written: Written,
        at: Ptr,
        range: Range<usize>,
    }

    impl Tracked {
        fn new() -> Option<Self> {
            let at = map::anywhere(PAGES * PAGE, &Source::New).expect("memory");
            let written = Written::default();
            match written.track(at, PAGES * PAGE, true) {
                Some(range) => Some(Self { written, at, range }),
                None => {
                    map::unmap(at, PAGES * PAGE);
                    None
                }
            }
        }

        fn put(&self, page: usize, byte: u8) {
            // SAFETY: the memory is ours, and has so many pages.
            unsafe { self.at.offset(page * PAGE + 7).as_mut_ptr::<u8>().write_volatile(byte) };
        }

        fn get(&self, page: usize) -> u8 {
            // SAFETY: as in `put`.
            unsafe { self.at.offset(page * PAGE + 7).as_mut_ptr::<u8>().read_volatile() }
        }

        /// Returns the numbers of the pages that were written.
        fn taken(&self) -> Vec<usize> {
            let written = self.written.take(self.range.clone()).expect("the kernel tells");
            let number = |address: usize| (address - self.at.0) / PAGE;
            written.into_iter().flat_map(|pages| number(pages.start)..number(pages.end)).collect()
        }
    }

    impl Drop for Tracked {
        fn drop(&mut self) {
            map::unmap(self.at, PAGES * PAGE);
        }
    }

    #[test]
    fn the_kernel_tells_each_written_page_once() {
        let Some(tracked) = Tracked::new() else { return };
        tracked.put(3, 1);
        assert!(tracked.taken().contains(&3));
        tracked.taken();
        assert_eq!(tracked.taken(), [0; 0]);
        // More runs than the kernel returns at once, of pages that were read, written and never used before.
        let odd: Vec<usize> = (0..PAGES).filter(|page| page % 2 == 1).collect();
        assert!(odd.len() > RANGES);
        let before = tracked.written.writes().faults;
        odd.iter().for_each(|page| tracked.put(*page, 2));
        assert!(tracked.written.writes().faults >= before + odd.len() as u64, "each is a fault");
        let told = tracked.taken();
        assert!(odd.iter().all(|page| told.contains(page)), "{told:?}");
        tracked.taken();
        // A system call writes, too.
        let mut zeros = std::fs::File::open("/dev/zero").expect("zeros");
        // SAFETY: the memory is ours.
        let page =
            unsafe { std::slice::from_raw_parts_mut(tracked.at.offset(5 * PAGE).as_mut_ptr::<u8>(), PAGE) };
        std::io::Read::read_exact(&mut zeros, page).expect("bytes");
        assert_eq!(tracked.get(5), 0);
        assert_eq!(tracked.taken(), [5]);
        assert_eq!((0..PAGES).map(|page| tracked.get(page)).max(), Some(2), "reading is no writing");
        assert_eq!(tracked.taken(), [0; 0]);
    }

    #[test]
    fn memory_that_was_written_before_counts_as_written() {
        let at = map::anywhere(PAGES * PAGE, &Source::New).expect("memory");
        let tracked = Tracked { written: Written::default(), at, range: at.0..at.0 + PAGES * PAGE };
        (10..20).for_each(|page| tracked.put(page, 1));
        for _ in 0..2 {
            if tracked.written.track(at, PAGES * PAGE, false).is_none() {
                return;
            }
            let told = tracked.taken();
            assert!((10..20).all(|page| told.contains(&page)), "{told:?}");
            tracked.written.untrack(tracked.range.clone());
        }
    }

    #[test]
    fn memory_of_which_a_page_is_not_tracked_any_more_is_compared() {
        let Some(tracked) = Tracked::new() else { return };
        tracked.taken();
        // As if the program had mapped something else there.
        let page = tracked.at.0 + 8 * PAGE;
        tracked.written.untrack(page..page + PAGE);
        assert_eq!(tracked.written.take(tracked.range.clone()), None);
    }

    #[test]
    fn what_another_process_writes_is_looked_for_after_a_while() {
        let Some(tracked) = Tracked::new() else { return };
        let before = tracked.written.writes();
        std::thread::sleep(std::time::Duration::from_millis(LOOK_AGAIN_MS as u64));
        assert_ne!(tracked.written.writes().period, before.period);
    }

    #[test]
    fn memory_of_files_and_of_several_processes_is_compared() {
        let maps = "1000-3000 rw-p 00000000 00:00 0 \n\
                    3000-4000 rw-p 00000000 00:00 0                          [heap]\n\
                    4000-5000 r--p 00001000 08:01 1234                       /usr/lib/a.so\n\
                    5000-6000 rw-s 00000000 00:01 77                         /dev/zero (deleted)\n\
                    7000-9000 ---p 00000000 00:00 0 \n";
        for (range, is_private) in [
            (0x1000..0x3000, true),
            (0x2000..0x4000, true),
            (0x1000..0x4001, false),
            (0x4000..0x5000, false),
            (0x5000..0x6000, false),
            (0x5fff..0x7001, false),
            (0x6000..0x7000, false),
            (0x7000..0x8000, true),
            (0x8000..0xa000, false),
            (0x0..0x2000, false),
        ] {
            assert_eq!(is_private_in(maps, &range), is_private, "{range:x?}");
        }
        assert!(!is_private_in("no list of mappings\n", &(0..1)));
    }
}
