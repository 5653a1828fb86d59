//! AMD's own libraries, as Debian packages them, for tests that load them. Release 6.4.3 is in the folder of the HIP
//! compiler (`tests/toolchain/setup.sh`), 5.2.3 in a folder of its own (`tests/toolchain/rocm5.sh`). Without a GPU they
//! load and report that there is none.
//!
//! 6.4.3 wants a newer C library than this machine may have, so a program that loads it is started by the dynamic loader of the
//! compiler's folder. 5.2.3 wants an executable stack, which glibc refuses a loaded library since 2.41; it is loaded by this
//! machine's own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One release of AMD's libraries on this machine.
pub struct Rocm {
    /// The release, such as `6.4.3`.
    pub release: &'static str,
    /// Path of its libamdhip64.
    pub hip: PathBuf,
    /// Path of its libamd_comgr.
    pub comgr: PathBuf,
    /// Path of the library that has its runtime compiler.
    pub compiler: PathBuf,
    loader: Option<PathBuf>,
    libraries: PathBuf,
}

impl Rocm {
    /// Returns the releases on this machine. A missing one is reported in a line, or causes a panic if the environment
    /// requires it; [`Rocm::on_every_release`] skips it.
    pub fn releases() -> Vec<Rocm> {
        let lab = folder("HIPR_LAB", "lab");
        let five = folder("HIPR_ROCM5", "rocm5");
        let loader = lab.join("lib64/ld-linux-x86-64.so.2");
        let found = [
            Self::of(
                "6.4.3",
                ["libamdhip64.so.6", "libamd_comgr.so.3", "libhiprtc.so.6"],
                &lab,
                Some(loader),
            ),
            Self::of("5.2.3", ["libamdhip64.so.5", "libamd_comgr.so.2", "libamdhip64.so.5"], &five, None),
        ];
        let required =
            ["HIPR_REQUIRE_COMPILER", "HIPR_REQUIRE_ROCM5"].map(|name| env::var_os(name).is_some());
        let makers = ["setup.sh", "rocm5.sh"];
        let here = found.into_iter().zip(required).zip(makers).filter_map(|((found, required), maker)| {
            if let Err(why) = &found {
                assert!(!required, "AMD's libraries are required: {why}");
                println!("SKIPPED: {why} (tests/toolchain/{maker} makes it)");
            }
            found.ok()
        });
        here.collect()
    }

    fn of(
        release: &'static str,
        files: [&str; 3],
        root: &Path,
        loader: Option<PathBuf>,
    ) -> Result<Rocm, String> {
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let [hip, comgr, compiler] = files.map(|file| libraries.join(file));
        for file in [&hip, &comgr, &compiler].into_iter().chain(&loader) {
            if !file.exists() {
                return Err(format!(
                    "AMD's libraries {release} are not here: there is no {}",
                    file.display()
                ));
            }
        }
        Ok(Self { release, hip, comgr, compiler, loader, libraries })
    }

    /// Returns a command that runs `program` with this release's libraries, including those that it loads by name.
    pub fn command(&self, program: &Path) -> Command {
        match &self.loader {
            Some(loader) => {
                let mut command = Command::new(loader);
                command.arg("--library-path").arg(&self.libraries).arg(program).env_remove("LD_LIBRARY_PATH");
                command
            }
            None => {
                let mut command = Command::new(program);
                command.env("LD_LIBRARY_PATH", &self.libraries);
                command
            }
        }
    }

    /// Runs `test`, a test of the calling test program, in a process of its own for every release on this machine, as `set`
    /// sets it up. There, [`Rocm::library`] returns the release and the path of `library`.
    pub fn on_every_release(test: &str, library: fn(&Rocm) -> &Path, set: impl Fn(&Rocm, &mut Command)) {
        let this = env::current_exe().expect("a test program");
        for rocm in Self::releases() {
            let mut command = rocm.command(&this);
            command.args(["--exact", test, "--nocapture"]);
            command.env(LIBRARY, library(&rocm)).env(RELEASE, rocm.release);
            set(&rocm, &mut command);
            let output = command.output().expect("the loader runs");
            let text = [output.stdout, output.stderr]
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .concat();
            assert!(output.status.success(), "{test} with {}: {}\n{text}", rocm.release, output.status);
            assert!(text.contains("1 passed"), "{test} did not run:\n{text}");
            let said = text.lines().filter(|line| line.starts_with(rocm.release));
            said.for_each(|line| println!("{line}"));
        }
    }

    /// Returns the release and the library that a test was started with; `None` in the process that starts it.
    pub fn library() -> Option<(String, PathBuf)> {
        Some((env::var(RELEASE).ok()?, env::var_os(LIBRARY)?.into()))
    }
}

/// Environment variable that tells a test in a process of its own which library to load.
const LIBRARY: &str = "HIPR_TEST_LIBRARY";
const RELEASE: &str = "HIPR_TEST_RELEASE";

/// Returns the folder in the environment variable `variable`, else the folder `name` in the user's cache.
fn folder(variable: &str, name: &str) -> PathBuf {
    let set = |variable| env::var_os(variable).filter(|value: &std::ffi::OsString| !value.is_empty());
    set(variable).map(PathBuf::from).unwrap_or_else(|| {
        let home = || set("HOME").map(PathBuf::from).unwrap_or_default().join(".cache");
        set("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("hipr").join(name)
    })
}
