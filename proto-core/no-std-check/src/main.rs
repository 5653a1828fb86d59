//! Proves that hipr-proto needs neither the standard library nor an operating system: a program without `std` and C
//! library, with a bump allocator, in which a client and a server talk to each other. It exits with 0 if they succeed. (Its
//! entry point and its exit are for x86-64 Linux.)
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use hipr_proto::{Answer, Client, HipError, Inline, Limits, Opcode, Outbox, Outcome, Rx, Server, Wire, op};

/// A failed step of the check; the exit code says which.
enum Failed {
    Protocol = 1,
    Answer = 2,
}

fn exchange() -> Result<(), Failed> {
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    let mut server = Server::<Vec<u8>>::new(Limits::default());

    // An unanswered request that fails, then one that reports it, then a copy that brings bytes back.
    let copy = op::Memcpy { dst: 0, src: 0x1000, size: 5, kind: op::kind::DEVICE_TO_HOST, stream: 0 };
    let requests = [
        client.request(&op::Free { device_ptr: 7 }, &[], None),
        client.request(&op::DeviceSynchronize {}, &[], None),
        client.request(&copy, &[], None),
    ];
    if requests.iter().any(Result::is_err) || client.waiting() != 2 {
        return Err(Failed::Protocol);
    }
    let mut outbox = Outbox::new();
    client.poll_transmit(&mut outbox);
    let to_server = outbox.slices().flatten().copied().collect::<Vec<u8>>();

    let mut input = to_server.as_slice();
    while let Rx::Request { ticket, op, mut fixed, .. } =
        server.handle_input(&mut input).map_err(|_| Failed::Protocol)?
    {
        let outcome = match op {
            Opcode::FREE => Outcome::error(HipError::INVALID_VALUE),
            Opcode::MEMCPY if op::Memcpy::take(&mut fixed) == Ok(copy) => {
                Outcome::ok(&()).with_inline(Inline::Whole(Vec::from(*b"hello")))
            }
            _ => Outcome::ok(&()),
        };
        server.complete(ticket, outcome).map_err(|_| Failed::Protocol)?;
    }
    let mut outbox = Outbox::new();
    server.poll_transmit(&mut outbox);
    let to_client = outbox.slices().flatten().copied().collect::<Vec<u8>>();

    let mut input = to_client.as_slice();
    let mut seen = Vec::new();
    loop {
        match client.handle_input(&mut input).map_err(|_| Failed::Protocol)? {
            Answer::Reply(reply) => seen.push(reply.error),
            Answer::Data { bytes, last: true } if bytes == b"hello" => break,
            Answer::Data { .. } | Answer::Notification(_) | Answer::NeedMore => return Err(Failed::Answer),
        }
    }
    if seen == [Some(HipError::INVALID_VALUE), None] { Ok(()) } else { Err(Failed::Answer) }
}

extern "C" fn start() -> ! {
    exit(match exchange() {
        Ok(()) => 0,
        Err(failed) => failed as i32,
    })
}

// The kernel enters with an aligned stack and no return address; a call makes it what the ABI promises to functions.
global_asm!(".globl _start", "_start: xor ebp, ebp", "call {start}", start = sym start);

fn exit(code: i32) -> ! {
    // SAFETY: exit_group (231) takes one number and does not return.
    unsafe { asm!("syscall", in("rax") 231, in("rdi") code, options(noreturn, nostack)) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(101)
}

/// Satisfies a symbol that the toolchain's `alloc` refers to, because it was compiled to unwind; it is never called.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Satisfies a symbol that the toolchain's `alloc` refers to; see [`rust_eh_personality`].
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit(102)
}

const HEAP_BYTES: usize = 1 << 20;

/// An allocator that hands out memory from front to back and never reuses any.
struct Bump {
    heap: UnsafeCell<[u8; HEAP_BYTES]>,
    used: AtomicUsize,
}

// SAFETY: `used` hands out each byte of `heap` once.
unsafe impl Sync for Bump {}

// SAFETY: blocks are aligned, inside `heap`, and do not overlap.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = self.heap.get().cast::<u8>();
        let fits = |used: usize| {
            let start = (heap as usize + used).checked_next_multiple_of(layout.align())? - heap as usize;
            Some((start, start.checked_add(layout.size()).filter(|end| *end <= HEAP_BYTES)?))
        };
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(fits(used)?.1)) {
            // SAFETY: `fits` gave a start inside `heap`.
            Ok(used) => fits(used).map_or(core::ptr::null_mut(), |(start, _)| unsafe { heap.add(start) }),
            Err(_) => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: Bump = Bump { heap: UnsafeCell::new([0; HEAP_BYTES]), used: AtomicUsize::new(0) };

/// The memory functions that the compiler expects in every environment. They are written with string instructions, because
/// a loop would be compiled to a call of itself.
mod memory {
    use core::arch::asm;

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        // SAFETY: the caller gives `n` bytes at both.
        unsafe {
            asm!("rep movsb", inout("rcx") n => _, inout("rdi") dst => _, inout("rsi") src => _, options(nostack));
        }
        dst
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        if (dst as usize).wrapping_sub(src as usize) >= n {
            // SAFETY: `dst` does not lie inside `src`, so copying upwards is right.
            return unsafe { memcpy(dst, src, n) };
        }
        // SAFETY: the caller gives `n` bytes at both; downwards, and the direction is put back.
        unsafe {
            asm!(
                "std", "rep movsb", "cld",
                inout("rcx") n => _,
                inout("rdi") dst.wrapping_add(n).wrapping_sub(1) => _,
                inout("rsi") src.wrapping_add(n).wrapping_sub(1) => _,
                options(nostack)
            );
        }
        dst
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(dst: *mut u8, value: i32, n: usize) -> *mut u8 {
        // SAFETY: the caller gives `n` bytes.
        unsafe {
            asm!("rep stosb", inout("rcx") n => _, inout("rdi") dst => _, in("al") value as u8, options(nostack));
        }
        dst
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
        for i in 0..n {
            // SAFETY: the caller gives `n` bytes at both.
            let (a, b) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
            if a != b {
                return i32::from(a) - i32::from(b);
            }
        }
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
        // SAFETY: as `memcmp`.
        unsafe { memcmp(a, b, n) }
    }
}
