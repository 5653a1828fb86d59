//! Fuzz targets for files with GPU code: ELF code objects, offload bundles, compressed bundles.

use std::sync::LazyLock;

use hipr_code_object::{
    Bundle, CodeObject, CompressedHeader, Format, KERNARG_MAX_BYTES, KernelDescriptor, LaunchFacts, Limits,
    Measure, Need, Target, ValueKind, decompress, image_len, select_with,
};

use super::device;

/// Limits of decompression in a fuzz target.
const LIMITS: Limits = Limits { uncompressed_max_bytes: 256 << 10 };
/// Maximum memory of images that are loaded.
const LOADED_MAX_BYTES: u64 = 256 << 10;
/// Maximum number of kernels that are examined in one image.
const KERNELS_MAX: usize = 32;
/// Maximum number of bytes that are decompressed to find the end of a stream without a length.
const MEASURED_MAX_BYTES: u64 = 4 << 20;

static DEVICES: LazyLock<Vec<Target>> = LazyLock::new(|| {
    let names = ["gfx942:sramecc+:xnack-", "gfx90a:sramecc+:xnack+", "gfx1100"];
    names.map(|name| name.parse().expect("the name of a device")).into()
});

/// Parses a code object, its kernels and argument layouts, relocates it, and loads it, also into the emulator.
pub fn code_object(image: &[u8]) {
    let measured = image_len(image);
    if let Ok(len) = measured {
        assert!(len <= image.len(), "{len} bytes of {}", image.len());
    }
    elf(image);
    device::load(image);
}

fn elf(elf: &[u8]) {
    let Ok(code) = CodeObject::parse(elf) else { return };
    assert_eq!(Format::sniff(elf), Some(Format::Elf), "only ELF files are code objects");
    for segment in code.segments() {
        let bytes = elf.get(segment.file.clone()).expect("segments lie in the file");
        assert!(bytes.len() as u64 <= segment.memory_bytes, "{segment:?}");
        let end = segment.vaddr.checked_add(segment.memory_bytes).expect("segments end");
        assert!(end <= code.image_bytes(), "{segment:?}");
    }
    if code.image_bytes() <= LOADED_MAX_BYTES {
        load(&code, elf);
    }
    assert!(code.globals().is_sorted_by(|a, b| a.name <= b.name), "variables are sorted");
    for global in code.globals().iter().take(KERNELS_MAX) {
        assert_eq!(code.global(&global.name).map(|found| &found.name), Some(&global.name));
    }
    assert!(code.kernels().is_sorted_by(|a, b| a.name < b.name), "kernels are sorted, each name occurs once");
    for kernel in code.kernels().iter().take(KERNELS_MAX) {
        assert_eq!(code.kernel(&kernel.name), Some(kernel));
        arguments(kernel);
        descriptor(&kernel.descriptor);
    }
}

/// Checks that loading at two addresses differs only in relocated values.
fn load(code: &CodeObject, elf: &[u8]) {
    let len = code.image_bytes() as usize;
    let mut images = [vec![0; len], vec![0xff; len + 3]];
    let results: Vec<_> = images
        .iter_mut()
        .zip([0x1000, u64::MAX - 4095])
        .map(|(memory, base)| code.load(elf, base, memory))
        .collect();
    assert_eq!(results[0], results[1], "whether it can be loaded does not depend on the address");
    assert!(images[1].ends_with(&[0xff; 3]), "loading writes behind the image");
    if len > 0 {
        assert!(code.load(elf, 0, &mut vec![0; len - 1]).is_err(), "it cannot be loaded into less");
    }
    if results[0].is_err() {
        return;
    }
    let mut moved = vec![false; len];
    for relocation in code.relocations() {
        let (_, bytes) = relocation.bytes(0).expect("it was loaded");
        let at = relocation.vaddr as usize;
        moved[at..at + bytes].fill(true);
    }
    let same = images[0].iter().zip(&images[1]).zip(&moved).all(|((a, b), moved)| *moved || a == b);
    assert!(same, "a place without a relocation depends on the address");
}

fn arguments(kernel: &hipr_code_object::Kernel) {
    let size = kernel.kernarg_bytes;
    assert!(size <= KERNARG_MAX_BYTES, "{size}");
    for arg in &kernel.args {
        assert!(arg.offset.checked_add(arg.size).is_some_and(|end| end <= size), "{arg:?} in {size} bytes");
        assert_eq!(ValueKind::of(arg.kind.as_str()), arg.kind);
    }
    let facts = LaunchFacts { hostcall_buffer: u64::MAX, ..LaunchFacts::blocks([1; 3], [64, 1, 1], 0) };
    let buffer = vec![0xa5; kernel.explicit_bytes() as usize];
    let segment = kernel.kernarg_of_buffer(&buffer, &facts).expect("the buffer is long enough");
    assert_eq!(segment.len(), size as usize);
    if let Some(short) = buffer.len().checked_sub(1) {
        assert!(kernel.kernarg_of_buffer(&buffer[..short], &facts).is_err(), "the buffer is too short");
    }
    let values: Vec<&[u8]> =
        kernel.param_layout().iter().map(|&(_, size)| &buffer[..size as usize]).collect();
    let segment =
        kernel.kernarg_of_params(&values, &facts).expect("a value of the right size for each parameter");
    assert_eq!(segment.len(), size as usize);
}

fn descriptor(descriptor: &KernelDescriptor) {
    assert!(descriptor.vgprs("gfx942") <= 512, "{descriptor:?}");
    assert!(descriptor.sgprs_gfx9() <= 128 && descriptor.accum_offset() <= 256, "{descriptor:?}");
    assert!(descriptor.user_sgprs() < 32 && descriptor.preload_dwords() < 128, "{descriptor:?}");
    assert!((1..=3).contains(&descriptor.workitem_id_dims()), "{descriptor:?}");
    let mode = descriptor.float_mode();
    assert!(mode.round_32 < 4 && mode.denorm_16_64 < 4, "{mode:?}");
}

/// Parses offload bundles, plain and compressed: decompresses within limits, finds their ends, selects an entry.
pub fn bundle(image: &[u8]) {
    if let Ok(bundle) = Bundle::parse(image) {
        for entry in bundle.entries() {
            assert!(image.get(entry.range.clone()).is_some(), "{entry:?} in {} bytes", image.len());
            if let Ok(target) = Target::of_entry(&entry.id) {
                assert_eq!(target.to_string().parse(), Ok(target), "{entry:?}");
            }
        }
    }
    if let Ok(unpacked) = decompress(image, LIMITS) {
        let header = CompressedHeader::parse(image).expect("it was unpacked");
        assert_eq!(unpacked.len() as u64, header.uncompressed_bytes);
        assert!(header.uncompressed_bytes <= LIMITS.uncompressed_max_bytes);
    }
    for device in DEVICES.iter() {
        if let Ok(chosen) = select_with(image, device, LIMITS) {
            elf(&chosen);
        }
    }
    let endless = CompressedHeader::parse(image)
        .is_ok_and(|header| header.total_bytes.is_none() && header.uncompressed_bytes > MEASURED_MAX_BYTES);
    if !endless {
        measure(image);
    }
}

/// Measures an image with as few bytes as possible: the result has to be that for all bytes at once, without reading beyond
/// the image.
fn measure(image: &[u8]) {
    let whole = image_len(image);
    let mut measure = Measure::new();
    let mut given = 0;
    loop {
        let need = match measure.advance(&image[..given]) {
            Ok(need) => need,
            Err(error) => {
                assert!(whole.is_err(), "{error} piece by piece, {whole:?} at once");
                return;
            }
        };
        match need {
            Need::Total(len) => {
                let fits = usize::try_from(len).ok().filter(|len| *len <= image.len());
                assert_eq!(fits, whole.ok(), "{len} bytes piece by piece");
                return;
            }
            Need::More(len) => {
                assert!(len > given as u64, "{len} bytes are wanted of {given}");
                match usize::try_from(len) {
                    Ok(len) if len <= image.len() => given = len,
                    _ => {
                        assert!(whole.is_err(), "{len} bytes are wanted, {whole:?} are enough");
                        return;
                    }
                }
            }
        }
    }
}
