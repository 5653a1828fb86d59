//! The modules of a session, and the variables that its client knows by number.

use hipr_proto::op::{Handle, Variable};
use hipr_proto::{HipError, HipResult};

use super::{Origin, Owned};

/// A loaded module.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Size of the code object.
    pub(super) size_bytes: u64,
    /// The variables that the client knows by number, or why they could not be found.
    variables: Box<[HipResult<Variable>]>,
    /// How many of the session's allocations are among them and were not asked for one by one.
    uncounted: usize,
}

impl Owned {
    /// Checks that a module exists.
    pub(crate) fn check_module(&self, module: u64) -> HipResult<()> {
        if self.modules.contains_key(&module) { Ok(()) } else { Err(HipError::INVALID_HANDLE) }
    }

    /// Adds a module whose code object has `size_bytes` bytes; returns the number by which the client knows it.
    pub(crate) fn add_module(&mut self, module: u64, size_bytes: u64) -> u64 {
        self.memory_bytes = self.memory_bytes.saturating_add(size_bytes);
        self.modules.insert(module, Module { size_bytes, ..Module::default() });
        self.names.made(Handle::Module, module)
    }

    /// Numbers variables of a module for the client, instead of those that it knew by number.
    pub(crate) fn set_variables(
        &mut self,
        module: u64,
        variables: Vec<HipResult<Variable>>,
    ) -> HipResult<()> {
        let before = self.allocations.len();
        for Variable { address, size } in variables.iter().flatten() {
            self.add_global(module, *address, *size)?;
        }
        let added = self.allocations.len() - before;
        if let Some(module) = self.modules.get_mut(&module) {
            module.variables = variables.into();
            module.uncounted += added;
            self.uncounted += added;
        }
        Ok(())
    }

    /// Returns the variable of a module that the client knows by a number.
    ///
    /// # Errors
    /// `INVALID_HANDLE`, `INVALID_VALUE`: there is no such module, no such number; why the variable could not be found.
    pub(crate) fn variable(&self, module: u64, number: u32) -> HipResult<Variable> {
        let module = self.modules.get(&module).ok_or(HipError::INVALID_HANDLE)?;
        module.variables.get(number as usize).copied().ok_or(HipError::INVALID_VALUE)?
    }

    /// Removes a module with its functions and variables.
    pub(crate) fn remove_module(&mut self, module: u64) {
        if let Some(module) = self.modules.remove(&module) {
            self.memory_bytes = self.memory_bytes.saturating_sub(module.size_bytes);
            self.uncounted = self.uncounted.saturating_sub(module.uncounted);
        }
        self.names.forget(Handle::Module, module);
        let (names, functions) = (&mut self.names, &self.functions);
        names.forget_all(Handle::Function, |handle| {
            functions.get(handle).is_some_and(|function| function.module == module)
        });
        self.functions.retain(|function| function.module != module);
        let Self { allocations, watches, .. } = self;
        allocations.retain(|base, allocation| {
            let stays = allocation.origin != Origin::Module(module);
            if !stays {
                watches.remove(*base);
            }
            stays
        });
    }
}
