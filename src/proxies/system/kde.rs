//! KDE's `kioslaverc`, group `[Proxy Settings]`.

use super::Desktop;
use crate::error::{Error, Result, Status};

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Settings {
    Desktop(Desktop),
    /// Proxy type 4: what the environment says.
    Environment,
}

/// Reads the file's text; `None` when it has no proxy group.
pub(super) fn read(text: &str) -> Result<Option<Settings>> {
    let mut inside = false;
    let mut kind = None;
    let mut desktop = Desktop::default();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[Proxy Settings]";
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| inside && !line.starts_with('#')) else {
            continue;
        };
        // Keys may carry flags: `httpProxy[$e]`.
        let key = key.split('[').next().unwrap_or_default().trim();
        let value = value.trim();
        // Old files separate host and port by a blank.
        let place = || value.split_whitespace().collect::<Vec<_>>().join(":");
        match key {
            "ProxyType" => kind = Some(value.to_owned()),
            "Proxy Config Script" => desktop.script_url = value.to_owned(),
            "httpProxy" => desktop.http = place(),
            "httpsProxy" => desktop.https = place(),
            "ftpProxy" => desktop.ftp = place(),
            "socksProxy" => desktop.socks = place(),
            "NoProxyFor" => desktop.exceptions = value.to_owned(),
            "ReversedException" => desktop.reversed = matches!(value, "true" | "1"),
            _ => {}
        }
    }
    let none = Desktop::default();
    Ok(match kind.as_deref() {
        None => None,
        Some("0") => Some(Settings::Desktop(none)),
        Some("1") => Some(Settings::Desktop(Desktop { manual: true, script_url: String::new(), ..desktop })),
        Some("2") => Some(Settings::Desktop(Desktop { script_url: desktop.script_url, ..none })),
        Some("3") => Some(Settings::Desktop(Desktop { discover: true, ..none })),
        Some("4") => Some(Settings::Environment),
        Some(other) => {
            let why = format!("proxy type {other}; expected 0 to 4");
            return Err(Error::new(Status::E_SYNTAX, why).subject("ProxyType"));
        }
    })
}
