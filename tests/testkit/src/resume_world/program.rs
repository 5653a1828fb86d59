//! The client's end: it makes connections, one after the other, and claims its session.

use hipr_resume::{Claim, Name, TERMS_BYTES, Terms};

use crate::choices::Choices;

use super::link::{End, Link, take};
use super::{Broken, Met, Options};

/// The key that the program shows.
pub(super) const KEY: u32 = 7;

pub(super) struct Program {
    pub(super) end: End,
    name: Name,
    epoch: u32,
    /// The claims that it has made.
    claims: Vec<Claim>,
    /// The number of the link that it uses; `None` if that was cut.
    link: Option<usize>,
    /// What has come of the answer to its claim; `None` when it has come.
    answer: Option<Vec<u8>>,
    /// Whether the worker has answered at all: before, there is no session to go on with.
    is_begun: bool,
    /// Whether it takes nothing at the moment.
    pub(super) is_slow: bool,
    /// Whether its session is over without an end.
    pub(super) is_lost: bool,
    /// Whether it has crashed.
    pub(super) is_gone: bool,
}

impl Program {
    pub(super) fn new(options: &Options) -> Self {
        let [goal, _] = options.say_bytes;
        Self {
            end: End::new(0, options.ring_bytes, goal),
            name: Name::new([3; 32]),
            epoch: 0,
            claims: Vec::new(),
            link: None,
            answer: None,
            is_begun: false,
            is_slow: false,
            is_lost: false,
            is_gone: false,
        }
    }

    /// Returns a claim that it has made, once the worker has answered one.
    pub(super) fn earlier_claim(&self, choices: &mut Choices<'_>) -> Option<Claim> {
        if self.is_begun { choices.pick(&self.claims).copied() } else { None }
    }

    fn claim(&mut self, epoch: u32, taken: u64, links: &mut Vec<Link>) {
        let claim = Claim { name: self.name, epoch, taken };
        links.push(Link::new(&claim, KEY));
        self.claims.push(claim);
        self.link = Some(links.len() - 1);
        self.answer = Some(Vec::new());
    }

    /// Makes the first connection, over which it talks at once.
    pub(super) fn connect(&mut self, links: &mut Vec<Link>) {
        self.claim(0, 0, links);
    }

    pub(super) fn connect_if_cut(&mut self, links: &mut Vec<Link>) {
        if self.link.is_none() && !self.is_lost && !self.is_gone {
            self.epoch += 1;
            let taken = self.end.endpoint.taken();
            self.claim(self.epoch, taken, links);
        }
    }

    /// Connects anew if the link is one that nothing passes.
    pub(super) fn connect_if_dead(&mut self, links: &mut Vec<Link>) {
        if let Some(link) = self.link
            && links.get(link).is_none_or(|link| link.is_dead)
        {
            self.cut(link);
        }
        self.connect_if_cut(links);
    }

    /// Gives up a link of which it has no good opinion, and makes another.
    pub(super) fn connect_again(&mut self, links: &mut Vec<Link>) {
        if let Some(link) = self.link {
            self.cut(link);
        }
        self.connect_if_cut(links);
    }

    /// Handles that a link is gone, if it is its own.
    pub(super) fn cut(&mut self, link: usize) {
        if self.link == Some(link) {
            self.link = None;
            self.end.endpoint.cut();
            self.is_lost |= !self.is_begun;
        }
    }

    pub(super) fn crash(&mut self) {
        self.is_gone = true;
        if let Some(link) = self.link {
            self.cut(link);
        }
    }

    /// Describes the state for a report.
    pub(super) fn state(&self) -> String {
        let Self { epoch, link, is_lost, answer, .. } = self;
        let waits = answer.is_some();
        format!(
            "the program is at connection {epoch}, link {link:?}, lost: {is_lost}, waits for an answer: {waits}"
        )
    }

    /// Returns whether the worker has answered a claim.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    pub(super) fn say(&mut self, len: usize, met: &mut Met) {
        if !self.is_gone && !self.is_lost {
            self.end.say(len, met);
        }
    }

    pub(super) fn finish(&mut self) {
        if !self.is_gone {
            self.end.finish();
        }
    }

    /// Ends the stream when everything that it has to say is said.
    pub(super) fn finish_all(&mut self) {
        self.end.ends_when_said = true;
    }

    pub(super) fn transmit(&mut self, len: usize, room: usize, links: &mut [Link], met: &mut Met) {
        let is_talking = self.answer.is_none() || self.epoch == 0;
        if let Some(link) = self.link.and_then(|link| links.get_mut(link))
            && is_talking
            && link.up.len() < room
        {
            link.up.extend(self.end.transmit(len, met));
        }
    }

    /// Takes what a link brings, if it is its own.
    pub(super) fn hear(
        &mut self,
        link: usize,
        len: usize,
        links: &mut [Link],
        met: &mut Met,
    ) -> Result<(), Broken> {
        if self.link != Some(link) {
            return Ok(());
        }
        let Some(own) = links.get_mut(link) else { return Ok(()) };
        let mut bytes = take(&mut own.down, len);
        if let Some(answer) = &mut self.answer {
            let missing = (1 + TERMS_BYTES).saturating_sub(answer.len()).min(bytes.len());
            answer.extend(bytes.drain(..missing));
            match answer.split_first() {
                Some((0, _)) => {
                    self.is_lost = true;
                    self.cut(link);
                    return Ok(());
                }
                Some((_, terms)) if terms.len() == TERMS_BYTES => {
                    let terms = Terms::from_bytes(terms);
                    self.answer = None;
                    self.is_begun = true;
                    if self.epoch > 0
                        && let Some(terms) = terms
                    {
                        met.resumed += 1;
                        self.end.resume(terms.taken)?;
                    }
                }
                _ => return Ok(()),
            }
        }
        self.end.hear(&bytes, self.is_slow, met)
    }

    pub(super) fn take_stowed(&mut self) -> Result<(), Broken> {
        self.end.hear(&[], false, &mut Met::default())
    }
}
