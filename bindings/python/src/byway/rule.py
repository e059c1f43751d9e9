"""Rule texts: their kinds, their keys, what is wrong with them."""
from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, List, Optional

from . import _abi
from ._core import take_text
from ._library import lib
from .engine import Dialect

if TYPE_CHECKING:
    from .invokers import Invokers


class RuleKind(enum.IntEnum):
    """Rule languages."""

    CONDITION = _abi.BYWAY_RULE_CONDITION
    TAG = _abi.BYWAY_RULE_TAG
    AFFINITY = _abi.BYWAY_RULE_AFFINITY
    MESH = _abi.BYWAY_RULE_MESH
    SCRIPT = _abi.BYWAY_RULE_SCRIPT


def rule_key(
    interface: str = "",
    *,
    application: str = "",
    version: str = "",
    group: str = "",
    kind: RuleKind = RuleKind.CONDITION,
    dialect: Dialect = Dialect.BYWAY,
) -> str:
    """The key under which a rule is looked for, with the dialect's rule for versions."""
    raw = [text.encode() for text in (application, interface, version, group)]
    arguments: List[Any] = [dialect, kind]
    for text in raw:
        arguments += [text, len(text)]
    return take_text(lib.byway_rule_key, *arguments)


def rule_check(
    text: str,
    kind: RuleKind = RuleKind.CONDITION,
    *,
    dialect: Dialect = Dialect.BYWAY,
    providers: Optional["Invokers"] = None,
    json: bool = False,
) -> str:
    """Everything that is wrong with a rule text, or looks wrong, with line and column. Empty when nothing is."""
    raw = text.encode()
    how = _abi.BYWAY_FORMAT_JSON if json else _abi.BYWAY_FORMAT_TEXT
    return take_text(
        lib.byway_rule_check, dialect, kind, raw, len(raw), providers.pointer if providers is not None else None, how
    )
