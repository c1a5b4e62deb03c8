"""Kinds of annotators: people, models, and code.

The kind of an annotator is known from patterns that the user gives, from a column of the data, or
from the prefix `model:` of a name. It is never guessed from a bare name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..base.names import Names, as_names, text
from ..errors import DataError

Kind = Literal["person", "model", "code"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PREFIX = "model:"

# Words for a kind, in columns called `kind` or `source`.
_WORDS: dict[str, Kind] = {
    **dict.fromkeys(("person", "people", "human", "annotator", "worker", "expert"), "person"),
    **dict.fromkeys(("annotation", "crowd"), "person"),
    **dict.fromkeys(("model", "llm", "ai", "machine", "judge", "eval"), "model"),
    **dict.fromkeys(("llm_judge", "ai_judge", "prediction"), "model"),
    **dict.fromkeys(("code", "rule", "script", "heuristic"), "code"),
}


def kind_of_word(word: object) -> Kind | None:
    """Return the kind that a word in a table names, if it is one.

    >>> kind_of_word("LLM_JUDGE"), kind_of_word("twitter")
    ('model', None)
    """
    return _WORDS.get(text(word).strip().casefold().replace("-", "_").replace(" ", "_"))


def checked_kinds(kinds: Iterable[Any] | Mapping[Any, Any] | None, annotators: Names) -> Names:
    """Return the kind of every annotator, the empty text where it is unknown.

    The array is empty where nothing is known about anybody.
    """
    if kinds is None:
        return as_names([])
    if isinstance(kinds, Mapping):
        table = {text(name): kind for name, kind in kinds.items()}
        kinds = [table.get(name) or "" for name in annotators.tolist()]
    named_kinds = as_names(kinds)
    if len(named_kinds) not in (0, len(annotators)):
        raise DataError(f"{len(named_kinds)} kinds for {len(annotators)} annotators")
    for kind in set(named_kinds.tolist()) - {"", *KINDS}:
        raise DataError(f"no kind of annotator {kind!r}; there are {', '.join(KINDS)}")
    return named_kinds if (named_kinds != "").any() else as_names([])


def kinds_from_patterns(
    annotators: Names, known: Names, models: Sequence[str] = (), people: Sequence[str] = ()
) -> Names:
    """Return kinds from patterns first, then as known, then from the prefix of a name.

    Where only models are given by patterns, everybody else whose kind is unknown is a person, and
    the other way round.
    """
    if not (models or people or any(name.startswith(PREFIX) for name in annotators.tolist())):
        return known
    names = annotators.tolist()
    present = known.tolist() if len(known) else [""] * len(names)
    matching: dict[Kind, npt.NDArray[np.bool_]] = {
        "model": _matching(names, models, "models"),
        "person": _matching(names, people, "people"),
    }
    matched_twice = np.flatnonzero(matching["model"] & matching["person"])
    if len(matched_twice):
        raise DataError(
            f"{names[matched_twice[0]]!r} is both a model and a person; change the patterns"
        )
    default = "person" if models and not people else "model" if people and not models else ""
    out = []
    for position, name in enumerate(names):
        kind = next((kind for kind, mask in matching.items() if mask[position]), None)
        out.append(kind or present[position] or ("model" if name.startswith(PREFIX) else default))
    return checked_kinds(out, annotators)


def _matching(names: Sequence[str], patterns: Sequence[str], keyword: str) -> npt.NDArray[np.bool_]:
    """Return which names match a pattern, with or without their prefix."""
    mask = np.zeros(len(names), dtype=bool)
    for pattern in patterns:
        matched = [
            fnmatchcase(name, pattern) or fnmatchcase(name.removeprefix(PREFIX), pattern)
            for name in names
        ]
        if not any(matched):
            listing = ", ".join(names[:8]) + (f" … ({len(names)} in all)" if len(names) > 8 else "")
            option: Any = {keyword: ...}
            raise DataError(
                remedy=f"{{}} {pattern!r} matches no annotator; there are {listing}", **option
            )
        mask |= np.array(matched)
    return mask
