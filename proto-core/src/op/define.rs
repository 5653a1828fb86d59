//! The macros that turn rows of the table into types, codecs, the visitor and [`OPS`](super::OPS). [`op`](super) explains
//! the rows.

/// Defines a packed struct and its codec.
macro_rules! layout {
    ($(#[$meta:meta])* $Ty:ident { $($field:ident: $t:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $Ty {
            $(
                #[doc = concat!("`", stringify!($t), "`")]
                pub $field: $t,
            )*
        }

        impl $crate::wire::Wire for $Ty {
            const SIZE: usize = 0 $(+ <$t as $crate::wire::Wire>::SIZE)*;
            const LAYOUT: $crate::wire::Layout = $crate::wire::Layout::Fields(&[
                $($crate::wire::Field {
                    name: $crate::op::info::field_name(stringify!($field)),
                    layout: <$t as $crate::wire::Wire>::LAYOUT,
                }),*
            ]);
            const ZERO: Self = Self { $($field: <$t as $crate::wire::Wire>::ZERO),* };

            #[inline]
            fn put(&self, out: &mut impl $crate::wire::Sink) {
                let mut _fields = $crate::wire::Packed::<{ <Self as $crate::wire::Wire>::SIZE }>::new();
                $($crate::wire::Wire::put(&self.$field, &mut _fields);)*
                $crate::wire::Sink::put_bytes(out, _fields.as_bytes());
            }

            // Who asks for one field decodes no other.
            #[inline(always)]
            fn take(input: &mut &[u8]) -> Result<Self, $crate::wire::WireError> {
                let mut _fields: &[u8] = $crate::wire::split(input, <Self as $crate::wire::Wire>::SIZE)?;
                Ok(Self { $($field: $crate::wire::Wire::take(&mut _fields)?),* })
            }
        }

        impl $crate::op::Handles for $Ty {
            // Where no field is a handle nothing is left of it.
            #[inline(always)]
            fn handles(&mut self, mut _each: impl FnMut($crate::op::Handle, &mut u64)) {
                $(
                    if let Some(kind) = const { $crate::op::Handle::of_field(stringify!($field)) }
                        && let Some(handle) = $crate::op::handle::FieldType::number(&mut self.$field)
                    {
                        _each(kind, handle);
                    }
                )*
            }
        }
    };
}

/// Defines a request: a struct with fields of its own, or a wrapper around another request's layout.
macro_rules! request {
    ([$($doc:literal)*] $Ty:ident {$($fields:tt)*}) => {
        $crate::op::define::layout! { $(#[doc = $doc])* $Ty { $($fields)* } }
    };
    ([$($doc:literal)*] $Ty:ident ($Layout:ident)) => {
        $(#[doc = $doc])*
        #[doc = ""]
        #[doc = concat!("Laid out as [`", stringify!($Layout), "`].")]
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $Ty(
            #[doc = "The layout."]
            pub $Layout,
        );

        impl $crate::wire::Wire for $Ty {
            const SIZE: usize = <$Layout as $crate::wire::Wire>::SIZE;
            const LAYOUT: $crate::wire::Layout = <$Layout as $crate::wire::Wire>::LAYOUT;
            const ZERO: Self = Self(<$Layout as $crate::wire::Wire>::ZERO);

            fn put(&self, out: &mut impl $crate::wire::Sink) {
                self.0.put(out);
            }

            fn take(input: &mut &[u8]) -> Result<Self, $crate::wire::WireError> {
                Ok(Self($crate::wire::Wire::take(input)?))
            }
        }

        impl $crate::op::Handles for $Ty {
            fn handles(&mut self, each: impl FnMut($crate::op::Handle, &mut u64)) {
                self.0.handles(each);
            }
        }
    };
}

/// Defines a reply's fixed part, unless the row names an existing type.
macro_rules! reply {
    ($NAME:ident $Rep:tt) => {};
    ($NAME:ident $Rep:ident {$($fields:tt)*}) => {
        $crate::op::define::layout! {
            #[doc = concat!("The reply to [`", stringify!($NAME), "`](Opcode::", stringify!($NAME), ").")]
            $Rep { $($fields)* }
        }
    };
}

/// Expands to the type that holds a request's fields (`type`), or to a request's fields (`of`).
macro_rules! fields {
    (type $Ty:ident {$($fields:tt)*}) => {
        $Ty
    };
    (type $Ty:ident ($Layout:ident)) => {
        $Layout
    };
    (of $this:ident {$($fields:tt)*}) => {
        $this
    };
    (of $this:ident ($Layout:ident)) => {
        &$this.0
    };
}

/// Expands to what a row's `static` mark says.
macro_rules! statics {
    () => {
        None
    };
    ([$($domain:ident),*]) => {
        Some($crate::op::StaticInfo {
            of_current_device: false,
            fields: &[$($crate::op::Domain::$domain),*],
        })
    };
    ((current) [$($domain:ident),*]) => {
        Some($crate::op::StaticInfo {
            of_current_device: true,
            fields: &[$($crate::op::Domain::$domain),*],
        })
    };
}

macro_rules! rule {
    (sync) => {
        $crate::op::ReplyRule::Sync
    };
    (forget) => {
        $crate::op::ReplyRule::Forget
    };
    (notify) => {
        $crate::op::ReplyRule::Notification
    };
    (when $text:literal) => {
        $crate::op::ReplyRule::When($text)
    };
}

macro_rules! wants_reply {
    (sync $layout:ty, $request:expr) => {
        true
    };
    (forget $layout:ty, $request:expr) => {
        false
    };
    (notify $layout:ty, $request:expr) => {
        false
    };
    (when $layout:ty, $request:expr, $condition:expr) => {{
        let condition: fn(&$layout) -> bool = $condition;
        condition($request)
    }};
}

macro_rules! tail_len {
    ($layout:ty, $request:expr) => {
        $crate::op::TailLen::Exact(0)
    };
    ($layout:ty, $request:expr, $len:expr) => {{
        let len: fn(&$layout) -> $crate::op::TailLen = $len;
        len($request)
    }};
}

macro_rules! part {
    ($Ty:ty) => {
        $crate::op::define::part!($Ty, None, "")
    };
    ($Ty:ty, $kind:ident, $text:literal) => {
        $crate::op::Part {
            size: <$Ty as $crate::wire::Wire>::SIZE,
            fields: match <$Ty as $crate::wire::Wire>::LAYOUT {
                $crate::wire::Layout::Fields(fields) => fields,
                _ => panic!("a request or reply has fields"),
            },
            tail: $crate::op::Tail::$kind,
            tail_layout: $text,
        }
    };
}

macro_rules! operations {
    ($(
        $(#[doc = $doc:literal])+
        $code:literal $NAME:ident $method:ident $hip:literal $source:ident $(($except:literal))?
            $rule:ident $(($rule_text:literal, $condition:expr))? $class:ident
            $(static $(($of:ident))? [$($domain:ident),*])?:
            $Ty:ident $body:tt $(+ $tail:ident($tail_text:literal, $tail_len:expr))?
            => $Rep:tt $({$($rep_fields:tt)*})? $(+ $rep_tail:ident($rep_tail_text:literal, $rep_tail_len:expr))?;
    )*) => {
        /// The code of an operation. Peers may send codes that the table does not have.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct Opcode(pub u16);

        impl Opcode {
            $(
                $(#[doc = $doc])+
                pub const $NAME: Self = Self($code);
            )*
        }

        $(
            define::request! { [$($doc)+] $Ty $body }
            define::reply! { $NAME $Rep $({$($rep_fields)*})? }

            impl Op for $Ty {
                const OPCODE: Opcode = Opcode::$NAME;
                const STATICS: Option<StaticInfo> = define::statics!($($(($of))? [$($domain),*])?);
                type Reply = $Rep;

                fn wants_reply(&self) -> bool {
                    define::wants_reply!($rule define::fields!(type $Ty $body), define::fields!(of self $body) $(, $condition)?)
                }

                fn tail_len(&self) -> TailLen {
                    define::tail_len!(define::fields!(type $Ty $body), define::fields!(of self $body) $(, $tail_len)?)
                }

                fn reply_tail_len(&self) -> TailLen {
                    define::tail_len!(define::fields!(type $Ty $body), define::fields!(of self $body) $(, $rep_tail_len)?)
                }
            }
        )*

        /// Executes requests: one method per operation. A new row in the table does not compile until every implementation
        /// has its method.
        ///
        /// `tail` is what was collected of the bytes after the fixed part; empty where they are streamed.
        pub trait Visit {
            /// The methods' return type.
            type Out;

            $(
                $(#[doc = $doc])+
                fn $method(&mut self, request: define::fields!(type $Ty $body), tail: &[u8]) -> Self::Out;
            )*

            /// Handles an operation that is not in the table.
            fn unknown(&mut self, op: Opcode) -> Self::Out;
        }

        /// Decodes a request's fixed part and calls the operation's method of `visitor`.
        ///
        /// # Errors
        /// [`WireError::Short`](crate::WireError::Short) when `fixed` is not whole.
        pub fn visit<V: Visit + ?Sized>(
            op: Opcode,
            mut fixed: &[u8],
            tail: &[u8],
            visitor: &mut V,
        ) -> Result<V::Out, crate::wire::WireError> {
            Ok(match op.0 {
                $($code => visitor.$method(crate::wire::Wire::take(&mut fixed)?, tail),)*
                _ => visitor.unknown(op),
            })
        }

        /// Calls `task` with the request type of `op`; returns `None` if the operation is not in the table.
        pub fn with_op<T: ForOp>(op: Opcode, task: T) -> Option<T::Out> {
            Some(match op.0 {
                $($code => task.call::<$Ty>(),)*
                _ => return None,
            })
        }

        pub(crate) const TABLE: &[Info] = &[$(
            Info {
                code: Opcode::$NAME,
                name: stringify!($NAME),
                doc: concat!($($doc),+),
                hip_function: $hip,
                source: $crate::op::Source::$source$(($except))?,
                reply_rule: define::rule!($rule $($rule_text)?),
                class: Class::$class,
                statics: <$Ty as Op>::STATICS,
                request: define::part!($Ty $(, $tail, $tail_text)?),
                reply: define::part!($Rep $(, $rep_tail, $rep_tail_text)?),
                tail_len: |fixed| {
                    let mut _fixed = fixed;
                    Ok(define::request_tail_len!(_fixed, $Ty $(, $tail)?))
                },
            }
        ),*];

        #[cfg(test)]
        impl Visit for tests::Names {
            type Out = (&'static str, Vec<u8>);

            $(
                fn $method(&mut self, request: define::fields!(type $Ty $body), tail: &[u8]) -> Self::Out {
                    (stringify!($NAME), [tests::bytes_of(&request).as_slice(), tail].concat())
                }
            )*

            fn unknown(&mut self, _: Opcode) -> Self::Out {
                ("unknown", Vec::new())
            }
        }
    };
}

/// Returns the length of a request's tail; decodes the fixed part only if the operation has a tail.
macro_rules! request_tail_len {
    ($fixed:ident, $Ty:ty) => {
        $crate::op::TailLen::Exact(0)
    };
    ($fixed:ident, $Ty:ty, $tail:ident) => {
        $crate::op::Op::tail_len(&<$Ty as $crate::wire::Wire>::take(&mut $fixed)?)
    };
}

pub(super) use {
    fields, layout, operations, part, reply, request, request_tail_len, rule, statics, tail_len, wants_reply,
};
