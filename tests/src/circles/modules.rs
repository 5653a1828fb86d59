//! Reads the modules of one crate: which file each is in, which names it brings in, and which paths it spells.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::tokens::{Token, tokens};

/// The path of a module from the root of its crate; the root is empty.
pub(super) type ModulePath = Vec<String>;

/// The names that one module defines, imports and mentions.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Index in [`Crate::files`] of the file that contains the module.
    pub(super) file: usize,
    /// Names that `use` declarations import: the local name, and the path as written.
    pub(super) imports: HashMap<String, Vec<String>>,
    /// The modules whose names are all brought in by `use path::*`.
    pub(super) globs: Vec<Vec<String>>,
    /// The names that are only re-exported by `pub use`: the module itself never mentions them.
    pub(super) handed_on: BTreeSet<String>,
    /// Paths with at least two segments outside of `use` declarations.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// The macros that the whole crate sees under its root.
    pub(super) macros: BTreeSet<String>,
    /// All identifiers outside of `use` declarations.
    pub(super) mentioned: BTreeSet<String>,
    /// The items that the module itself defines.
    pub(super) items: BTreeSet<String>,
}

/// A crate's modules, from one of its roots (`lib.rs`, `main.rs`).
#[derive(Debug, Default)]
pub(super) struct Crate {
    /// The files, relative to the folder that holds the root.
    pub(super) files: Vec<String>,
    /// For each file the module that fills it.
    pub(super) file_modules: Vec<ModulePath>,
    pub(super) modules: BTreeMap<ModulePath, Module>,
}

/// Reads the crate whose root is the file `root`.
///
/// # Errors
/// That a file cannot be read.
pub(super) fn read_crate(root: &Path) -> io::Result<Crate> {
    let mut read = Crate::default();
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    read_file(&mut read, &folder, root, Vec::new(), &folder)?;
    Ok(read)
}

fn read_file(
    read: &mut Crate,
    base: &Path,
    file: &Path,
    module: ModulePath,
    children: &Path,
) -> io::Result<()> {
    let source = fs::read_to_string(file)?;
    let index = read.files.len();
    read.files.push(file.strip_prefix(base).unwrap_or(file).display().to_string());
    read.file_modules.push(module.clone());
    let tokens = without_tests(&tokens(&source));
    let mut scan = Scan { tokens: &tokens, at: 0, read, file: index, outside: Vec::new() };
    scan.module(&module);
    for path in scan.outside {
        // Inline modules are folders of their own.
        let folder: PathBuf =
            path[module.len()..].iter().fold(children.to_owned(), |folder, name| folder.join(name));
        let candidates = [folder.with_extension("rs"), folder.join("mod.rs")];
        // A file that a `path` attribute takes from elsewhere belongs to the crate that it is taken from.
        if let Some(own) = candidates.iter().find(|candidate| candidate.is_file()) {
            read_file(read, base, own, path, &folder)?;
        }
    }
    Ok(())
}

/// Removes the items behind `#[cfg(test)]`, and keeps the words of other attributes.
fn without_tests(all: &[Token]) -> Vec<Token> {
    let is = |at: usize, text: &str| {
        all.get(at).is_some_and(|token| match token {
            Token::Word(word) => word == text,
            Token::Mark(mark) => text.len() == 1 && text.starts_with(*mark),
            Token::Path => text == "::",
        })
    };
    let mut kept = Vec::with_capacity(all.len());
    let mut at = 0;
    while at < all.len() {
        if ["#", "[", "cfg", "(", "test", ")", "]"].iter().enumerate().all(|(i, text)| is(at + i, text)) {
            at = end_of_item(all, at + 7);
        } else {
            kept.push(all[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the index behind the item that begins at `start`: its braces or its semicolon.
fn end_of_item(all: &[Token], start: usize) -> usize {
    let mut depth = 0_i32;
    for (at, token) in all.iter().enumerate().skip(start) {
        match token {
            Token::Mark('{' | '(' | '[') => depth += 1,
            Token::Mark(closing @ ('}' | ')' | ']')) => {
                depth -= 1;
                if depth == 0 && *closing == '}' {
                    return at + 1;
                }
            }
            Token::Mark(';') if depth == 0 => return at + 1,
            _ => {}
        }
    }
    all.len()
}

/// A cursor over the tokens of one file.
struct Scan<'a> {
    tokens: &'a [Token],
    at: usize,
    read: &'a mut Crate,
    file: usize,
    /// The modules that have files of their own.
    outside: Vec<ModulePath>,
}

impl Scan<'_> {
    fn word(&self, at: usize) -> Option<&str> {
        self.tokens.get(at)?.word()
    }

    fn is(&self, at: usize, mark: char) -> bool {
        self.tokens.get(at) == Some(&Token::Mark(mark))
    }

    /// Reads up to the end of the module: its closing brace, or the end of the file.
    fn module(&mut self, path: &ModulePath) {
        let mut module = Module { file: self.file, ..Module::default() };
        let mut public = BTreeSet::<String>::new();
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at).cloned() {
            match token {
                Token::Mark('{') => depth += 1,
                Token::Mark('}') if depth == 0 => break,
                Token::Mark('}') => depth -= 1,
                Token::Word(word) => {
                    if self.keyword(&word, path, depth, &mut module, &mut public) {
                        continue;
                    }
                    self.path(&mut module);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        module.handed_on = public.into_iter().filter(|name| !module.mentioned.contains(name)).collect();
        self.read.modules.insert(path.clone(), module);
    }

    /// Reads a module declaration, an import or the name of an item; returns whether it was one.
    fn keyword(
        &mut self,
        word: &str,
        path: &ModulePath,
        depth: usize,
        module: &mut Module,
        public: &mut BTreeSet<String>,
    ) -> bool {
        match word {
            "use" => {
                let is_public = self.is_public(self.at);
                self.at += 1;
                let mut found = Vec::new();
                self.tree(&mut Vec::new(), &mut found);
                for (name, import) in found {
                    if name == "*" {
                        module.globs.push(import);
                    } else {
                        if is_public && depth == 0 {
                            public.insert(name.clone());
                        }
                        module.imports.insert(name, import);
                    }
                }
                true
            }
            "mod" if let Some(name) = self.word(self.at + 1).map(str::to_owned) => {
                let mut child = path.clone();
                child.push(name);
                if self.is(self.at + 2, '{') {
                    self.at += 3;
                    self.module(&child);
                } else {
                    self.at += 2;
                    self.outside.push(child);
                }
                true
            }
            "struct" | "enum" | "trait" | "type" | "const" | "static" | "fn" | "union" | "macro_rules" => {
                // `macro_rules! name`
                let skipped = usize::from(word == "macro_rules");
                if let Some(name) = self.word(self.at + 1 + skipped).map(str::to_owned)
                    && depth == 0
                {
                    if word == "macro_rules" {
                        module.macros.insert(name.clone());
                    }
                    module.items.insert(name);
                    self.at += 2 + skipped;
                } else {
                    self.at += 1;
                }
                true
            }
            _ => false,
        }
    }

    /// Returns whether the keyword at `at` follows `pub` or `pub(…)`.
    fn is_public(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back);
        if before(1).is_some_and(|at| self.is(at, ')')) {
            return (2..8).any(|back| before(back).and_then(|at| self.word(at)) == Some("pub"));
        }
        before(1).and_then(|at| self.word(at)) == Some("pub")
    }

    /// Reads one tree of a `use` declaration, to its comma, brace or semicolon.
    fn tree(&mut self, prefix: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
        let length = prefix.len();
        loop {
            match self.tokens.get(self.at).cloned() {
                Some(Token::Word(word)) if word == "as" => {
                    if let Some(name) = self.word(self.at + 1) {
                        found.push((name.to_owned(), prefix.clone()));
                    }
                    self.at += 2;
                    break;
                }
                Some(Token::Word(word)) => {
                    self.at += 1;
                    if word == "self" && !prefix.is_empty() {
                        let name = prefix.last().cloned().unwrap_or_default();
                        found.push((name, prefix.clone()));
                        break;
                    }
                    prefix.push(word.clone());
                    let ends = self.tokens.get(self.at) != Some(&Token::Path);
                    if ends && self.word(self.at) != Some("as") {
                        found.push((word, prefix.clone()));
                        break;
                    }
                }
                Some(Token::Path) => self.at += 1,
                Some(Token::Mark('*')) => {
                    found.push(("*".to_owned(), prefix.clone()));
                    self.at += 1;
                    break;
                }
                Some(Token::Mark('{')) => {
                    self.at += 1;
                    while self.at < self.tokens.len() && !self.is(self.at, '}') {
                        if self.is(self.at, ',') {
                            self.at += 1;
                        } else {
                            self.tree(prefix, found);
                        }
                    }
                    self.at += 1;
                    break;
                }
                Some(Token::Mark('$')) => self.at += 1,
                _ => {
                    self.at += 1;
                    break;
                }
            }
        }
        prefix.truncate(length);
    }

    /// Reads the path that begins with the current word.
    fn path(&mut self, module: &mut Module) {
        let mut path = Vec::new();
        while let Some(word) = self.word(self.at).map(str::to_owned) {
            module.mentioned.insert(word.clone());
            path.push(word);
            self.at += 1;
            if self.tokens.get(self.at) != Some(&Token::Path) || self.word(self.at + 1).is_none() {
                break;
            }
            self.at += 1;
        }
        if path.len() > 1 {
            module.paths.insert(path);
        }
    }
}
