//! `/etc/sysconfig/proxy` (SUSE): shell assignments named like the variables they stand for.

use crate::proxies::environment::Table;

/// The assignments as a table, or `None` when the file switches itself off or names no proxy.
pub(super) fn read(text: &str) -> Option<Table> {
    let mut pairs = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let quoted = |quote| value.strip_prefix(quote).and_then(|v: &str| v.strip_suffix(quote));
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        if key == "PROXY_ENABLED" && value == "no" {
            return None;
        }
        // Lower case: the file is the administrator's, no client's header can have written it.
        pairs.push((key.trim().to_ascii_lowercase(), value.to_owned()));
    }
    let table: Table = pairs.into_iter().collect();
    table.names_a_proxy().then_some(table)
}
