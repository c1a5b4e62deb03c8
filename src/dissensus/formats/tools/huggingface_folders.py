"""A folder for Hugging Face: Parquet files by split, and a card that describes them.

    README.md                               the card: YAML between two lines `---`, then Markdown
    data/train-00000-of-00001.parquet       a row for every item, as `huggingface` has it

Labels are classes with their names (`ClassLabel`), which card and files declare. Several options
at once are a list of texts. A carried column `split` decides the file of an item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

import polars as pl

from ...base.files import atomic_folder
from ...answers.annotations import Annotations
from .cards import Card, card_text
from ..content import Content, chosen_options
from .to_huggingface import answers, results

FILES = ("README.md", "data")
_ALONE = "train"  # the split of a data set without any
_TYPES: dict[Any, str] = {
    pl.String: "string",
    pl.Float64: "float64",
    pl.Boolean: "bool",
    pl.Datetime: "timestamp[us]",
}

Feature = Mapping[str, Any]


def save(content: Content, folder: str | Path, card: Card | None = None) -> None:
    """Write the folder, which replaces one like it."""
    frame = results(content) if content.is_result else answers(content)
    own, frame = _split_of(frame), frame.drop("split", strict=False)
    features = {name: _feature(content, name, kind) for name, kind in frame.schema.items()}
    frame = frame.with_columns(_stored(content, name, one) for name, one in features.items())
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    with atomic_folder(folder, FILES) as draft:
        (draft / "data").mkdir()
        sizes = {}
        for name, split in _file_names(own).items():
            part = frame.filter(own == name)
            file = draft / "data" / f"{split}-00000-of-00001.parquet"
            part.write_parquet(file, compression="zstd", metadata=metadata)
            sizes[split] = part.height, int(part.estimated_size())
        text = card_text(content, card or Card(), Path(folder).resolve().name, features, sizes)
        (draft / "README.md").write_text(text, encoding="utf-8")


def clashes(content: Content) -> list[str]:
    """Return that annotators would be published by name, and which splits get other names."""
    sentences = []
    people = [name for name in content.people if "@" in name]
    if people:
        sentences.append(
            f"{len(people)} annotators are e-mail addresses; --pseudonyms KEY replaces names"
        )
    split = content.column("split")
    changed = [name for name in dict.fromkeys(split or ()) if name and _safe(str(name)) != name]
    if changed:
        sentences.append(
            f"{len(changed)} splits are renamed, such as {changed[0]!r} to {_safe(changed[0])!r}"
        )
    return sentences


def _split_of(frame: pl.DataFrame) -> pl.Series:
    """Return the split of every item, that of its first label."""
    if "split" not in frame.columns:
        return pl.Series("split", [_ALONE] * frame.height, dtype=pl.String)
    return frame["split"].list.first().cast(pl.String).fill_null(_ALONE)


def _file_names(splits: pl.Series) -> dict[str, str]:
    """Return a word for every split, as a file needs it."""
    taken: dict[str, str] = {}
    for name in splits.unique(maintain_order=True).to_list() or [_ALONE]:
        safe = _safe(name)
        others = (f"{safe}_{number}" for number in count(2))
        free = (one for one in chain([safe], others) if one not in taken.values())
        taken[name] = next(free)
    return taken


def _safe(split: str) -> str:
    return re.sub(r"\W+", "_", split, flags=re.ASCII).strip("_")[:60] or _ALONE


def _feature(content: Content, name: str, kind: Any) -> Feature:
    """Return how `datasets` declares a column."""
    classes = isinstance(content.annotations, Annotations) and content.kind != "multiple"
    if classes and name in ("labels", "label", "gold"):
        known: Any = content.annotations
        names = known.classes.tolist()
        if name != "gold" or {*content.gold.values()} <= {*names}:
            one = {"names": names, "_type": "ClassLabel"}
            return {"feature": one, "_type": "List"} if name == "labels" else one
    if content.kind == "multiple" and name in ("labels", "label", "gold"):
        texts = {"feature": _value("string"), "_type": "List"}
        return {"feature": texts, "_type": "List"} if name == "labels" else texts
    return _declared(kind)


def _declared(kind: Any) -> Feature:
    if isinstance(kind, pl.List):
        return {"feature": _declared(kind.inner), "_type": "List"}
    if isinstance(kind, pl.Struct):
        return {field.name: _declared(field.dtype) for field in kind.fields}
    return _value(_TYPES.get(kind.base_type(), str(kind).lower()))


def _value(dtype: str) -> Feature:
    return {"dtype": dtype, "_type": "Value"}


def _stored(content: Content, name: str, feature: Feature) -> pl.Expr:
    """Return a column as it is stored: classes as numbers, several options as lists."""
    column = pl.col(name)
    if content.kind == "multiple" and name in ("labels", "label", "gold"):
        options = pl.List(pl.String)
        if name == "labels":
            return column.map_elements(
                lambda row: [chosen_options(one) for one in row], return_dtype=pl.List(options)
            )
        return column.map_elements(chosen_options, return_dtype=options)
    inner = feature.get("feature", feature)
    if not isinstance(inner, dict) or inner.get("_type") != "ClassLabel":
        return column
    codes = {one: code for code, one in enumerate(inner["names"])}
    coded = pl.element() if name == "labels" else column
    coded = coded.replace_strict(codes, return_dtype=pl.Int64)
    return column.list.eval(coded) if name == "labels" else coded
