//! Rules to programs.

use super::dialect::Dialect;
use crate::chain::program::CallKey;
use crate::chain::url::Url;

/// What `$name` stands for: a part of the consumer URL, else its parameter; `None` when absent.
pub fn reference(name: &str, consumer: &Url, dialect: Dialect) -> Option<String> {
    let table = dialect.table();
    let present = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match name {
        "protocol" => present(consumer.protocol()),
        "username" => consumer.username().and_then(present),
        "password" => consumer.password().and_then(present),
        "host" => present(consumer.host()),
        "port" if consumer.port() == 0 => table.zero_port.then(|| "0".to_owned()),
        "port" => Some(consumer.port().to_string()),
        "path" if table.path_slash => present(consumer.path()).map(|path| format!("/{path}")),
        "path" => present(consumer.path()),
        _ => consumer.parameter(name).map(str::to_owned),
    }
}

/// The property of a call that a `hashKey` names; `None` for anything a call does not have.
pub fn hash_key(text: &str) -> Option<CallKey> {
    if text == "method" {
        return Some(CallKey::Method);
    }
    let (word, inside) = text.strip_suffix(']')?.split_once('[')?;
    match word {
        "attachments" if !inside.is_empty() => Some(CallKey::Attachment(inside.into())),
        "arguments" => Some(CallKey::Argument { index: inside.parse().ok()?, null: "null".into() }),
        _ => None,
    }
}
