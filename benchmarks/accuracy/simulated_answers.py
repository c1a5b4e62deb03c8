"""Simulated answers with known truth: boxes and spans of any number, and masks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dissensus.answers import Boxes, Masks, Spans

_IMAGE = 1000.0  # width and height


class Drawn(NamedTuple):
    """Answers and what is true."""

    answers: Any
    gold: Any


def _marked(
    rng: np.random.Generator, item_of: np.ndarray, who: np.ndarray, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return object, annotator and item of every object that an annotator of its item found."""
    n_looked = who.shape[1]
    thing = np.repeat(np.arange(len(item_of)), n_looked)
    annotator = who[item_of].ravel()
    seen = rng.random(len(thing)) < found[annotator]
    return thing[seen], annotator[seen], item_of[thing[seen]]


def _crowd(
    rng: np.random.Generator, n_items: int, looked: int, n_annotators: int, per_item: float
) -> tuple[np.ndarray, ...]:
    """Return who looks at every item, the item of every object, clutter by answer."""
    start = rng.integers(n_annotators, size=(n_items, 1))
    who = (start + np.arange(looked) * (1 + n_annotators // (2 * looked))) % n_annotators
    item_of = np.repeat(np.arange(n_items), rng.poisson(per_item, n_items))
    clutter = np.repeat(
        np.arange(n_items * looked), rng.poisson(0.075 * per_item, n_items * looked)
    )
    return who, item_of, clutter


def draw_boxes(
    n_items: int,
    *,
    looked: int = 5,
    n_annotators: int = 1000,
    per_item: float = 4.0,
    found: tuple[float, float] = (6.0, 3.0),
    seed: int = 0,
) -> Drawn:
    """Draw objects, found with a probability of the annotator, corners off by 5 % of the size."""
    rng = np.random.default_rng(seed)
    who, item_of, clutter = _crowd(rng, n_items, looked, n_annotators, per_item)
    size = rng.uniform(20, 200, (len(item_of), 2))
    place = np.hstack([rng.uniform(0, _IMAGE, (len(item_of), 2)), size])
    rate = rng.beta(*found, n_annotators)
    thing, annotator, item = _marked(rng, item_of, who, rate)
    off = rng.normal(0, 0.05, (len(thing), 4)) * np.tile(size[thing], 2)
    corners = np.hstack([place[thing, :2], place[thing, :2] + size[thing]]) + off
    marks = np.hstack([corners[:, :2], np.maximum(corners[:, 2:] - corners[:, :2], 1.0)])
    false = rng.uniform(20, 200, (len(clutter), 4)) * [5, 5, 1, 1]
    blank = np.full((n_items * looked, 4), np.nan)  # an empty answer for all who looked
    every = np.arange(n_items * looked)
    rows = (
        np.concatenate([item, clutter // looked, every // looked]),
        np.concatenate([annotator, who.ravel()[clutter], who.ravel()[every]]),
    )
    answers = Boxes.from_columns(*rows, *np.vstack([marks, false, blank]).T)
    gold = Boxes.from_columns(
        np.concatenate([item_of, np.arange(n_items)]),
        np.zeros(len(item_of) + n_items, int),
        *np.vstack([place, blank[:n_items]]).T,
        items=answers.items,
    )
    return Drawn(answers, gold)


def draw_spans(
    n_items: int,
    *,
    looked: int = 5,
    n_annotators: int = 1000,
    per_item: float = 4.0,
    exact: float = 0.8,
    seed: int = 0,
) -> Drawn:
    """Draw spans of four labels in texts; borders are right with a probability, else off by one."""
    rng = np.random.default_rng(seed)
    who, item_of, clutter = _crowd(rng, n_items, looked, n_annotators, per_item)
    start = (np.arange(len(item_of)) - np.searchsorted(item_of, item_of)) * 8
    start += rng.integers(2, 4, len(start))
    true = np.column_stack([start, start + rng.integers(1, 4, len(start))])
    label = rng.integers(4, size=len(true))
    rate = rng.beta(6, 3, n_annotators)
    thing, annotator, item = _marked(rng, item_of, who, rate)
    off = rng.integers(-1, 2, (len(thing), 2)) * (rng.random((len(thing), 1)) > exact)
    marks = true[thing] + off
    marks[:, 1] = np.maximum(marks[:, 1], marks[:, 0] + 1)
    given = np.where(rng.random(len(thing)) < 0.9, label[thing], rng.integers(4, size=len(thing)))
    false = rng.integers(0, int(16 * per_item), len(clutter))
    false = np.column_stack([false, false + 1])
    blank = np.full((n_items * looked, 2), np.nan)
    every = np.arange(n_items * looked)
    rows = (
        np.concatenate([item, clutter // looked, every // looked]),
        np.concatenate([annotator, who.ravel()[clutter], who.ravel()[every]]),
    )
    names = np.array(["A", "B", "C", "D"], object)
    labels = names[np.concatenate([given, rng.integers(4, size=len(clutter)), 0 * every])]
    spots = np.vstack([marks, false, blank])
    answers = Spans.from_columns(*rows, *spots.T, label=labels)
    gold = Spans.from_columns(
        np.concatenate([item_of, np.arange(n_items)]),
        np.zeros(len(item_of) + n_items, int),
        *np.vstack([true, blank[:n_items]]).T,
        label=names[np.concatenate([label, 0 * np.arange(n_items)])],
        items=answers.items,
    )
    return Drawn(answers, gold)


def draw_masks(bad: int, seed: int = 1) -> Drawn:
    """Draw the ellipses that the data's README describes, with some useless annotators."""
    from scipy.ndimage import gaussian_filter

    rng, side, n_images = np.random.default_rng(seed), 64, 30
    y, x = np.mgrid[:side, :side]
    shifts = (0, 0, 0, 1, -1, 2, -2)
    rows: list[tuple[str, str, list[int]]] = []
    truth: list[tuple[str, str, list[int]]] = []
    for image in range(n_images):
        cx, cy = rng.uniform(24, 40, 2)
        a, b = rng.uniform(8, 18, 2)
        angle = rng.uniform(0, np.pi)
        u = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
        v = -(x - cx) * np.sin(angle) + (y - cy) * np.cos(angle)
        radius = np.sqrt((u / a) ** 2 + (v / b) ** 2)
        signed = (1 - radius) * np.sqrt(u**2 + v**2) / np.maximum(radius, 1e-9)
        true = signed > 0
        truth.append((f"i{image}", "gold", runs_of_mask(true)))
        for j, shift in enumerate(shifts):
            if j < bad and j % 2 == 0:
                mask = np.roll(true, rng.integers(-20, 21, 2), (0, 1))
            elif j < bad:
                mask = (np.abs(x - cx) <= 26) & (np.abs(y - cy) <= 26)
            else:
                noise = gaussian_filter(rng.normal(size=(side, side)), 4)
                mask = signed + noise / noise.std() * 1.5 + shift > 0
            rows.append((f"i{image}", f"w{j}", runs_of_mask(mask)))
    size = {f"i{image}": (side, side) for image in range(n_images)}
    answers = Masks.from_columns(*zip(*rows, strict=True), size=size)
    return Drawn(
        answers, Masks.from_columns(*zip(*truth, strict=True), size=size, items=answers.items)
    )


def runs_of_mask(mask: np.ndarray) -> list[int]:
    flat = mask.T.ravel()
    change = np.flatnonzero(np.diff(flat, prepend=False))
    return np.diff(np.append(change, len(flat)), prepend=0).tolist()
