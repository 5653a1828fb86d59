//! Tests of blocks that are at their own addresses in the process, and of those that lie outside of the page table.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::bench::Bench;
use hipr_isa::Arch;
use hipr_isa::aperture::{PRIVATE_BASE, PRIVATE_BUFFER, SHARED_BASE};
use hipr_isa::fault::Cause;
use hipr_isa::map::{FIRST_ADDRESS, Map, NoPlace, PAGE_BYTES, PAGES};
use hipr_isa::mem::{BadAddress, Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::Program;

const PAGE: u64 = 4096;

/// Memory of the program, as wide as a page of the system.
#[repr(C, align(4096))]
struct Page([AtomicU32; 1024]);

impl Page {
    fn addr(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }
}

/// Returns so many pages that lie together.
fn pages(count: usize) -> Box<[Page]> {
    (0..count).map(|_| Page(std::array::from_fn(|_| AtomicU32::new(0)))).collect()
}

/// Returns a block over some of the bytes of pages; these outlive it in all tests.
fn over(pages: &[Page], from: u64, len_bytes: u64) -> Arc<Block> {
    assert!(from + len_bytes <= pages.len() as u64 * PAGE);
    // SAFETY: bytes of a box of atomics, which every test drops after the block.
    Arc::new(unsafe { Block::over(pages[0].addr() + from, len_bytes) }.expect("multiples of 16"))
}

/// A block that no test accesses.
fn launch() -> Arc<Block> {
    Arc::new(Block::new(0x6000_0000_0000, 16).unwrap())
}

fn space(map: &Map) -> Space {
    Space::new(Arc::new(map.clone()), launch())
}

#[test]
fn kernel_and_program_reach_the_same_bytes_at_one_address() {
    let pages = pages(2);
    let lent = over(&pages, 0, 2 * PAGE);
    let own = Arc::new(Block::at_own_address(FIRST_ADDRESS + 8 * PAGE_BYTES, PAGE).unwrap());
    let mut map = Map::default();
    map.insert(&lent).unwrap();
    map.insert(&own).unwrap();
    let mut bench = Bench { space: space(&map), ..Bench::default() };
    for (base, block) in [(pages[0].addr(), &lent), (own.base(), &own)] {
        let words = base as *const AtomicU32;
        // SAFETY: the first 128 words of pages, and of the block's mapping.
        let words: Vec<&AtomicU32> = (0..128).map(|index| unsafe { &*words.add(index) }).collect();
        assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        (0..).zip(&words[..64]).for_each(|(value, word)| word.store(value * 3, Ordering::Relaxed));
        bench.fill64(0, |lane| base + 4 * lane as u64);
        bench.run(&[
            0xdc508000, 0x0a7f0000, // global_load_dword v10, v[0:1], off
            0xdc708100, 0x007f0a00, // global_store_dword v[0:1], v10, off offset:256
        ]);
        let read: Vec<_> = words[64..].iter().map(|word| word.load(Ordering::Relaxed)).collect();
        assert_eq!(read, (0..64).map(|lane| lane * 3).collect::<Vec<_>>());
        assert_eq!((block.base(), block.load_u32(4)), (base, 3));
    }
}

#[test]
fn memory_at_an_own_address_is_taken_once_and_given_back() {
    let base = FIRST_ADDRESS + 16 * PAGE_BYTES;
    let failed = |base, len_bytes| Block::at_own_address(base, len_bytes).map(drop).unwrap_err().kind();
    let first = Block::at_own_address(base, 3 * PAGE).unwrap();
    first.store_u64(16, 5);
    for (from, len_bytes) in
        [(base, PAGE), (base + PAGE, PAGE), (base - PAGE, 2 * PAGE), (base - PAGE, 8 * PAGE)]
    {
        assert_eq!(failed(from, len_bytes), ErrorKind::AlreadyExists, "{from:#x}");
    }
    assert_eq!(first.load_u64(16), 5);
    let _behind = Block::at_own_address(base + 3 * PAGE, PAGE).unwrap();
    drop(first);
    let again = Block::at_own_address(base, 3 * PAGE).unwrap();
    assert_eq!(again.load_u64(16), 0);
    for (from, len_bytes) in [
        (base + 16 * PAGE + 16, PAGE),
        (base + 16 * PAGE, 0),
        (base + 16 * PAGE, 8),
        (base + 16 * PAGE, PAGE + 16),
    ] {
        assert_eq!(failed(from, len_bytes), ErrorKind::InvalidInput, "{from:#x}, {len_bytes}");
    }
}

#[test]
fn lent_memory_has_to_be_aligned_and_is_left_alone() {
    let pages = pages(1);
    for (base, len_bytes) in [
        (0, 16),
        (pages[0].addr() + 8, 16),
        (pages[0].addr() + 1, 16),
        (pages[0].addr(), 8),
        (u64::MAX - 15, 16),
        (pages[0].addr(), u64::MAX - 15),
    ] {
        // SAFETY: there is no block.
        assert!(unsafe { Block::over(base, len_bytes) }.is_none(), "{base:#x}, {len_bytes}");
    }
    drop(over(&pages, 0, PAGE));
    pages[0].0[0].store(1, Ordering::Relaxed);
    assert_eq!(over(&pages, 0, PAGE).load_u32(0), 1);
}

#[test]
fn every_byte_of_a_foreign_block_is_found_and_none_beside_it() {
    let pages = pages(4);
    let at = |offset: u64| pages[0].addr() + offset;
    // A page, two neighbours in the next one, and 16 bytes further on.
    let ranges = [(0, PAGE), (PAGE, 2048), (PAGE + 2048, 1024), (2 * PAGE + 64, 16)];
    let blocks = ranges.map(|(from, len_bytes)| over(&pages, from, len_bytes));
    let mut map = Map::default();
    for index in [2, 0, 3, 1] {
        map.insert(&blocks[index]).unwrap();
    }
    let space = space(&map);
    for offset in (0..3 * PAGE).chain([3 * PAGE, u64::MAX, u64::MAX - 16]) {
        let addr = pages[0].addr().wrapping_add(offset);
        let own = ranges.iter().position(|&(from, len_bytes)| offset.wrapping_sub(from) < len_bytes);
        let found = map.block(addr).map(|block| block.base());
        assert_eq!(found, own.map(|index| blocks[index].base()), "{offset:#x}");
        for width in [1, 2, 4, 8, 16] {
            let inside = own.is_some_and(|index| offset - ranges[index].0 + width as u64 <= ranges[index].1);
            let (expected, mut words) =
                (if inside { Ok(()) } else { Err(BadAddress { addr, len_bytes: width as u64 }) }, [0; 4]);
            let result = match width {
                1 => space.load_u8(addr).map(drop),
                2 => space.store_u16(addr, 1),
                4 => space.load_u32(addr).map(drop),
                8 => space.store_u64(addr, 1),
                _ => space.load_words(addr, &mut words),
            };
            assert_eq!(result, expected, "{width} bytes at {offset:#x}");
        }
    }
    // The lane that crosses the end is told, not its neighbours.
    let mut bench = Bench { space, ..Bench::default() };
    bench.fill64(0, |lane| if lane == 9 { at(PAGE - 2) } else { at(8 * lane as u64) });
    let fault =
        bench.try_run(&[0xdc508000, 0x0a7f0000 /* global_load_dword v10, v[0:1], off */]).unwrap_err();
    let Cause::IllegalAddress { lane: Some(9), access, write: false } = fault.cause else {
        panic!("{fault}")
    };
    assert_eq!((access.addr, access.len_bytes), (at(PAGE - 2), 4));
}

#[test]
fn blocks_do_not_overlap_and_only_what_was_inserted_is_removed() {
    let pages = pages(4);
    let mut map = Map::default();
    let middle = over(&pages, PAGE, PAGE);
    map.insert(&middle).unwrap();
    let before = map.clone();
    for (from, len_bytes) in
        [(PAGE, PAGE), (0, PAGE + 16), (0, 4 * PAGE), (PAGE + 16, 16), (2 * PAGE - 16, PAGE)]
    {
        let other = over(&pages, from, len_bytes);
        assert_eq!(map.insert(&other), Err(NoPlace::Occupied), "{from:#x}");
        map.remove(&other);
        assert!(map.block(middle.base()).is_some());
    }
    for (from, len_bytes) in [(0, PAGE), (2 * PAGE, 16)] {
        map.insert(&over(&pages, from, len_bytes)).unwrap();
    }
    assert!(before.block(pages[0].addr()).is_none(), "a snapshot stays as it is");
    map.remove(&middle);
    assert!(map.block(middle.base()).is_none() && before.block(middle.base()).is_some());
    assert!(map.block(pages[0].addr()).is_some() && map.block(pages[2].addr()).is_some());
    map.insert(&middle).unwrap();

    // The same in the page table.
    let block =
        |page: u64| Arc::new(Block::new(FIRST_ADDRESS + page * PAGE_BYTES, PAGE_BYTES * 3 / 2).unwrap());
    let first = block(1023);
    map.insert(&first).unwrap();
    for page in [1022, 1023, 1024] {
        assert_eq!(map.insert(&block(page)), Err(NoPlace::Occupied));
        map.remove(&block(page));
        assert!([1023, 1024].iter().all(|page| map.block(FIRST_ADDRESS + page * PAGE_BYTES).is_some()));
        assert!(map.block(FIRST_ADDRESS + 1022 * PAGE_BYTES).is_none());
    }
    map.insert(&block(1021)).unwrap();
    map.insert(&block(1025)).unwrap();
    map.remove(&first);
    assert!(map.block(first.base()).is_none() && map.block(first.base() + PAGE_BYTES).is_none());
}

#[test]
fn where_no_block_can_be_there_is_none() {
    let end = FIRST_ADDRESS + PAGES * PAGE_BYTES;
    // SAFETY: what is at these addresses is never accessed.
    let lent = |base, len_bytes| Arc::new(unsafe { Block::over(base, len_bytes) }.unwrap());
    let table = [
        (PAGE, PAGE, Ok(())),
        (FIRST_ADDRESS - PAGE, PAGE, Ok(())),
        (FIRST_ADDRESS - PAGE, PAGE + 16, Err(NoPlace::BadRange)),
        (FIRST_ADDRESS, PAGE, Ok(())),
        (FIRST_ADDRESS, 0, Ok(())),
        (end - PAGE_BYTES, PAGE_BYTES, Ok(())),
        (end - 16, 32, Err(NoPlace::BadRange)),
        (end, 16, Ok(())),
        (end, 0, Err(NoPlace::BadRange)),
        (PRIVATE_BUFFER - 16, 16, Ok(())),
        (PRIVATE_BUFFER - 16, 32, Err(NoPlace::BadRange)),
        (PRIVATE_BUFFER, 16, Err(NoPlace::BadRange)),
        (SHARED_BASE, 1 << 32, Err(NoPlace::BadRange)),
        (PRIVATE_BASE, 1 << 32, Err(NoPlace::BadRange)),
        (SHARED_BASE - 16, 32, Err(NoPlace::BadRange)),
    ];
    for (base, len_bytes, expected) in table {
        let (mut map, block) = (Map::default(), lent(base, len_bytes));
        assert_eq!(map.insert(&block), expected, "{base:#x}, {len_bytes:#x}");
        assert_eq!(map.block(base).is_some(), expected.is_ok(), "{base:#x}, {len_bytes:#x}");
        map.remove(&block);
        assert!(map.block(base).is_none());
    }
}

#[test]
fn apertures_reach_no_foreign_block() {
    let pages = pages(1);
    let lent = over(&pages, 0, PAGE);
    let mut map = Map::default();
    map.insert(&lent).unwrap();
    for (base, is_lds) in [(SHARED_BASE, true), (PRIVATE_BASE, false)] {
        let mut bench = Bench { space: space(&map), ..Bench::default() };
        // The low half is the block's; in LDS and scratch there is nothing so far on.
        bench.fill64(0, |_| base | u64::from(lent.base() as u32 | 1 << 31));
        for words in [
            [0xdc500000, 0x0a000000 /* flat_load_dword v10, v[0:1] */],
            [0xdc700000, 0x00000a00 /* flat_store_dword v[0:1], v10 */],
        ] {
            let _ = bench.try_run(&words);
            assert_eq!(bench.wave.row(10)[0], 0);
        }
        bench.fill64(0, |lane| base | (4 * lane as u64));
        bench.fill(10, |_| 0x55);
        bench.run(&[0xdc700000, 0x00000a00]);
        if is_lds {
            assert_eq!(bench.lds.load_u32(8), 0x55);
        }
        assert!(pages[0].0.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}

#[test]
fn code_in_a_foreign_block_is_executed() {
    let pages = pages(1);
    let lent = over(&pages, 0, PAGE);
    // s_movk_i32 s0, 7; s_endpgm
    let code: Vec<u8> = [0xb000_0007u32, 0xbf81_0000].iter().flat_map(|word| word.to_le_bytes()).collect();
    let level = Level::chosen().expect("a level of this processor");
    lent.set_code(&[Arc::new(Program::new(&code, lent.base() + 256, Arch::default(), level))]);
    let mut map = Map::default();
    map.insert(&lent).unwrap();
    let mut bench = Bench { space: space(&map), ..Bench::default() };
    bench.wave.set_pair(4, lent.base() + 256);
    bench.run(&[0xbe80_1d04 /* s_setpc_b64 s[4:5] */]);
    assert_eq!(bench.wave.sgpr[0], 7);
}
