//! Perfetto's protobuf messages, as far as a trace needs them (Perfetto, Synthesizing TrackEvents: `TracePacket`, `TrackEvent`,
//! `TrackDescriptor`). A file is a list of packets, so that what was written of it can be read when the rest is missing.

use std::collections::HashMap;

use prost::Message;

use crate::item::{Item, Slice, Track, TrackKind, Value};

#[derive(Clone, PartialEq, Message)]
struct Packets {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    unit: Option<i32>,
}

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
const UNIT_SIZE_BYTES: i32 = 3;

/// Appends a packet to a file.
fn put(packet: Packet, out: &mut Vec<u8>) {
    // A list of one packet; lists follow on each other. Encoding fails only where there is no room, and a Vec has some.
    let _ = Packets { packet: vec![packet] }.encode(out);
}

/// Appends items; `sequence` is a number that only their writer has.
pub(crate) fn write(items: &[Item], sequence: u32, out: &mut Vec<u8>) {
    for item in items {
        match item {
            Item::Track(track) => {
                let track_descriptor = Some(descriptor(track));
                let trusted_packet_sequence_id = Some(sequence);
                put(Packet { track_descriptor, trusted_packet_sequence_id, ..Packet::default() }, out);
            }
            Item::Slice(slice) => {
                put(event(slice, SLICE_BEGIN, slice.start_ns, sequence), out);
                let end = TrackEvent {
                    r#type: Some(SLICE_END),
                    track_uuid: Some(slice.track),
                    ..TrackEvent::default()
                };
                put(at(slice.end_ns, end, sequence), out);
            }
            Item::Instant(slice) => put(event(slice, INSTANT, slice.start_ns, sequence), out),
            Item::Count { track, at_ns, value } => {
                let count = TrackEvent {
                    r#type: Some(COUNTER),
                    track_uuid: Some(*track),
                    counter_value: Some(i64::try_from(*value).unwrap_or(i64::MAX)),
                    ..TrackEvent::default()
                };
                put(at(*at_ns, count, sequence), out);
            }
        }
    }
}

fn at(timestamp_ns: u64, event: TrackEvent, sequence: u32) -> Packet {
    Packet {
        timestamp: Some(timestamp_ns),
        trusted_packet_sequence_id: Some(sequence),
        track_event: Some(event),
        track_descriptor: None,
    }
}

fn event(slice: &Slice, kind: i32, timestamp_ns: u64, sequence: u32) -> Packet {
    let annotation = |(name, value): &(String, Value)| {
        let (uint_value, string_value) = match value {
            Value::Number(number) => (Some(*number), None),
            Value::Text(text) => (None, Some(text.clone())),
        };
        DebugAnnotation { uint_value, string_value, name: Some(name.clone()) }
    };
    let event = TrackEvent {
        debug_annotations: slice.args.iter().map(annotation).collect(),
        r#type: Some(kind),
        track_uuid: Some(slice.track),
        categories: vec![slice.category.clone()],
        name: Some(slice.name.clone()),
        counter_value: None,
        flow_ids: slice.flows.clone(),
    };
    at(timestamp_ns, event, sequence)
}

/// Returns a number of a process or thread as the messages have it.
fn small(number: u32) -> Option<i32> {
    i32::try_from(number).ok()
}

fn descriptor(track: &Track) -> TrackDescriptor {
    let name = Some(track.name.clone());
    let base = TrackDescriptor {
        uuid: Some(track.id),
        parent_uuid: (track.parent != 0).then_some(track.parent),
        ..TrackDescriptor::default()
    };
    match track.kind {
        TrackKind::Process { pid } => {
            let process = Some(ProcessDescriptor { pid: small(pid), process_name: name });
            TrackDescriptor { process, ..base }
        }
        TrackKind::Thread { pid, tid } => {
            let thread = Some(ThreadDescriptor { pid: small(pid), tid: Some(tid.into()), thread_name: name });
            TrackDescriptor { thread, ..base }
        }
        TrackKind::Slices => TrackDescriptor { name, ..base },
        TrackKind::Bytes => {
            let counter = Some(CounterDescriptor { unit: Some(UNIT_SIZE_BYTES) });
            TrackDescriptor { name, counter, ..base }
        }
    }
}

fn track(known: TrackDescriptor) -> Option<Track> {
    let number = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    let (kind, name) = match (&known.process, &known.thread, &known.counter) {
        (Some(process), ..) => {
            (TrackKind::Process { pid: number(process.pid)? }, process.process_name.clone())
        }
        (_, Some(thread), _) => {
            let tid = thread.tid.and_then(|tid| u32::try_from(tid).ok())?;
            (TrackKind::Thread { pid: number(thread.pid)?, tid }, thread.thread_name.clone())
        }
        (.., Some(_)) => (TrackKind::Bytes, known.name.clone()),
        _ => (TrackKind::Slices, known.name.clone()),
    };
    Some(Track {
        id: known.uuid?,
        parent: known.parent_uuid.unwrap_or(0),
        kind,
        name: name.unwrap_or_default(),
    })
}

/// Reads the packets of a file up to the first that is not whole, as the last one of a file is whose writer was ended.
fn packets(mut bytes: &[u8]) -> Vec<Packet> {
    let mut packets = Vec::new();
    while let [first, rest @ ..] = bytes {
        // Field 1, with a length.
        if *first != 0x0a {
            break;
        }
        let mut rest = rest;
        let Ok(len) = prost::decode_length_delimiter(&mut rest) else { break };
        let Some((packet, after)) = rest.split_at_checked(len) else { break };
        let Ok(packet) = Packet::decode(packet) else { break };
        packets.push(packet);
        bytes = after;
    }
    packets
}

/// Reads a file. Slices that did not end are left out.
pub(crate) fn read(bytes: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    // Ends follow right on their beginnings, as they are written.
    let mut open: HashMap<u64, Vec<Slice>> = HashMap::new();
    for packet in packets(bytes) {
        items.extend(packet.track_descriptor.and_then(track).map(Item::Track));
        let (Some(event), Some(at_ns)) = (packet.track_event, packet.timestamp) else { continue };
        let Some(on) = event.track_uuid else { continue };
        match event.r#type {
            Some(COUNTER) => {
                let value = event.counter_value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
                items.push(Item::Count { track: on, at_ns, value });
            }
            Some(SLICE_BEGIN) => open.entry(on).or_default().push(slice(event, on, at_ns)),
            Some(INSTANT) => items.push(Item::Instant(slice(event, on, at_ns))),
            Some(SLICE_END) => {
                if let Some(begun) = open.get_mut(&on).and_then(Vec::pop) {
                    items.push(Item::Slice(Slice { end_ns: at_ns, ..begun }));
                }
            }
            _ => {}
        }
    }
    items
}

fn slice(event: TrackEvent, track: u64, at_ns: u64) -> Slice {
    let arg = |annotation: DebugAnnotation| {
        let value = match (annotation.uint_value, annotation.string_value) {
            (Some(number), _) => Value::Number(number),
            (_, text) => Value::Text(text.unwrap_or_default()),
        };
        (annotation.name.unwrap_or_default(), value)
    };
    Slice {
        track,
        name: event.name.unwrap_or_default(),
        category: event.categories.into_iter().next().unwrap_or_default(),
        start_ns: at_ns,
        end_ns: at_ns,
        flows: event.flow_ids,
        args: event.debug_annotations.into_iter().map(arg).collect(),
    }
}
