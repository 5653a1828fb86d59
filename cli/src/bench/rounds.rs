//! Runs the measured subjects in turns, so that disturbances of the machine affect all of them.

use clap::Args;
use std::time::Duration;

/// Number and duration of a benchmark's rounds.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Rounds {
    /// Number of rounds; in each, every subject has one turn.
    #[arg(long = "rounds", value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Length of a turn in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = seconds)]
    pub(crate) seconds: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3600.0 => Ok(seconds),
        _ => Err("the length of a turn must be more than 0 and at most 3600 seconds".into()),
    }
}

/// Something that is measured in turns.
pub(crate) struct Subject<'a, T = f64> {
    turn: Turn<'a, T>,
    /// The results of the turns, one sample per round.
    pub(crate) samples: Vec<T>,
}

type Turn<'a, T> = Box<dyn FnMut(Duration) -> Result<T, String> + 'a>;

impl<'a, T> Subject<'a, T> {
    /// Creates a subject whose `turn` takes about the given time and returns the measurement.
    pub(crate) fn new(turn: impl FnMut(Duration) -> Result<T, String> + 'a) -> Self {
        Self { turn: Box::new(turn), samples: Vec::new() }
    }
}

impl Rounds {
    /// Returns the length of a turn.
    pub(crate) fn turn(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Runs the turns of all subjects, after one short turn each that does not count. Every other round goes backwards, so
    /// that drifts of the machine favour no subject.
    ///
    /// # Errors
    /// The first that a subject has.
    pub(crate) fn measure<'s, 'a: 's, T: 's>(
        &self,
        subjects: impl IntoIterator<Item = &'s mut Subject<'a, T>>,
    ) -> Result<(), String> {
        let mut subjects: Vec<_> = subjects.into_iter().collect();
        for subject in &mut subjects {
            (subject.turn)(self.turn() / 4)?;
        }
        for _ in 0..self.count {
            for subject in &mut subjects {
                let sample = (subject.turn)(self.turn())?;
                subject.samples.push(sample);
            }
            subjects.reverse();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn subjects_take_turns_and_the_first_turns_do_not_count() {
        let order = RefCell::new(Vec::new());
        let subject = |name| {
            let order = &order;
            Subject::new(move |time| {
                order.borrow_mut().push((name, time));
                Ok(f64::from(name))
            })
        };
        let mut subjects = [subject(1), subject(2)];
        Rounds { count: 2, seconds: 4.0 }.measure(&mut subjects).expect("no turn fails");
        let [first, second] = &subjects;
        assert_eq!(
            (first.samples.as_slice(), second.samples.as_slice()),
            ([1.0; 2].as_slice(), [2.0; 2].as_slice())
        );
        let (short, whole) = (Duration::from_secs(1), Duration::from_secs(4));
        let expected = [(1, short), (2, short), (1, whole), (2, whole), (2, whole), (1, whole)];
        assert_eq!(*order.borrow(), expected);
    }

    #[test]
    fn a_failing_subject_ends_the_measurement() {
        let mut subjects = [Subject::new(|_| Ok(())), Subject::new(|_| Err("gone".into()))];
        assert_eq!(Rounds { count: 1, seconds: 1.0 }.measure(&mut subjects), Err("gone".into()));
    }
}
