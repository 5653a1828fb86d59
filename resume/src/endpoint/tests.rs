use super::*;

const MAX: usize = 1 << 20;

fn pair() -> (Endpoint, Endpoint) {
    (Endpoint::new(MAX, MAX), Endpoint::new(MAX, MAX))
}

fn output(end: &mut Endpoint) -> Vec<u8> {
    let mut frames = Vec::new();
    end.take_output(&mut frames, usize::MAX);
    frames
}

/// Takes all bytes of the frames, at most `at_once` at a time.
fn input(end: &mut Endpoint, mut frames: &[u8], at_once: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = vec![0; at_once];
        let len = end.receive(&mut frames, &mut piece).unwrap();
        bytes.extend_from_slice(&piece[..len]);
        if len < at_once {
            return bytes;
        }
    }
}

fn frame(len: u32, is_last: bool, taken: u32, bytes: &[u8]) -> Vec<u8> {
    [&Header { len, is_last, taken }.to_bytes()[..], bytes].concat()
}

fn fault(end: &mut Endpoint, frames: &[u8]) -> Fault {
    end.receive(&mut &*frames, &mut [0; 64]).unwrap_err()
}

#[test]
fn how_frames_are_cut_is_invisible() {
    let said: Vec<u8> = (0..=255).cycle().take(1000).collect();
    for at_once in [1, 7, 8, 9, 999, 1000, 2000] {
        let (mut one, mut two) = pair();
        assert_eq!(one.push(&said), 1000);
        one.finish();
        let frames = output(&mut one);
        let mut heard = Vec::new();
        for piece in frames.chunks(at_once) {
            heard.extend(input(&mut two, piece, 3));
        }
        assert!(heard == said && two.is_ended() && one.is_end_sent(), "pieces of {at_once}");
    }
}

#[test]
fn nothing_is_said_without_an_occasion_and_bytes_carry_what_was_taken() {
    let (mut one, mut two) = pair();
    one.push(&[1; 100]);
    let frames = output(&mut one);
    assert_eq!(input(&mut two, &frames, 1000), [1; 100]);
    assert!(!two.has_output(), "100 bytes are no occasion");
    assert_eq!(one.kept_bytes(), 100);
    two.push(&[2]);
    let answer = output(&mut two);
    assert_eq!(answer.len(), HEADER_BYTES + 1);
    assert_eq!(input(&mut one, &answer, 10), [2]);
    assert_eq!(one.kept_bytes(), 0);
}

#[test]
fn much_that_was_taken_is_said_in_eight_bytes() {
    let (mut one, mut two) = pair();
    one.push(&vec![1; SAY_EVERY_BYTES]);
    let frames = output(&mut one);
    assert_eq!(frames.len(), SAY_EVERY_BYTES + HEADER_BYTES);
    assert_eq!(input(&mut two, &frames, MAX).len(), SAY_EVERY_BYTES);
    let said = output(&mut two);
    assert_eq!(said.len(), HEADER_BYTES);
    assert!(input(&mut one, &said, 10).is_empty());
    assert!(one.kept_bytes() == 0 && !one.has_output() && !two.has_output(), "an answer needs none");
}

#[test]
fn a_full_ring_takes_no_more_until_something_was_taken() {
    let (mut one, mut two) = pair();
    assert_eq!(one.push(&vec![1; 2 * MAX]), MAX);
    assert_eq!((one.room(), one.push(&[1])), (0, 0));
    let frames = output(&mut one);
    input(&mut two, &frames, 4 * MAX);
    let said = output(&mut two);
    input(&mut one, &said, 10);
    assert_eq!(one.room(), MAX);
}

#[test]
fn what_was_not_taken_comes_again() {
    let (mut one, mut two) = pair();
    let said: Vec<u8> = (0..200).collect();
    one.push(&said);
    let frames = output(&mut one);
    let mut heard = input(&mut two, &frames[..HEADER_BYTES + 50], 1000);
    one.push(&[9; 3]);
    one.finish();
    one.cut();
    two.cut();
    assert!(!one.has_output(), "there is no connection");
    let (one_has, two_has) = (one.taken(), two.taken());
    assert_eq!((one_has, two_has), (0, 50));
    one.resume(two_has).unwrap();
    two.resume(one_has).unwrap();
    let frames = output(&mut one);
    heard.extend(input(&mut two, &frames, 1000));
    assert!(heard == [said, vec![9; 3]].concat() && two.is_ended());
}

#[test]
fn what_is_stowed_is_bounded_and_comes_before_what_follows() {
    let (mut one, mut two) = pair();
    one.push(&[1; 10]);
    let first = output(&mut one);
    one.push(&[2; 10]);
    one.finish();
    let second = output(&mut one);
    two.stow(&mut &*first).unwrap();
    assert!(two.stowed_bytes() == 10 && two.taken() == 0);
    let heard = input(&mut two, &second, 7);
    assert_eq!(heard, [[1; 10], [2; 10]].concat());
    assert!(two.is_ended());

    let mut narrow = Endpoint::new(MAX, RING_MIN_BYTES);
    let more = frame(RING_MIN_BYTES as u32, false, 0, &vec![0; RING_MIN_BYTES]);
    narrow.stow(&mut &*more).unwrap();
    assert_eq!(narrow.stow(&mut &*frame(1, false, 0, &[0])), Err(Fault::TooMuch));
}

#[test]
fn what_is_stowed_outlives_a_connection_only_if_nothing_more_can_come() {
    let (mut one, mut two) = pair();
    one.push(&[1; 10]);
    let frames = output(&mut one);
    two.stow(&mut &*frames).unwrap();
    two.cut();
    assert_eq!((two.stowed_bytes(), two.taken()), (0, 0));
    one.finish();
    one.cut();
    one.resume(0).unwrap();
    two.resume(0).unwrap();
    let frames = output(&mut one);
    two.stow(&mut &*frames).unwrap();
    two.cut();
    assert!(two.has_end() && !two.is_ended() && two.taken() == 10, "it need not come again");
    assert_eq!(input(&mut two, &[], 100), [1; 10]);
    assert!(two.is_ended());
}

#[test]
fn who_breaks_the_rules_is_told_apart() {
    let fresh = || {
        let mut end = Endpoint::new(MAX, RING_MIN_BYTES);
        end.push(&[0; 8]);
        output(&mut end);
        end
    };
    let long = FRAME_MAX_BYTES as u32 + 1;
    assert_eq!(fault(&mut fresh(), &frame(long, false, 0, &[])), Fault::TooLong);
    assert_eq!(fault(&mut fresh(), &frame(0, false, 0, &[])), Fault::Empty);
    assert_eq!(fault(&mut fresh(), &frame(0, false, 9, &[])), Fault::Taken, "never sent");
    let mut end = fresh();
    assert!(input(&mut end, &frame(0, false, 5, &[]), 8).is_empty());
    assert_eq!(fault(&mut end, &frame(0, false, 4, &[])), Fault::Taken, "less than before");
    assert_eq!(fault(&mut fresh(), &frame(RING_MIN_BYTES as u32 + 1, false, 0, &[])), Fault::TooMuch);
    assert_eq!(
        fault(&mut fresh(), &[frame(1, true, 0, &[7]), frame(1, false, 0, &[7])].concat()),
        Fault::BehindLast
    );
    assert_eq!(fault(&mut fresh(), &[frame(0, true, 0, &[]), frame(0, true, 0, &[])].concat()), Fault::Empty);
}

#[test]
fn an_end_cannot_have_what_was_never_sent_nor_have_less_than_it_had() {
    let mut end = Endpoint::new(MAX, MAX);
    end.push(&[1; 10]);
    output(&mut end);
    end.push(&[1; 10]);
    end.cut();
    assert_eq!(end.resume(11), Err(Fault::Taken));
    end.resume(4).unwrap();
    end.cut();
    assert_eq!(end.resume(3), Err(Fault::Taken));
    end.resume(4).unwrap();
    assert_eq!(end.unsent_bytes(), 16);
}

#[test]
fn who_has_ended_still_says_what_it_has_taken_and_ends_again_over_another_connection() {
    let (mut one, mut two) = pair();
    one.push(&[1]);
    one.finish();
    let frames = output(&mut one);
    assert_eq!(input(&mut two, &frames, 10), [1]);
    two.push(&vec![2; SAY_EVERY_BYTES]);
    let frames = output(&mut two);
    input(&mut one, &frames, MAX);
    let said = output(&mut one);
    assert_eq!(said.len(), HEADER_BYTES);
    input(&mut two, &said, 10);
    assert!(two.kept_bytes() == 0 && two.is_ended());
    one.cut();
    two.cut();
    let (one_has, two_has) = (one.taken(), two.taken());
    one.resume(two_has).unwrap();
    two.resume(one_has).unwrap();
    let again = output(&mut one);
    assert!(input(&mut two, &again, 10).is_empty() && two.is_ended());
}

#[test]
fn offsets_go_beyond_32_bits() {
    let (mut one, mut two) = pair();
    for end in [&mut one, &mut two] {
        let before = u64::from(u32::MAX) - 2;
        (end.acked, end.sent, end.sent_ever, end.taken, end.told) = (before, before, before, before, before);
    }
    for round in 0..4_u8 {
        one.push(&[round; 3]);
        let frames = output(&mut one);
        assert_eq!(input(&mut two, &frames, 10), [round; 3]);
        two.push(&[round]);
        let answer = output(&mut two);
        assert_eq!(input(&mut one, &answer, 10), [round]);
        assert_eq!(one.kept_bytes(), 0);
    }
}
