"""Numbers, shares, intervals and names in words: every sentence and cell is written with these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

_NAMED = 3  # names in one sentence


def amount(count: int, noun: str = "", total: int | None = None) -> str:
    """Return a count with its noun, and of how many unless these are all.

    >>> amount(1, "item"), amount(2140, "label"), amount(20480, "class"), amount(20480)
    ('1 item', '2140 labels', '20\u202f480 classes', '20\u202f480')
    >>> amount(500, "item", 2140)
    '500 of 2140 items'
    """
    if total is not None and count < total:
        return f"{count} of {amount(total, noun)}"
    number = f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)
    if noun and count != 1:
        noun += "es" if noun.endswith(("s", "x")) else "s"
    return f"{number} {noun}".rstrip()


def percent(share: float) -> str:
    """Return a share as people write it; one digit more near the ends.

    >>> percent(0.914), percent(0.9987), percent(0.99999), percent(1.0), percent(math.nan)
    ('91%', '99.9%', 'above 99.9%', '100%', '–')
    """
    if math.isnan(share):
        return "–"
    if not 0 < min(share, 1 - share) < 0.01:
        return f"{share:.0%}"
    if min(share, 1 - share) >= 0.0005:
        return f"{share:.1%}"
    return "below 0.1%" if share < 0.5 else "above 99.9%"


def listed(names: list[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e"])
    ('a, b and c', 'a, b, c and 2 more')
    """
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def formatted(value: float, form: str | Callable[[float], str] = ".4g") -> str:
    """Return a number as text, a dash for NaN.

    >>> formatted(0.25, ".0%"), formatted(math.nan)
    ('25%', '–')
    """
    if math.isnan(value):
        return "–"
    return form(value) if callable(form) else f"{value:{form}}"


def interval(low: float, high: float, form: str = "z.2f") -> str:
    """Return the ends of an interval as a text, empty where they are undefined."""
    return f"{low:{form}} to {high:{form}}" if low == low and high == high else ""


def with_interval(estimate: Any, form: str | Callable[[float], str] = ".2f") -> tuple[str, str]:
    """Return an estimate and its interval as texts; a dash and nothing where there is none."""
    value, low, high = (
        formatted(bound, form) for bound in (estimate.value, estimate.low, estimate.high)
    )
    return value, "" if "–" in (value, low, high) else f"{low} to {high}"


def quoted(name: Any) -> str:
    """Return a name for a sentence: short, and with odd spaces made visible."""
    text = str(name)
    short = text if len(text) <= 40 else f"{text[:39]}…"
    return short if short.isprintable() and short == short.strip() else repr(short)


def many(count: int, word: str) -> str:
    """Return a number and a noun in singular or plural.

    >>> many(1, "class"), many(2, "class"), many(0, "label")
    ('1 class', '2 classes', '0 labels')
    """
    ending = "es" if word.endswith("s") else "s"
    return f"{count} {word}{'' if count == 1 else ending}"


def verb(count: int, word: str) -> str:
    """Return a verb in singular or plural.

    >>> verb(1, "give"), verb(2, "give"), verb(1, "have"), verb(1, "are")
    ('gives', 'give', 'has', 'is')
    """
    if count != 1:
        return word
    return {"have": "has", "are": "is"}.get(word, f"{word}s")


def first_quoted(names: Iterable[Any], most: int = 3) -> tuple[str, ...]:
    """Return the first names."""
    return tuple(quoted(name) for _, name in zip(range(most), names, strict=False))
