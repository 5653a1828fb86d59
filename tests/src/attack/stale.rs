//! What sessions leave in memory: who gets that memory next must not find it.

use super::{Case, Sent, Target};
use crate::{Gpu, args};
use hipr_proto::{Features, HipError, HipResult, op};

/// Kernels that fill, and look through, all memory that a kernel has.
static KERNELS: &[u8] = include_bytes!("stale.co");
/// What is written everywhere.
const PATTERN: u8 = 0xa7;
const WORD: u32 = u32::from_ne_bytes([PATTERN; 4]);
/// Sizes of allocations, which are made in turn until there is no memory.
const SIZES: [u64; 5] = [1 << 20, 100, 4096, 70_000, 16];
/// The most that a session takes in this way, where it has no limit.
const TAKEN_MAX_BYTES: u64 = 1 << 30;
const LDS_BYTES: u32 = 64 << 10;
/// Groups of a kernel: more than run at a time.
const GROUPS: u32 = 32;

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    vec![Case::new("looking for what others left in memory", look)]
}

fn look(worker: Target) -> Sent {
    let mut sent = Sent::default();
    let mut first = Hoard::open(worker);
    let mut left = first.take_all(&mut sent);
    first.fill();
    first.run(&mut sent, "leave");
    first.free();
    // The first session lives still.
    left += Hoard::open(worker).search(&mut sent, "what was freed");
    first.take_all(&mut sent);
    first.fill();
    first.run(&mut sent, "leave");
    drop(first);
    left += Hoard::open(worker).search(&mut sent, "what a session had that has ended");
    sent.say(format!("{} MiB in all", left >> 20));
    sent
}

/// A way to allocate memory.
type Way = fn(&mut Gpu, u64) -> HipResult<u64>;

/// All of them.
const WAYS: [(&str, Way); 8] = [
    ("hipMalloc", |gpu, size| gpu.wire().call(&op::Malloc { size, flags: 0 }).map(|made| made.device_ptr)),
    ("uncached", |gpu, size| gpu.wire().call(&op::Malloc { size, flags: 3 }).map(|made| made.device_ptr)),
    ("hipHostMalloc", |gpu, size| {
        gpu.wire().call(&op::MallocHost { size, flags: 0 }).map(|made| made.device_ptr)
    }),
    ("hipMallocManaged", |gpu, size| {
        gpu.wire().call(&op::MallocManaged { size, flags: 1 }).map(|made| made.device_ptr)
    }),
    ("hipMallocAsync", |gpu, size| {
        gpu.wire().call(&op::MallocAsync { size, stream: 0 }).map(|made| made.device_ptr)
    }),
    ("hipMallocFromPoolAsync", |gpu, size| {
        let mem_pool = gpu.wire().call(&op::DeviceGetDefaultMemPool { device: 0 })?.mem_pool;
        let made = gpu.wire().call(&op::MallocFromPoolAsync { size, mem_pool, stream: 0 });
        made.map(|made| made.device_ptr)
    }),
    ("hipMemAllocPitch", |gpu, size| {
        let (width_in_bytes, height, element_size) = (size.min(256), size.div_ceil(256), 4);
        let made = gpu.wire().call(&op::MemAllocPitch { width_in_bytes, height, element_size });
        made.map(|made| made.dptr)
    }),
    (MAPPED, map),
];

const MAPPED: &str = "hipMemMap";

/// Maps physical memory, of which nobody has the handle then. It comes in large pieces: what is small is allocated otherwise.
fn map(gpu: &mut Gpu, size: u64) -> HipResult<u64> {
    if size < SIZES[0] {
        return Err(HipError::NOT_SUPPORTED);
    }
    let whole = whole(gpu, size)?;
    let physical = gpu.wire().call(&op::PhysicalCreate { size: whole, device: 0, reserved: 0 })?.physical;
    let reserve = op::AddressReserve { size: whole, alignment: 0, wanted: 0 };
    let device_ptr = gpu.wire().call(&reserve)?.device_ptr;
    gpu.wire().call(&op::MemMap { device_ptr, size: whole, physical })?;
    gpu.wire().call(&op::PhysicalRelease { physical })?;
    gpu.wire().call(&op::MemSetAccess { device_ptr, size: whole, device: 0, access: 3 })?;
    Ok(device_ptr)
}

/// Returns the size of the physical memory for so many bytes.
fn whole(gpu: &mut Gpu, size: u64) -> HipResult<u64> {
    Ok(size.next_multiple_of(gpu.wire().call(&op::MemGranularity { device: 0 })?.granularity))
}

/// An allocation: how it was made, its address and its size.
type Place = (usize, u64, u64);

/// A session with all memory that it can get.
struct Hoard {
    gpu: Gpu,
    places: Vec<Place>,
}

impl Hoard {
    fn open(worker: Target) -> Self {
        let mut gpu = Gpu::open(worker.address, KERNELS);
        let features = Features::MAPPINGS.bits();
        gpu.wire().call(&op::Offer { features, part: 0 }).expect("a worker that knows the extension");
        Self { gpu, places: Vec::new() }
    }

    /// Allocates memory in all ways until there is none; returns how much.
    fn take_all(&mut self, sent: &mut Sent) -> u64 {
        let mut taken = 0;
        for size in SIZES {
            // Small allocations only until each way had some.
            let most = if size == SIZES[0] { usize::MAX } else { 10 * WAYS.len() };
            for number in 0..most {
                let way = number % WAYS.len();
                let (name, make) = WAYS[way];
                match make(&mut self.gpu, size) {
                    Ok(address) => self.places.push((way, address, size)),
                    Err(HipError::OUT_OF_MEMORY) => break,
                    Err(HipError::NOT_SUPPORTED) if name == MAPPED && size < SIZES[0] => continue,
                    Err(why) => {
                        sent.expect(false, || format!("{name}: {why}"));
                        break;
                    }
                }
                taken += size;
                if taken >= TAKEN_MAX_BYTES {
                    break;
                }
            }
            if size == SIZES[0] {
                // Room for the small ones, and for what a kernel needs.
                (0..16).for_each(|_| self.free_last());
                taken = taken.saturating_sub(16 * size);
            }
        }
        taken
    }

    fn free_last(&mut self) {
        if let Some((way, device_ptr, size)) = self.places.pop() {
            let freed = match WAYS[way].0 {
                "hipHostMalloc" => self.gpu.wire().call(&op::FreeHost { device_ptr }),
                MAPPED => whole(&mut self.gpu, size).and_then(|size| {
                    self.gpu.wire().call(&op::MemUnmap { device_ptr, size })?;
                    self.gpu.wire().call(&op::AddressFree { device_ptr, size })
                }),
                _ => self.gpu.wire().call(&op::Free { device_ptr }),
            };
            freed.expect("an allocation of the session");
        }
    }

    fn fill(&mut self) {
        let value = i32::from(PATTERN);
        for &(_, dst, size) in &self.places {
            self.gpu.wire().call(&op::Memset { dst, value, size, stream: 0 }).expect("memory of the session");
        }
    }

    fn free(&mut self) {
        while !self.places.is_empty() {
            self.free_last();
        }
    }

    /// Runs one of the kernels; returns what it counted.
    fn run(&mut self, sent: &mut Sent, kernel: &str) -> u32 {
        let counted = self.gpu.zeroed::<u32>(1);
        self.gpu.launch(kernel, GROUPS, 64, LDS_BYTES, args![WORD, counted]);
        sent.answered(self.gpu.synchronize());
        self.gpu.download(counted)[0]
    }

    /// Looks at all memory for the pattern; returns how much memory that was.
    fn search(&mut self, sent: &mut Sent, whose: &str) -> u64 {
        let words = self.run(sent, "find");
        sent.expect(words == 0, || format!("{words} words of LDS, scratch and variables have {whose}"));
        let variable = self.gpu.global::<u8>("remains");
        let bytes = self.gpu.download(variable);
        let mut found = bytes.iter().filter(|&&byte| byte == PATTERN).count();
        self.take_all(sent);
        let mut seen = variable.len_bytes();
        for index in 0..self.places.len() {
            let (way, src, size) = self.places[index];
            let copy = op::Memcpy { dst: 0, src, size, kind: op::kind::DEVICE_TO_HOST, stream: 0 };
            let copied = self.gpu.wire().call_with(&copy, &[], None);
            let is_whole = copied.result.is_ok() && copied.inline.len() as u64 == size;
            sent.expect(is_whole, || format!("memory of {} cannot be read", WAYS[way].0));
            found += copied.inline.iter().filter(|&&byte| byte == PATTERN).count();
            seen += size;
        }
        sent.say(format!("{found} bytes of {whose}"));
        sent.expect(found == 0, || "memory has what another session left".into());
        seen
    }
}
