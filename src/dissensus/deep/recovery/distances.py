"""Distances between classes: some errors are smaller than others.

On an ordinal scale 4 is close to 5 and far from 1. Emotions lie on a circle (the circumplex):
annotators who disagree choose adjacent ones from the same words, opposite ones from other words.

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

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base.arrays import Floats
from ...errors import OptionError

DISTANCES = ("linear", "circle")
_RATE = 3.0  # chosen on two sets (gwsd, politeness_wikipedia) that the table of csc does not use


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
        values = [[float(by_name[one][other]) for other in names] for one in names]
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
