"""Annotators who look at different places of the same item, and where each of them looks.

An item has places (patches of an image, frames of a video) with contents u[i, p] ~ N(0, 1), which
are painted. Annotator r looks at places by a profile a[i, r, p], reads what is there, and says

    v[i, r] = Σ_p a[i, r, p] u[i, p]
    label   = argmax_c (strength · ⟨W[r, c], v[i, r]⟩ + bias[r, c] + noise · Gumbel),

so that P(label = c) is the softmax of the same over `noise`: the best that anybody can foresee.
Annotators are in groups that look alike: at a region of their own (`groups`), mostly at its middle
(`soft`), at whatever holds what they look for (`content`), or both (`mix`). With `taste`, they
also read the same place differently. In the control, `same`, all look at the first region.

A text has a span of words for every group, each span of another class, between words that say
nothing; an annotator reads the own span with a chance of `theta`, otherwise one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge
from scipy.special import softmax

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..errors import OptionError
from ..params import Count, NonNegative, Positive, Probability, Settings
from ._synthetic_inputs import painted, written

__all__ = ["Tendencies", "TendencySimulation", "simulate_tendency", "thinned"]


@dataclass(frozen=True, kw_only=True)
class Tendencies(Settings):
    """What is drawn.

    Parameters
    ----------
    kind
        patches: vectors of places; images and video: painted; text: words.
    profile
        Where annotators look; for texts, groups or same.
    n_items, n_annotators, n_classes
        How many.
    groups
        How many regions there are; annotators take them in turn.
    positions
        Patches, a square number for images; or frames.
    features
        Numbers that make up the content of a place.
    sharpness
        Of `soft`, `content` and `mix`: towards 0 they look everywhere alike.
    by_place
        Of `mix`: how much of it goes by place, the rest by content.
    strength
        How far the content decides.
    noise
        How far chance decides.
    bias
        Spread of the annotators' liking for classes.
    taste
        How differently annotators read the same place, beside 1 for what they share.
    theta
        Of texts: how often annotators read their own span.
    blur
        Noise in what is painted.
    kept
        Share of items that every annotator labels, or one for each.
    seed
        The same seed gives the same items and labels.
    """

    kind: Literal["patches", "images", "video", "text"] = "patches"
    profile: Literal["groups", "soft", "content", "mix", "same"] = "groups"
    n_items: Count = 1500
    n_annotators: Count = 6
    n_classes: Annotated[int, Ge(2)] = 3
    groups: Count = 3
    positions: Count = 9
    features: Count = 6
    sharpness: NonNegative = 4.0
    by_place: Probability = 0.5
    strength: NonNegative = 3.0
    noise: Positive = 0.3
    bias: NonNegative = 0.0
    taste: NonNegative = 0.0
    theta: Probability = 0.95
    blur: NonNegative = 0.1
    kept: Probability | tuple = 1.0  # type: ignore[type-arg] # one for each annotator
    seed: Annotated[int, Ge(0)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        side = round(self.positions**0.5)
        if self.kind == "images" and side**2 != self.positions:
            raise OptionError(
                f"places = {self.positions}, but an image has a square number of them"
            )
        if self.kind == "text" and self.profile not in ("groups", "same"):
            raise OptionError(f"profile = {self.profile}, but a text takes groups or same")
        most = self.n_classes if self.kind == "text" else self.positions
        if self.groups > most:
            raise OptionError(f"groups = {self.groups}, but there is room for {most}")
        if isinstance(self.kept, tuple) and len(self.kept) != self.n_annotators:
            raise OptionError(
                f"kept has {len(self.kept)} shares for {self.n_annotators} annotators"
            )


@dataclass(frozen=True, eq=False)
class TendencySimulation:
    """Items, what annotators said of them, and why."""

    inputs: Any  # arrays (item, …), or texts
    annotations: Annotations
    attention: Floats  # (item, annotator, place): where they look; rows sum to one
    chances: Floats  # (item, annotator, class): how probable every label is
    labels: Integers  # (item, annotator): what they would say, also where they were not asked
    group: Integers  # (annotator)

    @property
    def best(self) -> Integers:
        """The most probable label of every annotator: (item, annotator)."""
        return self.chances.argmax(axis=2)

    def pointing(self, maps: npt.ArrayLike) -> float:
        """Return how often the highest place of maps (item, annotator, place) is where they look.

        That is, at least half as much as at any other place.
        """
        highest = np.asarray(maps).argmax(axis=2)
        there = np.take_along_axis(self.attention, highest[:, :, None], axis=2)[:, :, 0]
        return float((there >= self.attention.max(axis=2) / 2).mean())

    def cosine(self, maps: npt.ArrayLike) -> float:
        """Return the mean cosine between maps (item, annotator, place) and where they look."""
        maps = np.asarray(maps, dtype=float)
        length = np.linalg.norm(maps, axis=2) * np.linalg.norm(self.attention, axis=2)
        return float(((maps * self.attention).sum(axis=2) / length).mean())


def simulate_tendency(settings: Tendencies | None = None, **more: Any) -> TendencySimulation:
    """Draw items and annotators who look at different places of them.

    Examples
    --------
    >>> drawn = simulate_tendency(n_items=50, kind="images")
    >>> drawn.inputs.shape, drawn.attention.shape
    ((50, 3, 24, 24), (50, 6, 9))
    >>> drawn.annotations
    <Annotations: 300 labels by 6 annotators on 50 items; classes 0, 1, 2>
    """
    told = Tendencies(**more) if settings is None else settings
    rng = np.random.default_rng(told.seed)
    group = np.arange(told.n_annotators) % (1 if told.profile == "same" else told.groups)
    inputs, attention, chances = (_texts if told.kind == "text" else _scenes)(told, group, rng)
    upto = chances.cumsum(axis=2)
    level = rng.random(upto.shape[:2])[:, :, None] * upto[:, :, -1:]
    labels = (upto[:, :, :-1] <= level).sum(axis=2)
    share = np.broadcast_to(np.asarray(told.kept, dtype=float), told.n_annotators)
    item, annotator = np.nonzero(rng.random(labels.shape) < share)
    annotations = Annotations.from_codes(
        item,
        annotator,
        labels[item, annotator],
        items=told.n_items,
        annotators=told.n_annotators,
        classes=told.n_classes,
    )
    return TendencySimulation(inputs, annotations, attention, chances, labels, group)


def thinned(annotations: Annotations, share: float, seed: int = 0) -> Annotations:
    """Return annotations without a share of them, drawn at random.

    >>> thinned(simulate_tendency(n_items=50).annotations, 0.4)
    <Annotations: 180 labels by 6 annotators on 50 items; classes 0, 1, 2>
    """
    order = np.random.default_rng([seed, 0xDE1]).permutation(len(annotations))
    kept = np.ones(len(annotations), dtype=bool)
    kept[order[: round(share * len(annotations))]] = False
    return annotations.keep(kept)


def _scenes(
    told: Tendencies, group: Integers, rng: np.random.Generator
) -> tuple[Any, Floats, Floats]:
    """Return what is painted, where annotators look, and what they will say."""
    content = rng.standard_normal((told.n_items, told.positions, told.features))
    attention = _attention(told, group, content, rng)
    seen = np.einsum("irp,ipd->ird", attention, content)
    reading = rng.standard_normal((told.n_classes, told.features))  # shared
    own = rng.standard_normal((told.n_annotators, told.n_classes, told.features))
    liking = told.bias * rng.standard_normal((told.n_annotators, told.n_classes))
    score = told.strength * np.einsum("ird,rcd->irc", seen, reading + told.taste * own) + liking
    inputs = painted(content, told.kind, told.blur, rng)
    return inputs, attention, softmax(score / told.noise, axis=2)


def _attention(
    told: Tendencies, group: Integers, content: Floats, rng: np.random.Generator
) -> Floats:
    """Return where annotators look: (item, annotator, place)."""
    regions = np.array_split(np.arange(told.positions), told.groups)
    if told.profile in ("groups", "same"):
        position = np.zeros((told.groups, told.positions))  # (group, place)
        for at, region in enumerate(regions):
            position[at, region] = 1 / len(region)
    else:
        where = _where(told)  # (place, axis)
        middle = np.array([where[region].mean(axis=0) for region in regions])
        apart = np.square(where - middle[:, None]).sum(axis=2)  # (group, place)
        position = softmax(-told.sharpness * apart, axis=1)
    share = {"content": 0.0, "mix": told.by_place}.get(told.profile, 1.0)
    wanted = rng.standard_normal((told.groups, told.features))
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    by_place = np.broadcast_to(position[group], (told.n_items, len(group), told.positions))
    if share == 1:
        return by_place
    found = softmax(told.sharpness * np.einsum("ipd,rd->irp", content, wanted[group]), axis=2)
    return share * by_place + (1 - share) * found


def _where(told: Tendencies) -> Floats:
    """Return where places lie: on a grid, or in a row."""
    side = round(told.positions**0.5)
    if told.kind == "video" or side**2 != told.positions:
        return np.arange(told.positions, dtype=float)[:, None]
    return np.stack(np.divmod(np.arange(told.positions), side), axis=1).astype(float)


def _texts(
    told: Tendencies, group: Integers, rng: np.random.Generator
) -> tuple[Any, Floats, Floats]:
    """Return texts, which words annotators read, and what they will say."""
    order = rng.permuted(np.tile(np.arange(told.n_classes), (told.n_items, 1)), axis=1)
    classes = order[:, : told.groups]  # (item, span): of another class each
    texts, span = written(classes, rng)  # span: (item, word, span), whether a word is of it
    chance = np.full((told.groups, told.groups), (1 - told.theta) / max(told.groups - 1, 1))
    np.fill_diagonal(chance, told.theta if told.groups > 1 else 1.0)
    reads = chance[group]  # (annotator, span)
    attention = np.einsum("rs,iws->irw", reads, span / span.sum(axis=1, keepdims=True))
    chances = np.zeros((told.n_items, len(group), told.n_classes))
    item = np.arange(told.n_items)
    for at in range(told.groups):
        chances[item, :, classes[:, at]] += reads[:, at]
    return texts, attention, chances
