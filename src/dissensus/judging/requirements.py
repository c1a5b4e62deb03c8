"""Requirements on models: `replaces(gpt-4o)`, `share(pass) >= 0.8`, `agreement(gpt-4o) >= 0.75`.

A requirement holds only if it does at the unfavourable end of its interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..errors import OptionError

if TYPE_CHECKING:
    from .judging import Judging

_FORM = re.compile(
    r"\s*([a-z]+)\s*(?:\((.*)\))?\s*(?:(>=|<=|>|<)\s*([-+0-9.eE%\s]+))?\s*", re.DOTALL
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, limit: value >= limit,
    ">": lambda value, limit: value > limit,
    "<=": lambda value, limit: value <= limit,
    "<": lambda value, limit: value < limit,
}
_NAMES = {
    "replaces": "replaces(MODEL)",
    "agreement": "agreement(MODEL) >= 0.75",
    "share": "share(CLASS) >= 0.8",
    "mean": "mean >= 3.5",
    "panel": "panel >= 2",
    "position": "position(MODEL) <= 0.1",
}


class Requirement(NamedTuple):
    """One requirement as it was written, and its parts."""

    text: str
    name: str
    argument: str | None
    operator: str
    limit: float


class Outcome(NamedTuple):
    """Whether a requirement holds; `None` where that cannot be computed."""

    holds: bool | None
    sentence: str


def parse_requirement(text: str) -> Requirement:
    """Return a requirement.

    >>> parse_requirement("share(pass) >= 0.8")[1:]
    ('share', 'pass', '>=', 0.8)
    """
    match = _FORM.fullmatch(text)
    name = match[1] if match else ""
    known = "; ".join(_NAMES.values())
    if match is None or name not in _NAMES:
        raise OptionError(f"cannot read the requirement {text!r}; write one of {known}")
    argument, operator, limit = match[2], match[3] or "", match[4]
    needs = name in ("replaces", "agreement", "share", "position")
    if needs and not (argument or "").strip():
        raise OptionError(f"the requirement {text!r} names nothing; write {_NAMES[name]}")
    if bool(operator) == (name == "replaces"):
        raise OptionError(f"cannot read the requirement {text!r}; write {_NAMES[name]}")
    try:
        number = math.nan
        if limit is not None:
            plain = limit.strip()
            number = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        raise OptionError(f"{limit.strip()!r} in {text!r} is not a number") from None
    given = argument.strip() if argument is not None else None
    return Requirement(text.strip(), name, given, operator, number)


def check_requirement(found: Judging, requirement: Requirement | str) -> Outcome:
    """Return whether a requirement holds at the unfavourable end of its interval."""
    one = parse_requirement(requirement) if isinstance(requirement, str) else requirement
    if one.name == "replaces":
        return _replaces(found, one)
    intervals = list(_intervals(found, one))
    known = [(low, high) for low, high in intervals if math.isfinite(low) and math.isfinite(high)]
    if not known or len(known) < len(intervals):
        return Outcome(None, f"{one.text}: cannot be told from {found.n_labels} human labels")
    compare = _COMPARE[one.operator]
    ends = [low if one.operator.startswith(">") else high for low, high in known]
    worst = min(ends) if one.operator.startswith(">") else max(ends)
    low, high = known[ends.index(worst)]
    holds = compare(worst, one.limit)
    word = "holds" if holds else "does not hold"
    return Outcome(holds, f"{one.text}: {word}, the interval is {low:.3g} to {high:.3g}")


def _replaces(found: Judging, one: Requirement) -> Outcome:
    name = _one_of(one, [model.judge for model in found.replacement.models])
    model = next(model for model in found.replacement.models if model.judge == name)
    words = {
        "replaces": (True, "holds"),
        "fails": (False, "does not hold"),
        "undecided": (None, "cannot be told, it passes in some resamples and fails in others"),
        "unknown": (None, f"cannot be told from {model.most_items} labels of a person"),
    }
    holds, word = words[model.verdict]
    return Outcome(holds, f"{one.text}: {word}")


def _intervals(found: Judging, one: Requirement) -> Iterable[tuple[float, float]]:
    if one.name == "agreement":
        name = _one_of(one, [judge.judge for judge in (*found.judges, *found.code)])
        return [(j.low, j.high) for j in (*found.judges, *found.code) if j.judge == name]
    if one.name == "share":
        labels = found.data.classes.tolist()
        label, group = one.argument or "", None
        if label not in labels and "," in label:
            label, group = (part.strip() for part in label.rsplit(",", 1))
        if label not in labels:
            raise OptionError(f"{one.text}: no class {label!r}; there are {', '.join(labels[:8])}")
        if not found.shares:
            raise OptionError(
                f"{one.text}: the labels are ordered; require a mean, or --scale nominal"
            )
        shares = [s for s in found.shares if s.label == label and group in (None, s.group)]
        if not shares:
            raise OptionError(f"{one.text}: no group {group!r}")
        return [(s.low, s.high) for s in shares]
    if one.name == "mean":
        if not found.means:
            raise OptionError(f"{one.text}: the labels are classes; require a share")
        means = [m for m in found.means if one.argument in (None, "", m.group)]
        if not means:
            raise OptionError(f"{one.text}: no group {one.argument!r}")
        return [(m.low, m.high) for m in means]
    if one.name == "panel":
        return [] if found.panel is None else [(found.panel.low, found.panel.high)]
    name = _one_of(one, found.data.judge_names)
    biases = [b for b in found.pair_biases if b.judge == name and b.kind == "position"]
    return [(min(abs(b.low), abs(b.high)), max(abs(b.low), abs(b.high))) for b in biases]


def _one_of(one: Requirement, names: list[str]) -> str:
    wanted = (one.argument or "").removeprefix("model:")
    for name in names:
        if wanted == name.removeprefix("model:"):
            return name
    raise OptionError(f"{one.text}: no model {one.argument!r}; there are {', '.join(names[:8])}")
