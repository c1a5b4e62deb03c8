"""Linear heads on components of the items, shrunk towards a head that all annotators share.

How far they are shrunk, the priors of `shrunk`, is chosen by cross-validation over items. Items are
split into folds. For every candidate, heads are fitted without a fold and predict the annotations
on it; the candidate with the lowest log-loss wins. Settings are searched one at a time:
kernel and shared prior first, then bias, slope, metadata and heads of annotators. "Off" is a
candidate for all but the first, and a value that wins at the end of its grid is doubled while that
helps. Held-out predictions of the best candidates are kept, so that a pool can weight them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from annotated_types import Ge
from scipy.optimize import minimize
from scipy.special import log_softmax

from ...answers.annotations import Annotations, Floats, Integers
from ...base.arrays import Array
from ...base.progress import out_of_time, share_of_time
from ...errors import DataError
from ...method import Progress
from ...params import Count, NonNegative, Positive
from ..nn.features import Features
from .base import FitOptions, State, Tendency, TendencyMethod
from .pairs import KERNELS, Components, Kernel, Pairs, fit_components
from .shrunk import Priors, ShrunkLinear, fit_shrunk

_TOL, _STEPS = 1e-5, 60  # of fits that are compared: held-out losses show no more
_MOST = 32.0  # largest prior standard deviation
_SEARCH = 0.6  # of the time, for choosing priors
_START = Priors(0.5, bias=1.0, slope=0.3)


class Candidate(NamedTuple):
    """A kernel and priors."""

    kernel: Kernel
    priors: Priors

    def with_prior(self, name: str, value: float) -> Candidate:
        """Return the candidate with another value of a prior."""
        changed: dict[str, Any] = {name: value}
        return Candidate(self.kernel, self.priors._replace(**changed))


def random_folds(annotations: Annotations, folds: int, seed: int) -> Integers:
    """Return the fold of every item, at random; at most as many as there are labelled items."""
    random = np.random.default_rng([seed, 0xF01D])
    labelled = annotations.labels_per_item > 0
    folds = max(min(folds, int(np.count_nonzero(labelled))), 2)
    rank = np.argsort(np.argsort(random.random(annotations.n_items) - 2.0 * labelled))
    return rank % folds


class _Fold(NamedTuple):
    pairs: Pairs  # of the other folds
    held: Any  # (annotation): whether it is held out
    x: Array  # (held-out item, component)
    item: Integers  # (held-out annotation): row of its item in x


@dataclass(eq=False)
class CrossValidation:
    """Held-out predictions of candidates.

    Components, data and the last fit of every fold are cached: the next fit starts there.
    """

    features: Features
    annotations: Annotations
    metadata: Floats | None
    ordinal: bool
    n_components: int
    folds: int
    seed: int
    _folds: dict[Kernel, list[_Fold]] = field(default_factory=dict)
    _last: dict[Any, dict[str, Floats]] = field(default_factory=dict)
    _losses: dict[Candidate, float] = field(default_factory=dict)
    _predictions: dict[Candidate, Floats] = field(default_factory=dict)

    def predict(self, candidate: Candidate) -> Floats:
        """Return held-out log-probabilities: (annotation, class)."""
        if candidate in self._predictions:
            return self._predictions[candidate]
        annotations = self.annotations
        out = np.empty((len(annotations), annotations.n_classes))
        for index, fold in enumerate(self._split(candidate.kernel)):
            key = (candidate.kernel, index)
            start = self._last.get(key)
            fit = fit_shrunk(fold.pairs, candidate.priors, start=start, tol=_TOL, max_iter=_STEPS)
            self._last[key] = fit.parts
            logits = fit.heads.logits(fold.x, fold.item, annotations.annotator[fold.held])
            out[fold.held] = log_softmax(logits, axis=1)
        return out

    def loss(self, candidate: Candidate) -> float:
        """Return the mean held-out log-loss."""
        if candidate not in self._losses:
            log = self._predictions[candidate] = self.predict(candidate)
            log_likelihood = log[np.arange(len(self.annotations)), self.annotations.label]
            # An exact sum: no order of annotations matters.
            self._losses[candidate] = -math.fsum(log_likelihood) / max(len(log_likelihood), 1)
        return self._losses[candidate]

    def best(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate with the lowest log-loss; predictions of the others are dropped.

        Out of time, those that have not been tried are left out.
        """
        scored = {candidate for candidate in candidates if candidate in self._losses}
        for candidate in candidates:
            if not scored or (candidate not in scored and not out_of_time()):
                self.loss(candidate)
                scored.add(candidate)
        best = min((candidate for candidate in candidates if candidate in scored), key=self.loss)
        for other in set(candidates) - {best}:
            self._predictions.pop(other, None)
        return best

    def _split(self, kernel: Kernel) -> list[_Fold]:
        if kernel not in self._folds:
            fold = random_folds(self.annotations, self.folds, self.seed)
            self._folds[kernel] = [self._fold(fold == number, kernel) for number in np.unique(fold)]
        return self._folds[kernel]

    def _fold(self, held_items: Any, kernel: Kernel) -> _Fold:
        learned, held_out = np.flatnonzero(~held_items), np.flatnonzero(held_items)
        vectors = self.features.vectors
        components, x = fit_components(vectors[learned], self.n_components, kernel, self.seed)
        pairs = Pairs.of(
            x, self.annotations.take(learned), metadata=self.metadata, ordinal=self.ordinal
        )
        held = held_items[self.annotations.item]
        item = np.searchsorted(held_out, self.annotations.item[held])
        return _Fold(pairs, held, components.of(Features(vectors[held_out])), item)


def search(
    validation: CrossValidation,
    start: Candidate,
    grid: dict[str, Sequence[Any]],
    progress: Progress,
) -> Candidate:
    """Return the best candidate, searching the grid one setting at a time.

    Parameters
    ----------
    validation
        Scores candidates.
    start
        Where to start.
    grid
        Values of every setting, in order; `kernel` or a prior.
    progress
        Called after every setting.
    """
    best = start
    for n_done, (name, values) in enumerate(grid.items()):
        if n_done and out_of_time():
            break
        if name == "kernel":
            best = validation.best([best._replace(kernel=kernel) for kernel in values])
        else:
            best = validation.best([best.with_prior(name, value) for value in values])
            while getattr(best.priors, name) >= max(values):  # at the end of the grid
                larger = best.with_prior(name, 2 * getattr(best.priors, name))
                if getattr(larger.priors, name) > _MOST or validation.best([best, larger]) == best:
                    break
                best = larger
        message = f"{name}, held-out log-loss {validation.loss(best):.4f}"
        progress(n_done + 1, len(grid), message)
    return best


class LinearTendency(Tendency):
    """Components of items, and heads on them."""

    def __init__(self, components: Components, heads: ShrunkLinear, priors: Priors) -> None:
        self.components, self.heads, self.priors = components, heads, priors
        self.n_annotators, self.n_classes = heads.bias.shape

    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        items, row = np.unique(np.asarray(item), return_inverse=True)
        x = self.components.of(features.take(items))
        return log_softmax(self.heads.logits(x, row, np.asarray(annotator)), axis=1)

    def state(self) -> State:
        components, heads = self.components.arrays(), vars(self.heads)
        notes = {"priors": list(self.priors)}
        return State.join(notes, components=State({}, components), heads=State({}, heads))

    def with_annotator(self, features: Features, label: Integers, options: FitOptions) -> Tendency:
        n_metadata, metadata = len(self.heads.metadata_bias), options.metadata
        if metadata is not None and len(metadata) != n_metadata:
            raise DataError(
                f"{len(metadata)} metadata features of an annotator, but the model has {n_metadata}"
            )
        encoded = np.zeros(n_metadata) if metadata is None else np.asarray(metadata, np.float64)
        x = self.components.of(features)
        heads = _with_annotator(self.heads, self.priors, x, label=label, metadata=encoded)
        return LinearTendency(self.components, heads, self.priors)


def _with_annotator(
    heads: ShrunkLinear, priors: Priors, x: Array, *, label: Integers, metadata: Floats
) -> ShrunkLinear:
    """Return the heads and those of one more annotator, at the posterior mode."""
    q, c = heads.basis.shape
    rank = heads.embedding.shape[1] - len(metadata)
    bias_0 = metadata @ heads.metadata_bias
    z = x @ heads.weight.T  # (item, direction)
    factors = heads.factors(x)  # (item, factor, direction)
    fixed = z + np.einsum("f,ifq->iq", metadata, factors[:, rank:])
    factors, offset = factors[:, :rank], heads.level + bias_0 + fixed @ heads.basis
    own_prior = priors.own if len(heads.own) else 0.0
    own_x = x[:, : heads.own.shape[2] if own_prior else 0]
    sizes = [c, 1, rank, q * own_x.shape[1]]
    units = np.repeat([priors.bias, priors.slope, 1.0, own_prior], sizes)
    target = np.eye(c)[np.asarray(label, dtype=np.int64)]

    def split(flat: Floats) -> list[Floats]:
        return np.split(flat * units, np.cumsum(sizes)[:-1])

    def objective(flat: Floats) -> tuple[float, Floats]:
        bias, slope, embedding, own = split(flat)
        out = slope * z + np.einsum("r,irq->iq", embedding, factors) + own_x @ own.reshape(q, -1).T
        log = log_softmax(offset + bias + out @ heads.basis, axis=1)
        residual = np.exp(log) - target
        back = residual @ heads.basis.T
        grad = np.concatenate(
            [
                residual.sum(axis=0),
                [(back * z).sum()],
                np.einsum("iq,irq->r", back, factors),
                (back.T @ own_x).ravel(),
            ]
        )
        loss = -float((target * log).sum()) + 0.5 * float(flat @ flat)
        return loss, grad * units + flat

    solution = minimize(objective, np.zeros(sum(sizes)), jac=True, method="L-BFGS-B").x
    bias, slope, embedding, own = split(solution)
    return heads.with_annotator(
        bias + bias_0,
        float(slope[0]),
        own.reshape(q, -1) if own_prior else np.zeros(heads.own.shape[1:]),
        np.concatenate([embedding, metadata]),
    )


@dataclass(frozen=True, kw_only=True)
class Linear(TendencyMethod):
    """Linear heads on components of the items, shrunk towards a shared head.

    Linear heads on components of the items, shrunk towards a head that all annotators share.

        logits of annotator k = (1 + slope[k]) z(x) + bias[k] + U[k] x,   z(x) = W x + level

    W is learned from all labels; bias, slope and U are those of annotator k, and how far they may
    deviate from zero is chosen by cross-validation, where "not at all" is always a candidate. So
    annotators with thousands of labels get heads of their own, and those with six a bias.
    Components are those of an RBF kernel where that predicts better, which makes z a kernel
    regression. Metadata give annotators a bias and a head as well, so that annotators without
    labels are predicted by similar ones.

    With `rank`, annotators are also points e[k] in a space of preferences: Σ_r e[k, r] F[r] x is
    added to the logits. The factors F are learned from all annotators, so a few labels suffice to
    place an annotator. If annotators differ in one trait, such as how easily a certain topic
    offends them, one factor captures it. `low-rank` has three factors and no head U[k].

    Shared head and bias are HuBi's "simple" model; the shrinkage and the choice of priors are ours.

    When it fails: Where what annotators respond to is not in the features, such as irony for a
    frozen encoder: all heads are then shrunk to zero, and only biases remain.

    Parameters
    ----------
    kernel
        Of the components: linear, rbf, cosine (rbf of vectors scaled to length one), or the one
        that predicts best (auto).
    components
        Maximal number of components.
    shared
        Prior standard deviation of the shared head; `None`: chosen, as for those below.
    bias
        The same for an annotator's bias; 0 for none.
    slope
        The same for an annotator's factor on the shared head.
    own
        The same for an annotator's own head.
    metadata
        The same for effects of metadata, if there are any.
    rank
        Number of dimensions of a space in which annotators are points.
    factor
        Prior standard deviation of the factors of that space.
    ordinal
        Whether classes are ordered: logits of neighbours differ by one number.
    folds
        Folds of the cross-validation.
    """

    kernel: Literal["auto", "linear", "rbf", "cosine"] = "auto"
    components: Count = 256
    shared: Positive | None = None
    bias: NonNegative | None = None
    slope: NonNegative | None = None
    own: NonNegative | None = None
    metadata: NonNegative | None = None
    rank: Annotated[int, Ge(0)] = 0
    factor: NonNegative | None = None
    ordinal: bool = False
    folds: Annotated[int, Ge(2)] = 3

    def _fit(
        self, features: Features, annotations: Annotations, context: FitOptions
    ) -> LinearTendency:
        validation = self.validation(features, annotations, context)
        return self.fit_candidate(features, annotations, self.choose(validation, context), context)

    def validation(
        self, features: Features, annotations: Annotations, context: FitOptions
    ) -> CrossValidation:
        """Return the cross-validation by which candidates are scored."""
        return CrossValidation(
            features=features,
            annotations=annotations,
            metadata=context.metadata,
            ordinal=self.ordinal,
            n_components=self.components,
            folds=self.folds,
            seed=context.seed,
        )

    def choose(self, validation: CrossValidation, context: FitOptions) -> Candidate:
        """Return the candidate that predicts best, chosen in most of the time that there is."""
        has_metadata = validation.metadata is not None
        kernels = [KERNELS[self.kernel]] if self.kernel != "auto" else list(KERNELS.values())
        start = Candidate(kernels[0], self.start(has_metadata))
        grid = {"kernel": kernels, **self.grid(has_metadata)}
        with share_of_time(_SEARCH):
            return search(validation, start, grid, context.progress)

    def start(self, has_metadata: bool) -> Priors:
        """Return the given priors, and starting values of the others."""
        names = ("shared", "bias", "slope", "own", "metadata", "rank", "factor")
        fixed = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return _START._replace(**fixed | ({} if has_metadata else {"metadata": 0.0}))

    def grid(self, has_metadata: bool) -> dict[str, Sequence[float]]:
        """Return the values to try of every prior that is not given."""
        grid: dict[str, Sequence[float]] = {
            "shared": (0.12, 0.25, 0.5, 1.0),
            "bias": (0.0, 0.3, 0.6, 1.0, 2.0),
            "slope": (0.0, 0.15, 0.3, 0.6),
            "metadata": (0.0, 0.1, 0.3, 1.0) if has_metadata else (),
            "own": (0.0, 0.1, 0.2, 0.4, 0.8),
            "factor": (0.0, 0.1, 0.2, 0.4) if self.rank else (),
        }
        return {
            name: values for name, values in grid.items() if values and getattr(self, name) is None
        }

    def fit_candidate(
        self,
        features: Features,
        annotations: Annotations,
        candidate: Candidate,
        context: FitOptions,
    ) -> LinearTendency:
        """Return the model of a candidate, fitted to all annotations."""
        kernel, priors = candidate
        components, x = fit_components(features.vectors, self.components, kernel, context.seed)
        pairs = Pairs.of(x, annotations, metadata=context.metadata, ordinal=self.ordinal)
        start = None
        if priors.rank:  # factors start from a fit without them
            start = fit_shrunk(pairs, priors._replace(rank=0)).parts
        heads = fit_shrunk(pairs, priors, start=start).heads
        return LinearTendency(components, heads, priors)

    def restore(self, state: State) -> LinearTendency:
        return LinearTendency(
            Components.from_arrays(state.part("components").arrays),
            ShrunkLinear(**state.part("heads").arrays),
            Priors(*state.notes["priors"]),
        )
