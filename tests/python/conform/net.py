"""byway's own rules of bugs.jsonl: proxies that cannot be, and what one selector gives."""
from urllib.parse import urlsplit

import byway
from byway import _abi
from case import Fails, ip_text, need, same
from okhttp_words import address_of

ERRORS = {
    _abi.BYWAY_E_INVALID_PORT: "port_out_of_range",
    _abi.BYWAY_E_UNKNOWN_HOST: "unknown_host",
    _abi.BYWAY_E_PROXY_SELECTOR: "selector_failed",
    _abi.BYWAY_E_FILTERED: "filtered",
    _abi.BYWAY_E_NULL: "invalid_argument",
    _abi.BYWAY_E_ARGUMENT: "invalid_argument",
}
SOCKS_OR_HTTP = {"SOCKS": byway.ProxyKind.SOCKS5H, "HTTP": byway.ProxyKind.HTTP}


def error_name(error):
    return ERRORS.get(error.code, error.name)


def make_proxy(case):
    given = case["input"]
    try:
        got = {"text": str(byway.Proxy(SOCKS_OR_HTTP[given["type"]], given.get("host") or "", given.get("port") or 0))}
    except byway.BywayError as error:
        got = {"error": error_name(error)}
    same(got, case["expect"], "proxy")


class Script:
    """An engine as the case wants it; `open`: a proxy selector that fails or names nobody means DIRECT."""

    def __init__(self, case, open, connect_failed=None):
        self.given = given = case["input"]
        self.own_name = isinstance(case["expect"].get("dns_calls"), list)
        self.now, self.steps, self.asked, self.reported = 0, {}, [], []
        flags = 0 if given.get("fast_fallback", True) else _abi.BYWAY_ROUTING_NO_FAST_FALLBACK
        self.engine = byway.Engine(
            monotonic=lambda: self.now, database_capacity=given.get("cap", 4096), postpone_for=given.get("ttl_s", 300),
            routing_flags=flags | (_abi.BYWAY_ROUTING_EMPTY_IS_DIRECT if open else 0),
            direct_on_proxy_selector_error=open,
        )
        self.dns = dns = byway.Dns(self.engine, self.lookup)
        chooser = byway.ProxySelector(self.engine, self.choose, connect_failed, takes_request=True)
        self.engine.add_listener(self.on_event, [byway.EventKind.CONNECT_FAILED])
        url = urlsplit(given.get("url") or "http://h/")
        port = url.port or (443 if url.scheme == "https" else 80)
        self.address = address_of(self.engine, {"scheme": url.scheme, "host": url.hostname, "port": port}, None, dns, chooser)

    def lookup(self, host):
        self.asked.append(host)
        if self.own_name and host == "p1":
            # The proxy's own name is answered, whatever the case says.
            return ["192.0.2.77"]
        sequence = (self.given.get("dns_sequence") or {}).get(host)
        if sequence:
            # The last answer stays.
            at = self.steps[host] = self.steps.get(host, -1) + 1
            return sequence[min(at, len(sequence) - 1)]
        return (self.given.get("dns") or {}).get(host) or []

    def choose(self, request):
        if "selector_error" in self.given:
            request.fail("scripted", code=_abi.BYWAY_E_ARGUMENT)
            return
        proxies = self.given.get("proxies")
        for text in ["DIRECT"] if proxies is None else proxies:
            if text is None:
                # A list with nothing in one of its places; here DIRECT is what None means.
                raise byway.ArgumentError(_abi.BYWAY_E_NULL)
            kind, _, place = text.partition(" ")
            if not place:
                request.add(None)
            else:
                host, _, port = place.rpartition(":")
                request.add_place(SOCKS_OR_HTTP[kind], host, int(port))

    def on_event(self, event):
        if event.error is not None:
            self.reported.append({"error": error_name(event.error)})

    def fail_routes(self):
        for ip in self.given.get("failed") or ():
            route = byway.Route(self.address, None, ip)
            self.engine.connect_failed(route, byway.Failure.REFUSED, os_errno=111)
        # What was reported by the case itself is no word of the selector's.
        self.reported = []
        self.now = 1000000

    def select_all(self):
        """Everything one selector gives: Selections and errors, up to the end."""
        selector, given = byway.Selector(self.address), []
        while len(given) < 32:
            try:
                selection = selector.next(0)
            except byway.BywayError as error:
                given.append(error)
                continue
            if selection is None:
                return given
            given.append(selection)
        raise Fails("a selector without end")


def with_port(ip, port):
    return f"[{ip_text(ip)}]:{port}" if ip.version == 6 else f"{ip_text(ip)}:{port}"


def written(route, like):
    """A route in the notation a case uses: as much as its expectation says."""
    hop, port = route.hop
    name, target, target_port = route.target
    if hop is None:
        return "unresolved hop"
    proxy = route.proxy
    if proxy is not None:
        kind = "HTTP" if proxy.kind in (byway.ProxyKind.HTTP, byway.ProxyKind.HTTPS) else "SOCKS"
        text = f"{kind} {proxy.host}:{proxy.port}"
        if "->" not in like:
            return f"{text}@{ip_text(hop)}"
        return f"{text} -> " + (f"{name}:{target_port} unresolved" if target is None else with_port(target, target_port))
    return f"DIRECT@{with_port(hop, port)}" if like.startswith("DIRECT@") else ip_text(hop)


def at(want, index):
    """What a case expects at a place, if it says."""
    return want[index] if isinstance(want, list) and index < len(want) else None


def shown(given, like):
    if isinstance(given, byway.Selection):
        first = at(like, 0)
        return [written(route, next((text for text in (at(like, i), first) if isinstance(text, str)), ""))
                for i, route in enumerate(given)]
    error = {"error": error_name(given)}
    if isinstance(like, dict) and "host" in like:
        error["host"] = given.subject
    return error


def read_next(script, first, want):
    """byway goes on in the same call where an entry cannot serve, and reports it: the events take the place of the
    errors."""
    by_events = len(want) > 2 and isinstance(want[0], dict) and "error" in want[0]
    shown_all = list(script.reported) if by_events else []
    for given in first:
        if by_events and isinstance(given, byway.BywayError):
            return error_name(given)
        shown_all.append(shown(given, at(want, len(shown_all))))
    return [*shown_all, "end"]


def read(script, rounds, key, want):
    first = rounds[0]
    if key == "next":
        return read_next(script, first, want)
    if key == "order":
        return shown(first[0], want) if first else None
    if key == "error":
        return error_name(first[0]) if first and isinstance(first[0], byway.BywayError) else None
    if key == "selections":
        return [shown(given, at(want, i)) for i, given in enumerate(first)]
    if key == "first_routes":
        return [written(given[0][0], at(want, i) or "") if given and isinstance(given[0], byway.Selection) else None
                for i, given in enumerate(rounds)]
    if key == "dns_calls":
        # The origin's name must not be asked for; the proxy's own is another matter.
        return [name for name in script.asked if name == script.address.host]
    raise Fails(f"no reading for {key}")


def route_selector(case):
    """As the case stands; where the answer is OkHttp's policy (no proxies or a failing selector mean DIRECT) the default
    must fail closed, and the policy must give what the case says."""
    given, expect = case["input"], case.get("expect_byway") or case["expect"]
    fails_closed = "selector_error" in given or given.get("proxies") == []
    if fails_closed:
        script = Script(case, False)
        got = script.select_all()
        script.engine.close()
        need(len(got) == 1 and isinstance(got[0], byway.BywayError), "the default must fail closed")
    script = Script(case, fails_closed)
    try:
        script.fail_routes()
        rounds = [script.select_all() for _ in range(int(given.get("selections_count", 1)))]
        for key, want in expect.items():
            same(read(script, rounds, key, want), want, key)
    finally:
        script.engine.close()


KINDS = {("bugs", "make_proxy"): make_proxy, ("bugs", "route_selector"): route_selector}
