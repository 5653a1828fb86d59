//! `hipr bench rtt`: round trips of a synchronize.

use super::latency::{self, Latencies, Percentiles};
use super::place::Place;
use super::program::connect;
use super::raw;
use super::report::Goal;
use super::rounds::Subject;
use super::setup::{Setup, first_loop, memory};
use super::transport::Transport;
use hipr_proto::op;

/// Goal: a round trip divided by that of plain sockets, at most.
const RATIO_MAX: f64 = 1.15;
/// Goal: a round trip through shared memory in microseconds, at most.
const SHM_MAX_US: f64 = 5.0;

/// Runs the benchmark and prints its report.
pub(crate) fn run(setup: &Setup) -> Result<(), String> {
    let scene = setup.scene(Place::Apart)?;
    let (workers, peers) = (&scene.workers, &scene.peers);
    let synchronize = |address: &str| -> Result<Subject<'_, Percentiles>, String> {
        let connection = connect(address)?;
        Ok(Subject::new(move |time| {
            let ask = || connection.ask(&op::DeviceSynchronize {}).map_err(|why| why.to_string());
            Ok(Latencies::of_calls(time, ask)?.percentiles())
        }))
    };
    let mut subjects = Vec::new();
    for (_, worker) in workers {
        subjects.push(synchronize(worker.address())?);
    }
    subjects.push(synchronize(peers.contract.address())?);
    subjects.push(if setup.transport == Transport::Shm {
        Subject::new(|time| Ok(raw::word_round_trips(time, scene.core)?.percentiles()))
    } else {
        let mut raw = peers.raw()?;
        raw.answer_pings()?;
        Subject::new(move |time| Ok(Latencies::of_calls(time, || raw.ping())?.percentiles()))
    });
    setup.rounds.measure(&mut subjects)?;

    let [own @ .., contract, raw] = subjects.as_slice() else { return Err("nothing was measured".into()) };
    let (value_goal, ratio_goal) = match setup.transport {
        Transport::Shm => (Goal::AtMost(SHM_MAX_US), Goal::None),
        _ if setup.has_goals() => (Goal::None, Goal::AtMost(RATIO_MAX)),
        _ => (Goal::None, Goal::None),
    };
    let raw_name = match setup.transport {
        Transport::Shm => "a word between two threads that spin",
        _ => "raw ping-pong",
    };
    let mut report = setup.report("rtt", &scene);
    for (index, ((io, _), subject)) in workers.iter().zip(own).enumerate() {
        let mut others = vec![
            (raw_name.to_owned(), raw.samples.as_slice(), ratio_goal),
            (peers.contract_name(), contract.samples.as_slice(), Goal::None),
        ];
        if let Some((name, first)) = first_loop(workers, own, index) {
            others.push((name, first.samples.as_slice(), Goal::AtMost(1.0)));
        }
        report.figures.extend(latency::figures(
            &format!("synchronize, io {io}"),
            &subject.samples,
            value_goal,
            &others,
        ));
    }
    report.figures.extend(memory(workers, Goal::None)?);
    report.print(setup.json)
}
