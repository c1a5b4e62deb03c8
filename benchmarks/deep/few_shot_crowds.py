"""Few-shot learning with real annotators: LabelMe and music, classes split into source and target.

Source classes have true labels; only the parameters of an adapter are tuned on them, on episodes
labelled by pseudo-annotators or by the set's own annotators. The support of a target task has their
labels; labels of other classes are left out, and items without labels stay, unlabelled. Queries are
items without annotations, with true labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch

from dissensus.deep.meta.base import Adapter
from dissensus.deep.meta.episodes import EpisodeSource, Items, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tasks import Tasks
from dissensus.deep.meta.tuning import tune
from dissensus.registry import adapters
from kept import kept
from learning import Data, labelme, music

__all__ = ["ADAPTERS", "CROWDS", "RealData", "measured"]

ADAPTERS = (
    "protonet-mv",
    "protonet-ds",
    "soft-votes",
    "em-full",
    "em-one-coin[steps=2]",
    "em-kinds[steps=2]",
    "em-item-confusion",
)
_QUERIES = 20


class RealData(NamedTuple):
    """A set with real annotators, and its splits."""

    x: torch.Tensor  # (item, feature): those with annotations first
    truth: Any  # (item): codes
    annotations: Any  # (annotated item): annotations, classes by the same codes
    splits: list[Any]  # source classes
    shots: tuple[int, ...]
    crowd: PseudoAnnotators
    annotators: int


def crowd_of(name: str) -> RealData:
    """Return LabelMe or music."""
    data: Data = {"labelme": labelme, "music": music}[name]()
    x = np.concatenate([data.x, data.x_test]).astype(np.float32)
    classes = data.annotations.classes.tolist()
    truth = np.array([classes.index(label) for label in [*data.truth, *data.truth_test]])
    per_item = len(data.annotations) / data.annotations.n_items
    crowd = PseudoAnnotators(
        spammers=(0.0, 0.5), accuracy=(0.5, 1.0), per_item=per_item, flippers=0.5
    )
    if name == "labelme":
        x = np.sqrt(np.maximum(x, 0))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        # All fourfold sets of eight whose codes have no sum: every triple is in one of them.
        splits = [s for s in combinations(range(8), 4) if not np.bitwise_xor.reduce(s)]
        shots: tuple[int, ...] = (5, 10, 25, 50)
    else:
        x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-6)
        rng = np.random.default_rng(0)
        splits = [np.sort(rng.permutation(10)[:5]) for _ in range(10)]
        shots = (5, 10, 25)
    return RealData(
        torch.from_numpy(x),
        truth,
        data.annotations,
        splits,
        shots,
        crowd,
        data.annotations.n_annotators,
    )


CROWDS = ("labelme", "music")


def _tasks(data: RealData, source: Any) -> tuple[Tasks, torch.Tensor]:
    """Return the source tasks, and all features as they scale and move them."""
    mine = np.flatnonzero(np.isin(data.truth, source))
    mean = data.x[mine].mean(dim=0)
    x = data.x - mean
    x = x / x[mine].square().sum(dim=1).mean().sqrt()
    annotations = data.annotations.take(np.arange(data.annotations.n_items))
    from dissensus import Annotations

    every = Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        annotations.label,
        items=len(x),
        annotators=annotations.n_annotators,
        classes=annotations.n_classes,
    )
    return Tasks(x, data.truth, annotations=every).keep(np.asarray(source)), x


def _fitted(name: str, data: RealData, spec: str, real: bool) -> list[Adapter]:
    """Return an adapter for every split, its numbers fitted to the source classes; kept."""

    def measure() -> dict[str, Any]:
        states = []
        for source in data.splits:
            tasks, _ = _tasks(data, source)
            adapter = _tuned(data, tasks, _blank(tasks, spec), real)
            states.append({key: value.tolist() for key, value in adapter.state_dict().items()})
        return {"states": states}

    tasks, _ = _tasks(data, data.splits[0])
    if spec.startswith("protonet"):
        return [_blank(tasks, spec).eval() for _ in data.splits]
    summary = kept("meta", f"{name} {spec} fitted to {'real' if real else 'pseudo'}", measure)
    result = []
    for state in summary["states"]:
        adapter = _blank(tasks, spec)
        adapter.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
        result.append(adapter.eval())
    return result


def _blank(tasks: Tasks, spec: str) -> Adapter:
    return adapters.create(spec).build(tasks.x.shape[1], tasks.n_classes)  # type: ignore[union-attr]


def _tuned(data: RealData, tasks: Tasks, adapter: Adapter, real: bool, steps: int = 120) -> Adapter:
    sizes = Sizes(
        ways=(tasks.n_classes,), shots=data.shots, annotators=(data.annotators,), queries=15
    )
    if real:
        labelled = np.flatnonzero(tasks.annotations.labels_per_item > 0)  # type: ignore[union-attr]
        tasks = tasks.items(labelled)
    tune(adapter, EpisodeSource(tasks, sizes, None if real else data.crowd, 640), steps=steps)
    return adapter


def episodes(
    data: RealData, x: torch.Tensor, source: Any, shots: int, n: int, seed: Any
) -> Iterator[Any]:
    """Yield target tasks: support, its labels, more items without labels, queries, their truth."""
    n_annotated, n_classes = data.annotations.n_items, data.annotations.n_classes
    target = np.setdiff1d(np.arange(n_classes), source)
    tasks = Tasks(data.x[:n_annotated], data.truth[:n_annotated], annotations=data.annotations)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        support = [
            rng.permutation(np.flatnonzero(data.truth[:n_annotated] == c))[:shots] for c in target
        ]
        other = [
            n_annotated + rng.permutation(np.flatnonzero(data.truth[n_annotated:] == c))
            for c in target
        ]
        query = np.concatenate([items[:_QUERIES] for items in other])
        spare = np.concatenate([items[_QUERIES : 2 * _QUERIES] for items in other])
        chosen = np.concatenate(support)
        label = tasks.labels_in_episodes(chosen[None], target[None])
        truth = np.searchsorted(target, data.truth[query])
        clean = np.searchsorted(target, data.truth[chosen])
        yield x[chosen], torch.from_numpy(label), x[spare], x[query], truth, clean


@torch.no_grad()
def _right(adapter: Any, summary: Any, mode: str) -> float:
    u, label, spare, query, truth, clean = summary
    n_classes = int(truth.max()) + 1
    if mode == "clean":
        label = torch.from_numpy(clean)[None, :, None]
    if mode == "unlabelled":
        u = torch.cat([u, spare])
        label = torch.cat([label, torch.full((1, len(spare), label.shape[2]), -1)], dim=1)
    task = adapter.adapt(Items.of(u[None], label, n_classes=n_classes))
    log = task.log_truth(Items.of(query[None], n_classes=n_classes))[0]
    return float((log.argmax(dim=1).numpy() == truth).mean())


def measured(name: str, spec: str, mode: str, n: int = 25) -> dict[str, Any]:
    """Return accuracies by shots: (split, episode) each, kept.

    Modes: `pseudo` and `real` say whose labels the numbers are fitted to; `unlabelled` also gives
    the support 20 more items of every class without labels; `clean` gives it true labels.
    """

    def measure() -> dict[str, Any]:
        data = crowd_of(name)
        result: dict[str, list[list[float]]] = {str(shots): [] for shots in data.shots}
        fitted = _fitted(name, data, spec, real=mode in ("real", "unlabelled"))
        for number, (source, adapter) in enumerate(zip(data.splits, fitted, strict=True)):
            _, x = _tasks(data, source)
            for shots in data.shots:
                some = episodes(data, x, source, shots, n, [number, shots])
                result[str(shots)].append([_right(adapter, summary, mode) for summary in some])
        return result

    return kept("meta", f"{name} {spec} {mode}", measure)


def validation_accuracy(name: str, spec: str) -> float:
    """Return the accuracy of an adapter on source classes with their own annotations; stored."""

    def measure() -> dict[str, Any]:
        from dissensus.deep.meta.tuning import score

        data = crowd_of(name)
        right = []
        for source, adapter in zip(data.splits, _fitted(name, data, spec, True), strict=True):
            tasks, _ = _tasks(data, source)
            some = tasks.items(np.flatnonzero(tasks.annotations.labels_per_item > 0))  # type: ignore[union-attr]
            sizes = Sizes(ways=(tasks.n_classes,), shots=data.shots[:2], queries=15)
            right.append(
                score(adapter, EpisodeSource(some, sizes, None, 64).batches(16, 9, 9)).mean
            )
        return {"accuracy": float(np.mean(right))}

    return float(kept("meta", f"{name} {spec} validation", measure)["accuracy"])
