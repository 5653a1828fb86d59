//! Tests that a kernel has bit-equal results on every SIMD level.

mod session;

use hipr_isa::simd::Level;
use hipr_sim::{Config, Gpu};
use session::{LEVELS, Session, Values};

#[test]
fn kernels_leave_the_same_memory_on_every_level() {
    let x: Vec<u32> = (0..4096u32).map(|i| (i as f32 * 0.37 - 600.0).to_bits()).collect();
    for (optimization, image) in LEVELS {
        let memory = |level: Level| {
            let config = Config { memory_bytes: Some(64 << 20), simd: Some(level), ..Config::default() };
            let gpu = Gpu::new(config).expect("a thread");
            assert_eq!(gpu.simd(), level);
            let mut session = Session::open(&gpu);
            let (from, to) = (session.buffer(&x), session.buffer(&x));
            let saxpy = session.kernel(image, "saxpy");
            let values = Values::new().f32(1.1).u64(from).u64(to).u32(4000);
            session.launch(saxpy, 42, 100, &values).expect("a launch");
            let reduce = session.kernel(image, "reduce");
            let sums = session.malloc(4 * 16);
            session.launch(reduce, 16, 256, &Values::new().u64(from).u64(sums)).expect("a launch");
            session.sync_all().expect("no fault");
            let mut memory = session.read(to, x.len());
            memory.extend(session.read(sums, 16));
            memory
        };
        let on_base = memory(Level::BASE);
        assert_ne!(on_base[..x.len()], x, "the kernel has run");
        for level in Level::available() {
            assert!(memory(level) == on_base, "{optimization} on {level:?}");
        }
    }
}
