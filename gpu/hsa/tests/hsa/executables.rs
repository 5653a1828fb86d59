//! Executables: code objects from memory and from files, variables of the program, symbols, kernels, and what cannot be loaded.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::fs::File;
use std::os::fd::AsRawFd as _;

use crate::library::{
    FROZEN_EXECUTABLE, INCOMPATIBLE_ARGUMENTS, INFO_BREAK, INVALID_AGENT, INVALID_ARGUMENT,
    INVALID_CODE_OBJECT, INVALID_CODE_OBJECT_READER, INVALID_EXECUTABLE, INVALID_EXECUTABLE_SYMBOL,
    INVALID_FILE, INVALID_SYMBOL_NAME, Memory, SUCCESS, Signal, VARIABLE_ALREADY_DEFINED, VARIABLE_UNDEFINED,
    agents, answer, gpu, hsa, number, symbol, written,
};
use crate::queues::{DISPATCH, KERNELS, Kernel, Queue, arguments, image, image_path};

const MEET_GFX90A: &str = "sim/tests/data/meet-gfx90a.co";
const UNDEFINED: &str = "code-object/tests/data/undefined.elf";
const GFX1100: &str = "code-object/tests/data/kernels-gfx1100.elf";
const NONE: *const c_char = std::ptr::null();

/// A code object reader, destroyed when dropped. The bytes that it reads are its own.
struct Reader {
    handle: u64,
    _bytes: Vec<u8>,
}

impl Reader {
    fn new(bytes: Vec<u8>) -> Self {
        let mut handle = 0u64;
        let status = hsa!(hsa_code_object_reader_create_from_memory(bytes.as_ptr() => *const u8, bytes.len() => usize, &raw mut handle => *mut u64) -> u32);
        assert_eq!(status, SUCCESS);
        Self { handle, _bytes: bytes }
    }

    fn of_file(file: i32) -> Result<Self, u32> {
        let mut handle = 0u64;
        let status =
            hsa!(hsa_code_object_reader_create_from_file(file => i32, &raw mut handle => *mut u64) -> u32);
        answer(status, Self { handle, _bytes: Vec::new() })
    }
}

fn destroy_reader(handle: u64) -> u32 {
    hsa!(hsa_code_object_reader_destroy(handle => u64) -> u32)
}

/// An executable, destroyed when dropped.
struct Executable(u64);

impl Executable {
    fn new() -> Self {
        let mut executable = 0u64;
        let status = hsa!(hsa_executable_create_alt(0 => u32, 0 => u32, NONE => *const c_char, &raw mut executable => *mut u64) -> u32);
        assert_eq!(status, SUCCESS);
        Self(executable)
    }

    /// Returns an executable with a code object for an agent, frozen.
    fn ready(agent: u64, name: &str) -> Self {
        let (executable, reader) = (Self::new(), Reader::new(image(name)));
        assert_eq!([executable.load(agent, reader.handle), executable.freeze()], [SUCCESS; 2], "{name}");
        assert_eq!(destroy_reader(reader.handle), SUCCESS);
        executable
    }

    fn load(&self, agent: u64, reader: u64) -> u32 {
        hsa!(hsa_executable_load_agent_code_object(
            self.0 => u64, agent => u64, reader => u64, NONE => *const c_char, std::ptr::null_mut() => *mut u64) -> u32)
    }

    fn freeze(&self) -> u32 {
        hsa!(hsa_executable_freeze(self.0 => u64, NONE => *const c_char) -> u32)
    }

    fn define(&self, name: &str, addr: u64) -> u32 {
        let name = CString::new(name).expect("no zero byte");
        hsa!(hsa_executable_global_variable_define(self.0 => u64, name.as_ptr() => *const c_char, addr => u64) -> u32)
    }

    fn define_of_agent(&self, agent: u64, name: &str, addr: u64) -> u32 {
        let name = CString::new(name).expect("no zero byte");
        hsa!(hsa_executable_agent_global_variable_define(self.0 => u64, agent => u64, name.as_ptr() => *const c_char, addr => u64) -> u32)
    }

    fn symbol(&self, agent: Option<u64>, name: &str) -> Result<u64, u32> {
        let (name, mut symbol) = (CString::new(name).expect("no zero byte"), 0u64);
        let agent = agent.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let status = hsa!(hsa_executable_get_symbol_by_name(
            self.0 => u64, name.as_ptr() => *const c_char, agent => *const u64, &raw mut symbol => *mut u64) -> u32);
        answer(status, symbol)
    }

    fn kernel(&self, agent: u64, name: &str) -> Kernel {
        let symbol = self.symbol(Some(agent), &format!("{name}.kd")).expect(name);
        Kernel {
            object: value(symbol, 22, 8),
            group_bytes: value(symbol, 13, 4) as u32,
            private_bytes: value(symbol, 14, 4) as u32,
        }
    }

    /// Returns the names of the symbols that a function of this kind iterates over.
    fn names(&self) -> Vec<String> {
        unsafe extern "C" fn push(_: u64, symbol: u64, data: *mut c_void) -> u32 {
            // SAFETY: the list below.
            unsafe { &mut *data.cast::<Vec<u64>>() }.push(symbol);
            SUCCESS
        }
        type Each = unsafe extern "C" fn(u64, u64, *mut c_void) -> u32;
        let mut symbols = Vec::<u64>::new();
        let status = hsa!(hsa_executable_iterate_symbols(self.0 => u64, push => Each, (&raw mut symbols).cast() => *mut c_void) -> u32);
        assert_eq!(status, SUCCESS);
        symbols.into_iter().map(name_of).collect()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        assert_eq!(hsa!(hsa_executable_destroy(self.0 => u64) -> u32), SUCCESS);
    }
}

fn info(symbol: u64, attribute: u32) -> Result<Vec<u8>, u32> {
    written(
        |value| hsa!(hsa_executable_symbol_get_info(symbol => u64, attribute => u32, value => *mut c_void) -> u32),
    )
}

/// Returns an attribute of a symbol that is a number.
fn value(symbol: u64, attribute: u32, len: usize) -> u64 {
    number(&info(symbol, attribute).expect("an attribute"), len)
}

fn name_of(symbol: u64) -> String {
    let name = info(symbol, 2).expect("a name");
    assert_eq!(value(symbol, 1, 4), name.len() as u64, "the length that is told");
    String::from_utf8(name).expect("a name in UTF-8")
}

/// Runs a kernel with one work-item.
fn run(agent: u64, kernel: &Kernel, values: &[u64]) {
    let queue = Queue::of(agent, 64, None, std::ptr::null_mut());
    let (kernarg, done) = (arguments(values), Signal::new(1));
    queue.dispatch(DISPATCH, kernel, 1, 1, kernarg.addr, Some(&done));
    done.wait_lt(1);
}

#[test]
fn code_objects_come_from_memory_and_from_files() {
    let agent = gpu();
    let from_memory = Executable::ready(agent, KERNELS);
    let file = File::open(image_path(KERNELS)).expect("a file");
    let from_file = Executable::new();
    let reader = Reader::of_file(file.as_raw_fd()).expect("a reader");
    drop(file);
    assert_eq!(from_file.load(agent, reader.handle), SUCCESS, "the file was read when the reader was made");
    assert_eq!(
        [destroy_reader(reader.handle), destroy_reader(reader.handle)],
        [SUCCESS, INVALID_CODE_OBJECT_READER]
    );
    assert_eq!(from_file.freeze(), SUCCESS);
    assert_eq!(from_memory.names(), from_file.names());
    for executable in [from_memory, from_file] {
        let out = Memory::new(64);
        // Each executable has its own variables: counter is 40 at first, and table[1] is 2.
        for expected in [42, 44] {
            run(agent, &executable.kernel(agent, "globals"), &[out.addr, 1]);
            assert_eq!(out.words()[0], expected);
        }
        let counter = value(executable.symbol(Some(agent), "counter").expect("a variable"), 21, 8);
        // SAFETY: a variable of the executable, which no kernel has now.
        assert_eq!(unsafe { std::ptr::with_exposed_provenance::<u32>(counter as usize).read() }, 44);
    }
}

#[test]
fn readers_of_nothing_are_refused() {
    let from_memory = |bytes: *const u8, len_bytes: usize| {
        let mut reader = 0u64;
        hsa!(hsa_code_object_reader_create_from_memory(bytes => *const u8, len_bytes => usize, &raw mut reader => *mut u64) -> u32)
    };
    let bytes = [0u8; 8];
    assert_eq!(from_memory(std::ptr::null(), 8), INVALID_ARGUMENT);
    assert_eq!(from_memory(bytes.as_ptr(), 0), INVALID_ARGUMENT);
    assert_eq!(from_memory(bytes.as_ptr(), usize::MAX), INVALID_ARGUMENT);
    let null = std::ptr::null_mut();
    assert_eq!(
        hsa!(hsa_code_object_reader_create_from_memory(bytes.as_ptr() => *const u8, 8 => usize, null => *mut u64) -> u32),
        INVALID_ARGUMENT
    );
    let folder = File::open("/").expect("a folder");
    for file in [-1, i32::MAX, folder.as_raw_fd()] {
        assert_eq!(Reader::of_file(file).err(), Some(INVALID_FILE), "{file}");
    }
    assert_eq!(
        hsa!(hsa_code_object_reader_create_from_file(folder.as_raw_fd() => i32, null => *mut u64) -> u32),
        INVALID_ARGUMENT
    );
    assert_eq!([destroy_reader(0), destroy_reader(u64::MAX)], [INVALID_CODE_OBJECT_READER; 2]);
    assert_eq!(Executable::new().load(gpu(), 0), INVALID_CODE_OBJECT_READER);
}

#[test]
fn truncated_and_changed_files_are_no_code_objects() {
    let whole = image(KERNELS);
    let agent = gpu();
    let load = |bytes: Vec<u8>| {
        let (executable, reader) = (Executable::new(), Reader::new(bytes));
        let status = executable.load(agent, reader.handle);
        assert_eq!(destroy_reader(reader.handle), SUCCESS);
        assert_eq!(
            executable.names().is_empty(),
            status != SUCCESS,
            "a file is loaded as a whole or not at all"
        );
        status
    };
    assert_eq!(load(whole.clone()), SUCCESS);
    for len in [1, 3, 16, 63, 64, 100, 1000, 4096, whole.len() / 2] {
        assert_eq!(load(whole[..len].to_vec()), INVALID_CODE_OBJECT, "{len} of {} bytes", whole.len());
    }
    for (at, what) in [(0, "the magic"), (4, "the class"), (5, "the order of bytes"), (18, "the machine")] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        assert_eq!(load(bytes), INVALID_CODE_OBJECT, "{what} is changed");
    }
    assert_eq!(load(b"not a code object at all, but some text".to_vec()), INVALID_CODE_OBJECT);
    // Whatever else is changed is an error or is not, and never ends the process.
    for at in (0..whole.len()).step_by(whole.len() / 97) {
        let mut bytes = whole.clone();
        bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff);
        load(bytes);
    }
}

#[test]
fn code_runs_on_gpus_of_its_kind_only() {
    let agents = agents();
    let (kernels, meet, other) =
        (Reader::new(image(KERNELS)), Reader::new(image(MEET_GFX90A)), Reader::new(image(GFX1100)));
    for (agent, reader, expected) in [
        (agents[1], &kernels, SUCCESS),
        (agents[2], &kernels, SUCCESS),
        (agents[3], &kernels, INCOMPATIBLE_ARGUMENTS),
        (agents[1], &meet, INCOMPATIBLE_ARGUMENTS),
        (agents[3], &meet, SUCCESS),
        (agents[0], &kernels, INCOMPATIBLE_ARGUMENTS),
        (0, &kernels, INVALID_AGENT),
        (99, &meet, INVALID_AGENT),
        (agents[1], &other, INCOMPATIBLE_ARGUMENTS),
    ] {
        assert_eq!(Executable::new().load(agent, reader.handle), expected, "agent {agent}");
    }
    // One executable with the code of two GPUs, and one of a gfx90a that runs.
    let both = Executable::new();
    assert_eq!(
        [both.load(agents[1], kernels.handle), both.load(agents[2], kernels.handle), both.freeze()],
        [SUCCESS; 3]
    );
    for &agent in &agents[1..3] {
        let out = Memory::new(64);
        run(agent, &both.kernel(agent, "globals"), &[out.addr, 0]);
        assert_eq!(out.words()[0], 41, "each GPU has its own variables");
    }
    let old = Executable::ready(agents[3], MEET_GFX90A);
    let out = Memory::new(64);
    run(agents[3], &old.kernel(agents[3], "address"), &[out.addr]);
    assert_ne!(out.words()[..2], [0, 0], "a gfx90a has stored the address of its function");
    for reader in [kernels, meet, other] {
        assert_eq!(destroy_reader(reader.handle), SUCCESS);
    }
}

#[test]
fn an_executable_is_frozen_once() {
    let (agent, memory) = (gpu(), Memory::new(64));
    let (executable, reader) = (Executable::new(), Reader::new(image(KERNELS)));
    let state = |attribute: u32| {
        let bytes = written(
            |value| hsa!(hsa_executable_get_info(executable.0 => u64, attribute => u32, value => *mut c_void) -> u32),
        );
        bytes.map(|bytes| number(&bytes, 4))
    };
    assert_eq!([1, 2, 3].map(state), [Ok(0), Ok(0), Ok(0)], "profile, state, rounding");
    assert_eq!([0, 4, 99].map(state), [Err(INVALID_ARGUMENT); 3]);
    assert_eq!(executable.load(agent, reader.handle), SUCCESS);
    let kernel = executable.symbol(Some(agent), "saxpy.kd").expect("a kernel");
    assert_eq!(value(kernel, 22, 8), 0, "it has no address yet");
    assert_eq!([executable.freeze(), executable.freeze()], [SUCCESS, FROZEN_EXECUTABLE]);
    assert_ne!(value(kernel, 22, 8), 0);
    assert_eq!(state(2), Ok(1));
    assert_eq!(executable.load(agent, reader.handle), FROZEN_EXECUTABLE);
    assert_eq!(executable.define("later", memory.addr), FROZEN_EXECUTABLE);
    assert_eq!(executable.define_of_agent(agent, "later", memory.addr), FROZEN_EXECUTABLE);
    assert_eq!(destroy_reader(reader.handle), SUCCESS);
    for profile in [0u32, 1, 2, 99] {
        for rounding in [0u32, 1, 2, 3] {
            let mut made = 0u64;
            let status = hsa!(hsa_executable_create_alt(profile => u32, rounding => u32, NONE => *const c_char, &raw mut made => *mut u64) -> u32);
            let expected = if profile < 2 && rounding < 3 { SUCCESS } else { INVALID_ARGUMENT };
            assert_eq!(status, expected, "profile {profile}, rounding {rounding}");
            if status == SUCCESS {
                drop(Executable(made));
            }
        }
    }
    for state in [0u32, 1, 2] {
        let mut made = 0u64;
        let status = hsa!(hsa_executable_create(0 => u32, state => u32, NONE => *const c_char, &raw mut made => *mut u64) -> u32);
        assert_eq!(status, if state < 2 { SUCCESS } else { INVALID_ARGUMENT }, "state {state}");
        if status == SUCCESS {
            let made = Executable(made);
            assert_eq!(made.freeze(), if state == 0 { SUCCESS } else { FROZEN_EXECUTABLE });
        }
    }
}

#[test]
fn handles_of_no_executable_are_refused() {
    let gone = Executable::new().0;
    let mut out = 0u64;
    for executable in [0, gone, u64::MAX] {
        let place: *mut c_void = (&raw mut out).cast();
        for (name, status) in [
            ("destroy", hsa!(hsa_executable_destroy(executable => u64) -> u32)),
            ("freeze", hsa!(hsa_executable_freeze(executable => u64, NONE => *const c_char) -> u32)),
            ("validate", hsa!(hsa_executable_validate(executable => u64, place => *mut c_void) -> u32)),
            (
                "validate_alt",
                hsa!(hsa_executable_validate_alt(executable => u64, NONE => *const c_char, place => *mut c_void) -> u32),
            ),
            (
                "get_info",
                hsa!(hsa_executable_get_info(executable => u64, 1 => u32, place => *mut c_void) -> u32),
            ),
            (
                "define",
                hsa!(hsa_executable_global_variable_define(executable => u64, c"x".as_ptr() => *const c_char, place => *mut c_void) -> u32),
            ),
            (
                "get_symbol_by_name",
                hsa!(hsa_executable_get_symbol_by_name(
                    executable => u64, c"x".as_ptr() => *const c_char, std::ptr::null() => *const u64, place => *mut c_void) -> u32),
            ),
        ] {
            assert_eq!(status, INVALID_EXECUTABLE, "hsa_executable_{name} of {executable:#x}");
        }
    }
    for symbol in [0, 1, gone << 32 | 1, u64::MAX] {
        assert_eq!(info(symbol, 0), Err(INVALID_EXECUTABLE_SYMBOL), "{symbol:#x}");
    }
}

#[test]
fn what_code_does_not_define_the_program_does() {
    let agent = gpu();
    for of_agent in [false, true] {
        let (executable, reader, memory) =
            (Executable::new(), Reader::new(image(UNDEFINED)), Memory::new(64));
        assert_eq!(executable.load(agent, reader.handle), SUCCESS);
        let valid = || {
            let mut result = 9u32;
            assert_eq!(
                hsa!(hsa_executable_validate(executable.0 => u64, &raw mut result => *mut u32) -> u32),
                SUCCESS
            );
            result
        };
        assert_eq!((valid(), executable.freeze()), (1, VARIABLE_UNDEFINED));
        assert_eq!(executable.define_of_agent(agents()[2], "elsewhere", memory.addr), SUCCESS);
        assert_eq!((valid(), executable.freeze()), (1, VARIABLE_UNDEFINED), "another agent's");
        let define = |addr| match of_agent {
            true => executable.define_of_agent(agent, "elsewhere", addr),
            false => executable.define("elsewhere", addr),
        };
        assert_eq!([define(memory.addr), define(memory.addr)], [SUCCESS, VARIABLE_ALREADY_DEFINED]);
        assert_eq!((valid(), executable.freeze()), (0, SUCCESS));
        let pointer = executable.symbol(Some(agent), "undefined_pointer").expect("a variable");
        // SAFETY: variables of the executable, which no kernel has.
        let read = |symbol: u64| unsafe {
            std::ptr::with_exposed_provenance::<u64>(value(symbol, 21, 8) as usize).read()
        };
        assert_eq!(read(pointer), memory.addr, "its address was written into the code object");
        assert_eq!(
            read(executable.symbol(Some(agent), "weak_pointer").expect("a variable")),
            0,
            "what is weak may be undefined"
        );
        let defined = executable.symbol(of_agent.then_some(agent), "elsewhere").expect("the program's own");
        assert_eq!((value(defined, 21, 8), value(defined, 0, 4)), (memory.addr, 0));
        assert_eq!(destroy_reader(reader.handle), SUCCESS);
    }
}

#[test]
fn variables_are_defined_once_and_with_a_name() {
    let (agents, memory, executable) = (agents(), Memory::new(64), Executable::new());
    let readonly = |agent: u64, name: *const c_char| hsa!(hsa_executable_readonly_variable_define(executable.0 => u64, agent => u64, name => *const c_char, memory.addr => u64) -> u32);
    assert_eq!(
        [executable.define("one", memory.addr), executable.define("one", memory.addr)],
        [SUCCESS, VARIABLE_ALREADY_DEFINED]
    );
    for &agent in &agents[1..3] {
        let define = || executable.define_of_agent(agent, "two", memory.addr);
        assert_eq!([define(), define()], [SUCCESS, VARIABLE_ALREADY_DEFINED], "each agent has its own");
        assert_eq!(
            [readonly(agent, c"three".as_ptr()), readonly(agent, c"three".as_ptr())],
            [SUCCESS, VARIABLE_ALREADY_DEFINED]
        );
    }
    assert_eq!(
        [executable.define("", 8), executable.define_of_agent(agents[1], "", 8)],
        [INVALID_SYMBOL_NAME; 2]
    );
    assert_eq!(
        [executable.define_of_agent(99, "four", 8), readonly(0, c"four".as_ptr())],
        [INVALID_AGENT; 2]
    );
    assert_eq!(readonly(agents[1], NONE), INVALID_ARGUMENT);
    assert_eq!(
        hsa!(hsa_executable_global_variable_define(executable.0 => u64, NONE => *const c_char, 8 => u64) -> u32),
        INVALID_ARGUMENT
    );
    // Attribute 6 says whether the program or an agent has it, 7 the segment.
    for (agent, name, expected) in
        [(None, "one", [1, 0]), (Some(agents[1]), "two", [0, 0]), (Some(agents[2]), "three", [0, 1])]
    {
        let symbol = executable.symbol(agent, name).expect(name);
        assert_eq!([value(symbol, 6, 4), value(symbol, 7, 4)], expected, "{name}");
        assert_eq!(value(symbol, 20, 8), agent.unwrap_or(0));
    }
    assert_eq!(executable.names(), ["one", "two", "three", "two", "three"]);
}

#[test]
fn symbols_are_found_by_name_and_by_iteration() {
    let agent = gpu();
    let executable = Executable::ready(agent, KERNELS);
    let names = executable.names();
    let kernels = [
        "saxpy",
        "reduce",
        "reverse",
        "count",
        "place",
        "shuffle",
        "meet",
        "rotate",
        "locked",
        "wild",
        "spin",
        "refuse",
        "globals",
        "take",
        "arguments",
        "narrow",
    ];
    for name in kernels
        .map(|name| format!("{name}.kd"))
        .iter()
        .map(String::as_str)
        .chain(["counter", "table", "pointer", "managed"])
    {
        assert_eq!(names.iter().filter(|&known| known == name).count(), 1, "{name}");
        let symbol = executable.symbol(Some(agent), name).expect(name);
        assert_eq!(name_of(symbol), name);
        let (c_name, mut same) = (CString::new(name).expect("no zero byte"), 0u64);
        let status = hsa!(hsa_executable_get_symbol(
            executable.0 => u64, NONE => *const c_char, c_name.as_ptr() => *const c_char, agent => u64, 0 => i32, &raw mut same => *mut u64) -> u32);
        assert_eq!(answer(status, same), Ok(symbol));
        assert_eq!(executable.symbol(None, name), Err(INVALID_SYMBOL_NAME), "{name} is the agent's");
        assert_eq!(executable.symbol(Some(agents()[2]), name), Err(INVALID_SYMBOL_NAME), "another agent's");
    }
    for name in ["", "saxpy", "nothing", "Counter", "counter "] {
        assert_eq!(executable.symbol(Some(agent), name), Err(INVALID_SYMBOL_NAME), "{name:?}");
    }
    let mut symbol = 0u64;
    let by_name = |name: *const c_char, place: *mut u64| hsa!(hsa_executable_get_symbol_by_name(executable.0 => u64, name => *const c_char, &raw const agent => *const u64, place => *mut u64) -> u32);
    assert_eq!(by_name(NONE, &raw mut symbol), INVALID_ARGUMENT);
    assert_eq!(by_name(c"counter".as_ptr(), std::ptr::null_mut()), INVALID_ARGUMENT);
    // The functions that iterate over the agent's symbols and over those of the program.
    unsafe extern "C" fn count(_: u64, _: u64, _: u64, data: *mut c_void) -> u32 {
        // SAFETY: the number below.
        unsafe { *data.cast::<usize>() += 1 };
        SUCCESS
    }
    unsafe extern "C" fn stop(_: u64, _: u64, _: *mut c_void) -> u32 {
        INFO_BREAK
    }
    type EachOfAgent = Option<unsafe extern "C" fn(u64, u64, u64, *mut c_void) -> u32>;
    type Each = Option<unsafe extern "C" fn(u64, u64, *mut c_void) -> u32>;
    for (agent, each, expected, status) in [
        (agent, Some(count as unsafe extern "C" fn(u64, u64, u64, *mut c_void) -> u32), names.len(), SUCCESS),
        (agents()[2], Some(count), 0, SUCCESS),
        (99, Some(count), 0, INVALID_AGENT),
        (agent, None, 0, INVALID_ARGUMENT),
    ] {
        let mut counted = 0usize;
        let found = hsa!(hsa_executable_iterate_agent_symbols(
            executable.0 => u64, agent => u64, each => EachOfAgent, (&raw mut counted).cast() => *mut c_void) -> u32);
        assert_eq!((found, counted), (status, expected), "agent {agent}");
    }
    for (name, with_callback) in
        [("hsa_executable_iterate_symbols", INFO_BREAK), ("hsa_executable_iterate_program_symbols", SUCCESS)]
    {
        let function: unsafe extern "C" fn(u64, Each, *mut c_void) -> u32 = crate::library::symbol(name);
        // SAFETY: the C prototype.
        unsafe {
            assert_eq!(function(executable.0, Some(stop), std::ptr::null_mut()), with_callback, "{name}");
            assert_eq!(function(executable.0, None, std::ptr::null_mut()), INVALID_ARGUMENT, "{name}");
            assert_eq!(function(0, Some(stop), std::ptr::null_mut()), INVALID_EXECUTABLE, "{name}");
        }
    }
}

#[test]
fn kernels_and_variables_answer_their_attributes() {
    let agent = gpu();
    let executable = Executable::ready(agent, KERNELS);
    let common = [(0, 4), (3, 4), (4, 0), (5, 4), (17, 1), (20, 8), (1, 4), (21, 8), (22, 8)];
    let of_kernels = [(11, 4), (12, 4), (13, 4), (14, 4), (15, 1), (18, 4)];
    let of_variables = [(6, 4), (7, 4), (8, 4), (9, 4), (10, 1)];
    for name in executable.names() {
        let symbol = executable.symbol(Some(agent), &name).expect("a symbol");
        let is_kernel = value(symbol, 0, 4) == 1;
        assert_eq!(is_kernel, name.ends_with(".kd"), "{name}");
        let own: &[(u32, usize)] = if is_kernel { &of_kernels } else { &of_variables };
        let mut known: BTreeMap<u32, usize> = common.iter().chain(own).copied().collect();
        known.insert(2, name.len());
        for attribute in (0..40).chain([u32::MAX]) {
            let found = info(symbol, attribute).map(|bytes| bytes.len());
            assert_eq!(
                found,
                known.get(&attribute).copied().ok_or(INVALID_ARGUMENT),
                "{name}, attribute {attribute}"
            );
        }
        assert_eq!((value(symbol, 17, 1), value(symbol, 20, 8)), (1, agent));
    }
    // Bytes of arguments with the hidden ones, LDS and scratch, as `llvm-readelf --notes` has them.
    for (name, kernarg_bytes, group_bytes, has_scratch) in
        [("reduce", 272, 4096, false), ("shuffle", 272, 0, true), ("refuse", 0, 0, false)]
    {
        let symbol = executable.symbol(Some(agent), &format!("{name}.kd")).expect(name);
        assert_eq!((value(symbol, 11, 4), value(symbol, 13, 4)), (kernarg_bytes, group_bytes), "{name}");
        assert_eq!(value(symbol, 14, 4) > 0, has_scratch, "{name}");
        assert!(value(symbol, 12, 4) >= 16, "the alignment of arguments");
    }
    for (name, size, is_const) in [("counter", 4, false), ("table", 16, true), ("pointer", 8, false)] {
        let symbol = executable.symbol(Some(agent), name).expect(name);
        assert_eq!((value(symbol, 9, 4), value(symbol, 10, 1) != 0), (size, is_const), "{name}");
        let (addr, align) = (value(symbol, 21, 8), value(symbol, 8, 4));
        assert!(align.is_power_of_two() && addr.is_multiple_of(align), "{name} at {addr:#x}");
    }
}

#[test]
fn a_kernel_ends_with_its_executable() {
    let agent = gpu();
    let executable = Executable::ready(agent, KERNELS);
    let (kernel, out) = (executable.kernel(agent, "globals"), Memory::new(64));
    run(agent, &kernel, &[out.addr, 3]);
    assert_eq!(out.words()[0], 44);
    let counter = executable.symbol(Some(agent), "counter").expect("a variable");
    drop(executable);
    assert_eq!(info(counter, 0), Err(INVALID_EXECUTABLE_SYMBOL));
    // A packet that names it still is one without a kernel.
    let status = crate::queues::end_of(|queue| queue.dispatch(DISPATCH, &kernel, 1, 1, out.addr, None));
    assert_eq!(status, INVALID_CODE_OBJECT);
}

#[test]
fn code_for_all_agents_together_is_none() {
    let (executable, reader) = (Executable::new(), Reader::new(image(KERNELS)));
    let load = |executable: u64, reader: u64| {
        hsa!(hsa_executable_load_program_code_object(
            executable => u64, reader => u64, NONE => *const c_char, std::ptr::null_mut() => *mut u64) -> u32)
    };
    assert_eq!(load(executable.0, reader.handle), INCOMPATIBLE_ARGUMENTS);
    assert_eq!(load(0, reader.handle), INVALID_EXECUTABLE);
    assert_eq!(load(executable.0, 0), INVALID_CODE_OBJECT_READER);
    assert_eq!(executable.freeze(), SUCCESS, "without any code");
    assert_eq!(load(executable.0, reader.handle), FROZEN_EXECUTABLE);
    assert_eq!(destroy_reader(reader.handle), SUCCESS);
    let nowhere: unsafe extern "C" fn(u32, u32, *const c_char, *mut u64) -> u32 =
        symbol("hsa_executable_create_alt");
    // SAFETY: the C prototype.
    assert_eq!(unsafe { nowhere(0, 0, NONE, std::ptr::null_mut()) }, INVALID_ARGUMENT);
}
