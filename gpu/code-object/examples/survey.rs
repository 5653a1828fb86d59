//! Looks for code objects in all files of folders, whether bare, in bundles or inside of programs and libraries, and prints how far they are
//! from the bounds that this crate has for them: `cargo run -p hipr-code-object --example survey -- FOLDER…`.
//!
//! Ends with a failure if one is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hipr_code_object::{Bundle, CodeObject, Format, Limits, ParseError, decompress, image_len};

/// What was found, with the largest numbers.
#[derive(Debug, Default)]
struct Survey {
    files: usize,
    objects: usize,
    compressed: usize,
    refused: usize,
    segments: usize,
    /// Memory of the tables for each byte of the file.
    tables_per_byte: f64,
    /// Memory of everything for each byte of the file.
    cost_per_byte: f64,
    /// Unpacked bytes for each byte of a compressed bundle.
    unpacked_per_byte: f64,
}

impl Survey {
    fn image(&mut self, image: &[u8], path: &Path) {
        match Format::sniff(image) {
            Some(Format::Elf) => self.object(image, path),
            Some(Format::Bundle) => {
                let Ok(bundle) = Bundle::parse(image) else { return };
                for entry in bundle.entries() {
                    self.image(image.get(entry.range.clone()).unwrap_or_default(), path);
                }
            }
            Some(Format::CompressedBundle) => {
                let Ok(bundle) = decompress(image, Limits::default()) else { return };
                self.compressed += 1;
                self.unpacked_per_byte = self.unpacked_per_byte.max(bundle.len() as f64 / image.len() as f64);
                self.image(&bundle, path);
            }
            None => {}
        }
    }

    fn object(&mut self, elf: &[u8], path: &Path) {
        self.objects += 1;
        match CodeObject::parse(elf) {
            Ok(code) => {
                let of_file = |bytes: u64| bytes as f64 / elf.len() as f64;
                self.segments = self.segments.max(code.segments().len());
                self.tables_per_byte = self.tables_per_byte.max(of_file(code.tables_bytes()));
                self.cost_per_byte = self.cost_per_byte.max(of_file(code.cost_bytes() - code.image_bytes()));
            }
            // What was compiled for another loader.
            Err(ParseError::AbiVersion(_) | ParseError::OsAbi(_)) => {}
            Err(why) => {
                self.refused += 1;
                println!("{}: {why}", path.display());
            }
        }
    }

    /// Looks for images at every byte of a file.
    fn file(&mut self, path: &Path) {
        let Ok(bytes) = fs::read(path) else { return };
        self.files += 1;
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() > 24) {
            let step =
                rest.iter().skip(1).position(|byte| b"\x7f_C".contains(byte)).map_or(rest.len(), |to| to + 1);
            let len = Format::sniff(rest).and_then(|_| image_len(rest).ok()).filter(|len| *len > 0);
            if let Some(image) = len.and_then(|len| rest.get(..len)) {
                self.image(image, path);
            }
            at += len.unwrap_or(step);
        }
    }

    fn folder(&mut self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.folder(&entry.path()),
                Ok(kind) if kind.is_file() => self.file(&entry.path()),
                _ => {}
            }
        }
    }
}

fn main() -> ExitCode {
    let mut survey = Survey::default();
    for folder in std::env::args_os().skip(1).map(PathBuf::from) {
        survey.folder(&folder);
    }
    println!("{survey:#?}");
    if survey.refused == 0 && survey.objects > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
