//! Tests which work-items there are, in grids of every size: each exactly once, in its group, in its wave and with its id.

use std::sync::Arc;

use hipr_grid::GridSize;
use hipr_isa::Arch;

use crate::bench::{Bench, Wishes};

/// Writes for each work-item, at a place that it takes: the group's ids, with the wave's number in the high half of the last one, and v0.
const WHO: [u32; 19] = [
    0xb885f804, // s_getreg_b32 s5, hwreg(HW_REG_HW_ID)
    0x7e020281, // v_mov_b32 v1, 1
    0x7e040280, // v_mov_b32 v2, 0
    0xbf8a0000, // s_barrier
    0xdd098000, 0x03000102, // global_atomic_add v3, v2, v1, s[0:1] glc
    0xbf8c0f70, // s_waitcnt vmcnt(0)
    0x24060684, // v_lshlrev_b32 v3, 4, v3
    0x7e080202, // v_mov_b32 v4, s2
    0x7e0a0203, // v_mov_b32 v5, s3
    0x8605ff05, 0xffff0000, // s_and_b32 s5, s5, 0xffff0000
    0x87050405, // s_or_b32 s5, s5, s4
    0x7e0c0205, // v_mov_b32 v6, s5
    0x7e0e0300, // v_mov_b32 v7, v0
    0xdc7c8010, 0x00000403, // global_store_dwordx4 v3, v[4:7], s[0:1] offset:16
    0xbf8a0000, // s_barrier
    0xbf810000, // s_endpgm
];

/// Returns what the work-items of a grid write, in ascending order.
fn expected(items: [u32; 3], group: [u32; 3]) -> Vec<[u32; 4]> {
    let mut all = Vec::new();
    for z in 0..items[2] {
        for y in 0..items[1] {
            for x in 0..items[0] {
                let at = [x, y, z];
                let id = [0, 1, 2].map(|dimension| at[dimension] / group[dimension]);
                let own = [0, 1, 2].map(|dimension| at[dimension] % group[dimension]);
                let left = |dimension: usize| items[dimension] - id[dimension] * group[dimension];
                let size = [0, 1, 2].map(|dimension| left(dimension).min(group[dimension]));
                let wave = (own[0] + size[0] * (own[1] + size[1] * own[2])) / 64;
                all.push([id[0], id[1], id[2] | wave << 16, own[0] | own[1] << 10 | own[2] << 20]);
            }
        }
    }
    all.sort_unstable();
    all
}

fn check(bench: &Bench, items: [u32; 3], group: [u32; 3]) {
    let expected = expected(items, group);
    let size = GridSize::new(items, group).unwrap();
    assert_eq!((size.items(), size.group()), (items, group));
    // One more than there are work-items.
    let dispatch = bench.dispatch(&WHO, size, 16 * (expected.len() as u64 + 2));
    let memory = Arc::clone(&dispatch.memory);
    bench.run(dispatch, Wishes::default()).unwrap();
    let count = memory.load_u32(0) as usize;
    assert_eq!(count, expected.len(), "{items:?} in groups of {group:?}");
    let mut written = vec![[0; 4]; count];
    written.iter_mut().enumerate().for_each(|(index, words)| memory.load_words(16 + 16 * index, words));
    written.sort_unstable();
    assert_eq!(written, expected, "{items:?} in groups of {group:?}");
}

#[test]
fn every_work_item_is_executed_once_whatever_is_left_at_the_edges() {
    for arch in Arch::ALL {
        let bench = Bench::new(arch);
        for dimension in 0..3 {
            for of_group in [1, 2, 7, 16, 23, 63, 64, 65, 70, 128, 256] {
                for of_items in 1..=70 {
                    // The others have a partial group, too.
                    let (mut items, mut group) = ([3, 3, 3], [2, 2, 2]);
                    (items[dimension], group[dimension]) = (of_items, of_group);
                    check(&bench, items, group);
                }
            }
        }
    }
}

#[test]
fn groups_of_several_waves_may_have_fewer_at_the_edges() {
    let bench = Bench::new(Arch::default());
    for of_group in [128, 192, 200, 1023, 1024] {
        for of_items in (1..=40).map(|step| step * 64).flat_map(|items| [items - 1, items, items + 1]) {
            for dimension in 0..3 {
                let (mut items, mut group) = ([1; 3], [1; 3]);
                (items[dimension], group[dimension]) = (of_items, of_group);
                check(&bench, items, group);
            }
        }
    }
}

#[test]
fn groups_are_counted_and_sizes_without_any_refused() {
    for (items, group, groups, waves) in [
        ([1, 1, 1], [1, 1, 1], 1, 1),
        ([65, 1, 1], [64, 1, 1], 2, 1),
        ([64, 5, 4], [65, 2, 3], 6, 7),
        ([u32::MAX, 1, 1], [1024, 1, 1], 1 << 22, 16),
        ([u32::MAX, u32::MAX, 1], [1, 1, 1], u64::from(u32::MAX) * u64::from(u32::MAX), 1),
        ([u32::MAX; 3], [1, 1, 1], u64::MAX, 1),
    ] {
        let size = GridSize::new(items, group).unwrap();
        assert_eq!((size.groups(), size.waves()), (groups, waves), "{items:?} in groups of {group:?}");
    }
    for dimension in 0..3 {
        let with = |value: u32| std::array::from_fn(|other| if other == dimension { value } else { 2 });
        assert!(GridSize::new(with(0), [1; 3]).is_none());
        assert!(GridSize::new([1; 3], with(0)).is_none());
        assert!(GridSize::new([1; 3], with(256)).is_some());
        assert!(GridSize::new([1; 3], with(257)).is_none());
        assert!(GridSize::new([1; 3], with(u32::MAX)).is_none());
    }
    assert!(GridSize::new([1; 3], [u32::MAX; 3]).is_none());
}
