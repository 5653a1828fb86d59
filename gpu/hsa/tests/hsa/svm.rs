//! Attributes of memory of the program: what is set, told, and reached.

use crate::library::{
    ERROR, INCOMPATIBLE_ARGUMENTS, INVALID_AGENT, INVALID_ARGUMENT, INVALID_SIGNAL, Memory, SUCCESS, Signal,
    agents, answer, hsa,
};
use crate::memory::Pages;
use crate::queues::reaches;

const PAGE: usize = 4096;

const GLOBAL_FLAG: u64 = 0;
const READ_ONLY: u64 = 1;
const HIVE_LOCAL: u64 = 2;
const GRANULARITY: u64 = 3;
const PREFERRED: u64 = 4;
const PREFETCHED: u64 = 5;
const READ_MOSTLY: u64 = 6;
const GPU_EXEC: u64 = 7;
const ACCESSIBLE: u64 = 0x200;
pub(crate) const IN_PLACE: u64 = 0x201;
pub(crate) const NO_ACCESS: u64 = 0x202;
pub(crate) const QUERY: u64 = 0x203;

pub(crate) type Pair = [u64; 2];

pub(crate) fn set(addr: u64, len_bytes: usize, pairs: &[Pair]) -> u32 {
    hsa!(hsa_amd_svm_attributes_set(addr => u64, len_bytes => usize, pairs.as_ptr() => *const Pair, pairs.len() => usize) -> u32)
}

pub(crate) fn get(addr: u64, len_bytes: usize, pair: Pair) -> Result<Pair, u32> {
    let mut pair = pair;
    let status = hsa!(hsa_amd_svm_attributes_get(addr => u64, len_bytes => usize, &raw mut pair => *mut Pair, 1 => usize) -> u32);
    answer(status, pair)
}

/// The program's pages, whose attributes are what they were before when they go: the library does not notice that they are unmapped, and the
/// next ones may have the same addresses.
struct Own(Pages);

impl Own {
    fn new(count: usize) -> Self {
        Self(Pages::new(count * PAGE))
    }
}

impl std::ops::Deref for Own {
    type Target = Pages;

    fn deref(&self) -> &Pages {
        &self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let values = [
            [GLOBAL_FLAG, 0],
            [READ_ONLY, 0],
            [HIVE_LOCAL, 0],
            [GRANULARITY, 9],
            [PREFERRED, 0],
            [READ_MOSTLY, 0],
            [GPU_EXEC, 0],
        ];
        let access = agents()
            .into_iter()
            .map(|agent| [if agent == agents()[0] { ACCESSIBLE } else { NO_ACCESS }, agent]);
        let pairs: Vec<Pair> = values.into_iter().chain(access).collect();
        assert_eq!(set(self.addr, self.bytes().len(), &pairs), SUCCESS);
    }
}

#[test]
fn attributes_are_told_as_they_were_set() {
    let agents = agents();
    let own = Own::new(4);
    // Attribute, what it is at first, what is set and what is told then.
    for (attribute, first, values) in [
        (GLOBAL_FLAG, 0, vec![(1, 1), (0, 0)]),
        (READ_ONLY, 0, vec![(1, 1), (5, 1), (0, 0)]),
        (HIVE_LOCAL, 0, vec![(1, 1), (0, 0)]),
        (GRANULARITY, 9, vec![(0, 0), (4, 4), (18, 18), (1000, 18), (9, 9)]),
        (PREFERRED, 0, vec![(agents[0], agents[0]), (agents[2], agents[2]), (0, 0)]),
        (READ_MOSTLY, 0, vec![(1, 1), (0, 0)]),
        (GPU_EXEC, 0, vec![(1, 1), (0, 0)]),
    ] {
        assert_eq!(
            get(own.addr, 4 * PAGE, [attribute, 99]),
            Ok([attribute, first]),
            "attribute {attribute} at first"
        );
        for (value, told) in values {
            assert_eq!(set(own.addr, 4 * PAGE, &[[attribute, value]]), SUCCESS);
            assert_eq!(
                get(own.addr, 4 * PAGE, [attribute, 99]),
                Ok([attribute, told]),
                "attribute {attribute}"
            );
            assert_eq!(get(own.addr + PAGE as u64, 1, [attribute, 99]), Ok([attribute, told]), "of a part");
        }
    }
    let all = [
        [GLOBAL_FLAG, 1],
        [READ_MOSTLY, 1],
        [GRANULARITY, 3],
        [ACCESSIBLE, agents[1]],
        [IN_PLACE, agents[2]],
    ];
    assert_eq!(set(own.addr, 4 * PAGE, &all), SUCCESS, "several at once");
    assert_eq!(get(own.addr, 4 * PAGE, [QUERY, agents[1]]), Ok([ACCESSIBLE, agents[1]]));
    assert_eq!(get(own.addr, 4 * PAGE, [QUERY, agents[2]]), Ok([IN_PLACE, agents[2]]));
    assert_eq!(get(own.addr, 4 * PAGE, [QUERY, agents[3]]), Ok([NO_ACCESS, agents[3]]));
}

#[test]
fn where_pages_differ_what_holds_for_all_is_told() {
    let agents = agents();
    let own = Own::new(4);
    let second = own.addr + PAGE as u64;
    let pairs = [
        [GLOBAL_FLAG, 1],
        [READ_MOSTLY, 1],
        [GRANULARITY, 3],
        [PREFERRED, agents[1]],
        [ACCESSIBLE, agents[1]],
    ];
    assert_eq!(set(second, PAGE, &pairs), SUCCESS);
    for (attribute, of_page, of_all) in
        [(GLOBAL_FLAG, 1, 2), (READ_MOSTLY, 1, 0), (GRANULARITY, 3, 3), (PREFERRED, agents[1], 0)]
    {
        assert_eq!(get(second, PAGE, [attribute, 99]), Ok([attribute, of_page]));
        assert_eq!(
            get(own.addr, 4 * PAGE, [attribute, 99]),
            Ok([attribute, of_all]),
            "attribute {attribute}"
        );
    }
    assert_eq!(get(second, PAGE, [QUERY, agents[1]]), Ok([ACCESSIBLE, agents[1]]));
    assert_eq!(get(own.addr, 2 * PAGE, [QUERY, agents[1]]), Ok([NO_ACCESS, agents[1]]));
    assert_eq!(set(own.addr, 4 * PAGE, &[[NO_ACCESS, agents[1]]]), SUCCESS);
}

#[test]
fn kernels_reach_pages_whose_attributes_say_so() {
    let agents = agents();
    let own = Own::new(4);
    let page = |number: usize| own.addr + (number * PAGE) as u64;
    let reached = |gpu: u64| (0..4).map(|number| reaches(gpu, page(number))).collect::<Vec<_>>();
    assert_eq!(reached(agents[1]), [false; 4]);
    for access in [ACCESSIBLE, IN_PLACE] {
        assert_eq!(set(page(1), 2 * PAGE, &[[access, agents[1]]]), SUCCESS);
        assert_eq!(reached(agents[1]), [false, true, true, false]);
        assert_eq!(reached(agents[2]), [false; 4], "another GPU");
        assert_eq!(set(page(2), 2 * PAGE, &[[access, agents[2]]]), SUCCESS);
        assert_eq!(reached(agents[2]), [false, false, true, true]);
        assert_eq!(reached(agents[1]), [false, true, true, false], "it keeps what it had");
        assert_eq!(set(page(2), PAGE, &[[NO_ACCESS, agents[1]]]), SUCCESS);
        assert_eq!(reached(agents[1]), [false, true, false, false]);
        let none = [[NO_ACCESS, agents[1]], [NO_ACCESS, agents[2]]];
        assert_eq!(set(own.addr, 4 * PAGE, &none), SUCCESS);
        assert_eq!([reached(agents[1]), reached(agents[2])], [[false; 4]; 2]);
    }
    // A range that is no whole page means the pages that it touches.
    assert_eq!(set(page(1) + 4095, 2, &[[ACCESSIBLE, agents[1]]]), SUCCESS);
    assert_eq!(reached(agents[1]), [false, true, true, false]);
    assert_eq!(set(own.addr, 4 * PAGE, &[[NO_ACCESS, agents[1]]]), SUCCESS);
}

#[test]
fn wrong_attributes_and_ranges_are_refused() {
    let agents = agents();
    let (own, pool) = (Own::new(1), Memory::new(PAGE));
    for (pairs, expected) in [
        (vec![[PREFETCHED, agents[1]]], INVALID_ARGUMENT),
        (vec![[QUERY, agents[1]]], INVALID_ARGUMENT),
        (vec![[8, 0]], INVALID_ARGUMENT),
        (vec![[u64::MAX, 0]], INVALID_ARGUMENT),
        (vec![[GLOBAL_FLAG, 2]], INVALID_ARGUMENT),
        (vec![[GLOBAL_FLAG, 3]], INVALID_ARGUMENT),
        (vec![[ACCESSIBLE, 99]], INVALID_AGENT),
        (vec![[NO_ACCESS, 0]], INVALID_AGENT),
        (vec![[PREFERRED, 99]], INVALID_AGENT),
        (vec![[READ_ONLY, 1], [READ_ONLY, 0]], INCOMPATIBLE_ARGUMENTS),
        (vec![[ACCESSIBLE, agents[1]], [NO_ACCESS, agents[1]]], INCOMPATIBLE_ARGUMENTS),
    ] {
        assert_eq!(set(own.addr, PAGE, &pairs), expected, "{pairs:?}");
    }
    for attribute in [ACCESSIBLE, IN_PLACE, NO_ACCESS, 8, 99] {
        assert_eq!(
            get(own.addr, PAGE, [attribute, agents[1]]),
            Err(INVALID_ARGUMENT),
            "attribute {attribute:#x} is not told"
        );
    }
    assert_eq!(get(own.addr, PAGE, [QUERY, 99]), Err(INVALID_AGENT));
    let pair = [[READ_MOSTLY, 1]];
    for (addr, len_bytes) in
        [(own.addr, 0), (0, PAGE), (pool.addr, PAGE), (u64::MAX - 10, 100), (PAGE as u64, PAGE)]
    {
        assert_eq!(set(addr, len_bytes, &pair), ERROR, "{len_bytes} bytes at {addr:#x}");
        assert_eq!(get(addr, len_bytes, pair[0]), Err(ERROR), "{len_bytes} bytes at {addr:#x}");
    }
    let null = hsa!(hsa_amd_svm_attributes_set(own.addr => u64, PAGE => usize, std::ptr::null() => *const Pair, 1 => usize) -> u32);
    assert_eq!(null, INVALID_ARGUMENT);
    assert_eq!(get(own.addr, PAGE, [READ_MOSTLY, 9]), Ok([READ_MOSTLY, 0]), "nothing was set");
}

#[test]
fn a_prefetch_waits_for_its_signals() {
    let agents = agents();
    let own = Own::new(2);
    let prefetch = |len_bytes: usize, agent: u64, after: &[&Signal], done: u64| {
        let list: Vec<u64> = after.iter().map(|signal| signal.0).collect();
        hsa!(hsa_amd_svm_prefetch_async(
            own.addr => u64, len_bytes => usize, agent => u64, list.len() as u32 => u32, list.as_ptr() => *const u64, done => u64) -> u32)
    };
    let (done, one, other) = (Signal::new(1), Signal::new(1), Signal::new(2));
    assert_eq!(prefetch(2 * PAGE, agents[2], &[&one, &other], done.0), SUCCESS);
    assert_eq!(get(own.addr, 2 * PAGE, [PREFETCHED, 99]), Ok([PREFETCHED, agents[2]]));
    one.store(0);
    assert_eq!(done.load(), 1);
    other.store(0);
    assert_eq!(done.wait_lt(1), 0);
    assert_eq!(prefetch(PAGE, agents[1], &[], 0), SUCCESS, "nobody needs to be told");
    assert_eq!(get(own.addr, PAGE, [PREFETCHED, 99]), Ok([PREFETCHED, agents[1]]));
    assert_eq!(get(own.addr, 2 * PAGE, [PREFETCHED, 99]), Ok([PREFETCHED, 0]), "the pages differ");
    assert_eq!(prefetch(PAGE, 99, &[], done.0), INVALID_AGENT);
    assert_eq!(prefetch(PAGE, agents[1], &[], 64), INVALID_SIGNAL);
    assert_eq!(prefetch(0, agents[1], &[], done.0), ERROR);
    assert_eq!(done.load(), 0);
}
