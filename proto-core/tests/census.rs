//! Compares the tables in the code with the protocol's own tables, row by row and word by word.

use std::collections::BTreeMap;

use hipr_proto::{HipError, OPS, Opcode, Tail, error_message, error_name};

/// code, name, hip_function, reply, request, response, source
const OPS_TSV: &str = include_str!("data/ops.tsv");
/// code, hipGetErrorName, hipGetErrorString, and the same of the driver API
const ERRORS_TSV: &str = include_str!("data/errors.tsv");

type Row<'a> = [&'a str; 7];

fn rows() -> Vec<Row<'static>> {
    OPS_TSV
        .lines()
        .skip(1)
        .map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            columns.try_into().unwrap_or_else(|columns| panic!("{columns:?} is no row"))
        })
        .collect()
}

/// Returns a cell with "as OTHER" replaced by the cell of OTHER, and without remarks that are not part of the layout.
fn resolve<'a>(rows: &BTreeMap<&str, Row<'a>>, cell: &'a str, column: usize) -> String {
    let (cell, _) = cell.split_once(" (").map_or((cell, ""), |parts| parts);
    match cell.strip_prefix("as ").and_then(|name| rows.get(name)) {
        Some(other) => resolve(rows, other[column], column),
        None => cell.to_owned(),
    }
}

/// Splits a layout at its inline part; returns what precedes it, and the inline part's length in bytes.
fn without_inline(layout: &str) -> (&str, Option<&str>) {
    match layout.find('[').filter(|at| *at == 0 || layout[..*at].ends_with(' ')) {
        Some(at) => (layout[..at].trim_end(), Some(&layout[at..])),
        None => layout.find(" [").map_or((layout, None), |at| (&layout[..at], Some(&layout[at + 1..]))),
    }
}

#[test]
fn every_row_of_the_protocol_is_there_and_no_other() {
    let theirs: Vec<_> = rows().iter().map(|row| (row[0].to_owned(), row[1])).collect();
    let ours: Vec<_> = OPS.iter().map(|info| (format!("0x{:04X}", info.code.0), info.name)).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn functions_sources_and_reply_rules_agree() {
    let rows = rows();
    let by_name = rows.iter().map(|row| (row[1], *row)).collect();
    for (info, row) in OPS.iter().zip(&rows) {
        let [_, name, hip_function, reply, .., source] = row;
        assert_eq!(info.hip_function, *hip_function, "{name}");
        assert_eq!(info.source.to_string(), *source, "{name}");
        assert_eq!(info.reply_rule.to_string(), resolve(&by_name, reply, 3), "{name}");
    }
}

#[test]
fn layouts_agree() {
    let rows = rows();
    let by_name = rows.iter().map(|row| (row[1], *row)).collect();
    for (info, row) in OPS.iter().zip(&rows) {
        for (part, column) in [(&info.request, 4), (&info.reply, 5)] {
            let (name, ours) = (row[1], part.to_string());
            let theirs = resolve(&by_name, row[column], column);
            let ((ours, our_inline), (theirs, their_inline)) =
                (without_inline(&ours), without_inline(&theirs));
            assert_eq!(ours, theirs, "{name}");
            match (our_inline, their_inline) {
                // Copies whose name says the direction have inline bytes in that direction only.
                (None, Some(_)) => {
                    assert!(name.contains("DTOD") || name.contains("DTOH") || name.contains("HTOD"), "{name}")
                }
                (Some(ours), Some(theirs)) if name.contains("TOH") || name.contains("HTO") => {
                    assert!(theirs.ends_with(ours.trim_start_matches('[')), "{name}: {ours}, {theirs}");
                }
                // "inline as MEMCPY_2D", spelled out for three dimensions.
                (Some(ours), Some("[inline as MEMCPY_2D]")) => {
                    assert!(ours.contains("inline rows, tightly packed"), "{name}");
                }
                (ours, theirs) => assert_eq!(ours, theirs, "{name}"),
            }
        }
    }
}

#[test]
fn fixed_sizes_are_those_of_the_layout_words() {
    fn size(layout: &str) -> usize {
        let mut total = 0;
        let mut rest = layout;
        while let Some((_, after)) = rest.split_once(':') {
            let (one, after) = match after.strip_prefix('{') {
                Some(inner) => {
                    let (inner, after) = inner.split_once('}').expect("a closed brace");
                    (size(inner), after)
                }
                None => {
                    let end = after.find([' ', '[']).unwrap_or(after.len());
                    let one = match &after[..end] {
                        "u32" | "i32" | "f32" => 4,
                        "u64" => 8,
                        "cstr" | "bytes" => 1,
                        other => panic!("{other} is no layout word"),
                    };
                    (one, &after[end..])
                }
            };
            let (times, after) = match after.strip_prefix('[') {
                Some(inner) => {
                    let (times, after) = inner.split_once(']').expect("a closed bracket");
                    (times.parse().expect("a number"), after)
                }
                None => (1, after),
            };
            total += one * times;
            rest = after;
        }
        total
    }
    for info in OPS {
        for part in [&info.request, &info.reply] {
            let fixed = part.to_string();
            let fixed = fixed.strip_suffix(part.tail_layout).expect("the tail is at the end");
            assert_eq!(part.size, size(fixed), "{}: {fixed}", info.name);
            assert_eq!(part.tail == Tail::None, part.tail_layout.is_empty(), "{}", info.name);
        }
    }
}

#[test]
fn codes_are_found_and_only_those() {
    let mut found = OPS.iter();
    for code in 0..=u16::MAX {
        match Opcode(code).info() {
            Some(info) => {
                assert_eq!(info.code, Opcode(code));
                assert_eq!(found.next().map(|row| row.code), Some(info.code));
                assert_eq!(info.code.to_string(), info.name);
            }
            None => assert_eq!(Opcode(code).to_string(), format!("Opcode({code:#06x})")),
        }
    }
    assert!(found.next().is_none());
}

#[test]
fn errors_are_called_as_the_real_library_calls_them() {
    let mut known = 0;
    for line in ERRORS_TSV.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let [code, name, message, ..] = columns[..] else { panic!("{line} is no row") };
        let code: i32 = code.parse().expect("a number");
        assert_eq!(error_name(code).to_str(), Ok(name), "{code}");
        assert_eq!(error_message(code).to_str(), Ok(message), "{code}");
        assert_eq!((HipError(code).name(), HipError(code).message()), (name, message));
        known += usize::from(HipError(code).is_known());
    }
    assert_eq!((-2..=2000).filter(|code| HipError(*code).is_known()).count(), known);
    assert_eq!(HipError::check(0), Ok(()));
    assert_eq!(HipError::check(709), Err(HipError::CONTEXT_IS_DESTROYED));
    assert_eq!(HipError::UNKNOWN.name(), "hipErrorUnknown");
    assert_eq!(HipError::INVALID_HANDLE.to_string(), "hipErrorInvalidHandle: invalid resource handle (400)");
}
