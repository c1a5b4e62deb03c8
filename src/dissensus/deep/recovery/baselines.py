"""What other recoveries are measured by: simple methods below them, and oracles above.

The marginal and kernel ridge see one label per item, as every method does. The oracles learn from
all annotations: one from the label shares, one from the label and how much annotators disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Interval
from scipy.linalg import eigh
from torch import Tensor, nn

from ...base.arrays import Array, Floats
from ...params import Count, NonNegative, Positive
from ..nn import Batch
from ..nn.features import Features
from .base import FitInputs, Recovery, RecoveryMethod, State, entropy, shares_of
from .heads import Fraction, HeadMethod, Heads, Networks
from .members import Members, bootstrap_weights, initial_weights, shared_split

_WIDTHS = (1.0, 2.0, 4.0)
_NOISES = (0.3, 1.0, 2.0, 4.0, 8.0, 16.0)
_LEADING = 0.8  # weight of a kind above the others
_TINY = 1e-6  # smallest eigenvalue, relative to the largest: 32 bits carry no less
_CELLS = 2**23  # kernel entries in memory at a time


@dataclass(eq=False)
class KernelModel(Recovery):
    """A kernel expansion for every class."""

    landmarks: Array  # (landmark, feature): unit vectors
    weight: Floats  # (landmark, class)
    mean: Floats  # (class)
    center: Floats  # (feature): mean of the unit vectors
    scale: Floats  # (feature): root of the weight of its kind
    widths: tuple[int, ...]  # features of every kind
    width: float
    least: float
    held_out_proba: Floats | None = None  # (item, class): leave-one-out

    def members(self, features: Features) -> Floats:
        x = _by_kind(features.vectors.astype(np.float64), self.center, self.widths) * self.scale
        landmarks = self.landmarks.astype(np.float64)  # no item depends on those beside it
        parts = [k @ self.weight for k in _kernel_rows(x, landmarks, self.width)]
        p = np.concatenate([*parts, np.zeros((0, len(self.mean)))]) + self.mean
        return _clip(p, self.least)[None]

    def state(self) -> State:
        arrays = {n: getattr(self, n) for n in ("landmarks", "weight", "mean", "center", "scale")}
        notes = {"width": self.width, "least": self.least, "widths": list(self.widths)}
        return State(notes, arrays)


@dataclass(frozen=True, kw_only=True)
class KernelRidge(RecoveryMethod):
    """Kernel ridge regression on one-hot labels, tuned by leave-one-out likelihood.

    Kernel ridge regression on one-hot labels: the mean of a Gaussian process for every class.

    With y_ik = 1 where item i has label k, m the label marginal and K_ij = exp(g (cosine_ij - 1)),

        f(x) = m + k(x) (K + noise I)⁻¹ (y - m),

    clipped to at least `least` and normalized. Least squares on 0 and 1 estimate a probability
    directly, without the steepness of a softmax. Width g and noise are those of a small grid with
    the highest leave-one-out likelihood, which has a closed form. With K = U Λ Uᵀ, shrinkage s = Λ
    / (Λ + noise), fits F = U s Uᵀ y and leverage h_i = Σ_j U²_ij s_j,

        left out: f_i = (F_i - h_i y_i) / (1 - h_i).

    Where inputs are of several kinds, the cosine is a mean over kinds, with the weights of the
    highest leave-one-out likelihood: all alike, one kind above the others, or one alone.

    Beyond `most` items the kernel is that of as many landmarks (Nyström), so the cost stays
    bounded. Noise is large against rounding errors, so a fit computes and decomposes kernels in 32
    bits.

    When it fails: Where distances between vectors say little about the label, as with raw counts of
    many words. Beyond `most` items it works with landmarks and loses detail.

    Parameters
    ----------
    width
        How fast similarity falls with the cosine; `None` chooses.
    noise
        Ridge penalty; `None` chooses.
    least
        Smallest probability of a class.
    most
        Maximum number of landmarks.
    """

    width: Positive | None = None
    noise: Positive | None = None
    least: Annotated[float, Interval(gt=0, le=0.5)] = 0.02
    most: Count = 1500

    def _fit(self, features: Features, context: FitInputs) -> KernelModel:
        vectors, label = features.vectors.astype(np.float64), context.label
        kinds = features.widths or (vectors.shape[1],)
        center = np.concatenate([_unit(part).mean(axis=0) for part in _split(vectors, kinds)])
        units = _by_kind(vectors, center, kinds).astype(np.float32)
        soft = np.eye(context.n_classes) if context.soft_labels is None else context.soft_labels
        labels = soft[label]  # (item, class)
        landmark_items = np.sort(
            np.random.default_rng(context.seed).permutation(len(units))[: self.most]
        )
        mean = labels.mean(axis=0)
        target = (labels - mean).astype(np.float32)
        attempts: list[tuple[Any, ...]] = []

        def attempt(width: float, kind_weight: tuple[float, ...]) -> None:
            scale = np.sqrt(np.repeat(kind_weight, kinds))
            x = units * scale.astype(np.float32)
            landmarks = x[landmark_items]
            spectrum, directions, root = _decompose(x, landmarks, width)
            projected, squares = (
                directions.T @ target,
                directions**2,
            )  # (direction, class), (item, direction)
            for noise in _NOISES if self.noise is None else (self.noise,):
                shrink = spectrum / (spectrum + noise)
                fitted = directions @ (shrink[:, None] * projected)
                leverage = np.minimum(squares @ shrink, 1 - 1e-6)[:, None]
                held_out = _clip((fitted - leverage * target) / (1 - leverage) + mean, self.least)
                score = (labels * np.log(held_out)).sum() / len(label)
                weight = root @ ((np.sqrt(spectrum) / (spectrum + noise))[:, None] * projected)
                model = KernelModel(
                    landmarks=landmarks,
                    weight=weight,
                    mean=mean,
                    center=center,
                    scale=scale,
                    widths=kinds,
                    width=width,
                    least=self.least,
                    held_out_proba=held_out,
                )
                attempts.append((score, len(attempts), kind_weight, model))

        widths = _WIDTHS if self.width is None else (self.width,)
        middle = widths[len(widths) // 2]
        for kind_weight in _kind_weights(len(kinds)):
            attempt(middle, kind_weight)
        best = max(attempts, key=lambda entry: entry[:2])[2]
        for width in widths:
            if width != middle:
                attempt(width, best)
        model: KernelModel = max(attempts, key=lambda entry: entry[:2])[-1]
        if context.soft_labels is not None:
            model.calibrate(label)
        return model

    def restore(self, state: State) -> KernelModel:
        arrays: dict[str, Any] = dict(state.arrays)
        width = len(arrays["center"])
        arrays.setdefault("scale", np.ones(width))
        notes = {"widths": [width], **state.notes}
        return KernelModel(**arrays, **notes | {"widths": tuple(notes["widths"])})


def _kind_weights(n: int) -> list[tuple[float, ...]]:
    """Return weights of n kinds to try: (kind), each summing to one."""
    if n == 1:
        return [(1.0,)]
    leading = [
        tuple(large if kind == leader else (1 - large) / (n - 1) for kind in range(n))
        for leader in range(n)
        for large in (1.0, _LEADING)
    ]
    return [*leading, (1 / n,) * n]


def _split(vectors: Floats, kinds: tuple[int, ...]) -> list[Floats]:
    """Return the vectors of every kind."""
    return np.split(vectors, np.cumsum(kinds)[:-1], axis=1)


def _by_kind(vectors: Floats, center: Floats, kinds: tuple[int, ...]) -> Floats:
    """Return the unit vectors of every kind less their common mean, side by side."""
    parts = zip(_split(vectors, kinds), _split(center[None], kinds), strict=True)
    return np.concatenate([center_and_scale(part, mean[0]) for part, mean in parts], axis=1)


def center_and_scale(vectors: Floats, center: Floats) -> Floats:
    """Return unit vectors less their common mean, scaled to length one again."""
    return _unit(_unit(vectors) - center)


def _unit(vectors: Floats) -> Floats:
    """Return vectors of length one; zero stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def _kernel_rows(left: Array, right: Array, width: float) -> Iterator[Array]:
    """Yield the kernel, some rows at a time: (some of left, right)."""
    step = max(_CELLS // max(len(right), 1), 1)
    for start in range(0, len(left), step):
        rows = left[start : start + step] @ right.T
        rows -= 1
        rows *= np.float32(width)
        yield np.exp(rows, out=rows)


def _decompose(x: Array, landmarks: Array, width: float) -> tuple[Array, Array, Array]:
    """Return a decomposition of the kernel of the items.

    That is its spectrum (direction), the eigenvectors (item, direction), and the map from the
    kernel with the landmarks to the eigenvectors: (landmark, direction).
    """
    spectrum, vectors = _eigen(np.concatenate([*_kernel_rows(landmarks, landmarks, width)]))
    root = vectors / np.sqrt(spectrum)
    if len(landmarks) == len(x):
        return spectrum, vectors, root
    projected = np.concatenate([k @ root for k in _kernel_rows(x, landmarks, width)])
    spectrum, right = _eigen(projected.T @ projected)
    return spectrum, projected @ right / np.sqrt(spectrum), root @ right


def _eigen(kernel: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors, without those that are only rounding errors."""
    values, vectors = eigh(kernel, driver="evd", overwrite_a=True, check_finite=False)
    large = values > _TINY * values[-1]
    return values[large], vectors[:, large]


def _clip(p: Floats, least: float) -> Floats:
    p = np.clip(p, least, 1 - least)
    return p / p.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class Ldl(HeadMethod):
    """Networks that learn the label shares of the annotators: an oracle.

    Label distribution learning: an oracle that learns from all annotations.

        loss = -Σ_k q_ik log p_k(x_i),   q_i the label shares of the annotators of item i

    It shows how well distributions can be predicted from these inputs by a model that learns from
    them: an upper reference for methods that see one label per item.

    When it fails: It needs all annotations, so it is a reference and not a method for one label per
    item. With two or three votes the shares it learns are noise.

        X. Geng. Label distribution learning. IEEE TKDE 28(7), 2016.

    Parameters
    ----------
    n
        Number of networks, each on its own bootstrap sample of the items.
    """

    oracle: ClassVar[bool] = True

    n: Count = 10

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        weight = bootstrap_weights(self.n, len(features), context.seed)
        if self.n == 1:
            weight = shared_split(1, len(features), 0.1, context.seed)
        network = self._heads(features, context, self.n)
        return self._train(network, features, context, weight, annotations=context.annotations)


class Constant(Recovery):
    """One distribution for all items."""

    def __init__(self, marginal: Floats, n_items: int = 0) -> None:
        self.marginal = marginal  # (class)
        self.held_out_proba = np.broadcast_to(marginal, (n_items, len(marginal)))

    def members(self, features: Features) -> Floats:
        return np.broadcast_to(self.marginal, (1, len(features), len(self.marginal)))

    def state(self) -> State:
        return State({}, {"marginal": self.marginal})


@dataclass(frozen=True, kw_only=True)
class Marginal(RecoveryMethod):
    """The label marginal, the same for every item.

    The label marginal, the same for every item: the baseline that every method has to beat.

        p(x) = shares of the labels of all items

    When it fails: It never distinguishes items; whatever does worse is misleading.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    def _fit(self, features: Features, context: FitInputs) -> Constant:
        count = np.bincount(context.label, minlength=context.n_classes)
        return Constant(count / count.sum(), len(features))

    def restore(self, state: State) -> Constant:
        return Constant(state.arrays["marginal"])


class TwoTaskHeads(Heads):
    """Heads that also predict disagreement, from 0 to 1."""

    target: Tensor  # (item): disagreement of the annotators

    def __init__(
        self, n: int, width: int, n_classes: int, *, weight: float, **settings: Any
    ) -> None:
        super().__init__(n, width, n_classes, weight=weight, **settings)
        size = self.settings["hidden"] or width
        self.second = initial_weights(n, size, 1, seed=self.settings["seed"])
        self.second_bias = nn.Parameter(torch.zeros(n, 1, 1))

    def item_log_likelihood(self, batch: Batch) -> Tensor:
        if not self.training:
            return super().item_log_likelihood(batch)
        hidden = self.hidden(batch.x)
        log = torch.baddbmm(self.bias, hidden, self.last).log_softmax(dim=-1)
        error = (self.disagreement(hidden) - self.target[batch.item]) ** 2
        return self.mean_over_labels(log, batch) - self.settings["weight"] * error

    def disagreement(self, hidden: Tensor) -> Tensor:
        """Return the predicted disagreement, from 0 to 1: (member, item)."""
        return torch.baddbmm(self.second_bias, hidden, self.second)[..., 0].sigmoid()


@dataclass(frozen=True, kw_only=True)
class MultiTask(HeadMethod):
    """A network that learns the label and how much annotators disagree: an oracle.

    Two tasks: the label, and how much annotators disagree. An oracle: it sees the latter.

        loss = -log p_label(x_i) + weight (u(x_i) - H(q_i))²,   H: normalized entropy of shares

    p and u come from the same hidden layer. The recovered distribution is p.

    When it fails: It needs all annotations. The entropy of few votes is biased downwards, and so is
    what it learns of disagreement.

        J. Han, Z. Zhang, M. Schmitt, M. Pantic, B. Schuller. From hard to soft: towards more
        human-like emotion recognition by modelling the perception uncertainty. ACM Multimedia 2017.

    Parameters
    ----------
    weight
        Weight of the second task.
    held_out
        Fraction of the items in the validation split.
    """

    oracle: ClassVar[bool] = True
    network: ClassVar[type[Members]] = TwoTaskHeads

    weight: NonNegative = 1.0
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        assert context.annotations is not None
        target = entropy(shares_of(context.annotations.votes())) / np.log2(
            max(context.n_classes, 2)
        )
        network = self._heads(features, context, 1, weight=self.weight)
        network.register_buffer(
            "target", torch.as_tensor(target).to(network.mean), persistent=False
        )
        weight = shared_split(1, len(features), self.held_out, context.seed)
        return self._train(network, features, context, weight)
