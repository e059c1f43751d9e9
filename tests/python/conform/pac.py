"""Proxy scripts: helpers, arguments, answers, limits. An expression is put into a script whose answer shows its value."""
import calendar
import json
import time

import byway
from byway import PacFlag, PacOptions, ProxySelector, _abi
from case import Skips, need, same, shown
from proxies import as_url, same_list

# Ample, so that a busy machine changes no answer; cases about time bring their own.
AMPLE = 60
# What scripts in the wild rely on.
BROWSERS = PacFlag.EMPTY_IS_DIRECT | PacFlag.BROWSER_CALENDAR
PLAIN_URL = "http://example.com/"
STATUSES = {"pac_timeout": _abi.BYWAY_E_TIMEOUT, "pac_memory": _abi.BYWAY_E_LIMIT, "pac_script_failed": _abi.BYWAY_E_PAC}


class World:
    """An engine whose clock and names are the case's, and what was asked."""

    def __init__(self, given, now=None, flags=BROWSERS, time_limit=AMPLE):
        moment = calendar.timegm(time.strptime(now, "%Y-%m-%dT%H:%M:%SZ")) * 1000 if now else 0
        self.engine = byway.Engine(wall=lambda: moment)
        # Where a case says in words that every lookup fails, there are no names.
        names = dict(given["dns"]) if isinstance(given.get("dns"), dict) else {}
        own = [names.pop("myIpAddress")] if "myIpAddress" in names else []
        self.own, self.names, self.asked = own + list(given.get("local_addresses") or ()), names, []
        self.flags, self.time_limit = flags, time_limit
        self.dns = byway.Dns(self.engine, self.lookup, takes_request=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.engine.close()

    def lookup(self, request):
        self.asked.append(request.host)
        found = [ip for pattern, ip in self.names.items()
                 if (request.host.endswith(pattern[1:]) if pattern.startswith("*") else request.host == pattern)]
        if not found:
            request.fail("no such name")
            return
        request.add(*found)

    def selector(self, script):
        return ProxySelector.pac(self.engine, PacOptions(
            url="pac", source=script, dns=self.dns, my_addresses=self.own, time_limit=self.time_limit, utc_offset=0,
            flags=self.flags))

    def ask(self, selector, url=PLAIN_URL):
        return self.engine.proxies_for_url(selector, url, timeout=120)

    def value(self, expression, url=PLAIN_URL):
        """The value of an expression of `url` and `host`, as JSON shows it."""
        script = f"function FindProxyForURL(url, host) {{ return 'DIRECT;' + JSON.stringify([{expression}]); }}"
        told = self.engine.explain_proxies(self.selector(script), url, timeout=120)
        return json.loads(told["script"]["answer"].partition(";")[2])[0]


def helper(given, expect):
    if isinstance(given.get("dns"), str) and "myIpAddress" in given["expr"]:
        raise Skips("a machine without addresses")
    with World(given, given.get("now")) as world:
        try:
            got = world.value(given["expr"])
        except byway.BywayError as error:
            need(expect.get("throws") is True and error.code == _abi.BYWAY_E_PAC, f"{error!r}, want {shown(expect)}")
            need((expect.get("kind") or "") in str(error), f"{error}, want {expect.get('kind')}")
            return
    need("throws" not in expect, f"got {got}, want {shown(expect)}")
    same(got, expect["value"], "value")


def resolver_sees(given, expect):
    if expect["resolver_input"] == [""]:
        raise Skips("an empty name is nobody's to resolve")
    with World(given) as world:
        try:
            world.value(given["expr"])
        except byway.BywayError as error:
            need(error.code != _abi.BYWAY_E_PAC, f"{error}")
        same(world.asked, expect["resolver_input"], "names asked")


def arguments(given, expect):
    with World(given) as world:
        same(world.value("[url, host]", given["url"]), [expect["url_arg"], expect["host_arg"]], "arguments")


def described(script):
    """A script for the cases that describe one in words."""
    words = {"(FindProxyForURL is a getter that throws on first access)": 1,
             "(FindProxyForURL is a getter that throws on second access)": 2}
    if script not in words:
        return script
    return ("var n = 0; Object.defineProperty(globalThis, 'FindProxyForURL', { get() { "
            f"if (++n >= {words[script]}) throw new Error('no'); return function () {{ return 'DIRECT'; }}; }} }});")


def find(given, expect):
    if "my_ip_calls" in expect:
        raise Skips("how often a script asks for this machine's addresses")
    limit = 0 if expect.get("error") == "pac_timeout" else AMPLE
    with World(given, given.get("now"), time_limit=limit) as world:
        url, script, loading = given.get("url") or PLAIN_URL, described(given["script"]), True
        try:
            selector = world.selector(script)
            loading = False
            got = world.ask(selector, url)
        except byway.BywayError as error:
            want = expect.get("error")
            need(want is not None, f"{error}")
            need(error.code in [STATUSES.get(one) for one in want.split("|")], f"{error!r}, want {want}")
            if "stage" in expect:
                same("load" if loading else "resolve", expect["stage"], "stage")
            return
        need("error" not in expect, f"got {got}, want {shown(expect)}")
        if "sequence" in expect:
            def places(selector):
                return [f"{one.host}:{one.port}" for one in (world.ask(selector, url)[0] for _ in range(given["calls"]))]

            same(places(world.selector(script)), expect["sequence"], "sequence")
            same(places(world.selector(script)), expect["after_reload"], "after a reload")
        else:
            same_list(got, expect["proxies"], "proxies")


def alert(given, expect):
    raise Skips("what a script logs")


OPERATIONS = {"helper": helper, "helper_resolver_sees": resolver_sees, "arguments": arguments, "find": find, "alert": alert}


def pac(case):
    OPERATIONS[case["input"]["op"]](case["input"], case["expect"])


def pac_string(case):
    given, expect = case["input"], case["expect"]
    if given.get("keep_types") is not None:
        raise Skips("lists of kinds a host can use are its own")
    with World({}) as world:
        try:
            got = world.ask(world.selector(f"function FindProxyForURL() {{ return {json.dumps(given['pac'])}; }}"))
        except byway.BywayError as error:
            need("error" in expect, f"{error}")
            return
    need("error" not in expect, f"got {got}")
    same_list(got, expect["proxies"], "proxies")


def pac_reported(case):
    """The defaults."""
    given, expect = case["input"], case["expect"]
    limit = (given.get("budget_ms") or AMPLE * 1000) / 1000
    with World(given, given.get("clock"), PacFlag(0), limit) as world:
        try:
            got = [as_url(proxy) for proxy in world.ask(world.selector(given["script"]), given["url"])]
        except byway.BywayError as error:
            want = expect.get("error")
            need(want is not None and error.code == STATUSES.get(want, _abi.BYWAY_E_PAC), f"{error!r}, want {want}")
            need(want != "pac_syntax" or error.line > 0, f"no line and column: {error}")
        else:
            need("error" not in expect, f"got {got}")
            want = [url.replace("socks5://", "socks5h://").replace("socks://", "socks4://") for url in expect["proxies"]]
            same(got, want, "proxies")
        if "then" in expect:
            again = world.ask(world.selector(expect["then"]["script"]), given["url"])
            same([as_url(proxy) for proxy in again], expect["then"]["proxies"], "then")


KINDS = {
    ("proxy", "pac"): pac,
    ("proxy", "pac_string"): pac_string,
    ("bugs", "pac"): pac_reported,
}
if not byway.has_feature("script"):
    KINDS = {}
