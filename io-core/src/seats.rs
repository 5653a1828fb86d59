use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::Peer;

/// How many connections there may be, and how many of them from one address: the seats of a worker.
///
/// IPv6 addresses count as one if they have the first 64 bits in common, as whoever has one of them has all.
#[derive(Debug)]
pub struct Seats {
    max: usize,
    /// The most seats of one address, if that was said; else half of all, and this machine's own addresses may take all of them.
    per_address_max: Option<usize>,
    taken: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The reason why a connection gets no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSeat {
    /// All seats are taken; their number.
    Full(usize),
    /// The address has as many as one address may have; their number.
    AddressFull(usize),
}

impl NoSeat {
    /// Returns a word for the reason, which does not change.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full(_) => "no-seat",
            Self::AddressFull(_) => "no-seat-for-address",
        }
    }
}

impl fmt::Display for NoSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(max) => write!(f, "too many sessions: there may be {max}"),
            Self::AddressFull(max) => write!(f, "too many sessions of one address, which may have {max}"),
        }
    }
}

impl Seats {
    /// Creates `max` seats. One address may have `per_address_max` of them; `None` stands for half of them, without a limit for
    /// connections from this machine.
    pub fn new(max: usize, per_address_max: Option<usize>) -> Self {
        Self { max, per_address_max, taken: 0, by_address: HashMap::new() }
    }

    /// Returns how many seats are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Takes a seat for a connection; it has to be [given back](Self::give_back).
    ///
    /// # Errors
    /// There is none.
    pub fn take(&mut self, peer: Peer) -> Result<(), NoSeat> {
        if self.taken >= self.max {
            return Err(NoSeat::Full(self.max));
        }
        if let Some((address, most)) = self.limited(peer) {
            let count = self.by_address.entry(address).or_default();
            if *count >= most {
                return Err(NoSeat::AddressFull(most));
            }
            *count += 1;
        }
        self.taken += 1;
        Ok(())
    }

    /// Gives back the seat of a connection that has ended.
    pub fn give_back(&mut self, peer: Peer) {
        self.taken = self.taken.saturating_sub(1);
        let Some((address, _)) = self.limited(peer) else { return };
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    /// Returns the address that a connection counts for, and the most seats for it; `None` if that has no limit.
    fn limited(&self, peer: Peer) -> Option<(IpAddr, usize)> {
        let Peer::Tcp(address) = peer else { return None };
        let address = network(address);
        match self.per_address_max {
            Some(most) => Some((address, most)),
            None if address.is_loopback() => None,
            None => Some((address, self.max.div_ceil(2))),
        }
    }
}

/// Returns the address, or the begin of the network, that a peer counts for.
pub(crate) fn network(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Tcp(SocketAddr::new(address.parse().unwrap(), 1))
    }

    #[test]
    fn one_address_gets_no_more_than_its_part() {
        let mut seats = Seats::new(5, None);
        for _ in 0..3 {
            assert_eq!(seats.take(peer("10.0.0.1")), Ok(()));
        }
        assert_eq!(seats.take(peer("10.0.0.1")), Err(NoSeat::AddressFull(3)));
        assert_eq!(seats.take(peer("::ffff:10.0.0.1")), Err(NoSeat::AddressFull(3)), "the same address");
        assert_eq!(seats.take(peer("10.0.0.2")), Ok(()));
        seats.give_back(peer("10.0.0.1"));
        assert_eq!(seats.take(peer("10.0.0.1")), Ok(()));
        assert_eq!(seats.take(Peer::Local), Ok(()));
        assert_eq!(seats.take(peer("10.0.0.3")), Err(NoSeat::Full(5)));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let mut seats = Seats::new(4, None);
        assert_eq!(seats.take(peer("2001:db8::1")), Ok(()));
        assert_eq!(seats.take(peer("2001:db8::2")), Ok(()));
        assert_eq!(seats.take(peer("2001:db8:0:0:ffff::3")), Err(NoSeat::AddressFull(2)));
        assert_eq!(seats.take(peer("2001:db8:0:1::3")), Ok(()));
    }

    #[test]
    fn this_machine_has_a_limit_only_if_it_was_given_one() {
        for address in ["127.0.0.1", "127.8.0.1", "::1"] {
            let (mut unsaid, mut said) = (Seats::new(3, None), Seats::new(3, Some(1)));
            for _ in 0..3 {
                assert_eq!(unsaid.take(peer(address)), Ok(()));
            }
            assert_eq!(unsaid.take(peer(address)), Err(NoSeat::Full(3)));
            assert_eq!((said.take(peer(address)), said.take(Peer::Local)), (Ok(()), Ok(())));
            assert_eq!(said.take(peer(address)), Err(NoSeat::AddressFull(1)));
        }
    }

    #[test]
    fn what_is_given_back_is_forgotten() {
        let mut seats = Seats::new(2, Some(2));
        for number in 0..100 {
            let peer = peer(&format!("10.0.0.{number}"));
            assert_eq!(seats.take(peer), Ok(()));
            seats.give_back(peer);
        }
        assert!(seats.by_address.is_empty() && seats.taken == 0);
    }
}
