"""`{item: {annotator: label}}`, in a file or in the folder layout of peerannot.

In a folder (`answers.json`, `metadata.json`), items, annotators and classes are numbers from 0;
other names are kept in the metadata, and so is a scale. Some sets of peerannot are the other way
round, `{annotator: {item: label}}`; content cannot show that, so it is read only on request.

Written, other names are their codes, with the names in the metadata, and scores of hard items are
files, named and laid out as peerannot has them:

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...answers.annotations import SCALES, Annotations
from ...answers.gold import gold_codes
from ...answers.left_out import LeftOut, with_left_out
from ...base.arrays import Floats, Integers
from ...base.files import atomic_file
from ...base.names import Names, as_names, indices_of, numbered, text
from ...base.storage import damage
from ...errors import DataError, Note, OptionError
from ..content import Content
from ..format import INVERTED as _INVERTED
from ..format import Export, Format, Question, Target
from ..frames import one_answer_each
from ..json_records import load
from ..platforms import as_label
from ..sources import Source, open_source
from ..writing import save_array, write, write_columns, write_json, write_truth

if TYPE_CHECKING:
    from ...aggregation.aggregation import ClassAggregation
    from ...datasets.simulation import Simulation
    from ...deep.learning.hard_items import AumScores, WaumScores


_MOST_UNUSED = 10**6  # numbers that may be declared without being used
_MOST_CLASSES = 10**6
_NAMED = ("items", "annotators", "classes")
_PEOPLE = ("worker", "annotator", "user", "rater", "performer", "coder")


def is_nested(answers: Any) -> bool:
    """Return whether this is an object of objects."""
    return isinstance(answers, dict) and all(
        isinstance(labels, dict) for labels in answers.values()
    )


def read_metadata(folder: str | Path, file: str | Path | None = None) -> dict[str, Any]:
    """Return the metadata of a folder; nothing if it has none."""
    path = Path(file) if file else Path(folder) / "metadata.json"
    if not path.exists() and file is None:
        return {}
    source = open_source(path, "json")
    metadata = load(source)
    if not isinstance(metadata, dict):
        raise source.fail("metadata should be an object with name and n_classes")
    return metadata


def read_folder(
    folder: str | Path,
    *,
    answers: str | Path = "answers.json",
    metadata: str | Path | None = None,
    classes: Any = None,
    n_classes: int | None = None,
    inverted: bool = False,
    duplicates: str = "count",
    missing: str = "error",
) -> Annotations:
    """Return the annotations of a data set folder; inverted, of `{annotator: {item: label}}`."""
    path = Path(folder) / answers
    if not path.exists():
        raise DataError(f"{folder}: no {answers} in this folder; name the file itself")
    source = open_source(path, "json")
    nested = load(source)
    if not is_nested(nested):
        raise source.fail("answers should be {item: {annotator: label}}")
    people = LeftOut(annotators=tuple(nested) if inverted else ())  # somebody may have no item
    if inverted:
        nested = _turned(nested)
    nested, left_out = one_answer_each(nested, duplicates, str(path), missing)
    left_out += people
    notes = read_metadata(folder, metadata)
    annotations = from_answers(
        nested,
        n_items=notes.get("n_task", notes.get("n_tasks")),
        n_annotators=notes.get("n_workers"),
        n_classes=notes.get("n_classes") if n_classes is None else n_classes,
        classes=classes,
    )
    with damage(f"{folder}: the names in the metadata do not fit the answers"):
        annotations = _named(annotations, notes.get("names"))
    scale = notes.get("scale")
    annotations = annotations.with_scale(scale) if scale in SCALES else annotations
    return with_left_out(annotations, _renamed(left_out, notes.get("names")))


def from_answers(
    answers: Mapping[Any, Mapping[Any, Any]],
    *,
    n_items: Any = None,
    n_annotators: Any = None,
    n_classes: Any = None,
    classes: Any = None,
) -> Annotations:
    """Return the annotations of `{item: {annotator: label}}`.

    Where names are numbers below a count, all numbers below it are declared, so that number 7 is
    the eighth. A label that is a larger number adds classes.
    """
    if classes is None and isinstance(n_classes, int):
        classes = numbered(max(n_classes, _largest(answers) + 1))
    annotations = Annotations.from_dict(answers, classes=classes)
    items = _declared(annotations.items, n_items)
    annotators = _declared(annotations.annotators, n_annotators)
    if items is annotations.items and annotators is annotations.annotators:
        return annotations
    return annotations.with_codes(
        item=indices_of(annotations.items, items)[annotations.item],
        annotator=indices_of(annotations.annotators, annotators)[annotations.annotator],
        items=items,
        annotators=annotators,
    )


def folder_notes(annotations: Annotations, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the answers of a folder show that its metadata do not."""
    n_classes, needed = metadata.get("n_classes"), annotations.n_classes
    notes = orientation_note(annotations, metadata)
    if isinstance(n_classes, int) and n_classes < needed and "names" not in metadata:
        notes += (f"the metadata count {n_classes} classes, but labels need {needed}",)
    return notes


def load_array(path: str | Path | IO[bytes], name: str | None = None) -> np.ndarray[Any, Any]:
    """Read an array; pickled objects are refused."""
    with damage(f"{name or path}: not an array of numbers"):
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise DataError(f"{name or path}: an archive of arrays; name one array, as .npy")
        return array


def read_matrices(path: str | Path) -> np.ndarray[Any, Any]:
    """Read the confusion matrices of annotators: (annotator, true, given)."""
    matrices = load_array(path)
    if matrices.ndim != 3 or matrices.dtype.kind not in "fiu":
        raise DataError(f"{path}: confusion matrices are numbers (annotator, true, given)")
    return matrices.astype(float)


def read(source: Source) -> Export:
    """Return the answers of `{annotator: {item: label}}`."""
    nested = load(source)
    if not is_nested(nested):
        raise source.fail("answers should be {annotator: {item: label}}")
    rows = [
        (item, annotator, as_label(label))
        for annotator, answers in nested.items()
        for item, labels in answers.items()
        for label in (labels if isinstance(labels, list) else [labels])
    ]
    schema = {"item": pl.String, "annotator": pl.String, "label": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    items = tuple(dict.fromkeys(item for answers in nested.values() for item in answers))
    left_out = LeftOut(items=items, annotators=tuple(nested))  # as far as they have no label
    return Export({"label": Question(frame, left_out=left_out)})


def orientation_note(
    annotations: Annotations, metadata: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return a note if the outer names can hardly be items, by their words or their number."""
    outer = annotations.items[annotations.labels_per_item > 0].tolist()
    inner = annotations.annotators.tolist()
    if outer and all(name.casefold().startswith(_PEOPLE) for name in outer):
        inverted = not any(name.casefold().startswith(_PEOPLE) for name in inner)
    else:
        metadata = metadata or {}
        n_workers: Any = metadata.get("n_workers")
        n_items: Any = metadata.get("n_task", metadata.get("n_tasks"))
        counted = isinstance(n_workers, int) and isinstance(n_items, int) and n_workers != n_items
        inverted = counted and len(outer) <= n_workers < len(inner) <= n_items
    if not inverted:
        return ()
    note = "the outer names look like annotators"
    return (Note(note, remedy="turns them", format="peerannot-inverted"),)


def _declared(names: Names, count: Any) -> Names:
    """Return all numbers below a count, where names are some of them; else the names."""
    if not isinstance(count, int) or count > len(names) * 10 + _MOST_UNUSED:
        return names
    return numbered(count) if set(names.tolist()) <= set(numbered(count).tolist()) else names


def _largest(answers: Mapping[Any, Mapping[Any, Any]]) -> int:
    """Return the largest label, where labels are class numbers; else -1."""
    labels = {
        label
        for by_annotator in answers.values()
        for answer in by_annotator.values()
        for label in (answer if isinstance(answer, list) else [answer])
    }
    whole = all(type(label) is int and 0 <= label < _MOST_CLASSES for label in labels)
    return max(labels, default=-1) if whole else -1


def _turned(by_annotator: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return `{item: {annotator: label}}` of `{annotator: {item: label}}`."""
    answers: dict[str, dict[str, Any]] = {}
    for annotator, labels in by_annotator.items():
        for item, label in labels.items():
            answers.setdefault(item, {})[annotator] = label
    return answers


def _renamed(left_out: LeftOut, names: Any) -> LeftOut:
    """Return what was left out with annotators under the names that the metadata keep for them."""
    declared = names.get("annotators", []) if isinstance(names, dict) else []
    numbers = dict(zip(map(str, range(len(declared))), map(text, declared), strict=True))
    annotators = tuple(numbers.get(name, name) for name in left_out.annotators)
    return replace(left_out, annotators=annotators)


def _named(annotations: Annotations, names: Any) -> Annotations:
    """Return annotations on numbers under the names that the metadata keeps for them."""
    if not isinstance(names, dict):
        return annotations

    def code(numbers: np.ndarray[Any, Any], codes: Any) -> Integers:
        return np.array([int(name) for name in numbers.tolist()], dtype=np.int64)[codes]

    originals: Any = {
        kind: as_names(names.get(kind, [])) for kind in ("items", "annotators", "classes")
    }
    return Annotations.from_codes(
        code(annotations.items, annotations.item),
        code(annotations.annotators, annotations.annotator),
        code(annotations.classes, annotations.label),
        **originals,
    )


@dataclass(frozen=True, eq=False)
class Samples:
    """Items as peerannot numbers and names them."""

    index: Integers  # (item)
    task: Names  # (item)


def samples_of(
    items: Names, files: Sequence[Path] = (), other_files: Sequence[Path] = ()
) -> Samples:
    """Return position and file name of every item, where there are files; else number and name."""
    if not files:
        return Samples(np.arange(len(items)), items)
    order = sorted({*files, *other_files}, key=lambda file: (file.parent.name, file.name))
    position = {file: number for number, file in enumerate(order)}
    return Samples(
        np.array([position[file] for file in files]), as_names([file.name for file in files])
    )


def write_aum(folder: Path, scores: AumScores, samples: Samples) -> None:
    """Write areas under the margin, and the records of all epochs if there are any."""
    labelled = np.flatnonzero(scores.label >= 0)
    table = {
        "sample_id": samples.index[labelled],
        "filename": samples.task[labelled],
        "AUM_yang": scores.top2[labelled],
        "AUM_pleiss": scores.pleiss[labelled],
    }
    write_columns(table, folder / "aum_values.csv")
    if scores.scores is not None:
        records = _records(scores.scores[:, labelled], scores.label[labelled])
        epochs = len(scores.scores)
        columns = {
            "index": np.tile(samples.index[labelled], epochs),
            "task": np.tile(samples.task[labelled], epochs),
        }
        write_columns(columns | records, folder / "full_aum_records.csv")


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
        by_annotator = out.setdefault(str(index), {})
        if annotator in by_annotator:
            earlier = by_annotator[annotator]
            value = [*(earlier if isinstance(earlier, list) else [earlier]), value]
        by_annotator[annotator] = value
    return out


def _records(logits: Floats, label: Integers) -> dict[str, Any]:
    """Return the records that peerannot has of every item after every epoch, epoch by epoch."""
    epochs, n_items, n_classes = logits.shape
    flat = logits.reshape(-1, n_classes)
    shifted = np.exp(flat - flat.max(axis=1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=1, keepdims=True)
    labels = np.tile(label, epochs)
    rows = np.arange(len(flat))
    out: dict[str, Any] = {"label": labels, "epoch": np.repeat(np.arange(epochs), n_items)}
    for name, values in {"logit": flat, "prob": probabilities}.items():
        other_values = values.copy()
        other_values[rows, labels] = -np.inf
        out[f"label_{name}"] = values[rows, labels]
        out[f"other_max_{name}"] = other_values.max(axis=1)
        out[f"second{name}"] = np.partition(values, -2, axis=1)[:, -2]
    order = ["label", "epoch", "label_logit", "label_prob", "other_max_logit", "other_max_prob"]
    order += ["secondlogit", "secondprob"]
    return {name: out[name] for name in order} | {
        f"logits_{code}": flat[:, code] for code in range(n_classes)
    }


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
        sizes["names"] = {kind: array.tolist() for kind, array in names.items()}
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
    result: ClassAggregation,
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


def write_undecided(folder: str | Path, strategy: str, result: ClassAggregation) -> Path:
    """Write the items without a label to a file that `--path-remove` reads, and return its path."""
    items = result.answers.items[result.label < 0]
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
            problem = "peerannot's layout holds no numbers"
            raise OptionError(problem, remedy="use {}", to="table")
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
    annotations = content.labels_of_classes
    if annotations is None:
        raise OptionError("peerannot's layout holds no numbers; write a table")
    gold = None if _lost_gold(content) else gold_codes(annotations, content.gold)
    write_folder(folder, annotations, arrays={} if gold is None else {"ground_truth": gold})
    if content.is_result:
        write_labels(folder, content.what, content.what.method, hard=False, suffix=False)


def clashes(content: Content) -> list[str]:
    """Return what peerannot does not read, and which gold the folder cannot hold."""
    if content.is_result or not content.annotations.repeats.any():
        return _lost_gold(content)
    sentence = "repeated labels are written as lists, which peerannot itself does not read"
    return [sentence, *_lost_gold(content)]


def _lost_gold(content: Content) -> list[str]:
    annotations = content.labels_of_classes
    if not content.gold or annotations is None:
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


INVERTED = Format(_INVERTED, read=read)  # on request: its content looks like the other way round
FORMAT = Format(
    "peerannot",
    labels=Target(
        summary="a folder with answers.json and metadata.json",
        kinds=("folder",),
        save=save,
        holds=frozenset({"unlabelled", "unused", "repeats", "gold", *SCALES}),
        results=False,
        clashes=clashes,
    ),
)
