//! Tests of the limit on the instructions of a launch: endless kernels are ended, and others are not affected.

mod session;

use std::io;
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hipr_proto::{HipError, HipResult};
use hipr_sim::{Config, Gpu};
use session::{LEVELS, Session, Values};

fn limited(threads: usize, instructions: u64) -> Gpu {
    let config = Config {
        threads: NonZero::new(threads),
        memory_bytes: Some(256 << 20),
        kernel_instructions_max: Some(instructions),
        ..Config::default()
    };
    Gpu::new(config).unwrap()
}

/// Opens a session of a GPU with this limit on a launch's time, and launches a kernel of seven groups that does not end.
fn spinning(timeout: Duration) -> Session {
    let kernel_timeout = Some(timeout);
    let memory_bytes = Some(256 << 20);
    let gpu = Gpu::new(Config { memory_bytes, kernel_timeout, ..Config::default() }).unwrap();
    let mut session = Session::open(&gpu);
    let spin = session.kernel(LEVELS[1].1, "spin");
    let never = session.buffer(&[0]);
    session.launch(spin, 7, 256, &Values::new().u64(never)).unwrap();
    session
}

#[test]
fn an_endless_kernel_ends_when_its_time_is_over() {
    let mut session = spinning(Duration::from_millis(20));
    assert_eq!(session.sync_all(), Err(HipError::LAUNCH_TIME_OUT));
    assert_eq!(session.sync_all(), Ok(()), "reported once");
}

/// What the log of the process says.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
#[ignore = "takes 11 seconds"]
fn the_log_says_once_that_a_kernel_runs_for_long() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
    let mut session = spinning(Duration::from_secs(11));
    assert_eq!(session.sync_all(), Err(HipError::LAUNCH_TIME_OUT));
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("a kernel still runs")).collect();
    let says = |what: &str| lines.iter().all(|line| line.contains(what));
    assert!(lines.len() == 1 && says("kernel=\"spin\"") && says("ended_groups=0 groups=7"), "{text}");
}

#[test]
fn an_endless_kernel_ends_at_the_limit_and_the_next_one_runs() {
    for threads in [1, 2] {
        let gpu = limited(threads, 200_000);
        for (level, image) in LEVELS {
            let mut session = Session::open(&gpu);
            let (spin, locked) = (session.kernel(image, "spin"), session.kernel(image, "locked"));
            let narrow = session.kernel(image, "narrow");
            let (never, taken, value) = (session.buffer(&[0]), session.buffer(&[1]), session.buffer(&[0]));
            let out = session.malloc(256);
            for round in 0..2 {
                session.launch(spin, 7, 256, &Values::new().u64(never)).unwrap();
                session.launch(narrow, 1, 64, &Values::new().u64(out)).unwrap();
                assert_eq!(session.sync_all(), Err(HipError::LAUNCH_TIME_OUT), "{level} {round}");
                session.launch(locked, 3, 64, &Values::new().u64(taken).u64(value)).unwrap();
                assert_eq!(session.sync_all(), Err(HipError::LAUNCH_TIME_OUT), "{level} {round}");
            }
            assert_eq!(session.read(out, 64), vec![1; 64], "{level}");
            assert_eq!(session.read(value, 1), [0], "{level}");
        }
    }
}

/// Runs ten groups of four waves that wait for each other at barriers, with a limit on instructions.
fn reduce(image: &[u8], instructions: u64) -> HipResult<()> {
    let gpu = limited(1, instructions);
    let mut session = Session::open(&gpu);
    let kernel = session.kernel(image, "reduce");
    let (x, out) = (session.buffer(&[1; 2560]), session.malloc(40));
    session.launch(kernel, 10, 256, &Values::new().u64(x).u64(out))?;
    session.sync_all()
}

#[test]
fn on_one_thread_the_limit_is_exact() {
    for (level, image) in LEVELS {
        let (mut enough, mut short) = (1 << 20, 0);
        assert_eq!(reduce(image, enough), Ok(()), "{level}");
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            match reduce(image, middle) {
                Ok(()) => enough = middle,
                Err(error) => {
                    assert_eq!(error, HipError::LAUNCH_TIME_OUT, "{level} {middle}");
                    short = middle;
                }
            }
        }
        // Each of 40 waves executes the same number, and all of them meet; the first one has a little more to do.
        assert!(enough > 40 * 20, "{level} {enough}");
        for _ in 0..3 {
            assert_eq!(reduce(image, enough), Ok(()), "{level}");
            assert_eq!(reduce(image, enough - 1), Err(HipError::LAUNCH_TIME_OUT), "{level}");
        }
    }
}
