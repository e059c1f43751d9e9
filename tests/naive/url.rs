//! A provider or consumer URL as a map from name to text, the way each implementation builds it.

use byway::rules::dialect::Dialect;
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub(crate) struct Url {
    parts: HashMap<&'static str, String>,
    parameters: HashMap<String, String>,
    /// What conditions see: the parameters, overridden by the parts.
    map: HashMap<String, String>,
}

impl Url {
    pub(crate) fn parse(text: &str, dialect: Dialect) -> Url {
        let table = dialect.table();
        let (body, query) = text.split_once('?').unwrap_or((text, ""));
        let mut parameters = HashMap::new();
        for pair in query.split(['&', ';']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !name.is_empty() {
                parameters.insert(name.to_owned(), value.to_owned());
            }
        }
        if table.default_keys {
            for (name, value) in parameters.clone() {
                if let Some(plain) = name.strip_prefix("default.") {
                    parameters.entry(plain.to_owned()).or_insert(value);
                }
            }
        }
        let (protocol, rest) = body.split_once("://").unwrap_or(("", body));
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (
                authority,
                if table.path_slash && !path.is_empty() { format!("/{path}") } else { path.to_owned() },
            ),
            None => (rest, String::new()),
        };
        let (user, endpoint) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (username, password) = user.split_once(':').unwrap_or((user, ""));
        let colon = endpoint.rfind(':').filter(|&at| !endpoint[at..].contains(']'));
        let (host, port) = colon.map_or((endpoint, ""), |at| (&endpoint[..at], &endpoint[at + 1..]));
        let port = match (port, table.zero_port) {
            ("" | "0", true) => "0",
            ("0", false) => "",
            (port, _) => port,
        };
        let mut parts = HashMap::new();
        for (name, value) in [
            ("protocol", protocol),
            ("username", username),
            ("password", password),
            ("host", host),
            ("port", port),
            ("path", &path),
        ] {
            if !value.is_empty() {
                parts.insert(name, value.to_owned());
            }
        }
        let mut map = parameters.clone();
        for (name, value) in &parts {
            map.insert((*name).to_owned(), value.clone());
        }
        if table.address_key && !host.is_empty() {
            map.insert(
                "address".to_owned(),
                if port.is_empty() { host.to_owned() } else { format!("{host}:{port}") },
            );
        }
        Url { parts, parameters, map }
    }

    /// What a condition key reads.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.map.get(name).map(String::as_str)
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// What `$name` stands for.
    pub(crate) fn reference(&self, name: &str) -> Option<&str> {
        match name {
            "protocol" | "username" | "password" | "host" | "port" | "path" => {
                self.parts.get(name).map(String::as_str)
            }
            _ => self.parameters.get(name).map(String::as_str),
        }
    }

    /// `host:port`, or the host alone.
    pub(crate) fn address(&self) -> String {
        let part = |name| self.parts.get(name).cloned().unwrap_or_default();
        match part("port") {
            port if port.is_empty() || port == "0" => part("host"),
            port => format!("{}:{port}", part("host")),
        }
    }
}
