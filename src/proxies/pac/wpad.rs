//! Where a proxy script is looked for (WPAD by DNS). Off unless a host asks for it: whoever answers for one of
//! these names decides where traffic goes.

/// Names to try below a machine's domain, most specific first: `a.dept.example.com` gives
/// `wpad.dept.example.com`, `wpad.example.com` and stops before the last two labels are left, so no public suffix
/// of one label is asked. The single label `wpad` is completed by the resolver's search list and therefore only
/// given when `plain` asks for it.
///
/// Public suffixes of several labels (`co.uk`) are not known here; hosts below one pass their own registrable
/// domain in `stop_at`, and nothing above it is asked.
pub fn names(local_domain: &str, stop_at: Option<&str>, plain: bool) -> Vec<String> {
    let domain = local_domain.trim_matches('.').to_ascii_lowercase();
    let stop = stop_at.map(|stop| stop.trim_matches('.').to_ascii_lowercase());
    let mut names = Vec::new();
    // The first label is the machine's own name.
    let mut rest = domain.split_once('.').map_or("", |(_, rest)| rest);
    while rest.contains('.') {
        names.push(format!("wpad.{rest}"));
        if stop.as_deref() == Some(rest) {
            break;
        }
        rest = rest.split_once('.').map_or("", |(_, rest)| rest);
    }
    if plain {
        names.push("wpad".to_owned());
    }
    names
}

/// The URL asked at a name.
pub fn url(name: &str) -> String {
    format!("http://{name}/wpad.dat")
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn devolution_stops_where_it_is_told() {
        for (domain, stop, want) in [
            ("a.dept.example.com", None, vec!["wpad.dept.example.com", "wpad.example.com"]),
            (
                "a.dept.example.co.uk",
                Some("example.co.uk"),
                vec!["wpad.dept.example.co.uk", "wpad.example.co.uk"],
            ),
            ("host.com", None, vec![]),
            ("host", None, vec![]),
            ("", None, vec![]),
        ] {
            assert_eq!(names(domain, stop, false), want, "{domain}");
        }
    }
}
