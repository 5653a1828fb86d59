//! What the process of a session may do on its machine: it serves its client on the GPU, and nothing else.
//!
//! A client's kernels and code objects go through drivers and parsers, and who finds a hole in those has the process. What that is worth
//! is decided here, before the process has read a byte from its client: no other programs, no sockets, no other processes, no files but
//! those that a HIP runtime needs ([`Reach`]). The calls that are refused are listed, because what a runtime needs differs from release
//! to release; a refused call fails with `EPERM` and ends nothing.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{DumpableBehavior, getpid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads,
};

/// The version of Landlock whose rules are used as far as the kernel has them.
const LANDLOCK: ABI = ABI::V6;

/// What a HIP runtime and the system's libraries read.
const READ: &[&str] = &[
    "/usr",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/sys",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/group",
    "/dev/random",
    "/dev/urandom",
];
/// The devices that a session opens: those of GPUs, and those that are nobody's.
const DEVICES: &[&str] = &["/dev/kfd", "/dev/dri", "/dev/null", "/dev/zero"];
/// Where a HIP runtime makes its shared memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// Variables with the folders of libraries and of ROCm, separated by colons.
const FOLDERS: &[&str] = &["LD_LIBRARY_PATH", "ROCM_PATH", "HIP_PATH"];

/// Options for what the processes of sessions may do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Processes of sessions")]
pub(super) struct Sandbox {
    /// Whether the process of a session is kept from everything that serving its client does not need: auto (as far as the kernel can),
    /// required (the worker does not start if the kernel cannot), or off.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    sandbox: Confinement,
    /// A file or folder that sessions' processes may read besides, such as that of a HIP runtime in an unusual place; may be repeated.
    #[arg(long, value_name = "PATH", action = clap::ArgAction::Append)]
    sandbox_read: Vec<PathBuf>,
}

/// Whether the processes of sessions are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Confinement {
    /// As far as the kernel can.
    Auto,
    /// The worker does not start if the kernel cannot.
    Required,
    /// Not at all.
    Off,
}

/// The files that one session's process needs besides those of every HIP runtime.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// Files and folders to read.
    pub(super) read: Vec<PathBuf>,
    /// Files that exist, to read and change.
    pub(super) change: Vec<PathBuf>,
    /// The folder of what sessions share, which the process cannot list: who has a file's name was told it.
    pub(super) exchange: Option<PathBuf>,
    /// Folders in which everything may be made and removed.
    pub(super) own: Vec<PathBuf>,
    /// Whether a GPU's driver is used.
    pub(super) has_gpu: bool,
    /// Whether the event loop is io_uring, whose requests the filter of system calls does not see.
    pub(super) has_uring: bool,
}

impl Sandbox {
    /// Returns whether the processes of sessions are confined.
    pub(super) fn is_on(&self) -> bool {
        self.sandbox != Confinement::Off
    }

    /// Checks, once for all sessions, what the kernel can do; says what it cannot.
    ///
    /// # Errors
    /// A sandbox is required, and the kernel has no Landlock or no filter of system calls.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.is_on() {
            tracing::warn!(
                "the processes of sessions are not confined (--sandbox off): who breaks out of a session can do what this worker's user can"
            );
            return Ok(());
        }
        let has_landlock = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))
            .and_then(Ruleset::create)
            .is_ok();
        // The kernel's list of actions is there when filters are.
        let has_filters = Path::new("/proc/sys/kernel/seccomp/actions_avail").exists();
        let missing = match (has_landlock, has_filters) {
            (true, true) => return Ok(()),
            (false, true) => "Landlock",
            (true, false) => "filters of system calls (seccomp)",
            (false, false) => "Landlock and filters of system calls (seccomp)",
        };
        if self.sandbox == Confinement::Required {
            return Err(format!("--sandbox required: this kernel has no {missing}"));
        }
        tracing::warn!(missing, "this kernel cannot confine the processes of sessions as intended");
        Ok(())
    }

    /// Confines this process, which has one thread.
    ///
    /// # Errors
    /// The system refuses what it has; or it does not have all, and a sandbox is required.
    pub(super) fn enter(&self, reach: Reach) -> Result<(), String> {
        if !self.is_on() {
            return Ok(());
        }
        let failed = |what: &str, why: &dyn std::fmt::Display| {
            format!("cannot confine the session's process: {what}: {why}")
        };
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|why| failed("core dumps", &why))?;
        set_no_new_privs(true).map_err(|why| failed("no new privileges", &why))?;
        drop_capabilities().map_err(|why| failed("capabilities", &why))?;
        let (has_uring, required) = (reach.has_uring, self.sandbox == Confinement::Required);
        let status = self.restrict_files(reach).map_err(|why| failed("Landlock", &why))?;
        if required && status == RulesetStatus::NotEnforced {
            return Err(failed("Landlock", &"this kernel does not have it"));
        }
        let filters = filters(has_uring).map_err(|why| failed("system calls", &why))?;
        for filter in &filters {
            match apply_filter_all_threads(filter) {
                Ok(()) => {}
                Err(why) if required => return Err(failed("system calls", &why)),
                Err(why) => tracing::warn!(%why, "this kernel does not filter a session's system calls"),
            }
        }
        Ok(())
    }

    fn restrict_files(&self, reach: Reach) -> Result<RulesetStatus, RulesetError> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let change = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
        let make = AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::RemoveFile | AccessFs::RemoveDir;
        let own: BitFlags<AccessFs> = read | change | make | AccessFs::Refer;
        let folders = FOLDERS.iter().filter_map(env::var_os);
        let folders: Vec<_> = folders.flat_map(|text| env::split_paths(&text).collect::<Vec<_>>()).collect();
        let memory = reach.has_gpu.then_some(Path::new(SHARED_MEMORY));
        let made = change | AccessFs::MakeReg | AccessFs::RemoveFile;
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?
            .add_rules(path_beneath_rules(READ, read))?
            .add_rules(path_beneath_rules(folders, read))?
            .add_rules(path_beneath_rules(&self.sandbox_read, read))?
            .add_rules(path_beneath_rules(reach.read, read))?
            .add_rules(path_beneath_rules(reach.change, change))?
            .add_rules(path_beneath_rules(reach.own, own))?
            .add_rules(path_beneath_rules(reach.exchange, made))?
            .add_rules(path_beneath_rules(DEVICES, device))?
            .add_rules(path_beneath_rules(memory, made))?;
        Ok(ruleset.restrict_self()?.ruleset)
    }
}

fn drop_capabilities() -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

// ---- system calls ----------------------------------------------------------------------------------------------------

/// Calls that a session never needs, by what they would be good for.
const REFUSED: &[libc::c_long] = &[
    // Other programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_fork,
    libc::SYS_vfork,
    // Other machines, and services of this one. The client's socket is there already.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Other processes, their memory and their descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    // Who the process is.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_personality,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // What it sees of the file system.
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_vhangup,
];
/// Requests to a ring are calls that no filter sees.
const RINGS: &[libc::c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
/// What distinguishes the numbers of x32's system calls, by which a kernel that has them takes the same calls again.
const X32: libc::c_long = 0x4000_0000;

type FilterError = seccompiler::BackendError;

/// Returns the filters of a session's system calls.
fn filters(has_uring: bool) -> Result<[BpfProgram; 2], FilterError> {
    let word = |argument, is, value: u64| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value);
    let own = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let mut refused: BTreeMap<libc::c_long, Vec<SeccompRule>> = BTreeMap::new();
    let rings = if has_uring { &[] } else { RINGS };
    refused.extend(REFUSED.iter().chain(rings).map(|&call| (call, Vec::new())));
    // A new process is one that is not a thread.
    let is_thread = SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64);
    refused.insert(libc::SYS_clone, vec![SeccompRule::new(vec![word(0, is_thread, 0)?])?]);
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        refused.insert(call, vec![SeccompRule::new(vec![word(0, SeccompCmpOp::Ne, own)?])?]);
    }
    let other = vec![word(0, SeccompCmpOp::Ne, 0)?, word(0, SeccompCmpOp::Ne, own)?];
    refused.insert(libc::SYS_prlimit64, vec![SeccompRule::new(other)?]);
    let dumpable = word(0, SeccompCmpOp::Eq, libc::PR_SET_DUMPABLE as u64)?;
    refused.insert(libc::SYS_prctl, vec![SeccompRule::new(vec![dumpable])?]);
    // The arguments of clone3 are in memory, where a filter cannot look; the C library takes clone where it is absent.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([filter(refused, libc::EPERM)?, filter(absent, libc::ENOSYS)?])
}

fn filter(
    mut calls: BTreeMap<libc::c_long, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, FilterError> {
    let again: Vec<_> = calls.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
    calls.extend(again);
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    SeccompFilter::new(calls, SeccompAction::Allow, refuse, TargetArch::x86_64)?.try_into()
}
