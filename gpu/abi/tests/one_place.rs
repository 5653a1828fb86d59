//! Finds a second definition of a constant or a structure of HIP in the workspace's sources.
//!
//! A constant counts as one of HIP's if its own name, or the comment right above it, has the name of one of `hipr_abi::CONSTANTS`, and
//! its value is made of numbers alone. A structure counts if it is `#[repr(C)]` and has the name of one of `data/structs.tsv`.

use std::fs;
use std::path::{Path, PathBuf};

use hipr_abi::CONSTANTS;

/// Returns the source files that are searched: those of the workspace without tests, whose data is independent on purpose, and
/// without the protocol, whose numbers are its own (`table.rs` compares them with HIP's).
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let mut folders = vec![root.to_owned()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let skipped =
                ["target", "tests", "benches", "proto-core", "fuzz", "abi"].contains(&name.as_str());
            if path.is_dir() && !skipped && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                sources.push(path);
            }
        }
    }
    sources
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns whether a value is a literal: it has digits, and no names but those of integer types.
fn is_literal(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit())
        && words(value).all(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the second definitions in one file: the line, and what it defines.
fn second_definitions(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut comment, mut is_c) = (String::new(), false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("//") {
            comment.push_str(line);
            continue;
        }
        if line.starts_with("#[") {
            is_c |= line.contains("repr(C)");
            continue;
        }
        let code: Vec<&str> = words(line).collect();
        let item = code.iter().position(|word| ["const", "struct", "union"].contains(word));
        if let Some((at, name)) = item.and_then(|at| Some((at, *code.get(at + 1)?))) {
            if code[at] == "const" {
                let mut names = words(&comment).chain([name]);
                let known = names.find(|name| CONSTANTS.iter().any(|(_, known, _)| known == name));
                let value = line.split_once('=').map(|(_, value)| value);
                if let (Some(known), Some(true)) = (known, value.map(is_literal)) {
                    found.push((index + 1, format!("{name}, which is {known}")));
                }
            } else if is_c && structures().any(|known| known == name) {
                found.push((index + 1, name.to_owned()));
            }
        }
        // A comment is about the constants in a row that follow it.
        if !code.contains(&"const") {
            comment.clear();
        }
        is_c = false;
    }
    found
}

fn structures() -> impl Iterator<Item = &'static str> {
    include_str!("../data/structs.tsv").lines().skip(1).filter_map(|line| line.split('\t').next())
}

#[test]
fn no_source_defines_what_is_hips() {
    let sources = sources();
    assert!(sources.len() > 100, "only {} sources: is this the workspace?", sources.len());
    let mut found = Vec::new();
    for path in &sources {
        let text = fs::read_to_string(path).expect("a source");
        let lines = second_definitions(&text);
        found.extend(lines.into_iter().map(|(line, what)| format!("{}:{line}: {what}", path.display())));
    }
    assert!(found.is_empty(), "defined here and in hipr-abi:\n{}", found.join("\n"));
}

#[test]
fn the_search_sees_second_definitions() {
    let by_comment = "/// `hipStreamNonBlocking`.\nconst NON_BLOCKING: u32 = 1;\n";
    assert_eq!(second_definitions(by_comment).len(), 1);
    let two = "// HIP API: hipMemAllocationTypePinned, hipMemHandleTypeNone.\nconst A: i32 = 1;\nconst B: i32 = 0;\n";
    assert_eq!(second_definitions(two).len(), 2);
    assert_eq!(second_definitions("pub(super) const hipLimitStackSize: i32 = 0;\n").len(), 1);
    assert_eq!(second_definitions("/// hipEventInterprocess\nconst A: u32 = 2 | 0x4;\n").len(), 1);
    assert_eq!(second_definitions("#[repr(C)]\npub struct dim3 {\n").len(), 1);
    assert_eq!(second_definitions("/// `hipStreamNonBlocking`.\nconst A: u32 = hipStreamNonBlocking;\n"), []);
    assert_eq!(second_definitions("/// hipStreamNonBlocking\nfn f() {\n}\nconst PAGE: usize = 4096;\n"), []);
}
