"""Simulated source tasks for the tests of few-shot learning."""

import numpy as np
import torch

from dissensus.deep.meta.episodes import EpisodeSource, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tasks import Tasks

FEW = Sizes(ways=(3,), shots=(3,), annotators=(4,), queries=4)
QUICK = {"sizes": FEW, "tuning": 15, "episodes": 64}


def gaussian(n_classes=16, per_class=12, width=6, far=3.0, seed=0):
    """Return items of Gaussian classes, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), per_class)
    x = far * rng.normal(size=(n_classes, width))[y] + rng.normal(size=(len(y), width))
    return x.astype(np.float32), y


def source_of(n=64, sizes=FEW, annotators=None, **more):
    x, y = gaussian(**more)
    return EpisodeSource(Tasks(torch.from_numpy(x), y), sizes, annotators or PseudoAnnotators(), n)
