//! Calls AMD's own libamdhip64 on a machine without a GPU and compares the results with `data/nodevice.tsv`. The calls go
//! through `hip-sys`, so that its table and its types meet the real library. Missing releases are skipped with a message.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use hip_sys::*;
use hipr_rocm_tests::Rocm;

/// The results of a call: its own, then those of hipPeekAtLastError and hipGetLastError.
type Said = [hipError_t; 3];

/// The memory that calls write to.
struct Places {
    number: c_int,
    len: usize,
    free: usize,
    text: [c_char; 64],
    uuid: hipUUID,
    before: hipDeviceProp_tR0000,
    properties: hipDeviceProp_tR0600,
    attributes: hipPointerAttribute_t,
    pointer: *mut c_void,
    stream: hipStream_t,
    event: hipEvent_t,
    module: hipModule_t,
    function: hipFunction_t,
    pool: hipMemPool_t,
    graph: hipGraph_t,
}

impl Places {
    fn new() -> Self {
        Self {
            number: -7,
            len: 0,
            free: 0,
            text: [0; 64],
            uuid: hipUUID::default(),
            before: hipDeviceProp_tR0000::default(),
            properties: hipDeviceProp_tR0600::default(),
            attributes: hipPointerAttribute_t::default(),
            pointer: null_mut(),
            stream: null_mut(),
            event: null_mut(),
            module: null_mut(),
            function: null_mut(),
            pool: null_mut(),
            graph: null_mut(),
        }
    }
}

macro_rules! calls {
    ($hip:ident, $p:ident: $($text:literal $name:ident($($arg:expr),*);)*) => {
        /// Every call: its C text, whether the library has the function, and the call.
        #[allow(clippy::type_complexity, reason = "three columns")]
        const CALLS: &[(&str, &str, fn(&Hip, &mut Places) -> hipError_t)] = &[$((
            $text,
            stringify!($name),
            |$hip, $p| {
                let _ = &$p;
                // SAFETY: the places outlive the call; what is no place is a value that HIP has to refuse.
                unsafe { $hip.$name($($arg),*) }
            },
        )),*];
    };
}

calls! { hip, p:
    "hipInit(0)" hipInit(0);
    "hipInit(1)" hipInit(1);
    "hipDriverGetVersion(&a)" hipDriverGetVersion(&mut p.number);
    "hipRuntimeGetVersion(&b)" hipRuntimeGetVersion(&mut p.number);
    "hipGetDeviceCount(&a)" hipGetDeviceCount(&mut p.number);
    "hipGetDeviceCount(nullptr)" hipGetDeviceCount(null_mut());
    "hipGetDevice(&a)" hipGetDevice(&mut p.number);
    "hipSetDevice(0)" hipSetDevice(0);
    "hipSetDevice(-1)" hipSetDevice(-1);
    "hipDeviceGet(&d,0)" hipDeviceGet(&mut p.number, 0);
    "hipDeviceGetName(nm,64,0)" hipDeviceGetName(p.text.as_mut_ptr(), 64, 0);
    "hipDeviceGetUuid(&u,0)" hipDeviceGetUuid(&mut p.uuid, 0);
    "hipDeviceTotalMem(&t,0)" hipDeviceTotalMem(&mut p.len, 0);
    "hipDeviceGetAttribute(&a,hipDeviceAttributeWarpSize,0)" hipDeviceGetAttribute(&mut p.number, hipDeviceAttributeWarpSize, 0);
    "hipGetDeviceProperties(&pr,0)" hipGetDevicePropertiesR0600(&mut p.properties, 0);
    "hipGetDevicePropertiesR0000(&pr,0)" hipGetDeviceProperties(&mut p.before, 0);
    "hipDeviceCanAccessPeer(&a,0,0)" hipDeviceCanAccessPeer(&mut p.number, 0, 0);
    "hipMalloc(&p,16)" hipMalloc(&mut p.pointer, 16);
    "hipMalloc(&p,0)" hipMalloc(&mut p.pointer, 0);
    "hipFree(nullptr)" hipFree(null_mut());
    "hipFree((void*)16)" hipFree(std::ptr::without_provenance_mut(16));
    "hipHostMalloc(&p,16,0)" hipHostMalloc(&mut p.pointer, 16, 0);
    "hipHostFree(nullptr)" hipHostFree(null_mut());
    "hipMallocManaged(&p,16,1)" hipMallocManaged(&mut p.pointer, 16, 1);
    "hipMallocAsync(&p,16,0)" hipMallocAsync(&mut p.pointer, 16, null_mut());
    "hipMemcpy(nm,nm,8,hipMemcpyHostToHost)" hipMemcpy(p.text.as_mut_ptr().cast(), p.text.as_ptr().cast(), 8, hipMemcpyHostToHost);
    "hipMemset(nm,0,8)" hipMemset(p.text.as_mut_ptr().cast(), 0, 8);
    "hipMemGetInfo(&f,&t)" hipMemGetInfo(&mut p.free, &mut p.len);
    "hipPointerGetAttributes(&pa,nm)" hipPointerGetAttributes(&mut p.attributes, p.text.as_ptr().cast());
    "hipMemGetAddressRange(&dp,&f,nm)" hipMemGetAddressRange(&mut p.pointer, &mut p.free, p.text.as_mut_ptr().cast());
    "hipStreamCreate(&s)" hipStreamCreate(&mut p.stream);
    "hipStreamCreateWithFlags(&s,hipStreamNonBlocking)" hipStreamCreateWithFlags(&mut p.stream, hipStreamNonBlocking);
    "hipStreamSynchronize(0)" hipStreamSynchronize(null_mut());
    "hipStreamQuery(0)" hipStreamQuery(null_mut());
    "hipEventCreate(&ev)" hipEventCreate(&mut p.event);
    "hipEventCreateWithFlags(&ev,2)" hipEventCreateWithFlags(&mut p.event, hipEventDisableTiming);
    "hipDeviceSynchronize()" hipDeviceSynchronize();
    "hipDeviceReset()" hipDeviceReset();
    "hipModuleLoadData(&m,nm)" hipModuleLoadData(&mut p.module, p.text.as_ptr().cast());
    "hipModuleGetFunction(&fn,m,\"x\")" hipModuleGetFunction(&mut p.function, p.module, c"x".as_ptr());
    "hipModuleUnload(m)" hipModuleUnload(p.module);
    "hipDeviceGetDefaultMemPool(&mp,0)" hipDeviceGetDefaultMemPool(&mut p.pool, 0);
    "hipGraphCreate(&g,0)" hipGraphCreate(&mut p.graph, 0);
    "hipGraphDestroy(g)" hipGraphDestroy(p.graph);
    "hipStreamIsCapturing(0,(hipStreamCaptureStatus*)&a)" hipStreamIsCapturing(null_mut(), &mut p.number);
    "hipGetProcAddress(\"hipMalloc\",&pfn,60000,0,nullptr)" hipGetProcAddress(c"hipMalloc".as_ptr(), &mut p.pointer, 60000, 0, null_mut());
    "hipGetProcAddress(\"hipNoSuch\",&pfn,60000,0,&q)" hipGetProcAddress(c"hipNoSuch".as_ptr(), &mut p.pointer, 60000, 0, &mut p.number);
    "hipGetProcAddress(\"hipGetDeviceProperties\",&pfn,60000,0,&q)" hipGetProcAddress(c"hipGetDeviceProperties".as_ptr(), &mut p.pointer, 60000, 0, &mut p.number);
    "hipGetProcAddress(\"hipGetDeviceProperties\",&pfn,50000,0,&q)" hipGetProcAddress(c"hipGetDeviceProperties".as_ptr(), &mut p.pointer, 50000, 0, &mut p.number);
    "hipGetProcAddress(\"hipMemcpy\",&pfn,60000,2,&q)" hipGetProcAddress(c"hipMemcpy".as_ptr(), &mut p.pointer, 60000, 2, &mut p.number);
}

/// Returns what `data/nodevice.tsv` has for a release; `None` for functions that it lacks.
fn expected(release: &str) -> BTreeMap<&'static str, Option<Said>> {
    let mut lines = include_str!("data/nodevice.tsv").lines();
    let columns: Vec<_> = lines.next().expect("a header").split('\t').collect();
    let column = columns.iter().position(|&column| column == release).expect("a release of the table");
    lines
        .map(|line| {
            let cells: Vec<_> = line.split('\t').collect();
            let codes = |cell: &str| -> Said {
                let codes: Vec<_> = cell.split(' ').map(|code| code.parse().expect("a number")).collect();
                codes.try_into().expect("three codes")
            };
            (cells[0], (cells[column] != "-").then(|| codes(cells[column])))
        })
        .collect()
}

#[test]
fn without_a_gpu_the_real_library_says_so() {
    let Some((release, library)) = Rocm::library() else {
        return Rocm::on_every_release("without_a_gpu_the_real_library_says_so", |rocm| &rocm.hip, |_, _| ());
    };
    let hip = Hip::load_from(&library).unwrap_or_else(|why| panic!("{why}"));
    let mut places = Places::new();
    let mut said = BTreeMap::new();
    for (text, function, call) in CALLS {
        let absent = hip.absent().any(|absent| absent == *function);
        // SAFETY: neither takes arguments.
        let codes = || unsafe { [call(&hip, &mut places), hip.hipPeekAtLastError(), hip.hipGetLastError()] };
        said.insert(*text, (!absent).then(codes));
    }
    let expected = expected(&release);
    let differences: Vec<_> = said.iter().filter(|(text, said)| expected.get(*text) != Some(said)).collect();
    assert!(differences.is_empty(), "{release} says otherwise: {differences:#?}");
    assert_eq!(said.len(), expected.len());

    let absent: Vec<_> = hip.absent().collect();
    println!("{release}: {} calls as in the table; absent: {}", said.len(), absent.join(", "));
    // What stands in the brackets is each release's own text.
    let error = hip.device_count().expect_err("no device").to_string();
    assert!(error.starts_with("hipGetDeviceCount: error 100: hipErrorNoDevice ("), "{error}");
    let version = hip.runtime_version().expect("it has a version");
    let (major, minor) = (version / 10_000_000, version / 100_000 % 100);
    assert!(release.starts_with(&format!("{major}.{minor}.")), "{release} says that it is {version}");
}
