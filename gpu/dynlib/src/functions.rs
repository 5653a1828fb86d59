//! Tables of the functions of C libraries.

use crate::Type;

/// Whether a library can be used without a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// The library cannot be used without it.
    Required,
    /// Without it the library lacks one capability.
    Optional,
}

/// A row of a table: a C function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Name of the C function.
    pub name: &'static str,
    /// Another name under which some releases export it.
    pub alias: Option<&'static str>,
    /// Whether the library has to export it.
    pub need: Need,
    /// Names and types of the parameters.
    pub parameters: &'static [(&'static str, Type)],
    /// Type of the result.
    pub result: Type,
}

/// Declares a library: a struct with one function pointer per row.
///
/// ```text
/// functions! {
///     /// What the library is.
///     pub struct Math, names NAMES, absent UNSUPPORTED;
///     required add(left: c_int, right: c_int) -> c_int;
///     optional divide(left: c_int, right: c_int) -> c_int as "_Z6divideii";
/// }
/// ```
///
/// gives `Math::load()` (looks for `NAMES`), `Math::load_from(path)`, the fields `math.add: unsafe extern "C" fn(…) -> …` and
/// `math.divide: Option<unsafe extern "C" fn(…) -> …>`, and methods of the same names that call them, where an absent function
/// returns `UNSUPPORTED`. `as` gives the symbol under which some releases export it.
#[macro_export]
macro_rules! functions {
    (
        $(#[$doc:meta])*
        pub struct $Library:ident, names $names:expr, absent $absent:expr;
        $($need:ident $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $(as $alias:literal)?;)+
    ) => {
        $(#[$doc])*
        #[allow(non_snake_case, reason = "the names are those of the C headers")]
        pub struct $Library {
            path: ::std::path::PathBuf,
            $(
                #[doc = concat!("The function `", stringify!($name), "`.")]
                pub $name: $crate::__row!($need field unsafe extern "C" fn($($arg: $ty),*) -> $ret),
            )+
        }

        #[allow(non_snake_case, reason = "the names are those of the C headers")]
        impl $Library {
            /// The rows of the table.
            pub const FUNCTIONS: &'static [$crate::Function] = &[$($crate::Function {
                name: stringify!($name),
                alias: $crate::__row!(alias $($alias)?),
                need: $crate::__row!($need need),
                parameters: &[$((stringify!($arg), <$ty as $crate::CType>::TYPE)),*],
                result: <$ret as $crate::CType>::TYPE,
            }),+];

            /// Opens the library where the dynamic loader finds it, else in the folders where releases install it.
            ///
            /// # Errors
            /// There is none, or it lacks required functions; either says what was looked for and where.
            pub fn load() -> Result<Self, $crate::LoadError> {
                Self::bind($names.open()?)
            }

            /// Opens the library at `path`; the dynamic loader searches for a name without a slash.
            ///
            /// # Errors
            /// It cannot be opened, or lacks required functions.
            pub fn load_from(path: &::std::path::Path) -> Result<Self, $crate::LoadError> {
                Self::bind($crate::open($names.what, [path.to_owned()])?)
            }

            fn bind(library: $crate::Library) -> Result<Self, $crate::LoadError> {
                $(
                    // SAFETY: the row states the C prototype of the function.
                    let $name: Option<unsafe extern "C" fn($($arg: $ty),*) -> $ret> =
                        unsafe { library.function(&[stringify!($name) $(, $alias)?]) };
                )+
                let missing = || $crate::LoadError::MissingFunctions {
                    what: $names.what,
                    path: library.path().to_owned(),
                    functions: [$(($name.is_none(), $crate::__row!($need need), stringify!($name))),+]
                        .into_iter()
                        .filter(|&(absent, need, _)| absent && need == $crate::Need::Required)
                        .map(|(_, _, name)| name)
                        .collect(),
                };
                Ok(Self { path: library.path().to_owned(), $($name: $crate::__row!($need take $name missing),)+ })
            }

            /// Returns the path under which the library was opened.
            pub fn path(&self) -> &::std::path::Path {
                &self.path
            }

            /// Iterates over the names of optional functions that this library lacks.
            pub fn absent(&self) -> impl Iterator<Item = &'static str> + use<> {
                [$(($crate::__row!($need absent self.$name), stringify!($name))),+]
                    .into_iter()
                    .filter(|&(absent, _)| absent)
                    .map(|(_, name)| name)
            }

            $(
                #[doc = concat!("Calls `", stringify!($name), "`.")]
                ///
                /// # Safety
                /// The arguments are what the documentation of the C function asks for.
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "as many as the C function has")]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> $ret {
                    // SAFETY: the caller's promise.
                    unsafe { $crate::__row!($need call (self.$name) ($($arg),*) $absent) }
                }
            )+
        }
    };
}

/// Expands the parts of a row of [`functions!`](crate::functions!) that differ between required and optional functions.
#[doc(hidden)]
#[macro_export]
macro_rules! __row {
    (required field $ty:ty) => { $ty };
    (optional field $ty:ty) => { Option<$ty> };
    (required need) => { $crate::Need::Required };
    (optional need) => { $crate::Need::Optional };
    (required take $function:ident $missing:ident) => {
        match $function {
            Some(function) => function,
            None => return Err($missing()),
        }
    };
    (optional take $function:ident $missing:ident) => { $function };
    (required absent $function:expr) => { false };
    (optional absent $function:expr) => { $function.is_none() };
    (required call $function:tt $args:tt $absent:expr) => { $function $args };
    (optional call $function:tt $args:tt $absent:expr) => {
        match $function {
            Some(function) => function $args,
            None => $absent,
        }
    };
    (alias) => { None };
    (alias $alias:literal) => { Some($alias) };
}
