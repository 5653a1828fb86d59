//! What of a flood of lines is written.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Time in which a kind of line may have [`BYTES_MAX`].
const WHILE: Duration = Duration::from_secs(10);
/// Maximum bytes of a kind's lines in that time.
const BYTES_MAX: usize = 32 << 10;

/// Decides which lines are written: of equal lines behind each other the first, and each time that their number has doubled; of a kind as
/// many as its bytes allow.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    kinds: BTreeMap<usize, Kind>,
}

#[derive(Debug, Default)]
struct Kind {
    /// Hash of the last line, and how often it came.
    last: u64,
    times: u64,
    /// Number of the time span that the following belong to.
    span: u64,
    bytes: usize,
    left_out: u64,
}

impl Limiter {
    /// Returns the lines that are to be written instead of a line of a kind, `now` after the start.
    pub(crate) fn admit(&mut self, kind: usize, text: &str, now: Duration) -> Vec<String> {
        let kind = self.kinds.entry(kind).or_default();
        let mut said = Vec::new();
        let span = now.as_secs() / WHILE.as_secs();
        if span != kind.span {
            if kind.left_out > 0 {
                said.push(format!("({} lines like the following were left out)", kind.left_out));
            }
            (kind.span, kind.bytes, kind.left_out) = (span, 0, 0);
        }
        // Always with the same keys: others would be kept in thread-local storage.
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        kind.times = if kind.last == hash { kind.times.saturating_add(1) } else { 1 };
        kind.last = hash;
        if !kind.times.is_power_of_two() {
            return said;
        }
        let line = if kind.times == 1 { text.to_owned() } else { format!("{text} ({} times)", kind.times) };
        if kind.bytes + line.len() <= BYTES_MAX {
            kind.bytes += line.len();
            said.push(line);
        } else {
            kind.left_out += 1;
            if kind.left_out == 1 {
                said.push("(more lines like the one before are left out for a while)".to_owned());
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_counted() {
        let mut limiter = Limiter::default();
        let said: Vec<String> =
            (0..1000).flat_map(|at| limiter.admit(1, "the same", Duration::from_secs(at))).collect();
        assert_eq!(said.len(), 10, "{said:?}");
        assert_eq!((&*said[0], &*said[9]), ("the same", "the same (512 times)"));
        assert_eq!(limiter.admit(1, "another", Duration::ZERO), ["another"]);
        assert_eq!(limiter.admit(1, "the same", Duration::ZERO), ["the same"]);
        assert_eq!(limiter.admit(2, "the same", Duration::ZERO), ["the same"], "kinds are told apart");
    }

    #[test]
    fn a_kind_has_so_many_bytes_in_a_while() {
        let mut limiter = Limiter::default();
        let text = |at: u64| format!("{at:0100}");
        let said: Vec<String> =
            (0..100_000).flat_map(|at| limiter.admit(1, &text(at), Duration::ZERO)).collect();
        let bytes: usize = said.iter().map(String::len).sum();
        assert!((BYTES_MAX - 100..BYTES_MAX + 100).contains(&bytes), "{bytes}");
        assert_eq!(limiter.admit(2, "others are heard", Duration::ZERO), ["others are heard"]);
        let later = limiter.admit(1, "later", WHILE);
        let left_out = 100_000 - (said.len() - 1);
        assert_eq!(
            later,
            [format!("({left_out} lines like the following were left out)"), "later".to_owned()]
        );
    }
}
