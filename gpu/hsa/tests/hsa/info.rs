//! What the runtime says of itself, of agents, instruction sets, caches, regions, pools and extensions: each attribute of each list with the
//! length that the standard gives it, and an error for every other number.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};

use crate::library::{
    GPU_BYTES, GPUS, INFO_BREAK, INVALID_AGENT, INVALID_ARGUMENT, INVALID_CACHE, INVALID_INDEX, INVALID_ISA,
    INVALID_ISA_NAME, INVALID_MEMORY_POOL, INVALID_REGION, INVALID_WAVEFRONT, SUCCESS, agents, answer, gpu,
    handles, hsa, iteration_ends, number, pools, symbol, written,
};

/// An attribute's number and the length of its value in bytes.
type Attributes = [(u32, usize)];

/// Checks that exactly these attributes are answered, each with its length, and that no place for the value is an error.
fn check(name: &str, of: u64, attributes: &Attributes) {
    let function: unsafe extern "C" fn(u64, u32, *mut c_void) -> u32 = symbol(name);
    // SAFETY: the C prototype of all functions of this kind, and room for every attribute.
    let ask = |attribute, value| unsafe { function(of, attribute, value) };
    let known: BTreeMap<u32, usize> = attributes.iter().copied().collect();
    assert_eq!(known.len(), attributes.len(), "each attribute is listed once");
    let around = known.keys().flat_map(|&attribute| attribute.saturating_sub(2)..=attribute + 2);
    let numbers = around.chain(0..64).chain([0x200, 0x3000, 0xa000, 0xa200, i32::MAX as u32, u32::MAX]);
    for attribute in numbers {
        let found = written(|value| ask(attribute, value)).map(|bytes| bytes.len());
        let expected = known.get(&attribute).copied().ok_or(INVALID_ARGUMENT);
        assert_eq!(found, expected, "{name} of {of:#x}, attribute {attribute:#x}");
        assert_eq!(
            ask(attribute, std::ptr::null_mut()),
            INVALID_ARGUMENT,
            "{name}, attribute {attribute:#x}, nowhere"
        );
    }
}

/// Returns an attribute that is a number.
fn ask(name: &str, of: u64, attribute: u32, len: usize) -> u64 {
    let function: unsafe extern "C" fn(u64, u32, *mut c_void) -> u32 = symbol(name);
    // SAFETY: as above.
    let bytes = written(|value| unsafe { function(of, attribute, value) });
    number(&bytes.expect("an attribute"), len)
}

/// Returns an attribute that is a text.
fn text(name: &str, of: u64, attribute: u32) -> String {
    let function: unsafe extern "C" fn(u64, u32, *mut c_void) -> u32 = symbol(name);
    // SAFETY: as above.
    let bytes = written(|value| unsafe { function(of, attribute, value) }).expect("an attribute");
    let text = CStr::from_bytes_until_nul(&bytes).expect("a text ends with a zero byte");
    text.to_str().expect("a text in UTF-8").to_owned()
}

/// Attributes of `hsa_agent_info_t` and `hsa_amd_agent_info_t` that every agent has.
const AGENT: &Attributes = &[
    (0, 64),
    (1, 64),
    (2, 4),
    (3, 4),
    (4, 4),
    (5, 4),
    (6, 4),
    (7, 6),
    (8, 4),
    (9, 12),
    (10, 4),
    (11, 4),
    (12, 4),
    (13, 4),
    (14, 4),
    (15, 4),
    (16, 4),
    (17, 4),
    (18, 16),
    (19, 8),
    (20, 128),
    (21, 2),
    (22, 2),
    (23, 4),
    (24, 1),
    (0xa000, 4),
    (0xa001, 4),
    (0xa002, 4),
    (0xa003, 4),
    (0xa004, 4),
    (0xa005, 4),
    (0xa006, 4),
    (0xa007, 4),
    (0xa008, 4),
    (0xa009, 64),
    (0xa00a, 4),
    (0xa00b, 4),
    (0xa00c, 4),
    (0xa00d, 4),
    (0xa00e, 16),
    (0xa00f, 4),
    (0xa010, 1),
    (0xa011, 21),
    (0xa012, 4),
    (0xa013, 1),
    (0xa014, 4),
    (0xa015, 8),
    (0xa016, 8),
    (0xa107, 4),
    (0xa108, 4),
    (0xa109, 4),
    (0xa10a, 4),
    (0xa10b, 4),
    (0xa110, 4),
    (0xa111, 4),
    (0xa112, 4),
    (0xa113, 8),
    (0xa114, 8),
    (0xa115, 8),
    (0xa116, 8),
    (0xa117, 8),
    (0xa118, 32),
];

/// Attributes of `hsa_ext_agent_info_t`, which GPUs have.
const IMAGES: &Attributes = &[
    (0x3000, 8),
    (0x3001, 8),
    (0x3002, 8),
    (0x3003, 16),
    (0x3004, 16),
    (0x3005, 16),
    (0x3006, 16),
    (0x3007, 24),
    (0x3008, 8),
    (0x3009, 4),
    (0x300a, 4),
    (0x300b, 4),
    (0x300c, 8),
];

#[test]
fn agents_answer_each_attribute_with_its_length() {
    let agents = agents();
    check("hsa_agent_get_info", agents[0], AGENT);
    for &agent in &agents[1..] {
        check("hsa_agent_get_info", agent, &[AGENT, IMAGES].concat());
    }
    for agent in [0, agents.len() as u64 + 1, u64::MAX] {
        let mut value = [0u64; 64];
        let status =
            hsa!(hsa_agent_get_info(agent => u64, 0 => u32, value.as_mut_ptr().cast() => *mut c_void) -> u32);
        assert_eq!(status, INVALID_AGENT, "{agent}");
    }
}

#[test]
fn agents_are_what_was_asked_for() {
    let agents = agents();
    assert_eq!(agents.len(), 1 + GPUS.len());
    let number = |agent, attribute, len| ask("hsa_agent_get_info", agent, attribute, len);
    assert_eq!(number(agents[0], 17, 4), 0, "the host is a CPU");
    for (index, (&agent, name)) in agents[1..].iter().zip(GPUS).enumerate() {
        assert_eq!(text("hsa_agent_get_info", agent, 0), name);
        assert_eq!(number(agent, 17, 4), 1, "a GPU");
        assert_eq!(number(agent, 2, 4), 1, "it takes kernel dispatches");
        assert_eq!(number(agent, 6, 4), 64, "lanes of a wave");
        assert_eq!(number(agent, 8, 4), 1024, "work-items of a workgroup");
        assert_eq!(number(agent, 16, 4), index as u64 + 1, "its node");
        let sizes = [number(agent, 13, 4), number(agent, 14, 4)];
        assert!(sizes.iter().all(|size| size.is_power_of_two()) && sizes[0] < sizes[1], "{sizes:?}");
        assert_eq!(handles("hsa_agent_iterate_isas", agent), [number(agent, 19, 8)]);
        assert_eq!(number(agent, 0xa113, 8), agents[0], "the nearest host");
    }
    let unique = |attribute| {
        let values: Vec<_> = agents[1..].iter().map(|&agent| number(agent, attribute, 4)).collect();
        (0..values.len()).all(|index| !values[..index].contains(&values[index]))
    };
    assert!(
        [16, 0xa004, 0xa006, 0xa112].into_iter().all(unique),
        "nodes, places on the bus and numbers of the driver"
    );
    let end = iteration_ends_of_agents();
    assert_eq!(end, [INFO_BREAK, INVALID_ARGUMENT]);
}

/// Returns the status of `hsa_iterate_agents` whose callback ends it at once, and without one.
fn iteration_ends_of_agents() -> [u32; 2] {
    unsafe extern "C" fn stop(_: u64, _: *mut c_void) -> u32 {
        INFO_BREAK
    }
    type Each = Option<unsafe extern "C" fn(u64, *mut c_void) -> u32>;
    [Some(stop as unsafe extern "C" fn(u64, *mut c_void) -> u32), None]
        .map(|each| hsa!(hsa_iterate_agents(each => Each, std::ptr::null_mut() => *mut c_void) -> u32))
}

#[test]
fn what_an_agent_has_is_iterated_until_the_callback_ends_it() {
    for name in [
        "hsa_agent_iterate_isas",
        "hsa_agent_iterate_caches",
        "hsa_agent_iterate_regions",
        "hsa_amd_agent_iterate_memory_pools",
    ] {
        for &agent in &agents()[1..] {
            assert_eq!(iteration_ends(name, agent), [INFO_BREAK, INVALID_ARGUMENT], "{name}");
            let list = handles(name, agent);
            assert!(!list.is_empty() && !list.contains(&0), "{name}: {list:?}");
        }
        let function: unsafe extern "C" fn(u64, *const c_void, *mut c_void) -> u32 = symbol(name);
        for agent in [0, 99, u64::MAX] {
            // SAFETY: no callback is called for no agent.
            let status = unsafe { function(agent, std::ptr::null(), std::ptr::null_mut()) };
            assert_eq!(status, INVALID_AGENT, "{name} of {agent}");
        }
    }
    let isa = handles("hsa_agent_iterate_isas", gpu())[0];
    assert_eq!(iteration_ends("hsa_isa_iterate_wavefronts", isa), [INFO_BREAK, INVALID_ARGUMENT]);
}

#[test]
fn instruction_sets_answer_each_attribute() {
    let attributes = |name_bytes| {
        [
            (0, 4),
            (1, name_bytes),
            (2, 4),
            (3, 4),
            (4, 4),
            (5, 2),
            (6, 2),
            (7, 3),
            (8, 3),
            (9, 1),
            (12, 6),
            (13, 4),
            (14, 12),
            (16, 8),
            (17, 4),
        ]
    };
    for (&agent, processor) in agents()[1..].iter().zip(GPUS) {
        let isa = handles("hsa_agent_iterate_isas", agent)[0];
        let name_bytes = ask("hsa_isa_get_info_alt", isa, 0, 4) as usize;
        check("hsa_isa_get_info_alt", isa, &attributes(name_bytes));
        let name = text("hsa_isa_get_info_alt", isa, 1);
        assert_eq!(name.len() + 1, name_bytes);
        assert!(name.starts_with(&format!("amdgcn-amd-amdhsa--{processor}")), "{name}");
        let info = |attribute: u32, index: u32| {
            written(
                |value| hsa!(hsa_isa_get_info(isa => u64, attribute => u32, index => u32, value => *mut c_void) -> u32),
            )
        };
        for (attribute, len) in attributes(name_bytes) {
            assert_eq!(info(attribute, 0).map(|bytes| bytes.len()), Ok(len), "attribute {attribute}");
        }
        // Only attributes of call conventions have an index.
        for attribute in [3, 4] {
            assert_eq!(info(attribute, 1), Err(INVALID_INDEX), "attribute {attribute}");
        }
        assert_eq!(info(99, 0), Err(INVALID_ARGUMENT));
        let [wavefront] = handles("hsa_isa_iterate_wavefronts", isa)[..] else { panic!("one size of waves") };
        check("hsa_wavefront_get_info", wavefront, &[(0, 4)]);
        assert_eq!(ask("hsa_wavefront_get_info", wavefront, 0, 4), 64);
    }
    for isa in [0, 1, 99, u64::MAX] {
        let mut value = [0u64; 64];
        let place: *mut c_void = value.as_mut_ptr().cast();
        assert_eq!(
            hsa!(hsa_isa_get_info_alt(isa => u64, 1 => u32, place => *mut c_void) -> u32),
            INVALID_ISA,
            "{isa}"
        );
        assert_eq!(
            hsa!(hsa_isa_get_info(isa => u64, 1 => u32, 0 => u32, place => *mut c_void) -> u32),
            INVALID_ISA,
            "{isa}"
        );
    }
    let mut value = 0u32;
    for wavefront in [0, 1, 32, u64::MAX] {
        let status = hsa!(hsa_wavefront_get_info(wavefront => u64, 0 => u32, (&raw mut value).cast() => *mut c_void) -> u32);
        assert_eq!(status, INVALID_WAVEFRONT, "{wavefront}");
    }
}

#[test]
fn instruction_sets_have_names_rounding_and_exceptions() {
    let from_name = |name: &str| {
        let (name, mut isa) = (CString::new(name).expect("no zero byte"), 0u64);
        let status = hsa!(hsa_isa_from_name(name.as_ptr() => *const c_char, &raw mut isa => *mut u64) -> u32);
        answer(status, isa)
    };
    let isas: Vec<u64> =
        agents()[1..].iter().map(|&agent| handles("hsa_agent_iterate_isas", agent)[0]).collect();
    for (&isa, processor) in isas.iter().zip(GPUS) {
        let name = text("hsa_isa_get_info_alt", isa, 1);
        for name in [name.as_str(), &format!("amdgcn-amd-amdhsa--{processor}")] {
            let found = from_name(name).expect(name);
            assert_eq!(text("hsa_isa_get_info_alt", found, 1), text("hsa_isa_get_info_alt", isa, 1));
        }
    }
    for name in [
        "",
        "gfx942",
        "amdgcn-amd-amdhsa--",
        "amdgcn-amd-amdhsa--gfx1100",
        "amdgcn-amd-amdhsa--gfx942:xnack+:xnack+",
    ] {
        assert_eq!(from_name(name), Err(INVALID_ISA_NAME), "{name}");
    }
    let mut isa = 0u64;
    let null = std::ptr::null();
    assert_eq!(
        hsa!(hsa_isa_from_name(null => *const c_char, &raw mut isa => *mut u64) -> u32),
        INVALID_ARGUMENT
    );
    let name = c"amdgcn-amd-amdhsa--gfx942".as_ptr();
    assert_eq!(
        hsa!(hsa_isa_from_name(name => *const c_char, std::ptr::null_mut() => *mut u64) -> u32),
        INVALID_ARGUMENT
    );

    for (one, other) in (0..isas.len()).flat_map(|one| (0..isas.len()).map(move |other| (one, other))) {
        let mut fits = 7u8;
        let status =
            hsa!(hsa_isa_compatible(isas[one] => u64, isas[other] => u64, &raw mut fits => *mut u8) -> u32);
        assert_eq!(answer(status, fits != 0), Ok(GPUS[one] == GPUS[other]), "{one} and {other}");
    }
    let mut fits = 0u8;
    assert_eq!(
        hsa!(hsa_isa_compatible(0 => u64, isas[0] => u64, &raw mut fits => *mut u8) -> u32),
        INVALID_ISA
    );
    assert_eq!(
        hsa!(hsa_isa_compatible(isas[0] => u64, 99 => u64, &raw mut fits => *mut u8) -> u32),
        INVALID_ISA
    );
    assert_eq!(
        hsa!(hsa_isa_compatible(isas[0] => u64, isas[0] => u64, std::ptr::null_mut() => *mut u8) -> u32),
        INVALID_ARGUMENT
    );

    for (fp_type, flush) in (0..6u32).flat_map(|fp_type| (0..4u32).map(move |flush| (fp_type, flush))) {
        let mut method = 9u32;
        let status = hsa!(hsa_isa_get_round_method(isas[0] => u64, fp_type => u32, flush => u32, &raw mut method => *mut u32) -> u32);
        let expected = if [1, 2, 4].contains(&fp_type) && [1, 2].contains(&flush) {
            Ok(1)
        } else {
            Err(INVALID_ARGUMENT)
        };
        assert_eq!(answer(status, method), expected, "type {fp_type}, flush {flush}");
    }
    for profile in 0..4u32 {
        let mut mask = 9u16;
        let expected = if profile < 2 { Ok(0) } else { Err(INVALID_ARGUMENT) };
        let status = hsa!(hsa_isa_get_exception_policies(isas[0] => u64, profile => u32, &raw mut mask => *mut u16) -> u32);
        assert_eq!(answer(status, mask), expected, "of an instruction set, profile {profile}");
        mask = 9;
        let status = hsa!(hsa_agent_get_exception_policies(gpu() => u64, profile => u32, &raw mut mask => *mut u16) -> u32);
        assert_eq!(answer(status, mask), expected, "of an agent, profile {profile}");
    }
}

#[test]
fn the_system_answers_each_attribute() {
    let attributes = [
        (0, 2),
        (1, 2),
        (2, 8),
        (3, 8),
        (4, 8),
        (5, 4),
        (6, 4),
        (7, 128),
        (0x200, 8),
        (0x201, 1),
        (0x202, 1),
        (0x203, 1),
        (0x204, 1),
        (0x205, 1),
        (0x206, 1),
        (0x207, 2),
        (0x208, 2),
    ];
    let info = |attribute: u32| {
        written(|value| hsa!(hsa_system_get_info(attribute => u32, value => *mut c_void) -> u32))
    };
    for attribute in (0..32).chain(0x1f0..0x220).chain([0xa000, u32::MAX]) {
        let expected = attributes.iter().find(|&&(known, _)| known == attribute).map(|&(_, len)| len);
        // The clock goes on between two answers.
        let found = info_len(attribute, &info);
        assert_eq!(found, expected.ok_or(INVALID_ARGUMENT), "attribute {attribute:#x}");
        let nowhere = hsa!(hsa_system_get_info(attribute => u32, std::ptr::null_mut() => *mut c_void) -> u32);
        assert_eq!(nowhere, INVALID_ARGUMENT, "attribute {attribute:#x}");
    }
    let clock = || {
        let mut now = 0u64;
        assert_eq!(hsa!(hsa_system_get_info(2 => u32, (&raw mut now).cast() => *mut c_void) -> u32), SUCCESS);
        now
    };
    let (before, after) = (clock(), clock());
    assert!(0 < before && before <= after, "{before}, {after}");
    assert_eq!(number(&info(3).expect("a frequency"), 8), 1_000_000_000);
    let addr = number(&info(0x200).expect("an address"), 8);
    // SAFETY: the library's text.
    let build = unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(addr as usize)) };
    assert!(build.to_str().is_ok_and(|build| build.starts_with("hipr ")), "{build:?}");
}

fn info_len(attribute: u32, info: &dyn Fn(u32) -> Result<Vec<u8>, u32>) -> Result<usize, u32> {
    const CLOCK: u32 = 2;
    // The clock goes on between two answers, so that all its bytes do not come out the same; none is beyond the eighth.
    info(attribute).map(|bytes| if attribute == CLOCK { bytes.len().max(8) } else { bytes.len() })
}

#[test]
fn every_status_has_a_text() {
    let standard = (0x1000..=0x1019).chain(0x1020..=0x1026);
    let known: Vec<u32> = [0, 1].into_iter().chain(40..=46).chain(standard).collect();
    let mut texts = Vec::new();
    for status in (0..64).chain(0xff0..0x1040).chain([u32::MAX]) {
        let mut text = std::ptr::null::<c_char>();
        let result = hsa!(hsa_status_string(status => u32, &raw mut text => *mut *const c_char) -> u32);
        let expected = if known.contains(&status) { SUCCESS } else { INVALID_ARGUMENT };
        assert_eq!(result, expected, "{status:#x}");
        if result == SUCCESS {
            // SAFETY: the library's text.
            texts.push(unsafe { CStr::from_ptr(text) }.to_owned());
        }
    }
    assert!(texts.iter().all(|text| text.to_bytes().starts_with(b"HSA_STATUS_")));
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), known.len(), "no two have the same");
    assert_eq!(
        hsa!(hsa_status_string(0 => u32, std::ptr::null_mut() => *mut *const c_char) -> u32),
        INVALID_ARGUMENT
    );
}

#[test]
fn caches_answer_each_attribute() {
    for &agent in &agents()[1..] {
        for (index, cache) in handles("hsa_agent_iterate_caches", agent).into_iter().enumerate() {
            let name_bytes = ask("hsa_cache_get_info", cache, 0, 4) as usize;
            check("hsa_cache_get_info", cache, &[(0, 4), (1, name_bytes + 1), (2, 1), (3, 4)]);
            assert_eq!(text("hsa_cache_get_info", cache, 1).len(), name_bytes);
            assert_eq!(ask("hsa_cache_get_info", cache, 2, 1), index as u64 + 1, "its level");
            assert!(ask("hsa_cache_get_info", cache, 3, 4) >= 1 << 14, "its size");
        }
    }
    let mut value = 0u64;
    for cache in [0, 1, 0x100, 0x101, 0x200, 0x203, u64::MAX] {
        let status =
            hsa!(hsa_cache_get_info(cache => u64, 2 => u32, (&raw mut value).cast() => *mut c_void) -> u32);
        assert_eq!(status, INVALID_CACHE, "{cache:#x}");
    }
}

#[test]
fn pools_answer_each_attribute() {
    let attributes = [(0, 4), (1, 4), (2, 8), (5, 1), (6, 8), (7, 8), (15, 1), (16, 8), (17, 4), (18, 8)];
    let agents = agents();
    let flags = |agent| {
        pools(agent)
            .into_iter()
            .map(|pool| ask("hsa_amd_memory_pool_get_info", pool, 1, 4))
            .collect::<Vec<_>>()
    };
    // Fine-grained, fine-grained for all of the system, kernel arguments, coarse-grained; LDS has none.
    assert_eq!(flags(agents[0]), [2, 8, 3, 4]);
    for &agent in &agents {
        assert!(agent == agents[0] || flags(agent) == [4, 8, 2, 0]);
        for pool in pools(agent) {
            check("hsa_amd_memory_pool_get_info", pool, &attributes);
            let ask = |attribute, len| ask("hsa_amd_memory_pool_get_info", pool, attribute, len);
            let is_global = ask(0, 4) == 0;
            assert_eq!(ask(5, 1) != 0, is_global, "only memory with addresses is allocated");
            assert!(ask(2, 8) >= ask(16, 8), "the largest allocation fits");
            assert_eq!(ask(17, 4), u64::from(agent != agents[0]), "where it is");
            if is_global {
                let [granule, align, recommended] = [ask(6, 8), ask(7, 8), ask(18, 8)];
                assert!(granule.is_power_of_two() && align.is_power_of_two() && recommended % granule == 0);
                assert!(agent == agents[0] || ask(2, 8) == GPU_BYTES as u64);
            }
        }
    }
    let mut value = [0u64; 2];
    for pool in [0, 1, 0x104, 0x204, (agents.len() as u64 + 1) << 8, u64::MAX] {
        let status = hsa!(hsa_amd_memory_pool_get_info(pool => u64, 0 => u32, value.as_mut_ptr().cast() => *mut c_void) -> u32);
        assert_eq!(status, INVALID_MEMORY_POOL, "{pool:#x}");
    }
}

#[test]
fn regions_are_the_pools_of_the_base_standard() {
    let attributes = [
        (0, 4),
        (1, 4),
        (2, 8),
        (4, 8),
        (5, 1),
        (6, 8),
        (7, 8),
        (8, 4),
        (0xa000, 1),
        (0xa001, 8),
        (0xa002, 4),
        (0xa003, 4),
    ];
    for &agent in &agents() {
        let regions = handles("hsa_agent_iterate_regions", agent);
        assert_eq!(regions.len(), pools(agent).len());
        for (region, pool) in regions.into_iter().zip(pools(agent)) {
            check("hsa_region_get_info", region, &attributes);
            for (attribute, of_pool, len) in
                [(0, 0, 4), (1, 1, 4), (2, 2, 8), (4, 16, 8), (5, 5, 1), (6, 6, 8), (7, 7, 8)]
            {
                let one = ask("hsa_region_get_info", region, attribute, len);
                assert_eq!(
                    one,
                    ask("hsa_amd_memory_pool_get_info", pool, of_pool, len),
                    "attribute {attribute}"
                );
            }
        }
    }
    let mut value = [0u64; 2];
    for region in [0, 1, 0x104, u64::MAX] {
        let status = hsa!(hsa_region_get_info(region => u64, 0 => u32, value.as_mut_ptr().cast() => *mut c_void) -> u32);
        assert_eq!(status, INVALID_REGION, "{region:#x}");
    }
}

#[test]
fn every_agent_knows_its_way_to_every_pool() {
    let agents = agents();
    for (&agent, &owner) in agents.iter().flat_map(|agent| agents.iter().map(move |owner| (agent, owner))) {
        for pool in pools(owner) {
            let info = |attribute: u32| {
                written(
                    |value| hsa!(hsa_amd_agent_memory_pool_get_info(agent => u64, pool => u64, attribute => u32, value => *mut c_void) -> u32),
                )
            };
            let is_global = ask("hsa_amd_memory_pool_get_info", pool, 0, 4) == 0;
            let access = number(&info(0).expect("access"), 4);
            let expected = match (is_global, agent == owner) {
                (_, true) => 1,
                (true, false) => 2,
                (false, false) => 0,
            };
            assert_eq!(
                access, expected,
                "{agent} to {pool:#x}: 0 never, 1 by itself, 2 when it is allowed to"
            );
            let hops = number(&info(1).expect("hops"), 4);
            assert_eq!(hops, u64::from(agent != owner), "{agent} to {pool:#x}");
            // A structure for each hop.
            assert_eq!(info(2).map(|links| links.len()), Ok(28 * hops as usize));
            assert_eq!(info(3), Err(INVALID_ARGUMENT));
        }
    }
    let mut value = [0u32; 8];
    let mut ask = |agent: u64, pool: u64| hsa!(hsa_amd_agent_memory_pool_get_info(agent => u64, pool => u64, 0 => u32, value.as_mut_ptr().cast() => *mut c_void) -> u32);
    assert_eq!(ask(0, pools(agents[0])[0]), INVALID_AGENT);
    assert_eq!(ask(agents[1], 0), INVALID_MEMORY_POOL);
}

#[test]
fn extensions_are_known_by_number() {
    let gpu = gpu();
    let known = [0u16, 1, 2, 3, 0x200, 0x201, 0x202, 0x203];
    const LOADER: u16 = 0x201;
    for extension in (0..8u16).chain(0x1f8..0x210).chain([u16::MAX]) {
        let mut name = std::ptr::null::<c_char>();
        let status =
            hsa!(hsa_extension_get_name(extension => u16, &raw mut name => *mut *const c_char) -> u32);
        let is_known = known.contains(&extension);
        assert_eq!(status == SUCCESS, is_known, "{extension:#x}");
        for (major, minor) in [(0u16, 0u16), (1, 0), (1, 3), (1, 4), (2, 0)] {
            let mut result = 7u8;
            let status = hsa!(hsa_system_extension_supported(extension => u16, major => u16, minor => u16, &raw mut result => *mut u8) -> u32);
            let offered = extension == LOADER && major == 1 && minor <= 3;
            let expected = if is_known { Ok(u8::from(offered)) } else { Err(INVALID_ARGUMENT) };
            assert_eq!(answer(status, result), expected, "{extension:#x} {major}.{minor}");
            let status = hsa!(hsa_agent_extension_supported(extension => u16, gpu => u64, major => u16, minor => u16, &raw mut result => *mut u8) -> u32);
            let expected = if is_known {
                Ok(u8::from((extension, major, minor) == (1, 1, 0)))
            } else {
                Err(INVALID_ARGUMENT)
            };
            assert_eq!(answer(status, result), expected, "of a GPU: {extension:#x} {major}.{minor}");
        }
        let (mut minor, mut result) = (0u16, 7u8);
        type Major = unsafe extern "C" fn(u16, u16, *mut u16, *mut u8) -> u32;
        type AgentMajor = unsafe extern "C" fn(u16, u64, u16, *mut u16, *mut u8) -> u32;
        let (system, agent): (Major, AgentMajor) =
            (symbol("hsa_system_major_extension_supported"), symbol("hsa_agent_major_extension_supported"));
        let null = std::ptr::null_mut();
        // SAFETY: the C prototypes.
        unsafe {
            let expected = if is_known { SUCCESS } else { INVALID_ARGUMENT };
            assert_eq!(system(extension, 1, &raw mut minor, &raw mut result), expected, "{extension:#x}");
            assert!(extension != LOADER || (minor, result) == (3, 1), "the loader extension is 1.03");
            assert_eq!(agent(extension, gpu, 1, &raw mut minor, &raw mut result), expected, "{extension:#x}");
            assert_eq!(
                system(extension, 1, null, &raw mut result),
                INVALID_ARGUMENT,
                "{extension:#x} without a place"
            );
            assert_eq!(
                agent(extension, gpu, 1, null, &raw mut result),
                INVALID_ARGUMENT,
                "{extension:#x} without a place"
            );
            assert_eq!(system(extension, 1, &raw mut minor, null.cast()), INVALID_ARGUMENT);
            assert_eq!(agent(extension, 0, 1, &raw mut minor, &raw mut result), INVALID_AGENT);
        }
    }
}

#[test]
fn the_loader_extension_is_given_as_far_as_there_is_room() {
    const FUNCTIONS: usize = 7;
    let get = |extension: u16, major: u16, len: usize| {
        written(
            |table| hsa!(hsa_system_get_major_extension_table(extension => u16, major => u16, len => usize, table => *mut c_void) -> u32),
        )
    };
    for functions in 1..=FUNCTIONS {
        assert_eq!(get(0x201, 1, functions * 8).map(|table| table.len()), Ok(functions * 8));
    }
    assert_eq!(get(0x201, 1, 1000).map(|table| table.len() >= FUNCTIONS * 8), Ok(true));
    assert_eq!(get(0x201, 1, 0), Err(INVALID_ARGUMENT));
    assert_eq!(get(0x999, 1, 64), Err(INVALID_ARGUMENT));
    assert!(get(0x201, 2, 64).is_err() && get(1, 1, 64).is_err(), "what is not offered");
    let table = |extension: u16, minor: u16| {
        written(
            |table| hsa!(hsa_system_get_extension_table(extension => u16, 1 => u16, minor => u16, table => *mut c_void) -> u32),
        )
    };
    let sizes = [0, 1, 2, 3]
        .map(|minor| table(0x201, minor).map(|table| table.len()).expect("a version that is offered"));
    assert!(sizes.is_sorted() && sizes[3] > sizes[0], "{sizes:?}");
    assert!(table(0x201, 99).is_err());
    assert_eq!(table(0x999, 99), Err(INVALID_ARGUMENT));
    let null = std::ptr::null_mut();
    assert_eq!(
        hsa!(hsa_system_get_extension_table(0x201 => u16, 1 => u16, 0 => u16, null => *mut c_void) -> u32),
        INVALID_ARGUMENT
    );
}

#[test]
fn init_is_counted() {
    assert_eq!(hsa!(hsa_init() -> u32), SUCCESS);
    assert_eq!(hsa!(hsa_shut_down() -> u32), SUCCESS);
    assert_eq!(agents().len(), 1 + GPUS.len(), "the first call still holds");
}
