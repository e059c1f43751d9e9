"""Addresses as Python has them, hosts as the engine reads them."""
from __future__ import annotations

import ctypes
import enum
import ipaddress
from typing import Any, Iterable, List, Optional, Union

from . import _abi
from ._core import Handle, call, check, give, made, take_text
from ._library import lib

Ip = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


class Compat(enum.IntEnum):
    """Which behaviour the first half shows."""

    BYWAY = _abi.BYWAY_COMPAT_BYWAY
    OKHTTP_5 = _abi.BYWAY_COMPAT_OKHTTP_5
    OKHTTP_3 = _abi.BYWAY_COMPAT_OKHTTP_3


class FirstFamily(enum.IntEnum):
    """Which family begins where families alternate."""

    V6 = _abi.BYWAY_FIRST_FAMILY_V6
    V4 = _abi.BYWAY_FIRST_FAMILY_V4
    FIRST_ADDRESS = _abi.BYWAY_FIRST_FAMILY_FIRST_ADDRESS


def ip_of(family: int, raw: bytes) -> Optional[Ip]:
    """An address from 16 bytes and its family, None for family 0."""
    if family == 4:
        return ipaddress.IPv4Address(raw[:4])
    if family == 6:
        return ipaddress.IPv6Address(raw)
    return None


def ip_from(value: Any) -> Optional[Ip]:
    """An address from a ``byway_ip``."""
    return ip_of(value.family, bytes(value.bytes))


def ip_to(value: Union[str, Ip]) -> Any:
    """A ``byway_ip`` from an address or its text."""
    out = _abi.byway_ip()
    raw = str(value).encode()
    call(lib.byway_ip_parse, raw, len(raw), ctypes.addressof(out))
    return out


def ip_text(value: Union[str, Ip]) -> str:
    """RFC 5952 text of an address, its zone as a number."""
    raw = ip_to(value)
    return take_text(lib.byway_ip_text, ctypes.addressof(raw))


def ip_order(
    ips: Iterable[Union[str, Ip]], first_family: FirstFamily = FirstFamily.V6, first_family_count: int = 1
) -> List[Ip]:
    """The order in which addresses are to be tried: families alternate, inside a family the order stays."""
    raw = [ip_to(ip) for ip in ips]
    array = (_abi.byway_ip * max(1, len(raw)))(*raw)
    call(lib.byway_ip_order, ctypes.addressof(array), len(raw), first_family, first_family_count)
    return [ip for ip in map(ip_from, array[: len(raw)]) if ip is not None]


def host_canonical(host: str, compat: Compat = Compat.BYWAY) -> str:
    """The canonical form of a host name or IP literal, without brackets and zone."""
    raw = host.encode()
    return take_text(lib.byway_host_canonical, compat, raw, len(raw))


def host_is_literal(host: str, compat: Compat = Compat.BYWAY) -> bool:
    """True when a host is taken for an IP literal, which nobody resolves."""
    raw = host.encode()
    return bool(lib.byway_host_is_literal(compat, raw, len(raw)))


class Filter(Handle):
    """Judges target addresses: an allow and deny list of networks, or ``Filter.public()``."""

    __slots__ = ()
    _end = "byway_filter_release"

    def __init__(self, rules: str) -> None:
        raw = rules.encode()
        super().__init__(give(lib.byway_filter_new, raw, len(raw)))

    @classmethod
    def public(cls) -> "Filter":
        """Only addresses of the public internet: the guard against requests forged to inner hosts."""
        return made(cls, lib.byway_filter_new_public)

    def allows(self, ip: Union[str, Ip]) -> bool:
        """True when the filter lets this address through."""
        denied = ctypes.c_int32()
        value = ip_to(ip)
        check(lib.byway_filter_check(self.pointer, ctypes.addressof(value), ctypes.addressof(denied)))
        return not denied.value
