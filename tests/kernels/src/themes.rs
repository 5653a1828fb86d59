//! The parts of generated kernels: types, expressions, and themes that combine them.

/// A type of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    U32,
    I32,
    U64,
    I64,
    U16,
    I16,
    U8,
    I8,
    F32,
    F64,
    F16,
    F32x2,
    F32x4,
    F16x2,
    I16x2,
    U16x2,
    I32x2,
    U32x4,
}

use Type::*;

/// For each type its name in C, how it is made from input words, and how a value `$` becomes a word.
pub(crate) const TYPES: [(Type, &str, &str, &str); 18] = [
    (U32, "u32", "W(@)", "$"),
    (I32, "i32", "(i32)W(@)", "(u32)($)"),
    (U64, "u64", "(W(@) | (u64)W(#) << 32)", "fold($)"),
    (I64, "i64", "(i64)(W(@) | (u64)W(#) << 32)", "fold((u64)($))"),
    (U16, "u16", "(u16)W(@)", "(u32)($)"),
    (I16, "i16", "(i16)(W(@) >> 16)", "(u32)($)"),
    (U8, "u8", "(u8)(W(@) >> 8)", "(u32)($)"),
    (I8, "i8", "(i8)W(@)", "(u32)($)"),
    (F32, "f32", "f32_of(W(@))", "bits_f32($)"),
    (F64, "f64", "f64_of(W(@) | (u64)W(#) << 32)", "fold(bits_f64($))"),
    (F16, "f16", "f16_of(W(@))", "bits_f16($)"),
    (F32x2, "f32x2", "(f32x2){f32_of(W(@)), f32_of(W(#))}", "(bits_f32(($).x) ^ rotl(bits_f32(($).y), 9))"),
    (
        F32x4,
        "f32x4",
        "(f32x4){f32_of(W(@)), f32_of(W(#)), 1.5f, f32_of(W(0))}",
        "(bits_f32(($).x) ^ rotl(bits_f32(($).y), 9) ^ rotl(bits_f32(($).z), 17) ^ rotl(bits_f32(($).w), 25))",
    ),
    (
        F16x2,
        "f16x2",
        "(f16x2){f16_of(W(@)), f16_of(W(@) >> 16)}",
        "(bits_f16(($).x) | bits_f16(($).y) << 16)",
    ),
    (I16x2, "i16x2", "__builtin_bit_cast(i16x2, W(@))", "__builtin_bit_cast(u32, $)"),
    (U16x2, "u16x2", "__builtin_bit_cast(u16x2, W(@))", "__builtin_bit_cast(u32, $)"),
    (I32x2, "i32x2", "(i32x2){(i32)W(@), (i32)W(#)}", "((u32)($).x ^ rotl((u32)($).y, 9))"),
    (
        U32x4,
        "u32x4",
        "(u32x4){W(@), W(#), W(2), 77u}",
        "(($).x ^ rotl(($).y, 9) ^ rotl(($).z, 17) ^ rotl(($).w, 25))",
    ),
];

impl Type {
    pub(crate) fn row(self) -> &'static (Type, &'static str, &'static str, &'static str) {
        TYPES.iter().find(|row| row.0 == self).expect("every type has a row")
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    pub(crate) fn word(self, value: &str) -> String {
        self.row().3.replace('$', value)
    }
}

/// Expressions by type; `%T` stands for an expression of type T.
pub(crate) const EXPRESSIONS: [(Type, &[&str]); 18] = [
    (
        U32,
        &[
            "(%U32 + %U32)",
            "(%U32 - %U32)",
            "(%U32 * %U32)",
            "(%U32 & %U32)",
            "(%U32 | %U32)",
            "(%U32 ^ %U32)",
            "~%U32",
            "(%U32 << (%U32 & 31))",
            "(%U32 >> (%U32 & 31))",
            "(%U32 < %U32 ? %U32 : %U32)",
            "(%U32 & %U32 | ~%U32 & %U32)",
            "((%U32 << 3) + %U32)",
            "(%U32 + %U32 + %U32)",
            "(%U32 >> 5 & 0x3ff)",
            "(%U32 == %U32)",
            "(%U32 * 37u + 11u)",
            "(%U32 > %U32 ? %U32 : %U32)",
            "(%U32 - (%U32 >> 1))",
            "(u32)(u8)%U32",
        ],
    ),
    (
        I32,
        &[
            "(i32)((u32)%I32 + (u32)%I32)",
            "(i32)((u32)%I32 - (u32)%I32)",
            "(i32)((u32)%I32 * (u32)%I32)",
            "(%I32 >> (%U32 & 31))",
            "(%I32 < %I32 ? %I32 : %I32)",
            "(%I32 > %I32 ? %I32 : %I32)",
            "(i32)(i16)%I32",
            "(i32)(i8)%I32",
            "(%I32 ^ %I32)",
            "(%I32 <= %I32)",
            "((i32)((u32)%I32 << 8) >> 20)",
            "(%I32 < 0 ? (i32)(0u - (u32)%I32) : %I32)",
            "(-(%I32 >> 1))",
        ],
    ),
    (
        U64,
        &[
            "(%U64 + %U64)",
            "(%U64 - %U64)",
            "(%U64 * %U64)",
            "(%U64 & %U64)",
            "(%U64 | %U64)",
            "(%U64 ^ %U64)",
            "~%U64",
            "(%U64 << (%U64 & 63))",
            "(%U64 >> (%U64 & 63))",
            "(%U64 < %U64 ? %U64 : %U64)",
            "(%U64 + (u32)%U64)",
            "(%U64 == %U64)",
            "((u64)(u32)%U64 * (u32)%U64 + %U64)",
            "(%U64 >> 32)",
            "(%U64 << 2)",
        ],
    ),
    (
        I64,
        &[
            "(i64)((u64)%I64 + (u64)%I64)",
            "(i64)((u64)%I64 - (u64)%I64)",
            "(i64)((u64)%I64 * (u64)%I64)",
            "(%I64 >> ((u32)%I64 & 63))",
            "(%I64 < %I64 ? %I64 : %I64)",
            "(%I64 > %I64)",
            "(i64)(i32)%I64",
            "((i64)(i32)%I64 * (i32)%I64)",
            "(%I64 ^ %I64)",
            "(%I64 < 0 ? (i64)(0ull - (u64)%I64) : %I64)",
        ],
    ),
    (
        U16,
        &[
            "(u16)(%U16 + %U16)",
            "(u16)(%U16 - %U16)",
            "(u16)((u32)%U16 * %U16)",
            "(u16)(%U16 >> (%U16 & 15))",
            "(u16)(%U16 << (%U16 & 15))",
            "(%U16 < %U16 ? %U16 : %U16)",
            "(u16)(%U16 ^ %U8)",
            "(u16)~%U16",
            "(u16)((u32)%U16 * %U16 + %U16)",
        ],
    ),
    (
        I16,
        &[
            "(i16)(%I16 + %I16)",
            "(i16)(%I16 - %I16)",
            "(i16)((i32)%I16 * %I16)",
            "(i16)(%I16 >> (%U16 & 15))",
            "(%I16 < %I16 ? %I16 : %I16)",
            "(%I16 > %I16 ? %I16 : %I16)",
            "(i16)(%I16 + %I8)",
            "(i16)(%I16 | %I16)",
        ],
    ),
    (
        U8,
        &[
            "(u8)(%U8 + %U8)",
            "(u8)(%U8 * %U8)",
            "(u8)(%U8 >> (%U8 & 7))",
            "(%U8 < %U8 ? %U8 : %U8)",
            "(u8)(%U8 ^ %U8)",
            "(u8)(%U8 - %U8)",
        ],
    ),
    (
        I8,
        &[
            "(i8)(%I8 + %I8)",
            "(i8)(%I8 * %I8)",
            "(i8)(%I8 >> (%U8 & 7))",
            "(%I8 < %I8 ? %I8 : %I8)",
            "(i8)(%I8 ^ %I8)",
        ],
    ),
    (
        F32,
        &[
            "(%F32 + %F32)",
            "(%F32 - %F32)",
            "(%F32 * %F32)",
            "__builtin_fmaf(%F32, %F32, %F32)",
            "(-%F32)",
            "__builtin_fabsf(%F32)",
            "(%F32 < %F32 ? %F32 : %F32)",
            "(%F32 >= %F32 ? %F32 : %F32)",
            "(%F32 * 0.5f)",
            "__builtin_fmaf(%F32, 1.25f, (-%F32))",
            "__builtin_fminf(tame_f32(%F32), tame_f32(%F32))",
            "__builtin_fmaxf(tame_f32(%F32), tame_f32(%F32))",
            "__builtin_copysignf(%F32, tame_f32(%F32))",
            "(%F32 != %F32 ? 1.0f : %F32)",
            "(%F32 * 1e-30f)",
            "(%F32 * 3e25f)",
        ],
    ),
    (
        F64,
        &[
            "(%F64 + %F64)",
            "(%F64 - %F64)",
            "(%F64 * %F64)",
            "__builtin_fma(%F64, %F64, %F64)",
            "(-%F64)",
            "__builtin_fabs(%F64)",
            "(%F64 < %F64 ? %F64 : %F64)",
            "(%F64 * 0.5)",
            "__builtin_fmin(tame_f64(%F64), tame_f64(%F64))",
            "__builtin_fmax(tame_f64(%F64), tame_f64(%F64))",
            "__builtin_copysign(%F64, tame_f64(%F64))",
            "(%F64 * 1e-300)",
            "(%F64 == %F64 ? %F64 : 2.5)",
        ],
    ),
    (
        F16,
        &[
            "(%F16 + %F16)",
            "(%F16 - %F16)",
            "(%F16 * %F16)",
            "(-%F16)",
            "(%F16 < %F16 ? %F16 : %F16)",
            "(%F16 > %F16 ? %F16 : (f16)1.5)",
            "(%F16 * (f16)0.25)",
            "(%F16 + (f16)1.0)",
        ],
    ),
    (
        F32x2,
        &[
            "(%F32x2 + %F32x2)",
            "(%F32x2 * %F32x2)",
            "(%F32x2 - %F32x2)",
            "%F32x2.yx",
            "(%F32x2 * %F32x2 + %F32x2)",
            "(f32x2){%F32x2.y, %F32x2.x}",
            "(-%F32x2)",
            "(%F32x2 + 1.5f)",
        ],
    ),
    (
        F32x4,
        &[
            "(%F32x4 + %F32x4)",
            "(%F32x4 * %F32x4)",
            "%F32x4.wzyx",
            "(%F32x4 - %F32x4)",
            "__builtin_shufflevector(%F32x4, %F32x4, 0, 5, 2, 7)",
        ],
    ),
    (
        F16x2,
        &[
            "(%F16x2 + %F16x2)",
            "(%F16x2 * %F16x2)",
            "(%F16x2 - %F16x2)",
            "%F16x2.yx",
            "(-%F16x2)",
            "(%F16x2 * (f16)0.5)",
        ],
    ),
    (
        I16x2,
        &[
            "(%I16x2 + %I16x2)",
            "(%I16x2 - %I16x2)",
            "(%I16x2 * %I16x2)",
            "(%I16x2 >> (i16)3)",
            "%I16x2.yx",
            "(%I16x2 & %I16x2)",
            "(%I16x2 > %I16x2)",
            "__builtin_elementwise_max(%I16x2, %I16x2)",
            "__builtin_elementwise_min(%I16x2, %I16x2)",
        ],
    ),
    (
        U16x2,
        &[
            "(%U16x2 + %U16x2)",
            "(%U16x2 * %U16x2)",
            "(%U16x2 >> (u16)5)",
            "(%U16x2 << (u16)2)",
            "%U16x2.yx",
            "(%U16x2 ^ %U16x2)",
            "__builtin_elementwise_max(%U16x2, %U16x2)",
            "__builtin_elementwise_add_sat(%U16x2, %U16x2)",
        ],
    ),
    (
        I32x2,
        &[
            "(%I32x2 ^ %I32x2)",
            "(%I32x2 >> 7)",
            "%I32x2.yx",
            "(%I32x2 < %I32x2)",
            "(%I32x2 & %I32x2 | ~%I32x2)",
        ],
    ),
    (
        U32x4,
        &[
            "(%U32x4 + %U32x4)",
            "(%U32x4 * %U32x4)",
            "%U32x4.wxzy",
            "(%U32x4 ^ %U32x4)",
            "(%U32x4 >> 3u)",
            "__builtin_shufflevector(%U32x4, %U32x4, 6, 1, 4, 3)",
        ],
    ),
];

/// The structure of a theme's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Straight-line expressions.
    Straight,
    /// Loops, branches and switches.
    Control,
    /// Variables in an array that is indexed by data.
    Stack,
    /// Calls of functions.
    Calls,
    /// Exchange with other lanes through LDS, with barriers.
    Exchange,
    /// Reductions in LDS.
    Reduction,
    /// Atomics on LDS.
    LocalAtomics,
    /// Atomics on global memory.
    GlobalAtomics,
    /// Accesses to bytes, half words and words at any address.
    Widths,
}

use Form::*;

/// A kind of kernel.
#[derive(Debug)]
pub struct Theme {
    /// Name of the theme.
    pub name: &'static str,
    /// Types of its results.
    pub(crate) types: &'static [Type],
    /// Expressions in addition to those of its types.
    pub(crate) extra: &'static [(Type, &'static str)],
    pub(crate) form: Form,
}

const fn theme(
    name: &'static str,
    form: Form,
    types: &'static [Type],
    extra: &'static [(Type, &'static str)],
) -> Theme {
    Theme { name, types, extra, form }
}

/// All themes.
#[rustfmt::skip]
pub const THEMES: [Theme; 28] = [
    theme("integers", Straight, &[U32, I32], &[]),
    theme("long_integers", Straight, &[U64, I64], &[]),
    theme("short_integers", Straight, &[U16, I16, U8, I8], &[]),
    theme("bits", Straight, &[U32, U64], &[
        (U32, "(u32)__builtin_popcount(%U32)"), (U32, "clz(%U32)"), (U32, "ctz(%U32)"), (U32, "__builtin_bitreverse32(%U32)"),
        (U32, "__builtin_bswap32(%U32)"), (U32, "rotl(%U32, %U32)"), (U32, "clz64(%U64)"), (U64, "rotl64(%U64, %U32)"),
        (U32, "(u32)__builtin_popcountll(%U64)"), (U64, "__builtin_bitreverse64(%U64)"), (U64, "__builtin_bswap64(%U64)"),
        (U32, "(%U32 >> (%U32 & 31) & ((1u << (%U32 & 15)) - 1))"), (U32, "(u32)(%U64 >> (%U32 & 31))"),
    ]),
    theme("high_products", Straight, &[U32, I32, U64, I64], &[
        (U32, "mulhi_u32(%U32, %U32)"), (I32, "mulhi_i32(%I32, %I32)"), (U64, "mulhi_u64(%U64, %U64)"), (I64, "mulhi_i64(%I64, %I64)"),
        (U32, "((%U32 & 0xffffff) * (%U32 & 0xffffff) + %U32)"), (U64, "((u64)%U32 * %U32 + %U64)"), (I64, "((i64)%I32 * %I32 + (%I64 >> 2))"),
    ]),
    theme("division", Straight, &[U32, I32], &[
        (U32, "div_u32(%U32, %U32)"), (U32, "mod_u32(%U32, %U32)"), (I32, "div_i32(%I32, %I32)"), (I32, "mod_i32(%I32, %I32)"),
        (U32, "(%U32 / 7)"), (I32, "(%I32 / 1000)"), (I32, "(%I32 % 24)"), (U32, "div_u32(%U32, %U32 >> 20)"),
    ]),
    theme("long_division", Straight, &[U64, I64], &[
        (U64, "div_u64(%U64, %U64 >> 17)"), (U64, "mod_u64(%U64, %U64)"), (I64, "div_i64(%I64, %I64)"), (I64, "mod_i64(%I64, %I64)"),
        (U64, "(%U64 / 10)"),
    ]),
    theme("floats", Straight, &[F32], &[]),
    theme("float_division", Straight, &[F32], &[
        (F32, "(%F32 / %F32)"), (F32, "(1.0f / %F32)"), (F32, "__builtin_sqrtf(%F32)"), (F32, "(%F32 / 3.0f)"),
        (F32, "__builtin_sqrtf(%F32 * %F32)"),
    ]),
    theme("doubles", Straight, &[F64], &[]),
    theme("double_division", Straight, &[F64], &[
        (F64, "(%F64 / %F64)"), (F64, "(1.0 / %F64)"), (F64, "__builtin_sqrt(%F64)"), (F64, "(%F64 / 7.0)"),
    ]),
    theme("half_floats", Straight, &[F16, F32], &[
        (F16, "(f16)tame_f32(%F32)"), (F32, "(f32)%F16"), (F16, "(%F16 * %F16 + %F16)"), (F32, "((f32)%F16 * (f32)%F16 + %F32)"),
    ]),
    theme("conversions", Straight, &[U32, I32, U64, I64, F32, F64, F16], &[
        (F32, "(f32)%U32"), (F32, "(f32)%I32"), (F32, "(f32)%U64"), (F32, "(f32)%I64"), (F32, "(f32)%F64"), (F32, "(f32)%F16"),
        (F64, "(f64)%U32"), (F64, "(f64)%I32"), (F64, "(f64)%U64"), (F64, "(f64)%I64"), (F64, "(f64)%F32"),
        (U32, "(u32)within_f32(__builtin_fabsf(%F32), 4e9f)"), (I32, "(i32)within_f32(%F32, 2e9f)"), (I64, "(i64)within_f32(%F32, 9e18f)"),
        (U64, "(u64)within_f64(__builtin_fabs(%F64), 1.8e19)"), (I64, "(i64)within_f64(%F64, 9e18)"), (I32, "(i32)within_f64(%F64, 2e9)"),
        (U32, "(u32)within_f64(__builtin_fabs(%F64), 4e9)"), (F16, "(f16)tame_f32(%F32)"), (U32, "(u32)(u8)(within_f32(__builtin_fabsf(%F32), 250.0f))"),
        (F32, "(f32)(%U32 & 0xff)"), (F32, "(f32)(%U32 >> 24)"), (F32, "(f32)(i16)%I32"),
    ]),
    theme("rounding", Straight, &[F32, F64], &[
        (F32, "__builtin_floorf(%F32)"), (F32, "__builtin_ceilf(%F32)"), (F32, "__builtin_truncf(%F32)"), (F32, "__builtin_rintf(%F32)"),
        (F32, "__builtin_roundf(%F32)"), (F32, "__builtin_ldexpf(%F32, (i32)(W(3) & 127) - 64)"), (F64, "__builtin_floor(%F64)"),
        (F64, "__builtin_ceil(%F64)"), (F64, "__builtin_trunc(%F64)"), (F64, "__builtin_rint(%F64)"),
        (F64, "__builtin_ldexp(%F64, (i32)(W(3) & 1023) - 512)"), (F32, "(%F32 - __builtin_floorf(%F32))"), (F32, "(%F32 * 100.0f)"),
        (F64, "(f64)__builtin_roundf(%F32)"), (F64, "(%F64 * 1e3)"),
    ]),
    theme("float_vectors", Straight, &[F32x2, F32x4], &[
        (F32x4, "(f32x4){%F32x2.x, %F32x2.y, %F32x4.z, %F32x2.y}"), (F32x2, "(%F32x4.zw + %F32x2)"),
    ]),
    theme("packed", Straight, &[F16x2, I16x2, U16x2], &[
        (I16x2, "(i16x2){%I16x2.x, %I16x2.x}"), (F16x2, "(f16x2){%F16x2.y, %F16x2.y}"), (U16x2, "__builtin_bit_cast(u16x2, %I16x2)"),
        (I16x2, "__builtin_bit_cast(i16x2, %U16x2)"),
    ]),
    theme("integer_vectors", Straight, &[U32x4, I32x2], &[
        (U32x4, "(u32x4){(u32)%I32x2.x, %U32x4.y, (u32)%I32x2.y, 3u}"), (I32x2, "__builtin_bit_cast(i32x2, %U32x4.yz)"),
    ]),
    theme("loops", Control, &[U32, F32, I64], &[]),
    theme("branches", Control, &[I32, F64, U16], &[]),
    theme("stack", Stack, &[U32, U64, F32], &[]),
    theme("calls", Calls, &[U32, F32, I64], &[]),
    theme("exchange", Exchange, &[U32, F32, U64], &[]),
    theme("reductions", Reduction, &[U32, F32, I32], &[]),
    theme("local_atomics", LocalAtomics, &[U32, I32], &[]),
    theme("global_atomics", GlobalAtomics, &[U32, I32, U64], &[]),
    theme("widths", Widths, &[U8, U16, I16, I8, U32], &[]),
    theme("mixed", Straight, &[U32, I32, U64, F32, F64, F16, I16x2], &[
        (U32, "bits_f32(%F32)"), (F32, "f32_of(%U32)"), (U64, "bits_f64(%F64)"), (F32, "(f32)%I32"), (F64, "(f64)%F32"), (U32, "(u32)%U64"),
        (U32, "__builtin_bit_cast(u32, %I16x2)"), (F16, "(f16)tame_f32(%F32)"), (I32, "(%F32 < %F32)"), (I32, "(i32)%U64"),
    ]),
    theme("mixed_control", Control, &[U32, U64, F32, F64, F16], &[
        (U32, "bits_f32(%F32)"), (F32, "f32_of(%U32)"), (U64, "(u64)%U32 * %U32"), (F64, "(f64)%F32"),
    ]),
];
