//! Random inputs with fixed seeds: the parsers, the dialogue and the race core.

use byway::dial::connect::{Limits, Reply};
use byway::dial::handshake::{Handshake, Protocol, Settings, Want};
use byway::dial::race::{
    Action, Candidate, CapPolicy, Ending, Family, OnFailure, Race, RaceUntil, Report, Rules,
};
use byway::dial::socks::{Credentials, Host, Options, Socks, Version};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// Mutated pieces of real answers: more likely to get deep than noise.
fn answer(dice: &mut Dice) -> Vec<u8> {
    const PIECES: [&[u8]; 22] = [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 407 x\r\n",
        b"HTTP/1.1 407 Auth\r\n",
        b"HTTP/1.1 100 C\r\n\r\n",
        b"HTTP/1.1 503 no\n",
        b"\r\n",
        b"\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"Proxy-Authenticate: Basic realm=\"p\"\r\n",
        b" folded\r\n",
        b"Connection: close\r\n",
        b"hello",
        b"\x05\x00",
        b"\x05\x02\x01\x00",
        b"\x05\x00\x00\x03\xff",
        b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00",
        b"\x00\x5a\x00\x00\x00\x00\x00\x00",
    ];
    let mut bytes = Vec::new();
    for _ in 0..1 + dice.roll(8) {
        bytes.extend_from_slice(PIECES[dice.roll(22) as usize]);
    }
    for _ in 0..dice.roll(3) {
        let at = dice.roll(bytes.len() as u64) as usize;
        bytes[at] = dice.roll(256) as u8;
    }
    bytes
}

/// Feeds in random pieces; the outcome must be that of the whole.
fn fed<T: PartialEq + std::fmt::Debug>(dice: &mut Dice, bytes: &[u8], mut run: impl FnMut(&[&[u8]]) -> T) {
    let whole = run(&[bytes]);
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (part, more) = rest.split_at(1 + dice.roll(rest.len() as u64) as usize);
        parts.push(part);
        rest = more;
    }
    assert_eq!(run(&parts), whole, "{:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn parsers_give_the_same_for_every_split_and_take_no_byte_of_the_tunnel() {
    let mut dice = Dice(7);
    for _ in 0..30_000 {
        let bytes = answer(&mut dice);
        let limits = Limits { max_line: 64, max_header: 256, max_drain: 32, ..Limits::default() };
        let upstream = dice.roll(4) == 0;
        fed(&mut dice, &bytes, |parts| {
            let mut reply = Reply::new(Limits { upstream, ..limits });
            let mut taken = 0;
            for part in parts {
                match reply.feed(part) {
                    Ok(used) => taken += used,
                    Err(fault) => return (Err(fault), None),
                }
            }
            let answer = reply.answer().cloned();
            let end = reply.eof().map(|()| answer.map_or(0, |_| taken));
            (end, reply.answer().cloned())
        });
        let credentials = Credentials { user: "u", password: "p" };
        let with = (dice.roll(2) == 0).then_some(credentials);
        let version = [Version::V4, Version::V5][dice.roll(2) as usize];
        let strict = dice.roll(2) == 0;
        fed(&mut dice, &bytes, |parts| {
            let options = Options { strict, ..Options::default() };
            let host = Host::Ip([192, 0, 2, 1].into());
            let mut socks = Socks::new(version, host, 1, with, options).unwrap();
            let mut taken = 0;
            for part in parts {
                match socks.feed(part) {
                    Ok(used) => taken += used,
                    Err(fault) => return (Err(fault), None),
                }
            }
            let done = socks.is_done();
            (Ok(if done { taken } else { 0 }), Some((socks.bound().cloned(), socks.eof())))
        });
    }
}

#[test]
fn a_dialogue_always_ends_whatever_the_proxy_says() {
    let mut dice = Dice(11);
    for _ in 0..10_000 {
        let protocol = [Protocol::Connect, Protocol::Socks(Version::V5)][dice.roll(2) as usize];
        let settings = Settings {
            max_tunnel_attempts: 1 + dice.roll(5) as u32,
            repeat_credentials: dice.roll(2) == 0,
            ..Settings::default()
        };
        let host = Host::Name("o.example");
        let mut dialogue = Handshake::new(protocol, host, 443, None, settings).unwrap();
        let mut turns = 0;
        loop {
            turns += 1;
            assert!(turns < 400, "{:?}", dialogue.want());
            match dialogue.want() {
                Want::Write(bytes) => {
                    let n = 1 + dice.roll(bytes.len() as u64) as usize;
                    dialogue.sent(n);
                }
                Want::Read(_) | Want::Peek => {
                    let over = if dice.roll(5) == 0 {
                        dialogue.eof().is_err()
                    } else {
                        let bytes = answer(&mut dice);
                        dialogue.feed(&bytes).is_err()
                    };
                    if over {
                        assert!(matches!(dialogue.want(), Want::Failed(_)));
                    }
                }
                Want::Credentials(_) => {
                    let _ = dialogue.answer((dice.roll(3) > 0).then_some("Basic x"));
                }
                Want::Reconnect => {
                    let _ = dialogue.reconnected();
                }
                Want::Done | Want::Failed(_) => break,
            }
        }
        assert!(dialogue.requests() <= 6);
    }
}

fn some_rules(dice: &mut Dice) -> Rules {
    Rules {
        attempt_delay_ms: dice.roll(400) as u32,
        attempt_timeout_ms: dice.roll(600) as u32,
        ready_timeout_ms: dice.roll(600) as u32,
        overall_timeout_ms: if dice.roll(3) == 0 { dice.roll(3000) as u32 } else { 0 },
        max_in_flight: dice.roll(4) as u32,
        cap_policy: [CapPolicy::DropOldest, CapPolicy::Wait][dice.roll(2) as usize],
        on_failure: [OnFailure::WhenIdle, OnFailure::Immediate, OnFailure::Latest][dice.roll(3) as usize],
        race_until: [RaceUntil::Tcp, RaceUntil::Ready, RaceUntil::Host][dice.roll(3) as usize],
        first_family_count: dice.roll(3) as u32,
        across_selections: dice.roll(2) == 0,
        upstream_timing: dice.roll(5) == 0,
        ..Rules::default()
    }
}

/// Drives random races and checks what must hold for every one of them.
#[test]
fn every_race_keeps_its_promises() {
    let mut dice = Dice(13);
    for round in 0..20_000 {
        let rules = some_rules(&mut dice);
        let mut race = Race::new(rules);
        let routes = dice.roll(8) as u32;
        let live = dice.roll(3) == 0;
        let candidate = |route: u32| Candidate {
            route,
            family: if route.is_multiple_of(2) { Family::V6 } else { Family::V4 },
            selection: if live { 0 } else { route / 3 },
        };
        if live {
            race.expect_families();
        } else {
            race.add_selection((0..routes).map(candidate));
        }
        race.no_more_routes();
        let mut open = if live { vec![Family::V4, Family::V6] } else { vec![] };
        let mut now = 0_u64;
        // attempt -> in its handshake
        let mut flying: Vec<(u32, bool)> = Vec::new();
        let (mut started, mut last_start, mut resumed) = (0_u64, None::<u64>, 0);
        let mut sync_failed = false;
        for step in 0.. {
            assert!(step < 5000, "round {round} does not end: {rules:?}");
            match race.next(now) {
                Action::Start { attempt, .. } => {
                    started += 1;
                    if let (Some(last), false) = (last_start, flying.is_empty() || sync_failed || resumed > 0)
                    {
                        assert!(now - last >= 10, "round {round}: two starts within 10 ms");
                    }
                    last_start = Some(now);
                    flying.push((attempt, false));
                    let cap = rules.max_in_flight as usize;
                    assert!(cap == 0 || flying.len() <= cap, "round {round}: more in flight than allowed");
                    sync_failed = false;
                    match dice.roll(8) {
                        0 => {
                            sync_failed = true;
                            race.report(attempt, Report::Failed { at_once: true });
                        }
                        1 => {
                            sync_failed = true;
                            race.report(attempt, Report::Exhausted);
                        }
                        _ => {}
                    }
                }
                Action::Handshake(attempt) => {
                    flying.iter_mut().find(|f| f.0 == attempt).expect("in flight").1 = true;
                }
                Action::Offer(attempt) => {
                    if dice.roll(2) == 0 {
                        race.reject(attempt)
                    } else {
                        race.confirm(attempt)
                    };
                }
                Action::Cancel(attempt, _)
                | Action::Failed(attempt)
                | Action::TimedOut { attempt, .. }
                | Action::PutBack(attempt) => {
                    let index = flying.iter().position(|f| f.0 == attempt);
                    flying.remove(index.expect("every attempt ends once"));
                }
                Action::NeedRoutes => panic!("asked after no_more_routes"),
                Action::Wait(deadline) => {
                    assert!(deadline.is_none_or(|at| at > now), "round {round}: a deadline in the past");
                    let quiet = flying.is_empty() && open.is_empty();
                    assert!(deadline.is_some() || !quiet, "round {round}: waits for nothing");
                    if let Some(family) =
                        open.pop_if(|_| dice.roll(2) == 0 || deadline.is_none() && flying.is_empty())
                    {
                        let some: Vec<_> =
                            (0..routes).map(candidate).filter(|c| c.family == family).collect();
                        race.add_family(now, family, some, true);
                    } else if !flying.is_empty() && dice.roll(3) > 0 {
                        let (attempt, handshake) = flying[dice.roll(flying.len() as u64) as usize];
                        let report = match dice.roll(6) {
                            0 => Report::Stop,
                            1 | 2 => Report::Failed { at_once: false },
                            _ if handshake => Report::Ready,
                            3 => Report::Tcp { handshake: true },
                            _ => Report::Tcp { handshake: false },
                        };
                        race.report(attempt, report);
                    } else {
                        let ahead = 1 + dice.roll(300);
                        now = deadline.map_or(now + ahead, |at| at.min(now + ahead));
                        if dice.roll(200) == 0 {
                            race.cancel();
                        }
                    }
                }
                Action::Ended(ending) => {
                    match ending {
                        Ending::Won(winner) => {
                            assert_eq!(flying, [(winner, flying[0].1)], "round {round}: losers are over");
                            flying.clear();
                            if resumed < 2 && dice.roll(2) == 0 {
                                resumed += 1;
                                assert!(race.resume(now, None));
                                continue;
                            }
                        }
                        _ => assert!(flying.is_empty(), "round {round}: something is left in flight"),
                    }
                    assert_eq!(race.next(now), Action::Ended(ending), "an ending stays");
                    break;
                }
            }
        }
        let _ = started;
    }
}
