"""Scores of hard items as files, named and laid out as peerannot has them.

    aum/aum_values.csv           sample_id, filename, AUM_yang, AUM_pleiss
    aum/full_aum_records.csv     logits and probabilities of every item after every epoch
    waum_…/waum.csv              index, task, waum
    waum_…/aum_per_worker.json   {index: {annotator: area under the margin}}
    waum_…/score_per_worker.json {index: {annotator: weight of their label}}
    …/too_hard_<alpha>.txt       index and item, as `--path-remove` reads them

The index is the position of an image among all of the folder, sorted by class and name, and a task
is a file's name; without files they are the number and the name of the item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.files import atomic_file
from ...base.names import Names, as_names
from ...base.arrays import Floats, Integers
from ..writing import write_columns, write_json

if TYPE_CHECKING:
    from ...answers.annotations import Annotations
    from ...deep.learning.hard_items import AumScores
    from ...deep.learning.waum import WaumScores


@dataclass(frozen=True, eq=False)
class Samples:
    """Items as peerannot numbers and names them."""

    index: Integers  # (item)
    task: Names  # (item)


def samples_of(items: Names, files: Sequence[Path] = (), others: Sequence[Path] = ()) -> Samples:
    """Return position and file name of every item, where there are files; else number and name."""
    if not files:
        return Samples(np.arange(len(items)), items)
    order = sorted({*files, *others}, key=lambda file: (file.parent.name, file.name))
    position = {file: number for number, file in enumerate(order)}
    return Samples(
        np.array([position[file] for file in files]), as_names([file.name for file in files])
    )


def write_aum(folder: Path, scores: AumScores, samples: Samples) -> None:
    """Write areas under the margin, and the records of all epochs if there are any."""
    known = np.flatnonzero(scores.label >= 0)
    table = {
        "sample_id": samples.index[known],
        "filename": samples.task[known],
        "AUM_yang": scores.top2[known],
        "AUM_pleiss": scores.pleiss[known],
    }
    write_columns(table, folder / "aum_values.csv")
    if scores.scores is not None:
        records = _records(scores.scores[:, known], scores.label[known])
        epochs = len(scores.scores)
        named = {
            "index": np.tile(samples.index[known], epochs),
            "task": np.tile(samples.task[known], epochs),
        }
        write_columns(named | records, folder / "full_aum_records.csv")


def write_waum(folder: Path, scores: WaumScores, samples: Samples) -> None:
    """Write scores of items, and areas and weights of their labels."""
    labelled = np.flatnonzero(scores.annotations.labels_per_item > 0)
    table = {
        "index": samples.index[labelled],
        "task": samples.task[labelled],
        "waum": scores.waum[labelled],
    }
    write_columns(table, folder / "waum.csv")
    for name, values in {"aum_per_worker": scores.aum, "score_per_worker": scores.weight}.items():
        write_json(folder / f"{name}.json", _by_pair(scores.annotations, values, samples), indent=3)


def write_too_hard(path: Path, index: Integers, items: Names) -> None:
    """Write the items that are left out, a line each: index and name."""
    names = [" ".join(name.replace("\t", "\n").splitlines()) for name in items.tolist()]
    rows = zip(index.tolist(), names, strict=True)
    with atomic_file(path) as draft:
        draft.write_text("".join(f"{number}\t{name}\n" for number, name in rows), encoding="utf-8")


def _by_pair(
    annotations: Annotations, values: Floats, samples: Samples
) -> dict[str, dict[str, Any]]:
    """Return {index: {annotator: value}}; a list of values for repeated labels."""
    out: dict[str, dict[str, Any]] = {}
    rows = zip(
        samples.index[annotations.item].tolist(),
        annotations.annotators[annotations.annotator].tolist(),
        values.tolist(),
        strict=True,
    )
    for index, annotator, value in rows:
        given = out.setdefault(str(index), {})
        if annotator in given:
            before = given[annotator]
            value = [*(before if isinstance(before, list) else [before]), value]
        given[annotator] = value
    return out


def _records(logits: Floats, label: Integers) -> dict[str, Any]:
    """Return the records that peerannot has of every item after every epoch, epoch by epoch."""
    epochs, n_items, n_classes = logits.shape
    flat = logits.reshape(-1, n_classes)
    shifted = np.exp(flat - flat.max(axis=1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=1, keepdims=True)
    given = np.tile(label, epochs)
    rows = np.arange(len(flat))
    out: dict[str, Any] = {"label": given, "epoch": np.repeat(np.arange(epochs), n_items)}
    for name, values in {"logit": flat, "prob": probabilities}.items():
        others = values.copy()
        others[rows, given] = -np.inf
        out[f"label_{name}"] = values[rows, given]
        out[f"other_max_{name}"] = others.max(axis=1)
        out[f"second{name}"] = np.partition(values, -2, axis=1)[:, -2]
    order = ["label", "epoch", "label_logit", "label_prob", "other_max_logit", "other_max_prob"]
    order += ["secondlogit", "secondprob"]
    return {name: out[name] for name in order} | {
        f"logits_{code}": flat[:, code] for code in range(n_classes)
    }
