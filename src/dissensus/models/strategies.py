"""peerannot's names of strategies: as keys of its tables, and in its specifications."""

from __future__ import annotations

from typing import Any

from ..params import format_value
from ..registry import find_by_name, split_spec

__all__ = ["Strategies", "our_specification"]

_OURS = {"iwmv": "iterative-wawa"}  # where one name means two methods
_WITHOUT_EFFECT = ("sparse", "parrots")


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


def our_specification(spec: str) -> str:
    """Return a specification of peerannot as ours.

    >>> our_specification("IWMV[sparse=True]")
    'iterative-wawa'
    >>> our_specification("DSWC[L=5]")
    'DSWC[L=5]'
    """
    name, settings = split_spec(spec)
    name = _OURS.get(name.casefold(), name)
    kept = [
        f"{key}={format_value(value)}"
        for key, value in settings.items()
        if key not in _WITHOUT_EFFECT
    ]
    return f"{name}[{','.join(kept)}]" if kept else name
