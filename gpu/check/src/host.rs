//! What the program has allocated and freed, from the log that the client library writes (`client-shim/src/host_log.rs`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::{fs, io};

use hipr_lines::{Frame, Lines};
use object::{Object, ObjectSegment};

use crate::finding::{Finding, Kind, Near, Place};

/// A call stack with names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The HIP function that was called.
    pub function: String,
    /// The program's own frames, the innermost first.
    pub frames: Vec<Frame>,
}

/// A call stack as the log has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Called {
    pid: u32,
    function: String,
    /// Module and offset in its file.
    frames: Vec<(usize, u64)>,
}

/// Memory that the program has allocated.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// Address of the first byte.
    pub address: u64,
    /// Length in bytes.
    pub len_bytes: u64,
    /// The call.
    pub stack: Called,
    /// The call that has freed it.
    pub freed_at: Option<Called>,
}

/// A mistake of the program's own: the calls that belong to it.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// The call.
    pub at: Called,
    /// The call that has allocated the memory.
    pub allocated_at: Option<Called>,
    /// The call that has freed it.
    pub freed_at: Option<Called>,
}

/// A file with code: its lines, and where its bytes lie in memory.
struct Code {
    lines: Lines,
    /// Offset in the file, address, length in bytes.
    segments: Vec<(u64, u64, u64)>,
}

/// What the program has allocated and freed.
#[derive(Default)]
pub struct Host {
    modules: HashMap<(u32, usize), String>,
    /// The allocations at each address, in the order of their time.
    allocations: HashMap<u64, Vec<Allocation>>,
    mistakes: Vec<(Kind, u64, String, Mistake)>,
    code: RefCell<HashMap<String, Option<Rc<Code>>>>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("allocations", &self.allocations.len()).finish_non_exhaustive()
    }
}

/// Reads a log. A line that is none is left out; a program that has crashed may leave one.
///
/// # Errors
/// The file is there and cannot be read.
pub fn read(path: &Path) -> io::Result<Host> {
    let mut host = Host::default();
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(host),
        Err(why) => return Err(why),
    };
    for line in String::from_utf8_lossy(&text).lines() {
        let words: Vec<_> = line.split('\t').collect();
        // What is no line of the log is left out.
        let _ = host.add(&words);
    }
    Ok(host)
}

impl Host {
    fn add(&mut self, words: &[&str]) -> Option<()> {
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let pid = words.get(1)?.parse().ok()?;
        if let ["module", _, number, path] = words {
            self.modules.insert((pid, hexadecimal(number)? as usize), (*path).to_owned());
            return Some(());
        }
        let (function, stack) = (*words.get(2)?, *words.last()?);
        let frame = |frame: &str| {
            let (module, offset) = frame.split_once('+')?;
            Some((hexadecimal(module)? as usize, hexadecimal(offset)?))
        };
        let frames = stack.split(',').filter_map(frame).collect();
        let called = Called { pid, function: function.to_owned(), frames };
        match words {
            ["alloc", _, _, address, len_bytes, _] => {
                let (address, len_bytes) = (hexadecimal(address)?, len_bytes.parse().ok()?);
                let allocation = Allocation { address, len_bytes, stack: called, freed_at: None };
                self.allocations.entry(address).or_default().push(allocation);
            }
            ["free", _, _, address, _] => {
                let allocation = self.allocations.get_mut(&hexadecimal(address)?)?.last_mut()?;
                allocation.freed_at = Some(called);
            }
            ["refused", _, _, address, _] => {
                let address = hexadecimal(address)?;
                let last = self.allocations.get(&address).and_then(|all| all.last());
                let freed = last.filter(|last| last.freed_at.is_some());
                let kind = if freed.is_some() { Kind::DoubleFree } else { Kind::WrongFree };
                let inside = last.or_else(|| self.around(address));
                let mistake = Mistake {
                    at: called,
                    allocated_at: inside.map(|last| last.stack.clone()),
                    freed_at: freed.and_then(|freed| freed.freed_at.clone()),
                };
                self.mistakes.push((kind, address, String::new(), mistake));
            }
            ["large", _, _, kernel, _] => {
                let mistake = Mistake { at: called, allocated_at: None, freed_at: None };
                self.mistakes.push((Kind::CooperativeTooLarge, 0, (*kernel).to_owned(), mistake));
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns an allocation in which `address` is.
    fn around(&self, address: u64) -> Option<&Allocation> {
        let all = self.allocations.values().filter_map(|all| all.last());
        all.into_iter().find(|last| last.address <= address && address - last.address < last.len_bytes)
    }

    /// Returns the allocation at `address` that `earlier` others had been at before; the last one if there are fewer.
    pub fn allocation(&self, address: u64, earlier: u64) -> Option<&Allocation> {
        let all = self.allocations.get(&address)?;
        usize::try_from(earlier).ok().and_then(|index| all.get(index)).or(all.last())
    }

    /// Returns the mistakes of the program's own calls, equal ones once; memory that was not freed only if `leaks` asks for it.
    pub fn findings(&self, leaks: bool) -> Vec<(Finding, Mistake)> {
        let mut found: Vec<(Finding, Mistake)> = Vec::new();
        let mut known: HashMap<(Kind, Called), usize> = HashMap::new();
        let mut add = |kind: Kind, near: Option<Near>, kernel: &str, mistake: Mistake| {
            let next = found.len();
            let index = *known.entry((kind, mistake.at.clone())).or_insert(next);
            if let Some((finding, _)) = found.get_mut(index) {
                finding.count += 1;
                if let (Some(all), Some(more)) = (&mut finding.near, &near) {
                    all.len_bytes += more.len_bytes;
                }
                return;
            }
            let place = (!kernel.is_empty()).then(|| Place { kernel: kernel.to_owned(), ..Place::default() });
            let (accessed, other, note) = (None, None, String::new());
            found.push((Finding { kind, place, accessed, near, other, note, count: 1 }, mistake));
        };
        for (kind, address, kernel, mistake) in &self.mistakes {
            let near = (*address != 0).then(|| self.around(*address)).flatten().map(near);
            add(*kind, near, kernel, mistake.clone());
        }
        if leaks {
            let mut left: Vec<_> = self.allocations.values().flatten().collect();
            left.retain(|allocation| allocation.freed_at.is_none());
            left.sort_by_key(|allocation| allocation.address);
            for allocation in left {
                let mistake = Mistake { at: allocation.stack.clone(), allocated_at: None, freed_at: None };
                add(Kind::Leak, Some(near(allocation)), "", mistake);
            }
        }
        found
    }

    /// Adds names and lines to a stack. What is in the HIP library is left out.
    pub fn stack(&self, called: &Called) -> Stack {
        let mut frames = Vec::new();
        for &(module, offset) in &called.frames {
            let Some(path) = self.modules.get(&(called.pid, module)) else { continue };
            let file = path.rsplit('/').next().unwrap_or("");
            if file.starts_with("libamdhip64") {
                continue;
            }
            let Some(code) = self.code(path) else { continue };
            let segment = code.segments.iter().find(|(from, _, len)| offset >= *from && offset - from < *len);
            let Some((from, address, _)) = segment else { continue };
            let inlined = code.lines.frames(offset - from + address);
            if inlined.is_empty() {
                frames.push(Frame { function: Some(format!("{file}+{offset:#x}")), ..Frame::default() });
            }
            frames.extend(inlined);
        }
        // What calls main is the same in every program.
        let main = frames.iter().position(|frame| frame.function.as_deref() == Some("main"));
        frames.truncate(main.map_or(frames.len(), |main| main + 1));
        Stack { function: called.function.clone(), frames }
    }

    fn code(&self, path: &str) -> Option<Rc<Code>> {
        let read = || {
            let bytes = fs::read(path).ok()?;
            let file = object::File::parse(&*bytes).ok()?;
            let segment = |segment: object::Segment<'_, '_>| {
                let (offset, len_bytes) = segment.file_range();
                (offset, segment.address(), len_bytes)
            };
            let segments = file.segments().map(segment).collect();
            Some(Rc::new(Code { lines: Lines::new(&bytes), segments }))
        };
        self.code.borrow_mut().entry(path.to_owned()).or_insert_with(read).clone()
    }
}

fn near(allocation: &Allocation) -> Near {
    Near {
        address: allocation.address,
        len_bytes: allocation.len_bytes,
        variable: None,
        earlier: 0,
        is_freed: allocation.freed_at.is_some(),
    }
}
