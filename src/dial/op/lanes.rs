//! The attempts of an operation: each a socket on its way, from `socket(2)` to the end of the proxy dialogue.

use super::event::EventKind;
use super::{Lane, Operation, Phase, unwatchable};
use crate::dial::attempt::{Failure, Link, Pause, Progress};
use crate::dial::fault::{Blame, Fault};
use crate::dial::handshake::{Handshake, Protocol, Want};
use crate::dial::options::TunnelRefusal;
use crate::dial::race::Report as Told;
use crate::dial::source::{Decision, Report, RouteSource, Via};
use std::sync::PoisonError;

impl<S: RouteSource> Operation<S> {
    pub(super) fn start(&mut self, attempt: u32, route: u32) {
        let now = self.now();
        self.trace.started(attempt, route, now);
        let Some(shown) = self.routes.get(route as usize).cloned() else { return };
        self.source.report(&shown, Report::Started);
        let leg = self.source.leg(&shown);
        let alone = self.race.untried() == 0 && self.race.in_flight() == 1;
        let fast_open = self.options.socket.fast_open && alone && leg.via == Via::Direct;
        let made = Link::start(leg.hop, &self.options.socket, fast_open, &shown, &mut *self.hooks);
        let mut lane = Lane {
            id: attempt,
            route,
            link: None,
            dialogue: None,
            phase: Phase::Connecting { again: false },
            started: now,
            interest: 0,
            watched: false,
            revents: 0,
            failure: None,
        };
        match made {
            Ok((link, progress)) => {
                self.emit(EventKind::Start, attempt, link.fd(), None);
                lane.link = Some(link);
                self.lanes.push(lane);
                self.progressed(self.lanes.len() - 1, progress);
            }
            Err(failure) => {
                self.emit(EventKind::Start, attempt, -1, None);
                self.lanes.push(lane);
                self.report_failure(self.lanes.len() - 1, failure, true);
            }
        }
        self.generation += 1;
    }

    /// Says which events a lane waits for; 0 for none, then it is not watched at all, because a set shows errors
    /// and hang-ups even unasked.
    pub(super) fn watch(&mut self, index: usize, interest: i16) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        if lane.interest == interest {
            return;
        }
        lane.interest = interest;
        self.generation += 1;
        let (Some(poller), Some(link)) = (&self.poller, &lane.link) else { return };
        let token = u64::from(lane.id);
        let done = match (lane.watched, interest) {
            (false, 0) => Ok(()),
            (true, 0) => {
                poller.remove(link.as_fd());
                Ok(())
            }
            (true, _) => poller.modify(link.fd(), interest, token),
            (false, _) => poller.add(link.fd(), interest, token),
        };
        lane.watched = interest != 0;
        if let Err(error) = done {
            self.report_failure(index, unwatchable(&error), false);
        }
    }

    pub(super) fn ready(&mut self, index: usize) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        match (lane.phase, &mut lane.link) {
            (Phase::Connecting { .. }, Some(link)) => match link.verify() {
                Ok(progress) => self.progressed(index, progress),
                Err((fault, errno)) => self.progressed(index, Progress::Failed(fault, errno)),
            },
            (Phase::Talking, Some(_)) => self.talk(index),
            _ => {}
        }
    }

    pub(super) fn progressed(&mut self, index: usize, progress: Progress) {
        match progress {
            Progress::Pending => self.watch(index, libc::POLLOUT),
            Progress::Connected => self.connected(index),
            Progress::Failed(Fault::SelfConnect, errno) => {
                let repeat = self
                    .lanes
                    .get_mut(index)
                    .and_then(|lane| lane.link.as_mut())
                    .is_some_and(Link::may_repeat_self_connect);
                if repeat {
                    self.reconnect(index);
                } else {
                    self.report_failure(index, (Fault::SelfConnect, errno), false);
                }
            }
            Progress::Failed(fault, errno) => self.report_failure(index, (fault, errno), false),
        }
    }

    pub(super) fn connected(&mut self, index: usize) {
        let now = self.now();
        let Some(lane) = self.lanes.get(index) else { return };
        let (id, route, phase) = (lane.id, lane.route, lane.phase);
        self.trace.tcp(id, now);
        if phase == (Phase::Connecting { again: true })
            && let Some(lane) = self.lanes.get_mut(index)
            && let Some(dialogue) = &mut lane.dialogue
        {
            lane.phase = Phase::Talking;
            match dialogue.reconnected() {
                Ok(()) => self.talk(index),
                Err(fault) => self.report_failure(index, (fault, 0), false),
            }
            return;
        }
        self.watch(index, 0);
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.phase = Phase::Tcp;
        }
        let handshake = self.routes.get(route as usize).is_some_and(|route| {
            let leg = self.source.leg(route);
            matches!(leg.via, Via::Socks(_)) || leg.via == Via::Http && leg.tunnel
        });
        self.race.report(id, Told::Tcp { handshake });
    }

    pub(super) fn begin_dialogue(&mut self, attempt: u32) {
        let Some(index) = self.lanes.iter().position(|lane| lane.id == attempt) else { return };
        let Some(lane) = self.lanes.get_mut(index) else { return };
        let Some(route) = self.routes.get(lane.route as usize) else { return };
        let leg = self.source.leg(route);
        let protocol = match leg.via {
            Via::Socks(version) => Protocol::Socks(version),
            _ => Protocol::Connect,
        };
        let settings = self.options.handshake.clone();
        match Handshake::new(protocol, leg.host, leg.port, leg.credentials, settings) {
            Ok(dialogue) => {
                lane.dialogue = Some(Box::new(dialogue));
                lane.phase = Phase::Talking;
                let fd = lane.link.as_ref().map_or(-1, Link::fd);
                self.emit(EventKind::Handshake, attempt, fd, None);
                self.talk(index);
            }
            Err(fault) => self.report_failure(index, (fault, 0), false),
        }
    }

    pub(super) fn talk(&mut self, index: usize) {
        loop {
            let Some(lane) = self.lanes.get_mut(index) else { return };
            let (Some(link), Some(dialogue)) = (&lane.link, &mut lane.dialogue) else { return };
            match link.talk(dialogue) {
                Ok(Pause::Readable) => return self.watch(index, libc::POLLIN),
                Ok(Pause::Writable) => return self.watch(index, libc::POLLOUT),
                Ok(Pause::Reconnect) => return self.reconnect(index),
                Ok(Pause::Done) => {
                    let id = lane.id;
                    lane.dialogue = None;
                    lane.phase = Phase::Tcp;
                    self.watch(index, 0);
                    let now = self.now();
                    self.trace.ready(id, now);
                    return self.race.report(id, Told::Ready);
                }
                Ok(Pause::Credentials) => {
                    let Want::Credentials(challenges) = dialogue.want() else { return };
                    let Some(route) = self.routes.get(lane.route as usize) else { return };
                    let answer = match self.hooks.proxy_auth(lane.id, route, challenges) {
                        Decision::GiveUp => None,
                        Decision::Answer(value) => Some(value),
                        Decision::Later => {
                            lane.phase = Phase::Parked;
                            let (id, fd) = (lane.id, link.fd());
                            self.emit(EventKind::Credentials, id, fd, None);
                            return self.watch(index, 0);
                        }
                    };
                    if let Err(fault) = dialogue.answer(answer.as_deref()) {
                        return self.report_failure(index, (fault, 0), false);
                    }
                }
                Err(failure) => return self.report_failure(index, failure, false),
            }
        }
    }

    pub(super) fn late_answers(&mut self) {
        let answers = {
            let mut held = self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::take(&mut *held)
        };
        for (attempt, value) in answers {
            let parked = |lane: &Lane| lane.id == attempt && lane.phase == Phase::Parked;
            let Some(index) = self.lanes.iter().position(parked) else { continue };
            let Some(lane) = self.lanes.get_mut(index) else { continue };
            lane.phase = Phase::Talking;
            match lane.dialogue.as_mut().map(|dialogue| dialogue.answer(value.as_deref())) {
                Some(Err(fault)) => self.report_failure(index, (fault, 0), false),
                _ => self.talk(index),
            }
        }
    }

    /// A new connection for the same attempt: the proxy closed, or the socket had reached itself.
    pub(super) fn reconnect(&mut self, index: usize) {
        self.watch(index, 0);
        let Some(lane) = self.lanes.get_mut(index) else { return };
        let Some(link) = lane.link.take() else { return };
        let (id, again) = (lane.id, lane.dialogue.is_some());
        lane.phase = Phase::Connecting { again };
        let Some(route) = self.routes.get(lane.route as usize).cloned() else { return };
        self.emit(EventKind::FdClosing, id, link.fd(), None);
        self.source.report(&route, Report::Started);
        match link.restart(&self.options.socket, &route, &mut *self.hooks) {
            Ok((link, progress)) => {
                self.emit(EventKind::Start, id, link.fd(), None);
                if let Some(lane) = self.lanes.get_mut(index) {
                    lane.link = Some(link);
                }
                self.progressed(index, progress);
            }
            Err(failure) => self.report_failure(index, failure, false),
        }
        self.generation += 1;
    }

    /// Tells the race; what is told to others waits until the race has taken it.
    pub(super) fn report_failure(&mut self, index: usize, failure: Failure, at_once: bool) {
        self.watch(index, 0);
        let Some(lane) = self.lanes.get_mut(index) else { return };
        lane.failure = Some(failure);
        let stop = self.options.tunnel_refusal == TunnelRefusal::Stop;
        let told = match failure.0 {
            Fault::ConnectAuthRequired | Fault::ConnectAuthLoop if stop => Told::Stop,
            fault => match fault.blame() {
                Blame::Refusal if stop => Told::Stop,
                Blame::Exhausted => Told::Exhausted,
                _ => Told::Failed { at_once },
            },
        };
        self.race.report(lane.id, told);
    }

    pub(super) fn remove(&mut self, attempt: u32) -> Option<Lane> {
        let index = self.lanes.iter().position(|lane| lane.id == attempt)?;
        self.watch(index, 0);
        self.generation += 1;
        Some(self.lanes.remove(index))
    }

    pub(super) fn close(&mut self, id: u32, link: Option<Link>) {
        if let Some(link) = link {
            self.emit(EventKind::FdClosing, id, link.fd(), None);
            link.close(&mut *self.hooks);
        }
    }
}
