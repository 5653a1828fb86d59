//! Code objects that would cost a worker far more than their bytes.

use super::Sent;
use super::elf::{Elf, kernel, list, metadata, zeros};
use crate::WireClient;
use hipr_proto::HipError;
use hipr_proto::op;

/// A code object that a client loads over and over until it is refused.
pub struct Image {
    /// What it is, in a line.
    pub name: &'static str,
    /// Makes its bytes.
    pub image: fn() -> Vec<u8>,
    /// What the error says with which it is refused however much memory there is; `None` if only memory is missing.
    pub why: Option<&'static str>,
}

const fn image(name: &'static str, image: fn() -> Vec<u8>, why: Option<&'static str>) -> Image {
    Image { name, image, why }
}

const TABLES: Option<&str> = Some("need more than");
const SHARED: Option<&str> = Some("overlap in the file");
const MANY: Option<&str> = Some("more than 64 segments");

/// The images.
pub const IMAGES: &[Image] = &[
    image(
        "6,000 relocation sections over one table",
        || sections(16_000, 6_000),
        Some("longer than the file"),
    ),
    image("relocations as many as fit into the file", || sections(200_000, 1), None),
    image("relocations of one long undefined name", undefined, TABLES),
    image("60 executable segments over the same bytes", || code(60, 400 << 10, 0), SHARED),
    image("1,800 executable segments over the same bytes", || code(1_800, 300 << 10, 0), MANY),
    image("2 segments at overlapping addresses", || code(2, 64 << 10, 4), Some("overlap in memory")),
    image("30,000 segments", || code(30_000, 4, 4), MANY),
    image("3,000 notes over the same bytes", notes, Some("longer than the file")),
    image("kernels as many as fit into a note", kernels, None),
    image("arguments as many as fit into a note", arguments, None),
    image("texts without bytes", texts, TABLES),
    image("metadata nested 2,000,000 deep", || nested(&[0x91]), Some("ends in the middle")),
    image("metadata of maps nested 2,000,000 deep", || nested(&[0x81, 0xa0]), Some("ends in the middle")),
    image("variables as many as fit into the file", variables, None),
    image("variables that share one long name", shared_name, Some("overlap")),
    image("24 MiB of code", || code(1, 24 << 20, 0), None),
    image("small code objects until the memory is full", || code(1, 256 << 10, 0), None),
    image("a bundle of 33 KB that unpacks to 1 GiB", || zeros(1 << 30, 1 << 30), Some("far longer")),
    image(
        "a bundle that unpacks to more than it says",
        || zeros(1 << 20, 1 << 30),
        Some("longer than its header"),
    ),
    image("a bundle that unpacks to nearly all memory", || zeros(60 << 20, 60 << 20), Some("hash")),
    image("a code object of 256 MiB", || vec![0x7f; 256 << 20], Some("neither")),
];

/// Maximum number of times that an image is loaded.
const TIMES: usize = 100;

/// Loads an image until it is refused.
pub(super) fn load(client: &mut WireClient, image: &Image) -> Sent {
    let image = (image.image)();
    let mut sent = Sent::default();
    for _ in 0..TIMES {
        let request = op::ModuleLoadData { data_size: image.len() as u64 };
        let answer = client.call_with(&request, &[], Some(image.to_vec())).result;
        sent.bytes += image.len() as u64;
        sent.answered(answer.map(|_| ()));
        match answer {
            Ok(_) => {}
            Err(HipError::INVALID_IMAGE | HipError::OUT_OF_MEMORY) => break,
            Err(_) => sent.is_right = false,
        }
    }
    sent.is_right &= sent.refused() == 1;
    sent
}

fn sections(entries: usize, headers: usize) -> Vec<u8> {
    let mut elf = Elf::new();
    let range = (elf.bytes(&[0; 64]), 64);
    elf.load(range, 0, false);
    elf.relocations(entries, headers, 0);
    elf.build()
}

fn undefined() -> Vec<u8> {
    let mut elf = Elf::new();
    let range = (elf.bytes(&[0; 64]), 64);
    elf.load(range, 0, false);
    let name = [vec![b'n'; 100_000], vec![0]].concat();
    elf.symbols(&name, std::iter::once(0), false);
    elf.relocations(9_000, 1, 1);
    elf.build()
}

/// Returns a code object with `count` executable segments of the same `len` bytes, each `overlap` bytes before the end of the one before.
fn code(count: usize, len: usize, overlap: usize) -> Vec<u8> {
    let mut elf = Elf::new();
    let distance = if overlap < len { len - overlap } else { len };
    // As many bytes of their own, if they overlap in memory.
    let bytes = vec![0; if overlap > 0 { len * count } else { len }];
    let at = elf.bytes(&bytes);
    for index in 0..count {
        let from = if overlap > 0 { at + len * index } else { at };
        elf.load((from, len), (distance * index) as u64, true);
    }
    elf.build()
}

fn notes() -> Vec<u8> {
    let mut elf = Elf::default();
    let note = elf.note(&metadata(&[("amdhsa.kernels", &list(400, &kernel(0)))]));
    (1..3_000).for_each(|_| elf.again(note));
    elf.build()
}

fn kernels() -> Vec<u8> {
    let mut elf = Elf::default();
    elf.note(&metadata(&[("amdhsa.kernels", &list(100_000, &kernel(0)))]));
    elf.build()
}

fn arguments() -> Vec<u8> {
    let mut elf = Elf::default();
    elf.note(&metadata(&[("amdhsa.kernels", &list(1, &kernel(200_000)))]));
    elf.build()
}

/// How deep values are nested that have no end.
const DEPTH: usize = 2_000_000;

/// Returns a code object with a value within a value, each of which begins with these bytes.
fn nested(begins: &[u8]) -> Vec<u8> {
    let mut elf = Elf::default();
    elf.note(&metadata(&[("amdhsa.more", &begins.repeat(DEPTH))]));
    elf.build()
}

fn texts() -> Vec<u8> {
    let mut elf = Elf::default();
    elf.note(&metadata(&[("amdhsa.printf", &list(8 << 20, &[0xa0]))]));
    elf.build()
}

fn variables() -> Vec<u8> {
    let mut elf = Elf::new();
    let names: Vec<u8> = (0..200_000u32).flat_map(|index| format!("{index:06}\0").into_bytes()).collect();
    elf.symbols(&names, (0..200_000).map(|index| 7 * index), true);
    elf.build()
}

fn shared_name() -> Vec<u8> {
    let mut elf = Elf::new();
    let name = [vec![b'n'; 400_000], vec![0]].concat();
    elf.symbols(&name, 0..20_000, true);
    elf.build()
}
