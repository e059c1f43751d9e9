//! Route database as JSON: what a host keeps over a restart. Entries whose proxy has a user name are left out and
//! counted, because credentials go nowhere.

use super::address::Origin;
use super::compat::Compat;
use super::database::{FailedRoute, OriginText, RouteDatabase};
use super::failure::Failure;
use super::host::Host;
use super::ip::Ip;
use super::proxy::{Proxy, ProxyKind, ProxySpec};
use super::route::RouteKey;
use crate::error::{Error, Position, Result, Source, Status};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Largest text an import reads.
const MAX_IMPORT: usize = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    #[serde(default)]
    left_out: usize,
    failed: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    tls: bool,
    host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope_id: Option<u32>,
    port: u16,
    #[serde(default)]
    tls_identity: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tls_identity_bytes: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy: Option<ProxyEntry>,
    hop: String,
    hop_port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    failure: String,
    #[serde(default)]
    os_errno: i32,
    periods: u32,
    age_ms: u64,
    /// Absent: until connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remaining_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProxyEntry {
    kind: String,
    host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    port: i64,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

impl Entry {
    fn of(failed: &FailedRoute) -> Entry {
        let origin = &failed.origin.0;
        let (hop, hop_port) = failed.key.hop();
        let target = failed.key.target();
        Entry {
            tls: origin.tls(),
            host: origin.host().text().to_owned(),
            scope_id: origin.host().ip().map(|ip| ip.scope_id).filter(|&scope| scope != 0),
            port: origin.port(),
            tls_identity: origin.tls_identity(),
            tls_identity_bytes: hex(origin.tls_identity_bytes()),
            proxy: failed.proxy.as_ref().map(|proxy| ProxyEntry {
                kind: proxy.kind().scheme().to_owned(),
                host: proxy.host().text().to_owned(),
                ip: proxy.resolved().map(|ip| ip.to_string()),
                port: proxy.port(),
            }),
            hop: if hop.is_some() { hop.to_string() } else { String::new() },
            hop_port,
            target: target.is_some().then(|| target.to_string()),
            failure: failed.failure.text().to_owned(),
            os_errno: failed.os_errno,
            periods: failed.periods,
            age_ms: failed.age_ms,
            remaining_ms: failed.remaining_ms,
        }
    }

    fn into_failed(self, profile: Compat) -> Result<FailedRoute> {
        let host = match self.scope_id {
            Some(scope) => Host::parse(&format!("{}%{scope}", self.host), &|_| None)?,
            None => Host::parse_as(&self.host, profile, &|_| None)?,
        };
        if self.port == 0 {
            return Err(Error::new(Status::E_INVALID_PORT, "port 0"));
        }
        let bytes = unhex(&self.tls_identity_bytes)
            .ok_or_else(|| Error::new(Status::E_SYNTAX, "tls_identity_bytes is not hexadecimal"))?;
        let origin = Origin::intern(self.tls, host, self.port, self.tls_identity, &bytes);
        let proxy = match self.proxy {
            None => None,
            Some(entry) => {
                let kind = ProxyKind::from_scheme(&entry.kind).ok_or_else(|| {
                    Error::new(Status::E_INVALID_PROXY, format!("unknown kind {:?}", entry.kind))
                })?;
                let resolved = entry.ip.as_deref().map(Ip::parse).transpose()?;
                let spec = ProxySpec {
                    kind,
                    host: &entry.host,
                    resolved,
                    port: entry.port,
                    user: None,
                    password: None,
                };
                Some(Arc::new(Proxy::listed(spec, profile, &|_| None)?))
            }
        };
        let hop = if self.hop.is_empty() { Ip::NONE } else { Ip::parse(&self.hop)? };
        let target = self.target.as_deref().map_or(Ok(Ip::NONE), Ip::parse)?;
        let failure = Failure::from_text(&self.failure)
            .ok_or_else(|| Error::new(Status::E_SYNTAX, format!("unknown failure {:?}", self.failure)))?;
        let proxy_id = proxy.as_ref().map_or(0, |proxy| proxy.id());
        Ok(FailedRoute {
            key: RouteKey::new(origin.id(), proxy_id, hop, self.hop_port, target, 0),
            origin: Arc::new(OriginText(origin)),
            proxy,
            age_ms: self.age_ms,
            remaining_ms: self.remaining_ms,
            periods: self.periods,
            failure,
            os_errno: self.os_errno,
        })
    }
}

impl RouteDatabase {
    /// Failed routes as JSON, oldest first.
    pub fn export_json(&self, now: u64) -> String {
        let all = self.snapshot(now);
        let shown: Vec<Entry> = all
            .iter()
            .filter(|failed| failed.proxy.as_ref().is_none_or(|proxy| proxy.user().is_none()))
            .map(Entry::of)
            .collect();
        let document = Document { version: 1, left_out: all.len() - shown.len(), failed: shown };
        // Plain structs of texts and numbers always serialise.
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }

    /// Adds what an export holds; what is already known stays as it is. Nothing is added when anything is wrong.
    /// Returns how many entries the text has.
    ///
    /// # Errors
    /// `E_SYNTAX` with the place; `E_LIMIT`; for a bad entry its own error, naming the index.
    pub fn import_json(&self, text: &str, profile: Compat, now: u64) -> Result<usize> {
        if text.len() > MAX_IMPORT {
            return Err(Error::new(Status::E_LIMIT, "the text is larger than 256 MiB"));
        }
        let document: Document = serde_json::from_str(text).map_err(|error| {
            let line_start: usize =
                text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
            let at = Position::in_text(text, line_start + error.column().saturating_sub(1));
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default().to_owned();
            Error::new(Status::E_SYNTAX, message).at(at).source(Source::Parser)
        })?;
        if document.version != 1 {
            let message = format!("version {} is not known, expected 1", document.version);
            return Err(Error::new(Status::E_UNSUPPORTED, message).subject("version"));
        }
        let mut checked = Vec::with_capacity(document.failed.len());
        for (i, entry) in document.failed.into_iter().enumerate() {
            checked.push(entry.into_failed(profile).map_err(|error| {
                Error::new(error.status(), error.message())
                    .subject(format!("failed[{i}]"))
                    .source(Source::Parser)
            })?);
        }
        let count = checked.len();
        for failed in checked {
            self.restore(failed, now);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::address::{Address, AddressSpec};
    use crate::net::database::Policy;
    use crate::net::route::Route;

    fn route(user: Option<&str>) -> Route {
        let spec =
            AddressSpec { tls: true, host: "json.example", port: 443, tls_identity: 9, ..Default::default() };
        let address = Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap());
        let proxy = ProxySpec {
            kind: ProxyKind::Socks5,
            host: "p.example",
            resolved: None,
            port: 1080,
            user,
            password: None,
        };
        let proxy = Arc::new(Proxy::listed(proxy, Compat::Byway, &|_| None).unwrap());
        let hop = (Ip::parse("fe80::1%3").unwrap(), 1080);
        Route::new(address, Some(proxy), hop, Ip::v4([192, 0, 2, 1]), None)
    }

    #[test]
    fn an_export_imports_as_the_same_failures_with_the_time_that_is_left() {
        let (from, to) = (RouteDatabase::new(Policy::default()), RouteDatabase::new(Policy::default()));
        from.failed(&route(None), Failure::Refused, 111, 1000);
        let json = from.export_json(2000);
        assert_eq!(to.import_json(&json, Compat::Byway, 50).unwrap(), 1);
        let key = *route(None).key();
        assert!(to.should_postpone(&key, || 50 + 298_999));
        assert!(!to.should_postpone(&key, || 50 + 299_000));
    }

    #[test]
    fn proxies_with_a_user_are_left_out_and_counted() {
        let database = RouteDatabase::new(Policy::default());
        database.failed(&route(Some("alice")), Failure::Refused, 0, 0);
        let json = database.export_json(1);
        assert!(json.contains("\"left_out\": 1") && !json.contains("alice"), "{json}");
    }

    #[test]
    fn a_bad_import_adds_nothing_and_says_where() {
        let database = RouteDatabase::new(Policy::default());
        database.failed(&route(None), Failure::Refused, 0, 0);
        let good = database.export_json(1);
        let empty = RouteDatabase::new(Policy::default());
        for (text, status, line) in [
            ("{", Status::E_SYNTAX, Some(1)),
            ("{\"version\": 1,\n \"failed\": 3}", Status::E_SYNTAX, Some(2)),
            ("{\"version\": 2, \"failed\": []}", Status::E_UNSUPPORTED, None),
            (&good.replace("refused", "bored"), Status::E_SYNTAX, None),
            (&good.replace("json.example", "a b"), Status::E_INVALID_HOST, None),
        ] {
            let error = empty.import_json(text, Compat::Byway, 0).unwrap_err();
            assert_eq!((error.status(), error.position().map(|at| at.line)), (status, line), "{text}");
        }
        assert!(empty.is_empty());
    }
}
