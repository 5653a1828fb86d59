//! Findings that are known and not reported.

use std::fs;
use std::path::Path;

use hipr_check::Kind;

use super::finding::Described;

/// A line of a file of suppressions: `KIND [KERNEL [FILE[:LINE]]]`, with `*` for any text in each.
#[derive(Debug, PartialEq, Eq)]
struct Suppression {
    line: usize,
    text: String,
    kind: String,
    kernel: String,
    place: String,
}

/// The lines of a file of suppressions.
#[derive(Debug, Default)]
pub(super) struct Suppressions(Vec<Suppression>);

/// A line that has suppressed nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unused {
    pub(super) line: usize,
    pub(super) text: String,
}

/// What was suppressed.
#[derive(Debug, Default)]
pub(super) struct Suppressed {
    /// The number of findings.
    pub(super) count: usize,
    pub(super) unused: Vec<Unused>,
}

impl Suppressions {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or a line is none: says which.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        Self::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or("").trim();
            let mut words = text.split_whitespace();
            let Some(kind) = words.next() else { continue };
            let [kernel, place] = [words.next(), words.next()].map(|word| word.unwrap_or("*").to_owned());
            if let Some(word) = words.next() {
                return Err(format!(
                    "line {number}: '{word}' is too much; a line is KIND [KERNEL [FILE[:LINE]]]"
                ));
            }
            if !kind.contains('*') && !Kind::ALL.iter().any(|known| known.name() == kind) {
                let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                return Err(format!(
                    "line {number}: '{kind}' is no kind of finding; choose from {}",
                    known.join(", ")
                ));
            }
            all.push(Suppression {
                line: number,
                text: text.to_owned(),
                kind: kind.to_owned(),
                kernel,
                place,
            });
        }
        Ok(Self(all))
    }

    /// Takes out the findings that are suppressed.
    pub(super) fn apply(&self, findings: Vec<Described>) -> (Vec<Described>, Suppressed) {
        let mut used = vec![false; self.0.len()];
        let all = findings.len();
        let left: Vec<_> = findings
            .into_iter()
            .filter(|found| match self.0.iter().position(|suppression| suppression.has(found)) {
                Some(index) => {
                    used[index] = true;
                    false
                }
                None => true,
            })
            .collect();
        let unused = self.0.iter().zip(used).filter(|(_, used)| !used);
        let unused = unused.map(|(line, _)| Unused { line: line.line, text: line.text.clone() }).collect();
        let count = all - left.len();
        (left, Suppressed { count, unused })
    }
}

impl Suppression {
    fn has(&self, found: &Described) -> bool {
        let finding = &found.finding;
        let symbol = finding.place.as_ref().map_or("", |place| &place.kernel);
        let kernel = found.kernel().unwrap_or_default();
        let name = kernel.split('(').next().unwrap_or("");
        let is_at = |frame: &hipr_lines::Frame| {
            let file = frame.file.as_deref().unwrap_or("");
            let base = file.rsplit('/').next().unwrap_or("");
            [file, base]
                .iter()
                .any(|file| fits(&self.place, file) || fits(&self.place, &format!("{file}:{}", frame.line)))
        };
        fits(&self.kind, finding.kind.name())
            && (self.kernel == "*" || [symbol, &*kernel, name].iter().any(|name| fits(&self.kernel, name)))
            && (self.place == "*" || found.frames().iter().any(is_at))
    }
}

/// Returns whether `text` is `pattern`, in which `*` is for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_are_for_any_text() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a"),
            ("a*", "ab"),
            ("*b", "ab"),
            ("a*c", "abc"),
            ("a*b*c", "a1b2c"),
            ("a", "a"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*c", "ab"), ("*b", "ba"), ("a*a", "a"), ("", "a")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn lines_that_are_none_are_refused_with_their_numbers() {
        assert_eq!(
            Suppressions::parse("# all\n\nblock-race reduce* a.hip:7 # known\nleak").map(|all| all.0.len()),
            Ok(2)
        );
        assert!(
            Suppressions::parse("\nrace")
                .is_err_and(|why| why.contains("line 2") && why.contains("block-race"))
        );
        assert!(Suppressions::parse("leak a b c").is_err_and(|why| why.contains("'c'")));
    }
}
