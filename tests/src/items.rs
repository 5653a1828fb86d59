//! Documented items and texts of the sources, for a reader who judges whether a stranger understands them.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A piece of prose in a source file: the documentation of an item, or a string that users or operators read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prose {
    /// Path of the file, relative to the workspace.
    pub path: PathBuf,
    /// Line where the prose begins, counted from 1.
    pub line: usize,
    /// The first paragraph of the documentation, or the string's content.
    pub text: String,
    /// The code that it belongs to: the line that declares the item, or the line that contains the string.
    pub code: String,
}

impl Prose {
    /// Returns the first sentence of [`text`](Self::text).
    pub fn first_sentence(&self) -> &str {
        let ends = self.text.match_indices(['.', '!', '?']).map(|(at, end)| at + end.len());
        let first = ends.filter_map(|end| self.text.split_at_checked(end)).find(|(head, rest)| {
            let next = rest.chars().find(|c| !matches!(c, ')' | '`'));
            let is_abbreviation = head.ends_with("e.g.") || head.ends_with("i.e.") || head.ends_with("..");
            next.is_none_or(|c| c.is_whitespace()) && !is_abbreviation
        });
        first.map_or(&self.text, |(head, _)| head)
    }
}

impl fmt::Display for Prose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}\n    {}\n    > {}", self.path.display(), self.line, self.code, self.first_sentence())
    }
}

/// Collects the prose of all Rust files of the workspace at `root`, sorted by path and line.
///
/// Documentation is collected everywhere, strings of at least three words only outside of tests, benchmarks and examples.
///
/// # Errors
/// Fails when a folder or file cannot be read.
pub fn collect(root: &Path) -> io::Result<Vec<Prose>> {
    let mut files = Vec::new();
    find_rust_files(root, &mut files)?;
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file)?;
        let path = file.strip_prefix(root).unwrap_or(&file);
        let mut found = documentation(path, &source);
        if !path.iter().any(|part| part == "tests" || part == "benches" || part == "examples") {
            found.extend(strings(path, &source));
        }
        found.sort_by_key(|prose| prose.line);
        all.extend(found);
    }
    Ok(all)
}

/// Draws `count` different entries of `all`, the same for the same `seed`.
pub fn draw(mut all: Vec<Prose>, seed: u64, count: usize) -> Vec<Prose> {
    let mut state = seed;
    let count = count.min(all.len());
    for to in 0..count {
        let from = to + (next_random(&mut state) % (all.len() - to) as u64) as usize;
        all.swap(to, from);
    }
    all.truncate(count);
    all
}

/// Returns the next number of the SplitMix64 generator.
pub fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn find_rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                find_rust_files(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the documentation of a file's items and, under `//!`, of the file itself.
fn documentation(path: &Path, source: &str) -> Vec<Prose> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some(marker) = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker)) else {
            at += 1;
            continue;
        };
        let block: Vec<&str> = lines[at..].iter().map_while(|line| line.strip_prefix(marker)).collect();
        let paragraph: Vec<&str> =
            block.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
        let after = lines[at + block.len()..].iter();
        let is_code = |line: &&&str| !line.is_empty() && !line.starts_with("#[") && !line.starts_with("//");
        let code =
            if marker == "//!" { "(file)" } else { after.copied().find(|line| is_code(&line)).unwrap_or("") };
        found.push(Prose { path: path.into(), line: at + 1, text: paragraph.join(" "), code: code.into() });
        at += block.len();
    }
    found
}

/// Returns the string literals of at least three words before a file's unit tests.
fn strings(path: &Path, source: &str) -> Vec<Prose> {
    let source = source.split_once("#[cfg(test)]\nmod ").map_or(source, |(before, _)| before);
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(c) = rest.chars().next() {
        let literal = if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            line += 1;
            continue;
        } else if c == '"' {
            plain_string(rest)
        } else if rest.starts_with("r\"") || rest.starts_with("r#\"") {
            raw_string(rest)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            // Character literals of a quotation mark or an escape would confuse the search for strings.
            rest = rest.get(3..).unwrap_or("");
            continue;
        } else {
            line += usize::from(c == '\n');
            rest = &rest[c.len_utf8()..];
            continue;
        };
        let Some((text, after)) = literal else { break };
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "\\").collect();
        if words.iter().filter(|word| word.chars().any(char::is_alphabetic)).count() >= 3 {
            let code = lines.get(line - 1).map_or("", |code| code.trim());
            found.push(Prose { path: path.into(), line, text: words.join(" "), code: code.into() });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    found
}

/// Splits a string literal, which `rest` begins with, from what follows it.
fn plain_string(rest: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    let end = rest.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })?;
    Some((rest.get(1..end)?, rest.get(end + 1..)?))
}

/// Splits a raw string literal, which `rest` begins with, from what follows it.
fn raw_string(rest: &str) -> Option<(&str, &str)> {
    let end = if rest.starts_with("r#") { "\"#" } else { "\"" };
    rest.split_once('"')?.1.split_once(end)
}
