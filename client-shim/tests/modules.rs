//! Tests of modules: what the library knows of a code object by itself, what it asks the worker, and that it reads no more of the
//! program's memory than the code object says.

mod support;

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, fs};

use hipr_client::{CallError, Connection, Extra, WorkerAddress};
use hipr_proto::op::{self, Param};
use hipr_proto::{Features, HipError, Opcode, Text, Wire};
use hipr_worker::{Config, Worker};
use support::hip::*;
use support::{Asked, FakeWorker, Reaction, bytes, easy, is_program, program, run, run_counted};

/// The device of the workers.
const ARCHITECTURE: &str = "gfx942:sramecc+:xnack-";

/// Returns the path of a committed code object or bundle.
fn image(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/code-object/tests/data").join(name)
}

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().expect("a path that is text")).expect("no NUL")
}

/// Loads a module from a file; returns the result and the module.
fn load(path: &Path) -> (i32, Ptr) {
    let mut module = null_mut();
    // SAFETY: C call with good pointers.
    let code = unsafe { hipModuleLoad(&mut module, c_path(path).as_ptr()) };
    (code, module)
}

/// The wrapper around a fat binary that the compiler makes.
#[repr(C)]
struct Wrapper(u32, u32, *const u8, *const u8);

fn function(module: Ptr, name: &CStr) -> (i32, Ptr) {
    let mut function = null_mut();
    // SAFETY: C call with good pointers.
    let code = unsafe { hipModuleGetFunction(&mut function, module, name.as_ptr()) };
    (code, function)
}

/// Launches one thread of a kernel whose arguments are at `params`.
fn launch(function: Ptr, params: *mut Ptr) -> i32 {
    let none = null_mut();
    // SAFETY: C call; the function is good and the parameters are its own.
    unsafe { hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, none, params, null_mut()) }
}

/// Reacts as a worker with one device; handles differ.
fn worker(asked: &Asked) -> Reaction {
    static HANDLES: AtomicU64 = AtomicU64::new(0x1000);
    let handle = HANDLES.fetch_add(0x10, Ordering::Relaxed);
    Reaction::Good(match asked.op {
        Opcode::GET_DEVICE_COUNT => bytes(&op::GetDeviceCountReply { count: 1 }),
        Opcode::GET_DEVICE_PROPERTIES => bytes(&op::GetDevicePropertiesReply {
            gcn_arch_name: Text::new(ARCHITECTURE),
            multi_processor_count: 304,
            ..Wire::ZERO
        }),
        Opcode::MODULE_LOAD_DATA => bytes(&op::ModuleLoadDataReply { module: handle }),
        Opcode::MODULE_GET_FUNCTION => bytes(&op::ModuleGetFunctionReply { function: handle, ..Wire::ZERO }),
        Opcode::MODULE_LOAD_AND_GET_FUNCTION => {
            bytes(&op::ModuleLoadAndGetFunctionReply { module: handle, function: handle + 1, ..Wire::ZERO })
        }
        _ => return easy(asked),
    })
}

/// Returns the operations about modules, kernels and occupancy.
fn about_code(asked: &[Asked]) -> Vec<Opcode> {
    let is_code = |op: &Opcode| matches!(op.0, 0x0500..0x0600 | 0x0710..0x0720 | 0x0744);
    asked.iter().map(|asked| asked.op).filter(is_code).collect()
}

/// The parameters that a hostile worker claims the kernel to have: their number, offset and size. It has one of 8 bytes.
const CLAIMS: [(u32, u32, u32); 7] = [
    (1, 0, 4096),
    (1, 0, u32::MAX),
    (1, u32::MAX, u32::MAX),
    (64, 0, 8),
    (65, 0, 8),
    (u32::MAX, 0, 8),
    (0, 0, 0),
];

const ARGUMENT: u64 = 0x1122_3344_5566_7788;

/// Returns a copy of [`ARGUMENT`] behind which no memory can be read.
fn argument_at_the_end_of_memory() -> Ptr {
    const PAGE: usize = 4096;
    // SAFETY: new memory, whose second page is then taken away.
    unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = libc::mmap(null_mut(), 2 * PAGE, access, kind, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(pages.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
        let argument = pages.byte_add(PAGE - size_of_val(&ARGUMENT));
        argument.cast::<u64>().write(ARGUMENT);
        argument
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_whose_worker_lies_about_parameters() {
    if !is_program() {
        return;
    }
    let mut params = [argument_at_the_end_of_memory()];
    let path = image("kernels-v6.elf");
    for _ in CLAIMS {
        let (loaded, module) = load(&path);
        let (found, globals) = function(module, c"globals");
        assert_eq!((loaded, found, launch(globals, params.as_mut_ptr())), (0, 0, 0));
    }
    // A kernel that the compiler registered.
    let image = fs::read(path).expect("a file");
    for key in &CLAIMS {
        let wrapper = Wrapper(0x4849_5046, 1, image.as_ptr(), std::ptr::null());
        let (key, name, none) = ((&raw const *key).cast(), c"globals".as_ptr(), null_mut());
        let one = Dim3 { x: 1, y: 1, z: 1 };
        // SAFETY: C calls as a compiler emits them.
        unsafe {
            let modules = __hipRegisterFatBinary((&raw const wrapper).cast());
            __hipRegisterFunction(modules, key, name, name, u32::MAX, none, none, none, none, null_mut());
            assert_eq!(hipLaunchKernel(key, one, one, params.as_mut_ptr(), 0, none), 0);
        }
    }
    // SAFETY: C call.
    assert_eq!(unsafe { hipDeviceSynchronize() }, 0);
}

#[test]
fn a_worker_cannot_make_the_library_read_more_than_the_arguments() {
    let answered = AtomicUsize::new(0);
    let lying = FakeWorker::start(move |asked| {
        let claim = || {
            let (num_params, offset, size) = CLAIMS[answered.fetch_add(1, Ordering::Relaxed) % CLAIMS.len()];
            (num_params, [Param { offset, size }; 64])
        };
        match (asked.op, worker(asked)) {
            (Opcode::MODULE_GET_FUNCTION, Reaction::Good(reply)) => {
                let reply = op::ModuleGetFunctionReply::take(&mut reply.as_slice()).expect("a reply");
                let (num_params, params) = claim();
                Reaction::Good(bytes(&op::ModuleGetFunctionReply { num_params, params, ..reply }))
            }
            (Opcode::MODULE_LOAD_AND_GET_FUNCTION, Reaction::Good(reply)) => {
                let reply = op::ModuleLoadAndGetFunctionReply::take(&mut reply.as_slice()).expect("a reply");
                let (num_params, params) = claim();
                Reaction::Good(bytes(&op::ModuleLoadAndGetFunctionReply { num_params, params, ..reply }))
            }
            (_, reaction) => reaction,
        }
    });
    run(program("program_whose_worker_lies_about_parameters", lying.address));
    let asked = lying.until(Opcode::SHUTDOWN);
    let launches: Vec<_> = asked.iter().filter(|asked| asked.op == Opcode::LAUNCH_KERNEL).collect();
    assert_eq!(launches.len(), 2 * CLAIMS.len());
    for launch in launches {
        assert_eq!(launch.as_op::<op::LaunchKernel>().num_args, 1);
        let descriptor = [0, 0, 0, 0, 8, 0, 0, 0];
        assert_eq!(
            launch.tail,
            [&descriptor[..], &ARGUMENT.to_le_bytes()].concat(),
            "one argument of 8 bytes"
        );
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_asks_for_what_is_not_there() {
    if !is_program() {
        return;
    }
    assert_eq!(load(&image("kernels-gfx1100.elf")).0, HipError::NO_BINARY_FOR_GPU.0);
    assert_eq!(load(&image("kernels.hip")).0, HipError::INVALID_IMAGE.0);
    let cut = tempfile::NamedTempFile::new().expect("a file");
    for whole in ["kernels-v6.elf", "one.bundle", "one-v3.ccob", "one-v2-zlib.ccob"] {
        let whole = fs::read(image(whole)).expect("a file");
        fs::write(cut.path(), &whole[..whole.len() / 2]).expect("written");
        assert_eq!(load(cut.path()).0, HipError::INVALID_IMAGE.0);
    }
    let (loaded, module) = load(&image("kernels-v6.elf"));
    assert_eq!(loaded, 0);
    let missing = HipError::NOT_FOUND.0;
    // A variable is no kernel, a kernel no variable, and its descriptor is neither.
    for name in [c"missing", c"table", c"saxpy.kd"] {
        assert_eq!(function(module, name).0, missing, "{name:?}");
    }
    for name in [c"missing", c"saxpy", c"saxpy.kd"] {
        let (mut address, mut size) = (null_mut(), 0);
        // SAFETY: C call with good pointers.
        let found = unsafe { hipModuleGetGlobal(&mut address, &mut size, module, name.as_ptr()) };
        assert_eq!(found, missing, "{name:?}");
    }
}

#[test]
fn what_the_code_object_does_not_have_is_not_asked_for() {
    let fake = FakeWorker::start(worker);
    run(program("program_that_asks_for_what_is_not_there", fake.address));
    assert_eq!(about_code(&fake.until(Opcode::SHUTDOWN)), [Opcode::MODULE_LOAD_DATA]);
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_asks_twice() {
    if !is_program() {
        return;
    }
    let (loaded, module) = load(&image("one-v3.ccob"));
    assert_eq!(loaded, 0);
    let (found, one) = function(module, c"one");
    assert_eq!((found, function(module, c"one")), (0, (0, one)), "the same handle");
    let value = |attribute| {
        let mut value = 0;
        // SAFETY: C call with good pointers.
        assert_eq!(unsafe { hipFuncGetAttribute(&mut value, attribute, one) }, 0);
        value
    };
    let all = || (0..10).map(value).collect::<Vec<_>>();
    assert_eq!(all(), all());
    // SAFETY: C call; a function's handle can be set, too.
    assert_eq!(unsafe { hipFuncSetAttribute(one, 9, 50) }, 0);
    assert_eq!(all(), all());
    let mut params = [argument_at_the_end_of_memory()];
    assert_eq!(launch(one, params.as_mut_ptr()), 0);
    // SAFETY: C call.
    assert_eq!(unsafe { hipModuleUnload(module) }, 0);
    assert_eq!(function(module, c"one").0, HipError::NOT_FOUND.0);
}

#[test]
fn what_was_told_is_not_asked_again() {
    let fake = FakeWorker::start(worker);
    run(program("program_that_asks_twice", fake.address));
    let want = [
        Opcode::MODULE_LOAD_DATA,
        Opcode::MODULE_GET_FUNCTION,
        Opcode::FUNC_GET_ATTRIBUTES,
        Opcode::FUNC_SET_ATTRIBUTE,
        // An attribute was set.
        Opcode::FUNC_GET_ATTRIBUTES,
        Opcode::LAUNCH_KERNEL,
        Opcode::MODULE_UNLOAD,
    ];
    assert_eq!(about_code(&fake.until(Opcode::SHUTDOWN)), want);
}

// ---- the same errors as the worker ------------------------------------------------------------------------------------------

/// Where the program finds the images, and where it writes the results.
const FOLDER: &str = "HIPR_TEST_IMAGES";

const IMAGES: [&str; 14] = [
    "kernels-v4.elf",
    "kernels-v5.elf",
    "kernels-v6.elf",
    "kernels-gfx1100.elf",
    "notes.elf",
    "relocations.elf",
    "undefined.elf",
    "descriptor.elf",
    "unlinked.elf",
    "one-gfx942.elf",
    "one.bundle",
    "one-v2.ccob",
    "one-v3.ccob",
    "one-v2-zlib.ccob",
];

/// Returns every committed image, cut anywhere, and with numbers in it that cause overflows or name what does not exist.
fn images() -> Vec<Vec<u8>> {
    const VALUES: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0xffff_ffff, 1 << 40, u64::MAX];
    const LENGTHS: [usize; 4] = [1, 2, 4, 8];
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut images = vec![Vec::new(), b"#!/bin/sh\n".to_vec(), vec![0x7f; 4096]];
    for name in IMAGES {
        let whole = fs::read(image(name)).expect("a file");
        images.extend([0, 4, 23, 24, 40, 63, 64, 300].map(|len| whole[..len].to_vec()));
        images.extend((1..8).map(|part| whole[..whole.len() * part / 8].to_vec()));
        images.push(whole[..whole.len() - 1].to_vec());
        // Headers and metadata are at the beginning.
        for near in [64, 64, 64, 512, 2048, usize::MAX].repeat(7) {
            let mut damaged = whole.clone();
            let at = draw(whole.len().min(near));
            let (value, len) = (VALUES[draw(VALUES.len())], LENGTHS[draw(LENGTHS.len())]);
            for (place, byte) in damaged[at..].iter_mut().zip(&value.to_le_bytes()[..len]) {
                *place = *byte;
            }
            images.push(damaged);
        }
        images.push(whole);
    }
    images
}

fn file_of(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("{number}.image"))
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_loads_images() {
    if !is_program() {
        return;
    }
    let folder = PathBuf::from(env::var_os(FOLDER).expect("a folder"));
    let mut codes = String::new();
    for number in 0.. {
        let file = file_of(&folder, number);
        if !file.exists() {
            break;
        }
        let (code, module) = load(&file);
        codes.push_str(&format!("{code}\n"));
        if code == 0 {
            // SAFETY: the module was loaded.
            assert_eq!(unsafe { hipModuleUnload(module) }, 0);
        }
    }
    fs::write(folder.join("codes"), codes).expect("written");
}

#[test]
fn images_are_refused_as_the_worker_refuses_them() {
    let worker = emulated();
    let address = worker.local_addr().to_string();
    let connection = Connection::connect(&WorkerAddress::new(&address), Duration::from_secs(20));
    let connection = connection.expect("the worker is there");

    let (images, folder) = (images(), tempfile::tempdir().expect("a folder"));
    let of_worker: Vec<i32> = images
        .iter()
        .map(|image| {
            let request = op::ModuleLoadData { data_size: image.len() as u64 };
            match connection.ask_with(&request, Extra { inline: image, ..Extra::default() }) {
                Ok(op::ModuleLoadDataReply { module }) => {
                    connection.tell(&op::ModuleUnload { module }).expect("sent");
                    0
                }
                Err(CallError::Hip(error)) => error.0,
                Err(CallError::Lost) => panic!("the worker lives"),
            }
        })
        .collect();
    for (number, image) in images.iter().enumerate() {
        fs::write(file_of(folder.path(), number), image).expect("written");
    }
    let mut program = program("program_that_loads_images", &address);
    program.env(FOLDER, folder.path()).env("HIPR_LOG", "error");
    let (_, number) = run_counted(program);
    let codes = fs::read_to_string(folder.path().join("codes")).expect("the program wrote it");
    let of_client: Vec<i32> = codes.lines().map(|code| code.parse().expect("a number")).collect();
    assert_eq!(of_client.len(), images.len());
    for (index, (client, worker)) in of_client.iter().zip(&of_worker).enumerate() {
        assert_eq!(client, worker, "image {index}: what the library says, and what the worker says");
    }
    // Every kind of answer occurs.
    for code in [
        HipError(0),
        HipError::INVALID_IMAGE,
        HipError::NO_BINARY_FOR_GPU,
        HipError::SHARED_OBJECT_SYMBOL_NOT_FOUND,
    ] {
        let count = of_worker.iter().filter(|of_worker| **of_worker == code.0).count();
        assert!(count >= 2, "{count} images with {code:?}");
    }
    // Only what can be loaded, or what another loader may know, is asked for.
    let device: hipr_code_object::Target = ARCHITECTURE.parse().expect("a target");
    let asked = images.iter().filter(|image| match hipr_code_object::loadable(image, &device) {
        Ok(_) => true,
        Err(why) => why.is_matter_of_loader(),
    });
    let set_up = 4;
    assert!(
        number("round_trips") <= (asked.count() + set_up) as u64,
        "{} round trips",
        number("round_trips")
    );
}

// ---- round trips ------------------------------------------------------------------------------------------------------------

#[test]
#[ignore = "a program that other tests run"]
fn program_that_loads_nothing() {
    if !is_program() {
        return;
    }
    assert_eq!(load(&image("kernels-gfx1100.elf")).0, HipError::NO_BINARY_FOR_GPU.0);
    // SAFETY: C call.
    assert_eq!(unsafe { hipDeviceSynchronize() }, 0);
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_launches_for_the_first_time() {
    if !is_program() {
        return;
    }
    assert_eq!(load(&image("kernels-gfx1100.elf")).0, HipError::NO_BINARY_FOR_GPU.0);
    let (loaded, module) = load(&image("kernels-v6.elf"));
    assert_eq!(loaded, 0);
    let kernels = [c"saxpy", c"local_memory", c"nothing"].map(|name| {
        let (found, kernel) = function(module, name);
        assert_eq!(found, 0, "{name:?}");
        kernel
    });
    let [_, local_memory, nothing] = kernels;
    let (mut value, mut grid, mut block) = (0, 0, 0);
    // SAFETY: C calls with good pointers.
    unsafe {
        const SHARED_SIZE_BYTES: i32 = 1;
        assert_eq!((hipFuncGetAttribute(&mut value, SHARED_SIZE_BYTES, local_memory), value), (0, 256));
        assert_eq!((hipFuncGetAttribute(&mut value, 0, local_memory), value), (0, 64));
        let occupancy =
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut value, local_memory, 64, 16_000);
        assert_eq!((occupancy, value), (0, 4));
        let best = hipModuleOccupancyMaxPotentialBlockSize(&mut grid, &mut block, local_memory, 0, 0);
        // The kernel's bound of 64 threads does not count.
        assert_eq!((best, grid, block), (0, 2 * 304, 1024));
    }
    assert_eq!(launch(nothing, null_mut()), 0);
    // SAFETY: C call.
    assert_eq!(unsafe { hipDeviceSynchronize() }, 0);
}

/// Starts a worker with the emulated GPU.
fn emulated() -> hipr_worker::Handle {
    emulated_with(|_| {})
}

fn emulated_with(change: impl FnOnce(&mut Config)) -> hipr_worker::Handle {
    let gpu = hipr_sim::Gpu::new(hipr_sim::Config { memory_bytes: Some(256 << 20), ..Default::default() });
    let device = std::sync::Arc::new(gpu.expect("the emulated GPU"));
    let mut config = Config { listen: "127.0.0.1:0".into(), ..Config::new(device) };
    change(&mut config);
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

#[test]
fn kernels_cost_few_round_trips() {
    let worker = emulated();
    let round_trips = |name, extension| {
        let mut program = program(name, worker.local_addr());
        program.env("HIPR_EXTENSION", extension);
        run_counted(program).1("round_trips")
    };
    let of_modules = |extension| {
        round_trips("program_that_launches_for_the_first_time", extension)
            - round_trips("program_that_loads_nothing", extension)
    };
    // The wait for a launch; without the extension also the module, three kernels, the attributes of one, and two questions about occupancy.
    assert_eq!([of_modules("on"), of_modules("off")], [1, 8]);
}

/// A variable's address and size as the library says.
fn global(module: Ptr, name: &CStr) -> (i32, Ptr, usize) {
    let (mut address, mut size) = (null_mut(), 0);
    // SAFETY: C call with good pointers.
    let found = unsafe { hipModuleGetGlobal(&mut address, &mut size, module, name.as_ptr()) };
    (found, address, size)
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_looks_for_variables() {
    if !is_program() {
        return;
    }
    let (loaded, module) = load(&image("kernels-v6.elf"));
    assert_eq!(loaded, 0);
    for (name, bytes) in [(c"counter", 4), (c"first", 8), (c"scale", 16), (c"table", 1200)] {
        let (found, address, size) = global(module, name);
        assert_eq!((found, size), (0, bytes), "{name:?}");
        assert_eq!(global(module, name), (0, address, size), "{name:?}");
    }
    let (_, scale, _) = global(module, c"scale");
    let mut floats = [0f32; 4];
    // SAFETY: C call with good pointers.
    assert_eq!(unsafe { hipMemcpy(floats.as_mut_ptr().cast(), scale.cast_const(), 16, D2H) }, 0);
    assert_eq!(floats, [1.0, 2.0, 3.0, 4.0]);
    // SAFETY: C call.
    assert_eq!(unsafe { hipModuleUnload(module) }, 0);
    assert_eq!(global(module, c"scale").0, HipError::NOT_FOUND.0);
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_copies_to_variables() {
    if !is_program() {
        return;
    }
    let file = fs::read(image("kernels-v6.elf")).expect("a file");
    // The variables have the addresses of these numbers in the program.
    let shadows = [0u64; 2];
    let [counter, scale] = [0, 1].map(|at| std::ptr::from_ref(&shadows[at]).cast_mut().cast());
    let wrapper = Wrapper(0x4849_5046, 1, file.as_ptr(), std::ptr::null());
    // SAFETY: C calls as the compiler makes them; the image outlives them.
    let binary = unsafe {
        let binary = __hipRegisterFatBinary(std::ptr::from_ref(&wrapper).cast());
        let none = null_mut();
        __hipRegisterVar(binary, counter, none, c"counter".as_ptr().cast_mut(), 0, 4, 0, 0);
        __hipRegisterVar(binary, scale, none, c"scale".as_ptr().cast_mut(), 0, 16, 1, 0);
        binary
    };
    let value = 40.0f32;
    let from = std::ptr::from_ref(&value).cast();
    let (mut address, mut floats, mut count) = (null_mut(), [0f32; 4], 0i32);
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipMemcpyToSymbol(scale.cast_const(), from, 4, 4, H2D), 0);
        assert_eq!(hipMemcpyToSymbolAsync(scale.cast_const(), from, 4, 12, H2D, null_mut()), 0);
        assert_eq!(hipMemcpyToSymbol(counter.cast_const(), from, 4, 0, H2D), 0);
        let invalid = HipError::INVALID_VALUE.0;
        assert_eq!(hipMemcpyToSymbol(scale.cast_const(), from, 4, 13, H2D), invalid);
        assert_eq!(hipMemcpyToSymbol(scale.cast_const(), from, 4, usize::MAX, H2D), invalid);
        let direction = HipError::INVALID_MEMCPY_DIRECTION.0;
        assert_eq!(hipMemcpyToSymbol(scale.cast_const(), from, 4, 0, D2H), direction);
        assert_eq!(hipGetSymbolAddress(&mut address, scale.cast_const()), 0);
        assert_eq!(hipMemcpy(floats.as_mut_ptr().cast(), address.cast_const(), 16, D2H), 0);
        assert_eq!(hipGetSymbolAddress(&mut address, counter.cast_const()), 0);
        assert_eq!(hipMemcpy(std::ptr::from_mut(&mut count).cast(), address.cast_const(), 4, D2H), 0);
        __hipUnregisterFatBinary(binary);
    }
    assert_eq!((floats, count), ([1.0, 40.0, 3.0, 40.0], value.to_bits().cast_signed()));
}

#[test]
fn variables_cost_a_round_trip_for_each_module_at_most() {
    let flights = |features: Option<Features>, name| {
        let worker = emulated_with(|config| config.session.features = features);
        run_counted(program(name, worker.local_addr())).1("round_trips")
    };
    let all = hipr_worker::FEATURES;
    // Programs, and how many variables' addresses they need.
    for (name, variables) in
        [("program_that_looks_for_variables", 4), ("program_that_copies_to_variables", 2)]
    {
        let with = flights(Some(all), name);
        let without = flights(Some(all.without(Features::VARIABLES)), name);
        // None if the worker is faster than the program.
        assert!(
            with + variables - 1 <= without,
            "{name}: {with} round trips, {without} when nothing is told"
        );
        for older in [Some(all.without(Features::NOTIFICATIONS)), Some(Features::VARIABLES), None] {
            flights(older, name);
        }
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_copies_to_a_variable() {
    if !is_program() {
        return;
    }
    let file = fs::read(image("kernels-v6.elf")).expect("a file");
    let wrapper = Wrapper(0x4849_5046, 1, file.as_ptr(), std::ptr::null());
    let shadow = 0u64;
    let scale: Ptr = std::ptr::from_ref(&shadow).cast_mut().cast();
    let bytes = [1u8, 2, 3, 4, 5, 6];
    // SAFETY: C calls as the compiler makes them, with good pointers; the image outlives them.
    unsafe {
        let binary = __hipRegisterFatBinary((&raw const wrapper).cast());
        __hipRegisterVar(binary, scale, null_mut(), c"scale".as_ptr().cast_mut(), 0, 16, 1, 0);
        let (scale, from) = (scale.cast_const(), bytes.as_ptr().cast());
        assert_eq!(hipMemcpyToSymbol(scale, from, 6, 10, H2D), 0);
        assert_eq!(hipMemcpyToSymbolAsync(scale, from, 4, 0, H2D, null_mut()), 0);
        assert_eq!(hipMemcpyToSymbol(scale, from, 6, 11, H2D), HipError::INVALID_VALUE.0);
        assert_eq!(hipDeviceSynchronize(), 0);
        __hipUnregisterFatBinary(binary);
    }
}

#[test]
fn bytes_for_a_variable_do_not_wait_for_its_address() {
    // A worker that has the feature, and never tells anything.
    let features = Features::VARIABLES.union(Features::NOTIFICATIONS).bits();
    let silent = FakeWorker::start(move |asked| match asked.op {
        Opcode::OFFER => Reaction::Good(bytes(&op::OfferReply { features })),
        _ => worker(asked),
    });
    run(program("program_that_copies_to_a_variable", silent.address));
    let asked = silent.until(Opcode::SHUTDOWN);
    let of_module = [Opcode::MODULE_LOAD_DATA, Opcode::MODULE_UNLOAD];
    assert_eq!(about_code(&asked), of_module, "no address is asked for");
    let names: Vec<_> = asked.iter().filter(|asked| asked.op == Opcode::MODULE_VARIABLES).collect();
    let [names] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!(names.tail, b"counter\0first\0scale\0table\0");
    let puts: Vec<_> = asked.iter().filter(|asked| asked.op == Opcode::VARIABLE_PUT).collect();
    let put = |put: &Asked| {
        let request = put.as_op::<op::VariablePut>();
        assert!(!put.wants_reply);
        (request.variable, request.offset, request.waits, put.tail.clone())
    };
    let puts: Vec<_> = puts.into_iter().map(put).collect();
    assert_eq!(puts, [(2, 10, 1, [1, 2, 3, 4, 5, 6].into()), (2, 0, 0, [1, 2, 3, 4].into())]);
}

#[test]
#[ignore = "a program that other tests run"]
fn program_with_more_kernels_than_the_worker_allows() {
    if !is_program() {
        return;
    }
    let (loaded, module) = load(&image("kernels-v6.elf"));
    let (first, nothing) = function(module, c"nothing");
    assert_eq!((loaded, first), (0, 0));
    // SAFETY: C call.
    let synchronize = || unsafe { hipDeviceSynchronize() };
    assert_eq!((launch(nothing, null_mut()), synchronize()), (0, 0));
    // There is such a kernel. That the worker has no room for its handle comes with a later answer, once.
    let (found, globals) = function(module, c"globals");
    let mut params = [argument_at_the_end_of_memory()];
    assert_eq!((found, launch(globals, params.as_mut_ptr())), (0, 0));
    assert_eq!((synchronize(), synchronize()), (HipError::OUT_OF_MEMORY.0, 0));
    assert_eq!((launch(nothing, null_mut()), synchronize()), (0, 0));
}

#[test]
fn what_only_the_worker_can_refuse_is_told_once_by_a_later_call() {
    let worker = emulated_with(|config| config.session.handles_max = 2);
    run(program("program_with_more_kernels_than_the_worker_allows", worker.local_addr()));
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_loads_a_huge_module() {
    if !is_program() {
        return;
    }
    let mut huge = fs::read(image("kernels-v6.elf")).expect("a file");
    // The segment of the variables gets 1 GiB of memory.
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as usize;
    let (table, count) = (number(&huge[32..40]), usize::from(huge[56]));
    let is_writable = |header: &&[u8]| header[..8] == [1, 0, 0, 0, 6, 0, 0, 0];
    let headers: Vec<_> = huge[table..table + 56 * count].chunks(56).collect();
    let writable = headers.iter().rposition(is_writable).expect("a segment of variables");
    let at = table + 56 * writable + 40;
    huge[at..at + 8].copy_from_slice(&(1u64 << 30).to_le_bytes());
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), huge).expect("written");
    assert_eq!(load(file.path()).0, HipError::OUT_OF_MEMORY.0, "at once");
    // SAFETY: C call.
    assert_eq!(unsafe { hipDeviceSynchronize() }, 0);
}

#[test]
fn that_there_is_no_memory_for_a_large_module_is_told_at_once() {
    run(program("program_that_loads_a_huge_module", emulated().local_addr()));
}
