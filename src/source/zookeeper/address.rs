//! Where the servers are: ZooKeeper's connection strings and Dubbo's registry URLs.

use crate::error::{Error, Position, Result, Source, Status};
use crate::source::providers;
use std::fmt;
use std::time::Duration;

/// Port of servers that name none.
const PORT: u16 = 2181;
/// Servers one string may name.
const MOST_SERVERS: usize = 64;

/// A user and its password; shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials(Vec<u8>);

impl Credentials {
    /// For ZooKeeper's digest scheme.
    pub fn new(user: &str, password: &str) -> Credentials {
        Credentials(format!("{user}:{password}").into_bytes())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// How an ensemble is reached and where the tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooKeeperOptions {
    /// Hosts and ports.
    pub servers: Vec<(String, u16)>,
    /// In front of every path; empty or `/…` without a slash at the end.
    pub chroot: String,
    /// Dubbo's root, default `/dubbo`.
    pub root: String,
    /// Root of application instances, default `/services`.
    pub services: String,
    /// Sent on every connection.
    pub credentials: Option<Credentials>,
    /// Asked for; the server may decide otherwise. Default 15 s.
    pub session_timeout: Duration,
    /// Longest wait for one server to take a connection. Default 5 s.
    pub connect_timeout: Duration,
    /// First wait after every server failed. Default 100 ms.
    pub retry_first: Duration,
    /// Longest wait. Default 10 s.
    pub retry_longest: Duration,
}

impl ZooKeeperOptions {
    /// Reads `host:port,host:port/chroot`, with `user:password@` in front if need be, or Dubbo's form
    /// `zookeeper://user:password@host:port/chroot?backup=host:port,host:port&group=dubbo&timeout=…&session=…`
    /// (milliseconds). User and password of a URL are percent-decoded.
    ///
    /// # Errors
    /// `E_ARGUMENT` with the place; the message never has the credentials.
    pub fn parse(text: &str) -> Result<ZooKeeperOptions> {
        let refused = |offset: usize, why: &str| {
            Error::new(Status::E_ARGUMENT, why)
                .subject("connection string")
                .at(Position::in_text(text, offset))
                .source(Source::Parser)
        };
        let (url, body) = match text.split_once("://") {
            Some(("zookeeper", body)) => (true, body),
            Some(_) => return Err(refused(0, "expected zookeeper:// or host:port,host:port/chroot")),
            None => (false, text),
        };
        let (body, query) = body.split_once('?').unwrap_or((body, ""));
        if !query.is_empty() && !url {
            return Err(refused(text.len() - query.len(), "parameters belong to the zookeeper:// form"));
        }
        let (authority, path) = match body.find('/') {
            Some(at) => body.split_at(at),
            None => (body, ""),
        };
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => {
                let Some((user, password)) = user.split_once(':') else {
                    return Err(refused(text.len() - body.len(), "expected user:password in front of @"));
                };
                let decoded = |part: &str| {
                    if !url {
                        return Ok(part.to_owned());
                    }
                    // `+` is itself in this part of a URL.
                    providers::decode(&part.replace('+', "%2B")).map(|part| part.into_owned()).map_err(|_| {
                        refused(text.len() - body.len(), "user or password is not percent-encoded properly")
                    })
                };
                (Some(Credentials::new(&decoded(user)?, &decoded(password)?)), hosts)
            }
            None => (None, authority),
        };
        let mut options = ZooKeeperOptions {
            servers: Vec::new(),
            chroot: chroot(path).map_err(|why| refused(text.len() - path.len(), why))?,
            root: "/dubbo".to_owned(),
            services: "/services".to_owned(),
            credentials,
            session_timeout: Duration::from_secs(15),
            connect_timeout: Duration::from_secs(5),
            retry_first: Duration::from_millis(100),
            retry_longest: Duration::from_secs(10),
        };
        let at = text.find(hosts).unwrap_or(0);
        options.add_servers(hosts).map_err(|why| refused(at, &why))?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let offset = text.find(pair).unwrap_or(0);
            let millis = || {
                let number: u64 = value.parse().map_err(|_| refused(offset, "expected milliseconds"))?;
                if (1..=3_600_000).contains(&number) {
                    Ok(Duration::from_millis(number))
                } else {
                    Err(refused(offset, "expected 1 to 3600000 milliseconds"))
                }
            };
            match key {
                "backup" => options.add_servers(value).map_err(|why| refused(offset, &why))?,
                "group" | "namespace" => {
                    let root = format!("/{}", value.trim_matches('/'));
                    options.root = chroot(&root).map_err(|why| refused(offset, why))?;
                }
                "timeout" => options.connect_timeout = millis()?,
                "session" => options.session_timeout = millis()?,
                "username" | "password" => {
                    return Err(refused(offset, "credentials stand in front of the host: user:password@"));
                }
                // Dubbo's registry URLs carry much that says nothing about the connection.
                _ => {}
            }
        }
        Ok(options)
    }

    /// Sets Dubbo's root, with or without the slash in front.
    ///
    /// # Errors
    /// `E_ARGUMENT`: not a path.
    pub fn set_root(&mut self, root: &str) -> Result<()> {
        self.root = chroot(&format!("/{}", root.trim_matches('/')))
            .map_err(|why| Error::new(Status::E_ARGUMENT, why).subject("root").source(Source::Argument))?;
        Ok(())
    }

    fn add_servers(&mut self, hosts: &str) -> Result<(), String> {
        for server in hosts.split(',') {
            let server = server.trim();
            if server.is_empty() {
                return Err("expected host:port".to_owned());
            }
            let (host, port) = match server.strip_prefix('[') {
                Some(rest) => match rest.split_once(']') {
                    Some((host, "")) => (host, None),
                    Some((host, port)) => match port.strip_prefix(':') {
                        Some(port) => (host, Some(port)),
                        None => return Err("expected :port behind the bracket".to_owned()),
                    },
                    None => return Err("the bracket of an IPv6 address is not closed".to_owned()),
                },
                None => match server.rsplit_once(':') {
                    Some((host, _)) if host.contains(':') => {
                        return Err("an IPv6 address needs brackets".to_owned());
                    }
                    Some((host, port)) => (host, Some(port)),
                    None => (server, None),
                },
            };
            let port = match port {
                None => PORT,
                Some(port) => match port.parse() {
                    Ok(port @ 1..) => port,
                    _ => return Err("the port must be 1 to 65535".to_owned()),
                },
            };
            if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err("expected a host".to_owned());
            }
            self.servers.push((host.to_owned(), port));
            if self.servers.len() > MOST_SERVERS {
                return Err(format!("more than {MOST_SERVERS} servers"));
            }
        }
        Ok(())
    }
}

/// A chroot as ZooKeeper takes it: `""` or `/a/b`.
fn chroot(path: &str) -> Result<String, &'static str> {
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Ok(String::new());
    }
    let mut words = path.split('/').skip(1);
    if words.any(|word| word.is_empty() || matches!(word, "." | "..") || word.chars().any(char::is_control)) {
        return Err("a path has no empty parts, '.' or '..'");
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let plain = ZooKeeperOptions::parse("u:p@a:1,b,[::1]:3/x/y").unwrap();
        assert_eq!(plain.servers, [("a".to_owned(), 1), ("b".to_owned(), 2181), ("::1".to_owned(), 3)]);
        assert_eq!((plain.chroot.as_str(), plain.root.as_str()), ("/x/y", "/dubbo"));
        assert_eq!(plain.credentials, Some(Credentials::new("u", "p")));
        let url = ZooKeeperOptions::parse(
            "zookeeper://u:p%40ss+1@a:1/x/?backup=b:2,c:3&group=other&session=4000&timeout=700&check=false",
        )
        .unwrap();
        assert_eq!(url.servers.len(), 3);
        assert_eq!((url.chroot.as_str(), url.root.as_str()), ("/x", "/other"));
        assert_eq!(url.credentials, Some(Credentials::new("u", "p@ss+1")));
        assert_eq!(
            (url.session_timeout, url.connect_timeout),
            (Duration::from_secs(4), Duration::from_millis(700))
        );
        assert!(!format!("{url:?}").contains("ss+1"));
    }

    #[test]
    fn bad_strings_say_where_and_never_show_credentials() {
        let table = [
            ("", "host:port"),
            ("http://a:1", "zookeeper://"),
            ("a:0", "1 to 65535"),
            ("a:x", "1 to 65535"),
            ("a:1,,b:2", "host:port"),
            ("::1:2181", "brackets"),
            ("[::1", "not closed"),
            ("secret@a:1", "user:password"),
            ("u:secret@a:99999", "1 to 65535"),
            ("a:1/x//y", "empty parts"),
            ("a:1/x/../y", "empty parts"),
            ("a:1/x?group=y", "zookeeper:// form"),
            ("zookeeper://a:1?session=0", "milliseconds"),
            ("zookeeper://a:1?username=u&password=secret", "in front of the host"),
        ];
        for (text, words) in table {
            let error = ZooKeeperOptions::parse(text).unwrap_err();
            assert_eq!(error.status(), Status::E_ARGUMENT, "{text}");
            assert!(error.message().contains(words), "{text}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
