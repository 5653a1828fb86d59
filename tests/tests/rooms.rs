//! Tests which crates may depend on which, as ARCHITECTURE.md divides the workspace, by cargo's dependency graph.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The packages that a crate is built from: those of the workspace by their folder, the others by their name.
struct Graph {
    /// Package id to folder or name.
    names: BTreeMap<String, String>,
    /// For each package id, the ids of its dependencies in normal builds, without those of tests and build scripts.
    needs: BTreeMap<String, Vec<String>>,
}

impl Graph {
    /// Reads the graph of a build for Linux with `cargo metadata`; the default features are on.
    fn read() -> Self {
        let root = workspace();
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let output = Command::new(env!("CARGO"))
            .args([
                "metadata",
                "--format-version",
                "1",
                "--locked",
                "--offline",
                "--filter-platform",
                &target,
            ])
            .current_dir(&root)
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let root = PathBuf::from(text(&metadata["workspace_root"]));
        let name = |package: &Value| {
            let manifest = text(&package["manifest_path"]);
            let folder = Path::new(&manifest).parent().and_then(|folder| folder.strip_prefix(&root).ok());
            folder.map_or_else(|| text(&package["name"]), |folder| folder.display().to_string())
        };
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let packages = list(&metadata["packages"]);
        let names = packages.iter().map(|package| (text(&package["id"]), name(package)));
        let is_normal = |dependency: &&Value| {
            dependency["dep_kinds"].as_array().expect("kinds").iter().any(|kind| kind["kind"].is_null())
        };
        let needs = list(&metadata["resolve"]["nodes"]).into_iter().map(|node| {
            let needed =
                list(&node["deps"]).iter().filter(is_normal).map(|needed| text(&needed["pkg"])).collect();
            (text(&node["id"]), needed)
        });
        Self { names: names.collect(), needs: needs.collect() }
    }

    /// Everything that the crate in `folder` is built from, however far below it.
    fn below(&self, folder: &str) -> BTreeSet<&str> {
        let of_folder = self.names.iter().find(|(_, name)| *name == folder);
        let (id, _) = of_folder.unwrap_or_else(|| panic!("there is no crate in {folder}/"));
        let (mut found, mut waiting) = (BTreeSet::new(), vec![id]);
        while let Some(id) = waiting.pop() {
            for needed in &self.needs[id] {
                if found.insert(self.names[needed].as_str()) {
                    waiting.push(needed);
                }
            }
        }
        found
    }

    /// Fails if the crate in `folder` is built from anything that `is_foreign` to it.
    fn forbid(&self, folder: &str, is_foreign: impl Fn(&str) -> bool) {
        let foreign: Vec<_> = self.below(folder).into_iter().filter(|name| is_foreign(name)).collect();
        assert!(foreign.is_empty(), "{folder} depends on {foreign:?}, which it must not know");
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The C boundary: HIP's C types, libraries loaded at run time, the library that programs load.
fn is_c_boundary(name: &str) -> bool {
    ["gpu/abi", "gpu/ctype", "gpu/dynlib", "gpu/hip-sys", "gpu/comgr-sys", "client-shim", "libloading"]
        .contains(&name)
}

/// Returns whether a package is a GPU, or a part of one.
fn is_gpu(name: &str) -> bool {
    ["gpu/hip", "gpu/sim", "gpu/grid", "gpu/isa", "gpu/hip-sys", "gpu/comgr-sys", "gpu/dynlib"]
        .contains(&name)
}

fn is_of_workspace(name: &str) -> bool {
    workspace().join(name).join("Cargo.toml").is_file()
}

#[test]
fn the_worker_depends_on_no_gpu() {
    Graph::read().forbid("worker", is_gpu);
}

#[test]
fn the_contract_for_gpus_depends_on_no_gpu_and_no_worker() {
    Graph::read().forbid("gpu/device", |name| is_of_workspace(name) && name != "proto-core");
}

/// The interpreter depends on no crate of HIP or the protocol, so that an edit of those does not recompile its thousands of
/// functions.
#[test]
fn the_interpreter_depends_on_no_other_crate_of_the_workspace() {
    Graph::read().forbid("gpu/isa", is_of_workspace);
}

/// What executes grids takes from HIP only what code objects are described with.
#[test]
fn grids_are_executed_without_hip_and_the_protocol() {
    let below = |name: &str| ["gpu/isa", "gpu/code-object", "gpu/abi", "gpu/ctype"].contains(&name);
    Graph::read().forbid("gpu/grid", |name| is_of_workspace(name) && !below(name));
}

#[test]
fn gpus_depend_on_no_worker_and_not_on_each_other() {
    let graph = Graph::read();
    for (gpu, other) in [("gpu/sim", "gpu/hip"), ("gpu/hip", "gpu/sim")] {
        graph.forbid(gpu, |name| name == other || name == "worker" || name.starts_with("io-"));
    }
    graph.forbid("gpu/sim", is_c_library);
}

/// Libraries that are loaded at run time.
fn is_c_library(name: &str) -> bool {
    is_c_boundary(name) && name != "gpu/abi" && name != "gpu/ctype"
}

#[test]
fn the_client_depends_on_nothing_of_the_c_boundary() {
    Graph::read().forbid("client", |name| is_c_boundary(name) || is_gpu(name));
}

/// The dependencies that the other tests forbid do exist where they are allowed, so that those tests could find them.
#[test]
fn the_graph_has_what_is_forbidden_elsewhere() {
    let graph = Graph::read();
    let (program, shim) = (graph.below("cli"), graph.below("client-shim"));
    for name in
        ["gpu/hip", "gpu/sim", "gpu/isa", "gpu/hip-sys", "gpu/dynlib", "libloading", "worker", "proto-core"]
    {
        assert!(program.contains(name), "cli depends on {name}");
    }
    for name in ["client", "gpu/abi", "gpu/dynlib", "libloading"] {
        assert!(shim.contains(name), "client-shim depends on {name}");
    }
}
