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
    forms = "; ".join(_NAMES.values())
    if match is None or name not in _NAMES:
        raise OptionError(f"cannot read the requirement {text!r}; write one of {forms}")
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
    return Requirement(
        text=text.strip(),
        name=name,
        argument=argument.strip() if argument is not None else None,
        operator=operator,
        limit=number,
    )


def check_requirement(judging: Judging, requirement: Requirement | str) -> Outcome:
    """Return whether a requirement holds at the unfavourable end of its interval."""
    if isinstance(requirement, str):
        requirement = parse_requirement(requirement)
    text, operator = requirement.text, requirement.operator
    if requirement.name == "replaces":
        return _replaces(judging, requirement)
    intervals = list(_intervals(judging, requirement))
    finite = [(low, high) for low, high in intervals if math.isfinite(low) and math.isfinite(high)]
    if not finite or len(finite) < len(intervals):
        return Outcome(None, f"{text}: cannot be told from {judging.n_labels} human labels")
    ends = [low if operator.startswith(">") else high for low, high in finite]
    worst = min(ends) if operator.startswith(">") else max(ends)
    low, high = finite[ends.index(worst)]
    holds = _COMPARE[operator](worst, requirement.limit)
    word = "holds" if holds else "does not hold"
    return Outcome(holds, f"{text}: {word}, the interval is {low:.3g} to {high:.3g}")


def _replaces(judging: Judging, requirement: Requirement) -> Outcome:
    name = _model_name(requirement, [model.judge for model in judging.replacement.models])
    model = next(model for model in judging.replacement.models if model.judge == name)
    words = {
        "replaces": (True, "holds"),
        "fails": (False, "does not hold"),
        "undecided": (None, "cannot be told, it passes in some resamples and fails in others"),
        "unknown": (None, f"cannot be told from {model.most_items} labels of a person"),
    }
    holds, word = words[model.verdict]
    return Outcome(holds, f"{requirement.text}: {word}")


def _intervals(judging: Judging, requirement: Requirement) -> Iterable[tuple[float, float]]:
    if requirement.name == "agreement":
        name = _model_name(requirement, [judge.judge for judge in judging.judges])
        return [(judge.low, judge.high) for judge in judging.judges if judge.judge == name]
    if requirement.name == "share":
        labels = judging.data.classes.tolist()
        label, group = requirement.argument or "", None
        if label not in labels and "," in label:
            label, group = (part.strip() for part in label.rsplit(",", 1))
        if label not in labels:
            raise OptionError(
                f"{requirement.text}: no class {label!r}; there are {', '.join(labels[:8])}"
            )
        if not judging.shares:
            raise OptionError(
                f"{requirement.text}: the labels are ordered",
                remedy="require a mean, or {}",
                scale="nominal",
            )
        shares = [s for s in judging.shares if s.label == label and group in (None, s.group)]
        if not shares:
            raise OptionError(f"{requirement.text}: no group {group!r}")
        return [(s.low, s.high) for s in shares]
    if requirement.name == "mean":
        if not judging.means:
            raise OptionError(f"{requirement.text}: the labels are classes; require a share")
        means = [m for m in judging.means if requirement.argument in (None, "", m.group)]
        if not means:
            raise OptionError(f"{requirement.text}: no group {requirement.argument!r}")
        return [(m.low, m.high) for m in means]
    if requirement.name == "panel":
        return [] if judging.panel is None else [(judging.panel.low, judging.panel.high)]
    name = _model_name(requirement, judging.data.judge_names)
    biases = [b for b in judging.pair_biases if b.judge == name and b.kind == "position"]
    return [(min(abs(b.low), abs(b.high)), max(abs(b.low), abs(b.high))) for b in biases]


def _model_name(requirement: Requirement, names: list[str]) -> str:
    model = (requirement.argument or "").removeprefix("model:")
    for name in names:
        if model == name.removeprefix("model:"):
            return name
    raise OptionError(
        f"{requirement.text}: no model {requirement.argument!r}; there are {', '.join(names[:8])}"
    )
