"""What every subject needs: how a case fails or is skipped, and one comparison of JSON."""
import json
import socket

import byway


class Fails(Exception):
    """The case does not hold."""


class Skips(Exception):
    """Why a case cannot be run from here."""


def equal(got, want):
    """The same JSON; true is no 1."""
    if isinstance(got, bool) or isinstance(want, bool):
        return got is want
    if isinstance(got, dict) and isinstance(want, dict):
        return got.keys() == want.keys() and all(equal(got[key], want[key]) for key in got)
    if isinstance(got, list) and isinstance(want, list):
        return len(got) == len(want) and all(map(equal, got, want))
    return got == want and isinstance(got, str) == isinstance(want, str)


def shown(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def same(got, want, what):
    if not equal(got, want):
        raise Fails(f"{what}: got {shown(got)}, want {shown(want)}")


def need(good, why):
    if not good:
        raise Fails(why)


def status_of(function, *arguments, **options):
    """The status a call answers, 0 for success."""
    try:
        function(*arguments, **options)
    except byway.BywayError as error:
        return error.code
    return 0


def ip_text(ip):
    """Text of an address, None for none: only mapped ones have an IPv4 half."""
    if ip is None:
        return None
    if ip.version == 4:
        return str(ip)
    text = socket.inet_ntop(socket.AF_INET6, ip.packed)
    if "." in text and not text.startswith("::ffff:"):
        return "::{:x}:{:x}".format(int.from_bytes(ip.packed[12:14], "big"), int.from_bytes(ip.packed[14:], "big"))
    return text
