//! Barriers that not all threads reach.

use hipr_grid::GroupStart;
use hipr_isa::watch::Kind as AccessKind;
use hipr_isa::wave::Wave;

use crate::finding::{Kind, Other};
use crate::kernel::At;
use crate::launch::Launch;

/// Length of `s_barrier`, behind which the program counter of a waiting wave is.
const BARRIER_BYTES: u64 = 4;

/// A barrier: its instruction, and the calls around it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Barrier {
    pc: u64,
    callers: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct WaveState {
    /// The barrier that it waits at.
    waits_at: Option<Barrier>,
    /// The last barrier that it went through with lanes switched off, and those lanes.
    absent: Option<(Barrier, u64)>,
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
    pub(crate) fn at_barrier(&mut self, launch: &Launch, wave: usize, callers: &[u64], state: &Wave) {
        self.active(launch, wave, state.exec());
        let Some(own) = self.waves.get_mut(wave) else { return };
        let barrier = Barrier { pc: state.pc.wrapping_sub(BARRIER_BYTES), callers: callers.to_vec() };
        let absent = own.lanes & !state.exec();
        own.absent = (absent != 0).then(|| (barrier.clone(), absent));
        own.waits_at = Some(barrier);
    }

    /// Handles that lanes of a wave work: those that were absent from its last barrier had not ended.
    #[inline]
    pub(crate) fn active(&mut self, launch: &Launch, wave: usize, exec: u64) {
        let Some(own) = self.waves.get_mut(wave) else { return };
        if own.absent.as_ref().is_none_or(|(_, absent)| absent & exec == 0) {
            return;
        }
        let Some((barrier, absent)) = own.absent.take() else { return };
        let lane = (absent & exec).trailing_zeros() as usize;
        launch.found(Kind::DivergentBarrier, self.at(&barrier, wave, lane), 1, || {
            let note =
                format!("{} of the wave's threads do not reach the barrier and go on", absent.count_ones());
            (None, None, None, note)
        });
    }

    fn at<'a>(&self, barrier: &'a Barrier, wave: usize, lane: usize) -> At<'a> {
        At { pc: barrier.pc, callers: &barrier.callers, start: self.start, wave, lane }
    }

    /// Handles that all waves go on from the barriers that they wait at.
    pub(crate) fn barrier(&mut self, launch: &Launch) {
        let waiting: Vec<_> = self.waves.iter_mut().map(|own| own.waits_at.take()).collect();
        let mut waiting =
            waiting.iter().enumerate().filter_map(|(wave, barrier)| Some((wave, barrier.as_ref()?)));
        let Some((first, at_first)) = waiting.next() else { return };
        let Some((wave, barrier)) = waiting.find(|(_, barrier)| *barrier != at_first) else { return };
        let (at, other) = (self.at(barrier, wave, 0), self.at(at_first, first, 0));
        let (place, other_place) = (launch.kernel.place_of(at), launch.kernel.place_of(other));
        // The compiler makes two instructions of one barrier in the source; without debug information it cannot be told.
        if place.frames.iter().all(|frame| frame.file.is_none()) || place.frames == other_place.frames {
            return;
        }
        launch.found(Kind::DivergentBarrier, at, 1, || {
            let other = Other { place: Some(other_place), kind: AccessKind::Load };
            (None, None, Some(other), "waves of one block wait at different barriers".to_owned())
        });
    }
}
