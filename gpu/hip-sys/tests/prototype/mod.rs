//! Parsing of C types as the headers write them.

use std::collections::BTreeMap;

use hipr_dynlib::Type;

/// The C types that type names stand for, from `data/typedefs.tsv`.
pub(crate) struct Typedefs(BTreeMap<&'static str, &'static str>);

/// A type that a header declares.
#[derive(Debug)]
pub(crate) enum Declared {
    /// A number of exactly this size; an enumeration is an `int` whose sign does not matter.
    Number {
        bits: u32,
        signed: Option<bool>,
    },
    Float {
        bits: u32,
    },
    Void,
    Struct(&'static str),
    Opaque(&'static str),
    Pointer {
        constant: bool,
        to: Box<Declared>,
    },
    Callback {
        parameters: usize,
    },
    Unknown(String),
}

impl Typedefs {
    pub(crate) fn read() -> Self {
        Self(
            include_str!("../data/typedefs.tsv")
                .lines()
                .skip(1)
                .filter_map(|line| line.split_once('\t'))
                .collect(),
        )
    }

    /// Returns the type of a parameter, such as `const char * name`.
    pub(crate) fn parameter(&self, text: &'static str) -> Declared {
        let name = text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        self.parse(&text[..name])
    }

    /// Parses a type, such as `const hipGraphNode_t *` or `void (*)(void *)`.
    pub(crate) fn parse(&self, text: &str) -> Declared {
        let text = text.trim();
        if let Some((_, parameters)) = text.split_once("(*)(") {
            return Declared::Callback { parameters: parameters.split(',').count() };
        }
        if let Some(to) = text.strip_suffix('*') {
            let to = to.trim();
            // `const` binds to the innermost type, unless it stands right before the star.
            let constant =
                to.strip_suffix("const").or_else(|| to.strip_prefix("const ").filter(|to| !to.contains('*')));
            return Declared::Pointer {
                constant: constant.is_some(),
                to: Box::new(self.parse(constant.unwrap_or(to))),
            };
        }
        let text = text.strip_prefix("const ").unwrap_or(text);
        let number = |bits, signed| Declared::Number { bits, signed: Some(signed) };
        match text {
            "void" => Declared::Void,
            "char" => number(8, true),
            "unsigned char" => number(8, false),
            "unsigned short" => number(16, false),
            "int" => number(32, true),
            "unsigned int" | "uint32_t" => number(32, false),
            "size_t" | "uint64_t" | "unsigned long long" => number(64, false),
            "float" => Declared::Float { bits: 32 },
            _ if text.starts_with("enum ") => Declared::Number { bits: 32, signed: None },
            _ => self.named(text.strip_prefix("struct ").unwrap_or(text)),
        }
    }

    fn named(&self, name: &str) -> Declared {
        let Some((&name, &stands_for)) = self.0.get_key_value(name) else {
            return Declared::Unknown(name.into());
        };
        match stands_for.strip_prefix("struct ") {
            Some(of) => match of.strip_suffix('*') {
                Some(of) => Declared::Pointer { constant: false, to: Box::new(Declared::Opaque(of.trim())) },
                None => Declared::Struct(name),
            },
            None => self.parse(stands_for),
        }
    }
}

impl Declared {
    /// Returns whether a Rust type that is `ty` in C agrees with this type in size, kind and what it points to.
    pub(crate) fn fits(&self, ty: Type) -> bool {
        match (self, ty) {
            (&Self::Number { bits, signed }, Type::Integer { bits: b, signed: s }) => {
                bits == b && signed.is_none_or(|signed| signed == s)
            }
            (&Self::Float { bits }, Type::Float { bits: b }) => bits == b,
            (Self::Void, Type::Void) => true,
            (&Self::Struct(name), Type::Struct(n)) | (&Self::Opaque(name), Type::Opaque(n)) => name == n,
            (Self::Pointer { constant, to }, Type::Pointer { constant: c, to: t }) => {
                *constant == c && to.fits(*t)
            }
            (&Self::Callback { parameters }, Type::Callback { parameters: p }) => parameters == p,
            _ => false,
        }
    }
}
