"""A small data set to try things on: what is on the photos of camera traps.

It is made up, with people as one meets them: four who know animals, thirty-one who mix up what
looks alike and overlook what hides, two who click anything, two who always click the same, and
one who has badger and boar the wrong way round. Those who do not look give many labels. Some photos
mislead nearly everybody who looks, as in real data: annotators share errors.
"""

from __future__ import annotations

import numpy as np

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats
from ..base.names import as_names
from ..base.probability import pick

_CLASSES = ("badger", "boar", "deer", "empty", "fox")
_COMMON = (0.10, 0.16, 0.28, 0.30, 0.16)  # (true class)
_SITES = ("clearing", "ford", "hollow", "meadow", "ridge")
_N_ITEMS = 500
_EXPERTS = ("Amara", "Henrik", "Noor", "Wilma")
_CLICKERS = ("Dario", "Zoe")  # any class
_STUCK = {"Rufus": "deer", "Tilda": "empty"}
_SWAPPER = "Ingo"  # badger for boar, and boar for badger
_MISLEADING, _MISLED = 0.15, 0.8  # share of photos, and of those who look at them
_OTHERS = (
    *("Aino", "Bao", "Carla", "Chidi", "Clara", "Dmitri", "Elif", "Emil", "Fatima", "Felix"),
    *("Greta", "Hana", "Ivan", "Jonas", "Kofi", "Lea", "Liam", "Lucia", "Malik", "Marie"),
    *("Mateo", "Mila", "Olga", "Paul", "Priya", "Rosa", "Samir", "Sofia", "Tomas", "Vera"),
    "Yuki",
)
# Where the mistakes of ordinary people go: (true class, given class).
_MISTAKES = np.array(
    [
        [0.0, 0.5, 0.0, 0.2, 0.3],
        [0.5, 0.0, 0.2, 0.2, 0.1],
        [0.0, 0.2, 0.0, 0.5, 0.3],
        [0.1, 0.1, 0.4, 0.0, 0.4],
        [0.4, 0.0, 0.3, 0.3, 0.0],
    ]
)


def demo() -> tuple[Annotations, dict[str, str]]:
    """Return annotations of 500 photos by 40 people, and the truth: always the same.

    >>> annotations, truth = demo()
    >>> annotations
    <Annotations: 2527 labels by 40 annotators on 500 items; classes badger, boar, deer, empty, fox>
    >>> truth["meadow/IMG_0116.jpg"]
    'boar'
    """
    rng = np.random.default_rng(1)
    people, confusion = _crowd(rng)
    truth = rng.choice(len(_CLASSES), size=_N_ITEMS, p=_COMMON)
    item, annotator = _pairs(people, rng)
    light = np.random.default_rng(2)
    seems = np.where(light.random(_N_ITEMS) < _MISLEADING, pick(_MISTAKES[truth], light), truth)
    misled = light.random(len(item)) < _MISLED
    annotations = Annotations.from_codes(
        item,
        annotator,
        pick(confusion[annotator, np.where(misled, seems[item], truth[item])], rng),
        items=_photos(rng),
        annotators=people,
        classes=_CLASSES,
    )
    pairs = zip(annotations.items.tolist(), annotations.classes[truth].tolist(), strict=True)
    return annotations, dict(pairs)


def _crowd(rng: np.random.Generator) -> tuple[list[str], Floats]:
    """Return who annotates, and their matrices: (annotator, true class, given class)."""
    n_classes = len(_CLASSES)
    right = {name: rng.uniform(0.95, 0.99) for name in _EXPERTS}
    right |= {name: rng.beta(10, 3.5) for name in _OTHERS}
    right[_SWAPPER] = 0.85
    matrices = {name: p * np.eye(n_classes) + (1 - p) * _MISTAKES for name, p in right.items()}
    badger, boar = _CLASSES.index("badger"), _CLASSES.index("boar")
    matrices[_SWAPPER][[badger, boar]] = matrices[_SWAPPER][[boar, badger]]
    matrices |= {name: np.full((n_classes, n_classes), 1 / n_classes) for name in _CLICKERS}
    for name, always in _STUCK.items():
        matrices[name] = np.tile(np.eye(n_classes)[_CLASSES.index(always)], (n_classes, 1))
    people = sorted(matrices)
    return people, np.stack([matrices[name] for name in people])


def _pairs(people: list[str], rng: np.random.Generator) -> tuple[Array, Array]:
    """Return who labels which item: three to seven for each, the eager ones more often."""
    n_annotators = len(people)
    eager = rng.normal(0, 0.5, n_annotators)
    eager += [name in _CLICKERS or name in _STUCK for name in people]  # it costs them nothing
    order = np.argsort(-(eager + rng.gumbel(size=(_N_ITEMS, n_annotators))), axis=1)
    size = rng.integers(3, 8, _N_ITEMS)
    item, position = np.nonzero(np.arange(n_annotators) < size[:, None])
    return item, order[item, position]


def _photos(rng: np.random.Generator) -> Array:
    """Return the names of the photos, in order, with the gaps that deleted photos leave."""
    numbers = np.sort(rng.choice(np.arange(1, 1000), size=_N_ITEMS, replace=False))
    site = rng.integers(len(_SITES), size=_N_ITEMS)
    return as_names(
        sorted(f"{_SITES[s]}/IMG_{n:04}.jpg" for s, n in zip(site, numbers, strict=True))
    )
