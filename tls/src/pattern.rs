//! Names of hosts, and patterns for them.

use std::fmt;
use std::str::FromStr;

/// Maximum length of the names and patterns of one certificate or line together, in bytes.
const PATTERNS_MAX_BYTES: usize = 512;

/// The hosts that a certificate or a line is for: names, addresses and patterns, in which `*` stands for any number of any characters. They
/// are written with commas between them, and upper case letters are as good as lower case ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPatterns(Vec<String>);

impl HostPatterns {
    /// Returns whether one of the patterns stands for this host, which has no port.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.0.iter().any(|pattern| matches(pattern.as_bytes(), host.as_bytes()))
    }
}

impl FromStr for HostPatterns {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:*".contains(&byte);
        if text.len() > PATTERNS_MAX_BYTES {
            return Err("the names of hosts have at most 512 bytes together");
        }
        if text.split(',').any(|name| name.is_empty() || !name.bytes().all(is_good)) {
            return Err(
                "a host's name has letters, digits, dots, dashes, underscores, colons, and * for any characters",
            );
        }
        Ok(Self(text.split(',').map(str::to_ascii_lowercase).collect()))
    }
}

impl fmt::Display for HostPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Returns whether a pattern stands for all of a name. What it takes grows with the product of their lengths at most.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Where to go on when what follows a star does not fit: behind the star, and one byte further in the name.
    let mut star = None;
    while let Some(byte) = name.get(seen) {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                at += 1;
                star = Some((at, seen));
            }
            (Some(wanted), _) if wanted == byte => (at, seen) = (at + 1, seen + 1),
            (_, Some((behind, from))) => {
                (at, seen) = (behind, from + 1);
                star = Some((behind, from + 1));
            }
            _ => return false,
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// Returns the host of `HOST:PORT`; an IPv6 address has no brackets there.
pub fn host_of(host_and_port: &str) -> &str {
    let host = host_and_port.rsplit_once(':').map_or(host_and_port, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (patterns, host, expected) in [
            ("gpu", "gpu", true),
            ("gpu", "GPU", true),
            ("GPU", "gpu", true),
            ("gpu", "gpu1", false),
            ("gpu1", "gpu", false),
            ("*", "", true),
            ("*", "gpu.lab", true),
            ("*.lab", "gpu.lab", true),
            ("*.lab", "a.b.lab", true),
            ("*.lab", "lab", false),
            ("*.lab", "gpu.lab.evil", false),
            ("gpu*.lab", "gpu17.lab", true),
            ("gpu*.lab", "gp.lab", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("*ab", "aab", true),
            ("a**", "a", true),
            ("one,two", "two", true),
            ("one,two", "one,two", false),
            ("10.0.0.*", "10.0.0.7", true),
            ("::1", "::1", true),
        ] {
            assert_eq!(
                patterns.parse::<HostPatterns>().unwrap().matches(host),
                expected,
                "{patterns} {host}"
            );
        }
        // Many stars cost no more than many letters.
        let patterns: HostPatterns = format!("{}b", "a*".repeat(255)).parse().unwrap();
        assert!(!patterns.matches(&"a".repeat(100_000)));
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for wrong in ["", ",", "a,", ",a", "a b", "a/b", "[::1]", "gpu?", "a\n", "ä", &"a".repeat(513)] {
            assert!(wrong.parse::<HostPatterns>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_is_what_is_before_the_port() {
        for (place, host) in
            [("gpu:1", "gpu"), ("gpu", "gpu"), ("[::1]:1", "::1"), ("10.0.0.7:18515", "10.0.0.7"), ("", "")]
        {
            assert_eq!(host_of(place), host);
        }
    }
}
