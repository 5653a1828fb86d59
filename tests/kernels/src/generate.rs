//! Generates kernels from themes and seeds.

use std::fmt::Write;

use crate::Random;
use crate::themes::Form::*;
use crate::themes::Type::{self, *};
use crate::themes::{EXPRESSIONS, THEMES, TYPES, Theme};

/// Depth of expressions.
const DEPTH: usize = 3;

/// The kernels of one seed, one for each theme.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Each kernel's theme, as an index into [`THEMES`], and its seed.
    pub kernels: Vec<(usize, u64)>,
}

impl Unit {
    /// Generates a kernel of every theme.
    pub fn of_seed(seed: u64) -> Self {
        Self { kernels: (0..THEMES.len()).map(|theme| (theme, seed)).collect() }
    }

    /// Returns the names of the kernels.
    pub fn names(&self) -> Vec<String> {
        self.kernels.iter().map(|&(theme, seed)| format!("{}_{seed}", THEMES[theme].name)).collect()
    }

    /// Returns the C source: kernels if `DEVICE` is defined, else a program for the host.
    pub fn source(&self) -> String {
        let mut text = String::from(include_str!("prelude.h"));
        for (&(theme, seed), name) in self.kernels.iter().zip(self.names()) {
            text += &Writer::new(&THEMES[theme], seed, name).kernel();
        }
        let _ = writeln!(text, "#ifndef DEVICE\n{}", include_str!("host.h"));
        let _ = writeln!(text, "static const struct kernel kernels[] = {{");
        for name in self.names() {
            let _ = writeln!(text, "    {{{name}_phases}},");
        }
        let _ = writeln!(text, "}};\nint main(int argc, char **argv) {{");
        let _ = writeln!(text, "    if (argc != 3) return 2;");
        let count = self.kernels.len();
        let _ = writeln!(
            text,
            "    return run(kernels, {count}, (u32)atoi(argv[1]), (u32)atoi(argv[2]));\n}}\n#endif"
        );
        text
    }
}

/// Writes one kernel.
struct Writer {
    theme: &'static Theme,
    random: Random,
    name: String,
    text: String,
    phases: usize,
}

impl Writer {
    fn new(theme: &'static Theme, seed: u64, name: String) -> Self {
        let salt =
            theme.name.bytes().fold(0u64, |salt, byte| salt.wrapping_mul(31).wrapping_add(byte.into()));
        Self { theme, random: Random::new(seed ^ salt << 20), name, text: String::new(), phases: 0 }
    }

    /// Generates an expression of type `ty` with `depth` levels of operations.
    fn expression(&mut self, ty: Type, depth: usize) -> String {
        let in_theme = self.theme.types.contains(&ty);
        if depth == 0 || !in_theme {
            return self.leaf(ty);
        }
        let own = EXPRESSIONS.iter().find(|row| row.0 == ty).map_or(&[][..], |row| row.1);
        let extra: Vec<&str> = self.theme.extra.iter().filter(|row| row.0 == ty).map(|row| row.1).collect();
        // What makes the theme comes as often as everything else.
        let template = if !extra.is_empty() && self.random.below(2) == 0 {
            *self.random.pick(&extra)
        } else {
            *self.random.pick(own)
        };
        self.fill(template, depth)
    }

    fn fill(&mut self, template: &str, depth: usize) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('%') {
            out += before;
            let name_len = after.bytes().take_while(u8::is_ascii_alphanumeric).count();
            let (name, tail) = after.split_at(name_len);
            match TYPES.iter().find(|row| row.1.eq_ignore_ascii_case(name)) {
                Some(&(ty, ..)) => {
                    // Some operands are leaves early, so that shapes differ.
                    let depth = if self.random.below(4) == 0 { 0 } else { depth - 1 };
                    out += &self.expression(ty, depth);
                }
                // C's remainder.
                None => {
                    out.push('%');
                    out += name;
                }
            }
            rest = tail;
        }
        out + rest
    }

    /// Returns a declared variable of type `ty`, or a new input.
    fn leaf(&mut self, ty: Type) -> String {
        let (_, name, read, _) = ty.row();
        if self.theme.types.contains(&ty) {
            return format!("{name}_{}", self.random.below(3));
        }
        let word = self.random.below(8);
        format!(
            "({name}){}",
            read.replace('@', &word.to_string()).replace('#', &((word + 1) % 8).to_string())
        )
    }

    /// Declares three variables of each type.
    fn declarations(&mut self) {
        for ty in self.theme.types {
            let (_, name, read, _) = ty.row();
            for index in 0..3 {
                let word = self.random.below(8);
                let other = (word + 1 + self.random.below(7)) % 8;
                let read = read.replace('@', &word.to_string()).replace('#', &other.to_string());
                let _ = writeln!(self.text, "    {name} {name}_{index} = {read};");
            }
        }
    }

    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "    {}", line.as_ref());
    }

    /// Generates an assignment to a variable of one of the theme's types.
    fn assignment(&mut self, depth: usize) -> String {
        let ty = *self.random.pick(self.theme.types);
        let index = self.random.below(3);
        let value = self.expression(ty, depth);
        format!("{}_{index} = {value};", ty.name())
    }

    /// Generates a condition on integers or floats of the theme.
    fn condition(&mut self) -> String {
        let scalars: Vec<Type> =
            self.theme.types.iter().copied().filter(|ty| !ty.name().contains('x')).collect();
        let ty = *self.random.pick(&scalars);
        let operator = *self.random.pick(&["<", ">", "==", "!=", "<=", ">="]);
        format!("{} {operator} {}", self.expression(ty, 1), self.expression(ty, 1))
    }

    /// Stores results of the theme's types.
    fn results(&mut self) {
        for index in 0..4 {
            let ty = self.theme.types[index % self.theme.types.len()];
            let value = self.expression(ty, if self.theme.form == Straight { DEPTH } else { 1 });
            let line = format!("{{ {} value = {value}; PUT({index}, {}); }}", ty.name(), ty.word("value"));
            self.line(line);
        }
    }

    fn begin_phase(&mut self) {
        let _ = writeln!(self.text, "PHASE {}_{}(LANE) {{", self.name, self.phases);
        self.phases += 1;
    }

    fn end_phase(&mut self) {
        self.text += "}\n";
    }

    fn kernel(mut self) -> String {
        match self.theme.form {
            Straight => {
                self.begin_phase();
                self.declarations();
                for _ in 0..2 {
                    let line = self.assignment(2);
                    self.line(line);
                }
                self.results();
                self.end_phase();
            }
            Control => self.control(),
            Stack => self.stack(),
            Calls => self.calls(),
            Exchange => self.exchange(),
            Reduction => self.reduction(),
            LocalAtomics => self.local_atomics(),
            GlobalAtomics => self.global_atomics(),
            Widths => self.widths(),
        }
        let (name, phases) = (&self.name, self.phases);
        let calls: Vec<String> =
            (0..phases).map(|phase| format!("{name}_{phase}(l, g, in, out, shared, lds);")).collect();
        let functions: Vec<String> = (0..phases).map(|phase| format!("{name}_{phase}, ")).collect();
        let _ = writeln!(self.text, "#ifdef DEVICE\nKERNEL({name}, {})", calls.join(" BARRIER(); "));
        let _ = writeln!(
            self.text,
            "#else\nstatic void (*const {name}_phases[])(LANE) = {{{}0}};\n#endif",
            functions.concat()
        );
        self.text
    }

    /// Generates a block of statements, some of which contain others.
    fn block(&mut self, depth: usize, indent: usize) {
        let pad = " ".repeat(indent);
        for _ in 0..2 {
            let line = self.assignment(1);
            let _ = writeln!(self.text, "{pad}{line}");
        }
        if depth == 0 {
            return;
        }
        let (counter, bound) = (format!("n{depth}"), 3 + self.random.below(6));
        match self.random.below(4) {
            0 => {
                let condition = self.condition();
                let _ = writeln!(self.text, "{pad}if ({condition}) {{");
                self.block(depth - 1, indent + 4);
                let _ = writeln!(self.text, "{pad}}} else {{");
                self.block(depth - 1, indent + 4);
                let _ = writeln!(self.text, "{pad}}}");
            }
            1 => {
                // As often as the lane's data say.
                let word = self.random.below(8);
                let _ = writeln!(
                    self.text,
                    "{pad}for (u32 {counter} = 0; {counter} < (W({word}) & 7) + 1; {counter}++) {{"
                );
                self.block(depth - 1, indent + 4);
                let condition = self.condition();
                let exit = *self.random.pick(&["break", "continue"]);
                let _ = writeln!(self.text, "{pad}    if ({condition}) {exit};");
                let line = self.assignment(1);
                let _ = writeln!(self.text, "{pad}    {line}\n{pad}}}");
            }
            2 => {
                let _ = writeln!(self.text, "{pad}u32 {counter} = {bound};\n{pad}while ({counter}) {{");
                self.block(depth - 1, indent + 4);
                let condition = self.condition();
                let _ = writeln!(
                    self.text,
                    "{pad}    {counter} = {condition} ? {counter} - 1 : {counter} / 2;\n{pad}}}"
                );
            }
            _ => {
                let word = self.random.below(8);
                let _ = writeln!(self.text, "{pad}switch (W({word}) % 5) {{");
                for case in 0..4 {
                    let _ = writeln!(self.text, "{pad}case {case}: {{");
                    self.block(depth - 1, indent + 8);
                    // Some cases fall through.
                    let end = *self.random.pick(&["break;", "break;", ""]);
                    let _ = writeln!(self.text, "{pad}    }} {end}");
                }
                let line = self.assignment(1);
                let _ = writeln!(self.text, "{pad}default: {line}\n{pad}}}");
            }
        }
    }

    fn control(&mut self) {
        self.begin_phase();
        self.declarations();
        self.block(2, 4);
        self.block(1, 4);
        self.results();
        self.end_phase();
    }

    fn stack(&mut self) {
        let ty = *self.random.pick(self.theme.types);
        let name = ty.name();
        self.begin_phase();
        self.declarations();
        self.line(format!("{name} array[16];"));
        self.line(format!("for (u32 n = 0; n < 16; n++) array[n] = {name}_0 + ({name})(n * 3);"));
        for round in 0..4 {
            let word = self.random.below(8);
            let value = self.expression(ty, 2);
            self.line(format!("array[(W({word}) >> {}) & 15] = {value};", round * 4));
            let line = format!("{name}_{} = array[(W({}) + {round}) & 15];", round % 3, self.random.below(8));
            self.line(line);
        }
        self.line(format!("{name} sum = 0;"));
        self.line(format!("for (u32 n = 0; n < 16; n++) sum = (sum + array[n]) * ({name})3;"));
        let word = ty.word("sum");
        self.results();
        self.line(format!("PUT(0, {word});"));
        self.end_phase();
    }

    fn calls(&mut self) {
        let types = self.theme.types;
        for (index, ty) in types.iter().enumerate() {
            let (name, own) = (ty.name(), self.name.clone());
            let parameters: Vec<String> = (0..3).map(|n| format!("{name} {name}_{n}")).collect();
            let _ = writeln!(self.text, "HELPER {name} {own}_helper{index}({}) {{", parameters.join(", "));
            // Of this type alone: there are no other variables.
            let theme = self.theme;
            let alone: &'static [Type] = std::slice::from_ref(ty);
            self.theme = Box::leak(Box::new(Theme { types: alone, ..*theme }));
            let value = self.expression(*ty, 2);
            let other = self.expression(*ty, 2);
            self.theme = theme;
            let _ = writeln!(self.text, "    {name}_0 = {value};\n    return {other};\n}}");
        }
        let own = self.name.clone();
        let _ = writeln!(self.text, "HELPER u32 {own}_deep(u32 n, u32 x) {{");
        let _ = writeln!(self.text, "    return n == 0 ? x : {own}_deep(n - 1, x * 5u + n) ^ x;\n}}");
        self.begin_phase();
        self.declarations();
        for round in 0..4 {
            let index = self.random.below(types.len());
            let name = types[index].name();
            let arguments: Vec<String> = (0..3).map(|_| self.expression(types[index], 1)).collect();
            self.line(format!("{name}_{} = {own}_helper{index}({});", round % 3, arguments.join(", ")));
        }
        let condition = self.condition();
        self.line(format!("if ({condition}) u32_1 ^= {own}_deep(W(2) & 7, u32_0);"));
        self.results();
        self.end_phase();
    }

    fn exchange(&mut self) {
        let ty = U32;
        self.begin_phase();
        self.declarations();
        let value = self.expression(ty, 2);
        self.line(format!("lds[l] = {value};"));
        let value = self.expression(ty, 2);
        let line = format!("lds[128 + (l ^ {}u)] = {value};", self.random.below(128));
        self.line(line);
        self.line("lds[256 + l * 2] = u32_0; lds[257 + l * 2] = u32_1;");
        self.end_phase();
        self.begin_phase();
        self.declarations();
        let (turn, step) = (self.random.below(127) + 1, self.random.below(63) * 2 + 1);
        self.line(format!("u32_0 = lds[(l + {turn}u) & 127];"));
        self.line(format!("u32_1 = lds[128 + ((l * {step}u) & 127)];"));
        self.line("u32_2 = lds[256 + (W(1) & 255)];");
        self.results();
        self.end_phase();
        self.begin_phase();
        self.line("lds[l * 4] = l * g; lds[l * 4 + 1] = W(5); lds[l * 4 + 2] = W(6); lds[l * 4 + 3] = g;");
        self.end_phase();
        self.begin_phase();
        self.declarations();
        self.line("u32x4 four = *(LOCAL u32x4 *)&lds[(l ^ 33u) * 4];");
        self.line("PUT(3, four.x ^ four.y * 3u ^ four.z ^ lds[l * 4 + 3]);");
        self.end_phase();
    }

    fn reduction(&mut self) {
        let ty = *self.random.pick(self.theme.types);
        let name = ty.name();
        self.begin_phase();
        self.declarations();
        let value = self.expression(ty, 2);
        self.line(format!("{name} value = {value};"));
        self.line("lds[l] = __builtin_bit_cast(u32, value);");
        self.end_phase();
        let combine = match ty {
            F32 => "a * 0.75f + b",
            _ => *self.random.pick(&["a + b", "a ^ b", "a > b ? a : b", "a * 3 + b"]),
        };
        for step in [64, 32, 16, 8, 4, 2, 1] {
            self.begin_phase();
            self.line(format!("if (l < {step}) {{"));
            self.line(format!("    {name} a = __builtin_bit_cast({name}, lds[l]), b = __builtin_bit_cast({name}, lds[l + {step}]);"));
            let value = if ty == I32 {
                "(i32)((u32)a * 5u + (u32)b) ^ (a < b)".to_string()
            } else {
                combine.to_string()
            };
            self.line(format!("    {name} c = {value};"));
            self.line("    lds[l] = __builtin_bit_cast(u32, c);\n    }");
            self.end_phase();
        }
        self.begin_phase();
        self.line(format!("PUT(0, {});", ty.word(&format!("__builtin_bit_cast({name}, lds[0])"))));
        self.line(format!("PUT(1, {});", ty.word(&format!("__builtin_bit_cast({name}, lds[l])"))));
        self.end_phase();
    }

    fn atomic(&mut self, pointer: &str, of_64_bits: bool) -> String {
        let (value, order) = (if of_64_bits { "u64_0 >> 20" } else { "u32_1 >> 9" }, "__ATOMIC_RELAXED");
        let signed = if of_64_bits { "i64" } else { "i32" };
        match self.random.below(7) {
            0 => format!("__atomic_fetch_add({pointer}, {value}, {order});"),
            1 => format!("__atomic_fetch_or({pointer}, {value}, {order});"),
            2 => format!("__atomic_fetch_and({pointer}, ~(({value}) & 0x5555), {order});"),
            3 => format!("__atomic_fetch_xor({pointer}, {value}, {order});"),
            4 => format!("__atomic_fetch_max({pointer}, {value}, {order});"),
            5 => format!("__atomic_fetch_sub({pointer}, {value}, {order});"),
            _ => {
                let memory = if pointer.contains("lds") { "LOCAL" } else { "GLOBAL" };
                format!(
                    "__atomic_fetch_min(({memory} {signed} *){pointer}, ({signed})({value}) - 1000, {order});"
                )
            }
        }
    }

    fn local_atomics(&mut self) {
        self.begin_phase();
        self.line("if (l < 64) lds[l] = l * 0x01010101u;");
        self.end_phase();
        self.begin_phase();
        self.declarations();
        // One kind of operation for each place, as different ones do not commute.
        for place in 0..4 {
            let operation = self.atomic(&format!("&lds[{} + (W({place}) & 15)]", place * 16), false);
            let condition = self.condition();
            self.line(format!("if ({condition}) {{ {operation} }}"));
        }
        self.end_phase();
        self.begin_phase();
        self.declarations();
        self.results();
        self.line("PUT(0, lds[l & 63]);");
        self.end_phase();
    }

    fn global_atomics(&mut self) {
        self.begin_phase();
        self.declarations();
        for place in 0..4 {
            let operation = self.atomic(&format!("&shared[{} + (W({place}) & 7)]", place * 8), false);
            let condition = self.condition();
            self.line(format!("if ({condition}) {{ {operation} }}"));
        }
        for place in 0..2 {
            let pointer = format!("&((GLOBAL u64 *)shared)[{} + (W({place}) & 7)]", 16 + place * 8);
            let operation = self.atomic(&pointer, true);
            self.line(operation);
        }
        self.results();
        self.end_phase();
    }

    fn widths(&mut self) {
        self.begin_phase();
        self.declarations();
        self.line("GLOBAL u8 *bytes = (GLOBAL u8 *)&out[(g * GROUP + l) * OUT_WORDS];");
        self.line("GLOBAL const u8 *from = (GLOBAL const u8 *)&in[(g * GROUP + l) * IN_WORDS];");
        self.line("LOCAL u8 *mine = (LOCAL u8 *)&lds[l * 4];");
        for index in 0..3 {
            let place = self.random.below(29);
            self.line(format!("u8_{index} = from[{place}]; i8_{index} = (i8)from[{}];", 31 - place));
        }
        let line = format!("i16_0 = *(GLOBAL const i16 *)(from + {});", self.random.below(15) * 2);
        self.line(line);
        let line = format!("u16_1 = *(GLOBAL const u16 *)(from + {});", self.random.below(15) * 2);
        self.line(line);
        let halves = [self.expression(U16, 2), self.expression(I16, 2)];
        let place = self.random.below(8);
        let value = *self.random.pick(&["u8_0", "u8_1", "(u8)i8_2"]);
        let line = format!("mine[{place}] = {value};");
        self.line(line);
        self.line(format!("mine[8] = (u8)i8_1; *(LOCAL u16 *)(mine + 10) = {};", halves[0]));
        self.line("u8_2 = mine[8]; i16_2 = *(LOCAL i16 *)(mine + 10);");
        let line = format!(
            "*(GLOBAL u16 *)bytes = {}; *(GLOBAL i16 *)(bytes + 2) = {};",
            self.expression(U16, 1),
            halves[1]
        );
        self.line(line);
        for place in 4..8 {
            let value = self.expression([U8, U16, U32][place % 3], 2);
            self.line(format!("bytes[{place}] = (u8)({value});"));
        }
        let value = self.expression(U32, 2);
        let line = format!("PUT(2, {value}); bytes[{}] = 7;", 12 + self.random.below(4));
        self.line(line);
        self.end_phase();
    }
}
