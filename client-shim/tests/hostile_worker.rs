//! Lets workers lie: every number of every reply that a program gets, one after the other, is a value that breaks what takes it for true.
//! The program gets an error or goes on; it never crashes, nothing is mapped where it should not be, and none of its memory is sent.

mod support;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hipr_proto::op::{self, GetDevicePropertiesReply, MemLeaseReply, OfferReply, kind};
use hipr_proto::{Features, Layout, Opcode, Text, Wire};
use support::hip::*;
use support::*;

/// Code for the device that the workers say they have.
static CODE: &[u8] = include_bytes!("../../gpu/code-object/tests/data/kernels-v6.elf");
const ARCHITECTURE: &str = "gfx942:sramecc+:xnack-";

/// An address at which the program has memory of its own, with a secret in it.
const IN_USE: u64 = 0x6100_0000_0000;
const SECRET: [u8; 16] = *b"do not send this";

/// The values of each number.
const LIES: [u64; 12] = [
    0,
    1,
    0xfff,
    0xf000,
    i32::MAX as u64,
    1 << 31,
    u32::MAX as u64,
    1 << 47,
    1 << 63,
    u64::MAX - 0xfff,
    u64::MAX,
    IN_USE,
];

/// Memory that a program may map in this test, in bytes of addresses.
const ADDRESSES_MAX: u64 = 8 << 30;

/// Calls what programs call, in the order in which they do, and ignores all errors.
#[test]
#[ignore = "a program that other tests run"]
fn program_that_goes_on() {
    if !is_program() {
        return;
    }
    let limit = libc::rlimit { rlim_cur: ADDRESSES_MAX, rlim_max: ADDRESSES_MAX };
    // SAFETY: C calls; the memory is new.
    let own = unsafe {
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &limit), 0);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let wanted = std::ptr::without_provenance_mut(IN_USE as usize);
        let got = libc::mmap(wanted, 4096, access, flags | libc::MAP_FIXED_NOREPLACE, -1, 0);
        assert_eq!(got, wanted);
        std::slice::from_raw_parts_mut(got.cast::<u8>(), 4096)
    };
    own.as_chunks_mut::<16>().0.fill(SECRET);
    // SAFETY: C calls with good pointers to enough memory.
    unsafe { everything() };
    assert!(own.as_chunks::<16>().0.iter().all(|part| *part == SECRET), "the program's memory is as it was");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    let first = maps.split('-').next().and_then(|start| u64::from_str_radix(start, 16).ok());
    assert!(first.is_some_and(|first| first >= 64 << 10), "nothing is mapped near the null pointer:\n{maps}");
}

/// Memory of a HIP call's result, if the call says that there is some.
fn is_usable(code: i32, ptr: Ptr) -> bool {
    code == 0 && !ptr.is_null()
}

unsafe fn everything() {
    let (mut number, mut size, mut other) = (0, 0, 0);
    let (mut device, mut host, mut managed, mut stream, mut start, mut stop) =
        (null_mut(), null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
    let mut bytes = [7u8; 4096];
    let buffer: Ptr = bytes.as_mut_ptr().cast();
    let none: Ptr = null_mut();
    // SAFETY: as the caller promises; what is written through pointers of the library's was said to be there by it.
    unsafe {
        hipInit(0);
        hipGetDeviceCount(&mut number);
        hipSetDevice(0);
        hipGetDevice(&mut number);
        hipDriverGetVersion(&mut number);
        hipMemGetInfo(&mut size, &mut other);
        let allocated = hipMalloc(&mut device, 4096);
        if is_usable(allocated, device) {
            hipMemcpy(device, buffer, 4096, H2D);
            hipMemset(device, 1, 4096);
            hipMemcpy(buffer, device, 4096, D2H);
            let mut attributes = std::mem::zeroed();
            hipPointerGetAttributes(&mut attributes, device);
        }
        let mut pitched = null_mut();
        hipMallocPitch(&mut pitched, &mut size, 100, 10);
        let mut pooled = null_mut();
        if is_usable(hipMallocAsync(&mut pooled, 4096, none), pooled) {
            hipFreeAsync(pooled, none);
        }
        if is_usable(hipHostMalloc(&mut host, 5000, 0), host) {
            host.cast::<u8>().write_bytes(3, 5000);
            let mut there = null_mut();
            hipHostGetDevicePointer(&mut there, host, 0);
        }
        if is_usable(hipMallocManaged(&mut managed, 9000, 1), managed) {
            managed.cast::<u8>().write_bytes(4, 9000);
        }
        hipHostRegister(buffer, 4096, 0);
        hipHostUnregister(buffer);
        hipStreamCreate(&mut stream);
        hipStreamCreateWithPriority(&mut stream, 0, 1);
        hipStreamGetPriority(stream, &mut number);
        let mut flags = 0;
        hipStreamGetFlags(stream, &mut flags);
        hipEventCreate(&mut start);
        hipEventCreate(&mut stop);
        hipEventRecord(start, stream);
        hipEventRecord(stop, stream);
        hipEventSynchronize(stop);
        hipEventQuery(stop);
        let mut module = null_mut();
        hipModuleLoadData(&mut module, CODE.as_ptr().cast());
        let (mut function, mut global) = (null_mut(), null_mut());
        if hipModuleGetGlobal(&mut global, &mut size, module, c"table".as_ptr()) == 0 {
            hipMemcpy(buffer, global, size.min(64), D2H);
        }
        hipModuleGetFunction(&mut function, module, c"globals".as_ptr());
        hipFuncGetAttribute(&mut number, 0, function);
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut number, function, 64, 0);
        let mut grid = 0;
        hipModuleOccupancyMaxPotentialBlockSize(&mut grid, &mut number, function, 0, 0);
        let mut argument = device;
        let mut params = [(&raw mut argument).cast()];
        hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, params.as_mut_ptr(), null_mut());
        let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
        hipGraphCreate(&mut graph, 0);
        let set = MemsetParams { dst: device, element_size: 1, height: 1, pitch: 64, value: 5, width: 64 };
        hipGraphAddMemsetNode(&mut node, graph, null(), 0, &set);
        hipGraphInstantiate(&mut exec, graph, none, none, 0);
        hipGraphLaunch(exec, stream);
        hipStreamSynchronize(stream);
        hipDeviceSynchronize();
        hipStreamQuery(stream);
        hipGraphExecDestroy(exec);
        hipModuleUnload(module);
        hipEventDestroy(start);
        hipStreamDestroy(stream);
        hipHostFree(host);
        hipFree(managed);
        hipFree(device);
        hipDeviceReset();
    }
}

/// A number of a reply: its operation, place and width; a text counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    op: Opcode,
    at: usize,
    width: usize,
}

/// Adds the numbers of a layout that begins at `at`, of long arrays the first and the last; returns where it ends.
fn numbers(op: Opcode, layout: &Layout, at: usize, found: &mut Vec<Place>) -> usize {
    match layout {
        Layout::Number(name) => {
            let bits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().unwrap_or(64);
            found.push(Place { op, at, width: bits / 8 });
            at + bits / 8
        }
        Layout::Text(len) => {
            found.push(Place { op, at, width: *len });
            at + len
        }
        Layout::Array(item, count) => {
            let mut all = Vec::new();
            let end = (0..*count).fold(at, |at, _| numbers(op, item, at, &mut all));
            found.extend(all.first().into_iter().chain(all.last()));
            end
        }
        Layout::Fields(fields) => fields.iter().fold(at, |at, field| numbers(op, &field.layout, at, found)),
    }
}

/// Reacts as an honest worker with the emulated device's code would, without doing anything.
fn honest(asked: &Asked, features: Features) -> Reaction {
    static HANDLES: AtomicU64 = AtomicU64::new(0x10_0000);
    let handle = HANDLES.fetch_add(0x10, Ordering::Relaxed);
    let memory = 0x1_0000_0000 + handle * 0x1_0000;
    Reaction::Good(match asked.op {
        Opcode::OFFER => bytes(&OfferReply { features: features.bits() }),
        Opcode::MEM_LEASE => bytes(&MemLeaseReply {
            window_start: 1 << 40,
            window_bytes: 1 << 30,
            added_bytes: 1 << 24,
            added_allocations: 9,
        }),
        Opcode::GET_DEVICE_COUNT => bytes(&op::GetDeviceCountReply { count: 1 }),
        Opcode::GET_DEVICE_PROPERTIES => bytes(&GetDevicePropertiesReply {
            gcn_arch_name: Text::new(ARCHITECTURE),
            multi_processor_count: 304,
            ..Wire::ZERO
        }),
        Opcode::MEMCPY | Opcode::MEMCPY_ASYNC => {
            let copy = op::Memcpy::take(&mut asked.fixed.as_slice()).expect("a whole request");
            if copy.kind == kind::DEVICE_TO_HOST {
                return Reaction::GoodWith(Vec::new(), vec![0; copy.size as usize]);
            }
            Vec::new()
        }
        Opcode::MODULE_GET_GLOBAL => bytes(&op::ModuleGetGlobalReply { device_ptr: memory, size: 64 }),
        Opcode::MALLOC | Opcode::MALLOC_HOST | Opcode::MALLOC_MANAGED | Opcode::MALLOC_ASYNC => {
            bytes(&memory)
        }
        other => {
            // Handles are not zero.
            let size = other.info().map_or(0, |info| info.reply.size);
            if size == 8 { bytes(&handle) } else { vec![0; size] }
        }
    })
}

/// A worker that lies at one place, for one program after another.
struct Liar {
    address: SocketAddr,
    features: Features,
    lie: Arc<Mutex<Option<(Place, u64)>>>,
    asked: Arc<Mutex<BTreeSet<Opcode>>>,
    has_secret: Arc<AtomicBool>,
}

impl Liar {
    fn start(features: Features) -> Self {
        let lie: Arc<Mutex<Option<(Place, u64)>>> = Arc::default();
        let (asked, has_secret): (Arc<Mutex<BTreeSet<Opcode>>>, Arc<AtomicBool>) = Default::default();
        let (lies, seen, leaks) = (Arc::clone(&lie), Arc::clone(&asked), Arc::clone(&has_secret));
        let worker = FakeWorker::start(move |request| {
            let secret = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|part| part == SECRET);
            leaks.fetch_or(secret(&request.fixed) || secret(&request.tail), Ordering::Relaxed);
            seen.lock().expect("no panic").insert(request.op);
            let reaction = honest(request, features);
            let (Reaction::Good(mut fixed), Some((place, value))) =
                (reaction, *lies.lock().expect("no panic"))
            else {
                return honest(request, features);
            };
            if place.op == request.op
                && let Some(field) = fixed.get_mut(place.at..place.at + place.width)
            {
                let value = value.to_le_bytes();
                field.iter_mut().zip(value.iter().cycle()).for_each(|(byte, value)| *byte = *value);
            }
            Reaction::Good(fixed)
        });
        Self { address: worker.address, features, lie, asked, has_secret }
    }

    /// Runs the program to its end, which has to be its own.
    fn deceive(&self, lie: Option<(Place, u64)>) {
        *self.lie.lock().expect("no panic") = lie;
        let mut program = program("program_that_goes_on", self.address);
        let extension = if self.features == Features::NONE { "off" } else { "on" };
        program.env("HIPR_EXTENSION", extension).env("HIPR_LOG", "off");
        let child = program.spawn().expect("the program starts");
        let output = child.wait_with_output().expect("the program ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{lie:x?}: {}\n{said}", output.status);
        assert!(!self.has_secret.load(Ordering::Relaxed), "{lie:x?}: the program's memory is sent");
    }
}

fn lie_everywhere(features: Features) -> usize {
    let honest = Liar::start(features);
    honest.deceive(None);
    let asked = honest.asked.lock().expect("no panic").clone();
    let mut places = Vec::new();
    for op in &asked {
        let Some(info) = op.info() else { continue };
        numbers(*op, &Layout::Fields(info.reply.fields), 0, &mut places);
    }
    // Wide numbers have all values, narrow ones those that differ.
    let lies = places.iter().flat_map(|place| {
        let mask = if place.width < 8 { (1 << (8 * place.width)) - 1 } else { u64::MAX };
        let values: BTreeSet<u64> = LIES.iter().map(|value| value & mask).collect();
        values.into_iter().map(|value| (*place, value))
    });
    let lies: Vec<_> = lies.collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let liar = Liar::start(features);
                while let Some(lie) = lies.get(next.fetch_add(1, Ordering::Relaxed)) {
                    liar.deceive(Some(*lie));
                }
            });
        }
    });
    println!("{} operations, {} numbers, {} lies: {asked:?}", asked.len(), places.len(), lies.len());
    asked.len()
}

#[test]
fn no_number_of_a_reply_harms_a_program() {
    assert!(lie_everywhere(Features::NONE) >= 25);
}

#[test]
fn no_number_of_a_reply_harms_a_program_that_places_memory() {
    assert!(lie_everywhere(Features::PLACES.union(Features::NAMES)) >= 10);
}
