//! Runs seeds of the shim world, and checks what they cover.

use std::collections::BTreeSet;

use hipr_testkit::mutation::SHIM_SEEDS;
use hipr_testkit::shim_world::script::{Act, Deed, Target, Tells};
use hipr_testkit::shim_world::trace::{Ask, By, Event, ItemKind, Outcome, Shows};
use hipr_testkit::shim_world::{self, Case};
use hipr_testkit::simulate;

const SEEDS: u64 = 3000;
/// Kinds of memory, of streams, of acts and of outcomes that the first seeds have to contain.
const MET: &str = "Device Pageable Pinned Mapped Elsewhere Managed Registered Legacy PerThread Blocking NonBlocking launch hidden-launch \
    failing-launch refused-work erred told \
    fill set copy synchronous-copy read write wait query device stream event record await function callback open destroy-stream \
    create-stream destroy-event create-event begin-capture end-capture launch-graph destroy-graph deed-read deed-write deed-open deed-pass \
    waits-for-functions not-ready refused captured executed executed-in-the-process executed-in-a-call function-began function-ended passed at-a-gate \
    shows-own shows-later shows-all graph-again Changes Nothing ChangesForAWhile near devices \
    apart executed-across sent";

#[test]
fn the_first_seeds_pass() {
    if let Some((seed, failure)) = simulate::first_failure(0..SEEDS, 2, shim_world::check_seed, |_| {}) {
        panic!("seed {seed}: {}", shim_world::shrink(Case::from_seed(seed), failure));
    }
}

#[test]
fn the_first_seeds_meet_everything_there_is() {
    let mut met = BTreeSet::new();
    let mut meet = |what: &str| {
        met.insert(what.to_owned());
    };
    for seed in 0..SEEDS {
        let case = Case::from_seed(seed);
        case.options.memory.iter().for_each(|kind| meet(&format!("{kind:?}")));
        meet(&format!("{:?}", case.options.tells));
        if case.options.is_near && case.options.memory.iter().any(|kind| kind.is_shared_nearby()) {
            meet("near");
        }
        case.options.streams.iter().for_each(|stream| meet(&format!("{:?}", stream.kind)));
        if case.options.has_several_devices() {
            meet("devices");
        }
        if case.options.are_apart {
            meet("apart");
        }
        for acts in &case.script.0 {
            acts.iter().for_each(|act| meet_act(act, &mut meet));
            let launches = acts.iter().filter(|act| matches!(act, Act::LaunchGraph { graph: 0, .. })).count();
            if launches > 1 {
                meet("graph-again");
            }
        }
        let trace = shim_world::run(&case);
        for event in &trace.events {
            match event {
                Event::Began { ask: Ask::Nothing, .. } => meet("captured"),
                Event::Began { ask: Ask::Work { shows, .. }, .. } => match shows {
                    Shows::Nothing => {}
                    Shows::Own => meet("shows-own"),
                    Shows::Later => meet("shows-later"),
                    Shows::All => meet("shows-all"),
                },
                Event::Waits { .. } => meet("waits-for-functions"),
                Event::Ended { outcome: Outcome::NotReady, .. } => meet("not-ready"),
                Event::Ended { outcome: Outcome::Error(_), .. } => meet("refused"),
                Event::Executed { by, item, .. } => {
                    assert_eq!(trace.items[*item].kind, ItemKind::Work);
                    meet(match by {
                        By::Worker => "executed",
                        By::Process => "executed-in-the-process",
                        By::Call => "executed-in-a-call",
                        By::Across => "executed-across",
                    });
                }
                Event::Sent { .. } => meet("sent"),
                Event::Refused { .. } => meet("refused-work"),
                Event::Erred { .. } => meet("erred"),
                Event::Told { .. } => meet("told"),
                Event::FunctionBegan { .. } => meet("function-began"),
                Event::FunctionEnded { .. } => meet("function-ended"),
                Event::Passed { .. } => meet("passed"),
                Event::Still { at_gate: true, .. } => meet("at-a-gate"),
                _ => {}
            }
        }
    }
    let all: BTreeSet<String> = MET.split_whitespace().map(str::to_owned).collect();
    assert_eq!(all.difference(&met).collect::<Vec<_>>(), [""; 0], "never met");
    assert_eq!(met.difference(&all).collect::<Vec<_>>(), [""; 0], "met, and not in the list");
}

#[test]
fn a_worker_that_clears_a_mark_after_it_has_read_the_page_is_caught() {
    let with_bug = |seed: u64| {
        let mut case = Case::from_seed(seed);
        case.options.tells = Tells::ChangesClearedLate;
        shim_world::check(&case)
    };
    let Some((_, failure)) = simulate::first_failure(0..10 * SHIM_SEEDS, 2, with_bug, |_| {}) else {
        panic!("a store between reading and clearing is lost, and nothing notices");
    };
    // The program misses the store, or sends the page as it was before over it.
    let shows = ["waits_bring_what_work_wrote", "work_is_done_in_order", "no_write_of_the_program_is_lost"];
    assert!(shows.iter().any(|invariant| failure.names(invariant)), "{failure}");
}

fn meet_act(act: &Act, meet: &mut impl FnMut(&str)) {
    match act {
        Act::Launch { named, fails, .. } => {
            meet(if *named { "launch" } else { "hidden-launch" });
            if *fails {
                meet("failing-launch");
            }
        }
        Act::Fill { waits: false, .. } => meet("fill"),
        Act::Fill { .. } => meet("set"),
        Act::Copy { waits: false, .. } => meet("copy"),
        Act::Copy { .. } => meet("synchronous-copy"),
        Act::Read(_) => meet("read"),
        Act::Write(_) => meet("write"),
        Act::Wait(target) | Act::Query(target) => {
            meet(if matches!(act, Act::Wait(_)) { "wait" } else { "query" });
            meet(match target {
                Target::Device(_) => "device",
                Target::Stream(_) => "stream",
                Target::Event(_) => "event",
            });
        }
        Act::Record { .. } => meet("record"),
        Act::Await { .. } => meet("await"),
        Act::Function { is_callback, deeds, .. } => {
            meet(if *is_callback { "callback" } else { "function" });
            for deed in deeds {
                meet(match deed {
                    Deed::Read(_) => "deed-read",
                    Deed::Write(_) => "deed-write",
                    Deed::Open(_) => "deed-open",
                    Deed::Pass(_) => "deed-pass",
                });
            }
        }
        Act::Open(_) => meet("open"),
        Act::DestroyStream(_) => meet("destroy-stream"),
        Act::CreateStream(_) => meet("create-stream"),
        Act::DestroyEvent(_) => meet("destroy-event"),
        Act::CreateEvent(_) => meet("create-event"),
        Act::BeginCapture(_) => meet("begin-capture"),
        Act::EndCapture(_) => meet("end-capture"),
        Act::LaunchGraph { .. } => meet("launch-graph"),
        Act::DestroyGraph(_) => meet("destroy-graph"),
    }
}
