"""What a recovery method fulfils, and how far its distributions are from those of annotators.

    features, label ─method.fit─▶ Recovery ─predict_proba(features)─▶ (item, class)

A method is a set of settings in the registry. It sees features of the inputs (a vector per item,
token features, or the inputs themselves) and one class code per item. An oracle also sees the
annotations: it shows what is possible, not what can be recovered. A fitted `Recovery` has one or
more members. `members` are the probabilities of each, `votes` the share of members for every class,
`predict_proba` the recovered distribution: the mean of the members, flattened by the number of
votes behind the labels where that is known.

Measures compare a recovered distribution p with the label shares q of the annotators. Arrays are
(item, class), rows sum to one; every measure gives one number per item.

    manhattan           Σ_k |p_k - q_k|: 0 to 2, twice the total variation
    jensen_shannon      H((p + q) / 2) - (H(p) + H(q)) / 2 in bits: 0 to 1
    kl                  Σ_k q_k log(q_k / p_k) in nats, with p of at least `LEAST`
    cross_entropy       -Σ_k q_k log p_k in nats, likewise
    squared             Σ_k (p_k - q_k)²
    unbiased_squared    squared - Σ_k q_k (1 - q_k) / (a - 1): with a votes per item, an unbiased
                        estimate of the squared distance to the true distribution; may be negative
    wasserstein         for ordered classes, unit steps: Σ over cuts |cumulative p - cumulative q|
    expected_distance   Σ_kl p_k q_l d(k, l), d the distances between classes
    energy_distance     expected_distance less half of that of p to itself and of q to itself
    entropy             of one distribution, in bits

Few votes are noisy: with a true distribution of (.5, .5) and five votes, the true distribution
itself has an expected Manhattan distance of .375 to the shares. So compare every score with that of
people asked again (`resample_votes`), and prefer unbiased squared distances.

A majority is more certain than its voters. If a person says "yes" with probability q, the majority
of a people does so with the probability that a binomial is above a/2, a steeper function of q. Its
slope at q = 1/2 is

    slope(a) = a C(a - 1, (a - 1) / 2) / 2^(a - 1),  a odd; an even a is as the odd one below it,

for ties drawn at random: 1.5 for three people, 1.88 for five, 2.19 for seven. If items with the
same features x were exactly alike, logits of P(majority | x) divided by the slope would be about
those of q. They are not: most of the uncertainty about the majority comes from what the features
do not show, and that part needs no flattening. Hence a power of the slope, 3/8 in `auto`: a rule
of thumb, chosen on six sets of texts that are in none of our tables.

Some errors are smaller than others. On an ordinal scale 4 is close to 5 and far from 1. Emotions
lie on a circle (the circumplex): annotators who disagree choose adjacent ones from the same words,
opposite ones from other words.

    linear    |k - l|, classes in order
    circle    steps on the shorter way around, classes in the order of the circle

Distances are scaled so that the largest is 1. Methods learn from soft labels,

    t_k ∝ exp(-3 d(k, label)),

in place of one-hot labels, so a label is also evidence for its neighbours. Soft labels are too flat
by themselves: the temperature is set afterwards, by held-out labels. The predicted class is the one
with the least expected distance.

    R. Díaz, A. Marathe. Soft labels for ordinal regression. CVPR 2019.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats, Integers
from ...base.engine import one_blas_thread
from ...base.probability import fit_temperature, temper
from ...base.storage import State
from ...errors import DataError, OptionError
from ...method import Progress
from ...params import NonNegative, Settings

if TYPE_CHECKING:
    from ..nn.features import Features


__all__ = ["FitInputs", "Mixture", "Recovery", "RecoveryMethod", "State"]

DISTANCES = ("linear", "circle")
LEAST = 1e-6  # lower bound of probabilities in logarithms: votes contain zeros
_SAME = 1e-9  # probabilities that differ by less are a tie
_RATE = 3.0  # chosen on two sets (gwsd, politeness_wikipedia) that the table of csc does not use


def manhattan(p: Floats, q: Floats) -> Floats:
    """Return the sum of absolute differences.

    >>> manhattan(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]))
    array([1.])
    """
    return np.abs(p - q).sum(axis=-1)


def entropy(p: Floats) -> Floats:
    """Return the entropy in bits."""
    safe = np.where(p > 0, p, 1.0)
    return -(safe * np.log2(safe)).sum(axis=-1) + 0.0


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    """Return the Jensen-Shannon divergence in bits; its root is a metric.

    >>> jensen_shannon(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    array([1.])
    """
    return np.maximum(entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2, 0.0)


def kl(q: Floats, p: Floats, least: float = LEAST) -> Floats:
    """Return the Kullback-Leibler divergence of q from p in nats."""
    safe = np.where(q > 0, q, 1.0)
    return (q * (np.log(safe) - np.log(np.maximum(p, least)))).sum(axis=-1)


def cross_entropy(q: Floats, p: Floats, least: float = LEAST) -> Floats:
    """Return the cross-entropy of p under q in nats."""
    return -(q * np.log(np.maximum(p, least))).sum(axis=-1)


def squared(p: Floats, q: Floats) -> Floats:
    """Return the squared distance."""
    return ((p - q) ** 2).sum(axis=-1)


def unbiased_squared(p: Floats, votes: Floats) -> Floats:
    """Return the squared distance to the distribution behind the votes, NaN below two votes.

    >>> unbiased_squared(np.array([[0.5, 0.5]]), np.array([[3, 1]]))  # 1/8 - (3/8) / 3
    array([0.])
    """
    count = votes.sum(axis=-1)
    q = shares_of(votes)
    noise = np.full(len(count), np.nan)
    np.divide((q * (1 - q)).sum(axis=-1), count - 1, out=noise, where=count > 1)
    return squared(p, q) - noise


def wasserstein(p: Floats, q: Floats) -> Floats:
    """Return the Wasserstein distance of ordered classes, one step apart."""
    return np.abs(np.cumsum(p - q, axis=-1)[..., :-1]).sum(axis=-1)


def expected_distance(p: Floats, q: Floats, distance: Floats) -> Floats:
    """Return the expected distance of a class drawn from p to one drawn from q.

    It is least for a p that is certain of one class.

    >>> steps = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> expected_distance(np.array([[1.0, 0, 0]]), np.array([[0, 0.5, 0.5]]), steps)
    array([1.5])
    """
    return np.einsum("...k,kl,...l->...", p, distance, q)


def energy_distance(p: Floats, q: Floats, distance: Floats) -> Floats:
    """Return the energy distance, 0 where p = q: a proper score for linear and circle distances."""
    within = expected_distance(p, p, distance) + expected_distance(q, q, distance)
    return expected_distance(p, q, distance) - within / 2


def shares_of(votes: ArrayLike) -> Floats:
    """Return the shares of votes: (item, class)."""
    votes = np.asarray(votes, dtype=np.float64)
    count = votes.sum(axis=-1, keepdims=True)
    if (count == 0).any():
        item = int(np.flatnonzero(count[:, 0] == 0)[0])
        raise DataError(f"item {item} has no votes; leave it out")
    return votes / count


def most_probable(p: Floats) -> Floats:
    """Return the most probable class as a distribution; m tied classes have 1/m each."""
    tied = p >= p.max(axis=-1, keepdims=True) - _SAME
    return tied / tied.sum(axis=-1, keepdims=True)


def perspectivist_error(chosen: Floats, q: Floats, *, distance: Floats | None = None) -> Floats:
    """Return the error of one label against the labels of all annotators, averaged over these.

    Parameters
    ----------
    chosen
        The label as a distribution: (item, class); `most_probable(p)`, for instance.
    q
        Label shares of the annotators: (item, class).
    distance
        Distances between classes: (class, class). By default any other label counts 1.
    """
    if distance is None:
        return 1 - (chosen * q).sum(axis=-1)
    return expected_distance(chosen, q, distance)


class Reliability(NamedTuple):
    """Predicted probabilities against observed label shares, in bins of the prediction."""

    predicted: Floats  # (bin): mean
    observed: Floats  # (bin): mean label share
    size: Integers  # (bin): number of pairs of item and class

    @property
    def error(self) -> float:
        """The mean absolute difference, weighted by size."""
        occupied = self.size > 0
        gap = np.abs(self.predicted - self.observed)[occupied]
        return float(gap @ self.size[occupied] / max(self.size.sum(), 1))


def reliability(p: Floats, q: Floats, bins: int = 10) -> Reliability:
    """Return mean label shares in equal-width bins of the prediction."""
    bin_ = bins_of(p, bins).reshape(-1)
    count = np.bincount(bin_, minlength=bins)
    divisor = np.maximum(count, 1)
    empty = np.where(count > 0, 0.0, np.nan)
    predicted = np.bincount(bin_, p.reshape(-1), bins) / divisor + empty
    observed = np.bincount(bin_, q.reshape(-1), bins) / divisor + empty
    return Reliability(predicted, observed, count)


def bins_of(p: Floats, bins: int) -> Integers:
    """Return the bin of every probability; bins include their upper end."""
    return np.clip(np.ceil(p * bins - 1e-9).astype(np.int64), 1, bins) - 1


def resample_votes(votes: Floats, random: np.random.Generator) -> Floats:
    """Return as many votes again, drawn from the shares: a parametric bootstrap."""
    votes = np.asarray(votes)
    return random.multinomial(votes.sum(axis=-1).astype(np.int64), shares_of(votes)).astype(float)


def vote_slope(count: ArrayLike) -> float:
    """Return how much steeper a majority is than one voter, averaged over items.

    >>> [round(vote_slope(a), 3) for a in (1, 3, 5, 6, 7)]
    [1.0, 1.5, 1.875, 1.875, 2.188]
    """
    votes = np.floor(np.atleast_1d(np.asarray(count, dtype=np.float64)))
    if not (votes >= 1).all():
        raise OptionError(f"vote_count = {votes.min():g}, but every label has at least one vote")
    odd = votes - (votes % 2 == 0)
    half = (odd - 1) / 2
    log = np.log(odd) + gammaln(odd) - 2 * gammaln(half + 1) - (odd - 1) * np.log(2)
    return float(np.exp(log).mean())


def class_distances(given: str | ArrayLike, n_classes: int) -> Floats:
    """Return the distances between classes, the largest 1: (class, class).

    Parameters
    ----------
    given
        `linear`, `circle`, or the distances themselves: (class, class).
    n_classes
        Number of classes.

    Examples
    --------
    >>> class_distances("linear", 3).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 0.5], [1.0, 0.5, 0.0]]
    >>> class_distances("circle", 4)[0].tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    if isinstance(given, str):
        if given not in DISTANCES:
            raise OptionError(f"no distance {given!r}; there are {', '.join(DISTANCES)}")
        steps = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes)).astype(np.float64)
        distance = steps if given == "linear" else np.minimum(steps, n_classes - steps)
    else:
        distance = np.asarray(given, dtype=np.float64)
    if distance.shape != (n_classes, n_classes):
        raise OptionError(f"distances of the shape {distance.shape}, but {n_classes} classes")
    if not (np.isfinite(distance).all() and (distance >= 0).all()):
        raise OptionError("a distance between classes is negative, missing or infinite")
    if np.diag(distance).any() or not np.allclose(distance, distance.T):
        raise OptionError("distances between classes are 0 on the diagonal and symmetric")
    return distance / (distance.max(initial=0.0) or 1.0)


def distances_from_table(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> Floats:
    """Return the distances of a table with a row and a column per class: (class, class).

    Parameters
    ----------
    rows
        The header, then one row per class that begins with its name.
    names
        All classes, in order.

    Examples
    --------
    >>> table = [["class", "a", "b"], ["a", 0, 2], ["b", 2, 0]]
    >>> distances_from_table(table, ["b", "a"]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    columns = [str(name) for name in rows[0][1:]]
    by_name = {str(row[0]): dict(zip(columns, row[1:], strict=True)) for row in rows[1:]}
    try:
        values = [[float(by_name[first][second]) for second in names] for first in names]
    except KeyError as problem:
        raise OptionError(
            f"no distance of class {problem.args[0]!r}; the table has a row and a column per class"
        ) from None
    except (TypeError, ValueError):
        raise OptionError("a distance between classes is not a number") from None
    return class_distances(values, len(names))


def soft_labels(distance: Floats) -> Floats:
    """Return what every label teaches: (label, class), rows sum to one.

    >>> soft_labels(class_distances("linear", 3)).round(2)[0].tolist()
    [0.79, 0.18, 0.04]
    """
    weight = np.exp(-_RATE * distance)
    return weight / weight.sum(axis=1, keepdims=True)


class FitInputs(NamedTuple):
    """What a method is fitted to, in addition to the features."""

    label: Integers  # (item)
    n_classes: int
    annotations: Annotations | None  # for oracles; items in the order of the features
    seed: int
    progress: Progress | None = None
    folder: Path | None = None  # for checkpoints of long trainings
    soft_labels: Floats | None = None  # (label, class): what a label teaches; one-hot by default


class Recovery(ABC):
    """A fitted recovery method."""

    temperature: float = 1.0
    distance: Floats | None = None  # (class, class)
    held_out_proba: Floats | None = None  # (item, class): of the items of `fit`, NaN where unknown

    @abstractmethod
    def members(self, features: Features) -> Floats:
        """Return the probabilities of every member: (member, item, class)."""

    @abstractmethod
    def state(self) -> State:
        """Return what has to be saved."""

    def mean_proba(self, features: Features) -> Floats:
        """Return the probabilities of all members together, before the temperature."""
        return self.members(features).mean(axis=0)

    def predict_proba(self, features: Features) -> Floats:
        """Return the recovered distribution: (item, class)."""
        p = self.mean_proba(features)
        return temper(p, np.full(len(p), self.temperature))

    def votes(self, features: Features) -> Floats:
        """Return the share of members for every class: (item, class)."""
        return most_probable(self.members(features)).mean(axis=0)

    def predict(self, features: Features) -> Integers:
        """Return the most probable class, or that of least expected distance: (item)."""
        p = self.predict_proba(features)
        return p.argmax(axis=1) if self.distance is None else (p @ self.distance).argmin(axis=1)

    def calibrate(self, label: Array, item: Array | None = None) -> None:
        """Set the temperature by labels of held-out items, if there are any.

        Parameters
        ----------
        label
            Class codes: (item), or (annotation).
        item
            The item of every annotation, where an item may have several.
        """
        assert self.held_out_proba is not None
        item = np.arange(len(label)) if item is None else item
        predicted = ~np.isnan(self.held_out_proba[:, 0])  # (item)
        if predicted.any():
            rows = predicted[item]
            p = self.held_out_proba[item[rows]]
            self.temperature = fit_temperature(p, label[rows].astype(np.int64))
            self.held_out_proba = self.held_out_proba.copy()
            self.held_out_proba[predicted] = temper(
                self.held_out_proba[predicted], np.full(predicted.sum(), self.temperature)
            )


class Mixture(Recovery):
    """A weighted mixture of recoveries; the members of all are its members.

    Parts in `without_members`, such as a constant, only enter the mean.
    """

    def __init__(
        self, parts: Mapping[str, Recovery], weight: Floats, without_members: tuple[str, ...] = ()
    ) -> None:
        self.parts, self.weight, self.without_members = dict(parts), weight, without_members

    def members(self, features: Features) -> Floats:
        return np.concatenate([
            part.members(features)
            for name, part in self.parts.items()
            if name not in self.without_members
        ])  # fmt: skip

    def mean_proba(self, features: Features) -> Floats:
        proba = np.stack([part.predict_proba(features) for part in self.parts.values()])
        return np.einsum("p,pik->ik", self.weight, proba)

    @classmethod
    def restored(
        cls,
        state: State,
        restore: Callable[[str, State], Recovery],
        without_members: tuple[str, ...] = (),
    ) -> Self:
        """Return a mixture from its state; `restore` takes the name and the state of a part."""
        weight = state.notes["weight"]
        parts = {name: restore(name, state.part(name)) for name in weight}
        for name, temperature in state.notes.get("temperature", {}).items():
            parts[name].temperature = temperature
        return cls(parts, np.array(list(weight.values())), without_members)

    def state(self) -> State:
        notes = {
            "weight": dict(zip(self.parts, self.weight.tolist(), strict=True)),
            "temperature": {name: part.temperature for name, part in self.parts.items()},
        }
        return State.join(notes, **{name: part.state() for name, part in self.parts.items()})


@dataclass(frozen=True, kw_only=True)
class RecoveryMethod(Settings, ABC):
    """A method that recovers label distributions.

    Parameters
    ----------
    flatten
        Power of the vote-count slope by which logits are divided where `vote_count` is known;
        0 leaves them unchanged.
    """

    needs: ClassVar[tuple[str, ...]] = ("vectors",)  # features that it cannot do without
    oracle: ClassVar[bool] = False  # whether it sees the annotations

    flatten: NonNegative = 0.0

    @property
    def uses(self) -> tuple[str, ...]:
        """Features that it uses where there are any."""
        return ()

    def fit(
        self,
        features: Features,
        label: ArrayLike,
        *,
        n_classes: int | None = None,
        vote_count: ArrayLike | None = None,
        annotations: Annotations | None = None,
        distance: str | ArrayLike | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        folder: Path | None = None,
    ) -> Recovery:
        """Fit to inputs with one label each.

        Parameters
        ----------
        features
            Of the inputs.
        label
            Class codes: (item).
        n_classes
            Number of classes; by default as many as occur.
        vote_count
            Number of votes behind a label, for all items or for each.
        annotations
            For oracles.
        distance
            Distances between classes: `linear`, `circle`, or a matrix (class, class).
        seed
            Random seed.
        progress
            Called with steps done, steps in total and a message.
        folder
            For checkpoints, from which an interrupted training resumes.
        """
        codes = np.asarray(label, dtype=np.int64)
        if codes.shape != (len(features),):
            raise DataError(f"{len(features)} inputs, but labels of the shape {codes.shape}")
        if not len(codes):
            raise DataError("no items to learn from")
        size = int(codes.max()) + 1 if n_classes is None else n_classes
        if codes.min() < 0 or codes.max() >= size:
            raise DataError(f"a label has the code {codes.max()}, but there are {size} classes")
        for part in self.needs:
            if part not in features.parts:
                raise OptionError(f"this method needs {part} of the inputs")
        if self.oracle and annotations is None:
            raise OptionError("an oracle learns from annotations; give annotations=…")
        if annotations is not None:
            shape = annotations.n_items, annotations.n_classes
            if shape != (len(codes), size):
                raise DataError(
                    f"annotations on {shape[0]} items in {shape[1]} classes, "
                    f"but {len(codes)} items in {size} classes"
                )
        distances = None if distance is None else class_distances(distance, size)
        context = FitInputs(
            label=codes,
            n_classes=size,
            annotations=annotations,
            seed=seed,
            progress=progress,
            folder=folder,
            soft_labels=None if distances is None else soft_labels(distances),
        )
        with one_blas_thread():
            recovery = self._fit(features, context)
        recovery.distance = distances
        if vote_count is not None and self.flatten:
            recovery.temperature *= vote_slope(vote_count) ** self.flatten
        return recovery

    @abstractmethod
    def _fit(self, features: Features, context: FitInputs) -> Recovery:
        """Return the fitted recovery."""

    @abstractmethod
    def restore(self, state: State) -> Recovery:
        """Return a recovery from its state."""
