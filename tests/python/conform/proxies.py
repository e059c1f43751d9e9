"""Built-in proxy selectors: what they offer for a URL, seen in the event of a selection. Names, times and limits of scripts
are the engine's own here, so scripts that ask for others are left to those who can give them."""
import re
from urllib.parse import urlsplit

import byway
from byway import EventKind, ProxyKind, _abi
from case import Skips, need, same, shown

# Implementations that are a dialect of byway, by the names the cases use.
DIALECTS = {"curl": "curl", "go": "go", "urllib": "python", "undici": "node", "chromium": "chromium"}
ERRORS = {
    _abi.BYWAY_E_INVALID_PROXY: "invalid_proxy",
    _abi.BYWAY_E_INVALID_URL: "invalid_url",
    _abi.BYWAY_E_INVALID_HOST: "invalid_url",
    _abi.BYWAY_E_INVALID_PORT: "invalid_port",
    _abi.BYWAY_E_PROXY_SELECTOR: "refused_in_cgi",
}
PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21, "gopher": 70}


def place_of(url):
    """Scheme, host and port of a URL as a host of byway takes it apart."""
    parts = urlsplit(url)
    authority = parts.netloc.rpartition("@")[2]
    host = re.match(r"\[[^\]]*\]|[^:]*", authority).group()
    port = authority[len(host):].lstrip(":")
    return parts.scheme, host, int(port) if port else PORTS[parts.scheme]


def offered(make, url):
    """The list a selector gives for a URL: proxies, None for DIRECT. Raises what it fails with."""
    with byway.Engine() as engine:
        heard = []
        engine.add_listener(heard.append, [EventKind.PROXY_SELECT_END])
        scheme, host, port = place_of(url)
        dns = byway.Dns(engine, lambda name: ["192.0.2.1"])
        address = byway.Address(engine, host, port, scheme=scheme, dns=dns, proxy_selector=make(engine))
        # The selector is asked when it is made; a script answers later, and its answer comes with the first routes.
        selector = byway.Selector(address)
        if not heard:
            selector.next(30)
        if heard[0].error is not None:
            raise heard[0].error.causes[0] if heard[0].error.causes else heard[0].error
        return list(heard[0].proxies)


def shown_entry(proxy):
    if proxy is None:
        return {"type": "direct"}
    return {"type": proxy.kind.name.lower(), "host": proxy.host, "port": proxy.port}


def wanted_entry(entry):
    """User and password are shown nowhere; who a proxy is for is compared apart."""
    return {key: entry[key] for key in ("type", "host", "port") if key in entry}


def entry_of(proxy):
    """A proxy of a case as an object of its own, for what only equality tells."""
    return byway.Proxy(ProxyKind[proxy["type"].upper()], proxy["host"], proxy["port"], username=proxy.get("user"),
                       password=proxy.get("password"))


def check(what, make, url, expect):
    """An answer against `{"proxies": [...]}` or `{"error": category}`."""
    try:
        got = offered(make, url)
    except byway.BywayError as error:
        want = expect.get("error")
        need(want is not None, f"{what}: {error}, want {shown(expect)}")
        # java.lang.IllegalArgumentException is the JDK's word for a port it cannot use.
        known = "IllegalArgumentException" in want or want == "configuration"
        need(known or ERRORS.get(error.code, error.name) == want, f"{what}: {error}, want {want}")
        return
    need("error" not in expect, f"{what}: got {got}, want {expect}")
    same([shown_entry(proxy) for proxy in got], [wanted_entry(entry) for entry in expect["proxies"]], what)
    for proxy, entry in zip(got, expect["proxies"]):
        if "user" in entry:
            need(proxy == entry_of(entry), f"{what}: another user")


def by_environment(variables, dialect="byway"):
    return lambda engine: byway.ProxySelector.environment(engine, variables, dialect)


def bypassed(no_proxy, url, dialect):
    scheme = place_of(url)[0]
    variables = {f"{kind}_proxy": "http://proxy.example:3128" for kind in ("http", "https", scheme)}
    return offered(by_environment({**variables, "no_proxy": no_proxy}, dialect), url) == [None]


def plain(url):
    """Whether an address has all that a URL says: the host in its canonical form, no port that is the scheme's own."""
    scheme, host, port = place_of(url)
    try:
        canonical = byway.host_canonical(host) == host.strip("[]")
    except byway.BywayError:
        canonical = False
    return canonical and scheme in ("http", "https") and not url.rstrip("/").endswith(f":{PORTS[scheme]}")


def no_proxy(case):
    """Without the implied loopback a list is not to be had from here."""
    given = case["input"]
    same(bypassed(given["no_proxy"], given["url"], "byway"), case["expect"]["bypass_with_implicit_loopback"], "byway")
    if not plain(given["url"]):
        raise Skips("what other programs read in a URL as it was written")
    for name, dialect in DIALECTS.items():
        if isinstance(case["answers"].get(name), bool):
            same(bypassed(given["no_proxy"], given["url"], dialect), case["answers"][name], name)


def environment(case):
    given = case["input"]
    check("byway", by_environment(given["env"]), given["url"], case["expect"])
    for name, dialect in DIALECTS.items():
        answer = case["answers"].get(name)
        if not isinstance(answer, dict):
            continue
        try:
            got = offered(by_environment(given["env"], dialect), given["url"])
        except byway.BywayError as error:
            # Where a program hands a bad value on or drops it, byway has one rule: an error of the request.
            need("error" in answer or "error" in case["expect"] or not readable(answer.get("proxy")), f"{name}: {error}")
            continue
        need("error" not in answer, f"{name}: got {got}, want an error")
        if answer.get("proxy") is None:
            same(got, [None], name)
            continue
        want = readable(answer["proxy"])
        need(want is not None, f"{name}: {got}, want an error for {answer['proxy']}")
        same((got[0].host, got[0].port), (want.host, want.port), name)
        if answer.get("connect_port") is not None:
            same(got[0].port, answer["connect_port"], f"{name}: port")


def readable(url):
    """A proxy as a variable's value names it, None when none can be made of it."""
    if url is None:
        return None
    try:
        # Programs print what they were given; an empty port is none.
        return offered(by_environment({"http_proxy": url.rstrip(":")}, "byway"), "http://h.example/")[0]
    except byway.BywayError:
        return None


def properties(case):
    given = case["input"]
    check("byway", lambda engine: byway.ProxySelector.properties(engine, given["properties"], web_sockets=True),
          given["url"], case["expect"])
    released = case["answers"].get("jdk17")
    if not isinstance(released, str):
        return
    try:
        first = offered(lambda engine: byway.ProxySelector.properties(engine, given["properties"]), given["url"])[0]
    except byway.BywayError as error:
        need("Exception" in released, f"jdk17: {error}, want {released}")
        return
    kinds = {ProxyKind.HTTP: "HTTP", ProxyKind.SOCKS4: "SOCKSv4"}
    same("DIRECT" if first is None else f"{kinds.get(first.kind, 'SOCKSv5')} {first.host}:{first.port}", released, "jdk17")


# --- reports ---


def url_of(host, port=None):
    if "://" in host:
        return host
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{host}{'' if port is None else f':{port}'}/"


def no_proxy_reported(case):
    given, dialect = case["input"], case.get("dialect")
    if dialect in (None, "ours", "byway", "libproxy"):
        raise Skips("a list without the implied loopback")
    port = given.get("scheme_port")
    if isinstance(given.get("checks"), list):
        got = [bypassed(no_proxy, url_of(host, port), dialect) for no_proxy, host in given["checks"]]
    elif isinstance(given.get("hosts"), list):
        got = [bypassed(given["no_proxy"], url_of(host, port), dialect) for host in given["hosts"]]
    else:
        got = bypassed(given["no_proxy"], url_of(given.get("host") or given["url"], port), dialect)
    same(got, case["expect"]["bypass"], "bypass")


def non_proxy_hosts_reported(case):
    given = case["input"]
    table = {"http.proxyHost": "p", "http.nonProxyHosts": given["nonProxyHosts"]}
    got = [offered(lambda engine: byway.ProxySelector.properties(engine, table, web_sockets=True), url_of(host)) == [None]
           for host in given["hosts"]]
    same(got, case["expect"]["bypass"], "bypass")


KINDS = {
    ("proxy", "noproxy"): no_proxy,
    ("proxy", "env"): environment,
    ("proxy", "nonproxyhosts"): properties,
    ("bugs", "no_proxy"): no_proxy_reported,
    ("bugs", "no_proxy_list"): no_proxy_reported,
    ("bugs", "libproxy_ignore"): no_proxy_reported,
    ("bugs", "jvm_non_proxy_hosts"): non_proxy_hosts_reported,
}
