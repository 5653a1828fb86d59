//! What the program has allocated and freed, from the log that the client library writes (`client-shim/src/host_log.rs`).

use std::collections::HashMap;
use std::path::Path;
use std::{fs, io};

use hipr_lines::{Files, Frame};

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
    kind: Kind,
    /// The memory that it is about, as it was then.
    near: Option<Near>,
    /// The kernel, if it is about a launch; else empty.
    kernel: String,
    /// More that is known, as a sentence without a full stop; else empty.
    note: String,
    /// The call.
    pub at: Called,
    /// The call that has allocated the memory.
    pub allocated_at: Option<Called>,
    /// The call that has freed it.
    pub freed_at: Option<Called>,
}

/// What the program has allocated and freed.
#[derive(Default)]
pub struct Host {
    modules: HashMap<(u32, usize), String>,
    /// The allocations of each process at each address, in the order of their time.
    allocations: HashMap<(u32, u64), Vec<Allocation>>,
    mistakes: Vec<Mistake>,
    files: Files,
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
                self.allocations.entry((pid, address)).or_default().push(allocation);
            }
            ["free", _, _, address, _] => {
                let allocation = self.allocations.get_mut(&(pid, hexadecimal(address)?))?.last_mut()?;
                allocation.freed_at = Some(called);
            }
            ["refused", _, _, address, _] => {
                let mistake = self.refused(hexadecimal(address)?, called);
                self.mistakes.push(mistake);
            }
            ["large", _, _, kernel, _] => {
                let (kind, kernel) = (Kind::CooperativeTooLarge, (*kernel).to_owned());
                let (near, note, allocated_at, freed_at) = Default::default();
                self.mistakes.push(Mistake { kind, near, kernel, note, at: called, allocated_at, freed_at });
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns what is wrong with a call that frees `address` and could not.
    fn refused(&self, address: u64, at: Called) -> Mistake {
        let last = self.allocations.get(&(at.pid, address)).and_then(|all| all.last());
        let freed_at = last.and_then(|last| last.freed_at.clone());
        let about = last.or_else(|| self.around(at.pid, address));
        let (kind, note) = match about {
            Some(_) if freed_at.is_some() => (Kind::DoubleFree, String::new()),
            Some(about) if about.address != address => (
                Kind::WrongFree,
                format!("the pointer is {} bytes into the allocation", address - about.address),
            ),
            Some(about) => (
                Kind::WrongFree,
                format!("{} does not free what {} allocates", at.function, about.stack.function),
            ),
            None => (Kind::WrongFree, format!("no HIP function has allocated memory at {address:#x}")),
        };
        Mistake {
            kind,
            near: about.map(near),
            kernel: String::new(),
            note,
            at,
            allocated_at: about.map(|about| about.stack.clone()),
            freed_at,
        }
    }

    /// Returns a process's allocation that is not freed and in which `address` is.
    fn around(&self, pid: u32, address: u64) -> Option<&Allocation> {
        let own = self.allocations.iter().filter(|((process, _), _)| *process == pid);
        let has = |last: &&Allocation| {
            last.freed_at.is_none() && last.address <= address && address - last.address < last.len_bytes
        };
        own.filter_map(|(_, all)| all.last()).filter(has).max_by_key(|last| last.address)
    }

    /// Returns the allocation that a finding is near to. Several processes may have allocated at its address: then there is one only if
    /// they have done it with the same call.
    pub fn allocation(&self, near: &Near) -> Option<&Allocation> {
        let earlier = usize::try_from(near.earlier).ok()?;
        let at_address = self.allocations.iter().filter(|((_, address), _)| *address == near.address);
        let mut all = at_address.filter_map(|(_, all)| all.get(earlier).or(all.last())).collect::<Vec<_>>();
        if all.len() > 1 {
            all.retain(|allocation| allocation.len_bytes == near.len_bytes);
        }
        let first = *all.first()?;
        let call =
            |allocation: &Allocation| (allocation.stack.function.clone(), allocation.stack.frames.clone());
        all.iter().all(|other| call(other) == call(first)).then_some(first)
    }

    /// Returns the mistakes of the program's own calls, equal ones once; memory that was not freed only if `leaks` asks for it.
    pub fn findings(&self, leaks: bool) -> Vec<(Finding, Mistake)> {
        let mut found: Vec<(Finding, Mistake)> = Vec::new();
        let mut known: HashMap<(Kind, Called), usize> = HashMap::new();
        let left = if leaks { self.left() } else { Vec::new() };
        for mistake in self.mistakes.iter().cloned().chain(left) {
            let next = found.len();
            let index = *known.entry((mistake.kind, mistake.at.clone())).or_insert(next);
            if let Some((finding, _)) = found.get_mut(index) {
                finding.count += 1;
                if let (Kind::Leak, Some(all), Some(more)) = (finding.kind, &mut finding.near, &mistake.near)
                {
                    all.len_bytes = all.len_bytes.saturating_add(more.len_bytes);
                }
                continue;
            }
            let kernel = Some(&mistake.kernel).filter(|kernel| !kernel.is_empty());
            let finding = Finding {
                kind: mistake.kind,
                place: kernel.map(|kernel| Place { kernel: kernel.clone(), ..Place::default() }),
                accessed: None,
                near: mistake.near.clone(),
                other: None,
                note: mistake.note.clone(),
                count: 1,
            };
            found.push((finding, mistake));
        }
        found
    }

    /// Returns the memory that was not freed.
    fn left(&self) -> Vec<Mistake> {
        let mut left: Vec<_> = self.allocations.values().flatten().collect();
        left.retain(|allocation| allocation.freed_at.is_none());
        left.sort_by_key(|allocation| allocation.address);
        let leak = |allocation: &Allocation| Mistake {
            kind: Kind::Leak,
            near: Some(near(allocation)),
            kernel: String::new(),
            note: String::new(),
            at: allocation.stack.clone(),
            allocated_at: None,
            freed_at: None,
        };
        left.into_iter().map(leak).collect()
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
            let Some(inlined) = self.files.frames(path, offset) else { continue };
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
