"""Groups of annotators tested on held-out items, and crowds without camps to compare them with.

Groups are found on one half of the items and tested on the other. Labels are centred for every
annotator, so that severity and favourite classes do not count:

    x[i, j, k] = ([label of j on i is k] - p[j, k]) / sqrt(1 - sum over k of p[j, k]²)

`agreement` sums x[i, j, k] x[i, l, k] over the common items of j and l. In one group it is
`common · λ λᵀ`, where λ is how far an annotator follows the items. The signs of the leading
eigenvector of what remains are two groups. On the other half of the items, with λ fitted there,

    d[i] = sum over j ≠ l of g[j] g[l] (sum over k of x[i, j, k] x[i, l, k] - λ[j] λ[l])

has mean zero without groups; g is ±1, centred. For ordered labels x is the score, standardized for
every annotator.

Crowds without camps (`OneCamp`) are drawn from a model of severity:

    P(label of j on i is k) ∝ T[i, k]^alpha[j] exp(beta[j, k])

T is how an item divides the crowd: its shares of labels, drawn from their Dirichlet posterior.
`alpha` is how closely an annotator follows it, `beta` how readily they choose a class. Both are
fitted to the posterior mean without the annotator's own label.

Where labels are ordered (`OneOrderedCamp`),

    u[i, j] = a[j] θ[i] + sqrt(1 - a[j]²) e[i, j]        θ, e normal

and annotators put their own labels in the order of u. So severity and the use of the scale stay
exactly as they are, and only how far labels follow the items is a model. θ is drawn from its
posterior given the labels; a is λ of normal scores, corrected for the variance that labels lose of
u.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import ndtri

from ..base.arrays import Array, Floats, Integers
from ..base.probability import normalize

Sparse = sparse.csr_array[Any, Any]

_SPLITS = 12  # of the items into halves
_FEW = 4  # splits of crowds that are drawn, of which there are many
_ROUNDS_OF_SQUARES = 30  # of alternating least squares
_DENSE = 200  # annotators up to which matrices of pairs are dense
_PSEUDO_ITEMS = 5.0  # common items added to everybody's, so that few do not make an extreme vector
_ROUNDS = 25  # of fitting a crowd without camps
_RIDGE = 4.0  # of alpha, towards 1
_PRIOR = 1.0  # labels that the shares of all items add to every item
_PSEUDO = 0.5  # labels added to every annotator's, as the crowd gives them
_LEAST, _MOST = 0.01, 0.98  # of a


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
        _, pair_index, repeats = np.unique(pair, return_inverse=True, return_counts=True)
        self.weight = (
            1 / repeats[pair_index]
        )  # (label): those of one annotator on one item sum to one
        # Rows of `centred` are (item, value): every item's labels follow once for every value.
        size = np.repeat(size, self.n_values)
        self._start = np.concatenate([[0], np.cumsum(size)])
        first_row = np.repeat(np.searchsorted(item, np.arange(self.n_items)), self.n_values)
        label = np.arange(self._start[-1]) - np.repeat(self._start[:-1] - first_row, size)
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
            np.stack(
                [np.bincount(self.annotator, self.weight * column, n) for column in part.T], axis=1
            )
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
    for _ in range(_ROUNDS_OF_SQUARES):
        weight = items.common @ loading**2
        new = np.divide(agreement @ loading, weight, out=np.zeros_like(weight), where=weight > 1e-9)
        loading = (loading + new) / 2  # together, they would overshoot
    return Fitted(centred, agreement, loading)


def two_groups(items: ItemSet, fitted: Fitted) -> Floats:
    """Return -1 or 1 for every annotator: who agrees more than one group explains."""
    common, agreement, loading = items.common, fitted.agreement, fitted.loading
    n = items.n_annotators
    scale = 1 / np.sqrt(np.asarray(common.sum(axis=1)).ravel() + _PSEUDO_ITEMS)
    if n <= _DENSE:
        residual = np.asarray(agreement - common * np.outer(loading, loading))
        vector = np.linalg.eigh(scale[:, None] * residual * scale)[1][:, -1]
    else:

        def apply(direction: Floats) -> Floats:
            direction = scale * direction.ravel()
            return scale * (agreement @ direction - loading * (common @ (loading * direction)))

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
    agreed, among = (member.T @ (matrix @ member) for matrix in (fitted.agreement, items.common))
    within_sums = np.trace(agreed), np.trace(among)
    between_sums = agreed.sum() - within_sums[0], among.sum() - within_sums[1]
    within, between = (float(a / b) if b > 0 else 0.0 for a, b in (within_sums, between_sums))
    return within, between


class SharedLabels:
    """Labels by items, annotators and classes in the order of their content, and who takes part."""

    def __init__(
        self, rows: Integers, included: npt.NDArray[np.bool_], n_classes: int, ordered: bool
    ) -> None:
        self.included, self.n_classes, self.ordered = included, n_classes, ordered
        self.rows = rows[:, included[rows[1]]]
        size = np.bincount(self.rows[0], minlength=1)
        self.rows = self.rows[:, size[self.rows[0]] > 1]
        item, annotator, self.label = self.rows
        self.items, self.item = np.unique(item, return_inverse=True)
        self.annotator = (np.cumsum(included) - 1)[annotator]

    def keep(self, included: npt.NDArray[np.bool_]) -> SharedLabels:
        """Return the crowd with fewer annotators."""
        return SharedLabels(self.rows, self.included & included, self.n_classes, self.ordered)

    def sample(self, max_pairs: int, rng: np.random.Generator) -> SharedLabels:
        """Return the labels on a sample of items where there are too many pairs of labels."""
        size = np.bincount(self.rows[0], minlength=1).astype(np.int64)
        width = 1 if self.ordered or self.n_classes == 2 else self.n_classes
        share = max_pairs / max(int((size**2).sum()) * width, 1)
        if share >= 1:
            return self
        rows = self.rows[:, (rng.random(len(size)) < share)[self.rows[0]]]
        return SharedLabels(rows, self.included, self.n_classes, self.ordered)

    def shared_labels(self) -> Integers:
        """Return how many labels annotators have on items with several: (annotator)."""
        return np.bincount(self.rows[1], minlength=len(self.included))

    def on(self, rows: Array | slice = slice(None)) -> ItemSet:
        """Return these labels with their items, by default all."""
        n = int(self.included.sum())
        return ItemSet(
            self.item[rows],
            self.annotator[rows],
            n_annotators=n,
            n_classes=self.n_classes,
            ordered=self.ordered,
        )

    def loadings(self) -> Floats:
        """Return how far annotators follow the items, 0 for those left out: (annotator)."""
        out = np.zeros(len(self.included))
        out[self.included] = fit_one_group(self.on(), self.label).loading
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
        self.sets = [(crowd.on(half), crowd.on(complement)) for half, complement in self.rows]

    def compare(self, label: Array, *, drawn: bool = False) -> SplitHalf:
        """Return what groups of either half are on the other, averaged over splits."""
        statistics, same_group = [], []
        n = _FEW if drawn else _SPLITS
        for rows, sets in zip(self.rows[:n], self.sets[:n], strict=True):
            fits = [fit_one_group(items, label[row]) for items, row in zip(sets, rows, strict=True)]
            groups = [two_groups(items, fitted) for items, fitted in zip(sets, fits, strict=True)]
            for items, fitted, group in zip(sets, fits, groups[::-1], strict=True):
                member = members(group)
                t = t_statistic(items, fitted, member)
                statistics.append((t, *pair_correlations(items, fitted, member)))
            equal = float((groups[0] == groups[1]).mean())
            same_group.append(max(equal, 1 - equal))
        t, within, between = np.mean(statistics, axis=0).tolist()
        return SplitHalf(t, within, between, float(np.mean(same_group)))


def _off_diagonal(rows: Sparse) -> Sparse | Floats:
    """Return the products of columns of a matrix, without those with themselves."""
    square = (rows.T @ rows).tocsr()
    if square.shape[0] > _DENSE:
        return (square - sparse.diags_array(square.diagonal())).tocsr()
    dense = square.toarray()
    np.fill_diagonal(dense, 0.0)
    return dense


class OneCamp(NamedTuple):
    """A fitted crowd without camps."""

    item: Integers  # (label)
    annotator: Integers  # (label)
    votes: Floats  # (item, class), with the prior
    alpha: Floats  # (annotator)
    beta: Floats  # (annotator, class)

    def draw(self, rng: np.random.Generator, independent: float = 0.0) -> Array:
        """Return new labels of everybody.

        Two camps of equal size judge a share of `independent` items independently of each other.
        """
        log_share = _draw_log_shares(rng, self.votes)
        view = log_share[self.item]
        if independent > 0:
            other = np.arange(len(self.votes))
            moved = np.flatnonzero(rng.random(len(other)) < independent)
            other[moved] = rng.permutation(moved)
            camp = rng.permutation(len(self.alpha)) % 2 == 1
            view = np.where(camp[self.annotator][:, None], log_share[other[self.item]], view)
        score = self.alpha[self.annotator][:, None] * view + self.beta[self.annotator]
        return (score + rng.gumbel(size=score.shape)).argmax(axis=1)


def fit_one_camp(
    item: Integers, annotator: Integers, label: Integers, shape: tuple[int, int, int]
) -> OneCamp:
    """Return the model of one camp; `shape` counts items, annotators and classes."""
    n_items, n_annotators, n_classes = shape
    one_hot = np.equal.outer(label, np.arange(n_classes)).astype(np.float64)
    counted = np.bincount(item * n_classes + label, minlength=n_items * n_classes)
    share = normalize(one_hot.sum(axis=0) + 0.5)
    votes = counted.reshape(n_items, n_classes) + _PRIOR * share
    log_share = np.log(normalize(votes[item] - one_hot))  # (label, class), without this label

    def by_annotator(value: Floats) -> Floats:
        columns = value.T if value.ndim > 1 else value[None]
        return np.stack(
            [np.bincount(annotator, column, n_annotators) for column in columns], axis=1
        )

    counts = by_annotator(one_hot) + _PSEUDO * share
    followed = by_annotator((one_hot * log_share).sum(axis=1))[:, 0]
    alpha, beta = np.ones(n_annotators), np.zeros((n_annotators, n_classes))
    for _ in range(_ROUNDS):
        for step in ("beta", "alpha"):
            score = alpha[annotator][:, None] * log_share + beta[annotator]
            probability = np.exp(score - score.max(axis=1, keepdims=True))
            probability /= probability.sum(axis=1, keepdims=True)
            if step == "beta":
                beta += np.log(counts / (by_annotator(probability) + _PSEUDO * share))
            else:
                mean = (probability * log_share).sum(axis=1)
                variance = (probability * log_share**2).sum(axis=1) - mean**2
                slope = followed - by_annotator(mean)[:, 0] - _RIDGE * (alpha - 1)
                alpha += np.clip(slope / (by_annotator(variance)[:, 0] + _RIDGE), -0.5, 0.5)
                alpha = np.clip(alpha, 0.0, 10.0)
    return OneCamp(item, annotator, votes=votes, alpha=alpha, beta=beta)


def _draw_log_shares(rng: np.random.Generator, votes: Floats) -> Floats:
    """Return the logarithms of shares from their Dirichlet posterior: (item, class)."""
    # A gamma variable with a small shape underflows; its logarithm does not (Marsaglia & Tsang).
    log_gamma = np.log(rng.standard_gamma(votes + 1)) + np.log(rng.random(votes.shape)) / votes
    log_gamma -= np.logaddexp.reduce(log_gamma, axis=1, keepdims=True)
    return log_gamma


class OneOrderedCamp(NamedTuple):
    """A fitted crowd without camps."""

    item: Integers  # (label)
    annotator: Integers  # (label)
    label: Array  # in order for every annotator
    mean: Floats  # (item), of θ
    deviation: Floats  # (item)
    loading: Floats  # (annotator): a

    def draw(self, rng: np.random.Generator, independent: float = 0.0) -> Array:
        """Return new labels of everybody; `independent` as in `OneCamp`."""
        theta = self.mean + self.deviation * rng.normal(size=len(self.mean))
        theta = (theta - theta.mean()) / max(float(theta.std()), 1e-9)
        view = theta[self.item]
        if independent > 0:
            other = np.arange(len(theta))
            moved = np.flatnonzero(rng.random(len(other)) < independent)
            other[moved] = rng.permutation(moved)
            camp = rng.permutation(len(self.loading)) % 2 == 1
            view = np.where(camp[self.annotator], theta[other[self.item]], view)
        a = self.loading[self.annotator]
        value = a * view + np.sqrt(1 - a**2) * rng.normal(size=len(view))
        drawn = np.empty_like(self.label)
        drawn[np.lexsort((value, self.annotator))] = self.label
        return drawn


def fit_one_ordered_camp(items: ItemSet, item: Integers, label: Array) -> OneOrderedCamp:
    """Return the model of one camp, fitted to ordered labels."""
    annotator, n_items = items.annotator, items.n_items
    score = normal_scores(annotator, label)
    count = np.maximum(np.bincount(annotator, minlength=items.n_annotators), 1)
    score_variance = (
        np.bincount(annotator, score**2, items.n_annotators) / count
    )  # of the variance of u
    loading = fit_one_group(items, score).loading / np.sqrt(np.maximum(score_variance, _LEAST))
    loading = np.clip(loading, _LEAST, _MOST)
    slope = (loading * score_variance)[annotator]  # score = slope · θ + noise
    weight = slope / np.maximum(score_variance[annotator] - slope**2, _LEAST)
    precision = 1 + np.bincount(item, weight * slope, n_items)
    mean = np.bincount(item, weight * score, n_items) / precision
    in_order = label[np.lexsort((label, annotator))]
    return OneOrderedCamp(
        item,
        annotator,
        label=in_order,
        mean=mean,
        deviation=1 / np.sqrt(precision),
        loading=loading,
    )


def normal_scores(annotator: Integers, label: Array) -> Floats:
    """Return the mean of u given every label, where u is cut as often as each label is given.

    >>> normal_scores(np.array([0, 0, 0, 0]), np.array([1, 0, 1, 1])).round(2)
    array([ 0.42, -1.27,  0.42,  0.42])
    """
    order = np.lexsort((label, annotator))
    annotator, label = annotator[order], label[order]
    new = np.diff(annotator, prepend=-1) != 0
    starts = new | (np.diff(label, prepend=-1) != 0)  # of equal labels of one annotator
    count = np.bincount(annotator)[annotator]
    rank = np.arange(len(label)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    run = np.cumsum(starts) - 1
    low = rank[starts] / count[starts]
    size = np.bincount(run) / count[starts]
    density = np.exp(-(ndtri(np.stack([low, np.minimum(low + size, 1.0)])) ** 2) / 2)
    density /= np.sqrt(2 * np.pi)
    out = np.empty(len(label))
    out[order] = ((density[0] - density[1]) / size)[run]
    return out
