//! What the client knows of a program's code objects: it parses them itself, with the parser of the emulated GPU, so that bad images and
//! missing kernels are refused at once, and so that no answer of a worker says how much of the program's memory is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, Weak};

use hipr_code_object::{CodeObject, Loadable, Measure, Need, Target, loadable, select};
use hipr_proto::{HipError, HipResult};

use crate::command::KernelFacts;
use crate::convert::Ptr;
use crate::worker::lock;

/// Suffix that the compiler appends to a `__managed__` variable's name to name its initial value.
pub(crate) const MANAGED_SUFFIX: &str = ".managed";

/// Prefix of the variables by which the compiler tells translation units apart.
const UNIT_ID_PREFIX: &str = "__hip_cuid_";

/// The metadata of a code object that the client needs.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Code {
    /// The device memory that it needs, in bytes.
    memory_bytes: u64,
    /// What it costs a worker at most, in bytes.
    cost_bytes: u64,
    /// The kernels that can be launched, sorted by name.
    kernels: Box<[(Box<str>, KernelFacts)]>,
    /// The variables with their sizes in bytes, sorted by name.
    globals: Box<[(Box<str>, u64)]>,
    /// The `__managed__` variables, by name.
    managed: Box<[(Box<str>, Managed)]>,
}

/// Metadata of a `__managed__` variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Managed {
    /// Size of the variable in bytes.
    pub(crate) size: usize,
    /// Distance from the variable's pointer to its initial value, in bytes.
    pub(crate) distance: u64,
}

/// Returns the value of `name` in a list that is sorted by name.
fn find<'a, T>(list: &'a [(Box<str>, T)], name: &str) -> Option<&'a T> {
    let index = list.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
    list.get(index).map(|(_, value)| value)
}

impl Code {
    fn of(object: &CodeObject, processor: &str) -> Self {
        let kernels = object.launchable_kernels().map(|kernel| {
            let facts = KernelFacts { params: kernel.param_layout(), needs: kernel.needs(processor) };
            (kernel.name.as_str().into(), facts)
        });
        // Such a variable is a pointer, beside which the compiler puts the initial value.
        let managed = object.globals().iter().filter_map(|value| {
            let name = value.name.strip_suffix(MANAGED_SUFFIX)?;
            let pointer = object.global(name)?;
            let size = usize::try_from(value.size).ok().filter(|size| *size > 0)?;
            let distance = value.vaddr.wrapping_sub(pointer.vaddr);
            (pointer.size == size_of::<u64>() as u64).then(|| (name.into(), Managed { size, distance }))
        });
        let mut managed: Vec<(Box<str>, Managed)> = managed.collect();
        managed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self {
            memory_bytes: object.image_bytes(),
            cost_bytes: object.cost_bytes(),
            kernels: kernels.collect(),
            globals: object
                .globals()
                .iter()
                .map(|global| (global.name.as_str().into(), global.size))
                .collect(),
            managed: managed.into(),
        }
    }

    /// Returns the kernel with this name.
    pub(crate) fn kernel(&self, name: &str) -> Option<&KernelFacts> {
        find(&self.kernels, name)
    }

    /// Returns the names of the kernels that can be launched, sorted.
    pub(crate) fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|(name, _)| &**name)
    }

    /// Returns the size in bytes of the variable with this name.
    pub(crate) fn global_bytes(&self, name: &str) -> Option<u64> {
        find(&self.globals, name).copied()
    }

    /// Returns the names of the variables that a program may come to use, sorted; the compiler's own are not among them.
    pub(crate) fn usable_globals(&self) -> impl Iterator<Item = &str> {
        self.globals.iter().map(|(name, _)| &**name).filter(|name| !name.starts_with(UNIT_ID_PREFIX))
    }

    /// Returns the `__managed__` variable with this name.
    pub(crate) fn managed(&self, name: &str) -> Option<Managed> {
        find(&self.managed, name).copied()
    }

    /// Returns all `__managed__` variables, sorted by name.
    pub(crate) fn all_managed(&self) -> impl Iterator<Item = (&str, Managed)> {
        self.managed.iter().map(|(name, managed)| (&**name, *managed))
    }
}

/// The metadata that is in use, once for each content: modules with the same metadata share it.
#[derive(Debug, Default)]
pub(crate) struct Known {
    by_hash: HashMap<u64, Vec<Weak<Code>>>,
}

impl Known {
    /// Returns the shared metadata that is equal to `code`.
    fn shared(&mut self, code: Code) -> Arc<Code> {
        let mut hasher = DefaultHasher::new();
        code.hash(&mut hasher);
        // What no module uses any more has no other owner.
        self.by_hash.retain(|_, all| {
            all.retain(|code| code.strong_count() > 0);
            !all.is_empty()
        });
        let all = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(known) = all.iter().filter_map(Weak::upgrade).find(|known| **known == code) {
            return known;
        }
        let code = Arc::new(code);
        all.push(Arc::downgrade(&code));
        code
    }
}

/// A code object that is about to be loaded.
#[derive(Debug)]
pub(crate) struct CodeImage<'a> {
    /// The bytes to send: the device's code object, or the whole image if the device's architecture is unknown.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// The metadata; None if only the worker can say whether the image can be loaded.
    pub(crate) code: Option<Arc<Code>>,
}

/// The largest code object, in bytes of device memory, that is loaded without an answer: that there is no memory for a larger one is told
/// at once.
const UNANSWERED_MAX_BYTES: u64 = 64 << 20;

impl<'a> CodeImage<'a> {
    /// Returns whether the client knows enough of the code object to load it without waiting for an answer.
    pub(crate) fn needs_no_answer(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.memory_bytes <= UNANSWERED_MAX_BYTES)
    }

    /// Returns how many bytes the worker needs for it at most; all there are if that is not known.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.code.as_ref().map_or(u64::MAX, |code| code.cost_bytes.saturating_add(self.bytes.len() as u64))
    }

    /// Returns the code object for a device of this architecture from an image; its metadata is one of `known`.
    ///
    /// # Errors
    /// `hipErrorNoBinaryForGpu` when there is none, `hipErrorInvalidImage` when the image is damaged.
    pub(crate) fn find(image: &'a [u8], architecture: &str, known: &Mutex<Known>) -> HipResult<Self> {
        if architecture.is_empty() {
            return Ok(Self { bytes: Cow::Borrowed(image), code: None });
        }
        let target: Target = architecture.parse().map_err(|error| {
            tracing::warn!("cannot use the architecture {architecture:?} of the worker's device: {error}");
            HipError::NO_BINARY_FOR_GPU
        })?;
        match loadable(image, &target) {
            Ok(Loadable { elf, code }) => {
                let code = lock(known).shared(Code::of(&code, &target.processor));
                Ok(Self { bytes: elf, code: Some(code) })
            }
            Err(why) if why.is_matter_of_loader() => {
                tracing::debug!("the worker decides about a code object: {why}");
                let bytes = select(image, &target).map_err(|_| HipError(why.hip_error()))?;
                Ok(Self { bytes, code: None })
            }
            Err(why) => {
                tracing::warn!("cannot load any code: {why}");
                Err(HipError(why.hip_error()))
            }
        }
    }
}

/// Returns the bytes of the image at `image`, whose size its headers say.
///
/// # Errors
/// `hipErrorInvalidImage` for what is no code object, bundle or compressed bundle.
pub(crate) fn image_at<'a>(image: Ptr) -> HipResult<&'a [u8]> {
    let mut measure = Measure::new();
    let mut known = 0;
    loop {
        // SAFETY: the program says that an image is here; `measure` asks for bytes only that the image is sure to
        // have.
        let prefix = unsafe { image.host_bytes(known) };
        match measure.advance(prefix) {
            // SAFETY: as above.
            Ok(Need::Total(len)) => return Ok(unsafe { image.host_bytes(usize_of(len)?) }),
            Ok(Need::More(len)) if usize_of(len)? > known => known = usize_of(len)?,
            Ok(Need::More(_)) => return Err(HipError::INVALID_IMAGE),
            Err(error) => {
                tracing::warn!("cannot load the image at {image:?}: {error}");
                return Err(HipError::INVALID_IMAGE);
            }
        }
    }
}

fn usize_of(len: u64) -> HipResult<usize> {
    usize::try_from(len).map_err(|_| HipError::INVALID_IMAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/code-object/tests/data");
        std::fs::read(std::path::Path::new(folder).join(name)).expect("a file")
    }

    fn code(known: &Mutex<Known>, image: &[u8], architecture: &str) -> Option<Arc<Code>> {
        CodeImage::find(image, architecture, known).expect("an image with code for the device").code
    }

    const GFX942: &str = "gfx942:sramecc+:xnack-";

    #[test]
    fn equal_code_is_kept_once_and_only_while_it_is_used() {
        let known = Mutex::default();
        // The same code object, bare, in a bundle and in compressed bundles.
        let forms = ["one-gfx942.elf", "one.bundle", "one-v2.ccob", "one-v3.ccob", "one-v2-zlib.ccob"];
        let of = |name| code(&known, &image(name), GFX942).expect("a parsed code object");
        let all: Vec<_> = forms.map(of).into();
        assert!(all.iter().all(|code| Arc::ptr_eq(code, &all[0])));
        let other = of("kernels-v6.elf");
        assert!(!Arc::ptr_eq(&other, &all[0]));
        let entries = || lock(&known).by_hash.values().map(Vec::len).sum::<usize>();
        assert_eq!(entries(), 2);
        drop(all);
        let again = of("kernels-v6.elf");
        assert!(Arc::ptr_eq(&other, &again));
        assert_eq!(entries(), 1, "what nobody uses is forgotten");
    }

    #[test]
    fn a_kernel_is_as_the_code_object_says() {
        let known = Mutex::default();
        let code = code(&known, &image("kernels-v6.elf"), GFX942).expect("a parsed code object");
        let mixed = code.kernel("mixed").expect("a kernel");
        assert_eq!(mixed.params, [(0, 24), (24, 1), (26, 2), (32, 8), (40, 8)]);
        let local = code.kernel("local_memory").expect("a kernel");
        assert_eq!((local.needs.lds_bytes, local.needs.max_block_size), (256, 64));
        assert!(code.kernel("nothing").is_some_and(|kernel| kernel.params.is_empty()));
        assert!(code.kernel("saxpy.kd").is_none() && code.kernel("table").is_none());
        assert!(code.global_bytes("table").is_some());
        assert!(code.global_bytes("saxpy").is_none() && code.global_bytes("saxpy.kd").is_none());
    }

    #[test]
    fn what_only_the_worker_can_judge_is_left_to_it() {
        let known = Mutex::default();
        // An unknown device; code of an older version; symbols that are defined elsewhere.
        assert_eq!(code(&known, b"anything", ""), None);
        let mut old = image("one-gfx942.elf");
        old[8] = 1;
        assert_eq!(code(&known, &old, GFX942), None);
        assert_eq!(code(&known, &image("undefined.elf"), GFX942), None);
        let refused = |image: &[u8], architecture| {
            CodeImage::find(image, architecture, &known).map(|found| found.code).err()
        };
        assert_eq!(refused(&image("one.bundle"), "gfx1100"), Some(HipError::NO_BINARY_FOR_GPU));
        assert_eq!(refused(&image("one.bundle"), "unheard of"), Some(HipError::NO_BINARY_FOR_GPU));
        assert_eq!(refused(b"#!/bin/sh", GFX942), Some(HipError::INVALID_IMAGE));
        // A section table outside of the file.
        let mut damaged = image("one-gfx942.elf");
        damaged[40..48].fill(0xff);
        assert_eq!(refused(&damaged, GFX942), Some(HipError::INVALID_IMAGE));
    }
}
