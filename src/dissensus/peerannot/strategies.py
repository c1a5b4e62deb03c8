"""Tables of peerannot's strategies, by all names they have had."""

from __future__ import annotations

from typing import Any

from ..registry import find_by_name

__all__ = ["Strategies"]


class Strategies(dict[str, Any]):
    """Classes by name; also found by former names, whatever the case, `-` and `_`.

    >>> table = Strategies({"naive_soft": 1}, NS=2)
    >>> list(table), table["NaiveSoft"], table["ns"]
    (['naive_soft'], 1, 2)
    """

    def __init__(self, table: dict[str, Any], **former: Any) -> None:
        super().__init__(table)
        self._former = former

    def __missing__(self, name: str) -> Any:
        return find_by_name("strategy", name, {**self, **self._former}, self)
