//! Finds and runs compilers: the system's, and that of `tests/toolchain/setup.sh`.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hipr_sim::Arch;
use tempfile::TempDir;

/// A level of optimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `-O0`.
    O0,
    /// `-O1`.
    O1,
    /// `-O3`.
    O3,
}

impl Level {
    /// Returns the compiler's option.
    pub fn option(self) -> &'static str {
        match self {
            Self::O0 => "-O0",
            Self::O1 => "-O1",
            Self::O3 => "-O3",
        }
    }
}

/// Options for device and host: floating point as written, and wrapping integers.
const OPTIONS: [&str; 7] = [
    "-x",
    "c",
    "-std=gnu2x",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    // What the generator writes is often true, false or unused.
    "-w",
];

/// A clang that compiles for AMD GPUs.
#[derive(Debug)]
pub struct Compiler {
    name: String,
    program: PathBuf,
    assembler: PathBuf,
    /// The root folder of the compiler's system, if that is another one.
    root: Option<PathBuf>,
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns the folder in which `tests/toolchain/setup.sh` installs the HIP compilers.
fn lab() -> Option<PathBuf> {
    let cache = || {
        let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).map(|cache| cache.join("hipr/lab"))
    };
    env::var_os("HIPR_LAB").map(PathBuf::from).or_else(cache)
}

impl Compiler {
    /// Returns the first of [`all`](Self::all). Without one it prints which `program` is missing and what does not run, or
    /// panics if HIPR_REQUIRE_COMPILER is set.
    pub fn first(program: &str, without: &str) -> Option<Self> {
        let first = Self::all().into_iter().next();
        if first.is_none() {
            let required = env::var_os("HIPR_REQUIRE_COMPILER").is_some();
            assert!(!required, "HIPR_REQUIRE_COMPILER is set and there is no compiler");
            eprintln!("SKIPPED: no {program} here (tests/toolchain/setup.sh makes one): {without}");
        }
        first
    }

    /// Returns all usable compilers, the system's own first.
    pub fn all() -> Vec<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let own = env::split_paths(&path).map(|folder| folder.join("clang-19")).find(|file| file.is_file());
        let own = own.map(|program| Self {
            name: "clang-19".into(),
            assembler: program.with_file_name("llvm-mc-19"),
            program,
            root: None,
        });
        let lab = lab().filter(|lab| lab.join("usr/lib/llvm-21/bin/clang").exists()).map(|lab| Self {
            name: "clang-21".into(),
            program: "/usr/lib/llvm-21/bin/clang".into(),
            assembler: "/usr/lib/llvm-21/bin/llvm-mc".into(),
            root: Some(lab),
        });
        own.into_iter().chain(lab).filter(|compiler| compiler.works()).collect()
    }

    fn works(&self) -> bool {
        let version = self.run(&self.program, &["--version"], Stdio::null());
        version.is_ok_and(|output| output.status.success())
    }

    /// Runs a program of the compiler's system.
    fn run(&self, program: &Path, arguments: &[&str], input: Stdio) -> std::io::Result<Output> {
        let mut command = match &self.root {
            Some(root) => {
                let mut chroot = Command::new("chroot");
                chroot.arg(root).arg(program);
                chroot
            }
            None => Command::new(program),
        };
        command.args(arguments).stdin(input).output()
    }

    /// Creates a folder that the compiler can access.
    fn folder(&self) -> TempDir {
        let folder = match &self.root {
            Some(root) => tempfile::tempdir_in(root.join("tmp")),
            None => tempfile::tempdir(),
        };
        folder.expect("a temporary folder")
    }

    /// Returns the path of a file in the compiler's system.
    fn inside(&self, file: &Path) -> PathBuf {
        match &self.root {
            Some(root) => Path::new("/").join(file.strip_prefix(root).expect("a file in that system")),
            None => file.to_path_buf(),
        }
    }

    fn compile(&self, source: &str, folder: &TempDir, options: &[&str], libraries: &[&str]) -> PathBuf {
        let (text, binary) = (folder.path().join("kernels.c"), folder.path().join("kernels"));
        fs::write(&text, source).expect("the source is written");
        let files =
            [&text, &binary].map(|file| self.inside(file).into_os_string().into_string().expect("UTF-8"));
        let mut arguments = OPTIONS.to_vec();
        arguments.extend(options);
        arguments.extend(["-o", &files[1], &files[0]]);
        arguments.extend(libraries);
        let output = self.run(&self.program, &arguments, Stdio::null()).expect("the compiler starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self} {}:\n{errors}", arguments.join(" "));
        binary
    }

    /// Compiles C source to a code object.
    ///
    /// # Panics
    /// Where it does not compile: tests have nothing to go on with.
    pub fn device(&self, source: &str, arch: Arch, level: Level) -> Vec<u8> {
        let folder = self.folder();
        let processor = format!("-mcpu={arch}");
        let options = [
            "--target=amdgcn-amd-amdhsa",
            &processor,
            "-DDEVICE",
            level.option(),
            "-nogpulib",
            "-ffreestanding",
        ];
        fs::read(self.compile(source, &folder, &options, &[])).expect("the code object is there")
    }

    /// Returns what the assembler or disassembler prints for a text.
    ///
    /// # Panics
    /// Where it does not start. It fails where it does not know something, which the output tells.
    pub fn assembler(&self, arguments: &[&str], text: &str) -> String {
        let folder = self.folder();
        let file = folder.path().join("input");
        fs::write(&file, text).expect("the input is written");
        let input = fs::File::open(&file).expect("the input is there");
        let arguments: Vec<&str> = ["-triple=amdgcn"].iter().chain(arguments).copied().collect();
        let output = self.run(&self.assembler, &arguments, input.into()).expect("the assembler starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Compiles C source for the host, runs it, and returns its output.
    ///
    /// # Panics
    /// Where it does not compile or fails.
    pub fn host(&self, source: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let folder = self.folder();
        // Half floats are rounded after every operation, as on the GPU.
        let options = ["-O1", "-march=native", "-Xclang", "-ffloat16-excess-precision=none"];
        let binary = self.compile(source, &folder, &options, &["-lm"]);
        let file = folder.path().join("input");
        fs::write(&file, input).expect("the input is written");
        let input = fs::File::open(&file).expect("the input is there");
        let output = self.run(&self.inside(&binary), arguments, input.into()).expect("the program starts");
        assert!(output.status.success(), "the host's program: {}", output.status);
        output.stdout
    }
}
