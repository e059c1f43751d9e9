"""Proxy dialogues through `byway.Handshake`: SOCKS bytes, CONNECT bytes, whole CONNECT flows. Every input runs whole, byte
by byte, and cut at every place (long ones at a sample of places)."""
import re

import byway
from byway import DialFlag, Handshake, ProxyKind, Want, _abi
from case import Fails, need, same

# Names of faults and how their messages begin: what an error shows.
FAULTS = {
    "PROXY_CLOSED": "the proxy closed without an answer",
    "TRUNCATED": "the proxy closed inside its answer",
    "BAD_VERSION": "the answer is not of the expected SOCKS version",
    "BAD_HOST": "the host has characters",
    "EMPTY_HOST": "the host is empty",
    "LONG_HOST": "the host is longer",
    "LONG_USER": "the user name is longer",
    "LONG_PASSWORD": "the password is longer",
    "BAD_USER": "user or password has characters",
    "BAD_PORT": "port outside",
    "UNSUPPORTED_ADDRESS": "this protocol cannot carry",
    "UNRESOLVED_HOST": "SOCKS4 needs an address",
    "SOCKS4_REJECTED": "SOCKS4: rejected",
    "SOCKS4_NO_IDENTD": "SOCKS4: identd not reachable",
    "SOCKS4_IDENT_MISMATCH": "SOCKS4: identd names",
    "SOCKS4_UNKNOWN_CODE": "SOCKS4: unknown",
    "NO_ACCEPTABLE_METHOD": "SOCKS5: the proxy accepts no",
    "METHOD_NOT_OFFERED": "SOCKS5: the proxy picked",
    "BAD_AUTH_VERSION": "SOCKS5: wrong version",
    "AUTH_REJECTED": "SOCKS5: user or password refused",
    "REP_GENERAL_FAILURE": "SOCKS5: general failure",
    "REP_NOT_ALLOWED": "SOCKS5: not allowed",
    "REP_NET_UNREACHABLE": "SOCKS5: network unreachable",
    "REP_HOST_UNREACHABLE": "SOCKS5: host unreachable",
    "REP_REFUSED": "SOCKS5: connection refused",
    "REP_TTL_EXPIRED": "SOCKS5: TTL",
    "REP_COMMAND_NOT_SUPPORTED": "SOCKS5: command",
    "REP_ADDRESS_TYPE_NOT_SUPPORTED": "SOCKS5: address type not",
    "REP_UNASSIGNED": "SOCKS5: unassigned",
    "BAD_ATYP": "SOCKS5: unknown address type",
    "BAD_RESERVED": "SOCKS5: reserved",
    "BAD_STATUS_LINE": "CONNECT: not an HTTP/1 status line",
    "BAD_HEADER": "CONNECT: a header has forbidden",
    "HEADER_TOO_LARGE": "CONNECT: the answer's head is too large",
    "CONNECT_STATUS": "CONNECT: the proxy refuses the tunnel",
    "CONNECT_AUTH_REQUIRED": "CONNECT: the proxy wants",
    "CONNECT_AUTH_LOOP": "CONNECT: the proxy keeps",
    "EARLY_DATA": "CONNECT: data behind",
}


def fault_of(error):
    """The fault an error stands for, `NAME` or `NAME:number`."""
    name = next((name for name, begin in FAULTS.items() if error.message.startswith(begin)), error.message)
    return f"{name}:{error.message.rsplit(' ', 1)[-1]}" if name == "CONNECT_STATUS" else name


def cuts(length):
    """Every way to cut so many bytes in two, whole, and byte by byte: the first piece and each further one."""
    yield length, 1
    yield 1, 1
    step = length // 24 if length > 65536 else length // 600 + 1
    for cut in range(1, length, step):
        yield cut, length - cut


def piece(data, done, first, rest):
    """What arrives next."""
    return data[done:done + max(1, first if done == 0 else rest)]


def each_cut(data, run):
    for first, rest in cuts(len(data)):
        try:
            run(first, rest)
        except Fails as why:
            raise Fails(f"first piece {first}: {why}") from why


# --- SOCKS ---


def note_output(dialogue, sent):
    if dialogue.want == Want.WRITE:
        data = dialogue.output()
        if data:
            sent.append(data.hex())
            dialogue.sent(len(data))


def socks_once(case, data, first, rest):
    options, version, sent = case.get("options") or {}, case.get("version", "5"), []
    flags = 0
    for names, flag in ((("strict", "socks_strict"), DialFlag.SOCKS_STRICT), (("require_auth",), DialFlag.SOCKS_REQUIRE_AUTH),
                        (("optimistic", "socks_optimistic"), DialFlag.SOCKS_OPTIMISTIC)):
        if any(options.get(name) for name in names):
            flags |= flag
    kind = {"4": ProxyKind.SOCKS4, "4a": ProxyKind.SOCKS4A}.get(version, ProxyKind.SOCKS5)
    done, got = 0, {"sent": sent}
    try:
        dialogue = Handshake.to(kind, case.get("host") or "", case.get("port") or 0, username=case.get("user"),
                                password=case.get("password") or "", flags=flags)
        note_output(dialogue, sent)
        while done < len(data):
            want, limit = dialogue.wanted()
            if want != Want.READ:
                break
            done += dialogue.feed(piece(data, done, first, rest)[:limit])
            note_output(dialogue, sent)
        if case.get("eof"):
            dialogue.eof()
    except byway.BywayError as error:
        got.update(result="error", error=fault_of(error))
    else:
        if dialogue.want == Want.DONE:
            got.update(result="connected", leftover=data[done:].hex())
        else:
            got["result"] = "pending"
    # What the proxy says it connected from is informative and not part of the interface.
    same(got, {key: value for key, value in case["expect"].items() if key != "bound"}, "dialogue")


def socks(case):
    data = b"".join(map(bytes.fromhex, case.get("recv") or ()))
    each_cut(data, lambda first, rest: socks_once(case, data, first, rest))


# --- CONNECT, one answer ---


def by_rule(rule):
    """`HTTP/1.1 200 OK CRLF 3 x 'text' CRLF`, as the cases write long answers; a number in front repeats all of it."""
    whole = re.match(r"(\d+) x ", rule)
    times, rule = (int(whole.group(1)), rule[whole.end():]) if whole else (1, rule)
    out = ""
    for number, text, word in re.findall(r"(?:(\d+) x )?'([^']*)'|(CRLF|HTTP/1\.1 200 OK)", rule.split(", no line end")[0]):
        out += "\r\n" if word == "CRLF" else word or text * int(number or 1)
    return (out * times).encode("latin-1")


def to_example(**options):
    return Handshake.to(ProxyKind.HTTP, "example.com", 443, **options)


def write_all(dialogue):
    if dialogue.want == Want.WRITE:
        dialogue.sent(len(dialogue.output()))


def challenged(dialogue, expect):
    need(dialogue.want == Want.CREDENTIALS, f"wants {dialogue.want.name} instead of credentials")
    same(dialogue.challenges(), expect.get("challenges") or [], "challenges")
    dialogue.answer("Basic x")
    same(dialogue.want == Want.WRITE, bool(expect.get("reuse")), "reuse")


def connect_once(case, data, first, rest):
    options, expect = case.get("options") or {}, case["expect"]
    flags = (DialFlag.STRICT_200 if options.get("strict_200") else 0) | (
        DialFlag.REJECT_EARLY_DATA if options.get("reject_early_data") else 0)
    dialogue = to_example(flags=flags, **{name: options.get(name, 0) for name in ("max_line", "max_header", "max_drain")})
    done, fault = 0, ""
    try:
        write_all(dialogue)
        while done < len(data) and dialogue.want == Want.PEEK:
            done += dialogue.feed(piece(data, done, first, rest))
        if case.get("eof"):
            dialogue.eof()
    except byway.BywayError as error:
        fault = fault_of(error)
    want, result = dialogue.want, expect.get("result")
    if result == "error":
        # With a piece that ends at the head's end the data behind it comes too late to be refused here.
        if expect["error"] == "EARLY_DATA" and want == Want.DONE and done < len(data):
            fault = "EARLY_DATA"
        same(fault, expect["error"], "fault")
        return
    same(fault, "", "fault")
    if result == "tunnel":
        need(want == Want.DONE, f"wants {want.name}")
        same(data[done:].decode("latin-1"), expect.get("leftover") or "", "left over")
    elif result == "pending":
        need(want == Want.PEEK, f"wants {want.name} instead of more")
    elif result == "auth_challenge":
        challenged(dialogue, expect)
    else:
        raise Fails(f"unknown expectation {result}")


def connect(case):
    data = case["recv"].encode("latin-1") if isinstance(case.get("recv"), str) else by_rule(case["recv_rule"])
    each_cut(data, lambda first, rest: connect_once(case, data, first, rest))


def connect_request(case):
    auth, expect = case.get("auth"), case["expect"]
    try:
        dialogue = Handshake.to(ProxyKind.HTTP, case.get("host") or "", case.get("port") or 0,
                                user_agent=case.get("ua", "test/1"), flags=0 if auth is None else DialFlag.ASK_FIRST)
        if auth is not None:
            dialogue.answer(auth)
        got = dialogue.output().decode("latin-1")
    except byway.BywayError as error:
        # Refused with the options already.
        got = {"error": "BAD_HEADER" if error.code == _abi.BYWAY_E_ARGUMENT else fault_of(error)}
    same(got, expect, "request")


# --- CONNECT, whole flows ---


class Flow:
    """A proxy that says what the case scripts, connection by connection."""

    def __init__(self, case):
        self.case, self.auth = case, case.get("auth") or []
        options = case.get("options") or {}
        ask_first = not self.auth or self.auth[0] != "none_preemptive"
        flags = (DialFlag.ASK_FIRST if ask_first else 0) | (
            0 if options.get("stop_on_same_credentials") else DialFlag.REPEAT_CREDENTIALS)
        self.dialogue = to_example(flags=flags, max_tunnel_attempts=options.get("max_tunnel_attempts", 0))
        self.answers, self.last = 0 if ask_first else 1, None
        self.connection = self.turn = self.calls = self.requests = 0

    def item(self):
        script = self.case["connections"][self.connection] if self.connection < len(self.case["connections"]) else []
        return script[self.turn] if self.turn < len(script) else None

    def write(self):
        data = self.dialogue.output()
        found = re.search(rb"^(Proxy-Authorization: [^\r]*)\r", data, re.M)
        phrase = f"CONNECT example.com:443 ({found.group(1).decode() if found else 'no Proxy-Authorization'})"
        item = self.item()
        need(item is not None, f"a request too many: {phrase}")
        if item != "EOF":
            same(phrase, item, "request")
            self.turn += 1
            self.requests += 1
        self.dialogue.sent(len(data))

    def read(self):
        item = self.item()
        if item is None or item == "EOF":
            self.dialogue.eof()
            return
        self.turn += 1
        for byte in item.encode("latin-1"):
            self.dialogue.feed(bytes([byte]))

    def credentials(self):
        """False when the case calls the dial off."""
        self.calls += bool(self.dialogue.challenges())
        item = self.auth[self.answers] if self.answers < len(self.auth) else None
        if item != "repeat":
            self.last = item
            self.answers += 1
        if self.last == "cancel":
            return False
        self.dialogue.answer(self.last)
        return True

    def run(self):
        """`tunnel` or `canceled`."""
        while True:
            want = self.dialogue.want
            if want == Want.WRITE:
                self.write()
            elif want == Want.PEEK:
                self.read()
            elif want == Want.CREDENTIALS:
                if not self.credentials():
                    return "canceled"
            elif want == Want.RECONNECT:
                self.connection += 1
                self.turn = 0
                self.dialogue.reconnected()
            else:
                return "tunnel"


def connect_flow(case):
    flow, expect, fault = Flow(case), case["expect"], ""
    try:
        result = flow.run()
    except byway.BywayError as error:
        result, fault = "error", fault_of(error)
    same(result, expect["result"], f"result ({fault})")
    same(fault, expect.get("error") or "", "fault")
    for name, got in (("tcp_connects", flow.connection + 1), ("requests_sent", flow.requests), ("auth_calls", flow.calls)):
        same(got, expect.get(name, got), name)


# --- the bug log: answers and requests in the reporters' words ---


def means(want, fault):
    """What an error of the log means among ours."""
    if want == "unexpected_eof":
        return fault in ("TRUNCATED", "PROXY_CLOSED")
    if want.startswith("protocol"):
        return fault.startswith("BAD_")
    if "too_long" in want:
        return fault.startswith("LONG_")
    return want.lower() == fault.lower()


def answer_once(case, data, first, rest):
    given, expect = case["input"], case["expect"]
    user, colon, password = (given.get("credentials") or "").partition(":")
    done, fault = 0, ""
    try:
        dialogue = Handshake.to(ProxyKind.HTTP, "o.example", 443, username=user if colon else None,
                                password=password if colon else None, flags=DialFlag.NO_PREEMPTIVE_AUTH)
        while done < len(data):
            write_all(dialogue)
            if dialogue.want != Want.PEEK:
                break
            done += dialogue.feed(piece(data, done, first, rest))
        if given.get("eof"):
            dialogue.eof()
    except byway.BywayError as error:
        fault = fault_of(error)
    want, connections = dialogue.want, 1
    if expect.get("error") is not None:
        need(means(expect["error"], fault), f"got {fault}, want {expect['error']}")
    else:
        same(fault, "", "fault")
        if "tunnel" in expect:
            same(want == Want.DONE, expect["tunnel"], "tunnel")
        if "leftover" in expect:
            same(data[done:].decode("latin-1"), expect["leftover"], "left over")
        if "action" in expect:
            same("reconnect_with_credentials", expect["action"], "action")
            need(want == Want.RECONNECT, f"wants {want.name}")
            dialogue.reconnected()
            need(b"Proxy-Authorization: Basic " in dialogue.output(), "no credentials")
        elif want == Want.RECONNECT:
            connections += 1
    same(connections, expect.get("connections", connections), "connections")


def connect_reply(case):
    data = "".join(case["input"]["chunks"]).encode("latin-1")
    each_cut(data, lambda first, rest: answer_once(case, data, first, rest))


def reported_request(case):
    given, expect = case["input"], case["expect"]
    headers = given.get("request_headers") or {}
    try:
        dialogue = Handshake.to(ProxyKind.HTTP, given.get("host") or "", given.get("port") or 0, headers=headers)
    except byway.BywayError as error:
        need(means(expect.get("error") or "", fault_of(error)), f"got {fault_of(error)}")
        return
    request = dialogue.output().decode("latin-1")
    for key, want in expect.items():
        if key == "request_line":
            need(request.startswith(f"{want}\r\n"), f"got {request[:60]}")
        elif key == "in_connect":
            name, value = next(iter(headers.items()))
            same(f"{name}: {value}\r\n" in request, want, key)
        elif key == "in_tunnel":
            same(not request.endswith("\r\n\r\n"), want, key)
        else:
            raise Fails(f"unknown expectation {key}")


def socks5(user=None, password=None):
    dialogue = Handshake.to(ProxyKind.SOCKS5H, "o.example", 443, username=user, password=password)
    write_all(dialogue)
    dialogue.feed(b"\5\0" if user is None else b"\5\2")
    return dialogue


def socks5_auth(case):
    dialogue = socks5(case["input"].get("user") or "", case["input"].get("password") or "")
    same(dialogue.output().hex(), case["expect"]["bytes_hex"], "bytes")


def reply_once(case, data, first, rest):
    dialogue, expect, done, fault = socks5(), case["expect"], 0, ""
    try:
        write_all(dialogue)
        while done < len(data) and dialogue.want == Want.READ:
            done += dialogue.feed(piece(data, done, first, rest))
    except byway.BywayError as error:
        fault = fault_of(error)
    if expect.get("error") is not None:
        need(means(expect["error"], fault), f"got {fault}, want {expect['error']}")
    else:
        need(dialogue.want == Want.DONE, f"wants {dialogue.want.name} {fault}")
        same(data[done:].hex(), expect.get("leftover_hex") or "", "left over")


def socks5_reply(case):
    data = bytes.fromhex(case["input"]["hex"])
    each_cut(data, lambda first, rest: reply_once(case, data, first, rest))


KINDS = {
    ("bugs", "connect_reply"): connect_reply,
    ("bugs", "connect_request"): reported_request,
    ("bugs", "socks5_auth"): socks5_auth,
    ("bugs", "socks5_reply"): socks5_reply,
    ("connect", "socks"): socks,
    ("connect", "connect"): connect,
    ("connect", "connect_request"): connect_request,
    ("connect", "connect_flow"): connect_flow,
}
