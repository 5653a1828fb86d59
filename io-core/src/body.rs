use std::mem;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

/// The bulk bytes of a reply. They are owned, so that they are neither copied nor borrowed on their way to the socket;
/// dropping the body returns its buffer to its pool.
///
/// [`Bytes`] become a body without being copied, and a body becomes [`Bytes`].
#[derive(Debug)]
pub struct Body(Memory);

#[derive(Debug)]
enum Memory {
    Owned(Vec<u8>),
    Pooled(PooledBuffer),
    Shared(Bytes),
}

/// Buffers that a pool keeps for later bodies.
type Free = Mutex<Vec<Vec<u8>>>;

/// A buffer that returns to its pool when dropped. [`Bytes`] could own it, for an allocation each.
#[derive(Debug)]
struct PooledBuffer {
    bytes: Vec<u8>,
    home: Arc<Free>,
}

impl Default for Body {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Memory::Owned(bytes) => bytes,
            Memory::Pooled(buffer) => &buffer.bytes,
            Memory::Shared(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Memory::Owned(bytes))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Memory::Shared(bytes))
    }
}

impl From<Body> for Bytes {
    /// Returns the body's bytes, not copied. A pool's buffer returns to it when the last owner is dropped.
    fn from(body: Body) -> Self {
        match body.0 {
            Memory::Owned(bytes) => bytes.into(),
            Memory::Pooled(_) => Self::from_owner(body),
            Memory::Shared(bytes) => bytes,
        }
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        // A vector of buffers is whole whenever the lock is free, so poison says nothing.
        let mut free = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < BodyPool::KEEP {
            free.push(mem::take(&mut self.bytes));
        }
    }
}

/// A pool of equally sized buffers for bodies. They are filled on one thread and dropped on another, so that a lock
/// protects the pool.
#[derive(Debug)]
pub struct BodyPool {
    len_bytes: usize,
    free: Arc<Free>,
    zeros: OnceLock<Bytes>,
}

impl BodyPool {
    /// Maximum number of free buffers that are kept.
    const KEEP: usize = 16;

    /// Creates a pool of buffers of `len_bytes` bytes.
    pub fn new(len_bytes: usize) -> Self {
        Self { len_bytes, free: Arc::default(), zeros: OnceLock::new() }
    }

    /// Returns a body of `len` zeros. All bodies of zeros share their memory, unless they are longer than the pool's
    /// buffers.
    pub fn zeros(&self, len: usize) -> Body {
        if len > self.len_bytes {
            return vec![0; len].into();
        }
        self.zeros.get_or_init(|| vec![0; self.len_bytes].into()).slice(..len).into()
    }

    /// Returns a body of `len` bytes, filled by `fill`. If `len` exceeds the size of the pool's buffers, its buffer is not
    /// returned to the pool.
    pub fn body(&self, len: usize, fill: impl FnOnce(&mut [u8])) -> Body {
        if len > self.len_bytes {
            let mut bytes = vec![0; len];
            fill(&mut bytes);
            return bytes.into();
        }
        let mut bytes = self.buffer();
        bytes.resize(len, 0);
        fill(&mut bytes);
        self.pooled(bytes)
    }

    /// Returns a body of the bytes that `append` appends to a buffer of the pool. If they are more than the size of the pool's buffers, the
    /// buffer is not returned to the pool.
    pub fn appended(&self, append: impl FnOnce(&mut Vec<u8>)) -> Body {
        let mut bytes = self.buffer();
        bytes.clear();
        append(&mut bytes);
        if bytes.len() > self.len_bytes { bytes.into() } else { self.pooled(bytes) }
    }

    /// Returns a free buffer, with the bytes that it had.
    fn buffer(&self) -> Vec<u8> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| Vec::with_capacity(self.len_bytes))
    }

    fn pooled(&self, bytes: Vec<u8>) -> Body {
        Body(Memory::Pooled(PooledBuffer { bytes, home: self.free.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_are_not_kept_without_end() {
        let pool = BodyPool::new(8);
        let free = || pool.free.lock().unwrap().len();
        let body = pool.body(5, |bytes| bytes.copy_from_slice(b"first"));
        assert_eq!((body.as_ref(), free()), (&b"first"[..], 0));
        drop(body);
        assert_eq!(free(), 1);
        let body = pool.body(8, |bytes| bytes.fill(2));
        assert_eq!((body.as_ref(), free()), (&[2; 8][..], 0), "the same buffer");
        drop(pool.body(9, |bytes| bytes.fill(3)));
        assert_eq!(free(), 0, "too long to be kept");
        drop((0..100).map(|_| pool.body(1, |_| ())).collect::<Vec<_>>());
        assert_eq!(free(), BodyPool::KEEP);
    }

    #[test]
    fn what_is_appended_begins_in_an_empty_buffer_and_comes_back_if_it_is_not_too_long() {
        let pool = BodyPool::new(8);
        let free = || pool.free.lock().unwrap().len();
        assert_eq!(pool.appended(|bytes| bytes.extend(*b"first")).as_ref(), *b"first");
        assert_eq!(free(), 1);
        assert_eq!(pool.appended(|bytes| bytes.extend(*b"second")).as_ref(), *b"second");
        assert_eq!(pool.appended(|bytes| bytes.extend(*b"too long.")).as_ref(), *b"too long.");
        assert_eq!(free(), 0, "its buffer has grown");
    }

    #[test]
    fn zeros_are_shared_and_as_many_as_asked_for() {
        let pool = BodyPool::new(8);
        let (some, all) = (pool.zeros(3), pool.zeros(8));
        assert_eq!((some.as_ref(), all.as_ref()), (&[0; 3][..], &[0; 8][..]));
        assert_eq!(some.as_ref().as_ptr(), all.as_ref().as_ptr());
        assert_eq!(pool.zeros(9).as_ref(), [0; 9]);
        drop((some, all));
        assert_eq!(pool.free.lock().unwrap().len(), 0, "no buffer of the pool's was taken");
    }

    #[test]
    fn bytes_come_in_and_go_out_without_a_copy() {
        let pool = BodyPool::new(8);
        let shared = Bytes::from(vec![1, 2, 3, 4]);
        for body in [
            Body::from(vec![5; 6]),
            Body::from(shared.slice(1..)),
            pool.body(8, |bytes| bytes.fill(2)),
            pool.zeros(8),
        ] {
            let (expected, at) = (body.as_ref().to_vec(), body.as_ref().as_ptr());
            let bytes = Bytes::from(body);
            assert_eq!((&*bytes, bytes.as_ptr()), (&*expected, at));
        }
        assert_eq!(Body::from(shared.clone()).as_ref().as_ptr(), shared.as_ptr());
    }

    #[test]
    fn a_pools_buffer_returns_when_the_last_of_its_bytes_is_dropped() {
        let pool = BodyPool::new(8);
        let free = || pool.free.lock().unwrap().len();
        let bytes = Bytes::from(pool.body(8, |bytes| bytes.fill(2)));
        let half = bytes.slice(..4);
        drop(bytes);
        assert_eq!((&*half, free()), (&[2; 4][..], 0));
        drop(half);
        assert_eq!(free(), 1);
    }
}
