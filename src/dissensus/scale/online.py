"""Online aggregation: labels and qualities that are updated while annotations arrive.

New annotations change the posterior of their items, and through it the counts from which the
parameters follow: the old contribution of these items is subtracted from the counts, the new one
added. That is incremental EM, a partial E-step and a full M-step: for the annotations so far no
step lowers the free energy, and its fixed points are those of EM. Items without a new label are
refreshed in turn, so that posteriors do not become stale. Whenever the annotations have grown by a
factor since the last full fit, the method is fitted to all of them from the votes; right after
that, labels are those that `aggregate` gives for the same annotations. As the factor is constant,
all full fits together cost a constant per annotation.

Annotations may also change and disappear (`CurrentLabels`): what is new is added to an
`OnlineAggregation`; where something was changed or deleted, a new one is fitted to what is left.

    R. M. Neal, G. E. Hinton. A view of the EM algorithm that justifies incremental, sparse, and
    other variants. In: Learning in Graphical Models, 1998.
    O. Cappé, E. Moulines. On-line expectation-maximization algorithm for latent data models.
    Journal of the Royal Statistical Society B 71(3), 2009.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..aggregation.aggregation import ClassAggregation
from ..aggregation.em import EM
from ..answers.annotations import Annotations, Floats, Integers, Part
from ..base.names import text
from ..errors import DataError, MethodError, OptionError
from ..registry import aggregators
from .annotation_log import AnnotationLog, longer

_SMALL = 10_000  # annotations up to which a full fit takes no time


class OnlineAggregation:
    """A method that is updated while annotations arrive.

    Parameters
    ----------
    method
        A method fitted with EM whose counts follow from the posterior of items.
    classes
        All classes in order, where they are known: other labels are refused. Otherwise a class
        that appears later costs a fit.
    refit
        The factor, less one, by which annotations grow until the next full fit; up to ten thousand
        annotations every fit is full.
    refresh
        Items without a new label that are refreshed, for every item with one.
    seed
        Random seed.

    Examples
    --------
    >>> online = OnlineAggregation("dawid-skene")
    >>> online.add("aaab", "xyzx", "0010"), online.add("bb", "yz", "01")
    (4, 2)
    >>> online.result().labels.tolist()
    ['0', '0']
    >>> online.add(["b"], ["x"], ["0"], ids=["a-7"]), online.add(["b"], ["x"], ["0"], ids=["a-7"])
    (1, 0)
    """

    def __init__(
        self,
        method: str = "dawid-skene",
        *,
        classes: Sequence[Any] | None = None,
        refit: float = 0.5,
        refresh: int = 10,
        seed: int = 0,
    ) -> None:
        aggregator = aggregators.create(method)
        if not isinstance(aggregator, EM) or not _can_be_updated(type(aggregator)):
            able = [name for name in aggregators if _can_be_updated(aggregators.find(name))]
            raise MethodError(
                f"{aggregators.describe(aggregator)} cannot take labels one by one; "
                f"these can: {', '.join(able)}"
            )
        if refit < 0 or refresh < 0:
            raise OptionError("refit and refresh must be at least 0")
        self.method, self.refit, self.refresh, self.seed = aggregator, refit, refresh, seed
        self.log = AnnotationLog(classes)
        self.ids: set[str] = set()
        self.params: Any = None
        self.fitted = 0  # annotations at the last fit
        self._counts: Any = None
        self._posterior = np.zeros((0, 0))  # (item, class): the posterior behind the counts
        self.turn = 0  # the next item to refresh

    def __len__(self) -> int:
        return len(self.log)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings, ready for JSON."""
        return {
            "method": aggregators.describe(self.method),
            "classes": self.log.classes.tolist() if self.log.closed else None,
            "refit": self.refit,
            "refresh": self.refresh,
            "seed": self.seed,
        }

    def add(
        self,
        item: Sequence[Any],
        annotator: Sequence[Any],
        label: Sequence[Any],
        *,
        ids: Sequence[Any] | None = None,
    ) -> int:
        """Add annotations; return how many were new, which is all of them without ids.

        Known annotations are skipped, so a batch may be repeated when in doubt: those with the id,
        item, annotator and label of an earlier one. An empty id is none.
        """
        self.check(item, annotator, label, ids)
        if ids is not None:
            item, annotator, label = self._new(item, annotator, label, ids)
        if not len(item):
            return 0
        self._update(item, annotator, label)
        return len(item)

    def remove(self, item: Any, annotator: Any, label: Any, *, id: Any = None) -> bool:  # noqa: A002
        """Remove an annotation, as if it had never been there; return whether it was.

        All others are fitted again.
        """
        row, columns = (text(item), text(annotator), text(label)), self._rows()
        if row not in columns:
            return False
        position = len(columns) - 1 - columns[::-1].index(row)
        self.ids.discard(_key(id, *row))
        rows = columns[:position] + columns[position + 1 :]
        self.log = AnnotationLog(self.settings["classes"])
        self.params, self.fitted, self.turn = None, 0, 0
        if rows:
            self._update(*zip(*rows, strict=True))
        return True

    def has(self, item: Any, annotator: Any, label: Any, *, id: Any) -> bool:  # noqa: A002
        """Return whether there is an annotation with this id."""
        return _key(id, item, annotator, label) in self.ids

    def check(self, *columns: Sequence[Any] | None) -> None:
        """Refuse columns of different length, and labels that are not among declared classes."""
        if len({len(column) for column in columns if column is not None}) > 1:
            raise DataError("columns of different length")
        self.log.check(columns[2] or ())

    def result(self) -> ClassAggregation:
        """Return labels, posteriors and qualities under the current parameters."""
        if not len(self):
            raise DataError("there are no annotations yet")
        n_annotators = len(self.log.annotators)
        params = self.params.reindex(np.arange(n_annotators), self.log.n_items)
        fitted = ClassAggregation(
            method=aggregators.describe(self.method),
            answers=self.log.annotations(with_names=True),
            label=np.zeros(0, dtype=np.int64),
            posterior=np.zeros((0, 0)),
            quality=np.zeros(0),
            agreement=np.zeros(0),
            params=params,
        )
        return self.method.predict(fitted, fitted.answers)

    def fit(self) -> None:
        """Fit the method to all annotations so far, from the votes."""
        annotations = self.log.annotations()
        self.params = self.method.fit(annotations, seed=self.seed).params
        whole = annotations.part(0, annotations.n_items)
        self._posterior = self._infer(whole, self.params)
        self._counts = self.method.counts(whole, self._posterior)
        self.fitted = len(self)

    def recount(self, posterior: Floats) -> None:
        """Recompute the counts from a stored posterior."""
        self._posterior = posterior
        self._counts = self.method.counts(self.log.whole(), posterior)

    @property
    def posterior(self) -> Floats:
        """The posterior behind the counts: (item, class)."""
        return self._posterior[: self.log.n_items]

    def _new(self, *columns: Sequence[Any]) -> list[list[Any]]:
        """Return the annotations that are not known by their ids."""
        new: list[list[Any]] = [[], [], []]
        for *row, name in zip(*columns, strict=True):
            key = _key(name, *row)
            if key not in self.ids:
                self.ids |= {key} - {""}
                for column, value in zip(new, row, strict=True):
                    column.append(value)
        return new

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return all annotations by name, as they arrived."""
        names = list(self.log.items), list(self.log.annotators), self.log.classes.tolist()
        codes = (self.log.column(name).tolist() for name in ("item", "annotator", "label"))
        items, annotators, classes = names
        return [(items[i], annotators[a], classes[c]) for i, a, c in zip(*codes, strict=True)]

    def _update(self, item: Sequence[Any], annotator: Sequence[Any], label: Sequence[Any]) -> None:
        size = len(self) + len(item)
        if size <= _SMALL or size > (1 + self.refit) * self.fitted or self.params is None:
            self.log.add(item, annotator, label)
            self.fit()
            return
        old = self._touched(item)
        less = self.method.counts(self.log.part(old), self._posterior[old])
        n_items, n_annotators = self.log.n_items, len(self.log.annotators)
        if self.log.add(item, annotator, label):
            self.fit()  # new classes, or more annotators than there is room for
            return
        self._posterior = longer(self._posterior, self.log.n_items, 0.0)
        touched = np.union1d(old, np.arange(n_items, self.log.n_items))
        part = self.log.part(touched)
        self._posterior[touched] = self._infer(part, self._params_with_new(n_annotators))
        gained = self.method.counts(part, self._posterior[touched])
        self._counts = _add_counts(_add_counts(self._counts, less, -1.0), gained)
        self.params = self.method.update(self._counts, self.params)

    def _touched(self, item: Sequence[Any]) -> Integers:
        """Return the known items of a batch, and some others to refresh."""
        names, codes = set(map(text, item)), self.log.items
        n_items = self.log.n_items
        items = {codes[name] for name in names if name in codes}
        count = min(self.refresh * len(names), n_items)
        refreshed = (self.turn + np.arange(count)) % n_items
        self.turn = (self.turn + count) % n_items
        return np.union1d(np.fromiter(items, np.int64, len(items)), refreshed)

    def _params_with_new(self, n_known: int) -> Any:
        """Return the parameters, with new annotators as average ones."""
        if n_known == len(self.log.annotators):
            return self.params
        indices = np.arange(self.log.room)
        indices[n_known:] = -1
        return self.params.reindex(indices, 0)

    def _infer(self, part: Part, params: Any) -> Floats:
        return self.method.normalize_joint(self.method.log_joint(part, params), part.allowed)[1]


def _key(name: Any, *row: Any) -> str:
    """Return a key of an annotation with an id; nothing without one."""
    return "" if name is None or name == "" else json.dumps([*map(text, (name, *row))])


def _can_be_updated(kind: type) -> bool:
    return issubclass(kind, EM) and kind.e_step is EM.e_step


def _add_counts(total: Any, part: Any, sign: float = 1.0) -> Any:
    """Return counts with others added, field by field; subtracted if the sign is -1."""
    if isinstance(total, tuple):
        fields = [_add_counts(left, right, sign) for left, right in zip(total, part, strict=True)]
        return type(total)._make(fields) if hasattr(total, "_make") else tuple(fields)
    return total + sign * part


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

    def __init__(self, method: str, **settings: Any) -> None:
        self._rows: Counter[tuple[str, str, str]] = Counter()
        self.online = OnlineAggregation(method, **settings)

    @property
    def method(self) -> str:
        """The method with its settings."""
        return aggregators.describe(self.online.method)

    def update(self, annotations: Annotations | None) -> Changes:
        """Make these all annotations there are, `None` if there are none; return what changed."""
        rows = Counter() if annotations is None else _rows(annotations)
        new, gone = rows - self._rows, self._rows - rows
        if gone:
            self.online = OnlineAggregation(**self.online.settings)
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
