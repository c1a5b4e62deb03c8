"""Labels of annotations that also change and disappear, not only arrive.

What is new is added to an `OnlineAggregation`; where something was changed or deleted, a new one
is fitted to what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..answers.annotations import Annotations
from ..registry import aggregators
from .online import OnlineAggregation


class Changes(NamedTuple):
    """How many annotations are new, and how many are gone; a changed one is both."""

    new: int
    gone: int


class CurrentLabels:
    """A method that follows annotations; parameters as in `OnlineAggregation`.

    >>> current = CurrentLabels("dawid-skene")
    >>> current.update(Annotations.from_columns("aab", "xyx", "001"))
    Changes(new=3, gone=0)
    >>> current.update(Annotations.from_columns("aab", "xyx", "000"))
    Changes(new=1, gone=1)
    >>> current.online.result().labels.tolist()
    ['0', '0']
    """

    def __init__(
        self, method: str, *, classes: Sequence[Any] | None = None, **settings: Any
    ) -> None:
        self._settings = {"method": method, "classes": classes, **settings}
        self._rows: Counter[tuple[str, str, str]] = Counter()
        self.online = OnlineAggregation(**self._settings)

    @property
    def method(self) -> str:
        """The method with its settings."""
        return aggregators.describe(self.online.method)

    def update(self, annotations: Annotations | None) -> Changes:
        """Make these all annotations there are, `None` if there are none; return what changed."""
        rows = Counter() if annotations is None else _rows(annotations)
        new, gone = rows - self._rows, self._rows - rows
        if gone:
            self.online = OnlineAggregation(**self._settings)
        added = list((rows if gone else new).elements())
        if added:
            item, annotator, label = zip(*added, strict=True)
            self.online.add(item, annotator, label)
        self._rows = rows
        return Changes(new.total(), gone.total())


def _rows(annotations: Annotations) -> Counter[tuple[str, str, str]]:
    item = annotations.items[annotations.item].tolist()
    annotator = annotations.annotators[annotations.annotator].tolist()
    return Counter(
        zip(item, annotator, annotations.classes[annotations.label].tolist(), strict=True)
    )
