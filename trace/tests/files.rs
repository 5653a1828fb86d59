//! Files of traces: what is written is read, however much of it is there, and what a summary says of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hipr_trace::{
    File, Format, Item, RECEIVED, Slice, Summary, Track, TrackKind, Value, arg, category, read,
};

const MS: u64 = 1_000_000;

fn slice(track: u64, category: &str, name: &str, start_ms: u64, end_ms: u64, args: &[(&str, Value)]) -> Item {
    let args = args.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let (start_ns, end_ns) = (start_ms * MS, end_ms * MS);
    let (name, category) = (name.to_owned(), category.to_owned());
    Item::Slice(Slice { track, name, category, start_ns, end_ns, flows: Vec::new(), args })
}

fn track(id: u64, parent: u64, kind: TrackKind, name: &str) -> Item {
    Item::Track(Track { id, parent, kind, name: name.to_owned() })
}

/// A program of 1,000 ms: it connects, copies twice, each time with a wait, and sends.
fn example() -> Vec<Item> {
    let call = |number: u64| (arg::CALL, Value::Number(number));
    let request = |name: &str| (arg::REQUEST, Value::from(name));
    vec![
        track(1, 0, TrackKind::Process { pid: 7 }, "program"),
        track(2, 1, TrackKind::Thread { pid: 7, tid: 8 }, "main"),
        track(3, 1, TrackKind::Slices, "sending"),
        track(4, 1, TrackKind::Bytes, RECEIVED),
        track(6, 1, TrackKind::Bytes, "sent"),
        Item::Count { track: 6, at_ns: 400 * MS, value: 1000 },
        track(5, 1, TrackKind::Slices, "worker"),
        slice(3, category::PROGRAM, "a program", 0, 1000, &[]),
        slice(2, category::WAIT, "connect", 10, 30, &[call(1)]),
        slice(2, category::CALL, "hipInit", 10, 40, &[call(1)]),
        slice(3, category::SEND, "send", 95, 100, &[(arg::SENT_BYTES, Value::Number(64))]),
        slice(
            2,
            category::WAIT,
            "wait",
            100,
            200,
            &[call(2), request("7:1"), (arg::RECEIVED_BYTES, Value::Number(4))],
        ),
        slice(2, category::CALL, "hipMemcpy", 95, 210, &[call(2), (arg::LINE, Value::from("a.hip:3"))]),
        // Received at 140, begun at 150, answered at 160.
        slice(
            5,
            category::REQUEST,
            "MEMCPY",
            150,
            160,
            &[
                request("7:1"),
                (arg::QUEUED_NS, Value::Number(10 * MS)),
                (arg::UNCERTAINTY_NS, Value::Number(5)),
            ],
        ),
        slice(
            2,
            category::WAIT,
            "wait",
            300,
            400,
            &[call(3), request("7:2"), (arg::RECEIVED_BYTES, Value::Number(4))],
        ),
        slice(
            2,
            category::CALL,
            "hipMemcpy",
            300,
            405,
            &[call(3), (arg::LINE, Value::from("a.hip:3")), (arg::ERROR, Value::from("hipErrorUnknown"))],
        ),
        slice(3, category::TRACE, "end", 950, 1000, &[(arg::LOST, Value::Number(3))]),
        Item::Instant(Slice {
            track: 3,
            name: "again".to_owned(),
            start_ns: 5,
            end_ns: 5,
            ..Slice::default()
        }),
        Item::Count { track: 4, at_ns: 200 * MS, value: 100 },
        Item::Count { track: 4, at_ns: 400 * MS, value: 300 },
    ]
}

fn written(name: &str, items: &[Item]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let mut file = File::open(&path, 7, None).expect("a file");
    file.write(items).expect("it is written");
    (folder, path)
}

#[test]
fn a_perfetto_file_has_what_was_written() {
    let (_folder, path) = written("a.pftrace", &example());
    assert_eq!(read(&path).expect("a trace"), example());
    let flows = vec![1, 7 << 32 | 5, u64::MAX];
    let with_flows = vec![Item::Slice(Slice { track: 1, flows, ..Slice::default() })];
    let (_folder, path) = written("b.pftrace", &with_flows);
    assert_eq!(read(&path).expect("a trace"), with_flows);
}

#[test]
fn a_json_file_has_the_same_slices_and_is_json_once_it_is_closed() {
    let (_folder, path) = written("a.json", &example());
    let slices = |items: Vec<Item>| {
        let slices = items.into_iter().filter_map(|item| match item {
            // Tracks have other numbers, and what is said of a slice is sorted.
            Item::Slice(mut slice) => {
                slice.track = 0;
                slice.args.sort_by(|one, other| one.0.cmp(&other.0));
                Some(slice)
            }
            _ => None,
        });
        slices.collect::<Vec<_>>()
    };
    assert_eq!(slices(read(&path).expect("a trace")), slices(example()));
    let text = fs::read_to_string(&path).expect("a text");
    let whole: serde_json::Value =
        serde_json::from_str(&format!("{}]", text.trim_end().trim_end_matches(','))).expect("JSON");
    assert_eq!(
        whole.as_array().map(Vec::len),
        Some(example().len() - 2),
        "an event for each item but tracks of counters"
    );
}

#[test]
fn both_formats_say_the_same() {
    for name in ["a.pftrace", "a.json"] {
        let (_folder, path) = written(name, &example());
        let summary = Summary::of(&read(&path).expect("a trace"));
        let Summary { total_ns, network_ns, device_ns, sending_ns, trace_ns, .. } = summary;
        let times = [total_ns, network_ns, device_ns, sending_ns, trace_ns].map(|ns| ns / MS);
        // 20 to connect, 80 of the first wait, all of the second one, of which the worker says nothing.
        assert_eq!(times, [950, 200, 20, 5, 50], "{name}");
        assert_eq!(summary.computing_ns() / MS, 950 - 225, "{name}");
        assert_eq!(
            (summary.waits, summary.sent_bytes, summary.received_bytes, summary.uncertainty_ns, summary.lost),
            (3, 64, 300, Some(5), 3),
            "{name}"
        );
        let calls: Vec<_> = summary
            .calls
            .iter()
            .map(|call| {
                (
                    &*call.function,
                    call.line.as_deref(),
                    call.count,
                    call.errors,
                    call.waits,
                    call.received_bytes,
                )
            })
            .collect();
        assert_eq!(
            calls,
            [("hipMemcpy", Some("a.hip:3"), 2, 1, 2, 8), ("hipInit", None, 1, 0, 1, 0)],
            "{name}"
        );
        let text = summary.to_string();
        for part in [
            "total",
            "950.0 ms",
            "hipMemcpy × 2 at a.hip:3, 2 waits, 1 errors",
            "4 bytes 2 times",
            "3 events were lost",
        ] {
            assert!(text.contains(part), "{name}: {part} is missing in\n{text}");
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_read_up_to_there() {
    for name in ["a.pftrace", "a.json"] {
        let (folder, path) = written(name, &example());
        let bytes = fs::read(&path).expect("a file");
        let whole = read(&path).expect("a trace");
        let cut = folder.path().join(format!("cut-{name}"));
        let mut most = 0;
        for len in 0..bytes.len() {
            fs::write(&cut, &bytes[..len]).expect("a file");
            let items = read(&cut).unwrap_or_default();
            assert!(items.len() <= whole.len() && items.len() >= most, "{name}: {len} bytes");
            most = items.len();
            // JSON says a track's name behind its number.
            assert!(Format::of(&cut) == Format::Chrome || whole.starts_with(&items), "{name}: {len} bytes");
        }
        assert!(most >= whole.len() - 1, "{name}");
    }
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    for bytes in [&b"\x7fELF"[..], b"{}", b"[nothing]", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
        fs::write(&path, bytes).expect("a file");
        assert!(read(&path).is_err(), "{bytes:?}");
    }
    fs::write(&path, "").expect("a file");
    assert_eq!(read(&path).expect("an empty trace"), []);
    assert!(read(Path::new("/no/such/file")).is_err());
}

#[test]
fn only_the_last_part_is_kept() {
    for name in ["a.pftrace", "a.json"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let mut file = File::open(&path, 7, Some(Duration::from_millis(100))).expect("a file");
        file.write(&[
            track(1, 0, TrackKind::Process { pid: 7 }, "p"),
            track(2, 1, TrackKind::Thread { pid: 7, tid: 7 }, "t"),
        ])
        .expect("it is written");
        for start_ms in (0..1000).step_by(10) {
            file.write(&[slice(2, category::CALL, "hipMalloc", start_ms, start_ms + 10, &[])])
                .expect("it is written");
        }
        let (before, last) = (read(&File::before(&path)).expect("a trace"), read(&path).expect("a trace"));
        let slices = |items: &[Item]| items.iter().filter(|item| matches!(item, Item::Slice(_))).count();
        assert!(slices(&before) + slices(&last) >= 10, "{name}: at least 100 ms");
        assert!(slices(&before) + slices(&last) <= 21, "{name}: at most twice as much");
        for part in [&before, &last] {
            let tracks = part.iter().filter(|item| matches!(item, Item::Track(_))).count();
            assert_eq!(tracks, 2, "{name}: each part has the tracks");
        }
        assert_eq!(last.last().and_then(Item::end_ns), Some(1000 * MS), "{name}");
    }
}
