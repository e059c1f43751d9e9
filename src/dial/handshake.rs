//! The dialogue with one proxy, over whatever carries its bytes: a socket of ours, or the host's TLS to an HTTPS
//! proxy.
//!
//! Pure. [`Handshake::want`] says what is needed next; the caller writes, reads, asks for credentials or connects
//! again, and says so. The budget for CONNECT counts requests on kept and on new connections together.

use super::connect::{self, Answer, Limits, Reply};
use super::fault::Fault;
use super::socks::{self, Credentials, Host, Socks};

/// What the proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SOCKS of this version.
    Socks(socks::Version),
    /// HTTP CONNECT.
    Connect,
}

/// Switches and limits of both protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// SOCKS switches.
    pub socks: socks::Options,
    /// Limits of the CONNECT answer.
    pub limits: Limits,
    /// `User-Agent` of CONNECT; empty for none. Default `byway/VERSION`.
    pub user_agent: String,
    /// Further headers of CONNECT, for the proxy alone.
    pub headers: Vec<(String, String)>,
    /// Most CONNECT requests for one route, over kept and new connections. Default 21.
    pub max_tunnel_attempts: u32,
    /// Send the proxy's own user and password as `Basic` with the first request. Default on.
    pub preemptive_basic: bool,
    /// Ask the host for credentials before the first request, with no challenge. Default off.
    pub ask_first: bool,
    /// Send a header value again that the proxy has refused. Default off.
    pub repeat_credentials: bool,
    /// Data right behind the success answer is a fault. Default off.
    pub reject_early_data: bool,
    /// Count new connections only, as upstream. Default off.
    pub count_connections_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            socks: socks::Options::default(),
            limits: Limits::default(),
            user_agent: concat!("byway/", env!("CARGO_PKG_VERSION")).to_owned(),
            headers: Vec::new(),
            max_tunnel_attempts: 21,
            preemptive_basic: true,
            ask_first: false,
            repeat_credentials: false,
            reject_early_data: false,
            count_connections_only: false,
        }
    }
}

impl Settings {
    /// The switches that restore upstream's tunnel.
    pub fn upstream() -> Self {
        Settings {
            limits: Limits { upstream: true, ..Limits::default() },
            preemptive_basic: false,
            ask_first: true,
            repeat_credentials: true,
            reject_early_data: true,
            count_connections_only: true,
            ..Settings::default()
        }
    }
}

/// What the dialogue needs next.
#[derive(Debug, PartialEq, Eq)]
pub enum Want<'a> {
    /// Write these bytes, then [`Handshake::sent`].
    Write(&'a [u8]),
    /// Read at most this many bytes and feed them; all of them belong to the dialogue.
    Read(usize),
    /// Look at what is there without taking it, feed it, then take as many bytes as were used.
    Peek,
    /// Credentials for these challenges (none before the first request), then [`Handshake::answer`].
    Credentials(&'a [String]),
    /// A new connection to the same hop, then [`Handshake::reconnected`].
    Reconnect,
    /// The tunnel stands.
    Done,
    /// It is over.
    Failed(Fault),
}

enum State {
    Socks(Box<Socks>),
    /// Bytes of the request still to be written.
    Send(Vec<u8>, usize),
    Receive(Box<Reply>),
    Ask {
        challenges: Vec<String>,
        reuse: bool,
        first: bool,
    },
    Reconnect,
    Done,
    Failed(Fault),
}

/// One dialogue.
pub struct Handshake {
    state: State,
    settings: Settings,
    host: String,
    port: u16,
    /// The proxy's own `Basic` value, until it was used.
    own: Option<String>,
    authorization: Option<String>,
    refused: Vec<String>,
    requests: u32,
    connections: u32,
    /// The request under way went out on a connection that carried one before.
    reused: bool,
    forgiven: bool,
    answered: bool,
    status: u16,
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let secrets = self.own.take().into_iter().chain(self.authorization.take());
        for secret in secrets.chain(self.refused.drain(..)) {
            wipe(secret.into_bytes());
        }
        if let State::Send(bytes, _) = &mut self.state {
            wipe(core::mem::take(bytes));
        }
    }
}

/// Overwrites bytes before their memory is given back.
fn wipe(mut bytes: Vec<u8>) {
    bytes.iter_mut().for_each(|b| *b = 0);
    core::hint::black_box(&bytes);
}

impl Handshake {
    /// A dialogue that asks for `host:port`. Whatever cannot be sent is refused here.
    pub fn new(
        protocol: Protocol,
        host: Host<'_>,
        port: u16,
        credentials: Option<Credentials<'_>>,
        settings: Settings,
    ) -> Result<Self, Fault> {
        host.check()?;
        let mut new = Handshake {
            state: State::Reconnect,
            host: host.to_string(),
            port,
            own: None,
            authorization: None,
            refused: Vec::new(),
            requests: 0,
            connections: 1,
            reused: false,
            forgiven: false,
            answered: false,
            status: 0,
            settings,
        };
        match protocol {
            Protocol::Socks(version) => {
                let socks = Socks::new(version, host, port, credentials, new.settings.socks)?;
                new.state = State::Socks(Box::new(socks));
            }
            Protocol::Connect => {
                connect::authority(&new.host, port)?;
                new.own = match credentials {
                    Some(c) => Some(connect::basic(c.user, c.password)?),
                    None => None,
                };
                if new.settings.preemptive_basic {
                    new.authorization = new.own.take();
                }
                if new.settings.ask_first && new.authorization.is_none() {
                    new.state = State::Ask { challenges: Vec::new(), reuse: true, first: true };
                } else {
                    new.send()?;
                }
            }
        }
        Ok(new)
    }

    fn send(&mut self) -> Result<(), Fault> {
        let request = connect::Request {
            host: &self.host,
            port: self.port,
            authorization: self.authorization.as_deref(),
            user_agent: &self.settings.user_agent,
            headers: &self.settings.headers,
        };
        let text = request.text()?;
        self.requests += 1;
        self.answered = false;
        self.state = State::Send(text.into_bytes(), 0);
        Ok(())
    }

    /// What is needed now.
    pub fn want(&self) -> Want<'_> {
        match &self.state {
            State::Socks(socks) if !socks.output().is_empty() => Want::Write(socks.output()),
            State::Socks(socks) => Want::Read(socks.want_read()),
            State::Send(bytes, at) => Want::Write(bytes.get(*at..).unwrap_or_default()),
            State::Receive(_) => Want::Peek,
            State::Ask { challenges, .. } => Want::Credentials(challenges),
            State::Reconnect => Want::Reconnect,
            State::Done => Want::Done,
            State::Failed(fault) => Want::Failed(*fault),
        }
    }

    /// `n` bytes of [`Want::Write`] were written.
    pub fn sent(&mut self, n: usize) {
        match &mut self.state {
            State::Socks(socks) => socks.sent(n),
            State::Send(bytes, at) => {
                *at = at.saturating_add(n).min(bytes.len());
                if *at == bytes.len() {
                    wipe(core::mem::take(bytes));
                    self.state = State::Receive(Box::new(Reply::new(self.settings.limits)));
                }
            }
            _ => {}
        }
    }

    /// Takes bytes that arrived and returns how many belong to the dialogue; the rest belongs to the tunnel.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let used = match &mut self.state {
            State::Socks(socks) => socks.feed(bytes),
            State::Receive(reply) => {
                self.answered |= !bytes.is_empty();
                reply.feed(bytes)
            }
            State::Failed(fault) => Err(*fault),
            _ => Ok(0),
        };
        let used = used.inspect_err(|fault| self.fail(*fault))?;
        if matches!(&self.state, State::Socks(socks) if socks.is_done()) {
            self.state = State::Done;
        }
        self.after_reply()?;
        if matches!(self.state, State::Done) && self.status != 0 && self.settings.reject_early_data {
            self.refuse_early_data(used < bytes.len())?;
        }
        Ok(used)
    }

    /// For a caller that sees later whether data lies behind the answer.
    pub fn refuse_early_data(&mut self, more: bool) -> Result<(), Fault> {
        if more && self.settings.reject_early_data {
            self.fail(Fault::EarlyData);
            return Err(Fault::EarlyData);
        }
        Ok(())
    }

    /// The peer closed, or the connection broke. A kept connection that is gone before the answer's first byte is
    /// replaced once: the proxy may have closed it just before the request.
    pub fn eof(&mut self) -> Result<(), Fault> {
        if self.reused && !self.answered && !self.forgiven {
            self.forgiven = true;
            self.requests = self.requests.saturating_sub(1);
            self.state = State::Reconnect;
            return Ok(());
        }
        let end = match &mut self.state {
            State::Socks(socks) => socks.eof(),
            State::Receive(reply) => reply.eof(),
            State::Send(..) => Err(Fault::ProxyClosed),
            State::Failed(fault) => Err(*fault),
            _ => Ok(()),
        };
        end.inspect_err(|fault| self.fail(*fault))?;
        self.after_reply()
    }

    fn fail(&mut self, fault: Fault) {
        self.state = State::Failed(fault);
    }

    fn after_reply(&mut self) -> Result<(), Fault> {
        let State::Receive(reply) = &self.state else { return Ok(()) };
        match reply.answer().cloned() {
            None => Ok(()),
            Some(Answer::Tunnel { status, .. }) => {
                self.status = status;
                self.state = State::Done;
                Ok(())
            }
            Some(Answer::Challenge { challenges, reuse }) => {
                self.refused.extend(self.authorization.take());
                let spent =
                    if self.settings.count_connections_only { self.connections } else { self.requests };
                let stays = self.settings.count_connections_only && reuse;
                if spent >= self.settings.max_tunnel_attempts && !stays {
                    self.fail(Fault::ConnectAuthLoop);
                    return Err(Fault::ConnectAuthLoop);
                }
                let basic = challenges
                    .iter()
                    .any(|c| c.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic")));
                let own = self.own.take_if(|_| basic);
                self.state = State::Ask { challenges, reuse, first: false };
                match own {
                    Some(own) => self.answer(Some(&own)),
                    None => Ok(()),
                }
            }
        }
    }

    /// The host's answer to [`Want::Credentials`]: a value for `Proxy-Authorization`, or none, which ends the
    /// dialogue unless it was asked before the first request.
    pub fn answer(&mut self, value: Option<&str>) -> Result<(), Fault> {
        let State::Ask { reuse, first, .. } = &self.state else { return Ok(()) };
        let (reuse, first) = (*reuse, *first);
        let outcome = match value {
            None if first => self.send(),
            None => Err(Fault::ConnectAuthRequired),
            Some(value) if !self.settings.repeat_credentials && self.refused.iter().any(|r| r == value) => {
                Err(Fault::ConnectAuthLoop)
            }
            Some(value) => {
                self.authorization = Some(value.to_owned());
                if reuse {
                    self.reused = !first;
                    self.send()
                } else {
                    self.state = State::Reconnect;
                    Ok(())
                }
            }
        };
        outcome.inspect_err(|fault| self.fail(*fault))
    }

    /// A new connection to the same hop stands.
    pub fn reconnected(&mut self) -> Result<(), Fault> {
        if matches!(self.state, State::Reconnect) {
            self.connections += 1;
            self.reused = false;
            self.send().inspect_err(|fault| self.fail(*fault))?;
        }
        Ok(())
    }

    /// CONNECT requests sent so far.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Connections used so far.
    pub fn connections(&self) -> u32 {
        self.connections
    }

    /// Status of the CONNECT answer that opened the tunnel, 0 for SOCKS or before.
    pub fn status(&self) -> u16 {
        self.status
    }
}
