//! GNOME's `org.gnome.system.proxy`, from dconf's database or GLib's keyfile.

use super::gvdb::{self, Value};
use super::{Desktop, Places, read_bytes, read_text, shown};
use crate::error::{Error, Result, Status};
use std::collections::HashMap;

const PREFIX: &str = "/org/gnome/system/proxy/";

/// The settings, or `None` when none are stored (the schema's default is "none": nothing is said).
pub(super) fn read(places: &Places) -> Result<Option<Desktop>> {
    let values = if let Some(file) = read_bytes(places.dconf.as_ref())? {
        gvdb::read(&file, PREFIX).ok_or_else(|| {
            Error::new(Status::E_SYNTAX, "not a dconf database").subject(shown(places.dconf.as_ref()))
        })?
    } else if let Some(text) = read_text(places.keyfile.as_ref())? {
        keyfile(&text)
    } else {
        return Ok(None);
    };
    Ok(desktop(&values))
}

fn desktop(values: &HashMap<String, Value>) -> Option<Desktop> {
    let get = |key: &str| values.get(&format!("{PREFIX}{key}"));
    let text = |key: &str| match get(key) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let place = |kind: &str| {
        let host = text(&format!("{kind}/host"));
        let port = match get(&format!("{kind}/port")) {
            Some(Value::Number(port)) => *port,
            _ if kind == "http" => 8080,
            _ => 0,
        };
        if host.is_empty() || port == 0 {
            return String::new();
        }
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
        format!("{host}:{port}")
    };
    match text("mode").as_str() {
        "manual" => {
            let authenticated = get("http/use-authentication") == Some(&Value::Flag(true));
            let exceptions = match get("ignore-hosts") {
                Some(Value::List(hosts)) => hosts.join(","),
                // The schema's default.
                _ => "localhost,127.0.0.0/8,::1".to_owned(),
            };
            Some(Desktop {
                manual: true,
                http: place("http"),
                https: place("https"),
                ftp: place("ftp"),
                socks: place("socks"),
                credentials: authenticated
                    .then(|| (text("http/authentication-user"), text("http/authentication-password"))),
                exceptions,
                ..Desktop::default()
            })
        }
        "auto" => {
            let script_url = text("autoconfig-url");
            Some(Desktop { discover: script_url.is_empty(), script_url, ..Desktop::default() })
        }
        "none" => Some(Desktop::default()),
        _ => None,
    }
}

/// GLib's keyfile backend: `[org/gnome/system/proxy/http]` groups with GVariant text as values.
fn keyfile(text: &str) -> HashMap<String, Value> {
    let mut values = HashMap::new();
    let mut group = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            group = format!("/{}/", name.trim_matches('/'));
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#'))
            && let Some(value) = variant_text(value.trim())
        {
            values.insert(format!("{group}{}", key.trim()), value);
        }
    }
    values
}

/// The text forms of the types these settings have.
fn variant_text(text: &str) -> Option<Value> {
    let unquote = |text: &str| {
        let inner = text.trim();
        let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let inner = inner.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.replace("\\'", "'").replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    match text {
        "true" => Some(Value::Flag(true)),
        "false" => Some(Value::Flag(false)),
        _ if text.starts_with('[') || text.starts_with("@as [") => {
            let inner = text.trim_start_matches("@as ").strip_prefix('[')?.strip_suffix(']')?;
            // Host patterns hold no commas of their own.
            let parts = inner.split(',').filter(|part| !part.trim().is_empty());
            parts.map(unquote).collect::<Option<Vec<_>>>().map(Value::List)
        }
        _ => text.parse().ok().map(Value::Number).or_else(|| unquote(text).map(Value::Text)),
    }
}
