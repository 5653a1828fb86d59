//! A HIP program for the latency test: it measures kernels with events. `event-times WAIT` records two events again and again, waits in the way
//! of `WAIT` (`event`, `stream`, `device`, `copy`) and asks for the time between them; `event-times pairs` records all events first, and
//! asks for all times then; `event-times first` asks for the times since the first one. Exits with 0 if the times fit together.

use hip_sys::{Hip, hipEvent_t};
use hipr_tests::add_floats;
use std::process::ExitCode;
use std::ptr::{from_mut, null_mut};

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const LEN: usize = 1 << 16;
const ROUNDS: usize = 20;
const DEVICE_TO_HOST: i32 = 2;

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(&std::env::args().nth(1).unwrap_or_default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("event-times: {why}");
            ExitCode::FAILURE
        }
    }
}

fn done(code: i32) -> Result<(), Failed> {
    if code == 0 { Ok(()) } else { Err(format!("error {code}").into()) }
}

fn run(way: &str) -> Result<(), Failed> {
    let hip = Hip::load()?;
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let (x, y) = (hip.zeroed::<f32>(LEN)?, hip.zeroed::<f32>(LEN)?);
    let create = || {
        let mut event: hipEvent_t = null_mut();
        // SAFETY: the handle is written to `event`.
        done(unsafe { (hip.hipEventCreateWithFlags)(&mut event, 0) }).map(|()| event)
    };
    // SAFETY: the events exist.
    let record = |event| done(unsafe { (hip.hipEventRecord)(event, null_mut()) });
    let elapsed = |start, stop| {
        let mut ms = -1.0;
        // SAFETY: the events exist, and `ms` takes the time.
        done(unsafe { (hip.hipEventElapsedTime)(&mut ms, start, stop) }).map(|()| ms)
    };
    let launch = || {
        // SAFETY: both have so many floats.
        unsafe { add_floats(&saxpy, x.pointer(), y.pointer(), LEN) }
    };
    let mut word = 0u32;
    let mut wait = |event| match way {
        // SAFETY: the event exists.
        "event" => done(unsafe { (hip.hipEventSynchronize)(event) }),
        // SAFETY: the null stream.
        "stream" => done(unsafe { (hip.hipStreamSynchronize)(null_mut()) }),
        "copy" => {
            // SAFETY: `word` has four bytes, as the buffer does.
            done(unsafe { (hip.hipMemcpy)(from_mut(&mut word).cast(), y.pointer(), 4, DEVICE_TO_HOST) })
        }
        _ => Ok(hip.synchronize()?),
    };
    match way {
        "event" | "stream" | "copy" | "device" => {
            let (start, stop) = (create()?, create()?);
            let mut before = -1.0;
            for round in 0..ROUNDS {
                record(start)?;
                (0..1 + round % 2 * 10).try_for_each(|_| launch())?;
                record(stop)?;
                wait(stop)?;
                let ms = elapsed(start, stop)?;
                if ms <= 0.0 || ms == before || elapsed(start, stop)? != ms {
                    return Err(format!("round {round}: {ms} ms after {before} ms").into());
                }
                before = ms;
            }
        }
        _ => {
            let events = (0..ROUNDS).map(|_| create()).collect::<Result<Vec<_>, _>>()?;
            for event in &events {
                record(*event)?;
                launch()?;
            }
            wait(null_mut())?;
            let first = events[0];
            let (mut last, mut sum) = (0.0, 0.0);
            for pair in events.windows(2) {
                let ms =
                    if way == "first" { elapsed(first, pair[1])? - last } else { elapsed(pair[0], pair[1])? };
                if ms <= 0.0 {
                    return Err(format!("{ms} ms after {sum} ms").into());
                }
                (last, sum) = (last + ms, sum + ms);
            }
            let whole = elapsed(first, events[ROUNDS - 1])?;
            if (whole - sum).abs() > whole / 1000.0 {
                return Err(format!("{whole} ms are not {sum} ms").into());
            }
        }
    }
    Ok(())
}
