use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// What carries a reply's bulk bytes: owned, so that it is neither copied nor borrowed on its way to the socket. Gives its
/// buffer back to where it came from when it was sent.
#[derive(Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    home: Option<Arc<Mutex<Vec<Vec<u8>>>>>,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, home: None }
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

/// Buffers of one size for bodies. They are filled on one thread and sent on another, so they come back through a lock, once
/// for each.
#[derive(Debug)]
pub struct BodyPool {
    len_bytes: usize,
    free: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl BodyPool {
    /// Free buffers that are kept.
    const KEEP: usize = 16;

    /// A pool of buffers of `len_bytes` bytes.
    pub fn new(len_bytes: usize) -> Self {
        Self { len_bytes, free: Arc::default() }
    }

    /// A body of `len` bytes that `fill` fills. `len` above the size of the pool's buffers makes one that is not kept.
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
        Body { bytes, home: Some(self.free.clone()) }
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
}
