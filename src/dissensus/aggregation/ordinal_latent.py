"""Ordered probit: items have latent positions, cuts divide them into ordered classes.

An annotator perceives a position with a bias and with noise, and names the class in which the
perceived position lies. Biases, noise and cuts are improved by Fisher scoring: the gradient of the
log posterior over the expected curvature. A step is halved until it gains, or not taken.

`OrdinalAggregator` is what all methods for ordered classes share: how a posterior becomes a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from annotated_types import Interval
from scipy.special import expit, ndtr, ndtri

from ..answers.annotations import Annotations, Part
from ..base.arrays import Floats, Integers
from ..base.probability import TIE, log_normalize, most_probable, normalize, safe_log
from .aggregation import ClassAggregation
from .classes import ClassContext, ClassMethod
from .em import EM, Expected

_CELLS = 2**16  # floats in the arrays of one block of annotators
_LEAST = 1e-300
_HALVINGS = 12
_REACH = 4.0  # the grid of positions goes from minus this to this


def cuts_of(middle: Floats, gap: Floats) -> Floats:
    """Return cuts from their mean and, through softplus, the gaps between them.

    >>> cuts_of(np.array([1.0]), np.log(np.expm1([2.0]))).tolist()
    [0.0, 2.0]
    """
    distance = np.concatenate([[0.0], np.logaddexp(0, gap).cumsum()])
    return middle + distance - distance.mean()


def offsets(cuts: Floats, grid: Floats, bias: Floats, scale: Floats) -> Floats:
    """Return cuts minus positions, in units of the noise: (annotator, threshold, node)."""
    return (cuts[:, None] - grid - bias[:, None, None]) * scale[:, None, None]


def density(off: Floats) -> Floats:
    """Return the standard normal density."""
    return np.exp(off * off * -0.5) / np.sqrt(2 * np.pi)


def label_probabilities(off: Floats) -> Floats:
    """Return P(label | position): (annotator, given class, node).

    Small probabilities are differences of small numbers, in either tail.
    """
    n_annotators, n_cuts, n_nodes = off.shape
    probability = np.ones((n_annotators, n_cuts + 1, n_nodes))
    if n_cuts == 0:
        return probability
    high, tail = off > 0, ndtr(-np.abs(off))
    below, above = np.where(high, 1 - tail, tail), np.where(high, tail, 1 - tail)
    probability[:, 0], probability[:, -1] = below[:, 0], above[:, -1]
    probability[:, 1:-1] = np.where(
        high[:, :-1], above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1]
    )
    return np.maximum(probability, _LEAST, out=probability)


def _steps(values: Floats) -> Floats:
    """Return the difference of values between the ends of every class, 0 at the outer ends."""
    out = np.zeros((values.shape[0], values.shape[1] + 1, values.shape[2]))
    out[:, :-1] = values
    out[:, 1:] -= values
    return out


def update_annotators(
    counts: Floats,  # (annotator, given class, node)
    cuts: Floats,
    grid: Floats,
    bias: Floats,
    log_precision: Floats,
) -> tuple[Floats, Floats]:
    """Return better biases and log precisions; both have standard normal priors."""
    scale = np.exp(log_precision / 2)
    off = offsets(cuts, grid, bias, scale)
    probability, density_ = label_probabilities(off), density(off)
    by_bias = _steps(density_ * -scale[:, None, None])
    by_precision = _steps(off * density_ / 2)
    ratio, weight = counts / probability, counts.sum(axis=1, keepdims=True) / probability
    gradient_b = np.einsum("agn,agn->a", ratio, by_bias) - bias
    gradient_p = np.einsum("agn,agn->a", ratio, by_precision) - log_precision
    curvature_b = np.einsum("agn,agn,agn->a", weight, by_bias, by_bias) + 1
    curvature_p = np.einsum("agn,agn,agn->a", weight, by_precision, by_precision) + 1
    cross = np.einsum("agn,agn,agn->a", weight, by_bias, by_precision)
    total = curvature_b * curvature_p - cross**2
    step_b = (curvature_p * gradient_b - cross * gradient_p) / total
    step_p = (curvature_b * gradient_p - cross * gradient_b) / total

    objective = _objective(counts, probability, bias, log_precision)
    worse = np.arange(len(bias))
    for _ in range(_HALVINGS):
        trial = (bias + step_b)[worse], (log_precision + step_p)[worse]
        probability = label_probabilities(offsets(cuts, grid, trial[0], np.exp(trial[1] / 2)))
        worse = worse[~(_objective(counts[worse], probability, *trial) >= objective[worse])]
        if len(worse) == 0:
            break
        step_b[worse] /= 2
        step_p[worse] /= 2
    step_b[worse] = step_p[worse] = 0.0
    return bias + step_b, log_precision + step_p


def _objective(counts: Floats, probability: Floats, bias: Floats, log_precision: Floats) -> Floats:
    return np.einsum("agn,agn->a", counts, np.log(probability)) - (bias**2 + log_precision**2) / 2


def update_cuts(
    counts: Floats,  # (annotator, given class, node)
    middle: Floats,
    gap: Floats,
    grid: Floats,
    bias: Floats,
    scale: Floats,
) -> tuple[Floats, Floats]:
    """Return better cuts, as middle and gaps; both have standard normal priors."""
    if len(middle) == 0:
        return middle, gap
    cuts = cuts_of(middle, gap)
    gradient, curvature = np.zeros(len(cuts)), np.zeros((len(cuts), len(cuts)))
    cut, inner = np.arange(len(cuts)), np.arange(len(cuts) - 1)
    present = -0.5 * float(middle @ middle + gap @ gap)
    for block in blocks(counts):
        off = offsets(cuts, grid, bias[block], scale[block])
        probability, density_ = label_probabilities(off), density(off) * scale[block][:, None, None]
        present += float(np.einsum("agn,agn->", counts[block], np.log(probability)))
        ratio, weight = (
            counts[block] / probability,
            counts[block].sum(axis=1, keepdims=True) / probability,
        )
        gradient += np.einsum("acn,acn->c", density_, ratio[:, :-1] - ratio[:, 1:])
        curvature[cut, cut] += np.einsum("acn,acn->c", density_**2, weight[:, :-1] + weight[:, 1:])
        near = np.einsum("acn,acn->c", density_[:, :-1] * density_[:, 1:], weight[:, 1:-1])
        curvature[inner, inner + 1] -= near
        curvature[inner + 1, inner] -= near
    moved = (cut[:, None] > inner) * expit(gap)  # (cut, gap)
    jacobian = np.concatenate([np.ones((len(cuts), 1)), moved - moved.mean(axis=0)], axis=1)
    point = np.concatenate([middle, gap])
    step = np.linalg.solve(
        jacobian.T @ curvature @ jacobian + np.eye(len(point)), jacobian.T @ gradient - point
    )

    def objective(candidate: Floats) -> float:
        cuts, fit = cuts_of(candidate[:1], candidate[1:]), 0.0
        for block in blocks(counts):
            probability = label_probabilities(offsets(cuts, grid, bias[block], scale[block]))
            fit += float(np.einsum("agn,agn->", counts[block], np.log(probability)))
        return fit - float(candidate @ candidate) / 2

    for _ in range(_HALVINGS):
        if objective(point + step) >= present:
            point = point + step
            break
        step /= 2
    return point[:1], point[1:]


def blocks(cells: Floats, times: int = 1) -> Iterator[slice]:
    """Return blocks of annotators, the first axis, small enough for this many copies in memory.

    >>> list(blocks(np.empty((3, 2**8, 2**8))))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    size = max(1, _CELLS // max(1, times * int(np.prod(cells.shape[1:]))))
    return (slice(start, start + size) for start in range(0, len(cells), size))


Decision = Literal["class", "median", "mean"]


@dataclass(frozen=True, kw_only=True)
class OrdinalAggregator(ClassMethod):
    """A method for ordered classes, in the order they are declared in.

    Parameters
    ----------
    decision
        The label of an item: the most probable `class`, which minimizes the error rate; the
        `median` of the posterior, which minimizes the mean absolute error; or the class nearest to
        the `mean`, which minimizes the mean squared error.
    """

    decision: Decision = "class"

    def decide(self, fit: ClassContext, posterior: Floats, params: Any) -> Integers:
        return decide(posterior, self.decision)


def decide(posterior: Floats, decision: Decision) -> Integers:
    """Return the label of every item; of tied classes, the lower one.

    >>> posterior = np.array([[0.4, 0.15, 0.15, 0.3]])
    >>> [decide(posterior, rule).tolist() for rule in ("class", "median", "mean")]
    [[0], [1], [1]]
    """
    if decision == "class":
        return most_probable(posterior)
    if decision == "median":
        return (posterior.cumsum(axis=1) >= 0.5 - TIE).argmax(axis=1)
    mean = posterior @ np.arange(posterior.shape[1])
    return np.ceil(mean - 0.5 - TIE).astype(np.int64)


class LatentParams(NamedTuple):
    """Parameters of the model."""

    middle: Floats  # (1): mean of the cuts
    gap: Floats  # (threshold - 1): distance of two cuts, before softplus
    bias: Floats  # (annotator)
    log_precision: Floats  # (annotator)
    position: Floats  # (item): posterior mean; NaN for items that were not in the fit

    @property
    def cuts(self) -> Floats:
        """Where one class ends and the next begins: (threshold)."""
        return cuts_of(self.middle, self.gap)

    @property
    def scale(self) -> Floats:
        """One over the standard deviation of annotators' noise: (annotator)."""
        return np.exp(self.log_precision / 2)

    def reindex(self, indices: Integers, n_items: int) -> LatentParams:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        bias, log_precision = (
            np.append(value, value.mean())[indices] for value in (self.bias, self.log_precision)
        )
        return LatentParams(
            middle=self.middle,
            gap=self.gap,
            bias=bias,
            log_precision=log_precision,
            position=np.full(n_items, np.nan),
        )


class NodeCounts(NamedTuple):
    """Expected sufficient statistics; they add up over parts of the items."""

    given_node: Floats  # (annotator and given class, node)
    gold: Floats  # (class, node)


@dataclass(frozen=True, kw_only=True)
class OrdinalLatent(OrdinalAggregator, EM[LatentParams, NodeCounts]):
    """Latent positions of items, perceived with bias and noise, fitted with EM.

    Ordinal latent: items have latent positions, which cuts divide into classes.

    The position of an item is drawn from a standard normal distribution. Annotator a perceives it
    as position + bias[a] + e / sqrt(precision[a]), with e standard normal, and names the class
    between whose cuts that lies; the cuts are the same for all. The class of an item is the one in
    which its position lies. Positions are discretized on a grid, so the E-step is a sum. Biases,
    log precisions, the middle of the cuts and the gaps between them, through softplus, have
    standard normal priors. The objective never falls.

        perceived[i, a] = position[i] + bias[a] + e / sqrt(precision[a])
        label[i, a] = the class between whose cuts perceived[i, a] lies

    When it fails: On classes without an order, and where the scale has two meanings, as "neutral"
    and "does not apply" in one class. It is slow: minutes where others take a second.

        W. Chu, Z. Ghahramani. Gaussian processes for ordinal regression. Journal of Machine
        Learning Research 6, 2005. (The cuts.)

        B. Lakshminarayanan, Y. W. Teh. Inferring ground truth from multi-annotator ordinal data: a
        probabilistic approach. arXiv:1305.0015, 2013. (Annotators with a bias and a precision.)

    Parameters
    ----------
    nodes
        Number of nodes of the grid.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalLatent().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    params_type: ClassVar[type] = LatentParams

    nodes: Annotated[int, Interval(ge=5, le=1000)] = 21

    def infer(self, fit: ClassContext) -> ClassAggregation:
        result = super().infer(fit)
        locate = partial(self.locate, params=result.params)
        position = np.concatenate(list(fit.engine.each(locate, fit.parts)))
        return replace(result, params=result.params._replace(position=position))

    def log_joint(self, part: Part, params: LatentParams) -> Floats:
        """Return log P(position, labels): (item, node)."""
        log_given = np.log(self.given_position(params))
        joint = part.labels @ log_given.reshape(-1, self.nodes)
        joint += np.log(self.weight)
        if part.gold is not None:
            gold_items = np.flatnonzero(part.gold >= 0)
            joint[gold_items] += np.log(self.truth(params.cuts))[part.gold[gold_items]]
        return joint

    def counts(self, part: Part, posterior: Floats) -> NodeCounts:
        """Return counts under a posterior of positions, (item, node)."""
        gold = np.zeros((part.n_classes, self.nodes))
        if part.gold is not None:
            gold_items = np.flatnonzero(part.gold >= 0)
            gold = np.eye(part.n_classes)[part.gold[gold_items]].T @ posterior[gold_items]
        return NodeCounts(part.labels.T @ posterior, gold)

    def e_step(self, part: Part, params: LatentParams) -> Expected:
        evidence, posterior = log_normalize(self.log_joint(part, params))
        posterior[part.blank] = 0.0
        return Expected(evidence, self.counts(part, posterior))

    def part_posterior(self, part: Part, params: LatentParams) -> Floats:
        _, posterior = log_normalize(self.log_joint(part, params))
        return normalize(posterior @ self.truth(params.cuts).T)

    def locate(self, part: Part, params: LatentParams) -> Floats:
        """Return the posterior mean of positions: (item)."""
        return log_normalize(self.log_joint(part, params))[1] @ self.grid

    def initial_counts(self, part: Part, posterior: Floats) -> NodeCounts:
        _, posterior = log_normalize(safe_log(posterior), part.allowed)
        posterior[part.blank] = 0.0
        even = _first_params(part.n_classes, 0).cuts
        return self.counts(part, posterior @ normalize(self.truth(even) * self.weight))

    def update(self, counts: NodeCounts, last: LatentParams | None) -> LatentParams:
        n_classes = len(counts.gold)
        by_node = counts.given_node.reshape(-1, n_classes, self.nodes)
        params = _first_params(n_classes, len(by_node)) if last is None else last
        with_gold = np.concatenate([by_node, counts.gold[None]])
        for _ in range(5 if last is None else 1):
            bias, log_precision = params.bias.copy(), params.log_precision.copy()
            for block in blocks(by_node):
                bias[block], log_precision[block] = update_annotators(
                    counts=by_node[block],
                    cuts=params.cuts,
                    grid=self.grid,
                    bias=bias[block],
                    log_precision=log_precision[block],
                )
            scale = np.append(np.exp(log_precision / 2), self.sharpest)
            middle, gap = update_cuts(
                counts=with_gold,
                middle=params.middle,
                gap=params.gap,
                grid=self.grid,
                bias=np.append(bias, 0.0),
                scale=scale,
            )
            params = LatentParams(
                middle=middle,
                gap=gap,
                bias=bias,
                log_precision=log_precision,
                position=params.position,
            )
        return params

    def log_prior(self, params: LatentParams) -> float:
        return -0.5 * sum(float(value @ value) for value in params[:4])

    def n_floats(self, annotations: Annotations) -> int:
        width = max(self.nodes, annotations.n_classes)
        cells = annotations.n_annotators * annotations.n_classes * width
        return super().n_floats(annotations) + annotations.n_items * self.nodes + 4 * cells

    def confusion(self, params: LatentParams) -> Floats:
        positions = normalize(self.truth(params.cuts) * self.weight)  # (true class, node)
        return normalize((self.given_position(params) @ positions.T).swapaxes(1, 2))

    def quality(self, params: LatentParams, agreement: Floats) -> Floats:
        prior = self.truth(params.cuts) @ self.weight
        return np.einsum("t,att->a", prior, self.confusion(params))

    def given_position(self, params: LatentParams) -> Floats:
        """Return P(label | position): (annotator, given class, node)."""
        out = np.empty((len(params.bias), len(params.cuts) + 1, self.nodes))
        for block in blocks(out):
            off = offsets(params.cuts, self.grid, params.bias[block], params.scale[block])
            out[block] = label_probabilities(off)
        return out

    def truth(self, cuts: Floats) -> Floats:
        """Return P(class | position): (class, node).

        A node represents the positions nearest to it, so the truth is the label of an annotator
        without bias and with the noise of the grid.
        """
        off = offsets(cuts, self.grid, np.zeros(1), np.array([self.sharpest]))
        return label_probabilities(off)[0]

    @property
    def grid(self) -> Floats:
        """The positions of the grid: (node)."""
        return np.linspace(-_REACH, _REACH, self.nodes)

    @property
    def weight(self) -> Floats:
        """Prior probability of every position: (node)."""
        return normalize(np.exp(-(self.grid**2) / 2))

    @property
    def sharpest(self) -> float:
        """One over the standard deviation of the positions that a node represents."""
        return float(np.sqrt(12) * (self.nodes - 1) / (2 * _REACH))


def _first_params(n_classes: int, n_annotators: int) -> LatentParams:
    """Return a uniform prevalence, and annotators of precision one without bias."""
    cuts = ndtri(np.arange(1, n_classes) / n_classes)
    gap = np.log(np.expm1(np.diff(cuts)))
    zero = np.zeros(n_annotators)
    return LatentParams(
        middle=np.zeros(min(n_classes - 1, 1)),
        gap=gap,
        bias=zero,
        log_precision=zero,
        position=np.empty(0),
    )
