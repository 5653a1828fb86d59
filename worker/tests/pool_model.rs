//! Memory pools against a model: generated calls on several streams, some of which are held back for a while.
//!
//! The model knows nothing of how pools are kept. It notes every piece of work with the work that it comes behind, and judges from
//! that alone: memory is never given out while somebody has it or while work may still touch it; it is given out again where HIP
//! promises that; a trim and a synchronization take what is done with and nothing else; the pool's numbers are what follows.

mod common;

use std::collections::BTreeSet;

use common::*;
use hipr_proto::Wire;
use hipr_proto::op::*;
use hipr_worker::device::script::Script;

const SEEDS: u64 = 6;
const STEPS: u32 = 250;
const UNIT: u64 = 1024;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Null,
    Blocking,
    Free,
}

struct Stream {
    handle: u64,
    kind: Kind,
    is_held: bool,
    is_gone: bool,
    last: Option<usize>,
}

struct Work {
    stream: usize,
    behind: Vec<usize>,
    is_done: bool,
}

#[derive(Clone)]
struct Block {
    pool: usize,
    base: u64,
    len_bytes: u64,
    asked_bytes: u64,
    value: u8,
    owner: usize,
    /// Work that touched it.
    uses: Vec<usize>,
    /// The stream that it was freed on, and that work.
    freed: Option<(usize, usize)>,
}

#[derive(Default)]
struct Pool {
    handle: u64,
    threshold: u64,
    follows: bool,
    opportunistic: bool,
    reserved_high: u64,
    used_high: u64,
    /// What was reserved and in use when the highest values were last noted.
    reserved_before: u64,
    used_before: u64,
}

struct Model {
    streams: Vec<Stream>,
    works: Vec<Work>,
    pools: Vec<Pool>,
    live: Vec<Block>,
    /// In the order of the frees.
    idle: Vec<Block>,
    events: Vec<(u64, usize)>,
    reused: usize,
    reused_behind_events: usize,
    fresh: usize,
}

impl Model {
    fn orders(&self, first: usize, second: usize) -> bool {
        let (a, b) = (self.streams[first].kind, self.streams[second].kind);
        first == second || ((a == Kind::Null || b == Kind::Null) && a != Kind::Free && b != Kind::Free)
    }

    /// The last work of each stream that new work on `stream` comes behind.
    fn fronts(&self, stream: usize) -> Vec<usize> {
        let ordered = (0..self.streams.len()).filter(|&other| self.orders(other, stream));
        ordered.filter_map(|other| self.streams[other].last).collect()
    }

    fn enqueue(&mut self, stream: usize, extra: Option<usize>) -> usize {
        let mut behind = self.fronts(stream);
        behind.extend(extra);
        self.works.push(Work { stream, behind, is_done: false });
        self.streams[stream].last = Some(self.works.len() - 1);
        self.settle();
        self.works.len() - 1
    }

    fn settle(&mut self) {
        for at in 0..self.works.len() {
            let work = &self.works[at];
            let is_done = !self.streams[work.stream].is_held
                && work.behind.iter().all(|&other| self.works[other].is_done);
            self.works[at].is_done |= is_done;
        }
    }

    /// Whether all of this is done, or new work on `stream` comes behind it.
    fn comes_behind(&self, stream: usize, works: &[usize]) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = self.fronts(stream);
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                open.extend(&self.works[at].behind);
            }
        }
        works.iter().all(|at| self.works[*at].is_done || seen.contains(at))
    }

    fn reserved(&self, pool: usize) -> u64 {
        self.live
            .iter()
            .chain(&self.idle)
            .filter(|block| block.pool == pool)
            .map(|block| block.len_bytes)
            .sum()
    }

    fn used(&self, pool: usize) -> u64 {
        self.live.iter().filter(|block| block.pool == pool).map(|block| block.asked_bytes).sum()
    }

    /// Takes what is done with from the pool until it holds no more than that.
    fn release_above(&mut self, pool: usize, max_bytes: u64) {
        let mut at = 0;
        while at < self.idle.len() && self.reserved(pool) > max_bytes {
            let (stream, free) = self.idle[at].freed.expect("it was freed");
            if self.idle[at].pool == pool && self.works[free].is_done {
                self.idle.remove(at);
                // Its memory goes back in the order of a stream.
                match self.streams[stream].is_gone {
                    false => self.enqueue(stream, None),
                    true => {
                        self.enqueue(PER_THREAD, Some(free));
                        self.enqueue(PER_THREAD, None)
                    }
                };
            } else {
                at += 1;
            }
        }
    }

    fn synchronized(&mut self) {
        for pool in 0..self.pools.len() {
            self.release_above(pool, self.pools[pool].threshold);
        }
    }

    fn note_highs(&mut self) {
        for pool in 0..self.pools.len() {
            let (reserved, used) = (self.reserved(pool), self.used(pool));
            let pool = &mut self.pools[pool];
            // What does not rise marks nothing: a mark that was set back stays 0.
            if reserved > pool.reserved_before {
                pool.reserved_high = pool.reserved_high.max(reserved);
            }
            if used > pool.used_before {
                pool.used_high = pool.used_high.max(used);
            }
            (pool.reserved_before, pool.used_before) = (reserved, used);
        }
    }
}

const PER_THREAD: usize = 1;

/// A client and the model of what it should see.
struct Run {
    peer: Peer,
    script: Script,
    context: usize,
    rng: Rng,
    model: Model,
}

impl Run {
    fn new(mut peer: Peer, script: Script, context: usize, seed: u64) -> Self {
        let stream = |handle, kind| Stream { handle, kind, is_held: false, is_gone: false, last: None };
        let streams = vec![stream(0, Kind::Null), stream(2, Kind::Blocking)];
        let pools = (0..2)
            .map(|_| {
                let create = MemPoolCreate { alloc_type: 1, location_type: 1, ..MemPoolCreate::ZERO };
                let handle = peer.call(&create).unwrap().mem_pool;
                Pool { handle, follows: true, opportunistic: true, ..Pool::default() }
            })
            .collect();
        let (works, live, idle, events) = Default::default();
        let model =
            Model { streams, works, pools, live, idle, events, reused: 0, reused_behind_events: 0, fresh: 0 };
        let mut run = Self { peer, script, context, rng: Rng(seed), model };
        for kind in [Kind::Blocking, Kind::Blocking, Kind::Free, Kind::Free] {
            run.add_stream(kind);
        }
        run
    }

    fn add_stream(&mut self, kind: Kind) {
        let flags = if kind == Kind::Free { 1 } else { 0 };
        let create = StreamCreateWithFlags(StreamCreate { flags, priority: 0 });
        let handle = self.peer.call(&create).unwrap().stream;
        self.model.streams.push(Stream { handle, kind, is_held: false, is_gone: false, last: None });
    }

    fn stream(&mut self) -> usize {
        loop {
            let stream = self.rng.below(self.model.streams.len());
            if !self.model.streams[stream].is_gone {
                return stream;
            }
        }
    }

    fn handle(&self, stream: usize) -> u64 {
        self.model.streams[stream].handle
    }

    /// Fills a block with its value.
    fn touch(&mut self, at: usize) {
        let Block { base, asked_bytes, value, owner, .. } = self.model.live[at];
        let fill = Memset { dst: base, value: value.into(), size: asked_bytes, stream: self.handle(owner) };
        self.peer.call(&fill).unwrap();
        let work = self.model.enqueue(owner, None);
        self.model.live[at].uses.push(work);
    }

    fn take(&mut self) {
        let (stream, pool) = (self.stream(), self.rng.below(2));
        let asked_bytes = UNIT * [2, 3, 4, 8][self.rng.below(4)] - self.rng.below(2) as u64;
        let request = MallocFromPoolAsync {
            size: asked_bytes,
            mem_pool: self.model.pools[pool].handle,
            stream: self.handle(stream),
        };
        let base = self.peer.call(&request).unwrap().device_ptr;
        let model = &mut self.model;
        let Pool { follows, opportunistic, .. } = model.pools[pool];
        let fits = |block: &Block| {
            block.pool == pool && block.len_bytes >= asked_bytes && block.len_bytes <= 2 * asked_bytes
        };
        let is_promised = model.idle.iter().any(|block| {
            let (freed_on, free) = block.freed.expect("it was freed");
            fits(block) && (freed_on == stream || (opportunistic && model.works[free].is_done))
        });
        let place = model.idle.iter().position(|block| block.base == base);
        let mut block = match place {
            Some(place) => {
                let block = model.idle.remove(place);
                let (freed_on, free) = block.freed.expect("it was freed");
                assert!(fits(&block), "a block of {} bytes for {asked_bytes}", block.len_bytes);
                assert!(model.comes_behind(stream, &block.uses), "work may still touch the memory");
                let is_same = freed_on == stream;
                let is_done = opportunistic && model.works[free].is_done;
                assert!(is_same || is_done || follows, "the pool does not allow that");
                model.reused += 1;
                model.reused_behind_events += usize::from(!is_same && !is_done);
                block
            }
            None => {
                assert!(!is_promised, "memory is held that the stream may use");
                model.fresh += 1;
                let (len_bytes, uses) = (asked_bytes, Vec::new());
                Block { pool, base, len_bytes, asked_bytes, value: 0, owner: stream, uses, freed: None }
            }
        };
        for other in model.live.iter().chain(&model.idle) {
            let overlaps =
                block.base < other.base + other.len_bytes && other.base < block.base + block.len_bytes;
            assert!(!overlaps, "memory is given out twice");
        }
        block = Block { asked_bytes, value: self.rng.below(256) as u8, owner: stream, freed: None, ..block };
        model.live.push(block);
        self.touch(self.model.live.len() - 1);
    }

    /// Frees a block on its stream, or on another one that waits for it.
    fn give(&mut self) {
        if self.model.live.is_empty() {
            return;
        }
        let at = self.rng.below(self.model.live.len());
        let owner = self.model.live[at].owner;
        let mut stream = owner;
        if self.rng.below(3) == 0 || self.model.streams[owner].is_gone {
            stream = self.stream();
            if stream != owner {
                let uses = self.model.live[at].uses.clone();
                if !self.model.streams[owner].is_gone {
                    self.link(owner, stream);
                }
                if !self.model.comes_behind(stream, &uses) {
                    return;
                }
            }
        }
        let mut block = self.model.live.remove(at);
        self.peer.call(&FreeAsync { device_ptr: block.base, stream: self.handle(stream) }).unwrap();
        let free = self.model.enqueue(stream, None);
        block.uses.push(free);
        block.freed = Some((stream, free));
        self.model.idle.push(block);
    }

    fn record(&mut self, stream: usize) {
        let event = self.peer.event_create();
        self.peer.call(&EventRecord { event, stream: self.handle(stream) }).unwrap();
        let work = self.model.enqueue(stream, None);
        self.model.events.push((event, work));
    }

    fn wait(&mut self, stream: usize, at: usize) {
        let (event, work) = self.model.events[at];
        self.peer.call(&StreamWaitEvent { stream: self.handle(stream), event, flags: 0 }).unwrap();
        self.model.enqueue(stream, Some(work));
    }

    fn link(&mut self, first: usize, second: usize) {
        self.record(first);
        self.wait(second, self.model.events.len() - 1);
        let (event, _) = self.model.events.pop().expect("it was recorded");
        self.peer.call(&EventDestroy { event }).unwrap();
    }

    fn hold(&mut self) {
        let stream = self.stream();
        self.model.streams[stream].is_held = true;
        self.script.hold(self.context, self.handle(stream));
    }

    fn let_go(&mut self, stream: usize) {
        self.model.streams[stream].is_held = false;
        self.model.settle();
        self.script.release(self.context, self.handle(stream));
    }

    /// Synchronizes a stream or the device, unless that would not end.
    fn synchronize(&mut self) {
        let whole = self.rng.below(3) == 0;
        let stream = self.stream();
        let is_null = self.model.streams[stream].kind == Kind::Null;
        let covers = |other: usize| whole || other == stream || (is_null && self.model.orders(other, stream));
        if self.model.works.iter().any(|work| !work.is_done && covers(work.stream)) {
            return;
        }
        match whole {
            true => self.peer.call(&DeviceSynchronize {}).unwrap(),
            false => self.peer.call(&StreamSynchronize { stream: self.handle(stream) }).unwrap(),
        }
        self.model.synchronized();
    }

    fn trim(&mut self) {
        let (pool, min_bytes_to_hold) = (self.rng.below(2), UNIT * self.rng.below(30) as u64);
        let mem_pool = self.model.pools[pool].handle;
        self.peer.call(&MemPoolTrimTo { mem_pool, min_bytes_to_hold }).unwrap();
        self.model.release_above(pool, min_bytes_to_hold);
    }

    fn set(&mut self) {
        let at = self.rng.below(2);
        let (attr, value) = match self.rng.below(5) {
            0 => (1, self.rng.below(2) as u64),
            1 => (2, self.rng.below(2) as u64),
            2 => (4, [0, 20 * UNIT, u64::MAX][self.rng.below(3)]),
            3 => (6, 0),
            _ => (8, 0),
        };
        let pool = &mut self.model.pools[at];
        match attr {
            1 => pool.follows = value != 0,
            2 => pool.opportunistic = value != 0,
            4 => pool.threshold = value,
            6 => pool.reserved_high = 0,
            _ => pool.used_high = 0,
        }
        let request = MemPoolSetAttribute { mem_pool: pool.handle, attr, reserved: 0, value };
        self.peer.call(&request).unwrap();
    }

    /// A stream goes and another comes; those that are always there stay, and those that have work to do.
    fn replace_stream(&mut self) {
        let stream = self.stream();
        let Stream { handle, kind, is_held, last, .. } = self.model.streams[stream];
        if handle > 2 && !is_held && last.is_none_or(|last| self.model.works[last].is_done) {
            self.peer.call(&StreamDestroy { stream: handle }).unwrap();
            self.model.streams[stream].is_gone = true;
            self.add_stream(kind);
        }
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0..=5 => self.take(),
            6..=9 => self.give(),
            10 => {
                let (first, second) = (self.stream(), self.stream());
                self.link(first, second);
            }
            11 if self.model.events.len() < 4 => {
                let stream = self.stream();
                self.record(stream);
            }
            12 if !self.model.events.is_empty() => {
                let (stream, at) = (self.stream(), self.rng.below(self.model.events.len()));
                self.wait(stream, at);
            }
            13 => self.hold(),
            14 | 15 => {
                let stream = self.stream();
                self.let_go(stream);
            }
            16 => self.synchronize(),
            17 => self.trim(),
            18 => self.set(),
            19 if self.rng.below(4) == 0 => self.replace_stream(),
            _ if !self.model.live.is_empty() => {
                let at = self.rng.below(self.model.live.len());
                if !self.model.streams[self.model.live[at].owner].is_gone {
                    self.touch(at);
                }
            }
            _ => {}
        }
        self.model.note_highs();
        for at in 0..2 {
            let pool = &self.model.pools[at];
            let wanted = [self.model.reserved(at), pool.reserved_high, self.model.used(at), pool.used_high];
            let numbers = [5, 6, 7, 8].map(|attr| {
                let request = MemPoolGetAttribute { mem_pool: self.model.pools[at].handle, attr };
                self.peer.call(&request).unwrap().value
            });
            assert_eq!(numbers, wanted, "reserved, its highest, used, its highest of pool {at}");
        }
    }

    /// All work is done: what is allocated has its bytes, and the device has what is allocated and held, and no more.
    fn finish(mut self) -> [usize; 3] {
        for stream in 0..self.model.streams.len() {
            self.let_go(stream);
        }
        assert!(self.model.works.iter().all(|work| work.is_done));
        self.peer.call(&DeviceSynchronize {}).unwrap();
        self.model.synchronized();
        for block in &self.model.live {
            let bytes = self.peer.d2h(block.base, block.asked_bytes, 0).unwrap();
            assert!(bytes.iter().all(|&byte| byte == block.value), "memory that is in use was written");
        }
        assert_eq!(self.script.live().allocations, self.model.live.len() + self.model.idle.len());
        [self.model.reused, self.model.reused_behind_events, self.model.fresh]
    }
}

#[test]
fn pools_do_as_the_model() {
    let mut seen = [0; 3];
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let (worker, script) = scripted(|_| {});
        let mut run = Run::new(Peer::hello(worker.local_addr()), script, 0, seed);
        (0..STEPS).for_each(|_| run.step());
        for (sum, number) in seen.iter_mut().zip(run.finish()) {
            *sum += number;
        }
    }
    println!("used again {}, of that only behind events {}, fresh {}", seen[0], seen[1], seen[2]);
    assert!(seen.iter().all(|&number| number > SEEDS as usize / 2), "{seen:?}: the runs reach too little");
}
