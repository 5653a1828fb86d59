//! Tests damaged and malicious images: they must cause an error, never a panic, and cost no more memory than their own
//! length justifies.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::LazyLock;

use common::{
    IMAGES, ZLIB, ZSTD, ccob, claiming, clang_zstd_stream, data, long_matches_zstd_stream, raw_zstd_stream,
    streamed_zstd, target, zlib_stream,
};
use hipr_code_object::{
    Bundle, CodeObject, ImageError, KERNARG_MAX_BYTES, LaunchFacts, Limits, MetadataError, ParseError,
    decompress, image_len, needed_len, select_with,
};
use proptest::prelude::*;

/// An allocator that counts what each thread has allocated, and its maximum.
struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    // The thread may be ending: then nobody asks any more.
    let _ = NOW.try_with(|now| {
        now.set(now.get().saturating_add(more).saturating_sub(less));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call goes to the system allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are the system allocator's demands.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the maximum memory that `work` had allocated, beyond what was allocated before.
fn peak_bytes(work: impl FnOnce()) -> usize {
    let before = NOW.get();
    PEAK.set(before);
    work();
    PEAK.get().saturating_sub(before)
}

const LIMITS: Limits = Limits { uncompressed_max_bytes: 256 << 10 };

/// Calls everything that can be called with an image, and checks what callers rely on.
fn exercise(image: &[u8]) {
    if let Ok(len) = image_len(image) {
        assert!(len <= image.len());
    }
    let _ = needed_len(&image[..image.len().min(40)]);
    if let Ok(bundle) = Bundle::parse(image) {
        assert!(bundle.entries().iter().all(|entry| image.get(entry.range.clone()).is_some()));
    }
    let _ = decompress(image, LIMITS);
    for device in ["gfx942:sramecc+:xnack-", "gfx90a:sramecc+:xnack+", "gfx1100"] {
        if let Ok(elf) = select_with(image, &target(device), LIMITS) {
            exercise_elf(&elf);
        }
    }
    exercise_elf(image);
}

fn exercise_elf(elf: &[u8]) {
    let Ok(code) = CodeObject::parse(elf) else { return };
    for segment in code.segments() {
        assert!(
            elf.get(segment.file.clone()).is_some_and(|bytes| bytes.len() as u64 <= segment.memory_bytes)
        );
        assert!(segment.vaddr.checked_add(segment.memory_bytes).is_some_and(|end| end <= code.image_bytes()));
    }
    if code.image_bytes() <= 256 << 10 {
        let _ = code.load(elf, u64::MAX - 5, &mut vec![0; code.image_bytes() as usize]);
    }
    if code.check_relocations(|_| Some(u64::MAX)).is_ok() {
        let inside = |vaddr: u64, bytes: &[u8]| {
            vaddr.checked_add(bytes.len() as u64).is_some_and(|end| end <= code.image_bytes())
        };
        assert_eq!(code.relocate(5, |_| Some(7), inside), Ok(()), "what was checked is relocated");
    }
    for symbol in code.symbols(elf).into_iter().flatten() {
        assert!(
            symbol.vaddr.checked_add(symbol.size).is_some_and(|end| end <= code.image_bytes()),
            "{symbol:?}"
        );
        assert!(symbol.align > 0);
    }
    for kernel in code.kernels() {
        assert!(kernel.kernarg_bytes <= KERNARG_MAX_BYTES);
        assert!(kernel.args.iter().all(|arg| arg.offset + arg.size <= kernel.kernarg_bytes));
        let buffer = vec![0; kernel.explicit_bytes() as usize];
        let segment = kernel.kernarg_of_buffer(&buffer, &LaunchFacts::blocks([1; 3], [64, 1, 1], 0)).unwrap();
        assert_eq!(segment.len(), kernel.kernarg_bytes as usize);
    }
}

/// Every committed image, and compressed bundles of version 1.
static ALL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let bundle = data("one.bundle");
    let mut images: Vec<_> = IMAGES.iter().map(|name| data(name)).collect();
    images.push(ccob(1, ZSTD, &bundle, &clang_zstd_stream()));
    images.push(ccob(1, ZLIB, &bundle, &zlib_stream(&bundle)));
    images.push(ccob(1, ZSTD, &bundle, &raw_zstd_stream(&bundle, 10)));
    images.push(ccob(1, ZSTD, &bundle, &streamed_zstd(&bundle, 8000, 17)));
    images
});

/// Numbers that cause overflows, which are written over 1 to 8 bytes.
const HOSTILE: [u64; 10] =
    [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, i64::MAX as u64, u64::MAX];

fn mutation() -> impl Strategy<Value = (prop::sample::Index, u64, usize)> {
    let value = prop_oneof![prop::sample::select(&HOSTILE[..]), any::<u64>()];
    (any::<prop::sample::Index>(), value, prop::sample::select(&[1usize, 1, 1, 2, 4, 8][..]))
}

const MAGICS: [&[u8]; 5] = [
    b"\x7fELF\x02\x01\x01\x40\x04",
    b"__CLANG_OFFLOAD_BUNDLE__",
    b"CCOB\x01\0\x01\0",
    b"CCOB\x02\0\0\0",
    b"",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_images_never_panic(
        which in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 1..6),
        near_start in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut image = ALL[which.index(ALL.len())].clone();
        for (at, value, len) in mutations {
            // Headers and notes are at the start: hit them more often than code.
            let at = at.index(if near_start { image.len().min(2048) } else { image.len() });
            for (place, byte) in image[at..].iter_mut().zip(&value.to_le_bytes()[..len]) {
                *place = *byte;
            }
        }
        if let Some(cut) = cut {
            image.truncate(cut.index(image.len()));
        }
        let peak = peak_bytes(|| exercise(&image));
        // Twice the limit for a vector that grows, some for the image's own tables and one kernarg segment.
        prop_assert!(peak < (4 << 20) + 16 * image.len(), "{peak} bytes for an image of {}", image.len());
    }

    #[test]
    fn bytes_behind_a_magic_never_panic(
        magic in prop::sample::select(&MAGICS[..]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        exercise(&[magic, &rest].concat());
    }
}

#[test]
fn no_prefix_panics() {
    for image in ALL.iter() {
        for len in (0..image.len().min(1500)).chain((1500..image.len()).step_by(97)) {
            exercise(&image[..len]);
        }
    }
}

#[test]
fn a_block_of_long_matches_is_stopped() {
    let image = claiming(2, 64 << 20, &long_matches_zstd_stream());
    let peak = peak_bytes(|| {
        let result = decompress(&image, Limits::default());
        assert!(matches!(result, Err(ImageError::Damaged(_))), "{result:?}");
    });
    assert!(peak < 1 << 20, "{peak}");
}

#[test]
fn a_large_claim_allocates_nothing() {
    let image = claiming(2, 1 << 30, &clang_zstd_stream());
    let peak = peak_bytes(|| assert!(decompress(&image, Limits::default()).is_err()));
    assert!(peak < 1 << 20, "{peak}");
}

/// Returns `kernels-v6.elf` with another metadata note in place of its own.
fn with_note(note: &[u8]) -> Vec<u8> {
    let mut elf = data("kernels-v6.elf");
    let at = elf.windows(7).position(|bytes| bytes == b"AMDGPU\0").unwrap();
    let old = u32::from_le_bytes(elf[at - 8..at - 4].try_into().unwrap()) as usize;
    assert!(note.len() <= old, "{} of {old}", note.len());
    elf[at + 8..at + 8 + note.len()].copy_from_slice(note);
    // The rest of the old note is one more note of another kind.
    elf[at - 8..at - 4].copy_from_slice(&(note.len() as u32).to_le_bytes());
    let rest = (at + 8 + note.len()).next_multiple_of(4);
    let rest_len = (at + 8 + old - rest - 12) as u32;
    for (index, word) in [0, rest_len, 0].into_iter().enumerate() {
        elf[rest + 4 * index..rest + 4 * index + 4].copy_from_slice(&word.to_le_bytes());
    }
    elf
}

/// Encodes a MessagePack string of up to 31 bytes.
fn text(text: &str) -> Vec<u8> {
    [&[0xa0 | text.len() as u8], text.as_bytes()].concat()
}

fn note(pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut note = vec![0x80 | (pairs.len() + 1) as u8];
    note.extend([text("amdhsa.version"), vec![0x92, 1, 2]].concat());
    for (key, value) in pairs {
        note.extend(text(key));
        note.extend_from_slice(value);
    }
    note
}

fn error_of(note: &[u8]) -> MetadataError {
    match CodeObject::parse(&with_note(note)) {
        Err(ParseError::Metadata(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn notes_that_lie_are_refused() {
    // The same note without lies is fine, and other keys are passed over, however deep they are.
    let deep = [vec![0x91; 3000], vec![0xc0]].concat();
    let code =
        CodeObject::parse(&with_note(&note(&[("amdhsa.more", &deep), ("amdhsa.kernels", &[0x90])]))).unwrap();
    assert_eq!(code.kernels(), []);

    assert_eq!(error_of(&note(&[("amdhsa.more", &[0x91; 3000])])), MetadataError::Truncated);
    for count in [[0xdd, 0xff, 0xff, 0xff, 0xff], [0xdc, 0xff, 0xff, 0xc0, 0xc0]] {
        let peak = peak_bytes(|| {
            assert_eq!(error_of(&note(&[("amdhsa.more", &count)])), MetadataError::Truncated);
            error_of(&note(&[("amdhsa.kernels", &count)]));
            error_of(&note(&[("amdhsa.printf", &count)]));
        });
        assert!(peak < 1 << 20, "{peak}");
    }
    assert_eq!(error_of(&[0x80]), MetadataError::Missing("amdhsa.version"));
    assert_eq!(error_of(&[0xc1]), MetadataError::Kind("a map"));
    let version = [vec![0x81], text("amdhsa.version"), vec![0x92, 2, 0]].concat();
    assert_eq!(error_of(&version), MetadataError::Version { major: 2, minor: 0 });
    assert_eq!(
        error_of(&note(&[("amdhsa.kernels", &[0x91, 0x80])])),
        MetadataError::Missing("a kernel's .name")
    );
}

/// Builds a note with one kernel that has this kernarg size and one argument.
fn kernel_note(kernarg: &[u8], offset: &[u8], size: &[u8]) -> Vec<u8> {
    let kernel = [
        vec![0x91, 0x84],
        [text(".name"), text("saxpy")].concat(),
        [text(".symbol"), text("saxpy.kd")].concat(),
        [text(".kernarg_segment_size"), kernarg.to_vec()].concat(),
        [text(".args"), vec![0x91, 0x83]].concat(),
        [text(".offset"), offset.to_vec()].concat(),
        [text(".size"), size.to_vec()].concat(),
        [text(".value_kind"), text("by_value")].concat(),
    ];
    note(&[("amdhsa.kernels", &kernel.concat())])
}

#[test]
fn arguments_outside_of_the_segment_are_refused() {
    let code = CodeObject::parse(&with_note(&kernel_note(&[16], &[8], &[8]))).unwrap();
    assert_eq!(code.kernel("saxpy").unwrap().param_layout(), [(8, 8)]);

    let wide = [0xce, 0xff, 0xff, 0xff, 0xff];
    let layout = |what, end, size| MetadataError::Layout { kernel: "saxpy".to_owned(), what, end, size };
    assert_eq!(error_of(&kernel_note(&[16], &[9], &[8])), layout("an argument", 17, 16));
    let end = u64::from(u32::MAX) * 2;
    assert_eq!(error_of(&kernel_note(&[16], &wide, &wide)), layout("an argument", end, 16));
    let size = u64::from(u32::MAX);
    assert_eq!(error_of(&kernel_note(&wide, &[8], &[8])), layout("the segment", size, KERNARG_MAX_BYTES));
    let negative = MetadataError::Kind("a number that is not negative");
    assert_eq!(error_of(&kernel_note(&[16], &[0xff], &[8])), negative);
    assert_eq!(error_of(&kernel_note(&[16], &[0xd0, 0x80], &[8])), negative);
}

#[test]
fn symbols_that_share_one_long_name_are_refused() {
    let mut elf = data("kernels-v6.elf");
    // The names' section becomes one text without an end in front of the last byte, and all symbols have it.
    let sections = u64::from_le_bytes(elf[40..48].try_into().unwrap()) as usize;
    let field = |elf: &[u8], section: usize, at: usize| {
        u64::from_le_bytes(elf[sections + 64 * section + at..][..8].try_into().unwrap()) as usize
    };
    let count = u16::from_le_bytes(elf[60..62].try_into().unwrap()) as usize;
    let dynsym = (0..count).find(|section| elf[sections + 64 * section + 4] == 11).unwrap();
    let names = elf[sections + 64 * dynsym + 40] as usize;
    let (symbols_at, symbols_len) = (field(&elf, dynsym, 24), field(&elf, dynsym, 32));
    let (names_at, names_len) = (field(&elf, names, 24), field(&elf, names, 32));
    elf[names_at..names_at + names_len - 1].fill(b'n');
    for symbol in (symbols_at..symbols_at + symbols_len).step_by(24) {
        elf[symbol..symbol + 4].fill(0);
    }
    assert!(matches!(CodeObject::parse(&elf), Err(ParseError::Elf(why)) if why.contains("overlap")));
}
