"""okhttp.jsonl route_selector and route_database: scripts of selections, reports and questions against one engine."""
import byway
from byway import EventKind, _abi
from case import Fails, ip_text, need, same
from okhttp_words import address_of, line, proxy_of

ERRORS = {
    _abi.BYWAY_E_UNKNOWN_HOST: "unknown_host",
    _abi.BYWAY_E_EMPTY_ANSWER: "unknown_host",
    _abi.BYWAY_E_INVALID_PORT: "socket",
    _abi.BYWAY_E_ARGUMENT: "illegal_argument",
    _abi.BYWAY_E_NULL: "null_pointer",
    _abi.BYWAY_E_HOST: "runtime",
}
KINDS_HEARD = [EventKind.PROXY_SELECT_START, EventKind.PROXY_SELECT_END, EventKind.DNS_START, EventKind.DNS_END]


def proxy_json(proxy):
    if proxy is None:
        return {"type": "DIRECT"}
    shown = {"type": "HTTP" if proxy.kind in (byway.ProxyKind.HTTP, byway.ProxyKind.HTTPS) else "SOCKS",
             "host": proxy.host, "port": proxy.port}
    # A host that is a literal is its own address.
    if proxy.ip is not None and ip_text(proxy.ip) != proxy.host:
        shown["ip"] = ip_text(proxy.ip)
    return shown


def error_json(error):
    return {"error": ERRORS.get(error.code, error.name), "message": error.message}


NOTHING_LEFT = {"error": "no_such_element", "message": ""}


class World:
    def __init__(self, case):
        self.case = case
        flags = 0 if case.get("fast_fallback", True) else _abi.BYWAY_ROUTING_NO_FAST_FALLBACK
        self.engine = byway.Engine(compat=line(case), routing_flags=flags)
        self.dns = byway.Dns(self.engine, self.lookup, takes_request=True)
        self.chooser = byway.ProxySelector(self.engine, self.choose, takes_request=True)
        self.engine.add_listener(self.on_event, KINDS_HEARD)
        self.names = dict(case.get("dns") or {})
        self.proxies = case.get("selector")
        self.address = self.selector = self.selection = None
        self.saved, self.select_count = {}, 0
        self.begin_step()

    def begin_step(self):
        self.uris, self.asked, self.events = [], [], []

    # --- what byway asks ---

    def lookup(self, request):
        self.asked.append(request.host)
        for item in self.names.get(request.host) or ():
            if isinstance(item, str) or item.get("ip"):
                request.add(item if isinstance(item, str) else item["ip"])
            else:
                request.add_service(target=item.get("target") or "", priority=0, port=item.get("port") or 0,
                                    ech=bytes.fromhex(item.get("ech_hex") or ""), hints=item.get("hints") or ())

    def choose(self, request):
        self.uris.append(request.uri)
        self.select_count += 1
        if isinstance(self.proxies, dict):
            argument = self.proxies.get("error") == "illegal_argument"
            request.fail(self.proxies.get("message") or "", code=_abi.BYWAY_E_ARGUMENT if argument else _abi.BYWAY_E_HOST)
            return
        for item in self.proxies or ():
            kind, port = (item or {}).get("type"), (item or {}).get("port") or 0
            if kind == "DIRECT":
                request.add(None)
            elif not kind:
                # A list with nothing in one of its places; here DIRECT is what None means.
                raise byway.ArgumentError(_abi.BYWAY_E_NULL)
            elif not item.get("ip") or port < 1:
                # No proxy has port 0; an entry may, and is then one failed entry.
                socks = byway.ProxyKind.SOCKS5H if kind == "SOCKS" else byway.ProxyKind.HTTP
                request.add_place(socks, item.get("ip") or item.get("host") or "", port)
            else:
                request.add(proxy_of(item))

    def on_event(self, event):
        about = event.kind <= EventKind.PROXY_SELECT_END
        shown = {"event": event.kind.name.lower(), "url" if about else "host": event.subject}
        if event.kind == EventKind.PROXY_SELECT_END:
            shown["proxies"] = [proxy_json(proxy) for proxy in event.proxies]
        if event.kind == EventKind.DNS_END:
            shown["ips"] = [ip_text(ip) for ip in event.ips]
        self.events.append(shown)

    # --- what the case does ---

    def route_json(self, route):
        ip, port = route.socket_address
        place = {"ip": ip_text(ip)} if ip is not None else {"unresolved_host": self.address.host}
        shown = {"proxy": proxy_json(route.proxy), "socket": {**place, "port": port},
                 "requires_tunnel": route.requires_tunnel}
        if route.service is not None and route.service.ech:
            shown["ech_hex"] = route.service.ech.hex()
        return shown

    def new_selector(self, step):
        self.selector = self.selection = None
        if "selector" in step:
            self.proxies = step["selector"]
        if self.address is None or "address" in step:
            self.address = address_of(self.engine, (step if "address" in step else self.case)["address"],
                                      self.case.get("explicit_proxy"), self.dns, self.chooser)
        self.selector = byway.Selector(self.address)

    def has_next_selection(self, step):
        return {"value": self.selector.may_have_next}

    def next_selection(self, step):
        self.selection = self.selector.next(0)
        if self.selection is None:
            return NOTHING_LEFT
        return {"routes": [self.route_json(route) for route in self.selection]}

    def selection_has_next(self, step):
        return {"value": self.selection.more}

    def next_route(self, step):
        route = self.selection.take()
        if route is None:
            return NOTHING_LEFT
        if step.get("save_as"):
            self.saved[step["save_as"]] = route
        return {"route": self.route_json(route)}

    def failed_routes(self, step):
        """The database's records name hops; the saved routes they belong to are recognised by them."""
        records, routes = self.engine.failed_routes(), []
        for record in records:
            like = (record.ip, record.port, record.proxy_kind)
            routes += [name for name, route in self.saved.items() if (*route.hop, route.proxy_kind) == like][:1]
        return {"count": len(records), "routes": routes}

    def connect_failed(self, step):
        self.engine.connect_failed(self.saved[step["route"]], byway.Failure.IO, phase=byway.Phase.EXCHANGE)

    def connected(self, step):
        self.engine.connected(self.saved[step["route"]])

    def should_postpone(self, step):
        return {"value": self.engine.should_postpone(self.saved[step["route"]])}

    def set_dns(self, step):
        self.names.update(step["dns"])

    def clear_dns(self, step):
        self.names = {}

    def mutate_selector_list(self, step):
        self.proxies = step["proxies"]

    def selector_request_count(self, step):
        return {"count": self.select_count}

    def perform(self, step):
        try:
            return getattr(self, step["op"])(step) or {}
        except byway.BywayError as error:
            return error_json(error)

    def check(self, number, step, got):
        expect = step.get("expect") or {}
        for key, want in expect.items():
            what = f"step {number} {step['op']}: {key}"
            if key == "message_contains":
                need(want in got.get("message", ""), f"{what}: got {got.get('message')}")
                continue
            told = {"selector_uris": self.uris, "dns_requests": self.asked, "events": self.events}
            if key == "proxies":
                have = next((event["proxies"] for event in self.events if "proxies" in event), None)
            else:
                have = told[key] if key in told else got.get(key)
            same(have, want, what)
        if "error" in got and not expect.get("error"):
            raise Fails(f"step {number} {step['op']}: {got}")


def run(case):
    world = World(case)
    try:
        for number, step in enumerate(case["steps"]):
            world.begin_step()
            world.check(number, step, world.perform(step))
    finally:
        world.engine.close()


KINDS = {("okhttp", "route_selector"): run, ("okhttp", "route_database"): run}
