//! What a session's process may and may not do: tries all of it from within the process, as code that a client got there would.

use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{self, Command};
use std::{env, ptr, thread};

use crate::plan::{BREAK_OUT, SECRET, SERVICE};

type Attempt = (&'static str, io::Result<()>);

/// Does all that [`BREAK_OUT`] asks for; each attempt is a line on standard error, `break-out: NAME done` or `break-out: NAME refused`.
pub(crate) fn try_all() {
    let Ok(place) = env::var(BREAK_OUT) else { return };
    let (folder, address) = place.split_once(',').unwrap_or_else(|| crate::stop("a folder and an address"));
    for (name, result) in needed().into_iter().chain(forbidden(Path::new(folder), address)) {
        match result {
            Ok(()) => eprintln!("break-out: {name} done"),
            Err(why) => eprintln!("break-out: {name} refused: {why}"),
        }
    }
}

/// What a HIP runtime does.
fn needed() -> Vec<Attempt> {
    let temporary = env::temp_dir().join("file");
    vec![
        ("thread", thread::Builder::new().spawn(|| ()).map(|thread| drop(thread.join()))),
        ("library", fs::read_dir("/usr/lib").map(drop)),
        ("system", fs::read("/sys/kernel/mm/transparent_hugepage/enabled").map(drop)),
        ("own-maps", fs::read("/proc/self/maps").map(drop)),
        ("temporary", fs::write(&temporary, "a").and_then(|()| fs::read(&temporary)).map(drop)),
        ("remove-temporary", fs::remove_file(&temporary)),
        ("null", File::options().write(true).open("/dev/null").map(drop)),
        // SAFETY: no pointers but a text; the descriptor is nobody else's.
        ("file-in-memory", check(unsafe { libc::memfd_create(c"a".as_ptr(), 0) })),
        // SAFETY: asks whether this process can be sent a signal, and sends none.
        ("signal-self", check(unsafe { libc::kill(process::id() as i32, 0) })),
    ]
}

fn forbidden(folder: &Path, address: &str) -> Vec<Attempt> {
    let parent = std::os::unix::process::parent_id() as i32;
    let exchange = env::temp_dir().parent().map(Path::to_owned).unwrap_or_default();
    let mut ring = [0_u32; 30];
    let null = ptr::null_mut::<libc::c_void>();
    vec![
        ("read", fs::read(folder.join(SECRET)).map(drop)),
        ("write", fs::write(folder.join("new"), "a")),
        ("list", fs::read_dir(folder).map(drop)),
        ("list-shared", fs::read_dir(exchange).map(drop)),
        ("passwords", fs::read("/etc/shadow").map(drop)),
        ("tcp", TcpStream::connect(address).map(drop)),
        ("unix", UnixStream::connect(folder.join(SERVICE)).map(drop)),
        ("run", Command::new("/bin/true").status().map(drop)),
        ("environment-of-other", fs::read(format!("/proc/{parent}/environ")).map(drop)),
        ("memory-of-other", File::open(format!("/proc/{parent}/mem")).map(drop)),
        // SAFETY: asks whether the process can be sent a signal, and sends none.
        ("signal-other", check(unsafe { libc::kill(parent, 0) })),
        ("fork", fork()),
        // SAFETY: takes numbers only; the other process goes on.
        ("trace", check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, parent, null, null) } as i32)),
        // SAFETY: takes a number.
        ("new-namespace", check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })),
        // SAFETY: takes numbers; the segment is never attached.
        ("shared-segment", check(unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600) })),
        // SAFETY: the place is as long as the kernel's structure, 120 bytes.
        ("ring", check(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, ring.as_mut_ptr()) } as i32)),
        // SAFETY: takes numbers.
        ("core-dumps", check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) })),
        // SAFETY: takes numbers; that of a group which a process without capabilities cannot have.
        ("group", check(unsafe { libc::setgid(12_345) })),
    ]
}

fn fork() -> io::Result<()> {
    // SAFETY: the new process does nothing but end; the parent waits for it.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            child if child > 0 => check(libc::waitpid(child, ptr::null_mut(), 0)),
            failed => check(failed),
        }
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
