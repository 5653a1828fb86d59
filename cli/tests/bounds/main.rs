//! Attacks workers in processes of their own: whatever one session asks for, the worker needs bounded memory, others are answered,
//! and the session ends when its client goes.

mod attacker;
mod queue;
mod scene;
mod scratch;
mod tenants;
mod total;
mod turns;
