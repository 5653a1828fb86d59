//! Requests of any operation, built from its row in the table alone, with the field that determines the length of the tail.

use std::sync::LazyLock;

use hipr_proto::op::{ForOp, with_op};
use hipr_proto::{Info, Layout, OPS, Op, TailLen};

use crate::choices::noise;

/// One form of an operation's request: copies have a form with bytes in the request and one with bytes in the reply.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) info: &'static Info,
    /// The fixed part of a request without a tail; fields that do not concern tails are noise.
    fixed: Vec<u8>,
    /// The field that determines the length.
    knob: Option<Knob>,
}

#[derive(Debug, Clone, Copy)]
struct Knob {
    offset: usize,
    size: usize,
}

/// The lengths of both tails that a fixed part determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tails {
    pub(crate) request: TailLen,
    pub(crate) reply: TailLen,
}

struct TailsOf<'a>(&'a [u8]);

impl ForOp for TailsOf<'_> {
    type Out = Option<Tails>;

    fn call<O: Op>(self) -> Self::Out {
        let request = O::take(&mut &*self.0).ok()?;
        Some(Tails { request: request.tail_len(), reply: request.reply_tail_len() })
    }
}

/// The forms of each operation, in the order of the table; at least one each.
pub(crate) static SHAPES: LazyLock<Vec<Vec<Shape>>> = LazyLock::new(|| {
    let forms = |info: &'static Info| {
        let has_kind = info.request.fields.iter().any(|field| field.name == "kind");
        let kinds: &[u8] = if has_kind { &[1, 2] } else { &[0] };
        kinds.iter().map(|kind| Shape::of(info, *kind)).collect()
    };
    OPS.iter().map(forms).collect()
});

impl Shape {
    fn of(info: &'static Info, kind: u8) -> Self {
        let mut shape = Self { info, fixed: vec![0; info.request.size], knob: None };
        let fields = fields(info);
        for (name, knob) in &fields {
            match *name {
                "kind" => shape.put(*knob, u64::from(kind)),
                // Of a product all factors but one are 1.
                "height" | "depth" => shape.put(*knob, 1),
                _ => {}
            }
        }
        let still = shape.tails();
        let turned = |shape: &mut Self, knob: Knob, value| {
            let before = shape.fixed.clone();
            shape.put(knob, value);
            let tails = shape.tails();
            shape.fixed = before;
            tails
        };
        shape.knob = fields
            .iter()
            .filter(|(name, knob)| !matches!(*name, "kind" | "height" | "depth") && knob.size <= 8)
            .map(|(_, knob)| *knob)
            .find(|knob| turned(&mut shape, *knob, 1) != still);
        // With the knob turned, everything that still changes nothing is free to be noise.
        let probe = shape.knob.map_or(0, |_| 3);
        shape.turn(probe);
        let reference = shape.tails();
        let mut filled = shape.fixed.clone();
        let noise = noise(info.request.size);
        for (name, field) in fields {
            let range = field.offset..field.offset + field.size;
            let is_knob = shape.knob.is_some_and(|knob| knob.offset == field.offset);
            let counts = field.size <= 8 && turned(&mut shape, field, 1) != reference;
            if is_knob || counts || matches!(name, "kind" | "height" | "depth") {
                continue;
            }
            if let (Some(to), Some(from)) = (filled.get_mut(range.clone()), noise.get(range)) {
                to.copy_from_slice(from);
            }
        }
        shape.fixed = filled;
        shape.turn(0);
        shape
    }

    fn put(&mut self, knob: Knob, value: u64) {
        if let Some(bytes) = self.fixed.get_mut(knob.offset..knob.offset + knob.size) {
            let value = value.to_le_bytes();
            let len = bytes.len().min(value.len());
            bytes.fill(0);
            bytes.iter_mut().zip(value.iter().take(len)).for_each(|(to, from)| *to = *from);
        }
    }

    fn turn(&mut self, value: u64) {
        if let Some(knob) = self.knob {
            self.put(knob, value);
        }
    }

    fn tails(&self) -> Option<Tails> {
        with_op(self.info.code, TailsOf(&self.fixed)).flatten()
    }

    /// Returns whether a field determines the length of a tail.
    pub(crate) fn has_knob(&self) -> bool {
        self.knob.is_some()
    }

    /// Returns a fixed part whose length field is `value`, and the lengths of its tails.
    pub(crate) fn request(&self, value: u64) -> (Vec<u8>, Tails) {
        let mut shape = Self { info: self.info, fixed: self.fixed.clone(), knob: self.knob };
        shape.turn(value);
        let tails = shape.tails().unwrap_or(Tails { request: TailLen::Exact(0), reply: TailLen::Exact(0) });
        (shape.fixed, tails)
    }
}

/// Returns names and positions of a request's number fields.
fn fields(info: &Info) -> Vec<(&'static str, Knob)> {
    let mut offset = 0;
    let at = |field: &hipr_proto::Field| {
        let size = layout_size(&field.layout);
        let knob = Knob { offset, size };
        offset += size;
        (field.name, knob)
    };
    info.request.fields.iter().map(at).collect()
}

fn layout_size(layout: &Layout) -> usize {
    match layout {
        Layout::Number("u8") => 1,
        Layout::Number("u16") => 2,
        Layout::Number("u64") => 8,
        Layout::Number(_) => 4,
        Layout::Text(len) => *len,
        Layout::Array(of, len) => layout_size(of) * len,
        Layout::Fields(fields) => fields.iter().map(|field| layout_size(&field.layout)).sum(),
    }
}
