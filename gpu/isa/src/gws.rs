//! Global wave sync: barriers and semaphores between the workgroups of one launch (`ds_gws_*`).

use std::sync::{Mutex, PoisonError};

/// Number of resources of a queue.
const RESOURCES: usize = 64;

/// A barrier or a semaphore; the instructions that use it decide which.
#[derive(Clone, Copy, Debug, Default)]
struct Resource {
    /// For a barrier, the number of waves that have to arrive before the last one; for a semaphore, the number of waves that
    /// may pass.
    counter: u64,
    /// Number of times that all waiting waves were released.
    releases: u64,
}

/// The number of times that a resource had released all waves when a wave began to wait at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// What an instruction does to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sets the counter to the operand.
    Init,
    /// Arrives at the barrier and waits. The last one lets all go, and the counter becomes the operand for the next time.
    Barrier,
    /// Lets one more wave pass.
    Release,
    /// Lets as many more waves pass as the operand says.
    ReleaseMany,
    /// Lets all waiting waves pass.
    ReleaseAll,
    /// Waits until the wave may pass.
    Pass,
}

/// The resources that the waves of one launch share.
#[derive(Debug)]
pub struct WaveSync(Mutex<[Resource; RESOURCES]>);

impl WaveSync {
    /// Creates the resources for a cooperative launch of `groups` workgroups. The first one is a barrier at which one wave of each
    /// arrives, as AMD's runtime prepares it before each such launch.
    pub fn for_groups(groups: u64) -> Self {
        let mut resources = [Resource::default(); RESOURCES];
        resources[0].counter = groups.saturating_sub(1);
        Self(Mutex::new(resources))
    }

    /// Carries out `action` on resource `number` (modulo their count) for a wave that has waited since `ticket`, if it has. Returns
    /// the ticket with which the wave has to come again; `None` if it can go on.
    pub(crate) fn act(
        &self,
        action: Action,
        number: usize,
        operand: u32,
        ticket: Option<Ticket>,
    ) -> Option<Ticket> {
        let mut resources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resource = &mut resources[number % RESOURCES];
        let waits = Some(ticket.unwrap_or(Ticket(resource.releases)));
        let let_go = ticket.is_some_and(|ticket| ticket != Ticket(resource.releases));
        match action {
            Action::Init => resource.counter = operand.into(),
            Action::Release => resource.counter += 1,
            Action::ReleaseMany => resource.counter += u64::from(operand),
            Action::ReleaseAll => resource.releases += 1,
            Action::Barrier if let_go => {}
            Action::Barrier if ticket.is_some() => return waits,
            Action::Barrier if resource.counter > 0 => {
                resource.counter -= 1;
                return waits;
            }
            Action::Barrier => {
                resource.counter = operand.into();
                resource.releases += 1;
            }
            Action::Pass if let_go => {}
            Action::Pass if resource.counter > 0 => resource.counter -= 1,
            Action::Pass => return waits,
        }
        None
    }
}
