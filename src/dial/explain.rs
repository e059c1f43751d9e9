//! The waterfall of an operation: who started when, who won, why the others ended.

use super::fault::Fault;
use super::op::Operation;
use super::race::{Millis, Why};
use super::source::{RouteSource, Via};
use crate::error::Error;
use core::fmt::Write as _;
use serde_json::{Map, Value, json};
use smallvec::SmallVec;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Won,
    Failed(Fault, i32),
    Canceled(Why),
}

#[derive(Clone, Copy, Debug)]
struct Span {
    attempt: u32,
    route: u32,
    started: Millis,
    tcp: Option<Millis>,
    ready: Option<Millis>,
    ended: Option<(Millis, End)>,
}

/// What an operation did, as it happened.
#[derive(Debug, Default)]
pub(super) struct Trace {
    spans: SmallVec<[Span; 2]>,
    source_failures: Vec<(Millis, Error)>,
}

impl Trace {
    pub(super) fn started(&mut self, attempt: u32, route: u32, now: Millis) {
        self.spans.push(Span { attempt, route, started: now, tcp: None, ready: None, ended: None });
    }

    fn change(&mut self, attempt: u32, change: impl FnOnce(&mut Span)) {
        if let Some(span) = self.spans.iter_mut().rev().find(|span| span.attempt == attempt) {
            change(span);
        }
    }

    pub(super) fn tcp(&mut self, attempt: u32, now: Millis) {
        self.change(attempt, |span| span.tcp = span.tcp.or(Some(now)));
    }

    pub(super) fn ready(&mut self, attempt: u32, now: Millis) {
        self.change(attempt, |span| span.ready = Some(now));
    }

    pub(super) fn ended(&mut self, attempt: u32, now: Millis, end: End) {
        self.change(attempt, |span| span.ended = Some((now, end)));
    }

    pub(super) fn source_failed(&mut self, error: &Error, now: Millis) {
        self.source_failures.push((now, error.clone()));
    }

    /// Route and start of an attempt.
    pub(super) fn span(&self, attempt: u32) -> Option<(u32, Millis)> {
        self.spans.iter().find(|span| span.attempt == attempt).map(|span| (span.route, span.started))
    }
}

fn why(why: Why) -> &'static str {
    match why {
        Why::Lost => "another attempt won",
        Why::Dropped => "oldest at the limit of attempts in flight",
        Why::Canceled => "the caller canceled",
        Why::Deadline => "the overall deadline passed",
        Why::Stopped => "another attempt ended the operation",
    }
}

fn via(via: Via) -> &'static str {
    use super::socks::Version;
    match via {
        Via::Direct => "direct",
        Via::Http => "http",
        Via::Https => "https",
        Via::Socks(Version::V4) => "socks4",
        Via::Socks(Version::V4a) => "socks4a",
        Via::Socks(Version::V5) => "socks5",
    }
}

impl End {
    fn word(self) -> &'static str {
        match self {
            End::Won => "connected",
            End::Failed(..) => "failed",
            End::Canceled(_) => "canceled",
        }
    }

    fn reason(self) -> String {
        match self {
            End::Won => String::new(),
            End::Failed(fault, errno) => {
                let mut text = fault.message().to_owned();
                if fault.number() != 0 {
                    let _ = write!(text, ": {}", fault.number());
                }
                if errno != 0 {
                    let _ = write!(text, " (errno {errno})");
                }
                text
            }
            End::Canceled(reason) => why(reason).to_owned(),
        }
    }
}

/// Columns of the bar in the text form.
const BAR: u64 = 40;

impl<S: RouteSource> Operation<S> {
    fn hop_text(&self, route: u32) -> String {
        self.leg_of(route).map_or_else(String::new, |leg| leg.hop.to_string())
    }

    fn headline(&self) -> String {
        match self.verdict() {
            None => "running".to_owned(),
            Some(Ok(attempt)) => format!("connected by attempt {attempt}"),
            Some(Err(error)) => format!("failed: {error}"),
        }
    }

    /// The waterfall for people: one line per attempt, with a bar on a common time axis. Shows no credentials.
    pub fn explain_text(&self) -> String {
        let spans = &self.trace().spans;
        let end_of = |span: &Span| span.ended.map_or_else(|| self.now(), |(at, _)| at);
        let total = spans.iter().map(end_of).max().unwrap_or(0).max(1);
        let mut text = format!("{}, {total} ms\n", self.headline());
        let column = |at: Millis| at.saturating_mul(BAR) / total;
        let width = spans.iter().map(|span| self.hop_text(span.route).len()).max().unwrap_or(0);
        for span in spans {
            let (from, to) = (column(span.started), column(end_of(span)));
            let bar: String = (0..=BAR)
                .map(|at| match at {
                    at if at < from || at > to => ' ',
                    at if at == to => '|',
                    at if span.tcp.is_some_and(|tcp| at >= column(tcp)) => '=',
                    _ => '-',
                })
                .collect();
            let (word, at, reason) = match span.ended {
                Some((at, end)) => (end.word(), at, end.reason()),
                None => ("running", end_of(span), String::new()),
            };
            let via = self.leg_of(span.route).map_or("", |leg| via(leg.via));
            let _ = write!(
                text,
                "#{:<2} {:width$} {via:7} [{bar}] {:>6} ms {word} at {at} ms",
                span.attempt,
                self.hop_text(span.route),
                span.started,
            );
            if !reason.is_empty() {
                let _ = write!(text, ": {reason}");
            }
            text.push('\n');
        }
        for (at, error) in &self.trace().source_failures {
            let _ = writeln!(text, "routes: {error} at {at} ms");
        }
        for warning in self.options().warnings() {
            let _ = writeln!(text, "note: {warning}");
        }
        text
    }

    /// The waterfall as JSON: `result`, `attempt`, `error`, `attempts` in order of start, `route_errors`,
    /// `warnings`. Times in milliseconds since the first step. Shows no credentials.
    pub fn explain_json(&self) -> Value {
        let attempts: Vec<Value> = self.trace().spans.iter().map(|span| self.span_json(span)).collect();
        let mut all = Map::new();
        let verdict = self.verdict();
        let result = match verdict {
            None => "running",
            Some(Ok(_)) => "connected",
            Some(Err(_)) => "failed",
        };
        all.insert("result".into(), json!(result));
        match verdict {
            Some(Ok(attempt)) => {
                all.insert("attempt".into(), json!(attempt));
            }
            Some(Err(error)) => {
                all.insert(
                    "error".into(),
                    json!({"status": error.status().name(), "message": error.to_string()}),
                );
            }
            None => {}
        }
        all.insert("attempts".into(), attempts.into());
        let route_errors = self.trace().source_failures.iter();
        let route_errors = route_errors.map(|(at, e)| json!({"at_ms": at, "message": e.to_string()}));
        all.insert("route_errors".into(), route_errors.collect::<Vec<_>>().into());
        all.insert("warnings".into(), self.options().warnings().into());
        Value::Object(all)
    }

    fn span_json(&self, span: &Span) -> Value {
        let mut one = Map::new();
        one.insert("attempt".into(), json!(span.attempt));
        if let Some(leg) = self.leg_of(span.route) {
            one.insert("hop".into(), json!(leg.hop.to_string()));
            one.insert("via".into(), json!(via(leg.via)));
            if leg.via != Via::Direct {
                one.insert("target".into(), json!(format!("{}:{}", leg.host, leg.port)));
            }
        }
        one.insert("started_ms".into(), json!(span.started));
        for (name, at) in [("tcp_ms", span.tcp), ("ready_ms", span.ready)] {
            if let Some(at) = at {
                one.insert(name.into(), json!(at));
            }
        }
        match span.ended {
            None => {
                one.insert("outcome".into(), json!("running"));
            }
            Some((at, end)) => {
                one.insert("ended_ms".into(), json!(at));
                one.insert("outcome".into(), json!(end.word()));
                if end != End::Won {
                    one.insert("reason".into(), json!(end.reason()));
                }
                if let End::Failed(fault, errno) = end {
                    one.insert("fault".into(), json!(fault.to_string()));
                    one.insert("errno".into(), json!(errno));
                }
            }
        }
        Value::Object(one)
    }
}
