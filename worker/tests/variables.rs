//! Tests that a client which asks where the variables of a module are is told, ahead of every later reply, and can copy to a variable
//! without knowing that.

mod common;

use common::{Peer, scripted};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Op, Wire};
use hipr_worker::Handle;
use hipr_worker::device::script::{Live, Script};

const NEEDED: Features = Features::VARIABLES.union(Features::NOTIFICATIONS);
const INVALID: HipResult<()> = Err(HipError::INVALID_VALUE);

fn session() -> (Handle, Script, Peer) {
    let (worker, script) = scripted(|_| {});
    script.define_global("small", 16);
    script.define_global("large", 4096);
    let (peer, accepted) = Peer::offering(worker.local_addr(), NEEDED);
    assert_eq!(accepted, NEEDED);
    (worker, script, peer)
}

/// Returns a request for variables, and its tail.
fn request(module: u64, number: u64, names: &[&str]) -> (ModuleVariables, Vec<u8>) {
    let mut tail = Vec::new();
    let count = put_variable_names(names.iter().copied(), &mut tail) as u32;
    (ModuleVariables { module, number, count, names_length: tail.len() as u32 }, tail)
}

/// Asks for variables without an answer.
fn ask(peer: &mut Peer, module: u64, number: u64, names: &[&str]) {
    let (request, tail) = request(module, number, names);
    peer.forget(&request, &tail);
}

/// Returns what was told so far, by the numbers of the requests.
fn told(peer: &mut Peer) -> Vec<(u64, Vec<Variable>)> {
    let told =
        peer.heard.drain(..).filter(|(op, ..)| *op == VariablesTold::OPCODE).map(|(_, fixed, list)| {
            let told = VariablesTold::take(&mut fixed.as_slice()).expect("a whole notification");
            let mut rest = list.as_slice();
            let variables = (0..told.count).map(|_| Variable::take(&mut rest).expect("as many as it says"));
            let variables = variables.collect();
            assert!(rest.is_empty());
            (told.number, variables)
        });
    told.collect()
}

fn put(module: u64, variable: u32, offset: u64, length: u64, stream: u64) -> VariablePut {
    VariablePut { module, variable, waits: 0, offset, length, stream }
}

#[test]
fn variables_are_told_ahead_of_the_next_reply() {
    let (_worker, script, mut peer) = session();
    let module = peer.module_load();
    ask(&mut peer, module, 7, &["large", "missing", "small"]);
    ask(&mut peer, module, 8, &["small"]);
    assert_eq!(peer.call(&Ping {}), Ok(()));
    let told = told(&mut peer);
    let [(7, first), (8, second)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(first.iter().map(|variable| variable.size).collect::<Vec<_>>(), [4096, 0, 16]);
    assert_eq!(first[1], Variable::ZERO, "it is not there");
    assert_eq!(second[0].size, 16);
    // They are as good as those that were asked for one by one.
    peer.h2d(first[0].address + 1, &[9; 10], 0);
    assert_eq!(peer.d2h(first[0].address, 12, 0).unwrap()[..2], [0, 9]);
    peer.call(&ModuleUnload { module }).unwrap();
    assert_eq!(peer.d2h(first[0].address, 1, 0).map(drop), INVALID);
    drop(peer);
    common::until("everything is released", || script.live() == Live::default());
}

#[test]
fn bytes_get_to_a_variable_by_its_number_in_the_order_of_the_stream() {
    let (_worker, script, mut peer) = session();
    let (module, stream) = (peer.module_load(), peer.stream_create());
    ask(&mut peer, module, 1, &["small", "large"]);
    assert_eq!(peer.call(&Ping {}), Ok(()));
    let large = told(&mut peer)[0].1[1];
    let dst = peer.malloc(64);
    script.hold(0, stream);
    peer.forget(&MemsetAsync(Memset { dst, value: 7, size: 64, stream }), &[]);
    peer.forget(&put(module, 1, 8, 4, stream), &[1, 2, 3, 4]);
    peer.forget(&put(module, 1, 10, 4, stream), &[5, 6, 7, 8]);
    assert_eq!(peer.call(&StreamQuery { stream }), Err(HipError::NOT_READY));
    script.release(0, stream);
    assert_eq!(peer.d2h(large.address + 7, 8, stream).unwrap(), [0, 1, 2, 5, 6, 7, 8, 0]);
    let waits = VariablePut { waits: 1, ..put(module, 1, 0, 4, stream) };
    peer.forget(&waits, &[4, 3, 2, 1]);
    assert_eq!(peer.d2h(large.address, 4, 0).unwrap(), [4, 3, 2, 1], "on another stream");
}

#[test]
fn what_is_no_part_of_a_variable_is_refused() {
    let (_worker, _script, mut peer) = session();
    let module = peer.module_load();
    let other = peer.module_load();
    ask(&mut peer, module, 1, &["small", "missing"]);
    let not_found = Err(HipError::NOT_FOUND);
    assert_eq!(peer.call_with(&put(module, 1, 0, 1, 0), &[1]), not_found, "as if its address were asked for");
    for (variable, offset, length) in
        [(0, 0, 17), (0, 16, 1), (0, u64::MAX, 1), (0, 17, 0), (2, 0, 1), (u32::MAX, 0, 1)]
    {
        let put = put(module, variable, offset, length, 0);
        let bytes = vec![1; length as usize];
        assert_eq!(peer.call_with(&put, &bytes), INVALID, "{put:?}");
    }
    assert_eq!(peer.call_with(&put(other, 0, 0, 1, 0), &[1]), INVALID, "nobody has asked for its variables");
    let handle = Err(HipError::INVALID_HANDLE);
    assert_eq!(peer.call_with(&put(0x1234, 0, 0, 1, 0), &[1]), handle);
    assert_eq!(peer.call_with(&put(module, 0, 0, 1, 0x1234), &[1]), handle);
    assert_eq!(peer.call_with(&put(module, 0, 15, 1, 0), &[1]), Ok(()));
    // The next request takes the place of the first.
    ask(&mut peer, module, 2, &["missing", "small"]);
    assert_eq!(peer.call_with(&put(module, 0, 0, 1, 0), &[1]), not_found);
    assert_eq!(peer.call_with(&put(module, 1, 0, 1, 0), &[1]), Ok(()));
    peer.call(&ModuleUnload { module }).unwrap();
    assert_eq!(peer.call_with(&put(module, 1, 0, 1, 0), &[1]), handle);
}

#[test]
fn names_that_are_none_are_refused_and_nothing_is_told() {
    let (_worker, _script, mut peer) = session();
    let module = peer.module_load();
    let (good, tail) = request(module, 1, &["small"]);
    let cases = [
        (ModuleVariables { count: 2, ..good }, tail.clone()),
        (ModuleVariables { names_length: 5, ..good }, b"small".to_vec()),
        (ModuleVariables { count: u32::MAX, ..good }, tail.clone()),
        (
            ModuleVariables { count: VARIABLES_MAX as u32 + 1, names_length: 2 * 65, ..good },
            b"x\0".repeat(VARIABLES_MAX + 1),
        ),
    ];
    for (request, tail) in cases {
        assert_eq!(peer.call_with(&request, &tail), INVALID, "{request:?}");
    }
    let nobody = ModuleVariables { module: 0x1234, ..good };
    assert_eq!(peer.call_with(&nobody, &tail), Err(HipError::INVALID_HANDLE));
    assert_eq!(told(&mut peer), []);
    assert_eq!(peer.call_with(&good, &tail), Ok(()));
    assert_eq!(told(&mut peer).len(), 1);
}

#[test]
fn variables_that_are_told_leave_all_handles_for_what_is_asked_for() {
    let (worker, script) = scripted(|config| config.session.handles_max = 2);
    script.define_global("small", 16);
    script.define_global("large", 4096);
    script.define_kernel("k", 8, &[(0, 8)]);
    let mut peer = Peer::offering(worker.local_addr(), NEEDED).0;
    let module = peer.module_load();
    ask(&mut peer, module, 1, &["small", "large"]);
    peer.function(module, "k");
    assert_eq!(told(&mut peer)[0].1.iter().map(|variable| variable.size).collect::<Vec<_>>(), [16, 4096]);
    assert_eq!(peer.call(&Malloc { size: 16, flags: 0 }).map(drop), Err(HipError::OUT_OF_MEMORY));
    peer.call(&ModuleUnload { module }).unwrap();
    for _ in 0..2 {
        peer.malloc(16);
    }
    assert_eq!(peer.call(&Malloc { size: 16, flags: 0 }).map(drop), Err(HipError::OUT_OF_MEMORY));
}

#[test]
fn without_what_it_needs_it_is_refused() {
    let (worker, _) = scripted(|_| {});
    for features in [Features::VARIABLES, Features::NOTIFICATIONS] {
        let (mut peer, accepted) = Peer::offering(worker.local_addr(), features);
        assert_eq!(accepted, features.without(Features::VARIABLES));
        let module = peer.module_load();
        let (request, tail) = request(module, 1, &["small"]);
        let not_supported = Err(HipError::NOT_SUPPORTED);
        assert_eq!(peer.call_with(&request, &tail), not_supported);
        assert_eq!(peer.call_with(&put(module, 0, 0, 1, 0), &[1]), not_supported);
        assert_eq!(told(&mut peer), []);
    }
}

#[test]
fn the_emulated_gpu_tells_what_it_says_when_it_is_asked() {
    let worker = common::worker("sim");
    let mut peer = Peer::offering(worker.local_addr(), NEEDED).0;
    let image = include_bytes!("../../gpu/code-object/tests/data/kernels-v6.elf");
    let load = ModuleLoadData { data_size: image.len() as u64 };
    let module = peer.call_with(&load, image).expect("a module").module;
    let names = ["counter", "first", "saxpy", "scale", "table"];
    ask(&mut peer, module, 1, &names);
    let asked: Vec<Variable> = names
        .map(|name| {
            let mut tail = Vec::new();
            put_name(name, &mut tail).unwrap();
            let found = peer.call_with(&ModuleGetGlobal { module }, &tail);
            found.map_or(Variable::ZERO, |found| Variable { address: found.device_ptr, size: found.size })
        })
        .into();
    assert_eq!(asked.iter().map(|variable| variable.size).collect::<Vec<_>>(), [4, 8, 0, 16, 1200]);
    assert_eq!(told(&mut peer), [(1, asked.clone())]);
    peer.forget(&put(module, 3, 4, 4, 0), &5.0f32.to_le_bytes());
    let floats = peer.d2h(asked[3].address, 16, 0).unwrap();
    let floats: Vec<_> =
        floats.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(floats, [1.0, 5.0, 3.0, 4.0]);
}
