//! The features of the extension: what a client offers with `OFFER`, and what the worker accepts of it.

use core::fmt;

/// A set of features of the extension, as bits of `OFFER`.
///
/// A feature changes what a session may be asked for, never what an operation of HIPR 1.0 means. The client offers those that
/// it can use; the worker accepts those of them that it has, which is the intersection of both sets. A bit that one side does not
/// know is therefore never accepted, and needs no further rule.
///
/// ```
/// use hipr_proto::Features;
///
/// let offered = Features::from_bits(u64::MAX);
/// let accepted = offered.intersection(Features::STATIC.union(Features::NAMES));
/// assert!(accepted.contains(Features::NAMES) && !accepted.contains(Features::PAGES));
/// assert_eq!(accepted.to_string(), "STATIC NAMES");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Features(u64);

impl Features {
    /// No feature.
    pub const NONE: Self = Self(0);
    /// One reply holds the replies to all questions whose answers do not change in a session.
    pub const STATIC: Self = Self(1 << 0);
    /// The client names what it creates, and does not wait for it.
    pub const NAMES: Self = Self(1 << 1);
    /// The client gets the changed pages of memory that both sides share instead of all of it.
    pub const PAGES: Self = Self(1 << 2);
    /// The devices are emulated GPUs: attributes and occupancy of a kernel follow from its code object and its device's properties, by
    /// the rules that client and worker share.
    pub const KERNEL_RULES: Self = Self(1 << 3);
    /// The worker keeps uploads by their content, so that they need not be sent again.
    pub const CACHE: Self = Self(1 << 4);
    /// The worker sends notifications: messages that no request asked for.
    pub const NOTIFICATIONS: Self = Self(1 << 5);
    /// The client places memory within a lease, at addresses of its own window, and does not wait for it.
    pub const PLACES: Self = Self(1 << 6);
    /// Bulk bytes of copies and code objects may be packed, so that a slow link carries fewer.
    pub const PACKED: Self = Self(1 << 7);
    /// Client and worker are on one machine, and map the same memory: pinned and managed memory that the client places.
    pub const SHARED: Self = Self(1 << 8);
    /// The worker tells when the free memory of the device changes, so that the client need not ask. Only with NOTIFICATIONS and PLACES.
    pub const MEM_INFO: Self = Self(1 << 9);

    /// The worker tells which launch the error of a kernel comes from. Only with NOTIFICATIONS.
    pub const WORK_ERRORS: Self = Self(1 << 10);
    /// The worker tells when a stream or an event is done of which a query found that it is not. Only with NOTIFICATIONS.
    pub const WATCHES: Self = Self(1 << 11);
    /// The worker tells where the variables of a module are, and takes copies to a variable of which the client does not know that yet.
    /// Only with NOTIFICATIONS.
    pub const VARIABLES: Self = Self(1 << 12);
    /// The worker tells when it has carried out requests, and when the device did their work. Only with NOTIFICATIONS.
    pub const TRACE: Self = Self(1 << 13);
    /// Physical memory can be mapped at reserved addresses (virtual memory management).
    pub const MAPPINGS: Self = Self(1 << 14);
    /// The worker gives the session's memory addresses of one part of all, so that those of a program's other workers are other ones.
    pub const APART: Self = Self(1 << 15);
    /// The session gives capabilities, by which another worker reads some of its memory, and has its memory filled by those that sessions of
    /// other workers give.
    pub const CAPABILITIES: Self = Self(1 << 16);
    /// The worker sends what kernels print.
    pub const PRINTF: Self = Self(1 << 17);
    /// The worker tells the times between events as soon as they are known, so that the client need not ask. Only with NOTIFICATIONS.
    pub const TIMES: Self = Self(1 << 18);
    /// Pages that have changed may come packed. Only with PAGES.
    pub const PACKED_CHANGES: Self = Self(1 << 19);

    /// The names of the bits that have one.
    const NAMED: [(Self, &str); 20] = [
        (Self::STATIC, "STATIC"),
        (Self::NAMES, "NAMES"),
        (Self::PAGES, "PAGES"),
        (Self::KERNEL_RULES, "KERNEL_RULES"),
        (Self::CACHE, "CACHE"),
        (Self::NOTIFICATIONS, "NOTIFICATIONS"),
        (Self::PLACES, "PLACES"),
        (Self::PACKED, "PACKED"),
        (Self::SHARED, "SHARED"),
        (Self::MEM_INFO, "MEM_INFO"),
        (Self::WORK_ERRORS, "WORK_ERRORS"),
        (Self::WATCHES, "WATCHES"),
        (Self::VARIABLES, "VARIABLES"),
        (Self::TRACE, "TRACE"),
        (Self::MAPPINGS, "MAPPINGS"),
        (Self::APART, "APART"),
        (Self::CAPABILITIES, "CAPABILITIES"),
        (Self::PRINTF, "PRINTF"),
        (Self::TIMES, "TIMES"),
        (Self::PACKED_CHANGES, "PACKED_CHANGES"),
    ];

    /// Creates a set from its bits. Bits without a meaning are kept: whoever sent them may know one.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns whether all features of `other` are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the features that are in this set or in `other`.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the features of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the features that are in this set with all that they need.
    #[must_use]
    pub const fn usable(self) -> Self {
        let of_notifications = Self::MEM_INFO
            .union(Self::WORK_ERRORS)
            .union(Self::WATCHES)
            .union(Self::VARIABLES)
            .union(Self::TRACE)
            .union(Self::TIMES);
        match (self.contains(Self::NOTIFICATIONS), self.contains(Self::PLACES)) {
            (true, true) => self,
            (true, false) => self.without(Self::MEM_INFO),
            (false, _) => self.without(of_notifications),
        }
    }

    /// Returns the features that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Display for Features {
    /// Writes the names, separated by spaces, and bits without a name as a number; `none` for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        let mut space = "";
        for (feature, name) in Self::NAMED.into_iter().filter(|(feature, _)| self.contains(*feature)) {
            write!(f, "{space}{name}")?;
            left &= !feature.0;
            space = " ";
        }
        match (left, self.0) {
            (_, 0) => f.write_str("none"),
            (0, _) => Ok(()),
            _ => write!(f, "{space}{left:#x}"),
        }
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Features({self})")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn sets_are_joined_and_cut() {
        let both = Features::STATIC.union(Features::PAGES);
        assert_eq!(both.bits(), 0b101);
        assert_eq!(both.intersection(Features::NAMES.union(Features::PAGES)), Features::PAGES);
        assert_eq!(both.without(Features::PAGES), Features::STATIC);
        assert!(both.contains(Features::NONE) && both.contains(both) && !Features::PAGES.contains(both));
        assert_eq!(Features::default(), Features::NONE);
        let info = Features::MEM_INFO.union(Features::PLACES);
        assert_eq!(info.usable(), Features::PLACES);
        assert_eq!(info.union(Features::NOTIFICATIONS).usable(), info.union(Features::NOTIFICATIONS));
        for told in
            [Features::WORK_ERRORS, Features::WATCHES, Features::VARIABLES, Features::TRACE, Features::TIMES]
        {
            let both = told.union(Features::NAMES);
            assert_eq!(both.usable(), Features::NAMES);
            assert_eq!(both.union(Features::NOTIFICATIONS).usable(), both.union(Features::NOTIFICATIONS));
        }
    }

    #[test]
    fn sets_are_written_by_name() {
        assert_eq!(Features::NONE.to_string(), "none");
        assert_eq!(Features::from_bits(0b111).to_string(), "STATIC NAMES PAGES");
        assert_eq!(Features::from_bits(1 << 63 | 2).to_string(), "NAMES 0x8000000000000000");
        assert_eq!(alloc::format!("{:?}", Features::from_bits(1 << 60)), "Features(0x1000000000000000)");
    }
}
