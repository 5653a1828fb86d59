#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| hipr_testkit::fuzz::packets(data));
