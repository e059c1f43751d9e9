"""A host's own routers."""
from __future__ import annotations

import ctypes
from typing import Callable, Iterable, List, Optional

from . import _abi, _callbacks
from ._core import Handle, give
from ._library import lib
from .engine import Call, Engine


class RouterRequest:
    """What a host's router is asked: which of ``tags`` stay? Only until the callback returns."""

    __slots__ = ("method", "tags", "explaining", "call", "_pointer")

    def __init__(self, pointer: int, call: Call) -> None:
        raw = _abi.byway_router_request.from_address(pointer)
        self._pointer = pointer
        self.method = _callbacks.text(raw.method.data, raw.method.len)
        #: The host's numbers of the providers that came in, in list order.
        self.tags: List[int] = list((ctypes.c_uint64 * raw.count).from_address(raw.tags)) if raw.count else []
        #: An explanation is made: nothing is sent anywhere with the answer, and no counter should move.
        self.explaining = bool(raw.explaining)
        self.call = call

    def attachment(self, key: str) -> Optional[str]:
        """An attachment of the call, None when it has none of this key."""
        name, out = key.encode(), _abi.byway_str()
        if not self._pointer:
            raise ValueError("the router's callback has returned")
        status = lib.byway_router_request_attachment(self._pointer, name, len(name), ctypes.addressof(out))
        return _callbacks.text(out.data, out.len) if status == _abi.BYWAY_OK else None

    def argument(self, index: int) -> Optional[str]:
        """An argument of the call by its text; None behind the last one and for a null argument."""
        out = _abi.byway_str()
        if not self._pointer:
            raise ValueError("the router's callback has returned")
        status = lib.byway_router_request_argument(self._pointer, index, ctypes.addressof(out))
        return _callbacks.text(out.data, out.len) if status == _abi.BYWAY_OK and out.data else None


Route = Callable[[RouterRequest], Optional[Iterable[int]]]


class Router(Handle):
    """A router of the host's: ``route`` gets a ``RouterRequest`` and returns the numbers that stay; None passes."""

    __slots__ = ()
    _end = "byway_router_release"

    def __init__(
        self,
        engine: Engine,
        name: str,
        route: Route,
        *,
        priority: int = 0,
        every_chain: bool = False,
        by_name: bool = False,
    ) -> None:
        raw = name.encode()
        flags = (_abi.BYWAY_ROUTER_EVERY_CHAIN if every_chain else 0) | (_abi.BYWAY_ROUTER_BY_NAME if by_name else 0)
        callbacks = _abi.byway_router_callbacks(
            ctypes.sizeof(_abi.byway_router_callbacks), _callbacks.register(route), _callbacks.destroy, _ROUTE
        )
        super().__init__(
            give(
                lib.byway_router_new, engine.pointer, raw, len(raw), priority, flags, ctypes.addressof(callbacks)
            )
        )


def _route(target: Route, address: int, call: int) -> int:
    request = RouterRequest(address, Call(call))
    try:
        stay = target(request)
        if stay is None:
            return _abi.BYWAY_PASS
        kept = set(stay)
    finally:
        request._pointer = 0
        request.call.end()
    if request.tags:
        raw = _abi.byway_router_request.from_address(address)
        keep = (ctypes.c_uint8 * raw.count).from_address(raw.keep)
        for i, tag in enumerate(request.tags):
            keep[i] = 1 if tag in kept else 0
    return _abi.BYWAY_OK


_ROUTE = _callbacks.guarded(_abi.byway_router_callbacks_route, _route)
