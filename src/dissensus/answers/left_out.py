"""What a source holds that is not among its answers, counted, so that nothing is lost unsaid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .base import Relation

T = TypeVar("T", bound="Relation")

_SHOWN = 3  # names in a sentence
_LONGEST = 40  # characters of a name in it


@dataclass(frozen=True)
class LeftOut:
    """Rows that were not read, by their reason, and whoever has no label.

    Attributes
    ----------
    rows
        How many rows were left out for every reason, as it stands in a sentence: `without a
        label`, `'NaN'`.
    items
        Items of the source that have no label.
    annotators
        Annotators of the source who gave no label.

    Examples
    --------
    >>> print(*LeftOut({"without a label": 4, "'NaN'": 2}, ("a", "b")).sentences, sep="; ")
    6 rows are left out: 4 without a label, 2 'NaN'; 2 items have no label: a, b
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows that were left out."""
        return sum(self.rows.values())

    def __bool__(self) -> bool:
        return bool(self.n_rows or self.items or self.annotators)

    def __add__(self, other: LeftOut) -> LeftOut:
        """Return both: rows added up, names one after the other."""
        reasons = {**self.rows, **other.rows}
        rows = {reason: self.rows.get(reason, 0) + other.rows.get(reason, 0) for reason in reasons}
        items = dict.fromkeys((*self.items, *other.items))
        annotators = dict.fromkeys((*self.annotators, *other.annotators))
        return LeftOut(rows, tuple(items), tuple(annotators))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is left out: rows with their reasons, items, and annotators, a sentence each."""
        sentences = []
        rows = {reason: count for reason, count in self.rows.items() if count}
        if rows:
            verb = "row is" if self.n_rows == 1 else "rows are"
            parts = ", ".join(f"{count} {reason}" for reason, count in rows.items())
            sentences.append(f"{self.n_rows} {verb} left out: {parts}")
        for word, names in (("item", self.items), ("annotator", self.annotators)):
            if names:
                subject = f"{word} has" if len(names) == 1 else f"{word}s have"
                sentences.append(f"{len(names)} {subject} no label: {first_names(names)}")
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "rows": dict(self.rows),
            "items": list(self.items),
            "annotators": list(self.annotators),
        }


def first_names(names: Iterable[str]) -> str:
    """Return the first names for a sentence, short and in one line.

    >>> first_names(["a", "b c", "d", "e"])
    'a, b c, d …'
    """
    all_names = list(names)
    visible = [
        name if name.isprintable() else repr(name) for name in map(short_name, all_names[:_SHOWN])
    ]
    return ", ".join(visible) + (" …" if len(all_names) > _SHOWN else "")


def short_name(name: str) -> str:
    """Return the beginning of a long name."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def with_left_out(answers: T, left_out: LeftOut) -> T:
    """Return the same answers with what their source holds beside them.

    Items and annotators that were left out somewhere but have answers elsewhere are not named;
    those among the answers that have none are.
    """
    total = left_out + answers.left_out if answers.left_out else left_out
    names = {}
    for role, declared, count in (
        ("items", answers.items, answers.labels_per_item),
        ("annotators", answers.annotators, answers.labels_per_annotator),
    ):
        blank = declared[count == 0].tolist()
        candidates = getattr(total, role)
        if candidates:
            labelled = set(declared[count > 0].tolist())
            blank = dict.fromkeys(name for name in (*candidates, *blank) if name not in labelled)
        names[role] = tuple(blank)
    if not (total or any(names.values())):
        return answers
    rows = {reason: count for reason, count in total.rows.items() if count}
    return replace(answers, left_out=LeftOut(rows, **names))
