"""QuMATL for a CPU: a small Q-Former, shrunk classifiers, likelihood, several fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from ...params import Count, NonNegative, Positive, Probability
from .qumatl import Qumatl


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
