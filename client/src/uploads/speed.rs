//! How fast a link takes bytes, measured by the writes that fill it.

use std::time::{Duration, Instant};

/// Bytes that a socket and the network may hold: as long as these are written nothing is learned.
const FILL_BYTES: u64 = 4 << 20;
/// Bytes after which a measurement is complete.
const MEASURE_BYTES: u64 = 4 << 20;
/// Pause after which the socket may have become empty.
const PAUSE: Duration = Duration::from_millis(5);

/// The speed of a link.
#[derive(Debug, Default)]
pub(crate) struct LinkSpeed {
    end: Option<Instant>,
    /// Bytes written without a pause.
    run_bytes: u64,
    measured_bytes: u64,
    measured: Duration,
    bytes_per_s: Option<f64>,
}

impl LinkSpeed {
    /// Writes shorter than this say nothing and are not noted.
    pub(crate) const WRITE_MIN_BYTES: usize = 256 << 10;

    /// Notes a write of `bytes` that took from `start` to `end`.
    pub(crate) fn note(&mut self, bytes: u64, start: Instant, end: Instant) {
        let before = self.end.filter(|before| start.saturating_duration_since(*before) < PAUSE);
        self.end = Some(end);
        let Some(before) = before else {
            (self.run_bytes, self.measured_bytes, self.measured) = (bytes, 0, Duration::ZERO);
            return;
        };
        if self.run_bytes >= FILL_BYTES {
            self.measured_bytes += bytes;
            self.measured += end.saturating_duration_since(before);
        }
        self.run_bytes += bytes;
        if self.measured_bytes >= MEASURE_BYTES && !self.measured.is_zero() {
            self.bytes_per_s = Some(self.measured_bytes as f64 / self.measured.as_secs_f64());
            (self.measured_bytes, self.measured) = (0, Duration::ZERO);
        }
    }

    /// Notes that bytes were made ready from `start` to `end`, which says nothing of the link and is no pause.
    pub(crate) fn skip(&mut self, start: Instant, end: Instant) {
        let before = self.end.filter(|before| start.saturating_duration_since(*before) < PAUSE);
        self.end = before.map(|_| end);
    }

    /// Returns the bytes that the link takes in a second; None if too few were written at a time.
    pub(crate) fn bytes_per_s(&self) -> Option<f64> {
        self.bytes_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Writes of 1 MiB, each of so many milliseconds, with a pause behind it.
    fn write(speed: &mut LinkSpeed, now: &mut Instant, writes: u32, took_ms: u64, pause_ms: u64) {
        for _ in 0..writes {
            let start = *now;
            *now += Duration::from_millis(took_ms);
            speed.note(MIB, start, *now);
            *now += Duration::from_millis(pause_ms);
        }
    }

    #[test]
    fn what_fills_the_socket_is_not_measured() {
        let (mut speed, mut now) = (LinkSpeed::default(), Instant::now());
        write(&mut speed, &mut now, 7, 0, 0);
        assert_eq!(speed.bytes_per_s(), None);
        write(&mut speed, &mut now, 8, 100, 0);
        let measured = speed.bytes_per_s().expect("measured");
        assert!((9.0e6..1.2e7).contains(&measured), "{measured}");
    }

    #[test]
    fn writes_with_pauses_say_nothing() {
        let (mut speed, mut now) = (LinkSpeed::default(), Instant::now());
        write(&mut speed, &mut now, 100, 10, 5);
        assert_eq!(speed.bytes_per_s(), None);
    }

    #[test]
    fn time_to_make_bytes_ready_says_nothing_of_the_link() {
        let (mut speed, mut now) = (LinkSpeed::default(), Instant::now());
        for _ in 0..20 {
            let start = now;
            now += Duration::from_millis(50);
            speed.skip(start, now);
            write(&mut speed, &mut now, 1, 1, 0);
        }
        assert!(speed.bytes_per_s().is_some_and(|speed| speed > 9e8));
    }

    #[test]
    fn the_last_measurement_counts() {
        let (mut speed, mut now) = (LinkSpeed::default(), Instant::now());
        write(&mut speed, &mut now, 12, 100, 0);
        write(&mut speed, &mut now, 8, 1, 0);
        assert!(speed.bytes_per_s().is_some_and(|speed| speed > 1e9));
    }
}
