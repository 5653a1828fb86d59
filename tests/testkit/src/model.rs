//! What a right server does with a script: a fold over its calls. No bytes, no pieces, no time.

use hipr_proto::{Class, HipError};

use crate::options::Options;
use crate::script::{Call, Device, Kind, Script, When};

/// What becomes of each call of a script, as far as the connection lasts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// Per call, in order.
    pub calls: Vec<Expected>,
    /// The error that is kept at the end.
    pub kept: Option<HipError>,
    /// Whether the connection ends after them: the next call breaks the protocol, or the last one hangs for ever.
    pub ends: bool,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Whether the device carries it out.
    pub executed: bool,
    /// What the client learns; nothing of a call that is not answered.
    pub learned: Option<Learned>,
    /// Whether the error that it learns is not the call's own.
    pub reports: bool,
}

/// What a reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// Its error.
    pub error: Option<HipError>,
    /// Bytes of its fixed part.
    pub fixed_len: usize,
    /// Bytes after it.
    pub inline_len: u64,
}

impl Model {
    /// What becomes of `script`.
    pub fn of(script: &Script, options: &Options) -> Self {
        let mut model = Self::default();
        let mut dead = None;
        for call in &script.0 {
            if call.kind == Kind::TooLong {
                model.ends = true;
                break;
            }
            model.surface(call, When::Before);
            let may_report = call.loud && call.class() != Class::Exempt;
            let is_blocked = call.class() == Class::Creates && may_report && model.kept.is_some();
            let executed = call.refusal().is_none() && !is_blocked;
            model.calls.push(Expected { executed, learned: None, reports: false });
            if executed && call.hangs_for_ever(options) && !is_spared(call, dead) {
                model.ends = true;
                break;
            }
            model.surface(call, When::During);
            let own = if executed { device_error(call, &mut dead) } else { call.refusal() };
            if !call.loud {
                model.kept = model.kept.or(own);
                continue;
            }
            let kept = if may_report { model.kept.take() } else { None };
            let error = kept.or(own);
            let inline_len = if error.is_none() { call.reply_len } else { 0 };
            let learned = Learned { error, fixed_len: call.reply_size(), inline_len };
            if let Some(last) = model.calls.last_mut() {
                (last.learned, last.reports) = (Some(learned), kept.is_some());
            }
        }
        model
    }

    fn surface(&mut self, call: &Call, at: When) {
        let surfaced = call.surfaces.filter(|(when, _)| *when == at).map(|(_, error)| error);
        self.kept = self.kept.or(surfaced);
    }
}

/// Whether a dead device answers it, at once; exempt requests do not need the device.
fn is_spared(call: &Call, dead: Option<HipError>) -> bool {
    dead.is_some() && call.class() != Class::Exempt
}

fn device_error(call: &Call, dead: &mut Option<HipError>) -> Option<HipError> {
    if is_spared(call, *dead) {
        return *dead;
    }
    match call.device {
        Device::Ok => None,
        Device::Error(error) | Device::Hang(error) => Some(error),
        Device::Death(error) => Some(*dead.insert(error)),
    }
}
