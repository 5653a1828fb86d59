//! Two-source vector instructions.

mod bench;
use bench::Bench;

#[test]
fn add_wraps_in_active_lanes_only() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| lane as u32);
    bench.fill(2, |_| u32::MAX);
    bench.fill(3, |_| 7);
    bench.wave.set_exec(0xffff_0000_0000_fff1);
    bench.run(&[0x68060501]); // v_add_u32 v3, v1, v2
    for lane in 0..64 {
        let active = 0xffff_0000_0000_fff1u64 >> lane & 1 == 1;
        assert_eq!(
            bench.wave.row(3)[lane],
            if active { (lane as u32).wrapping_sub(1) } else { 7 },
            "lane {lane}"
        );
    }
}
