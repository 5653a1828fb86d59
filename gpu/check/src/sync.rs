//! Barriers that not all threads reach.

use hipr_grid::GroupStart;
use hipr_isa::wave::Wave;

use crate::finding::{Kind, Other};
use crate::kernel::At;
use crate::launch::Launch;

/// Length of `s_barrier`, behind which the program counter of a waiting wave is.
const BARRIER_BYTES: u64 = 4;

#[derive(Clone, Copy, Debug, Default)]
struct WaveState {
    /// The barrier that it waits at.
    waits_at: Option<u64>,
    /// The last barrier that it went through with lanes switched off, and those lanes.
    absent: Option<(u64, u64)>,
    is_ended: bool,
    /// The lanes that it has.
    lanes: u64,
}

/// The barriers of one workgroup.
pub(crate) struct Barriers {
    start: GroupStart,
    waves: Vec<WaveState>,
}

impl Barriers {
    pub(crate) fn new(start: GroupStart) -> Self {
        let threads = start.size.iter().product::<u32>();
        let lanes = |wave: u32| u64::MAX >> (64 - threads.saturating_sub(wave * 64).clamp(1, 64));
        let waves = (0..start.waves).map(|wave| WaveState { lanes: lanes(wave), ..WaveState::default() });
        Self { start, waves: waves.collect() }
    }

    /// Handles that a wave is at a barrier.
    pub(crate) fn at_barrier(&mut self, launch: &Launch, wave: usize, state: &Wave) {
        let pc = state.pc.wrapping_sub(BARRIER_BYTES);
        let at = At { pc, start: self.start, wave, lane: 0 };
        self.active(launch, at, state.exec());
        let Some(own) = self.waves.get_mut(wave) else { return };
        let absent = own.lanes & !state.exec();
        own.waits_at = Some(pc);
        own.absent = (absent != 0).then_some((pc, absent));
    }

    /// Handles that lanes of a wave work: those that were absent from its last barrier had not ended.
    pub(crate) fn active(&mut self, launch: &Launch, at: At, exec: u64) {
        let Some(own) = self.waves.get_mut(at.wave) else { return };
        let Some((pc, absent)) = own.absent else { return };
        let back = absent & exec;
        if back == 0 {
            return;
        }
        own.absent = None;
        let at = At { pc, lane: back.trailing_zeros() as usize, ..at };
        launch.found(Kind::DivergentBarrier, at, 1, || {
            let note =
                format!("{} of the wave's threads do not reach the barrier and go on", absent.count_ones());
            (None, None, None, note)
        });
    }

    /// Handles that all waves go on from the barriers that they wait at.
    pub(crate) fn barrier(&mut self, launch: &Launch) {
        let mut waiting =
            self.waves.iter_mut().enumerate().filter_map(|(wave, own)| Some((wave, own.waits_at.take()?)));
        let Some((first, first_pc)) = waiting.next() else { return };
        let Some((wave, pc)) = waiting.find(|(_, pc)| *pc != first_pc) else { return };
        waiting.for_each(drop);
        let at = At { pc, start: self.start, wave, lane: 0 };
        let other = At { pc: first_pc, wave: first, ..at };
        let (place, other_place) = (launch.kernel.place_of(at), launch.kernel.place_of(other));
        // The compiler makes two instructions of one barrier in the source; without debug information it cannot be told.
        if place.frames.iter().all(|frame| frame.file.is_none()) || place.frames == other_place.frames {
            return;
        }
        launch.found(Kind::DivergentBarrier, at, 1, || {
            let other = Other { place: Some(other_place), kind: hipr_isa::watch::Kind::Load };
            (None, None, Some(other), "waves of one block wait at different barriers".to_owned())
        });
    }

    /// Handles that a wave has ended.
    pub(crate) fn wave_ended(&mut self, wave: usize) {
        if let Some(own) = self.waves.get_mut(wave) {
            own.is_ended = true;
        }
    }
}
