//! Where the variables of modules are.

use hipr_proto::{Features, op};

use super::{Connection, Extra};
use crate::CallError;

impl Connection {
    /// Asks the worker to tell where variables of a module are, with the first names for which one request has room, and waits for nothing.
    /// Returns the number of the request, by which [`variable`](Self::variable) finds what was told, and of the names in it; `None`, and
    /// nothing is sent, if there is no name or the worker has not accepted [`Features::VARIABLES`].
    ///
    /// # Errors
    /// The connection is lost.
    pub fn ask_variables<'a>(
        &self,
        module: u64,
        names: impl IntoIterator<Item = &'a str>,
        extra: Extra<'_>,
    ) -> Result<Option<(u64, usize)>, CallError> {
        if !self.features().contains(Features::VARIABLES) {
            return Ok(None);
        }
        let mut tail = Vec::new();
        let known = op::put_variable_names(names, &mut tail);
        let (Ok(count), Ok(names_length)) = (u32::try_from(known), u32::try_from(tail.len())) else {
            return Ok(None);
        };
        if count == 0 {
            return Ok(None);
        }
        let number = self.inner.replies.listeners().variables.expect(count);
        let request = op::ModuleVariables { module, number, count, names_length };
        self.tell_with(&request, Extra { tail: &tail, ..extra })?;
        Ok(Some((number, known)))
    }

    /// Returns where the variable is whose name had this place in the request with this number, as far as the worker has told so.
    /// [`hear_arrived`](Self::hear_arrived) takes in what it has told.
    pub fn variable(&self, number: u64, place: usize) -> Option<op::Variable> {
        self.inner.replies.listeners().variables.get(number, place)
    }

    /// Forgets what was told, or will be, for the request with this number.
    pub fn forget_variables(&self, number: u64) {
        self.inner.replies.listeners().variables.forget(number);
    }
}
