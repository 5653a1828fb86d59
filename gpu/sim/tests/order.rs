//! Tests what is said of the order of work to those that see it: it does not depend on what is over already.

mod session;

use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::thread;

use hipr_device::{Context as _, Region, WaitFor};
use hipr_grid::{Failure, GridWatch};
use hipr_sim::watch::{Allocated, DeviceWatch, Loaded, Moved, Order, Started};
use hipr_sim::{Config, Gpu};
use session::{Gate, Session};

const BLOCKING: u32 = 0;
const NON_BLOCKING: u32 = 1;

/// Keeps the order of what is filled, by address.
#[derive(Default)]
struct Fills(Mutex<Vec<(u64, Order)>>);

impl Fills {
    fn order(&self, ptr: u64) -> Order {
        let fills = self.0.lock().unwrap();
        fills.iter().find(|(filled, _)| *filled == ptr).expect("it was filled").1.clone()
    }
}

impl DeviceWatch for Fills {
    fn allocated(&self, _memory: &Allocated) {}

    fn freed(&self, _context: u64, _ptr: u64) {}

    fn loaded(&self, _module: &Loaded<'_>) {}

    fn started(&self, _kernel: &Started<'_>) -> Option<Arc<dyn GridWatch>> {
        None
    }

    fn ended(&self, _kernel: &Started<'_>, _failure: Option<&Failure>) {}

    fn moved(&self, _context: u64, order: Option<&Order>, moved: &Moved) {
        if let (Some(order), Moved::Write { dst }) = (order, moved) {
            self.0.lock().unwrap().push((dst.ptr, order.clone()));
        }
    }

    fn closed(&self, _context: u64) {}
}

fn fill(session: &mut Session, ptr: u64, stream: u64) {
    session.context.fill(Region::flat(ptr, 4), 1, 4, stream).unwrap();
}

/// What may order the work of one stream before that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Nothing,
    Stream,
    Event,
    LaterIsNull,
    EarlierIsNull,
    /// A synchronous copy to the device was the earlier work.
    AllBehind,
    WaitForStream,
    WaitForEvent,
    WaitForDevice,
    Query,
    /// A synchronous copy waits for the stream before it writes.
    Ready,
}

impl By {
    const ALL: [Self; 11] = [
        Self::Nothing,
        Self::Stream,
        Self::Event,
        Self::LaterIsNull,
        Self::EarlierIsNull,
        Self::AllBehind,
        Self::WaitForStream,
        Self::WaitForEvent,
        Self::WaitForDevice,
        Self::Query,
        Self::Ready,
    ];

    /// Returns whether it ends only when the earlier work is over.
    fn waits(self) -> bool {
        use By::{Query, Ready, WaitForDevice, WaitForEvent, WaitForStream};
        matches!(self, WaitForStream | WaitForEvent | WaitForDevice | Query | Ready)
    }
}

/// Returns whether later work is said to come behind earlier one, which is over or not when what orders them is asked for.
fn is_behind(by: By, is_over: bool) -> bool {
    let fills = Arc::new(Fills::default());
    let config = Config { threads: NonZero::new(2), memory_bytes: Some(256 << 20), ..Config::default() };
    let watch: Arc<dyn DeviceWatch> = Arc::<Fills>::clone(&fills);
    let gpu = Gpu::watched(config, watch).unwrap();
    let mut session = Session::open(&gpu);
    let [earlier_word, later_word] = [session.buffer(&[0]), session.buffer(&[0])];
    let mut stream = |flags| session.context.stream_create(flags, 0).unwrap();
    let (earlier, later) = match by {
        By::Stream => {
            let only = stream(NON_BLOCKING);
            (only, only)
        }
        By::LaterIsNull => (stream(BLOCKING), 0),
        By::EarlierIsNull => (0, stream(BLOCKING)),
        _ => (stream(NON_BLOCKING), stream(NON_BLOCKING)),
    };
    let event = session.context.event_create(0).unwrap();
    let gate = (!is_over).then(|| Gate::close(&mut session, earlier));
    fill(&mut session, earlier_word, earlier);
    session.context.event_record(event, earlier).unwrap();
    // Nothing but the device says that the work is over: to ask would order what comes after it.
    while is_over && session.context.queued_bytes() > 0 {
        thread::yield_now();
    }
    match by {
        By::Nothing | By::Stream | By::LaterIsNull | By::EarlierIsNull => {}
        By::Event => session.context.stream_wait_event(later, event, 0).unwrap(),
        By::AllBehind => session.context.order_all_behind(earlier).unwrap(),
        By::WaitForStream => session.sync(WaitFor::Stream(earlier)).unwrap(),
        By::WaitForEvent => session.sync(WaitFor::Event(event)).unwrap(),
        By::WaitForDevice => session.sync_all().unwrap(),
        By::Query => session.context.query(WaitFor::Stream(earlier)).unwrap(),
        By::Ready => session.wait(|context| context.poll_ready(earlier)),
    }
    fill(&mut session, later_word, later);
    if let Some(gate) = gate {
        gate.open(&mut session);
    }
    session.sync_all().unwrap();
    let earlier = fills.order(earlier_word);
    fills.order(later_word).is_behind(earlier.stream, earlier.number)
}

#[test]
fn what_orders_work_does_so_whether_or_not_the_earlier_work_is_over() {
    for by in By::ALL {
        for is_over in [true, false] {
            if is_over || !by.waits() {
                assert_eq!(
                    is_behind(by, is_over),
                    by != By::Nothing,
                    "{by:?}, the earlier is over: {is_over}"
                );
            }
        }
    }
}
