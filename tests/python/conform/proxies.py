"""Built-in proxy selectors, asked for URLs: `NO_PROXY` and the environment in every dialect, Java's properties, lists of
exceptions, settings of systems."""
import byway
from byway import BypassFlag, BypassStyle, ProxyKind, ProxySelector, SystemSettings, _abi
from case import Skips, need, same, shown

# Implementations that are a dialect of byway, by the names the cases use.
DIALECTS = {"curl": "curl", "go": "go", "urllib": "python", "undici": "node", "chromium": "chromium"}
ERRORS = {
    _abi.BYWAY_E_INVALID_PROXY: "invalid_proxy",
    _abi.BYWAY_E_INVALID_URL: "invalid_url",
    _abi.BYWAY_E_INVALID_PORT: "invalid_port",
    _abi.BYWAY_E_PROXY_SELECTOR: "refused_in_cgi",
}


def offered(make, url):
    """The list a selector gives for a URL: proxies, None for DIRECT. Raises what it fails with."""
    with byway.Engine() as engine:
        return engine.proxies_for_url(make(engine), url, timeout=30)


def shown_entry(proxy):
    if proxy is None:
        return {"type": "direct"}
    return {"type": proxy.kind.name.lower(), "host": proxy.host, "port": proxy.port}


def as_url(proxy):
    return "direct://" if proxy is None else str(proxy)


def wanted_entry(entry):
    """User and password are shown nowhere; who a proxy is for is compared apart."""
    return {key: entry[key] for key in ("type", "host", "port") if key in entry}


def same_list(got, want, what):
    same([shown_entry(proxy) for proxy in got], [wanted_entry(entry) for entry in want], what)
    for proxy, entry in zip(got, want):
        if "user" in entry:
            other = byway.Proxy(ProxyKind[entry["type"].upper()], entry["host"], entry["port"], username=entry["user"],
                                password=entry.get("password"))
            need(proxy == other, f"{what}: another user")


def category(error):
    return ERRORS.get(error.code, error.name)


def check(what, make, url, expect):
    """An answer against `{"proxies": [...]}` or `{"error": category}`."""
    try:
        got = offered(make, url)
    except byway.BywayError as error:
        want = expect.get("error")
        need(want is not None, f"{what}: {error}, want {shown(expect)}")
        # java.lang.IllegalArgumentException is the JDK's word for a port it cannot use.
        known = "IllegalArgumentException" in want or want == "configuration"
        need(known or category(error) == want, f"{what}: {error}, want {want}")
        return
    need("error" not in expect, f"{what}: got {got}, want {expect}")
    same_list(got, expect["proxies"], what)


def by_environment(variables, dialect="byway"):
    return lambda engine: ProxySelector.environment(engine, variables, dialect)


def by_properties(table, web_sockets=True):
    return lambda engine: ProxySelector.properties(engine, table, web_sockets=web_sockets)


def with_exceptions(exceptions, style, flags=BypassFlag(0), dialect=""):
    """Whether a list of exceptions holds a URL: those it does not hold go to a proxy."""
    def make(engine):
        inner = ProxySelector.fixed(engine, [byway.Proxy(ProxyKind.HTTP, "proxy.example", 3128)])
        return ProxySelector.bypass(engine, exceptions, inner, style, flags=flags, dialect=dialect)

    return lambda url: offered(make, url) == [None]


def no_proxy(case):
    exceptions, url = case["input"]["no_proxy"], case["input"]["url"]
    for flags, key in ((BypassFlag.PROXY_LOOPBACK, "bypass"), (BypassFlag(0), "bypass_with_implicit_loopback")):
        same(with_exceptions(exceptions, BypassStyle.NO_PROXY, flags)(url), case["expect"][key], key)
    for name, dialect in DIALECTS.items():
        if isinstance(case["answers"].get(name), bool):
            same(with_exceptions(exceptions, BypassStyle.NO_PROXY, dialect=dialect)(url), case["answers"][name], name)


def readable(url):
    """A proxy as a variable's value names it, None when none can be made of it."""
    try:
        # Programs print what they were given; an empty port is none.
        return offered(by_environment({"http_proxy": url.rstrip(":")}), "http://h.example/")[0]
    except byway.BywayError:
        return None


def environment(case):
    given = case["input"]
    check("byway", by_environment(given["env"]), given["url"], case["expect"])
    for name, dialect in DIALECTS.items():
        answer = case["answers"].get(name)
        if not isinstance(answer, dict):
            continue
        want = answer.get("proxy")
        try:
            got = offered(by_environment(given["env"], dialect), given["url"])
        except byway.BywayError as error:
            # Where a program hands a bad value on or drops it, byway has one rule: an error of the request.
            expected = "error" in answer or "error" in case["expect"] or (want is not None and readable(want) is None)
            need(expected, f"{name}: {error}")
            continue
        need("error" not in answer, f"{name}: got {got}, want an error")
        if want is None:
            same(got, [None], name)
            continue
        like = readable(want)
        need(like is not None, f"{name}: {got}, want an error for {want}")
        same((got[0].host, got[0].port), (like.host, like.port), name)
        if answer.get("connect_port") is not None:
            same(got[0].port, answer["connect_port"], f"{name}: port")


def properties(case):
    given, released = case["input"], case["answers"].get("jdk17")
    check("byway", by_properties(given["properties"]), given["url"], case["expect"])
    if not isinstance(released, str):
        return
    try:
        first = offered(by_properties(given["properties"], False), given["url"])[0]
    except byway.BywayError as error:
        need("Exception" in released, f"jdk17: {error}, want {released}")
        return
    kinds = {ProxyKind.HTTP: "HTTP", ProxyKind.SOCKS4: "SOCKSv4"}
    same("DIRECT" if first is None else f"{kinds.get(first.kind, 'SOCKSv5')} {first.host}:{first.port}", released, "jdk17")


def bypass(case):
    try:
        got = with_exceptions(case["input"]["rules"], BypassStyle.BROWSER)(case["input"]["url"])
    except byway.BywayError as error:
        # A URL that is none (its host ends in a number and is no address) is an error before any list is asked.
        need(error.code == _abi.BYWAY_E_INVALID_URL, f"{error}")
        got = False
    same(got, case["expect"]["bypass"], "bypass")


# --- reports ---


def url_of(host, port=None):
    if "://" in host:
        return host
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{host}{'' if port is None else f':{port}'}/"


def no_proxy_reported(case):
    """`byway` for "ours"; libproxy's list has no implied loopback."""
    given, dialect = case["input"], case.get("dialect")
    dialect = "byway" if dialect in (None, "ours", "libproxy") else dialect

    def bypassed(exceptions, host):
        holds = with_exceptions(exceptions, BypassStyle.NO_PROXY, BypassFlag.PROXY_LOOPBACK, dialect)
        return holds(url_of(host, given.get("scheme_port")))

    if isinstance(given.get("checks"), list):
        got = [bypassed(exceptions, host) for exceptions, host in given["checks"]]
    elif isinstance(given.get("hosts"), list):
        got = [bypassed(given["no_proxy"], host) for host in given["hosts"]]
    else:
        got = bypassed(given["no_proxy"], given.get("host") or given["url"])
    same(got, case["expect"]["bypass"], "bypass")


def proxy_for_url_reported(case):
    given, expect, dialect = case["input"], case["expect"], case.get("dialect")
    if given.get("explicit"):
        raise Skips("a host's own settings in front of the environment are selectors of its own")
    variables = dict(given.get("env") or {})
    if "no_proxy" in given:
        variables["no_proxy"] = given["no_proxy"]
    many = isinstance(given.get("urls"), list)
    for index, url in enumerate(given["urls"] if many else [given["url"]]):
        def of(value):
            return value[index] if isinstance(value, list) else value

        try:
            got = offered(by_environment(variables, "byway" if dialect in (None, "ours") else dialect), url or "")[0]
        except byway.BywayError as error:
            need("error" in expect, f"{url}: {error}")
            same(category(error), of(expect["error"]), f"{url}")
            continue
        need("error" not in expect, f"{url}: got {got}")
        want = of(expect["proxy"])
        if want is None:
            same(as_url(got), "direct://", url)
            continue
        like = readable(want.replace("socks5://", "socks5h://") if dialect == "go" else want)
        same(as_url(got), as_url(like), url)


def windows_server(case):
    def make(engine):
        return ProxySelector.windows(engine, case["input"]["ProxyServer"], "<-loopback>")

    for scheme, want in case["expect"].items():
        if scheme == "socks":
            got = offered(make, "gopher://h/")[0]
            same(None if got is None else got.kind, None if want is None else ProxyKind.SOCKS4, scheme)
        else:
            got = as_url(offered(make, f"{scheme}://h.example/")[0])
            same(got, (want or "direct://").replace("socks://", "socks4://"), scheme)


def exceptions_reported(case):
    given, kind = case["input"], case["kind"]
    if kind == "win_bypass":
        holds = with_exceptions(given["ProxyOverride"], BypassStyle.WINDOWS)
    elif kind == "mac_exceptions":
        flags = BypassFlag.EXCLUDE_SIMPLE if given.get("exclude_simple") else BypassFlag(0)
        holds = with_exceptions("\n".join(given["exceptions"]), BypassStyle.MACOS, flags)
    else:
        table = {"http.proxyHost": "p", "http.nonProxyHosts": given["nonProxyHosts"]}
        holds = lambda url: offered(by_properties(table), url) == [None]
    same([holds(url_of(host)) for host in given["hosts"]], case["expect"]["bypass"], "bypass")


def desktop_reported(case):
    given = case["input"]
    sections = [f"[org/gnome/system/proxy]\nmode='{given['mode']}'\n"]
    for name in ("http", "https", "ftp", "socks"):
        host, colon, port = (given.get(name) or "").rpartition(":")
        if colon:
            sections.append(f"[org/gnome/system/proxy/{name}]\nhost='{host}'\nport={port}\n")
    settings = SystemSettings(variables={}, desktop="GNOME", keyfile="\n".join(sections))
    got = offered(lambda engine: ProxySelector.system(engine, settings), given["url"])
    same([as_url(proxy) for proxy in got], case["expect"]["proxies"], "proxies")


KINDS = {
    ("proxy", "noproxy"): no_proxy,
    ("proxy", "env"): environment,
    ("proxy", "nonproxyhosts"): properties,
    ("proxy", "bypass"): bypass,
    ("bugs", "no_proxy"): no_proxy_reported,
    ("bugs", "no_proxy_list"): no_proxy_reported,
    ("bugs", "libproxy_ignore"): no_proxy_reported,
    ("bugs", "proxy_for_url"): proxy_for_url_reported,
    ("bugs", "proxy_for_url_list"): proxy_for_url_reported,
    ("bugs", "win_proxy_server"): windows_server,
    ("bugs", "win_bypass"): exceptions_reported,
    ("bugs", "mac_exceptions"): exceptions_reported,
    ("bugs", "jvm_non_proxy_hosts"): exceptions_reported,
    ("bugs", "desktop_config"): desktop_reported,
}
