//! What the other end of a session says below HIPR: claims, terms and frames.

use hipr_resume::{Claim, Endpoint, FRAME_MAX_BYTES, RING_MIN_BYTES, Terms};

use crate::resume_world;

/// Reads claims and terms, plays a schedule of two honest ends, or gives an end any bytes as frames, in any pieces. The first byte says
/// what.
pub fn resume(data: &[u8]) {
    let Some((&what, data)) = data.split_first() else { return };
    match what % 4 {
        0 => {
            if let Some(claim) = Claim::from_bytes(data) {
                assert_eq!(claim.to_bytes(), data);
            }
            if let Some(terms) = Terms::from_bytes(data) {
                assert_eq!(terms.to_bytes(), data);
            }
        }
        1 => {
            if let Err(failure) = resume_world::play(data) {
                panic!("{failure}");
            }
        }
        _ => frames(what, data),
    }
}

fn frames(what: u8, data: &[u8]) {
    let mut end = Endpoint::new(RING_MIN_BYTES, RING_MIN_BYTES);
    end.push(&[7; 3000]);
    let mut output = Vec::new();
    end.take_output(&mut output, 2000);
    let (mut taken, mut is_over) = (0, false);
    for (number, piece) in data.chunks(usize::from(what >> 4) + 1).enumerate() {
        let mut piece = piece;
        let before = end.taken();
        // What is stowed belongs to this end once nothing can follow it.
        let stowed = if end.has_end() { end.stowed_bytes() } else { 0 };
        assert_eq!(before, taken + stowed as u64);
        let mut into = vec![0; number % 40];
        let heard = if number % 5 == 4 {
            end.stow(&mut piece).map(|()| 0)
        } else {
            end.receive(&mut piece, &mut into)
        };
        let Ok(len) = heard else {
            is_over = true;
            break;
        };
        taken += len as u64;
        assert!(end.stowed_bytes() <= RING_MIN_BYTES && end.kept_bytes() <= 3000);
        assert!(!end.is_ended() || end.has_end());
        if number % 50 == 49 {
            end.cut();
            assert!(!end.has_output());
            let has = end.taken();
            assert!(end.resume(u64::MAX).is_err(), "nobody can have that");
            if end.resume(2000).is_err() && end.resume(0).is_err() {
                return;
            }
            assert!(end.taken() == has && end.unsent_bytes() <= 3000);
        }
    }
    if !is_over {
        output.clear();
        end.take_output(&mut output, FRAME_MAX_BYTES);
    }
}
