"""Kinds of annotators: people, models, and code.

The kind of an annotator is known from patterns that the user gives, from a column of the data, or
from the prefix `model:` of a name. It is never guessed from a bare name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ..base.names import Names, as_names, text
from ..errors import DataError, OptionError
from .base import Relation

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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Labels(Relation):
    """Classes or numbers that people, models or code gave to items."""

    by_annotator: ClassVar[tuple[str, ...]] = ("annotator_kinds",)

    annotator_kinds: Names = field(default_factory=lambda: as_names([]))  # (annotator), or empty

    def is_kind(self, kind: Kind) -> npt.NDArray[np.bool_]:
        """Return which annotators are of a kind; none where nothing is known."""
        if kind not in KINDS:
            raise OptionError(f"no kind of annotator {kind!r}; there are {', '.join(KINDS)}")
        if not len(self.annotator_kinds):
            return np.zeros(self.n_annotators, dtype=bool)
        return np.asarray(self.annotator_kinds == kind, dtype=bool)

    @property
    def mixed_kinds(self) -> bool:
        """Whether there are labels of models and of others."""
        model = self.is_kind("model")[self.annotator]
        return bool(model.any() and not model.all())

    def with_kinds(
        self,
        kinds: Iterable[Any] | Mapping[Any, Any] | None = None,
        *,
        models: Sequence[str] = (),
        people: Sequence[str] = (),
    ) -> Self:
        """Return the answers with kinds of annotators.

        Patterns for names of models and people come first, then the kinds that are given or
        already known, then the prefix `model:`. With patterns of one kind, all others are of the
        other.

        >>> from dissensus import Annotations
        >>> annotations = Annotations.from_columns("aaa", ["ann", "gpt-4o", "model:x"], "001")
        >>> annotations.with_kinds(models=["gpt*"]).annotator_kinds.tolist()
        ['person', 'model', 'model']
        """
        present = self.annotator_kinds if kinds is None else checked_kinds(kinds, self.annotators)
        return replace(
            self, annotator_kinds=kinds_from_patterns(self.annotators, present, models, people)
        )
