//! Races: two accesses to the same bytes, of which one is a store, without an order between them.
//!
//! What orders them ([`order`]): the wave that does both; a barrier of the workgroup; an atomic that the one's wave stored to behind its
//! access (and a release fence, if another workgroup is to see it) and the other's wave has read before; a meeting of all workgroups of a
//! cooperative launch; the order of streams. Atomics among themselves are no race.
//!
//! [`shadow`] has the last accesses of each word. Two stores of the same value are not reported: programs set flags that way.

pub(crate) mod order;
pub(crate) mod shadow;
