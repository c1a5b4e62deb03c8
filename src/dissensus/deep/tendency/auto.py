"""The default: linear models in several forms, and a query model where it pays, pooled.

The query model is `query`: QuMATL with sizes and settings for small data on a CPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge

from ...answers.annotations import Annotations, Floats, Integers
from ...base.names import NUMBER
from ...base.probability import pool, pool_weights
from ...base.progress import out_of_time, share_of_time
from ...params import Count, NonNegative, Positive, Probability
from ..nn.features import Features
from .base import FitOptions, State, Tendency, TendencyMethod
from .linear import Candidate, CrossValidation, Linear, random_folds
from .pairs import KERNELS
from .qumatl import Qumatl

_LEAST = 0.05  # weight below which a model is dropped
_TRIAL = 0.25  # of the time that is left: the final fits are three
_RANK = 3
_FEW = 64  # annotators whose queries can attend to each other
_ENOUGH = 100  # labels of the median annotator
_EPOCHS, _PATIENCE = 12, 3  # of queries, which peak after a few epochs


class AutoTendency(Tendency):
    """A weighted pool of models."""

    def __init__(self, members: Mapping[str, Tendency], weight: Any, remark: str = "") -> None:
        self.members, self.weight = dict(members), np.asarray(weight, dtype=np.float64)
        self.remark = remark  # why there is a query network, or none
        member = next(iter(members.values()))
        self.n_annotators, self.n_classes = member.n_annotators, member.n_classes

    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        logs = [model.log_probability(features, item, annotator) for model in self.members.values()]
        return pool(np.stack(logs), self.weight)

    def with_annotator(self, features: Features, label: Integers, options: FitOptions) -> Tendency:
        members = {
            name: model.with_annotator(features, label, options)
            for name, model in self.members.items()
        }
        return AutoTendency(members, self.weight, self.remark)

    def state(self) -> State:
        notes = {"members": list(self.members), "weight": self.weight.tolist()}
        notes["remark"] = self.remark
        return State.join(notes, **{name: model.state() for name, model in self.members.items()})


@dataclass(frozen=True, kw_only=True)
class Auto(TendencyMethod):
    """Linear models in several forms, and a query model where it pays, pooled.

    The default: linear models in several forms, and a query model where it pays, pooled.

        linear       a shared head, and each annotator's bias, slope and head, shrunk towards it
        factors      the same, with annotators as points in three dimensions
        kernel       the same with another kernel
        ordinal      the same with ordered classes
        queries      a query per annotator over words or patches, mean of three fits

    Priors and weights are chosen by the log-loss of annotations on held-out items. Models with less
    than a twentieth of the weight are dropped. A query model is trained only if there are token
    features, at most 64 annotators, and a median of a hundred labels per annotator: elsewhere it
    has never been ahead, and it costs a hundred times as much.

    When it fails: With a handful of labels per annotator it has little more to say than their label
    marginals, and it says so: weights go to the simplest member. It takes minutes where `linear`
    takes seconds.

    Parameters
    ----------
    queries
        Whether to include a query model: where it can pay (auto), always or never.
    fits
        Number of fits of the query model, whose probabilities are averaged.
    ordinal
        Whether classes are ordered; `None`: tried if there are at least four and all are numbers.
    components
        Maximal number of components of the items.
    folds
        Folds of the cross-validation.
    """

    uses_tokens: ClassVar[bool] = True

    queries: Literal["auto", "always", "never"] = "auto"
    fits: Count = 3
    ordinal: bool | None = None
    components: Count = 256
    folds: Annotated[int, Ge(2)] = 3

    def _fit(
        self, features: Features, annotations: Annotations, context: FitOptions
    ) -> AutoTendency:
        vectors = Features(features.vectors)
        linear = self._linear(self.ordinal or False)
        validation = linear.validation(vectors, annotations, context)
        best = linear.choose(validation, context)
        variants = {"linear": best}
        if not out_of_time():
            variants |= _variants(validation, best)
        predicted = {name: validation.predict(candidate) for name, candidate in variants.items()}
        methods = dict.fromkeys(variants, linear)
        if self.ordinal is None and _is_scale(annotations) and not out_of_time():
            methods["ordinal"] = self._linear(True)
            validation = methods["ordinal"].validation(vectors, annotations, context)
            variants["ordinal"] = validation.best(
                [best.with_prior("shared", shared) for shared in (0.25, 0.5, 1.0)]
            )
            predicted["ordinal"] = validation.predict(variants["ordinal"])
        held_out = np.stack(list(predicted.values()))  # (model, annotation, class)
        weight = pool_weights(held_out, annotations.label.astype(np.int64), _LEAST)
        heavy = [index for index in np.argsort(-weight) if weight[index] > 0]
        members: dict[str, Tendency] = {}
        for name in (list(variants)[index] for index in heavy):
            if members and out_of_time():
                break
            members[name] = methods[name].fit_candidate(
                vectors, annotations, variants[name], context
            )
        weights = weight[heavy][: len(members)]
        weights = weights / weights.sum()
        reason = self._without_queries(annotations)
        if not reason and features.tokens is None and self.queries == "auto":
            reason = "there are no features of words or patches"
        elif not reason and out_of_time():
            reason = "the time limit is reached"
        elif not reason:
            share = self._query_weight(features, annotations, pool(held_out, weight), context)
            reason = f"it has {share:.0%} of the weight on held-out labels"
            if share >= _LEAST and out_of_time():
                reason = "the time limit is reached"
            elif share >= _LEAST:
                query, folder = self._query(self.fits), context.subfolder("queries")
                members["queries"] = query.fit(features, annotations, folder)
                weights = np.append((1 - share) * weights, share)
        outcome = "included" if "queries" in members else "left out"
        remark = f"The query network is {outcome}: {reason}." if self.queries == "auto" else ""
        return AutoTendency(members, weights, remark)

    def _linear(self, ordinal: bool) -> Linear:
        return Linear(components=self.components, folds=self.folds, ordinal=ordinal)

    def _query(self, fits: int) -> TendencyMethod:
        return Query(fits=fits, epochs=_EPOCHS, patience=_PATIENCE)

    def needs_tokens(self, annotations: Annotations) -> bool:
        """Return whether to try a query network."""
        return not self._without_queries(annotations)

    def _without_queries(self, annotations: Annotations) -> str:
        """Return why annotations get no trial of a query network; nothing if they do."""
        labels = float(np.median(annotations.labels_per_annotator))
        if self.queries != "auto":
            return "" if self.queries == "always" else "queries=never"
        if annotations.n_annotators > _FEW:
            return f"{annotations.n_annotators} annotators are more than {_FEW}"
        if labels < _ENOUGH:
            return f"the median annotator gave {labels:g} labels, fewer than {_ENOUGH}"
        return ""

    def _query_weight(
        self, features: Features, annotations: Annotations, pooled: Floats, context: FitOptions
    ) -> float:
        """Return the weight of a query model next to the others, from one fold."""
        held = (random_folds(annotations, self.folds, context.seed) == 0)[annotations.item]
        with share_of_time(_TRIAL):
            trial = context.subfolder("trial")
            query = self._query(1).fit(features, annotations.keep(~held), trial)
        test = annotations.keep(held)
        log = query.log_probability(
            features, test.item.astype(np.int64), test.annotator.astype(np.int64)
        )
        weight = pool_weights(np.stack([pooled[held], log]), test.label.astype(np.int64))
        return float(weight[1])

    def restore(self, state: State) -> AutoTendency:
        members: dict[str, Tendency] = {}
        method: TendencyMethod
        for name in state.notes["members"]:
            method = self._query(self.fits) if name == "queries" else self._linear(False)
            members[name] = method.restore(state.part(name))
        return AutoTendency(members, state.notes["weight"], state.notes.get("remark", ""))


def _variants(validation: CrossValidation, best: Candidate) -> dict[str, Candidate]:
    """Return the best candidate with factors, and that with another kernel."""
    factors = [
        best._replace(priors=best.priors._replace(rank=_RANK, factor=factor))
        for factor in (0.1, 0.2)
    ]
    kernels = [kernel for kernel in KERNELS.values() if kernel.gamma and kernel != best.kernel]
    return {
        "factors": validation.best(factors),
        "kernel": validation.best([best._replace(kernel=kernel) for kernel in kernels]),
    }


def _is_scale(annotations: Annotations) -> bool:
    """Return whether classes look like a scale: at least four, and all of them numbers."""
    names = annotations.classes.tolist()
    return len(names) >= 4 and all(re.match(NUMBER, name) for name in names)


@dataclass(frozen=True, kw_only=True)
class Query(Qumatl):
    """A small query model: one query per annotator over words, patches or frames.

    QuMATL for a CPU: a small Q-Former, shrunk classifiers, likelihood, several fits.

    The network of `qumatl` with sizes that train in seconds to minutes without a GPU, and with what
    helped on small data: classifiers that share all but a linear layer and a bias, which starts at
    the annotator's label marginals; position embeddings; tokens normalized by feature; early
    stopping on likelihood, which peaks long before accuracy does; and the mean of several fits,
    since a single fit varies with its seed. Queries attend to each other with at most 64 annotators
    and one question.

        P(k gives · to x) = softmax(W h_k + V_k h_k + bias[k]),   h_k = Q-Former(query_k, tokens(x))

    When it fails: Below about a hundred labels per annotator, or beyond 64 annotators, it has never
    been ahead of `linear` here, at a hundred times the cost.
    """

    width: Count = 128
    layers: Count = 2
    heads: Count = 4
    hidden: Count = 256
    cross_every: Count = 1
    self_attention: bool | None = None
    fc: Count = 128
    head: Literal["own", "shared", "bias", "shrunk"] = "shrunk"
    head_hidden: Annotated[int, Ge(0)] = 0
    positions: bool = True
    scale: Literal["layer", "feature"] = "feature"
    frame_queries: Count = 4
    video_layers: Count = 2
    reduction: Literal["sum", "mean"] = "mean"
    shrink: NonNegative | None = None
    fits: Count = 3
    epochs: Count = 30
    lr: Positive = 1e-3
    warmup: Probability = 0.1
    patience: Annotated[int, Ge(0)] = 6
    choose: Literal["accuracy", "likelihood"] = "likelihood"
