"""Annotators who attend to different positions of the same item.

An item has positions (patches of an image, frames of a video or a sound) with contents
u[i, p] ~ N(0, 1), which are rendered. Annotator r has an attention profile a[i, r, p], and labels

    v[i, r] = Σ_p a[i, r, p] u[i, p]
    label   = argmax_c (strength · ⟨W[r, c], v[i, r]⟩ + bias[r, c] + noise · Gumbel),

so that P(label = c) is the softmax of the same over `noise`: the Bayes-optimal prediction.
Annotators of a group attend alike: to a region of their own (`groups`), mostly to its center
(`soft`), to certain content (`content`), or both (`mix`). With `taste`, they also interpret the
same position differently. In the control, `same`, all attend to the first region.

A text has a span of words for every group, each span of another class, between filler words; an
annotator reads their own span with probability `theta`, otherwise one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from annotated_types import Ge
from scipy.special import softmax

from dissensus.answers.annotations import Annotations, Floats, Integers
from dissensus.deep.nn.media import RATE, sound_frames
from dissensus.errors import OptionError
from dissensus.params import Count, NonNegative, Positive, Probability, Settings, Size

_SIDE = 8  # pixels of a patch
_FRAME = 16  # pixels of a frame
_VECTOR = 16  # numbers of a patch vector
_CONTRAST = 0.6
_SPAN = 3  # informative words in a row
_IN_TIME = ("video", "sound", "video with sound")
_TONES = (300.0, 5000.0)  # Hz: the lowest and the highest
_SECONDS = 0.12  # of a frame of sound

_FILLERS = "and so then it was there with some of that which they had by the"
_WORDS = (  # of every class
    "dog cat horse sheep rabbit goat",
    "rain snow storm cloud wind frost",
    "violin piano drum trumpet guitar flute",
    "bread cheese soup apple rice butter",
    "bank loan tax coin debt salary",
    "hammer saw drill screw pliers wrench",
)


@dataclass(frozen=True, kw_only=True)
class Tendencies(Settings):
    """Settings of the simulation.

    Parameters
    ----------
    kind
        patches: vectors of positions; images, video and sound: rendered; video with sound: half of
        the positions are frames of the picture, then frames of the sound; text: words.
    profile
        Where annotators attend; for texts, groups or same.
    n_items, n_annotators, n_classes
        Sizes.
    groups
        Number of regions; annotators take them in turn.
    positions
        Patches, a square number for images; or frames.
    features
        Number of features of a position.
    sharpness
        Of `soft`, `content` and `mix`: towards 0 attention is uniform.
    by_position
        Of `mix`: the share of attention by position, the rest by content.
    strength
        Weight of the content.
    noise
        Scale of the Gumbel noise.
    bias
        Standard deviation of the annotators' response biases.
    taste
        Weight of individual readings, relative to 1 for the shared one.
    theta
        Of texts: how often annotators read their own span.
    blur
        Noise of the rendered inputs.
    kept
        Share of items that every annotator labels, or one for each.
    seed
        Random seed.
    """

    kind: Literal["patches", "images", "video", "sound", "video with sound", "text"] = "patches"
    profile: Literal["groups", "soft", "content", "mix", "same"] = "groups"
    n_items: Size = 1500
    n_annotators: Count = 6
    n_classes: Annotated[int, Ge(2)] = 3
    groups: Count = 3
    positions: Count = 9
    features: Count = 6
    sharpness: NonNegative = 4.0
    by_position: Probability = 0.5
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
                f"positions = {self.positions}, but an image has a square number of them"
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
    """Items, annotations, and the model behind them."""

    inputs: Any  # arrays (item, …), or texts
    annotations: Annotations
    attention: Floats  # (item, annotator, position); rows sum to one
    probabilities: Floats  # (item, annotator, class)
    labels: Integers  # (item, annotator): also where they were not asked
    group: Integers  # (annotator)

    @property
    def best(self) -> Integers:
        """The most probable label of every annotator: (item, annotator)."""
        return self.probabilities.argmax(axis=2)

    def pointing(self, maps: npt.ArrayLike) -> float:
        """Return how often the peak of maps (item, annotator, position) is attended to.

        That is, at least half as much as any other position.
        """
        highest = np.asarray(maps).argmax(axis=2)
        there = np.take_along_axis(self.attention, highest[:, :, None], axis=2)[:, :, 0]
        return float((there >= self.attention.max(axis=2) / 2).mean())

    def cosine(self, maps: npt.ArrayLike) -> float:
        """Return the mean cosine of maps (item, annotator, position) and attention."""
        maps = np.asarray(maps, dtype=float)
        length = np.linalg.norm(maps, axis=2) * np.linalg.norm(self.attention, axis=2)
        return float(((maps * self.attention).sum(axis=2) / length).mean())


def simulate_tendency(settings: Tendencies | None = None, **more: Any) -> TendencySimulation:
    """Draw items and annotators who attend to different positions of them.

    Examples
    --------
    >>> drawn = simulate_tendency(n_items=50, kind="images")
    >>> drawn.inputs.shape, drawn.attention.shape
    ((50, 3, 24, 24), (50, 6, 9))
    >>> drawn.annotations
    <Annotations: 300 labels by 6 annotators on 50 items; classes 0, 1, 2>
    """
    settings = settings or Tendencies(**more)
    rng = np.random.default_rng(settings.seed)
    group = np.arange(settings.n_annotators) % (
        1 if settings.profile == "same" else settings.groups
    )
    inputs, attention, probabilities = (_texts if settings.kind == "text" else _scenes)(
        settings, group, rng
    )
    upto = probabilities.cumsum(axis=2)
    level = rng.random(upto.shape[:2])[:, :, None] * upto[:, :, -1:]
    labels = (upto[:, :, :-1] <= level).sum(axis=2)
    share = np.broadcast_to(np.asarray(settings.kept, dtype=float), settings.n_annotators)
    item, annotator = np.nonzero(rng.random(labels.shape) < share)
    annotations = Annotations.from_codes(
        item,
        annotator,
        labels[item, annotator],
        items=settings.n_items,
        annotators=settings.n_annotators,
        classes=settings.n_classes,
    )
    return TendencySimulation(inputs, annotations, attention, probabilities, labels, group)


def _scenes(
    settings: Tendencies, group: Integers, rng: np.random.Generator
) -> tuple[Any, Floats, Floats]:
    """Return inputs, attention, and label probabilities."""
    content = rng.standard_normal((settings.n_items, settings.positions, settings.features))
    attention = _attention(settings, group, content, rng)
    seen = np.einsum("irp,ipd->ird", attention, content)
    reading = rng.standard_normal((settings.n_classes, settings.features))  # shared
    own = rng.standard_normal((settings.n_annotators, settings.n_classes, settings.features))
    bias = settings.bias * rng.standard_normal((settings.n_annotators, settings.n_classes))
    score = (
        settings.strength * np.einsum("ird,rcd->irc", seen, reading + settings.taste * own) + bias
    )
    inputs = rendered(content, settings.kind, settings.blur, rng)
    return inputs, attention, softmax(score / settings.noise, axis=2)


def _attention(
    settings: Tendencies, group: Integers, content: Floats, rng: np.random.Generator
) -> Floats:
    """Return attention: (item, annotator, position)."""
    regions = np.array_split(np.arange(settings.positions), settings.groups)
    if settings.profile in ("groups", "same"):
        position = np.zeros((settings.groups, settings.positions))  # (group, position)
        for number, region in enumerate(regions):
            position[number, region] = 1 / len(region)
    else:
        where = _where(settings)  # (position, axis)
        middle = np.array([where[region].mean(axis=0) for region in regions])
        apart = np.square(where - middle[:, None]).sum(axis=2)  # (group, position)
        position = softmax(-settings.sharpness * apart, axis=1)
    share = {"content": 0.0, "mix": settings.by_position}.get(settings.profile, 1.0)
    requested = rng.standard_normal((settings.groups, settings.features))
    requested /= np.linalg.norm(requested, axis=1, keepdims=True)
    by_position = np.broadcast_to(
        position[group], (settings.n_items, len(group), settings.positions)
    )
    if share == 1:
        return by_position
    found = softmax(
        settings.sharpness * np.einsum("ipd,rd->irp", content, requested[group]), axis=2
    )
    return share * by_position + (1 - share) * found


def _where(settings: Tendencies) -> Floats:
    """Return coordinates of positions: on a grid, or in a row."""
    side = round(settings.positions**0.5)
    if settings.kind in _IN_TIME or side**2 != settings.positions:
        return np.arange(settings.positions, dtype=float)[:, None]
    return np.stack(np.divmod(np.arange(settings.positions), side), axis=1).astype(float)


def _texts(
    settings: Tendencies, group: Integers, rng: np.random.Generator
) -> tuple[Any, Floats, Floats]:
    """Return texts, attention to words, and label probabilities."""
    order = rng.permuted(np.tile(np.arange(settings.n_classes), (settings.n_items, 1)), axis=1)
    classes = order[:, : settings.groups]  # (item, span): of another class each
    texts, span = composed(classes, rng)  # span: (item, word, span), whether a word is of it
    probability = np.full(
        (settings.groups, settings.groups), (1 - settings.theta) / max(settings.groups - 1, 1)
    )
    np.fill_diagonal(probability, settings.theta if settings.groups > 1 else 1.0)
    reads = probability[group]  # (annotator, span)
    attention = np.einsum("rs,iws->irw", reads, span / span.sum(axis=1, keepdims=True))
    probabilities = np.zeros((settings.n_items, len(group), settings.n_classes))
    item = np.arange(settings.n_items)
    for number in range(settings.groups):
        probabilities[item, :, classes[:, number]] += reads[:, number]
    return texts, attention, probabilities


def rendered(content: Floats, kind: str, blur: float, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return contents (item, position, feature) as vectors, images or frames, from 0 to 1."""
    n_items, n_positions, n_features = content.shape
    if kind == "patches":
        mixing = rng.standard_normal((n_features, _VECTOR)) / n_features**0.5
        vectors = content @ mixing
        return (vectors + blur * rng.standard_normal(vectors.shape)).astype(np.float32)
    if kind == "video with sound":
        picture, sound = np.split(content, [n_positions // 2], axis=1)
        parts = rendered(picture, "video", blur, rng), rendered(sound, "sound", blur, rng)
        return np.concatenate(parts, axis=1)
    if kind == "sound":
        return _sounds(content, blur, rng)
    side = _FRAME if kind == "video" else _SIDE
    looks = np.einsum("ipf,fchw->ipchw", content, _patterns(n_features, side))
    looks += blur * rng.standard_normal(looks.shape)
    pixels = (1 / (1 + np.exp(-_CONTRAST * looks))).astype(np.float32)
    if kind == "video":
        return pixels  # (item, frame, channel, row, column)
    across = round(n_positions**0.5)
    grid = pixels.reshape(n_items, across, across, 3, side, side)
    return grid.transpose(0, 3, 1, 4, 2, 5).reshape(n_items, 3, across * side, across * side)


def _sounds(content: Floats, blur: float, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return spectrograms of sounds with a tone for every feature, as loud as its content."""
    n_items, n_positions, n_features = content.shape
    time = np.arange(round(_SECONDS * RATE)) / RATE
    tones = np.sin(2 * np.pi * np.geomspace(*_TONES, n_features)[:, None] * time)
    loudness = 0.03 * 10 ** (_CONTRAST * content / 2)
    frames = []
    for item in range(n_items):
        wave = (loudness[item] @ tones).ravel()
        wave += 0.03 * blur * rng.standard_normal(len(wave))
        frames.append(sound_frames(wave, n_positions, _FRAME).numpy())
    return np.stack(frames)  # (item, frame, channel, row, column)


def _patterns(n_features: int, side: int) -> Floats:
    """Return a pattern for every feature: plain red, green and blue, then ever finer stripes."""
    patterns = np.zeros((n_features, 3, side, side))
    at = (np.arange(side) + 0.5) / side
    waves = [(0, 0)] + [(s - down, down) for s in range(1, n_features) for down in range(s + 1)]
    for feature in range(n_features):
        across, down = waves[feature // 3]
        stripes = np.cos(np.pi * down * at)[:, None] * np.cos(np.pi * across * at)
        patterns[feature, feature % 3] = stripes / np.sqrt(np.square(stripes).mean())
    return patterns


def composed(classes: Integers, rng: np.random.Generator) -> tuple[tuple[str, ...], Any]:
    """Return texts with a span of every class (item, span), and which words are of which span.

    >>> composed(np.array([[0, 1]]), np.random.default_rng(0))[0]
    ('that some was was goat rabbit dog by some that cloud frost wind was had which and',)
    """
    fillers, lists = _FILLERS.split(), [words.split() for words in _WORDS]
    if classes.max(initial=0) >= len(lists):
        raise OptionError(f"{classes.max() + 1} classes, but there are words for {len(lists)}")
    texts, spans = [], []
    for row in classes.tolist():
        words: list[str] = []
        span: list[int] = []
        for position, each in enumerate(row):
            for found, number in (
                (rng.choice(fillers, int(rng.integers(1, 5))), -1),
                (rng.choice(lists[each], _SPAN, replace=False), position),
            ):
                words += found.tolist()
                span += [number] * len(found)
        last = rng.choice(fillers, int(rng.integers(1, 5))).tolist()
        texts.append(" ".join([*words, *last]))
        spans.append(span + [-1] * len(last))
    longest = max(map(len, spans), default=0)
    filled = np.full((len(spans), longest), -1)
    for item, span in enumerate(spans):
        filled[item, : len(span)] = span
    return tuple(texts), (filled[:, :, None] == np.arange(classes.shape[1])).astype(float)
