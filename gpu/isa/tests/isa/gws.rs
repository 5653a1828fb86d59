//! Tests of global wave sync: barriers and semaphores between waves of several workgroups.

use std::time::Instant;

use crate::bench::{CODE, MEMORY};
use hipr_isa::Arch;
use hipr_isa::fault::Cause;
use hipr_isa::gws::WaveSync;
use hipr_isa::isa::{assemble, implemented};
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::mem::{Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::{Machine, Program, Stop, run};
use hipr_isa::wave::{M0, Wave};

const S_ENDPGM: u32 = 0xbf81_0000;

/// Returns the words of a `ds_gws_*` instruction with v2 and an offset.
fn gws(arch: Arch, name: &str, offset: u32) -> Vec<u32> {
    const GDS: u64 = 1 << 16;
    let row = implemented(arch).find(|row| row.2 == name).unwrap();
    assemble(arch, row.0, row.1, 2 << 32 | GDS | u64::from(offset)).unwrap().to_vec()
}

/// Waves that share global wave sync resources, each with its own program.
struct Waves {
    sync: WaveSync,
    space: Space,
    waves: Vec<(Wave, Program, bool)>,
}

impl Waves {
    fn new(groups: u64) -> Self {
        let space = Space::of_block(Block::new(MEMORY, 64).unwrap());
        Self { sync: WaveSync::for_groups(groups), space, waves: Vec::new() }
    }

    /// Adds a wave with v2 = `operand` in its first active lane.
    fn add(&mut self, arch: Arch, words: &[u32], operand: u32) {
        let code: Vec<u8> = words.iter().chain([&S_ENDPGM]).flat_map(|word| word.to_le_bytes()).collect();
        let mut wave = Wave::new(8, 4);
        wave.pc = CODE;
        wave.set_exec(0xfff0);
        wave.row_mut(2).fill(0xffff);
        wave.row_mut(2)[4] = operand;
        self.waves.push((wave, Program::new(&code, CODE, arch, Level::BASE), false));
    }

    /// Gives a turn to each wave that has not ended, and returns how many have ended then.
    fn turn(&mut self) -> usize {
        for (wave, program, ended) in self.waves.iter_mut().filter(|wave| !wave.2) {
            let mut machine = Machine {
                space: &self.space,
                lds: &mut Lds::new(0),
                scratch: &mut Scratch::new(0),
                program,
                wave_sync: Some(&self.sync),
                clock_start: Instant::now(),
                interrupts: None,
                watch: None,
            };
            *ended = run(wave, &mut machine, &mut 100).unwrap() == Stop::End;
        }
        self.waves.iter().filter(|wave| wave.2).count()
    }
}

#[test]
fn a_barrier_lets_all_go_when_the_last_one_comes() {
    for arch in Arch::ALL {
        let barrier = gws(arch, "ds_gws_barrier", 0);
        for groups in [1, 2, 5] {
            let mut waves = Waves::new(groups as u64);
            // Three barriers in a row, the last wave late at each.
            let code = barrier.repeat(3);
            (1..groups).for_each(|_| waves.add(arch, &code, groups as u32 - 1));
            assert_eq!(waves.turn(), 0);
            assert_eq!(waves.turn(), 0, "nobody goes before the last one comes");
            waves.add(arch, &code, groups as u32 - 1);
            let turns = (0..100).take_while(|_| waves.turn() < groups).count();
            assert!(turns < 10, "{arch}, {groups} groups: {turns} turns");
        }
    }
}

#[test]
fn a_resource_is_what_m0_and_the_offset_name() {
    for arch in Arch::ALL {
        let mut waves = Waves::new(1);
        // Resource 5 becomes a barrier for two, resource 6 stays one for one.
        waves.add(arch, &gws(arch, "ds_gws_init", 5), 1);
        assert_eq!(waves.turn(), 1);
        waves.add(arch, &gws(arch, "ds_gws_barrier", 6), 0);
        assert_eq!(waves.turn(), 2);
        waves.add(arch, &gws(arch, "ds_gws_barrier", 2), 0);
        waves.waves[2].0.sgpr[M0] = 3 << 16 | 0xffff;
        assert_eq!((waves.turn(), waves.turn()), (2, 2), "it waits at resource 3 + 2");
        waves.add(arch, &gws(arch, "ds_gws_barrier", 5), 0);
        waves.turn();
        assert_eq!(waves.turn(), 4);
    }
}

#[test]
fn semaphores_let_as_many_pass_as_they_are_told() {
    for arch in Arch::ALL {
        let mut waves = Waves::new(4);
        let pass = gws(arch, "ds_gws_sema_p", 7);
        (0..6).for_each(|_| waves.add(arch, &pass, 0));
        assert_eq!(waves.turn(), 0);
        let mut ended = 0;
        for (name, operand, passed) in [
            ("ds_gws_sema_v", 9, 1),
            ("ds_gws_sema_br", 2, 2),
            ("ds_gws_sema_br", 0, 0),
            ("ds_gws_sema_release_all", 0, 3),
        ] {
            waves.add(arch, &gws(arch, name, 7), operand);
            waves.turn();
            // The wave that lets them pass, too.
            ended += passed + 1;
            assert_eq!((waves.turn(), waves.turn()), (ended, ended), "{arch} {name}");
        }
        waves.add(arch, &pass, 0);
        assert_eq!((waves.turn(), waves.turn()), (ended, ended), "who comes later waits");
    }
}

#[test]
fn without_resources_and_without_lanes() {
    for arch in Arch::ALL {
        for (_, _, name) in implemented(arch).filter(|row| row.2.starts_with("ds_gws")) {
            let mut bench = crate::bench::Bench { arch, ..Default::default() };
            let fault = bench.try_run(&gws(arch, name, 0)).unwrap_err();
            assert_eq!(fault.cause, Cause::NoGlobalWaveSync(name));
            assert!(fault.to_string().contains(name), "{fault}");
            let mut waves = Waves::new(9);
            waves.add(arch, &gws(arch, name, 0), 0);
            waves.waves[0].0.set_exec(0);
            assert_eq!(waves.turn(), 1, "{name} without a lane does nothing");
        }
    }
}
