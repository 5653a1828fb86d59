//! Finds circles of files: modules of one crate that use each other, directly or through others.
//!
//! What a module takes from the modules above it does not count: a child is a part of its parent. What counts is what the text
//! says, `use` declarations and paths, each followed through `pub use` to the file that defines the item. Tests inside of
//! source files are left out.

mod modules;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use modules::{Crate, Module, ModulePath, read_crate};

/// Files of one crate that all use each other, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Circle {
    /// The folder of the crate, from the root of the workspace.
    pub krate: String,
    /// The files, from the crate's `src`, in order of their names.
    pub files: Vec<String>,
    /// Uses between the files: the file that uses, the file that is used, and the names used.
    pub uses: Vec<(String, String, Vec<String>)>,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} files: {}", self.krate, self.files.len(), self.files.join(" "))?;
        for (user, used, names) in &self.uses {
            writeln!(f, "    {user} uses {} of {used}", names.join(", "))?;
        }
        Ok(())
    }
}

/// Returns the circles of all crates in `workspace`, as read from its `Cargo.toml`.
///
/// # Errors
/// That a file cannot be read.
pub fn find(workspace: &Path) -> io::Result<Vec<Circle>> {
    let mut circles = Vec::new();
    for krate in members(workspace)? {
        for root in roots(&workspace.join(&krate).join("src"))? {
            circles.extend(circles_of(&krate, &read_crate(&root)?));
        }
    }
    circles.sort();
    Ok(circles)
}

impl Circle {
    /// Returns whether `named` lists the circle: the same crate and the same files.
    #[must_use]
    pub fn is_named(&self, named: &[(String, Vec<String>)]) -> bool {
        named.iter().any(|(krate, files)| *krate == self.krate && *files == self.files)
    }
}

/// Returns the circles that ARCHITECTURE.md allows: the rows `crate | files | why` of its table under "Circles of files".
#[must_use]
pub fn named(architecture: &str) -> Vec<(String, Vec<String>)> {
    let Some((_, section)) = architecture.split_once("Circles of files\n") else { return Vec::new() };
    let rows =
        section.lines().take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells =
            row.split('|').skip(1).map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned));
        let krate = cells.next().and_then(|mut cell| cell.next()).unwrap_or_default();
        let mut files: Vec<String> = cells.next().into_iter().flatten().collect();
        files.sort();
        (krate, files)
    })
    .collect()
}

/// Returns the folders of the workspace's crates.
fn members(workspace: &Path) -> io::Result<Vec<String>> {
    let manifest = fs::read_to_string(workspace.join("Cargo.toml"))?;
    let list = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.ok_or_else(|| io::Error::other("Cargo.toml lists no members"))?;
    Ok(list.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Returns the root files in a `src` folder: library, program, further programs.
fn roots(src: &Path) -> io::Result<Vec<PathBuf>> {
    let mut roots = vec![src.join("lib.rs"), src.join("main.rs")];
    if let Ok(programs) = fs::read_dir(src.join("bin")) {
        for program in programs {
            roots.push(program?.path());
        }
    }
    roots.retain(|root| root.is_file());
    roots.sort();
    Ok(roots)
}

/// For each file, the names that it uses from each other file.
type Uses = BTreeMap<usize, BTreeMap<usize, BTreeSet<String>>>;

fn circles_of(krate: &str, read: &Crate) -> Vec<Circle> {
    let uses = uses(read);
    let reached: Vec<BTreeSet<usize>> = (0..read.files.len()).map(|file| reach(&uses, file)).collect();
    let mut seen = BTreeSet::<usize>::new();
    let mut circles = Vec::new();
    for file in 0..read.files.len() {
        if seen.contains(&file) || !reached[file].contains(&file) {
            continue;
        }
        let circle: BTreeSet<usize> =
            reached[file].iter().copied().filter(|&other| reached[other].contains(&file)).collect();
        seen.extend(&circle);
        circles.push(describe(krate, read, &uses, &circle));
    }
    circles
}

fn describe(krate: &str, read: &Crate, uses: &Uses, circle: &BTreeSet<usize>) -> Circle {
    let name = |file: usize| read.files[file].clone();
    let mut files: Vec<String> = circle.iter().map(|&file| name(file)).collect();
    files.sort();
    let mut found = Vec::new();
    for &user in circle {
        for (&used, names) in uses.get(&user).into_iter().flatten().filter(|(used, _)| circle.contains(used))
        {
            found.push((name(user), name(used), names.iter().cloned().collect()));
        }
    }
    found.sort();
    Circle { krate: krate.to_owned(), files, uses: found }
}

/// Returns the files that `start` uses, directly or through others.
fn reach(uses: &Uses, start: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for &used in uses.get(&file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(used) {
                open.push(used);
            }
        }
    }
    reached
}

fn uses(read: &Crate) -> Uses {
    let mut uses = Uses::new();
    let mut note = |module: &Module, used: &ModulePath, name: &str| {
        let (user, used) = (module.file, read.modules[used].file);
        let is_above = read.file_modules[user].starts_with(&read.file_modules[used]);
        if !is_above {
            uses.entry(user).or_default().entry(used).or_default().insert(name.to_owned());
        }
    };
    for (path, module) in &read.modules {
        let imports = module.imports.iter().filter(|(name, _)| !module.handed_on.contains(*name));
        for written in imports.map(|(_, written)| written).chain(&module.paths) {
            if let Some((definer, Some(name))) = resolve(read, path, written, 0) {
                note(module, &definer, &name);
            }
        }
        for glob in &module.globs {
            let Some((target, None)) = resolve(read, path, glob, 0) else { continue };
            for name in &module.mentioned {
                if let Some((definer, Some(name))) = name_in(read, &target, name, &[], 0) {
                    note(module, &definer, &name);
                }
            }
        }
    }
    uses
}

/// Maximum number of imports that are followed one after another, against circular imports.
const MOST_IMPORTS: usize = 16;

/// Follows a path as written in `module`; returns the module that it leads to, and the name of the item in it unless the
/// path ends at the module.
fn resolve(
    read: &Crate,
    module: &ModulePath,
    written: &[String],
    depth: usize,
) -> Option<(ModulePath, Option<String>)> {
    let (first, mut rest) = written.split_first()?;
    let mut start = module.clone();
    match first.as_str() {
        "crate" => start = Vec::new(),
        "self" => {}
        "super" => {
            start.pop()?;
            while rest.first().is_some_and(|word| word == "super") {
                start.pop()?;
                rest = &rest[1..];
            }
        }
        name => return name_in(read, module, name, rest, depth),
    }
    walk(read, start, rest, depth)
}

/// Follows a path from a module.
fn walk(
    read: &Crate,
    mut module: ModulePath,
    rest: &[String],
    depth: usize,
) -> Option<(ModulePath, Option<String>)> {
    let Some((name, rest)) = rest.split_first() else { return Some((module, None)) };
    if let Some(found) = name_in(read, &module, name, rest, depth) {
        return Some(found);
    }
    // An item that a macro made, or a macro that the whole crate sees.
    if module.is_empty()
        && let Some((definer, _)) = read.modules.iter().find(|(_, module)| module.macros.contains(name))
    {
        module.clone_from(definer);
    }
    Some((module, Some(name.clone())))
}

/// Looks up a name in a module and follows the path from there; returns `None` if the module does not have the name.
fn name_in(
    read: &Crate,
    module: &ModulePath,
    name: &str,
    rest: &[String],
    depth: usize,
) -> Option<(ModulePath, Option<String>)> {
    let said = read.modules.get(module)?;
    let child: ModulePath = module.iter().cloned().chain([name.to_owned()]).collect();
    if read.modules.contains_key(&child) {
        return walk(read, child, rest, depth);
    }
    if said.items.contains(name) {
        return Some((module.clone(), Some(name.to_owned())));
    }
    if depth == MOST_IMPORTS {
        return None;
    }
    if let Some(import) = said.imports.get(name) {
        let path: Vec<String> = import.iter().chain(rest).cloned().collect();
        return resolve(read, module, &path, depth + 1);
    }
    said.globs.iter().find_map(|glob| match resolve(read, module, glob, depth + 1)? {
        (target, None) if target != *module => name_in(read, &target, name, rest, depth + 1),
        _ => None,
    })
}
