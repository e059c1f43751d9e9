//! What SOCKS and HTTP proxies answer: however the bytes are cut, the same comes out.

use crate::mutate::Mutator;
use crate::{Target, cases};
use byway::dial::connect::{Limits, Reply};
use byway::dial::socks::{Credentials, Host, Options, Socks, Version};
use serde_json::Value;
use std::path::Path;

pub(crate) fn targets(folder: &Path) -> Vec<Target> {
    let cases = cases(folder, "connect");
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> =
            text.bytes().filter_map(|c| char::from(c).to_digit(16)).map(|d| d as u8).collect();
        digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect()
    };
    let socks = cases.iter().filter(|case| case["kind"] == "socks").map(|case| {
        let parts = case["recv"].as_array().into_iter().flatten().filter_map(Value::as_str);
        parts.flat_map(hex).collect()
    });
    let latin1 = |text: &str| text.chars().map(|c| u32::from(c) as u8).collect::<Vec<u8>>();
    let replies = cases.iter().filter(|case| case["kind"] == "connect");
    vec![
        Target {
            name: "socks_reply",
            seeds: socks.collect(),
            words: &[
                "\x05\0",
                "\x05\x02",
                "\x01\0",
                "\x05\0\0\x01",
                "\x05\0\0\x03",
                "\0\x5a",
                "\x05\0\0\x04",
            ],
            look: socks_reply,
            work: (60, 2),
            every: 1,
        },
        Target {
            name: "connect_reply",
            seeds: replies.filter_map(|case| case["recv"].as_str()).map(latin1).collect(),
            words: &[
                "HTTP/1.1 200 OK\r\n",
                "HTTP/1.0 407 x\r\n",
                "\r\n",
                "\n",
                "Content-Length: ",
                "Transfer-Encoding: chunked\r\n",
                "Proxy-Authenticate: Basic realm=\"a\"\r\n",
                "HTTP/1.1 100 Continue\r\n\r\n",
                "Connection: close\r\n",
            ],
            look: connect_reply,
            work: (60, 3),
            every: 1,
        },
    ]
}

/// What was sent, and how it ended, when the proxy's bytes come in these pieces.
fn socks_dialogue(version: Version, user: bool, pieces: &[&[u8]]) -> (Vec<u8>, String) {
    let credentials = user.then_some(Credentials { user: "user", password: "pass" });
    // SOCKS4 has no names.
    let host = if version == Version::V4 { "192.0.2.7" } else { "o.example" };
    let host = Host::parse(host).unwrap();
    let mut socks = Socks::new(version, host, 443, credentials, Options::default()).unwrap();
    let mut sent = Vec::new();
    let mut left = Vec::new();
    let drain = |socks: &mut Socks, sent: &mut Vec<u8>| {
        let len = socks.output().len();
        sent.extend_from_slice(socks.output());
        socks.sent(len);
    };
    drain(&mut socks, &mut sent);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let want = socks.want_read();
            if want == 0 {
                left.extend_from_slice(rest);
                break;
            }
            let (now, later) = rest.split_at(want.min(rest.len()));
            match socks.feed(now) {
                Ok(used) => assert_eq!(used, now.len(), "takes what it asked for"),
                Err(fault) => return (sent, fault.name().to_owned()),
            }
            drain(&mut socks, &mut sent);
            rest = later;
        }
    }
    assert!(sent.len() < 1024);
    let end =
        if socks.is_done() { format!("{:?} {left:?}", socks.bound()) } else { format!("{:?}", socks.eof()) };
    (sent, end)
}

fn socks_reply(input: &[u8], mutator: &mut Mutator) {
    let version = [Version::V4, Version::V4a, Version::V5, Version::V5][mutator.below(4)];
    let user = mutator.below(2) == 0;
    let whole = socks_dialogue(version, user, &[input]);
    let one_by_one: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(socks_dialogue(version, user, &one_by_one), whole);
    let cut = mutator.cut(input);
    assert_eq!(socks_dialogue(version, user, &cut), whole);
}

fn connect_dialogue(pieces: &[&[u8]]) -> String {
    let mut reply = Reply::new(Limits::default());
    let mut left = Vec::new();
    for piece in pieces {
        match reply.feed(piece) {
            Ok(used) => {
                assert!(used <= piece.len());
                left.extend_from_slice(&piece[used..]);
            }
            Err(fault) => return fault.to_string(),
        }
    }
    match reply.answer() {
        Some(answer) => format!("{answer:?} {left:?}"),
        None => format!("{:?}", reply.eof()),
    }
}

fn connect_reply(input: &[u8], mutator: &mut Mutator) {
    let whole = connect_dialogue(&[input]);
    let cut = mutator.cut(input);
    assert_eq!(connect_dialogue(&cut), whole);
}
