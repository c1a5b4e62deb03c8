"""Labels and qualities that are kept up to date while annotations arrive.

New annotations change the belief about their items, and through these the counts from which the
parameters follow: what the items told before is taken out of the counts, what they tell now goes
in. That is the incremental form of EM, a partial E-step and a whole M-step: for the annotations
so far no step lowers the free energy, and where it stands still, EM stands still. Some items that
got no label are looked at anew in turn, so that beliefs do not grow old. Whenever the annotations
have grown by a share since the last time, the method is fitted to all of them from the votes;
right after that, labels are those that `aggregate` gives for the same annotations. Growing by a
share each time, all these fits together cost a constant per annotation.

    R. M. Neal, G. E. Hinton. A view of the EM algorithm that justifies incremental, sparse, and
    other variants. In: Learning in Graphical Models, 1998.
    O. Cappé, E. Moulines. On-line expectation-maximization algorithm for latent data models.
    Journal of the Royal Statistical Society B 71(3), 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._names import text
from .._relation import Floats, Integers
from ..aggregation import EMAggregator
from ..annotations import Part
from ..errors import DataError, MethodError, OptionError
from ..registry import aggregators
from ..result import Aggregation
from .growing import Growing, widened

__all__ = ["Running"]

_SMALL = 10_000  # annotations up to which a fit to all of them takes no time


class Running:
    """A method that takes annotations as they come.

    Parameters
    ----------
    method
        A method with a hidden true class whose counts follow from the belief about items.
    classes
        All classes in order, where they are known; a class that appears later costs a fit.
    refit
        The share by which annotations grow before the method is fitted to all of them; up to ten
        thousand of them it always is.
    refresh
        Items without a new label that are looked at anew, for every item that got one.
    seed
        Decides what is random in a fit.

    Examples
    --------
    >>> now = Running("dawid-skene")
    >>> now.add("aaab", "xyzx", "0010"), now.add("bb", "yz", "01")
    (4, 2)
    >>> now.result().labels.tolist()
    ['0', '0']
    >>> now.add(["b"], ["x"], ["0"], ids=["said-7"]), now.add(["b"], ["x"], ["0"], ids=["said-7"])
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
        chosen = aggregators.create(method)
        if not isinstance(chosen, EMAggregator) or type(chosen).e_step is not EMAggregator.e_step:
            raise MethodError(
                f"{aggregators.describe(chosen)} cannot take labels one by one; "
                f"these can: {', '.join(_able())}"
            )
        if refit < 0 or refresh < 0:
            raise OptionError("refit and refresh must be at least 0")
        self.method, self.refit, self.refresh, self.seed = chosen, refit, refresh, seed
        self.annotations = Growing(classes)
        self.ids: set[str] = set()
        self.params: Any = None
        self.fitted = 0  # annotations at the last fit
        self._counts: Any = None
        self._belief = np.zeros((0, 0))  # (item, state): what the counts rest on
        self.turn = 0  # where the next items are that are looked at anew

    def __len__(self) -> int:
        return len(self.annotations)

    def add(
        self,
        item: Sequence[Any],
        annotator: Sequence[Any],
        label: Sequence[Any],
        *,
        ids: Sequence[Any] | None = None,
    ) -> int:
        """Take annotations; return how many were new, which is all of them without ids.

        An id that came before is passed over, so a batch may be given again in doubt.
        """
        if not len(item) == len(annotator) == len(label):
            raise DataError("columns of different length")
        if ids is not None:
            item, annotator, label = self._new(item, annotator, label, ids)
        if not len(item):
            return 0
        self._take(item, annotator, label)
        return len(item)

    def result(self) -> Aggregation:
        """Return labels, beliefs and qualities under what is known now."""
        if not len(self):
            raise DataError("there are no annotations yet")
        n_annotators = len(self.annotations.annotators)
        params = self.params.reindex(np.arange(n_annotators), self.annotations.n_items)
        known = Aggregation(
            aggregators.describe(self.method),
            self.annotations.annotations(named=True),
            np.zeros(0, dtype=np.int64),
            np.zeros((0, 0)),
            np.zeros(0),
            np.zeros(0),
            params,
        )
        return self.method.predict(known, known.annotations)

    def fit(self) -> None:
        """Fit the method to all annotations so far, from the votes."""
        annotations = self.annotations.annotations()
        self.params = self.method.fit(annotations, seed=self.seed).params
        whole = annotations.part(0, annotations.n_items)
        self._belief = self._believe(whole, self.params)
        self._counts = self.method.counts(whole, self._belief)
        self.fitted = len(self)

    def recount(self, posterior: Floats) -> None:
        """Count anew from beliefs that were kept."""
        self._belief = posterior
        self._counts = self.method.counts(self.annotations.whole(), posterior)

    @property
    def posterior(self) -> Floats:
        """What the counts rest on: (item, state)."""
        return self._belief[: self.annotations.n_items]

    def _new(self, *columns: Sequence[Any]) -> list[list[Any]]:
        """Return the annotations whose ids did not come before."""
        kept: list[list[Any]] = [[], [], []]
        for *row, name in zip(*columns, strict=True):
            if text(name) not in self.ids:
                self.ids.add(text(name))
                for column, value in zip(kept, row, strict=True):
                    column.append(value)
        return kept

    def _take(self, item: Sequence[Any], annotator: Sequence[Any], label: Sequence[Any]) -> None:
        size = len(self) + len(item)
        if size <= _SMALL or size > (1 + self.refit) * self.fitted or self.params is None:
            self.annotations.add(item, annotator, label)
            self.fit()
            return
        old = self._touched(item)
        told = self.method.counts(self.annotations.part(old), self._belief[old])
        before, known = self.annotations.n_items, len(self.annotations.annotators)
        if self.annotations.add(item, annotator, label):
            self.fit()  # other classes, or no room for so many annotators
            return
        self._belief = widened(self._belief, self.annotations.n_items)
        now = np.union1d(old, np.arange(before, self.annotations.n_items))
        part = self.annotations.part(now)
        self._belief[now] = self._believe(part, self._seated(known))
        more = self.method.counts(part, self._belief[now])
        self._counts = _minus(_minus(self._counts, told), more, -1.0)
        self.params = self.method.update(self._counts, self.params)

    def _touched(self, item: Sequence[Any]) -> Integers:
        """Return the items of a batch that are known, and some others whose turn it is."""
        names, known, n_items = (
            set(map(text, item)),
            self.annotations.items,
            self.annotations.n_items,
        )
        mine = {known[name] for name in names if name in known}
        count = min(self.refresh * len(names), n_items)
        others = (self.turn + np.arange(count)) % n_items
        self.turn = (self.turn + count) % n_items
        return np.union1d(np.fromiter(mine, np.int64, len(mine)), others)

    def _seated(self, known: int) -> Any:
        """Return the parameters, in which those who were not known count as average."""
        indices = np.arange(self.annotations.room)
        indices[known:] = -1
        return (
            self.params.reindex(indices, 0)
            if known < len(self.annotations.annotators)
            else self.params
        )

    def _believe(self, part: Part, params: Any) -> Floats:
        return self.method.normalize_joint(self.method.log_joint(part, params), part.allowed)[1]


def _able() -> list[str]:
    able = []
    for name in aggregators:
        kind = aggregators.find(name)
        if issubclass(kind, EMAggregator) and kind.e_step is EMAggregator.e_step:
            able.append(name)
    return able


def _minus(total: Any, told: Any, sign: float = 1.0) -> Any:
    """Return counts less what is told, field by field."""
    if isinstance(total, tuple):
        fields = [_minus(one, other, sign) for one, other in zip(total, told, strict=True)]
        return type(total)._make(fields) if hasattr(total, "_make") else tuple(fields)
    return total - sign * told
