"""Known answers: the truth of items, without annotators, of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ..answers import KINDS, kind_class
from ..answers.left_out import short_name
from ..errors import DataError
from .answer_records import answers_from_records, kind_of_records
from .columns import NEEDED, TRUTH, find_columns, find_layout, is_known, is_of_kind, plain_name
from .format import head_of
from .frames import frame_of_labels, names_of
from .options import ReadOptions
from .sources import Source, is_folder, open_source
from .tables import read_columns, read_roles
from .tools.peerannot import load_array


def read_truth(
    source: Any,
    *,
    kind: str = "classes",
    columns: Mapping[str, str] | None = None,
    inputs: str | Path | None = None,
) -> Any:
    """Return known answers: `{item: label}` of classes and numbers, else answers of one annotator.

    Items without a label are left out. Of comparisons, the scores of things may be known instead:
    `{thing: score}`. Sets may also be written as item, label, present; a row without values is an
    empty answer.

    Parameters
    ----------
    source
        A path to a table, to an array of class numbers or to a simulated folder; a pandas, polars
        or Arrow table; a mapping, or a pandas Series, of items to labels.
    kind
        The kind of the answers; see `kind_of_truth`. Others than classes and numbers are in a file.
    columns
        Which column is which, `{"item": …, "label": …}`, where their names are not known ones; the
        two columns of a table in memory are item and label.
    inputs
        A table about items, as in `read`.
    """
    if kind in KINDS:
        return _answers(open_source(source), kind, inputs)
    if not isinstance(source, (str, Path)):
        return _unique_labels(labels_in_memory(source, columns).select("item", "label"), "truth")
    path = Path(source) / "ground_truth.npy" if is_folder(source) else source
    opened = open_source(path)
    if opened.format == "npy":
        with opened.file() as file:
            truth = load_array(file, opened.name)
        if truth.ndim != 1 or truth.dtype.kind not in "iu":
            raise opened.fail("truth should be one class number for every item")
        return {str(item): str(label) for item, label in enumerate(truth.tolist()) if label >= 0}
    frame = read_roles(opened, TRUTH, columns=columns)
    return _unique_labels(frame.select("item", "label"), opened.name)


def kind_of_truth(path: str | Path) -> str:
    """Return the kind of the answers in a file without annotators, by its columns."""
    opened = open_source(path)
    head = head_of(opened)
    if head is None or head.shape not in ("table", "records"):
        return "classes"
    if head.shape == "records" and (kind := kind_of_records(head, annotator="truth")) is not None:
        return kind
    plain = {plain_name(name) for name in head.names}
    if {"thing", "score"} <= plain:
        return "rankings"
    layout = find_layout(head.names)
    if layout is None or not is_of_kind(read_columns(opened, None), *layout):
        return "classes"
    return layout[0].kind


def labels_in_memory(source: Any, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Return a table, mapping or pandas Series with `item` and `label`, and its other columns.

    >>> labels_in_memory({"photo": ["a", "b"], "species": ["cat", "dog"]}).columns
    ['item', 'label']
    """
    frame = frame_of_labels(source)
    unknown = [name for name in frame.columns if not is_known(name)]
    if not columns and unknown and frame.width == 2:
        plain_names = {plain_name(name) for name in frame.columns}
        free = [role for role in TRUTH if len(unknown) == 2 or plain_names.isdisjoint(TRUTH[role])]
        columns = dict(zip(free, unknown, strict=False))
    roles = find_columns(frame.columns, TRUTH, columns, "truth")
    return frame.rename({name: role for role, name in roles.items()})


def _unique_labels(frame: pl.DataFrame, name: str) -> dict[str, str]:
    """Return the label of every item in a table of two columns, item and label."""
    names = frame.select(names_of(column).alias(column.name) for column in frame.iter_columns())
    items, labels = (column.to_list() for column in names.drop_nulls().unique(maintain_order=True))
    truth: dict[str, str] = {}
    for item, label in zip(items, labels, strict=True):
        if truth.setdefault(item, label) != label:
            labels_of = f"{short_name(truth[item])!r} and {short_name(label)!r}"
            message = f"item {short_name(item)!r} has two true labels, {labels_of}"
            raise DataError(message, where=name)
    return truth


def _answers(opened: Source, kind: str, inputs: str | Path | None) -> Any:
    """Return known answers of another kind than classes, or the scores of things."""
    head = head_of(opened)
    if head is not None and head.shape == "records" and kind_class(kind).value_key in head.names:
        return answers_from_records(opened, kind, annotator="truth")
    frame = read_columns(opened, None)
    plain = {plain_name(name): name for name in frame.columns}
    layout = find_layout(frame.columns, kind)
    if kind == "rankings" and "score" in plain and (layout is None or "thing" in plain):
        return _thing_scores(frame, plain, opened)
    if kind == "sets" and "present" in plain and "labels" not in plain:
        frame = _present(frame, plain)
        layout = find_layout(frame.columns, kind)
    if layout is None:
        raise opened.fail(f"no {kind} in it, by its columns {', '.join(frame.columns)}")
    from .answer_tables import answers_from

    options = ReadOptions(kind=kind, inputs=inputs)
    return answers_from(frame, *layout, options, source=opened, annotator="truth")[0]


def _thing_scores(frame: pl.DataFrame, plain: dict[str, str], opened: Source) -> dict[str, float]:
    names = [plain[name] for name in ("thing", *NEEDED["item"]) if name in plain]
    if not names:
        raise opened.fail("scores without a column of things")
    score = frame[plain["score"]].cast(pl.Float64, strict=False)
    if score.is_null().any() or not score.is_finite().all():
        raise opened.fail("every thing needs a score, a number")
    return dict(zip(names_of(frame[names[0]]).to_list(), score.to_list(), strict=True))


def _present(frame: pl.DataFrame, plain: dict[str, str]) -> pl.DataFrame:
    """Return item, label, present as item and a list of labels."""
    item = next(plain[name] for name in NEEDED["item"] if name in plain)
    is_present = frame[plain["present"]].cast(pl.String).is_in(["1", "1.0", "true", "True"])
    label = names_of(frame[plain["label"]])
    table = pl.DataFrame({"item": names_of(frame[item]), "labels": label.set(~is_present, None)})
    return table.group_by("item", maintain_order=True).agg(pl.col("labels").drop_nulls())
