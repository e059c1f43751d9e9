//! How attempts and the operation end: what is reported to whom, which error a caller sees, how the socket leaves.

use super::event::{Connected, Event, EventKind, FailureRecord};
use super::{Operation, Phase, State, Won};
use crate::dial::attempt::{Failure, Link};
use crate::dial::explain::End;
use crate::dial::fault::{Blame, Fault};
use crate::dial::options::TunnelRefusal;
use crate::dial::race::{Ending, Millis, RaceUntil, Why};
use crate::dial::source::{Report, RouteSource, Via};
use crate::error::{Error, Result, Source, Status};
use core::sync::atomic::Ordering;
use std::os::fd::RawFd;

impl<S: RouteSource> Operation<S> {
    pub(super) fn failed(&mut self, attempt: u32, timeout: Option<Failure>) {
        let Some(mut lane) = self.remove(attempt) else { return };
        self.close(attempt, lane.link.take());
        let handshake = lane.dialogue.is_some();
        let (fault, errno) = timeout.or(lane.failure).unwrap_or((Fault::Socket(0), 0));
        self.record(attempt, lane.route, lane.started, (fault, errno), handshake);
    }

    pub(super) fn record(
        &mut self,
        attempt: u32,
        route: u32,
        started: Millis,
        failure: Failure,
        handshake: bool,
    ) {
        let now = self.now();
        let (fault, errno) = failure;
        self.trace.ended(attempt, now, End::Failed(fault, errno));
        self.emit(EventKind::Failed, attempt, -1, Some(fault));
        let Some(shown) = self.routes.get(route as usize).cloned() else { return };
        let leg = self.source.leg(&shown);
        let error = fault.error(errno, &leg.hop.to_string());
        let upstream = self.options.upstream_reports;
        // Told to whom: the table in the module documentation of `dial`.
        let (database, selector) = match fault.blame() {
            Blame::Route if upstream => (false, !handshake),
            Blame::Route => (true, true),
            Blame::Target => (!upstream, false),
            Blame::Refusal => (!upstream && self.options.tunnel_refusal == TunnelRefusal::Next, false),
            Blame::Local if upstream => (false, true),
            Blame::Auth | Blame::Local | Blame::Exhausted => (false, false),
        };
        self.source.report(&shown, Report::Failed { fault, errno, database, selector, error: &error });
        self.failures.push(FailureRecord {
            route: Some(shown),
            attempt,
            fault: Some(fault),
            errno,
            span_ms: (started, now),
            error,
        });
    }

    pub(super) fn canceled(&mut self, attempt: u32, why: Why) {
        let Some(mut lane) = self.remove(attempt) else { return };
        self.close(attempt, lane.link.take());
        let now = self.now();
        self.trace.ended(attempt, now, End::Canceled(why));
        self.emit(EventKind::Canceled, attempt, -1, None);
        let Some(route) = self.routes.get(lane.route as usize).cloned() else { return };
        if self.options.upstream_reports {
            let fault = Fault::Socket(libc::ECANCELED);
            let error = Error::bare(Status::E_CANCELED);
            let report = Report::Failed { fault, errno: 0, database: false, selector: true, error: &error };
            self.source.report(&route, report);
        } else {
            self.source.report(&route, Report::Canceled);
        }
    }

    pub(super) fn offered(&mut self, attempt: u32) {
        let now = self.now();
        self.trace.ready(attempt, now);
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == attempt) {
            lane.phase = Phase::Offered;
            let fd = lane.link.as_ref().map_or(-1, Link::fd);
            self.emit(EventKind::Offer, attempt, fd, None);
        }
    }

    pub(super) fn ended(&mut self, ending: Ending) {
        let now = self.now();
        match ending {
            Ending::Won(attempt) => {
                let Some(lane) = self.remove(attempt) else { return };
                let Some(route) = self.routes.get(lane.route as usize).cloned() else { return };
                let needs_proxy_tls = self.source.leg(&route).via == Via::Https;
                self.trace.ended(attempt, now, End::Won);
                self.emit(EventKind::Won, attempt, lane.link.as_ref().map_or(-1, Link::fd), None);
                // A proxy behind TLS has proved nothing yet: the host confirms.
                let reported = !needs_proxy_tls;
                if reported {
                    self.source.report(&route, Report::Connected);
                }
                let won = Won { attempt, route, link: lane.link, needs_proxy_tls, reported };
                self.state = State::Won(Box::new(won));
            }
            Ending::Failed | Ending::Stopped(_) => {
                let attempt = if let Ending::Stopped(attempt) = ending { attempt } else { 0 };
                self.state = State::Ended(self.all_failed(attempt));
            }
            Ending::Deadline => {
                let message = format!("no connection within {now} ms");
                let error = Error::new(Status::E_TIMEOUT, message).source(Source::Engine);
                self.state = State::Ended(self.with_causes(error));
            }
            Ending::Canceled => {
                let error = self.ended_by.take().unwrap_or_else(|| {
                    let status = match self.shared.stopped.load(Ordering::SeqCst) {
                        0 => Status::E_CANCELED,
                        status => Status(status),
                    };
                    Error::bare(status).source(Source::Engine)
                });
                self.state = State::Ended(self.with_causes(error));
            }
        }
    }

    pub(super) fn with_causes(&self, error: Error) -> Error {
        error.causes(self.failures.iter().map(|failure| failure.error.clone()))
    }

    /// The error when nothing is left: a failure that ended the race, else the first one of a route, else of the
    /// source, else a local one; all of them are its causes.
    pub(super) fn all_failed(&self, stopped_by: u32) -> Error {
        let local = |failure: &&FailureRecord<S::Route>| failure.fault.is_some_and(Fault::is_local);
        let stopper = self.failures.iter().find(|f| stopped_by != 0 && f.attempt == stopped_by);
        let main =
            stopper.or_else(|| self.failures.iter().find(|f| !local(f))).or_else(|| self.failures.first());
        let Some(main) = main else {
            return Error::new(Status::E_NO_ROUTE, "there is no route to try").source(Source::Engine);
        };
        let refused = matches!(main.error.status(), Status::E_PROXY_REFUSED | Status::E_PROXY_AUTH);
        let status = match main.error.status() {
            status if stopper.is_some() && refused || self.failures.iter().all(|f| local(&f)) => status,
            _ if self.failures.iter().all(|f| f.fault.is_none()) => main.error.status(),
            _ => Status::E_CONNECT,
        };
        let error = Error::new(status, main.error.message()).subject(main.error.about());
        let error =
            error.os(main.error.os_errno()).host(main.error.host_code()).source(main.error.found_by());
        self.with_causes(error)
    }

    pub(super) fn emit(&mut self, kind: EventKind, attempt: u32, fd: RawFd, fault: Option<Fault>) {
        if self.options.events {
            self.events.push_back(Event { kind, attempt, fd, at_ms: self.now(), fault });
        }
    }

    /// The oldest event not fetched yet; none are kept unless the options ask for them.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // ---- the result

    /// Moves the connected socket out, once. Of an offered one the race goes on.
    ///
    /// # Errors
    /// `E_STATE` when there is none or it was taken, the operation's own error when it failed, `E_FORKED`.
    pub fn take(&mut self) -> Result<Connected<S::Route>> {
        self.check_process()?;
        let taken = || Error::new(Status::E_STATE, "the socket was taken before").source(Source::Engine);
        let nonblocking = self.options.socket.nonblocking;
        let (attempt, route, link, needs_proxy_tls, provisional) = match &mut self.state {
            State::Ended(error) => return Err(error.clone()),
            State::Won(won) => {
                let link = won.link.take().ok_or_else(taken)?;
                (won.attempt, won.route.clone(), link, won.needs_proxy_tls, false)
            }
            State::Running => {
                let none = || Error::new(Status::E_STATE, "no socket is ready").source(Source::Engine);
                let index = self.offer().ok_or_else(none)?;
                let lane = self.lanes.get_mut(index).ok_or_else(none)?;
                let link = lane.link.take().ok_or_else(none)?;
                let route = self.routes.get(lane.route as usize).cloned().ok_or_else(none)?;
                let needs_tls = self.source.leg(&route).via == Via::Https;
                (lane.id, route, link, needs_tls, true)
            }
        };
        if self.poller.is_some() {
            // Nothing to fetch any more: quiet until something happens.
            self.shared.wake.take(0);
        }
        self.arm();
        let socket = link.hand_over(nonblocking).map_err(|(fault, errno)| fault.error(errno, ""))?;
        Ok(Connected { socket, route, attempt, needs_proxy_tls, provisional })
    }

    /// The host is content with this attempt, usually after TLS. Ends the race of [`RaceUntil::Host`]; for a proxy
    /// behind TLS it is the moment at which the route counts as connected.
    ///
    /// # Errors
    /// `E_STATE` when this attempt is not on offer and has not won, `E_FORKED`.
    pub fn confirm(&mut self, attempt: u32) -> Result<()> {
        self.check_process()?;
        if matches!(self.state, State::Running) && self.race.confirm(attempt) {
            self.settle();
            self.arm();
        }
        match &mut self.state {
            State::Won(won) if won.attempt == attempt => {
                if !core::mem::replace(&mut won.reported, true) {
                    self.source.report(&won.route, Report::Connected);
                }
                Ok(())
            }
            _ => Err(Error::new(Status::E_STATE, "this attempt has not won").source(Source::Engine)),
        }
    }

    /// The host could not use this attempt's socket: go on. First the follow-up if there is one (the same target
    /// tried differently), then those that lost, then what was never tried. A socket not taken is closed here.
    ///
    /// # Errors
    /// `E_STATE` when this attempt is not on offer and has not won, `E_FORKED`.
    pub fn resume(&mut self, attempt: u32, fault: Fault, follow_up: Option<S::Route>) -> Result<()> {
        self.check_process()?;
        let now = self.now();
        if matches!(self.state, State::Running) && self.race.reject(attempt) {
            if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == attempt) {
                lane.failure = Some((fault, 0));
            }
        } else {
            let matching = matches!(&self.state, State::Won(won) if won.attempt == attempt);
            if !matching {
                let message = "this attempt has not won, nothing to go on from";
                return Err(Error::new(Status::E_STATE, message).source(Source::Engine));
            }
            if let State::Won(won) = core::mem::replace(&mut self.state, State::Running) {
                self.close(attempt, won.link);
                if let Some((route, started)) = self.trace.span(attempt) {
                    self.record(attempt, route, started, (fault, 0), true);
                }
            }
            let follow_up = follow_up.map(|route| {
                self.routes.push(route);
                self.candidate(self.routes.len() - 1, self.selections)
            });
            self.race.resume(now, follow_up);
        }
        self.settle();
        self.arm();
        Ok(())
    }

    /// True when what wins is decided by the host.
    pub fn needs_confirm(&self) -> bool {
        self.options.rules.race_until == RaceUntil::Host
    }
}
