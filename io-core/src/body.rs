use std::mem;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The bulk bytes of a reply. They are owned, so that they are neither copied nor borrowed on their way to the socket;
/// dropping the body returns its buffer to its pool.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    home: Option<Arc<Mutex<Vec<Vec<u8>>>>>,
    /// Shared bytes that are sent instead of `bytes`, and how many of them.
    shared: Option<(Arc<[u8]>, usize)>,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        match &self.shared {
            Some((bytes, len)) => bytes.get(..*len).unwrap_or(bytes),
            None => &self.bytes,
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, home: None, shared: None }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            // A vector of buffers is whole whenever the lock is free, so poison says nothing.
            let mut free = home.lock().unwrap_or_else(PoisonError::into_inner);
            if free.len() < BodyPool::KEEP {
                free.push(mem::take(&mut self.bytes));
            }
        }
    }
}

/// A pool of equally sized buffers for bodies. They are filled on one thread and dropped on another, so that a lock
/// protects the pool.
#[derive(Debug)]
pub struct BodyPool {
    len_bytes: usize,
    free: Arc<Mutex<Vec<Vec<u8>>>>,
    zeros: OnceLock<Arc<[u8]>>,
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
        let zeros = self.zeros.get_or_init(|| vec![0; self.len_bytes].into());
        Body { bytes: Vec::new(), home: None, shared: Some((zeros.clone(), len)) }
    }

    /// Returns a body of `len` bytes, filled by `fill`. If `len` exceeds the size of the pool's buffers, its buffer is not
    /// returned to the pool.
    pub fn body(&self, len: usize, fill: impl FnOnce(&mut [u8])) -> Body {
        if len > self.len_bytes {
            let mut bytes = vec![0; len];
            fill(&mut bytes);
            return bytes.into();
        }
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bytes = free.unwrap_or_else(|| Vec::with_capacity(self.len_bytes));
        bytes.resize(len, 0);
        fill(&mut bytes);
        Body { bytes, home: Some(self.free.clone()), shared: None }
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
    fn zeros_are_shared_and_as_many_as_asked_for() {
        let pool = BodyPool::new(8);
        let (some, all) = (pool.zeros(3), pool.zeros(8));
        assert_eq!((some.as_ref(), all.as_ref()), (&[0; 3][..], &[0; 8][..]));
        assert_eq!(some.as_ref().as_ptr(), all.as_ref().as_ptr());
        assert_eq!(pool.zeros(9).as_ref(), [0; 9]);
        drop((some, all));
        assert_eq!(pool.free.lock().unwrap().len(), 0, "no buffer of the pool's was taken");
    }
}
