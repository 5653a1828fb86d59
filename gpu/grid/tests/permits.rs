//! Tests who may execute where several processes want the same processors, in a world whose time is a number.

use hipr_grid::permits::{Grant, LEASE, OVERDUE_NS, Permits, others_wait};

const LEASE_NS: u64 = LEASE.as_nanos() as u64;

/// What the threads of a process do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// They always have work, and give way when they have to.
    Works,
    /// They have work for so many nanoseconds, then none for as long.
    Pauses(u64),
    /// They return nothing.
    Stands,
    /// They give way at once, and ask again.
    Flickers,
}

#[derive(Debug)]
struct Process {
    habit: Habit,
    grants: Vec<(Grant, u64)>,
    /// When threads that pause ask again.
    resting: Vec<u64>,
    had_ns: u64,
}

/// Processes that number from 1 on, each with as many threads as there are permits.
struct World {
    permits: Permits,
    processes: Vec<Process>,
    now_ns: u64,
}

const STEP_NS: u64 = 10_000;

impl World {
    /// Creates a world with a process for each tenant, weight and habit.
    fn new(threads: usize, who: &[(u64, u32, Habit)]) -> Self {
        let mut permits = Permits::new(threads);
        for (number, &(tenant, weight, _)) in (1..).zip(who) {
            permits.add(number);
            permits.name(number, tenant, weight);
            (0..threads).for_each(|_| permits.ask(number, 0));
        }
        let new = |habit| Process { habit, grants: Vec::new(), resting: Vec::new(), had_ns: 0 };
        Self { permits, processes: who.iter().map(|&(_, _, habit)| new(habit)).collect(), now_ns: 0 }
    }

    fn step(&mut self) {
        self.now_ns += STEP_NS;
        let now_ns = self.now_ns;
        let waiting = self.permits.waiting();
        for (number, process) in (1..).zip(&mut self.processes) {
            let has_to_go = others_wait(waiting, number);
            let permits = &mut self.permits;
            process.had_ns += STEP_NS * process.grants.len() as u64;
            let resting = &mut process.resting;
            process.grants.retain(|&(grant, since_ns)| {
                let had_ns = now_ns - since_ns;
                match process.habit {
                    Habit::Works if has_to_go && had_ns >= LEASE_NS => permits.take_back(grant, true, now_ns),
                    Habit::Pauses(time_ns) if had_ns >= time_ns => {
                        permits.take_back(grant, false, now_ns);
                        resting.push(now_ns + time_ns);
                    }
                    Habit::Flickers => permits.take_back(grant, true, now_ns),
                    Habit::Works | Habit::Pauses(_) | Habit::Stands => return true,
                }
                false
            });
            resting.retain(|&until_ns| {
                if until_ns <= now_ns {
                    permits.ask(number, now_ns);
                }
                until_ns > now_ns
            });
        }
        self.permits.expire(now_ns);
        while let Some(grant) = self.permits.grant(now_ns) {
            self.processes[grant.process as usize - 1].grants.push((grant, now_ns));
        }
    }

    /// Returns what each process has had after so long.
    fn after(mut self, time_ns: u64) -> Vec<u64> {
        (0..time_ns / STEP_NS).for_each(|_| self.step());
        self.processes.iter().map(|process| process.had_ns).collect()
    }
}

fn near(got: u64, due: u64) -> bool {
    got.abs_diff(due) <= due / 20
}

#[test]
fn tenants_get_time_by_their_weights_and_share_it_among_their_processes() {
    const TIME_NS: u64 = 2_000_000_000;
    for threads in [1, 2, 7] {
        let all_ns = TIME_NS * threads as u64;
        for weights in [[1, 1], [1, 3], [7, 2], [100, 1]] {
            let who = [(101, weights[0], Habit::Works), (102, weights[1], Habit::Works)];
            let had = World::new(threads, &who).after(TIME_NS);
            for (had, weight) in had.iter().zip(weights) {
                let due = all_ns * u64::from(weight) / u64::from(weights[0] + weights[1]);
                assert!(near(*had, due), "{threads} threads, {weights:?}: {had} ns of {due}");
            }
        }
        // Three processes of a tenant beside one of another.
        let had = World::new(threads, &[7, 7, 7, 8].map(|tenant| (tenant, 1, Habit::Works))).after(TIME_NS);
        for (had, parts) in had.iter().zip([6, 6, 6, 2]) {
            assert!(near(*had, all_ns / parts), "{threads} threads: {had} ns of {}", all_ns / parts);
        }
    }
}

#[test]
fn what_one_does_not_want_the_others_have() {
    const TIME_NS: u64 = 2_000_000_000;
    let had = World::new(2, &[(7, 1, Habit::Works), (8, 50, Habit::Pauses(2_000_000))]).after(TIME_NS);
    // Half of its time the second one wants nothing, and what it did not want earlier it does not get later.
    let all_ns = 2 * TIME_NS;
    assert!(had[0] + had[1] > all_ns - all_ns / 50, "{had:?}: no permit lies about");
    assert!(had[0] > all_ns / 3 && had[0] < all_ns * 2 / 3, "{had:?}");
    let alone = World::new(2, &[(7, 1, Habit::Works)]).after(TIME_NS);
    assert!(alone[0] > all_ns - all_ns / 50, "{alone:?}");
}

#[test]
fn who_comes_after_a_long_time_waits_for_no_more_than_a_lease_of_each_other() {
    let mut world = World::new(1, &[(7, 1, Habit::Works), (8, 1, Habit::Pauses(u64::MAX / 4))]);
    // The second one has nothing to do for a second.
    world.step();
    world.processes[1].habit = Habit::Pauses(0);
    (0..200).for_each(|_| world.step());
    world.processes[1].resting.clear();
    (0..100_000).for_each(|_| world.step());
    let begun_ns = world.now_ns;
    world.permits.ask(2, begun_ns);
    while world.processes[1].grants.is_empty() {
        world.step();
        assert!(world.now_ns - begun_ns <= LEASE_NS + 2 * STEP_NS, "it waits");
    }
}

/// One that returns nothing holds others up once, one that only comes and goes takes no more than its share.
#[test]
fn who_was_stopped_or_taken_over_takes_no_more_than_its_share() {
    const TIME_NS: u64 = 4_000_000_000;
    for threads in [1, 2, 5] {
        let all_ns = TIME_NS * threads as u64;
        let had = World::new(threads, &[(7, 1, Habit::Works), (8, 1, Habit::Stands)]).after(TIME_NS);
        let lost_ns = 2 * OVERDUE_NS * threads as u64;
        assert!(
            had[0] >= all_ns - lost_ns,
            "{threads} threads: {} of {all_ns} ns beside one that stands",
            had[0]
        );
        let had = World::new(threads, &[(7, 1, Habit::Works), (8, 1, Habit::Flickers)]).after(TIME_NS);
        assert!(had[0] >= all_ns / 2 - all_ns / 20, "{threads} threads: {} of {all_ns} ns", had[0]);
    }
}

#[test]
fn a_process_that_goes_on_after_it_was_stopped_has_permits_again() {
    let mut world = World::new(1, &[(7, 1, Habit::Works), (8, 1, Habit::Stands)]);
    (0..100_000).for_each(|_| world.step());
    let had_ns = world.processes[0].had_ns;
    world.processes[1].habit = Habit::Works;
    world.processes[1].had_ns = 0;
    (0..100_000).for_each(|_| world.step());
    let had_ns = [world.processes[0].had_ns - had_ns, world.processes[1].had_ns];
    assert!(had_ns.iter().all(|had_ns| near(*had_ns, 500_000_000)), "{had_ns:?}");
}

#[test]
fn what_an_ended_process_had_is_free() {
    for threads in [1, 3] {
        let mut permits = Permits::new(threads);
        (1..=3).for_each(|process| permits.add(process));
        (0..threads).for_each(|_| permits.ask(1, 0));
        assert_eq!((0..=threads).filter_map(|_| permits.grant(0)).count(), threads);
        (2..=3).for_each(|process| permits.ask(process, 1));
        assert!(permits.grant(1).is_none() && others_wait(permits.waiting(), 1));
        permits.end(2, 2);
        permits.end(1, 2);
        permits.end(1, 2);
        assert_eq!(permits.grant(2).map(|grant| grant.process), Some(3), "nothing is given to who has ended");
        assert!(permits.grant(2).is_none() && !permits.is_waited_for());
    }
}

/// Nothing that a process says gives it more permits than there are, or a name after it has begun.
#[test]
fn what_makes_no_sense_changes_nothing() {
    let mut permits = Permits::new(2);
    (1..=2).for_each(|process| permits.add(process));
    (0..1_000_000).for_each(|_| permits.ask(1, 0));
    permits.name(1, 5, 100);
    let first: Vec<_> = std::iter::from_fn(|| permits.grant(0)).collect();
    assert_eq!(first.len(), 2);
    for permit in [7, u32::MAX] {
        permits.take_back(Grant { process: 1, permit }, true, 1);
        permits.take_back(Grant { process: 9, permit: 0 }, true, 1);
    }
    permits.take_back(Grant { process: 2, permit: first[0].permit }, false, 1);
    assert!(permits.grant(1).is_none(), "what it does not have it cannot return");
    permits.ask(2, 1);
    permits.take_back(first[0], true, LEASE_NS);
    permits.take_back(first[0], true, LEASE_NS);
    assert_eq!(permits.grant(LEASE_NS).map(|grant| grant.process), Some(2), "it has weight 1");
    assert!(permits.grant(LEASE_NS).is_none(), "a permit is returned once");
}
