//! Bit layouts of instructions, one file per family of encodings. What an instruction does is defined elsewhere.

pub(crate) mod ds;
pub(crate) mod flat;
pub(crate) mod mubuf;
pub(crate) mod smem;
pub(crate) mod sop;
pub(crate) mod vop;

/// Returns the bits `high..=low` of an encoding.
#[inline(always)]
pub(crate) const fn bits(word: u64, high: u32, low: u32) -> u32 {
    (word >> low & (u64::MAX >> (63 - (high - low)))) as u32
}

/// Declares the fields of an encoding: name, highest bit, lowest bit, what it is.
macro_rules! fields {
    ($(#[$doc:meta])* $name:ident { $($field:ident $high:literal : $low:literal $what:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub u64);

        #[allow(dead_code, reason = "layouts are declared with all fields, used or not")]
        impl $name {
            $(
                #[doc = $what]
                #[inline(always)]
                pub(crate) const fn $field(self) -> usize {
                    $crate::enc::bits(self.0, $high, $low) as usize
                }
            )*
        }
    };
}
pub(crate) use fields;
