"""A call to be routed."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _abi
from ._core import Handle, check, give, string, strings
from ._library import lib


class Invocation(Handle):
    """A call: method, parameter types, arguments, attachments. May be filled anew for every call; belongs to the thread
    that made it or last reset it.

    ``method_id`` is a number from ``Chain.intern_method``, the fast way to name a method again and again. An argument of
    None is a null argument. Of a generic call (``$invoke``) the first argument is the method that is meant.
    """

    __slots__ = ("_kept", "_attached")
    _end = "byway_invocation_free"

    def __init__(
        self,
        method: str = "",
        *,
        method_id: Optional[int] = None,
        types: Sequence[str] = (),
        arguments: Sequence[Optional[str]] = (),
        attachments: Optional[Mapping[str, str]] = None,
    ) -> None:
        super().__init__(give(lib.byway_invocation_new))
        self._fill(method, method_id, types, arguments, attachments or {})

    def reset(
        self,
        method: str = "",
        *,
        method_id: Optional[int] = None,
        types: Sequence[str] = (),
        arguments: Sequence[Optional[str]] = (),
        attachments: Optional[Mapping[str, str]] = None,
    ) -> "Invocation":
        """Another call in the same memory; the calling thread becomes the owner."""
        check(lib.byway_invocation_reset(self.pointer))
        self._fill(method, method_id, types, arguments, attachments or {})
        return self

    def attach(self, key: str, value: str) -> "Invocation":
        """Sets one attachment; one of the same key is replaced."""
        raw_key, raw = key.encode(), value.encode()
        check(lib.byway_invocation_set_attachment(self.pointer, raw_key, len(raw_key), raw, len(raw)))
        # The key of an attachment that is replaced may be the one the library goes on looking at.
        self._attached.setdefault(key, []).append((raw_key, raw))
        return self

    def _fill(
        self,
        method: str,
        method_id: Optional[int],
        types: Sequence[str],
        arguments: Sequence[Optional[str]],
        attachments: Mapping[str, str],
    ) -> None:
        # The library borrows these texts until they are replaced, or the invocation is reset or freed.
        raw_method = method.encode()
        raw_types, raw_arguments = [t.encode() for t in types], [None if a is None else a.encode() for a in arguments]
        raw_attachments = [text.encode() for pair in attachments.items() for text in pair]
        self._kept: Tuple[Any, ...] = (raw_method, raw_types, raw_arguments, raw_attachments)
        self._attached: Dict[str, List[Any]] = {}
        pointer, address = self.pointer, ctypes.addressof
        if method_id is not None:
            check(lib.byway_invocation_set_method_id(pointer, method_id))
        else:
            check(lib.byway_invocation_set_method(pointer, raw_method, len(raw_method)))
        if raw_types:
            array = strings(raw_types)
            check(lib.byway_invocation_set_types(pointer, address(array), len(raw_types)))
        if raw_arguments:
            array = (_abi.byway_str * len(raw_arguments))(
                *[_abi.byway_str(None, _abi.BYWAY_NUL) if raw is None else string(raw) for raw in raw_arguments]
            )
            check(lib.byway_invocation_set_arguments(pointer, address(array), len(raw_arguments)))
        if raw_attachments:
            array = strings(raw_attachments)
            check(lib.byway_invocation_set_attachments(pointer, address(array), len(raw_attachments)))
