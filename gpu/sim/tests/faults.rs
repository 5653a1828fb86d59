//! Tests of the log of a failed kernel: one line names the fault, the address and the kernel.

#[path = "session/mod.rs"]
mod session;

use std::io::Write;
use std::sync::{Arc, Mutex};

use session::{LEVELS, Session, Values, gpu};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

#[test]
fn a_failed_kernel_is_described_in_one_line() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::ERROR)
        .with_writer(move || writer.clone())
        .init();
    let gpu = gpu(2);
    let mut session = Session::open(&gpu);
    let ptr = session.malloc(64);
    for (level, image) in LEVELS {
        let (wild, refuse) = (session.kernel(image, "wild"), session.kernel(image, "refuse"));
        session.launch(wild, 1, 64, &Values::new().u64(ptr).u64(0x10_0000)).unwrap();
        session.sync_all().unwrap_err();
        let text = log.take();
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in ["wild", &format!("{:#x}", ptr + 0x10_0000), "lane 5", "pc 0x"] {
            assert!(text.contains(part), "{level}: {part} in {text}");
        }
        session.launch(refuse, 1, 64, &Values::new()).unwrap();
        session.sync_all().unwrap_err();
        let text = log.take();
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in ["refuse", "bfff0000", "pc 0x"] {
            assert!(text.contains(part), "{level}: {part} in {text}");
        }
    }
}
