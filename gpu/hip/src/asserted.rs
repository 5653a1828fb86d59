//! Which assertions of kernels have failed, as the runtime writes it on the C library's standard error.
//!
//! The C library's stream is replaced by one whose bytes go to the same descriptor at once, and are looked through on the way.

use std::ffi::{c_char, c_int, c_void};
use std::io;

/// Maximum length of a line that is looked at.
const LINE_MAX_BYTES: usize = 16 << 10;
/// What a line has in it and ends with that says which assertion failed: AMD's device library writes `FILE:LINE: FUNCTION: Device-side
/// assertion `TEXT' failed.`
const PARTS: [&[u8]; 2] = [b": Device-side assertion `", b"' failed."];

/// The line that is being written, and who is told of assertions.
struct Lines<T> {
    line: Vec<u8>,
    tell: T,
}

impl<T: Fn(&[u8])> Lines<T> {
    fn add(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room_bytes = LINE_MAX_BYTES - self.line.len();
            self.line.extend_from_slice(&piece[..piece.len().min(room_bytes)]);
            if piece.ends_with(b"\n") {
                if is_assertion(&self.line) {
                    (self.tell)(&self.line);
                }
                self.line.clear();
            }
        }
    }
}

/// Returns whether a line, with its end, says which assertion failed.
fn is_assertion(line: &[u8]) -> bool {
    let [part, end] = PARTS;
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    text.ends_with(end) && text.windows(part.len()).any(|window| window == part)
}

/// `cookie_io_functions_t` of the C library.
#[repr(C)]
struct Functions {
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

#[allow(unsafe_code, reason = "it calls the C library")]
unsafe extern "C" {
    static mut stderr: *mut libc::FILE;

    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut libc::FILE;
}

/// Writes what the stream is given to standard error, and looks through it. Returns its length: a log that cannot be written is lost.
#[allow(unsafe_code, reason = "the C library calls it")]
unsafe extern "C" fn write<T: Fn(&[u8])>(
    cookie: *mut c_void,
    bytes: *const c_char,
    len_bytes: usize,
) -> isize {
    // SAFETY: the stream passes what it was opened with, under its lock, and the bytes that it writes.
    let (lines, bytes) = unsafe {
        (&mut *cookie.cast::<Lines<T>>(), std::slice::from_raw_parts(bytes.cast::<u8>(), len_bytes))
    };
    let _ = io::Write::write_all(&mut io::stderr(), bytes);
    lines.add(bytes);
    len_bytes as isize
}

/// Calls `tell` with each line of the C library's standard error that says which assertion failed, on the thread that writes it, before that
/// goes on.
///
/// # Errors
/// What the C library says where it gives no stream.
#[allow(unsafe_code, reason = "it calls the C library")]
pub(super) fn listen<T: Fn(&[u8]) + Send + Sync + 'static>(tell: T) -> io::Result<()> {
    // The stream stays as long as the process.
    let cookie = Box::into_raw(Box::new(Lines { line: Vec::new(), tell })).cast();
    let functions = Functions { read: None, write: Some(write::<T>), seek: None, close: None };
    // SAFETY: the mode ends with a zero, and the functions fit the cookie. The variable is the program's to set (libc: Standard Streams), no
    // other thread runs yet that uses it, and without a buffer the stream holds nothing back.
    unsafe {
        let stream = fopencookie(cookie, c"w".as_ptr(), functions);
        if stream.is_null() {
            return Err(io::Error::last_os_error());
        }
        libc::setvbuf(stream, std::ptr::null_mut(), libc::_IONBF, 0);
        stderr = stream;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn only_whole_lines_about_assertions_are_told() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&told);
        let tell = move |line: &[u8]| list.lock().expect("no panic").push(line.to_vec());
        let mut lines = Lines { line: Vec::new(), tell };
        let assertion = b"a.hip:3: void f(int): Device-side assertion `x < y && \"why\"' failed.\n";
        let long = [b"x".repeat(3 * LINE_MAX_BYTES), b"\n".to_vec()].concat();
        let others: [&[u8]; 4] =
            [b"Memory access fault by GPU node-1\n", b"\n", b": Device-side assertion `\n", &long];
        for size_bytes in [1, 7, 4096] {
            let all: Vec<u8> = others.iter().flat_map(|other| [*other, assertion].concat()).collect();
            all.chunks(size_bytes).for_each(|piece| lines.add(piece));
            lines.add(&assertion[..assertion.len() - 1]);
            lines.add(b" or so\n");
            let told = std::mem::take(&mut *told.lock().expect("no panic"));
            assert_eq!(told, vec![assertion.to_vec(); others.len()], "in pieces of {size_bytes} bytes");
        }
    }
}
