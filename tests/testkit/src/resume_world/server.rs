//! The worker's end: every connection has to claim a session first.

use std::collections::BTreeMap;

use hipr_resume::{CLAIM_BYTES, Claim, Refusal, Registry, Terms};

use super::link::{End, Link, check_end, take};
use super::{Broken, Met, Options, broken};

#[derive(Default)]
pub(super) struct Server {
    registry: Registry<usize, u32>,
    session: Option<Session>,
    /// What has come of claims, by link; `None` for those that were closed.
    doors: BTreeMap<usize, Option<Vec<u8>>>,
    /// Whether it takes nothing at the moment.
    pub(super) is_slow: bool,
    /// Whether it ends its stream when everything was said.
    ends_when_said: bool,
}

struct Session {
    end: End,
    claim: Claim,
    /// The link that the session is on; `None` while it is parked.
    link: Option<usize>,
    epoch: u32,
}

impl Server {
    pub(super) fn session(&self) -> Option<&End> {
        self.session.as_ref().map(|session| &session.end)
    }

    pub(super) fn moved(&self) -> Option<[u64; 6]> {
        self.session().map(End::moved)
    }

    pub(super) fn check(&self) -> Result<(), Broken> {
        self.session().map_or(Ok(()), End::check)
    }

    /// Loses everything.
    pub(super) fn crash(&mut self) {
        self.registry = Registry::default();
        self.session = None;
        self.doors.values_mut().for_each(|door| *door = None);
    }

    /// Gives up a session that nobody has claimed for long.
    pub(super) fn give_up(&mut self) {
        if let Some(session) = self.session.take_if(|session| session.link.is_none()) {
            self.registry.remove(&session.claim.name);
        }
    }

    /// Handles that a link is gone.
    pub(super) fn cut(&mut self, link: usize) {
        self.doors.insert(link, None);
        if let Some(session) = self.session.as_mut().filter(|session| session.link == Some(link)) {
            session.end.endpoint.cut();
            session.link = None;
        }
    }

    pub(super) fn say(&mut self, len: usize, met: &mut Met) {
        if let Some(session) = &mut self.session {
            session.end.ends_when_said = self.ends_when_said;
            session.end.say(len, met);
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(session) = &mut self.session {
            session.end.finish();
        }
    }

    pub(super) fn finish_all(&mut self) {
        self.ends_when_said = true;
    }

    pub(super) fn transmit(&mut self, len: usize, room: usize, links: &mut [Link]) {
        if let Some(session) = &mut self.session
            && let Some(link) = session.link.and_then(|link| links.get_mut(link))
            && link.down.len() < room
        {
            link.down.extend(session.end.transmit(len, &mut Met::default()));
        }
    }

    pub(super) fn take_stowed(&mut self) -> Result<(), Broken> {
        match &mut self.session {
            Some(session) => session.end.hear(&[], false, &mut Met::default()),
            None => Ok(()),
        }
    }

    /// Takes what a link brings.
    pub(super) fn hear(
        &mut self,
        link: usize,
        len: usize,
        links: &mut [Link],
        options: &Options,
        met: &mut Met,
    ) -> Result<(), Broken> {
        let Some(Link { up, is_dead, .. }) = links.get_mut(link) else { return Ok(()) };
        let mut bytes = take(up, len);
        if *is_dead {
            return Ok(());
        }
        if let Some(session) = self.session.as_mut().filter(|session| session.link == Some(link)) {
            return session.end.hear(&bytes, self.is_slow, met);
        }
        let Some(said) = self.doors.entry(link).or_insert(Some(Vec::new())) else { return Ok(()) };
        let missing = CLAIM_BYTES.saturating_sub(said.len()).min(bytes.len());
        said.extend(bytes.drain(..missing));
        let Some(claim) = Claim::from_bytes(said) else { return Ok(()) };
        self.doors.insert(link, None);
        let fenced = self.session.as_ref().and_then(|session| session.link);
        let Some(own) = links.get_mut(link) else { return Ok(()) };
        let decided = self.decide(&claim, own, link, options, met)?;
        if decided.is_some()
            && let Some(fenced) = fenced.and_then(|fenced| links.get_mut(fenced))
        {
            fenced.is_dead = true;
        }
        let Some(own) = links.get_mut(link) else { return Ok(()) };
        match decided {
            Some(terms) => {
                own.down.push_back(1);
                own.down.extend(terms.to_bytes());
                match &mut self.session {
                    Some(session) => session.end.hear(&bytes, self.is_slow, met),
                    None => Ok(()),
                }
            }
            None => Ok(()),
        }
    }

    fn decide(
        &mut self,
        claim: &Claim,
        link: &mut Link,
        number: usize,
        options: &Options,
        met: &mut Met,
    ) -> Result<Option<Terms>, Broken> {
        let terms =
            |taken| Terms { timeout_ms: 1, to_worker_max_bytes: 0, to_client_max_bytes: 0, taken, route: 0 };
        if claim.epoch == 0 {
            // A copy of the first claim that comes when the worker has lost the session begins another one. Nobody ever uses that, and the
            // program is not its other end.
            if number > 0 && self.session.is_none() {
                met.late += 1;
                link.is_dead = true;
                return Ok(None);
            }
            if self.registry.begin(claim.name, link.key, 0).is_err() {
                met.late += 1;
                link.down.push_back(0);
                return Ok(None);
            }
            if self.session.is_some() {
                return broken("late_and_strange_claims_are_refused", "a session began that was there");
            }
            let [_, goal] = options.say_bytes;
            let end = End::new(1, options.ring_bytes, goal);
            self.session = Some(Session { end, claim: *claim, link: Some(number), epoch: 0 });
            return Ok(Some(terms(0)));
        }
        let found = self.registry.resume(claim, &link.key);
        let Some(session) = &mut self.session else {
            return match found {
                Ok(_) => broken("late_and_strange_claims_are_refused", "a session that is gone went on"),
                Err(_) => {
                    link.down.push_back(0);
                    Ok(None)
                }
            };
        };
        match found {
            // It is closed without a word: who is really cut off comes again.
            Err(Refusal::Late) => {
                met.late += 1;
                link.is_dead = true;
                Ok(None)
            }
            Err(_) => {
                link.down.push_back(0);
                Ok(None)
            }
            Ok(_) if claim.epoch <= session.epoch || link.key != super::program::KEY => {
                broken("late_and_strange_claims_are_refused", format!("epoch {} was let in", claim.epoch))
            }
            Ok(_) => {
                session.epoch = claim.epoch;
                session.link = Some(number);
                session.end.endpoint.cut();
                let taken = session.end.endpoint.taken();
                // Somebody who has read the name along can say anything; then nothing is believed.
                if session.end.endpoint.resume(claim.taken).is_err() {
                    return broken("an_honest_end_is_believed", format!("a claim of {}", claim.taken));
                }
                Ok(Some(terms(taken)))
            }
        }
    }

    /// Checks both ends' accounts of each other.
    pub(super) fn check_against(&self, program: &End) -> Result<(), Broken> {
        let Some(session) = self.session() else { return Ok(()) };
        check_end(program, session)?;
        check_end(session, program)
    }
}
