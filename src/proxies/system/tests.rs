//! Settings files as the desktops write them.

use super::*;
use crate::proxies::{OwnedTarget, Why};
use std::fs;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("byway-system-{}-{name}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

fn ask(selector: &dyn ProxySelector, uri: &str) -> String {
    match selector.select(&OwnedTarget::parse(uri).unwrap().borrow()) {
        Ok(choice) => crate::proxies::shown(&choice.proxies[0]),
        Err(error) => error.status().name().to_owned(),
    }
}

#[test]
fn gnome_keyfile_and_kde_file_give_the_same_answers() {
    let keyfile = "[org/gnome/system/proxy]\nmode='manual'\nignore-hosts=['localhost', '10.0.0.0/8', '*.corp']\n\
        [org/gnome/system/proxy/http]\nhost='p.example'\nport=3128\n[org/gnome/system/proxy/https]\nhost=''\nport=0\n\
        [org/gnome/system/proxy/socks]\nhost='s.example'\nport=1081\n";
    let kde = "[Other]\nProxyType=2\n[Proxy Settings]\nNoProxyFor=localhost,10.0.0.0/8,*.corp\nProxyType=1\n\
        httpProxy[$e]=http://p.example 3128\nsocksProxy=socks://s.example 1081\n";
    let folder = folder("desktops");
    fs::write(folder.join("keyfile"), keyfile).unwrap();
    fs::write(folder.join("kioslaverc"), kde).unwrap();
    let gnome = Places { keyfile: Some(Place::File(folder.join("keyfile"))), ..Places::default() };
    let kde = Places {
        kioslaverc: Some(Place::File(folder.join("kioslaverc"))),
        desktop: "KDE".into(),
        ..gnome.clone()
    };
    for (places, source) in [(gnome, "GNOME"), (kde, "KDE")] {
        let snapshot = Snapshot::read(&Table::default(), &places).unwrap();
        assert_eq!(snapshot.source(), source);
        for (uri, want) in [
            ("http://example.com/", "http p.example:3128"),
            ("https://example.com/", "socks5h s.example:1081"),
            ("http://x.corp/", "direct"),
            ("http://10.1.1.1/", "direct"),
        ] {
            assert_eq!(ask(snapshot.plan(), uri), want, "{source} {uri}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_first_source_that_says_anything_decides_alone() {
    let folder = folder("order");
    fs::write(folder.join("sysconfig"), "PROXY_ENABLED=\"yes\"\nHTTP_PROXY=\"http://etc:1\"\n").unwrap();
    let places = Places { sysconfig: Some(Place::File(folder.join("sysconfig"))), ..Places::default() };
    let empty = Table::default();
    let named: Table = [("https_proxy", "http://env:2")].into_iter().collect();
    for (table, uri, want) in [
        (&empty, "http://e/", "http etc:1"),
        (&named, "http://e/", "direct"),
        (&named, "https://e/", "http env:2"),
    ] {
        assert_eq!(ask(Snapshot::read(table, &places).unwrap().plan(), uri), want);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_script_that_was_not_handed_in_is_an_error_and_never_direct() {
    let desktop = Desktop { script_url: "http://pac.example/p.pac".into(), ..Desktop::default() };
    assert_eq!(ask(&desktop.selector().unwrap(), "http://e/"), "BYWAY_E_PAC");
}

#[test]
fn reversed_exceptions_are_the_only_proxied_hosts() {
    let desktop = Desktop {
        manual: true,
        http: "p:1".into(),
        exceptions: "in.example".into(),
        reversed: true,
        ..Desktop::default()
    };
    let selector = desktop.selector().unwrap();
    assert_eq!(ask(&selector, "http://in.example/"), "http p:1");
    let other = selector.select(&OwnedTarget::parse("http://out.example/").unwrap().borrow()).unwrap();
    assert_eq!(other.why, Why::NotListed);
    assert_eq!(ask(&selector, "http://localhost/"), "direct");
}

/// A dconf database with the keys of a manual configuration, as `dconf load` writes it.
#[test]
fn a_dconf_database_is_read_and_a_damaged_one_is_survived() {
    let file = include_bytes!("dconf-user.bin");
    let folder = folder("dconf");
    fs::write(folder.join("user"), file).unwrap();
    let places = Places { dconf: Some(Place::File(folder.join("user"))), ..Places::default() };
    let snapshot = Snapshot::read(&Table::default(), &places).unwrap();
    for (uri, want) in [
        ("http://example.com/", "http p.example:3128"),
        ("https://example.com/", "socks5h s.example:1081"),
        ("http://x.corp/", "direct"),
    ] {
        assert_eq!(ask(snapshot.plan(), uri), want, "{uri}");
    }
    for cut in 0..file.len() {
        let mut damaged = file.to_vec();
        damaged[cut] ^= 0xff;
        let _ = gvdb::read(&damaged, "/");
        let _ = gvdb::read(&file[..cut], "/");
    }
    fs::remove_dir_all(folder).unwrap();
}
