//! A model of a correct server: a fold over the calls of a script, without bytes, pieces and time.

use hipr_proto::{Class, HipError};

use crate::options::Options;
use crate::script::{Call, Device, Kind, Script, When};

/// The expected results of a script's calls, until the connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// The expected result of each call, in order.
    pub calls: Vec<Expected>,
    /// The kept error at the end.
    pub kept: Option<HipError>,
    /// Whether the connection ends after these calls: the next call breaks the protocol, or the last one hangs for ever.
    pub ends: bool,
}

/// The expected result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Whether the device executes it.
    pub executed: bool,
    /// What the client learns; `None` if the call is not answered.
    pub learned: Option<Learned>,
    /// Whether the reply carries the kept error of another call.
    pub reports: bool,
}

/// The content of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// The error.
    pub error: Option<HipError>,
    /// Length of the fixed part in bytes.
    pub fixed_len: usize,
    /// Number of bytes after the fixed part.
    pub inline_len: u64,
}

impl Model {
    /// Computes the expected results of `script`.
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

/// Returns whether a dead device does not affect the call: exempt operations do not need the device.
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
