"""The folder layout of peerannot: `answers.json`, `metadata.json`, truth and label files.

There, items, annotators and classes are numbers from 0. Other names are written as their codes,
with the names in the metadata, and are restored when the folder is read; so is the scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.names import numbered
from ...base.arrays import Floats
from ...answers.annotations import Annotations
from ...errors import DataError, OptionError
from .peerannot import read_metadata
from ...result import Aggregation, gold_codes
from ..content import Content
from .hard_items import write_too_hard
from ..writing import save_array, write, write_json, write_truth

if TYPE_CHECKING:
    from ...datasets.simulation import Simulation


_NAMED = ("items", "annotators", "classes")


def write_folder(
    folder: str | Path,
    annotations: Annotations,
    *,
    metadata: Mapping[str, Any] | None = None,
    arrays: Mapping[str, np.ndarray[Any, Any]] | None = None,
) -> None:
    """Write annotations, metadata and any arrays as a data set folder."""
    target = Path(folder)
    sizes = {
        "name": target.resolve().name,
        "n_classes": annotations.n_classes,
        "n_workers": annotations.n_annotators,
        "n_task": annotations.n_items,
    }
    if not _all_numbered(annotations):
        names = {kind: getattr(annotations, kind) for kind in _NAMED}
        sizes["names"] = {kind: given.tolist() for kind, given in names.items()}
    if annotations.scale != "nominal":  # which labels are in a folder that does not say
        sizes["scale"] = annotations.scale
    write_json(target / "answers.json", annotations.to_dict(coded=True))
    write_json(target / "metadata.json", sizes | dict(metadata or {}))
    for name, array in (arrays or {}).items():
        save_array(target / f"{name}.npy", array)


def write_answers(folder: str | Path, annotations: Annotations) -> None:
    """Write `answers.json` alone: with numbers, or with names where there are others."""
    answers = annotations.to_dict(coded=_all_numbered(annotations))
    write_json(Path(folder) / "answers.json", answers)


def write_labels(
    folder: str | Path,
    result: Aggregation,
    strategy: str,
    *,
    hard: bool,
    suffix: bool,
    name: str | None = None,
) -> Path:
    """Write a label file as peerannot names it, and return its path.

    Hard labels are class numbers, otherwise it is the posterior; the suffix only names the file.
    """
    name = name or read_metadata(folder).get("name") or Path(folder).resolve().name
    file = f"labels_{name}_{strategy.lower()}{'_hard' if suffix else ''}.npy"
    if "/" in file or "\\" in file:
        raise DataError(f"{folder}: the name {name!r} with {strategy!r} cannot be a file name")
    path = Path(folder) / "labels" / file
    save_array(path, result.label if hard else result.posterior)
    return path


def write_score(folder: str | Path, file: str, values: Any) -> Path:
    """Write a score to its file under `identification/`, and return its path."""
    path = Path(folder) / "identification" / file
    save_array(path, np.asarray(values))
    return path


def write_glad(folder: str | Path, ability: Floats, log_easiness: Floats) -> list[Path]:
    """Write GLAD's parameters beside the numbers of annotators and items, as peerannot does.

    Its difficulties are logarithms, and larger for easier items.
    """
    files = {"glad/abilities.npy": ability, "glad/difficulties.npy": log_easiness}
    return [
        write_score(folder, file, np.stack([np.arange(len(values), dtype=float), values], axis=1))
        for file, values in files.items()
    ]


def write_undecided(folder: str | Path, strategy: str, result: Aggregation) -> Path:
    """Write the items without a label to a file that `--path-remove` reads, and return its path."""
    items = result.annotations.items[result.label < 0]
    path = Path(folder) / "identification" / strategy / "too_hard.txt"
    write_too_hard(path, np.full(len(items), -1), items)
    return path


def write_simulation(
    simulation: Simulation, folder: str | Path, kind: str = "peerannot", *, name: str | None = None
) -> None:
    """Write annotations, truth, confusion matrices and every option of a simulation to a folder.

    The kind is `peerannot`, or the format of the tables of answers and truth. As in peerannot, the
    data set is called after the strategy if it has no name.
    """
    target, annotations = Path(folder), simulation.annotations
    name = name or simulation.options["strategy"].partition("[")[0]
    metadata = {"name": name, **simulation.options}
    arrays = {key: np.asarray(values) for key, values in simulation.extras.items()}
    if simulation.crowd.confusion is not None:
        arrays["matrices"] = simulation.crowd.confusion
    if kind == "peerannot":
        if not isinstance(annotations, Annotations):
            raise OptionError("peerannot's layout holds no numbers; use --format table")
        arrays["ground_truth"] = simulation.truth
        write_folder(target, annotations, metadata=metadata, arrays=arrays)
        return
    write(annotations, target / f"answers.{kind}")
    write_truth(simulation.truths, target / f"truth.{kind}")
    write_json(target / "metadata.json", metadata)
    for key, array in arrays.items():
        save_array(target / f"{key}.npy", array)


def save(content: Content, folder: str | Path) -> None:
    """Write the folder; a result also leaves its label file there."""
    annotations = content.annotations
    if not isinstance(annotations, Annotations):
        raise OptionError("peerannot's layout holds no numbers; write a table")
    gold = None if clashes(content) else gold_codes(annotations, content.gold)
    write_folder(folder, annotations, arrays={} if gold is None else {"ground_truth": gold})
    if isinstance(content.what, Aggregation):
        write_labels(folder, content.what, content.what.method, hard=False, suffix=False)


def clashes(content: Content) -> list[str]:
    """Return which gold the folder cannot hold."""
    annotations = content.annotations
    if not content.gold or not isinstance(annotations, Annotations):
        return []
    if not (_is_numbered(annotations.items) and _is_numbered(annotations.classes)):
        return ["gold is left out: the folder's truth is for items and classes with numbers"]
    unknown = set(content.gold.values()) - set(annotations.classes.tolist())
    if unknown or not set(content.gold) & set(annotations.items.tolist()):
        return ["gold is left out: it is about other items or classes"]
    return []


def _all_numbered(annotations: Annotations) -> bool:
    return all(_is_numbered(getattr(annotations, kind)) for kind in _NAMED)


def _is_numbered(names: np.ndarray[Any, Any]) -> bool:
    return np.array_equal(names, numbered(len(names)))
