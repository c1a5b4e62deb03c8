"""Groups of annotators found on one half of the items and tested on the other.

Labels are centred for every annotator, so that severity and favourite classes do not count:

    x[i, j, k] = ([label of j on i is k] - p[j, k]) / sqrt(1 - sum over k of p[j, k]²)

`agreement` sums x[i, j, k] x[i, l, k] over the common items of j and l. In one group it is
`common · λ λᵀ`, where λ is how far an annotator follows the items. The signs of the leading
eigenvector of what remains are two groups. On the other half of the items, with λ fitted there,

    d[i] = sum over j ≠ l of g[j] g[l] (sum over k of x[i, j, k] x[i, l, k] - λ[j] λ[l])

has mean zero without groups; g is ±1, centred. For ordered labels x is the score, standardized for
every annotator.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from ..base.arrays import Array, Floats, Integers

_SPLITS = 12  # of the items into halves
_FEW = 4  # splits of crowds that are drawn, of which there are many
_ROUNDS = 30  # of alternating least squares
_DENSE = 200  # annotators up to which matrices of pairs are dense
_PSEUDO = 5.0  # common items added to everybody's, so that few do not make an extreme vector

Sparse = sparse.csr_array[Any, Any]


class SplitHalf(NamedTuple):
    """Groups of one half of the items on the other half, means over splits."""

    t: float
    correlation_within: float
    correlation_between: float
    same_group: float  # share of annotators with one group in both halves


class ItemSet:
    """The labels on some items: what stays when labels are drawn anew is computed once."""

    def __init__(
        self, item: Array, annotator: Array, n_annotators: int, n_classes: int, ordered: bool
    ) -> None:
        _, item, size = np.unique(item, return_inverse=True, return_counts=True)
        self.n_items, self.n_annotators = len(size), n_annotators
        # Of two classes, one says all.
        self.n_values = 1 if ordered or n_classes == 2 else n_classes
        self.annotator = annotator.astype(np.int64)
        pair = item * np.int64(n_annotators) + self.annotator
        _, which, repeats = np.unique(pair, return_inverse=True, return_counts=True)
        self.weight = 1 / repeats[which]  # (label): those of one annotator on one item sum to one
        # Rows of `centred` are (item, value): every item's labels follow once for every value.
        size = np.repeat(size, self.n_values)
        self._start = np.concatenate([[0], np.cumsum(size)])
        first = np.repeat(np.searchsorted(item, np.arange(self.n_items)), self.n_values)
        label = np.arange(self._start[-1]) - np.repeat(self._start[:-1] - first, size)
        value = np.repeat(np.tile(np.arange(self.n_values), self.n_items), size)
        self._cell = label * self.n_values + value
        self._columns = self.annotator[label]
        self.labelled: Sparse = sparse.csr_array(
            (self.weight, self.annotator, np.searchsorted(item, np.arange(self.n_items + 1))),
            shape=(self.n_items, n_annotators),
        )
        self.common = _off_diagonal(self.labelled)
        self.n_labels = np.bincount(self.annotator, self.weight, n_annotators)

    def centred(self, label: Array) -> Sparse:
        """Return x: (item and class, annotator)."""
        value = self._values(label)  # (label, value)
        n, count = self.n_annotators, np.maximum(self.n_labels, 1)[:, None]
        mean, square = (
            np.stack([np.bincount(self.annotator, self.weight * one, n) for one in part.T], axis=1)
            / count
            for part in (value, value**2)
        )
        spread = np.sqrt(np.maximum((square - mean**2).sum(axis=1), 0.0))
        scale = np.divide(1.0, spread, out=np.zeros(n), where=spread > 1e-6)
        value -= mean[self.annotator]
        value *= (self.weight * scale[self.annotator])[:, None]
        return sparse.csr_array(
            (value.ravel()[self._cell], self._columns, self._start),
            shape=(self.n_items * self.n_values, n),
        )

    def _values(self, label: Array) -> Floats:
        if self.n_values == 1:
            return label.astype(np.float64)[:, None]
        return np.equal.outer(label, np.arange(self.n_values)).astype(np.float64)


class Fitted(NamedTuple):
    """One group fitted to labels."""

    centred: Sparse  # (item and class, annotator)
    agreement: Sparse | Floats  # (annotator, annotator), zero on its diagonal
    loading: Floats  # (annotator): λ


def fit_one_group(items: ItemSet, label: Array) -> Fitted:
    """Return λ by alternating least squares, with what it is fitted to."""
    centred = items.centred(label)
    agreement = _off_diagonal(centred)
    total = float(items.common.sum())
    start = np.sqrt(max(float(agreement.sum()) / max(total, 1.0), 0.01))
    loading = np.full(items.n_annotators, start)
    for _ in range(_ROUNDS):
        weight = items.common @ loading**2
        new = np.divide(agreement @ loading, weight, out=np.zeros_like(weight), where=weight > 1e-9)
        loading = (loading + new) / 2  # together, they would overshoot
    return Fitted(centred, agreement, loading)


def two_groups(items: ItemSet, fitted: Fitted) -> Floats:
    """Return -1 or 1 for every annotator: who agrees more than one group explains."""
    common, agreement, loading = items.common, fitted.agreement, fitted.loading
    n = items.n_annotators
    scale = 1 / np.sqrt(np.asarray(common.sum(axis=1)).ravel() + _PSEUDO)
    if n <= _DENSE:
        rest = np.asarray(agreement - common * np.outer(loading, loading))
        vector = np.linalg.eigh(scale[:, None] * rest * scale)[1][:, -1]
    else:

        def apply(given: Floats) -> Floats:
            given = scale * given.ravel()
            return scale * (agreement @ given - loading * (common @ (loading * given)))

        start = np.cos(np.arange(n))
        vector = eigsh(
            LinearOperator((n, n), apply, dtype=float), 1, which="LA", v0=start, tol=1e-4
        )[1][:, 0]
    return np.where(vector >= 0, 1.0, -1.0)


def members(group: Array) -> Floats:
    """Return who belongs to which group, as zeros and ones: (annotator, group)."""
    return np.equal.outer(group, np.unique(group)).astype(np.float64)


def t_statistic(items: ItemSet, fitted: Fitted, member: Floats) -> float:
    """Return the mean of d over its standard error, 0 where everybody is in one group.

    With several groups, d is summed over them; with two, both sums are equal.
    """
    centred, loading = fitted.centred, fitted.loading[:, None]
    g = member - member.mean(axis=0)  # (annotator, group)
    if not g.any() or items.n_items < 2:
        return 0.0
    value = ((centred @ g) ** 2 - centred.power(2) @ g**2).sum(axis=1)
    value = value.reshape(items.n_items, -1).sum(axis=1)
    labelled = items.labelled
    expected = (labelled @ (g * loading)) ** 2 - labelled.power(2) @ (g * loading) ** 2
    value -= expected.sum(axis=1)
    error = float(value.std(ddof=1)) / np.sqrt(len(value))
    return float(value.mean()) / error if error > 0 else 0.0


def pair_correlations(items: ItemSet, fitted: Fitted, member: Floats) -> tuple[float, float]:
    """Return the mean correlation of the labels of two annotators of one group, and of two."""
    found, among = (member.T @ (matrix @ member) for matrix in (fitted.agreement, items.common))
    same = np.trace(found), np.trace(among)
    other = found.sum() - same[0], among.sum() - same[1]
    within, between = (float(a / b) if b > 0 else 0.0 for a, b in (same, other))
    return within, between


class SharedLabels:
    """Labels by items, annotators and classes in the order of their content, and who takes part."""

    def __init__(
        self, rows: Integers, kept: npt.NDArray[np.bool_], n_classes: int, ordered: bool
    ) -> None:
        self.kept, self.n_classes, self.ordered = kept, n_classes, ordered
        self.rows = rows[:, kept[rows[1]]]
        size = np.bincount(self.rows[0], minlength=1)
        self.rows = self.rows[:, size[self.rows[0]] > 1]
        item, annotator, self.label = self.rows
        self.items, self.item = np.unique(item, return_inverse=True)
        self.annotator = (np.cumsum(kept) - 1)[annotator]

    def keep(self, kept: npt.NDArray[np.bool_]) -> SharedLabels:
        """Return the crowd with fewer annotators."""
        return SharedLabels(self.rows, self.kept & kept, self.n_classes, self.ordered)

    def sample(self, max_pairs: int, rng: np.random.Generator) -> SharedLabels:
        """Return the labels on a sample of items where there are too many pairs of labels."""
        size = np.bincount(self.rows[0], minlength=1).astype(np.int64)
        width = 1 if self.ordered or self.n_classes == 2 else self.n_classes
        share = max_pairs / max(int((size**2).sum()) * width, 1)
        if share >= 1:
            return self
        rows = self.rows[:, (rng.random(len(size)) < share)[self.rows[0]]]
        return SharedLabels(rows, self.kept, self.n_classes, self.ordered)

    def shared_labels(self) -> Integers:
        """Return how many labels annotators have on items with several: (annotator)."""
        return np.bincount(self.rows[1], minlength=len(self.kept))

    def on(self, chosen: Array | slice = slice(None)) -> ItemSet:
        """Return the labels on some items."""
        n = int(self.kept.sum())
        return ItemSet(self.item[chosen], self.annotator[chosen], n, self.n_classes, self.ordered)

    def loadings(self) -> Floats:
        """Return how far annotators follow the items, 0 for those left out: (annotator)."""
        out = np.zeros(len(self.kept))
        out[self.kept] = fit_one_group(self.on(), self.label).loading
        return out

    def groups(self) -> Floats:
        """Return -1 or 1 for those who take part, from all items."""
        items = self.on()
        return two_groups(items, fit_one_group(items, self.label))


class Splits:
    """Halves of the items, drawn once."""

    def __init__(self, crowd: SharedLabels, rng: np.random.Generator) -> None:
        n_items = len(crowd.items)
        halves = [rng.permutation(n_items) < n_items // 2 for _ in range(_SPLITS)]
        self.rows = [(half[crowd.item], ~half[crowd.item]) for half in halves]  # (label)
        self.sets = [(crowd.on(one), crowd.on(other)) for one, other in self.rows]

    def compare(self, label: Array, *, drawn: bool = False) -> SplitHalf:
        """Return what groups of either half are on the other, averaged over splits."""
        found, same = [], []
        n = _FEW if drawn else _SPLITS
        for rows, sets in zip(self.rows[:n], self.sets[:n], strict=True):
            fits = [fit_one_group(one, label[row]) for one, row in zip(sets, rows, strict=True)]
            groups = [two_groups(*one) for one in zip(sets, fits, strict=True)]
            for here, fitted, group in zip(sets, fits, groups[::-1], strict=True):
                member = members(group)
                t = t_statistic(here, fitted, member)
                found.append((t, *pair_correlations(here, fitted, member)))
            equal = float((groups[0] == groups[1]).mean())
            same.append(max(equal, 1 - equal))
        t, within, between = np.mean(found, axis=0).tolist()
        return SplitHalf(t, within, between, float(np.mean(same)))


def _off_diagonal(rows: Sparse) -> Sparse | Floats:
    """Return the products of columns of a matrix, without those with themselves."""
    square = (rows.T @ rows).tocsr()
    if square.shape[0] > _DENSE:
        return (square - sparse.diags_array(square.diagonal())).tocsr()
    dense = square.toarray()
    np.fill_diagonal(dense, 0.0)
    return dense
